"""Moments of a posterior at many items with their gradients: what an acquisition is computed on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skpref._joint import JointMoments
from skpref._linalg import Array
from skpref._paths import SamplePaths
from skpref._posterior import Posterior


class Moments(NamedTuple):
    """Joint moments of f at n items and at the incumbent, for S components.

    Attributes
    ----------
    mean : ndarray of shape (n, S)
    var, cov : ndarray of shape (n,)
        Variance at the items and covariance with the incumbent, shared by the components.
    incumbent_mean : ndarray of shape (S,)
    incumbent_var : float
    threshold : ndarray of shape (S,)
        What an improvement improves on.
    margin_noise : float
        Variance of the noise on a margin.
    """

    mean: Array
    var: Array
    cov: Array
    incumbent_mean: Array
    incumbent_var: float
    threshold: Array
    margin_noise: float


class Value(NamedTuple):
    """An acquisition at n items and its derivatives in the moments."""

    value: Array
    by_mean: Array
    by_var: Array | float = 0.0
    by_cov: Array | float = 0.0


class Surface:
    """An acquisition as a function of the item, with its gradient.

    Parameters
    ----------
    acquisition : callable
        `Moments` to `Value`.
    posterior : Posterior
    incumbent : ndarray of shape (d,)
    threshold : ndarray of shape (n_components,)
    """

    def __init__(
        self,
        acquisition: Callable[[Moments], Value],
        posterior: Posterior,
        incumbent: Array,
        threshold: Array,
    ) -> None:
        self._acquisition, self._threshold = acquisition, threshold
        self._joint = posterior.joint_with(incumbent)
        self._margin_noise = posterior.likelihood.margin_variance

    def _evaluate(self, joint: JointMoments) -> Value:
        return self._acquisition(Moments(*joint, self._threshold, self._margin_noise))

    def value(self, X: Array) -> Array:
        """The acquisition at the rows of X, (n,)."""
        return self._evaluate(self._joint.moments(X)).value

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """The acquisition (n,) and its gradient in the items (n, d)."""
        joint, pull_back = self._joint.moments_and_pull_back(X)
        found = self._evaluate(joint)
        return found.value, pull_back(found.by_mean, found.by_var, found.by_cov)


class PathSurface:
    """A drawn function as a surface: what Thompson sampling maximises.

    Parameters
    ----------
    paths : SamplePaths
        Of one path.
    """

    def __init__(self, paths: SamplePaths) -> None:
        self._paths = paths

    def value(self, X: Array) -> Array:
        """The utility at the rows of X, (n,)."""
        return self._paths(X)[:, 0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """The utility (n,) and its gradient in the items (n, d)."""
        value, gradient = self._paths.value_and_gradient(X)
        return value[:, 0], gradient[:, :, 0]


class Numeric:
    """Any function of items as a surface; gradients by central differences."""

    _STEP = 1e-5

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function

    def value(self, X: Array) -> Array:
        """The function at the rows of X, (n,)."""
        found = np.asarray(self._function(X), dtype=np.float64)
        if found.size != len(X):
            raise ValueError(
                f"An acquisition must return one value for each row of X, {len(X)} of them; got "
                f"an array of shape {found.shape}."
            )
        return found.reshape(-1)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """The function (n,) and its gradient (n, d)."""
        n, d = X.shape
        above = np.minimum(X[:, None, :] + self._STEP * np.eye(d), 1.0)
        below = np.maximum(X[:, None, :] - self._STEP * np.eye(d), 0.0)
        rows = np.concatenate([X, above.reshape(-1, d), below.reshape(-1, d)])
        values = self.value(rows)
        high, low = values[n : n + n * d].reshape(n, d), values[n + n * d :].reshape(n, d)
        taken = np.einsum("ijj->ij", above - below)
        with np.errstate(invalid="ignore"):  # a function may be infinite over there
            return values[:n], (high - low) / taken
