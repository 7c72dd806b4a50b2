"""Exact priors on all margins or all items: the only place that factorises.

Margins are z = A f with f ~ N(0, K); sites are Gaussian pseudo-observations of z, of joint answers
of several margins at once. The same posterior is reached by all margins (matrices of the size of
the number of distinct margins) or by all items (matrices of the size of the number of distinct
items).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import (
    UNIT,
    Array,
    NoCovarianceError,
    floor_variance,
    inverse_blocks,
    inverse_cholesky,
    is_covariance,
    semidefinite_root,
)
from skpref.data import Comparisons, Margins
from skpref.gp._by_vector import ByVector
from skpref.gp._measured import UtilitiesGivenValues
from skpref.gp._posterior import MOST, Posterior
from skpref.gp._prior import (
    EXACT,
    HELD,
    Cost,
    Marginals,
    MarginErrors,
    Prior,
    check_finite,
    check_means,
)
from skpref.gp._shared_noise import JointNoise, SitePrecision, among_pairs
from skpref.gp._utilities import (
    LARGE,
    STRONG,
    ByRoot,
    Gain,
    Utilities,
    as_columns,
    cubic_work,
    has_circles,
    is_cheaper_by_margins,
    is_sparse,
    item_solver,
    root_gain,
)
from skpref.kernels import kernel_values, kernel_with_gradient, surely_covariance
from skpref.likelihoods import Likelihood

# Where precision × prior variance is below this, 1 − diag(B⁻¹) has lost digits.
_WEAK = 1e-3
# Precision × prior variance, on the average, up to which L − L Σ L keeps its digits.
_LOSSY = 1e4


class Dense(Prior):
    """Hold what both exact priors share: the items' covariance, and the incidence in margins.

    Parameters
    ----------
    K : ndarray of shape (n_items, n_items)
    margins : Margins
    noise : JointNoise, optional
        Needed where there are joint answers.
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        That ``K`` is of, and its ``items``; for `pull_back` and `posterior`.
    items : ndarray of shape (n_items, n_features), optional
    contract : callable, optional
        Derivatives in the kernel's theta of Σ weight × K, see `kernel_with_gradient`.
    """

    takes_joint: ClassVar[bool] = True
    takes_measured: ClassVar[bool] = True
    _values: UtilitiesGivenValues | None = None

    def __init__(
        self,
        K: Array,
        margins: Margins,
        noise: JointNoise | None = None,
        kernel: Kernel | None = None,
        items: Array | None = None,
        contract: Callable[[Array], Array] | None = None,
    ):
        self.K, self.noise = K, noise
        self._contract = contract
        if kernel is not None and items is not None:
            self.kernel, self.items = kernel, items
        self.first, self.second = margins.first, margins.second
        self.n_items, self.n_margins = len(K), len(margins.first)
        ends = np.concatenate([self.first, self.second])
        column = np.tile(np.arange(self.n_margins), 2)
        signs = np.repeat([1.0, -1.0], self.n_margins)
        shape = (self.n_items, self.n_margins)
        self.incidence = csr_array((signs, (ends, column)), shape=shape)  # Aᵀ

    @classmethod
    def from_comparisons(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Self:
        """See `Prior.from_comparisons`."""
        items, margins, contract = comparisons.items, comparisons.rows.margins, None
        if gradient and len(kernel.theta):
            K, contract = kernel_with_gradient(kernel, items)
        else:
            K = kernel_values(kernel, items)
        check_finite(kernel, K)
        item_noise = likelihood.item_noise
        noise = None
        if margins.blocks and item_noise is not None:
            noise = JointNoise(margins, item_noise)
        if comparisons.measured is None:
            return cls(K, margins, noise, kernel, items, contract)
        values = UtilitiesGivenValues(K, comparisons.measured)
        prior = cls(values.covariance, margins, noise, kernel, items, contract)
        prior._values, prior.utility_mean = values, values.mean
        prior.log_density_of_values = values.log_density
        return prior

    def on_duels(self, margins: Margins) -> "Dense":
        """See `Prior.on_duels`."""
        kind = (
            DenseMargins if is_cheaper_by_margins(len(margins.first), len(self.K)) else DenseItems
        )
        prior = kind(self.K, margins)
        prior._values, prior.utility_mean = self._values, self.utility_mean
        return prior

    def difference(self, utility: Array) -> Array:
        """Compute A f, the differences of utilities that margins are."""
        return utility[self.first] - utility[self.second]

    def times(self, vector: Array) -> Array:
        """Compute S vector, see `Prior.times`."""
        return self.difference(self.K @ (self.incidence @ vector))

    def covariance(self) -> Array:
        """Compute S = A K Aᵀ, see `Prior.covariance`."""
        from_first, from_second = self.K[self.first], self.K[self.second]
        S: Array = from_first[:, self.first]
        S -= from_first[:, self.second]
        S -= from_second[:, self.first]
        S += from_second[:, self.second]
        return S

    def root(self) -> Array:
        """Compute a root of S, by that of K where it is smaller."""
        if self.n_items < self.n_margins:
            return self.difference(semidefinite_root(self.K))
        return super().root()

    @abstractmethod
    def gain(self, marginals: Marginals, precision: Array, shift: Array) -> Gain:
        """Compute D with posterior covariance K − K D Dᵀ K, and the weights of the items."""

    @abstractmethod
    def gram(self, marginals: Marginals, precision: Array) -> Array:
        """Compute the Gram matrix D Dᵀ of the factor D that `gain` returns."""

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`: α = Aᵀ w, β = Aᵀ u, and AᵀRA = D Dᵀ."""
        if not len(self.kernel.theta):
            return np.zeros(0)
        alpha, values = self.incidence @ marginals.dual, self._values
        gram = self.gram(marginals, precision)
        if values is not None:
            alpha, gram = values.weights(alpha), values.gram(gram)
        if push is None:
            weight = np.multiply.outer(alpha, alpha)
        else:
            beta = self.incidence @ push
            beta = beta if values is None else values.transposed_times(beta)
            weight = np.stack([alpha, beta], axis=1) @ np.stack([alpha + beta, alpha])
        weight -= gram
        weight *= 0.5
        if self._contract is None:
            self._contract = kernel_with_gradient(self.kernel, self.items)[1]
        return self._contract(weight)

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`."""
        gain, items = self.gain(marginals, sites.precision, sites.shift), self.items
        has_utilities = isinstance(marginals.root, Utilities) and len(items) <= MOST
        utilities = marginals.root if has_utilities else None
        weights, factor, values = gain.weights, gain.factor, self._values
        if values is not None:
            weights, factor = values.weights(weights), values.factor(factor)
        return Posterior(self.kernel, likelihood, items, weights, factor, utilities=utilities)

    # -- rounding ----------------------------------------------------------------------------

    def is_covariance(self) -> bool:
        """See `Prior.is_covariance`."""
        return surely_covariance(self.kernel) or is_covariance(self.K)

    def rounding(self, dual: Array) -> MarginErrors:
        """Estimate the rounding errors by the terms |K| |A|ᵀ |w|, see `Prior.rounding`."""
        unit = UNIT * np.sqrt(self.n_items)
        prior = np.diagonal(self.K)
        reach = np.abs(self.K) @ self._item_weights(dual)
        mean = reach[self.first] + reach[self.second]
        scale = prior[self.first] + prior[self.second]
        return MarginErrors(mean=unit * mean, variance=unit * scale)

    def energy_error(self, dual: Array) -> float:
        """Compute the root of the sum of the squares of its terms, see `Prior.energy_error`."""
        squared = self._item_weights(dual) ** 2
        return 0.5 * UNIT * float(np.sqrt(squared @ (self.K**2 @ squared)))

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """Compare the margins' means with the posterior's, which come about by other sums."""
        mean = marginals.mean if marginals.mean.ndim == 1 else marginals.mean.mean(axis=1)
        variance = marginals.variance + posterior.likelihood.margin_variance
        plain = np.ones(len(mean), dtype=bool)
        if self.noise is not None:
            plain = self.noise.diagonal() == 0.0
        weights, values = posterior.weights.mean(axis=1), self._values
        utility = self.K @ weights if values is None else values.K @ weights - values.mean
        posterior_mean = self.difference(utility)
        check_means(posterior_mean[plain], mean[plain], variance[plain])

    def _item_weights(self, dual):
        """Return the sum over each item's margins of absolute dual weights."""
        return abs(self.incidence) @ np.abs(dual)


class DenseMargins(Dense):
    """The prior on p distinct margins by their (p, p) covariance S = A K Aᵀ."""

    starts_at_mode: ClassVar[bool] = False

    def __init__(self, K, margins, noise=None, kernel=None, items=None, contract=None):
        super().__init__(K, margins, noise, kernel, items, contract)
        self.S = super().covariance()
        self.variance = floor_variance(np.diagonal(self.S), 0.0)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; infinite where the margins' covariance is singular up to noise."""
        margins, n_items = comparisons.rows.margins, len(comparisons.items)
        side = float(len(margins.first))
        multiplications = 2.0 / 3.0 * side**3
        if margins.blocks and JointNoise(margins, 1.0).counted:
            multiplications = np.inf
        elif (
            kernel is not None and not margins.blocks and is_cheaper_by_margins(int(side), n_items)
        ):
            # Answers nearly without noise that go round in circles: only the noise mends that.
            largest = float(np.max(kernel.diag(comparisons.items), initial=0.0))
            strongest = float(comparisons.rows.counts.max(initial=0.0)) / likelihood.margin_variance
            if strongest * largest > STRONG and has_circles(margins.first, margins.second, n_items):
                multiplications = np.inf
        return Cost(multiplications, side, 8.0 * HELD * max(side, float(n_items)) ** 2)

    def covariance(self) -> Array:
        """Return S, see `Prior.covariance`."""
        return self.S

    def condition(self, precision, shift):
        if isinstance(precision, SitePrecision):
            return self._condition_on_joint(precision, shift)
        if np.isinf(precision).any():
            return self._condition_on_known(precision, shift)
        root = np.sqrt(precision)
        B = self.S * root
        B *= root[:, None]
        B.flat[:: len(B) + 1] += 1.0
        inverse, log_det = inverse_cholesky(B.T)
        dual = self._dual(inverse, precision, shift)
        # diag(B⁻¹) = 1 − τ × posterior variance
        inverse_diagonal = np.einsum("ij,ij->j", inverse, inverse)
        variance = (1.0 - inverse_diagonal) / np.where(precision > 0.0, precision, 1.0)
        weak = np.flatnonzero(precision * self.variance < _WEAK)
        if len(weak):
            half = inverse @ (root[:, None] * self.S[:, weak])
            variance[weak] = self.variance[weak] - np.einsum("ij,ij->j", half, half)
        return Marginals(self.S @ dual, floor_variance(variance, 0.0), dual, log_det, inverse)

    def _dual(self, inverse, precision, shift):
        """Return the dual weights of margins given sites, from the inverse of the factor of B."""
        wide = (lambda x: x) if shift.ndim == 1 else (lambda x: x[:, None])
        root, strong = np.sqrt(precision), precision > 0.0
        # w = τ^½ B⁻¹ (target τ^½): no difference of large numbers
        if strong.all():
            return wide(root) * (inverse.T @ (inverse @ (shift / wide(root))))
        rest = np.where(wide(strong), 0.0, shift)
        scaled = (shift - rest) / wide(np.where(strong, root, 1.0))
        scaled -= wide(root) * (self.S @ rest)
        return rest + wide(root) * (inverse.T @ (inverse @ scaled))

    def _condition_on_joint(self, precision, shift):
        """Condition on joint answers by B = I + Rᵀ S R, with R the root of the sites' precision."""
        pulled = precision.root_transposed_times(self.S)
        B = precision.root_transposed_times(pulled.T)
        B.flat[:: len(B) + 1] += 1.0
        inverse, log_det = inverse_cholesky(B.T)
        of_joint = np.zeros(self.n_margins, dtype=bool)
        for block in precision.blocks:
            of_joint[block.margin] = True
        # w = R B⁻¹ R⁻¹ shift: no difference of large numbers
        rest = np.where(of_joint | (precision.single > 0.0), 0.0, shift)
        scaled = precision.root_solved(shift - rest) - pulled @ rest
        dual = rest + precision.root_times(inverse.T @ (inverse @ scaled))
        variance, joint = self._site_variances(precision, pulled, inverse, of_joint)
        return Marginals(self.S @ dual, variance, dual, log_det, inverse, joint)

    def _site_variances(self, precision, pulled, inverse, of_joint):
        """Compute variances, and covariances among the margins of each joint answer."""
        variance, joint = np.empty(self.n_margins), []
        strength = precision.single * self.variance
        single = np.flatnonzero(~of_joint & (strength >= _WEAK))
        inverse_diagonal = np.einsum("ij,ij->j", inverse[:, single], inverse[:, single])
        variance[single] = (1.0 - inverse_diagonal) / precision.single[single]
        weak = np.flatnonzero(~of_joint & (strength < _WEAK))
        half = inverse @ pulled[:, weak]
        variance[weak] = self.variance[weak] - np.einsum("ij,ij->j", half, half)
        for block, root in zip(precision.blocks, precision.roots, strict=True):
            at = block.margin
            part = np.moveaxis(inverse[:, at], 1, 0)
            scaled_covariance = np.eye(at.shape[1]) - np.swapaxes(part, 1, 2) @ part
            # Rᵀ Σ R = I − B⁻¹; where R is weak, digits would be lost.
            inner = inverse_blocks(root)[0]
            span = np.einsum("bij,bij->b", inner, inner)
            weak = np.flatnonzero(~(span * _WEAK < self.variance[at].max(axis=1)))
            spread = np.swapaxes(inner, 1, 2) @ scaled_covariance @ inner
            if len(weak):
                rows = at[weak]
                half = inverse @ pulled[:, rows.ravel()]
                half = np.moveaxis(half.reshape(len(half), *rows.shape), 1, 0)
                before = self.S[rows[:, :, None], rows[:, None, :]]
                spread[weak] = before - np.swapaxes(half, 1, 2) @ half
            variance[at] = np.einsum("bii->bi", spread)
            joint.append(spread)
        return floor_variance(variance, 0.0), tuple(joint)

    def condition_on_shift(self, marginals, precision, shift):
        """Condition on sites of the same, finite precision: without a factorisation."""
        if isinstance(precision, SitePrecision):
            return self.condition(precision, shift)
        dual = self._dual(marginals.root, precision, shift)
        return marginals._replace(mean=self.S @ dual, dual=dual)

    def centre(self, precision, shift):
        """Compute mean and dual alone of `condition`."""
        marginals = self.condition(precision, shift)
        return marginals.mean, marginals.dual

    def _condition_on_known(self, precision, shift):
        """Condition with margins of joint answers known, the others seen through their sites."""
        is_exact = np.isinf(precision)
        follows = np.zeros(len(is_exact), dtype=bool)
        for block in self._shared.blocks:
            follows[block.margin[~block.basis]] = True
        used = np.flatnonzero((is_exact & ~follows) | (~is_exact & (precision > 0.0)))
        spread = np.where(is_exact[used], 0.0, 1.0 / precision[used])
        noisy = self.S.copy()
        self._shared.add_to(noisy)
        C = noisy[np.ix_(used, used)]
        C.flat[:: len(C) + 1] += spread
        inverse, log_det = inverse_cholesky(C.T)
        mask = is_exact[used] if shift.ndim == 1 else is_exact[used][:, None]
        wide = spread if shift.ndim == 1 else spread[:, None]
        target = np.where(mask, shift[used], shift[used] * wide)
        dual, root = np.zeros(shift.shape), np.zeros((len(used), len(is_exact)))
        dual[used] = inverse.T @ (inverse @ target)
        root[:, used] = inverse
        variance = self.variance - np.einsum("ij,ij->j", *[root @ self.S] * 2)
        variance = floor_variance(np.where(is_exact, 0.0, variance), 0.0)
        root /= _scale(precision)
        return Marginals(noisy @ dual, variance, dual, log_det, root)

    def gain(self, marginals, precision, shift):
        """Compute D with posterior covariance K − K D Dᵀ K, and the weights of the items."""
        factor = self.incidence @ root_times(precision, marginals.root.T)
        return Gain(factor, self.incidence @ as_columns(marginals.dual))

    def gram(self, marginals, precision):
        """Compute the Gram matrix D Dᵀ of the factor D that `gain` returns."""
        half = root_times(precision, marginals.root.T)
        return self.incidence @ (self.incidence @ (half @ half.T)).T


class DenseItems(ByVector, Dense):
    """The prior on n items by a root of their covariance, or its inverse: see `item_solver`."""

    def __init__(self, K, margins, noise=None, kernel=None, items=None, contract=None):
        super().__init__(K, margins, noise, kernel, items, contract)
        self._solver = item_solver(K)
        self.n_shared = margins.n_shared
        diagonal = np.diagonal(K)
        apart = diagonal[self.first] + diagonal[self.second]
        self.variance = floor_variance(apart - 2.0 * K[self.first, self.second], 0.0)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`."""
        side = float(len(comparisons.items))
        return Cost(cubic_work(side), side, 8.0 * HELD * side**2)

    def margin_values(self, vector: Array) -> Array:
        """Compute A f, the differences of utilities that margins are."""
        return self.difference(vector)

    def transposed_times(self, values: Array) -> Array:
        """Compute Aᵀ times values of the margins."""
        sums: Array = self.incidence @ values
        return sums

    def _vector_posterior(self, precision):
        """Return the posterior of the utilities, a `Vector`, given sites of this precision."""
        laplacian = self._laplacian(precision)
        try:
            return self._solver.condition(laplacian)
        except NoCovarianceError:
            self._solver = ByRoot(self.K)  # slower, without K's inverse
            return self._solver.condition(laplacian)

    def _laplacian(self, precision):
        """Compute Aᵀ T A with T the sites' precision in z; sparse where that is worth while."""
        first, second = self.first[: self.n_shared], self.second[: self.n_shared]
        single = precision.single if isinstance(precision, SitePrecision) else precision
        apart = np.where(first == second, 0.0, single[: self.n_shared])
        if self.noise is None and self.n_items >= LARGE:
            laplacian = csr_array(self.incidence.multiply(apart) @ self.incidence.T)
            return laplacian if is_sparse(laplacian) else laplacian.toarray()
        laplacian = np.zeros((self.n_items, self.n_items))
        laplacian[first, second] = -apart
        laplacian += laplacian.T
        laplacian.flat[:: self.n_items + 1] = -laplacian.sum(axis=1)
        if self.noise is not None:
            for block, joint in self._joint_precision(precision):
                laplacian += self._pulled_back(block, joint)
        return laplacian

    def _pulled_back(self, block, joint):
        """Compute Aᵀ P A."""
        first, second = self.first[block.margin], self.second[block.margin]
        code, value, n = [], [], self.n_items
        for one, sign in ((first, 1.0), (second, -1.0)):
            for other, turn in ((first, 1.0), (second, -1.0)):
                code.append((one[:, :, None] * n + other[:, None, :]).ravel())
                value.append((sign * turn * joint).ravel())
        return np.bincount(np.concatenate(code), np.concatenate(value), n**2).reshape(n, n)

    def _margin_variances(self, vector):
        return floor_variance(vector.difference_variances(self.first, self.second), 0.0)

    def _joint_covariances(self, vector, at):
        return among_pairs(vector.covariance, self.first[at], self.second[at])

    def gain(self, marginals, precision, shift):
        """Compute D with posterior covariance K − K D Dᵀ K, and the weights of the items."""
        pull = self.incidence @ as_columns(self._shift_at_margins(precision, shift))
        return root_gain(self.K, self._laplacian(precision), pull)

    def gram(self, marginals, precision):
        """Compute the Gram matrix D Dᵀ of the factor D that `gain` returns."""
        laplacian = self._laplacian(precision)
        strength = precision.diagonal if isinstance(precision, SitePrecision) else precision
        if self.n_items >= LARGE and self.variance @ strength < _LOSSY * len(strength):
            # L Σ L; of Σ the transpose, which is it as well, stands in memory by rows.
            gain = laplacian @ (laplacian @ marginals.root.covariance.T).T
            whole = laplacian.toarray() if issparse(laplacian) else laplacian
            return whole - 0.5 * (gain + gain.T)
        D = self.gain(marginals, precision, np.zeros(self.n_margins)).factor
        return D @ D.T


def _scale(precision):
    """Compute the root of the precision, 1 where that is infinite."""
    return np.where(np.isinf(precision), 1.0, np.sqrt(precision))


def root_times(precision, matrix):
    """Compute the root of the precision times the rows of a matrix."""
    if isinstance(precision, SitePrecision):
        return precision.root_times(matrix)
    return _scale(precision)[:, None] * matrix


EXACT += [DenseMargins, DenseItems]
