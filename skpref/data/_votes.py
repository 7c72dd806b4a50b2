"""Votes as arenas publish them: who met whom, who won, who judged, and what to control for."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import warn
from skpref.data._columns import side_words
from skpref.data._items import ItemTable
from skpref.data._labels import LabelledDuels, attach_labels
from skpref.data._soft import ROUNDED, soft_rows
from skpref.data._tables import Coded, Numbers, open_table, refuse_rounded
from skpref.data._time import parse_time
from skpref.data._vote_columns import (
    JUDGE,
    PAIRS,
    PROMPT,
    SIDES,
    TIME,
    Control,
    VoteColumns,
    VoteOptions,
    choose_columns,
)
from skpref.data._winners import (
    BOTH_BAD,
    MISSING,
    UNREAD,
    label_words,
    most_frequent,
    one_sided_message,
    outcome_codes,
    plain_name,
    warn_alike,
)

# Left out for what they lack: from this share on a warning says so.
_MUCH = 0.05
# A column of differences that all have one sign is looked at from so many votes on.
_ONE_SIDED = 10
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


def read_votes(votes: Any, options: VoteOptions) -> Bunch:
    """Read votes to all that `skpref.duels.from_votes` returns but the kernel."""
    table = open_table(votes, options.encoding, options.decimal)
    columns = choose_columns(table, options)
    cells = _VoteCells.read(table, columns, options)
    dropped = _DroppedVotes(len(cells.labels[columns.a].codes), options.like is not None)
    opponents = _read_opponents(cells, columns, options, dropped)
    answers = _read_answers(cells, columns, options, opponents, dropped)
    _drop_gaps(cells, columns, options, dropped)
    return _build_votes(cells, columns, options, opponents, answers, dropped)


class _VoteCells(NamedTuple):
    """What the columns of votes hold: labels and numbers, by the positions of the columns."""

    labels: dict[int, Coded]
    numbers: dict[int, Numbers]

    @classmethod
    def read(cls, table: Any, columns: VoteColumns, options: VoteOptions) -> "_VoteCells":
        """Read the columns of votes; ValueError where floats stand for integers too large."""
        if options.soft and not columns.won:
            raise ValueError("Winners and losers are no probabilities; say by winner= which are.")
        by_number = options.soft or len(columns.won) > 1
        positions = [i for each in columns.controls for i in each.columns]
        positions = list(dict.fromkeys([*positions, *(columns.won if by_number else ())]))
        labels, numbers = table.read(columns.labels, positions)
        cells = cls(
            dict(zip(columns.labels, labels, strict=True)),
            dict(zip(positions, numbers, strict=True)),
        )
        for position in columns.labels:
            if position in (*columns.won, columns.time):
                continue
            refuse_rounded(cells.labels[position].values, columns.names[position])
        return cells


class _DroppedVotes:
    """Which rows are left out, and why.

    ``every``: those left out are named even if they are few.
    """

    def __init__(self, n_rows: int, every: bool) -> None:
        if n_rows == 0:
            raise ValueError("The table has no row, so no vote.")
        self._kept, self._unmeant = np.ones((2, n_rows), dtype=bool)
        self._unmeant[:] = False
        self._every = every
        self._filled: list[str] = []
        self.counts: dict[str, int] = {}

    def drop(self, rows: np.ndarray, reason: str, meant: bool = False, tell: bool = False) -> None:
        """Leave out rows; ``tell``: say so even if they are few."""
        rows = rows & self._kept
        if rows.any():
            self._kept &= ~rows
            self._unmeant |= rows & (not meant)
            self._every |= tell
            self.counts[reason] = int(rows.sum())

    def fill(self, rows: np.ndarray, label: str) -> None:
        """Count rows that lack a control and get its mean."""
        n = int((rows & self._kept).sum())
        if n:
            self._filled.append(f"{n} without a number for {label!r} have its mean")

    def kept(self, rows: np.ndarray | bool = True) -> np.ndarray:
        """Mark which of some rows are not left out."""
        return rows & self._kept

    def rows(self) -> np.ndarray:
        """Return the rows that are left; ValueError if none are."""
        if not self._kept.any():
            raise ValueError(f"No vote is left: {self._reasons()}.")
        return np.flatnonzero(self._kept)

    def _reasons(self) -> str:
        """Return the reasons for which rows were left out, with their numbers."""
        return ", ".join(f"{n} {reason}" for reason, n in self.counts.items())

    def summary(self, n_items: int) -> str:
        """Return what was read and what was left out, in one line."""
        text = f"{self._kept.sum()} of {len(self._kept)} votes on {n_items} competitors"
        if self.counts:
            text += f"; left out: {self._reasons()}"
        return "; ".join([text, *self._filled])

    def warn(self) -> None:
        """Warn of rows left out for what they lack, if these are many or all matter."""
        rows = np.flatnonzero(self._unmeant)
        if not len(rows) or not (self._every or len(rows) > _MUCH * len(self._kept)):
            return
        which = ", ".join(map(str, rows[:3])) + (", …" if len(rows) > 3 else "")
        warn(
            f"{len(rows)} of {len(self._kept)} votes cannot be used: {self._reasons()} (rows "
            f"{which}). Look at a few of them; what is left may not speak for all."
        )


# -- who met whom ------------------------------------------------------------------------------


class _Opponents(NamedTuple):
    """Competitors of each row, by codes in a sorted list of names, -1 where there is none."""

    first: np.ndarray
    second: np.ndarray
    known: list


def _read_opponents(
    cells: _VoteCells, columns: VoteColumns, options: VoteOptions, dropped: _DroppedVotes
) -> _Opponents:
    """Read the competitors of each row, and leave out rows without two of them."""
    _drop_headers(cells, columns, dropped)
    first_column, second_column = cells.labels[columns.a], cells.labels[columns.b]
    values, competitors = _competitor_names(first_column, second_column, options)
    code = {name: i for i, name in enumerate(competitors)}
    number = np.array([code[value] for value in values], dtype=np.int64)
    sides = np.split(number, [len(first_column.values)])
    first, second = (
        np.append(n, -1)[c.codes] for n, c in zip(sides, (first_column, second_column), strict=True)
    )
    if options.a is not None:
        _warn_unlikely_columns(columns, np.intersect1d(first, second), competitors)
    dropped.drop((first < 0) | (second < 0), "without a competitor's name")
    dropped.drop((first == second) & (first >= 0), "with the same competitor on both sides")
    return _Opponents(first, second, competitors)


def _competitor_names(first: Coded, second: Coded, options: VoteOptions) -> tuple[list, list]:
    """Return the competitor of each value of two columns, and all of them in order."""
    before = [] if options.like is None else options.like.item_table.names.tolist()
    values = [_strip_name(value) for value in (*first.values, *second.values)]
    if len({isinstance(value, str) for value in (*values, *before)}) > 1:
        values = list(map(str, values))
    if options.alike == "merge":
        counts = [
            np.bincount(c.codes[c.codes >= 0], minlength=len(c.values)) for c in (first, second)
        ]
        values = _merge_alike(values, np.concatenate(counts), before)
    with suppress(TypeError):  # of types that have no order among themselves
        return values, sorted(set(values))
    return list(map(str, values)), sorted(set(map(str, values)))


def _drop_headers(cells: _VoteCells, columns: VoteColumns, dropped: _DroppedVotes) -> None:
    """Leave out rows that say the names of their columns again, as in files put together."""
    is_header = dropped.kept()
    for position in (columns.a, columns.b):
        codes, values = cells.labels[position]
        name = plain_name(columns.names[position])
        is_name = [isinstance(v, str) and plain_name(v) == name for v in values]
        is_header &= np.append(is_name, False)[codes].astype(bool)
    if not is_header.any():
        return
    row = int(is_header.argmax())
    dropped.drop(is_header, f"that repeat the header, first in row {row}", tell=True)
    for position, (codes, values) in cells.labels.items():
        codes = np.where(is_header, -1, codes)
        used = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
        number = np.append(np.cumsum(used) - 1, -1)
        used_values = [value for value, stays in zip(values, used, strict=True) if stays]
        cells.labels[position] = Coded(number[codes], used_values)


def _merge_alike(values: list, counts: np.ndarray, before: list) -> list:
    """Return one spelling for names that are alike: one from before, or the most frequent."""
    total: Counter = Counter()
    for value, count in zip(values, counts.tolist(), strict=True):
        total[value] += count
    spelling = {plain_name(name): name for name, _ in total.most_common()[::-1]}
    spelling |= {plain_name(name): name for name in before}
    return [spelling[plain_name(value)] for value in values]


def _strip_name(name: Any) -> Any:
    """Return a competitor's name without the spaces around it."""
    return name.strip() if isinstance(name, str) else _as_integer(name)


