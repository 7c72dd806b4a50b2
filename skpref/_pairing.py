"""Which items meet: pairs from ranked lists and from ratings, as arrays of positions."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpref._containers import unmasked
from skpref._lists import plain_lists, read_lists

_ALL_PAIRS = 2000  # up to so many, every pair of rated items is a duel
# Beyond, so many an item, but of few items more: others do not improve the order of items not seen.
_PAIRS_EACH, _LEAST = 5, 4000


def _spans(start, stop):
    """Rows p and the integers from start[p] up to stop[p], one after the other."""
    length = np.maximum(stop - start, 0)
    row = np.repeat(np.arange(len(length)), length)
    before = np.cumsum(length) - length
    return row, start[row] + np.arange(len(row)) - before[row]


def ranking_counts(rankings: Any, adjacent: bool = False) -> np.ndarray:
    """Number of duels that each ranking makes."""
    length = np.array([len(ranking) for ranking in plain_lists(rankings)], dtype=np.int64)
    return np.maximum(length - 1, 0) if adjacent else length * (length - 1) // 2


def ranked_pairs(
    rankings: Any,
    positions: Callable[[list], np.ndarray],
    adjacent: bool = False,
    ranks: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Winners and losers of the duels that ranked lists make, and the list of each.

    Parameters
    ----------
    rankings : list of lists
        Best first, as in `from_rankings`.
    positions : callable
        Turns a flat list of what the rankings name into an array of positions.
    adjacent : bool, default=False
        Only neighbours meet: of ranks, each item those of the next.
    ranks : ndarray of int of shape (n_listed,), default=None
        Of the items of all lists, ascending from 1 in each, without gaps; items of one rank do not
        meet. None: the places.

    Returns
    -------
    winner, loser, row : ndarray of shape (n_duels,)

    Raises
    ------
    ValueError
        If an item occurs twice in one list, or no list has two items.
    """
    plain = plain_lists(rankings)
    if not any(len(ranking) > 1 for ranking in plain):
        raise ValueError(f"None of the {len(plain)} rankings has two items, so no duel results.")
    lists = read_lists(plain, positions)
    after = np.arange(len(lists.flat)) + 1
    end = np.cumsum(lists.length)[lists.row]
    near = adjacent and ranks is None
    winner, loser = _spans(after, np.minimum(after + 1, end) if near else end)
    if ranks is not None:
        lead = ranks[loser] - ranks[winner]
        met = lead == 1 if adjacent else lead > 0
        winner, loser = winner[met], loser[met]
    return lists.flat[winner], lists.flat[loser], lists.row[winner]


def _runs(starts):
    """Start and end of the run that each element is in."""
    first = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    return first[run], np.append(first[1:], len(starts))[run]


def _spread(level, group):
    """Pairs at rank distances 1, 2, 4, …, counted from the edge of a run of equal ratings.

    A partner is looked up within its own run at the place that the item has in its run, so that
    equal ratings share their duels evenly.

    Returns
    -------
    low, high, step : ndarray of shape (n_pairs,)
        Sorted by ``low``, then ``high``; ``step`` is the smallest k of the distances 2ᵏ.
    """
    start, end = level
    group_start, group_end = group
    n = len(start)
    place = np.arange(n) - start

    def partner(rows, edge):
        return start[edge] + (edge - start[edge] + place[rows]) % (end[edge] - start[edge])

    codes, steps = [], []
    distance, step = 1, 0
    while distance < n:
        rows = np.flatnonzero(end + distance <= group_end)
        codes.append(rows * n + partner(rows, end[rows] + distance - 1))
        rows = np.flatnonzero(start - distance >= group_start)
        codes.append(partner(rows, start[rows] - distance) * n + rows)
        steps.append(np.full(len(codes[-2]) + len(codes[-1]), step))
        distance, step = 2 * distance, step + 1
    code, first = np.unique(np.concatenate(codes), return_index=True)
    return *np.divmod(code, n), np.concatenate(steps)[first]


