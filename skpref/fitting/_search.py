"""The search for hyperparameters: evidence times priors, maximised."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import blas_threads, covariance_of, warn
from skpref.data import Comparisons
from skpref.fitting._hyperpriors import LogNormal, SharedLevel
from skpref.fitting._model import Model
from skpref.gp import mean_variance
from skpref.inference import Engine, State
from skpref.kernels import linear_parts, name_variances, seen_columns

Array = NDArray[np.float64]

# A hyperparameter this near a bound stays a coordinate of its own.
_AT_BOUND = 1e-6


@dataclass(frozen=True, eq=False)
class Ratios:
    """A one-to-one map between hyperparameters θ and the coordinates of a search.

    Of a hyperparameter of power p of the utility's unit the coordinate is its ratio to σ^p: of a
    logarithm log θ − p log σ, of a number (p = 1) θ / σ. Everything else is a coordinate as it is.

    Attributes
    ----------
    noise : int or None
        Where log σ^q is in θ. None: θ in some units are the coordinates.
    noise_power : int
        q.
    powers : ndarray of shape (n_theta,)
        p of the hyperparameters that are ratios, 0 of all others.
    linear : ndarray of bool of shape (n_theta,)
        Which are no logarithms.
    limits : ndarray of shape (n_theta, 2)
        Bounds of θ.
    unit : ndarray of shape (n_theta,) or float
        Of coordinates that are no ratios.

    Examples
    --------
    Noise of variance 4 and a threshold of 1, half a deviation of the noise:

    >>> import numpy as np
    >>> limits = np.log([[1e-4, 10.0], [1e-4, 10.0]])
    >>> powers, linear = np.array([2, 1]), np.array([False, False])
    >>> ratios = Ratios.at(np.log([4.0, 1.0]), powers, linear, limits, 0)
    >>> np.exp(ratios.forward(np.log([4.0, 1.0])))
    array([4. , 0.5])
    """

    noise: int | None
    noise_power: int
    powers: Array
    linear: NDArray[np.bool_]
    limits: Array
    unit: Array | float = 1.0

    @classmethod
    def at(
        cls,
        theta: Array,
        powers: NDArray[np.intp],
        linear: NDArray[np.bool_],
        limits: Array,
        noise: int | None,
    ) -> Self:
        """The coordinates around a point; a hyperparameter at its bound is not a ratio.

        Parameters
        ----------
        theta : ndarray of shape (n_theta,)
        powers : ndarray of int of shape (n_theta,)
            Of the utility's unit; of a number that is no logarithm 0 or 1.
        linear : ndarray of bool of shape (n_theta,)
        limits : ndarray of shape (n_theta, 2)
        noise : int or None
            Which hyperparameter the others are compared with, if any.
        """
        if noise is None:
            return cls.none(limits)
        inside = (theta > limits[:, 0] + _AT_BOUND) & (theta < limits[:, 1] - _AT_BOUND)
        ratio = np.where(inside, powers, 0).astype(np.float64)
        ratio[noise] = 0.0
        return cls(noise, int(powers[noise]), ratio, linear, limits)

    @classmethod
    def none(cls, limits: Array, unit: Array | float = 1.0) -> Self:
        """Hyperparameters as their own coordinates, in units that are given."""
        n = len(limits)
        return cls(None, 1, np.zeros(n), np.zeros(n, dtype=bool), limits, unit)

    @property
    def bounds(self) -> Array:
        """Bounds of the coordinates; a ratio has none, as `back` keeps θ within its own."""
        bounds = (self.limits.T / self.unit).T
        bounds[self.powers != 0.0] = -np.inf, np.inf
        return bounds

    def _log_deviation(self, at):
        """log σ."""
        return at[self.noise] / self.noise_power

    def forward(self, theta: Array) -> Array:
        """The coordinates of hyperparameters."""
        if self.noise is None:
            return theta / self.unit
        log_deviation = self._log_deviation(theta)
        ratios = np.where(self.linear, theta * np.exp(-log_deviation), theta)
        ratios = np.where(self.linear, ratios, theta - self.powers * log_deviation)
        return np.where(self.powers == 0.0, theta, ratios)

    def _unlimited(self, at):
        log_deviation = self._log_deviation(at)
        found = np.where(self.linear, at * np.exp(log_deviation), at + self.powers * log_deviation)
        return np.where(self.powers == 0.0, at, found)

    def back(self, at: Array) -> Array:
        """The hyperparameters of coordinates, kept within their bounds."""
        found = at * self.unit if self.noise is None else self._unlimited(at)
        return np.clip(found, self.limits[:, 0], self.limits[:, 1])

    def pull_back(self, at: Array, gradient: Array) -> Array:
        """The gradient in the coordinates, of the gradient in the hyperparameters there."""
        if self.noise is None:
            return gradient * self.unit
        theta = self._unlimited(at)
        moves = (theta >= self.limits[:, 0]) & (theta <= self.limits[:, 1])
        found = np.where(moves | (self.powers == 0.0), gradient, 0.0)
        along = np.where(self.linear, theta, 1.0) * self.powers / self.noise_power
        slope = found[self.noise] + along @ found
        found = np.where(
            self.linear & (self.powers != 0.0), found * np.exp(self._log_deviation(at)), found
        )
        found[self.noise] = slope
        return found


_KEPT = 6
# States are not extrapolated to hyperparameters (mostly logarithms) farther than this.
_FAR = 3.0
# Sum of the sizes of the weights of an extrapolation, beyond which it is none.
_BOLD = 2.5


# Precisions below this count as none where sites are extrapolated.
_LEAST = 1e-12


def extrapolated(states: list[State], weights: Array, names: tuple[str, ...]) -> State:
    """A state to start from, by an extrapolation from those of hyperparameters near.

    Of Gaussian sites by log-linear precision and linear standardised shift; else the nearest.

    Parameters
    ----------
    states : list of dict
        That of the nearest first.
    weights : ndarray of shape (n_states,)
        They sum to one.
    names : tuple of str
        See `Capabilities.site_names`.
    """
    if not names or any(
        name not in state or np.isnan(state[name]).any() for state in states for name in names
    ):
        return states[0]
    lifted, shift = (np.array([state[name] for state in states]) for name in names)
    lifted = np.maximum(lifted, _LEAST)
    precision = np.exp(np.clip(weights @ np.log(lifted), -80.0, 80.0))
    shift = (weights @ (shift / np.sqrt(lifted))) * np.sqrt(precision)
    return states[0] | dict(zip(names, (precision, shift), strict=True))


class WarmStart:
    """States of an engine by the hyperparameters at which it ended.

    Parameters
    ----------
    engine : Engine
    first : dict or None
        A state for hyperparameters unknown.
    """

    def __init__(self, engine: Engine, first: State | None = None):
        self._names, self._first = engine.capabilities.site_names, first
        self._known: deque[tuple[NDArray[np.float64], State]] = deque(maxlen=_KEPT)

    def add(self, theta: NDArray[np.float64], state: State) -> None:
        """Keep the state of a run at these hyperparameters."""
        self._known.append((np.array(theta), state))

    def near(self, theta: NDArray[np.float64]) -> State | None:
        """The state to start from: that of the nearest θ, extrapolated by its neighbours."""
        if not self._known:
            return self._first
        ranked = sorted(self._known, key=lambda known: float(np.sum((known[0] - theta) ** 2)))
        centre, state = ranked[0]
        others = [known for known in ranked[1:] if np.max(np.abs(known[0] - centre)) < _FAR]
        if not others or np.max(np.abs(theta - centre)) > _FAR:
            return state
        steps = np.array([known[0] - centre for known in others])
        weights = np.linalg.lstsq(steps.T, theta - centre, rcond=1e-3)[0]
        if not np.abs(weights).sum() < _BOLD:
            return state
        states = [state, *(known[1] for known in others)]
        return extrapolated(states, np.array([1.0 - weights.sum(), *weights]), self._names)


# Beside a trial point where the model cannot be evaluated the objective is a steep bowl around the
# best point so far: a line search then turns back.
_STEEP = 1e6
# From so many rows on the time of evaluations is worth a thought: the engine's tolerance is then
# this many times larger during the search. So many answers are many.
# From more than a few thousand rows on less so, and from the last number on not at all: what a run
# leaves in the gradient grows with the rows, and descents then end where it hides the slope.
_LONG = 256
_COARSE, _FINE = 10.0, 3e4
# A descent ends with a step that gains less than this share of the objective, or so many nats.
_FTOL, _NATS = 1e-6, 1e-4
# With so many answers valleys are narrow. Where another descent would begin, and no slope is above
# the second number, there are steps of Newton's method instead: second derivatives by differences
# of gradients so far apart, none taken for less than the fourth number. Of more hyperparameters
# than the fifth there is another descent after all; it ends once so many steps together gain less
# than `_GAINED`.
_NARROW, _STEEPEST, _APART, _BEND, _NEWTON, _PATIENCE = 20_000, 100.0, 0.01, 0.1, 40, 5
# Another one begins where it ended, so many in all, unless no slope is above this (nats for a
# factor e) or it gained less than so many nats. Of fewer answers than `_LONG` there is one: they
# leave hyperparameters open by far more than what it leaves.
_FLAT, _DESCENTS, _GAINED = 0.02, 8, 0.01
# Through time a descent goes no farther than this from where it begins in any coordinate (mostly
# logarithms), and another one goes on: strengths that move far too fast make an evaluation long.
_REACH = 3.0
# From an objective of so many nats on, its gradient may be of any size.
_LARGE = 1e3
# A result that has not converged is not used where its residual is larger.
_ASTRAY = 0.1
# A hyperparameter this near a bound (of its logarithm) is at it; it is held back where the log
# evidence would grow by more than this if it were larger (smaller) by a factor e (or 1, if linear).
_TOUCH = 1e-6
_BINDING = 0.5
# A variance of the kernel that says nothing is raised by leaps that would gain so many nats if the
# objective were linear in it, where its slope (nats for a factor e) is above the last but one.
# Within so many nats of its lower bound it is taken to say nothing; elsewhere, of many answers,
# where its slope grows with it by more than the last power: by the first where it is linear.
_NEAR, _LEAPS, _RISING, _LINEAR = 1.0, (1.0, 0.1), 1e-6, 0.5
# Where lengthscales are free the evidence has more tops than one: short ones take the place of the
# noise, and the noise that of the utility. After a search it is looked at with lengthscales at
# their medians and so much noise for the mean variance of the utility: where it is larger there
# than at the end another search begins.
_ELSEWHERE = (0.1, 1.0)
# What names say may be what short lengthscales say. Where they say anything other searches begin
# with medians over each of the first numbers, and the second number of the utility's variance left
# to names. Either some evaluations bring one to within so many nats of the end of the search
# before, or it goes back there; so it does where the variances of names come near what they were.
# Where the noise has as much variance as the utility, another search begins with a tenth of that,
# and with medians over what has the largest evidence.
_SHORT, _LEFT_TO_NAMES, _SOON, _BEHIND, _AGAIN = (2.0, 4.0), 0.01, 4, 6.0, 0.7
_SHORT_FOR_NOISE = (2.0, 4.0, 8.0)
# So it has where a kernel has a linear and a smooth part of the same columns. Where the evidence is
# smaller by more than the first number without one of them, another search begins where the other
# says what that says: lengthscales of the smooth part so many times those of the linear one, or
# where what is straight in the smooth part has less than the third number of its variance. Where
# the smooth part has less than the last number of the variance of what names say, another search
# begins with half of that variance for each.
_SAYS, _STRAIGHT, _LONG_SCALES, _NAMES_ALONE = 1.0, 3.0, 0.25, 0.1
# A further search ends where so many times what the last so many evaluations gained would not bring
# it to the end of the one before.
_TIMES, _LOOK_BACK = 5.0, 4


class Step(NamedTuple):
    """One evaluation of the objective, as monitors get it.

    Attributes
    ----------
    number : int
        From 1, within this start of the search.
    log_posterior : float
        Log evidence plus log prior density; −inf where the model could not be evaluated.
    theta : ndarray of shape (n_theta,)
    seconds : float
        It took.
    """

    number: int
    log_posterior: float
    theta: NDArray[np.float64]
    seconds: float


Monitor = Callable[[Step], None]


class StopSearch(Exception):
    """A monitor raises it to end the search at the best point so far."""


@dataclass(frozen=True)
class Search:
    """How hyperparameters are searched for.

    Attributes
    ----------
    optimizer : "fmin_l_bfgs_b" or callable
        A callable gets ``(obj_func, initial_theta, bounds)`` and returns
        ``(theta_opt, func_min)``, as in scikit-learn.
    n_restarts : int
        Further starts, drawn uniformly within the (finite) bounds.
    n_jobs : int or None
        Starts in parallel by joblib.
    max_iter : int
    gtol : float
        Of L-BFGS-B.
    warn_not_converged : bool
        Warn of a search that did not end, and of hyperparameters at their bounds.
    second : (ndarray, float) or None
        A further start, for where the others end at no less than this value of the objective.
    looks : bool
        Look at other tops of the evidence after it.
    """

    optimizer: str | Callable = "fmin_l_bfgs_b"
    n_restarts: int = 0
    n_jobs: int | None = None
    max_iter: int = 200
    gtol: float = 1e-3
    warn_not_converged: bool = True
    n_learning_answers: int | str | None = None
    second: tuple[NDArray[np.float64], float] | None = None
    looks: bool = True


class Best(NamedTuple):
    """The smallest value so far: gradient if asked for, ``sure`` unless the engine went astray."""

    value: float
    theta: NDArray[np.float64]
    gradient: NDArray[np.float64] | None
    state: State | None
    sure: bool = True


class Objective:
    """Minus log evidence minus log prior of θ, each run of the engine started from the last."""

    def __init__(
        self,
        model: Model,
        comparisons: Comparisons,
        start: State | None = None,
        monitor: Monitor | None = None,
    ):
        self._model, self._comparisons = model, comparisons
        self._long = len(comparisons.rows) >= _LONG
        self.many = len(comparisons.positions) >= _LONG
        self.narrow = len(comparisons.positions) >= _NARROW
        coarse = min(_COARSE, max(1.0, _FINE / max(len(comparisons.rows), 1)))
        self._engine = model.evidence_engine.relaxed(coarse if self._long else 1.0)
        self._monitor = monitor
        self._best: Best | None = None
        self._number = 0
        self.strayed = False  # where it began
        self._warm = WarmStart(self._engine, start)
        self.state = start

    @property
    def best(self) -> Best:
        """The best evaluation so far."""
        if self._best is None:
            raise StopSearch("nothing was evaluated")
        return self._best

    def _known_at(self, theta):
        """Value and gradient, where these hyperparameters are the best so far."""
        best = self._best
        if best is None or best.gradient is None or not np.array_equal(theta, best.theta):
            return None
        return best.value, best.gradient.copy()

    def state_at(self, theta):
        """The engine's state at hyperparameters, or where it was nearest to them."""
        best = self._best
        if best is not None and np.array_equal(theta, best.theta):
            return best.state
        return self._warm.near(theta)

    def first_step(self, theta):
        """The objective here, and what to divide it by for a first step of length 1 at most.

        L-BFGS-B goes along the gradient as far as the bounds allow, which with many answers is
        into a corner; there the engine takes long, and its sites are no start for the next run.
        """
        value, gradient = self(theta)
        if not self._long and abs(value) < _LARGE:
            return value, 1.0
        return value, max(1.0, float(np.max(np.abs(gradient))))

    def __call__(self, theta, eval_gradient=True):
        if eval_gradient and (best := self._known_at(theta)) is not None:  # a descent begins
            return best
        began = perf_counter()
        self._number += 1
        try:
            value, gradient, sure = self._evaluate(theta, eval_gradient)
        except ValueError:
            if self._best is None:
                raise
            off = theta - self._best.theta
            value = self._best.value + _STEEP * (1.0 + float(off @ off))
            gradient, told = 2.0 * _STEEP * off, -np.inf
        else:
            told = -value
            if self._best is None or (not sure, value) < (not self._best.sure, self._best.value):
                kept = None if gradient is None else np.array(gradient)  # theirs may be written to
                self.strayed |= self._best is None and not sure
                self._best = Best(value, np.array(theta), kept, self.state, sure)
        if self._monitor is not None:
            self._monitor(Step(self._number, told, np.array(theta), perf_counter() - began))
        return (value, gradient) if eval_gradient else value

    def _evaluate(self, theta, eval_gradient):
        found = self._model.at(theta).evaluate(
            self._comparisons,
            self._warm.near(theta) if self._long else self.state,
            engine=self._engine,
            eval_gradient=eval_gradient,
        )
        log_prior, slope = self._model.log_prior(theta)
        value = found.approximation.sites.log_evidence + log_prior
        if not np.isfinite(value):
            raise ValueError(
                f"The evidence is {value} at kernel {self._model.at(theta).kernel}: rescale the "
                "features (for instance Itemwise(StandardScaler())) or narrow its bounds."
            )
        run = found.approximation
        sure = run.converged or run.stopped or run.residual < _ASTRAY
        if not sure and self._best is not None and self._best.sure:
            raise ValueError(f"The engine ended at a residual of {run.residual:.1e}.")
        self.state = run.state
        self._warm.add(theta, self.state)
        gradient = None if found.gradient is None else -(found.gradient + slope)
        return -value, gradient, sure


