"""Fitted objects as plain arrays, and back: names of classes, their fields, and no code.

Arrays stand in a flat mapping, each by its path in the object (``posterior_.weights``). All else is
a document in JSON, under the key `DOCUMENT`.
"""

import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import repeat
from pkgutil import iter_modules
from types import UnionType
from typing import Any, NoReturn, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

DOCUMENT = "document"
FORMAT = 1
PACKAGE, *_ = __name__.split(".")
# Rooms that fitted models are made of.
_ROOMS = "_estimator collaborative data fitting gp inference kernels likelihoods"
# What belongs to a running program: callbacks, and the routing of metadata.
_NOT_WRITTEN = ("_skl_callbacks", "_metadata_request", "_skpref_version")
# Kinds of arrays that a file holds without pickle, and frames' columns whose type is their name.
_KINDS, _TEXTS = "biufcMmU", ("str", "string")
_INSTEAD = (
    "Write the model with pickle or joblib, which keep any object and must be read by a program "
    "that has the same classes"
)
_RANDOM = "Predictions do not need it: set_params(random_state=0) first"
# Types, and what to do where one of them cannot be written.
_REMEDIES: tuple[tuple[Any, str], ...] = (
    ((np.random.RandomState, np.random.Generator), _RANDOM),
    (Kernel, f"Only kernels of scikit-learn and of skpref.kernels have names. {_INSTEAD}"),
    (BaseEstimator, f"Only classes of skpref have names. {_INSTEAD}"),
    (np.ndarray, "Arrays may hold numbers, dates or texts, none of them masked"),
    (object, f"Ids and names may be texts, numbers, and tuples of them. {_INSTEAD}"),
)


def skpref_version() -> str:
    """Return the version of the running package."""
    version: str = sys.modules[PACKAGE].__version__
    return version


class Fields:
    """Mark a class whose objects are their attributes, so that files of arrays may hold them.

    Tuples with names, dataclasses, estimators and kernels need no mark.
    """

    __slots__ = ()

    def check_loaded_fields(self) -> None:
        """Raise ValueError or TypeError where fields that were read do not go together."""


def check_shapes(**arrays: tuple[Any, str]) -> dict[str, int]:
    """Check that arrays are finite numbers of shapes that go together; return sizes by letter.

    Parameters
    ----------
    **arrays : (ndarray, str)
        By name: an array, and the letters of its axes, as in ``"u d d"``. Axes of one letter are
        equally long; ``d*r`` is as long as the product of two. None is no array, and passes.

    Raises
    ------
    ValueError
        If one is none of numbers, is not finite, or has another shape.
    """
    sizes: dict[str, int] = {}
    for name, (array, axes) in arrays.items():
        if array is None:
            continue
        letters = axes.split()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise ValueError(f"{name} is {array!r:.40}, and must be an array of numbers")
        if array.ndim == len(letters):
            sizes = {**dict(zip(letters, array.shape, strict=True)), **sizes}
        expected = [math.prod(sizes.get(one, -1) for one in each.split("*")) for each in letters]
        if list(array.shape) != expected:
            others = ", ".join(f"{letter} = {size}" for letter, size in sizes.items())
            raise ValueError(f"{name} is of shape {array.shape}, and must be ({axes}): {others}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name} is not finite")
    return sizes


