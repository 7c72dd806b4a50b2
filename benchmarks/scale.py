"""How far sparse variational inference reaches: seconds, memory, accuracy, log-loss.

    python benchmarks/scale.py --largest 1000000

The problem: items uniform in the unit cube, a utility of random Fourier features (lengthscale 1),
noise variance 0.01, 5 000 noise-free test pairs. Every row is a process of its own, so that its
peak memory is its own; rows that the CSV holds already are kept, so that a run that was cut short
goes on. Beside it logistic regression on differences of features. Seconds are of processor time,
of one core. "stream" feeds the answers to ``partial_fit`` in pieces of 100 000 that are generated
as they are needed. The log-loss is of P(f(a) > f(b)); "with noise" is that of `predict_proba`, to
which a model counts what it cannot explain.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from common import RESULTS, report
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI

PIECE = 100_000
KEYS = ("method", "duels", "items", "features", "points", "hyperparameters")


class Problem:
    """Items, and answers about them as many as are asked for."""

    def __init__(self, n_items, n_features):
        self.rng = np.random.default_rng(0)
        self.items = self.rng.random((n_items, n_features))
        frequencies = self.rng.standard_normal((500, n_features))
        if n_features > 10:  # a utility of the first ten features
            frequencies[:, 10:] = 0.0
        phases = self.rng.uniform(0.0, 2.0 * np.pi, 500)
        weights = self.rng.standard_normal(500) * np.sqrt(2.0 / 500)
        blocks = np.array_split(self.items, max(n_items // 5000, 1))
        self.utility = np.concatenate(
            [np.cos(block @ frequencies.T + phases) @ weights for block in blocks]
        )
        self.test = self.pairs(5000)

    def pairs(self, n):
        first = self.rng.integers(len(self.items), size=n)
        second = (first + self.rng.integers(1, len(self.items), size=n)) % len(self.items)
        return np.column_stack([first, second])

    def answers(self, n):
        pairs = self.pairs(n)
        margin = self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]
        return pairs, margin + np.sqrt(0.02) * self.rng.standard_normal(n) > 0.0

    def scores(self, probability):
        """Accuracy and log-loss of P(first wins) on the test pairs."""
        won = self.utility[self.test[:, 0]] > self.utility[self.test[:, 1]]
        right = np.clip(np.where(won, probability, 1.0 - probability), 1e-12, 1.0)
        return float(np.mean(right > 0.5)), float(-np.mean(np.log(right)))


def svi(problem, setting):
    """Fitted by sparse variational inference, whole or in pieces; seconds."""
    learned = setting["hyperparameters"] == "learned"
    d = problem.items.shape[1]
    kernel = RBF(np.full(d, np.sqrt(d / 10.0))) if learned else RBF(1.0)
    model = PairwisePreferenceRegressor(
        kernel,
        inference=SVI(setting["points"]),
        items=ItemTable(problem.items),
        optimizer="fmin_l_bfgs_b" if learned else None,
        random_state=0,
    )
    seconds, left = 0.0, setting["duels"]
    while left:
        n = min(left, PIECE) if setting["method"] == "stream" else left
        answers = problem.answers(n)
        began = time.process_time()
        model.partial_fit(*answers)
        seconds += time.process_time() - began
        left -= n
    a, b = problem.items[problem.test[:, 0]], problem.items[problem.test[:, 1]]
    chances = [model.posterior_.win_probability(a, b, noise=noise) for noise in (False, True)]
    return chances, seconds


def logistic(problem, setting):
    """Logistic regression on differences of features; seconds."""
    pairs, y = problem.answers(setting["duels"])
    began = time.process_time()
    X = problem.items[pairs[:, 0]] - problem.items[pairs[:, 1]]
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    seconds = time.process_time() - began
    test = problem.items[problem.test[:, 0]] - problem.items[problem.test[:, 1]]
    return [model.predict_proba(test)[:, 1]] * 2, seconds


def measured(setting):
    """One row of the table."""
    problem = Problem(setting["items"], setting["features"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = logistic if setting["method"] == "logistic" else svi
    chances, seconds = run(problem, setting)
    (accuracy, log_loss), (_, noisy) = map(problem.scores, chances)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return setting | {
        "seconds": round(seconds, 3),
        "peak MiB": round(peak / 1024),
        "of it data MiB": round(before / 1024),
        "accuracy": round(accuracy, 4),
        "log-loss": round(log_loss, 4),
        "with noise": round(noisy, 4),
    }


def settings(largest, features):
    """Rows of the table."""
    for duels in (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000):
        if duels > largest:
            continue
        items = 2000 if duels <= 100_000 else 100_000
        for d in features:
            common = {"duels": duels, "items": items, "features": d}
            if duels <= 1_000_000:
                yield {"method": "logistic", **common, "points": 0, "hyperparameters": ""}
                for points in (100, 500):
                    for how in ("fixed", "learned"):
                        if how == "learned" and points > 100 and duels > 100_000:
                            continue
                        yield {"method": "svi", **common, "points": points, "hyperparameters": how}
            if duels >= 1_000_000:
                rest = {"points": 100, "hyperparameters": "fixed"}
                yield {"method": "stream", **common, **rest}


def kept(path):
    """Rows that the CSV holds, by their setting."""
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        return {tuple(row[key] for key in KEYS): row for row in csv.DictReader(stream)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=100_000, help="duels at most")
    parser.add_argument("--features", type=int, nargs="+", default=[10])
    parser.add_argument("--out", type=Path, default=RESULTS / "scale.csv")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        sys.stdout.write(json.dumps(measured(json.loads(options.one))) + "\n")
        return
    done, rows = kept(options.out), []
    for setting in settings(options.largest, options.features):
        row = done.get(tuple(str(setting[key]) for key in KEYS))
        if row is None:
            command = [sys.executable, __file__, "--one", json.dumps(setting)]
            child = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(child.stdout.strip().splitlines()[-1])
        rows.append(row)
        report(rows, options.out)


if __name__ == "__main__":
    main()
