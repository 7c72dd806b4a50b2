"""Votes saved by knowing of which features more is better.

    python benchmarks/learning/monotone.py

Simulated people choose one of two phones. Their utility falls with the price, rises with the
battery, and depends on three more features, not in one direction; by its noise one duel in twelve
comes out the other way. The candy data, which ship, have real duels; of these chocolate is taken
for better. A part of each size is learned from with and without ``monotone=``, one of them with the
opposite too; 1000 further duels are predicted. "share saved" is the share of the votes that a fit
without needs to be as good, by interpolation in the logarithm of their number, of means over seeds;
it is empty beyond the sizes measured.
"""

import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np

from skpref import PairwisePreferenceRegressor
from skpref.datasets import load_candy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

N_TEST = 1000
SIZES = few((15, 30, 60, 120), (15,))
N_SEEDS = few(3, 1)
N_OPPOSITE = SIZES[len(SIZES) // 2]


def phones(rng, n):
    """Duels of phones: price, battery, size, weight and camera, each from 0 to 1, and who won."""
    X = rng.random((n, 2, 5))
    price, battery, size, weight, camera = np.moveaxis(X, -1, 0)
    utility = -1.5 * np.sqrt(price) + battery + np.sin(4.0 * size) - (weight - 0.4) ** 2
    utility += 0.5 * np.cos(3.0 * camera)
    margin = utility[:, 0] - utility[:, 1]
    return X, margin + 0.3 * rng.standard_normal(n) > 0.0


def problems(seed):
    """Names of problems, with columns in which they are monotone, and shuffled duels."""
    rng = np.random.default_rng(seed)
    yield "phones", {0: -1, 1: 1}, *phones(rng, max(SIZES) + N_TEST)
    candy = load_candy()
    rows = rng.permutation(len(candy.X))[: max(SIZES) + N_TEST]
    chocolate = candy.feature_names.index("chocolate")
    yield "candy", {chocolate: 1}, candy.X[rows], candy.y[rows] > 0


def measured(X, y, n, monotone):
    """Log-loss on the last duels, log evidence, and seconds, of a fit to the first n."""
    began = time.process_time()
    model = PairwisePreferenceRegressor(monotone=monotone).fit(X[:n], y[:n])
    seconds = time.process_time() - began
    right = np.where(y[-N_TEST:], 1, 0)
    proba = model.predict_proba(X[-N_TEST:])[np.arange(N_TEST), right]
    return -np.mean(np.log(proba)), model.log_marginal_likelihood_value_, seconds


def votes_needed(loss, losses):
    """Votes by which a curve of losses comes to a loss; NaN beyond the sizes measured."""
    falling = np.minimum.accumulate(losses)
    if not falling[-1] < loss < falling[0]:
        return np.nan
    return float(np.exp(np.interp(-loss, -falling, np.log(SIZES))))


def main():
    """Measure all and print the table."""
    warnings.simplefilter("ignore")
    results = {}
    for seed in range(N_SEEDS):
        for problem, columns, X, y in problems(seed):
            wrong = {column: -sign for column, sign in columns.items()}
            cases = [(n, name) for n in SIZES for name in ("none", "true")]
            for n, name in [*cases, (N_OPPOSITE, "opposite")]:
                monotone = {"none": None, "true": columns, "opposite": wrong}[name]
                result = measured(X, y, n, monotone)
                results.setdefault((problem, name, n), []).append(result)
                print(seed, problem, name, n, *np.round(result, 3), flush=True)
    means = {key: np.mean(each, axis=0) for key, each in results.items()}
    rows = []
    for (problem, name, n), (loss, evidence, seconds) in means.items():
        without = [means[problem, "none", size][0] for size in SIZES]
        needed = votes_needed(loss, without) if name == "true" else np.nan
        gain = evidence - means[problem, "none", n][1]
        rows.append(
            {
                "problem": problem,
                "monotone": name,
                "votes": n,
                "log loss": round(float(loss), 4),
                "evidence gained": round(float(gain), 2),
                "share saved": "" if np.isnan(needed) else round(1.0 - n / needed, 2),
                "seconds": round(float(seconds), 2),
            }
        )
    report(rows, RESULTS / "monotone.csv")


if __name__ == "__main__":
    main()
