"""What every engine is given and what it returns."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skpref._conditioning import Conditioned, Sites


class Problem(NamedTuple):
    """Duels over a prior: all an engine sees.

    Attributes
    ----------
    space : MarginSpace or ItemSpace
        The prior on the distinct margins.
    index, sign, counts : ndarray of shape (n_kinds,)
        Margin, orientation and count of each kind of duel.
    noise_variance : float
    """

    space: object
    index: np.ndarray
    sign: np.ndarray
    counts: np.ndarray
    noise_variance: float

    def pool(self, values):
        """Sum over the kinds of duel on each margin, weighted by their counts."""
        return np.bincount(self.index, self.counts * values, self.space.n_margins)


class Approximation(NamedTuple):
    """A converged engine.

    Attributes
    ----------
    sites : Sites
    conditioned : Conditioned
        The marginals under ``sites``.
    state : tuple of ndarray
        To start the next run from.
    n_iter : int
    residual : float
        How far from convergence the last iteration was, in the engine's own measure.
    converged : bool
    diagnostics : Diagnostics or None
        Of the chains, if the engine samples.
    """

    sites: Sites
    conditioned: Conditioned
    state: tuple
    n_iter: int
    residual: float
    converged: bool
    diagnostics: object = None


class GaussianEngine(BaseEstimator):
    """An engine of one Gaussian component: it has an evidence of its own."""

    def evidence_engine(self):
        """The engine whose evidence sets the hyperparameters."""
        return self

    def check_size(self, duels):
        """Any number of duels will do."""

    def side(self, duels):
        """Of the largest square matrices that are multiplied or factorised."""
        return min(len(duels.items), len(duels.counts))

    def refine(self, problem, approximation, rng):
        """Nothing to refine: the approximation is the posterior."""
        return approximation


class EvidenceGradient(NamedTuple):
    """Derivatives of the log evidence.

    ``covariance`` (n_items, n_items) is symmetric: d log Z = Σ_ij covariance_ij dK_ij.
    ``log_noise`` is d log Z / d log σ².
    """

    covariance: np.ndarray
    log_noise: float