def _as_integer(value: Any) -> Any:
    """Return an integer for a float that is one, as in columns of integers with gaps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _warn_unlikely_columns(columns: VoteColumns, met: np.ndarray, competitors: list) -> None:
    """Warn where the columns named may be others than those of the competitors."""
    if (met >= 0).any():
        return
    names = columns.names
    sides = names[columns.a], names[columns.b]
    usual = names.pair(PAIRS)
    if usual is not None and {columns.a, columns.b} & set(usual):
        usual = None
    if usual is None and not any(plain_name(n) in (*JUDGE, *PROMPT, *TIME) for n in sides):
        return
    advice = "If these are no competitors, name others by a= and b=."
    if usual is not None:
        advice = (
            f"There are {names[usual[0]]!r} and {names[usual[1]]!r}, which are taken if a= and b= "
            "are left out."
        )
    warn(
        f"{sides[0]!r} and {sides[1]!r} are to be the competitors, and have no value in common "
        f"(there are {', '.join(map(repr, competitors[:3]))}, …). {advice}"
    )


# -- who won -----------------------------------------------------------------------------------


class _VoteOutcomes(NamedTuple):
    """Outcome of each row, 1, 0 or -1, and the probabilities of the outcomes if these are given."""

    codes: np.ndarray
    proba: np.ndarray | None = None


def _read_answers(
    cells: _VoteCells,
    columns: VoteColumns,
    options: VoteOptions,
    opponents: _Opponents,
    dropped: _DroppedVotes,
) -> _VoteOutcomes:
    """Read the outcome of each row, and leave out rows without one."""
    if not columns.won:
        answers = _VoteOutcomes(np.ones(len(opponents.first), dtype=np.int64))
    elif options.soft or len(columns.won) > 1:
        every = [cells.numbers[i] for i in columns.won]
        proba = _read_probabilities(every, dropped, options.soft, options.ties)
        answers = _VoteOutcomes(proba[:, -1] - proba[:, 0], proba)
    else:
        answers = _VoteOutcomes(
            _read_winners(cells.labels[columns.won[0]], columns, options, opponents, dropped)
        )
    if not options.soft:
        ties = (answers.codes == 0) & (not options.ties)
        dropped.drop(ties, "ties (ties=False)", meant=True)
    return answers


def _read_winners(
    column: Coded,
    columns: VoteColumns,
    options: VoteOptions,
    opponents: _Opponents,
    dropped: _DroppedVotes,
) -> np.ndarray:
    """Read 1, 0 or -1 for each row from a column of words or numbers."""
    dropped.drop(column.codes < 0, "without an outcome")
    words = [*_with_points(column.values, options.decimal), None]
    meaning = label_words(options.outcomes, "outcomes=", 1) if options.outcomes is not None else {}
    meaning = {str(word): code for word, code in meaning.items()}
    named = np.array(
        [meaning.get(str(plain_name(word)), UNREAD) for word in words[:-1]] + [MISSING]
    )
    codes = named[column.codes]
    others = np.flatnonzero(dropped.kept(codes == UNREAD))
    codes[others] = _read_words(column.codes, words, others, columns, opponents)
    bad, unread = codes == BOTH_BAD, dropped.kept(codes == UNREAD)
    codes[bad] = 0
    if unread.any():
        rows_left = dropped.kept(codes != MISSING)
        if not ((codes[rows_left] == 1).any() and (codes[rows_left] == -1).any()):
            raise ValueError(
                one_sided_message([words[i] for i in column.codes[rows_left]], codes[rows_left])
            )
        shown = most_frequent(words[i] for i in column.codes[unread])
        dropped.drop(unread, f"whose outcome is neither side nor a tie ({shown})")
    if options.both_bad == "drop":
        dropped.drop(bad, 'both bad (both_bad="drop")', meant=True)
    return codes


def _read_words(
    codes: np.ndarray, words: list, rows: np.ndarray, columns: VoteColumns, opponents: _Opponents
) -> np.ndarray:
    """Read the outcomes of some rows, each combination of word and competitors once."""
    first, second, competitors = opponents
    key, by_name = codes[rows], False
    plain = set(map(plain_name, competitors))
    if not all(isinstance(name, str) for name in competitors) or plain & set(
        map(plain_name, words)
    ):
        key, by_name = (
            (key * len(competitors) + first[rows]) * len(competitors) + second[rows],
            True,
        )
    _, at, inverse = np.unique(key, return_index=True, return_inverse=True)
    rows = rows[at]
    names = [competitors[i] for i in first[rows]], [competitors[i] for i in second[rows]]
    sides = side_words([], [], (columns.names[columns.a], columns.names[columns.b]))
    outcomes = outcome_codes(
        [words[i] for i in codes[rows]],
        names if by_name else None,
        [*sides, *SIDES],
        rows,
        "Say what it means by outcomes={{{word!r}: 1}} (1 the first, -1 the second, 0 a tie).",
    )
    if outcomes is None:
        some = sorted({words[i] for i in codes[rows]}, key=float)[:5]
        raise ValueError(
            f"Outcomes as numbers are -1, 0, 1, or 0, 0.5, 1, or 1, 1.5, 2 (the first, a tie, the "
            f"second); got values such as {some}. Of others say what they mean, such as by "
            "outcomes={1: 1, 2: -1, 0: 0}; if they are probabilities that the first won, say "
            "soft=True."
        )
    return outcomes[inverse.reshape(-1)]


def _with_points(values: list, decimal: str) -> list:
    """Return values whose texts such as 0,5 are written 0.5, if commas stand before decimals."""
    if decimal == ".":
        return values
    is_number = [isinstance(v, str) and _DECIMAL_COMMA.fullmatch(v) for v in values]
    return [v.replace(",", ".") if n else v for v, n in zip(values, is_number, strict=True)]


def _read_probabilities(
    columns: list[Numbers], dropped: _DroppedVotes, soft: bool, ties: bool
) -> np.ndarray:
    """Read the probabilities that the second won, that none did, and that the first did.

    Rows that say nothing are left out; where they are not soft, all are 0 or 1.
    """
    every = [column.values for column in columns]
    if len(every) == 1:
        numbers = every[0]
        present = numbers[~np.isnan(numbers)]
        by_place = present.max(initial=0.0) > 1.0 and present.min(initial=1.0) >= 1.0
        first = 2.0 - numbers if by_place else numbers
        every = [first, 1.0 - first]
    table = np.stack([every[1], *every[2:], every[0]], axis=1)
    dropped.drop(np.isnan(table).any(axis=1), "without an outcome")
    read = dropped.kept()
    beyond = read & ((table < 0.0) | (table > 1.0)).any(axis=1)
    if beyond.any():
        row = int(beyond.argmax())
        raise ValueError(
            f"Probabilities must be from 0 to 1 (or all from 1, the first, to 2, the second); row "
            f"{row} has {[float(each.values[row]) for each in columns]}, and {beyond.sum()} rows "
            "are beyond."
        )
    if not soft and not np.isin(table[read], (0.0, 1.0)).all():
        raise ValueError(
            "The columns of winner= must be 0 or 1 each. If they are probabilities, say soft=True."
        )
    dropped.drop(np.abs(table.sum(axis=1) - 1.0) > ROUNDED, "whose outcomes do not sum to 1")
    if soft and not ties and table.shape[1] == 3:
        table = table[:, ::2]
        total = table.sum(axis=1)
        dropped.drop(total <= 0.0, "sure ties (ties=False)", meant=True)
        table = table / np.where(total > 0.0, total, 1.0)[:, None]
    return table


# -- what goes along ---------------------------------------------------------------------------


def _drop_gaps(
    cells: _VoteCells, columns: VoteColumns, options: VoteOptions, dropped: _DroppedVotes
) -> None:
    """Leave out rows that lack a judge, prompt or time that was named, a group or a control."""
    for role in ("judge", "prompt", "time"):
        position = getattr(columns, role)
        if getattr(options, role) is not None:
            dropped.drop(cells.labels[position].codes < 0, f"without a {role}")
    if columns.by is not None:
        name = columns.names[columns.by]
        dropped.drop(cells.labels[columns.by].codes < 0, f"without a value in {name!r}")
    for control in columns.controls:
        numbers = [cells.numbers[i] for i in control.columns]
        for position, column in zip(control.columns, numbers, strict=True):
            _check_numbers(columns.names[position], column)
        if len(numbers) == 1:
            timed = control.columns[0] == columns.time
            _check_difference(control.label, numbers[0].values, timed)
        gaps = np.any([np.isnan(column.values) for column in numbers], axis=0)
        if options.missing == "drop":
            dropped.drop(gaps, f"without a number for {control.label!r}")
        else:
            dropped.fill(gaps, control.label)


def _check_numbers(name: Any, numbers: Numbers) -> None:
    """Raise ValueError for a control without any number."""
    if len(numbers.values) and np.isnan(numbers.values).all():
        some = f"it holds such as {numbers.odd}" if numbers.odd else "all its cells are empty"
        comma = any(_DECIMAL_COMMA.fullmatch(str(each)) for each in numbers.odd)
        remedy = ' Where 1,5 stands for 1.5, say decimal=",".' if comma else ""
        raise ValueError(f"The control column {name!r} has no number: {some}.{remedy}")


def _check_difference(label: str, values: np.ndarray, timed: bool) -> None:
    """Raise ValueError for a control that is the time, and warn of one that has one sign."""
    present = values[~np.isnan(values)]
    low, high = float(present.min()), float(present.max())
    if low <= 0.0 <= high:
        return
    finding = (
        f"The control {label!r} is one column, so that it must hold the difference of the two "
        f"sides; it lies between {low:g} and {high:g}, on one side of 0 in all "
        f"{len(present)} votes."
    )
    if timed:
        raise ValueError(
            f"{finding} It is named as the time of a vote is, which is the same for both sides and "
            "decides none. Leave it out."
        )
    if len(present) >= _ONE_SIDED:
        warn(
            f"{finding} If it is the same for both sides, as the length of a prompt is, leave it "
            "out, or make groups of it for by=; if it is of one side, give the columns of both."
        )


def _control_sides(columns: list[np.ndarray]) -> np.ndarray:
    """Return the values of a control on both sides, gaps filled by the mean."""
    if len(columns) == 1:
        half = np.nan_to_num(columns[0]) / 2.0
        return np.stack([half, -half], axis=1)
    sides = np.stack(columns, axis=1)
    gaps = np.isnan(sides)
    return np.where(gaps, np.nanmean(sides), sides) if gaps.any() else sides


def _center_and_scale(label: str, sides: np.ndarray) -> tuple[float, float]:
    """Return the mean of a control, and the root mean square of its differences.

    Raises
    ------
    ValueError
        If values are too large for doubles, or the same on both sides of every vote.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        center, apart = float(sides.mean()), sides[:, 0] - sides[:, 1]
        size = float(np.max(np.abs(apart)))
    if not np.isfinite(center + size):
        raise ValueError(
            f"The control {label!r} holds values up to {np.max(np.abs(sides)):.1e}, too near the "
            "largest number of double precision. Divide it by a number."
        )
    scale = size * float(np.sqrt(np.mean((apart / (size or 1.0)) ** 2)))
    if not scale > 0.0:
        raise ValueError(
            f"The control {label!r} is the same on both sides of every vote, so that its effect "
            "cannot be told; leave it out."
        )
    return center, scale


