"""Answers as tables have them: one contest a row, winners in words, rankings in long form."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, column_or_1d

from skpref._utils import check_number, warn
from skpref.data._containers import (
    column_at,
    column_floats,
    is_frame,
    is_missing,
    plain_frame,
    unmasked,
)
from skpref.data._frame import DuelFrame
from skpref.data._kinds import LARGEST_LABEL
from skpref.data._labels import check_order, finish, finish_signed

# Sides that need no column: of the first argument, of the second.
_SIDES = [("model_a", "model_b"), ("a", "b"), ("first", "second"), ("left", "right")]
# As tables of matches have them: home, draw, away.
_MATCHES = {"h", "d", "a"}
_TIE = re.compile(
    r"(tie|tied|draw|drawn|equal|equally|same|no difference|no preference|both bad|bothbad)\b"
)
_SCORE = re.compile(r"\s*\d+([./]\d+)?\s*[-:\u2013]\s*\d+([./]\d+)?\s*")
# Codes of outcomes beside 1, 0 and -1: there is none, or it says neither side nor a tie.
MISSING, UNREAD = 2, 3


class Winners(NamedTuple):
    """Outcomes of the duels that have one.

    Attributes
    ----------
    labels : ndarray of int64 of shape (n_kept,)
        1: the first won, -1: the second, 0: a tie.
    kept : ndarray of int of shape (n_kept,)
        Rows that they are of.
    """

    labels: np.ndarray
    kept: np.ndarray

    def said(self, ties: bool | None) -> tuple[np.ndarray, bool | None]:
        """Labels and ``ties`` as `finish` takes them."""
        if ties or (self.labels == 0).any():
            return self.labels, True
        return (self.labels == 1).astype(np.int64), False


def read_winners(
    outcomes: Any,
    n_duels: int,
    names: tuple[Any, Any] | None = None,
    sides: Sequence[tuple[str, str]] = (),
    ties: bool | None = None,
) -> Winners | None:
    """Who won, where outcomes are no labels.

    Rows without an outcome, with one that says nothing, and ties if they are not wanted, are left
    out; one warning counts them.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,)
        The name of either item, a side, a word for a tie ("tie ..." or "draw ..."), upper or lower
        case and spaces aside; or 1, 0.5 for a tie, and 0.
    n_duels : int
    names : pair of sequences of length n_duels, default=None
        Who the first and the second item of each duel are.
    sides : sequence of pairs of str, default=()
        What the two sides are called, beside "model_a" and "model_b", "a" and "b", "first" and
        "second"; what comes first counts, and names before all.
    ties : bool, default=None
        False: ties are left out.

    Returns
    -------
    Winners or None
        None where outcomes are labels: numbers without a half, or booleans.

    Raises
    ------
    ValueError
        If no outcome can be read, or none of one side where others are not read, or one
        is the word for a side and the name of another item.

    Examples
    --------
    >>> from skpref.data._columns import read_winners
    >>> who = ["ann", "bob", "cid"], ["bob", "cid", "ann"]
    >>> read_winners(["Ann ", "tie (both bad)", "second"], 3, who).labels.tolist()
    [1, 0, -1]
    """
    values = column_or_1d(unmasked(outcomes)).tolist()
    if len(values) != n_duels:
        raise ValueError(f"{len(values)} outcomes came for {n_duels} duels; give one for each.")
    if any(isinstance(value, str) for value in values):
        codes = codes_by_word(values, names, sides)
    else:
        codes = _by_number(values, names)
        if codes is None:
            return None
    dropped = codes == MISSING, codes == UNREAD, (codes == 0) & (ties is False)
    kept = np.flatnonzero(~np.any(dropped, axis=0))
    if not len(kept):
        raise ValueError(_none_read(values, names, sides))
    if dropped[1].any() and not ((codes == 1).any() and (codes == -1).any()):
        raise ValueError(one_sided(values, codes))
    _warn_dropped(values, *dropped)
    return Winners(codes[kept], kept)


def read_grades(
    outcomes: Any, n_duels: int, grades: Mapping[Any, int] | int, ties: bool | None = None
) -> Winners:
    """Labels of graded outcomes; rows without an outcome are left out, and a warning counts them.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,)
    n_duels : int
    grades : dict or int
        See `from_columns`.
    ties : bool, default=None
        False: ties are left out.

    Raises
    ------
    ValueError
        For outcomes that ``grades`` does not have, or labels that are no integers.
    """
    if isinstance(grades, Mapping):
        known = {_plain(word): label for word, label in grades.items()}
        if len(known) < len(grades):
            raise ValueError(
                "Words of grades are read without regard to case, spaces and underscores; some of "
                f"{list(grades)} are then alike. Give each once."
            )
    else:
        name = "grades (a dict, or the number of grades)"
        n = int(check_number(name, grades, low=1, high=LARGEST_LABEL, integer=True))
        known = {label: label for label in range(-n, n + 1)}
    whole = [isinstance(each, Integral) and abs(each) <= LARGEST_LABEL for each in known.values()]
    if not known or not all(whole):
        raise ValueError(
            f"grades must have an integer label for each word, -{LARGEST_LABEL} to "
            f"{LARGEST_LABEL}: above 0 the first won, below it the second, 0 a tie; got {grades!r}."
        )
    values = column_or_1d([None] * n_duels if outcomes is None else unmasked(outcomes)).tolist()
    if len(values) != n_duels:
        raise ValueError(f"{len(values)} outcomes came for {n_duels} duels; give one for each.")
    missing = np.array(
        [is_missing(v) or (isinstance(v, str) and not v.strip()) for v in values], dtype=bool
    )
    other = [v for v, gone in zip(values, missing, strict=True) if not gone]
    other = [v for v in other if _plain(v) not in known]
    if other or missing.all():
        some = ", ".join(list(dict.fromkeys(map(repr, other)))[:5]) or "none but missing ones"
        raise ValueError(
            f"Outcomes such as {some} are not among those of grades=, {list(known)}. Add them, or "
            "leave such rows out."
        )
    labels = np.array(
        [0 if gone else known[_plain(v)] for v, gone in zip(values, missing, strict=True)]
    )
    left_out = (labels == 0) & ~missing & (ties is False)
    _warn_dropped(values, missing, np.zeros_like(missing), left_out)
    kept = np.flatnonzero(~missing & ~left_out)
    return Winners(labels[kept].astype(np.int64), kept)


def _by_number(values, names):
    """Codes of outcomes without texts; None if they are labels, or not recognised."""
    present = [value for value in values if not is_missing(value)]
    if not all(isinstance(value, Real) for value in present):
        return None
    known = set(present)
    if any(isinstance(value, bool) for value in present):
        return None
    if known <= {-1, 0, 1}:
        _warn_ids(values, names)
        return None
    if known <= {0, 0.5, 1} and len(present) == len(values):
        return np.rint(2.0 * np.array(values, dtype=np.float64) - 1.0).astype(np.int64)
    if names is None or not any(value in pair for value, *pair in zip(values, *names, strict=True)):
        return None
    return codes_by_word(values, names, ())


def codes_by_word(
    values: Sequence,
    names: tuple[Any, Any] | None,
    sides: Sequence[tuple[str, str]] = (),
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """1, 0, -1, `MISSING` or `UNREAD` for each outcome, some of which are words.

    Parameters
    ----------
    values : sequence of length n
    names, sides
        As in `read_winners`.
    rows : ndarray of int of shape (n,), default=None
        Rows that messages name. None: the places.
    """
    known = set() if names is None else {_plain(name) for side in names for name in side}
    own, words = _words(sides), _words([*sides, *_SIDES])
    said = {_plain(value) for value in values if isinstance(value, str) and value.strip()}
    of_matches = "h" in said and said <= _MATCHES and not said & known
    if of_matches:
        words = {"h": 1, "a": -1}
    codes = np.empty(len(values), dtype=np.int64)
    pairs = [(None, None)] * len(values) if names is None else zip(*names, strict=True)
    for row, (value, (first, second)) in enumerate(zip(values, pairs, strict=True)):
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            codes[row] = MISSING
            continue
        name, plain = _named(value, first, second), _plain(value)
        word = words.get(plain)
        if plain in known and word is not None:  # the name of an item somewhere
            word = own.get(plain)
        if word and plain in known and word != name:
            where = row if rows is None else rows[row]
            raise ValueError(
                f"The outcome in row {where} is {value!r}, the word for a side and also the name "
                "of another item. Say who won by labels, such as frame[winner] == frame[first]."
            )
        tied = _is_tie(value) or (of_matches and plain == "d")
        codes[row] = name or word or (0 if tied else UNREAD)
    return codes


def _named(value, first, second):
    """1 or -1 where a value is the name of one side, 0 where of none or of both."""
    if first == second and _loose(value, first):
        return 1
    for same in (_exact, _loose):
        found = int(same(value, first)) - int(same(value, second))
        if found:
            return found
    return 0


def _exact(value, name):
    return isinstance(value, str) and isinstance(name, str) and value == name


def _loose(value, name):
    if isinstance(value, str) and isinstance(name, str):
        return _closed(value) == _closed(name)
    numbers = isinstance(value, Real) and isinstance(name, Real)
    return numbers and value == name


def _plain(word):
    """A word in lower case with single spaces for "-" and "_"; anything else as it is."""
    return _spelled(word) if isinstance(word, str) else word


@lru_cache(maxsize=4096)
def _spelled(word):
    return " ".join(re.split(r"[\s_-]+", word.strip())).casefold()


@lru_cache(maxsize=4096)
def _closed(name):
    """A name in lower case, with single spaces."""
    return " ".join(name.split()).casefold()


def _is_tie(value):
    if isinstance(value, str):
        return _TIE.match(_plain(value)) is not None
    return isinstance(value, Real) and value == 0.5


def _words(sides):
    """1 or -1 for each word that stands for a side."""
    words = {}
    for pair in sides:
        one, other = map(_plain, pair)
        if one != other and one not in words and other not in words:
            words.update({one: 1, other: -1})
    return words


# -- warnings --------------------------------------------------------------------------------


def _warn_dropped(values, missing, unread, ties):
    parts = []
    if missing.any():
        parts.append(f"{missing.sum()} without an outcome (if these are ties, write 'tie' there)")
    if unread.any():
        some = Counter(values[i] for i in np.flatnonzero(unread)).most_common(3)
        shown = ", ".join(f"{value!r} ({count})" for value, count in some)
        parts.append(f"{unread.sum()} whose outcome is neither side nor a tie, such as {shown}")
    if ties.any():
        parts.append(f"{ties.sum()} ties (ties=False)")
    if not parts:
        return
    rows = np.flatnonzero(missing | unread | ties)
    warn(
        f"{len(rows)} of {len(values)} duels are left out, first in row {rows[0]}: "
        f"{'; '.join(parts)}. Leave them out of all that goes along with the duels (sample_weight, "
        "judges, order, groups) as well."
    )


def _warn_ids(values, names):
    """Warn where labels may be the winners' ids."""
    if names is None or not all(isinstance(i, Real) for side in names for i in side):
        return
    rows = list(zip(values, *names, strict=True))
    if all(value in pair for value, *pair in rows) and any(
        (value == 1) != (value == first) for value, first, _ in rows
    ):
        warn(
            "Outcomes are read as labels, 1 where the first won, but each is also the id of one of "
            "the two sides. If they are ids of the winners, give frame[winner] == frame[first]."
        )


