"""Which columns of a table of votes hold what: the named ones, and names that arenas use."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.utils import Bunch

from skpref._utils import check_choice
from skpref.data._columns import list_side_words, split_common_part
from skpref.data._containers import plain_name
from skpref.data._tables import ColumnTable

# Names of columns that arenas use, the surest first.
PAIRS = (
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
JUDGE = (
    *("judge", "judge id", "judge name", "judge hash", "annotator", "annotator id"),
    *("worker", "worker id", "rater", "rater id", "voter", "voter id", "user", "user id"),
)
PROMPT = ("question id", "prompt id", "prompt", "question", "instruction")
TIME = ("tstamp", "timestamp", "time", "date", "created at")
# Name of the control that tells whether an item is the judge of the vote.
OWN_ANSWER = "own answer"
# What the two sides may be called in the names of columns and in outcomes.
SIDES = (
    *(("model a", "model b"), ("a", "b"), ("left", "right"), ("1", "2"), ("first", "second")),
    *(("model 1", "model 2"), ("model left", "model right"), ("response a", "response b")),
    *(("assistant a", "assistant b"), ("home", "away")),
)


@dataclass(frozen=True, kw_only=True)
class VoteOptions:
    """How a table of votes is read: the arguments of `skpref.duels.from_votes`."""

    a: Any = None
    b: Any = None
    winner: Any = None
    judge: Any = None
    controls: Any = None
    prompt: Any = None
    time: Any = None
    by: Any = None
    outcomes: Mapping[Any, int] | None = None
    soft: bool = False
    both_bad: str = "tie"
    ties: bool = True
    missing: str = "drop"
    alike: str = "apart"
    encoding: str | None = None
    decimal: str = "."
    like: Bunch | None = None

    def __post_init__(self) -> None:
        check_choice("both_bad", self.both_bad, ("tie", "drop"))
        check_choice("missing", self.missing, ("drop", "mean"))
        check_choice("alike", self.alike, ("apart", "merge"))
        check_choice("decimal", self.decimal, (".", ","))
        if (self.a is None) != (self.b is None):
            raise ValueError(
                f"got {'b= without a=' if self.a is None else 'a= without b='}; give both or none."
            )
        if self.outcomes is not None and self.soft:
            raise ValueError(
                "got outcomes=, of words, with soft=True, of numbers. Leave one of the two out."
            )


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


class ColumnNames:
    """Finds columns by their names, whatever their case, spaces, dashes and underscores."""

    def __init__(self, table: ColumnTable) -> None:
        self._names, self._nested = table.names, table.nested
        self._n_columns = len(table.names) - table.n_fields
        self._plain = [plain_name(name) for name in table.names]

    def find(self, name: Any) -> int | None:
        """Return the position of a column, None if there is none; ValueError if there are two."""
        for names, sought in ((self._names, name), (self._plain, plain_name(name))):
            same_type = [i for i, each in enumerate(names) if type(each) is type(sought)]
            places = [i for i in same_type if names[i] == sought]
            # A field of records has a name of its own only where no column has it.
            places = [i for i in places if i < self._n_columns] or places
            if len(places) > 1:
                raise ValueError(
                    f"{len(places)} columns are named {self._names[places[0]]!r}, or the same in "
                    "other case or spacing; rename or drop all but one."
                )
            if places:
                return places[0]
        return None

    def need(self, name: Any, role: str) -> int:
        """Return the position of a column of single values; ValueError if there is none."""
        position = self.find(name)
        if position is None:
            raise ValueError(f"There is no column {name!r} ({role}); there are {self}.")
        if position in self._nested:
            fields = [each for each in map(str, self._names) if each.startswith(f"{name}.")]
            advice = f"one of its fields, {fields}" if fields else "a column of one value a cell"
            raise ValueError(
                f"The column {name!r} ({role}) holds lists or records in its cells. Give {advice}."
            )
        return position

    def guess(self, candidates: Sequence[str]) -> int | None:
        """Return the position of the first of some names that a column of single values has."""
        places = (self.find(name) for name in candidates)
        return next((i for i in places if i is not None and i not in self._nested), None)

    def pair(self, candidates: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
        """Return the positions of the first pair of names that two columns have."""
        for names in candidates:
            first, second = map(self.find, names)
            if first is not None and second is not None:
                return first, second
        return None

    def __getitem__(self, position: int) -> Any:
        return self._names[position]

    def __str__(self) -> str:
        return str(self._names)


class VoteColumns(NamedTuple):
    """Positions of the columns that a reading takes, None for those that there are not.

    ``won`` are columns of outcomes: none where the two sides are the winner and the loser, one of
    words or numbers, two or three of numbers for the outcomes.
    """

    names: ColumnNames
    a: int
    b: int
    won: tuple[int, ...]
    judge: int | None
    prompt: int | None
    time: int | None
    by: int | None
    controls: list[Control]

    @property
    def labels(self) -> list[int]:
        """Positions of the columns that are read as labels."""
        single = self.won if len(self.won) == 1 else ()
        every = (self.a, self.b, *single, self.judge, self.prompt, self.time, self.by)
        return list(dict.fromkeys(position for position in every if position is not None))


def choose_columns(table: ColumnTable, options: VoteOptions) -> VoteColumns:
    """Return the columns that the options name, others guessed by the names that arenas use.

    Raises
    ------
    ValueError
        For columns that are not there or are there twice, and for one that is to be two things.
    """
    names = ColumnNames(table)
    a, b = _choose_sides(names, options)
    won = _choose_winner(names, options.winner, (a, b))
    held: dict[str, tuple] = {"a=": (a,), "b=": (b,), "winner=": won}
    roles: dict[str, int | None] = {}
    for role, candidates in (("judge", JUDGE), ("prompt", PROMPT), ("time", TIME), ("by", ())):
        name = getattr(options, role)
        if name is None:
            position = names.guess(candidates)
            roles[role] = None if position in (a, b, *won) else position
        else:
            roles[role] = position = names.need(name, f"{role}=")
            _refuse_taken(names, position, f"{role}=", held)
    controls = _find_controls(names, options.controls, (a, b), held)
    # Of a guessed time its values will tell.
    held |= {f"{role}=": (roles[role],) for role in ("judge", "prompt", "by")}
    held |= {} if options.time is None else {"time=": (roles["time"],)}
    for control in controls:
        for position in control.columns:
            _refuse_taken(names, position, f"The control {control.label!r}", held)
    _check_same_layout(controls, options)
    return VoteColumns(names, a, b, won, **roles, controls=controls)


def _choose_sides(names: ColumnNames, options: VoteOptions) -> tuple[int, int]:
    """Return the positions of the columns of competitors; ValueError if these are not two."""
    if options.a is None:
        sides = names.pair(PAIRS)
        if sides is None:
            raise ValueError(
                "No two columns are named as competitors are in votes, such as 'model_a' and "
                f"'model_b'; there are {names}. Say which by a= and b=."
            )
    else:
        sides = names.need(options.a, "a="), names.need(options.b, "b=")
    if sides[0] == sides[1]:
        raise ValueError(f"a= and b= are one column, {names[sides[0]]!r}; give two.")
    return sides


def _choose_winner(names: ColumnNames, winner: Any, sides: tuple[int, int]) -> tuple[int, ...]:
    """Return the columns that say who won; ValueError if one is that of a competitor."""
    if isinstance(winner, tuple | list):
        if len(winner) not in (2, 3):
            raise ValueError(
                f"winner= has {len(winner)} columns; give two, where the first and where the "
                "second won, and a third for ties, or one that says who won."
            )
        won = tuple(names.need(name, "winner=") for name in winner)
    elif winner is not None:
        won = (names.need(winner, "winner="),)
    elif [plain_name(names[i]) for i in sides] == ["winner", "loser"]:
        return ()
    else:
        won = _guess_winner(names)
    if len(set(won)) < len(won):
        raise ValueError(
            f"The columns of winner= are {[names[i] for i in won]}; give each outcome its own."
        )
    for side, ever in zip(sides, ("first", "second"), strict=True):
        if side in won:
            raise ValueError(
                f"winner= is the column {names[side]!r}, which holds the {ever} competitor of each "
                "vote. Give that of who won, or name the two 'winner' and 'loser', without winner=."
            )
    return won


def _guess_winner(names: ColumnNames) -> tuple[int, ...]:
    """Return columns that are named as winners are; ValueError if there are none."""
    single = next((name for name in _WINNER if names.find(name) is not None), None)
    if single is not None:
        return (names.need(single, "winner="),)
    first, second, tie = (names.find(f"winner {side}") for side in ("model a", "model b", "tie"))
    if first is None or second is None:
        raise ValueError(
            f"No column is named as winners are, such as 'winner'; there are {names}. Say winner=."
        )
    return (first, second) if tie is None else (first, second, tie)


def _refuse_taken(names: ColumnNames, position: int, noun: str, held: dict) -> None:
    """Raise ValueError for a column that has another role already."""
    for role, positions in held.items():
        if position in positions:
            group = ": a group is the same for both sides, so that it decides no vote"
            raise ValueError(
                f"{noun} is the column {names[position]!r}, which is that of {role} already"
                f"{group if role == 'by=' else ''}. Give one of the two another column."
            )


def _check_same_layout(controls: list[Control], options: VoteOptions) -> None:
    """Raise ValueError for votes of other controls or groups than those that they follow."""
    like, labels = options.like, [each.label for each in controls]
    if like is None:
        return
    follows_own = OWN_ANSWER in like.controls and OWN_ANSWER not in labels
    if follows_own and options.judge is None:
        raise ValueError(
            f"got no judge= for votes that follow those with the control {OWN_ANSWER!r}; name the "
            "column of the judges, which tells it."
        )
    if [*labels, *[OWN_ANSWER] * follows_own] != like.controls:
        raise ValueError(
            f"The votes of like= have the controls {like.controls}, these {labels}; give the same."
        )
    if (options.by is None) != (like.groups is None):
        raise ValueError(
            f"got by={options.by!r} for votes that follow those of by={like.by!r}; give both."
        )


def _find_controls(names, controls, sides, held):
    """Return the controls; ValueError for one given twice, or of a column that is taken."""
    listed = [controls] if isinstance(controls, str) else list(controls or ())
    pairs = [*list_side_words([], [], (names[sides[0]], names[sides[1]])), *SIDES]
    for each in listed:
        position = names.find(each) if isinstance(each, str) else None
        if position is not None:
            _refuse_taken(names, position, f"The control {each!r}", held)
    every = [_find_control(names, each, pairs) for each in listed]
    repeated = [label for label, n in Counter(each.label for each in every).items() if n > 1]
    if repeated:
        raise ValueError(f"Got controls twice: {repeated}. Give each once.")
    return every


def _find_control(names: ColumnNames, control: Any, pairs: list) -> Control:
    """Return a control by a name, a pair of columns or a difference; ValueError if not there."""
    if isinstance(control, tuple):
        if len(control) != 2:
            raise ValueError(
                f"The control {control!r} has {len(control)} columns; give one or two."
            )
        columns = names.need(control[0], "controls="), names.need(control[1], "controls=")
        return _make_difference(names, columns, f"{control[0]} - {control[1]}")
    if not isinstance(control, str):
        raise ValueError(
            f"A control must be the name of a column or pair of columns; got {control!r}."
        )
    itself, name = names.guess([control]), control.strip()  # a record is no number
    two = names.pair([each for pair in pairs for each in _side_column_names(name, pair)])
    if itself is not None and two is not None:
        sides = f"{names[two[0]]!r}", f"{names[two[1]]!r}"
        raise ValueError(
            f"The control {control!r} may be the column of this name, a difference, or {sides[0]} "
            f"and {sides[1]}; rename the column, or give ({', '.join(sides)})."
        )
    if itself is not None:
        _check_both_sides(names, itself, pairs)
        return Control(name, (itself,))
    return _find_difference(names, name) if two is None else Control(name, two)


def _find_difference(names: ColumnNames, name: str) -> Control:
    """Return the control of two columns such as "length_a-length_b"; ValueError for others."""
    for at in (match.start() for match in re.finditer("[-\u2212]", name)):
        first, second = names.find(name[:at].strip()), names.find(name[at + 1 :].strip())
        if first is not None and second is not None:
            return _make_difference(names, (first, second), name)
    raise ValueError(
        f"There is no control {name!r}; a column, '{name}_a' and '{name}_b', or a difference such "
        f"as 'length_a-length_b' are allowed. There are {names}."
    )


def _make_difference(names: ColumnNames, columns: tuple[int, int], label: str) -> Control:
    """Return the control of two columns, named by what their names share, or by a label."""
    common = split_common_part(names[columns[0]], names[columns[1]])
    return Control(common[0] if common else label, columns)


def _check_both_sides(names: ColumnNames, position: int, pairs: list) -> None:
    """Raise ValueError for a column of one side, which would be taken for a difference."""
    plain = plain_name(names[position])
    for side, opposite in [*pairs, *((second, first) for first, second in pairs)]:
        word = plain_name(side)
        for common, turned in (
            (plain.removeprefix(f"{word} "), "{opposite} {common}"),
            (plain.removesuffix(f" {word}"), "{common} {opposite}"),
        ):
            its_pair = names.find(turned.format(opposite=opposite, common=common))
            if common != plain and its_pair is not None:
                raise ValueError(
                    f"The control {names[position]!r} is of one side alone, {names[its_pair]!r} of "
                    f"the other; give both by {common!r}, or the two columns."
                )


def _side_column_names(name: str, sides: tuple[str, str]) -> list[tuple[str, str]]:
    """Return pairs of names that the columns of either side may have."""
    first, second = sides
    return [(f"{name} {first}", f"{name} {second}"), (f"{first} {name}", f"{second} {name}")]
