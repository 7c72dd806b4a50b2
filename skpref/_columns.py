"""Duels from a frame with one contest a row."""

import re
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from skpref._answers import check_order
from skpref._containers import column_at, is_frame, is_missing, plain_frame
from skpref._duel_frame import DuelFrame
from skpref._orientation import finish
from skpref._warnings import warn
from skpref._winners import read_winners

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
    order: None = None,
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
    order: str | ArrayLike,
) -> tuple[np.ndarray | DuelFrame, np.ndarray, np.ndarray]: ...


def from_columns(
    frame: Any,
    first: str | Sequence,
    second: str | Sequence,
    outcome: Any = None,
    *,
    ids: tuple[Any, Any] | None = None,
    names: Sequence[str] | None = None,
    ties: bool | None = None,
    order: str | ArrayLike | None = None,
) -> tuple[np.ndarray | DuelFrame, ...]:
    """Build duels from a DataFrame with one duel a row.

    Parameters
    ----------
    frame : DataFrame
    first, second : list of column names
        Features of the first and of the second item, in the same order. With ``ids`` they may
        be empty.
    outcome : column name or array-like of shape (n_duels,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won; or -1, 0 for a tie, and
        1, see ``ties``; or 0, 0.5 for a tie, and 1. Or words, in any case: the name of either item
        (its id), its column's name or the word in which that differs ("home", "away"), "model_a" or
        "model_b", "a" or "b", "first" or "second", "tie" or "draw" and what begins so. Duels
        without an outcome, or with one that says nothing of these, are left out, and a warning
        counts them; it is an error if only wins of one side can be read. None: the first always
        won.
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
    order : column name or array-like of int of shape (n_duels,), default=None
        Who was shown first, or played at home, as in the ``order=`` of `fit`: 1 the first item, -1
        the second, 0 none. It comes back for the duels as they come out.

    Returns
    -------
    X : DuelFrame of shape (n_duels, 2, n_features)
        With the columns as they are: texts, categories and missing values are for `Itemwise` to
        encode. A float array if the columns are numbers, their labels no strings and no ``names``
        given.
    y : ndarray of int64 of shape (n_duels,)
        As in `from_pairs`: where one side won all, every second duel is turned round. Where the
        outcomes said so, a warning mentions that, unless ``order`` came.
    order : ndarray of int8 of shape (n_duels,)
        With ``order`` alone: of the duels that are left, with the other sign where one was turned.

    Raises
    ------
    ValueError
        For missing columns, lists of different lengths, missing ids, an id against itself, or
        other outcomes or orders.

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
    >>> X, y, order = from_columns(games, [], [], ids=("won", "lost"), order="home")
    >>> X.second["id"].tolist(), y.tolist(), order.tolist()
    (['bob', 'cid'], [1, 0], [1, 1])
    """
    if not is_frame(frame):
        raise ValueError(f"from_columns needs a DataFrame; {type(frame).__name__} came.")
    frame = plain_frame(frame)
    first = [first] if isinstance(first, str) else list(first)
    second = [second] if isinstance(second, str) else list(second)
    ids = None if ids is None else _check_ids(ids)
    if len(first) != len(second) or not (first or ids):
        raise ValueError(
            f"{len(first)} columns came for the first item and {len(second)} for the second; "
            "give the same features of both."
        )
    labelled = outcome is not None and np.ndim(outcome) == 0
    wanted = first + second + list(ids or ()) + ([outcome] if labelled else [])
    wanted += [order] if isinstance(order, str) else []
    missing = [column for column in wanted if column not in list(frame.columns)]
    if missing:
        raise ValueError(f"The frame has no column {missing}; it has {list(frame.columns)}.")
    if len(frame) == 0:
        raise ValueError("The frame has no row, so no duel results.")
    shown = check_order(frame[order] if isinstance(order, str) else order, len(frame), 2)
    outcomes, rows = frame[outcome] if labelled else outcome, np.arange(len(frame))
    if outcomes is not None:
        who = None if ids is None else (frame[ids[0]].tolist(), frame[ids[1]].tolist())
        said = read_winners(outcomes, len(frame), who, _sides(first, second, ids), ties)
        if said is not None:
            rows, frame = said.kept, frame.iloc[said.kept]
            outcomes, ties = said.said(ties)
    labels = _labels(first, second, names)
    if not all(isinstance(label, str) for label in labels) and ids is None:
        array = _floats(frame, first, second)
        if array is not None:
            return _finished(array, outcomes, ties, None if shown is None else shown[rows])
    if ids is not None:
        if _ID in labels:
            raise ValueError(
                f"A feature is named {_ID!r} as the column of ids will be; give names= others."
            )
        _check_opponents(frame, ids, rows)
        first, second, labels = [ids[0], *first], [ids[1], *second], [_ID, *labels]
    items = _stack(frame, first, second, labels)
    pairs = np.arange(len(items)).reshape(2, -1).T
    duels = DuelFrame(items, pairs, id_column=None if ids is None else _ID)
    return _finished(duels, outcomes, ties, None if shown is None else shown[rows])


def _finished(X, outcomes, ties, order):
    """Duels with their labels and, where it came, who was shown first."""
    done = finish(X, outcomes, ties)
    if order is not None:
        return done.X, done.y, np.where(done.turned, -order, order)
    if outcomes is not None and done.turned.any():
        warn(
            "One side won all duels, so that every second one is turned round to show both "
            "outcomes. Who was shown first (or played at home) is turned with them: say it by "
            "order=, such as order=np.ones(len(frame)) if it was the first side, and pass the "
            "order that comes back to fit."
        )
    return done.X, done.y


def _check_ids(ids: Any) -> tuple:
    ids = tuple(ids) if not isinstance(ids, str) else (ids,)
    if len(ids) != 2:
        raise ValueError(
            f"ids came as {ids!r}; give two columns, who the first and who the second item is."
        )
    return ids


def _sides(first: list, second: list, ids: tuple | None) -> list[tuple[str, str]]:
    """What the columns call the two sides, whole names before the words in which they differ."""
    pairs = ([] if ids is None else [ids]) + list(zip(first, second, strict=True))
    pairs = [pair for pair in pairs if all(isinstance(name, str) for name in pair)]
    differ = [_common(*pair) for pair in pairs]
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
    """What the names of both sides have in common, or the names of the first side.

    The words that differ must be the same pair everywhere, as "home" and "away".
    """
    labels, sides = [], set()
    for one, other in zip(first, second, strict=True):
        if one == other:
            labels.append(one)
            continue
        found = _common(one, other)
        if found is None:
            return first
        labels.append(found[0])
        sides.add(found[1])
    return labels if len(sides) < 2 and len(set(labels)) == len(labels) else first


def _common(one: Any, other: Any) -> tuple[str, tuple[str, str]] | None:
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
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            "from_columns needs pandas to keep named columns together; install it, or build duel "
            "arrays with np.stack([first, second], axis=1)."
        ) from None
    sides = []
    for columns in (first, second):
        places = [list(frame.columns).index(column) for column in columns]
        side = [column_at(frame, j).reset_index(drop=True) for j in places]
        sides.append(pd.concat(side, axis=1, keys=labels))
    return pd.concat(sides, ignore_index=True)
