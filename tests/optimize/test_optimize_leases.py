"""Leases on questions: who is asked what, for how long, and that no answer hangs on a clock."""

import os
import random
import sqlite3
import threading
from collections import Counter

import numpy as np
import pytest
from journal_support import answer, cheap, forked, judged

from skpref.optimize import AlreadyAnswered, read_journal

pytestmark = pytest.mark.usefixtures("brief")

MINUTE = 60.0


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now=1.8e9):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_run(tmp_path, clock):
    """A function that opens the run for a judge, by the one clock or another."""

    def open_run(judge=None, own=clock, **options):
        made = cheap(tmp_path / "run.db", judge=judge, **options)
        made._session.clock = own
        return made

    return open_run


def key(items):
    return np.asarray(items).tobytes()


def holders(folder):
    """Judge of each leased question, by its number."""
    connection = sqlite3.connect(folder / "run.db")
    rows = connection.execute("SELECT question, judge FROM leases").fetchall()
    connection.close()
    return dict(rows)


# --- who is asked what ----------------------------------------------------------------------


@pytest.mark.parametrize("judge", ["ann", None])
def test_after_a_kill_the_same_judge_is_asked_the_same(tmp_path, judge):
    path = tmp_path / "run.db"

    def work(writer):
        os.write(writer, key(cheap(path, judge=judge).ask(2)))
        os.kill(os.getpid(), 9)

    content, status = forked(work)
    assert os.WIFSIGNALED(status)
    again = cheap(path, judge=judge)
    assert key(again.ask(2)) == content
    assert key(again.ask()) == content[: len(content) // 2]
    assert read_journal(path)["kind"] == ["ask", "ask"]


def test_another_judge_is_asked_something_else(open_run):
    ann, bob, nobody = open_run("ann"), open_run("bob"), open_run()
    questions = [key(each.ask()) for each in (ann, bob, nobody)]
    assert len(set(questions)) == 3
    assert [key(each.ask()) for each in (ann, bob, nobody)] == questions
    assert [key(each) for each in ann.pending_] == questions  # all see all
    assert key(open_run().ask()) == questions[2]  # without a name they are one judge


def test_after_the_lease_anybody_is_asked(open_run, clock):
    ann, bob = open_run("ann"), open_run("bob")
    duel = ann.ask()
    clock.now += 29.9 * MINUTE
    own = bob.ask()
    assert key(own) != key(duel)
    clock.now += 0.1 * MINUTE
    assert [key(each) for each in bob.ask(2)] == [key(duel), key(own)]
    assert key(ann.ask()) not in (key(duel), key(own))  # it is bob's now
    assert read_journal(ann._session._journal.path)["kind"] == ["ask"] * 3


def test_what_nobody_else_took_stays_with_its_judge(open_run, clock):
    ann = open_run("ann")
    duel = ann.ask()
    clock.now += 1e9
    assert key(ann.ask()) == key(duel)


def test_the_question_of_a_judge_stays_when_an_older_one_is_free(open_run, clock):
    ann, bob = open_run("ann"), open_run("bob")
    old = ann.ask()
    clock.now += 20 * MINUTE
    own = bob.ask()
    clock.now += 10 * MINUTE
    assert key(bob.ask()) == key(own)
    clock.now += 31 * MINUTE  # his own is over, too
    assert key(bob.ask()) == key(own)
    assert key(bob.ask(2)[0]) == key(old)


def test_asking_again_renews_the_lease(open_run, clock):
    ann, bob = open_run("ann"), open_run("bob")
    duel = ann.ask()
    for _ in range(5):
        clock.now += 20 * MINUTE
        assert key(ann.ask()) == key(duel)
        assert key(bob.ask()) != key(duel)


def test_a_lease_lasts_as_long_as_its_holder_said(open_run, clock):
    ann, bob = open_run("ann", lease_minutes=5), open_run("bob", lease_minutes=600)
    duel = ann.ask()
    clock.now += 6 * MINUTE
    assert key(bob.ask()) == key(duel)
    clock.now += 500 * MINUTE
    assert key(ann.ask()) != key(duel)


def test_taken_back_a_question_is_asked_of_who_took_the_answer_back(open_run):
    ann, bob = open_run("ann"), open_run("bob")
    duels = ann.ask(3)
    ann.tell(duels[0], 1).undo()
    assert key(bob.ask()) not in map(key, duels)
    assert [key(each) for each in ann.ask(3)] == list(map(key, duels))


def test_one_process_may_have_several_judges_and_runs_without_a_journal_too():
    made = cheap(None, judge="ann")
    duel = made.ask()
    assert key(made.ask()) == key(duel)
    assert key(made.ask(2)[0]) == key(duel)
    made.tell(duel, 1).undo()
    assert key(made.ask()) == key(duel)


@pytest.mark.parametrize("n_judges", [4])
def test_two_processes_never_hold_the_same_question(tmp_path, n_judges):
    path = tmp_path / "run.db"
    cheap(path)
    gate, open_gate = os.pipe()

    def work(writer, judge):
        made = cheap(path, judge=judge)
        os.read(gate, 1)
        for n in range(1, 5):
            asked = made.ask(n)
        os.write(writer, key(asked))

    content = {}
    threads = [
        threading.Thread(
            target=lambda k=k: content.update({k: forked(lambda writer: work(writer, str(k)))[0]})
        )
        for k in range(n_judges)
    ]
    for thread in threads:
        thread.start()
    os.write(open_gate, b"." * n_judges)  # at once
    for thread in threads:
        thread.join()
    duels = np.concatenate([np.frombuffer(each).reshape(-1, 4) for each in content.values()])
    assert len(duels) == len(np.unique(duels, axis=0)) == 4 * n_judges
    assert Counter(holders(tmp_path).values()) == {str(k): 4 for k in range(n_judges)}


# --- answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("late_first", [True, False])
def test_of_a_late_answer_and_a_new_one_the_first_counts(open_run, clock, late_first):
    late, new = open_run("late"), open_run("new")
    duel = late.ask()
    clock.now += 31 * MINUTE
    assert key(new.ask()) == key(duel)
    first, second = (late, new) if late_first else (new, late)
    first.tell(duel, 1)
    with pytest.raises(AlreadyAnswered, match=r"answered already.*judge="):
        second.tell(duel, 0)
    assert late.n_told_ == new.n_told_ == 1
    assert late.history_[0].outcome == 1
    second.tell(duel, 0)  # once more: now it is meant
    assert late.n_told_ == 2


def test_a_late_answer_counts_though_nobody_holds_the_question(open_run, clock):
    ann = open_run("ann")
    duel = ann.ask()
    clock.now += 1e9
    assert open_run("ann").tell(duel, 1).n_told_ == 1
    assert len(ann.pending_) == 0


def test_anybody_may_answer_what_another_holds(open_run, tmp_path):
    ann, bob = open_run("ann"), open_run("bob")
    duel = ann.ask()
    bob.tell(duel, 1)
    assert read_journal(tmp_path / "run.db")["judge"] == ["ann", "bob"]
    with pytest.raises(AlreadyAnswered):
        ann.skip(duel)
    assert ann.n_told_ == 1
    assert holders(tmp_path) == {}


def test_an_answer_that_is_sent_twice_counts_once(open_run):
    duel = open_run("ann").ask()
    senders = [open_run("ann") for _ in range(3)]
    senders[0].tell(duel, 1)
    for each in senders[1:]:
        with pytest.raises(AlreadyAnswered, match="nothing was recorded now"):
            each.tell(duel, 1)
    assert senders[0].n_told_ == 1


def test_a_history_without_names_has_no_judges(open_run, tmp_path):
    answer(open_run(), 1)
    assert "judge" not in read_journal(tmp_path / "run.db")
    answer(open_run("ann"), 1)
    assert read_journal(tmp_path / "run.db")["judge"] == [None, None, "ann", "ann"]


# --- clocks ---------------------------------------------------------------------------------


def test_a_clock_far_ahead_withholds_no_question(open_run, clock):
    ahead = open_run("ahead", Clock(4.1e9))  # the year 2099
    duel = ahead.ask()
    assert key(open_run("bob").ask()) == key(duel)
    assert key(ahead.tell(duel, 1).history_[0].items) == key(duel)


@pytest.mark.parametrize("minutes", [-20, 20])
def test_a_clock_that_is_somewhat_off_shares_no_question(open_run, clock, minutes):
    off, bob = open_run("off", Clock(clock.now + minutes * MINUTE)), open_run("bob")
    duels = [key(off.ask()), key(bob.ask())]
    assert len(set(duels)) == 2
    assert [key(off.ask()), key(bob.ask())] == duels


def test_a_lease_may_be_over_before_the_call_returns(tmp_path):
    made = cheap(tmp_path / "run.db", judge="ann", lease_minutes=1e-12)
    assert key(made.ask()) == key(made.ask())


@pytest.mark.parametrize("seed", range(3))
def test_clocks_that_jump_and_disagree_lose_no_answer(open_run, tmp_path, seed):
    """Every call that returns counts once, and every question has at most one holder."""
    rng, recorded = random.Random(seed), []
    judges = [open_run(name, Clock()) for name in "abc"]
    for step in range(40):
        made = rng.choice(judges)
        made._session.clock.now = rng.choice([0.0, 1e300, 1.8e9, 1.8e9 + rng.uniform(-1e4, 1e4)])
        duel = made.ask()
        assert key(made.ask()) == key(duel)
        assert set(holders(tmp_path)) == {q.number for q in made._session.state.pending}
        if rng.random() < 0.6:
            made.tell(duel, step % 2)
            recorded.append((key(duel), step % 2))
    assert [(key(each.items), each.outcome) for each in judges[0].history_] == recorded
    assert len(recorded) == len({each for each, _ in recorded})


def test_the_run_of_one_judge_does_not_depend_on_the_clock(open_run):
    made, alone, rng = open_run("ann", Clock()), cheap(None), random.Random(0)
    for _ in range(6):
        made._session.clock.now = rng.uniform(-1e12, 1e12)
        assert key(made.ask(2)) == key(alone.ask(2))
        duel = made.ask()
        for each in (made, alone):
            each.tell(duel, judged(duel))
        made._session.clock.now = rng.uniform(-1e12, 1e12)
        if made.n_told_ == 3:
            made.undo(), alone.undo()
    assert key(made.pending_) == key(alone.pending_)


# --- arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"judge": ""}, "judge must be a name"),
        ({"judge": 7}, "judge must be a name"),
        ({"lease_minutes": 0}, "lease_minutes must lie"),
        ({"lease_minutes": -1.0}, "lease_minutes must lie"),
        ({"lease_minutes": float("nan")}, "lease_minutes must lie"),
    ],
)
def test_what_is_no_judge_and_no_time_is_refused(tmp_path, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        cheap(tmp_path / "run.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_names_of_any_kind_are_kept(open_run, tmp_path):
    name = "Zoë 🦊 'x'; \\ http://here/?a=1&b=2"
    duel = open_run(name).ask()
    assert key(open_run(name).ask()) == key(duel)
    assert set(holders(tmp_path).values()) == {name}
