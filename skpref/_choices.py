"""Sets of items and which of each was chosen."""

from typing import Any

import numpy as np

from skpref._duel_frame import DuelFrame
from skpref._lists import plain_lists
from skpref._lookup import gather, named_table, positions_of
from skpref._ranks import chosen_places, shown_lists, worst_ranks


def from_choices(
    sets: Any, chosen: Any, items: Any = None, *, worst: bool = False
) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Build sets of items and what was chosen of each: the best, or the worst.

    Parameters
    ----------
    sets : list of lists, 2-D array or DataFrame
        Items of each set in the order in which they were shown; lengths may differ. Trailing -1,
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
        The sets as they were shown; k is the size of the largest. A `DuelFrame` where the items
        came in a frame with named columns, or have features and sets differ in size; positions,
        padded by -1, where the items have no features, for an estimator with ``items=table``;
        names, padded by None, where texts came without items.
    y : ndarray of int64 of shape (n_sets,) or (n_sets, k)
        Places of the chosen. With ``worst``, ranks: 2 for it, 1 for the others, 0 for none. If
        all sets are of two items they are duels, and y is 1 where the first one won, else 0.

    Raises
    ------
    ValueError
        If an item is unknown or occurs twice in a set, a set has fewer than two items, or a
        choice is missing or not in its set.

    Notes
    -----
    Nothing is turned round, as `from_pairs` does where the first of each pair won: who was shown
    first may matter (``order_effect``).

    Examples
    --------
    >>> from skpref.duels import from_choices
    >>> X, y = from_choices([[2, 0, 1], [1, 2]], [0, 1])
    >>> X.tolist(), y.tolist()
    ([[2, 0, 1], [1, 2, -1]], [0, 1])
    >>> from_choices([[2, 0, 1], [1, 2]], [0, 1], worst=True)[1].tolist()
    [[2, 1, 1], [1, 2, 0]]
    """
    sets = plain_lists(sets, "Set")
    table, named = named_table(items, (item for one in sets for item in one))

    def positions(listed: Any) -> np.ndarray:
        return positions_of(listed, table)

    lists = shown_lists(sets, positions, "Set")
    places = chosen_places(chosen, lists, positions, table is not None and table.names is not None)
    X = gather(table, lists.padded(lists.place, lists.flat, -1), named)
    if lists.length.max() == 2:
        return X, ((places == 0) != worst).astype(np.int64)
    return X, worst_ranks(lists, places) if worst else places
