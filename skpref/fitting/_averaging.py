"""Averages over hyperparameters: a few points around the best, weighed by their evidence.

Few answers are compatible with many hyperparameters. Those of the highest evidence are then often
extreme, such as no noise or no effect of a control, and a posterior at these alone is too narrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skpref._utils import (
    TOLERANCE,
    Array,
    blas_threads,
    cholesky,
    covariance_of,
    eigen_root,
    solve_lower,
)
from skpref.data import Comparisons
from skpref.fitting._forecast import seconds_of_ep_run
from skpref.fitting._hyperpriors import PART_MEDIAN, HalfCauchy, LogNormal, LogStudent
from skpref.fitting._model import Evaluation, Model
from skpref.fitting._search import (
    Search,
    amplitude_indices,
    learn,
    term_variances,
)
from skpref.gp import Posterior, utility_posterior
from skpref.inference import State

# Steps of the differences of gradients, in nats or deviations of the noise.
STEP = 0.1
# The points are spread so many times as wide as Laplace's normal, of this deviation at most.
WIDER, WIDEST = 1.15, 2.0
# What no answer tells, the unit of all utilities, is held to this deviation of its logarithm.
_HELD = 0.05
# Points: so many, and as many more a hyperparameter, up to the last. Of chains through time, each
# run of which takes long whatever it is of, half of these.
_POINTS, _MOST = 8, 64
# It is taken unasked where it is forecast to take no more seconds, of no more distinct answers.
_PATIENCE, _MANY = 10.0, 5_000


class Weighted(NamedTuple):
    """Hyperparameters, how probable they are beside others, and the posterior at them.

    Attributes
    ----------
    weight : float
        All sum to one.
    model : Model
    posterior : Posterior
        Its reader and, with judges, its likelihood are the model's own.
    state : dict of str to ndarray
        Of the engine there, to start a further run from.
    """

    weight: float
    model: Model
    posterior: Posterior
    state: State


@dataclass(frozen=True)
class RatioPrior:
    """Log-normal ratios of amplitudes and thresholds to the noise, and normal order effects.

    Attributes
    ----------
    ratios : ndarray of shape (n_ratios, n_theta)
        Logarithms of ratios, as sums of elements of θ.
    centre, deviation : ndarray of shape (n_ratios,)
        Mean and standard deviation of each.
    shifts : ndarray of int of shape (n_shifts,)
        Elements of θ that are numbers, of standard deviation σ around zero.
    log_deviation : ndarray of shape (n_theta + 1,)
        log σ as a sum of elements of θ, and of the last number.
    """

    ratios: Array
    centre: Array
    deviation: Array
    shifts: NDArray[np.intp]
    log_deviation: Array

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Return the unnormalised log density and its gradient."""
        offset = (self.ratios @ theta - self.centre) / self.deviation
        value = -0.5 * float(offset @ offset)
        gradient = -self.ratios.T @ (offset / self.deviation)
        slope, rest = self.log_deviation[:-1], self.log_deviation[-1]
        for at in self.shifts:
            log_sigma = float(slope @ theta + rest)
            standardised = theta[at] * np.exp(-log_sigma)
            value -= 0.5 * float(standardised**2) + log_sigma
            gradient = gradient + (standardised**2 - 1.0) * slope
            gradient[at] -= standardised * np.exp(-log_sigma)
        return value, gradient


