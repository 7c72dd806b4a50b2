"""Items that change through time: error of independent items, coverage, static data, and cost.

Simulated players have a level (variance 1) and a drift (a Matérn process of variance .5 and
lengthscale 10), seen with noise of variance .5 an item. Parts:

``equality``: 100 random problems in which no loop of comparisons closes (20 duels, a random walk
and Matérn processes of random variances and lengthscales): the largest difference to exact
inference on all items of the log evidence, its gradient, means and variances of margins, and of
the posterior at other times, relative to the largest of each or to 1. With loops the same of means
and of the prior given sites, which are exact too.

``error``: independent items beside exact inference on all items jointly, at the true
hyperparameters: the largest and the mean difference of probabilities of 500 new duels at times
among the answers', the mean ratio of their margins' deviations, the difference of the log
evidence; and of both beside Hamiltonian Monte Carlo (10 000 draws) where there are few answers. Few
answers, which `fit` takes jointly, are taken as chains here.

``pieces``: the same difference of probabilities, of all pairs right after the last answer, where
there are too many for all items jointly: of a fit, and of a fit of the first 300 with the others
by `partial_fit`, one at a time. The largest and the mean over simulations of the largest.

``coverage``: hyperparameters learned by independent items; share of the 90 % bands of
`trajectories` that hold the truth: of items less the mean of all, at 20 times each, and of their
differences to three of them, with standard errors over tournaments. "no average" is with the
hyperparameters of the fit taken as known. (Learned − true) / standard error of log lengthscale and
log amplitude over noise, with standard errors from differences of the evidence's gradient, and the
share within 1.64 of them; ``--bands-only`` leaves these out.

``static``: strengths that do not change, and others that do: log-loss of later duels with a drift
allowed, less that without.

``cost``: seconds and memory of a fit at given hyperparameters from 10³ to 10⁶ duels, the slope of
their logarithms, and milliseconds of `partial_fit` with 50 duels of a new day after 10⁵.

    python benchmarks/time/through_time.py [--parts equality error pieces coverage static cost]
        [--repeats 20] [--drifts matern12 matern32] [--items 20 50]
"""

import argparse
import csv
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import time
import warnings
from unittest import mock

import numpy as np
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import ChainRule, PriorRule
from skpref.inference import EP, HMC, Problem
from skpref.inspection import trajectories
from skpref.kernels import Identity, OnColumns, Wiener
from skpref.likelihoods import Probit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

LEVEL, DRIFT, LENGTH, NOISE = 1.0, 0.5, 10.0, 0.5
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5}


def walks(rng, n_items, times, kind, drift=DRIFT):
    """Utilities of items at ascending times, (n_times, n_items)."""
    K = drift * Matern(LENGTH, nu=SMOOTHNESS[kind])(times[:, None])
    root = np.linalg.cholesky(K + 1e-9 * np.eye(len(times)))
    level = rng.normal(scale=np.sqrt(LEVEL), size=n_items)
    return level + root @ rng.normal(size=(len(times), n_items))


def duels(rng, n, n_items, span, kind="matern12", drift=DRIFT, noise=NOISE):
    """Pairs, outcomes and times of duels, and the utilities at a grid of times."""
    grid = np.linspace(0.0, span, 400)
    f = walks(rng, n_items, grid, kind, drift)
    at = np.sort(rng.integers(0, len(grid), n))
    pairs = rng.integers(n_items, size=(n, 2))
    pairs[:, 1] = (pairs[:, 0] + rng.integers(1, n_items, n)) % n_items
    margin = f[at, pairs[:, 0]] - f[at, pairs[:, 1]]
    won = rng.random(n) < ndtr(margin / np.sqrt(2.0 * noise))
    return pairs, won, grid[at], grid, f


def regressor(n_items, kind="matern12", engine=None, **options):
    who = OnColumns(Identity(), [0])
    kernel = ConstantKernel(LEVEL) * who + ConstantKernel(DRIFT) * who * OnColumns(
        Matern(LENGTH, nu=SMOOTHNESS[kind]), [1]
    )
    given = {"kernel": kernel, "noise_variance": NOISE, "optimizer": None}
    given["items"] = ItemTable.from_names([str(k) for k in range(n_items)])
    engine = EP(items="independent") if engine is None else engine
    return PairwisePreferenceRegressor(inference=engine, **(given | options))


