"""What a fitted estimator is asked about: items, pairs of them, or sets."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skpref._asked import named_rows
from skpref._containers import is_frame
from skpref._features import Schema, read_features, table_features
from skpref._items import float_rows
from skpref._parsing import Parsed
from skpref._sets import used_rows
from skpref._tables import check_known, check_positions
from skpref._validation import check_X
from skpref.duels import ItemTable


class Query(NamedTuple):
    """Items, pairs of items or sets to predict.

    Attributes
    ----------
    first : ndarray of shape (n, n_features)
        Items, those on the first side of duels, or all those of sets.
    second : ndarray of shape (n, n_features) or None
        The second side of duels.
    sets : ndarray of int of shape (n_sets, k) or None
        Rows of ``first``, -1 where a set has fewer items.
    """

    first: np.ndarray
    second: np.ndarray | None = None
    sets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.first if self.sets is None else self.sets)


def check_query(estimator: BaseEstimator, X: Any, table: ItemTable | None) -> Query:
    """Validate the argument of ``predict``: items or duels, by shape and dtype.

    Returns
    -------
    Query
    """
    schema = estimator._schema
    if isinstance(X, ItemTable):
        return Query(_table_items(X, table, schema))
    parsed = check_X(X, table)
    if table is not None and parsed.kind != "items":
        return _referred(parsed, table)
    rows, pairs = read_features(estimator, parsed, schema)[:2]
    check_known(rows, table)
    if pairs is None:
        return Query(rows)
    if pairs.shape[1] > 2:
        return Query(rows, sets=pairs)
    if not is_frame(parsed.rows):  # the sides of a duel array alternate
        return Query(np.ascontiguousarray(rows[::2]), np.ascontiguousarray(rows[1::2]))
    return Query(rows[pairs[:, 0]], rows[pairs[:, 1]])


def _referred(parsed: Parsed, table: ItemTable) -> Query:
    """Items that X names, or gives by position."""
    if parsed.kind == "positions":
        rows, places = table.X, check_positions(parsed.rows, len(table))
    else:
        rows, places = named_rows(parsed.rows, table), np.arange(len(parsed.rows))
    if parsed.pairs is None:
        return Query(float_rows(rows, places))
    if parsed.pairs.shape[1] > 2:
        used, sets = used_rows(np.where(parsed.pairs < 0, -1, places[parsed.pairs]))
        return Query(float_rows(rows, used), sets=sets)
    return Query(float_rows(rows, places[::2]), float_rows(rows, places[1::2]))


def _table_items(asked: ItemTable, table: ItemTable | None, schema: Schema) -> np.ndarray:
    """Items of a table that is asked about, which need not be the fitted one."""
    fitted_on_features = table is None or table.has_features
    if asked.has_features != fitted_on_features:
        raise ValueError(
            "The model was fitted on items "
            + ("with features, this ItemTable has none." if fitted_on_features else "without.")
            + " Pass a table of the same kind, or positions in the fitted one."
        )
    if table is None or asked.has_features:
        return table_features(asked, schema)
    return named_rows(asked.names, table)
