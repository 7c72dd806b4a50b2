"""The journal: an SQLite database, one transaction an event, on disk before a call returns.

SQLite's write-ahead log waits for the disk once an event, its rollback journal four times. The
price is that while a process works, and after it was killed, the newest events are in a file
beside, ``-wal``, which the next to open the journal takes in.

Every event holds a checksum of itself and all before it, and ``head`` that of the last, so that a
flipped bit, a lost, doubled or swapped row is noticed where SQLite's own checks see nothing.
"""

import atexit
import ctypes
import json
import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from skpref.optimize._events import Event, chained, digest_of
from skpref.optimize._log import is_broken

APPLICATION, VERSION = 0x736B7072, 2
_SCHEMA = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, "
        "time REAL NOT NULL, payload TEXT NOT NULL, digest BLOB NOT NULL)"
    ),
    "memory": "CREATE TABLE memory (seq INTEGER PRIMARY KEY, arrays BLOB NOT NULL)",
}
_MAGIC = b"SQLite format 3\0"
# Seconds that a write waits for one of another process.
PATIENCE = 60.0
_IN_C = 0.2  # of these, how long at a time without looking at Ctrl-C
_SETTINGS = (
    "synchronous = FULL",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "wal_autocheckpoint = 100",  # pages: the log stays below half a megabyte
)
_NO_JOURNAL = "not a journal of this package. Give another path."
_open: weakref.WeakSet = weakref.WeakSet()
_damaged_files: set = set()


class Header(NamedTuple):
    """What a run is: its configuration as JSON, its seed, and a name that no other run has."""

    configuration: str
    seed: int
    run: str
    source: str = ""

    @property
    def digest(self) -> bytes:
        """Checksum that the first event's builds on."""
        return digest_of(json.dumps(self).encode())


