"""Tables of votes as they come: damaged, packed, put together, nested, in other spellings."""

import gzip
import json
import sys
import unicodedata
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpref import PairwisePreferenceRegressor
from skpref.data import _tables
from skpref.duels import from_columns, from_votes
from skpref.inspection import trajectories

TABLE = {
    "model_a": ["ant", "bee", "cow", "ant"],
    "model_b": ["bee", "cow", "ant", "cow"],
    "winner": ["model_a", "model_b", "tie", "model_b"],
}
SIGNS = [1, -1, 0, -1]


def as_csv(table):
    return "\n".join(map(",".join, [list(table), *zip(*table.values(), strict=True)])) + "\n"


# -- spelling ------------------------------------------------------------------------------------

SPELLINGS = {
    "decomposed": ("é", unicodedata.normalize("NFD", "é"), r"'e\\u0301', '\\xe9'"),
    "hangul": ("각", unicodedata.normalize("NFD", "각"), r"\\u1100"),
    "no width": ("ant", "an\u200bt", r"'ant', 'an\\u200bt'"),
    "byte order mark": ("ant", "\ufeffant", r"\\ufeffant"),
    "soft hyphen": ("ant", "a\u00adnt", r"a\\xadnt"),
    "null byte": ("ant", "ant\0", r"ant\\x00"),
    "case and accent": ("É", unicodedata.normalize("NFD", "é"), "'e\u0301', 'É'"),
    "dash": ("a-b", "a\u2013b", "'a-b', 'a–b'|u2013"),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_names_that_look_alike_are_told_or_merged(kind):
    one, other, shown = SPELLINGS[kind]
    table = {"a": [one, other, one, "x"], "b": ["x", "x", "y", one], "winner": [one, "b", "y", one]}
    with pytest.warns(UserWarning, match=f'{shown}.* say alike="merge"'):
        apart = from_votes(table)
    assert sorted(apart.item_table.names) == sorted([one, other, "x", "y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = from_votes(table, alike="merge")
    assert sorted(votes.item_table.names) == sorted([one, "x", "y"])
    assert votes.y.tolist() == [1, 0, 0, 0]
    with pytest.warns(UserWarning, match="Unicode form alone"):
        from_columns(table, [], [], "winner", ids=("a", "b"))


def test_a_winner_in_another_form_of_unicode_is_the_competitor():
    name = unicodedata.normalize("NFD", "é")
    table = {"a": [name, "x"], "b": ["x", name], "winner": ["É", "é"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_votes(table).y.tolist() == [1, 0]


# -- what is wrong with files --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "frame"])
def test_a_header_that_repeats_is_named_by_its_row(kind, tmp_path):
    ids = {"model_a": ["11", "12", "13", "11"], "model_b": ["12", "13", "11", "13"]}
    twice = {name: [*values, name.upper(), *values] for name, values in {**TABLE, **ids}.items()}
    source = twice
    if kind == "csv":
        source = tmp_path / "votes.csv"
        text = as_csv({**TABLE, **ids})
        head, _, rows = text.partition("\n")
        source.write_text(f"{text}{head.upper()}\n{rows}", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 that repeat the header, first in row 4"):
        votes = from_votes(source)
    assert votes.dropped == {"that repeat the header, first in row 4": 1}
    assert votes.y.tolist() == SIGNS * 2 and votes.rows.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    names = [11, 12, 13] if kind == "csv" else ["11", "12", "13"]
    assert votes.item_table.names.tolist() == names


def test_a_gap_beside_a_repeated_header_stays_a_gap():
    votes = {
        "model_a": ["ant", None, "model_a", "bee", "cow"],
        "model_b": ["bee", "cow", "model_b", "cow", "ant"],
        "winner": ["model_a", "model_a", "winner", "model_b", "model_a"],
    }
    with pytest.warns(UserWarning, match="1 that repeat the header, first in row 2"):
        read = from_votes(votes)
    assert read.rows.tolist() == [0, 3, 4]
    assert read.dropped["without a competitor's name"] == 1


def test_a_competitor_of_a_column_s_name_is_no_header():
    table = {**TABLE, "model_b": ["bee", "cow", "ant", "model_b"], "winner": list("abab")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_votes(table).rows.tolist() == [0, 1, 2, 3]


def test_columns_of_outcomes_may_be_a_list():
    table = {**TABLE, "pa": [1, 0, 0, 0], "pb": [0, 1, 0, 1], "pt": [0, 0, 1, 0]}
    assert from_votes(table, winner=["pa", "pb", "pt"]).y.tolist() == SIGNS
    assert from_votes(table, winner=("pa", "pb", "pt")).y.tolist() == SIGNS


def damaged(data, way):
    broken = bytearray(data)
    if way == "head":
        broken[4:60] = b"\xff" * 56
    elif way == "foot":
        broken[-60:-8] = bytes(byte ^ 85 for byte in broken[-60:-8])
    elif way == "pages":
        broken[4 : len(broken) // 2] = bytes(len(broken) // 2 - 4)
    return {
        "cut": data[:50],
        "end": data[:-10],
        "zeros": b"PAR1" + bytes(100) + b"PAR1",
        "empty": b"",
        "text": b"model_a,model_b",
    }.get(way, bytes(broken))


@pytest.mark.parametrize("way", ["cut", "end", "zeros", "empty", "text", "head", "foot", "pages"])
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_damaged_parquet_is_one_line(library, way, tmp_path, monkeypatch):
    pl = pytest.importorskip("polars")
    path = tmp_path / "votes.parquet"
    pl.DataFrame(TABLE).write_parquet(path)
    path.write_bytes(damaged(path.read_bytes(), way))
    if library == "pyarrow":
        pytest.importorskip("pyarrow")
        monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        ValueError, match=r"'votes\.parquet' cannot be read as Parquet: ."
    ) as caught:
        from_votes(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.json", "[" * 100_000 + "]" * 100_000),
        ("v.jsonl", '{"a":' * 100_000 + "1" + "}" * 100_000),
    ],
    ids=["list", "records"],
)
def test_json_that_is_too_deep_is_refused(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name}' cannot be read as JSON: .* too deep"):
        from_votes(tmp_path / name)


@pytest.mark.parametrize("text", ["[" + "9" * 5000 + "]", '[{"a": ', "\0", "[1e5,]"])
def test_json_that_cannot_be_read_is_named(text, tmp_path):
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^'v\.json' cannot be read as JSON: .+$"):
        from_votes(tmp_path / "v.json")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_packed_files_have_a_limit(kind, tmp_path, monkeypatch):
    text = as_csv(TABLE)
    if kind == "jsonl":
        rows = zip(*TABLE.values(), strict=True)
        text = "\n".join(json.dumps(dict(zip(TABLE, row, strict=True))) for row in rows)
    path = tmp_path / f"votes.{kind}.gz"
    path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(_tables, "LIMITS", _tables.FileLimits(unpacked=len(text)))
    assert from_votes(path).y.tolist() == SIGNS
    monkeypatch.setattr(_tables, "LIMITS", _tables.FileLimits(unpacked=len(text) - 1))
    with pytest.raises(ValueError, match=f"'votes.{kind}.gz' unpacks to more than .* Unpack it"):
        from_votes(path)


def test_a_cell_has_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv"
    path.write_text(as_csv(TABLE) + '"ant,bee,model_a\n' + "ant,bee,a\n" * 3, encoding="utf-8")
    monkeypatch.setattr(_tables, "LIMITS", _tables.FileLimits(cell=20))
    with pytest.raises(ValueError, match=r"'votes.csv' cannot be read as a CSV: .*limit \(20\)"):
        from_votes(path)


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dict", "csv", "jsonl"])
def test_decimal_commas(kind, tmp_path):
    numbers = {"length_a": [1.5, -2.25, 3.0, 0.5], "length_b": [0.5, 1.0, 2.5, 4.25]}
    numbers |= {"tstamp": [0.5, 1.5, 2.5, 4.0], "winner": [1.0, 0.0, 0.5, 0.0]}
    texts = {name: [str(v).replace(".", ",") for v in each] for name, each in numbers.items()}
    source = {**TABLE, **texts}
    if kind == "csv":
        source = tmp_path / "votes.csv"
        columns = {**TABLE, **texts}
        lines = [list(columns), *zip(*columns.values(), strict=True)]
        source.write_text("\n".join(map(";".join, lines)), encoding="utf-8")
    elif kind == "jsonl":
        source = tmp_path / "votes.jsonl"
        columns = {**TABLE, **texts}
        rows = zip(*columns.values(), strict=True)
        records = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        source.write_text("\n".join(records), encoding="utf-8")
    expected = from_votes({**TABLE, **numbers}, controls="length", time="tstamp")
    votes = from_votes(source, controls="length", time="tstamp", decimal=",")
    for name in ("X", "y", "times", "control_scale"):
        assert_array_equal(votes[name], expected[name])
    with pytest.raises(ValueError, match="decimal must be one of"):
        from_votes(source, decimal=";")


NESTED = [
    {"length": {"a": 10, "b": 5}, "deep": {"er": {"words_a": 3, "words_b": 9}}},
    {"length": {"a": 20, "b": 25}, "deep": {"er": {"words_a": 1, "words_b": 2}}},
    {"length": None, "deep": {"er": {"words_a": 4, "words_b": 1}}},
    {"length": {"a": 40}, "deep": {}},
]


@pytest.mark.parametrize(
    "kind",
    ["dict", "jsonl", "json", "polars", "parquet", "pyarrow", "pandas"],
)
def test_fields_of_records_are_controls(kind, tmp_path):
    columns = {**TABLE, "meta": NESTED}
    rows = zip(*columns.values(), strict=True)
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    if kind == "dict":
        source = columns
    elif kind in ("json", "jsonl"):
        source = tmp_path / f"votes.{kind}"
        text = json.dumps(records) if kind == "json" else "\n".join(map(json.dumps, records))
        source.write_text(text, encoding="utf-8")
    else:
        library = pytest.importorskip("polars" if kind == "parquet" else kind)
        source = library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)
        if kind == "parquet":
            source.write_parquet(tmp_path / "votes.parquet")
            source = tmp_path / "votes.parquet"
    flat = {
        **TABLE,
        "length_a": [10, 20, None, 40],
        "length_b": [5, 25, None, None],
        "words_a": [3, 1, 4, None],
        "words_b": [9, 2, 1, None],
    }
    expected = from_votes(flat, controls=["length", "words"], missing="mean")
    controls = ["meta.length", "meta.deep.er.words_a - meta.deep.er.words_b"]
    votes = from_votes(source, controls=controls, missing="mean")
    assert_array_equal(votes.X, expected.X)
    with pytest.raises(ValueError, match=r"'meta' \(by=\) holds lists or records.*'meta.length.a'"):
        from_votes(source, by="meta")


def test_a_field_gives_way_to_a_column_of_its_name():
    table = {**TABLE, "model.b": list("zzzz"), "model": [{"a": "x", "b": "y"}] * 4}
    del table["model.b"]
    assert from_votes(table).y.tolist() == SIGNS
    assert from_votes({**TABLE, "judge": [{"id": k} for k in "uvuv"]}, judge="judge.id").metadata[
        "judges"
    ].tolist() == list("uvuv")
    assert from_votes({**TABLE, "prompt": [["x"]] * 4}).prompts is None


# -- outcomes ------------------------------------------------------------------------------------

OUTCOMES = {
    "chess": ["1-0", "0-1", "1/2-1/2", "0-1"],
    "chess in signs": ["1–0", "0–1", "½", "0–1"],
    "halves": ["1 - 0", "0 - 1", "½-½", "0 - 1"],
    "comparisons": ["A>B", "B > A", "A=B", "A<B"],
    "clear comparisons": ["[[A>>B]]", "[[B>>A]]", "[[A=B]]", "[[B>A]]"],
    "verdicts": ["[[A]]", "[[B]]", "[[C]]", " [[ B ]] "],
    "texts of numbers": ["1", "-1", "0", "-1"],
    "texts of places": ["1", "2", "1.5", "2"],
}


@pytest.mark.parametrize("way", OUTCOMES)
def test_outcomes_as_arenas_write_them(way):
    table = {**TABLE, "winner": OUTCOMES[way]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_votes(table).y.tolist() == SIGNS
        ids = ("model_a", "model_b")
        assert from_columns(table, [], [], "winner", ids=ids)[1].tolist() == SIGNS


@pytest.mark.parametrize("score", ["2-1", "0-0", "1-1"])
def test_results_among_other_scores_are_scores(score):
    table = {**TABLE, "winner": ["1-0", "0-1", score, "a"]}
    with pytest.raises(ValueError, match="They look like scores"):
        from_votes(table)


@pytest.mark.parametrize("texts", [False, True])
def test_values_that_mean_what_is_said(texts):
    """1 the first, 2 the second, 0 a draw, as alpaca_eval has them."""
    table = {**TABLE, "winner": [str(v) if texts else v for v in (1, 2, 0, 2)]}
    with pytest.raises(ValueError, match=r"outcomes=\{1: 1, 2: -1, 0: 0\}"):
        from_votes(table)
    assert from_votes(table, outcomes={1: 1, 2: -1, 0: 0}).y.tolist() == SIGNS
    assert from_votes(table, outcomes={"1": 1, "2": -1, "0": 0}).y.tolist() == SIGNS
    words = {**TABLE, "winner": ["Left", "right", "who?", "right"]}
    with pytest.warns(UserWarning, match=r"neither side nor a tie \('who\?' \(1\)\)"):
        assert from_votes(words, outcomes={"left": -1, "right": 1}).y.tolist() == [0, 1, 1]
    sides = {"a": ["left", "x", "y"], "b": ["x", "y", "left"], "winner": ["left", "left", "y"]}
    with pytest.raises(ValueError, match=r"row 1 is 'left'.* by outcomes=\{'left': 1\}"):
        from_votes(sides)
    assert from_votes(sides, outcomes={"left": 1}).y.tolist() == [1, 0, 1]  # all turned by turns
    for wrong in ({1: 2}, {1: 0.5}, {}):
        with pytest.raises(ValueError, match="outcomes= must have an integer label"):
            from_votes(table, outcomes=wrong)
    with pytest.raises(ValueError, match="Leave one of the two out"):
        from_votes(table, outcomes={1: 1}, soft=True)


def test_wide_ids_of_winners_are_compared_exactly():
    k = 2**60
    table = {"a": [k + 1, k + 2, k + 1], "b": [k + 2, k + 1, k + 2]}
    assert from_votes({**table, "winner": [k + 2, k + 2, k + 1]}).y.tolist() == [0, 1, 1]


# -- votes to be scored, and what goes along -----------------------------------------------------


def test_votes_to_be_scored_are_all_there_or_named():
    rng = np.random.default_rng(0)
    n = 100
    first = rng.integers(5, size=n)
    table = {"model_a": first, "model_b": (first + 1) % 5, "winner": rng.choice(["a", "b"], n)}
    before = from_votes(table)
    holes = {
        **table,
        "winner": [None if i in (17, 40) else w for i, w in enumerate(table["winner"])],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # few enough to be left out in silence
        from_votes(holes)
        assert from_votes(table, like=before).rows.tolist() == list(range(n))
    with pytest.warns(UserWarning, match=r"2 of 100 votes .*without an outcome \(rows 17, 40\)"):
        votes = from_votes(holes, like=before)
    assert votes.rows.tolist() == [i for i in range(n) if i not in (17, 40)]


def test_dates_stay_dates_on_a_trajectory():
    days = np.array(["2024-05-17", "2024-05-19", "2024-06-01", "2024-07-01"], dtype="datetime64[D]")
    votes = from_votes({**TABLE, "when": days}, time="when", ties=False)
    assert_array_equal(votes.metadata["time"], days[[0, 1, 3]])
    params = {**votes.params, "drift": "matern12", "optimizer": None}
    model = PairwisePreferenceRegressor(**params).fit(votes.X, votes.y, time=votes.times)
    found = trajectories(model, votes)
    assert found.times.dtype.kind == "M"
    assert found.times.min() >= days[0] and found.times.max() <= days[-1]


def test_metadata_goes_to_fit():
    table = {**TABLE, "judge": list("uvuv"), "tstamp": [1, 2, 3, 4]}
    assert list(from_votes(table).metadata) == ["order"]  # what was not named is not passed on
    votes = from_votes(table, judge="judge", time="tstamp")
    assert list(votes.metadata) == ["order", "judges", "time"]
    params = {**votes.params, "order_effect_bounds": (-3.0, 3.0), "drift": "matern12"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwisePreferenceRegressor(**params).fit(votes.X, votes.y, **votes.metadata)
    lost = {"winner": ["x", "y"], "loser": ["y", "x"]}
    assert from_votes(lost).metadata == {}
    soft = from_votes({**TABLE, "winner": [0.2, 0.9, 0.4, 1.0]}, soft=True)
    assert list(soft.metadata) == ["order", "sample_weight"]
    assert_allclose(soft.metadata["sample_weight"].sum(), 4.0)