def one_sided(values: Sequence, codes: np.ndarray) -> str:
    """What to say where outcomes are unread, and all that are read are wins of one side."""
    some = Counter(values[i] for i in np.flatnonzero(codes == UNREAD).tolist()).most_common(3)
    shown = ", ".join(f"{value!r} ({count})" for value, count in some)
    read = [name for code, name in ((1, "first"), (-1, "second")) if (codes == code).any()]
    missing = ""
    if (codes != UNREAD).any():
        won = f"only wins of the {read[0]}" if read else "no winner"
        missing = f", and all others hold {won}, so that these may well be what is missing"
    return (
        f"{(codes == UNREAD).sum()} of {len(values)} outcomes are neither side nor a tie, such as "
        f"{shown}{missing}. Encode them (1: the first won, 0: the second, 0.5: a tie), or drop "
        f"such rows.{_of_scores(value for value, _ in some)}"
    )


def _of_scores(values: Iterable[Any]) -> str:
    """A sentence more where outcomes are scores, such as "2-1"."""
    if not any(isinstance(each, str) and _SCORE.fullmatch(each) for each in values):
        return ""
    return (
        " They look like scores, which no rule tells apart from other texts: make numbers of both "
        "sides' and give numpy.sign(of_the_first - of_the_second) as the outcome."
    )


