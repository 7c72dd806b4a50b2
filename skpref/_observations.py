"""What was answered about which items: one frozen container, and its counted view for engines."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._items import distinct_rows
from skpref.likelihoods import Answers

# Kinds of answer.
DUEL = 0


class _ByValue:
    """Equality of frozen dataclasses that hold arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        # mypy does not know that only dataclasses derive from this.
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    # Arrays cannot be hashed; None is Python's way to say so, which object's stub forbids.
    __hash__ = None  # type: ignore[assignment]


def _same(one, other):
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


@dataclass(frozen=True, eq=False)
class Margins(_ByValue):
    """Distinct margins z = f(first) − f(second), and how each distinct duel reads them.

    Attributes
    ----------
    first, second : ndarray of shape (n_margins,)
        Indices of items.
    index : ndarray of shape (n_kinds,)
        Margin of each distinct duel.
    sign : ndarray of shape (n_kinds,)
        +1 where the winner is ``first``, −1 where it is ``second``.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    index: NDArray[np.intp]
    sign: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Duels(_ByValue):
    """Distinct items and distinct duels with their counts, in order of first appearance.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items.
    winner, loser : ndarray of shape (n_kinds,)
        Indices into ``items``; every (winner, loser) occurs once.
    counts : ndarray of shape (n_kinds,)
        How often each duel was seen: the sum of its answers' weights.
    """

    items: NDArray[np.float64]
    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    counts: NDArray[np.float64]

    @cached_property
    def margins(self) -> Margins:
        """Distinct unordered pairs of items (`Margins`): contradictory duels share one."""
        n_items = len(self.items)
        low = np.minimum(self.winner, self.loser)
        high = np.maximum(self.winner, self.loser)
        code, index = first_seen(low * n_items + high)
        first, second = np.divmod(code, n_items)
        sign = np.where(self.winner == first[index], 1.0, -1.0)
        return Margins(first, second, index, sign)


@dataclass(frozen=True, eq=False)
class Observations(_ByValue):
    """Items and the answers about them, as they came.

    Made by `from_duels`. Items stand in the order in which answers first showed them, so that
    more answers only add items and rows at the end.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items that take part in an answer.
    positions : ndarray of shape (n_answers, 2)
        Items of each answer, the winner first.
    order : ndarray of int8 of shape (n_answers, 2)
        Place, from 0, at which each of them was shown.
    kind : ndarray of int8 of shape (n_answers,)
        `DUEL` so far.
    weight : ndarray of shape (n_answers,)
        How often the answer counts; positive.
    judge : ndarray of shape (n_answers,) or None
        Number of the judge, from 0; None: all are one.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Observations
    >>> items = np.array([[0.0], [1.0], [1.0], [2.0]])
    >>> seen = Observations.from_duels(items, [0, 2, 0], [1, 3, 1], [False, True, False])
    >>> seen.items.ravel().tolist(), seen.positions.tolist()
    ([0.0, 1.0, 2.0], [[1, 0], [1, 2], [1, 0]])
    >>> seen.duels.counts.tolist()
    [2.0, 1.0]
    """

    items: NDArray[np.float64]
    positions: NDArray[np.intp]
    order: NDArray[np.int8]
    kind: NDArray[np.int8]
    weight: NDArray[np.float64]
    judge: NDArray[np.intp] | None = None

    @classmethod
    def from_duels(
        cls,
        items: NDArray[np.float64],
        first: ArrayLike,
        second: ArrayLike,
        first_won: ArrayLike,
        weight: ArrayLike | None = None,
        judge: ArrayLike | None = None,
    ) -> Self:
        """Duels between rows of a table.

        Parameters
        ----------
        items : ndarray of shape (n, d)
            Equal rows are one item; those in no duel are left out.
        first, second : array-like of shape (n_duels,)
            Rows of the items shown first and second.
        first_won : array-like of bool of shape (n_duels,)
        weight : array-like of shape (n_duels,), optional
            Non-negative; a duel of weight 0 is left out. By default 1 each.
        judge : array-like of int of shape (n_duels,), optional

        Returns
        -------
        Observations
        """
        shown = np.column_stack([first, second]).astype(np.intp, copy=False)
        won = np.asarray(first_won, dtype=bool)
        weight = np.ones(len(shown)) if weight is None else np.asarray(weight, dtype=np.float64)
        judge = None if judge is None else np.asarray(judge, dtype=np.intp)
        if not np.all(weight > 0.0):
            kept = weight > 0.0
            shown, won, weight = shown[kept], won[kept], weight[kept]
            judge = None if judge is None else judge[kept]
        rows, row = first_seen(shown.reshape(-1))
        distinct, same = distinct_rows(items[rows])
        codes, code = first_seen(same)
        positions = code[row].reshape(-1, 2)
        shown_first, shown_second = positions.T
        positions = np.empty_like(positions)
        # x ^ (x ^ y) = y: exchanged where the second won, without a branch for each answer.
        swap = (shown_first ^ shown_second) & (won.astype(np.intp) - 1)
        positions[:, 0], positions[:, 1] = shown_first ^ swap, shown_second ^ swap
        order = np.empty(positions.shape, dtype=np.int8)
        order[:, 0], order[:, 1] = ~won, won
        kind = np.full(len(shown), DUEL, dtype=np.int8)
        return cls(distinct[codes], positions, order, kind, weight, judge)

    @cached_property
    def _counted(self) -> tuple[Duels, NDArray[np.intp]]:
        winner, loser = self.positions.T
        n_items = len(self.items)
        code, of_answer = first_seen(winner * n_items + loser)
        counts = np.bincount(of_answer, self.weight, len(code)).astype(np.float64)
        winner, loser = np.divmod(code, n_items)
        return Duels(self.items, winner, loser, counts), of_answer

    @property
    def duels(self) -> Duels:
        """Distinct duels with their counts."""
        return self._counted[0]

    @property
    def of_answer(self) -> NDArray[np.intp]:
        """Row of every answer in `duels`, shape (n_answers,)."""
        return self._counted[1]

    @cached_property
    def answers(self) -> Answers:
        """What a likelihood is told of each row of `duels`."""
        at = _first_places(self.of_answer, len(self.duels.counts))
        return Answers(self.kind[at], np.where(self.order[at, 0] == 0, 1, -1).astype(np.int8))

    def singles(self) -> NDArray[np.intp]:
        """Row in `duels` of every single answer, in their order; one of weight w stands w times.

        Raises
        ------
        ValueError
            If a weight is no integer.
        """
        whole = np.rint(self.weight)
        if not np.array_equal(whole, self.weight):
            odd = self.weight[whole != self.weight][0]
            raise ValueError(
                f"Sampling takes sample_weight as a number of repetitions, {odd} came. Use whole "
                "numbers, or inference='ep' or 'laplace', which take any."
            )
        return np.repeat(self.of_answer, whole.astype(np.intp))


def first_seen(values: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Distinct integers in order of first appearance, and which of them each value is."""
    n = len(values)
    if n and values.min() >= 0 and values.max() <= 4 * n + 1024:  # a table is quicker than a sort
        first = _first_places(values, int(values.max()) + 1)
        present = np.flatnonzero(first < n)
        order = present[np.argsort(first[present])]
        rank = np.empty(len(first), dtype=np.intp)
        rank[order] = np.arange(len(order))
        return order, rank[values]
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse.reshape(-1)]


