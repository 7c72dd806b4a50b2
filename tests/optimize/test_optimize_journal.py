"""Journals: what is on disk when a call returns, and going on from it exactly."""

import json
import os
import pickle
import random
import sqlite3
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from journal_support import answer, cheap, closed, copied, forked, optimizer
from scipy import stats

import skpref
from skpref.inference import HMC
from skpref.optimize import (
    STRATEGIES,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    read_journal,
)

MIXED = {"rate": stats.loguniform(1e-4, 1e-1), "depth": (1, 12), "kind": ["a", "b", ("c", 1)]}
N_STEPS = 12


def same_run(one, two, n=2):
    """Both hold the same and go on the same way."""
    assert two.n_told_ == one.n_told_
    for left, right in zip(one.history_, two.history_, strict=True):
        np.testing.assert_array_equal(left.duel, right.duel)
        assert left.outcome == right.outcome
    for _ in range(n):
        np.testing.assert_array_equal(one.ask(), two.ask())
        if one.n_told_:
            np.testing.assert_array_equal(one.recommend(), two.recommend())
        answer(one), answer(two)


def step(made, number):
    """One answer, skip, undo or older duel, which the number alone chooses."""
    rng = np.random.default_rng([3, number])
    act, n = rng.random(), int(rng.integers(1, 5))
    if act < 0.15 and made.n_told_:
        return made.undo()
    if act < 0.3 and made.n_told_:
        return made.tell(made.history_[0].duel, int(rng.random() < 0.5))
    duel = made.ask(n)[int(rng.integers(n))]
    return made.skip(duel) if act < 0.4 else made.tell(duel, int(rng.random() < 0.5))


