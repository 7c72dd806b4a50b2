"""Expectations of log-probabilities under a Gaussian margin, for variational inference."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erfcx

from skpref._utils import Array, adaptive_panels, row_blocks

_HERMITE = 32
_LEGENDRE = 24
# Rules of two orders that differ by more of a slope do not resolve it.
_UNRESOLVED = 1e-8
# Deviations of the margin, in those of the noise, up to which Gauss–Hermite's rule of few nodes has
# an error of 1e-9 for the probit; beyond, its bend is integrated on panels of its own.
_NARROW = 1.0
_NARROW_NODES = 20
# log Φ(u) is nothing above, and a standard normal beyond ±_TAIL deviations.
SURE = 6.5
_TAIL = 8.5
# Deviations below this count as it: what is divided by them would be rounding.
_LEAST = 1e-7


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


def _hermite_rule(n):
    """Return n nodes and weights for expectations under a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


_WIDE, _FEW = _hermite_rule(_HERMITE), _hermite_rule(_NARROW_NODES)
_PANEL = np.polynomial.legendre.leggauss(_LEGENDRE)


def expected(log_prob: Callable, mean, variance, bends: Array | None = None) -> Expected:
    """Expectations of a log-probability and of its slopes, by quadrature that resolves its bends.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, row)`` → value, d/dm, d/dnoise of answers by their numbers, their
        probabilities being averages over noise on the margin.
    mean, variance : ndarray of shape (n,)
    bends : ndarray of shape (n, k), optional
        Margins, ascending, between which the log-probability is smooth. None: they are searched.
    """
    deviation, parts = np.maximum(np.sqrt(variance), _LEAST), []
    for rows, x, row, weight in _yield_quadrature_points(log_prob, mean, deviation, bends):
        level, gradient, widening = log_prob(mean[row] + deviation[row] * x, row)
        terms = weight * np.stack([level, gradient, gradient * x, widening])
        parts.append(_row_sums(terms, row, rows))
    value, by_mean, along, by_noise = _join_blocks(parts, 4)
    return Expected(value, by_mean, _variance_slope(along, deviation), by_noise)


def expectations(
    function: Callable, log_prob: Callable, mean, variance, bends: Array | None = None
) -> Array:
    """Expectations of ``function(margin, row)`` → (k, n), shape (k, n), at the points of `expected`
    for this log-probability."""
    deviation, parts = np.maximum(np.sqrt(variance), _LEAST), []
    for rows, x, row, weight in _yield_quadrature_points(log_prob, mean, deviation, bends):
        values = np.asarray(function(mean[row] + deviation[row] * x, row))
        parts.append(_row_sums(weight * values, row, rows))
    return _join_blocks(parts, 0)


def _join_blocks(parts, n):
    """Join the arrays (k, n_rows) of blocks of rows; return zeros (n, 0) of no blocks."""
    return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))


def _row_sums(values, row, rows):
    """Sum (k, n_points) over the points of every row of a block, (k, n)."""
    n = rows.stop - rows.start
    return np.stack([np.bincount(row - rows.start, each, n) for each in values])


def _yield_quadrature_points(log_prob, mean, deviation, bends):
    """Yield blocks of rows, points in deviations of their Gaussians, their rows and weights.

    Those of Gauss–Hermite's rule where one of fewer nodes gives the same slopes. Elsewhere the
    log-probability bends within a small part of the Gaussian: panels lie between its ``bends``, or
    are halved until these are resolved.
    """
    for rows in row_blocks(len(mean), _HERMITE + _NARROW_NODES):
        rows = slice(rows.start, min(rows.stop, len(mean)))
        every = np.arange(rows.start, rows.stop)

        def slope(x, row):
            return log_prob(mean[row] + deviation[row] * x, row)[1]

        bent = _find_unresolved_rows(slope, every)
        smooth = every[~bent]
        parts = [(np.tile(_WIDE[0], len(smooth)), np.repeat(smooth, _HERMITE))]
        weights = [np.tile(_WIDE[1], len(smooth))]
        if bent.any() and bends is not None:
            at = every[bent]
            edges = (bends[at] - mean[at, None]) / deviation[at, None]
            x, weight = _gauss_legendre_panels(
                np.pad(edges, ((0, 0), (1, 1)), constant_values=(-_TAIL, _TAIL))
            )
            parts.append((x.ravel(), np.repeat(at, x.shape[1])))
            weights.append(weight.ravel())
        elif bent.any():
            x, row, weight = _adaptive_points(
                lambda x, row: deviation[row] * slope(x, row), every[bent]
            )
            parts.append((x, row))
            weights.append(weight)
        x, row = (np.concatenate(each) for each in zip(*parts, strict=True))
        yield rows, x, row, np.concatenate(weights)


