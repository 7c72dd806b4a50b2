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
displays and the optimisers ask. It also words what they refuse, so that the parameter that would
allow a kind of answer is named here alone.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from skpref.data._containers import holds_words

# Kinds of row: one item beat another, neither did, or one inequality of an answer that states more
# than one (whose noise is shared, and so belongs to the Gaussian that the row is taken under).
DUEL, TIE, INEQUALITY = 0, 1, 2
# Kind of an answer with more than one inequality; its rows are of the kind `INEQUALITY`.
SET = 2
# A win by so many grades, from 1, is of the kind `GRADED` + grade.
GRADED = 2
# Labels and kinds of row are bytes.
LARGEST_LABEL = 99


class _Beyond(NamedTuple):
    """What a duel may tell beyond who won: its name, the parameter that allows it, an example."""

    what: str
    parameter: str
    example: str


_TIES = _Beyond("ties", "tie_threshold", "tie_threshold=0.1")
_GRADES = _Beyond(
    "grades", "grade_thresholds", "grade_thresholds=(1.0,), one number fewer than there are grades"
)


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
    def from_kinds(cls, kinds: frozenset[int]) -> Self:
        """Return the scale of a likelihood that takes these kinds of row."""
        return cls(TIE in kinds, max(1, max(kinds, default=0) - GRADED))

    @classmethod
    def of_columns(cls, n_columns: int) -> Self:
        """Return the scale that has so many columns of probabilities."""
        return cls(n_columns % 2 == 1, n_columns // 2)

    @property
    def n_columns(self) -> int:
        """Number of outcomes."""
        return 2 * self.levels + self.ties

    @property
    def labels(self) -> NDArray[np.int64]:
        """Label of each outcome: below 0 the second won, above the first, 0 a tie."""
        every = np.arange(-self.levels, self.levels + 1)
        return every if self.ties else every[every != 0]

    @property
    def names(self) -> list[str]:
        """Name of each outcome, for people."""
        if self.levels == 1:
            return ["second wins", *["tie"] * self.ties, "first wins"]
        who = {-1: "second wins", 0: "tie", 1: "first wins"}
        return [who[np.sign(i)] + (f", grade {abs(i)}" if i else "") for i in self.labels.tolist()]

    @property
    def outcomes(self) -> list[tuple[int, int]]:
        """Kind of row of each outcome, with −1 where the second item won, else 1."""
        return [(int(self.kinds(label)), -1 if label < 0 else 1) for label in self.labels.tolist()]

    def kinds(self, labels: ArrayLike) -> NDArray[np.int8]:
        """Return the kind of the row of each label."""
        size = np.abs(labels)
        won = GRADED + size if self.levels > 1 else np.full_like(size, DUEL)
        return np.where(size == 0, TIE, won).astype(np.int8)

    def columns(self, labels: ArrayLike) -> NDArray[np.intp]:
        """Return the column of probabilities of each label."""
        return np.searchsorted(self.labels, labels)

    # -- messages --------------------------------------------------------------------------

    @property
    def beyond(self) -> str:
        """Words for ties and grades, with their parameters, if the scale has these; else empty."""
        kinds = [_TIES] * self.ties + [_GRADES] * (self.levels > 1)
        return " or ".join(f"{each.what} ({each.parameter})" for each in kinds)

    def check_told(self, label: int) -> None:
        """Raise ValueError unless a label that somebody tells is that of one of these outcomes."""
        missing = _TIES if label == 0 else _GRADES
        if abs(label) > self.levels or (label == 0 and not self.ties):
            allowed = "{1, 0}" if self.levels == 1 else f"±1 to ±{self.levels}"
            raise ValueError(
                f"Outcomes of duels must be in {allowed}, got {label or 'a tie'}. To learn from "
                f"{missing.what}, give {missing.parameter}, such as {missing.example}"
                f"{', or skip the duel' * (label == 0)}."
            )

    def check_grades_stated(self, answer_form: str) -> None:
        """Raise ValueError if this scale has grades, as answers in ``answer_form`` state none."""
        if self.levels > 1:
            raise ValueError(
                f"With {_GRADES.parameter}, or probabilities of {self.n_columns} outcomes, y must "
                f"be the grade of each duel, labels in {self.labels.tolist()}; got {answer_form}."
            )

    def refuse_labels(self, y: NDArray) -> NoReturn:
        """Raise ValueError for labels of which some are none of these."""
        some = ", ".join(list(dict.fromkeys(map(repr, y[:1000].tolist())))[:5])
        allowed = "{0, 1}, {-1, 1} or booleans (1: the first won)"
        if self != PLAIN:
            tie = "0: a tie" if self.ties else f"for ties, 0, give {_TIES.parameter} too"
            labels = ", ".join(map(str, self.labels.tolist()))
            signs = f"above 0: the first won; below 0: the second; {tie}"
            grades = f"{self.levels - 1} {_GRADES.parameter}"
            parameter = grades if self.levels > 1 else _TIES.parameter
            allowed = f"{{{labels}}} with {parameter} ({signs})"
        more, numeric = "", y.dtype.kind in "iuf"
        if self == PLAIN and numeric and np.isin(y, (-1, 0, 1)).all():
            more = f" If 0 is a tie, give {_TIES.parameter}, such as {_TIES.example}."
        elif self == PLAIN and holds_words(y):
            more = " skpref.duels.from_columns and from_pairs read words such as 'left' and 'tie'."
        elif self.levels > 1:
            more = " Give one threshold fewer than there are grades."
        elif numeric and np.isin(y, np.arange(-9, 10)).all() and np.any(y < 0):
            more = f" If they say how much better, give {_GRADES.parameter}, as {_GRADES.example}."
        raise ValueError(
            f"Outcomes of duels must be in {allowed}, got values such as [{some}].{more} Encode "
            "them so, leave out ties, or pass y=None if the first won all. Ratings belong to 2-D "
            f"items, not to duels.{self._numbered_remedy(y)}{_soft_remedy(y)}"
        )

    def _numbered_remedy(self, y: NDArray) -> str:
        """Return what to do where scikit-learn has numbered the labels, else an empty text."""
        if y.dtype.kind not in "iu" or set(y.tolist()) != set(range(len(self.labels))):
            return ""
        return (
            " cross_val_predict and CalibratedClassifierCV(ensemble=False) number the labels from "
            "0: fit and predict fold by fold, or take ensemble=True."
        )

    def refuse_ambiguous(self, noun: str) -> NoReturn:
        """Raise ValueError where it is not clear whether 0 is a tie."""
        allowed, lowest, negative = "-1 (the second won), 0 (a tie) and 1 (the first won)", "", "-1"
        if self.levels > 1:
            allowed = f"{self.labels.tolist()}: below 0 the second won, 0 is a tie"
            lowest, negative = "is the lowest grade of a scale, or ", "below 0"
        raise ValueError(
            f"y holds {noun}. With {self.beyond} the outcomes of duels are {allowed}. If 0 (False) "
            f"{lowest}stands for 'the second won', pass y with {negative} there, or leave "
            f"{_TIES.parameter}=None; if 0 is a tie, there must be duels that the second won, "
            f"labelled {negative}: turn some round, items and label."
        )

    def check_same(self, other: Self, now: Any) -> None:
        """Raise ValueError if answers of the scale ``now`` may not follow those of this scale."""
        if self == other:
            return
        ties = f"with{'' if self.ties else 'out'} ties"
        what = ties if self.ties != other.ties else f"with {self.levels} grades"
        raise ValueError(
            f"The answers so far were learned {what}, which {now!r} does not go with. Set "
            f"{_TIES.parameter}, {_GRADES.parameter} (or likelihood) as they were, or fit anew."
        )


def _soft_remedy(y: NDArray) -> str:
    """Return advice for labels that may be probabilities; empty for others."""
    if y.dtype.kind != "f" or y.min() < 0.0 or y.max() > 1.0:
        return ""
    return " Probabilities that the first wins become duels by skpref.duels.from_probabilities."


PLAIN = DuelScale()


def check_kinds(kinds: Iterable[int], accepted: frozenset[int], who: str) -> None:
    """Raise ValueError unless a likelihood, named so, takes answers of these kinds of row."""
    unknown = set(kinds) - accepted
    if unknown:
        missing = _TIES if TIE in unknown else _GRADES
        raise ValueError(
            f"There are {missing.what} among the answers that {who} does not take. Give "
            f"{missing.parameter}, such as {missing.example}."
        )


def first_wins(proba: NDArray[np.float64], log: bool = False) -> NDArray[np.float64]:
    """Sum the probabilities of all outcomes, on the last axis, in which the first item wins.

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
