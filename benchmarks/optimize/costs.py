"""Regret at equal cost where an item has to be made before it is judged.

    python benchmarks/optimize/costs.py [--problems "function branin 2" ...] [--seeds 0 1 2]
        [--methods default cost] [--making 10] [--budget 220] [--table]

Problems are those of ``_generated_problems.py``, held-out by default. A question costs 1, an item
that was in no question before ``--making``. "default" is `PreferenceOptimizer`, "cost" the same
with ``cost``. A run ends where the next question would cost more than the budget. The regret of
`recommend` is in shares of the range, and 1 where nothing was answered yet. Finished runs are
appended to ``results/costs.csv``, at a half, three quarters and the whole of the budget; those that
it has are skipped, and ``--table`` runs none. Printed are, for each budget, the median regret of
either method and the geometric mean of the ratio of their regrets, with a floor of 1e-4.
"""

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_problems import SETS, make_problems
from common import RESULTS, Table

SHARES, FLOOR = (0.5, 0.75, 1.0), 1e-4
PROBLEMS = (
    "draw 0 rbf 2",
    "draw 3 sum 2",
    "draw 6 matern32 2",
    "draw 9 matern52 3",
    "function griewank-3",
    "function hartmann-3",
    "function rosenbrock-3",
    "function styblinski-4",
)
KEYS = ("set", "problem", "method", "making", "budget", "seed")


def run(problem, method, making, budget, seed):
    """Return for shares of the budget the regret, and the answers and items that it paid for."""
    cost = {"default": None, "cost": (making, 1.0)}[method]
    optimizer = PreferenceOptimizer(**problem.arguments, cost=cost, random_state=seed)
    made, spent, course = set(), 0.0, [(0.0, 1.0, 0)]
    while True:
        duel = optimizer.ask()
        new = {repr(item) for item in duel} - made
        spent += making * len(new) + 1.0
        if spent > budget:
            break
        made |= new
        first, second = problem.values(duel)
        optimizer.tell(duel, int(first > second))
        course.append((spent, problem.regret(optimizer.recommend()), len(made)))
    rows = []
    for share in SHARES:
        paid = [each for each in course if each[0] <= share * budget]
        row = {"spent": share * budget, "regret": paid[-1][1]}
        rows.append({**row, "answers": len(paid) - 1, "items": paid[-1][2]})
    return rows


def show(rows):
    """Print median regrets by budget, and the geometric mean ratio of pairs of runs."""
    regrets = defaultdict(dict)
    for row in rows:
        pair = row["set"], row["problem"], row["making"], row["seed"], row["spent"]
        regrets[pair][row["method"]] = max(row["regret"], FLOOR)
    for spent in sorted({pair[-1] for pair in regrets}):
        pairs = [each for key, each in regrets.items() if key[-1] == spent and len(each) == 2]
        if pairs:
            default, by_cost = np.array([[each["default"], each["cost"]] for each in pairs]).T
            ratio = np.exp(np.mean(np.log(by_cost / default)))
            print(
                f"cost {spent:g}: {len(pairs)} pairs, median regret {np.median(default):.4f} by "
                f"default, {np.median(by_cost):.4f} by cost, ratio {ratio:.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="held-out", choices=SETS)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--methods", nargs="+", default=["default", "cost"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--making", type=float, default=10.0)
    parser.add_argument("--budget", type=float, default=220.0)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    table = Table(RESULTS / "costs.csv", KEYS)
    problems = {each.name: each for each in make_problems(chosen.set)}
    units = [
        (chosen.set, name, method, chosen.making, chosen.budget, seed)
        for seed in chosen.seeds
        for name in chosen.problems
        for method in chosen.methods
    ]
    for unit in [] if chosen.table else table.missing(units):
        rows = run(problems[unit[1]], *unit[2:])
        table.add([dict(zip(KEYS, unit, strict=True)) | row for row in rows])
        print(*unit, rows, flush=True)
    show(table.rows())


if __name__ == "__main__":
    main()
