"""The store of votes: one SQLite file, each answer on disk before the next question."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from skpref._utils import Lease

# Application and version, by which SQLite's header tells the file from others.
_FORMAT = 0x736B7076, 1
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE judges (name TEXT PRIMARY KEY, goes_on INTEGER NOT NULL DEFAULT 0);
CREATE TABLE questions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, judge TEXT NOT NULL, items TEXT NOT NULL,
    pair TEXT NOT NULL, repeats INTEGER, state TEXT NOT NULL DEFAULT 'open', since REAL NOT NULL);
CREATE INDEX questions_by_pair ON questions (pair, state);
CREATE INDEX questions_by_judge ON questions (judge, state);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, question INTEGER NOT NULL, outcome TEXT NOT NULL,
    comment TEXT NOT NULL, seconds REAL, time REAL NOT NULL, undone REAL);
CREATE UNIQUE INDEX answers_by_question ON answers (question) WHERE undone IS NULL;
"""
# Seconds for which an open question is withheld from other judges: room for a break, as the
# optimizers have it.
_LEASE_SECONDS = 1800.0


class VoteQuestion(NamedTuple):
    """A question of the store.

    Attributes
    ----------
    number : int
    judge : str
    items : list of int
        Numbers of the items, in the order in which they are shown.
    repeats : int or None
        Number of the question that it repeats.
    """

    number: int
    judge: str
    items: list[int]
    repeats: int | None


class Vote(NamedTuple):
    """An answer that counts, with its question.

    Attributes
    ----------
    question : VoteQuestion
    outcome : int, str or dict
        As `tell` of an optimizer takes it.
    comment : str
    seconds : float or None
        Between the question's appearance and the answer.
    time : float
        Seconds since 1970.
    """

    question: VoteQuestion
    outcome: Any
    comment: str
    seconds: float | None
    time: float


def item_key(items: list[int]) -> str:
    """Return the key of a set of items, whatever their order."""
    return ",".join(map(str, sorted(items)))


