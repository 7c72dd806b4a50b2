"""Moments of a posterior at many items with their gradients: what an acquisition is computed on."""

from typing import NamedTuple

import numpy as np

from skpref.kernels._gradients import CrossKernel, diag_with_gradient

# Variances below this share of the prior's are rounding.
_FLOOR = 1e-12


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
    noise_variance : float
        σ² of each utility.
    """

    mean: np.ndarray
    var: np.ndarray
    cov: np.ndarray
    incumbent_mean: np.ndarray
    incumbent_var: float
    threshold: np.ndarray
    noise_variance: float


class Value(NamedTuple):
    """An acquisition at n items and its derivatives in the moments."""

    value: np.ndarray
    by_mean: np.ndarray
    by_var: np.ndarray | float = 0.0
    by_cov: np.ndarray | float = 0.0


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

    def __init__(self, acquisition, posterior, incumbent, threshold):
        self._acquisition, self._posterior = acquisition, posterior
        # The incumbent is one more anchor: the covariance with it is then a column like others.
        self._anchors = np.concatenate([posterior.anchors, incumbent[None]])
        at = posterior.kernel(incumbent[None], posterior.anchors)
        self._half = (at @ posterior.factor)[0]
        prior = float(posterior.kernel.diag(incumbent[None])[0])
        self._own_mean = (at @ posterior.weights)[0]
        self._own_var = max(prior - float(self._half @ self._half), _FLOOR * prior)
        self._threshold = threshold

    def _moments(self, X, K):
        posterior = self._posterior
        half = K[:, :-1] @ posterior.factor
        prior = posterior.kernel.diag(X)
        var = prior - np.einsum("ij,ij->i", half, half)
        var = np.maximum(var, _FLOOR * prior)
        mean = K[:, :-1] @ posterior.weights
        cov = K[:, -1] - half @ self._half
        own = self._own_mean, self._own_var, self._threshold
        return Moments(mean, var, cov, *own, posterior.noise_variance), half

    def value(self, X):
        """The acquisition at the rows of X, (n,)."""
        K = self._posterior.kernel(X, self._anchors)
        return self._acquisition(self._moments(X, K)[0]).value

    def value_and_gradient(self, X):
        """The acquisition (n,) and its gradient in the items (n, d)."""
        posterior = self._posterior
        cross = CrossKernel(posterior.kernel, X, self._anchors)
        K = cross.value
        moments, half = self._moments(X, K)
        found = self._acquisition(moments)
        by_var = np.broadcast_to(found.by_var, len(X))
        by_cov = np.broadcast_to(found.by_cov, len(X))
        pull = -2.0 * by_var[:, None] * half - by_cov[:, None] * self._half
        weight = np.empty(K.shape)
        weight[:, :-1] = found.by_mean @ posterior.weights.T + pull @ posterior.factor.T
        weight[:, -1] = by_cov
        gradient = cross.contract(weight)
        own = diag_with_gradient(posterior.kernel, X)[1]
        if own is not None:
            gradient += by_var[:, None] * own
        return found.value, gradient


class PathSurface:
    """A drawn function as a surface: what Thompson sampling maximises.

    Parameters
    ----------
    paths : SamplePaths
        Of one path.
    """

    def __init__(self, paths):
        self._paths = paths

    def value(self, X):
        """The utility at the rows of X, (n,)."""
        return self._paths(X)[:, 0]

    def value_and_gradient(self, X):
        """The utility (n,) and its gradient in the items (n, d)."""
        value, gradient = self._paths.value_and_gradient(X)
        return value[:, 0], gradient[:, :, 0]


class Numeric:
    """Any function of items as a surface; gradients by central differences."""

    _STEP = 1e-5

    def __init__(self, function):
        self._function = function

    def value(self, X):
        """The function at the rows of X, (n,)."""
        found = np.asarray(self._function(X), dtype=np.float64)
        if found.size != len(X):
            raise ValueError(
                f"An acquisition must return one value for each row of X, {len(X)} of them; got "
                f"an array of shape {found.shape}."
            )
        return found.reshape(-1)

    def value_and_gradient(self, X):
        """The function (n,) and its gradient (n, d)."""
        n, d = X.shape
        above = np.minimum(X[:, None, :] + self._STEP * np.eye(d), 1.0)
        below = np.maximum(X[:, None, :] - self._STEP * np.eye(d), 0.0)
        rows = np.concatenate([X, above.reshape(-1, d), below.reshape(-1, d)])
        values = self.value(rows)
        high, low = values[n : n + n * d].reshape(n, d), values[n + n * d :].reshape(n, d)
        taken = np.einsum("ijj->ij", above - below)
        return values[:n], (high - low) / taken
