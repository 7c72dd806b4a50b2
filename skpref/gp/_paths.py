"""Draws of whole functions from a posterior (pathwise conditioning, Wilson et al. 2020)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Product, Sum

from skpref._utils import (
    NEGLIGIBLE,
    Array,
    pivoted_cholesky,
    row_blocks,
    solve_lower,
    symmetric_root,
)
from skpref.kernels import (
    AnchorFeatures,
    CrossKernel,
    Kernel,
    Linear,
    OnColumns,
    Padded,
    all_columns,
    difference_steps,
    far_origin,
    kernel_values,
    shortest_lengths,
    spectral_sample,
)

N_FREQUENCIES = 2000


def draw_weights(posterior: Any, weights: Array, rng: np.random.Generator) -> Array:
    """Weights u with k(·, Z) u the random part that conditioning adds to a prior draw.

    With G = D Dᵀ the posterior draw is f₀ + k(·, Z) (w − G f₀(Z) − ξ), where
    ξ ~ N(0, G − G K G) is the noise of the pseudo-observations seen through the gain.
    """
    D = posterior.factor
    inner = np.eye(D.shape[1]) - D.T @ kernel_values(posterior.kernel, posterior.anchors) @ D
    root = symmetric_root(inner)
    return weights - D @ (root @ rng.standard_normal((root.shape[1], weights.shape[1])))


class SamplePaths:
    """Functions drawn from a posterior; made by `Posterior.sample_paths`.

    Calling it with items of shape (m, n_features) gives utilities of shape (m, n_paths), the
    same ones for the same items on every call.
    """

    def __init__(
        self,
        posterior: Any,
        weights: Array,
        rng: np.random.Generator,
        n_frequencies: int = N_FREQUENCIES,
    ) -> None:
        self._posterior, self._rng = posterior, rng
        n_features = posterior.anchors.shape[1]
        # What is known of the draw depends on differences of rows: see `far_origin`.
        far = far_origin(posterior.anchors) if posterior.kernel.is_stationary() else None
        self._origin: Array | float = 0.0 if far is None else far
        drawn = _draw_by_features(
            posterior.kernel, n_features, n_frequencies, weights.shape[1], rng
        )
        self._prior: Any = drawn
        if drawn is None:
            self._prior = _LazyPrior(posterior.kernel, weights.shape[1], n_features, rng)
        D = posterior.factor
        at_anchors = self._prior(posterior.anchors - self._origin)
        self._weights = weights - D @ (D.T @ at_anchors)

    @property
    def has_features(self) -> bool:
        """Say whether random features draw the prior: gradients are then in closed form."""
        return not isinstance(self._prior, _LazyPrior)

    def __call__(self, X: Any) -> Array:
        posterior = self._posterior
        X = all_columns(posterior.kernel, posterior.check_items(X))
        return (
            self._prior(X - self._origin)
            + kernel_values(posterior.kernel, X, posterior.anchors) @ self._weights
        )

    def value_and_gradient(self, X: Any) -> tuple[Array, Array]:
        """The utilities and their gradients in the items.

        In closed form where the prior is drawn by random features; else the prior's part is by
        central differences, whose items the draw is then conditioned on too.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        value : ndarray of shape (m, n_paths)
        gradient : ndarray of shape (m, n_features, n_paths)
        """
        posterior = self._posterior
        items, anchors = posterior.check_items(X), posterior.anchors
        X, width = all_columns(posterior.kernel, items), items.shape[1]
        value, gradient = self._prior.value_and_gradient(X - self._origin)
        cross = CrossKernel(posterior.kernel, X, anchors)
        shape = cross.value.shape
        along = [cross.contract(np.broadcast_to(w, shape)) for w in self._weights.T]
        gradient = (gradient + np.stack(along, axis=2))[:, :width]
        return value + cross.value @ self._weights, gradient

    def value_and_gradient_of(self, X: Any, path: NDArray[np.intp]) -> tuple[Array, Array]:
        """The same of one path for each item.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        path : ndarray of int of shape (m,)
            Number of the path, from 0.

        Returns
        -------
        value : ndarray of shape (m,)
        gradient : ndarray of shape (m, n_features)
        """
        posterior = self._posterior
        items = posterior.check_items(X)
        X, width = all_columns(posterior.kernel, items), items.shape[1]
        value, gradient = self._prior.value_and_gradient_of(X - self._origin, path)
        cross, weights = CrossKernel(posterior.kernel, X, posterior.anchors), self._weights.T[path]
        along = np.einsum("ij,ij->i", cross.value, weights)
        return value + along, (gradient + cross.contract(weights))[:, :width]


class _FourierPrior:
    """Σ_k a_k cos(ω_kᵀx) + b_k sin(ω_kᵀx), with a and b of each path's own."""

    def __init__(
        self, frequencies: Array, amplitudes: Array, n_paths: int, rng: np.random.Generator
    ) -> None:
        self._frequencies = frequencies
        self._shift: Array | float = 0.0
        shape = (len(amplitudes), n_paths)
        self._along = amplitudes[:, None] * rng.standard_normal(shape)
        self._across: Array | None = amplitudes[:, None] * rng.standard_normal(shape)
        if n_paths == 1:  # a cos t + b sin t = |(a, b)| cos(t − φ): half the cost
            self._shift = np.arctan2(self._across, self._along)[:, 0]
            self._along, self._across = np.hypot(self._along, self._across), None

    def _phases(self, X: Array) -> Iterator[Array]:
        """Yield phases (m, n_frequencies) of few rows at a time: they stay in the cache."""
        for rows in row_blocks(max(len(X), 1), len(self._frequencies)):
            yield X[rows] @ self._frequencies.T - self._shift

    def _value(self, cosine: Array, sine: Array | None) -> Array:
        """Return values of the drawn functions from cosines, and sines where these have weights."""
        value = cosine @ self._along
        return value if self._across is None or sine is None else value + sine @ self._across

    def __call__(self, X: Array) -> Array:
        single = self._across is None
        parts = ((np.cos(t), None if single else np.sin(t)) for t in self._phases(X))
        return np.concatenate([self._value(*part) for part in parts])

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        values, gradients = [], []
        speed = self._frequencies.T
        for phases in self._phases(X):
            cosine, sine = np.cos(phases), np.sin(phases)
            values.append(self._value(cosine, sine))
            slope = (-sine[:, None, :] * speed) @ self._along
            if self._across is not None:
                slope += (cosine[:, None, :] * speed) @ self._across
            gradients.append(slope)
        return np.concatenate(values), np.concatenate(gradients)

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        phases = X @ self._frequencies.T - self._shift
        cosine, sine = np.cos(phases), np.sin(phases)
        along = self._along.T[path]
        value, slope = np.einsum("ij,ij->i", cosine, along), -sine * along
        if self._across is not None:
            across = self._across.T[path]
            value += np.einsum("ij,ij->i", sine, across)
            slope += cosine * across
        return value, slope @ self._frequencies