def equality(repeats):
    rows = []
    for loops in (False, True):
        found = {}
        for seed in range(5 * repeats):
            rng = np.random.default_rng(seed)
            kernel = random_kernel(rng)
            first = np.arange(1, 21)
            second = np.array([rng.integers(0, k) for k in first])
            if loops:
                first, second = rng.integers(7, size=(2, 60))
                second = (first + rng.integers(1, 7, 60)) % 7
            at = rng.integers(0, 15, len(first)).astype(float)
            items = np.column_stack([np.append(first, second), np.append(at, at)])
            n = len(first)
            duels_ = Comparisons.from_duels(
                items, np.arange(n), n + np.arange(n), rng.random(n) < 0.5
            )
            likelihood, engine = Probit(rng.uniform(0.1, 1.0)), EP(tol=1e-11)
            pair = []
            for rule in (PriorRule(), ChainRule()):
                problem = Problem(rule.prior(kernel, duels_, likelihood), duels_, likelihood)
                pair.append((problem, engine.run(problem)))
            (exact, one), (chains, two) = pair
            asked = np.column_stack([rng.integers(0, 22, 50), rng.uniform(-2.0, 20.0, 50)])
            given = two.sites if loops else one.sites
            truth = exact.prior.condition(given.precision, given.shift)
            values = {
                "prior": (exact.prior.variance, chains.prior.variance),
                "means given sites": (
                    truth.mean, chains.prior.condition(given.precision, given.shift).mean
                ),
            }  # fmt: skip
            if not loops:
                slopes = [engine.evidence_gradient(*each) for each in pair]
                after = [p.prior.posterior(a.sites, a.conditioned, likelihood) for p, a in pair]
                values |= {
                    "evidence": (one.sites.log_evidence, two.sites.log_evidence),
                    "gradient": (slopes[0].kernel, slopes[1].kernel),
                    "gradient in noise": (slopes[0].likelihood, slopes[1].likelihood),
                    "means": (one.conditioned.mean, two.conditioned.mean),
                    "variances": (one.conditioned.variance, two.conditioned.variance),
                    "posterior means": [each.mean(asked) for each in after],
                    "posterior variances": [each.var(asked) for each in after],
                }
            for name, (a, b) in values.items():
                a, b = np.atleast_1d(a), np.atleast_1d(b)
                off = float(np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(a))))
                found[name] = max(found.get(name, 0.0), off)
        rows.append({"part": "equality", "loops": loops, "problems": 5 * repeats} | found)
    return rows


def random_kernel(rng):
    who = OnColumns(Identity(), [0])
    kernel = ConstantKernel(rng.uniform(0.1, 2.0)) * who
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.3:
            part = Wiener(rng.uniform(0.01, 0.3))
        else:
            part = ConstantKernel(rng.uniform(0.1, 2.0)) * Matern(
                rng.uniform(1.0, 30.0), nu=rng.choice([0.5, 1.5, 2.5])
            )
        kernel = kernel + who * OnColumns(part, [1])
    return kernel


def error(repeats):
    rows = []
    for n_items, n in ((10, 60), (10, 300), (10, 1000), (50, 300), (50, 1000), (200, 1000)):
        found = []
        for seed in range(min(repeats, 3)):
            rng = np.random.default_rng(seed)
            X, y, t, grid, _ = duels(rng, n, n_items, 30.0)
            asked = rng.integers(n_items, size=(500, 2))
            asked[:, 1] = (asked[:, 0] + rng.integers(1, n_items, 500)) % n_items
            when = rng.choice(grid, 500)
            with mock.patch("skpref.fitting._forecast._AT_ONCE", 0.0):
                fits = [regressor(n_items, engine=each).fit(X, y, time=t) for each in (EP(), None)]
            p = [each.predict_proba(asked, time=when)[:, 1] for each in fits]
            std = [each.predict(asked, return_std=True, time=when)[1] for each in fits]
            evidence = [each.log_marginal_likelihood_value_ for each in fits]
            sampled = [np.nan, np.nan]
            if n <= 300 and n_items == 10 and seed == 0:
                draws = regressor(n_items, engine=HMC(draws=10_000), random_state=0)
                truth = draws.fit(X, y, time=t).predict_proba(asked, time=when)[:, 1]
                sampled = [np.abs(each - truth).mean() for each in p]
            differences = np.abs(p[1] - p[0])
            found.append(
                (differences.max(), differences.mean(), np.mean(std[1] / std[0]),
                 evidence[1] - evidence[0], *sampled)
            )  # fmt: skip
        mean = np.nanmean(np.array(found), axis=0) if len(found) else ()
        names = ("largest", "mean", "deviations", "evidence", "joint - hmc", "independent - hmc")
        rows.append(
            {"part": "error", "items": n_items, "duels": n}
            | {name: float(value) for name, value in zip(names, mean, strict=True)}
        )
    return rows


