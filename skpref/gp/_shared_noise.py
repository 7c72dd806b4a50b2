"""Noise that the inequalities of one answer share, and sites of whole answers.

Of a joint answer v = z + e, e ~ N(0, N) with N = σ² × pattern. A site of the answer is a Gaussian
factor of all its margins z at once, with a precision that is a matrix.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skpref._utils import inverse_blocks
from skpref.data import Block, Margins

Array = NDArray[np.float64]


class SitePrecision:
    """Precision of sites where some answers are joint.

    Parameters
    ----------
    single : ndarray of shape (n_margins,)
        Of the margins of duels and ties; 0 on those of joint answers.
    blocks : tuple of Block
        The joint answers by their number of inequalities, as `Margins` has them.
    joint : tuple of ndarray of shape (n_blocks, m, m)
        Of each of these answers, as often as it was given; positive semi-definite.
    """

    def __init__(self, single: Array, blocks: tuple[Block, ...], joint: tuple[Array, ...]):
        self.single, self.blocks, self.joint = single, blocks, joint

    def times(self, vector: Array) -> Array:
        """The precision times a vector (n_margins,)."""
        product = self.single * vector
        for block, precision in zip(self.blocks, self.joint, strict=True):
            product[block.margin] = np.einsum("bij,bj->bi", precision, vector[block.margin])
        return product

    @cached_property
    def strength(self) -> Array:
        """Precisions along the principal axes of each answer, (n_margins,)."""
        strength = self.single.copy()
        for block, (values, _) in zip(self.blocks, self._axes, strict=True):
            strength[block.margin] = np.maximum(values, 0.0)
        return strength

    @cached_property
    def _axes(self):
        return [np.linalg.eigh(precision) for precision in self.joint]

    def along_axes(self, matrix: Array) -> Array:
        """A vector or the rows of a matrix in the principal axes of each answer."""
        return self._turned(matrix, "bji,bj...->bi...")

    def from_axes(self, matrix: Array) -> Array:
        """A vector or the rows of a matrix in these axes, back on the margins."""
        return self._turned(matrix, "bij,bj...->bi...")

    def _turned(self, matrix, way):
        turned = matrix.copy()
        for block, (_, axes) in zip(self.blocks, self._axes, strict=True):
            turned[block.margin] = np.einsum(way, axes, matrix[block.margin], optimize=True)
        return turned


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
    def blocks(self) -> tuple[Block, ...]:
        """Answers by their number of inequalities."""
        return self.margins.blocks

    @property
    def counted(self) -> bool:
        """Whether an answer was given other than once."""
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

    def known(self) -> Iterator[tuple[Block, Array]]:
        """The answers with v known: precision of z, with zeros for inequalities that follow."""
        for block in self.blocks:
            independent = block.basis[:, :, None] & block.basis[:, None, :]
            noise = np.where(independent, self.variance * block.pattern, 0.0)
            noise += np.where(block.basis, 0.0, 1.0)[:, :, None] * np.eye(noise.shape[1])
            precision = np.where(independent, inverse_blocks(noise)[0], 0.0)
            yield block, block.counts[:, None, None] * precision


def among_pairs(covariance: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Covariances of the differences between items that each answer sees, (n, m, m)."""
    rows: Array = covariance[first[:, :, None], first[:, None, :]]
    rows = rows - covariance[first[:, :, None], second[:, None, :]]
    rows -= covariance[second[:, :, None], first[:, None, :]]
    rows += covariance[second[:, :, None], second[:, None, :]]
    return rows


def _pairs(block):
    return block.margin[:, :, None], block.margin[:, None, :]
