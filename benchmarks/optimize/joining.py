"""Regret where the worst of those shown makes room for one more, by what chooses that one.

    python benchmarks/optimize/joining.py [--functions branin hartmann-3] [--sizes 2 3 4]
        [--methods default eubo log_ei thompson whole] [--seeds 0 1 2 3] [--answers 30]

So many items are shown, a judge who never errs names the worst, the others stay, and another joins
them, ``ask(beside=...)``: the page of Optuna Dashboard. "default" is `PreferenceOptimizer` as it
comes; "eubo", "log_ei" and "thompson" choose each item by that acquisition, under hyperparameters
drawn from their posterior. With "whole" nothing stays: all items of a question are chosen. The
regret is that of `recommend` after 10, 20 and so on answers: medians and means over the seeds, in
``results/joining.csv``.
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref.datasets import TEST_FUNCTIONS, load_test_function
from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

METHODS = {
    "default": {},
    "eubo": {"inference": "ep", "acquisition": "eubo", "hyperparameters": "drawn"},
    "log_ei": {"acquisition": "log_ei", "hyperparameters": "drawn"},
    "thompson": {"acquisition": "thompson", "hyperparameters": "drawn"},
    "whole": {},
}
EVERY = 10


def run(name, size, method, seed, n_answers):
    """Regret of what is recommended after each ten answers."""
    function = load_test_function(name)
    # The same first item, and the same seed, for all methods.
    first = np.random.default_rng(seed).uniform(*function.bounds.T)
    optimizer = PreferenceOptimizer(function.bounds, random_state=seed, **METHODS[method])
    shown, regrets = [first], []
    for answer in range(1, n_answers + 1):
        beside = None if method == "whole" else shown
        shown = list(optimizer.ask(size=size, beside=beside))
        worst = int(np.argmin(function(np.array(shown))))
        optimizer.tell(shown, worst=worst)
        del shown[worst]
        if answer % EVERY == 0:
            regrets.append(float(function.optimum - function(optimizer.recommend()[None])[0]))
    return regrets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", nargs="+", default=["branin", "hartmann-3"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--answers", type=int, default=30)
    chosen = parser.parse_args()
    unknown = set(chosen.functions) - set(TEST_FUNCTIONS)
    if unknown:
        parser.error(f"no functions {sorted(unknown)}; there are {', '.join(TEST_FUNCTIONS)}")
    rows = []
    for name in chosen.functions:
        for size in chosen.sizes:
            for method in chosen.methods:
                found = [run(name, size, method, seed, chosen.answers) for seed in chosen.seeds]
                row = {"function": name, "size": size, "method": method, "seeds": len(found)}
                for k, regrets in enumerate(zip(*found, strict=True), start=1):
                    row[f"median_{EVERY * k}"] = float(np.median(regrets))
                    row[f"mean_{EVERY * k}"] = float(np.mean(regrets))
                rows.append(row)
                print(row, flush=True)
    report(rows, RESULTS / "joining.csv", arguments=vars(chosen))


if __name__ == "__main__":
    main()
