"""How many bits it takes to say where the best is, and how many answers these are at least.

    python benchmarks/optimize/bits_needed.py [--set held-out] [--within 0.01] [--table]

Whoever recommends an item within 1 % of the range of the best knows in which part of the space it
lies. If that part is a share v of the space, and may be anywhere, this takes log2(1 / v) bits. An
answer of k possible values tells log2(k) at most: a duel 1, the best of four 2, a line of nine
points 3.2, a plane of 5 x 5 points 4.6. So fewer answers than the quotient are not enough in the
mean over the places where that part may be, whatever is asked. ``question_forms.py`` has the bits
that answers do tell.

The share is found by importance sampling. Climbs from the best of 2¹⁵ points spread over the cube
give peaks that are within 1 % of the best one; random walks within what is as good give each one's
extent. Then half of the points that are drawn are of the whole cube, and half of ellipsoids around
these peaks. Of a pool the share is counted. ``error`` is the standard error of the bits. A
row a problem goes to ``results/bits_needed.csv``.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from scipy.stats import qmc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_problems import SETS, make_problems, spread_starts
from common import RESULTS, few, report

FORMS = {"duel": 2, "best of 4": 4, "line of 9": 9, "plane of 5 x 5": 25}
_WALKERS, _STEPS, _POINTS, _WIDER = 100, 300, 2**14, 1.5


class Regret:
    """Regret on the unit cube; the last two coordinates of a mixed space fall into cells."""

    def __init__(self, problem):
        self._problem = problem
        self.n_cells = np.array(
            [problem.integers, problem.categories] if problem.categories else []
        )
        self.n_numbers = problem.n_dimensions - len(self.n_cells)

    def __call__(self, U):
        values = self._problem.utility(self._problem.rows(self._problem._items(U)))
        return (self._problem.optimum - values) / self._problem.range

    def cells(self, U):
        """Which cell the last coordinates are in."""
        return np.minimum((U[:, self.n_numbers :] * self.n_cells).astype(int), self.n_cells - 1)

    def climbed(self, u):
        """Where a climb over the numbers ends."""
        row = self._problem.rows(self._problem._items(u[None]))[0]
        return np.r_[self._problem.climb(row)[: self.n_numbers], u[self.n_numbers :]]


def peaks(regret, d, within):
    """Points of the cube where a climb ends near the best, each another one."""
    U = qmc.Sobol(d, scramble=False).random(2**15)
    found = []
    for end in map(regret.climbed, spread_starts(U, -regret(U))):
        near = regret(end[None])[0] <= within
        if near and all(np.abs(end - other).max() > 0.01 for other in found):
            found.append(end)
    return np.array(found)


def extent(regret, peak, within, rng):
    """Mean and covariance of the numbers of what is near the best around a peak."""
    n = regret.n_numbers
    U = np.tile(peak, (_WALKERS, 1))
    seen = []
    for step in range(_STEPS):
        moved = U.copy()
        if step < 100 or step % 2:
            size = 10.0 ** rng.uniform(-4.0, -0.3, (_WALKERS, 1))
            moved[:, :n] += size * rng.standard_normal((_WALKERS, n))
        else:  # along the difference of two others
            i, j = rng.integers(_WALKERS, size=(2, _WALKERS))
            moved[:, :n] += rng.standard_normal((_WALKERS, 1)) * (U[i, :n] - U[j, :n])
        inside = np.all((moved >= 0.0) & (moved < 1.0), axis=1)
        inside[inside] = regret(moved[inside]) <= within
        U[inside] = moved[inside]
        if step >= 100:
            seen.append(U[:, :n].copy())
    seen = np.concatenate(seen)
    return seen.mean(axis=0), np.cov(seen.T).reshape(n, n) + 1e-16 * np.eye(n)


def share(problem, within, seed):
    """The share of the space that is near the best, and its relative standard error."""
    if problem.pool is not None:
        values = problem.utility(problem.pool)
        return np.mean(problem.optimum - values <= within * problem.range), 0.0
    rng, regret, d = np.random.default_rng(seed), Regret(problem), problem.n_dimensions
    n, cells = regret.n_numbers, np.prod(regret.n_cells)
    parts = []
    for peak in peaks(regret, d, within):
        mean, covariance = extent(regret, peak, within, rng)
        # A uniform distribution on an ellipsoid of radius r has the covariance r² / (n + 2).
        root = _WIDER * np.sqrt(n + 2.0) * np.linalg.cholesky(covariance)
        ball = 0.5 * n * np.log(np.pi) - gammaln(0.5 * n + 1.0)
        density = cells / np.exp(ball + np.linalg.slogdet(root)[1])
        parts.append((mean, root, density, regret.cells(peak[None])))
    shares = np.r_[0.5, np.full(len(parts), 0.5 / len(parts))]
    of = rng.choice(len(shares), _POINTS, p=shares)
    U = rng.random((_POINTS, d))
    for k, (mean, root, _, cell) in enumerate(parts, 1):
        here = np.flatnonzero(of == k)
        z = rng.standard_normal((len(here), n))
        z *= rng.random((len(here), 1)) ** (1.0 / n) / np.linalg.norm(z, axis=1, keepdims=True)
        U[here, :n] = mean + z @ root.T
        if len(regret.n_cells):
            U[here, n:] = (cell + U[here, n:]) / regret.n_cells
    U = U[np.all((U >= 0.0) & (U < 1.0), axis=1)]
    U = U[regret(U) <= within]
    density = np.full(len(U), shares[0])
    for weight, (mean, root, value, cell) in zip(shares[1:], parts, strict=True):
        inside = np.linalg.norm(np.linalg.solve(root, (U[:, :n] - mean).T), axis=0) <= 1.0
        density += weight * value * (inside & np.all(regret.cells(U) == cell, axis=1))
    each = np.zeros(_POINTS)
    each[: len(U)] = 1.0 / density
    return each.mean(), each.std() / np.sqrt(_POINTS) / each.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="held-out", dest="which")
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    path = RESULTS / "bits_needed.csv"
    if options.table:
        with path.open(newline="") as handle:
            rows = list(csv.DictReader(handle))
    else:
        rows = []
        for problem in make_problems(options.which)[: few(None, 1)]:
            v, error = share(problem, options.within, options.seed)
            row = {"set": options.which, "problem": problem.name, "group": problem.group}
            row |= {"dimensions": problem.n_dimensions, "bits": round(-float(np.log2(v)), 2)}
            rows.append(row | {"error": round(float(error / np.log(2.0)), 2)})
        report(rows, path, within=options.within, seed=options.seed)
    for dimensions in ("all", *sorted({int(row["dimensions"]) for row in rows})):
        bits = [float(row["bits"]) for row in rows if dimensions in ("all", int(row["dimensions"]))]
        low, middle, high = np.quantile(bits, [0.25, 0.5, 0.75])
        text = "  ".join(f"{form} {middle / np.log2(k):.1f}" for form, k in FORMS.items())
        print(
            f"{dimensions!s:>4} dimensions, {len(bits)} problems: {middle:.1f} bits "
            f"({low:.1f} to {high:.1f}), answers at least: {text}"
        )


if __name__ == "__main__":
    main()
