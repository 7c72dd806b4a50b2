"""Comparisons of items, as inequalities between noisy utilities."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref.data._items import distinct_rows, float_rows, group_equal_rows
from skpref.data._kinds import DUEL, INEQUALITY, SET, TIE


class Answers(NamedTuple):
    """Distinct answers, one a row; the margin is that of the winner over the loser.

    Attributes
    ----------
    kind : ndarray of int8 of shape (n,)
        As `DuelScale.kinds` has them, or `INEQUALITY`: one inequality of a joint answer.
    lead : ndarray of int8 of shape (n,)
        +1 where the first item of the margin (the winner, if there is one) was shown first, −1
        where the second was, 0 where neither was; where equal answers were shown in different
        orders and the likelihood does not ask for the order, as in the first of them.
    judge : ndarray of int of shape (n,) or None
        Number of who answered; None: all are one.
    offset : ndarray of shape (n,) or None
        Known part of the margin, to be added to it; None: there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.likelihoods import Answers, Probit
    >>> won = Answers(np.array([DUEL]), np.array([1]))
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> np.exp(Probit(noise_variance=0.5).log_prob(zero, won).value)
    array([0.5])
    >>> won.judge is None
    True
    """

    kind: NDArray[np.int8]
    lead: NDArray[np.int8]
    judge: NDArray[np.intp] | None = None
    offset: NDArray[np.float64] | None = None

    def take(self, rows: NDArray) -> "Answers":
        """Return some of the answers, by position or mask."""
        return Answers(*_take_from_each(rows, *self))


class ByValue:
    """Equality of frozen dataclasses that hold arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]  # only dataclasses
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays cannot be hashed; Python's way to say so


