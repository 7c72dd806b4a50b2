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
    Block,
    ByUser,
    Common,
    Features,
    Local,
    Margins,
    Seen,
    View,
    look_at,
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


class Looked(NamedTuple):
    """Result of a team's pass.

    Attributes
    ----------
    wanted : AnswerSites
        Factors that its answers ask for.
    value : float
        Its part of the evidence.
    own : ndarray of shape (d, d)
        Second moments of the parts of its tastes of users' own, summed.
    """

    wanted: AnswerSites
    value: float
    own: Array


@dataclass(frozen=True, eq=False)
class Team:
    """Some users and their answers.

    Attributes
    ----------
    users, rows : ndarray of int
        Numbers of the users and of their answers among all.
    blocks : list of Block
        With numbers within the team.
    margin : ndarray of int of shape (n,)
        Rows of `Margins`.
    sign, copies : ndarray of shape (n,)
    power : ndarray of shape (n,) or None
    answers : Answers
    psi, rest : ndarray of shape (n_users, r) and (n_users,)
        Features of the users.
    likelihood : Likelihood
    """

    users: NDArray[np.intp]
    rows: NDArray[np.intp]
    blocks: list[Block]
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
        blocks: list[Block],
    ) -> Self:
        """Of users in blocks, numbered among all."""
        users = np.concatenate([block.users for block in blocks])
        rows = np.concatenate([block.rows[block.there] for block in blocks])
        own, first, row = [], 0, 0
        for block in blocks:
            n, within = int(np.count_nonzero(block.there)), np.zeros_like(block.rows)
            within[block.there] = row + np.arange(n)
            own.append(Block(first + np.arange(len(block.users)), within, block.there))
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

    def tell(
        self, table: Array, d: int, precision: Array, shift: Array, basis: Basis
    ) -> tuple[list[Local], Seen]:
        """Tastes given what users have in common, and the likelihood of that.

        Parameters
        ----------
        table : ndarray of shape (n_margins, d + m)
            `Margins.turned`.
        d : int
        precision, shift : ndarray of shape (n,)
            Of one of equal answers.
        basis : Basis
        """
        basis = basis._replace(psi=self.psi, rest=self.rest)
        every = self.copies * precision, self.copies * shift
        kept: list[Local] = []

        def said() -> Iterator[Seen]:
            for block in self.blocks:
                block_precision, block_shift = (
                    np.where(block.there, part[block.rows], 0.0) for part in every
                )
                rows = table[self.margin[block.rows]]
                local, summary = look_at(block, rows, d, (block_precision, block_shift), basis)
                kept.append(local)
                yield summary

        total = reduce(Seen.plus, said())
        return kept, total

    def look(
        self, local: list[Local], view: View, rest: Array, precision: Array, shift: Array
    ) -> Looked:
        """The updated factors of the answers at q, by expectation propagation.

        Parameters
        ----------
        local : list of Local
            As `tell` gave them.
        view : View
        rest : ndarray of shape (n_margins,)
            Variance of ε.
        precision, shift : ndarray of shape (n,)
            Of the factors before.
        """
        mean, variance = np.empty((2, len(self.rows)))
        value, own = 0.0, np.zeros((len(view.common.by_feature),) * 2)
        for block, known in zip(self.blocks, local, strict=True):
            q = marginal(known, view.common, self.psi[block.users], view.wide)
            own, value = own + q.own, value - 0.5 * q.quadratic
            here = block.rows[block.there]
            moments = view.moments(self.margin[block.rows], q)
            mean[here], variance[here] = (part[block.there] for part in moments)
        sites, gained = factors(
            self.likelihood, self, (mean, variance), rest[self.margin], (precision, shift)
        )
        return Looked(sites, value + float(self.copies @ gained), own)


def factors(
    likelihood: Likelihood,
    answered: "Team | ByUser",
    marginal: tuple[Array, Array],
    rest: Array | float,
    before: tuple[Array, Array],
) -> tuple[AnswerSites, Array]:
    """The updated factors of the answers, by expectation propagation, and their log normalisers.

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
    margins : Margins
    teams : list of Team
    parallel : joblib.Parallel
        Over teams.
    """

    def __init__(self, margins: Margins, teams: list[Team], parallel: Parallel) -> None:
        self.margins, self.teams = margins, teams
        self._parallel = parallel
        self._local: list[list[Local]] = []

    def tell(self, sites: AnswerSites, basis: Basis) -> list[Seen]:
        """Likelihood that each team has of what users have in common."""
        team_results = list(self._told(sites, basis))
        self._local = [local for local, _ in team_results]
        return [seen for _, seen in team_results]

    def look(self, sites: AnswerSites, basis: Basis, at: Common) -> list[Looked]:
        """What each team finds, of the same factors as it told of last."""
        arguments = View.of(self.margins, basis, at), self.margins.rest
        calls = (
            delayed(team.look)(
                local, *arguments, sites.precision[team.rows], sites.shift[team.rows]
            )
            for team, local in zip(self.teams, self._local, strict=True)
        )
        return list(self._parallel(calls))

    def local(self, sites: AnswerSites, basis: Basis) -> list[list[Local]]:
        """Tastes of each team given what users have in common."""
        return self._local

    def _told(self, sites, basis):
        arguments = self.margins.turned(basis), self.margins.heights.shape[1]
        return self._parallel(
            delayed(team.tell)(
                *arguments, sites.precision[team.rows], sites.shift[team.rows], basis
            )
            for team in self.teams
        )


