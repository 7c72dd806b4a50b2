"""Scores of predicted duels, choices and rankings, and scorers with the labels fixed.

scikit-learn's scorers infer the labels from the test fold and fail on one that has a single
class; these know what answers there are, so they take such folds. Use them as
``scoring=accuracy_scorer``. By metadata routing they are told ``judges``, ``order``, ``users``,
``time`` and ``sample_weight``; `with_metadata` makes scikit-learn's scorers so.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
)

from skpref._utils import (
    PrintableBunch,
    check_choice,
    check_scoring_weights,
    given_metadata,
    scored_tags,
)
from skpref.data import (
    DuelScale,
    chosen_of,
    fill_masked,
    parse_outcomes,
    read_ranks,
    signed_labels,
    table_frame,
)


def _pair_weight(code, weight):
    """Return the summed weight, w_i w_j each, of the pairs with equal codes."""
    total, square = np.bincount(code, weight), np.bincount(code, weight**2)
    return 0.5 * float(np.sum(total**2 - square))


def _inversions(rank, weight):
    """Return the summed weight of the pairs whose earlier rank is strictly larger.

    Two ranks that agree above bit b and differ in it are ordered by it, so the sequence is
    partitioned stably by one bit after the other: n log n in all, without a Python loop over n.
    """
    n_inversions = 0.0
    for b in range(int(rank.max()).bit_length() - 1, -1, -1):
        ones = (rank >> b) & 1
        prefix = rank >> (b + 1)
        before = np.concatenate([[0.0], np.cumsum(weight * ones)])
        start = np.searchsorted(prefix, prefix)  # prefixes ascend
        zero = ones == 0
        n_inversions += float(np.sum((weight * (before[:-1] - before[start]))[zero]))
        order = np.argsort(rank >> b, kind="stable")
        rank, weight = rank[order], weight[order]
    return n_inversions


def concordance(
    scores: ArrayLike,
    ratings: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of pairs with different ratings, within a ``qid``, in the right order.

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
        raise ValueError(f"sample_weight must not be negative, got {weight.min():.3g}.")
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
    """Return the share of the pairs in rankings that utilities put in the right order.

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
    weight = check_scoring_weights(sample_weight, rank)
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


def _check_proba(proba: Any) -> np.ndarray:
    """Return probabilities as an array; ValueError for numbers beyond [0, 1]."""
    proba = check_array(proba, dtype=np.float64, ensure_2d=False, input_name="proba")
    if proba.min() < 0.0 or proba.max() > 1.0:
        raise ValueError(
            f"proba ranges from {proba.min():.3g} to {proba.max():.3g}; probabilities lie in "
            "[0, 1]. Take predict_proba, not decision_function."
        )
    return proba


def answer_columns(y: Any, proba: Any, kind: str = "duel") -> tuple[np.ndarray, np.ndarray]:
    """Return the column of each answer, and the probabilities of all.

    Parameters
    ----------
    y, proba, kind
        See `answer_accuracy`.
    """
    check_choice("kind", kind, ("duel", "choice"))
    proba = _check_proba(proba)
    if kind == "choice":
        if proba.ndim != 2 or proba.shape[1] < 2:
            raise ValueError(
                f"got proba of shape {proba.shape}; give (n_sets, k), that each item is chosen."
            )
        return chosen_of(y, proba.shape), proba
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.ndim != 2 or proba.shape[1] < 2:
        raise ValueError(
            f"got proba of shape {proba.shape}; give (n_duels,), that the first item wins, or "
            "(n_duels, n_outcomes) as predict_proba does. "
            "(Probabilities of choices are for kind='choice'.)"
        )
    scale = DuelScale.of_columns(proba.shape[1])
    ranked = np.ndim(y) == 2 and np.shape(y)[1] == 2
    if y is None or ranked:
        scale.check_grades_stated("ranks" if ranked else "y=None")
    if y is None:
        return np.full(len(proba), scale.n_columns - 1), proba
    if ranked:
        columns = np.where(chosen_of(y, (len(proba), 2)) == 0, scale.n_columns - 1, 0)
    else:
        columns = _label_columns(y, scale)
    check_consistent_length(columns, proba)
    return columns, proba


