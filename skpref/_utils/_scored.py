"""Scores of probabilities by scikit-learn's scorers, which before 1.9 ask classifiers alone."""

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import sklearn
from sklearn.utils import Tags
from sklearn.utils.fixes import parse_version

_CLASSIFIERS_ALONE = parse_version(sklearn.__version__) < parse_version("1.9")


def scored_tags(estimator: Any, tags: Tags) -> Tags:
    """Tags of a regressor, to scikit-learn's scorers those of a classifier once it has classes.

    ``scoring="neg_log_loss"``, calibration and the like call predictions by one function of
    scikit-learn, which before 1.9 refuses probabilities of all but classifiers. So there, and to
    this function alone, a model that was fitted on duels says that it is one. To all others, such
    as those that choose folds, it is the regressor that it always is.
    """
    asked = _CLASSIFIERS_ALONE and getattr(estimator, "classes_", None) is not None
    return replace(tags, estimator_type="classifier") if asked and _by_scorer() else tags


def _by_scorer() -> bool:
    """Whether the function that calls predictions for scores is what asks."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in ("sklearn", "skpref"):
            return False
        if module == "sklearn.utils._response":
            return frame.f_code.co_name == "_get_response_values"
        frame = frame.f_back
    return False