def _values_of_rows(column: Coded, rows: np.ndarray) -> np.ndarray:
    """Return the values of rows, None where one is missing."""
    codes, values = column.codes[rows], [_as_integer(value) for value in column.values]
    kinds = set(map(type, values))
    if kinds and kinds <= {int, float} and not (codes < 0).any():
        array = np.array(values)
        if array.tolist() == values:  # not of integers that it would round
            return array[codes]
    listed = np.empty(len(values) + 1, dtype=object)
    listed[:-1] = values
    return listed[codes]


# A date of which nothing tells the day from the month.
_AMBIGUOUS = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b")


class _VoteTimes(NamedTuple):
    """Times of votes, and their kind: see `from_votes`."""

    values: np.ndarray | None = None
    kind: str | None = None


def _read_times(
    cells: _VoteCells, columns: VoteColumns, options: VoteOptions, rows: np.ndarray
) -> _VoteTimes:
    """Read the times of some rows; NaN or NaT where there is none. A guessed column may hold none.

    Raises
    ------
    ValueError
        If the column was named, and holds other things than numbers or other things than dates.
    """
    if columns.time is None:
        return _VoteTimes()
    name, codes = columns.names[columns.time], cells.labels[columns.time].codes[rows]
    values = _with_points(cells.labels[columns.time].values, options.decimal)
    try:
        times = [parse_time(value) for value in values]
        if len({time.is_date for time in times}) > 1:
            raise ValueError("numbers and dates")
    except ValueError:
        if options.time is None:
            return _VoteTimes()
        raise ValueError(_time_remedy(name, values)) from None
    dated, zoned = any(time.is_date for time in times), any(time.has_zone for time in times)
    gap = np.datetime64("NaT") if dated else np.nan
    array = np.array([time.value for time in times] + [gap] * bool((codes < 0).any()))
    return _VoteTimes(array[codes], "dates in UTC" if zoned else "dates" if dated else "numbers")


