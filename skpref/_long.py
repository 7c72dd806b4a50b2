"""Rankings in long form: one row for each ranker and item, ties within a list."""

from typing import Any, NamedTuple

import numpy as np

from skpref._containers import column_floats, is_frame, is_missing, plain_frame
from skpref._warnings import warn


class LongRankings(NamedTuple):
    """Rankings that say something, in the order in which their rankers appear.

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

    def mention_dropped(self) -> None:
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
