"""Values that were measured of items: the argument ``measured`` of `fit`, read and checked."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skpref.data._containers import argument_floats
from skpref.data._read import Reader
from skpref.data._validation import Training

# Of a value's size: sums of squares are then far from what a float can hold.
LARGEST_VALUE = 1e100


def with_measured(
    estimator: BaseEstimator, training: Training, measured: Any, level: float | None
) -> Training:
    """Return the training data with measured values beside the answers.

    Parameters
    ----------
    estimator : BaseEstimator
        Not touched.
    training : Training
    measured : (X, values, deviations)
        As in `PairwisePreferenceRegressor.fit`.
    level : float or None
        See `MeasuredValues`.

    Raises
    ------
    TypeError, ValueError
        If they are not of an allowed form, or of unknown items; the message says which are.
    """
    if not isinstance(measured, tuple | list) or len(measured) != 3:
        raise TypeError(
            f"got measured= of type {type(measured).__name__}; three are allowed, "
            "items, a value of each and its deviation. Give measured=(X, values, deviations)."
        )
    rows = _measured_rows(estimator, training.reader, measured[0])
    value = _finite_column(measured[1], len(rows), "values")
    deviations = measured[2] if np.ndim(measured[2]) else [measured[2]] * len(rows)
    deviation = _finite_column(deviations, len(rows), "deviations")
    if np.any(deviation <= 0.0):
        raise ValueError(
            f"got {deviation.min():g} among the deviations of measured=; numbers above 0 are "
            "allowed. Give the standard deviation of each value's noise."
        )
    comparisons = training.comparisons.with_measured(rows, value, deviation, level)
    reader = training.reader.with_answers(comparisons)
    return training._replace(comparisons=comparisons, reader=reader)


def _measured_rows(estimator: BaseEstimator, reader: Reader, X: Any) -> NDArray[np.float64]:
    """Return rows of the items of ``measured=``; ValueError unless the answers have such items."""
    probe = copy.copy(estimator)
    reader.set_fitted_attributes(probe)
    try:
        parsed = reader.answers(X, probe)
    except ValueError as error:
        raise ValueError(f"got items of measured= that are no items of X: {error}") from error
    if parsed.pairs is not None:
        raise ValueError(
            f"got measured= of answers about {parsed.size} items each; values are of items, X of "
            "shape (n_items, n_features), or names of shape (n_items,)."
        )
    names = None if reader.ids is None else reader.ids.names
    if reader.table is not None and not reader.table.has_features:
        names = reader.table.names
    if names is not None and np.any(parsed.rows[:, reader.id_column or 0] >= len(names)):
        raise ValueError(
            "got measured= of items with names that no answer has; names of the answers are "
            "allowed, or those of items=. Name all items by items=."
        )
    return parsed.rows


def _finite_column(numbers: Any, n: int, noun: str) -> NDArray[np.float64]:
    """Return n finite numbers as floats, or raise ValueError."""
    message = (
        f"got {noun} of measured= {numbers!r:.60}; {n} finite numbers are allowed, up to "
        f"{LARGEST_VALUE:g}. Give one for each item, and leave items without a value out"
    )
    column = argument_floats(numbers, message)
    if column.shape != (n,) or not np.all(np.abs(column) <= LARGEST_VALUE):
        raise ValueError(f"{message}.")
    return column