def _time_remedy(name: Any, values: list) -> str:
    """Return the message for a column that holds other things than times."""
    odd = next((v for v in values if isinstance(v, str) and _AMBIGUOUS.match(v)), None)
    remedy = ""
    if odd is not None:
        remedy = (
            f" Which part of {odd} is the day is not guessed: convert by pandas, votes[{name!r}] = "
            f"pandas.to_datetime(votes[{name!r}], dayfirst=True), or dayfirst=False where the "
            "month comes first; votes.to_csv(path, index=False) writes a file of them."
        )
    return (
        f"The times in column {name!r} must be numbers or dates such as 2024-05-17 or "
        f"2024-05-17T12:30:00, all of one kind; got values such as {values[:3]}.{remedy}"
    )


# -- X and y -----------------------------------------------------------------------------------


def _build_votes(
    cells: _VoteCells,
    columns: VoteColumns,
    options: VoteOptions,
    opponents: _Opponents,
    answers: _VoteOutcomes,
    dropped: _DroppedVotes,
) -> Bunch:
    """Build X, y and all that `from_votes` returns beside them."""
    rows, like = dropped.rows(), options.like
    items, pairs, n_present = _competitor_table(opponents, rows, like)
    X, center, scale = _with_controls(pairs, cells, columns.controls, rows, like)
    groups = None
    if columns.by is not None:
        X, groups = _with_groups(X, cells.labels[columns.by], rows, like)
    weight = None
    if options.soft and answers.proba is not None:
        of_vote, labels, weight = soft_rows(answers.proba[rows], len(rows))
        n_votes, rows = len(rows), rows[of_vote]
        done = LabelledDuels(X[of_vote], labels, np.zeros(len(rows), dtype=bool))
    else:
        n_votes, done = len(rows), _label_votes(X, answers.codes[rows].astype(np.int64), like)
    order = (np.where(done.turned, -1, 1) if columns.won else np.zeros(len(rows))).astype(np.int8)
    warn_alike(items.names.tolist(), 'say alike="merge", which takes the spelling of most votes')
    if like is None and n_present > n_votes + 1:
        warn(
            f"{n_present} competitors in {n_votes} votes: most have met no other than one, and no "
            f"board compares them. Are {columns.names[columns.a]!r} and "
            f"{columns.names[columns.b]!r} the columns of the competitors?"
        )
    dropped.warn()
    return Bunch(
        X=done.X,
        y=done.y,
        item_table=items,
        rows=rows,
        **_read_metadata(cells, columns, options, rows, order, weight),
        controls=[each.label for each in columns.controls],
        control_center=center,
        control_scale=scale,
        by=None if columns.by is None else columns.names[columns.by],
        groups=groups,
        n_read=len(opponents.first),
        dropped=dropped.counts,
        summary=dropped.summary(n_present),
    )


