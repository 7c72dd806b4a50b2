"""Integrals of a log-concave factor times a Gaussian, row by row, by adaptive quadrature.

1. The mode of the integrand, and where it has fallen to nothing on either side.
2. Gauss–Legendre panels between these. One on which the integrand is not resolved is halved: where
   its last coefficients in Legendre polynomials are not small, or their sum misses the integrand at
   an end. A factor may change within a small part of the Gaussian's width, and far from the mode.
"""

from typing import NamedTuple

import numpy as np

from skpref._utils import DEPTH, ITERATION_CAP, NEGLIGIBLE, adaptive_panels
from skpref.data import Answers

# Where doubts of a panel are so small beside the whole integral, the quadrature, exact to twice the
# degree, is so to about their square; below a multiple of what rounding the integrand's logarithm
# leaves there is nothing to resolve.
_ROUNDING = 1e3 * np.finfo(np.float64).eps


class QuadratureNodes(NamedTuple):
    """Nodes of all rows, the row of each, and its share of the row's integral.

    ``density`` sums to 1 over a row; ``log_normaliser`` is the logarithm of the integral.
    """

    nodes: np.ndarray
    row: np.ndarray
    density: np.ndarray
    log_normaliser: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    answers: Answers
    power: np.ndarray

    def moments(self):
        """Return the log normaliser, its derivatives in the mean, and the ratio of variances.

        The ratio is that of the tilted distribution to the Gaussian.
        """
        off = self.nodes - self.mean[self.row]
        centre = self._row_sums(off)
        spread = self._row_sums((off - centre[self.row]) ** 2)
        shrink = np.clip(spread / self.variance, 1e-300, 1.0)
        return self.log_normaliser, centre / self.variance, (1.0 - shrink) / self.variance, shrink

    def expectation(self, function):
        """Return the tilted mean of power × function(margin, answers) → (k, n), shape (k, n)."""
        values = np.asarray(function(self.nodes, self.answers.take(self.row)))
        return self.power * np.stack([self._row_sums(each) for each in values])

    def _row_sums(self, values):
        """Sum values with the density of their nodes over each row."""
        return np.bincount(self.row, self.density * values, len(self.mean))


def quadrature_nodes(log_prob, log_value, mean, variance, answers, power=None):
    """Lay nodes over N(z; mean, variance) p(answer | z)^power.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, answers)`` → value, d/dm, −d²/dm², …, concave in the margin.
    log_value : callable
        Its value alone.
    mean, variance : ndarray of shape (n,)
        The variance is positive.
    answers : Answers
    power : ndarray of shape (n,), optional

    Returns
    -------
    QuadratureNodes
    """
    mean, variance = (np.asarray(a, dtype=np.float64) for a in (mean, variance))
    power = np.ones(len(mean)) if power is None else np.asarray(power, dtype=np.float64)

    def height(z, rows=slice(None)):
        value = power[rows] * log_value(z, answers.take(rows))
        return value - 0.5 * (z - mean[rows]) ** 2 / variance[rows]

    mode = _find_mode(log_prob, mean, variance, answers, power)
    top = height(mode)
    reach = np.sqrt(2.0 * DEPTH * variance)  # a Gaussian alone has fallen by then
    low, high = mode - reach, mode + reach
    slope = (np.abs(mode - mean) + high - low) / variance
    rounding = 1.0 + np.abs(top) + slope * np.maximum(np.abs(low), np.abs(high))
    least = NEGLIGIBLE + _ROUNDING * rounding

    def density_at(row, z):
        rows = np.repeat(row, z.shape[1])
        return np.exp(height(z.ravel(), rows).reshape(z.shape) - top[row, None])

    nodes, row, density = adaptive_panels(density_at, np.stack([low, mode, high], axis=1), least)
    total = np.bincount(row, density, len(mean))
    log_normaliser = np.log(total) + top - 0.5 * np.log(2.0 * np.pi * variance)
    density /= total[row]
    return QuadratureNodes(nodes, row, density, log_normaliser, mean, variance, answers, power)


def _find_mode(log_prob, mean, variance, answers, power):
    """Find the mode of a log-concave integrand by Newton's method within a bracket."""
    z, low, high = mean.copy(), np.full(len(mean), -np.inf), np.full(len(mean), np.inf)
    for _ in range(ITERATION_CAP):
        _, gradient, curvature, *_ = log_prob(z, answers)
        slope = power * gradient - (z - mean) / variance
        low, high = np.where(slope > 0.0, z, low), np.where(slope < 0.0, z, high)
        step = slope / (power * np.maximum(curvature, 0.0) + 1.0 / variance)
        ahead = z + step
        outside = (ahead <= low) | (ahead >= high)
        bracketed = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            ahead = np.where(outside & bracketed, 0.5 * (low + high), ahead)
        done = np.abs(ahead - z) <= 1e-2 * np.sqrt(variance)
        z = ahead
        if done.all():
            break
    return z
