"""A session: one lock, one state, and events that are on disk before they count."""

import ctypes
import hashlib
import json
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from skpref.optimize._answers import AnswerArguments, leader
from skpref.optimize._configuration import check_same, check_writable, describe
from skpref.optimize._events import (
    Draft,
    Event,
    EventReader,
    answer_draft,
    ask_draft,
    shown_of,
)
from skpref.optimize._gain import ExpectedGain
from skpref.optimize._journal import Damaged, Header, Journal, Replaced
from skpref.optimize._model import Memory
from skpref.optimize._questions import Questions
from skpref.optimize._segments import between
from skpref.optimize._spaces import load_tables
from skpref.optimize._state import Form, Items, Layout, Recalled, State, User

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STILL_ACTIVE, _QUERY = 259, 0x1000
# A question is computed without holding the file; if others were quicker this often, holding it.
_TRIES = 3
_own: dict[int, str] = {}


def owner() -> str:
    """Name of this process, which no other has; a forked child has its own."""
    pid = os.getpid()
    if pid not in _own:
        _own.clear()
        # Where the start of a process cannot be read, something else that is new with each.
        _own[pid] = f"{_machine()}-{pid}-{_started(pid) or secrets.token_hex(6)}"
    return _own[pid]


def is_live(name: str) -> bool:
    """Whether the process of that name runs on this machine.

    One of another machine or container, or of before a restart, counts as ended.
    """
    if name == owner():
        return True
    try:
        machine, number, start = name.split("-")
        pid = int(number)
    except ValueError:
        return False
    # No process has a number below 1: to the system these stand for groups of processes.
    if machine != _machine() or pid < 1 or pid == os.getpid() or not _runs(pid):
        return False
    return _started(pid) in (None, start)


