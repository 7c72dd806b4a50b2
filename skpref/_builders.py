"""Builders of duels from what people have: pairs, counts, ranked lists, ratings."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpref._containers import all_strings, is_frame, unmasked
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable, distinct_rows, group_rows
from skpref._lists import plain_lists
from skpref._long import is_long, read_long
from skpref._lookup import as_table, codes_of, gather, named_table, positions_of
from skpref._orientation import alternate, finish
from skpref._pairing import ranked_pairs, ranking_counts, rated_pairs
from skpref._ranks import ranked_sets
from skpref._winners import read_winners


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
        What the pairs refer to. A DataFrame's index names its items. None: the pairs hold names,
        or positions in a table that the estimator has.
    pairs : array-like of shape (n_pairs, 2)
        Names, if ``items`` has names; integer positions otherwise.
    outcomes : array-like of shape (n_pairs,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first of the pair won; or -1, 0 for a tie,
        and 1, see ``ties``; or 0, 0.5 for a tie, and 1; or names of winners and other words, as in
        `from_columns`. None: the first of each pair won.
    counts : array-like of int of shape (n_pairs,), default=None
        How often each pair met with that outcome: so many rows come out. None: once each.
    ties : bool, default=None
        Whether 0 is a tie, and -1 means that the second won. None: where both occur. See
        `from_columns` for ties in words.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_duels, 2, n_features), or ndarray of shape (n_duels, 2)
        A `DuelFrame` where the items came in a frame with named columns, else duel arrays;
        integer pairs where the items have no features, for an estimator with ``items=table``; pairs
        of names where texts came without items, which an estimator takes as they are.
    y : ndarray of int64 of shape (n_duels,)
        ``outcomes``, if both sides won somewhere. Otherwise every second duel is turned round and
        the labels are 0 and 1; with ties every second one that has a winner, labels -1, 0 and 1. An
        ``order=`` for `fit` has the other sign there.

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
    pairs = pairs.to_numpy() if hasattr(pairs, "to_numpy") else unmasked(pairs)
    pairs = pairs if isinstance(pairs, np.ndarray) else np.array(list(pairs), dtype=object)
    table, by_name = named_table(items, pairs.ravel().tolist() if all_strings(pairs) else ())
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError(
            f"Pairs came with shape {pairs.shape}; give at least one row of two items each (a "
            "square table of how often one beat another is for from_wins)."
        )
    positions = positions_of(pairs, table)
    alone = np.flatnonzero(positions[:, 0] == positions[:, 1])
    if len(alone):
        raise ValueError(
            f"Pair {alone[0]} sets item {pairs[alone[0], 0]!r} against itself; drop such pairs."
        )
    named = all_strings(pairs) or (table is not None and table.names is not None)
    said = None
    if outcomes is not None:
        who = (pairs[:, 0].tolist(), pairs[:, 1].tolist()) if named else None
        said = read_winners(outcomes, len(pairs), who, ties=ties)
    if counts is not None:
        counts = _check_counts(counts, "counts", (len(positions),))
    if said is not None:
        positions = positions[said.kept]
        counts = None if counts is None else counts[said.kept]
        outcomes, ties = said.said(ties)
    if counts is not None:
        if outcomes is not None:
            outcomes = column_or_1d(unmasked(outcomes))
            check_consistent_length(positions, outcomes)
            outcomes = np.repeat(outcomes, counts)
        positions = np.repeat(positions, counts, axis=0)
    return finish(gather(table, positions, by_name), outcomes, ties)[:2]


def _check_counts(counts: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    counts = np.asarray(counts.toarray() if hasattr(counts, "toarray") else unmasked(counts))
    if counts.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, {counts.shape} came.")
    whole = counts.astype(np.int64) if counts.dtype.kind in "biu" else None
    if counts.dtype.kind == "f" and np.all(np.mod(counts, 1.0) == 0.0):  # not so for NaN, inf
        whole = counts.astype(np.int64)
    if whole is None or whole.min() < 0:
        raise ValueError(f"{name} must be whole numbers, 0 or more: how often that was seen.")
    if whole.sum() == 0:
        raise ValueError(f"{name} are all 0, so no duel results.")
    return whole


def from_wins(wins: Any, items: Any = None) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build duels from a square table of wins.

    Parameters
    ----------
    wins : array-like, sparse matrix or DataFrame of shape (n_items, n_items)
        ``wins[i, j]``: how often item i beat item j; the diagonal is 0. A DataFrame has the same
        names along both sides.
    items : array-like or DataFrame of shape (n_items, n_features) or ItemTable, default=None
        As in `from_pairs`. Rows of a DataFrame ``wins`` are then looked up by name, if the items
        have names. None: positions come out, in the order of the rows.

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
    references = None
    if is_frame(wins):
        if hasattr(wins, "index"):
            references = np.array(list(wins.index), dtype=object)
            if sorted(map(str, wins.index)) != sorted(map(str, wins.columns)):
                raise ValueError(
                    "The table of wins must name the same items along both sides; "
                    f"{list(wins.index)[:5]} and {list(wins.columns)[:5]} came."
                )
            wins = wins[list(wins.index)] if set(wins.index) == set(wins.columns) else wins
        wins = wins.to_numpy()
    n = np.shape(wins)[0] if np.ndim(wins) or hasattr(wins, "shape") else 0
    counts = _check_counts(wins, "wins", (n, n))
    if np.any(np.diag(counts)):
        at = np.flatnonzero(np.diag(counts))[0]
        raise ValueError(f"Item {at} has wins against itself; the diagonal must be 0.")
    pairs = np.argwhere(counts)
    if table is not None and table.names is not None:
        if references is None:
            if len(table) != n:
                raise ValueError(f"{n} rows of wins came for {len(table)} items.")
            references = table.names
        return from_pairs(table, references[pairs], counts=counts[tuple(pairs.T)])
    return from_pairs(table, pairs, counts=counts[tuple(pairs.T)])


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
        Best first, lengths may differ. Trailing -1, NaN or None pad shorter ones. Names, if
        ``items`` has names or is None; integer positions otherwise. Or, in long form, a DataFrame
        with one row for each ranker and item.
    items : array-like or DataFrame of shape (n_items, n_features) or ItemTable, default=None
        As in `from_pairs`; None: texts stay names.
    ranker, item, rank : column names, default=None
        Of the long form: whose ranking it is, what is ranked, and the rank, a number: the smallest
        is the best, items of equal rank are ties, of which nothing is said. Rows without a rank and
        rankings that tell no two items apart are left out, and a warning counts them.
    adjacent : bool, default=False
        Only neighbours in a list meet (items of neighbouring ranks), instead of all pairs.
    joint : bool, default=False
        One row a ranking, instead of duels that the model would take as made one by one.
    shown : list of lists, 2-D array or DataFrame, default=None
        All items of which each ranking names the best, in the order shown; for ``joint``. None:
        those that are ranked.

    Returns
    -------
    X : ndarray or DuelFrame of shape (n_duels, 2, n_features), or ndarray of shape (n_duels, 2)
        Duels list by list, every second one turned round. See `ranking_groups` for their lists.
        With ``joint``, sets (n_rankings, k, n_features) or (n_rankings, k) as in `from_choices`:
        in the order of ``shown``, else in an order that tells nothing of the ranks (ascending
        positions, each list turned by one place more than the one before).
    y : ndarray of int64 of shape (n_duels,) or (n_rankings, k)
        With ``joint``, the ranks: 1 the best, 0 for none. Items shown but not ranked share the
        rank after the last.

    Raises
    ------
    ValueError
        If an item is unknown or occurs twice in one list, or no list has two items; with
        ``joint`` if any list says nothing, or names an item that was not shown.

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
        long.mention_dropped()
    rankings = plain_lists(rankings)
    listed = rankings if shown is None else [*rankings, *plain_lists(shown, "Set")]
    table, by_name = named_table(items, (each for one in listed for each in one))

    def positions(listed: Any) -> np.ndarray:
        return positions_of(listed, table)

    if joint:
        if adjacent:
            raise ValueError("adjacent=True makes duels, joint=True makes none; take one of them.")
        sets, stated = ranked_sets(rankings, positions, shown, ranks)
        return gather(table, sets, by_name), stated
    if shown is not None:
        raise ValueError("shown= belongs to rankings taken whole; pass joint=True as well.")
    winner, loser, _ = ranked_pairs(rankings, positions, adjacent, ranks)
    return alternate(gather(table, np.column_stack([winner, loser]), by_name))


def ranking_groups(
    rankings: Any,
    *,
    ranker: Any = None,
    item: Any = None,
    rank: Any = None,
    adjacent: bool = False,
    joint: bool = False,
) -> np.ndarray:
    """Ranking that each row of `from_rankings` came from, for splitters that take groups.

    Parameters
    ----------
    rankings, ranker, item, rank, adjacent, joint
        As given to `from_rankings`.

    Returns
    -------
    ndarray of shape (n_duels,) or (n_rankings,)
        Numbers of the lists; of the long form the rankers, which do as ``users`` or ``judges`` too.

    Examples
    --------
    >>> from skpref.duels import ranking_groups
    >>> ranking_groups([[2, 0, 1], [1, 2]]).tolist()
    [0, 0, 0, 1]
    """
    if is_long(rankings, ranker, item, rank):
        long = read_long(rankings, ranker, item, rank)
        if joint:
            return long.rankers
        pairs = ranked_pairs(long.lists, codes_of, adjacent, long.ranks)
        return long.rankers[pairs[2]]
    counts = ranking_counts(rankings, adjacent)
    return np.arange(len(counts)) if joint else np.repeat(np.arange(len(counts)), counts)


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
        Never more duels than this. "auto": all pairs up to 2000, five an item beyond; None: all
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
    return alternate(
        gather(table, np.column_stack(rated_pairs(ratings, qid, max_pairs, tiebreak=tiebreak)))
    )
