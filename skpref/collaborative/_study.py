"""What a fit of several users is made of, and the fit at given hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._inducing import InducedSpace, whitening
from skpref._linalg import Array
from skpref._observations import Observations
from skpref._threads import blas_threads
from skpref.collaborative import _factorised
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._directions import learned
from skpref.collaborative._factorised import Factorised
from skpref.collaborative._fit import PRIOR_USERS, Found, Task, fit
from skpref.collaborative._learn import Hyperparameters, joint_model, taken_apart
from skpref.collaborative._people import Features
from skpref.collaborative._user_table import UserTable
from skpref.inference import EP
from skpref.inference._base import Pass
from skpref.inference._placing import place

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


class Fitted(NamedTuple):
    """A fit at given hyperparameters.

    Attributes
    ----------
    found : Hyperparameters
    people : People or Nobody
    task : Task
    result : Found or Factorised
    """

    found: Hyperparameters
    people: People | Nobody
    task: Task
    result: Found | Factorised


@dataclass(frozen=True, eq=False)
class Study:
    """Answers of several users, and all that a fit of them needs but hyperparameters.

    Attributes
    ----------
    observations : Observations
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

    observations: Observations
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

    def fitted(self, found: Hyperparameters, watch: Callable[[Pass], bool] | None = None) -> Fitted:
        """The fit, its passes told to ``watch``."""
        people, task = self._prepared(found)
        if self.factorised:
            result: Found | Factorised = _factorised.fit(
                task, self.seed, self.max_iter, self.tol, watch
            )
        else:
            task = learned(task, self.n_jobs)
            result = fit(task, self.max_iter, self.tol, self.n_jobs, watch)
        return Fitted(found, people, task, result)

    def log_evidence(
        self, found: Hyperparameters, theta: ArrayLike | None, eval_gradient: bool = False
    ) -> float:
        """Of all answers, at other hyperparameters than were found.

        Parameters
        ----------
        found : Hyperparameters
        theta : array-like
            As a `joint_model` at these has it.
        eval_gradient : bool, default=False
            Refused where it is True.
        """
        if theta is None or eval_gradient:
            raise ValueError(
                "eval_gradient=True came for a fit of several users, whose evidence is known "
                "without its gradient. Leave it at False, and take differences of values."
            )
        width, population = self.observations.items.shape[1], self.method.population
        model = joint_model(found, width, self.features, self.bounds, population, EP())
        other = taken_apart(found, model.checked_at(theta), population)
        with blas_threads(0):
            return self.fitted(other).result.log_evidence

    def _prepared(self, found):
        """Users as inducing users see them, and the task."""
        people: People | Nobody = Nobody()
        seen = None
        if self.table is not None and found.users is not None:
            Z = place(
                np.unique(self.features, axis=0), found.users, self.n_inducing_users, self.seed
            )
            people = People(self.table, found.users, Z)
            seen = Features(*people.seen(self.names))
        found = replace(found, shared=people.level * found.shared)
        method, kernel, observations = self.method, found.kernel, self.observations
        Z = place(observations.items, kernel, self.n_inducing, self.seed)
        task = Task(
            space=InducedSpace(kernel, observations.items, observations.rows.margins, Z),
            by_user=ByUser.of(observations, self.user, len(self.names)),
            likelihood=found.likelihood,
            n_latent=len(Z) if method.prior_users is None else self.n_latent,
            own=found.own if method.own else _NEXT_TO_NONE * found.shared,
            shared=found.shared,
            features=seen,
            population=method.population,
            prior_users=method.prior_users,
        )
        return people, task
