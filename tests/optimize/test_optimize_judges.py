"""Several judges on one run: processes that share a journal, threads that share an optimizer."""

import os
import threading
from collections import Counter

import numpy as np
import pytest
from journal_support import answer, cheap, closed, forked, optimizer

from skpref.optimize import AlreadyAnswered, _journal, read_journal

# --- processes ------------------------------------------------------------------------------


def test_answers_of_others_are_seen_before_anything_else(tmp_path):
    path = tmp_path / "run.db"
    one = answer(optimizer(path, judge="one"), 4)
    two = answer(optimizer(path, judge="two"), 3)
    assert one.n_told_ == 7
    np.testing.assert_array_equal(one.recommend(), two.recommend())
    assert [entry.outcome for entry in one.history_] == [entry.outcome for entry in two.history_]
    np.testing.assert_array_equal(one.incumbent_, two.incumbent_)
    alone = optimizer(None)  # the same answers by one judge: the same next question
    for entry in one.history_:
        np.testing.assert_array_equal(alone.ask(), entry.duel)
        alone.tell(entry.duel, entry.outcome)
    np.testing.assert_array_equal(one.ask(), alone.ask())


def test_an_answer_to_a_pending_duel_counts_once(tmp_path):
    path = tmp_path / "run.db"
    one = answer(cheap(path, judge="one"), 1)
    duel = one.ask()
    two = cheap(path, judge="two")
    two.tell(duel, 0)
    with pytest.raises(AlreadyAnswered, match="answered already"):
        one.tell(duel, 1)
    assert one.n_told_ == 2
    one.tell(duel, 1)  # now it is meant
    assert two.n_told_ == 3
    duel = one.ask()
    two.skip(duel)
    with pytest.raises(AlreadyAnswered, match="skipped already"):
        one.tell(duel, 1)
    answer(two)
    with pytest.raises(AlreadyAnswered, match="Nothing was taken back"):
        one.undo()
    assert one.undo().n_told_ == two.n_told_ == 3


def test_two_that_begin_one_journal_share_it(tmp_path):
    """Both write at once, with seeds of their own; one is first."""
    path = tmp_path / "run.db"
    barrier = threading.Barrier(4)
    made = []

    def begin(seed):
        barrier.wait()
        made.append(cheap(path, None))

    threads = [threading.Thread(target=begin, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len({each.ask().tobytes() for each in made}) == 1


def test_a_run_that_is_begun_by_another_in_this_moment_is_shared(tmp_path, monkeypatch):
    """What the file says of itself is of one moment."""
    path, read, others = tmp_path / "run.db", _journal._fetch_row, []
    path.touch()

    def reads(connection, query, *values):
        found = read(connection, query, *values)
        if "application_id" in query and not others:
            others.append(threading.Thread(target=lambda: others.append(cheap(path, None))))
            others[0].start()
            others[0].join(1.0)  # long enough to begin, if nothing holds it back
        return found

    monkeypatch.setattr(_journal, "_fetch_row", reads)
    one = cheap(path, None)
    others[0].join()
    assert one.ask().tobytes() == others[1].ask().tobytes()


@pytest.mark.slow
def test_processes_with_kills_count_every_answer_once(tmp_path):
    path, rng = tmp_path / "run.db", np.random.default_rng(0)
    cheap(path)

    def judge(writer, seed):
        made, die = cheap(path, judge=str(seed)), np.random.default_rng(seed).integers(3, 12)
        for k in range(12):
            duel = made.ask()
            os.write(writer, b"given " + duel.tobytes().hex().encode() + b"\n")
            made.tell(duel, k % 2)
            os.write(writer, b"told " + duel.tobytes().hex().encode() + b"\n")
            if k == die:
                os.kill(os.getpid(), 9)

    heard = []
    threads = [
        threading.Thread(
            target=lambda seed=seed: heard.append(forked(lambda w: judge(w, seed))[0].decode())
        )
        for seed in rng.integers(1000, size=4).tolist()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line.split() for each in heard for line in each.splitlines()]
    told = Counter(text for kind, text in lines if kind == "told")
    held = Counter(entry.duel.tobytes().hex() for entry in cheap(path).history_)
    assert sum(told.values()) >= 4 * 3
    assert held == told
    assert max(held.values()) == 1


# --- threads --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_threads_ask_and_tell_at_will(tmp_path, kept):
    made = cheap(tmp_path / "run.db" if kept else None)
    told, errors = [], []

    def work(number):
        try:
            for k in range(4):
                duel = made.ask(6)[number]
                made.tell(duel, k % 2)
                told.append(duel.tobytes())
                made.recommend(), made.history_, made.pending_
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert Counter(entry.duel.tobytes() for entry in made.history_) == Counter(told)
    if kept:
        assert cheap(tmp_path / "run.db").n_told_ == 24


def test_an_answer_told_while_a_question_is_found_is_kept(tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    def slow(posterior, X, incumbent):
        inside.set()
        go_on.wait(10)
        return -((X - 0.3) ** 2).sum(axis=1)

    made = answer(optimizer(tmp_path / "run.db", acquisition=slow), 3)
    asking = threading.Thread(target=made.ask)
    asking.start()
    inside.wait(10)
    telling = threading.Thread(target=lambda: made.tell([[0.1, 0.2], [0.3, 0.4]], 1))
    telling.start()
    go_on.set()
    asking.join()
    telling.join()
    assert made.n_told_ == 4
    assert len(made.pending_) == 1
    assert optimizer(tmp_path / "run.db", acquisition=slow).n_told_ == 4


def test_another_process_tells_while_a_question_is_found(tmp_path):
    """The question is found anew: it depends on all that came before it."""
    path, others = tmp_path / "run.db", []

    def meddled(posterior, X, incumbent):
        if len(others) in (1, 2):
            others.append(None)
            others[0].tell([[0.1, 0.2], [0.3, 0.1 * len(others)]], 1)
        return -((X - 0.3) ** 2).sum(axis=1)

    made = answer(optimizer(path, acquisition=meddled), 3)
    others.append(optimizer(path, acquisition=meddled))
    made.ask()
    table = read_journal(path)
    assert table["kind"][-3:] == ["tell", "tell", "ask"]
    again = optimizer(None, acquisition=lambda p, X, i: -((X - 0.3) ** 2).sum(axis=1))
    for entry in made.history_[:3]:
        np.testing.assert_array_equal(again.ask(), entry.duel)
        again.tell(entry.duel, entry.outcome)
    for entry in made.history_[3:]:
        again.tell(entry.duel, entry.outcome)
    np.testing.assert_array_equal(again.ask(), made.ask())


def test_a_forked_child_leaves_the_parents_journal_alone(tmp_path):
    path = tmp_path / "run.db"
    made = answer(cheap(path), 2)

    def work(writer):
        answer(made, 2)
        os.write(writer, str(made.n_told_).encode())

    assert forked(work) == (b"4", 0)
    assert made.n_told_ == 4
    answer(made, 2)
    closed(made)
    assert cheap(path).n_told_ == 6
