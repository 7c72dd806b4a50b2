"""Lines and planes: questions whose items are the points of a grid through the incumbent.

The grid is chosen as a whole, by the expected utility of its best point. Lines are those of
Koyama et al., "Sequential line search for efficient visual design optimization by crowds"
(SIGGRAPH 2017), planes those of Koyama et al., "Sequential gallery for interactive visual design
optimization" (SIGGRAPH 2020), where each goes from the incumbent to a maximiser of the expected
improvement. Here that maximiser is one of several ends that compete.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from skpref._utils import Array, semidefinite_root
from skpref.gp import Posterior
from skpref.optimize._acquisition import draw_shared_normals
from skpref.optimize._maximiser import EFFORT, candidate_rows
from skpref.optimize._state import GridForm, are_apart
from skpref.optimize._strategies import (
    AskContext,
    Strategy,
    best_further_row,
    best_mean_row,
    incumbent_row,
    name_failing_acquisition,
)

# How far an axis goes, as a share of the way to the end (Koyama et al. 2017).
_REACH = 1.25


class Axis(NamedTuple):
    """One direction of a grid: from the anchor to the last point, and how many come before it."""

    span: Array
    n_before: int


def grid_rows(anchor: Array, axes: Iterable[Axis], n: int, space: Any) -> Array | None:
    """Return the rows of a grid with n points along each axis, one of which is the anchor.

    It is shrunk towards the anchor until it lies in the unit cube and the limits of the space.
    None: nothing but the anchor remains.
    """
    axes = list(axes)
    steps = np.array([axis.span / (n - 1 - axis.n_before) for axis in axes])
    places = [np.arange(n) - axis.n_before for axis in axes]
    corners = np.array(list(product(*((place[0], place[-1]) for place in places)))) @ steps
    share = float(np.min(_steps_to_cube_wall(anchor, corners), initial=1.0))
    steps *= share
    # Places between the points may be told, so that those half-way are looked at, too.
    between = [np.arange(2 * n - 1) / 2 - axis.n_before for axis in axes]
    steps *= space.feasible_share(anchor, np.array(list(product(*between))) @ steps)
    if np.abs(steps).max(axis=1).min() * (n - 1) < 1e-4:
        return None
    rows: Array = np.clip(anchor + np.array(list(product(*places))) @ steps, 0.0, 1.0)
    at = np.ravel_multi_index([axis.n_before for axis in axes], (n,) * len(axes))
    rows[at] = anchor
    return rows


def _steps_to_cube_wall(anchor, steps):
    """Return how often each step fits between the anchor and the walls, by columns."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(steps > 0.0, (1.0 - anchor) / steps, -anchor / steps)
    return np.where(steps == 0.0, np.inf, np.maximum(room, 0.0))


def _feasible_steps(anchor, step, n, space):
    """Return how often a step fits into the cube and the limits, as n places on the way tell."""
    most = float(_steps_to_cube_wall(anchor, step).min())
    places = np.linspace(0.0, most, n + 1)[1:, None]
    return most * space.feasible_share(anchor, places * step)


def chord_axis(anchor: Array, direction: Array, n: int, space: Any) -> Axis:
    """Return the axis along a direction from one side of the feasible space to the other."""
    before, after = (
        _feasible_steps(anchor, sign * direction, 2 * n, space) for sign in (-1.0, 1.0)
    )
    if before > after:
        before, after, direction = after, before, -direction
    n_before = min(int((n - 1) * before / (before + after)), n - 2) if after else 0
    return Axis(after * direction if after else direction, n_before)


def expected_best_of_sets(posterior: Posterior, sets: list[Array], normals: Array) -> list[float]:
    """Return the expected utility of the best item of each of several sets, by the same draws.

    Parameters
    ----------
    posterior : Posterior
        Of one component.
    sets : list of ndarray of shape (k, d)
    normals : ndarray of shape (n_draws, >= k)
    """
    if not sets:
        return []
    cross, values, begin = posterior.cross(np.concatenate(sets)), [], 0
    for rows in sets:
        means, cov = posterior.means_and_cov(rows, cross[begin : begin + len(rows)])
        root = semidefinite_root(cov)
        drawn = means.T + normals[:, : root.shape[1]] @ root.T
        values.append(float(drawn.max(axis=1).mean()))
        begin += len(rows)
    return values


class ValuedGrid(NamedTuple):
    """A grid, and the expected utility of the best of its points."""

    value: float
    anchor: Array
    axes: list[Axis]
    rows: Array


def propose_grid(
    strategy: Strategy, context: AskContext, form: GridForm, is_free: Callable[[Array], bool]
) -> Array | None:
    """Return the rows of the next line or plane, in order; None if none is free.

    Of the lines from the incumbent to promising ends that of the best point is taken. A plane has
    it as its first axis, and the best second one.

    Parameters
    ----------
    strategy : Strategy
    context : AskContext
    form : GridForm
    is_free : callable
        Whether rows may be asked about together.
    """
    space, n = context.space, form.size
    incumbent = incumbent_row(strategy, context)
    if strategy.acquisition == "random":
        return random_grid(space, incumbent, form, context.rng, is_free)
    ends = _promising_ends(strategy, context, incumbent)
    # Along an axis the categories are those of its end.
    anchors = [np.where(space.ordered, incumbent, end) for end in ends]
    lines = [
        (anchor, [axis])
        for anchor, end in zip(anchors, ends, strict=True)
        for axis in _axes_towards(space, anchor, end, n)
    ]
    grids = _value_grids(context, lines, n)
    if len(form.shape) == 2 and grids:
        _, anchor, (axis,), _ = grids[0]
        seconds = [each for end in ends for each in _axes_towards(space, anchor, end, n)]
        grids = _value_grids(context, [(anchor, [axis, second]) for second in seconds], n)
    for each in grids:
        if is_free(each.rows):
            return each.rows
    return random_grid(space, incumbent, form, context.rng, is_free)


