"""Probability, mean and covariance of Gaussian vectors given that all entries are positive.

v ~ N(μ, M) given v > 0, many small vectors at once. With Z = Pr(v > 0) the moments are derivatives
of log Z in μ: g = ∇ log Z and B = −∇² log Z give E[v | v > 0] = μ + M g and
Var[v | v > 0] = M − M B M, also where M is nearly singular.
"""

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from skpref._utils import (
    Array,
    cholesky_blocks,
    inverse_blocks,
    row_blocks,
    spectrum_blocks,
)
from skpref.gp._orthants import LEAST, bivariate, find_tilts, hazard, log_bivariate, trivariate

# Entries up to which these points know covariances well.
MOST_ENTRIES = 32
# Points of the unit cube for four entries and more.
_POINTS = 2048
# Probabilities of three below this are found by points, which are right in relative terms.
_RARE = 1e-6


class OrthantMoments(NamedTuple):
    """Derivatives of log Pr(v > 0) for n Gaussian vectors of m entries.

    Attributes
    ----------
    log_probability : ndarray of shape (n,)
        log Z.
    gradient : ndarray of shape (n, m)
        g.
    curvature : ndarray of shape (n, m, m)
        B, positive semi-definite.
    """

    log_probability: Array
    gradient: Array
    curvature: Array


def orthant_moments(mean: Array, covariance: Array, sums: Array | None = None) -> OrthantMoments:
    """Return moments of Gaussian vectors given that all entries are positive.

    Up to three entries they are exact. Of more it is a mean over 2048 fixed points [1]_, whose
    proposals are tilted [2]_: the same numbers give the same result. Standard deviations given
    4 to 8 entries are off by about 1 % at root mean square and 5 % at worst, given 24 by 3 and 10.

    Parameters
    ----------
    mean : ndarray of shape (n, m)
        μ.
    covariance : ndarray of shape (n, m, m)
        M, positive definite.
    sums : ndarray of shape (n, s, m), optional
        Coefficients of sums of entries that are positive as well; the last one of a row that is
        not 0 is 1.

    References
    ----------
    .. [1] Genz (1992), Numerical computation of multivariate normal probabilities.
    .. [2] Botev (2017), The normal law under linear restrictions: simulation and estimation via
       minimax tilting.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.gp import orthant_moments
    >>> found = orthant_moments(np.zeros((1, 2)), np.eye(2)[None])
    >>> found.log_probability.round(4), found.gradient.round(4)  # a quarter; two half normals
    (array([-1.3863]), array([[0.7979, 0.7979]]))
    """
    m = mean.shape[1]
    if m > 3 or sums is not None:
        return _moments_by_points(mean, covariance, sums)
    if m == 1:
        return _moments_of_one(mean, covariance)
    return _moments_of_two(mean, covariance) if m == 2 else _moments_of_three(mean, covariance)


def _moments_of_one(mean, covariance):
    """Return log P(v > 0) of one normal and its derivatives in the mean."""
    deviation = np.sqrt(covariance[:, 0])
    u = mean / deviation
    ratio = hazard(u)
    curvature = ratio * (ratio + u) / covariance[:, 0]
    return OrthantMoments(log_ndtr(u[:, 0]), ratio / deviation, curvature[:, :, None])


def _moments_of_two(mean, covariance):
    """Return log P(v > 0) of two normals and its derivatives in the mean."""
    deviation, correlation = _standardise(covariance)
    u = mean / deviation
    angle = _angles(correlation[:, 0, 1])
    log_probability = log_bivariate(u[:, 0], u[:, 1], angle)
    gradient = np.empty_like(u)
    for i in (0, 1):
        centre, spread = _given_zero_entry(mean, covariance, i)
        standardised = centre[:, 0] / np.sqrt(spread[:, 0, 0])
        log_slope = log_ndtr(standardised) - 0.5 * u[:, i] ** 2 - log_probability
        gradient[:, i] = np.exp(log_slope) / (np.sqrt(2.0 * np.pi) * deviation[:, i])
    log_density, _ = _log_density(mean, covariance, (0, 1))
    across = np.exp(log_density - log_probability)[:, None]
    return _with_curvature(log_probability, gradient, across, mean, covariance)


