"""Duels by what they are worth for what they cost, where an item has to be made before it is shown.

An item was made once it was in a question, or was measured. A duel has two new items, one beside an
item that was made, or none. What it is worth is its knowledge gradient; of the best duels with so
many new items the one of the largest gain by cost is asked.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, check_number
from skpref.optimize._lookahead import KnowledgeGradient
from skpref.optimize._maximiser import EFFORT
from skpref.optimize._strategies import (
    AskContext,
    Strategy,
    best_duel,
    draw_duel_candidates,
    sort_by_mean,
)

# How the gain of a duel is found: both of its items are chosen by the knowledge gradient, under
# hyperparameters that are drawn.
GAIN_STRATEGY = Strategy("ep", "joint", "kg", "drawn")


class QuestionCost(NamedTuple):
    """Cost of making an item, and of judging a question, in one unit."""

    making: float
    judging: float

    @classmethod
    def read(cls, cost: Any) -> Self | None:
        """Return a cost, checked; None if there is none."""
        if cost is None:
            return None
        try:
            making, judging = cost
        except (TypeError, ValueError):
            raise ValueError(
                f"got cost={cost!r}; a pair is allowed, the cost of making an item and that of "
                "judging a question in one unit, such as (10, 1)."
            ) from None
        return cls(
            float(check_number("cost of making", making, low=0.0, open_high=True)),
            float(check_number("cost of judging", judging, low=0.0, open_low=True, open_high=True)),
        )

    def cost_by_new_items(self) -> dict[int, float]:
        """Return the cost of a duel by the number of its items that are new."""
        return {n: n * self.making + self.judging for n in (0, 1, 2)}


def count_new_rows(rows: Array, made: Array) -> int:
    """Return how many rows (n, n_columns) are none of those of items that were made."""
    return int(np.sum(are_new_rows(rows, made)))


def are_new_rows(rows: Array, made: Array) -> NDArray[np.bool_]:
    """Return which rows (n, n_columns) are none of those of items that were made, (n,)."""
    return np.all(np.any(rows[:, None] != made, axis=2), axis=1)


def best_duel_by_cost(context: AskContext, made: Array, costs: Mapping[int, float]) -> Array | None:
    """Return rows of the duel of the largest gain by its cost, the better one first; None if none.

    Parameters
    ----------
    context : AskContext
    made : ndarray of shape (n_made, n_columns)
        Rows of items that were made.
    costs : dict
        The cost of a duel by the number of its new items; those of other numbers are not asked.
    """
    posterior = context.draw()
    candidates = draw_duel_candidates(context, posterior, made)
    gradient = KnowledgeGradient(posterior, candidates)
    is_new, order = are_new_rows(candidates.rows, made), candidates.most_often_best()
    best_ratio, best = -np.inf, None
    for n_new, cost in costs.items():
        first = order[is_new[order] == (n_new == 2)][: EFFORT.n_starts]
        second = np.flatnonzero(is_new == (n_new > 0))
        moving = n_new == 2, n_new > 0
        duel, value = best_duel(gradient, candidates, context, first, second, moving)
        if duel is not None and value / cost > best_ratio:
            best_ratio, best = value / cost, duel
    return sort_by_mean(posterior, best)