class Learned(NamedTuple):
    """The best end of the searches, and a state to start the engine from there."""

    model: Model
    state: State | None


def learn(
    model: Model,
    comparisons: Comparisons,
    search: Search,
    start: State | None = None,
    rng: np.random.RandomState | np.random.Generator | None = None,
    monitor: Monitor | None = None,
) -> Learned:
    """Maximise the evidence times the priors over the free hyperparameters.

    Parameters
    ----------
    model : Model
        Where the search starts.
    comparisons : Comparisons
    search : Search
    start : dict, optional
        State of the evidence engine.
    rng : RandomState or Generator, optional
        For restarts.
    monitor : callable, optional
        Told of every `Step` of the first start, unless that runs in another process.

    Returns
    -------
    Learned
    """
    bounds, theta = model.bounds, model.theta
    starts = [np.clip(theta, bounds[:, 0], bounds[:, 1])]
    if search.n_restarts:
        if not np.all(np.isfinite(bounds)):
            raise ValueError(
                "Restarts (n_restarts_optimizer > 0) need finite bounds on every hyperparameter; "
                "give finite bounds to the kernel and noise_variance_bounds."
            )
        rng = np.random.default_rng() if rng is None else rng
        starts += [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(search.n_restarts)]
    # Monitors are not sent to other processes.
    here = len(starts) == 1 or effective_n_jobs(search.n_jobs) == 1
    monitors = [monitor if here else None] + [None] * search.n_restarts
    # A pair, as joblib's dask backend gives large arrays to one worker, with which they are lost.
    results = Parallel(n_jobs=search.n_jobs)(
        delayed(_search if begin is starts[0] else _tried)(
            model, comparisons, search, (begin, bounds), start, told
        )
        for begin, told in zip(starts, monitors, strict=True)
    )
    best = _best(*results)
    if search.second is not None and best.best.value >= search.second[1]:
        begin = np.clip(search.second[0], bounds[:, 0], bounds[:, 1])
        best = _best(best, _tried(model, comparisons, search, (begin, bounds), start, None))
    if search.looks and not (callable(search.optimizer) or best.stopped):
        best = _looked(model, comparisons, search, best, bounds)
    if search.warn_not_converged:
        if best.warning:
            warn(best.warning, ConvergenceWarning)
        _warn_bounds(model, comparisons, best.best)
    return Learned(model.at(best.best.theta), best.best.state)


