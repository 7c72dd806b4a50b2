"""Connections to an SQLite file: transactions, patience with others, and errors that explain.

Every transaction has a connection of its own, to the file that is at the path now. SQLite's
rollback journal beside it, ``-journal``, exists while a transaction is being written, and after a
crash in it, until the next to open the file takes the transaction back.
"""

import ctypes
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