@cache
def _machine():
    """This boot of this machine; processes that see each other have it in common."""
    try:
        text = _BOOT.read_text() + str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        text = platform.node()
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _started(pid):
    """When a process began, in the system's own ticks; None where that is not told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        return text.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _runs(pid):
    if sys.platform == "win32":
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_QUERY, False, pid)
        code = ctypes.c_ulong()
        known = bool(handle) and bool(kernel.GetExitCodeProcess(handle, ctypes.byref(code)))
        if handle:
            kernel.CloseHandle(handle)
        return known and code.value == _STILL_ACTIVE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:  # killed, and not yet waited for
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return True


class AlreadyAnswered(RuntimeError):
    """Another process, or a call that was interrupted, was first; nothing was recorded now.

    Examples
    --------
    >>> from skpref.optimize import AlreadyAnswered
    >>> issubclass(AlreadyAnswered, RuntimeError)
    True
    """


class Session:
    """Everything that an optimizer knows; its methods may be called from several threads.

    Parameters
    ----------
    space : Space
    configuration : Configuration, or another with ``models`` for its `questions`
    initial_duels : list of pairs of items
    journal : path or None
    options : dict
        The arguments; a journal keeps them as plain values.
    seed : int or None
    questions : callable, default=Questions
        ``questions(space, configuration, seed, initial)`` makes what chooses the next question.
    """

    def __init__(
        self,
        space: Any,
        configuration: Any,
        initial_duels: list,
        journal: Any,
        options: dict,
        seed: int | None,
        questions: Callable = Questions,
    ):
        load_tables()
        self.space, self.configuration = space, configuration
        self._reader = EventReader(space, configuration.models)
        self._lock = threading.RLock()
        none, initial = Items.none(space.n_columns), []
        for duel in initial_duels:
            initial.append(self._pair(none, duel)[0].values)
        memory = Recalled(Memory(configuration.models.theta))
        start = State(none, memory, memory)
        self._journal: Journal | None = None
        if journal is None:
            self._state = start
            seed = _fresh_seed() if seed is None else seed
        else:
            duels = [[space.dump(value) for value in pair] for pair in initial]
            described = describe(space, options)
            check_writable(space, described)
            seed = self._open(journal, {**described, "initial_duels": duels}, seed, start)
        self._questions = questions(space, configuration, seed, initial)

    def _open(self, path, described, seed, start):
        """Begin the journal, or replay it; the seed of the run."""
        journal, text = Journal(path), json.dumps(described, separators=(",", ":"), allow_nan=False)
        if not journal.exists():
            wanted = _fresh_seed() if seed is None else seed
            journal.begin(Header(text, wanted, secrets.token_hex(8)))
        header, events = journal.load()
        check_same(json.loads(header.configuration), json.loads(text), journal.path)
        if seed is not None and seed != header.seed:
            raise ValueError(
                f"The journal {journal.path} was begun with random_state {header.seed}, now {seed} "
                "came. Pass that one, or None."
            )
        self._journal = journal
        self._state = self._folded(replace(start, digest=header.digest), events)
        return header.seed

    def __getstate__(self) -> dict:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what is known -------------------------------------------------------------------

    @property
    def known(self) -> State:
        """The state as far as this object has seen."""
        return self._state

    @property
    def state(self) -> State:
        """The state, with what other processes told; of a file that is lost, as it was."""
        try:
            return self._caught_up()
        except (FileNotFoundError, Damaged, Replaced):
            return self._state

    def _caught_up(self):
        with self._lock:
            if self._journal is not None:
                newer = self._journal.since(self._state.seq, self._state.digest)
                self._state = self._folded(self._state, newer)
            return self._state

    def _folded(self, state, events):
        try:
            return self._reader.folded(state, events)
        except ValueError as error:
            if self._journal is None:
                raise
            raise ValueError(
                f"The journal {self._journal.path} is damaged, or of another program: {error}."
            ) from error

    def _me(self):
        return "" if self._journal is None else owner()

    # -- events --------------------------------------------------------------------------

    def pose(
        self,
        wanted: int,
        layouts: Sequence[Layout],
        user: User = None,
        beside: Sequence | None = None,
    ) -> list:
        """Pending questions of this process, as many as wanted; to one user if one is given.

        Each has one of the layouts, and begins with the items of ``beside``. Pairs of whom each is
        for and its items, as people see them.
        """
        given = [] if beside is None else list(beside)
        most = max(each.size for each in layouts)
        if most > 2:
            self.configuration.models.check_takes({"chosen": 0}, most)
        with self._lock:
            tries = 0
            while (
                len(mine := self._mine(state := self._caught_up(), layouts, user, given)) < wanted
            ):
                tries += 1
                draft = None
                if tries < _TRIES:
                    draft = self._asked(state, wanted, layouts, user, given)

                def compose(seen, current, newer, draft=draft):
                    if draft is None:  # while the file is held
                        return self._asked(current, wanted, layouts, user, given)
                    return None if newer else draft  # void if others wrote since

                self._take(compose)
            return [(each.user, self.show(state, each.items)) for each in mine[:wanted]]

    def _mine(self, state, layouts, user, given):
        me = self._me()
        return [each for each in self._fitting(state, layouts, user, given) if each.owner == me]

    def _fitting(self, state, layouts, user, given):
        """Pending questions of some layouts that begin with given items; of one user if given."""
        first = self._distinct(state.items, given)[1]
        found = _fitting(state.pending, layouts, user)
        return [each for each in found if each.items[: len(first)] == first]

    def _asked(self, state, wanted, layouts, user, given):
        """New questions, after pending ones of processes that have ended."""
        me, mine = self._me(), len(self._mine(state, layouts, user, given))
        left = [
            (each.items, each.user)
            for each in self._fitting(state, layouts, user, given)
            if not (each.owner == me or is_live(each.owner))
        ]
        left = left[: max(0, wanted - mine)]
        handed = state.handed_over(left, me)
        more = {} if user is None else {"user": user}
        n = max(0, wanted - mine - len(left))
        if given:
            known, more["given"] = self._distinct(handed.items, given)
            handed = replace(handed, items=known)
        after = self._questions.asked(handed, n, layouts, me, **more)
        memory = None if after.recalled is state.recalled else after.recalled.memory
        return ask_draft(state, after, left, memory, self.space, self.configuration.models)

    def record(self, items: Any, said: AnswerArguments | None, user: User = None) -> None:
        """Take an answer in, or a refusal, which says nothing."""
        # Refused before anything is waited for.
        form = self._form(items, said, user)
        _, told, outcome = self._told(self._state.items, items, said, form)
        if said is not None:
            self.configuration.models.check_takes(outcome, len(told))

        def compose(seen, current, newer):
            known, asked = self._question(current.items, items)
            answers = [event for event in newer if _answers(event, asked, user)]
            gone = seen.is_pending(asked, user) and not current.is_pending(asked, user)
            if answers and gone:
                how = "skipped" if answers[-1].kind == "skip" else "answered"
                what = "duel" if len(asked) == 2 else "set"
                again = (
                    "the same call again counts as one more answer."
                    if form is None
                    else "one more answer to these items is told by chosen=, not by position=."
                )
                raise AlreadyAnswered(
                    f"This {what} was asked once and was {how} already, by another process or a "
                    "call that was interrupted, so that nothing was recorded now. Go on with "
                    f"ask(); {again}"
                )
            known, told, outcome = self._told(current.items, items, said, form)
            return answer_draft(current, known, told, outcome, self.space, user, asked)

        self._take(compose)

    def _form(self, items, said, user):
        """The form of the question that a position is of; None if none is told, or of no form."""
        if said is None or said.unpacked().position is None:
            return None
        form = self._state.form_of(self._question(self._state.items, items)[1], user)
        if form is None:  # another process may have asked since
            state = self._caught_up()
            form = state.form_of(self._question(state.items, items)[1], user)
        return form

    def _told(self, known, items, said, form):
        """Items, the indices of those that an answer compares, and the outcome."""
        known, asked = self._question(known, items)
        if said is None or form is None:
            return known, asked, None if said is None else said.of(len(asked))
        rows = known.rows[list(asked)]
        at, row = between(rows, form, said.unpacked().position, self.space)
        if row is not None:
            known, found = known.with_row(row, self.space)
            if found in asked:
                at = asked.index(found)
            else:
                asked = (*asked[:at], found, *asked[at:])
        return known, asked, AnswerArguments(chosen=at).of(len(asked))

    def take_back(self) -> None:
        """Go back to the moment before the last answer or refusal."""

        def compose(seen, current, newer):
            if any(event.kind != "ask" for event in newer):
                raise AlreadyAnswered(
                    "Nothing was taken back: another process, or a call that was interrupted, "
                    "told, skipped or took back since this object last looked. See history_, and "
                    "call undo() again to take back the last of all."
                )
            if not current.past:
                raise ValueError("There is nothing to undo: nothing was told or skipped.")
            return Draft("undo", {})

        self._take(compose)

    def _take(self, compose):
        """Take an event in: composed from the newest state, on disk, then one assignment."""
        with self._lock:
            seen, later = self._state, None

            def decide(newer):
                nonlocal later
                current = self._state = self._folded(seen, newer) if newer else seen
                draft = compose(seen, current, newer)
                if draft is None:
                    later = None
                    return None
                event = draft.event(current, self._me(), time.time())
                later = self._reader.applied(current, event)
                return event, current.recalls().keys() - later.recalls().keys()

            if self._journal is None:
                decide([])
            else:
                self._journal.change(seen.seq, seen.digest, decide)
            if later is not None:
                self._state = later

    # -- results -------------------------------------------------------------------------

    def recommended(self) -> Any:
        """The item of the largest posterior mean among those seen, as people see it."""
        with self._lock:
            state = self.state
            return self.show(state, [self._questions.best(state)])[0]

    def fitted(self) -> Any:
        """What questions are found with, after what was told."""
        with self._lock:
            return self._questions.fit(self.state)

    def posterior(self) -> Any:
        """The engine's posterior; where noisy margins are believed, EP's."""
        with self._lock:
            return self._questions.posterior(self.state)

    def gain(self) -> ExpectedGain:
        """What is to be gained by one more question."""
        with self._lock:
            return self._questions.gain(self.state)

    def is_near(self, probability: float, within: float) -> bool:
        """Whether what is recommended is near the best so probably."""
        with self._lock:
            return self._questions.is_near(self.state, probability, within)

    # -- items ---------------------------------------------------------------------------

    def form_of(self, items: Any) -> Form | None:
        """The form of a pending question; None if it is a set, or not pending."""
        with self._lock:
            state = self.state
            return state.form_of(self._question(state.items, items)[1])

    def item_at(self, items: Any, position: Any) -> Any:
        """The item at a position of a pending line or plane, as people see it."""
        if position is None:
            raise TypeError(
                "position must be a place on the line or plane, such as 2 or 2.5, got None."
            )
        said = AnswerArguments(position=position)
        with self._lock:
            form = self._form(items, said, None)
            if form is None:
                raise ValueError(
                    "item_at shows a place on a line or a plane that ask(kind=) gave and that is "
                    "pending, with its items in their order; these items are no such question."
                )
            known, told, outcome = self._told(self._state.items, items, said, form)
        return self.space.present(known.values[told[leader(outcome, len(told))]])

    def _pair(self, known, duel):
        """Items and the indices of the two of a duel, which is checked."""
        known, asked = self._question(known, duel)
        if len(asked) > 2:
            raise ValueError(f"A duel is a pair of items, got {len(asked)} of them: {duel!r}.")
        return known, asked

    def _question(self, known, items):
        """Items and the indices of those of a duel or set, which is checked."""
        try:
            shown = [] if isinstance(items, str) else list(self.space.listed(items))
        except TypeError:
            shown = []
        if len(shown) < 2:
            raise ValueError(
                "A duel is a pair of items, as ask() returns it: an array of shape (2, d), two "
                f"dicts or two names, got {items!r}. A set has three items or more."
            )
        return self._distinct(known, shown)

    def _distinct(self, known, shown):
        """Items and the indices of some, which are checked."""
        asked: list[int] = []
        for item in shown:
            known, found = known.with_item(item, self.space)
            if found in asked:
                what = "A duel needs two" if len(shown) == 2 else f"A set needs {len(shown)}"
                raise ValueError(f"{what} different items, {self._why_one(shown, asked, found)}")
            asked.append(found)
        return known, tuple(asked)

    def _why_one(self, shown, asked, found):
        """Why the next of some items is one of those before it."""
        first, item = shown[asked.index(found)], shown[len(asked)]
        listed = self.space.pool is not None
        if repr(first) == repr(item) or (
            not listed and str(self.space.clean(first)) == str(self.space.clean(item))
        ):
            return f"got {item!r} twice."
        if listed:
            return f"and {first!r} and {item!r} are one: their features are equal."
        return (
            f"and {first!r} and {item!r} cannot be told apart: they are less than "
            f"{self.space.same:.0e} of the range from each other. Narrow the space, or give the "
            "parameter a logarithmic scale."
        )

    def show(self, state: State, asked: Any) -> list:
        """The items of a question as people see them."""
        return [self.space.present(state.items.values[index]) for index in asked]


def _fitting(pending, layouts, user):
    """Pending questions of some layouts; of one user if given."""
    # Of a line or plane points may have been left out.
    wanted = {each if each.form is None else each.form for each in layouts}
    own = [each for each in pending if user is None or each.user == user]
    return [each for each in own if (each.form or Layout(len(each.items))) in wanted]


def _answers(event: Event, asked, user):
    if event.kind not in ("tell", "skip"):
        return False
    found = json.loads(event.payload)
    return found.get("user") == user and set(shown_of(found)) == set(asked)


def _fresh_seed():
    return int(np.random.SeedSequence().generate_state(1)[0])
