"""Objects as arrays and back: every kind of value, and what cannot be told."""

import ast
import inspect
import io
import json
import sys
import textwrap
import tracemalloc
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import skpref
from skpref._utils import Recorded, serializable_types

RECORDS = dict(serializable_types())
ROOMS = sorted({name.partition(".")[0] for name in RECORDS})


@dataclass(frozen=True)
class Holder(Recorded):
    """Anything."""

    content: Any
    more: Any = "unless told"


class Typed(NamedTuple):
    """Fields of which each must be what its annotation says."""

    weights: np.ndarray[Any, np.dtype[np.float64]] | None
    length: float
    count: int
    name: str | None = None


@pytest.fixture(autouse=True, scope="module")
def _named():
    """Lets files name the classes of this module, as they name those of the package."""
    with pytest.MonkeyPatch.context() as patch:
        for each in (Holder, Typed):
            patch.setitem(
                serializable_types(), f"{__name__.rpartition('.')[2]}.{each.__name__}", each
            )
        yield


def known():
    """A function."""


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
        (known, r"content\.1 is a function.*set the parameter to None"),
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


NOT_NAMED = {
    "a function of a library": "os.system",
    "a class of a library": "subprocess.Popen",
    "a builtin": "builtins.eval",
    "a module that is not loaded": "this.Text",
    "a module of the package": "gp._posterior",
    "what a module has imported": "gp.BaseEstimator",
    "where it was imported from": "sklearn.BaseEstimator",
    "a path": "skpref.gp.Posterior",
    "a path in a room": "gp._posterior.Posterior",
    "a function of a room": "data.distinct_rows",
    "a private class": "inference._Shard",
    "what holds worker processes": "inference.SharedOut",
    "an exception": "fitting.StopSearch",
    "a class of another room": "optimize.Journal",
    "a class that opens a port": "widgets.Judge",
}


@pytest.mark.parametrize("name", NOT_NAMED.values(), ids=NOT_NAMED)
def test_a_file_names_records_of_the_package_alone(name):
    loaded = set(sys.modules)
    for content in ({"class": name}, {"class": name, "content": "id"}, {"function": name}):
        with pytest.raises(ValueError, match="incomplete or not of a form"):
            Holder.from_arrays(document(content))
    assert set(sys.modules) == loaded


