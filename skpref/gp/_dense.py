"""Conditioning of the GP on sites: the only place that factorises.

Margins are z = A f with f ~ N(0, K); sites are Gaussian pseudo-observations of z. The margins of
joint answers carry noise, v = z + e, which their sites observe together with z. The same posterior
is reached in margin space (matrices of the size of the number of distinct margins) or in item space
(matrices of the size of the number of distinct items); `gaussian_space` takes the smaller.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from skpref._utils import NoCovarianceError, floor_variance, inverse_cholesky
from skpref.gp._posterior import MOST, Posterior
from skpref.gp._shared_noise import JointNoise, among_pairs
from skpref.gp._utilities import (
    LARGE,
    STRONG,
    ByRoot,
    Gain,
    Utilities,
    cheaper_by_margins,
    columns,
    few,
    has_circles,
    item_solver,
    root_gain,
)

# Where precision × prior variance is below this, 1 − diag(B⁻¹) has lost digits.
_WEAK = 1e-3
# Precision × prior variance, on the average, up to which L − L Σ L keeps its digits.
_LOSSY = 1e4


class Sites(NamedTuple):
    """Gaussian pseudo-observations of the margins in natural parameters.

    Attributes
    ----------
    shift : ndarray of shape (n_margins,) or (n_margins, n_components)
        Precision times target.
    precision : ndarray of shape (n_margins,)
        May be zero. Infinite where a margin of a joint answer is known, noise included; its
        ``shift`` then is its value (the mean, of an answer given more than once).
    log_evidence : float
        Logarithm of the probability of the duels.
    """

    shift: np.ndarray
    precision: np.ndarray
    log_evidence: float


class Conditioned(NamedTuple):
    """Marginals of the margins under the sites, of joint answers with their noise.

    ``dual`` (w), summed over equal joint answers, gives f = K Aᵀ w; ``log_det`` is
    log|I + τ^½ S τ^½|; ``root`` is what produced them: in margin space the inverse of a Cholesky
    factor, in item space the utilities.
    """

    mean: np.ndarray
    variance: np.ndarray
    dual: np.ndarray
    log_det: float
    root: np.ndarray | Utilities


class _Space:
    """What both spaces share: the incidence of items in margins."""

    def __init__(self, K, margins, noise=None):
        self.K, self.noise = K, noise
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

    def represented(self, items, approximation):
        """Anchors, weights and factor of the posterior, and the anchors' utilities if known."""
        conditioned = approximation.conditioned
        gain = self.gain(conditioned, approximation.sites.precision, approximation.sites.shift)
        kept = isinstance(conditioned.root, Utilities) and len(items) <= MOST
        return items, gain.weights, gain.factor, conditioned.root if kept else None

    def prior_times(self, vector):
        """S vector."""
        return self.difference(self.K @ (self.incidence @ vector))


