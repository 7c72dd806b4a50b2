"""Votes as arenas publish them: frames and files, every way of writing, what is left out."""

import gzip
import json
import sys
import warnings
from datetime import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_columns, from_votes
from skpref.kernels import Identity, OnColumns

# Who met whom, and the truth: 1 the first, -1 the second, 0 neither.
A = ["ant", "bee", "cow", "ant", "dog"]
B = ["bee", "cow", "ant", "dog", "bee"]
TRUTH = [1, -1, 0, -1, 1]
WORDS = ["model_a", "model_b", "tie", "model_b", "model_a"]
TABLE = {"model_a": A, "model_b": B, "winner": WORDS}
LENGTHS = {"length_a": [10.0, 20.0, 30.0, 40.0, 50.0], "length_b": [5.0, 25.0, 30.0, 10.0, 45.0]}


def said(votes):
    """Who met whom and the outcome, by name."""
    names = votes.item_table.names
    return names[votes.X[:, 0]].tolist(), names[votes.X[:, 1]].tolist(), votes.y.tolist()


def write(path, table, separator=",", **how):
    lines = [list(table), *zip(*table.values(), strict=True)]
    text = "\n".join(separator.join(map(str, line)) for line in lines) + "\n"
    path.write_text(text, **{"encoding": "utf-8", **how})
    return path


WAYS = {
    "sides": WORDS,
    "names": ["ant", "cow", "tie", "dog", "dog"],
    "badly": [" Model A", "MODEL-B ", "Tie (bothbad)", "Dog ", "model_a"],
    "left": ["left", "Right", "both bad", "RIGHT", "left"],
    "letters": ["A", "b", "Both_Bad", "B", "a"],
    "halves": [1, 0, 0.5, 0.0, 1.0],
    "signs": TRUTH,
    "places": [1, 2, 1.5, 2, 1],
    "neither": ["a", "b", "neither", "b", "a"],
    "are bad": ["a", "b", "Both are bad", "b", "a"],
}


