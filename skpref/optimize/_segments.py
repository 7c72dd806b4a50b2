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
from skpref.optimize._acquisition import common_normals
from skpref.optimize._state import Form, apart
from skpref.optimize._strategies import (
    Strategy,
    View,
    best_seen,
    incumbent_of,
    naming,
    rough_challenger,
    screening_rows,
)

# Draws of the utility whose maximisers a grid may lead to, and rows among which these are sought.
_PATHS = 8
_PATH_ROWS = 512
_RANDOM_ENDS = 4
# How far an axis goes, as a share of the way to the end (Koyama et al. 2017).
_REACH = 1.25
# Shares of the points of an axis that lie behind the incumbent.
_BEHIND = (0.0, 0.25, 0.5)
# Spans beside the best one that are tried after it, for each axis, and how far from it.
_N_BESIDE, _BESIDE = 8, 0.1
# Grids of which all points are looked at.
_FINALISTS = 4
# Random grids, at most, for one that may be asked.
_TRIES = 200


class Axis(NamedTuple):
    """One direction of a grid: from the incumbent to the last point, and points behind it."""

    span: Array
    behind: int


def grid(anchor: Array, axes: Iterable[Axis], n: int) -> Array | None:
    """Points of a grid of n an axis, (n, d) or (n * n, d), which holds the anchor.

    It is shrunk towards the anchor until it lies in the unit cube. None: to a point.
    """
    axes = list(axes)
    steps = np.array([axis.span / (n - 1 - axis.behind) for axis in axes])
    places = [np.arange(n) - axis.behind for axis in axes]
    corners = np.array(list(product(*((place[0], place[-1]) for place in places)))) @ steps
    share = float(np.min(_room(anchor, corners), initial=1.0))
    steps *= share
    if np.abs(steps).max(axis=1).min() * (n - 1) < 1e-4:
        return None
    rows: Array = np.clip(anchor + np.array(list(product(*places))) @ steps, 0.0, 1.0)
    at = np.ravel_multi_index([axis.behind for axis in axes], (n,) * len(axes))
    rows[at] = anchor
    return rows