def _none_read(values, names, sides):
    some = ", ".join(list(dict.fromkeys(map(repr, values)))[:5])
    called = " or ".join(repr(side) for side in [*sides, *_SIDES][0])
    of_names = "" if names is None else "the name of either item, "
    remedy = " Names need ids=, the columns that hold them." if names is None else ""
    return (
        "Outcomes of duels must be in {0, 1}, {-1, 1} or booleans (1: the first won), -1, 0 and 1 "
        f"or 0, 0.5 and 1 with ties, or words: {of_names}{called}, 'left' or 'right', 'tie'. Got "
        f"values such as [{some}], and none says who won.{remedy} Translate other words, as by "
        f"column.map({{{next(iter(dict.fromkeys(values)))!r}: 1, ...}}).{_of_scores(values)}"
    )


class LongRankings(NamedTuple):
    """Rankings that order at least two items, in the order in which their rankers appear.

    Attributes
    ----------
    lists : list of lists
        Items, the best first.
    ranks : ndarray of int of shape (n_listed,)
        Of the items of all lists, one after the other: from 1, without gaps; equal ones are ties.
    rankers : ndarray of object of shape (n_lists,)
    n_unranked, n_silent : int
        Rows without a rank, and rankers whose ranks tell no two items apart, both left out.
    """

    lists: list[list]
    ranks: np.ndarray
    rankers: np.ndarray
    n_unranked: int
    n_silent: int

    def warn_dropped(self) -> None:
        """One warning that counts what was left out."""
        parts = []
        if self.n_unranked:
            parts.append(f"{self.n_unranked} rows without a rank")
        if self.n_silent:
            parts.append(
                f"{self.n_silent} rankings that tell no two items apart (one item, or all tied)"
            )
        if parts:
            warn(
                f"Left out: {' and '.join(parts)}. ranking_groups(...) with the same arguments "
                "says whose the others are."
            )


