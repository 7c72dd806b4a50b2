"""The one rule of what X is: its container, its dimensions and its type decide."""

from typing import Any, NamedTuple

import numpy as np

from skpref._containers import (
    all_strings,
    column_at,
    column_names,
    is_frame,
    is_missing,
    missing_rows,
    missing_texts,
    plain_frame,
    unmasked,
)
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable
from skpref._sets import check_padding, check_sizes, consecutive, numbered

FORMS = (
    "duel arrays of shape (n_duels, 2, n_features), sets of k items of shape (n_sets, k, "
    "n_features), items with ratings of shape (n_items, n_features), or, with the constructor's "
    "items=, positions of shape (n_duels, 2) or (n_sets, k)"
)


class Parsed(NamedTuple):
    """Items of X in rows, as they came, and which were shown together.

    Attributes
    ----------
    kind : {"items", "texts", "positions", "names"}
        Features of items, texts, positions in a table of items, or names in it.
    rows : array, sparse matrix or DataFrame of shape (n, n_features), or ndarray of shape (n,)
    pairs : ndarray of int of shape (n_answers, k) or None
        Rows that an answer is about: the two sides of a duel, or the k items of a set in the
        order shown, -1 where a set has fewer (at its end, but for arrays of features). None if X
        holds items.
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


def parse(
    X: Any,
    *,
    table: ItemTable | None = None,
    integers: str | None = "items",
    text_sets: bool = False,
) -> Parsed:
    """What X is.

    ========================================  ====================================================
    X                                         read as
    ========================================  ====================================================
    `DuelFrame`                               duels or sets
    `ItemTable`                               items
    DataFrame, sparse matrix                  items (frames of texts: names, if the table has any)
    (n, 2, d)                                 duels
    (n, k, d)                                 sets of k items; one that is NaN throughout is absent
    (n,) or (n, 2) strings                    texts or duels of texts; names, if the table has any
    (n,) or (n, 2) objects, table with names  names
    (n, k) strings, table with names          sets of names; None, NaN or "" pad the end of a row
    (n, k) strings, without                   sets of texts if ``text_sets``, else items
    (n,) or (n, 2) integers, with a table     positions in it
    (n, k) integers, with a table             sets of positions; -1 pads the end of a row
    (n, k) integers, without                  as ``integers`` says
    any other 2-D array                       items
    ========================================  ====================================================

    Here k is 3 or more. Masked entries are missing values, never what lies under the mask.

    Parameters
    ----------
    X : array-like, DataFrame, DuelFrame or ItemTable
    table : ItemTable, default=None
        Table that positions and names refer to.
    integers : {"items", "positions", None}, default="items"
        What integers of shape (n, 2) or (n, k) are where no table is known; None: an error that
        names both.
    text_sets : bool, default=False
        Whether strings of shape (n, k) are sets of texts, padded by None or NaN, rather than
        items of k categories.

    Returns
    -------
    Parsed

    Raises
    ------
    ValueError
        If X is no array at all, has three dimensions of which the second is shorter than 2,
        mixes texts with missing ones, is padded elsewhere than at the end of a row, leaves a row
        fewer than two items, or is ambiguous.
    """
    if isinstance(X, DuelFrame):
        return _of_duel_frame(X)
    if isinstance(X, ItemTable):
        frame = X.frame
        return Parsed("items", X.X if frame is None else frame, named=X.feature_names is not None)
    if hasattr(X, "tocsr"):
        return Parsed("items", X)
    named = table if table is not None and table.names is not None else None
    if is_frame(X):
        X = plain_frame(X)
        found = None if named is None else _named_in_frame(X, named)
        return found or Parsed("items", X, named=column_names(X) is not None)
    masked = np.ma.is_masked(X)
    given = X
    X = _as_array(unmasked(X))
    if X.ndim == 3:
        n_shown = X.shape[1]
        if n_shown < 2:
            raise ValueError(
                "A 3-D X must have shape (n_sets, k, n_features), duels (n_duels, 2, n_features), "
                f"got {X.shape}: an answer is about two items or more. Stack the two sides with "
                "np.stack([first, second], axis=1); items alone have two dimensions."
            )
        rows = X.reshape(len(X) * n_shown, X.shape[2])
        absent = missing_rows(X) if n_shown > 2 else None
        if absent is None or not absent.any():
            return Parsed("items", rows, consecutive(len(X), n_shown))
        check_sizes(absent)
        return Parsed("items", rows[~absent.reshape(-1)], numbered(absent))
    if X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 2):
        if named is not None and X.dtype.kind in "UTO" and X.size:
            return _unit("names", X.astype(object))
        if all_strings(X):
            return _unit("texts", X)
        _refuse_missing_texts(X)
    elif X.ndim == 2 and X.dtype.kind in "UTO" and (named is not None or text_sets):
        if not hasattr(given, "dtype"):  # numpy would make strings of None and NaN
            X = np.array(given, dtype=object)
        found = _text_sets(X) if named is None else _named_sets(X, named)
        if found is not None:
            return found
    if table is not None:
        if masked and X.ndim < 3:
            raise ValueError(
                "X is a masked array with masked positions of items; leave these rows out."
            )
        if X.dtype.kind in "iu" and X.ndim in (1, 2):
            if X.ndim == 2 and X.shape[1] < 2:
                raise ValueError(
                    "Integer X with items= must have shape (n_duels, 2), pairs of positions in "
                    "the table, or (n_sets, k), sets of k positions padded by -1; got shape "
                    f"{X.shape}."
                )
            return _positions(X)
    elif X.ndim == 2 and X.shape[1] >= 2 and X.dtype.kind in "iu":
        if integers is None:
            raise ValueError(
                f"X holds integers in shape {X.shape}, which may be pairs of positions in a table "
                f"of items (or sets) or items with {_count(X.shape[1])} features. Say "
                'integers="positions" or integers="items".'
            )
        if integers == "positions":
            return _positions(X)
    return Parsed("items", X)


def names_in(X: Any) -> np.ndarray | None:
    """Names that X holds where no table is known: texts in two columns or more.

    Parameters
    ----------
    X : array-like, DataFrame, DuelFrame or ItemTable

    Returns
    -------
    ndarray of object of shape (n, k) or None
        None, NaN or "" may end a row of k > 2. None if X holds other things.
    """
    if isinstance(X, DuelFrame | ItemTable) or hasattr(X, "tocsr"):
        return None
    if is_frame(X):
        X = plain_frame(X)
        if not all(
            all_strings(np.asarray(column_at(X, j).to_numpy())) for j in range(2)[: X.shape[1]]
        ):
            return None
        names = np.asarray(X, dtype=object)
    else:
        names = _as_array(unmasked(X))
        if names.ndim != 2 or names.dtype.kind not in "UTO":
            return None
        # numpy would make strings of None and NaN
        names = names if hasattr(X, "dtype") else np.array(X, dtype=object)
    if names.shape[1] < 2 or names.size == 0 or not all_strings(names[:, :2]):
        return None
    values = names.ravel().tolist()
    named = all(isinstance(value, str) or is_missing(value) for value in values)
    return names.astype(object) if named else None


def table_of_names(names: np.ndarray) -> ItemTable:
    """Items without features that names, with what pads their rows, stand for."""
    listed = names.ravel().tolist()
    return ItemTable.from_names([name for name in listed if isinstance(name, str) and name])


def _count(number: int) -> str:
    return "two" if number == 2 else str(number)


def _of_duel_frame(X: DuelFrame) -> Parsed:
    if is_frame(X.items):
        return Parsed("items", X.items, X.pairs, X.id_column, X.feature_names is not None)
    absent = X.pairs < 0  # as the array of the same items would be
    return Parsed("items", X.items[X.pairs[~absent]], numbered(absent))


def _unit(kind: str, X: np.ndarray) -> Parsed:
    """One value an item: (n,) items or (n, 2) duels."""
    paired = X.ndim == 2 and X.shape[1] == 2
    return Parsed(kind, X.reshape(-1), consecutive(len(X), 2) if paired else None)


def _padded(kind: str, X: np.ndarray, absent: np.ndarray, pads: str) -> Parsed:
    """One value an item: (n, k) sets."""
    check_padding(absent, pads)
    return Parsed(kind, X[~absent], numbered(absent))


def _positions(X: np.ndarray) -> Parsed:
    if X.ndim == 1 or X.shape[1] == 2:
        return _unit("positions", X)
    return _padded("positions", X, X == -1, "-1")


def _named_in_frame(frame: Any, table: ItemTable) -> Parsed | None:
    """Names in the columns of a frame, None if they hold other things."""
    texts = [all_strings(np.asarray(column_at(frame, j).to_numpy())) for j in range(frame.shape[1])]
    if frame.shape[1] in (1, 2):
        return _unit("names", np.asarray(frame, dtype=object)) if all(texts) else None
    # Only columns after the second can have pads.
    return _named_sets(np.asarray(frame, dtype=object), table) if all(texts[:2]) else None


def _named_sets(X: np.ndarray, table: ItemTable) -> Parsed | None:
    """Sets of names, None if X holds other things than strings and pads."""
    if X.shape[1] < 3 or X.size == 0:
        return None
    pads = set() if "" in table.names.tolist() else {""}
    values = X.ravel().tolist()
    named = [isinstance(value, str) for value in values]
    absent = [value in pads if isinstance(value, str) else is_missing(value) for value in values]
    if not any(named) or not np.logical_or(named, absent).all():
        return None
    gaps = np.array(absent).reshape(X.shape)
    return _padded("names", X.astype(object), gaps, "None, NaN or an empty name")


def _text_sets(X: np.ndarray) -> Parsed | None:
    """Sets of texts, None if X holds other things than texts and pads."""
    if X.shape[1] < 3:
        return None
    if all_strings(X):
        return Parsed("texts", X.reshape(-1), consecutive(*X.shape))
    gaps = missing_texts(X)
    return None if gaps is None else _padded("texts", X, gaps, "None or NaN")


def _as_array(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X could not be read as an array ({error}); X may be {FORMS}. Rows of fewer items are "
            "padded at their end, positions by -1, names by None."
        ) from None


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