def ratio_prior(model: Model, comparisons: Comparisons) -> RatioPrior:
    """Make a weak prior on the ratios of a model's scales to its noise, as these answers show them.

    The ratio of a term of the kernel is the standard deviation that it gives to the margins of
    these answers, over that of their noise: no matter in which units its columns are. Its median is
    1 and the deviation of its logarithm 1, so that it lies between 1/7 and 7 with probability 0.95.
    A threshold has a median of half the deviation of an item's noise, an order effect a
    normal prior of that deviation. The terms whose amplitudes are fixed have a ratio together,
    where the noise is learned. What has a prior of its own in ``model.priors`` gets none here.

    Parameters
    ----------
    model : Model
        At the hyperparameters by which the shares of its terms in the margins are found.
    comparisons : Comparisons
    """
    theta, powers, linear = model.theta, model.powers, model.linear
    n, n_kernel = len(theta), len(model.kernel.theta)
    log_deviation, noise = np.zeros(n + 1), model.noise_index
    log_deviation[-1] = 0.5 * np.log(model.likelihood.utility_noise)
    if noise is not None:
        log_deviation[noise] = 1.0 / powers[noise]
        log_deviation[-1] -= theta[noise] / powers[noise]
    sigma, rest = log_deviation[:-1], log_deviation[-1]
    prior_indices = [
        prior.index
        for prior in model.priors
        if isinstance(prior, LogNormal | LogStudent)
        or (isinstance(prior, HalfCauchy) and prior.is_sole)
    ]
    indices_with_prior = set(np.concatenate(prior_indices).tolist()) if prior_indices else set()
    ratios: list[tuple[Array, float, float]] = []

    def add(row, constant, median, power, deviation=1.0):
        """Add the ratio e^(row θ + constant), which is a power of a ratio of this median."""
        ratios.append((row, power * np.log(median) - constant, power * deviation))

    total, parts = _variance_by_amplitude(model, comparisons)
    fixed_variance = total
    for at in np.flatnonzero(powers[:n_kernel] == 2):
        if parts[at] > 0.0:
            fixed_variance -= parts[at]
            if at not in indices_with_prior:
                row = np.eye(n)[at] - 2.0 * sigma
                add(row, np.log(0.5 * parts[at]) - theta[at] - 2.0 * rest, 1.0, 2.0)
    if noise is not None and noise not in indices_with_prior:
        if fixed_variance > TOLERANCE * total:
            add(-2.0 * sigma, np.log(0.5 * fixed_variance) - 2.0 * rest, 1.0, 2.0)
        else:  # every amplitude is learned, so that their unit is any
            add(np.eye(n)[noise], -theta[noise], 1.0, 1.0, _HELD)
    scales = (powers != 0) & (np.arange(n) >= n_kernel)
    scales[[at for at in indices_with_prior if at >= n_kernel]] = False
    if noise is not None:
        scales[noise] = False
    for at in np.flatnonzero(scales & ~linear):
        add(np.eye(n)[at] - powers[at] * sigma, -powers[at] * rest, PART_MEDIAN, powers[at])
    rows, centres, deviations = zip(*ratios, strict=True) if ratios else ((), (), ())
    return RatioPrior(
        np.array(rows).reshape(-1, n),
        np.array(centres),
        np.array(deviations),
        np.flatnonzero(scales & linear),
        log_deviation,
    )


def _variance_by_amplitude(model: Model, comparisons: Comparisons) -> tuple[float, Array]:
    """Return the mean prior variance of the margins, and what each amplitude adds to it."""
    theta = model.theta
    comparisons = replace(comparisons, measured=None)  # before values were measured, too

    def variance(theta):
        at = model.at(theta)
        if not len(comparisons.rows):
            return 2.0 * float(np.mean(at.kernel.diag(comparisons.items)))
        prior = at.rule.prior(at.kernel, comparisons, at.likelihood)
        shared = 0.0 if prior.noise is None else prior.noise.diagonal()
        return float(np.mean(prior.variance - shared))

    parts, amplitudes = np.zeros(len(model.kernel.theta)), amplitude_indices(model)
    parts[amplitudes] = term_variances(variance, theta, amplitudes)
    return variance(theta), parts


def is_average_affordable(model: Model, comparisons: Comparisons, n_averages: int = 1) -> bool:
    """Tell whether so many averages take few seconds, so that they are taken unasked."""
    n = len(model.theta)
    # Its mode and differences of gradients take about as many runs as its points.
    runs = n_averages * 2 * n_points(n, model.rule.through_time)
    few = len(comparisons.rows) <= _MANY
    return few and runs * seconds_of_ep_run(comparisons, model) <= _PATIENCE


