"""The journal: an SQLite database, one transaction an event, on disk before a call returns.

SQLite keeps its rollback journal beside the file while it writes, not a write-ahead log: that would
wait for the disk once an event and not four times, but the newest events of a run at work, or of
one that was killed, would be in the log alone, and lost with it.

Transactions and the check of its pages are SQLite's, and so is the number of the last event. Every
row holds a checksum of itself. Events say what was asked and answered; leases say which judge has a
pending question, and are replaced as they change. `read_journal` gives the history as a table.
"""

import json
import os
import sqlite3
import stat
import time
from ast import literal_eval
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from skpref._utils import Lease
from skpref.optimize._events import Draft, Event, checksum

# Seconds that a transaction waits for one of another process.
_PATIENCE = 60.0
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
# Application and version, by which SQLite's header tells the file from others.
_FORMAT = 0x736B7072, 6
_SCHEMA = {
    "events": (  # SQLite keeps the largest number that was given by AUTOINCREMENT
        "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, "
        "judge TEXT NOT NULL, time REAL NOT NULL, payload TEXT NOT NULL, digest BLOB NOT NULL, "
        "arrays BLOB)"
    ),
    "leases": (
        "CREATE TABLE leases (question INTEGER PRIMARY KEY, judge TEXT NOT NULL, "
        "since REAL NOT NULL, seconds REAL NOT NULL, digest BLOB NOT NULL)"
    ),
}
_TYPES = (int, str, str, float, str, bytes)  # of an event's columns


class DamagedJournalError(ValueError):
    """The file is not what was written."""


class ReplacedJournalError(RuntimeError):
    """The file is another than the one that was read before."""


class Transaction(NamedTuple):
    """What a transaction writes: an event or none, and all leases."""

    event: Event | None
    leases: dict[int, Lease]


