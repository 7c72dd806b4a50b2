"""Residuals of predictions by group of answers."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import check_choice
from skpref.inspection import group_residuals, predicted_proba
from skpref.plotting._style import (
    GREY,
    Display,
    check_matplotlib,
    draw_legend_above,
    draw_row_names,
    height_of_rows,
    palette,
    percent_text,
    thin_look,
)

_LOOKS = {"first wins": ("blue", "o"), "tie": ("green", "s"), "second wins": ("orange", "^")}
_KINDS = ("auto", "outcomes", "surprise")


@dataclass(eq=False, kw_only=True, repr=False)
class ResidualsDisplay(Display):
    """Where predictions are off, group by group, beside what chance would make of right ones.

    Made by `from_estimator` or `from_predictions`; the parameters are kept as attributes.

    Parameters
    ----------
    groups : array-like of shape (n_groups,)
    size : ndarray of int of shape (n_groups,)
    outcomes : list of str
    residual, band : ndarray of shape (n_groups, n_outcomes)
    surprise, surprise_band : ndarray of shape (n_groups,)
        See `skpref.inspection.group_residuals`.
    level : float
        Of the bands.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bands_ : list of LineCollection
    points_ : list of Line2D
        One an outcome, or one of the surprise.

    Examples
    --------
    >>> from skpref.plotting import ResidualsDisplay
    >>> y, proba, groups = [1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9], ["en", "en", "de", "de"]
    >>> ResidualsDisplay.from_predictions(y, proba, groups)  # doctest: +SKIP
    """

    groups: ArrayLike
    size: NDArray[np.intp]
    outcomes: list[str]
    residual: NDArray[np.float64]
    band: NDArray[np.float64]
    surprise: NDArray[np.float64]
    surprise_band: NDArray[np.float64]
    level: float = 0.9

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike,
        predict_params: dict | None = None,
        level: float = 0.9,
        kind: str = "auto",
        ax: Any = None,
    ) -> Self:
        """Predict answers, and compare them with those given.

        Parameters
        ----------
        model : fitted estimator with ``predict_proba``
        X, y : array-like
            Answers that the model has not seen, as in its ``fit``.
        groups : array-like of shape (n,)
            Of each answer.
        predict_params : dict, default=None
            Further arguments of ``predict_proba``.
        level : float, default=0.9
        kind : {"auto", "outcomes", "surprise"}, default="auto"
            See `plot`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        ResidualsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `from_predictions`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_choice("kind", kind, _KINDS)
        proba = predicted_proba(model, X, predict_params)
        classes = getattr(model, "classes_", None)
        return cls.from_predictions(
            y, proba, groups, classes=classes, level=level, kind=kind, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike | None,
        proba: ArrayLike,
        groups: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        level: float = 0.9,
        kind: str = "auto",
        ax: Any = None,
    ) -> Self:
        """Compare predicted probabilities with the answers given.

        Parameters
        ----------
        y, proba, groups, classes, level
            See `skpref.inspection.group_residuals`.
        kind : {"auto", "outcomes", "surprise"}, default="auto"
            See `plot`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        ResidualsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If y, proba and groups do not fit together; if ``kind="outcomes"`` is given for choices.
        """
        check_matplotlib(f"{cls.__name__}.from_predictions")
        check_choice("kind", kind, _KINDS)
        residuals = group_residuals(y, proba, groups, classes=classes, level=level)
        made = cls(**{name: residuals[name] for name in cls.__dataclass_fields__})
        return made.plot(ax=ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "auto") -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, tall enough for the groups.
        kind : {"auto", "outcomes", "surprise"}, default="auto"
            "outcomes": observed less predicted share, of duels that of "first wins", with ties or
            grades of each outcome. "surprise": log-loss less what predictions expect of
            themselves. "auto": the first, of choices the second.

        Returns
        -------
        ResidualsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``kind="outcomes"`` and these are choices, whose items differ from answer to answer.
        """
        check_choice("kind", kind, _KINDS)
        if kind == "outcomes" and not self.outcomes:
            raise ValueError(
                'kind="outcomes" needs outcomes that are the same in every answer, and choices '
                'have none. Take kind="surprise".'
            )
        n = len(self.size)
        of_outcomes = kind == "outcomes" or (kind == "auto" and bool(self.outcomes))
        lines = self._outcome_lines() if of_outcomes else [("", self.surprise, self.surprise_band)]
        ax = self._new_axes(ax, (4.8, height_of_rows(n, 0.16 + 0.07 * len(lines))))
        ax.axvline(0.0, **thin_look())
        self.bands_: list[Any] = []
        self.points_: list[Any] = []
        many = len(lines) > 1
        offsets = np.linspace(-0.31, 0.31, len(lines)) if many else [0.0]
        width = 3.0 if many else 5.0
        for offset, (name, values, half) in zip(offsets, lines, strict=True):
            self._draw_outcome(ax, np.arange(n) + offset, name, values, half, width)
        what = "log-loss above expected (nats)"
        if of_outcomes:
            what = "observed − predicted" + (" share" if many else f" “{lines[0][0]}”")
        ax.set_xlabel(f"{what}\ngrey: {percent_text(self.level)} of right predictions")
        if many:
            draw_legend_above(ax, min(3, len(lines)))
        group_sizes = zip(np.asarray(self.groups).tolist(), self.size.tolist(), strict=True)
        draw_row_names(ax, [f"{name} ({count})" for name, count in group_sizes])
        return self

    def _draw_outcome(self, ax, rows, name, values, half, width):
        """Draw the residuals of one outcome over the band of right predictions."""
        color, mark = _LOOKS.get(name.partition(",")[0], ("blue", "o"))
        self.bands_.append(ax.hlines(rows, -half, half, color=GREY, alpha=0.35, linewidth=width))
        style = {"color": getattr(palette(ax), color), "markersize": 4.5, "linestyle": "none"}
        if name.endswith(("2", "4")):  # grades of one winner
            style["markerfacecolor"] = "none"
        self.points_ += ax.plot(values, rows, mark, label=name, **style)

    def _outcome_lines(self):
        """Return name, residuals and bands of each outcome; of two outcomes those of the second."""
        shown = [1] if len(self.outcomes) == 2 else list(reversed(range(len(self.outcomes))))
        return [(self.outcomes[j], self.residual[:, j], self.band[:, j]) for j in shown]
