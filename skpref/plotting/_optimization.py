"""The course of an optimisation run."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, check_choice, check_number
from skpref.fitting import Inspected, Relative, unit_length
from skpref.plotting._style import (
    GREY,
    SIZES,
    Display,
    check_matplotlib,
    draw_band,
    draw_legend_above,
    hide_frame,
    label_with_unit,
    palette,
    percent_text,
)


class Run(NamedTuple):
    """Items shown and their answers, in order.

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


def read_run(optimizer: Any) -> Run:
    """Return the items shown and answers of an optimizer, from its ``history_``.

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
    places = [winner_position(outcome) for _, outcome in history]
    best = [
        None if place is None else int(positions[place])
        for place, positions in zip(places, shown, strict=True)
    ]
    return Run([flat[i] for i in first], rows, shown, best)


def winner_position(outcome: Any) -> int | None:
    """Return the position of the best item shown; None if the answer does not say."""
    if isinstance(outcome, dict):
        position = outcome["ranking"][0] if "ranking" in outcome else outcome.get("chosen")
        return None if isinstance(position, list) else position
    return None if outcome == "tie" else int(outcome <= 0)


def best_so_far(run: Run, mean: Array) -> NDArray[np.intp]:
    """Return the item of the largest posterior mean among those shown up to each answer."""
    best_items, best = [], run.shown[0][0]
    for positions in run.shown:
        best = max((best, *positions), key=lambda i: mean[i])
        best_items.append(best)
    return np.array(best_items, dtype=np.intp)


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


def utility_line(optimizer: Any, run: Run, level: float, length: float) -> Line | None:
    """Return the utility between the outermost items of a run, in units of ``length``.

    None but for one dimension of numbers.
    """
    try:
        at = np.array([_only_value(item) for item in run.items])
    except (TypeError, ValueError):
        return None
    order = np.argsort(at)
    unit = run.rows[:, 0]
    if run.rows.shape[1] != 1 or np.any(np.diff(unit[order]) <= 0.0):
        return None
    # Unit-cube places between items are those of numbers in between.
    x = np.linspace(at.min(), at.max(), SIZES.curve_points)
    rows = np.interp(x, at[order], unit[order])[:, None]
    return Line(
        x,
        Inspected.from_model(optimizer.posterior_)
        .intervals_about_mean(rows, level)
        .in_unit(length),
        at,
    )


def _only_value(item):
    """Return the only value of an item as a float; ValueError if it has more."""
    values = list(item.values()) if hasattr(item, "values") else item
    if isinstance(values, str) or np.size(values) != 1:
        raise ValueError("more than one value")
    return float(np.ravel(values)[0])


# By the posterior at the end, and not by the objective.
_RECOMMENDED = "largest posterior mean so far"


@dataclass(eq=False, kw_only=True, repr=False)
class OptimizationDisplay(Display):
    """How a run of an optimizer went, answer by answer.

    Made by `from_optimizer`; the parameters are kept as attributes. Everything is judged by the
    posterior at the end: the item recommended after t answers is that, of the items shown until
    then, which now has the largest posterior mean. The last of them is `recommend`. Its utility
    never falls; its regret may rise, where the posterior takes a worse item for a better one.

    Parameters
    ----------
    run : Run
        ``items``, ``rows``, ``shown`` and ``best`` (the winner) of each answer.
    utility, lower, upper : ndarray of shape (n_items,)
        Of the items of ``run``: posterior mean above the mean of them, and its interval, in units.
    best : ndarray of shape (n_answers,)
        Position in ``run.items`` of the item of the largest posterior mean so far.
    regret : ndarray of shape (n_items,) or None
        What each item lacks of the optimum, where an objective was given.
    line : Line or None
        The utility in one dimension: ``x``, ``utility``, ``at``.
    level : float
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    best_ : Line2D
        The item of the largest posterior mean so far (``kind="course"``), or the posterior mean
        (``kind="utility"``).
    band_ : PolyCollection
        Absent from a course of regret.
    winners_, others_ : Line2D
        Items shown, winners and others.

    Examples
    --------
    >>> from skpref import HallucinationBelieverOptimizer
    >>> from skpref.plotting import OptimizationDisplay
    >>> optimizer = HallucinationBelieverOptimizer([(0.0, 1.0)], random_state=0)
    >>> best = optimizer.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), n_duels=10)
    >>> OptimizationDisplay.from_optimizer(optimizer)  # doctest: +SKIP
    """

    run: Run
    utility: Array
    lower: Array
    upper: Array
    best: NDArray[np.intp]
    regret: Array | None = None
    line: Line | None = None
    level: float = 0.9
    unit: str = "noise"

    @classmethod
    def from_optimizer(
        cls,
        optimizer: Any,
        objective: Any = None,
        *,
        optimum: float | None = None,
        unit: str = "noise",
        level: float = 0.9,
        kind: str = "course",
        ax: Any = None,
    ) -> Self:
        """Read a run and draw it.

        Parameters
        ----------
        optimizer : PreferenceOptimizer
            With at least one answer told.
        objective : callable or object with a method ``regret``, default=None
            What was to be maximised, if it is known: an item to a number; or a `BenchmarkFunction`.
            Then regret is drawn.
        optimum : float, default=None
            The largest value of a callable. None: that of the items shown.
        unit : {"noise", "elo", "logit"}, default="noise"
            Of utilities, see `skpref.inspection.leaderboard`. Regret is in that of the objective.
        level : float, default=0.9
        kind : {"course", "utility"}, default="course"
            See `plot`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        OptimizationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If nothing was told.
        """
        check_matplotlib(f"{cls.__name__}.from_optimizer")
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        check_choice("kind", kind, ("course", "utility"))
        run = read_run(optimizer)
        posterior = optimizer.posterior_
        length = unit_length(posterior, unit)
        relative = (
            Inspected.from_model(posterior).intervals_about_mean(run.rows, level).in_unit(length)
        )
        regret = None if objective is None else _item_regrets(run, objective, optimum)
        made = cls(
            run=run,
            utility=relative.mean,
            lower=relative.lower,
            upper=relative.upper,
            best=best_so_far(run, relative.mean),
            regret=regret,
            line=utility_line(optimizer, run, level, length),
            level=level,
            unit=unit,
        )
        return made.plot(ax=ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "course") -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        kind : {"course", "utility"}, default="course"
            "course": over the answers, the utility of the items shown, and the largest so far; if
            there is an objective, their regret. "utility": in one dimension the utility with its
            band, and below it every question, the first on top.

        Returns
        -------
        OptimizationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``kind="utility"`` and the items are not numbers on one line.
        """
        check_choice("kind", kind, ("course", "utility"))
        if kind == "utility" and self.line is None:
            raise ValueError('kind="utility" needs items of one dimension that are numbers.')
        ax = self._new_axes(ax, (6.4, 4.0))
        if kind == "utility" and self.line is not None:
            self._draw_line(ax, self.line)
        elif self.regret is not None:
            self._draw_regret(ax, self.regret)
        else:
            self._draw_course(ax)
        hide_frame(ax)
        return self

    def _draw_answers(self, ax, points, **style):
        """Draw the items of every answer at some points, the chosen one in a colour of its own.

        ``points`` has a list for each answer, in it the place of each item shown.
        """
        chosen, others = list[tuple[float, float]](), list[tuple[float, float]]()
        for places, shown, best in zip(points, self.run.shown, self.run.best, strict=True):
            for place, item in zip(places, shown, strict=True):
                (chosen if item == best else others).append(place)
        fill = style.pop("markerfacecolor")
        style |= {"marker": "o", "linestyle": "none"}
        (self.others_,) = ax.plot(
            *np.array(others).T, color=GREY, markerfacecolor=fill, label="not chosen", **style
        )
        (self.winners_,) = ax.plot(
            *np.array(chosen or [(np.nan, np.nan)]).T,
            color=palette(ax).orange,
            label="chosen",
            **style,
        )

    def _draw_run(self, ax, values: Array):
        """Draw a value of the items of each answer, and that of the item recommended after it."""
        from matplotlib.ticker import MaxNLocator

        points = [[(k, values[i]) for i in shown] for k, shown in enumerate(self.run.shown, 1)]
        look = {"markerfacecolor": "none", "markersize": 4, "markeredgewidth": 0.9, "zorder": 3}
        self._draw_answers(ax, points, **look)
        style = {"where": "post", "color": palette(ax).blue, "linewidth": 2.0}
        steps = np.arange(1, len(points) + 1)
        (self.best_,) = ax.step(steps, values[self.best], label=_RECOMMENDED, **style)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("answers told")
        ax.set_xlim(left=0)
        draw_legend_above(ax, 2)

    def _draw_course(self, ax):
        """Draw the utilities of the items shown, with the interval of the one recommended."""
        self.band_ = draw_band(
            ax,
            np.arange(1, len(self.best) + 1),
            self.lower[self.best],
            self.upper[self.best],
            label=f"{percent_text(self.level)} interval",
            step="post",
        )
        self._draw_run(ax, self.utility)
        ax.set_ylabel(label_with_unit("utility above the mean of the items shown", self.unit))

    def _draw_regret(self, ax, regret: Array):
        """Draw the regret of the items shown, on a logarithmic axis where some have any."""
        self._draw_run(ax, regret)
        if np.any(regret > 0.0):
            ax.set_yscale("log", nonpositive="clip")
        ax.set_ylabel("regret")

    def _draw_line(self, ax, line: Line):
        """Draw the utility along the only dimension, with the questions below it."""
        x, utility, at = line
        label = f"{percent_text(self.level)} interval"
        self.band_ = draw_band(ax, x, utility.lower, utility.upper, label=label)
        (self.best_,) = ax.plot(
            x, utility.mean, color=palette(ax).blue, linewidth=2.0, label="posterior mean"
        )
        low, high = utility.lower.min(), utility.upper.max()
        top, share = max(high, low + 1e-9), SIZES.questions_share
        bottom = (low - share * top) / (1.0 - share)  # room for the questions below the curve
        ax.plot(
            [at[self.best[-1]]] * 2,
            [bottom, high],
            color=palette(ax).blue,
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            label="recommended",
        )
        self._draw_questions(ax, at)
        ax.set_ylim(bottom, top)
        draw_legend_above(ax, 3)
        ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])
        ax.set_ylabel(label_with_unit("utility above the mean of the curve", self.unit))
        ax.set_xlabel("item (below: the questions, the first on top)")

    def _draw_questions(self, ax, at):
        """Draw every question as a line between its items, below the curve."""
        n = len(self.run.shown)
        heights = np.linspace(SIZES.questions_share - 0.04, 0.025, n)
        look = {"transform": ax.get_xaxis_transform()}
        for height, shown in zip(heights, self.run.shown, strict=True):
            ends = [at[shown].min(), at[shown].max()]
            ax.plot(ends, [height] * 2, color=GREY, linewidth=0.6, alpha=0.7, **look)
        points = [
            [(at[i], height) for i in shown]
            for height, shown in zip(heights, self.run.shown, strict=True)
        ]
        look |= {"markerfacecolor": ax.get_facecolor(), "markersize": min(4.5, 60.0 / n + 1.5)}
        self._draw_answers(ax, points, **look)


def _item_regrets(run: Run, objective: Any, optimum: float | None) -> Array:
    """Return the optimum less the objective of each item; without an optimum the best of these."""
    if hasattr(objective, "regret"):
        return np.array([float(objective.regret(item)) for item in run.items])
    values = np.array([float(objective(item)) for item in run.items])
    return (values.max() if optimum is None else optimum) - values
