"""A run and its journal: events in, questions out, each on disk before it counts."""

from dataclasses import replace

import numpy as np
from sklearn.exceptions import NotFittedError

from skpref._threads import blas_threads
from skpref.optimize import _model
from skpref.optimize._design import initial_duel
from skpref.optimize._journal import Journal, check_header, header
from skpref.optimize._run import Items, Run, dump_memory, exclusion, load_memory
from skpref.optimize._strategies import View, best_seen, propose, random_duel

# After a skip, until something is told, no duel this close to the skipped one is asked (unit
# cube, times the root of the number of columns); afterwards only that duel itself is left out.
_NEAR = 0.02
# Duels drawn, at most, for one whose items differ as floats.
_REDRAWS = 50
# By default the hyperparameters are learned anew once the duels have grown by this share.
_GROWTH = 0.04


class Session:
    """Everything that an optimizer knows.

    Parameters
    ----------
    space : Box or Pool
    configuration : Configuration
    initial_duels : list of pairs of items
    journal : path or None
    description : dict
        Of the configuration, for the journal.
    seed : int or None

    Attributes
    ----------
    run : Run
    items : Items
    """

    def __init__(self, space, configuration, initial_duels, journal, description, seed):
        self.space, self.configuration = space, configuration
        self.items = Items(space)
        self._initial = [self.pair(duel) for duel in initial_duels]
        description = {**description, "initial_duels": [self._dump(duel) for duel in self._initial]}
        self.run = Run(_model.Memory(configuration.spec.theta))
        self._past = []
        self._fitted = None
        self._journal = None if journal is None else Journal(journal)
        self.seed = self._open(description, seed)

    # -- events --------------------------------------------------------------------------

    def ask(self, wanted):
        """Pending duels, at least as many as wanted."""
        known = len(self.run.pending)
        if known < wanted:
            with self._threads():
                if self._modelled:
                    self.fit()
                later = self.run
                while len(later.pending) < wanted:
                    later = self._next(later)
            record = {
                "type": "ask",
                "duels": [self._dump(duel) for duel in later.pending[known:]],
                "counter": later.counter,
                "memory": dump_memory(later.memory),
            }
            self._write(record)
            self.run = later
        return self.run.pending

    def tell(self, duel, won):
        """Take an answer in and bring the model up to date."""
        record = {"type": "tell", "duel": self._dump(duel), "outcome": won}
        self._write({**record, "memory": dump_memory(self.run.memory)})
        self._past.append(self.run)
        self.run = self.run.tell(*duel, won)
        self._fitted = None
        if self._modelled:
            with self._threads():
                self.fit()

    def skip(self, duel):
        """Take a refusal in."""
        record = {"type": "skip", "duel": self._dump(duel)}
        self._write({**record, "memory": dump_memory(self.run.memory)})
        self._past.append(self.run)
        self.run = self.run.skip(*duel)

    def undo(self):
        """Go back to the moment before the last answer or refusal."""
        if not self._past:
            raise ValueError("There is nothing to undo: no duel was told or skipped.")
        self._write({"type": "undo"})
        self.run = self._past.pop()
        self._fitted = None

    # -- the model -----------------------------------------------------------------------

    @property
    def _modelled(self):
        return len(self.run.told) >= max(1, self.configuration.n_initial)

    def check_told(self):
        """Raise unless a duel was told."""
        if not self.run.told:
            raise NotFittedError("No duel was told yet: ask(), then tell(duel, outcome).")

    def fit(self):
        """The fit of the told duels; once the model is in use its hyperparameters go on."""
        self.check_told()
        if self._fitted is None:
            winner, loser = self.run.outcomes()
            memory = self.run.memory
            every = self.configuration.refit_every or 1 + int(_GROWTH * len(winner))
            learning = memory.fitted_at == 0 or (
                self._modelled and len(winner) >= memory.fitted_at + every
            )
            self._fitted, memory = _model.fit(
                self.configuration.spec, memory, self.items.rows, winner, loser, learning
            )
            if self._modelled:
                self.run = replace(self.run, memory=memory)
        return self._fitted

    def gaussian(self):
        """Posterior of the evidence engine: one component."""
        return self.fit().gaussian

    def posterior(self):
        """The engine's posterior; of hallucinations, EP's."""
        with self._threads():
            fit = self.fit()
            if self.configuration.hallucinating:
                return self.gaussian()
            return fit.refined(self._generator(0)).posterior

    def seen(self):
        """Rows of the items of the told duels."""
        told = np.array([duel[:2] for duel in self.run.told], dtype=np.intp)
        return self.items.rows[np.unique(told)]

    def best(self):
        """Index of the item of the largest posterior mean among those seen."""
        self.check_told()
        with self._threads():
            return self.items.add_row(best_seen(self.gaussian(), self.seen()))

    def _threads(self):
        return blas_threads(len(self.run.told))

    # -- the next question ---------------------------------------------------------------

    def _generator(self, counter):
        return np.random.default_rng([self.seed, counter])

    def _next(self, run):
        counter, rng = run.counter + 1, self._generator(run.counter + 1)
        near = _NEAR * np.sqrt(self.space.n_columns)
        allowed = exclusion(run, self.items, near)
        if len(run.told) + len(run.pending) < self.configuration.n_initial or not run.told:
            return run.ask([self._designed(run, allowed, rng)], counter, run.memory)
        memory, fit = run.memory, self.fit()

        def draw():
            nonlocal memory
            if not self.configuration.hallucinating:
                return fit.refined(rng).posterior
            posterior, margins = _model.hallucinate(fit, memory.margins, rng)
            memory = replace(memory, margins=margins)
            return posterior

        last_winner = self.items.rows[run.outcomes()[0][-1]]
        gaussian = fit.gaussian
        view = View(self.space, self.seen(), last_winner, gaussian, draw, allowed, rng)
        found = self._or_any(propose(self.configuration.strategy, view), run, rng)
        return run.ask([self._taken_in(found, allowed, rng)], counter, memory)

    def _designed(self, run, allowed, rng):
        for duel in self._initial[run.counter :]:
            return duel
        rows = initial_duel(self.space, self.seed, run.counter - len(self._initial))
        if not allowed(rows[0], rows[1][None])[0]:
            rows = self._or_any(random_duel(self.space, allowed, rng), run, rng)
        return self._taken_in(rows, allowed, rng)

    def _taken_in(self, rows, allowed, rng):
        """Indices of two rows; where both stand for the same floats, of two others."""
        for _ in range(_REDRAWS):
            if rows is None:
                break
            first, second = (self.items.add_row(row) for row in rows)
            if first != second:
                return first, second
            rows = random_duel(self.space, allowed, rng)
        raise ValueError(
            "No two items of the space can be told apart in floating point. Widen it, or shift "
            "and scale its parameters."
        )

    def _or_any(self, found, run, rng):
        """Where every duel was skipped before, all but the last skipped are free again."""
        if found is None and run.skipped:
            allowed = exclusion(replace(run, skipped=run.skipped[-1:]), self.items, 0.0)
            found = random_duel(self.space, allowed, rng)
        if found is None:
            raise ValueError(
                "No duel is left to ask: every other pair is pending or was just skipped. Tell a "
                "pending duel, undo the skip, or give more candidates."
            )
        return found

    # -- items ---------------------------------------------------------------------------

    def pair(self, duel):
        """Indices of the two items of a duel, which is checked."""
        try:
            first, second = duel
        except (TypeError, ValueError):
            raise ValueError(
                "A duel is a pair of items, as ask() returns it: an array of shape (2, d) or two "
                f"dicts, got {duel!r}."
            ) from None
        for item in (first, second):
            self.space.to_row(item)  # both are sound before either is taken in
        found = self.items.add(first), self.items.add(second)
        if found[0] == found[1]:
            raise ValueError(f"A duel needs two different items, got {first!r} twice.")
        return found

    def show(self, duel):
        """Copies of the items of a duel."""
        return [self.items.items[index].copy() for index in duel]

    def _dump(self, duel):
        return [self.space.dump(self.items.items[index]) for index in duel]

    def _load(self, duel):
        return tuple(self.items.add(self.space.load(values)) for values in duel)

    # -- the journal ---------------------------------------------------------------------

    def _open(self, description, seed):
        """Begin or replay the journal; the seed of the run."""
        records = [] if self._journal is None else self._journal.read()
        if records:
            seed = check_header(records[0], description, seed, self._journal.path)
            for number, record in enumerate(records[1:], start=2):
                self._replay(record, number)
            return seed
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._write(header(description, seed))
        return seed

    def _write(self, record):
        if self._journal is not None:
            self._journal.append(record)

    def _replay(self, record, number):
        try:
            _REPLAY[record["type"]](self, record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"Line {number} of the journal {self._journal.path} does not fit the run before "
                f"it ({type(error).__name__}: {error})."
            ) from error

    def _replay_ask(self, record):
        duels = [self._load(duel) for duel in record["duels"]]
        self.run = self.run.ask(duels, record["counter"], load_memory(record["memory"]))

    def _remember(self, record):
        self.run = replace(self.run, memory=load_memory(record["memory"]))
        self._past.append(self.run)
        return self._load(record["duel"])

    def _replay_tell(self, record):
        duel = self._remember(record)  # it changes the run
        self.run = self.run.tell(*duel, record["outcome"])

    def _replay_skip(self, record):
        duel = self._remember(record)
        self.run = self.run.skip(*duel)

    def _replay_undo(self, record):
        self.run = self._past.pop()


_REPLAY = {
    "ask": Session._replay_ask,
    "tell": Session._replay_tell,
    "skip": Session._replay_skip,
    "undo": Session._replay_undo,
}
