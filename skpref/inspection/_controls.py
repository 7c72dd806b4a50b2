"""What columns beside the ids do: their slopes, and what holding them does to the order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau
from sklearn.utils import Bunch

from skpref._utils import NEGLIGIBLE, Array, PrintableBunch, check_choice, check_number
from skpref.data import object_array, table_frame
from skpref.fitting import (
    UNITS,
    Inspected,
    InspectedMixture,
    mixture_intervals,
    probability_positive,
)
from skpref.inspection._contenders import Columns, Contenders, contenders, evenly_spaced
from skpref.kernels import kernel_values

# Where the slope is looked at again, in standard deviations of the column.
_AWAY = 1.7


def control_effects(
    model: Any,
    votes: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    unit: str = "noise",
    level: float = 0.9,
    average: bool | str = "auto",
) -> Bunch:
    """Return the effect of each column beside the ids, and how holding it changes the order.

    Parameters
    ----------
    model, user, at
        As in `leaderboard`; the model knows ids.
    votes : Bunch, default=None
        What `skpref.duels.from_votes` gave, for the names of the controls; slopes are then per unit
        of the columns as they stand in the table of votes.
    unit : {"noise", "elo", "logit"}, default="noise"
        Of utilities, see `leaderboard`.
    level : float, default=0.9
        Probability that an interval holds, of each column for itself.
    average : "auto", True or False, default="auto"
        Whether slopes are means over hyperparameters, as in `leaderboard`.

    Returns
    -------
    effects : Bunch
        Arrays of shape (n_columns,), in the order of the columns. Columns of which the kernel sees
        categories alone, those that it does not see and those of one value are left out.

        names : names of the columns, or their positions where they have none
        slope : posterior mean of what one more of the column adds to the utility, in ``unit``
        lower, upper : central interval of the slope
        probability_positive : that the slope is above zero
        spread : standard deviation of the column over all that was shown; ``slope`` times this is
            the effect of a typical difference
        linear : whether the utility is linear in the column, with one slope for all ids. Elsewhere
            ``slope`` is the mean over the ids of the change of the utility over one standard
            deviation, half of it below and half above where the column is held, or what it is
        tau : Kendall's rank correlation of the order of ids with the column held and with it let
            go; NaN of a column that is not held
        moved : most places by which an id moves; NaN of a column that is not held. Of groups that
            nothing joins (`connected_items`) both are within a group
        frame : DataFrame of these, where pandas is installed, else None
        tau_together, moved_together : the same with all columns that are held let go at once
        level, unit
        held : as in `leaderboard`; a column that is an id's own is not held, unless ``at`` names it

    Raises
    ------
    TypeError
        If the model has no posterior, or users and ``user`` is not told.
    ValueError
        If the model knows no ids, or no column differs between what was shown.

    Notes
    -----
    The board with columns held is that of `leaderboard`. With a column held, all ids have one value
    of it (``at``); let go, each has its own mean over what was shown of it. So ``tau`` and
    ``moved`` tell how much of the order comes from the column: of the length of answers, say, that
    some models give. No model is fitted anew.

    Means and intervals are exact for the posterior. A kernel in which the column stands linearly is
    a `DotProduct` on it, as in `skpref.kernels.leaderboard_kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import control_effects
    >>> from skpref.kernels import leaderboard_kernel
    >>> rng = np.random.default_rng(0)
    >>> ids = rng.permuted(np.tile(np.arange(4.0), (200, 1)), axis=1)[:, :2]
    >>> X = np.stack([ids, rng.normal(size=(200, 2))], axis=2)  # (n_duels, 2, 2)
    >>> utility = X[..., 0] - 0.5 * X[..., 1] + rng.normal(size=(200, 2))
    >>> kernel = leaderboard_kernel(X, id_column=0)
    >>> model = PairwisePreferenceRegressor(kernel, id_column=0)
    >>> effects = control_effects(model.fit(X, utility[:, 0] > utility[:, 1]))
    >>> effects.names.tolist(), bool(effects.lower[0] < -0.5 < effects.upper[0])
    ([1], True)
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("unit", unit, tuple(UNITS))
    ranked = contenders(model, votes, user, {} if at is None else at)
    subject = ranked.subject
    columns = ranked.columns or Columns(subject)
    places = _varying_controls(subject, columns)
    over = subject.over_hyperparameters(average)
    slopes = [_average_slope(ranked, columns, over, unit, place, level) for place in places]
    # A column that is an id's own is not held in the board, and cannot be let go.
    ids = ranked.rows[:, 0, subject.id_place]
    own = {
        place: columns.by_id(place, ids) for place in places if columns.label(place) in ranked.held
    }
    moves = [_compare_orders(ranked, {j: own[j] for j in own if j == place}) for place in places]
    together = _compare_orders(ranked, own)
    values = {
        "names": object_array([columns.label(place) for place in places]),
        **dict(zip(_ControlSlope._fields, map(np.array, zip(*slopes, strict=True)), strict=True)),
        **dict(zip(_OrderChanges._fields, map(np.array, zip(*moves, strict=True)), strict=True)),
    }
    return PrintableBunch(
        **values,
        frame=table_frame(values, range(len(places))),
        tau_together=together.tau,
        moved_together=together.moved,
        level=level,
        unit=unit,
        held=ranked.held,
    )


def _varying_controls(subject: Inspected, columns: Columns) -> list[int]:
    """Return the columns that are controls and vary; ValueError if none is."""
    controls = sorted(columns.measured - columns.categories)
    places = [place for place in controls if np.ptp(subject.training[:, place]) > 0.0]
    if not places:
        raise ValueError(
            f"There is no control: the kernel {subject.posterior.kernel} measures no column beside "
            "the ids that differs between what was shown. Give it a linear term, as "
            "skpref.kernels.leaderboard_kernel does."
        )
    return places


class _ControlSlope(NamedTuple):
    slope: float
    lower: float
    upper: float
    probability_positive: float
    spread: float
    linear: bool


def _average_slope(
    ranked: Contenders,
    columns: Columns,
    over: InspectedMixture,
    unit: str,
    place: int,
    level: float,
) -> _ControlSlope:
    """Return the slope of the utility in one column, over a deviation about where it is held."""
    spread, scale = columns.spread(place), columns.unit(place)
    n, m, d = ranked.rows.shape
    rows = ranked.rows.reshape(n * m, d)
    weight = np.tile(ranked.shares, n) / n
    some = evenly_spaced(len(rows))
    rows, weight = rows[some], weight[some] / weight[some].sum()
    up, down = _shifted_rows(rows, place, 0.5 * spread), _shifted_rows(rows, place, -0.5 * spread)
    linear = _has_one_slope(ranked, up, down, place, spread)
    step = up[0, place] - down[0, place]  # as rounded
    slopes, above = [], 0.0
    for share, subject, length in zip(over.weights, over.subjects, over.lengths(unit), strict=True):
        if linear:
            means, variance = subject.margins(up[:1], down[:1])
        else:
            signed = np.concatenate([weight, -weight])
            moments = subject.moments(np.concatenate([up, down]))
            means = (signed @ moments.means)[None]
            variance = np.maximum(signed @ moments.cov @ signed, 0.0)[None]
        slopes.append((means / (step * length), np.sqrt(variance) / (step * length)))
        above += share * float(probability_positive(means, variance)[0])
    slope = mixture_intervals(over.weights, slopes, level)
    mean, lower, upper = (float(end[0]) / scale for end in (slope.mean, slope.lower, slope.upper))
    return _ControlSlope(mean, lower, upper, above, spread * scale, linear)


def _shifted_rows(rows: Array, place: int, by: float) -> Array:
    """Return a copy of rows with one column moved by a constant."""
    moved = rows.copy()
    moved[:, place] += by
    return moved


def _has_one_slope(ranked: Contenders, up: Array, down: Array, place: int, spread: float) -> bool:
    """Return whether the kernel is linear in a column: one slope at all rows and further along."""
    kernel = ranked.subject.posterior.kernel
    away = [_shifted_rows(rows[:1], place, _AWAY * spread) for rows in (up, down)]
    up, down = np.concatenate([up, away[0]]), np.concatenate([down, away[1]])
    n = len(up)
    K = kernel_values(kernel, np.concatenate([up, down]))
    slopes = K[:n, :n] + K[n:, n:] - K[:n, n:] - K[n:, :n]
    apart = np.abs(slopes - slopes[0, 0]).max()
    return bool(apart <= NEGLIGIBLE * np.abs(K).max())


class _OrderChanges(NamedTuple):
    tau: float
    moved: float


def _compare_orders(ranked: Contenders, own: dict[int, Array]) -> _OrderChanges:
    """Return how the order of ids changes where each has its own values of some columns.

    Within components: the mean of their rank correlations, by their pairs, and the most places.
    NaN where ``own`` is empty.
    """
    if not own:
        return _OrderChanges(np.nan, np.nan)
    free = ranked.rows.copy()
    for place, values in own.items():
        free[:, :, place] = values[:, None]
    held, let_go = ranked.means(), replace(ranked, rows=free).means()
    component, moves, weights = ranked.components(), [], []
    for k in range(component.max() + 1):
        both = [means[component == k] for means in (held, let_go)]
        size = len(both[0])
        if size > 1:
            ranks = [np.argsort(np.argsort(-means, kind="stable")) for means in both]
            moved = int(np.abs(ranks[0] - ranks[1]).max())
            moves.append(_OrderChanges(float(kendalltau(*both).statistic), moved))
            weights.append(size * (size - 1))
    if not moves:
        return _OrderChanges(np.nan, 0)
    tau = float(np.average([each.tau for each in moves], weights=weights))
    return _OrderChanges(tau, max(each.moved for each in moves))