class NoJournal:
    """What keeps the leases of a run that is written nowhere."""

    path = None

    def __init__(self) -> None:
        self._leases: dict[int, Lease] = {}

    def read_since(self, seq: int, digest: bytes) -> tuple[list[Event], dict[int, Lease]]:
        """Return no events, and the leases."""
        return [], self._leases

    def write_decision(self, seq: int, digest: bytes, decide: Callable) -> None:
        """Keep the leases of a transaction."""
        wish = decide([], self._leases)
        if wish is not None:
            self._leases = wish.leases


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
        """Return whether there is a run; False if nothing is there, or an empty file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{self.path} is no regular file. Give another path for the journal.")
        if status.st_nlink > 1:
            raise ValueError(
                f"The journal {self.path} is one file under {status.st_nlink} names (hard links), "
                "and what SQLite keeps beside it goes by one of them. Remove the other names, or "
                "copy the file and give the path of the copy."
            )
        return self._run_transaction(self._holds_run)

    def _holds_run(self, connection):
        """Return whether the database is that of a run; ValueError if it is of something else."""
        connection.execute("BEGIN")  # all three of one moment: somebody may just begin the run
        mark, version, n_pages = (
            _fetch_row(connection, f"PRAGMA {name}")[0]
            for name in ("application_id", "user_version", "page_count")
        )
        if not n_pages and not self.path.stat().st_size:
            return False
        if mark != _FORMAT[0]:
            raise self._not_a_journal_error()
        if version != _FORMAT[1]:
            raise ValueError(
                f"The journal {self.path} has version {version}; this package reads {_FORMAT[1]}. "
                "Use the version of skpref that wrote it, or another path."
            )
        return True

    # -- reading -----------------------------------------------------------------------------

    def load(self) -> list[Event]:
        """Return all events, checked, the first of which says what the run is.

        Raises
        ------
        ValueError
            If the file is damaged.
        OSError
            If it cannot be read.
        """
        return self._run_transaction(self._load)

    def _load(self, connection):
        """Return all events after a check of tables, pages, leases and checksums."""
        connection.execute("BEGIN")
        own = "sql NOT NULL AND name NOT GLOB 'sqlite_*'"
        schema = dict(connection.execute(f"SELECT name, sql FROM sqlite_master WHERE {own}"))
        if schema != _SCHEMA:
            raise self.make_damage_error(f"its tables are not those of a journal: {sorted(schema)}")
        report = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        if report != ["ok"]:
            raise self.make_damage_error("; ".join(map(str, report)))
        self._leases(connection)
        return self._events_after(connection, -1)

    def read_since(self, seq: int, digest: bytes) -> tuple[list[Event], dict[int, Lease]]:
        """Return the events after one that is known, and the leases by number of question."""

        def read(connection):
            connection.execute("BEGIN")
            return self._read_newer(connection, seq, digest)

        return self._run_transaction(read)

    def _read_newer(self, connection, seq, digest):
        """Return the events after one that is known, and the leases, in an open transaction."""
        if _fetch_row(connection, "SELECT digest FROM events WHERE seq = ?", seq) != (digest,):
            raise self._replaced_error(seq)
        return self._events_after(connection, seq), self._leases(connection)

    def _events_after(self, connection, seq):
        """Return the events after a number; DamagedJournalError if one is not what was written."""
        events = [
            Event(*row)
            for row in connection.execute("SELECT * FROM events WHERE seq > ? ORDER BY seq", (seq,))
        ]
        for number, event in enumerate(events, start=seq + 1):
            good = event.seq == number and tuple(map(type, event[:6])) == _TYPES
            if not good or event.digest != checksum(*event[:5]):
                raise self.make_damage_error(f"event {number} is not what was written")
        last = _fetch_row(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        if last != (seq + len(events),):
            raise self.make_damage_error(
                f"the events end at {seq + len(events)}, not where they should"
            )
        return events

    def _leases(self, connection):
        """Return the leases by number of question; DamagedJournalError if one is damaged."""
        leases = {}
        for question, *lease, digest in connection.execute("SELECT * FROM leases"):
            if bytes in map(type, lease) or digest != checksum(question, *lease):
                raise self.make_damage_error(
                    f"the lease of question {question} is not what was written"
                )
            leases[question] = Lease(*lease)
        return leases

    # -- writing -----------------------------------------------------------------------------

    def create_run(self, run: dict) -> None:
        """Make the database of a run, unless another process was quicker."""

        def make(connection):
            connection.execute("BEGIN IMMEDIATE")
            if _fetch_row(connection, "SELECT count(*) FROM sqlite_master")[0]:
                return
            for name, number in zip(("application_id", "user_version"), _FORMAT, strict=True):
                connection.execute(f"PRAGMA {name} = {number}")
            for statement in _SCHEMA.values():
                connection.execute(statement)
            _insert_event(connection, Draft("begin", run).as_event(0, "", time.time()))
            connection.execute("COMMIT")

        self._run_transaction(make, create=True)

    def write_decision(self, seq: int, digest: bytes, decide: Callable) -> None:
        """Write the transaction that a function decides on, while no other process can write.

        Parameters
        ----------
        seq, digest : int, bytes
            The last event that is known, and its checksum.
        decide : callable
            Called with the events after that one and the leases, perhaps several times. It returns
            a `Transaction`, or None.
        """

        def write(connection):
            connection.execute("BEGIN IMMEDIATE")
            wish = decide(*self._read_newer(connection, seq, digest))
            if wish is None:
                return
            if wish.event is not None:
                _insert_event(connection, wish.event)
            rows = [(number, *lease) for number, lease in wish.leases.items()]
            connection.execute("DELETE FROM leases")
            connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?)",
                [(*row, checksum(*row)) for row in rows],
            )
            connection.execute("COMMIT")

        self._run_transaction(write)

    # -- transactions ------------------------------------------------------------------------

    def _run_transaction(
        self, work: Callable[[sqlite3.Connection], Any], create: bool = False
    ) -> Any:
        """Return ``work(connection)``, done in a transaction that is rolled back unless it commits.

        It is tried again while another process writes.
        """
        self._check_rollback_log()
        end = time.monotonic() + _PATIENCE
        name = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        while True:
            try:
                # SQLite waits for a second at a time, in which Ctrl-C is not seen.
                connection = sqlite3.connect(name, uri=True, timeout=1.0, isolation_level=None)
                try:
                    self._configure_connection(connection)
                    return work(connection)
                finally:
                    connection.close()
            except sqlite3.Error as error:
                if _sqlite_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._explain_sqlite_error(error) from error
                if time.monotonic() > end:
                    raise TimeoutError(
                        f"The journal {self.path} was being written by another process for "
                        f"{_PATIENCE:.0f} s. See what holds it, and try again."
                    ) from error

    def _check_rollback_log(self):
        """Raise DamagedJournalError for a rollback log whose database is gone.

        SQLite would delete the log.

        The first transaction of a run has such a log, too, which says that no page was before it.
        """
        log = self.path.with_name(f"{self.path.name}-journal")
        try:
            with log.open("rb") as file:
                n_pages = file.read(20)[16:]  # of the database before the transaction
        except FileNotFoundError:
            return
        if any(n_pages) and not (self.path.exists() and self.path.stat().st_size):
            state = "is empty" if self.path.exists() else "is not there"
            raise DamagedJournalError(
                f"The journal {self.path} {state}, but {log.name} beside it is the log of a "
                "database that was, and a new run would destroy it. Put that database back "
                "under this name; or move the log away, or give another path."
            )

    def _configure_connection(self, connection):
        """Apply the settings to a connection; DamagedJournalError if the schema is malformed."""
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            _fetch_row(connection, "SELECT count(*) FROM sqlite_master")
        except UnicodeDecodeError as error:
            raise self.make_damage_error("its schema is malformed") from error

    # -- errors ------------------------------------------------------------------------------

    def _explain_sqlite_error(self, error):
        """Return the error to raise for one of SQLite's, with what to do."""
        code = _sqlite_code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return self._not_a_journal_error()
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
        return self.make_damage_error(str(error))

    def make_damage_error(self, how: str) -> DamagedJournalError:
        """Return the error of a damaged file."""
        return DamagedJournalError(
            f"The journal {self.path} is damaged: {how}. It was left as it is. Restore it "
            "from a copy."
        )

    def _not_a_journal_error(self):
        """Return the error of a file that is no journal."""
        return DamagedJournalError(
            f"{self.path} is not a journal of this package. Give another path."
        )

    def _replaced_error(self, seq):
        """Return the error of a journal that holds fewer events than were written."""
        return ReplacedJournalError(
            f"The journal {self.path} does not hold the {seq} events that this optimizer knows: "
            "it was replaced by another file. What this optimizer knows can still be looked at; "
            "open a new one to go on with the file."
        )


