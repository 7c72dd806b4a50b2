"""Events: what changes a run, as it is written down, and what it makes of a state.

A run that is asked and told makes its states by `applied`, from the very text that is on disk;
so does one that is taken up again, and one that sees the answers of another process.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skpref.optimize._answers import check_kept
from skpref.optimize._model import Memory, Models
from skpref.optimize._state import Form, Items, Recalled, State, User


class Event(NamedTuple):
    """One event.

    Attributes
    ----------
    seq : int
        Its number.
    kind : {"begin", "ask", "tell", "skip", "undo"}
        "begin" is the first, number 0: the configuration and the seed.
    judge : str
        Who asked or answered; "" without a name.
    time : float
        Seconds since 1970.
    payload : str
        The rest, as JSON.
    digest : bytes
        Checksum of all of these.
    arrays : bytes or None
        Where solver and sampler were, if that is kept.
    """

    seq: int
    kind: str
    judge: str
    time: float
    payload: str
    digest: bytes
    arrays: bytes | None = None


class Draft(NamedTuple):
    """An event without a number, a judge and a time."""

    kind: str
    payload: dict
    arrays: bytes | None = None

    def event(self, seq: int, judge: str, time: float) -> Event:
        """Return the event that this is under a number."""
        text = json.dumps(self.payload, separators=(",", ":"), allow_nan=False)
        digest = checksum(seq, self.kind, judge, time, text)
        return Event(seq, self.kind, judge, time, text, digest, self.arrays)


def digest_of(content: bytes) -> bytes:
    """A checksum that nothing but the same content has."""
    return hashlib.blake2b(content, digest_size=16).digest()


def checksum(*values: int | float | str) -> bytes:
    """Return the checksum of a row of a table."""
    return digest_of(json.dumps(values).encode())


# -- drafts ----------------------------------------------------------------------------------


def question_of(payload: dict) -> tuple:
    """The items that an answer or a refusal is about; none of an undo."""
    return tuple(payload.get("duel") or payload.get("set") or ())


def shown_of(payload: dict) -> tuple:
    """The items of the question that was answered: all but a place between the points of a line."""
    return tuple(payload.get("shown") or question_of(payload))


def ask_draft(
    before: State,
    after: State,
    memory: Memory | None,
    space: Any,
    models: Models,
) -> Draft:
    """Return the draft of new questions, and of a new memory."""
    new = after.pending[len(after.pending) - (after.counter - before.counter) :]
    sets = any(len(each.items) > 2 for each in new)
    payload: dict = {
        "sets" if sets else "duels": [list(each.items) for each in new],
        **_added(before, after.items, space),
    }
    if new and new[0].form is not None:
        payload["form"] = list(new[0].form)
    if any(each.user is not None for each in new):
        payload["users"] = [each.user for each in new]
    arrays = None
    if memory is not None:
        arrays = dump_arrays(memory, before, models)
        payload["theta"], payload["fitted_at"] = memory.theta.tolist(), memory.fitted_at
        payload["arrays"] = None if arrays is None else digest_of(arrays).hex()
    return Draft("ask", payload, arrays)


def answer_draft(
    before: State,
    items: Items,
    asked: tuple,
    outcome: int | str | dict | None,
    space: Any,
    user: User = None,
    shown: tuple | None = None,
) -> Draft:
    """Of an answer; of a refusal if the outcome is None.

    ``shown`` are the items of the question, where other ones are compared.
    """
    payload: dict = {"duel" if len(asked) == 2 else "set": list(asked)}
    payload |= {} if shown in (None, asked) else {"shown": list(shown)}
    payload |= {} if outcome is None else {"outcome": outcome}
    payload |= {} if user is None else {"user": user}
    kind = "skip" if outcome is None else "tell"
    return Draft(kind, payload | _added(before, items, space))


def _added(before, items, space):
    new = items.values[len(before.items.values) :]
    if not new:
        return {}
    found = {"items": [space.dump(value) for value in new]}
    if space.pool is not None and space.names is not None:
        found["names"] = [str(space.present(value)) for value in new]
    return found


def dump_arrays(memory: Memory, state: State, models: Models) -> bytes | None:
    """The arrays of a memory; None if there are none, or one cannot be gone on from."""
    parts = {f"sites.{name}": part for name, part in sorted(memory.sites.items())}
    parts["margins"] = memory.margins
    parts = {name: np.asarray(part, dtype="<f8") for name, part in parts.items() if np.size(part)}
    if not parts or any(_fault(name, part, state, models) for name, part in parts.items()):
        return None
    head = json.dumps({name: part.shape for name, part in parts.items()}).encode()
    return head + b"\n" + b"".join(part.tobytes() for part in parts.values())


def _fault(name, part, state, models):
    """What is wrong with an array, or None."""
    if part.ndim == 0 or not 0 < part.shape[-1] <= state.most_rows:
        return f"{name} has the shape {part.shape} at {len(state.told)} answers"
    if not np.all(np.isfinite(part)):
        return f"{name} is not finite"
    positive = name == "sites.precision" or (name == "margins" and models.one_sided(state.told))
    if positive and np.any(part < 0.0):
        return f"{name} is negative"
    if name == "margins" and part.ndim != 1:
        return "margins are of one draw"
    return None


# -- states ----------------------------------------------------------------------------------


# What reading a record that was not written by this package may raise.
UNFIT = (KeyError, TypeError, ValueError, IndexError, RecursionError, OverflowError)


class EventReader:
    """Makes states of events, each of which is checked: ValueError if it does not fit the state."""

    def __init__(self, space: Any, models: Models):
        self._space, self.models = space, models

    def applied(self, state: State, event: Event) -> State:
        """The state after an event."""
        try:
            found = json.loads(event.payload)
            _check(type(found) is dict, "it is not an object")
            after = KINDS[event.kind](self, self._with_items(state, found), found, event)
        except UNFIT as error:
            raise ValueError(
                f"event {event.seq} ({event.kind}) does not fit the run before it "
                f"({type(error).__name__}: {error})"
            ) from error
        return replace(after, seq=event.seq, digest=event.digest)

    def folded(self, state: State, events: Iterable[Event]) -> State:
        """The state after several events, with all that is needed to go on."""
        for event in events:
            state = self.applied(state, event)
        for number, each in state.recalls().items():
            _check(not each.missing, f"the memory of event {number} is missing")
        return state

    def _with_items(self, state, found):
        items, new = state.items, _listed(found.get("items", []))
        own = self._space.names is not None and self._space.pool is not None
        names = _listed(found["names"]) if own and "names" in found else [None] * len(new)
        for dumped, name in zip(new, names, strict=True):
            known = len(items.values)
            value = self._space.load(_listed(dumped))
            items, index = items.with_kept(value, self._space)
            _check(index == known, f"item {dumped} is not new")
            here = None if name is None else str(self._space.present(value))
            _check(here == name, f"its item {name!r} has the name {here!r} among the candidates")
        return replace(state, items=items)

    def _question(self, state, found):
        items = tuple(_listed(found))
        n = len(state.items.values)
        good = len(items) >= 2 and all(type(each) is int and 0 <= each < n for each in items)
        good = good and len(set(items)) == len(items)
        _check(good, f"{found} is no duel or set of the {n} items so far")
        return items

    def _ask(self, state, found, event):
        new = found["sets"] if "sets" in found else found["duels"]
        new = [self._question(state, each) for each in _listed(new)]
        recalled = self._recalled(state, found, event) if "theta" in found else state.recalled
        users = [self._user(each) for each in _listed(found.get("users", [None] * len(new)))]
        _check(len(users) == len(new), f"{len(users)} users of {len(new)} questions")
        return state.asked(new, recalled, users, self._form(found.get("form")))

    def _tell(self, state, found, event):
        items = self._question(state, list(question_of(found)))
        check_kept(found["outcome"], len(items))
        shown = self._question(state, list(shown_of(found)))
        _check(set(shown) <= set(items), f"{shown} were shown, and {items} compared")
        return state.answered(items, found["outcome"], self._user(found.get("user")), shown)

    def _skip(self, state, found, event):
        items = self._question(state, list(question_of(found)))
        return state.refused(items, self._user(found.get("user")))

    def _form(self, value):
        if value is None:
            return None
        good = len(_listed(value)) == 2 and value[0] in ("line", "plane")
        good = good and type(value[1]) is int and value[1] >= 2
        _check(good, f"{value!r} is no form of a question")
        return Form(*value)

    def _user(self, value):
        several = getattr(self.models, "several", False)
        good = type(value) in (str, int) if several else value is None
        _check(good, f"{value!r} is no user of this run")
        return value

    def _undo(self, state, found, event):
        _check(bool(state.past), "there is nothing to undo")
        return state.taken_back()

    def _recalled(self, state, found, event):
        theta, fitted_at = np.array(_listed(found["theta"]), dtype=np.float64), found["fitted_at"]
        good = theta.shape == self.models.theta.shape and bool(np.all(np.isfinite(theta)))
        _check(good, f"hyperparameters {found['theta']}")
        n_told = len(state.told)
        good = type(fitted_at) is int and 0 <= fitted_at <= n_told
        _check(good, f"hyperparameters of {fitted_at} answers")
        bare = Memory(theta, fitted_at)
        if found["arrays"] is None:
            return Recalled(bare)
        if event.arrays is None:
            return Recalled(bare, event.seq, missing=True)
        _check(digest_of(event.arrays).hex() == found["arrays"], "its arrays are not those written")
        return Recalled(_with_arrays(bare, event.arrays, state, self.models), event.seq)


KINDS: dict[str, Callable] = {
    "ask": EventReader._ask,
    "tell": EventReader._tell,
    "skip": EventReader._skip,
    "undo": EventReader._undo,
}


def _with_arrays(memory, content, state, models):
    head, _, body = content.partition(b"\n")
    parts, at = {}, 0
    for name, shape in json.loads(head).items():
        _check(all(type(each) is int and each > 0 for each in shape), f"{name} has shape {shape}")
        size = math.prod(shape)
        _check(at + 8 * size <= len(body), f"{name} has shape {shape} and less content")
        part = np.frombuffer(body, dtype="<f8", count=size, offset=at).astype(np.float64)
        parts[name], at = part.reshape(shape), at + 8 * size
        fault = _fault(name, parts[name], state, models)
        _check(fault is None, fault)
    _check(at == len(body), "its arrays have another length")
    margins = parts.pop("margins", np.zeros(0))
    sites = {name.removeprefix("sites."): part for name, part in parts.items()}
    return replace(memory, sites=sites, margins=margins)


def _listed(value):
    _check(type(value) is list, f"{value!r} is no list")
    return value


def _check(good, message):
    if not good:
        raise ValueError(message)
