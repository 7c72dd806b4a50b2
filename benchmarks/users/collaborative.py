"""Many users with few duels each: collaborative preferences beside models that share less.

The sets of Houlsby et al., "Collaborative Gaussian processes for preference learning" (NIPS
2012), 100 users of each: some duels of each user, drawn at random, are learned from (20 in Sushi,
MovieLens and Election, 15 in Jura, 30 in Synthetic, as there), the others predicted; means over
splits, each of which draws users, items and duels anew. Beside them the choices of 60 people
between cars.

Methods are those of ``CollaborativePreferenceRegressor``: ``cp``, ``cpu`` (with features of users),
``su`` (each user alone), ``pooled``, ``birlutiu``, ``bonilla``; ``su as there`` is ``su`` with the
hyperparameters of the paper (nothing learned: median lengthscale, unit variance, unit noise on
margins); the others are Bradley–Terry models without features (logistic regressions, penalty by
the log-loss on a third of the duels): ``bt`` of each user, ``bt pooled``, ``bt both`` with an
average and deviations of users from it. Some are run where they are named: ``cp independent``,
whose tastes stay independent, since no covariance of them is learned; ``cp ids``, which knows
nothing of items but which is which; ``vb``, the inference of the paper itself (``inference="vb"``,
20 functions, as there); ``cp 5`` and ``vb 5`` of five functions. Results are appended as they come;
what is there is not done again.

    python benchmarks/users/collaborative.py
    python benchmarks/users/collaborative.py --splits 1 --sets Sushi
    python benchmarks/users/collaborative.py --users 1000 --splits 2 --methods cp cpu su

Into ``results/collaborative_checks.csv``, by ``--results``, go

    --sets Synthetic Sushi Election --methods "cp independent"
    --sets MovieLens --methods "cp ids"
    --sets "Sushi, theirs" --methods "su as there" --splits 25
"""

import argparse
import csv
import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skpref.collaborative import CollaborativePreferenceRegressor, _program
from skpref.duels import ItemTable
from skpref.metrics import answer_accuracy, answer_log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _collaborative_sets import SETS, SHARES
from common import RESULTS, report, unless_missing

RIVALS = ("bt", "bt pooled", "bt both")
METHODS = ("cp", "cpu", "su", "pooled", "birlutiu", "bonilla", "su as there", *RIVALS)
# The inference and the number of functions.
FUNCTIONS = {"vb": ("vb", 20), "cp 5": ("ep", 5), "vb 5": ("vb", 5)}
EXTRA = ("cp independent", "cp ids", *FUNCTIONS)
KEY = ("set", "users", "share", "split", "method")
PENALTIES = (0.03, 0.3, 3.0, 30.0)


class Half:
    """Duels of users: rows of a table, and whether the first won.

    Parameters
    ----------
    X : ndarray of int of shape (n, 2)
    y, user : ndarray of int of shape (n,)
    """

    def __init__(self, X, y, user):
        self.X, self.y, self.user = X, y, user

    def take(self, rows):
        """Some of them."""
        return Half(self.X[rows], self.y[rows], self.user[rows])


def split(data, share, rng):
    """Which duels to learn from, a share of each user's, and which to predict."""
    n = len(data.user)
    turn = rng.random(n) < 0.5
    X = np.column_stack([data.winner, data.loser])
    all_of = Half(np.where(turn[:, None], X, X[:, ::-1]), turn.astype(int), data.user)
    # Of each user the first part of a random order.
    order = np.lexsort((rng.random(n), data.user))
    begin = np.searchsorted(data.user[order], np.arange(len(data.users)))
    nth = np.arange(n) - begin[data.user[order]]
    count = np.bincount(data.user, minlength=len(data.users))
    learn = np.zeros(n, dtype=bool)
    learn[order] = nth < np.rint(share * count[data.user[order]])
    return all_of.take(learn), all_of.take(~learn)


def run(name, n_users, share, seed, method):
    """Error and log-loss on the duels left out."""
    rng = np.random.default_rng([seed, n_users])
    data = SETS[name](rng, n_users)
    learn, rest = split(data, share, rng)
    began = time.process_time()
    if method in RIVALS:
        proba, passes = bradley_terry(data, learn, rest, method), 0
    else:
        independent = {"cp": _program.METHODS["cp"]._replace(prior_users=None)}
        ours = mock.patch.dict(_program.METHODS, independent)
        with ours if method == "cp independent" else nullcontext():
            model = regressor(data, method).fit(learn.X, learn.y, users=learn.user)
        passes = model.n_iter_
    seconds = time.process_time() - began
    if method not in RIVALS:
        proba = model.predict_proba(rest.X, users=rest.user)
    return {
        **scores(rest.y, proba),
        "n_train": len(learn.y),
        "n_iter": passes,
        "seconds": seconds,
    }


