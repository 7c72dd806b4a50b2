"""Answers in shards: the sums over all answers by several workers, through joblib.

How many shards there are, and which answers are in each, follows from the answers alone, and sums
are taken in the order of the shards, so that neither the number nor the kind of the workers, nor
what becomes of one of them, changes a result. A worker is sent q and returns sums. It keeps the
answers of the shards that it has seen; one that does not know a shard, because it is new or was
restarted, says so and is sent the answers.
"""

import pickle
import weakref
from collections import OrderedDict
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from math import sqrt
from threading import Lock
from typing import Self, cast
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import blas_threads
from skpref.data import Rows, duel_rows, gathered_rows
from skpref.gp import Inducing, Moments, Weights, moments
from skpref.inference._base import Problem
from skpref.inference._natural import Batch, Look
from skpref.likelihoods import Likelihood

# Rows of a shard.
_ROWS = 50_000
# Bytes of features that a process keeps from one look to the next, and runs whose answers it keeps.
_ROOM = 2**29
_RUNS = 4
# Times that a pass is tried: where joblib loses a process of its own, all that were running fail.
_TRIES = 3


def all_answers(
    problem: Problem, n_jobs: int | None, before: Weights | None = None
) -> "Batch | Shards":
    """The answers of a problem, to be looked at: in shards if there are many and it is asked for.

    Parameters
    ----------
    problem : Problem
    n_jobs : int or None
        None: in shards only within a `joblib.parallel_config` that spreads work.
    before : Weights, optional
        What earlier answers told.
    """
    if n_jobs is None:
        backend, n_jobs_there = get_active_backend()
        # Not by how many workers there are: they come and go.
        asked = (backend.default_n_jobs if n_jobs_there is None else n_jobs_there) != 1
    else:
        asked = True
    if asked and len(problem.rows) > _ROWS:
        return Shards(problem, n_jobs, before)
    prior = cast(Inducing, problem.prior)
    return Batch.of(prior, problem.rows, problem.likelihood, before)


