"""Builders of duels and sets from pairs, counts, ranked lists, choices and ratings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpref._utils import check_number
from skpref.data._columns import is_long, read_long
from skpref.data._containers import (
    all_strings,
    argument_floats,
    check_one_each,
    column_floats,
    fill_masked,
    is_frame,
    object_array,
    refuse_rows,
)
from skpref.data._frame import DuelFrame
from skpref.data._items import ItemTable, distinct_rows, group_rows
from skpref.data._labels import balance_orientation
from skpref.data._metadata import read_groups
from skpref.data._ranks import chosen_places, ranked_sets, read_sets, read_whole_numbers
from skpref.data._sets import read_lists, strip_padding
from skpref.data._winners import read_labels


def as_table(items: Any) -> ItemTable | None:
    """Return items as an `ItemTable`, or None for None."""
    return items if items is None or isinstance(items, ItemTable) else ItemTable(items)


def named_table(items: Any, references: Iterable) -> tuple[ItemTable | None, bool]:
    """Return items as a table, and whether it was made of the texts in ``references``.

    Names are sorted: the order in which they appear may tell of ranks.
    """
    if items is not None:
        return as_table(items), False
    names = list(dict.fromkeys(references))
    if not names or not all(isinstance(name, str) for name in names):
        return None, False
    return ItemTable.from_names(sorted(names)), True


def positions_of(references: Any, table: ItemTable | None) -> np.ndarray:
    """Return positions in a table, given as positions or names; ValueError for unknown ones."""
    if table is not None and table.names is not None:
        return table.index(references)
    positions = np.asarray(fill_masked(references))
    if positions.dtype.kind == "O":
        positions = np.array(positions.tolist())
    if positions.dtype.kind not in "iu":
        remedy = "for names, pass a DataFrame indexed by name or ItemTable(X, names=...)"
        if table is None:
            remedy = "names must all be texts, or those of a table that is passed as items"
        raise ValueError(f"Positions of items must be integers, got {positions.dtype}; {remedy}.")
    if positions.size and positions.min() < 0:
        raise ValueError(f"Position {positions.min()} is negative; the first item is 0.")
    if table is not None and positions.size and positions.max() >= len(table):
        raise ValueError(f"Position {positions.max()} is out of range for {len(table)} items.")
    return positions.astype(np.int64)


def gather(
    table: ItemTable | None, positions: np.ndarray, by_name: bool = False
) -> np.ndarray | DuelFrame:
    """Return the items at some positions, as duels or sets, by features, positions or names.

    Without features they are the positions; with ``by_name`` they are names, None for no item.
    """
    if by_name and table is not None:
        return np.array([*table.names, None], dtype=object)[positions]
    if table is None or not table.has_features:
        return positions
    if table.X is None or table.feature_names is not None:
        return DuelFrame(table.frame, positions)
    return DuelFrame(table.X, positions) if (positions < 0).any() else table.X[positions]


@dataclass(frozen=True)
class PairLimits:
    """How many duels rated items make.

    Attributes
    ----------
    all_pairs : int
        Pairs up to which every pair is a duel.
    pairs_each, least : int
        Beyond, so many an item, but of few items more: others do not improve the order of items
        not seen.
    """

    all_pairs: int = 2000
    pairs_each: int = 5
    least: int = 4000


LIMITS = PairLimits()


def _expand_ranges(start, stop):
    """Return the integers from start[p] up to stop[p] for each row p, and the row of each."""
    length = np.maximum(stop - start, 0)
    row = np.repeat(np.arange(len(length)), length)
    before = np.cumsum(length) - length
    return row, start[row] + np.arange(len(row)) - before[row]


def pair_ranked_items(
    rankings: Any,
    positions: Callable[[list], np.ndarray],
    adjacent: bool = False,
    ranks: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return winners and losers of the duels that ranked lists make, and the list of each.

    Parameters
    ----------
    rankings : list of lists
        Best first, without padding.
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
    if not any(len(ranking) > 1 for ranking in rankings):
        raise ValueError(f"None of the {len(rankings)} rankings has two items, so no duel results.")
    lists = read_lists(rankings, positions)
    is_first = lists.place == 0
    new_rank = True if ranks is None else np.diff(ranks, prepend=0) != 0
    (_, end), (_, rank_end) = _run_bounds(is_first), _run_bounds(is_first | new_rank)
    stop = np.minimum(np.append(rank_end, 0)[rank_end], end) if adjacent else end
    winner, loser = _expand_ranges(rank_end, stop)
    return lists.flat[winner], lists.flat[loser], lists.row[winner]


def _run_bounds(starts):
    """Return the start and the end of the run that each element is in."""
    first = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    return first[run], np.append(first[1:], len(starts))[run]


def _pairs_at_doubling_distances(level, group):
    """Return pairs at rank distances 1, 2, 4, …, counted from the edge of equal ratings.

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


