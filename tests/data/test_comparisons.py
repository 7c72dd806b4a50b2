"""Comparisons: order of first appearance, counting, weights, growth and matching."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from core_support import won

from skpref.data._comparisons import ByValue, number_by_appearance, take_rows_with_items
from skpref.duels import TIE, Comparisons
from skpref.fitting._parts import earlier_positions


def some(seed=0, n_items=12, n_duels=60, n_values=3):
    """A table with equal rows and rows that no duel shows; repeats and contradictions."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, n_values, (n_items, 2)).astype(float)
    first, second = rng.integers(0, n_items, (2, n_duels))
    return items, first, second, rng.random(n_duels) < 0.5


def keys(rows):
    return list(map(repr, np.asarray(rows).tolist()))


def ends(duels, which=slice(None)):
    """(winner, loser) values of distinct duels."""
    return keys(np.stack([duels.items[duels.winner], duels.items[duels.loser]], axis=1)[which])


def told(items, first, second, first_won):
    """(winner, loser) values of the duels as they came."""
    winner, loser = np.where(first_won, [first, second], [second, first])
    return keys(np.stack([items[winner], items[loser]], axis=1))


# -- counting ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_items", "n_duels"), [(5, 400), (3000, 20)])
def test_duels_are_counted_as_a_counter_does(n_items, n_duels):
    given = some(1, n_items, n_duels)
    duels = Comparisons.from_duels(*given).duels
    expected = Counter(told(*given))
    assert dict(zip(ends(duels), duels.counts, strict=True)) == expected
    used = np.unique(np.concatenate([duels.winner, duels.loser]))
    assert used.tolist() == list(range(len(duels.items)))


def test_the_order_of_rows_changes_the_order_alone():
    items, first, second, first_won = some(2, 30, 200)
    rng = np.random.default_rng(0)
    order, shift = rng.permutation(200), rng.permutation(30)
    back = np.argsort(shift)
    one = Comparisons.from_duels(items, first, second, first_won)
    mixed = items[shift], back[first[order]], back[second[order]], first_won[order]
    other = Comparisons.from_duels(*mixed)
    assert sorted(keys(one.items)) == sorted(keys(other.items))
    counted = [dict(zip(ends(o.duels), o.duels.counts, strict=True)) for o in (one, other)]
    assert counted[0] == counted[1]
    assert ends(one.duels) != ends(other.duels)


def test_margins_recover_every_kind_of_duel():
    rng = np.random.default_rng(3)
    comparisons = won(rng.normal(size=(6, 2)), *rng.integers(0, 6, (2, 80)))
    duels, margins = comparisons.duels, comparisons.rows.margins
    f = rng.normal(size=len(duels.items))
    z = f[margins.first] - f[margins.second]
    np.testing.assert_array_equal(margins.sign * z[margins.index], f[duels.winner] - f[duels.loser])
    assert len(set(map(frozenset, zip(margins.first, margins.second, strict=True)))) == len(z)


# -- order of first appearance -----------------------------------------------------------------


def test_items_and_duels_stand_in_the_order_in_which_they_came():
    items, first, second, first_won = some(4)
    seen = Comparisons.from_duels(items, first, second, first_won)
    shown = keys(items[np.column_stack([first, second]).ravel()])
    assert keys(seen.items) == list(dict.fromkeys(shown))
    assert ends(seen.duels) == list(dict.fromkeys(told(items, first, second, first_won)))


def test_every_answer_knows_its_items_its_order_and_its_row():
    items, first, second, first_won = some(5)
    seen = Comparisons.from_duels(items, first, second, first_won)
    assert keys(seen.items[seen.positions]) == told(items, first, second, first_won)
    np.testing.assert_array_equal(seen.order[:, 0] == 0, first_won)
    np.testing.assert_array_equal(seen.order.sum(axis=1), 1)
    assert ends(seen.duels, seen.of_answer) == told(items, first, second, first_won)
    # What the likelihood is told of a distinct duel is how the first of its answers was shown.
    shown = dict(zip(told(items, first, second, first_won)[::-1], first_won[::-1], strict=True))
    assert seen.rows.answers.lead.tolist() == [1 if shown[key] else -1 for key in ends(seen.duels)]
    np.testing.assert_array_equal(seen.kind, 0)


