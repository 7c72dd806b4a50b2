"""Several leaderboards beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skpref._utils import check_number
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    draw_legend_above,
    draw_row_names,
    draw_rows,
    height_of_rows,
    label_with_unit,
    line_looks,
    plain_text,
    shorten,
    thin_look,
)


@dataclass(eq=False, kw_only=True, repr=False)
class LeaderboardsDisplay(Display):
    """Utilities and intervals of several leaderboards, a row an item: a forest plot.

    Made by `from_boards`; the parameters are kept as attributes. The order is that of the first
    board; below it come items that only others have.

    Parameters
    ----------
    names : list
        Of the items.
    labels : list
        Of the boards.
    utility, lower, upper : ndarray of shape (n_items, n_boards)
        Of `skpref.inspection.leaderboard`; NaN for an item that a board has not.
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of Line2D
    intervals_ : list of LineCollection
        One of each board.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import leaderboard
    >>> from skpref.plotting import LeaderboardsDisplay
    >>> games = {"May": [["ann", "bob"], ["bob", "cid"]], "June": [["bob", "ann"]]}
    >>> models = {
    ...     month: PairwisePreferenceRegressor(optimizer=None).fit(won)
    ...     for month, won in games.items()
    ... }
    >>> boards = {month: leaderboard(model) for month, model in models.items()}
    >>> LeaderboardsDisplay.from_boards(boards).names  # doctest: +SKIP
    ['ann', 'bob', 'cid']
    """

    names: list[Any]
    labels: list[Any]
    utility: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    unit: str = "noise"

    @classmethod
    def from_boards(
        cls, boards: Mapping[Any, Any], *, top: int | None = None, ax: Any = None
    ) -> Self:
        """Draw several boards beside each other.

        Parameters
        ----------
        boards : mapping
            Boards by their labels, as `skpref.inspection.leaderboards` gives them, or of several
            models: ``{"May": leaderboard(model), "June": leaderboard(other)}``.
        top : int, default=None
            Show the first so many items only.
        ax : matplotlib Axes, default=None

        Returns
        -------
        LeaderboardsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no board, or units or levels of boards differ.
        """
        check_matplotlib(f"{cls.__name__}.from_boards")
        if top is not None:
            check_number("top", top, low=1, integer=True)
        if not boards:
            raise ValueError("got no board; give one or more, such as {'May': leaderboard(model)}.")
        for option in ("unit", "level"):
            values = list(dict.fromkeys(board[option] for board in boards.values()))
            if len(values) > 1:
                raise ValueError(
                    f"got boards of different {option}s: {', '.join(map(repr, values))}; one is "
                    f"allowed. Make all boards with the same {option}=."
                )
        names = list(
            dict.fromkeys(name for board in boards.values() for name in board.names.tolist())
        )[:top]
        row_of = {name: row for row, name in enumerate(names)}
        columns = {}
        for column in ("utility", "lower", "upper"):
            columns[column] = np.full((len(names), len(boards)), np.nan)
            for k, board in enumerate(boards.values()):
                for name, value in zip(board.names.tolist(), board[column], strict=True):
                    if name in row_of:
                        columns[column][row_of[name], k] = value
        unit = next(iter(boards.values())).unit
        return cls(names=names, labels=list(boards), unit=unit, **columns).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, tall enough for the names.

        Returns
        -------
        LeaderboardsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n, n_boards = len(self.names), len(self.labels)
        row = SIZES.row * max(1.0, SIZES.board * n_boards)
        ax = self._new_axes(ax, (7.0, height_of_rows(n, row)))
        ax.axvline(0.0, **thin_look())
        self.points_, self.intervals_ = [], []
        for k, (color, _) in enumerate(line_looks(ax, n_boards)):
            heights = np.arange(n) + SIZES.boards_share * ((k + 0.5) / n_boards - 0.5)
            intervals, points = draw_rows(
                ax,
                self.utility[:, k],
                (self.lower[:, k], self.upper[:, k]),
                color,
                heights,
                "osD^v<>"[k % 7],
                label=plain_text(shorten(self.labels[k], SIZES.legend_name)),
            )
            self.intervals_.append(intervals)
            self.points_.append(points)
        ax.set_xlabel(label_with_unit("utility above the mean of each board", self.unit))
        draw_legend_above(ax, min(n_boards, 4))
        draw_row_names(ax, self.names)
        return self