def rated_pairs(
    ratings: Any,
    qid: Any = None,
    max_pairs: int | str | None = "auto",
    *,
    tiebreak: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Pair rated items that differ in rating, within each group, for duels.

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
        4, … are still more, they are thinned evenly over distances and groups. "auto": all pairs up
        to 2000; beyond, a cap of five pairs an item, and 4000 at least. None: all pairs.
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
    ratings = column_or_1d(argument_floats(ratings, "Ratings must be finite numbers"))
    check_finite_ratings(ratings)
    if max_pairs is not None and max_pairs != "auto":
        check_number('max_pairs, if not "auto" or None,', max_pairs, low=1, integer=True)
    n_ratings = len(ratings)
    group = np.zeros(n_ratings, dtype=np.intp) if qid is None else read_groups(qid, n_ratings)
    keys = (ratings, group) if tiebreak is None else (column_or_1d(tiebreak), ratings, group)
    check_consistent_length(*keys)
    order = np.lexsort(keys)
    new_group, new_level = np.ones((2, len(order)), dtype=bool)
    new_group[1:] = np.diff(group[order]) != 0
    new_level[1:] = new_group[1:] | (ratings[order][1:] != ratings[order][:-1])
    groups, levels = _run_bounds(new_group), _run_bounds(new_level)
    n_pairs = int(np.sum(groups[1] - levels[1]))
    if n_pairs == 0:
        raise ValueError(
            f"No duel results from {len(ratings)} ratings: no two items of a group differ in "
            "rating. Give items with at least two different ratings within a qid."
        )
    few, cap = LIMITS.all_pairs, max(LIMITS.least, LIMITS.pairs_each * len(order))
    if max_pairs != "auto":
        few = cap = n_pairs if max_pairs is None else int(max_pairs)
    if n_pairs <= few:
        low, high = _expand_ranges(levels[1], groups[1])
    else:
        low, high, step = _pairs_at_doubling_distances(levels, groups)
        if len(low) > cap:
            evenly_spaced = (np.arange(cap) * len(low) + len(low) // 2) // cap
            rows_taken = np.sort(np.argsort(step, kind="stable")[evenly_spaced])
            low, high = low[rows_taken], high[rows_taken]
    return order[high], order[low]


def check_finite_ratings(ratings: Any) -> None:
    """Raise ValueError where ratings that are numbers are missing or infinite."""
    floats = column_floats(ratings)
    if floats is None or floats.ndim not in (1, 2) or 0 in floats.shape:
        return
    refuse_rows(
        ~np.isfinite(floats.reshape(len(floats), -1)).all(axis=1),
        f"{{count}} of {len(floats)} ratings are NaN or infinite, first in row {{row}}; drop them.",
    )


def from_pairs(
    items: Any,
    pairs: Any,
    outcomes: Any = None,
    *,
    counts: Any = None,
    ties: bool | None = None,
) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build duels from pairs of positions or names.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable or None
        The items of the pairs. The index of a DataFrame names its items. None: the pairs hold
        names, or positions in the table of the estimator.
    pairs : array-like of shape (n_pairs, 2)
        Names, if ``items`` has names; integer positions otherwise.
    outcomes : array-like of shape (n_pairs,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first of the pair won. With ties -1, 0
        and 1 (see ``ties``), or 0, 0.5 and 1. Or names of winners and other words, as in
        `from_columns`. None or True: the first of each pair won. False: there is no outcome yet,
        as of pairs to predict; they stay as they are.
    counts : array-like of int of shape (n_pairs,), default=None
        How often each pair met with that outcome. It gives so many rows. None: once each.
    ties : bool, default=None
        Whether 0 is a tie, and -1 means that the second won. None: where both occur. See
        `from_columns` for ties in words.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_duels, 2, n_features), or ndarray of shape (n_duels, 2)
        A `DuelFrame` if the items are a frame with named columns, else duel arrays. Items
        without features give integer pairs, for an estimator with ``items=table``. Texts without
        items give pairs of names, which an estimator takes as they are.
    y : ndarray of int64 of shape (n_duels,)
        ``outcomes``, if both sides won somewhere. Otherwise every second duel that has a winner is
        turned round. The labels are then 0 and 1, with ties -1, 0 and 1. An ``order=`` for `fit`
        has the other sign in the duels that were turned. Of pairs to predict empty.

    Raises
    ------
    ValueError
        For unknown names, positions out of range, an item paired with itself, or other outcomes
        or counts.

    Examples
    --------
    >>> from skpref.duels import ItemTable, from_pairs
    >>> table = ItemTable([[0.0], [0.5], [1.0]], names=["a", "b", "c"])
    >>> X, y = from_pairs(table, [["c", "a"], ["c", "b"]])
    >>> X[..., 0].tolist(), y.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [1, 0])
    """
    pairs = pairs.to_numpy() if hasattr(pairs, "to_numpy") else fill_masked(pairs)
    pairs = pairs if isinstance(pairs, np.ndarray) else np.array(list(pairs), dtype=object)
    table, by_name = named_table(items, pairs.ravel().tolist() if all_strings(pairs) else ())
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError(
            f"Got pairs of shape {pairs.shape}; give at least one row of two items each (a "
            "square table of how often one beat another is for from_wins)."
        )
    positions = positions_of(pairs, table)
    refuse_rows(
        positions[:, 0] == positions[:, 1],
        "Pair {row} sets item {value!r} against itself; drop such pairs.",
        pairs[:, 0],
    )
    named = all_strings(pairs) or (table is not None and table.names is not None)
    opponents = (pairs[:, 0].tolist(), pairs[:, 1].tolist()) if named else None
    labels = read_labels(outcomes, len(pairs), opponents, ties=ties)
    positions = positions[labels.rows]
    if counts is not None:
        counts = _check_counts(counts, "counts", (len(pairs),))[labels.rows]
        positions = np.repeat(positions, counts, axis=0)
        if labels.y is not None:
            labels = labels._replace(y=np.repeat(labels.y, counts))
    return labels.attach(gather(table, positions, by_name))[:2]


def _check_counts(counts: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return counts of duels as integers; ValueError for another shape or other numbers."""
    counts = np.asarray(counts.toarray() if hasattr(counts, "toarray") else fill_masked(counts))
    if counts.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {counts.shape}.")
    message = f"{name} must be whole numbers, 0 or more: counts of duels"
    counts = read_whole_numbers(counts, message)
    refuse_rows(counts.reshape(-1) < 0, message)
    if counts.sum() == 0:
        raise ValueError(f"{name} are all 0, so no duel results.")
    return counts


def _read_win_table(wins: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the names along a frame of wins (None if it has none), and its values."""
    if not hasattr(wins, "index"):
        return None, wins.to_numpy()
    names, columns = list(wins.index), list(wins.columns)
    if sorted(map(str, names)) != sorted(map(str, columns)):
        raise ValueError(
            "The table of wins must name the same items along both sides; "
            f"got {names[:5]} and {columns[:5]}."
        )
    wins = wins[names] if set(names) == set(columns) else wins
    return np.array(names, dtype=object), wins.to_numpy()


def from_wins(wins: Any, items: Any = None) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build duels from a square table of wins.

    Parameters
    ----------
    wins : array-like, sparse matrix or DataFrame of shape (n_items, n_items)
        ``wins[i, j]`` is how often item i beat item j; the diagonal is 0. A DataFrame has the same
        names along both sides.
    items : array-like or DataFrame of shape (n_items, n_features) or ItemTable, default=None
        As in `from_pairs`. If the items have names, rows of a DataFrame ``wins`` are looked up by
        name. None: X holds positions, in the order of the rows.

    Returns
    -------
    X, y
        As in `from_pairs`, one duel a win.

    Raises
    ------
    ValueError
        If the table is not square, has other entries than counts, or wins of an item against
        itself.

    Examples
    --------
    >>> from skpref.duels import from_wins
    >>> X, y = from_wins([[0, 2], [1, 0]])
    >>> X.tolist(), y.tolist()
    ([[0, 1], [1, 0], [1, 0]], [1, 0, 1])
    """
    table = as_table(items)
    references = None if table is None else table.names
    if is_frame(wins):
        names, wins = _read_win_table(wins)
        references = names if references is not None and names is not None else references
    n = np.shape(wins)[0] if np.ndim(wins) or hasattr(wins, "shape") else 0
    counts = _check_counts(wins, "wins", (n, n))
    refuse_rows(np.diag(counts) > 0, "Item {row} has wins against itself; the diagonal must be 0.")
    if references is not None:
        check_one_each((n,), len(references), "rows of wins", "items")
    pairs = np.argwhere(counts)
    named_pairs = pairs if references is None else references[pairs]
    return from_pairs(table, named_pairs, counts=counts[tuple(pairs.T)])


def from_rankings(
    rankings: Any,
    items: Any = None,
    *,
    ranker: Any = None,
    item: Any = None,
    rank: Any = None,
    adjacent: bool = False,
    joint: bool = False,
    shown: Any = None,
) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build duels from ranked lists, each item before those after it; or take each list whole.

    Parameters
    ----------
    rankings : list of lists, 2-D array or DataFrame
        Best first. Lengths may differ; trailing -1, NaN or None pad shorter ones. Names, if
        ``items`` has names or is None; integer positions otherwise. In long form it is a DataFrame
        with one row for each ranker and item.
    items : array-like or DataFrame of shape (n_items, n_features) or ItemTable, default=None
        As in `from_pairs`; None: texts stay names.
    ranker, item, rank : column names, default=None
        Columns of the long form: the ranker, the item and its rank, a number. The smallest rank is
        the best. Items of equal rank are not compared. Rows without a rank, and rankings that tell
        no two items apart, are left out, and a warning counts them.
    adjacent : bool, default=False
        Only neighbours in a list meet (items of neighbouring ranks), instead of all pairs.
    joint : bool, default=False
        X has one row a ranking, whose items the judge saw together. Otherwise it has duels, which
        the model takes for answers one by one.
    shown : list of lists, 2-D array or DataFrame, default=None
        With ``joint``, all items of each set in the order shown; the ranking names the best of
        them. None: the ranked items.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_duels, 2, n_features), or ndarray of shape (n_duels, 2)
        Duels list by list, every second one turned round. See `ranking_groups` for their lists.
        With ``joint``, sets (n_rankings, k, n_features) or (n_rankings, k) as in `from_choices`,
        in the order of ``shown``. Without ``shown`` the order tells nothing of the ranks: positions
        ascend, and each list is turned by one place more than the one before.
    y : ndarray of int64 of shape (n_duels,) or (n_rankings, k)
        With ``joint`` the ranks: 1 is the best, 0 where there is no item. Items that are shown and
        not ranked share the rank after the last.

    Raises
    ------
    ValueError
        If an item is unknown or occurs twice in one list, or if no list has two items. With
        ``joint`` also if any list says nothing or names an item that was not shown.

    Examples
    --------
    >>> from skpref.duels import from_rankings
    >>> X, y = from_rankings([[2, 0, 1], [1, 2]])
    >>> X.tolist(), y.tolist()
    ([[2, 0], [1, 2], [0, 1], [2, 1]], [1, 0, 1, 0])
    >>> X, y = from_rankings([[2, 0, 1], [1, 2]], joint=True)
    >>> X.tolist(), y.tolist()
    ([[0, 1, 2], [2, 1, -1]], [[2, 3, 1], [2, 1, 0]])
    >>> from_rankings([[2, 0]], joint=True, shown=[[0, 1, 2, 3]])[1].tolist()
    [[2, 3, 1, 3]]

    In long form, with a tie:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {"who": ["ann"] * 3 + ["bob"] * 2, "what": list("xyzzx"), "place": [1, 2, 2, 1, 2]}
    ... )
    >>> X, y = from_rankings(frame, ranker="who", item="what", rank="place")
    >>> X.tolist(), y.tolist()
    ([['x', 'y'], ['z', 'x'], ['z', 'x']], [1, 0, 1])
    """
    ranks = None
    if is_long(rankings, ranker, item, rank):
        if shown is not None:
            raise ValueError("shown= belongs to rankings as lists; in long form leave it out.")
        long = read_long(rankings, ranker, item, rank)
        rankings, ranks = long.lists, long.ranks
        long.warn_dropped()
    rankings = strip_padding(rankings)
    shown = None if shown is None else strip_padding(shown, "Set")
    named = (each for listed in [*rankings, *(shown or [])] for each in listed)
    table, by_name = named_table(items, named)
    positions = partial(positions_of, table=table)
    if joint:
        if adjacent:
            raise ValueError("adjacent=True makes duels, joint=True makes none; take one of them.")
        sets, stated = ranked_sets(rankings, positions, shown, ranks)
        return gather(table, sets, by_name), stated
    if shown is not None:
        raise ValueError("shown= belongs to rankings taken whole; pass joint=True as well.")
    winner, loser, _ = pair_ranked_items(rankings, positions, adjacent, ranks)
    return balance_orientation(gather(table, np.column_stack([winner, loser]), by_name))


def ranking_groups(
    rankings: Any,
    *,
    ranker: Any = None,
    item: Any = None,
    rank: Any = None,
    adjacent: bool = False,
    joint: bool = False,
) -> np.ndarray:
    """Number the ranking of each row of `from_rankings`, for splitters that take groups.

    Parameters
    ----------
    rankings, ranker, item, rank, adjacent, joint
        As given to `from_rankings`.

    Returns
    -------
    ndarray of shape (n_duels,) or (n_rankings,)
        Numbers of the lists; of the long form the rankers, which do as ``users`` or ``judges`` too.

    Raises
    ------
    ValueError
        For rankings that `from_rankings` refuses.

    Examples
    --------
    >>> from skpref.duels import ranking_groups
    >>> ranking_groups([[2, 0, 1], [1, 2]]).tolist()
    [0, 0, 0, 1]
    """
    if is_long(rankings, ranker, item, rank):
        lists, ranks, rankers, *_ = read_long(rankings, ranker, item, rank)
    else:
        lists, ranks = strip_padding(rankings), None
        rankers = np.arange(len(lists))
    if joint:
        return rankers
    *_, row = pair_ranked_items(
        lists, lambda names: group_rows(object_array(names))[1], adjacent, ranks
    )
    return rankers[row]


def from_ratings(
    items: Any, ratings: Any, qid: Any = None, *, max_pairs: int | str | None = "auto"
) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build duels from rated items: within a ``qid`` the higher rating won.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable or None
        One row a rating. None: integer pairs of row positions come back.
    ratings : array-like of shape (n_items,)
        Finite numbers; equal ones make no duel.
    qid : array-like of shape (n_items,), default=None
        Group of each item; only items of one group meet. None: one group.
    max_pairs : int, "auto" or None, default="auto"
        Number of duels, at most. "auto": all pairs up to 2000, five duels an item beyond. None: all
        pairs. See `rated_pairs`.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_duels, 2, n_features), or ndarray of shape (n_duels, 2)
    y : ndarray of int64 of shape (n_duels,)
        1 where the first item won, alternating with 0.

    Raises
    ------
    ValueError
        For ratings that are not finite numbers, unequal lengths, or if no duel results.

    Examples
    --------
    >>> from skpref.duels import from_ratings
    >>> X, y = from_ratings([[0.1], [0.2], [0.3]], [5.0, 3.0, 3.0])
    >>> X[..., 0].tolist(), y.tolist()
    ([[0.1, 0.2], [0.3, 0.1]], [1, 0])
    """
    table, tiebreak = None, None
    if items is not None:
        # The index of a frame is no name here, a row is a rating: it may repeat.
        if is_frame(items) and hasattr(items, "reset_index"):
            items = items.reset_index(drop=True)
        table = items if isinstance(items, ItemTable) else ItemTable(items)
        check_consistent_length(table, ratings)
        tiebreak = distinct_rows(table.X)[1] if table.X is not None else group_rows(table.frame)[1]
    pairs = np.column_stack(rated_pairs(ratings, qid, max_pairs, tiebreak=tiebreak))
    return balance_orientation(gather(table, pairs))


