"""Graded answers: by how much one item is better, cut from the noisy margin by thresholds."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from skpref._utils import Array, check_bounds
from skpref.data import GRADED, LARGEST_LABEL
from skpref.likelihoods._probit import Probit

_INCREMENT = "grade_increment_"


class GradedProbit(Probit):
    """The probit where a win has grades: the larger the noisy margin, the clearer the win.

    The noisy margin of the winner over the loser is above the last threshold where it is much
    better, between the last two where it is the grade below, and so on: an ordinal probit [1]_.
    Without grades this is `Probit`, with one threshold, of ties, or none.

    Parameters
    ----------
    noise_variance, noise_variance_bounds, tie_threshold, tie_threshold_bounds, order_effect, \
    order_effect_bounds
        As in `Probit`.
    grade_thresholds : sequence of float, default=(1.0,)
        Where one grade of a win ends and the next begins, ascending and above ``tie_threshold``, in
        units of the utility; one fewer than there are grades.
    grade_threshold_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of each threshold's increment over the one before it, which is what is learned;
        "fixed" holds the increments.

    References
    ----------
    .. [1] McCullagh, "Regression models for ordinal data", JRSS B 1980.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import GradedProbit
    >>> model = GradedProbit(noise_variance=0.5, grade_thresholds=(1.0,))
    >>> model.outcome_proba(np.array([0.0, 1.0]), np.zeros(2)).round(3)
    array([[0.159, 0.341, 0.341, 0.159],
           [0.023, 0.136, 0.341, 0.5  ]])
    """

    def __init__(
        self,
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
        grade_thresholds: Sequence[float] = (1.0,),
        grade_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
    ):
        super().__init__(
            noise_variance,
            noise_variance_bounds,
            tie_threshold,
            tie_threshold_bounds,
            order_effect,
            order_effect_bounds,
        )
        self.grade_thresholds = grade_thresholds
        self.grade_threshold_bounds = grade_threshold_bounds

    def check(self) -> None:
        """Raise unless the hyperparameters are sound."""
        try:
            cuts = np.array(self.grade_thresholds, dtype=np.float64)
        except (TypeError, ValueError):
            cuts = np.zeros(0)
        if cuts.ndim != 1 or not len(cuts) or not np.isfinite(cuts).all():
            raise ValueError(
                "grade_thresholds must be a sequence of numbers, one fewer than there are grades "
                f"of a win, such as (1.0,) for labels -2, -1, 1, 2; got {self.grade_thresholds!r}. "
                "grade_thresholds=None means no grades."
            )
        if len(cuts) >= LARGEST_LABEL:
            raise ValueError(
                f"grade_thresholds may be {LARGEST_LABEL - 1} at most, one fewer than there are "
                f"grades, got {len(cuts)}. Give fewer grades, or learn from ratings of items."
            )
        check_bounds("grade_threshold_bounds", self.grade_threshold_bounds)
        below = self.tie_threshold or 0.0
        if isinstance(below, int | float) and np.any(np.diff(cuts, prepend=below) <= 0.0):
            raise ValueError(
                f"grade_thresholds must ascend and be above "
                f"{'0' if self.tie_threshold is None else f'tie_threshold={below}'}; got "
                f"{self.grade_thresholds!r}."
            )
        super().check()

    def with_ties(self, threshold: float, bounds: tuple[float, float] | str) -> Self:
        """Return the likelihood with ties, whose threshold is below those of all grades."""
        return super().with_ties(min(threshold, 0.5 * min(self.grade_thresholds)), bounds)

    @property
    def kinds(self) -> frozenset[int]:
        """Return the kinds of `Probit`, and a win by each grade."""
        return super().kinds | {GRADED + 1 + i for i in range(len(self.grade_thresholds) + 1)}

    @property
    def _thresholds(self):
        """Return the thresholds of ties and of the grades, ascending."""
        return np.array([self.tie_threshold or 0.0, *self.grade_thresholds], dtype=np.float64)

    def _threshold_slopes(self) -> dict[str, Array]:
        """Return how the thresholds move with log δ, and with each increment's logarithm."""
        cuts, n = self._thresholds, np.arange(len(self.grade_thresholds) + 1)
        steps = {f"{_INCREMENT}{i}": (n >= i) * (cuts[i] - cuts[i - 1]) for i in n[1:]}
        return {"tie_threshold": np.full(len(n), cuts[0]), **steps}

    # -- hyperparameters: the increments ---------------------------------------------------

    @property
    def hyperparameters(self) -> tuple[str, ...]:  # type: ignore[override]  # as many as thresholds
        """Return the hyperparameters of `Probit`, and the increments of the thresholds."""
        steps = (f"{_INCREMENT}{i + 1}" for i in range(len(self.grade_thresholds)))
        return (*Probit.hyperparameters, *steps)

    @property
    def unit_powers(self) -> Mapping[str, int]:  # type: ignore[override]
        """Return powers of the unit; increments are in that of the utility."""
        return {**dict.fromkeys(self.hyperparameters, 1), **Probit.unit_powers}

    def _value(self, name: str) -> Any:
        if not name.startswith(_INCREMENT):
            return super()._value(name)
        i = int(name.removeprefix(_INCREMENT))
        return float(self._thresholds[i] - self._thresholds[i - 1])

    def _bounds_of(self, name: str) -> Any:
        return super()._bounds_of("grade_threshold" if name.startswith(_INCREMENT) else name)

    def _with(self, values: Mapping[str, float]) -> Self:
        steps = [
            values.get(name, self._value(name))
            for name in self.hyperparameters[len(Probit.hyperparameters) :]
        ]
        own = {k: value for k, value in values.items() if not k.startswith(_INCREMENT)}
        changed = super()._with(own)
        changed.grade_thresholds = tuple(
            ((changed.tie_threshold or 0.0) + np.cumsum(steps)).tolist()
        )
        return changed

    def fix_hyperparameters(self) -> Self:
        """Return the likelihood with every hyperparameter fixed where it is."""
        fixed = copy(self)
        for name in (*Probit.hyperparameters, "grade_threshold"):
            setattr(fixed, f"{name}_bounds", "fixed")
        return fixed


