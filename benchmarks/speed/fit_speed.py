"""Seconds to fit: EP and Laplace side by side with BoTorch's PairwiseGP, on one core.

    python benchmarks/speed/fit_speed.py --peer-python /path/to/env/bin/python

The peer's interpreter belongs to an environment of its own with botorch installed; without it
only this package is timed. Fits alternate within one run, so that ratios hold on a noisy
machine: fixed hyperparameters (RBF 0.5, σ² as given) and learned ones (defaults). Also times
100 000 duels of 100 items, 2 000 distinct duels, and 10 000 predictions.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, leave, load_problem, report

PEER = Path(__file__).with_name("peer_botorch.py")


def fit_here(problem, inference, noise_variance, learn, repeats):
    """Median seconds, log-loss and accuracy of noise-free held-out duels."""
    X = np.stack([problem["W"], problem["L"]], axis=1)
    if learn:
        model = PairwisePreferenceRegressor(inference=inference)
    else:
        model = PairwisePreferenceRegressor(
            RBF(0.5), inference=inference, noise_variance=noise_variance, optimizer=None
        )
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        model.fit(X)
        seconds.append(time.perf_counter() - start)
    p = model.posterior_.win_probability(problem["test_a"], problem["test_b"], noise=False)
    p = np.where(problem["test_y"] == 1, p, 1.0 - p)
    return float(np.median(seconds)), float(-np.log(p).mean()), float(np.mean(p > 0.5))


def fit_peer(python, problem, noise_variance, learn, repeats):
    """The same from the peer's interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, **problem)
        command = [python, str(PEER), str(path), "--noise-variance", str(noise_variance)]
        command += ["--repeats", str(repeats), *(["--learn"] if learn else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = done.stdout.strip().splitlines()[-1]
    if not last.startswith("{"):
        leave(last)
    found = json.loads(last)
    # the first fit pays for the library's own start
    seconds = found["seconds"][1:] or found["seconds"]
    return float(np.median(seconds)), found["log_loss"], found["accuracy"], found["version"]


def compare(options):
    """Rows of the table of fits; version of the peer."""
    rows, version = [], None
    for noise_variance, sizes in ((1e-2, options.sizes), (1e-4, few([200], []))):
        for n_duels in sizes:
            problem = load_problem("gp4", noise_variance, n_duels)
            for learn in (False, True):
                row = {"problem": "gp4", "noise": noise_variance, "t": n_duels}
                row["hyperparameters"] = "learned" if learn else "fixed"
                repeats = few(3 if n_duels >= 500 else 7, 1)
                for inference in ("laplace", "ep"):
                    found = fit_here(problem, inference, noise_variance, learn, repeats)
                    row[f"{inference} s"], row[f"{inference} log-loss"] = found[:2]
                if options.peer_python:
                    again = 2 if n_duels >= 500 or learn else 5
                    found = fit_peer(options.peer_python, problem, noise_variance, learn, again)
                    row["botorch s"], row["botorch log-loss"], version = *found[:2], found[3]
                    row["laplace ratio"] = row["botorch s"] / row["laplace s"]
                    row["ep ratio"] = row["botorch s"] / row["ep s"]
                rows.append(row)
    return rows, version


def large():
    """Rows of the table of large problems."""
    rows, n = [], few(100_000, 100)
    rng = np.random.default_rng(0)
    items = rng.random((100, 4))
    K = RBF(0.5)(items) + 1e-10 * np.eye(100)
    f = np.linalg.cholesky(K) @ rng.standard_normal(100)
    for data_noise in (1e-4, 1e-2, 1.0):
        first = rng.integers(0, 100, n)
        second = (first + rng.integers(1, 100, n)) % 100
        v = f[first] - f[second] + np.sqrt(2 * data_noise) * rng.standard_normal(n)
        pairs = np.stack([first, second], axis=1)
        for noise_variance in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            model = PairwisePreferenceRegressor(
                RBF(0.5), noise_variance=noise_variance, optimizer=None, items=items
            )
            start = time.perf_counter()
            model.fit(pairs, v > 0)
            seconds = time.perf_counter() - start
            rows.append(
                {
                    "task": f"100 items, 100 000 duels, data noise {data_noise:g}",
                    "noise": noise_variance,
                    "engine": "ep",
                    "seconds": seconds,
                    "sweeps": model.n_iter_,
                }
            )
    problem = load_problem("gp4", 1e-2, few(2000, 20))
    X = np.stack([problem["W"], problem["L"]], axis=1)
    for inference in ("laplace", "ep"):
        model = PairwisePreferenceRegressor(
            RBF(0.5), inference=inference, noise_variance=1e-2, optimizer=None
        )
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            {
                "task": "2 000 distinct duels",
                "noise": 1e-2,
                "engine": inference,
                "seconds": seconds,
                "sweeps": model.n_iter_,
                "peak MiB": peak,
            }
        )
    model = PairwisePreferenceRegressor(RBF(0.5), noise_variance=1e-2, optimizer=None).fit(X[:500])
    test = rng.random((10_000, 2, 4))
    start = time.perf_counter()
    model.predict_proba(test)
    seconds = time.perf_counter() - start
    rows.append({"task": "predict 10 000 duels, t = 500", "engine": "ep", "seconds": seconds})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="interpreter of an environment with botorch")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--out", default=RESULTS / "fit_speed.csv")
    options = parser.parse_args()
    rows, version = compare(options)
    report(rows, options.out, peer={"botorch": version})
    print()
    out = Path(options.out)
    report(large(), out.with_name(out.stem + "_large.csv"))


if __name__ == "__main__":
    main()
