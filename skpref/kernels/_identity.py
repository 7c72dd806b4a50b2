"""The kernels of items that share nothing."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array


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

    def __init__(self) -> None:  # scikit-learn reads the parameters off the signature
        pass

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
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


class ItemEffect(gp.RBF):
    """An RBF so short that it tells all items apart: what features do not explain of an item.

    Items count as one and the same where they differ by rounding alone, so that the lengthscales
    are a small share of the spread of the features. They are not learned.

    Parameters
    ----------
    length_scale : float or ndarray of shape (n_features,), default=1e-4
    length_scale_bounds : "fixed" or (float, float), default="fixed"

    Examples
    --------
    >>> import numpy as np
    >>> ItemEffect()(np.array([[0.0], [0.1]]), np.array([[0.1], [0.1 + 1e-12]]))
    array([[0., 0.],
           [1., 1.]])
    """

    def __init__(
        self,
        length_scale: float | Array = 1e-4,
        length_scale_bounds: str | tuple[float, float] = "fixed",
    ) -> None:
        super().__init__(length_scale, length_scale_bounds)
