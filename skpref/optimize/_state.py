"""The state of an optimisation: what was told, what is pending, what the next question needs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skpref.optimize._model import Memory

# Told items this close to a known one (unit cube, largest coordinate) are that one.
_SAME = 1e-7
# Two items closer than this (likewise) are no duel.
_APART = 1e-6


class Items:
    """Every item met so far, as the user sees it and as a unit-cube row."""

    def __init__(self, space):
        self._space = space
        self.items = []
        self.rows = np.zeros((0, space.n_columns))
        self._at = {}

    def add(self, item) -> int:
        """Index of an item, which is checked; new ones are taken in."""
        row = self._space.to_row(item)
        found = self._at.get(row.tobytes())
        if found is None and len(self.rows):
            distance = np.abs(self.rows - row).max(axis=1)
            nearest = int(np.argmin(distance))
            found = nearest if distance[nearest] <= _SAME else None
        if found is None:
            found = len(self.items)
            self.items.append(self._space.clean(item))
            self.rows = np.concatenate([self.rows, row[None]])
            self._at[row.tobytes()] = found
        return found

    def add_row(self, row: np.ndarray) -> int:
        """The same for a row of the space."""
        found = self._at.get(row.tobytes())
        return self.add(self._space.to_item(row)) if found is None else found


@dataclass(frozen=True)
class State:
    """A moment of an optimisation; every event makes a new one.

    Attributes
    ----------
    memory : Memory
    told : tuple of (first, second, won)
        Indices of items, and whether the first won.
    pending : tuple of (first, second)
        Asked and not yet answered.
    skipped : tuple of (first, second, n_told)
        The last is the number of duels told by then.
    counter : int
        Duels generated so far; with the seed it fixes every random number.
    """

    memory: Memory
    told: tuple = ()
    pending: tuple = ()
    skipped: tuple = ()
    counter: int = 0

    def asked(self, duels: list, counter: int, memory: Memory) -> "State":
        """After new questions."""
        return replace(self, pending=(*self.pending, *duels), counter=counter, memory=memory)

    def answered(self, first: int, second: int, won: int) -> "State":
        """After an answer."""
        pending = without(self.pending, (first, second))
        return replace(self, told=(*self.told, (first, second, won)), pending=pending)

    def refused(self, first: int, second: int) -> "State":
        """After a duel was turned down."""
        skipped = (*self.skipped, (first, second, len(self.told)))
        return replace(self, skipped=skipped, pending=without(self.pending, (first, second)))

    def outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the winners and losers of the told duels."""
        told = np.array(self.told, dtype=np.intp).reshape(-1, 3)
        won = told[:, 2] == 1
        winner, loser = np.where(won, told[:, 0], told[:, 1]), np.where(won, told[:, 1], told[:, 0])
        return winner, loser


def apart(row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whether rows differ from a row by more than rounding, (n,)."""
    return np.abs(rows - row).max(axis=1) > _APART


def without(pending: tuple, duel: tuple) -> tuple:
    """Pending duels less one, whichever way round it is."""
    for k, each in enumerate(pending):
        if each in (duel, duel[::-1]):
            return pending[:k] + pending[k + 1 :]
    return pending


def dump_memory(memory: Memory) -> dict:
    """A memory in JSON's terms."""
    return {
        "theta": memory.theta.tolist(),
        "fitted_at": memory.fitted_at,
        "sites": {name: part.tolist() for name, part in memory.sites.items()},
        "margins": memory.margins.tolist(),
    }


def load_memory(record: dict) -> Memory:
    """The memory that `dump_memory` wrote."""
    return Memory(
        np.array(record["theta"], dtype=np.float64),
        record["fitted_at"],
        _load_sites(record["sites"]),
        np.array(record["margins"], dtype=np.float64),
    )


def _load_sites(sites):
    """State of the engine; early journals have EP's arrays without their names."""
    if not isinstance(sites, dict):
        sites = dict(zip(("precision", "shift"), sites, strict=False))
    return {name: np.array(part, dtype=np.float64) for name, part in sites.items()}


def exclusion(state: State, items: Items, near: float) -> Callable:
    """Which rows may meet a given row, in view of pending and skipped duels.

    Returns
    -------
    callable
        ``allowed(row, rows)`` → booleans (n,).
    """
    asked = [(a, b, 0.0) for a, b in state.pending]
    for a, b, n_told in state.skipped:
        asked.append((a, b, near if n_told == len(state.told) else 0.0))

    def allowed(row, rows):
        good = apart(row, rows)
        for a, b, radius in asked:
            for one, other in ((a, b), (b, a)):
                if np.linalg.norm(items.rows[one] - row) <= max(radius, _SAME):
                    distance = np.linalg.norm(rows - items.rows[other], axis=1)
                    good &= distance > max(radius, _APART)
        return good

    return allowed
