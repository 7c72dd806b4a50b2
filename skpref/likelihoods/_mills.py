"""The normal distribution's ratio φ/Φ and its derivatives, to full precision in the tails."""

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)
# Below this u + φ/Φ would cancel; at this depth the continued fraction is exact to rounding.
_FAR = -5.0
_DEPTH = 30


class Mills(NamedTuple):
    """r = φ(u)/Φ(u), r (u + r) = −d²log Φ/du², one minus that, and d³log Φ/du³."""

    ratio: np.ndarray
    curvature: np.ndarray
    left: np.ndarray
    third: np.ndarray


def mills(u: np.ndarray) -> Mills:
    """All of `Mills` to nearly full relative precision, however negative u is."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.asarray(_SQRT_2_OVER_PI / erfcx(-_SQRT_HALF * u))
        curvature = np.asarray(ratio * (u + ratio))
        left = np.asarray(1.0 - curvature)
        third = np.asarray(curvature * (u + 2.0 * ratio) - ratio)  # dr/du = −r (u + r)
    far = np.asarray(u < _FAR)
    if np.any(far):
        x = -np.asarray(u)[far]
        # r = x + t with t = 1/(x + 2/(x + 3/(x + …))), Abramowitz and Stegun (26.2.14)
        after = np.zeros_like(x)
        for k in range(_DEPTH, 2, -1):
            after = k / (x + after)
        then = 2.0 / (x + after)
        t = 1.0 / (x + then)
        # With t (x + then) = 1 every difference below is of terms of unlike size.
        left[far] = t * (then - t)
        curvature[far] = 1.0 - left[far]
        third[far] = curvature[far] * t * then * (after - then)
    return Mills(ratio, curvature, left, third)
