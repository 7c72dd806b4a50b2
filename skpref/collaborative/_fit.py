"""Inference of the population's utility and of tastes, to convergence."""

from collections.abc import Callable
from dataclasses import dataclass

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
    axes : ndarray of shape (m, d) or None
        The functions, as `Found` has them; None: those along which the margins vary most.
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
    axes: Array | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """q where nothing moves any more.

    Attributes
    ----------
    axes : ndarray of shape (m, d)
        Functions as combinations of the whitened features of the inducing points.
    common : Common
        The population's utility among it.
    tastes : Tastes
    log_evidence : float
    n_iter : int
    residual : float
        Root mean square change of the margins in the last pass, in their deviations.
    """

    axes: Array
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
    axes, margins = _functions(task)
    d, m = axes.shape[1], margins.features.shape[1]
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
    return Found(axes, at.common, everybody(crew, at), found.log_evidence, n, stride.residual)


def _functions(task: Task) -> tuple[Array, Margins]:
    """The functions, by default those that matter most to the margins that were asked about."""
    features = task.space.margin_features
    m = features.shape[1]
    total = task.own + (0.0 if task.features is None else task.shared)
    if total == 0.0:
        axes = np.zeros((m, 0))
    elif task.axes is not None:
        axes = task.axes
    elif task.n_latent < m:
        often = task.by_user.pool(np.ones(len(task.by_user.user)))
        axes = leading_axes(features.T @ (often[:, None] * features), task.n_latent)
    else:
        axes = np.eye(m)
    heights = features @ axes
    left = np.maximum(task.space.prior_variance - np.einsum("pd,pd->p", heights, heights), 0.0)
    rest = total * left
    if not task.population:
        return axes, Margins(heights, features[:, :0], rest)
    return axes, Margins(heights, features, rest + task.space.rest)


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