def is_long(frame: Any, ranker: Any, item: Any, rank: Any) -> bool:
    """Whether rankings come in long form; ValueError where that is half said."""
    given = [name is not None for name in (ranker, item, rank)]
    if not any(given):
        return False
    if not all(given) or not is_frame(frame):
        raise ValueError(
            "Rankings in long form are a DataFrame with ranker=, item= and rank=, all three names "
            f"of columns; {type(frame).__name__} with ranker={ranker!r}, item={item!r}, "
            f"rank={rank!r} came. Without these three give lists, the best first."
        )
    return True


def read_long(frame: Any, ranker: Any, item: Any, rank: Any) -> LongRankings:
    """Rankings of a frame with one row for each ranker and item.

    Parameters
    ----------
    frame : DataFrame
    ranker, item, rank : column names
        Ranks are numbers, the smallest is the best, equal ones are ties.

    Raises
    ------
    ValueError
        For missing columns, rankers or items, ranks that are no numbers, an item that a ranker
        ranks twice, or if no ranking says anything.
    """
    frame = plain_frame(frame)
    wanted = [ranker, item, rank]
    missing = [column for column in wanted if column not in list(frame.columns)]
    if missing:
        raise ValueError(f"The frame has no column {missing}; it has {list(frame.columns)}.")
    who, what = frame[ranker].tolist(), frame[item].tolist()
    for row, (one, other) in enumerate(zip(who, what, strict=True)):
        if is_missing(one) or is_missing(other):
            raise ValueError(
                f"The ranker or the item is missing in row {row} of {[ranker, item]}; drop such "
                "rows."
            )
    value = column_floats(frame[rank])
    if value is None or np.isinf(value).any():
        raise ValueError(
            f"Ranks in column {rank!r} must be finite numbers, 1 for the best, equal for ties; "
            f"values such as {frame[rank].tolist()[:3]} came."
        )
    kept = np.flatnonzero(~np.isnan(value))
    _check_once(who, what)
    number = {one: i for i, one in enumerate(dict.fromkeys(who))}
    code = np.array([number[who[row]] for row in kept], dtype=np.intp)
    order = np.lexsort((value[kept], code))
    code, rows = code[order], kept[order]
    begins = np.diff(code, prepend=-1) > 0
    level = np.cumsum(np.diff(value[rows], prepend=np.nan) > 0)
    ranks = 1 + level - level[np.flatnonzero(begins)][np.cumsum(begins) - 1] if len(rows) else level
    top = np.zeros(len(number), dtype=np.intp)
    np.maximum.at(top, code, ranks)
    says = top > 1
    if not says.any():
        raise ValueError(
            f"None of the {len(number)} rankings tells two items apart: each has one item with a "
            "rank, or all of its ranks are equal."
        )
    lists: list[list] = [[] for _ in number]
    for one, row in zip(code.tolist(), rows.tolist(), strict=True):
        lists[one].append(what[row])
    rankers = np.empty(len(number), dtype=object)
    rankers[:] = list(number)
    return LongRankings(
        [one for one, said in zip(lists, says, strict=True) if said],
        ranks[says[code]],
        rankers[says],
        len(who) - len(kept),
        int((~says).sum()),
    )


