"""Predictions of a posterior for items, duels or sets."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import Array, RandomLike
from skpref.data import (
    AnswerMetadata,
    ParsedX,
    check_outcomes,
    check_ranks,
    first_item_places,
    gather_features,
)
from skpref.fitting._judges import JudgeAverage
from skpref.gp import mixed_choice_proba, mixture_proba, posterior_parts


@dataclass(frozen=True, eq=False)
class Prediction:
    """A posterior and a query: items, duels or sets, with judges and order.

    Attributes
    ----------
    posterior : Posterior or CollaborativePosterior
    query : ParsedX
        Items, duels or sets.
    metadata : AnswerMetadata
        Who is shown first, among others; None: the first, always.
    judge_averages : tuple of JudgeAverage or None
        How the judges see the duels, in each of the posterior's parts; None: as the reference
        judge.
    """

    posterior: Any
    query: ParsedX
    metadata: AnswerMetadata
    judge_averages: tuple[JudgeAverage, ...] | None = None

    @property
    def order(self) -> Any:
        """Return who is shown first, see `Posterior.outcome_log_proba`."""
        order = self.metadata.order
        return np.ones(len(self.query), dtype=np.int8) if order is None else order

    @cached_property
    def offset(self) -> Array | None:
        """Return the known part of utilities or of margins of duels; None if it is not given."""
        query = self.query
        offset = self.metadata.shown_offset(None if query.size is None else query.pairs >= 0)
        return offset[:, 0] - offset[:, 1] if offset is not None and query.size == 2 else offset

    def moments(self, return_std: bool, return_cov: bool) -> Array | tuple[Array, Array]:
        """Return means of utilities or of margins of duels, with deviations or the covariance."""
        if return_std and return_cov:
            raise RuntimeError("Only one of return_std and return_cov can be True.")
        posterior, query = self.posterior, self.query
        if query.size is None:
            mean = self._add_offset(posterior.mean(query))
            if return_cov:
                return mean, posterior.cov(query)
            return (mean, np.sqrt(posterior.var(query))) if return_std else mean
        if query.size > 2:
            if return_cov:
                raise ValueError(
                    "return_cov is for items and duels; for the covariance of the items of a set "
                    "pass these as items."
                )
            mean = self._add_offset(gather_features(posterior.mean(query), query.pairs))
            if return_std:
                return mean, gather_features(np.sqrt(posterior.var(query)), query.pairs)
            return mean
        mean, variance = posterior.margin(*query.sides)
        mean = self._add_offset(mean)
        if return_cov:
            return mean, posterior.margin_cov(*query.sides)
        return (mean, np.sqrt(variance)) if return_std else mean

    def _add_offset(self, mean):
        """Return means with the known part of utilities or margins added."""
        return mean if self.offset is None else mean + self.offset

    def proba(self, log: bool = False) -> Array:
        """Return probabilities of the outcomes of duels, or of each item of a set to be best."""
        posterior, query = self.posterior, self.query
        if query.size != 2:
            sets = query.rows, query.pairs
            return mixed_choice_proba(posterior, *sets, self.order, log, self.offset)
        if self.judge_averages is None:
            # Posteriors of several users know no offsets.
            keywords = {} if self.offset is None else {"offset": self.offset}
            log_proba = posterior.outcome_log_proba(*query.sides, self.order, **keywords)
            return log_proba if log else np.exp(log_proba)
        first, second = (side.rows for side in query.sides)
        weights, parts = posterior_parts(posterior)
        every = [
            judge_average.outcome_log_proba(part, first, second, self.order)
            for judge_average, part in zip(self.judge_averages, parts, strict=True)
        ]
        return mixture_proba(every, weights, log)

    def judged_means(self) -> Array:
        """Return mean margins of duels, or utilities of the items of sets, as judges see them."""
        posterior, query = self.posterior, self.query
        shift = posterior.likelihood.order_shift * self.order
        if query.size == 2:
            if self.judge_averages is None:
                return self._add_offset(posterior.answer_mean(*query.sides) + shift)
            weights, parts = posterior_parts(posterior)
            first, second = (side.rows for side in query.sides)
            margins = [
                judge_average.margin(part, first, second, self.order)
                for judge_average, part in zip(self.judge_averages, parts, strict=True)
            ]
            return weights @ np.array(margins) + shift
        utility = self._add_offset(posterior.answer_utilities(query))
        utility[np.arange(len(utility)), first_item_places(query.pairs)] += shift
        return utility

    def share_correct(self, y: ArrayLike | None) -> Array:
        """Return the share of each answer that is called right, (n,)."""
        margins = self.judged_means()
        if self.query.size != 2:
            return _agreement(margins, check_ranks(y, self.query.pairs >= 0))
        scale = self.posterior.likelihood.duel_scale
        outcomes = check_outcomes(y, len(self.query), scale, zero_is_tie=True)
        if scale.n_columns == 2:
            return np.where(margins == 0.0, 0.5, (margins > 0.0) == outcomes.won)
        called = self.proba(log=True).argmax(axis=1)
        return (called == scale.columns(outcomes.label)).astype(np.float64)

    def draws(self, n_samples: int, random_state: RandomLike) -> Array:
        """Draw utilities or margins jointly, (n, n_samples)."""
        query = self.query
        if query.size is None:
            draws = self.posterior.sample(query, n_samples, random_state)
            return self._add_offset(draws.T).T
        if query.size > 2:
            raise ValueError("sample_y draws for items and duels; pass the items of the sets.")
        both = ParsedX("items", np.concatenate([side.rows for side in query.sides]))
        first, second = np.split(self.posterior.sample(both, n_samples, random_state), 2)
        return self._add_offset((first - second).T).T


def _agreement(utility, ranks):
    """Return the share of what each answer states that agrees with utilities, (n,)."""
    if ranks.chosen is not None:
        best = np.nanmax(utility, axis=1)
        top = utility == best[:, None]
        return top[np.arange(len(top)), ranks.chosen] / top.sum(axis=1)
    rank = ranks.rank
    stated = (rank[:, :, None] > 0) & (rank[:, :, None] < rank[:, None, :])
    margin = np.where(stated, utility[:, :, None] - utility[:, None, :], 0.0)
    return ((margin > 0.0) + 0.5 * (stated & (margin == 0.0))).sum(axis=(1, 2)) / stated.sum(
        axis=(1, 2)
    )
