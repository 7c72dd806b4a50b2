"""Sushi: the error against the number of a user's duels that are learned from, beside the paper's.

100 users with 45 duels each; a number of duels more is learned from by adding to the smaller one.
``cp``, ``su`` and ``su as there`` are those of ``collaborative.py``; ``cp, 900 known`` is ``cp``
where 900 further users told all of their duels, a bound of what other users can teach. Resumable.

    python benchmarks/users/collaborative_curve.py
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _collaborative_sets import SETS
from collaborative import Half, append, done, regressor, scores, split, summary
from common import RESULTS, few, report, unless_missing

KEY = ("method", "duels", "split")
EACH = 45
KNOWN = ", 900 known"


def run(method, duels, seed):
    """Error and log-loss on the duels left out of the first 100 users."""
    rng = np.random.default_rng(seed)
    every, some = few((1000, 100), (10, 5))
    data = SETS["Sushi"](rng, every)
    chosen = rng.permutation(every)[:some]
    learn, rest = split(data, duels / EACH, rng)
    learn = learn.take(np.isin(learn.user, chosen))
    name = method.removesuffix(KNOWN)
    if name != method:
        others = split(data, 1.0, rng)[0]
        others = others.take(~np.isin(others.user, chosen))
        pairs = ((getattr(learn, part), getattr(others, part)) for part in ("X", "y", "user"))
        learn = Half(*map(np.concatenate, pairs))
    rest = rest.take(np.isin(rest.user, chosen))
    began = time.process_time()
    model = regressor(data, name).fit(learn.X, learn.y, users=learn.user)
    seconds = time.process_time() - began
    proba = model.predict_proba(rest.X, users=rest.user)
    return {**scores(rest.y, proba), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "collaborative_curve.csv"
    there = {tuple(row[key] for key in KEY) for row in done(path)}
    tasks = [
        (method, duels, seed)
        for seed in range(options.splits)
        for method in ("cp", "su", "su as there", f"cp{KNOWN}")
        for duels in (5, 10, 20, 30, 40)
        if KNOWN not in method or duels in (10, 20, 30)
    ]
    for task in tasks[: few(None, 1)]:
        if tuple(map(str, task)) in there:
            continue
        with threadpool_limits(1):
            found = unless_missing("Sushi", run, *task)
        if found is not None:
            append(path, {**dict(zip(KEY, task, strict=True)), **found})
    rows = summary(done(path), ("method", "duels"))
    report(rows, path.with_name("collaborative_curve_summary.csv"), set="Sushi, 100 users")


if __name__ == "__main__":
    main()
