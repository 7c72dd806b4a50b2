"""Factorisations of covariances, and what rounding leaves of variances."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, lapack, qr, solve_triangular

Array: TypeAlias = NDArray[np.float64]

# Doubles of one intermediate array: rows are taken in blocks that have no more (8 MiB).
BLOCK = 2**20

# A variance is a difference of covariances. Less than this share of them is rounding.
ROUNDING = float(np.finfo(np.float64).eps)
# A variance of less than this share of the prior's is none: nothing is divided by its root.
NEGLIGIBLE = 1e-12
# Rounding never leaves a covariance further than this from semi-definite, relative to its scale.
_REPAIRABLE = 1e-6
# Share by which two results may differ and count as the same: of an integral what a quadrature may
# leave, of an iteration the last step, of a hyperparameter its distance to a bound.
TOLERANCE = 1e-8
# Steps of an iteration that converges, at most.
ITERATION_CAP = 100


class NoCovarianceError(ValueError):
    """A matrix that was to be factorised is no covariance, beyond what rounding explains."""


def floor_variance(variance: Array, scale: Array | float, share: float = ROUNDING) -> Array:
    """Return a variance of at least a share of the scale it was computed at.

    Parameters
    ----------
    variance : ndarray or float
    scale : ndarray or float
        Sum of the variances that it is a difference of.
    share : float, default=ROUNDING
    """
    return np.maximum(variance, share * scale)


def cholesky(matrix: ArrayLike) -> Array:
    """Return the lower Cholesky factor, with the least jitter where rounding needs some.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric positive semi-definite up to rounding.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    scale = max(float(np.max(np.diagonal(matrix), initial=0.0)), 1e-300)
    jitter = ROUNDING * scale
    while _has_failed(factor, info):
        jitter *= 8.0
        if not (np.isfinite(scale) and jitter <= _REPAIRABLE * scale):
            raise NoCovarianceError(
                "a covariance matrix holds NaN or infinity, or is far from positive "
                "semi-definite: check that the kernel is a valid covariance function with finite "
                "hyperparameters; for a polynomial kernel centre and scale the features, for "
                "instance by Itemwise(StandardScaler())"
            )
        shifted = matrix + jitter * np.eye(len(matrix))
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1)
    return factor


def _has_failed(factor: Array, info: int) -> bool:
    # LAPACK lets NaN pass with info = 0.
    """Return whether LAPACK could not factorise a matrix."""
    return info != 0 or not np.isfinite(np.diagonal(factor).sum())


def inverse_cholesky(matrix: Array) -> tuple[Array, float]:
    """Return L⁻¹ and log-determinant of an I-plus-semidefinite matrix, L its Cholesky factor."""
    if not len(matrix):  # which LAPACK does not take
        return matrix, 0.0
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    if _has_failed(factor, info):
        factor = cholesky(matrix)
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor))))
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    return inverse, log_det


def inverse_blocks(matrices: Array) -> tuple[Array, Array]:
    """Return inverses and log-determinants of many small matrices (n, m, m) at once."""
    log_det: Array = np.linalg.slogdet(matrices)[1]
    inverse: Array = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    return inverse, log_det


def cholesky_blocks(matrices: Array) -> Array:
    """Return lower Cholesky factors (n, m, m) of n positive definite matrices."""
    return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)


def solve_blocks(matrices: Array, right: Array) -> Array:
    """Return the solutions of n systems of equations, of the shape of ``right``."""
    if right.ndim == 2:
        return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0])
    return np.asarray(np.linalg.solve(matrices, right))


def pseudosolve_blocks(matrices: Array, right: Array) -> Array:
    """Return solutions of n systems (n, m, k), by pseudo-inverses if one is singular."""
    try:
        return solve_blocks(matrices, right)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(np.nan_to_num(matrices)) @ np.nan_to_num(right))


def spectrum_blocks(matrices: Array) -> tuple[Array, Array]:
    """Return eigenvalues (n, m), ascending, and eigenvectors (n, m, m) of n symmetric matrices."""
    values, vectors = np.linalg.eigh(matrices)
    return values, vectors


