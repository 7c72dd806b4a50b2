"""Columns of a CSV by polars, where it reads the same as Python's csv module."""

import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

# In a fork of this process the threads of polars are gone, and a call of it may wait for ever.
_PROCESS = os.getpid()


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


def split_columns(
    data: bytes, separator: str, labels: Sequence[int], numbers: Sequence[int]
) -> tuple[list[Coded], list[Any]] | None:
    """Return columns of a CSV as labels and as numbers, by polars; None where readers may differ.

    Parameters
    ----------
    data : bytes
        UTF-8 without a mark at the beginning, the header first.
    separator : str
    labels, numbers : sequences of int
        Positions of columns, at least one label.

    Returns
    -------
    labels : list of Coded
        Texts, in order of first appearance; empty ones are not missing.
    numbers : list of ndarray of float of shape (n_rows,), or of lists of str
        Texts where some cell is no plain number; NaN for an empty cell.
        Both None where polars is not installed, in a fork of the process that imported this, or
        where readers differ: quotes inside cells, blank lines, line ends of old Macintoshes, rows
        of too many cells, other encodings.
    """
    if os.getpid() != _PROCESS:
        return None
    n_rows = _count_rows(data, separator)
    if n_rows is None:
        return None
    try:
        columns = _split_by_polars(data, separator, labels, numbers)
    except Exception:  # what polars refuses, and all where it is missing, the csv module reads
        return None
    return columns if len(columns[0][0].codes) == n_rows else None


def _split_by_polars(data, separator, labels, numbers):
    """Return some columns of a CSV by polars, every column read as texts first."""
    import polars as pl

    positions = sorted({*labels, *numbers})
    frame = pl.read_csv(
        io.BytesIO(data),
        separator=separator,
        columns=positions,
        infer_schema_length=0,  # all are texts, empty ones null
    )

    def coded(position):
        texts = frame[:, positions.index(position)].fill_null("")
        distinct = texts.unique(maintain_order=True)
        codes = texts.cast(pl.Enum(distinct)).to_physical()
        return Coded(codes.to_numpy().astype(np.intp), distinct.to_list())

    def floats(position):
        texts = frame[:, positions.index(position)]
        with suppress(pl.exceptions.PolarsError):
            values = texts.cast(pl.Float64).to_numpy()
            if not np.isinf(values).any():
                return values
        return texts.fill_null("").to_list()

    return list(map(coded, labels)), list(map(floats, numbers))


def _count_rows(data: bytes, separator: str) -> int | None:
    """Return the number of rows below the header; None of texts that readers read differently."""
    try:
        data.isascii() or data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    outside = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if b'"' in outside:  # of a text between quotes the last of them stays
        text = np.frombuffer(outside, dtype=np.uint8)
        outside = text[~np.logical_xor.accumulate(text == ord('"'))].tobytes()
        ends = separator.encode()
        # A cell is quoted whole, and a quote in it is written twice.
        if data.count(b'"') % 2 or re.search(rb'[^%b\n"]"|"[^%b\n"]' % (ends, ends), outside):
            return None
    # Ends of lines of old Macintoshes, blank lines.
    if b"\r" in outside or b"\n\n" in outside or outside.startswith(b"\n"):
        return None
    return outside.count(b"\n") - outside.endswith(b"\n")
