"""The quick ways of reading and counting find what plain dictionaries find."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref._utils import row_blocks
from skpref.data import _items, _read
from skpref.data._comparisons import Comparisons
from skpref.data._containers import all_strings, distinct_values, look_up_codes
from skpref.data._kinds import DUEL, TIE


@pytest.fixture(params=["small blocks", "one block"])
def blocks(request, monkeypatch):
    if request.param == "small blocks":
        monkeypatch.setattr(_items, "row_blocks", partial(row_blocks, doubles=5))


def items_of(what, rng):
    """Rows of a table, some of which may be equal."""
    if what == "different":
        return rng.standard_normal((60, 3))
    if what == "integers":
        return rng.integers(0, 3, (60, 2))
    if what == "float32, Fortran order":
        return np.asfortranarray(rng.integers(0, 3, (60, 2)), dtype=np.float32)
    if what == "signed zeros":
        return np.where(rng.random((60, 2)) < 0.5, 0.0, -0.0) * rng.integers(0, 2, (60, 1))
    return rng.integers(0, 3, (60, 3)) / 3.0


def counted_plainly(items, pairs, won, kind, lead, judge, ordered):
    """Items in order, positions, distinct answers in order, and how often each was given."""
    item_of, positions, answer_of, counts = {}, [], {}, []
    for i, (first, second) in enumerate(pairs.tolist()):
        keys = [tuple((items[row] + 0.0).tolist()) for row in (first, second)]
        one, other = (item_of.setdefault(key, len(item_of)) for key in keys)
        first_wins = won[i] or kind[i] == TIE
        positions.append([one, other] if first_wins else [other, one])
        shown = lead[i] if first_wins else -lead[i]
        a, b = positions[-1]
        if kind[i] == TIE and a > b:
            a, b, shown = b, a, -shown
        said = (a, b, kind[i], shown if ordered else None, None if judge is None else judge[i])
        counts.append(answer_of.setdefault(said, len(answer_of)))
    return list(item_of), positions, list(answer_of), counts


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    "what", ["different", "repeated", "integers", "float32, Fortran order", "signed zeros"]
)
def test_items_and_answers_are_those_of_dictionaries(blocks, what, in_order, judged, ordered):
    rng = np.random.default_rng(0)
    items = items_of(what, rng)
    pairs = np.arange(60).reshape(30, 2) if in_order else rng.integers(0, 60, (30, 2))
    won, lead = rng.random(30) < 0.6, rng.integers(-1, 2, 30)
    kind = np.where(rng.random(30) < 0.3, TIE, DUEL)
    judge = rng.integers(0, 3, 30) if judged else None
    found = Comparisons.from_duels(items, *pairs.T, won, judge=judge, kind=kind, order=lead)
    found = replace(found, ordered=ordered)
    distinct, positions, answers, of_answer = counted_plainly(
        items, pairs, won, kind, lead, judge, ordered
    )
    assert found.items.tolist() == [list(key) for key in distinct]
    assert found.items.dtype == np.float64
    assert not np.signbit(found.items[found.items == 0.0]).any()
    assert found.positions.tolist() == positions
    assert found.of_answer.tolist() == of_answer
    assert found.rows.counts.tolist() == np.bincount(of_answer).tolist()
    rows = found.rows
    assert rows.first.tolist() == [each[0] for each in answers]
    assert rows.second.tolist() == [each[1] for each in answers]
    assert rows.kind.tolist() == [each[2] for each in answers]
    if ordered:
        assert rows.lead.tolist() == [each[3] for each in answers]


def test_items_are_found_by_their_values_whatever_the_hash_says(monkeypatch):
    rng = np.random.default_rng(1)
    for items in (rng.standard_normal((40, 2)), rng.integers(0, 3, (40, 2)) * 1.0):
        told = items, rng.integers(0, 40, 25), rng.integers(0, 40, 25), rng.random(25) < 0.5
        truth = Comparisons.from_duels(*told)
        with monkeypatch.context() as patch:
            patch.setattr(_items, "_hash_rows", lambda bits: np.zeros(len(bits), dtype=np.uint64))
            assert Comparisons.from_duels(*told) == truth


@pytest.mark.parametrize("copy", [0, 13, 28])
def test_one_row_that_is_there_twice_is_one_item(copy):
    items = np.random.default_rng(8).standard_normal((30, 3))
    items[29] = items[copy]
    found = Comparisons.from_duels(items, np.arange(15) * 2, np.arange(15) * 2 + 1, np.ones(15))
    assert found.positions.ravel().tolist() == [*range(29), copy]
    np.testing.assert_array_equal(found.items, items[:29])


def test_the_items_that_came_are_not_changed():
    items = np.array([[-0.0], [1.0], [-0.0], [2.0]])
    Comparisons.from_duels(items, [0, 2], [1, 3], [True, False])
    assert np.signbit(items[[0, 2], 0]).all()


# -- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [object, "U"])
@pytest.mark.parametrize("shape", [(24,), (12, 2), (8, 3), (0, 2)])
def test_names_have_the_positions_of_a_dictionary(blocks, shape, dtype):
    rng = np.random.default_rng(2)
    table = ItemTable.from_names([f"n{i}" for i in range(9)])
    places = rng.integers(0, 9, shape)
    names = table.names[places].astype(dtype)
    found = table.index(names)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, places)
    np.testing.assert_array_equal(table.index(names.T), places.T)
    np.testing.assert_array_equal(table.index(names.tolist()).reshape(shape), places)


def test_unknown_names_are_listed_in_order_of_appearance(blocks):
    table = ItemTable.from_names(["a", "b"])
    with pytest.raises(ValueError, match=r"^3 unknown name\(s\) of items: 'z', 'y', 'x'\."):
        table.index(np.array([["a", "z"], ["y", "b"], ["z", "x"]], dtype=object))
    with pytest.raises(ValueError, match="1 unknown"):
        ItemTable.from_names([1, 2]).index(np.array([1, 2, 3]))


def test_numbers_that_are_names_are_looked_up_by_value(blocks):
    table = ItemTable.from_names([3, 7, 5])
    for asked in (np.array([5, 3]), np.array([5.0, 3.0]), [5, 3], np.array([5, 3], dtype=object)):
        assert table.index(asked).tolist() == [2, 0]


def test_strings_are_told_from_what_is_mixed_with_them(blocks):
    class Text(str):
        __slots__ = ()

    assert all_strings(np.array(["a", Text("b"), "c", "d"], dtype=object))
    for odd in (None, np.nan, 1, b"d"):
        for place in range(5):
            mixed = ["a", "b", "c", "d", "e"]
            mixed[place] = odd
            assert not all_strings(np.array(mixed, dtype=object))
    assert not all_strings(np.array([], dtype=object))


def test_distinct_values_and_numbers_part_by_part(blocks):
    rng = np.random.default_rng(3)
    values = rng.choice(["x", "y", "z", None], (7, 3))
    found = distinct_values(values)
    assert list(found) == list(dict.fromkeys(values.ravel().tolist()))
    numbers = {name: k for k, name in enumerate(found)}
    plain = [[numbers[value] for value in row] for row in values.tolist()]
    assert look_up_codes(values, numbers).tolist() == plain


@pytest.mark.parametrize("as_what", ["object", "str", "frame", "list"])
def test_names_without_a_table_are_those_in_order_of_appearance(blocks, as_what):
    rng = np.random.default_rng(4)
    pairs = np.array([rng.permutation(6)[:2] for _ in range(30)])
    names = np.array(["f", "e", "d", "c", "b", "a"], dtype=object)[pairs]
    X = {"object": names, "str": names.astype(str), "list": names.tolist()}
    if as_what == "frame":
        pd = pytest.importorskip("pandas")
        X["frame"] = pd.DataFrame(names, columns=["left", "right"])
    y = rng.integers(0, 2, 30)
    model = PairwisePreferenceRegressor(optimizer=None).fit(X[as_what], y)
    assert model.items_.names.tolist() == list(dict.fromkeys(names.ravel().tolist()))
    table = model.items_
    again = PairwisePreferenceRegressor(optimizer=None, items=table).fit(table.index(names), y)
    np.testing.assert_array_equal(model.predict(table), again.predict(table))


def test_what_cannot_be_hashed_is_no_name():
    X = np.empty((2, 3), dtype=object)
    X[:] = [["a", "b", "c"], ["b", "c", "a"]]
    X[1, 2] = ["a"]
    assert _read.read(X, new_names=True).kind == "items"


# -- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("what", ["floats", "integers", "float32", "huge", "texts", "frame"])
def test_a_column_of_ids_stands_among_the_others_where_it_was(what, place):
    rng = np.random.default_rng(5)
    features, ids = rng.integers(-9, 9, (20, 2)) / 4.0, rng.integers(0, 4, 20)
    if what == "integers":
        features = rng.integers(-9, 9, (20, 2))
    names = {
        "huge": np.array(2**54 + ids, dtype=object),
        "texts": np.array(list("abcd"), dtype=object)[ids],
    }
    column = names.get(what, ids)
    dtype = {
        "texts": object,
        "huge": object,
        "frame": object,
        "integers": np.int64,
        "float32": np.float32,
    }
    rows = np.insert(features.astype(dtype.get(what, np.float64)), place, column, axis=1)
    codes = {name: k for k, name in enumerate(dict.fromkeys(column.tolist()))}
    coded = [codes[name] for name in column.tolist()] if what in names else ids
    X = rows.reshape(10, 2, 3)
    if what == "frame":
        pd = pytest.importorskip("pandas")
        from skpref.duels import from_pairs

        X = from_pairs(pd.DataFrame(rows.astype(float)), np.arange(20).reshape(10, 2))[0]
    shown = _read.read(X)
    before = rows.copy()
    estimator = PairwisePreferenceRegressor(id_column=place)
    if what == "frame":
        estimator.id_column = place
    found, reader = _read.read_features(estimator, shown, None)
    truth = np.insert(features.astype(np.float64), place, coded, axis=1)
    got = found.rows[found.pairs] if what == "frame" else found.rows.reshape(10, 2, 3)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(np.sort(got, axis=1), np.sort(truth.reshape(10, 2, 3), axis=1))
    if what != "frame":
        np.testing.assert_array_equal(got, truth.reshape(10, 2, 3))
    assert reader.id_column == place
    assert (reader.ids is not None) == (what in names)
    np.testing.assert_array_equal(rows, before)


def test_gaps_are_refused_where_they_were_and_sets_keep_theirs():
    X = np.random.default_rng(6).standard_normal((6, 2, 3))
    X[4, 1, 2] = np.nan
    with pytest.raises(ValueError, match="1 of 6 duels, first in row 4"):
        PairwisePreferenceRegressor(id_column=0).fit(X)
    sets = np.random.default_rng(7).standard_normal((5, 3, 2))
    sets[2, 1] = np.nan
    shown = _read.read(sets)
    assert shown.pairs[2].tolist() == [6, -1, 7]
