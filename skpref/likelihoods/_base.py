"""The contract of likelihoods: the probability of an answer given the margin.

A margin is f(winner) − f(loser), so that a likelihood need not know which item was written first;
of a tie, f of the one item minus f of the other. All methods are vectorised over rows, one a
distinct answer, or one an inequality of a joint answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skpref._utils import Array, check_bounds, check_number, floor_variance
from skpref.data import DUEL, INEQUALITY, Answers, DuelScale
from skpref.likelihoods import _expected, _quadrature
from skpref.likelihoods._expected import Expected

# Of a hyperparameter's logarithm, for differences where a likelihood gives no derivatives. A slope
# of a log-probability that rises by less than this share of the largest is taken for one of a
# concave function: such differences err by up to a tenth of that.
_STEP = 1e-4
# Share by which changes of a log-probability may differ from what its derivatives say.
_CHANGE = 1e-2
# Share of the margins looked at in which an answer has a probability that numbers hold: 5
# deviations of 40.
_NEAR = 0.125
# Of rows: log of the mean probability over noise on the margin, d/dm and d/dnoise.
_Averaged: TypeAlias = tuple[Array, Array, Array]


class Derivatives(NamedTuple):
    """Log-probability and its derivatives in the margin m: value, d/dm, −d²/dm², d³/dm³.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import Derivatives
    >>> m = np.array([0.0])  # of log p = −log(1 + exp(−m)), a logistic's
    >>> p = 1.0 / (1.0 + np.exp(-m))
    >>> Derivatives(np.log(p), 1.0 - p, p * (1.0 - p), p * (1.0 - p) * (2.0 * p - 1.0)).curvature
    array([0.25])
    """

    value: Array
    gradient: Array
    curvature: Array
    third: Array


class TiltedMoments(NamedTuple):
    """A likelihood's factor times a Gaussian: log normaliser Z and its derivatives in the mean.

    ``gradient`` is d log Z/d mean, ``curvature`` −d² log Z/d mean²; ``shrink`` is tilted variance
    over the Gaussian's, in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.likelihoods import Answers, Probit
    >>> won = Answers(np.array([DUEL]), np.array([1]))
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> found = Probit(noise_variance=0.5).tilted(zero, one, won)
    >>> np.exp(found.log_normaliser).round(3), found.shrink.round(3)
    (array([0.5]), array([0.682]))
    """

    log_normaliser: Array
    gradient: Array
    curvature: Array
    shrink: Array


class Site(NamedTuple):
    """Gaussian factor in natural parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import Site
    >>> site = Site(precision=np.array([4.0]), shift=np.array([2.0]))
    >>> site.shift / site.precision  # its mean
    array([0.5])
    """

    precision: Array
    shift: Array


class TruncationBox(NamedTuple):
    """An answer as a box of a noisy margin: lower < margin + e < upper, e ~ N(0, variance).

    ``turn``, if given, is −1 where the box is one of minus the margin, else 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.likelihoods import Answers, Probit
    >>> won = Answers(np.array([DUEL]), np.array([1]))
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> box = Probit(noise_variance=0.5).regions(won)
    >>> box.lower, box.upper, box.variance
    (array([0.]), array([inf]), array([1.]))
    """

    lower: Array
    upper: Array
    variance: Array
    turn: Array | None = None


def delegate_to_base(name: str) -> Any:
    """Return a property that reads one attribute of the likelihood's ``base``."""

    def member(self: Any) -> Any:
        """Return that of the base."""
        return getattr(self.base, name)

    return property(member)


