"""Do the intervals of boards with learned hyperparameters hold what they say? Counted by size.

Simulated tournaments of 50 competitors with two controls on either side (a length of three levels,
-1, 0, 1, and a format, -1/2, 1/2) and ties; 20 to 2 000 votes of random pairs, their logarithm
uniform. The model is ``OnColumns(Identity(), [0]) + c OnColumns(DotProduct(0), [1, 2])`` with a
probit; the truth is drawn from it, in deviations of an item's noise: utilities N(0, s²), slopes
N(0, c²), threshold δ, with log-normal s, c, δ of medians 1, .3, .5 and deviations of the logarithm
.6, .6, .4. (The board's own prior is another: medians 1 of competitors and controls, .5 of the
threshold, deviations 1.) Not of the family are utilities from Student's t with 3 degrees of freedom
of the same variance ("heavy tails"), and two groups at ±s ("two groups").

Answers tell nothing but ratios to the noise, and differences: an interval is one of (f(i) − the
mean of f over the competitors) / σ at controls of zero, a slope one of a difference / σ; the truth
is taken likewise. Rows of the table: "known" is the model at the true hyperparameters, "best" that
at the learned ones, taken as known (``average=False``), "averaged" the board by default, and
"most probable" the model at the mode of evidence times the prior of the average, to tell what the
prior does from what the average does. ``rank_central`` is of central rank intervals,
``log_loss`` the expected one of a next vote between random competitors with random controls.
Standard errors are over tournaments, within which items are not independent. Run:
``python benchmarks/leaderboard/coverage.py [--tournaments 300] [--truth normal] [--points]``; some
minutes of one core a truth.
"""

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.fitting import Inspected, ratio_prior
from skpref.fitting._search import Search, learn
from skpref.inspection._leaderboard import _rank_draws, _shortest_interval
from skpref.kernels import Identity, OnColumns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

N, LEVEL = 50, 0.9
MEDIANS, SPREADS = np.array([1.0, 0.3, 0.5]), np.array([0.6, 0.6, 0.4])
SIZES = ((20, 30), (30, 100), (100, 400), (400, 2001), (20, 2001))
TRUTHS = ("normal", "heavy tails", "two groups")
COMPETITORS = np.zeros((N, 3))
COMPETITORS[:, 0] = np.arange(N)
SLOPES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
EXPECTED, DRAWS = 400, 4000  # votes of the expected log-loss, draws of a board


def votes(rng, n):
    """Pairs of competitors with controls, (n, 2, 3)."""
    X = np.empty((n, 2, 3))
    X[:, 0, 0] = rng.integers(N, size=n)
    X[:, 1, 0] = (X[:, 0, 0] + rng.integers(1, N, size=n)) % N
    X[:, :, 1] = rng.integers(-1, 2, size=(n, 2))
    X[:, :, 2] = rng.integers(0, 2, size=(n, 2)) - 0.5
    return X


def tournament(truth, seed):
    """Votes, outcomes, utilities, slopes, and the hyperparameters in deviations of the noise."""
    rng = np.random.default_rng(seed)
    scale, slope, threshold = MEDIANS * np.exp(SPREADS * rng.standard_normal(3))
    n = int(np.exp(rng.uniform(np.log(20.0), np.log(2000.0))))
    drawn = {
        "normal": lambda: rng.standard_normal(N),
        "heavy tails": lambda: rng.standard_t(3, N) / np.sqrt(3.0),
        "two groups": lambda: np.sign(rng.standard_normal(N)) + 0.1 * rng.standard_normal(N),
    }
    utility, slopes = scale * drawn[truth](), slope * rng.standard_normal(2)
    X = votes(rng, n)
    seen = margins(X, utility, slopes) + np.sqrt(2.0) * rng.standard_normal(n)
    y = np.where(np.abs(seen) <= threshold, 0, np.sign(seen)).astype(int)
    return X, y, utility, slopes, (scale, slope, threshold)


def margins(X, utility, slopes):
    """True margins of votes."""
    each = utility[X[:, :, 0].astype(int)] + X[:, :, 1:] @ slopes
    return each[:, 0] - each[:, 1]


def model_of(scale=1.0, slope=0.3, threshold=0.5, learned=True):
    """The estimator; its competitors have variance one, so that the noise is 1/scale²."""
    kernel = OnColumns(Identity(), [0])
    controls = OnColumns(DotProduct(0.0, "fixed"), [1, 2])
    return PairwisePreferenceRegressor(
        kernel + ConstantKernel((slope / scale) ** 2, (1e-6, 1e3)) * controls,
        noise_variance=scale**-2,
        noise_variance_bounds=(1e-4, 1e3),
        tie_threshold=threshold / scale,
        tie_threshold_bounds=(1e-4, 1e2),
        inference="ep",
        optimizer="fmin_l_bfgs_b" if learned else None,
        n_learning_answers=None,
    )


