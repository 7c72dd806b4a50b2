"""Importance weights whose largest are smoothed by a generalised Pareto distribution."""

import numpy as np
from scipy.special import logsumexp

from skpref._utils import Array


def pareto_smoothed(log_ratios: Array) -> tuple[Array, Array]:
    r"""Smooth importance weights; return their normalised logarithms, and the shape of the tail.

    The M = ⌈min(S/5, 3√S)⌉ largest of S weights are replaced by the expected order statistics of a
    generalised Pareto distribution that is fitted to them, and none is larger than the largest was
    (Vehtari et al. 2024, section 2.3).

    Parameters
    ----------
    log_ratios : ndarray of shape (n, S)
        Logarithms of weights up to a constant, one row a problem.

    Returns
    -------
    log_weights : ndarray of shape (n, S)
        Of weights with a sum of one in each row.
    shape : ndarray of shape (n,)
        k̂: below 0.7 estimates are reliable; infinite where the tail tells nothing.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao and Gabry, "Pareto smoothed importance sampling", JMLR 25, 2024.
    Zhang and Stephens, "A new and efficient estimation method for the generalized Pareto
    distribution", Technometrics 51, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inspection._pareto import pareto_smoothed
    >>> rng = np.random.default_rng(0)
    >>> log_weights, shape = pareto_smoothed(-np.log(rng.uniform(size=(1, 4000))) / 2.0)
    >>> bool(abs(shape[0] - 0.5) < 0.1)  # u^(-1/2) has a tail of this shape
    True
    """
    smoothed = log_ratios - log_ratios.max(axis=1, keepdims=True)
    n, size = smoothed.shape
    n_tail = int(np.ceil(min(0.2 * size, 3.0 * np.sqrt(size))))
    if n_tail < 5:  # so few tell nothing of the tail
        return smoothed - logsumexp(smoothed, axis=1, keepdims=True), np.full(n, np.inf)
    order = np.argsort(smoothed, axis=1)
    tail = order[:, -n_tail:]
    cut = np.take_along_axis(smoothed, order[:, [-n_tail - 1]], axis=1)
    top = np.take_along_axis(smoothed, tail, axis=1)
    excess = np.exp(top) - np.exp(cut)
    varies = excess[:, 0] < excess[:, -1] * (1.0 - 1e-12)
    varies &= excess[:, max(0, n_tail // 4 - 1)] > 0.0
    shape = np.where(np.ptp(smoothed, axis=1) < 1e-12, -np.inf, np.inf)
    if varies.any():
        shape[varies], scale = _fit_tail(excess[varies])
        level = (np.arange(n_tail) + 0.5) / n_tail
        k = shape[varies, None]
        small = np.abs(k) < 1e-9
        with np.errstate(divide="ignore", invalid="ignore"):
            quantile = np.where(small, -np.log1p(-level), np.expm1(-k * np.log1p(-level)) / k)
        expected = np.log(scale[:, None] * quantile + np.exp(cut[varies]))
        rows = np.flatnonzero(varies)[:, None]
        smoothed[rows, tail[varies]] = np.minimum(expected, 0.0)
    return smoothed - logsumexp(smoothed, axis=1, keepdims=True), shape


def _fit_tail(excess: Array) -> tuple[Array, Array]:
    """Return shape k and scale σ of a generalised Pareto fit to ascending exceedances (n, M).

    With b = −k/σ the likelihood has a profile in b alone, whose mean under a prior on a grid is the
    estimate (Zhang and Stephens 2009, equations 7 to 9).
    """
    m = excess.shape[1]
    # Zhang and Stephens (2009): the prior of the profile is 1/3 of the quartile, on 30 + √m points.
    n_points = 30 + int(np.sqrt(m))
    grid = 1.0 - np.sqrt(n_points / (np.arange(1, n_points + 1) - 0.5))
    quartile = excess[:, [int(m / 4 + 0.5) - 1]]
    b = grid / (3.0 * quartile) + 1.0 / excess[:, -1:]
    shapes = np.stack([np.log1p(-at[:, None] * excess).mean(axis=1) for at in b.T], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = m * (np.log(-b / shapes) - shapes - 1.0)
    profile = np.where(np.isfinite(profile), profile, -np.inf)
    weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
    centre = np.sum(weight * b, axis=1)
    shape = np.log1p(-centre[:, None] * excess).mean(axis=1)
    scale = -shape / centre
    # Vehtari et al. (2024), appendix C: a prior on k of mean 0.5 that weighs as ten draws.
    return (m * shape + 0.5 * 10.0) / (m + 10.0), scale