def _draw_by_features(kernel, width, n_frequencies, n_paths, rng):
    """Return prior functions on rows of so many columns, or None where a kernel has no features."""
    draw = partial(_draw_by_features, n_frequencies=n_frequencies, n_paths=n_paths, rng=rng)
    spectrum = spectral_sample(kernel, n_frequencies, width, rng)
    if spectrum is not None:
        return _FourierPrior(*spectrum, n_paths, rng)
    if isinstance(kernel, Padded):
        return draw(kernel.kernel, width)
    if isinstance(kernel, OnColumns):
        columns = list(kernel.positions())
        inner = draw(kernel.kernel, len(columns))
        return None if inner is None else _ColumnsPrior(inner, columns)
    if isinstance(kernel, AnchorFeatures):
        weights = kernel.root @ rng.standard_normal((kernel.root.shape[1], n_paths))
        return _AnchorPrior(kernel, weights)
    if isinstance(kernel, Sum):
        parts = [draw(kernel.k1, width), draw(kernel.k2, width)]
        return None if None in parts else _SumPrior(parts)
    if isinstance(kernel, Product) and _is_slope(kernel.k2):
        inner = draw(kernel.k1, width)
        return None if inner is None else _SlopePrior(inner, kernel.k2.positions()[0])
    return None


def _is_slope(kernel):
    """Return whether a kernel is the product of two values of one column."""
    single = isinstance(kernel, OnColumns) and len(kernel.positions()) == 1
    return single and kernel.kernel == Linear()


class _FeaturePrior(ABC):
    """Functions with gradients in closed form, whose values of single paths follow from all."""

    @abstractmethod
    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return values (n, n_paths) and gradients (n, d, n_paths)."""

    def __call__(self, X: Array) -> Array:
        return self.value_and_gradient(X)[0]

    @abstractmethod
    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return values (n,) and gradients (n, d), each of its own path."""


class _AnchorPrior(_FeaturePrior):
    """c(x, Z) w, the functions that `AnchorFeatures` are the covariance of."""

    def __init__(self, kernel: AnchorFeatures, weights: Array) -> None:
        self._kernel, self._anchors, self._weights = kernel.kernel, kernel.anchors, weights

    def __call__(self, X: Array) -> Array:
        return kernel_values(self._kernel, X, self._anchors) @ self._weights

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        cross = CrossKernel(self._kernel, X, self._anchors)
        along = [cross.contract(np.broadcast_to(w, cross.value.shape)) for w in self._weights.T]
        return cross.value @ self._weights, np.stack(along, axis=2)

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        cross, weights = CrossKernel(self._kernel, X, self._anchors), self._weights.T[path]
        return np.einsum("ij,ij->i", cross.value, weights), cross.contract(weights)