def _room(anchor, steps):
    """How often a step fits into the cube, by columns."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(steps > 0.0, (1.0 - anchor) / steps, -anchor / steps)
    return np.where(steps == 0.0, np.inf, np.maximum(room, 0.0))


def chord(anchor: Array, direction: Array, n: int) -> Axis:
    """The axis along a direction, from near one side of the cube to the other."""
    before = float(_room(anchor, -direction).min())
    after = float(_room(anchor, direction).min())
    if before > after:
        before, after, direction = after, before, -direction
    behind = min(int((n - 1) * before / (before + after)), n - 2) if after else 0
    return Axis(after * direction if after else direction, behind)


def expected_best(posterior: Posterior, sets: list[Array], normals: Array) -> list[float]:
    """Expected utility of the best item of each of several sets, by the same draws for all.

    Parameters
    ----------
    posterior : Posterior
        Of one component.
    sets : list of ndarray of shape (k, d)
    normals : ndarray of shape (n_draws, >= k)
    """
    cross, found, begin = posterior.cross(np.concatenate(sets)), [], 0
    for rows in sets:
        own = cross[begin : begin + len(rows)]
        means, cov = posterior.means_and_cov(rows, own)
        root = semidefinite_root(cov)
        drawn = means.T + normals[:, : root.shape[1]] @ root.T
        found.append(float(drawn.max(axis=1).mean()))
        begin += len(rows)
    return found


def propose_grid(
    strategy: Strategy, view: View, form: Form, free: Callable[[Array], bool]
) -> Array | None:
    """The rows of the next line or plane, in order; None if none is free.

    Parameters
    ----------
    strategy : Strategy
    view : View
    form : Form
    free : callable
        Whether rows may be asked about together.
    """
    incumbent = incumbent_of(strategy, view)
    if strategy.acquisition == "random":
        return random_grid(view.space, incumbent, form, view.rng, free)
    space, n = view.space, form.size
    ends = _ends(strategy, view, incumbent)
    best = _Best(view, n, len(form.shape))
    found = best.of(
        (_anchor(space, incumbent, end), [axis])
        for end in ends
        for axis in _axes(space, incumbent, end, n)
    )
    if len(form.shape) == 2 and found:
        _, anchor, (first,), _ = found[0]
        pairs = ((end, axis) for end in ends for axis in _axes(space, anchor, end, n))
        found = best.of((anchor, [first, axis]) for _, axis in pairs)
    if found:
        found = sorted([*found, *best.of(_beside(view, found[0]))], key=_by_value)
    for _, _, _, rows in found:
        if free(rows):
            return rows
    return random_grid(space, incumbent, form, view.rng, free)


def _by_value(found):
    return -found[0]


def _beside(view, found):
    """Grids beside one that was found: each of its axes turned and stretched by itself."""
    _, anchor, axes, _ = found
    for at, axis in enumerate(axes):
        for step in _BESIDE * view.rng.standard_normal((_N_BESIDE, len(anchor))):
            turned = axis._replace(span=axis.span + step * view.space.ordered)
            yield anchor, [*axes[:at], turned, *axes[at + 1 :]]


class _Best:
    """Sorts grids by the expected utility of their best point."""

    def __init__(self, view, n, n_axes):
        self._view, self._n = view, n
        self._normals = common_normals(n**n_axes, 1, view.rng)

    def of(self, wanted):
        """Value, anchor, axes and rows of the best of some grids, best first."""
        made = []
        for anchor, axes in wanted:
            rows = grid(anchor, axes, self._n)
            if rows is not None:
                made.append((anchor, axes, self._view.space.snap(rows)))
        if len(made) > _FINALISTS:  # every second point tells which are worth the whole
            values = self._values([rows[_coarse(self._n, len(axes))] for _, axes, rows in made])
            made = [made[k] for k in np.argsort(-np.array(values), kind="stable")[:_FINALISTS]]
        made = [(anchor, axes, distinct(rows, self._view.space)) for anchor, axes, rows in made]
        made = [each for each in made if len(each[2]) > 1]
        values = self._values([rows for _, _, rows in made])
        pairs = zip(values, made, strict=True)
        return sorted(((value, *each) for value, each in pairs), key=_by_value)

    def _values(self, sets):
        return expected_best(self._view.gaussian, sets, self._normals) if sets else []


def _coarse(n, n_axes):
    """Every second point along each axis of a grid."""
    number = np.arange(n**n_axes).reshape((n,) * n_axes)
    return number[(slice(None, None, 2),) * n_axes].ravel()


def random_grid(
    space: Any,
    anchor: Array | None,
    form: Form,
    rng: np.random.Generator,
    free: Callable[[Array], bool],
) -> Array | None:
    """A line or plane through the anchor, from one side of the cube to the other.

    Through any item if the anchor is None. The result is None if none seems to be free.
    """
    for _ in range(_TRIES):
        drawn = space.place(rng.random((1 + len(form.shape), space.n_dimensions)))
        here = drawn[0] if anchor is None else anchor
        spans = (drawn[1:] - here) * space.ordered
        if not np.all(np.any(spans, axis=1)):
            continue
        rows = grid(here, [chord(here, span, form.size) for span in spans], form.size)
        if rows is None:
            continue
        rows = distinct(space.snap(rows), space)
        if len(rows) > 1 and free(rows):
            return rows
    return None


def distinct(rows: Array, space: Any) -> Array:
    """Rows without those that are equal to one before them, up to rounding."""
    kept: list[int] = []
    for k, row in enumerate(rows):
        if not kept or np.all(apart(row, rows[kept], space)):
            kept.append(k)
    return rows[kept]


def _ends(strategy, view, incumbent):
    """Where lines may lead to: promising rows, and some drawn at random."""
    found = []
    with naming(strategy.acquisition):
        own = rough_challenger(strategy, view, incumbent)
    if own is not None:
        found.append(own)
    seeds = [incumbent]
    if strategy.incumbent not in ("posterior_mean", "joint"):  # which are the best one seen
        seeds.append(best_seen(view.gaussian, view.seen))
    rows = screening_rows(view.space, np.array(seeds), view.rng, _PATH_ROWS)
    paths = view.gaussian.sample_paths(_PATHS, view.rng)(rows)
    found += [rows[k] for k in np.unique(np.argmax(paths, axis=0))]
    found.append(rows[int(np.argmax(view.gaussian.mean(rows)))])
    found += list(rows[view.rng.choice(len(rows), _RANDOM_ENDS)])
    return found


def _anchor(space, incumbent, end):
    """The incumbent; with the categories of an end, where these are others."""
    return np.where(space.ordered, incumbent, end)


def _axes(space, anchor, end, n):
    """Axes from the anchor towards an end."""
    span = (end - anchor) * space.ordered
    if not np.any(span):
        return
    for share in _BEHIND:
        yield Axis(_REACH * span, int(share * (n - 1)))
    yield chord(anchor, span, n)


# --- answers --------------------------------------------------------------------------------


def between(rows: Array, form: Form, position: Any, space: Any) -> tuple[int, Array | None]:
    """Where on a line or plane a position is.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        The points that were shown.
    form : Form
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
    place, shape = _place(position, form, len(rows))
    if np.all(place == np.rint(place)):
        return int(np.ravel_multi_index(place.astype(np.intp), shape)), None
    cell = np.minimum(place.astype(np.intp), np.array(shape) - 2)
    share, row = place - cell, np.zeros(rows.shape[1])
    for step in product((0, 1), repeat=len(shape)):
        weight = np.prod(np.where(step, share, 1.0 - share))
        row += weight * rows[np.ravel_multi_index(cell + step, shape)]
    row = space.snap(row[None])[0]
    return int(cell[0]) + 1 if form.kind == "line" else len(rows), row


def _place(position, form, n):
    """A position as coordinates, and the shape of the grid that they are of."""
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
