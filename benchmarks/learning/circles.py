"""Effects of pairs on real sets with known circles: held-out log-loss with and without them.

- ``rock_paper_scissors``: rounds of rock, paper, scissors that 72 people played in an experiment
  (Wang, Xu and Zhou, "Social cycling and conditional responses in the Rock-Paper-Scissors game",
  Scientific Reports 2014), without draws; the names are the three gestures. By the rules all is a
  circle.
- ``soccer_agents``: matches among ten simulated soccer teams, drawn at the rates at which they beat
  each other (Omidshafiei et al., "α-Rank: multi-agent evaluation by evolution", Scientific Reports
  2019). The team that beats six of the others is beaten by the remaining three.

Both models are of names alone, ``Identity()`` and ``Identity() + Intransitive(Identity())``, all
else by default. ``- names`` is the held-out log-loss less that of names, with the standard error
over splits; ``share``, from ``lower`` to ``upper``, is that of what decides duels that no order
explains (`skpref.inspection.intransitivity`, 90 %), a mean over splits as ``probability`` is.

    python benchmarks/learning/circles.py            # about two minutes of one idle core
    python benchmarks/learning/circles.py --quick    # smoke test
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from skpref import PairwisePreferenceRegressor
from skpref.inspection import intransitivity
from skpref.kernels import Identity, Intransitive

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, report

N_TEST = 4000


def rock_paper_scissors():
    """Return winners and losers of the rounds that were no draws."""
    path = data_folder() / "rock_paper_scissors" / "wxz2014.csv"
    with path.open(encoding="utf-8") as file:
        rounds = [row for row in csv.DictReader(file) if row["result"] == "win"]
    return np.array([[row["choice"], row["other.choice"]] for row in rounds])


def soccer_agents():
    """Return winners and losers of 400 matches of each two teams."""
    rates = np.loadtxt(data_folder() / "soccer_agents" / "soccer.txt")
    rng, names = np.random.default_rng(0), np.array(list("abcdefghij"))
    first, second = np.repeat(np.triu_indices(len(rates), 1), 400, axis=1)
    first_wins = rng.random(len(first)) < rates[first, second]
    return names[np.where(first_wins, [first, second], [second, first])].T


def castles():
    """Return winning and losing plans of wars between two at random; there is no war twice."""
    path = data_folder() / "riddler_castles" / "castle-solutions.csv"
    with path.open(encoding="utf-8", errors="replace") as file:
        said = list(csv.reader(file))[1:]
    plans = np.array([row[:10] for row in said], dtype=float)
    plans = np.unique(plans[plans.sum(axis=1) == 100.0], axis=0)
    first, second = np.triu_indices(len(plans), 1)
    chosen = np.random.default_rng(0).permutation(len(first))[: 5 * N_TEST]
    duels = plans[np.stack([first[chosen], second[chosen]], axis=1)]
    points = np.sign(duels[:, 0] - duels[:, 1]) @ np.arange(1.0, 11.0)
    duels = np.where(points[:, None, None] > 0.0, duels, duels[:, ::-1])
    return duels[points != 0.0] / 100.0


NAMES = Identity(), Identity() + Intransitive(Identity())
ORDER = ConstantKernel(1.0) * RBF(0.3)
PLANS = ORDER, ORDER + Intransitive(RBF(0.3))
# What the winners and losers are read by: both kernels, and numbers of training duels.
SETS = {
    rock_paper_scissors: (NAMES, (30, 120)),
    soccer_agents: (NAMES, (450, 1800)),
    castles: (PLANS, (100, 400, 800)),
}


def split(duels, n_train, rng):
    """Return training and test duels with labels, sides in random order."""
    chosen = duels[rng.permutation(len(duels))[: n_train + N_TEST]]
    y = rng.integers(2, size=len(chosen))
    is_first = (y == 1).reshape(-1, *[1] * (chosen.ndim - 1))
    X = np.where(is_first, chosen, chosen[:, ::-1])
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def run(read, kernels, n_train, n_splits):
    """Return the row of a set at one number of training duels."""
    duels, losses, circles = read(), [], []
    for seed in range(n_splits):
        X, y, X_test, y_test = split(duels, n_train, np.random.default_rng(seed))
        models = [PairwisePreferenceRegressor(kernel).fit(X, y) for kernel in kernels]
        losses.append([log_loss(y_test, model.predict_proba(X_test)) for model in models])
        circles.append(intransitivity(models[1]))
    order, both = np.transpose(losses)
    apart = both - order
    parts = ("share", "lower", "upper", "probability")
    return {
        "set": read.__name__,
        "items": len(np.unique(duels.reshape(2 * len(duels), -1), axis=0)),
        "train": n_train,
        "splits": n_splits,
        "log-loss of order": float(order.mean()),
        "with circles": float(both.mean()),
        "- order": float(apart.mean()),
        "standard error": float(apart.std(ddof=1) / np.sqrt(n_splits)),
        **{part: float(np.mean([each[part] for each in circles])) for part in parts},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=10, help="splits of a set (default 10)")
    parser.add_argument("--quick", action="store_true", help="two splits")
    options = parser.parse_args()
    n_splits, rows = 2 if options.quick else options.splits, []
    for read, (kernels, sizes) in SETS.items():
        for n_train in sizes[:1] if options.quick else sizes:
            try:
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows.append(run(read, kernels, n_train, n_splits))
            except OSError as error:
                print(f"skipped {read.__name__}: {error}")
    report(rows, RESULTS / ("circles_quick.csv" if options.quick else "circles.csv"))


if __name__ == "__main__":
    main()
