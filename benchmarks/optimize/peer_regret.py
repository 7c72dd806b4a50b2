"""Regret and seconds of an ask of published optimizers, under the protocol of ``regret.py``.

    PYTHONPATH=. PEER_PYTHON benchmarks/optimize/peer_regret.py --peer optuna
        [--functions branin hartmann-3] [--seeds 0 1] [--duels 60] [--paper-code DIR] [--fresh]
        [--results benchmarks/results/regret_peers.csv]
    ... --time-asks 5 [--told 60]
    ... --generated [--problems "draw 0 rbf 2"]

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

With ``--generated`` the problems are ``SUBSET`` of ``_generated_problems.py``, by the protocol of
``generated_regret.py``, whose ``--table --subset`` shows the peers beside ours. Finished units are
appended to ``results/generated_peers.csv``. Of a peer that raised an error "crashed" says how many
duels it had asked for; its last recommendation (before one: the winner of the last random duel) is
held to the end.
"""

import argparse
import importlib
import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

from skpref.datasets import TEST_FUNCTIONS, load_test_function

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import generated_regret
from _generated_methods import Method
from _generated_problems import SUBSET, make_problems
from common import RESULTS, needs
from regret import UNIT, append, append_row, read

# And the packages that each needs.
PEERS = {
    "optuna": ("torch", "botorch", "optuna_dashboard"),
    "eubo": ("torch", "botorch"),
    "paper": ("GPy",),
}
GENERATED = (*generated_regret.COLUMNS, "crashed", "sources")


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


class Driven:
    """A peer as `generated_regret.run` drives its methods.

    What it recommends is of the fit of its next ask, which is therefore made first. Once it has
    raised an error its last duel and what it recommended by then are repeated.
    """

    def __init__(self, peer):
        self.peer, self.duel, self.best = peer, None, None
        self.fresh, self.ask_seconds, self.error = False, [], None

    def tell(self, duel, outcome):
        if not self.ask_seconds:
            self.duel, self.best = duel, duel[0 if outcome == 1 else 1]
        self._attempt(self.peer.tell, duel, outcome)
        self.fresh = False

    def ask(self, size=2):
        if not self.fresh:
            begin = time.process_time()
            self.duel = self._attempt(self.peer.ask, default=self.duel)
            self.ask_seconds.append(time.process_time() - begin)
            self.fresh = True
        return self.duel

    def recommend(self):
        self.ask()
        self.best = self._attempt(self.peer.recommend, default=self.best)
        return self.best

    def _attempt(self, method, *arguments, default=None):
        if self.error is None:
            try:
                return method(*arguments)
            except (Exception, SystemExit) as error:  # whatever ends a peer is a crash of it
                self.error, self.n_asked = error, len(self.ask_seconds)
        return default


def run_generated(module, problem, seed, n_duels):
    """One unit of work: a row as in ``generated_regret.py``."""
    driven = Driven(module.Peer(problem.n_dimensions, seed))
    method = Method(lambda *_: driven)
    unit = ("held-out", problem, module.NAME, 0.0, seed)
    row = generated_regret.run(*unit, n_duels, method)
    if driven.error is not None:
        print(f"crashed after {driven.n_asked} asks: {driven.error!r}"[:300], flush=True)
    seconds = driven.ask_seconds[: n_duels if driven.error is None else driven.n_asked]
    row["ask_seconds"] = " ".join(f"{value:.4f}" for value in seconds)
    crashed = "" if driven.error is None else min(driven.n_asked, n_duels)
    return row | {"crashed": crashed, "sources": module.sources()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument(
        "--functions", nargs="+", choices=TEST_FUNCTIONS, default=["branin", "hartmann-3"]
    )
    parser.add_argument("--generated", action="store_true", help="run the generated problems")
    parser.add_argument("--problems", nargs="+", choices=SUBSET, default=SUBSET, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--duels", type=int, default=60, help="after the 3 d random ones")
    parser.add_argument("--paper-code", type=Path, help="folder that has the paper's src")
    parser.add_argument("--fresh", action="store_true", help="run also what the file has")
    parser.add_argument("--results", type=Path, help="file to append to")
    parser.add_argument("--time-asks", type=int, default=0, help="time so many asks, write nothing")
    parser.add_argument("--told", type=int, default=60, help="duels told before those timed")
    options = parser.parse_args()
    needs(*PEERS[options.peer])
    if options.peer == "paper":
        if options.paper_code is None or not (options.paper_code / "src").is_dir():
            parser.error("--peer paper needs --paper-code, a folder that has the code's src")
        os.environ["PREFERENTIAL_BO"] = str(options.paper_code)
    module = importlib.import_module(f"_peer_{options.peer}")
    if options.generated:
        if options.time_asks:
            parser.error("--time-asks is of the test functions: leave out --generated")
        path = options.results or generated_regret.PEER_RESULTS
        made = {each.name: each for each in make_problems("held-out")}
        for seed in options.seeds:
            for name in options.problems:
                unit = ("held-out", name, module.NAME, 0.0, seed)
                if unit in generated_regret.read(path) and not options.fresh:
                    continue
                row = run_generated(module, made[name], seed, options.duels)
                append_row(path, row, GENERATED)
                last = row["regret"].split()[-1]
                print(name, module.NAME, seed, last, row["lesser"], row["crashed"], flush=True)
        return
    if options.time_asks:
        for name in options.functions:
            found = timed(module, name, options.seeds[0], options.told, options.time_asks)
            print(json.dumps(found), flush=True)
        return
    path = options.results or RESULTS / "regret_peers.csv"
    for seed in options.seeds:
        for name in options.functions:
            done = read(path).get((name, module.NAME, 0.0, seed))
            if done and len(done["regret"]) >= options.duels and not options.fresh:
                continue
            row = run(module, name, seed, options.duels)
            append(path, row)
            print(*(row[key] for key in UNIT), "regret", row["regret"].split()[-1], flush=True)


if __name__ == "__main__":
    main()
