"""Acquisitions of a duel that look at the model after its answer.

They need the posterior at more places than the two items of the duel: at those that may be
recommended after the answer. So each scores pairs of `Candidates` all at once, and then a few rows
that move together, with the gradient in all of them.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skpref._utils import NEGLIGIBLE, Array, cholesky, floor_variance
from skpref.gp import Posterior

_ROOT_2PI = np.sqrt(2.0 * np.pi)
# Joint draws of the utilities of all candidates.
_DRAWS = 64

Indices = NDArray[np.intp]


class Candidates(NamedTuple):
    """Items that may be shown, the first m of which may be recommended, and the posterior there.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
    means : ndarray of shape (n, S)
        Of the components.
    var : ndarray of shape (n,)
    cov : ndarray of shape (n, m)
        With the first m. Both are shared by the components.
    best : ndarray of shape (n_draws,)
        Which of the first m is the best in each of some joint draws of their utilities.
    """

    rows: Array
    means: Array
    var: Array
    cov: Array
    best: Indices

    @classmethod
    def of(cls, posterior: Posterior, rows: Array, m: int, rng: np.random.Generator) -> Self:
        """With draws of the utilities of the first m rows."""
        means, var, cov = _moments(posterior, rows, m)
        component = rng.integers(posterior.n_components, size=_DRAWS)
        drawn = cholesky(cov[:m]) @ rng.standard_normal((m, _DRAWS))
        return cls(rows, means, var, cov, np.argmax(means[:m, component] + drawn, axis=0))

    def joined_by(self, posterior: Posterior, rows: Array) -> Self:
        """The first m and more rows, of all of which any may be recommended."""
        rows = np.concatenate([self.rows[: self.cov.shape[1]], rows])
        means, var, cov = _moments(posterior, rows, len(rows))
        return type(self)(rows, means, var, cov, self.best)

    def margins(self, first: Indices, second: Indices) -> tuple[Array, Array]:
        """Means (p, S) and variance (p,) of f(first) − f(second), the first below m."""
        scale = self.var[first] + self.var[second]
        var = floor_variance(scale - 2.0 * self.cov[second, first], scale, NEGLIGIBLE)
        return self.means[first] - self.means[second], var

    def utility_of_best(self) -> Array:
        """E max(f(i), f(j)) of pairs of the first m, by the mixture's moments, (m, m)."""
        m = self.cov.shape[1]
        mean, spread = self.means[:m].mean(axis=1), self.cov[:m]
        if self.means.shape[1] > 1:
            spread = spread + np.cov(self.means[:m], bias=True)
        scale = np.diagonal(spread)
        scale = scale[:, None] + scale
        deviation = np.sqrt(floor_variance(scale - 2.0 * spread, scale, NEGLIGIBLE))
        margin = mean[:, None] - mean
        z = margin / deviation
        return mean + margin * ndtr(z) + deviation * _density(z)


def _moments(posterior, rows, m):
    half = posterior.cross(rows) @ posterior.factor
    cov = posterior.kernel(rows, rows[:m]) - half @ half[:m].T
    return posterior.component_means(rows), posterior.component_var(rows), cov


def _density(z: Array) -> Array:
    return np.exp(-0.5 * z * z) / _ROOT_2PI


class KnowledgeGradient:
    """How much the best posterior mean grows by the answer of a duel, in expectation [1]_.

    Given that a wins, the mean is μ(x) + c(x) φ(u) / (s Φ(u)), where c(x) = cov(f(x), f(a) − f(b)),
    s² is the variance of the noisy margin and u its mean divided by s; given that b wins, it is
    μ(x) − c(x) φ(u) / (s Φ(−u)). So the gain is

        max_x [Φ(u) μ(x) + c(x) φ(u)/s] + max_x [Φ(−u) μ(x) − c(x) φ(u)/s] − max_x μ(x),

    and with several components both brackets are averages over these. It is exact for a probit.

    Parameters
    ----------
    posterior : Posterior
    candidates : Candidates
        The last term is over these.

    References
    ----------
    .. [1] Wu and Gardner, "Knowledge Gradient for Preference Learning", arXiv 2601.22335, 2026.
    """

    def __init__(self, posterior: Posterior, candidates: Candidates) -> None:
        self._joint = posterior.joint_rows()
        self._noise = posterior.likelihood.margin_variance
        self._before = float(candidates.means.mean(axis=1).max())

    def of_pairs(
        self, candidates: Candidates, first: Indices, second: Indices
    ) -> tuple[Array, Indices]:
        """Of p duels of candidates, the first item of each below m.

        One of the first m, or the second item if it wins, is recommended after the answer.

        Returns
        -------
        value : ndarray of shape (p,)
        rows : ndarray of shape (p, 4)
            The duel, and what is recommended when its first and when its second item wins.
        """
        margin, var = candidates.margins(first, second)
        root = np.sqrt(var + self._noise)
        u = margin / root[:, None]
        win, lose, bell = ndtr(u), ndtr(-u), _density(u).mean(axis=1) / root
        shift = bell[:, None] * (candidates.cov[first] - candidates.cov[second])
        means = candidates.means[: shift.shape[1]].T / u.shape[1]
        won, lost = win @ means + shift, lose @ means - shift
        after_win, after_loss = won.argmax(axis=1), lost.argmax(axis=1)
        p = np.arange(len(first))
        won, lost = won[p, after_win], lost[p, after_loss]
        # the second item may be recommended too, even if it is none of the first m
        own = (lose * candidates.means[second]).mean(axis=1)
        own = own + bell * (candidates.var[second] - candidates.cov[second, first])
        after_loss = np.where(own > lost, second, after_loss)
        value = won + np.maximum(own, lost) - self._before
        return value, np.stack([first, second, after_win, after_loss], axis=1)

    def value_and_gradient(self, rows: Array) -> tuple[float, Array]:
        """Of a duel, and two recommendations, (4, d): the value and its gradient (4, d)."""
        (mean, cov, none), pull_back = self._joint.moments_and_pull_back(rows)
        n_components = mean.shape[1]
        scale = cov[0, 0] + cov[1, 1]
        total = floor_variance(scale - 2.0 * cov[0, 1], scale, NEGLIGIBLE) + self._noise
        root = np.sqrt(total)
        u = (mean[0] - mean[1]) / root
        win, lose, density = ndtr(u), ndtr(-u), _density(u)
        bell = density.mean() / root
        pulled = cov[2, 0] - cov[2, 1] - cov[3, 0] + cov[3, 1]
        value = (win @ mean[2] + lose @ mean[3]) / n_components + pulled * bell - self._before
        by_u = density * (mean[2] - mean[3] - pulled * u / root) / n_components
        by_mean = np.stack([by_u / root, -by_u / root, win / n_components, lose / n_components])
        by_var = -0.5 * (by_u @ u + pulled * bell) / total
        by_cov = np.zeros((4, 4))
        by_cov[[0, 1, 0], [0, 1, 1]] = by_var, by_var, -2.0 * by_var
        by_cov[[2, 3], [0, 1]] = bell
        by_cov[[2, 3], [1, 0]] = -bell
        return float(value), pull_back(by_mean, by_cov, none)


LOOKAHEADS = {"kg": KnowledgeGradient}
