"""What a pass over answers in shards costs: bytes moved, and processor seconds beside one process.

    python benchmarks/scale/shards.py [--duels 1000000] [--items 100000] [--points 100 500]

The problem is that of `scale.py`. A pass is looked at under one q, by all answers at once in one
process ("whole") and in shards by two worker processes of a dask cluster, which by then know their
shards. Seconds are of processor time, so that others on the
machine count little: of all shards together, of the busier worker, and of the process that asks,
between looks. "ratio" is what two machines gain: whole / (busier worker + asking). Bytes are those
of the pickles of what is sent and returned, of the first pass and of a later one.
"""

import argparse
import os
import pickle
import sys
import time
from collections import Counter
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, needs, report, versions

needs("distributed")
from distributed import Client, LocalCluster
from joblib import Parallel, delayed, parallel_config
from scale import Problem as Answers
from sklearn.gaussian_process.kernels import RBF

from skpref.duels import Comparisons
from skpref.gp._inducing import Inducing, Weights
from skpref.inference import SVI, Problem
from skpref.inference import _workers as _shards
from skpref.inference._natural import AnswerBatch
from skpref.likelihoods import Probit

PASSES = 8


def timed(function, *args):
    """What a task returns, which process did it, in how many seconds of processor time."""
    began = time.thread_time()
    found = function(*args)
    return found, os.getpid(), time.thread_time() - began


class Watched(Parallel):
    """Counts bytes and seconds of the tasks of a pass."""

    moved, seconds = 0, Counter()

    def __call__(self, tasks):
        tasks = list(tasks)
        done = super().__call__(delayed(timed)(function, *args) for function, args, _ in tasks)
        for (_, args, _), (found, process, seconds) in zip(tasks, done, strict=True):
            Watched.moved += len(pickle.dumps(args)) + len(pickle.dumps(found))
            Watched.seconds[process] += seconds
        return [found for found, _, _ in done]


def measured(setting):
    """One row of the table."""
    answers = Answers(setting["items"], setting["features"])
    pairs, won = answers.answers(setting["duels"])
    comparisons = Comparisons.from_duels(answers.items, *pairs.T, won)
    kernel, likelihood = RBF(1.0), Probit(0.01)
    Z = SVI(setting["points"]).prior_rule.prepare(comparisons, kernel, 0).points
    rows, m = comparisons.rows, len(Z)
    space = Inducing(kernel, comparisons.items, rows.margins, Z)
    weights = Weights(np.eye(m), np.ones(m))

    whole, batch = [], AnswerBatch.from_rows(space, rows, likelihood)
    for _ in range(3):
        began = time.process_time()
        batch.evaluate(weights)
        whole.append(time.process_time() - began)
    batch.prior.forget()

    _shards.Parallel = Watched
    shards = _shards.Shards(Problem(space, comparisons, likelihood), None)
    passes = []
    for _ in range(PASSES):
        Watched.moved, Watched.seconds = 0, Counter()
        began = time.process_time()
        shards.evaluate(weights)
        asking = time.process_time() - began
        each = Watched.seconds.values()
        passes.append((Watched.moved, sum(each), max(each), asking))
    later = min(passes[2:], key=lambda each: each[2])
    one = min(whole[1:])
    return setting | {
        "shards": len(shards),
        "first pass MB": round(passes[0][0] / 1e6, 2),
        "later pass MB": round(min(each[0] for each in passes) / 1e6, 2),
        "8 S (m² + 3m + 1) MB": round(len(shards) * 8 * (m**2 + 3 * m + 1) / 1e6, 2),
        "whole s": round(one, 2),
        "all shards s": round(later[1], 2),
        "busier worker s": round(later[2], 2),
        "asking s": round(later[3], 2),
        "ratio": round(one / (later[2] + later[3]), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duels", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--points", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--out", type=Path, default=RESULTS / "shards.csv")
    options = parser.parse_args()
    common = {"duels": options.duels, "items": options.items, "features": options.features}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster), parallel_config("dask"):
        rows = [measured({**common, "points": m}) for m in options.points]
    report(rows, options.out, distributed=versions("distributed")["distributed"])


if __name__ == "__main__":
    main()
