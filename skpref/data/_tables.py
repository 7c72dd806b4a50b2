"""Tables from wherever they are: frames of any library, dicts of columns, CSV, JSON, Parquet."""

import codecs
import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import compress, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import narwhals as nw
import numpy as np

from skpref.data._containers import (
    column_at,
    exact_array,
    exact_list,
    is_blank,
    is_frame,
    is_missing,
    object_array,
)
from skpref.data._csv import Coded, split_columns

# Cells of a CSV that say nothing, as pandas reads them.
_EMPTY = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}
_SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class FileLimits:
    """What one file may take.

    Attributes
    ----------
    rows : int
        Rows of a CSV that are read at a time: more do not fit into the caches of a processor.
    cell : int
        Characters of one cell: a long conversation has a million. A quote that is never closed
        makes one cell of all that follows.
    unpacked : int
        Bytes that a packed file may become, those of ten million votes: a megabyte may unpack to a
        gigabyte, and the memory that it takes is known only then.
    """

    rows: int = 512
    cell: int = 2**24
    unpacked: int = 2**29


LIMITS = FileLimits()


class Numbers(NamedTuple):
    """A column as floats.

    Attributes
    ----------
    values : ndarray of float64 of shape (n_rows,)
        NaN where a value is missing or is no finite number.
    odd : list
        Some of the values that are there and are no finite numbers.
    """

    values: np.ndarray
    odd: list


Read = Callable[[Sequence[int], Sequence[int]], tuple[list[Coded], list[Numbers]]]


class ColumnTable(NamedTuple):
    """Columns that are read when they are asked for.

    Attributes
    ----------
    names : list
        Of all columns, as they stand; below them, as "column.field", the fields of records in them.
    read : callable
        Takes the positions of columns wanted as labels, and of those wanted as numbers; gives a
        `Coded` for each of the first and `Numbers` for each of the second.
    nested : frozenset of int
        Positions of columns whose cells are lists or records, which are no labels.
    n_fields : int
        How many of the names, the last ones, are of fields.
    """

    names: list
    read: Read
    nested: frozenset[int] = frozenset()
    n_fields: int = 0


def open_table(source: Any, encoding: str | None = None, decimal: str = ".") -> ColumnTable:
    """Return the table that a frame, a dict of columns or a file holds.

    Parameters
    ----------
    source : DataFrame, pyarrow.Table, dict of array-likes, str or path
        Of a path the suffix says what it is: ".csv", ".tsv", ".txt", ".json" or ".jsonl", also
        with ".gz", or ".parquet".
    encoding : str, optional
        Of a text file; None: UTF-8, or UTF-16 where a CSV begins with its mark.
    decimal : {".", ","}, default="."
        What numbers in texts have before their decimals.

    Raises
    ------
    ValueError
        For anything else, columns of different lengths, a file that cannot be read, or an
        encoding that is not known.
    """
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), encoding and _known_encoding(encoding), decimal)
    if encoding is not None:
        _refuse_encoding(type(source).__name__)
    if isinstance(source, Mapping):
        columns = check_columns(source)
        return _make_column_table(list(columns), list(columns.values()).__getitem__, decimal)
    if not is_frame(source):
        raise ValueError(
            "The votes must be a DataFrame, a pyarrow table, a dict of columns, or the path of a "
            f"CSV, JSON or Parquet file; got {type(source).__name__}."
        )
    names = list(getattr(source, "column_names", source.columns))  # pyarrow's are the first
    return _make_column_table(names, lambda i: column_at(source, i), decimal)


def check_columns(columns: Mapping) -> dict[Any, np.ndarray]:
    """Return the cells of each column; ValueError unless all are lists of one length."""
    cells = {name: column_cells(column) for name, column in columns.items()}
    for name, column in cells.items():
        if column.ndim != 1:
            raise ValueError(
                f"A column must have one dimension; {name!r} has the shape {column.shape}."
            )
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns differ in length: {lengths}. Give columns of one length.")
    return cells