def in_teams(
    by_user: ByUser, likelihood: Likelihood, features: Features | None, width: int
) -> list[Team]:
    """All users; ``width`` as in `ByUser.blocks`."""
    blocks = by_user.blocks(width)
    return [
        Team.of(by_user, likelihood, features, blocks[k : k + _TOGETHER])
        for k in range(0, len(blocks), _TOGETHER)
    ]


# Fits whose teams a process keeps.
_RUNS = 2


def crew_of(margins: Margins, teams: list[Team], n_jobs: int | None) -> Crew:
    """All teams, in threads unless a `joblib.parallel_config` sends work to other processes."""
    backend, jobs_there = get_active_backend(prefer="threads")
    jobs = n_jobs if n_jobs is not None else jobs_there
    jobs = backend.default_n_jobs if jobs is None else jobs
    if len(teams) > 1 and jobs != 1 and not getattr(backend, "supports_sharedmem", False):
        return Away(margins, teams, n_jobs)
    return Crew(margins, teams, Parallel(n_jobs=n_jobs, prefer="threads"))


class Away(Crew):
    """All teams, in other processes.

    Parameters
    ----------
    margins : Margins
    teams : list of Team
    n_jobs : int or None
    """

    def __init__(self, margins: Margins, teams: list[Team], n_jobs: int | None) -> None:
        super().__init__(margins, teams, Parallel(n_jobs=1))
        self._pass = 0
        self._shared = SharedOut(len(teams), self._package, n_jobs, _HERE)

    def tell(self, sites: AnswerSites, basis: Basis) -> list[Seen]:
        """Likelihood that each team has of what users have in common."""
        self._pass += 1
        return self._asked(sites, basis, None)

    def look(self, sites: AnswerSites, basis: Basis, at: Common) -> list[Looked]:
        """What each team finds, of the same factors as it told of last."""
        return self._asked(sites, basis, at)

    def local(self, sites: AnswerSites, basis: Basis) -> list[list[Local]]:
        """Tastes of each team, found here: they are larger than all that they are found from."""
        return [local for local, _ in self._told(sites, basis)]

    def _asked(self, sites, basis, at):
        bare = basis._replace(psi=basis.psi[:0], rest=basis.rest[:0])  # a team knows its own
        for_all = pickle.dumps((self._pass, bare, at), protocol=5)
        own = [
            pickle.dumps((sites.precision[team.rows], sites.shift[team.rows]), protocol=5)
            for team in self.teams
        ]
        questions = [(for_all, each) for each in own]
        results = self._shared.ask(_work, questions, "tell" if at is None else "look")
        return [pickle.loads(each) for each in results]

    def _package(self, k):
        """A team and the margins that it asks about, as bytes.

        Arrays themselves joblib would share in ways of its own, by files on one machine, with dask
        by one copy on some worker, which is lost with that worker.
        """
        team = self.teams[k]
        used, margin = np.unique(team.margin, return_inverse=True)
        margins = Margins(*(part[used] for part in self.margins))
        return pickle.dumps((margins, replace(team, margin=margin)), protocol=5)


@dataclass(eq=False)
class _Known:
    """A team that this process knows, and the tastes that it last found."""

    margins: Margins
    team: Team
    at: int = 0
    local: list[Local] = field(default_factory=list)


_HERE = Store[_Known](_RUNS)


def _work(run: str, number: int, question: tuple[bytes, bytes], team: bytes | None) -> bytes | None:
    """The result of a team; None if this process does not have the team."""
    entry = _HERE.get(run, number)
    if entry is None:
        if team is None:
            return None
        entry = _HERE.add(run, number, _Known(*pickle.loads(team)))
    turn, basis, at = pickle.loads(question[0])
    precision, shift = pickle.loads(question[1])
    with blas_threads(0):
        result: Any = None
        if at is None or entry.at != turn:
            table, d = entry.margins.turned(basis), entry.margins.heights.shape[1]
            entry.local, result = entry.team.tell(table, d, precision, shift, basis)
            entry.at = turn
        if at is not None:
            view = View.of(entry.margins, basis, at)
            result = entry.team.look(entry.local, view, entry.margins.rest, precision, shift)
            entry.local, entry.at = [], 0
    return pickle.dumps(result, protocol=5)