def from_choices(
    sets: Any, chosen: Any, items: Any = None, *, worst: bool = False
) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build sets of items and what was chosen of each: the best, or the worst.

    Parameters
    ----------
    sets : list of lists, 2-D array or DataFrame
        Items of each set in the order in which they were shown. Lengths may differ; trailing -1,
        NaN or None pad shorter ones. Names, if ``items`` has names; integer positions otherwise.
    chosen : array-like of shape (n_sets,)
        Integers are places in the sets, from 0; anything else is a name.
    items : array-like or DataFrame of shape (n_items, n_features) or ItemTable, default=None
        As in `from_pairs`; None: texts stay names.
    worst : bool, default=False
        The worst was chosen, not the best.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_sets, k, n_features), or ndarray of shape (n_sets, k)
        The sets as they were shown; k is the size of the largest. It is a `DuelFrame` if the items
        are a frame with named columns, or if they have features and sets differ in size. Items
        without features give positions, padded by -1, for an estimator with ``items=table``. Texts
        without items give names, padded by None.
    y : ndarray of int64 of shape (n_sets,) or (n_sets, k)
        Places of the chosen items. With ``worst`` ranks: 2 for the worst, 1 for the others, 0 where
        there is no item. Sets of two items each are duels; y is then 1 where the first one won,
        else 0.

    Raises
    ------
    ValueError
        If an item is unknown or occurs twice in a set, a set has fewer than two items, or a
        choice is missing or not in its set.

    Notes
    -----
    No set is turned round, although `from_pairs` turns duels where the first of each pair won. Who
    was shown first may matter (``order_effect``).

    Examples
    --------
    >>> from skpref.duels import from_choices
    >>> X, y = from_choices([[2, 0, 1], [1, 2]], [0, 1])
    >>> X.tolist(), y.tolist()
    ([[2, 0, 1], [1, 2, -1]], [0, 1])
    >>> from_choices([[2, 0, 1], [1, 2]], [0, 1], worst=True)[1].tolist()
    [[2, 1, 1], [1, 2, 0]]
    """
    sets = strip_padding(sets, "Set")
    table, named = named_table(items, (item for members in sets for item in members))
    positions = partial(positions_of, table=table)
    lists = read_sets(sets, positions, "Set")
    places = chosen_places(chosen, lists, positions, table is not None and table.names is not None)
    X = gather(table, lists.arrange_padded(lists.place, lists.flat, -1), named)
    if lists.length.max() == 2:
        return X, ((places == 0) != worst).astype(np.int64)
    # Of the worst, all others are before it.
    of_worst = lists.arrange_padded(lists.place, 1 + (lists.place == places[lists.row]), 0)
    return X, of_worst if worst else places
