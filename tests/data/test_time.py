"""Times of answers: what is read, relative to what, and what is refused."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from skpref.data._time import AnswerTimes, TimeAxis, rows_of_answers

DAYS = ["2024-03-30T12:00", "2024-03-31T12:00", "2024-01-01T00:00"]
# Days since the first of these.
EXPECTED = [89.5, 90.5, 0.0]


def relative(time, n=3):
    return TimeAxis.from_times(AnswerTimes.read(time, n))[1]


def stamps(zone=None):
    return pd.to_datetime(DAYS).tz_localize(zone)


@pytest.mark.parametrize(
    "time",
    [
        np.array(DAYS, dtype="datetime64[ns]"),
        np.array(DAYS, dtype="datetime64[m]"),
        [datetime.fromisoformat(day) for day in DAYS],
        stamps(),
        pd.Series(stamps()),
        list(stamps()),
        stamps("UTC"),
        pd.Series(stamps("UTC")),
        list(stamps("UTC")),
        np.array(list(stamps("UTC")), dtype=object),
        pd.Series(stamps()).astype("datetime64[s]"),
    ],
)
def test_all_kinds_of_dates_are_days_since_the_first(time):
    assert relative(time).tolist() == EXPECTED


def test_dates_without_a_time_of_day():
    days = [date(2024, 3, 1), date(2024, 2, 1), date(1872, 11, 30)]
    assert relative(days).tolist() == [day.toordinal() - days[2].toordinal() for day in days]


def test_time_zones_are_one_time():
    """Noon in Vienna, summer time from 31 March 2024 on, is 11 or 10 o'clock in Greenwich."""
    vienna = pd.Series(pd.to_datetime(DAYS).tz_localize("Europe/Vienna"))
    in_utc = vienna.dt.tz_convert("UTC")
    axis, found = TimeAxis.from_times(AnswerTimes.read(vienna, 3))
    assert found.tolist() == relative(in_utc).tolist()
    assert found[1] - found[0] == pytest.approx(23.0 / 24.0, abs=1e-12)
    west = [each.astimezone(timezone(timedelta(hours=-8))) for each in in_utc]
    assert axis.to_relative(AnswerTimes.read(west, 3)).tolist() == found.tolist()
    assert axis.to_relative(AnswerTimes.read(west[1], 2)).tolist() == [found[1]] * 2


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=5, minutes=30))])
def test_no_digit_of_a_clock_is_lost(zone):
    clock = [
        datetime(1872, 11, 30, 14, 15, 0, 1, zone),
        datetime(2024, 2, 29, 1, 2, 3, 456789, zone),
    ]
    apart = (clock[1] - clock[0]) / timedelta(microseconds=1)
    axis, found = TimeAxis.from_times(AnswerTimes.read(clock, 2))
    assert found.tolist() == [0.0, apart / 86_400e6]
    in_utc = [each.astimezone(UTC) if zone else each for each in clock]
    shown = [np.datetime64(each.replace(tzinfo=None), "us") for each in in_utc]
    assert abs(axis.times(found) - shown).max() <= np.timedelta64(4, "us")  # of 150 years in days


def test_nanoseconds_are_cut_alike_in_a_list_and_in_a_column():
    column = pd.Series(pd.to_datetime(["2024-03-30 12:00:00.123456789"]).tz_localize("UTC"))
    read = [AnswerTimes.read(time, 1).values.tolist() for time in (column, list(column))]
    assert read[0] == read[1] == [1_711_800_000_123_456]


def test_a_frame_of_another_library():
    polars = pytest.importorskip("polars")
    zoned = pd.Series(stamps("UTC"))
    assert relative(polars.Series(zoned.dt.tz_localize(None).to_numpy())).tolist() == EXPECTED
    series = polars.Series(zoned.dt.tz_localize(None).to_numpy()).dt.replace_time_zone("UTC")
    axis, found = TimeAxis.from_times(AnswerTimes.read(series, 3))
    assert found.tolist() == EXPECTED
    assert axis.to_relative(AnswerTimes.read(zoned, 3)).tolist() == EXPECTED


@pytest.mark.parametrize(
    "time",
    [
        [3.0, 1.0, 2.5],
        np.array([3, 1, 2.5], dtype=np.float32),
        pd.Series([3.0, 1.0, 2.5], index=[7, 8, 9]),
        np.array([3, 1.0, 2.5], dtype=object),
        pd.Series([3.0, 1.0, 2.5], dtype="Float64"),
    ],
)
def test_numbers_are_relative_to_the_smallest(time):
    axis, found = TimeAxis.from_times(AnswerTimes.read(time, 3))
    assert found.tolist() == [2.0, 0.0, 1.5]
    assert axis.now == 2.0
    assert axis.now == 2.0
    assert axis.to_relative(AnswerTimes.read(0, 2)).tolist() == [-1.0, -1.0]


