"""Utilities of items through time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skpref._utils import Array, check_choice, check_number, printable_text
from skpref.data import AnswerTimes, table_frame
from skpref.fitting import UNITS, last_step, noise_deviation, unit_length
from skpref.inspection._contenders import Contenders, contenders

# Times that are asked about where none are told.
_TIMES = 100


def trajectories(
    model: Any,
    items: Any = None,
    times: ArrayLike | None = None,
    *,
    relative: Any = None,
    at: Mapping | ArrayLike | None = None,
    top: int = 5,
    unit: str = "noise",
    level: float = 0.9,
    average: bool | str = "auto",
) -> Bunch:
    """Return utilities of items through time, with intervals.

    Answers tell differences of utilities alone, so at each time a mean is taken off: that of all
    items of the model as they were then, or of those named by ``relative``. An interval is one of
    that difference, with all covariances that the posterior has.

    Parameters
    ----------
    model : estimator, pipeline, search or Posterior
        Fitted with ``time``.
    items : name, ItemTable, DataFrame, array-like or votes, default=None
        Whose utilities, as in `leaderboard`. None, or what `skpref.duels.from_votes` gave: the
        ``top`` best at the last time of training.
    times : array-like of shape (n_times,), default=None
        When, in any order, in the unit or of the kind of the ``time`` of `fit`; also later than
        that. None: 100 times from the first to the last of training.
    relative : name, ItemTable, DataFrame or array-like, default=None
        The reference: one item or several, whose mean is zero at all times. None: all items of the
        model, those of `leaderboard` with ``items=None``.
    at : dict or array-like, default=None
        Where the columns beside the ids are held, as in `leaderboard`.
    top : int, default=5
        How many items, where ``items`` does not say which.
    unit : {"noise", "elo", "logit"}, default="noise"
        As in `leaderboard`.
    level : float, default=0.9
        Probability that an interval holds, of each item and time for itself.
    average : "auto", True or False, default="auto"
        Whether this is a mean over hyperparameters, as in `leaderboard`.

    Returns
    -------
    found : Bunch
        names : ndarray of shape (n_items,)
            The best at the last of the times first where ``items`` does not say which, else in
            its order.
        times : ndarray of shape (n_times,)
            Floats, or datetime64 where the fit had dates; in UTC, where they had time zones.
        utility, lower, upper : ndarray of shape (n_items, n_times)
            Posterior mean above that of the reference, and the central interval, in units. Of
            several groups that nothing joins (`connected_items`) the reference is the item's own
            group; of an item of another group than all of a named reference nothing is known: 0
            and infinite ends.
        component : ndarray of int of shape (n_items,)
            Number of the group of each, as in `leaderboard`.
        n_components : int
            Number of groups.
        answered : list of ndarray
            Distinct times of each item's answers, ascending. Of streams of `SVI` those of the last
            piece.
        reference : ndarray or None
            Names of the reference; None where it is all items.
        n_items : int
            Items of the reference.
        now : scalar
            The last time of training, as in ``times``.
        frame : DataFrame
            One row for each item and time, where pandas is installed, else None.
        level, unit, unit_length, noise_deviation, n_hyperparameters, held
            As in `leaderboard`.

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If the model was fitted without times, ``times`` is empty or not of their kind, or as by
        `leaderboard`.

    Notes
    -----
    At one time these are the utilities of ``leaderboard(model, time=...)``, where the items are all
    of the model. The mean over all moves itself: where a field gets better as a whole, an item
    that stays as good goes down, and answers between these items do not tell one from the other. A
    named reference shows the distance to it, whose interval is zero for the reference itself.

    Before its first answer an item has the prior, drawn to what was told later: whether it was
    there then, nobody said.

    Of items that are independent through time (``inference=EP(items="independent")``, which "auto"
    takes from some thousand answers on) covariances between items are zero but for what features
    share, so that intervals of these differences are a few per cent too long or too short, see
    `skpref.inference.EP`.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import trajectories
    >>> games = [["ann", "bob"]] * 5 + [["bob", "ann"]] * 5  # the winner first
    >>> model = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    >>> model = model.fit(games, time=range(2016, 2026))
    >>> found = trajectories(model, ["ann"], [2016, 2020.5, 2025], relative="bob")
    >>> found.utility.round(1).tolist()
    [[3.4, -0.0, -3.5]]
    >>> print(found)
    Trajectories of 1 at 3 times from 2016.0 to 2025.0 in units of noise above 'bob', 90 % intervals
      ann     3.38  [   -0.05,     6.81]  to    -3.48  [   -6.98,     0.03]
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("top", top, low=1, integer=True)
    check_choice("unit", unit, tuple(UNITS))
    votes = items if isinstance(items, Mapping) and "item_table" in items else None
    board = contenders(model, votes, at=at)
    axis = _time_axis(board)
    asked = _relative_times(axis, times)
    best = items is None or votes is not None
    by_mean = np.argsort(-board.means(), kind="stable")[:top]
    chosen = board.take(by_mean) if best else contenders(model, _item_list(items), at=at)
    reference = board if relative is None else contenders(model, _item_list(relative), at=at)
    over = chosen.subject.over_hyperparameters(average)
    component, groups = _item_components(chosen, reference)
    same_component = component[:, None] == groups
    rows, weights = _difference_weights(chosen, reference, same_component)
    n_components = len(np.unique(np.append(component, groups)))
    is_joined = same_component.sum(axis=1) > (n_components > 1 and relative is None)
    mean, lower, upper = _summarise_at_times(over, rows, weights, asked, unit, level)
    mean[~is_joined], lower[~is_joined], upper[~is_joined] = 0.0, -np.inf, np.inf
    last_mean = mean[:, np.argmax(asked)]
    order = np.argsort(-last_mean, kind="stable") if best else np.arange(len(chosen))
    met = chosen.subject.answer_times(chosen.rows[:, 0])
    return _Trajectories.from_curves(
        board.subject.posterior,
        (chosen.names[order], axis.times(asked), mean[order], lower[order], upper[order]),
        unit,
        level,
        component=component[order],
        n_components=n_components,
        answered=[axis.times(met[k]) for k in order],
        reference=None if relative is None else reference.names,
        n_items=len(reference),
        n_hyperparameters=over.n_hyperparameters,
        held=chosen.held,
    )


