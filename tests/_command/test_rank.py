"""`skpref rank`: from a table of votes to files that say what the functions say."""

import csv
import errno
import gzip
import importlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import unicodedata
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref import PairwisePreferenceRegressor
from skpref._command import _rank, main
from skpref._command._report import BoardReport, as_options
from skpref._command._times import StrengthDrift
from skpref._utils import csv_cell
from skpref.duels import from_votes
from skpref.inspection import control_effects, leaderboard, leaderboards, undecided_pairs, win_rates

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["ant", "a|b_<c> & *d*", "模型 二号", "dog"]
STRENGTH = np.array([1.0, 0.5, -0.5, -1.0])


def table(n=80, seed=0):
    """Votes with ties, lengths, judges, languages, and some that cannot be used."""
    rng = np.random.default_rng(seed)
    i = rng.integers(4, size=n)
    j = (i + rng.integers(1, 4, size=n)) % 4
    length = np.round(200.0 + 80.0 * rng.normal(size=(n, 2)))
    margin = STRENGTH[i] - STRENGTH[j] + 0.01 * (length[:, 0] - length[:, 1])
    margin += rng.normal(size=n)
    won = np.where(np.abs(margin) < 0.3, "tie", np.where(margin > 0.0, "model_a", "model_b"))
    rows = {
        "Model_A": [NAMES[k] for k in i],
        "Model_B": [NAMES[k] for k in j],
        "winner": won.tolist(),
        "length_a": length[:, 0].tolist(),
        "length_b": length[:, 1].tolist(),
        "judge": [f"j{k}" for k in rng.integers(3, size=n)],
        "language": rng.choice(["en", "de"], size=n, p=[0.7, 0.3]).tolist(),
    }
    rows["winner"][3] = ""
    rows["language"][5] = ""
    return rows


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def votes_csv(tmp_path_factory):
    return write(tmp_path_factory.mktemp("votes") / "votes.csv", table())


@pytest.fixture
def held(monkeypatch):
    """The command holds hyperparameters, where what they are is not the point."""
    learned = PairwisePreferenceRegressor
    monkeypatch.setattr(_rank, "PairwisePreferenceRegressor", partial(learned, optimizer=None))


def run(*arguments):
    return main([str(each) for each in arguments])


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


@pytest.fixture(scope="module")
def written(votes_csv, tmp_path_factory):
    """Files of a run with controls, and the same numbers by functions."""
    out = tmp_path_factory.mktemp("out") / "deep" / "board"
    code = run("rank", votes_csv, "--controls", "length_a-length_b", "--unit", "elo", "--out", out)
    assert code == 0
    votes = from_votes(votes_csv, controls="length")
    model = PairwisePreferenceRegressor(**votes.params, random_state=0).fit(votes.X, votes.y)
    return out, votes, model


def test_files_hold_the_numbers_of_the_functions(written):
    out, votes, model = written
    board = leaderboard(model, votes, unit="elo")
    rows = rows_of(out / "board.csv")
    assert [row["name"] for row in rows] == board.names.tolist()
    assert column(rows, "rank").tolist() == [1, 2, 3, 4]
    for name in ("utility", "lower", "upper", "rank_lower", "rank_upper", "probability_best"):
        np.testing.assert_allclose(column(rows, name), board[name], rtol=1e-12)
    assert column(rows, "votes").sum() == 2 * 79
    pairs = undecided_pairs(model, votes, unit="elo")
    open_ = rows_of(out / "undecided.csv")
    assert [(row["first"], row["second"]) for row in open_] == list(
        zip(pairs.first, pairs.second, strict=True)
    )
    np.testing.assert_allclose(column(open_, "margin"), pairs.margin, rtol=1e-12)
    effects = control_effects(model, votes, unit="elo")
    (control,) = rows_of(out / "controls.csv")
    assert control["control"] == "length" and effects.names.tolist() == ["length"]
    assert float(control["slope"]) == pytest.approx(effects.slope[0])


def test_slopes_are_per_unit_of_the_column_that_came(written):
    _, votes, model = written
    effects = control_effects(model, votes, average=False)
    lengths = np.array([[each] for each in (350.0, 250.0)])
    first, second = (
        np.array([[0.0, *(each - votes.control_center) / votes.control_scale]]) for each in lengths
    )
    mean, _ = model.posterior_.margin(first, second)
    sigma = np.sqrt(model.noise_variance_)
    assert effects.slope[0] == pytest.approx(mean[0] / 100.0 / sigma)
    board = leaderboard(model, votes, at={"length": 123.0})
    assert board.held["length"] == pytest.approx(123.0)
    raw = [table()["length_a"], table()["length_b"]]
    kept = np.delete(np.array(raw), 3, axis=1)
    assert effects.spread[0] == pytest.approx(kept.std())
    assert leaderboard(model, votes).held["length"] == pytest.approx(kept.mean())


def test_json_says_the_same_without_nan(written):
    out, votes, _ = written

    def refuse(word):
        raise AssertionError(word)

    found = json.loads((out / "board.json").read_text("utf-8"), parse_constant=refuse)
    assert found["n_read"] == 80 and found["n_votes"] == 79 == len(votes.y)
    assert found["dropped"] == {"without an outcome": 1}
    assert [row["name"] for row in found["board"]] == [
        row["name"] for row in rows_of(out / "board.csv")
    ]
    assert found["lead"]["names"] == [row["name"] for row in found["board"][:2]]
    assert found["controls"][0]["control"] == "length"
    assert found["n_pairs"] == 6 and set(found["learned"]) == {"tie_threshold"}


class _Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.tags, self.inside = [], set(), False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.inside = True
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.tables[-1][-1][-1] += data


def test_pages_show_names_as_they_are(written):
    out, _, _ = written
    page = _Cells()
    page.feed((out / "board.html").read_text("utf-8"))
    ranked = [row["name"] for row in rows_of(out / "board.csv")]
    assert [row[1] for row in page.tables[0][1:]] == ranked
    assert page.tables[0][0][:3] == ["rank", "name", "votes"]
    assert {"svg", "title", "style"} <= page.tags
    assert not page.tags & {"link", "img", "c"}  # needs nothing else; names are no tags
    assert "src=" not in (out / "board.html").read_text("utf-8")
    lines = (out / "board.md").read_text("utf-8").splitlines()
    shown = next(line for line in lines if "c\\>" in line and line.startswith("| "))
    assert "a\\|b\\_\\<c\\> & \\*d\\*" in shown
    header = next(line for line in lines if line.startswith("| rank"))
    assert shown.replace("\\|", "").count("|") == header.count("|")


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [("noise", -0.004, "0.00"), ("elo", -0.4, "0"), ("noise", -1.234, "-1.23"), ("elo", -6, "-6")],
)
def test_nothing_is_minus_zero(unit, value, text):
    assert BoardReport.number(SimpleNamespace(board=SimpleNamespace(unit=unit)), value) == text


