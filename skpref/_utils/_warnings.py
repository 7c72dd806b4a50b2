"""Warnings that name the line of the caller, however deep in the package they arise."""

import inspect
import warnings
from types import FrameType

# Frames of these lie between a user's line and this package's: callbacks and decorators of
# scikit-learn, functions that scipy minimises, workers of joblib.
_PASSED = {"skpref", "sklearn", "scipy", "numpy", "joblib", "contextlib", "functools"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside the package and the libraries that call it.

    Where there is none, as in the worker of a pool, the warning names the line that warns.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning

    Examples
    --------
    >>> import warnings
    >>> from skpref._utils._warnings import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("mind the step")
    >>> print(caught[0].message)
    mind the step
    """
    here = inspect.currentframe()
    here = None if here is None else here.f_back
    if here is None:  # an interpreter without frames
        warnings.warn(message, category, stacklevel=2)
        return
    frame = _first_frame_outside(here) or here
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=_module_name(frame),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _first_frame_outside(frame: FrameType | None) -> FrameType | None:
    """Return the nearest frame that belongs to no library that this package goes through."""
    while frame is not None and _module_name(frame).partition(".")[0] in _PASSED:
        frame = frame.f_back
    return frame


def _module_name(frame: FrameType) -> str:
    """Return the name of a frame's module."""
    return frame.f_globals.get("__name__") or ""
