"""Inference of the population's utility and of tastes, to convergence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skpref._inducing import InducedSpace
from skpref._linalg import Array, leading_axes
from skpref.collaborative._away import crew_of
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._joint import Common
from skpref.collaborative._passes import Joint, everybody, look, posterior
from skpref.collaborative._people import Basis, Covariances, Features
from skpref.collaborative._stride import Stride
from skpref.collaborative._tastes import Tastes
from skpref.collaborative._teams import Margins, Sites, in_teams
from skpref.inference._base import Pass
from skpref.likelihoods import Likelihood

# Passes before the covariances of tastes are learned: tastes mean nothing before.
_WAIT = 5
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
    functions : Functions or None
        None: those along which the margins vary most, what they leave as beforehand.
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
    functions: "Functions | None" = None

    @property
    def total(self) -> float:
        """Variance of what sets a user apart."""
        return self.own + (0.0 if self.features is None else self.shared)

    def scatter(self) -> Array:
        """Sum of the outer products of the features of all margins that were asked about."""
        features, by_user = self.space.margin_features, self.by_user
        often = by_user.pool(np.ones(len(by_user.user)))
        return features.T @ (often[:, None] * features)


class Functions(NamedTuple):
    """Which functions tastes weigh.

    Attributes
    ----------
    axes : ndarray of shape (m, d)
        The functions as combinations of the whitened features of the inducing points, orthonormal.
    spare : ndarray of shape (m, k)
        Root of the covariance of tastes for all other combinations, which count as noise.
    """

    axes: Array
    spare: Array


@dataclass(frozen=True, eq=False)
class Found:
    """q where nothing moves any more.

    Attributes
    ----------
    functions : Functions
    common : Common
        The population's utility among it.
    tastes : Tastes
    log_evidence : float
    n_iter : int
    residual : float
        Root mean square change of the margins in the last pass, in their deviations.
    """

    functions: Functions
    common: Common
    tastes: Tastes
    log_evidence: float
    n_iter: int
    residual: float


def fit(
    task: Task,
    max_iter: int,
    tol: float,
    n_jobs: int | None = None,
    watch: Callable[[Pass], bool] | None = None,
) -> Found:
    """Iterate over q and the answers' factors.

    Parameters
    ----------
    task : Task
    max_iter : int
    tol : float
        Residual that ends it.
    n_jobs : int or None
        Of joblib, over teams of users.
    watch : callable, optional
        Told of every pass; where it returns True the fit ends there.
    """
    by_user = task.by_user
    functions = functions_of(task)
    margins = _margins(task, functions)
    d, m = functions.axes.shape[1], margins.features.shape[1]
    teams = in_teams(by_user, task.likelihood, task.features, d + m + 1)
    crew = crew_of(margins, teams, n_jobs)
    centre = Covariances(
        task.own * np.eye(d), None if task.features is None else task.shared * np.eye(d)
    )
    prior = centre
    sites = Sites(*np.zeros((4, len(by_user.user))))
    stride = Stride()
    for n in range(1, max_iter + 1):
        basis = Basis.of(prior, task.features, by_user.n_users)
        at = posterior(crew, sites, basis)
        found = look(by_user, crew, at)
        stride = stride.next(sites, found.wanted) if n > 1 else stride
        if watch is not None and watch(Pass(n, found.log_evidence, stride.residual)):
            break
        if n > _WAIT and stride.residual < tol:
            break
        sites = stride.along(sites, found.wanted)
        if n > _WAIT and task.prior_users is not None:
            prior = _next(found.own, at, centre, task)
    return Found(functions, at.common, everybody(crew, at), found.log_evidence, n, stride.residual)


def functions_of(task: Task) -> Functions:
    """The functions of a task, by default those that matter most to the margins asked about."""
    if task.functions is not None:
        return task.functions
    m = task.space.margin_features.shape[1]
    if task.total == 0.0:
        return Functions(np.zeros((m, 0)), np.zeros((m, 0)))
    if task.n_latent >= m:
        return Functions(np.eye(m), np.zeros((m, 0)))
    axes = leading_axes(task.scatter(), task.n_latent)
    return Functions(axes, np.sqrt(task.total) * (np.eye(m) - axes @ axes.T))


def _margins(task, functions):
    """The distinct margins in terms of the functions."""
    features, spared = task.space.margin_features, task.space.margin_features @ functions.spare
    rest = task.total * task.space.rest + np.einsum("pk,pk->p", spared, spared)
    heights = features @ functions.axes
    if not task.population:
        return Margins(heights, features[:, :0], rest)
    return Margins(heights, features, rest + task.space.rest)


def _next(own: Array, at: Joint, centre: Covariances, task: Task) -> Covariances:
    """The mode of the covariances under an inverse Wishart prior, given the second moments."""
    n, before, turn = task.by_user.n_users, float(task.prior_users or 0.0), at.basis.turn
    own = (before * centre.own + n * (turn @ own @ turn.T)) / (before + n)
    own.flat[:: len(own) + 1] += _LEAST * task.own  # stays positive definite
    if task.features is None:
        return Covariances(own)
    r = task.features.psi.shape[1]
    second = turn @ at.common.second @ turn.T
    shared = (before * centre.of_features + r * second) / (before + r)
    return Covariances(own, shared)
