"""Φ_m: P(Z < h) of m standard normals by Genz's transformation on fixed points."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp
from scipy.stats.qmc import Sobol

from skpref._orthant._quadrature import Array

# Points of one Gaussian; of the components of a mixture those of all, of each, and all at most.
_LOG_POINTS = 11
_LOG_SHARED, _LOG_LEAST, _LOG_MOST = 15, 5, 17
# Doubles of an array: what the caches hold.
_BLOCK = 2**16
_LEAST_VARIANCE = 1e-15
# Steps towards the means of draws of rare events, how far each goes, and the farthest mean.
_STEPS = 200
_DAMPING = 0.1
_FAR = 1e5


def multivariate(limits: Array, correlation: Array, parts: int = 1) -> Array:
    """Φ_m at limits (n, m) of correlations (n, m, m), m at least 2.

    Of each so many successive rows as there are ``parts`` only the mean is wanted: each has points
    of its own, fewer the more there are.
    """
    return _in_blocks(_average, limits, correlation, parts)


def log_multivariate(limits: Array, correlation: Array, parts: int = 1) -> Array:
    """log Φ_m, finite where Φ_m is far less than the least number; ``parts`` as above."""
    return _in_blocks(_log_average, limits, correlation, parts)


def _in_blocks(
    method: Callable[[Array, Array, Array], Array], limits: Array, correlation: Array, parts: int
) -> Array:
    n, m = limits.shape
    points = cube_points(m - 1, parts)
    found = np.empty(n)
    step = max(1, _BLOCK // (points.shape[2] * m))
    limits, factor = _ordered_factor(limits, correlation)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        own = points[rows % parts % len(points)]
        found[rows] = method(limits[rows], factor[rows], np.swapaxes(own, 0, 1))
    return found


def _average(limits: Array, factor: Array, points: Array) -> Array:
    n, m = limits.shape
    draws = np.empty((n, m - 1, points.shape[2]))
    total = np.ones((n, points.shape[2]))
    for j in range(m):
        upper = limits[:, j, None] - np.matmul(factor[:, j, None, :j], draws[:, :j])[:, 0]
        mass = ndtr(np.maximum(upper, -37.0))
        total *= mass
        if j < m - 1:
            draws[:, j] = ndtri(points[j] * mass)
    return total.mean(axis=1)


def _log_average(limits: Array, factor: Array, points: Array) -> Array:
    """Draws are of normals with means of their own (Botev 2017), as rare events ask for; where
    these make the weights no more even than none would, of normals with mean zero."""
    tilted, spread = _weights(limits, factor, points, _tilt(limits, factor))
    plain, plain_spread = _weights(limits, factor, points, np.zeros_like(limits))
    return np.where(spread < plain_spread, tilted, plain)


def _weights(limits: Array, factor: Array, points: Array, tilt: Array) -> tuple[Array, Array]:
    """Logarithm of the mean weight, and how uneven weights are: the log of their
    mean square by their squared mean."""
    n, m = limits.shape
    n_points = points.shape[2]
    draws = np.empty((n, m - 1, n_points))
    total = np.zeros((n, n_points))
    for j in range(m):
        shift = tilt[:, j, None]
        upper = limits[:, j, None] - np.matmul(factor[:, j, None, :j], draws[:, :j])[:, 0]
        mass = log_ndtr(upper - shift)
        total += mass
        if j < m - 1:
            draw = shift + ndtri_exp(np.log(points[j]) + mass)
            total += shift * (0.5 * shift - draw)
            draws[:, j] = draw
    log_mean = logsumexp(total, axis=1) - np.log(n_points)
    return log_mean, logsumexp(2.0 * total, axis=1) - np.log(n_points) - 2.0 * log_mean


def _tilt(limits: Array, factor: Array) -> Array:
    """Means near those that solve Botev (2017), (10), by damped steps: any are right, these make
    the weights even."""
    tilt, x = np.zeros_like(limits), np.zeros_like(limits)
    above = factor.transpose(0, 2, 1)
    for _ in range(_STEPS):
        bound = limits - np.matmul(factor, x[:, :, None])[:, :, 0] - tilt
        bound = np.clip(bound, -_FAR, _FAR)
        slope = np.exp(-0.5 * bound * bound - log_ndtr(bound)) / np.sqrt(2.0 * np.pi)
        new = -np.matmul(above, slope[:, :, None])[:, :, 0]
        tilt += _DAMPING * (np.clip(new, -_FAR, _FAR) - tilt)
        x += _DAMPING * (tilt - slope - x)
    return tilt


def _ordered_factor(limits: Array, correlation: Array) -> tuple[Array, Array]:
    """Cholesky factors with unit diagonal, and limits in these units, in the order in which
    each next variable is the one least likely to keep its limit given the mean of those
    before (Gibson, Glasbey and Elston 1994)."""
    n, m = limits.shape
    limits, correlation = limits.copy(), correlation.copy()
    factor = np.zeros((n, m, m))
    scaled = np.zeros((n, m, m))
    means = np.zeros((n, m))
    rows = np.arange(n)
    for j in range(m):
        rest = 1.0 - np.sum(factor[:, j:, :j] ** 2, axis=2)
        deviation = np.sqrt(np.maximum(rest, _LEAST_VARIANCE))
        upper = limits[:, j:] - np.matmul(factor[:, j:, :j], means[:, :j, None])[:, :, 0]
        upper /= deviation
        chosen = np.argmin(upper, axis=1)
        bound, pivot = upper[rows, chosen], deviation[rows, chosen]
        order = np.tile(np.arange(m), (n, 1))
        order[:, j], order[rows, chosen + j] = chosen + j, j
        limits = np.take_along_axis(limits, order, axis=1)
        factor = np.take_along_axis(factor, order[:, :, None], axis=1)
        correlation = correlation[rows[:, None, None], order[:, :, None], order[:, None, :]]
        factor[:, j, j] = pivot
        across = correlation[:, j + 1 :, j]
        across = across - np.matmul(factor[:, j + 1 :, :j], factor[:, j, :j, None])[:, :, 0]
        factor[:, j + 1 :, j] = across / pivot[:, None]
        # Mean of a standard normal below the bound, where there is a difference the bound itself.
        near = np.maximum(bound, -1e6)
        inside = -np.exp(-0.5 * near * near - log_ndtr(near)) / np.sqrt(2.0 * np.pi)
        means[:, j] = np.minimum(inside, bound)
        scaled[:, j, :j] = factor[:, j, :j] / pivot[:, None]
        limits[:, j] /= pivot
    return limits, scaled


@lru_cache(maxsize=32)
def cube_points(dimension: int, parts: int = 1) -> Array:
    """Points of the unit cube, (n_parts, dimension, n_points): a Sobol sequence, moved off its
    origin by half the distance of its coordinates. Each part is the next so many of it, so that
    every one and all together fill the cube evenly; beyond 2¹⁷ points they are used again."""
    of_each = _LOG_POINTS
    if parts > 1:
        of_each = int(np.clip(round(_LOG_SHARED - np.log2(parts)), _LOG_LEAST, _LOG_POINTS))
    every = min(of_each + int(np.ceil(np.log2(parts))), _LOG_MOST)
    points = Sobol(dimension, scramble=False).random_base2(every)
    points += 0.5 / len(points)
    points = points.reshape(-1, 2**of_each, dimension)[:parts]
    points = np.ascontiguousarray(np.swapaxes(points, 1, 2))
    points.flags.writeable = False
    return points
