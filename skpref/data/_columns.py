"""Answers as frames have them: one contest a row, and rankings in long form."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from skpref._utils import warn
from skpref.data._containers import (
    check_one_each,
    column_floats,
    frame_of_columns,
    is_frame,
    is_missing,
    object_array,
    plain_frame,
    refuse_rounded,
)
from skpref.data._frame import DuelFrame
from skpref.data._labels import check_order
from skpref.data._tables import check_columns, column_cells, refuse_nested
from skpref.data._winners import read_labels, warn_alike


class LongRankings(NamedTuple):
    """Rankings that order at least two items, in the order in which their rankers appear.

    Attributes
    ----------
    lists : list of lists
        Items, the best first.
    ranks : ndarray of int of shape (n_listed,)
        Of the items of all lists, one after the other: from 1, without gaps; equal ones are ties.
    rankers : ndarray of object of shape (n_lists,)
    dropped : list of str
        What was left out: rows without a rank, and rankers whose ranks tell no two items apart.
    """

    lists: list[list]
    ranks: np.ndarray
    rankers: np.ndarray
    dropped: list[str]

    def warn_dropped(self) -> None:
        """Warn once of the rows and rankings that are left out, with their numbers."""
        if self.dropped:
            warn(
                f"Left out: {' and '.join(self.dropped)}. ranking_groups(...) with the same "
                "arguments says whose the others are."
            )


def is_long(frame: Any, ranker: Any, item: Any, rank: Any) -> bool:
    """Return whether rankings come in long form; ValueError where that is half said."""
    n_named = 3 - (ranker, item, rank).count(None)
    if n_named and (n_named < 3 or not is_frame(frame)):
        raise ValueError(
            f"got {type(frame).__name__} with ranker={ranker!r}, item={item!r}, rank={rank!r}; "
            "long form is a DataFrame and three columns of it. Give all three, or lists."
        )
    return n_named == 3


def read_long(frame: Any, ranker: Any, item: Any, rank: Any) -> LongRankings:
    """Return the rankings of a frame that has one row for each ranker and item.

    Parameters
    ----------
    frame : DataFrame
    ranker, item, rank : column names
        Ranks are numbers, the smallest is the best, equal ones are ties.

    Raises
    ------
    ValueError
        For missing columns, rankers or items, ranks that are no numbers, an item that a ranker
        ranks twice, or if no ranking tells two items apart.
    """
    frame = plain_frame(frame)
    _check_frame(frame, [ranker, item, rank])
    rankers, items = frame[ranker].tolist(), frame[item].tolist()
    _check_ranked(rankers, items, [ranker, item])
    values = column_floats(frame[rank])
    if values is None or np.isinf(values).any():
        raise ValueError(
            f"Ranks in column {rank!r} must be finite numbers, 1 for the best, equal for ties; "
            f"got values such as {frame[rank].tolist()[:3]}."
        )
    n_unranked = int(np.isnan(values).sum())
    rows_of: dict[Any, list[int]] = {name: [] for name in rankers}
    for row in np.argsort(values, kind="stable")[: len(values) - n_unranked].tolist():
        rows_of[rankers[row]].append(row)
    begins = {name: np.diff(values[rows], prepend=np.nan) != 0 for name, rows in rows_of.items()}
    stating = [name for name, is_new in begins.items() if is_new.sum() > 1]
    if not stating:
        raise ValueError(
            f"None of the {len(rows_of)} rankings tells two items apart; give ranks that differ."
        )
    n_silent = len(rows_of) - len(stating)
    silent = f"{n_silent} rankings that tell no two items apart (one item, or all tied)"
    return LongRankings(
        [[items[row] for row in rows_of[name]] for name in stating],
        np.concatenate([np.cumsum(begins[name]) for name in stating]),
        object_array(stating),
        [f"{n_unranked} rows without a rank"] * (n_unranked > 0) + [silent] * (n_silent > 0),
    )


def _check_ranked(rankers: list, items: list, columns: list) -> None:
    """Raise ValueError if a ranker or an item is missing, or one is ranked twice by a ranker."""
    pairs = list(zip(rankers, items, strict=True))
    for row, cells in enumerate(pairs):
        if any(map(is_missing, cells)):
            raise ValueError(
                f"The ranker or the item is missing in row {row} of {columns}; drop such rows."
            )
    twice = next((pair for pair, n in Counter(pairs).items() if n > 1), None)
    if twice is not None:
        raise ValueError(
            f"{twice[0]!r} ranks item {twice[1]!r} twice; an item has one place. If these are "
            "several rankings by one, number them: ranker= a column that tells them apart."
        )


_ID = "id"


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
) -> tuple[Any, ...]:
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
        outcomes were given, a warning says so, unless ``order`` is given. Empty for pairs to
        predict.
    order : ndarray of int8 of shape (n_duels,)
        If ``order`` is given: of the duels that are left, with the other sign where one was turned.
    time : ndarray of shape (n_duels,)
        If ``time`` is given, the last: of the duels that are left.

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
    frame = _as_pandas(frame)
    first, second, ids = _check_sides(first, second, ids)
    if outcome is None:
        warn(
            "Got no outcome, so that the first of each row counts as the winner. Say outcome=True "
            "if it is, or outcome=False for pairs that are to be predicted."
        )
    has_column = not (outcome is None or isinstance(outcome, bool | np.bool_) or np.ndim(outcome))
    exact = [*(ids or ()), *([outcome] if has_column else [])]
    metadata_names = [name for name in (order, time) if isinstance(name, str)]
    _check_frame(frame, [*first, *second, *exact, *metadata_names])
    if len(frame) == 0:
        raise ValueError("The frame has no row, so no duel results.")
    for column in exact:
        refuse_rounded(frame[column].tolist(), f"the column {column!r}")
    signs, times = _read_order_and_time(frame, order, time)
    labels = read_labels(
        frame[outcome] if has_column else outcome,
        len(frame),
        None if ids is None else (frame[ids[0]].tolist(), frame[ids[1]].tolist()),
        list_side_words(first, second, ids),
        ties=ties,
        grades=grades,
        argument="outcome",
    )
    done = labels.attach(_stack_sides(frame, labels.rows, first, second, ids, names))
    return done.X, done.y, *_metadata_of_kept(labels, done.turned, signs, times)


def _read_order_and_time(
    frame: Any, order: Any, time: Any
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return who was shown first and the times, given as columns or arrays."""
    order, time = (frame[each] if isinstance(each, str) else each for each in (order, time))
    times = None if time is None else column_cells(time)
    if times is not None:
        check_one_each(times.shape, len(frame), "times", "rows")
    return check_order(order, len(frame), 2), times


