"""Duels with named columns behave as the array of them does."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import _safe_indexing

from skpref.duels import DuelFrame, alternate

ITEMS = pd.DataFrame({"size": [1, 2, 3, 4], "heat": [0.5, np.nan, 0.1, 0.2]})
KINDS = ITEMS.assign(kind=pd.Categorical(["tea", "cola", "tea", "milk"]))
PAIRS = np.array([[0, 1], [3, 2], [1, 0], [2, 0], [1, 3]])
DUELS = DuelFrame(ITEMS, PAIRS)


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


def test_sides_are_frames_with_types_kept():
    mixed = DuelFrame(KINDS.set_index("size", drop=False), PAIRS)
    pd.testing.assert_frame_equal(mixed.first, KINDS.iloc[PAIRS[:, 0]].reset_index(drop=True))
    pd.testing.assert_frame_equal(mixed[:, 1], mixed.second)
    assert mixed.first["kind"].dtype == "category"
    assert (DUELS.first - DUELS.second)["size"].tolist() == [-1, 1, 1, 2, -2]


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
    turned, y = alternate(DuelFrame(KINDS, PAIRS, id_column="kind"))
    assert turned.id_column == "kind" and y.tolist() == [1, 0, 1, 0, 1]
    assert_array_equal(turned.pairs[1], PAIRS[1, ::-1])
    assert "ids in kind" in repr(turned[:2])


@pytest.mark.parametrize(
    ("items", "pairs", "options", "match"),
    [
        (ITEMS.to_numpy(), PAIRS, {}, "needs a DataFrame; ndarray came"),
        (ITEMS, PAIRS * 1.0, {}, "must be integers"),
        (ITEMS, PAIRS[:, 0], {}, r"of shape \(n_duels, 2\)"),
        (ITEMS, PAIRS + 1, {}, r"must lie in \[0, 3\]"),
        (ITEMS, PAIRS - 1, {}, r"must lie in \[0, 3\]"),
        (ITEMS, PAIRS, {"id_column": "name"}, "no column 'name' of ids"),
    ],
)
def test_it_refuses(items, pairs, options, match):
    with pytest.raises(ValueError, match=match):
        DuelFrame(items, pairs, **options)


def test_it_is_no_view_of_an_array():
    with pytest.raises(ValueError, match="makes a copy"):
        np.array(DUELS, copy=False)
