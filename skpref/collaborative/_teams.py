"""Teams of users, and the threads, processes or machines that they are sent to."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from skpref._utils import Array, blas_threads
from skpref.collaborative._arrow import (
    Basis,
    ByUser,
    Common,
    Features,
    Local,
    MarginTable,
    SharedLikelihood,
    TasteMargins,
    UserBlock,
    condition_tastes,
    marginal,
)
from skpref.inference import SharedOut, Store, site_update
from skpref.likelihoods import Answers, Likelihood

# Blocks of users that a team has.
_TOGETHER = 16


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
    users, rows : ndarray of int
        Numbers of the users and of their answers among all.
    blocks : list of UserBlock
        With numbers within the team.
    margin : ndarray of int of shape (n,)
        Rows of `MarginTable`.
    sign, copies : ndarray of shape (n,)
    power : ndarray of shape (n,) or None
    answers : Answers
    psi, rest : ndarray of shape (n_users, r) and (n_users,)
        Features of the users.
    likelihood : Likelihood
    """

    users: NDArray[np.intp]
    rows: NDArray[np.intp]
    blocks: list[UserBlock]
    margin: NDArray[np.intp]
    sign: Array
    copies: Array
    power: Array | None
    answers: Answers
    psi: Array
    rest: Array
    likelihood: Likelihood

    @classmethod
    def of(
        cls,
        by_user: ByUser,
        likelihood: Likelihood,
        features: Features | None,
        blocks: list[UserBlock],
    ) -> Self:
        """Return the team of users in blocks, numbered among all."""
        users = np.concatenate([block.users for block in blocks])
        rows = np.concatenate([block.rows[block.is_answer] for block in blocks])
        own, first, row = [], 0, 0
        for block in blocks:
            n, within = int(np.count_nonzero(block.is_answer)), np.zeros_like(block.rows)
            within[block.is_answer] = row + np.arange(n)
            own.append(UserBlock(first + np.arange(len(block.users)), within, block.is_answer))
            first, row = first + len(block.users), row + n
        none = Features(np.zeros((by_user.n_users, 0)), np.zeros(by_user.n_users))
        user_features = none if features is None else features
        return cls(
            users=users,
            rows=rows,
            blocks=own,
            margin=by_user.margin[rows],
            sign=by_user.sign[rows],
            copies=by_user.copies[rows],
            power=None if by_user.power is None else by_user.power[rows],
            answers=by_user.answers.take(rows),
            psi=user_features.psi[users],
            rest=user_features.rest[users],
            likelihood=likelihood,
        )

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
        basis = basis._replace(psi=self.psi, rest=self.rest)
        every = self.copies * precision, self.copies * shift
        locals_: list[Local] = []

        def block_likelihoods() -> Iterator[SharedLikelihood]:
            for block in self.blocks:
                block_precision, block_shift = (
                    np.where(block.is_answer, part[block.rows], 0.0) for part in every
                )
                rows = table[self.margin[block.rows]]
                local, summary = condition_tastes(
                    block, rows, d, (block_precision, block_shift), basis
                )
                locals_.append(local)
                yield summary

        total = reduce(SharedLikelihood.plus, block_likelihoods())
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
        mean, variance = np.empty((2, len(self.rows)))
        value, own = 0.0, np.zeros((len(view.common.by_feature),) * 2)
        for block, tastes in zip(self.blocks, local, strict=True):
            q = marginal(tastes, view.common, self.psi[block.users], view.wide)
            own, value = own + q.own, value - 0.5 * q.quadratic
            here = block.rows[block.is_answer]
            moments = view.moments(self.margin[block.rows], q)
            mean[here], variance[here] = (part[block.is_answer] for part in moments)
        sites, gained = factors(
            self.likelihood, self, (mean, variance), rest[self.margin], (precision, shift)
        )
        return TeamResult(sites, value + float(self.copies @ gained), own)


def factors(
    likelihood: Likelihood,
    answered: "Team | ByUser",
    marginal: tuple[Array, Array],
    rest: Array | float,
    before: tuple[Array, Array],
) -> tuple[AnswerSites, Array]:
    """Return the answers' factors updated by expectation propagation, and log normalisers.

    Parameters
    ----------
    likelihood : Likelihood
    answered : Team or ByUser
        The answers, their signs and powers.
    marginal : (ndarray, ndarray)
        Means and variances under q of the margins that the factors are of, shape (n,).
    rest : ndarray of shape (n,) or float
        Variance of what is added to these margins.
    before : (ndarray, ndarray)
        Precisions and shifts of the factors that are in q.

    Returns
    -------
    AnswerSites
        Where a cavity is improper, the factor before.
    ndarray of shape (n,)
        Each answer's part of the log evidence, but for a constant of q.
    """
    (mean, variance), (precision, shift), sign = marginal, before, answered.sign
    update = site_update(
        (sign * mean, variance),
        (precision, sign * shift),
        likelihood,
        answered.answers,
        answered.power,
        rest,
    )
    sites = AnswerSites(
        update.site_precision, sign * update.site_shift, update.cav_mean, update.cav_var
    )
    return sites, update.log_gain


