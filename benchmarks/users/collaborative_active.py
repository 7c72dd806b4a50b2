"""What is learned of many users by asking each the duels that tell most.

Table 3 and figure 3 of Houlsby et al. (NIPS 2012), at 100 users: of each user's duels a quarter is
left out to be predicted, five are answered at the start, the rest is the pool. In each of ten
rounds every user is asked the duel of their own pool of the largest score, and the model is fitted
to all answers. Hyperparameters are learned at the start, after five rounds and after ten.
``paper`` are the figures printed there, for up to 1 000 users. Results are appended as they come;
what is there is not done again.

    python benchmarks/users/collaborative_active.py                # half an hour on one idle core
    python benchmarks/users/collaborative_active.py --splits 1 --sets Sushi
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skpref.active import query
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.fitting import fix_hyperparameters
from skpref.metrics import answer_accuracy, answer_log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _collaborative_sets import SETS
from common import RESULTS, few, report, unless_missing

METHODS, STRATEGIES = ("cpu", "cp", "su"), ("bald", "entropy", "random")
PAPER = {
    "Synthetic": {"cpu": (0.136, 0.136, 0.140), "cp": (0.154, 0.161, 0.179)},
    "Sushi": {"cpu": (0.150, 0.155, 0.185), "cp": (0.143, 0.151, 0.179)},
    "MovieLens": {"cpu": (0.172, 0.177, 0.200), "cp": (0.165, 0.171, 0.196)},
    "Election": {"cpu": (0.221, 0.188, 0.265), "cp": (0.107, 0.103, 0.184)},
    "Jura": {"cpu": (0.143, 0.144, 0.170), "cp": (0.138, 0.138, 0.170)},
}
PAPER["Synthetic"]["su"] = (0.253, 0.263, 0.276)
PAPER["Sushi"]["su"] = (0.183, 0.199, 0.215)
PAPER["MovieLens"]["su"] = (0.233, 0.240, 0.253)
PAPER["Election"]["su"] = (0.331, 0.349, 0.344)
PAPER["Jura"]["su"] = (0.183, 0.169, 0.201)
TEST, INITIAL, ROUNDS, LEARNED = 0.25, 5, few(10, 1), (5, 10)
COLUMNS = ["set", "users", "split", "method", "strategy", "round", "error", "log_loss"]
KEY = COLUMNS[:5]


class Study:
    """Duels of users, and which of them are to be predicted, are answered, and may be asked."""

    def __init__(self, name, n_users, split):
        rng = np.random.default_rng([split, n_users])
        data = SETS[name](rng, n_users)
        turn = rng.random(len(data.user)) < 0.5
        one, other = np.stack([data.winner, data.loser]), np.stack([data.loser, data.winner])
        self.items, self.people, self.users = data.items, data.users, data.user
        self.X, self.y = np.where(turn, one, other).T, turn.astype(int)
        # Of each user the first part of a random order is left out, the next is answered.
        order = np.lexsort((rng.random(len(data.user)), data.user))
        begin = np.searchsorted(data.user[order], np.arange(len(data.users)))
        nth = np.empty(len(order), dtype=int)
        nth[order] = np.arange(len(order)) - begin[data.user[order]]
        n_test = np.rint(TEST * np.bincount(data.user, minlength=len(data.users)))[data.user]
        self.test = nth < n_test
        self.started = ~self.test & (nth < n_test + INITIAL)

    def fitted(self, model, rows):
        """A model fitted to some of the duels."""
        return clone(model).fit(self.X[rows], self.y[rows], users=self.users[rows])

    def scores(self, model):
        """Error and log-loss on the duels left out."""
        proba = model.predict_proba(self.X[self.test], users=self.users[self.test])
        y = self.y[self.test]
        return {"error": 1.0 - answer_accuracy(y, proba), "log_loss": answer_log_loss(y, proba)}

    def next_ones(self, model, strategy, answered, rng):
        """A row for each user who has any left: the duel of the largest score."""
        rows = np.flatnonzero(~(self.test | answered))
        given = {"users": self.users[rows], "random_state": rng, "return_scores": True}
        score = query(model, self.X[rows], strategy, **given)[1]
        rows = rows[np.argsort(-score, kind="stable")]
        return rows[np.unique(self.users[rows], return_index=True)[1]]


def run(name, n_users, split, method, strategies):
    """Error and log-loss after each round, for each strategy."""
    study = Study(name, n_users, split)
    options = {"user_features": study.people} if method == "cpu" else {}
    model = CollaborativePreferenceRegressor(items=study.items, method=method, **options)
    first = study.fitted(model, study.started)
    for strategy in strategies:
        rng = np.random.default_rng([split, STRATEGIES.index(strategy)])
        answered, now, fixed = study.started.copy(), first, fix_hyperparameters(first)
        for turn in range(ROUNDS + 1):
            key = dict(zip(KEY, (name, n_users, split, method, strategy), strict=True))
            yield {**key, "round": turn, **study.scores(now)}
            if turn == ROUNDS:
                break
            answered[study.next_ones(now, strategy, answered, rng)] = True
            learns = turn + 1 in LEARNED
            now = study.fitted(model if learns else fixed, answered)
            fixed = fix_hyperparameters(now) if learns else fixed


def rows_of(name, n_users, split, method, strategies):
    """The rows of `run`."""
    return list(run(name, n_users, split, method, strategies)) if strategies else []


def _done(path):
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def curves(rows, name, method, strategy, column):
    """An array, splits by rounds."""
    own = [r for r in rows if (r["set"], r["method"], r["strategy"]) == (name, method, strategy)]
    found = {}
    for row in own:
        found.setdefault(row["split"], {})[int(row["round"])] = float(row[column])
    return np.array([[each[k] for k in range(ROUNDS + 1)] for each in found.values()])


def summary(rows):
    """Means over splits at the end and over all rounds, a row a set, method and strategy.

    ``behind`` is the log-loss, mean over rounds, less that of BALD on the same splits.
    """
    found = []
    for name in PAPER:
        for method in METHODS:
            best = curves(rows, name, method, "bald", "log_loss")
            for k, strategy in enumerate(STRATEGIES):
                of = {each: curves(rows, name, method, strategy, each) for each in COLUMNS[6:]}
                if not len(of["error"]):
                    continue
                row = {"set": name, "method": method, "strategy": strategy}
                row |= {"splits": len(of["error"]), "error_start": of["error"][:, 0].mean()}
                for what, values in of.items():
                    row |= _mean(f"{what}_end", values[:, -1])
                    row |= _mean(f"{what}_mean", values[:, 1:].mean(axis=1))
                both = min(len(best), len(of["log_loss"]))
                row |= _mean("behind", (of["log_loss"][:both] - best[:both])[:, 1:].mean(axis=1))
                row = {key: round(v, 4) if type(v) is not str else v for key, v in row.items()}
                found.append({**row, "paper": PAPER[name][method][k]})
    return found


def _mean(name, values):
    """Mean over splits and its standard error."""
    spread = values.std(ddof=1) if len(values) > 1 else np.nan
    return {name: float(values.mean()), f"{name}_se": float(spread / np.sqrt(len(values)))}


def figure(rows, path):
    """Curves of the mean log-loss and error over rounds, a panel a set, as figure 3."""
    import matplotlib.pyplot as plt

    colours = dict(zip(METHODS, ("tab:blue", "tab:green", "tab:red"), strict=True))
    lines = dict(zip(STRATEGIES, ("-", "--", ":"), strict=True))
    names = [name for name in PAPER if any(row["set"] == name for row in rows)]
    shown, axes = plt.subplots(2, len(names), figsize=(3.1 * len(names), 5.6), sharex=True)
    for at, name in enumerate(names):
        for row, column in enumerate(("error", "log_loss")):
            ax = axes[row, at]
            for method in METHODS:
                for strategy in STRATEGIES:
                    values = curves(rows, name, method, strategy, column)
                    x, centre = np.arange(ROUNDS + 1), values.mean(axis=0)
                    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                    style = {"color": colours[method], "ls": lines[strategy], "lw": 1.4}
                    ax.plot(x, centre, label=f"{method.upper()}, {strategy}", **style)
                    ax.fill_between(
                        x, centre - spread, centre + spread, color=colours[method], alpha=0.07, lw=0
                    )
            ax.set_title(name if row == 0 else "", fontsize=10)
            ax.set_xlabel("duels asked of each user" if row else "", fontsize=9)
            ax.tick_params(labelsize=8)
    axes[0, 0].set_ylabel("test error")
    axes[1, 0].set_ylabel("log-loss, nats")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    shown.legend(handles, labels, loc="lower center", ncol=9, fontsize=8, frameon=False)
    shown.tight_layout(rect=(0, 0.05, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    shown.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--results", type=Path, default=RESULTS / "collaborative_active.csv")
    parser.add_argument("--figure", type=Path, help="where to draw, such as curves.png")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for split in range(options.splits):
        for name in options.sets:
            for method in options.methods:
                given = name, options.users, split, method
                done = [tuple(row[key] for key in KEY) for row in _done(options.results)]
                left = [
                    each for each in STRATEGIES if done.count((*map(str, given), each)) < ROUNDS + 1
                ]
                with threadpool_limits(1):
                    found = unless_missing(name, rows_of, *given, left) or []
                _add(options.results, found)
                for row in found[ROUNDS :: ROUNDS + 1]:
                    print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    rows = _done(options.results)
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(summary(rows), path, data="see _collaborative_sets.py")
    if options.figure is not None:
        figure(rows, options.figure)


def _add(path, rows):
    fresh = not path.exists()
    with path.open("a", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
