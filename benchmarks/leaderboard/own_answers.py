"""Do boards hold where competitors judge, and favour what is their own?

Simulated panels of 1 200 votes on six competitors with utilities N(0, 1/2), an item's noise being
1. Three of them and a person judge; each of the three adds N(1, 1/4) to its own answer. Printed:
the root mean square error of the board, less the mean and in units of the noise, and the share of
its 90 % intervals that hold the truth, with and without the control "own answer" that
``from_votes(judge=)`` adds. Standard errors are over panels. Run:
``python benchmarks/leaderboard/own_answers.py [--panels 20]``; six minutes of one core.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_votes
from skpref.inspection import leaderboard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

NAMES = np.array([f"m{k}" for k in range(6)])
JUDGES = np.array([*NAMES[:3], "ann"])


def panel(seed):
    """Votes as a table, and the utilities of the competitors by name, less their mean."""
    rng = np.random.default_rng(seed)
    n = few(1200, 60)
    quality = np.sqrt(0.5) * rng.normal(size=6)
    favour = np.append(rng.normal(1.0, 0.5, size=3), 0.0)
    pairs = np.array([rng.permutation(6)[:2] for _ in range(n)])
    judge = rng.integers(0, len(JUDGES), n)
    seen = quality[pairs] + favour[judge, None] * (NAMES[pairs] == JUDGES[judge, None])
    margin = seen @ [1.0, -1.0] + np.sqrt(2.0) * rng.normal(size=n)
    table = pd.DataFrame(NAMES[pairs], columns=["model_a", "model_b"])
    table["winner"] = np.where(margin > 0.0, "model_a", "model_b")
    table["judge"] = JUDGES[judge]
    return table, dict(zip(NAMES, quality - quality.mean(), strict=True))


def figures(votes, judges, truth):
    """Error of a board, and the share of its intervals that hold the truth."""
    model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y, judges=judges)
    board = leaderboard(model, votes)
    true = np.array([truth[name] for name in board.names.tolist()])
    held = (board.lower <= true) & (true <= board.upper)
    return np.sqrt(np.mean((board.utility - true) ** 2)), held.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS / "own_answers.csv")
    options = parser.parse_args()
    rows = []
    for seed in range(options.panels):
        table, truth = panel(seed)
        for control in (True, False):
            # Of judges by other names no answer is their own.
            named = table if control else table.assign(judge="judge " + table.judge)
            votes = from_votes(named, judge="judge")
            error, holds = figures(votes, votes.judges, truth)
            rows.append({"panel": seed, "control": int(control), "error": error, "holds": holds})
        report(rows, options.out, quiet=True)
    summary = []
    for control, part in pd.DataFrame(rows).groupby("control"):
        summary.append(
            {
                "control": control,
                "panels": len(part),
                "error": np.sqrt(np.mean(part.error**2)),
                "holds": part.holds.mean(),
                "holds_error": part.holds.sem(),
            }
        )
    report(summary, options.out.with_name(f"{options.out.stem}_summary.csv"))


if __name__ == "__main__":
    main()
