"""Milliseconds of `ask`, and from `tell` to the next duel, in the default configuration, one core.

    python benchmarks/ask_latency.py [--dims 2 6 20] [--duels 30-80 150 300] [--seeds 1]
        [--window 20] [--tag name]

The judge goes by a smooth function (distance from a point, bent) and is never wrong. A run is
grown by asking and telling up to the last duel of a range, timed from its first on. Single
numbers stand far up, so the way there is short-cut: duels of uniform random items are told, the
last ``--lead`` ones asked, so that items crowd near the best as they do in a run, and then
``--window`` duels are timed. "ask" is `ask` alone; "wait" is from calling `tell` to holding the
next duel, refits of the hyperparameters included; "refits" are waits in which one took place,
seen by a changed kernel.
"""

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from common import RESULTS, report

from skpref.optimize import HallucinationBelieverOptimizer


def judge(first, second):
    """1 if the first is nearer to a point, by a bent distance."""
    place = 0.3 + 0.4 * np.sin(np.arange(1, len(first) + 1)) ** 2
    near = [np.abs(np.sin(1.5 * (item - place))).sum() for item in (first, second)]
    return int(near[0] < near[1])


def grown(d, seed, n_told, lead):
    """An optimizer with so many duels told, the last ``lead`` of them its own."""
    rng = np.random.default_rng([seed, d])
    n_random = max(3 * d, n_told - lead)
    random = rng.random((n_random, 2, d))
    # The model is first fitted when the initial duels are complete: not at each of these.
    optimizer = HallucinationBelieverOptimizer(
        [[0.0, 1.0]] * d, n_initial=n_random, random_state=seed
    )
    for duel in random:
        optimizer.tell(duel, judge(*duel))
    while optimizer.n_told_ < n_told:
        duel = optimizer.ask()
        optimizer.tell(duel, judge(*duel))
    return optimizer


def timed(optimizer, n_duels):
    """Seconds of `ask`, of tell-to-next, and whether the kernel was learned anew, per duel."""
    duel = optimizer.ask()
    theta = optimizer.posterior_.kernel.theta.copy()
    taken = []
    for _ in range(n_duels):
        outcome = judge(*duel)
        begin = time.perf_counter()
        optimizer.tell(duel, outcome)
        told = time.perf_counter()
        duel = optimizer.ask()
        held = time.perf_counter()
        now = optimizer.posterior_.kernel.theta.copy()
        taken.append((held - told, held - begin, not np.array_equal(now, theta)))
        theta = now
    return taken


def measure(d, first, last, seeds, lead):
    """One line of the table."""
    taken = []
    for seed in range(seeds):
        taken += timed(grown(d, seed, first, lead), last - first)
    ask, wait, refitted = np.array(taken).T
    row = {"d": d, "duels": f"{first}-{last}", "timed": len(taken)}
    for label, seconds in (("ask", ask), ("wait", wait)):
        row[f"{label}_median_ms"] = 1e3 * float(np.median(seconds))
        row[f"{label}_95_ms"] = 1e3 * float(np.quantile(seconds, 0.95))
    refits = wait[refitted == 1]
    row["refits"] = len(refits)
    row["refit_wait_median_ms"] = 1e3 * float(np.median(refits)) if len(refits) else ""
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", nargs="+", type=int, default=[2, 6, 20])
    parser.add_argument("--duels", nargs="+", default=["30-80", "150", "300"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--window", type=int, default=20, help="duels timed from a single number")
    parser.add_argument("--lead", type=int, default=20, help="duels asked before those timed")
    parser.add_argument("--tag", default="", help="end of the results file's name")
    options = parser.parse_args()
    rows = []
    load = os.getloadavg()[0]
    for d in options.dims:
        for text in options.duels:
            first, _, last = text.partition("-")
            first = int(first)
            last = int(last) if last else first + options.window
            first = max(first, 3 * d)  # before, the duels are those of the initial design
            if first < last:
                rows.append(measure(d, first, last, options.seeds, options.lead))
    name = "ask_latency" + (f"_{options.tag}" if options.tag else "")
    report(rows, RESULTS / f"{name}.csv", load_average=[load, os.getloadavg()[0]])


if __name__ == "__main__":
    main()
