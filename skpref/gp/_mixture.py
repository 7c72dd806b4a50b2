"""Weighted mixtures of posteriors that have covariances of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import (
    Array,
    RandomLike,
    Recorded,
    Summarised,
    check_number,
    make_generator,
)
from skpref.data import ParsedX, Reader
from skpref.gp._choice import choice_proba
from skpref.gp._posterior import Posterior, mixture_quantile
from skpref.likelihoods import Likelihood


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorMixture(Recorded, Summarised):
    """Posterior of the utility as a weighted mixture of posteriors.

    A model of few judges has one where more than one reading of the judges is open: who is
    reliable, and who answers the wrong way round. Its methods are those of `Posterior`.

    Parameters
    ----------
    weights : ndarray of shape (n_parts,)
        They sum to one.
    parts : tuple of Posterior
        Of one utility, the most probable first.
    likelihood : Likelihood
    reader : Reader
        How items are read, as in `Posterior`.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> X, y, judges = [["a", "b"]] * 6, [1, 1, 1, 0, 0, 0], ["ann"] * 3 + ["bob"] * 3
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(X, y, judges=judges)
    >>> posterior = model.posterior_  # ann is reliable and bob adversarial, or the other way round
    >>> type(posterior).__name__, posterior.mean(["a"]).round(2) + 0.0
    ('PosteriorMixture', array([0.]))
    """

    weights: Array
    parts: tuple[Posterior, ...]
    likelihood: Likelihood
    reader: Reader

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(str, self._facts().values()))}>"

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless there is a share for each part, see `Fields`."""
        if self.weights.shape != (len(self.parts),) or not np.isclose(np.sum(self.weights), 1.0):
            raise ValueError(f"{len(self.parts)} parts have weights {self.weights!r:.80}")

    def _facts(self):
        return {"parts": f"{len(self.parts)} parts", **self.parts[0]._facts()}

    @property
    def kernel(self) -> Kernel:
        """Return the prior covariance."""
        return self.parts[0].kernel

    @property
    def effect_variance(self) -> float:
        """Return the variance of what a new group of answers adds to the utility of an item."""
        return self.parts[0].effect_variance

    @property
    def anchors(self) -> Array:
        """Return the anchors of the most probable part."""
        return self.parts[0].anchors

    @cached_property
    def posteriors(self) -> tuple[Posterior, ...]:
        """Return the parts with this reader and likelihood."""
        return tuple(
            replace(part, likelihood=self.likelihood, reader=self.reader) for part in self.parts
        )

    def at_time(self, time: Any) -> "PosteriorMixture":
        """Return the mixture with items as they are at a time; see `Posterior.at_time`."""
        return replace(self, reader=self.reader.at_time(time))

    def in_groups(self, groups: NDArray[np.intp] | None) -> "PosteriorMixture":
        """Return the mixture asked about answers in groups; see `Posterior.in_groups`."""
        return replace(self, parts=tuple(part.in_groups(groups) for part in self.parts))

    def check_items(self, X: Any) -> Array:
        """Return items as a finite float array of the right shape."""
        return self.reader.items(X)

    # -- moments -------------------------------------------------------------------------

    def mean(self, X: Any) -> Array:
        """Return the posterior mean of the utility, shape (n,)."""
        return self._average(lambda part: part.mean(X))

    def var(self, X: Any) -> Array:
        """Return the posterior variance of the utility, shape (n,)."""
        return self._moments(lambda part: (part.mean(X), part.var(X)))[1]

    def cov(self, X: Any) -> Array:
        """Return the posterior covariance of the utilities, shape (n, n)."""
        return self._covariance(lambda part: (part.mean(X), part.cov(X)))

    def margin(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Return mean and variance of f(a) − f(b), without observation noise, for pairs of rows."""
        return self._moments(lambda part: part.margin(A, B))

    def answer_mean(self, A: Any, B: Any) -> Array:
        """Compute the mean of the margins that answers are about, for pairs of rows, (n,)."""
        return self._average(lambda part: part.answer_mean(A, B))

    def answer_utilities(self, query: ParsedX) -> Array:
        """Compute the mean utilities of the items in answers about sets; see `Posterior`."""
        return self._average(lambda part: part.answer_utilities(query))

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Return the covariance of the margins f(a_i) − f(b_i), shape (n, n)."""
        return self._covariance(lambda part: (part.margin(A, B)[0], part.margin_cov(A, B)))

    # -- probabilities -------------------------------------------------------------------

    def win_probability(
        self, A: Any, B: Any, noise: bool = True, log: bool = False, order: ArrayLike = 0
    ) -> Array:
        """Return P(a beats b) for pairs of rows, shape (n,); see `Posterior.win_probability`."""
        return self._probability(lambda part: part.win_probability(A, B, noise, True, order), log)

    def outcome_log_proba(
        self, A: Any, B: Any, order: ArrayLike = 1, offset: ArrayLike = 0.0
    ) -> Array:
        """Return log-probabilities of the outcomes of duels; see `Posterior.outcome_log_proba`."""
        return self._probability(lambda part: part.outcome_log_proba(A, B, order, offset), True)

    def choice_proba(self, sets: Any, order: ArrayLike = 1, log: bool = False) -> Array:
        """Return P(each item is the best of its set); see `Posterior.choice_proba`."""
        return self._probability(lambda part: part.choice_proba(sets, order, True), log)

    def cdf(self, X: Any, c: ArrayLike) -> Array:
        """Return P(f(x) ≤ c), shape (n,); ``c`` is a number or of shape (n,)."""
        return self._average(lambda part: part.cdf(X, c))

    def quantile(self, X: Any, q: float | Sequence[float]) -> Array:
        """Return quantiles of f(x), (n,), or (n, n_quantiles) for a sequence ``q`` in (0, 1)."""
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not levels.size or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"q must be a number or a sequence of numbers in (0, 1), got {q}.")
        mixture = self._components(X)
        quantiles = [mixture_quantile(float(level), *mixture) for level in np.atleast_1d(levels)]
        return np.asarray(quantiles[0]) if levels.ndim == 0 else np.stack(quantiles, axis=1)

    def credible_interval(self, X: Any, level: float = 0.95) -> Array:
        """Return the central interval that holds f(x) with probability ``level``, shape (n, 2)."""
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        return self.quantile(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])

    # -- draws ---------------------------------------------------------------------------

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Draw the utilities of the items jointly, shape (n_items, n)."""
        check_number("n", n, low=1, integer=True)
        rng = make_generator(rng)
        part_of_draw = rng.choice(len(self.parts), size=n, p=self.weights)
        drawn = np.empty((len(self.check_items(X)), n))
        for k in np.unique(part_of_draw):
            some = part_of_draw == k
            drawn[:, some] = self.posteriors[k].sample(X, int(some.sum()), rng)
        return drawn

    def hallucinate(self, rng: RandomLike = None) -> Posterior:
        """Draw one component at random: an ordinary GP given one draw of the margins."""
        rng = make_generator(rng)
        return self.posteriors[rng.choice(len(self.parts), p=self.weights)].hallucinate(rng)

    # -- helpers -------------------------------------------------------------------------

    def _average(self, of: Callable[[Posterior], Array]) -> Array:
        every = np.stack([of(part) for part in self.posteriors], axis=-1)
        return np.asarray(every @ self.weights)

    def _probability(self, of: Callable[[Posterior], Array], log: bool) -> Array:
        return mixture_proba([of(part) for part in self.posteriors], self.weights, log)

    def _moments(self, of):
        every = zip(*map(of, self.posteriors), strict=True)
        means, variances = (np.stack(each, axis=-1) for each in every)
        mean = means @ self.weights
        return mean, (variances + (means - mean[:, None]) ** 2) @ self.weights

    def _covariance(self, of):
        """Return the mixture's covariance from each part's mean and covariance."""
        means, covariances = zip(*map(of, self.posteriors), strict=True)
        apart = np.stack(means, axis=1)
        apart = apart - (apart @ self.weights)[:, None]
        return np.tensordot(self.weights, covariances, 1) + (apart * self.weights) @ apart.T

    def _components(self, X):
        """Return means of all components at items, their deviations and weights."""
        items = self.check_items(X)
        means = [part.means_at(items) for part in self.posteriors]
        deviations = [
            np.tile(np.sqrt(part.shared_var(items))[:, None], part.n_components)
            for part in self.posteriors
        ]
        weights = [
            np.full(part.n_components, weight / part.n_components)
            for weight, part in zip(self.weights, self.posteriors, strict=True)
        ]
        return np.hstack(means), np.hstack(deviations), np.concatenate(weights)


def mixture_proba(log_probabilities: Sequence[Array], weights: Array, log: bool) -> Array:
    """Average probabilities with weights that sum to one, of their logarithms; logarithms too."""
    every = np.stack(log_probabilities, axis=-1)
    log_average = np.minimum(np.asarray(logsumexp(every, b=weights, axis=-1)), 0.0)
    return log_average if log else np.exp(log_average)


def posterior_parts(posterior: Any) -> tuple[Array, tuple[Any, ...]]:
    """Split a posterior into its weights and parts; one that is no mixture is its only part."""
    if isinstance(posterior, PosteriorMixture):
        return posterior.weights, posterior.posteriors
    return np.ones(1), (posterior,)


def mixed_choice_proba(
    posterior: Any,
    items: Array,
    sets: NDArray[np.intp],
    order: ArrayLike = 1,
    log: bool = False,
    offset: Array | None = None,
) -> Array:
    """Compute P(each item is the best of its set) of a posterior that may be a mixture.

    Parameters and result are those of `choice_proba`.
    """
    weights, parts = posterior_parts(posterior)
    if len(parts) == 1:
        return choice_proba(parts[0], items, sets, order, log, offset)
    every = [choice_proba(part, items, sets, order, True, offset) for part in parts]
    return mixture_proba(every, weights, log)


def mixed_sums(posterior: Any, X: Array, weights: Array) -> tuple[Array, Array]:
    """Compute means and variances of weighted sums of utilities, of what may be a mixture.

    Parameters
    ----------
    posterior : Posterior or PosteriorMixture
    X : ndarray of shape (n, n_features)
        Checked items.
    weights : ndarray of shape (m, n)

    Returns
    -------
    mean, variance : ndarray of shape (m,)
    """
    shares, parts = posterior_parts(posterior)
    sums = [part.component_sums(X, weights) for part in parts]
    means = np.stack([means.mean(axis=1) for means, _ in sums], axis=1)
    variances = np.stack([variance + means.var(axis=1) for means, variance in sums], axis=1)
    mean = means @ shares
    return mean, (variances + (means - mean[:, None]) ** 2) @ shares
