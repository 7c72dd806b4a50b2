"""Several duels at once, which do not ask the same thing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.active._candidates import Candidates
from skpref.active._scores import information
from skpref.gp import posterior_parts
from skpref.likelihoods import Answers, Likelihood

# Combinations of answers that are followed; of more, so many are kept by their probabilities.
_MOST = 32
# So many candidates are compared with those chosen: the best, and as many from among the rest.
_SHORTLIST = 250


class Effects(NamedTuple):
    """What each outcome of a duel does to the Gaussian margin m it is about, (n_outcomes, n).

    Attributes
    ----------
    probability : ndarray
    gradient : ndarray
        d log P(outcome) / d mean: the mean of m moves by its variance times this.
    curvature : ndarray
        −d² log P(outcome) / d mean²: its variance falls by its square times this.
    """

    probability: Array
    gradient: Array
    curvature: Array


def outcome_effects(
    likelihood: Likelihood, mean: Array, variance: Array, lead: NDArray[np.int8]
) -> Effects:
    """Return the effects of each outcome of duels on their margins, in the order of its scale.

    Means, variances (positive) and who is shown first have shape (n,).
    """
    effects = []
    for kind, side in likelihood.duel_scale.outcomes:
        answers = Answers(np.full(len(mean), kind, np.int8), (side * lead).astype(np.int8))
        log_z, gradient, curvature, _ = likelihood.tilted(side * mean, variance, answers)
        effects.append((np.exp(log_z), side * gradient, curvature))
    return Effects(*(np.stack(part) for part in zip(*effects, strict=True)))


@dataclass(frozen=True, eq=False)
class Worlds:
    """Gaussian margins of k duels given combinations of answers to some of them.

    Each answer is taken in as by assumed density filtering: with the exact mean and variance of its
    own margin.

    Attributes
    ----------
    prior : ndarray of shape (k, k)
        Covariance of the margins before any answer.
    weight : ndarray of shape (n_worlds,)
        Probabilities of the combinations.
    mean, variance : ndarray of shape (n_worlds, k)
        Of the margins.
    downdates : ndarray of shape (n_worlds, n_answers, k)
        The covariance of a world is the prior less the outer products of its rows.
    """

    prior: Array
    weight: Array
    mean: Array
    variance: Array
    downdates: Array

    @classmethod
    def without_answers(cls, mean: Array, variance: Array, covariance: Array) -> Self:
        """Return the one world without answers."""
        nothing = np.zeros((1, 0, len(mean)))
        return cls(covariance, np.ones(1), mean[None], variance[None], nothing)

    def with_answer(
        self, at: int, likelihood: Likelihood, lead: int, effect_variance: float = 0.0
    ) -> Self:
        """Return the worlds after an answer to duel ``at``, one for each of its outcomes.

        ``lead`` says who is shown first in it, and ``effect_variance`` is that of the answer's
        margin beside the one that is followed, as of a new prompt.
        """
        mean, variance = self.mean[:, at], self.variance[:, at]
        if not np.all(variance > 0.0):  # a known margin: nothing is learned
            return self
        leads = np.full(len(mean), lead)
        candidates = outcome_effects(likelihood, mean, variance + effect_variance, leads)
        column = self.prior[at] - np.einsum("wt,wtk->wk", self.downdates[:, :, at], self.downdates)
        weight = (self.weight * candidates.probability).ravel()
        indices, weight = _resample_worlds(weight / weight.sum())
        outcome, world = np.divmod(indices, len(mean))
        shift, bend = candidates.gradient[outcome, world], candidates.curvature[outcome, world]
        column = column[world]
        change = np.sqrt(np.maximum(bend, 0.0))[:, None] * column
        return replace(
            self,
            weight=weight,
            mean=self.mean[world] + shift[:, None] * column,
            variance=np.maximum(self.variance[world] - change**2, 0.0),
            downdates=np.concatenate([self.downdates[world], change[:, None]], axis=1),
        )


def _resample_worlds(weight):
    """Return indices of at most ``_MOST`` worlds and their weights, by systematic resampling."""
    if len(weight) <= _MOST:
        return np.arange(len(weight)), weight
    marks = (np.arange(_MOST) + 0.5) / _MOST
    indices = np.searchsorted(np.cumsum(weight), marks)
    return np.minimum(indices, len(weight) - 1), np.full(_MOST, 1.0 / _MOST)


def rank_duels(scores: Array, n: int, pairs: NDArray[np.intp], distinct: bool) -> NDArray[np.intp]:
    """Return the n duels of the largest scores, best first; fewer if there are not as many.

    Scores of −inf are not chosen. ``pairs`` (n_duels, 2) says which items duels are of; where
    they are to be ``distinct``, no item is in two of the duels chosen.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -np.inf]
    if not distinct:
        return order[:n]
    found: list[int] = []
    used: set[int] = set()
    for index in order:
        if len(found) == n:
            break
        if used.isdisjoint(two := pairs[index].tolist()):
            found.append(int(index))
            used.update(two)
    return np.array(found, dtype=np.intp)


