"""Votes as arenas publish them: who met whom, who won, who judged, and what to control for."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import check_choice, warn
from skpref.data._columns import (
    MISSING,
    UNREAD,
    codes_by_word,
    common_part,
    one_sided,
    plain_name,
    side_words,
    warn_alike,
)
from skpref.data._items import ItemTable
from skpref.data._labels import Finished, finish
from skpref.data._soft import ROUNDED, soft_rows
from skpref.data._tables import Coded, Numbers, Table, open_table

# Names of columns that arenas use, the surest first.
_PAIRS = (
    *(("model a", "model b"), ("model 1", "model 2"), ("model left", "model right")),
    *(("left model", "right model"), ("generator 1", "generator 2"), ("left", "right"), ("a", "b")),
    *(("item a", "item b"), ("player a", "player b"), ("player 1", "player 2")),
    *(("chatbot a", "chatbot b"), ("bot a", "bot b"), ("system a", "system b")),
    *(("modela", "modelb"), ("model1", "model2"), ("player1", "player2")),
    *(("first", "second"), ("home", "away"), ("white", "black"), ("winner", "loser")),
)
_WINNER = (
    *("winner", "winner name", "vote", "verdict", "outcome", "result", "preference"),
    *("preferred", "choice", "judgment", "judgement", "label"),
)
_JUDGE = (
    *("judge", "judge id", "judge name", "judge hash", "annotator", "annotator id"),
    *("worker", "worker id", "rater", "rater id", "voter", "voter id", "user", "user id"),
)
_PROMPT = ("question id", "prompt id", "prompt", "question", "instruction")
_TIME = ("tstamp", "timestamp", "time", "date", "created at")
# What the two sides may be called in the names of columns and in outcomes.
_SIDES = (
    *(("model a", "model b"), ("a", "b"), ("left", "right"), ("1", "2"), ("first", "second")),
    *(("model 1", "model 2"), ("model left", "model right"), ("response a", "response b")),
    *(("assistant a", "assistant b"), ("home", "away")),
)
_BOTH_BAD = re.compile(r".*\bboth\s?(are )?bad\b|neither\b", re.IGNORECASE)
# Left out for what they lack: from this share on a warning says so.
_MUCH = 0.05
# A column of differences that all have one sign is looked at from so many votes on.
_ONE_SIDED = 10
# A control with larger values is refused: sums of them would be no numbers.
_LARGEST = 1e290


class Control(NamedTuple):
    """What differs between the two sides beside who they are.

    Attributes
    ----------
    label : str
    columns : tuple of int
        Positions of the column of either side, or of the one that holds their difference.
    """

    label: str
    columns: tuple[int, ...]


class _Names:
    """Finds columns by their names, whatever their case, spaces, dashes and underscores."""

    def __init__(self, names: list) -> None:
        self._names = names
        self._plain = [plain_name(name) for name in names]

    def find(self, name: Any) -> int | None:
        """Position of a column, None if there is none."""
        for names, wanted in ((self._names, name), (self._plain, plain_name(name))):
            found = [
                i for i, one in enumerate(names) if type(one) is type(wanted) and one == wanted
            ]
            if len(found) > 1:
                raise ValueError(
                    f"{len(found)} columns are named {self._names[found[0]]!r}, or the same in "
                    "other case or spacing; rename or drop all but one."
                )
            if found:
                return found[0]
        return None

    def need(self, name: Any, what: str) -> int:
        found = self.find(name)
        if found is None:
            raise ValueError(f"There is no column {name!r} ({what}); there are {self._names}.")
        return found

    def guess(self, candidates: Sequence[str]) -> int | None:
        """The first of some names that a column has."""
        found = (self.find(name) for name in candidates)
        return next((position for position in found if position is not None), None)

    def pair(self, candidates: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
        """The first pair of names that two columns have."""
        for one, other in candidates:
            found = self.find(one), self.find(other)
            if found[0] is not None and found[1] is not None:
                return found[0], found[1]
        return None

    def __getitem__(self, position: int) -> Any:
        return self._names[position]

    def __str__(self) -> str:
        return str(self._names)


class _Chosen(NamedTuple):
    """Positions of the columns that a reading takes, None for those that there are not.

    ``won`` are columns of outcomes: none where the two sides are the winner and the loser, one of
    words or numbers, two or three of numbers for the outcomes.
    """

    a: int
    b: int
    won: tuple[int, ...]
    judge: int | None
    prompt: int | None
    time: int | None

    @property
    def labels(self) -> list[int]:
        """Columns that are read as they are."""
        single = self.won if len(self.won) == 1 else ()
        every = (self.a, self.b, *single, self.judge, self.prompt, self.time)
        return [position for position in every if position is not None]


def _choose(names: _Names, a: Any, b: Any, winner: Any, others: Sequence[Any]) -> _Chosen:
    if (a is None) != (b is None):
        raise ValueError("Only one of a= and b= came; give both columns, or neither to guess them.")
    if a is not None:
        sides = names.need(a, "a="), names.need(b, "b=")
    else:
        guessed = names.pair(_PAIRS)
        if guessed is None:
            raise ValueError(
                "No two columns are named as competitors are in votes, such as 'model_a' and "
                f"'model_b'; there are {names}. Say which by a= and b=."
            )
        sides = guessed
    if sides[0] == sides[1]:
        raise ValueError(f"a= and b= are one column, {names[sides[0]]!r}; give two.")
    plain = [plain_name(names[i]) for i in sides]
    won = _choose_winner(names, winner, decided=winner is None and plain == ["winner", "loser"])
    found = [
        names.guess(candidates) if name is None else names.need(name, f"{what}=")
        for name, what, candidates in zip(
            others, ("judge", "prompt", "time"), (_JUDGE, _PROMPT, _TIME), strict=True
        )
    ]
    taken = {*sides, *won}
    for i, name in enumerate(others):
        if found[i] in taken and name is None:
            found[i] = None
    _check_apart(names, sides, won)
    chosen = _Chosen(*sides, won, *found)
    for what, position in zip(("judge", "prompt", "time"), found, strict=True):
        if position is not None:
            _refuse_taken(names, position, f"{what}=", chosen, ("a=", "b=", "winner="))
    return chosen


def _check_apart(names: _Names, sides: tuple[int, int], won: tuple[int, ...]) -> None:
    """Refuse a column of outcomes that came twice, or that holds a competitor."""
    if len(set(won)) < len(won):
        raise ValueError(
            f"The columns of winner= are {[names[i] for i in won]}; give each outcome its own."
        )
    for side, ever in zip(sides, ("first", "second"), strict=True):
        if side in won:
            raise ValueError(
                f"winner= is the column {names[side]!r}, which holds the {ever} competitor of each "
                f"vote, so that the {ever} would win all. Give the column that says who won; where "
                "the two columns are of the winners and of the losers, name them 'winner' and "
                "'loser', and leave winner= out."
            )


def _refuse_taken(
    names: _Names, position: int, what: str, chosen: _Chosen, roles: Sequence[str]
) -> None:
    """Refuse a column that says something else of a vote already."""
    held = {
        "a=": (chosen.a,),
        "b=": (chosen.b,),
        "winner=": chosen.won,
        "judge=": (chosen.judge,),
        "prompt=": (chosen.prompt,),
        "time=": (chosen.time,),
    }
    for role in roles:
        if position in held[role]:
            raise ValueError(
                f"{what} is the column {names[position]!r}, which is that of {role} already. Give "
                "one of the two another column."
            )


def _choose_winner(names: _Names, winner: Any, decided: bool) -> tuple[int, ...]:
    if isinstance(winner, tuple):
        if len(winner) not in (2, 3):
            raise ValueError(
                f"winner= has {len(winner)} columns; give two, where the first and where the "
                "second won, and a third for ties, or one that says who won."
            )
        return tuple(names.need(name, "winner=") for name in winner)
    if decided:
        return ()
    if winner is not None:
        return (names.need(winner, "winner="),)
    one = names.guess(_WINNER)
    if one is not None:
        return (one,)
    every = [names.find(f"winner {side}") for side in ("model a", "model b", "tie")]
    if every[0] is not None and every[1] is not None:
        return tuple(position for position in every if position is not None)
    raise ValueError(
        f"No column is named as winners are in votes, such as 'winner'; there are {names}. Say "
        "which by winner=."
    )


def _find_controls(names: _Names, controls: Any, chosen: _Chosen) -> list[Control]:
    listed = [controls] if isinstance(controls, str) else list(controls or ())
    pairs = [*side_words([], [], (names[chosen.a], names[chosen.b])), *_SIDES]
    for each in listed:
        position = names.find(each) if isinstance(each, str) else None
        if position is not None:
            _refuse_taken(names, position, f"The control {each!r}", chosen, ("a=", "b=", "winner="))
    found = [_find_control(names, each, pairs) for each in listed]
    repeated = [label for label, n in Counter(each.label for each in found).items() if n > 1]
    if repeated:
        raise ValueError(f"Controls came twice: {repeated}. Give each once.")
    return found


def _find_control(names: _Names, control: Any, pairs: list) -> Control:
    if isinstance(control, tuple):
        if len(control) != 2:
            raise ValueError(
                f"The control {control!r} has {len(control)} columns; give that of either side, or "
                "the name of one that holds their difference."
            )
        columns = tuple(names.need(each, "controls=") for each in control)
        common = common_part(*control)
        return Control(common[0] if common else f"{control[0]} - {control[1]}", columns)
    if not isinstance(control, str):
        raise ValueError(
            f"A control must be the name of a column or pair of columns; {control!r} came."
        )
    itself = names.find(control)
    name = control.strip()
    two = names.pair([each for pair in pairs for each in _sided(name, pair)])
    if itself is not None and two is not None:
        raise ValueError(
            f"The control {control!r} may be the column of this name, a difference, or "
            f"{names[two[0]]!r} and {names[two[1]]!r}; say which: rename the column, or give "
            f"({names[two[0]]!r}, {names[two[1]]!r})."
        )
    if itself is not None:
        _check_both_sides(names, itself, pairs)
        return Control(name, (itself,))
    if two is not None:
        return Control(name, two)
    for at in (match.start() for match in re.finditer("[-\u2212]", control)):
        sides = names.find(control[:at].strip()), names.find(control[at + 1 :].strip())
        if sides[0] is not None and sides[1] is not None:
            common = common_part(names[sides[0]], names[sides[1]])
            return Control(common[0] if common else name, (sides[0], sides[1]))
    raise ValueError(
        f"There is no control {control!r}: no column has this name, none are "
        f"'{name}_a' and '{name}_b', and it is no difference of two such as "
        f"'length_a-length_b'; there are {names}."
    )


def _check_both_sides(names: _Names, position: int, pairs: list) -> None:
    """Refuse the column of one side, which would be taken for a difference."""
    plain = plain_name(names[position])
    for side, opposite in [each for one, other in pairs for each in ((one, other), (other, one))]:
        for head, tail in ((f"{plain_name(side)} ", ""), ("", f" {plain_name(side)}")):
            if not (plain.startswith(head) and plain.endswith(tail)):
                continue
            common = plain[len(head) : len(plain) - len(tail)]
            turned = f"{opposite} {common}" if head else f"{common} {opposite}"
            there = names.find(turned)
            if there is not None:
                raise ValueError(
                    f"The control {names[position]!r} is of one side alone, {names[there]!r} of "
                    f"the other; give both by {common!r}, or the two columns. A single column "
                    "must hold their difference."
                )


def _check_control(
    names: _Names, control: Control, chosen: _Chosen, grouped: int | None, guessed: bool
) -> None:
    """Refuse columns that are no property of a side; of a guessed time its values will tell."""
    roles = ["a=", "b=", "winner=", "judge=", "prompt=", *(() if guessed else ("time=",))]
    for position in control.columns:
        what = f"The control {control.label!r}"
        _refuse_taken(names, position, what, chosen, roles)
        if position == grouped:
            raise ValueError(
                f"{what} is the column {names[position]!r}, which is that of by= already: a group "
                "is the same for both sides, so that it decides no vote. Leave one of them out."
            )


def _sided(name: str, sides: tuple[str, str]) -> list[tuple[str, str]]:
    """How the columns of either side may be named."""
    one, other = sides
    return [(f"{name} {one}", f"{name} {other}"), (f"{one} {name}", f"{other} {name}")]


def read_votes(
    votes: Any,
    a: Any = None,
    b: Any = None,
    winner: Any = None,
    judge: Any = None,
    controls: Any = None,
    prompt: Any = None,
    time: Any = None,
    *,
    by: Any = None,
    soft: bool = False,
    both_bad: str = "tie",
    ties: bool = True,
    missing: str = "drop",
    alike: str = "apart",
    encoding: str | None = None,
    like: Bunch | None = None,
) -> Bunch:
    """Votes as `skpref.duels.from_votes` gives them, but for the kernel."""
    check_choice("both_bad", both_bad, ("tie", "drop"))
    check_choice("missing", missing, ("drop", "mean"))
    check_choice("alike", alike, ("apart", "merge"))
    table: Table = open_table(votes, encoding)
    names = _Names(table.names)
    chosen = _choose(names, a, b, winner, (judge, prompt, time))
    wanted = _find_controls(names, controls, chosen)
    if like is not None and [each.label for each in wanted] != like.controls:
        raise ValueError(
            f"The votes of like= have the controls {like.controls}, these "
            f"{[each.label for each in wanted]}; give controls= of the same names."
        )
    positions = list(dict.fromkeys(i for each in wanted for i in each.columns))
    grouped = None if by is None else names.need(by, "by=")
    if grouped is not None:
        _refuse_taken(names, grouped, "by=", chosen, ("a=", "b=", "winner="))
    for each in wanted:
        _check_control(names, each, chosen, grouped, guessed=time is None)
    if like is not None and (grouped is None) != (like.groups is None):
        raise ValueError(
            f"The votes of like= came with by={like.by!r}, these with by={by!r}; give both groups, "
            "or none."
        )
    labels = list(dict.fromkeys([*chosen.labels, *([] if grouped is None else [grouped])]))
    if soft and not chosen.won:
        raise ValueError("Winners and losers are no probabilities; say by winner= which are.")
    if soft or len(chosen.won) > 1:
        positions = list(dict.fromkeys([*positions, *chosen.won]))
    columns, numbers = table.read(labels, positions)
    column = dict(zip(labels, columns, strict=True))
    values = dict(zip(positions, numbers, strict=True))
    before = [] if like is None else like.item_table.names.tolist()
    first, second, known = _competitors(column[chosen.a], column[chosen.b], before, alike)
    n_rows = len(first)
    if n_rows == 0:
        raise ValueError("The table has no row, so no vote.")
    if a is not None:
        _warn_strangers(names, chosen, np.intersect1d(first, second), known)
    out = _LeftOut(n_rows)
    out.drop((first < 0) | (second < 0), "without a competitor's name")
    out.drop((first == second) & (first >= 0), "with the same competitor on both sides")
    codes, proba = np.ones(n_rows, dtype=np.int64), None
    if soft or len(chosen.won) > 1:
        proba = _probabilities([values[i] for i in chosen.won], out, soft, ties)
        codes = proba[:, -1] - proba[:, 0]
    elif chosen.won:
        sides = side_words([], [], (names[chosen.a], names[chosen.b]))
        words = column[chosen.won[0]]
        if alike == "merge":
            words = Coded(words.codes, _spelled(words.values, known))
        codes = _outcomes(words, first, second, known, sides, out, both_bad)
    if not soft:
        out.drop((codes == 0) & (not ties), "ties (ties=False)", meant=True)
    for position, name, what in ((chosen.judge, judge, "judge"), (chosen.time, time, "time")):
        if name is not None and position is not None:
            out.drop(column[position].codes < 0, f"without a {what}")
    if grouped is not None:
        out.drop(column[grouped].codes < 0, f"without a value in {names[grouped]!r}")
    for each in wanted:
        for position in each.columns:
            _check_numbers(names[position], values[position])
        if len(each.columns) == 1:
            values_of = values[each.columns[0]].values
            _check_difference(each.label, values_of, each.columns[0] == chosen.time)
        gaps = np.any([np.isnan(values[i].values) for i in each.columns], axis=0)
        if missing == "drop":
            out.drop(gaps, f"without a number for {each.label!r}")
        else:
            out.fill(gaps, each.label)
    rows = out.rows()
    present = np.unique(np.concatenate([first[rows], second[rows]]))
    items = ItemTable.from_names([*before, *(known[i] for i in present)])
    place = np.full(len(known), -1, dtype=np.int64)
    place[present] = items.index([known[i] for i in present])
    X = np.stack([place[first[rows]], place[second[rows]]], axis=1)
    center, scale = np.zeros(len(wanted)), np.ones(len(wanted))
    if wanted:
        whole = np.empty((len(rows), 2, 1 + len(wanted)))
        whole[:, :, 0] = X
        for j, each in enumerate(wanted):
            both = _sides_of(each, [values[i].values[rows] for i in each.columns])
            if like is None:
                center[j], scale[j] = _unit(each.label, both)
            else:
                center[j], scale[j] = like.control_center[j], like.control_scale[j]
            whole[:, :, 1 + j] = (both - center[j]) / scale[j]
        X = whole
    groups = None
    if grouped is not None:
        known_groups = [] if like is None else like.groups
        group, groups = _most_first(column[grouped], rows, known_groups)
        columns_of = X if X.ndim == 3 else X[:, :, None]
        X = np.concatenate(
            [columns_of, np.tile(group[:, None, None], (1, 2, 1))], axis=2, dtype=float
        )
    weight = None
    if soft and proba is not None:
        of_vote, labels_of, weight = soft_rows(proba[rows], len(rows))
        X, rows = X[of_vote], rows[of_vote]
        done = Finished(X, labels_of, np.zeros(len(rows), dtype=bool))
    else:
        signs = codes[rows].astype(np.int64)
        if like is None and not signs.any():
            raise ValueError(
                f"All {len(rows)} votes that can be read are ties, which put no competitor above "
                "another."
            )
        tied = bool((signs == 0).any()) or (like is not None and "tie_threshold" in like.params)
        done = finish(X, signs if tied else (signs == 1).astype(np.int64), tied)
    order = np.where(done.turned, -1, 1) if chosen.won else np.zeros(len(rows))
    warn_alike(
        items.names.tolist(),
        'say alike="merge", which takes the spelling of most votes',
    )
    if like is None and len(present) > len(np.unique(rows)) + 1:
        warn(
            f"{len(present)} competitors in {len(np.unique(rows))} votes: most have met no other "
            f"than one, and no board compares them. Are {names[chosen.a]!r} and "
            f"{names[chosen.b]!r} the columns of the competitors?"
        )
    out.warn()
    times = _times(column, chosen.time, rows, names, guessed=time is None)
    return Bunch(
        X=done.X,
        y=done.y,
        sample_weight=weight,
        item_table=items,
        judges=_listed(column, chosen.judge, rows),
        prompts=_listed(column, chosen.prompt, rows),
        times=times.values,
        times_are=times.are,
        order=order.astype(np.int8),
        rows=rows,
        controls=[each.label for each in wanted],
        control_center=center,
        control_scale=scale,
        by=None if grouped is None else names[grouped],
        groups=groups,
        n_read=n_rows,
        dropped=out.counts,
        summary=out.summary(len(present)),
    )


def _most_first(column: Coded, rows: np.ndarray, before: list) -> tuple[np.ndarray, list]:
    """Number of the value of each row, and the values: those from before, then by frequency."""
    count = np.bincount(column.codes[rows], minlength=len(column.values))
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    values = list(dict.fromkeys([*before, *(column.values[code] for code in order)]))
    number = {value: i for i, value in enumerate(values)}
    codes = np.array([number.get(value, -1) for value in column.values])
    return codes[column.codes[rows]], values


class _LeftOut:
    """Which rows are left out, and why."""

    def __init__(self, n_rows: int) -> None:
        self._left = np.ones(n_rows, dtype=bool)
        self._unmeant = 0
        self._filled: list[str] = []
        self.counts: dict[str, int] = {}

    def drop(self, rows: np.ndarray, reason: str, meant: bool = False) -> None:
        """Leave out rows that are not yet left out."""
        n = int((rows & self._left).sum())
        if n:
            self._left &= ~rows
            self.counts[reason] = n
            self._unmeant += 0 if meant else n

    def fill(self, rows: np.ndarray, label: str) -> None:
        n = int((rows & self._left).sum())
        if n:
            self._filled.append(f"{n} without a number for {label!r} have its mean")

    def left(self, rows: np.ndarray) -> np.ndarray:
        return rows & self._left

    def rows(self) -> np.ndarray:
        found = np.flatnonzero(self._left)
        if not len(found):
            raise ValueError(f"No vote is left: {self._reasons()}.")
        return found

    def _reasons(self) -> str:
        return ", ".join(f"{n} {reason}" for reason, n in self.counts.items())

    def summary(self, n_items: int) -> str:
        """What was read and what was left out, in one line."""
        text = f"{self._left.sum()} of {len(self._left)} votes on {n_items} competitors"
        if self.counts:
            text += f"; left out: {self._reasons()}"
        return "; ".join([text, *self._filled])

    def warn(self) -> None:
        if self._unmeant > _MUCH * len(self._left):
            warn(
                f"{self._unmeant} of {len(self._left)} votes cannot be used: {self._reasons()}. "
                "Look at a few of them; what is left may not speak for all."
            )


def _warn_strangers(names: _Names, chosen: _Chosen, met: np.ndarray, known: list) -> None:
    """Warn where the columns named may be others than those of the competitors."""
    if (met >= 0).any():
        return
    sides = names[chosen.a], names[chosen.b]
    usual = names.pair(_PAIRS)
    other = usual is not None and not {chosen.a, chosen.b} & set(usual)
    odd = [each for each in sides if plain_name(each) in (*_JUDGE, *_PROMPT, *_TIME)]
    if not (other or odd):
        return
    advice = "If these are no competitors, name others by a= and b=."
    if other and usual is not None:
        advice = (
            f"There are {names[usual[0]]!r} and {names[usual[1]]!r}, which are taken if a= and b= "
            "are left out."
        )
    warn(
        f"{sides[0]!r} and {sides[1]!r} are to be the competitors, and have no value in common "
        f"(there are {', '.join(map(repr, known[:3]))}, …). {advice}"
    )


def _competitors(
    one: Coded, other: Coded, before: list, alike: str
) -> tuple[np.ndarray, np.ndarray, list]:
    """Codes of the two sides in one sorted list of names, and this list."""
    values = [_tidy(value) for value in (*one.values, *other.values)]
    if len({isinstance(value, str) for value in (*values, *before)}) > 1:
        values = [str(value) for value in values]
    if alike == "merge":
        counts = [np.bincount(c.codes[c.codes >= 0], minlength=len(c.values)) for c in (one, other)]
        values = _merge_alike(values, np.concatenate(counts), before)
    known = sorted(set(values))
    code = {name: i for i, name in enumerate(known)}
    number = np.array([code[value] for value in values], dtype=np.int64)
    sides = np.split(number, [len(one.values)])
    return *(np.append(n, -1)[c.codes] for n, c in zip(sides, (one, other), strict=True)), known


def _merge_alike(values: list, counts: np.ndarray, before: list) -> list:
    """One spelling for names that differ in case, spaces or dashes: one from before, or the most
    frequent."""
    total: Counter = Counter()
    for value, count in zip(values, counts.tolist(), strict=True):
        total[value] += count
    spelling = {plain_name(name): name for name, _ in total.most_common()[::-1]}
    spelling |= {plain_name(name): name for name in before}
    return [spelling[plain_name(value)] for value in values]


def _spelled(values: list, known: list) -> list:
    """Names in the spelling of those that are known, other values as they are."""
    spelling = {plain_name(name): name for name in known}
    return [spelling.get(plain_name(v), v) if isinstance(v, str) else v for v in values]


def _tidy(name: Any) -> Any:
    if isinstance(name, str):
        return name.strip()
    if isinstance(name, bool | np.bool_) or not isinstance(name, Real):
        return str(name)
    return _whole(name)


def _whole(value: Any) -> Any:
    """An integer for a float that is one, as columns of integers with gaps have."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _outcomes(
    column: Coded,
    first: np.ndarray,
    second: np.ndarray,
    known: list,
    sides: list,
    out: _LeftOut,
    both_bad: str,
) -> np.ndarray:
    """1, 0 or -1 for each row; rows without an outcome are left out."""
    out.drop(column.codes < 0, "without an outcome")
    numbers = _by_number(_as_floats(column.values), first, second, column.codes, known, out)
    if numbers is not None:
        return np.append(numbers, MISSING)[column.codes]
    # A few combinations of competitors and words stand for all rows.
    width = len(known) + 1
    key = ((column.codes + 1) * width + first + 1) * width + second + 1
    _, rows, inverse = np.unique(key, return_index=True, return_inverse=True)
    names = [*known, None]
    value = [[*column.values, None][column.codes[row]] for row in rows]
    one, other = ([names[side[row]] for row in rows] for side in (first, second))
    found = codes_by_word(value, (one, other), [*sides, *_SIDES], rows)[inverse.reshape(-1)]
    bad = np.array([_is_both_bad(each) for each in column.values] + [False], dtype=bool)
    bad = bad[column.codes] & ((found == 0) | (found == UNREAD))
    found[bad] = 0
    unread = out.left(found == UNREAD)
    if unread.any():
        kept = out.left(found != MISSING)
        if not ((found[kept] == 1).any() and (found[kept] == -1).any()):
            words = [[*column.values, None][code] for code in column.codes[kept]]
            raise ValueError(one_sided(words, found[kept]))
        some = Counter(column.values[code] for code in column.codes[unread]).most_common(3)
        shown = ", ".join(f"{word!r} ({n})" for word, n in some)
        out.drop(unread, f"whose outcome is neither side nor a tie ({shown})")
    if both_bad == "drop":
        out.drop(bad, 'both bad (both_bad="drop")', meant=True)
    return found


