"""A session: one lock, one state, and events that are on disk before they count."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skpref._utils import Lease, check_number
from skpref.optimize._answers import AnswerArguments, leader
from skpref.optimize._configuration import check_same, check_writable, describe
from skpref.optimize._events import Draft, Event, answer_draft, applied, ask_draft, folded
from skpref.optimize._gain import ExpectedGain
from skpref.optimize._journal import Damaged, Journal, NoJournal, Replaced, Transaction
from skpref.optimize._model import Memory
from skpref.optimize._questions import Questions
from skpref.optimize._segments import between
from skpref.optimize._spaces import load_tables
from skpref.optimize._state import GridForm, Items, Layout, Recalled, RunState, User


def claim_of(judge: str | None, lease_minutes: float) -> Lease:
    """Return the lease that a judge takes on questions, not yet begun.

    Raises
    ------
    TypeError, ValueError
        If the judge is no name, or the minutes are no positive number.
    """
    if judge is not None and (not isinstance(judge, str) or not judge):
        raise ValueError(f"judge must be a name, a text, or None, got {judge!r}.")
    minutes = check_number("lease_minutes", lease_minutes, low=0.0, open_low=True)
    return Lease(judge or "", 0.0, 60.0 * minutes)


class AlreadyAnswered(RuntimeError):
    """Another judge, or a call that was interrupted, was first; nothing was recorded now.

    Examples
    --------
    >>> from skpref.optimize import AlreadyAnswered
    >>> issubclass(AlreadyAnswered, RuntimeError)
    True
    """


class _Overtaken(Exception):
    """Another judge wrote after this one had looked."""


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
    claim : Lease
        Whose questions those are that are asked here, and for how long, see `claim_of`.
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
        claim: Lease,
        questions: Callable = Questions,
    ):
        load_tables()
        self._claim, self.clock = claim, time.time
        self.space, self.configuration = space, configuration
        self._lock = threading.RLock()
        none, initial = Items.none(space.n_columns), []
        for duel in initial_duels:
            initial.append(self._pair(none, duel)[0].values)
        memory = Recalled(Memory(configuration.models.theta))
        self._state = RunState(none, memory, memory)
        self._journal: Journal | NoJournal = NoJournal()
        if journal is None:
            seed = _fresh_seed() if seed is None else seed
        else:
            duels = [[space.dump(value) for value in pair] for pair in initial]
            described = describe(space, options)
            check_writable(space, described)
            self._journal = Journal(journal)
            seed = self._open(self._journal, {**described, "initial_duels": duels}, seed)
        self._questions = questions(space, configuration, seed, initial)

    def _open(self, journal, configuration, seed):
        """Begin the journal, or replay it; the seed of the run."""
        if not journal.exists():
            fresh = _fresh_seed() if seed is None else seed
            journal.begin({"configuration": configuration, "seed": fresh})
        beginning, *events = journal.load()
        run = json.loads(beginning.payload)
        check_same(run["configuration"], configuration, journal.path)
        if seed not in (None, run["seed"]):
            raise ValueError(
                f"The journal {journal.path} was begun with random_state {run['seed']}, now {seed} "
                "came. Pass that one, or None."
            )
        self._state = self._folded(replace(self._state, digest=beginning.digest), events)
        return run["seed"]

    def __getstate__(self) -> dict:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what is known -------------------------------------------------------------------

    @property
    def known(self) -> RunState:
        """The state as far as this object has seen."""
        return self._state

    @property
    def state(self) -> RunState:
        """The state, with what other judges told; of a file that is lost, as it was."""
        try:
            return self._look()[0]
        except (FileNotFoundError, Damaged, Replaced):
            return self._state

    def _look(self):
        """Return the newest state, and the leases of its pending questions by their number."""
        with self._lock:
            newer, leases = self._journal.since(self._state.seq, self._state.digest)
            self._state = self._folded(self._state, newer)
            return self._state, leases

    def _folded(self, state, events):
        try:
            return folded(state, events, self.space)
        except ValueError as error:
            raise ValueError(
                f"The journal {self._journal.path} is damaged, or of another program: {error}."
            ) from error

    # -- events --------------------------------------------------------------------------

    def pose(
        self,
        n: int,
        layouts: Sequence[Layout],
        user: User = None,
        beside: Sequence | None = None,
    ) -> list:
        """Return n pending questions that this judge holds a lease on; of one user if given.

        Each has one of the layouts, and begins with the items of ``beside``. Pairs of whom each is
        for and its items, as people see them.
        """
        form = (layouts, user, [] if beside is None else list(beside))
        most = max(each.size for each in layouts)
        if most > 2:
            self.configuration.models.check_takes({"chosen": 0}, most)
        with self._lock:
            state, leases = self._look()
            n_new = n - len(self._ready(state, leases, *form)[:n])
            plan = n_new, self._asked(state, n_new, *form)
            try:
                state, leases = self._write(partial(self._take, n, form, plan))
            except _Overtaken:  # others were quicker: now the file is held
                state, leases = self._write(partial(self._take, n, form, None))
            ready = self._ready(state, leases, *form)[:n]
            return [(each.user, self.show(state, each.items)) for each in ready]

    def _take(self, n, form, plan, known, current, newer, leases):
        """Draft of the questions that are missing to n, and the leases with those on all n.

        The plan is how many are missing, and their draft. Without one they are found now, while the
        file is held.
        """
        ready = self._ready(current, leases, *form)[:n]
        n_new = n - len(ready)
        if plan is None:
            plan = n_new, self._asked(current, n_new, *form)
        elif n_new and (newer or plan[0] != n_new):
            raise _Overtaken
        new = [current.counter + 1 + k for k in range(n_new)]
        draft = plan[1] if n_new else None
        return draft, leases | self._leased([*(each.number for each in ready), *new])

    def _ready(self, state, leases, layouts, user, given):
        """Pending questions of this judge and then those of nobody; of a user if there is one.

        They have one of some layouts and begin with given items.
        """
        time, judge = self.clock(), self._claim.holder
        holders = {
            number: lease.holder
            for number, lease in leases.items()
            if lease.holder == judge or not lease.is_over(time)
        }
        first = self._distinct(state.items, given)[1]
        # Of a line or plane points may have been left out.
        forms = {each if each.form is None else each.form for each in layouts}
        ready = [
            each
            for each in state.pending
            if holders.get(each.number, judge) == judge
            and (each.form or Layout(len(each.items))) in forms
            and each.items[: len(first)] == first
            and user in (None, each.user)
        ]
        return sorted(ready, key=lambda each: each.number not in holders)

    def _leased(self, numbers):
        """Leases of this judge, from now on."""
        return dict.fromkeys(numbers, self._claim._replace(since=self.clock()))

    def _asked(self, state, n, layouts, user, given):
        """Return the draft of n new questions; None if n is 0."""
        if not n:
            return None
        more = {} if user is None else {"user": user}
        known = state
        if given:
            items, more["given"] = self._distinct(state.items, given)
            known = replace(state, items=items)
        after = self._questions.asked(known, n, layouts, **more)
        memory = None if after.recalled is state.recalled else after.recalled.memory
        return ask_draft(state, after, memory, self.space, self.configuration.models)

    def record(self, items: Any, said: AnswerArguments | None, user: User = None) -> None:
        """Take an answer in, or a refusal, which says nothing."""
        # Refused before anything is waited for.
        form = self._form(items, said, user)
        _, told, outcome = self._told(self._state.items, items, said, form)
        if said is not None:
            self.configuration.models.check_takes(outcome, len(told))

        def answer(known_state, current, newer, leases):
            known, asked = self._question(current.items, items)
            answers = [event for event in newer if _answers(event, asked, user)]
            was_pending = known_state.pending_of(asked, user)
            if answers and was_pending and not current.pending_of(asked, user):
                how = "skipped" if answers[-1].kind == "skip" else "answered"
                what = "duel" if len(asked) == 2 else "set"
                again = (
                    "the same call again counts as one more answer."
                    if form is None
                    else "one more answer to these items is told by chosen=, not by position=."
                )
                raise AlreadyAnswered(
                    f"This {what} was asked once and was {how} already, by another judge or a call "
                    "that was interrupted, so that nothing was recorded now. Go on with ask(); "
                    f"{again} Judges who share a journal are asked different questions if each has "
                    "a name, judge=."
                )
            known, told, outcome = self._told(current.items, items, said, form)
            return answer_draft(current, known, asked, told, outcome, self.space, user), leases

        self._write(answer)

    def _form(self, items, said, user):
        """The form of the question that a position is of; None if none is told, or of no form."""
        if said is None or said.unpacked().position is None:
            return None
        form = self._state.form_of(self._question(self._state.items, items)[1], user)
        if form is None:  # another judge may have asked since
            state, _ = self._look()
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

        def undo(known_state, current, newer, leases):
            if any(event.kind != "ask" for event in newer):
                raise AlreadyAnswered(
                    "Nothing was taken back: another judge, or a call that was interrupted, "
                    "told, skipped or took back since this object last looked. See history_, and "
                    "call undo() again to take back the last of all."
                )
            if not current.past:
                raise ValueError("There is nothing to undo: nothing was told or skipped.")
            # What is pending again goes to who took the answer back.
            restored = [each.number for each in current.past[-1].pending]
            return Draft("undo", {}), self._leased(restored) | leases

        self._write(undo)

    def _write(self, compose):
        """Write an event and leases, composed from the newest state; return what is there now."""
        with self._lock:
            known = after = self._state
            kept: dict[int, Lease] = {}

            def decide(newer, leases):
                nonlocal after, kept
                current = after = self._state = self._folded(known, newer)
                draft, wish = compose(known, current, newer, leases)
                event = None
                if draft is not None:
                    event = draft.event(current.seq + 1, self._claim.holder, self.clock())
                    after = applied(current, event, self.space)
                kept = {q.number: wish[q.number] for q in after.pending if q.number in wish}
                if event is None and kept == leases:
                    return None
                return Transaction(event, kept, current.recalls().keys() - after.recalls().keys())

            self._journal.change(known.seq, known.digest, decide)
            self._state = after
            return after, kept

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

    def is_close_enough(self, probability: float, within: float) -> bool:
        """Whether what is recommended is near the best so probably."""
        with self._lock:
            return self._questions.is_close_enough(self.state, probability, within)

    # -- items ---------------------------------------------------------------------------

    def form_of(self, items: Any) -> GridForm | None:
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

    def show(self, state: RunState, asked: Any) -> list:
        """The items of a question as people see them."""
        return [self.space.present(state.items.values[index]) for index in asked]


def _answers(event: Event, asked, user):
    if event.kind not in ("tell", "skip"):
        return False
    values = json.loads(event.payload)
    return values.get("user") == user and set(values["question"]) == set(asked)


def _fresh_seed():
    return int(np.random.SeedSequence().generate_state(1)[0])