def test_a_single_time_is_that_of_all():
    axis, found = TimeAxis.from_times(AnswerTimes.read(np.datetime64("2024-01-01"), 3))
    assert found.tolist() == [0.0, 0.0, 0.0]
    assert axis.to_relative(AnswerTimes.read(date(2024, 1, 3), 1)).tolist() == [2.0]
    assert axis.to_relative(AnswerTimes.read(pd.Timestamp("2024-01-03"), 1)).tolist() == [2.0]


def test_now_moves_forward_and_where_it_is_told():
    axis, _ = TimeAxis.from_times(AnswerTimes.read([10.0, 20.0], 2))
    assert axis.until(np.array([5.0])).now == 10.0
    assert axis.until(np.array([50.0])).now == 50.0
    assert axis.at(12.0).now == 2.0
    assert axis.origin == axis.at(12.0).origin == 10.0
    with pytest.raises(ValueError, match=r"got 2 times for 1 time"):
        axis.at([1.0, 2.0])


def test_times_come_back_as_they_were():
    numbers, found = TimeAxis.from_times(AnswerTimes.read([10.0, 12.5], 2))
    assert numbers.times(found).tolist() == [10.0, 12.5]
    given = np.array(DAYS, dtype="datetime64[us]")
    dates, found = TimeAxis.from_times(AnswerTimes.read(given, 3))
    assert np.array_equal(dates.times(found), given)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1.0, np.nan, np.inf], r"missing or infinite .* in 2 of 3 places, first in row 1"),
        ([None, 1.0, 2.0], "first in row 0"),
        ([None, None, None], "in 3 of 3 places"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [0, 0, 1]), "first in row 2"),
        (np.array([*DAYS[:2], "NaT"], dtype="datetime64[s]"), "first in row 2"),
        ([pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-02")], "first in row 1"),
        (pd.Series([1, None, 3], dtype="Int64"), "first in row 1"),
        (pd.Series(pd.to_datetime([*DAYS[:2], None]).tz_localize("UTC")), "first in row 2"),
        ([1.0, 2.0], r"got 2 times for 3 answers"),
        (np.ones((3, 1)), r"shape \(3, 1\)"),
        (DAYS, r"pandas\.to_datetime"),
        ("2024-01-01", r"pandas\.to_datetime"),
        ([True, False, True], "numbers in a unit of your own"),
        (np.array([1, 2, 3], dtype="timedelta64[D]"), "numbers in a unit of your own"),
        ([1.0, date(2024, 1, 1), 2.0], "numbers in a unit of your own"),
        (np.array([1j, 2, 3]), "numbers in a unit of your own"),
        ([*stamps()[:2], stamps("UTC")[0]], "mixes dates with a time zone"),
        ([date(2024, 1, 1), *stamps("UTC")[:2]], "mixes dates with a time zone"),
    ],
)
def test_refused(time, message):
    with pytest.raises(ValueError, match=message):
        TimeAxis.from_times(AnswerTimes.read(time, 3))


KINDS = {"numbers": [1.0, 2.0, 3.0], "without": stamps(), "with a time zone": stamps("UTC")}


@pytest.mark.parametrize("fitted", KINDS)
@pytest.mark.parametrize("asked", KINDS)
def test_kinds_of_fit_and_question_are_one(fitted, asked):
    axis, _ = TimeAxis.from_times(AnswerTimes.read(KINDS[fitted], 3))
    if fitted == asked:
        assert axis.to_relative(AnswerTimes.read(KINDS[asked], 3)).min() == 0.0
    else:
        with pytest.raises(ValueError, match=f"{asked}.*fitted on.*{fitted}"):
            axis.to_relative(AnswerTimes.read(KINDS[asked], 3))


def test_items_at_times():
    rows = np.array([[7.0], [8.0], [9.0]])
    sets = np.array([[0, 2, -1], [2, 0, 1]])
    found, places = rows_of_answers(rows, sets, np.array([[0.5], [4.0]]))
    assert places.tolist() == [[0, 1, -1], [2, 3, 4]]
    expected = [[7.0, 0.5], [9.0, 0.5], [9.0, 4.0], [7.0, 4.0], [8.0, 4.0]]
    assert found.tolist() == expected
