"""Kernels on duels and on featureless items, and gradients of scikit-learn kernels."""

import numpy as np
from sklearn.gaussian_process import kernels as gp

from ._kernel_gradients import (
    Parts,
    assemble,
    condense,
    cross_terms,
    diagonal_gradient,
    symmetric_parts,
)

__all__ = [
    "Identity",
    "PreferenceKernel",
    "contracted_input_gradient",
    "diag_gradient",
    "input_gradient",
    "kernel_with_gradient",
    "lengthscale_indices",
    "spectral_sample",
    "theta_gradient",
]


def _rows(X, name="X"):
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} has shape {X.shape}; give a 2-D array (n, n_features).")
    return X


def _fold(K):
    """Margins' covariance from that of the items [first; second] in rows and columns."""
    n, m = K.shape[0] // 2, K.shape[1] // 2
    # Summed in this order, swapping the items of a duel changes the sign and nothing else.
    return (K[:n, :m] + K[n:, m:]) - (K[:n, m:] + K[n:, :m])  # Houlsby et al. (2012), suppl. (1)


class PreferenceKernel(gp.Kernel):
    """Covariance of margins f(a) − f(b) where f has a given kernel on items.

    k((a, b), (c, d)) = k(a, c) + k(b, d) − k(a, d) − k(b, c), so that swapping the items of a
    duel changes the sign. It lets scikit-learn's own Gaussian processes learn from duels, in rows
    ``duels.reshape(len(duels), -1)``; an odd number of columns is a `ValueError`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on items. Its hyperparameters are those of this kernel, prefixed ``kernel__``. A
        `WhiteKernel` in it is noise on each item at each presentation.

    References
    ----------
    Houlsby, Huszár, Ghahramani and Hernández-Lobato (2012), *Collaborative Gaussian Processes for
    Preference Learning*, supplement eq. (1).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = PreferenceKernel(RBF(length_scale=1.0))
    >>> duels = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])
    >>> kernel(duels.reshape(2, -1)).round(3)
    array([[ 0.787, -0.787],
           [-0.787,  0.787]])
    """

    def __init__(self, kernel):
        self.kernel = kernel

    def get_params(self, deep=True):
        """Parameters of this kernel and, if ``deep``, of the one on items."""
        params = {"kernel": self.kernel}
        if deep:
            params |= {f"kernel__{name}": v for name, v in self.kernel.get_params().items()}
        return params

    @property
    def hyperparameters(self):
        """Hyperparameters of the kernel on items, prefixed ``kernel__``."""
        return [
            gp.Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]

    @property
    def theta(self):
        """Logarithms of the free hyperparameters, (n_theta,)."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta):
        self.kernel.theta = theta

    @property
    def bounds(self):
        """Logarithms of the bounds on theta, (n_theta, 2)."""
        return self.kernel.bounds

    def __eq__(self, other):
        return type(self) is type(other) and self.kernel == other.kernel

    def __repr__(self):
        return f"{type(self).__name__}({self.kernel})"

    def _sides(self, X):
        X = _rows(X, "duels")
        if X.shape[1] % 2:
            raise ValueError(
                f"duels have {X.shape[1]} columns, an odd number; a row holds the first item's "
                "features, then as many of the second: duels.reshape(len(duels), -1)."
            )
        return np.split(X, 2, axis=1)

    def _stacked(self, X):
        return np.concatenate(self._sides(X))

    def __call__(self, X, Y=None, eval_gradient=False):
        """Covariance of the margins of duels X (n, 2 d) and Y (m, 2 d), and its gradient.

        Returns
        -------
        K : ndarray of shape (n, m)
        K_gradient : ndarray of shape (n, n, n_theta)
            Only with ``eval_gradient``, which needs ``Y=None``.
        """
        if not eval_gradient:
            return _fold(self.kernel(self._stacked(X), None if Y is None else self._stacked(Y)))
        if Y is not None:
            raise ValueError("The gradient is that of K(X, X): leave Y out with eval_gradient.")
        K, gradient = self.kernel(self._stacked(X), eval_gradient=True)
        return _fold(K), _fold(gradient)

    def diag(self, X):
        """Variances of the margins, (n,)."""
        first, second = self._sides(X)
        block = 128  # kernels give whole matrices: small blocks waste little on the diagonals
        cross = [
            np.diagonal(self.kernel(first[i : i + block], second[i : i + block]))
            for i in range(0, len(first), block)
        ]
        own = self.kernel.diag(first) + self.kernel.diag(second)
        return own - 2.0 * np.concatenate(cross)

    def is_stationary(self):
        """False: it depends on both items of a duel."""
        return False

    def _symmetric_parts(self, X):
        n = len(X)
        base = symmetric_parts(self.kernel, self._stacked(X))
        K = _fold(assemble(base.off, base.diag, 2 * n))

        def contract(off, diag):
            weight = assemble(off, diag, n)
            stacked = np.block([[weight, -weight], [-weight, weight]])
            return base.contract(condense(stacked), np.tile(diag, 2))

        return Parts(condense(K), np.diagonal(K).copy(), contract)


class Identity(gp.StationaryKernelMixin, gp.NormalizedKernelMixin, gp.Kernel):
    """k(x, x') = 1 if the rows are equal, else 0: items that share nothing (Bradley–Terry).

    Unlike `WhiteKernel` it compares values, so equal rows of X and Y have covariance 1.

    Examples
    --------
    >>> import numpy as np
    >>> Identity()(np.array([[0], [1]]), np.array([[1], [1], [2]]))
    array([[0., 0., 0.],
           [1., 1., 0.]])
    """

    def __init__(self):  # scikit-learn reads the parameters off the signature
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        """Equality of the rows of X (n, d) and Y (m, d), and the empty gradient (n, n, 0)."""
        if Y is not None and eval_gradient:
            raise ValueError("The gradient is that of K(X, X): leave Y out with eval_gradient.")
        X = np.atleast_2d(X)
        Y = X if Y is None else np.atleast_2d(Y)
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features and Y has {Y.shape[1]}; give as many.")
        equal = np.ones((len(X), len(Y)), dtype=bool)
        for x, y in zip(X.T, Y.T, strict=True):
            equal &= np.equal.outer(x, y)
        K = equal.astype(np.float64)
        return (K, np.empty((len(X), len(X), 0))) if eval_gradient else K

    def _cross_terms(self, X, Z):
        return self(X, Z), []


def kernel_with_gradient(kernel, X):
    """k(X, X) and its gradient in theta as a linear map of weights.

    Distances and exponentials are shared, and no (n, n, n_theta) array is built for
    `ConstantKernel`, `WhiteKernel`, `DotProduct`, `RBF`, `Matern`, `RationalQuadratic`,
    `PreferenceKernel` and their sums, products and powers. Other kernels go through their own
    ``eval_gradient``.

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
        ``kernel.theta``. ``weight`` (n, n) is symmetric: only its upper triangle is read.

    Raises
    ------
    ValueError
        If X is not 2-D, lengthscales do not fit it, or the weight is not (n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> K, contract = kernel_with_gradient(RBF(2.0), np.array([[0.0], [2.0]]))
    >>> contract(np.ones((2, 2))).round(4)
    array([1.2131])
    """
    X = _rows(X)
    n = len(X)
    off, diag, contraction = symmetric_parts(kernel, X)

    def contract(weight):
        weight = np.asarray(weight, dtype=np.float64)
        if weight.shape != (n, n):
            raise ValueError(f"weight has shape {weight.shape}; K has {(n, n)}, give as much.")
        if contraction is None:
            return np.zeros(0)
        return np.asarray(contraction(condense(weight), np.diagonal(weight)))

    return assemble(off, diag, n), contract


def theta_gradient(kernel, X, weight):
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


def input_gradient(kernel, X, Z):
    """∂k(x_i, z_j)/∂x_i.

    In closed form for the kernels of `kernel_with_gradient` and `Identity`, by central
    differences for others; 0 at kinks (Matérn-1/2 at zero distance).

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
    X, Z = _rows(X), _rows(Z, "Z")
    gradient = np.zeros((len(X), len(Z), X.shape[1]))
    for factor, leaf in cross_terms(kernel, X, Z)[1]:
        gradient += leaf.gradient(factor)
    return gradient


def contracted_input_gradient(kernel, X, Z, W):
    """Σ_j W_ij ∂k(x_i, z_j)/∂x_i, (n, d), without the (n, m, d) array of `input_gradient`.

    W is an array that broadcasts to (n, m), the rest as there.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> contracted_input_gradient(DotProduct(), [[0.0]], [[1.0], [2.0]], [[1.0, 3.0]])
    array([[7.]])
    """
    X, Z = _rows(X), _rows(Z, "Z")
    W = np.broadcast_to(np.asarray(W, dtype=np.float64), (len(X), len(Z)))
    gradient = np.zeros(X.shape)
    for factor, leaf in cross_terms(kernel, X, Z)[1]:
        gradient += leaf.contract(W * factor)
    return gradient


def diag_gradient(kernel, X):
    """∂k(x, x)/∂x at the rows of X (n, d): ndarray (n, d), zero for stationary kernels.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> diag_gradient(DotProduct(), [[1.0, 2.0]])
    array([[2., 4.]])
    """
    return diagonal_gradient(kernel, _rows(X))


def lengthscale_indices(kernel):
    """Where the free lengthscales are in ``kernel.theta``.

    Returns
    -------
    list of (int, int or None)
        Index into theta, and the feature it belongs to: None where one lengthscale serves all.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> lengthscale_indices(ConstantKernel() * RBF([1.0, 2.0]) + RBF())
    [(1, 0), (2, 1), (3, None)]
    """
    found, index = [], 0
    for hyperparameter in kernel.hyperparameters:
        if hyperparameter.fixed:
            continue
        n = hyperparameter.n_elements
        if hyperparameter.name.endswith("length_scale"):
            found += [(index + k, k if n > 1 else None) for k in range(n)]
        index += n
    return found


def _draw_frequencies(kernel, n, d, rng):
    """Draws (n, d) from the normalised spectral density, and k(x, x); None if it is not known."""
    kind = type(kernel)
    if kind is gp.ConstantKernel:
        return np.zeros((n, d)), float(kernel.constant_value)
    if kind in (gp.RBF, gp.Matern):
        normal = rng.standard_normal((n, d))
        nu = getattr(kernel, "nu", np.inf)
        if nu != np.inf:  # the spectral density is a multivariate t with 2 nu degrees of freedom
            normal /= np.sqrt(rng.chisquare(2.0 * nu, (n, 1)) / (2.0 * nu))
        return normal / np.squeeze(kernel.length_scale), 1.0
    if kind not in (gp.Sum, gp.Product):
        return None
    one = _draw_frequencies(kernel.k1, n, d, rng)
    two = _draw_frequencies(kernel.k2, n, d, rng)
    if one is None or two is None:
        return None
    if kind is gp.Product:  # a product of kernels convolves the spectral densities
        return one[0] + two[0], one[1] * two[1]
    total = one[1] + two[1]
    expected = n * one[1] / total
    n_one = int(expected) + (rng.random() < expected % 1.0)
    from_one = rng.permutation(n) < n_one  # which terms: independent of any other sum's
    return np.where(from_one[:, None], one[0], two[0]), total


def spectral_sample(kernel, n_features, d, rng):
    """Random frequencies and amplitudes with Σ_k a_k² cos(ω_kᵀ(x − x')) ≈ k(x, x').

    Unbiased for `ConstantKernel`, `RBF`, `Matern` (any nu) and their sums and products.

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
    drawn = _draw_frequencies(kernel, n_features, d, rng)
    if drawn is None:
        return None
    frequencies, variance = drawn
    return frequencies, np.full(n_features, np.sqrt(variance / n_features))
