"""What likelihoods are told of answers, and what they give."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Kinds of row: one item beat another, neither did, or one inequality of an answer that states more
# than one (whose noise is shared, and so belongs to the Gaussian that the row is taken under).
DUEL, TIE, PART = 0, 1, 2


class Answers(NamedTuple):
    """What was answered, a row a distinct answer; margins are those of its winner over its loser.

    Attributes
    ----------
    kind : ndarray of int8 of shape (n,)
        `DUEL`, `TIE`, or `PART`: one inequality of a joint answer.
    lead : ndarray of int8 of shape (n,)
        +1 where the first item of the margin (the winner, if there is one) was shown first, −1
        where the second was, 0 where neither was; where equal answers were shown in different
        orders and the likelihood does not ask for the order, as in the first of them.
    judge : ndarray of int of shape (n,) or None
        Number of who answered; None: all are one.
    """

    kind: NDArray[np.int8]
    lead: NDArray[np.int8]
    judge: NDArray[np.intp] | None = None

    def take(self, rows: NDArray) -> "Answers":
        """Some of the rows, by position or mask."""
        judge = None if self.judge is None else self.judge[rows]
        return Answers(self.kind[rows], self.lead[rows], judge)


class Derivatives(NamedTuple):
    """Log-probability and its derivatives in the margin m: value, d/dm, −d²/dm², d³/dm³."""

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    third: NDArray[np.float64]


class Tilted(NamedTuple):
    """A likelihood's factor times a Gaussian: log normaliser Z and its derivatives in the mean.

    ``gradient`` is d log Z/d mean, ``curvature`` −d² log Z/d mean²; ``shrink`` is tilted variance
    over the Gaussian's, in (0, 1].
    """

    log_normaliser: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    shrink: NDArray[np.float64]


class Site(NamedTuple):
    """Gaussian factor in natural parameters."""

    precision: NDArray[np.float64]
    shift: NDArray[np.float64]


class Regions(NamedTuple):
    """An answer as a box of a noisy margin: lower < margin + e < upper, e ~ N(0, variance).

    ``turn``, if given, is −1 where the box is one of minus the margin, else 1.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    variance: NDArray[np.float64]
    turn: NDArray[np.float64] | None = None
