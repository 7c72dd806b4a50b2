"""Scorers of fitted models, which ask for the metadata that predictions take."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from skpref._containers import unmasked
from skpref._metadata import passed
from skpref._orientation import first_won
from skpref._scores import accuracy, brier, choice_columns, duel_columns, log_loss

_PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
_ASKED = ("judges", "order", "users")


def _routed(scorer: Callable) -> Callable:
    """A scorer of this module, which asks for its metadata by scikit-learn's routing."""

    def get_metadata_routing() -> MetadataRequest:
        return _request(scorer, dict.fromkeys((*_ASKED, "sample_weight"), True))

    # scikit-learn asks its scorers so where routing is off.
    methods = {
        "get_metadata_routing": get_metadata_routing,
        "_accept_sample_weight": lambda: True,
        "_routing_repr": lambda: scorer.__name__,
    }
    vars(scorer).update(methods)
    return scorer


def _request(owner: Any, names: Mapping[str, bool | str]) -> MetadataRequest:
    request = MetadataRequest(owner=owner)
    for name, alias in names.items():
        request.score.add_request(param=name, alias=alias)
    return request


def _answers(estimator: Any, X: Any, y: Any, metadata: dict) -> tuple[np.ndarray, np.ndarray]:
    """Column of each answer, and the probabilities of all: of choices where X holds sets."""
    proba = estimator.predict_proba(X, **metadata)
    return choice_columns(y, proba) if _n_shown(X) > 2 else duel_columns(y, proba)


def _n_shown(X: Any) -> int:
    shape = getattr(X, "shape", None) or np.shape(X)
    return shape[1] if len(shape) > 1 else 2


@_routed
def accuracy_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    judges: ArrayLike | None = None,
    order: ArrayLike | None = None,
    users: ArrayLike | None = None,
) -> float:
    """Scorer: `duel_accuracy` or `choice_accuracy` of ``estimator.predict_proba(X)``.

    With ``judges``, ``order`` and ``users``, where they come, passed on to it; so do the others.
    """
    found = _answers(estimator, X, y, passed(judges=judges, order=order, users=users))
    return accuracy(*found, sample_weight)


@_routed
def log_loss_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    judges: ArrayLike | None = None,
    order: ArrayLike | None = None,
    users: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_log_loss` or `choice_log_loss`, so that larger is better."""
    found = _answers(estimator, X, y, passed(judges=judges, order=order, users=users))
    return -log_loss(*found, sample_weight)


@_routed
def brier_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    judges: ArrayLike | None = None,
    order: ArrayLike | None = None,
    users: ArrayLike | None = None,
) -> float:
    """Scorer: the negative of `duel_brier` or `choice_brier`, so that larger is better."""
    found = _answers(estimator, X, y, passed(judges=judges, order=order, users=users))
    return -brier(*found, sample_weight)


@_routed
def roc_auc_scorer(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    judges: ArrayLike | None = None,
    order: ArrayLike | None = None,
    users: ArrayLike | None = None,
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
    metadata = passed(judges=judges, order=order, users=users)
    if hasattr(estimator, "decision_function"):
        margin = estimator.decision_function(X, **metadata)
    else:
        margin = estimator.predict_proba(X, **metadata)[:, 1]
    won = np.ones(len(margin), dtype=bool) if y is None else first_won(y)
    return float(roc_auc_score(won, margin, sample_weight=sample_weight))


def with_metadata(
    scoring: str | Callable, names: Sequence[str] | Mapping[str, str] = _ASKED
) -> Callable:
    """Scorer that passes metadata of the answers on to the predictions that it scores.

    scikit-learn's own scorers pass none on, so that answers of judges, or of users, would be
    scored as those of somebody else. (A model that was fitted with them refuses that.) The
    scorers of this module need no wrapping.

    Parameters
    ----------
    scoring : str or callable
        Name of a scorer of scikit-learn, what ``make_scorer`` returns, or another that gets
        ``(estimator, X, y)`` and calls ``predict``, ``predict_proba`` or ``decision_function``
        with X.
    names : sequence of str or dict of str to str, default=("judges", "order", "users")
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
    """A scorer of estimators that are told some metadata in each prediction."""

    def __init__(self, scorer, names):
        self._scorer, self._names = scorer, names
        requests = get_routing_for_object(scorer).score.requests
        self._own = {name: alias for name, alias in requests.items() if alias is not None}
        if self._accept_sample_weight():
            self._own.setdefault("sample_weight", True)

    def __call__(self, estimator: Any, X: Any, y: Any = None, **metadata: Any) -> Any:
        told = {name: metadata[name] for name in self._names if name in metadata}
        own = {name: v for name, v in metadata.items() if name not in told or self._own.get(name)}
        return self._scorer(_Told(estimator, told), X, y, **own)

    def __repr__(self):
        return f"with_metadata({getattr(self._scorer, '__name__', repr(self._scorer))})"

    def _accept_sample_weight(self):
        if hasattr(self._scorer, "_accept_sample_weight"):
            return self._scorer._accept_sample_weight()
        return "sample_weight" in inspect.signature(self._scorer).parameters

    def get_metadata_routing(self) -> MetadataRequest:
        """What is asked for: the names, and what the scorer itself asks for."""
        aliases = {name: alias for name, alias in self._names.items() if alias is not True}
        return _request(self, {**self._names, **self._own, **aliases})


class _Told:
    """An estimator whose predictions are told metadata."""

    def __init__(self, estimator, metadata):
        self._estimator, self._metadata = estimator, metadata

    def __getattr__(self, name):
        found = getattr(self._estimator, name)
        if name not in _PREDICTIONS:
            return found

        @wraps(found)
        def told(X, **more):
            return found(X, **{**self._metadata, **more})

        return told
