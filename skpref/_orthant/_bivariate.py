"""Φ₂: P(Z₁ < h, Z₂ < k) of two standard normals whose correlation is the cosine of an angle."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, owens_t

from skpref._orthant._quadrature import Array, log_integral

# No angle is nearer than this to 0 or π. (1e-12 moves a probability by less than that.)
_LEAST_ANGLE = 1e-12
# Owen's T is exact to 1e-16: more than this is right to 1e-13 of itself.
_EXACT = 1e-3
_BLOCK = 8192


def bivariate(h: Array, k: Array, angle: Array) -> Array:
    """Φ₂ to an absolute 1e-15.

    Parameters
    ----------
    h, k : ndarray of shape (n,)
        Finite.
    angle : ndarray of shape (n,)
        In [0, π]; the correlation is its cosine.
    """
    # Owen's formula divides by h and k; a sign decides on which side of 0 they lie.
    h = np.where(h == 0.0, 1e-150, h)
    k = np.where(k == 0.0, 1e-150, k)
    found = 0.5 * (ndtr(h) + ndtr(k))  # Owen (1956), (2.1)
    found -= owens_t(h, given(k, h, angle) / h)
    found -= owens_t(k, given(h, k, angle) / k)
    found -= 0.5 * ((h < 0.0) != (k < 0.0))
    return np.clip(found, 0.0, 1.0)


def proper(angle: Array) -> Array:
    """An angle whose sine is not 0."""
    return np.clip(angle, _LEAST_ANGLE, np.pi - _LEAST_ANGLE)


def given(k: Array, x: Array, angle: Array) -> Array:
    """Limit of Z₂ < k in units of its conditional deviation given Z₁ = x: (k − ρx)/√(1 − ρ²)."""
    angle = proper(angle)
    # ρ = ±(1 − 2s): differences of nearly equal limits are formed before anything is rounded.
    sign = np.where(angle < np.pi / 2, 1.0, -1.0)
    half = np.where(angle < np.pi / 2, np.sin(angle / 2), np.cos(angle / 2))
    return ((k - sign * x) + sign * 2.0 * half * half * x) / np.sin(angle)


def log_bivariate(h: Array, k: Array, angle: Array) -> Array:
    """log Φ₂, to 1e-12 and finite where Φ₂ is far less than the least number."""
    h, k, angle = np.broadcast_arrays(h, k, angle)
    probability = bivariate(h, k, angle)
    found = np.log(np.where(probability > _EXACT, probability, 1.0))
    rare = np.flatnonzero(~(probability > _EXACT))
    for start in range(0, rare.size, _BLOCK):
        rows = rare[start : start + _BLOCK]
        found[rows] = _log_tail(h[rows], k[rows], angle[rows])
    return found


def _log_tail(h: Array, k: Array, angle: Array) -> Array:
    """∂Φ₂/∂ρ is the density (Plackett 1954): Φ₂ is its integral from ρ = −1, where
    Φ₂ = max(0, Φ(h) − Φ(−k)), a sum of two positive parts. With ρ = tanh y the density times
    dρ/dy is exp(−a e⁻²ʸ − b e²ʸ − c)/(2π cosh y), log-concave in y."""
    a, b = (h + k) ** 2 / 8.0, (h - k) ** 2 / 8.0
    # (h² + k²)/4 = a + b; the three are summed as squares so that they do not cancel.
    top = -np.log(np.tan(proper(angle) / 2.0))

    def log_density(row: NDArray[np.intp], y: Array) -> Array:
        e = np.exp(np.maximum(y, -200.0))
        left = a[row, None] * (1.0 / (e * e) + 1.0)
        right = b[row, None] * (e * e + 1.0)
        return -(left + right) - np.log(np.pi * (e + 1.0 / e))

    below = log_integral(log_density, top)
    low, high = np.minimum(h, k), np.maximum(h, k)
    one, other = log_ndtr(low), log_ndtr(-high)
    with np.errstate(divide="ignore"):
        ends = one + np.log(-np.expm1(np.minimum(other - one, 0.0)))
    return np.logaddexp(below, ends)
