"""The table of items that X refers to, by position or by name: the constructor's ``items=``."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skpref._containers import all_strings
from skpref._items import ItemTable
from skpref._parsing import names_in, table_of_names
from skpref._warnings import warn


def table_for(
    estimator: BaseEstimator, X: Any, y: Any, before: ItemTable | None = None
) -> ItemTable | None:
    """``items=``, or else a table of the names in X, after those of the answers before."""
    if estimator.items is not None or estimator.id_column is not None:
        return check_items(estimator.items)
    names = names_in(X)
    if names is None:
        return before
    columns = [{name for name in column if isinstance(name, str)} for column in names.T.tolist()]
    distinct = set().union(*columns)
    if y is not None and len(distinct) == sum(map(len, columns)) < names.size:
        warn(
            f"X of shape {names.shape} reads as names of items, but no name stands in two of its "
            "columns. If the columns are features of rated items, encode them, "
            "Itemwise(OneHotEncoder()), before the model."
        )
    if before is not None and before.names is not None:
        names = np.array([*before.names, *names.ravel()], dtype=object)
    return table_of_names(names)


def check_items(items: Any) -> ItemTable | None:
    """The constructor's ``items=`` as an ItemTable of numbers, or None."""
    if items is None:
        return None
    if not isinstance(items, ItemTable):
        try:
            named = np.ndim(items) == 1 and all_strings(np.asarray(items))
            items = ItemTable.from_names(items) if named else ItemTable(items)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                "items= must be an ItemTable or finite numbers of shape (n_items, n_features): "
                f"{str(error).rstrip('.')}. For items without features pass "
                "ItemTable.from_names(names)."
            ) from error
    if items.X is None:
        raise ValueError(
            "items= must hold finite numbers, but columns of its frame hold texts, categories or "
            f"gaps: {list(items.frame.columns)}. Encode them first, ItemTable(transformer"
            ".fit_transform(frame), names=...), or leave items= out and fit from_pairs(items, "
            "pairs) through Itemwise(transformer)."
        )
    return items


def check_positions(X: np.ndarray, n_items: int) -> np.ndarray:
    """Positions in a table of so many items."""
    if len(X) == 0:
        raise ValueError(
            f"X holds no position (0 samples, shape={X.shape}) while a minimum of 1 is required."
        )
    if X.min() < 0 or X.max() >= n_items:
        wrong = X.min() if X.min() < 0 else X.max()
        raise ValueError(
            f"Positions in the table of items must lie in [0, {n_items - 1}], got {wrong}. "
            "Count from 0; the table is the constructor's items=."
        )
    return X.astype(np.intp)


def check_known(X: np.ndarray, table: ItemTable | None) -> None:
    """Whether rows of items without features are positions in their table."""
    if table is not None and not table.has_features and not np.isin(X, table.X).all():
        raise ValueError(
            "Items without features are known by their position alone: rows must be integers "
            f"in [0, {len(table) - 1}]. Pass positions as integers, or names as strings."
        )
