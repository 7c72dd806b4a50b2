"""Values that were measured of items: the argument ``measured`` of `fit`, read and checked."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skpref.data._validation import Training

# What stands beside answers that have no place beside measured values, and why.
_REFUSED = {
    "judges": "how reliable judges are is learned of margins alone",
    "prompts": "a value is of an item, not of it in a prompt",
    "time": "a value has no time",
}


def check_metadata_beside_measured(keywords: Mapping[str, Any]) -> None:
    """Raise ValueError if measured values come with metadata that is not taken beside them."""
    for name, reason in _REFUSED.items():
        if "measured" in keywords and name in keywords:
            raise ValueError(
                f"got measured= with {name}=; one of them is allowed, as {reason}. Leave one of "
                "the two out."
            )


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
    form = "(X, values, deviations), items, a number for each and the deviation of its noise,"
    if not isinstance(measured, tuple | list) or len(measured) != 3:
        size = f" of {len(measured)}" if isinstance(measured, tuple | list) else ""
        raise TypeError(
            f"got measured= of type {type(measured).__name__}{size}; {form} are allowed, such as "
            "measured=(X, values, 0.1)."
        )
    X, values, deviations = measured
    rows = _known_rows(estimator, training, X)
    value = _checked_column(values, len(rows), "values")
    deviation = _checked_column(
        np.full(len(rows), deviations) if np.ndim(deviations) == 0 else deviations,
        len(rows),
        "deviations",
    )
    if np.any(deviation <= 0.0):
        raise ValueError(
            f"got {deviation.min():g} among the deviations of measured=; numbers above 0 are "
            "allowed. Give the standard deviation of each value's noise."
        )
    comparisons = training.comparisons.with_measured(rows, value, deviation, level)
    reader = training.reader.with_answers(comparisons)
    return training._replace(comparisons=comparisons, reader=reader)


def _known_rows(estimator: BaseEstimator, training: Training, X: Any) -> NDArray[np.float64]:
    """Return rows of the items that were measured; ValueError if one is not known."""
    reader, probe = training.reader, copy.copy(estimator)
    reader.remember(probe)
    try:
        parsed = reader.answers(X, probe)
    except ValueError as error:
        raise ValueError(f"the items of measured= cannot be read as those of X: {error}") from error
    if parsed.pairs is not None:
        raise ValueError(
            f"got measured= of answers about {parsed.size} items each; values are of items, X of "
            "shape (n_items, n_features), or names of shape (n_items,)."
        )
    n_names = None
    if reader.id_column is not None and reader.ids is not None:
        n_names = len(reader.ids.names)
    elif reader.table is not None and not reader.table.has_features:
        n_names = len(reader.table)
    if n_names is not None and np.any(parsed.rows[:, reader.id_column or 0] >= n_names):
        raise ValueError(
            "got measured= of items with names that no answer has; names of the answers are "
            "allowed, or those of items=. Name all items by items=."
        )
    return parsed.rows


def _checked_column(numbers: Any, n: int, what: str) -> NDArray[np.float64]:
    """Return n finite numbers as floats, or raise ValueError."""
    try:
        column = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"got {what} of measured= that are no numbers ({error}); {n} numbers are allowed, one "
            "for each item."
        ) from None
    if column.shape != (n,):
        raise ValueError(
            f"got {what} of measured= of shape {column.shape}; ({n},) is allowed, one for each "
            "of its items."
        )
    if not np.all(np.isfinite(column)):
        raise ValueError(
            f"got {column[~np.isfinite(column)][0]} among the {what} of measured=; finite numbers "
            "are allowed. Leave items without a value out."
        )
    return column
