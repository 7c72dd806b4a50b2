"""An acquisition over two dimensions of a space."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    draw_legend_above,
    hide_frame,
    plain_text,
)

_WORDS = {
    "ei": "expected improvement",
    "log_ei": "log expected improvement",
    "pi": "log probability of improvement",
    "ucb": "upper confidence bound",
    "mean": "posterior mean",
    "bvei": "bivariate expected improvement",
    "muc": "variance of the chance to win",
    "eubo": "expected utility of the better",
    "eiig": "chance to win, and information",
    "duel_ucb": "upper quantile of the margin",
}


@dataclass(eq=False, kw_only=True, repr=False)
class AcquisitionDisplay(Display):
    """An acquisition over two dimensions, with the items shown and the best place.

    Made by `from_optimizer`; the parameters are kept as attributes. Places are those of the unit
    cube, ticks are values of the parameters.

    Parameters
    ----------
    names : tuple of str
    grid, unit : tuple of two ndarray
        Values of the parameters, and their places in the unit cube.
    acquisition : ndarray of shape (n_first, n_second)
    method : str
    best, incumbent : ndarray of shape (2,)
    shown : ndarray of shape (n_items, 2)
        See `skpref.PreferenceOptimizer.acquisition_surface`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    surface_, colorbar_ : QuadContourSet and Colorbar
    shown_, incumbent_, best_ : Line2D

    Examples
    --------
    >>> from skpref import HallucinationBelieverOptimizer
    >>> from skpref.plotting import AcquisitionDisplay
    >>> optimizer = HallucinationBelieverOptimizer([(0.0, 1.0), (0.0, 10.0)], random_state=0)
    >>> best = optimizer.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), n_duels=10)
    >>> AcquisitionDisplay.from_optimizer(optimizer).method  # doctest: +SKIP
    'log_ei'
    """

    names: tuple[str, str]
    grid: tuple[NDArray[np.float64], NDArray[np.float64]]
    unit: tuple[NDArray[np.float64], NDArray[np.float64]]
    acquisition: NDArray[np.float64]
    method: str
    best: NDArray[np.float64]
    incumbent: NDArray[np.float64]
    shown: NDArray[np.float64]

    @classmethod
    def from_optimizer(
        cls,
        optimizer: Any,
        dimensions: Sequence[int | str] | None = None,
        *,
        acquisition: str | Callable = "auto",
        at: Any = None,
        resolution: int = 40,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Ask for the acquisition and draw it.

        Parameters
        ----------
        optimizer : PreferenceOptimizer
        dimensions, acquisition, at, resolution
            See `skpref.PreferenceOptimizer.acquisition_surface`.
        ax : matplotlib Axes, default=None
        **kwargs
            For `plot`.

        Returns
        -------
        AcquisitionDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If this optimizer has no space of items.
        ValueError
            As ``acquisition_surface``.
        """
        check_matplotlib(f"{cls.__name__}.from_optimizer")
        if not hasattr(optimizer, "acquisition_surface"):
            raise TypeError(
                "An acquisition over two dimensions is that of a PreferenceOptimizer; got "
                f"{type(optimizer).__name__}."
            )
        surface = optimizer.acquisition_surface(
            dimensions, acquisition=acquisition, at=at, resolution=resolution
        )
        return cls(**surface).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, cmap: Any = "viridis") -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        cmap : matplotlib colormap, default="viridis"

        Returns
        -------
        AcquisitionDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._new_axes(ax, (4.8, 4.0))
        from matplotlib.ticker import MaxNLocator

        low, high = np.nanquantile(self.acquisition, SIZES.floor), np.nanmax(self.acquisition)
        levels = MaxNLocator(14).tick_values(low, high if high > low else low + 1.0)
        look = {"levels": levels, "cmap": cmap, "extend": "min"}
        shown = np.ma.masked_invalid(self.acquisition.T)
        self.surface_ = ax.contourf(*self.unit, shown, **look)
        edge = {"linestyle": "none", "markeredgecolor": "black", "markeredgewidth": 0.7}
        edge |= {"clip_on": False, "zorder": 3}
        (self.shown_,) = ax.plot(
            *self.shown.T, "o", color="white", markersize=4, label="shown", **edge
        )
        (self.incumbent_,) = ax.plot(
            *self.incumbent, "s", color="white", markersize=6.5, label="first item", **edge
        )
        (self.best_,) = ax.plot(
            *self.best, "*", color="#F0E442", markersize=11, label="largest here", **edge
        )
        for axis, places, values in zip((ax.xaxis, ax.yaxis), self.unit, self.grid, strict=True):
            ticks = _axis_ticks(values)
            axis.set_ticks(np.interp(ticks, values, places), [f"{tick:.4g}" for tick in ticks])
        ax.set(xlim=self.unit[0][[0, -1]], ylim=self.unit[1][[0, -1]])
        ax.set_xlabel(plain_text(self.names[0]))
        ax.set_ylabel(plain_text(self.names[1]))
        label = plain_text(_WORDS.get(self.method, self.method))
        self.colorbar_ = ax.figure.colorbar(self.surface_, ax=ax, label=label)
        hide_frame(ax)
        draw_legend_above(ax, 3)
        return self


def _axis_ticks(values):
    """Return round values between the ends of an axis, powers of ten where it is wide."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = float(values[0]), float(values[-1])
    if low > 0.0 and high / low > SIZES.decades:
        ticks = LogLocator().tick_values(low, high)
    else:
        whole = bool(np.all(values == np.round(values)))
        ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high)
    return [tick for tick in ticks if low <= tick <= high]
