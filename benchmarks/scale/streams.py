"""A stream of answers against one fit on all of them: log-loss on held-out answers, and seconds.

    python benchmarks/scale/streams.py --seeds 3

Items uniform in the unit cube, a utility of random Fourier features, noise variance 0.02, 4 000
held-out answers. The pieces come in random order, or sorted by the first feature of their items,
so that every piece is about items that those before did not reach. Hyperparameters are given, or
learned. Fits by too few points differ among themselves: "another" is the log-loss of one fit on
all answers by points that were placed from another random state. Seconds are of processor time.
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

HELD_OUT = 4000
NOISE = 0.02
# Features and the lengthscale of the utility.
PROBLEMS = ((2, 0.4), (5, 0.8), (10, 1.3))


def problem(seed, d, lengthscale, n, n_items):
    """Items, pairs and outcomes, held-out ones last."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_items, d))
    frequencies = rng.normal(size=(300, d)) / lengthscale
    phases, weights = rng.uniform(0.0, 2.0 * np.pi, 300), rng.normal(size=300) * np.sqrt(2.0 / 300)
    utility = np.cos(X @ frequencies.T + phases) @ weights
    first = rng.integers(n_items, size=n + HELD_OUT)
    second = (first + rng.integers(1, n_items, size=len(first))) % n_items
    noise = np.sqrt(2.0 * NOISE) * rng.normal(size=len(first))
    won = (utility[first] - utility[second] + noise > 0.0).astype(int)
    return X, np.column_stack([first, second]), won


def model(X, points, learned, lengthscale, seed=0):
    """A regressor by so many points."""
    options = {"inference": SVI(points), "items": ItemTable(X), "random_state": seed}
    if learned:
        return PairwisePreferenceRegressor(**options)
    return PairwisePreferenceRegressor(
        RBF(lengthscale), noise_variance=NOISE, optimizer=None, **options
    )


def log_loss(fitted, pairs, y):
    """Of held-out answers, noise included."""
    return float(-np.mean(np.log(fitted.predict_proba(pairs)[np.arange(len(y)), y])))


def rows_of(seed, n, points, pieces):
    """Rows of the table, of one seed, size and number of points."""
    for (d, lengthscale), learned in itertools.product(PROBLEMS, (False, True)):
        X, pairs, y = problem(seed, d, lengthscale, n, max(n // 5, 400))
        test = pairs[n:], y[n:]
        began = time.process_time()
        whole = model(X, points, learned, lengthscale).fit(pairs[:n], y[:n])
        whole_seconds = time.process_time() - began
        other = model(X, points, learned, lengthscale, 1).fit(pairs[:n], y[:n])
        for how in ("random", "by region"):
            order = np.arange(n)
            if how == "by region":
                order = np.argsort(X[pairs[:n]].mean(axis=1)[:, 0], kind="stable")
            stream = model(X, points, learned, lengthscale)
            began = time.process_time()
            for part in np.array_split(order, pieces):
                stream.partial_fit(pairs[part], y[part])
            losses = [log_loss(each, *test) for each in (whole, stream, other)]
            yield {
                "features": d,
                "answers": n,
                "points": points,
                "hyperparameters": "learned" if learned else "given",
                "pieces": how,
                "seed": seed,
                "whole": round(losses[0], 4),
                "stream": round(losses[1], 4),
                "stream - whole": round(losses[1] - losses[0], 4),
                "another": round(losses[2], 4),
                "whole seconds": round(whole_seconds, 2),
                "stream seconds": round(time.process_time() - began, 2),
                "points at the end": len(stream.posterior_.anchors),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--answers", type=int, nargs="+", default=[2500, 10_000])
    parser.add_argument("--points", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS / "streams.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)  # few answers touch the bounds
    rows = []
    for seed, n, points in itertools.product(range(options.seeds), options.answers, options.points):
        for row in rows_of(seed, n, points, options.pieces):
            rows.append(row)
            report(rows, options.out)


if __name__ == "__main__":
    main()
