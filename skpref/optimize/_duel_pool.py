"""A pool of duels: its items as a space, and which two of them each duel is of."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._containers import is_frame
from skpref._items import ItemTable, distinct_rows
from skpref._lookup import as_table, positions_of
from skpref.active import all_pairs
from skpref.duels import DuelFrame
from skpref.optimize._pool import Pool


class DuelPool(NamedTuple):
    """Duels that may be asked.

    Attributes
    ----------
    space : Pool
        Their items.
    pairs : ndarray of int of shape (n_duels, 2)
        Positions in ``space.pool``; every pair once, whichever way round.
    turned : bool
        Whether either item may be shown first, as where the pool was given as items.
    duels : DuelFrame or ndarray of int of shape (n_duels, 2)
        The same as an estimator takes them: with features, or as positions in a table without any.
    """

    space: Pool
    pairs: NDArray[np.intp]
    turned: bool
    duels: Any

    def describe(self) -> list:
        """Plain values that tell this pool of duels from others."""
        content = np.ascontiguousarray(self.pairs, dtype="<i8").tobytes()
        return [len(self.pairs), self.turned, hashlib.sha256(content).hexdigest()[:16]]


def duel_pool(pool: Any, table: Any = None) -> DuelPool:
    """Read a pool of duels.

    Parameters
    ----------
    pool : array-like
        Duels (n_duels, 2, n_features), a DuelFrame, or (n_duels, 2) positions or names in the
        table. Items, as floats (n_items, n_features), DataFrame or ItemTable, stand for all duels
        between them.
    table : ItemTable or array-like, optional

    Raises
    ------
    ValueError
        If it is none of these, or holds no duel of different items.
    """
    items, pairs = pool, None
    if isinstance(pool, DuelFrame):
        items, pairs = pool.items, pool.pairs
    elif not (isinstance(pool, ItemTable) or is_frame(pool)):
        listed = np.asarray(pool)
        if listed.ndim == 3 and listed.shape[1] == 2:
            items, code = distinct_rows(listed.reshape(-1, listed.shape[2]))
            pairs = code.reshape(-1, 2)
        elif listed.ndim == 2 and listed.dtype.kind != "f":
            if table is None or listed.shape[1] != 2:
                raise ValueError(
                    f"A pool of positions or names has shape (n_duels, 2), and the estimator the "
                    f"table that they refer to as items=; got shape {listed.shape}"
                    f"{' and no table' if table is None else ''}."
                )
            items = as_table(table)
            pairs = positions_of(listed.ravel(), items).reshape(-1, 2)
        elif listed.ndim != 2:
            raise ValueError(
                "A pool holds duels, shape (n_duels, 2, n_features), or items, shape (n_items, "
                f"n_features); got shape {listed.shape}."
            )
    space = Pool(items)
    turned = pairs is None
    pairs = all_pairs(len(space.pool)) if turned else _places(space, items)[pairs]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    pairs = pairs[np.sort(first)]
    if not len(pairs):
        raise ValueError("The pool holds no duel of two different items.")
    duels = DuelFrame(_features(space), pairs) if space.has_features else pairs
    return DuelPool(space, pairs, turned, duels)


def _features(space):
    return np.array([space.to_item(row) for row in space.pool])


def _places(space, items):
    """Positions in the pool of the rows of its candidates."""
    if not space.has_features:
        return np.arange(len(space.pool))
    features = items.X if isinstance(items, ItemTable) else np.asarray(items, dtype=np.float64)
    place = {row.tobytes(): k for k, row in enumerate(space.pool)}
    return np.array([place[space.to_row(row).tobytes()] for row in features])