def _looked(model, comparisons, search, best, bounds):
    """The best end of a search and of those that begin where looks at other tops tell them to."""
    turned = False
    for look in _LOOKS:
        back = turned and look is _linear_for_smooth  # to where it came from
        begin = None if back else look(model, comparisons, best.best, bounds)
        if begin is None:
            continue
        before, for_names = best.best, look in (_short_for_names, _shorter_for_names)
        far = for_names or look is _short_for_noise
        hope = _Hope(before.value)
        if far:
            priors = [model.log_prior(theta)[0] for theta in (before.theta, begin)]
            names = name_variances(model.kernel) if for_names else ()
            behind = _BEHIND + max(priors[0] - priors[1], 0.0)
            hope = _Hope(before.value, behind, names, before.theta)
        # Parts that take each other's place leave utilities nearly as they are.
        state = None if far or look is _elsewhere else before.state
        best = _best(best, _tried(model, comparisons, search, (begin, bounds), state, hope))
        turned |= look is _smooth_for_linear and best.best.value < before.value - _GAINED
    return best


def _warn_bounds(model, comparisons, best):
    """Warn of hyperparameters that a bound holds back from better ones."""
    theta, gradient = best.theta, best.gradient
    low, high = model.bounds.T
    ends = np.where(theta <= low + _TOUCH, -1.0, np.where(theta >= high - _TOUCH, 1.0, 0.0))
    ends[low >= high] = 0.0
    if not np.any(ends):
        return
    if gradient is None:
        try:
            gradient = Objective(model, comparisons, best.state)(theta)[1]
        except ValueError:  # the end of a search is no place to fail
            return
    outwards = -gradient * ends
    values = np.where(model.linear, theta, np.exp(np.where(model.linear, 0.0, theta)))
    held = [
        f"{name} at its {'upper' if end > 0.0 else 'lower'} bound {value:.3g}"
        for name, end, value, slope in zip(model.names, ends, values, outwards, strict=True)
        if end and slope > _BINDING
    ]
    if held:
        remedy = "Widen these bounds if such values make sense, fix the hyperparameter"
        end = "('fixed' as its bounds)"
        if comparisons.rows.all_same and not any(map(_is_of_utilities, held)):
            remedy = (
                "All answers are the same, which tells more of the order shown, of ties or of "
                "noise than of utilities. Add answers of other outcomes, or fix the hyperparameter"
            )
        elif seen_columns(model.kernel, comparisons.items.shape[1])[1]:
            end += ", or rescale the features"
        warn(
            f"The search for hyperparameters ended with {', '.join(held)}: values beyond would be "
            f"more probable. {remedy} {end}.",
            ConvergenceWarning,
        )


