"""Items from best to worst, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import RandomLike, check_number
from skpref.inspection import leaderboard
from skpref.plotting._style import (
    check_matplotlib,
    in_unit,
    is_laid_out,
    letters,
    new_axes,
    palette,
    percent,
    points_of,
    room_of,
    settle,
    shorten_to,
    tidy,
    wrap_to,
)

# Points that a line of text needs, and the smallest letters that are read with ease.
_LINE, _SMALLEST = 1.25, 5.5
# Inches of a row, of what is not rows, and of the tallest figure.
_ROW, _REST, _TALLEST = 0.21, 1.1, 20.0
# Columns of a leaderboard.
_OF_ITEMS = (
    "names",
    "utility",
    "lower",
    "upper",
    "probability_best",
    "rank_lower",
    "rank_upper",
)
# Shares of the room that names, and the columns of ranks and chances, may take.
_NAMES, _COLUMNS = 0.45, 0.45
# In letters: width of the columns, distance of their right ends from that of the axes, and height
# of their heads.
_WIDTH, _ENDS, _HEAD = 9.0, (4.2, 0.2), 2.7


@dataclass(eq=False, kw_only=True, repr=False)
class LeaderboardDisplay:
    """Utilities with intervals, the best on top, beside them what is known of the places.

    Groups of items that neither answers nor the kernel join stand one below the other, with a line
    between them.

    Made by `from_estimator`; the parameters are kept as attributes, the best item first.

    Parameters
    ----------
    names : array-like of shape (n_items,)
    utility, lower, upper : array-like of shape (n_items,)
        Posterior mean above the mean of all items of the group, and its interval, in units; an
        infinite one is not drawn, nor is its mean.
    probability_best, rank_lower, rank_upper : array-like of shape (n_items,)
        See `skpref.inspection.leaderboard`.
    level : float
    unit : {"noise", "elo", "logit"}
    n_items : int, default=None
        How many there were, where only some are shown. None: as many as are shown.
    component : array-like of int of shape (n_items,), default=None
        Number of the group of each. None: there is one.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_, intervals_ : Line2D and LineCollection
    annotations_ : list of Text
        Empty where rows are too close for letters, or the axes too narrow for the columns.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.plotting import LeaderboardDisplay
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"]]  # winner first
    >>> model = PairwisePreferenceRegressor(items=ItemTable.from_names(games)).fit(games)
    >>> LeaderboardDisplay.from_estimator(model).names.tolist()  # doctest: +SKIP
    ['ann', 'bob', 'cid']
    """

    names: ArrayLike
    utility: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    probability_best: ArrayLike
    rank_lower: ArrayLike
    rank_upper: ArrayLike
    level: float = 0.9
    unit: str = "noise"
    n_items: int | None = None
    component: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        *,
        user: Any = None,
        at: Mapping | ArrayLike | None = None,
        time: Any = None,
        unit: str = "noise",
        level: float = 0.9,
        n_draws: int = 10_000,
        average: bool | str = "auto",
        random_state: RandomLike = 0,
        top: int | None = None,
        ax: Any = None,
        annotate: bool = True,
        color: Any = None,
    ) -> Self:
        """Rank the items and draw them.

        Parameters
        ----------
        model, items, user, at, time, unit, level, n_draws, average, random_state
            See `skpref.inspection.leaderboard`.
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
            As `leaderboard`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        if top is not None:
            check_number("top", top, low=1, integer=True)
        board = leaderboard(
            model,
            items,
            user=user,
            at=at,
            time=time,
            unit=unit,
            level=level,
            n_draws=n_draws,
            average=average,
            random_state=random_state,
        )
        return cls.from_board(board, top=top, ax=ax, annotate=annotate, color=color)

    @classmethod
    def from_board(
        cls,
        board: Any,
        *,
        top: int | None = None,
        ax: Any = None,
        annotate: bool = True,
        color: Any = None,
    ) -> Self:
        """Draw what `leaderboard` gave, or one of `skpref.inspection.leaderboards`.

        Parameters
        ----------
        board : Bunch
        top, ax, annotate, color
            As in `from_estimator`.

        Returns
        -------
        LeaderboardDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib(f"{cls.__name__}.from_board")
        if top is not None:
            check_number("top", top, low=1, integer=True)
        shown = {name: board[name][:top] for name in _OF_ITEMS}
        component = board.component[:top] if board.n_components > 1 else None
        made = cls(
            **shown,
            level=board.level,
            unit=board.unit,
            n_items=len(board.names),
            component=component,
        )
        return made.plot(ax=ax, annotate=annotate, color=color)

    def plot(self, ax: Any = None, *, annotate: bool = True, color: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Made smaller where names would be cut off, unless the figure has a layout engine, which
            sees to that. None: of a new figure, tall enough for the names.
        annotate : bool, default=True
            Write the interval of the rank and the probability of being best beside each item,
            within the axes, if there is room for letters.
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
        known = np.isfinite(lower) & np.isfinite(upper)
        ends = np.where(known, lower, utility), np.where(known, upper, utility)
        self.intervals_ = ax.hlines(rows, *ends, color=color, alpha=0.45, linewidth=2.5)
        if self.component is not None:
            for row in np.flatnonzero(np.diff(np.asarray(self.component))):
                ax.axhline(row + 0.5, color="0.5", linewidth=0.6, zorder=0)
        where = np.where(known, utility, np.nan)
        (self.points_,) = ax.plot(where, rows, "o", color=color, markersize=4.5)
        total = n if self.n_items is None else self.n_items
        mean = "the only item" if total == 1 else f"the mean of the {total} items"
        mean = mean if self.component is None else "the mean of each group"
        label = in_unit(f"utility above {mean}", self.unit)
        ax.set_xlabel(label)
        tidy(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="0.5", alpha=0.2, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_yticks([])
        for _ in range(2):  # names and the lines of the label take room from each other
            settle(ax)
            size, columns = self._letters(ax, n, annotate)
            self._label_rows(ax, n, size)
            settle(ax)
            columns = min(columns, _COLUMNS * points_of(ax)[0] / _WIDTH)
            columns = columns if columns >= _SMALLEST else 0.0
            self._scale(ax, n, columns)
            self._label(ax, label)
        settle(ax)
        self._scale(ax, n, columns)
        self._label(ax, label)
        self.annotations_ = self._annotated(ax, columns) if columns else []
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _letters(ax, n, annotate):
        """Sizes in points of the letters of names and columns; 0 where no columns have room."""
        usual = letters("ytick.labelsize")
        height = points_of(ax)[1]
        below_heads = min(usual, height / (_LINE * (n + 0.2) + _HEAD))
        if annotate and below_heads >= _SMALLEST:
            return below_heads, below_heads
        return min(usual, height / (_LINE * (n + 0.2))), 0.0

    def _label_rows(self, ax, n, size):
        """Names at the rows; where rows are too close, at every second, third, …"""
        step = int(np.ceil(_SMALLEST / size)) if size < _SMALLEST else 1
        rows = np.arange(0, n, step)
        room = ax.get_window_extent().x1 - (_left(ax) if is_laid_out(ax) else room_of(ax)[0])
        ax.set_yticks(rows, [""] * len(rows), fontsize=max(size, _SMALLEST))
        drawn = ax.get_yticklabels()
        for text, name in zip(drawn, np.asarray(self.names)[rows], strict=True):
            shorten_to(text, name, _NAMES * room)
        ax.set_yticks(rows, [text.get_text() for text in drawn])

    def _scale(self, ax, n, columns):
        """Limits that leave room for columns of letters of this size, right, and their heads."""
        from matplotlib.ticker import MaxNLocator, ScalarFormatter

        width, height = points_of(ax)
        ends = np.concatenate([np.asarray(self.lower), np.asarray(self.upper)])
        low = float(np.min(ends, where=np.isfinite(ends), initial=0.0))
        high = float(np.max(ends, where=np.isfinite(ends), initial=0.0))
        spare = 0.05 * (high - low) or 1.0
        low, high = low - spare, high + spare
        share = columns * _WIDTH / width
        ax.set_xlim(low, low + (high - low) / (1.0 - share))
        letters = ax.xaxis.label.get_size()
        most = max(2, int((1.0 - share) * width / (4.0 * letters)))
        ticks = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        ax.set_xticks([tick for tick in ticks if low <= tick <= high])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.spines["bottom"].set_bounds(low, high)
        head = _HEAD * columns
        ax.set_ylim(n - 0.4, -0.6 - (n + 0.2) * head / (height - head))

    @staticmethod
    def _label(ax, label):
        """The label below the scale, in as many lines as names and axes leave it."""
        text, right, left = ax.set_xlabel(label), ax.get_window_extent().x1, _left(ax)
        wrap_to(text, right - left)
        half = 0.5 * text.get_window_extent().width
        _, end = ax.spines["bottom"].get_bounds()
        middle = 0.5 * (ax.get_window_extent().x0 + ax.transData.transform((end, 0.0))[0])
        middle = max(left + half, min(middle, right - half))
        text.set_x(ax.transAxes.inverted().transform((middle, 0.0))[0])

    def _annotated(self, ax, size):
        """Columns at the right: the interval of the rank, the probability of being best."""
        across = ax.get_yaxis_transform()
        low, high = np.asarray(self.rank_lower), np.asarray(self.rank_upper)
        columns = (
            (f"rank\n({percent(self.level)})", map(_range, low, high)),
            ("is best", map(_chance, np.asarray(self.probability_best))),
        )
        style = {
            "xycoords": across,
            "textcoords": "offset points",
            "va": "center_baseline",
            "ha": "right",
            "fontsize": size,
        }
        top = style | {"va": "bottom", "fontsize": 0.9 * size, "fontstyle": "italic"}
        found = []
        for end, (head, texts) in zip(_ENDS, columns, strict=True):
            place = (-end * size, 0.0)
            found.append(ax.annotate(head, xy=(1.0, -0.6), xytext=place, **top))
            found += [
                ax.annotate(text, xy=(1.0, row), xytext=place, **style)
                for row, text in enumerate(texts)
            ]
        return found


def _left(ax):
    """Where axes with their names begin, in pixels."""
    names = [name.get_window_extent().x0 for name in ax.get_yticklabels()]
    return min([ax.get_window_extent().x0, *names])


def _range(low, high):
    return f"{low}" if low == high else f"{low}–{high}"


def _chance(probability):
    if probability < 0.0005:
        return "–"
    return "< 1 %" if probability < 0.01 else f"{100.0 * probability:.0f} %"
