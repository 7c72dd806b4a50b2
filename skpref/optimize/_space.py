"""Spaces of items: bounds, named parameters, or a pool; the optimiser sees unit-cube rows."""

import hashlib
from itertools import pairwise

import numpy as np
from sklearn.utils.validation import check_array

from skpref.optimize._dimensions import Choice, Interval, make_dimension

# An item of a pool is recognised up to this distance, in shares of the pool's ranges.
_SAME = 1e-7


def make_space(space, candidates=None):
    """The space that the optimiser's arguments stand for.

    Parameters
    ----------
    space : array-like of shape (d, 2), dict or None
    candidates : array-like of shape (n, d) or None

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
            f"candidates= (a pool of shape (n, d)); {given} came."
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

    def __init__(self, dimensions, names):
        self.dimensions, self.names = dimensions, names
        ends = np.cumsum([0, *(each.width for each in dimensions)])
        self._slices = [slice(a, b) for a, b in pairwise(ends)]
        self.n_columns = int(ends[-1])
        self.n_dimensions = len(dimensions)
        self.free = np.concatenate([np.full(each.width, each.free) for each in dimensions])

    def place(self, quantiles):
        """Quantiles (n, n_dimensions) of the parameters to unit-cube rows (n, n_columns)."""
        columns = [each.place(q) for each, q in zip(self.dimensions, quantiles.T, strict=True)]
        return np.concatenate(columns, axis=1)

    def snap(self, rows):
        """The rows of the nearest items."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return np.concatenate([each.snap(rows[:, part]) for each, part in pairs], axis=1)

    def neighbours(self, row):
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
            return _vector(item, self.n_dimensions)
        else:
            if not isinstance(item, dict):
                raise ValueError(
                    f"Items of this space are dicts with the keys {self.names}, got "
                    f"{type(item).__name__}."
                )
            missing = [name for name in self.names if name not in item]
            extra = [name for name in item if name not in self.names]
            if missing or extra:
                raise ValueError(
                    f"An item must have the keys {self.names}; missing: {missing}, not known: "
                    f"{extra}."
                )
            return [item[name] for name in self.names]

    def to_row(self, item):
        """Unit-cube row of an item, which is checked."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return np.concatenate([each.encode(value) for each, value in pairs])

    def clean(self, item):
        """A checked item as it is kept: floats, ints, and the choices themselves."""
        return self._assemble(
            [each.clean(v) for each, v in zip(self.dimensions, self._values(item), strict=True)]
        )

    def _assemble(self, values):
        if self.names is None:
            return np.array(values, dtype=np.float64)
        return dict(zip(self.names, values, strict=True))

    def dump(self, item):
        """The item in JSON's terms; choices by their position."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return [each.values.index(v) if isinstance(each, Choice) else v for each, v in pairs]

    def load(self, values):
        """The item that `dump` wrote."""
        pairs = zip(self.dimensions, values, strict=True)
        return self._assemble([e.values[v] if isinstance(e, Choice) else v for e, v in pairs])

    def to_item(self, row):
        """Item of a row: an array (d,) or a dict."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return self._assemble([each.decode(row[part]) for each, part in pairs])

    def pack(self, duel):
        """Two items as one value: an array (2, d), or a tuple of two dicts."""
        return np.stack(duel) if self.names is None else tuple(dict(item) for item in duel)

    def pack_many(self, duels):
        """Several duels: an array (n, 2, d), or a list of pairs of dicts."""
        if self.names is not None:
            return [self.pack(duel) for duel in duels]
        return np.array([self.pack(duel) for duel in duels]).reshape(-1, 2, self.n_dimensions)

    def describe(self):
        """Plain values that tell this space from others."""
        names = self.names or [None] * self.n_dimensions
        return [[name, each.describe()] for name, each in zip(names, self.dimensions, strict=True)]


class Pool:
    """A table of candidates, each feature mapped to the unit interval."""

    names = None

    def __init__(self, candidates):
        table = check_array(candidates, dtype=np.float64, copy=True, input_name="candidates")
        table += 0.0  # -0.0 becomes 0.0
        _, first = np.unique(table, axis=0, return_index=True)
        if len(first) < 2:
            raise ValueError("candidates must hold at least two distinct rows.")
        self._items = table[np.sort(first)]
        low, high = self._items.min(axis=0), self._items.max(axis=0)
        self._low, self._range = low, np.where(high > low, high - low, 1.0)
        self.pool = (self._items - low) / self._range
        self._at = {row.tobytes(): i for i, row in enumerate(self._items)}
        self._row_at = {row.tobytes(): i for i, row in enumerate(self.pool)}
        self.n_columns = self.n_dimensions = table.shape[1]
        self.free = np.zeros(self.n_columns, dtype=bool)

    def snap(self, rows):
        """The rows of the nearest candidates."""
        return self.pool[[self._nearest(row)[0] for row in rows]]

    def _nearest(self, row):
        distance = np.abs(self.pool - row).max(axis=1)
        best = int(np.argmin(distance))
        return best, distance[best]

    def to_row(self, item):
        """Unit-cube row of a candidate; any other item is an error."""
        item = _vector(item, self.n_columns) + 0.0
        index = self._at.get(item.tobytes())
        if index is None:
            index, distance = self._nearest((item - self._low) / self._range)
            if distance > _SAME:
                raise ValueError(
                    f"The item {item} is not among the {len(self.pool)} candidates. Tell only "
                    "duels between rows of candidates."
                )
        return self.pool[index].copy()

    def to_item(self, row):
        """The candidate of a row."""
        index = self._row_at.get(np.ascontiguousarray(row).tobytes())
        return self._items[self._nearest(row)[0] if index is None else index].copy()

    def clean(self, item):
        """The candidate that an item stands for."""
        return self.to_item(self.to_row(item))

    def dump(self, item):
        """The item in JSON's terms."""
        return item.tolist()

    def load(self, values):
        """The item that `dump` wrote."""
        return np.array(values, dtype=np.float64)

    def pack(self, duel):
        """Two items as an array (2, d)."""
        return np.stack(duel)

    def pack_many(self, duels):
        """Several duels as an array (n, 2, d)."""
        return np.array([self.pack(duel) for duel in duels]).reshape(-1, 2, self.n_columns)

    def describe(self):
        """Plain values that tell this pool from others."""
        return ["pool", list(self._items.shape), _digest(self._items)]


def _digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _vector(item, n):
    try:
        values = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"An item must be {n} numbers, got {item!r}.") from None
    if values.shape != (n,):
        raise ValueError(f"An item must have shape ({n},), got {values.shape}.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"An item holds NaN or infinity: {values}.")
    return values
