"""How many bits it takes to say where the best is, and how many answers these are at least.

    python benchmarks/optimize/bits_needed.py [--set held-out] [--within 0.01]

Whoever asks until the recommended item is within 1 % of the range of the best has learned in which
part of the space it lies. If nothing is known beforehand, and that part is a share v of the space,
this takes log2(1 / v) bits on average. An answer with k possible values tells log2(k) at most: a
duel 1, the best of four 2, a line of nine points 3.2, a plane of 5 x 5 points 4.6. So fewer answers
than the quotient are not enough, whatever is asked. (A prior that knows the function better than
that it may be anywhere needs fewer.)

The share v is found by splitting: of points spread evenly the better half is kept, copied and moved
at random within what is at least as good, until half of them are near the best. Of a pool it is
counted. The table goes to ``results/bits_needed.csv``, a row a problem.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_problems import SETS, make_problems
from common import RESULTS, report

VALUES = {"duel": 2, "best of 4": 4, "line of 9": 9, "plane of 5 x 5": 25}
_POINTS, _MOVES = 1000, 25


def bits(problem, within, seed):
    """Minus the binary logarithm of the share of the space that is near the best."""
    if problem.pool is not None:
        regret = (problem.optimum - problem.utility(problem.pool)) / problem.range
        return -np.log2(np.mean(regret <= within))
    rng = np.random.default_rng(seed)

    def regrets(U):
        values = problem.utility(problem.rows(problem._items(U)))
        return (problem.optimum - values) / problem.range

    U = rng.random((_POINTS, problem.n_dimensions))
    found, halvings = regrets(U), 0
    while np.mean(found <= within) < 0.5:
        order = np.argsort(found)[: _POINTS // 2]
        level, halvings = found[order[-1]], halvings + 1
        U, found = np.tile(U[order], (2, 1)), np.tile(found[order], 2)
        for _ in range(_MOVES):
            # Steps of every size, and in some of the coordinates: what is left may be of any shape.
            size = 10.0 ** rng.uniform(-4.0, 0.0, (_POINTS, 1))
            some = rng.random(U.shape) < rng.random((_POINTS, 1))
            moved = U + size * some * rng.standard_normal(U.shape)
            moved = 1.0 - np.abs(1.0 - np.abs(moved) % 2.0)
            there = regrets(moved)
            good = there <= level
            U[good], found[good] = moved[good], there[good]
    return halvings - np.log2(np.mean(found <= within))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="held-out", dest="which")
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = []
    for problem in make_problems(options.which):
        needed = bits(problem, options.within, options.seed)
        row = {"problem": problem.name, "group": problem.group, "dimensions": problem.n_dimensions}
        row["bits"] = round(float(needed), 2)
        row |= {form: round(float(needed / np.log2(k)), 2) for form, k in VALUES.items()}
        rows.append(row)
    report(rows, RESULTS / "bits_needed.csv", set=options.which, within=options.within)
    for name in ("bits", *VALUES):
        low, middle, high = np.quantile([row[name] for row in rows], [0.25, 0.5, 0.75])
        print(f"{name:16} median {middle:.1f}, quartiles {low:.1f} and {high:.1f}")


if __name__ == "__main__":
    main()
