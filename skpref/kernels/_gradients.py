"""Kernels with their gradients in hyperparameters and inputs, and draws of their spectra."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from skpref.kernels._contracts import (
    Array,
    Kernel,
    assemble,
    far_origin,
    paired_kernel_values,
    strict_upper_triangle,
)
from skpref.kernels._views import ACROSS, CROSS, DIAGONAL, PAIRED, PAIRS, SPECTRUM
from skpref.kernels._wrappers import Padded, check_rows, fold


def _ignore_overflow() -> np.errstate:
    """Return a context in which overflow and division by zero are not reported."""
    # Hyperparameters far out overflow or underflow on the way to values that are sound.
    return np.errstate(over="ignore", divide="ignore", invalid="ignore")


def _replace_nan(gradient: Array) -> Array:
    """A gradient without NaN: where the kernel itself has overflowed, it has no slope."""
    if math.isfinite(gradient.sum()):
        return gradient
    return np.nan_to_num(gradient, copy=False)


def kernel_with_gradient(
    kernel: Kernel, X: ArrayLike
) -> tuple[Array, Callable[[ArrayLike], Array]]:
    """k(X, X) and its gradient in theta as a linear map of weights.

    Distances and exponentials are shared, and no (n, n, n_theta) array is built for
    `ConstantKernel`, `WhiteKernel`, `DotProduct`, `RBF`, `Matern`, `RationalQuadratic`,
    `Identity`, and sums, products, powers, `OnColumns` and `PreferenceKernel` of them. Other
    kernels go through their own ``eval_gradient``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array-like of shape (n, d)

    Returns
    -------
    K : ndarray of shape (n, n)
        ``kernel(X)``.
    contract : callable
        ``contract(weight)`` → ndarray (n_theta,): Σ_ij weight_ij ∂K_ij/∂theta, in the order of
        ``kernel.theta``. ``weight`` (n, n) is symmetric: only its upper triangle is read. Where
        K overflows, the gradient is 0 or the largest number of its sign, never NaN.

    Raises
    ------
    ValueError
        If X is not 2-D, lengthscales or columns do not fit it, or the weight is not (n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> K, contract = kernel_with_gradient(RBF(2.0), np.array([[0.0], [2.0]]))
    >>> contract(np.ones((2, 2))).round(4)
    array([1.2131])
    """
    rows = check_rows(X)
    n = len(rows)
    with _ignore_overflow():
        off, diag, contraction = fold(kernel, PAIRS, rows)
        K = assemble(off, diag, n)

    def contract(weight: ArrayLike) -> Array:
        weight = np.asarray(weight, dtype=np.float64)
        if weight.shape != (n, n):
            raise ValueError(f"weight has shape {weight.shape}; K has {(n, n)}, give as much.")
        if contraction is None:
            return np.zeros(0)
        with _ignore_overflow():
            return _replace_nan(
                np.asarray(contraction(strict_upper_triangle(weight), np.diagonal(weight)))
            )

    return K, contract


def kernel_values(
    kernel: Kernel, X: Array, Z: Array | None = None, *, aligned: bool = False
) -> Array:
    """k(X, Z), by default k(X, X), or k(x_i, z_i) row by row, with all digits far from zero too.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : ndarray of shape (n, d)
    Z : ndarray of shape (m, d), optional
    aligned : bool, default=False
        Whether the rows meet one by one; then n = m.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel_values(RBF(3.0), 1e15 + np.array([[0.0], [3.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    if isinstance(kernel, Padded):
        Z = None if Z is None else kernel.inner_rows(Z)
        kernel, X = kernel.kernel, kernel.inner_rows(X)
    if Z is None:
        return kernel(X) if far_origin(X) is None else kernel_with_gradient(kernel, X)[0]
    if far_origin(X, Z) is None:
        return paired_kernel_values(kernel, X, Z) if aligned else kernel(X, Z)
    return across(kernel, X, Z, aligned=aligned)[0]


def theta_gradient(kernel: Kernel, X: ArrayLike, weight: ArrayLike) -> Array:
    """Σ_ij weight_ij ∂K_ij/∂theta for a symmetric weight, (n_theta,).

    See `kernel_with_gradient`, which also gives K.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import ConstantKernel
    >>> theta_gradient(ConstantKernel(3.0), np.zeros((2, 1)), np.eye(2))
    array([6.])
    """
    return kernel_with_gradient(kernel, X)[1](weight)


def across(
    kernel: Kernel, X: ArrayLike, Z: ArrayLike, *, aligned: bool = False
) -> tuple[Array, Callable[[Array], Array]]:
    """k(X, Z), or k(x_i, z_i) row by row, and its gradient in theta as a linear map of weights.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array-like of shape (n, d)
    Z : array-like of shape (m, d)
    aligned : bool, default=False
        Whether the rows meet one by one; then n = m.

    Returns
    -------
    value : ndarray of shape (n, m), or (n,) if ``aligned``
    contract : callable
        ``contract(weight)`` → ndarray (n_theta,): Σ weight ∂value/∂theta, for weights of that
        shape.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> value, contract = across(RBF(2.0), [[0.0]], [[2.0], [0.0]])
    >>> value.round(4), contract(np.ones((1, 2))).round(4)
    (array([[0.6065, 1.    ]]), array([0.6065]))
    """
    rows, others = check_rows(X), check_rows(Z, "Z")
    shape = (len(rows),) if aligned else (len(rows), len(others))
    with _ignore_overflow():
        answer = fold(kernel, PAIRED if aligned else ACROSS, rows, others)

    def contract(weight: Array) -> Array:
        if answer.contract is None:
            return np.zeros(0)
        with _ignore_overflow():
            return _replace_nan(np.asarray(answer.contract(weight), dtype=np.float64))

    return np.broadcast_to(answer.value, shape), contract


class CrossKernel:
    """k(X, Z) and its gradient in X, whose distances and exponentials are shared.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : ndarray of shape (n, d)
    Z : ndarray of shape (m, d)

    Attributes
    ----------
    value : ndarray of shape (n, m)
    """

    def __init__(self, kernel: Kernel, X: Array, Z: Array) -> None:
        self._shape = X.shape
        with _ignore_overflow():
            value, self._slopes = fold(kernel, CROSS, X, Z)
        shape = (len(X), len(Z))
        self.value = value if isinstance(value, np.ndarray) else np.full(shape, float(value))

    def gradient(self) -> Array:
        """∂k(x_i, z_j)/∂x_i, (n, m, d)."""
        whole = np.zeros((*self.value.shape, self._shape[1]))
        with _ignore_overflow():
            for factor, slope in self._slopes:
                whole += slope.gradient(factor)
        return _replace_nan(whole)

    def contract(self, weight: Array) -> Array:
        """Σ_j weight_ij ∂k(x_i, z_j)/∂x_i, (n, d)."""
        whole = np.zeros(self._shape)
        with _ignore_overflow():
            for factor, slope in self._slopes:
                alone = isinstance(factor, float) and factor == 1.0
                whole += slope.contract(weight if alone else weight * factor)
        return _replace_nan(whole)


def input_gradient(kernel: Kernel, X: ArrayLike, Z: ArrayLike) -> Array:
    """∂k(x_i, z_j)/∂x_i.

    In closed form for the kernels of `kernel_with_gradient`, by central differences for others;
    0 at kinks (Matérn-1/2 at zero distance).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array-like of shape (n, d)
    Z : array-like of shape (m, d)

    Returns
    -------
    ndarray of shape (n, m, d)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> input_gradient(DotProduct(), [[1.0, 2.0]], [[3.0, 4.0]])
    array([[[3., 4.]]])
    """
    return CrossKernel(kernel, check_rows(X), check_rows(Z, "Z")).gradient()


def contracted_input_gradient(kernel: Kernel, X: ArrayLike, Z: ArrayLike, W: ArrayLike) -> Array:
    """Σ_j W_ij ∂k(x_i, z_j)/∂x_i, (n, d), without the (n, m, d) array of `input_gradient`.

    W is an array that broadcasts to (n, m), the rest as there.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> contracted_input_gradient(DotProduct(), [[0.0]], [[1.0], [2.0]], [[1.0, 3.0]])
    array([[7.]])
    """
    cross = CrossKernel(kernel, check_rows(X), check_rows(Z, "Z"))
    return cross.contract(np.broadcast_to(np.asarray(W, dtype=np.float64), cross.value.shape))


def diag_with_gradient(kernel: Kernel, X: Array) -> tuple[Array, Array | None]:
    """k(x, x), (n,), and its gradient (n, d): None where it is zero everywhere."""
    with _ignore_overflow():
        value, gradient = fold(kernel, DIAGONAL, X)
    return value, None if gradient is None else _replace_nan(gradient)


def diag_gradient(kernel: Kernel, X: ArrayLike) -> Array:
    """∂k(x, x)/∂x at the rows of X (n, d): ndarray (n, d), zero for stationary kernels.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> diag_gradient(DotProduct(), [[1.0, 2.0]])
    array([[2., 4.]])
    """
    rows = check_rows(X)
    gradient = diag_with_gradient(kernel, rows)[1]
    return np.zeros(rows.shape) if gradient is None else gradient


def spectral_sample(
    kernel: Kernel, n_features: int, d: int, rng: np.random.Generator
) -> tuple[Array, Array] | None:
    """Random frequencies and amplitudes with Σ_k a_k² cos(ω_kᵀ(x − x')) ≈ k(x, x').

    Unbiased for `ConstantKernel`, `RBF`, `Matern` (any nu), and sums, products, whole powers and
    `OnColumns` of them.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_features : int
        Number of frequencies.
    d : int
        Number of features of an item.
    rng : numpy.random.Generator

    Returns
    -------
    (frequencies, amplitudes) or None
        ndarrays (n_features, d) and (n_features,); None for any other kernel.

    References
    ----------
    Rahimi and Recht (2007), *Random Features for Large-Scale Kernel Machines*; GPML (4.15).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> frequencies, amplitudes = spectral_sample(4.0 * RBF(0.5), 100, 3, np.random.default_rng(0))
    >>> frequencies.shape, round(float(amplitudes @ amplitudes), 6)
    ((100, 3), 4.0)
    """
    spectrum = fold(kernel, SPECTRUM, np.empty((0, d)))
    if spectrum is None:
        return None
    frequencies = spectrum.draw(n_features, rng)
    return frequencies, np.full(n_features, np.sqrt(spectrum.variance / n_features))
