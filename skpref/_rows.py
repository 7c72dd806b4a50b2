"""Answers as linear inequalities between noisy utilities: one row each, equal answers counted."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref.likelihoods import DUEL, PART, TIE, Answers

# Kind of an answer with more than one inequality; its rows are of the kind `PART`.
SET = 2


class ByValue:
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


class Block(NamedTuple):
    """Joint answers of equally many inequalities, whose noise is drawn once an item shown.

    Attributes
    ----------
    margin : ndarray of int of shape (n_blocks, m)
        Margins, in `Margins`, of each answer's inequalities.
    pattern : ndarray of shape (n_blocks, m, m)
        Covariance of the inequalities' noise, in units of that of one item.
    basis : ndarray of bool of shape (n_blocks, m)
        Inequalities of which the others are sums and differences.
    counts : ndarray of shape (n_blocks,)
        How often each answer was given.
    """

    margin: NDArray[np.intp]
    pattern: NDArray[np.float64]
    basis: NDArray[np.bool_]
    counts: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Margins(ByValue):
    """Distinct margins z = f(first) − f(second), and how each row reads them.

    Rows of duels and ties between the same two items share one. Every row of a joint answer has its
    own, after these: it carries noise that is correlated with that of others.

    Attributes
    ----------
    first, second : ndarray of shape (n_margins,)
        Indices of items.
    index : ndarray of shape (n_rows,)
        Margin of each row.
    sign : ndarray of shape (n_rows,)
        +1 where the row's first item is ``first``, −1 where it is ``second``.
    blocks : tuple of Block
        Of the margins of joint answers.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    index: NDArray[np.intp]
    sign: NDArray[np.float64]
    blocks: tuple[Block, ...] = ()

    @property
    def n_shared(self) -> int:
        """Number of margins without noise, which come first."""
        return len(self.first) - sum(block.margin.size for block in self.blocks)


@dataclass(frozen=True, eq=False)
class Rows(ByValue):
    """Inequalities of the distinct answers, in order of first appearance.

    Attributes
    ----------
    n_items : int
    first, second : ndarray of shape (n_rows,)
        Items of each; where one is better it is the first.
    kind : ndarray of int8 of shape (n_rows,)
        `DUEL`, `TIE` or `PART`.
    lead : ndarray of int8 of shape (n_rows,)
        1 where the first of the two was shown before all others, −1 where the second was, else 0.
    counts : ndarray of shape (n_rows,)
        How often the answer was given: the sum of its weights.
    answer : ndarray of shape (n_rows,)
        Number of the distinct answer; rows of one are neighbours.
    places : ndarray of shape (n_rows, 2)
        The items' places in the answer, the best ranked 0.
    basis : ndarray of bool of shape (n_rows,)
        Rows of which the others of the same answer are sums and differences.
    judge : ndarray of int of shape (n_rows,) or None
        Number of who answered; None: all are one.
    """

    n_items: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    kind: NDArray[np.int8]
    lead: NDArray[np.int8]
    counts: NDArray[np.float64]
    answer: NDArray[np.intp]
    places: NDArray[np.intp]
    basis: NDArray[np.bool_]
    judge: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def answers(self) -> Answers:
        """What a likelihood is told of each row."""
        return Answers(self.kind, self.lead, self.judge)

    @cached_property
    def joint(self) -> bool:
        """Whether some answer has several rows."""
        return bool(np.any(self.kind == PART))

    @cached_property
    def margins(self) -> Margins:
        """Distinct margins of the rows (`Margins`): contradictory duels share one."""
        if self.joint:
            return self._with_blocks()
        low = np.minimum(self.first, self.second)
        high = np.maximum(self.first, self.second)
        code, index = first_seen(low * self.n_items + high)
        first, second = np.divmod(code, self.n_items)
        sign = np.where(self.first == first[index], 1.0, -1.0)
        return Margins(first, second, index, sign)

    def _with_blocks(self):
        part = self.kind == PART
        shared = self.take(np.flatnonzero(~part)).margins
        n_shared, n_parts = len(shared.first), np.count_nonzero(part)
        index, sign = np.empty(len(part), dtype=np.intp), np.ones(len(part))
        index[~part], sign[~part] = shared.index, shared.sign
        index[part] = np.arange(n_shared, n_shared + n_parts)
        first = np.concatenate([shared.first, self.first[part]])
        second = np.concatenate([shared.second, self.second[part]])
        return Margins(first, second, index, sign, self._blocks(np.flatnonzero(part), index))

    def _blocks(self, parts, index):
        begins = np.flatnonzero(np.diff(self.answer[parts], prepend=-1))
        sizes = np.diff([*begins, len(parts)])
        blocks = []
        for size in np.unique(sizes):
            rows = parts[begins[sizes == size][:, None] + np.arange(size)]
            better, worse = np.moveaxis(self.places[rows], -1, 0)
            pattern = _equal(better, better) + _equal(worse, worse)
            pattern -= _equal(better, worse) + _equal(worse, better)
            counts = self.counts[rows[:, 0]]
            blocks.append(Block(index[rows], pattern, self.basis[rows], counts))
        return tuple(blocks)

    def apart(self) -> "Rows":
        """The same with every inequality of a joint answer a duel."""
        duel = np.where(self.kind == PART, DUEL, self.kind).astype(np.int8)
        return replace(self, kind=duel)

    def merged(self, at: NDArray[np.intp], other: "Rows", other_at: NDArray[np.intp]) -> "Rows":
        """These answers and others', which become numbers ``at`` and ``other_at`` of both."""
        answer = np.concatenate([at[self.answer], other_at[other.answer]])
        order = np.argsort(answer, kind="stable")
        columns: dict[str, Any] = {}
        for each in fields(self)[1:]:
            both = [getattr(self, each.name), getattr(other, each.name)]
            columns[each.name] = None if both[0] is None else np.concatenate(both)[order]
        return Rows(self.n_items, **{**columns, "answer": answer[order]})

    def take(self, rows: NDArray) -> "Rows":
        """Some of the rows."""
        values = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        some: dict[str, Any] = {
            name: None if part is None else part[rows] for name, part in values.items()
        }
        return Rows(self.n_items, **some)


