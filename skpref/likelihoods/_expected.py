"""Expectations of log-probabilities under a Gaussian margin, for variational inference."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from skpref._utils import Array, row_blocks

_HERMITE = 32
_LEGENDRE = 24
# Deviations of the margin, in those of the noise, up to which Gauss–Hermite's rule of few nodes has
# an error of 1e-9 for the probit; beyond, its bend is integrated on panels of its own.
_NARROW = 1.0
_NARROW_NODES = 20
# log Φ(u) is nothing above, and a standard normal beyond ±_TAIL deviations.
_SURE = 6.5
_TAIL = 8.5
# Deviations below this count as it: what is divided by them would be rounding.
_LEAST = 1e-7
# Doubles of one intermediate array.
_BLOCK = 2**19
_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)


class Expected(NamedTuple):
    """E[log p(answer | margin)] under a Gaussian margin, and its derivatives in both moments.

    ``by_variance`` is not positive, as log-probabilities are concave in the margin. ``by_noise`` is
    the derivative in the variance of the noise on the margin.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.likelihoods import Answers, Probit
    >>> won = Answers(np.array([DUEL]), np.array([1]))
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> found = Probit(noise_variance=0.5).expected(zero, one, zero, won)
    >>> found.value.round(3), bool(found.by_variance[0] < 0.0)
    (array([-1.]), True)
    """

    value: Array
    by_mean: Array
    by_variance: Array
    by_noise: Array


class Ndtr(NamedTuple):
    """E[log Φ(u)] and its derivatives in the moments of u."""

    value: Array
    by_mean: Array
    by_variance: Array


def _hermite(n):
    """Nodes and weights for expectations under a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


_WIDE, _FEW = _hermite(_HERMITE), _hermite(_NARROW_NODES)
_PANEL = np.polynomial.legendre.leggauss(_LEGENDRE)


def expected(log_prob: Callable, mean, variance) -> Expected:
    """Gauss–Hermite's rule, whose derivatives are those of the rule itself.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, row)`` → value, d/dm, d/dnoise of answers by their numbers, their
        probabilities being averages over noise on the margin.
    mean, variance : ndarray of shape (n,)
    """
    nodes, weights = _WIDE
    deviation = np.maximum(np.sqrt(variance), _LEAST)
    value, by_mean, along, by_noise = np.empty((4, len(mean)))
    for rows in row_blocks(len(mean), len(nodes), _BLOCK):
        margin = mean[rows, None] + deviation[rows, None] * nodes
        row = np.repeat(np.arange(len(mean))[rows], len(nodes))
        at = log_prob(margin.ravel(), row)
        level, gradient, widening = (each.reshape(margin.shape) for each in at)
        value[rows], by_mean[rows] = level @ weights, gradient @ weights
        along[rows] = gradient @ (weights * nodes)
        by_noise[rows] = widening @ weights
    return Expected(value, by_mean, _by_variance(along, deviation), by_noise)


def expectations(function: Callable, mean, variance) -> Array:
    """Expectations of ``function(margin, row)`` → (k, n), shape (k, n)."""
    nodes, weights = _WIDE
    deviation, parts = np.sqrt(variance), []
    for rows in row_blocks(len(mean), len(nodes), _BLOCK):
        margin = mean[rows, None] + deviation[rows, None] * nodes
        row = np.repeat(np.arange(len(mean))[rows], len(nodes))
        values = np.asarray(function(margin.ravel(), row))
        parts.append(values.reshape(len(values), *margin.shape) @ weights)
    return np.concatenate(parts, axis=1) if parts else np.zeros((0, 0))


def averaged(log_prob: Callable, margin, noise, answers) -> tuple[Array, Array, Array]:
    """Log of the mean probability over noise on the margin: value, d/dm, d/dnoise.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, answers)`` → value, d/dm, ….
    margin, noise : ndarray of shape (n,)
    answers : Answers
    """
    found = np.empty((3, len(margin)))
    for rows, at, several in _noisy(margin, noise, answers):
        value, gradient = (each.reshape(at.shape) for each in log_prob(at.ravel(), several)[:2])
        share, found[0, rows] = _shares(value)
        share *= gradient
        found[1, rows], found[2, rows] = np.sum(share, axis=1), share @ _WIDE[0]
    value, by_mean, along = found
    return value, by_mean, 0.5 * along / np.maximum(np.sqrt(noise), _LEAST)