def _is_of_utilities(held):
    """Whether a hyperparameter at its bound, in words, is of the kernel, or noise at its least."""
    return not held.startswith(("order", "tie", "grade", "noise_variance at its upper"))


class _Found(NamedTuple):
    """End of one search; ``warning`` is empty if all went well."""

    best: Best
    warning: str = ""
    stopped: bool = False  # by its monitor


def _best(*found):
    """The search that ended best, those whose engine went astray last; some may have failed."""
    ended = [each for each in found if each is not None]
    return min(ended, key=lambda each: (not each.best.sure, each.best.value))


def _tried(*given):
    """A further search; None if the model cannot be evaluated where it begins."""
    try:
        return _search(*given)
    except ValueError:
        return None


def _search(model, comparisons, search, within, start, monitor):
    objective = Objective(model, comparisons, start, monitor)
    try:
        # Here too, as this may be another process than that of the fit.
        with blas_threads(model.evidence_engine.matrix_size(comparisons)):
            return _minimised(model, objective, search, *within)
    except StopSearch:
        return _Found(objective.best, stopped=True)


class _Hope:
    """A monitor that ends a further search where there is no hope that it ends at less.

    That is where it would take many times what the last evaluations gained to come there, where it
    is too far behind after a few of them, or where names say again what they said before.
    """

    def __init__(
        self,
        value: float,
        behind: float = np.inf,
        names: Sequence[int] = (),
        theta: NDArray[np.float64] | None = None,
    ):
        self._least, self._behind = value, behind
        self._names = list(names)
        self._said = np.zeros(0) if theta is None else theta[self._names]
        self._values: list[float] = []

    def __call__(self, step: Step) -> None:
        """Keep the smallest value so far, and compare it with that of some evaluations ago."""
        values = self._values
        values.append(min([-step.log_posterior, *values[-1:]]))
        if len(values) == _SOON and values[-1] - self._least > self._behind:
            raise StopSearch
        moved = np.abs(step.theta[self._names] - self._said)
        if self._names and values[-1] > self._least and np.all(moved < _AGAIN):
            raise StopSearch
        if len(values) > 2 * _LOOK_BACK:
            gained = values[-1 - _LOOK_BACK] - values[-1]
            if values[-1] - self._least > max(_TIMES * gained, _GAINED):
                raise StopSearch


