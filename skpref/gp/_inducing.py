"""The prior carried by inducing points: margins by features of as many columns as there are points.

With K_ZZ = L Lᵀ the utilities of the points are u = L w, w ~ N(0, I), and f(x) = φ(x)ᵀ w + a rest
that is independent of w, φ(x) = L⁻¹ k(Z, x). A Gaussian q(w) then gives the mean and the variance
of every margin's part in φ, at a cost that grows with the number of points squared, and linearly
with all else. The rest of a margin is taken for independent noise (the fully independent
conditional prior, FITC); a variational treatment of it, as a part of the margin that q leaves at
its prior, takes answers that the points cannot explain for surprises, and is sure of errors.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from skpref._utils import (
    BLOCK,
    NEGLIGIBLE,
    UNIT,
    Array,
    NoCovarianceError,
    RandomLike,
    floor_variance,
    inverse_cholesky,
    is_covariance,
    pivoted_cholesky,
    row_blocks,
    seed_of,
    semidefinite_root,
    warn,
)
from skpref.data import Comparisons, distinct_rows
from skpref.gp._default_kernel import feature_spread
from skpref.gp._finite_rank import SAMPLE, spanning_items, spanning_rows
from skpref.gp._posterior import Posterior
from skpref.gp._prior import (
    NOTICED,
    Cost,
    Marginals,
    MarginMoments,
    Prior,
    PriorRule,
    check_finite,
    raise_lost_digits,
)
from skpref.kernels import (
    PAIRED_ROWS,
    Kernel,
    across,
    contracted_input_gradient,
    far_origin,
    finite_features,
    finite_parts,
    kernel_values,
    kernel_with_gradient,
    seen_columns,
    surely_covariance,
)
from skpref.likelihoods import Likelihood

# Added to the diagonal of K_ZZ, as a share of it: points may all but coincide.
_JITTER = 1e-9
# Mean variance of the points' utilities over that of their differences from the first, from which
# on these differences are whitened. With 1e4 the jitter of a level moved probabilities by .005.
_LEVEL = 100.0


class Weights(NamedTuple):
    """Hold q(w) in natural parameters: precision I + ``gain``, precision times mean ``shift``.

    Attributes
    ----------
    gain : ndarray of shape (m, m)
        What the answers add to the precision: positive semi-definite.
    shift : ndarray of shape (m,)
    """

    gain: Array
    shift: Array

    def step_towards(self, other: "Weights", share: float) -> "Weights":
        """Step along the line to others; a natural-gradient step if they are a fixed point's."""
        if share == 1.0:
            return other
        both = zip(self, other, strict=True)
        return Weights(*((1.0 - share) * one + share * two for one, two in both))

    def scaled(self, factor: float) -> "Weights":
        """Return the weights as if every answer had been given so many times."""
        return Weights(factor * self.gain, factor * self.shift)

    def plus(self, other: "Weights") -> "Weights":
        """Return the weights of both sets of answers."""
        return Weights(self.gain + other.gain, self.shift + other.shift)

    def expected_log_factor(self, at: "Moments") -> float:
        """Compute E_q[log of the factor that these are], over the factor's mean under the prior."""
        factor_moments = moments(self)
        mean, half = at.mean, at.root @ self.gain
        inner = float(np.vdot(half, at.root)) + float(mean @ self.gain @ mean)
        # log E_prior[exp(shiftᵀ w − ½ wᵀ gain w)]
        total = 0.5 * float(self.shift @ factor_moments.mean) - 0.5 * factor_moments.log_det
        return float(self.shift @ mean) - 0.5 * inner - total

    def append_points(self, m: int) -> "Weights":
        """Return the weights with further points at the end, about which there is no answer yet."""
        more = m - len(self.shift)
        return Weights(np.pad(self.gain, (0, more)), np.pad(self.shift, (0, more)))


class Moments(NamedTuple):
    """Hold q(w) as mean and root of its covariance, S = ``root``ᵀ ``root``.

    ``divergence`` is the Kullback–Leibler divergence of q from that prior, ``log_det`` the
    log-determinant of q's precision.
    """

    mean: Array
    root: Array
    divergence: float
    log_det: float


