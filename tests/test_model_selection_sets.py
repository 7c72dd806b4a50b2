"""Splitters that keep items apart, on sets of items."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from skpref.duels import DuelFrame
from skpref.model_selection import ItemKFold, ItemShuffleSplit, item_components

RNG = np.random.default_rng(0)
N_ITEMS = 9
ITEMS = RNG.normal(size=(N_ITEMS, 2))
SETS = np.array([RNG.permutation(N_ITEMS)[:4] for _ in range(300)])
SETS[::2, 3] = -1
SETS[::3, 2:] = -1
LISTS = [[item for item in row if item >= 0] for row in SETS.tolist()]
WHOLE = SETS[SETS[:, 3] >= 0]


def forms(sets):
    yield sets
    yield sets.tolist()
    yield DuelFrame(ITEMS, sets)
    pd = pytest.importorskip("pandas")
    yield DuelFrame(pd.DataFrame(ITEMS, columns=["a", "b"]), sets)
    named = pd.DataFrame({"id": list("abcdefghi"), "noise": 0.0})
    yield DuelFrame(named, sets, id_column="id")
    if (sets >= 0).all():
        yield ITEMS[sets]


@pytest.mark.parametrize("mixed", ["drop", "test"])
@pytest.mark.parametrize("cls", [ItemKFold, ItemShuffleSplit])
def test_no_training_set_has_an_item_held_out(cls, mixed):
    more = {} if cls is ItemKFold else {"random_state": 0}
    cv = cls(2, integers="positions", mixed=mixed, **more)
    for X in forms(SETS):
        for train, test in cv.split(X):
            seen = {item for row in train for item in LISTS[row]}
            held_out = set(range(N_ITEMS)) - seen
            inside = [len(held_out & set(row)) for row in LISTS]
            least = [len(row) if mixed == "drop" else 1 for row in LISTS]
            expected = [i for i, n in enumerate(inside) if n >= least[i]]
            assert test.tolist() == expected and len(train) and len(test)
            assert train.tolist() == [i for i, n in enumerate(inside) if n == 0]


def test_arrays_of_sets_are_split_as_their_items():
    for X in forms(WHOLE):
        for train, test in ItemKFold(4, mixed="test", integers="positions").split(X):
            assert {*train, *test} == set(range(len(WHOLE)))
            assert all({*row} - {*WHOLE[train].ravel()} for row in WHOLE[test].tolist())


def test_components_are_joined_by_any_item_of_a_set():
    sets = np.array([[0, 1, 2], [3, 4, -1], [5, 6, 7], [8, 2, -1], [6, 3, -1]])
    for X in forms(sets):
        groups = item_components(X, integers="positions")
        assert groups.tolist() == [0, 1, 1, 0, 1]
    for train, test in GroupKFold(2).split(sets, groups=groups):
        assert not {*sets[train].ravel()} & {*sets[test].ravel()} - {-1}
    middle = np.array([[0, 1, 2], [3, 1, 4]])  # neither ends agree
    assert item_components(middle, integers="positions").tolist() == [0, 0]


def test_integers_in_three_columns_need_a_word():
    with pytest.raises(ValueError, match=r"shape \(300, 4\).*items with 4 features"):
        list(ItemKFold(2).split(SETS))
    assert len(set(item_components(WHOLE, integers="items"))) == len(np.unique(WHOLE, axis=0))
