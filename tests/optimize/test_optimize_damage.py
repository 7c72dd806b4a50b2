"""Journals that were damaged, and calls that were interrupted: never silently wrong."""

import json
import random
import signal
import sqlite3

import numpy as np
import pytest
from journal_support import answer, cheap, closed, optimizer

from skpref.optimize import AlreadyAnswered, read_journal
from skpref.optimize._events import Draft, chained
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
    state = made._session.known
    memories = [state.recalled.memory, state.base.memory]
    arrays = [
        np.concatenate([part.ravel() for part in (m.theta, m.margins, *m.sites.values())]).tobytes()
        for m in memories
    ]
    return state.seq, state.digest, state.told, state.pending, state.skipped, arrays


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


SQL = [
    "DELETE FROM events WHERE seq = 5",
    "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
    "DELETE FROM events WHERE seq > 2; UPDATE meta SET value = '[2, \"00\"]' WHERE key = 'head'",
    "UPDATE events SET seq = -seq WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 5",
    "UPDATE events SET payload = replace(payload, '\"outcome\":1', '\"outcome\":0')",
    "UPDATE events SET kind = 'skip' WHERE kind = 'tell'",
    "UPDATE events SET payload = CAST(x'ff00ff' AS TEXT) WHERE seq = 4",
    "INSERT INTO events SELECT seq + 100, kind, owner, time, payload, digest FROM events",
    "UPDATE meta SET value = replace(value, '3', '4') WHERE key = 'header'",
    "DELETE FROM meta WHERE key = 'head'",
    "DELETE FROM memory",
    "UPDATE memory SET arrays = (SELECT arrays FROM memory LIMIT 1)",
    "UPDATE memory SET arrays = 'none'",
    "CREATE TABLE more (x)",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
    "DROP TABLE memory",
]


@pytest.mark.parametrize("statements", SQL)
def test_rows_that_were_changed_are_noticed(tmp_path, whole, statements):
    path = tmp_path / "run.db"
    path.write_bytes(whole[0].read_bytes())
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"The journal .* is damaged"):
        optimizer(path)
    if "memory SET" not in statements and "FROM memory" not in statements:
        with pytest.raises(ValueError, match=r"The journal .* is damaged"):
            read_journal(path)
    assert path.read_bytes() == before


def forged(path, change, arrays=None):
    """A journal of one answer and a question after it, whose checksums are right whatever it says.

    The question is changed first.
    """
    made = optimizer(path, n_initial=1)
    duel = made.ask()
    made.tell(duel, 1).ask()
    journal = Journal(closed(made))
    header, events = journal.load()
    connection = sqlite3.connect(path)
    digest = header.digest
    for event in events:
        payload = json.loads(event.payload)
        content = event.arrays
        change(event.kind, payload)
        if event.arrays is not None and arrays is not None:
            content = arrays(event.arrays)
            payload["arrays"] = __import__("hashlib").blake2b(content, digest_size=16).hexdigest()
        text = json.dumps(payload)
        digest = chained(digest, event.seq, event.kind, event.owner, event.time, text)
        connection.execute(
            "UPDATE events SET payload = ?, digest = ? WHERE seq = ?", (text, digest, event.seq)
        )
        connection.execute("UPDATE memory SET arrays = ? WHERE seq = ?", (content, event.seq))
    connection.execute(
        "UPDATE meta SET value = ? WHERE key = 'head'", (json.dumps([len(events), digest.hex()]),)
    )
    connection.commit()
    connection.close()


def setting(kind, name, value):
    return lambda found, payload: payload.update({name: value}) if found == kind else None


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("tell", "outcome", 0.3),
        ("tell", "outcome", True),
        ("tell", "outcome", None),
        ("tell", "duel", [0, 0]),
        ("tell", "duel", [0, 9]),
        ("tell", "duel", [-1, 0]),
        ("tell", "duel", [0]),
        ("ask", "theta", [0.0]),
        ("ask", "theta", [0.0, float("nan"), 0.0]),
        ("ask", "fitted_at", 7),
        ("ask", "items", [[0.5, 2.0], [0.1, 0.1]]),
        ("ask", "taken", [[0, 1]]),
    ],
)
def test_events_that_cannot_be_are_refused_whatever_their_checksums(tmp_path, kind, name, value):
    path = tmp_path / "run.db"
    forged(path, setting(kind, name, value))
    with pytest.raises(ValueError, match="does not fit the run before it"):
        optimizer(path, n_initial=1)


@pytest.mark.parametrize(
    "arrays",
    [
        lambda content: content[:-8],
        lambda content: content + bytes(8),
        lambda content: content[:-8] + np.array([np.nan]).tobytes(),
        lambda content: content[:-8] + np.array([-1.0]).tobytes(),
        lambda content: content.replace(b"[1]", b"[2]"),
        lambda content: content.replace(b"[1]", b"[99999999999999999999]"),
        lambda content: b"[" * 100_000 + content,
        lambda content: b"",
    ],
)
def test_memories_that_cannot_be_are_refused(tmp_path, arrays):
    path = tmp_path / "run.db"
    forged(path, lambda kind, payload: None)
    assert optimizer(path, n_initial=1).n_told_ == 1
    other = tmp_path / "other.db"
    forged(other, lambda kind, payload: None, arrays)
    with pytest.raises(ValueError, match="does not fit the run before it"):
        optimizer(other, n_initial=1)


def test_an_event_that_would_not_be_read_again_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Draft("tell", {"duel": [float("nan"), 1]}).event(_Nothing, "", 0.0)


class _Nothing:
    seq, digest = 0, b""


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
            seq, scale = made._session.known.seq, 2e-3 if name in ("tell", "skip", "undo") else 0.03
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
            assert len(state.past) == len(state.told) + len(state.skipped)
            if len(state.told) < 3:
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
    duel, real = made.ask(), Journal.change

    def interrupted(journal, *parts):
        if recorded:
            real(journal, *parts)
        raise KeyboardInterrupt

    work = {"tell": lambda: made.tell(duel, 1), "skip": lambda: made.skip(duel), "undo": made.undo}
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "change", interrupted)
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
    duel, real = made.ask(), Journal.change

    def interrupted(journal, *parts):
        real(journal, *parts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "change", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.tell(duel, 1)
    assert made.n_told_ == 4
    assert made.tell(duel, 1).n_told_ == 5
