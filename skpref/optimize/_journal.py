"""The journal: an SQLite database, one transaction an event, on disk before a call returns.

SQLite keeps its rollback journal beside the file while it writes, not a write-ahead log: that would
wait for the disk once an event and not four times, but the newest events of a run at work, or of
one that was killed, would be in the log alone, and lost with it.

Transactions and the check of its pages are SQLite's. Every event holds a checksum of itself and of
the checksum before it, and ``head`` that of the last, so that a flipped bit, a lost, doubled or
swapped row is noticed where SQLite sees nothing. `read_journal` gives the history as a table.
"""

import json
import math
import os
import sqlite3
import stat
import time
from ast import literal_eval
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from skpref.optimize._events import KINDS, UNFIT, Event, chained, digest_of, question_of

# Seconds that a transaction waits for one of another process.
_PATIENCE = 60.0
_IN_C = 0.2  # of these, how long at a time without looking at Ctrl-C
_SETTINGS = (
    "synchronous = EXTRA",  # the rollback journal's removal, too, is on disk before a call returns
    "trusted_schema = OFF",
    "cell_size_check = ON",
)
_RIGHTS = "make the file and its folder writable"
_TROUBLE = {
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "see whether the disk is full or failing",
    sqlite3.SQLITE_READONLY: _RIGHTS,
    sqlite3.SQLITE_CANTOPEN: _RIGHTS,
    sqlite3.SQLITE_PERM: _RIGHTS,
}
_APPLICATION, _VERSION = 0x736B7072, 4
_SCHEMA = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, "
        "time REAL NOT NULL, payload TEXT NOT NULL, digest BLOB NOT NULL)"
    ),
    "memory": "CREATE TABLE memory (seq INTEGER PRIMARY KEY, arrays BLOB NOT NULL)",
}
_TYPES = (int, str, str, float, str, bytes)  # of an event's columns
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # SQLite's rollback journal begins with it


class Damaged(ValueError):
    """The file is not what was written."""


class Replaced(RuntimeError):
    """The file is another than the one that was read before."""


class Header(NamedTuple):
    """What a run is: its configuration as JSON, its seed, and a name that no other run has."""

    configuration: str
    seed: int
    run: str

    @property
    def digest(self) -> bytes:
        """Checksum that the first event's builds on."""
        return digest_of(json.dumps(self).encode())