def _check_once(who, what):
    seen = set()
    for pair in zip(who, what, strict=True):
        if pair in seen:
            raise ValueError(
                f"{pair[0]!r} ranks item {pair[1]!r} twice; an item has one place. If these are "
                "several rankings by one, number them: ranker= a column that tells them apart."
            )
        seen.add(pair)


_ID = "id"


@overload
def from_columns(
    frame: Any,
    first: str | Sequence,
    second: str | Sequence,
    outcome: Any = None,
    *,
    ids: tuple[Any, Any] | None = None,
    names: Sequence[str] | None = None,
    ties: bool | None = None,
    grades: Mapping[Any, int] | int | None = None,
    order: None = None,
    time: None = None,
) -> tuple[np.ndarray | DuelFrame, np.ndarray]: ...


@overload
def from_columns(
    frame: Any,
    first: str | Sequence,
    second: str | Sequence,
    outcome: Any = None,
    *,
    ids: tuple[Any, Any] | None = None,
    names: Sequence[str] | None = None,
    ties: bool | None = None,
    grades: Mapping[Any, int] | int | None = None,
    order: str | ArrayLike,
    time: None = None,
) -> tuple[np.ndarray | DuelFrame, np.ndarray, np.ndarray]: ...


@overload
def from_columns(
    frame: Any,
    first: str | Sequence,
    second: str | Sequence,
    outcome: Any = None,
    *,
    ids: tuple[Any, Any] | None = None,
    names: Sequence[str] | None = None,
    ties: bool | None = None,
    grades: Mapping[Any, int] | int | None = None,
    order: str | ArrayLike | None = None,
    time: str | ArrayLike,
) -> tuple[np.ndarray | DuelFrame, *tuple[np.ndarray, ...]]: ...


