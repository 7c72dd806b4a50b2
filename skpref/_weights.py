"""Weights of answers, how often each counts, and their groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref._containers import is_missing, unmasked

# Beyond this a duel is surer than arithmetic is.
_MOST = 1e12


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Weights (n,) as non-negative floats of at most 1e12, not all zero; None stays None.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(unmasked(sample_weight))
    try:
        if weight.dtype.kind == "c":
            raise TypeError("complex numbers")
        weight = weight.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must hold numbers of at least 0, one for each row of X ({error})."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim > 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape {weight.shape}, "
            f"({n},) is needed, one for each row of X."
        )
    if len(weight) != n:
        raise ValueError(
            f"sample_weight has length {len(weight)}, but X has {n} rows. Give one for each row."
        )
    wrong = ~np.isfinite(weight) | (weight < 0.0)
    if wrong.any():
        raise ValueError(
            f"sample_weight must hold finite numbers of at least 0, {weight[wrong][0]} came. Leave "
            "rows without a weight out, or give them 0."
        )
    _check_all(weight)
    return weight


def pair_weights(
    sample_weight: Any, n: int, winner: NDArray[np.intp], loser: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Weights of the pairs of n rated items: the product of their items' weights."""
    weight = check_weights(sample_weight, n)
    if weight is None:
        return None
    pairs = weight[winner] * weight[loser]
    _check_all(pairs)
    return pairs


def _check_all(weight):
    if np.any(weight > _MOST):
        raise ValueError(
            f"sample_weight says how often a duel counts, at most {_MOST:g} times; "
            f"{weight.max():g} came (of a pair of rated items the product of theirs). Divide all "
            "weights by a number."
        )
    if not np.any(weight > 0.0):
        raise ValueError(
            "sample_weight is zero for every duel, so that there is nothing to learn from. Give "
            "some duels a positive weight."
        )


def check_groups(qid: Any, n_items: int) -> np.ndarray:
    """Groups of rated items as integers."""
    qid = unmasked(qid)
    shape = np.asarray(qid).shape
    if shape not in ((n_items,), (n_items, 1)):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_items} items, qid of "
            f"shape {shape}. Its shape must be (n_items,), the label of every item's group."
        )
    qid = column_or_1d(qid)
    if qid.dtype.kind == "f":
        gaps = ~np.isfinite(qid)
    else:
        gaps = np.array([is_missing(label) for label in qid.tolist()], dtype=bool)
    if gaps.any():
        raise ValueError(
            f"qid contains NaN, None or infinity in {gaps.sum()} of {n_items} places, first in "
            f"row {gaps.argmax()}. Give every item the label of its group."
        )
    try:
        return np.unique(qid, return_inverse=True)[1]
    except TypeError:
        raise ValueError(
            "qid mixes labels of different types; make them all strings, or all numbers."
        ) from None
