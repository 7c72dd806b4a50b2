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
from types import UnionType
from typing import Any, NoReturn, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

DOCUMENT, FORMAT = "document", 1
# What belongs to a running program: callbacks, and the routing of metadata.
_NOT_WRITTEN = ("_skl_callbacks", "_metadata_request", "_skpref_version")
# Kinds of arrays that a file holds without pickle, and frames' columns whose type is their name.
_KINDS, _TEXTS = "biufcMmU", ("str", "string")
_INSTEAD = (
    "Write the model with pickle or joblib, which keep any object and must be read by a program "
    "that has the same classes"
)

_KNOWN: dict[str, Any] = {}
_NAMES: dict[Any, str] = {}
T = TypeVar("T")


def recorded(each: T) -> T:
    """Decorator: objects of this class, or this function, may be written; by its room and name."""
    # T is any class or function: both have these two names, which its type does not tell.
    module, name = each.__module__.split("."), each.__name__  # type: ignore[attr-defined]
    room = module[1].lstrip("_") if module[0] == "skpref" else module[0]
    full = f"{room}.{name}"
    if full in _KNOWN:
        raise TypeError(f"{full} is recorded already: {_KNOWN[full]!r}.")
    _KNOWN[full], _NAMES[each] = each, full
    return each


def recorded_types() -> tuple[str, ...]:
    """Full names of all classes and functions that may be written."""
    return tuple(sorted(f"{each.__module__}.{each.__qualname__}" for each in _NAMES))


def skpref_version() -> str:
    """Of the running package."""
    version: str = sys.modules[__name__.partition(".")[0]].__version__
    return version


class Recorded:
    """What may be written as plain arrays, and made of them again."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of the fitted object as plain arrays, for a file without pickle.

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
        document = {
            "format": FORMAT,
            "skpref": skpref_version(),
            "object": writer.value(self, ()),
        }
        text = json.dumps(document, allow_nan=False)
        return {DOCUMENT: np.frombuffer(text.encode(), dtype=np.uint8), **writer.arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The object that `to_arrays` wrote; no code in the arrays is run.

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
        made = _read(arrays)
        if not isinstance(made, cls):
            kind = type(made).__name__
            remedy = (
                f"call {kind}.from_arrays(arrays)"
                if isinstance(made, Recorded)
                else "give what to_arrays() of such an object returned"
            )
            raise _OtherClassError(f"The arrays hold a {kind}, not a {cls.__name__}: {remedy}.")
        return made


class _OtherClassError(ValueError, TypeError):
    """The arrays are of an object of another class than the one whose `from_arrays` was called."""


class _Writer:
    """Values as JSON, and the arrays in them."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._key_of: dict[int, str] = {}

    def value(self, value: Any, path: tuple[str, ...]) -> Any:
        """The JSON of a value; ValueError if there is none."""
        if isinstance(value, np.generic):
            value = value.item() if value.dtype.kind in "biufU" else value
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"number": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if type(value) in _NAMES:
            state = state_of(value)
            told = {name: self.value(part, (*path, name)) for name, part in state.items()}
            return {"class": _NAMES[type(value)], **told}
        if inspect.isroutine(value) and value in _NAMES:
            return {"function": _NAMES[value]}
        if type(value) is list:
            return self._items(value, path)
        if type(value) is tuple:
            return {"tuple": self._items(value, path)}
        if type(value) in (set, frozenset):
            return {type(value).__name__: self._items(sorted(value), path)}
        if isinstance(value, Mapping):
            pairs = zip(self._items(value, path), self._items(value.values(), path), strict=True)
            return {"pairs": [list(pair) for pair in pairs]}
        if _is_pandas_frame(value):
            return self._frame(value, path)
        return _refuse(value, path)

    def _items(self, values, path):
        return [self.value(each, (*path, str(i))) for i, each in enumerate(values)]

    def _array(self, array, path):
        if array.dtype == object:
            return {"objects": self._items(array.ravel().tolist(), path), "shape": [*array.shape]}
        if array.dtype.kind not in _KINDS or isinstance(array, np.ma.MaskedArray):
            _refuse(array, path)
        if id(array) not in self._key_of:
            key = ".".join(path)
            self._key_of[id(array)], self.arrays[key] = key, np.asarray(array)
        return {"array": self._key_of[id(array)]}

    def _frame(self, frame, path):
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
            if not isinstance(dtype, np.dtype) and str(dtype) not in _TEXTS:
                raise ValueError(
                    f"{_place(path)} is a DataFrame whose column {name!r} is of type {dtype}, "
                    "which arrays do not tell. Make its columns numbers or texts."
                )
        return {
            "frame": [
                self._array(frame.iloc[:, j].to_numpy(), (*path, str(j)))
                for j in range(frame.shape[1])
            ],
            "types": [str(dtype) for dtype in frame.dtypes],
            "columns": self._items(frame.columns, path),
            "index": self._items(frame.index, path),
        }


