"""What is done to a journal's file from outside: no answer is lost without an error."""

import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from journal_support import answer, cheap, closed, copied, forked

import skpref
from skpref.optimize import HallucinationBelieverOptimizer, read_journal
from skpref.optimize._events import checksum

pytestmark = pytest.mark.usefixtures("brief")


def n_answers(path):
    return read_journal(path)["kind"].count("tell")


# --- names and places -------------------------------------------------------------------------


def test_the_file_alone_holds_every_answer_whose_call_returned(tmp_path):
    """A run at work may be copied or renamed at any moment: nothing is kept beside the file."""
    made = cheap(tmp_path / "run.db")
    for n in range(1, 6):
        answer(made)
        assert os.listdir(tmp_path) == ["run.db"]
        copy = Path(shutil.copy(tmp_path / "run.db", tmp_path / "copy.db"))
        assert n_answers(copy) == n
        copy.unlink()
    (tmp_path / "run.db").rename(tmp_path / "renamed.db")
    with pytest.raises(FileNotFoundError, match="was moved or deleted"):
        answer(made)
    assert cheap(tmp_path / "renamed.db").n_told_ == made.n_told_ == 5


def test_a_symbolic_link_is_the_file_that_it_leads_to(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir(), other.mkdir()
    link, far = other / "link.db", other / "far.db"
    link.symlink_to(home / "run.db")
    far.symlink_to(link)
    made = answer(cheap(link), 4)  # the link led nowhere yet
    assert n_answers(far) == n_answers(home / "run.db") == 4
    answer(cheap(far), 2)
    assert made.n_told_ == cheap(home / "run.db").n_told_ == 6
    link.unlink()
    link.symlink_to(other / "elsewhere.db")  # a run stays with its file
    assert answer(made).n_told_ == cheap(home / "run.db").n_told_ == 7
    assert sorted(os.listdir(other)) == ["far.db", "link.db"]


def test_a_crash_is_taken_back_also_through_a_link(tmp_path, torn):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link.db"
    link.symlink_to(torn.path)
    assert n_answers(link) == torn.n_told
    assert torn.path.read_bytes() == torn.content


def test_a_second_name_of_the_file_is_refused(tmp_path):
    made = answer(cheap(tmp_path / "run.db"), 3)
    os.link(tmp_path / "run.db", tmp_path / "other.db")
    for path in (tmp_path / "run.db", tmp_path / "other.db"):
        for opened in (cheap, read_journal):
            with pytest.raises(ValueError, match=r"under 2 names \(hard links\).*Remove the other"):
                opened(path)
    answer(made)  # the run that had it before goes on
    shutil.copy(tmp_path / "other.db", tmp_path / "copy.db")
    (tmp_path / "other.db").unlink()
    assert cheap(tmp_path / "run.db").n_told_ == cheap(tmp_path / "copy.db").n_told_ == 4


# --- emptied, replaced, gone ------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 8192])
def test_a_file_that_is_cut_off_in_mid_run_takes_no_more_answers(tmp_path, size):
    made = answer(cheap(tmp_path / "run.db"), 4)
    question, history = made.ask(), [str(each) for each in made.history_]
    os.truncate(tmp_path / "run.db", size)
    content = (tmp_path / "run.db").read_bytes()
    for call in (lambda: made.tell(question, 1), lambda: made.ask(3), made.undo):
        with pytest.raises(ValueError, match=r"is damaged|is not a journal") as caught:
            call()
        assert size or "no such table: events" in str(caught.value)
    # What was told is still there to look at, and the file is as it was found.
    assert [str(each) for each in made.history_] == history
    assert (tmp_path / "run.db").read_bytes() == content


def test_a_file_that_was_overwritten_takes_no_more_answers(tmp_path):
    made = answer(cheap(tmp_path / "run.db"), 4)
    question, early = made.ask(), copied(tmp_path / "run.db", tmp_path)
    longer = closed(answer(cheap(tmp_path / "longer.db", seed=1), 9))
    answer(made)
    for other in (longer, early):
        shutil.copyfile(other, tmp_path / "run.db")  # in place: the file is the same to the system
        with pytest.raises(RuntimeError, match="replaced by another file"):
            made.tell(question, 1)
        assert made.n_told_ == len(made.history_) == 5
        assert (tmp_path / "run.db").read_bytes() == other.read_bytes()


@pytest.mark.parametrize("gone", [True, False], ids=["missing", "empty"])
def test_a_log_whose_database_is_gone_is_not_destroyed(tmp_path, torn, gone):
    """SQLite deletes it when a file of that name is begun: what it holds would be lost."""
    path, log = tmp_path / "run.db", tmp_path / "run.db-journal"
    log.write_bytes(torn.journal)
    if not gone:
        path.touch()
    state = "is not there" if gone else "is empty"
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{state}, but run.db-journal beside it is the log"):
            cheap(path)
        assert log.read_bytes() == torn.journal
        assert path.exists() != gone
    path.write_bytes(torn.torn)  # what the message advises
    assert cheap(path).n_told_ == torn.n_told


def test_a_beginning_that_was_cut_off_is_begun_again(tmp_path):
    """The log of a run's first transaction has no page of before to give back."""
    source, path = tmp_path / "other.db", tmp_path / "run.db"
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE meta (key)")
    connection.executemany("INSERT INTO meta VALUES (?)", [("x" * 5000,)] * 9)
    journal = Path(f"{source}-journal").read_bytes()
    connection.rollback()
    connection.close()
    assert len(journal) > 20
    path.touch()
    for content in (journal, bytes(len(journal)), journal[:12]):
        (tmp_path / "run.db-journal").write_bytes(content)
        path.write_bytes(b"")
        assert answer(cheap(path)).n_told_ == 1


# --- crashes in mid-transaction ---------------------------------------------------------------


class Torn:
    """A file half of whose transaction is written, and SQLite's journal that takes it back."""

    def __init__(self, folder):
        self.n_told = 6
        source = closed(answer(cheap(folder / "whole.db"), self.n_told))
        self.content, self.path = source.read_bytes(), folder / "torn.db"
        self.beside = folder / "torn.db-journal"
        connection = sqlite3.connect(source, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE events SET payload = '{\"outcome\":0}' || payload")
        connection.execute("UPDATE leases SET judge = judge || ' '")
        for end in ("", "-journal"):
            shutil.copy(f"{source}{end}", f"{self.path}{end}")
        connection.rollback()
        connection.close()
        assert self.path.read_bytes() != self.content
        self.torn, self.journal = self.path.read_bytes(), self.beside.read_bytes()


@pytest.fixture
def torn(tmp_path):
    return Torn(tmp_path)


def test_a_transaction_that_was_cut_off_is_taken_back(torn):
    assert cheap(torn.path).n_told_ == torn.n_told
    assert torn.path.read_bytes() == torn.content
    assert not torn.beside.exists()


def test_a_damaged_rollback_is_noticed_or_harmless(torn):
    """Bits flipped in SQLite's journal, the journal cut off, and none: the run, or an error."""
    rng, found = np.random.default_rng(0), {"whole": 0, "error": 0}
    for k in range(30):
        journal = bytearray(torn.journal)
        if k % 3 == 0:
            del journal[rng.integers(len(journal)) :]
        else:
            journal[rng.integers(len(journal))] ^= 1 << rng.integers(8)
        torn.path.write_bytes(torn.torn)
        torn.beside.write_bytes(journal if k else b"")
        try:
            assert cheap(torn.path).n_told_ == torn.n_told
            assert torn.path.read_bytes() == torn.content or k % 3
            found["whole"] += 1
        except ValueError as error:
            assert "is damaged" in str(error)
            found["error"] += 1
        torn.beside.unlink(missing_ok=True)
    assert min(found.values()) > 3


def test_a_child_does_not_end_the_transaction_of_its_parent(tmp_path):
    """Forked within one, as by a kernel that computes in processes; their children end at once."""
    made = answer(cheap(tmp_path / "run.db"), 2)
    journal, question = made._session._journal, made.ask()
    before = (tmp_path / "run.db").read_bytes()
    children = []

    def forking():  # while the event is written
        children.append(forked(lambda writer: cheap(tmp_path / "run.db").n_told_))
        return 0.0

    made._session.clock = forking
    assert made.tell(question, 1).n_told_ == 3
    assert children == [(b"", 0)]
    assert (tmp_path / "run.db").read_bytes() != before
    assert n_answers(journal.path) == 3
    assert cheap(tmp_path / "run.db").n_told_ == 3


LIMITED = """
import resource, sys
from journal_support import answer, cheap
made = answer(cheap(sys.argv[1]), 3)
told, failed = 3, 0
for limit in range(0, 24_577, 2048):
    question = made.ask()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        made.tell(question, 1)
        told += 1
    except OSError as error:
        assert "nothing was recorded" in str(error), error
        failed += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert made.n_told_ == told == cheap(sys.argv[1]).n_told_
print(told, failed)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_byte_loses_nothing(tmp_path):
    """As limits on the size of files, also of SQLite's journal, beyond which writing fails."""
    folders = [str(Path(skpref.__file__).parents[1]), str(Path(__file__).parents[1])]
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "run.db")],
        env={"PYTHONPATH": ":".join(folders), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    told, failed = map(int, found.stdout.split())
    assert told > 5
    assert failed > 5


# --- rights -----------------------------------------------------------------------------------


@contextmanager
def without_rights(folder, *paths):
    """Nobody may write there, and this process is nobody in particular."""
    me = os.geteuid()
    folder.chmod(0o555)
    for path in paths:
        path.chmod(0o444)
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if me == 0:
            os.seteuid(0)
        folder.chmod(0o755)
        for path in paths:
            path.chmod(0o644)


@pytest.mark.parametrize("what", ["folder", "folder and file"])
def test_rights_that_are_lost_in_mid_run_lose_nothing(what):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "run.db"
        made = answer(cheap(path), 3)
        question, before = made.ask(), path.read_bytes()
        with without_rights(folder, *([path] if "file" in what else [])):
            with pytest.raises(OSError, match="make the file and its folder writable"):
                made.tell(question, 1)
            assert made.n_told_ == cheap(path).n_told_ == n_answers(path) == 3  # to be read it is
            assert path.read_bytes() == before
        assert made.tell(question, 1).n_told_ == 4


# --- what cannot have been written ------------------------------------------------------------


def forged(path, **columns):
    """A journal whose events have other columns, and checksums that fit them where they can."""
    journal = answer(cheap(path), 2)._session._journal
    connection = sqlite3.connect(path)
    for event in journal.load()[1:]:
        new = event._replace(**columns)
        digest = event.digest if bytes in map(type, new[:5]) else checksum(*new[:5])
        connection.execute(
            "UPDATE events SET (kind, judge, time, payload, digest) = (?, ?, ?, ?, ?) "
            "WHERE seq = ?",
            (*new[1:5], digest, event.seq),
        )
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("time", [1e18, -1e18, math.inf, -math.inf, -62_167_219_200.0 - 1e5, 1e300])
def test_a_clock_that_gave_no_date_hides_no_answer(tmp_path, time):
    table = read_journal(forged(tmp_path / "run.db", time=time))
    assert table["time"] == [None] * 4
    assert table["kind"] == ["ask", "tell"] * 2
    assert cheap(tmp_path / "run.db").n_told_ == 2


@pytest.mark.parametrize(
    "columns",
    [
        {"payload": b"\0\1"},
        {"kind": b"ask"},
        {"judge": b"me"},
        {"time": "noon"},
    ],
)
def test_events_that_cannot_be_are_damage_to_every_reader(tmp_path, columns):
    path = forged(tmp_path / "run.db", **columns)
    for opened in (cheap, read_journal):
        with pytest.raises(ValueError, match=r"The journal .* is damaged"):
            opened(path)


@pytest.mark.parametrize("text", ["ff", "fffe", "c328"])
@pytest.mark.parametrize("column", ["type", "name", "tbl_name", "sql"])
def test_a_schema_that_is_no_text_is_damage(tmp_path, column, text):
    path = closed(answer(cheap(tmp_path / "run.db"), 2))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        f"UPDATE sqlite_master SET {column} = CAST(x'{text}' AS TEXT) WHERE name = 'leases'"
    )
    connection.commit()
    connection.close()
    before = path.read_bytes()
    for opened in (cheap, read_journal):
        with pytest.raises(ValueError, match=r"The journal .* is damaged"):
            opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("values", [[2**53, 2**53 + 2], [1, 2**60], [1, 10**400], [0.1, 2]])
def test_ordered_values_are_told_apart_as_they_are(tmp_path, values):
    def made(values):
        return HallucinationBelieverOptimizer(
            {"k": values}, journal=tmp_path / "run.db", random_state=0
        )

    optimizer = made(values)
    optimizer.tell(optimizer.ask(), 1)
    assert made(values).history_ == optimizer.history_
    for k, change in ((0, 1), (1, 1)):
        other = list(values)
        other[k] += change
        with pytest.raises(ValueError, match="belongs to another configuration"):
            made(other)


@pytest.mark.parametrize("make", [Fraction, Decimal])
def test_numbers_of_other_kinds_are_choices(tmp_path, make):
    values = [make(1) / make(k) for k in (3, 2, 1)]

    def made():
        return HallucinationBelieverOptimizer(
            {"k": values}, journal=tmp_path / "run.db", random_state=0
        )

    first = made()
    for _ in range(2):
        first.tell(first.ask(), 1)
    assert made().history_ == first.history_
    assert {each["k"] for duel, _ in first.history_ for each in duel} <= set(values)
