"""The journal: an SQLite database, one transaction an event, on disk before a call returns.

SQLite keeps its rollback journal beside the file while it writes, not a write-ahead log: that would
wait for the disk once an event and not four times, but the newest events of a run at work, or of
one that was killed, would be in the log alone, and lost with it.

Every event holds a checksum of itself and all before it, and ``head`` that of the last, so that a
flipped bit, a lost, doubled or swapped row is noticed where SQLite's own checks see nothing.
"""

import ctypes
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from skpref.optimize._events import Event, chained, digest_of

NO_JOURNAL = "not a journal of this package. Give another path."
# Seconds that a transaction waits for one of another process.
_PATIENCE = 60.0
_IN_C = 0.2  # of these, how long at a time without looking at Ctrl-C
_SETTINGS = (
    "synchronous = EXTRA",  # the rollback journal's removal, too, is on disk before a call returns
    "trusted_schema = OFF",
    "cell_size_check = ON",
)
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


class NotADatabase(ValueError):
    """The file is no SQLite database."""


class Damaged(ValueError):
    """The file is not what was written."""


class Replaced(RuntimeError):
    """The file is another than the one that was read before."""


class Database:
    """An SQLite file of a journal.

    Parameters
    ----------
    path : str or path-like
        A symbolic link stands for the file that it leads to.
    """

    def __init__(self, path: str | os.PathLike):
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self.path = Path(os.path.realpath(path))

    def once(self, work: Callable[[sqlite3.Connection], Any], create: bool = False) -> Any:
        """Do something in a transaction of its own, which is rolled back unless it commits."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                try:
                    return work(self._opened(create))
                finally:
                    self.close()
            except sqlite3.Error as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._explained(error) from error
                if time.monotonic() > end:
                    raise TimeoutError(
                        f"The journal {self.path} was being written by another process for "
                        f"{_PATIENCE:.0f} s. See what holds it, and try again."
                    ) from error

    def _opened(self, create):
        self.close()  # of a call that an interrupt left before it closed
        self._process = os.getpid()
        self._connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=_IN_C,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            for setting in _SETTINGS:
                self._connection.execute(f"PRAGMA {setting}")
            # Reads the schema, whose faults SQLite reports in their own bytes.
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except UnicodeDecodeError as error:
            raise self.damaged("its schema is malformed") from error
        return self._connection

    def close(self) -> None:
        """End a transaction that did not commit, and let the file go."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            connection.close()
        else:  # of a parent in mid-transaction: closed here, it would be rolled back there
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def __del__(self):
        self.close()

    def __getstate__(self) -> dict:
        return {"path": self.path, "_connection": None, "_process": 0}

    def _explained(self, error):
        code = _code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return NotADatabase(f"{self.path} is {NO_JOURNAL}")
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
        return self.damaged(str(error))

    def damaged(self, how: str) -> Damaged:
        """The error of a damaged file."""
        return Damaged(
            f"The journal {self.path} is damaged: {how}. It was left as it is. Restore it "
            "from a copy."
        )