def moments(weights: Weights) -> Moments:
    """Compute the moments of q(w)."""
    precision = weights.gain.copy()
    precision.flat[:: len(precision) + 1] += 1.0
    root, log_det = inverse_cholesky(precision.T)
    mean = root.T @ (root @ weights.shift)
    spread = float(np.vdot(root, root)) - len(mean)
    return Moments(mean, root, 0.5 * (spread + float(mean @ mean) + log_det), log_det)


class Pull(NamedTuple):
    """Hold the slopes of the bound in each margin's moments and the variance of its rest, at q."""

    by_mean: Array
    by_variance: Array
    by_rest: Array
    at: Moments

    def divide_prior_variance(self, factor: float) -> "Pull":
        """Return the slopes for margins whose prior variance is divided by a factor."""
        by_mean = np.sqrt(factor) * self.by_mean
        return Pull(by_mean, factor * self.by_variance, factor * self.by_rest, self.at)


def whitening(K: Array, jitter: float = _JITTER) -> Array:
    """Compute L⁻¹ with L Lᵀ = K, the covariance of inducing points."""
    lifted = K.copy()
    lifted.flat[:: len(K) + 1] += jitter * np.mean(np.diagonal(K))
    return inverse_cholesky(lifted.T)[0]


def _whitening(kernel: Kernel, Z: Array, K: Array) -> tuple[Array, float]:
    """Compute `whitening`, and what it added as a share of the diagonal.

    Nothing, where the kernel has few features and no point's are all but those of the others:
    points that span them then leave nothing of an item open.
    """
    if finite_features(kernel, Z.shape[1]) is not None:
        with suppress(NoCovarianceError):
            inverse = inverse_cholesky(K.T)[0]
            if np.all(np.diagonal(inverse) ** 2 * np.diagonal(K) < 1.0 / NEGLIGIBLE):
                return inverse, 0.0
    return whitening(K), _JITTER


def _whiten_for_margins(kernel: Kernel, Z: Array, K: Array) -> tuple[Array, float]:
    """Compute `_whitening` for features of which margins alone count.

    Utilities whose common level would drown their differences, as a polynomial's does far from
    zero, are taken less the first point's: margins do not see the level. What is added does not
    count as a share of the diagonal then.
    """
    inverse, jitter = _whitening(kernel, Z, K)
    apart = K - K[0] - K[:, :1] + K[0, 0]
    level, spread = np.mean(np.diagonal(K)), np.mean(np.diagonal(apart))
    if jitter == 0.0 or not level > _LEVEL * spread > 0.0:
        return inverse, jitter
    apart[0, 0] = spread  # a feature that no margin has
    inverse = whitening(apart, max(_JITTER, _lost(K) / spread))
    inverse[:, 0] = -inverse[:, 1:].sum(axis=1)
    return inverse, 0.0


def _lost(K: Array) -> float:
    """Compute the variance that rounding errors of a covariance matrix may have or hide."""
    return UNIT * len(K) * float(np.mean(np.diagonal(K)))


def _features_at(kernel: Kernel, items: Array, Z: Array) -> Array:
    """Compute the features φ of items, from which their utilities and not only margins follow."""
    features: Array = (
        kernel_values(kernel, items, Z) @ _whitening(kernel, Z, kernel_values(kernel, Z))[0].T
    )
    return features


def unexplained(kernel: Kernel, items: Array, Z: Array) -> Array:
    """Compute the covariance of the items' utilities given those of the points."""
    phi = _features_at(kernel, items, Z)
    return kernel_values(kernel, items) - phi @ phi.T


def unexplained_share(kernel: Kernel, items: Array, Z: Array) -> Array:
    """Compute the residual share of the items' prior variances given the points' utilities."""
    phi = _features_at(kernel, items, Z)
    prior = kernel.diag(items)
    return 1.0 - np.einsum("ij,ij->i", phi, phi) / np.where(prior > 0.0, prior, 1.0)


