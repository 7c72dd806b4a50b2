"""Limits that are not known: how probable it is that an item can be used, by those that could not.

Items that were told unusable, and all others that were shown, are the answers of a probit of their
own. It asks whether g(x) > b, which is a duel of x with an item far from all others: EP of duels
fits it. Where utility is searched for, an item may be asked about if its probability is above a
level drawn uniformly for each question; so it is searched for as often as it is probable.
"""

from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from skpref._estimator import PairwisePreferenceRegressor
from skpref.optimize._limits import LimitedBox, as_limited_box
from skpref.optimize._model import shorter_lengthscale_prior
from skpref.optimize._spaces import Pool
from skpref.optimize._state import RunState

# Where the bar stands in a column of its own, which items have at 0: at no covariance with them.
_FAR = 1e3


class Usability:
    """The probability that items can be used, and the level that it must reach.

    Parameters
    ----------
    model : PairwisePreferenceRegressor
        Fitted to duels of items with the bar.
    level : float, default=0.0
    """

    def __init__(self, model: Any, level: float = 0.0):
        self._model, self.level = model, level

    @classmethod
    def fit(cls, state: RunState) -> Self:
        """Return the usability of items after what was told of those that were shown."""
        used = {k for each in state.answers for k in each.items}
        used |= {each.item for each in state.values}
        used |= {k for each in state.skipped if each.unusable for k in each.items}
        places, unusable = sorted(used), state.unusable_items
        n_columns = state.items.rows.shape[1]
        lengthscale = shorter_lengthscale_prior(n_columns)[0]
        kernel = Matern(np.append(np.full(n_columns, lengthscale), 1.0), nu=1.5)
        model = PairwisePreferenceRegressor(kernel, inference="ep", optimizer=None)
        outcomes = np.array([int(k not in unusable) for k in places])
        return cls(model.fit(_duels_with_bar(state.items.rows[places]), outcomes))

    def with_level(self, level: float) -> "Usability":
        """Return this usability with another level."""
        return Usability(self._model, level)

    def probability(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability that the items of rows (n, n_columns) can be used, (n,)."""
        if not len(rows):
            return np.zeros(0)
        probability: np.ndarray = self._model.predict_proba(_duels_with_bar(rows))[:, 1]
        return probability

    def slack(self, rows: np.ndarray) -> np.ndarray:
        """Return how far above the level the probability is, (n,)."""
        return self.probability(rows) - self.level


def _duels_with_bar(rows):
    """Return duels (n, 2, n_columns + 1) of rows with the bar that usable items beat."""
    items = np.column_stack([rows, np.zeros(len(rows))])
    bar = np.append(np.zeros(rows.shape[1]), _FAR)
    return np.stack([items, np.broadcast_to(bar, items.shape)], axis=1)


def usable_space(space: Any, usability: Usability, n: int) -> Any:
    """Return the space of items whose probability to be usable is at least the level.

    Of a pool these are at least n.

    If no item of a box seems to be, that is the whole box.
    """
    if isinstance(space, Pool):
        probability = usability.probability(space.pool)
        return space.part(probability >= min(usability.level, np.sort(probability)[-n]))
    box = space if isinstance(space, LimitedBox) else as_limited_box(space)
    try:
        return box.with_usability(usability)
    except ValueError:
        return space
