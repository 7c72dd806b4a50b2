"""Journals of sets and ties: what is on disk, going on from it exactly, and sharing it."""

import json
import os
import random
import sqlite3
import threading
import time
from collections import Counter

import numpy as np
import pytest
from journal_support import cheap, closed, copied, forked, optimizer
from scipy import stats
from sets_support import WAYS, said, tell_sets

from skpref.duels import ItemTable
from skpref.inference import HMC
from skpref.optimize import (
    STRATEGIES,
    AlreadyAnswered,
    PreferenceOptimizer,
    export_journal,
    read_journal,
)
from skpref.optimize._journal import Journal

N_STEPS, N_DEAR = 12, 8  # of random questions, and of those that a model chooses


def step(made, number):
    """One answer of any kind, skip, undo or older question, which the number alone chooses."""
    rng = np.random.default_rng([28, number])
    act, n, size = rng.random(), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    if act < 0.15 and made.n_told_:
        return made.undo()
    if act < 0.25 and made.n_told_:
        return made.tell(*made.history_[0])
    items = made.ask(n, size=size)[int(rng.integers(n))]
    if act < 0.35:
        return made.skip(items)
    if size == 2 and number % 2:
        return made.tell(items, "tie")
    return made.tell(items, **said(items, "tie" if size == 2 else WAYS[int(rng.integers(5))]))