def _read_metadata(
    cells: _VoteCells,
    columns: VoteColumns,
    options: VoteOptions,
    rows: np.ndarray,
    order: np.ndarray,
    weight: np.ndarray | None,
) -> dict[str, Any]:
    """Return judges, prompts, times, order and weights of votes, and which of them go to a fit."""
    judges, prompts = (
        None if position is None else _values_of_rows(cells.labels[position], rows)
        for position in (columns.judge, columns.prompt)
    )
    times = _read_times(cells, columns, options, rows)
    of_fit = {
        "order": order if columns.won else None,
        "judges": None if options.judge is None else judges,
        "prompts": None if options.prompt is None or options.time is not None else prompts,
        "time": None if options.time is None else times.values,
        "sample_weight": weight,
    }
    return {
        "metadata": {name: values for name, values in of_fit.items() if values is not None},
        "sample_weight": weight,
        "judges": judges,
        "prompts": prompts,
        "times": times.values,
        "times_are": times.kind,
        "order": order,
    }


def _competitor_table(
    opponents: _Opponents, rows: np.ndarray, like: Bunch | None
) -> tuple[ItemTable, np.ndarray, int]:
    """Return the competitors of some rows, the positions of each pair, and how many there are."""
    first, second, competitors = opponents
    present = np.unique(np.concatenate([first[rows], second[rows]]))
    names = [competitors[i] for i in present]
    before = [] if like is None else like.item_table.names.tolist()
    items = ItemTable.from_names([*before, *names])
    place = np.full(len(competitors), -1, dtype=np.int64)
    place[present] = items.index(names)
    return items, np.stack([place[first[rows]], place[second[rows]]], axis=1), len(present)


