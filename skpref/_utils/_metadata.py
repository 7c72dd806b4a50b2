"""Metadata beside X and y: those of a fit, and those that scikit-learn's scorers drop."""

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

# Modules that compare predictions with answers. They call predictions with X alone.
_COMPARING = frozenset(
    {
        "sklearn.inspection._permutation_importance",
        "sklearn.metrics._scorer",
        "sklearn.model_selection._validation",
        "skpref.inspection._features",
    }
)
_SEARCH = "sklearn.model_selection._search"

# Default of an answer without metadata.
_WITHOUT = {
    "judges": "the reference judge",
    "order": "people who are shown the first item first",
    "qid": "one group of items",
    "time": "the last time of training",
    "users": "somebody of the population",
}


class _Probe(BaseEstimator):
    __metadata_request__predict_proba: ClassVar = {"order": True}

    def predict(self, X: Any) -> None:
        """Takes no metadata."""


# scikit-learn 1.9 finds requests by a part of their name: what is said of predict_proba holds of
# predict, until predict says otherwise. Earlier versions refuse to take back what nobody has said.
_BY_PART = "order" in _Probe().get_metadata_routing().predict.requests


def unasked(*names: str) -> dict[str, str]:
    """What ``__metadata_request__predict`` says of metadata that ``predict_proba`` alone takes."""
    return dict.fromkeys(names, UNUSED) if _BY_PART else {}


def passed(**metadata: Any) -> dict[str, Any]:
    """Metadata that came: those that are not None."""
    return {name: values for name, values in metadata.items() if values is not None}


def refuse_dropped(dropped: Mapping[str, str]) -> None:
    """Raise an error if a scorer asks for predictions without metadata that the model needs.

    What a user calls by hand stays: only where scikit-learn itself compares predictions with
    answers has something been dropped on the way. So the callers are looked at, up to the first
    that belongs neither to scikit-learn nor to this package.

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
    caller = _comparing() if dropped else None
    if caller is None:
        return
    listed = " and ".join(f"{name}=" for name in dropped)
    others = " and of ".join(_WITHOUT[name] for name in dropped)
    passed_as = dropped.values()
    params = ", ".join(f'"{name}": {name}' for name in passed_as)
    aliases = {name: alias for name, alias in dropped.items() if alias != name}
    if caller == "_fit_and_predict":
        remedy = (
            "cross_val_predict passes none on to predictions: fit and predict fold by fold, "
            f"model.fit(X[a], y[a], {_by_fold(dropped, 'a')}).predict_proba(X[b], "
            f"{_by_fold(dropped, 'b')}) for a, b in cv.split(X)."
        )
    elif caller == "permutation_importance":
        remedy = f"Take skpref.inspection.permutation_importance and pass {listed} to it."
    else:
        remedy = (
            "Call sklearn.set_config(enable_metadata_routing=True), pass "
            f"params={{{params}}} (to a search: fit(X, y, {_by_name(passed_as)}), and score "
            f"likewise), and {_asking(aliases)}. To score without them all the same, pass a "
            "function of your own that calls a scorer of skpref.metrics: "
            "scoring=lambda model, X, y: log_loss_scorer(model, X, y)."
        )
    raise ValueError(
        f"The model was fitted with {listed}, but a score or prediction was asked for without, so "
        f"that the answers would count as those of {others}. {remedy}"
    )


def _asking(aliases):
    """Advice on passing metadata to scorers, under their own names or aliases."""
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


def _by_name(names):
    return ", ".join(f"{name}={name}" for name in names)


def _by_fold(names, fold):
    return ", ".join(f"{name}={name}[{fold}]" for name in names)


def _comparing():
    """Name of the outermost function that compares predictions with answers; None: users ask."""
    found: str | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module in _COMPARING or (module, function) == (_SEARCH, "score"):
            found = "permutation_importance" if "importance" in module else function
        elif module.partition(".")[0] not in ("sklearn", "skpref"):
            break
        frame = frame.f_back
    return found
