"""The search for hyperparameters: evidence times priors, maximised.

L-BFGS-B descends from the best of a small design of starts. The design is valued, and its best
starts are followed, on some hundred answers by Laplace's approximation; the last descent is on all
answers by the model's own engine.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import NEGLIGIBLE, TOLERANCE, blas_threads, warn
from skpref.data import Comparisons, distinct_rows
from skpref.fitting._hyperpriors import LogNormal, SharedLevel
from skpref.fitting._model import Model
from skpref.fitting._parts import random_part
from skpref.fitting._ratios import Ratios
from skpref.gp import mean_variance
from skpref.inference import EP, Laplace, State
from skpref.kernels import identity_columns, lengthscale_indices, seen_columns

Array = NDArray[np.float64]


class Step(NamedTuple):
    """One evaluation of the objective, as monitors get it.

    Attributes
    ----------
    number : int
        From 1, within the descent on all answers.
    log_posterior : float
        Log evidence plus log prior density; −inf where the model could not be evaluated.
    theta : ndarray of shape (n_theta,)
    seconds : float
        It took.
    """

    number: int
    log_posterior: float
    theta: Array
    seconds: float


Monitor = Callable[[Step], None]


class StopSearch(Exception):
    """A monitor raises it to end the search at the best point so far."""


@dataclass(frozen=True)
class Search:
    """Options of the search, and its tuning numbers.

    Attributes
    ----------
    optimizer : "fmin_l_bfgs_b" or callable
        A callable gets ``obj_func, initial_theta, bounds`` and returns ``(theta_opt, func_min)``,
        as in scikit-learn.
    n_restarts : int
        Further starts, drawn uniformly within the (finite) bounds.
    n_jobs : int or None
        Starts in parallel by joblib.
    max_iter : int
        Iterations of L-BFGS-B on all answers.
    gtol : float
        Slope (nats for a factor e of a ratio) below which a descent ends. Another begins where it
        ended, while slopes are above twice that and the last one gained more nats than that.
    warn_not_converged : bool
        Warn of a search that did not end, and of hyperparameters at their bounds.
    n_learning_answers : int, "auto" or None
        See `skpref.fitting.learning_part`.
    uses_design : bool
        Begin from the best of a design of starts; False: from the model's own hyperparameters, as
        where these are the end of an earlier search.
    n_design_answers : int
        Answers on which starts are compared: enough that short lengthscales show, few enough that
        all of it takes less than the descent on all answers.
    length_shares : tuple of float
        Lengthscales of the design, over their prior medians: the evidence has a top of its own
        where the utility waves, which is reached from short ones alone.
    noise_share : float
        Variance of the noise in the design, over the mean variance of the utility. From more, what
        waves is taken for noise.
    minor_share : float
        Share of the utility's variance that all but one of the kernel's terms have in the design:
        so small that the one explains the answers alone, large enough to have a slope.
    n_design_steps : int
        Iterations of L-BFGS-B by which starts are compared: after three wavy tops are missed.
    n_compared : int
        Best ends of the design that are compared on all answers, beside that of the model's own
        start: a top of some of the answers may be none of all.
    least_gain : float
        A descent ends with an iteration that gains fewer nats: a little above what the engine's
        tolerance leaves in the evidence.
    max_descents : int
        L-BFGS-B begins so often; each forgets the curvatures of the one before.
    max_line_search : int
        Evaluations in one line search: more would go on below what the engine leaves of its
        tolerance.
    binding_slope : float
        A warning tells of a hyperparameter at its bound where the log posterior would grow by more
        nats for a factor e beyond (for 1, if it is no logarithm).
    """

    optimizer: str | Callable = "fmin_l_bfgs_b"
    n_restarts: int = 0
    n_jobs: int | None = None
    max_iter: int = 200
    gtol: float = 1e-3
    warn_not_converged: bool = True
    n_learning_answers: int | str | None = None
    uses_design: bool = True
    n_design_answers: int = 250
    length_shares: tuple[float, ...] = (1.0, 0.25)
    noise_share: float = 0.1
    minor_share: float = 0.01
    n_design_steps: int = 6
    n_compared: int = 2
    least_gain: float = 3e-5
    max_descents: int = 4
    max_line_search: int = 8
    binding_slope: float = 0.5


# Beside a trial point where the model cannot be evaluated the objective is a steep bowl around the
# best point so far (nats for a squared distance of 1): a line search then turns back.
_STEEP = 1e6
# The evidence of an engine that ended at a larger residual is not believed.
_ASTRAY = 0.1


class Best(NamedTuple):
    """The smallest value so far: gradient if asked for, ``sure`` unless the engine went astray."""

    value: float
    theta: Array
    gradient: Array | None
    state: State | None
    sure: bool = True


class Objective:
    """Minus log evidence minus log prior of θ, each run of the engine started from the last.

    Attributes
    ----------
    best : Best or None
        The best evaluation so far.
    """

    def __init__(
        self,
        model: Model,
        comparisons: Comparisons,
        start: State | None = None,
        monitor: Monitor | None = None,
    ):
        self._model, self._comparisons, self._monitor = model, comparisons, monitor
        self._engine = model.evidence_engine.relax_tolerance()
        self._state, self._number = start, 0
        self._evaluations: dict[bytes, tuple[float, Array | None]] = {}
        self.best: Best | None = None

    def state_near(self, theta: Array) -> State | None:
        """Return the engine's state at the best hyperparameters, or its last one elsewhere."""
        if self.best is not None and np.array_equal(theta, self.best.theta):
            return self.best.state
        return self._state

    def __call__(self, theta: Array, eval_gradient: bool = True):
        """Return the value at θ, with its gradient if asked for; raise where nothing is known."""
        value, gradient = self._evaluations.get(theta.tobytes(), (np.nan, None))
        if gradient is None or not eval_gradient:
            value, gradient = self._evaluate_and_report(theta, eval_gradient)
        return (value, gradient.copy()) if eval_gradient else value

    def _evaluate_and_report(self, theta, eval_gradient):
        """Evaluate at θ, keep the best, and tell the monitor; return value and gradient."""
        began = perf_counter()
        self._number += 1
        try:
            value, gradient, sure = self._evaluate(theta, eval_gradient)
            log_posterior = -value
        except ValueError:
            if self.best is None:
                raise
            offset = theta - self.best.theta
            value = self.best.value + _STEEP * (1.0 + float(offset @ offset))
            gradient, log_posterior = 2.0 * _STEEP * offset, -np.inf
        else:
            self._evaluations[theta.tobytes()] = value, gradient
            if self.best is None or (not sure, value) < (not self.best.sure, self.best.value):
                self.best = Best(value, np.array(theta), gradient, self._state, sure)
        if self._monitor is not None:
            seconds = perf_counter() - began
            self._monitor(Step(self._number, log_posterior, np.array(theta), seconds))
        return value, gradient

    def _evaluate(self, theta, eval_gradient):
        """Return minus log posterior, its gradient, and whether the engine nearly converged."""
        evaluation = self._model.at(theta).evaluate(
            self._comparisons, self._state, engine=self._engine, eval_gradient=eval_gradient
        )
        log_prior, slope = self._model.log_prior(theta)
        run = evaluation.approximation
        value = run.sites.log_evidence + log_prior
        if not np.isfinite(value):
            raise ValueError(
                f"The evidence is {value} at kernel {self._model.at(theta).kernel}: rescale the "
                "features (for instance Itemwise(StandardScaler())) or narrow its bounds."
            )
        sure = run.converged or run.stopped or run.residual < _ASTRAY
        if not sure and self.best is not None and self.best.sure:
            raise ValueError(f"The engine ended at a residual of {run.residual:.1e}.")
        self._state = run.state
        gradient = None if evaluation.gradient is None else -(evaluation.gradient + slope)
        return -value, gradient, sure


