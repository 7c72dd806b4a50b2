"""Posteriors of small problems by importance sampling, with numpy and scipy alone.

Unknowns are d independent standard normals. Draws come from a mixture of their prior and of
normals that were fitted to a likelihood by tempered rounds, and are weighed by prior times
likelihood over the density of that mixture. The share of the prior bounds the weights.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

Array = np.ndarray
LogLikelihood = Callable[[Array], Array]

PRIOR_SHARE = 0.15
# Fitted normals are so much wider in each direction.
WIDENING = 1.15
# Normals with a smaller share than this of the largest are left out.
NEGLIGIBLE_SHARE = 1e-3
# A problem that does not reach the effective draws asked for with so many draws has no truth.
MOST_DRAWS = 2**20


class Normal(NamedTuple):
    """A normal distribution: its mean, a root of its covariance, and the log evidence there."""

    mean: Array
    factor: Array
    log_evidence: float

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points, (n, d)."""
        return self.mean + rng.standard_normal((n, len(self.mean))) @ self.factor.T

    def log_density_ratio(self, x: Array) -> Array:
        """Return the log of the density over that of the standard normal, (n,)."""
        z = np.linalg.solve(self.factor, (x - self.mean).T)
        log_determinant = np.log(np.diag(self.factor)).sum()
        return 0.5 * (np.sum(x**2, axis=1) - np.sum(z**2, axis=0)) - log_determinant


class WeightedDraws(NamedTuple):
    """Draws of the unknowns, (n, d), their weights, summing to 1, and the log evidence."""

    x: Array
    weight: Array
    log_evidence: float

    @property
    def n_effective(self) -> float:
        """Effective number of draws."""
        return float(1.0 / np.sum(self.weight**2))

    def mean(self, values: Array) -> Array:
        """Return the posterior mean of values, (n, ...), of the draws."""
        return np.tensordot(self.weight, values, axes=1)

    def standard_error(self, values: Array) -> Array:
        """Return the Monte Carlo error of that mean."""
        return np.sqrt(np.tensordot(self.weight**2, (values - self.mean(values)) ** 2, axes=1))


def fit_normal(
    log_likelihood: LogLikelihood, d: int, rng: np.random.Generator, n: int = 2048, rounds: int = 5
) -> Normal:
    """Fit a normal to the posterior of d standard normals, by tempered rounds of weighted draws."""
    fitted = Normal(np.zeros(d), np.eye(d), 0.0)
    for _ in range(rounds):
        x = fitted.draw(n, rng)
        n_prior = int(PRIOR_SHARE * n)
        x[:n_prior] = rng.standard_normal((n_prior, d))
        log_weight = log_likelihood(x) - _log_mixture_ratio(x, [fitted], np.ones(1))
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
    n_effective: float,
) -> WeightedDraws | None:
    """Draw the posterior through a mixture of the prior and fitted normals.

    Parameters
    ----------
    log_likelihood : callable
        Of points (n, d), shape (n,).
    normals : list of Normal
        Each has a share that grows with the root of its evidence.
    rng : Generator
    n : int
        Draws at first; four times as many, again and again, until enough are effective.
    n_effective : float
        Effective draws asked for.

    Returns
    -------
    WeightedDraws or None
        None if ``MOST_DRAWS`` do not suffice.
    """
    share = np.exp(0.5 * np.array([normal.log_evidence for normal in normals]))
    share /= share.max()
    kept = share > NEGLIGIBLE_SHARE
    normals = [normal for normal, keep in zip(normals, kept, strict=True) if keep]
    share = share[kept] / share[kept].sum()
    d = len(normals[0].mean)
    while n <= MOST_DRAWS:
        # The numbers of draws by component are fixed: the mixture's density stays the right one.
        n_each = np.floor((1.0 - PRIOR_SHARE) * n * share).astype(int)
        parts = [normal.draw(k, rng) for normal, k in zip(normals, n_each, strict=True)]
        n_prior = n - int(n_each.sum())
        x = np.concatenate([rng.standard_normal((n_prior, d)), *parts])
        log_weight = log_likelihood(x) - _log_mixture_ratio(x, normals, n_each / n, n_prior / n)
        total = float(logsumexp(log_weight))
        draws = WeightedDraws(x, np.exp(log_weight - total), total - float(np.log(n)))
        if draws.n_effective >= n_effective:
            return draws
        n *= 4
    return None


def _log_mixture_ratio(x, normals, share, prior_share=PRIOR_SHARE):
    """Return the log of the mixture's density over that of the prior."""
    share = (1.0 - prior_share) * share / share.sum()
    with np.errstate(divide="ignore"):
        logs = [
            np.log(part) + normal.log_density_ratio(x)
            for normal, part in zip(normals, share, strict=True)
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
