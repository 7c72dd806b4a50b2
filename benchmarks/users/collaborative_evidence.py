"""Log evidence over the lengthscales of items and of users, beside the log-loss: figure 2.

The synthetic set of ``collaborative.py`` (both lengthscales are 1), 100 users, 30 duels of each to
learn from. ``cpu`` and ``bonilla`` on a grid of lengthscales, all else held: noise of variance 1 on
margins; the utility of variance 5 in all, as the data's, in ``cpu`` half of it the population's
and a quarter each a user's own and told by features. ``vb`` is ``cpu`` by the paper's inference
(``inference="vb"``, 20 functions). A row without a place in the grid is the fit that learns its
hyperparameters. Resumable.

    python benchmarks/users/collaborative_evidence.py
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from skpref.collaborative import CollaborativePreferenceRegressor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _collaborative_sets import SETS, SHARES
from collaborative import append, done, scores, split
from common import RESULTS, few, report

KEY = ("method", "log_items", "log_users", "split")
VARIANCE = {"cpu": 2.5, "bonilla": 5.0, "vb": 2.5}


def run(method, log_items, log_users, seed):
    """Log evidence, error and log-loss at lengthscales, or where None came at learned ones."""
    rng = np.random.default_rng([seed, 100])
    data = SETS["Synthetic"](rng, few(100, 4))
    learn, rest = split(data, SHARES["Synthetic"], rng)
    learned = log_items is None
    bounds = (1e-2, 1e2) if learned else "fixed"
    scales = (1.0, 1.0) if learned else np.exp([log_items, log_users])
    options = {"method": method}
    if method == "vb":
        options = {"inference": "vb", "n_latent": 20}
    model = CollaborativePreferenceRegressor(
        ConstantKernel(VARIANCE[method], bounds) * RBF(scales[0], bounds),
        **options,
        items=data.items,
        user_features=data.users,
        user_kernel=RBF(scales[1], bounds),
        noise_variance=0.5,
        optimizer="fmin_l_bfgs_b" if learned else None,
    ).fit(learn.X, learn.y, users=learn.user)
    found = np.log([model.kernel_.k2.length_scale, model.user_kernel_.length_scale])
    return {
        "found_items": found[0],
        "found_users": found[1],
        "log_evidence": model.log_marginal_likelihood_value_,
        **scores(rest.y, model.predict_proba(rest.X, users=rest.user)),
        "n_iter": model.n_iter_,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=7, help="of the grid, from -2 to 2")
    parser.add_argument("--methods", nargs="+", default=list(VARIANCE), choices=list(VARIANCE))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "collaborative_evidence.csv"
    there = {tuple(row[key] for key in KEY) for row in done(path)}
    steps = np.linspace(-2.0, 2.0, options.size).round(3).tolist()
    grid = [(None, None)] + [(one, other) for one in steps for other in steps]
    for method in options.methods:
        for one, other in grid:
            task = (method, one, other, 0)
            if tuple("" if part is None else str(part) for part in task) in there:
                continue
            with threadpool_limits(1):
                append(path, {**dict(zip(KEY, task, strict=True)), **run(*task)})
    rows = done(path)
    best = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        at = [row for row in mine if row["log_items"]]
        chosen = {
            "learned": next(row for row in mine if not row["log_items"]),
            "highest evidence": max(at, key=lambda row: float(row["log_evidence"])),
            "least log-loss": min(at, key=lambda row: float(row["log_loss"])),
            "least error": min(at, key=lambda row: float(row["error"])),
        }
        best += [{"which": which, **row} for which, row in chosen.items()]
    report(best, path.with_name("collaborative_evidence_summary.csv"), set="Synthetic, 100 users")


if __name__ == "__main__":
    main()