def _with_controls(
    pairs: np.ndarray,
    cells: _VoteCells,
    controls: Sequence[Control],
    rows: np.ndarray,
    like: Bunch | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put controls, in units, beside the pairs; return X, and center and scale of each control."""
    center, scale = np.zeros(len(controls)), np.ones(len(controls))
    if not controls:
        return pairs, center, scale
    X = np.empty((len(rows), 2, 1 + len(controls)))
    X[:, :, 0] = pairs
    for j, control in enumerate(controls):
        sides = _control_sides([cells.numbers[i].values[rows] for i in control.columns])
        if like is None:
            center[j], scale[j] = _center_and_scale(control.label, sides)
        else:
            center[j], scale[j] = like.control_center[j], like.control_scale[j]
        X[:, :, 1 + j] = (sides - center[j]) / scale[j]
    return X, center, scale


def _with_groups(
    X: np.ndarray, column: Coded, rows: np.ndarray, like: Bunch | None
) -> tuple[np.ndarray, list]:
    """Put the number of each vote's group into a last column; return X and the groups.

    Groups from before come first, others by frequency.
    """
    count = np.bincount(column.codes[rows], minlength=len(column.values))
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    before = [] if like is None else like.groups
    groups = list(dict.fromkeys([*before, *(column.values[code] for code in order)]))
    number = {value: i for i, value in enumerate(groups)}
    codes = np.array([number.get(value, -1) for value in column.values])[column.codes[rows]]
    sides = X if X.ndim == 3 else X[:, :, None]
    last = np.tile(codes[:, None, None], (1, 2, 1))
    return np.concatenate([sides, last], axis=2, dtype=float), groups


def _label_votes(X: np.ndarray, signs: np.ndarray, like: Bunch | None) -> LabelledDuels:
    """Return duels with labels, which have ties if some votes, or those before, are ties."""
    if like is None and not signs.any():
        raise ValueError(
            f"All {len(signs)} votes that can be read are ties, which put no competitor above "
            "another."
        )
    tied = bool((signs == 0).any()) or (like is not None and "tie_threshold" in like.params)
    return attach_labels(X, signs if tied else (signs == 1).astype(np.int64), tied)
