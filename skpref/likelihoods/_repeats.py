"""The sites that EP gives each of several equal answers: their common fixed point."""

from typing import NamedTuple

import numpy as np

from skpref._utils import ITERATION_CAP, TOLERANCE
from skpref.likelihoods._normal import mills

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