def _probabilities(columns: list[Numbers], out: _LeftOut, soft: bool, ties: bool) -> np.ndarray:
    """Probabilities that the second won, that none did if columns say so, and that the first did.

    Rows that say nothing are left out; where they are not soft, all are 0 or 1.
    """
    every = [column.values for column in columns]
    if len(every) == 1:
        one = every[0]
        there = one[~np.isnan(one)]
        by_place = there.max(initial=0.0) > 1.0 and there.min(initial=1.0) >= 1.0
        first = 2.0 - one if by_place else one
        every = [first, 1.0 - first]
    table = np.stack([every[1], *every[2:], every[0]], axis=1)
    out.drop(np.isnan(table).any(axis=1), "without an outcome")
    read = out.left(np.ones(len(table), dtype=bool))
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
    out.drop(np.abs(table.sum(axis=1) - 1.0) > ROUNDED, "whose outcomes do not sum to 1")
    if soft and not ties and table.shape[1] == 3:
        table = table[:, ::2]
        total = table.sum(axis=1)
        out.drop(total <= 0.0, "sure ties (ties=False)", meant=True)
        table = table / np.where(total > 0.0, total, 1.0)[:, None]
    return table


def _is_both_bad(value: Any) -> bool:
    return isinstance(value, str) and _BOTH_BAD.match(plain_name(value)) is not None