def _code(error):
    """SQLite's primary code of an error, None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


# Version 3 has ties and sets; the duels of version 2 are written the same way.
APPLICATION, VERSION, READ = 0x736B7072, 3, (2, 3)
_SCHEMA = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, "
        "time REAL NOT NULL, payload TEXT NOT NULL, digest BLOB NOT NULL)"
    ),
    "memory": "CREATE TABLE memory (seq INTEGER PRIMARY KEY, arrays BLOB NOT NULL)",
}
_TYPES = (int, str, str, float, str, bytes)  # of an event's columns


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


class Journal(Database):
    """The database of a run.

    Parameters
    ----------
    path : str or path-like
    """

    def exists(self) -> bool:
        """Whether there is a database; False if nothing is there, or an empty file.

        Raises
        ------
        ValueError
            If there is something else, or what only a part of a journal is.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{self.path} is no regular file. Give another path for the journal.")
        if found is None or found.st_size == 0:
            self._check_no_log()
            if found is None or not Path(f"{self.path}-journal").exists():
                return False
        elif found.st_nlink > 1:
            raise ValueError(
                f"The journal {self.path} is one file under {found.st_nlink} names (hard links), "
                "and what SQLite keeps beside it goes by one of them. Remove the other names, or "
                "copy the file and give the path of the copy."
            )
        return self.once(self._is_ours)

    def _check_no_log(self):
        """SQLite would begin a new database, and delete the log of one that was emptied."""
        log = Path(f"{self.path}-wal")
        if log.exists() and log.stat().st_size:
            raise ValueError(
                f"The journal {self.path} is empty or not there, and beside it is SQLite's log "
                f"{log.name} of a run. Put the file back to go on with that run; to begin a new "
                "one give another path."
            )

    def _is_ours(self, connection):
        mark, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if mark == 0 and not connection.execute("PRAGMA page_count").fetchone()[0]:
            if self.path.stat().st_size == 0:  # its first transaction did not end
                return False
            raise NotADatabase(f"{self.path} is {NO_JOURNAL}")
        if mark != APPLICATION:
            raise ValueError(
                f"{self.path} is a database of another program, not a journal. Give another path."
            )
        if version not in READ:
            raise ValueError(
                f"The journal {self.path} has version {version}; this package reads "
                f"{' and '.join(map(str, READ))}. "
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
        return self.once(self._load)

    def _load(self, connection):
        connection.execute("BEGIN")
        found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))
        if found != _SCHEMA:
            raise self.damaged(f"its tables are not those of a journal: {sorted(found)}")
        report = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        if report != ["ok"]:
            raise self.damaged("; ".join(map(str, report)))
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        try:
            kept = json.loads(meta["header"])
            header = Header(*kept)
            good = len(meta) == 2 and all(type(each) is str for each in kept[:1] + kept[2:])
            good = good and type(header.seed) is int and header.seed >= 0
        except (KeyError, TypeError, ValueError, RecursionError):
            good = False
        if not good:
            raise self.damaged("its header is not what was written")
        events = self._newer(connection, 0, header.digest)
        connection.rollback()
        with suppress(sqlite3.OperationalError):  # busy, or not writable
            # Earlier versions kept a write-ahead log: in the file with it.
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        return header, events

    def since(self, seq: int, digest: bytes) -> list[Event]:
        """Events after one that is known."""

        def read(connection):
            connection.execute("BEGIN")
            return self._newer(connection, seq, digest)

        return self.once(read)

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
            good = event.seq == number and tuple(map(type, event[:6])) == _TYPES
            if good:
                digest = chained(digest, *event[:5])
            if not good or event.digest != digest:
                raise self.damaged(f"event {number} is not what was written")
        if head != (seq + len(events), digest):
            raise self.damaged(f"the events end at {seq + len(events)}, not where they should")
        return events

    def _head(self, connection):
        if self.path.stat().st_size == 0:
            raise self.damaged("it is empty, and held events before")
        try:
            seq, digest = json.loads(
                _one(connection, "SELECT value FROM meta WHERE key = 'head'")[0]
            )
            return int(seq), bytes.fromhex(digest)
        except (TypeError, ValueError):
            raise self.damaged("its head is not what was written") from None

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

        return self.once(make, create=True)

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

        self.once(write)

    def _add(self, connection, event, forgotten):
        if _one(connection, "PRAGMA user_version") != (VERSION,):
            connection.execute(f"PRAGMA user_version = {VERSION}")  # of no use to earlier packages
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", event[:6])
        connection.executemany("DELETE FROM memory WHERE seq = ?", [(k,) for k in forgotten])
        if event.arrays is not None:
            connection.execute("INSERT INTO memory VALUES (?, ?)", (event.seq, event.arrays))
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'head'", (_head_text(event.seq, event.digest),)
        )

    def _replaced(self, seq):
        return Replaced(
            f"The journal {self.path} does not hold the {seq} events that this optimizer knows: "
            "it was replaced by another file. What this optimizer knows can still be looked at; "
            "open a new one to go on with the file."
        )


def _one(connection, query, *values):
    return connection.execute(query, values).fetchone()


def _head_text(seq, digest):
    return json.dumps([seq, digest.hex()])