class JointBlock(NamedTuple):
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
    places : ndarray of int of shape (n_blocks, m, 2)
        The two items' places in the answer, the best ranked 0.
    """

    margin: NDArray[np.intp]
    pattern: NDArray[np.float64]
    basis: NDArray[np.bool_]
    counts: NDArray[np.float64]
    places: NDArray[np.intp]


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
    blocks : tuple of JointBlock
        Of the margins of joint answers.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Comparisons
    >>> items = np.array([[0.0], [1.0], [2.0]])
    >>> seen = Comparisons.from_duels(items, [0, 1, 1, 2], [1, 0, 2, 1], [True, True, True, True])
    >>> margins = seen.rows.margins  # contradictory duels share one
    >>> margins.first.tolist(), margins.second.tolist()
    ([0, 1], [1, 2])
    >>> margins.index.tolist(), margins.sign.tolist()
    ([0, 0, 1, 1], [1.0, -1.0, 1.0, -1.0])
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    index: NDArray[np.intp]
    sign: NDArray[np.float64]
    blocks: tuple[JointBlock, ...] = ()

    @property
    def n_shared(self) -> int:
        """Number of margins without noise, which come first."""
        return len(self.first) - sum(block.margin.size for block in self.blocks)


@dataclass(frozen=True, eq=False)
class MeasuredValues(ByValue):
    """Measured values of items: level + utility + normal noise.

    Attributes
    ----------
    item : ndarray of int of shape (n_values,)
        Positions among the items of the comparisons; one may be there more than once.
    value, deviation : ndarray of shape (n_values,)
        And the standard deviation of its noise, positive.
    level : float or None
        Value of an item of utility 0. None: nothing is known of it (a flat prior).
    """

    item: NDArray[np.intp]
    value: NDArray[np.float64]
    deviation: NDArray[np.float64]
    level: float | None = None


@dataclass(frozen=True, eq=False)
class Rows(ByValue):
    """Inequalities of the distinct answers, in order of first appearance.

    Attributes
    ----------
    n_items : int
    first, second : ndarray of shape (n_rows,)
        Items of each; where one is better it is the first.
    kind : ndarray of int8 of shape (n_rows,)
        As `DuelScale.kinds` has them, or `INEQUALITY`.
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
    offset : ndarray of shape (n_rows,) or None
        Offset of the first less that of the second; None: there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Comparisons
    >>> items = np.array([[0.0], [1.0], [2.0]])
    >>> seen = Comparisons.from_duels(items, [0, 1, 1, 2], [1, 0, 2, 1], [True, True, True, True])
    >>> seen.rows.first.tolist(), seen.rows.second.tolist(), seen.rows.n_items
    ([0, 1, 1, 2], [1, 0, 2, 1], 3)
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
    offset: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def answers(self) -> Answers:
        """Kind, order, judge and offset of each row, as a likelihood takes them."""
        return Answers(self.kind, self.lead, self.judge, self.offset)

    @property
    def all_same(self) -> bool:
        """Whether all duels are ties, or all have one outcome for the item shown first."""
        kinds, leads = np.unique(self.kind), np.unique(self.lead)
        one_kind = len(kinds) == 1 and kinds[0] != INEQUALITY
        return bool(one_kind and (kinds[0] == TIE or (len(leads) == 1 and leads[0] != 0)))

    @cached_property
    def joint(self) -> bool:
        """Whether some answer has several rows."""
        return bool(np.any(self.kind == INEQUALITY))

    @cached_property
    def margins(self) -> Margins:
        """Distinct margins of the rows (`Margins`): contradictory duels share one."""
        if self.joint:
            return self._margins_with_blocks()
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        code, index, _ = number_by_appearance(low * self.n_items + high)
        first, second = np.divmod(code, self.n_items)
        sign = np.where(self.first == first[index], 1.0, -1.0)
        return Margins(first, second, index, sign)

    def _margins_with_blocks(self) -> Margins:
        """Return the margins of rows of which some are parts of joint answers."""
        part = self.kind == INEQUALITY
        shared = self.take(np.flatnonzero(~part)).margins
        n_shared, n_parts = len(shared.first), np.count_nonzero(part)
        index, sign = np.empty(len(part), dtype=np.intp), np.ones(len(part))
        index[~part], sign[~part] = shared.index, shared.sign
        index[part] = np.arange(n_shared, n_shared + n_parts)
        first = np.concatenate([shared.first, self.first[part]])
        second = np.concatenate([shared.second, self.second[part]])
        return Margins(first, second, index, sign, self._joint_blocks(np.flatnonzero(part), index))

    def _joint_blocks(self, parts, index):
        """Return the joint answers, one block for each number of inequalities."""
        begins = np.flatnonzero(np.diff(self.answer[parts], prepend=-1))
        sizes = np.diff([*begins, len(parts)])
        blocks = []
        for size in np.unique(sizes):
            rows = parts[begins[sizes == size][:, None] + np.arange(size)]
            places = self.places[rows]
            better, worse = np.moveaxis(places, -1, 0)
            pattern = _pairwise_equal(better, better) + _pairwise_equal(worse, worse)
            pattern -= _pairwise_equal(better, worse) + _pairwise_equal(worse, better)
            counts = self.counts[rows[:, 0]]
            blocks.append(JointBlock(index[rows], pattern, self.basis[rows], counts, places))
        return tuple(blocks)

    def split_joint_answers(self) -> "Rows":
        """Return the same rows, with every inequality of a joint answer as a duel of its own."""
        duel = np.where(self.kind == INEQUALITY, DUEL, self.kind).astype(np.int8)
        return replace(self, kind=duel)

    def merge_at(self, at: NDArray[np.intp], other: "Rows", other_at: NDArray[np.intp]) -> "Rows":
        """Return these rows and others as one, at the positions ``at`` and ``other_at``."""
        answer = np.concatenate([at[self.answer], other_at[other.answer]])
        order = np.argsort(answer, kind="stable")
        columns: dict[str, Any] = {
            each.name: [getattr(self, each.name), getattr(other, each.name)]
            for each in fields(self)[1:]
            if getattr(self, each.name) is not None
        }
        columns["answer"] = [answer]
        return Rows(self.n_items, **{k: np.concatenate(v)[order] for k, v in columns.items()})

    def take(self, rows: NDArray) -> "Rows":
        """Return some of the rows, by position."""
        return Rows(self.n_items, **_take_from_fields(self, rows))


