"""Inference of the population's utility and of tastes, to convergence."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skpref._utils import NEGLIGIBLE, Array, leading_axes, semidefinite_root
from skpref.collaborative._tastes import (
    AverageUser,
    Basis,
    Common,
    Covariances,
    Features,
    MarginTable,
    Tastes,
    common_posterior,
    marginal_tastes,
)
from skpref.collaborative._teams import AnswerSites, ByUser, Crew, divide_into_teams
from skpref.fitting import ENOUGH
from skpref.gp import Inducing
from skpref.inference import Pass
from skpref.likelihoods import Likelihood


class SharedPosterior(NamedTuple):
    """q given the factors.

    Attributes
    ----------
    sites : AnswerSites
        The factors.
    basis : Basis
    common : Common
        What users have in common.
    """

    sites: AnswerSites
    basis: Basis
    common: Common


class PassResult(NamedTuple):
    """Result of a pass over the answers.

    Attributes
    ----------
    target : AnswerSites
        Factors that the answers ask for.
    log_evidence : float
        Of the answers, at the factors of `SharedPosterior`.
    own : ndarray of shape (d, d)
        Second moments of the parts of tastes of users' own, averaged.
    """

    target: AnswerSites
    log_evidence: float
    own: Array


def posterior(crew: Crew, sites: AnswerSites, basis: Basis) -> SharedPosterior:
    """Return q given the answers' factors, exact."""
    return SharedPosterior(sites, basis, common_posterior(crew.condition(sites, basis), basis))


def posterior_tastes(crew: Crew, at: SharedPosterior, average_user: AverageUser) -> Tastes:
    """Return the tastes of all users under q, and of a user whose features are not known."""
    turn, common = at.basis.turn, at.common
    psi = np.concatenate([team.features.psi for team in crew.teams])
    n, (d, r), m = len(psi), common.by_feature.shape, len(common.mean)
    mean, slope, cov = np.empty((n, d)), np.empty((n, d, m)), np.empty((n, d, d))
    pull = np.empty((n, d, d)) if r else None
    wide = common.by_feature_cov
    for team, team_tastes in zip(crew.teams, crew.collect_tastes(at.sites, at.basis), strict=True):
        for (users, _), local in zip(team.batches, team_tastes, strict=True):
            q = marginal_tastes(local, common, team.features.psi[users], wide)
            users = users + team.users.start
            mean[users], slope[users] = q.mean @ turn.T, np.matmul(turn, q.slope)
            cov[users] = np.matmul(np.matmul(turn, q.cov), turn.T)
            if pull is not None:
                pull[users] = np.matmul(turn, local.pull)
    by_feature_moments = common.by_feature, common.by_feature_root, common.by_feature_slope
    return Tastes(
        mean, cov, slope, pull, psi, at.basis.prior, turn, *by_feature_moments, average_user
    )


def evaluate_pass(by_user: ByUser, crew: Crew, at: SharedPosterior) -> PassResult:
    """Return the updated factors of the answers at q, and the log evidence."""
    sites = AnswerSites(*np.empty((4, len(by_user.user))))
    value = -0.5 * (at.common.quadratic + at.common.log_det)
    own = np.zeros((len(at.basis.level),) * 2)
    for team, team_result in zip(
        crew.teams, crew.update_sites(at.sites, at.basis, at.common), strict=True
    ):
        for whole, some in zip(sites, team_result.target, strict=True):
            whole[team.rows] = some
        value += team_result.value
        own += team_result.own
    return PassResult(sites, value, own / by_user.n_users)


# Passes that go the same way (the cosine of the angle between them) lengthen the stride, those that
# go as much back shorten it.
_SAME = 0.2
_LONGER, _SHORTER = 1.2, 0.7
_LEAST_STRIDE = 0.02
# Share of the residual that margins must have moved by.
_LEAST_MOVE = 1e-4
# Larger than any real move; its square is finite.
_FAR = 1e100


class Stride(NamedTuple):
    """Damping: the share of the step to the updated factors.

    Where many users agree, their factors move together and overshoot together; the passes then go
    to and fro, and half the way is too far. Where they do not, the whole way is the shortest.

    Attributes
    ----------
    length : float
    move : ndarray of shape (n,) or None
        How far the margins went in the last pass, in their deviations.
    residual : float
        Root mean square of that, had the pass gone the whole way.
    """

    length: float = 0.5
    move: Array | None = None
    residual: float = np.inf

    def next(self, previous: AnswerSites, target: AnswerSites) -> "Stride":
        """Return the stride of the next pass, longer or shorter by where this one went.

        Parameters
        ----------
        previous : AnswerSites
        target : AnswerSites
            Factors that the answers ask for at q given those before.
        """
        tiny = np.finfo(np.float64).tiny  # margins of equal items have no variance
        spread = np.sqrt(np.maximum(np.maximum(target.variance, previous.variance), tiny))
        move = (target.mean - previous.mean) / spread
        # Sites may be far from the fixed point where cavities are at it from the start.
        width = np.minimum(spread, 1.0 / np.sqrt(np.maximum(target.precision, tiny)))
        lag = (target.shift - previous.shift) * width
        off = np.minimum(np.maximum(np.abs(move) / self.length, np.abs(lag)), _FAR)
        residual = float(np.sqrt(np.mean(off**2)))
        length = self.length
        # Where hardly anything but factors moves, ways are rounding.
        if self.move is not None and np.mean(move**2) > (_LEAST_MOVE * residual) ** 2:
            along = float(move @ self.move)
            most = float(np.linalg.norm(move) * np.linalg.norm(self.move))
            if along > _SAME * most:
                length = min(_LONGER * length, 1.0)
            elif along < -_SAME * most:
                length = max(_SHORTER * length, _LEAST_STRIDE)
        return Stride(length, move, residual)

    def along(self, previous: AnswerSites, target: AnswerSites) -> AnswerSites:
        """Return the factors after a step of this length to the target."""
        ways = zip(previous[:2], target[:2], strict=True)
        precision, shift = (old + self.length * (new - old) for old, new in ways)
        return AnswerSites(precision, shift, target.mean, target.variance)


