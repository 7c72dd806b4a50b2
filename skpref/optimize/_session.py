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
from skpref.optimize._answers import AnswerArguments, best_position
from skpref.optimize._configuration import check_same_configuration, check_writable, describe
from skpref.optimize._events import (
    Draft,
    Event,
    apply_event,
    apply_events,
    draft_answer,
    draft_ask_event,
    draft_value,
)
from skpref.optimize._gain import ExpectedGain
from skpref.optimize._journal import (
    DamagedJournalError,
    Journal,
    NoJournal,
    ReplacedJournalError,
    Transaction,
)
from skpref.optimize._model import Memory
from skpref.optimize._questions import Questions
from skpref.optimize._segments import locate_position
from skpref.optimize._spaces import load_sobol_tables
from skpref.optimize._state import GridForm, Items, Layout, RunState, User, ValueRecord


def make_lease_claim(judge: str | None, lease_minutes: float) -> Lease:
    """Return the lease, without a start, that a judge takes on questions, checked.

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


class _OvertakenError(Exception):
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
        load_sobol_tables()
        self._claim, self.clock = claim, time.time
        self.space, self.configuration = space, configuration
        self._lock = threading.RLock()
        none, initial = Items.empty(space.n_columns), []
        for duel in initial_duels:
            initial.append(self._register_duel(none, duel)[0].values)
        memory = Memory(configuration.models.theta)
        self._state = RunState(none, memory, memory)
        self._journal: Journal | NoJournal = NoJournal()
        if journal is None:
            seed = _draw_seed() if seed is None else seed
        else:
            duels = [[space.dump(value) for value in pair] for pair in initial]
            described = describe(space, options)
            check_writable(space, described)
            self._journal = Journal(journal)
            seed = self._open_journal(self._journal, {**described, "initial_duels": duels}, seed)
        self._questions = questions(space, configuration, seed, initial)

    def _open_journal(self, journal, configuration, seed):
        """Create the run in a journal, or replay its events; return the seed of the run."""
        if not journal.exists():
            fresh = _draw_seed() if seed is None else seed
            journal.create_run({"configuration": configuration, "seed": fresh})
        beginning, *events = journal.load()
        run = json.loads(beginning.payload)
        check_same_configuration(run["configuration"], configuration, journal.path)
        if seed not in (None, run["seed"]):
            raise ValueError(
                f"The journal {journal.path} was begun with random_state {run['seed']}; got "
                f"{seed}. "
                "Pass that one, or None."
            )
        self._state = self._apply_events(replace(self._state, digest=beginning.digest), events)
        return run["seed"]

    def __getstate__(self) -> dict:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what is known -------------------------------------------------------------------

    @property
    def last_state(self) -> RunState:
        """Return the state as this object last read it, without a look at the journal."""
        return self._state

    @property
    def state(self) -> RunState:
        """Return the newest state, with other judges' answers; the last read if a file is lost."""
        try:
            return self._read_newest()[0]
        except (FileNotFoundError, DamagedJournalError, ReplacedJournalError):
            return self._state

    def _read_newest(self):
        """Return the newest state, and the leases of its pending questions by their number."""
        with self._lock:
            newer, leases = self._journal.read_since(self._state.seq, self._state.digest)
            self._state = self._apply_events(self._state, newer)
            return self._state, leases

    def _apply_events(self, state, events):
        """Return the state after events, or raise ValueError with the path of the journal."""
        try:
            return apply_events(state, events, self.space)
        except ValueError as error:
            raise ValueError(
                f"The journal {self._journal.path} is damaged, or of another program: {error}."
            ) from error

    # -- events --------------------------------------------------------------------------

    def ask_questions(
        self,
        n: int,
        layouts: Sequence[Layout],
        user: User = None,
        beside: Sequence | None = None,
        fixed: tuple = (),
    ) -> list:
        """Return n pending questions that this judge holds a lease on; of one user if given.

        Each has one of the layouts, begins with the items of ``beside``, and holds the parameters
        that are ``fixed``. It is a pair of its user and its items as people see them.
        """
        form = (layouts, user, [] if beside is None else list(beside), fixed)
        most = max(each.size for each in layouts)
        if most > 2:
            self.configuration.models.check_takes_answer({"chosen": 0}, most)
        with self._lock:
            state, leases = self._read_newest()
            n_new = n - len(self._askable_questions(state, leases, *form)[:n])
            plan = n_new, self._draft_questions(state, n_new, *form)
            try:
                state, leases = self._write_event(partial(self._decide_questions, n, form, plan))
            except _OvertakenError:  # others were quicker: now the file is held
                state, leases = self._write_event(partial(self._decide_questions, n, form, None))
            ready = self._askable_questions(state, leases, *form)[:n]
            return [(each.user, self.present_items(state, each.items)) for each in ready]

    def _decide_questions(self, n, form, plan, known, current, newer, leases):
        """Return a draft of new questions, or None, and the leases on all n questions.

        The ``plan`` is how many are new, and their draft, made before the file was held. None: it
        is made now. _OvertakenError if it no longer fits, as there are ``newer`` events.
        """
        ready = self._askable_questions(current, leases, *form)[:n]
        n_new = n - len(ready)
        if plan is None:
            plan = n_new, self._draft_questions(current, n_new, *form)
        elif n_new and (newer or plan[0] != n_new):
            raise _OvertakenError
        new = [current.counter + 1 + k for k in range(n_new)]
        draft = plan[1] if n_new else None
        return draft, leases | self._lease_from_now([*(each.number for each in ready), *new])

    def _askable_questions(self, state, leases, layouts, user, beside, fixed):
        """Return the pending questions that this judge may be given, those leased to it first.

        They have one of some layouts and begin with the items of ``beside``.
        """
        time, judge = self.clock(), self._claim.holder
        holders = {
            number: lease.holder
            for number, lease in leases.items()
            if lease.holder == judge or not lease.is_over(time)
        }
        first = self._register_distinct(state.items, beside)[1]
        # Of a line or plane points may have been left out.
        forms = {each if each.form is None else each.form for each in layouts}
        ready = [
            each
            for each in state.pending
            if holders.get(each.number, judge) == judge
            and (each.form or Layout(len(each.items), None, each.new_items)) in forms
            and each.items[: len(first)] == first
            and user in (None, each.user)
            and each.fixed == fixed
        ]
        return sorted(ready, key=lambda each: each.number not in holders)

    def _lease_from_now(self, numbers):
        """Return leases of this judge on questions of these numbers, from now on."""
        return dict.fromkeys(numbers, self._claim._replace(since=self.clock()))

    def _draft_questions(self, state, n, layouts, user, beside, fixed):
        """Return the draft of n new questions; None if n is 0."""
        if not n:
            return None
        more: dict = {} if user is None else {"user": user}
        more |= {"fixed": fixed} if fixed else {}
        extended = state
        if beside:
            items, more["beside"] = self._register_distinct(state.items, beside)
            extended = replace(state, items=items)
        after = self._questions.with_questions(extended, n, layouts, **more)
        memory = None if after.recalled is state.recalled else after.recalled
        return draft_ask_event(state, after, memory, self.space, self.configuration.models)

    def record_answer(
        self,
        items: Any,
        arguments: AnswerArguments | None,
        user: User = None,
        unusable: Sequence[int] = (),
    ) -> None:
        """Write down an answer, or if ``arguments`` is None a skip.

        A skip may say which positions are ``unusable``.
        """
        # Refused before anything is waited for.
        form = self._pending_form(items, arguments, user)
        _, compared, outcome = self._resolve_answer(self._state.items, items, arguments, form)
        if arguments is not None:
            self.configuration.models.check_takes_answer(outcome, len(compared))

        def answer(known_state, current, newer, leases):
            items_known, asked = self._register_question(current.items, items)
            answers = [event for event in newer if _answers_question(event, asked, user)]
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
            items_known, compared, outcome = self._resolve_answer(
                current.items, items, arguments, form
            )
            return draft_answer(
                current,
                items_known,
                asked,
                compared,
                outcome,
                self.space,
                user,
                tuple(asked[k] for k in unusable),
            ), leases

        self._write_event(answer)

    def record_value(self, item: Any, value: float, deviation: float) -> None:
        """Write down the measured value of an item."""
        self.configuration.models.check_takes_values()
        self._state.items.with_item(item, self.space)  # refused before anything is waited for

        def measure(known_state, current, newer, leases):
            items, index = current.items.with_item(item, self.space)
            record = ValueRecord(index, value, deviation)
            return draft_value(current, items, record, self.space), leases

        self._write_event(measure)

    def _pending_form(self, items, arguments, user):
        """Return the form of the pending question that a position is of; else None."""
        if arguments is None or arguments.unpack_dict().position is None:
            return None
        form = self._state.form_of(self._register_question(self._state.items, items)[1], user)
        if form is None:  # another judge may have asked since
            state, _ = self._read_newest()
            form = state.form_of(self._register_question(state.items, items)[1], user)
        return form

    def _resolve_answer(self, items_known, items, arguments, form):
        """Return items, the indices of those that an answer compares, and its outcome.

        A position on a line or plane of a ``form`` may add an item between the points.
        """
        items_known, question = self._register_question(items_known, items)
        if arguments is None or form is None:
            return (
                items_known,
                question,
                None if arguments is None else arguments.outcome_of(len(question)),
            )
        rows = items_known.rows[list(question)]
        at, row = locate_position(rows, form, arguments.unpack_dict().position, self.space)
        if row is not None:
            items_known, index = items_known.with_row(row, self.space)
            if index in question:
                at = question.index(index)
            else:
                question = (*question[:at], index, *question[at:])
        return items_known, question, AnswerArguments(chosen=at).outcome_of(len(question))

    def undo_last(self) -> None:
        """Write down that the last answer, skip or value is taken back."""

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
            return Draft("undo", {}), self._lease_from_now(restored) | leases

        self._write_event(undo)

    def _write_event(self, compose):
        """Write what a function composes from the newest state; return the state and leases then.

        ``compose(last_state, current, newer, leases)`` returns a draft or None, and leases.
        """
        with self._lock:
            last_state = after = self._state
            leases_kept: dict[int, Lease] = {}

            def decide(newer, leases):
                nonlocal after, leases_kept
                current = after = self._state = self._apply_events(last_state, newer)
                draft, wish = compose(last_state, current, newer, leases)
                event = None
                if draft is not None:
                    event = draft.as_event(current.seq + 1, self._claim.holder, self.clock())
                    after = apply_event(current, event, self.space)
                leases_kept = {q.number: wish[q.number] for q in after.pending if q.number in wish}
                if event is None and leases_kept == leases:
                    return None
                return Transaction(event, leases_kept)

            self._journal.write_decision(last_state.seq, last_state.digest, decide)
            self._state = after
            return after, leases_kept

    # -- results -------------------------------------------------------------------------

    def recommended_item(self, probability_usable: float | None = None, fixed: tuple = ()) -> Any:
        """Return the item of the largest posterior mean, as people see it."""
        with self._lock:
            best = self._questions.best_item(self.state, probability_usable, fixed)
            return self.space.present(best)

    def fitted(self) -> Any:
        """Return the fit behind the questions: of the model and its memory, or of the estimator."""
        with self._lock:
            return self._questions.fit(self.state)

    def posterior(self) -> Any:
        """Return the engine's posterior; where noisy margins are believed, EP's."""
        with self._lock:
            return self._questions.posterior(self.state)

    def gain(self) -> ExpectedGain:
        """Return how much one more question is expected to gain, and the shortfall now."""
        with self._lock:
            return self._questions.gain(self.state)

    def is_close_enough(self, probability: float, within: float) -> bool:
        """Return whether P(shortfall <= within) >= probability for what is recommended."""
        with self._lock:
            return self._questions.is_close_enough(self.state, probability, within)

    # -- items ---------------------------------------------------------------------------

    def form_of(self, items: Any) -> GridForm | None:
        """Return the form of a pending question; None if it is a set, or not pending."""
        with self._lock:
            state = self.state
            return state.form_of(self._register_question(state.items, items)[1])

    def item_at(self, items: Any, position: Any) -> Any:
        """Return the item at a position of a pending line or plane, as people see it."""
        if position is None:
            raise TypeError(
                "position must be a place on the line or plane, such as 2 or 2.5, got None."
            )
        arguments = AnswerArguments(position=position)
        with self._lock:
            form = self._pending_form(items, arguments, None)
            if form is None:
                raise ValueError(
                    "item_at shows a place on a line or a plane that ask(kind=) gave and that is "
                    "pending, with its items in their order; these items are no such question."
                )
            items_known, compared, outcome = self._resolve_answer(
                self._state.items, items, arguments, form
            )
        return self.space.present(
            items_known.values[compared[best_position(outcome, len(compared))]]
        )

    def _register_duel(self, items_known, duel):
        """Return known items with the two of a duel added, and their indices, checked."""
        items_known, question = self._register_question(items_known, duel)
        if len(question) > 2:
            raise ValueError(f"A duel is a pair of items, got {len(question)} of them: {duel!r}.")
        return items_known, question

    def _register_question(self, items_known, items):
        """Return known items with those of a question added, and their indices, checked."""
        try:
            shown = [] if isinstance(items, str) else list(self.space.list_items(items))
        except TypeError:
            shown = []
        if len(shown) < 2:
            raise ValueError(
                "A duel is a pair of items, as ask() returns it: an array of shape (2, d), two "
                f"dicts or two names, got {items!r}. A set has three items or more."
            )
        return self._register_distinct(items_known, shown)

    def _register_distinct(self, items_known, shown):
        """Return known items with others added, and their indices; ValueError if two are one."""
        indices: list[int] = []
        for item in shown:
            items_known, index = items_known.with_item(item, self.space)
            if index in indices:
                what = "A duel needs two" if len(shown) == 2 else f"A set needs {len(shown)}"
                why = self._duplicate_items_message(shown, indices, index)
                raise ValueError(f"{what} different items, {why}")
            indices.append(index)
        return items_known, tuple(indices)

    def _duplicate_items_message(self, shown, indices, index):
        """Return a message that says why an item is the same as one before it."""
        first, item = shown[indices.index(index)], shown[len(indices)]
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

    def present_items(self, state: RunState, indices: Any) -> list:
        """Return the items of indices as people see them."""
        return [self.space.present(state.items.values[index]) for index in indices]


def _answers_question(event: Event, asked, user):
    """Return whether an event is an answer to a question of these items to a user, or a skip."""
    if event.kind not in ("tell", "skip"):
        return False
    values = json.loads(event.payload)
    return values.get("user") == user and set(values["question"]) == set(asked)


def _draw_seed():
    """Return a seed of the system's entropy."""
    return int(np.random.SeedSequence().generate_state(1)[0])
