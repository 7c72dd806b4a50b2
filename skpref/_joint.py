"""Joint moments of the utility at items and at one fixed item, and their pull-back to inputs."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from skpref._linalg import NEGLIGIBLE, Array, floor_variance
from skpref.kernels._contracts import Kernel
from skpref.kernels._gradients import CrossKernel, diag_with_gradient

PullBack: TypeAlias = Callable[[Array, Array | float, Array | float], Array]


class JointMoments(NamedTuple):
    """Moments of f at n items and at the fixed item, for S components.

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
        self._anchors = np.concatenate([anchors, item[None]])
        at = kernel(item[None], anchors)
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
        """The moments at the rows of X, (n, n_features)."""
        return self._moments(self._kernel(X, self._anchors), self._kernel.diag(X))[0]

    def moments_and_pull_back(self, X: Array) -> tuple[JointMoments, PullBack]:
        """The moments, and what turns derivatives in them into a gradient in the items.

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


def _column(values: Array | float, n: int) -> Array:
    return values[:, None] if isinstance(values, np.ndarray) else np.full((n, 1), values)
