"""The next question, the fit and the best item: pure functions of a state."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
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
from skpref.optimize._costs import (
    GAIN_STRATEGY,
    QuestionCost,
    are_new_rows,
    best_duel_by_cost,
    count_new_rows,
)
from skpref.optimize._gain import ExpectedGain, GainContext, expected_gain, is_close_enough
from skpref.optimize._layouts import best_layout
from skpref.optimize._limits import hold_parameters
from skpref.optimize._maximiser import EFFORT, candidate_rows, maximise
from skpref.optimize._model import Memory
from skpref.optimize._segments import propose_grid, random_grid
from skpref.optimize._state import Items, Layout, RunState, make_exclusion_rule
from skpref.optimize._strategies import (
    AskContext,
    acquisition_surface,
    best_mean_row,
    extend_question,
    farthest_question,
    may_be_asked,
    propose,
    random_question,
    random_rows,
)
from skpref.optimize._usability import Usability, usable_space

# After a skip, until something is told, no question this close to the skipped one is asked (unit
# cube, times the root of the number of columns); afterwards only that one itself is left out.
# Without hallucinations the items of a set are this far apart: one posterior has one best item.
_NEAR = 0.02
# By default the hyperparameters are learned anew once the answers have grown by this share.
_GROWTH = 0.04


class NoQuestionLeftError(ValueError):
    """No question of a layout is left."""


class Questions:
    """The next question after all events.

    ``initial`` are the pairs of items that are asked first, as the space keeps them.
    """

    def __init__(self, space: Any, configuration: Configuration, seed: int, initial: list):
        self._space, self._configuration, self._seed = space, configuration, seed
        self._initial = initial
        self._near = _NEAR * np.sqrt(space.n_columns)
        # told, base, fit, memory: the last fit, as one value
        self._last: tuple[tuple, Memory, Fitted, Memory] | None = None
        # a fit, and how far its hyperparameters are spread
        self._spread: tuple[Fitted, NDArray[np.float64]] | None = None
        # the parameters that questions hold, and the copy that last held some
        self._fixed: tuple = ()
        self._last_part: Questions | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_last": None, "_spread": None, "_last_part": None}

    def _questions_with_fixed(self, fixed):
        """Return questions of the part of the space where parameters are fixed.

        The last such copy is kept.
        """
        part = self._last_part
        if part is None or part._fixed != fixed:
            self._last_part = part = copy(self)
            part._space, part._fixed = hold_parameters(self._space, fixed), fixed
            part._initial, part._last_part = [], None
        return part

    # -- the model -----------------------------------------------------------------------

    def fit(self, state: RunState) -> tuple[Fitted, Memory]:
        """Return the fit of the answers, and the memory for the next fit."""
        if self._extremes is None:
            check_answered(state)
        last = self._last
        data = state.answers, state.values
        if last is None or last[0] != data or last[1] is not state.base:
            models, memory, answers = self._configuration.models, state.base, state.answers
            every = self._configuration.refit_every or 1 + int(_GROWTH * len(answers))
            due = len(answers) >= memory.fitted_at + every or models.has_new_parameters(
                answers, memory.fitted_at
            )
            due |= bool(state.values)  # which may come at any time
            first = memory.fitted_at == 0 and len(answers) > 0
            learning = first or (due and self._is_design_answered(state))
            with blas_threads(state.max_rows):
                rows = state.items.rows
                fitted_and_memory = _model.fit(models, memory, rows, answers, learning, data[1])
            last = self._last = (data, state.base, *fitted_and_memory)
        return last[2:]

    def posterior(self, state: RunState) -> Posterior:
        """Return the engine's posterior; where noisy margins are believed, EP's."""
        fit, _ = self.fit(state)
        if self._configuration.believing:
            return fit.gaussian
        with blas_threads(state.max_rows):
            return fit.refine_with_engine(self._make_generator(0)).posterior

    def best_item(
        self, state: RunState, probability_usable: float | None = None, fixed: tuple = ()
    ) -> Any:
        """Return the item of the largest posterior mean, as the space keeps it.

        It is one that answers are about; of all items where there are earlier people, or parameters
        are ``fixed``. It is usable with some probability, and was not told unusable; ValueError if
        there is none.
        """
        if fixed != self._fixed:
            return self._questions_with_fixed(fixed).best_item(state, probability_usable, fixed)
        row = self._best_mean_row(state, probability_usable)
        items, index = state.items.with_row(row, self._space)
        return items.values[index]

    def _best_mean_row(self, state, probability_usable=None):
        """Return the row of `best_item`."""
        posterior = self.fit(state)[0].gaussian
        rows, n_rows = self._answered_rows(state), len(state.answered_rows())
        reached, usability = "none of them can be used", None
        if probability_usable is not None and state.unusable_items and len(rows):
            usability = Usability.fit(state)
            reached = f"the largest is {usability.probability(rows).max():.2f}"

        def is_usable(rows):
            unusable = state.items.rows[sorted(state.unusable_items)]
            usable = np.all(np.any(rows[:, None] != unusable, axis=2), axis=1)
            return usable & (
                True if usability is None else usability.probability(rows) >= probability_usable
            )

        with blas_threads(state.max_rows):
            if self._extremes is None and not self._fixed:
                rows = rows[is_usable(rows)]
                row = best_mean_row(posterior, rows) if len(rows) else None
            else:
                rng = np.random.default_rng([self._seed, len(state.answers), 2])
                surface = acquisition_surface("mean", posterior, rows[0], rows)
                seeds = rows[np.argsort(-posterior.mean(rows), kind="stable")[: EFFORT.n_seeds]]
                row = maximise(surface, self._space, seeds, rng, is_usable)[0]
        if row is None:
            raise ValueError(
                f"No item of {n_rows} that answers are about is usable enough; {reached}. Ask on, "
                "or give a smaller probability_usable."
            )
        return row

    @property
    def _extremes(self):
        """Return the best and the worst row of earlier people's answers, None without these."""
        return self._configuration.models.extremes

    def _answered_rows(self, state, usable=False):
        """Return the rows that answers are about, with the best item of earlier people, if any."""
        rows = state.answered_rows(usable)
        if self._extremes is not None:
            rows = np.concatenate([rows, self._extremes[:1]])
        return self._space.project_to_feasible(rows)

    # -- whether to go on ----------------------------------------------------------------

    def gain(self, state: RunState) -> ExpectedGain:
        """Return how much one more question is expected to gain, and the shortfall now."""
        context = self._make_gain_context(state)
        with blas_threads(state.max_rows):
            return expected_gain(context)

    def is_close_enough(self, state: RunState, probability: float, within: float) -> bool:
        """Return whether P(shortfall <= within) >= probability; False within the design."""
        if not state.is_informed or not self._is_design_answered(state):
            return False
        context = self._make_gain_context(state)
        with blas_threads(state.max_rows):
            return is_close_enough(context, probability, within)

    def _make_gain_context(self, state):
        """Return what is known of a state when it is asked whether to go on."""
        fitted, best = self.fit(state)[0], self._best_mean_row(state)
        # A stream of its own: no random number of a question is used up.
        rng = np.random.default_rng([self._seed, len(state.answers), 1])
        space = self._usable_space(state, 0.5, 1)
        return GainContext(fitted, space, self._answered_rows(state, usable=True), best, rng)

    def _is_design_answered(self, state):
        """Return whether as many items were shown as the initial design has."""
        return state.n_shown >= 2 * max(1, self._configuration.n_initial)

    # -- the next question ---------------------------------------------------------------

    def with_questions(
        self,
        state: RunState,
        n: int,
        layouts: Sequence[Layout],
        beside: tuple[int, ...] = (),
        fixed: tuple = (),
    ) -> RunState:
        """Return the state after n more questions of the layout that suits it best.

        Each begins with the items of the indices ``beside``, and holds the parameters ``fixed``.
        """
        if fixed != self._fixed:
            return self._questions_with_fixed(fixed).with_questions(
                state, n, layouts, beside, fixed
            )
        with blas_threads(state.max_rows):  # entered once for the fit and all the questions
            if n and self._is_design_answered(state):
                memory = replace(self.fit(state)[1], margins=state.recalled.margins)
                state = replace(state, recalled=memory)
            *others, last = self._layouts_by_preference(state, layouts)
            for layout in others:
                try:
                    return self._append_questions(state, n, layout, beside)
                except NoQuestionLeftError:
                    continue
            return self._append_questions(state, n, last, beside)

    def _append_questions(self, state, n, layout, beside):
        """Return the state with n more questions of a layout, or raise NoQuestionLeftError."""
        for _ in range(n):
            part = self._usable_questions(state, layout.size)
            try:
                state = part._append_question(state, layout, beside)
            except NoQuestionLeftError:
                if part is self:
                    raise
                state = self._append_question(state, layout, beside)
        return state

    def _usable_questions(self, state, size):
        """Return questions of the items whose probability to be usable is above a drawn level."""
        if not state.unusable_items:
            return self
        part = copy(self)
        # A stream of its own: no random number of a question is used up.
        share = np.random.default_rng([self._seed, state.counter + 1, 2]).random()
        part._space = self._usable_space(state, share, size)
        return part

    def _usable_space(self, state, share, n):
        """Return the space of items at least ``share`` as probably usable as the most usable one.

        Of a pool these are at least n.
        """
        if not state.unusable_items:
            return self._space
        usability = Usability.fit(state)
        level = share * usability.probability(state.items.rows).max()
        return usable_space(self._space, usability.with_level(level), n)

    def _layouts_by_preference(self, state, layouts):
        """Return layouts, the best one for the next question first; of initial duels a set."""
        sets = [each for each in layouts if each.form is None]
        best = best_layout(layouts, len(state.answers), self._space.n_dimensions)
        if sets and self._open_initial_duels(state):
            best = min(sets, key=lambda each: each.size)
        return [best, *(each for each in layouts if each != best)]

    def _open_initial_duels(self, state):
        """Return the initial duels that no question or answer so far has asked."""
        if not self._initial:
            return []
        every = (*state.pending, *state.answers, *state.skipped)
        item_sets, open_duels = [frozenset(each.items) for each in every], []
        n_before: Counter = Counter()
        for duel in self._initial:
            rows = [self._space.to_row(value) for value in duel]
            pair = frozenset(state.items.find_index(row, self._space.same) for row in rows)
            n_held = sum(pair <= each for each in item_sets)
            if n_before[pair] >= n_held or None in pair:
                open_duels.append(duel)
            n_before[pair] += 1
        return open_duels

    def _make_generator(self, counter):
        """Return the generator of random numbers of the question with this number."""
        return np.random.default_rng([self._seed, counter])

    def _append_question(self, state, layout, beside):
        """Return the state with one more question of a layout, or raise NoQuestionLeftError."""
        size, form, new_items = layout
        rng, recalled = self._make_generator(state.counter + 1), state.recalled
        allowed = make_exclusion_rule(state, self._space, self._near, size)
        n_shown = state.n_shown + sum(len(each.items) for each in state.pending)
        designed = n_shown < 2 * self._configuration.n_initial
        designed |= not state.is_informed and self._extremes is None
        if form is not None:
            items, indices, recalled = self._grid_question(state, allowed, form, rng, designed)
        elif new_items is not None or (
            self._configuration.cost is not None and not self._open_initial_duels(state)
        ):
            rows, recalled = self._duel_by_gain(state, allowed, rng, new_items, designed)
            items, indices = self._register_rows(state.items, rows, allowed, rng)
        elif designed or (not beside and self._open_initial_duels(state)):
            items, indices = self._design_question(state, allowed, size, rng, beside)
        else:
            rows = state.items.rows[list(beside)] if beside else None
            question_rows, recalled = self._propose_rows(state, allowed, rng, size, rows)
            question_rows = self._fall_back_to_random(question_rows, state, size, rng, rows)
            items, indices = self._register_rows(state.items, question_rows, allowed, rng, rows)
        return replace(state, items=items).with_questions(
            [indices], recalled, form=form, fixed=self._fixed, new_items=new_items
        )

    def _duel_by_gain(self, state, allowed, rng, new_items, designed):
        """Return rows of the duel that gains most by its cost, and the memory after it.

        In the design an item joins the last winner, if any item was made. Then turns are taken with
        an item that is to improve on the best that was made, as always.
        """
        made = self._made_rows(state)
        costs = self._costs_by_new_items(new_items, len(made))
        duel, memory = None, state.recalled
        if designed and costs:
            duel = self._designed_duel(made, 1 if 1 in costs else max(costs), allowed, rng)
        elif costs:
            strategy = self._configuration.strategy_for(len(state.answers) + len(state.pending))
            context, memory_after = self._make_ask_context(strategy, state, allowed, rng)
            if strategy != GAIN_STRATEGY:
                duel = propose(strategy, context)
            if duel is None or count_new_rows(duel, made) not in costs:
                duel = best_duel_by_cost(context, made, costs)
            memory = memory_after()
        if duel is None and new_items is None:
            duel = self._fall_back_to_random(None, state, 2, rng)
        elif duel is None and costs:  # those of the largest gain are pending
            duel = self._designed_duel(made, new_items, allowed, rng)
        if duel is None:
            raise NoQuestionLeftError(
                f"got new_items={new_items}; of {len(made)} items that were made no such duel is "
                "left. Ask without it, or tell a pending duel."
            )
        return duel, memory

    def _costs_by_new_items(self, new_items, n_made):
        """Return the cost of a duel by the number of its new items, of those that may be asked."""
        cost = self._configuration.cost or QuestionCost(0.0, 1.0)
        costs = cost.cost_by_new_items() if new_items is None else {new_items: 1.0}
        return {n: each for n, each in costs.items() if n + n_made >= 2}

    def _made_rows(self, state):
        """Return rows of the made items that may be asked about, the last winner at the end."""
        winner = state.last_winner if state.is_informed else None
        rows = state.items.rows[sorted(state.made_items, key=lambda k: (k == winner, k))]
        allowed = self._space.project_to_feasible(rows)
        return rows[np.any(np.all(rows[:, None] == allowed, axis=2), axis=1)]

    def _designed_duel(self, made, n_new, allowed, rng):
        """Return rows of a duel of the design with so many new items; None if there is none.

        The other item, if any, is the last one that was made and fits.
        """
        rows = made[::-1]
        if n_new:
            designed = self._space.initial_rows(self._seed, len(made), n_new)
            rows = np.concatenate([rows, designed, random_rows(self._space, rng)])

        def fits(members, rows):
            return allowed(members, rows) & (
                count_new_rows(members, made) + are_new_rows(rows, made) == n_new
            )

        return extend_question(rows, rows[:0], fits, 2)

    def _grid_question(self, state, allowed, form, rng, designed):
        """Return items, the indices of the next line or plane, and the memory after it."""
        recalled = state.recalled

        def free(rows, relaxed=state, near=self._near):
            return may_be_asked(rows, make_exclusion_rule(relaxed, self._space, near, len(rows)))

        if designed:
            anchor = self._last_winner_row(state) if state.is_informed else None
            rows = random_grid(self._space, anchor, form, rng, free)
        else:
            strategy = self._configuration.strategy_for(
                len(state.answers) + len(state.pending), "grid"
            )
            context, memory = self._make_ask_context(strategy, state, allowed, rng)
            rows = propose_grid(strategy, context, form, free)
            recalled = memory()
        if rows is None:  # through any item; of those skipped all but the last are free again
            last = replace(state, skipped=state.skipped[-1:])
            rows = random_grid(self._space, None, form, rng, lambda rows: free(rows, last, 0.0))
        items, places = state.items, []
        for row in () if rows is None else rows:
            items, index = items.with_row(row, self._space)
            places.append(index)
        indices = tuple(dict.fromkeys(places))
        if len(indices) < 2:
            raise NoQuestionLeftError(
                f"No {form.kind} is left to ask: every other one is pending, asked by this call or "
                "was just skipped, or its points cannot be told apart. Tell a pending one, ask for "
                "fewer, or undo the skip."
            )
        return items, indices, recalled

    def _propose_rows(self, state, allowed, rng, size, first_rows):
        """Return rows of the next duel or set, None if none is allowed, and the memory after it."""
        number = len(state.answers) + len(state.pending)
        kind = "duel" if size == 2 else "set" if first_rows is None else "joining"
        strategy = self._configuration.strategy_for(number, kind)
        context, memory = self._make_ask_context(strategy, state, allowed, rng, size, first_rows)
        return propose(strategy, context), memory()

    def _make_ask_context(self, strategy, state, allowed, rng, size=2, first_rows=None):
        """Return the context of a strategy, and a function that returns the memory after it."""
        memory, fit = state.recalled, self.fit(state)[0]
        hallucinating = self._configuration.hallucinating and strategy.inference != "ep"
        best = fit

        def draw():
            nonlocal memory, fit
            if strategy.hyperparameters == "drawn":
                fit = self._draw_fit(best, rng)
            if strategy.inference == "ep":
                return fit.gaussian
            if not hallucinating:
                posterior = fit.refine_with_engine(rng).posterior
                step = max(1, posterior.n_components // EFFORT.n_draws)
                return replace(posterior, weights=posterior.weights[:, ::step])
            posterior, margins = _model.hallucinate(fit, memory.margins, rng)
            memory = replace(memory, margins=margins)
            return posterior

        last_winner = self._last_winner_row(state)
        separation = 0.0 if hallucinating else self._near
        context = AskContext(
            self._space,
            self._answered_rows(state),
            last_winner,
            fit.gaussian,
            draw,
            allowed,
            rng,
            size,
            separation,
        )
        return context._replace(first_rows=first_rows), lambda: memory

    def _last_winner_row(self, state):
        """Return the row of the last winner, or another one if that may not be asked about.

        Before any answer it is that of the best item of earlier people.
        """
        rows = state.items.rows[[state.last_winner]] if state.is_informed else self._extremes[:1]
        return self._space.project_to_feasible(rows)[0]

    def _draw_fit(self, fit, rng):
        """Return the same answers fitted at hyperparameters drawn from their posterior."""
        if not len(fit.model.theta):
            return fit
        if self._spread is None or self._spread[0] is not fit:
            state = fit.evaluation.approximation.state
            self._spread = (fit, hyperparameter_spread(fit.model, fit.comparisons, state))
        return _model.draw_hyperparameters(fit, self._spread[1], rng)

    def _design_question(self, state, allowed, size, rng, beside):
        """Return items, and the indices of the next question of the design among them.

        The first are those of initial duels, as many as there is room for; then come Sobol points.
        """
        if beside:
            return self._design_question_beside(
                state, allowed, size, rng, state.items.rows[list(beside)]
            )
        items, indices = self._next_initial_items(state, size)
        rows = self._space.initial_rows(self._seed, state.shown, size - len(indices))
        if indices or may_be_asked(rows, allowed):
            extended, indices_in_all = items, indices
            for row in rows:
                extended, index = extended.with_row(row, self._space)
                indices_in_all = [*indices_in_all, index]
            if len(set(indices_in_all)) == size:
                return extended, tuple(indices_in_all)
        first_rows = items.rows[indices] if indices else None
        rows = random_question(self._space, allowed, rng, size, first_rows)
        rows = self._fall_back_to_random(rows, state, size, rng, first_rows)
        return self._register_rows(items, rows, allowed, rng, first_rows)

    def _next_initial_items(self, state, size):
        """Return items, and the indices of as many items of initial duels as fit a question."""
        indices: list[int] = []
        items = state.items
        for duel in self._open_initial_duels(state):
            extended, pair = items, []
            for value in duel:
                extended, index = extended.with_clean_item(value, self._space)
                pair.append(index)
            pair = [index for index in pair if index not in indices]
            if len(indices) + len(pair) > size:
                break
            items, indices = extended, indices + pair
        return items, indices

    def _design_question_beside(self, state, allowed, size, rng, first_rows):
        """Return items, and the indices of given items and of those farthest from all shown."""
        rows = candidate_rows(self._space, np.zeros((0, self._space.n_columns)), rng)
        question_rows = farthest_question(rows, first_rows, state.items.rows, allowed, size)
        if question_rows is None:
            question_rows = random_question(self._space, allowed, rng, size, first_rows)
        question_rows = self._fall_back_to_random(question_rows, state, size, rng, first_rows)
        return self._register_rows(state.items, question_rows, allowed, rng, first_rows)

    def _register_rows(
        self, items, rows, allowed, rng, first_rows=None
    ) -> tuple[Items, tuple[int, ...]]:
        """Return items with those of rows added, and their indices.

        If two rows are one item, random ones are taken in their place.
        """
        for _ in range(EFFORT.n_tries):
            if rows is None:
                break
            extended, indices = items, []
            for row in rows:
                extended, index = extended.with_row(row, self._space)
                indices.append(index)
            if len(set(indices)) == len(rows):
                return extended, tuple(indices)
            rows = random_question(self._space, allowed, rng, len(rows), first_rows)
        raise ValueError(
            "No two items of the space can be told apart in floating point. Widen it, or shift "
            "and scale its parameters."
        )

    def _fall_back_to_random(self, question_rows, state, size, rng, first_rows=None):
        """Return rows of a question, or if they are None those of a random one that is free again.

        Where every question was skipped before, or just a tie, all but the last skipped are free
        again, and of ties the last if need be.

        Raises
        ------
        NoQuestionLeftError
            If none is left.
        """
        last = replace(state, skipped=state.skipped[-1:])
        for relaxed, near in ((replace(last, answers=state.answers[-1:]), self._near), (last, 0.0)):
            if question_rows is None:
                allowed = make_exclusion_rule(relaxed, self._space, near, size)
                question_rows = random_question(self._space, allowed, rng, size, first_rows)
        if question_rows is None:
            question_kind, item_kind = ("duel", "pair") if size == 2 else ("set", f"set of {size}")
            raise NoQuestionLeftError(
                f"No {question_kind} is left to ask: every other {item_kind} is pending, asked by "
                f"this call or was just skipped, or there are fewer than {size} items. Tell a "
                f"pending {question_kind}, ask for fewer, undo the skip, or give a wider space "
                "or more candidates."
            )
        return question_rows


def check_answered(state: RunState) -> None:
    """Raise NotFittedError unless there is an answer or a value."""
    if not state.is_informed:
        raise NotFittedError("No duel was told yet: ask(), then tell(duel, outcome).")
