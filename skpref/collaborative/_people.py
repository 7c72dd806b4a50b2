"""Tastes: what sets users apart from the population, as weights of shared functions.

User u's taste is w_u = Σ_k ψ_k(z_u) b_k + e_u with b_k ~ N(0, shared) and
e_u ~ N(0, own + rest_u shared): a Gaussian process on the features z of users by features ψ of
inducing users (rest_u is the variance that these leave, FITC), and a part of each user's own.
Without ψ users are independent. Both covariances of tastes are learned.
"""

from typing import NamedTuple

import numpy as np

from skpref._blocks import row_blocks
from skpref._linalg import Array, inverse_blocks, inverse_cholesky, jointly_diagonal

# Doubles of one intermediate array.
_BLOCK = 2**22


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


class Told(NamedTuple):
    """What answers tell about the tastes: a Gaussian factor for each user.

    Attributes
    ----------
    precision : ndarray of shape (n_users, d, d)
    shift : ndarray of shape (n_users, d)
    """

    precision: Array
    shift: Array


class People(NamedTuple):
    """q of the tastes.

    Attributes
    ----------
    mean : ndarray of shape (n_users, d)
    cov : ndarray of shape (n_users, d, d)
    told : Covariances
        Second moments of both parts, averaged: the next covariances of an EM algorithm.
    divergence : float
        From the prior.
    by_feature : ndarray of shape (d, r)
        Mean of b.
    by_feature_cov : ndarray of shape (d, r, d, r)
    """

    mean: Array
    cov: Array
    told: Covariances
    divergence: float
    by_feature: Array
    by_feature_cov: Array


def nobody(n_users: int, d: int) -> People:
    """Tastes of zero."""
    none, cov = np.zeros((n_users, d)), np.zeros((n_users, d, d))
    told = Covariances(np.zeros((d, d)))
    return People(none, cov, told, 0.0, np.zeros((d, 0)), np.zeros((d, 0, d, 0)))


def people_given(told: Told, prior: Covariances, features: Features | None) -> People:
    """q of the tastes, exact given the factors.

    Parameters
    ----------
    told : Told
    prior : Covariances
    features : Features or None
    """
    # In the basis of L, own = L Lᵀ and shared = L diag(level) Lᵀ.
    basis, level = jointly_diagonal(prior.own, prior.shared)
    n, d = told.shift.shape
    precision = np.matmul(np.matmul(basis.T, told.precision), basis)
    shift = told.shift @ basis
    variance = np.ones((n, d))
    if features is not None:
        variance = variance + features.rest[:, None] * level
    root = np.sqrt(variance)
    inner = root[:, :, None] * precision * root[:, None]
    inner[:, np.arange(d), np.arange(d)] += 1.0
    inverse, log_det = inverse_blocks(inner)
    cov = root[:, :, None] * inverse * root[:, None]
    cov = 0.5 * (cov + cov.transpose(0, 2, 1))
    mean = _times(cov, shift)
    normaliser = 0.5 * float(np.vdot(shift, mean)) - 0.5 * float(log_det.sum())
    own_mean, own_cov = mean, cov
    b, b_cov, shared = np.zeros((d, 0)), np.zeros((d, 0, d, 0)), None
    if features is not None:
        b, b_cov, extra = _by_features(inverse, root, shift, level, features.psi)
        normaliser += extra
        centre, centre_cov = from_features(features.psi, b, b_cov)
        pull = (root[:, :, None] * inverse) / root[:, None]  # mean = pull centre + cov shift
        mean = mean + _times(pull, centre)
        cov = cov + pull @ centre_cov @ pull.transpose(0, 2, 1)
        away = pull - np.eye(d)
        own_mean = mean - centre
        own_cov = own_cov + away @ centre_cov @ away.transpose(0, 2, 1)
        diagonal = np.einsum("dkek->de", b_cov)
        shared = basis @ (b @ b.T + diagonal) @ basis.T / b.shape[1]
    # e's part of each user's own, where inducing users left the rest of it
    share = 1.0 / variance
    parts = share * own_mean
    own = parts.T @ parts + (share[:, :, None] * own_cov * share[:, None]).sum(axis=0)
    own = own + np.diag((1.0 - share).sum(axis=0))
    inside = np.vdot(precision, cov) + np.vdot(_times(precision, mean), mean)
    divergence = float(np.vdot(shift, mean) - 0.5 * inside) - normaliser
    next_ones = Covariances(basis @ (own / n) @ basis.T, shared)
    back = np.einsum("ad,dkel,be->akbl", basis, b_cov, basis, optimize=True)
    cov = np.matmul(np.matmul(basis, cov), basis.T)
    return People(mean @ basis.T, cov, next_ones, divergence, basis @ b, back)


def from_features(psi: Array, b: Array, b_cov: Array) -> tuple[Array, Array]:
    """Mean and covariance of Σ_k ψ_k b_k for each row of ψ, (n, d) and (n, d, d)."""
    d, r = b.shape
    inner = np.ascontiguousarray(b_cov.transpose(1, 3, 0, 2)).reshape(r * r, d * d)
    cov = np.empty((len(psi), d * d))
    for rows in row_blocks(len(psi), r * r, _BLOCK):
        cov[rows] = _squares(psi[rows]) @ inner
    return psi @ b.T, cov.reshape(-1, d, d)


def _by_features(inverse, root, shift, level, psi):
    """Mean and covariance of b, and its part of the log normaliser."""
    n, d = shift.shape
    r = psi.shape[1]
    scale = np.sqrt(level)
    # (Λ⁻¹ + V)⁻¹ with V the variances of e, and what the shift is seen through it
    seen = (np.eye(d) - inverse) / root[:, :, None] / root[:, None]
    given = _times(inverse, root * shift) / root
    gram = np.zeros((d * d, r * r))
    for rows in row_blocks(n, r * r, _BLOCK):
        gram += seen[rows].reshape(-1, d * d).T @ _squares(psi[rows])
    gram = gram.reshape(d, d, r, r).transpose(0, 2, 1, 3)
    gram = (scale[:, None, None, None] * gram * scale[:, None]).reshape(d * r, d * r)
    gram.flat[:: d * r + 1] += 1.0
    factor, log_det = inverse_cholesky(gram.T)
    half = factor @ (scale[:, None] * (given.T @ psi)).ravel()
    b = scale[:, None] * (factor.T @ half).reshape(d, r)
    cov = (factor.T @ factor).reshape(d, r, d, r)
    cov = scale[:, None, None, None] * cov * scale[:, None]
    return b, cov, 0.5 * float(half @ half) - 0.5 * log_det


def _times(matrices, vectors):
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]


def _squares(psi):
    return (psi[:, :, None] * psi[:, None, :]).reshape(len(psi), -1)