def _metadata_of_kept(labels, turned, order, time):
    """Yield order and time of the duels that are left, where given; warn if order may be needed."""
    if order is not None:
        signs = order[labels.rows]
        yield np.where(turned, -signs, signs)
    elif labels.stated and turned.any():
        warn(
            "One side won all duels, so that every second one is turned round, and with it who was "
            "shown first (or played at home). Say who was by order=, such as "
            "order=np.ones(len(frame)), and pass the order that comes back to fit."
        )
    if time is not None:
        yield time[labels.rows]


def _as_pandas(table):
    """Return a frame of pandas with the columns of any table; ValueError if it is none."""
    if hasattr(table, "iloc"):
        return table
    is_mapping = isinstance(table, Mapping)
    if not is_mapping and not is_frame(table):
        raise ValueError(
            f"from_columns needs a DataFrame or a dict of columns; got {type(table).__name__}. "
            "Read a file by pandas.read_csv(path)."
        )
    if find_spec("pandas") is None:
        raise ImportError(
            "from_columns needs pandas to keep named columns together; install it, or build duel "
            "arrays with np.stack([first, second], axis=1)."
        )
    names = table if is_mapping else getattr(table, "column_names", table.columns)
    columns = check_columns({name: table[name] for name in names})
    for name, column in columns.items() if is_mapping else ():
        refuse_nested(list(column), name)
    return frame_of_columns(columns)


def _check_sides(first: Any, second: Any, ids: Any) -> tuple[list, list, tuple | None]:
    """Return the columns of both sides as lists; ValueError if they differ in number."""
    first, second = ([side] if isinstance(side, str) else list(side) for side in (first, second))
    if ids is not None and (isinstance(ids, str) or len(ids) != 2):
        raise ValueError(
            f"got ids={ids!r}; give two columns, who the first and who the second item is."
        )
    if len(first) != len(second) or not (first or ids):
        raise ValueError(
            f"got {len(first)} columns for the first item and {len(second)} for the second; "
            "give the same features of both."
        )
    return first, second, None if ids is None else tuple(ids)


