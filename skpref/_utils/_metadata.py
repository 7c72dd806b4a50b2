"""Metadata beside X and y: those of a fit, and those that scikit-learn's scorers drop."""

import sys
from collections.abc import Collection, Mapping
from types import FrameType
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED, get_routing_for_object

# Of scikit-learn: who says which methods an estimator has, and who asks before any fit.
_AVAILABILITY = "sklearn.utils._available_if"
_VALIDATION = "sklearn.utils._param_validation", "sklearn.utils.validation"
_SCORERS, _CALIBRATION = "sklearn.metrics._scorer", "sklearn.calibration"
_IMPORTANCE = "sklearn.inspection._permutation_importance"
_OUR_IMPORTANCE = "skpref.inspection._features"
# Modules that compare predictions with answers. They call predictions with X alone.
_COMPARING = frozenset(
    {
        _CALIBRATION,
        _IMPORTANCE,
        _SCORERS,
        "sklearn.model_selection._validation",
        _OUR_IMPORTANCE,
    }
)
# What may stand between such a module and a prediction.
_PASSING = ("sklearn", "skpref", "joblib")
_BY_MODULE = {
    _CALIBRATION: "calibration",
    _IMPORTANCE: "permutation_importance",
    _OUR_IMPORTANCE: "permutation_importance",
}
_SEARCH = "sklearn.model_selection._search"

# Default of an answer without metadata.
_WITHOUT = {
    "judges": "the reference judge",
    "offset": "items of which nothing is known",
    "order": "people who are shown the first item first",
    "prompts": "a prompt that was not in the fit",
    "qid": "one group of items",
    "time": "the last time of training",
    "users": "somebody of the population",
}


class _Probe(BaseEstimator):
    __metadata_request__predict_proba: ClassVar = {"order": True}

    def predict(self, X: Any) -> None:
        """Do nothing, as a method without metadata."""


# scikit-learn 1.9 finds requests by a part of their name: what is said of predict_proba holds of
# predict, until predict says otherwise. Earlier versions refuse to take back what nobody has said.
_BY_PART = "order" in _Probe().get_metadata_routing().predict.requests


def unrequested_metadata(*names: str) -> dict[str, str]:
    """Return requests by which ``predict`` takes none of these metadata of ``predict_proba``."""
    return dict.fromkeys(names, UNUSED) if _BY_PART else {}


def given_metadata(**metadata: Any) -> dict[str, Any]:
    """Return the metadata that are not None."""
    return {name: values for name, values in metadata.items() if values is not None}


def refuse_dropped(dropped: Mapping[str, str]) -> None:
    """Raise ValueError if a scorer asks for predictions without metadata that the model needs.

    What a user calls by hand stays: only where scikit-learn itself compares predictions with
    answers has something been dropped on the way. So the callers are looked at, up to the first
    that belongs neither to scikit-learn and joblib nor to this package.

    Parameters
    ----------
    dropped : dict of str to str
        Metadata that `fit` was told, that matter, and that did not come; and the names under which
        `fit` asks scikit-learn's routing for them.

    Raises
    ------
    ValueError
        If there are any, and such a caller.
    """
    caller = _comparing_caller() if dropped else None
    if caller is not None:
        raise _dropped_error(dropped, caller)


def calibration_method() -> str | None:
    """Return the method of scikit-learn's calibration if that asks for a prediction, else None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_libraries(frame):
        if frame.f_globals.get("__name__") == _CALIBRATION:
            inner = frame.f_locals
            return str(inner.get("method") or getattr(inner.get("self"), "method", "sigmoid"))
        frame = frame.f_back
    return None


def validates_methods() -> bool:
    """Return whether scikit-learn's validation of parameters is what asks for a method."""
    frame: FrameType | None = sys._getframe(2)  # the caller of who asks us
    while frame is not None and frame.f_globals.get("__name__") == _AVAILABILITY:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _VALIDATION


def check_metadata_requested(estimator: BaseEstimator, names: Collection[str]) -> None:
    """Raise ValueError in a fold's fit if the scores to come will drop metadata of the fit.

    A search takes an error of a score for NaN, and goes on to the end. If all of its fits fail it
    says why, at once.

    Parameters
    ----------
    estimator : BaseEstimator
        That is being fitted.
    told : collection of str
        Metadata of the answers, on which predictions depend.

    Raises
    ------
    ValueError
        If a search or cross-validation has this fitted, and one of its scorers drops any.
    """
    fold = _calling_frame("_fit_and_score") if names else None
    if fold is None:
        return
    fold_variables = fold.f_locals
    scorer, passed_on = fold_variables.get("scorer"), fold_variables.get("score_params") or {}
    requests = estimator.get_metadata_routing()
    for each in getattr(scorer, "_scorers", {"score": scorer}).values():
        alias = _unrequested_by(each, requests, names, passed_on)
        if alias:
            raise _dropped_error(alias, "cross-validation")


