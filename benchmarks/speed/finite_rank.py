"""The finite-rank prior beside the prior of all items: the same answers, at what cost.

First, random kernel expressions (sums, products, squares of ids, categories, linear parts), each
with answers of every kind and each engine that takes them: the largest difference of evidence,
gradients, posterior means and covariances, relative to the largest of each or to 1. Second, duels
of ids with controls, a row of its own each: processor seconds of EP at given hyperparameters by
each prior, and with hyperparameters learned.

    python benchmarks/speed/finite_rank.py [--expressions 200] [--sizes 1000 10000 100000]
"""

import argparse
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import time
import warnings

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import DenseItems, FiniteRank
from skpref.inference import EP, Laplace, Problem
from skpref.kernels import Identity, OnColumns
from skpref.likelihoods import DUEL, GRADED, TIE, GradedProbit, Probit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

WHAT = ("evidence", "kernel gradient", "likelihood gradient", "mean", "covariance")
LIKELIHOODS = {
    "duels": Probit(0.3),
    "weights, order": Probit(0.3, order_effect=0.2, order_effect_bounds=(-2.0, 2.0)),
    "ties": Probit(0.3, tie_threshold=0.3),
    "grades": GradedProbit(0.3, grade_thresholds=(0.6,), tie_threshold=0.2),
    "choices": Probit(0.3, tie_threshold=0.2),
}
ENGINES = {"EP": EP(tol=1e-11, max_iter=2000), "Laplace": Laplace(tol=1e-20)}


def leaf(rng):
    kind = rng.integers(5)
    if kind < 2:
        return OnColumns(Identity(), [int(rng.integers(2))] if kind else [0, 1])
    if kind == 2:
        return ConstantKernel(rng.uniform(0.1, 2.0))
    columns = rng.permutation(4)[: rng.integers(1, 3)].tolist()
    return OnColumns(DotProduct(rng.uniform(0.1, 2.0)), columns)


def expression(rng, depth=3):
    if not depth:
        return leaf(rng)
    kind, inner = rng.integers(5), expression(rng, depth - 1)
    if kind < 2:
        return inner + expression(rng, depth - 1)
    if kind == 2:
        return inner * leaf(rng)
    if kind == 3:
        return ConstantKernel(rng.uniform(0.1, 2.0)) * inner
    return OnColumns(DotProduct(rng.uniform(0.1, 2.0)), [2, 3]) ** 2 + inner


def answers(rng, kind, n=45):
    items = [rng.integers(6, size=30), rng.integers(3, size=30), *rng.normal(size=(2, 30))]
    items = np.column_stack(items)
    if kind == "choices":
        shown = np.array([rng.permutation(30)[:4] for _ in range(n // 2)])
        rank = np.array([rng.permutation([1, 2, 2, 0]) for _ in shown])
        return Comparisons.from_ranks(items, shown, rank, rng.integers(1, 3, size=len(shown)))
    first, second = rng.integers(30, size=(2, n))
    kinds = {"ties": [DUEL, TIE], "grades": [TIE, GRADED + 1, GRADED + 2]}.get(kind, [DUEL])
    weight = rng.choice([0.5, 1.0, 2.0], size=n) if kind.startswith("weights") else None
    return Comparisons.from_duels(
        items, first, second, rng.random(n) < 0.5, weight,
        kind=rng.choice(kinds, size=n), order=rng.integers(-1, 2, size=n),
    )  # fmt: skip


def found(prior, kernel, seen, likelihood, engine, asked):
    made = prior.from_comparisons(kernel, seen, likelihood, True)
    problem = Problem(made, seen, likelihood)
    run = engine.run(problem)
    slopes = engine.evidence_gradient(problem, run)
    posterior = made.posterior(run.sites, run.conditioned, likelihood)
    moments = posterior.mean(asked), posterior.cov(asked)
    return run.sites.log_evidence, slopes.kernel, slopes.likelihood, *moments


def expressions(n):
    rows = []
    for kind, likelihood in LIKELIHOODS.items():
        for name, engine in ENGINES.items():
            if (kind, name) == ("choices", "Laplace"):
                continue
            off = []
            for seed in range(n):
                rng = np.random.default_rng(seed)
                kernel, seen = expression(rng), answers(rng, kind)
                if not np.any(
                    DenseItems.from_comparisons(kernel, seen, likelihood).variance > 1e-12
                ):
                    continue  # all utilities are alike
                asked = np.concatenate([seen.items[:8], rng.permuted(seen.items, axis=0)[:8]])
                both = (
                    found(each, kernel, seen, likelihood, engine, asked)
                    for each in (DenseItems, FiniteRank)
                )
                off.append(
                    [
                        np.max(np.abs(np.subtract(own, truth)), initial=0.0)
                        / max(np.max(np.abs(truth), initial=0.0), 1.0)
                        for truth, own in zip(*both, strict=True)
                    ]
                )
            worst = np.max(off, axis=0)
            rows.append({"answers": kind, "engine": name, "expressions": len(off)})
            rows[-1] |= {what: f"{value:.1e}" for what, value in zip(WHAT, worst, strict=True)}
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


def contest(n, n_ids, seed=0):
    """Duels of ids with four controls, half of the noise's deviation a tie."""
    rng = np.random.default_rng(seed)
    one = rng.integers(n_ids, size=n)
    ids = np.stack([one, (one + rng.integers(1, n_ids, size=n)) % n_ids], axis=1)
    controls = rng.normal(size=(n, 2, 4))
    worth = 0.5 * rng.normal(size=n_ids)
    margin = (worth[ids] + controls @ [0.5, 0.2, 0.1, 0.0]) @ [1.0, -1.0]
    margin += 0.7 * rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.3, 0, np.sign(margin)).astype(int)
    return np.concatenate([ids[:, :, None], controls], axis=2), y


def board():
    kernel = ConstantKernel(0.5) * OnColumns(Identity(), [0])
    for control in range(1, 5):
        kernel += ConstantKernel(0.3) * OnColumns(DotProduct(1.0, "fixed"), [control])
    return kernel


def seconds(model, X, y):
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began


def costs(sizes, n_ids=200):
    rows = []
    for n in sizes:
        X, y = contest(n, n_ids)
        given = {"tie_threshold": 0.3, "noise_variance": 0.25}
        held = PairwisePreferenceRegressor(board(), optimizer=None, **given)
        learned = PairwisePreferenceRegressor(board(), **given)
        row = {"duels": n, "ids": n_ids, "given": f"{seconds(held, X, y):.2f}"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a part is learned on
            row["learned"] = f"{seconds(learned, X, y):.2f}"
        if n <= 1000:
            from skpref.gp import _prior

            every = _prior.EXACT.copy()
            _prior.EXACT[:] = [each for each in every if each is not FiniteRank]
            row["given, all items"] = f"{seconds(held, X, y):.2f}"
            row["learned, all items"] = f"{seconds(learned, X, y):.2f}"
            _prior.EXACT[:] = every
        rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--expressions", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000, 100_000])
    options = parser.parse_args()

    for name, rows in (
        ("expressions", lambda: expressions(options.expressions)),
        ("costs", lambda: costs(options.sizes)),
    ):
        report(rows(), RESULTS / f"finite_rank_{name}.csv", quiet=True)
