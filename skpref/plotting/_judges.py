"""Judges from the most to the least reliable, with intervals."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import check_number
from skpref.inspection import judge_reliability
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


@dataclass(eq=False, kw_only=True, repr=False)
class JudgesDisplay(Display):
    """Reliability of judges with intervals: 1 the reference judge, 0 answers at random.

    Made by `from_estimator`; the parameters are kept as attributes, the most reliable judge first.

    Parameters
    ----------
    names : array-like of shape (n_judges,)
    n_answers : ndarray of int of shape (n_judges,)
    reliability, lower, upper : ndarray of shape (n_judges,)
    probability_random, probability_adversarial : ndarray of shape (n_judges,)
        See `skpref.inspection.judge_reliability`.
    level : float

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    intervals_ : LineCollection
    points_ : dict of str to Line2D
        By what the judges probably do: "reliable", "at random", "wrong way round"; without those
        that no judge does.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.plotting import JudgesDisplay
    >>> rng = np.random.default_rng(0)
    >>> duels, who = rng.uniform(size=(90, 2, 1)), np.repeat(["ann", "bob", "cid"], 30)
    >>> y = np.where(who == "cid", rng.integers(0, 2, 90), duels[:, 0, 0] > duels[:, 1, 0])
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(duels, y, judges=who)
    >>> JudgesDisplay.from_estimator(model).names[-1]  # doctest: +SKIP
    'cid'
    """

    names: ArrayLike
    n_answers: NDArray[np.intp]
    reliability: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    probability_random: NDArray[np.float64]
    probability_adversarial: NDArray[np.float64]
    level: float = 0.9

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        level: float = 0.9,
        least_answers: int = 1,
        ax: Any = None,
    ) -> Self:
        """Ask how reliable judges are and draw it.

        Parameters
        ----------
        model, level
            See `skpref.inspection.judge_reliability`.
        least_answers : int, default=1
            Leave out judges with fewer answers.
        ax : matplotlib Axes, default=None

        Returns
        -------
        JudgesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `judge_reliability`, or if no judge has so many answers.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_number("least_answers", least_answers, low=1, integer=True)
        judges = judge_reliability(model, level=level)
        has_answers = judges.n_answers >= least_answers
        if not has_answers.any():
            raise ValueError(
                f"No judge has least_answers={least_answers}; the most are "
                f"{judges.n_answers.max()}."
            )
        columns = [name for name in cls.__dataclass_fields__ if name != "level"]
        made = cls(**{name: judges[name][has_answers] for name in columns}, level=level)
        return made.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure, tall enough for the names.

        Returns
        -------
        JudgesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n = len(self.reliability)
        ax = self._new_axes(ax, (4.8, height_of_rows(n)))
        colors, rows = palette(ax), np.arange(n)
        for place, style in ((0.0, (0, (4, 3))), (1.0, "-")):
            ax.axvline(place, linestyle=style, **thin_look())
        self.intervals_ = ax.hlines(rows, self.lower, self.upper, color=GREY, linewidth=1.6)
        adversarial = self.probability_adversarial > 0.5
        random = ~adversarial & (self.probability_random > 0.5)
        line_looks = {
            "reliable": (~adversarial & ~random, "o", colors.blue),
            "at random": (random, "s", colors.green),
            "wrong way round": (adversarial, "^", colors.orange),
        }
        self.points_ = {}
        for label, (of, mark, color) in line_looks.items():
            if of.any():
                look = {"color": color, "markersize": 4.5, "linestyle": "none", "label": label}
                (self.points_[label],) = ax.plot(self.reliability[of], rows[of], mark, **look)
        bars = f"bars: {percent_text(self.level)} intervals"
        ax.set_xlabel(f"reliability ({bars})\n0: guesses, 1: the reference judge")
        if len(self.points_) > 1:
            draw_legend_above(ax, len(self.points_))
        counts = zip(np.asarray(self.names).tolist(), self.n_answers, strict=True)
        draw_row_names(ax, [f"{name} ({count})" for name, count in counts])
        return self