def _medians(model, theta):
    """Hyperparameters with lengthscales at the medians of their priors, and which these are."""
    found, which = theta.copy(), np.zeros(len(theta), dtype=bool)
    for prior in model.priors:
        if isinstance(prior, LogNormal | SharedLevel):
            lengths = np.flatnonzero(model.powers[prior.index] == 0)
            lengths = lengths[prior.index[lengths] < len(model.kernel.theta)]
            found[prior.index[lengths]] = prior.centre[lengths]
            which[prior.index[lengths]] = True
    return found, which


def _utility_variance(model, theta, comparisons):
    """Logarithm of the mean variance of the utility."""
    return np.log(mean_variance(model.at(theta).kernel, comparisons.items[:1000]))


def _with_noise(model, best, before, theta, varies, ratio):
    """Hyperparameters with so much noise for a utility of such a variance (a logarithm).

    A threshold and an order effect stay where they are in deviations of utility and noise: that of
    the utility was ``before``.
    """
    at = model.noise_index
    power = np.where(np.arange(len(theta)) < len(model.kernel.theta), 0, model.powers)
    by = varies + np.log1p(ratio) - np.logaddexp(before, 2.0 * best.theta[at] / power[at])
    moved = np.where(model.linear, theta * np.exp(0.5 * power * by), theta + 0.5 * power * by)
    moved[at] = 0.5 * power[at] * (varies + np.log(ratio))
    return moved


