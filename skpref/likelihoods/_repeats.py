"""The sites that EP gives each of several equal answers: their common fixed point."""

from typing import NamedTuple

import numpy as np

from skpref._utils import ITERATION_CAP, TOLERANCE
from skpref.likelihoods._normal import mills, slab

_EPS = np.finfo(np.float64).eps


def find_repeated_sites(mean, variance, counts, noise, start=None):
    """Find precision and shift of one of several equal answers, all sites being unknown.

    Parameters
    ----------
    mean, variance : ndarray
        Of the margin without any of these sites; the variance is positive.
    counts : ndarray
        Numbers c of equal answers.
    noise : float
        Variance of the noise on the margin.
    start : ndarray, optional
        Where to look for u; by default where it is for one duel.

    Returns
    -------
    precision, shift : ndarray
        Of one site; NaN where no root was found.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        alone = mean / np.sqrt(variance + noise)
        u = alone if start is None else np.where(np.isfinite(start), start, alone)
        low, high, moved = np.full(u.shape, -np.inf), np.full(u.shape, np.inf), np.inf
        for _ in range(ITERATION_CAP):
            sites = _fixed_point_excess(u, mean, variance, counts - 1.0, noise)
            low = np.where(sites.excess < 0.0, u, low)
            high = np.where(sites.excess > 0.0, u, high)
            reach = 1.0 + np.abs(u)
            step = np.clip(-sites.excess / sites.slope, -reach, reach)
            step = np.where(np.isnan(step), -np.sign(sites.excess) * reach, step)
            stalled = 2.0 * np.abs(step) > moved
            done = np.abs(step) <= np.where(stalled, TOLERANCE, 4.0 * _EPS) * reach
            bracketed = np.isfinite(high - low)
            ahead = u + step
            out = (ahead < low) | (ahead > high) | stalled
            ahead = np.where(out & bracketed, 0.5 * (low + high), ahead)
            moved = np.abs(ahead - u)
            if done.all():
                break
            u = np.where(done, u, ahead)
    return np.where(done, sites.precision, np.nan), np.where(done, sites.shift, np.nan)


class _Equal(NamedTuple):
    """How far u is from the fixed point, the derivative of that, and the site there."""

    excess: np.ndarray
    slope: np.ndarray
    precision: np.ndarray
    shift: np.ndarray


def _fixed_point_excess(u, mean, variance, others, noise):
    """Return how far the standardised cavity mean u is from the fixed point, as `_Equal`."""
    at = mills(u)
    # l V² + b V − v s² = 0, from 1/V = 1/v + (c − 1) × precision
    b = noise - variance * at.left + others * at.curvature * variance
    rest = np.sqrt(b * b + 4.0 * at.left * variance * noise)
    small = 2.0 * variance * noise / np.where(b > 0.0, b + rest, 1.0)
    large = (rest - b) / np.where(at.left > 0.0, 2.0 * at.left, 1.0)
    cavity_var = np.where(b > 0.0, small, large)
    scale = np.sqrt(cavity_var + noise)
    width = noise + cavity_var * at.left
    lever = at.ratio + u * at.curvature
    precision, shift = at.curvature / width, scale * lever / width
    excess = u * scale / cavity_var - mean / variance - others * shift
    # Derivatives in u: −rest × dV/du is that of the quadratic at fixed V.
    d_var = at.third * cavity_var * ((1.0 + others) * variance - cavity_var) / rest
    d_scale = 0.5 * d_var / scale
    d_width = d_var * at.left + cavity_var * at.third
    d_shift = (lever * (d_scale - scale * d_width / width) - scale * u * at.third) / width
    slope = (scale + u * d_scale - u * scale * d_var / cavity_var) / cavity_var - others * d_shift
    return _Equal(excess, slope, precision, shift)


def equal_slab_sites(mean, variance, counts, noise, width, cavity=None):
    """Find the sites of equal answers whose noisy margin is within a slab.

    Parameters
    ----------
    mean, variance, counts, noise
        As in `find_repeated_sites`.
    width : ndarray
        Half the width of each slab, whose middle is at a margin of 0.
    cavity : (ndarray, ndarray), optional
        Mean and variance of a cavity from which to start; by default that of one answer.

    Returns
    -------
    precision, shift : ndarray
        Of one site; NaN where no fixed point was found.
    """
    before = variance, counts - 1.0, noise, width
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        u, log_v = _start(mean, variance, noise, cavity)
        converged = np.zeros(len(u), dtype=bool)
        for _ in range(ITERATION_CAP):
            at = _excess(u, log_v, mean, *before)
            if converged.all():
                break
            along, up = _newton_step(at)
            length = np.maximum(np.abs(along) / (1.0 + np.abs(u)), np.abs(up))
            share = 1.0 / np.maximum(length, 1.0)
            u = u + share * along
            log_v = np.minimum(log_v + share * up, np.log(variance))
            converged = length <= TOLERANCE
    is_found = converged & (at.precision >= 0.0) & np.isfinite(at.shift)
    return np.where(is_found, at.precision, np.nan), np.where(is_found, at.shift, np.nan)


def _start(mean, variance, noise, cavity):
    """Return starting values of the search for a site: location in deviations, log variance."""
    centre, spread = mean, variance
    if cavity is not None:
        usable = np.isfinite(cavity[0]) & (cavity[1] > 0.0) & (cavity[1] <= variance)
        centre, spread = np.where(usable, cavity, (mean, variance))
    return centre / np.sqrt(spread + noise), np.log(spread)


class _Excess(NamedTuple):
    """How far both equations are from holding, derivatives of that, and the site there.

    ``of_u`` and ``of_v`` have the derivatives of (mean, variance) in u and in log V.
    """

    mean: np.ndarray
    variance: np.ndarray
    of_u: tuple[np.ndarray, np.ndarray]
    of_v: tuple[np.ndarray, np.ndarray]
    precision: np.ndarray
    shift: np.ndarray


def _newton_step(excess):
    """Return the step of Newton's method in both coordinates of a cavity."""
    det = excess.of_u[0] * excess.of_v[1] - excess.of_v[0] * excess.of_u[1]
    along = (excess.of_v[0] * excess.variance - excess.of_v[1] * excess.mean) / det
    up = (excess.of_u[1] * excess.mean - excess.of_u[0] * excess.variance) / det
    return along, up


