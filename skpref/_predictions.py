"""Predictions of a fitted utility, in scikit-learn's manners."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from skpref._utils import RandomLike, check_number, passed, refuse_dropped
from skpref.data import (
    Duels,
    Shown,
    check_judges,
    check_order,
    check_outcomes,
    check_ranks,
    check_respondents,
    first_there,
    gathered,
    refuse_order,
)
from skpref.fitting import Sight
from skpref.gp import choice_proba
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

    # What scikit-learn routes here without being asked to. It finds these by a part of their names,
    # so that what is said of predict_proba holds of predict until that is said last.
    __metadata_request__predict_proba = {"order": True, "judges": True}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"order": True, "judges": True}  # noqa: RUF012
    __metadata_request__decision_function = {"order": True, "judges": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "order": True, "judges": True}  # noqa: RUF012
    __metadata_request__predict = {"order": UNUSED, "judges": UNUSED}  # noqa: RUF012

    # -- prediction ----------------------------------------------------------------------

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Posterior mean utility of items, mean margin of duels, or mean utilities of sets.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features), (n_duels, 2, n_features), (n, k, n_features)
            With ``items=`` also integers: (n_items,), (n_duels, 2) or (n, k).
        return_std : bool, default=False
            Also return the standard deviation of the (noise-free) utility or margin.
        return_cov : bool, default=False
            Also return their joint covariance; not both.

        Returns
        -------
        mean : ndarray of shape (n,), of sets (n, k) with NaN where there is no item
        std : ndarray of the same shape
        cov : ndarray of shape (n, n)
        """
        if return_std and return_cov:
            raise RuntimeError("Only one of return_std and return_cov can be True.")
        query = self._query(X)
        posterior = self.posterior_
        if query.size is None:
            mean = posterior.mean(query)
            if return_cov:
                return mean, posterior.cov(query)
            return (mean, np.sqrt(posterior.var(query))) if return_std else mean
        if query.size > 2:
            if return_cov:
                raise ValueError(
                    "return_cov is for items and duels; for the covariance of the items of a set "
                    "pass these as items."
                )
            mean = gathered(posterior.mean(query), query.pairs)
            if return_std:
                return mean, gathered(np.sqrt(posterior.var(query)), query.pairs)
            return mean
        sides = query.sides
        mean, variance = posterior.margin(*sides)
        if return_cov:
            return mean, posterior.margin_cov(*sides)
        return (mean, np.sqrt(variance)) if return_std else mean

    @available_if(_fitted_on_duels)
    def predict_proba(
        self, X: ArrayLike, *, order: ArrayLike | None = None, judges: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of the outcomes of duels, or of each item to be chosen from its set.

        The judge's noise is included.

        Parameters
        ----------
        X : array-like of shape (n_duels, 2, n_features) or (n, k, n_features)
            With ``items=`` also integers, (n_duels, 2) or (n, k).
        order : array-like of int of shape (n,), default=None
            Who is shown first, as in `fit`.
        judges : array-like of shape (n,), default=None
            Who answers, as in `fit`; the probability is averaged over what is not known of their
            care. An id never seen is any judge; None, here or in it, one of the common level.

        Returns
        -------
        ndarray of shape (n_duels, n_outcomes), or (n, k)
            Of duels, in the order of ``classes_``: second won, (tie,) first won; with grades one a
            label. Of sets: each of their items is the best; 0 where there is none.
        """
        query, order = self._answerable("predict_proba", X, order, judges)
        if query.size > 2:
            self._sight(query, judges)
            return choice_proba(self.posterior_, query.rows, query.pairs, order)
        return np.exp(self._outcomes(query, order, judges))

    @available_if(_fitted_on_duels)
    def predict_log_proba(
        self, X: ArrayLike, *, order: ArrayLike | None = None, judges: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Natural logarithm of `predict_proba`, finite far in the tails."""
        query, order = self._answerable("predict_log_proba", X, order, judges)
        if query.size > 2:
            self._sight(query, judges)
            return choice_proba(self.posterior_, query.rows, query.pairs, order, log=True)
        return self._outcomes(query, order, judges)

    @available_if(_fitted_on_duels)
    def decision_function(
        self, X: ArrayLike, *, order: ArrayLike | None = None, judges: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Mean margin of duels, or mean utilities of the items of sets, as the judge sees them.

        With an order effect what is shown first has more of it. Positive where the first item of a
        duel is more likely to win than the second.

        Parameters
        ----------
        X, order, judges
            As in `predict_proba`; what a judge sees is their care times the margin.

        Returns
        -------
        ndarray of shape (n_duels,) or (n, k)
        """
        query, order = self._answerable("decision_function", X, order, judges)
        return self._seen(query, order, self._sight(query, judges))

    def _sight(self, query, judges):
        """How judges see the duels; None: all are of the common level."""
        if judges is None:
            return None
        if query.size != 2:
            check_judges(judges, len(query), query.size)
        ids = check_respondents(judges, len(query), "judge")
        known = getattr(self, "judges_", None)
        return None if known is None else Sight.of(known, ids)

    def _outcomes(self, query, order, judges):
        """Log-probabilities of duels."""
        sides, sight = query.sides, self._sight(query, judges)
        if sight is None:
            return self.posterior_.outcome_log_proba(*sides, order)
        first, second = (side.rows for side in sides)
        return sight.outcome_log_proba(self.posterior_, first, second, order)

    def _seen(self, query, order, sight=None):
        shift = self.posterior_.likelihood.order_shift * order
        if query.size == 2:
            margin = self.posterior_.margin(*query.sides)[0]
            return (margin if sight is None else sight.margin(margin, order)) + shift
        utility = gathered(self.posterior_.mean(query), query.pairs)
        utility[np.arange(len(utility)), first_there(query.pairs)] += shift
        return utility

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
        judges: ArrayLike | None = None,
    ) -> float:
        """Share of duels or choices called right, or of pairs of rated or ranked items.

        Parameters
        ----------
        X : array-like
            Duels, sets or rated items.
        y : array-like
            Outcomes (None: the first won each), choices, ranks or ratings, as in `fit`.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items.
        sample_weight : array-like of shape (n_duels,) or (n_items,), default=None
            A pair of items weighs the product of their weights.
        order : array-like of int of shape (n,), default=None
            Who was shown first, as in `fit`; not of rated items.
        judges : array-like of shape (n_duels,), default=None
            Who answered, as in `predict_proba`.

        Returns
        -------
        float
            With ties or grades, the most probable outcome is called. A choice is called by the
            largest mean utility, order effect included; of rankings the stated pairs count that
            stand in order, within each answer. A margin of exactly zero counts one half.
        """
        query = self._query(X)
        if query.size is None:
            self._sight(query, judges)
            if order is not None:
                refuse_order()
            self._check_metadata("score", qid=qid)
            if y is None:
                raise ValueError("Scoring items needs their ratings: score(X, y).")
            utility = self.posterior_.mean(query)
            return concordance(utility, y, self._groups(qid), sample_weight=sample_weight)
        if qid is not None:
            raise ValueError(
                "qid belongs to items with ratings, whose features are a 2-D X; duels take none, "
                "nor do positions in a table."
            )
        self._check_metadata("score", order=order, judges=judges)
        right = self._called_right(query, y, self._order(query, order), judges)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, right, ensure_non_negative=True)
        # numpy's stub of average is narrower than ArrayLike.
        return float(np.average(right, weights=sample_weight))  # type: ignore[arg-type]

    def _groups(self, qid):
        """Of rated items, within which they are compared."""
        return qid

    def _called_right(self, query, y, order, judges):
        seen = self._seen(query, order, self._sight(query, judges))
        if query.size > 2:
            return _agreement(seen, check_ranks(y, query.pairs >= 0))
        scale = self.posterior_.likelihood.duel_scale
        said = check_outcomes(y, len(query), scale, known=True)
        if scale.n_columns == 2:
            return np.where(seen == 0.0, 0.5, (seen > 0.0) == said.won)
        proba = self._outcomes(query, order, judges)
        return (proba.argmax(axis=1) == scale.columns(said.label)).astype(np.float64)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomLike = 0
    ) -> NDArray[np.float64]:
        """Joint draws of utilities (of margins, for duels) from the posterior; not of sets.

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
        if query.size is None:
            return self.posterior_.sample(query, n_samples, random_state)
        if query.size > 2:
            raise ValueError("sample_y draws for items and duels; pass the items of the sets.")
        both = Shown("items", np.concatenate([side.rows for side in query.sides]))
        first, second = np.split(self.posterior_.sample(both, n_samples, random_state), 2)
        return first - second

    @property
    def duels_(self) -> Duels:
        """Distinct duels of the last fit, with counts."""
        check_is_fitted(self)
        return self.comparisons_.duels

    def _query(self, X: ArrayLike) -> Shown:
        check_is_fitted(self)
        return self.posterior_.reader.answers(X, self)

    def _answerable(self, method, X, order, judges):
        query = self._query(X)
        if query.size is None:
            table = "" if self.items_ is None else " or integers of shape (n_duels, 2) or (n, k)"
            raise ValueError(
                f"Duels or sets are needed here, {len(query)} items came. X must be of shape "
                f"(n_duels, 2, n_features) or (n, k, n_features){table}; for utilities of items "
                "call predict."
            )
        self._check_metadata(method, order=order, judges=judges)
        return query, self._order(query, order)

    def _check_metadata(self, method, **metadata):
        """Refuse a scorer that dropped what `fit` was told, if predictions depend on it."""
        given = passed(**metadata)
        known = getattr(self, "_fit_metadata", ())
        dropped = [name for name in metadata if name in known and name not in given]
        if dropped:
            routing = self.get_metadata_routing()
            requests, of_fit = getattr(routing, method).requests, routing.fit.requests
            wanted = [name for name in dropped if requests.get(name) is not False]
            aliases = {name: of_fit.get(name) for name in wanted if self._depends_on(name)}
            refuse_dropped(
                {name: as_ if isinstance(as_, str) else name for name, as_ in aliases.items()}
            )

    def _depends_on(self, name):
        if name != "order" or self.posterior_.likelihood.order_shift != 0.0:
            return True
        judges = getattr(self, "judges_", None)
        return judges is not None and judges.order is not None

    def _order(self, query, order):
        order = check_order(order, len(query), query.size)
        return np.ones(len(query), dtype=np.int8) if order is None else order


def _agreement(utility, ranks):
    """Share of what each answer says that agrees with utilities, (n,)."""
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
