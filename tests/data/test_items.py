"""Items: distinct rows, and tables of items."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from skpref._utils import row_blocks
from skpref.data import _items
from skpref.duels import (
    ItemTable,
    distinct_rows,
)

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("n, levels", [(0, 2), (1, 2), (500, 2), (500, 1000)])
def test_distinct_rows_agree_with_numpy(n, levels):
    rows = np.random.default_rng(n).integers(0, levels, (n, 3)) / 7.0
    distinct, inverse = distinct_rows(rows)
    assert np.array_equal(distinct[inverse], rows)
    assert np.array_equal(np.unique(distinct, axis=0), np.unique(rows, axis=0))
    assert len(distinct) == len(np.unique(rows, axis=0))


def test_distinct_rows_order_ignores_row_order_and_repetition():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (300, 2)).astype(float)
    shuffled = np.concatenate([rows, rows[:50]])[rng.permutation(350)]
    assert np.array_equal(distinct_rows(rows)[0], distinct_rows(shuffled)[0])


def test_distinct_rows_joins_signed_zeros_and_nans_and_leaves_input():
    rows = np.array([[0.0, np.nan], [-0.0, np.nan], [1.0, 2.0]])
    rows.flags.writeable = False
    distinct, inverse = distinct_rows(rows)
    assert len(distinct) == 2
    assert inverse[0] == inverse[1] != inverse[2]
    assert np.signbit(rows[1, 0])


def test_distinct_rows_survive_collisions_of_the_hash(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 4, (200, 3)).astype(float)
    monkeypatch.setattr(_items, "_hash_rows", lambda bits: np.zeros(len(bits), dtype=np.uint64))
    distinct, inverse = distinct_rows(rows)
    assert np.array_equal(distinct[inverse], rows)
    assert len(distinct) == len(np.unique(rows, axis=0))
    assert np.array_equal(distinct, distinct_rows(rows[::-1])[0])


def test_distinct_rows_without_features_are_one():
    distinct, inverse = distinct_rows(np.zeros((4, 0)))
    assert distinct.shape == (1, 0)
    assert inverse.tolist() == [0, 0, 0, 0]


# --- ItemTable


def test_item_table_is_a_read_only_copy_even_after_pickling():
    X = np.arange(6.0).reshape(3, 2)
    table = ItemTable(X, names=["a", "b", "c"])
    X[0, 0] = 99.0
    assert table.X[0, 0] == 0.0
    for one in (table, pickle.loads(pickle.dumps(table))):
        assert len(one) == 3
        assert one.has_features
        assert one.index([["c", "a"]]).tolist() == [[2, 0]]
        with pytest.raises(ValueError, match="read-only"):
            one.X[0, 0] = 1.0
        with pytest.raises(AttributeError, match="immutable"):
            one.X = X
        with pytest.raises(AttributeError, match="immutable"):
            del one.names


class Holder(BaseEstimator):
    def __init__(self, items=None):
        self.items = items


def test_item_table_is_not_copied_by_clone_and_prints_short():
    table = ItemTable(np.zeros((1000, 50)) + np.arange(1000)[:, None])
    assert clone(Holder(table)).items is table
    assert len(repr(table)) < 80
    assert "1000 items" in repr(Holder(table))


def test_item_table_takes_names_from_a_frame():
    frame = pd.DataFrame({"sugar": [1, 2], "fat": [3, 4]}, index=["tea", "cake"])
    table = ItemTable(frame)
    assert table.names.tolist() == ["tea", "cake"]
    assert table.feature_names.tolist() == ["sugar", "fat"]
    assert ItemTable(frame.to_numpy()).names is None
    assert ItemTable(pd.DataFrame(frame.to_numpy())).feature_names is None


def test_from_names_holds_no_square_array():
    table = ItemTable.from_names(f"item {i}" for i in range(100_000))
    assert table.X.nbytes == 800_000
    assert not table.has_features
    assert table.index("item 77") == 77


def test_from_names_keeps_the_order_of_first_appearance():
    table = ItemTable.from_names([["b", "a"], ("c", "b"), np.array(["d"])])
    assert table.names.tolist() == ["b", "a", "c", "d"]
    frame = pd.DataFrame({"home": ["x", "y"], "away": ["y", "z"]})
    assert ItemTable.from_names(frame).names.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    "X, names, match",
    [
        (np.zeros(3), None, "Expected 2D array"),
        (np.zeros((0, 2)), None, "minimum of 1"),
        ([[np.nan]], None, "NaN"),
        ([[1.0], [2.0]], ["a"], "got 1 names for 2 items"),
        ([[1.0], [2.0]], ["a", "a"], "'a' stands for more than one"),
        ([[1.0], [2.0]], ["a", 1], "mix strings"),
        ([[1.0], [2.0]], ["a", None], "missing"),
        ([[1.0], [2.0]], ["a", pd.NA], "missing"),
        ([[1.0], [2.0]], [("a", 1), ("a", 2)], "MultiIndex"),
    ],
)
def test_item_table_refuses(X, names, match):
    with pytest.raises(ValueError, match=match):
        ItemTable(X, names=names)


def test_index_names_the_unknown():
    with pytest.raises(ValueError, match=r"2 unknown name\(s\) of items: 'x', 'y'"):
        ItemTable.from_names(["a", "b"]).index(["x", "a", "y", "x"])
    with pytest.raises(ValueError, match="no names"):
        ItemTable([[1.0]]).index(["a"])
    with pytest.raises(ValueError, match="Got no name"):
        ItemTable.from_names([])


def test_a_table_keeps_single_precision_and_its_own_copy():
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    table = ItemTable(X)
    X[0] = 9.0
    assert table.X.dtype == np.float32
    assert table.X.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert ItemTable(X.astype(np.float16)).X.dtype == np.float64
    assert ItemTable(X.astype(">f4")).X.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mapped_table_is_not_copied_and_is_checked(tmp_path, dtype):
    path = tmp_path / "items.npy"
    np.save(path, np.arange(6, dtype=dtype).reshape(3, 2))
    mapped = np.load(path, mmap_mode="r+")
    table = ItemTable(mapped)
    assert np.shares_memory(table.X, mapped)
    assert not table.X.flags.writeable
    assert mapped.flags.writeable
    assert np.array_equal(pickle.loads(pickle.dumps(table)).X, mapped)
    mapped[2, 1] = np.nan
    with pytest.raises(ValueError, match="items contains NaN"):
        ItemTable(mapped)


def test_equal_rows_are_found_block_by_block(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 3, size=(50, 2)).astype(np.float32)
    taken = np.random.default_rng(1).permutation(50)[:40]
    first, inverse = _items.group_equal_rows(rows, taken)
    assert np.array_equal(rows[taken[first[inverse]]], rows[taken])
    assert len(first) == len(np.unique(rows[taken], axis=0))
    monkeypatch.setattr(_items, "row_blocks", partial(row_blocks, doubles=6))
    again = _items.group_equal_rows(rows, taken)
    assert np.array_equal(again[0], first) and np.array_equal(again[1], inverse)
    monkeypatch.setattr(_items, "_hash_rows", lambda bits: np.zeros(len(bits), dtype=np.uint64))
    first, inverse = _items.group_equal_rows(rows, taken)
    assert np.array_equal(rows[taken[first[inverse]]], rows[taken])
