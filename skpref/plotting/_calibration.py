"""Frequencies of outcomes beside their predicted probabilities."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from skpref._utils import Array, check_choice, check_number
from skpref.inspection import Predicted, predicted_outcomes, predicted_proba
from skpref.metrics import group_codes
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    hide_frame,
    line_looks,
    palette,
    percent_text,
    plain_text,
    shorten,
)

# An outcome keeps its colour and mark, whichever others are drawn.
_LOOK = {
    "first wins": ("blue", "o"),
    "tie": ("green", "s"),
    "second wins": ("orange", "^"),
    "chosen": ("blue", "o"),
}
# An outcome that is one of several such has a number at its end.
_MARKS = "ovDPX*"


class Reliability(NamedTuple):
    """Predicted probability and frequency of one outcome, bin by bin.

    Attributes
    ----------
    outcome : str
    predicted : ndarray of shape (n_bins,)
        Mean probability.
    observed : ndarray of shape (n_bins,)
        Share of answers with that outcome.
    lower, upper : ndarray of shape (n_bins,)
        Wilson's binomial interval of that share.
    size : ndarray of shape (n_bins,)
        Answers.
    error : float
        Expected calibration error: the mean of |observed − predicted|, weighted by size.
    proba : ndarray of shape (n,)
    group : object
        Of the answers; None where there are no groups.
    """

    outcome: str
    predicted: Array
    observed: Array
    lower: Array
    upper: Array
    size: NDArray[np.intp]
    error: float
    proba: Array
    group: Any = None


@dataclass(eq=False, kw_only=True, repr=False)
class CalibrationDisplay(Display):
    """Frequencies of outcomes against their predicted probabilities.

    Made by `from_estimator` or `from_predictions`; the parameters are kept as attributes.

    Parameters
    ----------
    curves : list of Reliability
        One for "first wins" of duels; where there are more outcomes than two, one for each; of
        choices one, "chosen", each item against the others of its set. Of groups so many each.
    level : float
        Of the bars.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : list of ErrorbarContainer
        One a curve.
    histograms_ : list of StepPatch
        Of the predicted probabilities, below.

    Examples
    --------
    >>> from skpref.plotting import CalibrationDisplay
    >>> y, proba = [1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9]
    >>> CalibrationDisplay.from_predictions(y, proba, n_bins=2)  # doctest: +SKIP
    """

    curves: list[Reliability]
    level: float = 0.9

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        predict_params: dict | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict answers and compare them with those given.

        Parameters
        ----------
        model : fitted estimator with ``predict_proba``
        X, y : array-like
            Answers that the model has not seen, as in its ``fit``.
        predict_params : dict, default=None
            Further arguments of ``predict_proba``.
        **kwargs
            See `from_predictions`.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ImportError, ValueError
            As `from_predictions`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        misplaced = sorted({"judges", "order", "time", "users"} & kwargs.keys())
        if misplaced:
            raise TypeError(
                f"got {', '.join(misplaced)} beside the display's own arguments; give what "
                f"predict_proba takes as predict_params={{{misplaced[0]!r}: ...}}."
            )
        proba = predicted_proba(model, X, predict_params)
        kwargs.setdefault("classes", model.classes_)
        return cls.from_predictions(y, proba, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike | None,
        proba: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        level: float = 0.9,
        groups: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Compare predicted probabilities with the answers given.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, k), or None
            Outcomes: labels in ``classes``; of choices the position of the chosen one, or ranks
            of which one is the best. None: the first won each.
        proba : array-like of shape (n,), (n, n_outcomes) or (n, k)
            That the first wins, or the columns of ``predict_proba``.
        classes : array-like, default=None
            Label of each column, as ``classes_`` of the estimator. None: {0, 1}, {-1, 1} or
            booleans for two columns; of more -1, 0, 1, or -2, -1, 1, 2 and so on, if y holds some
            below 0; else positions.
        n_bins : int, default=10
        strategy : {"quantile", "uniform"}, default="quantile"
            Bins of equally many answers, or of equal width; equal probabilities share a bin.
        level : float, default=0.9
            Of the bars: Wilson's binomial intervals.
        groups : array-like of shape (n,), default=None
            A curve for each group of answers, such as years (of dates
            ``date.astype("datetime64[Y]")``). None: one for all. See also
            `skpref.metrics.score_by_group`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If y and proba do not fit together.

        Notes
        -----
        Of choices the items of a set are counted as if they were answers of their own, so bars
        are a little too long or short. Places where a set had no item are left out.
        """
        check_matplotlib(f"{cls.__name__}.from_predictions")
        check_number("n_bins", n_bins, low=1, integer=True)
        check_choice("strategy", strategy, ("quantile", "uniform"))
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        outcomes = predicted_outcomes(y, proba, classes)
        curves = [
            _reliability_curve(each.take(rows), n_bins, strategy, level)._replace(group=group)
            for group, rows in _group_masks(groups, len(np.asarray(proba)))
            for each in outcomes
        ]
        return cls(curves=curves, level=level).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._new_axes(ax, (5.2, 5.4))
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.5", linewidth=0.9, linestyle=(0, (5, 4)), zorder=0)
        self.bars_, self.histograms_ = [], []
        edges = np.linspace(0.0, 1.0, 41)
        counts = [np.histogram(curve.proba, edges)[0] for curve in self.curves]
        bottom, end = SIZES.histogram
        tallest = max(1, max(int(count.max()) for count in counts))
        names = list(dict.fromkeys(curve.group for curve in self.curves))
        colors = [color for color, _ in line_looks(ax, len(names))]
        alone = len({curve.outcome for curve in self.curves}) == 1
        for curve, count in zip(self.curves, counts, strict=True):
            who, _, which = curve.outcome.partition(", ")
            name, mark = _LOOK[who]
            if which:
                mark = _MARKS[(int(which.split()[-1]) - 1) % len(_MARKS)]
            color, label = getattr(palette(ax), name), curve.outcome
            if curve.group is not None:
                color = colors[names.index(curve.group)]
                group_name = plain_text(shorten(curve.group))
                label = group_name if alone else f"{group_name}, {label}"
            drawn = ax.errorbar(
                curve.predicted,
                curve.observed,
                yerr=[curve.observed - curve.lower, curve.upper - curve.observed],
                fmt=f"{mark}-",
                color=color,
                markersize=4.5,
                linewidth=1.0,
                elinewidth=1.2,
                label=f"{label} (ECE {curve.error:.3f})",
            )
            self.bars_.append(drawn)
            top = bottom + (end - bottom) * count / tallest
            self.histograms_.append(
                ax.stairs(top, edges, baseline=bottom, color=color, linewidth=1.2)
            )
        for artist in self.histograms_ if len(self.curves) == 1 else []:
            artist.set(fill=True, alpha=0.4)
        ax.set(xlim=(-0.02, 1.02), ylim=(bottom, 1.02))
        ax.set_yticks(np.linspace(0.0, 1.0, 6))
        ax.set_xlabel("predicted probability")
        ax.set_ylabel(f"observed frequency (bars: {percent_text(self.level)} binomial)")
        ax.yaxis.set_label_coords(-0.11, (0.5 - bottom) / (1.02 - bottom))
        ax.legend(loc="upper left", frameon=False)
        hide_frame(ax)
        ax.spines["left"].set_bounds(0.0, 1.0)
        return self