def test_columns_stand_below_each_other_on_a_screen(votes_csv, capsys):
    assert run("rank", votes_csv, "--top", 3, "--ties", "drop") == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("rank"))

    def width(text):
        return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)

    ends = [width(line) for line in lines[start : start + 4]]
    assert len(set(ends)) == 1
    assert lines[start + 4] == "… and 1 more."
    words = " ".join(said.split())
    assert "left out: 1 without an outcome" in words and "ties (--ties drop)" in words
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.slow
def test_groups_judges_and_who_was_shown_first(votes_csv, tmp_path, capsys):
    arguments = ("--by", "language", "--judge", "judge", "--order", "--level", 0.8)
    assert run("rank", votes_csv, *arguments, "--out", tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "78 of 80 votes on 4 competitors" in said
    assert "1 without a value in 'language'" in said
    assert "language: en" in said and "The first side has an advantage of" in said
    groups = rows_of(tmp_path / "groups.csv")
    assert [row["group"] for row in groups] == ["en"] * 4 + ["de"] * 4
    judges = rows_of(tmp_path / "judges.csv")
    assert sorted(row["judge"] for row in judges) == ["j0", "j1", "j2"]
    mean, low, high = (column(judges, name) for name in ("reliability", "lower", "upper"))
    assert (low <= high).all() and (low < mean).all()  # a mean may lie above, beside a point at 0
    assert "reliability | 80 % interval |" in (tmp_path / "board.md").read_text("utf-8")
    assert column(judges, "votes").sum() == 78
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert found["level"] == 0.8 and list(found["groups"]) == ["en", "de"]
    assert set(found["learned"]) == {"tie_threshold", "order_effect"}
    order = found["learned"]["order_effect"]
    assert order["lower"] < order["value"] < order["upper"]
    ends = " to ".join(f"{order[end]:.2f}" for end in ("lower", "upper"))
    assert f"advantage of {order['value']:.2f} (80 % interval {ends})" in said


@pytest.mark.slow
def test_groups_are_those_of_a_kernel_of_ids_within_groups(votes_csv, tmp_path):
    from skpref.kernels import leaderboard_kernel

    rows = table()
    kept = [k for k in range(80) if rows["winner"][k] and rows["language"][k]]
    votes = from_votes({name: [part[k] for k in kept] for name, part in rows.items()})
    codes = np.array([["en", "de"].index(rows["language"][k]) for k in kept], dtype=float)
    X = np.dstack([votes.X.astype(float), np.repeat(codes[:, None], 2, axis=1)])
    kernel = leaderboard_kernel(X, id_column=0, by=1)
    params = {name: value for name, value in votes.params.items() if name != "items"}
    params |= {"kernel": kernel, "id_column": 0, "random_state": 0}
    model = PairwisePreferenceRegressor(**params).fit(X, votes.y)
    boards = leaderboards(model, 1)
    assert run("rank", votes_csv, "--by", "Language", "--out", tmp_path) == 0
    groups = rows_of(tmp_path / "groups.csv")
    expected = np.concatenate([boards[0].utility, boards[1].utility])
    np.testing.assert_allclose(column(groups, "utility"), expected, rtol=1e-4, atol=1e-5)


def test_the_fit_speaks_on_standard_error(votes_csv, capsys):
    assert run("rank", votes_csv, "--progress") == 0
    said = capsys.readouterr()
    assert "[skpref]" in said.err and "[skpref]" not in said.out
    done = [line.split(" in ")[0] for line in said.err.splitlines() if line.endswith(" s")]
    assert done[0] == "[skpref] read" and done[-2:] == ["[skpref] fitted", "[skpref] ranked"]


class _Input:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "json", "jsonl", "parquet"])
def test_votes_from_standard_input(kind, votes_csv, tmp_path, monkeypatch, capsys, held):
    rows = table()
    records = [dict(zip(rows, each, strict=True)) for each in zip(*rows.values(), strict=True)]
    data = votes_csv.read_bytes()
    if kind == "csv.gz":
        data = gzip.compress(data)
    elif kind == "json":
        data = b" " + json.dumps(records).encode()
    elif kind == "jsonl":
        data = "\n".join(map(json.dumps, records)).encode()
    elif kind == "parquet":
        pl = pytest.importorskip("polars")
        pl.DataFrame(rows).write_parquet(tmp_path / "votes.parquet")
        data = (tmp_path / "votes.parquet").read_bytes()
    monkeypatch.setattr(sys, "stdin", _Input(data))
    assert run("rank", "-", "--out", tmp_path / "out") == 0
    assert "79 of 80 votes" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/board.json").read_text("utf-8"))["title"] == "standard input"


