"""The first duels: scrambled Sobol points, two for each duel."""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import qmc


def load_tables() -> None:
    """Let scipy load its Sobol tables now: an interrupt while it does leaves them empty."""
    qmc.Sobol(1, scramble=False).random(1)


@lru_cache(maxsize=8)
def _points(n, d, seed):
    return qmc.Sobol(d, rng=np.random.default_rng([seed, 2**31])).random(n)


@lru_cache(maxsize=8)
def _order(n, seed):
    return np.random.default_rng([seed, 2**31]).permutation(n)


def initial_duel(space: Any, seed: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the k-th duel of the design; of a pool, its rows in a random order."""
    if space.pool is not None:
        order = _order(len(space.pool), seed)
        return tuple(space.pool[order[(2 * k + side) % len(order)]] for side in (0, 1))
    n = 2 ** max(5, (2 * k + 1).bit_length())
    first, second = space.place(_points(n, space.n_dimensions, seed)[2 * k : 2 * k + 2])
    return first, second
