"""Hyperparameters: kernel and noise by maximising the evidence, with a lengthscale prior."""

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref._conditioning import gaussian_space
from skpref._parameters import check_lognormal
from skpref.inference import Problem
from skpref.kernels import Identity, kernel_with_gradient, lengthscale_indices

# Default lengthscales, in standard deviations of a feature times √d (√d keeps the correlation
# of two random items the same whatever their number of features). Logarithms of lengthscales
# share a normal level and deviate from it by Student's t: many like ones, a few quite unlike.
_LEVEL = 1.0
_DEVIATION = 0.3
_FREEDOM = 4.0
_RANGE = 1e3
# Amplitude of each item's own part of the utility, which no feature explains, and its bounds.
_OWN = 0.1
_OWN_BOUNDS = (1e-4, 10.0)
# Items this near, in standard deviations of a feature, are the same one up to rounding.
_SAME = 1e-4
_PRIORS = "'lognormal', None or a pair (median, deviation of the logarithm)"
# While searching, sites this close to their fixed point give gradients good to about 1e-5.
_SEARCH_TOL = 1e-5
_SEARCH_ITERATIONS = 100
_MAX_SEARCH = 200


class LengthscalePrior(NamedTuple):
    """Prior on some of the log lengthscales in ``kernel.theta``.

    Attributes
    ----------
    index : ndarray of int
        Where they are in theta.
    centre : ndarray
        Their medians.
    deviation : float
        Without ``level`` the standard deviation of independent normals; with it the scale of
        the t-distributed deviations from the common level.
    level : float or None
        Standard deviation of the common level (the mean offset from ``centre``).
    """

    index: np.ndarray
    centre: np.ndarray
    deviation: float
    level: float | None = None

    def log_density(self, theta):
        """Unnormalised log density and its gradient."""
        offset = theta[self.index] - self.centre
        gradient = np.zeros(len(theta))
        if self.level is None:
            scaled = offset / self.deviation
            gradient[self.index] = -scaled / self.deviation
            return -0.5 * float(scaled @ scaled), gradient
        mean = offset.mean()
        scaled = (offset - mean) / self.deviation
        slopes = (_FREEDOM + 1.0) * scaled / (_FREEDOM + scaled**2) / self.deviation
        gradient[self.index] = slopes.mean() - slopes - mean / self.level**2 / len(offset)
        tails = 0.5 * (_FREEDOM + 1.0) * np.log1p(scaled**2 / _FREEDOM)
        return -float(tails.sum()) - 0.5 * float(mean / self.level) ** 2, gradient


class Evaluation(NamedTuple):
    """One run of an engine at given hyperparameters."""

    problem: Problem
    approximation: object
    gradient: np.ndarray | None


