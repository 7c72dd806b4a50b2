"""Moments of the utility: an equal mixture of Gaussian processes of one covariance."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skpref._asked import Who, item_rows
from skpref._items import ItemTable
from skpref._linalg import Array, floor_variance
from skpref._utilities import Utilities
from skpref.kernels._contracts import Kernel
from skpref.likelihoods import Likelihood

_FOUND_AGAIN = ("_own", "utilities")
# Rows are taken in blocks so that no intermediate array has more doubles than this (16 MiB).
BLOCK = 2**21


@dataclass(frozen=True, eq=False)
class Components:
    """What a `Posterior` is made of, its means and its covariances; the fields are told there."""

    kernel: Kernel
    likelihood: Likelihood
    anchors: np.ndarray
    weights: np.ndarray
    factor: np.ndarray
    feature_names: np.ndarray | None = None
    table: ItemTable | None = None
    who: Who | None = None
    utilities: Utilities | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be found again."""
        return {name: part for name, part in vars(self).items() if name not in _FOUND_AGAIN}

    @property
    def n_components(self) -> int:
        """Number of Gaussian components."""
        return self.weights.shape[1]

    def component_means(self, X: Any) -> Array:
        """Mean of every component, shape (n, n_components)."""
        X = self.check_items(X)
        blocks = [self.cross(rows) @ self.weights for rows in self.blocks(X)]
        return stacked(blocks, (0, self.n_components))

    def component_var(self, X: Any) -> Array:
        """Variance that all components share, shape (n,)."""
        X = self.check_items(X)
        return stacked([self._shared_var(rows) for rows in self.blocks(X)], (0,))

    def component_cov(self, X: Any) -> Array:
        """Covariance that all components share, shape (n, n)."""
        X = self.check_items(X)
        return self.shared_cov(X, self.cross(X))

    def mean(self, X: Any) -> Array:
        """Posterior mean utility, shape (n,)."""
        X = self.check_items(X)
        centre = self.weights.mean(axis=1)
        return stacked([self.cross(rows) @ centre for rows in self.blocks(X)], (0,))

    def var(self, X: Any) -> Array:
        """Posterior variance of the utility, shape (n,)."""
        X, shared = self.check_items(X), self.component_var(X)
        if self.n_components == 1:
            return shared
        spread = [self.component_means(rows).var(axis=1) for rows in self.blocks(X)]
        return shared + stacked(spread, (0,))

    def cov(self, X: Any) -> Array:
        """Posterior covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        cross = self.cross(X)
        covariance = self.shared_cov(X, cross)
        if self.n_components > 1:
            means = cross @ self.weights
            means = means - means.mean(axis=1, keepdims=True)
            covariance += means @ means.T / self.n_components
        return covariance

    # -- helpers -------------------------------------------------------------------------

    def check_items(self, X: Any) -> Array:
        """Items as a finite float array of the right shape."""
        return item_rows(X, self.anchors.shape[1], self.feature_names, self.table, self.who)

    def cross(self, X: Array) -> Array:
        """Prior covariance of checked items with the anchors, (n, n_anchors)."""
        K = self.kernel(X, self.anchors)
        if not np.isfinite(K.sum()):
            raise ValueError(
                f"The kernel {self.kernel} is not finite between these items and the training "
                "items: they lie too far apart for double precision. Rescale or drop them."
            )
        return K

    def blocks(self, X: Array) -> list[Array]:
        widest = max(len(self.anchors), self.n_components, self.factor.shape[1], 1)
        step = max(1, BLOCK // widest)
        return [X[start : start + step] for start in range(0, len(X), step)]

    def shared_cov(self, rows: Array, cross: Array) -> Array:
        half = cross @ self.factor
        return self.kernel(rows) - half @ half.T

    def _shared_var(self, rows: Array) -> Array:
        half = self.cross(rows) @ self.factor
        prior = self.kernel.diag(rows)
        return floor_variance(prior - np.einsum("ij,ij->i", half, half), prior)


def stacked(blocks: list[Array], empty: tuple[int, ...]) -> Array:
    return np.concatenate(blocks) if blocks else np.zeros(empty)
