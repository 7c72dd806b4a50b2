"""How well scores order what was rated or ranked."""

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from skpref._containers import unmasked


def read_ranks(ranks: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Ranks as integers: 1 the best, equal ones no statement, 0 not ranked.

    Parameters
    ----------
    ranks : array-like of shape (n, k)
    shape : (int, int)
        What it must be.

    Raises
    ------
    ValueError
        For another shape, or values that are not whole numbers of at least 0.
    """
    given = np.asarray(unmasked(ranks))
    if given.shape != shape:
        raise ValueError(f"Ranks must have shape {shape}, one for each item; {given.shape} came.")
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and np.all(given % 1.0 == 0.0))
    if not whole or (given < 0).any():
        raise ValueError(
            "Ranks must be whole numbers: 1 the best, equal where nothing is stated, 0 not ranked."
        )
    return given.astype(np.int64)


def _pair_weight(code, weight):
    """Summed weight, w_i w_j each, of the pairs with equal codes."""
    total, square = np.bincount(code, weight), np.bincount(code, weight**2)
    return 0.5 * float(np.sum(total**2 - square))


def _inversions(rank, weight):
    """Summed weight of the pairs whose earlier rank is strictly larger.

    Two ranks that agree above bit b and differ in it are ordered by it, so the sequence is
    partitioned stably by one bit after the other: n log n in all, without a Python loop over n.
    """
    found = 0.0
    for b in range(int(rank.max()).bit_length() - 1, -1, -1):
        ones = (rank >> b) & 1
        prefix = rank >> (b + 1)
        before = np.concatenate([[0.0], np.cumsum(weight * ones)])
        start = np.searchsorted(prefix, prefix)  # prefixes ascend
        zero = ones == 0
        found += float(np.sum((weight * (before[:-1] - before[start]))[zero]))
        order = np.argsort(rank >> b, kind="stable")
        rank, weight = rank[order], weight[order]
    return found


def concordance(
    scores: ArrayLike,
    ratings: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of pairs with different ratings, within a ``qid``, that the scores order right.

    A tie of scores counts one half. Takes n log n time and memory in proportion to n.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Predicted utilities.
    ratings : array-like of shape (n_items,)
        Larger is better.
    qid : array-like of shape (n_items,), default=None
        Group of each item. None: one group.
    sample_weight : array-like of shape (n_items,), default=None
        Non-negative; a pair weighs the product of its items' weights.

    Returns
    -------
    float
        In [0, 1]: 1 all right, 0.5 on average for guessing. NaN, with an
        ``UndefinedMetricWarning``, if no pair of a group has different ratings.

    Raises
    ------
    ValueError
        For values that are not finite numbers, unequal lengths or negative weights.

    Examples
    --------
    >>> from skpref.metrics import concordance
    >>> concordance([0.2, 0.1, 0.9], [1.0, 2.0, 3.0])
    0.6666666666666666
    """
    score, rating = (
        check_array(column_or_1d(a), ensure_2d=False, dtype=np.float64, input_name=name)
        for a, name in ((scores, "scores"), (ratings, "ratings"))
    )
    check_consistent_length(score, rating, qid)
    weight = np.ones(len(score)) if sample_weight is None else column_or_1d(sample_weight)
    weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    check_consistent_length(score, weight)
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative; {weight.min():.3g} came.")
    group = np.zeros(len(score)) if qid is None else column_or_1d(qid)
    score, rating, group, weight = (a[weight > 0] for a in (score, rating, group, weight))

    group, rating, score = (np.unique(a, return_inverse=True)[1] for a in (group, rating, score))
    n = len(score)
    # Ranks that ascend with the group first make no inversion between groups.
    rating = np.unique(rating + n * group, return_inverse=True)[1]
    score = np.unique(score + n * group, return_inverse=True)[1]
    if n == 0 or rating.max() == group.max():  # one rating in every group
        warnings.warn(
            "Concordance is undefined: no two items of a group differ in rating.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return float("nan")
    comparable = _pair_weight(group, weight) - _pair_weight(rating, weight)
    order = np.lexsort((score, rating))
    wrong = _inversions(score[order], weight[order])
    both = np.unique(rating * n + score, return_inverse=True)[1]
    tied = _pair_weight(score, weight) - _pair_weight(both, weight)
    return (comparable - wrong - 0.5 * tied) / comparable


def ranking_concordance(
    ranks: ArrayLike, utilities: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the pairs that rankings state which the utilities order right.

    A tie of utilities counts one half.

    Parameters
    ----------
    ranks : array-like of int of shape (n_rankings, k)
        1 is the best; equal ranks state nothing of each other, 0 (not ranked) of any.
    utilities : array-like of shape (n_rankings, k)
        Predicted ones; those of items that are not ranked do not count and may be NaN.
    sample_weight : array-like of shape (n_rankings,), default=None
        Weight of each stated pair of a ranking.

    Returns
    -------
    float
        In [0, 1]: 1 all right, 0.5 on average for guessing. NaN, with an
        ``UndefinedMetricWarning``, if nothing is stated.

    Raises
    ------
    ValueError
        For ranks that are not whole numbers from 0 up, unequal shapes, or utilities of ranked
        items that are not finite.

    Examples
    --------
    >>> from skpref.metrics import ranking_concordance
    >>> ranking_concordance([[1, 2, 3], [2, 1, 0]], [[0.9, 0.1, 0.4], [0.3, 0.8, 0.0]])
    0.75
    """
    utility = check_array(utilities, dtype=np.float64, ensure_all_finite=False)
    rank = read_ranks(ranks, utility.shape)
    if not np.isfinite(utility[rank > 0]).all():
        raise ValueError("Utilities of items that are ranked must be finite.")
    weight = np.ones(len(rank)) if sample_weight is None else column_or_1d(sample_weight)
    check_consistent_length(rank, weight)
    right = stated = 0.0
    for j in range(rank.shape[1]):
        above = (rank[:, j, None] > 0) & (rank[:, j, None] < rank)
        called = 0.5 * (1.0 + np.sign(utility[:, j, None] - utility))
        stated += float(weight @ above.sum(axis=1))
        right += float(weight @ np.where(above, called, 0.0).sum(axis=1))
    if stated == 0.0:
        warnings.warn(
            "Concordance is undefined: the rankings state nothing.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return float("nan")
    return right / stated
