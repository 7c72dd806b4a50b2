"""Regret and seconds of an ask of published optimizers, under the protocol of ``regret.py``.

    PYTHONPATH=. PEER_PYTHON benchmarks/peer_regret.py --peer optuna
        [--functions branin hartmann-3] [--seeds 0 1] [--duels 60] [--paper-code DIR] [--fresh]
        [--results benchmarks/results/regret_peers.csv]
    ... --time-asks 5 [--told 60]

Run by a Python that has the peer and this package's dependencies (PYTHONPATH: the repository):

- optuna: optuna-dashboard and botorch (`_peer_optuna.py`);
- eubo: botorch (`_peer_eubo.py`);
- paper: GPy, and DIR, the public code of Takeno et al. 2023 (`_peer_paper.py`).

How each is set and what it recommends is said there. A peer works on the unit cube and gets what
our methods get for a seed: the same 3 d duels of uniform random items and the same judge, then so
many duels of its own. The seconds of an ask hold everything from all duels told to the next
question, fitting included; the regret is of the item recommended after that fit. Finished units are
appended and skipped as in ``regret.py``, whose ``--table`` shows them beside ours.

With ``--time-asks`` nothing is written: duels are asked and told until there are ``--told``, so
many further asks are timed, and a line of JSON a function gives their seconds.
"""

import argparse
import importlib
import json
import os
import time
from importlib import metadata
from pathlib import Path

import numpy as np
from common import RESULTS
from regret import UNIT, append, read

from skpref.datasets import TEST_FUNCTIONS, load_test_function

PEERS = ("optuna", "eubo", "paper")


def started(module, name, seed):
    """A peer that was told the 3 d random duels, the function and the judge."""
    function = load_test_function(name)
    judge = function.judge(flip=0.0, rng=np.random.default_rng([seed, 1]))
    d = len(function.bounds)
    peer = module.Peer(d, seed)
    for duel in np.random.default_rng([seed, 0]).random((3 * d, 2, d)):
        peer.tell(duel, judge(*function.from_unit(duel)))
    return peer, function, judge


def run(module, name, seed, n_duels):
    """One unit of work: a row as in ``regret.py``."""
    peer, function, judge = started(module, name, seed)
    begin = time.perf_counter()
    duel = peer.ask()
    ask_seconds = [time.perf_counter() - begin]
    wait_seconds, regret = [*ask_seconds], []
    for _ in range(n_duels):
        outcome = judge(*function.from_unit(duel))
        begin = time.perf_counter()
        peer.tell(duel, outcome)
        told = time.perf_counter()
        duel = peer.ask()
        held = time.perf_counter()
        ask_seconds.append(held - told)
        wait_seconds.append(held - begin)
        regret.append(function.regret(function.from_unit(peer.recommend())))
    series = {
        "regret": regret,
        "ask_seconds": ask_seconds[:n_duels],  # the last was for its fit alone
        "wait_seconds": wait_seconds[:n_duels],
    }
    row = {"function": name, "method": module.NAME, "flip": 0.0, "seed": seed, "duels": n_duels}
    row |= {key: " ".join(f"{v:.4g}" for v in values) for key, values in series.items()}
    return row | {"sources": module.sources()}


def timed(module, name, seed, n_told, n_asks):
    """Seconds of some asks after so many duels were told."""
    peer, function, judge = started(module, name, seed)
    seconds = []
    for k in range(3 * len(function.bounds), n_told + n_asks):
        begin = time.perf_counter()
        duel = peer.ask()
        if k >= n_told:
            seconds.append(time.perf_counter() - begin)
        peer.tell(duel, judge(*function.from_unit(duel)))
    versions = {package: metadata.version(package) for package in module.PACKAGES}
    return {"peer": module.NAME, "function": name, "seconds": seconds, "versions": versions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument(
        "--functions", nargs="+", choices=TEST_FUNCTIONS, default=["branin", "hartmann-3"]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--duels", type=int, default=60, help="after the 3 d random ones")
    parser.add_argument("--paper-code", type=Path, help="folder that has the paper's src")
    parser.add_argument("--fresh", action="store_true", help="run also what the file has")
    parser.add_argument("--results", type=Path, default=RESULTS / "regret_peers.csv")
    parser.add_argument("--time-asks", type=int, default=0, help="time so many asks, write nothing")
    parser.add_argument("--told", type=int, default=60, help="duels told before those timed")
    options = parser.parse_args()
    if options.peer == "paper":
        if options.paper_code is None or not (options.paper_code / "src").is_dir():
            parser.error("--peer paper needs --paper-code, a folder that has the code's src")
        os.environ["PREFERENTIAL_BO"] = str(options.paper_code)
    module = importlib.import_module(f"_peer_{options.peer}")
    if options.time_asks:
        for name in options.functions:
            found = timed(module, name, options.seeds[0], options.told, options.time_asks)
            print(json.dumps(found), flush=True)
        return
    for seed in options.seeds:
        for name in options.functions:
            done = read(options.results).get((name, module.NAME, 0.0, seed))
            if done and len(done["regret"]) >= options.duels and not options.fresh:
                continue
            row = run(module, name, seed, options.duels)
            append(options.results, row)
            print(*(row[key] for key in UNIT), "regret", row["regret"].split()[-1], flush=True)


if __name__ == "__main__":
    main()