class Learned(NamedTuple):
    """The best end of the search, and a state to start the engine from there."""

    model: Model
    state: State | None


class _End(NamedTuple):
    """End of a search from one start; ``warning`` is empty if all went well."""

    best: Best
    warning: str = ""


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
        Gets every `Step` on all answers from the first start, unless that runs in another process.

    Returns
    -------
    Learned
    """
    bounds = model.bounds
    begin = np.clip(model.theta, *bounds.T)
    starts = [begin]
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
    ends = Parallel(n_jobs=search.n_jobs)(
        delayed(_search_from)(model, comparisons, search, (theta, k == 0), start, each)
        for k, (theta, each) in enumerate(zip(starts, monitors, strict=True))
    )
    end = min(
        (each for each in ends if each is not None),
        key=lambda each: (not each.best.sure, each.best.value),
    )
    if search.warn_not_converged:
        if end.warning:
            warn(end.warning, ConvergenceWarning)
        _warn_bounds(model, comparisons, end.best, search.binding_slope)
    return Learned(model.at(end.best.theta), end.best.state)


def _search_from(model, comparisons, search, begin, start, monitor):
    """Search from one start; return its end, None if a restart cannot be evaluated."""
    theta, is_first = begin
    objective = Objective(model, comparisons, start, monitor)
    try:
        # Here too, as this may be another process than that of the fit.
        with blas_threads(model.evidence_engine.matrix_size(comparisons)):
            if callable(search.optimizer):
                return _run_user_optimizer(model, objective, search.optimizer, theta)
            if is_first and search.uses_design:
                theta = _choose_start(model, comparisons, search, theta)
            warning = _descend_to_end(model, objective, search, theta)
    except StopSearch:
        warning = ""

    except ValueError:
        if is_first:
            raise
        return None
    if objective.best is None:
        raise StopSearch("nothing was evaluated")
    return _End(objective.best, warning)


def _run_user_optimizer(model, objective, optimizer, begin):
    """Return the end of a user's optimizer; raise ValueError unless it is a point and a value."""
    result = optimizer(obj_func=objective, initial_theta=begin, bounds=model.bounds)
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
    return _End(Best(value, theta, None, objective.state_near(theta)))


