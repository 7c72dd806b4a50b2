"""The next question, the fit and the best item: pure functions of a state."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from skpref._utils import blas_threads
from skpref.fitting import Fitted, hyperparameter_spread
from skpref.gp import Posterior
from skpref.optimize import _model
from skpref.optimize._configuration import Configuration
from skpref.optimize._gain import ExpectedGain, GainContext, expected_gain, is_close_enough
from skpref.optimize._layouts import best_layout
from skpref.optimize._maximiser import EFFORT, candidate_rows
from skpref.optimize._model import Memory
from skpref.optimize._segments import propose_grid, random_grid
from skpref.optimize._state import Items, Layout, Recalled, RunState, exclusion
from skpref.optimize._strategies import (
    AskContext,
    best_answered,
    may_be_asked,
    propose,
    random_question,
    spread_question,
)

# After a skip, until something is told, no question this close to the skipped one is asked (unit
# cube, times the root of the number of columns); afterwards only that one itself is left out.
# Without hallucinations the items of a set are this far apart: one posterior has one best item.
_NEAR = 0.02
# By default the hyperparameters are learned anew once the answers have grown by this share.
_GROWTH = 0.04


class NoneLeft(ValueError):
    """No question of a layout is left."""


class Questions:
    """The next question, given all events.

    ``initial`` are the pairs of items that are asked first, as the space keeps them.
    """

    def __init__(self, space: Any, configuration: Configuration, seed: int, initial: list):
        self._space, self._configuration, self._seed = space, configuration, seed
        self._initial = initial
        self._near = _NEAR * np.sqrt(space.n_columns)
        # told, base, fit, memory: the last fit, as one value
        self._last: tuple[tuple, Recalled, Fitted, Memory] | None = None
        # a fit, and how far its hyperparameters are spread
        self._spread: tuple[Fitted, NDArray[np.float64]] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_last": None, "_spread": None}

    # -- the model -----------------------------------------------------------------------

    def fit(self, state: RunState) -> tuple[Fitted, Memory]:
        """The fit of the answers, and the state for the next fit."""
        check_told(state)
        last = self._last
        if last is None or last[0] is not state.told or last[1] is not state.base:
            models, memory, told = self._configuration.models, state.base.memory, state.told
            every = self._configuration.refit_every or 1 + int(_GROWTH * len(told))
            due = len(told) >= memory.fitted_at + every or models.has_new(told, memory.fitted_at)
            learning = memory.fitted_at == 0 or (due and self._modelled(state))
            with blas_threads(state.most_rows):
                found = _model.fit(models, memory, state.items.rows, told, learning)
            last = self._last = (state.told, state.base, *found)
        return last[2:]

    def posterior(self, state: RunState) -> Posterior:
        """The engine's posterior; where noisy margins are believed, EP's."""
        fit, _ = self.fit(state)
        if self._configuration.believing:
            return fit.gaussian
        with blas_threads(state.most_rows):
            return fit.refined(self._generator(0)).posterior

    def best(self, state: RunState) -> int:
        """Index of the item of the largest posterior mean among those seen."""
        fit, _ = self.fit(state)
        with blas_threads(state.most_rows):
            return state.items.with_row(best_answered(fit.gaussian, state.seen()), self._space)[1]

    # -- whether to go on ----------------------------------------------------------------

    def gain(self, state: RunState) -> ExpectedGain:
        """What is to be gained by one more question."""
        context = self._gain_context(state)
        with blas_threads(state.most_rows):
            return expected_gain(context)

    def is_close_enough(self, state: RunState, probability: float, within: float) -> bool:
        """Whether the best item is near the best of the space so probably; not in the design."""
        if not state.told or not self._modelled(state):
            return False
        context = self._gain_context(state)
        with blas_threads(state.most_rows):
            return is_close_enough(context, probability, within)

    def _gain_context(self, state):
        fitted, best = self.fit(state)[0], self.best(state)
        # A stream of its own: no random number of a question is used up.
        rng = np.random.default_rng([self._seed, len(state.told), 1])
        return GainContext(fitted, self._space, state.seen(), state.items.rows[best], rng)

    def _modelled(self, state):
        """Whether the design is answered; a question of k items is k/2 duels of it."""
        n_shown = sum(len(each.items) for each in state.told)
        return n_shown >= 2 * max(1, self._configuration.n_initial)

    # -- the next question ---------------------------------------------------------------

    def asked(
        self,
        state: RunState,
        n: int,
        layouts: Sequence[Layout],
        given: tuple[int, ...] = (),
    ) -> RunState:
        """The state after n more questions of that one of some layouts that suits it best.

        Each begins with the items of the indices ``given``.
        """
        with blas_threads(state.most_rows):  # entered once for the fit and all the questions
            if n and self._modelled(state):
                memory = replace(self.fit(state)[1], margins=state.recalled.memory.margins)
                state = replace(state, recalled=Recalled(memory))
            *others, last = self._layouts(state, layouts)
            for layout in others:
                try:
                    return self._after(state, n, layout, given)
                except NoneLeft:
                    continue
            return self._after(state, n, last, given)

    def _after(self, state, n, layout, given):
        """After n more questions of a layout, or NoneLeft."""
        for _ in range(n):
            state = self._next(state, layout.size, layout.form, given)
        return state

    def _layouts(self, state, layouts):
        """Layouts, the one that suits the next question first; initial duels are asked as sets."""
        sets = [each for each in layouts if each.form is None]
        best = best_layout(layouts, len(state.told), self._space.n_dimensions)
        if sets and self._unasked(state):
            best = min(sets, key=lambda each: each.size)
        return [best, *(each for each in layouts if each != best)]

    def _unasked(self, state):
        """The initial duels of which no question or answer holds both items yet."""
        if not self._initial:
            return []
        every = (*state.pending, *state.told, *state.skipped)
        held, left = [frozenset(each.items) for each in every], []
        n_before: Counter = Counter()
        for duel in self._initial:
            rows = [self._space.to_row(value) for value in duel]
            found = frozenset(state.items.find(row, self._space.same) for row in rows)
            n_held = sum(found <= each for each in held)
            if n_before[found] >= n_held or None in found:
                left.append(duel)
            n_before[found] += 1
        return left

    def _generator(self, counter):
        return np.random.default_rng([self._seed, counter])

    def _next(self, state, size, form, given):
        rng, recalled = self._generator(state.counter + 1), state.recalled
        allowed = exclusion(state, self._space, self._near, size)
        n_shown = sum(len(each.items) for each in (*state.told, *state.pending))
        designed = n_shown < 2 * self._configuration.n_initial or not state.told
        if form is not None:
            items, asked, recalled = self._on_grid(state, allowed, form, rng, designed)
        elif designed or (not given and self._unasked(state)):
            items, asked = self._designed(state, allowed, size, rng, given)
        else:
            rows = state.items.rows[list(given)] if given else None
            found, memory = self._proposed(state, allowed, rng, size, rows)
            found = self._or_any(found, state, size, rng, rows)
            items, asked = self._taken_in(state.items, found, allowed, rng, rows)
            if memory is not recalled.memory:
                recalled = Recalled(memory)
        return replace(state, items=items).asked([asked], recalled, form=form)

    def _on_grid(self, state, allowed, form, rng, designed):
        """Items, the indices of the next line or plane, and what it leaves to the next question."""
        recalled = state.recalled

        def free(rows, of=state, near=self._near):
            return may_be_asked(rows, exclusion(of, self._space, near, len(rows)))

        if designed:
            anchor = state.items.rows[state.last_winner] if state.told else None
            rows = random_grid(self._space, anchor, form, rng, free)
        else:
            strategy = self._configuration.turn(len(state.told) + len(state.pending), "grid")
            view, memory = self._view(strategy, state, allowed, rng)
            rows = propose_grid(strategy, view, form, free)
            if memory() is not recalled.memory:
                recalled = Recalled(memory())
        if rows is None:  # through any item; of those skipped all but the last are free again
            last = replace(state, skipped=state.skipped[-1:])
            rows = random_grid(self._space, None, form, rng, lambda rows: free(rows, last, 0.0))
        items, places = state.items, []
        for row in () if rows is None else rows:
            items, index = items.with_row(row, self._space)
            places.append(index)
        asked = tuple(dict.fromkeys(places))
        if len(asked) < 2:
            raise NoneLeft(
                f"No {form.kind} is left to ask: every other one is pending, asked by this call or "
                "was just skipped, or its points cannot be told apart. Tell a pending one, ask for "
                "fewer, or undo the skip."
            )
        return items, asked, recalled

    def _proposed(self, state, allowed, rng, size, given):
        """Rows of the next duel or set, None if none is allowed, and the memory after that."""
        number = len(state.told) + len(state.pending)
        kind = "duel" if size == 2 else "set" if given is None else "joining"
        strategy = self._configuration.turn(number, kind)
        context, memory = self._view(strategy, state, allowed, rng, size, given)
        return propose(strategy, context), memory()

    def _view(self, strategy, state, allowed, rng, size=2, given=None):
        """What a strategy may look at, and a function that gives the memory after that."""
        memory, fit = state.recalled.memory, self.fit(state)[0]
        hallucinating = self._configuration.hallucinating and strategy.inference != "ep"
        best = fit

        def draw():
            nonlocal memory, fit
            if strategy.hyperparameters == "drawn":
                fit = self._redrawn(best, rng)
            if strategy.inference == "ep":
                return fit.gaussian
            if not hallucinating:
                return fit.refined(rng).posterior
            posterior, margins = _model.hallucinate(fit, memory.margins, rng)
            memory = replace(memory, margins=margins)
            return posterior

        last_winner = state.items.rows[state.last_winner]
        apart = 0.0 if hallucinating else self._near
        view = AskContext(
            self._space, state.seen(), last_winner, fit.gaussian, draw, allowed, rng, size, apart
        )
        return view._replace(first_rows=given), lambda: memory

    def _redrawn(self, fit, rng):
        """A fit at hyperparameters drawn from their posterior around those of a fit."""
        if not len(fit.model.theta):
            return fit
        if self._spread is None or self._spread[0] is not fit:
            state = fit.evaluation.approximation.state
            self._spread = (fit, hyperparameter_spread(fit.model, fit.comparisons, state))
        return _model.redrawn(fit, self._spread[1], rng)

    def _designed(self, state, allowed, size, rng, given):
        """Items and the indices of the next of the design.

        The first are those of initial duels, as many as there is room for; then come Sobol points.
        """
        if given:
            return self._designed_beside(state, allowed, size, rng, state.items.rows[list(given)])
        items, asked = self._first(state, size)
        rows = self._space.initial_rows(self._seed, state.shown, size - len(asked))
        if asked or may_be_asked(rows, allowed):
            more, whole = items, asked
            for row in rows:
                more, index = more.with_row(row, self._space)
                whole = [*whole, index]
            if len(set(whole)) == size:
                return more, tuple(whole)
        first = items.rows[asked] if asked else None
        rows = random_question(self._space, allowed, rng, size, first)
        rows = self._or_any(rows, state, size, rng, first)
        return self._taken_in(items, rows, allowed, rng, first)

    def _first(self, state, size):
        """Items and the indices of those of the next initial duels that there is room for."""
        asked: list[int] = []
        items = state.items
        for duel in self._unasked(state):
            known, both = items, []
            for value in duel:
                known, index = known.with_kept(value, self._space)
                both.append(index)
            both = [index for index in both if index not in asked]
            if len(asked) + len(both) > size:
                break
            items, asked = known, asked + both
        return items, asked

    def _designed_beside(self, state, allowed, size, rng, given):
        """The same where items are given: with them those farthest from all that were shown."""
        rows = candidate_rows(self._space, np.zeros((0, self._space.n_columns)), rng)
        found = spread_question(rows, given, state.items.rows, allowed, size)
        if found is None:
            found = random_question(self._space, allowed, rng, size, given)
        found = self._or_any(found, state, size, rng, given)
        return self._taken_in(state.items, found, allowed, rng, given)

    def _taken_in(self, items, rows, allowed, rng, given=None) -> tuple[Items, tuple[int, ...]]:
        """Items and the indices of rows; where two stand for the same floats, of others."""
        for _ in range(EFFORT.n_tries):
            if rows is None:
                break
            more, asked = items, []
            for row in rows:
                more, index = more.with_row(row, self._space)
                asked.append(index)
            if len(set(asked)) == len(rows):
                return more, tuple(asked)
            rows = random_question(self._space, allowed, rng, len(rows), given)
        raise ValueError(
            "No two items of the space can be told apart in floating point. Widen it, or shift "
            "and scale its parameters."
        )

    def _or_any(self, found, state, size, rng, given=None):
        """Where every question was skipped before, or just a tie, all but the last skipped are free
        again, and of ties the last if need be."""
        last = replace(state, skipped=state.skipped[-1:])
        for seen, near in ((replace(last, told=state.told[-1:]), self._near), (last, 0.0)):
            if found is None:
                allowed = exclusion(seen, self._space, near, size)
                found = random_question(self._space, allowed, rng, size, given)
        if found is None:
            what, other = ("duel", "pair") if size == 2 else ("set", f"set of {size}")
            raise NoneLeft(
                f"No {what} is left to ask: every other {other} is pending, asked by this call or "
                f"was just skipped, or there are fewer than {size} items. Tell a pending {what}, "
                "ask for fewer, undo the skip, or give a wider space or more candidates."
            )
        return found


def check_told(state: RunState) -> None:
    """Raise unless there is an answer."""
    if not state.told:
        raise NotFittedError("No duel was told yet: ask(), then tell(duel, outcome).")
