"""Connections to an SQLite file: transactions, patience with others, and errors that explain.

A connection stays open between calls, as the write-ahead log is merged into the file by the last
to close it. It is left alone for good where closing could harm: in a forked child, and where the
file or its log were replaced by others.
"""

import atexit
import ctypes
import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

NO_JOURNAL = "not a journal of this package. Give another path."
# Seconds that a write waits for one of another process.
_PATIENCE = 60.0
_IN_C = 0.2  # of these, how long at a time without looking at Ctrl-C
_SETTINGS = (
    "synchronous = FULL",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "wal_autocheckpoint = 100",  # pages: the log stays below half a megabyte
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
_open: weakref.WeakSet = weakref.WeakSet()
_damaged_files: set = set()


class NotADatabase(ValueError):
    """The file is no SQLite database."""


class Database:
    """An SQLite file of a journal.

    Parameters
    ----------
    path : str or path-like
    """

    def __init__(self, path: str | os.PathLike):
        self._connection: sqlite3.Connection | None = None
        self._place: Any = None
        self.path = Path(path).absolute()

    def once(self, work: Callable[[sqlite3.Connection], Any], create: bool = False) -> Any:
        """Do something in a transaction of its own, which is rolled back unless it commits."""
        end = time.monotonic() + _PATIENCE
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
                        f"{_PATIENCE:.0f} s. See what holds it, and try again."
                    ) from error

    def _may_write(self):
        return os.access(self.path.parent, os.W_OK)

    def _now(self):
        """The process, the file and its log: what a connection belongs to."""
        return (os.getpid(), _file(self.path), _file(f"{self.path}-wal"))

    def _reached(self, create):
        """A connection to the file that is at the path now, left by no interrupt in the middle."""
        if self._connection is not None and self._place != self._now():
            self.close()
        if self._connection is None:
            uri = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
            if not (create or self._may_write() or Path(f"{self.path}-wal").exists()):
                uri += "&immutable=1"  # all else would make files beside it
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

    def damaged(self, how: str) -> ValueError:
        """The error of a damaged file, which is not written to from now on."""
        if self._connection is not None:  # closed, it would write its log into the damaged file
            _abandon(self._connection)
            _damaged_files.add(_file(self.path))
            self._connection = None
        return ValueError(
            f"The journal {self.path} is damaged: {how}. It was left as it is. Restore it "
            "from a copy."
        )

    def check_unharmed(self) -> None:
        """Raise if this process found the file damaged before: SQLite still has it in mind."""
        if _file(self.path) in _damaged_files:
            raise self.damaged(
                "so this process found it when it last opened it, and what SQLite then read it "
                "still remembers. To open a restored copy give it another path, or restart Python"
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


def _code(error):
    """SQLite's primary code of an error, None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
