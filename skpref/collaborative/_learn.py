"""Hyperparameters of many users' utilities, by the evidence of some users' answers.

A user's utility has covariance k(x, x') (1 + own [same user] + shared k_users(z, z')): with ids and
features of users as further features of items it is a kernel like any other, and expectation
propagation gives the evidence of all answers at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from skpref._utils import Array, Fields, blas_threads, check_shapes
from skpref.collaborative import _factorised
from skpref.collaborative._factorised import Factorised
from skpref.collaborative._fit import PRIOR_USERS, Task, TasteFit, fit, learn_functions
from skpref.collaborative._tastes import Features
from skpref.collaborative._teams import ByUser
from skpref.collaborative._users import UserTable
from skpref.data import Comparisons
from skpref.fitting import ENOUGH, Hyperprior, LogNormal, Model, Monitor, Search, learn
from skpref.gp import Inducing, place, whitening
from skpref.inference import EP, Engine, Pass
from skpref.kernels import Identity, OnColumns, kernel_values, lengthscale_indices
from skpref.likelihoods import Likelihood

# Answers of one user to learn from at most, before all others have given theirs.
_OF_ONE = 24


@dataclass(frozen=True)
class Hyperparameters:
    """Of the utilities of many users.

    Attributes
    ----------
    kernel : Kernel
        Of the population's utility.
    likelihood : Likelihood
    own, shared : float
        Variances of a user's own utility, and of the part that features of users tell, in units of
        the kernel. 0: there is no such part.
    users : Kernel or None
        Of the features of users.
    """

    kernel: Kernel
    likelihood: Likelihood
    own: float
    shared: float = 0.0
    users: Kernel | None = None


class UserAnswers(NamedTuple):
    """Answers, and whose they are.

    Attributes
    ----------
    comparisons : Comparisons
    user : ndarray of int of shape (n_answers,)
    features : ndarray of shape (n_users, n_features) or None
    """

    comparisons: Comparisons
    user: NDArray[np.intp]
    features: Array | None


@dataclass(frozen=True, eq=False)
class _NamedModel(Model):
    """A model whose hyperparameters have the estimator's names."""

    free_names: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the elements of `theta`."""
        return [*self.free_names, *self.likelihood.free]


@dataclass(frozen=True, eq=False)
class Lesson:
    """The answers of a fixed random sample of users, from which hyperparameters are learned.

    Attributes
    ----------
    start : Hyperparameters
    population : bool
        Whether users share a utility.
    model : Model
        Of the answers, ids and features of users being further features of items.
    part : Comparisons
        The answers in it.
    n_users : int
        Who gave them.
    """

    start: Hyperparameters
    population: bool
    model: Model
    part: Comparisons
    n_users: int

    @classmethod
    def from_answers(
        cls,
        start: Hyperparameters,
        user_answers: UserAnswers,
        n_learning_answers: int | str | None,
        priors: tuple[Hyperprior, ...],
        bounds: tuple[float, float] | str,
        population: bool,
        engine: Engine,
    ) -> Self:
        """Return the lesson on at most ``n_learning_answers`` of the answers.

        Parameters
        ----------
        start : Hyperparameters
        user_answers : UserAnswers
        n_learning_answers : int, "auto" or None
            "auto": 800, or 2000 where an order effect is learned; None: all.
        priors : tuple of Hyperprior
            On the kernel's hyperparameters.
        bounds : (float, float) or "fixed"
            Of ``own`` and ``shared``.
        population : bool
        engine : Engine
        """
        if n_learning_answers == "auto":
            has_order = "order_effect" in start.likelihood.free
            n_learning_answers = ENOUGH.names if has_order else ENOUGH.points
        rows = _sample_answers(user_answers.user, n_learning_answers)
        n_items = user_answers.comparisons.items.shape[1]
        model = joint_model(start, n_items, user_answers.features, bounds, population, engine)
        model = replace(
            model,
            priors=priors + _user_lengthscale_prior(model.kernel, start, user_answers.features),
        )
        n_users = len(np.unique(user_answers.user[rows]))
        return cls(start, population, model, _join_user_columns(user_answers, rows), n_users)

    def learn_hyperparameters(
        self,
        search: Search,
        rng: np.random.Generator | np.random.RandomState,
        monitor: Monitor | None = None,
    ) -> Hyperparameters:
        """Maximise the evidence of these answers; return the hyperparameters there.

        Parameters
        ----------
        search : Search
        rng : Generator or RandomState
            For restarts.
        monitor : callable, optional
        """
        if len(self.model.theta) == 0:
            return self.start
        model, _ = learn(self.model, self.part, search, None, rng, monitor)
        return split_hyperparameters(self.start, model, self.population)


def joint_model(
    at: Hyperparameters,
    n_items: int,
    features: Array | None,
    bounds: tuple[float, float] | str,
    population: bool,
    engine: Engine,
) -> Model:
    """Return the model of all users at once, their ids and features being features of items.

    Parameters
    ----------
    at : Hyperparameters
    n_items : int
        Number of features of an item.
    features : ndarray of shape (n_users, n_features) or None
    bounds, population, engine
        As in `Lesson.from_answers`.
    """
    if not (population or (at.own and at.shared)):
        bounds = "fixed"  # one part alone: only its ratio to the noise is identified
    kernel = _joint_kernel(at, n_items, bounds, population, features)
    return _NamedModel(kernel, at.likelihood, engine, free_names=_list_free_names(at, bounds))


def _sample_answers(user, n_learning_answers):
    """Return the numbers of answers of as few users as give enough, ascending."""
    rng, n = np.random.default_rng(0), len(user)
    rows = np.arange(n)
    most = n if n_learning_answers is None else int(n_learning_answers)
    if most >= n:
        return rows
    rows = rng.permutation(n)
    turn = rng.permutation(int(user.max()) + 1)[user[rows]]
    order = np.argsort(turn, kind="stable")  # user after user
    rows, turn = rows[order], turn[order]
    nth = np.arange(n) - np.searchsorted(turn, turn)
    return np.sort(rows[np.argsort(nth // _OF_ONE, kind="stable")[:most]])


def _join_user_columns(user_answers, rows):
    """Return answers with the users' ids and features behind the features of items."""
    comparisons, user, features = user_answers
    shown, who = comparisons.positions[rows], user[rows]
    table = np.hstack([comparisons.items[shown.T.ravel()], np.tile(who, 2)[:, None]])
    if features is not None:
        table = np.hstack([table, features[np.tile(who, 2)]])
    lead = comparisons.order[rows, 0]
    part = Comparisons.from_duels(
        table,
        np.arange(len(rows)),
        np.arange(len(rows)) + len(rows),
        np.ones(len(rows), dtype=bool),
        comparisons.weight[rows],
        kind=comparisons.kind[rows],
        order=np.where(lead == 0, 1, np.where(lead == 1, -1, 0)),
    )
    return replace(part, ordered=comparisons.ordered)


