"""The next duel of a pool, by what its answer is expected to tell an estimator."""

import hashlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from skpref.active import all_pairs, query
from skpref.data import (
    DuelFrame,
    DuelScale,
    ItemTable,
    check_finite,
    check_items,
    distinct_rows,
    is_frame,
    number_consecutively,
    plain_frame,
    read,
    take_rows,
    warn_index_labels,
)
from skpref.fitting import Inspected, fix_hyperparameters, likelihood_of, without_component_warnings
from skpref.optimize._answers import TIE, label_of_outcome
from skpref.optimize._questions import check_answered
from skpref.optimize._spaces import Pool
from skpref.optimize._state import Layout, RunState, User


class DuelPool(NamedTuple):
    """Duels that may be asked.

    Attributes
    ----------
    space : Pool
        Their items.
    pairs : ndarray of int of shape (n_duels, 2)
        Positions in ``space.pool``; every pair once, whichever way round.
    turned : bool
        Whether either item may be shown first, as where the pool was given as items.
    duels : DuelFrame or ndarray of int of shape (n_duels, 2)
        The same as an estimator takes them: with features, under the names of their columns if
        these have some, or as positions in a table without any.
    """

    space: Pool
    pairs: NDArray[np.intp]
    turned: bool
    duels: Any

    def describe(self) -> list:
        """Return plain values that tell this pool of duels from others."""
        content = np.ascontiguousarray(self.pairs, dtype="<i8").tobytes()
        return [len(self.pairs), self.turned, hashlib.sha256(content).hexdigest()[:16]]


def duel_pool(pool: Any, table: Any = None) -> DuelPool:
    """Return the duels of a pool in any form that `ActiveLearner` takes.

    ``table`` is that of the estimator.

    Raises
    ------
    ValueError
        If it has none of these forms, or no duel of two different items.
    """
    items, pairs = _read_pool(pool, table)
    space = Pool(items)
    turned = pairs is None
    pairs = all_pairs(len(space.pool)) if turned else _pool_positions(space, items)[pairs]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    pairs = pairs[np.sort(first)]
    if not len(pairs):
        raise ValueError("The pool holds no duel of two different items.")
    duels = DuelFrame(_item_features(space, items), pairs) if space.has_features else pairs
    return DuelPool(space, pairs, turned, duels)


def _read_pool(pool, table):
    """Return the items of a pool, and positions of its duels; None if these are all pairs."""
    if isinstance(pool, DuelFrame):
        return pool.items, pool.pairs
    if is_frame(pool):
        shown = read(pool, table=check_items(table))
        named = shown.kind == "names" and shown.size == 2
        return (shown.table, shown.places()) if named else (pool, None)
    if isinstance(pool, ItemTable):
        return pool, None
    listed = np.asarray(pool)
    if listed.ndim == 3 and listed.shape[1] == 2:
        rows = listed.reshape(-1, listed.shape[2])
        if listed.dtype.kind == "f":
            places, remedy = number_consecutively(len(listed), 2), "fill the gaps first"
            check_finite(rows, pairs=places, given="pool", remedy=remedy)
        items, code = distinct_rows(rows)
        return items, code.reshape(-1, 2)
    if listed.ndim != 2:
        raise ValueError(
            "A pool holds duels, shape (n_duels, 2, n_features), or items, shape (n_items, "
            f"n_features); got shape {listed.shape}."
        )
    return (pool, None) if listed.dtype.kind == "f" else _read_positions(pool, listed, table)


def _read_positions(pool, listed, table):
    """Return the table of items, and the positions of duels given by position or name."""
    items = check_items(table)
    shown = read(pool, table=items)
    if items is None or shown.size != 2 or shown.kind not in ("positions", "names"):
        raise ValueError(
            "A pool of positions (integers) or names has shape (n_duels, 2), and the "
            "estimator the table that they refer to as items=, with names for names; got "
            f"{listed.dtype} of shape {listed.shape}"
            f"{' and no table' if items is None else f' and {items!r}'}."
        )
    if shown.kind == "positions" and is_frame(table):
        warn_index_labels(items)
    return items, shown.places()


