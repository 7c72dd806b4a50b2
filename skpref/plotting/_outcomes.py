"""Predicted probabilities beside what came, outcome by outcome."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from skpref._linalg import Array
from skpref.duels import first_won

_TERNARY = ("second wins", "tie", "first wins")


class Foretold(NamedTuple):
    """Probabilities of one outcome, and whether it came."""

    outcome: str
    proba: Array
    happened: NDArray[np.bool_]


def foretold(y: Any, proba: Any, classes: Any = None) -> list[Foretold]:
    """The outcomes of duels, of duels with ties, or of choices, whichever came.

    Parameters
    ----------
    y, proba, classes
        See `CalibrationDisplay.from_predictions`.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    proba = check_array(proba, dtype=np.float64, ensure_2d=False, input_name="proba")
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.ndim != 2 or proba.shape[1] < 2 or proba.min() < 0.0 or proba.max() > 1.0 + 1e-9:
        raise ValueError(
            f"proba must hold probabilities, of shape (n,), (n, 2), (n, 3) or (n, k); got shape "
            f"{proba.shape} with values from {proba.min():.3g} to {proba.max():.3g}."
        )
    n, n_columns = proba.shape
    if n_columns == 2 and (y is None or np.ndim(y) == 1):
        won = np.ones(n, dtype=bool) if y is None else first_won(y)
        check_consistent_length(won, proba)
        return [Foretold("first wins", proba[:, 1], won)]
    if y is None:
        raise ValueError(f"y=None stands for duels alone; proba has {n_columns} columns.")
    y = np.asarray(y)
    check_consistent_length(y, proba)
    if y.ndim == 2:
        return [_chosen(_best(y, proba.shape), proba)]
    if classes is None:
        classes = [-1, 0, 1] if n_columns == 3 and np.any(y == -1) else np.arange(n_columns)
    labels = np.asarray(classes).tolist()
    if len(labels) != n_columns:
        raise ValueError(f"proba has {n_columns} columns, classes {len(labels)} labels: {labels}.")
    column = np.array([labels.index(label) if label in labels else -1 for label in y.tolist()])
    if np.any(column < 0):
        raise ValueError(
            f"y holds {y[column < 0].tolist()[0]!r}, which is none of the labels {labels}."
        )
    if labels == [-1, 0, 1]:
        return [Foretold(_TERNARY[j], proba[:, j], column == j) for j in (2, 1, 0)]
    return [_chosen(column, proba)]


def _chosen(column, proba):
    """Each item of a set against the others."""
    happened = np.zeros(proba.shape, dtype=bool)
    happened[np.arange(len(proba)), column] = True
    there = happened | (proba > 0.0)  # no item, no probability
    return Foretold("chosen", proba[there], happened[there])


def _best(ranks, shape):
    """Position of the only best one of each row of ranks."""
    if ranks.shape != shape:
        raise ValueError(f"y holds ranks of shape {ranks.shape}, proba has shape {shape}.")
    is_best = ranks == 1
    if np.any(is_best.sum(axis=1) != 1):
        row = int(np.argmax(is_best.sum(axis=1) != 1))
        raise ValueError(
            f"Row {row} of the ranks, {ranks[row].tolist()}, has no single best item; "
            "probabilities are those of being the best. Leave such rows out."
        )
    return is_best.argmax(axis=1)
