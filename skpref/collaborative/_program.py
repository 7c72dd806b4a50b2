"""One fit to several users: from parameters and answers to fitted attributes."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel

from skpref._utils import (
    blas_threads,
    check_bounds,
    check_choice,
    check_number,
    read_random_state,
    seed_of,
    warn,
)
from skpref.collaborative._factorised import Factorised, FactorisedPosterior
from skpref.collaborative._fit import Task, TasteFit
from skpref.collaborative._learn import (
    FACTORISED,
    METHODS,
    Hyperparameters,
    Lesson,
    Study,
    UserAnswers,
)
from skpref.collaborative._posterior import CollaborativePosterior, TastesPosterior
from skpref.collaborative._users import UserTable
from skpref.data import Training
from skpref.fitting import (
    LONG,
    Settings,
    make_model,
    report_fit,
    seconds_of,
)
from skpref.inference import EP, available_bytes
from skpref.kernels import seen_columns

# Of a pass over products of weights and functions, for an answer and a function: array by array.
_PRODUCT = 4e3


def warn_cost(
    n_duels: int,
    n_users: int,
    sizes: tuple[int, int, int],
    max_iter: int,
    factorised: bool = False,
) -> None:
    """Warn of a fit at given hyperparameters that may take minutes, or most of the memory.

    Parameters
    ----------
    n_duels, n_users : int
    sizes : (int, int, int)
        Functions that tastes weigh, inducing points, inducing users.
    max_iter : int
        Passes at most.
    factorised : bool, default=False
        Whether weights and functions are.
    """
    d, m, r = map(float, sizes)
    of_duel = 1e4 + 2.0 * d * (d + m) + 4.0 * d * m + 2.0 * m**2
    of_user = 6.0 * d**3 + 4.0 * d * m * (d + m) + 4.0 * (d * r) ** 2
    # Prior and posterior of all tastes, while they are found and as they are kept.
    bytes_ = 8.0 * n_users * (4.0 * d * (d + m) + 2.0 * (d * d if r else 0.0))
    if factorised:
        of_duel, of_user = d * (_PRODUCT + 4.0 * m**2), 4.0 * d * (1.0 + r) ** 2
        bytes_ = 8.0 * 12.0 * d * (n_users + n_duels)
    work = 2.0 * max_iter * (n_duels * of_duel + n_users * of_user)
    crowded = bytes_ > 0.7 * available_bytes()
    seconds = seconds_of(work)
    if seconds < LONG and not crowded:
        return
    took = f"{seconds / 60.0:.0f} minutes" if seconds >= 90.0 else f"{seconds:.0f} s"
    warn(
        f"This fit of {n_duels} duels by {n_users} users is expected to take up to about {took} "
        f"(max_iter={max_iter} passes) and {bytes_ / 2**30:.1f} GiB"
        f"{' (more than there is)' if crowded else ''}. To spare them: fewer functions or "
        "inducing points (n_latent, n_inducing), or n_jobs=2 or more. verbose=1 shows how far it "
        "is."
    )


# Attributes that a fit of several users alone sets.
_OF_SEVERAL = (
    "_users",
    "_people",
    "_study",
    "_found",
    "user_kernel_",
    "taste_variance_",
    "taste_variance_by_features_",
)


def has_separate_users(estimator) -> bool:
    """Tell whether users' utilities are to differ, after a check of the parameters."""
    method = check_choice("method", estimator.method, ("auto", "pooled", *METHODS))
    for name in ("n_latent", "n_inducing", "n_inducing_users", "max_iter"):
        check_number(name, getattr(estimator, name), low=1, integer=True)
    check_number("tol", estimator.tol, low=0.0, open_low=True)
    variance = estimator.taste_variance
    check_number("taste_variance", variance, low=0.0, open_low=True)
    bounds = check_bounds("taste_variance_bounds", estimator.taste_variance_bounds)
    bounds = None if estimator.optimizer is None else bounds
    if bounds is not None and not bounds[0] <= variance <= bounds[1]:
        raise ValueError(
            f"taste_variance must lie within taste_variance_bounds, {bounds[0]:g} to "
            f"{bounds[1]:g}, got {variance!r}. Move it or the bounds, or hold it by "
            "taste_variance_bounds='fixed'."
        )
    kernel = estimator.user_kernel
    if kernel is not None and not isinstance(kernel, Kernel):
        raise TypeError(
            f"user_kernel must be a kernel of sklearn.gaussian_process.kernels or None, got "
            f"{kernel!r}."
        )
    return method != "pooled"


