"""How many labels does a Gaussian-process classifier need, by how they are chosen?

Table 1 of the supplement of Houlsby et al. (2012): its eight sets (``_active_sets.py``), its
strategies and its printed figures. A classifier is a preference model whose duels are all against
one constant item, of utility 0: P(first wins) = Φ(f(x)/√(2σ²)). Each set is split at random into a
pool and a test half. Hyperparameters are learned once, on the pool (at most 400 rows of it), for an
RBF and for a linear kernel; the one of the larger evidence is taken (or that of ``--kernel``, where
"rbf, noise" is an RBF whose noise variance is at least 1e-4), and is the same for all strategies.
The first two labels are one of each class. Then one label after another is asked for, 100 in all.
Counted is with which number the accuracy on the test half first is 95 % of that with the whole pool
("first"), and from which on it stays there ("labels").

Strategies beside those of `skpref.active.query`: "ivm", which knows the label that it asks for
(Lawrence, Seeger and Herbrich, 2002), and "svm", a support vector machine (scikit-learn's, with the
same kernel, C = 100) that asks for what is nearest to its own border (Tong and Koller, 2001), and
whose accuracy is compared with its own with the whole pool.

    python benchmarks/learning/active.py [--splits 5] [--sets wine iris ...]
        [--strategies bald random ...] [--kernel rbf] [--table]

What is in ``results/active.csv`` already is not computed again; ``results/active_summary.csv`` has
the means, their standard errors and what the supplement prints.
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skpref import PairwisePreferenceRegressor
from skpref.active import query
from skpref.kernels import OnColumns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _active_sets import SETS
from common import RESULTS, leave, unless_missing

# Name of `query`'s strategy and its options; "ivm" and "svm" are here.
STRATEGIES = {
    "bald": ("bald", {}),
    "entropy": ("entropy", {}),
    "vote 2": ("committee", {"members": 2, "vote": True}),
    "vote 100": ("committee", {"members": 100, "vote": True}),
    "ivm": None,
    "svm": None,
    "random": ("random", {}),
    "committee": ("committee", {"members": 100}),
    "variance": ("variance", {}),
}
# Means and standard errors as printed; None: not reached by the end.
PRINTED = {
    "strategies": ("bald", "random", "entropy", "vote 2", "vote 100", "ivm", "svm"),
    "austra": "18.54 2.94 44.15 12.63 22.46 6.20 68.38 1.38 29.31 5.06 28.46 6.58 55.00 1.00",
    "cancer": "16.80 0.59 22.20 1.25 21.10 0.48 39.65 0.41 18.95 1.34 21.35 0.50 24.40 8.30",
    "crabs": "9.80 0.58 11.40 1.29 9.20 0.49 17.00 1.26 10.20 0.97 13.60 1.86 23.20 7.29",
    "letter D v. P": "45.30 1.14 92.10 2.41 51.50 0.83 48.80 1.34 49.10 1.38 51.00 0.84 nan nan",
    "letter E v. F": "30.17 1.11 71.50 17.72 34.33 0.42 44.67 2.12 30.67 1.65 33.00 2.27 nan nan",
    "vehicle": "33.20 2.11 75.30 7.38 36.60 1.74 85.20 7.16 35.00 1.80 38.20 2.00 41.60 1.64",
    "wine": "8.80 0.37 26.60 8.57 10.80 1.66 36.40 8.36 12.60 1.78 20.40 9.92 23.80 3.48",
    "wdbc": "18.15 0.37 47.00 1.46 22.55 1.05 43.85 1.39 23.40 1.05 21.40 0.85 45.70 1.75",
}
MOST, SHARE, LEARN_ON = 100, 0.95, 400
KERNELS = ("evidence", "rbf", "linear", "rbf, noise")
NOISE_BOUNDS = (1e-8, 1e2)
AT = (10, 20, 40)
COLUMNS = ["set", "chosen_by", "strategy", "split", "kernel", "labels", "first", "whole"]
COLUMNS += ["mean_error", *(f"error_{n}" for n in AT)]


def split_of(name, seed):
    """Duels against the constant item and their outcomes, of a pool and a test half."""
    data, label = SETS[name]()
    order = np.random.default_rng(seed).permutation(len(data))
    data, label = StandardScaler().fit_transform(data)[order], label[order]
    items = np.column_stack([data, np.ones(len(data))])
    duels = np.stack([items, np.zeros_like(items)], axis=1)
    half = len(duels) // 2
    return duels[:half], label[:half], duels[half:], label[half:]


def kernel_of(kind, d):
    """f of the constant item, whose last column is 0 as all others, is 0 under either."""
    if kind == "linear":
        return OnColumns(DotProduct(0.0, "fixed"), list(range(d + 1)))
    features = OnColumns(RBF(np.sqrt(d), (0.1, 1e3)), list(range(d)))
    return features * OnColumns(DotProduct(0.0, "fixed"), [d])


def learned(pool, truth, by):
    """The kind of kernel, and the kernel and the noise with which the evidence is largest."""
    found = {}
    low = 1e-4 if by == "rbf, noise" else NOISE_BOUNDS[0]
    for kind in ("rbf", "linear") if by == "evidence" else (by.removesuffix(", noise"),):
        model = PairwisePreferenceRegressor(
            kernel_of(kind, pool.shape[2] - 1),
            noise_variance=0.1,
            noise_variance_bounds=(low, NOISE_BOUNDS[1]),
            lengthscale_prior=None,
        )
        found[kind] = model.fit(pool[:LEARN_ON], truth[:LEARN_ON])
    kind = max(found, key=lambda each: found[each].log_marginal_likelihood_value_)
    return kind, found[kind].kernel_, found[kind].noise_variance_


class Process:
    """A Gaussian-process classifier and how it asks."""

    def __init__(self, kernel, noise_variance, strategy):
        options = {"noise_variance": noise_variance, "optimizer": None}
        self._model = PairwisePreferenceRegressor(kernel, **options)
        self._strategy = strategy

    def fit(self, duels, truth):
        self._model.fit(duels, truth)
        return self

    def error(self, duels, truth):
        return np.mean((self._model.predict_proba(duels)[:, 1] > 0.5) != truth)

    def ask(self, pool, truth, known, rng):
        if self._strategy == "ivm":
            return int(np.argmax(np.where(known, -np.inf, self._entropy_gone(pool, truth))))
        name, options = STRATEGIES[self._strategy]
        return int(query(self._model, pool, name, answered=known, random_state=rng, **options)[0])

    def _entropy_gone(self, pool, truth):
        """How much each label, which is known, would narrow the Gaussian of its margin, in nats."""
        posterior = self._model.posterior_
        mean, variance = posterior.margin(pool[:, 0], pool[:, 1])
        total = variance + 2.0 * posterior.likelihood.noise_variance
        u = np.where(truth, mean, -mean) / np.sqrt(total)
        slope = np.exp(norm.logpdf(u) - norm.logcdf(u))
        return -0.5 * np.log1p(-np.clip(slope * (slope + u) * variance / total, 0.0, 1.0 - 1e-12))


class Machine:
    """A support vector machine that asks for what is nearest to its border."""

    def __init__(self, kind, kernel):
        gamma = 1.0 if kind == "linear" else 0.5 / kernel.k1.kernel.length_scale**2
        self._model = SVC(kernel=kind, gamma=gamma, C=100.0)

    def fit(self, duels, truth):
        self._model.fit(duels[:, 0, :-1], truth)
        return self

    def error(self, duels, truth):
        return np.mean(self._model.predict(duels[:, 0, :-1]) != truth)

    def ask(self, pool, truth, known, rng):
        far = np.abs(self._model.decision_function(pool[:, 0, :-1]))
        return int(np.argmin(np.where(known, np.inf, far)))


def rows_of(name, by, split, strategies):
    """A row for each strategy."""
    return list(_rows_of(name, by, split, strategies)) if strategies else []


def _rows_of(name, by, split, strategies):
    pool, truth, test, right = split_of(name, split)
    kind, kernel, noise_variance = learned(pool, truth, by)
    of_whole = {}  # which takes as long as all the rest
    for strategy in strategies:
        machine = strategy == "svm"
        model = Machine(kind, kernel) if machine else Process(kernel, noise_variance, strategy)
        if machine not in of_whole:
            of_whole[machine] = model.fit(pool, truth).error(test, right)
        whole = of_whole[machine]
        rng = np.random.default_rng(split)
        asked = [int(rng.choice(np.flatnonzero(truth == side))) for side in (True, False)]
        errors = []
        while True:
            errors.append(model.fit(pool[asked], truth[asked]).error(test, right))
            if len(asked) == min(MOST, len(pool)):
                break
            known = np.isin(np.arange(len(pool)), asked)
            asked.append(model.ask(pool, truth, known, rng))
        reached = 1.0 - np.array(errors) >= SHARE * (1.0 - whole)
        row = {"set": name, "chosen_by": by, "strategy": strategy, "split": split, "kernel": kind}
        row["labels"] = 2 + (0 if reached.all() else 1 + int(np.flatnonzero(~reached)[-1]))
        row["first"] = 2 + (int(np.argmax(reached)) if reached.any() else len(reached))
        row |= {"whole": round(whole, 5), "mean_error": round(np.mean(errors), 5)}
        yield row | {f"error_{n}": round(errors[n - 2], 5) for n in AT}


def summary(rows):
    """Means over the splits with standard errors, and the printed ones."""
    for name, by in dict.fromkeys((row["set"], row["chosen_by"]) for row in rows):
        for strategy in STRATEGIES:
            key = (name, by, strategy)
            own = [r for r in rows if (r["set"], r["chosen_by"], r["strategy"]) == key]
            if not own:
                continue
            found = dict(zip(("set", "chosen_by", "strategy"), key, strict=True))
            linear = sum(row["kernel"] == "linear" for row in own)
            found |= {"splits": len(own), "linear": linear}
            for column in ("labels", "first"):
                values = np.array([float(row[column]) for row in own])
                found[column] = round(values.mean(), 2)
                error = values.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
                found[f"{column}_se"] = round(error, 2)
            found["printed"], found["printed_se"] = printed(name, strategy)
            found["never"] = sum(float(row["labels"]) > MOST for row in own)
            for column in COLUMNS[7:]:
                found[column] = round(np.mean([float(row[column]) for row in own]), 4)
            yield found


def printed(name, strategy):
    """Mean and standard error of the supplement; empty where it has none."""
    if name not in PRINTED or strategy not in PRINTED["strategies"]:
        return "", ""
    at = 2 * PRINTED["strategies"].index(strategy)
    found = PRINTED[name].split()[at : at + 2]
    return ("not reached", "") if found[0] == "nan" else tuple(map(float, found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--kernel", default="evidence", choices=KERNELS)
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of hyperparameters at their bounds, where classes are apart
    path, rows = RESULTS / "active.csv", []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    for name in [] if options.table else options.sets:
        for split in range(options.splits):
            unit = (name, options.kernel, split)
            mine = [r for r in rows if (r["set"], r["chosen_by"], int(r["split"])) == unit]
            done = {row["strategy"] for row in mine}
            left = [each for each in options.strategies if each not in done]
            rows += unless_missing(name, rows_of, *unit, left) or []
            _write(path, COLUMNS, rows)
    found = list(summary(rows))
    if not found:
        leave("no rows")
    _write(RESULTS / "active_summary.csv", list(found[0]), found)
    for row in found:
        print(*row.values(), sep="\t")


def _write(path, columns, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
