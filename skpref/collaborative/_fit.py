"""Inference of the population's utility and of tastes, to convergence."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel

from skpref._inducing import InducedSpace
from skpref._linalg import Array, leading_axes
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._passes import (
    Population,
    Shared,
    Sites,
    learn_population,
    look,
    told_by,
)
from skpref.collaborative._people import Covariances, Features, People, nobody, people_given
from skpref.inference._base import Pass
from skpref.likelihoods import Likelihood

# Passes before the covariances of tastes are learned: tastes mean nothing before.
_WAIT = 5
# Share of the way to new factors.
_STEP = 0.5
# Share of the prior variance of tastes that is always left.
_LEAST = 1e-6
# Users that the prior covariance of tastes weighs as much as.
PRIOR_USERS = 20.0


@dataclass(frozen=True, eq=False)
class Task:
    """Answers and a prior.

    Attributes
    ----------
    space : InducedSpace
        Prior of the population's utility.
    by_user : ByUser
    likelihood : Likelihood
    n_latent : int
        Functions that tastes weigh, at most.
    own, shared : float
        Variances of a user's own utility and of the part that features of users tell, in units of
        the population's.
    features : Features or None
        Of the users; None: no shared part.
    population : bool
        Whether there is a utility of the population.
    prior_users : float or None
        Users that the prior covariance of tastes weighs as much as, where covariances are learned;
        None: they are not.
    """

    space: InducedSpace
    by_user: ByUser
    likelihood: Likelihood
    n_latent: int
    own: float
    shared: float
    features: Features | None
    population: bool
    prior_users: float | None


@dataclass(frozen=True, eq=False)
class Found:
    """q where nothing moves any more.

    Attributes
    ----------
    axes : ndarray of shape (m, d)
        Functions as combinations of the whitened features of the inducing points.
    population : Population
    people : People
    prior : Covariances
    log_evidence : float
    n_iter : int
    residual : float
        Root mean square change of the margins in the last pass, in their deviations.
    """

    axes: Array
    population: Population
    people: People
    prior: Covariances
    log_evidence: float
    n_iter: int
    residual: float


def fit(
    task: Task,
    max_iter: int,
    tol: float,
    parallel: Parallel,
    watch: Callable[[Pass], bool] | None = None,
) -> Found:
    """Iterate over the population's utility, tastes and answers.

    Parameters
    ----------
    task : Task
    max_iter : int
    tol : float
        Residual that ends it.
    parallel : joblib.Parallel
        Over users.
    watch : callable, optional
        Told of every pass; where it returns True the fit ends there.
    """
    by_user = task.by_user
    axes, shared = _functions(task)
    d = axes.shape[1]
    blocks = by_user.blocks(d + 1)
    centre = Covariances(
        task.own * np.eye(d), None if task.features is None else task.shared * np.eye(d)
    )
    prior, people = centre, nobody(by_user.n_users, d)
    none = np.zeros(len(by_user.user))
    sites = Sites(none, none, 0.0, none, none)
    flat = np.zeros(by_user.n_margins)
    population = Population(flat, flat, None)
    residual, n = np.inf, 0
    while n < max_iter and residual >= tol:
        n += 1
        if task.population:
            population = learn_population(task.space, by_user, shared, sites, people)
        if n > 1 and d:
            told = told_by(by_user, blocks, sites, population, shared, parallel)
            people = people_given(told, prior, task.features)
        elif d:
            cov = np.broadcast_to(task.own * np.eye(d), people.cov.shape)
            people = people._replace(cov=cov)
        before = sites
        sites = look(
            by_user,
            blocks,
            task.likelihood,
            population,
            shared,
            people,
            sites,
            parallel,
            _STEP,
        )
        residual = _moved(before, sites) if n > _WAIT else np.inf
        if task.prior_users is not None and n >= _WAIT and residual >= tol:
            prior = _next(prior, people, centre, task)
        log_evidence = sites.value - population.divergence - people.divergence
        if watch is not None and watch(Pass(n, log_evidence, residual)):
            break
    return Found(axes, population, people, prior, log_evidence, n, residual)


def _functions(task: Task) -> tuple[Array, Shared]:
    """The functions that matter most to the margins that were asked about."""
    features = task.space.margin_features
    m = features.shape[1]
    total = task.own + (0.0 if task.features is None else task.shared)
    if total == 0.0:
        axes = np.zeros((m, 0))
    elif task.n_latent < m:
        often = task.by_user.table(np.ones(len(task.by_user.user))).sum(axis=1)
        axes = leading_axes(features.T @ (often[:, None] * features), task.n_latent)
    else:
        axes = np.eye(m)
    heights = features @ axes
    left = np.maximum(task.space.prior_variance - np.einsum("pd,pd->p", heights, heights), 0.0)
    rest = total * left + (task.space.rest if task.population else 0.0)
    return axes, Shared(heights, rest)


def _next(prior: Covariances, people: People, centre: Covariances, task: Task) -> Covariances:
    """The mode of the covariances under an inverse Wishart prior, given the second moments."""
    n, before = task.by_user.n_users, float(task.prior_users or 0.0)
    own = (before * centre.own + n * people.told.own) / (before + n)
    own.flat[:: len(own) + 1] += _LEAST * task.own  # stays positive definite
    if task.features is None:
        return Covariances(own)
    r = task.features.psi.shape[1]
    shared = (before * centre.of_features + r * people.told.of_features) / (before + r)
    return Covariances(own, shared)


def _moved(before: Sites, now: Sites) -> float:
    change = (now.mean - before.mean) ** 2 / np.maximum(now.variance, before.variance)
    # Where cavities stand still from the start, factors are still on their way.
    lag = (now.shift - before.shift) ** 2 / np.maximum(now.precision, np.finfo(float).tiny)
    return float(np.sqrt(np.mean(np.maximum(change, lag))))
