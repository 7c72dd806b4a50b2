"""Is a judge's bias told from the quality of what is judged, and from the judge's reliability?

Two simulated panels. In "length" 3, 6 or 10 good judges and one that takes the longer answer
judge 200 pairs of answers. In "panel" three good judges, one that prefers what is shown first, one
that takes the longer answer, one at random and one the wrong way round judge 350 pairs in both
orders, with ties. Weak models write long answers; the good judges' slope on length is 0.001.

Printed, of each setting: seeds in which the 95 % interval of the shared slope holds 0.001, seeds in
which the board's correlation with the truth is at least 0.97, the same of the board of one who
knows which judges are good, and has their votes alone, and the largest difference between the two
correlations; the largest probability that a good judge is adversarial, and the least that the
inverted one is. Run:
``python benchmarks/leaderboard/biases.py [--seeds 20] [--settings "panel"]``; an
hour.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_votes
from skpref.inspection import control_effects, leaderboard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

NAMES = np.array([f"m{k}" for k in range(8)])
QUALITY, SLOPE = np.linspace(0.9, -0.9, 8), 0.001
CLOSE = 0.97
# Good judges, and slope and noise of the one that takes the longer answer.
LENGTH = ((3, 0.05), (6, 0.05), (10, 0.05), (3, 0.01), (6, 0.01))
PANEL = ("good1", "good2", "good3", "first", "longer", "random", "inverted")
# Arguments of `length_votes` of each setting, none of a panel.
SETTINGS = {f"length {n} {slope}": (n, slope) for n, slope in LENGTH}
SETTINGS |= {"panel": (), "panel with order": ()}
COLUMNS = ["model_a", "model_b", "winner", "length_a", "length_b", "judge"]


def pair(rng):
    """Two models and the lengths of their answers."""
    models = rng.choice(8, 2, replace=False)
    lengths = 300.0 - 100.0 * QUALITY[models] + 80.0 * rng.normal(size=2)
    return models, np.maximum(20, lengths).round()


def good(rng, models, lengths):
    """What a good judge sees of the first answer over the second."""
    return float(
        np.subtract(*QUALITY[models]) + SLOPE * np.subtract(*lengths) + 2**0.5 * rng.normal()
    )


def length_votes(rng, n_good, slope):
    """Votes of good judges and one that takes the longer answer."""
    rows = []
    for _ in range(few(200, 30)):
        models, lengths = pair(rng)
        seen = {f"good{g}": good(rng, models, lengths) for g in range(n_good)}
        seen["longer"] = slope * np.subtract(*lengths) + rng.normal()
        rows += [
            (*NAMES[models], "model_a" if margin > 0 else "model_b", *lengths, judge)
            for judge, margin in seen.items()
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def panel_votes(rng):
    """Votes of a panel in both orders."""
    rows = []
    for _ in range(few(350, 30)):
        models, lengths = pair(rng)
        for judge in PANEL:
            for order in (slice(None), slice(None, None, -1)):
                shown, length = models[order], lengths[order]
                margin = good(rng, shown, length)
                if judge == "first":
                    margin = 0.3 * np.subtract(*QUALITY[shown]) + 1.6 + 1.4 * rng.normal()
                elif judge == "longer":
                    margin = 0.05 * np.subtract(*length) + rng.normal()
                elif judge == "random":
                    margin = 1.4 * rng.normal()
                elif judge == "inverted":
                    margin = -margin
                winner = "model_a" if margin > 0.3 else "model_b" if margin < -0.3 else "tie"
                rows.append((*NAMES[shown], winner, *length, judge))
    return pd.DataFrame(rows, columns=COLUMNS)


def correlation(model, votes):
    """Correlation of a board with the truth."""
    board = leaderboard(model, votes)
    return np.corrcoef(QUALITY[[int(name[1:]) for name in board.names]], board.utility)[0, 1]


def correlation_of_good(table):
    """Correlation of the board of those who know which judges are good, with these votes alone."""
    votes = from_votes(table[table.judge.str.startswith("good")], controls="length")
    return correlation(PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y), votes)


def fitted(table, learns_order):
    """One row of figures of a fit."""
    votes = from_votes(table, judge="judge", controls="length")
    options = {"order_effect_bounds": (-3.0, 3.0)} if learns_order else {}
    told = {"judges": votes.judges} | ({"order": votes.order} if learns_order else {})
    begin = time.process_time()
    model = PairwisePreferenceRegressor(**votes.params, **options).fit(votes.X, votes.y, **told)
    seconds = time.process_time() - begin
    effect = control_effects(model, votes, level=0.95)
    judges = model.judges_
    adversarial = dict(zip(judges.ids, judges.probability_adversarial, strict=True))
    return {
        "slope": effect.slope[0],
        "lower": effect.lower[0],
        "upper": effect.upper[0],
        "holds": int(effect.lower[0] < SLOPE < effect.upper[0]),
        "correlation": correlation(model, votes),
        "correlation_of_good": correlation_of_good(table),
        "good_adversarial": max(p for name, p in adversarial.items() if name.startswith("good")),
        "inverted_adversarial": adversarial.get("inverted", np.nan),
        "seconds": seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=RESULTS / "biases.csv")
    options = parser.parse_args()
    rows = []
    for name in options.settings:
        setting = SETTINGS[name]
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            table = length_votes(rng, *setting) if setting else panel_votes(rng)
            found = fitted(table, name == "panel with order")
            rows.append({"setting": name, "seed": seed, **found})
            report(rows, options.out, quiet=True)
    summary = []
    for name, part in pd.DataFrame(rows).groupby("setting", sort=False):
        summary.append(
            {
                "setting": name,
                "seeds": len(part),
                "slope_held": int(part.holds.sum()),
                "correlation_held": int((part.correlation >= CLOSE).sum()),
                "of_good_held": int((part.correlation_of_good >= CLOSE).sum()),
                "largest_loss": (part.correlation_of_good - part.correlation).max(),
                "good_adversarial": part.good_adversarial.max(),
                "inverted_adversarial": part.inverted_adversarial.min(),
                "seconds": part.seconds.median(),
            }
        )
    report(summary, options.out.with_name("biases_summary.csv"))


if __name__ == "__main__":
    main()
