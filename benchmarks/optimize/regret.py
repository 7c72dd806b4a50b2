"""Regret against answers, and seconds of each question, of the methods on the test functions.

    python benchmarks/optimize/regret.py [--functions branin hartmann-3]
        [--methods default HB-EI EUBO] [--seeds 0 1 2 3] [--duels 60] [--flip 0.1] [--jobs 2]
        [--protocol paper] [--fresh] [--table]

A unit of work is a (function, method, flip, seed). All methods get the same 3 d duels of uniform
random items and the same judge for a seed; then ``--duels`` further ones are asked and told, and
after each the regret of the recommended item is noted, with the seconds of `ask` alone and from
calling `tell` to holding the next duel. Each finished unit is appended to
``results/regret.csv``: run again, what is there is skipped (unless more duels are wanted than it
has, or ``--fresh``), so a run may be stopped at any time. ``--table`` prints what the file has
for the chosen functions, methods, seeds and flip (all, where none is chosen) and runs nothing;
``PEERS`` that ``peer_regret.py`` ran are shown with ours.

"default" is `HallucinationBelieverOptimizer` as it comes, "best" `PreferenceOptimizer` as it comes;
the others are ``STRATEGIES`` with the
defaults of `PreferenceOptimizer`. "ties", "best-of-3" and "best-of-4" (``ANSWERS``) are "default"
with other answers: ties where the values differ by less than 2 % of the function's range, and the
best of so many items shown; their first 3 d questions are of that kind, too.

``--protocol paper`` takes the methods of Takeno et al. (2023) and the setting of their experiments
(``PAPER`` in ``_paper_protocol.py``: RBF, noise variance 1e-4, lengthscales learned every ten duels
by Laplace's evidence), and keeps its units in ``results/regret_paper.csv``.

Single-threaded; with ``--jobs`` above the number of free cores the seconds mean little.
"""

import argparse
import csv
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy; workers inherit it
    os.environ[variable] = "1"

import joblib
import numpy as np
from scipy.stats import qmc

from skpref.datasets import TEST_FUNCTIONS, load_test_function
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _paper_protocol import IN_FIGURES, PAPER, PaperOptimizer
from common import RESULTS, sources

METHODS = ("default", "best", *STRATEGIES)
# Of another kind of answer: number of items shown, and threshold in shares of the range.
ANSWERS = {"ties": (2, 0.02), "best-of-3": (3, 0.0), "best-of-4": (4, 0.0)}
PEERS = ("Optuna", "BoTorch-EUBO", "paper-HB-EI")  # run by peer_regret.py, never here
UNIT = ("function", "method", "flip", "seed")
SERIES = ("regret", "ask_seconds", "wait_seconds")
COLUMNS = (*UNIT, "duels", *SERIES, "sources")
STEPS = (20, 40, 60, 100)
FLOOR = 1e-4


def build(method, bounds, seed):
    """The optimizer of a method."""
    if method == "default" or method in ANSWERS:
        return HallucinationBelieverOptimizer(bounds, random_state=seed)
    if method == "best":
        return PreferenceOptimizer(bounds, random_state=seed)
    return PreferenceOptimizer(bounds, **STRATEGIES[method]._asdict(), random_state=seed)


class Protocol(NamedTuple):
    """What makes an optimizer of a method, all methods, those of a plain run, and the file."""

    make: Callable
    methods: tuple[str, ...]
    usual: tuple[str, ...]
    file: str


PROTOCOLS = {
    "own": Protocol(build, (*METHODS, *ANSWERS), ("default", "HB-EI", "random"), "regret.csv"),
    "paper": Protocol(PaperOptimizer, tuple(PAPER), IN_FIGURES, "regret_paper.csv"),
}


def judge_of(function, size, threshold, flip, rng):
    """A judge of so many items, and what he answers as `tell` takes it."""
    duels = function.judge(flip=flip, rng=rng)
    sample = function.from_unit(qmc.Sobol(len(function.bounds), scramble=False).random(2**14))
    indifferent = threshold * (function.optimum - function(sample).min())

    def judge(items):
        values = function(items)
        if size > 2:
            turned = flip and rng.random() < flip
            return {"chosen": int(rng.integers(size) if turned else np.argmax(values))}
        if abs(values[0] - values[1]) < indifferent:
            return "tie"
        return duels(*items)

    return judge


def run(name, method, flip, seed, n_duels, make=build):
    """One unit of work.

    Returns
    -------
    dict of COLUMNS
        Series have one number an answer: regret after it, seconds of the `ask` that gave the
        question, seconds from calling `tell` on the one before to holding it (first: `ask` alone).
    """
    function = load_test_function(name)
    size, threshold = ANSWERS.get(method, (2, 0.0))
    judge = judge_of(function, size, threshold, flip, np.random.default_rng([seed, 1]))
    optimizer = make(method, function.bounds, seed)
    d = len(function.bounds)
    start = np.random.default_rng([seed, 0]).random((3 * d, size, d))
    for items in function.from_unit(start):
        optimizer.tell(items, judge(items))
    begin = time.perf_counter()
    items = optimizer.ask(size=size)
    ask_seconds = [time.perf_counter() - begin]
    wait_seconds, regret = [*ask_seconds], []
    for k in range(n_duels):
        outcome = judge(items)
        begin = time.perf_counter()
        optimizer.tell(items, outcome)
        told = time.perf_counter()
        if k < n_duels - 1:
            items = optimizer.ask(size=size)
            held = time.perf_counter()
            ask_seconds.append(held - told)
            wait_seconds.append(held - begin)
        regret.append(function.regret(optimizer.recommend()))
    series = {"regret": regret, "ask_seconds": ask_seconds, "wait_seconds": wait_seconds}
    row = {"function": name, "method": method, "flip": flip, "seed": seed, "duels": n_duels}
    row |= {key: " ".join(f"{v:.4g}" for v in values) for key, values in series.items()}
    return row | {"sources": sources()}


