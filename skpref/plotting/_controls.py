"""Effects of what is controlled for, with intervals."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skpref.inspection import control_effects
from skpref.plotting._style import (
    Display,
    check_matplotlib,
    draw_row_names,
    draw_rows,
    height_of_rows,
    label_with_unit,
    palette,
    percent_text,
    thin_look,
)


@dataclass(eq=False, kw_only=True, repr=False)
class ControlEffectsDisplay(Display):
    """What a typical difference of each control adds to the utility, with intervals.

    Made by `from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    names : array-like of shape (n_columns,)
    slope, lower, upper, spread : array-like of shape (n_columns,)
        See `skpref.inspection.control_effects`. Slopes times spreads are drawn, so that columns of
        different units stand beside each other.
    level : float
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_, intervals_ : Line2D and LineCollection

    Examples
    --------
    >>> from skpref.plotting import ControlEffectsDisplay
    >>> display = ControlEffectsDisplay(
    ...     names=["length", "lists"], slope=[0.002, -0.1], lower=[0.001, -0.3],
    ...     upper=[0.003, 0.1], spread=[120.0, 1.4],
    ... )
    >>> display.plot().ax_.get_ylim()  # doctest: +SKIP
    (1.6, -0.6)
    """

    names: ArrayLike
    slope: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    spread: ArrayLike
    level: float = 0.9
    unit: str = "noise"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        votes: Any = None,
        *,
        ax: Any = None,
        color: Any = None,
        **options: Any,
    ) -> Self:
        """Find the effects and draw them.

        Parameters
        ----------
        model, votes
            See `skpref.inspection.control_effects`.
        ax : matplotlib Axes, default=None
        color : matplotlib color, default=None
        **options
            For `control_effects`, such as ``level=0.5``.

        Returns
        -------
        ControlEffectsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As `control_effects`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        effects = control_effects(model, votes, **options)
        shown = {name: effects[name] for name in ("names", "slope", "lower", "upper", "spread")}
        shown |= {name: options[name] for name in ("level", "unit") if name in options}
        return cls(**shown).plot(ax=ax, color=color)

    def plot(self, ax: Any = None, *, color: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        color : matplotlib color, default=None

        Returns
        -------
        ControlEffectsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        spread = np.asarray(self.spread)
        slope, lower, upper = (
            np.asarray(each) * spread for each in (self.slope, self.lower, self.upper)
        )
        n = len(slope)
        ax = self._new_axes(ax, (7.0, height_of_rows(n)))
        color = palette(ax).blue if color is None else color
        ax.axvline(0.0, **thin_look())
        self.intervals_, self.points_ = draw_rows(ax, slope, (lower, upper), color)
        what = f"utility of one standard deviation more, {percent_text(self.level)} intervals"
        ax.set_xlabel(label_with_unit(what, self.unit))
        draw_row_names(ax, np.asarray(self.names).tolist())
        return self
