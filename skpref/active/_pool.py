"""Pools: the duels that may be asked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import all_strings, is_frame
from skpref._items import ItemTable, group_rows
from skpref._lookup import as_table, gather
from skpref.active._contracts import sides
from skpref.duels import DuelFrame


def all_pairs(items: Any) -> Any:
    """All duels between items, each pair once.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable, or int
        An integer stands for that many items of a table.

    Returns
    -------
    ndarray of shape (n_duels, 2, n_features), DuelFrame, or ndarray of int of shape (n_duels, 2)
        Of items without features, and of an integer, positions.

    Examples
    --------
    >>> from skpref.active import all_pairs
    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> all_pairs([[0.5], [0.7], [0.9]])[:, :, 0].tolist()
    [[0.5, 0.7], [0.5, 0.9], [0.7, 0.9]]
    """
    table = None if isinstance(items, int | np.integer) else as_table(items)
    n = items if table is None else len(table)
    pairs = np.stack(np.triu_indices(n, k=1), axis=1)
    return gather(table, pairs)


def pool_of(pool: Any) -> Any:
    """Duels as they are; of items, all duels between them."""
    if isinstance(pool, ItemTable) or is_frame(pool):
        return all_pairs(pool)
    if isinstance(pool, DuelFrame):
        return pool
    listed = pool if isinstance(pool, np.ndarray) else np.asarray(pool)
    if listed.ndim == 2 and listed.dtype.kind == "f":
        return all_pairs(listed)
    return listed


def item_codes(duels: Any, more: Any = None) -> NDArray[np.intp]:
    """Which duels share items: equal numbers for equal items, (n, 2).

    Parameters
    ----------
    duels, more : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
        ``more`` are further duels of the same form, whose codes follow.
    """
    both = [side for each in (duels, more) if each is not None for side in sides(each)]
    parts = [np.asarray(side) for side in both]
    if parts[0].ndim == 1 and not all_strings(parts[0]):
        rows = np.concatenate(parts)[:, None].astype(np.float64)
    elif parts[0].ndim == 1:
        rows = np.concatenate([part.astype(object) for part in parts])
    else:
        rows = np.concatenate(parts)
        rows = rows if rows.dtype.kind == "O" else rows.astype(np.float64)
    code = group_rows(rows)[1]
    ends = np.cumsum([len(part) for part in parts])[:-1]
    split = np.split(code, ends)
    return np.concatenate([np.stack(split[k : k + 2], axis=1) for k in range(0, len(split), 2)])
