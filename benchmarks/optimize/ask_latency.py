"""Milliseconds of `ask`, and from `tell` to the next duel, in the default configuration, one core.

    python benchmarks/optimize/ask_latency.py [--dims 2 6 20] [--duels 30-80 150 300] [--seeds 1]
        [--window 20] [--tag name]
        [--peers optuna=PYTHON eubo=PYTHON paper=PYTHON:DIR] [--functions branin hartmann-6]
        [--told 60] [--peer-asks 5]

The judge goes by a smooth function (distance from a point, bent) and is never wrong. A run is
grown by asking and telling up to the last duel of a range, timed from its first on. Single
numbers stand far up, so the way there is short-cut: duels of uniform random items are told, the
last ``--lead`` ones asked, so that items crowd near the best as they do in a run, and then
``--window`` duels are timed. "ask" is `ask` alone; "wait" is from calling `tell` to holding the
next duel, refits of the hyperparameters included; "refits" are waits in which one took place,
seen by a changed kernel.

With ``--peers`` a line a peer and function instead: ``peer_regret.py`` is run by that Python (DIR:
the paper's code) up to ``--told`` duels, 3 d of them random, and so many of its asks are timed;
then, in turn with the peers, ``--window`` duels of ours as many duels in. A peer fits in its ask,
so the ratio is of its median ask to our median wait; "ask_ratio" is of ask to ask. At 60 told the
asks timed of the paper's code have no refit among them, which it does every ten duels.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref.datasets import load_test_function
from skpref.optimize import HallucinationBelieverOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, report


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


def timed(optimizer, n_duels, judge=judge):
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


def grown_on(function, seed, n_told):
    """An optimizer of a test function with so many duels told, all but 3 d its own; the judge."""
    judge = function.judge(rng=np.random.default_rng([seed, 1]))
    d = len(function.bounds)
    optimizer = HallucinationBelieverOptimizer(function.bounds, random_state=seed)
    for duel in function.from_unit(np.random.default_rng([seed, 0]).random((3 * d, 2, d))):
        optimizer.tell(duel, judge(*duel))
    while optimizer.n_told_ < n_told:
        duel = optimizer.ask()
        optimizer.tell(duel, judge(*duel))
    return optimizer, judge


def peer_asks(peer, where, name, seed, n_told, n_asks):
    """What ``peer_regret.py`` says of a peer, run by its own Python."""
    python, _, folder = where.partition(":")
    command = [python, str(Path(__file__).with_name("peer_regret.py")), "--peer", peer]
    command += ["--functions", name, "--seeds", str(seed), "--told", str(n_told)]
    command += ["--time-asks", str(n_asks), *(["--paper-code", folder] if folder else [])]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def beside_peers(options):
    """Lines of the table with ``--peers``, and the peers' versions."""
    rows, found = [], {}
    for name in options.functions:
        for seed in range(options.seeds):
            optimizer, judge = grown_on(load_test_function(name), seed, options.told)
            state = pickle.dumps((optimizer, judge))
            for text in options.peers:
                peer, _, where = text.partition("=")
                theirs = peer_asks(peer, where, name, seed, options.told, options.peer_asks)
                found[theirs["peer"]] = theirs["versions"]
                ours, judge = pickle.loads(state)  # as many duels in for every peer
                ask, wait, _ = 1e3 * np.median(timed(ours, options.window, judge), axis=0)
                peer_ask = 1e3 * float(np.median(theirs["seconds"]))
                row = {"function": name, "seed": seed, "told": options.told, "peer": theirs["peer"]}
                row |= {"timed": len(theirs["seconds"]), "peer_ask_ms": peer_ask}
                row |= {"ask_ms": float(ask), "wait_ms": float(wait)}
                row |= {"ratio": peer_ask / float(wait), "ask_ratio": peer_ask / float(ask)}
                rows.append(row)
    return rows, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", nargs="+", type=int, default=[2, 6, 20])
    parser.add_argument("--duels", nargs="+", default=["30-80", "150", "300"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--window", type=int, default=20, help="duels timed from a single number")
    parser.add_argument("--lead", type=int, default=20, help="duels asked before those timed")
    parser.add_argument("--tag", default="", help="end of the results file's name")
    parser.add_argument("--peers", nargs="+", metavar="NAME=PYTHON[:DIR]", help="beside these")
    parser.add_argument("--functions", nargs="+", default=["branin", "hartmann-6"])
    parser.add_argument("--told", type=int, default=60, help="duels told before a peer is timed")
    parser.add_argument("--peer-asks", type=int, default=5, help="asks of a peer that are timed")
    options = parser.parse_args()
    rows = []
    load = os.getloadavg()[0]
    tag = f"_{options.tag}" if options.tag else ""
    if options.peers:
        rows, found = beside_peers(options)
        loads = [load, os.getloadavg()[0]]
        report(rows, RESULTS / f"peer_latency{tag}.csv", peers=found, load_average=loads)
        return
    for d in options.dims:
        for text in options.duels:
            first, _, last = text.partition("-")
            first = int(first)
            last = int(last) if last else first + options.window
            first = max(first, 3 * d)  # before, the duels are those of the initial design
            if first < last:
                rows.append(measure(d, first, last, options.seeds, options.lead))
    report(rows, RESULTS / f"ask_latency{tag}.csv", load_average=[load, os.getloadavg()[0]])


if __name__ == "__main__":
    main()
