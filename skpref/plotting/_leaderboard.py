"""Items from best to worst, with intervals."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import check_number, probability_text
from skpref.inspection import leaderboard
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    draw_row_names,
    draw_rows,
    height_of_rows,
    label_with_unit,
    letter_size,
    palette,
    percent_text,
    row_letter_size,
    size_in_points,
    thin_look,
)

# Columns of a leaderboard.
_OF_ITEMS = (
    *("names", "utility", "lower", "upper"),
    *("probability_best", "rank_lower", "rank_upper"),
)


@dataclass(eq=False, kw_only=True, repr=False)
class LeaderboardDisplay(Display):
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
        Empty where rows are too close for letters, or the axes narrower than the columns.

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
        top: int | None = None,
        ax: Any = None,
        annotate: bool = True,
        color: Any = None,
        **options: Any,
    ) -> Self:
        """Rank the items and draw them.

        Parameters
        ----------
        model, items
            See `skpref.inspection.leaderboard`.
        top : int, default=None
            Show the best so many only; ranks and the zero stay those among all.
        ax : matplotlib Axes, default=None
        annotate : bool, default=True
        color : matplotlib color, default=None
        **options
            For `leaderboard`, such as ``unit="elo"``.

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
        board = leaderboard(model, items, **options)
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
        beside = {"level": board.level, "unit": board.unit, "n_items": len(board.names)}
        made = cls(**shown, **beside, component=component)
        return made.plot(ax=ax, annotate=annotate, color=color)

    def plot(self, ax: Any = None, *, annotate: bool = True, color: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Subplots of a figure without a layout engine get matplotlib's constrained layout, which
            makes room for names. None: of a new figure, tall enough for the names.
        annotate : bool, default=True
            Write the interval of the rank and the probability of being best right of each item, if
            there is room for letters.
        color : matplotlib color, default=None

        Returns
        -------
        LeaderboardDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n = len(np.asarray(self.names))
        ax = self._new_axes(ax, (7.0, height_of_rows(n)))
        color = palette(ax).blue if color is None else color
        ax.axvline(0.0, **thin_look())
        ends = self.lower, self.upper
        self.intervals_, self.points_ = draw_rows(ax, self.utility, ends, color)
        if self.component is not None:
            for row in np.flatnonzero(np.diff(np.asarray(self.component))):
                ax.axhline(row + 0.5, **thin_look())
        total = n if self.n_items is None else self.n_items
        mean = "the only item" if total == 1 else f"the mean of the {total} items"
        mean = mean if self.component is None else "the mean of each group"
        ax.set_xlabel(label_with_unit(f"utility above {mean}", self.unit))
        _, step = row_letter_size(size_in_points(ax)[1], n)
        columns = self._draw_columns(ax) if annotate and step == 1 else []
        names = np.asarray(self.names).tolist()
        self.annotations_ = draw_row_names(ax, names, columns, SIZES.column_ends[-1])
        return self

    def _draw_columns(self, ax):
        """Write rank intervals and probabilities of being best at the right; return the texts."""
        low, high = np.asarray(self.rank_lower), np.asarray(self.rank_upper)
        columns = (
            (f"rank\n({percent_text(self.level)})", map(_rank_range, low, high)),
            ("P(best)", map(probability_text, np.asarray(self.probability_best))),
        )
        style = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
        top = style | {"va": "bottom", "fontstyle": "italic"}
        texts = []
        for end, (head, column) in zip(SIZES.column_ends, columns, strict=True):
            place = (end * letter_size("ytick.labelsize"), 0.0)
            texts.append(ax.annotate(head, xy=(1.0, -0.6), xytext=place, **top))
            style["va"] = "center_baseline"
            texts += [
                ax.annotate(text, xy=(1.0, row), xytext=place, **style)
                for row, text in enumerate(column)
            ]
        return texts


def _rank_range(low, high):
    """Return an interval of ranks as a text."""
    return f"{low}" if low == high else f"{low}–{high}"
