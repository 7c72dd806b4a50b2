"""A kernel of finite rank: what another Gaussian process knows of its values at some anchors."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import (
    Across,
    Array,
    Cross,
    Diagonal,
    Kernel,
    Pairs,
    Slope,
    strict_upper_triangle,
)
from skpref.kernels._gradients import CrossKernel
from skpref.kernels._leaves import LEAVES, Leaf
from skpref.kernels._wrappers import check_rows


class AnchorFeatures(gp.Kernel):
    """k(x, x') = c(x, Z) R Rᵀ c(Z, x'): a random sum of another kernel's functions at anchors.

    With R Rᵀ = C⁻¹ S C⁻¹, where C = c(Z, Z), its covariance of the anchors is S, and it goes on
    between them as the mean of a Gaussian process of kernel c does. It has no hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        c; its hyperparameters are held.
    anchors : ndarray of shape (m, n_features)
        Z.
    root : ndarray of shape (m, rank)
        R.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = AnchorFeatures(RBF(1.0), np.zeros((1, 1)), np.array([[2.0]]))
    >>> kernel(np.array([[0.0], [1.0]])).round(3)
    array([[4.   , 2.426],
           [2.426, 1.472]])
    """

    def __init__(self, kernel: Kernel, anchors: Array, root: Array) -> None:
        self.kernel = kernel
        self.anchors = anchors
        self.root = root

    def features(self, X: ArrayLike) -> Array:
        """Return the features Rᵀ c(Z, x) of rows, (n, rank)."""
        return np.asarray(self.kernel(check_rows(X), self.anchors) @ self.root)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Covariances of the rows of X (n, d) and Y (m, d); the gradient has no columns."""
        x = self.features(X)
        K = x @ (x if Y is None else self.features(Y)).T
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: ArrayLike) -> Array:
        """Variances k(x, x), (n,)."""
        return np.asarray(np.sum(self.features(X) ** 2, axis=1))

    def is_stationary(self) -> bool:
        """False: the variance depends on the place."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel}, {len(self.anchors)} anchors)"


class _AnchorLeaf(Leaf):
    def pairs(self, kernel: AnchorFeatures, X: Array) -> Pairs:
        x = kernel.features(X)
        return Pairs(strict_upper_triangle(x @ x.T), np.einsum("ij,ij->i", x, x), None)

    def cross(self, kernel: AnchorFeatures, X: Array, Z: Array) -> Cross:
        at_anchors = CrossKernel(kernel.kernel, X, kernel.anchors)
        weights = kernel.root @ kernel.features(Z).T  # (n_anchors, m)

        def gradient(factor: Array | float) -> Array:
            slopes = np.einsum("iad,aj->ijd", at_anchors.gradient(), weights)
            return np.asarray(factor)[..., None] * slopes

        slope = Slope(gradient, lambda weight: at_anchors.contract(weight @ weights.T))
        return Cross(at_anchors.value @ weights, [(1.0, slope)])

    def diagonal(self, kernel: AnchorFeatures, X: Array) -> Diagonal:
        at_anchors = CrossKernel(kernel.kernel, X, kernel.anchors)
        x = at_anchors.value @ kernel.root
        return Diagonal(np.einsum("ij,ij->i", x, x), 2.0 * at_anchors.contract(x @ kernel.root.T))

    def across(self, kernel: AnchorFeatures, X: Array, Z: Array, aligned: bool) -> Across:
        x, z = kernel.features(X), kernel.features(Z)
        return Across(np.einsum("ij,ij->i", x, z) if aligned else x @ z.T, None)


LEAVES[AnchorFeatures] = _AnchorLeaf()
