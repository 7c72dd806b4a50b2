"""The kernel of a leaderboard: ids, what is controlled for, and groups of answers."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref.data import column_at, column_floats, is_frame, read
from skpref.kernels._contracts import Kernel
from skpref.kernels._leaves import Identity
from skpref.kernels._wrappers import OnColumns

# Variance of a part of utilities beside the one that is their unit, where its search starts, and
# the bounds of that variance: effects of items, controls, groups and time beside what stays.
PART = 0.1
PART_BOUNDS = (1e-5, 1e5)
# The same of what a typical difference of a control, and a group, do to a leaderboard: between
# wider ones two ways to the same board ended .014 apart.
_BOARD_BOUNDS = (1e-4, 10.0)


def leaderboard_kernel(X: Any, *, id_column: Any = None, by: Any = None) -> Kernel:
    """Kernel of ids with controls that are linear, and with effects of ids within groups.

    The utility of id i with controls c in group g is u_i + Σ_j β_j c_j + v_ig: u of variance one,
    each β_j and v of a variance of its own that is learned, all of them independent and normal.

    Parameters
    ----------
    X : DuelFrame, DataFrame or array-like
        The answers, for the spread of the columns. All columns beside those of the ids and groups
        are controls.
    id_column : str or int, default=None
        Name or position of the column of ids. None: that of the `DuelFrame`.
    by : str, int or list of them, default=None
        Columns of groups, which both items of an answer share: a category of prompts, a kind of
        judge, a language. See `skpref.inspection.leaderboards`.

    Returns
    -------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Raises
    ------
    ValueError
        If there is no column of ids, or none of a name or position; if a control is no number.

    Notes
    -----
    Start the search for the noise at the variance of the ids, ``noise_variance=1.0``: from a noise
    that is much too small it takes longer.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.kernels import leaderboard_kernel
    >>> X = np.array([[[0.0, 5.0], [1.0, 3.0]], [[2.0, 4.0], [0.0, 4.0]]])  # ids, lengths
    >>> leaderboard_kernel(X, id_column=0)
    OnColumns(Identity(), columns=[0]) + 0.224**2 * OnColumns(DotProduct(sigma_0=0), columns=[1])
    """
    shown = read(X)
    rows = shown.rows
    if len(rows.shape) != 2:
        raise ValueError(f"X of shape {rows.shape} has no columns; give duels with ids.")
    named = list(rows.columns) if is_frame(rows) else []
    chosen = shown.id_column if id_column is None else id_column
    if chosen is None:
        raise ValueError(
            "X does not say which column holds the ids: pass id_column=, or build the duels with "
            "ids= of from_columns or from_votes."
        )
    d = rows.shape[1]
    place: int = _find_column(chosen, named, d)
    several = [by] if isinstance(by, str | int | np.integer) else [] if by is None else by
    groups: list[int] = [_find_column(each, named, d) for each in several]
    if place in groups:
        raise ValueError(f"by={by!r} names the column of ids; groups have a column of their own.")
    ids = OnColumns(Identity(), [place])
    kernel: Kernel = ids
    for j in range(d):
        if j not in (place, *groups):
            scale = _typical_difference(shown, j, named[j] if named else j)
            bounds = _BOARD_BOUNDS[0] / scale**2, _BOARD_BOUNDS[1] / scale**2
            variance = ConstantKernel(PART / scale**2, bounds)
            kernel = kernel + variance * OnColumns(DotProduct(0.0, "fixed"), [j])
    for j in groups:
        within = OnColumns(Identity(), [place, j])
        kernel = kernel + ConstantKernel(PART, _BOARD_BOUNDS) * within
    return kernel


def _find_column(column: Any, named: list, d: int) -> int:
    """Return the position of a column by name or number; ValueError if there is none."""
    if column in named:
        return named.index(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < d:
        return int(column)
    columns = f"columns {named}" if named else f"columns 0 to {d - 1}, without names"
    raise ValueError(f"There is no column {column!r}; X has {columns}.")


def _typical_difference(shown: Any, j: int, name: Any) -> float:
    """A typical difference of a column between items that were shown together, 1 if it has none."""
    rows = shown.rows
    values = column_floats(column_at(rows, j) if is_frame(rows) else rows[:, j])
    if values is None:
        raise ValueError(
            f"Column {name!r} is to be controlled for, and holds other things than numbers. "
            "Leave it out, name it in by=, or encode it by numbers."
        )
    if shown.pairs is None:
        apart = values - values.mean()
    else:
        present = shown.pairs >= 0
        pair_values = np.where(present, values[shown.pairs], np.nan)
        apart = (pair_values - pair_values[:, :1])[:, 1:][present[:, 1:]]
    scale = float(np.sqrt(np.mean(apart**2))) if apart.size else 0.0
    return scale if np.isfinite(scale) and scale > 0.0 else 1.0
