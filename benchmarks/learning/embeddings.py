"""Votes between texts that are known by their embeddings: time, memory, and what is learned.

Items have many dense columns whose size falls off, as those of embeddings do after a rotation. With
"linear" the utility is a normal weight a column, and the kernel one learned scale times the dot
product; with "rbf" it is a smooth function of eight directions of the columns, and the kernel an
RBF with one lengthscale, by inducing points ("svi"). Utilities have a standard deviation of 1, the
noise of a vote's margin 0.7. Each part runs in a process of its own: processor seconds and peak
memory (with numpy and the data) are of the fit alone, held-out votes are between the same items,
and the scale is the deviation of a utility over that of a margin's noise, beside the truth.

    python benchmarks/learning/embeddings.py
        [--parts linear-768 linear-768-distinct linear-4096 rbf-768]
    python benchmarks/learning/embeddings.py --votes 5000 --columns 100 --items 500 --kernel linear
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import time
import warnings

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

# Votes, columns, items (0: two new ones a vote), kernel, inducing points.
PARTS = {
    "linear-768": (100_000, 768, 5_000, "linear", 0),
    "linear-768-distinct": (20_000, 768, 0, "linear", 0),
    "linear-4096": (20_000, 4_096, 5_000, "linear", 0),
    "rbf-768": (20_000, 768, 5_000, "rbf", 500),
}
NOISE, N_HELD = 0.7, 5_000


def embeddings(rng, n, d):
    """Columns whose deviation falls off; their squares sum to 1."""
    deviation = (1.0 + np.arange(d) / 20.0) ** -0.7
    deviation /= np.sqrt(np.sum(deviation**2))
    return rng.standard_normal((n, d)) * deviation


def utilities(rng, items, kernel):
    if kernel == "linear":
        return items @ rng.standard_normal(items.shape[1])
    frequencies = np.zeros((items.shape[1], 300))
    frequencies[:8] = rng.standard_normal((8, 300)) / (1.5 * np.sqrt(2.0) * items[:, :8].std())
    waves = np.cos(items @ frequencies + rng.uniform(0.0, 2.0 * np.pi, 300))
    return waves @ rng.standard_normal(300) * np.sqrt(2.0 / 300)


def problem(votes, columns, items, kernel, seed):
    """Items, pairs of them, who won, and the utilities' deviation; the last votes are held out."""
    rng = np.random.default_rng(seed)
    n = votes + N_HELD
    table = embeddings(rng, items or 2 * n, columns)
    worth = utilities(rng, table, kernel)
    if items:
        first = rng.integers(items, size=n)
        pairs = np.stack([first, (first + rng.integers(1, items, size=n)) % items], axis=1)
    else:
        pairs = np.arange(2 * n).reshape(n, 2)
    won = worth[pairs[:, 0]] - worth[pairs[:, 1]] + NOISE * rng.standard_normal(n) > 0.0
    return table, pairs, won.astype(int), float(worth.std())


def estimator(table, kernel, inducing, columns):
    learned = {
        "linear": ConstantKernel(1.0, (1e-4, 1e4)) * DotProduct(0.0, "fixed"),
        "rbf": ConstantKernel(1.0, (1e-4, 1e4)) * RBF(1.0, (1e-2, 1e2)),
    }[kernel]
    return PairwisePreferenceRegressor(
        learned,
        items=table,
        noise_variance=0.5 * NOISE**2,
        noise_variance_bounds="fixed",
        inference=SVI(n_inducing=inducing) if inducing else "auto",
        random_state=0,
    )


def run(votes, columns, items, kernel, inducing, seed=0):
    """One fit, and how it does on votes that were held out."""
    table, pairs, won, spread = problem(votes, columns, items, kernel, seed)
    model = estimator(ItemTable(table), kernel, inducing, columns)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.process_time()
        model.fit(pairs[:votes], won[:votes])
        seconds = time.process_time() - began
    proba = model.predict_proba(pairs[votes:])[np.arange(N_HELD), won[votes:]]
    scale = np.sqrt(np.exp(model.kernel_.theta[0]))
    return {
        "kernel": kernel,
        "votes": votes,
        "columns": columns,
        "items": items or "all distinct",
        "points": inducing,
        "engine": str(model.engine_).partition("(")[0],
        "passes": model.n_iter_,
        "seconds": seconds,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "log_loss": float(-np.mean(np.log(proba))),
        "scale": float(scale / NOISE),
        "true_scale": (1.0 if kernel == "linear" else spread) / NOISE,
        "warnings": len(said),
    }


def apart(arguments):
    """The same in a process of its own, whose peak memory is its own."""
    told = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--votes", type=int)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--items", type=int, default=5_000, help="0: two new ones a vote")
    parser.add_argument("--kernel", choices=("linear", "rbf"), default="linear")
    parser.add_argument("--inducing", type=int, default=0, help='points of "svi"; 0: "auto"')
    parser.add_argument("--out", default=str(RESULTS / "embeddings.csv"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.one:
        print(json.dumps(run(*json.loads(options.one))))
        sys.exit()
    if options.votes:
        given = (options.votes, options.columns, options.items, options.kernel, options.inducing)
        print(json.dumps(apart(given), indent=1))
        sys.exit()
    rows = []
    for part in options.parts:
        rows.append({"part": part, **apart(PARTS[part])})
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    report(rows, options.out, quiet=True)