def n_points(n_theta: int, through_time: bool = False) -> int:
    """Return the number of points, even, of an average over so many hyperparameters."""
    n = min(_POINTS * (n_theta + 1), _MOST)
    return n // 2 if through_time else n


def average(
    model: Model, comparisons: Comparisons, n_nodes: int | None = None
) -> Sequence[Weighted]:
    r"""Return posteriors at a few hyperparameters, weighed by how probable these are.

    With p(θ | y) the evidence times the priors of the model and `ratio_prior`, within the bounds,
    its mode θ* is found, and its curvature there by differences of exact gradients. The points are
    a fixed lattice, taken to the normal distribution around θ* that these tell [1]_, made wider by
    0.15 as a proposal. A point has the weight p(θ | y) over the density of the proposal, cut off at
    √n times the mean [2]_: nothing is random, and where the normal is right all weights are equal.

    Parameters
    ----------
    model : Model
        As fitted, with an engine that has evidence and an exact prior.
    comparisons : Comparisons
    n_nodes : int, optional
        Number of points, even. None: 8 and 8 more a hyperparameter, 64 at most; of chains
        through time half of these.

    Returns
    -------
    list of Weighted

    References
    ----------
    .. [1] Rue, Martino, Chopin, "Approximate Bayesian inference for latent Gaussian models by using
       integrated nested Laplace approximations", JRSS B 2009, section 3.1.
    .. [2] Ionides, "Truncated importance sampling", JCGS 2008.
    """
    prior = ratio_prior(model, comparisons)
    weighed = replace(model, priors=(*model.priors, prior))
    with blas_threads(model.evidence_engine.matrix_size(comparisons)):
        begin = weighed.at(_begin_within_prior(prior, model.theta, model.bounds))
        search = Search(warn_not_converged=False, gtol=1e-2, uses_design=False)
        weighed, state = learn(begin, comparisons, search)
        mode, engine = weighed.theta, weighed.evidence_engine.relax_tolerance()

        def run(theta, gradient=False):
            at = weighed.at(theta)
            evaluation = at.evaluate(comparisons, state, engine=engine, eval_gradient=gradient)
            log_prior, slope = at.log_prior(theta)
            value = evaluation.approximation.sites.log_evidence + log_prior
            total = None if evaluation.gradient is None else evaluation.gradient + slope
            return value, total, at, evaluation

        n = n_nodes or n_points(len(mode), model.rule.through_time)
        normal = lattice(n, len(mode))
        low, high = model.bounds.T
        spread = WIDER * _covariance_root(weighed, lambda theta: run(theta, True)[1])
        points, log_proposal = mode + normal @ spread.T, -0.5 * np.sum(normal**2, axis=1)
        points = np.where(low < high, points, mode)
        inside = np.all((points >= low) & (points <= high), axis=1)
        logs, fits = [], []
        for theta, less in zip(points[inside], log_proposal[inside], strict=True):
            try:
                value, _, at, evaluation = run(theta)
            except ValueError:  # where the model cannot be evaluated
                continue
            logs.append(value - less)
            fits.append((at, _posterior_at(at, evaluation), evaluation.approximation.state))
        if not fits:  # all lie beyond the bounds, or where the model cannot be evaluated
            _, _, at, evaluation = run(mode)
            logs, fits = (
                [0.0],
                [(at, _posterior_at(at, evaluation), evaluation.approximation.state)],
            )
    weights = _truncate_weights(np.array(logs))
    return [
        Weighted(float(weight), replace(at, priors=model.priors), posterior, state)
        for weight, (at, posterior, state) in zip(weights, fits, strict=True)
    ]


def hyperparameter_spread(
    model: Model, comparisons: Comparisons, state: State | None = None
) -> Array:
    """Return a root of the hyperparameters' covariance, by Laplace's approximation around a fit.

    The second derivatives of the log posterior are differences of its exact gradients.

    Parameters
    ----------
    model : Model
        As fitted, with an engine that has evidence.
    comparisons : Comparisons
    state : dict, optional
        Of the engine, to start from.

    Returns
    -------
    ndarray of shape (n_theta, n_theta)
        F, where F Fᵀ is the covariance.
    """
    engine = model.evidence_engine.relax_tolerance()
    with blas_threads(engine.matrix_size(comparisons)):

        def gradient(theta: Array) -> Array:
            at = model.at(theta)
            evaluation = at.evaluate(comparisons, state, engine=engine, eval_gradient=True)
            return np.asarray(evaluation.gradient) + at.log_prior(theta)[1]

        return _covariance_root(model, gradient)


