"""Entropies of answers in nats: of what is predicted, and expected once the utility is known.

The margin of a duel is an equal mixture of normals of one variance; what is averaged over it is the
entropy of the answer given the margin, which depends on the likelihood alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, log_ndtr, logsumexp

from skpref._blocks import row_blocks
from skpref._linalg import Array
from skpref.likelihoods import Likelihood

# The binary entropy of Φ(u) is about log 2 · exp(−u²/(2 C²)) nats, whose value and second
# derivative at 0 are its own: C² = π log(2) / 2 (Houlsby et al. 2012; supplement, eq. 4, in bits).
_BELL = 0.5 * np.pi * np.log(2.0)
# Up to so many deviations of the noise a margin's deviation is narrow: Gauss–Hermite's rule about
# its mean is exact to 1e-10. Beyond, fixed panels over the margins where answers are in doubt are.
_NARROW = 0.6
_HERMITE = 40
_LEGENDRE = 16
# Edges of the panels, as quantiles of a standard normal: beyond ±9 an answer is sure.
_LADDER = np.arange(-9.0, 9.5)
_DOUBLINGS, _BISECTIONS = 60, 60
# Doubles of one intermediate array (8 MiB).
BLOCK = 2**20

_Z, _Z_WEIGHTS = np.polynomial.hermite_e.hermegauss(_HERMITE)
_Z_WEIGHTS = _Z_WEIGHTS / _Z_WEIGHTS.sum()
_X, _X_WEIGHTS = np.polynomial.legendre.leggauss(_LEGENDRE)


def outcome_proba(
    likelihood: Likelihood, mean: Array, variance: ArrayLike, lead: ArrayLike
) -> Array:
    """Probabilities of the outcomes under Gaussian margins, on a new last axis."""
    variance = np.asarray(variance, dtype=np.float64)
    if likelihood.uses_order:
        return likelihood.outcome_proba(mean, variance, lead)
    return likelihood.outcome_proba(mean, variance)


def entropy_of(proba: Array) -> Array:
    """Entropy of probabilities on the last axis."""
    return entr(proba).sum(axis=-1)


def predictive_proba(
    likelihood: Likelihood, means: Array, variance: Array, lead: NDArray[np.int8]
) -> Array:
    """Probabilities of the outcomes under mixtures, shape (n, n_outcomes).

    Parameters
    ----------
    likelihood : Likelihood
    means : ndarray of shape (n, n_components)
    variance, lead : ndarray of shape (n,)
    """
    found = np.empty((len(variance), likelihood.n_outcomes))
    for rows in row_blocks(len(variance), means.shape[1] * likelihood.n_outcomes, BLOCK):
        each = outcome_proba(likelihood, means[rows], variance[rows, None], lead[rows, None])
        found[rows] = each.mean(axis=1)
    return found


def expected_entropy(
    likelihood: Likelihood, means: Array, variance: Array, lead: NDArray[np.int8]
) -> Array:
    """Mean entropy of the answer given the margin, by quadrature, shape (n,).

    Parameters
    ----------
    likelihood : Likelihood
    means : ndarray of shape (n, n_components)
    variance, lead : ndarray of shape (n,)
    """
    found = np.empty(len(variance))
    narrow = variance <= _NARROW**2 * likelihood.margin_variance
    if not likelihood.uses_order:
        lead = np.ones_like(lead)
    every = np.flatnonzero(narrow)
    for block in row_blocks(len(every), means.shape[1] * _HERMITE * likelihood.n_outcomes, BLOCK):
        rows = every[block]
        margin = means[rows, :, None] + np.sqrt(variance[rows])[:, None, None] * _Z
        known = outcome_proba(likelihood, margin, 0.0, lead[rows, None, None])
        found[rows] = (entropy_of(known) @ _Z_WEIGHTS).mean(axis=1)
    for value in np.unique(lead[~narrow]):
        nodes, weights = _doubtful(likelihood, value)
        every = np.flatnonzero(~narrow & (lead == value))
        for block in row_blocks(len(every), means.shape[1] * len(nodes), BLOCK):
            rows = every[block]
            deviation = np.sqrt(variance[rows])[:, None, None]
            z = (nodes - means[rows, :, None]) / deviation
            density = np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * deviation)
            found[rows] = (density @ weights).mean(axis=1)
    return found


def _doubtful(likelihood, lead):
    """Margins at which the answer is not sure, and entropies there times the rule's weights."""

    def log_proba(margin):
        known = np.zeros(len(margin))
        if likelihood.uses_order:
            return likelihood.outcome_log_proba(margin, known, lead)
        return likelihood.outcome_log_proba(margin, known)

    def first(margin):
        each = log_proba(margin)
        return each[:, -1] - logsumexp(each[:, :-1], axis=1)

    def second(margin):
        each = log_proba(margin)
        return logsumexp(each[:, 1:], axis=1) - each[:, 0]

    wanted = log_ndtr(_LADDER) - log_ndtr(-_LADDER)
    scale = np.sqrt(likelihood.margin_variance)
    # Between wins and ties there is one change from sure to sure, between ties and losses another.
    changes = (first, second) if likelihood.n_outcomes == 3 else (first,)
    edges = np.sort(np.concatenate([_inverse(of, wanted, scale) for of in changes]))
    half, centre = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    nodes = (centre + half * _X).ravel()
    proba = np.exp(log_proba(nodes))
    return nodes, entropy_of(proba) * (half * _X_WEIGHTS).ravel()


def _inverse(of, wanted, scale):
    """Margins at which an increasing function of them has some values, roughly."""
    width = scale
    for _ in range(_DOUBLINGS):
        low, high = of(np.array([-width, width]))
        if low <= wanted[0] and high >= wanted[-1]:
            break
        width *= 2.0
    low, high = np.full(len(wanted), -width), np.full(len(wanted), width)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        below = of(middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


class Bell(NamedTuple):
    """Mean entropy by the closed form, and C² times the noise plus the margin's variance."""

    value: Array
    spread: Array


def expected_bell(mean: Array, variance: Array, noise: ArrayLike) -> Bell:
    """Mean entropy of a probit's answer given the margin, in the closed form of [1]_.

    Parameters
    ----------
    mean, variance : ndarray, of shapes that broadcast to one another's
        Of the margin.
    noise : float
        Variance of the noise on the margin.

    References
    ----------
    .. [1] Houlsby, Hernández-Lobato, Huszár, Ghahramani, "Collaborative Gaussian Processes for
       Preference Learning", NIPS 2012.
    """
    spread = variance + _BELL * noise
    height = np.log(2.0) * np.sqrt(_BELL * noise / spread)
    return Bell(height * np.exp(-0.5 * mean * mean / spread), spread)
