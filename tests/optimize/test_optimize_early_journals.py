"""Journals of the first versions, whose sites have no names, are gone on with as before.

Those in ``data`` were written by the version that had them; those of lines end with a question.
What that version asked after every answer is what the present one must ask there.
"""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from journal_support import answer, closed, copied, optimizer

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.likelihoods import Probit
from skpref.optimize import (
    ActiveLearner,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    read_journal,
)
from skpref.optimize._journal import Header

pytestmark = pytest.mark.filterwarnings("ignore:The journal .* is of lines")

FOLDER = Path(__file__).parents[1] / "files"
BUILD = {
    "hallucination": HallucinationBelieverOptimizer,
    "ep": lambda *space, **options: PreferenceOptimizer(
        *space, inference="ep", acquisition="eubo", **options
    ),
    "laplace": lambda *space, **options: PreferenceOptimizer(
        *space, inference="laplace", acquisition="eubo", **options
    ),
}


def resumed(name, lines, tmp_path):
    path = tmp_path / f"{len(lines)}.journal"
    path.write_text("".join(lines), encoding="utf-8")
    return BUILD[name]([[0.0, 1.0]] * 2, n_initial=3, journal=path, random_state=3)


@pytest.mark.parametrize("name", BUILD)
def test_the_next_question_is_that_of_the_version_that_wrote_the_journal(name, tmp_path):
    text = (FOLDER / f"{name}_1.journal").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    records = [json.loads(line)["record"] for line in lines]
    assert isinstance(records[-1]["memory"]["sites"], list)  # as it was before
    if name != "laplace":  # which kept nothing
        assert len(records[-1]["memory"]["sites"]) == 2
    asked = [at for at, record in enumerate(records) if record["type"] == "ask"]
    assert len(asked) == 11
    for at in asked[5:]:
        made = resumed(name, lines[:at], tmp_path)
        # That version learned at every answer; now several in a row are learned from at once.
        in_a_row = records[at - 1]["type"] == records[at - 2]["type"] == "tell"
        atol = 1e-3 if in_a_row else 1e-12
        np.testing.assert_allclose(made.ask(), records[at]["duels"][-1], atol=atol)
    whole = resumed(name, lines, tmp_path)
    np.testing.assert_array_equal(whole.ask(), records[-1]["duels"][-1])
    whole.tell(whole.ask(), 1)
    assert whole.n_told_ == sum(r["type"] == "tell" for r in records) - 1 + 1  # one was undone


@pytest.fixture
def version_2(tmp_path):
    """A database of before there were ties and sets, and what its version asked after its end."""
    path = tmp_path / "run.db"
    path.write_bytes((FOLDER / "version_2.db").read_bytes())
    return path, json.loads((FOLDER / "version_2.json").read_text(encoding="utf-8"))


def version_of(path):
    with sqlite3.connect(path) as connection:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def test_a_database_of_version_2_goes_on_as_it_did(version_2):
    path, expected = version_2
    made = optimizer(path, seed=3)
    assert made.n_told_ == expected["n_told"]
    assert version_of(path) == 2  # looking changes nothing
    for duel in expected["questions"]:
        np.testing.assert_allclose(made.ask(), duel, atol=1e-12)
        answer(made, 1)
    np.testing.assert_allclose(made.recommend(), expected["recommended"], atol=1e-12)
    closed(made)
    assert version_of(path) == 3
    assert read_journal(path)["kind"].count("tell") == expected["n_told"] + 5  # one was undone
    with pytest.raises(ValueError, match=r"another configuration \(tie_threshold: None, now 0.1"):
        optimizer(path, seed=3, tie_threshold=0.1)


def test_a_database_of_version_2_takes_ties_and_sets(version_2):
    path, expected = version_2
    made = optimizer(path, seed=3)
    made.tell(made.ask(), "tie")
    made.tell(made.ask(size=3), worst=1)
    copy = copied(path, path.parent)
    assert made.n_told_ == expected["n_told"] + 2
    again = optimizer(copy, seed=3)
    np.testing.assert_array_equal(again.ask(2, size=3), made.ask(2, size=3))


def test_a_newer_journal_is_not_guessed_at(version_2):
    path, _ = version_2
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 4")
    connection.close()
    with pytest.raises(ValueError, match="has version 4; this package reads 2 and 3"):
        optimizer(path, seed=3)


def begin_anew(connection, header):
    """Another header, and nothing told."""
    connection.execute("DELETE FROM events")
    connection.execute("UPDATE meta SET value = ? WHERE key = 'header'", (json.dumps(header),))
    head = json.dumps([0, header.digest.hex()])
    connection.execute("UPDATE meta SET value = ? WHERE key = 'head'", (head,))
    connection.execute("DELETE FROM memory")


def test_estimators_of_before_judges_are_known_again(tmp_path):
    path, items = tmp_path / "run.db", np.arange(6.0)[:, None]
    closed(ActiveLearner(PairwisePreferenceRegressor(), items, journal=path, random_state=0))
    with sqlite3.connect(path) as connection:
        text = connection.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()[0]
        configuration, *rest = json.loads(text)
        kept = json.loads(configuration)
        name, parameters = kept["estimator"]
        before = [each for each in parameters if each[0] != "judge_prior"]
        assert len(before) == len(parameters) - 1
        kept["estimator"] = [name, before]
        begin_anew(connection, Header(json.dumps(kept), *rest))
    connection.close()
    assert ActiveLearner(PairwisePreferenceRegressor(), items, journal=path).ask().shape == (2, 1)
    other = PairwisePreferenceRegressor(judge_prior=JudgePrior(variance=0.2))
    with pytest.raises(ValueError, match="another configuration"):
        ActiveLearner(other, items, journal=path)


def test_likelihoods_of_version_2_are_known_again(tmp_path):
    """Its description of a probit has neither a threshold nor an order effect."""
    path = tmp_path / "run.db"
    likelihood = Probit(0.05, "fixed")
    closed(answer(optimizer(path, likelihood=likelihood), 1))
    with sqlite3.connect(path) as connection:
        text = connection.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()[0]
        configuration, *rest = json.loads(text)
        kept = json.loads(configuration)
        for name in [name for name in kept if name.startswith(("tie_", "order_"))]:
            del kept[name]
        kept["likelihood"] = ["Probit", kept["likelihood"][1][:2]]
        assert [name for name, _ in kept["likelihood"][1]] == [
            "noise_variance",
            "noise_variance_bounds",
        ]
        begin_anew(connection, Header(json.dumps(kept), *rest))
    connection.close()
    assert optimizer(path, likelihood=likelihood).n_told_ == 0
    with pytest.raises(ValueError, match="another configuration"):
        optimizer(path, likelihood=Probit(0.05, "fixed", tie_threshold=0.1))
