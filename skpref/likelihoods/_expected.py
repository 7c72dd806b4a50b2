"""Expectations of log-probabilities under a Gaussian margin, for variational inference."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from skpref._utils import (
    PANEL_NODES,
    PANEL_WEIGHTS,
    TOLERANCE,
    Array,
    adaptive_panels,
    row_blocks,
)

_FEW, _MANY = (np.polynomial.hermite_e.hermegauss(n) for n in (20, 32))
# log Φ(u) is nothing above, and a standard normal beyond ± so many deviations.
SURE = 8.5


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


def expected(log_prob: Callable, mean, variance, bends: Array | None = None) -> Expected:
    """Compute expectations of a log-probability and of its slopes by quadrature.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(margin, row)`` → value, d/dm, d/dnoise of answers by their numbers, their
        probabilities being averages over noise on the margin.
    mean, variance : ndarray of shape (n,)
    bends : ndarray of shape (n, k), optional
        Margins, ascending, between which the log-probability is smooth. None: they are searched.
    """

    def terms(margin: Array, row: NDArray[np.intp], x: Array) -> Array:
        level, gradient, widening = log_prob(margin, row)
        return np.stack([level, gradient, gradient * x, widening])

    value, by_mean, along, by_noise = _integrate(terms, log_prob, mean, variance, bends, 4)
    return Expected(value, by_mean, _variance_slope(along, _deviation(variance)), by_noise)


def expectations(
    function: Callable, log_prob: Callable, mean, variance, bends: Array | None, n_terms: int
) -> Array:
    """Compute expectations of ``function(margin, row)`` → (k, n), (n_terms, n).

    At the points of `expected` for this log-probability.
    """
    return _integrate(
        lambda margin, row, x: function(margin, row), log_prob, mean, variance, bends, n_terms
    )


def _integrate(terms, log_prob, mean, variance, bends, n_terms):
    """Integrate terms over normal margins; return (n_terms, n).

    By Gauss–Hermite's rule where one of fewer nodes gives the same slopes. Elsewhere the
    log-probability bends within a small part of the normal: panels lie between its ``bends``, or
    are halved until these resolve it.
    """
    deviation = _deviation(variance)
    total = np.zeros((n_terms, len(mean)))
    for rows in row_blocks(len(mean), len(_MANY[0]) + len(_FEW[0])):
        every = np.arange(rows.start, min(rows.stop, len(mean)))

        def slope(x, row):
            return log_prob(mean[row] + deviation[row] * x, row)[1]

        bent = _find_unresolved_rows(slope, every)
        smooth = every[~bent]
        nodes, weights = _MANY
        rule = np.tile(nodes, len(smooth)), np.repeat(smooth, len(nodes))
        points = [(*rule, np.tile(weights / weights.sum(), len(smooth)))]
        if bent.any() and bends is not None:
            at = every[bent]
            edges = (bends[at] - mean[at, None]) / deviation[at, None]
            ends = ((0, 0), (1, 1))
            x, w = _gauss_legendre_panels(np.pad(edges, ends, constant_values=(-SURE, SURE)))
            points.append((x.ravel(), np.repeat(at, x.shape[1]), w.ravel()))
        elif bent.any():
            points.append(
                _adaptive_points(lambda x, row: deviation[row] * slope(x, row), every[bent])
            )
        x, row, weight = (np.concatenate(each) for each in zip(*points, strict=True))
        values = np.asarray(terms(mean[row] + deviation[row] * x, row, x))
        for whole, each in zip(total, values, strict=True):
            whole[every] = np.bincount(row - rows.start, weight * each, len(every))
    return total


def _find_unresolved_rows(slope, every):
    """Find the rows where Gauss–Hermite rules of few and many nodes give different mean slopes."""
    means = []
    for nodes, weights in (_MANY, _FEW):
        row, share = np.repeat(every, len(nodes)), weights / weights.sum()
        gradient = slope(np.tile(nodes, len(every)), row).reshape(len(every), -1)
        means.append(np.stack([gradient @ share, gradient @ (share * nodes)]))
    many, few = means
    return np.any(np.abs(many - few) > TOLERANCE * (1.0 + np.abs(many)), axis=0)


def _adaptive_points(slope, every):
    """Return points, rows and weights on panels that are halved until they resolve a slope."""

    def height(at, x):
        """Return the density times what grows with the slope: it bends as that."""
        slopes = slope(x.ravel(), np.repeat(every[at], x.shape[1])).reshape(x.shape)
        return np.sqrt(1.0 + slopes**2) * np.exp(-0.5 * x**2)

    edges = np.tile([-SURE, 0.0, SURE], (len(every), 1))
    x, at, weight = adaptive_panels(height, edges, TOLERANCE)
    weight /= np.sqrt(2.0 * np.pi * (1.0 + slope(x, every[at]) ** 2))
    return x, every[at], weight


def _deviation(variance):
    """Return deviations of a normal, far enough from 0 that what is divided by them is known."""
    return np.maximum(np.sqrt(variance), TOLERANCE)


def expected_log_ndtr(mean: Array, variance: Array, with_value: bool = True) -> Ndtr:
    """Return E[log Φ(u)], u ~ N(mean, variance); without its value that is NaN."""
    deviation = _deviation(variance)
    values = np.full((3, len(mean)), np.nan)
    # Of a Gaussian no wider than the bend of log Φ Gauss–Hermite's rule errs by 1e-9; beyond that
    # the bend is integrated on panels of its own. Far below zero log Φ is all but a parabola.
    narrow = (deviation <= 1.0) | (mean < -6.0 * deviation)
    nodes, weights = _FEW
    for part in (narrow, ~narrow):
        every = np.flatnonzero(part)
        for block in row_blocks(len(every), 2 * len(PANEL_NODES)):
            rows = every[block]
            m, s = mean[rows], deviation[rows]
            if part is narrow:
                x, w = nodes, weights / weights.sum()
            else:  # up to u = 0, and from there to where log Φ(u) is nothing
                ends = np.stack([np.full_like(m, -SURE), -m / s, (SURE - m) / s], axis=1)
                x, w = _gauss_legendre_panels(ends)
            u = m[:, None] + s[:, None] * x
            with np.errstate(over="ignore"):
                tail = erfcx(-np.sqrt(0.5) * u)
            ratio = np.sqrt(2.0 / np.pi) / tail
            if with_value:
                # log Φ(u) to an absolute error of rounding; where it is none, erfcx is infinite
                value = np.log(0.5 * np.where(u < SURE, tail, 2.0)) - 0.5 * u**2
                values[0, rows] = _weighted_sums(np.where(u < SURE, value, 0.0), w)
            values[1, rows] = _weighted_sums(ratio, w)
            values[2, rows] = _weighted_sums(ratio, w * x)
    value, by_mean, along = values
    return Ndtr(value, by_mean, _variance_slope(along, deviation))


def _gauss_legendre_panels(edges):
    """Return points and normal weights by row, of Gauss–Legendre panels between edges (n, k).

    Each point is in deviations too.
    """
    edges = np.clip(edges, -SURE, SURE)
    half, centre = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    x = (centre[:, :, None] + half[:, :, None] * PANEL_NODES).reshape(len(edges), -1)
    w = (half[:, :, None] * PANEL_WEIGHTS).reshape(len(edges), -1)
    return x, w * np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)


def _weighted_sums(values, weights):
    """Sum values over their nodes with weights of all rows, or of each row."""
    return values @ weights if weights.ndim == 1 else np.einsum("ij,ij->i", values, weights)


def _variance_slope(along, deviation):
    """Return the derivative in the variance from E[g′(x) x] along the deviation; at most 0."""
    # d/d variance of g(m + √v x) is g' x / (2 √v)
    return np.minimum(0.5 * along / deviation, 0.0)
