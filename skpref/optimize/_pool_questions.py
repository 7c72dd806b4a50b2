"""The next duel of a pool, by what its answer is expected to tell an estimator."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from skpref._inspected import Inspected
from skpref._posterior import Posterior
from skpref.active import query
from skpref.optimize._answers import TIE
from skpref.optimize._duel_pool import DuelPool
from skpref.optimize._questions import check_told
from skpref.optimize._state import State


class Takes:
    """Which answers an estimator takes, in the place of `Models`: it has no memory of its own.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator: BaseEstimator):
        self.theta = np.zeros(0)
        found = estimator.get_params()
        self.ties = any(
            value is not None
            for name, value in found.items()
            if name.rpartition("__")[2] == "tie_threshold"
        )

    def check_takes(self, outcome: int | str | dict, n: int) -> None:
        """Raise ValueError unless the estimator takes such an answer to n items."""
        if n > 2:
            raise ValueError(f"A learner asks duels, two items each; got {n} items.")
        if outcome == TIE and not self.ties:
            raise ValueError(
                "The estimator has no ties. Give it a threshold, such as tie_threshold=0.1, or "
                "skip the duel."
            )


class PoolConfiguration(NamedTuple):
    """Checked arguments of a learner; ``models`` is what a session asks."""

    pool: DuelPool
    estimator: BaseEstimator
    strategy: str | Callable
    options: dict
    n_initial: int
    repeat: bool
    models: Takes


class PoolQuestions:
    """What is asked next, a function of what happened and of the seed alone.

    Parameters
    ----------
    space : Pool
    configuration : PoolConfiguration
    seed : int
    initial : list
        Empty.
    """

    def __init__(self, space: Any, configuration: PoolConfiguration, seed: int, initial: list):
        self._space, self._configuration, self._seed = space, configuration, seed
        self._place = {row.tobytes(): k for k, row in enumerate(space.pool)}
        pairs = np.sort(configuration.pool.pairs, axis=1).tolist()
        self._row = {tuple(pair): row for row, pair in enumerate(pairs)}
        self._last: tuple[tuple, BaseEstimator] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_last": None}

    # -- the model -----------------------------------------------------------------------

    def fit(self, state: State) -> BaseEstimator:
        """The estimator fitted to what was told.

        Raises
        ------
        NotFittedError
            If there is nothing to fit.
        """
        check_told(state)
        if self._last is None or self._last[0] is not state.told:
            own = clone(self._configuration.estimator)
            unseeded = [
                name
                for name, value in own.get_params().items()
                if name.rpartition("__")[2] == "random_state" and value is None
            ]
            own.set_params(**dict.fromkeys(unseeded, self._seed % 2**32))
            X, y, order = self._training(state)
            if has_fit_parameter(own, "order"):
                own.fit(X, y, order=order)
            else:
                own.fit(X, y)
            self._last = (state.told, own)
        return self._last[1]

    def posterior(self, state: State) -> Posterior:
        """The posterior of the fitted estimator."""
        return Inspected.of(self.fit(state)).posterior

    def _training(self, state):
        """Duels, outcomes, and who was shown first."""
        asked = np.array([self._places(state, each.items) for each in state.told])
        order = np.ones(len(asked), dtype=int)
        if not self._configuration.models.ties:
            y = np.array([outcome for _, outcome in state.told])
        else:
            y = np.array([{1: 1, 0: -1, TIE: 0}[outcome] for _, outcome in state.told])
            if not np.any(y == -1):  # 0 is read as a tie where there is a -1
                turned = np.flatnonzero(y == 1)[:1]
                asked[turned], y[turned], order[turned] = asked[turned, ::-1], -1, -1
        if not self._space.has_features:
            return asked, y, order
        items = np.array([self._space.to_item(row) for row in self._space.pool[asked.ravel()]])
        return items.reshape(*asked.shape, -1), y, order

    def _places(self, state, items):
        return [self._place[state.items.rows[index].tobytes()] for index in items]

    # -- the next question ---------------------------------------------------------------

    def asked(self, state: State, n: int, size: int, owner: str) -> State:
        """The state after n more questions."""
        for _ in range(n):
            row, turned = self._next(state)
            items, asked = state.items, []
            for place in self._configuration.pool.pairs[row][:: -1 if turned else 1]:
                items, index = items.with_row(self._space.pool[place], self._space)
                asked.append(index)
            state = replace(state, items=items).asked([tuple(asked)], owner, state.recalled)
        return state

    def _next(self, state):
        configuration = self._configuration
        rng = np.random.default_rng([self._seed, state.counter + 1])
        pending = self._rows(state, state.pending)
        free = self._free(state, pending)
        turned = configuration.pool.turned and bool(rng.random() < 0.5)
        n_asked = len(state.told) + len(state.pending)
        decided = any(outcome != TIE for _, outcome in state.told)
        if n_asked < configuration.n_initial or not decided:
            return int(rng.choice(np.flatnonzero(free))), turned
        waiting = np.zeros(len(free), dtype=bool)
        waiting[pending] = True
        chosen = query(
            self.fit(state),
            configuration.pool.duels,
            configuration.strategy,
            answered=~free & ~waiting,
            pending=pending,
            random_state=rng,
            **configuration.options,
        )
        return int(chosen[0]), turned

    def _free(self, state, pending):
        """Duels that may be asked; where only skipped ones are left, all but the last of these."""
        free = np.ones(len(self._configuration.pool.pairs), dtype=bool)
        free[pending] = False
        if not self._configuration.repeat:
            free[self._rows(state, state.told)] = False
        skipped = self._rows(state, state.skipped)
        if free[skipped].sum() == free.sum():
            skipped = skipped[-1:]
        free[skipped] = False
        if not free.any():
            raise ValueError(
                "No duel is left to ask: every one of the pool is answered, pending, or was just "
                "skipped. Tell a pending duel, undo the skip, or let duels be asked again by "
                "repeat=True."
            )
        return free

    def _rows(self, state, entries) -> NDArray[np.intp]:
        """Rows of the pool that answered, pending or skipped duels are; those outside are none."""
        pairs = (tuple(sorted(self._places(state, each.items))) for each in entries)
        found = [self._row[pair] for pair in pairs if pair in self._row]
        return np.array(found, dtype=np.intp)
