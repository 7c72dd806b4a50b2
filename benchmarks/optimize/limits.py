"""Answers needed where some items cannot be made, known beforehand or found by rejection.

    python benchmarks/optimize/limits.py [--problems gardner gramacy ...]
        [--methods limits rejection] [--seeds 0 1 2] [--answers 30] [--results FILE]

Published problems of constrained optimisation, in two to four dimensions. "limits" is
`PreferenceOptimizer` with ``constraints``. "rejection" is the same without them: of a duel with one
item that cannot be made the other one wins, which counts as an answer, and a duel of two such items
is skipped, which counts as none. "unusable" does not know them either: it tells which items cannot
be made (an answer, too) and recommends what probably can (0.9; else what was not told unusable).
"eubo" is BoTorch's EUBO with penalties, for a Python that has it: an item that cannot be
made loses to one that can, of two such items that wins which breaks the limits by less; d + 1
random duels come first, and what is recommended is, of the items shown that can be made, that with
the largest posterior mean. A judge who never errs answers the rest. The shortfall is that of
`recommend` from the best value, in shares of the distance from there to the median of the feasible
part; it is infinite where what is recommended cannot be made. In ``results/limits.csv`` are its
median after 10, 20 and so on answers, how often what was recommended could be made, the median
number of answers until the shortfall stays below 5 % (infinite if it does not), and how many of
the items that were asked about could not be made.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint

from skpref._utils import sobol
from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, needs, report

EVERY, NEAR = 10, 0.05


class Problem(NamedTuple):
    """A function to minimise over bounds where all of ``slacks`` are >= 0, and its best value."""

    bounds: list
    value: Callable
    slacks: Callable
    best: float


def _spring(x):
    d, big, n = x
    return np.array(
        [
            big**3 * n / (71785.0 * d**4) - 1.0,
            1.0
            - (4.0 * big**2 - d * big) / (12566.0 * (big * d**3 - d**4))
            - 1.0 / (5108.0 * d**2),
            140.45 * d / (big**2 * n) - 1.0,
            1.0 - (d + big) / 1.5,
        ]
    )


def _beam(x):
    h, length, t, b = x
    moment = 6000.0 * (14.0 + 0.5 * length)
    radius = np.sqrt(0.25 * (length**2 + (h + t) ** 2))
    polar = 2.0 * np.sqrt(2.0) * h * length * (length**2 / 12.0 + 0.25 * (h + t) ** 2)
    first, second = 6000.0 / (np.sqrt(2.0) * h * length), moment * radius / polar
    shear = np.sqrt(first**2 + first * second * length / radius + second**2)
    buckling = 4.013 * 30e6 * np.sqrt(t**2 * b**6 / 36.0) / 196.0
    buckling *= 1.0 - t * np.sqrt(30e6 / (4.0 * 12e6)) / 28.0
    return np.array(
        [
            1.0 - shear / 13600.0,
            1.0 - 504000.0 / (b * t**2) / 30000.0,
            b - h,
            0.25 - 2.1952 / (t**3 * b),
            buckling / 6000.0 - 1.0,
        ]
    )


PROBLEMS = {
    # Gardner et al. 2014; Gramacy et al. 2016
    "gardner": Problem(
        [(0.0, 6.0)] * 2,
        lambda x: np.cos(2.0 * x[0]) * np.cos(x[1]) + np.sin(x[0]),
        lambda x: np.array([-np.cos(x[0]) * np.cos(x[1]) + np.sin(x[0]) * np.sin(x[1]) - 0.5]),
        -1.88875,
    ),
    "gramacy": Problem(
        [(0.0, 1.0)] * 2,
        lambda x: x[0] + x[1],
        lambda x: np.array(
            [
                x[0] + 2.0 * x[1] + 0.5 * np.sin(2.0 * np.pi * (x[0] ** 2 - 2.0 * x[1])) - 1.5,
                1.5 - x @ x,
            ]
        ),
        0.5998,
    ),
    # Mishra 2006
    "bird": Problem(
        [(-10.0, 0.0), (-6.5, 0.0)],
        lambda x: (
            np.sin(x[1]) * np.exp((1.0 - np.cos(x[0])) ** 2)
            + np.cos(x[0]) * np.exp((1.0 - np.sin(x[1])) ** 2)
            + (x[0] - x[1]) ** 2
        ),
        lambda x: np.array([25.0 - (x + 5.0) @ (x + 5.0)]),
        -106.7645,
    ),
    # G6, G8 and G24 of Liang et al. 2006 (CEC)
    "g6": Problem(
        [(13.0, 100.0), (0.0, 100.0)],
        lambda x: (x[0] - 10.0) ** 3 + (x[1] - 20.0) ** 3,
        lambda x: np.array(
            [
                (x[0] - 5.0) ** 2 + (x[1] - 5.0) ** 2 - 100.0,
                82.81 - (x[0] - 6.0) ** 2 - (x[1] - 5.0) ** 2,
            ]
        ),
        -6961.8139,
    ),
    "g8": Problem(
        [(0.1, 10.0)] * 2,
        lambda x: (
            -(np.sin(2.0 * np.pi * x[0]) ** 3)
            * np.sin(2.0 * np.pi * x[1])
            / (x[0] ** 3 * (x[0] + x[1]))
        ),
        lambda x: np.array([x[1] - x[0] ** 2 - 1.0, x[0] - 1.0 - (x[1] - 4.0) ** 2]),
        -0.095825,
    ),
    "g24": Problem(
        [(0.0, 3.0), (0.0, 4.0)],
        lambda x: -x[0] - x[1],
        lambda x: np.array(
            [
                2.0 * x[0] ** 4 - 8.0 * x[0] ** 3 + 8.0 * x[0] ** 2 + 2.0 - x[1],
                4.0 * x[0] ** 4 - 32.0 * x[0] ** 3 + 88.0 * x[0] ** 2 - 96.0 * x[0] + 36.0 - x[1],
            ]
        ),
        -5.508013,
    ),
    # a spring and a beam, of Coello 2000
    "spring": Problem(
        [(0.05, 0.2), (0.25, 1.3), (2.0, 15.0)],
        lambda x: (x[2] + 2.0) * x[1] * x[0] ** 2,
        _spring,
        0.012665,
    ),
    "beam": Problem(
        [(0.1, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)],
        lambda x: 1.10471 * x[0] ** 2 * x[1] + 0.04811 * x[2] * x[3] * (14.0 + x[1]),
        _beam,
        1.724852,
    ),
    # a blend of four parts, of which three are free: linear limits alone
    "blend": Problem(
        [(0.0, 1.0)] * 3,
        lambda x: float(np.sum((x - np.array([0.7, 0.3, 0.2])) ** 2)),
        lambda x: np.array([1.0 - x.sum(), 0.6 - x[0] - x[1], x[2] - 0.5 * x[0]]),
        0.0822222,
    ),
}


def constraints_of(name):
    """Return the limits of a problem, as scipy has them."""
    if name == "blend":
        matrix = [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.5, 0.0, -1.0]]
        return [LinearConstraint(matrix, ub=[1.0, 0.6, 0.0])]
    return [NonlinearConstraint(PROBLEMS[name].slacks, 0.0, np.inf)]


def median_of_feasible(problem):
    """Return the median value of the feasible part of a problem, and its share of the box."""
    low, high = np.array(problem.bounds).T
    points = low + sobol(len(low), np.random.default_rng(0)).random(2**16) * (high - low)
    values = [problem.value(x) for x in points if np.all(problem.slacks(x) >= 0.0)]
    return float(np.median(values)), len(values) / len(points)


def recommended_item(optimizer, method):
    """Return what is recommended; None before anything can be."""
    if not optimizer.n_told_:
        return None
    if method == "unusable":
        try:
            return optimizer.recommend(probability_usable=0.9)
        except ValueError:  # nothing is as probably usable
            pass
    return optimizer.recommend()


def shortfall_of(problem, item, middle):
    """Return how far an item is from the best; infinite where it cannot be made, or is None."""
    if item is None or np.any(problem.slacks(item) < 0.0):
        return np.inf
    return float((problem.value(item) - problem.best) / (middle - problem.best))


def run(name, method, seed, n_answers, middle):
    """Return shortfalls of what is recommended after each answer, and infeasible items asked."""
    problem = PROBLEMS[name]
    limits = constraints_of(name) if method == "limits" else None
    optimizer = PreferenceOptimizer(problem.bounds, constraints=limits, random_state=seed)
    shortfalls, n_outside = [], 0
    while len(shortfalls) < n_answers:
        duel = optimizer.ask()
        feasible = [bool(np.all(problem.slacks(x) >= 0.0)) for x in duel]
        n_outside += 2 - sum(feasible)
        if method == "unusable" and not all(feasible):
            optimizer.tell(duel, unusable=np.flatnonzero(~np.array(feasible)).tolist())
            shortfalls.append(shortfall_of(problem, recommended_item(optimizer, method), middle))
            continue
        if not any(feasible):
            optimizer.skip(duel)
            if n_outside > 10 * n_answers:  # next to nothing is feasible
                return [np.inf] * n_answers, n_outside
            continue
        values = [
            problem.value(x) if good else np.inf for x, good in zip(duel, feasible, strict=True)
        ]
        optimizer.tell(duel, values[0] < values[1])
        shortfalls.append(shortfall_of(problem, recommended_item(optimizer, method), middle))
    return shortfalls, n_outside


def run_peer(name, seed, n_answers, middle):
    """Return what `run` does, of BoTorch's EUBO with penalties."""
    problem = PROBLEMS[name]
    low, high = np.array(problem.bounds).T
    peer = importlib.import_module("_peer_eubo").Peer(len(low), seed)
    random_duels = iter(np.random.default_rng([seed, 0]).random((len(low) + 1, 2, len(low))))
    shortfalls, n_outside = [], 0
    for _ in range(n_answers):
        duel = next(random_duels, None)
        duel = peer.ask() if duel is None else duel
        excess = [-np.minimum(problem.slacks(x), 0.0).sum() for x in low + duel * (high - low)]
        values = [problem.value(x) for x in low + duel * (high - low)]
        n_outside += int(np.count_nonzero(excess))
        first = (excess[0], values[0]) < (excess[1], values[1])
        peer.tell(duel, int(first))
        item = peer.recommend_of(lambda x: np.all(problem.slacks(low + x * (high - low)) >= 0.0))
        item = None if item is None else low + item * (high - low)
        shortfalls.append(shortfall_of(problem, item, middle))
    return shortfalls, n_outside


