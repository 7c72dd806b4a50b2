"""Minimax exponential tilting for N(0, Σ) on v > 0: Pr(v > 0), and independent exact draws.

Botev (2017), "The normal law under linear restrictions: simulation and estimation via minimax
tilting", Journal of the Royal Statistical Society B 79. For up to about 50 coordinates. It
shares with the Markov chains only the univariate truncated normal (Gibbs), and serves as their
outside truth.

With Σ = L Lᵀ and v = L z, z is drawn coordinate by coordinate, z_k ~ N(μ_k, 1) given
z_k >= −c_k, c = (L/diag(L) − I) z, and the logarithm of the likelihood ratio is
ψ(z, μ) = Σ_k μ_k²/2 − μ_k z_k + log Φ(μ_k + c_k). ψ is concave in z and convex in μ; at the saddle
point (x, μ) the bound ψ <= ψ(x, μ) holds for all z, which is what acceptance–rejection needs.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erfcx, log_ndtr

from skpref._utils import check_number, solve_lower
from skpref.samplers._chains import check_generator, cholesky_factor
from skpref.samplers.truncated_normal import quantile_below

_MAX_NEWTON = 200


class OrthantProbability(NamedTuple):
    """log Pr(v > 0) and the relative standard error of the probability (about that of the log).

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import orthant_probability
    >>> found = orthant_probability(np.eye(2), 100, np.random.default_rng(0))
    >>> float(np.exp(found.log_probability).round(3))
    0.25
    """

    log_probability: float
    relative_error: float


class MinimaxDraws(NamedTuple):
    """Independent draws (n, t), and the share of proposals that were accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import minimax_draws
    >>> found = minimax_draws(np.eye(2), 100, np.random.default_rng(0))
    >>> found.draws.shape, found.acceptance
    ((100, 2), 1.0)
    """

    draws: np.ndarray
    acceptance: float


class _Tilting(NamedTuple):
    """Permutation, its Cholesky factor, L/diag(L) − I, tilting μ and the bound of ψ."""

    order: np.ndarray
    factor: np.ndarray
    unit: np.ndarray
    shift: np.ndarray
    bound: float


def orthant_probability(
    covariance: np.ndarray, n: int, rng: np.random.Generator
) -> OrthantProbability:
    """Estimate log Pr(v > 0) for v ~ N(0, Σ) by importance sampling with minimax tilting.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive definite; t up to about 50.
    n : int
        Proposals, at least 2.
    rng : numpy.random.Generator

    Returns
    -------
    OrthantProbability

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or n is below 2.
    RuntimeError
        If the saddle point is not found.

    References
    ----------
    Botev (2017), J. R. Stat. Soc. B 79, 125-148, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import orthant_probability
    >>> equicorrelated = 0.5 + 0.5 * np.eye(9)
    >>> estimate = orthant_probability(equicorrelated, 10_000, np.random.default_rng(0))
    >>> bool(abs(np.exp(estimate.log_probability) - 1 / 10) < 0.002)
    True
    """
    check_number("n", n, low=2, integer=True)  # an error estimate needs two
    check_generator(rng)
    tilting = _make_tilting(covariance)
    _, log_ratio = _draw_proposals(tilting, n, rng)
    largest = log_ratio.max()
    ratio = np.exp(log_ratio - largest)
    mean = ratio.mean()
    return OrthantProbability(
        float(largest + np.log(mean)), float(ratio.std(ddof=1) / mean / np.sqrt(n))
    )


def minimax_draws(
    covariance: np.ndarray,
    n: int,
    rng: np.random.Generator,
    *,
    smallest_acceptance: float = 1e-5,
) -> MinimaxDraws:
    """Draw independently and exactly from N(0, Σ) on v > 0 by acceptance–rejection.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive definite; t up to about 50.
    n : int
        Number of draws.
    rng : numpy.random.Generator
    smallest_acceptance : float, default=1e-5
        Below this share of accepted proposals the work is given up.

    Returns
    -------
    MinimaxDraws

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or n is below 1.
    RuntimeError
        If the saddle point is not found, or the acceptance is hopeless.

    References
    ----------
    Botev (2017), J. R. Stat. Soc. B 79, 125-148, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import minimax_draws
    >>> result = minimax_draws(0.5 + 0.5 * np.eye(9), 1000, np.random.default_rng(0))
    >>> result.draws.shape, bool(result.draws.min() > 0), bool(result.acceptance > 0.5)
    ((1000, 9), True, True)
    """
    check_number("n", n, low=1, integer=True)
    check_generator(rng)
    tilting = _make_tilting(covariance)
    accepted, n_accepted, n_proposed, batch = [], 0, 0, max(n, 1000)
    while n_accepted < n:
        z, log_ratio = _draw_proposals(tilting, batch, rng)
        accepted_batch = z[:, -rng.standard_exponential(batch) <= log_ratio - tilting.bound]
        accepted.append(accepted_batch)
        n_accepted += accepted_batch.shape[1]
        n_proposed += batch
        if n_proposed * smallest_acceptance > max(n_accepted, 10):
            raise RuntimeError(
                f"Only {n_accepted} of {n_proposed} proposals were accepted "
                f"(t = {len(tilting.shift)}): independent draws would take too long; "
                "use hmc, or a larger noise variance."
            )
        share = max(n_accepted, 1) / n_proposed
        batch = int(np.clip(1.1 * (n - n_accepted) / share + 100, 1000, 100_000))
    draws = np.empty((n, len(tilting.shift)))
    draws[:, tilting.order] = (tilting.factor @ np.concatenate(accepted, axis=1)[:, :n]).T
    return MinimaxDraws(draws, n_accepted / n_proposed)


def _draw_proposals(tilting, n, rng):
    """Return n proposals z (t, n) of a tilting, and the logarithm of their ratios ψ (n,)."""
    t = len(tilting.shift)
    z = np.zeros((t, n))
    log_ratio = np.zeros(n)
    uniform = 1.0 - rng.random((t, n))
    for k, shift in enumerate(tilting.shift):
        upper = tilting.unit[k, :k] @ z[:k] + shift
        z[k] = shift - quantile_below(upper, uniform[k])  # mirrored: z_k − μ_k >= −upper
        log_ratio += log_ndtr(upper) + 0.5 * shift**2 - shift * z[k]
    return z, log_ratio


def _make_tilting(covariance):
    """Return the minimax tilting of a covariance: order, factor and saddle point of ψ."""
    covariance, _ = cholesky_factor(covariance)
    order, factor = _ordered_factor(covariance)
    t = len(order)
    unit = factor / factor.diagonal()[:, None]
    np.fill_diagonal(unit, 0.0)

    return _Tilting(order, factor, unit, *_saddle_point(unit + np.eye(t)))


def _saddle_point(transform):
    """Return μ and ψ at the saddle point, for `transform` M = L/diag(L), by Newton's method.

    Minimising over μ first leaves a concave problem in x alone. With y = M x, the distance to the
    walls in conditional standard deviations, the best μ_k makes x_k the mean of the proposal:
    s + φ(s)/Φ(s) = y_k with s = μ_k + y_k − x_k. What is left is Σ_k H(y_k) − x_k²/2 + log Φ(y_t),
    with H' = φ(s)/Φ(s) and x_t = μ_t = 0. H behaves like log y at the walls: a barrier, under which
    Newton's method with halved steps converges from any y > 0, however close to singular Σ is.
    """
    t = len(transform)
    free = transform[:, : t - 1]
    x = solve_lower(transform[: t - 1, : t - 1], np.ones(t - 1))
    value, s = _minimise_over_tilting(x, free)
    if t == 1:
        return np.zeros(1), float(value)
    for _ in range(_MAX_NEWTON):
        hazard = _hazard(s)
        slope = hazard * (hazard + s)
        curvature = slope.copy()
        curvature[:-1] /= _truncated_variance(s[:-1])  # −H''
        gradient = free.T @ hazard - x
        root = np.sqrt(curvature)[:, None] * free
        try:
            step = cho_solve(cho_factor(np.eye(t - 1) + root.T @ root), gradient)
        except np.linalg.LinAlgError:
            break
        decrement = float(gradient @ step)
        if not decrement > 1e-16:  # twice the distance of ψ from its maximum
            y = free @ x
            shift = np.append(s[:-1] - y[:-1] + x, 0.0)
            return shift, float(value)
        size = 1.0
        while size > 1e-12:
            new_value, new_s = _minimise_over_tilting(x + size * step, free)
            if new_value >= value + 0.1 * size * decrement - 1e-12 * abs(value):
                break
            size /= 2
        x, value, s = x + size * step, new_value, new_s
    raise RuntimeError(
        f"The saddle point of minimax tilting was not found (t = {t}): the covariance is too near "
        "to singular; use hmc, or a larger noise variance."
    )


def _minimise_over_tilting(x, free):
    """Return ψ minimised over μ, and s = μ + y − x, at given x; −inf outside y > 0.

    ``free`` is M without its last column, and the last entry of s is y_t.
    """
    y = free @ x
    if not np.all(y[:-1] > 0):
        return -np.inf, y
    s = y.copy()
    s[:-1] = y[:-1] - 1.0 / y[:-1]
    for _ in range(_MAX_NEWTON):  # the mean is convex and increasing in s: Newton cannot fail
        change = (_truncated_mean(s[:-1]) - y[:-1]) / _truncated_variance(s[:-1])
        s[:-1] -= change
        if np.all(np.abs(change) <= 1e-13 * (1.0 + np.abs(s[:-1]))):
            break
    with np.errstate(over="ignore"):
        # log Φ(s) + s²/2, without its cancellation where s is far below 0
        scaled = np.where(s < 0, np.log(0.5 * erfcx(-s / np.sqrt(2.0))), log_ndtr(s) + 0.5 * s**2)
    value = np.sum(scaled[:-1] + y[:-1] * (0.5 * y[:-1] - s[:-1]) - 0.5 * x**2) + log_ndtr(y[-1])
    return value, s


def _hazard(upper):
    """Return φ/Φ at `upper`, to full relative precision: near-singular Σ has it in thousands."""
    return np.sqrt(2.0 / np.pi) / erfcx(-upper / np.sqrt(2.0))


def _truncated_mean(upper):
    """Return the mean of N(upper, 1) given that it is positive, upper + φ/Φ, to full precision."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = 1.0 / upper**2
        return np.where(
            upper < -200.0, -(1.0 - 2.0 * q + 10.0 * q**2) / upper, upper + _hazard(upper)
        )