def _make_column_table(names, column, decimal, heads=None):
    """Return a table of columns by position, and of the fields of records in them.

    ``heads`` gives columns of the same types that may have no rows.
    """
    fields: list[tuple[int, tuple[str, ...]]] = [(i, ()) for i in range(len(names))]
    nested = set()
    for position in range(len(names)):
        paths = _record_paths((heads or column)(position))
        if paths is not None:
            nested.add(position)
            fields += [(position, path) for path in paths]
    every = names + [".".join(map(str, (names[i], *path))) for i, path in fields[len(names) :]]

    def values(position: int) -> np.ndarray:
        i, path = fields[position]
        cells = column_cells(column(i))
        for key in path:
            inner = (cell.get(key) if isinstance(cell, dict) else None for cell in cells.tolist())
            cells = column_cells(list(inner))
        return cells

    def read(labels: Sequence[int], numbers: Sequence[int]) -> tuple[list[Coded], list[Numbers]]:
        return (
            [encode_column(values(i), every[i]) for i in labels],
            [parse_numbers(values(i), decimal) for i in numbers],
        )

    return ColumnTable(every, read, frozenset(nested), len(every) - len(names))


def column_cells(column: Any) -> np.ndarray:
    """Return the cells of a column, each exactly as it is; times with a zone keep it."""
    if isinstance(column, np.ma.MaskedArray) and column.dtype.kind in "biu":
        cells = column.data.astype(object)
        cells[np.ma.getmaskarray(column)] = None
        return cells
    series = nw.from_native(column, series_only=True, pass_through=True)
    kind = getattr(series, "dtype", None)
    if not isinstance(kind, nw.Datetime) or kind.time_zone is None:
        return exact_array(column)
    if series.implementation.is_polars():
        instants = series.to_numpy()
        if (instants.astype("M8[us]") < instants).any():
            raise ValueError(
                f"Column {series.name!r} holds times with a zone in nanoseconds, which Python has "
                "no name for; make microseconds of them by .dt.cast_time_unit('us')."
            )
    return exact_array(series.to_list())


def _record_paths(column: Any) -> list[tuple[str, ...]] | None:
    """Return the paths of keys to values in a column of records; None of other columns.

    A column of lists has none.
    """
    series = nw.from_native(column, series_only=True, pass_through=True)
    kind = series.dtype if isinstance(series, nw.Series) else None
    if isinstance(kind, nw.Struct | nw.List | nw.Array):
        return _struct_paths(kind)
    if kind not in (None, nw.Object) or getattr(column, "dtype", "object") != "object":
        return None
    first = next((cell for cell in column if not is_missing(cell)), None)
    return _key_paths(column) if isinstance(first, dict | list | set | np.ndarray) else None


def _struct_paths(dtype: Any) -> list[tuple[str, ...]]:
    """Return the paths of field names to the values of a Struct; none of another type."""
    paths: list[tuple[str, ...]] = []
    for field in dtype.fields if isinstance(dtype, nw.Struct) else ():
        below = _struct_paths(field.dtype) if isinstance(field.dtype, nw.Struct) else [()]
        paths += [(field.name, *path) for path in below]
    return paths


def _key_paths(records: Iterable) -> list[tuple[str, ...]]:
    """Return the paths of keys in some records, in order of appearance."""
    paths: dict[tuple[str, ...], None] = {}
    inner: dict[str, list] = {}
    for record in records:
        for key, value in record.items() if isinstance(record, dict) else ():
            if isinstance(value, dict):
                inner.setdefault(key, []).append(value)
            elif value is not None:
                paths.setdefault((key,))
    for key, below in inner.items():
        paths |= dict.fromkeys((key, *path) for path in _key_paths(below))
    return list(paths)


class _Codes(dict):
    """Number of each value in the order in which they are first asked for."""

    def __missing__(self, key):
        self[key] = code = len(self)
        return code


