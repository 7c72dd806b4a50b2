"""Integrals of log-concave functions, in logarithms and wherever their mass lies."""

from collections.abc import Callable

import numpy as np

from skpref._linalg import Array

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# The peak is sought in t, x = top − sinh t; sinh 30 is 5e12.
_FARTHEST = 30.0
_SEARCHES = 70
# What is e⁻⁴⁰ of the peak is left out.
_DROP = 40.0
# Panels away from the peak, in shares of the way to where the function is that low: the nearest
# resolve an edge that the peak stands on.
_EDGES = np.array([0.0, 3e-4, 2e-3, 0.01, 0.05, 0.2, 0.5, 1.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_STEPS = (_EDGES[:-1, None] + np.diff(_EDGES)[:, None] * (_NODES + 1.0) / 2.0).ravel()
_SHARES = (np.diff(_EDGES)[:, None] * _WEIGHTS / 2.0).ravel()


def log_integral(log_density: Callable[[Array], Array], top: Array) -> Array:
    """log ∫ exp(g(x)) dx from −∞ to top, for n concave functions g at once.

    Parameters
    ----------
    log_density : callable
        Takes x of shape (n,) or (n, m), a row for each g, and gives g likewise.
    top : ndarray of shape (n,)
    """
    peak, away = _peak(log_density, top)
    height = log_density(peak)
    left = _reach(log_density, peak, height, -1.0, np.inf)
    right = _reach(log_density, peak, height, 1.0, away)
    x = peak[:, None] + np.concatenate([-left[:, None] * _STEPS, right[:, None] * _STEPS], axis=1)
    weight = np.concatenate([left[:, None] * _SHARES, right[:, None] * _SHARES], axis=1)
    relative = np.minimum(log_density(x) - height[:, None], 2.0 * _DROP)
    return height + np.log(np.sum(weight * np.exp(relative), axis=1))


def _peak(log_density: Callable[[Array], Array], top: Array) -> tuple[Array, Array]:
    """Where g is largest, by golden section, and how far below top."""

    def value(t: Array) -> Array:
        return log_density(top - np.sinh(t))

    low, high = np.zeros_like(top), np.full_like(top, _FARTHEST)
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = value(inner), value(outer)
    for _ in range(_SEARCHES):
        nearer = at_inner >= at_outer
        high, low = np.where(nearer, outer, high), np.where(nearer, low, inner)
        new = np.where(nearer, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_new = value(new)
        inner, outer = np.where(nearer, new, outer), np.where(nearer, inner, new)
        at_inner, at_outer = (
            np.where(nearer, at_new, at_outer),
            np.where(nearer, at_inner, at_new),
        )
    away = np.sinh(low)
    return top - away, away


def _reach(
    log_density: Callable[[Array], Array], peak: Array, height: Array, side: float, most: Array
) -> Array:
    """Distance from the peak, at most ``most``, at which g has fallen by the drop."""
    low, high = np.full_like(peak, -16.0), np.full_like(peak, 13.0)
    for _ in range(16):
        middle = (low + high) / 2.0
        distance = np.minimum(10.0**middle, most)
        inside = log_density(peak + side * distance) > height - _DROP
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.minimum(10.0**high, most)