def _truncated_variance(upper):
    """Return the derivative of `_truncated_mean`, the variance of the truncated normal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = 1.0 / upper**2
        hazard = _hazard(upper)
        return np.where(
            upper < -200.0, q - 6.0 * q**2 + 50.0 * q**3, 1.0 - hazard * (hazard + upper)
        )


def _ordered_factor(covariance):
    """Return the order with the least likely constraint first, and its Cholesky factor.

    Gibson, Glasbey & Elston (1994), as in Botev (2017), section 2: each variable that is placed is
    set to its mean given its own constraint.
    """
    t = len(covariance)
    order = np.arange(t)
    factor = np.zeros((t, t))
    mean = np.zeros(t)  # of each variable given those placed
    variance = covariance.diagonal().copy()
    for k in range(t):
        log_probability = log_ndtr(mean[k:] / np.sqrt(variance[k:]))
        i = k + int(log_probability.argmin())
        for array in (order, factor, mean, variance):
            array[[k, i]] = array[[i, k]]
        factor[k, k] = np.sqrt(variance[k])
        rest = covariance[order[k + 1 :], order[k]] - factor[k + 1 :, :k] @ factor[k, :k]
        factor[k + 1 :, k] = rest / factor[k, k]
        upper = mean[k] / factor[k, k]
        mean[k + 1 :] += factor[k + 1 :, k] * _hazard(upper)  # E[z_k | z_k >= −upper]
        variance[k + 1 :] -= factor[k + 1 :, k] ** 2
        floor = np.finfo(np.float64).eps * covariance.diagonal()[order[k + 1 :]]
        variance[k + 1 :] = np.maximum(variance[k + 1 :], floor)
    return order, factor