def _group_masks(groups: ArrayLike | None, n: int) -> list[tuple[Any, NDArray[np.bool_]]]:
    """Return each group with a mask of its answers; None and all answers without groups."""
    if groups is None:
        return [(None, np.ones(n, dtype=bool))]
    names, code = group_codes(groups, n)
    return [(name, code == k) for k, name in enumerate(names)]


def _reliability_curve(
    prediction: Predicted, n_bins: int, strategy: str, level: float
) -> Reliability:
    """Return frequencies of one outcome beside its predicted probabilities, bin by bin."""
    proba = prediction.proba
    if strategy == "quantile":
        edges = np.quantile(proba, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    else:
        edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    # Bins that are empty, by equal edges or for want of answers, are left out.
    _, bins, count = np.unique(
        np.searchsorted(edges, proba, side="right"), return_inverse=True, return_counts=True
    )
    predicted = np.bincount(bins, proba) / count
    wins = np.bincount(bins[prediction.happened], minlength=len(count))
    observed = wins / count
    error = float(np.average(np.abs(observed - predicted), weights=count))
    tests = map(binomtest, wins.tolist(), count.tolist())
    lower, upper = np.array([test.proportion_ci(level, "wilson") for test in tests]).T
    return Reliability(prediction.outcome, predicted, observed, lower, upper, count, error, proba)