def _label_columns(y: Any, scale: DuelScale) -> np.ndarray:
    """Return the column of probabilities of each label; ValueError for labels of another scale."""
    if scale.n_columns == 2:
        return parse_outcomes(y).astype(np.intp)
    labels = column_or_1d(fill_masked(y))
    signs = signed_labels(labels, scale)
    if signs is None:
        some = ", ".join(map(repr, list(dict.fromkeys(labels.tolist()))[:5]))
        raise ValueError(
            f"Beside probabilities of {scale.n_columns} outcomes labels must be in "
            f"{scale.labels.tolist()} (below 0: the second won, 0: a tie, above 0: the first won), "
            f"got values such as [{some}]. (Choices are for kind='choice'.)"
        )
    return scale.columns(signs)


def accuracy(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Return the share of columns that had the largest probability; equal ones share."""
    best = proba == proba.max(axis=1, keepdims=True)
    right = best[np.arange(len(proba)), columns] / best.sum(axis=1)
    return _average(right, weights)


def log_loss(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Return the mean negative logarithm of the probability of what happened."""
    answer_proba = np.maximum(proba[np.arange(len(proba)), columns], np.finfo(np.float64).eps)
    return -_average(np.log(answer_proba), weights)


def brier(columns: np.ndarray, proba: np.ndarray, weights: Any) -> float:
    """Return the mean squared error, of the second of two columns, else summed over all."""
    happened = np.arange(proba.shape[1]) == columns[:, None]
    # Both columns of two err alike: one of them is the Brier score of events.
    events = slice(1, 2) if proba.shape[1] == 2 else slice(None)
    return _average(((proba - happened)[:, events] ** 2).sum(axis=1), weights)


def _average(values: np.ndarray, weights: Any) -> float:
    """Return the weighted mean of values, after a check of the weights."""
    if weights is not None:
        weights = check_scoring_weights(weights, values)
    return float(np.average(values, weights=weights))


_PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
_ASKED = ("judges", "offset", "order", "prompts", "time", "users")


def _request_metadata(scorer: Callable) -> Callable:
    """Return a scorer that requests its metadata by scikit-learn's routing."""

    def get_metadata_routing() -> MetadataRequest:
        return _make_request(scorer, dict.fromkeys((*_ASKED, "sample_weight"), True))

    # scikit-learn asks its scorers so where routing is off.
    methods = {
        "get_metadata_routing": get_metadata_routing,
        "_accept_sample_weight": lambda: True,
        "_routing_repr": lambda: scorer.__name__,
    }
    vars(scorer).update(methods)
    return scorer


def _make_request(owner: Any, names: Mapping[str, bool | str]) -> MetadataRequest:
    """Return a request of a scorer for metadata, under their names or aliases."""
    request = MetadataRequest(owner=owner)
    for name, alias in names.items():
        request.score.add_request(param=name, alias=alias)
    return request


def _predict_answers(
    estimator: Any, X: Any, y: Any, metadata: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of each answer, and the predicted probabilities of all outcomes."""
    proba = predict_with_metadata("predict_proba", estimator, X, metadata)
    return answer_columns(y, proba, "choice" if _count_shown(X) > 2 else "duel")


def predict_with_metadata(method: str, estimator: Any, X: Any, metadata: Mapping[str, Any]) -> Any:
    """Return predictions with metadata, of a fitted search those of its best model.

    scikit-learn's searches hand no metadata to predictions.

    Parameters
    ----------
    method : str
        Of the estimator, such as "predict_proba".
    estimator : estimator
        A model, a search, a pipeline that ends in one of these, or a frozen one of them.
    X : array-like
    metadata : mapping
        Passed to the model by name, but for what is None.

    Raises
    ------
    ValueError
        If the method takes none of these.
    """
    metadata = given_metadata(**metadata)
    while metadata and (inner := _inner_estimator(estimator)) is not None:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X)
        estimator = inner
    try:
        return getattr(estimator, method)(X, **metadata)
    except TypeError as error:
        if not metadata or "unexpected" not in str(error):
            raise
        remedy = (
            "Score the fitted model inside it, whose predictions take them, or score without them."
        )
        if method == "predict":
            remedy = (
                "predict(X) gives utilities. Take a scorer of probabilities, such as "
                "'neg_log_loss', or accuracy_scorer of skpref.metrics."
            )
        raise ValueError(
            f"The scorer calls {method} of a {type(estimator).__name__}, which does not take "
            f"{sorted(metadata)}. {remedy}"
        ) from error


def _inner_estimator(estimator: Any) -> Any:
    """Return the best estimator of a search, or the search in a pipeline or frozen; else None."""
    if hasattr(estimator, "best_estimator_"):
        return estimator.best_estimator_
    if isinstance(estimator, FrozenEstimator):
        held = estimator.estimator
    elif isinstance(estimator, Pipeline):
        held = estimator[-1]
    else:
        return None
    return None if _inner_estimator(held) is None else held


def _count_shown(X: Any) -> int:
    """Return the number of items of each row of X."""
    shape = getattr(X, "shape", None) or np.shape(X)
    return shape[1] if len(shape) > 1 else 2


@_request_metadata
def accuracy_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **metadata: ArrayLike | None,
) -> float:
    """Return the `answer_accuracy` of ``estimator.predict_proba(X)``.

    With ``judges=``, ``order=``, ``users=``, ``prompts=``, ``time=`` and ``offset=``, where they
    come, passed on to it; so do the others.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.metrics import accuracy_scorer
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> X, y = [[[1.0], [0.0]], [[2.0], [1.0]], [[0.0], [2.0]]], [1, 1, 0]
    >>> round(accuracy_scorer(model.fit(X, y), X, y), 2)
    1.0
    """
    columns = _predict_answers(estimator, X, y, metadata)
    return accuracy(*columns, sample_weight)


@_request_metadata
def log_loss_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **metadata: ArrayLike | None,
) -> float:
    """Return the negative of `answer_log_loss`, so that larger is better.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.metrics import log_loss_scorer
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> X, y = [[[1.0], [0.0]], [[2.0], [1.0]], [[0.0], [2.0]]], [1, 1, 0]
    >>> round(log_loss_scorer(model.fit(X, y), X, y), 2)
    -0.08
    """
    columns = _predict_answers(estimator, X, y, metadata)
    return -log_loss(*columns, sample_weight)


@_request_metadata
def brier_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **metadata: ArrayLike | None,
) -> float:
    """Return the negative of `answer_brier`, so that larger is better.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.metrics import brier_scorer
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> X, y = [[[1.0], [0.0]], [[2.0], [1.0]], [[0.0], [2.0]]], [1, 1, 0]
    >>> round(brier_scorer(model.fit(X, y), X, y), 2)
    -0.01
    """
    columns = _predict_answers(estimator, X, y, metadata)
    return -brier(*columns, sample_weight)


@_request_metadata
def roc_auc_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **metadata: ArrayLike | None,
) -> float:
    """Return the area under the ROC curve of the margins, as ``scoring="roc_auc"``.

    It needs both outcomes; with one alone it is NaN, with an ``UndefinedMetricWarning``. Ties
    and choices are an error, as the curve is one of two outcomes.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.metrics import roc_auc_scorer
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> X, y = [[[1.0], [0.0]], [[2.0], [1.0]], [[0.0], [2.0]]], [1, 1, 0]
    >>> round(roc_auc_scorer(model.fit(X, y), X, y), 2)
    1.0
    """
    labels = set() if y is None else set(np.ravel(fill_masked(y)).tolist())
    classes = getattr(estimator, "classes_", ())
    tied = {-1, 0} <= labels or (len(classes) > 2 and min(classes) < 0)
    if _count_shown(X) > 2 or tied:
        raise ValueError(
            "The ROC curve is one of two outcomes; of more, such as ties, and for choices take "
            "log_loss_scorer, brier_scorer or accuracy_scorer."
        )
    if hasattr(estimator, "decision_function"):
        margin = predict_with_metadata("decision_function", estimator, X, metadata)
    else:
        margin = predict_with_metadata("predict_proba", estimator, X, metadata)[:, 1]
    won = np.ones(len(margin), dtype=bool) if y is None else parse_outcomes(y)
    return float(roc_auc_score(won, margin, sample_weight=sample_weight))


def with_metadata(
    scoring: str | Callable, names: Sequence[str] | Mapping[str, str] = _ASKED
) -> Callable:
    """Return a scorer that passes metadata of the answers on to predictions.

    scikit-learn's own scorers pass none on, so that answers of judges, or of users, would be
    scored as those of somebody else. (A model that was fitted with them refuses that.) The
    scorers of this module need no wrapping.

    Parameters
    ----------
    scoring : str or callable
        Name of a scorer of scikit-learn, what ``make_scorer`` returns, or another that gets
        ``(estimator, X, y)`` and calls ``predict``, ``predict_proba`` or ``decision_function``
        with X.
    names : sequence of str or dict of str to str, default=("judges", "order", "time", "users")
        Metadata that are asked for by scikit-learn's routing, and handed on where they come. A
        dict adds to the default under which names some are passed: ``{"judges": "who"}`` beside
        ``set_fit_request(judges="who")``. Beside them ``sample_weight`` is asked for if the scorer
        takes it, and whatever the scorer itself asks for.

    Returns
    -------
    scorer : callable

    Raises
    ------
    ValueError
        If scikit-learn has no scorer of this name.
    TypeError
        If ``scoring`` is neither a name nor callable.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import cross_val_score
    >>> from skpref import CollaborativePreferenceRegressor
    >>> from skpref.metrics import with_metadata
    >>> X = np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]]] * 2)
    >>> y, users = [0, 0, 0, 1, 1, 1], ["ann"] * 3 + ["bob"] * 3
    >>> model = CollaborativePreferenceRegressor(optimizer=None)
    >>> folds = [([0, 1, 3, 4], [2, 5])]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_val_score(
    ...         model, X, y, params={"users": users}, cv=folds,
    ...         scoring=with_metadata("neg_log_loss"),
    ...     )
    >>> bool(found[0] > np.log(0.5))
    True
    """
    if not callable(scoring) and not isinstance(scoring, str):
        raise TypeError(
            f"scoring is {scoring!r}; give a name such as 'neg_log_loss', or a scorer. (Without "
            "scoring= the model's own score is taken, which gets its metadata by itself.)"
        )
    if isinstance(names, str):
        raise TypeError(f"names is {names!r}; give a sequence of names, such as [{names!r}].")
    aliases = names if isinstance(names, Mapping) else {}
    asked: dict[str, bool | str] = dict.fromkeys(_ASKED if aliases else names, True)
    return _WithMetadata(get_scorer(scoring), {**asked, **aliases})


class _WithMetadata:
    """A scorer of estimators whose predictions take metadata."""

    def __init__(self, scorer, names):
        self._scorer, self._names = scorer, names
        requests = get_routing_for_object(scorer).score.requests
        self._own = {name: alias for name, alias in requests.items() if alias is not None}
        if self._accept_sample_weight():
            self._own.setdefault("sample_weight", True)

    def __call__(self, estimator: Any, X: Any, y: Any = None, **metadata: Any) -> Any:
        answer_metadata = {name: metadata[name] for name in self._names if name in metadata}
        own = {
            name: v
            for name, v in metadata.items()
            if name not in answer_metadata or self._own.get(name)
        }
        return self._scorer(_WithGivenMetadata(estimator, answer_metadata), X, y, **own)

    def __repr__(self):
        return f"with_metadata({getattr(self._scorer, '__name__', repr(self._scorer))})"

    def _accept_sample_weight(self):
        """Return whether the scorer takes weights."""
        if hasattr(self._scorer, "_accept_sample_weight"):
            return self._scorer._accept_sample_weight()
        return "sample_weight" in inspect.signature(self._scorer).parameters

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata requested: the names, and those of the scorer itself."""
        aliases = {name: alias for name, alias in self._names.items() if alias is not True}
        return _make_request(self, {**self._names, **self._own, **aliases})


