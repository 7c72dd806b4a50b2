"""Every kind of value through every door and frame: exact, or refused by the column's name."""

import json
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from skpref.duels import from_columns, from_votes

WIDE = 2**60
BERLIN = timezone(timedelta(hours=2))
# Two values of each kind that a rounding, or a text in another form, would make one.
KINDS = {
    "int64": (WIDE + 1, WIDE + 2),
    "uint64": (2**63 + 1, 2**63 + 2),
    "small": (7, 8),
    "decimal": (Decimal("1.10"), Decimal("1.11")),
    "bool": (True, False),
    "category": ("red", "blue"),
    "wide category": (WIDE + 1, WIDE + 2),
    "text": (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
    "no width": ("ab", "a\u200bb"),
    "null byte": ("ant", "ant\0"),
    "half a character": ("\ud800", "\ud801"),
    "date": (date(2024, 5, 17), date(2024, 5, 18)),
    "datetime": (datetime(2024, 5, 17, 1, 2, 3, 5), datetime(2024, 5, 17, 1, 2, 3, 6)),
    "zoned": (
        datetime(2024, 5, 17, 1, 2, 3, 5, BERLIN),
        datetime(2024, 5, 17, 1, 2, 3, 6, BERLIN),
    ),
    "nested": ([1, 2], [3]),
    "record": ({"x": 1}, {"x": 2}),
}
NESTED = ("nested", "record")
FRAMES = ["dict", "dict of NaN", "masked", "pandas", "polars", "pyarrow", "csv", "jsonl", "parquet"]
DOORS = ["competitor", "winner", "judge", "prompt", "by", "columns"]


def pandas_column(values, kind):
    pd = pytest.importorskip("pandas")
    types = {"int64": "Int64", "uint64": "UInt64", "small": "Int64", "bool": "boolean"}
    if kind == "zoned":
        return pd.Series(pd.to_datetime(values, utc=True)).dt.tz_convert("Asia/Tokyo")
    if kind == "wide category":
        return pd.Series(values, dtype="Int64").astype("category")
    return pd.Series(values, dtype={"category": "category", **types}.get(kind, object))


def polars_column(values, kind):
    pl = pytest.importorskip("polars")
    if kind == "zoned":
        return pl.Series(values, dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone("Asia/Tokyo")
    return pl.Series(values, dtype={"uint64": pl.UInt64, "category": pl.Categorical}.get(kind))


def pyarrow_column(values, kind):
    pa = pytest.importorskip("pyarrow")
    array = pa.array(values, type=pa.uint64() if kind == "uint64" else None)
    return array.dictionary_encode() if "category" in kind else array


def masked_column(values, kind):
    if kind not in ("int64", "uint64", "small", "bool", "text", "no width", "half a character"):
        pytest.skip("numpy has no such type")
    filled = np.array([values[0] if value is None else value for value in values])
    return np.ma.array(filled, mask=[value is None for value in values])


def csv_file(path, table):
    texts = {
        name: ["" if v is None else v if isinstance(v, str) else str(v) for v in values]
        for name, values in table.items()
    }
    rows = [list(table), *zip(*texts.values(), strict=True)]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text("\n".join(quoted), encoding="utf-8")
    return path


def as_texts(value, also=()):
    """What a file of texts can hold of a value."""
    kept = value is None or type(value) in (int, str, bool, *also)
    return value if kept else str(value)


def made(frame, table, typed, kind, path):
    """A table in a frame, and what can be expected of the values in its columns of the kind."""
    if kind == "half a character" and frame in ("csv", "polars", "pyarrow", "parquet", "pandas"):
        pytest.skip("its texts are UTF-8")
    if frame == "dict":
        return {**table, **typed}, typed
    if frame == "dict of NaN":
        nan = {name: [np.nan if v is None else v for v in each] for name, each in typed.items()}
        return {**table, **nan}, typed
    if frame == "csv":
        texts = {
            name: [v if v is None else json.dumps(v) for v in each]
            if kind in NESTED
            else list(map(as_texts, each))
            for name, each in typed.items()
        }
        return csv_file(path / "votes.csv", {**table, **texts}), texts
    if frame == "jsonl":
        texts = {n: [as_texts(v, (list, dict)) for v in each] for n, each in typed.items()}
        columns = {**table, **texts}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        (path / "votes.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return path / "votes.jsonl", texts
    column = {
        "masked": masked_column,
        "pandas": pandas_column,
        "pyarrow": pyarrow_column,
    }.get(frame, polars_column)
    columns = {**table, **{name: column(values, kind) for name, values in typed.items()}}
    if frame == "masked":
        return columns, typed
    library = pytest.importorskip("polars" if frame == "parquet" else frame)
    whole = library.table(columns) if frame == "pyarrow" else library.DataFrame(columns)
    if frame == "parquet":
        whole.write_parquet(path / "votes.parquet")
        whole = path / "votes.parquet"
    return whole, typed


def assert_same(value, expected):
    """The same value of the same type; of dates the same day or instant, with or without zone."""
    if not isinstance(expected, date):
        assert type(value) is type(expected) and value == expected
    elif getattr(expected, "tzinfo", None) is not None:
        assert value.tzinfo is not None and value == expected
    else:
        assert getattr(value, "tzinfo", None) is None
        assert np.datetime64(value) == np.datetime64(expected)


def through(door, source):
    """Values that come out of a door, row by row."""
    if door == "columns":
        X, y = from_columns(source, [], [], "winner", ids=("model_a", "model_b"))
        sides = zip(X.first["id"].tolist(), X.second["id"].tolist(), y, strict=True)
        return [first if won == 1 else second for first, second, won in sides]
    if door in ("competitor", "winner"):
        votes = from_votes(source)
        names = votes.item_table.names[votes.X]
        return (names[:, 0] if door == "competitor" else names[votes.y != 1, :][:, 1]).tolist()
    roles = {door: door}
    votes = from_votes(source, **roles)
    if door == "by":
        return [votes.groups[int(k)] for k in votes.X[:, 0, -1]]
    return votes.metadata["judges"].tolist() if door == "judge" else votes.prompts.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("door", DOORS)
def test_values_are_exact_or_refused_by_name(door, frame, kind, tmp_path):
    if door == "columns" and frame in ("csv", "jsonl", "parquet"):
        pytest.skip("from_columns takes frames")
    x, y = KINDS[kind]
    sides = {"model_a": list("stuts"), "model_b": list("tstut")}
    typed = {door: [x, y, None, y, x]}
    table = {**sides, "winner": list("abbab")}
    if door == "competitor":
        typed = {"model_a": [x, y, None, y, x], "model_b": [y, x, y, x, y]}
        table = {"winner": list("abbab")}
    elif door in ("winner", "columns"):
        if kind == "bool":
            pytest.skip("truth values say whether the first won")
        typed = {
            "model_a": [x, y, x, y, x],
            "model_b": [y, x, y, x, y],
            "winner": [x, x, None, y, y],
        }
        table = {}
    source, values = made(frame, table, typed, kind, tmp_path)
    # Frames may hold lists as ids of duels.
    refused = kind in NESTED and frame != "csv" and (door != "columns" or "dict" in frame)
    if refused:
        with pytest.raises(ValueError, match=f"'({'|'.join(typed)})'"):
            through(door, source)
        return
    if door == "winner":  # the second won the second row and the last
        expected = [values["winner"][1], values["winner"][4]]
    elif door == "columns":
        expected = [value for value in values["winner"] if value is not None]
    else:
        (expected, *_) = values.values()
        expected = [value for value in expected if value is not None]
    came = through(door, source)
    for value, each in zip(came, expected, strict=True):
        assert_same(value, each)


TIMES = {
    "wide": ([WIDE + 1, WIDE + 2, WIDE + 4], "numbers"),
    "unsigned": ([2**63 + 1, 2**63 + 2, 2**63 + 4], "numbers"),
    "floats": ([0.5, 1.0, 2.5], "numbers"),
    "date": ([date(2024, 5, 17), date(2024, 5, 18), date(2024, 5, 20)], "dates"),
    "datetime": ([datetime(2024, 5, 17, 1, 2, 3, k) for k in (5, 6, 9)], "dates"),
    "zoned": ([datetime(2024, 5, 17, 1, 2, 3, k, BERLIN) for k in (5, 6, 9)], "dates in UTC"),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("frame", [each for each in FRAMES if each != "masked"])
def test_times_stay_what_they_are(frame, kind, tmp_path):
    (x, y, z), are = TIMES[kind]
    typed = {"tstamp": [x, z, None, y]}
    table = {"model_a": list("stus"), "model_b": list("tsts"), "winner": list("abba")}
    of_kind = {"unsigned": "uint64", "zoned": "zoned"}.get(
        kind, "int64" if are == "numbers" else ""
    )
    if kind == "floats":
        of_kind = ""
    source, _ = made(frame, table, typed, of_kind, tmp_path)
    with pytest.warns(UserWarning, match=r"1 without a time \(rows 2\)|rows 2, 3"):
        votes = from_votes(source, time="tstamp")
    assert votes.times_are == are
    times = votes.metadata["time"]
    if are == "numbers":
        assert times.tolist() == [x, z]
        return
    instants = [each.astimezone(UTC).replace(tzinfo=None) if of_kind else each for each in (x, z)]
    assert times.dtype.kind == "M"
    np.testing.assert_array_equal(times, np.array(instants, dtype="datetime64[us]"))


@pytest.mark.parametrize("role", ["judge", "prompt", "by", "competitor"])
def test_floats_that_have_rounded_ids_are_refused_by_name(role):
    rounded = np.array([WIDE, WIDE + 1, np.nan, 3.0])  # of integers that were exact before
    name = "model_a" if role == "competitor" else role
    table = {
        "model_a": list("stus"),
        "model_b": list("tsts"),
        "winner": list("abba"),
        name: rounded,
    }
    with pytest.raises(
        ValueError, match=f"got 1.15.* in the column '{name}'; floats of 2.53.*Int64"
    ):
        from_votes({**table, name: rounded}, **({} if role == "competitor" else {role: name}))


def test_nanoseconds_with_a_zone_are_kept_or_refused():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    stamps = np.array(["2024-05-17T00:00:00.000000001", "2024-05-18"], dtype="datetime64[ns]")
    table = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "a"]}
    series = pd.Series(stamps).dt.tz_localize("UTC")
    votes = from_votes(pd.DataFrame({**table, "when": series}), time="when")
    np.testing.assert_array_equal(votes.times, stamps)
    frame = pl.DataFrame(table).with_columns(pl.Series("when", stamps).dt.replace_time_zone("UTC"))
    with pytest.raises(ValueError, match="'when' holds times with a zone in nanoseconds"):
        from_votes(frame, time="when")