def _item_features(space, items):
    """Return the features of a pool's items: a frame if the pool is one, else an array."""
    frame = items.frame if isinstance(items, ItemTable) else items
    if is_frame(frame) and all(isinstance(name, str) for name in frame.columns):
        return take_rows(plain_frame(frame), np.array(space.places))
    return np.array([space.to_item(row) for row in space.pool])


def _pool_positions(space, items):
    """Return positions in the pool of the rows of its candidates."""
    if not space.has_features:
        return np.arange(len(space.pool))
    features = items.X if isinstance(items, ItemTable) else np.asarray(items, dtype=np.float64)
    return np.array([space.index(row) for row in features])


def final_estimator(estimator: BaseEstimator) -> BaseEstimator:
    """Return the model of preferences at the end of a pipeline or within a search."""
    while hasattr(estimator, "steps") or hasattr(estimator, "estimator"):
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator.estimator
    return estimator


class PoolConfiguration(NamedTuple):
    """Checked arguments of a learner, and which answers it takes."""

    pool: DuelPool
    estimator: BaseEstimator
    strategy: str | Callable
    options: dict
    n_initial: int
    repeat: bool
    users: list | None = None
    refit_every: int = 1

    @property
    def models(self) -> Self:
        """Return itself, which a session asks in the place of `Models`."""
        return self

    @property
    def theta(self) -> NDArray[np.float64]:
        """Return no hyperparameters: those of the estimator are its own."""
        return np.zeros(0)

    @property
    def duel_scale(self) -> DuelScale:
        """Return the scale of outcomes of the estimator's likelihood."""
        return likelihood_of(final_estimator(self.estimator)).duel_scale

    def check_takes_answer(self, outcome: int | str | dict, n: int) -> None:
        """Raise ValueError unless the estimator takes such an answer to n items."""
        if n > 2:
            raise ValueError(f"A learner asks duels, two items each; got {n} items.")
        if isinstance(outcome, dict):
            raise ValueError(
                "A learner takes no none=: its estimator has no outside option among the items. "
                "Tell 1 or 0, or None to skip."
            )
        self.duel_scale.check_told(label_of_outcome(outcome))


