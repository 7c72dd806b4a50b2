"""When answers were given: numbers or dates, as a column of the items' rows."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.data._containers import beyond_doubles, exact_array, is_missing, one_each, refuse_rows
from skpref.data._sets import first_item_places, number_members

# What times are: numbers in a unit of the user's, dates without a time zone, instants with one.
_NUMBERS, _DATES, _INSTANTS = "numbers", "dates without a time zone", "times with a time zone"
_TIME_TYPES = (Real, date, np.datetime64)
_ALLOWED = (
    "numbers in a unit of your own, or dates: numpy.datetime64, datetime objects, a pandas Series "
    "or DatetimeIndex"
)


class AnswerTimes(NamedTuple):
    """When answers were given.

    Attributes
    ----------
    kind : str
        "numbers", "dates without a time zone" or "times with a time zone".
    values : ndarray of shape (n,)
        Numbers as float64, as Python's own where doubles would round integers; dates as int64,
        microseconds since 1970-01-01 (UTC, where there were zones).
    """

    kind: str
    values: NDArray[Any]

    @classmethod
    def read(cls, time: Any, n: int, noun: str = "answers") -> Self:
        """Return times, one for each of n rows of X; ValueError for others.

        Parameters
        ----------
        time : array-like of shape (n,), or a scalar
        n : int
        noun : str, default="answers"
            What these are, for errors.

        Raises
        ------
        ValueError
            If they are neither numbers nor dates, mixed, missing, infinite, or not so many.
        """
        kind, values = _parse_times(time)
        values = one_each(values, n, "times", noun)
        refuse_rows(
            ~np.isfinite(values.astype(np.float64) if values.dtype.kind == "O" else values),  # NaT
            f"time is missing or infinite (NaN, NaT, None) in {{count}} of {n} places, first in "
            "row {row}. Leave these rows out, or give them a time.",
        )
        if kind != _NUMBERS:
            values = values.astype("datetime64[us]").astype(np.int64)
        return cls(kind, values)


@dataclass(frozen=True)
class TimeAxis:
    """How times of the user's stand in the last column of the items' rows.

    Numbers keep their unit, dates count in days; both are relative to the first of training. Dates
    with a time zone are taken as UTC.

    Attributes
    ----------
    kind : str
        "numbers", "dates without a time zone" or "times with a time zone".
    origin : float or int
        The first time of training: a number, or microseconds since 1970-01-01.
    now : float
        What stands for a time that is not given, relative to the origin: the last of training.
    """

    kind: str
    origin: float | int
    now: float = 0.0

    @classmethod
    def from_times(cls, times: AnswerTimes) -> tuple[Self, Array]:
        """Return the axis of the times of a fit, and the times relative to its origin."""
        values = times.values
        origin = values.min() if len(values) else values.dtype.type(0)
        relative = _subtract_origin(times, origin)
        axis = origin if isinstance(origin, int) else float(origin)
        return cls(times.kind, axis, float(relative.max(initial=0.0))), relative

    def to_relative(self, times: AnswerTimes) -> Array:
        """Return times of a query relative to the origin, shape (n,).

        Raises
        ------
        ValueError
            If they are of another kind than those of the fit.
        """
        if times.kind != self.kind:
            raise ValueError(
                f"time holds {times.kind}, but the model was fitted on {self.kind}. Give times of "
                "the same kind."
            )
        return _subtract_origin(
            times, self.origin if self.kind == _NUMBERS else np.int64(self.origin)
        )

    def until(self, relative: Array) -> Self:
        """Return the same axis with ``now`` moved on to the last of these relative times."""
        return replace(self, now=max(self.now, float(relative.max(initial=self.now))))

    def at(self, time: Any) -> Self:
        """Return the axis with one time of the user's as ``now``; ValueError as `relative`."""
        return replace(self, now=float(self.to_relative(AnswerTimes.read(time, 1, "time"))[0]))

    def times(self, relative: Array) -> NDArray[Any]:
        """Return relative times as the user has them: floats, or datetime64 (zones become UTC).

        Whole times beyond 2**53 are integers, as floats would round them.
        """
        shift = np.asarray(relative, dtype=np.float64)
        if self.kind != _NUMBERS:
            microseconds = np.rint(shift * (np.timedelta64(1, "D") / np.timedelta64(1, "us")))
            return (np.int64(self.origin) + microseconds.astype(np.int64)).astype("datetime64[us]")
        if isinstance(self.origin, int) and np.array_equal(shift, np.rint(shift)):
            whole = [self.origin + int(each) for each in shift.reshape(-1).tolist()]
            return np.array(whole).reshape(shift.shape)
        return shift + self.origin


def rows_of_answers(
    rows: Array, sets: NDArray[np.intp], columns: Array
) -> tuple[Array, NDArray[np.intp]]:
    """Return a row for each item of each answer, which ends with columns of the answer.

    Parameters
    ----------
    rows : ndarray of shape (n_items, n_features)
    sets : ndarray of int of shape (n_answers, k)
        Rows of the items of each answer, -1 where there is none.
    columns : ndarray of shape (n_answers, m)
        Such as the time of each answer.

    Returns
    -------
    rows : ndarray of shape (n, n_features + m)
    sets : ndarray of shape (n_answers, k)
    """
    present = sets >= 0
    of_items = np.repeat(columns, present.sum(axis=1), axis=0)
    return np.hstack([rows[sets[present]], of_items]), number_members(~present)


