"""Which column of the probabilities came true, and the scores of these."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from skpref._concordance import read_ranks
from skpref._containers import unmasked
from skpref._orientation import first_won, three_labels


def _check_proba(proba: Any) -> np.ndarray:
    proba = check_array(proba, dtype=np.float64, ensure_2d=False, input_name="proba")
    if proba.min() < 0.0 or proba.max() > 1.0:
        raise ValueError(
            f"proba ranges from {proba.min():.3g} to {proba.max():.3g}; probabilities lie in "
            "[0, 1]. Take predict_proba, not decision_function."
        )
    return proba


def duel_columns(y: Any, proba: Any) -> tuple[np.ndarray, np.ndarray]:
    """Column of each answer, and the probabilities of all."""
    proba = _check_proba(proba)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.ndim != 2 or proba.shape[1] not in (2, 3):
        raise ValueError(
            f"proba came with shape {proba.shape}; give (n_duels,), that the first item wins, or "
            "(n_duels, 2) or, with ties, (n_duels, 3) as predict_proba does. (Probabilities of "
            "choices are for choice_accuracy, choice_log_loss and choice_brier.)"
        )
    last = proba.shape[1] - 1
    if y is None:
        return np.full(len(proba), last), proba
    if np.ndim(y) == 2 and np.shape(y)[1] == 2:
        columns = np.where(_chosen(y, (len(proba), 2)) == 0, last, 0)
    elif last == 1:
        columns = first_won(y).astype(np.intp)
    else:
        labels = column_or_1d(unmasked(y))
        signs = three_labels(labels)
        if signs is None:
            some = ", ".join(map(repr, list(dict.fromkeys(labels.tolist()))[:5]))
            raise ValueError(
                "Beside probabilities of three outcomes labels must be -1 (the second won), 0 (a "
                f"tie) or 1 (the first won); values such as [{some}] came."
            )
        columns = signs + 1
    check_consistent_length(columns, proba)
    return columns, proba


def choice_columns(y: Any, proba: Any) -> tuple[np.ndarray, np.ndarray]:
    """Place of each item chosen, and the probabilities of all."""
    proba = _check_proba(proba)
    if proba.ndim != 2 or proba.shape[1] < 2:
        raise ValueError(
            f"proba came with shape {proba.shape}; give (n_sets, k), that each item is chosen."
        )
    return _chosen(y, proba.shape), proba


def _chosen(y: Any, shape: tuple[int, int]) -> np.ndarray:
    """Place of the item chosen, from places or from ranks."""
    if np.ndim(y) == 2:
        best = read_ranks(y, shape) == 1
        if (best.sum(axis=1) != 1).any():
            row = int(np.argmax(best.sum(axis=1) != 1))
            raise ValueError(
                f"Row {row} of y has {best[row].sum()} items of rank 1, so it is no choice of one. "
                "For the worst of a set and for rankings take ranking_concordance."
            )
        return best.argmax(axis=1)
    places = column_or_1d(unmasked(y))
    check_consistent_length(places, np.empty(shape))
    whole = places.dtype.kind in "iu" or (
        places.dtype.kind == "f" and np.all(np.mod(places, 1.0) == 0.0)
    )
    if not whole or places.min() < 0 or places.max() >= shape[1]:
        raise ValueError(
            f"Choices must be places in the sets, integers in [0, {shape[1] - 1}], or ranks of "
            f"shape {shape}."
        )
    return places.astype(np.intp)


def accuracy(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Share of columns that had the largest probability; equal ones share."""
    best = proba == proba.max(axis=1, keepdims=True)
    right = best[np.arange(len(proba)), columns] / best.sum(axis=1)
    return _average(right, weights)


def log_loss(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Mean negative logarithm of the probability of what came true."""
    given = np.maximum(proba[np.arange(len(proba)), columns], np.finfo(np.float64).eps)
    return -_average(np.log(given), weights)


def brier(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Mean squared error, of the second of two columns, else summed over all."""
    happened = np.arange(proba.shape[1]) == columns[:, None]
    # Both columns of two err alike: one of them is the Brier score of events.
    events = slice(1, 2) if proba.shape[1] == 2 else slice(None)
    return _average(((proba - happened)[:, events] ** 2).sum(axis=1), weights)


def _average(values: np.ndarray, weights: Any) -> float:
    return float(np.average(values, weights=weights))
