"""Answers of every kind as rows: what they state, how equal ones are counted and found again."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref.data import DUEL, GRADED, INEQUALITY, SET, TIE
from skpref.duels import Comparisons
from skpref.fitting._fit import match_state
from skpref.fitting._parts import earlier_positions

ITEMS = np.arange(8.0)[:, None]


def of_ranks(shown, rank, **options):
    return Comparisons.from_ranks(ITEMS, shown, rank, **options)


def some_ranks(seed, n=40, k=5):
    """Random rankings with equal ranks, zeros and pads."""
    rng = np.random.default_rng(seed)
    shown = np.array([rng.permutation(8)[:k] for _ in range(n)])
    rank = rng.integers(0, 4, (n, k))
    for row in rank:  # without gaps
        stated = np.unique(row[row > 0])
        row[row > 0] = 1 + np.searchsorted(stated, row[row > 0])
    shown[: n // 2, k - 1] = -1
    short = rank[: n // 2, : k - 1]
    for row in short:
        stated = np.unique(row[row > 0])
        row[row > 0] = 1 + np.searchsorted(stated, row[row > 0])
    rank[: n // 2, k - 1] = 0
    kept = rank.max(axis=1) > 1
    return shown[kept], rank[kept]


def stated(shown, rank):
    """Pairs (better, worse) by neighbouring ranks, in a plain loop."""
    return {
        (float(a), float(b))
        for a, i in zip(shown, rank, strict=True)
        for b, j in zip(shown, rank, strict=True)
        if i > 0 and j == i + 1
    }


def said(seen, answer):
    """The same of a distinct answer's rows."""
    at = np.flatnonzero(seen.rows.answer == answer)
    first, second = seen.rows.first[at], seen.rows.second[at]
    return set(zip(seen.items[first, 0].tolist(), seen.items[second, 0].tolist(), strict=True))


def differences(seen, at):
    """Rows as differences of the utilities of items, one matrix row each."""
    A = np.zeros((len(at), len(seen.items)))
    np.add.at(A, (np.arange(len(at)), seen.rows.first[at]), 1.0)
    np.add.at(A, (np.arange(len(at)), seen.rows.second[at]), -1.0)
    return A


# -- what rows state -------------------------------------------------------------------------


def test_rows_state_what_the_ranks_do():
    shown, rank = some_ranks(0)
    seen = of_ranks(shown, rank)
    for i, answer in enumerate(seen.of_answer):
        assert said(seen, answer) == stated(shown[i], rank[i])
    assert {DUEL, INEQUALITY} == set(seen.rows.kind.tolist())
    assert_array_equal(np.diff(seen.rows.answer) >= 0, True)


def test_the_basis_spans_every_answer_and_no_more():
    seen = of_ranks(*some_ranks(1))
    dependent = 0
    for answer in range(seen.rows.answer.max() + 1):
        at = np.flatnonzero(seen.rows.answer == answer)
        A, basis = differences(seen, at), seen.rows.basis[at]
        assert np.linalg.matrix_rank(A) == np.linalg.matrix_rank(A[basis]) == basis.sum()
        dependent += not basis.all()
    assert dependent > 3


def test_noise_of_a_block_is_that_of_one_draw_an_item():
    seen = of_ranks(*some_ranks(2))
    rows, margins = seen.rows, seen.rows.margins
    found = 0
    for block in margins.blocks:
        for margin, pattern, basis, count, places in zip(*block, strict=True):
            at = np.flatnonzero(np.isin(margins.index, margin))
            assert_array_equal(margins.index[at], margin)
            A = differences(seen, at)
            assert_array_equal(pattern, A @ A.T)
            assert_array_equal(basis, rows.basis[at])
            assert set(rows.counts[at]) == {count}
            assert_array_equal(places, rows.places[at])
            found += 1
    assert found == len(np.unique(rows.answer[rows.kind == INEQUALITY]))
    assert margins.n_shared + sum(b.margin.size for b in margins.blocks) == len(margins.first)


