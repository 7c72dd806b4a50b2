"""Integrals of many functions at once: by halving panels, and of log-concave functions in
logarithms, wherever their mass lies."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
# Takes which functions (p,) and arguments (p, m) of each, gives values (p, m).
Family: TypeAlias = Callable[[NDArray[np.intp], Array], Array]

# A panel is halved while its last Legendre coefficients say that it is not resolved to this.
_TOLERANCE = 2e-9
_HALVINGS = 40
# Where more panels of one function than this are unresolved at once, it is rounding that they show.
_MOST_COARSE = 24
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_LAST = np.polynomial.legendre.legvander(_NODES, _NODES.size - 1) * (np.arange(_NODES.size) + 0.5)
_LAST = _LAST[:, -2:] * _WEIGHTS[:, None]

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# The peak is sought in t, x = top − sinh t; sinh 30 is 5e12.
_FARTHEST = 30.0
_SEARCHES = 70
# What is e⁻⁴⁰ of the peak is left out.
_DROP = 40.0
# Panels away from the peak, in shares of the way to where the function is that low: the nearest
# see an edge that the peak stands on.
_EDGES = np.array([0.0, 2e-3, 0.03, 0.2, 0.5, 1.0])


def integral(function: Family, edges: Array, tolerance: Array | float = _TOLERANCE) -> Array:
    """Integrals (n,) of n functions between the first and the last of their edges (n, e);
    panels start between successive edges and stop at a tolerance (n,) each."""
    n = len(edges)
    found = np.zeros(n)
    tolerance = np.broadcast_to(tolerance, n)
    row, panel = np.nonzero(np.diff(edges, axis=1) > 0.0)
    low, high = edges[row, panel], edges[row, panel + 1]
    for halving in range(_HALVINGS + 1):
        half = (high - low)[:, None] / 2.0
        value = half * function(row, (low + high)[:, None] / 2.0 + half * _NODES)
        coarse = np.abs(value @ _LAST).sum(axis=1) > tolerance[row]
        coarse &= np.bincount(row[coarse], minlength=n)[row] <= _MOST_COARSE
        coarse &= halving < _HALVINGS
        np.add.at(found, row[~coarse], value[~coarse] @ _WEIGHTS)
        if not coarse.any():
            break
        middle = (low[coarse] + high[coarse]) / 2.0
        low = np.concatenate([low[coarse], middle])
        high = np.concatenate([middle, high[coarse]])
        row = np.tile(row[coarse], 2)
    return found


def log_integral(log_density: Family, top: Array) -> Array:
    """log ∫ exp(g(x)) dx from −∞ to top (n,), for n concave functions g at once."""
    all_rows = np.arange(len(top))

    def at(x: Array) -> Array:
        return log_density(all_rows, x[:, None])[:, 0]

    peak, away = _peak(at, top)
    height = at(peak)
    left = _reach(at, peak, height, -1.0, np.full_like(peak, np.inf))
    right = _reach(at, peak, height, 1.0, away)
    width = left + right
    # In shares of the width from the peak on, so that rounding of a far peak closes no panel.
    edges = np.concatenate([-left[:, None] * _EDGES[:0:-1], right[:, None] * _EDGES], axis=1)

    def share(row: NDArray[np.intp], x: Array) -> Array:
        relative = log_density(row, peak[row, None] + width[row, None] * x) - height[row, None]
        return np.exp(np.minimum(relative, 2.0 * _DROP))

    # Values of g have rounding in proportion to their size.
    tolerance = _TOLERANCE + 1e-14 * np.abs(height)
    return height + np.log(width) + np.log(integral(share, edges / width[:, None], tolerance))


def _peak(at: Callable[[Array], Array], top: Array) -> tuple[Array, Array]:
    """Where g is largest, by golden section, and how far below top."""

    def value(t: Array) -> Array:
        return at(top - np.sinh(t))

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
    at: Callable[[Array], Array], peak: Array, height: Array, side: float, most: Array
) -> Array:
    """Distance from the peak, at most ``most``, at which g has fallen by the drop."""
    low, high = np.full_like(peak, -16.0), np.full_like(peak, 13.0)
    for _ in range(16):
        middle = (low + high) / 2.0
        distance = np.minimum(10.0**middle, most)
        inside = at(peak + side * distance) > height - _DROP
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.minimum(10.0**high, most)