def positive_blocks(matrices: Array, least: float) -> NDArray[np.bool_]:
    """Return a mask of the n symmetric matrices that have all eigenvalues above ``least``."""
    try:
        np.linalg.cholesky(matrices - least * np.eye(matrices.shape[1]))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(matrices)[:, 0] > least)
    return np.ones(len(matrices), dtype=bool)


def semidefinite_blocks(matrices: Array, lift: Array) -> Array:
    """Return lower triangular roots of n positive semi-definite matrices of lifted diagonals."""
    matrices = 0.5 * (matrices + np.swapaxes(matrices, 1, 2))
    try:
        return cholesky_blocks(matrices + lift[:, None, None] * np.eye(matrices.shape[1]))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrices)
        lifted = np.sqrt(np.maximum(values, lift[:, None]))
        upper = np.linalg.qr(np.swapaxes(vectors * lifted[:, None, :], 1, 2), mode="r")
        sign = np.where(np.einsum("nii->ni", upper) < 0.0, -1.0, 1.0)
        return np.asarray(np.swapaxes(upper * sign[:, :, None], 1, 2))


def pivoted_cholesky(matrix: Array, tolerance: float) -> tuple[Array, NDArray[np.intp]]:
    """Return the Cholesky factor of a semi-definite matrix in the order of its pivots.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    tolerance : float
        A variance, given the rows before, that counts as none.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        Lower trapezoidal; its product with its transpose is ``matrix[order][:, order]``.
    order : ndarray of shape (n,)
        The first ``rank`` determine the rest, up to the tolerance.
    """
    factor, pivots, rank, _ = lapack.dpstrf(matrix, tol=tolerance, lower=1)
    if np.max(np.diagonal(matrix), initial=0.0) <= tolerance:
        rank = 0  # LAPACK looks at the tolerance from the second pivot on
    return np.tril(factor)[:, :rank], pivots.astype(np.intp) - 1


def semidefinite_root(matrix: Array) -> Array:
    """Return F (n, r) with F Fᵀ equal to a semi-definite matrix to machine precision.

    Cholesky where it exists, else pivoted Cholesky, which stops at the numerical rank r.
    """
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    if not _has_failed(factor, info):
        return factor
    scale = float(np.max(np.diagonal(matrix), initial=0.0))
    factor, order = pivoted_cholesky(matrix, len(matrix) * ROUNDING * scale)
    root = np.zeros((len(matrix), max(factor.shape[1], 1)))
    root[order, : factor.shape[1]] = factor
    return root


def _root_spectrum(matrix: Array) -> tuple[Array, Array]:
    """Return roots of eigenvalues, negative ones as 0, and eigenvectors."""
    if not matrix.size:  # SciPy before 1.14 refuses it
        return np.zeros(len(matrix)), np.zeros_like(matrix)
    values, vectors = eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0)), vectors


def eigen_root(matrix: Array) -> Array:
    """Return F with F Fᵀ equal to a symmetric matrix whose negative eigenvalues are rounding."""
    roots, vectors = _root_spectrum(matrix)
    return vectors * roots


def symmetric_root(matrix: Array) -> Array:
    """Return the symmetric F with F F equal to a matrix whose negative eigenvalues are rounding.

    It is the root for draws: of other roots, by eigenvectors or by pivots, rounding chooses among
    many, and draws of one seed would hang on the processor.
    """
    roots, vectors = _root_spectrum(matrix)
    return np.asarray((vectors * roots) @ vectors.T)


def spanning_columns(matrix: Array, least: float) -> tuple[NDArray[np.intp], Array, Array]:
    """Return columns of a matrix that span all, and the factors of these.

    Parameters
    ----------
    matrix : ndarray of shape (n, m)
    least : float
        A column counts as dependent where its residual on those before is no longer than this.

    Returns
    -------
    chosen : ndarray of shape (rank,)
        At least one, if there is any.
    Q : ndarray of shape (n, rank)
        Orthonormal columns.
    R : ndarray of shape (rank, rank)
        Upper triangular; ``matrix[:, chosen] = Q @ R``.
    """
    Q, R, order = qr(matrix, mode="economic", pivoting=True)
    rank = max(int(np.count_nonzero(np.abs(np.diagonal(R)) > least)), 1)
    return order[:rank].astype(np.intp), Q[:, :rank], R[:rank, :rank]


