"""Many users with few duels each: collaborative preferences beside models that share less.

The sets of Houlsby et al. (NIPS 2012), table 2: the duels of each of 100 users are split at random
in halves, one to learn from, one to be predicted; means over splits. ``paper`` are the figures
printed there, of splits of their own. Methods are those of ``CollaborativePreferenceRegressor``:
``cp``, ``cpu`` (with features of users), ``su`` (each user alone), ``pooled``, ``birlutiu``,
``bonilla``. Results are appended as they come; what is there is not done again.

    python benchmarks/collaborative.py                      # half an hour on one idle core
    python benchmarks/collaborative.py --splits 1 --sets Sushi
    python benchmarks/collaborative.py --users 1000 --methods cp cpu su
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from _collaborative_sets import SETS
from common import RESULTS, report
from threadpoolctl import threadpool_limits

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.metrics import duel_accuracy, duel_log_loss

METHODS = ("cp", "cpu", "su", "pooled", "birlutiu", "bonilla")
PAPER = {
    "Synthetic": {"cpu": 0.163, "cp": 0.182, "birlutiu": 0.255, "bonilla": 0.169, "su": 0.228},
    "Sushi": {"cpu": 0.125, "cp": 0.115, "birlutiu": 0.196, "bonilla": 0.253, "su": 0.153},
    "MovieLens": {"cpu": 0.187, "cp": 0.166, "birlutiu": 0.205, "bonilla": 0.314, "su": 0.223},
    "Election": {"cpu": 0.232, "cp": 0.154, "birlutiu": 0.153, "bonilla": 0.385, "su": 0.309},
    "Jura": {"cpu": 0.162, "cp": 0.154, "birlutiu": 0.188, "bonilla": 0.181, "su": 0.185},
}
KEY = ("set", "users", "share", "split", "method")


def run(name, n_users, share, split, method):
    """Error and log-loss on the duels left out."""
    rng = np.random.default_rng([split, n_users])
    data = SETS[name](rng, n_users)
    turn = rng.random(len(data.user)) < 0.5
    X = np.where(turn[:, None], *(np.column_stack(p) for p in _sides(data)))
    y = turn.astype(int)
    # Of each user the first part of a random order.
    order = np.lexsort((rng.random(len(data.user)), data.user))
    begin = np.searchsorted(data.user[order], np.arange(len(data.users)))
    nth = np.arange(len(order)) - begin[data.user[order]]
    count = np.bincount(data.user, minlength=len(data.users))
    learn = np.zeros(len(order), dtype=bool)
    learn[order] = nth < np.rint(share * count[data.user[order]])
    options = {"user_features": data.users} if method in ("cpu", "bonilla") else {}
    model = CollaborativePreferenceRegressor(items=data.items, method=method, **options)
    began = time.process_time()
    model.fit(X[learn], y[learn], users=data.user[learn])
    seconds = time.process_time() - began
    proba = model.predict_proba(X[~learn], users=data.user[~learn])
    return {
        "error": 1.0 - duel_accuracy(y[~learn], proba),
        "log_loss": duel_log_loss(y[~learn], proba),
        "n_train": int(learn.sum()),
        "n_iter": model.n_iter_,
        "seconds": seconds,
    }


def _sides(data):
    """Rows of the table, winner first and loser first."""
    return (data.winner, data.loser), (data.loser, data.winner)


def _done(path):
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def summary(rows):
    """Means over splits, a row a set and method."""
    found = []
    for name in dict.fromkeys(row["set"] for row in rows):
        for method in METHODS:
            mine = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            for users in sorted({int(row["users"]) for row in mine}):
                own = [row for row in mine if int(row["users"]) == users]
                error = np.array([float(row["error"]) for row in own])
                loss = np.array([float(row["log_loss"]) for row in own])
                found.append(
                    {
                        "set": name,
                        "users": users,
                        "method": method,
                        "splits": len(own),
                        "error": error.mean(),
                        "se": error.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan,
                        "paper": PAPER[name].get(method, np.nan),
                        "log_loss": loss.mean(),
                        "seconds": np.mean([float(row["seconds"]) for row in own]),
                    }
                )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument(
        "--share", type=float, default=0.5, help="of each user's duels to learn from"
    )
    parser.add_argument("--results", type=Path, default=RESULTS / "collaborative.csv")
    options = parser.parse_args()
    rows = _done(options.results)
    done = {tuple(str(row[key]) for key in KEY) for row in rows}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for split in range(options.splits):
        for name in options.sets:
            for method in options.methods:
                task = (name, options.users, options.share, split, method)
                if tuple(map(str, task)) in done:
                    continue
                with threadpool_limits(1):
                    found = run(*task)
                row = {**dict(zip(KEY, task, strict=True)), **found}
                print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
                fresh = not options.results.exists()
                with options.results.open("a", newline="") as handle:
                    writer = csv.DictWriter(handle, list(row))
                    if fresh:
                        writer.writeheader()
                    writer.writerow(row)
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(summary(_done(options.results)), path, data="see _collaborative_sets.py")


if __name__ == "__main__":
    main()