class AnswerParameters(TypedDict, total=False):
    """Parameters by which estimators and optimisers say what an answer may tell, see `probit`.

    Examples
    --------
    >>> from skpref.likelihoods import AnswerParameters, probit
    >>> told: AnswerParameters = {"noise_variance": 0.5, "tie_threshold": 0.3}
    >>> probit(**told).tie_threshold
    0.3
    """

    noise_variance: float
    noise_variance_bounds: tuple[float, float] | str
    tie_threshold: float | None
    tie_threshold_bounds: tuple[float, float] | str
    grade_thresholds: Sequence[float] | None
    grade_threshold_bounds: tuple[float, float] | str
    order_effect: float
    order_effect_bounds: tuple[float, float] | str


# What they are where nothing else is said.
ANSWER_DEFAULTS: dict[str, Any] = GradedProbit().get_params() | {"grade_thresholds": None}


def probit(**parameters: Unpack[AnswerParameters]) -> Probit:
    """Make the probit of these parameters, if it is sound: graded where there are thresholds.

    Examples
    --------
    >>> from skpref.likelihoods import probit
    >>> type(probit(noise_variance=0.5)).__name__
    'Probit'
    >>> type(probit(noise_variance=0.5, grade_thresholds=(1.0,))).__name__
    'GradedProbit'
    """
    options: dict[str, Any] = dict(parameters)
    if options.get("grade_thresholds") is None:
        options = {name: value for name, value in options.items() if not name.startswith("grade_")}
        made = Probit(**options)
    else:
        made = GradedProbit(**options)
    made.check()
    return made
