"""Objects as arrays and back: every kind of value, and what cannot be told."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skpref._utils import Recorded, recorded


@recorded
@dataclass(frozen=True)
class Holder(Recorded):
    """Anything."""

    content: Any
    more: Any = "unless told"


@recorded
def known():
    """A function that has a name."""


def again(content):
    """The content after a file."""
    file = io.BytesIO()
    np.savez(file, **Holder(content).to_arrays())
    file.seek(0)
    with np.load(file) as arrays:
        made = Holder.from_arrays(arrays)
    assert made.more == "unless told"
    return made.content


NUMBERS = st.integers() | st.floats(allow_nan=False) | st.booleans()
PLAIN = st.none() | st.text() | NUMBERS
KEYS = st.text() | st.integers() | st.tuples(st.text(), st.integers())
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_plain_values_come_back(value):
    found = again(value)
    assert found == value and repr(found) == repr(value)  # 1 is not 1.0, nor 0.0 -0.0


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.float32([[1.5, -0.0], [np.nan, np.inf]]),
        np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["ab", "ü"]),
        np.array(["2024-02-29", "NaT"], dtype="datetime64[D]"),
        np.array(3.5),
        np.array([True, False]),
        np.array([[1, "b"], [None, ("c", 2.5)]], dtype=object),
        np.array([], dtype=object),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_arrays_come_back(array):
    found = again(array)
    assert found.dtype == array.dtype and found.shape == array.shape
    assert_array_equal(found, array)


def test_other_values_come_back():
    assert np.isnan(again(float("nan"))) and again(-np.inf) == -np.inf
    assert again(np.float64(0.1)) == 0.1 and again(np.str_("x")) == "x" and again(np.int8(3)) == 3
    for kind in (set, frozenset):
        found = again(kind({"a", "b"}))
        assert type(found) is kind and found == {"a", "b"}
    assert again(known) is known
    inner = again([Holder(1), Holder((Holder("x"), 2), more=None)])
    assert inner == [Holder(1), Holder((Holder("x"), 2), more=None)]


def test_one_array_is_written_once_and_shared():
    array = np.arange(5.0)
    written = Holder([array, {"a": array}, array.copy()]).to_arrays()
    assert sorted(written) == ["content.0", "content.2", "document"]
    first, other, apart = Holder.from_arrays(written).content
    assert first is other["a"] and first is not apart
    assert not np.shares_memory(first, array)


@pytest.mark.parametrize("texts", [["x", "ü"], [1, 2], [0.5, np.nan], [("a", 1), ("b", 2)]])
def test_frames_come_back(texts):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": texts, 7: [True, False]}, index=["r", "s"])
    pandas.testing.assert_frame_equal(again(frame), frame, check_column_type=False)
    with pytest.raises(ValueError, match=r"content is a DataFrame whose column 'a' is of type cat"):
        Holder(frame.astype({"a": "category"})).to_arrays()


class Thing:
    """A class of one's own."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Thing(), r"content\.1 is a Thing.*texts, numbers, and tuples"),
        (lambda x: x, r"content\.1 is a function.*set the parameter to None"),
        (np.random.default_rng(0), r"content\.1 is a Generator.*set_params\(random_state=0\)"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), r"content\.1 is a MaskedArray of type float64"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), r"content\.1 is a ndarray of"),
        (np.array([Thing()], dtype=object), r"content\.1\.0 is a Thing"),
        (1.0 + 2.0j, r"content\.1 is a complex"),
    ],
)
def test_what_has_no_name_is_refused_where_it_stands(value, message):
    with pytest.raises(ValueError, match=message):
        Holder([0, value]).to_arrays()


def test_a_name_is_taken_once():
    with pytest.raises(TypeError, match=r"Holder is recorded already"):
        recorded(type("Holder", (), {"__module__": Holder.__module__}))


def test_damaged_files_are_refused():
    """A byte changed: another object of the class, or an error that speaks of the file."""
    written = Holder([{"a": np.arange(3.0)}, ("x", 1, {2.5}), np.array(["y"], dtype=object)])
    arrays, rng = written.to_arrays(), np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = arrays["document"].copy()
        damaged[rng.integers(len(damaged))] = rng.integers(32, 127)
        try:
            assert isinstance(Holder.from_arrays(arrays | {"document": damaged}), Holder)
        except ValueError as error:
            refused += 1
            assert "array" in str(error) or "format" in str(error)
    assert refused > 50