def _joint_kernel(start, n_items, bounds, population, features):
    """Return the kernel of items with the ids and features of users behind them."""
    parts = []
    if population:
        parts.append(ConstantKernel(1.0, "fixed"))
    if start.own:
        parts.append(ConstantKernel(start.own, bounds) * OnColumns(Identity(), [n_items]))
    if start.shared:
        columns = list(range(n_items + 1, n_items + 1 + features.shape[1]))
        parts.append(ConstantKernel(start.shared, bounds) * OnColumns(start.users, columns))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return OnColumns(start.kernel, list(range(n_items))) * total


def _list_free_names(start, bounds):
    """Return the names of the free hyperparameters of `_joint_kernel`, in their order."""
    free_names = Model(start.kernel, start.likelihood, EP()).names[: len(start.kernel.theta)]
    if start.own and bounds != "fixed":
        free_names.append("taste_variance")
    if start.shared:
        free_names += ["taste_variance_by_features"] if bounds != "fixed" else []
        of_users = Model(start.users, start.likelihood, EP()).names[: len(start.users.theta)]
        free_names += [
            f"{name} of users" if name.startswith("variance of") else f"user_{name}"
            for name in of_users
        ]
    return tuple(free_names)


def _user_lengthscale_prior(kernel, start, features):
    """Return a prior on the lengthscales of users' features, in units of their spread."""
    if not start.shared:
        return ()
    first = len(start.kernel.theta)
    index = np.array([at for at, _ in lengthscale_indices(kernel) if at >= first], dtype=np.intp)
    centre = np.full(len(index), 0.5 * np.log(features.shape[1]))  # √features, within a factor e
    return (LogNormal(index, centre, np.ones(len(index))),) if len(index) else ()


def split_hyperparameters(
    start: Hyperparameters, model: Model, population: bool
) -> Hyperparameters:
    """Return the hyperparameters of a `joint_model`, with the parts that ``start`` has."""
    parts: list[Kernel] = []
    rest = model.kernel.k2
    for _ in range(int(population) + bool(start.own) + bool(start.shared) - 1):
        parts.insert(0, rest.k2)
        rest = rest.k1
    parts = [rest, *parts][int(population) :]
    own = parts.pop(0).k1.constant_value if start.own else 0.0
    shared, users = 0.0, None
    if start.shared:
        shared, users = parts[0].k1.constant_value, parts[0].k2.kernel
    return Hyperparameters(model.kernel.k1.kernel, model.likelihood, own, shared, users)


# Own variance of users where a method has none, as a share of the other.
_NEXT_TO_NONE = 1e-6


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


# Methods whose users weigh the same functions, so that these can be factorised.
FACTORISED = ("cp", "cpu")