@dataclass(frozen=True)
class EvidenceProblem:
    """The log evidence of duels as a function of ``np.r_[kernel.theta, log σ²]``.

    Attributes
    ----------
    duels : Duels
    kernel : sklearn.gaussian_process.kernels.Kernel
    noise_variance : float
    noise_bounds : tuple of float or None
        None: the noise is not among the hyperparameters.
    engine : Laplace or EP
    """

    duels: object
    kernel: object
    noise_variance: float
    noise_bounds: tuple | None
    engine: object

    @property
    def theta(self):
        """Current hyperparameters, natural logarithms."""
        noise = [] if self.noise_bounds is None else [np.log(self.noise_variance)]
        return np.concatenate([self.kernel.theta, noise])

    @property
    def bounds(self):
        """Bounds of `theta`, shape (n_theta, 2)."""
        noise = [] if self.noise_bounds is None else [np.log(self.noise_bounds)]
        return np.array([*self.kernel.bounds, *noise]).reshape(-1, 2)

    def at(self, theta):
        """The same problem at other hyperparameters."""
        n_kernel = len(self.kernel.theta)
        noise = self.noise_variance if self.noise_bounds is None else float(np.exp(theta[-1]))
        kernel = self.kernel.clone_with_theta(theta[:n_kernel])
        return replace(self, kernel=kernel, noise_variance=noise)

    def evaluate(self, start=None, eval_gradient=False):
        """Run the engine here.

        Parameters
        ----------
        start : tuple, optional
            State of an earlier run, to start from.
        eval_gradient : bool, default=False

        Returns
        -------
        Evaluation
        """
        margins, items = self.duels.margins, self.duels.items
        contract = None
        if eval_gradient and len(self.kernel.theta):
            K, contract = kernel_with_gradient(self.kernel, items)
        else:
            K = self.kernel(items)
        if not np.all(np.isfinite(K)):
            raise ValueError(
                f"The kernel {self.kernel} is not finite on the items. Rescale the features "
                "(for instance Itemwise(StandardScaler())) or choose other hyperparameters."
            )
        space = gaussian_space(K, margins)
        problem = Problem(
            space, margins.index, margins.sign, self.duels.counts, self.noise_variance
        )
        found = self.engine.run(problem, start)
        if start is not None and not found.converged:
            found = self.engine.run(problem)
        if not eval_gradient:
            return Evaluation(problem, found, None)
        slopes = self.engine.evidence_gradient(problem, found)
        by_kernel = contract(slopes.covariance) if contract is not None else np.zeros(0)
        by_noise = [] if self.noise_bounds is None else [slopes.log_noise]
        return Evaluation(problem, found, np.concatenate([by_kernel, by_noise]))