def _elsewhere(model, comparisons, best, bounds):
    """Hyperparameters of a larger evidence on another side of the end of a search, if any are."""
    medians, _ = _medians(model, best.theta)
    if np.array_equal(medians, best.theta) or model.noise_index is None or model.rule.through_time:
        return None
    varies = _utility_variance(model, best.theta, comparisons)
    objective = Objective(model, comparisons)
    for ratio in _ELSEWHERE:
        theta = _with_noise(model, best, varies, medians, varies, ratio)
        try:
            objective(np.clip(theta, bounds[:, 0], bounds[:, 1]), eval_gradient=False)
        except ValueError:  # the end of a search is no place to fail
            continue
        if objective.best.sure and objective.best.value < best.value - _GAINED:
            return objective.best.theta
    return None


def _short_for_names(model, comparisons, best, bounds, times=_SHORT[0]):
    """Where short lengthscales say what names do, if these say anything."""
    names = name_variances(model.kernel)
    begin, lengths = _medians(model, best.theta)
    if not names or not lengths.any() or model.noise_index is None or model.rule.through_time:
        return None
    before, without = _utility_variance(model, best.theta, comparisons), best.theta.copy()
    begin[lengths] -= np.log(times)
    for part in linear_parts(model.kernel):
        smooth = part.smooth_variance
        begin[smooth] = np.logaddexp(part.of_names(begin), begin[smooth])
    begin[names] = without[names] = bounds[names, 0]
    varies = _utility_variance(model, begin, comparisons)
    begin[names] = varies + np.log(_LEFT_TO_NAMES / len(names))
    at = model.noise_index
    ratio = np.exp(2.0 * best.theta[at] / model.powers[at] - before)
    begin = _with_noise(model, best, before, begin, varies, ratio)
    return _if_they_say(model, comparisons, best, without, np.clip(begin, *bounds.T))


def _shorter_for_names(model, comparisons, best, bounds):
    """As `_short_for_names`, with shorter ones."""
    return _short_for_names(model, comparisons, best, bounds, _SHORT[1])


def _short_for_noise(model, comparisons, best, bounds):
    """Where short lengthscales say what noise does, if that is as large as the utility."""
    medians, lengths = _medians(model, best.theta)
    at = model.noise_index
    if not lengths.any() or at is None or model.rule.through_time:
        return None
    before = _utility_variance(model, best.theta, comparisons)
    if 2.0 * best.theta[at] / model.powers[at] < before:
        return None
    objective, found = Objective(model, comparisons), None
    for times in _SHORT_FOR_NOISE:
        theta = np.where(lengths, medians - np.log(times), medians)
        varies = _utility_variance(model, theta, comparisons)
        theta = _with_noise(model, best, before, theta, varies, _ELSEWHERE[0])
        try:
            objective(np.clip(theta, bounds[:, 0], bounds[:, 1]), eval_gradient=False)
        except ValueError:  # the end of a search is no place to fail
            continue
        found = objective.best.theta
    return found


def _smooth_for_names(model, comparisons, best, bounds):
    """Where smooth parts of a kernel say half of what names do, if they say next to nothing."""
    theta, without, low = best.theta, best.theta.copy(), bounds[:, 0]
    begin = theta.copy()
    for part in linear_parts(model.at(theta).kernel):
        if theta[part.smooth_variance] < part.of_names(theta) + np.log(_NAMES_ALONE):
            begin = part.beside_names(begin)
            without[part.names] = low[part.names]
    return _if_they_say(model, comparisons, best, without, np.clip(begin, *bounds.T))


def _smooth_for_linear(model, comparisons, best, bounds):
    """Where smooth parts of a kernel say what its linear ones do, if these say anything."""
    theta, without, low = best.theta, best.theta.copy(), bounds[:, 0]
    begin = theta.copy()
    for part in linear_parts(model.at(theta).kernel):
        begin = part.as_smooth(begin, _STRAIGHT)
        begin[part.variance] = without[part.variance] = low[part.variance]
    return _if_they_say(model, comparisons, best, without, np.clip(begin, *bounds.T))


