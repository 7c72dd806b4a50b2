"""Callbacks of scikit-learn where it has them, from 1.9 on; elsewhere nobody is told."""

from collections.abc import Callable
from typing import Any, Self


class _Unheard:
    """A task of which nobody is told."""

    def __init__(self, max_subtasks: int | None = 0):
        self.max_subtasks = max_subtasks

    def subcontext(self, task_name: str = "", **_: Any) -> Self:
        """A task within this one."""
        return type(self)()

    def call_on_fit_task_begin(self, **_: Any) -> None:
        """Nobody is told that it begins."""

    def call_on_fit_task_end(self, **_: Any) -> bool:
        """Nobody is told that it ends, or wants to stop."""
        return False


class _WithoutCallbacks:
    """What an estimator has in place of scikit-learn's callbacks."""

    @property
    def set_callbacks(self) -> Callable:
        """Callbacks cannot be set."""
        import sklearn

        raise AttributeError(
            f"{type(self).__name__}.set_callbacks needs scikit-learn 1.9 or newer, which brought "
            f"callbacks; this is scikit-learn {sklearn.__version__}. Install a newer one, or show "
            "the progress with verbose=1 (of an optimizer's run with progress=True)."
        )

    def _init_callback_context(
        self, task_name: str = "fit", max_subtasks: int | None = 0
    ) -> _Unheard:
        return _Unheard(max_subtasks)


class _NoBar:
    """In place of scikit-learn's progress bar: an ImportError, as where rich is missing."""

    def __init__(self) -> None:
        raise ImportError("ProgressBar needs scikit-learn 1.9 or newer.")


def _as_it_is(method: Callable) -> Callable:
    return method


try:
    from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks
except ImportError:
    CallbackSupportMixin, ProgressBar, with_callbacks = _WithoutCallbacks, _NoBar, _as_it_is
