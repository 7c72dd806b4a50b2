"""Optimizers that forget, beside such that do not: judges whose taste moves, or stays.

    python benchmarks/optimize/forgetting.py [--seeds 6] [--duels 20] [--rates 0 0.03 0.1]
        [--judges moved stays walks] [--wrong 0.1] [--out forgetting]

In the unit square the utility is minus the distance from the judge's favourite place. "moved":
after ``--duels`` duels it is elsewhere, at random, and as many duels follow. "walks": it takes a
step of .02 to and fro, up and down, after each duel. "stays": it stays. A judge errs in a share
``--wrong`` of the answers. The regret is the distance of what is recommended from the favourite
place of then: right before it moves, and 5, 10, 20, 30 duels after that. Means over seeds with
standard errors. Rate 0 is the optimizer that does not forget.
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

LATER = (0, 5, 10, 20, 30)
STEP = 0.02


def places(judge, n_duels, rng):
    """The favourite place at each of 2 n + 1 duels."""
    first, second = rng.uniform(0.15, 0.85, (2, 2))
    n = 2 * n_duels + 1
    if judge == "walks":
        walk = first + np.cumsum(STEP * rng.choice([-1.0, 1.0], (n, 2)), axis=0)
        return 1.0 - np.abs(1.0 - walk % 2.0)  # turns round at the ends
    found = np.tile(first, (n, 1))
    if judge == "moved":
        found[n_duels:] = second
    return found


def regrets(judge, rate, n_duels, seed, wrong=0.0):
    """Distance of what is recommended from the favourite place, some duels after half of them."""
    rng = np.random.default_rng([seed, 1])
    favourite = places(judge, n_duels, rng)
    optimizer = PreferenceOptimizer(
        [[0.0, 1.0]] * 2, forgetting_rate=rate or None, random_state=seed
    )
    found = {}
    for n in range(2 * n_duels):
        duel = np.asarray(optimizer.ask())
        first, second = np.linalg.norm(duel - favourite[n], axis=1)
        optimizer.tell(duel, (first < second) != (rng.random() < wrong))
        later = n + 1 - n_duels
        if later in LATER:
            # Before it moves, where it has been; later, where it is.
            place = favourite[n]
            found[later] = float(np.linalg.norm(optimizer.recommend() - place))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--duels", type=int, default=20)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, 0.03, 0.1])
    parser.add_argument("--judges", nargs="+", default=["moved", "stays"])
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--out", default="forgetting")
    told = parser.parse_args()
    rows = []
    for judge in told.judges:
        for rate in told.rates:
            runs = [
                regrets(judge, rate, told.duels, seed, told.wrong) for seed in range(told.seeds)
            ]
            row = {
                "judge": judge,
                "forgetting_rate": rate,
                "wrong": told.wrong,
                "seeds": told.seeds,
            }
            for later in (each for each in LATER if each <= told.duels):
                values = np.array([run[later] for run in runs])
                row[f"regret_{later}"] = float(values.mean())
                row[f"error_{later}"] = float(values.std(ddof=1) / np.sqrt(told.seeds))
            rows.append(row)
            report(rows, RESULTS / f"{told.out}.csv", quiet=True)
    report(rows, RESULTS / f"{told.out}.csv")


if __name__ == "__main__":
    main()