class _ColumnsPrior(_FeaturePrior):
    """Functions of some columns of a row."""

    def __init__(self, inner: Any, columns: list[int]) -> None:
        self._inner, self._columns = inner, columns

    def _widen(self, gradient, X):
        """Return a gradient in all columns from one in those that the kernel sees."""
        whole = np.zeros((*X.shape, *gradient.shape[2:]))
        whole[:, self._columns] = gradient
        return whole

    def __call__(self, X: Array) -> Array:
        return self._inner(X[:, self._columns])

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self._inner.value_and_gradient(X[:, self._columns])
        return value, self._widen(gradient, X)

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        value, gradient = self._inner.value_and_gradient_of(X[:, self._columns], path)
        return value, self._widen(gradient, X)


class _SumPrior(_FeaturePrior):
    """Sums of independent functions."""

    def __init__(self, parts: list) -> None:
        self._parts = parts

    def __call__(self, X: Array) -> Array:
        return sum(part(X) for part in self._parts)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        values, gradients = zip(*(part.value_and_gradient(X) for part in self._parts), strict=True)
        return sum(values), sum(gradients)

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        drawn = (part.value_and_gradient_of(X, path) for part in self._parts)
        values, gradients = zip(*drawn, strict=True)
        return sum(values), sum(gradients)


class _SlopePrior(_FeaturePrior):
    """Functions times the value of one column."""

    def __init__(self, inner: Any, column: int) -> None:
        self._inner, self._column = inner, column

    def _scale(self, X, value, gradient):
        slope = X[:, self._column].reshape(-1, *[1] * (value.ndim - 1))
        gradient = gradient * slope[:, None]
        gradient[:, self._column] += value
        return value * slope, gradient

    def __call__(self, X: Array) -> Array:
        return self._inner(X) * X[:, [self._column]]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return self._scale(X, *self._inner.value_and_gradient(X))

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        return self._scale(X, *self._inner.value_and_gradient_of(X, path))


class _LazyPrior:
    """Prior values drawn when first asked for, given all those drawn before.

    They are given by those of a basis, items of which none is all but fixed by the others.
    """

    def __init__(
        self, kernel: Kernel, n_paths: int, n_features: int, rng: np.random.Generator
    ) -> None:
        self._kernel, self._rng = kernel, rng
        self._X = np.zeros((0, n_features))
        self._values = np.zeros((0, n_paths))
        self._basis = np.zeros(0, dtype=np.intp)
        self._root = np.zeros((0, 0))  # Cholesky factor of the basis' covariance
        self._normal = np.zeros((0, n_paths))

    def __call__(self, X: Array) -> Array:
        rows = np.concatenate([self._X, X])
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        n_points = len(self._X)
        new = np.sort(first[first >= n_points])
        if len(new):
            self._extend(rows[new])
        position = {int(k): n_points + i for i, k in enumerate(new)}
        where = [position.get(int(k), int(k)) for k in first[inverse.reshape(-1)[n_points:]]]
        return self._values[where]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        n, d = X.shape
        lengths = shortest_lengths(self._kernel, d)
        # Values are right to the root of the variance that counts as none.
        noise = np.sqrt(NEGLIGIBLE)
        moves = difference_steps(lengths, X, self._X, noise=noise) * np.eye(d)
        above, below = X[:, None, :] + moves, X[:, None, :] - moves
        value = self(np.concatenate([X, above.reshape(-1, d), below.reshape(-1, d)]))
        high, low = value[n:].reshape(2, n, d, -1)
        taken = np.einsum("ijj->ij", above - below)  # the steps as rounded
        return value[:n], (high - low) / taken[:, :, None]

    def value_and_gradient_of(self, X: Array, path: NDArray[np.intp]) -> tuple[Array, Array]:
        value, gradient = self.value_and_gradient(X)
        row = np.arange(len(X))
        return value[row, path], gradient[row, :, path]

    def _extend(self, X: Array) -> None:
        """Draw the functions at further points, given their values at earlier ones."""
        new, half = kernel_values(self._kernel, X), np.zeros((0, len(X)))
        least = NEGLIGIBLE * np.diagonal(new).max()
        if len(self._basis):
            cross = kernel_values(self._kernel, self._X[self._basis], X)
            half = solve_lower(self._root, cross)
            new = new - half.T @ half
        factor, order = pivoted_cholesky(new, least)
        rank = factor.shape[1]
        normal = self._rng.standard_normal((rank, self._values.shape[1]))
        values = half.T @ self._normal
        values[order] += factor @ normal
        corner = np.zeros((len(self._root), rank))
        below = np.hstack([half[:, order[:rank]].T, factor[:rank]])
        self._root = np.vstack([np.hstack([self._root, corner]), below])
        self._basis = np.append(self._basis, len(self._X) + order[:rank])
        self._normal = np.concatenate([self._normal, normal])
        self._values = np.concatenate([self._values, values])
        self._X = np.concatenate([self._X, X])
