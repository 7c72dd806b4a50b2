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
# Below this the inverse Mills ratio is expanded in 1/u²: u + φ/Φ would cancel.
_FAR = -60.0


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

    ``shrink`` is tilted variance over cavity variance, in (0, 1].
    """

    log_normaliser: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    shrink: np.ndarray


def inverse_mills(u):
    """Return r = φ(u)/Φ(u) and r (u + r) = −d²log Φ/du², both to full relative precision."""
    with np.errstate(over="ignore", divide="ignore"):
        ratio = _SQRT_2_OVER_PI / erfcx(-_SQRT_HALF * u)
    curvature = ratio * (u + ratio)
    far = u < _FAR
    if np.any(far):
        q = 1.0 / np.square(np.where(far, u, -1.0))
        # Asymptotic series of Mills' ratio: r = |u| (1 + q − 2q² + 10q³ − …).
        curvature = np.where(far, 1.0 - q * (1.0 - q * (6.0 - 50.0 * q)), curvature)
    return ratio, curvature


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
    ratio, curvature = inverse_mills(u)
    third = curvature * (u + 2.0 * ratio) - ratio  # d³/du³ log Φ, with dr/du = −r(u + r)
    far = u < _FAR
    if np.any(far):
        inverse = 1.0 / np.where(far, u, -1.0)
        q = inverse**2
        third = np.where(far, -2.0 * inverse * q * (1.0 - q * (12.0 - 150.0 * q)), third)
    return Derivatives(log_ndtr(u), ratio / scale, curvature / scale**2, third / scale**3)


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
    ratio, curvature = inverse_mills(u)
    # 1 − v β = (s² + v (1 − r(u + r))) / (v + s²), a sum of non-negative terms
    left = 1.0 - curvature
    far = u < _FAR
    if np.any(far):
        q = 1.0 / np.square(np.where(far, u, -1.0))
        left = np.where(far, q * (1.0 - q * (6.0 - 50.0 * q)), left)
    shrink = (noise + variance * np.maximum(left, 0.0)) / total
    return Tilted(log_ndtr(u), ratio / scale, curvature / total, shrink)


def tilted_noise_gradient(mean, variance, noise_variance):
    """Derivative with respect to log σ² of the log normaliser of `tilted`."""
    noise = margin_variance(noise_variance)
    moments = tilted(mean, variance, noise_variance)
    return -0.5 * noise * mean * moments.gradient / (variance + noise)