def _as_floats(values: list) -> list:
    """Texts as numbers, where all are."""
    if all(isinstance(value, str) for value in values):
        with suppress(ValueError):
            return [float(value) for value in values]
    return values


def _by_number(
    values: list,
    first: np.ndarray,
    second: np.ndarray,
    codes: np.ndarray,
    known: list,
    out: _LeftOut,
) -> np.ndarray | None:
    """1, 0 or -1 for each distinct outcome; None if they are no such numbers."""
    if not values or not all(isinstance(value, Real | np.bool_) for value in values):
        return None
    found = set(values)
    if not all(isinstance(name, str) for name in known):
        rows = out.left(codes >= 0)
        numbers = np.array(values, dtype=np.float64)[codes[rows]]
        sides = [np.array([*known, np.nan], dtype=np.float64)[s[rows]] for s in (first, second)]
        of_id = np.where(numbers == sides[0], 1, np.where(numbers == sides[1], -1, 0))
        if of_id.all():
            for first_wins, second_wins in ((1, 0), (1, 2)):
                of_side = np.where(numbers == first_wins, 1, -1)
                if found <= {first_wins, second_wins} and (of_side != of_id).any():
                    raise ValueError(
                        f"Outcomes {sorted(found)} may be the ids of the winners, or say which "
                        "side won, and these disagree. Name the competitors in words, or write the "
                        "outcomes as model_a and model_b."
                    )
            return None  # ids of the winners
    for levels in ({-1: -1, 0: 0, 1: 1}, {0: -1, 0.5: 0, 1: 1}, {1: 1, 1.5: 0, 2: -1}):
        lowest = min(levels)
        plain = lowest != -1 or -1 in found  # without -1, 0 is a defeat
        if found <= set(levels) and plain:
            return np.array([levels[value] for value in values], dtype=np.int64)
    raise ValueError(
        f"Outcomes as numbers are -1, 0, 1, or 0, 0.5, 1, or 1, 1.5, 2 (the first, a tie, the "
        f"second); values such as {sorted(found)[:5]} came. If they are probabilities that the "
        "first won, say soft=True."
    )