def test_one_inequality_is_a_duel():
    seen = of_ranks([[0, 1, 2], [3, 4, -1], [5, 6, 7]], [[0, 2, 1], [1, 2, 0], [1, 2, 2]])
    assert seen.kind.tolist() == [DUEL, DUEL, SET]
    assert seen.rows.kind.tolist() == [DUEL, DUEL, INEQUALITY, INEQUALITY]
    assert said(seen, 0) == {(2.0, 1.0)}
    duels = Comparisons.from_duels(ITEMS, [2, 3], [1, 4], [True, True])
    assert_array_equal(seen.duels.counts, duels.duels.counts)


def test_answers_that_say_nothing_are_left_out():
    seen = of_ranks([[0, 1, 2], [3, 4, 5], [5, 6, 7]], [[1, 1, 1], [0, 0, 1], [1, 2, 2]])
    assert len(seen.positions) == 1 and sorted(seen.items.ravel()) == [5.0, 6.0, 7.0]


def test_pads_make_no_difference():
    shown, rank = [[0, 1, 2], [3, 4, 5]], [[2, 1, 2], [1, 2, 3]]
    padded = of_ranks(np.pad(shown, ((0, 0), (0, 2)), constant_values=-1), np.pad(rank, (0, 2))[:2])
    assert padded.rows == of_ranks(shown, rank).rows


# -- equal answers ---------------------------------------------------------------------------


def test_sets_are_one_whatever_the_order_shown():
    rng = np.random.default_rng(3)
    shown, rank = some_ranks(4)
    turned = np.array([rng.permutation(shown.shape[1]) for _ in shown])
    turned[shown[:, -1] < 0] = np.arange(shown.shape[1])  # pads stay at the end
    both = [np.concatenate([x, np.take_along_axis(x, turned, axis=1)]) for x in (shown, rank)]
    seen, n = of_ranks(*both), len(shown)
    assert_array_equal(seen.of_answer[:n], seen.of_answer[n:])
    once = of_ranks(shown, rank).rows
    assert_array_equal(seen.rows.counts, 2.0 * once.counts)
    ordered = replace(seen, ordered=True)
    for i in range(n):
        named = rank[i] > 0
        leaders = [both[0][j][0] if both[1][j][0] > 0 else -1 for j in (i, n + i)]
        alike = ordered.of_answer[i] == ordered.of_answer[n + i]
        if named.any() and seen.kind[i] == SET:
            assert alike == (leaders[0] == leaders[1])


def test_ranks_that_differ_are_different_answers():
    shown = [[0, 1, 2]] * 6
    rank = [[1, 2, 2], [1, 2, 3], [1, 1, 2], [2, 1, 2], [1, 2, 2], [1, 2, 0]]
    seen = of_ranks(shown, rank)
    assert seen.of_answer.tolist() == [0, 1, 2, 3, 0, 4]
    assert seen.rows.counts[seen.rows.answer == 0].tolist() == [2.0, 2.0]


def test_grades_of_one_pair_are_different_answers():
    first, second, kind = [0, 1, 0, 0], [1, 0, 1, 1], [GRADED + 1, GRADED + 2, DUEL, GRADED + 1]
    seen = Comparisons.from_duels(ITEMS, first, second, [True, False, True, True], kind=kind)
    assert seen.of_answer.tolist() == [0, 1, 2, 0]
    assert seen.rows.kind.tolist() == [GRADED + 1, GRADED + 2, DUEL]
    assert seen.rows.counts.tolist() == [2.0, 1.0, 1.0] and len(seen.rows.margins.first) == 1