def answers_needed(shortfalls):
    """Return after how many answers the shortfall stays below 5 %."""
    beyond = np.flatnonzero(np.array(shortfalls) > NEAR)
    n_needed = int(beyond[-1]) + 2 if len(beyond) else 1
    return n_needed if n_needed <= len(shortfalls) else np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=[*PROBLEMS], choices=PROBLEMS)
    methods = ["limits", "rejection", "unusable", "eubo"]
    parser.add_argument("--methods", nargs="+", default=methods[:2], choices=methods)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--answers", type=int, default=30)
    parser.add_argument("--results", type=Path, default=RESULTS / "limits.csv")
    chosen = parser.parse_args()
    if "eubo" in chosen.methods:
        needs("torch", "botorch")
    rows = []
    for name in chosen.problems:
        middle, share = median_of_feasible(PROBLEMS[name])
        for method in chosen.methods:
            runs = [
                run_peer(name, seed, chosen.answers, middle)
                if method == "eubo"
                else run(name, method, seed, chosen.answers, middle)
                for seed in chosen.seeds
            ]
            shortfalls = np.array([each for each, _ in runs])
            row = {"problem": name, "feasible": share, "method": method, "seeds": len(runs)}
            for k in range(EVERY, chosen.answers + 1, EVERY):
                row[f"median_{k}"] = float(np.median(shortfalls[:, k - 1]))
            row["recommended_feasible"] = float(np.mean(np.isfinite(shortfalls[:, -1])))
            row["answers_needed"] = float(np.median([answers_needed(each) for each in shortfalls]))
            row["items_outside"] = sum(n for _, n in runs)
            rows.append(row)
            print(row, flush=True)
    report(rows, chosen.results, arguments=vars(chosen) | {"results": chosen.results.name})


if __name__ == "__main__":
    main()
