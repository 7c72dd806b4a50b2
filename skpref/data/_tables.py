"""Tables from wherever they are: frames of any library, dicts of columns, CSV, JSON, Parquet."""

import codecs
import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skpref.data._containers import column_at, is_frame, is_missing, unmasked

# Cells of a CSV that say nothing, as pandas reads them.
_EMPTY = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}
_ROWS = 512  # of a CSV at a time: more do not fit into the caches of a processor
_SEPARATORS = ",;\t|"


class Coded(NamedTuple):
    """A column as its distinct values and which of them each row has.

    Attributes
    ----------
    codes : ndarray of intp of shape (n_rows,)
        -1 where the value is missing.
    values : list
        Distinct, none missing.
    """

    codes: np.ndarray
    values: list


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


class Table(NamedTuple):
    """Columns that are read when they are asked for.

    Attributes
    ----------
    names : list
        Of all columns, as they stand.
    read : callable
        Takes the positions of columns wanted as labels, and of those wanted as numbers; gives a
        `Coded` for each of the first and `Numbers` for each of the second.
    """

    names: list
    read: Read


def open_table(source: Any, encoding: str | None = None) -> Table:
    """The table that a frame, a dict of columns or a file holds.

    Parameters
    ----------
    source : DataFrame, pyarrow.Table, dict of array-likes, str or path
        Of a path the suffix says what it is: ".csv", ".tsv", ".txt", ".json" or ".jsonl", also
        with ".gz", or ".parquet".
    encoding : str, optional
        Of a text file; None: UTF-8, or UTF-16 where a CSV begins with its mark.

    Raises
    ------
    ValueError
        For anything else, columns of different lengths, a file that cannot be read, or an
        encoding that is not known.
    """
    if encoding is not None:
        encoding = _known_encoding(encoding)
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), encoding)
    if encoding is not None:
        raise ValueError(
            f"encoding= is that of a CSV or JSON file; {type(source).__name__} came, which holds "
            "texts already. Leave it out."
        )
    if isinstance(source, Mapping):
        columns = [_array(column) for column in source.values()]
        lengths = {name: len(column) for name, column in zip(source, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The columns differ in length: {lengths}.")
        return _of_arrays(list(source), columns.__getitem__)
    if not is_frame(source):
        raise ValueError(
            "The votes must be a DataFrame, a pyarrow table, a dict of columns, or the path of a "
            f"CSV, JSON or Parquet file; {type(source).__name__} came."
        )
    names = list(getattr(source, "column_names", source.columns))  # pyarrow's are the first
    if hasattr(source, "column_names"):
        return _of_arrays(names, lambda position: _array(source.column(position)))
    return _of_arrays(names, lambda position: _array(column_at(source, position)))


def _array(column: Any) -> np.ndarray:
    column = unmasked(column)
    if hasattr(column, "to_numpy"):
        given, column = column, column.to_numpy()
        if column.dtype.kind == "M" and _has_zone(given):  # it is UTC now, and does not say so
            listed = column.astype("datetime64[us]").tolist()
            column = [None if at is None else at.replace(tzinfo=UTC) for at in listed]
    if not isinstance(column, np.ndarray):
        listed = list(column)
        column = np.empty(len(listed), dtype=object)
        column[:] = listed
    if column.ndim != 1:
        raise ValueError(f"A column must have one dimension; one of shape {column.shape} came.")
    return column


def _has_zone(column: Any) -> bool:
    """Whether a column of pyarrow or polars is of dates with a time zone."""
    kind = getattr(column, "type", getattr(column, "dtype", None))
    return (getattr(kind, "tz", None) or getattr(kind, "time_zone", None)) is not None


def _of_arrays(names: list, column: Callable[[int], np.ndarray]) -> Table:
    def read(labels, numbers):
        return [coded(column(i)) for i in labels], [as_numbers(column(i)) for i in numbers]

    return Table(names, read)


class _Codes(dict):
    """Number of each value in the order in which they are first asked for."""

    def __missing__(self, key):
        self[key] = code = len(self)
        return code


def coded(column: np.ndarray) -> Coded:
    """A column of any values by its distinct ones."""
    if column.dtype.kind in "biufM":
        distinct, inverse = np.unique(column, return_inverse=True)
        codes = inverse.reshape(-1).astype(np.intp)
        values = list(distinct) if column.dtype.kind == "M" else distinct.tolist()
    else:
        known = _Codes()
        listed = column.tolist()
        try:
            codes = np.fromiter(map(known.__getitem__, listed), np.intp, len(listed))
        except TypeError:
            odd = next(value for value in listed if value.__hash__ is None)
            raise ValueError(
                f"Cells must be texts or numbers; {odd!r}, a {type(odd).__name__}, came."
            ) from None
        values = list(known)
    return _without_missing(codes, values)


def _without_missing(codes: np.ndarray, values: list) -> Coded:
    gone = [is_missing(v) or (isinstance(v, str) and not v.strip()) for v in values]
    if not any(gone):
        return Coded(codes, values)
    number = np.cumsum(~np.array(gone)) - 1
    number[gone] = -1
    return Coded(number[codes], [v for v, left in zip(values, gone, strict=True) if not left])


def as_numbers(column: np.ndarray) -> Numbers:
    """A column as floats; texts are read as numbers."""
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        odd = values[np.isinf(values)]
        return Numbers(np.where(np.isinf(values), np.nan, values), odd[:3].tolist())
    return _parsed(column.tolist())


def _parsed(cells: list) -> Numbers:
    try:
        values = np.array(cells, dtype=np.float64)
        if np.isfinite(values).all():
            return Numbers(values, [])
    except (TypeError, ValueError):
        pass
    values, odd = np.full(len(cells), np.nan), []
    for row, cell in enumerate(cells):
        if is_missing(cell) or (isinstance(cell, str) and cell.strip().casefold() in _EMPTY):
            continue
        with suppress(TypeError, ValueError):
            values[row] = float(cell)
        if not np.isfinite(values[row]):
            values[row] = np.nan
            odd.append(cell)
    return Numbers(values, odd[:3])


# -- files -----------------------------------------------------------------------------------


def _known_encoding(encoding: Any) -> str:
    """The name that Python has for an encoding; a mark at the beginning is none of the text."""
    try:
        " ".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"The encoding {encoding!r} is not known; give a name such as 'utf-8', 'utf-16' or "
            "'cp1252' (Western Windows)."
        ) from None
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name


def _open_file(path: Path, encoding: str | None) -> Table:
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    kind = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    if kind in (".parquet", ".pq"):
        if encoding is not None:
            raise ValueError(
                f"encoding= is that of a CSV or JSON file; {path.name!r} is a Parquet file, whose "
                "texts are UTF-8. Leave it out."
            )
        return _open_parquet(path)
    if kind.removesuffix(".gz") in (".csv", ".tsv", ".txt"):
        return _open_csv(path, encoding)
    if kind.removesuffix(".gz") in (".json", ".jsonl"):
        return _open_json(path, ".jsonl" in kind, encoding or "utf-8-sig")
    raise ValueError(
        f"{path.name!r} is no CSV (.csv, .tsv, .txt), JSON (.json, .jsonl; all also with .gz) or "
        "Parquet file (.parquet). Read it into a DataFrame and give that."
    )


def _open_parquet(path: Path) -> Table:
    """By polars or pandas, whichever is there; only the columns wanted."""
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        names = list(pl.read_parquet_schema(path))

        def one(position):
            return _array(pl.read_parquet(path, columns=[names[position]])[:, 0])

        return _of_arrays(names, one)
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(
            "A Parquet file needs polars, or pandas with pyarrow; install one of them, or save "
            "the votes as CSV."
        ) from None
    return open_table(frame)


def _open_json(path: Path, lines: bool, encoding: str) -> Table:
    """A list of records, or one record a line; what a record lacks is missing."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding=encoding) as stream:
            if lines:
                records = [json.loads(line) for line in stream if line.strip()]
            else:
                records = json.load(stream)
    except UnicodeError:
        raise _other_encoding(path, encoding) from None
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path.name!r} cannot be read as JSON: {error}.") from None
    if isinstance(records, dict) and all(isinstance(each, list) for each in records.values()):
        return open_table(records)
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise ValueError(
            f"{path.name!r} must hold a list of records, [{{...}}, {{...}}], one record a line "
            "(.jsonl), or lists by column."
        )
    names = list(dict.fromkeys(name for record in records for name in record))
    return _of_arrays(names, lambda i: _array([record.get(names[i]) for record in records]))


@contextmanager
def _csv_rows(path: Path, encoding: str | None) -> Iterator[Any]:
    """The rows of a CSV; its cells may be as long as they like."""
    limit = csv.field_size_limit(sys.maxsize)
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as raw:
            start = raw.read(4)
        if encoding is None:
            encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with opener(path, "rb") as raw, io.TextIOWrapper(raw, encoding, newline="") as stream:
            head = stream.readline()
            stream.seek(0)
            most = max(_SEPARATORS, key=head.count)
            yield csv.reader(stream, delimiter=most if most in head else ",")
    except UnicodeError:
        raise _other_encoding(path, encoding or "") from None
    except (csv.Error, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path.name!r} cannot be read as a CSV: {error}.") from None
    finally:
        csv.field_size_limit(limit)


def _other_encoding(path: Path, encoding: str) -> ValueError:
    return ValueError(
        f"{path.name!r} is not in {encoding.removesuffix('-sig').upper()}. Say what it is in by "
        "encoding=, such as cp1252 (Western Windows), utf-16 or shift_jis."
    )


def _open_csv(path: Path, encoding: str | None) -> Table:
    with _csv_rows(path, encoding) as rows:
        names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise ValueError(f"{path.name!r} has no header; its first line must name the columns.")

    def read(labels, numbers):
        known = [_Codes() for _ in labels]
        codes: list[list] = [[] for _ in labels]
        parts: list[list] = [[] for _ in numbers]
        pick: Any = itemgetter(*[*labels, *numbers, 0])
        with _csv_rows(path, encoding) as rows:
            next(rows)
            while block := list(islice(rows, _ROWS)):
                block = _complete(block, len(names), path, rows)
                if not block:
                    continue
                columns = list(zip(*map(pick, block), strict=True))
                for code, number, column in zip(codes, known, columns, strict=False):
                    code.append(np.fromiter(map(number.__getitem__, column), np.intp, len(column)))
                for part, column in zip(parts, columns[len(labels) :], strict=False):
                    part.append(_parsed(list(column)))
        empty = [np.empty(0, dtype=np.intp)]
        return (
            [
                _of_texts(np.concatenate(c or empty), list(k))
                for c, k in zip(codes, known, strict=True)
            ],
            [
                Numbers(
                    np.concatenate([each.values for each in part] or [np.empty(0)]),
                    [cell for each in part for cell in each.odd][:3],
                )
                for part in parts
            ],
        )

    return Table(names, read)


def _complete(block: list, width: int, path: Path, rows: Any) -> list:
    """Rows of full width: blank lines go, and cells that are missing at the end are empty."""
    if all(len(row) == width for row in block):
        return block
    full = []
    for row in block:
        if len(row) > width and any(cell.strip() for cell in row[width:]):
            raise ValueError(
                f"A row of {path.name!r}, at or before line {rows.line_num}, has {len(row)} cells, "
                f"where the header has {width}: {row[:3]}, … Texts with separators in them need "
                "quotes."
            )
        if row:
            full.append(row[:width] + [""] * (width - len(row)))
    return full


def _of_texts(codes: np.ndarray, texts: list) -> Coded:
    """A column of a CSV."""
    gone = np.array([text.strip().casefold() in _EMPTY for text in texts], dtype=bool)
    left = [text for text, missing in zip(texts, gone, strict=True) if not missing]
    number = np.cumsum(~gone) - 1
    number[gone] = -1
    return _merged(number[codes] if len(codes) else codes, _typed(left))


def _typed(texts: list) -> list:
    """Integers or truth values where all are; 007 and 4.10 are names."""
    plain = [text.strip() for text in texts]
    with suppress(ValueError):
        whole = [int(text) for text in plain]
        if list(map(str, whole)) == plain:
            return whole
    truth = {"true": True, "false": False}
    if plain and all(text.casefold() in truth for text in plain):
        return [truth[text.casefold()] for text in plain]
    return texts


def _merged(codes: np.ndarray, values: list) -> Coded:
    """Equal values under one code."""
    known = _Codes()
    number = np.array([*(known[value] for value in values), -1], dtype=np.intp)
    return Coded(number[codes], list(known))