# -- descents --------------------------------------------------------------------------------------


def _descend_to_end(model, objective, search, theta):
    """Descend until the objective is flat; return the text of a warning, empty if it is flat."""
    n_iter, value, slope = 0, np.inf, np.inf
    for _ in range(search.max_descents):
        n_iter += _descend(model, objective, search, theta, search.max_iter - n_iter)
        if n_iter >= search.max_iter:
            return (
                f"The search for hyperparameters stopped after {search.max_iter} iterations. Scale "
                "the features (for instance Itemwise(StandardScaler())), narrow the bounds of the "
                "kernel, or pass an optimizer of your own."
            )
        gain, value = value - objective.best.value, objective.best.value
        theta, slope = objective.best.theta, _steepest_slope(model, objective.best)
        if slope <= 2.0 * search.gtol or gain < search.gtol:
            return ""
    return (
        f"The search for hyperparameters stopped after {search.max_descents} descents while the "
        f"log evidence still grew by up to {slope:.2g} nats for a factor e. Start elsewhere "
        "(n_restarts_optimizer=5), or begin from other values of the noise and the kernel's "
        "hyperparameters."
    )


def _descend(model, objective, search, theta, max_iter):
    """Run L-BFGS-B in ratios to the noise at θ; return its number of iterations."""
    ratios = _ratios_at(model, theta)
    at = ratios.forward(theta)
    value, gradient = objective(ratios.back(at))
    # A first step of length 1 at most: the gradient of many answers leads into a corner.
    scale = max(1.0, float(np.max(np.abs(ratios.pull_back(at, gradient)), initial=0.0)))

    def scaled(at):
        value, gradient = objective(ratios.back(at))
        return value / scale, ratios.pull_back(at, gradient) / scale

    result = minimize(
        scaled,
        at,
        jac=True,
        method="L-BFGS-B",
        bounds=ratios.bounds,
        options={
            "maxiter": max_iter,
            "ftol": search.least_gain / max(abs(value), scale),
            "gtol": search.gtol / scale,
            "maxls": search.max_line_search,
        },
    )
    return result.get("nit", 0)  # there is none where all bounds meet


