"""Containers that data come in: frames of any library, masked arrays, texts, missing values."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from itertools import compress
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

TO_SPACES = str.maketrans("_.-\u2013\u2212", "     ", "\0\u00ad\u200b\u200c\u200d\u2060\ufeff")


def plain_name(name: Any) -> Any:
    """Return a name in one case and Unicode form, single spaces for dashes, dots, underscores.

    Null bytes and characters of no width go; what is no text is as it is.
    """
    return _plain_text(name) if isinstance(name, str) else name


@lru_cache(maxsize=65536)
def _plain_text(name: str) -> str:
    """Return a text as `plain_name` does, from a cache, as votes repeat names."""
    words = " ".join(name.translate(TO_SPACES).split())
    return unicodedata.normalize("NFC", words.casefold())


class Immutable:
    """Objects whose attributes are set once, arrays read-only."""

    def __setstate__(self, state: dict) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # pickling forgets this
        self.__dict__.update(state)

    def __setattr__(self, name: str, value: Any = None) -> None:
        what = type(self).__name__
        raise AttributeError(f"{what} is immutable; {name!r} cannot be set. Build a new one.")

    __delattr__ = __setattr__


def is_frame(X: Any) -> bool:
    """Return whether X is a DataFrame (of any library)."""
    return hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, an array has many
        return not isinstance(value, np.ndarray | list | tuple)


def fill_masked(values: Any) -> Any:
    """Return values as they are, masked ones as NaN (as None where they are no numbers).

    numpy's conversions drop the mask in silence and go on with what lies under it.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    if values.dtype.kind in "biuf":
        return np.where(np.ma.getmaskarray(values), np.nan, values.data.astype(np.float64))
    filled = values.data.astype(object)
    filled[np.ma.getmaskarray(values)] = None
    return filled


def exact_array(values: Any) -> np.ndarray:
    """Return the values of a list, array, column or frame as an array, each exactly as it is.

    Where integers stand beside a gap, libraries' own conversions round them to doubles.
    """
    if isinstance(values, np.ndarray):
        return fill_masked(values)
    if is_frame(values):
        return np.asarray(plain_frame(values), dtype=object)
    if isinstance(getattr(values, "dtype", None), np.dtype):  # of pandas, kept by numpy
        return np.asarray(values)
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        return np.asarray(values, dtype=object)
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        plain = column.dtype.is_integer() and column.dtype != nw.Int128 and not column.null_count()
        if plain or column.dtype.is_float() or column.dtype in (nw.Datetime, nw.Duration):
            return np.asarray(column.to_numpy())
        values = column.to_list()
    elif hasattr(values, "to_pylist"):  # an array of pyarrow
        values = values.to_pylist()
    elif hasattr(values, "__array__"):
        return np.asarray(values)
    return object_array(values)


def object_array(values: Any) -> np.ndarray:
    """Return values of any types, lists and tuples too, as an array of one dimension."""
    return np.fromiter(values, dtype=object, count=len(values))


def exact_list(values: Any) -> list:
    """Return the values of a list, an array or a column as a list, each exactly as it is."""
    if hasattr(values, "tolist") and not isinstance(values, np.ndarray):  # of pandas
        listed: list = values.tolist()
        return listed
    array = exact_array(values)
    # Dates of a fine unit would become integers, missing ones too.
    fine = array.dtype.kind in "mM" and (array is values or "ns" in array.dtype.str)
    return list(array) if fine else array.tolist()


def argument_floats(values: Any, message: str) -> np.ndarray:
    """Return values as a new array of floats, masked ones as NaN; ValueError for others."""
    try:
        numbers = np.asarray(fill_masked(values))
        if np.iscomplexobj(numbers):
            raise TypeError("complex numbers")
        return np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{message}; got {type(values).__name__} ({error}).") from None


def check_one_each(shape: tuple[int, ...], n: int, what: str, rows: str = "rows of X") -> None:
    """Raise ValueError unless an array of this shape holds one value for each of n rows."""
    if shape != (n,):
        got = f"{shape[0]} {what}" if len(shape) == 1 else f"{what} of shape {shape}"
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: got {got} for {n} "
            f"{rows}. Give one for each, shape ({n},)."
        )


