"""The prior of tastes: what sets users apart from the population, as weights of shared functions.

User u's taste is w_u = Σ_k ψ_k(z_u) b_k + e_u with b_k ~ N(0, shared) and
e_u ~ N(0, own + rest_u shared): a Gaussian process on the features z of users by features ψ of
inducing users (rest_u is the variance that these leave, FITC), and a part of each user's own.
Without ψ users are independent. Both covariances of tastes are learned.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._linalg import Array, jointly_diagonal


class Covariances(NamedTuple):
    """Prior covariances of tastes.

    Attributes
    ----------
    own : ndarray of shape (d, d)
        Of the part of each user's own.
    shared : ndarray of shape (d, d) or None
        Of the part that features tell; None without features.
    """

    own: Array
    shared: Array | None = None

    @property
    def of_features(self) -> Array:
        """Of the part that features tell; nothing without features."""
        return np.zeros_like(self.own) if self.shared is None else self.shared


class Features(NamedTuple):
    """Features ψ of users, (n_users, r), and the variance that they leave, (n_users,)."""

    psi: Array
    rest: Array


class Basis(NamedTuple):
    """A basis of tastes in which both prior covariances are diagonal, that of the own part I.

    Attributes
    ----------
    prior : Covariances
    turn : ndarray of shape (d, d)
        own = turn turnᵀ: tastes are turn times what they are in the basis.
    level : ndarray of shape (d,)
        shared = turn diag(level) turnᵀ.
    psi, rest : ndarray of shape (n_users, r) and (n_users,)
        Of the features; r = 0 and zeros without.
    """

    prior: Covariances
    turn: Array
    level: Array
    psi: Array
    rest: Array

    @classmethod
    def of(cls, prior: Covariances, features: Features | None, n_users: int) -> "Basis":
        """That of covariances."""
        turn, level = jointly_diagonal(prior.own, prior.shared)
        if features is None:
            return cls(prior, turn, level, np.zeros((n_users, 0)), np.zeros(n_users))
        return cls(prior, turn, level, features.psi, features.rest)

    def variance(self, users: NDArray[np.intp]) -> Array:
        """Prior variances of e_u, (n, d)."""
        return 1.0 + self.rest[users][:, None] * self.level


def squares(psi: Array) -> Array:
    """All products of two features, (n, r²)."""
    return (psi[:, :, None] * psi[:, None, :]).reshape(len(psi), -1)
