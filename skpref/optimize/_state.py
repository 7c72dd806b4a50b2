"""The state of an optimisation: what was told, what is pending, what the next question needs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref.optimize._model import Memory

# Told items this close to a known one (unit cube, largest coordinate) are that one.
_SAME = 1e-7
# Two items closer than this (likewise) are no duel.
_APART = 1e-6
# How many answers and refusals can be taken back to the very last bit. From before that the
# hyperparameters are kept, and not where solver and sampler were: all of it would grow as n².
EXACT_UNDOS = 10


@dataclass(frozen=True, eq=False)
class Items:
    """Every item met so far, in the order in which it was met.

    Attributes
    ----------
    values : tuple
        As the space keeps them.
    rows : ndarray of shape (n_items, n_columns)
        The same as unit-cube rows.
    """

    values: tuple
    rows: NDArray[np.float64]
    _at: dict = field(default_factory=dict, repr=False)

    @classmethod
    def none(cls, n_columns: int) -> Self:
        """No items."""
        return cls((), np.zeros((0, n_columns)))

    def find(self, row: NDArray[np.float64]) -> int | None:
        """Index of the item of a row; None if it is new."""
        found = self._at.get(row.tobytes())
        if found is None and len(self.rows):
            distance = np.abs(self.rows - row).max(axis=1)
            nearest = int(np.argmin(distance))
            found = nearest if distance[nearest] <= _SAME else None
        return found

    def with_item(self, item: Any, space: Any) -> tuple[Self, int]:
        """These and an item, which is checked, and its index."""
        found = self.find(space.to_row(item))
        return (self, found) if found is not None else self.with_kept(space.clean(item), space)

    def with_kept(self, value: Any, space: Any) -> tuple[Self, int]:
        """The same for an item as the space keeps it."""
        row = space.to_row(value)
        found = self.find(row)
        if found is not None:
            return self, found
        found = len(self.values)
        rows = np.concatenate([self.rows, row[None]])
        return type(self)((*self.values, value), rows, {**self._at, row.tobytes(): found}), found

    def with_row(self, row: NDArray[np.float64], space: Any) -> tuple[Self, int]:
        """The same for a row of the space."""
        found = self._at.get(row.tobytes())
        return (self, found) if found is not None else self.with_item(space.to_item(row), space)


@dataclass(frozen=True, eq=False)
class Recalled:
    """A memory, and the event that left its arrays.

    Attributes
    ----------
    memory : Memory
    event : int
        0: its arrays are empty.
    missing : bool
        Its arrays are kept no more.
    """

    memory: Memory
    event: int = 0
    missing: bool = False

    def faded(self) -> Self:
        """Without the arrays."""
        if not self.event:
            return self
        return type(self)(replace(self.memory, sites={}, margins=np.zeros(0)))


class Pending(NamedTuple):
    """A duel asked and not yet answered: indices of items, and the process that asked."""

    first: int
    second: int
    owner: str


class Moment(NamedTuple):
    """What `undo` goes back to: how much was told and skipped, and the rest of the state."""

    n_told: int
    n_skipped: int
    pending: tuple[Pending, ...]
    counter: int
    recalled: Recalled
    base: Recalled


@dataclass(frozen=True, eq=False)
class State:
    """A moment of an optimisation; every event makes a new one.

    Attributes
    ----------
    items : Items
    recalled : Recalled
        What the last question left to the next.
    base : Recalled
        What was recalled when something was last told: where the fit of what is told starts, so
        that it is a function of the events, whoever computes it, and when.
    told : tuple of (first, second, won)
        Indices of items, and whether the first won.
    pending : tuple of Pending
    skipped : tuple of (first, second, n_told)
        The last is the number of duels told by then.
    counter : int
        Duels generated so far; with the seed it fixes every random number.
    past : tuple of Moment
    seq : int
        Number of the last event.
    digest : bytes
        Of all events.
    """

    items: Items
    recalled: Recalled
    base: Recalled
    told: tuple = ()
    pending: tuple[Pending, ...] = ()
    skipped: tuple = ()
    counter: int = 0
    past: tuple[Moment, ...] = ()
    seq: int = 0
    digest: bytes = b""

    def asked(self, duels: list[tuple[int, int]], owner: str, recalled: Recalled) -> Self:
        """After new questions."""
        new = [Pending(*duel, owner) for duel in duels]
        counter = self.counter + len(new)
        return replace(self, pending=(*self.pending, *new), counter=counter, recalled=recalled)

    def handed_over(self, duels: list[tuple[int, int]], owner: str) -> Self:
        """After pending duels went to another process, in whose hands they keep their order."""
        pending = [
            each._replace(owner=owner) if each[:2] in duels else each for each in self.pending
        ]
        return replace(self, pending=tuple(pending))

    def answered(self, duel: tuple, won: int) -> Self:
        """After an answer."""
        return replace(
            self,
            told=(*self.told, (*duel, won)),
            pending=without(self.pending, duel),
            base=self.recalled,
            past=self._remembered(),
        )

    def refused(self, duel: tuple) -> Self:
        """After a duel was turned down."""
        skipped = (*self.skipped, (*duel, len(self.told)))
        pending = without(self.pending, duel)
        return replace(self, skipped=skipped, pending=pending, past=self._remembered())

    def taken_back(self) -> Self:
        """Before the last answer or refusal; items stay known."""
        *past, last = self.past
        return replace(
            self,
            told=self.told[: last.n_told],
            skipped=self.skipped[: last.n_skipped],
            pending=last.pending,
            counter=last.counter,
            recalled=last.recalled,
            base=last.base,
            past=tuple(past),
        )

    def _remembered(self):
        now = Moment(
            len(self.told),
            len(self.skipped),
            self.pending,
            self.counter,
            self.recalled,
            self.base,
        )
        if len(self.past) < EXACT_UNDOS:
            return (*self.past, now)
        old = self.past[-EXACT_UNDOS]
        old = old._replace(recalled=old.recalled.faded(), base=old.base.faded())
        return (*self.past[:-EXACT_UNDOS], old, *self.past[1 - EXACT_UNDOS :], now)

    def recalls(self) -> dict[int, Recalled]:
        """The memories whose arrays may be needed, by the event that left them."""
        recent = self.past[-EXACT_UNDOS:]
        every = [self.recalled, self.base, *(part for each in recent for part in each[-2:])]
        return {each.event: each for each in every if each.event}

    def is_pending(self, duel: tuple) -> bool:
        """Whether a duel was asked and not answered, whichever way round."""
        return len(without(self.pending, duel)) < len(self.pending)

    def outcomes(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Indices of the winners and losers of the told duels."""
        told = np.array(self.told, dtype=np.intp).reshape(-1, 3)
        won = told[:, 2] == 1
        winner, loser = np.where(won, told[:, 0], told[:, 1]), np.where(won, told[:, 1], told[:, 0])
        return winner, loser

    def seen(self) -> NDArray[np.float64]:
        """Rows of the items of the told duels."""
        told = np.array([duel[:2] for duel in self.told], dtype=np.intp)
        return self.items.rows[np.unique(told)]


class Told(NamedTuple):
    """One entry of ``history_``.

    Attributes
    ----------
    duel : ndarray of shape (2, d), or tuple of two dicts or two names
    outcome : int
        1 if the first won, else 0.
    """

    duel: Any
    outcome: int


def apart(row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whether rows differ from a row by more than rounding, (n,)."""
    return np.abs(rows - row).max(axis=1) > _APART


def without(pending: tuple[Pending, ...], duel: tuple) -> tuple[Pending, ...]:
    """Pending duels less one, whichever way round it is."""
    for k, each in enumerate(pending):
        if each[:2] in (duel, duel[::-1]):
            return pending[:k] + pending[k + 1 :]
    return pending


def exclusion(state: State, near: float) -> Callable:
    """Which rows may meet a given row, in view of pending and skipped duels.

    Returns
    -------
    callable
        ``allowed(row, rows)`` → booleans (n,).
    """
    items = state.items
    asked = [(a, b, 0.0) for a, b, _ in state.pending]
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