class PoolQuestions:
    """The next question, a function of the events and the seed alone."""

    def __init__(self, space: Any, configuration: PoolConfiguration, seed: int, initial: list):
        self._space, self._configuration, self._seed = space, configuration, seed
        self._place = {row.tobytes(): k for k, row in enumerate(space.pool)}
        pairs = np.sort(configuration.pool.pairs, axis=1).tolist()
        self._row = {tuple(pair): row for row, pair in enumerate(pairs)}
        # The answers, and the estimator fitted to them; the same of the last search.
        self._last: tuple[tuple, BaseEstimator] | None = None
        self._searched: tuple[tuple, BaseEstimator] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_last": None, "_searched": None}

    # -- the model -----------------------------------------------------------------------

    def fit(self, state: RunState) -> BaseEstimator:
        """Return the estimator fitted to the answers; NotFittedError if there is nothing to fit."""
        check_answered(state)
        if all(each.outcome == TIE for each in state.answers):
            raise NotFittedError(
                f"{len(state.answers)} duel(s) were told, all of them ties, which say nothing of "
                "what is better: ask(), then tell(duel, outcome) until an item wins."
            )
        if self._last is None or self._last[0] is not state.answers:
            n, every = len(state.answers), self._configuration.refit_every
            searched = n if n < every else n - n % every
            if all(each.outcome == TIE for each in state.answers[:searched]):
                searched = n  # ties alone tell no estimator that there are duels
            if self._searched is None or self._searched[0] != state.answers[:searched]:
                own = clone(self._configuration.estimator)
                unseeded = [
                    name
                    for name, value in own.get_params().items()
                    if name.rpartition("__")[2] == "random_state" and value is None
                ]
                own.set_params(**dict.fromkeys(unseeded, self._seed % 2**32))
                answers = state.answers[:searched]
                self._searched = (answers, self._fit_estimator(own, state, answers))
            own = self._searched[1]
            if searched < n:
                own = self._fit_estimator(fix_hyperparameters(own), state, state.answers)
            self._last = (state.answers, own)
        return self._last[1]

    def posterior(self, state: RunState) -> Any:
        """Return the posterior of the fitted estimator."""
        fitted = self.fit(state)
        if self._configuration.users is None:
            return Inspected.from_model(fitted).posterior
        return final_estimator(fitted).posterior_

    def _fit_estimator(self, estimator, state, answers):
        """Return an estimator after it was fitted to answers."""
        X, y, order = self._training_data(state, answers)
        counts = likelihood_of(final_estimator(estimator)).uses_order
        metadata = {"order": order} if counts and has_fit_parameter(estimator, "order") else {}
        if self._configuration.users is not None:
            by_step = hasattr(estimator, "steps") and not get_config()["enable_metadata_routing"]
            step = f"{estimator.steps[-1][0]}__" if by_step else ""
            metadata[f"{step}users"] = [each.user for each in answers]
        with without_component_warnings():  # further questions join the items
            return estimator.fit(X, y, **metadata)

    def _training_data(self, state, answers):
        """Return duels, outcomes, and who was shown first, as the estimator takes them."""
        places = np.array([self._pool_positions(state, each.items) for each in answers])
        order = np.ones(len(places), dtype=int)
        scale = self._configuration.duel_scale
        if scale.n_columns == 2:
            y = np.array([each.outcome for each in answers])
        else:
            y = np.array([label_of_outcome(each.outcome) for each in answers])
            if scale.ties and not np.any(y < 0):  # 0 is read as a tie where a label is below 0
                swapped = np.flatnonzero(y)[:1]
                places[swapped], y[swapped], order[swapped] = places[swapped, ::-1], -y[swapped], -1
        duels = self._configuration.pool.duels
        if isinstance(duels, DuelFrame):
            duels = DuelFrame(duels.items, places)
            return duels.to_numpy() if duels.columns is None else duels, y, order
        return places, y, order

    def _pool_positions(self, state, items):
        """Return positions in the pool of items of a state."""
        return [self._place[state.items.rows[index].tobytes()] for index in items]

    # -- the next question ---------------------------------------------------------------

    def with_questions(
        self, state: RunState, n: int, layouts: Sequence[Layout], user: User = None
    ) -> RunState:
        """Return the state after n more questions, all to one user if one is named."""
        for _ in range(n):
            recipient, row, turned = self._choose_question(state, user)
            items, indices = state.items, []
            for place in self._configuration.pool.pairs[row][:: -1 if turned else 1]:
                items, index = items.with_row(self._space.pool[place], self._space)
                indices.append(index)
            state = replace(state, items=items).with_questions(
                [tuple(indices)], state.recalled, [recipient]
            )
        return state

    def _choose_question(self, state, user):
        """Return who is asked next, the duel's row in the pool, and whether it is turned round."""
        configuration = self._configuration
        rng = np.random.default_rng([self._seed, state.counter + 1])
        askable = self._askable_duels(state, user)
        pending = self._askable_places(state, state.pending, askable)
        free = self._free_duels(state, pending, askable)
        is_swapped = configuration.pool.turned and bool(rng.random() < 0.5)
        n_asked = len(state.answers) + len(state.pending)
        decided = any(each.outcome != TIE for each in state.answers)
        if n_asked < configuration.n_initial or not decided:
            return *askable.user_and_row(int(rng.choice(np.flatnonzero(free)))), is_swapped
        waiting = np.zeros(len(free), dtype=bool)
        waiting[pending] = True
        estimator, duels, metadata = self.fit(state), configuration.pool.duels, {}
        if configuration.users is not None:
            duels, metadata = duels[askable.rows], {"users": askable.users}
        if callable(configuration.strategy):  # the fit and the pool serve more questions
            estimator, duels = deepcopy((estimator, duels))
        chosen = query(
            estimator,
            duels,
            configuration.strategy,
            answered=~free & ~waiting,
            pending=pending,
            random_state=rng,
            **metadata,
            **configuration.options,
        )
        return *askable.user_and_row(int(chosen[0])), is_swapped

    def _askable_duels(self, state, user):
        """Return every duel of the pool, of one user or of everybody known."""
        listed = self._configuration.users
        met = (each.user for each in (*state.answers, *state.pending, *state.skipped))
        people = list(dict.fromkeys([None] if listed is None else [*listed, *met]))
        beside = []
        if user is not None:
            people = [user]
            for each in state.pending:
                row = self._row.get(tuple(sorted(self._pool_positions(state, each.items))))
                if each.user != user and row is not None:
                    beside.append((each.user, row))
        if not people:
            raise ValueError(
                "Nobody is known who could be asked: users= is empty, and nobody was asked yet. "
                "Say who is to be asked, ask(user=...)."
            )
        return AskableDuels(people, len(self._configuration.pool.pairs), beside)

    def _free_duels(self, state, pending, askable):
        """Return which duels may be asked; ValueError if none may."""
        free = np.arange(askable.size) < len(askable.people) * askable.n_duels
        free[pending] = False
        if not self._configuration.repeat:
            free[self._askable_places(state, state.answers, askable)] = False
        skipped = self._askable_places(state, state.skipped, askable)
        if free[skipped].sum() == free.sum():
            skipped = skipped[-1:]
        free[skipped] = False
        if not free.any():
            recipient = askable.people[0] if len(askable.people) == 1 else None
            of = "" if recipient is None else f" {recipient!r}"
            raise ValueError(
                f"No duel is left to ask{of}: every one of the pool is answered, pending, or was "
                "just skipped. Tell a pending duel, undo the skip, or let duels be asked again by "
                "repeat=True."
            )
        return free

    def _askable_places(self, state, entries, askable) -> NDArray[np.intp]:
        """Return places of answered, pending or skipped duels among those that may be asked."""
        places = []
        for each in entries:
            row = self._row.get(tuple(sorted(self._pool_positions(state, each.items))))
            place = None if row is None else askable.place_of(each.user, row)
            if place is not None:
                places.append(place)
        return np.array(places, dtype=np.intp)


