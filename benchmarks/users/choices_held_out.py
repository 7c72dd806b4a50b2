"""Choices of people who were not asked: ours beside conditional and mixed logit.

    python benchmarks/users/choices_held_out.py [--sets yogurt electricity] [--people 25]
        [--choices 10] [--splits 6]

Public sets of choices among four, many by one person: purchases of yogurt (Jain et al. 1994) and
stated choices of electricity suppliers (Train), as the R package logitr (MIT) has them. Of the
people, by lot, so many are asked, and 60 others are held out; of each person the first choices are
taken. "conditional" and "mixed" are logits by maximum likelihood, the second with independent
normal slopes of each person (128 Halton draws). "alike" has linear slopes for all, "own" adds those
of each person. In ``results/choices_held_out.csv`` are mean log-losses over splits, the mean
differences from each logit, and their standard errors. Files are looked for in ``choices`` of the
data folder: ``yogurt_raw.csv``, and ``electricity.csv``, written from ``electricity.rda``.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, note, report

from skpref import PairwisePreferenceRegressor
from skpref.kernels import Identity, Linear, OnColumns

N_HELD_OUT, N_DRAWS = 60, 128
BRANDS = ["yoplait", "dannon", "hiland", "weight"]
ATTRIBUTES = ["pf", "cl", "loc", "wk", "tod", "seas"]


def read_yogurt():
    """Return people, attributes (n, 4, 5), and places that were chosen."""
    data = pd.read_csv(data_folder() / "choices" / "yogurt_raw.csv")
    constants = np.broadcast_to(np.eye(4)[:, 1:], (len(data), 4, 3))
    columns = [data[[f"{name}.{brand}" for brand in BRANDS]] for name in ("price", "feat")]
    X = np.concatenate([np.stack(columns, axis=2), constants], axis=2)
    return data["id"].to_numpy(), X, data["choice"].map(BRANDS.index).to_numpy()


def read_electricity():
    """Return people, attributes (n, 4, 6), and places that were chosen."""
    data = pd.read_csv(data_folder() / "choices" / "electricity.csv")
    data = data.sort_values(["id", "obsID", "alt"])
    chosen = data["choice"].to_numpy().reshape(-1, 4).argmax(axis=1)
    X = data[ATTRIBUTES].to_numpy(float).reshape(-1, 4, len(ATTRIBUTES))
    return data["id"].to_numpy()[::4], X, chosen


SETS = {"yogurt": read_yogurt, "electricity": read_electricity}


def normal_draws(d, n):
    """Return (n, d) Halton draws of standard normals."""
    return ndtri(qmc.Halton(d, rng=0).random(n).clip(1e-6, 1.0 - 1e-6))


def fit_logit(X, chosen, people, draws):
    """Return means and deviations of slopes by simulated maximum likelihood, (2, d)."""
    n, d = len(X), X.shape[2]
    ahead = X - X[np.arange(n), chosen][:, None]
    starts = np.flatnonzero(np.r_[True, people[1:] != people[:-1]])

    def loss(parameters):
        seen = ahead @ (parameters[:d] + parameters[d:] * draws).T
        each = logsumexp(seen, axis=1)
        slope = np.einsum("skr,skd->srd", np.exp(seen - each[:, None]), ahead)
        joint = -np.add.reduceat(each, starts)
        total = logsumexp(joint, axis=1)
        share = np.exp(joint - total[:, None])[:, :, None]
        slope = share * np.add.reduceat(slope, starts)
        gradient = np.concatenate([slope.sum((0, 1)), (slope * draws).sum((0, 1))])
        return -np.sum(total - np.log(len(draws))), gradient

    start = np.concatenate([np.zeros(d), np.full(d, 0.1)])
    return minimize(loss, start, jac=True, method="L-BFGS-B").x.reshape(2, d)


def logit_loss(slopes, X, chosen, draws):
    """Return the mean log-loss of choices of people of whom nothing is known."""
    seen = X @ (slopes[0] + slopes[1] * draws).T
    logs = seen[np.arange(len(X)), chosen] - logsumexp(seen, axis=1)
    return float(np.mean(np.log(len(draws)) - logsumexp(logs, axis=1)))


def losses(data, n_people, n_choices, seed):
    """Return the log-loss of each method on one split by person."""
    people, X, chosen = data
    lot = np.random.default_rng(seed).permutation(np.unique(people))
    early = pd.Series(people).groupby(people).cumcount().to_numpy() < n_choices
    asked, other = (
        early & np.isin(people, part)
        for part in (lot[:n_people], lot[n_people : n_people + N_HELD_OUT])
    )
    X = (X - X[asked].mean((0, 1))) / X[asked].std((0, 1))
    d = X.shape[2]
    none, draws = np.zeros((1, d)), normal_draws(d, N_DRAWS)
    found = {}
    for name, points in (("conditional", none), ("mixed", draws)):
        slopes = fit_logit(X[asked], chosen[asked], people[asked], points)
        found[name] = logit_loss(slopes, X[other], chosen[other], points)
    column = np.broadcast_to(people[:, None, None].astype(float), (len(X), 4, 1))
    rows = np.concatenate([column, X], axis=2)
    columns = list(range(1, d + 1))
    shared, own = (OnColumns(Linear([1.0] * d, (1e-3, 1e2)), columns) for _ in range(2))
    kernels = {"alike": shared, "own": shared + OnColumns(Identity(), [0]) * own}
    for name, kernel in kernels.items():
        model = PairwisePreferenceRegressor(kernel).fit(rows[asked], chosen[asked])
        probability = model.predict_proba(rows[other])
        found[name] = float(-np.log(probability[np.arange(len(probability)), chosen[other]]).mean())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS])
    parser.add_argument("--people", nargs="+", type=int, default=[25])
    parser.add_argument("--choices", type=int, default=10)
    parser.add_argument("--splits", type=int, default=6)
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        try:
            data = SETS[name]()
        except OSError as error:
            note(f"no {name}: {error}")
            continue
        for n_people in options.people:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                each = pd.DataFrame(
                    losses(data, n_people, options.choices, seed) for seed in range(options.splits)
                )
            for method in each:
                row = {"set": name, "people": n_people, "splits": len(each), "method": method}
                row["log_loss"] = float(each[method].mean())
                for logit in ("conditional", "mixed"):
                    difference = each[method] - each[logit]
                    row[f"from_{logit}"] = float(difference.mean())
                    row[f"error_{logit}"] = float(difference.sem())
                rows.append(row)
            report(rows, RESULTS / "choices_held_out.csv", quiet=True, arguments=vars(options))
    report(rows, RESULTS / "choices_held_out.csv", arguments=vars(options))


if __name__ == "__main__":
    main()