class Journal:
    """The database of a run.

    It is open during a transaction alone, so that it can be pickled and shared by threads, and a
    forked process has nothing of it open.

    Parameters
    ----------
    path : str or path-like
        A symbolic link stands for the file that it leads to.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(os.path.realpath(path))

    def exists(self) -> bool:
        """Whether there is a run; False if nothing is there, or an empty file."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{self.path} is no regular file. Give another path for the journal.")
        if found.st_nlink > 1:
            raise ValueError(
                f"The journal {self.path} is one file under {found.st_nlink} names (hard links), "
                "and what SQLite keeps beside it goes by one of them. Remove the other names, or "
                "copy the file and give the path of the copy."
            )
        return self._once(self._is_ours)

    def _is_ours(self, connection):
        connection.execute("BEGIN")  # all three of one moment: somebody may just begin the run
        mark, version, n_pages = (
            _one(connection, f"PRAGMA {name}")[0]
            for name in ("application_id", "user_version", "page_count")
        )
        if not n_pages:  # of a file that is shorter than a page, too
            if self.path.stat().st_size == 0:
                return False
            raise self._no_journal()
        if mark != _APPLICATION:
            raise ValueError(
                f"{self.path} is a database of another program, not a journal. Give another path."
            )
        if version != _VERSION:
            raise ValueError(
                f"The journal {self.path} has version {version}; this package reads {_VERSION}. "
                "Use the version of skpref that wrote it, or another path."
            )
        return True

    # -- reading -----------------------------------------------------------------------------

    def load(self) -> tuple[Header, list[Event]]:
        """The whole of it, checked: ValueError if it is damaged, OSError if it cannot be read."""
        return self._once(self._load)

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
            header = Header(*json.loads(meta["header"]))
            good = len(meta) == 2 and tuple(map(type, header)) == (str, int, str)
            good = good and header.seed >= 0
        except (KeyError, TypeError, ValueError, RecursionError):
            good = False
        if not good:
            raise self.damaged("its header is not what was written")
        return header, self._newer(connection, 0, header.digest)

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

    def begin(self, header: Header) -> None:
        """Make the database, unless another process was quicker."""

        def make(connection):
            connection.execute("BEGIN IMMEDIATE")
            if _one(connection, "SELECT count(*) FROM sqlite_master")[0]:
                return
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            for statement in _SCHEMA.values():
                connection.execute(statement)
            rows = [("header", json.dumps(header)), ("head", _head_text(0, header.digest))]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            connection.execute("COMMIT")

        self._once(make, create=True)

    def change(self, seq: int, digest: bytes, decide: Callable) -> None:
        """Add an event, or not, after those that are known up to ``seq``, of that digest.

        ``decide`` is called with the events after these, while nobody else can write. It returns
        the event to add and the memories that are needed no more, or None. It may be called again.
        """

        def write(connection):
            connection.execute("BEGIN IMMEDIATE")
            wish = decide(self._newer(connection, seq, digest))
            if wish is None:
                return
            event, forgotten = wish
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", event[:6])
            connection.executemany("DELETE FROM memory WHERE seq = ?", [(k,) for k in forgotten])
            if event.arrays is not None:
                connection.execute("INSERT INTO memory VALUES (?, ?)", (event.seq, event.arrays))
            head = _head_text(event.seq, event.digest)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'head'", (head,))
            connection.execute("COMMIT")

        self._once(write)

    # -- transactions ------------------------------------------------------------------------

    def _once(self, work: Callable[[sqlite3.Connection], Any], create: bool = False) -> Any:
        """Do something in a transaction of its own, which is rolled back unless it commits."""
        self._check_logs()
        end = time.monotonic() + _PATIENCE
        name = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        while True:
            try:
                connection = sqlite3.connect(name, uri=True, timeout=_IN_C, isolation_level=None)
                try:
                    self._set_up(connection)
                    return work(connection)
                finally:
                    connection.close()
            except sqlite3.Error as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._explained(error) from error
                if time.monotonic() > end:
                    raise TimeoutError(
                        f"The journal {self.path} was being written by another process for "
                        f"{_PATIENCE:.0f} s. See what holds it, and try again."
                    ) from error

    def _check_logs(self):
        """A log of SQLite's whose database is gone is deleted by the next who opens that name.

        The first transaction of a run has such a log, too, which says that no page was before it.
        """
        if _size(self.path):
            return
        for end in ("-wal", "-journal"):
            log = self.path.with_name(self.path.name + end)
            if _is_of_pages(log) and not _size(self.path):
                state = "is empty" if self.path.exists() else "is not there"
                raise Damaged(
                    f"The journal {self.path} {state}, but {log.name} beside it is the log of a "
                    "database that was, and a new run would destroy it. Put that database back "
                    "under this name; or move the log away, or give another path."
                )

    def _set_up(self, connection):
        """Faults of the schema, which is read here, are reported in bytes that may be no text."""
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            _one(connection, "SELECT count(*) FROM sqlite_master")
        except UnicodeDecodeError as error:
            raise self.damaged("its schema is malformed") from error

    # -- errors ------------------------------------------------------------------------------

    def _explained(self, error):
        code = _code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return self._no_journal()
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

    def _no_journal(self):
        return Damaged(f"{self.path} is not a journal of this package. Give another path.")

    def _replaced(self, seq):
        return Replaced(
            f"The journal {self.path} does not hold the {seq} events that this optimizer knows: "
            "it was replaced by another file. What this optimizer knows can still be looked at; "
            "open a new one to go on with the file."
        )