def _sqlite_code(error):
    """Return SQLite's primary code of an error, None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _fetch_row(connection, query, *values):
    """Return the first row that a query of the database gives."""
    return connection.execute(query, values).fetchone()


def _insert_event(connection, event):
    """Append an event to the database."""
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", event)


# -- history ---------------------------------------------------------------------------------


_COLUMNS = ("seq", "kind", "first", "second", "outcome", "time", "items")
_PEOPLE = ("user", "judge")  # columns of those runs alone that have some


def read_journal(path: str | os.PathLike) -> dict[str, list]:
    """Return the events of a journal as columns, one row for each duel or set.

    Parameters
    ----------
    path : path
        Of a journal.

    Returns
    -------
    dict of str to list
        ``pandas.DataFrame(read_journal(path))`` is a table.

        - ``seq``: number of the event; questions asked together share it.
        - ``kind``: "ask", "tell", "skip", "value" or "undo".
        - ``first``, ``second``: the items of a duel; a dict of the parameters where they have
          names, else the name of a candidate, else a list of features. A choice that is no text,
          number, boolean or None is its ``repr``. None with "undo", and of a set.
        - ``outcome``: of a duel 1 if the first won, 0 if the second did, "tie"; of a set a dict
          with the positions "chosen", "worst", or "ranking" (see `HistoryEntry`); None but for
          "tell", but for a "skip" that told positions "unusable", and but for a "value", which is
          a dict with "value" and "deviation".
        - ``time``: ISO 8601, UTC; None where the clock gave no date (of the years 1 to 9999).
        - ``items``: the list of all items, of a duel or a set, or the one that was
          measured; None with "undo".
        - ``user``: who was asked or answered, if the run has several users; None with "undo".
        - ``judge``: the name of who asked, answered or took back, if some judge has one; None
          without a name.

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
    _, names, rows = _load_history(path)
    return {name: [row[name] for row in rows] for name in names}


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
    run, names, rows = _load_history(path)
    with Path(to).open("x", encoding="utf-8") as file:
        for line in (run, *({name: row[name] for name in names} for row in rows)):
            file.write(json.dumps(line) + "\n")


def _load_history(path):
    """Return the run of a journal, the names of columns, and a row for each event by name."""
    journal = Journal(path)
    if not journal.exists():
        raise FileNotFoundError(f"There is no journal at {journal.path}.")
    beginning, *events = journal.load()
    run = json.loads(beginning.payload)
    rows = _history_as_rows(events, run["configuration"])
    people = [name for name in _PEOPLE if any(row[name] is not None for row in rows)]
    return run, (*_COLUMNS, *people), rows


def _history_as_rows(events: list[Event], configuration: dict) -> list[dict]:
    """Return events as the rows of a table, one for each question and answer."""
    rows: list[dict] = []
    items: list = []
    for event in events:
        values = json.loads(event.payload)
        items += values.get("names") or _label_items(values.get("items", []), configuration)
        questions, users = [values.get("compared", [])], [values.get("user")]
        if event.kind == "ask":
            questions = values["questions"]
            users = values.get("users", [None] * len(questions))
        for question, user in zip(questions, users, strict=True):
            shown = [items[k] for k in question]
            first, second = shown if len(shown) == 2 else (None, None)
            outcome = values.get("outcome")
            if "unusable" in values:
                outcome = {"unusable": [question.index(k) for k in values["unusable"]]}
            row = (
                event.seq,
                event.kind,
                first,
                second,
                outcome,
                _iso_date(event.time),
                shown or None,
            )
            columns = (*_COLUMNS, *_PEOPLE)
            rows.append(dict(zip(columns, (*row, user, event.judge or None), strict=True)))
    return rows


def _iso_date(time):
    """Return seconds since 1970 as text; None if they are no date."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):  # what a clock far off comes to
        return None


def _label_items(items, configuration):
    """Return written items as dicts or lists of the values of their parameters."""
    space = configuration["space"]
    kinds = space if all(type(each) is list and len(each) == 2 for each in space) else []
    named = []
    for values in items:
        if len(kinds) != len(values):  # a pool
            named.append(values)
            continue
        shown = [_parse_choice(value, kind) for value, (_, kind) in zip(values, kinds, strict=True)]
        names = [name for name, _ in kinds]
        named.append(shown if names[0] is None else dict(zip(names, shown, strict=True)))
    return named


def _parse_choice(value, kind):
    """Return a written value of a parameter; of a choice the object that its text stands for."""
    if kind[0] != "choice" or value is None:
        return value
    text = kind[1 + value]
    if text in ("inf", "-inf"):
        return float(text)
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError, RecursionError):
        return text
    return value if isinstance(value, str | int | float | None) else text