def encode_column(column: np.ndarray, name: Any) -> Coded:
    """Return a column by its distinct values; ValueError if cells hold lists."""
    code_of_value, listed = _Codes(), exact_list(column)
    try:
        codes = np.fromiter(map(code_of_value.__getitem__, listed), np.intp, len(listed))
    except TypeError:
        refuse_nested(listed, name)
        raise
    values = list(code_of_value)
    return mark_missing_values(
        np.array(list(map(is_blank, values)), dtype=bool), Coded(codes, values)
    )


def mark_missing_values(is_gap: np.ndarray, column: Coded) -> Coded:
    """Return a column of which some distinct values are missing ones."""
    if not is_gap.any():
        return column
    number = np.append(np.where(is_gap, -1, np.cumsum(~is_gap) - 1), -1)
    values = [value for value, gap in zip(column.values, is_gap, strict=True) if not gap]
    return Coded(number[column.codes], values)


def refuse_nested(cells: Iterable, name: Any) -> None:
    """Raise ValueError where a cell holds a list or a record."""
    for cell in cells:
        if type(cell).__hash__ is None:
            raise ValueError(
                f"Column {name!r} must have one dimension, a text, number or date a cell; it has "
                f"{cell!r}, a {type(cell).__name__}. Give another column, or a field of this one."
            )


def parse_numbers(column: Any, decimal: str = ".") -> Numbers:
    """Return an array or sequence as floats, texts as the numbers that they are."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and np.isfinite(column).all():
        return Numbers(column.astype(np.float64), [])
    cells = plain = column.tolist() if isinstance(column, np.ndarray) else column
    if decimal != ".":
        plain = [cell.replace(decimal, ".") if isinstance(cell, str) else cell for cell in cells]
    try:
        values = np.array(plain, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.fromiter(map(_as_float, plain), np.float64, len(cells))
    gaps = ~np.isfinite(values)
    values[gaps] = np.nan
    return Numbers(values, [c for c in compress(cells, gaps) if not _is_empty(c)][:3])


def _as_float(cell: Any) -> float:
    """Return a cell as a float, NaN where it is none."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _is_empty(cell: Any) -> bool:
    """Return whether a cell says nothing."""
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().casefold() in _EMPTY)


# -- files -----------------------------------------------------------------------------------


def _refuse_encoding(source: str) -> NoReturn:
    """Raise ValueError for an encoding of what is no text file."""
    raise ValueError(f"encoding= is that of a CSV or JSON file; got {source}. Leave it out.")


def _known_encoding(encoding: Any) -> str:
    """Return the name that Python has for an encoding; ValueError if it has none."""
    try:
        " ".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"The encoding {encoding!r} is not known; give a name such as 'utf-8' or 'cp1252'."
        ) from None
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name


def _open_file(path: Path, encoding: str | None, decimal: str) -> ColumnTable:
    """Return the table of a file, by its suffix; ValueError for others."""
    if path.is_dir():
        raise ValueError(f"got the folder {str(path)!r}; give the path of a file of votes in it.")
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    kind = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    if kind in (".parquet", ".pq"):
        if encoding is not None:
            _refuse_encoding(f"{path.name!r}, which is Parquet")
        return _open_parquet(path, decimal)
    if kind.removesuffix(".gz") in (".csv", ".tsv", ".txt"):
        return _open_csv(path, encoding, decimal)
    if kind.removesuffix(".gz") in (".json", ".jsonl"):
        return _open_json(path, ".jsonl" in kind, encoding or "utf-8-sig", decimal)
    raise ValueError(
        f"{path.name!r} is no CSV (.csv, .tsv, .txt), JSON (.json, .jsonl; all also with .gz) or "
        "Parquet file (.parquet). Read it into a DataFrame and give that."
    )