class MarginSpace(_Space):
    """The prior on p distinct margins by their (p, p) covariance S = A K Aᵀ, noise included.

    Of joint answers each may be given once only.
    """

    def __init__(self, K, margins, noise=None):
        super().__init__(K, margins, noise)
        self.S = self.prior_covariance()
        if noise is not None:
            noise.add_to(self.S)
        self.prior_variance = floor_variance(np.diagonal(self.S), 0.0)

    def condition(self, precision, shift):
        if np.isinf(precision).any():
            return self._given(precision, shift)
        root = np.sqrt(precision)
        B = self.S * root
        B *= root[:, None]
        B.flat[:: len(B) + 1] += 1.0
        inverse, log_det = inverse_cholesky(B.T)
        dual = self._dual(inverse, precision, shift)
        left = np.einsum("ij,ij->j", inverse, inverse)  # diag(B⁻¹) = 1 − τ × posterior variance
        variance = (1.0 - left) / np.where(precision > 0.0, precision, 1.0)
        weak = np.flatnonzero(precision * self.prior_variance < _WEAK)
        if len(weak):
            half = inverse @ (root[:, None] * self.S[:, weak])
            variance[weak] = self.prior_variance[weak] - np.einsum("ij,ij->j", half, half)
        return Conditioned(self.S @ dual, floor_variance(variance, 0.0), dual, log_det, inverse)

    def _dual(self, inverse, precision, shift):
        wide = (lambda x: x) if shift.ndim == 1 else (lambda x: x[:, None])
        root, strong = np.sqrt(precision), precision > 0.0
        # w = τ^½ B⁻¹ (target τ^½): no difference of large numbers
        if strong.all():
            return wide(root) * (inverse.T @ (inverse @ (shift / wide(root))))
        rest = np.where(wide(strong), 0.0, shift)
        scaled = (shift - rest) / wide(np.where(strong, root, 1.0))
        scaled -= wide(root) * (self.S @ rest)
        return rest + wide(root) * (inverse.T @ (inverse @ scaled))

    def shifted(self, conditioned, precision, shift):
        """`condition` on sites of the same, finite precision: without a factorisation."""
        dual = self._dual(conditioned.root, precision, shift)
        return conditioned._replace(mean=self.S @ dual, dual=dual)

    def centre(self, precision, shift):
        """Mean and dual alone of `condition`."""
        found = self.condition(precision, shift)
        return found.mean, found.dual

    def _given(self, precision, shift):
        """Margins of joint answers are known, the others seen through their sites."""
        known = np.isinf(precision)
        follows = np.zeros(len(known), dtype=bool)
        for block in self.noise.blocks:
            follows[block.margin[~block.basis]] = True
        used = np.flatnonzero((known & ~follows) | (~known & (precision > 0.0)))
        spread = np.where(known[used], 0.0, 1.0 / precision[used])
        C = self.S[np.ix_(used, used)]
        C.flat[:: len(C) + 1] += spread
        inverse, log_det = inverse_cholesky(C.T)
        told = known[used] if shift.ndim == 1 else known[used][:, None]
        wide = spread if shift.ndim == 1 else spread[:, None]
        target = np.where(told, shift[used], shift[used] * wide)
        dual, root = np.zeros(shift.shape), np.zeros((len(used), len(known)))
        dual[used] = inverse.T @ (inverse @ target)
        root[:, used] = inverse
        variance = self.prior_variance - np.einsum("ij,ij->j", *[root @ self.S] * 2)
        variance = floor_variance(np.where(known, 0.0, variance), 0.0)
        root /= _scale(precision)
        return Conditioned(self.S @ dual, variance, dual, log_det, root)

    def gain(self, conditioned, precision, shift):
        """D, by which the posterior covariance is K − K D Dᵀ K, and the weights of the items."""
        factor = self.incidence @ (conditioned.root.T * _scale(precision)[:, None])
        return Gain(factor, self.incidence @ columns(conditioned.dual))

    def gram(self, conditioned, precision):
        """D Dᵀ."""
        half = conditioned.root.T * _scale(precision)[:, None]
        return self.incidence @ (self.incidence @ (half @ half.T)).T

    def noise_slope(self, conditioned, precision):
        """d log Z / dσ² by the noise of joint answers, of one item."""
        half = conditioned.root.T * _scale(precision)[:, None]
        rows = [(block, half[block.margin]) for block in self.noise.blocks]
        gains = ((block, part @ np.swapaxes(part, 1, 2)) for block, part in rows)
        return self.noise.slope(conditioned.dual, gains)

    def gain_times(self, conditioned, precision, vector):
        """R S vector with R = τ^½ B⁻¹ τ^½."""
        root = np.sqrt(precision)
        inner = conditioned.root @ (root * (self.S @ vector))
        return root * (conditioned.root.T @ inner)


