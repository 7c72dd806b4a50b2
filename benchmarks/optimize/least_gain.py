"""When the knowledge gradient leaves its turn: regret by the least gain that it must expect.

    python benchmarks/optimize/least_gain.py [--least 0 0.01]
        [--problems branin "function peaks" ...] [--seeds 0 1 2] [--table]

The optimizer is `PreferenceOptimizer` with its former prior of lengthscales, but for the least
gain, in prior deviations of the utility; at 0 no turn is left. Problems are published functions,
with 3 d random duels first, and those of the development set of ``_generated_problems.py``, after
as many answers; names that begin with "held-out, " are of the held-out set, and "held-out" is all
of it but the pools. Then 60 duels are told. Finished units (problem, seed, least) are appended to
``results/least_gain.csv``; those that it has are skipped. The table has the paired differences of
log10 regret from those at 0.
"""

import argparse
import csv
import os
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref.datasets import TEST_FUNCTIONS
from skpref.optimize import _questions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import generated_regret
import regret
from _generated_methods import METHODS
from _generated_problems import make_problems
from common import RESULTS, few

FUNCTIONS = ("branin", "bukin-6", "ackley-4", "hartmann-3", "hartmann-4", "levy-13")
ANSWERS, FORMER = few(60, 2), "default, former noise, prior .5"
# Of regret: of functions in their own unit, of generated problems in shares of the range.
FLOORS = {"function": 1e-4, "generated": 1e-5, "held-out": 1e-5}
HELD_OUT = "held-out, "
UNIT = ("problem", "seed", "least")
COLUMNS = (*UNIT, "kind", "regret", "stuck")


@cache
def generated(which):
    return {each.name: each for each in make_problems(which)}


def former(method, bounds, seed):
    """The optimizer of a function in its own box, for `regret.run`."""
    return METHODS[method].build(SimpleNamespace(arguments={"space": bounds}), seed)


def run(name, seed, least):
    """One unit of work."""
    _questions._LEAST_GAIN = least
    row = {"problem": name, "seed": seed, "least": least}
    if name in TEST_FUNCTIONS:
        found = regret.run(name, FORMER, 0.0, seed, ANSWERS, former)
        return row | {"kind": "function", "regret": found["regret"].split()[-1], "stuck": ""}
    which = "held-out" if name.startswith(HELD_OUT) else "development"
    problem = generated(which)[name.removeprefix(HELD_OUT)]
    found = generated_regret.run(which, problem, FORMER, 0.0, seed, ANSWERS)
    kind = "held-out" if which == "held-out" else "generated"
    return row | {
        "kind": kind,
        "regret": found["regret"].split()[-1],
        "stuck": found["lesser"],
    }


def read(path):
    """Finished units by their key."""
    if not path.is_file():
        return {}
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {(row["problem"], int(row["seed"]), float(row["least"])): row for row in rows}


def table(units):
    """Print a line a kind of problem and least gain."""
    for kind, floor in FLOORS.items():
        logs = {
            key: np.log10(max(float(row["regret"]), floor))
            for key, row in units.items()
            if row["kind"] == kind
        }
        for least in sorted({least for *_, least in logs} - {0.0}):
            pairs = [key for key in logs if key[2] == least and (*key[:2], 0.0) in logs]
            if len(pairs) < 2:
                continue
            gains = np.array([logs[key] - logs[*key[:2], 0.0] for key in pairs])
            stuck = [
                sum(units[*key[:2], each]["stuck"] == "1" for key in pairs) for each in (least, 0)
            ]
            error = gains.std(ddof=1) / np.sqrt(len(gains))
            print(
                f"{kind:10} least {least:<6} {len(pairs):3} pairs: difference {gains.mean():+.2f} "
                f"± {error:.2f}, won {np.sum(gains < -1e-9)}, lost "
                f"{np.sum(gains > 1e-9)}, stuck {stuck[0]} (at 0: {stuck[1]})"
            )
            for name in dict.fromkeys(key[0] for key in pairs):
                both = [[logs[k], logs[*k[:2], 0.0]] for k in pairs if k[0] == name]
                print(
                    f"    {name:20} median {np.median(both, axis=0)[0]:6.2f}, "
                    f"at 0 {np.median(both, axis=0)[1]:6.2f}, {len(both)} seeds"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", nargs="+", type=float, default=[0.0, 0.01])
    parser.add_argument("--problems", nargs="+", default=FUNCTIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    options = parser.parse_args()
    if options.problems == ["held-out"]:
        every = generated("held-out").values()
        options.problems = [HELD_OUT + each.name for each in every if each.pool is None]
    path = RESULTS / "least_gain.csv"
    for seed in () if options.table else options.seeds:
        for name in options.problems:
            for least in options.least:
                if (name, seed, least) not in read(path):
                    regret.append_row(path, run(name, seed, least), COLUMNS)
    table(read(path))


if __name__ == "__main__":
    main()