# Passes before the covariances of tastes are learned, or a fit may end: tastes mean nothing before.
WAIT = 5
# Users that the prior covariance of tastes weighs as much as.
PRIOR_USERS = 20.0


@dataclass(frozen=True, eq=False)
class Task:
    """Answers and a prior.

    Attributes
    ----------
    space : Inducing
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

    space: Inducing
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
        """Prior variance of a taste."""
        return self.own + (0.0 if self.features is None else self.shared)

    @property
    def average_user(self) -> AverageUser:
        """Features of a user of whom none are known, as of any user whose answers count."""
        by_user = self.by_user
        if self.features is None:
            return Features.empty(by_user.n_users).average_user
        counts = np.bincount(by_user.user, by_user.weight, by_user.n_users)
        return self.features.take(np.flatnonzero(counts > 0.0)).average_user

    def scatter(self) -> Array:
        """Return the sum of outer products of the features of all margins with answers."""
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
class TasteFit:
    """q at the fixed point.

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
) -> TasteFit:
    """Iterate over q and the answers' factors until the margins rest; return q.

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
    crew = Crew(margins, divide_into_teams(by_user, task.likelihood, task.features, d, m), n_jobs)
    centre = Covariances(
        task.own * np.eye(d), None if task.features is None else task.shared * np.eye(d)
    )
    prior = centre
    sites = AnswerSites(*np.zeros((4, len(by_user.user))))
    stride = Stride()
    for n in range(1, max_iter + 1):
        basis = Basis.from_covariances(prior)
        at = posterior(crew, sites, basis)
        pass_result = evaluate_pass(by_user, crew, at)
        stride = stride.next(sites, pass_result.target) if n > 1 else stride
        if watch is not None and watch(Pass(n, pass_result.log_evidence, stride.residual)):
            break
        if n > WAIT and stride.residual < tol:
            break
        sites = stride.along(sites, pass_result.target)
        if n > WAIT and task.prior_users is not None:
            prior = _update_covariances(pass_result.own, at, centre, task)
    tastes = posterior_tastes(crew, at, task.average_user)
    return TasteFit(functions, at.common, tastes, pass_result.log_evidence, n, stride.residual)


def functions_of(task: Task) -> Functions:
    """Return the functions of a task, by default those with most variance on the margins."""
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
    """Return the distinct margins in terms of the functions."""
    features, spared = task.space.margin_features, task.space.margin_features @ functions.spare
    rest = task.total * task.space.rest + np.einsum("pk,pk->p", spared, spared)
    heights = features @ functions.axes
    if not task.population:
        return MarginTable(heights, features[:, :0], rest)
    return MarginTable(heights, features, rest + task.space.rest)


def _update_covariances(
    own: Array, at: SharedPosterior, centre: Covariances, task: Task
) -> Covariances:
    """Return the mode of the covariances under an inverse Wishart prior."""
    n, before, turn = task.by_user.n_users, float(task.prior_users or 0.0), at.basis.turn
    own = (before * centre.own + n * (turn @ own @ turn.T)) / (before + n)
    own.flat[:: len(own) + 1] += NEGLIGIBLE * task.own  # stays positive definite
    if task.features is None:
        return Covariances(own)
    r = task.features.psi.shape[1]
    second = turn @ at.common.second @ turn.T
    shared = (before * centre.of_features + r * second) / (before + r)
    return Covariances(own, shared)


# Functions that they are made of, at most: of more the covariance is not known from some users, and
# what leads among the items is as good; and passes.
_CANDIDATES = 30
# The residual that ends them.
_TOL = 1e-2


def learn_functions(task: Task, n_jobs: int | None = None) -> Task:
    """Return the task with the functions along which users' margins differ most.

    The covariance of tastes is learned with all functions from some users' answers; what is kept
    are the principal components of the margins that were asked about under it.

    Parameters
    ----------
    task : Task
    n_jobs : int or None
    """
    n = min(task.space.margin_features.shape[1], _CANDIDATES)
    if task.n_latent >= n or task.prior_users is None or task.total == 0.0:
        return task
    few = replace(_sample_users(task), n_latent=n)
    pilot = fit(few, _CANDIDATES, _TOL, n_jobs)
    prior, (candidates, spare) = pilot.tastes.prior, pilot.functions
    taste = candidates @ semidefinite_root(prior.own + prior.of_features)
    basis = taste @ leading_axes(taste.T @ task.scatter() @ taste, task.n_latent)
    axes = leading_axes(basis @ basis.T, task.n_latent)
    unlearned_axes = taste - axes @ (axes.T @ taste)
    return replace(task, functions=Functions(axes, np.hstack([unlearned_axes, spare])))


def _sample_users(task):
    """Return the task of a fixed random sample of users, as few as give enough answers."""
    by_user = task.by_user
    order = np.random.default_rng(0).permutation(by_user.n_users)
    counts = np.bincount(by_user.user, minlength=by_user.n_users)[order]
    n = int(np.searchsorted(np.cumsum(counts), ENOUGH.sparse)) + 1
    users = np.sort(order[:n])
    features = task.features
    if features is not None:
        features = features.take(users)
    return replace(task, by_user=by_user.of_users(users), features=features)