class ItemSpace(_Space):
    """The prior on n items by a root of their covariance, or its inverse: see `item_solver`."""

    def __init__(self, K, margins, noise=None):
        super().__init__(K, margins, noise)
        self._solver = item_solver(K)
        self._n_shared = margins.n_shared
        diagonal = np.diagonal(K)
        apart = diagonal[self.first] + diagonal[self.second]
        self.prior_variance = floor_variance(apart - 2.0 * K[self.first, self.second], 0.0)
        if noise is not None:
            self.prior_variance += noise.diagonal()

    def _utilities(self, precision):
        laplacian = self._laplacian(precision)
        try:
            return self._solver.given(laplacian)
        except NoCovarianceError:
            self._solver = ByRoot(self.K)  # slower, without K's inverse
            return self._solver.given(laplacian)

    def _laplacian(self, precision):
        """Aᵀ T A with T the precision of the sites in z; sparse where that is worth while."""
        first, second = self.first[: self._n_shared], self.second[: self._n_shared]
        apart = np.where(first == second, 0.0, precision[: self._n_shared])
        if self.noise is None and self.n_items >= LARGE:
            laplacian = csr_array(self.incidence.multiply(apart) @ self.incidence.T)
            return laplacian if few(laplacian) else laplacian.toarray()
        laplacian = np.zeros((self.n_items, self.n_items))
        laplacian[first, second] = -apart
        laplacian += laplacian.T
        laplacian.flat[:: self.n_items + 1] = -laplacian.sum(axis=1)
        if self.noise is not None:
            for block, joint in self._joint_precision(precision):
                laplacian += self._pulled_back(block, joint)
        return laplacian

    def _joint_precision(self, precision):
        """Of z by joint answers, all times each was given."""
        if np.isinf(precision).any():
            return self.noise.known()
        seen = self.noise.seen(precision, np.zeros(self.n_margins))
        return ((each.block, each.block.counts[:, None, None] * each.precision) for each in seen)

    def _pulled_back(self, block, joint):
        """Aᵀ P A."""
        first, second = self.first[block.margin], self.second[block.margin]
        code, value, n = [], [], self.n_items
        for one, sign in ((first, 1.0), (second, -1.0)):
            for other, turn in ((first, 1.0), (second, -1.0)):
                code.append((one[:, :, None] * n + other[:, None, :]).ravel())
                value.append((sign * turn * joint).ravel())
        return np.bincount(np.concatenate(code), np.concatenate(value), n**2).reshape(n, n)

    def centre(self, precision, shift):
        """Mean and dual alone of `condition`, which are quicker."""
        return self._centre(self._utilities(precision), precision, shift)

    def _centre(self, utilities, precision, shift):
        if self.noise is not None:
            seen = list(self.noise.seen(precision, shift))
            return self._noisy_centre(seen, utilities, precision, shift)
        mean = self.difference(utilities.times(self.incidence @ shift))
        return mean, shift - (precision if shift.ndim == 1 else precision[:, None]) * mean

    def condition(self, precision, shift):
        utilities = self._utilities(precision)
        if self.noise is not None:
            return self._with_noise(precision, shift, utilities)
        mean, dual = self._centre(utilities, precision, shift)
        return Conditioned(mean, self._spread(utilities), dual, utilities.log_det, utilities)

    def shifted(self, conditioned, precision, shift):
        """`condition` on sites of the same, finite precision: without a factorisation."""
        mean, dual = self._centre(conditioned.root, precision, shift)
        return conditioned._replace(mean=mean, dual=dual)

    def _spread(self, utilities):
        return floor_variance(utilities.spread(self.first, self.second), 0.0)

    def _with_noise(self, precision, shift, utilities):
        if np.isinf(precision).any():
            return self._given(precision, shift, utilities)
        seen = list(self.noise.seen(precision, shift))
        mean, dual = self._noisy_centre(seen, utilities, precision, shift)
        variance, log_det = self._spread(utilities), utilities.log_det
        for each in seen:
            at = each.block.margin
            among = among_pairs(utilities.covariance, self.first[at], self.second[at])
            variance[at] = np.einsum("bii->bi", each.left) + np.einsum(
                "bij,bjk,bik->bi", each.gain, among, each.gain
            )
            log_det += float(each.block.counts @ each.log_det)
        return Conditioned(mean, floor_variance(variance, 0.0), dual, log_det, utilities)

    def _pull(self, precision, shift, seen=None):
        """The sites' shift in z: of joint answers by all times each was given."""
        pull = shift if self.noise is None else shift.copy()
        if self.noise is not None and np.isinf(precision).any():
            for block, joint in self.noise.known():
                pull[block.margin] = np.einsum("bij,bj...->bi...", joint, shift[block.margin])
        elif self.noise is not None:
            for each in self.noise.seen(precision, shift) if seen is None else seen:
                pull[each.block.margin] = each.block.counts[:, None] * each.shift
        return pull

    def _noisy_centre(self, seen, utilities, precision, shift):
        pull = self._pull(precision, shift, seen)
        mean = self.difference(utilities.times(self.incidence @ pull))
        for each in seen:
            at = each.block.margin
            noisy = mean[at] + np.einsum("bij,bj->bi", each.noise, shift[at])
            mean[at] = np.einsum("bij,bj->bi", each.gain, noisy)
        dual = shift - precision * mean
        for block in self.noise.blocks:
            dual[block.margin] *= block.counts[:, None]
        return mean, dual

    def _given(self, precision, shift, utilities):
        """Margins of joint answers are known, the others seen through their sites."""
        finite = np.where(np.isinf(precision), 0.0, precision)
        wide = finite if shift.ndim == 1 else finite[:, None]
        pull = self._pull(precision, shift)
        mean = self.difference(utilities.times(self.incidence @ pull))
        dual = pull - wide * mean
        for block, joint in self.noise.known():
            at = block.margin
            dual[at] = pull[at] - np.einsum("bij,bj...->bi...", joint, mean[at])
            mean[at] = shift[at]
        variance = np.where(np.isinf(precision), 0.0, self._spread(utilities))
        return Conditioned(mean, variance, dual, utilities.log_det, utilities)

    def gain(self, conditioned, precision, shift):
        """D, by which the posterior covariance is K − K D Dᵀ K, and the weights of the items."""
        pull = self.incidence @ columns(self._pull(precision, shift))
        return root_gain(self.K, self._laplacian(precision), pull)

    def gram(self, conditioned, precision):
        """D Dᵀ."""
        laplacian = self._laplacian(precision)
        if self.n_items >= LARGE and self.prior_variance @ precision < _LOSSY * len(precision):
            # L Σ L; of Σ the transpose, which is it as well, stands in memory by rows.
            gain = laplacian @ (laplacian @ conditioned.root.covariance.T).T
            whole = laplacian.toarray() if issparse(laplacian) else laplacian
            return whole - 0.5 * (gain + gain.T)
        D = self.gain(conditioned, precision, np.zeros_like(precision)).factor
        return D @ D.T

    def gain_times(self, conditioned, precision, vector):
        """R S vector with R = τ − τ A Σ Aᵀ τ."""
        margin = self.prior_times(vector)
        utility = conditioned.root.times(self.incidence @ (precision * margin))
        return precision * (margin - self.difference(utility))

    def noise_slope(self, conditioned, precision):
        """d log Z / dσ² by the noise of joint answers, of one item."""
        covariance = conditioned.root.covariance
        dual, gains = conditioned.dual.copy(), []
        for each in self.noise.seen(precision, np.zeros(self.n_margins)):
            P, at = each.precision, each.block.margin
            spread = among_pairs(covariance, self.first[at], self.second[at])
            gains.append((each.block, P - P @ spread @ P))
            dual[at] /= each.block.counts[:, None]
        return self.noise.slope(dual, gains)


