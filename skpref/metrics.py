"""Scores of predicted duels and of rankings, and scorers with the labels fixed.

scikit-learn's scorers infer the labels from the test fold and fail on one that has a single
class; these know that 1 means the first item won, so they take such folds. Use them as
``scoring=accuracy_scorer``.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from skpref.duels import first_won

__all__ = [
    "accuracy_scorer",
    "brier_scorer",
    "concordance",
    "duel_accuracy",
    "duel_brier",
    "duel_log_loss",
    "log_loss_scorer",
    "roc_auc_scorer",
]


def _won_and_proba(y, proba):
    """Outcomes as booleans and the probabilities (second won, first won)."""
    proba = check_array(proba, dtype=np.float64, ensure_2d=False, input_name="proba")
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.shape[1] != 2:
        raise ValueError(
            f"proba came with shape {proba.shape}; give (n_duels,), that the first item wins, or "
            "(n_duels, 2) as predict_proba does."
        )
    if proba.min() < 0.0 or proba.max() > 1.0:
        raise ValueError(
            f"proba ranges from {proba.min():.3g} to {proba.max():.3g}; probabilities lie in "
            "[0, 1]. Take predict_proba, not decision_function."
        )
    won = np.ones(len(proba), dtype=bool) if y is None else first_won(y)
    check_consistent_length(won, proba)
    return won, proba


def _average(values, weights):
    return float(np.average(values, weights=weights))


def duel_accuracy(
    y: ArrayLike | None, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of duels called right; a probability of exactly one half counts one half.

    Parameters
    ----------
    y : array-like of shape (n_duels,) or None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won. None: it always won.
    proba : array-like of shape (n_duels,) or (n_duels, 2)
        Probability that the first item wins, or the output of ``predict_proba``.
    sample_weight : array-like of shape (n_duels,), default=None

    Returns
    -------
    float
        In [0, 1], larger is better.

    Raises
    ------
    ValueError
        For other labels, values that are no probabilities, or unequal lengths.

    Examples
    --------
    >>> from skpref.metrics import duel_accuracy
    >>> duel_accuracy([1, 0, 1, 1], [0.9, 0.2, 0.4, 0.5])
    0.625
    """
    won, both = _won_and_proba(y, proba)
    right = np.where(won, both[:, 1] - both[:, 0], both[:, 0] - both[:, 1])
    return _average(0.5 * (1.0 + np.sign(right)), sample_weight)


def duel_log_loss(
    y: ArrayLike | None, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean negative log-probability of the outcomes, in nats.

    Probabilities below the rounding unit (2.2e-16) count as that, so one certain mistake costs
    36 nats, not infinity; as in scikit-learn.

    Parameters
    ----------
    y, proba, sample_weight
        As in `duel_accuracy`.

    Returns
    -------
    float
        Non-negative, smaller is better; log 2 for guessing.

    Raises
    ------
    ValueError
        As in `duel_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import duel_log_loss
    >>> round(duel_log_loss([1, 1], [0.5, 0.5]), 4)
    0.6931
    """
    won, both = _won_and_proba(y, proba)
    given = np.where(won, both[:, 1], both[:, 0])
    given = np.maximum(given, np.finfo(np.float64).eps)
    return -_average(np.log(given), sample_weight)


def duel_brier(
    y: ArrayLike | None, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared difference between probability and outcome.

    Parameters
    ----------
    y, proba, sample_weight
        As in `duel_accuracy`.

    Returns
    -------
    float
        In [0, 1], smaller is better; 0.25 for guessing.

    Raises
    ------
    ValueError
        As in `duel_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import duel_brier
    >>> duel_brier([1, 0], [0.5, 0.5])
    0.25
    """
    won, both = _won_and_proba(y, proba)
    return _average((both[:, 1] - won) ** 2, sample_weight)


def accuracy_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: `duel_accuracy` of ``estimator.predict_proba(X)``."""
    return duel_accuracy(y, estimator.predict_proba(X), sample_weight=sample_weight)


def log_loss_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_log_loss`, so that larger is better."""
    return -duel_log_loss(y, estimator.predict_proba(X), sample_weight=sample_weight)


def brier_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_brier`, so that larger is better."""
    return -duel_brier(y, estimator.predict_proba(X), sample_weight=sample_weight)


def roc_auc_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: area under the ROC curve of the margins, as ``scoring="roc_auc"``.

    It needs both outcomes; with one alone it is NaN, with an ``UndefinedMetricWarning``.
    """
    if hasattr(estimator, "decision_function"):
        margin = estimator.decision_function(X)
    else:
        margin = estimator.predict_proba(X)[:, 1]
    won = np.ones(len(margin), dtype=bool) if y is None else first_won(y)
    return float(roc_auc_score(won, margin, sample_weight=sample_weight))


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
