"""Posteriors of small problems by importance sampling, with numpy and scipy alone.

Unknowns are d independent standard normals. Quasi-random points are drawn from a mixture of their
prior and of normals that were fitted to a likelihood by tempered rounds, and are weighed by prior
times likelihood over the density of that mixture. The share of the prior bounds the weights. Four
independent scrambles of the points tell the error.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

Array = np.ndarray
LogLikelihood = Callable[[Array], Array]

PRIOR_SHARE = 0.15
# Fitted normals are so much wider in each direction.
WIDENING = 1.15
# Normals with a smaller share than this of the largest are left out.
NEGLIGIBLE_SHARE = 1e-3
# Shares are this power of the evidence, which a few points tell but roughly.
SHARE_POWER = 0.75
N_SCRAMBLES = 4
# SciPy's name of the seed depends on its version.
_SEED = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"


class Normal(NamedTuple):
    """A normal distribution: its mean, a root of its covariance, and the log evidence there."""

    mean: Array
    factor: Array
    log_evidence: float

    def log_density_ratio(self, x: Array) -> Array:
        """Return the log of the density over that of the standard normal, (n,)."""
        z = np.linalg.solve(self.factor, (x - self.mean).T)
        log_determinant = np.log(np.diag(self.factor)).sum()
        return 0.5 * (np.sum(x**2, axis=1) - np.sum(z**2, axis=0)) - log_determinant


class WeightedDraws(NamedTuple):
    """Draws of the unknowns, (n, d), one scramble after the other, with their log weights."""

    x: Array
    log_weight: Array

    @property
    def log_evidence(self) -> float:
        """Log of the mean weight."""
        return float(logsumexp(self.log_weight) - np.log(len(self.log_weight)))

    @property
    def weight(self) -> Array:
        """Weights that sum to 1."""
        return np.exp(self.log_weight - logsumexp(self.log_weight))

    @property
    def n_effective(self) -> float:
        """Effective number of draws."""
        return float(1.0 / np.sum(self.weight**2))

    def scramble_means(self, values: Array) -> Array:
        """Return posterior means of values, (n, ...), by each scramble, (N_SCRAMBLES, ...)."""
        weight = self.weight.reshape(N_SCRAMBLES, -1)
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.einsum("sn,sn...->s...", weight, values.reshape(*weight.shape, *values.shape[1:]))

    def combined(self, means: Array) -> tuple[Array, float]:
        """Return the mean by all scrambles, and the largest standard error."""
        share = self.weight.reshape(N_SCRAMBLES, -1).sum(axis=1)
        error = np.std(means, axis=0, ddof=1) / np.sqrt(N_SCRAMBLES)
        return np.tensordot(share, means, axes=1), float(np.max(error))


def standard_normals(n: int, d: int, rng: np.random.Generator) -> Array:
    """Draw quasi-random points of d independent standard normals, (n, d)."""
    points = qmc.Sobol(d, **{_SEED: rng}).random_base2(int(np.ceil(np.log2(max(n, 1)))))[:n]
    return ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))


def fit_normal(
    log_likelihood: LogLikelihood, d: int, rng: np.random.Generator, n: int = 2048, rounds: int = 5
) -> Normal:
    """Fit a normal to the posterior of d standard normals, by tempered rounds of weighted draws."""
    fitted = Normal(np.zeros(d), np.eye(d), 0.0)
    for _ in range(rounds):
        x = standard_normals(n, d, rng)
        own = rng.random(n) > PRIOR_SHARE
        x[own] = fitted.mean + x[own] @ fitted.factor.T
        log_weight = log_likelihood(x) - _log_density_ratio(x, [fitted], np.ones(1), PRIOR_SHARE)
        weight = _tempered_weights(log_weight, 10.0 * d + 50.0)
        mean = weight @ x
        away = x - mean
        covariance = (weight[:, None] * away).T @ away + 1e-6 * np.eye(d)
        log_evidence = float(logsumexp(log_weight) - np.log(n))
        fitted = Normal(mean, WIDENING * np.linalg.cholesky(covariance), log_evidence)
    return fitted


def draw_posterior(
    log_likelihood: LogLikelihood,
    normals: list[Normal],
    rng: np.random.Generator,
    *,
    n: int,
    n_most: int,
    n_effective: float,
    n_unseen: int = 0,
) -> WeightedDraws | None:
    """Draw the posterior through a mixture of the prior and fitted normals.

    Parameters
    ----------
    log_likelihood : callable
        Of points (n, d), shape (n,).
    normals : list of Normal
        Each has a share that grows with its evidence.
    rng : Generator
    n, n_most : int
        Draws at first; four times as many, again and again, until enough are effective, or there
        would be more than ``n_most``.
    n_effective : float
        Effective draws asked for.
    n_unseen : int, default=0
        Further unknowns on which the likelihood does not depend: the last columns of the draws.

    Returns
    -------
    WeightedDraws or None
        None if that many do not suffice.
    """
    log_evidence = np.array([normal.log_evidence for normal in normals])
    share = np.exp(SHARE_POWER * (log_evidence - log_evidence.max()))
    kept = share > NEGLIGIBLE_SHARE
    normals = [normal for normal, keep in zip(normals, kept, strict=True) if keep]
    share = share[kept] / share[kept].sum()
    d = len(normals[0].mean)
    while n <= n_most:
        part = n // N_SCRAMBLES
        n_each = np.floor((1.0 - PRIOR_SHARE) * part * share).astype(int)
        x = np.concatenate(
            [_mixture(normals, n_each, part, n_unseen, rng) for _ in range(N_SCRAMBLES)]
        )
        prior_share = 1.0 - n_each.sum() / part
        ratio = _log_density_ratio(x[:, :d], normals, n_each, prior_share)
        draws = WeightedDraws(x, log_likelihood(x[:, :d]) - ratio)
        if draws.n_effective >= n_effective:
            return draws
        n *= 4
    return None


def _mixture(normals, n_each, n, n_unseen, rng):
    """Return one scramble: so many points of each normal, and the rest of the prior."""
    d = len(normals[0].mean)
    x = standard_normals(n, d + n_unseen, rng)
    # Points of one component are every so-manieth of the sequence, not its beginning.
    component = rng.permutation(np.repeat(np.arange(len(n_each)), n_each))
    rows = np.sort(rng.permutation(n)[: len(component)])
    for k, normal in enumerate(normals):
        own = rows[component == k]
        x[own, :d] = normal.mean + x[own, :d] @ normal.factor.T
    return x


def _log_density_ratio(x, normals, share, prior_share):
    """Return the log of the mixture's density over that of the prior."""
    with np.errstate(divide="ignore"):
        log_share = np.log((1.0 - prior_share) * share / share.sum())
    logs = [
        part + normal.log_density_ratio(x) for normal, part in zip(normals, log_share, strict=True)
    ]
    return logsumexp([np.full(len(x), np.log(prior_share)), *logs], axis=0)


def _tempered_weights(log_weight, least):
    """Return weights, brought nearer to each other until so many draws are effective."""
    power = 1.0
    while True:
        weight = np.exp(power * (log_weight - log_weight.max()))
        weight /= weight.sum()
        if 1.0 / np.sum(weight**2) >= min(least, 0.5 * len(weight)) or power < 1e-3:
            return weight
        power *= 0.7