def transfer_weights(
    weights: Weights, earlier: tuple[Kernel, Array], later: tuple[Kernel, Array]
) -> Weights:
    """Carry the answers' weights from some points to others, perhaps under another kernel.

    The factor on the old points' utilities, with these replaced by their means given those of the
    new ones (Bui et al., "Streaming sparse Gaussian process approximations", 2017). The residual
    variances under the new points add only a constant to its expected logarithm.

    Parameters
    ----------
    weights : Weights
    earlier, later : tuple
        Kernel and points.
    """
    (kernel, Z), (kernel_now, Z_now) = earlier, later
    before_whiten = _whiten_for_margins(kernel, Z, kernel_values(kernel, Z))[0]
    whiten = _whiten_for_margins(kernel_now, Z_now, kernel_values(kernel_now, Z_now))[0]
    turn = before_whiten @ kernel_values(kernel_now, Z, Z_now) @ whiten.T
    gain = turn.T @ weights.gain @ turn
    return Weights(0.5 * (gain + gain.T), turn.T @ weights.shift)


class Inducing(Prior):
    """The prior on margins between items, by inducing points Z.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    items : ndarray of shape (n_items, n_features)
    margins : Margins
    Z : ndarray of shape (m, n_features)
    like : Inducing, optional
        Of the same kernel and points: what depends on them alone is taken from it.

    Notes
    -----
    S is that of the margins' parts φᵀ w; ``rest``, the FITC residual variance, is noise of the
    answers.
    """

    def __init__(
        self,
        kernel: Kernel,
        items: Array,
        margins,
        Z: Array,
        like: "Inducing | None" = None,
    ):
        self.kernel, self.items, self.Z = kernel, items, Z
        self.K: Array = kernel_values(kernel, Z) if like is None else like.K
        whitened = (
            _whiten_for_margins(kernel, Z, self.K) if like is None else (like.whiten, like.jitter)
        )
        self.whiten: Array = whitened[0]
        self.jitter: float = whitened[1]
        self.first, self.second = margins.first, margins.second
        self.n_items, self.n_margins = len(items), len(margins.first)
        ends = np.concatenate([self.first, self.second])
        column = np.tile(np.arange(self.n_margins), 2)
        signs = np.repeat([1.0, -1.0], self.n_margins)
        self.incidence = csr_array((signs, (ends, column)), shape=(self.n_items, self.n_margins))
        # An item against itself: nothing is left open, and nothing changes that.
        self._alike = self.first == self.second
        # A row of features a margin, or a row an item: whichever are fewer.
        self._by_margins = self.n_margins < self.n_items

    @classmethod
    def from_comparisons(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
        Z: Array | None = None,
    ) -> Self:
        """See `Prior.from_comparisons`; by default with a point for every item."""
        items = comparisons.items
        prior = cls(kernel, items, comparisons.rows.margins, items if Z is None else Z)
        check_finite(kernel, prior.K)
        return prior

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; with a point for every item."""
        return cost_of_points(comparisons, len(comparisons.items))

    @cached_property
    def _rest(self):
        """Compute the FITC residual variance of every margin."""
        return floor_variance(self._prior_variance() - self._squares(self._features), 0.0)

    @cached_property
    def _features(self):
        """Compute φ of the items, or differences of it for the margins."""
        n = self.n_margins if self._by_margins else self.n_items
        features = np.empty((n, len(self.Z)))
        for rows in row_blocks(n, len(self.Z), BLOCK):
            if self._by_margins:
                K = kernel_values(self.kernel, self.items[self.first[rows]], self.Z)
                K = K - kernel_values(self.kernel, self.items[self.second[rows]], self.Z)
            else:
                K = kernel_values(self.kernel, self.items[rows], self.Z)
            np.matmul(K, self.whiten.T, out=features[rows])
        return features

    @property
    def size(self) -> int:
        """Count the bytes of the features, by far the largest of what is kept."""
        return 8 * (self.n_margins if self._by_margins else self.n_items) * len(self.Z)

    def forget(self) -> None:
        """Give the memory of the features back; they are found anew when they are needed."""
        vars(self).pop("_features", None)

    @property
    def rest(self) -> Array:
        """Return the FITC residual variance of every margin, shape (n_margins,)."""
        return self._rest

    @cached_property
    def variance(self) -> Array:  # type: ignore[override] # found when it is asked for
        """Compute the prior variance of every margin's part φᵀ w, shape (n_margins,)."""
        return self._squares(self._features)

    @property
    def margin_features(self) -> Array:
        """Compute φ of every margin, shape (n_margins, m)."""
        features = self._features
        return features if self._by_margins else features[self.first] - features[self.second]

    def _prior_variance(self):
        """Return the prior variance of each margin."""
        diagonal = self.kernel.diag(self.items)
        apart = diagonal[self.first] + diagonal[self.second]
        for rows in row_blocks(self.n_margins, self.items.shape[1], BLOCK):
            ends = self.items[self.first[rows]], self.items[self.second[rows]]
            apart[rows] -= 2.0 * kernel_values(self.kernel, *ends, aligned=True)
        apart[self._alike] = 0.0
        return apart

    def _squares(self, features):
        """Compute the squared norm of the row of every margin."""
        if self._by_margins:
            return np.einsum("ij,ij->i", features, features)
        squares = np.empty(self.n_margins)
        blocks = row_blocks(self.n_margins, features.shape[1])  # which stay in the cache
        first, second = np.empty((2, blocks[0].stop if blocks else 0, features.shape[1]))
        for rows in blocks:
            n = len(squares[rows])
            # "clip" lets numpy write to the buffer itself
            np.take(features, self.first[rows], axis=0, out=first[:n], mode="clip")
            np.take(features, self.second[rows], axis=0, out=second[:n], mode="clip")
            first[:n] -= second[:n]
            squares[rows] = np.einsum("ij,ij->i", first[:n], first[:n])
        return squares

    # -- q(w) and the margins --------------------------------------------------------------

    def times(self, vector: Array) -> Array:
        """See `Prior.times`."""
        pulled = vector if self._by_margins else self.incidence @ vector
        image = self._features @ (self._features.T @ pulled)
        return image if self._by_margins else image[self.first] - image[self.second]

    def condition(self, precision: Array, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        at = moments(self.weights_of_sites(precision, shift))
        mean, variance, _ = self.margin_moments(at)
        return Marginals(mean, variance, shift - precision * mean, at.log_det, at)

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`; the sites' expected logarithm under q is a bound that touches."""
        dual, none = marginals.dual, np.zeros(self.n_margins)
        gradient = self.contract(Pull(dual, -0.5 * precision, none, marginals.root))
        return gradient if push is None else gradient + self._pushed(dual, push)

    def _pushed(self, w, u):
        """Compute uᵀ dS w, as the difference of two quadratic forms of vectors equally long."""
        size = np.linalg.norm(u) / (np.linalg.norm(w) or 1.0)
        if size == 0.0 or not np.any(w):
            return np.zeros(len(self.kernel.theta))
        no, m = np.zeros(self.n_margins), len(self.Z)
        parts = []
        for v in (w + u / size, w - u / size):
            on_items = v if self._by_margins else self.incidence @ v
            at = Moments(self._features.T @ on_items, np.zeros((m, m)), 0.0, 0.0)
            parts.append(self.contract(Pull(v, no, no, at)))
        return 0.5 * size * (parts[0] - parts[1])

    def margin_moments(self, moments_of_weights: Moments) -> MarginMoments:
        """Compute means and variances of the margins under q, see `Prior.under`."""
        mean = self._features @ moments_of_weights.mean
        if not self._by_margins:
            mean = mean[self.first] - mean[self.second]
        return MarginMoments(
            mean, self._squares(self._features @ moments_of_weights.root.T), self._rest
        )

    def margins_of(
        self, several: Sequence[Comparisons], conditioned: Any, likelihood: Likelihood
    ) -> list[MarginMoments]:
        """See `Prior.margins_of`; with what the points leave open of each margin."""
        return [
            Inducing(self.kernel, each.items, each.rows.margins, self.Z, self).margin_moments(
                conditioned.conditioned
            )
            for each in several
        ]

    def weights(self, by_mean: Array, precision: Array, at: Moments) -> Weights:
        """Compute the factor on w that Gaussian sites on the margins make.

        Parameters
        ----------
        by_mean : ndarray of shape (n_margins,)
            Slopes of the expected log-probability in the margins' means under q.
        precision : ndarray of shape (n_margins,)
        at : Moments
            q.
        """
        gain = self._sandwich(precision)
        pulled = by_mean if self._by_margins else self.incidence @ by_mean
        return Weights(gain, self._features.T @ pulled + gain @ at.mean)

    def weights_of_sites(self, precision: Array, shift: Array) -> Weights:
        """Compute the factor on w that sites on the margins make, in natural parameters."""
        pulled = shift if self._by_margins else self.incidence @ shift
        return Weights(self._sandwich(precision), self._features.T @ pulled)

    def scaled(self, kernel: Kernel, factor: float) -> "Inducing":
        """Return this prior under ``kernel``, which is so many times as large as its own."""
        prior, root = copy(self), np.sqrt(factor)
        prior.kernel, prior.K, prior.whiten = kernel, factor * self.K, self.whiten / root
        for name, share in (("_features", root), ("_rest", factor), ("variance", factor)):
            if name in vars(self):
                vars(prior)[name] = share * vars(self)[name]
        return prior

    def _sandwich(self, precision):
        """Compute Σ precision_i φ_i φ_iᵀ over the margins."""
        phi = self._features
        if self._by_margins:
            return phi.T @ (precision[:, None] * phi)
        gain = phi.T @ (self._laplacian(precision) @ phi)
        return 0.5 * (gain + gain.T)

    def _laplacian(self, precision):
        """Compute Aᵀ T A, sparse."""
        scaled = self.incidence.copy()
        scaled.data = scaled.data * precision[scaled.indices]
        return scaled @ self.incidence.T

    # -- what becomes of it ----------------------------------------------------------------

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`: k − k(·, Z) D Dᵀ k(Z, ·).

        Sites are on the margins, or what the answers tell of the weights: a precision (m, m).
        """
        information = Weights(sites.precision, sites.shift)
        if sites.precision.ndim == 1:
            information = self.weights_of_sites(*information)
        root = semidefinite_root(information.gain)
        inner = root.T @ root
        inner.flat[:: len(inner) + 1] += 1.0
        inverse, _ = inverse_cholesky(inner.T)
        weights = self.whiten.T @ moments(information).mean
        # I − (I + B Bᵀ)⁻¹ = B (I + Bᵀ B)⁻¹ Bᵀ
        factor = self.whiten.T @ (root @ inverse.T)
        return Posterior(self.kernel, likelihood, self.Z, weights[:, None], factor)

    def is_covariance(self) -> bool:
        """See `Prior.is_covariance`."""
        return surely_covariance(self.kernel) or is_covariance(self.K)

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """See `Prior.check_digits`; by what rounding hides beside a noisy duel."""
        noisy = float(np.mean(self._prior_variance())) + posterior.likelihood.margin_variance
        if _lost(self.K) > NOTICED * noisy:
            raise_lost_digits()

    def contract(self, pull: Pull) -> Array:
        """Compute the bound's derivatives in the kernel's theta, at fixed q of the utilities."""
        gradient = kernel_with_gradient(self.kernel, self.Z)[1](self._on_points(pull))
        for items, weight in self._on_items(pull):
            gradient = gradient + across(self.kernel, items, self.Z)[1](weight)
        return gradient + self._prior_slope(pull.by_rest)

    def by_points(self, pull: Pull) -> Array:
        """Compute the bound's derivatives in the points, (m, n_features), at fixed q."""
        inner = self._on_points(pull)
        gradient = 2.0 * contracted_input_gradient(self.kernel, self.Z, self.Z, inner)
        for items, weight in self._on_items(pull):
            gradient += contracted_input_gradient(self.kernel, self.Z, items, weight.T)
        return gradient

    def _on_points(self, pull):
        """Compute the bound's derivatives in k(Z, Z)."""
        mean, S = pull.at.mean, pull.at.root.T @ pull.at.root
        H, H_rest = self._sandwich(pull.by_variance), self._sandwich(pull.by_rest)
        pulled = pull.by_mean if self._by_margins else self.incidence @ pull.by_mean
        pulled = self._features.T @ pulled
        inner = -np.outer(pulled, mean) + H_rest - 2.0 * (S @ H)
        inner = 0.5 * (inner + inner.T) + 0.5 * (S + np.outer(mean, mean) - np.eye(len(S)))
        weight = self.whiten.T @ inner @ self.whiten
        weight.flat[:: len(weight) + 1] += self.jitter * np.mean(np.diagonal(weight))
        return weight

    def _on_items(self, pull):
        """Yield items in blocks, and the bound's derivatives in their k(items, Z)."""
        mean, S = pull.at.mean, pull.at.root.T @ pull.at.root
        dual, spread = self.whiten.T @ mean, 2.0 * (S @ self.whiten)
        sides: tuple[tuple[Array, float], ...]
        if self._by_margins:
            level, variance_slope = pull.by_mean, pull.by_variance[:, None] * self._features
            rest_slope = pull.by_rest[:, None] * self._features
            sides = ((self.items[self.first], 1.0), (self.items[self.second], -1.0))
        else:
            level = self.incidence @ pull.by_mean
            variance_slope = self._laplacian(pull.by_variance) @ self._features
            rest_slope = self._laplacian(pull.by_rest) @ self._features
            sides = ((self.items, 1.0),)
        for items, sign in sides:
            for rows in row_blocks(len(items), 4 * len(S), BLOCK):
                weight = np.outer(level[rows], dual) + variance_slope[rows] @ spread
                weight -= rest_slope[rows] @ (2.0 * self.whiten)
                yield items[rows], sign * weight

    def _prior_slope(self, weight):
        """Compute derivatives of Σ weight_i × prior variance of margin i in the kernel's theta."""
        weight = np.where(self._alike, 0.0, weight)
        item_weight = np.abs(self.incidence) @ weight
        gradient = np.zeros(len(self.kernel.theta))
        for rows in row_blocks(self.n_items, PAIRED_ROWS, PAIRED_ROWS**2):
            contract = kernel_with_gradient(self.kernel, self.items[rows])[1]
            gradient += contract(np.diag(item_weight[rows]))
        for rows in row_blocks(self.n_margins, self.items.shape[1], BLOCK):
            ends = self.items[self.first[rows]], self.items[self.second[rows]]
            gradient -= 2.0 * across(self.kernel, *ends, aligned=True)[1](weight[rows])
        return gradient


# Items a centre that k-means looks at, and passes over them.
_SHOWN = 30
_PASSES = 5


def place(items: NDArray[np.float64], kernel: Kernel, n: int, seed: int) -> NDArray[np.float64]:
    """Place inducing points for items: all items, if there are at most n, else centres of clusters.

    Features are scaled to their spread. Where a part of the kernel tells items by their names alone
    (`Identity`), the centres' nearest items are taken, as nothing lies between names; where no
    other part of it sees them, all items. Where each name has a function of its own of what is
    measured, as a drift is one of time, those items of a random part are taken, one after the
    other, that are known worst by the ones before: clusters would leave most functions without any.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_features)
    kernel : sklearn.gaussian_process.kernels.Kernel
    n : int
    seed : int
    """
    named, measured = seen_columns(kernel, items.shape[1])
    if len(items) <= n or (named and not measured):
        return items
    rest = finite_parts(kernel, items.shape[1])[1]
    if named and rest is not None and seen_columns(rest, items.shape[1])[0]:
        return _choose_least_known(items, kernel, n, seed)
    columns = measured if named else list(range(items.shape[1]))
    scale, origin = feature_spread(items[:, columns]), _origin(items[:, columns])
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(items))[: _SHOWN * n]
    scaled = (items[some][:, columns] - origin) / scale
    search = MiniBatchKMeans(
        n,
        batch_size=max(4 * n, 1024),
        max_iter=_PASSES,
        n_init=1,
        init_size=3 * n,
        random_state=int(rng.integers(2**31)),
        reassignment_ratio=0.0,
    )
    # Its threads would wait for each other longer than they work, and of GNU's OpenMP those of a
    # process do not live on in its forks, which would wait for ever.
    with threadpool_limits(1, user_api="openmp"):
        centres = search.fit(scaled).cluster_centers_
    if not named:
        return distinct_rows(centres * scale + origin)[0]
    squares = np.einsum("ij,ij->i", scaled, scaled)
    nearest = [
        np.argmin(squares - 2.0 * centres[rows] @ scaled.T, axis=1)
        for rows in row_blocks(len(centres), len(scaled), BLOCK)
    ]
    return items[some[np.unique(np.concatenate(nearest))]]


