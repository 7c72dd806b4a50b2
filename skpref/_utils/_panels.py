"""Integrals of many functions at once, on panels that are halved until they resolve them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpref._utils._linalg import Array

_ORDER = 24
PANEL_NODES, PANEL_WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
# What lies where an integrand is below e to minus this of its peak is left out.
DEPTH = 40.0
# A panel is halved up to so many times, and where more panels of one function than this are open
# at once, it is rounding that they show.
_MOST = 64


def _panel_points() -> Array:
    """Return the ends of a panel, from −1 to 1, and the nodes between them."""
    return np.concatenate([[-1.0], PANEL_NODES, [1.0]])


def _error_rows() -> Array:
    """Return rows that tell the error of a panel: last coefficients, and misfit at both ends."""
    j = np.arange(_ORDER)
    fit = (
        np.polynomial.legendre.legvander(PANEL_NODES, _ORDER - 1).T
        * PANEL_WEIGHTS
        * (j + 0.5)[:, None]
    )
    ends = np.polynomial.legendre.legvander(_panel_points()[[0, -1]], _ORDER - 1) @ fit
    rows: Array = np.pad(np.vstack([fit[-2:], ends]), ((0, 0), (1, 1)))
    rows[2, 0] = rows[3, -1] = -1.0
    return rows


_POINTS, _ERROR_ROWS = _panel_points(), _error_rows()


def adaptive_panels(
    function: Callable[[NDArray[np.intp], Array], Array],
    edges: Array,
    least: Array | float,
    floor: float = 0.0,
) -> tuple[Array, NDArray[np.intp], Array]:
    """Return nodes, the function of each, and its values there times weights, to be summed.

    A Gauss–Legendre panel is halved where the function's last coefficients in Legendre polynomials
    are not small, or their sum misses the function at an end.

    Parameters
    ----------
    function : callable
        ``function(row, x)``: values (p, m) of functions, by their numbers (p,), at x (p, m).
    edges : ndarray of shape (n, e)
        Of the first panels, ascending; between the outer ones the n functions are integrated.
    least : ndarray of shape (n,) or float
        Share of an integral that may be left unresolved; the error is about its square.
    floor : float, default=0.0
        Size of an integral from which on that is a share of it, and not of this number.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref._utils import adaptive_panels
    >>> _, _, parts = adaptive_panels(lambda row, x: np.exp(x), np.array([[0.0, 1.0]]), 1e-10)
    >>> bool(np.isclose(parts.sum(), np.e - 1.0))
    True
    """
    n = len(edges)
    least = np.broadcast_to(least, n)
    row, panel = np.nonzero(np.diff(edges, axis=1) > 0.0)
    begin, end = edges[row, panel], edges[row, panel + 1]
    total, done = np.zeros(n), []
    for halving in range(_MOST + 1):
        middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
        points = middle[:, None] + half[:, None] * _POINTS
        values = function(row, points)
        weighted = half[:, None] * PANEL_WEIGHTS * values[:, 1:-1]
        sums = weighted.sum(axis=1)
        whole = np.maximum(total + np.bincount(row, sums, n), floor)
        doubt = half * np.abs(values @ _ERROR_ROWS.T).sum(axis=1)
        open_ = (doubt > least[row] * whole[row]) & (halving < _MOST)
        open_ &= np.bincount(row[open_], minlength=n)[row] <= _MOST
        is_resolved = ~open_
        inner = points[is_resolved, 1:-1].ravel()
        done.append((inner, np.repeat(row[is_resolved], _ORDER), weighted[is_resolved].ravel()))
        total += np.bincount(row[is_resolved], sums[is_resolved], n)
        if not open_.any():
            break
        begin = np.concatenate([begin[open_], middle[open_]])
        end = np.concatenate([middle[open_], end[open_]])
        row = np.tile(row[open_], 2)
    nodes, rows, parts = (np.concatenate(each) for each in zip(*done, strict=True))
    return nodes, rows, parts