@pytest.mark.parametrize("n", [1, 7, 30, 59])
def test_more_answers_only_add_at_the_end(n):
    items, first, second, first_won = some(6, n_items=40, n_values=5)
    less = Comparisons.from_duels(items, first[:n], second[:n], first_won[:n])
    more = Comparisons.from_duels(items, first, second, first_won)
    np.testing.assert_array_equal(more.items[: len(less.items)], less.items)
    for name in ("positions", "order", "weight", "of_answer"):
        np.testing.assert_array_equal(getattr(more, name)[:n], getattr(less, name))
    for name in ("winner", "loser"):
        start = getattr(more.duels, name)[: len(less.duels.counts)]
        np.testing.assert_array_equal(start, getattr(less.duels, name))
    margins = len(less.rows.margins.first)
    np.testing.assert_array_equal(more.rows.margins.first[:margins], less.rows.margins.first)
    np.testing.assert_array_equal(more.rows.margins.second[:margins], less.rows.margins.second)


@pytest.mark.parametrize("spread", [3, 10**12], ids=["by a table", "by a sort"])
@pytest.mark.parametrize("n", [0, 1, 400])
def test_first_seen_is_the_order_of_a_dictionary(n, spread):
    values = np.random.default_rng(n).integers(0, 50, n) * spread
    distinct, index, _ = number_by_appearance(values)
    assert distinct.tolist() == list(dict.fromkeys(values.tolist()))
    np.testing.assert_array_equal(distinct[index], values)


def test_negative_values_are_ordered_too():
    distinct, index, _ = number_by_appearance(np.array([3, -1, 3, 0, -1]))
    assert distinct.tolist() == [3, -1, 0]
    assert index.tolist() == [0, 1, 0, 2, 1]


# -- weights -----------------------------------------------------------------------------------


def test_counts_are_sums_of_weights():
    given = some(7)
    weight = np.random.default_rng(0).exponential(size=60)
    duels = Comparisons.from_duels(*given, weight).duels
    expected = Counter()
    for key, each in zip(told(*given), weight, strict=True):
        expected[key] += each
    assert ends(duels) == list(expected)
    np.testing.assert_allclose(duels.counts, list(expected.values()), rtol=1e-14)


def test_whole_weights_are_repetitions():
    given = some(8)
    weight = np.random.default_rng(0).integers(1, 5, 60)
    weighed = Comparisons.from_duels(*given, weight)
    items, *rest = given
    repeated = Comparisons.from_duels(items, *(np.repeat(each, weight) for each in rest))
    assert weighed.duels == repeated.duels
    np.testing.assert_array_equal(weighed.singles().row, repeated.singles().row)
    assert len(weighed.singles().row) == weight.sum()


def test_answers_of_no_weight_are_not_there_nor_are_their_items():
    items, first, second, first_won = some(9, n_items=40, n_values=9)
    weight = (np.arange(60) % 3 > 0) * 1.0
    kept, judge = weight > 0, np.arange(60) % 4
    found = Comparisons.from_duels(items, first, second, first_won, weight, judge)
    alone = items, first[kept], second[kept], first_won[kept], None, judge[kept]
    assert found == Comparisons.from_duels(*alone)
    everything = Comparisons.from_duels(items, first, second, first_won)
    assert len(found.items) < len(everything.items)


def test_equal_answers_of_two_judges_are_two_over_one_margin():
    items, first, second, first_won = some(5, n_items=6, n_values=2)
    tie, order = np.arange(60) % 5 == 0, np.arange(60) % 3 - 1
    judge = np.random.default_rng(5).integers(0, 4, 60)
    given = {"kind": TIE * tie, "order": order}
    plain = Comparisons.from_duels(items, first, second, first_won, **given)
    told = Comparisons.from_duels(items, first, second, first_won, judge=judge, **given)
    for seen in (told, replace(told, ordered=True)):
        rows, alone = seen.rows, replace(seen, judge=None)
        assert np.array_equal(rows.judge[seen.of_answer], judge)
        assert len(set(zip(alone.of_answer.tolist(), judge.tolist(), strict=True))) == len(rows)
        assert len(rows.margins.first) == len(alone.rows.margins.first)
        counts = np.bincount(seen.of_answer)
        assert np.array_equal(rows.counts, counts)
        some_rows = rows.take(np.array([2, 0]))
        assert np.array_equal(some_rows.answers.judge, rows.judge[[2, 0]])
        gathered = take_rows_with_items(rows, np.array([4, 1]))[1]
        assert np.array_equal(gathered.judge, rows.judge[[4, 1]])
        part = seen.part(np.arange(40))
        assert np.array_equal(
            earlier_positions(part, seen, single=False)[seen.of_answer[:40]], part.of_answer
        )
        other = replace(part, judge=(part.judge + 1) % 4)
        assert not np.array_equal(
            earlier_positions(other, seen, single=False),
            earlier_positions(part, seen, single=False),
        )
    assert told.duels == plain.duels
    assert plain.rows.judge is None and plain.rows.answers.judge is None