class Likelihood(BaseEstimator, ABC):
    """Probability of an answer given the margin of the items.

    A subclass has a parameter for each hyperparameter ``name``, its bounds as ``name_bounds``
    ("fixed" holds it), lists the names in ``hyperparameters``, and writes `log_prob`. Everything
    else has a default that works from `log_prob` by quadrature and differences; closed forms are
    quicker.

    Attributes
    ----------
    hyperparameters : tuple of str
        Names of the hyperparameters; positive, and learned on a logarithmic scale. One whose value
        is None is absent.
    linear : tuple of str
        Those of them that may be any number, and are learned as they are.
    priors : dict of str to (float, float)
        Log-normal priors of some of them while they are learned: median, and deviation of the
        logarithm. Of those in `linear` mean and deviation of a normal prior.
    unit_powers : dict of str to int
        Powers of the utility's unit that they carry: 2 of a variance, 1 of a deviation, a threshold
        or a shift. The search for hyperparameters takes those that are in it as ratios to the first
        of them. Names that are missing have power 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.likelihoods import Derivatives, Likelihood
    >>> class Logistic(Likelihood):
    ...     hyperparameters = ("scale",)
    ...     def __init__(self, scale=0.1, scale_bounds=(1e-3, 10.0)):
    ...         self.scale, self.scale_bounds = scale, scale_bounds
    ...     def log_prob(self, margin, answers):
    ...         win = expit(margin / self.scale)
    ...         slope, s = win * (1.0 - win), self.scale
    ...         third = slope * (2.0 * win - 1.0) / s**3
    ...         return Derivatives(-np.logaddexp(0.0, -margin / s), (1.0 - win) / s,
    ...                            slope / s**2, third)
    >>> model = PairwisePreferenceRegressor(likelihood=Logistic())
    >>> X = [[[1.0], [0.0]], [[2.0], [1.0]], [[0.0], [2.0]]]
    >>> bool(model.fit(X, [1, 1, 0]).predict_proba([[[2.0], [0.0]]])[0, 1] > 0.5)
    True
    """

    hyperparameters: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[tuple[str, ...]] = ()
    priors: ClassVar[Mapping[str, tuple[float, float]]] = {}
    unit_powers: ClassVar[Mapping[str, int]] = {}

    # -- what it takes -------------------------------------------------------------------

    @property
    def kinds(self) -> frozenset[int]:
        """Kinds of row that it takes: `INEQUALITY`, and `DUEL` or those of a `DuelScale`."""
        return frozenset({DUEL})

    @property
    def uses_order(self) -> bool:
        """Whether probabilities depend on who was shown first, now or at other hyperparameters."""
        return False

    @property
    def takes_offset(self) -> bool:
        """Whether its methods add `Answers.offset`, where that is not None, to the margin."""
        return False

    @property
    def log_concave(self) -> bool:
        """Whether log-probabilities are concave in the margin; EP alone takes others."""
        return True

    @property
    def order_shift(self) -> float:
        """Return what the judge adds to the utility of the item shown first."""
        return 0.0

    @property
    def duel_scale(self) -> DuelScale:
        """Return the scale of the outcomes of a duel."""
        return DuelScale.from_kinds(self.kinds)

    @property
    def n_outcomes(self) -> int:
        """Return how many outcomes a duel has: 2, 3 with ties, or more."""
        return self.duel_scale.n_columns

    @property
    def item_noise(self) -> float | None:
        """Variance of the noise of one item at one presentation; None: no joint answers."""
        return None

    def item_noise_gradient(self) -> Array:
        """Return the derivatives of `item_noise` in `theta`, shape (n_theta,)."""
        return np.zeros(len(self.free))

    # -- hyperparameters -----------------------------------------------------------------

    @property
    def free(self) -> list[str]:
        """Names of the hyperparameters that are learned."""
        return [name for name in self._present() if not self._held(name)]

    def _present(self) -> list[str]:
        """Return the names of the hyperparameters whose values are not None."""
        return [name for name in self.hyperparameters if self._value(name) is not None]

    def _held(self, name: str) -> bool:
        """Return whether a hyperparameter is fixed."""
        bounds = self._bounds_of(name)
        return isinstance(bounds, str) and bounds == "fixed"

    def _value(self, name: str) -> Any:
        """Return the value of a hyperparameter."""
        return getattr(self, name)

    def _bounds_of(self, name: str) -> Any:
        """Return the bounds of a hyperparameter."""
        return getattr(self, f"{name}_bounds")

    def _with(self, values: Mapping[str, float]) -> Self:
        """Return a copy with these values of hyperparameters."""
        changed = copy(self)  # a constructor only assigns, as scikit-learn asks of it
        for name, value in values.items():
            setattr(changed, name, value)
        return changed

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyperparameters; of those in `linear` the values."""
        return self._scaled([self._value(name) for name in self.free])

    @property
    def bounds(self) -> Array:
        """Bounds of `theta`, shape (n_theta, 2)."""
        return self._scaled([self._bounds_of(name) for name in self.free]).reshape(-1, 2)

    def _scaled(self, values: Sequence[Any]) -> Array:
        """Return values of the free hyperparameters as the search has them: most as logarithms."""
        scaled = np.array(values, dtype=np.float64)
        logarithmic = [name not in self.linear for name in self.free]
        scaled[logarithmic] = np.log(scaled[logarithmic])
        return scaled

    def at(self, theta: Array) -> Self:
        """Return the likelihood at other values of its free hyperparameters."""
        values = zip(self.free, theta, strict=True)
        return self._with({n: float(t if n in self.linear else np.exp(t)) for n, t in values})

    def fix_hyperparameters(self) -> Self:
        """Return the likelihood with every hyperparameter fixed where it is."""
        fixed = copy(self)
        for name in self.hyperparameters:
            setattr(fixed, f"{name}_bounds", "fixed")
        return fixed

    def replace_bounds(self, name: str, bounds: tuple[float, float]) -> Self:
        """Return the likelihood with other bounds of a hyperparameter."""
        changed = copy(self)
        setattr(changed, f"{name}_bounds", bounds)
        return changed

    def change_unit(self, unit: float) -> Self:
        """Return the likelihood with what is learned, and its bounds, in units of the utility."""
        powers, free = self.unit_powers, self.free
        changed = self._with({k: self._value(k) * unit ** powers.get(k, 0) for k in free})
        for name, bounds in self.get_params(deep=False).items():
            if name.endswith("_bounds") and not isinstance(bounds, str):
                factor = unit ** powers.get(name.removesuffix("_bounds"), 1)
                setattr(changed, name, tuple(factor * bound for bound in bounds))
        return changed

    def check(self) -> None:
        """Raise TypeError or ValueError unless every hyperparameter and its bounds are sound."""
        unknown = set(self.priors) - set(self.hyperparameters)
        if unknown:
            raise ValueError(
                f"{type(self).__name__}.priors names {sorted(unknown)}, which are none of its "
                f"hyperparameters, {list(self.hyperparameters)}. Name those."
            )
        for name in self._present():
            linear = name in self.linear
            low = -np.inf if linear else 0.0
            check_number(name, self._value(name), low=low, open_low=True, open_high=True)
            check_bounds(f"{name}_bounds", self._bounds_of(name), positive=not linear)

    def check_log_concave(self) -> None:
        """Raise ValueError unless log-probabilities are seen to be concave in the margin.

        Looked at are margins up to 40 deviations of the noise from 0, every kind of duel, and
        either item shown first. Values that are not finite are passed over where probabilities may
        be too small for numbers; NaN within 5 deviations is refused.
        """
        with np.errstate(all="ignore"):
            unit = np.sqrt(self.margin_variance) if DUEL in self.kinds else 1.0
            margin = (unit if 0.0 < unit < np.inf else 1.0) * np.linspace(-40.0, 40.0, 641)
            for kind in sorted(self.kinds - {INEQUALITY}):
                for lead in (-1, 0, 1):
                    kinds = np.full(len(margin), kind, dtype=np.int8)
                    answers = Answers(kinds, np.full(len(margin), lead, dtype=np.int8))
                    at = self.log_prob(margin, answers)
                    self._check_numbers_at(margin, at)
                    self._check_log_concave_at(margin, at)
                    self._check_derivatives_at(margin, at)

    def _check_numbers_at(self, margin: Array, margins: Derivatives) -> None:
        """Raise ValueError where `log_prob` or its derivatives are NaN at moderate margins."""
        is_near = np.abs(margin) <= _NEAR * np.max(margin)
        is_nan = np.isnan(margins.gradient) | np.isnan(margins.curvature)
        wrong = np.flatnonzero(
            is_near & (np.isnan(margins.value) | (np.isfinite(margins.value) & is_nan))
        )
        if len(wrong):
            raise ValueError(
                f"log_prob of the likelihood {type(self).__name__} holds NaN at a margin of "
                f"{margin[wrong[0]]:.3g}; numbers, and -inf for the logarithm of 0, are allowed. "
                "Return the logarithm of the probability and its three derivatives at every margin."
            )

    def _check_log_concave_at(self, margin: Array, margins: Derivatives) -> None:
        """Raise ValueError where the slope of a log-probability rises with the margin."""
        slope, curvature = (np.where(np.isfinite(x), x, np.nan) for x in margins[1:3])
        if np.all(np.isnan(slope)) or np.all(np.isnan(curvature)):
            return
        rise = slope - np.fmin.accumulate(slope)
        n, k = int(np.nanargmax(rise)), int(np.nanargmin(curvature))
        if rise[n] > _STEP * np.nanmax(np.abs(slope)):
            low = int(np.nanargmin(slope[: n + 1]))
            fault = (
                f"d log p/d margin rises from {slope[low]:.3g} at a margin of {margin[low]:.3g} to "
                f"{slope[n]:.3g} at {margin[n]:.3g}"
            )
        elif -curvature[k] > _STEP * np.nanmax(np.abs(curvature)):
            fault = f"its curvature is {curvature[k]:.3g} at a margin of {margin[k]:.3g}"
        else:
            return
        raise ValueError(
            f"The likelihood {type(self).__name__} is not log-concave in the margin: {fault}. "
            "Log-concave ones are allowed: engines approximate an answer's factor by a Gaussian, "
            "and deviations would else be too small by a third and more. If a share of the answers "
            "is random, take skpref.likelihoods.Lapses(Probit()), or say who answered, "
            "fit(X, y, judges=...): a judge's reliability allows for that."
        )

    def _check_derivatives_at(self, margin: Array, margins: Derivatives) -> None:
        """Raise ValueError where values, slopes and curvatures are not those of one concave
        function.

        Its change between neighbouring margins lies between what the slopes at both say, and that
        of its slope between what the curvatures say; where it has a kink, in one place alone, a
        slope falls by more.
        """
        value, slope, curvature = (np.where(np.isfinite(x), x, np.nan) for x in margins[:3])
        step = np.diff(margin)
        for name, function, ends, kinks in (
            ("log p changes", value, slope, False),
            ("d log p/d margin falls", -slope, curvature, True),
        ):
            change = np.diff(function)
            sides = step * np.stack([ends[:-1], ends[1:]])
            low, high = sides.min(axis=0), sides.max(axis=0)
            room = _CHANGE * np.maximum(np.abs(sides).max(axis=0), np.abs(change))
            room += _STEP * _CHANGE * np.nanmax(np.abs(function), initial=0.0)
            above = change > high + room
            if kinks:
                above[1:] &= above[:-1].copy()
            beyond = np.where((change < low - room) | above, np.abs(change - low) / room, 0.0)
            if np.any(beyond):
                k = int(np.argmax(beyond))
                raise ValueError(
                    f"The likelihood {type(self).__name__} contradicts itself: {name} by "
                    f"{change[k]:.3g} from a margin of {margin[k]:.4g} to {margin[k + 1]:.4g}, "
                    f"where its derivatives say {low[k]:.3g} to {high[k]:.3g}. Return of log_prob "
                    "the logarithm of the probability, its first derivative, minus its second and "
                    "its third, all of the same function."
                )

    # -- probabilities -------------------------------------------------------------------

    @abstractmethod
    def log_prob(self, margin: Array, answers: Answers) -> Derivatives:
        """Return log-probabilities of answers given their margins, with three derivatives.

        It must be concave in the margin; `check_log_concave` looks before a fit.

        Parameters
        ----------
        margin : ndarray of shape (n,)
        answers : Answers

        Returns
        -------
        Derivatives
        """

    def _log_value(self, margin: Array, answers: Answers) -> Array:
        """Compute log-probabilities without their derivatives."""
        return self.log_prob(margin, answers).value

    def theta_derivatives(self, margin: Array, answers: Answers) -> tuple[Array, Array, Array]:
        """Return derivatives in `theta` of log-probability, gradient and curvature, (n_theta, n)
        each."""
        rows = [np.zeros((0, len(margin)))] * 3
        for above, below in self._steps():
            high, low = (each.log_prob(margin, answers) for each in (above, below))
            change = [(h - w) / (2.0 * _STEP) for h, w in zip(high[:3], low[:3], strict=True)]
            rows = [np.vstack([row, each]) for row, each in zip(rows, change, strict=True)]
        return rows[0], rows[1], rows[2]

    def _steps(self) -> Iterator[tuple[Self, Self]]:
        """Yield the likelihoods a step ahead and a step back in each free hyperparameter."""
        theta = self.theta
        for step in _STEP * np.eye(len(theta)):
            yield self.at(theta + step), self.at(theta - step)

    def outcome_log_proba(self, mean: Array, variance: Array, lead: ArrayLike = 1) -> Array:
        """Return log-probabilities of the outcomes of duels whose margin (first − second) is
        Gaussian.

        Parameters
        ----------
        mean, variance : ndarray, of shapes that broadcast to one another's
            Of f(first) − f(second), without noise.
        lead : int or array-like, of a shape that broadcasts to theirs, default=1
            1 where the first was shown first, −1 where the second was, 0 where neither was.

        Returns
        -------
        ndarray of shape (..., n_outcomes)
            In the order of `duel_scale`: "second won", "tie" if there are ties, and "first won".
        """
        mean, variance, lead = np.broadcast_arrays(mean, variance, lead)
        flat, wide = mean.ravel(), floor_variance(variance.ravel(), 0.0)
        spread, log_probabilities = wide > 0.0, []
        for kind, side in self.duel_scale.outcomes:
            kinds = np.full(len(flat), kind, dtype=np.int8)
            answers = Answers(kinds, (side * lead.ravel()).astype(np.int8))
            oriented = side * flat
            value = self.log_prob(oriented, answers).value
            value[spread] = self.tilted(oriented[spread], wide[spread], answers.take(spread))[0]
            log_probabilities.append(value.reshape(mean.shape))
        return np.stack(log_probabilities, axis=-1)

    def outcome_proba(self, mean: Array, variance: Array, lead: ArrayLike = 1) -> Array:
        """Return probabilities, as `outcome_log_proba` their logarithms."""
        return np.exp(self.outcome_log_proba(mean, variance, lead))

    @property
    def margin_variance(self) -> float:
        """Variance of the noise on a margin, as acquisitions need it.

        By default that of the probit whose slope at a margin of zero is this one's.
        """
        return 0.5 / np.pi / np.square(self.score_slope)

    @property
    def utility_noise(self) -> float:
        """Variance of the noise on one utility: both of a margin's carry it."""
        return 0.5 * self.margin_variance

    @property
    def score_slope(self) -> float:
        """Slope of the expected score of a duel at a margin of zero, neither item shown first.

        A win scores 1, a tie ½. So it is the slope of P(first wins) = p(m): the score is
        ½ + ½ (p(m) − p(−m)), whatever the probability of a tie.
        """
        at = self.log_prob(np.zeros(1), Answers(np.full(1, DUEL, np.int8), np.zeros(1, np.int8)))
        return float(np.exp(at.value[0]) * at.gradient[0])

    # -- what engines ask for ------------------------------------------------------------

    def tilted(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> TiltedMoments:
        """Return moments of a normal margin times its answer's probability to a power, by
        quadrature.

        Parameters
        ----------
        mean, variance : ndarray of shape (n,)
        answers : Answers
        power : ndarray of shape (n,), optional
            In (0, 1]; by default 1.
        """
        grid = _quadrature.quadrature_nodes(
            self.log_prob, self._log_value, mean, variance, answers, power
        )
        return TiltedMoments(*grid.moments())

    def log_normaliser(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return the log normaliser of `tilted` alone, shape (n,); the same arguments."""
        return self.tilted(mean, variance, answers, power).log_normaliser

    def log_normaliser_sums(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        copies: NDArray[np.float64],
        begins: NDArray[np.intp],
        scale: NDArray[np.float64],
        beside: tuple[Array, Array, Array] | None = None,
        power: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Sum `log_normaliser` over neighbouring answers, their margins on several scales.

        Parameters
        ----------
        mean, variance : ndarray of shape (n,)
        answers : Answers
        copies : ndarray of shape (n,)
            How often each answer counts.
        begins : ndarray of int of shape (n_groups,)
            Where each group of neighbours begins, ascending from 0; none is empty.
        scale : ndarray of shape (m, n_groups)
            What the margins of a group are multiplied by; of either sign, not 0.
        beside : tuple of ndarray of shape (n,), optional
            Mean and variance of what is then added to each margin, and its covariance with the
            margin before it is scaled.
        power : ndarray of shape (n,), optional
            As in `log_normaliser`.

        Returns
        -------
        ndarray of shape (m, n_groups)
        """
        size = np.diff(begins, append=len(mean))
        r, every = np.repeat(scale, size, axis=1), np.tile(np.arange(len(mean)), len(scale))
        centre, spread = r * mean, r * r * variance
        if beside is not None:
            centre += beside[0]
            spread += beside[1] + 2.0 * r * beside[2]
        cavities = centre.ravel(), spread.ravel()
        powers = None if power is None else power[every]
        values = self.log_normaliser(*cavities, answers.take(every), powers)
        return np.add.reduceat(copies * values.reshape(r.shape), begins, axis=1)

    def tilted_theta_gradient(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return derivatives in `theta` of the log normaliser of `tilted`, shape (n_theta, n)."""
        if not self.free:
            return np.zeros((0, len(mean)))
        grid = _quadrature.quadrature_nodes(
            self.log_prob, self._log_value, mean, variance, answers, power
        )
        return grid.expectation(lambda z, a: self.theta_derivatives(z, a)[0])

    def repeated_site(
        self,
        mean: Array,
        variance: Array,
        counts: Array,
        answers: Answers,
        guess: tuple[Array, Array] | None = None,
    ) -> Site:
        """Return the site that EP gives each of several equal answers, all of whose sites are
        unknown.

        Parameters
        ----------
        mean, variance : ndarray of shape (n,)
            Of the margin without any of these sites.
        counts : ndarray of shape (n,)
            Numbers of equal answers, above 1.
        answers : Answers
        guess : (ndarray, ndarray), optional
            Mean and variance of a present cavity, from which the search may start.

        Returns
        -------
        Site
            NaN where it is not known, as everywhere here: EP then goes on step by step.
        """
        unknown = np.full(len(mean), np.nan)
        return Site(unknown, unknown.copy())

    def expected(self, mean: Array, variance: Array, noise: Array, answers: Answers) -> Expected:
        """Return the expected log-probability under N(margin; mean, variance), and its slopes.

        By quadrature here; variational inference asks for it.

        Parameters
        ----------
        mean, variance : ndarray of shape (n,)
        noise : ndarray of shape (n,)
            Variance of further noise on the margin, over which the probability is averaged before
            its logarithm is taken.
        answers : Answers
        """

        log_prob, bends = self._row_log_prob(noise, answers), self._bends(noise, answers)
        return _expected.expected(log_prob, mean, variance, bends)

    def expected_theta_gradient(
        self, mean: Array, variance: Array, noise: Array, answers: Answers
    ) -> Array:
        """Return derivatives in `theta` of the value of `expected`, shape (n_theta, n)."""
        if not self.free:
            return np.zeros((0, len(mean)))

        def slopes(margin: Array, row: NDArray[np.intp]) -> Array:
            return self._averaged_slopes(margin, noise[row], answers.take(row))

        log_prob, bends = self._row_log_prob(noise, answers), self._bends(noise, answers)
        n = len(self.free)
        return _expected.expectations(slopes, log_prob, mean, variance, bends, n)

    def _bends(self, noise: Array, answers: Answers) -> Array | None:
        """Return margins between which `_averaged` is smooth, (n, k); None: they are not known."""
        return None

    def _row_log_prob(self, noise: Array, answers: Answers) -> Callable[..., _Averaged]:
        """Return `_averaged` as a function of margins and the numbers of their rows."""
        return lambda margin, row: self._averaged(margin, noise[row], answers.take(row))

    def _averaged(self, margin: Array, noise: Array, answers: Answers) -> _Averaged:
        """Return the log of the mean probability over noise on the margin, d/dm and d/dnoise."""
        values, noisy = np.array(self.log_prob(margin, answers)[:3]), np.flatnonzero(noise > 0.0)
        if len(noisy):
            values[:, noisy] = self.tilted(margin[noisy], noise[noisy], answers.take(noisy))[:3]
        # d log p/dnoise is half of p''/p: p as a function of margin and noise diffuses
        return values[0], values[1], 0.5 * (values[1] ** 2 - values[2])

    def _averaged_slopes(self, margin: Array, noise: Array, answers: Answers) -> Array:
        """Return the derivatives of `_averaged` in `theta`."""
        slopes, noisy = self.theta_derivatives(margin, answers)[0], np.flatnonzero(noise > 0.0)
        if len(noisy):
            rows = margin[noisy], noise[noisy], answers.take(noisy)
            slopes[:, noisy] = self.tilted_theta_gradient(*rows)
        return slopes

    def regions(self, answers: Answers) -> TruncationBox | None:
        """Return the answers as boxes of a noisy margin; None if they are not, and cannot be
        sampled."""
        return None

    def lower_slopes(self, answers: Answers) -> Array:
        """Return the derivatives in `theta` of joint answers' lower ends, shape (n_theta, n)."""
        slopes = []
        for above, below in self._steps():
            high, low = above.regions(answers), below.regions(answers)
            if high is None or low is None:
                raise ValueError(f"The answers of {type(self).__name__} are no boxes of a margin.")
            slopes.append((high.lower - low.lower) / (2.0 * _STEP))
        return np.reshape(slopes, (len(slopes), len(answers.kind)))
