"""Regret with judges who err, see no difference, or change their taste.

    python benchmarks/optimize/judges_who_err.py [--judges wrong ties shift]
        [--methods default believer] [--problems ...] [--seeds 0 1] [--answers 60] [--table]

The problems are the twelve of ``peer_regret.py --generated``. A unit of work is a (judge, problem,
method, seed): as many answers as 3 d duels, then ``--answers`` duels. Methods that show more than
two items are refused. The judges:

- "exact": the better item wins.
- "wrong": of all answers 20 % are turned round.
- "ties": two items whose utilities differ by less than 2 % of the range are a tie.
- "shift": after half of the answers every coordinate is warped, u to u**1.5 or 1 - (1 - u)**1.5 by
  lot, so that the best item moves by up to .15 of the cube in each. Regret is by the taste of the
  moment. The optimizer is not told.

Regret is in shares of the range. A run is stuck if a climb from the recommended item, by the taste
at the end, ends more than 1 % of the range below the optimum; blank: not known.
Finished units are appended to ``results/judges_who_err.csv``; those that it has are skipped.
"""

import argparse
import csv
import os
import sys
from dataclasses import replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_methods import METHODS
from _generated_problems import SUBSET, make_problems
from common import RESULTS
from regret import append_row

JUDGES = ("exact", "wrong", "ties", "shift")
WRONG, ALIKE, POWER = 0.2, 0.02, 1.5
DUELS = [name for name, made in METHODS.items() if made.size == 2 and made.kind is None]
UNIT = ("judge", "problem", "method", "seed")
COLUMNS = (*UNIT, "answers", "regret", "lesser", "ties")
FLOOR = 1e-5


def shifted(problem, rng):
    """The problem with every coordinate warped; its optimum and range are the same."""
    up = rng.random(problem.n_dimensions) < 0.5

    def utility(rows):
        rows = np.clip(rows, 0.0, 1.0)  # a climb looks a little beyond
        return problem.utility(np.where(up, rows**POWER, 1.0 - (1.0 - rows) ** POWER))

    other = replace(problem, utility=utility)
    other._searched = problem._searched  # the warp takes the cube onto itself
    return other


def run(kind, problem, method, seed, n_answers):
    """One unit of work."""
    made, rng = METHODS[method], np.random.default_rng([seed, 1])
    optimizer, taste, n_ties = made.build(problem, seed), problem, 0
    start, d = np.random.default_rng([seed, 0]), problem.n_dimensions

    def tell(items):
        nonlocal n_ties
        first, second = taste.values(items)
        coin, outcome = rng.random(), int(first > second)
        if kind == "wrong" and coin < WRONG:
            outcome = 1 - outcome
        if kind == "ties" and abs(first - second) < ALIKE * taste.range:
            outcome, n_ties = "tie", n_ties + 1
        optimizer.tell(items, outcome)

    for _ in range(3 * d):
        tell(optimizer.ask() if made.designs else problem.random_items(start, 2))
    regret = []
    for k in range(n_answers):
        if kind == "shift" and k == n_answers // 2:
            taste = shifted(problem, np.random.default_rng([seed, 2]))
        tell(optimizer.ask())
        regret.append(taste.regret(optimizer.recommend()))
    row = {"judge": kind, "problem": problem.name, "method": method, "seed": seed}
    row |= {"answers": n_answers, "regret": " ".join(f"{value:.3g}" for value in regret)}
    return row | {"lesser": int(taste.is_lesser(optimizer.recommend())), "ties": n_ties}


def read(path):
    """Finished units by their key."""
    if not path.is_file():
        return {}
    with path.open(newline="") as handle:
        return {
            (*(row[k] for k in UNIT[:3]), int(row["seed"])): row for row in csv.DictReader(handle)
        }


def table(units):
    """Print a line a judge and method; differences are from the believer."""
    print(f"{'judge':8}{'method':24}  lower median upper  stuck  of  won:lost  difference")
    for kind in JUDGES:
        logs = {
            key[1:]: np.log10(max(float(row["regret"].split()[-1]), FLOOR))
            for key, row in units.items()
            if key[0] == kind
        }
        for method in dict.fromkeys(key[1] for key in logs):
            pairs = [(p, s) for p, m, s in logs if m == method and (p, "believer", s) in logs]
            if not pairs:
                continue
            ends = np.array([logs[p, method, s] for p, s in pairs])
            gains = ends - [logs[p, "believer", s] for p, s in pairs]
            by_problem = [
                np.mean([gain for (p, _), gain in zip(pairs, gains, strict=True) if p == name])
                for name in dict.fromkeys(p for p, _ in pairs)
            ]
            error = np.std(by_problem, ddof=1) / np.sqrt(len(by_problem))
            ends_lesser = [units[kind, p, method, s]["lesser"] for p, s in pairs]
            stuck = "-" if "" in ends_lesser else ends_lesser.count("1")
            low, middle, high = np.quantile(ends, [0.25, 0.5, 0.75])
            print(
                f"{kind:8}{method:24}{low:7.2f}{middle:7.2f}{high:7.2f}{stuck!s:>6}{len(pairs):5}"
                f"{np.sum(gains < -1e-9):6}:{np.sum(gains > 1e-9):<4}"
                f"  {np.mean(by_problem):+.2f} ± {error:.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judges", nargs="+", choices=JUDGES, default=["wrong", "ties", "shift"])
    parser.add_argument("--methods", nargs="+", choices=DUELS, default=["believer", "default"])
    parser.add_argument("--problems", nargs="+", choices=SUBSET, default=SUBSET)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--answers", type=int, default=60, help="after the 3 d first ones")
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    options = parser.parse_args()
    path = RESULTS / "judges_who_err.csv"
    problems = [each for each in make_problems("held-out") if each.name in options.problems]
    for seed in () if options.table else options.seeds:
        for problem in problems:
            for kind in options.judges:
                for method in options.methods:
                    if (kind, problem.name, method, seed) not in read(path):
                        append_row(path, run(kind, problem, method, seed, options.answers), COLUMNS)
    table(read(path))


if __name__ == "__main__":
    main()