def _origin(items):
    """Return `far_origin`, zero where there is none."""
    origin = far_origin(items)
    return np.zeros(items.shape[1]) if origin is None else origin


def _choose_least_known(items: Array, kernel: Kernel, n: int, seed: int) -> Array:
    """Choose at most n items, each of the largest variance given those before, of a random part."""
    some = np.random.default_rng(seed).permutation(len(items))[: max(SAMPLE, 2 * n)]
    K = kernel_values(kernel, items[some])
    factor, order = pivoted_cholesky(K, _JITTER * float(np.max(np.diagonal(K))))
    return items[some[order[: min(n, factor.shape[1])]]]


def _cross_points(items: Array, kernel: Kernel, n: int, seed: int) -> Array | None:
    """Place points where some terms have few features, in columns that no other term sees.

    One item is varied in these columns, so that nothing of these terms is left open, and in all
    others as `place` chooses: a difference of the first is one of the features alone. The first
    come on top of the ``n`` points.

    Returns
    -------
    ndarray of shape (m, n_features) or None
        None where there are no such terms, or they have more than ``n`` features.
    """
    d = items.shape[1]
    few, rest = finite_parts(kernel, d)
    if few is None or rest is None or len(items) <= n:
        return None
    finite = finite_features(few, d)
    rest_columns = {column for columns in seen_columns(rest, d) for column in columns}
    own = None if finite is None else finite.apart_from(rest_columns)
    if own is None:
        return None
    chosen = spanning_rows(items, own, n)
    if chosen is None:
        return None
    varied = sorted(set().union(*(term.columns for term in own.terms)))
    along, across_them = items[chosen], items.copy()
    others = np.setdiff1d(np.arange(d), varied)
    along[:, others] = along[0, others]
    across_them[:, varied] = along[0, varied]
    placed = place(distinct_rows(across_them)[0], kernel, n, seed)
    return distinct_rows(np.concatenate([along, placed]))[0]


