"""Roots of many functions at once, between brackets."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpref._utils._linalg import Array

_TINY, _EPS = np.finfo(float).tiny, np.finfo(float).eps


def bracketed_roots(
    of: Callable[[Array, NDArray[np.intp]], Array], low: Array, high: Array
) -> Array:
    """Return the roots of n functions, each between its brackets, to the last bits.

    Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
    interpolation where it is safe, halves elsewhere. ``scipy.optimize.elementwise``, which does the
    same, is of SciPy 1.15.

    Parameters
    ----------
    of : callable
        ``of(x, rows)`` → values of the functions of these rows at x, each of shape (n_rows,).
    low, high : ndarray of shape (n,)
        The functions have opposite signs there, or are 0.

    Returns
    -------
    ndarray of shape (n,)
        Of a function that does not change its sign NaN; one that jumps over 0 does so there.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref._utils import bracketed_roots
    >>> squares = np.array([4.0, 9.0])
    >>> bracketed_roots(lambda x, rows: x**2 - squares[rows], np.zeros(2), np.full(2, 5.0))
    array([2., 3.])
    """
    rows, roots = np.arange(len(low)), np.full(len(low), np.nan)
    a, b = np.array(low, dtype=float), np.array(high, dtype=float)
    at_a, at_b = of(a, rows), of(b, rows)
    crosses = np.sign(at_a) * np.sign(at_b) <= 0.0
    rows, a, b, at_a, at_b = rows[crosses], a[crosses], b[crosses], at_a[crosses], at_b[crosses]
    share = np.full(len(rows), 0.5)
    while True:
        best = np.where(np.abs(at_a) < np.abs(at_b), a, b)
        width = 4.0 * (_EPS * np.abs(best) + _TINY)
        goes_on = (np.minimum(np.abs(at_a), np.abs(at_b)) > 0.0) & (np.abs(b - a) > width)
        roots[rows[~goes_on]] = best[~goes_on]
        if not goes_on.any():
            return roots
        rows, share, width = rows[goes_on], share[goes_on], width[goes_on]
        a, b, at_a, at_b = a[goes_on], b[goes_on], at_a[goes_on], at_b[goes_on]
        x = a + share * (b - a)
        at_x = of(x, rows)
        same = np.sign(at_x) == np.sign(at_a)
        c, at_c = np.where(same, a, b), np.where(same, at_a, at_b)
        b, at_b = np.where(same, b, a), np.where(same, at_b, at_a)
        a, at_a = x, at_x
        share = _next_bracket_share((a, b, c), (at_a, at_b, at_c), width)


def _next_bracket_share(places: tuple, values: tuple, width: Array) -> Array:
    """Return where between a and b to look next: a parabola's root, or the middle."""
    (a, b, c), (at_a, at_b, at_c) = places, values
    with np.errstate(all="ignore"):
        xi, phi = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
        share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
        share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        least = np.minimum(0.5 * width / np.abs(b - a), 0.5)
    return np.clip(np.where(safe, share, 0.5), least, 1.0 - least)
