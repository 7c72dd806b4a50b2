"""Scores of predicted duels, choices and rankings, and scorers with the labels fixed.

scikit-learn's scorers infer the labels from the test fold and fail on one that has a single
class; these know what answers there are, so they take such folds. Use them as
``scoring=accuracy_scorer``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score
from sklearn.utils.metadata_routing import MetadataRequest

from skpref._concordance import concordance, ranking_concordance
from skpref._containers import unmasked
from skpref._scores import accuracy, brier, choice_columns, duel_columns, log_loss
from skpref.duels import first_won

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
    "of_users",
    "ranking_concordance",
    "roc_auc_scorer",
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


# -- scorers -------------------------------------------------------------------------------


def _answers(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Column of each answer, and the probabilities of all: of choices where X holds sets."""
    proba = estimator.predict_proba(X)
    return choice_columns(y, proba) if _n_shown(X) > 2 else duel_columns(y, proba)


def _n_shown(X: Any) -> int:
    shape = getattr(X, "shape", None) or np.shape(X)
    return shape[1] if len(shape) > 1 else 2


def accuracy_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: `duel_accuracy` or `choice_accuracy` of ``estimator.predict_proba(X)``."""
    return accuracy(*_answers(estimator, X, y), sample_weight)


def log_loss_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_log_loss` or `choice_log_loss`, so that larger is better."""
    return -log_loss(*_answers(estimator, X, y), sample_weight)


def brier_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_brier` or `choice_brier`, so that larger is better."""
    return -brier(*_answers(estimator, X, y), sample_weight)


def roc_auc_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Scorer: area under the ROC curve of the margins, as ``scoring="roc_auc"``.

    It needs both outcomes; with one alone it is NaN, with an ``UndefinedMetricWarning``. Ties and
    choices are an error, as the curve is one of two outcomes.
    """
    tied = y is not None and {-1, 0} <= set(np.ravel(unmasked(y)).tolist())
    tied = tied or np.array_equal(getattr(estimator, "classes_", ()), [-1, 0, 1])
    if _n_shown(X) > 2 or tied:
        raise ValueError(
            "The ROC curve is one of two outcomes; with ties or choices take log_loss_scorer, "
            "brier_scorer or accuracy_scorer."
        )
    if hasattr(estimator, "decision_function"):
        margin = estimator.decision_function(X)
    else:
        margin = estimator.predict_proba(X)[:, 1]
    won = np.ones(len(margin), dtype=bool) if y is None else first_won(y)
    return float(roc_auc_score(won, margin, sample_weight=sample_weight))


class of_users:
    """Scorer for estimators of several users, each of whose answers is scored as that user's.

    scikit-learn's scorers hand no ``users`` on to ``predict_proba``, so that they score what the
    population would say. This one asks for them, and for ``sample_weight``, by metadata routing.

    Parameters
    ----------
    scorer : callable
        One of this module, or another that gets ``(estimator, X, y)`` and calls ``predict``,
        ``predict_proba`` or ``decision_function`` with X.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import cross_validate
    >>> from skpref import CollaborativePreferenceRegressor
    >>> from skpref.metrics import log_loss_scorer, of_users
    >>> X = np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]]] * 2)
    >>> y, users = [0, 0, 0, 1, 1, 1], ["ann"] * 3 + ["bob"] * 3
    >>> model = CollaborativePreferenceRegressor(optimizer=None)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(
    ...         model.set_fit_request(users=True), X, y, params={"users": users}, cv=3,
    ...         scoring=of_users(log_loss_scorer),
    ...     )
    >>> bool(found["test_score"].mean() > np.log(0.5))
    True
    """

    def __init__(self, scorer: Callable) -> None:
        self._scorer = scorer

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        users: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The scorer's value of the estimator, asked about these users."""
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._scorer(_Asked(estimator, users), X, y, **more)

    def get_metadata_routing(self) -> MetadataRequest:
        """What is asked for: ``users``, and ``sample_weight``."""
        request = MetadataRequest(owner=self)
        for name in ("users", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request


class _Asked:
    """An estimator that is asked about some users alone."""

    def __init__(self, estimator, users):
        self._estimator, self._users = estimator, users

    def __getattr__(self, name):
        found = getattr(self._estimator, name)
        if name not in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            return found
        return partial(found, users=self._users)
