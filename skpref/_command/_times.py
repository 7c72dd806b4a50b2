"""When votes were given, and when a board is of, as the command writes it."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from skpref._utils import Array
from skpref.data import parse_time


class StrengthDrift(NamedTuple):
    """How strengths move.

    Attributes
    ----------
    deviation : float
        Standard deviation of the part that changes, in the unit of the board.
    lengthscale : float
        In days, or units of the times.
    unit_of_time : str
    """

    deviation: float
    lengthscale: float
    unit_of_time: str


@dataclass(frozen=True, kw_only=True)
class BoardTimes:
    """Times of votes and of a board: numbers, or days since 1970-01-01 where they are dates.

    Attributes
    ----------
    column : str
        Of the times.
    first, last : float
        Of the votes.
    board : float
        That of the board.
    dated : bool
        Whether they are dates.
    by_day : bool
        Whether all votes have dates without a time of day.
    zone : bool
        Whether some had a time zone; all are in UTC then.
    """

    column: str
    first: float
    last: float
    board: float
    dated: bool
    by_day: bool
    zone: bool

    @classmethod
    def from_votes(cls, column: str, times: Any, are: str, at: str | None) -> Self:
        """Return the times of votes, of their kind (see `from_votes`), and of ``--at``.

        Raises
        ------
        ValueError
            If ``at`` is a date and the times are numbers, or the other way round.
        """
        times, board = days_since_epoch(times), None if at is None else parse_time(at)
        board_times = cls(
            column=column,
            first=float(times.min()),
            last=float(times.max()),
            board=float(times.max() if board is None else days_since_epoch(board.value)),
            dated=are != "numbers",
            by_day=bool(np.all(times == np.floor(times))),
            zone=are == "dates in UTC",
        )
        if board is not None and board.is_date != board_times.dated:
            kinds = ("a date", "numbers") if board.is_date else ("a number", "dates")
            ends = " to ".join(
                map(board_times.readable_text, (board_times.first, board_times.last))
            )
            raise ValueError(
                f"--at is {at}, {kinds[0]}, but {column!r} holds {kinds[1]}, from {ends}; give one "
                "of the same kind."
            )
        return board_times

    @property
    def unit(self) -> str:
        """Name of one unit of the times."""
        return "days" if self.dated else f"units of {self.column}"

    def iso_text(self, time: float) -> int | float | str:
        """Return a time as programs read it: a number, or a date by ISO 8601."""
        if not self.dated:
            return int(time) if time.is_integer() else time
        if self.by_day and time.is_integer():
            return str(np.datetime64(int(time), "D"))
        return f"{_date_of_days(time)}{'Z' if self.zone else ''}"

    def readable_text(self, time: float) -> str:
        """Return a time as people write it."""
        if not self.dated:
            return f"{time:.10g}"
        if time.is_integer():
            return str(np.datetime64(int(time), "D"))
        return str(_date_of_days(time)).replace("T", " ") + (" UTC" if self.zone else "")

    def table_text(self, iso_text: int | float | str) -> str:
        """Return a time that `iso_text` gave, as short as a column needs it."""
        if isinstance(iso_text, str):
            return iso_text[:10] if self.last - self.first > 1.0 else iso_text.replace("T", " ")
        return f"{iso_text:.10g}"

    def about(self) -> list[str]:
        """Return sentences on when the board is of, and what that means."""
        first, last, board = map(self.readable_text, (self.first, self.last, self.board))
        of = board if self.dated else f"{self.column} {board}"
        if self.board == self.last:
            what = "day" if self.dated and self.last.is_integer() else "time"
            return [f"Strengths are those of {of}, the {what} of the last vote."]
        if self.first <= self.board <= self.last:
            return [f"Strengths are those of {of}; the votes are of {first} to {last}."]
        side, end, others = ("after", f"last vote ({last})", "earlier")
        if self.board < self.first:
            side, end, others = ("before", f"first vote ({first})", "later")
        return [
            f"Strengths are those of {of}, {side} the {end}. They are known from {others} votes "
            f"alone: the farther {side} these, the closer each strength is to its average through "
            "time, and the wider its interval."
        ]


def days_since_epoch(times: Any) -> Array:
    """Return numbers as floats, and dates as days since 1970-01-01."""
    times = np.asarray(times)
    if times.dtype.kind == "M":
        return (times - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    return times.astype(np.float64)


def _date_of_days(days: float) -> np.datetime64:
    """Return the date so many days after 1970-01-01, to the second."""
    seconds = days * (np.timedelta64(1, "D") / np.timedelta64(1, "s"))
    return np.datetime64(round(seconds), "s")