_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


def _check_numbers(name: Any, numbers: Numbers) -> None:
    if len(numbers.values) and np.isnan(numbers.values).all():
        some = f"it holds such as {numbers.odd}" if numbers.odd else "all its cells are empty"
        remedy = ""
        if any(_DECIMAL_COMMA.fullmatch(str(each)) for each in numbers.odd):
            remedy = " Write 1.5 for 1,5; pandas reads such a file by read_csv(..., decimal=',')."
        raise ValueError(f"The control column {name!r} has no number: {some}.{remedy}")


def _check_difference(label: str, values: np.ndarray, timed: bool) -> None:
    """Look whether a column may hold differences of the two sides, which go either way."""
    there = values[~np.isnan(values)]
    low, high = float(there.min()), float(there.max())
    if low <= 0.0 <= high:
        return
    found = (
        f"The control {label!r} is one column, so that it must hold the difference of the two "
        f"sides; it lies between {low:g} and {high:g}, on one side of 0 in all {len(there)} votes."
    )
    if timed:
        raise ValueError(
            f"{found} It is named as the time of a vote is, which is the same for both sides and "
            "decides none. Leave it out."
        )
    if len(there) >= _ONE_SIDED:
        warn(
            f"{found} If it is the same for both sides, as the length of a prompt is, leave it "
            "out, or make groups of it for by=; if it is of one side, give the columns of both."
        )