@pytest.mark.parametrize("where", ["dict", "csv"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_says_the_same(way, where, tmp_path):
    table = {**TABLE, "winner": WAYS[way]}
    source = table if where == "dict" else write(tmp_path / "votes.csv", table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = from_votes(source)
    assert said(votes) == (A, B, TRUTH)
    assert votes.dropped == {} and votes.summary == "5 of 5 votes on 4 competitors"
    assert_array_equal(votes.rows, np.arange(5))
    assert_array_equal(votes.order, 1)


@pytest.mark.parametrize(
    ("names", "won"),
    [
        (("Model A", "model-b"), "Winner"),
        (("left", "right"), "vote"),
        (("a", "b"), "verdict"),
        (("player_1", "player_2"), "outcome"),
        (("generator_1", "generator_2"), "preference"),
    ],
)
def test_columns_are_guessed(names, won):
    outcome = {1: names[0], -1: names[1], 0: "tie"}
    table = {"id": range(5), won: [outcome[i] for i in TRUTH], names[1]: B, names[0]: A}
    assert said(from_votes(table)) == (A, B, TRUTH)
    named = from_votes(table, a=names[1], b=names[0], winner=won.upper())
    assert said(named) == (B, A, [-i for i in TRUTH])


def test_the_indicators_of_a_competition():
    table = {"model_a": A, "model_b": B, "prompt": list("vwxyz")}
    for name, outcome in (("model_a", 1), ("model_b", -1), ("tie", 0)):
        table[f"winner_{name}"] = [int(i == outcome) for i in TRUTH]
    votes = from_votes(table)
    assert said(votes) == (A, B, TRUTH) and votes.prompts.tolist() == list("vwxyz")
    with pytest.warns(UserWarning, match="1 of 5"):
        two = from_votes(table, winner=("winner_model_a", "winner_model_b"))
    assert two.dropped == {"whose outcomes do not sum to 1": 1} and two.y.tolist() == [1, 0, 0, 1]
    with pytest.raises(ValueError, match=r"0 or 1 each.*soft=True"):
        from_votes({**table, "winner_tie": [0.1, 0, 1, 0, 0]})


def test_winners_and_losers():
    votes = from_votes({"Winner": A[:2], "Loser": B[:2]})
    who = [
        votes.item_table.names[pair[:: 1 if y else -1]].tolist()
        for pair, y in zip(votes.X, votes.y, strict=True)
    ]
    assert who == [["ant", "bee"], ["bee", "cow"]]  # the winner first
    assert sorted(votes.y.tolist()) == [0, 1] and votes.order.tolist() == [0, 0]
    with pytest.raises(ValueError, match="no probabilities"):
        from_votes({"Winner": A[:2], "Loser": B[:2]}, soft=True)


def test_one_side_that_wins_all_is_turned_every_second_time():
    votes = from_votes({"a": A[:4], "b": B[:4], "winner": ["a", "a", "tie", "a"]})
    assert votes.y.tolist() == [-1, 1, 0, -1] and votes.order.tolist() == [-1, 1, 1, -1]
    names = votes.item_table.names
    assert names[votes.X].tolist() == [
        ["bee", "ant"],
        ["bee", "cow"],
        ["cow", "ant"],
        ["dog", "ant"],
    ]


@pytest.mark.parametrize("library", ["pandas", "polars", "masked"])
def test_containers_say_the_same(library):
    table = {**TABLE, **LENGTHS, "judge": [7, 8, 7, 9, 8], "tstamp": [1.5, 2.0, 3.0, 4.0, 5.0]}
    expected = from_votes(table, controls="length")
    if library == "masked":
        frame = {**table, "winner": np.ma.array(WORDS, mask=[0, 0, 0, 0, 1])}
        with pytest.warns(UserWarning, match="1 of 5"):
            assert from_votes(frame).dropped == {"without an outcome": 1}
        return
    frame = pytest.importorskip(library).DataFrame(table)
    found = from_votes(frame, controls="length")
    for name in ("X", "y", "judges", "times", "rows", "order", "control_scale"):
        assert_array_equal(found[name], expected[name])
        assert found[name].dtype == expected[name].dtype
    assert found.item_table.names.tolist() == expected.item_table.names.tolist()


def test_columns_of_pyarrow_tables():
    class Column(list):
        def to_numpy(self):
            return np.array(self, dtype=object)

    class Table:  # what is used of pyarrow.Table
        column_names, shape = list(TABLE), (5, 3)
        columns = tuple(Column(each) for each in TABLE.values())

        def column(self, position):
            return self.columns[position]

    assert said(from_votes(Table())) == (A, B, TRUTH)


@pytest.mark.parametrize(
    "kind",
    [
        "bom",
        "tabs",
        "semicolons",
        "gzip",
        "utf-16",
        "parquet",
        "json",
        "columns",
        "jsonl",
        "jsonl.gz",
    ],
)
def test_files(kind, tmp_path):
    table = {**TABLE, "judge": ["é", "ñ", "é", "ü", "ñ"]}
    if kind == "parquet":
        pl = pytest.importorskip("polars")
        path = tmp_path / "votes.parquet"
        pl.DataFrame(table).write_parquet(path)
    elif kind in ("json", "columns", "jsonl", "jsonl.gz"):
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        rows[0]["conversation"] = [{"said": "hello"}]
        if kind != "columns":
            rows.append({"model_b": "ant", "winner": "a"})  # without its first side
        lines = "\n".join(map(json.dumps, rows)) + "\n"
        text = {"json": json.dumps(rows), "columns": json.dumps(table)}.get(kind, lines)
        path = tmp_path / f"votes.{'json' if kind == 'columns' else kind}"
        path.write_bytes(gzip.compress(text.encode()) if "gz" in kind else text.encode())
    elif kind == "gzip":
        path = tmp_path / "votes.csv.gz"
        path.write_bytes(gzip.compress(write(tmp_path / "votes.csv", table).read_bytes()))
    else:
        separator = {"tabs": "\t", "semicolons": ";"}.get(kind, ",")
        encoding = {"bom": "utf-8-sig", "utf-16": "utf-16"}.get(kind, "utf-8")
        path = write(tmp_path / "votes.csv", table, separator, encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = from_votes(path), from_votes(str(path))
    for votes in found:
        assert said(votes) == (A, B, TRUTH)
        assert votes.judges.tolist() == table["judge"]


def test_a_hostile_csv(tmp_path):
    path = tmp_path / "votes.csv"
    long = "x" * 200_000  # beyond the limit of the csv module
    path.write_text(
        '\ufeff"model_a", model_b ,winner,"answer, of ""a"""\r\n'
        f'"ant","bee",model_a,"{long}\r\nand, a line"\r\n'
        "\r\n"
        '" ant ",cow,MODEL_B,\r\n'
        "ant,,model_a,x\r\n"  # an empty cell
        "NaN,bee,model_a,x\r\n"
        "bee,cow\r\n"  # cut short
        "bee,bee,model_b,x\r\n"
        "bee,cow,null,x\r\n"
        "cow,bee,what?,x\r\n"
        "bee,cow,tie,x,,\r\n",  # empty cells beyond the header
        encoding="utf-8",
    )
    with pytest.warns(UserWarning, match=r"6 of 9 votes cannot be used: 2 without a comp"):
        votes = from_votes(path)
    assert said(votes) == (["ant", "ant", "bee"], ["bee", "cow", "cow"], [1, -1, 0])
    assert votes.rows.tolist() == [0, 1, 8]
    assert votes.dropped == {
        "without a competitor's name": 2,
        "with the same competitor on both sides": 1,
        "without an outcome": 2,
        "whose outcome is neither side nor a tie ('what?' (1))": 1,
    }
    assert votes.summary == (
        "3 of 9 votes on 3 competitors; left out: 2 without a competitor's name, 1 with the same "
        "competitor on both sides, 2 without an outcome, 1 whose outcome is neither side nor a tie "
        "('what?' (1))"
    )


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "no header"),
        (b"model_a,model_b,winner\n", "no row"),
        (b"model_a,model_b,winner\nant,bee,a,and, more\n", "line 2, has 5 cells.*Quote texts"),
        ("model_a,model_b,winner\nämter,bee,a\n".encode("latin-1"), "not in UTF-8"),
        (b'model_a,model_b,winner\nant,bee,"a', None),
        (b"model_a,model_b,winner,winner\nant,bee,a,b\n", "2 columns are named 'winner'"),
        (b"model_a,model_b,winner,Winner\nant,bee,a,b\n", None),
        (b"ant,bee,a\n", "No two columns.*model_a"),
        (b"model_a,model_b\nant,bee\n", "No column is named as winners"),
        (b"model_a,model_b,winner\nant,bee,tie\n", "All 1 votes .* ties"),
        (b"model_a,model_b,winner\nant,ant,a\n", "No vote is left: 1 with the same"),
        (b"model_a,model_b,winner\nant,bee,a\nbee,ant,cat\n", "only wins of the first"),
        (b"model_a,model_b,winner\nant,bee,a\nbee,bee,b\nbee,ant,cat\n", "only wins of the first"),
        (b"model_a,model_b,winner\nant,bee,0.3\nbee,ant,2.5\n", "0, 0.5, 1, or 1, 1.5, 2"),
    ],
)
def test_files_that_cannot_be_read(content, match, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(content)
    if match is None:
        assert said(from_votes(path))[:2] == (["ant"], ["bee"])
        return
    with pytest.raises(ValueError, match=match):
        from_votes(path)


def test_other_sources_are_refused(tmp_path):
    (tmp_path / "votes.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match="no CSV"):
        from_votes(tmp_path / "votes.xlsx")
    with pytest.raises(ValueError, match="There is no file"):
        from_votes("nowhere.csv")
    with pytest.raises(ValueError, match=r"got the folder .*; give the path of a file of votes"):
        from_votes(tmp_path)
    (tmp_path / "votes.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="cannot be read"):
        from_votes(tmp_path / "votes.csv.gz")
    for text, match in (("{", "cannot be read as JSON"), ('{"a": 1}', "list of records")):
        (tmp_path / "votes.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=match):
            from_votes(tmp_path / "votes.json")
    with pytest.raises(ValueError, match="got list"):
        from_votes([["ant", "bee", "a"]])
    with pytest.raises(ValueError, match="differ in length"):
        from_votes({**TABLE, "winner": WORDS[:2]})
    with pytest.raises(ValueError, match=r"'winner' \(winner=\) holds lists"):
        from_votes({**TABLE, "winner": [["a"], ["b"], ["a"], ["b"], ["a"]]})
    pd = pytest.importorskip("pandas")
    twice = pd.DataFrame([["ant", "bee", "a", "b"]], columns=["a", "b", "winner", "winner"])
    with pytest.raises(ValueError, match="2 columns are named 'winner'"):
        from_votes(twice)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"a": "model_a"}, "got a= without b="),
        ({"a": "model_a", "b": "Model A"}, "one column"),
        ({"a": "who", "b": "model_b"}, "no column 'who'"),
        ({"judge": "nobody"}, "no column 'nobody'"),
        ({"winner": ("winner",)}, "1 columns"),
        ({"both_bad": "own"}, "both_bad must be one of 'tie', 'drop'"),
        ({"missing": "median"}, "missing must be one of"),
        ({"time": "language"}, "numbers or dates"),
        ({"alike": "yes"}, "alike must be one of 'apart', 'merge'"),
        ({"encoding": "utf-8"}, "encoding= is that of a CSV or JSON file; got dict"),
        # Columns that say something else of a vote.
        (
            {"winner": "model_a"},
            "holds the first competitor.*name the two 'winner' and",
        ),
        ({"winner": "model_b"}, "holds the second competitor"),
        ({"winner": ("p", "p")}, r"columns of winner= are \['p', 'p'\]; give each outcome its own"),
        ({"winner": ("model_a", "p")}, "holds the first competitor"),
        ({"judge": "model_b"}, "judge= is the column 'model_b', which is that of b= already"),
        ({"prompt": "winner"}, "prompt= is the column 'winner', which is that of winner= already"),
        ({"time": "winner"}, "time= is the column 'winner'"),
        ({"by": "winner"}, "by= is the column 'winner', which is that of winner= already"),
        ({"by": "model_a"}, "by= is the column 'model_a', which is that of a= already"),
        ({"controls": "tstamp"}, "between 1.6e[+]09 and .*one side of 0 in all 5.*as the time"),
        ({"controls": "lap", "time": "lap"}, "'lap' is the column 'lap', which is that of time="),
        ({"controls": "judge"}, "'judge' is the column 'judge', which is that of judge= already"),
        ({"controls": "model_a"}, "'model_a' is the column 'model_a', which is that of a="),
        ({"controls": [("length_a", "judge")]}, "column 'judge', which is that of judge="),
        ({"controls": "lap", "by": "lap"}, "that of by= already: a group is the same for both"),
        ({"controls": "size"}, "no control 'size'"),
        ({"controls": ["length", "length_a-length_b"]}, "Got controls twice"),
        ({"controls": [("length_a", "length_b", "x")]}, "has 3 columns"),
        ({"controls": [3]}, "got 3"),
        ({"controls": "winner"}, "that of winner= already"),
        ({"controls": "language"}, r"has no number: it holds such as \[.*\]\.$"),
        ({"controls": "comma"}, r'has no number.* 1,5 stands for 1\.5, say decimal=","'),
        ({"controls": "length_a-length_a"}, "same on both sides"),
    ],
)
def test_arguments_that_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        from_votes({**TABLE, **LENGTHS, **MORE}, **given)


MORE = {
    "judge": [1, 2, 3, 1, 2],
    "tstamp": [1.6e9, 1.7e9, 1.65e9, 1.6e9, 1.7e9],
    "lap": [1.0, -2.0, 0.5, 3.0, -1.0],
    "language": ["en", "de", "fr", "en", "de"],
    "comma": ["1,5", "-0,25", "3,0", "0,1", "-2,5"],
    "p": [1, 0, 0, 0, 1],
}


def test_a_time_that_is_a_difference_is_a_control():
    table = {**TABLE, "time": [0.5, -1.0, 2.0, -3.0, 0.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = from_votes(table, controls="time")
        both = from_votes(
            {**TABLE, "time_a": [1, 2, 3, 4, 5], "time_b": [2, 4, 4, 6, 7]}, controls="time"
        )
    assert votes.controls == both.controls == ["time"]


def test_a_difference_of_one_sign_is_warned_of():
    table = {name: column * 3 for name, column in TABLE.items()}
    same = {**table, "prompt_length": np.arange(15.0) + 20.0}
    with pytest.warns(UserWarning, match="between 20 and 34, on one side of 0 in all 15 votes"):
        assert from_votes(same, controls="prompt_length").controls == ["prompt_length"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bold = {**table, "bold": [1.0, 0.0, 0.0] * 5}  # whether the first alone was
        from_votes(bold, controls="bold")
        from_votes({**bold, "x": [0.5, -0.5, 1.0] * 5}, controls="x")


def test_competitors_that_never_stand_on_the_other_side_are_taken_as_they_are():
    new = {"new": ["x", "y", "x", "y"], "old": ["o", "o", "p", "p"], "winner": [1, 0, 1, 0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_votes(new, a="new", b="old")
        from_votes({"model_a": new["new"], "model_b": new["old"], "winner": new["winner"]})


def test_names_that_are_one_in_other_spelling():
    table = {
        "a": ["GPT-4", "gpt-4", "Bee", "gpt 4", "gpt-4"],
        "b": ["Bee", "bee", "cow", "cow", "Bee"],
        "winner": ["GPT-4", "b", "Bee", "tie", "Gpt_4"],
    }
    with pytest.warns(UserWarning, match="'GPT-4', .*If they are one, say alike=\"merge\", which"):
        apart = from_votes(table)
    assert len(apart.item_table) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = from_votes(table, alike="merge")
        later = from_votes(
            {"a": ["BEE", "GPT-4"], "b": ["Cow", "dog"], "winner": ["a", "b"]},
            alike="merge",
            like=votes,
        )
    assert votes.item_table.names.tolist() == ["Bee", "cow", "gpt-4"]  # those of most votes
    assert said(votes) == (
        ["gpt-4", "gpt-4", "Bee", "gpt-4", "gpt-4"],
        ["Bee", "Bee", "cow", "cow", "Bee"],
        [1, -1, 1, 0, 1],
    )
    assert later.item_table.names.tolist() == ["Bee", "cow", "gpt-4", "dog"]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "csv.gz"])
def test_encodings(kind, tmp_path):
    rows = {"model_a": ["ämter", "bée"], "model_b": ["bée", "ämter"], "winner": ["a", "b"]}
    if "csv" in kind:
        text = "\n".join(map(",".join, [rows, *zip(*rows.values(), strict=True)]))
    else:
        records = [dict(zip(rows, each, strict=True)) for each in zip(*rows.values(), strict=True)]
        text = "\n".join(json.dumps(each, ensure_ascii=False) for each in records)
        text = text if kind == "jsonl" else f"[{text.replace(chr(10), ',')}]"
    path = tmp_path / f"votes.{kind}"
    data = text.encode("cp1252")
    path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    votes = from_votes(path, encoding="cp1252")
    assert votes.item_table.names.tolist() == ["bée", "ämter"]
    with pytest.raises(ValueError, match=r"not in UTF-8\. Say what it is in by encoding="):
        from_votes(path)
    for unknown in ("utf-17", "hex", 8):
        with pytest.raises(ValueError, match=f"The encoding {unknown!r} is not known"):
            from_votes(path, encoding=unknown)
    if kind == "csv":
        path.write_text(text, encoding="utf-8-sig")
        assert from_votes(path, encoding="UTF8").item_table.names.tolist() == ["bée", "ämter"]
    with pytest.raises(ValueError, match=r"is Parquet\. Leave it out"):
        path.rename(tmp_path / "votes.parquet")
        from_votes(tmp_path / "votes.parquet", encoding="utf-8")


def test_bad_answers_and_ties_are_left_out_where_said_so():
    words = ["model_a", "tie (bothbad)", "tie", "model_b", "Both are bad"]
    table = {**TABLE, "winner": words}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is meant needs no warning
        assert from_votes(table).y.tolist() == [1, 0, 0, -1, 0]
        bad = from_votes(table, both_bad="drop")
        assert bad.y.tolist() == [1, 0, -1] and list(bad.dropped.values()) == [2]
        assert "tie_threshold" in bad.params
        none = from_votes(table, ties=False)
    assert none.y.tolist() == [1, 0] and none.dropped == {"ties (ties=False)": 3}
    assert "tie_threshold" not in none.params


def test_names_of_every_kind():
    mixed = {"a": ["x", 1, 2.0], "b": [1.0, "2", "x"], "winner": ["a", "b", "b"]}
    votes = from_votes(mixed)
    assert votes.item_table.names.tolist() == ["1", "2", "x"]
    assert said(votes) == (["x", "1", "2"], ["1", "2", "x"], [1, 0, 0])
    numbers = {"a": [7, 9.0, 7], "b": [9, 11, 11], "winner": [7, 11, 11.0]}
    votes = from_votes(numbers)
    assert said(votes) == ([7, 9, 7], [9, 11, 11], [1, 0, 0])
    with pytest.warns(UserWarning, match="'GPT-4', 'gpt-4'"):
        votes = from_votes({"a": ["GPT-4", "gpt-4 "], "b": ["x", "x"], "winner": ["a", "b"]})
    assert votes.item_table.names.tolist() == ["GPT-4", "gpt-4", "x"]
    sides = {"a": ["left", "x"], "b": ["x", "y"], "winner": ["left", "left"]}
    with pytest.raises(ValueError, match=r"row 1 .* word for a side and also the name"):
        from_votes(sides)


def test_types_of_a_csv_are_those_of_a_frame(tmp_path):
    table = {"a": [7, 9, 7], "b": [9, 11, 11], "winner": [7, 11, 11], "judge": ["007", "7", "8"]}
    votes = from_votes(write(tmp_path / "votes.csv", table))
    assert said(votes) == ([7, 9, 7], [9, 11, 11], [1, 0, 0])
    assert votes.judges.tolist() == ["007", "7", "8"]
    table = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["True", "false"]}
    assert from_votes(write(tmp_path / "votes.csv", table)).y.tolist() == [1, 0]
    assert from_votes({**table, "winner": [True, False]}).y.tolist() == [1, 0]


def test_who_judged_what_and_when():
    table = {**TABLE, "judge": ["u", None, "v", "", "u"], "question_id": [3, 4, 3, 4, 5]}
    table["date"] = ["2024-01-01", "2024-01-02T12:00", None, "2024-01-04", "2024-01-05T00:00+00:00"]
    guessed = from_votes(table)
    assert guessed.judges.tolist() == ["u", None, "v", None, "u"]
    assert guessed.prompts.tolist() == [3, 4, 3, 4, 5]
    days = ["2024-01-01", "2024-01-02T12", "NaT", "2024-01-04", "2024-01-05"]
    assert_array_equal(guessed.times, np.array(days, dtype="datetime64[us]"))
    with pytest.warns(UserWarning, match="cannot be used"):
        named = from_votes(table, judge="judge", time="date")
    assert named.dropped == {"without a judge": 2, "without a time": 1}
    assert named.judges.tolist() == ["u", "u"] and not np.isnat(named.times).any()
    stamps = np.array(["2024-01-01", "2024-01-03"], dtype="datetime64[ns]")
    two = {"a": A[:2], "b": B[:2], "winner": ["a", "b"], "timestamp": stamps}
    assert_array_equal(from_votes(two).times, stamps)
    assert from_votes({**two, "timestamp": ["noon", "night"]}).times is None
    bare = from_votes(TABLE)
    assert bare.judges is None and bare.prompts is None and bare.times is None


CONTROLS = {
    "by name": "length",
    "pair": [("length_a", "length_b")],
    "expression": "length_a-length_b",
    "spaced": ["Length_A - length_b"],
}


@pytest.mark.parametrize("way", CONTROLS)
def test_controls(way):
    votes = from_votes({**TABLE, **LENGTHS}, controls=CONTROLS[way])
    sides = np.column_stack(list(LENGTHS.values()))
    assert [each.lower() for each in votes.controls] == ["length"]
    assert votes.X.shape == (5, 2, 2)
    back = votes.X[:, :, 1] * votes.control_scale + votes.control_center
    assert_allclose(back, sides, atol=1e-12)
    difference = votes.X[:, 0, 1] - votes.X[:, 1, 1]
    assert_allclose(np.mean(difference**2), 1.0)
    assert_allclose(votes.X[:, :, 1].mean(), 0.0, atol=1e-12)
    assert_array_equal(votes.X[:, :, 0], from_votes(TABLE).X)


def test_a_difference_is_halved():
    table = {**TABLE, "gap": np.subtract(*LENGTHS.values())}
    votes, pair = (
        from_votes(table, controls="gap"),
        from_votes({**TABLE, **LENGTHS}, controls="length"),
    )
    margin, of_pair = (each.X[:, 0, 1] - each.X[:, 1, 1] for each in (votes, pair))
    assert_allclose(margin, of_pair)
    assert_allclose(votes.control_scale, pair.control_scale)
    assert_allclose(votes.X[:, 0, 1], -votes.X[:, 1, 1])
    with pytest.raises(
        ValueError, match=r"may be the column of this name.*\('length_a', 'length_b'\)"
    ):
        from_votes({**table, **LENGTHS, "length": table["gap"]}, controls="length")


@pytest.mark.parametrize(
    "names", [("len_left", "len_right"), ("left_len", "right len"), ("len_1", "len_2")]
)
def test_controls_of_sides_by_other_names(names):
    sides = dict(zip(names, LENGTHS.values(), strict=True))
    votes = from_votes({**TABLE, **sides}, controls="len")
    assert_array_equal(votes.X, from_votes({**TABLE, **LENGTHS}, controls="length").X)


def test_rows_that_repeat_are_read_as_one_by_one():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=400)
    second = (first + rng.integers(1, 4, size=400)) % 4
    names = np.array(["ant", "bee", "cow", "dog"])
    words = np.array([*names, "model_a", "B", "tie", "who?", "both bad", ""])
    frame = pd.DataFrame({"model_a": names[first], "model_b": names[second]})
    frame["winner"] = words[rng.integers(len(words), size=400)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = from_votes(frame)
        X, y = from_columns(frame, [], [], "winner", ids=("model_a", "model_b"))
    assert said(votes) == (X.first["id"].tolist(), X.second["id"].tolist(), y.tolist())


def test_missing_controls(tmp_path):
    holes = {"length_a": [10.0, None, 30.0, "n/a", 50.0], "length_b": LENGTHS["length_b"]}
    table = {**TABLE, **holes}
    for source in (table, write(tmp_path / "votes.csv", table)):
        with pytest.warns(UserWarning, match="2 of 5"):
            votes = from_votes(source, controls="length")
        assert votes.rows.tolist() == [0, 2, 4]
        assert votes.dropped == {"without a number for 'length'": 2}
        filled = from_votes(source, controls="length", missing="mean")
        back = filled.X[:, :, 1] * filled.control_scale + filled.control_center
        # The side that won all is turned round nowhere here.
        mean = np.mean([10.0, 30.0, 50.0, *LENGTHS["length_b"]])
        assert_allclose(back[:, 0], [10.0, mean, 30.0, mean, 50.0])
        assert "2 without a number for 'length' have its mean" in filled.summary
    odd = {**table, "length_a": [1.0, np.inf, 2.0, 3.0, "4"]}
    with pytest.warns(UserWarning, match="1 of 5"):
        assert from_votes(odd, controls="length").rows.tolist() == [0, 2, 3, 4]


def test_controls_are_learned_in_the_unit_of_the_user():
    rng = np.random.default_rng(0)
    n, slope = 400, 0.004
    first = rng.integers(4, size=n)
    second = (first + rng.integers(1, 4, size=n)) % 4
    words, lists = rng.normal(500.0, 150.0, size=(n, 2)), rng.poisson(3.0, size=(n, 2))
    margin = 0.5 * (first - second) + slope * (words[:, 0] - words[:, 1]) + rng.normal(size=n)
    who = np.where(np.abs(margin) < 0.3, "tie", np.where(margin > 0, "model_a", "model_b"))
    table = {"model_a": first, "model_b": second, "winner": who, "lists": lists @ [1, -1]}
    table |= {"words_a": words[:, 0], "words_b": words[:, 1]}
    votes = from_votes(table, controls=["words", "lists"])
    fixed = {"optimizer": None, "inference": "laplace", "noise_variance": 0.5}
    model = PairwisePreferenceRegressor(**{**votes.params, **fixed}).fit(votes.X, votes.y)
    at = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    utility = model.predict(at)
    effect = (utility[1:] - utility[0]) / votes.control_scale
    # Three standard errors of a probit regression of 400 votes.
    assert np.all(np.abs(effect - [slope, 0.0]) < 3.0 * 1.3 / 20.0 / votes.control_scale)
    # The same model of values as they came, the scales in its prior.
    raw = votes.X.copy()
    raw[:, :, 1:] *= votes.control_scale
    kernel = OnColumns(Identity(), [0])
    for column, scale in enumerate(votes.control_scale, start=1):
        kernel += OnColumns(ConstantKernel(scale**-2.0) * DotProduct(0.0, "fixed"), [column])
    plain = PairwisePreferenceRegressor(**{**votes.params, **fixed, "kernel": kernel})
    plain.fit(raw, votes.y)
    at[:, 1:] *= votes.control_scale
    assert_allclose(plain.predict(at), utility, rtol=1e-6)


@pytest.mark.parametrize("controls", [None, "length"])
def test_parameters_fit_and_learn(controls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = from_votes({**TABLE, **LENGTHS}, controls=controls)
        model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y, order=votes.order)
    assert model.classes_.tolist() == [-1, 0, 1]
    assert model.kernel_.theta.size == (0 if controls is None else 1)


def test_nothing_hangs_on_pandas(tmp_path, monkeypatch):
    path = write(tmp_path / "votes.csv", {**TABLE, **LENGTHS, "judge": list("uvuvw")})
    expected = from_votes(path, controls="length")
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    found = from_votes(path, controls="length")
    for name in ("X", "y", "judges"):
        assert_array_equal(found[name], expected[name])
    (tmp_path / "votes.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match="needs polars or pyarrow"):
        from_votes(tmp_path / "votes.parquet")


def test_votes_that_follow_others():
    before = from_votes({**TABLE, **LENGTHS}, controls="length")
    later = {"model_a": ["eel", "bee"], "model_b": ["cow", "ape"], "winner": ["b", "a"]}
    later |= {"length_a": [100.0, 7.0], "length_b": [20.0, 7.0]}
    votes = from_votes(later, controls="length", like=before)
    assert votes.item_table.names.tolist() == ["ant", "bee", "cow", "dog", "ape", "eel"]
    assert votes.X[:, :, 0].tolist() == [[5.0, 2.0], [1.0, 4.0]]
    assert votes.y.tolist() == [-1, 1]  # 0 is a tie there
    back = votes.X[:, :, 1] * before.control_scale + before.control_center
    assert_allclose(back, [[100.0, 20.0], [7.0, 7.0]])
    assert votes.params.keys() == before.params.keys()
    again = from_votes({**TABLE, **LENGTHS}, controls="length", like=before)
    assert_array_equal(again.X, before.X)
    ties = {**later, "winner": ["tie", "tie"]}
    assert from_votes(ties, controls="length", like=before).y.tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"have the controls \['length'\], these \[\]"):
        from_votes(later, like=before)
    names = from_votes({"a": [3], "b": [4], "winner": ["a"]}, like=from_votes(TABLE))
    assert names.item_table.names.tolist()[4:] == ["3", "4"]


def test_a_stream_of_votes():
    pieces = [
        {name: column[part] for name, column in TABLE.items()} for part in (slice(3), slice(3, 5))
    ]
    first = from_votes(pieces[0])
    second = from_votes(pieces[1], like=first)
    model = PairwisePreferenceRegressor(**first.params, inference="svi", optimizer=None)
    model.partial_fit(first.X, first.y)
    model.set_params(items=second.item_table).partial_fit(second.X, second.y)
    assert model.predict([3]).shape == (1,) and second.y.tolist() == [-1, 1]


def test_many_rows_in_blocks(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    first = rng.integers(9, size=n)
    second = (first + rng.integers(1, 9, size=n)) % 9
    table = {"a": first, "b": second, "winner": rng.choice(["a", "b", "tie"], size=n)}
    table |= {"size_a": rng.normal(size=n), "size_b": rng.integers(99, size=n)}
    found = from_votes(write(tmp_path / "votes.csv", table), controls="size")
    expected = from_votes(table, controls="size")
    assert_array_equal(found.X, expected.X)
    assert_array_equal(
        found.y, np.select([table["winner"] == "a", table["winner"] == "b"], [1, -1], 0)
    )


def test_controls_that_are_huge_or_tiny():
    """Squares of their differences are no numbers, or zero."""
    table = {"model_a": ["x", "y"], "model_b": ["y", "x"], "winner": ["model_a", "tie"]}
    for unit in (1e-200, 1e200, 1e305):
        sizes = {"size_a": [3 * unit, unit], "size_b": [unit, unit]}
        votes = from_votes(table | sizes, controls="size")
        np.testing.assert_allclose(votes.control_scale, [np.sqrt(2.0) * unit])
        np.testing.assert_allclose(np.abs(np.diff(votes.X[0, :, 1])), np.sqrt(2.0))
    with pytest.raises(ValueError, match=r"'size' holds values up to 1\.7e\+308"):
        from_votes(table | {"size_a": [1.7e308, 0.0], "size_b": [1.7e308, 0.0]}, controls="size")


@pytest.mark.parametrize("control", ["length_a", "Length B", "tokens_model_a"])
def test_a_control_of_one_side_alone_is_refused(control):
    table = {
        "model_a": ["x", "y", "x"],
        "model_b": ["y", "z", "z"],
        "winner": ["model_a", "model_b", "tie"],
        "length_a": [1.0, 2.0, 3.0],
        "length_b": [3.0, 1.0, 2.0],
        "tokens_model_a": [1.0, 2.0, 3.0],
        "tokens_model_b": [3.0, 1.0, 2.0],
    }
    with pytest.raises(ValueError, match="of one side alone"):
        from_votes(table, controls=control)


@pytest.mark.parametrize(
    "sides", [("chatbot_a", "chatbot_b"), ("player1", "player2"), ("modelA", "modelB")]
)
def test_further_names_of_competitors_are_guessed(sides):
    votes = from_votes({sides[0]: ["x", "y"], sides[1]: ["y", "z"], "winner": ["x", "z"]})
    assert votes.y.tolist() == [1, 0]


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2)])
def test_numbers_that_are_ids_and_sides_at_once_are_refused(one, other):
    """Votes 0 on (0, 1): the first won by its id, and the second won by the label."""
    ids = {"model_a": [one, other, one], "model_b": [other, one, other]}
    with pytest.raises(ValueError, match="ids of the winners, or say which side won"):
        from_votes(ids | {"winner": [one, other, other]})
    names = {side: [f"m{each}" for each in values] for side, values in ids.items()}
    labels = from_votes(names | {"winner": [one, other, other]}).y.tolist()
    assert labels == ([0, 1, 1] if one == 0 else [1, 0, 0])
    more = {"model_a": [3, 4, 3], "model_b": [4, 5, 5], "winner": [3, 5, 5]}  # ids alone
    assert from_votes(more).y.tolist() == [1, 0, 0]


def test_results_that_are_all_unread_are_not_taken_for_missing_ones():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"white": ["a", "b"], "black": ["b", "a"], "winner": ["2-0", "0-1"]})
    with pytest.raises(ValueError, match=r"'2-0' \(1\).*Encode them.*0\.5: a tie") as caught:
        from_votes(frame, a="white", b="black", winner="winner")
    assert "all others" not in str(caught.value)


