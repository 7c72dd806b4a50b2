"""Builders of duel arrays from what people have: pairs, columns, ranked lists, ratings."""

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from skpref._items import ItemTable, distinct_rows, is_frame
from skpref._outcomes import read_outcomes
from skpref._pairing import ranked_pairs, ranking_counts, rated_pairs


def alternate(pairs):
    """Orient duels that the first item won so that both outcomes are present.

    Every second duel is turned round. A label of one class alone is fine for ``fit``, but breaks
    scikit-learn's scorers, so every builder ends here.

    Parameters
    ----------
    pairs : array-like of shape (n_duels, 2, ...)
        Duels with the winner first: items, indices of items or texts.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, ...)
        A copy whose odd rows are swapped.
    y : ndarray of shape (n_duels,)
        1 where the first item won, 0 where the second did.

    Raises
    ------
    ValueError
        If the second axis of ``pairs`` is not of length 2.

    Examples
    --------
    >>> from skpref.duels import alternate
    >>> X, y = alternate([[5, 3], [5, 4], [3, 4]])
    >>> X.tolist(), y.tolist()
    ([[5, 3], [4, 5], [3, 4]], [1, 0, 1])
    """
    X = np.array(pairs)
    if X.ndim < 2 or X.shape[1] != 2:
        raise ValueError(
            f"Duels came with shape {X.shape}; their second axis must have length 2: "
            "winner and loser."
        )
    X[1::2] = X[1::2, ::-1].copy()
    y = np.ones(len(X), dtype=np.int64)
    y[1::2] = 0
    return X, y


def first_won(outcomes):
    """Read outcomes: ``{0, 1}``, ``{-1, 1}`` or booleans.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,)

    Returns
    -------
    ndarray of bool of shape (n_duels,)
        True where the first item won.

    Raises
    ------
    ValueError
        For any other label, or 0 and -1 together.

    Examples
    --------
    >>> from skpref.duels import first_won
    >>> first_won([1, -1, 1]).tolist()
    [True, False, True]
    """
    outcomes = column_or_1d(outcomes)
    return read_outcomes(outcomes)[0]


def _finish(X, outcomes):
    """Duels with their labels, turned round where one class alone is present."""
    if outcomes is None:
        return alternate(X)
    won = first_won(outcomes)
    if len(won) != len(X):
        raise ValueError(f"{len(won)} outcomes came for {len(X)} duels; give one for each.")
    if won.all() or not won.any():
        return alternate(X if won.all() else X[:, ::-1])
    return X, column_or_1d(outcomes).astype(np.int64)


def _positions(references, table):
    """Positions in a table, from positions or from names where the table has names."""
    if table is not None and table.names is not None:
        return table.index(references)
    positions = np.asarray(references)
    if positions.dtype.kind == "O":
        positions = np.array(positions.tolist())
    if positions.dtype.kind not in "iu":
        if table is None:
            remedy = "for names, build ItemTable.from_names(names) first and pass it as items"
        else:
            remedy = "for names, pass a DataFrame indexed by name or ItemTable(X, names=...)"
        raise ValueError(f"Positions of items must be integers, {positions.dtype} came; {remedy}.")
    if positions.size and positions.min() < 0:
        raise ValueError(f"Position {positions.min()} is negative; the first item is 0.")
    if table is not None and positions.size and positions.max() >= len(table):
        raise ValueError(f"Position {positions.max()} is out of range for {len(table)} items.")
    return positions.astype(np.int64)


def _table(items):
    return items if items is None or isinstance(items, ItemTable) else ItemTable(items)


def _gather(table, pairs):
    return pairs if table is None or not table.has_features else table.X[pairs]


def from_pairs(items, pairs, outcomes=None):
    """Build duels from pairs of positions or names.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable or None
        What the pairs refer to. A DataFrame's index names its items. None: the pairs hold
        positions in a table that the estimator has.
    pairs : array-like of shape (n_duels, 2)
        Names, if ``items`` has names; integer positions otherwise.
    outcomes : array-like of shape (n_duels,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first of the pair won. None: the first
        of each pair won.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, n_features), or (n_duels, 2)
        Duel arrays; integer pairs where the items have no features, for an estimator with
        ``items=table``.
    y : ndarray of int64 of shape (n_duels,)
        ``outcomes``, if both are present. Otherwise every second duel is turned round and the
        labels are 0 and 1.

    Raises
    ------
    ValueError
        For unknown names, positions out of range, an item paired with itself, or other outcomes.

    Examples
    --------
    >>> from skpref.duels import ItemTable, from_pairs
    >>> table = ItemTable([[0.0], [0.5], [1.0]], names=["a", "b", "c"])
    >>> X, y = from_pairs(table, [["c", "a"], ["c", "b"]])
    >>> X[..., 0].tolist(), y.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [1, 0])
    """
    table = _table(items)
    pairs = pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs
    pairs = pairs if isinstance(pairs, np.ndarray) else np.array(list(pairs), dtype=object)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError(
            f"Pairs came with shape {pairs.shape}; give at least one row of two items each."
        )
    positions = _positions(pairs, table)
    alone = np.flatnonzero(positions[:, 0] == positions[:, 1])
    if len(alone):
        raise ValueError(
            f"Pair {alone[0]} sets item {pairs[alone[0], 0]!r} against itself; drop such pairs."
        )
    return _finish(_gather(table, positions), outcomes)


