"""A space in which some values are held: what a question is asked at, such as a room."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from skpref.optimize._spaces import ParameterBox, Pool, Space


class Pinned:
    """A space of which some columns are held; all else is the space's own.

    Parameters
    ----------
    space : Space
    columns : ndarray of bool of shape (n_columns,)
        Those that are held.
    row : ndarray of shape (n_columns,)
        Their values; other columns are ignored.
    """

    def __init__(self, space: Space, columns: np.ndarray, row: np.ndarray):
        self._space, self._columns, self._row = space, columns, row
        self.free, self.ordered = space.free & ~columns, space.ordered & ~columns
        self.pool = None if space.pool is None else space.pool[self.holds(space.pool)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._space, name)

    def holds(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows have the values that are held, (n,)."""
        apart = np.abs(rows - self._row)[:, self._columns]
        return np.all(apart <= self._space.same, axis=1)

    def pin(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with the values that are held; those of a pool are of its items."""
        if self.pool is None:
            return np.where(self._columns, self._row, rows)
        distance = np.linalg.norm(
            (rows[:, None] - self.pool)[:, :, ~self._columns], axis=2
        )
        return self.pool[distance.argmin(axis=1)]

    def place(self, quantiles: np.ndarray) -> np.ndarray:
        """Return rows of quantiles (n, n_dimensions) of the parameters."""
        return self.pin(self._space.place(quantiles))

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of the nearest items that have the values held."""
        return self.pin(self._space.snap(rows))

    def neighbours(self, row: np.ndarray) -> np.ndarray:
        """Return rows of items beside this one where there is no gradient, (k, n_columns)."""
        rows = self._space.neighbours(row)
        return rows[self.holds(rows)]

    def initial_rows(self, seed: int, start: int, n: int) -> np.ndarray:
        """Return rows of the first questions, from a place of that design on."""
        rows = self._space.initial_rows(seed, start, n)
        if self.pool is None:
            return self.pin(rows)
        order = np.random.default_rng([seed, len(self.pool)]).permutation(len(self.pool))
        return self.pool[order[np.arange(start, start + n) % len(order)]]


def pin_values(space: Space, values: Mapping) -> Pinned:
    """Return a space in which parameters, or features of a pool, have given values.

    Parameters
    ----------
    space : Space
    values : mapping
        Values by the names of the parameters or features, or by their positions where they have
        none.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping, a name is none of the space, all parameters are held, a value is not
        allowed, or fewer than two candidates of a pool have them.
    """
    if not isinstance(values, Mapping):
        raise TypeError(
            f"got values to hold of type {type(values).__name__}; a dict is allowed, such as "
            '{"room": "bath"}.'
        )
    names: Any = space.names
    if isinstance(space, Pool):
        names = space.feature_names if space.has_features else []
    names = list(range(space.n_dimensions)) if names is None else list(names)
    unknown = [name for name in values if name not in names]
    if unknown or len(values) >= len(names):
        raise ValueError(
            f"got values to hold of {list(values)}; some of {names} are allowed, but not all. "
            "Leave at least one to choose."
        )
    if isinstance(space, ParameterBox):
        columns, row = space.columns_of({names.index(key): value for key, value in values.items()})
        return Pinned(space, columns, row)
    if not isinstance(space, Pool):
        raise TypeError(f"Values are held in a space or a pool, not in a {type(space).__name__}.")
    columns = np.array([name in values for name in names])
    numbers = np.array([values.get(name, 0.0) for name in names], dtype=np.float64)
    pinned = Pinned(space, columns, space.scaled(numbers))
    if len(pinned.pool) < 2:
        raise ValueError(
            f"got {dict(values)}, which {len(pinned.pool)} of {len(space.pool)} candidates have; "
            "two or more are needed. Give values that candidates have."
        )
    return pinned
