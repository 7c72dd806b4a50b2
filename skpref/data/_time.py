"""When answers were given: numbers or dates, as a column of the items' rows."""

from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.data._containers import beyond_doubles, exact_array, is_missing
from skpref.data._sets import numbered

# What times are: numbers in a unit of the user's, dates without a time zone, instants with one.
_NUMBERS, _DATES, _INSTANTS = "numbers", "dates without a time zone", "times with a time zone"
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")
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
    def read(cls, time: Any, n: int, what: str = "answers") -> Self:
        """Read times, one for each of n rows of X.

        Parameters
        ----------
        time : array-like of shape (n,), or a scalar
        n : int
        what : str, default="answers"
            What these are, for errors.

        Raises
        ------
        ValueError
            If they are neither numbers nor dates, mixed, missing, infinite, or not so many.
        """
        kind, values = _values(time)
        if values.ndim == 0:
            values = np.full(n, values)
        if values.shape != (n,):
            every = f"one for each of the {n} {what}, or a single time for all of them"
            wanted = "a single time" if what == "time" else every
            raise ValueError(f"time has shape {values.shape}; give {wanted}.")
        whole = values.dtype.kind == "O"
        gaps = ~np.isfinite(values.astype(np.float64) if whole else values)  # NaT is none either
        if gaps.any():
            raise ValueError(
                f"time is missing or infinite (NaN, NaT, None) in {gaps.sum()} of {n} places, "
                f"first in row {gaps.argmax()}. Leave these rows out of X, y and all that goes "
                "with them, or give them a time."
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
        What stands for a time that is not told, relative to the origin: the last of training.
    """

    kind: str
    origin: float | int
    now: float = 0.0

    @classmethod
    def of(cls, times: AnswerTimes) -> tuple[Self, Array]:
        """The axis of a fit, and its times relative to the origin, (n,)."""
        values = times.values
        origin = values.min() if len(values) else values.dtype.type(0)
        relative = _relative(times, origin)
        axis = origin if isinstance(origin, int) else float(origin)
        return cls(times.kind, axis, float(relative.max(initial=0.0))), relative

    def relative(self, times: AnswerTimes) -> Array:
        """Times of a query relative to the origin, (n,).

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
        return _relative(times, self.origin if self.kind == _NUMBERS else np.int64(self.origin))

    def until(self, relative: Array) -> Self:
        """The same axis after further answers at these times."""
        return replace(self, now=max(self.now, float(relative.max(initial=self.now))))

    def at(self, time: Any) -> Self:
        """The same axis with another time for now."""
        return replace(self, now=float(self.relative(AnswerTimes.read(time, 1, "time"))[0]))

    def times(self, relative: Array) -> NDArray[Any]:
        """Times as the user has them: floats, or datetime64 (in UTC, where there were zones).

        Whole times beyond 2**53 are integers, as floats would round them.
        """
        shift = np.asarray(relative, dtype=np.float64)
        if self.kind != _NUMBERS:
            days = np.rint(shift * _DAY).astype(np.int64)
            return (np.int64(self.origin) + days).astype("datetime64[us]")
        if isinstance(self.origin, int) and np.array_equal(shift, np.rint(shift)):
            whole = [self.origin + int(each) for each in shift.reshape(-1).tolist()]
            return np.array(whole).reshape(shift.shape)
        return shift + self.origin


def rows_of_answers(
    rows: Array, sets: NDArray[np.intp], columns: Array
) -> tuple[Array, NDArray[np.intp]]:
    """Give each item of each answer a row of its own, which ends with columns of the answer.

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
    there = sets >= 0
    every = np.repeat(columns, there.sum(axis=1), axis=0)
    return np.hstack([rows[sets[there]], every]), numbered(~there)


def _relative(times, origin):
    """Numbers less the origin, or days since it."""
    shift = (times.values - origin).astype(np.float64)
    return shift if times.kind == _NUMBERS else shift / _DAY


def _values(time):
    """Kind and values of any shape: floats, or datetime64 in UTC."""
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
        raise _other(values.reshape(-1).tolist())
    return _objects(np.asarray(time, dtype=object))


def _objects(values):
    """Kind and values of an array of Python objects."""
    listed = values.reshape(-1).tolist()
    known = [value for value in listed if not is_missing(value)]
    if known and all(isinstance(value, Real) and not isinstance(value, bool) for value in known):
        numbers = np.array([np.nan if is_missing(value) else float(value) for value in listed])
        if beyond_doubles(numbers) and all(isinstance(value, Integral) for value in known):
            whole = [np.nan if is_missing(value) else int(value) for value in listed]
            numbers = np.array(whole, dtype=object)
        return _NUMBERS, numbers.reshape(values.shape)
    if not known:
        return _NUMBERS, np.full(values.shape, np.nan)
    if not all(isinstance(value, date | np.datetime64) for value in known):
        raise _other(known)
    zoned = [isinstance(value, datetime) and value.utcoffset() is not None for value in known]
    if any(zoned) and not all(zoned):
        raise ValueError(
            "time mixes dates with a time zone and dates without one, which are not the same hour "
            "everywhere. Give all of them a time zone, or none."
        )
    if any(zoned):
        seconds = [np.nan if is_missing(value) else value.timestamp() for value in listed]
        stamps = np.full(len(listed), np.datetime64("NaT", "us"))
        there = np.isfinite(seconds)
        since = np.rint(1e6 * np.array(seconds)[there]).astype(np.int64)
        stamps[there] = since.astype("datetime64[us]")
        return _INSTANTS, stamps.reshape(values.shape)
    given = [None if is_missing(value) else value for value in listed]
    return _DATES, np.array(given, dtype="datetime64[us]").reshape(values.shape)


def _other(values):
    some = ", ".join(list(dict.fromkeys(repr(value) for value in values))[:3])
    advice = ""
    if any(isinstance(value, str) for value in values):
        advice = " Texts become dates by pandas.to_datetime."
    return ValueError(f"time must be {_ALLOWED}; values such as [{some}] came.{advice}")