def cut(rows: Rows, size: int) -> list[NDArray[np.intp]]:
    """Numbers of the rows of every shard, at most so many.

    The items are cut into ranges, and the rows ordered by the two ranges that their items are in:
    n shards then have each item about √(2n) times among them, instead of n times.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.data._comparisons import duel_rows
    >>> one = np.ones(4, dtype=np.int8)
    >>> rows = duel_rows(4, np.array([0, 3, 1, 2]), np.array([1, 2, 0, 3]), one, one, np.ones(4))
    >>> [shard.tolist() for shard in cut(rows, 2)]
    [[0, 2], [1, 3]]
    """
    count = -(-len(rows) // size)
    side = int(np.ceil(sqrt(2.0 * count + 0.25) - 0.5))  # side × (side + 1) / 2 ≥ count
    first, second = (ends * side // rows.n_items for ends in (rows.first, rows.second))
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.argsort(high * side + low, kind="stable")
    return [np.sort(part) for part in np.array_split(order, count)]


class Shards:
    """All answers of a problem; what `_svi` and `Path` need of a `Batch`.

    Parameters
    ----------
    problem : Problem
    n_jobs : int or None
        Of joblib.
    before : Weights, optional
        What earlier answers told.
    """

    def __init__(self, problem: Problem, n_jobs: int | None, before: Weights | None = None):
        self._problem, self._n_jobs, self._before = problem, n_jobs, before
        self._parts = cut(problem.rows, _ROWS)
        self._run, self._sent = uuid4().hex, False
        weakref.finalize(self, _HERE.drop, self._run)

    def __len__(self) -> int:
        return len(self._parts)

    def look(self, weights: Weights) -> Look:
        """The answers seen under a q; sites are not brought back from the workers."""
        at = moments(weights)
        sums = np.zeros(_length(len(at.mean)))
        for told in self._told(_packed(at)):
            sums += told
        fit, shift, gain = _unpacked(sums, len(at.mean))
        return Look(at, fit, Weights(gain, shift), {}).after(self._before)

    def _told(self, q):
        """What each shard tells, in their order."""
        every = range(len(self))
        found = self._asked(q, every) if self._sent else dict.fromkeys(every)
        unknown = [k for k, told in found.items() if told is None]
        found |= self._asked(q, unknown, with_answers=True)
        self._sent = True
        return found.values()

    def _asked(self, q, numbers, with_answers=False):
        if not numbers:
            return {}
        for left in reversed(range(_TRIES)):
            tasks = (
                delayed(_work)(self._run, k, q, self._shard(k) if with_answers else None)
                for k in numbers
            )
            # Threads unless a `parallel_config` says otherwise: they share what they know.
            parallel = Parallel(self._n_jobs, batch_size=1, prefer="threads")
            try:
                return dict(zip(numbers, parallel(tasks), strict=True))
            except BrokenExecutor:
                if not left:
                    raise

    def _shard(self, k):
        return Shard.of(self._problem, self._parts[k])


@dataclass(frozen=True, eq=False)
class Shard:
    """What a worker must know of a shard.

    Its ``arrays`` are bytes: arrays themselves joblib would share in ways of its own, by files on
    one machine, with dask by one copy on some worker, which is lost with that worker.
    """

    kernel: Kernel
    likelihood: Likelihood
    arrays: bytes

    @classmethod
    def of(cls, problem: Problem, numbers: NDArray[np.intp]) -> Self:
        """Some rows of a problem."""
        prior = cast(Inducing, problem.prior)
        used, rows = gathered_rows(problem.rows, numbers)
        ends = rows.first.astype(np.int32), rows.second.astype(np.int32)
        told = rows.kind, rows.lead, rows.counts, rows.judge
        arrays = prior.Z, prior.items[used], *ends, *told
        return cls(prior.kernel, problem.likelihood, pickle.dumps(arrays, protocol=5))

    def batch(self, like: Inducing | None) -> Batch:
        """Ready to be looked at; ``like`` is the prior of another shard of the same run."""
        Z, items, first, second, *rest = pickle.loads(self.arrays)
        rows = duel_rows(len(items), first.astype(np.intp), second.astype(np.intp), *rest)
        prior = Inducing(self.kernel, items, rows.margins, Z, like)
        return Batch.of(prior, rows, self.likelihood)


@dataclass(eq=False)
class _Known:
    """A shard that this process knows, and whether its features are kept between looks."""

    batch: Batch
    stays: bool = False

    def leave(self):
        self.stays = False
        self.batch.prior.forget()


class _Store:
    """Shards that this process knows, by run and number: of the runs that were last asked for."""

    def __init__(self):
        self._lock, self._runs = Lock(), OrderedDict()

    def get(self, run: str, number: int) -> _Known | None:
        with self._lock:
            if run not in self._runs:
                return None
            self._runs.move_to_end(run)
            return self._runs[run].get(number)

    def add(self, run: str, number: int, shard: Shard) -> _Known:
        with self._lock:
            others = list(self._runs.get(run, {}).values())
        known = _Known(shard.batch(others[0].batch.prior if others else None))
        with self._lock:
            self._runs.setdefault(run, {})[number] = known
            self._runs.move_to_end(run)
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)
            known.stays = self._room_for(known.batch.prior.size, run)
        return known

    def _room_for(self, size, run):
        """Whether so many bytes of features may be kept, if need be instead of older runs'."""
        for name, shards in self._runs.items():  # the run itself is last
            every = (each for known in self._runs.values() for each in known.values())
            if sum(each.batch.prior.size for each in every if each.stays) + size <= _ROOM:
                return True
            if name != run:
                for each in shards.values():
                    each.leave()
        return False

    def drop(self, run: str) -> None:
        """Forget a run."""
        with self._lock:
            self._runs.pop(run, None)


_HERE = _Store()


def _work(run: str, number: int, q: bytes, shard: Shard | None) -> NDArray[np.float64] | None:
    """What a shard tells under q; None if this process does not know the shard and is not told."""
    known = _HERE.get(run, number)
    if known is None:
        if shard is None:
            return None
        known = _HERE.add(run, number, shard)
    prior = known.batch.prior
    with blas_threads(len(prior.Z)):
        look = known.batch.look_at(_moments(q, len(prior.Z)))
    if not known.stays:
        prior.forget()
    lower = np.tril_indices(len(prior.Z))
    return np.concatenate([[look.fit], look.wanted.shift, look.wanted.gain[lower]])


def _length(m):
    return 1 + m + m * (m + 1) // 2


def _packed(at):
    """Mean and root of q as bytes; the root is lower triangular."""
    return np.concatenate([at.mean, at.root[np.tril_indices(len(at.mean))]]).tobytes()


def _moments(q, m):
    values = np.frombuffer(q)
    root = np.zeros((m, m))
    root[np.tril_indices(m)] = values[m:]
    return Moments(values[:m], root, np.nan, np.nan)


def _unpacked(sums, m):
    gain = np.zeros((m, m))
    gain[np.tril_indices(m)] = sums[1 + m :]
    gain += np.tril(gain, -1).T
    return float(sums[0]), sums[1 : 1 + m], gain
