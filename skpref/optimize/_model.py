"""The model behind the questions: hyperparameters, sites and hallucinations for told duels.

All functions are pure: what they need to be quick on the next call (`Memory`) is passed in and
handed back, so that a run can be written down and taken up again exactly.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern

from skpref._conditioning import condition
from skpref._evidence import EvidenceProblem, SearchObjective
from skpref._warnings import warn
from skpref.duels import Duels
from skpref.inference import EP
from skpref.inference._skew import NoisyMargins
from skpref.kernels import lengthscale_indices
from skpref.samplers import gibbs, hmc

# Log-normal priors: median and standard deviation of the logarithm.
LENGTHSCALE_PRIOR = (0.5, 0.75)
# Of σ², broad. Less of it believes a judge who errs (10 % of the answers turned round, 100 duels,
# Hartmann-3, 12 seeds: upper quartile of the regret 1.1 with a median of 0.001, 0.14 with this
# one), more of it doubts one who does not (Hartmann-6, 60 duels: median regret 0.02 with a median
# of 0.01, 0.01 with these two).
NOISE_PRIOR = (3e-3, 2.0)
LENGTHSCALE_BOUNDS = (0.02, 20.0)
NOISE_BOUNDS = (1e-5, 1.0)
# Trajectories of a chain that starts afresh, and of one that goes on.
_BURN_IN = 12
_BETWEEN = 4
_MAX_WALLS = 5000
# Of Gibbs where trajectories are rejected.
_SWEEPS = 50
_REFIT = {"maxiter": 12, "ftol": 1e-6, "gtol": 1e-2}


class HyperPrior(NamedTuple):
    """Independent normals on some of the hyperparameters ``np.r_[kernel.theta, log σ²]``."""

    index: np.ndarray
    centre: np.ndarray
    deviation: np.ndarray

    def log_density(self, theta):
        """Unnormalised log density and its gradient."""
        offset = (theta[self.index] - self.centre) / self.deviation
        gradient = np.zeros(len(theta))
        gradient[self.index] = -offset / self.deviation
        return -0.5 * float(offset @ offset), gradient


@dataclass(frozen=True)
class ModelSpec:
    """What is fixed during a run.

    Attributes
    ----------
    kernel : Kernel
    noise_variance : float
        The value, or where learning starts.
    noise_bounds : tuple or None
        None: the noise is fixed.
    prior : HyperPrior
    engine : engine
        `Laplace`, `EP`, `Gibbs` or `HMC`.
    """

    kernel: object
    noise_variance: float
    noise_bounds: tuple | None
    prior: object
    engine: object

    @property
    def theta(self):
        """Where the hyperparameters start."""
        return self.problem(None).theta

    def problem(self, duels):
        """The evidence of these duels."""
        return EvidenceProblem(
            duels,
            self.kernel,
            self.noise_variance,
            self.noise_bounds,
            self.engine.evidence_engine(),
        )


@dataclass(frozen=True)
class Memory:
    """What one question hands to the next.

    Attributes
    ----------
    theta : ndarray
        Hyperparameters ``np.r_[kernel.theta, log σ²]``.
    fitted_at : int
        Number of duels at the last fit of ``theta``.
    sites : tuple of ndarray
        State of the engine; empty before the first run.
    margins : ndarray of shape (n_told,) or (0,)
        The last hallucination, in the order of the told duels.
    """

    theta: np.ndarray
    fitted_at: int = 0
    sites: tuple = ()
    margins: np.ndarray = field(default_factory=lambda: np.zeros(0))


class Fit(NamedTuple):
    """The told duels at given hyperparameters."""

    duels: Duels
    kind: np.ndarray
    kernel: object
    noise_variance: float
    problem: object
    approximation: object


def default_kernel(n_columns):
    """Matérn-3/2 of unit amplitude, one lengthscale a column of the unit cube."""
    return Matern(np.full(n_columns, LENGTHSCALE_PRIOR[0]), LENGTHSCALE_BOUNDS, nu=1.5)


def default_prior(kernel, lengthscale_prior, noise_learned):
    """Priors on the logarithms of the lengthscales of a kernel and of the noise variance."""
    index, centre, deviation = [], [], []
    if lengthscale_prior is not None:
        for position, _ in lengthscale_indices(kernel):
            index.append(position)
            centre.append(np.log(lengthscale_prior[0]))
            deviation.append(lengthscale_prior[1])
    if noise_learned:
        index.append(len(kernel.theta))
        centre.append(np.log(NOISE_PRIOR[0]))
        deviation.append(NOISE_PRIOR[1])
    return HyperPrior(np.array(index, dtype=np.intp), np.array(centre), np.array(deviation))


def tally(rows, winner, loser):
    """Duels in the order in which they were first told.

    Parameters
    ----------
    rows : ndarray of shape (n_items, d)
        Distinct items.
    winner, loser : ndarray of shape (n_told,)

    Returns
    -------
    duels : Duels
        Its items are those of ``rows`` that take part in a duel.
    kind : ndarray of shape (n_told,)
        Kind of every told duel.
    """
    used, compact = _first_seen(np.stack([winner, loser], axis=1).reshape(-1))
    ends = compact.reshape(-1, 2)
    code, kind = _first_seen(ends[:, 0] * len(used) + ends[:, 1])
    counts = np.bincount(kind).astype(np.float64)
    return Duels(rows[used], *np.divmod(code, len(used)), counts), kind


def _first_seen(values):
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse]


def fit(spec, memory, rows, winner, loser, relearn):
    """Run the engine on the told duels, after learning the hyperparameters if asked to.

    Returns
    -------
    Fit, Memory
    """
    duels, kind = tally(rows, winner, loser)
    problem = spec.problem(duels).at(memory.theta)
    keeps = isinstance(problem.engine, EP)  # its sites grow with the duels
    start = _padded(memory.sites, len(duels.counts)) if keeps else None
    theta, fitted_at = memory.theta, memory.fitted_at
    if relearn and len(theta):
        theta, start = _learn(problem, spec.prior, start)
        problem, fitted_at = problem.at(theta), len(winner)
    evaluation = problem.evaluate(start)
    found = evaluation.approximation
    if not found.converged:
        warn(
            f"The engine stopped after {found.n_iter} iterations at a residual of "
            f"{found.residual:.1e}; the questions go on from there. A larger noise_variance helps "
            "if answers contradict each other.",
            ConvergenceWarning,
        )
    made = Fit(duels, kind, problem.kernel, problem.noise_variance, evaluation.problem, found)
    return made, Memory(theta, fitted_at, found.state if keeps else (), memory.margins)


def _padded(state, n):
    """Sites of duels told since then start at nothing."""
    if not state:
        return None
    return tuple(np.concatenate([part, np.zeros(n - len(part))]) for part in state)


def _learn(problem, prior, start):
    """Hyperparameters of the largest posterior density near the present ones."""
    objective = SearchObjective(problem, prior)
    objective.state = start
    bounds = problem.bounds
    found = minimize(
        objective,
        np.clip(problem.theta, bounds[:, 0], bounds[:, 1]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=_REFIT,
    )
    return found.x, objective.state


def posterior_of(spec, fit, rng):
    """The engine's posterior; sampled engines draw from ``rng``."""
    found = spec.engine.refine(fit.problem, fit.approximation, rng)
    return condition(fit.kernel, fit.duels.items, fit.problem.space, found, fit.noise_variance)


