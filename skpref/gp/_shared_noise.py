"""Noise that the inequalities of one answer share, and sites of whole answers.

Of a joint answer v = z + e, e ~ N(0, N) with N = σ² × pattern. A site of the answer is a Gaussian
factor of all its margins z at once, with a precision that is a matrix.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import inverse_blocks, solve_blocks
from skpref.data import JointBlock, Margins

Array = NDArray[np.float64]


class SitePrecision:
    """Precision of sites where some answers are joint.

    Parameters
    ----------
    single : ndarray of shape (n_margins,)
        Of the margins of duels and ties; 0 on those of joint answers.
    blocks : tuple of JointBlock
        The joint answers by their number of inequalities, as `Margins` has them.
    roots : tuple of ndarray of shape (n_blocks, m, m)
        R with R Rᵀ the precision of each of these answers, as often as it was given.
    """

    def __init__(self, single: Array, blocks: tuple[JointBlock, ...], roots: tuple[Array, ...]):
        self.single, self.blocks, self.roots = single, blocks, roots

    @cached_property
    def joint(self) -> list[Array]:
        """R Rᵀ."""
        return [root @ np.swapaxes(root, 1, 2) for root in self.roots]

    @cached_property
    def diagonal(self) -> Array:
        """Precision of every margin by itself, (n_margins,)."""
        diagonal = self.single.copy()
        for block, root in zip(self.blocks, self.roots, strict=True):
            diagonal[block.margin] = np.einsum("bij,bij->bi", root, root)
        return diagonal

    def times(self, vector: Array) -> Array:
        """The precision times a vector (n_margins,)."""
        product = self.single * vector
        for block, precision in zip(self.blocks, self.joint, strict=True):
            product[block.margin] = np.einsum("bij,bj->bi", precision, vector[block.margin])
        return product

    def root_times(self, matrix: Array) -> Array:
        """R times a vector (n_margins,) or the columns of a matrix."""
        return self._times(matrix, self.roots)

    def root_transposed_times(self, matrix: Array) -> Array:
        """Rᵀ times a vector (n_margins,) or the columns of a matrix."""
        return self._times(matrix, [np.swapaxes(root, 1, 2) for root in self.roots])

    def root_solved(self, vector: Array) -> Array:
        """R⁻¹ times a vector (n_margins,), 0 on single margins without a precision."""
        positive = self.single > 0.0
        solved = np.where(positive, vector / np.sqrt(np.where(positive, self.single, 1.0)), 0.0)
        for block, root in zip(self.blocks, self.roots, strict=True):
            at = block.margin
            solved[at] = solve_blocks(root, vector[at])
        return solved

    def _times(self, matrix, factors):
        """Return the product of block-diagonal factors with the columns of a matrix."""
        columns = matrix if matrix.ndim == 2 else matrix[:, None]
        product = np.sqrt(self.single)[:, None] * columns
        for block, factor in zip(self.blocks, factors, strict=True):
            at = block.margin
            begin, size = int(at[0, 0]), at.size
            if at[-1, -1] - begin == size - 1:  # all of them neighbours, which need no copies
                rows = slice(begin, begin + size)
                part = columns[rows].reshape(*at.shape, -1)
                product[rows] = (factor @ part).reshape(size, -1)
            else:
                product[at] = factor @ columns[at]
        return product if matrix.ndim == 2 else product[:, 0]


class JointNoise:
    """Noise of all joint answers.

    Parameters
    ----------
    margins : Margins
    variance : float
        σ² of one item at one presentation.
    """

    def __init__(self, margins: Margins, variance: float):
        self.margins, self.variance = margins, variance

    @property
    def blocks(self) -> tuple[JointBlock, ...]:
        """Answers by their number of inequalities."""
        return self.margins.blocks

    @property
    def counted(self) -> bool:
        """Say whether an answer was given other than once."""
        return any(np.any(block.counts != 1.0) for block in self.blocks)

    def diagonal(self) -> Array:
        """Variance of the noise on every margin, 0 on those without."""
        variance = np.zeros(len(self.margins.first))
        for block in self.blocks:
            variance[block.margin] = self.variance * np.einsum("bii->bi", block.pattern)
        return variance

    def add_to(self, covariance: Array) -> None:
        """Add the noise to a covariance of the margins, in place."""
        for block in self.blocks:
            covariance[_pairs(block)] += self.variance * block.pattern

    def known(self) -> Iterator[tuple[JointBlock, Array]]:
        """The answers with v known: precision of z, with zeros for inequalities that follow."""
        for block in self.blocks:
            independent = block.basis[:, :, None] & block.basis[:, None, :]
            noise = np.where(independent, self.variance * block.pattern, 0.0)
            noise += np.where(block.basis, 0.0, 1.0)[:, :, None] * np.eye(noise.shape[1])
            precision = np.where(independent, inverse_blocks(noise)[0], 0.0)
            yield block, block.counts[:, None, None] * precision


class SiteEntries(NamedTuple):
    """Sites on the margins without noise.

    Attributes
    ----------
    row, column, precision : ndarray of shape (n_entries,)
        Entries of the precision that are not 0.
    shift : ndarray of shape (n_margins, n_components)
        Precision times target.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    precision: Array
    shift: Array


def site_entries(
    noise: JointNoise | None, precision: Array | SitePrecision, shift: Array
) -> SiteEntries:
    """List the sites on the margins; of a joint answer that is known, those of its noise.

    Parameters
    ----------
    noise : JointNoise or None
    precision : ndarray of shape (n_margins,) or SitePrecision
        Infinite where a margin of a joint answer is known, noise included.
    shift : ndarray of shape (n_margins, n_components)
    """
    single = precision.single if isinstance(precision, SitePrecision) else precision
    used = np.flatnonzero(np.isfinite(single) & (single > 0.0))
    rows, columns, values, pull = [used], [used], [single[used]], shift
    blocks: Any = ()
    if isinstance(precision, SitePrecision):
        blocks = zip(precision.blocks, precision.joint, strict=True)
    elif noise is not None and np.isinf(single).any():
        blocks, pull = list(noise.known()), shift.copy()
        for block, joint in blocks:
            pull[block.margin] = np.einsum("bij,bj...->bi...", joint, shift[block.margin])
    for block, joint in blocks:
        rows.append(np.broadcast_to(block.margin[:, :, None], joint.shape).ravel())
        columns.append(np.broadcast_to(block.margin[:, None, :], joint.shape).ravel())
        values.append(joint.ravel())
    return SiteEntries(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), pull)


def among_pairs(covariance: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Covariances of the differences between items that each answer sees, (n, m, m)."""
    rows: Array = covariance[first[:, :, None], first[:, None, :]]
    rows = rows - covariance[first[:, :, None], second[:, None, :]]
    rows -= covariance[second[:, :, None], first[:, None, :]]
    rows += covariance[second[:, :, None], second[:, None, :]]
    return rows


def _pairs(block):
    """Return the margins of a block's answers as rows and as columns of their covariance."""
    return block.margin[:, :, None], block.margin[:, None, :]