def state_of(value: Any) -> dict[str, Any]:
    """Fields that make an object again: parameters, and what a fit has set; no caches."""
    if isinstance(value, tuple):
        found: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]  # a NamedTuple
        return found
    state = value.__getstate__() or {}
    if is_dataclass(value):
        return {each.name: state[each.name] for each in fields(value) if each.name in state}
    return {name: part for name, part in state.items() if name not in _NOT_WRITTEN}


def _is_pandas_frame(value):
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def _place(path):
    return ".".join(path) or "This object"


def _refuse(value: Any, path: tuple[str, ...]) -> NoReturn:
    kind = type(value).__name__
    if isinstance(value, np.random.RandomState | np.random.Generator):
        remedy = "Predictions do not need it: set_params(random_state=0) first"
    elif inspect.isroutine(value):
        remedy = f"If predictions do not need it, set the parameter to None first. {_INSTEAD}"
    elif isinstance(value, Kernel):
        remedy = f"Only kernels of scikit-learn and of skpref.kernels have names. {_INSTEAD}"
    elif isinstance(value, BaseEstimator):
        remedy = f"Only classes of skpref have names. {_INSTEAD}"
    elif isinstance(value, np.ndarray):
        kind = f"{kind} of type {value.dtype}"
        remedy = "Arrays may hold numbers, dates or texts, none of them masked"
    else:
        remedy = f"Ids and names may be texts, numbers, and tuples of them. {_INSTEAD}"
    raise ValueError(
        f"{_place(path)} is a {kind}, which plain arrays do not tell: {value!r:.80}. {remedy}."
    )


def _read(arrays):
    """The object of some arrays."""
    if not isinstance(arrays, Mapping) or DOCUMENT not in arrays:
        raise ValueError(
            f"These are not the arrays of to_arrays(): {type(arrays).__name__} without the key "
            f"{DOCUMENT!r}. Give a mapping, such as numpy.load(path) of a file that "
            "numpy.savez(path, **model.to_arrays()) wrote."
        )
    try:
        document = json.loads(bytes(np.asarray(arrays[DOCUMENT], dtype=np.uint8)))
        written, told = document["format"], document["object"]
    except Exception as error:  # a mapping may raise anything, and JSON be too deep to read
        raise ValueError(
            f"The array {DOCUMENT!r} is not what to_arrays() writes: {error}."
        ) from None
    if not isinstance(written, int) or written < 1:
        raise ValueError(f"The arrays are of format {written!r:.40}; it must be an integer from 1.")
    if written > FORMAT:
        raise ValueError(
            f"The arrays are of format {written}, written by skpref {document.get('skpref')}; "
            f"skpref {skpref_version()} reads formats up to {FORMAT}. Install a newer one."
        )
    try:
        return _Reader(arrays).value(told)
    except Exception as error:  # of odd fields a constructor may raise anything
        raise ValueError(
            f"The arrays, written by skpref {document.get('skpref')!s:.40}, are incomplete or not "
            f"of a form that skpref {skpref_version()} reads: {error}. Write them again by the "
            "version that made them, or fit the model again."
        ) from error