def from_columns(
    frame: Any,
    first: str | Sequence,
    second: str | Sequence,
    outcome: Any = None,
    *,
    ids: tuple[Any, Any] | None = None,
    names: Sequence[str] | None = None,
    ties: bool | None = None,
    grades: Mapping[Any, int] | int | None = None,
    order: str | ArrayLike | None = None,
    time: str | ArrayLike | None = None,
) -> tuple[np.ndarray | DuelFrame, ...]:
    """Build duels from a table with one duel a row.

    Parameters
    ----------
    frame : DataFrame, or dict of array-likes by column name
    first, second : list of column names
        Features of the first and of the second item, in the same order. With ``ids`` they may
        be empty.
    outcome : column name or array-like of shape (n_duels,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won; or -1, 0 for a tie, and
        1, see ``ties``; or 0, 0.5 for a tie, and 1. Or words, in any case: the name of either item
        (its id), its column's name or the word in which that differs ("home", "away"), "model_a" or
        "model_b", "a" or "b", "first" or "second", "left" or "right", "tie", "draw", "equal",
        "same" or "no difference" and what begins so; or, where there are no others, "H", "D" and
        "A", the first being at home. Duels without an outcome, or with one that
        says nothing of these, are left out, and a warning counts them; it is an error if only wins
        of one side can be read. True: the first always won. None: the same, and a warning says so.
        False: there is no outcome yet, as of pairs to predict; rows stay as they are.
    ids : pair of column names, default=None
        Who the first and the second item are, texts or numbers, beside features that may change
        from duel to duel. They become the first column, "id".
    names : list of str, default=None
        Names of the features of a side. None: what the names of both sides have in common
        ("home_age" and "away_age": "age"), or the names of the first side where they have no
        word in common.
    ties : bool, default=None
        Whether 0 is a tie, and -1 means that the second won. None: where both occur. Ties in words,
        or 0.5, are 0 in y beside -1 and 1; with False they are left out, and counted in a warning.
    grades : dict or int, default=None
        For outcomes that say how much better: the label of each word or number that occurs, such as
        ``{"much better": 2, "better": 1, "same": 0, "worse": -1, "much worse": -2}`` (above 0 the
        first won, below it the second, 0 is a tie); or, where the outcomes are such labels, the
        number of grades.
    order : column name or array-like of int of shape (n_duels,), default=None
        Who was shown first, or played at home, as in the ``order=`` of `fit`: 1 the first item, -1
        the second, 0 none. It comes back for the duels as they come out.
    time : column name or array-like of shape (n_duels,), default=None
        When they met, as in the ``time=`` of `fit`. It comes back for the duels that are left.

    Returns
    -------
    X : DuelFrame of shape (n_duels, 2, n_features)
        With the columns as they are: texts, categories and missing values are for `Itemwise` to
        encode. A float array if the columns are numbers, their labels no strings and no ``names``
        given.
    y : ndarray of int64 of shape (n_duels,)
        As in `from_pairs`: where one side won all, every second duel is turned round. Where
        outcomes were given, a warning says so, unless ``order`` came. Of pairs to predict empty.
    order : ndarray of int8 of shape (n_duels,)
        Where ``order`` came: of the duels that are left, with the other sign where one was turned.
    time : ndarray of shape (n_duels,)
        Where ``time`` came, the last: of the duels that are left.

    Raises
    ------
    ValueError
        For missing columns, lists of different lengths, missing ids, an id against itself, or
        other outcomes, orders or times.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpref.duels import from_columns
    >>> frame = pd.DataFrame(
    ...     {
    ...         "home": ["ann", "bob"], "home_age": [31, 40],
    ...         "away": ["bob", "cid"], "away_age": [40, None],
    ...         "home_won": [0, 1],
    ...     }
    ... )
    >>> X, y = from_columns(frame, ["home_age"], ["away_age"], "home_won", ids=("home", "away"))
    >>> X.first
        id   age
    0  ann  31.0
    1  bob  40.0
    >>> y.tolist()
    [0, 1]

    Winners and losers, and which of them was at home:

    >>> games = pd.DataFrame({"won": ["ann", "cid"], "lost": ["bob", "bob"], "home": [1, -1]})
    >>> X, y, order = from_columns(games, [], [], True, ids=("won", "lost"), order="home")
    >>> X.second["id"].tolist(), y.tolist(), order.tolist()
    (['bob', 'cid'], [1, 0], [1, 1])

    And when:

    >>> games["date"] = pd.to_datetime(["2024-05-01", "2025-05-01"])
    >>> X, y, time = from_columns(games, [], [], True, ids=("won", "lost"), time="date")
    >>> time.astype("datetime64[D]").tolist()[0].isoformat()
    '2024-05-01'

    Pairs to predict have no outcome:

    >>> X, _ = from_columns(games, [], [], False, ids=("lost", "won"))
    >>> X.first["id"].tolist(), X.second["id"].tolist()
    (['bob', 'bob'], ['ann', 'cid'])

    How much better, in words:

    >>> votes = pd.DataFrame({"a": [1, 2], "b": [2, 3], "said": ["Much better", "worse"]})
    >>> words = {"much better": 2, "better": 1, "worse": -1, "much worse": -2}
    >>> from_columns(votes, [], [], "said", ids=("a", "b"), grades=words)[1].tolist()
    [2, -1]
    """
    frame = _as_frame(frame)
    first = [first] if isinstance(first, str) else list(first)
    second = [second] if isinstance(second, str) else list(second)
    ids = None if ids is None else _check_ids(ids)
    if len(first) != len(second) or not (first or ids):
        raise ValueError(
            f"{len(first)} columns came for the first item and {len(second)} for the second; "
            "give the same features of both."
        )
    to_predict, silent = _is(outcome, False), outcome is not None
    if _is(outcome, True) or to_predict:
        if grades is not None or ties is not None:
            raise ValueError(
                f"ties= and grades= say how outcomes are read, and outcome={bool(outcome)!r} came. "
                "Name the column that has them, or leave both out."
            )
        outcome = None
    labelled = outcome is not None and np.ndim(outcome) == 0
    wanted = first + second + list(ids or ()) + ([outcome] if labelled else [])
    wanted += [column for column in (order, time) if isinstance(column, str)]
    missing = [column for column in wanted if column not in list(frame.columns)]
    if missing:
        raise ValueError(f"The frame has no column {missing}; it has {list(frame.columns)}.")
    if len(frame) == 0:
        raise ValueError("The frame has no row, so no duel results.")
    if not silent:
        warn(
            "No outcome came, so that the first of each row counts as the winner, and every second "
            "duel is turned round. Say outcome=True if it is; outcome=False leaves pairs that are "
            "to be predicted as they are."
        )
    shown = check_order(frame[order] if isinstance(order, str) else order, len(frame), 2)
    when = None if time is None else _times(frame[time] if isinstance(time, str) else time, frame)
    outcomes, rows = frame[outcome] if labelled else outcome, np.arange(len(frame))
    if grades is not None:
        of_grades = read_grades(outcomes, len(frame), grades, ties)
        rows, outcomes = of_grades.kept, of_grades.labels
        frame = frame.iloc[rows]
    elif outcomes is not None:
        who = None if ids is None else (frame[ids[0]].tolist(), frame[ids[1]].tolist())
        said = read_winners(outcomes, len(frame), who, side_words(first, second, ids), ties)
        if said is not None:
            rows, frame = said.kept, frame.iloc[said.kept]
            outcomes, ties = said.said(ties)
    labels = _labels(first, second, names)
    if not all(isinstance(label, str) for label in labels) and ids is None:
        array = _floats(frame, first, second)
        if array is not None:
            return _finished(array, outcomes, ties, grades, shown, when, rows, to_predict)
    if ids is not None:
        if _ID in labels:
            raise ValueError(
                f"A feature is named {_ID!r} as the column of ids will be; give names= others."
            )
        _check_opponents(frame, ids, rows)
        every = frame[ids[0]].tolist() + frame[ids[1]].tolist()
        named = dict.fromkeys(name for name in every if isinstance(name, str))
        warn_alike(named, "write them alike, such as by frame[column].str.strip().str.title()")
        first, second, labels = [ids[0], *first], [ids[1], *second], [_ID, *labels]
    items = _stack(frame, first, second, labels)
    pairs = np.arange(len(items)).reshape(2, -1).T
    duels = DuelFrame(items, pairs, id_column=None if ids is None else _ID)
    return _finished(duels, outcomes, ties, grades, shown, when, rows, to_predict)