def test_rankings_of_two_judges_are_two():
    items = np.arange(4.0)[:, None]
    shown = np.array([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 3]])
    rank = np.array([[1, 2, 3]] * 3 + [[1, 2, 0]])
    told = Comparisons.from_ranks(items, shown, rank, judge=[0, 1, 0, 1])
    assert told.of_answer.tolist() == [0, 1, 0, 2]
    assert told.rows.judge.tolist() == [0, 0, 1, 1, 1]
    assert told.rows.counts.tolist() == [2.0, 2.0, 1.0, 1.0, 1.0]


def test_single_answers_need_whole_weights():
    seen = Comparisons.from_duels(*some(0, n_duels=2), [1.0, 2.5])
    with pytest.raises(ValueError, match=r"sample_weight as a number of repetitions, got 2.5.*ep"):
        seen.singles()


# -- a value -----------------------------------------------------------------------------------


def test_equality_is_that_of_what_was_answered():
    given = some(10)
    seen, again = Comparisons.from_duels(*given), Comparisons.from_duels(*given)
    assert seen == again and seen.duels == again.duels
    assert pickle.loads(pickle.dumps(seen)) == seen
    items, first, second, first_won = given
    others = [
        Comparisons.from_duels(items + 1.0, first, second, first_won),
        Comparisons.from_duels(items, second, first, first_won),
        Comparisons.from_duels(items, second, first, ~first_won),  # the order shown
        Comparisons.from_duels(items, first[:-1], second[:-1], first_won[:-1]),
        Comparisons.from_duels(*given, np.full(60, 2.0)),
        Comparisons.from_duels(*given, judge=np.zeros(60)),
    ]
    assert all(seen != other for other in others)
    assert seen != seen.duels and seen != "duels"
    assert issubclass(type(seen.duels), ByValue)
    with pytest.raises(TypeError, match="unhashable"):
        hash(seen)
    with pytest.raises(AttributeError):
        seen.weight = np.ones(60)


def test_the_callers_arrays_are_left_alone():
    items, first, second, first_won = some(11)
    for each in (items, first, second, first_won):
        each.flags.writeable = False
    weight = np.arange(60.0)
    weight.flags.writeable = False
    assert len(Comparisons.from_duels(items, first, second, first_won, weight).weight) == 59


# -- where a duel was before ---------------------------------------------------------------------


def test_distinct_duels_are_found_again_by_value():
    before = Comparisons.from_duels(*some(12, n_duels=40, n_values=4))
    now = Comparisons.from_duels(*some(13, n_duels=80, n_values=4))
    found = earlier_positions(before, now, single=False)
    place = {key: i for i, key in enumerate(ends(before.duels))}
    expected = [place.get(key, -1) for key in ends(now.duels)]
    assert found.tolist() == expected
    assert -1 in expected and max(expected) > 0


def test_single_answers_are_found_again_the_kth_as_the_kth():
    weight = np.random.default_rng(0).integers(1, 4, 40)
    before = Comparisons.from_duels(*some(12, n_duels=40, n_values=3), weight)
    now = Comparisons.from_duels(*some(13, n_duels=80, n_values=3))
    places = {}
    for place, key in enumerate(ends(before.duels, before.singles().row)):
        places.setdefault(key, []).append(place)
    expected = []
    for key in ends(now.duels, now.singles().row):
        left = places.get(key, [])
        expected.append(left.pop(0) if left else -1)
    assert earlier_positions(before, now, single=True).tolist() == expected
    assert -1 in expected and len(set(expected)) > 10