def _moments_of_three(mean, covariance):
    """Return log P(v > 0) of three normals and its derivatives in the mean."""
    deviation, correlation = _standardise(covariance)
    probability = trivariate(mean / deviation, _angles(correlation))
    gradient, across = np.empty_like(mean), np.empty_like(mean)
    total = np.maximum(probability, LEAST)
    for i in range(3):
        centre, spread = _given_zero_entry(mean, covariance, i)
        width, within = _standardise(spread)
        limits = centre / width
        both = bivariate(limits[:, 0], limits[:, 1], _angles(within[:, 0, 1]))
        density = np.exp(-0.5 * (mean[:, i] / deviation[:, i]) ** 2) / np.sqrt(2.0 * np.pi)
        gradient[:, i] = density * both / (deviation[:, i] * total)
    for k, pair in enumerate(combinations(range(3), 2)):
        log_density, third = _log_density(mean, covariance, pair)
        across[:, k] = np.exp(log_density + log_ndtr(third)) / total
    moments = _with_curvature(np.log(total), gradient, across, mean, covariance)
    rare = np.flatnonzero(~(probability > _RARE))
    if len(rare):
        parts = _moments_by_points(mean[rare], covariance[rare])
        for whole, part in zip(moments, parts, strict=True):
            whole[rare] = part
    return moments


def _with_curvature(log_probability, gradient, across, mean, covariance):
    """Return the moments, with a curvature whose diagonal follows from ∂²Z/∂μᵢ∂μⱼ over Z."""
    n, m = mean.shape
    second = np.zeros((n, m, m))
    for k, (i, j) in enumerate(combinations(range(m), 2)):
        second[:, i, j] = second[:, j, i] = across[:, k]
    own = np.einsum("nii->ni", covariance)
    follows = mean * gradient + np.einsum("nij,nij->ni", covariance, second)
    second[:, range(m), range(m)] = -follows / own
    curvature = gradient[:, :, None] * gradient[:, None, :] - second
    return OrthantMoments(log_probability, gradient, curvature)


def _standardise(covariance):
    """Return standard deviations and correlations of covariances (n, m, m)."""
    deviation = np.sqrt(np.einsum("nii->ni", covariance))
    return deviation, covariance / (deviation[:, :, None] * deviation[:, None, :])


def _angles(correlation):
    """Return the arc cosines of correlations."""
    return np.arccos(np.clip(correlation, -1.0, 1.0))


def _given_zero_entry(mean, covariance, i):
    """Return mean and covariance of the other entries given that entry i is zero."""
    others = [k for k in range(mean.shape[1]) if k != i]
    slope = covariance[:, others, i] / covariance[:, i, i, None]
    spread = covariance[:, others][:, :, others]
    spread = spread - slope[:, :, None] * covariance[:, i][:, None, others]
    return mean[:, others] - slope * mean[:, i, None], _floor_variances(spread, covariance, others)


def _floor_variances(spread, covariance, entries):
    """Raise variances to at least what rounding leaves of them; return the covariance."""
    least = 4.0 * np.finfo(np.float64).eps * np.einsum("nii->ni", covariance)[:, entries]
    at = np.arange(len(entries))
    spread[:, at, at] = np.maximum(spread[:, at, at], least)
    return spread


def _log_density(mean, covariance, pair):
    """Return the log-density of two entries at zero, and of three the third's standardised mean."""
    i, j = pair
    a, b, c = covariance[:, i, i], covariance[:, j, j], covariance[:, i, j]
    determinant = np.maximum(a * b - c * c, 4.0 * np.finfo(np.float64).eps * a * b)
    x, y = mean[:, i], mean[:, j]
    square = (b * x * x - 2.0 * c * x * y + a * y * y) / determinant
    log_density = -0.5 * (square + np.log(determinant)) - np.log(2.0 * np.pi)
    if mean.shape[1] == 2:
        return log_density, None
    k = 3 - i - j
    d, e = covariance[:, k, i], covariance[:, k, j]
    by_x, by_y = (d * b - e * c) / determinant, (e * a - d * c) / determinant
    spread = covariance[:, k, k] - by_x * d - by_y * e
    spread = np.maximum(spread, 4.0 * np.finfo(np.float64).eps * covariance[:, k, k])
    return log_density, (mean[:, k] - by_x * x - by_y * y) / np.sqrt(spread)


# -- four entries and more -----------------------------------------------------------------------


