"""The posterior of the utility: an equal mixture of Gaussian processes of one covariance."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from skpref._utils import (
    BLOCK,
    NEGLIGIBLE,
    Array,
    RandomLike,
    Recorded,
    Summarised,
    bracketed_roots,
    check_number,
    check_shapes,
    floor_variance,
    make_generator,
    symmetric_root,
)
from skpref.data import (
    ParsedX,
    Reader,
    distinct_rows,
    first_wins,
    gather_features,
    number_consecutively,
)
from skpref.gp._choice import choice_proba
from skpref.gp._paths import N_FREQUENCIES, SamplePaths, draw_weights
from skpref.gp._utilities import LARGE, Utilities
from skpref.kernels import (
    CrossKernel,
    Kernel,
    all_columns,
    contracted_input_gradient,
    diag_gradient,
    diag_with_gradient,
    kernel_values,
)
from skpref.likelihoods import Likelihood, sign_proba


def mixture_cdf(c: Array, means: Array, deviation: Array, weights: Array | None = None) -> Array:
    """Compute P(value ≤ c) of n mixtures, (n,).

    Parameters
    ----------
    c : ndarray of shape (n,)
    means : ndarray of shape (n, n_components)
    deviation : ndarray of shape (n,) or (n, n_components)
        0 makes point masses.
    weights : ndarray of shape (n_components,), optional
        Of the components, with a sum of one. None: all are equal.
    """
    deviation = deviation if deviation.ndim == 2 else deviation[:, None]
    sure = deviation <= 0.0
    u = (c[:, None] - means) / np.where(sure, 1.0, deviation)
    below = ndtr(np.where(sure, np.where(u >= 0.0, np.inf, -np.inf), u))
    return below.mean(axis=1) if weights is None else below @ weights


def mixture_quantile(
    level: float, means: Array, deviation: Array, weights: Array | None = None
) -> Array:
    """Compute a quantile of n mixtures, (n,), by a root between the components' own."""
    own = deviation if deviation.ndim == 2 else deviation[:, None]
    edges = means + ndtri(level) * own
    if means.shape[1] == 1:
        return edges[:, 0]
    low, high = edges.min(axis=1), edges.max(axis=1)
    slack = 1e-12 * (1.0 + np.abs(low) + np.abs(high))

    def excess(c: Array, rows: NDArray[np.intp]) -> Array:
        return mixture_cdf(c, means[rows], deviation[rows], weights) - level

    return bracketed_roots(excess, low - slack, high + slack)


def averaged_with_moment_match(
    of: Callable[[Array, Array, Array], Array],
    means: Array,
    variance: Array,
    order: Array,
    log: bool,
) -> Array:
    """Average a function of normals over the components and a Gaussian of their moments.

    Parameters
    ----------
    of : callable
        ``of(mean, variance, order)`` → values, or their logarithms, on new last axes.
    means : ndarray of shape (n, n_components)
    variance, order : ndarray of shape (n,)
    log : bool
        Whether values are logarithms.
    """
    if means.shape[1] == 1:
        return of(means[:, 0], variance, order)
    matched = of(means.mean(axis=1), variance + means.var(axis=1), order)
    by_component, n = of(means, variance[:, None], order[:, None]), means.shape[1] + 1
    if not log:
        return (by_component.sum(axis=1) + matched) / n
    top = np.maximum(by_component.max(axis=1), matched)
    top = np.where(np.isfinite(top), top, 0.0)
    by_component = by_component - top[:, None]
    total = np.exp(by_component, out=by_component).sum(axis=1) + np.exp(matched - top)
    with np.errstate(divide="ignore"):  # no component speaks for it
        return np.minimum(np.log(total / n), 0.0) + top  # a mean is no more than the largest


_FOUND_AGAIN = ("_own", "utilities")