@pytest.mark.parametrize("single", [True, False])
def test_items_of_another_width_are_all_new(single):
    now = Comparisons.from_duels(*some(14))
    items, *rest = some(14)
    wider = Comparisons.from_duels(np.hstack([items, items]), *rest)
    n = len(now.singles().row) if single else len(now.duels.counts)
    np.testing.assert_array_equal(earlier_positions(wider, now, single=single), np.full(n, -1))


# -- one order for every set of answers ------------------------------------------------------


def shuffled(seed, ordered):
    """Duels, ties and rankings of five items, twice: as they came, and told in other ways."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 3, (5, 2)).astype(float)
    n = 25
    shown = np.array([rng.permutation(5)[:4] for _ in range(n)])
    rank = np.array([rng.permutation([1, 2, 3, 0]) for _ in range(n)])
    rank[::3, :] = [1, 2, 0, 0]
    kind = np.where(rng.random(n) < 0.3, TIE, 0) * (np.arange(n) % 3 == 0)
    weight = rng.integers(1, 4, n)
    one = Comparisons.from_ranks(items, shown, rank, weight, kind=kind)
    # Other numbers of items, rows repeated in place of weights, another order, other sides.
    number, rows = rng.permutation(5), np.repeat(np.arange(n), weight)
    rows = rows[rng.permutation(len(rows))]
    fixed = 1 if ordered else 0  # what was shown first stays first
    side = np.array([[*range(fixed), *(fixed + rng.permutation(4 - fixed))] for _ in rows])
    side[kind[rows] == TIE] = [0, 1, 2, 3] if ordered else [1, 0, 2, 3]  # of the first two
    other = Comparisons.from_ranks(
        items[np.argsort(number)],
        np.take_along_axis(number[shown[rows]], side, axis=1),
        np.take_along_axis(rank[rows], side, axis=1),
        kind=kind[rows],
    )
    return [replace(each, ordered=ordered).in_canonical_order() for each in (one, other)]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_rows_in_canonical_order_depend_on_the_set_of_answers_alone(seed, ordered):
    one, other = shuffled(seed, ordered)
    np.testing.assert_array_equal(one.items, other.items)
    np.testing.assert_array_equal(one.singles().row, other.singles().row)
    for name in ("first", "second", "kind", "counts", "answer", "places", "basis"):
        parts = getattr(one.rows, name), getattr(other.rows, name)
        np.testing.assert_array_equal(*parts, err_msg=name)
    if ordered:
        np.testing.assert_array_equal(one.rows.lead, other.rows.lead)


@pytest.mark.parametrize("seed", range(5))
def test_grades_and_judges_have_one_order_too(seed):
    rng = np.random.default_rng(seed)
    items, n = np.arange(3.0)[:, None], 30
    first, second = np.array([rng.permutation(3)[:2] for _ in range(n)]).T
    kind = np.array([0, TIE, 2, 3], dtype=np.int8)[rng.integers(0, 4, n)]
    judge, order, code = rng.integers(0, 3, n), rng.permutation(n), rng.permutation(3)
    won = np.ones(n, dtype=bool)
    one = Comparisons.from_duels(items, first, second, won, None, judge, kind=kind)
    other = Comparisons.from_duels(
        items, first[order], second[order], won, None, code[judge][order], kind=kind[order]
    )
    one = one.in_canonical_order()
    other = other.in_canonical_order(judge_keys=np.argsort(code))
    np.testing.assert_array_equal(one.singles().row, other.singles().row)
    for name in ("first", "second", "kind", "counts"):
        np.testing.assert_array_equal(getattr(one.rows, name), getattr(other.rows, name))
    np.testing.assert_array_equal(code[one.rows.judge], other.rows.judge)


def test_a_canonical_order_leaves_the_answers_as_they_are():
    rng = np.random.default_rng(0)
    items = rng.standard_normal((6, 2))
    winner, loser = np.array([rng.permutation(6)[:2] for _ in range(30)]).T
    seen = Comparisons.from_duels(items, winner, loser, np.ones(30, dtype=bool))

    def told(comparisons):
        ends = [comparisons.items[side] for side in comparisons.positions.T]
        return sorted(np.column_stack(ends).tolist())

    one = seen.in_canonical_order()
    assert told(one) == told(seen)
    # By other keys it is another order of the same.
    assert told(seen.in_canonical_order(-seen.items)) == told(seen)
    assert not np.array_equal(one.items, seen.in_canonical_order(-seen.items).items)
