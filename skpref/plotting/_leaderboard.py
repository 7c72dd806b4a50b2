"""Items from best to worst, with intervals."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skpref._parameters import check_choice, check_number
from skpref._random import RandomLike
from skpref.inspection import leaderboard
from skpref.plotting._style import (
    check_matplotlib,
    new_axes,
    palette,
    percent,
    plain,
    shortened,
    tidy,
)

# Points that a line of text needs, and the smallest letters that are read with ease.
_LINE, _SMALLEST = 1.25, 5.5
# Inches of a row, of what is not rows, and of the tallest figure.
_ROW, _REST, _TALLEST = 0.21, 0.95, 20.0


class LeaderboardDisplay:
    """Utilities with intervals, the best on top, beside them what is known of the places.

    Made by `from_estimator`; the parameters are kept as attributes, the best item first.

    Parameters
    ----------
    names : array-like of shape (n_items,)
    utility, lower, upper : array-like of shape (n_items,)
        Posterior mean above the mean of all items, and its interval.
    probability_best, rank_lower, rank_upper : array-like of shape (n_items,)
        See `skpref.inspection.leaderboard`.
    level : float
    unit : {"utility", "noise"}
        Of the three: that of the prior, or standard deviations of an item's noise.
    n_items : int, default=None
        How many there were, where only some are shown. None: as many as are shown.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_, intervals_ : Line2D and LineCollection
    annotations_ : list of Text
        Empty where rows are too close for letters.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.plotting import LeaderboardDisplay
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"]]  # winner first
    >>> model = PairwisePreferenceRegressor(items=ItemTable.from_names(games)).fit(games)
    >>> LeaderboardDisplay.from_estimator(model).names.tolist()  # doctest: +SKIP
    ['ann', 'bob', 'cid']
    """

    def __init__(
        self,
        *,
        names: ArrayLike,
        utility: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        probability_best: ArrayLike,
        rank_lower: ArrayLike,
        rank_upper: ArrayLike,
        level: float = 0.9,
        unit: str = "utility",
        n_items: int | None = None,
    ):
        self.names = names
        self.utility = utility
        self.lower = lower
        self.upper = upper
        self.probability_best = probability_best
        self.rank_lower = rank_lower
        self.rank_upper = rank_upper
        self.level = level
        self.unit = unit
        self.n_items = n_items

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        *,
        level: float = 0.9,
        n_draws: int = 10_000,
        random_state: RandomLike = 0,
        unit: str | None = None,
        top: int | None = None,
        ax: Any = None,
        annotate: bool = True,
        color: Any = None,
    ) -> Self:
        """Rank the items and draw them.

        Parameters
        ----------
        model : estimator, pipeline, optimizer or Posterior
            Anything fitted that has a ``posterior_``, or that posterior.
        items, level, n_draws, random_state
            See `skpref.inspection.leaderboard`.
        unit : {"noise", "utility"}, default=None
            "noise": in standard deviations of an item's noise, the unit that answers identify, so
            that intervals hold their level also where hyperparameters were learned. "utility": as
            `leaderboard`. None: "noise", if the likelihood has one.
        top : int, default=None
            Show the best so many only; ranks and the zero stay those among all.
        ax : matplotlib Axes, default=None
        annotate : bool, default=True
        color : matplotlib color, default=None

        Returns
        -------
        LeaderboardDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `leaderboard`, or if the likelihood has no noise to measure by.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        if unit is not None:
            check_choice("unit", unit, ("noise", "utility"))
        if top is not None:
            check_number("top", top, low=1, integer=True)
        board = leaderboard(model, items, level=level, n_draws=n_draws, random_state=random_state)
        if unit is None:
            unit = "utility" if board.noise_deviation is None else "noise"
        scale = board.noise_deviation if unit == "noise" else 1.0
        if scale is None:
            raise ValueError(
                'unit="noise" needs a likelihood with a noise_variance; use unit="utility".'
            )
        shown = slice(top)
        made = cls(
            names=board.names[shown],
            utility=board.utility[shown] / scale,
            lower=board.lower[shown] / scale,
            upper=board.upper[shown] / scale,
            probability_best=board.probability_best[shown],
            rank_lower=board.rank_lower[shown],
            rank_upper=board.rank_upper[shown],
            level=level,
            unit=unit,
            n_items=len(board.names),
        )
        return made.plot(ax=ax, annotate=annotate, color=color)

    def plot(self, ax: Any = None, *, annotate: bool = True, color: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, tall enough for the names.
        annotate : bool, default=True
            Write the interval of the rank and the probability of being best beside each item,
            if rows leave room for letters.
        color : matplotlib color, default=None

        Returns
        -------
        LeaderboardDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        utility, lower, upper = map(np.asarray, (self.utility, self.lower, self.upper))
        n = len(utility)
        height = float(np.clip(_ROW * n + _REST, 1.6, _TALLEST))
        ax = new_axes(ax, (7.0, height))
        color = palette(ax).blue if color is None else color
        rows = np.arange(n)
        ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
        self.intervals_ = ax.hlines(rows, lower, upper, color=color, alpha=0.45, linewidth=2.5)
        (self.points_,) = ax.plot(utility, rows, "o", color=color, markersize=4.5)
        ax.set_ylim(n - 0.4, -0.6)
        size = self._letters(ax, n)
        self._label_rows(ax, n, size)
        total = n if self.n_items is None else self.n_items
        mean = "the only item" if total == 1 else f"the mean of the {total} items"
        unit = "\n(standard deviations of the noise)" if self.unit == "noise" else ""
        ax.set_xlabel(f"utility above {mean}{unit}")
        tidy(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="0.5", alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)
        self.annotations_ = self._annotated(ax, size) if annotate and size >= _SMALLEST else []
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _letters(ax, n):
        """Size of letters in points that the rows leave room for."""
        from matplotlib import font_manager, rcParams

        usual = font_manager.FontProperties(size=rcParams["ytick.labelsize"]).get_size_in_points()
        box = ax.get_window_extent()
        row = box.height * 72.0 / ax.figure.dpi / (n + 0.2)
        return min(usual, row / _LINE)

    def _label_rows(self, ax, n, size):
        """Names at the rows; where rows are too close, at every second, third, …"""
        step = int(np.ceil(_SMALLEST / size)) if size < _SMALLEST else 1
        rows = np.arange(0, n, step)
        labels = [plain(shortened(self.names[i])) for i in rows]
        ax.set_yticks(rows, labels, fontsize=max(size, _SMALLEST))

    def _annotated(self, ax, size):
        """Columns right of the axes: the interval of the rank, the probability of being best."""
        across = ax.get_yaxis_transform()
        columns = (
            (
                4.8 * size,
                f"rank\n({percent(self.level)})",
                map(_range, self.rank_lower, self.rank_upper),
            ),
            (8.8 * size, "is best", map(_chance, self.probability_best)),
        )
        style = {
            "textcoords": "offset points",
            "va": "center_baseline",
            "ha": "right",
            "fontsize": size,
        }
        found = []
        for right, head, texts in columns:
            place = {"xy": (1.0, 1.0), "xycoords": "axes fraction", "xytext": (right, 2.0)}
            top = style | {"va": "bottom", "fontsize": 0.9 * size, "fontstyle": "italic"}
            found.append(ax.annotate(head, **place, **top))
            found += [
                ax.annotate(text, xy=(1.0, row), xycoords=across, xytext=(right, 0.0), **style)
                for row, text in enumerate(texts)
            ]
        return found


def _range(low, high):
    return f"{low}" if low == high else f"{low}–{high}"


def _chance(probability):
    if probability < 0.0005:
        return "–"
    return "< 1 %" if probability < 0.01 else f"{100.0 * probability:.0f} %"
