"""The one rule of what X is: its container, its dimensions and its type decide."""

from typing import Any, NamedTuple

import numpy as np

from skpref._containers import (
    all_strings,
    column_at,
    column_names,
    is_frame,
    missing_texts,
    plain_frame,
    unmasked,
)
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable

FORMS = (
    "duel arrays of shape (n_duels, 2, n_features), items with ratings of shape "
    "(n_items, n_features), or, with the constructor's items=, integer pairs of shape (n_duels, 2)"
)


class Parsed(NamedTuple):
    """Items of X in rows, as they came, and how they pair up.

    Attributes
    ----------
    kind : {"items", "texts", "positions", "names"}
        Features of items, texts, positions in a table of items, or names in it.
    rows : array, sparse matrix or DataFrame of shape (n, n_features), or ndarray of shape (n,)
    pairs : ndarray of int of shape (n_duels, 2) or None
        Rows that meet; None if X holds items.
    id_column : column name or None
        Column of ``rows`` that says who an item is.
    named : bool
        Whether columns of ``rows`` have names that count; a duel array never has.
    """

    kind: str
    rows: Any
    pairs: np.ndarray | None = None
    id_column: Any = None
    named: bool = False


def parse(X: Any, *, table: ItemTable | None = None, integers: str | None = "items") -> Parsed:
    """What X is.

    ========================================  ====================================================
    X                                         read as
    ========================================  ====================================================
    `DuelFrame`                               duels
    `ItemTable`                               items
    DataFrame, sparse matrix                  items (frames of texts: names, if the table has any)
    (n, 2, d)                                 duels
    (n,) or (n, 2) strings                    texts or duels of texts; names, if the table has any
    (n,) or (n, 2) objects, table with names  names
    integers, with a table                    positions in it
    (n, 2) integers, without                  as ``integers`` says
    any other 2-D array                       items
    ========================================  ====================================================

    Masked entries are missing values, never what lies under the mask.

    Parameters
    ----------
    X : array-like, DataFrame, DuelFrame or ItemTable
    table : ItemTable, default=None
        Table that positions and names refer to.
    integers : {"items", "positions", None}, default="items"
        What integers of shape (n, 2) are where no table is known; None: an error that names both.

    Returns
    -------
    Parsed

    Raises
    ------
    ValueError
        If X is no array at all, has three dimensions of which the second is not of length 2,
        mixes texts with missing ones, or is ambiguous.
    """
    if isinstance(X, DuelFrame):
        return Parsed("items", X.items, X.pairs, X.id_column, X.feature_names is not None)
    if isinstance(X, ItemTable):
        frame = X.frame
        return Parsed("items", X.X if frame is None else frame, named=X.feature_names is not None)
    if hasattr(X, "tocsr"):
        return Parsed("items", X)
    has_names = table is not None and table.names is not None
    if is_frame(X):
        X = plain_frame(X)
        if has_names and X.shape[1] in (1, 2) and _all_texts(X):
            return _unit("names", np.asarray(X, dtype=object))
        return Parsed("items", X, named=column_names(X) is not None)
    masked = np.ma.is_masked(X)
    X = _as_array(unmasked(X))
    if X.ndim == 3:
        if X.shape[1] != 2:
            raise ValueError(
                f"A 3-D X must have shape (n_duels, 2, n_features), got {X.shape}. Stack the two "
                "sides with np.stack([first, second], axis=1)."
            )
        return Parsed("items", X.reshape(2 * len(X), X.shape[2]), _neighbours(len(X)))
    if X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 2):
        if has_names and X.dtype.kind in "UTO" and X.size:
            return _unit("names", X.astype(object))
        if all_strings(X):
            return _unit("texts", X)
        _refuse_missing_texts(X)
    if table is not None:
        if masked and X.ndim < 3:
            raise ValueError(
                "X is a masked array with masked positions of items; leave these rows out."
            )
        if X.dtype.kind in "iu" and X.ndim in (1, 2):
            if X.ndim == 2 and X.shape[1] != 2:
                raise ValueError(
                    "Integer X with items= must have shape (n_duels, 2), pairs of positions in "
                    f"the table; got shape {X.shape}."
                )
            return _unit("positions", X)
    elif X.ndim == 2 and X.shape[1] == 2 and X.dtype.kind in "iu":
        if integers is None:
            raise ValueError(
                f"X holds integers in shape {X.shape}, which may be pairs of positions in a table "
                'of items or items with two features. Say integers="positions" or '
                'integers="items".'
            )
        if integers == "positions":
            return _unit("positions", X)
    return Parsed("items", X)


def _unit(kind: str, X: np.ndarray) -> Parsed:
    """One value an item: (n,) items or (n, 2) duels."""
    paired = X.ndim == 2 and X.shape[1] == 2
    return Parsed(kind, X.reshape(-1), _neighbours(len(X)) if paired else None)


def _neighbours(n_duels: int) -> np.ndarray:
    return np.arange(2 * n_duels).reshape(n_duels, 2)


def _all_texts(frame: Any) -> bool:
    columns = [np.asarray(column_at(frame, j).to_numpy()) for j in range(frame.shape[1])]
    return all(all_strings(column) for column in columns)


def _as_array(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X could not be read as an array ({error}); X may be {FORMS}.") from None


def _refuse_missing_texts(X: np.ndarray) -> None:
    gaps = missing_texts(X)
    if gaps is not None:
        rows = np.flatnonzero(gaps.reshape(len(X), -1).any(axis=1))
        raise ValueError(
            f"X of shape {X.shape} holds texts, of which {gaps.sum()} are missing, first in row "
            f"{rows[0]}. Leave these rows out, or put an empty text there; if its columns are "
            "features of items, pass a DataFrame."
        )


def check_dimensions(X: np.ndarray, table: ItemTable | None) -> None:
    """Whether X, no duel array, has two dimensions."""
    if X.ndim == 2:
        return
    came = f"shape {X.shape}" if X.shape else "a scalar"
    if not X.shape and X.dtype == np.dtype(object):
        came = type(X.item()).__name__
    remedy = (
        "Reshape your data: X.reshape(1, -1) is one item, X.reshape(-1, 1) are items of one "
        "feature, X.reshape(1, 2, -1) is one duel."
    )
    if table is not None:
        remedy += (
            " Positions in the table of items are integers: X.astype(int), or items.index(X) if X "
            "holds names."
        )
    raise ValueError(f"X may be {FORMS}; got {came}. {remedy}")