def fit_users(estimator, settings: Settings, training: Training) -> None:
    """Fit an estimator to the answers of several users."""
    engine = _engine_of(estimator, settings.engine)
    comparisons, users, user = training.comparisons, training.users, training.user
    if users is None or user is None or comparisons.rank is not None:
        raise ValueError(
            "got choices or rankings with the ids of several users; duels and rated items are "
            "allowed. Fit PairwisePreferenceRegressor with prompts=users, in which each user has "
            "effects of their own, or take them apart, from_rankings(..., joint=False), each duel "
            "with the user of its ranking."
        )
    name = _method_name(estimator)
    method = METHODS[name]
    factorised = isinstance(estimator.inference, str) and estimator.inference == "vb"
    if factorised and name not in FACTORISED:
        raise ValueError(
            f"inference='vb' learns weights and functions that all users share: it is for "
            f"method='cp' or 'cpu', got {name!r}, which has none. Leave inference at 'ep'."
        )
    model = make_model(estimator, settings, training)
    rng = read_random_state(estimator.random_state)
    user_table = _table_of_users(estimator, name)
    features = None if user_table is None else user_table.rows_of(users.names.tolist())
    start = _starting_hyperparameters(estimator, method, model, user_table)
    what = f"{len(user)} duels of {len(comparisons.items)} items by {len(users)} users"
    lesson, learned_on = None, ""
    if settings.search is not None:
        lesson = Lesson.from_answers(
            start,
            UserAnswers(comparisons, user, features),
            settings.search.n_learning_answers,
            model.priors,
            estimator.taste_variance_bounds,
            method.population,
            engine,
        )
        if len(lesson.part.positions) < len(user):
            learned_on = f"{len(lesson.part.positions)} answers of {lesson.n_users} users"
    names = [] if lesson is None else lesson.model.names
    sizes = _count_sizes(estimator, method, model, comparisons, factorised)
    warn_cost(len(user), len(users), sizes, estimator.max_iter, factorised)
    study = Study(
        comparisons=comparisons,
        user=user,
        names=users.names.tolist(),
        method=method,
        table=user_table,
        n_latent=estimator.n_latent,
        n_inducing=estimator.n_inducing,
        n_inducing_users=estimator.n_inducing_users,
        seed=_seed(estimator),
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        n_jobs=estimator.n_jobs,
        factorised=factorised,
        bounds=estimator.taste_variance_bounds,
    )
    with report_fit(estimator, what, names, learned_on) as report, blas_threads(0):
        hyperparameters = start
        if lesson is not None and settings.search is not None:
            hyperparameters = lesson.learn_hyperparameters(
                settings.search, rng, report.report_evaluation
            )
        fitted = study.fitted(hyperparameters, report.report_pass)
    if not report.stopped:
        _warn_not_converged(fitted.result, estimator, comparisons.weight)
    _set_fit_of_users(estimator, engine, training, users, study, fitted)


def _warn_not_converged(result, estimator, weight):
    """Warn of a fit whose margins still moved at its end."""
    if result.residual >= 10.0 * estimator.tol:
        warn(
            f"The fit stopped after {result.n_iter} passes at a residual of {result.residual:.1e} "
            f"(tol={estimator.tol:g}). Raise max_iter, or noise_variance or its lower bound"
            f"{'' if np.all(weight == 1.0) else ', or make sample_weight smaller'}.",
            ConvergenceWarning,
        )


def check_featured(estimator: Any, users: list) -> None:
    """Raise ValueError if answers of some users could not be fitted for want of their features."""
    name = _method_name(estimator)
    table = _table_of_users(estimator, name) if name in METHODS else None
    if table is not None:
        table.rows_of(users)