# At most so many answers are used to move the points.
_MOVED = 5000
# Points are moved where the residual variance is at least this share of the items' variance. With
# less, moves would only follow the noise of the answers.
_LEFT = 0.01
# A warning tells of given points with a larger residual share.
_FAR = 0.9
# Steps of L-BFGS. The first few gain most; many would fit the noise of the answers.
_STEPS = 3

# The bound under a prior by inducing points, its slopes, and the sites there, from those before.
Bound = Callable[
    [Inducing, Comparisons, Likelihood, dict[str, Array] | None],
    tuple[float, Pull, dict[str, Array]],
]


@dataclass(frozen=True, eq=False)
class InducingPoints(PriorRule):
    """Priors by inducing points; of kernels of few features by items that span these, exactly.

    Attributes
    ----------
    n : int
        Points at most.
    Z : ndarray of shape (m, n_features) or None
        The points; None before `prepare`.
    bound : callable or None
        The bound that `refine` raises by moving the points; None: they stay.
    """

    n: int
    Z: Array | None = None
    bound: Bound | None = None

    exact: ClassVar[bool] = False
    by_points: ClassVar[bool] = True

    @property
    def points(self) -> Array:
        """Return the points, once `prepare` has chosen them."""
        if self.Z is None:
            raise ValueError(
                "There are no inducing points yet. Call prepare(comparisons, kernel) first."
            )
        return self.Z

    def prepare(self, comparisons: Comparisons, kernel: Kernel, rng: RandomLike = None) -> Self:
        """Return this rule with points for these items, see `PriorRule.prepare`."""
        items = comparisons.items
        if self.Z is not None:
            if self.Z.shape[1] != items.shape[1] or not np.all(np.isfinite(self.Z)):
                raise ValueError(
                    f"inducing_points must be finite, of {items.shape[1]} features as the items; "
                    f"got shape {self.Z.shape}."
                )
            return replace(self, bound=None)
        spanning = spanning_items(items, kernel)
        if spanning is not None and len(spanning) <= min(self.n, len(items) - 1):
            return replace(self, Z=spanning, bound=None)
        seed = seed_of(rng) or 0
        crossed = _cross_points(items, kernel, self.n, seed)
        if crossed is not None:
            return replace(self, Z=crossed, bound=None)
        Z = place(items, kernel, self.n, seed)
        movable = not seen_columns(kernel, items.shape[1])[0] and len(Z) < len(items)
        return replace(self, Z=Z, bound=self.bound if movable else None)

    def refine(self, comparisons: Comparisons, kernel: Kernel, likelihood: Likelihood) -> Self:
        """Return this rule with the points moved for these answers, see `PriorRule.refine`.

        Points of the user's own stay, as those do that stand for items with names; if they are far
        from all items, a warning says so.
        """
        if self.bound is None:
            _warn_far(self.points, comparisons, kernel)
            return self
        Z = _moved(self.points, comparisons, kernel, likelihood, self.bound)
        return replace(self, Z=Z, bound=None)

    def prior(
        self,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Inducing:
        """See `PriorRule.prior`."""
        return Inducing.from_comparisons(kernel, comparisons, likelihood, gradient, self.points)

    def cost(self, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `PriorRule.cost`."""
        n = min(self.n, len(comparisons.items)) if self.Z is None else len(self.Z)
        return cost_of_points(comparisons, n)

    def tells_items_apart(self, comparisons: Comparisons) -> bool:
        """Say whether every item has a point of its own."""
        return self.Z is None and len(comparisons.items) <= self.n


def cost_of_points(comparisons: Comparisons, m: int) -> Cost:
    """Estimate the cost of a prior by so many points."""
    rows = min(len(comparisons.items), len(comparisons.rows.margins.first))
    return Cost(float(rows) * m**2, float(m), 8.0 * m * (rows + 4.0 * m))


def spread_rows(items: Array) -> Array:
    """Return items, some that are evenly spread over their order if they are many."""
    return items[np.linspace(0, len(items) - 1, min(len(items), SAMPLE)).astype(np.intp)]


def _warn_far(Z, comparisons, kernel):
    """Warn of points that explain next to nothing of the items' utilities."""
    share = float(np.mean(unexplained_share(kernel, spread_rows(comparisons.items), Z)))
    if share > _FAR:
        warn(
            f"The inducing points explain {1.0 - share:.1%} of the variance of the items' "
            f"utilities under {kernel}; the rest is predicted by the prior. Give "
            "points among the items, in the units of their features, or leave inducing_points out."
        )


def _moved(Z, comparisons, kernel, likelihood, bound):
    """Move points a few steps up the bound, if the residual variance is large.

    Some of the answers are looked at; the spread of their items is the unit of each feature.
    """
    part = comparisons.spread(_MOVED)
    if np.mean(unexplained_share(kernel, part.items, Z)) < _LEFT:
        return Z
    scale, origin, sites = feature_spread(part.items), _origin(part.items), None

    def points(flat):
        return flat.reshape(Z.shape) * scale + origin

    def minus_bound(flat):
        nonlocal sites
        prior = Inducing(kernel, part.items, part.rows.margins, points(flat))
        value, pull, sites = bound(prior, part, likelihood, sites)
        return -value, -(prior.by_points(pull) * scale).ravel()

    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS}
    try:
        solution = minimize(
            minus_bound,
            ((Z - origin) / scale).ravel(),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
    except NoCovarianceError:  # points that all but coincide, on some step's way
        return Z
    return points(solution.x)