_TO_SPACES = str.maketrans("_.-", "   ")


def plain_name(name: Any) -> Any:
    """A name in one case, with single spaces for dashes, dots and underscores."""
    if not isinstance(name, str):
        return name
    return " ".join(name.translate(_TO_SPACES).split()).casefold()


def warn_alike(names: Iterable, remedy: str) -> None:
    """Warn of different names that differ in case, spaces or dashes alone."""
    plain: dict = {}
    for name in names:
        plain.setdefault(plain_name(name), []).append(name)
    alike = [each for each in plain.values() if len(each) > 1]
    if alike:
        shown = "; ".join(", ".join(map(repr, each)) for each in alike[:3])
        warn(
            "Names that differ in case, spaces or dashes alone are taken for different ones: "
            f"{shown}. If they are one, {remedy}."
        )


def _is(value, wanted):
    """Whether it is this boolean, and no array."""
    return isinstance(value, bool | np.bool_) and bool(value) is wanted


def _as_frame(table):
    """A frame of pandas, where it is installed, of what holds named columns."""
    if is_frame(table):
        return plain_frame(table)
    if not isinstance(table, Mapping):
        named = isinstance(table, str | PathLike)
        remedy = " Read a file by pandas.read_csv(path)." if named else ""
        raise ValueError(
            f"from_columns needs a DataFrame or a dict of columns; {type(table).__name__} came."
            f"{remedy}"
        )
    pandas = _pandas()
    columns = {name: unmasked(column) for name, column in table.items()}
    lengths = {name: np.shape(column) for name, column in columns.items()}
    if any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) > 1:
        raise ValueError(
            f"The columns must have one dimension and one length; shapes {lengths} came."
        )
    return pandas.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "from_columns needs pandas to keep named columns together; install it, or build duel "
            "arrays with np.stack([first, second], axis=1)."
        ) from None
    return pandas


def _times(time, frame):
    """Times of all rows of a frame as an array."""
    values = time.to_numpy() if hasattr(time, "to_numpy") else np.asarray(unmasked(time))
    if values.shape != (len(frame),):
        raise ValueError(
            f"time has shape {values.shape}; give a column, or one time for each of the "
            f"{len(frame)} rows."
        )
    return values