def calls(tree):
    """Names of what is called, without the object that it is called of."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {getattr(each, "id", getattr(each, "attr", "")) for each in called}


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_file_may_name_opens_and_runs_nothing(room):
    """No method of such a class unpickles, imports, opens or starts anything."""
    classes = {name: each for name, each in RECORDS.items() if name.startswith(f"{room}.")}
    assert classes
    for name, each in classes.items():
        named = calls(ast.parse(textwrap.dedent(inspect.getsource(each))))
        assert not named & {
            "loads",
            "load",
            "open",
            "exec",
            "eval",
            "__import__",
            "Popen",
            "system",
        }, name


@pytest.mark.parametrize("room", sorted({*ROOMS} - {"sklearn"}))
def test_names_of_records_are_distinct(room):
    """Of two classes of one name in a room a file could name the last alone."""
    folder = Path(skpref.__file__).parent
    files = (*folder.glob(f"{room}/*.py"), *folder.glob(f"_{room}.py"))
    names = [
        node.name
        for file in files
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and f"{room}.{node.name}" in RECORDS
    ]
    assert names and len(names) == len(set(names))


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


def document(told, **more):
    """Arrays whose document says so."""
    text = told if isinstance(told, str) else json.dumps({"format": 1, "object": told, **more})
    return {"document": np.frombuffer(text.encode(), dtype=np.uint8), "a": np.arange(3.0)}


def nested(depth, opening="[", closing="]"):
    return f'{{"format": 1, "object": {opening * depth}1{closing * depth}}}'


TYPED = {"class": Typed.__module__.rpartition(".")[2] + ".Typed", "length": 1.0, "count": 2}
ODD = {
    "a list of depth 10^5": nested(100_000),
    "a list of depth 400": nested(400),
    "tuples of depth 300": nested(300, '{"tuple": [', "]}"),
    "arrays of depth 300": nested(300, '{"shape": [1], "objects": [', "]}"),
    "no document": "[]",
    "a text as format": {"format": "1"},
    "a list as format": {"format": [1]},
    "format 0": {"format": 0},
    "a number": 5,
    "a list": [1],
    "no object of this class": {"class": "kernels.Identity"},
    "an unknown class": {"class": "os.system"},
    "a list as class": {"class": []},
    "an unknown kind": {"lambda": "x"},
    "an empty object": {},
    "too few values": {"objects": [1, 2], "shape": [10**6, 10**6]},
    "a negative shape": {"objects": [1, 2], "shape": [-1]},
    "two negative sizes": {"objects": [1, 2], "shape": [-1, -2]},
    "no values, of a large shape": {"objects": [], "shape": [0, 10**30]},
    "a shape of fractions": {"objects": [1], "shape": [1.0]},
    "a text as shape": {"objects": [1], "shape": "x"},
    "a text as tuple": {"tuple": "abc"},
    "a set of lists": {"set": [[1]]},
    "pairs of three": {"pairs": [[1, 2, 3]]},
    "a text as number": {"number": "one"},
    "a list as number": {"number": [1]},
    "a list as array": {"array": ["a"]},
    "texts as weights": TYPED | {"weights": "abc"},
    "an array as length": TYPED | {"weights": None, "length": {"array": "a"}},
    "a fraction as count": TYPED | {"weights": None, "count": 2.5},
    "a number as name": TYPED | {"weights": None, "name": 7},
    "a field too many": TYPED | {"weights": None, "lengths": 1.0},
    "a field too few": TYPED,
    "a column of texts of a gigabyte": {
        "frame": [{"array": "a"}],
        "types": ["U300000000"],
        "columns": ["x"],
        "index": [0, 1, 2],
    },
    "a column of bytes of a gigabyte": {
        "frame": [{"array": "a"}],
        "types": ["S300000000"],
        "columns": ["x"],
        "index": [0, 1, 2],
    },
    "a number as column": {"frame": [5], "types": ["int64"], "columns": [1], "index": [0, 1]},
    "rows without values": {
        "frame": [{"array": "a"}],
        "types": ["float64"],
        "columns": ["x"],
        "index": [*range(2000)],
    },
}


@pytest.mark.parametrize("told", ODD.values(), ids=ODD)
def test_odd_documents_are_refused_by_one_error_in_little_memory(told):
    more = told if isinstance(told, dict) and "format" in told else {}
    arrays = document({} if more else told, **more)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"array|format"):
        Holder.from_arrays(arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20 + 50 * arrays["document"].size


def test_what_annotations_allow_is_read():
    for value in (
        Typed(np.arange(3), 1, 2),
        Typed(None, 0.5, True, "x"),
        Typed(np.zeros(0, bool), float("inf"), 10**30),
    ):
        assert repr(again(value)) == repr(value)


@pytest.mark.parametrize(
    "array",
    [np.array(["a", "b"]), np.array([1, "b"], dtype=object), "text", None, [[1.0], [1.0, 2.0]]],
    ids=repr,
)
def test_arrays_of_another_type_are_refused(array):
    with pytest.raises(ValueError, match="incomplete or not of a form"):
        Holder.from_arrays(
            Holder(Typed(np.arange(3.0), 1.0, 2)).to_arrays() | {"content.weights": array}
        )


def test_arrays_of_objects_are_no_content_of_a_file():
    held = Holder(np.arange(3.0)).to_arrays()
    with pytest.raises(ValueError, match="'content' is of type object"):
        Holder.from_arrays(held | {"content": np.array([Thing()], dtype=object)})


@pytest.mark.parametrize("shape", [(2**31,), (2**44,), (-1,)])
def test_a_file_that_lies_about_a_shape_is_refused(tmp_path, shape):
    """The head of an array says more than its bytes hold."""
    path, lies = tmp_path / "holder.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(
        lies, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    np.savez(path, document=Holder(np.arange(3.0)).to_arrays()["document"])
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("content.npy", lies.getvalue() + bytes(24))
    with np.load(path) as arrays, pytest.raises(ValueError, match="incomplete or not of a form"):
        Holder.from_arrays(arrays)


def test_the_error_of_another_class_names_its_method(monkeypatch):
    @dataclass
    class Another(Recorded):
        content: Any

    monkeypatch.setitem(serializable_types(), f"{Another.__module__}.Another", Another)

    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match=r"hold a Another, not a Holder: call Another\.from_arrays"):
            Holder.from_arrays(Another(1).to_arrays())
    with pytest.raises(ValueError, match=r"hold a int, not a Holder: give what to_arrays"):
        Holder.from_arrays(document(5))