def events(path):
    """Kinds and contents of all events but the first, which says what the run is."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT kind, payload FROM events ORDER BY seq").fetchall()
    connection.close()
    return [(kind, json.loads(text)) for kind, text in rows[1:]]


# --- resuming -------------------------------------------------------------------------------


def build(path, strategy):
    options = STRATEGIES[strategy]._asdict()
    if options["inference"] == "hmc":
        options["inference"] = HMC(draws=40, chains=10)
    return PreferenceOptimizer(
        [[0.0, 1.0]] * 2, **options, n_initial=2, journal=path, random_state=0
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", ["HB-EI", "EIIG", "EUBO"])
def test_every_moment_of_a_run_is_resumed_to_the_last_bit(tmp_path, strategy):
    whole = build(tmp_path / "whole.db", strategy)
    for number in range(N_DEAR):
        if number in (3, 6):
            copied(tmp_path / "whole.db", tmp_path, f"{number}.db")
        step(whole, number)
    expected = events(closed(whole))
    kinds = {kind for kind, _ in expected}
    assert kinds == {"ask", "tell", "skip", "undo"}
    assert any(payload.get("outcome") == "tie" for _, payload in expected)
    for first in (3, 6):
        resumed = build(tmp_path / f"{first}.db", strategy)
        for number in range(first, N_DEAR):
            step(resumed, number)
        assert events(closed(resumed)) == expected


@pytest.fixture(scope="module")
def whole_events(tmp_path_factory):
    whole = cheap(tmp_path_factory.mktemp("whole") / "whole.db")
    for number in range(N_STEPS):
        step(whole, number)
    return events(closed(whole))


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_nothing_is_lost(tmp_path, seed, whole_events):
    path = tmp_path / "run.db"
    moment, done = random.Random(seed), 0

    def work(writer, first, delay):
        made = cheap(path)
        end = time.monotonic() + delay
        for number in range(first, N_STEPS):
            step(made, number)
            os.write(writer, b".")
            if time.monotonic() > end:
                os.kill(os.getpid(), 9)

    for _ in range(3):
        delay = moment.uniform(0.0, 0.05)
        heard, _ = forked(lambda writer: work(writer, done, delay))  # noqa: B023
        held = cheap(path)._session.state
        n_held = sum(kind != "ask" for kind, _ in events(path)) if held.seq else 0
        assert done + len(heard) <= n_held <= done + len(heard) + 1
        done = n_held
    resumed = cheap(path)
    for number in range(done, N_STEPS):
        step(resumed, number)
    assert events(closed(resumed)) == whole_events


@pytest.mark.slow
def test_many_undos_are_resumed_too(tmp_path):
    """Past the first tie, with which a hyperparameter came in, and the first set."""
    first = tell_sets(optimizer(tmp_path / "run.db"), 4, 2, "tie")
    tell_sets(first, 5)
    tell_sets(first, 4, 2, "tie").tell(first.ask(), "tie").ask()
    for _ in range(10):
        first.undo()
    second = optimizer(copied(tmp_path / "run.db", tmp_path))
    assert second.n_told_ == first.n_told_ == 4
    for size in (2, 3, 4):
        np.testing.assert_array_equal(first.ask(size=size), second.ask(size=size))
    for each in (first, second):
        each.undo()
        tell_sets(each, 2, 4, "worst").tell(each.ask(), "tie")
    np.testing.assert_array_equal(first.ask(), second.ask())


@pytest.mark.slow
def test_solver_and_sampler_are_kept_row_by_row(tmp_path):
    made = tell_sets(optimizer(tmp_path / "run.db"), 4, 4, "ranking")
    tell_sets(tell_sets(made, 3, 4, "both"), 2, 2, "tie").ask()
    again = optimizer(copied(tmp_path / "run.db", tmp_path))
    one, two = (each._session.last_state.recalled for each in (made, again))
    assert one.margins.shape == (4 * 3 + 3 * 4 + 2,)  # inequalities of the answers
    np.testing.assert_array_equal(one.margins, two.margins)
    assert one.sites.keys() == two.sites.keys() != set()
    for name, part in one.sites.items():
        np.testing.assert_array_equal(part, two.sites[name])


# --- the file -------------------------------------------------------------------------------


def test_duels_and_sets_are_written_alike(tmp_path):
    made = cheap(tmp_path / "run.db")
    made.tell(made.ask(), "tie")
    items = made.ask(size=3)
    made.tell(items, chosen=1, worst=0).skip(items[[1, 0, 2]])
    found = events(closed(made))
    for _, payload in found:
        payload.pop("items", None)
    assert found == [
        ("ask", {"questions": [[0, 1]]}),
        ("tell", {"question": [0, 1], "compared": [0, 1], "outcome": "tie"}),
        ("ask", {"questions": [[2, 3, 4]]}),
        (
            "tell",
            {"question": [2, 3, 4], "compared": [2, 3, 4], "outcome": {"chosen": 1, "worst": 0}},
        ),
        ("skip", {"question": [3, 2, 4], "compared": [3, 2, 4]}),
    ]


def test_a_history_has_sets_and_ties(tmp_path):
    made = cheap(tmp_path / "run.db")
    duel, items = made.ask(), made.ask(size=3)
    made.tell(duel, "tie").tell(items, ranking=[2, 0]).skip(items).undo()
    table = read_journal(tmp_path / "run.db")
    assert table["kind"] == ["ask", "ask", "tell", "tell", "skip", "undo"]
    assert table["outcome"] == [None, None, "tie", {"ranking": [2, 0]}, None, None]
    assert table["items"][0] == table["items"][2] == duel.tolist()
    assert table["items"][1] == table["items"][3] == items.tolist()
    assert table["items"][5] is None
    assert [first is None for first in table["first"]] == [False, True, False, True, True, True]
    export_journal(tmp_path / "run.db", tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()[1:]]
    assert [row["outcome"] for row in rows] == table["outcome"]


def test_a_history_has_names_and_choices_of_sets(tmp_path):
    space = {"rate": stats.loguniform(1e-4, 0.1), "kind": ["a", ("c", 1)]}
    made = PreferenceOptimizer(space, journal=tmp_path / "mixed.db")
    items = [{"rate": rate, "kind": "a"} for rate in (0.01, 0.02, 0.03)]
    made.tell(items, worst=1)
    assert made.history_[0].items == tuple(items)
    assert read_journal(tmp_path / "mixed.db")["items"][0][2] == {"rate": 0.03, "kind": "a"}
    pool = ItemTable([[0.0], [1.0], [2.0]], names=["x", "y", "z"])
    made = PreferenceOptimizer(candidates=pool, journal=tmp_path / "pool.db")
    assert set(made.ask(size=3)) == {"x", "y", "z"}
    made.tell(["y", "z", "x"], chosen=1)
    assert made.recommend() == "z"
    assert read_journal(tmp_path / "pool.db")["items"][-1] == ["y", "z", "x"]
    again = PreferenceOptimizer(candidates=pool, journal=tmp_path / "pool.db")
    assert again.history_ == [(("y", "z", "x"), {"chosen": 1})]


# --- several judges -------------------------------------------------------------------------


def test_pending_sets_are_handed_out_once(tmp_path):
    path = tmp_path / "run.db"
    mine = optimizer(path, judge="mine")
    sets, duel = mine.ask(2, size=3), mine.ask()
    theirs = optimizer(path, judge="theirs")
    others = theirs.ask(size=3)
    assert not np.array_equal(theirs.ask(), duel)
    assert not any(np.array_equal(others, each) for each in sets)
    np.testing.assert_array_equal(mine.ask(2, size=3), sets)
    assert len(mine.pending_) == 5


def test_sets_whose_lease_is_over_are_asked_again(tmp_path):
    path = tmp_path / "run.db"
    gone = cheap(path, judge="gone")
    duel, sets = gone.ask(), gone.ask(2, size=3)
    made = cheap(path, judge="made")
    made._session.clock = lambda: time.time() + 31 * 60
    np.testing.assert_array_equal(made.ask(2, size=3), sets)
    np.testing.assert_array_equal(gone.ask(), duel)  # of another size: it stayed
    assert read_journal(path)["kind"] == ["ask"] * 3


def test_an_answer_to_a_pending_set_counts_once(tmp_path):
    path = tmp_path / "run.db"
    one = cheap(path, judge="one")
    items, more = one.ask(2, size=3)
    two = cheap(path, judge="two")
    two.tell(items[[1, 2, 0]], chosen=0)
    two.skip(more)
    with pytest.raises(AlreadyAnswered, match=r"This set .* was answered already"):
        one.tell(items, chosen=1)
    assert one.n_told_ == 1
    np.testing.assert_array_equal(one.incumbent_, items[1])
    one.tell(items, worst=0)  # now it is meant
    assert two.n_told_ == 2
    items = one.ask(size=3)
    two.skip(items)
    with pytest.raises(AlreadyAnswered, match=r"This set .* was skipped already"):
        one.tell(items, chosen=1)


@pytest.mark.parametrize("recorded", [True, False])
def test_an_answer_again_after_an_interrupt_counts_once(tmp_path, monkeypatch, recorded):
    made = cheap(tmp_path / "run.db")
    items, real = made.ask(size=3), Journal.write_decision

    def interrupted(journal, *parts):
        if recorded:
            real(journal, *parts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_decision", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.tell(items, chosen=1)
    if recorded:
        with pytest.raises(AlreadyAnswered, match="a call that was interrupted"):
            made.tell(items, chosen=1)
    else:
        made.tell(items, chosen=1)
    made.tell(items, worst=1)
    assert [entry.outcome for entry in made.history_] == [{"chosen": 1}, {"worst": 1}]


@pytest.mark.slow
def test_processes_with_kills_count_every_set_once(tmp_path):
    path, rng = tmp_path / "run.db", np.random.default_rng(0)
    cheap(path)

    def judge(writer, seed):
        made, die = cheap(path, judge=str(seed)), np.random.default_rng(seed).integers(3, 8)
        for k in range(8):
            items = made.ask(size=2 + k % 3)
            made.tell(items, **said(items, "tie" if len(items) == 2 else WAYS[k % 5]))
            os.write(writer, items.tobytes().hex().encode() + b"\n")
            if k == die:
                os.kill(os.getpid(), 9)

    heard = []
    threads = [
        threading.Thread(
            target=lambda seed=seed: heard.append(forked(lambda w: judge(w, seed))[0].decode())
        )
        for seed in rng.integers(1000, size=3).tolist()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = Counter(line for each in heard for line in each.splitlines())
    assert sum(told.values()) >= 3 * 4
    held = Counter(entry.items.tobytes().hex() for entry in cheap(path).history_)
    assert held == told
    assert max(held.values()) == 1