@contextmanager
def _file_errors(path: Path, kind: str, encoding: str | None = None) -> Iterator[None]:
    """Turn errors of libraries about a damaged file into a ValueError of one line."""
    fault = ""
    try:
        yield
    except UnicodeError:
        raise ValueError(
            f"{path.name!r} is not in {(encoding or '').removesuffix('-sig').upper()}. Say what it "
            "is in by encoding=, such as cp1252 (Western Windows), utf-16 or shift_jis."
        ) from None
    except (ImportError, MemoryError, KeyboardInterrupt):
        raise
    except RecursionError:
        fault = "its records lie too deep in one another"
    except BaseException as error:  # a panic of Rust, by which polars may stop, is no Exception
        is_panic = type(error).__name__ == "PanicException"
        if repr(path.name) in str(error) or not (isinstance(error, Exception) or is_panic):
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        fault = lines[0][:200]
    if fault:
        raise ValueError(f"{path.name!r} cannot be read as {kind}: {fault}.")


def _open_parquet(path: Path, decimal: str) -> ColumnTable:
    """Return the table of a Parquet file, read by polars or pyarrow."""
    if find_spec("polars") is not None:
        from polars import read_parquet

        with _file_errors(path, "Parquet"):
            head = read_parquet(path, n_rows=0)

        def column(position: int) -> Any:
            with _file_errors(path, "Parquet"):
                return read_parquet(path, columns=[head.columns[position]])[:, 0]

        return _make_column_table(head.columns, column, decimal, lambda i: head[:, i])
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError(
            "A Parquet file needs polars or pyarrow; install one of them, or give a CSV."
        ) from None
    with _file_errors(path, "Parquet"):
        table = ParquetFile(path).read()
    return open_table(table, decimal=decimal)


def _open_bytes(path: Path) -> BinaryIO:
    """Return a stream of the bytes of a file, unpacked; ValueError if they become too many."""
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    with gzip.open(path) as stream:
        data = stream.read(LIMITS.unpacked + 1)
    if len(data) > LIMITS.unpacked:
        raise ValueError(
            f"{path.name!r} unpacks to more than {LIMITS.unpacked >> 20} MiB, the most that a "
            "packed file may become. Unpack it, and give the file itself."
        )
    return io.BytesIO(data)


def _open_json(path: Path, lines: bool, encoding: str, decimal: str) -> ColumnTable:
    """Return the table of a list of records, or of one record a line."""
    with (
        _file_errors(path, "JSON", encoding),
        _open_bytes(path) as raw,
        io.TextIOWrapper(raw, encoding) as stream,
    ):
        if lines:
            records = [json.loads(line) for line in stream if line.strip()]
        else:
            records = json.load(stream)
    if isinstance(records, dict) and all(isinstance(each, list) for each in records.values()):
        return open_table(records, decimal=decimal)
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise ValueError(
            f"{path.name!r} must hold a list of records, one record a line (.jsonl), or columns."
        )
    names = list(dict.fromkeys(name for record in records for name in record))
    return _make_column_table(
        names, lambda i: [record.get(names[i]) for record in records], decimal
    )


@contextmanager
def _open_csv_bytes(path: Path, encoding: str | None) -> Iterator[tuple[BinaryIO, str, str]]:
    """Open a CSV; yield its stream of bytes, their encoding, and what separates cells."""
    limit = csv.field_size_limit(LIMITS.cell)
    try:
        with _file_errors(path, "a CSV", encoding or "utf-8"), _open_bytes(path) as raw:
            if encoding is None:
                marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
                encoding = "utf-16" if marked else "utf-8-sig"
                raw.seek(0)
            head = codecs.getreader(encoding)(raw).readline()
            raw.seek(0)
            most = max(_SEPARATORS, key=head.count)
            yield raw, encoding, most if most in head else ","
    finally:
        csv.field_size_limit(limit)


