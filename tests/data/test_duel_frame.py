"""Duels with named columns behave as the array of them does."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from skpref.duels import DuelFrame, balance_orientation

pd = pytest.importorskip("pandas")

ITEMS = pd.DataFrame({"size": [1, 2, 3, 4], "heat": [0.5, np.nan, 0.1, 0.2]})
KINDS = ITEMS.assign(kind=pd.Categorical(["tea", "cola", "tea", "milk"]))
PAIRS = np.array([[0, 1], [3, 2], [1, 0], [2, 0], [1, 3]])
DUELS = DuelFrame(ITEMS, PAIRS)
SETS = np.array([[0, 1, 2], [3, 2, -1], [1, 0, 3], [2, 0, -1]])


def test_it_is_the_array_of_its_items():
    array = ITEMS.to_numpy()[PAIRS]
    assert_array_equal(DUELS, array)
    assert (DUELS.shape, DUELS.ndim, DUELS.dtype, len(DUELS)) == ((5, 2, 2), 3, np.float64, 5)
    assert np.asarray(DUELS, dtype=np.float32).dtype == np.float32
    mixed = DuelFrame(KINDS, PAIRS)
    assert mixed.dtype == object and mixed.shape == (5, 2, 3)
    assert np.asarray(mixed)[1].tolist() == [[4, 0.2, "milk"], [3, 0.1, "tea"]]
    assert [row.tolist() for row in DUELS][1] == array[1].tolist()


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, 4),
        slice(None, None, -2),
        [0, 3, 3],
        np.array([4, 0]),
        np.array([True, False, False, True, True]),
        np.array([], dtype=int),
    ],
    ids=str,
)
def test_rows_are_chosen_as_those_of_arrays(rows):
    array = np.asarray(DUELS)
    for chosen in (
        DUELS[rows],
        DUELS[rows, ...],
        DUELS[rows, :, :],
        DUELS[rows, :, ...],
        _safe_indexing(DUELS, rows),
    ):
        assert isinstance(chosen, DuelFrame)
        assert chosen.columns.tolist() == ["size", "heat"]
        assert_array_equal(chosen, array[rows])
    assert_array_equal(DUELS[rows, 1], array[rows][:, 1])
    assert isinstance(DUELS[rows, ::-1], DuelFrame)
    assert_array_equal(DUELS[rows, ::-1], array[rows][:, ::-1])
    assert_array_equal(DUELS[..., 0], array[..., 0])
    assert_array_equal(DUELS[2], array[2])
    assert_array_equal(DUELS[rows, :, 1], array[rows][:, :, 1])


@pytest.mark.parametrize("n", [0, 2, 9, -1, -9])
def test_first_and_last_rows_are_those_of_a_frame(n):
    rows = pd.DataFrame({"row": range(len(DUELS))})
    assert_array_equal(DUELS.head(n), np.asarray(DUELS)[rows.head(n)["row"]])
    assert_array_equal(DUELS.tail(n), np.asarray(DUELS)[rows.tail(n)["row"]])


def test_a_table_has_a_column_for_each_item_and_feature():
    table = DuelFrame(KINDS, PAIRS).to_frame()
    assert table["second", "kind"].tolist() == ["cola", "tea", "tea", "tea", "milk"]
    pd.testing.assert_frame_equal(table["first"], DuelFrame(KINDS, PAIRS).first)
    sets = DuelFrame(ITEMS, SETS).to_frame()
    array = ITEMS.to_numpy()[SETS]
    array[SETS < 0] = np.nan
    assert_array_equal(sets.to_numpy(float), array.reshape(4, -1))
    assert sets.columns.tolist() == [(k, name) for k in range(3) for name in ITEMS.columns]


def test_sides_are_frames_with_types_kept():
    mixed = DuelFrame(KINDS.set_index("size", drop=False), PAIRS)
    pd.testing.assert_frame_equal(mixed.first, KINDS.iloc[PAIRS[:, 0]].reset_index(drop=True))
    pd.testing.assert_frame_equal(mixed[:, 1], mixed.second)
    assert mixed.first["kind"].dtype == "category"
    assert (DUELS.first - DUELS.second)["size"].tolist() == [-1, 1, 1, 2, -2]


@pytest.mark.parametrize(
    "items", [ITEMS, ITEMS.to_numpy(), KINDS.fillna({"heat": 0.3})], ids=["frame", "array", "mixed"]
)
def test_sets_of_any_size_are_the_array_with_nothing_where_no_item_is(items):
    sets = DuelFrame(items, SETS)
    array = np.asarray(items)[SETS]
    array[SETS < 0] = None if array.dtype == object else np.nan
    assert sets.shape == array.shape and len(sets) == 4 and sets.dtype == array.dtype
    assert_array_equal(sets, array)
    for rows in (slice(1, 3), [3, 0], np.array([False, True, True, False]), slice(0, 0)):
        for chosen in (sets[rows], _safe_indexing(sets, rows)):
            assert isinstance(chosen, DuelFrame)
            assert_array_equal(chosen, array[rows])
    for train, test in KFold(2).split(sets):
        assert_array_equal(_safe_indexing(sets, train).pairs, SETS[train])
        assert_array_equal(_safe_indexing(sets, test).pairs, SETS[test])
    for key in (
        1,
        (slice(None), 2),
        (slice(None), slice(None, 2)),
        (slice(1, 3), slice(None, None, -1)),
    ):
        assert not isinstance(sets[key], DuelFrame)
        assert_array_equal(sets[key], array[key])
    assert isinstance(sets[[0, 2], ::-1], DuelFrame)
    assert_array_equal(sets[[0, 2], ::-1], array[[0, 2], ::-1])
    for side, found in enumerate([sets.first, sets.second]):
        assert type(found) is type(items)
        assert_array_equal(found, array[:, side])
    assert_array_equal(pickle.loads(pickle.dumps(sets)), array)


def test_sets_of_arrays_are_as_immutable():
    items = np.arange(4.0)[:, None]
    sets = DuelFrame(items, SETS)
    items[0] = 99.0
    assert sets[0].ravel().tolist() == [0.0, 1.0, 2.0]
    for one in (sets, pickle.loads(pickle.dumps(sets))):
        with pytest.raises(ValueError, match="read-only"):
            one.items[0] = 5.0
    assert sets.columns is None and sets.feature_names is None


def test_it_says_what_it_holds():
    assert repr(DuelFrame(ITEMS, SETS)) == (
        "<DuelFrame: 4 sets of up to 3 items with columns size, heat>"
    )
    assert repr(DuelFrame(np.ones((4, 2)), SETS[::2])) == (
        "<DuelFrame: 2 sets of 3 items with 2 features>"
    )
    assert repr(DuelFrame(np.ones((4, 1)), PAIRS)) == "<DuelFrame: 5 duels of items with 1 feature>"


def test_masked_items_are_missing():
    masked = np.ma.array([[1.0], [2.0], [3.0]], mask=[[False], [True], [False]])
    assert np.isnan(np.asarray(DuelFrame(masked, [[0, 1]]))).tolist() == [[[False], [True]]]


def test_nothing_changes_it():
    frame, pairs = ITEMS.copy(), PAIRS.copy()
    duels = DuelFrame(frame, pairs)
    frame.loc[0, "size"] = 99
    pairs[0] = 3
    shown = duels.items
    shown["size"] = 0
    assert_array_equal(duels, DUELS)
    again = pickle.loads(pickle.dumps(duels))
    assert_array_equal(again, DUELS)
    for one in (duels, again):
        with pytest.raises(AttributeError, match="immutable"):
            one.pairs = PAIRS
        with pytest.raises(ValueError, match="read-only"):
            one.pairs[0] = 0


def test_alternating_keeps_names_and_ids():
    turned, y = balance_orientation(DuelFrame(KINDS, PAIRS, id_column="kind"))
    assert turned.id_column == "kind" and y.tolist() == [1, 0, 1, 0, 1]
    assert_array_equal(turned.pairs[1], PAIRS[1, ::-1])
    assert "ids in kind" in repr(turned[:2])


@pytest.mark.parametrize(
    ("items", "pairs", "options", "match"),
    [
        ([["tea"], ["cola"]], [[0, 1]], {}, "must be a DataFrame or numbers"),
        (np.zeros(4), PAIRS, {}, r"got an array of shape \(4,\)"),
        (ITEMS, PAIRS * 1.0, {}, "must be integers"),
        (ITEMS, PAIRS[:, 0], {}, r"of shape \(n_duels, 2\)"),
        (ITEMS, PAIRS[:, :1], {}, r"of shape \(n_duels, 2\) or \(n_sets, k\).*got .*\(5, 1\)"),
        (ITEMS, PAIRS + 1, {}, r"must lie in \[0, 3\]"),
        (ITEMS, PAIRS - 1, {}, r"must lie in \[0, 3\]"),
        (ITEMS, SETS - 1, {}, r"must lie in \[0, 3\].*got -2 to 2"),
        (ITEMS, SETS[:, ::-1], {}, "Row 1 has -1 before its end"),
        (ITEMS, [[0, 1, 2], [3, -1, -1]], {}, r"Row 1 has 1 item\(s\)"),
        (ITEMS, [[0, 1, 2], [-1, -1, -1]], {}, r"Row 1 has 0 item\(s\)"),
        (ITEMS, PAIRS, {"id_column": "name"}, "no column 'name' of ids"),
        (ITEMS.to_numpy(), PAIRS, {"id_column": 0}, "no column 0 of ids; got"),
    ],
)
def test_it_refuses(items, pairs, options, match):
    with pytest.raises(ValueError, match=match):
        DuelFrame(items, pairs, **options)


def test_it_is_no_view_of_an_array():
    with pytest.raises(ValueError, match="makes a copy"):
        DUELS.__array__(copy=False)  # what NumPy from 2.0 on asks for by copy=False
