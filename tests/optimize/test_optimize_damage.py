"""Journals that were damaged, and calls that were interrupted: never silently wrong."""

import random
import signal
import sqlite3

import numpy as np
import pytest
from journal_support import answer, cheap, closed, optimizer

from skpref.optimize import AlreadyAnswered, read_journal
from skpref.optimize._events import Draft
from skpref.optimize._journal import Journal

# --- damage ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed journal, and what it holds."""
    made = optimizer(tmp_path_factory.mktemp("whole") / "run.db")
    answer(made, 7).ask(3)
    answer(made.skip(made.ask()), 2).undo()
    made.ask(2)
    return closed(made), held(made)


def held(made):
    """All that a run knows, solver and sampler included."""
    state = made._session.last_state
    memories = [state.recalled, state.base]
    arrays = [
        np.concatenate([part.ravel() for part in (m.theta, m.margins, *m.sites.values())]).tobytes()
        for m in memories
    ]
    return state.seq, state.digest, state.answers, state.pending, state.skipped, arrays


def opened(path):
    try:
        return held(optimizer(path))
    except (ValueError, OSError):
        return None


@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_cuts_and_mixed_pages_are_noticed_or_harmless(tmp_path, whole, seed):
    rng, path = random.Random(seed), tmp_path / "run.db"
    content = bytearray(whole[0].read_bytes())
    one, two = (4096 * k for k in rng.sample(range(len(content) // 4096), 2))
    if seed % 4 == 0:
        del content[rng.randrange(1, len(content)) :]
    elif seed % 4 == 1:
        content[one : one + 4096] = content[two : two + 4096]
    else:
        for _ in range(1 + 30 * (seed % 4 == 2)):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    assert opened(path) in (None, whole[1])
    if seed % 4 < 2:
        assert opened(path) is None
        assert path.read_bytes() == content


SQL = {  # statements, and what is named
    "DELETE FROM events WHERE seq = 5": "event 5",
    "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)": "the events end at",
    "DELETE FROM events WHERE seq > 2": "the events end at 2",
    "UPDATE events SET seq = -9 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 5": "event 3",
    "UPDATE events SET payload = replace(payload, '\"outcome\":1', '\"outcome\":0')": "event",
    "UPDATE events SET kind = 'skip' WHERE kind = 'tell' AND seq > 3": "event 4",
    "UPDATE events SET judge = 'ann' WHERE seq = 4": "event 4",
    "UPDATE events SET time = time + 1 WHERE seq = 6": "event 6",
    "UPDATE events SET payload = CAST(x'ff00ff' AS TEXT) WHERE seq = 4": "",
    "INSERT INTO events SELECT seq + 99, kind, judge, time, payload, digest, '' FROM events": "is",
    "INSERT INTO events SELECT NULL, kind, judge, time, payload, digest, '' FROM events": "is",
    "UPDATE events SET payload = replace(payload, '\"seed\":0', '\"seed\":4')": "event 0",
    "DELETE FROM events WHERE seq = 0": "event 0",
    "DELETE FROM sqlite_sequence": "the events end at",
    "UPDATE leases SET judge = 'ann'": "the lease of question",
    "UPDATE leases SET since = since + 60": "the lease of question",
    "UPDATE leases SET seconds = x'ff'": "the lease of question",
    "UPDATE leases SET question = 3 + question": "the lease of question",
    "UPDATE events SET arrays = NULL": "arrays are not those",
    "UPDATE events SET arrays = x'00' WHERE arrays NOT NULL": "arrays are not those",
    "CREATE TABLE more (x)": "its tables",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END": "its tables",
    "DROP TABLE leases": "its tables",
}


@pytest.mark.parametrize("statements", SQL)
def test_rows_that_were_changed_are_noticed(tmp_path, whole, statements):
    path = tmp_path / "run.db"
    path.write_bytes(whole[0].read_bytes())
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"The journal .* is damaged.*{SQL[statements]}"):
        optimizer(path)
    if "SET arrays" not in statements:  # a history is without
        with pytest.raises(ValueError, match=r"The journal .* is damaged"):
            read_journal(path)
    assert path.read_bytes() == before


def test_what_sqlite_alone_can_see_is_noticed(tmp_path, whole):
    """The file's header counts free pages: no row is concerned."""
    path, content = tmp_path / "run.db", bytearray(whole[0].read_bytes())
    content[36:40] = (7).to_bytes(4, "big")
    path.write_bytes(content)
    for read in (optimizer, read_journal):
        with pytest.raises(ValueError, match=r"is damaged: .*\sMain freelist"):
            read(path)
    assert path.read_bytes() == content


def test_an_event_that_would_not_be_read_again_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Draft("tell", {"duel": [float("nan"), 1]}).as_event(1, "", 0.0)


# --- interrupts -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_interrupts_at_random_instants(tmp_path, kept):
    """Object and journal agree after each, and a call that is made again counts once."""
    path = tmp_path / "run.db" if kept else None
    made, rng = answer(optimizer(path), 4), random.Random(0)
    before, hits = signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    try:
        while hits < 60:
            duel, name = made.ask(), rng.choice(["tell", "skip", "undo", "ask", "recommend"])
            call = {
                "tell": lambda: made.tell(duel, 1),  # noqa: B023
                "skip": lambda: made.skip(duel),  # noqa: B023
                "undo": made.undo,
                "ask": lambda: made.ask(2),
                "recommend": made.recommend,
            }[name]
            seq, scale = (
                made._session.last_state.seq,
                2e-3 if name in ("tell", "skip", "undo") else 0.03,
            )
            while True:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, scale))
                    call()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    break
                except KeyboardInterrupt:
                    hits, scale = hits + 1, 1.3 * scale
                    if name != "recommend" and made._session.state.seq > seq:
                        break  # it was recorded
            signal.setitimer(signal.ITIMER_REAL, 0)
            state = made._session.state
            assert state.seq in ({"recommend": (seq,), "ask": (seq, seq + 1)}.get(name, (seq + 1,)))
            assert len(state.items.values) == len(state.items.rows)
            assert len(state.past) == len(state.answers) + len(state.skipped)
            if len(state.answers) < 3:
                answer(made, 3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if kept:
        again = optimizer(path)
        assert held(again) == held(made)
        np.testing.assert_array_equal(again.ask(3), made.ask(3))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("call", ["tell", "skip", "undo"])
def test_a_call_again_after_an_interrupt_counts_once(tmp_path, monkeypatch, recorded, call):
    made = answer(cheap(tmp_path / "run.db"), 3)
    duel, real = made.ask(), Journal.write_decision

    def interrupted(journal, *parts):
        if recorded:
            real(journal, *parts)
        raise KeyboardInterrupt

    work = {"tell": lambda: made.tell(duel, 1), "skip": lambda: made.skip(duel), "undo": made.undo}
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_decision", interrupted)
        with pytest.raises(KeyboardInterrupt):
            work[call]()
    if recorded:
        with pytest.raises(AlreadyAnswered, match="a call that was interrupted"):
            work[call]()
    else:
        work[call]()
    assert made.n_told_ == {"tell": 4, "skip": 3, "undo": 2}[call]
    assert cheap(tmp_path / "run.db").n_told_ == made.n_told_
    if call != "undo":
        work[call]()  # once more: now it is meant
        assert made._session.state.seq == cheap(tmp_path / "run.db")._session.state.seq
        assert len(made._session.state.past) == 5


def test_who_looks_after_an_interrupt_knows(tmp_path, monkeypatch):
    made = answer(cheap(tmp_path / "run.db"), 3)
    duel, real = made.ask(), Journal.write_decision

    def interrupted(journal, *parts):
        real(journal, *parts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_decision", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.tell(duel, 1)
    assert made.n_told_ == 4
    assert made.tell(duel, 1).n_told_ == 5
