"""Scores of predicted duels, choices and rankings, and scorers with the labels fixed.

scikit-learn's scorers infer the labels from the test fold and fail on one that has a single
class; these know what answers there are, so they take such folds. Use them as
``scoring=accuracy_scorer``. By metadata routing they are told ``judges``, ``order``, ``users`` and
``sample_weight``; `with_metadata` makes scikit-learn's scorers so.
"""

from numpy.typing import ArrayLike

from skpref._concordance import concordance, ranking_concordance
from skpref._scorers import (
    accuracy_scorer,
    brier_scorer,
    log_loss_scorer,
    roc_auc_scorer,
    with_metadata,
)
from skpref._scores import accuracy, brier, choice_columns, duel_columns, log_loss

__all__ = [
    "accuracy_scorer",
    "brier_scorer",
    "choice_accuracy",
    "choice_brier",
    "choice_log_loss",
    "concordance",
    "duel_accuracy",
    "duel_brier",
    "duel_log_loss",
    "log_loss_scorer",
    "ranking_concordance",
    "roc_auc_scorer",
    "with_metadata",
]


# -- duels ---------------------------------------------------------------------------------


def duel_accuracy(
    y: ArrayLike | None, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of duels called right; outcomes that are equally likely share the call.

    Parameters
    ----------
    y : array-like of shape (n_duels,) or None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won. Beside probabilities of
        three outcomes -1, 0 for a tie, and 1. None: the first always won.
    proba : array-like of shape (n_duels,), (n_duels, 2) or (n_duels, 3)
        Probability that the first item wins, or the output of ``predict_proba``: that the second
        wins, of a tie if there are any, that the first wins.
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
    >>> duel_accuracy([0, -1], [[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
    0.5
    """
    return accuracy(*duel_columns(y, proba), sample_weight)


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
        Non-negative, smaller is better; log 2 for guessing, log 3 with ties.

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
    return log_loss(*duel_columns(y, proba), sample_weight)


def duel_brier(
    y: ArrayLike | None, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared difference between probability and outcome.

    Of two outcomes that is the squared error of the probability that the first item wins. Of
    three the squared errors of all are summed, as Brier did; of two, that sum is twice the value
    given here. scikit-learn's ``brier_score_loss`` does the same.

    Parameters
    ----------
    y, proba, sample_weight
        As in `duel_accuracy`.

    Returns
    -------
    float
        Smaller is better. In [0, 1], 0.25 for guessing; with ties in [0, 2], 2/3 for guessing.

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
    return brier(*duel_columns(y, proba), sample_weight)


# -- choices -------------------------------------------------------------------------------


def choice_accuracy(
    y: ArrayLike, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of choices called right; items that are equally likely share the call.

    Parameters
    ----------
    y : array-like of int of shape (n_sets,) or (n_sets, k)
        Places of the items chosen, from 0; or ranks, of which one in each row is 1, the first
        choice.
    proba : array-like of shape (n_sets, k)
        Probability that each item is chosen, as ``predict_proba`` gives it; 0 where a set has
        fewer items.
    sample_weight : array-like of shape (n_sets,), default=None

    Returns
    -------
    float
        In [0, 1], larger is better.

    Raises
    ------
    ValueError
        For places out of range, ranks that are no choice of one, values that are no
        probabilities, or unequal lengths.

    Examples
    --------
    >>> from skpref.metrics import choice_accuracy
    >>> choice_accuracy([2, 0], [[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
    0.5
    """
    return accuracy(*choice_columns(y, proba), sample_weight)


def choice_log_loss(
    y: ArrayLike, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean negative log-probability of the choices, in nats; tiny ones as in `duel_log_loss`.

    Parameters
    ----------
    y, proba, sample_weight
        As in `choice_accuracy`.

    Returns
    -------
    float
        Non-negative, smaller is better; log k for guessing.

    Raises
    ------
    ValueError
        As in `choice_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import choice_log_loss
    >>> round(choice_log_loss([2, 0], [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]), 4)
    0.6931
    """
    return log_loss(*choice_columns(y, proba), sample_weight)


def choice_brier(
    y: ArrayLike, proba: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared difference between probabilities and choice, summed over the items.

    Of sets of two one item counts, as in `duel_brier`.

    Parameters
    ----------
    y, proba, sample_weight
        As in `choice_accuracy`.

    Returns
    -------
    float
        In [0, 2], smaller is better; 1 − 1/k for guessing of three items or more.

    Raises
    ------
    ValueError
        As in `choice_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import choice_brier
    >>> choice_brier([2, 0], [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    1.1875
    """
    return brier(*choice_columns(y, proba), sample_weight)
