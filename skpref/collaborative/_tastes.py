"""Tastes under q, of users that were fitted and of all others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._linalg import Array
from skpref.collaborative._people import Covariances


class Weighed(NamedTuple):
    """Functions as tastes weigh them, h·w, a row each.

    Attributes
    ----------
    mean : ndarray of shape (n,)
    variance : ndarray of shape (n,)
        Given ε.
    sway : ndarray of shape (n, m)
        Slopes in ε.
    """

    mean: Array
    variance: Array
    sway: Array


class Tastes(NamedTuple):
    """q of the tastes of the users that were fitted, and what is known of all others.

    The population's utility deviates from its mean by rootᵀ ε, ε standard normal (m,); tastes by
    slopes in ε and by what is independent of it.

    Attributes
    ----------
    mean : ndarray of shape (n_users, d)
    cov : ndarray of shape (n_users, d, d)
        Given ε.
    slope : ndarray of shape (n_users, d, m)
    prior : Covariances
    turn : ndarray of shape (d, d)
        Σ_k ψ_k b_k is turn times what it is in the basis of what follows.
    by_feature : ndarray of shape (d, r)
        Mean of b.
    by_feature_root : ndarray of shape (d r, d, r)
        Root of its covariance given ε, rootᵀ root.
    by_feature_slope : ndarray of shape (d, m, r)
    pull : ndarray of shape (n_users, d, d) or None
        Slopes of tastes in Σ_k ψ_k b_k; None without features.
    """

    mean: Array
    cov: Array
    slope: Array
    prior: Covariances
    turn: Array
    by_feature: Array
    by_feature_root: Array
    by_feature_slope: Array
    pull: Array | None

    def at(
        self,
        high: Array,
        users: NDArray[np.intp],
        psi: Array | None = None,
        rest: Array | None = None,
    ) -> Weighed:
        """Values of functions as users weigh them.

        Parameters
        ----------
        high : ndarray of shape (n, d)
        users : ndarray of int of shape (n,)
            Negative for users that were not fitted, −1 for somebody else each time.
        psi, rest : ndarray, optional
            Their features, (n, r) and (n,), NaN where there are none; read for those alone.
        """
        n, m = len(high), self.slope.shape[2]
        mean, variance, sway = np.zeros(n), np.empty(n), np.zeros((n, m))
        for user, rows in _by_user(users):
            here = high[rows]
            if user >= 0:
                mean[rows] = here @ self.mean[user]
                variance[rows] = _squares(here, self.cov[user])
                sway[rows] = here @ self.slope[user]
            else:
                variance[rows] = _squares(here, self.prior.own + self.prior.of_features)
        if psi is not None and rest is not None:
            rows = np.flatnonzero((users < 0) & ~np.isnan(rest))
            here = high[rows]
            both = _both(here @ self.turn, psi[rows])
            mean[rows] = both @ self.by_feature.ravel()
            sway[rows] = both @ self._flat_slope
            wide = _squares(here, self.prior.own)
            wide += rest[rows] * _squares(here, self.prior.of_features)
            variance[rows] = wide + np.square(both @ self._flat_root.T).sum(axis=1)
        return Weighed(mean, variance, sway)

    def across(
        self,
        high: Array,
        users: NDArray[np.intp],
        psi: Array | None = None,
        rest: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Covariances of such values.

        Parameters
        ----------
        high, users, psi, rest
            As in `at`.

        Returns
        -------
        own, between : ndarray of shape (n, n)
            Given ε: where both are one user's, and where they are two users'.
        sway : ndarray of shape (n, m)
            Slopes in ε.
        """
        n = len(high)
        found = self.at(high, users, psi, rest)
        own, between = np.diag(found.variance), np.zeros((n, n))
        seen = np.full(n, np.nan) if psi is None or rest is None else rest
        for user, rows in _by_user(users):
            if user != -1:
                cov = self.cov[user] if user >= 0 else self._of_new(seen[rows[0]])
                own[np.ix_(rows, rows)] = high[rows] @ cov @ high[rows].T
        if psi is not None and rest is not None and self.pull is not None:
            lean = high @ self.turn
            for user, rows in _by_user(users):
                if user >= 0:
                    lean[rows] = high[rows] @ self.pull[user]
            known = np.flatnonzero((users >= 0) | ~np.isnan(rest))
            half = _both(lean[known], psi[known]) @ self._flat_root.T
            between[np.ix_(known, known)] = half @ half.T
            for user, rows in _by_user(users):
                if user < -1:
                    own[np.ix_(rows, rows)] += between[np.ix_(rows, rows)]
        return own, between, found.sway

    def _of_new(self, rest):
        """Covariance of a taste that was not fitted but for what inducing users tell of it."""
        return self.prior.own + (1.0 if np.isnan(rest) else rest) * self.prior.of_features

    @property
    def _flat_root(self):
        n = self.by_feature.size
        return self.by_feature_root.reshape(n, n)

    @property
    def _flat_slope(self):
        d, m, r = self.by_feature_slope.shape
        return self.by_feature_slope.transpose(0, 2, 1).reshape(d * r, m)


def _by_user(users):
    """Users, and the rows of each."""
    order = np.argsort(users, kind="stable")
    names, begin = np.unique(users[order], return_index=True)
    return zip(names.tolist(), np.split(order, begin[1:]), strict=True) if len(users) else ()


def _both(lean, psi):
    """Products of weights and features, (n, d r)."""
    n, d = lean.shape
    return (lean[:, :, None] * psi[:, None]).reshape(n, d * psi.shape[1])


def _squares(high, cov):
    return np.einsum("nd,nd->n", high @ cov, high)
