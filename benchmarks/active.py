"""How many labels does a Gaussian-process classifier need, by how they are chosen?

Table 1 of the supplement of Houlsby et al. (2012), on sets that scikit-learn ships. A classifier is
a preference model whose duels are all against one constant item, of utility 0: P(first wins) =
Φ(f(x)/√(2σ²)). Each set is split at random into a pool and a test half. Lengthscale and noise are
learned once on the whole pool and are the same for all strategies; the first two labels are one of
each class. Then one label after another is asked for, 60 in all. Counted is from which number on
the accuracy on the test half stays at 95 % of that with the whole pool, or above.

Run: ``python benchmarks/active.py [--splits 10] [--sets wine iris ...]``. What is in
``results/active.csv`` already is not computed again; ``results/active_summary.csv`` has the means.
"""

import argparse
import csv
import warnings

import numpy as np
from common import RESULTS
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.preprocessing import StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.active import query
from skpref.kernels import OnColumns
from skpref.metrics import duel_log_loss

STRATEGIES = {
    "bald": {},
    "entropy": {},
    "variance": {},
    "committee": {"members": 100},
    "vote": {"members": 20, "vote": True},
    "random": {},
}
MOST, SHARE = 60, 0.95
AT = (10, 20, 40)
COLUMNS = ["set", "strategy", "split", "labels", "whole", "mean_error"]
COLUMNS += [f"{name}_{n}" for n in AT for name in ("error", "log_loss")]


def _two(load, one, other):
    data, target = load(return_X_y=True)
    rows = np.isin(target, (one, other))
    return data[rows], target[rows] == one


SETS = {
    "wdbc": lambda: _two(load_breast_cancer, 0, 1),
    "wine": lambda: _two(load_wine, 0, 1),
    "iris": lambda: _two(load_iris, 1, 2),
    "digits 3 v. 5": lambda: _two(load_digits, 3, 5),
    "digits 8 v. 9": lambda: _two(load_digits, 8, 9),
}


def split_of(name, seed):
    """Duels against the constant item and their outcomes, of a pool and a test half."""
    data, label = SETS[name]()
    order = np.random.default_rng(seed).permutation(len(data))
    data, label = StandardScaler().fit_transform(data)[order], label[order]
    items = np.column_stack([data, np.ones(len(data))])
    duels = np.stack([items, np.zeros_like(items)], axis=1)
    half = len(duels) // 2
    return duels[:half], label[:half], duels[half:], label[half:]


def classifier(d):
    """f of the constant item, whose last column is 0 as all others, is 0 under this kernel."""
    features = OnColumns(RBF(np.sqrt(d), (0.1, 100.0)), list(range(d)))
    return features * OnColumns(DotProduct(0.0, "fixed"), [d])


def labelled(model, strategy, pool, truth, rng):
    """The rows of the pool that are asked for, the first two one of each class."""
    asked = [int(rng.choice(np.flatnonzero(truth == side))) for side in (True, False)]
    while len(asked) < min(MOST, len(pool)):
        yield np.array(asked)
        model.fit(pool[asked], truth[asked])
        name = "committee" if strategy == "vote" else strategy
        known = np.isin(np.arange(len(pool)), asked)
        options = {"answered": known, "random_state": rng, **STRATEGIES[strategy]}
        asked.append(int(query(model, pool, name, **options)[0]))
    yield np.array(asked)


def scores(model, test, truth):
    """Error and log-loss."""
    proba = model.predict_proba(test)
    return np.mean((proba[:, 1] > 0.5) != truth), duel_log_loss(truth, proba)


def one(name, split, strategies):
    """A row for each strategy."""
    pool, truth, test, right = split_of(name, split)
    kernel = classifier(pool.shape[2] - 1)
    whole = PairwisePreferenceRegressor(kernel, noise_variance=0.1, lengthscale_prior=None)
    whole.fit(pool, truth)
    wanted = SHARE * (1.0 - scores(whole, test, right)[0])
    options = {"noise_variance": whole.noise_variance_, "optimizer": None}
    for strategy in strategies:
        model = PairwisePreferenceRegressor(whole.kernel_, **options)
        row = {"set": name, "strategy": strategy, "split": split, "labels": 2}
        row["whole"] = round(1.0 - wanted / SHARE, 5)
        errors = []
        for asked in labelled(model, strategy, pool, truth, np.random.default_rng(split)):
            error, loss = scores(model.fit(pool[asked], truth[asked]), test, right)
            errors.append(error)
            if 1.0 - error < wanted:
                row["labels"] = len(asked) + 1
            if len(asked) in AT:
                row |= {f"error_{len(asked)}": round(error, 5)}
                row |= {f"log_loss_{len(asked)}": round(loss, 5)}
        row["mean_error"] = round(np.mean(errors), 5)
        yield row


def summary(rows):
    """Means over the splits, and the standard error of the number of labels."""
    for name in dict.fromkeys(row["set"] for row in rows):
        for strategy in STRATEGIES:
            own = [r for r in rows if (r["set"], r["strategy"]) == (name, strategy)]
            if not own:
                continue
            labels = np.array([float(row["labels"]) for row in own])
            found = {"set": name, "strategy": strategy, "splits": len(own)}
            found["labels"] = round(labels.mean(), 2)
            found["labels_error"] = round(labels.std() / np.sqrt(len(own)), 2)
            found["never"] = int(np.sum(labels > MOST))
            for column in COLUMNS[4:]:
                found[column] = round(np.mean([float(row[column]) for row in own]), 4)
            yield found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of hyperparameters at their bounds, where classes are apart
    path, rows = RESULTS / "active.csv", []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    for name in options.sets:
        for split in range(options.splits):
            done = {r["strategy"] for r in rows if (r["set"], int(r["split"])) == (name, split)}
            rows += one(name, split, [each for each in STRATEGIES if each not in done])
            _write(path, COLUMNS, rows)
    found = list(summary(rows))
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