def _sides_of(control: Control, columns: list[np.ndarray]) -> np.ndarray:
    """Values of a control on both sides, gaps filled."""
    if len(columns) == 1:
        half = np.nan_to_num(columns[0]) / 2.0
        return np.stack([half, -half], axis=1)
    sides = np.stack(columns, axis=1)
    return np.where(np.isnan(sides), np.nanmean(sides), sides)


def _unit(label: str, sides: np.ndarray) -> tuple[float, float]:
    """The mean of a control, and the root mean square of its differences."""
    largest = float(np.max(np.abs(sides)))
    if largest > _LARGEST:
        raise ValueError(
            f"The control {label!r} holds values up to {largest:.1e}, too near the largest number "
            "of double precision. Divide it by a number."
        )
    apart = sides[:, 0] - sides[:, 1]
    size = float(np.max(np.abs(apart)))
    scale = size * float(np.sqrt(np.mean((apart / (size or 1.0)) ** 2)))
    if not scale > 0.0:
        raise ValueError(
            f"The control {label!r} is the same on both sides of every vote, so that its effect "
            "cannot be told; leave it out."
        )
    return float(sides.mean()), scale


def _listed(column: dict, position: int | None, rows: np.ndarray) -> np.ndarray | None:
    """Values of the rows, None where one is missing; None if there is no column."""
    if position is None:
        return None
    codes, values = column[position]
    values = [_whole(value) for value in values]
    kinds = {type(value) for value in values}
    if kinds and kinds <= {int, float} and not (codes[rows] < 0).any():
        return np.array(values)[codes[rows]]
    array = np.empty(len(values) + 1, dtype=object)
    array[:-1] = values
    return array[codes[rows]]