class Recorded(Fields):
    """What may be written as plain arrays, and made of them again."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of the fitted object as plain arrays, for a file without pickle.

        Returns
        -------
        dict of ndarray
            ``"document"`` holds bytes of JSON: classes by name, their parameters and fields. The
            others are arrays of numbers, each by its path, such as ``posterior_.weights``. They are
            not copies.

        Raises
        ------
        ValueError
            If the object holds what cannot be told by names and numbers, such as a kernel of your
            own, a function, or a random generator. The message says where, and what to do.
        """
        writer = _Writer()
        content = writer.write_value(self, ())
        document = {"format": FORMAT, "skpref": skpref_version(), "object": content}
        text = json.dumps(document, allow_nan=False)
        return {DOCUMENT: np.frombuffer(text.encode(), dtype=np.uint8), **writer.arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the object that `to_arrays` wrote; no code in the arrays is run.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Such as ``numpy.load(path)`` gives. They are copied.

        Raises
        ------
        ValueError
            If these are not such arrays, are incomplete, of a newer format, or of an object of
            another class (which is a TypeError as well). No array is made that is larger than
            those which are given.

        Examples
        --------
        >>> from skpref import PairwisePreferenceRegressor, Posterior
        >>> games = [["ann", "bob"], ["bob", "cid"]]  # winner first
        >>> model = PairwisePreferenceRegressor(optimizer=None).fit(games)
        >>> arrays = model.posterior_.to_arrays()
        >>> Posterior.from_arrays(arrays).win_probability(["ann"], ["cid"]).round(2)
        array([0.97])
        """
        instance = _read_object(arrays)
        if not isinstance(instance, cls):
            kind = type(instance).__name__
            remedy = f"give what to_arrays() of a {cls.__name__} returned"
            if isinstance(instance, Recorded):
                remedy = f"call {kind}.from_arrays(arrays)"
            raise _OtherClassError(f"The arrays hold a {kind}, not a {cls.__name__}: {remedy}.")
        return instance


class _OtherClassError(ValueError, TypeError):
    """The arrays are of an object of another class than the one whose `from_arrays` was called."""


@cache
def serializable_types() -> dict[str, type]:
    """Return the classes that a file may name, by room and name.

    These are kernels of scikit-learn, and of the rooms of fitted models the public classes that are
    no more than their fields. To make an object of one sets its fields and does nothing else.
    """
    rooms = [f"{PACKAGE}.{room}" for room in _ROOMS.split()]
    paths = {room: getattr(import_module(room), "__path__", ()) for room in rooms}
    parts = [part.name for room in rooms for part in iter_modules(paths[room], f"{room}.")]
    return {
        _full_name(each): each
        for module in ("sklearn.gaussian_process.kernels", *rooms, *parts)
        for each in vars(import_module(module)).values()
        if isinstance(each, type) and each.__module__ == module and _is_public_record(each)
    }


def _is_public_record(cls):
    """Return whether a class is public and no more than its fields."""
    is_record = issubclass(cls, tuple | BaseEstimator | Kernel | Fields) or is_dataclass(cls)
    return is_record and not cls.__name__.startswith("_")


def _full_name(cls):
    """Return the name of a class in files: its room and its own name."""
    package, _, rest = cls.__module__.partition(".")
    room = rest.partition(".")[0].lstrip("_") if package == PACKAGE else package
    return f"{room}.{cls.__name__}"


class _Writer:
    """Values as JSON, and the arrays in them."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._key_of: dict[int, str] = {}

    def write_value(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the JSON of a value; ValueError if there is none."""
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        kind = type(value)
        if kind in (type(None), bool, int, str) or (kind is float and np.isfinite(value)):
            return value
        if kind is float:
            return {"number": repr(value)}
        if kind is list:
            return self._write_items(value, path)
        if kind in (tuple, set, frozenset):
            return {
                kind.__name__: self._write_items(value if kind is tuple else sorted(value), path)
            }
        if isinstance(value, np.ndarray):
            return self._write_array(value, path)
        return self._write_object(value, path)

    def _write_object(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the JSON of an object, a mapping or a DataFrame; ValueError if there is none."""
        kind = type(value)
        name = _full_name(kind)
        if serializable_types().get(name) is kind:
            parts = state_of(value).items()
            return {"class": name} | {
                key: self.write_value(part, (*path, key)) for key, part in parts
            }
        if isinstance(value, Mapping):
            pairs = zip(
                self._write_items(value, path), self._write_items(value.values(), path), strict=True
            )
            return {"pairs": [list(pair) for pair in pairs]}
        if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas":
            return self._write_frame(value, path)
        return _refuse_value(value, path)

    def _write_items(self, values, path):
        """Return the JSON of each of some values."""
        return [self.write_value(each, (*path, str(i))) for i, each in enumerate(values)]

    def _write_array(self, array, path):
        """Return the JSON of an array, whose numbers are kept among the arrays."""
        if array.dtype == object:
            return {
                "objects": self._write_items(array.ravel().tolist(), path),
                "shape": [*array.shape],
            }
        if array.dtype.kind not in _KINDS or isinstance(array, np.ma.MaskedArray):
            _refuse_value(array, path)
        key = self._key_of.setdefault(id(array), ".".join(path))
        self.arrays.setdefault(key, np.asarray(array))
        return {"array": key}

    def _write_frame(self, frame, path):
        """Return the JSON of a DataFrame; ValueError for types that arrays do not tell."""
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
            if not isinstance(dtype, np.dtype) and str(dtype) not in _TEXTS:
                raise ValueError(
                    f"{_path_in_words(path)} is a DataFrame whose column {name!r} is of type "
                    f"{dtype}, which arrays do not tell. Make its columns numbers or texts."
                )
        columns = [frame.iloc[:, j].to_numpy() for j in range(frame.shape[1])]
        return {
            "frame": self._write_items(columns, path),
            "types": [str(dtype) for dtype in frame.dtypes],
            "columns": self._write_items(frame.columns, path),
            "index": self._write_items(frame.index, path),
        }


def state_of(value: Any) -> dict[str, Any]:
    """Return the fields that make an object again: parameters and what a fit has set, no caches."""
    if isinstance(value, tuple):
        state: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]  # a NamedTuple
        return state
    state = value.__getstate__() or {}
    if is_dataclass(value):
        return {each.name: state[each.name] for each in fields(value) if each.name in state}
    return {name: part for name, part in state.items() if name not in _NOT_WRITTEN}


def _path_in_words(path):
    """Return a path in an object as words of a message."""
    return ".".join(path) or "This object"


def _refuse_value(value: Any, path: tuple[str, ...]) -> NoReturn:
    """Raise ValueError for a value that cannot be stored as plain arrays."""
    kind = type(value).__name__
    remedy = next(remedy for types, remedy in _REMEDIES if isinstance(value, types))
    if inspect.isroutine(value):
        remedy = f"If predictions do not need it, set the parameter to None first. {_INSTEAD}"
    if isinstance(value, np.ndarray):
        kind = f"{kind} of type {value.dtype}"
    raise ValueError(
        f"{_path_in_words(path)} is a {kind}, which plain arrays do not tell: {value!r:.80}. "
        f"{remedy}."
    )


def _read_object(arrays):
    """Return the object that arrays hold; ValueError for others."""
    version = "of an unknown version"
    try:
        document = json.loads(bytes(np.asarray(arrays[DOCUMENT], dtype=np.uint8)))
        version, form = f"{document.get('skpref')!s:.40}", document["format"]
        if form not in range(1, FORMAT + 1):
            raise ValueError(f"format {form!r:.40}, where {FORMAT} is the newest that it knows")
        copies = {key: _copy_array(key, arrays[key]) for key in arrays if key != DOCUMENT}
        return _read_value(document["object"], copies)
    except Exception as error:  # of odd fields a constructor may raise anything
        raise ValueError(
            f"The arrays, written by skpref {version}, are incomplete or not of a form that skpref "
            f"{skpref_version()} reads ({type(error).__name__}: {error}). Give numpy.load(path) of "
            "a whole file that numpy.savez(path, **model.to_arrays()) wrote, in this version or an "
            "earlier one, or fit the model again."
        ) from error


_CONTAINERS: dict[str, Callable[[list], Any]] = {
    **{kind.__name__: kind for kind in (tuple, set, frozenset)},
    "pairs": lambda pairs: dict(map(tuple, pairs)),
}


def _copy_array(key, array):
    """Return a copy of an array; TypeError for a type that no file may hold."""
    array = np.array(array)
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"the array {key!r} is of type {array.dtype}, which none may be")
    return array