# --- the file -------------------------------------------------------------------------------


def read(path):
    """Finished units by (function, method, flip, seed), the last of each; torn lines are left."""
    found = {}
    if not path.is_file():
        return found
    with path.open(newline="") as handle:
        for row in csv.DictReader(handle):
            try:
                n_duels = int(row["duels"])
                series = {key: np.array(row[key].split(), dtype=float) for key in SERIES}
                unit = (row["function"], row["method"], float(row["flip"]), int(row["seed"]))
            except (AttributeError, KeyError, TypeError, ValueError):
                continue
            whole = len(row["sources"] or "") == 8
            if whole and all(len(values) == n_duels for values in series.values()):
                found[unit] = series | {"sources": row["sources"]}
    return found


def append(path, row):
    """Add a unit of ours."""
    append_row(path, row, COLUMNS)


def append_row(path, row, columns):
    """Add a unit; a line torn by a kill is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_bytes() if path.is_file() else b""
    with path.open("a", newline="") as handle:
        if text and not text.endswith(b"\n"):
            handle.write("\r\n")
        writer = csv.DictWriter(handle, columns)
        if not text:
            writer.writeheader()
        writer.writerow(row)
        handle.flush()
        os.fsync(handle.fileno())


# --- tables ---------------------------------------------------------------------------------


def quartiles(values):
    """Median and quartiles as text."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:6.2f} ({low:5.2f} {high:5.2f})"


def table(units):
    """Print log10 regret after the steps and milliseconds, a line a function, flip and method."""
    groups = defaultdict(list)
    for (name, method, flip, _), series in sorted(units.items()):
        groups[name, flip, method].append(series)
    if not groups:
        print("No finished unit of these functions, methods, seeds and flip.")
        return
    heads = [f"log10 regret @{step}".rjust(21) for step in STEPS]
    print("function      flip method       seeds " + " ".join(heads) + "  ms: ask wait  95 %")
    every = (*TEST_FUNCTIONS, *METHODS, *PAPER, *ANSWERS, *PEERS)
    ranks = {name: k for k, name in enumerate(every)}
    order = sorted(groups, key=lambda key: (ranks[key[0]], key[1], ranks[key[2]]))
    for name, flip, method in order:
        found = groups[name, flip, method]
        cells = []
        for step in STEPS:
            reached = [s["regret"][step - 1] for s in found if len(s["regret"]) >= step]
            text = quartiles(np.log10(np.maximum(reached, FLOOR))) if reached else "-"
            fewer = f" n={len(reached)}" if 0 < len(reached) < len(found) else ""
            cells.append((text + fewer).rjust(21))
        ask = 1e3 * np.median(np.concatenate([s["ask_seconds"] for s in found]))
        wait = 1e3 * np.concatenate([s["wait_seconds"][1:] for s in found])
        times = f"{ask:8.1f} {np.median(wait):5.1f} {np.quantile(wait, 0.95):5.1f}"
        print(f"{name:13} {flip:4g} {method:13}{len(found):5} " + " ".join(cells) + times)
    states = {series["sources"] for unit, series in units.items() if unit[1] not in PEERS}
    if states - {sources()}:
        print(f"Run with the package as in {sorted(states)}, now {sources()}: see --fresh.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", nargs="+", choices=TEST_FUNCTIONS)
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, *PAPER, *ANSWERS, *PEERS))
    parser.add_argument("--protocol", choices=PROTOCOLS, default="own")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--duels", type=int, default=60, help="after the 3 d random ones")
    parser.add_argument("--flip", type=float, help="share of answers turned round (0)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="run also what the file has")
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    parser.add_argument("--results", type=Path, help="of the protocol by default")
    parser.add_argument(
        "--peer-results", type=Path, default=RESULTS / "regret_peers.csv", help="for --table"
    )
    options = parser.parse_args()
    if options.duels < 2:  # a wait is that from one to the next
        parser.error("--duels must be 2 or more")
    if not options.table and set(options.methods or ()) & set(PEERS):
        parser.error("peers are run by peer_regret.py, and shown here by --table")
    protocol = PROTOCOLS[options.protocol]
    options.results = options.results or RESULTS / protocol.file
    if set(options.methods or ()) - {*protocol.methods, *PEERS}:
        parser.error(f"protocol {options.protocol} has {', '.join(protocol.methods)}")

    def chosen(unit):
        wanted = (
            options.functions,
            options.methods,
            None if options.flip is None else [options.flip],
            options.seeds,
        )
        return all(one is None or value in one for value, one in zip(unit, wanted, strict=True))

    done = read(options.results)
    if options.table:
        done |= read(options.peer_results)
    else:
        flip = 0.0 if options.flip is None else options.flip
        units = [
            (name, method, flip, seed)
            for seed in options.seeds or range(2)
            for name in options.functions or ("branin", "hartmann-3")
            for method in options.methods or protocol.usual
        ]
        enough = {unit for unit, series in done.items() if len(series["regret"]) >= options.duels}
        left = [unit for unit in units if options.fresh or unit not in enough]
        print(f"{len(units)} units, {len(units) - len(left)} of them done")
        parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        tasks = (joblib.delayed(run)(*unit, options.duels, protocol.make) for unit in left)
        for row in parallel(tasks):
            append(options.results, row)
            print(*(row[key] for key in UNIT), "regret", row["regret"].split()[-1], flush=True)
        done = {unit: series for unit, series in read(options.results).items() if unit in units}
    table({unit: series for unit, series in done.items() if chosen(unit)})


if __name__ == "__main__":
    main()