def averaged_slopes(log_prob: Callable, slopes: Callable, margin, noise, answers) -> Array:
    """Derivatives of the value of `averaged` whose summands' are ``slopes(margin, answers)``."""
    parts = []
    for _, at, several in _noisy(margin, noise, answers):
        share, _ = _shares(log_prob(at.ravel(), several)[0].reshape(at.shape))
        each = np.asarray(slopes(at.ravel(), several))
        parts.append(np.sum(each.reshape(len(each), *at.shape) * share, axis=2))
    return np.concatenate(parts, axis=1)


def _noisy(margin, noise, answers):
    """Blocks of rows with their nodes, and the answers as often."""
    nodes, _ = _WIDE
    deviation = np.maximum(np.sqrt(noise), _LEAST)
    for rows in row_blocks(len(margin), len(nodes), _BLOCK):
        at = margin[rows, None] + deviation[rows, None] * nodes
        yield rows, at, answers.take(np.repeat(np.arange(len(margin))[rows], len(nodes)))


def _shares(value):
    """Of each node in the mean probability, and its logarithm."""
    top = value.max(axis=1)
    share = np.exp(value - top[:, None]) * _WIDE[1]
    total = share.sum(axis=1)
    return share / total[:, None], np.log(total) + top


def expected_log_ndtr(mean: Array, variance: Array, with_value: bool = True) -> Ndtr:
    """E[log Φ(u)], u ~ N(mean, variance); without its value that is NaN."""
    deviation = np.maximum(np.sqrt(variance), _LEAST)
    found = np.full((3, len(mean)), np.nan)
    # Far below zero log Φ is all but a parabola, however wide the Gaussian.
    narrow = (deviation <= _NARROW) | (mean < -6.0 * deviation)
    nodes, weights = _FEW
    for part in (narrow, ~narrow):
        every = np.flatnonzero(part)
        for block in row_blocks(len(every), 2 * _LEGENDRE, _BLOCK):
            rows = every[block]
            m, s = mean[rows], deviation[rows]
            x, w = (nodes, weights) if part is narrow else _panels(m, s)
            u = m[:, None] + s[:, None] * x
            with np.errstate(over="ignore"):
                tail = erfcx(-_SQRT_HALF * u)
            ratio = _SQRT_2_OVER_PI / tail
            if with_value:
                # log Φ(u) to an absolute error of rounding; where it is none, erfcx is infinite
                value = np.log(0.5 * np.where(u < _TAIL, tail, 2.0)) - 0.5 * u**2
                found[0, rows] = _sum(np.where(u < _TAIL, value, 0.0), w)
            found[1, rows] = _sum(ratio, w)
            found[2, rows] = _sum(ratio, w * x)
    value, by_mean, along = found
    return Ndtr(value, by_mean, _by_variance(along, deviation))


def _panels(mean, deviation):
    """Nodes and weights, row by row, on either side of where log Φ bends.

    In deviations of the Gaussian: up to u = 0, and from there to where log Φ(u) is nothing.
    """
    nodes, weights = _PANEL
    ends = [np.full_like(mean, -_TAIL), -mean / deviation, (_SURE - mean) / deviation]
    edges = np.clip(ends, -_TAIL, _TAIL).T
    half, centre = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    x = (centre[:, :, None] + half[:, :, None] * nodes).reshape(len(mean), -1)
    w = (half[:, :, None] * weights).reshape(len(mean), -1)
    return x, w * np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)


def _sum(values, weights):
    return values @ weights if weights.ndim == 1 else np.einsum("ij,ij->i", values, weights)


def _by_variance(along, deviation):
    # d/d variance of g(m + √v x) is g' x / (2 √v)
    return np.minimum(0.5 * along / deviation, 0.0)
