"""Events: what changes a run, as it is written down, and what it makes of a state.

A run that is asked and told makes its states by `applied`, from the very text that is on disk;
so does one that is taken up again, and one that sees the answers of another process.
"""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skpref.optimize._limits import FixedParameter
from skpref.optimize._model import Memory, Models
from skpref.optimize._state import GridForm, Items, RunState, User, ValueRecord


class Event(NamedTuple):
    """One event.

    Attributes
    ----------
    seq : int
        Its number.
    kind : {"begin", "ask", "tell", "skip", "value", "undo"}
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
        Where solver and sampler were; of questions alone.
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

    def as_event(self, seq: int, judge: str, time: float) -> Event:
        """Return the event with a number, a judge and a time, and its checksum."""
        text = json.dumps(self.payload, separators=(",", ":"), allow_nan=False)
        digest = checksum(seq, self.kind, judge, time, text)
        return Event(seq, self.kind, judge, time, text, digest, self.arrays)


def digest_bytes(content: bytes) -> bytes:
    """Return a checksum of bytes."""
    return hashlib.blake2b(content, digest_size=16).digest()


def checksum(*values: int | float | str) -> bytes:
    """Return the checksum of a row of a table."""
    return digest_bytes(json.dumps(values).encode())


# -- drafts ----------------------------------------------------------------------------------


def draft_ask_event(
    state: RunState,
    after: RunState,
    memory: Memory | None,
    space: Any,
    models: Models,
) -> Draft:
    """Return the event of the questions that are new in ``after``, and of a new memory."""
    new = after.pending[len(after.pending) - (after.counter - state.counter) :]
    payload: dict = {"questions": [each.items for each in new]}
    payload |= _new_items_payload(state, after.items, space)
    if new and new[0].form is not None:
        payload["form"] = new[0].form
    if new and new[0].fixed:
        payload["fixed"] = new[0].fixed
    if new and new[0].new_items is not None:
        payload["new_items"] = new[0].new_items
    if any(each.user is not None for each in new):
        payload["users"] = [each.user for each in new]
    arrays = None
    if memory is not None:
        arrays = dump_arrays(memory, state, models)
        payload["theta"], payload["fitted_at"] = memory.theta.tolist(), memory.fitted_at
        payload["arrays"] = None if arrays is None else digest_bytes(arrays).hex()
    return Draft("ask", payload, arrays)


def draft_answer(
    state: RunState,
    items: Items,
    question: tuple,
    compared: tuple,
    outcome: int | str | dict | None,
    space: Any,
    user: User = None,
    unusable: tuple = (),
) -> Draft:
    """Return the draft of an answer; of a refusal if the outcome is None.

    The items that the outcome compares are those of the question, and perhaps a place between them.
    """
    payload: dict = {"question": question, "compared": compared}
    payload |= {} if outcome is None else {"outcome": outcome}
    payload |= {} if user is None else {"user": user}
    payload |= {"unusable": unusable} if unusable else {}
    kind = "skip" if outcome is None else "tell"
    return Draft(kind, payload | _new_items_payload(state, items, space))


def draft_value(state: RunState, items: Items, record: ValueRecord, space: Any) -> Draft:
    """Return the draft of a measured value."""
    outcome = {"value": record.value, "deviation": record.deviation}
    payload = {"compared": (record.item,), "outcome": outcome}
    return Draft("value", payload | _new_items_payload(state, items, space))


def _new_items_payload(state, items, space):
    """Return what an event says of items that the state before it does not have, as a dict."""
    new = items.values[len(state.items.values) :]
    if not new:
        return {}
    added = {"items": [space.dump(value) for value in new]}
    if space.pool is not None and space.names is not None:
        added["names"] = [str(space.present(value)) for value in new]
    return added


def dump_arrays(memory: Memory, state: RunState, models: Models) -> bytes | None:
    """Return the arrays of a memory as bytes; None if there are none, or one is unusable."""
    parts = {f"sites.{name}": part for name, part in sorted(memory.sites.items())}
    parts["margins"] = memory.margins
    parts = {name: np.asarray(part, dtype="<f8") for name, part in parts.items() if np.size(part)}
    if not parts or not all(_can_resume_from(*each, state, models) for each in parts.items()):
        return None
    head = json.dumps({name: part.shape for name, part in parts.items()}).encode()
    return head + b"\n" + b"".join(part.tobytes() for part in parts.values())


def _can_resume_from(name, part, state, models):
    """Return whether an array of a memory has the shape and the values to start from."""
    most = state.max_rows + (models.extremes is not None)  # a duel of earlier people is the first
    if part.ndim == 0 or part.shape[-1] > most or not np.all(np.isfinite(part)):
        return False
    positive = name == "sites.precision" or (
        name == "margins" and models.has_positive_margins(state.answers) and not state.values
    )
    return not (positive and np.any(part < 0.0))


# -- states ----------------------------------------------------------------------------------


def apply_event(state: RunState, event: Event, space: Any) -> RunState:
    """Return the state after an event.

    Raises
    ------
    ValueError
        If the event does not fit the state, as where the candidates have other names now.
    """
    try:
        values = json.loads(event.payload)
        state = _add_items(state, values, space)
        after = _apply_payload(state, event, values)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"event {event.seq} ({event.kind}) does not fit the run before it "
            f"({type(error).__name__}: {error})"
        ) from error
    return replace(after, seq=event.seq, digest=event.digest)


def apply_events(state: RunState, events: Iterable[Event], space: Any) -> RunState:
    """Return the state after several events."""
    for event in events:
        state = apply_event(state, event, space)
    return state


def _add_items(state, values, space):
    """Return the state with the new items of an event, or raise ValueError."""
    items, dumped_items = state.items, values.get("items", [])
    names = [None] * len(dumped_items)
    if space.pool is not None and space.names is not None:
        names = values.get("names", names)
    for dumped, name in zip(dumped_items, names, strict=True):
        value = space.load(dumped)
        n_known = len(items.values)
        items, index = items.with_clean_item(value, space)
        _require(index == n_known, f"item {dumped} is not new")
        current_name = None if name is None else str(space.present(value))
        _require(
            current_name == name,
            f"its item {name!r} has the name {current_name!r} among the candidates",
        )
    return replace(state, items=items)


def _apply_payload(state, event, values):
    """Return the state after an event, whose payload was read and whose items are known."""
    if event.kind == "undo":
        return state.without_last_answer()
    if event.kind == "ask":
        return _apply_ask(state, event, values)
    if event.kind == "value":
        return state.with_value(ValueRecord(*values["compared"], **values["outcome"]))
    question, user = tuple(values["question"]), values.get("user")
    if event.kind == "skip":
        return state.with_skip(question, user, tuple(values.get("unusable", ())))
    return state.with_answer(question, tuple(values["compared"]), values["outcome"], user)


def _apply_ask(state, event, values):
    """Return the state after questions were asked."""
    questions = list(map(tuple, values["questions"]))
    recalled = _read_memory(values, event) if "theta" in values else state.recalled
    form = GridForm(*values["form"]) if "form" in values else None
    fixed = tuple(FixedParameter(*each) for each in values.get("fixed", ()))
    new_items = values.get("new_items")
    return state.with_questions(questions, recalled, values.get("users"), form, fixed, new_items)


def _read_memory(values, event):
    """Return the memory that an event left, with its arrays."""
    memory = Memory(np.array(values["theta"]), values["fitted_at"])
    if values["arrays"] is None:
        return memory
    written = digest_bytes(event.arrays or b"").hex()
    _require(written == values["arrays"], "its arrays are not those written")
    return _add_arrays(memory, event.arrays)


def _add_arrays(memory, content):
    """Return the memory with the arrays that `dump_arrays` wrote."""
    head, _, body = content.partition(b"\n")
    parts, offset = {}, 0
    for name, shape in json.loads(head).items():
        size = math.prod(shape)
        part = np.frombuffer(body, "<f8", size, offset).astype(np.float64)
        parts[name], offset = part.reshape(shape), offset + 8 * size
    margins = parts.pop("margins", np.zeros(0))
    sites = {name.removeprefix("sites."): part for name, part in parts.items()}
    return replace(memory, sites=sites, margins=margins)


def _require(good, message):
    """Raise ValueError with a message unless a condition holds."""
    if not good:
        raise ValueError(message)