def most_probable(model):
    """The posterior at the mode of evidence times the prior of the average."""
    prior = ratio_prior(model._model, model.comparisons_)
    weighed = replace(model._model, priors=(*model._model.priors, prior))
    found = learn(weighed, model.comparisons_, Search(warn_not_converged=False)).model
    held = model_of(learned=False).set_params(kernel=found.kernel, likelihood=found.likelihood)
    return held


def measured(over, utility, slopes, expected):
    """Shares of intervals that hold, mean widths, and what is expected of a next vote."""
    true = utility - utility.mean()
    rank = 1 + np.argsort(np.argsort(-utility))
    mixture = over.averages(COMPETITORS[:, None], np.ones(1), "noise")
    board, half = (mixture.intervals_about_mean(level) for level in (LEVEL, 0.5))
    rows, apart = np.vstack([SLOPES, np.zeros((1, 3))]), np.array([[1, 0, -1], [0, 1, -1]])
    slope = over.sums(rows, apart.astype(float), "noise", LEVEL)
    best, ranks = _rank_draws(over.sample(COMPETITORS, DRAWS, 1, "noise"), np.ones(N, dtype=int))
    low, high = _shortest_interval(ranks, LEVEL)
    left, right = np.quantile(ranks, [0.05, 0.95], axis=1, method="nearest")
    top = np.argmax(board.mean)
    X, proba = expected
    said = sum(
        weight * np.exp(subject.posterior.outcome_log_proba(X[:, 0], X[:, 1], 0))
        for weight, subject in zip(over.weights, over.subjects, strict=True)
    )
    return {
        "utility_90": np.mean((board.lower <= true) & (true <= board.upper)),
        "utility_50": np.mean((half.lower <= true) & (true <= half.upper)),
        "rank_90": np.mean((low <= rank) & (rank <= high)),
        "rank_central": np.mean((left <= rank) & (rank <= right)),
        "slope_90": np.mean((slope.lower <= slopes) & (slopes <= slope.upper)),
        "width": np.mean(board.upper - board.lower),
        "slope_width": np.mean(slope.upper - slope.lower),
        "said_best": best[top],
        "is_best": float(rank[top] == 1),
        "log_loss": -np.mean(np.sum(proba * np.log(said), axis=1)),
    }


def one(truth, seed, points):
    """A tournament by every method."""
    warnings.simplefilter("ignore")  # of hyperparameters at their bounds, where votes are few
    X, y, utility, slopes, (scale, slope, threshold) = tournament(truth, seed)
    rng = np.random.default_rng(10**6 + seed)
    asked = votes(rng, EXPECTED)
    margin = margins(asked, utility, slopes)
    lost, won = (ndtr((s * margin - threshold) / np.sqrt(2.0)) for s in (-1.0, 1.0))
    expected = asked, np.stack([lost, 1.0 - lost - won, won], axis=1)
    rows = []

    def add(name, model, average, seconds=0.0):
        began = time.process_time()
        over = Inspected.from_model(model).over_hyperparameters(average)
        seconds += time.process_time() - began
        found = measured(over, utility, slopes, expected)
        rows.append({"method": name, "votes": len(y), "seconds": seconds, **found})

    add("known", model_of(scale, slope, threshold, learned=False).fit(X, y), False)
    began = time.process_time()
    model = model_of().fit(X, y)
    seconds = time.process_time() - began
    add("best", model, False, seconds)
    if points:
        add("most probable", most_probable(model).fit(X, y), False)
    add("averaged", model, "auto", seconds)
    return rows


def table_of(truth, found):
    """Means over tournaments of each size and method, and standard errors of the shares."""
    table = []
    for low, high in SIZES:
        inside = [rows for rows in found if low <= rows[0]["votes"] < high]
        for method in [row["method"] for row in found[0]] if inside else []:
            part = [row for rows in inside for row in rows if row["method"] == method]
            line = {"truth": truth, "votes": f"{low} to {high - 1}", "tournaments": len(part)}
            line["method"] = method
            for name in [name for name in part[0] if name not in ("method", "votes")]:
                values = np.array([row[name] for row in part])
                line[name] = float(values.mean())
                if name.endswith("_90"):
                    line[f"{name}_error"] = float(values.std() / np.sqrt(len(values)))
            table.append(line)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tournaments", type=int, default=300)
    parser.add_argument("--truth", choices=TRUTHS, nargs="*", default=list(TRUTHS))
    parser.add_argument("--points", action="store_true", help="the most probable point too")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    table = []
    for truth in options.truth:
        found = Parallel(options.jobs)(
            delayed(one)(truth, seed, options.points) for seed in range(options.tournaments)
        )
        table += table_of(truth, found)
    report(table, RESULTS / "coverage.csv", items=N, level=LEVEL)


if __name__ == "__main__":
    main()
