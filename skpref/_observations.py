"""What was answered about which items: one frozen container, and its counted view for engines."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._counting import counted
from skpref._items import distinct_rows, equal_rows, float_rows
from skpref._rows import DUEL, PART, SET, TIE, ByValue, Rows, first_seen


@dataclass(frozen=True, eq=False)
class Duels(ByValue):
    """Distinct items and distinct duels with their counts, in order of first appearance.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items.
    winner, loser : ndarray of shape (n_kinds,)
        Indices into ``items``; every (winner, loser) occurs once. Of a tie the two items.
    counts : ndarray of shape (n_kinds,)
        How often each duel was seen: the sum of its answers' weights.
    tie : ndarray of bool of shape (n_kinds,)
    """

    items: NDArray[np.float64]
    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    counts: NDArray[np.float64]
    tie: NDArray[np.bool_]


class Singles(NamedTuple):
    """Rows of the single answers, each with noise of its own.

    Attributes
    ----------
    row : ndarray of shape (n_singles,)
        Row, in `Rows`, of each.
    answer : ndarray of shape (n_singles,)
        Number of the single answer.
    """

    row: NDArray[np.intp]
    answer: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Observations(ByValue):
    """Items and the answers about them, as they came.

    Made by `from_duels` or `from_ranks`. Items stand in the order in which answers first showed
    them, so that more answers only add items and rows at the end.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items that take part in an answer.
    positions : ndarray of shape (n_answers, k)
        Items of each answer, the winner or the best ranked first, −1 where there are fewer than k.
    order : ndarray of int8 of shape (n_answers, k)
        Place, from 0, at which each of them was shown; −1 where none was first.
    kind : ndarray of int8 of shape (n_answers,)
        `DUEL`, `TIE` or `SET`.
    weight : ndarray of shape (n_answers,)
        How often the answer counts; positive.
    judge : ndarray of shape (n_answers,) or None
        Number of the judge, from 0; None: all are one.
    rank : ndarray of int of shape (n_answers, k) or None
        Of sets: 1 for the best, equal where nothing is said of two items, 0 where nothing is said
        of an item. None: there are no sets.
    ordered : bool
        Whether duels that differ in who was shown first alone are different answers.

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
    >>> chosen = Observations.from_ranks(items, [[0, 1, 3]], [[2, 1, 2]])
    >>> chosen.positions.tolist(), chosen.order.tolist()
    ([[1, 0, 2]], [[1, 0, 2]])
    """

    items: NDArray[np.float64]
    positions: NDArray[np.intp]
    order: NDArray[np.int8]
    kind: NDArray[np.int8]
    weight: NDArray[np.float64]
    judge: NDArray[np.intp] | None = None
    rank: NDArray[np.int_] | None = None
    ordered: bool = False

    @classmethod
    def from_duels(
        cls,
        items: NDArray[np.float64],
        first: ArrayLike,
        second: ArrayLike,
        first_won: ArrayLike,
        weight: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        *,
        tie: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Duels between rows of a table.

        Parameters
        ----------
        items : ndarray of shape (n, d)
            Equal rows are one item; those in no duel are left out.
        first, second : array-like of shape (n_duels,)
            Rows of the items shown first and second.
        first_won : array-like of bool of shape (n_duels,)
            Of ties it says nothing.
        weight : array-like of shape (n_duels,), optional
            Non-negative; a duel of weight 0 is left out. By default 1 each.
        judge : array-like of int of shape (n_duels,), optional
        tie : array-like of bool of shape (n_duels,), optional
            By default there are none.
        order : array-like of int of shape (n_duels,), optional
            1: what is written first was shown first (the default), −1: the second was, 0: neither.

        Returns
        -------
        Observations
        """
        shown = np.column_stack([first, second]).astype(np.intp, copy=False)
        won = np.asarray(first_won, dtype=bool)
        weight = np.ones(len(shown)) if weight is None else np.asarray(weight, dtype=np.float64)
        judges = None if judge is None else np.asarray(judge, dtype=np.intp)
        ties = None if tie is None else np.asarray(tie, dtype=bool)
        orders = None if order is None else np.asarray(order, dtype=np.int8)
        if not np.all(weight > 0.0):
            kept = weight > 0.0
            shown, won, weight = shown[kept], won[kept], weight[kept]
            judges, ties, orders = _kept(kept, judges, ties, orders)
        if ties is not None:
            won = won | ties  # as shown
        distinct, positions = _first_seen_items(items, shown)
        shown_first, shown_second = positions.T
        positions = np.empty_like(positions)
        # x ^ (x ^ y) = y: exchanged where the second won, without a branch for each answer.
        swap = (shown_first ^ shown_second) & (won.astype(np.intp) - 1)
        positions[:, 0], positions[:, 1] = shown_first ^ swap, shown_second ^ swap
        places = np.empty(positions.shape, dtype=np.int8)
        places[:, 0], places[:, 1] = ~won, won
        if orders is not None:
            places[orders < 0] = 1 - places[orders < 0]
            places[orders == 0] = -1
        kind = np.full(len(shown), DUEL, dtype=np.int8)
        if ties is not None:
            kind[ties] = TIE
        return cls(distinct, positions, places, kind, weight, judges)

    @classmethod
    def from_ranks(
        cls,
        items: NDArray[np.float64],
        shown: ArrayLike,
        rank: ArrayLike,
        weight: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        *,
        tie: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Choices and rankings of rows of a table.

        Parameters
        ----------
        items : ndarray of shape (n, d)
            Equal rows are one item; those that were not shown are left out.
        shown : array-like of int of shape (n_answers, k)
            Rows in the order in which they were shown, −1 where there is none.
        rank : array-like of int of shape (n_answers, k)
            1 for the best, without gaps; equal: nothing is said of the two; 0: nothing is said of
            the item. Answers that say nothing are left out.
        weight, judge
            As in `from_duels`.
        tie : array-like of bool of shape (n_answers,), optional
            Where two items were shown and found equal; the ranks do not count then.
        order : array-like of int of shape (n_answers,), optional
            1: the first shown counts as such (the default), 0: none does; −1: the second of two.

        Returns
        -------
        Observations
            An answer that comes to one inequality is a duel.
        """
        sets, ranks = np.asarray(shown, dtype=np.intp), np.array(rank, dtype=np.int_)
        n, k = sets.shape
        weights = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        judges = None if judge is None else np.asarray(judge, dtype=np.intp)
        ties = np.zeros(n, dtype=bool) if tie is None else np.asarray(tie, dtype=bool)
        orders = np.ones(n, dtype=np.int8) if order is None else np.asarray(order, dtype=np.int8)
        ranks[sets < 0] = 0
        ranks[ties] = 0
        says = ties | (ranks.max(axis=1, initial=0) > 1)
        kept = says & (weights > 0.0)
        if not kept.all():
            sets, ranks, weights = sets[kept], ranks[kept], weights[kept]
            judges, ties, orders = _kept(kept, judges, ties, orders)
        distinct, positions = _first_seen_items(items, sets)
        there = sets >= 0
        places = np.where(there, np.cumsum(there, axis=1) - 1, -1)  # the first that is there: 0
        places[orders == 0] = -1
        turned = orders < 0
        places[turned, :2] = places[turned, 1::-1]
        # Best first, of equal ranks as shown, then those of which nothing is said, then nothing.
        key = np.where(ranks > 0, ranks, np.where(sets < 0, 2 * k + 1, 2 * k))
        sort = np.argsort(key, axis=1, kind="stable")
        positions, places, ranks = (
            np.take_along_axis(each, sort, axis=1) for each in (positions, places, ranks)
        )
        single = ~ties & (np.count_nonzero(ranks, axis=1) == 2)
        kind = np.where(ties, TIE, np.where(single, DUEL, SET)).astype(np.int8)
        small = np.int8 if k < 128 else np.int16
        return cls(distinct, positions, places.astype(small), kind, weights, judges, ranks)

    def part(self, answers: NDArray[np.intp]) -> Self:
        """Some of the answers, and the items in them."""
        shown = self.positions[answers]
        items, positions = _first_seen_items(self.items, shown)
        return replace(
            self,
            items=items,
            positions=positions,
            order=self.order[answers],
            kind=self.kind[answers],
            weight=self.weight[answers],
            judge=None if self.judge is None else self.judge[answers],
            rank=None if self.rank is None else self.rank[answers],
        )

    def joined(self, other: Self) -> Self:
        """These answers and then others, all of them duels or ties."""
        both = self, other
        items = np.concatenate([each.items for each in both])
        distinct, place = _first_seen_items(items, np.arange(len(items)))
        places = np.split(place, [len(self.items)])
        shown = [at[each.positions[:, :2]] for each, at in zip(both, places, strict=True)]
        positions = np.concatenate(shown)
        order = np.concatenate([each.order[:, :2] for each in both])
        kind = np.concatenate([each.kind for each in both])
        weight = np.concatenate([each.weight for each in both])
        judges = [each.judge for each in both if each.judge is not None]
        judge = np.concatenate(judges) if len(judges) == 2 else None
        return type(self)(distinct, positions, order, kind, weight, judge, ordered=self.ordered)

    def spread(self, size: int) -> Self:
        """So many of the answers, evenly spread."""
        n = len(self.positions)
        return self if n <= size else self.part(np.linspace(0, n - 1, size).astype(np.intp))

    # -- the counted view ------------------------------------------------------------------

    @cached_property
    def _counted(self) -> tuple[Rows, NDArray[np.intp]]:
        return counted(
            len(self.items),
            self.positions,
            self.order,
            self.kind,
            self.weight,
            self.rank,
            self.ordered,
            self.judge,
        )

    @property
    def rows(self) -> Rows:
        """Inequalities of the distinct answers, counted."""
        return self._counted[0]

    @property
    def of_answer(self) -> NDArray[np.intp]:
        """Distinct answer of every answer, shape (n_answers,)."""
        return self._counted[1]

    @cached_property
    def duels(self) -> Duels:
        """Distinct duels, ties among them, with their counts, whoever judged."""
        if self.judge is not None:
            return replace(self, judge=None).duels
        rows = self.rows
        if rows.joint:
            rows = rows.take(np.flatnonzero(rows.kind != PART))
        return Duels(self.items, rows.first, rows.second, rows.counts, rows.kind == TIE)

    @property
    def n_singles(self) -> int:
        """Number of inequalities of all single answers."""
        if not self.rows.joint:
            return int(self.weight.sum())
        return int(self.weight @ np.bincount(self.rows.answer)[self.of_answer])

    def singles(self) -> Singles:
        """The rows of every single answer, in their order; one of weight w stands w times.

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
        every = np.repeat(self.of_answer, whole.astype(np.intp))
        if not self.rows.joint:
            return Singles(every, np.arange(len(every)))
        size = np.bincount(self.rows.answer)
        begin, sizes = np.cumsum(size) - size, size[every]
        answer = np.repeat(np.arange(len(every)), sizes)
        shift = begin[every] - (np.cumsum(sizes) - sizes)
        return Singles(np.arange(len(answer)) + shift[answer], answer)


def _kept(kept, *parts):
    return [None if part is None else part[kept] for part in parts]


def _first_seen_items(items, shown):
    """Distinct items in the order in which they were shown, and which of them each one is."""
    there = shown >= 0
    flat = shown.reshape(-1) if there.all() else shown[there]
    rows, row = first_seen(flat)
    first, same = equal_rows(items, rows)
    codes, code = first_seen(same)
    distinct = float_rows(items, rows[first[codes]])
    if there.all():
        return distinct, code[row].reshape(shown.shape)
    positions = np.full(shown.shape, -1, dtype=np.intp)
    positions[there] = code[row]
    return distinct, positions


def match(before: Observations, now: Observations, *, single: bool) -> NDArray[np.intp]:
    """Where the rows of now were before: those of distinct answers, or of single ones.

    Parameters
    ----------
    before, now : Observations
    single : bool
        Match single answers instead of distinct ones. Of equal rows the k-th is matched with the
        k-th.

    Returns
    -------
    ndarray of shape (n_now,)
        −1 for what is new.
    """
    picked = [o.singles().row if single else np.arange(len(o.rows)) for o in (before, now)]
    if before.items.shape[1] != now.items.shape[1]:
        return np.full(len(picked[1]), -1)
    said = []
    for each in (before, now):
        rows = each.rows
        told = np.column_stack([rows.kind, rows.lead * each.ordered]).astype(np.float64)
        parts = [each.items[rows.first], each.items[rows.second], told]
        if before.judge is not None and now.judge is not None and rows.judge is not None:
            parts.append(rows.judge[:, None].astype(np.float64))
        said.append(np.hstack(parts))
    _, code = distinct_rows(np.concatenate(said))
    n_before, n = len(before.rows), int(code.max()) + 1
    codes = code[:n_before][picked[0]], code[n_before:][picked[1]]
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
