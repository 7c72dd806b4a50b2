"""A CSV by polars says the same as by Python's csv module."""

import csv
import gzip
import io
import multiprocessing
import os
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skpref.data._csv import split_columns
from skpref.data._tables import open_table

FILES = {
    "plain": "a,b,n\nx,y,1\ny,z,2.5\n",
    "no end": "a,b,n\nx,y,1\ny,z,2.5",
    "returns": "a,b,n\r\nx,y,1\r\ny,z,2.5\r\n",
    "old returns": "a,b,n\rx,y,1\ry,z,2.5\r",
    "mark": "\ufeffa,b,n\nx,y,1\n",
    "semicolons": "a;b;n\nx;y;1,5\n;z;2\n",
    "tabs": "a\tb\tn\nx\ty\t1\n",
    "bars": "a|b|n\nx|y|1\n",
    "quoted": '"a","b","n"\n"x, y","say ""hi""","1"\n"line\nbreak","",2\n"\n\n","\r\n",3\n',
    "quotes inside": 'a,b,n\nx"y,y,1\n"x"y,z,2\nz, "q",3\n',
    "a quote inside a cell": 'a,b,n\nx"y,z",1\n',
    "a quote after one": 'a,b,n\n"x"y,"z",1\n"x"",y","z",2\n',
    "a quote inside a cell and a line": 'a,b,n\nx"y\nz",1,2\n',
    "never closed": 'a,b,n\nx,y,1\n"x,y,2\nz,z,3\n',
    "only quotes": 'a,b,n\n"""",""""""," 4"\n',
    "blank lines": "a,b,n\n\nx,y,1\n\n\ny,z,2\n\n",
    "spaces": " a , b , n \n x , y , 1 \n  \ny,z,2\n",
    "short rows": "a,b,n\nx,y,1\ny\nz,z\n",
    "long rows": "a,b,n\nx,y,1,,\ny,z,2\n",
    "gaps": "a,b,n\nNA,y,nan\nnull,,\nx,None,n/a\n",
    "numbers": "a,b,n\n007,7,1_000\n4.10,7.0,1e400\n1,08,-inf\n+1,1.,.5\n1,1,\uff11\n",
    "whole": "a,b,n\n9007199254740993,-5,9007199254740993\n18446744073709551617,0,1\n",
    "truth": "a,b,n\nTrue,false,1\nFALSE,true,0\n",
    "unicode": "a,b,n\né,e\u0301,1\n\u2028,\x85,2\nx\x0by,\x0c,3\n\u200b,\U0001f389,4\n",
    "null bytes": "a,b,n\nx\0,x,1\n\0,y,2\n",
    "names twice": "a,a,n\nx,y,1\n",
    "unnamed": "a,,n\nx,y,1\n",
    "header again": "a,b,n\n1,2,3\na,b,n\n4,5,6\n",
    "one row": "a,b,n\n,,\n",
    "no row": "a,b,n\n",
}


def outcome(path, without_polars, monkeypatch):
    """Columns of a CSV, by polars or without it, or what its error says."""
    with monkeypatch.context() as patch:
        if without_polars:
            patch.setitem(sys.modules, "polars", None)
        try:
            labels, numbers = open_table(path).read([0, 1], [2, 0])
        except ValueError as error:
            return str(error)
    coded = [
        [None if code < 0 else (type(c.values[code]), c.values[code]) for code in c.codes]
        for c in labels
    ]
    return coded, [(each.values.tolist(), list(map(str, each.odd))) for each in numbers]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_says_the_same(kind, packed, tmp_path, monkeypatch):
    pytest.importorskip("polars")
    data = FILES[kind].encode()
    path = tmp_path / ("votes.csv.gz" if packed else "votes.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    expected = outcome(path, without_polars=True, monkeypatch=monkeypatch)
    np.testing.assert_equal(outcome(path, False, monkeypatch), expected)


def test_bytes_that_are_no_utf_8_are_named(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv"
    path.write_bytes("a,b,n,also\nx,y,1,é\n".encode("latin-1"))
    assert outcome(path, False, monkeypatch) == outcome(path, True, monkeypatch)


CELLS = st.text(st.sampled_from('ab1-. ,"\n\r\0é\u2028'), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@example([('"', "", "\n\n")], "\n", True)
def test_what_a_library_splits_is_what_the_module_splits(rows, end, well_formed):
    """None is allowed; other texts are not. Cells are quoted as they must be, or not at all."""
    pytest.importorskip("polars")
    rows = [("name", "b", "c"), *rows]
    if well_formed:
        stream = io.StringIO()
        csv.writer(stream, lineterminator=end).writerows(rows)
        text = stream.getvalue()
    else:
        text = end.join(map(",".join, rows))
    split = split_columns(text.encode(), ",", [0, 1, 2], [])
    if split is None:
        return
    expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    expected = [row + [""] * (3 - len(row)) for row in expected]
    assert all(not any(row[3:]) for row in expected)
    for j, (codes, texts) in enumerate(split[0]):
        assert [texts[code] for code in codes] == [row[j] for row in expected]


def test_plain_files_are_split_by_a_library():
    pytest.importorskip("polars")
    for kind in ("plain", "no end", "returns", "quoted", "short rows", "unicode", "truth"):
        separator = ","
        assert split_columns(FILES[kind].encode(), separator, [0, 1], [2]) is not None, kind


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_of_a_process_that_read_a_file_reads_it_too(tmp_path):
    pytest.importorskip("polars")
    path = tmp_path / "votes.csv"
    path.write_text("a,b,n\n" + "x,y,1\n" * 20_000)
    open_table(path).read([0, 1], [2])
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=lambda: open_table(path).read([0, 1], [2]))
    child.start()
    child.join(60)
    child.kill()
    child.join()
    assert child.exitcode == 0