def test_a_tie_has_no_winner():
    first, second, tie = [0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [True, True, False, False, True]
    seen = Comparisons.from_duels(
        ITEMS, first, second, [True, False, True, True, False], kind=TIE * np.array(tie)
    )
    assert seen.of_answer.tolist() == [0, 0, 1, 2, 0]
    assert seen.rows.kind.tolist() == [TIE, DUEL, DUEL]
    assert seen.duels.kind.tolist() == [TIE, DUEL, DUEL]
    assert seen.duels.counts.tolist() == [3.0, 1.0, 1.0]
    assert len(seen.rows.margins.first) == 1
    same = of_ranks(np.column_stack([first, second]), [[1, 1]] * 2 + [[1, 2]] * 2 + [[1, 1]],
                    kind=TIE * np.array(tie))  # fmt: skip
    assert same.rows == seen.rows


@pytest.mark.parametrize("tie", [False, True])
def test_who_was_shown_first_counts_where_it_is_asked(tie):
    # 0 against 1: 0 first, written either way; 1 first, written either way; neither.
    first, second, order = [0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [1, -1, -1, 1, 0]
    won = np.array(first) == 0
    seen = Comparisons.from_duels(ITEMS, first, second, won, kind=[TIE * tie] * 5, order=order)
    assert seen.of_answer.tolist() == [0] * 5
    ordered = replace(seen, ordered=True)
    assert ordered.of_answer.tolist() == [0, 0, 1, 1, 2]
    assert ordered.rows.lead.tolist() == [1, -1, 0]
    assert seen.items[ordered.rows.first].ravel().tolist() == [0.0] * 3


def test_the_first_shown_of_a_set_leads_its_rows():
    shown, rank = [[3, 4, 5]] * 3, [[1, 2, 3], [2, 1, 2], [0, 1, 2]]
    for order, expected in ((1, [1, 0, 0, -1, 0]), (0, [0] * 5)):
        seen = replace(of_ranks(shown, rank, order=[order] * 3), ordered=True)
        # 3 > 4, 4 > 5; 4 > 3, 4 > 5 by the numbers of items; 4 > 5 with another shown first.
        pairs = [(3.0, 4.0), (4.0, 5.0), (4.0, 5.0), (4.0, 3.0), (4.0, 5.0)]
        rows = seen.rows
        ends = zip(seen.items[rows.first, 0], seen.items[rows.second, 0], strict=True)
        told = sorted(zip(rows.answer, ends, rows.lead, strict=True))
        wanted = sorted(zip([0, 0, 1, 1, 2], pairs, [expected[i] for i in (0, 1, 2, 3, 4)],
                            strict=True))  # fmt: skip
        assert told == wanted


def test_weights_are_sums_and_whole_ones_repetitions():
    shown, rank = some_ranks(5)
    weight = np.random.default_rng(0).integers(0, 4, len(shown))
    seen = of_ranks(shown, rank, weight=weight)
    repeated = of_ranks(np.repeat(shown, weight, axis=0), np.repeat(rank, weight, axis=0))
    assert seen.rows == repeated.rows
    assert_array_equal(seen.singles().row, repeated.singles().row)
    assert_array_equal(seen.singles().answer, repeated.singles().answer)
    assert seen.n_singles == len(seen.singles().row)


def test_singles_hold_all_rows_of_every_answer():
    shown, rank = some_ranks(6)
    weight = np.random.default_rng(1).integers(1, 3, len(shown)).astype(float)
    seen = of_ranks(shown, rank, weight=weight)
    singles, every = seen.singles(), np.repeat(seen.of_answer, weight.astype(int))
    assert_array_equal(singles.answer, np.sort(singles.answer))
    for number, answer in enumerate(every):
        rows = singles.row[singles.answer == number]
        assert_array_equal(rows, np.flatnonzero(seen.rows.answer == answer))


# -- more answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 9, 20])
@pytest.mark.parametrize("state_of", ["duels", "answers"])
def test_states_are_carried_to_more_answers(n, state_of):
    shown, rank = some_ranks(7)
    less, more = of_ranks(shown[:n], rank[:n]), of_ranks(shown, rank)
    single = state_of == "answers"
    size = less.n_singles if single else len(less.rows)
    state = match_state({"shift": np.arange(float(size))}, less, more, state_of)["shift"]
    assert len(state) == (more.n_singles if single else len(more.rows))
    assert_array_equal(state[:size], np.arange(float(size)))
    index = earlier_positions(less, more, single=single)
    assert_array_equal(index, np.where(np.isnan(state), -1, state))


def test_duels_ties_and_parts_of_the_same_items_are_not_taken_for_each_other():
    duel = of_ranks([[0, 1, 2]], [[1, 2, 0]])
    tie = Comparisons.from_duels(ITEMS, [0], [1], [True], kind=[TIE])
    part = of_ranks([[0, 1, 2]], [[1, 2, 2]])
    for one in (duel, tie, part):
        for other in (duel, tie, part):
            found = earlier_positions(one, other, single=False)
            assert np.all(found == -1) == (one is not other)
