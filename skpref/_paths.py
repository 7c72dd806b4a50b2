"""Draws of whole functions from a posterior (pathwise conditioning, Wilson et al. 2020)."""

import numpy as np
from scipy.linalg import eigh

from skpref.kernels import spectral_sample

_N_FEATURES = 2000


def covariance_root(covariance):
    """F with F Fᵀ equal to a symmetric matrix whose negative eigenvalues are rounding."""
    values, vectors = eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def draw_weights(posterior, weights, rng):
    """Weights u with k(·, Z) u the random part that conditioning adds to a prior draw.

    With G = D Dᵀ the posterior draw is f₀ + k(·, Z) (w − G f₀(Z) − ξ), where
    ξ ~ N(0, G − G K G) is the noise of the pseudo-observations seen through the gain.
    """
    D = posterior.factor
    inner = np.eye(D.shape[1]) - D.T @ posterior.kernel(posterior.anchors) @ D
    root = covariance_root(inner)
    return weights - D @ (root @ rng.standard_normal((root.shape[1], weights.shape[1])))


class SamplePaths:
    """Functions drawn from a posterior; made by `Posterior.sample_paths`.

    Calling it with items of shape (m, n_features) gives utilities of shape (m, n_paths), the
    same ones for the same items on every call.
    """

    def __init__(self, posterior, weights, rng):
        self._posterior, self._rng = posterior, rng
        n_features = posterior.anchors.shape[1]
        spectrum = spectral_sample(posterior.kernel, _N_FEATURES, n_features, rng)
        if spectrum is None:
            self._prior = _LazyPrior(posterior.kernel, weights.shape[1], n_features, rng)
        else:
            self._prior = _FourierPrior(*spectrum, weights.shape[1], rng)
        D = posterior.factor
        at_anchors = self._prior(posterior.anchors)
        self._weights = weights - D @ (D.T @ at_anchors)

    def __call__(self, X):
        posterior = self._posterior
        X = posterior.check_items(X)
        return self._prior(X) + posterior.kernel(X, posterior.anchors) @ self._weights


class _FourierPrior:
    def __init__(self, frequencies, amplitudes, n_paths, rng):
        self._frequencies = frequencies
        shape = (len(amplitudes), n_paths)
        self._cosine = amplitudes[:, None] * rng.standard_normal(shape)
        self._sine = amplitudes[:, None] * rng.standard_normal(shape)

    def __call__(self, X):
        phase = X @ self._frequencies.T
        return np.cos(phase) @ self._cosine + np.sin(phase) @ self._sine


class _LazyPrior:
    """Prior values drawn when first asked for, given all those drawn before."""

    def __init__(self, kernel, n_paths, n_features, rng):
        self._kernel, self._rng = kernel, rng
        self._X = np.zeros((0, n_features))
        self._values = np.zeros((0, n_paths))

    def __call__(self, X):
        rows = np.concatenate([self._X, X])
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        known = len(self._X)
        new = np.sort(first[first >= known])
        if len(new):
            self._extend(rows[new])
        position = {int(k): known + i for i, k in enumerate(new)}
        where = [position.get(int(k), int(k)) for k in first[inverse.reshape(-1)[known:]]]
        return self._values[where]

    def _extend(self, X):
        normal = self._rng.standard_normal((len(X), self._values.shape[1]))
        covariance, mean = self._kernel(X), 0.0
        if len(self._X):
            values, vectors = eigh(self._kernel(self._X))
            keep = values > values[-1] * len(values) * np.finfo(np.float64).eps
            half = vectors[:, keep] / np.sqrt(values[keep])
            gain = self._kernel(X, self._X) @ half
            mean = gain @ (half.T @ self._values)
            covariance = covariance - gain @ gain.T
        self._values = np.concatenate([self._values, mean + covariance_root(covariance) @ normal])
        self._X = np.concatenate([self._X, X])
