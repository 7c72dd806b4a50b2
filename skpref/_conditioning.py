"""Conditioning of the GP on sites: the only place that factorises.

Margins are z = A f with f ~ N(0, K); sites are Gaussian pseudo-observations of z. The same
posterior is reached in margin space (matrices of the size of the number of distinct margins)
or in item space (matrices of the size of the number of distinct items); `gaussian_space`
takes the smaller.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from skpref._linalg import inverse_cholesky, semidefinite_root
from skpref._posterior import Posterior

# A sweep costs about ⅔ p³ with p margins and about 3 n³ with n items.
_ITEM_COST = 1.6
# Where precision × prior variance is below this, 1 − diag(B⁻¹) has lost digits.
_WEAK = 1e-3


class Sites(NamedTuple):
    """Gaussian pseudo-observations of the margins in natural parameters.

    Attributes
    ----------
    shift : ndarray of shape (n_margins,) or (n_margins, n_components)
        Precision times target.
    precision : ndarray of shape (n_margins,)
        May be zero.
    log_evidence : float
        Logarithm of the probability of the duels.
    """

    shift: np.ndarray
    precision: np.ndarray
    log_evidence: float


class Conditioned(NamedTuple):
    """Marginals of the margins under the sites.

    ``dual`` (w) gives mean = S w; ``log_det`` is log|I + τ^½ S τ^½|; ``root`` is the inverse
    of the Cholesky factor that produced them.
    """

    mean: np.ndarray
    variance: np.ndarray
    dual: np.ndarray
    log_det: float
    root: np.ndarray


class _Space:
    """What both spaces share: the incidence of items in margins."""

    def __init__(self, K, margins):
        self.K = K
        self.first, self.second = margins.first, margins.second
        self.n_items, self.n_margins = len(K), len(margins.first)
        ends = np.concatenate([self.first, self.second])
        column = np.tile(np.arange(self.n_margins), 2)
        signs = np.repeat([1.0, -1.0], self.n_margins)
        shape = (self.n_items, self.n_margins)
        self.incidence = csr_array((signs, (ends, column)), shape=shape)  # Aᵀ

    def difference(self, utility):
        """A f."""
        return utility[self.first] - utility[self.second]

    def prior_covariance(self):
        """S = A K Aᵀ."""
        from_first, from_second = self.K[self.first], self.K[self.second]
        S = from_first[:, self.first]
        S -= from_first[:, self.second]
        S -= from_second[:, self.first]
        S += from_second[:, self.second]
        return S

    def prior_times(self, vector):
        """S vector."""
        return self.difference(self.K @ (self.incidence @ vector))


class MarginSpace(_Space):
    """The prior on p distinct margins by their (p, p) covariance S = A K Aᵀ."""

    def __init__(self, K, margins):
        super().__init__(K, margins)
        self.S = self.prior_covariance()
        self.prior_variance = np.maximum(np.diagonal(self.S), 0.0)

    def condition(self, precision, shift):
        root = np.sqrt(precision)
        B = self.S * root
        B *= root[:, None]
        B.flat[:: len(B) + 1] += 1.0
        inverse, log_det = inverse_cholesky(B.T)
        wide = (lambda x: x) if shift.ndim == 1 else (lambda x: x[:, None])
        strong = precision > 0.0
        # w = τ^½ B⁻¹ (target τ^½): no difference of large numbers
        if strong.all():
            dual = wide(root) * (inverse.T @ (inverse @ (shift / wide(root))))
        else:
            rest = np.where(wide(strong), 0.0, shift)
            scaled = (shift - rest) / wide(np.where(strong, root, 1.0))
            scaled -= wide(root) * (self.S @ rest)
            dual = rest + wide(root) * (inverse.T @ (inverse @ scaled))
        left = np.einsum("ij,ij->j", inverse, inverse)  # diag(B⁻¹) = 1 − τ × posterior variance
        variance = (1.0 - left) / np.where(strong, precision, 1.0)
        weak = np.flatnonzero(precision * self.prior_variance < _WEAK)
        if len(weak):
            half = inverse @ (root[:, None] * self.S[:, weak])
            variance[weak] = self.prior_variance[weak] - np.einsum("ij,ij->j", half, half)
        return Conditioned(self.S @ dual, np.maximum(variance, 0.0), dual, log_det, inverse)

    def factor(self, conditioned, precision):
        """D (n_items, rank): the posterior covariance is K − K D Dᵀ K."""
        return self.incidence @ (conditioned.root.T * np.sqrt(precision)[:, None])

    def gram(self, conditioned, precision):
        """D Dᵀ."""
        half = conditioned.root.T * np.sqrt(precision)[:, None]
        return self.incidence @ (self.incidence @ (half @ half.T)).T

    def gain_times(self, conditioned, precision, vector):
        """R S vector with R = τ^½ B⁻¹ τ^½."""
        root = np.sqrt(precision)
        inner = conditioned.root @ (root * (self.S @ vector))
        return root * (conditioned.root.T @ inner)


class ItemSpace(_Space):
    """The prior on n items by a factor F of their covariance, K = F Fᵀ."""

    def __init__(self, K, margins):
        super().__init__(K, margins)
        self.F = semidefinite_root(K)
        self.prior_variance = self._spread(K)

    def _spread(self, covariance):
        diagonal = np.diagonal(covariance)
        apart = diagonal[self.first] + diagonal[self.second]
        return np.maximum(apart - 2.0 * covariance[self.first, self.second], 0.0)

    def _laplacian(self, precision):
        """Aᵀ diag(τ) A."""
        apart = np.where(self.first == self.second, 0.0, precision)
        laplacian = np.zeros((self.n_items, self.n_items))
        laplacian[self.first, self.second] = -apart
        laplacian += laplacian.T
        laplacian.flat[:: self.n_items + 1] = -laplacian.sum(axis=1)
        return laplacian

    def condition(self, precision, shift):
        inner = self.F.T @ (self._laplacian(precision) @ self.F)
        inner.flat[:: len(inner) + 1] += 1.0
        inverse, log_det = inverse_cholesky(inner.T)
        half = inverse @ self.F.T
        mean = self.difference(half.T @ (half @ (self.incidence @ shift)))
        dual = shift - (precision if shift.ndim == 1 else precision[:, None]) * mean
        return Conditioned(mean, self._spread(half.T @ half), dual, log_det, inverse)

    def factor(self, conditioned, precision):
        """D (n_items, rank): the posterior covariance is K − K D Dᵀ K."""
        root = semidefinite_root(self._laplacian(precision))
        inner = root.T @ (self.K @ root)
        inner.flat[:: len(inner) + 1] += 1.0
        inverse, _ = inverse_cholesky(inner.T)
        return root @ inverse.T

    def gram(self, conditioned, precision):
        """D Dᵀ."""
        D = self.factor(conditioned, precision)
        return D @ D.T

    def gain_times(self, conditioned, precision, vector):
        """R S vector with R = τ − τ A Σ Aᵀ τ."""
        margin = self.prior_times(vector)
        half = conditioned.root @ self.F.T
        utility = half.T @ (half @ (self.incidence @ (precision * margin)))
        return precision * (margin - self.difference(utility))


def gaussian_space(K, margins):
    """The cheaper of `MarginSpace` and `ItemSpace` for these margins."""
    cheap_margins = len(margins.first) <= _ITEM_COST * len(K)
    return MarginSpace(K, margins) if cheap_margins else ItemSpace(K, margins)


def condition(kernel, items, space, approximation, likelihood):
    """The GP given an engine's sites, as a frozen `Posterior`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    items : ndarray of shape (n_items, n_features)
        The distinct items that ``space`` was built on.
    space : MarginSpace or ItemSpace
    approximation : Approximation
        Its ``sites`` and the marginals ``conditioned`` on them.
    likelihood : Likelihood
    """
    conditioned = approximation.conditioned
    dual = conditioned.dual if conditioned.dual.ndim == 2 else conditioned.dual[:, None]
    weights = space.incidence @ dual
    factor = space.factor(conditioned, approximation.sites.precision)
    return Posterior(kernel, likelihood, items, weights, factor)
