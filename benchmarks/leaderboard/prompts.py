"""Do the intervals of boards hold what they say where votes share prompts?

Simulated tournaments of 5 to 12 competitors with utilities N(0, 1) and an item's noise of variance
1. There are 10 to 150 prompts with 4 pairs each, of which every pair has 1, 3 or 5 votes; a
competitor's effect in a prompt has 0, .25, 1 or 4 times the variance of the noise. The truth is
the utility as a mean over the population of prompts, less the mean over the competitors, in
standard deviations of what an item has beside it in one vote: noise and prompt. Intervals are those
of 90 % of the board by default, with ``prompts=`` and without. Standard errors are over
tournaments. The second table has the verdicts of the package's language models: the mean deviation
of a model's utility with and without prompts, and that of the bootstrap of votes and of prompts (at
the noise of the fit without), all in the same unit. Run:
``python benchmarks/leaderboard/prompts.py [--tournaments 300]``; half an hour of one core.
"""

import argparse
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np

from skpref import PairwisePreferenceRegressor
from skpref.datasets import load_llm_duels
from skpref.inspection import leaderboard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

RATIOS, VOTES = (0.0, 0.25, 1.0, 4.0), (1, 3, 5)


def tournament(seed, ratio, n_votes):
    """Votes, outcomes, prompts, and the utilities in units of one vote, less their mean."""
    rng = np.random.default_rng(seed)
    n_items, n_prompts = int(rng.integers(5, 13)), int(np.exp(rng.uniform(np.log(10), np.log(150))))
    utility = rng.normal(size=n_items)
    effects = np.sqrt(ratio) * rng.normal(size=(n_prompts, n_items))
    X, y, prompts = [], [], []
    for prompt in range(n_prompts):
        for _ in range(4):
            i, j = rng.choice(n_items, 2, replace=False)
            margin = utility[i] - utility[j] + effects[prompt, i] - effects[prompt, j]
            X += [[f"c{i:02d}", f"c{j:02d}"]] * n_votes
            prompts += [prompt] * n_votes
            y += (margin + np.sqrt(2.0) * rng.normal(size=n_votes) > 0.0).astype(int).tolist()
    truth = (utility - utility.mean()) / np.sqrt(1.0 + ratio)
    names = [f"c{i:02d}" for i in range(n_items)]
    return np.array(X), np.array(y), prompts, n_prompts, dict(zip(names, truth, strict=True))


def simulated(seed, ratio, n_votes):
    """One tournament: shares of intervals that hold, and widths, of both boards."""
    X, y, prompts, n_prompts, truth = tournament(seed, ratio, n_votes)
    row = {"seed": seed, "ratio": ratio, "votes_a_pair": n_votes, "prompts": n_prompts}
    for name, keywords in (("with", {"prompts": prompts}), ("without", {})):
        begin = time.perf_counter()
        board = leaderboard(PairwisePreferenceRegressor().fit(X, y, **keywords))
        true = np.array([truth[each] for each in board.names.tolist()])
        true -= true.mean()
        row[f"holds_{name}"] = np.mean((board.lower <= true) & (true <= board.upper))
        row[f"width_{name}"] = np.mean(board.upper - board.lower)
        row[f"seconds_{name}"] = time.perf_counter() - begin
    return row


def summary(rows):
    """Means over tournaments with standard errors, by ratio and by votes a pair, and of all."""
    groups = [("all", lambda row: True)]
    groups += [(f"ratio {r:g}", lambda row, r=r: row["ratio"] == r) for r in RATIOS]
    groups += [(f"{v} votes a pair", lambda row, v=v: row["votes_a_pair"] == v) for v in VOTES]
    groups += [
        ("below 30 prompts", lambda row: row["prompts"] < 30),
        ("at least 30 prompts", lambda row: row["prompts"] >= 30),
    ]
    found = []
    for name, belongs in groups:
        some = [row for row in rows if belongs(row)]
        if not some:
            continue
        line = {"tournaments": name, "n": len(some)}
        for column in ("holds_with", "holds_without", "width_with", "width_without"):
            values = np.array([row[column] for row in some])
            line[column] = values.mean()
            if column.startswith("holds"):
                line[f"error_{column[6:]}"] = values.std(ddof=1) / np.sqrt(len(values))
        found.append(line)
    return found


def deviations(mean, likelihood, X, y, rng, draw, n):
    """Mean deviation of centred utilities over bootstrap samples of the answers."""
    found = []
    for _ in range(n):
        rows = draw(rng)
        model = PairwisePreferenceRegressor(likelihood=likelihood, optimizer=None)
        utility = model.fit(X[rows], y[rows]).predict(mean)
        found.append(utility - utility.mean())
    return np.std(found, axis=0, ddof=1).mean()


def verdicts(source, n_samples):
    """Deviations on the verdicts of one kind of judge."""
    data = load_llm_duels(judge=source, ties=True)
    X, y, prompts = np.array(data.model_names)[data.X], data.y, data.prompt
    row = {"verdicts": source, "n": len(y), "prompts": len(np.unique(prompts))}
    names = np.unique(X)
    for name, keywords in (("without", {}), ("with", {"prompts": prompts})):
        model = PairwisePreferenceRegressor(tie_threshold=0.1).fit(X, y, **keywords)
        unit = np.sqrt(model.noise_variance_ + model.posterior_.effect_variance)
        centre = np.eye(len(names)) - 1.0 / len(names)
        covariance = centre @ model.posterior_.cov(names) @ centre
        row[f"deviation_{name}"] = np.sqrt(np.diag(covariance)).mean() / unit
        row[f"evidence_{name}"] = model.log_marginal_likelihood_value_
        if name == "without":
            likelihood, noise = model.likelihood_, np.sqrt(model.noise_variance_)
    which = [np.flatnonzero(prompts == each) for each in np.unique(prompts)]
    draws = {
        "votes": lambda rng: rng.integers(len(y), size=len(y)),
        "prompts": lambda rng: np.concatenate(
            [which[k] for k in rng.integers(len(which), size=len(which))]
        ),
    }
    for name, draw in draws.items():
        rng = np.random.default_rng(0)
        found = deviations(names, likelihood, X, y, rng, draw, n_samples)
        row[f"bootstrap_{name}"] = found / noise
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tournaments", type=int, default=few(300, 2))
    parser.add_argument("--samples", type=int, default=few(100, 2))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = list(product(RATIOS, VOTES))
    rows = [simulated(seed, *cells[seed % len(cells)]) for seed in range(options.tournaments)]
    report(rows, RESULTS / "prompts.csv", quiet=True)
    report(summary(rows), RESULTS / "prompts_summary.csv")
    sources = few(("crowd", "gpt-4", "gpt-3"), ("gpt-3",))
    report([verdicts(each, options.samples) for each in sources], RESULTS / "prompts_verdicts.csv")


if __name__ == "__main__":
    main()
