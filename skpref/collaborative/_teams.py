"""Users' answers, teams of users, and the threads, processes or machines that these are sent to."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple, Self

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from skpref._utils import Array, blas_threads
from skpref.collaborative._tastes import (
    Basis,
    Common,
    Features,
    Local,
    MarginTable,
    SharedLikelihood,
    TasteMargins,
    condition_tastes,
    marginal_tastes,
)
from skpref.data import Comparisons
from skpref.gp import fill_groups
from skpref.inference import PartCache, SharedOut, site_update
from skpref.likelihoods import INEQUALITY, Answers, Likelihood

# Users of a team: so many that a worker has some tenths of a second to do with each.
_TEAM = 1000


@dataclass(frozen=True, eq=False)
class ByUser:
    """Single duels, the user of each, and the margin of each.

    Attributes
    ----------
    n_users, n_margins : int
    user : ndarray of int of shape (n,)
    margin : ndarray of int of shape (n,)
        Row of the distinct margins.
    sign : ndarray of shape (n,)
        +1 where the winner is the first item of the margin, else −1.
    weight : ndarray of shape (n,)
    answers : Answers
    """

    n_users: int
    n_margins: int
    user: NDArray[np.intp]
    margin: NDArray[np.intp]
    sign: Array
    weight: Array
    answers: Answers

    @classmethod
    def from_comparisons(
        cls, comparisons: Comparisons, user: NDArray[np.intp], n_users: int
    ) -> Self:
        """Return the duels of comparisons by user, equal ones of one user counted.

        Raises
        ------
        ValueError
            If some of them are choices or rankings.
        """
        rows = comparisons.rows
        if np.any(rows.kind == INEQUALITY):
            raise ValueError(
                "got choices or rankings with users=; of several users the answers are duels. "
                "Take them apart with skpref.duels.from_rankings, or fit without users=."
            )
        row = comparisons.of_answer
        key, which = np.unique(user * len(rows) + row, return_inverse=True)
        weight = np.bincount(which, comparisons.weight).astype(np.float64)
        user, row = np.divmod(key, len(rows))
        margins = rows.margins
        answers = rows.answers.take(row)
        margin, sign = margins.index[row], margins.sign[row]
        return cls(n_users, len(margins.first), user, margin, sign, weight, answers)

    def of_users(self, users: NDArray[np.intp]) -> Self:
        """Return the answers of some users, who are numbered anew; margins keep their numbers.

        Parameters
        ----------
        users : ndarray of int
            Increasing.
        """
        return self.take(np.flatnonzero(np.isin(self.user, users)), users)

    def take(self, rows: NDArray[np.intp], users: NDArray[np.intp]) -> Self:
        """Return some answers, which are those of some users, as `of_users` does."""
        return type(self)(
            n_users=len(users),
            n_margins=self.n_margins,
            user=np.searchsorted(users, self.user[rows]),
            margin=self.margin[rows],
            sign=self.sign[rows],
            weight=self.weight[rows],
            answers=self.answers.take(rows),
        )

    @cached_property
    def copies(self) -> Array:
        """Number of equal factors of each answer, at least 1: its weight, if that is not below."""
        return np.maximum(self.weight, 1.0)

    @cached_property
    def power(self) -> Array | None:
        """Power of each of these factors, below 1 for a weight below 1; None: all are 1."""
        return np.minimum(self.weight, 1.0) if np.any(self.weight < 1.0) else None

    def pool(self, values: Array) -> Array:
        """Return the sum of values over the answers on each margin."""
        return np.bincount(self.margin, values, self.n_margins).astype(np.float64)


class AnswerSites(NamedTuple):
    """A Gaussian factor for each answer on its margin.

    Attributes
    ----------
    precision, shift : ndarray of shape (n,)
        Of one of equal answers, as the margin sees them.
    mean, variance : ndarray of shape (n,)
        Of the margins without that factor, as the winner sees them.
    """

    precision: Array
    shift: Array
    mean: Array
    variance: Array


class TeamResult(NamedTuple):
    """Result of a team's pass.

    Attributes
    ----------
    target : AnswerSites
        Factors that its answers ask for.
    value : float
        Its part of the evidence.
    own : ndarray of shape (d, d)
        Second moments of the parts of its tastes of users' own, summed.
    """

    target: AnswerSites
    value: float
    own: Array


@dataclass(frozen=True, eq=False)
class Team:
    """Some users and their answers.

    Attributes
    ----------
    users, rows : slice
        Which of all users, and which of all answers.
    batches : list of (ndarray, ndarray)
        Users and the rows of their answers, both numbered within the team, as `fill_groups` has
        them.
    answered : ByUser
    features : Features
        Of the users.
    likelihood : Likelihood
    """

    users: slice
    rows: slice
    batches: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    answered: ByUser
    features: Features
    likelihood: Likelihood

    def condition(
        self, table: Array, d: int, precision: Array, shift: Array, basis: Basis
    ) -> tuple[list[Local], SharedLikelihood]:
        """Return tastes given what users have in common, and the likelihood of that.

        Parameters
        ----------
        table : ndarray of shape (n_margins, d + m)
            `MarginTable.turned`.
        d : int
        precision, shift : ndarray of shape (n,)
            Of one of equal answers.
        basis : Basis
        """
        copies, margin = self.answered.copies, np.append(self.answered.margin, 0)
        precision, shift = (np.append(copies * part, 0.0) for part in (precision, shift))
        locals_: list[Local] = []

        def likelihoods() -> Iterator[SharedLikelihood]:
            for users, rows in self.batches:
                local, likelihood = condition_tastes(
                    table[margin[rows]],
                    d,
                    precision[rows],
                    shift[rows],
                    basis,
                    self.features.take(users),
                )
                locals_.append(local)
                yield likelihood

        total = reduce(SharedLikelihood.plus, likelihoods())
        return locals_, total

    def update_sites(
        self, local: list[Local], view: TasteMargins, rest: Array, precision: Array, shift: Array
    ) -> TeamResult:
        """Return the updated factors of the answers at q, by expectation propagation.

        Parameters
        ----------
        local : list of Local
            As `condition` gave them.
        view : TasteMargins
        rest : ndarray of shape (n_margins,)
            Variance of ε.
        precision, shift : ndarray of shape (n,)
            Of the factors before.
        """
        answered = self.answered
        margin = np.append(answered.margin, 0)
        moments = np.empty((2, len(margin)))
        value, own = 0.0, np.zeros((len(view.common.by_feature),) * 2)
        for (users, rows), tastes in zip(self.batches, local, strict=True):
            q = marginal_tastes(tastes, view.common, self.features.psi[users], view.wide)
            own, value = own + q.own, value - 0.5 * q.quadratic
            moments[:, rows] = view.moments(margin[rows], q)
        mean, variance = moments[:, :-1]
        sites, gained = update_factors(
            self.likelihood, answered, (mean, variance), rest[margin[:-1]], (precision, shift)
        )
        return TeamResult(sites, value + float(answered.copies @ gained), own)


def update_factors(
    likelihood: Likelihood,
    answered: ByUser,
    marginal: tuple[Array, Array],
    residual: Array | float,
    previous: tuple[Array, Array],
) -> tuple[AnswerSites, Array]:
    """Return the answers' factors updated by expectation propagation, and log normalisers.

    Parameters
    ----------
    likelihood : Likelihood
    answered : ByUser
    marginal : (ndarray, ndarray)
        Means and variances under q of the margins that the factors are of, shape (n,).
    residual : ndarray of shape (n,) or float
        Variance of what is added to these margins.
    previous : (ndarray, ndarray)
        Precisions and shifts of the factors that are in q.

    Returns
    -------
    AnswerSites
        Where a cavity is improper, the factor before.
    ndarray of shape (n,)
        Each answer's part of the log evidence, but for a constant of q.
    """
    (mean, variance), (precision, shift), sign = marginal, previous, answered.sign
    update = site_update(
        (sign * mean, variance),
        (precision, sign * shift),
        likelihood,
        answered.answers,
        answered.power,
        residual,
    )
    sites = AnswerSites(
        update.site_precision, sign * update.site_shift, update.cav_mean, update.cav_var
    )
    return sites, update.log_gain


def divide_into_teams(
    by_user: ByUser, likelihood: Likelihood, features: Features | None, d: int, m: int
) -> list[Team]:
    """Divide all users into teams, whose tastes have d weights beside m of the population."""
    teams = []
    all_features = Features.empty(by_user.n_users) if features is None else features
    width = d + 2 * m  # numbers an answer beside its effects: its row, and what is left of it
    for first in range(0, by_user.n_users, _TEAM):
        users = np.arange(first, min(first + _TEAM, by_user.n_users))
        rows = slice(*np.searchsorted(by_user.user, [first, first + len(users)]).tolist())
        answered = by_user.take(np.arange(rows.start, rows.stop), users)
        sizes = np.full(len(users), d)
        teams.append(
            Team(
                slice(first, first + len(users)),
                rows,
                fill_groups(answered.user, sizes, width, np.ones(len(users), dtype=bool)),
                answered,
                all_features.take(users),
                likelihood,
            )
        )
    return teams


class Crew:
    """All teams, shared out to joblib's workers: threads, or what a `parallel_config` asks for.

    Parameters
    ----------
    margins : MarginTable
    teams : list of Team
    n_jobs : int or None
    """

    def __init__(self, margins: MarginTable, teams: list[Team], n_jobs: int | None) -> None:
        self.margins, self.teams = margins, teams
        self._pass = 0
        backend, _ = get_active_backend(prefer="threads")
        self._shares_memory = getattr(backend, "supports_sharedmem", False)
        self._shared = SharedOut(len(teams), self._package, n_jobs, _HERE)

    def condition(self, sites: AnswerSites, basis: Basis) -> SharedLikelihood:
        """Return the likelihood of what users have in common by all answers."""
        self._pass += 1
        return reduce(SharedLikelihood.plus, self._ask_teams(sites, basis, None))

    def update_sites(self, sites: AnswerSites, basis: Basis, at: Common) -> list[TeamResult]:
        """Return each team's updated factors, from the tastes that it conditioned last."""
        return self._ask_teams(sites, basis, at)

    def collect_tastes(self, sites: AnswerSites, basis: Basis) -> list[list[Local]]:
        """Return the tastes of each team, which no process holds afterwards.

        Where workers share no memory they are computed here: they are larger than their sources.
        """
        table, d = self.margins.rotate(basis), self.margins.heights.shape[1]
        tastes = []
        for k, team in enumerate(self.teams):
            entry = _HERE.get(self._shared.run, k)
            if entry is not None and entry.at == self._pass:
                tastes.append(entry.local)
                continue
            factors_of = sites.precision[team.rows], sites.shift[team.rows]
            tastes.append(team.condition(table, d, *factors_of, basis)[0])
        _HERE.drop(self._shared.run)
        return tastes

    def _ask_teams(self, sites, basis, at):
        """Send a pass to every team; return their results in order."""
        for_all = self._pack((self._pass, basis, at))
        questions = [
            (for_all, self._pack((sites.precision[team.rows], sites.shift[team.rows])))
            for team in self.teams
        ]
        results = self._shared.ask(
            _work_for_team, questions, "condition" if at is None else "update"
        )
        return [_unpack(each) for each in results]

    def _pack(self, value):
        """Return a value as other processes receive it: pickled unless memory is shared."""
        return value if self._shares_memory else pickle.dumps(value, protocol=5)

    def _package(self, k):
        """Return a team and the margins of its answers, as bytes where memory is not shared.

        Arrays themselves joblib would share in ways of its own, by files on one machine, with dask
        by one copy on some worker, which is lost with that worker.
        """
        team = self.teams[k]
        if self._shares_memory:
            return self.margins, team
        used, margin = np.unique(team.answered.margin, return_inverse=True)
        margins = MarginTable(*(part[used] for part in self.margins))
        return self._pack((margins, replace(team, answered=replace(team.answered, margin=margin))))


