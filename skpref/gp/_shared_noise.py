"""Noise that the inequalities of one answer share, and Gaussian sites under it.

Of a joint answer v = z + e, e ~ N(0, N) with N = σ² × pattern; a site is a Gaussian factor of v,
diag(τ) its precision and ν its shift. Given z, an answer is then a Gaussian pseudo-observation of z
with precision P = (N + τ⁻¹)⁻¹. All is done for many answers at once, by their number of
inequalities; σ² > 0 and τ ≥ 0 suffice, N may be singular.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import inverse_blocks
from skpref.data import Block, Margins

Array = NDArray[np.float64]


class Seen(NamedTuple):
    """Answers of one size seen through their sites, arrays (n_blocks, m, m) and (n_blocks, m).

    Attributes
    ----------
    block : Block
    noise : ndarray
        N.
    precision : ndarray
        P, of z.
    gain : ndarray
        H = (I + N τ)⁻¹: E[v | z] = H (z + N ν).
    left : ndarray
        Var[v | z] = H N.
    shift : ndarray
        Hᵀ ν, of z.
    log_det : ndarray of shape (n_blocks,)
        log|I + N τ|.
    """

    block: Block
    noise: Array
    precision: Array
    gain: Array
    left: Array
    shift: Array
    log_det: Array


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

    def seen(self, tau: Array, nu: Array) -> Iterator[Seen]:
        """The answers under sites, whose parameters are given for all margins."""
        for block in self.blocks:
            noise = self.variance * block.pattern
            site = tau[block.margin]
            inner = np.eye(noise.shape[1]) + noise * site[:, None, :]
            gain, log_det = inverse_blocks(inner)
            precision = site[:, :, None] * gain
            shift = np.einsum("bji,bj->bi", gain, nu[block.margin])
            symmetric = 0.5 * (precision + np.swapaxes(precision, 1, 2))
            yield Seen(block, noise, symmetric, gain, gain @ noise, shift, log_det)

    def known(self) -> Iterator[tuple[Block, Array]]:
        """The answers with v known: precision of z, with zeros for inequalities that follow."""
        for block in self.blocks:
            independent = block.basis[:, :, None] & block.basis[:, None, :]
            noise = np.where(independent, self.variance * block.pattern, 0.0)
            noise += np.where(block.basis, 0.0, 1.0)[:, :, None] * np.eye(noise.shape[1])
            precision = np.where(independent, inverse_blocks(noise)[0], 0.0)
            yield block, block.counts[:, None, None] * precision

    def slope(self, dual: Array, gain: Iterable[tuple[Block, Array]]) -> float:
        """d log Z / dσ² by the noise.

        Parameters
        ----------
        dual : ndarray of shape (n_margins,)
            Weights w of single answers, mean of v = (S + N) w.
        gain : iterable of (Block, ndarray of shape (n_blocks, m, m))
            (S + N + τ⁻¹)⁻¹ of single answers.
        """
        total = 0.0
        for block, inner in gain:
            w = dual[block.margin]
            fit = np.einsum("bi,bij,bj->b", w, block.pattern, w)
            spread = np.einsum("bij,bij->b", inner, block.pattern)
            total += 0.5 * float(block.counts @ (fit - spread))
        return total


def among_pairs(covariance: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Covariances of the differences between items that each answer sees, (n, m, m)."""
    rows: Array = covariance[first[:, :, None], first[:, None, :]]
    rows = rows - covariance[first[:, :, None], second[:, None, :]]
    rows -= covariance[second[:, :, None], first[:, None, :]]
    rows += covariance[second[:, :, None], second[:, None, :]]
    return rows


def _pairs(block):
    return block.margin[:, :, None], block.margin[:, None, :]
