"""The history of a run, read from its journal without an optimizer."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from skpref.optimize._events import KINDS, UNFIT, Event, question_of
from skpref.optimize._journal import Journal, NotADatabase
from skpref.optimize._lines import Lines

_COLUMNS = ("seq", "kind", "first", "second", "outcome", "time", "items")


def read_journal(path: str | os.PathLike) -> dict[str, list]:
    """The events of a journal as columns, one row for each duel or set; nothing is written.

    Parameters
    ----------
    path : path
        Of a journal, also one of lines.

    Returns
    -------
    dict of str to list
        ``pandas.DataFrame(read_journal(path))`` is a table.

        - ``seq``: number of the event; questions asked together share it.
        - ``kind``: "ask", "tell", "skip", "undo", or "take" (a process took a pending question
          over from one that had ended).
        - ``first``, ``second``: the items of a duel; a dict of the parameters where they have
          names, else the name of a candidate, else a list of features. A choice is its ``repr``.
          None with "undo", and of a set.
        - ``outcome``: of a duel 1 if the first won, 0 if the second did, "tie"; of a set a dict
          with the positions "chosen", "worst", or "ranking" (see `HistoryEntry`); None but for
          "tell".
        - ``time``: ISO 8601, UTC; None where it was not kept, or the clock gave no date (of the
          years 1 to 9999).
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
    journal, lines = Journal(path), None
    try:
        there = journal.exists()
    except NotADatabase:
        lines = Lines(journal.path)
        carried = Journal(lines.database)
        there = carried.exists()
        if there:
            journal, lines = carried, None
    if not there and lines is None:
        raise FileNotFoundError(f"There is no journal at {journal.path}.")
    header, events = journal.load() if lines is None else (None, [])
    try:
        if lines is not None:
            return _of_lines(lines)
        configuration = json.loads(header.configuration)
        run = {"configuration": configuration, "seed": header.seed}
        return run, _rows(events, configuration)
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
        items += _named([found.get("items", [])], configuration) if names is None else names
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
    """Seconds since 1970 as text; None if they are no date, or 0, which says that none was kept."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat() if time else None
    except (OverflowError, ValueError, OSError):  # what a clock far off comes to
        return None


def _row(seq, kind, items, outcome, when):
    first, second = items if len(items) == 2 else (None, None)
    values = (seq, kind, first, second, outcome, when, items or None)
    return dict(zip(_COLUMNS, values, strict=True))


def _of_lines(lines):
    """The same of records as earlier versions wrote them."""
    first, *records = lines.records
    configuration = first["configuration"]
    rows = []
    for seq, record in enumerate(records, start=1):
        kind = record["type"]
        for duel in record["duels"] if kind == "ask" else [record.get("duel")]:
            pair = [] if duel is None else _named([duel], configuration)
            rows.append(_row(seq, kind, pair, record.get("outcome"), None))
    return {"configuration": configuration, "seed": first["seed"]}, rows


def _named(groups, configuration):
    """Items as they were written, in groups, with the names and choices of their parameters."""
    space = configuration["space"]
    kinds = space if all(type(each) is list and len(each) == 2 for each in space) else []
    found = []
    for values in (item for group in groups for item in group):
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
    return kind[1 + value]
