"""Seconds and effective draws of `HMC` where answers repeat or contradict each other.

    python benchmarks/posterior/bounded_sampling.py [--methods auto walls margins]
        [--cases NAME ...]

Every case is one run of the engine with its defaults (1 000 draws, 20 chains) at given
hyperparameters, without the approximation that it starts from. `effective` is the least bulk
effective size; a warning of the engine is told. "margins" alone is measured on the slow side of its
own, too: answers that agree under little noise. `gp4` duels are those of `samplers.py`.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.inference import HMC
from skpref.likelihoods import Probit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import problems_file
from samplers import generate


def gp4(n_duels, flipped, noise_variance=1e-4):
    """Duels of random items in four dimensions, some with their answer turned round."""
    path = problems_file()
    if path is not None:
        with np.load(path) as stored:
            winner, loser = (stored[f"gp4_{noise_variance:g}_{side}"][:n_duels] for side in "WL")
    else:
        winner, loser = (each[:n_duels] for each in generate("gp4", noise_variance, 2000))
    swap = (np.random.default_rng(0).random(n_duels) < flipped)[:, None]
    return np.where(swap, loser, winner), np.where(swap, winner, loser)


def random_scores(n_duels, n_items):
    """Duels of a few items whose winners are random."""
    rng = np.random.default_rng(0)
    items = rng.random((n_items, 2))
    pairs = np.array([rng.permutation(n_items)[:2] for _ in range(n_duels)])
    return items[pairs[:, 0]], items[pairs[:, 1]]


def one_pair(n_won, n_lost):
    """One pair, asked again and again."""
    ends = np.array([[0.3], [0.0]])[np.repeat([[0, 1], [1, 0]], [n_won, n_lost], axis=0)]
    return ends[:, 0], ends[:, 1]


def nearly_agreeing(n_duels):
    """Duels that agree, and the first once more with the other answer."""
    pairs = np.random.default_rng(1).random((n_duels, 2, 2))
    order = np.argsort(-pairs.sum(axis=2), axis=1)
    pairs = np.take_along_axis(pairs, order[:, :, None], axis=1)
    pairs = np.concatenate([pairs, pairs[:1, ::-1]])
    return pairs[:, 0], pairs[:, 1]


CASES = {
    "1 000 duels of 5 items, σ² = 1e-2": lambda: (random_scores(1000, 5), 1e-2),
    "1 000 duels of 5 items, σ² = 1e-3": lambda: (random_scores(1000, 5), 1e-3),
    "10 000 duels of 20 items, σ² = 1e-2": lambda: (random_scores(10_000, 20), 1e-2),
    "one pair 5:5, σ² = 1e-6": lambda: (one_pair(5, 5), 1e-6),
    "one pair 10:0, σ² = 1e-6": lambda: (one_pair(10, 0), 1e-6),
    "one pair 1:1, σ² = 1e-10": lambda: (one_pair(1, 1), 1e-10),
    "40 agree, one does not, σ² = 1e-6": lambda: (nearly_agreeing(40), 1e-6),
    "40 agree, one does not, σ² = 1e-10": lambda: (nearly_agreeing(40), 1e-10),
    "gp4, 200": lambda: (gp4(200, 0.0), 1e-4),
    "gp4, 500": lambda: (gp4(500, 0.0), 1e-4),
    "gp4, 200, 10 % flipped": lambda: (gp4(200, 0.1), 1e-4),
    "gp4, 500, 10 % flipped": lambda: (gp4(500, 0.1), 1e-4),
    "gp4, 1000, 10 % flipped": lambda: (gp4(1000, 0.1), 1e-4),
}


def measure(case, method):
    """One line of the table."""
    (winner, loser), noise_variance = CASES[case]()
    n = len(winner)
    seen = Comparisons.from_duels(
        np.concatenate([winner, loser]), np.arange(n), np.arange(n, 2 * n), np.ones(n, bool)
    )
    engine = HMC(method=method)
    model = Model(RBF(0.5), Probit(noise_variance, "fixed"), engine)
    problem, near, _ = model.evaluate(seen)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        begin = time.process_time()
        found = engine.run(problem, rng=np.random.default_rng(0), gaussian=near).diagnostics
        seconds = time.process_time() - begin
    effective = found.ess_bulk.min()
    return (
        f"{case:36}{method:9}{found.method:9}{seconds:9.2f}{effective:11.0f}"
        f"{effective / seconds:12.0f}{found.rhat.max():8.3f}  {'warned' if told else ''}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), help="parts of their names")
    options = parser.parse_args()
    print(
        f"{'case':36}{'method':9}{'took':9}{'seconds':>9}{'effective':>11}{'a second':>12}{'R̂':>8}"
    )
    with threadpool_limits(1):
        for case in CASES:
            if any(part in case for part in options.cases):
                for method in options.methods:
                    print(measure(case, method), flush=True)


if __name__ == "__main__":
    main()
