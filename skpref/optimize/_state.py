"""The state of a run: answers, pending questions, and the memory of the next question."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref.optimize._answers import TIE, best_position, names_outside_option
from skpref.optimize._model import Memory

# Id of the user asked; None without several users.
User = str | int | None


@dataclass(frozen=True, eq=False)
class Items:
    """Every item so far, in order of first appearance.

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
    def empty(cls, n_columns: int) -> Self:
        """Return no items, of a space of so many columns."""
        return cls((), np.zeros((0, n_columns)))

    def find_index(self, row: NDArray[np.float64], within: float) -> int | None:
        """Return the index of the item at a row or within a distance of it; None if it is new."""
        index = self._at.get(row.tobytes())
        if index is None and within > 0.0 and len(self.rows):
            distance = np.abs(self.rows - row).max(axis=1)
            nearest = int(np.argmin(distance))
            index = nearest if distance[nearest] <= within else None
        return index

    def with_item(self, item: Any, space: Any) -> tuple[Self, int]:
        """Return these items with one as people give it added, and its index; checked."""
        index = self.find_index(space.to_row(item), space.same)
        return (
            (self, index) if index is not None else self.with_clean_item(space.clean(item), space)
        )

    def with_clean_item(self, value: Any, space: Any) -> tuple[Self, int]:
        """Return these items with a clean one added, and its index."""
        row = space.to_row(value)
        index = self.find_index(row, space.same)
        if index is not None:
            return self, index
        index = len(self.values)
        rows = np.concatenate([self.rows, row[None]])
        rows.setflags(write=False)  # a kernel or an acquisition sees them
        return type(self)((*self.values, value), rows, {**self._at, row.tobytes(): index}), index

    def with_row(self, row: NDArray[np.float64], space: Any) -> tuple[Self, int]:
        """Return these items with that of a row added, and its index."""
        index = self._at.get(row.tobytes())
        return (self, index) if index is not None else self.with_item(space.to_item(row), space)


class GridForm(NamedTuple):
    """What the items of a question are to each other.

    Attributes
    ----------
    kind : {"line", "plane"}
    size : int
        Points of a line, or of each side of a plane.
    """

    kind: str
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        return (self.size,) if self.kind == "line" else (self.size, self.size)


class Layout(NamedTuple):
    """What a question looks like: the number of its items, and their form; a set has none.

    ``new_items`` are those that were in no question before; None: any number.
    """

    size: int = 2
    form: GridForm | None = None
    new_items: int | None = None


DUELS = (Layout(),)


class Pending(NamedTuple):
    """A question not yet answered: its number in the run, indices of its items, and whom it asks.

    A set has no form. ``fixed`` are the parameters that it holds, as `read_fixed_parameters` has
    them, and ``new_items`` the number that was asked for.
    """

    number: int
    items: tuple[int, ...]
    user: User = None
    form: GridForm | None = None
    fixed: tuple = ()
    new_items: int | None = None


class AnswerRecord(NamedTuple):
    """Indices of the items compared, the outcome as `AnswerArguments` has it, and whose answer."""

    items: tuple[int, ...]
    outcome: int | str | dict
    user: User = None


class ValueRecord(NamedTuple):
    """Index of an item that was measured, its value, and the standard deviation of the noise."""

    item: int
    value: float
    deviation: float


class Skipped(NamedTuple):
    """Indices of the items of a question turned down, the number of answers by then, by whom.

    ``unusable`` are those that could not be used; then the others could.
    """

    items: tuple[int, ...]
    n_told: int
    user: User = None
    unusable: tuple[int, ...] = ()


class UndoPoint(NamedTuple):
    """The state that `undo` goes back to, with the numbers of answers, skips and values."""

    n_told: int
    n_skipped: int
    n_values: int
    pending: tuple[Pending, ...]
    counter: int
    shown: int
    recalled: Memory
    base: Memory