def feature_spread(items):
    """Standard deviation of every feature, 1 where it is constant; safe at any scale."""
    size = np.max(np.abs(items), axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    spread = np.std(items / size, axis=0) * size
    # A spread at the level of rounding is a constant feature.
    return np.where(spread > 1e-13 * size, spread, 1.0)


def default_kernel(duels, has_features=True, learned=True):
    """RBF of unit amplitude, one lengthscale a feature; start and bounds follow the spread.

    Where hyperparameters are ``learned`` and items meet more than one opponent, each item also
    has a part of its own that its features do not explain.
    """
    if not has_features:
        return Identity()
    items = duels.items
    centre = np.sqrt(items.shape[1]) * feature_spread(items)
    with np.errstate(over="ignore"):
        bounds = np.stack([centre / _RANGE, centre * _RANGE], axis=1)
    if not np.all(np.isfinite(bounds)):
        raise ValueError(
            f"Features spread over up to {centre.max():.1e}, too near the largest number of double "
            "precision. Rescale them (for instance Itemwise(StandardScaler()))."
        )
    kernel = RBF(length_scale=centre, length_scale_bounds=bounds)
    first, second = duels.margins.first, duels.margins.second
    apart = first != second
    n_met = len(np.unique([first[apart], second[apart]]))
    if learned and n_met < 2 * np.count_nonzero(apart):
        own = RBF(length_scale=_SAME * feature_spread(items), length_scale_bounds="fixed")
        kernel = kernel + ConstantKernel(_OWN, _OWN_BOUNDS) * own
    return kernel


def lengthscale_prior(prior, kernel, items):
    """The prior on the lengthscales of ``kernel``, or None.

    Parameters
    ----------
    prior : "lognormal", None or (median, deviation)
        ``"lognormal"``: medians of √d standard deviations of the feature; a level common to all
        features, of standard deviation 1 of the log, and deviations from it of scale 0.3.
    kernel : Kernel
    items : ndarray of shape (n_items, n_features)
    """
    if prior is None:
        return None
    found = lengthscale_indices(kernel)
    if isinstance(prior, str):
        if prior != "lognormal":
            raise ValueError(f"lengthscale_prior must be {_PRIORS}, got {prior!r}.")
        spread = np.log(feature_spread(items)) + 0.5 * np.log(items.shape[1])
        deviation, level = _DEVIATION, _LEVEL
    else:
        median, deviation = check_lognormal(prior, _PRIORS)
        level = None
        spread = np.full(items.shape[1], np.log(median))
    if not found:
        return None
    centre = [spread.mean() if feature is None else spread[feature] for _, feature in found]
    index = np.array([position for position, _ in found])
    return LengthscalePrior(index, np.array(centre), float(deviation), level)


class SearchObjective:
    """Objective of the search: minus log evidence minus log prior, sites warm-started."""

    def __init__(self, problem, prior):
        engine = clone(problem.engine)
        engine.set_params(
            tol=max(engine.tol, _SEARCH_TOL), max_iter=min(engine.max_iter, _SEARCH_ITERATIONS)
        )
        self._problem, self._prior = replace(problem, engine=engine), prior
        self.state = None

    def __call__(self, theta, eval_gradient=True):
        here = self._problem.at(theta)
        evaluation = here.evaluate(self.state, eval_gradient)
        self.state = evaluation.approximation.state
        value = evaluation.approximation.sites.log_evidence
        gradient = evaluation.gradient
        if self._prior is not None:
            log_density, slope = self._prior.log_density(theta)
            value += log_density
            gradient = gradient + slope if eval_gradient else None
        return (-value, -gradient) if eval_gradient else -value


def learn(problem, prior=None, *, optimizer="fmin_l_bfgs_b", n_restarts=0, rng=None, n_jobs=None):
    """Maximise the evidence (times the prior) over the free hyperparameters.

    Parameters
    ----------
    problem : EvidenceProblem
    prior : LengthscalePrior, optional
    optimizer : "fmin_l_bfgs_b" or callable
        A callable gets ``(obj_func, initial_theta, bounds)`` and returns
        ``(theta_opt, func_min)``, as in scikit-learn.
    n_restarts : int
        Further starts, drawn uniformly within the (finite) bounds.
    rng : RandomState
    n_jobs : int, optional
        Starts in parallel by joblib.

    Returns
    -------
    problem : EvidenceProblem
        At the best hyperparameters found.
    state : tuple
        To start the engine from there.
    """
    bounds, theta = problem.bounds, problem.theta
    starts = [np.clip(theta, bounds[:, 0], bounds[:, 1])]
    if n_restarts:
        if not np.all(np.isfinite(bounds)):
            raise ValueError(
                "Restarts (n_restarts_optimizer > 0) need finite bounds on every hyperparameter; "
                "give finite bounds to the kernel and noise_variance_bounds."
            )
        starts += [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n_restarts)]
    results = Parallel(n_jobs=n_jobs)(
        delayed(_search)(problem, prior, optimizer, start, bounds) for start in starts
    )
    best = min(results, key=lambda result: result.value)
    if best.complaint:
        warnings.warn(best.complaint, ConvergenceWarning, stacklevel=3)
    return problem.at(best.theta), best.state


class _Found(NamedTuple):
    """End of one search; ``complaint`` is empty if all went well."""

    theta: np.ndarray
    value: float
    state: tuple
    complaint: str


def _search(problem, prior, optimizer, start, bounds):
    objective = SearchObjective(problem, prior)
    if callable(optimizer):
        result = optimizer(obj_func=objective, initial_theta=start, bounds=bounds)
        try:
            theta, value = result
            theta, value = np.asarray(theta, dtype=np.float64), float(value)
        except (TypeError, ValueError):
            theta, value = np.zeros(0), np.nan
        if theta.shape != start.shape or not np.all(np.isfinite([*theta, value])):
            raise ValueError(
                f"optimizer must return (theta_opt, func_min), finite and theta of shape "
                f"{start.shape}; got {result!r}."
            )
        return _Found(theta, value, objective.state, "")
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _MAX_SEARCH, "ftol": 1e-6, "gtol": 1e-3},
    )
    complaint = ""
    if found.nit >= _MAX_SEARCH:
        complaint = (
            f"The search for hyperparameters stopped after {_MAX_SEARCH} iterations. Scale the "
            "features (for instance Itemwise(StandardScaler())), narrow the bounds of the kernel, "
            "or pass an optimizer of your own."
        )
    return _Found(found.x, float(found.fun), objective.state, complaint)