def _size(path):
    """Bytes of a file, 0 if there is none, infinite if that cannot be told."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError:
        return math.inf


def _is_of_pages(log):
    """Whether a file beside a database may hold pages of it (or is not SQLite's at all)."""
    try:
        with log.open("rb") as file:
            start = file.read(20)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if log.name.endswith("-journal") and start[:8] in (_MAGIC, bytes(len(start[:8]))):
        return any(start[16:20])  # pages of the database before the transaction
    return bool(start)


def _code(error):
    """SQLite's primary code of an error, None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _one(connection, query, *values):
    return connection.execute(query, values).fetchone()


def _head_text(seq, digest):
    return json.dumps([seq, digest.hex()])


# -- history ---------------------------------------------------------------------------------


_COLUMNS = ("seq", "kind", "first", "second", "outcome", "time", "items")


def read_journal(path: str | os.PathLike) -> dict[str, list]:
    """The events of a journal as columns, one row for each duel or set; nothing is written.

    Parameters
    ----------
    path : path
        Of a journal.

    Returns
    -------
    dict of str to list
        ``pandas.DataFrame(read_journal(path))`` is a table.

        - ``seq``: number of the event; questions asked together share it.
        - ``kind``: "ask", "tell", "skip", "undo", or "take" (a process took a pending question
          over from one that had ended).
        - ``first``, ``second``: the items of a duel; a dict of the parameters where they have
          names, else the name of a candidate, else a list of features. A choice that is no text,
          number, boolean or None is its ``repr``. None with "undo", and of a set.
        - ``outcome``: of a duel 1 if the first won, 0 if the second did, "tie"; of a set a dict
          with the positions "chosen", "worst", or "ranking" (see `HistoryEntry`); None but for
          "tell".
        - ``time``: ISO 8601, UTC; None where the clock gave no date (of the years 1 to 9999).
        - ``items``: the list of all items, of a duel or a set; None with "undo".
        - ``user``: who was asked or answered, if the run has several users; None with "undo".

    Raises
    ------
    ValueError
        If it is no journal, or damaged.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpref.optimize import HallucinationBelieverOptimizer, read_journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "run.db"
    ...     optimizer = HallucinationBelieverOptimizer([[0.0, 1.0]], journal=path)
    ...     optimizer = optimizer.tell([[0.2], [0.7]], 1).undo()
    ...     table = read_journal(path)
    ...     del optimizer
    >>> table["kind"], table["first"], table["outcome"]
    (['tell', 'undo'], [[0.2], None], [1, None])
    """
    _, rows = _read(path)
    columns = (*_COLUMNS, "user") if any("user" in row for row in rows) else _COLUMNS
    return {name: [row.get(name) for row in rows] for name in columns}


def export_journal(path: str | os.PathLike, to: str | os.PathLike) -> None:
    """Write the history of a journal as lines of JSON; the journal stays as it is.

    Parameters
    ----------
    path : path
        Of a journal.
    to : path
        Of a new file. Its first line holds the configuration and the seed, each further one a row
        of `read_journal`.

    Raises
    ------
    FileExistsError
        If there is a file at ``to``.
    ValueError, OSError
        See `read_journal`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpref.optimize import HallucinationBelieverOptimizer, export_journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, lines = Path(folder) / "run.db", Path(folder) / "run.jsonl"
    ...     optimizer = HallucinationBelieverOptimizer([[0.0, 1.0]], journal=path)
    ...     optimizer = optimizer.tell([[0.2], [0.7]], 1)
    ...     export_journal(path, lines)
    ...     del optimizer
    ...     print(lines.read_text().splitlines()[1][:62])
    {"seq": 1, "kind": "tell", "first": [0.2], "second": [0.7], "o
    """
    run, rows = _read(path)
    with Path(to).open("x", encoding="utf-8") as file:
        for row in (run, *rows):
            file.write(json.dumps(row) + "\n")


def _read(path):
    journal = Journal(path)
    if not journal.exists():
        raise FileNotFoundError(f"There is no journal at {journal.path}.")
    header, events = journal.load()
    try:
        configuration = json.loads(header.configuration)
        return {"configuration": configuration, "seed": header.seed}, _rows(events, configuration)
    except UNFIT as error:
        raise journal.damaged(f"{type(error).__name__}: {error}") from error


def _rows(events: list[Event], configuration: dict) -> list[dict]:
    rows: list[dict] = []
    items: list = []
    for event in events:
        found = json.loads(event.payload)
        if type(found) is not dict or event.kind not in KINDS:
            raise ValueError(f"event {event.seq} is none of a journal")
        names = found.get("names")
        items += _named(found.get("items", []), configuration) if names is None else names
        when = _date(event.time)
        if event.kind == "ask":
            shown = [("take", asked) for asked in found.get("taken", [])]
            shown += [("ask", asked) for asked in found.get("sets") or found["duels"]]
            users = found.get("taken_users", []) + found.get("users", [])
        else:
            shown = [(event.kind, question_of(found))]
            users = [found["user"]] if "user" in found else []
        for kind, asked in shown:
            if not all(type(k) is int and 0 <= k < len(items) for k in asked):
                raise ValueError(f"event {event.seq} is about {asked}, of {len(items)} items")
            row = _row(event.seq, kind, [items[k] for k in asked], found.get("outcome"), when)
            rows.append({**row, "user": users.pop(0)} if users else row)
    return rows


def _date(time):
    """Seconds since 1970 as text; None if they are no date."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):  # what a clock far off comes to
        return None


def _row(seq, kind, items, outcome, when):
    first, second = items if len(items) == 2 else (None, None)
    values = (seq, kind, first, second, outcome, when, items or None)
    return dict(zip(_COLUMNS, values, strict=True))


def _named(items, configuration):
    """Items as they were written, with the names and choices of their parameters."""
    space = configuration["space"]
    kinds = space if all(type(each) is list and len(each) == 2 for each in space) else []
    found = []
    for values in items:
        if len(kinds) != len(values):  # a pool
            found.append(values)
            continue
        shown = [_choice(value, kind) for value, (_, kind) in zip(values, kinds, strict=True)]
        names = [name for name, _ in kinds]
        found.append(shown if names[0] is None else dict(zip(names, shown, strict=True)))
    return found


def _choice(value, kind):
    if kind[0] != "choice":
        return value
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no position of a choice")
    text = kind[1 + value]
    if text in ("inf", "-inf"):
        return float(text)
    try:
        found = literal_eval(text)
    except (ValueError, SyntaxError, RecursionError):
        return text
    return found if isinstance(found, str | int | float | None) else text
