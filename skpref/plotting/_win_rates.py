"""How often each item beats each other one, as a matrix."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import check_number, whole_percent
from skpref.inspection import win_rates
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    diverging_colors,
    row_letter_size,
    short_name,
    size_in_points,
    update_layout,
)


@dataclass(eq=False, kw_only=True, repr=False)
class WinRatesDisplay(Display):
    """Matrix of win probabilities: the item of the row beats that of the column, ties count half.

    Made by `from_estimator`; the parameters are kept as attributes, the best item first.

    Parameters
    ----------
    names : array-like of shape (n_items,)
    win : ndarray of shape (n_items, n_items)
        See `skpref.inspection.win_rates`.
    tie : ndarray of shape (n_items, n_items), default=None

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_, colorbar_ : AxesImage and Colorbar
    annotations_ : list of Text
        Per cent; empty where cells are too small for them.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.plotting import WinRatesDisplay
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"]]  # winner first
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(games)
    >>> WinRatesDisplay.from_estimator(model).names.tolist()  # doctest: +SKIP
    ['ann', 'bob', 'cid']
    """

    names: ArrayLike
    win: NDArray[np.float64]
    tie: NDArray[np.float64] | None = None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        *,
        top: int | None = None,
        ax: Any = None,
        annotate: bool = True,
        **options: Any,
    ) -> Self:
        """Ask for the win rates and draw them.

        Parameters
        ----------
        model, items
            See `skpref.inspection.win_rates`.
        top : int, default=None
            Only so many items: those of the largest posterior means.
        ax : matplotlib Axes, default=None
        annotate : bool, default=True
            Write the probabilities in the cells, in per cent, where there is room for letters.
        **options
            For `win_rates`, such as ``order=1``.

        Returns
        -------
        WinRatesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `win_rates`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        if top is not None:
            check_number("top", top, low=1, integer=True)
        rates = win_rates(model, items, **options)
        win, tie = rates.win[:top, :top], rates.tie[:top, :top]
        return cls(names=rates.names[:top], win=win, tie=tie).plot(ax=ax, annotate=annotate)

    def plot(self, ax: Any = None, *, annotate: bool = True, cmap: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        annotate : bool, default=True
        cmap : matplotlib colormap, default=None
            None: from orange (loses) over the ground at even chances to blue (wins).

        Returns
        -------
        WinRatesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        names = [short_name(name) for name in np.asarray(self.names).tolist()]
        n = len(names)
        wide = float(np.clip(SIZES.cell_margin + SIZES.cell * n, 2.9, SIZES.widest))
        ax = self._new_axes(ax, (wide + 0.3, wide))
        # Half of a tie goes to either, so that what is even is even in the picture.
        share = self.win if self.tie is None else self.win + 0.5 * self.tie
        ties = self.tie is not None and bool(np.any(self.tie))
        shown = np.where(np.eye(n, dtype=bool), np.nan, share)
        look = {"cmap": diverging_colors(ax) if cmap is None else cmap, "vmin": 0.0, "vmax": 1.0}
        self.image_ = ax.imshow(shown, aspect="equal", interpolation="nearest", **look)
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, fraction=0.05, pad=0.03)
        label = "P(row beats column)" + (" + ½ P(tie)" if ties else "")
        ax.set_xlabel(label + (", in %" if annotate else ""))
        self.colorbar_.outline.set_visible(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        ax.set_xticks([])
        ax.set_yticks([])
        update_layout(ax)
        size, step = row_letter_size(min(size_in_points(ax)), n)
        ax.set_yticks(range(0, n, step), names[::step], fontsize=size)
        ax.set_xticks(range(0, n, step), names[::step], fontsize=size, rotation=90)
        update_layout(ax)
        size, step = row_letter_size(min(size_in_points(ax)) / SIZES.number, n)
        self.annotations_ = self._draw_numbers(ax, share, size) if annotate and step == 1 else []
        return self

    def _draw_numbers(self, ax, share, size):
        """Write per cent in every cell but those of the diagonal; return the texts."""
        from matplotlib.colors import to_rgb

        texts = []
        for i, j in np.argwhere(~np.eye(len(share), dtype=bool)).tolist():
            red, green, blue = to_rgb(self.image_.cmap(self.image_.norm(share[i, j])))
            light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            look = {"ha": "center", "va": "center_baseline", "fontsize": size}
            color = "black" if light else "white"
            texts.append(ax.text(j, i, whole_percent(share[i, j]), color=color, **look))
        return texts