def _linear_for_smooth(model, comparisons, best, bounds):
    """Where linear parts of a kernel say what is straight in smooth ones of long lengthscales."""
    theta, without, low = best.theta, best.theta.copy(), bounds[:, 0]
    begin = theta.copy()
    for part in linear_parts(model.at(theta).kernel):
        slopes = part.slope_variance(theta)
        if theta[part.variance] < slopes < theta[part.smooth_variance] + np.log(_LONG_SCALES):
            begin = part.as_linear(begin)
            without[part.smooth_variance] = low[part.smooth_variance]
    return _if_they_say(model, comparisons, best, without, np.clip(begin, *bounds.T))


def _if_they_say(model, comparisons, best, without, begin):
    """Where to begin, if the evidence is smaller without the parts that others replace."""
    if np.array_equal(without, best.theta):
        return None
    objective = Objective(model, comparisons, best.state)
    try:
        objective(without, eval_gradient=False)
    except ValueError:  # the end of a search is no place to fail
        return None
    return begin if objective.best.value - best.value > _SAYS else None


_LOOKS = (
    _elsewhere,
    _smooth_for_names,
    _smooth_for_linear,
    _linear_for_smooth,
    _short_for_noise,
    _short_for_names,
    _shorter_for_names,
)


def _minimised(model, objective, search, begin, bounds):
    if callable(search.optimizer):
        result = search.optimizer(obj_func=objective, initial_theta=begin, bounds=bounds)
        try:
            theta, value = result
            theta, value = np.asarray(theta, dtype=np.float64), float(value)
        except (TypeError, ValueError):
            theta, value = np.zeros(0), np.nan
        if theta.shape != begin.shape or not np.all(np.isfinite([*theta, value])):
            raise ValueError(
                f"optimizer must return (theta_opt, func_min), finite and theta of shape "
                f"{begin.shape}; got {result!r}."
            )
        return _Found(Best(value, theta, None, objective.state_at(theta)))
    theta, value, n_iter, ended, warning = begin, np.inf, 0, False, ""
    slopes = np.zeros(0)
    reach = _REACH if model.rule.through_time else np.inf
    if not objective.many:
        coordinates = _themselves(model, theta, bounds)
        n_iter = _descend(objective, coordinates, theta, search, 0)
        if objective.strayed and n_iter < search.max_iter:
            theta = objective.best.theta
            n_iter += _descend(objective, coordinates, theta, search, n_iter)
        if n_iter < search.max_iter and _leaps(model, objective, bounds):
            theta = objective.best.theta
            n_iter += _descend(objective, coordinates, theta, search, n_iter)
    for _ in range(_DESCENTS if objective.many else 0):
        sure = n_iter > 0 and objective.best.sure
        coordinates, again = _ratios(model, theta, bounds), objective.narrow and n_iter > 0
        near = again and objective.best.sure and np.max(np.abs(slopes), initial=0.0) < _STEEPEST
        if near and len(theta) <= _NEWTON:
            _newton(objective, coordinates)
            n_iter += 1
        else:
            n_iter += _descend(objective, coordinates, theta, search, n_iter, reach, again)
        theta, gained = objective.best.theta, value - objective.best.value
        if objective.best.sure and not sure:  # what was astray is no measure
            gained = np.inf
        value = objective.best.value
        slopes = _slopes(model, objective.best, bounds)
        if n_iter >= search.max_iter:
            break
        ended = np.max(np.abs(slopes), initial=0.0) <= max(_FLAT, search.gtol)
        if not ended and gained < _GAINED:
            _strides(objective, _ratios(model, theta, bounds), slopes)
            ended = value - objective.best.value < _GAINED
        ended = ended and not _leaps(model, objective, bounds)
        theta, value = objective.best.theta, objective.best.value
        if ended:
            break
    if n_iter >= search.max_iter:
        warning = (
            f"The search for hyperparameters stopped after {search.max_iter} iterations. Scale the "
            "features (for instance Itemwise(StandardScaler())), narrow the bounds of the kernel, "
            "or pass an optimizer of your own."
        )
    elif objective.many and not ended:
        warning = (
            f"The search for hyperparameters stopped after {_DESCENTS} descents while the log "
            f"evidence still grew by up to {np.max(np.abs(slopes)):.2g} nats for a factor e. Start "
            "elsewhere (n_restarts_optimizer=5), or begin from other values of the noise and the "
            "kernel's hyperparameters."
        )
    return _Found(objective.best, warning)


def _ratios(model, theta, bounds):
    """Coordinates of a descent from θ."""
    return Ratios.at(theta, model.powers, model.linear, bounds, model.noise_index)


def _themselves(model, theta, bounds):
    """Hyperparameters as coordinates, those that are no logarithms in units of the noise at θ."""
    at, unit = model.noise_index, np.ones(len(theta))
    if at is not None:
        powers = np.where(model.linear, model.powers, 0)
        unit = np.exp(powers * theta[at] / model.powers[at])
    return Ratios.none(bounds, unit)