def _moments_by_points(mean, covariance, sums=None):
    """Return log P(v > 0) and its derivatives by importance sampling at fixed points."""
    n, m = mean.shape
    points = cube_lattice(m - 1)
    parts = [
        _importance_moments(
            mean[rows], covariance[rows], points, None if sums is None else sums[rows]
        )
        for rows in row_blocks(n, _POINTS * m)
    ]
    return OrthantMoments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _importance_moments(mean, covariance, points, sums=None):
    """Return log Pr, gradient and B as averages over points, by separation of variables.

    v = μ − L y, each y_k normal of mean t_k and cut off above, where v_k or a sum is zero.
    """
    n, m = mean.shape
    factor = cholesky_blocks(covariance)
    pivot = np.einsum("nii->ni", factor)
    scaled = np.tril(factor / pivot[:, :, None], -1)
    limits = mean / pivot
    tilt = find_tilts(limits, scaled)
    draws, log_weight = np.empty((n, m, points.shape[1])), np.zeros((n, points.shape[1]))
    for k in range(m):
        upper = np.broadcast_to((limits - tilt)[:, k, None], log_weight.shape)
        if k:
            upper = upper - np.matmul(scaled[:, k, None, :k], draws[:, :k])[:, 0]
            if sums is not None:
                v = mean[:, :k, None] - np.matmul(factor[:, :k, :k], draws[:, :k])
                upper = upper - _least_entry(v, sums) / pivot[:, k, None]
        if k == m - 1:  # this one's mean and variance are known
            ratio = hazard(upper)
            draws[:, k] = -ratio
            last = 1.0 - ratio * (ratio + upper)
            log_weight += log_ndtr(upper)
            break
        log_mass, draw = _truncated_quantiles(upper, points[k])
        shift = tilt[:, k, None]
        draws[:, k] = draw + shift
        log_weight += log_mass + shift * (0.5 * shift - draws[:, k])
    top = np.max(log_weight, axis=1, keepdims=True)
    weight = np.exp(log_weight - top)
    total = np.sum(weight, axis=1)
    log_probability = top[:, 0] + np.log(total / points.shape[1])
    weight /= total[:, None]
    centre = np.matmul(draws, weight[:, :, None])[:, :, 0]
    draws -= centre[:, :, None]
    spread = np.matmul(draws * weight[:, None], np.swapaxes(draws, 1, 2))
    spread[:, -1, -1] += np.einsum("np,np->n", weight, last)
    # A truncated Gaussian is nowhere wider than it was.
    values, vectors = spectrum_blocks(spread)
    shrink = np.clip(1.0 - values, 0.0, 1.0)
    inverse = inverse_blocks(factor)[0]
    gradient = -np.einsum("nji,nj->ni", inverse, centre)
    root = np.swapaxes(inverse, 1, 2) @ vectors * np.sqrt(shrink)[:, None, :]
    return log_probability, gradient, root @ np.swapaxes(root, 1, 2)


def _least_entry(v, sums):
    """Return from where on the next entry and the sums that end with it are positive."""
    k = v.shape[1]
    ends = (sums[:, :, k] != 0.0) & ~sums[:, :, k + 1 :].any(axis=2)
    before = np.where(ends[:, :, None], sums[:, :, :k], 0.0)
    return np.max(-np.matmul(before, v), axis=1, initial=0.0)


def _truncated_quantiles(upper, points):
    """Return log Φ(upper), and quantiles of the standard normal that is cut off there."""
    mass = ndtr(upper)
    draw = ndtri(points * mass)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    far = upper < -35.0  # where less than the least number is left
    if far.any():
        log_mass[far] = log_ndtr(upper[far])
        draw[far] = ndtri_exp(np.log(np.broadcast_to(points, far.shape)[far]) + log_mass[far])
    return log_mass, draw


@lru_cache(maxsize=64)
def cube_lattice(dimension: int) -> Array:
    """Return points of the unit cube, (dimension, n_points).

    They are a lattice by roots of primes (Richtmyer), folded so that functions meet themselves at
    its faces.
    """
    primes = [k for k in range(2, 200) if all(k % p for p in range(2, k))][:dimension]
    steps = np.sqrt(np.array(primes, dtype=np.float64))[:, None]
    points: Array = np.abs(2.0 * ((steps * (np.arange(_POINTS) + 0.5)) % 1.0) - 1.0)
    points.flags.writeable = False
    return points
