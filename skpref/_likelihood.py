"""Probit likelihood of a duel given its margin z = f(winner) − f(loser).

The noise on each utility has variance σ², so the noise on a margin has variance 2σ²
and p(winner wins | z) = Φ(z / √(2σ²)). This module is the only place where σ² doubles.
All functions are vectorised over margins and stable hundreds of standard deviations out.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)
# Below this u + φ/Φ would cancel; at this depth the continued fraction is exact to rounding.
_FAR = -5.0
_DEPTH = 30
# Steps of Newton's method at most, and how small (relative) a step that no longer halves must be to
# be taken for rounding.
_NEWTON = 100
_STALLED = 1e-9
_EPS = np.finfo(np.float64).eps


def margin_variance(noise_variance):
    """Variance of the noise on a margin: both items carry it."""
    return 2.0 * noise_variance


class Derivatives(NamedTuple):
    """log Φ(z/s) and its derivatives: value, d/dz, −d²/dz², d³/dz³."""

    value: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    third: np.ndarray


class Tilted(NamedTuple):
    """One site times its cavity: log normaliser and its derivatives in the cavity mean.

    ``shrink`` is tilted variance over cavity variance, in (0, 1]; ``u`` is mean over deviation of
    the probit's argument, of which log Φ is the log normaliser.
    """

    log_normaliser: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    shrink: np.ndarray
    u: np.ndarray


class _Mills(NamedTuple):
    """r = φ(u)/Φ(u), r (u + r) = −d²log Φ/du², one minus that, and d³log Φ/du³."""

    ratio: np.ndarray
    curvature: np.ndarray
    left: np.ndarray
    third: np.ndarray


def _mills(u):
    """All of `_Mills` to nearly full relative precision, however negative u is."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.asarray(_SQRT_2_OVER_PI / erfcx(-_SQRT_HALF * u))
        curvature = np.asarray(ratio * (u + ratio))
        left = np.asarray(1.0 - curvature)
        third = np.asarray(curvature * (u + 2.0 * ratio) - ratio)  # dr/du = −r (u + r)
    far = np.asarray(u < _FAR)
    if np.any(far):
        x = -np.asarray(u)[far]
        # r = x + t with t = 1/(x + 2/(x + 3/(x + …))), Abramowitz and Stegun (26.2.14)
        after = np.zeros_like(x)
        for k in range(_DEPTH, 2, -1):
            after = k / (x + after)
        then = 2.0 / (x + after)
        t = 1.0 / (x + then)
        # With t (x + then) = 1 every difference below is of terms of unlike size.
        left[far] = t * (then - t)
        curvature[far] = 1.0 - left[far]
        third[far] = curvature[far] * t * then * (after - then)
    return _Mills(ratio, curvature, left, third)


def win_probability(mean, variance, noise_variance, *, noise=True):
    """P(margin > 0) for a Gaussian margin; with ``noise`` that of winning a duel.

    Parameters
    ----------
    mean, variance : ndarray
        Of the noise-free margin.
    noise_variance : float
        σ² of each utility.
    noise : bool
        Include the observation noise.
    """
    return ndtr(standardise(mean, variance, noise_variance, noise=noise))


def log_win_probability(mean, variance, noise_variance, *, noise=True):
    """Logarithm of `win_probability`, finite in the tails."""
    return log_ndtr(standardise(mean, variance, noise_variance, noise=noise))


def standardise(mean, variance, noise_variance, *, noise=True):
    """Mean over standard deviation of a margin; a margin that is surely zero gives 0."""
    total = variance + (margin_variance(noise_variance) if noise else 0.0)
    sure = total <= 0.0
    ratio = mean / np.sqrt(np.where(sure, 1.0, total))
    return np.where(sure, np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean)), ratio)


def derivatives(z, noise_variance):
    """log p and derivatives with respect to the margin (`Derivatives`)."""
    scale = np.sqrt(margin_variance(noise_variance))
    u = z / scale
    mills = _mills(u)
    third = mills.third / scale**3
    return Derivatives(log_ndtr(u), mills.ratio / scale, mills.curvature / scale**2, third)


def noise_derivatives(z, noise_variance):
    """Derivatives of log p, its gradient and its curvature with respect to log σ².

    Returns
    -------
    value, gradient, curvature : ndarray
        d/dlog σ² of ``log Φ(z/s)``, of its first derivative in z, of minus its second.
    """
    d = derivatives(z, noise_variance)
    # With s^{-k} g(z/s) the k-th derivative, d/dlog σ² of it is −½ (z d/dz + k) of it.
    value = -0.5 * z * d.gradient
    gradient = -0.5 * (d.gradient - z * d.curvature)
    curvature = -0.5 * (2.0 * d.curvature - z * d.third)
    return value, gradient, curvature