class Journal:
    """The database of a run.

    Parameters
    ----------
    path : str or path-like
    """

    def __init__(self, path: str | os.PathLike):
        self._connection: sqlite3.Connection | None = None
        self._place: Any = None  # of the connection: the process, and the file
        self.path = Path(path).absolute()

    def exists(self) -> bool:
        """Whether there is a database; False if nothing is there, or an empty file.

        Raises
        ------
        ValueError
            If there is something else.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{self.path} is no regular file. Give another path for the journal.")
        if found.st_size == 0 and not Path(f"{self.path}-journal").exists():
            return False
        if (found.st_dev, found.st_ino) in _damaged_files:
            raise self._damaged(
                "so this process found it when it last opened it, and what SQLite then read it "
                "still remembers. To open a restored copy give it another path, or restart Python"
            )
        return self._once(self._is_ours)

    def _is_ours(self, connection):
        mark, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if mark == 0 and not connection.execute("PRAGMA page_count").fetchone()[0]:
            if self.path.stat().st_size == 0:  # its first transaction did not end
                return False
            raise NotADatabase(f"{self.path} is {_NO_JOURNAL}")
        if mark != APPLICATION:
            raise ValueError(
                f"{self.path} is a database of another program, not a journal. Give another path."
            )
        if version != VERSION:
            raise ValueError(
                f"The journal {self.path} has version {version}; this package reads {VERSION}. "
                "Update skpref, or use the version that wrote it."
            )
        return True

    # -- reading -----------------------------------------------------------------------------

    def load(self) -> tuple[Header, list[Event]]:
        """The whole of it, checked.

        Raises
        ------
        ValueError
            If it is damaged.
        OSError
            If it cannot be read.
        """
        return self._once(self._load)

    def _load(self, connection):
        with suppress(sqlite3.OperationalError):  # where it can be, written by nobody meanwhile
            connection.execute("BEGIN IMMEDIATE")
        if not connection.in_transaction:
            connection.execute("BEGIN")
        if is_broken(Path(f"{self.path}-wal")):
            raise self._damaged(
                "events that were recorded in its log, -wal, cannot be read. With the log moved "
                "away the run goes on from an earlier event"
            )
        found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))
        if found != _SCHEMA:
            raise self._damaged(f"its tables are not those of a journal: {sorted(found)}")
        report = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        if report != ["ok"]:
            raise self._damaged("; ".join(map(str, report)))
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        try:
            kept = json.loads(meta["header"])
            header = Header(*kept)
            good = len(meta) == 2 and all(type(each) is str for each in kept[:1] + kept[2:])
            good = good and type(header.seed) is int and header.seed >= 0
        except (KeyError, TypeError, ValueError, RecursionError):
            good = False
        if not good:
            raise self._damaged("its header is not what was written")
        events = self._newer(connection, 0, header.digest)
        connection.rollback()
        with suppress(sqlite3.OperationalError):  # busy, or not writable: as good in another mode
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        return header, events

    def since(self, seq: int, digest: bytes) -> list[Event]:
        """Events after one that is known."""

        def read(connection):
            connection.execute("BEGIN")
            return self._newer(connection, seq, digest)

        return self._once(read)

    def _newer(self, connection, seq, digest):
        head = self._head(connection)
        if head == (seq, digest):
            return []
        if head[0] < seq:
            raise self._replaced(seq)
        if seq and _one(connection, "SELECT digest FROM events WHERE seq = ?", seq) != (digest,):
            raise self._replaced(seq)
        events = [
            Event(*row)
            for row in connection.execute(
                "SELECT e.seq, kind, owner, time, payload, digest, arrays FROM events e "
                "LEFT JOIN memory m ON e.seq = m.seq WHERE e.seq > ? ORDER BY e.seq",
                (seq,),
            )
        ]
        for number, event in enumerate(events, start=seq + 1):
            digest = chained(digest, event.seq, event.kind, event.owner, event.time, event.payload)
            if event.seq != number or event.digest != digest:
                raise self._damaged(f"event {number} is not what was written")
        if head != (seq + len(events), digest):
            raise self._damaged(f"the events end at {seq + len(events)}, not where they should")
        return events

    def _head(self, connection):
        try:
            seq, digest = json.loads(
                _one(connection, "SELECT value FROM meta WHERE key = 'head'")[0]
            )
            return int(seq), bytes.fromhex(digest)
        except (TypeError, ValueError):
            raise self._damaged("its head is not what was written") from None

    # -- writing -----------------------------------------------------------------------------

    def begin(self, header: Header, events: Callable[[], list] = list) -> bool:
        """Make the database, with first events; False if another process was quicker.

        Parameters
        ----------
        header : Header
        events : callable
            Gives the pairs of an event and the memories to forget.
        """

        def make(connection):
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return False
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _SCHEMA.values():
                connection.execute(statement)
            rows = [("header", json.dumps(header)), ("head", _head_text(0, header.digest))]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            for event, forgotten in events():
                self._add(connection, event, forgotten)
            connection.execute("COMMIT")
            return True

        return self._once(make, create=True)

    def change(self, seq: int, digest: bytes, decide: Callable) -> None:
        """Add an event, or not.

        Parameters
        ----------
        seq, digest
            Of the last event that is known.
        decide : callable
            Called with the events after it, while nobody else can write. Returns the event to add
            and the memories that are needed no more, or None. It may be called again.
        """

        def write(connection):
            connection.execute("BEGIN IMMEDIATE")
            wish = decide(self._newer(connection, seq, digest))
            if wish is not None:
                self._add(connection, *wish)
                connection.execute("COMMIT")

        self._once(write)

    def _add(self, connection, event, forgotten):
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", event[:6])
        connection.executemany("DELETE FROM memory WHERE seq = ?", [(k,) for k in forgotten])
        if event.arrays is not None:
            connection.execute("INSERT INTO memory VALUES (?, ?)", (event.seq, event.arrays))
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'head'", (_head_text(event.seq, event.digest),)
        )

    # -- connections -------------------------------------------------------------------------

    def _once(self, work: Callable[[sqlite3.Connection], Any], create: bool = False) -> Any:
        """Do something in a transaction of its own, which is rolled back unless it commits."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection = self._reached(create)
                try:
                    return work(connection)
                finally:
                    connection.rollback()
                    self._place = self._now()
            except sqlite3.Error as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._explained(error) from error
                if time.monotonic() > end:
                    raise TimeoutError(
                        f"The journal {self.path} was being written by another process for "
                        f"{PATIENCE:.0f} s. See what holds it, and try again."
                    ) from error

    def _now(self):
        """The process, the file and its log: what a connection belongs to."""
        return (os.getpid(), _file(self.path), _file(f"{self.path}-wal"))

    def _reached(self, create):
        """A connection to the file that is at the path now, left by no interrupt in the middle."""
        if self._connection is not None and self._place != self._now():
            self.close()
        if self._connection is None:
            uri = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(
                uri, uri=True, timeout=_IN_C, isolation_level=None, check_same_thread=False
            )
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            self._place, self._connection = self._now(), connection
            _open.add(self)
        self._connection.rollback()
        return self._connection

    def close(self) -> None:
        """Let the file go; the next call opens it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._place == self._now():
            connection.close()
        else:
            _abandon(connection)

    def __del__(self):
        self.close()

    def __getstate__(self) -> dict:
        return {"path": self.path, "_connection": None, "_place": None}

    def _explained(self, error):
        code = _code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return NotADatabase(f"{self.path} is {_NO_JOURNAL}")
        if code == sqlite3.SQLITE_NOMEM:
            return MemoryError(f"No memory to read the journal {self.path}.")
        if code == sqlite3.SQLITE_CANTOPEN and not self.path.exists():
            return FileNotFoundError(
                f"The journal {self.path} is not there: it was moved or deleted, or its folder is "
                "missing. Put it back, or make a new optimizer."
            )
        if code in _TROUBLE:
            return OSError(
                f"The journal {self.path} could not be read or written: {error}. The file is as it "
                f"was, and nothing was recorded; {_TROUBLE[code]}, and call again."
            )
        return self._damaged(str(error))

    def _damaged(self, how):
        if self._connection is not None:  # closed, it would write its log into the damaged file
            _abandon(self._connection)
            _damaged_files.add(_file(self.path))
            self._connection = None
        return ValueError(
            f"The journal {self.path} is damaged: {how}. It was left as it is. Restore it "
            "from a copy."
        )

    def _replaced(self, seq):
        return RuntimeError(
            f"The journal {self.path} does not hold the {seq} events that this optimizer knows: "
            "it was replaced by another file. Open a new optimizer on it."
        )


def _file(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _abandon(connection):
    """Leave a connection as it is for good: of a parent, or to a file that is elsewhere now.

    To close it would delete by name a log that belongs to another.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


@atexit.register
def _close_all():
    for journal in list(_open):
        journal.close()


class NotADatabase(ValueError):
    """The file is no SQLite database."""


_TROUBLE = {
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "see whether the disk is full or failing",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "make the file and its folder writable",
    sqlite3.SQLITE_PERM: "make the file and its folder writable",
    sqlite3.SQLITE_AUTH: "make the file and its folder writable",
    sqlite3.SQLITE_TOOBIG: "ask for fewer duels at a time",
    sqlite3.SQLITE_PROTOCOL: "use a disk of this machine",
    sqlite3.SQLITE_NOLFS: "use another file system",
}


def _code(error):
    """SQLite's primary code of an error, None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _one(connection, query, *values):
    return connection.execute(query, values).fetchone()


def _head_text(seq, digest):
    return json.dumps([seq, digest.hex()])
