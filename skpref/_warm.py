"""Where an engine starts at hyperparameters that are new: from those where it has ended before."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from skpref.inference._base import Engine, State

_KEPT = 6
# Hyperparameters (mostly logarithms) this far from the nearest known tell too little about it.
_FAR = 3.0
# Sum of the sizes of the weights of an extrapolation, beyond which it is none.
_BOLD = 2.5


class WarmStart:
    """States of an engine by the hyperparameters at which it ended.

    Parameters
    ----------
    engine : Engine
    first : dict or None
        A state for hyperparameters unknown.
    """

    def __init__(self, engine: Engine, first: State | None = None):
        self._engine, self._first = engine, first
        self._known: deque[tuple[NDArray[np.float64], State]] = deque(maxlen=_KEPT)

    def add(self, theta: NDArray[np.float64], state: State) -> None:
        """The engine has ended here."""
        self._known.append((np.array(theta), state))

    def near(self, theta: NDArray[np.float64]) -> State | None:
        """The state to start from: that of the nearest, moved as others near it say."""
        if not self._known:
            return self._first
        ranked = sorted(self._known, key=lambda known: float(np.sum((known[0] - theta) ** 2)))
        centre, state = ranked[0]
        others = [known for known in ranked[1:] if np.max(np.abs(known[0] - centre)) < _FAR]
        if not others or np.max(np.abs(theta - centre)) > _FAR:
            return state
        steps = np.array([known[0] - centre for known in others])
        weights = np.linalg.lstsq(steps.T, theta - centre, rcond=1e-3)[0]
        if not np.abs(weights).sum() < _BOLD:
            return state
        states = [state, *(known[1] for known in others)]
        return self._engine.extrapolated(states, np.array([1.0 - weights.sum(), *weights]))
