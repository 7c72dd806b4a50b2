"""Journals: what is on disk when a call returns, and going on from it exactly."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import skpref
from skpref.inference import HMC
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer

MIXED = {"rate": stats.loguniform(1e-4, 1e-1), "depth": (1, 12), "kind": ["a", "b", ("c", 1)]}

# Answers questions, a tenth of them wrongly, until it is killed.
SCRIPT = """
import sys
import numpy as np
from test_optimize_journal import N_STEPS, optimizer, scripted_outcome

made = optimizer(sys.argv[1], 5)
for step in range(N_STEPS):
    duel = made.ask()
    print("asked", duel.tobytes().hex(), flush=True)
    made.tell(duel, scripted_outcome(duel, step))
    print("told", flush=True)
"""
N_STEPS = 16


def scripted_outcome(duel, step):
    wrong = np.random.default_rng([7, step]).random() < 0.1
    return (np.sum((duel[0] - 0.3) ** 2) < np.sum((duel[1] - 0.3) ** 2)) != wrong


def optimizer(path, seed=0, **options):
    options = {"n_initial": 3} | options
    return HallucinationBelieverOptimizer(
        [[0.0, 1.0]] * 2, journal=path, random_state=seed, **options
    )


def answer(made, n=1):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, np.sum((duel[0] - 0.3) ** 2) < np.sum((duel[1] - 0.3) ** 2))
    return made


def same_run(one, two, n=4):
    """Both hold the same and go on the same way."""
    for each in (one, two):
        assert each.n_told_ == one.n_told_
    for left, right in zip(one.history_, two.history_, strict=True):
        np.testing.assert_array_equal(left.duel, right.duel)
        assert left.outcome == right.outcome
    for _ in range(n):
        np.testing.assert_array_equal(one.ask(), two.ask())
        if one.n_told_:
            np.testing.assert_array_equal(one.recommend(), two.recommend())
        answer(one), answer(two)


# --- resuming -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_told", [0, 2, 3, 9])
@pytest.mark.parametrize("asked", [False, True])
def test_a_closed_run_goes_on_to_the_same_questions(tmp_path, n_told, asked):
    answer(first := optimizer(tmp_path / "run.jsonl"), n_told)
    if asked:
        first.ask()
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "run.jsonl").read_bytes())
    reopened = optimizer(tmp_path / "copy.jsonl")
    same_run(first, reopened)


def test_skips_undos_parallel_and_foreign_duels_are_resumed(tmp_path):
    first = answer(optimizer(tmp_path / "run.jsonl"), 4)
    duels = first.ask(3)
    first.tell(duels[1], 1)
    first.skip(duels[0])
    first.tell([[0.1, 0.2], [0.3, 0.4]], 0)
    answer(first, 2)
    first.undo().undo()
    first.ask(2)
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "run.jsonl").read_bytes())
    second = optimizer(tmp_path / "copy.jsonl")
    np.testing.assert_array_equal(first.ask(2), second.ask(2))
    for each in (first, second):
        each.undo()
    same_run(first, second)


def test_duels_told_in_a_row_are_resumed(tmp_path):
    # Every answer may move the hyperparameters on, and the next goes on from there.
    first = answer(optimizer(tmp_path / "run.jsonl"), 4)
    for duel in ([[0.1, 0.2], [0.3, 0.4]], [[0.9, 0.1], [0.2, 0.6]], [[0.5, 0.4], [0.1, 0.9]]):
        first.tell(duel, 1)
    first.skip([[0.1, 0.2], [0.9, 0.1]])
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "run.jsonl").read_bytes())
    same_run(first, optimizer(tmp_path / "copy.jsonl"))


@pytest.fixture(scope="module")
def uninterrupted():
    """The questions of the whole script."""
    made, questions = optimizer(None, 5), []
    for step in range(N_STEPS):
        questions.append(made.ask())
        made.tell(questions[-1], scripted_outcome(questions[-1], step))
    return questions


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_moment_nothing_is_lost(tmp_path, seed, uninterrupted):
    path = tmp_path / "run.jsonl"
    folders = [str(Path(skpref.__file__).parents[1]), str(Path(__file__).parent)]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    )
    moment = random.Random(seed)
    n_heard = moment.randrange(1, 2 * N_STEPS - 6)  # lines: well before the run's end
    heard = "".join(process.stdout.readline() for _ in range(n_heard))
    time.sleep(moment.uniform(0.0, 0.03))
    process.kill()
    heard += process.communicate()[0]
    assert process.returncode == -signal.SIGKILL  # it had not ended by itself
    asked = [line.split()[1] for line in heard.splitlines() if line.startswith("asked ")]
    n_told = heard.count("told\n")
    assert asked[:-1] == [duel.tobytes().hex() for duel in uninterrupted[: len(asked) - 1]]

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The last line")
        resumed = optimizer(path, 5)
    assert resumed.n_told_ >= n_told
    for step in range(resumed.n_told_, N_STEPS):
        duel = resumed.ask()
        np.testing.assert_array_equal(duel, uninterrupted[step])
        resumed.tell(duel, scripted_outcome(duel, step))
    for entry, duel in zip(resumed.history_, uninterrupted, strict=True):
        np.testing.assert_array_equal(entry.duel, duel)


def test_no_told_duel_is_lost_by_a_kill_between_calls(tmp_path):
    for n in range(6):
        path = tmp_path / f"{n}.jsonl"
        made = answer(optimizer(path), n)
        assert len(optimizer_copy(path, tmp_path).history_) == made.n_told_ == n


def optimizer_copy(path, folder):
    copy = folder / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    return optimizer(copy)


def test_dict_items_and_a_pool_are_resumed(tmp_path):
    def build(path, **space):
        return HallucinationBelieverOptimizer(**space, n_initial=3, journal=path, random_state=1)

    table = np.random.default_rng(0).random((30, 3))
    for k, space in enumerate([{"space": MIXED}, {"candidates": table}]):
        path = tmp_path / f"{k}.jsonl"
        first = build(path, **space)
        for _ in range(6):
            first.tell(first.ask(), 1)
        duel = first.ask()
        again = build(path, **space)
        if k:
            np.testing.assert_array_equal(again.ask(), duel)
        else:
            assert again.ask() == duel
        assert len(again.history_) == 6


def test_without_a_seed_the_journal_keeps_one(tmp_path):
    path = tmp_path / "run.jsonl"
    answer(optimizer(path, None), 5)
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    same_run(optimizer(path, None), optimizer(tmp_path / "copy.jsonl", None))


def test_an_engine_that_draws_is_resumed(tmp_path):
    def build(path):
        return PreferenceOptimizer(
            [[0.0, 1.0]],
            inference=HMC(draws=40, chains=10),
            incumbent="last_winner",
            acquisition="duel_ucb",
            n_initial=3,
            journal=path,
            random_state=0,
        )

    first = answer(build(tmp_path / "run.jsonl"), 5)
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "run.jsonl").read_bytes())
    same_run(first, build(tmp_path / "copy.jsonl"), 2)


# --- the file -------------------------------------------------------------------------------


def test_one_record_an_event_on_disk_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    made = optimizer(path)

    def kinds():
        return [json.loads(line)["record"]["type"] for line in path.read_text().splitlines()]

    assert kinds() == ["skpref-journal"]
    duel = made.ask()
    made.ask()
    assert kinds()[1:] == ["ask"]
    made.tell(duel, 1)
    made.skip(made.ask())
    made.undo()
    assert kinds()[1:] == ["ask", "tell", "ask", "skip", "undo"]


def test_a_refused_answer_leaves_no_trace(tmp_path):
    path = tmp_path / "run.jsonl"
    made = answer(optimizer(path), 4)
    before = path.read_bytes()
    for duel, outcome in (([[0.0, 0.0], [2.0, 0.0]], 1), ([[0.0, 0.0], [1.0, 0.0]], "x")):
        with pytest.raises(ValueError, match=r"lies outside|must be in"):
            made.tell(duel, outcome)
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_dropped_with_a_warning(tmp_path, cut):
    path = tmp_path / "run.jsonl"
    answer(optimizer(path), 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.warns(UserWarning, match=r"last line \(9\) of the journal .* is torn"):
        made = optimizer(path)
    assert made.n_told_ == 3
    assert path.read_bytes() == whole[: whole[:-1].rfind(b"\n") + 1]
    answer(made)  # the duel was still pending: the answer is given again
    assert path.read_bytes() == whole


def test_a_torn_header_begins_anew(tmp_path):
    path = tmp_path / "run.jsonl"
    optimizer(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.warns(UserWarning, match=r"last line \(1\)"):
        made = answer(optimizer(path), 2)
    assert made.n_told_ == 2


@pytest.mark.parametrize("content", [b'{"volume": 0.6}', b"\x89PNG\x00\x01", b"a shopping list"])
def test_another_file_without_a_line_end_is_not_touched(tmp_path, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a journal of this package"):
        optimizer(path)
    assert path.read_bytes() == content


def test_a_header_torn_anywhere_begins_anew(tmp_path):
    path = tmp_path / "run.jsonl"
    optimizer(path)
    whole = path.read_bytes()
    for content in (whole[:1], whole[:12], whole[:40], whole[:-1], bytes(200)):
        path.write_bytes(content)
        with pytest.warns(UserWarning, match=r"last line \(1\)"):
            optimizer(path)
        assert path.read_bytes() == whole


def test_a_record_that_could_not_be_written_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    made = answer(optimizer(path), 4)
    duel, before = made.ask(), path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            made.tell(duel, 1)
    assert path.read_bytes() == before
    assert made.n_told_ == 4
    assert made.tell(duel, 1).n_told_ == optimizer(path).n_told_ == 5


def change(path, line, old, new):
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (3, b'"outcome":1', b'"outcome":0'),
        (3, b"{", b""),
        (4, b"0.", b"1."),
        (1, b"seed", b"feed"),
    ],
)
def test_a_corrupt_line_is_named(tmp_path, line, old, new):
    path = tmp_path / "run.jsonl"
    made = optimizer(path)
    for _ in range(4):
        made.tell(made.ask(), 1)
    change(path, line, old, new)
    with pytest.raises(ValueError, match=rf"Line {line} of the journal .* is corrupt"):
        optimizer(path)


def test_a_missing_line_is_noticed(tmp_path):
    path = tmp_path / "run.jsonl"
    made = answer(optimizer(path), 2)
    made.undo()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[-1]]))
    with pytest.raises(ValueError, match=r"Line 2 of the journal .* does not fit the run before"):
        optimizer(path)


def test_two_writers_are_noticed(tmp_path):
    path = tmp_path / "run.jsonl"
    one = answer(optimizer(path), 2)
    answer(optimizer(path), 1)
    with pytest.raises(RuntimeError, match="another run writes to it"):
        answer(one)


def test_pickles_go_on_with_their_journal(tmp_path):
    path = tmp_path / "run.jsonl"
    made = answer(optimizer(path), 5)
    copy = pickle.loads(pickle.dumps(made))
    duel = copy.ask()
    answer(copy, 2)
    assert optimizer(path).n_told_ == 7
    with pytest.raises(RuntimeError, match="another run writes to it"):
        made.ask()
    np.testing.assert_array_equal(duel, optimizer(path).history_[5].duel)
