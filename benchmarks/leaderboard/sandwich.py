"""A board of language models beside Bradley–Terry with sandwich intervals.

The verdicts of the crowd that are in the package (59 models, 124 judges, ties). Bradley–Terry is
fitted by maximum likelihood, a tie as half a win of each, with a ridge of 1e-6; its 90 % intervals
are of the sandwich estimator, as if verdicts were independent, and clustered by judge. skpref's
boards are of the default engine with ties, and with the judges' reliability. All are in log odds
above the mean model.

Printed for each method: the mean length of the intervals, Kendall's tau of its order with
Bradley–Terry's, how many of the ten first they share, and the log-loss of held-out decided
verdicts (ten folds; of "the first one won", given that it was no tie). Run:
``python benchmarks/leaderboard/sandwich.py``; some minutes.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau, norm
from sklearn.model_selection import KFold

from skpref import PairwisePreferenceRegressor
from skpref.datasets import load_llm_duels
from skpref.duels import ItemTable
from skpref.inspection import leaderboard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

LEVEL = 0.9
RIDGE = 1e-6


def scores(X, y):
    """1 for a win of the first, ½ for a tie, and the design matrix."""
    n_models = int(X.max()) + 1
    design = np.zeros((len(X), n_models))
    design[np.arange(len(X)), X[:, 0]] += 1.0
    design[np.arange(len(X)), X[:, 1]] -= 1.0
    return 0.5 * (1.0 + y), design


def bradley_terry(X, y, n_models, clusters=None):
    """Log odds above the mean, and their standard errors by the sandwich."""
    target, design = scores(X, y)
    design = np.pad(design, ((0, 0), (0, n_models - design.shape[1])))
    beta = np.zeros(n_models)
    for _ in range(50):
        p = expit(design @ beta)
        hessian = (design * (p * (1.0 - p))[:, None]).T @ design + RIDGE * np.eye(n_models)
        step = np.linalg.solve(hessian, design.T @ (target - p) - RIDGE * beta)
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    rows = design * (target - expit(design @ beta))[:, None]
    if clusters is not None:
        sums = np.zeros((clusters.max() + 1, n_models))
        np.add.at(sums, clusters, rows)
        rows = sums
    bread = np.linalg.pinv(hessian - RIDGE * np.eye(n_models), hermitian=True)
    covariance = bread @ (rows.T @ rows) @ bread
    centre = np.eye(n_models) - 1.0 / n_models
    return centre @ beta, np.sqrt(np.diag(centre @ covariance @ centre))


def board(data, table, judges):
    """skpref's utilities in log odds, and the lengths of their intervals."""
    model = PairwisePreferenceRegressor(items=table, tie_threshold=0.1, random_state=0)
    model.fit(data.X, data.y, judges=data.judge if judges else None)
    found = leaderboard(model, table, level=LEVEL, unit="logit", random_state=0)
    value, length = np.empty((2, len(table)))
    value[found.position], length[found.position] = found.utility, found.upper - found.lower
    return value, length


def decided_loss(data, table, n_models):
    """Log-losses of decided verdicts held out: Bradley–Terry, skpref, skpref with judges."""
    loss = {"bradley-terry": [], "skpref": [], "skpref, judges": []}
    for train, test in KFold(few(10, 2), shuffle=True, random_state=0).split(data.X):
        test = test[data.y[test] != 0]
        won = data.y[test] > 0
        beta, _ = bradley_terry(data.X[train], data.y[train], n_models)
        first = expit(beta[data.X[test, 0]] - beta[data.X[test, 1]])
        found = {"bradley-terry": first}
        for name, judges in (("skpref", None), ("skpref, judges", data.judge)):
            model = PairwisePreferenceRegressor(items=table, tie_threshold=0.1, random_state=0)
            model.fit(
                data.X[train], data.y[train], judges=None if judges is None else judges[train]
            )
            proba = model.predict_proba(
                data.X[test], **({} if judges is None else {"judges": judges[test]})
            )
            found[name] = proba[:, 2] / (proba[:, 0] + proba[:, 2])
        for name, p in found.items():
            loss[name].append(-np.log(np.where(won, p, 1.0 - p)))
    return {name: float(np.concatenate(parts).mean()) for name, parts in loss.items()}


def main():
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    data = load_llm_duels(ties=True)
    data |= {name: data[name][: few(None, 300)] for name in ("X", "y", "judge")}
    table, n_models = ItemTable.from_names(data.model_names), len(data.model_names)
    judge = np.unique(data.judge, return_inverse=True)[1]
    width = 2.0 * norm.ppf(0.5 + 0.5 * LEVEL)
    plain, error = bradley_terry(data.X, data.y, n_models)
    methods = {
        "bradley-terry, sandwich": (plain, width * error),
        "bradley-terry, by judge": (
            plain,
            width * bradley_terry(data.X, data.y, n_models, judge)[1],
        ),
        "skpref": board(data, table, False),
        "skpref, judges": board(data, table, True),
    }
    loss = decided_loss(data, table, n_models)
    first = set(np.argsort(-plain)[:10])
    rows = [
        {
            "method": name,
            "interval": float(length.mean()),
            "spread": float(value.std()),
            "tau": float(kendalltau(value, plain)[0]),
            "first_ten_shared": len(first & set(np.argsort(-value)[:10])),
            "log_loss": loss["bradley-terry" if name.startswith("brad") else name],
        }
        for name, (value, length) in methods.items()
    ]
    report(rows, RESULTS / "sandwich.csv", verdicts=len(data.X), level=LEVEL)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
