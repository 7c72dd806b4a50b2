"""Maximising an acquisition over a space: screen many items, then climb from the best few."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

_SCREEN = 1024
# Rows that a coarse surface leaves for the surface itself.
_KEPT = 192
_CLIMBS = 4
_MAX_CLIMB = 40
# Perturbations of the seeds: their number for each, and their sizes.
_AROUND = 24
_SIZES = (0.2, 0.06, 0.02, 0.005)
_MAX_SWAPS = 6


@lru_cache(maxsize=8)
def _sobol(n, d):
    return qmc.Sobol(d, scramble=False).random(n)


def screening_rows(
    space: Any, seeds: np.ndarray, rng: np.random.Generator, n_screen: int = _SCREEN
) -> np.ndarray:
    """Rows spread over the space, and rows around the seeds (which come first).

    Parameters
    ----------
    space : Box or Pool
    seeds : ndarray of shape (k, n_columns)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n, n_columns)
    """
    if space.pool is not None:
        return space.pool
    shift = rng.random(space.n_dimensions)
    spread = space.place((_sobol(n_screen, space.n_dimensions) + shift) % 1.0)
    if not len(seeds):
        return spread
    sizes = np.resize(_SIZES, _AROUND)[:, None, None]
    step = sizes * rng.standard_normal((_AROUND, *seeds.shape))
    # In many dimensions also steps along a few of them.
    few = rng.random(step.shape) < np.minimum(1.0, 3.0 / space.n_columns)
    step = np.where(rng.random((_AROUND, len(seeds), 1)) < 0.5, step, step * few)
    near = _reflect(seeds + step).reshape(-1, space.n_columns)
    return np.concatenate([seeds, space.snap(near), spread])


def _reflect(rows):
    return 1.0 - np.abs(1.0 - np.abs(rows) % 2.0)


class NoNumber(ValueError):
    """A surface is NaN wherever it was looked at."""


def maximise(
    surface: Any,
    space: Any,
    seeds: np.ndarray,
    rng: np.random.Generator,
    allowed: Callable | None = None,
    n_screen: int = _SCREEN,
    coarse: Any = None,
) -> tuple[np.ndarray | None, float]:
    """The row where the surface is largest.

    Parameters
    ----------
    surface : Surface or Numeric
    space : Box or Pool
    seeds : ndarray of shape (k, n_columns)
        Rows worth starting from.
    rng : numpy.random.Generator
    allowed : callable, optional
        Rows (n, n_columns) to booleans: those that may be returned.
    n_screen : int
        Rows spread over the space.
    coarse : Surface, optional
        A cheap likeness of the surface, which sorts out most of the rows of a box first.

    Returns
    -------
    row : ndarray of shape (n_columns,) or None
        None if none of the rows looked at is allowed.
    value : float

    Raises
    ------
    NoNumber
        If the surface is NaN at all rows looked at.
    """
    rows = screening_rows(space, seeds, rng, n_screen)
    if coarse is not None and space.pool is None:
        rows = rows[np.argsort(-coarse.value(rows), kind="stable")[:_KEPT]]
    values = surface.value(rows)
    if np.isnan(values).all():
        raise NoNumber(f"it is NaN at all of {len(rows)} items")
    values = np.where(np.isfinite(values), values, -np.inf)
    if space.pool is None:
        starts = _spread_best(rows, values)
        climbed = [_climb(surface, space, start) for start in starts]
        rows = np.concatenate([np.array([row for row, _ in climbed]), rows])
        values = np.concatenate([[value for _, value in climbed], values])
    order = np.argsort(-values, kind="stable")
    if allowed is None:
        return rows[order[0]], float(values[order[0]])
    for block in np.array_split(order, max(1, len(order) // 32)):
        good = allowed(rows[block])
        if good.any():
            best = block[np.argmax(good)]
            return rows[best], float(values[best])
    return None, -np.inf


def _spread_best(rows, values):
    """The best rows that are not all in one place."""
    order = np.argsort(-values, kind="stable")[: 16 * _CLIMBS]
    chosen = [order[0]]
    for index in order[1:]:
        if len(chosen) == _CLIMBS:
            break
        if np.abs(rows[chosen] - rows[index]).max(axis=1).min() > 0.05:
            chosen.append(index)
    return rows[chosen]


def _climb(surface, space, start):
    row, value = start, -np.inf
    for _ in range(_MAX_SWAPS):
        row, value = _ascend(surface, space, row)
        if space.free.all():
            break
        near = space.neighbours(row)
        if not len(near):
            break
        others = surface.value(near)
        best = int(np.argmax(others))
        if not others[best] > value + 1e-9 * (1.0 + abs(value)):
            break
        row = near[best]
    return row, value


def _ascend(surface, space, start):
    """L-BFGS-B over the free columns."""
    free = space.free

    def negative(x):
        row = start.copy()
        row[free] = x
        value, gradient = surface.value_and_gradient(row[None])
        return -value[0], -gradient[0, free]

    if not free.any():
        return start, float(surface.value(start[None])[0])
    found = minimize(
        negative,
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * int(free.sum()),
        options={"maxiter": _MAX_CLIMB},
    )
    row = start.copy()
    row[free] = found.x
    row = space.snap(row[None])[0]
    return row, float(-found.fun)
