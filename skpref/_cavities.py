"""What judges' answers say of their care, given all others' answers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._blocks import row_blocks
from skpref._linalg import Array
from skpref.likelihoods import Answers, Judged, Likelihood

# Doubles of one intermediate array.
_BLOCK = 2**19


class Cavities(NamedTuple):
    """What all answers but one say of its margin, a row a distinct answer.

    Attributes
    ----------
    mean, variance : ndarray of shape (n,)
    copies : ndarray of shape (n,)
    answers : Answers
        Of judges.
    power : ndarray of shape (n,) or None
        See `Likelihood.tilted`.
    """

    mean: Array
    variance: Array
    copies: Array
    answers: Answers
    power: Array | None

    @property
    def judge(self) -> NDArray[np.intp]:
        """Of each row."""
        if self.answers.judge is None:
            raise ValueError("The answers do not say who gave them.")
        return self.answers.judge

    def by_care(self, base: Likelihood, own_order: Array | None) -> Callable[[Array], Array]:
        """Log evidence of every judge's answers as a function of care; the rest is held."""

        def log_likelihood(grid):
            order = None if own_order is None else np.repeat(own_order, grid.shape[1])
            return self._summed(grid.shape, Judged(base, grid.ravel(), order))

        return log_likelihood

    def by_order(self, base: Likelihood, care: Array) -> Callable[[Array], Array]:
        """The same of own order effects."""

        def log_likelihood(grid):
            likelihood = Judged(base, np.repeat(care, grid.shape[1]), grid.ravel())
            return self._summed(grid.shape, likelihood)

        return log_likelihood

    def _summed(self, shape, likelihood):
        """Sums over the answers of each judge, one a point of their grid."""
        total = np.zeros(shape)
        for rows in row_blocks(len(self.mean), shape[1], _BLOCK):
            each = np.repeat(np.arange(len(self.mean))[rows], shape[1])
            judge = self.judge[rows]
            place = judge[:, None] * shape[1] + np.arange(shape[1])
            told = self.answers.take(each)._replace(judge=place.ravel())
            power = None if self.power is None else self.power[each]
            found = likelihood.log_normaliser(self.mean[each], self.variance[each], told, power)
            value = self.copies[each] * found
            np.add.at(total, judge, value.reshape(place.shape))
        return total