class People(Fields):
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
        self._whiten = whitening(kernel_values(kernel, Z)) / np.sqrt(self.level)

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless features of all users can be had, see `Fields`."""
        rows = self._table.rows
        check_shapes(
            **{
                "features of users": (rows, "n f"),
                "features of inducing users": (self._Z, "r f"),
                "whitening of users": (self._whiten, "r r"),
            }
        )
        if not np.isfinite(self.level) or not self._table.has_all_rows():
            raise ValueError("features of users are of other users than have ids")

    def inducing_features(self, ids: list) -> tuple[Array, Array]:
        """Return ψ of users, (n, r), and residual variances, (n,), NaN where no features are."""
        place = self._table.places(ids)
        psi = kernel_values(self._kernel, self._table.rows[place], self._Z) @ self._whiten.T
        rest = self._kernel.diag(self._table.rows[place]) / self.level
        rest = rest - np.einsum("ij,ij->i", psi, psi)
        return psi, np.where(place < 0, np.nan, np.maximum(rest, 0.0))


class Nobody(Fields):
    """Users without features."""

    level = 1.0

    def inducing_features(self, ids: list) -> tuple[None, None]:
        """Return None for ψ and for the residual variances."""
        return None, None


class FittedUsers(NamedTuple):
    """A fit at given hyperparameters.

    Attributes
    ----------
    hyperparameters : Hyperparameters
    people : People or Nobody
    task : Task
    result : TasteFit or Factorised
    """

    hyperparameters: Hyperparameters
    people: People | Nobody
    task: Task
    result: TasteFit | Factorised


@dataclass(frozen=True, eq=False)
class Study:
    """Answers of several users, and all else that a fit needs, except hyperparameters.

    Attributes
    ----------
    comparisons : Comparisons
    user : ndarray of int of shape (n_answers,)
    names : list
        Ids of the users.
    method : Method
    table : UserTable or None
        Features of the users.
    n_latent, n_inducing, n_inducing_users, max_iter, tol, n_jobs
        As in `CollaborativePreferenceRegressor`.
    seed : int
    factorised : bool
        Whether weights and functions are, as inference="vb" has them.
    bounds : (float, float) or "fixed"
        Of variances of tastes.
    """

    comparisons: Comparisons
    user: NDArray[np.intp]
    names: list
    method: Method
    table: UserTable | None
    n_latent: int
    n_inducing: int
    n_inducing_users: int
    seed: int
    max_iter: int
    tol: float
    n_jobs: int | None
    factorised: bool
    bounds: tuple[float, float] | str

    @property
    def features(self) -> Array | None:
        """Of the users."""
        return None if self.table is None else self.table.rows_of(self.names)

    def fitted(
        self, hyperparameters: Hyperparameters, watch: Callable[[Pass], bool] | None = None
    ) -> FittedUsers:
        """Fit at given hyperparameters; ``watch`` gets each pass."""
        people, task = self._build_people_and_task(hyperparameters)
        if self.factorised:
            result: TasteFit | Factorised = _factorised.fit(
                task, self.seed, self.max_iter, self.tol, watch
            )
        else:
            task = learn_functions(task, self.n_jobs)
            result = fit(task, self.max_iter, self.tol, self.n_jobs, watch)
        return FittedUsers(hyperparameters, people, task, result)

    def log_evidence(
        self, hyperparameters: Hyperparameters, theta: ArrayLike | None, eval_gradient: bool = False
    ) -> float:
        """Return the log evidence of all answers, at any hyperparameters.

        Parameters
        ----------
        hyperparameters : Hyperparameters
        theta : array-like
            As a `joint_model` at these has it.
        eval_gradient : bool, default=False
            Refused where it is True.
        """
        if theta is None or eval_gradient:
            raise ValueError(
                "got eval_gradient=True for a fit of several users, whose evidence is known "
                "without its gradient. Leave it at False, and take differences of values."
            )
        width, population = self.comparisons.items.shape[1], self.method.population
        model = joint_model(hyperparameters, width, self.features, self.bounds, population, EP())
        hyperparameters = split_hyperparameters(
            hyperparameters, model.checked_at(theta), population
        )
        with blas_threads(0):
            return self.fitted(hyperparameters).result.log_evidence

    def _build_people_and_task(self, hyperparameters):
        """Return the users at inducing users, and the task of a fit at hyperparameters."""
        people: People | Nobody = Nobody()
        user_features = None
        if (
            self.table is not None
            and self.features is not None
            and hyperparameters.users is not None
        ):
            Z = place(
                np.unique(self.features, axis=0),
                hyperparameters.users,
                self.n_inducing_users,
                self.seed,
            )
            people = People(self.table, hyperparameters.users, Z)
            user_features = Features(*people.inducing_features(self.names))
        hyperparameters = replace(hyperparameters, shared=people.level * hyperparameters.shared)
        kernel = hyperparameters.kernel
        method, comparisons = self.method, self.comparisons
        Z = place(comparisons.items, kernel, self.n_inducing, self.seed)
        task = Task(
            space=Inducing(kernel, comparisons.items, comparisons.rows.margins, Z),
            by_user=ByUser.from_comparisons(comparisons, self.user, len(self.names)),
            likelihood=hyperparameters.likelihood,
            n_latent=len(Z) if method.prior_users is None else self.n_latent,
            own=hyperparameters.own if method.own else _NEXT_TO_NONE * hyperparameters.shared,
            shared=hyperparameters.shared,
            features=user_features,
            population=method.population,
            prior_users=method.prior_users,
        )
        return people, task
