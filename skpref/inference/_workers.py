"""Work that is shared out to several workers through joblib, and answers in shards.

How many shards there are, and which answers are in each, follows from the answers alone, and sums
are taken in the order of the shards, so that neither the number nor the kind of the workers, nor
what becomes of one of them, changes a result. A worker is sent q and returns sums. It keeps the
answers of the shards that it has seen; one that does not know a shard, because it is new or was
restarted, says so and is sent the answers. Teams of users are shared out in the same way.
"""

import pickle
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from math import sqrt
from threading import Lock
from typing import Any, Generic, Self, TypeVar, cast
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import blas_threads
from skpref.data import Rows, duel_rows, take_rows_with_items
from skpref.gp import Inducing, Moments, Weights, moments
from skpref.inference._base import Problem
from skpref.inference._natural import AnswerBatch, BoundEvaluation
from skpref.likelihoods import Likelihood

T = TypeVar("T")

# Rows of a shard.
_ROWS = 50_000
# Bytes of features that a process keeps from one pass to the next, and runs whose parts it keeps.
_ROOM = 2**29
_RUNS = 4
# Times that a pass is tried: where joblib loses a process of its own, all that were running fail.
_TRIES = 3


# -- work that is shared out -----------------------------------------------------------------


class PartCache(Generic[T]):
    """Parts of work that this process holds, by run and number.

    Parameters
    ----------
    n_runs : int
        Runs that are kept.
    """

    def __init__(self, n_runs: int = _RUNS) -> None:
        self._n_runs, self._lock = n_runs, Lock()
        self._runs: OrderedDict[str, dict[int, T]] = OrderedDict()

    def get(self, run: str, number: int) -> T | None:
        """Return a part, or None if this process does not hold it."""
        with self._lock:
            if run not in self._runs:
                return None
            self._runs.move_to_end(run)
            return self._runs[run].get(number)

    def of(self, run: str) -> list[T]:
        """Return all parts of a run that this process holds."""
        with self._lock:
            return list(self._runs.get(run, {}).values())

    def add(self, run: str, number: int, part: T) -> T:
        """Keep a part and return it; the least recent runs beyond `n_runs` are dropped."""
        with self._lock:
            self._runs.setdefault(run, {})[number] = part
            self._runs.move_to_end(run)
            while len(self._runs) > self._n_runs:
                self._runs.popitem(last=False)
        return part

    def drop(self, run: str) -> None:
        """Drop all parts of a run."""
        with self._lock:
            self._runs.pop(run, None)


class SharedOut:
    """Numbered parts of work, shared out to joblib's workers.

    A worker is sent a part once, keeps it, and from then on is sent questions about it. One that
    does not know a part, because it is new or was restarted, says so and is sent it.

    Parameters
    ----------
    count : int
        Of parts.
    part : callable
        What a worker must know of the part of a number.
    n_jobs : int or None
        Of joblib.
    store : PartCache
        Where workers keep parts; in this process all are forgotten at the end.
    """

    def __init__(
        self, count: int, part: Callable[[int], Any], n_jobs: int | None, store: PartCache
    ) -> None:
        self._count, self._part, self._n_jobs = count, part, n_jobs
        self.run = uuid4().hex
        # By kind of question, the parts that a worker may not have.
        self._new: dict[str, set[int]] = {}
        weakref.finalize(self, store.drop, self.run)

    def __len__(self) -> int:
        return self._count

    def ask(self, work: Callable[..., Any], questions: Sequence[Any], kind: str = "") -> list[Any]:
        """Return the answers to a question about each part, in their order.

        Parameters
        ----------
        work : callable
            Of a run, a number, a question, and the part or None: the answer, or None if the worker
            does not know the part.
        questions : sequence
        kind : str, default=""
            Schedulers send questions of one kind about a part to one worker, time and again.
        """
        every = range(self._count)
        new = self._new.get(kind, set(every))
        answers = self._run_tasks(work, questions, every, new)
        # Who does not know a part will be asked about it again: it is sent the part then, too.
        self._new[kind] = new = {k for k in every if answers[k] is None}
        answers |= self._run_tasks(work, questions, sorted(new), new)
        return [answers[k] for k in every]

    def _run_tasks(self, work, questions, numbers, new):
        """Return the workers' answers by number; tasks are run again where a process was lost."""
        for left in reversed(range(_TRIES if len(numbers) else 0)):
            tasks = (
                delayed(work)(self.run, k, questions[k], self._part(k) if k in new else None)
                for k in numbers
            )
            # Threads, which share memory, unless a `parallel_config` sets another backend.
            parallel = Parallel(self._n_jobs, batch_size=1, prefer="threads")
            try:
                return dict(zip(numbers, parallel(tasks), strict=True))
            except BrokenExecutor:
                if not left:
                    raise
        return {}