@pytest.mark.parametrize(
    ("times", "are"),
    [
        ([1, 2.5, 3], "numbers"),
        (["2024-05-17", "2024-05-18T12:00", "2024-05-19"], "dates"),
        (["2024-05-17T00:00+02:00", "2024-05-18T12:00Z", "2024-05-19"], "dates in UTC"),
    ],
)
def test_what_times_are_is_told(times, are):
    table = {"a": ["x", "y", "z"], "b": ["y", "z", "x"], "winner": ["a", "b", "a"]}
    votes = from_votes({**table, "when": times}, time="when")
    assert votes.times_are == are and votes.times.shape == (3,)
    assert from_votes(table).times_are is None


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_polars_tells_of_a_time_zone(zone):
    pl = pytest.importorskip("polars")
    when = [datetime(2024, 5, 17), None, datetime(2024, 5, 18, 12), datetime(2024, 5, 19)]
    table = pl.DataFrame({"a": list("xyzx"), "b": list("yzxz"), "winner": list("abab")})
    table = table.with_columns(when=pl.Series(when).dt.replace_time_zone(zone))
    with pytest.warns(UserWarning, match="1 without a time"):
        votes = from_votes(table, time="when")
    assert votes.times_are == ("dates" if zone is None else "dates in UTC")
    early = np.timedelta64(0 if zone is None else 2, "h")
    days = np.array(["2024-05-17", "2024-05-18T12", "2024-05-19"], dtype="datetime64[us]")
    assert_array_equal(votes.times + early, days)


