"""The answers of a run, as a picture of it needs them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._inspected import Inspected, Relative
from skpref._linalg import Array


class Run(NamedTuple):
    """What was shown and what came of it, in the order in which it was told.

    Attributes
    ----------
    items : list
        Every distinct item, as the optimizer shows it.
    rows : ndarray of shape (n_items, n_columns)
        The same in the unit cube.
    shown : list of ndarray
        Of each answer the positions of its items in ``items``.
    best : list of int or None
        Of each answer the position in ``items`` of the winner; None if there was none.
    """

    items: list
    rows: Array
    shown: list[NDArray[np.intp]]
    best: list[int | None]


def run_of(optimizer: Any) -> Run:
    """The told answers of an optimizer, from its ``history_``.

    Raises
    ------
    ValueError
        If none was told.
    """
    history = optimizer.history_
    if not history:
        raise ValueError("No answer was told yet; there is no run to draw.")
    flat = [item for items, _ in history for item in items]
    rows, first, inverse = np.unique(
        optimizer.to_unit(flat), axis=0, return_index=True, return_inverse=True
    )
    ends = np.cumsum([len(items) for items, _ in history])[:-1]
    shown = np.split(inverse.reshape(-1), ends)
    places = [_winner(outcome) for _, outcome in history]
    best = [
        None if place is None else int(positions[place])
        for place, positions in zip(places, shown, strict=True)
    ]
    return Run([flat[i] for i in first], rows, shown, best)


def _winner(outcome: Any) -> int | None:
    """Position of the best of the items shown; None if the answer does not say."""
    if isinstance(outcome, dict):
        return outcome["ranking"][0] if "ranking" in outcome else outcome.get("chosen")
    return {1: 0, 0: 1}.get(outcome)


def best_so_far(run: Run, mean: Array) -> NDArray[np.intp]:
    """Of the items shown up to each answer, the one of the largest posterior mean."""
    found, best = [], run.shown[0][0]
    for positions in run.shown:
        best = max((best, *positions), key=lambda i: mean[i])
        found.append(best)
    return np.array(found, dtype=np.intp)


class Line(NamedTuple):
    """The utility along the only dimension.

    Attributes
    ----------
    x : ndarray of shape (n,)
        Values of the items, and their utility.
    utility : Relative
    at : ndarray of shape (n_items,)
        Values of the items of the run.
    """

    x: Array
    utility: Relative
    at: Array


def line_of(
    optimizer: Any, run: Run, level: float, length: float, resolution: int = 200
) -> Line | None:
    """The utility between the outermost items of a run, in units of this length.

    None but for one dimension of numbers.
    """
    try:
        at = np.array([_number(item) for item in run.items])
    except (TypeError, ValueError):
        return None
    order = np.argsort(at)
    unit = run.rows[:, 0]
    if run.rows.shape[1] != 1 or np.any(np.diff(unit[order]) <= 0.0):
        return None
    # Unit-cube places between items are those of numbers in between.
    x = np.linspace(at.min(), at.max(), resolution)
    rows = np.interp(x, at[order], unit[order])[:, None]
    return Line(x, Inspected.of(optimizer.posterior_).relative(rows, level).per(length), at)


def _number(item):
    """The value of an item of one dimension."""
    values = list(item.values()) if hasattr(item, "values") else item
    if isinstance(values, str) or np.size(values) != 1:
        raise ValueError("more than one value")
    return float(np.ravel(values)[0])