def pieces(repeats, sizes=(2, 4, 6, 12, 50), first=300):
    rows = []
    for noise in (NOISE, 0.01):
        for n_items in sizes:
            for n in (400, 1000):
                found = [far_off(seed, n_items, n, first, noise) for seed in range(min(repeats, 2))]
                largest, mean = np.max(found, axis=0), np.mean(found, axis=0)
                rows.append(
                    {"part": "pieces", "noise": noise, "items": n_items, "duels": n}
                    | {"fit, largest": largest[0], "fit, mean": mean[0]}
                    | {"pieces, largest": largest[1], "pieces, mean": mean[1]}
                )
    return rows


def far_off(seed, n_items, n, first, noise):
    """Largest differences to all items jointly, of a fit and of pieces after the first answers."""
    rng = np.random.default_rng(seed)
    X, y, t, grid, _ = duels(rng, n, n_items, 30.0, noise=noise)
    t = np.sort(t + rng.uniform(0.0, grid[1], n))  # no two at once
    options = {"noise_variance": noise}
    joint = regressor(n_items, engine=EP(), **options).fit(X, y, time=t)
    whole = regressor(n_items, **options).fit(X, y, time=t)
    parts = regressor(n_items, **options).fit(X[:first], y[:first], time=t[:first])
    for k in range(first, n):
        parts.partial_fit(X[k : k + 1], y[k : k + 1], time=t[k : k + 1])
    pairs = np.array([(i, j) for i in range(n_items) for j in range(i)])
    p = [each.predict_proba(pairs, time=t[-1])[:, 1] for each in (joint, whole, parts)]
    return [np.abs(each - p[0]).max() for each in p[1:]]


def coverage(repeats, drifts, sizes, scored=True):
    rows = []
    for kind in drifts:
        for n_items in sizes:
            n, shares, scores = 50 * n_items, [], []
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                X, y, t, grid, f = duels(rng, n, n_items, 50.0, kind)
                options = {"optimizer": "fmin_l_bfgs_b", "n_learning_answers": None}
                model = regressor(n_items, kind, kernel=None, drift=kind, **options)
                model.fit(X, y, time=t)
                at = np.linspace(0, len(grid) - 1, 20).astype(int)
                others = rng.choice(n_items, 3, replace=False)
                # Bands that are a mean over hyperparameters, and those at the ones of the fit.
                given = {"average": "auto"}, {"average": False}
                shares.append([held(model, grid[at], f[at], others, **each) for each in given])
                if scored:
                    scores.append(standardised(model))
            mean = np.mean(shares, axis=0)
            error = np.std(shares, axis=0, ddof=1) / np.sqrt(repeats)
            scores = np.array(scores or [[np.nan, np.nan]])
            known = np.all(np.isfinite(scores), axis=1)
            rows.append(
                {
                    "part": "coverage",
                    "drift": kind,
                    "items": n_items,
                    "duels": n,
                    "tournaments": repeats,
                    "of items": float(mean[0, 0]),
                    "of items, error": float(error[0, 0]),
                    "of differences": float(mean[0, 1]),
                    "of differences, error": float(error[0, 1]),
                    "of items, no average": float(mean[1, 0]),
                    "of differences, no average": float(mean[1, 1]),
                }
            )
            if scored:
                rows[-1] |= {
                    "known": int(known.sum()),
                    "lengthscale mean score": float(scores[known, 1].mean()),
                    "lengthscale within": float(np.mean(np.abs(scores[known, 1]) < 1.6449)),
                    "amplitude mean score": float(scores[known, 0].mean()),
                    "amplitude within": float(np.mean(np.abs(scores[known, 0]) < 1.6449)),
                }
            print(rows[-1], flush=True)
    return rows


def held(model, times, f, others, **options):
    """Share of 90 % bands of `trajectories` that hold the truth f (n_times, n_items): of items less
    the mean of all, and of their differences to each of some others."""
    names, unit = model.items.names, np.sqrt(NOISE)
    found = trajectories(model, names, times, **options)
    truth = (f - f.mean(axis=1, keepdims=True)).T / unit
    of_items = np.mean((found.lower < truth) & (truth < found.upper))
    inside = []
    for other in others:
        found = trajectories(model, names, times, relative=names[other], **options)
        truth = (f - f[:, [other]]).T / unit
        apart = np.arange(len(names)) != other
        inside.append(((found.lower < truth) & (truth < found.upper))[apart])
    return of_items, np.mean(inside)