class _Reader:
    """Values of JSON and of the arrays in it, each of which is copied once."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self._copies: dict[str, NDArray[Any]] = {}

    def value(self, told: Any) -> Any:
        """The value of some JSON."""
        if isinstance(told, list):
            return [self.value(each) for each in told]
        if not isinstance(told, dict):
            return told
        if "class" in told:
            state = {name: self.value(part) for name, part in told.items() if name != "class"}
            return made_of(_KNOWN[told["class"]], state)
        kind = next(iter(told))
        made: Callable[[dict], Any] = getattr(self, _MADE_BY[kind])
        return made(told)

    def _array(self, told):
        key = told["array"]
        if key not in self._copies:
            array = np.asarray(self._arrays[key])
            if array.dtype.kind not in _KINDS:
                raise TypeError(f"the array {key!r} is of type {array.dtype}, which none may be")
            self._copies[key] = np.array(array)
        return self._copies[key]

    def _items(self, told):
        if not isinstance(told, list):
            raise TypeError(f"a list is expected in place of {told!r:.40}")
        return self.value(told)

    def _objects(self, told):
        values, shape = told["objects"], told["shape"]
        if math.prod(shape) != len(values):
            raise ValueError(f"{len(values)} values do not fill an array of shape {shape!r:.40}")
        found = np.empty(len(values), dtype=object)
        found[:] = self._items(values)
        return found.reshape(shape)

    def _several(self, told):
        ((kind, values),) = told.items()
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](self._items(values))

    def _pairs(self, told):
        return dict(map(tuple, self._items(told["pairs"])))

    def _number(self, told):
        return float(told["number"])

    def _function(self, told):
        return _KNOWN[told["function"]]

    def _frame(self, told):
        pandas = import_module("pandas")
        columns, index, names = (self._items(told[key]) for key in ("frame", "index", "columns"))
        for column, dtype in zip(columns, told["types"], strict=True):
            is_text = column.dtype == object and dtype in _TEXTS
            if (not is_text and dtype != str(column.dtype)) or column.shape != (len(index),):
                raise ValueError(
                    f"a column of {len(index)} rows of {dtype!r:.40} cannot be made of an array "
                    f"of {column.dtype} of shape {column.shape}"
                )
        made = [
            pandas.Series(column, index=index, dtype=dtype)
            for column, dtype in zip(columns, told["types"], strict=True)
        ]
        frame = pandas.DataFrame(dict(enumerate(made)), index=index)
        frame.columns = names
        return frame


_MADE_BY = {
    "array": "_array",
    "objects": "_objects",
    "tuple": "_several",
    "set": "_several",
    "frozenset": "_several",
    "pairs": "_pairs",
    "number": "_number",
    "function": "_function",
    "frame": "_frame",
}


def made_of(cls: Any, state: dict[str, Any]) -> Any:
    """An object of a class by its `state_of`; TypeError if a field is not of its type."""
    if issubclass(cls, tuple) or is_dataclass(cls):
        for name, hint in _hints(cls).items():
            if name in state and not _is_of(state[name], hint):
                kind = type(state[name]).__name__
                raise TypeError(f"{cls.__name__}.{name} is a {kind}, and must be {hint}")
        return cls(**state)
    if issubclass(cls, BaseEstimator | Kernel):
        names = inspect.signature(cls).parameters
        made = cls(**{name: part for name, part in state.items() if name in names})
        state = {name: part for name, part in state.items() if name not in names}
    else:
        made = cls.__new__(cls)
    if hasattr(made, "__setstate__") and not isinstance(made, BaseEstimator):
        made.__setstate__(state)
    else:
        made.__dict__.update(state)
    return made


_hints = cache(get_type_hints)


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; what it contains is not looked at."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_is_of(value, each) for each in arguments)
    if kind is np.ndarray and isinstance(value, np.ndarray):
        (of,) = get_args(arguments[1]) if arguments else (Any,)
        return of is Any or value.dtype.kind in "biuf"  # all others are of numbers
    if kind is float:
        return isinstance(value, float | int)
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)
