"""Acquisitions of a duel that look at the model after its answer.

They need the posterior at more places than the two items of the duel: at those that may be
recommended after the answer, or may be the best. So each scores pairs of `DuelCandidates` all at
once, and then a few rows that move together, with the gradient in all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from skpref._utils import NEGLIGIBLE, Array, cholesky, floor_variance
from skpref.gp import Posterior
from skpref.optimize._acquisition import normal_density
from skpref.optimize._maximiser import EFFORT

Indices = NDArray[np.intp]


class DuelCandidates(NamedTuple):
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
    highest : ndarray of shape (n_draws,)
        Its utility there.
    """

    rows: Array
    means: Array
    var: Array
    cov: Array
    best: Indices
    highest: Array

    @classmethod
    def draw(cls, posterior: Posterior, rows: Array, m: int, rng: np.random.Generator) -> Self:
        """Return the posterior at rows, and draws of the utilities of the first m."""
        means, var, cov = posterior.moments_with_first(rows, m)
        component = rng.integers(posterior.n_components, size=EFFORT.n_draws)
        drawn = cholesky(cov[:m]) @ rng.standard_normal((m, EFFORT.n_draws)) + means[:m, component]
        return cls(rows, means, var, cov, drawn.argmax(axis=0), drawn.max(axis=0))

    def most_often_best(self) -> Indices:
        """Return the first m, those that are most often the best of a draw at the front."""
        m = self.cov.shape[1]
        counts = np.bincount(self.best, minlength=m)
        order: Indices = np.lexsort((-self.means[:m].mean(axis=1), -counts))
        return order

    def margins(self, first: Indices, second: Indices) -> tuple[Array, Array]:
        """Return means (p, S) and variance (p,) of f(first) − f(second), the first below m."""
        scale = self.var[first] + self.var[second]
        var = floor_variance(scale - 2.0 * self.cov[second, first], scale, NEGLIGIBLE)
        return self.means[first] - self.means[second], var


class DuelSurface(ABC):
    """An acquisition of duels that looks ahead, as a `PointSurface` of their rows."""

    @abstractmethod
    def value_pairs(
        self, candidates: DuelCandidates, first: Indices, second: Indices
    ) -> tuple[Array, Indices]:
        """Return the acquisition of p duels, (p,), and the candidates of their points, (p, k).

        The first item of each is among the first m candidates; a point begins with the duel.
        """

    @abstractmethod
    def value_and_gradient(self, rows: Array) -> tuple[float, Array]:
        """Return the acquisition of a point (k, d), and its gradient (k, d)."""

    def values(self, points: Array) -> Array:
        """Return the acquisition of points (n, k, d), (n,)."""
        return np.array([self.value_and_gradient(point)[0] for point in points])


