"""log Pr(v > 0), the evidence of duels, by Laplace, EP, minimax tilting and scipy side by side.

    python benchmarks/posterior/evidence.py [--sizes 5 10 20 50] [--noise 1e-6 1e-4 1e-2 1]

Duels of `gp4` (a draw of a Gaussian process, four features, RBF 0.5), the first t of each size; for
the rows marked flipped, winner and loser of every tenth duel are exchanged. Minimax tilting (Botev
2017) is unbiased and states its error; scipy's is the quasi-Monte Carlo integral of Genz (1992).
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, Laplace
from skpref.samplers import orthant_probability

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, load_problem, report

KERNEL = RBF(0.5)


def duels(noise_variance, n_duels, flipped):
    """Winners and losers."""
    name_of = noise_variance if noise_variance in (1e-4, 1e-2) else 1e-2
    problem = load_problem("gp4", name_of, n_duels)
    W, L = problem["W"].copy(), problem["L"].copy()
    if flipped:
        W[::10], L[::10] = L[::10].copy(), W[::10].copy()
    return W, L


def measure(noise_variance, n_duels, flipped, proposals):
    """One row."""
    W, L = duels(noise_variance, n_duels, flipped)
    row = {"noise_variance": noise_variance, "t": n_duels, "flipped": flipped}
    prior = KERNEL(W) + KERNEL(L) - KERNEL(W, L) - KERNEL(L, W)
    covariance = prior + 2.0 * noise_variance * np.eye(n_duels)

    def minimax():
        return orthant_probability(covariance, proposals, np.random.default_rng(0))

    def by_scipy():
        return multivariate_normal.logcdf(
            np.zeros(n_duels), cov=covariance, maxpts=100_000, abseps=1e-300, releps=1e-3,
            rng=np.random.default_rng(0),
        )  # fmt: skip

    exact, row["minimax_ms"] = _timed(minimax)
    row["minimax"], row["minimax_error"] = exact.log_probability, exact.relative_error
    found, row["scipy_ms"] = _timed(by_scipy)
    row["scipy"] = float(found)
    for name, engine in (("ep", EP()), ("laplace", Laplace())):
        model = PairwisePreferenceRegressor(
            KERNEL, inference=engine, noise_variance=noise_variance, optimizer=None
        )
        model, row[f"{name}_ms"] = _timed(lambda model=model: model.fit(np.stack([W, L], axis=1)))
        row[name] = model.log_marginal_likelihood_value_
        row[f"{name}_off"] = row[name] - row["minimax"]
    row["scipy_off"] = row["scipy"] - row["minimax"]
    return row


def _timed(function):
    start = time.perf_counter()
    result = function()
    return result, 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 50])
    parser.add_argument("--noise", type=float, nargs="+", default=[1e-6, 1e-4, 1e-2, 1.0])
    parser.add_argument("--proposals", type=int, default=100_000)
    options = parser.parse_args()
    rows = []
    for noise_variance in options.noise:
        for n_duels in options.sizes:
            for flipped in (0, 1):
                rows.append(measure(noise_variance, n_duels, flipped, options.proposals))
    order = ["noise_variance", "t", "flipped", "minimax", "minimax_error", "scipy_off", "ep_off"]
    order += ["laplace_off", "minimax_ms", "scipy_ms", "ep_ms", "laplace_ms"]
    report([{k: row[k] for k in order} for row in rows], RESULTS / "evidence.csv")


if __name__ == "__main__":
    main()
