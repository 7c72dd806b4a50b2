"""Processor seconds of exact fits (EP) as duels and items grow, and of predictions between them.

    python benchmarks/speed/exact.py --tasks fixed-10000 names
    python benchmarks/speed/exact.py --before exact_before.csv

Each task runs in a process of its own, on one core, and prints its row as it ends. Processor time
is what is counted, so that a busy machine disturbs it little; give ``--before`` the table of
another version, made on the same machine, for ratios. Beside the time stands the held-out
log-loss of noisy duels (of rated items the concordance), which must not suffer.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, load_problem, report

FEATURES = 10
LENGTH = 3.0  # of the utility, in standard deviations of a feature
NOISE = 0.1
KERNEL = RBF(LENGTH)


def utilities(items, rng):
    """A draw of a Gaussian process of RBF covariance, by random features."""
    frequencies = rng.standard_normal((2000, items.shape[1])) / LENGTH
    phases = rng.uniform(0.0, 2.0 * np.pi, 2000)
    waves = np.cos(items @ frequencies.T + phases)
    return waves @ rng.standard_normal(2000) * np.sqrt(2.0 / 2000)


def duels(utility, n, rng):
    """Pairs of items by position, and noisy outcomes."""
    first = rng.integers(0, len(utility), n)
    second = (first + rng.integers(1, len(utility), n)) % len(utility)
    noise = np.sqrt(2.0 * NOISE) * rng.standard_normal(n)
    return np.stack([first, second], axis=1), (utility[first] - utility[second] + noise > 0) * 1


def among(n_items, n_duels, **options):
    """Duels among the items of a table."""
    rng = np.random.default_rng(0)
    items = rng.standard_normal((n_items, FEATURES))
    utility = utilities(items, rng)
    X, y = duels(utility, n_duels, rng)
    test, wanted = duels(utility, 20_000, rng)
    model = PairwisePreferenceRegressor(items=ItemTable(items), **options)
    return model, (X, y), (test, wanted)


def names(n_players, n_games):
    """Games of players of whom nothing but the name is known."""
    rng = np.random.default_rng(0)
    utility = rng.standard_normal(n_players)
    X, y = duels(utility, n_games, rng)
    test, wanted = duels(utility, 20_000, rng)
    table = ItemTable.from_names([f"player {k}" for k in range(n_players)])
    return PairwisePreferenceRegressor(items=table), (X, y), (test, wanted)


def distinct(n_duels):
    """Duels of items that meet once."""
    problem = load_problem("gp4", 1e-2, n_duels)
    X = np.stack([problem["W"], problem["L"]], axis=1)
    test = np.stack([problem["test_a"], problem["test_b"]], axis=1)
    return PairwisePreferenceRegressor(), (X, None), (test, problem["test_y"])


def rated(n_items):
    """Items like wines: correlated features, whole ratings of which the middle ones abound."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((n_items + 1000, FEATURES))
    items = hidden @ (np.eye(FEATURES) + 0.3 * rng.standard_normal((FEATURES, FEATURES)))
    value = 0.8 * utilities(hidden, rng) + 0.6 * rng.standard_normal(len(items))
    rating = np.clip(np.rint(6.0 + 0.9 * value), 3, 9)
    model = PairwisePreferenceRegressor()
    return model, (items[:n_items], rating[:n_items]), (items[n_items:], rating[n_items:])


FIXED = {"kernel": KERNEL, "noise_variance": NOISE, "optimizer": None}
TASKS = {
    "fixed 500 items, 100 000 duels": lambda: among(500, 100_000, **FIXED),
    "fixed 2 000 items, 10 000 duels": lambda: among(2000, 10_000, **FIXED),
    "fixed 2 000 items, 100 000 duels": lambda: among(2000, 100_000, **FIXED),
    "learned 2 000 items, 5 000 duels": lambda: among(2000, 5000),
    "learned 200 distinct duels": lambda: distinct(200),
    "learned 500 distinct duels": lambda: distinct(500),
    "learned 2 000 distinct duels": lambda: distinct(2000),
    "names 2 000 players, 20 000 games": lambda: names(2000, 20_000),
    "rated 1 000 items": lambda: rated(1000),
    "rated 4 898 items": lambda: rated(4898),
    "default 10 000 items, 20 000 duels": lambda: among(10_000, 20_000),
}


def run(name):
    """Row of one task."""
    model, (X, y), (test, wanted) = TASKS[name]()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = time.process_time(), time.perf_counter()
        model.fit(X, y)
        row = {"task": name, "fit s": time.process_time() - start[0]}
        row["wall s"] = time.perf_counter() - start[1]
    start = time.process_time()
    if hasattr(model, "classes_"):
        proba = model.predict_proba(test)
        row["predict s"] = time.process_time() - start
        row["log-loss"] = float(-np.log(proba[np.arange(len(test)), wanted]).mean())
    else:
        model.predict(test)
        row["predict s"] = time.process_time() - start
        row["concordance"] = model.score(test, wanted)
    row["sweeps"] = model.n_iter_
    row["noise"] = float(model.noise_variance_)
    row["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row["said"] = " | ".join(str(each.message) for each in said)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="names, or parts of them")
    parser.add_argument("--out", default=RESULTS / "exact.csv")
    parser.add_argument("--before", help="table of another version, for ratios")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(options.one)))
        return
    before = {}
    if options.before:
        with Path(options.before).open(newline="") as handle:
            before = {row["task"]: row for row in csv.DictReader(handle)}
    rows = []
    for name in (name for name in TASKS if any(part in name for part in options.tasks)):
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.strip().splitlines()[-1])
        if name in before:
            row["before s"] = float(before[name]["fit s"])
            row["ratio"] = row["before s"] / row["fit s"]
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    report(rows, options.out)


if __name__ == "__main__":
    main()