class AskableDuels:
    """Pairs of a user and a duel of the pool that may be asked, and the pending ones.

    Parameters
    ----------
    people : list
        Ids, of whom each may be asked every duel; ``[None]`` where there are no several users.
    n_duels : int
        Size of the pool.
    beside : list of (user, row)
        Pending questions to others.
    """

    def __init__(self, people: list, n_duels: int, beside: list):
        self.people, self.n_duels, self._beside = people, n_duels, beside
        self._code = {user: code for code, user in enumerate(people)}

    @property
    def size(self) -> int:
        """Number of pairs of a user and a duel."""
        return len(self.people) * self.n_duels + len(self._beside)

    def place_of(self, user: User, row: int) -> int | None:
        """Return the place of a user and a row of the pool; None if they have none."""
        if user in self._code:
            return self._code[user] * self.n_duels + row
        if (user, row) in self._beside:
            return len(self.people) * self.n_duels + self._beside.index((user, row))
        return None

    def user_and_row(self, place: int) -> tuple[User, int]:
        """Return the user and the row of the pool at a place."""
        code, row = divmod(place, self.n_duels)
        if code < len(self.people):
            return self.people[code], row
        return self._beside[place - len(self.people) * self.n_duels]

    @property
    def rows(self) -> NDArray[np.intp]:
        """Row of the pool of each."""
        own = np.tile(np.arange(self.n_duels), len(self.people))
        return np.r_[own, np.array([row for _, row in self._beside], dtype=np.intp)]

    @property
    def users(self) -> list:
        """User of each."""
        own = [user for user in self.people for _ in range(self.n_duels)]
        return own + [user for user, _ in self._beside]
