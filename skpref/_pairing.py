"""Which items meet: pairs from ranked lists and from ratings, as arrays of positions."""

import numbers

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpref._items import is_missing


def _spans(start, stop):
    """Rows p and the integers from start[p] up to stop[p], one after the other."""
    length = np.maximum(stop - start, 0)
    row = np.repeat(np.arange(len(length)), length)
    before = np.cumsum(length) - length
    return row, start[row] + np.arange(len(row)) - before[row]


def _is_padding(value):
    return is_missing(value) or (not isinstance(value, str) and value == -1)


def _ranking_lists(rankings):
    rankings = rankings.to_numpy() if hasattr(rankings, "to_numpy") else rankings
    if isinstance(rankings, str | dict | set) or not hasattr(rankings, "__len__"):
        raise ValueError(f"Rankings must be a list of lists; {type(rankings).__name__} came.")
    lists = []
    for i, ranking in enumerate(rankings):
        if isinstance(ranking, str | dict | set) or not hasattr(ranking, "__len__"):
            raise ValueError(f"Ranking {i} is {ranking!r}; each must be a list of items in order.")
        listed = ranking.tolist() if hasattr(ranking, "tolist") else list(ranking)
        while listed and _is_padding(listed[-1]):
            listed.pop()
        if any(map(_is_padding, listed)):
            raise ValueError(
                f"Ranking {i} has -1, NaN or None before its end; these only pad the end of a "
                "shorter list."
            )
        lists.append(listed)
    return lists


def ranking_counts(rankings, adjacent=False):
    """Number of duels that each ranking makes."""
    length = np.array([len(ranking) for ranking in _ranking_lists(rankings)], dtype=np.int64)
    return np.maximum(length - 1, 0) if adjacent else length * (length - 1) // 2


def ranked_pairs(rankings, positions, adjacent=False):
    """Winners and losers of the duels that ranked lists make.

    Parameters
    ----------
    rankings : list of lists
        Best first, as in `from_rankings`.
    positions : callable
        Turns a flat list of what the rankings name into an array of positions.
    adjacent : bool, default=False
        Only neighbours meet.

    Returns
    -------
    winner, loser : ndarray of shape (n_duels,)

    Raises
    ------
    ValueError
        If an item occurs twice in one list, or no list has two items.
    """
    lists = _ranking_lists(rankings)
    length = np.array([len(ranking) for ranking in lists], dtype=np.int64)
    if not np.any(length > 1):
        raise ValueError(f"None of the {len(lists)} rankings has two items, so no duel results.")
    listed = [item for ranking in lists for item in ranking]
    # Padding by NaN makes floats of positions.
    listed = [int(i) if isinstance(i, float) and i.is_integer() else i for i in listed]
    mixed = {isinstance(item, str) for item in listed}
    if len(mixed) > 1:
        raise ValueError("Rankings mix strings with numbers; name every item, or number them all.")
    flat = positions(listed)
    ranking = np.repeat(np.arange(len(lists)), length)
    order = np.lexsort((flat, ranking))
    twice = (np.diff(flat[order]) == 0) & (np.diff(ranking[order]) == 0)
    if twice.any():
        where = order[np.flatnonzero(twice)[0]]
        raise ValueError(
            f"Ranking {ranking[where]} names item {listed[where]!r} twice; an item has one place."
        )
    after = np.arange(len(flat)) + 1
    end = np.cumsum(length)[ranking]
    winner, loser = _spans(after, np.minimum(after + 1, end) if adjacent else end)
    return flat[winner], flat[loser]


def _runs(starts):
    """Start and end of the run that each element is in."""
    first = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    return first[run], np.append(first[1:], len(starts))[run]


def _spread(level, group):
    """Pairs at rank distances 1, 2, 4, …, counted from the edge of a run of equal ratings.

    A partner is looked up within its own run at the place that the item has in its run, so that
    equal ratings share their duels evenly.
    """
    start, end = level
    group_start, group_end = group
    n = len(start)
    place = np.arange(n) - start

    def partner(rows, edge):
        return start[edge] + (edge - start[edge] + place[rows]) % (end[edge] - start[edge])

    pairs = []
    distance = 1
    while distance < n:
        rows = np.flatnonzero(end + distance <= group_end)
        pairs.append((rows, partner(rows, end[rows] + distance - 1)))
        rows = np.flatnonzero(start - distance >= group_start)
        pairs.append((partner(rows, start[rows] - distance), rows))
        distance *= 2
    low, high = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return np.divmod(np.unique(low * n + high), n)


def rated_pairs(ratings, qid=None, max_pairs=2000, *, tiebreak=None):
    """Pairs of rated items that make a duel, within each group.

    All pairs with different ratings, if these are at most ``max_pairs`` in all the groups
    together. Beyond, each item meets those at rank distance 1, 2, 4, 8, … in its group: about
    n log2 n pairs that keep both local and global order. Equal ratings make no pair; distances
    are then counted from the edge of the run of equal ratings, and its members share the
    opponents out evenly, so that every item still meets one below and one above it, if any.

    Parameters
    ----------
    ratings : array-like of shape (n_items,)
        Finite numbers, larger is better.
    qid : array-like of shape (n_items,), default=None
        Group of each item. None: one group.
    max_pairs : int or None, default=2000
        None: no limit.
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
    ratings = column_or_1d(ratings)
    if ratings.dtype.kind not in "biufO":
        raise ValueError(f"Ratings must be finite numbers; values of type {ratings.dtype} came.")
    ratings = ratings.astype(np.float64)
    if not np.isfinite(ratings).all():
        raise ValueError(
            f"{np.sum(~np.isfinite(ratings))} of {len(ratings)} ratings are NaN or infinite; "
            "drop these items."
        )
    if max_pairs is not None and not (isinstance(max_pairs, numbers.Integral) and max_pairs >= 0):
        raise ValueError(f"max_pairs must be a non-negative integer or None; {max_pairs!r} came.")
    group = np.zeros(len(ratings), dtype=np.intp)
    if qid is not None:
        qid = column_or_1d(qid)
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
    if max_pairs is None or n_pairs <= max_pairs:
        low, high = _spans(levels[1], groups[1])
    else:
        low, high = _spread(levels, groups)
    return order[high], order[low]