def _take_from_fields(table: Any, rows: Any) -> dict[str, Any]:
    """Return some rows of all fields of a dataclass but the first, by name."""
    columns = {each.name: getattr(table, each.name) for each in fields(table)[1:]}
    return {
        name: column[rows] if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }


def _pairwise_equal(places, second_places):
    """Return, for each answer, 1 where places of two columns are equal, else 0, (n, m, m)."""
    return (places[:, :, None] == second_places[:, None, :]).astype(np.float64)


def duel_rows(
    n_items: int,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    kind: NDArray[np.int8],
    lead: NDArray[np.int8],
    counts: NDArray[np.float64],
    judge: NDArray[np.intp] | None = None,
    offset: NDArray[np.float64] | None = None,
) -> Rows:
    """Return `Rows` of answers that have one row each."""
    n = len(first)
    places = np.broadcast_to(np.arange(2), (n, 2))
    basis = np.ones(n, dtype=bool)
    answer = np.arange(n)
    return Rows(n_items, first, second, kind, lead, counts, answer, places, basis, judge, offset)


def inequalities(rank: NDArray[np.integer]) -> tuple[NDArray[Any], ...]:
    """Return the inequalities that ranks state: each item over every one of the next rank.

    Parameters
    ----------
    rank : ndarray of int of shape (n_answers, k)
        Ascending from 1 without gaps, then 0 for items of which nothing is said.

    Returns
    -------
    answer, better, worse : ndarray of int of shape (n,)
        Answer of each inequality, and its two places in it.
    basis : ndarray of bool of shape (n,)
        Those of which the others of the same answer are sums and differences.
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
    return answer, better, worse, basis


def number_by_appearance(values: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
    """Return distinct integers by first appearance, the number of each value, and first places."""
    n = len(values)
    if not n or np.all(values[1:] > values[:-1]):
        return values, np.arange(n), np.arange(n)
    if values.min() >= 0 and values.max() <= 4 * n + 1024:  # a table is quicker than a sort
        first = np.full(int(values.max()) + 1, n)
        first[values[::-1]] = np.arange(n - 1, -1, -1)  # of equal indices the last stays
        distinct, number = np.flatnonzero(first < n), values
        order = distinct[np.argsort(first[distinct])]
    else:
        distinct, first, number = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.intp)
    rank[order] = np.arange(len(order))
    distinct = order if number is values else distinct[order]
    return distinct, rank[number.reshape(-1)], first[order]


def take_rows_with_items(rows: Rows, numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], Rows]:
    """Return the items in some of the rows, and these rows with their items renumbered."""
    some = rows.take(numbers)
    ends = np.concatenate([some.first, some.second])
    used, position = np.unique(ends, return_inverse=True)
    first, second = np.split(position.reshape(-1), 2)
    columns = some.kind, some.lead, some.counts, some.judge, some.offset
    return used, duel_rows(len(used), first, second, *columns)


def _merge_identical_answers(comparisons: "Comparisons") -> tuple[Rows, NDArray[np.intp]]:
    """Return rows of the distinct answers with counts, and the distinct answer of each."""
    code = _duel_codes(comparisons)
    is_set, judge = comparisons.kind == SET, comparisons.judge
    sets = None
    if comparisons.rank is not None and is_set.any():
        sets = _canonical_sets(comparisons, is_set)
        distinct, code[~is_set], _ = number_by_appearance(code[~is_set])
        keys = [part for part in sets if part is not None]
        keys += [] if judge is None else [judge[is_set][:, None]]
        code[is_set] = len(distinct) + distinct_rows(np.hstack(keys).astype(np.float64))[1]
    distinct, of_answer, at = number_by_appearance(code)
    counts = np.bincount(of_answer, comparisons.weight, len(distinct)).astype(np.float64)
    if sets is None:
        return _make_duel_rows(comparisons, at, counts), of_answer
    nth = np.cumsum(is_set) - 1  # of an answer among the sets
    single, joint = np.flatnonzero(~is_set[at]), np.flatnonzero(is_set[at])
    duels = _make_duel_rows(comparisons, at[single], counts[single])
    parts = _take_from_each(nth[at[joint]], *sets)
    judges = None if judge is None else judge[at[joint]]
    joined = _make_set_rows(len(comparisons.items), parts, judges, counts[joint])
    return duels.merge_at(single, joined, joint), of_answer


def _duel_codes(comparisons: "Comparisons") -> NDArray[np.intp]:
    """Return an integer for each answer, the same for equal duels."""
    n_items, kind, judge = len(comparisons.items), comparisons.kind, comparisons.judge
    first, second, lead, offset = _oriented_duels(comparisons, slice(None))
    code = first * n_items + second + kind.astype(np.intp) * n_items**2
    if comparisons.ordered:
        code = 3 * code + (lead + 1)
    if judge is not None:  # numbers that stay below n × n_judges, however large the codes are
        code = number_by_appearance(code)[1] * (judge.max(initial=0) + 1) + judge
    if offset is not None:
        number = np.unique(offset, return_inverse=True)[1].reshape(-1)
        code = number_by_appearance(code)[1] * (number.max(initial=0) + 1) + number
    return code


def _oriented_duels(comparisons, rows):
    """Return both items, who was shown first and offset of duels; of a tie the items ascend."""
    (first, second), order = comparisons.positions[rows, :2].T, comparisons.order[rows]
    offset = comparisons.offset
    offset = None if offset is None else offset[rows, 0] - offset[rows, 1]
    lead = (order[:, 0] == 0).astype(np.int8) - (order[:, 1] == 0)
    turned = (comparisons.kind[rows] == TIE) & (first > second)
    if turned.any():  # it has no winner
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        lead = np.where(turned, -lead, lead)
        offset = None if offset is None else np.where(turned, -offset, offset)
    return first, second, lead, offset


def _canonical_sets(comparisons, rows):
    """Return positions, ranks, order and offsets of sets, with the items of a rank ascending.

    Who was shown first is left out where it does not tell answers apart.
    """
    positions, rank = comparisons.positions[rows], comparisons.rank[rows]
    shown = (comparisons.order[rows] == 0).astype(np.intp) * comparisons.ordered
    sort = _canonical_sequence(positions, rank, shown)
    offset = None if comparisons.offset is None else comparisons.offset[rows]
    return _take_within_answers(sort, positions, rank, shown, offset)


def _take_within_answers(sort, *columns):
    """Return arrays with the items of each answer in another order; None stays None."""
    return [None if each is None else np.take_along_axis(each, sort, axis=1) for each in columns]


def _canonical_sequence(positions, rank, shown):
    """Return the order that sorts the items of each answer by rank, then by number."""
    last = rank.max(initial=0) + 1
    return np.lexsort((shown, positions, np.where(rank > 0, rank, last)), axis=1)


def _make_duel_rows(comparisons, rows, counts):
    """Return `Rows` of some of the answers, which are duels."""
    judge = None if comparisons.judge is None else comparisons.judge[rows]
    first, second, lead, offset = _oriented_duels(comparisons, rows)
    kind = comparisons.kind[rows]
    return duel_rows(len(comparisons.items), first, second, kind, lead, counts, judge, offset)


def _make_set_rows(n_items, sets, judge, counts):
    """Return `Rows` of ranked answers; ``answer`` is their number among these."""
    positions, rank, first, offset = sets
    answer, better, worse, basis = inequalities(rank)
    lead = (first[answer, better] - first[answer, worse]).astype(np.int8)
    kind = np.full(len(answer), INEQUALITY, dtype=np.int8)
    places = np.column_stack([better, worse])
    ends = positions[answer, better], positions[answer, worse]
    judge = None if judge is None else judge[answer]
    offset = None if offset is None else offset[answer, better] - offset[answer, worse]
    return Rows(n_items, *ends, kind, lead, counts[answer], answer, places, basis, judge, offset)


@dataclass(frozen=True, eq=False)
class Duels(ByValue):
    """Distinct items and distinct duels with their counts, in order of first appearance.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items.
    winner, loser : ndarray of shape (n_kinds,)
        Indices into ``items``; every (winner, loser) occurs once a kind. Of a tie the two items.
    counts : ndarray of shape (n_kinds,)
        How often each duel was seen: the sum of its answers' weights.
    kind : ndarray of int8 of shape (n_kinds,)
        As `DuelScale.kinds` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Comparisons
    >>> items = np.array([[0.0], [1.0], [2.0]])
    >>> seen = Comparisons.from_duels(items, [0, 1, 1, 2], [1, 0, 2, 1], [True, True, True, True])
    >>> seen.duels.winner.tolist(), seen.duels.loser.tolist(), seen.duels.counts.tolist()
    ([0, 1, 1, 2], [1, 0, 2, 1], [1.0, 1.0, 1.0, 1.0])
    """

    items: NDArray[np.float64]
    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    counts: NDArray[np.float64]
    kind: NDArray[np.int8]


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
class Comparisons(ByValue):
    """Items and the answers about them, not yet counted.

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
        As `DuelScale.kinds` has them, or `SET`.
    weight : ndarray of shape (n_answers,)
        How often the answer counts; positive.
    judge : ndarray of shape (n_answers,) or None
        Number of the judge, from 0; None: all are one.
    rank : ndarray of int of shape (n_answers, k) or None
        Of sets: 1 for the best, equal where nothing is said of two items, 0 where nothing is said
        of an item. None: there are no sets.
    ordered : bool
        Whether duels that differ in who was shown first alone are different answers.
    group_column : int or None
        Column of the items' rows in which the group of the answer stands, such as its prompt: all
        items of an answer have the same value there. None: answers are in no groups.
    offset : ndarray of shape (n_answers, k) or None
        Known part of the utility of each item in each answer, less that of the best; 0 where there
        is no item. None: it is 0 everywhere.
    measured : MeasuredValues or None
        Values of some items beside the answers; ``items`` then has these, too.
    order_column : int or None
        Column of the items' rows, the last, that is 1 for the item that was shown first, else 0.
        None: order has no part in the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Comparisons
    >>> items = np.array([[0.0], [1.0], [1.0], [2.0]])
    >>> seen = Comparisons.from_duels(items, [0, 2, 0], [1, 3, 1], [False, True, False])
    >>> seen.items.ravel().tolist(), seen.positions.tolist()
    ([0.0, 1.0, 2.0], [[1, 0], [1, 2], [1, 0]])
    >>> seen.duels.counts.tolist()
    [2.0, 1.0]
    >>> chosen = Comparisons.from_ranks(items, [[0, 1, 3]], [[2, 1, 2]])
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
    group_column: int | None = None
    offset: NDArray[np.float64] | None = None
    measured: MeasuredValues | None = None
    order_column: int | None = None

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
        kind: ArrayLike | None = None,
        order: ArrayLike | None = None,
        offset: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return the comparisons of duels between rows of a table.

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
        kind : array-like of int of shape (n_duels,), optional
            As `DuelScale.kinds` has them; by default `DUEL`.
        order : array-like of int of shape (n_duels,), optional
            1: what is written first was shown first (the default), −1: the second was, 0: neither.
        offset : ndarray of shape (n_duels, 2), optional
            Known part of the utilities of the first and the second.

        Returns
        -------
        Comparisons
        """
        won = np.asarray(first_won, dtype=bool)
        sets, ranks = np.array([first, second]).T, 2 - np.array([won, ~won]).T
        beside: Any = {"kind": kind, "order": order, "offset": offset}
        return replace(cls.from_ranks(items, sets, ranks, weight, judge, **beside), rank=None)

    @classmethod
    def from_ranks(
        cls,
        items: NDArray[np.float64],
        shown: ArrayLike,
        rank: ArrayLike,
        weight: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        *,
        kind: ArrayLike | None = None,
        order: ArrayLike | None = None,
        offset: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return the comparisons of choices and rankings of rows of a table.

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
        kind : array-like of int of shape (n_answers,), optional
            Of two items as `DuelScale.kinds` has it (of a `TIE` the ranks do not count); `DUEL`
            (the default) where the ranks say it all.
        order : array-like of int of shape (n_answers,), optional
            1: the first shown counts as such (the default), 0: none does; −1: the second of two.
        offset : ndarray of shape (n_answers, k), optional
            Known part of the utility of each item shown.

        Returns
        -------
        Comparisons
            An answer that comes to one inequality is a duel.
        """
        # By columns, which sums along short rows take a tenth of the time for.
        sets, ranks = np.array(shown, np.intp, order="F"), np.array(rank, np.int_, order="F")
        n, k = sets.shape
        weights = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        judges = None if judge is None else np.asarray(judge, dtype=np.intp)
        kinds = np.full(n, DUEL, np.int8) if kind is None else np.asarray(kind, np.int8)
        orders = np.ones(n, np.int8) if order is None else np.asarray(order, np.int8)
        ties = kinds == TIE
        ranks[sets < 0] = 0
        ranks[ties] = 0
        is_counted = (ties | (ranks > 1).any(axis=1)) & (weights > 0.0)
        if not is_counted.all():
            columns: Any = weights, judges, kinds, orders, offset, sets, ranks
            weights, judges, kinds, orders, offset, sets, ranks = _take_from_each(
                is_counted, *columns
            )
        distinct, positions = _distinct_items(items, sets)
        is_item = sets >= 0
        places = np.where(is_item, np.cumsum(is_item, axis=1) - 1, -1)  # the first that is there: 0
        places = places.astype(np.int8 if k < 128 else np.int16)
        places[orders == 0] = -1
        turned = orders < 0
        places[turned, :2] = places[turned, 1::-1]
        # Best first, equal ranks as shown, then items that are not ranked, then padding.
        key = np.where(ranks > 0, ranks, np.where(sets < 0, 2 * k + 1, 2 * k))
        sort = np.argsort(key, axis=1, kind="stable")
        positions, places, ranks, offset = _take_within_answers(
            sort, positions, places, ranks, offset
        )
        if offset is not None:  # a part that all items of an answer share says nothing
            offset = np.where(positions < 0, 0.0, offset - offset[:, :1])
            offset = offset if offset.any() else None
        single = (kinds == TIE) | (np.count_nonzero(ranks, axis=1) == 2)
        kinds = np.where(single, kinds, SET).astype(np.int8)
        return cls(distinct, positions, places, kinds, weights, judges, ranks, offset=offset)

    def part(self, answers: NDArray[np.intp]) -> Self:
        """Return some of the answers, all measured values, and the items in them."""
        shown, measured = self.positions[answers], self.measured
        n = len(shown)
        if measured is not None:
            measured_alone = np.full((len(measured.item), shown.shape[1]), -1)
            measured_alone[:, 0] = measured.item
            shown = np.concatenate([shown, measured_alone])
        items, positions = _distinct_items(self.items, shown)
        measured = measured and replace(measured, item=positions[n:, 0])
        columns = {
            **_take_from_fields(self, answers),
            "positions": positions[:n],
            "measured": measured,
        }
        return replace(self, items=items, **columns)

    def with_measured(
        self,
        rows: NDArray[np.float64],
        value: NDArray[np.float64],
        deviation: NDArray[np.float64],
        level: float | None = None,
    ) -> Self:
        """Return the same answers beside measured values of items, a row of features each."""
        items, place = _distinct_items(
            np.concatenate([self.items, rows]), np.arange(len(self.items) + len(rows))
        )
        measured = MeasuredValues(place[len(self.items) :], value, deviation, level)
        return replace(self, items=items, measured=measured)

    def in_canonical_order(
        self, keys: NDArray[np.float64] | None = None, judge_keys: NDArray[np.intp] | None = None
    ) -> Self:
        """Return the same answers in an order that depends on their set alone.

        Neither the order of the answers, nor the side on which an item was written, nor whether an
        answer has weight 2 or was given twice makes any difference to its rows and single answers.

        Parameters
        ----------
        keys : ndarray of shape (n_items, n_keys), optional
            What items are sorted by; by default their features.
        judge_keys : ndarray of int of shape (n_judges,), optional
            What judges are sorted by; by default their numbers.

        Returns
        -------
        Comparisons
        """
        ascending = np.lexsort((self.items if keys is None else keys).T[::-1])
        place = np.append(np.argsort(ascending), -1)  # of no item: −1
        positions, order = place[self.positions], self.order
        rank = np.where(self.kind == TIE, 0, [[1], [2]]).T if self.rank is None else self.rank
        shown = np.where(order == 0, 0, 1) if self.ordered else np.zeros_like(positions)
        sort = _canonical_sequence(np.where(positions < 0, len(place), positions), rank, shown)
        positions, order, rank, shown, offset = _take_within_answers(
            sort, positions, order, rank, shown, self.offset
        )
        columns = [shown, rank, positions, self.kind[:, None]]
        if offset is not None:
            offset = offset - offset[:, :1]  # of a tie another item may now be the first
            columns.insert(0, np.where(positions < 0, 0.0, offset))
        if self.judge is not None:
            judge = self.judge if judge_keys is None else judge_keys[self.judge]
            columns.append(judge[:, None])
        columns_of_items = {"positions": positions, "order": order, "offset": offset}
        if self.rank is not None:
            columns_of_items["rank"] = rank
        measured = self.measured and replace(self.measured, item=place[self.measured.item])
        items = self.items[ascending]
        whole = replace(self, items=items, measured=measured, **columns_of_items)
        return whole.part(np.lexsort(np.hstack(columns).T))

    def with_items(self, items: NDArray[np.float64]) -> Self:
        """Return the same answers about other rows of features of the items."""
        changed = replace(self, items=items)
        vars(changed)["_merged_answers"] = self._merged_answers
        return changed

    def with_first_columns(self, n_columns: int) -> Self:
        """Return the same answers about items of which so many columns are kept, the first."""
        items, positions = _distinct_items(self.items[:, :n_columns], self.positions)
        return replace(self, items=items, positions=positions, group_column=None, order_column=None)

    def without_groups(self) -> Self:
        """Return the same answers about items without the columns of groups, and of order."""
        column = self.order_column if self.group_column is None else self.group_column
        return self if column is None else self.with_first_columns(column)

    def concatenate(self, other: Self) -> Self:
        """Return these answers followed by duels or ties, with judges if both have some."""
        n_items, n_further = len(self.items), len(other.positions)
        rows = np.concatenate([self.items, other.items])
        items, place = _distinct_items(rows, np.arange(len(rows)))

        def extended(column, ends, fill):
            if column is None:
                return None
            further = np.full((n_further, column.shape[1]), fill, dtype=column.dtype)
            further[:, :2] = ends
            return np.concatenate([column, further])

        judged = self.judge is not None and other.judge is not None
        return replace(
            self,
            items=items,
            positions=extended(self.positions, place[n_items:][other.positions[:, :2]], -1),
            order=extended(self.order, other.order[:, :2], -1),
            kind=np.concatenate([self.kind, other.kind]),
            weight=np.concatenate([self.weight, other.weight]),
            judge=np.concatenate([self.judge, other.judge]) if judged else None,
            rank=extended(self.rank, [1, 2], 0),
            offset=extended(self.offset, 0.0, 0.0),
        )

    def with_duels(self, better: NDArray[np.float64], worse: NDArray[np.float64]) -> Self:
        """Return these answers, of a judge 0, followed by duels that a judge 1 has answered.

        Parameters
        ----------
        better, worse : ndarray of shape (m, n_features)
            Winner and loser of each duel, neither of them shown first.
        """
        m = len(better)
        ends, neither = np.arange(2 * m).reshape(2, m).T, np.full((m, 2), -1, dtype=np.int8)
        further: Any = ends, neither, np.full(m, DUEL, dtype=np.int8), np.ones(m), np.ones(m, int)
        duels = type(self)(np.concatenate([better, worse]), *further)
        return replace(self, judge=np.zeros(len(self.positions), dtype=int)).concatenate(duels)

    def spread(self, size: int) -> Self:
        """Return at most ``size`` of the answers, evenly spaced."""
        n = len(self.positions)
        return self if n <= size else self.part(np.linspace(0, n - 1, size).astype(np.intp))

    # -- the counted view ------------------------------------------------------------------

    @cached_property
    def _merged_answers(self) -> tuple[Rows, NDArray[np.intp]]:
        """Rows of the distinct answers, and the distinct answer of each answer."""
        return _merge_identical_answers(self)

    @property
    def rows(self) -> Rows:
        """Inequalities of the distinct answers, counted."""
        return self._merged_answers[0]

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Cache in which a prior keeps what it computes of these answers; not pickled."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Its fields, without what is `kept` or counted, which is found again when asked for."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def of_answer(self) -> NDArray[np.intp]:
        """Number of the distinct answer that each answer equals, shape (n_answers,)."""
        return self._merged_answers[1]

    @cached_property
    def duels(self) -> Duels:
        """Distinct duels, of all kinds, with their counts over all judges."""
        if self.judge is not None or self.offset is not None:
            return replace(self, judge=None, offset=None).duels
        rows = self.rows
        if rows.joint:
            rows = rows.take(np.flatnonzero(rows.kind != INEQUALITY))
        return Duels(self.items, rows.first, rows.second, rows.counts, rows.kind)

    @property
    def n_singles(self) -> int:
        """Number of inequalities of all single answers."""
        return int(self.weight @ np.bincount(self.rows.answer)[self.of_answer])

    def singles(self) -> Singles:
        """Return the rows of every answer, in order; an answer of weight w is repeated w times.

        Raises
        ------
        ValueError
            If a weight is no integer.
        """
        whole = np.rint(self.weight)
        odd = self.weight[whole != self.weight]
        if len(odd):
            raise ValueError(
                f"Sampling takes sample_weight as a number of repetitions, got {odd[0]}. Use whole "
                "numbers, or inference='ep' or 'laplace', which take any."
            )
        every = np.repeat(self.of_answer, whole.astype(np.intp))
        size = np.bincount(self.rows.answer)
        begin, sizes = np.cumsum(size) - size, size[every]
        answer = np.repeat(np.arange(len(every)), sizes)
        shift = begin[every] - (np.cumsum(sizes) - sizes)
        return Singles(np.arange(len(answer)) + shift[answer], answer)


def _take_from_each(rows: NDArray, *parts: NDArray | None) -> list[Any]:
    """Return some rows of each array; None stays None."""
    return [None if part is None else part[rows] for part in parts]


def _distinct_items(items, shown):
    """Return distinct items in the order shown, and the number of each item shown."""
    is_item = shown >= 0
    padded = not is_item.all()
    rows, row, _ = number_by_appearance(shown[is_item] if padded else shown.reshape(-1))
    first, same = group_equal_rows(items, rows)
    if len(first) < len(rows):
        codes, code, _ = number_by_appearance(same)
        rows, row = rows[first[codes]], code[row]
    if not padded:
        return float_rows(items, rows), row.reshape(shown.shape)
    positions = np.full(shown.shape, -1, dtype=np.intp)
    positions[is_item] = row
    return float_rows(items, rows), positions
