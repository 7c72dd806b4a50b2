"""The next question, the fit and the best item: pure functions of a state."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skpref._fitting import Fitted
from skpref._posterior import Posterior
from skpref._threads import blas_threads
from skpref.optimize import _model
from skpref.optimize._configuration import Configuration
from skpref.optimize._design import initial_duel
from skpref.optimize._model import Memory
from skpref.optimize._state import Items, Recalled, State, exclusion
from skpref.optimize._strategies import View, best_seen, propose, random_duel

# After a skip, until something is told, no duel this close to the skipped one is asked (unit
# cube, times the root of the number of columns); afterwards only that duel itself is left out.
_NEAR = 0.02
# Duels drawn, at most, for one whose items differ as floats.
_REDRAWS = 50
# By default the hyperparameters are learned anew once the duels have grown by this share.
_GROWTH = 0.04


class Questions:
    """What is asked next, given all that happened.

    Parameters
    ----------
    space : Box or Pool
    configuration : Configuration
    seed : int
    initial : list of pairs of items
        Asked first, as the space keeps them.
    """

    def __init__(self, space: Any, configuration: Configuration, seed: int, initial: list):
        self._space, self._configuration, self._seed = space, configuration, seed
        self._initial = initial
        # told, base, fit, memory: the last fit, as one value
        self._last: tuple[tuple, Recalled, Fitted, Memory] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_last": None}

    # -- the model -----------------------------------------------------------------------

    def fit(self, state: State) -> tuple[Fitted, Memory]:
        """The fit of the told duels, and what it leaves to the next.

        Raises
        ------
        NotFittedError
            If there are none.
        """
        check_told(state)
        last = self._last
        if last is None or last[0] is not state.told or last[1] is not state.base:
            winner, loser = state.outcomes()
            memory = state.base.memory
            every = self._configuration.refit_every or 1 + int(_GROWTH * len(winner))
            learning = memory.fitted_at == 0 or (
                self._modelled(state) and len(winner) >= memory.fitted_at + every
            )
            with blas_threads(len(winner)):
                found = _model.fit(
                    self._configuration.spec, memory, state.items.rows, winner, loser, learning
                )
            last = self._last = (state.told, state.base, *found)
        return last[2:]

    def posterior(self, state: State) -> Posterior:
        """The engine's posterior; of hallucinations, EP's."""
        fit, _ = self.fit(state)
        if self._configuration.hallucinating:
            return fit.gaussian
        with blas_threads(len(state.told)):
            return fit.refined(self._generator(0)).posterior

    def best(self, state: State) -> int:
        """Index of the item of the largest posterior mean among those seen."""
        fit, _ = self.fit(state)
        with blas_threads(len(state.told)):
            return state.items.with_row(best_seen(fit.gaussian, state.seen()), self._space)[1]

    def _modelled(self, state):
        return len(state.told) >= max(1, self._configuration.n_initial)

    # -- the next question ---------------------------------------------------------------

    def asked(self, state: State, n: int, owner: str) -> State:
        """The state after n more questions."""
        with blas_threads(len(state.told)):  # entered once for the fit and all the questions
            if n and self._modelled(state):
                memory = replace(self.fit(state)[1], margins=state.recalled.memory.margins)
                state = replace(state, recalled=Recalled(memory))
            for _ in range(n):
                state = self._next(state, owner)
        return state

    def _generator(self, counter):
        return np.random.default_rng([self._seed, counter])

    def _next(self, state, owner):
        rng, recalled = self._generator(state.counter + 1), state.recalled
        allowed = exclusion(state, _NEAR * np.sqrt(self._space.n_columns))
        designed = len(state.told) + len(state.pending) < self._configuration.n_initial
        if designed or not state.told:
            items, duel = self._designed(state, allowed, rng)
        else:
            rows, memory = self._modelled_rows(state, allowed, rng)
            items, duel = self._taken_in(state.items, rows, allowed, rng)
            if memory is not recalled.memory:
                recalled = Recalled(memory)
        return replace(state, items=items).asked([duel], owner, recalled)

    def _modelled_rows(self, state, allowed, rng):
        memory, fit = state.recalled.memory, self.fit(state)[0]

        def draw():
            nonlocal memory
            if not self._configuration.hallucinating:
                return fit.refined(rng).posterior
            posterior, margins = _model.hallucinate(fit, memory.margins, rng)
            memory = replace(memory, margins=margins)
            return posterior

        last_winner = state.items.rows[state.outcomes()[0][-1]]
        view = View(self._space, state.seen(), last_winner, fit.gaussian, draw, allowed, rng)
        found = propose(self._configuration.strategy, view)
        return self._or_any(found, state, rng), memory

    def _designed(self, state, allowed, rng) -> tuple[Items, tuple[int, int]]:
        for one, two in self._initial[state.counter :]:
            items, first = state.items.with_kept(one, self._space)
            items, second = items.with_kept(two, self._space)
            return items, (first, second)
        rows = initial_duel(self._space, self._seed, state.counter - len(self._initial))
        if not allowed(rows[0], rows[1][None])[0]:
            rows = self._or_any(random_duel(self._space, allowed, rng), state, rng)
        return self._taken_in(state.items, rows, allowed, rng)

    def _taken_in(self, items, rows, allowed, rng):
        """Items and two indices of rows; where both stand for the same floats, of two others."""
        for _ in range(_REDRAWS):
            if rows is None:
                break
            more, first = items.with_row(rows[0], self._space)
            more, second = more.with_row(rows[1], self._space)
            if first != second:
                return more, (first, second)
            rows = random_duel(self._space, allowed, rng)
        raise ValueError(
            "No two items of the space can be told apart in floating point. Widen it, or shift "
            "and scale its parameters."
        )

    def _or_any(self, found, state, rng):
        """Where every duel was skipped before, all but the last skipped are free again."""
        if found is None and state.skipped:
            allowed = exclusion(replace(state, skipped=state.skipped[-1:]), 0.0)
            found = random_duel(self._space, allowed, rng)
        if found is None:
            raise ValueError(
                "No duel is left to ask: every other pair is pending or was just skipped. Tell a "
                "pending duel, undo the skip, or give more candidates."
            )
        return found


def check_told(state: State) -> None:
    """Raise unless a duel was told."""
    if not state.told:
        raise NotFittedError("No duel was told yet: ask(), then tell(duel, outcome).")
