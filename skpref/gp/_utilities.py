"""The covariance of items' utilities given pseudo-observations of their differences.

With the prior covariance K and the sites' precision pulled back to the items, L = Aᵀ T A, it is
Σ = (K⁻¹ + L)⁻¹. Two ways lead there: by a root of K, F Fᵀ = K, as Σ = F (I + Fᵀ L F)⁻¹ Fᵀ, which
never divides by a small eigenvalue of K; and by K⁻¹, found once, which costs n³ operations a time
instead of more than 3 n³. The second loses digits as K's condition grows.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from skpref._utils import (
    ROUNDING,
    Array,
    NoCovarianceError,
    cholesky,
    inverse_cholesky,
    pivoted_cholesky,
    semidefinite_root,
    solve_lower,
)

# A sweep costs about ⅔ p³ multiplications with p margins; with n items, by a root, as with so many
# times as many margins.
_ITEM_SIDE = 1.6
# From so many items on the number of operations decides, not that of calls.
LARGE = 256
# Reciprocal condition (in the 1-norm) of a prior covariance down to which its inverse is used.
_SOUND = 1e-10
# Rounding of a margin's mean, in deviations, that is not worth having: beyond it the second way is
# not taken, and engines do not end. The weights are a difference of terms as large as L; that comes
# back times K, where no variance damps it.
WORST = 1e-3
# Prior variance times precision from which on a root of L is sought without any difference.
STRONG = 1e8
# Share of entries up to which a product with a sparse matrix is quicker than with a full one.
_SPARSE = 0.015


class Utilities(ABC):
    """Hold the utilities given sites.

    Attributes
    ----------
    log_det : float
        log|I + K L|.
    """

    log_det: float

    @abstractmethod
    def times(self, vector: Array) -> Array:
        """Compute Σ times a vector (n,) or the columns of a matrix (n, m)."""

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """Compute the covariance Σ, (n, n)."""

    def difference_variances(self, first: Array, second: Array) -> Array:
        """Compute variances of the differences between pairs of items."""
        covariance = self.covariance
        diagonal = np.diagonal(covariance)
        return diagonal[first] + diagonal[second] - 2.0 * covariance[first, second]


class ByRoot:
    """Condition utilities by a root of the prior covariance."""

    def __init__(self, K: Array):
        self.root = semidefinite_root(K)
        n, rank = self.root.shape
        self._triangular = n == rank >= LARGE and not np.any(np.triu(self.root, 1))

    def condition(self, laplacian: Array | csr_array) -> Utilities:
        """Return the utilities given sites of this L."""
        if not self._triangular:
            inner = self.root.T @ (laplacian @ self.root)
            inner.flat[:: len(inner) + 1] += 1.0
            inverse, log_det = inverse_cholesky(inner.T)
            return _Half(inverse @ self.root.T, log_det)
        product = np.asfortranarray(laplacian @ self.root)
        inner = blas.dtrmm(1.0, self.root, product, trans_a=1, lower=1, overwrite_b=1)
        inner.T.flat[:: len(inner) + 1] += 1.0
        factor, info = lapack.dpotrf(inner, lower=1, clean=1, overwrite_a=1)
        if info != 0 or not np.isfinite(np.trace(factor)):
            inverse, log_det = inverse_cholesky(self._inner(laplacian))
            return _Half(inverse @ self.root.T, log_det)
        log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor))))
        right = np.array(self.root.T, order="F")
        return _Half(blas.dtrsm(1.0, factor, right, lower=1, overwrite_b=1), log_det)

    def _inner(self, laplacian):
        """Return I + Rᵀ L R for the root R of the covariance and a Laplacian L."""
        inner = self.root.T @ (laplacian @ self.root)
        inner.flat[:: len(inner) + 1] += 1.0
        return inner.T


class _Half(Utilities):
    """Hold the utilities by H with Σ = Hᵀ H."""

    def __init__(self, half, log_det):
        self._half, self.log_det = half, log_det

    def times(self, vector):
        return self._half.T @ (self._half @ vector)

    @cached_property
    def covariance(self):
        return self._half.T @ self._half


class ByPrecision:
    """Condition utilities by the inverse of the prior covariance.

    Parameters
    ----------
    inverse : ndarray of shape (n, n)
        Of the prior covariance; its lower triangle counts.
    log_det, norm : float
        Of the prior covariance; its 1-norm.
    """

    def __init__(self, inverse: Array, log_det: float, norm: float):
        self._inverse, self._log_det, self._norm = inverse, log_det, norm

    def condition(self, laplacian: Array | csr_array) -> Utilities:
        """Return the utilities given sites of this L; NoCovarianceError where digits are lost."""
        if ROUNDING * self._norm * float(np.max(laplacian.diagonal())) ** 1.5 > WORST:
            raise NoCovarianceError("almost no noise: rounding leaves too few digits")
        precision = self._inverse.copy(order="F")
        if isinstance(laplacian, csr_array):
            entries = laplacian.tocoo()
            precision[entries.row, entries.col] += entries.data
        else:
            precision += laplacian
        factor, info = lapack.dpotrf(precision, lower=1, clean=0, overwrite_a=1)
        if info != 0 or not np.isfinite(np.trace(factor)):
            raise NoCovarianceError("the precision of the utilities could not be factorised")
        log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor)))) + self._log_det
        return _Inverse(factor, log_det)


class _Inverse(Utilities):
    """Hold the utilities by the Cholesky factor of Σ⁻¹, later by Σ in its place."""

    def __init__(self, factor, log_det):
        self._factor, self.log_det = factor, log_det
        self._inverted = False

    def times(self, vector):
        if not self._inverted:
            return lapack.dpotrs(self._factor, vector, lower=1)[0]
        product = blas.dsymv if vector.ndim == 1 else blas.dsymm
        return product(1.0, self._factor, vector, lower=1)

    def difference_variances(self, first, second):
        lower = self._lower()
        diagonal = np.diagonal(lower)
        below = lower[np.maximum(first, second), np.minimum(first, second)]
        return diagonal[first] + diagonal[second] - 2.0 * below

    def _lower(self):
        """Return the lower triangle of the inverse, computed once."""
        if not self._inverted:
            self._factor, _ = lapack.dpotri(self._factor, lower=1, overwrite_c=1)
            self._inverted = True
        return self._factor

    @cached_property
    def covariance(self):
        return mirror_lower_triangle(self._lower())


def mirror_lower_triangle(lower: Array) -> Array:
    """Fill a symmetric matrix from its lower triangle, in place, and return it."""
    n, step = len(lower), 256
    for begin in range(0, n, step):
        end = min(begin + step, n)
        corner = np.tril(lower[begin:end, begin:end])
        lower[begin:end, begin:end] = corner + np.tril(corner, -1).T
        lower[begin:end, end:] = lower[end:, begin:end].T
    return lower


def item_solver(K: Array) -> ByRoot | ByPrecision:
    """Choose the quickest sound way from a prior covariance to utilities given sites."""
    n = len(K)
    if n < LARGE:
        return ByRoot(K)
    diagonal = np.diagonal(K)
    if np.count_nonzero(K) == np.count_nonzero(diagonal) == n and diagonal.min() > 0.0:
        log_det, norm = float(np.sum(np.log(diagonal))), float(diagonal.max())
        return ByPrecision(np.diag(1.0 / diagonal), log_det, norm)
    factor, info = lapack.dpotrf(K, lower=1, clean=0)
    if info != 0 or not np.isfinite(np.trace(factor)):
        return ByRoot(K)
    norm = float(lapack.dlange("1", K.T))
    if not lapack.dpocon(factor, norm, uplo="L")[0] >= _SOUND:
        return ByRoot(K)
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor))))
    return ByPrecision(lapack.dpotri(factor, lower=1, overwrite_c=1)[0], log_det, norm)


def is_sparse(laplacian: csr_array) -> bool:
    """Say whether a matrix is so sparse that products with it are best done as such."""
    return laplacian.nnz <= _SPARSE * laplacian.shape[0] ** 2


class Gain(NamedTuple):
    """Hold what sites tell of the utilities.

    Attributes
    ----------
    factor : ndarray of shape (n, rank)
        D with D Dᵀ = L − L Σ L.
    weights : ndarray of shape (n, n_components)
        K⁻¹ times the posterior means.
    """

    factor: Array
    weights: Array


def as_columns(values: Array) -> Array:
    """Return a vector as the one column of a matrix; a matrix as it is."""
    return values if values.ndim == 2 else values[:, None]


def cubic_work(side: float) -> float:
    """Return the multiplications of a sweep by square matrices of the items, or of features."""
    return 2.0 / 3.0 * (_ITEM_SIDE * float(side)) ** 3


def is_cheaper_by_margins(n_margins: int, n_items: int) -> bool:
    """Say whether matrices of the margins are quicker than those of the items."""
    return n_margins <= _ITEM_SIDE * n_items


def has_circles(first: NDArray[np.intp], second: NDArray[np.intp], n: int) -> bool:
    """Say whether distinct pairs of n items go round in circles anywhere."""
    ties = csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return len(first) > n - int(connected_components(ties, directed=False)[0])


def root_gain(K: Array, laplacian: Array | csr_array, pull: Array) -> Gain:
    """Compute gain and weights by a root of L, R Rᵀ = L: D = R (I + Rᵀ K R)^-½.

    The weights are ``pull − L Σ pull``, small differences of large terms where answers contradict
    each other with little noise. With R y = ``pull`` they are R (I + Rᵀ K R)⁻¹ y, which loses
    nothing.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    laplacian : ndarray or csr_array of shape (n, n)
        L.
    pull : ndarray of shape (n, n_components)
        The sites' shift, pulled back to the items.
    """
    whole = laplacian.toarray() if isinstance(laplacian, csr_array) else laplacian
    n = len(whole)
    strong = np.max(np.diagonal(whole), initial=0.0) * np.max(np.diagonal(K), initial=0.0) > STRONG
    factor, order = _ordered_laplacian_root(whole, strong)
    rank = factor.shape[1]
    root = np.zeros((n, n), order="F")
    root[:, :rank] = factor
    inner = np.array(K[np.ix_(order, order)], order="F")
    residual, y = _solve_by_root(factor, pull[order])
    y -= factor.T @ (inner @ residual)
    inner = blas.dtrmm(1.0, root, inner, side=1, lower=1, overwrite_b=1)
    inner = blas.dtrmm(1.0, root, inner, trans_a=1, lower=1, overwrite_b=1)
    inner.T.flat[:: n + 1] += 1.0
    lower = cholesky(inner)
    weights = np.empty(pull.shape)
    weights[order] = residual + factor @ lapack.dpotrs(lower[:rank, :rank], y, lower=1)[0]
    root = blas.dtrsm(1.0, lower, root, side=1, lower=1, trans_a=1, overwrite_b=1)
    back = np.empty((n, rank))
    back[order] = root[:, :rank]
    return Gain(back, weights)


def _solve_by_root(root, pull):
    """Return what of a pull a lower trapezoidal root R does not reach, and y with R y the rest."""
    rank = root.shape[1]
    y = np.zeros((rank, pull.shape[1]))
    used = np.count_nonzero(np.diagonal(root))
    y[:used] = solve_lower(root[:used, :used], pull[:used])
    residual = pull - root @ y
    rounding = len(root) * ROUNDING * (np.abs(root) @ np.abs(y))
    return np.where(np.abs(residual) > rounding, residual, 0.0), y


def _ordered_laplacian_root(laplacian, strong):
    """Compute a lower trapezoidal root of ``laplacian[order][:, order]``, and that order.

    In every set of items that answers connect one row follows from the others; these come last.
    """
    n = len(laplacian)
    if strong:
        apart = -laplacian
        np.fill_diagonal(apart, 0.0)
        if not np.any(apart < 0.0):
            return _eliminate_stars(apart)
    count, member = connected_components(csr_array(laplacian), directed=False)
    last = np.zeros(count, dtype=np.intp)
    last[member] = np.arange(n)
    order = np.concatenate([np.setdiff1d(np.arange(n), last), last])
    rest = n - count
    moved = np.array(laplacian[np.ix_(order, order)], order="F")
    factor, info = lapack.dpotrf(moved[:rest, :rest], lower=1, clean=1)
    if info != 0 or not np.isfinite(np.trace(factor)) or rest == 0:
        largest = float(np.max(np.diagonal(laplacian), initial=0.0))
        factor, order = pivoted_cholesky(laplacian, n * ROUNDING * largest)
        return (factor if factor.shape[1] else np.zeros((n, 1))), order
    follows = solve_lower(factor, moved[:rest, rest:]).T
    return np.concatenate([factor, follows]), order


def _eliminate_stars(apart):
    """Compute `_ordered_laplacian_root` from the precisions between items, which are not negative.

    Where some items are tied together 10¹⁰ times as strongly as others, the weak ties are lost in
    the diagonal of L. Here each item in turn is replaced by ties among those that it was tied to
    (as of resistors a star by a mesh): sums of positive numbers, which lose nothing.
    """
    n = len(apart)
    root = np.zeros((n, n))
    for k in range(n - 1):
        ties = apart[k, k + 1 :].copy()
        total = ties.sum()
        if total > 0.0:
            root[k, k] = np.sqrt(total)
            root[k + 1 :, k] = -ties / root[k, k]
            apart[k + 1 :, k + 1 :] += np.outer(ties, ties / total)
    tied = np.diagonal(root) > 0.0
    order = np.argsort(~tied, kind="stable")
    if not tied.any():
        return np.zeros((n, 1)), order
    return root[np.ix_(order, np.flatnonzero(tied))], order
