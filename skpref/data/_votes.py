"""Votes as arenas publish them: who met whom, who won, who judged, and what to control for."""

import re
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import warn
from skpref.data._columns import list_side_words
from skpref.data._containers import object_array, plain_name, refuse_rounded, refuse_rows
from skpref.data._items import ItemTable
from skpref.data._labels import LabelledDuels, attach_labels
from skpref.data._metadata import UNMENTIONED
from skpref.data._soft import ROUNDED, expand_probabilities
from skpref.data._tables import Coded, mark_missing_values, open_table
from skpref.data._time import parse_time
from skpref.data._vote_columns import (
    OWN_ANSWER,
    SIDES,
    VoteOptions,
    choose_columns,
)
from skpref.data._winners import (
    BOTH_BAD,
    MISSING,
    UNREAD,
    label_words,
    most_frequent,
    outcome_codes,
    unread_outcomes_message,
    warn_alike,
)

# A column of differences that all have one sign is looked at from so many votes on.
_ONE_SIDED = 10
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
# A date of which nothing tells the day from the month.
_AMBIGUOUS = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b")


def read_votes(votes: Any, options: VoteOptions) -> Bunch:
    """Return all that `skpref.duels.from_votes` returns but the kernel."""
    return _VoteReader(open_table(votes, options.encoding, options.decimal), options).read()


class _DroppedVotes:
    """Which rows are left out, and why.

    ``warns_of_few``: warn of rows that cannot be used even if they are few.
    """

    def __init__(self, n_rows: int, warns_of_few: bool) -> None:
        if n_rows == 0:
            raise ValueError("The table has no row, so no vote.")
        self.kept = np.ones(n_rows, dtype=bool)
        self._unusable = np.zeros(n_rows, dtype=bool)
        self._warns_of_few = warns_of_few
        self._filled: list[str] = []
        self.counts: dict[str, int] = {}

    def drop(
        self, rows: np.ndarray, reason: str, by_option: bool = False, warns_of_few: bool = False
    ) -> None:
        """Leave out rows, ``by_option`` without a warning; ``warns_of_few``: warn of few also."""
        rows = rows & self.kept
        if rows.any():
            self.kept &= ~rows
            self._unusable |= rows & (not by_option)
            self._warns_of_few |= warns_of_few
            self.counts[reason] = int(rows.sum())

    def fill(self, rows: np.ndarray, label: str) -> None:
        """Count rows that lack a control and get its mean."""
        n = int((rows & self.kept).sum())
        self._filled += [f"{n} without a number for {label!r} have its mean"] * (n > 0)

    def rows(self) -> np.ndarray:
        """Return the rows that are left; ValueError if none are."""
        if not self.kept.any():
            raise ValueError(f"No vote is left: {self._reasons()}.")
        return np.flatnonzero(self.kept)

    def _reasons(self) -> str:
        """Return the reasons for which rows were left out, with their numbers."""
        return ", ".join(f"{n} {reason}" for reason, n in self.counts.items())

    def summary(self, n_items: int) -> str:
        """Return what was read and what was left out, in one line."""
        text = f"{self.kept.sum()} of {len(self.kept)} votes on {n_items} competitors"
        dropped = [f"left out: {self._reasons()}"] * bool(self.counts)
        return "; ".join([text, *dropped, *self._filled])

    def warn(self) -> None:
        """Warn of rows that cannot be used, if they are many or ``warns_of_few``."""
        rows = np.flatnonzero(self._unusable)
        if len(rows) and (self._warns_of_few or len(rows) > UNMENTIONED * len(self.kept)):
            which = ", ".join(map(str, rows[:3])) + (", …" if len(rows) > 3 else "")
            warn(
                f"{len(rows)} of {len(self.kept)} votes cannot be used: {self._reasons()} (rows "
                f"{which}). Look at a few of them; what is left may not speak for all."
            )