def standardised(model):
    """(learned − true) / standard error of log drift / noise and log lengthscale."""
    theta = np.concatenate([model.kernel_.theta, model.likelihood_.theta])

    def slope(theta):
        return model.log_marginal_likelihood(theta, eval_gradient=True)[1]

    step = 1e-3
    H = np.array(
        [(slope(theta + e) - slope(theta - e)) / (2.0 * step) for e in np.eye(len(theta)) * step]
    )
    # Level, drift, lengthscale and noise: all variances up to a common factor.
    T = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    H = T.T @ (0.5 * (H + H.T)) @ T
    values = np.linalg.eigvalsh(-H)
    if values.min() <= 0.0:
        return np.nan, np.nan
    spread = np.sqrt(np.diagonal(np.linalg.inv(-H)))
    found = theta[1] - theta[3], theta[2]
    truth = np.log(DRIFT / NOISE), np.log(LENGTH)
    return (found[0] - truth[0]) / spread[1], (found[1] - truth[1]) / spread[2]


def static(repeats):
    rows = []
    for name, drift in (("static", 1e-12), ("drifting", DRIFT)):
        for n_items, n in ((20, 400), (50, 2000), (100, 5000)):
            found = []
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                X, y, t, _, _ = duels(rng, n + n // 2, n_items, 30.0, drift=drift)
                losses = []
                for options in ({"drift": "matern12"}, None):
                    time_ = {} if options is None else {"time": t[:n]}
                    model = PairwisePreferenceRegressor(
                        items=ItemTable.from_names([str(k) for k in range(n_items)]),
                        **(options or {}),
                    ).fit(X[:n], y[:n], **time_)
                    asked = {} if options is None else {"time": t[n:]}
                    p = model.predict_proba(X[n:], **asked)
                    losses.append(-np.log(p[np.arange(len(p)), y[n:].astype(int)]).mean())
                found.append(losses[0] - losses[1])
            rows.append(
                {
                    "part": "static",
                    "truth": name,
                    "items": n_items,
                    "duels": n,
                    "tournaments": repeats,
                    "with less without": float(np.mean(found)),
                    "standard error": float(np.std(found, ddof=1) / np.sqrt(len(found))),
                }
            )
            print(rows[-1], flush=True)
    return rows


def cost(largest):
    rows, seconds, sizes = [], [], [10**k for k in range(3, 7) if 10**k <= largest]
    for n in sizes:
        rng = np.random.default_rng(0)
        n_items = max(n // 50, 20)
        X = rng.integers(n_items, size=(n, 2))
        X[:, 1] = (X[:, 0] + rng.integers(1, n_items, n)) % n_items
        t = np.sort(rng.integers(0, 5000, n)) / 100.0
        strength = rng.normal(size=n_items)
        y = rng.random(n) < ndtr(strength[X[:, 0]] - strength[X[:, 1]])
        model = regressor(n_items)
        begin = time.process_time()
        model.fit(X, y, time=t)
        seconds.append(time.process_time() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row = {"part": "cost", "items": n_items, "duels": n, "seconds": seconds[-1], "GiB": peak}
        if n == 10**5:
            days = []
            for day in range(30):
                at = rng.integers(n_items, size=(50, 2))
                at[:, 1] = (at[:, 0] + 1) % n_items
                begin = time.process_time()
                model.partial_fit(at, rng.random(50) < 0.5, time=50.01 + 0.01 * day)
                days.append(1e3 * (time.process_time() - begin))
            row["a day, ms"] = float(np.median(days))
        rows.append(row)
        print(row, flush=True)
    if len(sizes) > 1:
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        rows.append({"part": "cost", "slope": slope})
    return rows


PARTS = {
    "equality": equality,
    "error": error,
    "pieces": pieces,
    "coverage": coverage,
    "static": static,
    "cost": cost,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--drifts", nargs="+", default=list(SMOOTHNESS), choices=SMOOTHNESS)
    parser.add_argument("--items", nargs="+", default=[20, 50], type=int, help="of coverage")
    parser.add_argument("--bands-only", action="store_true", help="of coverage: no scores")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--largest", type=int, default=10**6)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in given.parts:
        target = RESULTS / f"through_time_{part}.csv"
        if part == "coverage":
            if given.bands_only:
                target = RESULTS / "through_time_bands.csv"
            rows = coverage(given.repeats, given.drifts, given.items, not given.bands_only)
            rows = [*others_of(target, rows), *rows]
        else:
            rows = PARTS[part](given.largest if part == "cost" else given.repeats)
        report(rows, target)


def others_of(target, rows):
    """Rows of earlier runs, of other drifts or numbers of items."""
    if not target.is_file():
        return []
    with target.open(newline="") as handle:
        before = list(csv.DictReader(handle))
    made = {(row["drift"], str(row["items"])) for row in rows}
    return [row for row in before if (row["drift"], row["items"]) not in made]


if __name__ == "__main__":
    main()