class KnowledgeGradient(DuelSurface):
    """How much the best posterior mean grows by the answer of a duel, in expectation [1]_.

    Given that a wins, the mean is μ(x) + c(x) φ(u) / (s Φ(u)), where c(x) = cov(f(x), f(a) − f(b)),
    s² is the variance of the noisy margin and u its mean divided by s; given that b wins, it is
    μ(x) − c(x) φ(u) / (s Φ(−u)). So the gain is

        max_x [Φ(u) μ(x) + c(x) φ(u)/s] + max_x [Φ(−u) μ(x) − c(x) φ(u)/s] − max_x μ(x),

    and with several components both brackets are averages over these. It is exact for a probit.

    Parameters
    ----------
    posterior : Posterior
    candidates : DuelCandidates
        The last term is over these.

    References
    ----------
    .. [1] Wu and Gardner, "Knowledge Gradient for Preference Learning", arXiv 2601.22335, 2026.
    """

    def __init__(self, posterior: Posterior, candidates: DuelCandidates) -> None:
        self._joint = posterior.joint_rows()
        self._noise = posterior.likelihood.margin_variance
        self._before = float(candidates.means.mean(axis=1).max())

    def value_pairs(
        self, candidates: DuelCandidates, first: Indices, second: Indices
    ) -> tuple[Array, Indices]:
        """Return the acquisition of p duels of candidates, the first item of each below m.

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
        win, lose, bell = ndtr(u), ndtr(-u), normal_density(u).mean(axis=1) / root
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
        """Return the gain of a point (4, d), a duel and two recommendations, and its gradient.

        After an answer the best of the four rows is recommended.
        """
        (mean, cov, none), pull_back = self._joint.moments_and_pull_back(rows)
        n_components = mean.shape[1]
        scale = cov[0, 0] + cov[1, 1]
        total = floor_variance(scale - 2.0 * cov[0, 1], scale, NEGLIGIBLE) + self._noise
        root = np.sqrt(total)
        u = (mean[0] - mean[1]) / root
        win, lose, density = ndtr(u), ndtr(-u), normal_density(u)
        bell = density.mean() / root
        pulled = cov[:, 0] - cov[:, 1]
        won, lost = mean @ win / n_components, mean @ lose / n_components
        # of equally good ones the recommendation, so that it can move by itself
        i = max((2, 3, 0, 1), key=(won + bell * pulled).__getitem__)
        j = max((3, 2, 0, 1), key=(lost - bell * pulled).__getitem__)
        pull = pulled[i] - pulled[j]
        value = won[i] + lost[j] + pull * bell - self._before
        by_u = density * (mean[i] - mean[j] - pull * u / root) / n_components
        by_mean = np.zeros(mean.shape)
        by_mean[0] += by_u / root
        by_mean[1] -= by_u / root
        by_mean[i] += win / n_components
        by_mean[j] += lose / n_components
        by_var = -0.5 * (by_u @ u + pull * bell) / total
        by_cov = np.zeros((4, 4))
        by_cov[[0, 1, 0], [0, 1, 1]] = by_var, by_var, -2.0 * by_var
        for k, side in ((i, bell), (j, -bell)):
            by_cov[k, 0] += side
            by_cov[k, 1] -= side
        return float(value), pull_back(by_mean, by_cov, none)


class JointEntropySearch(DuelSurface):
    """What the answer of a duel tells of the best item and its utility, in nats.

    The entropy of the answer less what is left of it, on average, where it is known that the
    utility of x* is f*, for draws of both: joint entropy search [1]_ [2]_ with an answer in the
    place of a measured value; [3]_ has the like given x* alone. All draws are of the candidates.
    Given f(x*) = f* the posterior is conditioned exactly; that no other item is better is left
    out. With several components the posterior is the Gaussian process of their moments.

    Parameters
    ----------
    posterior : Posterior
    candidates : DuelCandidates

    References
    ----------
    .. [1] Hvarfner, Hutter and Nardi, "Joint Entropy Search for Maximally-Informed Bayesian
       Optimization", NeurIPS 2022.
    .. [2] Tu, Gandy, Kantas and Shafei, "Joint Entropy Search for Multi-Objective Bayesian
       Optimization", NeurIPS 2022.
    .. [3] Nguyen, Tay, Low and Jaillet, "Top-k Ranking Bayesian Optimization", AAAI 2021.
    """

    def __init__(self, posterior: Posterior, candidates: DuelCandidates) -> None:
        best = candidates.rows[candidates.best]
        self._joint = posterior.joint_rows(best)
        self._noise = posterior.likelihood.margin_variance
        means = candidates.means[candidates.best]
        centre = means.mean(axis=1)
        self._spread = means - centre[:, None]
        var = floor_variance(
            candidates.var[candidates.best], posterior.kernel.diag(best), NEGLIGIBLE
        )
        self._var = var + np.mean(self._spread**2, axis=1)
        self._shift = (candidates.highest - centre) / self._var

    def _information(self, mean, var, cov):
        """Return the information of p answers on the best item, and its derivatives.

        Mean and variance (p,) are those of the margins, and cov (p, n_draws) are covariances with
        the best items.
        """
        root = np.sqrt(var + self._noise)
        before, slope = _answer_entropy(u := mean / root)
        remaining = floor_variance(var[:, None] - cov**2 / self._var, var[:, None], NEGLIGIBLE)
        total = remaining + self._noise
        roots = np.sqrt(total)
        after, slopes = _answer_entropy(conditioned := (mean[:, None] + cov * self._shift) / roots)
        by_total = -0.5 * slopes * conditioned / total
        by_cov = slopes * self._shift / roots - 2.0 * by_total * cov / self._var
        by_mean = slope / root - (slopes / roots).mean(axis=1)
        by_var = -0.5 * slope * u / root**2 - by_total.mean(axis=1)
        return before - after.mean(axis=1), by_mean, by_var, -by_cov / cov.shape[1]

    def value_pairs(
        self, candidates: DuelCandidates, first: Indices, second: Indices
    ) -> tuple[Array, Indices]:
        """Return the acquisition of p duels of candidates, the first item of each below m.

        Returns
        -------
        value : ndarray of shape (p,)
        rows : ndarray of shape (p, 2)
            The duel.
        """
        margin, var = candidates.margins(first, second)
        mean = margin.mean(axis=1)
        margin = margin - mean[:, None]
        cov = candidates.cov[:, candidates.best]
        cov = cov[first] - cov[second] + margin @ self._spread.T / margin.shape[1]
        value = self._information(mean, var + np.mean(margin**2, axis=1), cov)[0]
        return value, np.stack([first, second], axis=1)

    def value_and_gradient(self, rows: Array) -> tuple[float, Array]:
        """Return the information on a duel (2, d), and its gradient (2, d)."""
        (means, cov, with_best), pull_back = self._joint.moments_and_pull_back(rows)
        n_components, sides = means.shape[1], np.array([1.0, -1.0])
        margin = sides @ means
        mean = margin.mean()
        margin = margin - mean
        scale = cov[0, 0] + cov[1, 1]
        var = floor_variance(sides @ cov @ sides, scale, NEGLIGIBLE) + np.mean(margin**2)
        of_best = sides @ with_best + self._spread @ margin / n_components
        value, *slopes = self._information(np.array([mean]), np.array([var]), of_best[None])
        by_mean, by_var, by_best = (each[0] for each in slopes)
        by_margin = (by_mean + 2.0 * by_var * margin + by_best @ self._spread) / n_components
        by_cov = by_var * np.outer(sides, sides)
        gradient = pull_back(np.outer(sides, by_margin), by_cov, np.outer(sides, by_best))
        return float(value[0]), gradient


def _answer_entropy(u):
    """Return the entropy of an answer of probability Φ(u), in nats, and its derivative in u."""
    log_win, log_lose = log_ndtr(u), log_ndtr(-u)
    value = -np.exp(log_win) * log_win - np.exp(log_lose) * log_lose
    return value, normal_density(u) * (log_lose - log_win)


LOOKAHEADS: dict[str, Callable[[Posterior, DuelCandidates], DuelSurface]] = {
    "kg": KnowledgeGradient,
    "jes": JointEntropySearch,
}