def tilted(mean, variance, noise_variance):
    """Moments of N(z; mean, variance) Φ(z/s) as derivatives of its log normaliser.

    With α = ``gradient`` and β = ``curvature``, the tilted mean is mean + variance α and the
    tilted variance is variance (1 − variance β): GPML (3.58).
    """
    noise = margin_variance(noise_variance)
    total = variance + noise
    scale = np.sqrt(total)
    u = mean / scale
    mills = _mills(u)
    # 1 − v β = (s² + v (1 − r(u + r))) / (v + s²), a sum of non-negative terms
    shrink = (noise + variance * np.maximum(mills.left, 0.0)) / total
    return Tilted(log_ndtr(u), mills.ratio / scale, mills.curvature / total, shrink, u)


def tilted_noise_gradient(mean, variance, noise_variance):
    """Derivative with respect to log σ² of the log normaliser of `tilted`."""
    noise = margin_variance(noise_variance)
    moments = tilted(mean, variance, noise_variance)
    return -0.5 * noise * mean * moments.gradient / (variance + noise)


def repeated_site(mean, variance, counts, noise_variance, start=None):
    """Site that EP gives each of several equal duels, all of their sites being unknown.

    With one duel this is the usual update. With c duels on one margin each site's cavity holds
    the other c − 1; updating them side by side from a common cavity overshoots, so their common
    fixed point is solved for. At a given u, mean over deviation of the probit's argument, the
    cavity variance is the root of a quadratic, and what is left is monotone in u: Newton's
    method, within the bracket that the signs so far have left.

    Parameters
    ----------
    mean, variance : ndarray
        Of the margin without any of these sites; the variance is positive.
    counts : ndarray
        Numbers c of equal duels.
    noise_variance : float
    start : ndarray, optional
        Where to look for u; by default where it is for one duel.

    Returns
    -------
    precision, shift : ndarray
        Of one site; NaN where no root was found.
    """
    noise = margin_variance(noise_variance)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        alone = mean / np.sqrt(variance + noise)
        u = alone if start is None else np.where(np.isfinite(start), start, alone)
        low, high, moved = np.full(u.shape, -np.inf), np.full(u.shape, np.inf), np.inf
        for _ in range(_NEWTON):
            found = _equal_duels(u, mean, variance, counts - 1.0, noise)
            low = np.where(found.excess < 0.0, u, low)
            high = np.where(found.excess > 0.0, u, high)
            reach = 1.0 + np.abs(u)
            step = np.clip(-found.excess / found.slope, -reach, reach)
            step = np.where(np.isnan(step), -np.sign(found.excess) * reach, step)
            stalled = 2.0 * np.abs(step) > moved
            done = np.abs(step) <= np.where(stalled, _STALLED, 4.0 * _EPS) * reach
            bracketed = np.isfinite(high - low)
            ahead = u + step
            out = (ahead < low) | (ahead > high) | stalled
            ahead = np.where(out & bracketed, 0.5 * (low + high), ahead)
            moved = np.abs(ahead - u)
            if done.all():
                break
            u = np.where(done, u, ahead)
    return np.where(done, found.precision, np.nan), np.where(done, found.shift, np.nan)


class _EqualDuels(NamedTuple):
    """How far u is from the fixed point, the derivative of that, and the site there."""

    excess: np.ndarray
    slope: np.ndarray
    precision: np.ndarray
    shift: np.ndarray


def _equal_duels(u, mean, variance, others, noise):
    mills = _mills(u)
    # l V² + b V − v s² = 0, from 1/V = 1/v + (c − 1) × precision
    b = noise - variance * mills.left + others * mills.curvature * variance
    rest = np.sqrt(b * b + 4.0 * mills.left * variance * noise)
    small = 2.0 * variance * noise / np.where(b > 0.0, b + rest, 1.0)
    large = (rest - b) / np.where(mills.left > 0.0, 2.0 * mills.left, 1.0)
    cavity_var = np.where(b > 0.0, small, large)
    scale = np.sqrt(cavity_var + noise)
    width = noise + cavity_var * mills.left
    lever = mills.ratio + u * mills.curvature
    precision, shift = mills.curvature / width, scale * lever / width
    excess = u * scale / cavity_var - mean / variance - others * shift
    # Derivatives in u: −rest × dV/du is that of the quadratic at fixed V.
    d_var = mills.third * cavity_var * ((1.0 + others) * variance - cavity_var) / rest
    d_scale = 0.5 * d_var / scale
    d_width = d_var * mills.left + cavity_var * mills.third
    d_shift = (lever * (d_scale - scale * d_width / width) - scale * u * mills.third) / width
    slope = (scale + u * d_scale - u * scale * d_var / cavity_var) / cavity_var - others * d_shift
    return _EqualDuels(excess, slope, precision, shift)