def _check_frame(frame: Any, columns: list) -> None:
    """Raise ValueError if a column is not in the frame."""
    missing = [column for column in columns if column not in list(frame.columns)]
    if missing:
        raise ValueError(f"The frame has no column {missing}; it has {list(frame.columns)}.")


def list_side_words(first: list, second: list, ids: tuple | None) -> list[tuple[str, str]]:
    """Return names of both sides: whole names of columns, then the words in which they differ."""
    pairs = ([] if ids is None else [ids]) + list(zip(first, second, strict=True))
    pairs = [pair for pair in pairs if all(isinstance(name, str) for name in pair)]
    differ = [split_common_part(*pair) for pair in pairs]
    return [*pairs, *(common[1] for common in differ if common is not None)]


def _feature_labels(first: list, second: list, names: Sequence[str] | None) -> list:
    """Return the names of the features of a side; ValueError if two have one name."""
    if names is not None:
        labels = [names] if isinstance(names, str) else list(names)
        check_one_each((len(labels),), len(first), "names", "features a side")
    else:
        labels = _common_labels(first, second)
    if len(set(labels)) < len(labels):
        raise ValueError(f"The features of a side are named {labels}; give distinct names=.")
    return labels


def _common_labels(first: list, second: list) -> list:
    """Return the common part of the names of both sides, or the names of the first side.

    The words that differ must be the same pair everywhere, as "home" and "away".
    """
    labels, sides = [], set()
    for names in zip(first, second, strict=True):
        common = (names[0], None) if names[0] == names[1] else split_common_part(*names)
        if common is None:
            return first
        labels.append(common[0])
        sides.add(common[1])
    return labels if len(sides - {None}) < 2 and len(set(labels)) == len(labels) else first


def split_common_part(name: Any, other_name: Any) -> tuple[str, tuple[str, str]] | None:
    """Return what two names share and the words in which they differ; None where more differs."""
    if not (isinstance(name, str) and isinstance(other_name, str)):
        return None
    words, others = (re.split(r"([^0-9a-zA-Z]+)", text) for text in (name, other_name))
    if len(words) != len(others):
        return None
    differ = [i for i, pair in enumerate(zip(words, others, strict=True)) if pair[0] != pair[1]]
    if len(differ) != 1 or differ[0] % 2:  # every second part is a separator
        return None
    at = differ[0]
    common_words = words[2:] if at == 0 else words[: at - 1] + words[at + 1 :]
    label = "".join(common_words).strip(" ._-:()[]")
    return (label, (words[at], others[at])) if label else None


def _check_opponents(frame: Any, rows: np.ndarray, ids: tuple) -> None:
    """Raise ValueError for a duel without an id or of an item with itself; warn of alike names."""
    opponents = [frame[column].tolist() for column in ids]
    for row, pair in zip(rows, zip(*opponents, strict=True), strict=True):
        if any(map(is_missing, pair)):
            raise ValueError(f"An id is missing in row {row} of {list(ids)}; drop such rows.")
        if pair[0] == pair[1]:
            raise ValueError(f"Row {row} sets {pair[0]!r} against itself; drop such rows.")
    texts = dict.fromkeys(name for side in opponents for name in side if isinstance(name, str))
    warn_alike(texts, "write them alike, such as by frame[column].str.strip().str.title()")


def _stack_sides(frame, rows, first, second, ids, names):
    """Return the duels of some rows of a frame, with ids in a first column.

    Without ids, and without names of the features, duels of numbers are an array.
    """
    frame, labels = frame.iloc[rows], _feature_labels(first, second, names)
    if ids is None and not all(isinstance(label, str) for label in labels):
        with suppress(ValueError):
            sides = [check_array(frame[columns], dtype=np.float64) for columns in (first, second)]
            return np.stack(sides, axis=1)
    if ids is not None:
        if _ID in labels:
            raise ValueError(
                f"A feature is named {_ID!r} as the column of ids will be; give names= others."
            )
        _check_opponents(frame, rows, ids)
        first, second, labels = [ids[0], *first], [ids[1], *second], [_ID, *labels]
    import pandas as pd

    listed = list(frame.columns)
    places = [[listed.index(column) for column in columns] for columns in (first, second)]
    sides = [frame.iloc[:, side].set_axis(labels, axis=1) for side in places]
    items = pd.concat(sides, ignore_index=True)
    pairs = np.arange(len(items)).reshape(2, -1).T
    return DuelFrame(items, pairs, id_column=None if ids is None else _ID)