def jointly_diagonal(one: Array, other: Array | None) -> tuple[Array, Array]:
    """Return L and λ with one = L Lᵀ and other = L diag(λ) Lᵀ, one positive definite.

    Without the other λ is zero.
    """
    if other is None:
        return cholesky(one), np.zeros(len(one))
    values, vectors = eigh(other, one)
    return one @ vectors, np.maximum(values, 0.0)


def leading_axes(matrix: Array, n: int) -> Array:
    """Return eigenvectors of the n largest eigenvalues of a symmetric matrix, as columns."""
    return eigh(matrix)[1][:, ::-1][:, :n]


def solve_lower(factor: Array, right: Array) -> Array:
    """Return L⁻¹ times the right side, L a lower triangular factor."""
    if not factor.size or not right.size:  # SciPy before 1.14 refuses them
        return np.zeros_like(right)
    return solve_triangular(factor, right, lower=True)


def is_covariance(K: ArrayLike) -> bool:
    """Return whether a kernel matrix is finite and positive semi-definite up to rounding.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> is_covariance([[1.0, 1.0], [1.0, 1.0]]), is_covariance([[1.0, 2.0], [2.0, 1.0]])
    (True, False)
    """
    try:
        cholesky(K)
    except NoCovarianceError:
        return False
    return True


def covariance_of(precision: Array, least: float) -> Array:
    """Return the covariance of a small precision matrix, its eigenvalues at least ``least``."""
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    return (vectors / np.maximum(values, least)) @ vectors.T


def unit_triangular_band(blocks: Array) -> Array:
    """Return the lower band of a unit triangular matrix with blocks beside its diagonal.

    Parameters
    ----------
    blocks : ndarray of shape (size, size, n)
        ``blocks[:, :, k]`` stands in the rows of element k and the columns of the one before.

    Returns
    -------
    ndarray of shape (2 size, n size)
        As LAPACK has bands, the diagonal first.
    """
    size, _, n = blocks.shape
    band = np.zeros((2 * size, n * size), order="F")
    for i in range(size):
        for j in range(size):
            band[size + i - j, j : (n - 1) * size : size] = blocks[i, j, 1:]
    return band


def solve_band(band: Array, values: Array, trans: str = "N") -> Array:
    """Return the solution of a triangular system with a `unit_triangular_band`.

    Parameters
    ----------
    band : ndarray of shape (2 size, n size)
    values : ndarray of shape (n, size)
        Which are lost.
    trans : {"N", "T"}, default="N"
        "T": of the transposed matrix.

    Returns
    -------
    ndarray of shape (n, size)

    Examples
    --------
    >>> import numpy as np
    >>> band = unit_triangular_band(np.full((1, 1, 3), -2.0))  # x_k - 2 x_{k-1}
    >>> solve_band(band, np.array([[1.0], [0.0], [0.0]])).ravel()
    array([1., 2., 4.])
    """
    stacked = values.reshape(-1, 1)
    solution, _ = lapack.dtbtrs(band, stacked, uplo="L", trans=trans, diag="U", overwrite_b=True)
    return np.asarray(solution).reshape(values.shape)


# Rounding of a covariance: it is the end of a few operations (a distance, a root, an exponential, a
# product).
UNIT = 4.0 * float(np.finfo(np.float64).eps)


def row_blocks(n: int, width: int, doubles: int = 2**16) -> list[slice]:
    """Return slices that divide n rows, each of no more than so many numbers, or of one row.

    Parameters
    ----------
    n : int
    width : int
        Numbers a row.
    doubles : int, default=2**16
        Numbers of a block: half a megabyte, for which the cache of a processor has room.

    Examples
    --------
    >>> row_blocks(5, 3, 6)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    step = max(doubles // max(width, 1), 1)
    return [slice(begin, begin + step) for begin in range(0, n, step)]
