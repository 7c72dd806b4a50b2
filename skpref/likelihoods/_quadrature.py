"""Integrals of a log-concave factor times a Gaussian, row by row, by Gauss–Legendre panels."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

# Nodes of a panel, and where the panels of a side end, as shares of its length: log-concave factors
# may change within a small part of the Gaussian's width, next to the mode.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_ENDS = np.array([0.0, 0.04, 0.2, 1.0])
# What lies where the integrand is below e to minus this is left out.
_DEPTH = 45.0
_NEWTON = 60
_BISECTIONS = 24


class Grid(NamedTuple):
    """Nodes (n, q) of every row, the logarithm of the tilted density there, and the weights.

    ``density`` sums to 1 over a row; ``log_normaliser`` is the logarithm of the integral.
    """

    nodes: np.ndarray
    density: np.ndarray
    log_normaliser: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    answers: object
    power: np.ndarray

    def moments(self):
        """Log normaliser, its derivatives in the mean, and tilted over Gaussian variance."""
        off = self.nodes - self.mean[:, None]
        centre = (self.density * off).sum(axis=1)
        spread = (self.density * (off - centre[:, None]) ** 2).sum(axis=1)
        shrink = np.clip(spread / self.variance, 1e-300, 1.0)
        return self.log_normaliser, centre / self.variance, (1.0 - shrink) / self.variance, shrink

    def expectation(self, function):
        """Tilted mean of power × function(margin, answers) → (k, n), shape (k, n)."""
        n, q = self.nodes.shape
        values = function(self.nodes.ravel(), self.answers.take(np.repeat(np.arange(n), q)))
        weighted = np.asarray(values).reshape(-1, n, q) * self.density
        return self.power * weighted.sum(axis=2)


def grid(log_prob, mean, variance, answers, power=None):
    """Lay nodes around the mode of N(z; mean, variance) p(answer | z)^power.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, answers)`` → value, d/dm, −d²/dm², …, concave in the margin.
    mean, variance : ndarray of shape (n,)
        The variance is positive.
    answers : Answers
    power : ndarray of shape (n,), optional

    Returns
    -------
    Grid
    """
    mean, variance = (np.asarray(a, dtype=np.float64) for a in (mean, variance))
    power = np.ones(len(mean)) if power is None else np.asarray(power, dtype=np.float64)

    def height(z, rows=slice(None)):
        value = power[rows] * log_prob(z, answers.take(rows))[0]
        return value - 0.5 * (z - mean[rows]) ** 2 / variance[rows]

    mode = _mode(log_prob, mean, variance, answers, power)
    top = height(mode)
    ends = [_end(height, mode, top, side * np.sqrt(variance)) for side in (-1.0, 1.0)]
    nodes, weights = [], []
    for end in ends:
        length = end - mode
        for a, b in pairwise(_ENDS):
            half = 0.5 * (b - a) * length
            nodes.append((mode + 0.5 * (a + b) * length)[:, None] + half[:, None] * _NODES)
            weights.append(np.abs(half)[:, None] * _WEIGHTS)
    nodes, weights = np.hstack(nodes), np.hstack(weights)
    n, q = nodes.shape
    each = height(nodes.ravel(), np.repeat(np.arange(n), q)).reshape(n, q)
    density = weights * np.exp(each - top[:, None])
    total = density.sum(axis=1)
    log_normaliser = np.log(total) + top - 0.5 * np.log(2.0 * np.pi * variance)
    return Grid(nodes, density / total[:, None], log_normaliser, mean, variance, answers, power)


def _mode(log_prob, mean, variance, answers, power):
    """Where the concave log integrand is largest: Newton's method within a bracket."""
    z, low, high = mean.copy(), np.full(len(mean), -np.inf), np.full(len(mean), np.inf)
    for _ in range(_NEWTON):
        _, gradient, curvature, *_ = log_prob(z, answers)
        slope = power * gradient - (z - mean) / variance
        low, high = np.where(slope > 0.0, z, low), np.where(slope < 0.0, z, high)
        step = slope / (power * np.maximum(curvature, 0.0) + 1.0 / variance)
        ahead = z + step
        outside = (ahead <= low) | (ahead >= high)
        bracketed = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            ahead = np.where(outside & bracketed, 0.5 * (low + high), ahead)
        done = np.abs(ahead - z) <= 1e-9 * np.sqrt(variance)
        z = ahead
        if done.all():
            break
    return z


def _end(height, mode, top, step):
    """Where the integrand has fallen by `_DEPTH`, on one side of the mode."""
    far = mode + step * np.sqrt(2.0 * _DEPTH)  # a Gaussian alone has fallen by then
    near = mode.copy()
    for _ in range(_BISECTIONS):
        middle = 0.5 * (near + far)
        below = height(middle) < top - _DEPTH
        far, near = np.where(below, middle, far), np.where(below, near, middle)
    return far