@dataclass(frozen=True, eq=False)
class RunState:
    """A moment of an optimisation; every event makes a new one.

    Attributes
    ----------
    items : Items
    recalled : Memory
        What the last question left to the next.
    base : Memory
        What was recalled when something was last told: where the fit of what is told starts, so
        that it is a function of the events, whoever computes it, and when.
    answers : tuple of AnswerRecord
    pending : tuple of Pending
    skipped : tuple of Skipped
    values : tuple of ValueRecord
    counter : int
        Questions generated so far; with the seed it fixes every random number.
    shown : int
        Items in these questions, of lines and planes none: where the design is.
    past : tuple of UndoPoint
    seq : int
        Number of the last event.
    digest : bytes
        Its checksum.
    """

    items: Items
    recalled: Memory
    base: Memory
    answers: tuple[AnswerRecord, ...] = ()
    pending: tuple[Pending, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    values: tuple[ValueRecord, ...] = ()
    counter: int = 0
    shown: int = 0
    past: tuple[UndoPoint, ...] = ()
    seq: int = 0
    digest: bytes = b""

    def with_questions(
        self,
        questions: list[tuple[int, ...]],
        recalled: Memory,
        users: list[User] | None = None,
        form: GridForm | None = None,
        fixed: tuple = (),
        new_items: int | None = None,
    ) -> Self:
        """Return the state after new questions, all of one form, each to its user."""
        whom = [None] * len(questions) if users is None else users
        pairs = enumerate(zip(questions, whom, strict=True), start=self.counter + 1)
        more = (form, fixed, new_items)
        new = [Pending(number, items, user, *more) for number, (items, user) in pairs]
        return replace(
            self,
            pending=(*self.pending, *new),
            counter=self.counter + len(questions),
            shown=self.shown + (sum(map(len, questions)) if form is None else 0),
            recalled=recalled,
        )

    def with_answer(
        self,
        question: tuple[int, ...],
        compared: tuple[int, ...],
        outcome: int | str | dict,
        user: User = None,
    ) -> Self:
        """Return the state after an answer to a question, by an outcome of the items compared."""
        return replace(
            self,
            answers=(*self.answers, AnswerRecord(compared, outcome, user)),
            pending=self._pending_without(question, user),
            base=self.recalled,
            past=self._with_undo_point(),
        )

    def with_skip(
        self, items: tuple[int, ...], user: User = None, unusable: tuple[int, ...] = ()
    ) -> Self:
        """Return the state after a question was turned down, as some items are unusable or not."""
        skipped = (*self.skipped, Skipped(items, len(self.answers), user, unusable))
        pending = self._pending_without(items, user)
        return replace(self, skipped=skipped, pending=pending, past=self._with_undo_point())

    def with_value(self, record: ValueRecord) -> Self:
        """Return the state after an item was measured."""
        values, past = (*self.values, record), self._with_undo_point()
        return replace(self, values=values, base=self.recalled, past=past)

    def without_last_answer(self) -> Self:
        """Return the state before the last answer, refusal or value; items stay known."""
        *past, last = self.past
        return replace(
            self,
            answers=self.answers[: last.n_told],
            skipped=self.skipped[: last.n_skipped],
            values=self.values[: last.n_values],
            pending=last.pending,
            counter=last.counter,
            shown=last.shown,
            recalled=last.recalled,
            base=last.base,
            past=tuple(past),
        )

    def _with_undo_point(self):
        """Return the undo points with this moment added."""
        moment = UndoPoint(
            len(self.answers),
            len(self.skipped),
            len(self.values),
            self.pending,
            self.counter,
            self.shown,
            self.recalled,
            self.base,
        )
        return (*self.past, moment)

    @property
    def max_rows(self) -> int:
        """Return the largest number of rows that the answers have in the model."""
        sizes = [len(each.items) + names_outside_option(each.outcome) for each in self.answers]
        return sum(1 if size == 2 else 2 * size - 2 for size in sizes)

    def pending_of(self, items: tuple[int, ...], user: User = None) -> Pending | None:
        """Return the oldest pending question of some items, in whatever order."""
        alike = (q for q in self.pending if q.user == user and sorted(q.items) == sorted(items))
        return next(alike, None)

    def _pending_without(self, items, user):
        """Return the pending questions without the oldest one of some items to a user."""
        question = self.pending_of(items, user)
        return tuple(each for each in self.pending if each is not question)

    def form_of(self, items: tuple[int, ...], user: User = None) -> GridForm | None:
        """Return the form of a pending question, whose items are in its order, or None."""
        question = self.pending_of(items, user)
        return question.form if question and question.items == items else None

    @property
    def is_informed(self) -> bool:
        """Whether there is an answer or a value."""
        return bool(self.answers or self.values)

    @property
    def n_shown(self) -> int:
        """Number of items in the answers, and of values."""
        return sum(len(each.items) for each in self.answers) + len(self.values)

    @property
    def last_winner(self) -> int:
        """Index of the best item of the last answer; where several may be, the first shown.

        Of answers that none is good enough it is that of the last before them, if there is any.
        Without answers it is that of the largest value.
        """
        if not self.answers:
            return max(self.values, key=lambda each: each.value).item
        good = (each for each in reversed(self.answers) if each.outcome != {"none": True})
        items, outcome, _ = next(good, self.answers[-1])
        return items[best_position(outcome, len(items))]

    @property
    def unusable_items(self) -> set[int]:
        """Indices of the items that were told unusable."""
        return {index for each in self.skipped for index in each.unusable}

    @property
    def made_items(self) -> list[int]:
        """Indices of the items of all questions and values, but for those told unusable."""
        shown = {each.item for each in self.values}
        shown |= {k for answer in self.answers for k in answer.items}
        shown |= {k for skip in self.skipped for k in skip.items}
        shown |= {k for question in self.pending for k in question.items}
        return sorted(shown - self.unusable_items)

    def answered_rows(self, usable: bool = False) -> NDArray[np.float64]:
        """Return the rows of items that answers or values are of; of those told unusable none."""
        shown = {index for answer in self.answers for index in answer.items}
        shown |= {each.item for each in self.values}
        return self.items.rows[sorted(shown - self.unusable_items if usable else shown)]


class HistoryEntry(NamedTuple):
    """One entry of ``history_``; ``optimizer.tell(*entry)`` tells the same.

    Attributes
    ----------
    items : ndarray of shape (k, d), or tuple of k dicts or names
        As they were shown.
    outcome : int, str or dict
        Of a duel: 1 (the first won), 0 or "tie". Of more items: {"chosen": position}
        or a list of positions, {"worst": position}, both, or {"ranking": positions, best first}.
        {"none": True} or {"chosen": position, "none": False} where it was said.

    Examples
    --------
    >>> from skpref.optimize import PreferenceOptimizer
    >>> optimizer = PreferenceOptimizer([(0.0, 1.0)], random_state=0)
    >>> optimizer = optimizer.tell(([0.2], [0.7]), True)
    >>> items, outcome = optimizer.history_[0]
    >>> items.tolist(), outcome
    ([[0.2], [0.7]], 1)
    """

    items: Any
    outcome: int | str | dict

    @property
    def duel(self) -> Any:
        """The items."""
        return self.items


def are_apart(row: np.ndarray, rows: np.ndarray, space: Any) -> np.ndarray:
    """Return whether each of several rows is far enough from a row to be shown beside it, (n,)."""
    return np.abs(rows - row).max(axis=1) > space.apart


def make_exclusion_rule(state: RunState, space: Any, near: float, size: int = 2) -> Callable:
    """Return a function that says which rows may join a question.

    Pending questions are not asked again, nor near ones of those that were skipped or just tied.

    A duel that ended in a tie, once more, says next to nothing; but where one posterior thinks best
    of two items, it may think so after any number of ties.

    Parameters
    ----------
    state : RunState
    space : Space
    near : float
        As far from a question that was just skipped, or from the ties since the last answer that
        was none, must the next one be.
    size : int
        Number of items of the question.

    Returns
    -------
    callable
        ``allowed(members, rows)`` → booleans (n,): one row or several that are in it already, and
        rows of which one is to join them.
    """
    questions = [(each.items, 0.0) for each in state.pending]
    for items, n_told, *_ in state.skipped:
        questions.append((items, near if n_told == len(state.answers) else 0.0))
    if near > 0.0:
        tied = takewhile(lambda each: each.outcome == TIE, reversed(state.answers))
        questions += [(each.items, near) for each in tied if each.user is None]
    # All but one of a question, that one, and how far from it the last item must be.
    left_out = []
    for items, radius in questions:
        if len(items) == size:
            points = state.items.rows[list(items)]
            left_out += [(np.delete(points, k, axis=0), points[k], radius) for k in range(size)]

    def allowed(members, rows):
        members = np.atleast_2d(members)
        good = np.all([are_apart(member, rows, space) for member in members], axis=0)
        if len(members) < size - 1:
            return good
        for rest, last, radius in left_out:
            if _are_same_set(members, rest, max(radius, space.same)):
                good &= np.linalg.norm(rows - last, axis=1) > max(radius, space.apart)
        return good

    return allowed


def _are_same_set(rows, others, radius):
    """Return whether two sets of rows are the same, within a distance."""
    distance = np.linalg.norm(rows[:, None] - others, axis=2)
    return bool(np.all(distance.min(axis=0) <= radius) and np.all(distance.min(axis=1) <= radius))
