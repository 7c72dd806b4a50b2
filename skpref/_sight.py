"""Predictions of what judges of different care answer."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skpref._components import Components, stacked
from skpref._judges import Judges
from skpref._linalg import Array
from skpref._marginals import Marginals
from skpref._mixture import defended
from skpref._pairs import pair_moments

# Points of care that probabilities are averaged over, and of own order effects.
_POINTS, _NODES = 40, 7


@dataclass(frozen=True, eq=False)
class Sight:
    """How the judges of some duels see them.

    Attributes
    ----------
    code : ndarray of shape (n,)
        Of the judge of each duel: a row of what follows.
    care, weight : ndarray of shape (n_codes, n_points)
        Points of care, and their probabilities.
    order, order_deviation : ndarray of shape (n_codes,)
        Own order effects.
    """

    code: NDArray[np.intp]
    care: Array
    weight: Array
    order: Array
    order_deviation: Array

    @classmethod
    def of(cls, judges: Judges, ids: list) -> Self:
        """Of judges by their ids: one never seen is any judge, None one of the common level."""
        n = len(judges)
        code = judges.respondents.codes(ids)
        code = np.where(code < -1, n, np.where(code == -1, n + 1, code))
        one = np.ones((1, 1))
        parts = judges.marginals, judges.law.marginals(), Marginals(one, 0.0 * one, one)
        care, weight = zip(*(_condensed(part) for part in parts), strict=True)
        order, deviation = np.zeros((2, n + 2))
        if judges.order is not None:
            order[:n], deviation[:n] = judges.order.mean, np.sqrt(judges.order.variance)
            deviation[n] = np.sqrt(judges.order_variance)
        return cls(code, np.vstack(care), np.vstack(weight), order, deviation)

    def take(self, rows: slice) -> Self:
        """Of some of the duels."""
        return replace(self, code=self.code[rows])

    def margin(self, margin: Array, order: Array) -> Array:
        """Mean of what judges see of these margins."""
        care = np.sum(self.care * self.weight, axis=1)
        return care[self.code] * margin + self.order[self.code] * order

    def outcome_log_proba(
        self, posterior: Components, first: Array, second: Array, order: Array
    ) -> Array:
        """Log-probabilities of the outcomes of duels, (n, n_outcomes), care averaged over.

        Parameters
        ----------
        posterior : Posterior
            Its likelihood is that of a judge of the common level.
        first, second : ndarray of shape (n, n_features)
        order : ndarray of shape (n,)
            Who is shown first.
        """
        empty = (0, posterior.likelihood.n_outcomes)
        blocks = (
            defended(
                self.take(each.rows)._of(posterior.likelihood),
                each.means,
                each.variance,
                order[each.rows],
                True,
            )
            for each in pair_moments(posterior, first, second)
        )
        found = stacked(list(blocks), empty)
        return found - logsumexp(found, axis=1, keepdims=True)

    def _of(self, likelihood):
        """Averages of its log-probabilities over what is not known of judges."""
        nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
        if not np.any(self.order_deviation):
            nodes, shares = np.zeros(1), np.ones(1)
        used = np.flatnonzero(np.any(self.weight[np.unique(self.code)] > 0.0, axis=0))

        def of(mean, variance, order):
            shape = (-1,) + (1,) * (np.ndim(mean) - 1)
            total = None
            for node, share in zip(nodes, shares / shares.sum(), strict=True):
                own = self.order + node * self.order_deviation
                ahead = own[self.code].reshape(shape) * order
                for k in used:
                    care = self.care[self.code, k].reshape(shape)
                    at = likelihood.outcome_log_proba(
                        care * mean + ahead, care**2 * variance, order
                    )
                    with np.errstate(divide="ignore"):
                        at += np.log(share * self.weight[self.code, k]).reshape((*shape, 1))
                    total = at if total is None else np.logaddexp(total, at, out=total)
            return total

        return of


def _condensed(found: Marginals) -> tuple[Array, Array]:
    """A few points with the same mean and nearly the same variance, padded by nothing.

    Neighbours of about equal probability together are one point, at their mean.
    """
    order = np.argsort(found.points, axis=1, kind="stable")
    points, weights = (
        np.take_along_axis(each, order, axis=1) for each in (found.points, found.weights)
    )
    middle = np.cumsum(weights, axis=1) - 0.5 * weights
    group = np.minimum((middle * _POINTS).astype(np.intp), _POINTS - 1)
    at = (np.arange(len(points))[:, None] * _POINTS + group).ravel()
    total = np.bincount(at, weights.ravel(), len(points) * _POINTS)
    centre = np.bincount(at, (weights * points).ravel(), len(points) * _POINTS)
    points = centre / np.where(total > 0.0, total, 1.0)
    return points.reshape(-1, _POINTS), np.asarray(total, np.float64).reshape(-1, _POINTS)