class VoteStore:
    """Questions and answers on disk; SQLite's exclusive lock keeps a second server out.

    The system releases that lock when the process ends, however it ends.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ValueError
        If another server has the file, or it is none of this package.
    OSError
        If it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self._connection = sqlite3.connect(
                path, timeout=0.5, isolation_level=None, check_same_thread=False
            )
            for setting in ("locking_mode = EXCLUSIVE", "synchronous = EXTRA"):
                self._connection.execute(f"PRAGMA {setting}")
            with self.transaction():
                self._prepare()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise ValueError(
                    f"got {path}, which another skpref judge has open; one server has a file at a "
                    "time. Open the page of that one, end it, or give another file by --file."
                ) from error
            raise OSError(f"{path} cannot be written: {error}. Give a file by --file.") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"got {path}: {error}. Give another file by --file.") from error

    def _prepare(self):
        """Create the tables of a new file; ValueError unless an old one holds votes."""
        n_tables = self._fetch_value("SELECT count(*) FROM sqlite_master")
        mark = self._fetch_value("PRAGMA application_id"), self._fetch_value("PRAGMA user_version")
        if n_tables and mark != _FORMAT:
            raise ValueError(
                f"got {self.path}, which holds no votes that this version reads. Give another "
                "file by --file."
            )
        if not n_tables:
            for statement in _SCHEMA.split(";"):
                self._connection.execute(statement)
            for name, number in zip(("application_id", "user_version"), _FORMAT, strict=True):
                self._connection.execute(f"PRAGMA {name} = {number}")

    def close(self) -> None:
        """Close the file, which another server may then open."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction: what is written within is on disk at its end, all or nothing."""
        with self._lock:
            if self._depth:  # part of a larger one
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            else:
                self._connection.execute("COMMIT")
            finally:
                self._depth = 0

    def _fetch_rows(self, query: str, *values: Any) -> list[tuple]:
        """Return the rows that a query gives."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def _fetch_value(self, query: str, *values: Any) -> Any:
        """Return the first value that a query gives; None without rows."""
        rows = self._fetch_rows(query, *values)
        return rows[0][0] if rows else None

    # -- settings, items, judges -----------------------------------------------------------

    def keep_setting(self, name: str, value: Any) -> Any:
        """Return the setting that the file has under a name; this value if it had none."""
        with self.transaction():
            self._fetch_rows(
                "INSERT OR IGNORE INTO settings VALUES (?, ?)", name, json.dumps(value)
            )
            return json.loads(self._fetch_value("SELECT value FROM settings WHERE name = ?", name))

    def item_numbers(self, names: list[str]) -> dict[str, int]:
        """Return the number of each item by its name; new items get one."""
        with self.transaction():
            self._connection.executemany(
                "INSERT OR IGNORE INTO items (name) VALUES (?)", [(name,) for name in names]
            )
            return dict(self._fetch_rows("SELECT name, number FROM items"))

    def add_judge(self, name: str) -> None:
        """Add a judge, if unknown."""
        with self.transaction():
            self._fetch_rows("INSERT OR IGNORE INTO judges (name) VALUES (?)", name)

    def judge_names(self) -> list[str]:
        """Return the names of all judges."""
        return [name for (name,) in self._fetch_rows("SELECT name FROM judges ORDER BY name")]

    def is_going_on(self, judge: str) -> bool:
        """Return whether a judge chose to go on after the end."""
        return bool(self._fetch_value("SELECT goes_on FROM judges WHERE name = ?", judge))

    def resume_judge(self, judge: str) -> None:
        """Let a judge go on after the end."""
        with self.transaction():
            self._fetch_rows("UPDATE judges SET goes_on = 1 WHERE name = ?", judge)

    # -- questions -------------------------------------------------------------------------

    def open_questions(self, judge: str) -> list[VoteQuestion]:
        """Return the open questions of a judge, first the one to be shown."""
        return self._fetch_questions("judge = ? AND state = 'open'", judge)

    def _fetch_questions(self, condition: str, *values: Any) -> list[VoteQuestion]:
        """Return the questions that meet a condition of SQL, oldest first."""
        query = f"SELECT number, judge, items, repeats FROM questions WHERE {condition}"
        return list(map(_parse_question, self._fetch_rows(f"{query} ORDER BY number", *values)))

    def add_question(self, judge: str, items: list[int], repeats: int | None = None) -> None:
        """Open a question for a judge."""
        with self.transaction():
            self._fetch_rows(
                "INSERT INTO questions (judge, items, pair, repeats, since) VALUES (?, ?, ?, ?, ?)",
                *(judge, json.dumps(items), item_key(items), repeats, time.time()),
            )

    def renew_leases(self, judge: str) -> None:
        """Renew the leases on the open questions of a judge, so that no other judge gets them.

        Leases that have hardly begun stay, so that who looks again and again writes nothing.
        """
        begin = time.time()
        with self.transaction():
            self._fetch_rows(
                "UPDATE questions SET since = ? "
                "WHERE judge = ? AND state = 'open' AND since NOT BETWEEN ? AND ?",
                *(begin, judge, begin - 0.1 * _LEASE_SECONDS, begin),
            )

    def withdraw_question(self, number: int) -> None:
        """Close a question that cannot be shown any more."""
        with self.transaction():
            self._fetch_rows("DELETE FROM questions WHERE number = ?", number)

    def is_free(self, items: list[int], judge: str) -> bool:
        """Return whether a judge may get items: never asked of this one nor leased to others."""
        asked = self._fetch_rows(
            "SELECT judge, since FROM questions WHERE pair = ? AND (judge = ? OR state = 'open')",
            *(item_key(items), judge),
        )
        return all(
            who != judge and Lease(who, since, _LEASE_SECONDS).is_over(time.time())
            for who, since in asked
        )

    def pending_items(self) -> list[list[int]]:
        """Return the items of all open questions."""
        return [question.items for question in self._fetch_questions("state = 'open'")]

    def asked_keys(self, judge: str) -> set[str]:
        """Return the keys of all questions that a judge has or had."""
        return {
            row[0] for row in self._fetch_rows("SELECT pair FROM questions WHERE judge = ?", judge)
        }

    def count_shown(self) -> dict[int, int]:
        """Return how often each item was shown, by its number."""
        rows = self._fetch_rows(
            "SELECT each.value, count(*) FROM questions, json_each(questions.items) AS each "
            "GROUP BY each.value"
        )
        return dict(rows)

    def repeatable_questions(self, judge: str) -> list[VoteQuestion]:
        """Return questions that a judge answered and that were not repeated, oldest first."""
        return self._fetch_questions(
            "judge = ? AND state = 'answered' AND repeats IS NULL AND number NOT IN "
            "(SELECT repeats FROM questions WHERE judge = ? AND repeats IS NOT NULL)",
            *(judge, judge),
        )

    def count_questions(self, judge: str) -> int:
        """Return how many questions a judge has or had."""
        return self._fetch_value("SELECT count(*) FROM questions WHERE judge = ?", judge)

    # -- answers ---------------------------------------------------------------------------

    def record_answer(self, number: int, outcome: Any, comment: str, seconds: float | None) -> None:
        """Record the answer to an open question; it is on disk at the end of the transaction."""
        with self.transaction():
            self._fetch_rows(
                "INSERT INTO answers (question, outcome, comment, seconds, time) "
                "VALUES (?, ?, ?, ?, ?)",
                *(number, json.dumps(outcome), comment, seconds, time.time()),
            )
            self._fetch_rows("UPDATE questions SET state = 'answered' WHERE number = ?", number)

    def record_skip(self, number: int) -> None:
        """Close an open question without an answer."""
        with self.transaction():
            self._fetch_rows("UPDATE questions SET state = 'skipped' WHERE number = ?", number)

    def reopen_last(self, judge: str) -> bool:
        """Open the last question of a judge again, and return whether there was one."""
        with self.transaction():
            number = self._fetch_value(
                "SELECT max(number) FROM questions WHERE judge = ? AND state != 'open'", judge
            )
            if number is None:
                return False
            self._fetch_rows(
                "UPDATE answers SET undone = ? WHERE question = ? AND undone IS NULL",
                *(time.time(), number),
            )
            self._fetch_rows(
                "UPDATE questions SET state = 'open', since = ? WHERE number = ?",
                *(time.time(), number),
            )
            return True

    def count_votes(self, judge: str | None = None) -> int:
        """Return the number of answers that count, of one judge or of all; no repeats."""
        return self._fetch_value(
            "SELECT count(*) FROM answers JOIN questions ON question = questions.number "
            "WHERE undone IS NULL AND repeats IS NULL AND judge = coalesce(?, judge)",
            judge,
        )

    def votes(self, judge: str | None = None, last: int = -1) -> list[Vote]:
        """Return answers that count, repeats too, in the order in which they came.

        Parameters
        ----------
        judge : str, optional
            Whose; None: of all.
        last : int, default=-1
            How many at most, the last ones; -1: all.
        """
        rows = self._fetch_rows(
            "SELECT questions.number, judge, items, repeats, outcome, comment, seconds, time "
            "FROM answers JOIN questions ON question = questions.number "
            "WHERE undone IS NULL AND judge = coalesce(?, judge) "
            "ORDER BY answers.number DESC LIMIT ?",
            *(judge, last),
        )
        return [
            Vote(_parse_question(row[:4]), json.loads(row[4]), *row[5:]) for row in reversed(rows)
        ]


def _parse_question(row: tuple) -> VoteQuestion:
    """Return the question of a row of number, judge, items and repeats."""
    return VoteQuestion(row[0], row[1], json.loads(row[2]), row[3])
