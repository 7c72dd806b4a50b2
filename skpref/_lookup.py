"""What builders are given of items, positions or names, and what they hand back for them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skpref._containers import unmasked
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable


def as_table(items: Any) -> ItemTable | None:
    """Items as a table, None if there are none."""
    return items if items is None or isinstance(items, ItemTable) else ItemTable(items)


def named_table(items: Any, references: Iterable) -> tuple[ItemTable | None, bool]:
    """Items as a table; where there are none a table of the texts that refer to them, and True.

    Names are sorted: the order in which they appear may tell of ranks.
    """
    table = as_table(items)
    if table is not None:
        return table, False
    names = list(dict.fromkeys(references))
    if not names or not all(isinstance(name, str) for name in names):
        return None, False
    return ItemTable.from_names(sorted(names)), True


def positions_of(references: Any, table: ItemTable | None) -> np.ndarray:
    """Positions in a table, from positions or from names where the table has names."""
    if table is not None and table.names is not None:
        return table.index(references)
    positions = np.asarray(unmasked(references))
    if positions.dtype.kind == "O":
        positions = np.array(positions.tolist())
    if positions.dtype.kind not in "iu":
        if table is None:
            remedy = "names must all be texts, or those of a table that is passed as items"
        else:
            remedy = "for names, pass a DataFrame indexed by name or ItemTable(X, names=...)"
        raise ValueError(f"Positions of items must be integers, {positions.dtype} came; {remedy}.")
    if positions.size and positions.min() < 0:
        raise ValueError(f"Position {positions.min()} is negative; the first item is 0.")
    if table is not None and positions.size and positions.max() >= len(table):
        raise ValueError(f"Position {positions.max()} is out of range for {len(table)} items.")
    return positions.astype(np.int64)


def codes_of(references: list) -> np.ndarray:
    """Numbers that tell references apart, whatever they refer to."""
    code = {one: i for i, one in enumerate(dict.fromkeys(references))}
    return np.array([code[one] for one in references], dtype=np.int64)


def gather(
    table: ItemTable | None, shown: np.ndarray, named: bool = False
) -> np.ndarray | DuelFrame:
    """Positions, -1 for none, as the duels or sets of the items that they stand for.

    ``named``: of their names, None for none.
    """
    if named and table is not None:
        return np.array([*table.names, None], dtype=object)[shown]
    if table is None or not table.has_features:
        return shown
    if table.X is None or table.feature_names is not None:
        return DuelFrame(table.frame, shown)
    return DuelFrame(table.X, shown) if (shown < 0).any() else table.X[shown]
