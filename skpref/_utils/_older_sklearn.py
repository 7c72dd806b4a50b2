"""What older series of scikit-learn lack: callbacks, and scores of a regressor's probabilities.

From 1.9 on scikit-learn has both, and nothing here changes anything.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any, Self

import sklearn
from sklearn.utils import Tags
from sklearn.utils.fixes import parse_version

_CLASSIFIERS_ALONE = parse_version(sklearn.__version__) < parse_version("1.9")


class _SilentContext:
    """A task of which nobody is told."""

    def __init__(self, max_subtasks: int | None = 0):
        self.max_subtasks = max_subtasks

    def subcontext(self, task_name: str = "", **_: Any) -> Self:
        """Return the context of a task within this one."""
        return type(self)()

    def call_on_fit_task_begin(self, **_: Any) -> None:
        """Do nothing where a task begins."""

    def call_on_fit_task_end(self, **_: Any) -> bool:
        """Return False where a task ends: nobody wants to stop."""
        return False


class _WithoutCallbacks:
    """What an estimator has in place of scikit-learn's callbacks."""

    @property
    def set_callbacks(self) -> Callable:
        """Raise AttributeError: callbacks cannot be set."""
        raise AttributeError(
            f"{type(self).__name__}.set_callbacks needs scikit-learn 1.9 or newer, which brought "
            f"callbacks; this is scikit-learn {sklearn.__version__}. Install a newer one, or show "
            "the progress with verbose=1 (of an optimizer's run with progress=True)."
        )

    def _init_callback_context(
        self, task_name: str = "fit", max_subtasks: int | None = 0
    ) -> _SilentContext:
        """Return a context that tells nobody of tasks."""
        return _SilentContext(max_subtasks)


class _NoBar:
    """In place of scikit-learn's progress bar: an ImportError, as where rich is missing."""

    def __init__(self) -> None:
        raise ImportError("ProgressBar needs scikit-learn 1.9 or newer.")


def _undecorated(method: Callable) -> Callable:
    """Return a method as it is."""
    return method


try:
    from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks
except ImportError:
    CallbackSupportMixin, ProgressBar, with_callbacks = _WithoutCallbacks, _NoBar, _undecorated


def scored_tags(estimator: Any, tags: Tags) -> Tags:
    """Return tags of a regressor, which to scorers are a classifier's once it has classes.

    ``scoring="neg_log_loss"``, calibration and the like call predictions by one function of
    scikit-learn, which before 1.9 refuses probabilities of all but classifiers. So there, and to
    this function alone, a model that was fitted on duels says that it is one. To all others, such
    as those that choose folds, it is the regressor that it always is.
    """
    asked = _CLASSIFIERS_ALONE and getattr(estimator, "classes_", None) is not None
    return replace(tags, estimator_type="classifier") if asked and _is_called_by_scorer() else tags


def _is_called_by_scorer() -> bool:
    """Return whether the function that calls predictions for scores is the caller."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in ("sklearn", "skpref"):
            return False
        if module == "sklearn.utils._response":
            return frame.f_code.co_name == "_get_response_values"
        frame = frame.f_back
    return False