# A date of which nothing tells the day from the month.
_AMBIGUOUS = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b")


class _Times(NamedTuple):
    """Times of votes as numbers, and what they are: see `from_votes`."""

    values: np.ndarray | None = None
    are: str | None = None


def _times(
    column: dict, position: int | None, rows: np.ndarray, names: _Names, guessed: bool
) -> _Times:
    """Numbers as they are, dates in days since 1970; NaN where there is none."""
    if position is None:
        return _Times()
    codes, values = column[position]
    try:
        times = np.array([*map(moment, values), np.nan])
    except (TypeError, ValueError):
        if guessed:
            return _Times()
        odd = next((v for v in values if isinstance(v, str) and _AMBIGUOUS.match(v)), None)
        remedy = ""
        if odd is not None:
            column_of = f"votes[{names[position]!r}]"
            remedy = (
                f" Which part of {odd} is the day is not guessed: convert by pandas, {column_of} = "
                f"pandas.to_datetime({column_of}, dayfirst=True), or dayfirst=False where the "
                "month comes first; votes.to_csv(path, index=False) writes a file of them."
            )
        raise ValueError(
            f"The times in column {names[position]!r} must be numbers or dates such as "
            f"2024-05-17 or 2024-05-17T12:30:00; values such as {values[:3]} came.{remedy}"
        ) from None
    dates = [value for value in values if is_date(value)]
    if dates and len(dates) < len(values):
        if guessed:
            return _Times()
        number = next(value for value in values if not is_date(value))
        raise ValueError(
            f"The times in column {names[position]!r} are numbers, such as {number}, and dates, "
            f"such as {dates[0]}; give one kind."
        )
    zoned = any(_has_zone(value) for value in dates)
    are = "dates in UTC" if zoned else "dates" if dates else "numbers"
    return _Times(times[codes[rows]], are)


def is_date(value: Any) -> bool:
    """Whether a time that `moment` reads is a date, not a number."""
    if not isinstance(value, str):
        return not isinstance(value, Real)
    try:
        float(value)
    except ValueError:
        return True
    return False


def _has_zone(value: Any) -> bool:
    read = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    return getattr(read, "tzinfo", None) is not None


def moment(value: Any) -> float:
    """A time of votes as a number: numbers as they are, dates in days since 1970.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            value = datetime.fromisoformat(value.strip())
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.timestamp() / 86400.0
    return float(np.datetime64(value, "us").astype(np.int64)) / 86400e6
