"""The site that EP gives each of several equal ties: their common fixed point.

As `_repeats` for duels, but a slab's moments depend on its width in deviations as well, so that the
cavity's variance V does not follow from its mean: Newton's method in both, in u = mean/deviation
and in log V, which

    u = V/s (m/v + (c − 1) shift),   1/V = 1/v + (c − 1) precision

determine, s² being V and the noise. From the cavity of a single tie it takes a few steps, if the
threshold is not dozens of deviations of the noise wide.
"""

from typing import NamedTuple

import numpy as np

from skpref.likelihoods._slab import slab

# Steps at most, how far one may change log V, and how short the one is after which only rounding
# is left.
_NEWTON = 20
_REACH = 2.0
_SMALL = 1e-8


def equal_ties(mean, variance, counts, noise, threshold, near=None):
    """Precision and shift of one of several equal ties, all of their sites being unknown.

    Parameters
    ----------
    mean, variance : ndarray
        Of the margin without any of these sites; the variance is positive.
    counts : ndarray
        Numbers c of equal ties.
    noise : float
        Variance of the noise on the margin.
    threshold : float
        Half the width of the slab.
    near : (ndarray, ndarray), optional
        Mean and variance of a cavity from which to start; by default that of one tie.

    Returns
    -------
    precision, shift : ndarray
        Of one site; NaN where no fixed point was found.
    """
    before = variance, counts - 1.0, noise, threshold
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        u, log_v = _start(mean, variance, noise, near)
        settled = np.zeros(len(u), dtype=bool)
        for _ in range(_NEWTON):
            at = _excess(u, log_v, mean, *before)
            if settled.all():
                break
            along, up = _newton_step(at)
            length = np.maximum(np.abs(along) / (1.0 + np.abs(u)), np.abs(up) / _REACH)
            share = 1.0 / np.maximum(length, 1.0)
            u = u + share * along
            log_v = np.minimum(log_v + share * up, np.log(variance))
            settled = length <= _SMALL
    found = settled & (at.precision >= 0.0) & np.isfinite(at.shift)
    return np.where(found, at.precision, np.nan), np.where(found, at.shift, np.nan)


def _start(mean, variance, noise, near):
    centre, spread = mean, variance
    if near is not None:
        usable = np.isfinite(near[0]) & (near[1] > 0.0) & (near[1] <= variance)
        centre, spread = np.where(usable, near, (mean, variance))
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


def _newton_step(at):
    det = at.of_u[0] * at.of_v[1] - at.of_v[0] * at.of_u[1]
    along = (at.of_v[0] * at.variance - at.of_v[1] * at.mean) / det
    up = (at.of_u[1] * at.mean - at.of_u[0] * at.variance) / det
    return along, up


def _excess(u, log_v, mean, variance, others, noise, threshold):
    cavity_var = np.exp(log_v)
    total = cavity_var + noise
    scale = np.sqrt(total)
    width = threshold / scale
    at = slab(u, width)
    d_width = -0.5 * width * cavity_var / total
    d_curvature = at.edge_curvature * d_width
    # Tilted variance times total/V, the site's precision, and its shift over the deviation.
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