def _scale(precision):
    """Root of the precision, 1 where that is infinite."""
    return np.where(np.isinf(precision), 1.0, np.sqrt(precision))


def gaussian_space(K, margins, item_noise=None, strongest=0.0):
    """The cheaper of `MarginSpace` and `ItemSpace` for these margins.

    Of answers that are nearly without noise and go round in circles the latter: their margins'
    covariance is singular, which only the noise mends.

    Parameters
    ----------
    K : ndarray of shape (n_items, n_items)
    margins : Margins
    item_noise : float, optional
        σ² of one item at one presentation, needed where there are joint answers.
    strongest : float
        Precision with which a margin may be observed, at most.
    """
    noise = JointNoise(margins, item_noise) if margins.blocks else None
    by_margins = cheaper_by_margins(len(margins.first), len(K))
    by_margins &= noise is None or not noise.counted
    if by_margins and noise is None and strongest * np.max(np.diagonal(K), initial=0.0) > STRONG:
        by_margins = not has_circles(margins.first, margins.second, len(K))
    return MarginSpace(K, margins, noise) if by_margins else ItemSpace(K, margins, noise)


def condition(kernel, items, space, approximation, likelihood):
    """The GP given an engine's sites, as a frozen `Posterior`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    items : ndarray of shape (n_items, n_features)
        The distinct items that ``space`` was built on.
    space : MarginSpace, ItemSpace or InducedSpace
    approximation : Approximation
        Its ``sites`` and the marginals ``conditioned`` on them.
    likelihood : Likelihood
    """
    anchors, weights, factor, utilities = space.represented(items, approximation)
    return Posterior(kernel, likelihood, anchors, weights, factor, utilities=utilities)