def _split_by_rows(rows, path, width, labels, numbers):
    """Return columns of the rows of a CSV below its header, read some rows at a time."""
    codes_of_texts = [_Codes() for _ in labels]
    codes = [[np.empty(0, dtype=np.intp)] for _ in labels]
    texts: list[list[str]] = [[] for _ in numbers]
    positions = [*labels, *numbers, 0]
    pick: Any = itemgetter(*positions)
    while block := list(islice(rows, LIMITS.rows)):
        columns = list(zip(*map(pick, _fill_rows(block, width, path, rows)), strict=True))[:-1]
        for part, numbered, column in zip(codes, codes_of_texts, columns, strict=False):
            part.append(np.fromiter(map(numbered.__getitem__, column), np.intp, len(column)))
        for cells, column in zip(texts, columns[len(labels) :], strict=False):
            cells += column
    values = map(list, codes_of_texts)
    return list(map(Coded, map(np.concatenate, codes), values)), texts


def _open_csv(path: Path, encoding: str | None, decimal: str) -> ColumnTable:
    """Return the table of a CSV; ValueError if it has no header."""
    with _open_csv_bytes(path, encoding) as (raw, known_encoding, separator):
        rows = csv.reader(io.TextIOWrapper(raw, known_encoding, newline=""), delimiter=separator)
        names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise ValueError(f"{path.name!r} has no header; its first line must name the columns.")

    def read(labels: Sequence[int], numbers: Sequence[int]) -> tuple[list[Coded], list[Numbers]]:
        columns = None
        with _open_csv_bytes(path, encoding) as (raw, known_encoding, separator):
            if known_encoding == "utf-8-sig" and raw.seek(0, io.SEEK_END) <= LIMITS.unpacked:
                raw.seek(0)
                data = raw.read().removeprefix(codecs.BOM_UTF8)
                columns = split_columns(data, separator, labels, numbers)
            if columns is None:
                raw.seek(0)
                lines = io.TextIOWrapper(raw, known_encoding, newline="")
                rows = csv.reader(lines, delimiter=separator)
                next(rows)
                columns = _split_by_rows(rows, path, len(names), labels, numbers)
        return (
            [_type_column(each, names[i]) for each, i in zip(columns[0], labels, strict=True)],
            [parse_numbers(column, decimal) for column in columns[1]],
        )

    return ColumnTable(names, read)


def _fill_rows(block: list, width: int, path: Path, rows: Any) -> list:
    """Return rows of full width: without blank ones, with empty cells at the end of short ones."""
    if all(len(row) == width for row in block):
        return block
    full = [row[:width] + [""] * (width - len(row)) for row in block if row]
    for row in block:
        if any(cell.strip() for cell in row[width:]):
            raise ValueError(
                f"A row of {path.name!r}, at or before line {rows.line_num}, has {len(row)} cells, "
                f"where the header has {width}: {row[:3]}, … Quote texts with separators in them."
            )
    return full


def _type_column(column: Coded, name: str) -> Coded:
    """Return a column of a CSV with the type of its texts, a repeated header aside."""
    whole = _whole_numbers(column.values)
    if whole is not None:
        return Coded(column.codes, whole)
    plain, head = [text.strip().casefold() for text in column.values], name.casefold()
    pairs = list(zip(column.values, plain, strict=True))
    typed = iter(_type_texts([text for text, p in pairs if p not in _EMPTY and p != head]))
    values = [None if p in _EMPTY else text if p == head else next(typed) for text, p in pairs]
    codes, values = encode_column(object_array(values), name)
    return Coded(np.append(codes, -1)[column.codes], values)


def _type_texts(texts: list) -> list:
    """Return texts as integers or truth values where all are such; 007 and 4.10 are names."""
    plain = [text.strip() for text in texts]
    if plain and all(text.casefold() in ("true", "false") for text in plain):
        return [text.casefold() == "true" for text in plain]
    return _whole_numbers(plain) or texts


def _whole_numbers(texts: list) -> list[int] | None:
    """Return texts as integers if all are written as these are, else None."""
    with suppress(ValueError):
        whole = list(map(int, texts))
        if list(map(str, whole)) == texts:
            return whole
    return None