def _newton(objective, ratios):
    """As much of a step of Newton's method from the best point so far as gains.

    First so much of it that no coordinate moves by more than 1, then twice as much, or half.
    """
    best, (low, high) = objective.best, ratios.bounds.T
    at = ratios.forward(best.theta)
    slopes = ratios.pull_back(at, best.gradient)
    free = np.flatnonzero((at > low + _APART) & (at < high - _APART))
    bends, step = np.zeros((len(free), len(free))), np.zeros(len(at))
    for row, k in enumerate(free):
        for apart in (_APART, -_APART):
            there = at.copy()
            there[k] += apart
            gradient = objective(ratios.back(there))[1]
            bends[row] += ratios.pull_back(there, gradient)[free] / (2.0 * apart)
    step[free] = -covariance_of(bends, _BEND) @ slopes[free]
    whole = max(1.0, float(np.max(np.abs(step), initial=0.0)))
    share, before = 1.0 / whole, best.value
    while share * whole > 0.1:
        value, _ = objective(ratios.back(np.clip(at + share * step, low, high)))
        if value < before:
            if share == 1.0:
                return
            before, share = value, min(1.0, 2.0 * share)
        elif before < best.value:
            return
        else:
            share *= 0.5


def _strides(objective, ratios, slopes):
    """Strides of a factor e, e², e⁴, … down a coordinate that slopes, while they gain.

    Beside coordinates in which the objective bends a thousand times as much, a descent goes nowhere
    along a slope that is slight and long.
    """
    begin = objective.best.value
    for k in np.flatnonzero(np.abs(slopes) > _FLAT):
        stride, before = -np.sign(slopes[k]), np.inf
        while before - objective.best.value >= _GAINED:
            before = objective.best.value
            at = ratios.forward(objective.best.theta)
            at[k] += stride
            objective(ratios.back(np.clip(at, *ratios.bounds.T)))
            stride *= 2.0
        if begin - objective.best.value >= _GAINED:
            return


def _leaps(model, objective, bounds):
    """Raise variances of the kernel that say nothing where larger ones gain; whether any did.

    Far below what the answers tell of it, a variance changes nothing: the objective is linear in
    it, and so flat in its logarithm, and a descent that came there in one step, or began there,
    stays.
    """
    begin, (low, high) = objective.best.value, bounds.T
    if objective.best.gradient is None:
        return False
    for k in np.flatnonzero(model.powers[: len(model.kernel.theta)] == 2):
        before, theta = objective.best.value, objective.best.theta
        slope = -objective.best.gradient[k]
        if slope <= _RISING or theta[k] >= high[k]:
            continue
        if theta[k] > low[k] + _NEAR:
            if not objective.many:
                continue
            by = min(1.0, high[k] - theta[k])
            after = -objective(_raised(theta, k, by))[1][k]
            if after < slope * np.exp(_LINEAR * by):
                continue
        for nats in _LEAPS:
            objective(_raised(theta, k, min(np.log1p(nats / slope), high[k] - theta[k])))
            if before - objective.best.value >= _GAINED:
                break
    return begin - objective.best.value >= _GAINED


def _raised(theta, k, by):
    """Hyperparameters, one of them larger."""
    raised = theta.copy()
    raised[k] += by
    return raised


def _slopes(model, best, bounds):
    """Of the objective at its best, in nats for a factor e, but for what bounds hold."""
    ratios = _ratios(model, best.theta, bounds)
    at = ratios.forward(best.theta)
    slopes = ratios.pull_back(at, best.gradient)
    low, high = ratios.bounds.T
    held = ((at <= low) & (slopes > 0.0)) | ((at >= high) & (slopes < 0.0))
    return np.where(held, 0.0, slopes)


def _descend(objective, ratios, theta, search, n_iter, reach=np.inf, again=False):
    """One descent by L-BFGS-B, so far at most; how many iterations it took.

    It knows nothing of how the objective bends. Where it begins ``again``, near the bottom of a
    narrow valley, its first steps gain next to nothing: it ends only after several like these.
    """
    at = ratios.forward(theta)
    low, high = ratios.bounds.T
    value, scale = objective.first_step(ratios.back(at))

    def scaled(at):
        value, gradient = objective(ratios.back(at))
        return value / scale, ratios.pull_back(at, gradient) / scale

    # L-BFGS-B takes values for 1 at least.
    least = min(_FTOL * max(abs(value), 1.0), _NATS)
    values = [value / scale]

    def patient(intermediate_result):
        values.append(intermediate_result.fun)
        if len(values) > _PATIENCE and (values[-1 - _PATIENCE] - values[-1]) * scale < _GAINED:
            raise StopIteration

    found = minimize(
        scaled,
        at,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([np.maximum(low, at - reach), np.minimum(high, at + reach)]),
        callback=patient if again else None,
        options={
            "maxiter": search.max_iter - n_iter,
            "ftol": 0.0 if again else least / max(abs(value), scale),
            "gtol": search.gtol / scale,
        },
    )
    return found.get("nit", 0)  # there is none where all bounds meet