def rows_by_order(
    rows: Array, sets: NDArray[np.intp], order: NDArray[np.int8] | None
) -> tuple[Array, NDArray[np.intp]]:
    """Return a row for each item of each answer, which ends with whether it was shown first.

    Parameters
    ----------
    rows, sets
        As in `rows_of_answers`.
    order : ndarray of int8 of shape (n_answers,) or None
        1 the first item, −1 the second of two, 0 none; None: always the first.

    Returns
    -------
    rows : ndarray of shape (n, n_features + 1)
    sets : ndarray of shape (n_answers, k)
    """
    n = len(sets)
    shown = np.ones(n, dtype=np.int8) if order is None else order
    rows, sets = rows_of_answers(rows, sets, np.zeros((n, 1)))
    place = np.where(shown < 0, 1, first_item_places(sets))
    rows[sets[np.arange(n), place], -1] = shown != 0
    return rows, sets


def _subtract_origin(times, origin):
    """Return times less the origin: differences of numbers, or days between dates."""
    shift = times.values - origin
    if times.kind == _NUMBERS:
        return shift.astype(np.float64)
    return shift.astype("timedelta64[us]") / np.timedelta64(1, "D")


def _parse_times(time):
    """Return the kind of times of any shape, and their values: floats, integers or datetime64."""
    zone = getattr(getattr(time, "dtype", None), "tz", None)  # of pandas
    if zone is not None:
        return _INSTANTS, getattr(time, "dt", time).tz_convert(None).to_numpy()
    zoned = getattr(getattr(time, "dtype", None), "time_zone", None) is not None  # of polars
    if not isinstance(time, list | tuple | range):
        time = exact_array(time)
    values = np.asarray(time)
    if values.dtype.kind == "M":
        return _INSTANTS if zoned else _DATES, values
    if values.dtype.kind in "iuf" and not beyond_doubles(values):
        return _NUMBERS, values.astype(np.float64)
    if values.dtype.kind not in "iufO":
        raise _no_times_error(values.reshape(-1).tolist())
    return _parse_objects(np.asarray(time, dtype=object))


class ParsedTime(NamedTuple):
    """One time, parsed.

    Attributes
    ----------
    value : int, float or datetime64
        A number as it is; a date in UTC if it had a time zone.
    has_zone : bool
    """

    value: Any
    has_zone: bool = False

    @property
    def is_date(self) -> bool:
        """Whether the time is a date, and no number."""
        return isinstance(self.value, np.datetime64)


def parse_time(value: Any) -> ParsedTime:
    """Return one time parsed: a number, a date of any library, or a text of either.

    Raises
    ------
    ValueError
        If the value is neither a number nor a date.
    """
    if isinstance(value, str):
        with suppress(ValueError):
            return ParsedTime(float(value))
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, np.datetime64):
        return ParsedTime(value)
    if isinstance(value, date):
        has_zone = isinstance(value, datetime) and value.utcoffset() is not None
        if hasattr(value, "to_datetime64"):  # of pandas, to the nanosecond
            return ParsedTime(value.to_datetime64(), has_zone)
        if isinstance(value, datetime) and has_zone:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return ParsedTime(np.datetime64(value), has_zone)
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        return ParsedTime(int(value) if isinstance(value, Integral) else float(value))
    raise ValueError(f"got {value!r} as a time; give a number or a date.")


def _parse_all(cells: list) -> tuple[list[Any], str]:
    """Return times that are not missing, parsed, and their kind; ValueError for several kinds."""
    if not all(isinstance(cell, _TIME_TYPES) and not isinstance(cell, bool) for cell in cells):
        raise _no_times_error(cells)
    times = list(map(parse_time, cells))
    kinds = {(time.is_date, time.has_zone) for time in times}
    if {(True, False), (True, True)} <= kinds:
        raise ValueError(
            "time mixes dates with a time zone and dates without one, which are not the same hour "
            "everywhere. Give all of them a time zone, or none."
        )
    if len(kinds) > 1:
        raise _no_times_error(cells)
    is_date, has_zone = kinds.pop() if kinds else (False, False)
    kind = (_INSTANTS if has_zone else _DATES) if is_date else _NUMBERS
    return [time.value for time in times], kind


def _parse_objects(values):
    """Return the kind of times in an array of Python objects, and their values in its shape."""
    cells = values.reshape(-1).tolist()
    gaps = np.array([is_missing(cell) for cell in cells], dtype=bool)
    times, kind = _parse_all([cell for cell in cells if not is_missing(cell)])
    array = np.full(len(cells), np.nan if kind == _NUMBERS else np.datetime64("NaT", "us"))
    array[~gaps] = times
    if all(isinstance(time, int) for time in times) and beyond_doubles(array):
        array = array.astype(object)
        array[~gaps] = times
    return kind, array.reshape(values.shape)


def _no_times_error(values):
    """Return the error of values that are no times."""
    some = ", ".join(list(dict.fromkeys(map(repr, values)))[:3])
    has_texts = any(isinstance(value, str) for value in values)
    advice = " Texts become dates by pandas.to_datetime." if has_texts else ""
    return ValueError(f"time must be {_ALLOWED}; got values such as [{some}].{advice}")