def _equal(one, other):
    return (one[:, :, None] == other[:, None, :]).astype(np.float64)


def duel_rows(
    n_items: int,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    kind: NDArray[np.int8],
    lead: NDArray[np.int8],
    counts: NDArray[np.float64],
    judge: NDArray[np.intp] | None = None,
) -> Rows:
    """Rows of answers that have one each."""
    n = len(first)
    places = np.broadcast_to(np.arange(2), (n, 2))
    basis = np.ones(n, dtype=bool)
    return Rows(n_items, first, second, kind, lead, counts, np.arange(n), places, basis, judge)


class Inequalities(NamedTuple):
    """Inequalities of ranked answers: the answer of each, and its two places.

    ``basis`` marks those of which the others of the same answer are sums and differences.
    """

    answer: NDArray[np.intp]
    better: NDArray[np.intp]
    worse: NDArray[np.intp]
    basis: NDArray[np.bool_]


def inequalities(rank: NDArray[np.integer]) -> Inequalities:
    """What ranks state: each item is better than every one of the next rank.

    Parameters
    ----------
    rank : ndarray of int of shape (n_answers, k)
        Ascending from 1 without gaps, then 0 for items of which nothing is said.
    """
    k = rank.shape[1]
    better, worse = np.triu_indices(k, 1)
    stated = (rank[:, better] > 0) & (rank[:, worse] == rank[:, better] + 1)
    answer, pair = np.nonzero(stated)
    better, worse = better[pair], worse[pair]
    # The first of a rank with all of the next spans what its rank's others say too; only those of
    # the first rank are still to be tied in.
    leads = np.ones(rank.shape, dtype=bool)
    leads[:, 1:] = rank[:, 1:] != rank[:, :-1]
    basis = leads[answer, better]
    basis |= (rank[answer, better] == 1) & leads[answer, worse]
    return Inequalities(answer, better, worse, basis)


def first_seen(values: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Distinct integers in order of first appearance, and which of them each value is."""
    n = len(values)
    if n and values.min() >= 0 and values.max() <= 4 * n + 1024:  # a table is quicker than a sort
        first = first_places(values, int(values.max()) + 1)
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


def first_places(values: NDArray[np.intp], n_values: int) -> NDArray[np.intp]:
    """Where each integer below ``n_values`` occurs first; len(values) where it does not."""
    n = len(values)
    first = np.full(n_values, n)
    first[values[::-1]] = np.arange(n)[::-1]  # of equal indices the last assignment stays
    return first


__all__ = ["DUEL", "PART", "SET", "TIE"]


def gathered_rows(rows: Rows, numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], Rows]:
    """Some of the rows, and the items that are in them, by which they are counted anew."""
    some = rows.take(numbers)
    ends = np.concatenate([some.first, some.second])
    used, position = np.unique(ends, return_inverse=True)
    first, second = np.split(position.reshape(-1), 2)
    told = some.kind, some.lead, some.counts, some.judge
    return used, duel_rows(len(used), first, second, *told)
