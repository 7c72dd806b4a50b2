"""Kinds of answer: the labels in y, inequalities, columns of probabilities and arguments of `tell`.

m is the margin of the winner over the loser, with noise and order effect; δ is the tie threshold,
t the thresholds of grades.

======= ============================ ================================== ================ ===========
kind    label in y                   rows                               predict_proba    tell
======= ============================ ================================== ================ ===========
duel    1 the first won, 0 or -1     one DUEL: m > 0                    second won,      1, 0
        the second                                                      first won
tie     0 beside -1 and 1            one TIE: -δ < m < δ                in the middle    "tie"
graded  -L to L, by how much the     one GRADED + l: t[l-1] < m < t[l]  one a label,     ±2, ±3, …;
        first won                                                       ascending        1, 0: by 1
choice  position of the item         k - 1 INEQUALITY in one block: the one an item      chosen=,
        chosen, or ranks 1, 2, 2, …  chosen over each other                              worst=
ranking ranks 1, 2, 3, …, 0 for what INEQUALITY in one block: each over none             ranking=
        is not ranked                those of the next rank
======= ============================ ================================== ================ ===========

The first three are one axis, the noisy margin of the first item over the second, cut by thresholds
into the outcomes of a duel: a `DuelScale`, which the readers of y, the likelihoods, the scores, the
displays and the optimisers ask.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

# Kinds of row: one item beat another, neither did, or one inequality of an answer that states more
# than one (whose noise is shared, and so belongs to the Gaussian that the row is taken under).
DUEL, TIE, INEQUALITY = 0, 1, 2
# Kind of an answer with more than one inequality; its rows are of the kind `INEQUALITY`.
SET = 2
# A win by so many grades, from 1, is of the kind `GRADED` + grade.
GRADED = 2
# Labels and kinds of row are bytes.
MOST_GRADES = 99


class DuelScale(NamedTuple):
    """Outcomes of a duel, from the clearest win of the second item to that of the first.

    Attributes
    ----------
    ties : bool
        Whether neither may win.
    levels : int
        Grades of a win: how much better; 1 if wins are all alike.

    Examples
    --------
    >>> from skpref.data import DuelScale
    >>> DuelScale(ties=True).labels.tolist(), DuelScale(ties=False, levels=2).labels.tolist()
    ([-1, 0, 1], [-2, -1, 1, 2])
    """

    ties: bool = False
    levels: int = 1

    @classmethod
    def of(cls, kinds: frozenset[int]) -> Self:
        """That of a likelihood which takes these kinds of row."""
        return cls(TIE in kinds, max(1, max(kinds, default=0) - GRADED))

    @classmethod
    def of_columns(cls, n_columns: int) -> Self:
        """That of so many columns of probabilities."""
        return cls(n_columns % 2 == 1, n_columns // 2)

    @property
    def n_columns(self) -> int:
        """How many outcomes there are."""
        return 2 * self.levels + self.ties

    @property
    def labels(self) -> NDArray[np.int64]:
        """Label of each outcome: below 0 the second won, above the first, 0 a tie."""
        every = np.arange(-self.levels, self.levels + 1)
        return every if self.ties else every[every != 0]

    @property
    def names(self) -> list[str]:
        """What each outcome is called."""
        if self.levels == 1:
            return ["second wins", *["tie"] * self.ties, "first wins"]
        who = {-1: "second wins", 0: "tie", 1: "first wins"}
        return [who[np.sign(i)] + (f", grade {abs(i)}" if i else "") for i in self.labels.tolist()]

    @property
    def outcomes(self) -> list[tuple[int, int]]:
        """Of each outcome the kind of its row, and −1 where that is of second − first, else 1."""
        return [(int(self.kinds(label)), -1 if label < 0 else 1) for label in self.labels.tolist()]

    def kinds(self, labels: ArrayLike) -> NDArray[np.int8]:
        """Kind of the row of each label."""
        size = np.abs(labels)
        won = GRADED + size if self.levels > 1 else np.full_like(size, DUEL)
        return np.where(size == 0, TIE, won).astype(np.int8)

    def columns(self, labels: ArrayLike) -> NDArray[np.intp]:
        """Column of each label."""
        return np.searchsorted(self.labels, labels)


PLAIN = DuelScale()


def first_wins(proba: NDArray[np.float64], log: bool = False) -> NDArray[np.float64]:
    """Probability that the first wins, by any grade, from those of all outcomes on the last axis.

    Parameters
    ----------
    proba : ndarray of shape (..., n_outcomes)
    log : bool, default=False
        Whether these, and what comes back, are logarithms.
    """
    levels = DuelScale.of_columns(proba.shape[-1]).levels
    if levels == 1:
        return proba[..., -1]
    wins = proba[..., -levels:]
    return logsumexp(wins, axis=-1) if log else wins.sum(axis=-1)