def _find_unresolved_rows(slope, every):
    """Find the rows where Gauss–Hermite rules of few and many nodes give different mean slopes."""
    means = []
    for nodes, weights in (_WIDE, _FEW):
        row = np.repeat(every, len(nodes))
        gradient = slope(np.tile(nodes, len(every)), row).reshape(len(every), -1)
        means.append(np.stack([gradient @ weights, gradient @ (weights * nodes)]))
    return _differ_by_rule(means[0], means[1], _UNRESOLVED)


def _adaptive_points(slope, every):
    """Return points, rows and weights on panels that are halved until they resolve a slope."""

    def height(at, x):
        """Return the density times what grows with the slope: it bends as that."""
        slopes = slope(x.ravel(), np.repeat(every[at], x.shape[1])).reshape(x.shape)
        return np.sqrt(1.0 + slopes**2) * np.exp(-0.5 * x**2)

    edges = np.tile([-_TAIL, 0.0, _TAIL], (len(every), 1))
    x, at, weight = adaptive_panels(height, edges, _UNRESOLVED)
    weight /= np.sqrt(2.0 * np.pi * (1.0 + slope(x, every[at]) ** 2))
    return x, every[at], weight


def average_over_noise(likelihood: Any, margin, noise, answers) -> tuple[Array, Array, Array]:
    """Return the log of the mean probability over noise on the margin, and its slopes in both.

    By Gauss–Hermite's rule, and where one of fewer nodes differs, as the probability changes within
    a small part of the noise, by the likelihood's integral of a factor times a Gaussian.

    Parameters
    ----------
    likelihood : Likelihood
    margin, noise : ndarray of shape (n,)
    answers : Answers
    """
    few, values = (
        _average_by_rule(likelihood.log_prob, margin, noise, answers, rule)
        for rule in (_FEW, _WIDE)
    )
    sharp = np.flatnonzero(_differ_by_rule(values[:2], few[:2], _UNRESOLVED))
    if len(sharp):
        at = likelihood.tilted(margin[sharp], noise[sharp], answers.take(sharp))
        # d log p/dnoise is half of p''/p: p as a function of margin and noise diffuses
        by_noise = 0.5 * (at.gradient**2 - at.curvature)
        values[:, sharp] = at.log_normaliser, at.gradient, by_noise
    return values[0], values[1], values[2]


def _average_by_rule(log_prob, margin, noise, answers, rule):
    """Compute `average_over_noise` by one Gauss–Hermite rule, shape (3, n)."""
    values = np.empty((3, len(margin)))
    for rows, at, several in _yield_noisy_margins(margin, noise, answers, rule):
        value, gradient = (each.reshape(at.shape) for each in log_prob(at.ravel(), several)[:2])
        share, values[0, rows] = _node_shares(value, rule)
        share *= gradient
        values[1, rows], values[2, rows] = np.sum(share, axis=1), share @ rule[0]
    values[2] *= 0.5 / np.maximum(np.sqrt(noise), _LEAST)
    return values


def _differ_by_rule(fine, coarse, least):
    """Find rows, the last axis, in which two rules give different values."""
    return np.any(np.abs(fine - coarse) > least * (1.0 + np.abs(fine)), axis=0)