def _covariance_root(model, gradient):
    """Return a root of the covariance of the normal whose curvature is that of a log posterior."""
    low, high = model.bounds.T
    # What elements of θ are measured in: nats, or the deviation of an item's noise.
    unit = np.where(model.linear, np.sqrt(model.likelihood.utility_noise), 1.0)
    # Bounds tell as much as a uniform distribution between them.
    precision = 12.0 / np.maximum(high - low, 1e-6) ** 2
    curvature = _log_posterior_curvature(model.theta, model.bounds, gradient, unit) + np.diag(
        precision * unit**2
    )
    root = eigen_root(covariance_of(curvature, WIDEST**-2))
    # Of either sign of an axis the one whose largest part is positive: rounding is not to say.
    root = root * np.sign(root[np.argmax(np.abs(root), axis=0), np.arange(root.shape[1])])
    return unit[:, None] * root


def _begin_within_prior(prior, theta, bounds):
    """Return where the search begins: the θ of a fit, within two prior deviations of each ratio."""
    offset = (prior.ratios @ theta - prior.centre) / prior.deviation
    excess = (offset - np.clip(offset, -2.0, 2.0)) * prior.deviation
    moved = theta - np.linalg.lstsq(prior.ratios, excess, rcond=1e-9)[0]
    return np.clip(moved, *bounds.T)


def _log_posterior_curvature(mode, bounds, gradient, unit):
    """Return minus the second derivatives of the log posterior in these units.

    They are differences of gradients, at points within the bounds.
    """
    n = len(mode)
    curvature = np.zeros((n, n))
    for k, (low, high) in enumerate(bounds):
        ends = np.repeat(mode[None], 2, axis=0)
        ends[:, k] = np.clip(mode[k] + unit[k] * np.array([-STEP, STEP]), low, high)
        below, above = (gradient(each) for each in ends)
        if ends[1, k] > ends[0, k]:
            curvature[k] = unit[k] * unit * (below - above) / (ends[1, k] - ends[0, k])
    return 0.5 * (curvature + curvature.T)


def lattice(n_points: int, n: int) -> Array:
    """Return points evenly spread by the standard normal of n dimensions, (n_points, n).

    Of one dimension quantiles; of more a lattice of generalised golden ratios, and its mirror
    image, so that odd moments are zero. Their covariance is the identity.
    """
    if n == 1:
        points = ndtri((np.arange(n_points) + 0.5) / n_points)[:, None]
    else:
        ratio = 1.0
        for _ in range(64):  # the root of x^(n + 1) = x + 1
            ratio = (1.0 + ratio) ** (1.0 / (n + 1))
        steps = ratio ** -np.arange(1.0, n + 1.0)
        half = ndtri((0.5 + np.arange(1, n_points // 2 + 1)[:, None] * steps) % 1.0)
        points = np.concatenate([half, -half])
    return solve_lower(cholesky(points.T @ points / n_points), points.T).T


def _truncate_weights(logs):
    """Return weights that sum to one from logarithms, each at most √n times their mean."""
    weights = np.exp(logs - logs.max())
    weights = np.minimum(weights, weights.mean() * np.sqrt(len(weights)))
    return weights / weights.sum()


def _posterior_at(model: Model, evaluation: Evaluation) -> Posterior:
    """Return the posterior of the utility at a model's hyperparameters, of an engine's run
    there."""
    problem, approximation = evaluation.problem, evaluation.approximation
    marginals, sites = approximation.conditioned, approximation.sites
    return utility_posterior(problem.prior, sites, marginals, model.likelihood, problem.comparisons)