class _WithGivenMetadata:
    """An estimator whose predictions get metadata."""

    def __init__(self, estimator, metadata):
        self._estimator, self._metadata = estimator, metadata

    def __sklearn_tags__(self):
        return scored_tags(self, get_tags(self._estimator))

    def __getattr__(self, name):
        attribute = getattr(self._estimator, name)
        if name not in _PREDICTIONS:
            return attribute

        @wraps(attribute)
        def predict(X, **more):
            return predict_with_metadata(name, self._estimator, X, {**self._metadata, **more})

        return predict


__all__ = [
    "accuracy_scorer",
    "answer_accuracy",
    "answer_brier",
    "answer_log_loss",
    "brier_scorer",
    "concordance",
    "log_loss_scorer",
    "ranking_concordance",
    "roc_auc_scorer",
    "score_by_group",
    "with_metadata",
]


# -- answers -------------------------------------------------------------------------------


def answer_accuracy(
    y: ArrayLike | None,
    proba: ArrayLike,
    *,
    kind: str = "duel",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of answers called right; equally likely ones share the call.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k), or None
        Of duels ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won. Beside
        probabilities of more outcomes -1, 0 for a tie, and 1; or -2, -1, 1, 2 and so on.
        None: the first always won. Of choices places of the items chosen, from 0; or ranks, of
        which one in each row is 1, the first choice.
    proba : array-like of shape (n,), (n, n_outcomes) or (n, k)
        Of duels the probability that the first item wins, or the output of ``predict_proba``: of
        the labels in ascending order. Of choices that each item is chosen; 0 where a set has
        fewer items.
    kind : {"duel", "choice"}, default="duel"
        What the answers are.
    sample_weight : array-like of shape (n,), default=None

    Returns
    -------
    float
        In [0, 1], larger is better.

    Raises
    ------
    ValueError
        For other labels, places out of range, ranks that are no choice of one, values that are no
        probabilities, or unequal lengths.

    Examples
    --------
    >>> from skpref.metrics import answer_accuracy
    >>> answer_accuracy([1, 0, 1, 1], [0.9, 0.2, 0.4, 0.5])
    0.625
    >>> answer_accuracy([0, -1], [[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
    0.5
    >>> answer_accuracy([2, 0], [[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]], kind="choice")
    0.5
    """
    return accuracy(*answer_columns(y, proba, kind), sample_weight)


def answer_log_loss(
    y: ArrayLike | None,
    proba: ArrayLike,
    *,
    kind: str = "duel",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean negative log-probability of the answers, in nats.

    Probabilities below the rounding unit (2.2e-16) count as that, so one certain mistake costs
    36 nats, not infinity; as in scikit-learn.

    Parameters
    ----------
    y, proba, kind, sample_weight
        As in `answer_accuracy`.

    Returns
    -------
    float
        Non-negative, smaller is better; log k for guessing among k answers.

    Raises
    ------
    ValueError
        As in `answer_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import answer_log_loss
    >>> round(answer_log_loss([1, 1], [0.5, 0.5]), 4)
    0.6931
    >>> found = answer_log_loss([2, 0], [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]], kind="choice")
    >>> round(found, 4)
    0.6931
    """
    return log_loss(*answer_columns(y, proba, kind), sample_weight)


def answer_brier(
    y: ArrayLike | None,
    proba: ArrayLike,
    *,
    kind: str = "duel",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean squared difference between probability and answer.

    Of two answers that is the squared error of one's probability. Of more the squared errors of
    all are summed, as Brier did; of two, that sum is twice the value given here. scikit-learn's
    ``brier_score_loss`` does the same.

    Parameters
    ----------
    y, proba, kind, sample_weight
        As in `answer_accuracy`.

    Returns
    -------
    float
        Smaller is better. In [0, 1], 0.25 for guessing; of k > 2 answers in [0, 2], 1 − 1/k for
        guessing.

    Raises
    ------
    ValueError
        As in `answer_accuracy`.

    Examples
    --------
    >>> from skpref.metrics import answer_brier
    >>> answer_brier([1, 0], [0.5, 0.5])
    0.25
    >>> answer_brier([2, 0], [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]], kind="choice")
    1.1875
    """
    return brier(*answer_columns(y, proba, kind), sample_weight)


def group_codes(groups: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups in ascending order, and the number of each answer's group."""
    values = np.asarray(fill_masked(groups))
    if values.shape != (n,):
        raise ValueError(
            f"groups has shape {values.shape}; give the group of each of the {n} answers."
        )
    try:
        names, code = np.unique(values, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups holds values of several kinds, which have no order. Give numbers, texts or "
            "dates."
        ) from None
    if np.any(names != names):  # NaN and NaT
        raise ValueError("groups holds missing values; give each answer a group.")
    return names, code.reshape(-1)


def score_by_group(
    y: ArrayLike | None,
    proba: ArrayLike,
    groups: ArrayLike,
    *,
    metric: Callable[..., float] | None = None,
    kind: str = "duel",
    sample_weight: ArrayLike | None = None,
) -> Bunch:
    """Return a metric of each group of answers: of years, of leagues, of judges.

    Parameters
    ----------
    y, proba, kind, sample_weight
        As in `answer_accuracy`.
    groups : array-like of shape (n,)
        Group of each answer: numbers, texts or dates. Of dates, years are
        ``date.astype("datetime64[Y]")``, months ``"datetime64[M]"``.
    metric : callable, default=None
        `answer_log_loss`, `answer_accuracy`, `answer_brier`, or a function of their arguments.
        None: `answer_log_loss`.

    Returns
    -------
    found : Bunch
        groups : ndarray of shape (n_groups,)
            Ascending.
        score : ndarray of shape (n_groups,)
        size : ndarray of int of shape (n_groups,)
            Answers in each.
        frame : DataFrame
            One row a group, where pandas is installed, else None.

    Raises
    ------
    ValueError
        As in `answer_accuracy`, or if ``groups`` has gaps or another length.

    Examples
    --------
    >>> from skpref.metrics import answer_accuracy, score_by_group
    >>> found = score_by_group(
    ...     [1, 0, 1, 1], [0.9, 0.2, 0.4, 0.7], [2024, 2024, 2025, 2025], metric=answer_accuracy
    ... )
    >>> found.groups.tolist(), found.score.tolist(), found.size.tolist()
    ([2024, 2025], [1.0, 0.5], [2, 2])
    """
    proba, metric = np.asarray(proba), answer_log_loss if metric is None else metric
    names, code = group_codes(groups, len(proba))
    weight = None if sample_weight is None else check_scoring_weights(sample_weight, proba)
    metric(y, proba, kind=kind, sample_weight=weight)  # refuses what is wrong in any group
    score = []
    for k in range(len(names)):
        rows = code == k
        group_answers = None if y is None else np.asarray(y)[rows]
        share = None if weight is None else weight[rows]
        score.append(metric(group_answers, proba[rows], kind=kind, sample_weight=share))
    size = np.bincount(code, minlength=len(names))
    columns = {"score": np.array(score), "size": size}
    frame = table_frame(columns, names, name="group")
    return PrintableBunch(groups=names, score=np.array(score), size=size, frame=frame)
