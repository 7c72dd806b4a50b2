"""`skpref rank` of votes that fall into groups that never met."""

import csv
import json

import numpy as np
import pytest

from skpref._command import main

SENTENCE = "The votes fall into 3 groups of competitors: 3 (a0, "
FILES = "board.csv", "board.md", "board.html", "board.json", "undecided.csv"


def write(path, joined):
    """Votes within leagues of three, two and two competitors, and two between these if joined."""
    rng = np.random.default_rng(0)
    strength = {"a0": 1.0, "a1": 0.0, "a2": -1.0, "b0": 0.7, "b1": -0.7, "c0": 0.5, "c1": -0.5}
    games = [["a0", "a1"], ["a1", "a2"], ["a0", "a2"], ["b0", "b1"], ["c0", "c1"]]
    games = games * 12 + ([["a2", "b0"], ["b1", "c0"]] if joined else [])
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model_a", "model_b", "winner", "language"])
        for k, (a, b) in enumerate(games):
            first = strength[a] - strength[b] + rng.normal() > 0.0
            writer.writerow([a, b, "model_a" if first else "model_b", ["en", "de"][k % 2]])


def ranked(tmp_path, capsys, joined, *options):
    write(tmp_path / "votes.csv", joined)
    code = main(["rank", str(tmp_path / "votes.csv"), "--out", str(tmp_path / "out"), *options])
    said = capsys.readouterr()
    assert code == 0
    return said, {name: (tmp_path / "out" / name).read_text("utf-8") for name in FILES}


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("options", [(), ("--by", "language")])
def test_groups_are_named_before_the_board_and_decide_nothing(tmp_path, capsys, options):
    said, files = ranked(tmp_path, capsys, False, *options)
    printed = one_line(said.out)
    assert SENTENCE in printed
    assert printed.index(SENTENCE) < printed.index("rank name")
    assert "16 of 21 pairs are of different groups." in printed
    assert "is first of group 1, by" in printed and "the best of its group" in printed
    assert "fall into" not in said.err  # once is enough
    assert SENTENCE in files["board.md"] and SENTENCE in files["board.html"]
    rows = list(csv.DictReader(files["board.csv"].splitlines()))
    assert [row["component"] for row in rows] == ["1", "1", "1", "2", "2", "3", "3"]
    assert [row["rank"] for row in rows] == ["1", "2", "3", "1", "2", "1", "2"]
    for row in rows:
        within = 3 if row["component"] == "1" else 2
        assert int(row["rank_upper"]) >= 1 + 7 - within  # all others may be above
    pairs = list(csv.DictReader(files["undecided.csv"].splitlines()))
    apart = [row for row in pairs if row["prior_alone"] == "True"]
    assert len(apart) == 16 and {row["margin"] for row in apart} == {""}
    written = json.loads(files["board.json"])
    assert written["n_components"] == 3 and written["n_pairs_of_two_components"] == 16
    assert sum(row["probability_best"] for row in written["board"]) == pytest.approx(1.0)


def test_votes_between_the_groups_leave_nothing_of_it(tmp_path, capsys):
    said, files = ranked(tmp_path, capsys, True)
    assert "fall into" not in said.out and "group  " not in said.out
    assert "group" not in files["board.md"] and "component" not in files["board.csv"]
    assert "prior_alone" not in files["undecided.csv"]
    assert json.loads(files["board.json"])["n_components"] == 1
