"""Hyperparameters of many users' utilities, by the evidence of some users' answers.

A user's utility has covariance k(x, x') (1 + own [same user] + shared k_users(z, z')): with ids and
features of users as further features of items it is a kernel like any other, and expectation
propagation gives the evidence of all answers at once.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from skpref._linalg import Array
from skpref._model import Model
from skpref._observations import Observations
from skpref._priors import LogNormal, Prior
from skpref._search import Monitor, Search, learn
from skpref.inference import EP
from skpref.kernels import Identity, OnColumns, lengthscale_indices
from skpref.likelihoods import TIE, Likelihood

# Answers to learn from; of one user so many at most, before all others have given theirs.
_ANSWERS = 800
_OF_ONE = 24
# A search that leaves this share of the log-loss of coins is tried again with so much more noise.
_COINS, _NOISIER = 0.95, 100.0
# Deviation of the logarithm of a lengthscale of users from its median, √features.
_DEVIATION = 1.0


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


class Answered(NamedTuple):
    """Answers, and whose they are.

    Attributes
    ----------
    observations : Observations
    user : ndarray of int of shape (n_answers,)
    features : ndarray of shape (n_users, n_features) or None
    """

    observations: Observations
    user: NDArray[np.intp]
    features: Array | None


@dataclass(frozen=True, eq=False)
class _Named(Model):
    """A model whose hyperparameters are called as those of the estimator."""

    called: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the elements of `theta`."""
        return [*self.called, *self.likelihood.free]


@dataclass(frozen=True, eq=False)
class Lesson:
    """The answers of some users, drawn at random but always the same, and what they are to teach.

    Attributes
    ----------
    start : Hyperparameters
    population : bool
        Whether users share a utility.
    model : Model
        Of the answers, ids and features of users being further features of items.
    part : Observations
        The answers in it.
    n_users : int
        Who gave them.
    """

    start: Hyperparameters
    population: bool
    model: Model
    part: Observations
    n_users: int

    @classmethod
    def of(
        cls,
        start: Hyperparameters,
        answered: Answered,
        learn_on: int | str | None,
        priors: tuple[Prior, ...],
        bounds: tuple[float, float] | str,
        population: bool,
        engine: EP,
    ) -> Self:
        """What is learned on so many answers.

        Parameters
        ----------
        start : Hyperparameters
        answered : Answered
        learn_on : int, "auto" or None
            "auto": 800; None: all.
        priors : tuple of Prior
            On the kernel's hyperparameters.
        bounds : (float, float) or "fixed"
            Of ``own`` and ``shared``.
        population : bool
        engine : EP
        """
        rows = _rows(answered.user, learn_on)
        n_items = answered.observations.items.shape[1]
        model = joint_model(start, n_items, answered.features, bounds, population, engine)
        model = replace(model, priors=priors + _of_users(model.kernel, start, answered.features))
        n_users = len(np.unique(answered.user[rows]))
        return cls(start, population, model, _part(answered, rows), n_users)

    def learned(
        self,
        search: Search,
        rng: np.random.Generator | np.random.RandomState,
        monitor: Monitor | None = None,
    ) -> Hyperparameters:
        """Maximise the evidence of these answers.

        Parameters
        ----------
        search : Search
        rng : Generator or RandomState
            For restarts.
        monitor : callable, optional
        """
        if len(self.model.theta) == 0:
            return self.start
        search = replace(search, second=self._noisier())
        model, _ = learn(self.model, self.part, search, None, rng, monitor)
        return taken_apart(self.start, model, self.population)

    def _noisier(self):
        """A start of more noise, for a search that explains no more than coins would.

        There everything is noise, so that no hyperparameter has a slope that leads away; where
        noise starts small the way to better ones may lead through it.
        """
        theta, names = self.model.theta.copy(), self.model.names
        if "noise_variance" not in names:
            return None
        theta[names.index("noise_variance")] += np.log(_NOISIER)
        return theta, _COINS * float(self.part.weight.sum()) * np.log(2.0)


def joint_model(
    at: Hyperparameters,
    n_items: int,
    features: Array | None,
    bounds: tuple[float, float] | str,
    population: bool,
    engine: EP,
) -> Model:
    """All users at once, their ids and features being further features of items.

    Parameters
    ----------
    at : Hyperparameters
    n_items : int
        Number of features of an item.
    features : ndarray of shape (n_users, n_features) or None
    bounds, population, engine
        As in `Lesson.of`.
    """
    if not (population or (at.own and at.shared)):
        bounds = "fixed"  # one part alone: only its ratio to the noise is identified
    kernel = _joint(at, n_items, bounds, population, features)
    return _Named(kernel, at.likelihood, engine, (), _called(at, bounds))


def _rows(user, learn_on):
    """Answers of as few users as give enough, in their order."""
    rng, n = np.random.default_rng(0), len(user)
    rows = np.arange(n)
    most = n if learn_on is None else _ANSWERS if learn_on == "auto" else int(learn_on)
    if most >= n:
        return rows
    rows = rng.permutation(n)
    turn = rng.permutation(int(user.max()) + 1)[user[rows]]
    order = np.argsort(turn, kind="stable")  # user after user
    rows, turn = rows[order], turn[order]
    nth = np.arange(n) - np.searchsorted(turn, turn)
    return np.sort(rows[np.argsort(nth // _OF_ONE, kind="stable")[:most]])


def _part(answered, rows):
    """Answers with the users' ids and features behind the features of items."""
    observations, user, features = answered
    shown, who = observations.positions[rows], user[rows]
    table = np.hstack([observations.items[shown.T.ravel()], np.tile(who, 2)[:, None]])
    if features is not None:
        table = np.hstack([table, features[np.tile(who, 2)]])
    lead = observations.order[rows, 0]
    found = Observations.from_duels(
        table,
        np.arange(len(rows)),
        np.arange(len(rows)) + len(rows),
        np.ones(len(rows), dtype=bool),
        observations.weight[rows],
        tie=observations.kind[rows] == TIE,
        order=np.where(lead == 0, 1, np.where(lead == 1, -1, 0)),
    )
    return replace(found, ordered=observations.ordered)


def _joint(start, n_items, bounds, population, features):
    """The kernel of items with the ids and features of users behind them."""
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


def _called(start, bounds):
    """Names of the free hyperparameters of `_joint`, in their order."""
    called = Model(start.kernel, start.likelihood, EP()).names[: len(start.kernel.theta)]
    if start.own and bounds != "fixed":
        called.append("taste_variance")
    if start.shared:
        called += ["taste_variance_by_features"] if bounds != "fixed" else []
        of_users = Model(start.users, start.likelihood, EP()).names[: len(start.users.theta)]
        called += [
            f"{name} of users" if name.startswith("variance of") else f"user_{name}"
            for name in of_users
        ]
    return tuple(called)


def _of_users(kernel, start, features):
    """A prior on the lengthscales of users, whose features are in units of their spread."""
    if not start.shared:
        return ()
    first = len(start.kernel.theta)
    index = np.array([at for at, _ in lengthscale_indices(kernel) if at >= first], dtype=np.intp)
    centre = np.full(len(index), 0.5 * np.log(features.shape[1]))
    return (LogNormal(index, centre, np.full(len(index), _DEVIATION)),) if len(index) else ()


def taken_apart(start: Hyperparameters, model: Model, population: bool) -> Hyperparameters:
    """The hyperparameters of a `joint_model`; those that ``start`` has none of have none."""
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
