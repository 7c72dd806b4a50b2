"""How long does it take from a file of votes to X and y, and what do soft votes cost EP?

The file has a million votes on 200 competitors, with ties, judges, the number of the question and
two controls a side; it is read as a CSV and as a frame of pandas. Soft votes are probabilities of
50 competitors' duels, fitted with learned hyperparameters beside as many hard ones. Processor time;
one run each, so that a tenth more or less says nothing. Run:
``OMP_NUM_THREADS=1 python benchmarks/leaderboard/read_votes.py [--votes 1000000]``; under a minute.
"""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, needs, report

needs("pandas")
import pandas as pd
from scipy.stats import norm

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import from_probabilities, from_votes


def timed(function):
    """Processor seconds of a call, and what it gives."""
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def reading(n):
    """Seconds to read a file and a frame, with and without controls."""
    rng = np.random.default_rng(0)
    first = rng.integers(200, size=n)
    second = (first + rng.integers(1, 200, size=n)) % 200
    names = np.array([f"model-{i}" for i in range(200)])
    words = np.array(["model_a", "model_b", "tie", "tie (bothbad)"])
    frame = pd.DataFrame({"question_id": np.arange(n), "model_a": names[first]})
    frame["model_b"], frame["winner"] = names[second], words[rng.integers(4, size=n)]
    frame["judge"] = rng.integers(10_000, size=n)
    for side in "ab":
        frame[f"length_{side}"] = rng.integers(2000, size=n)
        frame[f"lists_{side}"] = rng.normal(size=n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.csv"
        frame.to_csv(path, index=False)
        for source, what in ((path, "CSV"), (frame, "frame")):
            for controls in (None, ["length", "lists"]):
                seconds, votes = timed(lambda s=source, c=controls: from_votes(s, controls=c))
                yield {
                    "task": f"read {what}, {len(votes.controls)} controls",
                    "votes": n,
                    "seconds": round(seconds, 2),
                }


def soft(n):
    """Seconds to fit hard and soft votes."""
    rng = np.random.default_rng(0)
    worth, table = rng.normal(size=50), ItemTable.from_names([f"model-{i}" for i in range(50)])
    first = rng.integers(50, size=n)
    second = (first + rng.integers(1, 50, size=n)) % 50
    proba = norm.cdf(worth[first] - worth[second] + 0.5 * rng.normal(size=n))
    pairs = np.stack([first, second], axis=1)
    told = from_probabilities(pairs, proba)
    won = (rng.random(n) < proba).astype(int)
    for engine in ("ep", "laplace", "svi"):
        model = PairwisePreferenceRegressor(items=table, inference=engine, random_state=0)
        ways = {
            "hard": lambda m=model: m.fit(pairs, won),
            "soft": lambda m=model: m.fit(told.X, told.y, sample_weight=told.sample_weight),
        }
        for way, fit in ways.items():
            seconds, fitted = timed(fit)
            near = np.corrcoef(worth, fitted.predict(np.arange(50)))[0, 1]
            yield {
                "task": f"fit {way}, {engine}",
                "votes": n,
                "seconds": round(seconds, 2),
                "correlation": round(near, 4),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", type=int, default=1_000_000)
    warnings.simplefilter("ignore")
    n = parser.parse_args().votes
    timed_rows = [*reading(n), *soft(few(2000, 50)), *soft(few(20_000, 100))]
    rows = [{"correlation": "", **row} for row in timed_rows]
    report(rows, RESULTS / "read_votes.csv")


if __name__ == "__main__":
    main()