def _read_value(content, copies):
    """Return the value that JSON and the arrays in it hold."""
    if isinstance(content, list):
        return [_read_value(each, copies) for each in content]
    if not isinstance(content, dict):
        return content
    parts = {name: _read_value(part, copies) for name, part in content.items()}
    match parts:
        case {"class": name, **state}:
            return make_object(serializable_types()[name], state)
        case {"array": key}:
            return copies[key]
        case {"objects": list(values), "shape": shape} if math.prod(shape) == len(values):
            array = np.empty(len(values), dtype=object)
            array[:] = values
            return array.reshape(shape)
        case {"number": str(text)}:
            return float(text)
        case {"frame": list(columns), "types": types, "columns": names, "index": list(index)}:
            return _read_frame(columns, types, names, index)
    ((kind, items),) = parts.items()
    if not isinstance(items, list):
        raise TypeError(f"a list is expected in place of {items!r:.40}")
    return _CONTAINERS[kind](items)


def _read_frame(columns, types, names, index):
    """Return the DataFrame of some columns; TypeError for types that do not fit."""
    for column, dtype in zip(columns, types, strict=True):
        if dtype not in (*_TEXTS, str(column.dtype)):
            raise TypeError(f"no array of {column.dtype} is a column of {dtype!r:.40}")
    pandas = import_module("pandas")
    series = [pandas.Series(*each) for each in zip(columns, repeat(index), types, strict=False)]
    frame = pandas.DataFrame(dict(enumerate(series)), index=index)
    frame.columns = names
    return frame


def make_object(cls: Any, state: dict[str, Any]) -> Any:
    """Return an object of a class with these fields; TypeError if one is not of its type."""
    if issubclass(cls, tuple) or is_dataclass(cls):
        for name, hint in _hints(cls).items():
            if name in state and not _is_of_type(state[name], hint):
                kind = type(state[name]).__name__
                raise TypeError(f"{cls.__name__}.{name} is a {kind}, and must be {hint}")
        instance = cls(**state)
        if isinstance(instance, Fields):
            instance.check_loaded_fields()
        return instance
    if issubclass(cls, BaseEstimator | Kernel):
        names = inspect.signature(cls).parameters.keys() & state.keys()
        instance = cls(**{name: state.pop(name) for name in names})
    else:
        instance = cls.__new__(cls)
    if hasattr(instance, "__setstate__") and not isinstance(instance, BaseEstimator):
        instance.__setstate__(state)
    else:
        instance.__dict__.update(state)
    if isinstance(instance, Fields):
        instance.check_loaded_fields()
    return instance


_hints = cache(get_type_hints)


def _is_of_type(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type; what it contains is not looked at."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_is_of_type(value, each) for each in arguments)
    if kind is np.ndarray and isinstance(value, np.ndarray):
        (of,) = get_args(arguments[1]) if arguments else (Any,)
        return of is Any or value.dtype.kind in "biuf"  # all others are of numbers
    if kind is float:
        return isinstance(value, float | int)
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)