def _value_grids(context, candidates, n):
    """Return the feasible grids of anchors and axes with their values, the best first."""
    grids = []
    for anchor, axes in candidates:
        rows = grid_rows(anchor, axes, n, context.space)
        if rows is None:
            continue
        rows = distinct_rows(context.space.snap(rows), context.space)
        if len(rows) > 1 and context.space.is_feasible(rows).all():
            grids.append((anchor, axes, rows))
    most = max((len(rows) for _, _, rows in grids), default=1)
    normals = draw_shared_normals(most, 1, context.rng)
    values = expected_best_of_sets(context.gaussian, [rows for _, _, rows in grids], normals)
    valued = [ValuedGrid(value, *each) for value, each in zip(values, grids, strict=True)]
    return sorted(valued, key=lambda each: -each.value)


def random_grid(
    space: Any,
    anchor: Array | None,
    form: GridForm,
    rng: np.random.Generator,
    is_free: Callable[[Array], bool],
) -> Array | None:
    """Return rows of a random line or plane through the anchor, across the whole cube.

    Through a random item if the anchor is None. None if several draws give no grid of distinct
    feasible rows of which ``is_free(rows)`` holds.
    """
    for _ in range(EFFORT.n_tries):
        drawn = space.rows_at(rng.random((1 + len(form.shape), space.n_dimensions)))
        here = drawn[0] if anchor is None else anchor
        spans = (drawn[1:] - here) * space.ordered
        if not np.all(np.any(spans, axis=1)):
            continue
        axes = [chord_axis(here, span, form.size, space) for span in spans]
        rows = grid_rows(here, axes, form.size, space)
        if rows is None:
            continue
        rows = distinct_rows(space.snap(rows), space)
        if len(rows) > 1 and space.is_feasible(rows).all() and is_free(rows):
            return rows
    return None


def distinct_rows(rows: Array, space: Any) -> Array:
    """Return rows without those that cannot be shown beside one before them."""
    indices: list[int] = []
    for k, row in enumerate(rows):
        if not indices or np.all(are_apart(row, rows[indices], space)):
            indices.append(k)
    return rows[indices]


def _promising_ends(strategy, context, incumbent):
    """Return rows that lines may lead to: maximisers of acquisition, drawn utilities and mean."""
    with name_failing_acquisition(strategy.acquisition):
        own = best_further_row(strategy.acquisition, context, incumbent[None])
    best = best_mean_row(context.gaussian, context.answered_rows)
    seeds = np.unique(np.array([incumbent, best]), axis=0)
    rows = candidate_rows(context.space, seeds, context.rng)
    drawn = context.gaussian.sample_paths(EFFORT.n_seeds, context.rng)(rows).argmax(axis=0)
    ends = rows[np.append(np.unique(drawn), np.argmax(context.gaussian.mean(rows)))]
    return ends if own is None else np.concatenate([own[None], ends])


def _axes_towards(space, anchor, end, n):
    """Return three axes through the anchor towards an end: from it, about it, across the cube."""
    span = (end - anchor) * space.ordered
    if not np.any(span):
        return []
    whole = chord_axis(anchor, span, n, space)
    return [Axis(_REACH * span, 0), Axis(_REACH * span, (n - 1) // 2), whole]


# --- answers --------------------------------------------------------------------------------


def locate_position(
    rows: Array, form: GridForm, position: Any, space: Any
) -> tuple[int, Array | None]:
    """Return the point of a line or plane at a position, and a row if it lies between points.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        The points that were shown.
    form : GridForm
    position : int, float or pair of them
    space : Space

    Returns
    -------
    at : int
        Number of the point; of a place between points, where among them it belongs.
    row : ndarray of shape (d,) or None
        Of the item at a place between points.

    Raises
    ------
    TypeError, ValueError
        If it is no position on them.
    """
    place, shape = _read_position(position, form, len(rows))
    if np.all(place == np.rint(place)):
        return int(np.ravel_multi_index(place.astype(np.intp), shape)), None
    cell = np.minimum(place.astype(np.intp), np.array(shape) - 2)
    share, row = place - cell, np.zeros(rows.shape[1])
    for step in product((0, 1), repeat=len(shape)):
        weight = np.prod(np.where(step, share, 1.0 - share))
        row += weight * rows[np.ravel_multi_index(cell + step, shape)]
    row = space.snap(row[None])[0]
    return int(cell[0]) + 1 if form.kind == "line" else len(rows), row


def _read_position(position, form, n):
    """Return a position as coordinates, and the shape of the grid that they are of."""
    line = form.kind == "line"
    allowed = f"{'a number' if line else 'an integer'} from 0 to {n - 1}"
    shapes = {0: (n,)}
    if not line and n == np.prod(form.shape):  # no point was left out
        shapes[1] = form.shape
        allowed += f", or a pair (row, column) from 0 to {form.size - 1} each"
    try:
        place = np.asarray(position)
    except ValueError:  # lists of different lengths
        place = np.asarray(None)
    if place.dtype.kind not in "iuf":
        raise TypeError(f"position must be {allowed}, got {position!r}.")
    shape = shapes.get(place.ndim)
    good = shape is not None and place.size == len(shape)
    good = good and bool(np.all((place >= 0) & (place <= np.array(shape) - 1)))
    if not good or not (line or place.ndim or place.dtype.kind in "iu"):
        raise ValueError(f"position must be {allowed}, got {position!r}.")
    return np.atleast_1d(place).astype(np.float64), shape
