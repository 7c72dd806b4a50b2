"""Items that a posterior is asked about, in any of their forms, as rows of features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._containers import all_strings, column_at, is_frame
from skpref._ids import IdEncoder
from skpref._items import ItemTable, float_rows
from skpref._linalg import Array


class Who(NamedTuple):
    """The column that says who an item is, where its ids have codes."""

    place: int
    ids: IdEncoder


def item_rows(
    X: Any,
    n_features: int,
    feature_names: NDArray[Any] | None = None,
    table: ItemTable | None = None,
    who: Who | None = None,
) -> Array:
    """Items as a finite float array of shape (n, n_features).

    Parameters
    ----------
    X : array-like, DataFrame or ItemTable of shape (n, n_features)
        With a table also names or integer positions in it, of shape (n,).
    n_features : int
    feature_names : ndarray of shape (n_features,), optional
        What columns that have names must be called, in this order.
    table : ItemTable, optional
    who : Who, optional
        Ids in a frame or an array of objects get their codes; arrays of numbers have them.

    Raises
    ------
    ValueError
        If they have another shape or other columns, are not finite, or not in the table.
    """
    if who is not None and isinstance(X, ItemTable) and X.frame is not None:
        X = X.frame
    if isinstance(X, ItemTable):
        return _rows_of_table(X, n_features, feature_names, table)
    if is_frame(X):
        columns = list(X.columns)
        if all(isinstance(column, str) for column in columns):
            _check_names(columns, feature_names)
    elif table is not None:
        found = _referred(X, table)
        if found is not None:
            return found
    ids = None if who is None else ids_in(X, who.place)
    if who is not None and ids is not None:
        X = np.array(X, dtype=object)
        X[:, who.place] = who.ids.codes(ids)
    rows = _numbers(X, table)
    if rows.ndim != 2:
        remedy = "For a single item use X.reshape(1, -1)."
        if table is not None:
            remedy += " In one dimension, names or integer positions in the table of items."
        raise ValueError(
            f"Items must be an array of shape (n, n_features), got {rows.ndim} dimensions. {remedy}"
        )
    _check_width(rows, n_features)
    if not np.all(np.isfinite(rows)):
        raise ValueError("Items contain NaN or infinity; impute or drop them.")
    return rows


def item_pairs(
    A: Any,
    B: Any,
    n_features: int,
    feature_names: NDArray[Any] | None = None,
    table: ItemTable | None = None,
    who: Who | None = None,
) -> tuple[Array, Array]:
    """Items on two sides, each as by `item_rows`; names and ids never heard of are told apart."""
    if who is not None:
        new = [ids for ids in (ids_in(A, who.place), ids_in(B, who.place)) if ids is not None]
        who = who._replace(ids=IdEncoder(sum(new, who.ids.names.tolist())))
    elif table is not None and not table.has_features:
        names = _names_in(A), _names_in(B)
        if names[0] is not None and names[1] is not None:
            both = named_rows([*names[0], *names[1]], table)
            return both[: len(names[0])], both[len(names[0]) :]
    a, b = (item_rows(X, n_features, feature_names, table, who) for X in (A, B))
    return a, b


def ids_in(X: Any, place: int) -> list | None:
    """Ids that are still to get their codes, None if there are none."""
    if isinstance(X, ItemTable) and X.frame is not None:
        X = X.frame
    if is_frame(X):
        return column_at(X, place).tolist() if place < X.shape[1] else None
    if isinstance(X, ItemTable):
        return None
    try:
        rows = np.asarray(X) if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:  # ragged
        return None
    if rows.dtype.kind not in "OUT" or rows.ndim != 2 or place >= rows.shape[1]:
        return None
    ids = rows[:, place].tolist()
    return ids if any(isinstance(name, str) for name in ids) else None


def _names_in(X: Any) -> list | None:
    """Names of items, None if X holds positions or features."""
    if isinstance(X, ItemTable):
        return None if X.names is None else X.names.tolist()
    names = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
    return names.tolist() if names.ndim == 1 and all_strings(names) else None


def _numbers(X: Any, table: ItemTable | None) -> Array:
    try:
        if np.ma.isMaskedArray(X):
            return np.ma.filled(X.astype(np.float64), np.nan)
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        names = (
            "give names in one dimension, all of them strings"
            if table is not None
            else "names are known only where the model was fitted with an ItemTable as items="
        )
        raise ValueError(
            f"Items must be numbers of shape (n, n_features) ({error}); {names}."
        ) from None


def _rows_of_table(
    asked: ItemTable, n_features: int, feature_names: NDArray[Any] | None, table: ItemTable | None
) -> Array:
    with_features = table is None or table.has_features
    if asked.has_features != with_features:
        raise ValueError(
            "The posterior is of items "
            + ("with features, this ItemTable has none." if with_features else "without features.")
            + " Ask about a table of the same kind."
        )
    if table is not None and not with_features:
        return named_rows(asked.names, table)
    if asked.feature_names is not None:
        _check_names(list(asked.feature_names), feature_names)
    _check_width(asked.X, n_features)
    return np.asarray(asked.X, dtype=np.float64)


def named_rows(names: Any, table: ItemTable) -> Array:
    """Rows of items by name; where items have no features one never heard of gets a row of its own.

    Of such an item the prior is all that is known.

    Raises
    ------
    ValueError
        If items have features and a name is not in the table.
    """
    if table.has_features:
        return float_rows(table.X, table.index(names))
    return IdEncoder(table.names).codes(names)[:, None]


def _referred(X: Any, table: ItemTable) -> Array | None:
    """Rows that one-dimensional names or positions stand for; None if X is neither."""
    try:
        asked = np.asarray(X)
    except ValueError:  # ragged
        return None
    if asked.ndim != 1:
        return None
    if asked.size == 0:
        return float_rows(table.X, slice(0))
    if asked.dtype.kind in "iu":
        wrong = asked[(asked < 0) | (asked >= len(table))]
        if len(wrong):
            raise ValueError(
                f"Positions in the table of items must lie in [0, {len(table) - 1}], got "
                f"{wrong[0]}. Count from 0."
            )
        return float_rows(table.X, asked)
    return named_rows(asked, table) if all_strings(asked) else None


def _check_names(came: list[str], wanted: NDArray[Any] | None) -> None:
    if wanted is not None and came != list(wanted):
        raise ValueError(
            f"The items have features {came}, the posterior is of {list(wanted)}. Give the same "
            "columns in the same order."
        )


def _check_width(rows: Array, n_features: int) -> None:
    if rows.shape[1] != n_features:
        raise ValueError(
            f"The posterior is of items with n_features = {n_features}, got {rows.shape[1]}."
        )
