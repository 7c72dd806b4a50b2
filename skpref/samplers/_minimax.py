"""Minimax exponential tilting for N(0, Σ) on v > 0: Pr(v > 0), and independent exact draws.

Botev (2017), "The normal law under linear restrictions: simulation and estimation via minimax tilting",
Journal of the Royal Statistical Society B 79. For up to about 50 coordinates. It shares nothing with
the Markov chains, and so serves as their outside truth.

With Σ = L Lᵀ and v = L z, z is drawn coordinate by coordinate, z_k ~ N(μ_k, 1) given
z_k >= −c_k, c = (L/diag(L) − I) z, and the logarithm of the likelihood ratio is
ψ(z, μ) = Σ_k μ_k²/2 − μ_k z_k + log Φ(μ_k + c_k). ψ is concave in z and convex in μ; at the saddle
point (x, μ) the bound ψ <= ψ(x, μ) holds for all z, which is what acceptance–rejection needs.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import root
from scipy.special import erfcx, log_ndtr

from skpref.samplers._chains import cholesky_factor
from skpref.samplers.truncated_normal import quantile_below


class OrthantProbability(NamedTuple):
    """log Pr(v > 0) and the relative standard error of the probability (about that of the log)."""

    log_probability: float
    relative_error: float


class MinimaxDraws(NamedTuple):
    """Independent draws (n, t), and the share of proposals that were accepted."""

    draws: np.ndarray
    acceptance: float


class _Tilting(NamedTuple):
    """Permutation, its Cholesky factor, L/diag(L) − I, tilting μ and the bound of ψ."""

    order: np.ndarray
    factor: np.ndarray
    unit: np.ndarray
    shift: np.ndarray
    bound: float


def orthant_probability(covariance, n, rng):
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
    if n < 2:
        raise ValueError(f"n is {n}; at least 2 proposals are needed for an error estimate.")
    tilting = _tilt(covariance)
    _, log_ratio = _propose(tilting, n, rng)
    largest = log_ratio.max()
    ratio = np.exp(log_ratio - largest)
    mean = ratio.mean()
    return OrthantProbability(
        float(largest + np.log(mean)), float(ratio.std(ddof=1) / mean / np.sqrt(n))
    )


def minimax_draws(covariance, n, rng, *, smallest_acceptance=1e-5):
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
    if n < 1:
        raise ValueError(f"n is {n}; at least 1 draw is needed.")
    tilting = _tilt(covariance)
    accepted, found, proposed, batch = [], 0, 0, max(n, 1000)
    while found < n:
        z, log_ratio = _propose(tilting, batch, rng)
        kept = z[:, -rng.standard_exponential(batch) <= log_ratio - tilting.bound]
        accepted.append(kept)
        found += kept.shape[1]
        proposed += batch
        if proposed * smallest_acceptance > max(found, 10):
            raise RuntimeError(
                f"Only {found} of {proposed} proposals were accepted (t = {len(tilting.shift)}): "
                "exact independent draws are out of reach here; use hmc, or a larger noise variance."
            )
        share = max(found, 1) / proposed
        batch = int(np.clip(1.1 * (n - found) / share + 100, 1000, 100_000))
    draws = np.empty((n, len(tilting.shift)))
    draws[:, tilting.order] = (tilting.factor @ np.concatenate(accepted, axis=1)[:, :n]).T
    return MinimaxDraws(draws, found / proposed)


def _propose(tilting, n, rng):
    """Proposals z (t, n) and their ψ (n,)."""
    t = len(tilting.shift)
    z = np.zeros((t, n))
    log_ratio = np.zeros(n)
    uniform = 1.0 - rng.random((t, n))
    for k, shift in enumerate(tilting.shift):
        upper = tilting.unit[k, :k] @ z[:k] + shift
        z[k] = shift - quantile_below(upper, uniform[k])  # mirrored: z_k − μ_k >= −upper
        log_ratio += log_ndtr(upper) + 0.5 * shift**2 - shift * z[k]
    return z, log_ratio


def _tilt(covariance):
    """Order the variables, factorise and find the saddle point of ψ."""
    covariance, _ = cholesky_factor(covariance)
    order, factor = _ordered_factor(covariance)
    t = len(order)
    unit = factor / factor.diagonal()[:, None]
    np.fill_diagonal(unit, 0.0)

    def equations(point):
        x, shift = np.append(point[: t - 1], 0.0), np.append(point[t - 1 :], 0.0)
        upper = unit @ x + shift
        hazard = _hazard(upper)
        slope = -hazard * (hazard + upper)  # its derivative
        below = unit[:, : t - 1]
        gradient = np.concatenate(((below.T @ hazard) - shift[:-1], (shift - x + hazard)[:-1]))
        cross = (slope[:, None] * below)[:-1] - np.eye(t - 1)
        jacobian = np.block(
            [[below.T @ (slope[:, None] * below), cross.T], [cross, np.diag(1.0 + slope[:-1])]]
        )
        return gradient, jacobian

    if t == 1:
        return _Tilting(order, factor, unit, np.zeros(1), float(np.log(0.5)))
    for method in ("hybr", "lm"):
        solution = root(equations, np.zeros(2 * (t - 1)), jac=True, method=method, tol=1e-12)
        if np.abs(equations(solution.x)[0]).max() < 1e-6:
            break
    else:
        raise RuntimeError(
            f"The saddle point of minimax tilting was not found (t = {t}): the covariance is too close "
            "to singular; use hmc, or a larger noise variance."
        )
    x, shift = np.append(solution.x[: t - 1], 0.0), np.append(solution.x[t - 1 :], 0.0)
    bound = np.sum(0.5 * shift**2 - shift * x + log_ndtr(unit @ x + shift))
    return _Tilting(order, factor, unit, shift, float(bound))


def _hazard(upper):
    """φ/Φ at `upper`, to full relative precision: near-singular Σ has it in the thousands."""
    return np.sqrt(2.0 / np.pi) / erfcx(-upper / np.sqrt(2.0))


def _ordered_factor(covariance):
    """Permutation that puts the least likely constraint first at each step, and its Cholesky factor.

    Gibson, Glasbey & Elston (1994), as in Botev (2017), section 2: each variable that is placed is set
    to its mean given its own constraint.
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
