"""Items that a posterior is asked about, in any of their forms, as rows of features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import all_strings, is_frame
from skpref._ids import IdEncoder
from skpref._items import ItemTable
from skpref._linalg import Array


def item_rows(
    X: Any,
    n_features: int,
    feature_names: NDArray[Any] | None = None,
    table: ItemTable | None = None,
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

    Raises
    ------
    ValueError
        If they have another shape or other columns, are not finite, or not in the table.
    """
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
    return asked.X


def named_rows(names: Any, table: ItemTable) -> Array:
    """Rows of items by name; where items have no features one never heard of gets a row of its own.

    Of such an item the prior is all that is known.

    Raises
    ------
    ValueError
        If items have features and a name is not in the table.
    """
    if table.has_features:
        return table.X[table.index(names)]
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
        return table.X[:0]
    if asked.dtype.kind in "iu":
        wrong = asked[(asked < 0) | (asked >= len(table))]
        if len(wrong):
            raise ValueError(
                f"Positions in the table of items must lie in [0, {len(table) - 1}], got "
                f"{wrong[0]}. Count from 0."
            )
        return table.X[asked]
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
