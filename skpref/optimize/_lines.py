"""Journals of lines, as earlier versions wrote them: read, never written, and carried over.

The first line tells the format's version and the configuration. Each line is ``{"crc": ...,
"record": {...}}`` with the CRC-32 of the record's own text.
"""

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skpref._utils import warn
from skpref.optimize._configuration import check_same, completed, renewed
from skpref.optimize._events import (
    UNFIT,
    Reader,
    ask_draft,
    digest_of,
    skip_draft,
    tell_draft,
    undo_draft,
)
from skpref.optimize._journal import Header, Journal
from skpref.optimize._model import Memory
from skpref.optimize._state import Recalled, State

_FORMAT, _VERSION = "skpref-journal", 1
_OPENING = b'{"crc":"'


class Lines:
    """The records of a journal of lines.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ValueError
        If it is none, or damaged; it names the line.
    """

    def __init__(self, path: Path):
        self.path = path
        with path.open("rb") as file:
            if file.read(len(_OPENING)) != _OPENING:
                raise ValueError(f"{path} is not a journal of this package. Give another path.")
            content = _OPENING + file.read()
        self.digest = digest_of(content).hex()
        *lines, rest = content.split(b"\n")
        self.records = [self._parse(line, number) for number, line in enumerate(lines, start=1)]
        if rest:
            last = _parsed(rest)
            if last is not None:  # whole but for its end
                self.records.append(last)
            else:
                warn(
                    f"The last line ({len(lines) + 1}) of the journal {path} is torn and was left "
                    "out: the write was cut off before its call had returned."
                )
        first = self.records[0] if self.records else {}
        if first.get("type") != _FORMAT:
            raise ValueError(f"{path} is not a journal of this package (line 1 says otherwise).")
        if first.get("version") != _VERSION:
            raise ValueError(
                f"The journal {path} has version {first.get('version')!r}; of lines this package "
                f"reads {_VERSION}."
            )

    def _parse(self, line, number):
        record = _parsed(line)
        if record is None:
            raise ValueError(
                f"Line {number} of the journal {self.path} is corrupt: it is not what was written. "
                "Restore the file from a copy, or cut it off before that line to go on from there."
            )
        return record

    @property
    def database(self) -> Path:
        """Where the run goes on."""
        return Path(f"{self.path}.db")


class CarriedOver:
    """A run of lines that goes on in a database beside them, ``<path>.db``.

    Parameters
    ----------
    path : Path
    reader : Reader
    space : Box or Pool
    describe : callable
        ``describe(version)``: the arguments as this run has them.
    seed : int or None
    """

    def __init__(
        self,
        path: Path,
        reader: Reader,
        space: Any,
        describe: Callable[[int], dict],
        seed: int | None,
    ):
        self._lines, self._reader, self._space = Lines(path), reader, space
        self.path = self._lines.database
        first = self._lines.records[0]
        kept, self.seed = first.get("configuration"), first.get("seed")
        if type(kept) is not dict or type(self.seed) is not int or self.seed < 0:
            raise self._unfit(1, "its configuration or seed is missing")
        check_same(completed(renewed(kept, space), 1), describe(1), path)
        if seed is not None and seed != self.seed:
            raise ValueError(
                f"The journal {path} was begun with random_state {self.seed}, now {seed} came. "
                "Pass that one, or None."
            )

    def begin(self, journal: Journal, header: Header, start: State) -> None:
        """Write all events into a new database."""
        header = header._replace(seed=self.seed, source=self._lines.digest)
        if journal.begin(header, lambda: self._events(replace(start, digest=header.digest))):
            warn(
                f"The journal {self._lines.path} is of lines, which are only read: the run goes on "
                f"in {self.path}. Give that path from now on."
            )

    def check(self, header: Header) -> None:
        """Raise unless a database was made from these lines as they are."""
        if header.source != self._lines.digest:
            raise ValueError(
                f"{self.path} holds another run than the lines of {self._lines.path}, or these "
                "have changed since they were carried over. Give the path of the one to go on with."
            )

    def _unfit(self, number, how):
        return ValueError(
            f"Line {number} of the journal {self._lines.path} does not fit the run before it "
            f"({how})."
        )

    def _events(self, state):
        found = []
        for number, record in enumerate(self._lines.records[1:], start=2):
            try:
                draft = _DRAFTS[record["type"]](self, state, record)
                event = draft.event(state, "", 0.0)
                later = self._reader.applied(state, event)
            except UNFIT as error:
                raise self._unfit(number, f"{type(error).__name__}: {error}") from error
            found.append((event, state.recalls().keys() - later.recalls().keys()))
            state = later
        return found

    def _pair(self, items, duel):
        found = []
        for dumped in duel:
            items, index = items.with_kept(self._space.load(dumped), self._space)
            found.append(index)
        first, second = found
        return items, (first, second)

    def _ask(self, state, record):
        items, duels = state.items, []
        for dumped in record["duels"]:
            items, duel = self._pair(items, dumped)
            duels.append(duel)
        if record["counter"] != state.counter + len(duels):
            raise ValueError(f"{record['counter']} questions, not {state.counter + len(duels)}")
        memory = _memory(record["memory"])
        after = replace(state, items=items).asked(duels, "", Recalled(memory))
        return ask_draft(state, after, [], memory, self._space, self._reader.models)

    def _tell(self, state, record):
        items, duel = self._pair(state.items, record["duel"])
        return tell_draft(state, items, duel, record["outcome"], self._space)

    def _skip(self, state, record):
        items, duel = self._pair(state.items, record["duel"])
        return skip_draft(state, items, duel, self._space)

    def _undo(self, state, record):
        return undo_draft()


_DRAFTS = {
    "ask": CarriedOver._ask,
    "tell": CarriedOver._tell,
    "skip": CarriedOver._skip,
    "undo": CarriedOver._undo,
}


def _parsed(line):
    """The record of a line; None if it is not what was written."""
    try:
        held = json.loads(line)
        record = held["record"]
        text = json.dumps(record, separators=(",", ":"), allow_nan=False)
        sound = f"{zlib.crc32(text.encode()):08x}" == held["crc"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if sound and type(record) is dict else None


def _memory(record):
    sites = record["sites"]
    if not isinstance(sites, dict):  # early journals have EP's arrays without their names
        sites = dict(zip(("precision", "shift"), sites, strict=False))
    return Memory(
        np.array(record["theta"], dtype=np.float64),
        record["fitted_at"],
        {name: np.array(part, dtype=np.float64) for name, part in sites.items()},
        np.array(record["margins"], dtype=np.float64),
    )