def _finished(X, outcomes, ties, grades, order, time, rows, to_predict):
    """Duels with their labels and, where they came, who was shown first and when."""
    if to_predict:
        also = tuple(each for each in (order, time) if each is not None)
        return X, np.empty(0, dtype=np.int64), *also
    done = finish(X, outcomes, ties) if grades is None else finish_signed(X, outcomes)
    when = () if time is None else (time[rows],)
    if order is not None:
        order = order[rows]
        return done.X, done.y, np.where(done.turned, -order, order), *when
    if outcomes is not None and done.turned.any():
        warn(
            "One side won all duels, so that every second one is turned round to show both "
            "outcomes. Who was shown first (or played at home) is turned with them: say it by "
            "order=, such as order=np.ones(len(frame)) if it was the first side, and pass the "
            "order that comes back to fit."
        )
    return done.X, done.y, *when


def _check_ids(ids: Any) -> tuple:
    ids = tuple(ids) if not isinstance(ids, str) else (ids,)
    if len(ids) != 2:
        raise ValueError(
            f"ids came as {ids!r}; give two columns, who the first and who the second item is."
        )
    return ids


def side_words(first: list, second: list, ids: tuple | None) -> list[tuple[str, str]]:
    """Names of the two sides in the columns, whole names before the words in which they differ."""
    pairs = ([] if ids is None else [ids]) + list(zip(first, second, strict=True))
    pairs = [pair for pair in pairs if all(isinstance(name, str) for name in pair)]
    differ = [common_part(*pair) for pair in pairs]
    return [*pairs, *(found[1] for found in differ if found is not None)]


def _check_opponents(frame: Any, ids: tuple, rows: np.ndarray) -> None:
    sides = [frame[column].tolist() for column in ids]
    for row, one, other in zip(rows, *sides, strict=True):
        if is_missing(one) or is_missing(other):
            raise ValueError(f"An id is missing in row {row} of {list(ids)}; drop such rows.")
        if one == other:
            raise ValueError(f"Row {row} sets {one!r} against itself; drop such rows.")


def _labels(first: list, second: list, names: Sequence[str] | None) -> list:
    """Names of the features of a side."""
    if names is not None:
        labels = [names] if isinstance(names, str) else list(names)
        if len(labels) != len(first):
            raise ValueError(f"{len(labels)} names came for {len(first)} features a side.")
    else:
        labels = _common_labels(first, second)
    if len(set(labels)) < len(labels):
        raise ValueError(f"The features of a side are named {labels}; give distinct names=.")
    return labels


def _common_labels(first: list, second: list) -> list:
    """The common part of the names of both sides, or the names of the first side.

    The words that differ must be the same pair everywhere, as "home" and "away".
    """
    labels, sides = [], set()
    for one, other in zip(first, second, strict=True):
        if one == other:
            labels.append(one)
            continue
        found = common_part(one, other)
        if found is None:
            return first
        labels.append(found[0])
        sides.add(found[1])
    return labels if len(sides) < 2 and len(set(labels)) == len(labels) else first


def common_part(one: Any, other: Any) -> tuple[str, tuple[str, str]] | None:
    """A name without the word in which it differs from another, and the two words."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return None
    words, others = (re.split(r"([^0-9a-zA-Z]+)", name) for name in (one, other))
    if len(words) != len(others):
        return None
    differ = [i for i, pair in enumerate(zip(words, others, strict=True)) if pair[0] != pair[1]]
    if len(differ) != 1 or differ[0] % 2:  # every second part is a separator
        return None
    at = differ[0]
    kept = words[2:] if at == 0 else words[: at - 1] + words[at + 1 :]
    label = "".join(kept).strip(" ._-:()[]")
    return (label, (words[at], others[at])) if label else None


def _floats(frame: Any, first: list, second: list) -> np.ndarray | None:
    try:
        sides = [check_array(frame[columns], dtype=np.float64) for columns in (first, second)]
    except ValueError:
        return None
    return np.stack(sides, axis=1)


def _stack(frame: Any, first: list, second: list, labels: list) -> Any:
    """Features of the first sides and, below, of the second."""
    pd, sides = _pandas(), []
    for columns in (first, second):
        places = [list(frame.columns).index(column) for column in columns]
        side = [column_at(frame, j).reset_index(drop=True) for j in places]
        sides.append(pd.concat(side, axis=1, keys=labels))
    return pd.concat(sides, ignore_index=True)