def test_standard_input_may_be_empty_or_in_another_encoding(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", _Input(b" \n"))
    assert run("rank", "-") == 2
    assert "Standard input is empty" in capsys.readouterr().err
    text = "a,b,winner\nämter,bée,a\nbée,ämter,a\n"
    monkeypatch.setattr(sys, "stdin", _Input(text.encode("cp1252")))
    assert run("rank", "-") == 2
    assert "by --encoding, such as cp1252" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", _Input(text.encode("cp1252")))
    assert run("rank", "-", "--encoding", "cp1252") == 0
    assert "ämter" in capsys.readouterr().out


def test_what_is_not_said_of_winners_and_losers(tmp_path, capsys):
    path = write(tmp_path / "v.csv", {"winner": list("xyxz"), "loser": list("yzzx")})
    assert run("rank", path, "--order") == 2
    assert "do not say who was shown first, which --order is about" in capsys.readouterr().err


def test_spellings_are_merged_where_that_is_said(tmp_path, capsys):
    rows = {
        "a": ["Ant", "bee", "ant", "cow"],
        "b": ["bee", "cow", "Cow", "ant"],
        "winner": list("abab"),
    }
    path = write(tmp_path / "v.csv", rows)
    assert run("rank", path) == 0
    assert "If they are one, say --alike merge, which takes" in capsys.readouterr().err
    assert run("rank", path, "--alike", "merge") == 0
    said = capsys.readouterr()
    assert not said.err and "4 of 4 votes on 3 competitors" in said.out


@pytest.mark.parametrize("missing", ["pandas", "matplotlib"])
def test_optional_packages_are_optional(votes_csv, tmp_path, monkeypatch, capsys, held, missing):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert run("rank", votes_csv, "--out", tmp_path) == 0
    picture = (tmp_path / "board.svg").read_text("utf-8")
    assert ElementTree.fromstring(picture).tag.endswith("}svg")
    assert picture in (tmp_path / "board.html").read_text("utf-8")
    assert len(rows_of(tmp_path / "board.csv")) == 4
    capsys.readouterr()
    if missing == "matplotlib":  # refused before any work
        assert run("rank", tmp_path / "none.csv", "--out", tmp_path, "--png") == 2
        assert "--png requires matplotlib" in capsys.readouterr().err


def test_the_page_says_who_beats_whom(written):
    out, votes, model = written
    rates = win_rates(model, votes)
    page = _Cells()
    page.feed((out / "board.html").read_text("utf-8"))
    (cells,) = (each for each in page.tables if each[0][:3] == ["rank", "name", "1"])
    assert [row[1] for row in cells[1:]] == rates.names.tolist()
    share = rates.win + 0.5 * rates.tie
    for i, row in enumerate(cells[1:]):
        for j, cell in enumerate(row[2:]):
            assert cell == "–" if i == j else abs(float(cell) - 100.0 * share[i, j]) <= 0.5
    saved = json.loads((out / "board.json").read_text("utf-8"))["win_rates"]
    assert saved["names"] == rates.names.tolist()
    assert_allclose(saved["win"], rates.win, atol=1e-12)
    assert_allclose(saved["tie"], rates.tie, atol=1e-12)


def test_competitors_that_no_vote_joins_have_no_chances(tmp_path, capsys, held):
    rows = {"a": ["x", "y", "u"] * 4, "b": ["y", "x", "v"] * 4, "winner": ["a", "b", "a"] * 4}
    assert run("rank", write(tmp_path / "v.csv", rows), "--out", tmp_path) == 0
    page = _Cells()
    page.feed((tmp_path / "board.html").read_text("utf-8"))
    (cells,) = (each[1:] for each in page.tables if each[0][:3] == ["rank", "name", "1"])
    of = {row[1]: dict(zip((each[1] for each in cells), row[2:], strict=True)) for row in cells}
    pairs = {(one, other) for one in of for other in of if of[one][other] != "–"}
    assert pairs == {("x", "y"), ("y", "x"), ("u", "v"), ("v", "u")}


def test_the_page_shows_the_ten_least_reliable_judges(tmp_path, capsys, held):
    rng = np.random.default_rng(0)
    rows = {"a": ["x", "y"] * 60, "b": ["y", "x"] * 60, "winner": ["a", "b"] * 60}
    rows["judge"] = [f"judge {k // 10}" for k in range(120)]
    rows["winner"][:20] = rng.choice(["a", "b"], 20).tolist()
    path = write(tmp_path / "v.csv", rows)
    assert run("rank", path, "--judge", "judge", "--out", tmp_path) == 0
    page = _Cells()
    page.feed((tmp_path / "board.html").read_text("utf-8"))
    (shown,) = ([row[0] for row in each[1:]] for each in page.tables if each[0][0] == "judge")
    ranked = [row["judge"] for row in rows_of(tmp_path / "judges.csv")]
    assert shown == ranked[-10:] and {"judge 0", "judge 1"} <= set(shown)
    for file in ("board.html", "board.md"):
        text = (tmp_path / file).read_text("utf-8")
        assert "The 10 least reliable of 12 judges; all are in judges.csv." in text


def test_a_base_is_added_to_utilities_alone(votes_csv, tmp_path, capsys, held):
    shown = ["--scale", "elo", "--by", "language", "--out"]
    assert run("rank", votes_csv, *shown, tmp_path / "zero") == 0
    assert run("rank", votes_csv, "--base", "1000", *shown, tmp_path / "base") == 0
    assert "A utility of 1000 is the mean" in capsys.readouterr().out
    for file in ("board.csv", "groups.csv"):
        zero, base = (rows_of(tmp_path / each / file) for each in ("zero", "base"))
        for name in ("utility", "lower", "upper"):
            assert_allclose(column(base, name), column(zero, name) + 1000.0)
        assert [row["rank_upper"] for row in base] == [row["rank_upper"] for row in zero]
    assert rows_of(tmp_path / "zero/undecided.csv") == rows_of(tmp_path / "base/undecided.csv")
    marks = re.findall(r'anchor="middle">([^<]*)<', (tmp_path / "base/board.svg").read_text())
    assert marks and all(abs(float(each) - 1000.0) < 500.0 for each in marks)


def test_a_picture_of_dots_and_the_page_in_a_browser(
    votes_csv, tmp_path, monkeypatch, capsys, held
):
    pytest.importorskip("matplotlib")
    pages = []
    monkeypatch.setattr("webbrowser.open", pages.append)
    assert run("rank", votes_csv, "--by", "language", "--png", "--open", "--out", tmp_path) == 0
    for name in ("board.png", "groups.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert pages == [(tmp_path / "board.html").as_uri()]
    capsys.readouterr()
    for option in ("--open", "--png"):
        assert run("rank", tmp_path / "none.csv", option) == 2
        assert f"got {option} without --out; name a folder" in capsys.readouterr().err


def test_parquet(tmp_path, capsys, held):
    pl = pytest.importorskip("polars")
    pl.DataFrame(table()).write_parquet(tmp_path / "votes.parquet")
    assert run("rank", tmp_path / "votes.parquet") == 0
    assert "79 of 80 votes" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_soft_votes_and_their_groups(tmp_path, capsys, held, several):
    rng = np.random.default_rng(0)
    rows = table(30)
    share = rng.uniform(size=30)
    rows["p"], rows["q"], rows["r"] = (share * part for part in (0.8, 0.0, 0.2))
    rows["q"] = 1.0 - rows["p"] - rows["r"]
    winner = ("--winner", "p", "q", "r") if several else ("--winner", "p")
    path = write(tmp_path / "soft.csv", rows)
    assert run("rank", path, *winner, "--soft", "--by", "language", "--out", tmp_path) == 0
    votes = from_votes(path, winner=winner[1:] if several else "p", soft=True)
    model = PairwisePreferenceRegressor(**votes.params, optimizer=None, random_state=0)
    board = leaderboard(model.fit(votes.X, votes.y, sample_weight=votes.sample_weight))
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert found["n_votes"] == 29 and found["n_read"] == 30  # one has no language
    assert sum(row["votes"] for row in found["board"]) == 2 * 29
    assert "29 of 30 votes" in capsys.readouterr().out
    assert run("rank", path, *winner, "--soft", "--out", tmp_path) == 0
    utility = column(rows_of(tmp_path / "board.csv"), "utility")
    np.testing.assert_allclose(utility, board.utility, rtol=1e-9)


@pytest.mark.slow
def test_names_of_any_kind(tmp_path, capsys, held):
    """Line ends and what steers a terminal stay out of tables; numbers are names too."""
    odd = ["one\ntwo", "\x1b[31mred", "three"]
    i, j = np.array([(i, j) for i in range(3) for j in range(3) if i != j]).T
    for names in (odd, [101, 7, 30]):
        rows = {
            "a": [names[k] for k in i],
            "b": [names[k] for k in j],
            "winner": ["a"] * 3 + ["b"] * 3,
        }
        assert run("rank", write(tmp_path / "v.csv", rows), "--out", tmp_path) == 0
        said = capsys.readouterr().out
        assert "\x1b" not in said and "one\ntwo" not in said
        ranked = [row["name"] for row in rows_of(tmp_path / "board.csv")]
        assert sorted(ranked) == sorted(map(str, names))
        lines = (tmp_path / "board.md").read_text("utf-8").splitlines()
        assert len([line for line in lines if line.startswith(("| 1 ", "| 2 ", "| 3 "))]) == 3


@pytest.mark.slow
def test_a_screen_of_few_letters(votes_csv):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "skpref", "rank", str(votes_csv)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0 and "?" in done.stdout and not done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
@pytest.mark.parametrize("full", ["stdout", "stderr"])
def test_a_full_disk_ends_with_two(votes_csv, full):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    votes = votes_csv if full == "stdout" else "nowhere.csv"
    command = [sys.executable, "-m", "skpref", "rank", str(votes)]
    with open("/dev/full", "w") as disk:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: disk}
        done = subprocess.run(command, text=True, env=environment, cwd=ROOT, **streams)
    assert done.returncode == 2
    if full == "stdout":
        assert done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_remedies_are_options_of_the_command(tmp_path, capsys):
    """Each line is followed, and the votes are read."""
    ambiguous = {"a": ["left", "x", "y"], "b": ["x", "y", "left"], "winner": ["left", "left", "y"]}
    path = write(tmp_path / "words.csv", ambiguous)
    assert run("rank", path) == 2
    assert "Say what it means by --outcomes left=a.\n" in capsys.readouterr().err
    assert run("rank", path, "--outcomes", "left=a") == 0
    numbers = {"a": list("xyz"), "b": list("yzx"), "winner": ["1", "2", "0"]}
    path = write(tmp_path / "numbers.csv", numbers)
    assert run("rank", path) == 2
    assert "such as by --outcomes 1=a 2=b 0=tie; if" in capsys.readouterr().err
    assert run("rank", path, "--outcomes", "1=a", "2=b", "0=tie") == 0
    assert "3 of 3 votes" in capsys.readouterr().out
    for wrong in ("1", "1=first", "=a"):
        assert run("rank", path, "--outcomes", wrong) == 2
        assert "give values with what they mean" in capsys.readouterr().err
    commas = {"a": list("xyz"), "b": list("yzx"), "winner": list("abb")}
    commas |= {"len_a": ["1,5", "2,5", "3,5"], "len_b": ["2,5", "1,0", "0,5"]}
    path = tmp_path / "commas.csv"
    lines = [list(commas), *zip(*commas.values(), strict=True)]
    path.write_text("\n".join(map(";".join, lines)), encoding="utf-8")
    assert run("rank", path, "--controls", "len") == 2
    assert "stands for 1.5, say --decimal ,.\n" in capsys.readouterr().err
    assert run("rank", path, "--controls", "len", "--decimal", ",") == 0
    records = [
        {"a": a, "b": b, "winner": w, "meta": {"words_a": n, "words_b": 2}}
        for a, b, w, n in zip("xyz", "yzx", "abb", (1, 3, 5), strict=True)
    ]
    path = tmp_path / "nested.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert run("rank", path, "--controls", "meta.words_a-meta.words_b") == 0


def test_half_a_character_is_written_by_its_number(tmp_path, capsys):
    names = ["\ud800", "\ud801", "x"]
    rows = zip(names, [*names[1:], names[0]], "aba", strict=True)
    path = tmp_path / "votes.jsonl"
    records = [{"a": a, "b": b, "winner": winner} for a, b, winner in rows]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert run("rank", path) == 0
    told = capsys.readouterr().out
    assert "\\ud800" in told and "\\ud801" in told


def test_one_competitor_that_always_wins_and_two_votes(tmp_path, capsys):
    rows = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "b"]}
    assert run("rank", write(tmp_path / "few.csv", rows), "--out", tmp_path) == 0
    assert "x is first" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["nowhere.csv"], "There is no file 'nowhere.csv'"),
        (["{votes}", "--winner", "verdict"], "There is no column 'verdict'"),
        (["{votes}", "--controls", "words"], "There is no control 'words'"),
        (["{votes}", "--by", "topic"], "There is no column 'topic'"),
        (["{votes}", "--level", "1.5"], "--level must lie in"),
        (["{votes}", "--out", "{votes}"], "--out must be a folder"),
        (["{votes}", "--out", "{votes}/deep/er"], "votes.csv' is a file"),
        (["{votes}", "--seed", "-1"], "--seed must lie in"),
        (["{votes}", "--seed", "4294967296"], "--seed must lie in"),
        (["{votes}", "--encoding", "utf-17"], "The encoding 'utf-17' is not known"),
        (
            ["{votes}", "--winner", "Model_A"],
            "--winner is the column 'Model_A', which holds the first",
        ),
        (["{votes}", "--controls", "judge"], "is that of --judge already"),
        (["{votes}", "--unit", "miles"], "invalid choice: 'miles'"),
        (["{votes}", "--time", "when"], "There is no column 'when' (--time)"),
        (["{votes}", "--time", "language"], "must be numbers or dates"),
        (["{votes}", "--at", "2024-01-01"], "got --at without --time"),
        (["{votes}", "--time", "judge", "--at", "soon"], "--at must be a number or a date"),
        (["{votes}", "--top", "0"], "must be 1 or more"),
        ([], "the following arguments are required: votes"),
    ],
)
def test_errors_are_one_line_and_exit_with_two(votes_csv, capsys, monkeypatch, arguments, why):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(PairwisePreferenceRegressor, "fit", fit)  # all is checked before
    told = [each.format(votes=votes_csv) for each in arguments]
    assert run("rank", *told) == 2
    said = capsys.readouterr()
    assert why in said.err and "Traceback" not in said.err
    assert said.out == ""


