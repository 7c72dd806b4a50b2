"""Φ_m: P(Z < h) of m standard normals by Genz's transformation on a fixed lattice."""

from functools import cache

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp
from scipy.stats.qmc import Sobol

from skpref._linalg import Array

_LOG_POINTS = 11
# Doubles of an array: what the caches hold.
_BLOCK = 2**16
_LEAST_VARIANCE = 1e-15


def multivariate(limits: Array, correlation: Array, log: bool = False) -> Array:
    """Φ_m, or its logarithm.

    Parameters
    ----------
    limits : ndarray of shape (n, m)
    correlation : ndarray of shape (n, m, m)
    log : bool, default=False
        The logarithm, finite where Φ_m is far less than the least number.
    """
    n, m = limits.shape
    points = lattice(m - 1)
    found = np.empty(n)
    step = max(1, _BLOCK // (points.shape[1] * m))
    limits, factor = _ordered_factor(limits, correlation)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        found[rows] = _average(limits[rows], factor[rows], points, log)
    return found


def _average(limits: Array, factor: Array, points: Array, log: bool) -> Array:
    n, m = limits.shape
    draws = np.empty((n, m - 1, points.shape[1]))
    total = np.zeros((n, points.shape[1]))
    for j in range(m):
        upper = limits[:, j, None] - np.matmul(factor[:, j, None, :j], draws[:, :j])[:, 0]
        if log:
            mass = log_ndtr(upper)
            total += mass
            if j < m - 1:
                draws[:, j] = ndtri_exp(np.log(points[j]) + mass)
        else:
            mass = ndtr(np.maximum(upper, -37.0))
            total = mass if j == 0 else total * mass
            if j < m - 1:
                draws[:, j] = ndtri(points[j] * mass)
    if log:
        return logsumexp(total, axis=1) - np.log(points.shape[1])
    return total.mean(axis=1)


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


@cache
def lattice(dimension: int) -> Array:
    """Points of the unit cube, a column each: the start of a Sobol sequence, moved off its origin
    by half the distance of its coordinates."""
    points = Sobol(dimension, scramble=False).random_base2(_LOG_POINTS).T
    points += 0.5 / points.shape[1]
    points.flags.writeable = False
    return points
