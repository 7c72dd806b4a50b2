"""Radial profiles: k = value(u), u the squared distance in lengthscales, and slope = −2 dk/du."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel

# Lengthscales below this may take squared distances out of double precision.
_TINY = 1e-100
# Distances in lengthscales beyond this are infinite: their squares would overflow.
_FAR = 1e150


class Radial(NamedTuple):
    """A stationary kernel's lengthscales and profile."""

    length: Array
    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]
    rough: bool  # the slope has no bound near u = 0
    tiny: bool  # a lengthscale is so small that squares may overflow

    def over_square(self, apart: Array) -> Array:
        """Differences of rows divided by the squared lengthscales."""
        if self.tiny:  # the square may be 0
            return apart / self.length / self.length
        return apart / self.length**2


def matern_value(nu: float, u: Array) -> Array:
    """Matérn kernel of any nu; the RBF for infinity."""
    if nu == np.inf:
        return np.exp(-0.5 * u)  # GPML (4.9)
    r = np.sqrt(u)
    if nu == 0.5:
        return np.exp(-r)  # GPML (4.18), gamma = 1
    s = math.sqrt(2.0 * nu) * r
    if nu == 1.5:
        return (1.0 + s) * np.exp(-s)  # GPML (4.17)
    if nu == 2.5:
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)  # GPML (4.17)
    with np.errstate(invalid="ignore", over="ignore"):
        value = 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s)  # GPML (4.14)
    # 0 · ∞ at coincident rows, ∞ · 0 at rows far apart
    return np.where(np.isfinite(value), value, np.where(s < 1.0, 1.0, 0.0))


def matern_slope(nu: float, u: Array, value: Array) -> Array:
    """Slope of `matern_value`."""
    if nu == np.inf:
        return value
    s = math.sqrt(2.0 * nu) * np.sqrt(u)
    if nu == 0.5:
        return np.divide(value, s, out=np.zeros_like(s), where=s > 0)  # 0 at the kink
    if nu == 1.5:
        return 3.0 * value / (1.0 + s)
    if nu == 2.5:
        return 5.0 / 3.0 * value * (1.0 + s) / (1.0 + s + s**2 / 3.0)
    scale = nu * 2.0 ** (2.0 - nu) / gamma(nu)
    at_zero = nu / (nu - 1.0) if nu > 1.0 else 0.0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # d/ds s^nu K_nu(s) = -s^nu K_{nu-1}(s), Abramowitz & Stegun (9.6.28)
        slope = scale * s ** (nu - 1.0) * kv(nu - 1.0, s)
    return np.where(np.isfinite(slope), slope, np.where(s < 1.0, at_zero, 0.0))


def _lengths(kernel: Kernel, *arrays: Array) -> tuple[Array, bool]:
    """Lengthscales as a number or one a feature, and whether one is tiny.

    Tiny ones are held so large that no squared distance of these rows overflows.
    """
    length = np.squeeze(np.asarray(kernel.length_scale, dtype=np.float64))
    n_features = arrays[0].shape[1]
    if length.ndim > 1 or (length.ndim == 1 and len(length) != n_features):
        raise ValueError(
            f"{type(kernel).__name__} has length_scale of shape {length.shape}, but X has "
            f"{n_features} features. Give one number, or one a feature."
        )
    if not length.size or length.min() >= _TINY:
        return length, False
    size = np.max([np.abs(rows).max(axis=0, initial=0.0) for rows in arrays], axis=0)
    length = np.maximum(length, (size if length.ndim else size.max(initial=0.0)) / _FAR)
    return np.where(length > 0.0, length, 1.0), True


def matern_radial(kernel: Kernel, *arrays: Array) -> Radial:
    """Of `RBF` and `Matern`."""
    nu = getattr(kernel, "nu", np.inf)
    length, tiny = _lengths(kernel, *arrays)
    return Radial(
        length,
        lambda u: matern_value(nu, u),
        lambda u, value: matern_slope(nu, u, value),
        nu <= 1.0,
        tiny,
    )


def rational_radial(kernel: Kernel, *arrays: Array) -> Radial:
    """Of `RationalQuadratic`."""
    alpha = max(float(kernel.alpha), _TINY)
    length, tiny = _lengths(kernel, *arrays)
    return Radial(
        length,
        lambda u: (1.0 + u / (2.0 * alpha)) ** -alpha,  # GPML (4.19)
        lambda u, value: value / (1.0 + u / (2.0 * alpha)),
        False,
        tiny,
    )


def radial(kernel: Kernel, *arrays: Array) -> Radial:
    """Lengthscales and profile of a radial kernel for the rows of these arrays."""
    of_kind = rational_radial if type(kernel) is gp.RationalQuadratic else matern_radial
    return of_kind(kernel, *arrays)