def test_the_module_and_the_script_are_the_command(monkeypatch, capsys):
    """That the interpreter runs the module is seen on the screen of few letters."""
    with open(ROOT / "pyproject.toml", "rb") as stream:
        module, name = tomllib.load(stream)["project"]["scripts"]["skpref"].split(":")
    assert getattr(importlib.import_module(module), name) is main
    monkeypatch.setattr(sys, "argv", ["skpref", "rank", "nowhere.csv"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module("skpref", run_name="__main__")
    assert left.value.code == 2 and "There is no file" in capsys.readouterr().err


def priced():
    """Votes with a price of each competitor."""
    rows = table()
    for side in "ab":
        rows[f"price_{side}"] = [
            3.0 + 5 * NAMES.index(name) ** 2 for name in rows[f"Model_{side.upper()}"]
        ]
    return rows


@pytest.mark.parametrize("controls", [["price"], ["price", "length"], ["length"]])
def test_controls_are_held_or_features_of_competitors(tmp_path, capsys, held, controls):
    path = write(tmp_path / "votes.csv", priced())
    assert run("rank", path, "--controls", *controls, "--out", tmp_path) == 0
    votes = from_votes(path, controls=controls)
    model = PairwisePreferenceRegressor(**votes.params, optimizer=None, random_state=0)
    board = leaderboard(model.fit(votes.X, votes.y), votes)
    effects = control_effects(model, votes)
    assert effects.held == board.held and set(board.held) == set(controls) - {"price"}
    for said in (" ".join(capsys.readouterr().out.split()), *pages(tmp_path)):
        equal = f"held equal (length {board.held.get('length', 0.0):.4g})"
        assert (equal in said) == ("length" in controls) == ("held equal" in said)
        assert ("price is the same in all votes of each competitor" in said) == (
            "price" in controls
        )
        assert "nan" not in said and "All of them together" not in said
    rows = {row["control"]: row for row in rows_of(tmp_path / "controls.csv")}
    np.testing.assert_allclose([float(rows[name]["slope"]) for name in controls], effects.slope)
    assert {name: bool(row["tau"] and row["moved"]) for name, row in rows.items()} == {
        name: name in board.held for name in controls
    }
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert [row["moved"] is None for row in found["controls"]] == [
        name not in board.held for name in controls
    ]


@pytest.mark.filterwarnings("ignore:Columns")
def test_a_feature_with_a_slip_in_one_vote_is_the_same_for_most(tmp_path, capsys, held):
    rows = priced()
    rows["price_a"][7] += 0.1
    path = write(tmp_path / "votes.csv", rows)
    assert run("rank", path, "--controls", "price", "length", "--out", tmp_path) == 0
    for said in (" ".join(capsys.readouterr().out.split()), *pages(tmp_path)):
        assert "price is the same in all votes of most competitors" in said
        assert "held equal (length " in said


def drifting_kernel(tmp_path, gaps=0):
    """Votes of two years in which who is best early is worst late."""
    rng = np.random.default_rng(1)
    rows, n = table(120, seed=2), 120
    day = rng.integers(0, 700, n)
    first, second = (
        np.array([STRENGTH[NAMES.index(name)] for name in rows[side]])
        for side in ("Model_A", "Model_B")
    )
    rows["winner"] = np.where((first - second) * (350 - day) > 0.0, "model_a", "model_b").tolist()
    rows["when"] = (np.datetime64("2023-01-01") + day).astype(str).tolist()
    rows["when"][:gaps] = [""] * gaps
    return write(tmp_path / "dated.csv", rows)


@pytest.mark.slow
def test_boards_of_a_time(tmp_path, capsys):
    path = drifting_kernel(tmp_path)
    found = {}
    for name, more in (("now", []), ("then", ["--at", "2023-02-01"])):
        told = ["--time", "when", *more, "--out", tmp_path / name]
        assert run("rank", path, *told) == 0
        found[name] = [row["name"] for row in rows_of(tmp_path / name / "board.csv")]
    assert found["then"] == NAMES and found["now"] == NAMES[::-1]
    said = " ".join(capsys.readouterr().out.split())
    votes = from_votes(path, time="when")
    last = str(votes.times.max().astype("datetime64[D]"))
    assert f"of {last}, the day of the last vote." in said and "of 2023-02-01; " in said
    model = PairwisePreferenceRegressor(**votes.params, drift="matern12", random_state=0)
    model.fit(votes.X, votes.y, time=votes.times)
    board = leaderboard(model, votes, time=np.datetime64("2023-02-01"))
    rows = rows_of(tmp_path / "then" / "board.csv")
    np.testing.assert_allclose(column(rows, "lower"), board.lower, rtol=1e-9)
    assert json.loads((tmp_path / "then" / "board.json").read_text("utf-8"))["time"] == "2023-02-01"


def pages(folder):
    """What each page says, in one line each."""
    return [" ".join((folder / f"board.{kind}").read_text("utf-8").split()) for kind in PAGES]


PAGES = ("md", "html")


def of_each(rows):
    """The last day of each competitor in some votes, as it stands there."""
    found = {}
    for row in rows:
        for side in ("Model_A", "Model_B"):
            found[row[side]] = max(found.get(row[side], ""), row["when"])
    return found


def test_who_voted_last_and_when(tmp_path, capsys, held):
    path = drifting_kernel(tmp_path)
    assert run("rank", path, "--time", "when", "--by", "language", "--out", tmp_path) == 0
    taken, out = [row for row in rows_of(path) if row["language"]], capsys.readouterr().out
    expected = of_each(taken)
    rows = rows_of(tmp_path / "board.csv")
    assert {row["name"]: row["last"] for row in rows} == expected
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert {row["name"]: row["last"] for row in found["board"]} == expected
    every = [row["when"] for row in taken]
    assert (found["first_vote"], found["last_vote"]) == (min(every), max(every))
    assert found["time"] == max(every)
    for said in (out, *pages(tmp_path)):
        assert "last vote" in said and max(every) in said
        assert all(day in said for day in expected.values())
    assert "last" not in rows_of(tmp_path / "groups.csv")[0]
    assert run("rank", path, "--out", tmp_path) == 0
    assert "last vote" not in capsys.readouterr().out
    assert "last" not in rows_of(tmp_path / "board.csv")[0]
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert "last" not in found["board"][0]
    assert found["time"] is found["first_vote"] is found["last_vote"] is found["drift"] is None


@pytest.mark.parametrize("shift", [0, 1_700_000_000.25])
def test_times_that_are_numbers_stay_numbers(tmp_path, capsys, held, shift):
    rows = table()
    rows["round"] = [shift + k // 8 for k in range(80)]
    path = write(tmp_path / "votes.csv", rows)
    assert run("rank", path, "--time", "round", "--at", shift + 4, "--out", tmp_path) == 0
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    assert (found["time"], found["last_vote"]) == (shift + 4, shift + 9)
    assert {row["last"] for row in found["board"]} <= set(rows["round"])
    said = capsys.readouterr().out
    assert f"round {shift + 4:.10g}" in said and "1970-" not in said


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_times_of_day(tmp_path, capsys, held, zone):
    rows = table()
    rows["when"] = [f"2024-05-{1 + k // 8:02d}T09:30:00{zone}" for k in range(80)]
    path = write(tmp_path / "votes.csv", rows)
    assert run("rank", path, "--time", "when", "--out", tmp_path) == 0
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))
    hour, mark = ("07" if "+" in zone else "09"), ("Z" if zone else "")
    assert found["time"] == f"2024-05-10T{hour}:30:00{mark}"
    said = " ".join(capsys.readouterr().out.split())
    assert f"2024-05-10 {hour}:30:00{' UTC' if zone else ''}, the time of the last vote" in said


@pytest.mark.parametrize(
    "at, words, others",
    [
        ("2020-01-01", "before the first vote", "later"),
        ("2031-01-01", "after the last vote", "earlier"),
    ],
)
def test_boards_of_a_time_without_votes_say_so(tmp_path, capsys, held, at, words, others):
    path = drifting_kernel(tmp_path)
    days = [row["when"] for row in rows_of(path)]
    end = min(days) if others == "later" else max(days)
    assert run("rank", path, "--time", "when", "--at", at, "--out", tmp_path) == 0
    for said in (" ".join(capsys.readouterr().out.split()), *pages(tmp_path)):
        assert f"{words} ({end})" in said and f"{others} votes alone" in said
    assert json.loads((tmp_path / "board.json").read_text("utf-8"))["time"] == at
    for inside in (min(days), max(days), "2023-06-01"):
        assert run("rank", path, "--time", "when", "--at", inside) == 0
        said = capsys.readouterr().out
        assert words not in said and "votes alone" not in said


@pytest.mark.parametrize("unit", ["noise", "elo"])
def test_how_fast_strengths_move_is_that_of_the_kernel(tmp_path, capsys, held, unit):
    path = drifting_kernel(tmp_path)
    told = ["--time", "when", "--controls", "length", "--by", "language", "--unit", unit]
    assert run("rank", path, *told, "--out", tmp_path) == 0
    found = json.loads((tmp_path / "board.json").read_text("utf-8"))["drift"]
    votes = from_votes(path, time="when", controls="length", by="language")
    model = PairwisePreferenceRegressor(**votes.params, drift="matern12", optimizer=None)
    model.fit(votes.X, votes.y, time=votes.times)
    # One competitor at a later time: what has moved, by the kernel's own values.
    row = model.posterior_.anchors[:1]
    later = row + np.eye(row.shape[1])[-1:] * [[found["lengthscale"]], [1e9]]
    kernel, length = model.posterior_.kernel, leaderboard(model, votes, unit=unit).unit_length
    at_all, far = kernel(row, row)[0, 0], kernel(row, later)[0]
    assert found["deviation"] * length == pytest.approx(np.sqrt(at_all - far[1]))
    assert (far[0] - far[1]) / (at_all - far[1]) == pytest.approx(np.exp(-1.0))
    assert found["unit_of_time"] == "days"
    number = f"{found['deviation']:.0f}" if unit == "elo" else f"{found['deviation']:.2f}"
    said = " ".join(capsys.readouterr().out.split())
    assert f"move by about {number} " in said
    assert f"on a scale of {found['lengthscale']:.0f} days" in said


def test_strengths_that_stay_are_not_said_to_move(tmp_path, capsys, held, monkeypatch):
    monkeypatch.setattr(_rank, "_strength_drift", lambda *_: StrengthDrift(1e-3, 7.0, "days"))
    assert run("rank", drifting_kernel(tmp_path), "--time", "when", "--out", tmp_path) == 0
    assert json.loads((tmp_path / "board.json").read_text("utf-8"))["drift"]["deviation"] == 1e-3
    said = capsys.readouterr().out
    assert "no change of strengths" in said and "move by" not in said


@pytest.mark.parametrize(("unit", "moves"), [("noise", 0.015), ("elo", 2.9), ("logit", 0.017)])
def test_the_unit_does_not_make_strengths_move(tmp_path, capsys, held, monkeypatch, unit, moves):
    monkeypatch.setattr(_rank, "_strength_drift", lambda *_: StrengthDrift(moves, 7.0, "days"))
    path = drifting_kernel(tmp_path)
    assert run("rank", path, "--time", "when", "--unit", unit) == 0
    said = capsys.readouterr().out
    assert "no change of strengths" in said and "move by" not in said


def test_votes_of_one_time_tell_of_no_change(tmp_path, capsys, held):
    rows = table(60, seed=2)
    rows["when"] = ["2024-05-17"] * 60
    assert run("rank", write(tmp_path / "dated.csv", rows), "--time", "when") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "All votes are of one time" in said
    assert "move by" not in said and "learned from the votes" not in said


def test_a_drift_of_another_form_is_not_spoken_of(tmp_path, capsys, held, monkeypatch):
    monkeypatch.setattr(_rank, "_DRIFT", "wiener")
    assert run("rank", drifting_kernel(tmp_path), "--time", "when", "--out", tmp_path) == 0
    assert json.loads((tmp_path / "board.json").read_text("utf-8"))["drift"] is None
    said = capsys.readouterr().out
    assert "last vote" in said and "on a scale of" not in said


@pytest.mark.parametrize(
    "column, at, why",
    [
        ("when", "2024", "--at is 2024, a number, but 'when' holds dates"),
        ("length_a", "2024-01-01", "--at is 2024-01-01, a date, but 'length_a' holds numbers"),
        ("when", "nan", "--at must be a number or a date"),
    ],
)
def test_a_board_is_of_a_time_of_the_same_kind(tmp_path, capsys, monkeypatch, column, at, why):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(PairwisePreferenceRegressor, "fit", fit)
    assert run("rank", drifting_kernel(tmp_path), "--time", column, "--at", at) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("mark", [".", "/", "-"])
def test_dates_of_which_day_and_month_are_not_known(tmp_path, capsys, held, mark):
    pd = pytest.importorskip("pandas")
    path = drifting_kernel(tmp_path)
    rows = {name: [row[name] for row in rows_of(path)] for name in rows_of(path)[0]}
    right = rows["when"]
    rows["when"] = [mark.join(reversed(day.split("-"))) for day in right]
    assert run("rank", write(tmp_path / "odd.csv", rows), "--time", "when") == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said and rows["when"][0] in said and said.count("\n") == 1
    advice = said[said.index("votes['when'] = ") :].split("True)")[0] + "True)"
    votes = pd.read_csv(tmp_path / "odd.csv")
    exec(advice, {"votes": votes, "pandas": pd})
    assert votes["when"].dt.strftime("%Y-%m-%d").tolist() == right
    votes.to_csv(tmp_path / "dated.csv", index=False)
    assert run("rank", tmp_path / "dated.csv", "--time", "when", "--out", tmp_path) == 0
    assert json.loads((tmp_path / "board.json").read_text("utf-8"))["last_vote"] == max(right)


def test_the_time_of_votes_is_no_control(tmp_path, capsys):
    assert run("rank", drifting_kernel(tmp_path), "--time", "when", "--controls", "when") == 2
    assert "is that of --time already" in " ".join(capsys.readouterr().err.split())


def test_dates_of_a_parquet_file(tmp_path, held):
    pl = pytest.importorskip("polars")
    path = drifting_kernel(tmp_path)
    frame = pl.read_csv(path).with_columns(pl.col("when").str.to_date())
    frame.write_parquet(tmp_path / "dated.parquet")
    assert run("rank", tmp_path / "dated.parquet", "--time", "when", "--out", tmp_path) == 0
    rows = rows_of(tmp_path / "board.csv")
    assert {row["name"]: row["last"] for row in rows} == of_each(rows_of(path))


def test_votes_without_a_time(tmp_path, capsys, held):
    assert run("rank", drifting_kernel(tmp_path, gaps=3), "--time", "when") == 0
    assert "left out: 3 without a time." in capsys.readouterr().out


def test_messages_name_the_options_of_the_command(votes_csv, tmp_path, capsys):
    rows = table()
    rows["one"], rows["other"] = rows.pop("Model_A"), rows.pop("Model_B")
    assert main(["rank", str(write(tmp_path / "odd.csv", rows))]) == 2
    assert "Say which by --a and --b." in capsys.readouterr().err
    assert main(["rank", str(votes_csv), "--judge", "who"]) == 2
    assert "(--judge)" in capsys.readouterr().err
    assert main(["rank", str(votes_csv), "--ties", "drop"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "(--ties drop)" in said and "ties=False" not in said


def test_names_in_messages_are_left_alone():
    assert as_options("say soft=True") == "say --soft"
    said = "There is no column 'a= 1' (judge=); left out: 3 both bad (both_bad=\"drop\")"
    wanted = "There is no column 'a= 1' (--judge); left out: 3 both bad (--both-bad drop)"
    assert as_options(said) == wanted


def test_groups_of_hardly_a_vote_are_refused_before_the_fit(tmp_path, capsys, monkeypatch):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(PairwisePreferenceRegressor, "fit", fit)
    path = write(tmp_path / "votes.csv", table() | {"tstamp": list(range(80))})
    assert main(["rank", str(path), "--by", "tstamp"]) == 2
    assert "'tstamp' has 79 values in 79 votes" in capsys.readouterr().err
    assert main(["rank", str(path), "--judge", "tstamp"]) == 2
    assert "Each of the 79 votes has another value in 'tstamp'" in capsys.readouterr().err


@pytest.mark.slow
def test_judges_who_answer_at_random_are_named(tmp_path, capsys):
    rng = np.random.default_rng(3)
    rows = table(n=600)
    rows["judge"] = [f"j{k}" for k in rng.integers(6, size=600)]
    for k, judge in enumerate(rows["judge"]):
        if judge == "j2":
            rows["winner"][k] = ["model_a", "model_b"][rng.integers(2)]
    path = str(write(tmp_path / "votes.csv", rows))
    assert main(["rank", path, "--judge", "judge", "--controls", "length"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of 6 judges answers at random (probability above 0.95): j2." in said


@pytest.mark.slow
def test_a_threshold_is_not_told_in_a_noise_that_is_next_to_nothing(tmp_path):
    rows = {
        "model_a": list("cbcdaecaddcdeee"),
        "model_b": list("babbcabbcceecac"),
        "winner": [{"<": "model_a", ">": "model_b", "=": "tie"}[k] for k in "<>=>>>>>>><<>>>"],
        "length_a": [1278, 567, 1743, 85, 491, 508, 671, 301, 270, 192, 717, 232, 555, 284, 759],
        "length_b": [
            1356,
            220,
            255,
            1457,
            1478,
            214,
            356,
            401,
            1104,
            463,
            453,
            157,
            1191,
            933,
            686,
        ],
        "judge": list("021211020211101"),
        "language": list("EGGGEEGFEEEEEGE"),
    }
    path = str(write(tmp_path / "few.csv", rows))
    asked = ["--judge", "judge", "--controls", "length", "--by", "language"]
    assert main(["rank", path, *asked, "--out", str(tmp_path)]) == 0
    # The noise of the fit is at its bound, of which the threshold is many times.
    threshold = json.loads((tmp_path / "board.json").read_text("utf-8"))["learned"]["tie_threshold"]
    assert 0.01 < threshold["lower"] < threshold["value"] < threshold["upper"] < 3.0


def test_the_extra_for_the_picture_brings_matplotlib():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert any(each.startswith("matplotlib") for each in extras["plot"])


# -- names of strangers ----------------------------------------------------------------------

STRANGE = [
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://evil.example", "x")',
    "+1",
    "@SUM(A1)",
    "-2+3",
    "\x1b[31mred\x07",
    "left\u202eright\u200b",
    "&lt;b&gt; **bold** ~~gone~~",
    "1. [x](http://evil.example)",
    "$\\frac{1}{0$ `code` | #",
    "＝1+1",
    "-5",
]
FORMULAS = [name for name in STRANGE if name[0] in "=+-@＝" and name != "-5"]


def shown(name):
    """A name as a page or a terminal shows it: what cannot be seen is a space."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return "".join(" " if unicodedata.category(each) in hidden else each for each in name).strip()


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """Votes on names that are tags, formulas and controls of terminals; judges and groups too."""
    rng, n = np.random.default_rng(0), 480
    first = rng.integers(12, size=n)
    second = (first + rng.integers(1, 12, size=n)) % 12
    rows = {
        "a": [STRANGE[k] for k in first],
        "b": [STRANGE[k] for k in second],
        "winner": np.where(first < second, "a", "b").tolist(),
        "=<b>slow</b>": rng.integers(-3, 4, size=n).tolist(),
        "judge": [STRANGE[k] for k in rng.integers(6, size=n)],
        "<i>kind</i>": [STRANGE[k] for k in rng.integers(2, size=n)],
    }
    return write(tmp_path_factory.mktemp("strange") / "<b>votes\u202e.csv", rows)


OPTIONS = ["--judge", "judge", "--controls", "=<b>slow</b>", "--by", "<i>kind</i>"]


@pytest.mark.filterwarnings("ignore")
def test_pages_show_strange_names_as_texts(strange, tmp_path, capsys, held):
    """A reader of Markdown, one of HTML and one of XML find the names, and nothing else in them."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True})
    assert run("rank", strange, *OPTIONS, "--out", tmp_path) == 0
    said = capsys.readouterr().out
    assert all(letter.isprintable() for line in said.split("\n") for letter in line)
    tokens = markdown.enable(["table", "strikethrough"]).parse(
        (tmp_path / "board.md").read_text("utf-8")
    )
    inline = [each for token in tokens for each in token.children or ()]
    kinds = {each.type for each in [*tokens, *inline]}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "em_open", "strong_open"}
    assert not kinds & {"s_open", "code_inline", "code_block", "blockquote_open", "hr"}
    assert not kinds & {"ordered_list_open", "bullet_list_open"}
    texts = ["".join(each.content for each in t.children) for t in tokens if t.type == "inline"]
    page = _Cells()
    page.feed((tmp_path / "board.html").read_text("utf-8"))
    assert not page.tags & {"img", "b", "i"}
    for name in STRANGE:
        assert texts.count(shown(name)) >= 3 + (name in STRANGE[:6])  # boards; judges
        assert [" ".join(row[1].split()) for row in page.tables[0]].count(
            " ".join(shown(name).split())
        ) == 1
    assert shown("<b>votes\u202e.csv") in texts
    for name in ("board.html", "board.svg", "board.md"):
        text = (tmp_path / name).read_text("utf-8")
        assert all(letter.isprintable() for line in text.split("\n") for letter in line)
    ElementTree.fromstring((tmp_path / "board.svg").read_text("utf-8"))


@pytest.mark.filterwarnings("ignore")
def test_no_cell_of_a_csv_file_is_a_formula(strange, tmp_path, capsys, held):
    for raw in ([], ["--raw"]):
        assert run("rank", strange, *OPTIONS, "--out", tmp_path, *raw) == 0
        ranked = {row["name"] for row in rows_of(tmp_path / "board.csv")}
        escaped = {"'" * (not raw and name in FORMULAS) + name for name in STRANGE}
        assert ranked == escaped
        begins = set()
        for path in tmp_path.glob("*.csv"):
            for row in rows_of(path):
                begins |= {cell[:1] for cell in row.values() if not is_number(cell)}
        assert bool(begins & set("=+-@＝")) is bool(raw)
    board = json.loads((tmp_path / "board.json").read_text("utf-8"))["board"]
    assert {row["name"] for row in board} == set(STRANGE)


def is_number(cell):
    try:
        return cell == "" or (cell[0] != "+" and np.isfinite(float(cell)))
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("cell", "escaped"),
    [
        *[(each, f"'{each}") for each in ("=1", "+1", "-1+1", "@x", "\t=1", "\r=1", "-", "-inf")],
        *[(each, f"'{each}") for each in ("--1", "-1e", "-0x1", "-١", "＋1", "\n=1", "- a")],
        *[(each, each) for each in ("-1", "-0.5", "-1e-5", "1", "a=b", "'=1", "", " =1", "5+1")],
        *[(each, each) for each in (-1, -0.5, float("-inf"), None, 3)],
    ],
)
def test_cells_like_formulas_have_an_apostrophe(cell, escaped):
    assert csv_cell(cell) == escaped


def names_and_texts(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("nth", [1, 3, 5])
def test_a_full_disk_leaves_the_former_files(votes_csv, tmp_path, capsys, held, monkeypatch, nth):
    assert run("rank", votes_csv, "--out", tmp_path) == 0
    before, n_written = names_and_texts(tmp_path), []

    def full(_):
        n_written.append(1)
        if len(n_written) == nth:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    capsys.readouterr()
    assert run("rank", votes_csv, "--unit", "elo", "--out", tmp_path) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert names_and_texts(tmp_path) == before


@pytest.mark.slow
def test_a_file_that_grows_too_large_leaves_the_former_files(votes_csv, tmp_path):
    resource = pytest.importorskip("resource")
    command = [sys.executable, "-m", "skpref", "rank", str(votes_csv), "--out", str(tmp_path)]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
    before = names_and_texts(tmp_path)
    ran = subprocess.run(
        [*command, "--unit", "elo"], cwd=ROOT, capture_output=True, text=True, preexec_fn=limit
    )
    assert ran.returncode == 2 and "File too large" in ran.stderr and ran.stderr.count("\n") == 1
    assert names_and_texts(tmp_path) == before


def test_links_and_folders_of_the_names_of_files(votes_csv, tmp_path, capsys, held):
    kept, out = tmp_path / "kept.txt", tmp_path / "out"
    kept.write_text("mine")
    out.mkdir()
    (out / "board.csv").symlink_to(kept)
    (out / "board.md").symlink_to(tmp_path / "nowhere")
    assert run("rank", votes_csv, "--out", out) == 0
    assert kept.read_text() == "mine" and not (tmp_path / "nowhere").exists()
    assert not any(path.is_symlink() for path in out.iterdir())
    assert len(rows_of(out / "board.csv")) == 4
    (out / "board.csv").unlink()
    (out / "board.csv").mkdir()
    assert run("rank", votes_csv, "--out", out) == 2
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_half_a_character_is_no_reason_to_fail(tmp_path, capsys, held):
    names = ["\ud800x", "b", "c"]
    votes = [{"a": names[k % 3], "b": names[(k + 1) % 3], "winner": "a"} for k in range(9)]
    (tmp_path / "votes.json").write_text(json.dumps(votes))
    assert run("rank", tmp_path / "votes.json", "--out", tmp_path) == 0
    board = json.loads((tmp_path / "board.json").read_text("utf-8"))["board"]
    assert sorted(row["name"] for row in board) == sorted(names)