def _excess(u, log_v, mean, variance, others, noise, half):
    """Return by how much moments of equal answers differ from the target, with derivatives."""
    cavity_var = np.exp(log_v)
    total = cavity_var + noise
    scale = np.sqrt(total)
    width = half / scale
    at = slab(u, width)
    d_width = -0.5 * width * cavity_var / total
    d_curvature = at.edge_curvature * d_width
    # TiltedMoments variance times total/V, the site's precision, and its shift over the deviation.
    spread = noise + cavity_var * at.left
    spread_u, spread_v = cavity_var * at.third, cavity_var * (at.left - d_curvature)
    precision = at.curvature / spread
    lever = (at.gradient + u * at.curvature) / spread
    lever_u = (-u * at.third - lever * spread_u) / spread
    lever_v = (at.edge_gradient * d_width + u * d_curvature - lever * spread_v) / spread
    pulled = cavity_var / scale * mean / variance
    stiff = others * variance
    grown = 1.0 + stiff * precision
    return _Excess(
        u - pulled - others * cavity_var * lever,
        log_v - np.log(variance) + np.log(grown),
        (
            1.0 - others * cavity_var * lever_u,
            stiff * (-at.third - precision * spread_u) / spread / grown,
        ),
        (
            -pulled * (1.0 - 0.5 * cavity_var / total) - others * cavity_var * (lever + lever_v),
            1.0 + stiff * (d_curvature - precision * spread_v) / spread / grown,
        ),
        precision,
        scale * lever,
    )
