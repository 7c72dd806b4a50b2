"""Teams of users at the workers of a cluster, or in other processes of this machine.

A worker is sent a team once, and in every pass the factors of its answers and what users have in
common. What it keeps is a matter of time alone: a worker that does not know a team, because it is
new or was restarted, says so and is sent it; tastes that it has not kept since it told of them are
found again.
"""

import pickle
from collections import OrderedDict
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from skpref._threads import blas_threads
from skpref.collaborative._joint import Common, Local, Seen
from skpref.collaborative._people import Basis
from skpref.collaborative._teams import Crew, Looked, Margins, Sites, Team, View

# Fits whose teams a process keeps.
_RUNS = 2
# Times that a pass is tried: where joblib loses a process of its own, all that were running fail.
_TRIES = 3


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
        self._n_jobs, self._run, self._pass = n_jobs, uuid4().hex, 0
        # Teams that somebody may not know of those who are asked, by whether it is for a look.
        self._new = {to_look: set(range(len(teams))) for to_look in (False, True)}

    def tell(self, sites: Sites, basis: Basis) -> list[Seen]:
        """What each team says of what users have in common."""
        self._pass += 1
        return self._asked(sites, basis, None)

    def look(self, sites: Sites, basis: Basis, at: Common) -> list[Looked]:
        """What each team finds, of the same factors as it told of last."""
        return self._asked(sites, basis, at)

    def local(self, sites: Sites, basis: Basis) -> list[list[Local]]:
        """Tastes of each team, found here: they are larger than all that they are found from."""
        return [local for local, _ in self._told(sites, basis)]

    def _asked(self, sites, basis, at):
        bare = basis._replace(psi=basis.psi[:0], rest=basis.rest[:0])  # a team knows its own
        shared = pickle.dumps((bare, at), protocol=5)
        questions = [
            pickle.dumps((sites.precision[team.rows], sites.shift[team.rows]), protocol=5)
            for team in self.teams
        ]
        every, new = range(len(self.teams)), self._new[at is not None]
        found = self._tasks(every, shared, questions, new)
        new.clear()
        # Schedulers are creatures of habit: who does not know a team is asked about it again.
        new.update(k for k in every if found[k] is None)
        if new:
            found |= self._tasks(new, shared, questions, new)
        return [pickle.loads(found[k]) for k in every]

    def _tasks(self, numbers, shared, questions, new):
        for left in reversed(range(_TRIES)):
            tasks = (
                delayed(_work)(
                    (self._run, k, self._pass),
                    shared,
                    questions[k],
                    self._package(k) if k in new else None,
                )
                for k in numbers
            )
            try:
                answers = Parallel(self._n_jobs, batch_size=1)(tasks)
                return dict(zip(numbers, answers, strict=True))
            except BrokenExecutor:
                if not left:
                    raise
        return {}

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


class _Store:
    """Teams that this process knows, of the fits that last asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: OrderedDict[str, dict[int, _Known]] = OrderedDict()

    def get(self, run: str, number: int) -> _Known | None:
        with self._lock:
            if run not in self._runs:
                return None
            self._runs.move_to_end(run)
            return self._runs[run].get(number)

    def add(self, run: str, number: int, known: _Known) -> _Known:
        with self._lock:
            self._runs.setdefault(run, {})[number] = known
            self._runs.move_to_end(run)
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)
        return known


_HERE = _Store()


def _work(who: tuple[str, int, int], shared: bytes, own: bytes, team: bytes | None) -> bytes | None:
    """What a team tells or finds; None if this process does not know it and is not told."""
    run, number, turn = who
    known = _HERE.get(run, number)
    if known is None:
        if team is None:
            return None
        known = _HERE.add(run, number, _Known(*pickle.loads(team)))
    basis, at = pickle.loads(shared)
    precision, shift = pickle.loads(own)
    with blas_threads(0):
        found: Any = None
        if at is None or known.at != turn:
            table, d = known.margins.turned(basis), known.margins.heights.shape[1]
            known.local, found = known.team.tell(table, d, precision, shift, basis)
            known.at = turn
        if at is not None:
            view = View.of(known.margins, basis, at)
            found = known.team.look(known.local, view, known.margins.rest, precision, shift)
            known.local, known.at = [], 0
    return pickle.dumps(found, protocol=5)