def _time_axis(board: Contenders) -> Any:
    """Return the axis of the times of a fit; ValueError if it had none."""
    axis = board.subject.posterior.reader.time
    if axis is None:
        raise ValueError(
            "Trajectories are of utilities that change: fit the model with time= (and drift=). A "
            "model without times has a leaderboard."
        )
    return axis


def order_trajectory(
    model: Any,
    times: ArrayLike | None = None,
    *,
    unit: str = "noise",
    level: float = 0.9,
    average: bool | str = "auto",
) -> Bunch:
    """Return the order effect through time, such as home advantage, with intervals.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted with ``order_drift``.
    times, unit, level, average
        As in `trajectories`.

    Returns
    -------
    found : Bunch
        As that of `trajectories`, which `TrajectoryDisplay.from_trajectories` draws: one row, by
        how much the utility of what is shown first is above that of what is not. ``answered`` has
        the times of the answers in which something was shown first.

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If the model was fitted without ``order_drift``, or as by `trajectories`.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import order_trajectory
    >>> games = [["ann", "bob"], ["bob", "ann"]] * 5  # the winner first, who was at home
    >>> games += [["ann", "bob"], ["bob", "ann"]] * 5  # the loser was
    >>> model = PairwisePreferenceRegressor(order_drift="wiener", optimizer=None)
    >>> model = model.fit(games, order=[1] * 10 + [-1] * 10, time=range(20))
    >>> order_trajectory(model, [0, 19]).utility.round(1).tolist()
    [[3.6, -3.7]]
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("unit", unit, tuple(UNITS))
    board = contenders(model)
    posterior = board.subject.posterior
    if not posterior.reader.by_order:
        raise ValueError(
            "got a model whose order effect does not move; one fitted with order_drift= is "
            "allowed. answer_effects has an order effect that is the same at all times."
        )
    axis, over = posterior.reader.time, board.subject.over_hyperparameters(average)
    asked = _relative_times(axis, times)
    rows = np.column_stack([np.repeat(board.rows[:1, 0], 2, axis=0), [1.0, 0.0]])
    weights = np.array([[1.0, -1.0]])
    shift = posterior.likelihood.order_shift * (over.weights @ (1.0 / np.array(over.lengths(unit))))
    curves = _summarise_at_times(over, rows, weights, asked, unit, level, column=-2) + shift
    answers = last_step(model).comparisons_
    shown = answers.items[answers.items[:, -1] == 1.0]
    return _Trajectories.from_curves(
        posterior,
        (np.array(["shown first"]), axis.times(asked), *curves),
        unit,
        level,
        component=np.zeros(1, dtype=np.intp),
        n_components=1,
        answered=[axis.times(np.unique(shown[:, -2]))],
        reference=np.array(["what is not shown first"]),
        n_items=1,
        n_hyperparameters=over.n_hyperparameters,
        held={},
    )


def _summarise_at_times(
    over: Any,
    rows: Array,
    weights: Array,
    asked: Array,
    unit: str,
    level: float,
    column: int = -1,
) -> Array:
    """Return means and interval ends, (3, n, n_times), of weighted sums of rows at times."""
    summaries = []
    for when in asked:
        rows[:, column] = when
        summaries.append(over.sums(rows, weights, unit, level))
    return np.stack([np.stack(parts, axis=1) for parts in zip(*summaries, strict=True)])


class _Trajectories(Bunch):
    """Trajectories, which show their ends."""

    @classmethod
    def from_curves(
        cls, posterior: Any, curves: tuple[Array, ...], unit: str, level: float, **fields: Any
    ) -> "_Trajectories":
        """Return the Bunch of names, times, means and interval ends, and further fields."""
        names, times, mean, lower, upper = curves
        axis = posterior.reader.time
        columns = {
            "name": np.repeat(names, len(times)),
            "time": np.tile(times, len(names)),
            "utility": mean.ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
        return cls(
            names=names,
            times=times,
            utility=mean,
            lower=lower,
            upper=upper,
            now=axis.times(np.array([axis.now]))[0],
            frame=table_frame(columns, range(len(names) * len(times))),
            level=level,
            unit=unit,
            unit_length=unit_length(posterior, unit),
            noise_deviation=noise_deviation(posterior),
            **fields,
        )

    def __repr__(self) -> str:
        names, times = [*map(printable_text, self["names"].tolist())], self["times"]
        reference = f"the mean of {self['n_items']}"
        if self["reference"] is not None and self["n_items"] == 1:
            reference = repr(self["reference"].tolist()[0])
        elif self["reference"] is None and self["n_components"] > 1:
            reference = f"the mean of each of {self['n_components']} groups"
        lines = [
            f"Trajectories of {len(names)} at {len(times)} times from {times.min()} to "
            f"{times.max()} in units of {self['unit']} above {reference}, "
            f"{100.0 * self['level']:g} % intervals"
        ]
        width = max(map(len, names))
        ends = np.argmin(times), np.argmax(times)
        for k, name in enumerate(names):
            # 0 without a sign
            mean, low, high = (
                np.round(self[of][k, ends], 2) + 0.0 for of in ("utility", "lower", "upper")
            )
            first, last = (
                f"{mean[end]:7.2f}  [{low[end]:8.2f}, {high[end]:8.2f}]" for end in (0, 1)
            )
            lines.append(f"  {name:<{width}}  {first}  to  {last}")
        return "\n".join(lines)


def _relative_times(axis: Any, times: ArrayLike | None) -> Array:
    """Return the times to ask about, relative to the first of training."""
    if times is None:
        return np.linspace(0.0, axis.now, _TIMES if axis.now > 0.0 else 1)
    n = 1 if np.ndim(times) == 0 else len(times)  # type: ignore[arg-type]  # stub too wide
    if not n:
        raise ValueError("times is empty; give one time at least, or None for those of training.")
    return axis.to_relative(AnswerTimes.read(times, n, "times"))


def _item_list(items: Any) -> Any:
    """Return items as they are, a single name as a list."""
    return [items] if isinstance(items, str | int | np.integer) else items


def _item_components(
    chosen: Contenders, reference: Contenders
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the connected components of the chosen items, and of those in the reference."""
    both = replace(reference, names=np.concatenate([reference.names, chosen.names]))
    both = replace(both, rows=np.concatenate([reference.rows, chosen.rows]))
    component = both.components()
    return component[len(reference) :], component[: len(reference)]


def _difference_weights(
    chosen: Contenders, reference: Contenders, same_component: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return rows and weights of contrasts: each chosen item less the mean of its references."""
    own = np.kron(np.eye(len(chosen)), chosen.shares)
    mean = np.kron(
        same_component / np.maximum(same_component.sum(axis=1), 1)[:, None], reference.shares
    )
    width = chosen.rows.shape[2]
    rows = np.concatenate([chosen.rows.reshape(-1, width), reference.rows.reshape(-1, width)])
    return rows, np.hstack([own, -mean])
