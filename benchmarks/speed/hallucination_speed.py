"""Seconds of one hallucination, and of a fit with sampled engines, on one core.

    python benchmarks/speed/hallucination_speed.py [--repeats 30] [--without-1000]

A hallucination from scratch: fit of `PairwisePreferenceRegressor` with fixed hyperparameters and
`HMC(draws=1, chains=1)`, that is EP, its mean as a start, and six trajectories. Then `HMC()`
(1 000 draws) at 200 duels with 1 000 duel probabilities, and at 1 000 duels. Duels of `gp4`.
Medians and minima over the repeats: on a machine shared with other work the minimum is nearer to
what an idle one does.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Gibbs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, load_problem, report


def seconds(function, repeats):
    """Median and minimum over the repeats, after one run that does not count."""
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return {"median_s": float(np.median(taken[1:])), "minimum_s": min(taken[1:])}


def measure(what, n_duels, noise_variance, engine, repeats, ask, flipped=False):
    """One row: a fit, and if asked 1 000 duel probabilities."""
    problem = load_problem("gp4", noise_variance, n_duels)
    X = np.stack([problem["W"], problem["L"]], axis=1)
    if flipped:
        X[::10] = X[::10, ::-1].copy()
    asked = np.stack([problem["test_a"], problem["test_b"]], axis=1)
    model = PairwisePreferenceRegressor(
        RBF(0.5),
        inference=engine,
        noise_variance=noise_variance,
        optimizer=None,
        random_state=0,
    )

    def work():
        model.fit(X)
        if ask:
            model.predict_proba(asked)

    row = {"what": what, "t": n_duels, "noise_variance": noise_variance, "flipped": int(flipped)}
    row |= seconds(work, repeats)
    if getattr(model, "diagnostics_", None) is not None:
        row["smallest_ess"] = float(model.diagnostics_.ess_bulk.min())
        row["largest_rhat"] = float(model.diagnostics_.rhat.max())
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--without-1000", action="store_true")
    options = parser.parse_args()
    rows, fewer, n = [], few(max(3, options.repeats // 6), 1), few(200, 5)
    one = HMC(draws=1, chains=1)
    for noise_variance in (1e-4, 1e-2):
        for n_duels in few((50, 200), (5,)):
            setting = (n_duels, noise_variance)
            rows.append(measure("hallucination", *setting, one, options.repeats, False))
            rows.append(measure("its EP", *setting, EP(), options.repeats, False))
        setting = (n, noise_variance)
        rows.append(measure("HMC(), 1000 probabilities", *setting, HMC(), fewer, True))
    setting, thrice = (n, 1e-4), few(3, 1)
    rows.append(measure("hallucination", *setting, one, fewer, False, flipped=True))
    rows.append(measure("HMC(), 1000 probabilities", *setting, HMC(), thrice, True, flipped=True))
    rows.append(measure("Gibbs(), 1000 probabilities", n, 1e-2, Gibbs(), thrice, True))
    if not options.without_1000:
        rows.append(measure("HMC()", 1000, 1e-2, HMC(), 1, False))
        rows.append(measure("HMC()", 1000, 1e-4, HMC(), 1, False))
    report(rows, RESULTS / "hallucination_speed.csv", repeats=options.repeats)


if __name__ == "__main__":
    main()