def averaged_slopes(likelihood: Any, margin, noise, answers) -> Array:
    """Return derivatives of the value of `average_over_noise` in theta, (n_theta, n)."""
    few, many = (
        _average_by_rule(likelihood.log_prob, margin, noise, answers, rule)[:2]
        for rule in (_FEW, _WIDE)
    )
    sharp, parts = _differ_by_rule(many, few, _UNRESOLVED), []
    for _, at, several in _yield_noisy_margins(margin, noise, answers, _WIDE):
        share, _ = _node_shares(
            likelihood.log_prob(at.ravel(), several)[0].reshape(at.shape), _WIDE
        )
        derivatives = likelihood.theta_derivatives(at.ravel(), several)[0]
        parts.append(np.sum(derivatives.reshape(len(derivatives), *at.shape) * share, axis=2))
    slopes = np.concatenate(parts, axis=1)
    if sharp.any():
        rows = margin[sharp], noise[sharp], answers.take(sharp)
        slopes[:, sharp] = likelihood.tilted_theta_gradient(*rows)
    return slopes


def _yield_noisy_margins(margin, noise, answers, rule):
    """Yield blocks of rows with the margin at every node of the noise, and the answers to match."""
    nodes, _ = rule
    deviation = np.maximum(np.sqrt(noise), _LEAST)
    for rows in row_blocks(len(margin), len(nodes)):
        at = margin[rows, None] + deviation[rows, None] * nodes
        yield rows, at, answers.take(np.repeat(np.arange(len(margin))[rows], len(nodes)))


def _node_shares(value, rule):
    """Return each node's share of the mean probability, and the logarithm of that mean."""
    top = value.max(axis=1)
    share = np.exp(value - top[:, None]) * rule[1]
    total = share.sum(axis=1)
    return share / total[:, None], np.log(total) + top


def expected_log_ndtr(mean: Array, variance: Array, with_value: bool = True) -> Ndtr:
    """Return E[log Φ(u)], u ~ N(mean, variance); without its value that is NaN."""
    deviation = np.maximum(np.sqrt(variance), _LEAST)
    values = np.full((3, len(mean)), np.nan)
    # Far below zero log Φ is all but a parabola, however wide the Gaussian.
    narrow = (deviation <= _NARROW) | (mean < -6.0 * deviation)
    nodes, weights = _FEW
    for part in (narrow, ~narrow):
        every = np.flatnonzero(part)
        for block in row_blocks(len(every), 2 * _LEGENDRE):
            rows = every[block]
            m, s = mean[rows], deviation[rows]
            if part is narrow:
                x, w = nodes, weights
            else:  # up to u = 0, and from there to where log Φ(u) is nothing
                ends = np.stack([np.full_like(m, -_TAIL), -m / s, (SURE - m) / s], axis=1)
                x, w = _gauss_legendre_panels(ends)
            u = m[:, None] + s[:, None] * x
            with np.errstate(over="ignore"):
                tail = erfcx(-np.sqrt(0.5) * u)
            ratio = np.sqrt(2.0 / np.pi) / tail
            if with_value:
                # log Φ(u) to an absolute error of rounding; where it is none, erfcx is infinite
                value = np.log(0.5 * np.where(u < _TAIL, tail, 2.0)) - 0.5 * u**2
                values[0, rows] = _weighted_sums(np.where(u < _TAIL, value, 0.0), w)
            values[1, rows] = _weighted_sums(ratio, w)
            values[2, rows] = _weighted_sums(ratio, w * x)
    value, by_mean, along = values
    return Ndtr(value, by_mean, _variance_slope(along, deviation))


def _gauss_legendre_panels(edges):
    """Return points and normal weights by row, of Gauss–Legendre panels between edges (n, k).

    Each point is in deviations too.
    """
    nodes, weights = _PANEL
    edges = np.clip(edges, -_TAIL, _TAIL)
    half, centre = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    x = (centre[:, :, None] + half[:, :, None] * nodes).reshape(len(edges), -1)
    w = (half[:, :, None] * weights).reshape(len(edges), -1)
    return x, w * np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)


def _weighted_sums(values, weights):
    """Sum values over their nodes with weights of all rows, or of each row."""
    return values @ weights if weights.ndim == 1 else np.einsum("ij,ij->i", values, weights)


def _variance_slope(along, deviation):
    # d/d variance of g(m + √v x) is g' x / (2 √v)
    """Return the derivative in the variance from E[g′(x) x] along the deviation; at most 0."""
    return np.minimum(0.5 * along / deviation, 0.0)