def from_columns(frame, first, second, outcome=None):
    """Build duel arrays from a DataFrame with one duel a row.

    Parameters
    ----------
    frame : DataFrame
    first, second : list of column names
        Features of the first and of the second item, in the same order.
    outcome : column name or array-like of shape (n_duels,), default=None
        ``{0, 1}``, ``{-1, 1}`` or booleans, 1 where the first item won. None: it always won.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, n_features)
    y : ndarray of int64 of shape (n_duels,)
        As in `from_pairs`.

    Raises
    ------
    ValueError
        For missing columns, lists of different lengths, values that are not finite numbers, or
        other outcomes.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpref.duels import from_columns
    >>> frame = pd.DataFrame({"left": [1.0, 2.0], "right": [3.0, 4.0], "left_won": [0, 1]})
    >>> X, y = from_columns(frame, ["left"], ["right"], "left_won")
    >>> X[..., 0].tolist(), y.tolist()
    ([[1.0, 3.0], [2.0, 4.0]], [0, 1])
    """
    if not is_frame(frame):
        raise ValueError(f"from_columns needs a DataFrame; {type(frame).__name__} came.")
    first = [first] if isinstance(first, str) else list(first)
    second = [second] if isinstance(second, str) else list(second)
    if len(first) != len(second) or not first:
        raise ValueError(
            f"{len(first)} columns came for the first item and {len(second)} for the second; "
            "give the same features of both."
        )
    labelled = outcome is not None and np.ndim(outcome) == 0
    wanted = first + second + ([outcome] if labelled else [])
    missing = [column for column in wanted if column not in list(frame.columns)]
    if missing:
        raise ValueError(f"The frame has no column {missing}; it has {list(frame.columns)}.")
    both = []
    for columns in (first, second):
        try:
            both.append(check_array(frame[columns], dtype=np.float64))
        except ValueError as error:
            raise ValueError(
                f"Columns {columns} must hold finite numbers: {error} Encode or impute them "
                "first; for text, Itemwise takes an array of two columns of strings."
            ) from error
    return _finish(np.stack(both, axis=1), frame[outcome] if labelled else outcome)


def from_rankings(rankings, items=None, *, adjacent=False):
    """Build duels from ranked lists: each item beat those after it in its list.

    Parameters
    ----------
    rankings : list of lists, 2-D array or DataFrame
        Best first, lengths may differ. Trailing -1, NaN or None pad shorter ones. Names, if
        ``items`` has names; integer positions otherwise.
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable or None
        As in `from_pairs`.
    adjacent : bool, default=False
        Only neighbours in a list meet, instead of all pairs.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, n_features), or (n_duels, 2)
        Duels list by list, every second one turned round. See `ranking_groups` for their lists.
    y : ndarray of int64 of shape (n_duels,)

    Raises
    ------
    ValueError
        If an item is unknown or occurs twice in one list, or no list has two items.

    Examples
    --------
    >>> from skpref.duels import from_rankings
    >>> X, y = from_rankings([[2, 0, 1], [1, 2]])
    >>> X.tolist(), y.tolist()
    ([[2, 0], [1, 2], [0, 1], [2, 1]], [1, 0, 1, 0])
    """
    table = _table(items)
    winner, loser = ranked_pairs(rankings, lambda listed: _positions(listed, table), adjacent)
    return alternate(_gather(table, np.column_stack([winner, loser])))


def ranking_groups(rankings, *, adjacent=False):
    """Ranking that each duel of `from_rankings` came from, for splitters that take groups.

    Parameters
    ----------
    rankings, adjacent
        As given to `from_rankings`.

    Returns
    -------
    ndarray of int64 of shape (n_duels,)

    Examples
    --------
    >>> from skpref.duels import ranking_groups
    >>> ranking_groups([[2, 0, 1], [1, 2]]).tolist()
    [0, 0, 0, 1]
    """
    counts = ranking_counts(rankings, adjacent)
    return np.repeat(np.arange(len(counts)), counts)


def from_ratings(items, ratings, qid=None, *, max_pairs=2000):
    """Build duels from rated items: within a ``qid`` the higher rating won.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable or None
        One row a rating. None: integer pairs of row positions come back.
    ratings : array-like of shape (n_items,)
        Finite numbers; equal ones make no duel.
    qid : array-like of shape (n_items,), default=None
        Group of each item; only items of one group meet. None: one group.
    max_pairs : int or None, default=2000
        Up to this many pairs in all, all are duels; beyond, see `rated_pairs`. None: no limit.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, n_features), or (n_duels, 2)
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
    if items is None:
        X, tiebreak = None, None
    else:
        is_table = isinstance(items, ItemTable)
        X = items.X if is_table else check_array(items, dtype=np.float64, input_name="items")
        check_consistent_length(X, ratings)
        tiebreak = distinct_rows(X)[1]
        X = None if is_table and not items.has_features else X
    pairs = np.column_stack(rated_pairs(ratings, qid, max_pairs, tiebreak=tiebreak))
    return alternate(pairs if X is None else X[pairs])