def choose_diverse(
    scores: Array,
    candidates: Candidates,
    covariance: Callable[[NDArray[np.intp]], Array],
    n: int,
    pairs: NDArray[np.intp],
    distinct: bool,
    pending: NDArray[np.intp],
    of_variance: bool = False,
) -> NDArray[np.intp]:
    """Return n duels, each of the largest score less what the answers before it will tell of it.

    What answers y_B tell of an answer y is I(y; f) − I(y; f | y_B), as y and y_B share f alone.

    Parameters
    ----------
    scores : ndarray of shape (n_duels,)
        In nats.
    candidates : Candidates
    covariance : callable
        Rows of candidates to the covariance of their margins.
    n, pairs, distinct
        As in `rank_duels`.
    pending : ndarray of int
        Duels that were chosen before all others; their scores are −inf.
    of_variance : bool, default=False
        Scores are variances of the margins, of which is left what is expected after the answers.
    """
    order = rank_duels(scores, len(scores), pairs, False)
    rows = order
    if len(order) > 2 * _SHORTLIST:
        spaced = np.linspace(_SHORTLIST, len(order) - 1, _SHORTLIST).astype(np.intp)
        rows = order[np.r_[:_SHORTLIST, spaced]]
    rows = np.concatenate([pending, rows])
    mean, variance = (part[rows] for part in candidates.gaussian)
    worlds = Worlds.without_answers(mean, variance, covariance(rows))
    before, likelihood = (
        _remaining_information(worlds, candidates, rows, of_variance),
        candidates.posterior.likelihood,
    )
    lead, effects = candidates.lead[rows], candidates.effect_variance[rows]
    chosen = list(range(len(pending)))
    for at in chosen:
        worlds = worlds.with_answer(at, likelihood, lead[at], effects[at])
    free = scores[rows] > -np.inf
    while len(chosen) < len(pending) + n and free.any():
        shared = before - _remaining_information(worlds, candidates, rows, of_variance)
        at = int(np.argmax(np.where(free, scores[rows] - shared, -np.inf)))
        chosen.append(at)
        free[at] = False
        if distinct:
            free &= ~np.isin(pairs[rows], pairs[rows[at]]).any(axis=1)
        if len(chosen) < len(pending) + n:
            worlds = worlds.with_answer(at, likelihood, lead[at], effects[at])
    best = rows[chosen[len(pending) :]]
    if len(best) < n:  # none of the shortlist is left
        rest = scores.copy()
        rest[best] = -np.inf
        if distinct:
            rest[np.isin(pairs, pairs[best]).any(axis=1)] = -np.inf
        best = np.r_[best, rank_duels(rest, n - len(best), pairs, distinct)]
    return best


def _remaining_information(worlds, candidates, rows, of_variance):
    """Return what answers still tell, in nats or as variances, averaged over the worlds, (n,)."""
    if of_variance:
        return worlds.weight @ worlds.variance
    lead, effects = (
        np.broadcast_to(each[rows], worlds.mean.shape).ravel()
        for each in (candidates.lead, candidates.effect_variance)
    )
    alone = candidates._replace(
        posterior=posterior_parts(candidates.posterior)[1][0],  # a Gaussian has no parts
        means=worlds.mean.reshape(-1, 1),
        variance=worlds.variance.ravel(),
        lead=lead,
        effect_variance=effects,
    )
    return worlds.weight @ information(alone).reshape(worlds.mean.shape)