class Crew:
    """All teams, in this process.

    Parameters
    ----------
    margins : MarginTable
    teams : list of Team
    parallel : joblib.Parallel
        Over teams.
    """

    def __init__(self, margins: MarginTable, teams: list[Team], parallel: Parallel) -> None:
        self.margins, self.teams = margins, teams
        self._parallel = parallel
        self._local: list[list[Local]] = []

    def condition(self, sites: AnswerSites, basis: Basis) -> list[SharedLikelihood]:
        """Return each team's likelihood of what users have in common."""
        team_results = list(self._condition_teams(sites, basis))
        self._local = [local for local, _ in team_results]
        return [likelihood for _, likelihood in team_results]

    def update_sites(self, sites: AnswerSites, basis: Basis, at: Common) -> list[TeamResult]:
        """Return each team's updated factors, from the tastes that it conditioned last."""
        arguments = TasteMargins.of(self.margins, basis, at), self.margins.rest
        calls = (
            delayed(team.update_sites)(
                local, *arguments, sites.precision[team.rows], sites.shift[team.rows]
            )
            for team, local in zip(self.teams, self._local, strict=True)
        )
        return list(self._parallel(calls))

    def local(self, sites: AnswerSites, basis: Basis) -> list[list[Local]]:
        """Return the tastes of each team given what users have in common."""
        return self._local

    def _condition_teams(self, sites, basis):
        arguments = self.margins.turned(basis), self.margins.heights.shape[1]
        return self._parallel(
            delayed(team.condition)(
                *arguments, sites.precision[team.rows], sites.shift[team.rows], basis
            )
            for team in self.teams
        )


def in_teams(
    by_user: ByUser, likelihood: Likelihood, features: Features | None, width: int
) -> list[Team]:
    """Cut all users into teams; ``width`` as in `ByUser.blocks`."""
    blocks = by_user.blocks(width)
    return [
        Team.of(by_user, likelihood, features, blocks[k : k + _TOGETHER])
        for k in range(0, len(blocks), _TOGETHER)
    ]


# Fits whose teams a process keeps.
_RUNS = 2


def crew_of(margins: MarginTable, teams: list[Team], n_jobs: int | None) -> Crew:
    """Return all teams, in threads unless a `joblib.parallel_config` asks for processes."""
    backend, jobs_there = get_active_backend(prefer="threads")
    jobs = n_jobs if n_jobs is not None else jobs_there
    jobs = backend.default_n_jobs if jobs is None else jobs
    if len(teams) > 1 and jobs != 1 and not getattr(backend, "supports_sharedmem", False):
        return RemoteCrew(margins, teams, n_jobs)
    return Crew(margins, teams, Parallel(n_jobs=n_jobs, prefer="threads"))


class RemoteCrew(Crew):
    """All teams, in other processes.

    Parameters
    ----------
    margins : MarginTable
    teams : list of Team
    n_jobs : int or None
    """

    def __init__(self, margins: MarginTable, teams: list[Team], n_jobs: int | None) -> None:
        super().__init__(margins, teams, Parallel(n_jobs=1))
        self._pass = 0
        self._shared = SharedOut(len(teams), self._package, n_jobs, _HERE)

    def condition(self, sites: AnswerSites, basis: Basis) -> list[SharedLikelihood]:
        """Return each team's likelihood of what users have in common."""
        self._pass += 1
        return self._ask_teams(sites, basis, None)

    def update_sites(self, sites: AnswerSites, basis: Basis, at: Common) -> list[TeamResult]:
        """Return each team's updated factors, from the tastes that it conditioned last."""
        return self._ask_teams(sites, basis, at)

    def local(self, sites: AnswerSites, basis: Basis) -> list[list[Local]]:
        """Return the tastes of each team, computed here: they are larger than their sources."""
        return [local for local, _ in self._condition_teams(sites, basis)]

    def _ask_teams(self, sites, basis, at):
        bare = basis._replace(psi=basis.psi[:0], rest=basis.rest[:0])  # a team knows its own
        for_all = pickle.dumps((self._pass, bare, at), protocol=5)
        own = [
            pickle.dumps((sites.precision[team.rows], sites.shift[team.rows]), protocol=5)
            for team in self.teams
        ]
        questions = [(for_all, each) for each in own]
        results = self._shared.ask(_work, questions, "condition" if at is None else "update")
        return [pickle.loads(each) for each in results]

    def _package(self, k):
        """Return a team and the margins of its answers, as bytes.

        Arrays themselves joblib would share in ways of its own, by files on one machine, with dask
        by one copy on some worker, which is lost with that worker.
        """
        team = self.teams[k]
        used, margin = np.unique(team.margin, return_inverse=True)
        margins = MarginTable(*(part[used] for part in self.margins))
        return pickle.dumps((margins, replace(team, margin=margin)), protocol=5)


@dataclass(eq=False)
class _HeldTeam:
    """A team that this process holds, and the tastes that it last computed."""

    margins: MarginTable
    team: Team
    at: int = 0
    local: list[Local] = field(default_factory=list)


_HERE = Store[_HeldTeam](_RUNS)


def _work(run: str, number: int, question: tuple[bytes, bytes], team: bytes | None) -> bytes | None:
    """Return the result of a team as bytes; None if this process does not hold the team."""
    entry = _HERE.get(run, number)
    if entry is None:
        if team is None:
            return None
        entry = _HERE.add(run, number, _HeldTeam(*pickle.loads(team)))
    turn, basis, at = pickle.loads(question[0])
    precision, shift = pickle.loads(question[1])
    with blas_threads(0):
        result: Any = None
        if at is None or entry.at != turn:
            table, d = entry.margins.turned(basis), entry.margins.heights.shape[1]
            entry.local, result = entry.team.condition(table, d, precision, shift, basis)
            entry.at = turn
        if at is not None:
            view = TasteMargins.of(entry.margins, basis, at)
            result = entry.team.update_sites(
                entry.local, view, entry.margins.rest, precision, shift
            )
            entry.local, entry.at = [], 0
    return pickle.dumps(result, protocol=5)