def columns(path):
    """Kinds and contents of all events but the first, which says what the run is."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT kind, payload FROM events ORDER BY seq").fetchall()
    connection.close()
    return [(kind, json.loads(text)) for kind, text in rows[1:]]


# --- resuming -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_told", "asked"), [(0, False), (0, True), (2, False), (3, True), (6, False), (7, True)]
)
def test_a_closed_run_goes_on_to_the_same_questions(tmp_path, n_told, asked):
    answer(first := optimizer(tmp_path / "run.db"), n_told)
    if asked:
        first.ask()
    same_run(first, optimizer(copied(tmp_path / "run.db", tmp_path)))


def build(path, strategy):
    options = STRATEGIES[strategy]._asdict()
    if options["inference"] == "hmc":
        options["inference"] = HMC(draws=40, chains=10)
    return PreferenceOptimizer(
        [[0.0, 1.0]] * 2, **options, n_initial=2, journal=path, random_state=0
    )


@pytest.mark.usefixtures("brief")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", ["HB-EI", "LA-EI", "EIIG", "DoubleTS", "EUBO"])
def test_every_moment_of_a_run_is_resumed_to_the_last_bit(tmp_path, strategy):
    """Several questions, answers in any order, skips, undos, older duels; a copy goes on."""
    whole = build(tmp_path / "whole.db", strategy)
    for number in range(N_STEPS):
        if number in (4, 9):
            copied(tmp_path / "whole.db", tmp_path, f"{number}.db")
        step(whole, number)
    expected = columns(closed(whole))
    for first in (4, 9):
        resumed = build(tmp_path / f"{first}.db", strategy)
        for number in range(first, N_STEPS):
            step(resumed, number)
        assert columns(closed(resumed)) == expected


@pytest.fixture(scope="module")
def whole_columns(tmp_path_factory):
    whole = cheap(tmp_path_factory.mktemp("whole") / "whole.db")
    for number in range(N_STEPS):
        step(whole, number)
    return columns(closed(whole))


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_nothing_is_lost(tmp_path, seed, whole_columns):
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
        delay = moment.uniform(0.0, 0.03)
        heard, _ = forked(lambda writer: work(writer, done, delay))  # noqa: B023
        held = cheap(path)._session.state
        n_held = sum(kind != "ask" for kind, _ in columns(path)) if held.seq else 0
        assert done + len(heard) <= n_held <= done + len(heard) + 1
        done = n_held
    resumed = cheap(path)
    for number in range(done, N_STEPS):
        step(resumed, number)
    assert columns(closed(resumed)) == whole_columns


@pytest.mark.parametrize("k", [0, 1])
def test_dict_items_and_a_pool_are_resumed(tmp_path, k):
    space = [{"space": MIXED}, {"candidates": np.random.default_rng(0).random((30, 3))}][k]

    def make():
        return HallucinationBelieverOptimizer(
            **space, n_initial=3, journal=tmp_path / "run.db", random_state=1
        )

    first = make()
    for _ in range(6):
        first.tell(first.ask(), 1)
    duel, again = first.ask(), make()
    assert np.array_equal(again.ask(), duel) if k else again.ask() == duel
    assert len(again.history_) == 6


def test_without_a_seed_the_journal_keeps_one(tmp_path):
    answer(optimizer(tmp_path / "run.db", None), 5)
    copy = copied(tmp_path / "run.db", tmp_path)
    same_run(optimizer(tmp_path / "run.db", None), optimizer(copy, None))


@pytest.mark.slow
def test_many_undos_are_resumed_too(tmp_path):
    """However far back, solver and sampler are where they were: the same questions come again."""
    first = answer(optimizer(tmp_path / "run.db"), 16)
    for _ in range(12):
        first.undo()
    assert first.n_told_ == 4
    second = optimizer(copied(tmp_path / "run.db", tmp_path))
    np.testing.assert_array_equal(first.ask(2), answer(optimizer(tmp_path / "short.db"), 4).ask(2))
    second.ask(2)
    np.testing.assert_array_equal(first.ask(), second.ask())
    for each in (first, second):
        each.undo()
    same_run(first, second)


def test_old_answers_are_told_without_a_fit_each(tmp_path, monkeypatch):
    made, fits = optimizer(tmp_path / "run.db"), []
    real = skpref.optimize._model.fit
    monkeypatch.setattr(
        skpref.optimize._model, "fit", lambda *parts: (fits.append(1), real(*parts))[1]
    )
    for duel in np.random.default_rng(0).random((20, 2, 2)):
        made.tell(duel, 1)
    assert not fits
    made.ask(2)
    made.recommend()
    assert len(fits) == 1


def test_a_kernel_that_fails_fails_where_it_is_asked(tmp_path):
    class Moody(skpref.optimize._model.Matern):
        well = True

        def __call__(self, X, Y=None, eval_gradient=False):
            found = super().__call__(X, Y, eval_gradient)
            return found if self.well else found * np.nan

    made = optimizer(tmp_path / "run.db", kernel=Moody(0.3, "fixed", nu=1.5), n_initial=1)
    answer(made, 3)
    duel = made.ask()
    Moody.well = False
    assert made.tell(duel, 1).n_told_ == 4  # told without an error
    with pytest.raises(ValueError, match="not finite"):
        made.ask()
    Moody.well = True
    assert made.n_told_ == 4
    answer(made, 1)


# --- the file -------------------------------------------------------------------------------


def test_one_event_a_call_on_disk_at_once(tmp_path):
    path = tmp_path / "run.db"
    made = cheap(path)

    def kinds():
        with sqlite3.connect(path) as connection:
            found = [row[0] for row in connection.execute("SELECT kind FROM events ORDER BY seq")]
        connection.close()
        return found

    assert kinds() == ["begin"]
    duel = made.ask()
    made.ask()
    assert kinds() == ["begin", "ask"]
    made.tell(duel, 1)
    made.skip(made.ask())
    made.undo()
    assert kinds() == ["begin", "ask", "tell", "ask", "skip", "undo"]


@pytest.mark.slow
def test_a_run_that_is_over_is_one_small_file(tmp_path):
    made = cheap(tmp_path / "run.db")
    for k in range(30):
        made.tell(made.ask(), k % 2)
    del made
    assert [each.name for each in tmp_path.iterdir()] == ["run.db"]
    small = (tmp_path / "run.db").stat().st_size
    assert small < 50_000
    more = cheap(tmp_path / "run.db")
    for k in range(30):
        more.tell(more.ask(), k % 2)
    del more
    assert (tmp_path / "run.db").stat().st_size < 2.2 * small  # linear in events


def test_a_refused_answer_leaves_no_trace(tmp_path):
    made = answer(optimizer(tmp_path / "run.db"), 4)
    before = made._session.state
    for duel, outcome in (([[0.0, 0.0], [2.0, 0.0]], 1), ([[0.0, 0.0], [1.0, 0.0]], "x")):
        with pytest.raises(ValueError, match=r"lies outside|must be in"):
            made.tell(duel, outcome)
    assert made._session.state is before
    assert optimizer(tmp_path / "run.db")._session.state.seq == before.seq


@pytest.mark.parametrize(
    "content", [b'{"volume": 0.6}', b"\x89PNG\x00\x01", b"a shopping list\n", bytes(5000), b"\0"]
)
def test_another_file_is_not_touched(tmp_path, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a journal of this package"):
        optimizer(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_databases_of_other_programs_are_not_touched(tmp_path):
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is not a journal of this package"):
        optimizer(path)
    assert path.read_bytes() == before


def test_a_journal_of_another_version_is_not_guessed_at(tmp_path):
    path = closed(answer(cheap(tmp_path / "run.db"), 2))
    for version in (5, 7):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        with pytest.raises(ValueError, match=f"has version {version}; this package reads 6"):
            cheap(path)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(ValueError, match="is no regular file"):
            optimizer(path)
    with pytest.raises(FileNotFoundError, match="its folder is missing"):
        optimizer(tmp_path / "nowhere" / "run.db")


def test_an_empty_file_is_begun(tmp_path):
    path = tmp_path / "run.db"
    path.touch()
    answer(optimizer(path), 2)
    assert optimizer(path).n_told_ == 2


def test_paths_may_hold_any_character(tmp_path):
    path = tmp_path / "what? #1 & 100 %.db"
    answer(cheap(path), 2)
    assert cheap(path).n_told_ == 2
    assert path.exists()


def test_a_journal_that_is_gone_is_missed(tmp_path):
    made = answer(cheap(tmp_path / "run.db"), 3)
    duel = made.ask()
    closed(made).unlink()
    with pytest.raises(FileNotFoundError, match="was moved or deleted"):
        made.tell(duel, 1)
    assert made.n_told_ == 3  # what it knows can still be looked at
    assert len(made.history_) == 3


def test_pickles_go_on_with_their_journal(tmp_path):
    made = answer(optimizer(tmp_path / "run.db"), 5)
    copy = pickle.loads(pickle.dumps(made))
    duel = copy.ask()
    answer(copy, 2)
    assert made.n_told_ == 7
    np.testing.assert_array_equal(duel, made.history_[5].duel)
    answer(made)
    assert copy.n_told_ == 8


def test_what_is_read_of_a_run_can_be_told_to_another(tmp_path):
    space = {"kind": ["p", "it's", True, None, 2, 0.5, -np.inf, ("a", 1)], "x": (0.0, 1.0)}
    path = tmp_path / "run.db"
    old = PreferenceOptimizer(space, journal=path, random_state=0)
    items = [{"kind": kind, "x": 0.1 * k} for k, kind in enumerate(space["kind"])]
    for duel in pairwise(items):
        old.tell(duel, 1)
    table = read_journal(path)
    assert [item["kind"] for item in table["first"]] == space["kind"][:-1]
    assert table["second"][-1]["kind"] == repr(space["kind"][-1])
    wider = PreferenceOptimizer(space | {"x": (0.0, 2.0)}, random_state=0)
    for first, second, outcome in zip(
        table["first"][:-1], table["second"][:-1], table["outcome"][:-1], strict=True
    ):
        wider.tell((first, second), outcome)
    assert wider.history_[2].items == old.history_[2].items
