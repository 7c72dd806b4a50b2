"""Checks of parameters, with errors that say what they got and what is allowed."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight


def check_number(
    name, value, *, low=-np.inf, high=np.inf, open_low=False, open_high=False, integer=False
):
    """Return ``value`` if it is a number in the interval; TypeError or ValueError if not.

    Raises
    ------
    TypeError
        If it is no number (no integer where ``integer``).
    ValueError
        If it lies outside, or is NaN.
    """
    kind = Integral if integer else Real
    if not isinstance(value, kind) or isinstance(value, bool | np.bool_):
        kind_in_words = "an integer" if integer else "a number"
        raise TypeError(
            f"{name} must be {kind_in_words}, got {value!r} of type {type(value).__name__}."
        )
    number: Any = value
    try:
        math.isfinite(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf if number > 0 else -math.inf
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        opening, closing = "(" if open_low else "[", ")" if open_high else "]"
        remedy = "" if math.isfinite(number) else " Give a finite number."
        raise ValueError(
            f"{name} must lie in {opening}{low}, {high}{closing}, got {value!r}.{remedy}"
        )
    return value


def check_choice(name, value, choices):
    """Return ``value`` if it is one of ``choices``, else raise ValueError."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")
    return value


def check_bounds(name: str, bounds: Any, positive: bool = True) -> tuple[float, float] | None:
    """Return bounds (low, high) of a hyperparameter, None for "fixed"; ValueError for others."""
    if isinstance(bounds, str) and bounds == "fixed":
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    sound = 0.0 < low <= high < np.inf if positive else -np.inf < low < high < np.inf
    if not sound:
        pair = "0 < low <= high < inf" if positive else "-inf < low < high < inf"
        raise ValueError(f"{name} must be 'fixed' or a pair {pair}, got {bounds!r}.")
    return low, high


def check_lognormal(name, prior, allowed):
    """Return median and log-deviation of a log-normal prior; an error for others.

    Parameters
    ----------
    name : str
        Of the parameter.
    prior : (float, float)
    allowed : str
        What the error says may come.
    """
    try:
        median, deviation = prior
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {allowed}, got {prior!r}.") from None
    inside = {"low": 0.0, "open_low": True, "open_high": True}
    check_number(f"the median of {name}", median, **inside)
    check_number(f"the deviation of {name}", deviation, **inside)
    return float(median), float(deviation)


def check_scoring_weights(sample_weight: Any, values: ArrayLike) -> NDArray[np.float64]:
    """Return the weights of the values of a score, ones for None; ValueError for others."""
    weights = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
    if not weights.any():  # scikit-learn itself says so from 1.9 on
        raise ValueError("sample_weight must contain at least one non-zero number.")
    return weights
