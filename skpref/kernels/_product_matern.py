"""The product of one-dimensional Matérn-3/2 kernels, one a feature."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array

Scales: TypeAlias = float | ArrayLike
_SQRT_3 = np.sqrt(3.0)


class ProductMatern(gp.StationaryKernelMixin, gp.NormalizedKernelMixin, gp.Kernel):
    """k(x, x') = Π_d (1 + s_d) exp(−s_d), s_d = √3 |x_d − x'_d| / l_d.

    A utility of this kernel is as rough along every feature as one of `Matern` with nu = 3/2, but
    features interact less: the kernel of [1]_.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        One for all features, or one a feature (automatic relevance determination).
    length_scale_bounds : (float, float), array-like or "fixed", default=(1e-5, 1e5)

    References
    ----------
    .. [1] Simpson and Gurevych, "Finding convincing arguments using scalable Bayesian preference
       learning", TACL 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.kernels import ProductMatern
    >>> ProductMatern([1.0, 2.0])(np.array([[0.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.379],
           [0.379, 1.   ]])
    """

    def __init__(
        self,
        length_scale: Scales = 1.0,
        length_scale_bounds: tuple[float, float] | ArrayLike | str = (1e-5, 1e5),
    ) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    @property
    def anisotropic(self) -> bool:
        """Whether every feature has a lengthscale of its own."""
        return np.iterable(self.length_scale) and np.size(self.length_scale) > 1

    @property
    def hyperparameter_length_scale(self) -> gp.Hyperparameter:
        """The lengthscales."""
        bounds, n = self.length_scale_bounds, np.size(self.length_scale)
        return gp.Hyperparameter("length_scale", "numeric", bounds, n)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Covariances of the rows of X (n, d) and Y (m, d), and their gradient (n, n, n_theta)."""
        if Y is not None and eval_gradient:
            raise ValueError("The gradient is that of K(X, X): leave Y out with eval_gradient.")
        X = np.atleast_2d(X)
        Y = X if Y is None else np.atleast_2d(Y)
        K = product_value(self, X, Y)
        if not eval_gradient:
            return K
        if self.hyperparameter_length_scale.fixed:
            return K, np.empty((*K.shape, 0))
        slopes = np.stack([K * s**2 / (1.0 + s) for s in distances(self, X, Y)], axis=-1)
        return K, slopes if self.anisotropic else slopes.sum(axis=-1, keepdims=True)

    def __repr__(self) -> str:
        lengths = np.atleast_1d(self.length_scale)
        shown = ", ".join(f"{each:.3g}" for each in lengths)
        return f"{type(self).__name__}(length_scale={f'[{shown}]' if len(lengths) > 1 else shown})"


def lengths_of(kernel: ProductMatern, n_features: int) -> Array:
    """A lengthscale for each feature."""
    lengths = np.atleast_1d(np.asarray(kernel.length_scale, dtype=np.float64))
    if lengths.ndim > 1 or len(lengths) not in (1, n_features):
        raise ValueError(
            f"{type(kernel).__name__} has length_scale of shape {lengths.shape}, but X has "
            f"{n_features} features. Give one number, or one a feature."
        )
    return np.broadcast_to(lengths, (n_features,))


def distances(kernel: ProductMatern, X: Array, Z: Array, aligned: bool = False) -> Iterator[Array]:
    """s_d of all pairs of rows, or of the rows one by one, feature by feature."""
    apart = np.subtract if aligned else np.subtract.outer
    for x, z, length in zip(X.T, Z.T, lengths_of(kernel, X.shape[1]), strict=True):
        yield np.abs(apart(x, z)) * (_SQRT_3 / length)


def product_value(kernel: ProductMatern, X: Array, Z: Array, aligned: bool = False) -> Array:
    """k of all pairs of rows, or of the rows one by one."""
    n = len(X)
    product, exponent = np.ones((2, n) if aligned else (2, n, len(Z)))
    exponent -= 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for s in distances(kernel, X, Z, aligned):
            exponent += s
            s += 1.0
            product *= s
        value = product * np.exp(-exponent)
    return np.where(exponent < 700.0, value, 0.0)  # there exp is nothing, and the product may be ∞