@pytest.mark.parametrize(
    ("times", "match"),
    [
        ([1, "2024-05-17", 3], r"all of one kind; got values such as \[1, '2024-05-17', 3\]"),
        (["17.05.2024"] * 3, "Which part of 17.05.2024 is the day is not guessed.*dayfirst=True"),
        (["05/17/24", "5/1/24", "x"], "Which part of 05/17/24 is the day.*dayfirst=False"),
        (["now", "then", "later"], r"'later'\]\.$"),
    ],
)
def test_times_that_cannot_be_read_are_refused(times, match):
    table = {"a": ["x", "y", "z"], "b": ["y", "z", "x"], "winner": ["a", "b", "a"], "when": times}
    with pytest.raises(ValueError, match=match):
        from_votes(table, time="when")


OWN = {
    "model_a": ["gpt", "opus", "llama", "opus", "gpt", "llama"],
    "model_b": ["opus", "llama", "gpt", "gpt", "llama", "opus"],
    "winner": ["a", "a", "b", "a", "tie", "a"],
    "judge": ["gpt", "opus", " gpt", "ann", "opus", "gpt"],
}


def test_an_answer_of_the_judge_itself_is_a_control():
    votes = from_votes(OWN, judge="judge")
    own = {"own_a": [1, 1, 0, 0, 0, 0], "own_b": [0, 0, 1, 0, 0, 0]}
    by_hand = from_votes(OWN | own, judge="judge", controls="own")
    assert votes.controls == ["own answer"] and by_hand.controls == ["own", "own answer"]
    assert_array_equal(votes.X, by_hand.X[:, :, :2])
    assert_array_equal(votes.control_scale, by_hand.control_scale[:1])
    assert from_votes(OWN).controls == []  # who judged is guessed, and no metadata of the fit
    others = OWN | {"judge": ["ann", "bob", "ann", "ann", "bob", "bob"]}
    assert from_votes(others, judge="judge").controls == []
    numbers = {side: [1, 2, 3, 2, 1, 3] for side in ("model_a", "judge")}
    numbers |= {"model_b": [2, 3, 1, 1, 3, 2], "winner": OWN["winner"]}
    assert from_votes(numbers, judge="judge").controls == []  # numbers of two different things


def test_later_votes_keep_the_control_of_own_answers():
    votes = from_votes(OWN, judge="judge")
    others = OWN | {"judge": ["ann"] * 6}
    later = from_votes(others, judge="judge", like=votes)
    assert later.controls == votes.controls
    assert_allclose(later.X[:, :, 1], -votes.control_center[0] / votes.control_scale[0])
    with pytest.raises(ValueError, match=r"got no judge= .* 'own answer'; name the column"):
        from_votes(others, like=votes)
    before = from_votes(others, judge="judge")
    assert from_votes(OWN, judge="judge", like=before).controls == []