def _first_places(values, n_values):
    """Where each integer below ``n_values`` occurs first; len(values) where it does not."""
    n = len(values)
    first = np.full(n_values, n)
    first[values[::-1]] = np.arange(n)[::-1]  # of equal indices the last assignment stays
    return first


def match(before: Observations, now: Observations, *, single: bool) -> NDArray[np.intp]:
    """Where the duels of now were before: rows of the counted view, or single answers.

    Parameters
    ----------
    before, now : Observations
    single : bool
        Match single answers (the k-th equal one with the k-th) instead of distinct duels.

    Returns
    -------
    ndarray of shape (n_now,)
        −1 for what is new.
    """
    if before.items.shape[1] != now.items.shape[1]:
        return np.full(len(now.singles() if single else now.duels.counts), -1)
    ends = [np.hstack([o.items[o.duels.winner], o.items[o.duels.loser]]) for o in (before, now)]
    _, code = distinct_rows(np.concatenate(ends))
    n_before = len(before.duels.counts)
    if not single:
        at = np.full(code.max() + 1, -1)
        at[code[:n_before]] = np.arange(n_before)
        return at[code[n_before:]]
    codes = code[:n_before][before.singles()], code[n_before:][now.singles()]
    n = int(code.max()) + 1
    keys = [_nth(each) * n + each for each in codes]
    order = np.argsort(keys[0])
    found = np.searchsorted(keys[0], keys[1], sorter=order)
    found = order[np.minimum(found, len(order) - 1)]
    return np.where(keys[0][found] == keys[1], found, -1)


def _nth(codes):
    """How many equal codes came before each."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    count = np.empty(len(codes), dtype=np.intp)
    count[order] = np.arange(len(codes)) - np.repeat(starts, np.diff([*starts, len(codes)]))
    return count
