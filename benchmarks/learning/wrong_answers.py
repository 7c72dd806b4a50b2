"""Log-loss on held-out duels where a share of the answers is wrong: `Lapses` beside `Probit`.

    python benchmarks/learning/wrong_answers.py [--wrong 0.1 0.2] [--draws 8] [--duels 150]

Utilities are draws of a Gaussian process over three features; the better of two random items wins,
but for a share of the answers that is turned round. Both likelihoods learn their parameters of the
same duels. The log-loss is of 500 further answers of the same judge. In
``results/wrong_answers.csv`` are its means over draws, and that of the differences, with its
standard error.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

from skpref import PairwisePreferenceRegressor
from skpref.likelihoods import Lapses, Probit

N_FEATURES, N_HELD_OUT = 3, 500


def losses(wrong, n_duels, rng):
    """Return the log-loss with either likelihood on one draw of utilities."""
    X = rng.random((n_duels + N_HELD_OUT, 2, N_FEATURES))
    frequencies = rng.standard_normal((N_FEATURES, 500)) / 0.5
    waves = np.cos(X @ frequencies + rng.uniform(0.0, 2.0 * np.pi, 500))
    utilities = waves @ rng.standard_normal(500) * np.sqrt(2.0 / 500)
    y = (utilities[:, 0] > utilities[:, 1]) ^ (rng.random(len(X)) < wrong)
    found = []
    for likelihood in (Probit(), Lapses(Probit())):
        model = PairwisePreferenceRegressor(RBF([1.0] * N_FEATURES), likelihood=likelihood)
        model.fit(X[:n_duels], y[:n_duels].astype(int))
        found.append(log_loss(y[n_duels:], model.predict_proba(X[n_duels:])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.1, 0.2])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--duels", type=int, default=150)
    options = parser.parse_args()
    rows = []
    for wrong in options.wrong:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = np.array(
                [
                    losses(wrong, options.duels, np.random.default_rng([seed, 1]))
                    for seed in range(options.draws)
                ]
            )
        difference = each[:, 1] - each[:, 0]
        row = {"wrong": wrong, "draws": len(each), "probit": float(each[:, 0].mean())}
        row |= {"lapses": float(each[:, 1].mean()), "difference": float(difference.mean())}
        row["error"] = float(difference.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else ""
        rows.append(row)
        report(rows, RESULTS / "wrong_answers.csv", quiet=True, arguments=vars(options))
    report(rows, RESULTS / "wrong_answers.csv", arguments=vars(options))


if __name__ == "__main__":
    main()