def one_each(values: np.ndarray, n: int, what: str, rows: str = "rows of X") -> np.ndarray:
    """Return one value for each of n rows, a single one repeated; ValueError for other shapes."""
    values = np.full(n, values) if values.ndim == 0 else values
    check_one_each(values.shape, n, what, rows)
    return values


def wholly_missing_rows(array: np.ndarray) -> np.ndarray:
    """Return a mask of where all values along the last axis of an array are missing."""
    if array.dtype.kind not in "fO" or array.shape[-1] == 0:
        return np.zeros(array.shape[:-1], dtype=bool)
    if array.dtype.kind == "f":
        gaps = np.isnan(array)
    else:
        gaps = np.array([is_missing(value) for value in array.ravel().tolist()], dtype=bool)
    return gaps.reshape(array.shape).all(axis=-1)


def all_strings(array: np.ndarray) -> bool:
    """Return whether every element of an array is a string."""
    if array.dtype.kind in "UT":
        return True
    if array.dtype.kind != "O" or not array.size:
        return False
    return all(issubclass(kind, str) for kind in set(map(type, array.ravel().tolist())))


def is_blank(value: Any) -> bool:
    """Return whether a value is missing, or a text of spaces alone."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def refuse_rows(wrong: Any, message: str, values: Any = None) -> None:
    """Raise ValueError where a mask of wrong rows has any, with a message that names the first.

    The message may name the first such {row}, its {value} among the values, and their {count}.
    """
    if wrong.any():
        row = int(wrong.argmax())
        value = None if values is None else np.asarray(values)[row : row + 1].tolist()[0]
        raise ValueError(message.format(row=row, count=int(wrong.sum()), value=value))


def holds_words(values: Any) -> bool:
    """Return whether a word of letters stands in an array."""
    array = np.asarray(values)
    if array.dtype.kind not in "OUT":
        return False
    return any(isinstance(value, str) and value.strip().isalpha() for value in array.ravel())


def distinct_values(array: np.ndarray) -> dict[Any, None]:
    """Return distinct values of an array in order of first appearance, as keys of a dict."""
    return dict.fromkeys(array.ravel().tolist())


def name_ranks(names: np.ndarray) -> np.ndarray:
    """Return the rank of each distinct name by type, then by how it is written."""
    texts = np.array([(type(name).__name__, str(name)) for name in names.tolist()])
    return np.argsort(np.lexsort(texts.T[::-1]))


def look_up_codes(array: np.ndarray, numbers: dict[Any, int]) -> np.ndarray:
    """Return the code of each value of an array, in its shape; KeyError if one has none."""
    values = map(numbers.__getitem__, array.ravel().tolist())
    return np.fromiter(values, dtype=np.intp, count=array.size).reshape(array.shape)


def missing_texts(array: np.ndarray) -> np.ndarray | None:
    """Return a mask of missing values in an array of texts; None if it holds other things."""
    if array.dtype.kind not in "OUT":
        return None
    values = array.ravel().tolist()
    gaps = np.array([not isinstance(value, str) for value in values], dtype=bool)
    if gaps.all() or not all(is_missing(value) for value in compress(values, gaps)):
        return None
    return gaps.reshape(array.shape)


def plain_frame(frame: Any) -> Any:
    """Return a frame of any library as one of pandas, where that is installed.

    A model fitted with one of them meets the same kinds of values in the other: integers beside
    gaps are floats as long as these tell them apart.
    """
    if hasattr(frame, "iloc") or find_spec("pandas") is None:
        return frame
    columns = {}
    for name in getattr(frame, "column_names", frame.columns):  # pyarrow's are the first
        values = exact_array(frame[name])
        integers = values.dtype.kind == "O" and set(map(type, values.tolist())) <= {int, type(None)}
        floats = column_floats(values) if integers else None
        columns[name] = values if floats is None or beyond_doubles(floats) else floats
    return frame_of_columns(columns)


def frame_of_columns(columns: Mapping[Any, np.ndarray]) -> Any:
    """Return a frame of pandas of columns, none of whose cells is rounded."""
    import pandas as pd

    def typed(values: np.ndarray) -> Any:
        floats = column_floats(values) if values.dtype.kind == "O" else None
        is_wide = floats is not None and beyond_doubles(floats)
        return values if is_wide else pd.Series(values).infer_objects()

    return with_any_text(lambda: pd.DataFrame({name: typed(columns[name]) for name in columns}))


def plain_container(X: Any) -> Any:
    """Return a frame as `plain_frame` does, anything else as an array without a mask."""
    return plain_frame(X) if is_frame(X) else np.asarray(fill_masked(X))


def copy_frame(frame: Any) -> Any:
    """Return a copy of a frame, of pandas where it is installed, with rows numbered from 0."""
    if not hasattr(frame, "iloc"):
        return plain_frame(frame)  # a new one, or one of a library whose frames do not change
    return frame.copy().reset_index(drop=True)


def shallow_copy(frame: Any) -> Any:
    """Return a frame whose columns can be set without touching those of the original."""
    return frame.copy(deep=False) if hasattr(frame, "iloc") else frame


def take_rows(rows: Any, index: np.ndarray) -> Any:
    """Return rows of an array or a DataFrame by position."""
    return rows.iloc[index] if hasattr(rows, "iloc") else rows[index]


def column_at(frame: Any, position: int) -> Any:
    """Return the column of a frame or an array at a position; names may repeat."""
    if hasattr(frame, "iloc"):
        return frame.iloc[:, position]
    return frame.column(position) if hasattr(frame, "column_names") else frame[:, position]


def column_names(frame: Any) -> np.ndarray | None:
    """Return the columns of a frame if all are strings, as ``feature_names_in_``; else None."""
    columns = list(frame.columns)
    if not columns or not all(isinstance(column, str) for column in columns):
        return None
    return np.array(columns, dtype=object)


def column_floats(column: Any) -> np.ndarray | None:
    """Return a column as floats, NaN for missing values; None if it holds other things."""
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    listed = [np.nan if is_missing(value) else value for value in values.tolist()]
    if not all(isinstance(value, Real) for value in listed):
        return None
    try:
        return np.array(listed, dtype=np.float64)
    except OverflowError:
        return None


# From here on, doubles no longer tell all integers apart.
ROUNDED_FROM = 2.0**53


def beyond_doubles(numbers: np.ndarray) -> bool:
    """Return whether integers among these numbers may be rounded where they are doubles."""
    return bool(np.abs(numbers).max(initial=0.0, where=np.isfinite(numbers)) >= ROUNDED_FROM)


def refuse_rounded(ids: Iterable, holder: str) -> None:
    """Raise ValueError where an id is a float that may have rounded an integer before."""
    for each in ids:
        if isinstance(each, float) and ROUNDED_FROM <= abs(each) < np.inf:
            raise ValueError(
                f"got {each!r} in {holder}; floats of 2^53 and more may be two ids. Give integers "
                '(with gaps: the type "Int64" of pandas), or texts.'
            )


def frame_floats(frame: Any) -> np.ndarray | None:
    """Return a frame as floats, NaN for missing values; None if a column is not numeric."""
    floats = [column_floats(column_at(frame, j)) for j in range(frame.shape[1])]
    columns = [column for column in floats if column is not None]
    return np.column_stack(columns) if columns and len(columns) == len(floats) else None


def table_frame(values: Any, index: Any, columns: Any = None, name: str | None = None) -> Any:
    """Make a frame of pandas, or return None where that is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return None
    return with_any_text(
        lambda: pd.DataFrame(values, index=pd.Index(index, name=name), columns=columns)
    )


def with_any_text(make: Callable[[], Any]) -> Any:
    """Return what a function makes with pandas, also of texts that pyarrow does not hold."""
    try:
        return make()
    except UnicodeEncodeError:
        import pandas as pd

        with pd.option_context("mode.string_storage", "python"):
            return make()
