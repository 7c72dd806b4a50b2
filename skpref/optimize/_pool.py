"""A pool of candidates: rows of features, which may have names, or names alone."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from skpref._containers import is_frame
from skpref._items import ItemTable
from skpref.optimize._values import listed, vector

# An item of a pool is recognised up to this distance, in shares of the pool's ranges.
_SAME = 1e-7
_ENCODE = (
    "Encode texts, categories and dates first (sklearn.preprocessing.OneHotEncoder, "
    "sklearn.compose.make_column_transformer) and keep the names: candidates=ItemTable(encoded, "
    "names=...)."
)


class Pool:
    """Candidates, each feature mapped to the unit interval.

    Inside, an item is its row of features; where the candidates have names, people see those.
    Candidates of equal features are one item, shown by the first of their names. Items without
    features stand at whole numbers, far from each other.

    Parameters
    ----------
    candidates : array-like or DataFrame of shape (n, d), or ItemTable
        Names are the table's, or the index of a pandas frame unless it just counts the rows.
    """

    def __init__(self, candidates: Any):
        table, names, self.feature_names, self.has_features = _read(candidates)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise ValueError("candidates must hold at least two distinct rows.")
        kept = np.sort(first)
        self._items = table[kept]
        self.places = kept.tolist()  # in the candidates
        self.names = None if names is None else [names[i] for i in kept]
        owner = np.searchsorted(kept, first[inverse.reshape(-1)])
        self._named = {} if names is None else dict(zip(names, owner.tolist(), strict=True))
        self._low, self._range = self._scale()
        self.pool = (self._items - self._low) / self._range
        self._at = {row.tobytes(): i for i, row in enumerate(self._items)}
        self._row_at = {row.tobytes(): i for i, row in enumerate(self.pool)}
        self.n_columns = self.n_dimensions = table.shape[1]
        self.free = np.zeros(self.n_columns, dtype=bool)

    def _scale(self):
        low, high = self._items.min(axis=0), self._items.max(axis=0)
        if not self.has_features:
            return np.zeros(1), np.ones(1)
        with np.errstate(over="ignore"):
            extent = high - low
        if not np.all(np.isfinite(extent)):
            wide = int(np.argmin(np.isfinite(extent)))
            label = wide if self.feature_names is None else repr(self.feature_names[wide])
            raise ValueError(
                f"Feature {label} of the candidates reaches from {low[wide]} to {high[wide]}, a "
                "range that double precision does not hold. Divide it by a constant, such as "
                f"{np.abs(self._items[:, wide]).max():.0e}; the questions do not depend on the "
                "units."
            )
        return low, np.where(high > low, extent, 1.0)

    def table(self) -> ItemTable | None:
        """Unit-cube rows under the candidates' names, if these are texts."""
        if self.names is None or not all(isinstance(name, str) for name in self.names):
            return None
        return ItemTable(self.pool, names=self.names)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """The rows of the nearest candidates."""
        return self.pool[[self._nearest(row)[0] for row in rows]]

    def _nearest(self, row):
        distance = np.abs(self.pool - row).max(axis=1)
        best = int(np.argmin(distance))
        return best, distance[best]

    def to_row(self, item: Any) -> np.ndarray:
        """Unit-cube row of a candidate, given by its name or its features; others are an error."""
        item = self._in_order(item)
        if np.ndim(item) == 0 and (self.names is not None or isinstance(item, str)):
            return self.pool[self._index_of(item)].copy()
        item = vector(item, self.n_columns) + 0.0
        index = self._at.get(item.tobytes())
        if index is None:
            index, distance = self._nearest((item - self._low) / self._range)
            if distance > _SAME:
                raise ValueError(
                    f"The item {item} is not among the {len(self.pool)} candidates. Tell only "
                    "duels between rows of candidates."
                )
        return self.pool[index].copy()

    def _index_of(self, name):
        if self.names is None:
            raise ValueError(
                f"The candidates have no names, {name!r} came. Give rows of features, or "
                "candidates= as a DataFrame with names in its index or as an ItemTable with names."
            )
        try:
            return self._named[name]
        except (KeyError, TypeError):
            raise ValueError(
                f"{name!r} is not the name of one of the {len(self._named)} candidates; they are "
                f"named {self.names[0]!r}, {self.names[1]!r} and so on."
            ) from None

    def _in_order(self, item):
        """Features that came with labels, a dict or a row of a frame, in the order of the pool."""
        labelled = isinstance(item, Mapping) or (hasattr(item, "index") and hasattr(item, "items"))
        if self.feature_names is None or not labelled:
            return item
        missing = [name for name in self.feature_names if name not in item]
        extra = [name for name, _ in item.items() if name not in self.feature_names]
        if missing or extra:
            raise ValueError(
                f"An item must have the features {self.feature_names}; missing: {missing}, not "
                f"known: {extra}."
            )
        return [item[name] for name in self.feature_names]

    def to_item(self, row: np.ndarray) -> np.ndarray:
        """The candidate of a row."""
        index = self._row_at.get(np.ascontiguousarray(row).tobytes())
        return self._items[self._nearest(row)[0] if index is None else index].copy()

    def clean(self, item: Any) -> np.ndarray:
        """The features of the candidate that an item stands for."""
        return self.to_item(self.to_row(item))

    def dump(self, item: np.ndarray) -> list:
        """The item in JSON's terms."""
        return item.tolist()

    def load(self, values: list) -> np.ndarray:
        """The item that `dump` wrote."""
        return np.array(values, dtype=np.float64)

    def present(self, item: np.ndarray) -> Any:
        """The item as people see it: its name, or a copy of its features."""
        return item.copy() if self.names is None else self.names[self._at[item.tobytes()]]

    def pack(self, items: list) -> Any:
        """Items of a question as one value: an array (k, d), or a tuple of names."""
        return np.stack(items) if self.names is None else tuple(items)

    def pack_many(self, questions: list) -> Any:
        """Several of them: an array (n, k, d), or a list of tuples, or of arrays of all sizes."""
        packed, sizes = [self.pack(items) for items in questions], {len(q) for q in questions}
        if self.names is not None or len(sizes) > 1:
            return packed
        return np.array(packed).reshape(len(packed), *(sizes or {2}), self.n_columns)

    def listed(self, items: Any) -> Any:
        """Items of a frame one by one; others as they are."""
        return listed(items, self.feature_names)

    def describe(self) -> list:
        """Plain values that tell this pool from others; names stand for features if there are."""
        if not self.has_features:
            names = "\n".join(map(repr, self._named))
            return ["named pool", len(self._named), _digest(names.encode())]
        items = np.ascontiguousarray(self._items)
        return ["pool", list(items.shape), _digest(items.tobytes())]


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def _read(candidates):
    """Features, names (or None), names of the features (or None), and whether there are any."""
    names = columns = None
    table = candidates
    if isinstance(candidates, ItemTable):
        names, columns = candidates.names, candidates.feature_names
        if not candidates.has_features:
            return np.arange(len(names), dtype=np.float64)[:, None], names.tolist(), None, False
        table = candidates.X
    if is_frame(table):
        _check_numeric(table)
        columns = list(table.columns) if columns is None else columns
        names = _names_of(table) if names is None else names
    try:
        table = check_array(table, dtype=np.float64, copy=True, input_name="candidates")
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"candidates must be numeric: {error}. {_ENCODE}") from None
    if names is not None:
        names = ItemTable(table, names=names).names.tolist()
    table += 0.0  # -0.0 becomes 0.0
    return table, names, None if columns is None else list(columns), True


def _check_numeric(frame):
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    odd = [f"{name!r} ({kind})" for name, kind in kinds.items() if not _is_numeric(kind)]
    if odd:
        raise ValueError(
            f"candidates must be numeric; these columns are not: {', '.join(odd)}. {_ENCODE} "
            "A column of names belongs in the index: frame.set_index(column). One that holds "
            "numbers: frame.astype(float)."
        )


def _is_numeric(dtype):
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars has data types of its own
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return kind in "biuf"


def _names_of(frame):
    """The index of a pandas frame, or None where it just counts the rows."""
    index = getattr(frame, "index", None)
    if index is None or (getattr(index, "start", None) == 0 and getattr(index, "step", 0) == 1):
        return None
    return index