def _ratios_at(model, theta):
    """Return the coordinates of the search around θ."""
    return Ratios.at(theta, model.powers, model.linear, model.bounds, model.noise_index)


def _steepest_slope(model, best):
    """Return the largest slope of the objective in ratios that no bound holds, in nats."""
    ratios = _ratios_at(model, best.theta)
    at = ratios.forward(best.theta)
    slopes = ratios.pull_back(at, best.gradient)
    low, high = ratios.bounds.T
    is_held = ((at <= low) & (slopes > 0.0)) | ((at >= high) & (slopes < 0.0))
    return float(np.max(np.abs(np.where(is_held, 0.0, slopes)), initial=0.0))


# -- the design of starts --------------------------------------------------------------------------


def _choose_start(model, comparisons, search, begin):
    """Descend from a design of starts on some of the answers; return the best hyperparameters."""
    size = search.n_design_answers
    if model.rule.through_time:  # chains of all take no longer than matrices of some hundred
        size //= 2
    part = _design_part(comparisons, model.kernel, size)
    # A hundredth of a nat is near enough.
    by_moments = part.rows.joint or model.monotone is not None
    by_moments |= not model.likelihood.log_concave
    quick = replace(model, engine=EP() if by_moments else Laplace(tol=1e-2), prepared=None)
    starts = starting_points(model, part.items, search)
    ends = []
    for theta in [begin, *starts]:
        objective = Objective(quick, part)
        try:
            _descend(quick, objective, search, theta, search.n_design_steps)
        except ValueError:  # where the model cannot be evaluated
            continue
        if objective.best is not None:
            ends.append(objective.best)
    if not ends:
        return begin
    own, ranked = ends[0], sorted(ends, key=lambda end: end.value)
    theta = ranked[0].theta
    if part is not comparisons:  # some of the answers may have another top than all
        candidates = [own, *(end for end in ranked if end is not own)][: 1 + search.n_compared]
        values = [_value_on_all(model, comparisons, end.theta) for end in candidates]
        theta = candidates[int(np.argmin(values))].theta
    # A variance near zero has no slope in its logarithm, and more answers may speak for it.
    amplitudes = amplitude_indices(model)
    theta[amplitudes] = np.maximum(theta, np.min(starts, axis=0))[amplitudes]
    return theta


def _value_on_all(model, comparisons, theta):
    """Compute the objective of all answers at some hyperparameters; infinite where it has none."""
    try:
        return Objective(model, comparisons)(theta, eval_gradient=False)
    except ValueError:  # where the model cannot be evaluated
        return np.inf


def amplitude_indices(model: Model) -> NDArray[np.intp]:
    """Return where the logarithms of the kernel's amplitudes are in θ."""
    return np.flatnonzero(model.powers[: len(model.kernel.theta)] == 2)


def _design_part(comparisons, kernel, size):
    """Return some answers among few items, or among few of those that have a name of their own."""
    columns = identity_columns(kernel)[-1:]
    who = distinct_rows(comparisons.items[:, columns])[1] if columns else True
    return random_part(comparisons, size, among_few=who)