def _unrequested_by(scorer, requests, names, passed_on):
    """Return metadata that a scorer will not hand on to predictions, and their names in `fit`."""
    kind, score_requests = type(scorer).__module__, None
    if kind == _SCORERS and not hasattr(scorer, "_response_method"):  # the model's own score
        score_requests = requests.score.requests
        methods = [score_requests]
    elif kind == _SCORERS:
        named = scorer._response_method
        named = [named] if isinstance(named, str) else named
        methods = [getattr(requests, name).requests for name in named]
    elif hasattr(scorer, "get_metadata_routing"):
        score_requests = get_routing_for_object(scorer).score.requests
        methods = [requests.predict_proba.requests]
    else:
        return {}  # a function of the user's own, which may know them

    def comes(name):
        alias = None if score_requests is None else score_requests.get(name)
        return alias is not None and (name in passed_on or alias in passed_on)

    needed = [name for name in names if all(part.get(name, False) is not False for part in methods)]
    of_fit = requests.fit.requests
    return {name: _alias(of_fit, name) for name in needed if not comes(name)}


def _alias(requests, name):
    """Return the name under which metadata are requested."""
    alias = requests.get(name)
    return alias if isinstance(alias, str) else name


def _dropped_error(dropped: Mapping[str, str], caller: str) -> ValueError:
    """Return the error that says what was dropped on the way, and what to do."""
    listed = " and ".join(f"{name}=" for name in dropped)
    others = " and of ".join(_WITHOUT[name] for name in dropped)
    passed_as = dropped.values()
    params = ", ".join(f'"{name}": {name}' for name in passed_as)
    aliases = {name: alias for name, alias in dropped.items() if alias != name}
    if caller in ("_fit_and_predict", "cross_val_predict"):
        remedy = (
            "cross_val_predict passes none on to predictions: fit and predict fold by fold, "
            f"model.fit(X[a], y[a], {_as_fold_keywords(dropped, 'a')}).predict_proba(X[b], "
            f"{_as_fold_keywords(dropped, 'b')}) for a, b in cv.split(X)."
        )
    elif caller == "permutation_importance":
        remedy = f"Take skpref.inspection.permutation_importance and pass {listed} to it."
    elif caller == "calibration":
        keywords = _as_keywords(dropped)
        remedy = (
            "CalibratedClassifierCV hands none on. Calibrate held-out answers by hand: margin = "
            f"model.decision_function(X, {keywords})[:, None], LogisticRegression().fit(margin, y);"
            " or trust the reliability of judges that the model has learned."
        )
    else:
        remedy = (
            "Call sklearn.set_config(enable_metadata_routing=True), pass "
            f"params={{{params}}} (to a search: fit(X, y, {_as_keywords(passed_as)}), and score "
            f"likewise), and {_advice_on_scorers(aliases)}. To score without them all the same, "
            "pass a function of your own that calls a scorer of skpref.metrics: "
            "scoring=lambda model, X, y: log_loss_scorer(model, X, y)."
        )
    return ValueError(
        f"The model was fitted with {listed}, but a score or prediction was asked for without, so "
        f"that the answers would count as those of {others}. {remedy}"
    )


def _advice_on_scorers(aliases):
    """Return advice on passing metadata to scorers, under their own names or aliases."""
    if not aliases:
        return (
            "leave scoring out, or take a scorer that passes them on: one of skpref.metrics, or "
            'skpref.metrics.with_metadata("neg_log_loss")'
        )
    requests = ", ".join(f'{name}="{alias}"' for name, alias in aliases.items())
    return (
        f"tell scores of the names that set_fit_request({requests}) has given to fit: "
        f"set_score_request({requests}) and leave scoring out, or take "
        f'skpref.metrics.with_metadata("neg_log_loss", {aliases})'
    )


def _as_keywords(names):
    """Return names as keyword arguments, as a text."""
    return ", ".join(f"{name}={name}" for name in names)


def _as_fold_keywords(names, fold):
    """Return names as keyword arguments of the rows of a fold, as a text."""
    return ", ".join(f"{name}={name}[{fold}]" for name in names)


def _calling_frame(function: str) -> FrameType | None:
    """Return the nearest caller of a name, before any code of the user's own; else None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_libraries(frame):
        if frame.f_code.co_name == function:
            return frame
        frame = frame.f_back
    return None


def _is_of_libraries(frame):
    """Return whether a frame is of scikit-learn, joblib or this package."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in _PASSING


def _comparing_caller():
    """Return the name of the outermost function that compares predictions; None: users ask."""
    caller: str | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        by_hand = module == _CALIBRATION and function.startswith("predict")
        if (module in _COMPARING and not by_hand) or (module, function) == (_SEARCH, "score"):
            caller = _BY_MODULE.get(module, function)
        elif not _is_of_libraries(frame):
            break
        frame = frame.f_back
    return caller
