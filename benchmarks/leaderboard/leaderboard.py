"""Do the intervals of a leaderboard hold what they say? Simulated tournaments, counted.

Utilities are drawn from the prior, items meet in random pairs, and the leaderboard of a fitted
model is held against the truth: the shares of 90 % (and 50 %) intervals that hold the utility
above the mean of all items, and of the shortest rank intervals that hold the rank (these may be
wider than they must, ranks being whole numbers); the mean probability of being best that the item
on top has, beside the share of tournaments in which it is the best. Hyperparameters are the true
ones ("known"), learned from a wrong start and taken as known ("learned"), or averaged over
("averaged", what a board does by default). Answers identify nothing but the ratio of utility to
noise, so utilities are compared in standard deviations of the noise, and beside it ("prior_90") in
units of the prior at the fit, whose amplitude is never learned. Standard errors are over
tournaments, whose items are not independent. `coverage.py` goes on to more items, with controls.

With ties where the estimator takes them. Run:
``python benchmarks/leaderboard/leaderboard.py [--tournaments 300] [--hmc] [--jobs 2]``; a few
minutes.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inspection import leaderboard
from skpref.kernels import Identity

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

NOISE, THRESHOLD = 0.3, 0.4
HAS_TIES = "tie_threshold" in PairwisePreferenceRegressor().get_params()
MEASURES = ("utility_90", "utility_50", "prior_90", "rank_90", "said_best", "is_best")
METHODS = ("known", "learned", "averaged")
# Name: items, duels, features (0: none).
SETTINGS = {
    "12 items, 60 duels": (12, 60, 0),
    "12 items, 400 duels": (12, 400, 0),
    "40 items, 300 duels": (40, 300, 0),
    "40 items of 2 features, 200 duels": (40, 200, 2),
}


def tournament(setting, ties, seed):
    """A table of items, their true utilities, and duels with outcomes."""
    n_items, n_duels, n_features = SETTINGS[setting]
    rng = np.random.default_rng(seed)
    if n_features:
        table = ItemTable(rng.uniform(size=(n_items, n_features)))
        kernel = RBF(0.5, "fixed")
    else:
        table = ItemTable.from_names([f"player {i}" for i in range(n_items)])
        kernel = Identity()
    values, vectors = np.linalg.eigh(kernel(table.X))
    utility = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(n_items))
    first = rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, size=n_duels)) % n_items
    seen = utility[first] - utility[second] + np.sqrt(2.0 * NOISE) * rng.standard_normal(n_duels)
    y = np.where(np.abs(seen) <= THRESHOLD, 0, np.sign(seen)) if ties else np.sign(seen)
    return table, kernel, utility, np.stack([first, second], axis=1), y.astype(int)


def model_of(table, kernel, ties, learned, engine):
    """The estimator with the true hyperparameters, or with wrong ones to start from."""
    wrong = 0.3 if learned else 1.0
    options = {"noise_variance": NOISE * wrong}
    if ties:
        options["tie_threshold"] = THRESHOLD * wrong
    return PairwisePreferenceRegressor(
        kernel,
        inference=engine,
        items=table,
        optimizer="fmin_l_bfgs_b" if learned else None,
        lengthscale_prior=None,
        random_state=0,
        **options,
    )


def one(setting, ties, hyperparameters, engine, seed):
    """Shares of intervals that hold, and the item on top."""
    warnings.simplefilter("ignore")  # of noise at its bounds, where few duels contradict
    table, kernel, utility, duels, y = tournament(setting, ties, seed)
    learned, average = hyperparameters != "known", hyperparameters == "averaged"
    model = model_of(table, kernel, ties, learned, engine).fit(duels, y)
    board = leaderboard(model, table, average=average, random_state=seed)
    half = leaderboard(model, table, level=0.5, average=average, n_draws=1, random_state=seed)
    truth = utility - utility.mean()
    rank = 1 + np.argsort(np.argsort(-utility))

    def held(found, scale):
        true = truth[found.position] * scale
        return np.mean((found.lower <= true) & (true <= found.upper))

    ranks = rank[board.position]
    noises = 1.0 / np.sqrt(NOISE)  # per unit of the truth
    return {
        "utility_90": held(board, noises),
        "utility_50": held(half, noises),
        "prior_90": held(board, 1.0 / board.noise_deviation),
        "rank_90": np.mean((board.rank_lower <= ranks) & (ranks <= board.rank_upper)),
        "said_best": board.probability_best[0],
        "is_best": float(ranks[0] == 1),
        "noise": model.noise_variance_,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tournaments", type=int, default=300)
    parser.add_argument("--hmc", action="store_true", help="the exact posterior too (slow)")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for ties in (False, True) if HAS_TIES else (False,):
        for setting in [*SETTINGS][: few(None, 1)]:
            for engine in ("ep", "hmc") if options.hmc else ("ep",):
                for hyperparameters in METHODS if engine == "ep" else METHODS[:2]:
                    found = Parallel(options.jobs)(
                        delayed(one)(setting, ties, hyperparameters, engine, seed)
                        for seed in range(options.tournaments)
                    )
                    row = {
                        "setting": setting,
                        "ties": ties,
                        "engine": engine,
                        "hyperparameters": hyperparameters,
                        "tournaments": options.tournaments,
                    }
                    for name in MEASURES:
                        values = np.array([each[name] for each in found])
                        row[name] = float(values.mean())
                        if name != "said_best":
                            row[f"{name}_error"] = float(values.std() / np.sqrt(len(values)))
                    row["median_noise"] = float(np.median([each["noise"] for each in found]))
                    rows.append(row)
    report(rows, RESULTS / "leaderboard.csv", noise_variance=NOISE, tie_threshold=THRESHOLD)


if __name__ == "__main__":
    main()
