"""The program of a fit: parameters and answers of several users in, fitted attributes out."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel

from skpref._asked import Who
from skpref._features import remember
from skpref._inducing import InducedSpace, whitening
from skpref._linalg import Array
from skpref._parameters import check_bounds, check_choice, check_number
from skpref._progress import reported
from skpref._random import seed_of, source_of
from skpref._settings import check_settings, make_model
from skpref._threads import blas_threads
from skpref._validation import check_items, check_training
from skpref._warnings import warn
from skpref._weights import check_weights
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._cost import mention_cost
from skpref.collaborative._fit import PRIOR_USERS, Found, Task, fit
from skpref.collaborative._learn import Answered, Hyperparameters, Lesson
from skpref.collaborative._people import Features
from skpref.collaborative._posterior import CollaborativePosterior
from skpref.collaborative._user_table import UserTable
from skpref.collaborative._users import Users
from skpref.inference import EP
from skpref.inference._placing import place
from skpref.kernels._hyperparameters import seen_columns

# Own variance of users where a method has none, as a share of the other.
_NEXT_TO_NONE = 1e-6
# Attributes that a fit of several users alone sets.
_OF_SEVERAL = (
    "_users",
    "_people",
    "user_kernel_",
    "taste_variance_",
    "taste_variance_by_features_",
)


class Method(NamedTuple):
    """Which parts a user's utility has, and whether covariances of tastes are learned.

    ``prior_users`` is the number of users that the prior covariance of tastes weighs as much as.
    """

    population: bool
    own: bool
    by_features: bool
    prior_users: float | None


METHODS = {
    "cp": Method(True, True, False, PRIOR_USERS),
    "cpu": Method(True, True, True, PRIOR_USERS),
    "su": Method(False, True, False, None),
    "birlutiu": Method(True, True, False, 0.0),
    "bonilla": Method(False, False, True, None),
}


class People:
    """Features of users as inducing users see them.

    Parameters
    ----------
    table : UserTable
    kernel : Kernel
    Z : ndarray of shape (r, n_features)

    Attributes
    ----------
    level : float
        Prior variance at Z; ψ are of the kernel divided by it.
    """

    def __init__(self, table: UserTable, kernel: Kernel, Z: Array) -> None:
        self._table, self._kernel, self._Z = table, kernel, Z
        self.level = float(np.mean(kernel.diag(Z)))
        self._whiten = whitening(kernel(Z)) / np.sqrt(self.level)

    def seen(self, ids: list) -> tuple[Array, Array]:
        """ψ of users, (n, r), and the variance that it leaves, (n,); NaN where none are known."""
        place = self._table.places(ids)
        psi = self._kernel(self._table.rows[place], self._Z) @ self._whiten.T
        rest = self._kernel.diag(self._table.rows[place]) / self.level
        rest = rest - np.einsum("ij,ij->i", psi, psi)
        return psi, np.where(place < 0, np.nan, np.maximum(rest, 0.0))


class Nobody:
    """Users without features."""

    level = 1.0

    def seen(self, ids: list) -> tuple[None, None]:
        """Nothing is known of anybody."""
        return None, None


def several(estimator, users: Users | None) -> bool:
    """Whether answers are of several users whose utilities are to differ; checks parameters."""
    method = check_choice("method", estimator.method, ("auto", "pooled", *METHODS))
    for name in ("n_latent", "n_inducing", "n_inducing_users", "max_iter"):
        check_number(name, getattr(estimator, name), low=1, integer=True)
    check_number("tol", estimator.tol, low=0.0, open_low=True)
    check_number("taste_variance", estimator.taste_variance, low=0.0, open_low=True)
    check_bounds("taste_variance_bounds", estimator.taste_variance_bounds)
    kernel = estimator.user_kernel
    if kernel is not None and not isinstance(kernel, Kernel):
        raise TypeError(
            f"user_kernel must be a kernel of sklearn.gaussian_process.kernels or None, got "
            f"{kernel!r}."
        )
    return method != "pooled" and users is not None and len(users) > 1


def collaborate(
    estimator, X: Any, y: Any, ids: list, users: Users, qid: Any, sample_weight: Any, order: Any
) -> None:
    """Fit an estimator to the answers of several users."""
    settings, table = check_settings(estimator), check_items(estimator.items)
    engine = _engine_of(estimator, settings.engine)
    user = users.codes(ids)
    given = X, y, qid, table, sample_weight, order, settings.likelihood
    training = check_training(estimator, *given, within=user)
    observations = training.observations
    if observations.rank is not None:
        raise ValueError(
            "Choices and rankings came with the ids of several users, whose answers must be duels "
            "or rated items. Take them apart, from_rankings(..., joint=False), each duel with the "
            "user of its ranking; without users= they are taken as they are."
        )
    if training.winner is not None:
        user = user[training.winner]
    elif sample_weight is not None:
        weight = check_weights(sample_weight, len(user))
        user = user if weight is None else user[weight > 0.0]
    name = _named(estimator)
    method = METHODS[name]
    model = make_model(estimator, settings, training, table)
    rng = source_of(estimator.random_state)
    user_table = _features_of(estimator, name)
    features = None if user_table is None else user_table.rows_of(users.names.tolist())
    start = _start(estimator, method, model, user_table)
    what = f"{len(user)} duels of {len(observations.items)} items by {len(users)} users"
    lesson, some = None, ""
    if settings.search is not None:
        lesson = Lesson.of(
            start,
            Answered(observations, user, features),
            settings.search.learn_on,
            model.priors,
            estimator.taste_variance_bounds,
            method.population,
            engine,
        )
        if len(lesson.part.positions) < len(user):
            some = f"{len(lesson.part.positions)} answers of {lesson.n_users} users"
    names = [] if lesson is None else lesson.model.names
    sizes = _sizes(estimator, method, model, observations)
    mention_cost(len(user), len(users), sizes, estimator.max_iter, lesson)
    with reported(estimator, what, names, some) as report, blas_threads(0):
        found = start
        if lesson is not None and settings.search is not None:
            found = lesson.learned(settings.search, rng, report.evaluated)
        people: People | Nobody = Nobody()
        seen = None
        if user_table is not None and features is not None:
            n = estimator.n_inducing_users
            Z = place(np.unique(features, axis=0), found.users, n, _seed(estimator))
            people = People(user_table, found.users, Z)
            seen = Features(*people.seen(users.names.tolist()))
        reached = replace(found, shared=people.level * found.shared)
        task = _task(estimator, method, reached, observations, user, len(users), seen)
        how = estimator.max_iter, estimator.tol, estimator.n_jobs
        result = fit(task, *how, watch=report.passed)
    if result.residual >= 10.0 * estimator.tol and not report.stopped:
        warn(
            f"The fit stopped after {result.n_iter} passes at a residual of {result.residual:.1e} "
            f"(tol={estimator.tol:g}). Raise max_iter, or noise_variance or its lower bound.",
            ConvergenceWarning,
        )
    _keep(estimator, engine, training, table, users, people, found, task, result)


def check_featured(estimator: Any, users: list) -> None:
    """Raise ValueError if answers of some users could not be fitted for want of their features."""
    name = _named(estimator)
    table = _features_of(estimator, name) if name in METHODS else None
    if table is not None:
        table.rows_of(users)


def _named(estimator):
    """The method that "auto" stands for."""
    if estimator.method != "auto":
        return estimator.method
    return "cp" if estimator.user_features is None else "cpu"


def forget(estimator: Any) -> None:
    """Take off an estimator what only a fit of several users leaves."""
    for name in _OF_SEVERAL:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _sizes(estimator, method, model, observations):
    """Functions that tastes weigh, inducing points and inducing users, at most."""
    named, measured = seen_columns(model.kernel, observations.items.shape[1])
    most = len(observations.items)
    m = most if named and not measured else min(estimator.n_inducing, most)
    d = m if method.prior_users is None else min(estimator.n_latent, m)
    return d, m if method.population else 0, estimator.n_inducing_users * method.by_features


def _engine_of(estimator, engine):
    """Expectation propagation, with the options that it came with."""
    if engine is None:
        return EP()
    if not isinstance(engine, EP):
        raise ValueError(
            f"inference={estimator.inference!r} is for answers of one user. Those of several are "
            "fitted by expectation propagation: leave inference at 'ep', or pass EP(...), whose "
            "options then hold while hyperparameters are learned."
        )
    return engine


def _seed(estimator):
    state = estimator.random_state
    return 0 if state is None or not isinstance(state, int | np.integer) else seed_of(state)


def _start(estimator, method, model, user_table):
    """Hyperparameters as they are given."""
    own = shared = 0.0
    variance = float(estimator.taste_variance) if method.population else 1.0
    if method.own and method.by_features:
        own = shared = 0.5 * variance
    elif method.own:
        own = variance
    else:
        shared = variance
    kernel = None
    if user_table is not None:
        kernel = estimator.user_kernel
        if kernel is None:
            size = np.sqrt(user_table.rows.shape[1])
            kernel = RBF(size, (1e-2 * size, 1e2 * size))
        kernel = clone(kernel)
        user_table.check_kernel(kernel)
    return Hyperparameters(model.kernel, model.likelihood, own, shared, kernel)


def _features_of(estimator, name):
    if not METHODS[name].by_features:
        return None
    if estimator.user_features is None:
        raise ValueError(
            f"method={name!r} needs user_features, a table of features by the ids of users; "
            "method='cp' does without."
        )
    return UserTable(estimator.user_features)


def _task(estimator, method, found, observations, user, n_users, seen):
    kernel = found.kernel
    Z = place(observations.items, kernel, estimator.n_inducing, _seed(estimator))
    space = InducedSpace(kernel, observations.items, observations.rows.margins, Z)
    own = found.own if method.own else _NEXT_TO_NONE * found.shared
    return Task(
        space=space,
        by_user=ByUser.of(observations, user, n_users),
        likelihood=found.likelihood,
        n_latent=len(Z) if method.prior_users is None else estimator.n_latent,
        own=own,
        shared=found.shared,
        features=seen,
        population=method.population,
        prior_users=method.prior_users,
    )


def _keep(estimator, engine, training, table, users, people, found, task: Task, result: Found):
    """The fitted attributes, all at once."""
    schema = training.schema
    remember(estimator, schema)
    who = None
    if schema.id_column is not None and schema.ids is not None:
        who = Who(schema.id_column, schema.ids)
    for name in ("_model", "_start", "judges_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    common = result.common if task.population else None
    estimator._users, estimator._people = users, people
    estimator.posterior_ = CollaborativePosterior(
        kernel=found.kernel,
        likelihood=found.likelihood,
        anchors=task.space.Z,
        whiten=task.space.whiten,
        axes=result.axes,
        taste_variance=task.own + task.shared,
        shared=task.shared,
        centre=None if common is None else common.mean,
        root=None if common is None else common.root,
        tastes=result.tastes,
        feature_names=schema.feature_names,
        table=table,
        who=who,
    )
    estimator.users_ = users.names
    estimator.engine_, estimator.diagnostics_ = engine, None
    estimator.items_ = table
    estimator.observations_ = training.observations
    estimator.kernel_, estimator.likelihood_ = found.kernel, found.likelihood
    estimator.user_kernel_ = found.users
    estimator.taste_variance_ = task.own
    estimator.taste_variance_by_features_ = found.shared
    for name in ("noise_variance", "tie_threshold", "order_effect"):
        if hasattr(found.likelihood, name):
            setattr(estimator, f"{name}_", getattr(found.likelihood, name))
        elif hasattr(estimator, f"{name}_"):
            delattr(estimator, f"{name}_")
    estimator.log_marginal_likelihood_value_ = result.log_evidence
    estimator.n_iter_ = result.n_iter
    if training.classes is not None:
        estimator.classes_ = training.classes
    elif hasattr(estimator, "classes_"):
        del estimator.classes_
