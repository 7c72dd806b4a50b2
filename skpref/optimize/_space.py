"""Spaces of items: bounds or named parameters, or a pool; the optimiser sees unit-cube rows."""

from itertools import pairwise
from typing import Any

import numpy as np

from skpref.optimize._dimensions import Choice, Interval, make_dimension
from skpref.optimize._pool import Pool
from skpref.optimize._values import copied, listed, vector


def make_space(space: Any, candidates: Any = None) -> "Box | Pool":
    """The space that the optimiser's arguments stand for.

    Parameters
    ----------
    space : array-like of shape (d, 2), dict or None
    candidates : array-like or DataFrame of shape (n, d), ItemTable or None

    Returns
    -------
    Box or Pool

    Raises
    ------
    ValueError
        If not exactly one of the two is given, or it cannot be read.
    """
    if (space is None) == (candidates is None):
        given = "neither" if space is None else "both"
        raise ValueError(
            "Give either space= (bounds of shape (d, 2), or a dict of named parameters) or "
            f"candidates= (a pool: a table of shape (n, d) or an ItemTable); {given} came."
        )
    if candidates is not None:
        return Pool(candidates)
    if isinstance(space, Box | Pool):
        return space
    if isinstance(space, dict):
        if not space:
            raise ValueError("The space is an empty dict; name at least one parameter.")
        return Box([make_dimension(str(name), spec) for name, spec in space.items()], list(space))
    try:
        bounds = np.asarray(space, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Bounds could not be read as numbers of shape (d, 2): {error}.") from None
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
        raise ValueError(
            "Bounds must have shape (d, 2), a row (low, high) for each feature, got "
            f"{bounds.shape}."
        )
    return Box([Interval(f"feature {i}", *row) for i, row in enumerate(bounds)], None)


class Box:
    """Dimensions side by side; items are arrays (``names`` is None) or dicts."""

    pool = None
    has_features = True

    def __init__(self, dimensions: list, names: list | None):
        self.dimensions, self.names = dimensions, names
        ends = np.cumsum([0, *(each.width for each in dimensions)])
        self._slices = [slice(a, b) for a, b in pairwise(ends)]
        self.n_columns = int(ends[-1])
        self.n_dimensions = len(dimensions)
        self.free = np.concatenate([np.full(each.width, each.free) for each in dimensions])

    def place(self, quantiles: np.ndarray) -> np.ndarray:
        """Quantiles (n, n_dimensions) of the parameters to unit-cube rows (n, n_columns)."""
        columns = [each.place(q) for each, q in zip(self.dimensions, quantiles.T, strict=True)]
        return np.concatenate(columns, axis=1)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """The rows of the nearest items."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return np.concatenate([each.snap(rows[:, part]) for each, part in pairs], axis=1)

    def neighbours(self, row: np.ndarray) -> np.ndarray:
        """Rows that differ from this one in a single discrete parameter, (k, n_columns)."""
        found = []
        for each, part in zip(self.dimensions, self._slices, strict=True):
            if not each.free:
                near = each.near(row[part])
                moved = np.repeat(row[None], len(near), axis=0)
                moved[:, part] = near
                found.append(moved)
        return np.concatenate(found) if found else np.zeros((0, self.n_columns))

    def _values(self, item):
        if self.names is None:
            return vector(item, self.n_dimensions)
        if not isinstance(item, dict):
            raise ValueError(
                f"Items of this space are dicts with the keys {self.names}, got "
                f"{type(item).__name__}."
            )
        missing = [name for name in self.names if name not in item]
        extra = [name for name in item if name not in self.names]
        if missing or extra:
            raise ValueError(
                f"An item must have the keys {self.names}; missing: {missing}, not known: {extra}."
            )
        return [item[name] for name in self.names]

    def to_row(self, item: Any) -> np.ndarray:
        """Unit-cube row of an item, which is checked."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return np.concatenate([each.encode(value) for each, value in pairs])

    def clean(self, item: Any) -> Any:
        """A checked item as it is kept: floats, ints, and the choices themselves."""
        return self._assemble(
            [each.clean(v) for each, v in zip(self.dimensions, self._values(item), strict=True)]
        )

    def _assemble(self, values):
        if self.names is None:
            return np.array(values, dtype=np.float64)
        return dict(zip(self.names, values, strict=True))

    def dump(self, item: Any) -> list:
        """The item in JSON's terms; choices by their position."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return [each.values.index(v) if isinstance(each, Choice) else v for each, v in pairs]

    def load(self, values: list) -> Any:
        """The item that `dump` wrote."""
        pairs = zip(self.dimensions, values, strict=True)
        return self._assemble([e.values[v] if isinstance(e, Choice) else v for e, v in pairs])

    def to_item(self, row: np.ndarray) -> Any:
        """Item of a row: an array (d,) or a dict."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return self._assemble([each.decode(row[part]) for each, part in pairs])

    def present(self, item: Any) -> Any:
        """The item as people see it, a copy."""
        if self.names is None:
            return item.copy()
        return {name: copied(value) for name, value in item.items()}

    def pack(self, items: list) -> Any:
        """Items of a question as one value: an array (k, d), or a tuple of dicts."""
        return np.stack(items) if self.names is None else tuple(items)

    def pack_many(self, questions: list) -> Any:
        """Several of them: an array (n, k, d), or a list of tuples, or of arrays of all sizes."""
        packed, sizes = [self.pack(items) for items in questions], {len(q) for q in questions}
        if self.names is not None or len(sizes) > 1:
            return packed
        return np.array(packed).reshape(len(packed), *(sizes or {2}), self.n_dimensions)

    def listed(self, items: Any) -> Any:
        """Items of a frame one by one; others as they are."""
        return listed(items, self.names)

    def describe(self) -> list:
        """Plain values that tell this space from others."""
        names = self.names or [None] * self.n_dimensions
        return [[name, each.describe()] for name, each in zip(names, self.dimensions, strict=True)]