def _method_name(estimator):
    """Return the name of the method, of "auto" the one that it stands for."""
    if estimator.method != "auto":
        return estimator.method
    return "cp" if estimator.user_features is None else "cpu"


def delete_attributes(estimator: Any, *names: str) -> None:
    """Delete attributes of an estimator, by default those that only a fit of several users sets."""
    for name in names or _OF_SEVERAL:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _count_sizes(estimator, method, model, comparisons, factorised):
    """Return the most functions, inducing points and inducing users that a fit has."""
    named, measured = seen_columns(model.kernel, comparisons.items.shape[1])
    most = len(comparisons.items)
    m = most if named and not measured else min(estimator.n_inducing, most)
    d = m if method.prior_users is None else min(estimator.n_latent, m)
    d = estimator.n_latent if factorised else d
    return d, m if method.population else 0, estimator.n_inducing_users * method.by_features


def _engine_of(estimator, engine):
    """Return EP with the options of ``inference``; raise ValueError for another engine."""
    if engine is None:
        return EP()
    if not engine.capabilities.matches_moments:
        raise ValueError(
            f"inference={estimator.inference!r} is for answers of one user. Those of several are "
            "fitted by expectation propagation: leave inference at 'ep', or pass EP(...), whose "
            "options then hold while hyperparameters are learned; or with inference='vb'."
        )
    return engine


def _seed(estimator):
    """Return an estimator's seed as an integer, 0 where it has none."""
    state = estimator.random_state
    return 0 if state is None or not isinstance(state, int | np.integer) else seed_of(state)


def _starting_hyperparameters(estimator, method, model, user_table):
    """Return the hyperparameters that the search starts from."""
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


def _table_of_users(estimator, name):
    """Return the table of users' features; None for a method that takes none."""
    if not METHODS[name].by_features:
        return None
    if estimator.user_features is None:
        raise ValueError(
            f"method={name!r} needs user_features, a table of features by the ids of users; "
            "method='cp' does without."
        )
    return UserTable(estimator.user_features)


def _set_fit_of_users(estimator, engine, training, users, study, fitted):
    """Set the fitted attributes, all at once."""
    hyperparameters, task, result = fitted.hyperparameters, fitted.task, fitted.result
    delete_attributes(estimator, "_model", "_all_at_once", "_earlier_items", "_start", "_stream")
    posterior = _posterior(
        task,
        result,
        kernel=hyperparameters.kernel,
        likelihood=hyperparameters.likelihood,
        anchors=task.space.Z,
        whiten=task.space.whiten,
        reader=training.reader,
    )
    estimator._keep(
        training,
        _users=users,
        _people=fitted.people,
        _study=study,
        _found=hyperparameters,
        posterior_=posterior,
        users_=users.names,
        engine_=engine,
        diagnostics_=None,
        comparisons_=training.comparisons,
        kernel_=hyperparameters.kernel,
        likelihood_=hyperparameters.likelihood,
        user_kernel_=hyperparameters.users,
        taste_variance_=task.own,
        taste_variance_by_features_=hyperparameters.shared,
        log_marginal_likelihood_value_=result.log_evidence,
        n_iter_=result.n_iter,
    )


def _posterior(
    task: Task, result: TasteFit | Factorised, **shared_fields: Any
) -> CollaborativePosterior:
    """Return the posterior of a fit, with the fields that every posterior has."""
    if isinstance(result, Factorised):
        n = task.n_latent
        return FactorisedPosterior(
            **shared_fields,
            weights=result.weights,
            features=result.features,
            population=task.population,
            own=task.own / n,
            shared=task.shared / n,
            average_user=None if task.features is None else task.average_user,
            functions=result.functions.centre,
            functions_cov=result.functions.cov,
        )
    common = result.common if task.population else None
    return TastesPosterior(
        **shared_fields,
        functions=result.functions,
        taste_variance=task.own + task.shared,
        shared=task.shared,
        centre=None if common is None else common.mean,
        root=None if common is None else common.root,
        tastes=result.tastes,
    )
