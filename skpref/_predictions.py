"""Predictions of a fitted utility, in scikit-learn's manners."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from skpref._parameters import check_number
from skpref._random import RandomLike
from skpref._validation import Query, check_outcomes, check_pairs, check_query
from skpref.metrics import concordance


def _fitted_on_duels(estimator):
    if getattr(estimator, "classes_", None) is not None:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} predicts outcomes once it was fitted on duels. After a fit on "
        "items with ratings it is a plain regressor; duel probabilities are at "
        "posterior_.win_probability(a, b)."
    )


class UtilityEstimator(RegressorMixin, BaseEstimator):
    """What every estimator with a ``posterior_`` of a utility predicts."""

    # -- prediction ----------------------------------------------------------------------

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Posterior mean utility of items, or mean margin of duels.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_duels, 2, n_features)
            With ``items=`` also integers: (n_items,) or (n_duels, 2).
        return_std : bool, default=False
            Also return the standard deviation of the (noise-free) utility or margin.
        return_cov : bool, default=False
            Also return their joint covariance; not both.

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,)
        cov : ndarray of shape (n, n)
        """
        if return_std and return_cov:
            raise RuntimeError("Only one of return_std and return_cov can be True.")
        query = self._query(X)
        posterior = self.posterior_
        if query.second is None:
            mean = posterior.mean(query.first)
            if return_cov:
                return mean, posterior.cov(query.first)
            return (mean, np.sqrt(posterior.var(query.first))) if return_std else mean
        mean, variance = posterior.margin(query.first, query.second)
        if return_cov:
            return mean, posterior.margin_cov(query.first, query.second)
        return (mean, np.sqrt(variance)) if return_std else mean

    @available_if(_fitted_on_duels)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the outcomes of duels, observation noise included.

        Parameters
        ----------
        X : array-like of shape (n_duels, 2, n_features), or integer pairs with ``items=``

        Returns
        -------
        ndarray of shape (n_duels, 2)
            Columns as `classes_`: second won, first won.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(_fitted_on_duels)
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Natural logarithm of `predict_proba`, finite far in the tails."""
        pairs = self._pairs(X)
        return self.posterior_.outcome_log_proba(pairs.first, pairs.second)

    @available_if(_fitted_on_duels)
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Mean margin of duels; positive where the first item is more likely to win."""
        pairs = self._pairs(X)
        return self.posterior_.margin(pairs.first, pairs.second)[0]

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Share of duels called right, or of rated pairs ordered right.

        Parameters
        ----------
        X : array-like
            Duels or rated items.
        y : array-like
            Outcomes (None: the first won each) or ratings.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items.
        sample_weight : array-like of shape (n_duels,) or (n_items,), default=None
            A pair of items weighs the product of their weights.

        Returns
        -------
        float
            A margin of exactly zero counts one half.
        """
        query = self._query(X)
        if query.second is None:
            if y is None:
                raise ValueError("Scoring items needs their ratings: score(X, y).")
            utility = self.posterior_.mean(query.first)
            return concordance(utility, y, qid, sample_weight=sample_weight)
        if qid is not None:
            raise ValueError("qid belongs to items with ratings; duels take none.")
        won, _ = check_outcomes(y, len(query.first))
        margin = self.posterior_.margin(query.first, query.second)[0]
        right = np.where(margin == 0.0, 0.5, (margin > 0.0) == won)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, margin, ensure_non_negative=True)
        # numpy's stub of average is narrower than ArrayLike.
        return float(np.average(right, weights=sample_weight))  # type: ignore[arg-type]

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomLike = 0
    ) -> NDArray[np.float64]:
        """Joint draws of utilities (of margins, for duels) from the posterior.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_duels, 2, n_features)
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (n, n_samples)
        """
        check_number("n_samples", n_samples, low=1, integer=True)
        query = self._query(X)
        if query.second is None:
            return self.posterior_.sample(query.first, n_samples, random_state)
        both = np.concatenate([query.first, query.second])
        first, second = np.split(self.posterior_.sample(both, n_samples, random_state), 2)
        return first - second

    def _query(self, X: ArrayLike) -> Query:
        check_is_fitted(self)
        return check_query(self, X, self.items_)

    def _pairs(self, X: ArrayLike) -> Query:
        check_is_fitted(self)
        return check_pairs(self, X, self.items_)
