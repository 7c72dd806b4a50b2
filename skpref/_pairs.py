"""Moments of the margins of pairs of items, those that the posterior was conditioned on apart."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._components import BLOCK, Components
from skpref._items import distinct_rows
from skpref._linalg import Array, floor_variance
from skpref.kernels._gradients import paired

# The covariance of so many items is kept: fewer are quick without it, more take 128 MiB and above.
FEWEST, MOST = 256, 4096


class PairMoments(NamedTuple):
    """Of the margins of some pairs: means of every component, and the variance they share."""

    rows: slice
    means: Array
    variance: Array


class Anchors:
    """Means and covariance of a posterior's own items, found once.

    Parameters
    ----------
    posterior : Components
    """

    def __init__(self, posterior: Components):
        self._posterior = posterior

    @cached_property
    def _prior(self) -> Array:
        return self._posterior.kernel(self._posterior.anchors)

    @cached_property
    def means(self) -> Array:
        """Shape (n_anchors, n_components)."""
        return self._prior @ self._posterior.weights

    @cached_property
    def covariance(self) -> Array:
        """That all components share, (n_anchors, n_anchors)."""
        utilities = self._posterior.utilities
        if utilities is not None:
            return utilities.covariance
        half = self._prior @ self._posterior.factor
        return self._prior - half @ half.T

    @cached_property
    def scale(self) -> Array:
        """Prior variances."""
        return self._posterior.kernel.diag(self._posterior.anchors)

    def places(self, A: Array, B: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the rows of A and B stand among the anchors, −1 where they do not."""
        anchors = self._posterior.anchors
        n = len(anchors)
        _, code = distinct_rows(np.concatenate([anchors, A, B]))
        place = np.full(int(code.max()) + 1, -1)
        place[code[:n]] = np.arange(n)
        found = place[code[n:]]
        return found[: len(A)], found[len(A) :]

    def moments(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Iterator[PairMoments]:
        """Of pairs of anchors."""
        diagonal = np.diagonal(self.covariance)
        step = max(1, BLOCK // self.means.shape[1])
        for begin in range(0, len(first), step):
            rows = slice(begin, begin + step)
            a, b = first[rows], second[rows]
            variance = diagonal[a] + diagonal[b] - 2.0 * self.covariance[a, b]
            scale = np.where(a != b, self.scale[a] + self.scale[b], 0.0)
            yield PairMoments(rows, self.means[a] - self.means[b], floor_variance(variance, scale))


def pair_moments(posterior: Components, A: Array, B: Array) -> Iterator[PairMoments]:
    """Moments of f(a) − f(b) for pairs of rows, block by block."""
    n_anchors = len(posterior.anchors)
    kept = vars(posterior)  # which a frozen dataclass does not keep from being added to
    cheap = posterior.utilities is not None or "_own" in kept
    enough = n_anchors // 8 if cheap else 2 * n_anchors
    held = posterior.n_components * n_anchors <= BLOCK
    if FEWEST <= n_anchors <= MOST and len(A) >= enough and held:
        own = kept.setdefault("_own", Anchors(posterior))
        first, second = own.places(A, B)
        known = (first >= 0) & (second >= 0)
        if known.all():
            yield from own.moments(first, second)
            return
        if posterior.n_components == 1 and known.sum() >= enough:
            parts = [list(own.moments(first[known], second[known]))]
            parts.append(list(_by_blocks(posterior, A[~known], B[~known])))
            means, variance = np.empty((len(A), 1)), np.empty(len(A))
            for rows, part in zip((known, ~known), parts, strict=True):
                means[rows] = np.concatenate([each.means for each in part])
                variance[rows] = np.concatenate([each.variance for each in part])
            yield PairMoments(slice(0, len(A)), means, variance)
            return
    yield from _by_blocks(posterior, A, B)


def _by_blocks(posterior, A, B):
    n_anchors = len(posterior.anchors)
    widest = max(n_anchors, posterior.n_components, posterior.factor.shape[1], 1)
    step = max(1, BLOCK // widest)
    for begin in range(0, len(A), step):
        rows = slice(begin, begin + step)
        yield PairMoments(rows, *_of_block(posterior, A[rows], B[rows]))


def _of_block(posterior, rows, others):
    cross = posterior.cross(rows) - posterior.cross(others)
    half = cross @ posterior.factor
    scale = posterior.kernel.diag(rows) + posterior.kernel.diag(others)
    prior = scale - 2.0 * paired(posterior.kernel, rows, others)
    # Rounding must not make sure of the order of two items that all but coincide.
    scale = np.where(np.any(rows != others, axis=1), scale, 0.0)
    variance = floor_variance(prior - np.einsum("ij,ij->i", half, half), scale)
    return cross @ posterior.weights, variance
