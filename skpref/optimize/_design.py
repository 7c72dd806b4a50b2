"""The first questions: scrambled Sobol points, one after another."""

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


def initial_rows(space: Any, seed: int, start: int, n: int) -> np.ndarray:
    """Rows (n, n_columns) of the design from a place on; of a pool, its rows in a random order."""
    if space.pool is not None:
        order = _order(len(space.pool), seed)
        return space.pool[order[np.arange(start, start + n) % len(order)]]
    n_points = 2 ** max(5, (start + n - 1).bit_length())
    return space.place(_points(n_points, space.n_dimensions, seed)[start : start + n])