class _VoteReader:
    """Reads votes: their cells, who met whom, who won, and what goes along.

    Attributes
    ----------
    labels, numbers : dict
        What the columns hold, by their positions.
    dropped : _DroppedVotes
    first, second : ndarray of int of shape (n_rows,)
        Competitors of each row, by codes in a sorted list of names, -1 where there is none.
    competitors : list
    outcomes : ndarray of shape (n_rows,)
        1 where the first won, -1 where the second did, 0 of ties.
    proba : ndarray of shape (n_rows, n_outcomes) or None
        Probabilities of the outcomes, if these are given.

    Raises
    ------
    ValueError
        Where floats stand for integers too large.
    """

    def __init__(self, table: Any, options: VoteOptions) -> None:
        self.options, self.like = options, options.like
        self.columns = columns = choose_columns(table, options)
        self.names = columns.names
        if options.soft and not columns.won:
            raise ValueError("Winners and losers are no probabilities; say by winner= which are.")
        self.by_number = options.soft or len(columns.won) > 1
        positions = [i for each in columns.controls for i in each.columns]
        positions = list(dict.fromkeys([*positions, *(columns.won if self.by_number else ())]))
        labels, numbers = table.read(columns.labels, positions)
        self.labels = dict(zip(columns.labels, labels, strict=True))
        self.numbers = dict(zip(positions, numbers, strict=True))
        for position, column in self.labels.items():
            if position not in (*columns.won, columns.time):
                refuse_rounded(column.values, f"the column {self.names[position]!r}")
        self.dropped = _DroppedVotes(len(labels[0].codes), self.like is not None)
        self.proba: np.ndarray | None = None
        before = [] if self.like is None else self.like.item_table.names.tolist()
        self.known_competitors: list = before

    def read(self) -> Bunch:
        """Return X, y and all beside them: who met whom, who won and what goes along."""
        self._read_opponents()
        self._read_outcomes()
        self._drop_gaps()
        return self._build_votes()

    # -- who met whom --------------------------------------------------------------------------

    def _read_opponents(self) -> None:
        """Set the competitors of each row, and leave out rows without two of them."""
        self._drop_headers()
        sides = self.labels[self.columns.a], self.labels[self.columns.b]
        values, self.competitors = self._competitor_names(*sides)
        code = {name: i for i, name in enumerate(self.competitors)}
        number = np.array([code[value] for value in values], dtype=np.int64)
        parts = np.split(number, [len(sides[0].values)])
        self.first, self.second = (
            np.append(part, -1)[side.codes] for part, side in zip(parts, sides, strict=True)
        )
        self.dropped.drop((self.first < 0) | (self.second < 0), "without a competitor's name")
        self.dropped.drop(self.first == self.second, "with the same competitor on both sides")

    def _drop_headers(self) -> None:
        """Leave out rows that say the names of their columns again, as in files put together."""
        is_header = self.dropped.kept.copy()
        for position in (self.columns.a, self.columns.b):
            codes, values = self.labels[position]
            name = plain_name(self.names[position])
            is_header &= np.array([*(plain_name(value) == name for value in values), False])[codes]
        if not is_header.any():
            return
        row = int(is_header.argmax())
        self.dropped.drop(
            is_header, f"that repeat the header, first in row {row}", warns_of_few=True
        )
        for position, (codes, values) in self.labels.items():
            codes = np.where(is_header, -1, codes)
            unused = np.bincount(codes[codes >= 0], minlength=len(values)) == 0
            self.labels[position] = mark_missing_values(unused, Coded(codes, values))

    def _competitor_names(self, first: Coded, second: Coded) -> tuple[list, list]:
        """Return the competitor of each value of two columns, and all of them in order."""
        before = self.known_competitors
        values = [
            value.strip() if isinstance(value, str) else _as_integer(value)
            for value in (*first.values, *second.values)
        ]
        if len({isinstance(value, str) for value in (*values, *before)}) > 1:
            values = list(map(str, values))
        if self.options.alike == "merge":  # the spelling from before, or the most frequent
            total: Counter = Counter()
            sides = [
                np.bincount(each.codes[each.codes >= 0], minlength=len(each.values))
                for each in (first, second)
            ]
            for value, count in zip(values, np.concatenate(sides).tolist(), strict=True):
                total[value] += count
            names = [*(name for name, _ in total.most_common()[::-1]), *before]
            spelling = {plain_name(name): name for name in names}
            values = [spelling[plain_name(value)] for value in values]
        with suppress(TypeError):  # of types that have no order among themselves
            return values, sorted(set(values))
        return list(map(str, values)), sorted(set(map(str, values)))

    # -- who won -------------------------------------------------------------------------------

    def _read_outcomes(self) -> None:
        """Set the outcome of each row, and leave out rows without one."""
        if not self.columns.won:
            self.outcomes = np.ones(len(self.first), dtype=np.int64)
        elif self.by_number:
            self.proba = self._read_probabilities()
            self.outcomes = self.proba[:, -1] - self.proba[:, 0]
        else:
            self.outcomes = self._read_winners(self.labels[self.columns.won[0]])
        if not (self.options.soft or self.options.ties):
            self.dropped.drop(self.outcomes == 0, "ties (ties=False)", by_option=True)

    def _read_winners(self, column: Coded) -> np.ndarray:
        """Return 1, 0 or -1 for each row of a column of words or numbers."""
        dropped, options = self.dropped, self.options
        dropped.drop(column.codes < 0, "without an outcome")
        words = [*_write_decimal_points(column.values, options.decimal), None]
        stated = {} if options.outcomes is None else label_words(options.outcomes, "outcomes=", 1)
        meaning = {str(word): code for word, code in stated.items()}
        named = [meaning.get(str(plain_name(word)), UNREAD) for word in words[:-1]]
        codes = np.array([*named, MISSING])[column.codes]
        others = np.flatnonzero(dropped.kept & (codes == UNREAD))
        codes[others] = self._read_words(column.codes, words, others)
        bad, unread = codes == BOTH_BAD, dropped.kept & (codes == UNREAD)
        codes[bad] = 0
        if unread.any():
            rows = dropped.kept & (codes != MISSING)
            if not np.isin((1, -1), codes[rows]).all():
                raise ValueError(
                    unread_outcomes_message([words[i] for i in column.codes[rows]], codes[rows])
                )
            shown = most_frequent(words[i] for i in column.codes[unread])
            dropped.drop(unread, f"whose outcome is neither side nor a tie ({shown})")
        if options.both_bad == "drop":
            dropped.drop(bad, 'both bad (both_bad="drop")', by_option=True)
        return codes

    def _read_words(self, codes: np.ndarray, words: list, rows: np.ndarray) -> np.ndarray:
        """Return the outcomes of some rows, each combination of word and competitors read once."""
        competitors, n = self.competitors, len(self.competitors)
        by_name = not all(isinstance(name, str) for name in competitors)
        by_name |= not set(map(plain_name, competitors)).isdisjoint(map(plain_name, words))
        key = codes[rows]
        if by_name:
            key = (key * n + self.first[rows]) * n + self.second[rows]
        _, at, inverse = np.unique(key, return_index=True, return_inverse=True)
        rows = rows[at]
        first, second = ([competitors[i] for i in side[rows]] for side in (self.first, self.second))
        sides = list_side_words([], [], (self.names[self.columns.a], self.names[self.columns.b]))
        outcomes = outcome_codes(
            [words[i] for i in codes[rows]],
            (first, second) if by_name else None,
            [*sides, *SIDES],
            rows,
            "Say what it means by outcomes={{{word!r}: 1}} (1 the first, -1 the second, 0 a tie).",
        )
        if outcomes is None:
            some = sorted({words[i] for i in codes[rows]}, key=float)[:5]
            raise ValueError(
                "Outcomes as numbers are -1, 0, 1, or 0, 0.5, 1, or 1, 1.5, 2 (the first, a tie, "
                f"the second); got values such as {some}. Of others say what they mean, such as by "
                "outcomes={1: 1, 2: -1, 0: 0}; if they are probabilities, say soft=True."
            )
        return outcomes[inverse.reshape(-1)]

    def _read_probabilities(self) -> np.ndarray:
        """Return the probabilities that the second won, that none did, and that the first did.

        Rows that say nothing are left out; where they are not soft, all are 0 or 1.
        """
        soft, dropped = self.options.soft, self.dropped
        every = columns = [self.numbers[i].values for i in self.columns.won]
        if len(columns) == 1:
            present = columns[0][~np.isnan(columns[0])]
            by_place = present.max(initial=0.0) > 1.0 and present.min(initial=1.0) >= 1.0
            first = 2.0 - columns[0] if by_place else columns[0]
            every = [first, 1.0 - first]
        table = np.stack([every[1], *every[2:], every[0]], axis=1)
        dropped.drop(np.isnan(table).any(axis=1), "without an outcome")
        refuse_rows(
            dropped.kept & ((table < 0.0) | (table > 1.0)).any(axis=1),
            "Probabilities must be from 0 to 1 (or all from 1, the first, to 2, the second); row "
            "{row} has {value} ({count} do so).",
            np.column_stack(columns),
        )
        if not soft and not np.isin(table[dropped.kept], (0.0, 1.0)).all():
            raise ValueError(
                "The columns of winner= must be 0 or 1 each. If probabilities, say soft=True."
            )
        dropped.drop(np.abs(table.sum(axis=1) - 1.0) > ROUNDED, "whose outcomes do not sum to 1")
        if soft and not self.options.ties and table.shape[1] == 3:
            table = table[:, ::2]
            total = table.sum(axis=1)
            dropped.drop(total <= 0.0, "sure ties (ties=False)", by_option=True)
            table = table / np.where(total > 0.0, total, 1.0)[:, None]
        return table

    # -- what goes along -----------------------------------------------------------------------

    def _drop_gaps(self) -> None:
        """Leave out rows that lack a judge, prompt or time that was named, a group or a control."""
        reasons = {
            getattr(self.columns, role): f"without a {role}"
            for role in ("judge", "prompt", "time")
            if getattr(self.options, role) is not None
        }
        if self.columns.by is not None:
            reasons[self.columns.by] = f"without a value in {self.names[self.columns.by]!r}"
        for position, reason in reasons.items():
            self.dropped.drop(self.labels[position].codes < 0, reason)
        for control in self.columns.controls:
            for position in control.columns:
                self._check_control_has_numbers(position)
            columns = [self.numbers[i].values for i in control.columns]
            if len(columns) == 1:
                is_time = control.columns[0] == self.columns.time
                _check_control_sign(control.label, columns[0], is_time)
            gaps = np.any([np.isnan(values) for values in columns], axis=0)
            if self.options.missing == "drop":
                self.dropped.drop(gaps, f"without a number for {control.label!r}")
            else:
                self.dropped.fill(gaps, control.label)

    def _check_control_has_numbers(self, position: int) -> None:
        """Raise ValueError for a column of a control that holds no number."""
        values, odd = self.numbers[position]
        if len(values) and np.isnan(values).all():
            some = f"it holds such as {odd}" if odd else "all its cells are empty"
            comma = any(_DECIMAL_COMMA.fullmatch(str(each)) for each in odd)
            remedy = ' Where 1,5 stands for 1.5, say decimal=",".' if comma else ""
            name = self.names[position]
            raise ValueError(f"The control column {name!r} has no number: {some}.{remedy}")

    def _values_of(self, position: int | None, rows: np.ndarray) -> np.ndarray | None:
        """Return the values of rows in a column, None where one is missing."""
        if position is None:
            return None
        codes, values = self.labels[position].codes[rows], self.labels[position].values
        values = list(map(_as_integer, values))
        if set(map(type, values)) in ({int}, {float}, {int, float}) and not (codes < 0).any():
            array = np.array(values)
            if array.tolist() == values:  # not of integers that it would round
                return array[codes]
        return object_array([*values, None])[codes]

    def _times_of(self, rows: np.ndarray) -> tuple[np.ndarray | None, str | None]:
        """Return the times of rows, NaN or NaT where there is none, and their kind.

        Both are None where there is no column, or a guessed one holds other things.

        Raises
        ------
        ValueError
            If the column was named, and holds other things than numbers or other things than dates.
        """
        if self.columns.time is None:
            return None, None
        codes = self.labels[self.columns.time].codes[rows]
        values = _write_decimal_points(self.labels[self.columns.time].values, self.options.decimal)
        times = []
        with suppress(ValueError):
            times = [parse_time(value) for value in values]
        dated = {time.is_date for time in times}
        if len(times) < len(values) or len(dated) > 1:
            if self.options.time is None:
                return None, None
            raise ValueError(_time_message(self.names[self.columns.time], values))
        gap = np.datetime64("NaT") if True in dated else np.nan
        array = np.array([time.value for time in times] + [gap] * bool((codes < 0).any()))
        kind = "dates" if True in dated else "numbers"
        zoned = any(time.has_zone for time in times)
        return array[codes], "dates in UTC" if zoned else kind

    # -- X and y -------------------------------------------------------------------------------

    def _build_votes(self) -> Bunch:
        """Return X, y and all that `from_votes` returns beside them."""
        rows, columns, like, weight = self.dropped.rows(), self.columns, self.like, None
        items, X, n_present = self._competitor_table(rows)
        controls = self._control_values(rows)
        X, center, scale = self._append_controls(X, controls)
        X, groups = self._append_groups(X, rows)
        n_votes = len(rows)
        if self.options.soft and self.proba is not None:
            of_vote, labels, weight = expand_probabilities(self.proba[rows], n_votes)
            rows = rows[of_vote]
            done = LabelledDuels(X[of_vote], labels, np.zeros(len(rows), dtype=bool))
        else:
            done = _label_votes(X, self.outcomes[rows].astype(np.int64), like)
        order = (np.where(done.turned, -1, 1) if columns.won else np.zeros(len(rows))).astype(
            np.int8
        )
        warn_alike(
            items.names.tolist(), 'say alike="merge", which takes the spelling of most votes'
        )
        self.dropped.warn()
        return Bunch(
            X=done.X,
            y=done.y,
            item_table=items,
            rows=rows,
            **self._collect_metadata(rows, order, weight),
            controls=list(controls),
            control_center=center,
            control_scale=scale,
            by=None if columns.by is None else self.names[columns.by],
            groups=groups,
            n_read=len(self.first),
            dropped=self.dropped.counts,
            summary=self.dropped.summary(n_present),
        )

    def _collect_metadata(self, rows, order, weight):
        """Return judges, prompts, times, order and weights, and which of them go to a fit."""
        options, columns = self.options, self.columns
        judges, prompts = (self._values_of(each, rows) for each in (columns.judge, columns.prompt))
        times, kind = self._times_of(rows)
        answer_fields = {"sample_weight": weight, "judges": judges, "prompts": prompts}
        answer_fields["order"] = order
        of_fit = {
            "order": order if columns.won else None,
            "judges": None if options.judge is None else judges,
            "prompts": None if options.prompt is None or options.time is not None else prompts,
            "time": None if options.time is None else times,
            "sample_weight": weight,
        }
        metadata = {name: values for name, values in of_fit.items() if values is not None}
        return {"metadata": metadata, **answer_fields, "times": times, "times_are": kind}

    def _competitor_table(self, rows: np.ndarray) -> tuple[ItemTable, np.ndarray, int]:
        """Return the competitors of rows, the positions of each pair, and how many there are."""
        pairs = np.stack([self.first[rows], self.second[rows]], axis=1)
        present = np.unique(pairs)
        names = [self.competitors[i] for i in present]
        items = ItemTable.from_names([*self.known_competitors, *names])
        place = np.full(len(self.competitors), -1, dtype=np.int64)
        place[present] = items.index(names)
        return items, place[pairs], len(present)

    def _control_values(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values of each control on both sides of rows, (n_rows, 2), by their names."""
        values = {
            control.label: _control_sides([self.numbers[i].values[rows] for i in control.columns])
            for control in self.columns.controls
        }
        own = self._own_answers(rows)
        is_control = own.any() if self.like is None else OWN_ANSWER in self.like.controls
        return values if not is_control or OWN_ANSWER in values else {**values, OWN_ANSWER: own}

    def _own_answers(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 where a side is the judge of the vote by name and 0 elsewhere, (n_rows, 2)."""
        position = self.columns.judge
        if self.options.judge is None or position is None:
            return np.zeros((len(rows), 2))
        codes, values = self.labels[position]
        number = {name: i for i, name in enumerate(self.competitors)}
        # Numbers of judges and of competitors count different things.
        names = [value.strip() if isinstance(value, str) else "" for value in values]
        judge = np.array([*(number.get(name, -2) for name in names), -2])[codes[rows]]
        return np.stack([self.first[rows] == judge, self.second[rows] == judge], axis=1) * 1.0

    def _append_controls(self, pairs, controls):
        """Return X, the pairs with centred and scaled controls, and center and scale of each."""
        if not controls:
            return pairs, np.zeros(0), np.ones(0)
        if self.like is None:
            units = np.array([_center_and_scale(*control) for control in controls.items()])
        else:
            units = np.column_stack([self.like.control_center, self.like.control_scale])
        every = zip(controls.values(), units, strict=True)
        columns = [(sides - center) / scale for sides, (center, scale) in every]
        return np.stack([pairs, *columns], axis=-1), *np.ascontiguousarray(units.T)

    def _append_groups(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, list | None]:
        """Return X with the number of each vote's group as a last column, and the groups.

        Groups from before come first, others by frequency.
        """
        if self.columns.by is None:
            return X, None
        column = self.labels[self.columns.by]
        count = np.bincount(column.codes[rows], minlength=len(column.values))
        order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
        before = [] if self.like is None else self.like.groups
        groups = list(dict.fromkeys([*before, *(column.values[code] for code in order)]))
        number = {value: i for i, value in enumerate(groups)}
        codes = np.array([number.get(value, -1) for value in column.values])[column.codes[rows]]
        sides = X if X.ndim == 3 else X[:, :, None]
        last = np.tile(codes[:, None, None], (1, 2, 1))
        return np.concatenate([sides, last], axis=2, dtype=float), groups


def _as_integer(value: Any) -> Any:
    """Return an integer for a float that is one, as in columns of integers with gaps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _write_decimal_points(values: list, decimal: str) -> list:
    """Return values with texts such as 0,5 written 0.5, if commas stand before decimals."""
    if decimal == ".":
        return values
    is_number = [isinstance(v, str) and _DECIMAL_COMMA.fullmatch(v) for v in values]
    return [v.replace(",", ".") if n else v for v, n in zip(values, is_number, strict=True)]


def _check_control_sign(label: str, values: np.ndarray, is_time: bool) -> None:
    """Raise ValueError for a control that is the time, and warn of one that has one sign."""
    present = values[~np.isnan(values)]
    low, high = float(present.min()), float(present.max())
    if low <= 0.0 <= high:
        return
    finding = (
        f"The control {label!r} is one column, so that it must hold the difference of the two "
        f"sides; it lies between {low:g} and {high:g}, on one side of 0 in all {len(present)} "
        "votes."
    )
    if is_time:
        raise ValueError(
            f"{finding} It is named as the time of a vote is, which decides none. Leave it out."
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
            f"The control {label!r} is the same on both sides of every vote; leave it out."
        )
    return center, scale


def _time_message(name: Any, values: list) -> str:
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


def _label_votes(X: np.ndarray, signs: np.ndarray, like: Bunch | None) -> LabelledDuels:
    """Return duels with labels, which have ties if some votes, or those before, are ties."""
    if like is None and not signs.any():
        raise ValueError(
            f"All {len(signs)} votes that can be read are ties. Give votes that somebody won."
        )
    tied = bool((signs == 0).any()) or (like is not None and "tie_threshold" in like.params)
    return attach_labels(X, signs if tied else (signs == 1).astype(np.int64), tied)