def scores(y, proba):
    """Error and log-loss."""
    return {"error": 1.0 - answer_accuracy(y, proba), "log_loss": answer_log_loss(y, proba)}


def regressor(data, method):
    """The package's estimator of a name."""
    options = {"user_features": data.users} if method in ("cpu", "bonilla") else {}
    # Ten films may share their genres: items have an id behind the features.
    items = np.column_stack([data.items, np.arange(len(data.items))])
    options["id_column"] = data.items.shape[1]
    if method == "su as there":
        spread = data.items.std(axis=0)
        items = (data.items - data.items.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        options = {
            "kernel": RBF(np.sqrt(0.5 * np.median(pdist(items, "sqeuclidean")))),
            "noise_variance": 0.5,
            "optimizer": None,
        }
        method = "su"
    if method == "cp ids":
        items, options = ItemTable.from_names([str(k) for k in range(len(data.items))]), {}
    if method in FUNCTIONS:
        options["inference"], options["n_latent"] = FUNCTIONS[method]
    method = "cp" if method in EXTRA else method
    return CollaborativePreferenceRegressor(items=items, method=method, **options)


def bradley_terry(data, learn, rest, method):
    """Chances of the outcomes by logistic regression on who is compared with whom."""

    def table(half):
        n, n_items = len(half.y), len(data.items)
        rows, values = np.repeat(np.arange(n), 2), np.tile([1.0, -1.0], n)
        whose = (half.user[:, None] * n_items + half.X).ravel()
        shape = n, len(data.users) * n_items
        own = csr_array((values, (rows, whose)), shape=shape)
        common = csr_array((values, (rows, half.X.ravel())), shape=(n, n_items))
        parts = {"bt": [own], "bt pooled": [common], "bt both": [common, own]}[method]
        return csr_array(hstack(parts))

    def proba(train, test, penalty):
        model = LogisticRegression(C=penalty, fit_intercept=False, max_iter=1000)
        return model.fit(table(train), train.y).predict_proba(table(test))

    third = np.random.default_rng(0).random(len(learn.y)) < 1.0 / 3.0
    inner, outer = learn.take(~third), learn.take(third)
    losses = [answer_log_loss(outer.y, proba(inner, outer, penalty)) for penalty in PENALTIES]
    return proba(learn, rest, PENALTIES[int(np.argmin(losses))])


def done(path):
    """Rows that are there, as text."""
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def append(path, row):
    """Add a row to a CSV, and print it."""
    print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    fresh = not path.exists()
    with path.open("a", newline="") as handle:
        writer = csv.DictWriter(handle, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def summary(rows, keys=("set", "users", "share", "method")):
    """Means over splits and their standard errors, a row for each of what ``keys`` tell apart."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    found = []
    for names, mine in groups.items():
        row = {**dict(zip(keys, names, strict=True)), "splits": len(mine)}
        for column in ("error", "log_loss"):
            values = np.array([float(each[column]) for each in mine])
            row[column] = values.mean()
            spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            row[f"{column}_se"] = spread
        row["seconds"] = np.mean([float(each["seconds"]) for each in mine])
        found.append(row)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=(*METHODS, *EXTRA))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--share", type=float, help="of each user's duels to learn from")
    parser.add_argument("--results", type=Path, default=RESULTS / "collaborative.csv")
    options = parser.parse_args()
    there = {tuple(row[key] for key in KEY) for row in done(options.results)}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for seed in range(options.splits):
        for name in options.sets:
            share = round(SHARES[name] if options.share is None else options.share, 4)
            for method in options.methods:
                task = (name, options.users, share, seed, method)
                if tuple(map(str, task)) in there:
                    continue
                with threadpool_limits(1):
                    found = unless_missing(name, run, *task)
                if found is not None:
                    append(options.results, {**dict(zip(KEY, task, strict=True)), **found})
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(summary(done(options.results)), path, data="see _collaborative_sets.py")


if __name__ == "__main__":
    main()