@dataclass(frozen=True, eq=False, repr=False)
class Components(Recorded, Summarised):
    """Hold the fields of a `Posterior`, where they are documented, and compute its moments."""

    kernel: Kernel
    likelihood: Likelihood
    anchors: Array
    weights: Array
    factor: Array
    reader: Reader = None  # type: ignore[assignment]  # made of the anchors where none is given
    utilities: Utilities | None = None

    # Variance of what a new group of answers adds to the utility of an item.
    effect_variance: ClassVar[float] = 0.0
    # Whether the covariance of the anchors may be kept for pairs of them.
    keeps_anchors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.reader is None:
            object.__setattr__(self, "reader", Reader(self.anchors.shape[1]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(str, self._facts().values()))}>"

    def _facts(self):
        n_anchors, n_features = self.anchors.shape
        return {
            "kernel": self.kernel,
            "likelihood": self.likelihood,
            "anchors": f"{n_anchors} anchors of {n_features} columns",
            "components": f"{self.n_components} component{'s' * (self.n_components > 1)}",
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without caches."""
        return {name: part for name, part in vars(self).items() if name not in _FOUND_AGAIN}

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless a duel of two anchors has probabilities, see `Fields`."""
        sizes = check_shapes(
            anchors=(self.anchors, "n c"),
            weights=(self.weights, "n s"),
            factor=(self.factor, "n k"),
        )
        if not sizes["s"]:
            raise ValueError("a posterior has no component")
        self.likelihood.check()
        means, variance = self.pair_block(self.anchors[:1], self.anchors[-1:])
        probabilities = self.likelihood.outcome_proba(means, variance[:, None])
        n_outcomes = len(self.likelihood.duel_scale.outcomes)
        if probabilities.shape != (*means.shape, n_outcomes) or not np.allclose(
            probabilities.sum(axis=-1), 1.0
        ):
            raise ValueError("kernel and likelihood of a posterior give no probabilities of duels")

    @property
    def n_components(self) -> int:
        """Count the Gaussian components."""
        return self.weights.shape[1]

    def component_means(self, X: Any) -> Array:
        """Compute the mean of every component, shape (n, n_components)."""
        return self.means_at(self.check_items(X))

    def component_var(self, X: Any) -> Array:
        """Compute the variance that all components share, shape (n,)."""
        return self.shared_var(self.check_items(X))

    def component_cov(self, X: Any) -> Array:
        """Compute the covariance that all components share, shape (n, n)."""
        X = self.check_items(X)
        return self.shared_cov(X, self.cross(X))

    def moments_with_first(self, X: Any, m: int) -> tuple[Array, Array, Array]:
        """Compute joint moments of n items and the first m of them.

        Returns
        -------
        means : ndarray of shape (n, n_components)
        var : ndarray of shape (n,)
        cov : ndarray of shape (n, m)
            Both are shared by the components.
        """
        X = self.check_items(X)
        cross = self.cross(X)
        half, prior = cross @ self.factor, self.kernel.diag(X)
        var = floor_variance(prior - np.einsum("ij,ij->i", half, half), prior)
        return cross @ self.weights, var, kernel_values(self.kernel, X, X[:m]) - half @ half[:m].T

    def component_averages(self, X: Array, shares: Array) -> tuple[Array, Array]:
        """Compute means of every component and common covariance of n averages of utilities.

        Parameters
        ----------
        X : ndarray of shape (n, m, n_features)
            Checked items.
        shares : ndarray of shape (m,)
            Weights of an average.

        Returns
        -------
        means : ndarray of shape (n, n_components)
        cov : ndarray of shape (n, n)
        """
        n, m, _ = X.shape
        flat = X.reshape(n * m, -1)
        cross, prior = np.zeros((n, len(self.anchors))), np.zeros((n, n))
        for k, share in enumerate(shares):  # the matrix of all items would be m² times as large
            cross += share * self.cross(X[:, k])
            across = kernel_values(self.kernel, X[:, k], flat).reshape(n, n, m)
            prior += share * (across @ shares)
        half = cross @ self.factor
        return cross @ self.weights, 0.5 * (prior + prior.T) - half @ half.T

    def component_sums(self, X: Array, weights: Array) -> tuple[Array, Array]:
        """Compute means of every component and common variance of weighted sums of utilities.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Checked items.
        weights : ndarray of shape (m, n)

        Returns
        -------
        means : ndarray of shape (m, n_components)
        variance : ndarray of shape (m,)
        """
        cross, prior = np.zeros((len(weights), len(self.anchors))), np.zeros(len(weights))
        step = max(1, BLOCK // max(len(self.anchors), len(X), 1))
        for start in range(0, len(X), step):
            rows, share = X[start : start + step], weights[:, start : start + step]
            cross += share @ self.cross(rows)
            prior += np.sum((share @ kernel_values(self.kernel, rows, X)) * weights, axis=1)
        half = cross @ self.factor
        variance = floor_variance(prior - np.einsum("ij,ij->i", half, half), prior)
        return cross @ self.weights, variance

    def mean(self, X: Any) -> Array:
        """Compute the posterior mean utility, shape (n,)."""
        X = self.check_items(X)
        centre = self.weights.mean(axis=1)
        return concatenate_blocks([self.cross(rows) @ centre for rows in self.blocks(X)], (0,))

    def var(self, X: Any) -> Array:
        """Compute the posterior variance of the utility, shape (n,)."""
        X = self.check_items(X)
        shared = self.shared_var(X)
        if self.n_components == 1:
            return shared
        spread = [self.means_at(rows).var(axis=1) for rows in self.blocks(X)]
        return shared + concatenate_blocks(spread, (0,))

    def cov(self, X: Any) -> Array:
        """Compute the posterior covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        cross = self.cross(X)
        covariance = self.shared_cov(X, cross)
        if self.n_components > 1:
            means = cross @ self.weights
            means = means - means.mean(axis=1, keepdims=True)
            covariance += means @ means.T / self.n_components
        return covariance

    # -- helpers -------------------------------------------------------------------------

    def check_items(self, X: Any) -> Array:
        """Return items as a finite float array of the right shape."""
        return self.reader.items(X)

    def cross(self, X: Array) -> Array:
        """Compute the prior covariance of checked items with the anchors, (n, n_anchors)."""
        K = kernel_values(self.kernel, X, self.anchors)
        if not np.isfinite(K.sum()):
            raise ValueError(
                f"The kernel {self.kernel} is not finite between these items and the training "
                "items: they lie too far apart for double precision. Rescale or drop them."
            )
        return K

    def blocks(self, X: Array) -> list[Array]:
        widest = max(len(self.anchors), self.n_components, self.factor.shape[1], 1)
        step = max(1, BLOCK // widest)
        return [X[start : start + step] for start in range(0, len(X), step)]

    def means_at(self, X: Array) -> Array:
        """Compute the mean of every component at checked items, (n, n_components)."""
        blocks = [self.cross(rows) @ self.weights for rows in self.blocks(X)]
        return concatenate_blocks(blocks, (0, self.n_components))

    def shared_var(self, X: Array) -> Array:
        """Compute the variance that all components share at checked items, (n,)."""
        return concatenate_blocks([self._block_var(rows) for rows in self.blocks(X)], (0,))

    def shared_cov(self, rows: Array, cross: Array) -> Array:
        """Return the part of the rows' covariance that all components share."""
        half = cross @ self.factor
        return kernel_values(self.kernel, rows) - half @ half.T

    def means_and_cov(self, rows: Array, cross: Array) -> tuple[Array, Array]:
        """Compute means (n, n_components) and shared covariance of rows, by their `cross`."""
        return cross @ self.weights, self.shared_cov(rows, cross)

    def pair_block(self, rows: Array, others: Array) -> tuple[Array, Array]:
        """Compute the components' means and their variance of the margins of some pairs of rows."""
        cross = self.cross(rows) - self.cross(others)
        half = cross @ self.factor
        scale = self.kernel.diag(rows) + self.kernel.diag(others)
        prior = scale - 2.0 * kernel_values(self.kernel, rows, others, aligned=True)
        # Rounding must not make sure of the order of two items that all but coincide.
        scale = np.where(np.any(rows != others, axis=1), scale, 0.0)
        variance = floor_variance(prior - np.einsum("ij,ij->i", half, half), scale)
        return cross @ self.weights, variance

    def set_covariance(self, rows: Array, places: NDArray[np.intp]) -> Array:
        """Compute each component's covariance of the utilities of sets of rows, (n_sets, k, k)."""
        n_sets, k = places.shape
        half = (kernel_values(self.kernel, rows, self.anchors) @ self.factor)[places]
        prior = self.kernel.diag(rows)[places]
        covariance = np.empty((n_sets, k, k))
        for i in range(k):
            variance = prior[:, i] - np.einsum("ij,ij->i", half[:, i], half[:, i])
            covariance[:, i, i] = floor_variance(variance, prior[:, i])
            for j in range(i):
                both = kernel_values(
                    self.kernel, rows[places[:, i]], rows[places[:, j]], aligned=True
                )
                covariance[:, i, j] = both - np.einsum("ij,ij->i", half[:, i], half[:, j])
                covariance[:, j, i] = covariance[:, i, j]
        return covariance

    def _block_var(self, rows: Array) -> Array:
        """Return the variance at rows that all components share, (n,)."""
        half = self.cross(rows) @ self.factor
        prior = self.kernel.diag(rows)
        return floor_variance(prior - np.einsum("ij,ij->i", half, half), prior)


def concatenate_blocks(blocks: list[Array], empty: tuple[int, ...]) -> Array:
    """Return blocks as one array, an empty one of this shape where there are none."""
    return np.concatenate(blocks) if blocks else np.zeros(empty)


PullBack: TypeAlias = Callable[[Array, Array | float, Array | float], Array]


class JointMoments(NamedTuple):
    """Hold moments of f at n items and at the fixed item, for S components.

    Attributes
    ----------
    mean : ndarray of shape (n, S)
    var, cov : ndarray of shape (n,)
        Variance at the items and covariance with the fixed item, shared by the components.
    fixed_mean : ndarray of shape (S,)
    fixed_var : float
    """

    mean: Array
    var: Array
    cov: Array
    fixed_mean: Array
    fixed_var: float


class Joint:
    """A posterior at any items together with one fixed item; made by `Posterior.joint_with`.

    Parameters
    ----------
    kernel, anchors, weights, factor
        Of the `Posterior`.
    item : ndarray of shape (n_features,)
    """

    def __init__(
        self, kernel: Kernel, anchors: Array, weights: Array, factor: Array, item: Array
    ) -> None:
        self._kernel, self._weights, self._factor = kernel, weights, factor
        # The fixed item is one more anchor: the covariance with it is then a column like others.
        self._anchors = np.concatenate([anchors, all_columns(kernel, item[None])])
        at = kernel_values(kernel, item[None], anchors)
        self._half = (at @ factor)[0]
        prior = float(kernel.diag(item[None])[0])
        self._mean = (at @ weights)[0]
        var = floor_variance(prior - self._half @ self._half, prior, NEGLIGIBLE)
        self._var = float(var)

    def _moments(self, K: Array, prior: Array) -> tuple[JointMoments, Array]:
        half = K[:, :-1] @ self._factor
        var = floor_variance(prior - np.einsum("ij,ij->i", half, half), prior, NEGLIGIBLE)
        mean = K[:, :-1] @ self._weights
        cov = K[:, -1] - half @ self._half
        return JointMoments(mean, var, cov, self._mean, self._var), half

    def moments(self, X: Array) -> JointMoments:
        """Compute the moments at the rows of X, (n, n_features)."""
        return self._moments(kernel_values(self._kernel, X, self._anchors), self._kernel.diag(X))[0]

    def moments_and_pull_back(self, X: Array) -> tuple[JointMoments, PullBack]:
        """Compute the moments, and what turns derivatives in them into a gradient in the items.

        Returns
        -------
        moments : JointMoments
        pull_back : callable
            ``pull_back(by_mean, by_var, by_cov)`` → ndarray (n, n_features), where ``by_mean``
            is of shape (n, S) and the others (n,) or numbers.
        """
        cross = CrossKernel(self._kernel, X, self._anchors)
        prior, slope = diag_with_gradient(self._kernel, X)
        moments, half = self._moments(cross.value, prior)

        def pull_back(by_mean: Array, by_var: Array | float, by_cov: Array | float) -> Array:
            by_var, by_cov = _column(by_var, len(X)), _column(by_cov, len(X))
            pull = -2.0 * by_var * half - by_cov * self._half
            weight = np.empty(cross.value.shape)
            weight[:, :-1] = by_mean @ self._weights.T + pull @ self._factor.T
            weight[:, -1:] = by_cov
            gradient = cross.contract(weight)
            return gradient if slope is None else gradient + by_var * slope

        return moments, pull_back


class RowMoments(NamedTuple):
    """Hold joint moments of f at n items and at m fixed items, for S components.

    Attributes
    ----------
    mean : ndarray of shape (n, S)
    cov : ndarray of shape (n, n)
    fixed_cov : ndarray of shape (n, m)
        Covariance with the fixed items. Both are shared by the components.
    """

    mean: Array
    cov: Array
    fixed_cov: Array


RowPullBack: TypeAlias = Callable[[Array, Array, Array], Array]


class JointRows:
    """A posterior at items that move together, and at fixed ones; see `Posterior.joint_rows`.

    Parameters
    ----------
    posterior : Components
    fixed : ndarray of shape (m, n_features)
    """

    def __init__(self, posterior: Components, fixed: Array) -> None:
        self._posterior, self._n_anchors = posterior, len(posterior.anchors)
        # As in `Joint`, a fixed item is one more anchor.
        self._anchors = np.concatenate([posterior.anchors, all_columns(posterior.kernel, fixed)])
        self._half = kernel_values(posterior.kernel, fixed, posterior.anchors) @ posterior.factor

    def moments_and_pull_back(self, X: Array) -> tuple[RowMoments, RowPullBack]:
        """Compute the moments, and what turns derivatives in them into a gradient in the items.

        Returns
        -------
        moments : RowMoments
        pull_back : callable
            ``pull_back(by_mean, by_cov, by_fixed_cov)`` → ndarray (n, n_features), derivatives in
            the arrays of the moments, where entries (i, j) and (j, i) of ``cov`` are two numbers.
        """
        kernel, weights = self._posterior.kernel, self._posterior.weights
        cross = CrossKernel(kernel, X, np.concatenate([self._anchors, all_columns(kernel, X)]))
        prior, slope = diag_with_gradient(kernel, X)
        at, fixed, own = np.split(cross.value, [self._n_anchors, len(self._anchors)], axis=1)
        half = at @ self._posterior.factor
        cov = own - half @ half.T
        var = prior - np.einsum("ij,ij->i", half, half)
        np.fill_diagonal(cov, floor_variance(var, prior, NEGLIGIBLE))
        moments = RowMoments(at @ weights, cov, fixed - half @ self._half.T)

        def pull_back(by_mean: Array, by_cov: Array, by_fixed_cov: Array) -> Array:
            both = by_cov + by_cov.T
            pull = -(both @ half + by_fixed_cov @ self._half)
            of_anchors = by_mean @ weights.T + pull @ self._posterior.factor.T
            of_rows = both - np.diag(np.diagonal(both))
            gradient = cross.contract(np.concatenate([of_anchors, by_fixed_cov, of_rows], axis=1))
            return gradient if slope is None else gradient + np.diagonal(by_cov)[:, None] * slope

        return moments, pull_back


def _column(values: Array | float, n: int) -> Array:
    """Return values as a column, (n, 1)."""
    return values[:, None] if isinstance(values, np.ndarray) else np.full((n, 1), values)


# The covariance of so many items is kept: more take 128 MiB and above.
MOST = 4096


class PairMoments(NamedTuple):
    """Hold moments of the margins of some pairs: the components' means, their shared variance."""

    rows: slice
    means: Array
    variance: Array


class Anchors:
    """Hold means and covariance of a posterior's own items, computed once.

    Parameters
    ----------
    posterior : Components
    """

    def __init__(self, posterior: Components):
        self._posterior = posterior

    @cached_property
    def _prior(self) -> Array:
        return kernel_values(self._posterior.kernel, self._posterior.anchors)

    @cached_property
    def means(self) -> Array:
        """Compute the components' means of the anchors, shape (n_anchors, n_components)."""
        return self._prior @ self._posterior.weights

    @cached_property
    def covariance(self) -> Array:
        """Compute the covariance that all components share, (n_anchors, n_anchors)."""
        utilities = self._posterior.utilities
        if utilities is not None:
            return utilities.covariance
        half = self._prior @ self._posterior.factor
        return self._prior - half @ half.T

    @cached_property
    def scale(self) -> Array:
        """Compute the prior variances of the anchors."""
        return self._posterior.kernel.diag(self._posterior.anchors)

    def places(self, A: Array, B: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of rows of A and B among the anchors, −1 for other rows."""
        anchors, kernel = self._posterior.anchors, self._posterior.kernel
        A, B, n = all_columns(kernel, A), all_columns(kernel, B), len(anchors)
        _, code = distinct_rows(np.concatenate([anchors, A, B]))
        place = np.full(int(code.max()) + 1, -1)
        place[code[:n]] = np.arange(n)
        positions = place[code[n:]]
        return positions[: len(A)], positions[len(A) :]

    def moments(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Iterator[PairMoments]:
        """Yield the moments of pairs of anchors, block by block."""
        diagonal = np.diagonal(self.covariance)
        step = max(1, BLOCK // self.means.shape[1])
        for begin in range(0, len(first), step):
            rows = slice(begin, begin + step)
            a, b = first[rows], second[rows]
            variance = diagonal[a] + diagonal[b] - 2.0 * self.covariance[a, b]
            scale = np.where(a != b, self.scale[a] + self.scale[b], 0.0)
            yield PairMoments(rows, self.means[a] - self.means[b], floor_variance(variance, scale))


def pair_moments(posterior: Components, A: Array, B: Array) -> Iterator[PairMoments]:
    """Yield the moments of f(a) − f(b) for pairs of rows, block by block."""
    n_anchors = len(posterior.anchors)
    cache = vars(posterior)  # which a frozen dataclass does not keep from being added to
    cheap = posterior.utilities is not None or "_own" in cache
    enough = max(n_anchors // 8, 1) if cheap else 2 * n_anchors
    held = posterior.n_components * n_anchors <= BLOCK
    if posterior.keeps_anchors and LARGE <= n_anchors <= MOST and len(A) >= enough and held:
        own = cache.setdefault("_own", Anchors(posterior))
        first, second = own.places(A, B)
        is_anchor = (first >= 0) & (second >= 0)
        if is_anchor.all():
            yield from own.moments(first, second)
            return
        if posterior.n_components == 1 and is_anchor.sum() >= enough:
            parts = [list(own.moments(first[is_anchor], second[is_anchor]))]
            parts.append(list(pairs_by_blocks(posterior, A[~is_anchor], B[~is_anchor])))
            means, variance = np.empty((len(A), 1)), np.empty(len(A))
            for rows, part in zip((is_anchor, ~is_anchor), parts, strict=True):
                means[rows] = np.concatenate([each.means for each in part])
                variance[rows] = np.concatenate([each.variance for each in part])
            yield PairMoments(slice(0, len(A)), means, variance)
            return
    yield from pairs_by_blocks(posterior, A, B)


def pairs_by_blocks(
    posterior: Components,
    A: Array,
    B: Array,
    moments: Callable[[Array, Array], tuple[Array, Array]] | None = None,
) -> Iterator[PairMoments]:
    """Yield the moments of pairs of rows block by block, by default those of `pair_block`."""
    moments = posterior.pair_block if moments is None else moments
    n_anchors = len(posterior.anchors)
    widest = max(n_anchors, posterior.n_components, posterior.factor.shape[1], 1)
    step = max(1, BLOCK // widest)
    for begin in range(0, len(A), step):
        rows = slice(begin, begin + step)
        yield PairMoments(rows, *moments(A[rows], B[rows]))


def difference_cov(covariance: Array) -> Array:
    """Compute the covariance of x − y from that of the stacked x and y, (n, n) from (2n, 2n)."""
    n = len(covariance) // 2
    return covariance[:n, :n] + covariance[n:, n:] - covariance[:n, n:] - covariance[n:, :n]


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Components):
    """Posterior of the utility f given duels; nothing else computes a mean or a variance.

    Component s has mean k(·, Z) w_s, and all share the covariance k − k(·, Z) D Dᵀ k(Z, ·).
    One component is a Gaussian approximation (Laplace, EP); many, one a draw of the noisy
    margins, are the skew GP [1]_, whose low-variance estimators (eq. 5) are the mixture's
    plain formulas; only probabilities of duels have one component more (see
    `win_probability`).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Prior covariance.
    likelihood : Likelihood
        Probability of an answer given the margin, such as `Probit`.
    anchors : ndarray of shape (n_anchors, n_features)
        Z; of items at times (n_anchors, n_features + 1), the last column their time since the first
        of training, dates in days.
    weights : ndarray of shape (n_anchors, n_components)
        Columns w_s.
    factor : ndarray of shape (n_anchors, rank)
        D.
    reader : Reader, default=None
        What is known of items: columns that a DataFrame of them must have, a table of those that
        may be asked for by their names or positions, and codes of ids.
    utilities : Utilities, default=None
        Covariance of the anchors, where conditioning left it; not pickled.

    Notes
    -----
    Utilities have the prior's units: only the ratio of kernel amplitude to noise variance is
    identified by duels. Arguments are items: an array or DataFrame of shape (n, n_features), an
    ItemTable, or names or integer positions in the reader's table, of shape (n,). Means, variances,
    probabilities and quantiles are found in blocks of rows, in about 150 MiB however many there
    are (plus the answer); covariances, joint draws and single components are whole arrays.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> duels = np.array([[[2.0], [1.0]], [[1.0], [0.0]]])
    >>> posterior = PairwisePreferenceRegressor(optimizer=None).fit(duels).posterior_
    >>> posterior.mean([[0.0], [2.0]]).round(2)
    array([-0.78,  0.78])
    >>> posterior.win_probability([[2.0]], [[0.0]]).round(2)
    array([0.96])
    """

    def at_time(self, time: Any) -> "Posterior":
        """Return the same posterior, asked about another time.

        Parameters
        ----------
        time : number or date
            What items are taken at whose time is not told, which is the last of training otherwise;
            in the unit, or of the kind, of the ``time`` of `fit`.

        Raises
        ------
        ValueError
            If the model was fitted without times, or it is none of their kind.

        Examples
        --------
        >>> from skpref import PairwisePreferenceRegressor
        >>> games = [["ann", "bob"], ["bob", "ann"]]  # winner first: ann in 2001, bob in 2009
        >>> model = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
        >>> posterior = model.fit(games, time=[2001.0, 2009.0]).posterior_
        >>> posterior.win_probability(["ann"], ["bob"]).round(2)
        array([0.2])
        >>> posterior.at_time(2001.0).win_probability(["ann"], ["bob"]).round(2)
        array([0.79])
        """
        return replace(self, reader=self.reader.at_time(time))

    def smoothed(self) -> "Posterior":
        """Return the posterior where later answers count for earlier times too: itself, as they do.

        Only after `partial_fit` of items that are independent through time it is another one.

        Examples
        --------
        >>> from skpref import PairwisePreferenceRegressor
        >>> posterior = PairwisePreferenceRegressor(optimizer=None).fit([["ann", "bob"]]).posterior_
        >>> posterior.smoothed() is posterior
        True
        """
        return self

    def in_groups(self, groups: NDArray[np.intp] | None) -> "Posterior":
        """Return the posterior asked about answers in groups: itself, where these have no effects.

        Parameters
        ----------
        groups : ndarray of int of shape (n,) or None
            Number of the group of each answer, negative for a new one. None: all are new.

        Examples
        --------
        >>> from skpref import PairwisePreferenceRegressor
        >>> votes, prompts = [["a", "b"], ["b", "a"], ["a", "b"]], ["p", "q", "p"]
        >>> model = PairwisePreferenceRegressor(optimizer=None).fit(votes, prompts=prompts)
        >>> model.predict_proba([["a", "b"]] * 2, prompts=["p", "q"])[:, 1].round(2)
        array([0.93, 0.14])
        """
        return self

    # -- moments -------------------------------------------------------------------------

    def margin(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Compute mean and variance of f(a) − f(b), without observation noise, for pairs of rows.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)

        Returns
        -------
        mean, variance : ndarray of shape (n,)
        """

        def moments(means, variance, _):
            spread = means.var(axis=1) if means.shape[1] > 1 else 0.0
            return np.stack([means.mean(axis=1), variance + spread], axis=1)

        mean, variance = self._by_pairs(A, B, moments, (0, 2)).T
        return mean, variance

    def component_margins(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Compute means (n, n_components) and the shared variance (n,) of f(a) − f(b)."""
        blocks = list(pair_moments(self, *self._pairs(A, B)))
        means = concatenate_blocks([block.means for block in blocks], (0, self.n_components))
        return means, concatenate_blocks([block.variance for block in blocks], (0,))

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Compute the covariance of the margins f(a_i) − f(b_i), shape (n, n)."""
        both = ParsedX("items", np.concatenate(self._pairs(A, B)))
        return difference_cov(self.cov(both))

    def joint_with(self, item: ArrayLike) -> Joint:
        """Return joint moments with a fixed item of shape (n_features,), and their derivatives."""
        fixed = self.check_items(np.asarray(item)[None])[0]
        return Joint(self.kernel, self.anchors, self.weights, self.factor, fixed)

    def joint_rows(self, fixed: Any = ()) -> JointRows:
        """Return joint moments of items that move together, with fixed ones (m, n_features)."""
        none = np.zeros((0, self.anchors.shape[1]))
        return JointRows(self, self.check_items(fixed) if len(fixed) else none)

    def pair_moments(self, A: Array, B: Array) -> Iterator[PairMoments]:
        """Yield the moments of f(a) − f(b) for pairs of checked rows, block by block."""
        return pair_moments(self, A, B)

    def answer_moments(self, A: Array, B: Array) -> Iterator[PairMoments]:
        """Yield the moments of the margins that answers are about, without observation noise.

        They are those of `pair_moments`, unless effects belong to groups of answers.
        """
        return pair_moments(self, A, B)

    def joint_answer_moments(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Compute means (n, n_components) and shared covariance (n, n) of what answers are about.

        As `answer_moments`, but of effects of groups, which are not in it.
        """
        both = np.concatenate([A, B])
        means, covariance = self.means_and_cov(both, self.cross(both))
        return means[: len(A)] - means[len(A) :], difference_cov(covariance)

    def answer_mean(self, A: Any, B: Any) -> Array:
        """Compute the mean of the margins that answers are about, for pairs of rows, (n,)."""
        return self.margin(A, B)[0]

    def answer_utilities(self, query: ParsedX) -> Array:
        """Compute the mean utilities of the items in answers about sets, (n_sets, k), NaN where
        there is no item."""
        return gather_features(self.mean(query), query.pairs)

    def select_answers(self, rows: slice) -> "Posterior":
        """Return the posterior asked about some of the answers: itself, if they have no groups."""
        return self

    def set_moments(self, items: Array, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Compute the moments of the utilities in answers about sets, without observation noise.

        Parameters
        ----------
        items : ndarray of shape (n, n_features)
            Checked.
        places : ndarray of int of shape (n_sets, k)
            Rows of ``items``.

        Returns
        -------
        means : ndarray of shape (n_sets, k, n_components)
        covariance : ndarray of shape (n_sets, k, k)
        """
        return self.means_at(items)[places], self.set_covariance(items, places)

    # -- probabilities -------------------------------------------------------------------

    def win_probability(
        self, A: Any, B: Any, noise: bool = True, log: bool = False, order: ArrayLike = 0
    ) -> Array:
        """Compute P(a beats b) for pairs of rows, shape (n,).

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)
        noise : bool, default=True
            Probability of winning a noisy duel; False: that f(a) > f(b).
        log : bool, default=False
            Return its natural logarithm, finite far in the tails.
        order : int or array-like of shape (n,), default=0
            Who is shown first, where the likelihood has an order effect: 1 a, -1 b, 0 neither.

        Notes
        -----
        The average over n > 1 draws cannot tell probabilities below 1/n: the logarithm of what no
        draw speaks for is that of one draw's far tail. So a Gaussian of the mixture's mean and
        variance counts as one component more (a defensive mixture: Hesterberg, Technometrics
        1995). It moves no probability by more than 1/(n + 1), the less the more draws, and the
        two outcomes still sum to 1. `cdf` and `quantile` are of the draws alone.
        """

        def of(mean, variance, order):
            if not noise:
                return sign_proba(mean, variance, log=log)
            return first_wins(self._outcomes(mean, variance, order, log), log)

        moments = self.answer_moments if noise else self.pair_moments
        order = order if noise else 0
        return self._by_pairs(
            A, B, lambda m, v, o: averaged_with_moment_match(of, m, v, o, log), (0,), order, moments
        )

    def outcome_log_proba(
        self, A: Any, B: Any, order: ArrayLike = 1, offset: ArrayLike = 0.0
    ) -> Array:
        """Compute log-probabilities of the outcomes of duels, observation noise included.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)
        order : int or array-like of shape (n,), default=1
            Who is shown first, where the likelihood has an order effect: 1 a, -1 b, 0 neither.
        offset : float or array-like of shape (n,), default=0.0
            Known part of the margin, that of a less that of b.

        Returns
        -------
        ndarray of shape (n, n_outcomes)
            Columns "second won", "tie" where there may be any, and "first won".
        """
        of, empty = self._outcomes, (0, self.likelihood.n_outcomes)
        moments = self.answer_moments
        return self._by_pairs(
            A,
            B,
            lambda m, v, o: averaged_with_moment_match(of, m, v, o, True),
            empty,
            order,
            moments,
            offset,
        )

    def choice_proba(self, sets: Any, order: ArrayLike = 1, log: bool = False) -> Array:
        """Compute P(each item is the best of its set as a judge sees them), noise included.

        Parameters
        ----------
        sets : array-like of shape (n_sets, k, n_features)
        order : int or array-like of shape (n_sets,), default=1
            1: the first of the set is shown first, 0: none is.
        log : bool, default=False
            Return its natural logarithm.

        Returns
        -------
        ndarray of shape (n_sets, k)
            Rows sum to one.

        Notes
        -----
        Of up to four items exact. Of five or more by quasi-random points: with one component off
        by 5e-5 at root mean square and 1e-3 at worst, with 200 or 1000 draws by 2e-5 and 1.1e-4
        (5 to 10 items, random means and covariances; more where covariances are singular). The
        same posterior gives the same numbers. With 1000 draws a set of six takes some 0.05 s.
        """
        sets = np.asarray(sets, dtype=np.float64)
        if sets.ndim != 3 or sets.shape[1] < 2:
            raise ValueError(f"Sets must have shape (n_sets, k, n_features), got {sets.shape}.")
        items = self.check_items(sets.reshape(-1, sets.shape[2]))
        asked = ParsedX("items", items, number_consecutively(*sets.shape[:2]))
        asked = self.reader.with_order(asked, np.broadcast_to(np.asarray(order), (len(sets),)))
        return choice_proba(self, asked.rows, asked.pairs, order, log)

    def _outcomes(self, mean, variance, order, log=True):
        """Return probabilities of a duel's outcomes, or their logarithms."""
        of = self.likelihood.outcome_log_proba if log else self.likelihood.outcome_proba
        return of(mean, variance, order) if self.likelihood.uses_order else of(mean, variance)

    def cdf(self, X: Any, c: ArrayLike) -> Array:
        """Compute P(f(x) ≤ c), shape (n,); ``c`` is a number or of shape (n,)."""
        X = self.check_items(X)
        c = np.broadcast_to(np.asarray(c, dtype=np.float64), (len(X),))
        if np.isnan(c).any():
            raise ValueError(
                "got NaN or None among c; numbers are allowed, also infinite ones. Leave these out."
            )
        blocks = zip(self.blocks(X), self.blocks(c), strict=True)
        return concatenate_blocks(
            [mixture_cdf(at, *self._mixture(rows)) for rows, at in blocks], (0,)
        )

    def quantile(self, X: Any, q: float | Sequence[float]) -> Array:
        """Compute quantiles of f(x), (n,), or (n, n_quantiles) for a sequence ``q`` in (0, 1).

        A bracketed root of the mixture's distribution function, the bracket that of Takeno et al.
        (2023), Algorithm 2.
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not levels.size or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"q must be a number or a sequence of numbers in (0, 1), got {q}.")
        every = np.atleast_1d(levels)

        def of_block(rows):
            mixture = self._mixture(rows)
            return np.stack([mixture_quantile(level, *mixture) for level in every], axis=1)

        quantiles = concatenate_blocks(
            [of_block(rows) for rows in self.blocks(self.check_items(X))], (0, len(every))
        )
        return quantiles[:, 0] if levels.ndim == 0 else quantiles

    def credible_interval(self, X: Any, level: float = 0.95) -> Array:
        """Compute a central interval that holds f(x) with probability ``level``, shape (n, 2)."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        return self.quantile(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])

    # -- draws ---------------------------------------------------------------------------

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Draw the utilities of the items jointly, shape (n_items, n).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
        n : int, default=1
            Number of draws.
        rng : int, RandomState or Generator, default=None
        """
        check_number("n", n, low=1, integer=True)
        X, rng = self.check_items(X), make_generator(rng)
        cross = self.cross(X)
        root = symmetric_root(self.shared_cov(X, cross))
        means = cross @ self.weights[:, rng.integers(self.n_components, size=n)]
        return means + root @ rng.standard_normal((root.shape[1], n))

    def sample_paths(
        self, n: int = 1, rng: RandomLike = None, *, n_frequencies: int = N_FREQUENCIES
    ) -> SamplePaths:
        """Draw the whole function, for Thompson sampling.

        Random Fourier features of the prior corrected pathwise [2]_ for RBF and Matérn kernels
        (on all or on chosen columns; sums, products and whole powers of them and constants); for
        any other kernel exact draws that are conditioned on the values already asked for.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        rng : int, RandomState or Generator, default=None
        n_frequencies : int, default=2000
            Number of random Fourier features: the covariance of the prior's part is off by about
            one over its root. Time is proportional to it.

        Returns
        -------
        SamplePaths
            Callable: items (m, n_features) to utilities (m, n); its ``value_and_gradient`` also
            gives their gradients.

        References
        ----------
        .. [2] Wilson et al., "Efficiently sampling functions from Gaussian process
           posteriors", ICML 2020.
        """
        check_number("n", n, low=1, integer=True)
        check_number("n_frequencies", n_frequencies, low=1, integer=True)
        rng = make_generator(rng)
        weights = self.weights[:, rng.integers(self.n_components, size=n)]
        return SamplePaths(self, draw_weights(self, weights, rng), rng, n_frequencies)

    def hallucinate(self, rng: RandomLike = None) -> "Posterior":
        """Return one component, drawn at random: an ordinary GP given one draw of the margins."""
        s = int(make_generator(rng).integers(self.n_components))
        return replace(self, weights=self.weights[:, s : s + 1])

    # -- input gradients -----------------------------------------------------------------

    def mean_gradient(self, X: Any) -> Array:
        """Compute the gradient of `mean` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        centre = np.broadcast_to(self.weights.mean(axis=1), (len(X), len(self.anchors)))
        return contracted_input_gradient(self.kernel, X, self.anchors, centre)

    def var_gradient(self, X: Any) -> Array:
        """Compute the gradient of `var` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        cross = self.cross(X)
        pull = -2.0 * (cross @ self.factor) @ self.factor.T
        if self.n_components > 1:
            spread = self.weights - self.weights.mean(axis=1, keepdims=True)
            pull += (2.0 / self.n_components) * (cross @ spread) @ spread.T
        inner = contracted_input_gradient(self.kernel, X, self.anchors, pull)
        return diag_gradient(self.kernel, X) + inner

    # -- helpers -------------------------------------------------------------------------

    def _pairs(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Return the rows of both sides of duels; a single row is repeated."""
        A, B = self.reader.sides(A, B)
        if len(A) != len(B):
            if 1 not in (len(A), len(B)):
                raise ValueError(f"A and B must have equally many rows, got {len(A)} and {len(B)}.")
            n = len(B) if len(A) == 1 else len(A)
            A, B = (np.broadcast_to(side, (n, side.shape[1])) for side in (A, B))
        return A, B

    def _mixture(self, rows: Array) -> tuple[Array, Array]:
        """Compute the means of the components and the deviation that they share."""
        return self.means_at(rows), np.sqrt(self.shared_var(rows))

    def _by_pairs(
        self,
        A: Any,
        B: Any,
        reduce: Callable[[Array, Array, Array], Array],
        empty: tuple[int, ...],
        order: ArrayLike = 0,
        moments: Callable[[Array, Array], Iterator[PairMoments]] | None = None,
        offset: ArrayLike = 0.0,
    ) -> Array:
        """Apply ``reduce(component means, variance, order)`` to the margins, block by block."""
        A, B = self._pairs(A, B)
        order = np.broadcast_to(np.asarray(order), (len(A),))
        if self.reader.by_order and A.shape[1] == self.reader.n_columns:
            A, B = (np.column_stack([side, order == n]) for side, n in ((A, 1), (B, -1)))
        offset = np.broadcast_to(np.asarray(offset), (len(A),))[:, None]
        every = (self.pair_moments if moments is None else moments)(A, B)
        return concatenate_blocks(
            [reduce(of.means + offset[of.rows], of.variance, order[of.rows]) for of in every],
            empty,
        )