def _evenly(n, wanted):
    """``wanted`` of n places, evenly spread."""
    return (np.arange(wanted) * n + n // 2) // max(wanted, 1)


def _cover(low, high, n):
    """Pairs, taken in their order, that leave no item without an opponent.

    First those between two items that have none yet, then one for each item left over.
    """
    met = np.zeros(n, dtype=bool)
    couples, rest = [], []
    for both in (True, False):
        for i, (one, other) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            if (not met[one] and not met[other]) if both else (not met[one] or not met[other]):
                met[one] = met[other] = True
                (couples if both else rest).append(i)
    return np.array(couples, dtype=np.intp), np.array(rest, dtype=np.intp)


def _thin(low, high, step, n, max_pairs):
    """At most ``max_pairs`` of a design's pairs, spread over its distances and groups.

    Every item keeps an opponent if ``max_pairs`` allows it; the other pairs are evenly spaced
    among all the rest, distance by distance.
    """
    order = np.lexsort((high, low, step))
    couples, rest = _cover(low[order], high[order], n)
    if len(couples) >= max_pairs:
        return np.sort(order[couples[_evenly(len(couples), max_pairs)]])
    rest = rest[_evenly(len(rest), min(len(rest), max_pairs - len(couples)))]
    kept = np.zeros(len(order), dtype=bool)
    kept[couples] = kept[rest] = True
    others = np.flatnonzero(~kept)
    kept[others[_evenly(len(others), max_pairs - kept.sum())]] = True
    return np.sort(order[kept])


def rated_pairs(
    ratings: Any,
    qid: Any = None,
    max_pairs: int | str | None = "auto",
    *,
    tiebreak: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rated items that make a duel, within each group.

    All pairs with different ratings while they are few. Beyond, items meet those at rank
    distance 1, 2, 4, 8, … in their group, which keeps both local and global order: about n log2 n
    pairs, thinned to five times the number of items (or 4000, if that is more). Equal ratings make
    no pair; distances are then counted from the edge of the run of equal ratings, and its members
    share the opponents out evenly, so that, unless they are thinned, every item still meets one
    below and one above it, if any.

    Parameters
    ----------
    ratings : array-like of shape (n_items,)
        Finite numbers, larger is better.
    qid : array-like of shape (n_items,), default=None
        Group of each item. None: one group.
    max_pairs : int, "auto" or None, default="auto"
        An integer is a cap on the pairs of all groups together: if the pairs at distances 1, 2,
        4, … are still more, they are thinned evenly over distances and groups, and every item
        keeps an opponent while there are pairs enough. "auto": all pairs up to 2000; beyond, a cap
        of five pairs an item, and 4000 at least. None: all pairs.
    tiebreak : array-like of shape (n_items,), default=None
        Order of items of equal rating. With a key that depends on the items' values alone
        (``distinct_rows(X)[1]``) the duels do not depend on the order of the rows; without it,
        rows of equal rating keep their order. Distinct ratings need none.

    Returns
    -------
    winner, loser : ndarray of shape (n_pairs,)
        Positions, in an order that does not depend on the order of the rows.

    Raises
    ------
    ValueError
        For ratings that are not finite numbers, unequal lengths, NaN in ``qid``, or if no two
        items of a group differ in rating.

    Examples
    --------
    >>> from skpref.duels import rated_pairs
    >>> winner, loser = rated_pairs([3.0, 1.0, 2.0, 9.0], qid=[0, 0, 0, 1])
    >>> list(zip(winner.tolist(), loser.tolist()))
    [(2, 1), (0, 1), (0, 2)]
    """
    ratings = column_or_1d(unmasked(ratings))
    if ratings.dtype.kind not in "biufO":
        raise ValueError(f"Ratings must be finite numbers; values of type {ratings.dtype} came.")
    ratings = ratings.astype(np.float64)
    if not np.isfinite(ratings).all():
        raise ValueError(
            f"{np.sum(~np.isfinite(ratings))} of {len(ratings)} ratings are NaN or infinite; "
            "drop these items."
        )
    _check_cap(max_pairs)
    group = np.zeros(len(ratings), dtype=np.intp)
    if qid is not None:
        qid = column_or_1d(unmasked(qid))
        check_consistent_length(ratings, qid)
        if qid.dtype.kind == "f" and np.isnan(qid).any():
            raise ValueError("qid has NaN; give every item a group.")
        group = np.unique(qid, return_inverse=True)[1]
    keys = (ratings, group) if tiebreak is None else (column_or_1d(tiebreak), ratings, group)
    check_consistent_length(*keys)
    order = np.lexsort(keys)
    new_group, new_level = np.ones((2, len(order)), dtype=bool)
    new_group[1:] = np.diff(group[order]) != 0
    new_level[1:] = new_group[1:] | (ratings[order][1:] != ratings[order][:-1])
    groups, levels = _runs(new_group), _runs(new_level)
    n_pairs = int(np.sum(groups[1] - levels[1]))
    if n_pairs == 0:
        raise ValueError(
            f"No duel results from {len(ratings)} ratings: no two items of a group differ in "
            "rating. Give items with at least two different ratings within a qid."
        )
    if isinstance(max_pairs, str):  # "auto"
        cap: int | None = max(_LEAST, _PAIRS_EACH * len(order))
        every = n_pairs <= _ALL_PAIRS
    else:
        cap, every = max_pairs, max_pairs is None or n_pairs <= max_pairs
    if cap is None or every:
        low, high = _spans(levels[1], groups[1])
    else:
        low, high, step = _spread(levels, groups)
        if len(low) > cap:
            kept = _thin(low, high, step, len(order), cap)
            low, high = low[kept], high[kept]
    return order[high], order[low]


def _check_cap(max_pairs):
    whole = isinstance(max_pairs, numbers.Integral) and not isinstance(max_pairs, bool)
    if not (max_pairs is None or max_pairs == "auto" or (whole and max_pairs >= 1)):
        raise ValueError(
            f'max_pairs must be a positive integer, "auto" or None; {max_pairs!r} came.'
        )
