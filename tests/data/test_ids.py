"""Ids of items as numbers."""

import warnings

import numpy as np
import pytest

from skpref import PairwisePreferenceRegressor
from skpref.data._items import IdEncoder, encode_ids

pd = pytest.importorskip("pandas")


def test_codes_follow_the_first_appearance():
    encoder = IdEncoder(["b", "a", "b", "c"])
    assert encoder.names.tolist() == ["b", "a", "c"] and len(encoder) == 3
    assert encoder.codes(["c", "b"]).tolist() == [2.0, 0.0]


def test_strangers_differ_from_all_and_leave_the_encoder_as_it_is():
    encoder = IdEncoder(["b", "a"])
    assert encoder.codes(["x", "a", "y", "x"]).tolist() == [2.0, 1.0, 3.0, 2.0]
    assert encoder.codes(["y"]).tolist() == [2.0]  # codes of strangers hold for one call
    assert len(encoder) == 2


def test_numbers_of_any_type_are_one_id():
    assert IdEncoder([7, 8]).codes(np.array([8.0, 7.0])).tolist() == [1.0, 0.0]
    assert IdEncoder(pd.Series([7, 8])).codes([np.int8(8)]).tolist() == [1.0]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_missing_ids_are_refused(gap):
    with pytest.raises(ValueError, match=r"id of an item is missing .*first in row 1"):
        IdEncoder(["a", gap])
    with pytest.raises(ValueError, match="id of an item is missing"):
        IdEncoder(["a"]).codes([gap])
    with pytest.raises(ValueError, match="id of an item is missing"):
        encode_ids(pd.Series([1.0, gap], dtype=object), None, True)


def test_numbers_stay_where_floats_tell_them_apart():
    numbers, encoder = encode_ids(np.array([5, 3]), None, True)
    assert numbers.tolist() == [5.0, 3.0] and encoder is None
    numbers, encoder = encode_ids(np.array([2**60, 2**60 + 1]), None, True)
    assert numbers.tolist() == [0.0, 1.0] and len(encoder) == 2


# -- other ways to write a name ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["Bob", " bob", "BOB ", "b  ob"])
def test_a_name_written_otherwise_is_told(name):
    model = PairwisePreferenceRegressor(optimizer=None)
    model.fit([["ann", "bob"], ["bob", "b ob"], ["b ob", "ann"]], [1, 0, 1])
    known = "b ob" if "  " in name else "bob"
    with pytest.warns(
        UserWarning, match=rf"1 new name differs .*'{name}' \('{known}'\).*newcomers"
    ):
        told = model.predict_proba([["ann", name]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        newcomer = model.predict_proba([["ann", "zoe"]])
    np.testing.assert_array_equal(told, newcomer)


def test_ids_beside_features_written_otherwise_are_told():
    pairs = np.array([["ann", "bob"], ["bob", "cid"], ["cid", "ann"]])[:, :, None]
    model = PairwisePreferenceRegressor(id_column=0, optimizer=None).fit(pairs, [1, 0, 1])
    with pytest.warns(UserWarning, match=r"2 new names .*'Ann' \('ann'\), 'CID' \('cid'\)"):
        model.predict_proba(np.array([["Ann", "CID"]])[:, :, None])


def test_ids_of_a_table_written_in_two_ways_are_told():
    pd = pytest.importorskip("pandas")
    from skpref.duels import from_columns

    frame = pd.DataFrame({"a": ["ann", "bob", "Ann"], "b": ["bob", "cid", "cid"], "won": [1, 0, 1]})
    with pytest.warns(UserWarning, match="'ann', 'Ann'. If they are one, write them alike"):
        from_columns(frame, [], [], "won", ids=("a", "b"))


def test_ids_that_are_lists_are_taken():
    pd = pytest.importorskip("pandas")
    from skpref.duels import from_columns

    frame = pd.DataFrame({"a": [["x"], ["y"]], "b": [["y"], ["z"]], "won": [1, 0]})
    X, y = from_columns(frame, [], [], "won", ids=("a", "b"))
    assert X.first["id"].tolist() == [["x"], ["y"]] and y.tolist() == [1, 0]