def starting_points(model: Model, items: Array, search: Search) -> list[Array]:
    """Return hyperparameters from which a search may start, beside the model's own.

    Lengthscales are shares of their prior medians, each term of the kernel in turn has nearly all
    of the utility's variance, and the noise has a share of it. Thresholds and an order effect keep
    their ratio to the deviation of utility and noise.

    Parameters
    ----------
    model : Model
    items : ndarray of shape (n_items, n_features)
        By which variances of the utility are found.
    search : Search

    Returns
    -------
    list of ndarray of shape (n_theta,)
    """
    begin, bounds, noise, powers = model.theta, model.bounds, model.noise_index, model.powers
    n_kernel = len(model.kernel.theta)
    of_likelihood = np.where(np.arange(len(begin)) < n_kernel, 0, powers)

    def utility_variance(theta):
        return mean_variance(model.kernel.clone_with_theta(theta[:n_kernel]), items)

    lengths = np.array([at for at, _ in lengthscale_indices(model.kernel)], dtype=np.intp)
    medians = _with_prior_medians(model, lengths)
    starts = []
    for share in search.length_shares:
        medians_share = medians.copy()
        medians_share[lengths] += np.log(share)
        for theta in _with_one_term(model, medians_share, utility_variance, search.minor_share):
            theta = np.clip(theta, *bounds.T)
            if noise is not None:
                variance = utility_variance(theta)
                before = utility_variance(begin) + np.exp(2.0 * begin[noise] / powers[noise])
                growth = np.log((1.0 + search.noise_share) * variance / before)
                theta = _rescale_theta(theta, 0.5 * of_likelihood * growth, model.linear)
                theta[noise] = 0.5 * powers[noise] * np.log(search.noise_share * variance)
            starts.append(np.clip(theta, *bounds.T))
    return list(np.unique(starts, axis=0))


def _rescale_theta(theta, log_factors, linear):
    """Return hyperparameters times factors, where they are numbers or logarithms."""
    return np.where(linear, theta * np.exp(log_factors), theta + log_factors)


def _with_prior_medians(model, lengths):
    """Return the hyperparameters with lengthscales at the medians of their priors."""
    theta = model.theta
    for prior in model.priors:
        if isinstance(prior, LogNormal | SharedLevel):
            is_length = np.isin(prior.index, lengths)
            theta[prior.index[is_length]] = prior.centre[is_length]
    return theta


def _with_one_term(model, theta, utility_variance, minor_share):
    """Return hyperparameters by which each term of the kernel in turn has nearly all variance.

    A term is what a free variance multiplies; all that none multiplies is one more.
    """
    amplitudes = amplitude_indices(model)
    total = utility_variance(theta)
    variances = term_variances(utility_variance, theta, amplitudes)
    fixed = total - variances.sum()
    has_fixed = fixed > TOLERANCE * total
    starts = []
    for main in range(len(amplitudes) + has_fixed):
        start, largest = theta.copy(), total
        if has_fixed:  # the others are more or less than that
            largest = fixed if main == len(amplitudes) else fixed / minor_share
        for k, (at, variance) in enumerate(zip(amplitudes, variances, strict=True)):
            if variance > 0.0:
                term_variance = largest if k == main else minor_share * largest
                start[at] += np.log(term_variance / variance)
        starts.append(start)
    return starts or [theta]


def term_variances(
    variance: Callable[[Array], float], theta: Array, amplitudes: NDArray[np.intp]
) -> Array:
    """Return what each amplitude adds to a variance that is linear in every one of them.

    Parameters
    ----------
    variance : callable
        Of hyperparameters.
    theta : ndarray of shape (n_theta,)
    amplitudes : ndarray of int of shape (n,)
        Where the logarithms of amplitudes are.

    Returns
    -------
    ndarray of shape (n,)
    """
    # One at a time is raised so far that it is not lost beside the others.
    factor = NEGLIGIBLE**-2
    raised = theta + np.log(factor) * np.eye(len(theta))[amplitudes]
    gains = np.array([variance(each) for each in raised]) - variance(theta)
    return np.maximum(gains, 0.0) / factor


def _warn_bounds(model, comparisons, best, binding_slope):
    """Warn of hyperparameters that a bound holds back from better ones."""
    theta, gradient = best.theta, best.gradient
    low, high = model.bounds.T
    ends = np.where(theta <= low + TOLERANCE, -1.0, np.where(theta >= high - TOLERANCE, 1.0, 0.0))
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
        if end and slope > binding_slope
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
    """Tell whether a hyperparameter at its bound, in words, is the kernel's, or the least noise."""
    return not held.startswith(("order", "tie", "grade", "noise_variance at its upper"))