def gaussian_posterior(fit):
    """The posterior of the evidence engine: one component."""
    space = fit.problem.space
    return condition(fit.kernel, fit.duels.items, space, fit.approximation, fit.noise_variance)


def hallucinate(fit, margins, rng):
    """An ordinary GP: f given one draw of the noisy margins (Takeno et al. 2023, Alg. 1).

    Parameters
    ----------
    fit : Fit
    margins : ndarray of shape (k,), k <= n_told
        The last draw, of the duels told by then; empty starts afresh.
    rng : numpy.random.Generator

    Returns
    -------
    posterior : Posterior
    margins : ndarray of shape (n_told,)
    """
    noisy = NoisyMargins(fit.problem)
    order = np.argsort(fit.kind, kind="stable")  # repeated duels follow each other there
    start = noisy.typical(fit.approximation.conditioned.mean)
    known = order < len(margins)
    start[known] = margins[order[known]]
    steps = _BETWEEN if len(margins) else _BURN_IN
    covariance = noisy.covariance()
    chain = hmc(covariance, start, steps, rng=rng, max_walls=_MAX_WALLS)
    if chain.rejected_share > 0.5:  # contradictions at tiny noise: a wedge with too many walls
        chain = gibbs(covariance, start, _SWEEPS, rng=rng)
    draw = chain.state[0]
    sites = noisy.sites(draw[None], fit.approximation.sites.log_evidence)
    conditioned = fit.problem.space.condition(sites.precision, sites.shift)
    given = fit.approximation._replace(sites=sites, conditioned=conditioned)
    told = np.empty(len(draw))
    told[order] = draw
    return condition(
        fit.kernel, fit.duels.items, fit.problem.space, given, fit.noise_variance
    ), told
