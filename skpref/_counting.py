"""Equal answers are one, with a count."""

import numpy as np
from numpy.typing import NDArray

from skpref._items import distinct_rows
from skpref._rows import PART, SET, TIE, Rows, duel_rows, first_places, first_seen, inequalities


def counted(
    n_items: int,
    positions: NDArray[np.intp],
    order: NDArray[np.int8],
    kind: NDArray[np.int8],
    weight: NDArray[np.float64],
    rank: NDArray[np.int_] | None,
    ordered: bool,
    judge: NDArray[np.intp] | None = None,
) -> tuple[Rows, NDArray[np.intp]]:
    """Rows of the distinct answers, and the distinct answer of every answer.

    Parameters
    ----------
    n_items : int
    positions, order, kind, weight, rank, ordered, judge
        Of the `Observations`.
    """
    code, parts = _coded_duels(n_items, positions, order, kind, ordered, judge)
    is_set = kind == SET
    if rank is None or not is_set.any():
        distinct, of_answer = first_seen(code)
        counts = np.bincount(of_answer, weight, len(distinct)).astype(np.float64)
        at = first_places(of_answer, len(distinct))
        return _rows_of(n_items, parts, at, counts), of_answer
    sets = _canonical(positions[is_set], rank[is_set], order[is_set] == 0, ordered)
    of_sets = None if judge is None else judge[is_set]
    n_duels = 0
    if not is_set.all():
        distinct, code[~is_set] = first_seen(code[~is_set])
        n_duels = len(distinct)
    told = sets if of_sets is None else [*sets, of_sets[:, None]]
    code[is_set] = n_duels + distinct_rows(np.hstack(told).astype(np.float64))[1]
    distinct, of_answer = first_seen(code)
    counts = np.bincount(of_answer, weight, len(distinct)).astype(np.float64)
    at = first_places(of_answer, len(distinct))
    nth = np.cumsum(is_set) - 1  # of an answer among the sets
    single, joint = np.flatnonzero(~is_set[at]), np.flatnonzero(is_set[at])
    duels = _rows_of(n_items, parts, at[single], counts[single])
    joined = _set_rows(n_items, sets, of_sets, nth[at[joint]], counts[joint])
    return duels.merged(single, joined, joint), of_answer


def _coded_duels(n_items, positions, order, kind, ordered, judge):
    """Integers that tell duels apart, and the parts of these."""
    first, second = positions[:, 0], positions[:, 1]
    lead = (order[:, 0] == 0).astype(np.int8) - (order[:, 1] == 0)
    tie = kind == TIE
    turned = tie & (first > second)
    if turned.any():  # a tie has no winner: it is written one way
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        lead = np.where(turned, -lead, lead)
    code = first * n_items + second
    if tie.any():
        code = code + tie * n_items**2
    if ordered:
        code = 3 * code + (lead + 1)
    if judge is not None:  # numbers that stay below n × n_judges, however large the codes are
        code = first_seen(code)[1] * (judge.max(initial=0) + 1) + judge
    return code, (first, second, kind, lead, judge)


def _canonical(positions, rank, first, ordered):
    """Positions, ranks and who was shown first, items of one rank in the order of their numbers.

    Who was shown first is left out where it does not tell answers apart.
    """
    first = first.astype(np.intp) if ordered else np.zeros_like(positions)
    last = rank.max(initial=0) + 1
    sort = np.lexsort((first, positions, np.where(rank > 0, rank, last)), axis=1)
    return [np.take_along_axis(each, sort, axis=1) for each in (positions, rank, first)]


def _rows_of(n_items, parts, at, counts):
    first, second, kind, lead, judge = (None if part is None else part[at] for part in parts)
    return duel_rows(n_items, first, second, kind, lead, counts, judge)


def _set_rows(n_items, sets, judge, at, counts):
    """Inequalities of ranked answers; `Rows.answer` is their number among these."""
    positions, rank, first = (part[at] for part in sets)
    stated = inequalities(rank)
    answer, better, worse = stated.answer, stated.better, stated.worse
    lead = (first[answer, better] - first[answer, worse]).astype(np.int8)
    kind = np.full(len(answer), PART, dtype=np.int8)
    places = np.column_stack([better, worse])
    ends = positions[answer, better], positions[answer, worse]
    whose = None if judge is None else judge[at][answer]
    told = counts[answer], answer, places, stated.basis, whose
    return Rows(n_items, *ends, kind, lead, *told)