# -- answers in shards -----------------------------------------------------------------------


def all_answers(
    problem: Problem, n_jobs: int | None, before: Weights | None = None
) -> "AnswerBatch | Shards":
    """Return the answers of a problem as one batch, or in shards if many are to be spread.

    Parameters
    ----------
    problem : Problem
    n_jobs : int or None
        None: in shards only within a `joblib.parallel_config` that spreads work.
    before : Weights, optional
        Weights of earlier answers, as part of the prior.
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
    return AnswerBatch.from_rows(prior, problem.rows, problem.likelihood, before)


def rows_of_shards(rows: Rows, size: int) -> list[NDArray[np.intp]]:
    """Return the numbers of the rows of every shard, at most ``size`` each.

    The items are cut into ranges, and the rows ordered by the two ranges that their items are in:
    n shards then have each item about √(2n) times among them, instead of n times.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.data._comparisons import duel_rows
    >>> one = np.ones(4, dtype=np.int8)
    >>> rows = duel_rows(4, np.array([0, 3, 1, 2]), np.array([1, 2, 0, 3]), one, one, np.ones(4))
    >>> [shard.tolist() for shard in rows_of_shards(rows, 2)]
    [[0, 2], [1, 3]]
    """
    count = -(-len(rows) // size)
    side = int(np.ceil(sqrt(2.0 * count + 0.25) - 0.5))  # side × (side + 1) / 2 ≥ count
    first, second = (ends * side // rows.n_items for ends in (rows.first, rows.second))
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.argsort(high * side + low, kind="stable")
    return [np.sort(part) for part in np.array_split(order, count)]


class Shards:
    """All answers of a problem in shards, with what `AscentPath` needs of an `AnswerBatch`.

    Parameters
    ----------
    problem : Problem
    n_jobs : int or None
        Of joblib.
    before : Weights, optional
        Weights of earlier answers, as part of the prior.
    """

    def __init__(self, problem: Problem, n_jobs: int | None, before: Weights | None = None):
        self._before, parts = before, rows_of_shards(problem.rows, _ROWS)
        self._shared = SharedOut(
            len(parts), lambda k: _Shard.from_problem(problem, parts[k]), n_jobs, _HERE
        )

    def __len__(self) -> int:
        return len(self._shared)

    def evaluate(self, weights: Weights) -> BoundEvaluation:
        """Evaluate the bound and the target at q; sites are not brought back from the workers."""
        at = moments(weights)
        sums, q = np.zeros(_count_sums(len(at.mean))), _pack_moments(at)
        for shard_sums in self._shared.ask(_sum_shard, [q] * len(self)):
            sums += shard_sums
        fit, shift, gain = _split_sums(sums, len(at.mean))
        return BoundEvaluation(at, fit, Weights(gain, shift), {}).with_earlier_answers(self._before)


@dataclass(frozen=True, eq=False)
class _Shard:
    """What a worker must know of a shard.

    Its ``arrays`` are bytes: arrays themselves joblib would share in ways of its own, by files on
    one machine, with dask by one copy on some worker, which is lost with that worker.
    """

    kernel: Kernel
    likelihood: Likelihood
    arrays: bytes

    @classmethod
    def from_problem(cls, problem: Problem, numbers: NDArray[np.intp]) -> Self:
        """Return the shard of some rows of a problem."""
        prior = cast(Inducing, problem.prior)
        used, rows = take_rows_with_items(problem.rows, numbers)
        ends = rows.first.astype(np.int32), rows.second.astype(np.int32)
        row_arrays = rows.kind, rows.lead, rows.counts, rows.judge, rows.offset
        arrays = prior.Z, prior.items[used], *ends, *row_arrays
        return cls(prior.kernel, problem.likelihood, pickle.dumps(arrays, protocol=5))

    def to_batch(self, like: Inducing | None) -> AnswerBatch:
        """Return the rows as a batch; ``like`` is the prior of another shard of the same run."""
        Z, items, first, second, *rest = pickle.loads(self.arrays)
        rows = duel_rows(len(items), first.astype(np.intp), second.astype(np.intp), *rest)
        prior = Inducing(self.kernel, items, rows.margins, Z, like)
        return AnswerBatch.from_rows(prior, rows, self.likelihood)


@dataclass(eq=False)
class _HeldShard:
    """A shard that this process holds, and whether its features are kept between passes."""

    batch: AnswerBatch
    keeps_features: bool = False

    def drop_features(self):
        """Free the memory of the shard's features."""
        self.keeps_features = False
        self.batch.prior.forget()


