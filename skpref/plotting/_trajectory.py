"""Utilities through time, with bands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref.inspection import trajectories
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    draw_band,
    draw_legend_above,
    hide_frame,
    label_with_unit,
    line_looks,
    plain_text,
    shorten,
    size_in_points,
    thin_look,
    wrap_to_width,
)


@dataclass(eq=False, kw_only=True, repr=False)
class TrajectoryDisplay(Display):
    """Utilities of items through time: posterior means, bands, and when the items were met.

    Made by `from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    names : array-like of shape (n_items,)
    times : ndarray of shape (n_times,)
        Numbers or datetime64, in any order.
    utility, lower, upper : array-like of shape (n_items, n_times)
        See `skpref.inspection.trajectories`.
    answered : sequence of ndarray, default=None
        Times of the answers about each item, marked on its line. None: none are marked.
    reference : array-like or None, default=None
        Names of the reference, whose mean is zero. None: that of ``n_items`` items.
    n_items : int, default=None
        How many items the mean is of. None: as many as are shown.
    now : scalar, default=None
        The last time of training, of which a line tells where there are later times.
    level : float
    unit : {"noise", "elo", "logit"}
    n_components : int, default=1
        Groups of items that nothing joins; of several each has a zero of its own.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    bands_ : list of PolyCollection
    marks_ : list of Line2D
        Of the answers; empty where none are marked.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.plotting import TrajectoryDisplay
    >>> games = [["ann", "bob"]] * 5 + [["bob", "ann"]] * 5  # the winner first
    >>> model = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    >>> model = model.fit(games, time=range(2016, 2026))
    >>> TrajectoryDisplay.from_estimator(model).names.tolist()  # doctest: +SKIP
    ['bob', 'ann']
    """

    names: ArrayLike
    times: NDArray[Any]
    utility: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    answered: Sequence[NDArray[Any]] | None = None
    reference: ArrayLike | None = None
    n_items: int | None = None
    now: Any = None
    level: float = 0.9
    unit: str = "noise"
    n_components: int = 1

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        times: ArrayLike | None = None,
        *,
        answers: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Ask the posterior through time and draw it.

        Parameters
        ----------
        model, items, times
            See `skpref.inspection.trajectories`.
        answers : bool, default=True
            Mark the times of each item's answers on its line.
        ax : matplotlib Axes, default=None
        **options
            For `trajectories`, such as ``top=10``.

        Returns
        -------
        TrajectoryDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `trajectories`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        curves = trajectories(model, items, times, **options)
        return cls.from_trajectories(curves, answers=answers, ax=ax)

    @classmethod
    def from_trajectories(cls, found: Any, *, answers: bool = True, ax: Any = None) -> Self:
        """Draw what `trajectories` gave.

        Parameters
        ----------
        found : Bunch
        answers, ax
            As in `from_estimator`.

        Returns
        -------
        TrajectoryDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib(f"{cls.__name__}.from_trajectories")
        columns = {name: found[name] for name in cls.__dataclass_fields__}
        if not answers:
            columns["answered"] = None
        return cls(**columns).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, as wide as a column of a paper is when it is set at 70 %.

        Returns
        -------
        TrajectoryDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._new_axes(ax, (4.8, 3.4))
        order = np.argsort(self.times, kind="stable")
        times = np.asarray(self.times)[order]
        parts = (self.utility, self.lower, self.upper)
        utility, lower, upper = (np.asarray(part)[:, order] for part in parts)
        has_interval = np.isfinite(lower) & np.isfinite(upper)  # what is not is not drawn
        utility, lower, upper = (
            np.where(has_interval, part, np.nan) for part in (utility, lower, upper)
        )
        names = [
            plain_text(shorten(name, SIZES.legend_name)) for name in np.asarray(self.names).tolist()
        ]
        if np.any(has_interval) and np.nanmin(lower) <= 0.0 <= np.nanmax(upper):
            ax.axhline(0.0, **thin_look())
        self.lines_, self.bands_, self.marks_ = [], [], []
        for k, (color, dashes) in enumerate(line_looks(ax, len(names))):
            self.bands_.append(draw_band(ax, times, lower[k], upper[k], color, alpha=0.15))
            look = {"color": color, "linestyle": dashes, "linewidth": 1.6}
            self.lines_ += ax.plot(times, utility[k], label=names[k], **look)
            if self.answered is not None:
                answer_times = np.asarray(self.answered[k])
                answer_times = answer_times[
                    (answer_times >= times[0]) & (answer_times <= times[-1])
                ]
                at, along = ax.convert_xunits(answer_times), ax.convert_xunits(times)
                height = np.interp(at, along, utility[k])
                look = {"color": color, "markersize": 4.5, "markeredgewidth": 0.7, "alpha": 0.7}
                self.marks_ += ax.plot(answer_times, height, "|", **look)
        if self.now is not None and times[-1] > self.now:
            ax.axvline(self.now, linestyle=(0, (2, 2)), **thin_look())
        if len(times) > 1:
            ax.set_xlim(times[0], times[-1])
        if times.dtype.kind == "M":
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            width = size_in_points(ax)[0]
            # With fewer than five it is not sure to find any.
            locator = AutoDateLocator(minticks=2, maxticks=max(5, int(width / SIZES.date)))
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        else:
            ax.set_xlabel("time")
        hide_frame(ax)
        label = ax.set_ylabel(label_with_unit(f"utility above {self._zero_in_words()}", self.unit))
        wrap_to_width(label, ax.get_window_extent().height)
        draw_legend_above(ax, 2)
        return self

    def _zero_in_words(self) -> str:
        """Return in words what utilities are measured from."""
        total = len(np.asarray(self.names)) if self.n_items is None else self.n_items
        if self.reference is None:
            several = self.n_components > 1
            return "the mean of each group" if several else f"the mean of {total} items"
        if total > 1:
            return "the mean of the reference"
        return plain_text(shorten(np.asarray(self.reference).tolist()[0], SIZES.legend_name))
