"""The posterior of many users' utilities as sums of products of weights and functions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skpref._linalg import Array, floor_variance
from skpref.collaborative._factorised import Processes, squares
from skpref.collaborative._posterior import CollaborativePosterior, same_user

# Doubles of one intermediate array.
_BLOCK = 2**22


class Weights(NamedTuple):
    """Weights of the users of some rows: shrink times ψᵀ b, and an independent rest.

    Attributes
    ----------
    mean : ndarray of shape (n, d)
    psi : ndarray of shape (n, r)
    shrink, rest : ndarray of shape (n, d)
    """

    mean: Array
    psi: Array
    shrink: Array
    rest: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorisedPosterior(CollaborativePosterior):
    """Weights and functions are independent Gaussian processes: f_u(x) = Σ_d w_ud h_d(x).

    Means and covariances are those of the sums of products, which are then taken for Gaussian.

    Attributes
    ----------
    weights : Processes
        Of the users that were fitted.
    features : ndarray of shape (n_users, r)
        Of these users, as the prior of weights has them.
    population : bool
        Whether users share a part of their weights, the first of these features.
    own, shared : float
        Prior variances of weights: of the part of a user's own, and of the one that features tell.
    functions : ndarray of shape (d, m)
        Means of the functions as combinations of whitened features.
    functions_cov : ndarray of shape (d, m, m)
        Covariances of these.
    """

    weights: Processes
    features: Array
    population: bool
    own: float
    shared: float
    functions: Array
    functions_cov: Array

    def _moments(self, A, B=None):
        self._check_rows(len(A))
        step = max(_BLOCK // (len(self.anchors) + self.features.shape[1] + len(self.functions)), 1)
        mean, variance = np.empty((2, len(A)))
        for start in range(0, len(A), step):
            rows = slice(start, start + step)
            phi, prior = self._features(A[rows], None if B is None else B[rows])
            w = self._weights(*self._asked(rows, len(phi)))
            w_var = w.shrink**2 * squares(w.psi, self.weights.cov).T + w.rest
            h = phi @ self.functions.T
            left = floor_variance(prior - np.einsum("nm,nm->n", phi, phi), 0.0)
            h_var = squares(phi, self.functions_cov).T + left[:, None]
            mean[rows] = np.einsum("nd,nd->n", w.mean, h)
            variance[rows] = (w.mean**2 * h_var + w_var * (h**2 + h_var)).sum(axis=1)
        return mean, variance

    def _cov(self, A, B):
        self._check_rows(len(A))
        phi, _ = self._features(A, B)
        users, *seen = self._asked(slice(None), len(phi))
        w, h = self._weights(users, *seen), phi @ self.functions.T
        left, same = self._prior(A, B) - phi @ phi.T, same_user(users)
        found = np.zeros_like(left)
        for d in range(len(self.functions)):
            lean = w.shrink[:, [d]] * w.psi
            of_w = lean @ self.weights.cov[d] @ lean.T
            root = np.sqrt(w.rest[:, d])
            of_w += np.where(same, root[:, None] * root, 0.0)
            of_h = phi @ self.functions_cov[d] @ phi.T + left
            found += np.outer(w.mean[:, d], w.mean[:, d]) * of_h
            found += of_w * (np.outer(h[:, d], h[:, d]) + of_h)
        return 0.5 * (found + found.T)

    def _weights(self, users, psi, rest):
        """Of users by their codes, those that were not fitted by their features."""
        d, old = len(self.functions), users >= 0
        seen = np.zeros((len(users), self.features.shape[1]))
        own = np.full(len(users), self.own + self.shared)
        if self.population:
            seen[:, 0] = 1.0 / np.sqrt(d)
        if psi is not None and rest is not None:
            known = ~np.isnan(rest)
            seen[known, int(self.population) :] = np.sqrt(self.shared) * psi[known]
            own[known] = self.own + self.shared * rest[known]
        shrink = np.ones((len(users), d))
        wide = np.tile(own[:, None], (1, d))
        mean = seen @ self.weights.centre.T
        who = users[old]
        seen[old], shrink[old] = self.features[who], self.weights.shrink.T[who]
        wide[old], mean[old] = self.weights.rest.T[who], self.weights.mean.T[who]
        return Weights(mean, seen, shrink, wide)
