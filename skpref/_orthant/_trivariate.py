"""Φ₃: P(Z < h) of three standard normals, by one integral over Φ₂ given one of them."""

import numpy as np
from numpy.typing import NDArray

from skpref._orthant._bivariate import bivariate, given, log_bivariate, proper
from skpref._orthant._quadrature import Array, integral, log_integral

# Beyond this a normal density holds 5e-17.
_FAR = 8.3
# Steps and bends narrower than this could lie between the nodes of a panel: panels end there, and
# at this many widths to either side.
_NARROW = 0.3
_SPREAD = 7.0
_BLOCK = 4096
_LOG_BLOCK = 256


def trivariate(limits: Array, angles: Array) -> Array:
    """Φ₃ to an absolute 1e-9.

    Parameters
    ----------
    limits : ndarray of shape (n, 3)
        Finite.
    angles : ndarray of shape (n, 3, 3)
        The correlations are their cosines.
    """
    found = np.zeros(len(limits))
    for start in range(0, len(limits), _BLOCK):
        rows = slice(start, start + _BLOCK)
        found[rows] = _integral(*_conditioned(limits[rows], angles[rows]))
    return found


def log_trivariate(limits: Array, angles: Array) -> Array:
    """log Φ₃, to 1e-7 and finite where Φ₃ is far less than the least number."""
    found = np.zeros(len(limits))
    for start in range(0, len(limits), _LOG_BLOCK):
        rows = slice(start, start + _LOG_BLOCK)
        found[rows] = _log_tail(*_conditioned(limits[rows], angles[rows]))
    return found


def _conditioned(limits: Array, angles: Array) -> tuple[Array, Array, Array]:
    """Limits with the least first, the angles of the other two with it, and the angle between
    these two given it."""
    first = np.argmin(limits, axis=1)[:, None]
    order = (first + np.arange(3)) % 3
    limits = np.take_along_axis(limits, order, axis=1)
    rows = np.arange(len(limits))
    one, other = angles[rows, order[:, 0], order[:, 1]], angles[rows, order[:, 0], order[:, 2]]
    between = angles[rows, order[:, 1], order[:, 2]]
    # The spherical triangle's angle by its half: exact where correlations are near ±1.
    half = (one + other + between) / 2.0
    minus = np.sin(half - one) * np.sin(half - other)
    plus = np.sin(half) * np.sin(half - between)
    residual = 2.0 * np.arctan2(np.sqrt(np.maximum(minus, 0.0)), np.sqrt(np.maximum(plus, 0.0)))
    return limits, proper(np.stack([one, other], axis=1)), proper(residual)


def _integral(limits: Array, angles: Array, residual: Array) -> Array:
    top = np.clip(limits[:, 0], -_FAR, _FAR)
    edges = np.clip(_breaks(limits, angles, residual), -_FAR, top[:, None])
    edges = np.sort(np.column_stack([edges, np.full(len(top), -_FAR), top]), axis=1)

    def density(row: NDArray[np.intp], x: Array) -> Array:
        one = given(limits[row, 1, None], x, angles[row, 0, None])
        other = given(limits[row, 2, None], x, angles[row, 1, None])
        return (
            np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) * bivariate(one, other, residual[row, None])
        )

    return integral(density, edges)


def _breaks(limits: Array, angles: Array, residual: Array) -> Array:
    """Ends of the places at which Φ₂ has a step, where a conditional limit passes zero, or a bend,
    where the two are equal or opposite; where correlations are near ±1 these are narrow."""
    sine, cosine = np.sin(angles), np.cos(angles)
    # The slopes of two lines that cross, and the height at which they do, all times the sines.
    ends = limits[:, 1:] * sine[:, ::-1]
    slopes = cosine * sine[:, ::-1]
    bend = (np.sin(residual) * sine[:, 0] * sine[:, 1])[:, None]
    signs = np.array([1.0, -1.0])
    rise = np.column_stack([limits[:, 1:], ends[:, :1] - signs * ends[:, 1:]])
    slope = np.column_stack([cosine, slopes[:, :1] - signs * slopes[:, 1:]])
    width = np.column_stack([sine, bend, bend])
    narrow = width < _NARROW * np.abs(slope)
    slope = np.where(narrow, slope, 1.0)
    centre, width = rise / slope, _SPREAD * width / np.abs(slope)
    places = np.stack([centre - width, centre, centre + width], axis=2)
    return np.where(narrow[:, :, None], places, -_FAR).reshape(len(limits), -1)


def _log_tail(limits: Array, angles: Array, residual: Array) -> Array:
    def log_density(row: NDArray[np.intp], x: Array) -> Array:
        one = given(limits[row, 1, None], x, angles[row, 0, None])
        other = given(limits[row, 2, None], x, angles[row, 1, None])
        between = np.repeat(residual[row], x.shape[1])
        inner = log_bivariate(one.ravel(), other.ravel(), between).reshape(x.shape)
        return inner - 0.5 * x * x - 0.5 * np.log(2.0 * np.pi)

    return log_integral(log_density, limits[:, 0])
