"""What answers to some duels would leave of what is known about others."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._linalg import Array
from skpref.likelihoods import DUEL, TIE, Answers, Likelihood

# Combinations of answers that are followed; of more, so many are kept by their probabilities.
_MOST = 32


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


def effects(
    likelihood: Likelihood, mean: Array, variance: Array, lead: NDArray[np.int8]
) -> Effects:
    """Effects of the outcomes "second won", "tie" if there may be any, and "first won".

    Parameters
    ----------
    likelihood : Likelihood
    mean, variance, lead : ndarray of shape (n,)
        The variance is positive.
    """
    found = []
    outcomes = ((DUEL, -1), (TIE, 1), (DUEL, 1))
    for kind, side in outcomes if likelihood.n_outcomes == 3 else outcomes[::2]:
        answers = Answers(np.full(len(mean), kind, np.int8), (side * lead).astype(np.int8))
        log_z, gradient, curvature, _ = likelihood.tilted(side * mean, variance, answers)
        found.append((np.exp(log_z), side * gradient, curvature))
    return Effects(*(np.stack(part) for part in zip(*found, strict=True)))


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
    told : ndarray of shape (n_worlds, n_answers, k)
        The covariance of a world is the prior less the outer products of its rows.
    """

    prior: Array
    weight: Array
    mean: Array
    variance: Array
    told: Array

    @classmethod
    def before(cls, mean: Array, variance: Array, covariance: Array) -> Self:
        """The one world without answers."""
        nothing = np.zeros((1, 0, len(mean)))
        return cls(covariance, np.ones(1), mean[None], variance[None], nothing)

    def after(self, at: int, likelihood: Likelihood, lead: int) -> Self:
        """The worlds after an answer to one of the duels, each outcome of it in its own.

        Parameters
        ----------
        at : int
            Position of the duel.
        likelihood : Likelihood
        lead : int
            Who is shown first in it.
        """
        mean, variance = self.mean[:, at], self.variance[:, at]
        if not np.all(variance > 0.0):  # a known margin: nothing is learned
            return self
        of = effects(likelihood, mean, variance, np.full(len(mean), lead))
        column = self.prior[at] - np.einsum("wt,wtk->wk", self.told[:, :, at], self.told)
        weight = (self.weight * of.probability).ravel()
        kept, weight = _thinned(weight / weight.sum())
        outcome, world = np.divmod(kept, len(mean))
        shift, bend = of.gradient[outcome, world], of.curvature[outcome, world]
        column = column[world]
        change = np.sqrt(np.maximum(bend, 0.0))[:, None] * column
        return replace(
            self,
            weight=weight,
            mean=self.mean[world] + shift[:, None] * column,
            variance=np.maximum(self.variance[world] - change**2, 0.0),
            told=np.concatenate([self.told[world], change[:, None]], axis=1),
        )


def _thinned(weight):
    """Combinations that are followed on, and their probabilities: by systematic resampling."""
    if len(weight) <= _MOST:
        return np.arange(len(weight)), weight
    marks = (np.arange(_MOST) + 0.5) / _MOST
    kept = np.searchsorted(np.cumsum(weight), marks)
    return np.minimum(kept, len(weight) - 1), np.full(_MOST, 1.0 / _MOST)
