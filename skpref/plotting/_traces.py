"""Utilities over the draws of a sampler."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref.fitting import UNITS
from skpref.inspection import sampler_traces
from skpref.plotting._style import (
    Display,
    check_matplotlib,
    height_of_rows,
    hide_frame,
    letter_size,
    line_looks,
    short_name,
    size_in_points,
    thin_look,
    update_layout,
)


@dataclass(eq=False, kw_only=True, repr=False)
class TracesDisplay(Display):
    """Utilities given each draw of a sampler, an item a row, a chain a line.

    Made by `from_estimator`; the parameters are kept as attributes, the best item first.

    Parameters
    ----------
    names : array-like of shape (n_items,)
    draws : ndarray of shape (n_items, n_chains, n_draws)
    rhat, ess : ndarray of shape (n_items,)
        See `skpref.inspection.sampler_traces`.
    n_items : int
        How many the zero is the mean of.
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of list of Line2D
        Of each item those of its chains.
    annotations_ : list of Text
        R̂ and effective draws of each item; empty where rows are too close.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import HMC
    >>> from skpref.plotting import TracesDisplay
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"]]  # winner first
    >>> model = PairwisePreferenceRegressor(inference=HMC(draws=400, chains=4), optimizer=None)
    >>> TracesDisplay.from_estimator(model.fit(games)).draws.shape  # doctest: +SKIP
    (3, 4, 100)
    """

    names: ArrayLike
    draws: NDArray[np.float64]
    rhat: NDArray[np.float64]
    ess: NDArray[np.float64]
    n_items: int
    unit: str = "noise"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        *,
        top: int | None = 5,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Take the draws apart by chains and draw them.

        Parameters
        ----------
        model, items, top
            See `skpref.inspection.sampler_traces`. Here the best five are shown by default; None:
            all.
        ax : matplotlib Axes, default=None
        **options
            For `sampler_traces`, such as ``unit="logit"``.

        Returns
        -------
        TracesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `sampler_traces`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        traces = sampler_traces(model, items, top=top, **options)
        return cls(**{name: traces[name] for name in cls.__dataclass_fields__}).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, tall enough for the rows.

        Returns
        -------
        TracesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n, n_chains, n_draws = self.draws.shape
        ax = self._new_axes(ax, (4.8, height_of_rows(n, 0.55)))
        middle = self.draws.mean(axis=(1, 2))
        away = self.draws - middle[:, None, None]
        reach = float(max(away.max(), -away.min())) or 1.0
        height = 2.0 * reach
        base = -height * np.arange(n)
        colors = [color for color, _ in line_looks(ax, n_chains)]
        steps = np.arange(1, n_draws + 1)
        self.lines_ = []
        for start, trace in zip(base, away, strict=True):
            ax.axhline(start, **thin_look())
            self.lines_.append(
                [
                    ax.plot(steps, start + chain, color=colors[k], linewidth=0.7, alpha=0.8)[0]
                    for k, chain in enumerate(trace)
                ]
            )
        names = [short_name(name) for name in np.asarray(self.names).tolist()]
        means = [f"{mean:+.2g}".replace("-", "−") for mean in middle]
        row_names = [f"{name}\n{mean}" for name, mean in zip(names, means, strict=True)]
        ax.set_yticks(base, row_names)
        ax.set_ylim(base[-1] - 0.55 * height, base[0] + 0.55 * height)
        ax.set_xlim(1, max(n_draws, 2))
        ax.set_xlabel(f"draw of a chain ({n_chains} {'chain' if n_chains == 1 else 'chains'})")
        hide_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        update_layout(ax)
        self.annotations_ = (
            self._draw_diagnostics(ax, base, height) if self._has_room(ax, n) else []
        )
        self._draw_scale(ax, reach)
        return self

    @staticmethod
    def _has_room(ax, n):
        """Return whether n rows are high enough for two lines of letters each."""
        return size_in_points(ax)[1] / n >= 2.0 * letter_size("ytick.labelsize")

    def _draw_diagnostics(self, ax, base, height):
        """Write R̂ and effective draws in the corner of each row, on the background colour."""
        ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
        return [
            ax.annotate(
                f"R̂ {rhat:.3f}, {ess:.0f} effective",
                xy=(1.0, start + 0.5 * height),
                xycoords=ax.get_yaxis_transform(),
                xytext=(-2.0, -1.0),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize="x-small",
                bbox=ground,
            )
            for start, rhat, ess in zip(base, self.rhat, self.ess, strict=True)
        ]

    def _draw_scale(self, ax, reach):
        """Draw a bar as long as a round number of units, right of the rows."""
        power = 10.0 ** np.floor(np.log10(reach))
        length = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= reach)
        across = ax.get_yaxis_transform()
        low = ax.get_ylim()[0]
        look = {"color": "0.5", "linewidth": 1.8, "clip_on": False, "transform": across}
        ax.plot([1.015] * 2, [low, low + length], **look)
        label = ax.annotate(
            f"{length:g}",
            xy=(1.015, low + 0.5 * length),
            xycoords=across,
            xytext=(3.0, 0.0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
        label.set_in_layout(True)
        whole = f"mean and bar: {UNITS[self.unit]}"
        ax.set_title(whole, fontsize="small", loc="left")
