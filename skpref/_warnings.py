"""Warnings that name the line of the caller, however deep in the package they arise."""

import inspect
import warnings

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
    >>> from skpref._warnings import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("mind the step")
    >>> print(caught[0].message)
    mind the step
    """
    here = inspect.currentframe()
    if here is None:  # an interpreter without frames
        warnings.warn(message, category, stacklevel=2)
        return
    found = here.f_back
    while found is not None and _module(found).partition(".")[0] in _PASSED:
        found = found.f_back
    found = here.f_back if found is None else found
    warnings.warn_explicit(
        message,
        category,
        found.f_code.co_filename,
        found.f_lineno,
        module=_module(found),
        registry=found.f_globals.setdefault("__warningregistry__", {}),
    )


def _module(frame):
    return frame.f_globals.get("__name__") or ""