class _ShardCache(PartCache[_HeldShard]):
    """Shards, of which some keep their features."""

    def add_shard(self, run: str, number: int, shard: _Shard) -> _HeldShard:
        """Hold a shard and return its entry; older runs drop features to make room for its own."""
        others = self.of(run)
        entry = self.add(
            run, number, _HeldShard(shard.to_batch(others[0].batch.prior if others else None))
        )
        with self._lock:
            entry.keeps_features = self._make_room(entry.batch.prior.size, run)
        return entry

    def _make_room(self, size, run):
        """Drop features of older runs until some of this size have room; tell whether they have."""
        for name, shards in self._runs.items():  # the run itself is last
            every = (each for run_shards in self._runs.values() for each in run_shards.values())
            if sum(each.batch.prior.size for each in every if each.keeps_features) + size <= _ROOM:
                return True
            if name != run:
                for each in shards.values():
                    each.drop_features()
        return False


_HERE = _ShardCache()


def _sum_shard(run: str, number: int, q: bytes, shard: _Shard | None) -> NDArray[np.float64] | None:
    """Return the sums over a shard under q; None if this process does not hold the shard."""
    entry = _HERE.get(run, number)
    if entry is None:
        if shard is None:
            return None
        entry = _HERE.add_shard(run, number, shard)
    prior = entry.batch.prior
    with blas_threads(len(prior.Z)):
        evaluation = entry.batch.evaluate_at(_unpack_moments(q, len(prior.Z)))
    if not entry.keeps_features:
        prior.forget()
    lower = np.tril_indices(len(prior.Z))
    return np.concatenate(
        [[evaluation.fit], evaluation.target.shift, evaluation.target.gain[lower]]
    )


def _count_sums(m):
    """Count the numbers that a shard with m inducing points returns."""
    return 1 + m + m * (m + 1) // 2


def _pack_moments(at):
    """Mean and root of q as bytes; the root is lower triangular."""
    return np.concatenate([at.mean, at.root[np.tril_indices(len(at.mean))]]).tobytes()


def _unpack_moments(q, m):
    """Return moments of q from bytes: a mean of m numbers, and a lower triangular root."""
    values = np.frombuffer(q)
    root = np.zeros((m, m))
    root[np.tril_indices(m)] = values[m:]
    return Moments(values[:m], root, np.nan, np.nan)


def _split_sums(sums, m):
    """Return the fit, the shift and the symmetric gain from a shard's sums."""
    gain = np.zeros((m, m))
    gain[np.tril_indices(m)] = sums[1 + m :]
    gain += np.tril(gain, -1).T
    return float(sums[0]), sums[1 : 1 + m], gain
