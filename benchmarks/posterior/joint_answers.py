"""How sure EP and HMC are after one answer, and the noise that is learned from fifty.

    python benchmarks/posterior/joint_answers.py [--problems 20] [--learned 10] [--draws 1000000]

One choice among 3 to 9 items, one ranking of 3 to 5, the best of a line of 9 or 25 points (under an
RBF kernel of lengthscale 0.5 and noise of variance 0.01 an item), and five or 16 duels under a
linear kernel of two to five features. The truth is by draws of the noisy utilities that say what
was answered, of a fixed seed; of duels by weighted draws. Of every engine: deviations of
differences between the best item and the others over the true ones, and errors of the log evidence.
Then the noise that is learned from 50 answers, the kernel given: its median over some data sets.
"""

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

NOISE = 0.01
ENGINES = {"EP": EP(), "HMC": HMC(draws=4000)}


def items_of(kind, k, rng):
    """A line of points in the unit square, or points of the unit cube."""
    if kind == "line":
        ends = rng.uniform(size=(2, 2))
        return ends[0] + np.linspace(0.0, 1.0, k)[:, None] * (ends[1] - ends[0])
    return rng.uniform(size=(k, 3))


def answered(utility, kind):
    """Ranks: all of them, or who is the best."""
    if kind == "ranking":
        return np.argsort(np.argsort(-utility, axis=-1), axis=-1) + 1
    return np.where(utility == utility.max(axis=-1, keepdims=True), 1, 2)


def noisy(items, kernel, rng, n):
    """Draws of utilities, and of what is seen of them."""
    values, vectors = np.linalg.eigh(kernel(items))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    f = rng.standard_normal((n, len(items))) @ root.T
    return f, f + np.sqrt(NOISE) * rng.standard_normal(f.shape)


def deviations(model, best, others):
    pairs = np.stack([np.broadcast_to(best, others.shape), others], axis=1)
    return model.predict(pairs, return_std=True)[1]


def single(kind, k, seed, n_draws):
    """Engines' deviations over the true ones, and errors of EP's log evidence, of one answer."""
    rng, kernel = np.random.default_rng((seed, k)), RBF(0.5)
    items = items_of(kind, k, rng)
    rank = answered(noisy(items, kernel, rng, 1)[1][0], kind)
    f, seen = noisy(items, kernel, rng, n_draws)
    kept = np.all(answered(seen, kind) == rank, axis=1)
    best = int(np.argmin(rank))
    others = np.delete(np.arange(k), best)
    true = (f[kept][:, [best]] - f[kept][:, others]).std(axis=0)
    return kernel, items[None], rank[None], items[best], items[others], true, np.log(kept.mean())


def few_duels(d, n, seed, n_draws):
    """The same of n duels under a linear kernel; differences are those of new pairs."""
    rng, kernel = np.random.default_rng((seed, d)), DotProduct(1e-3)
    X = rng.normal(size=(n, 2, d))
    weights = rng.standard_normal(d)
    gap = (X[:, 0] - X[:, 1]) @ weights + np.sqrt(2.0 * NOISE) * rng.standard_normal(n)
    draws = rng.standard_normal((n_draws, d))
    sides = np.where(gap > 0.0, 1.0, -1.0)
    chance = ndtr(sides * (draws @ (X[:, 0] - X[:, 1]).T) / np.sqrt(2.0 * NOISE)).prod(axis=1)
    new = rng.normal(size=(4, d))
    apart = draws @ (X[0, 0] - new).T
    mean = chance @ apart / chance.sum()
    true = np.sqrt(chance @ (apart - mean) ** 2 / chance.sum())
    y = (gap > 0.0).astype(int)
    return kernel, X, y, X[0, 0], new, true, np.log(chance.mean())


def measured(problems):
    rows = []
    for name, engine in ENGINES.items():
        ratios, evidence = [], []
        for kernel, X, y, best, others, true, log_evidence in problems:
            model = PairwisePreferenceRegressor(
                kernel, inference=engine, noise_variance=NOISE, optimizer=None, random_state=0
            ).fit(X, y)
            ratios.append(deviations(model, best, others) / true)
            evidence.append(model.log_marginal_likelihood_value_ - log_evidence)
        off = np.concatenate(ratios) - 1.0
        row = {"engine": name, "mean": off.mean(), "least": off.min(), "most": off.max()}
        rows.append(row | {"log_evidence": np.mean(evidence) if name == "EP" else np.nan})
    return rows


def learned(kind, k, n_sets, n=50):
    """Median of the noise variance that is learned from n answers, over the true one."""
    ratios = []
    for seed in range(n_sets):
        rng, kernel = np.random.default_rng((seed, k, 1)), RBF(0.5)
        X = np.stack([items_of(kind, k, rng) for _ in range(n)])
        _, seen = noisy(X.reshape(n * k, -1), kernel, rng, 1)
        model = PairwisePreferenceRegressor(RBF(0.5, "fixed"), inference="ep", noise_variance=0.1)
        model.fit(X, answered(seen.reshape(n, k), kind))
        ratios.append(model.noise_variance_ / NOISE)
    low, middle, high = np.quantile(ratios, [0.0, 0.5, 1.0])
    return {"answers": f"50 of {kind} {k}", "least": low, "median": middle, "most": high}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--learned", type=int, default=10)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    seeds = range(options.problems)
    cases = [("choice", k) for k in range(3, 10)] + [("ranking", k) for k in (3, 4, 5)]
    cases += [("line", 9), ("line", 25)]
    rows = []
    for kind, k in cases:
        problems = [single(kind, k, seed, options.draws) for seed in seeds]
        rows += [{"answer": f"{kind} {k}", **row} for row in measured(problems)]
    for d, n in product((2, 3, 5), (5, 16)):
        problems = [few_duels(d, n, seed, options.draws) for seed in seeds]
        rows += [{"answer": f"{n} duels, linear {d}", **row} for row in measured(problems)]
    report(rows, options.results / "joint_answers.csv")
    if options.learned:
        sets = [("choice", 3), ("choice", 5), ("choice", 9), ("line", 9)]
        noises = [learned(*each, options.learned) for each in sets]
        report(noises, options.results / "joint_answers_noise.csv")


if __name__ == "__main__":
    main()