def _unpack(value):
    """Return a value that was packed for another process."""
    return pickle.loads(value) if isinstance(value, bytes) else value


@dataclass(eq=False)
class _HeldTeam:
    """A team that this process holds, and the tastes that it last computed."""

    margins: MarginTable
    team: Team
    at: int = 0
    local: list[Local] = field(default_factory=list)


_HERE = PartCache[_HeldTeam]()


def _work_for_team(run: str, number: int, question: tuple[Any, Any], team: Any) -> Any:
    """Return the result of a team, as bytes if asked by bytes; None if it is not held here."""
    entry = _HERE.get(run, number)
    if entry is None:
        if team is None:
            return None
        entry = _HERE.add(run, number, _HeldTeam(*_unpack(team)))
    turn, basis, at = _unpack(question[0])
    precision, shift = _unpack(question[1])
    with blas_threads(0):
        result: Any = None
        if at is None or entry.at != turn:
            table, d = entry.margins.rotate(basis), entry.margins.heights.shape[1]
            entry.local, result = entry.team.condition(table, d, precision, shift, basis)
            entry.at = turn
        if at is not None:
            view = TasteMargins.from_margins(entry.margins, basis, at)
            result = entry.team.update_sites(
                entry.local, view, entry.margins.rest, precision, shift
            )
    return pickle.dumps(result, protocol=5) if isinstance(question[0], bytes) else result
