"""Problems of preferential optimisation made from seeds: two development sets and a held-out set.

Nobody can tune on single functions with these. There are four groups.

- "draw": draws of Gaussian processes (RBF, Matérn-3/2 and -5/2, and a sum of a long and a short
  lengthscale) of 2 to 8 dimensions, by random features.
- "function": published functions, warped in each dimension, rotated, shifted and folded back.
- "mixed": draws over numbers, an integer and a category.
- "pool": draws over 4 000 items of 11 features, plus a linear part.

The optimum is the best of a long search. Regret is in shares of the range (the optimum less the
smallest of 2¹⁴ values).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.optimize import minimize
from scipy.stats import qmc

SETS = {"development": 1, "held-out": 2, "further": 11}
# The published functions that a development set has.
_DEVELOPED = {
    "development": ("branin", "peaks", "hartmann-3", "hartmann-6", "shekel", "peaks"),
    "further": (
        *("branin", "peaks", "hartmann-3", "hartmann-6", "shekel", "peaks"),
        *("branin", "hartmann-3", "shekel", "hartmann-6", "peaks", "branin"),
    ),
}
# Numbers of mixed spaces and of pools.
_MIXED = {"development": 4, "held-out": 12, "further": 8}
_POOLS = {"development": 2, "held-out": 4, "further": 0}
# Held-out problems that peers run, too: of the groups "draw" and "function", 2 to 6 dimensions and
# names that come once, every third from the first on. Chosen by this rule before any peer had run.
SUBSET = (
    "draw 0 rbf 2",
    "draw 3 sum 2",
    "draw 6 matern32 2",
    "draw 9 matern52 3",
    "draw 12 rbf 4",
    "draw 15 sum 4",
    "draw 18 matern32 6",
    "function styblinski-4",
    "function rosenbrock-3",
    "function griewank-3",
    "function hartmann-3",
    "function langermann",
)
_FEATURES = 1000
_STEP = 1e-6
# Climbs that look for the optimum: so many, from the best of so many points, so far apart.
_CLIMBS, _BEST, _APART = 60, 4000, 0.03


def spread_starts(points: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """The points of the largest values, without those near one before, to climb from."""
    starts: list[np.ndarray] = []
    for index in np.argsort(-values, kind="stable")[:_BEST]:
        if len(starts) == _CLIMBS:
            break
        if all(np.abs(points[index] - other).max() > _APART for other in starts):
            starts.append(points[index])
    return starts


@dataclass(eq=False)
class Problem:
    """A utility over a space or a pool, to be maximised.

    Attributes
    ----------
    name, group : str
    n_dimensions : int
    utility : callable
        (n, m) rows of the unit cube → (n,).
    integers : int
        Values of the integer, which is the last number; 0: none.
    categories : int
        Number of categories, one-hot at the end of a row; 0: none.
    pool : ndarray of shape (n, d) or None
    """

    name: str
    group: str
    n_dimensions: int
    utility: Callable = field(repr=False)
    integers: int = 0
    categories: int = 0
    pool: np.ndarray | None = field(default=None, repr=False)

    @property
    def arguments(self) -> dict[str, Any]:
        """What an optimizer is made with."""
        if self.pool is not None:
            return {"candidates": self.pool}
        if not self.categories:
            return {"space": np.tile([0.0, 1.0], (self.n_dimensions, 1))}
        numbers = {f"x{k}": (0.0, 1.0) for k in range(self.n_dimensions - 2)}
        kinds = [f"kind {k}" for k in range(self.categories)]
        return {"space": {**numbers, "n": (1, self.integers), "kind": kinds}}

    def rows(self, items: Any) -> np.ndarray:
        """Items as an optimizer shows them → rows of the unit cube."""
        if not self.categories:
            return np.atleast_2d(np.asarray(items, dtype=np.float64))
        found = np.zeros((len(items), self.n_dimensions - 1 + self.categories))
        for row, item in zip(found, items, strict=True):
            row[: self.n_dimensions - 2] = [item[f"x{k}"] for k in range(self.n_dimensions - 2)]
            row[self.n_dimensions - 2] = (item["n"] - 1) / (self.integers - 1)
            row[self.n_dimensions - 1 + int(item["kind"].split()[1])] = 1.0
        return found

    def values(self, items: Any) -> np.ndarray:
        """Utilities of items (n,)."""
        return self.utility(self.rows(items))

    def random_items(self, rng: np.random.Generator, n: int) -> Any:
        """Items drawn evenly."""
        if self.pool is not None:
            return self.pool[rng.choice(len(self.pool), n, replace=False)]
        return self._items(rng.random((n, self.n_dimensions)))

    def _items(self, U):
        if not self.categories:
            return U
        d = self.n_dimensions
        return [
            {f"x{k}": float(u[k]) for k in range(d - 2)}
            | {
                "n": 1 + min(int(u[d - 2] * self.integers), self.integers - 1),
                "kind": f"kind {min(int(u[d - 1] * self.categories), self.categories - 1)}",
            }
            for u in U
        ]

    @cached_property
    def _searched(self):
        """Optimum, its row, and the range."""
        if self.pool is not None:
            values = self.utility(self.pool)
            best = int(np.argmax(values))
            return float(values[best]), self.pool[best], float(np.ptp(values))
        U = qmc.Sobol(self.n_dimensions, scramble=False).random(2**15)
        rows = self.rows(self._items(U))
        values = self.utility(rows)
        ends = [self.climb(start) for start in spread_starts(rows, values)]
        row = max(ends, key=lambda end: self.utility(end[None])[0])
        value = float(self.utility(row[None])[0])
        return value, row, value - float(values[: 2**14].min())

    def climb(self, row: np.ndarray) -> np.ndarray:
        """The local optimum that a climb over the numbers ends in; of a pool the row itself."""
        if self.pool is not None:
            return row
        n_free = self.n_dimensions - (2 if self.categories else 0)
        steps = _STEP * np.eye(n_free)

        def negative(x):
            near = np.concatenate([x[None], x + steps, x - steps])
            rows = np.tile(row, (len(near), 1))
            rows[:, :n_free] = near
            values = self.utility(rows)
            slope = (values[1 : 1 + n_free] - values[1 + n_free :]) / (2 * _STEP)
            return -values[0], -slope

        best, value = row, self.utility(row[None])[0]
        found = minimize(
            negative, row[:n_free], jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * n_free
        )
        simplex = minimize(
            lambda x: negative(np.clip(x, 0.0, 1.0))[0],
            found.x,
            method="Nelder-Mead",
            options={"maxiter": 100 * n_free, "xatol": 1e-7, "fatol": 1e-10},
        )
        for x in (found.x, np.clip(simplex.x, 0.0, 1.0)):
            end = row.copy()
            end[:n_free] = x
            if self.utility(end[None])[0] > value:
                best, value = end, self.utility(end[None])[0]
        return best

    @property
    def optimum(self) -> float:
        """The largest utility known."""
        return self._searched[0]

    @property
    def range(self) -> float:
        """The optimum less the smallest of 2¹⁴ values."""
        return self._searched[2]

    def regret(self, item: Any) -> float:
        """How far an item is from the optimum, in shares of the range."""
        return (self.optimum - float(self.values([item])[0])) / self.range

    def rank(self, item: Any) -> int:
        """How many items of a pool are better."""
        return int(np.sum(self.utility(self.pool) > self.values([item])[0]))

    def is_lesser(self, item: Any) -> bool:
        """Whether a climb from the item ends more than 1 % of the range below the optimum."""
        end = self.climb(self.rows([item])[0])
        return bool(self.optimum - self.utility(end[None])[0] > 0.01 * self.range)

    def n_bumps(self) -> int:
        """Local optima of a function of two dimensions, on a grid of 200 × 200."""
        axis = np.linspace(0.0, 1.0, 200)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        values = np.pad(self.utility(grid).reshape(200, 200), 1, constant_values=-np.inf)
        middle = values[1:-1, 1:-1]
        others = [
            values[1 + i : 201 + i, 1 + j : 201 + j]
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if i or j
        ]
        return int(np.all([middle > other for other in others], axis=0).sum())


# --- draws ----------------------------------------------------------------------------------


def _draw(rng, scales, kind):
    """A draw of a stationary Gaussian process by random features."""
    n_columns = len(scales)
    frequency = rng.standard_normal((_FEATURES, n_columns))
    if kind.startswith("matern"):
        twice = {"matern32": 3, "matern52": 5}[kind]
        frequency /= np.sqrt(rng.chisquare(twice, (_FEATURES, 1)) / twice)
    frequency /= scales
    phase = rng.uniform(0.0, 2 * np.pi, _FEATURES)
    weight = rng.standard_normal(_FEATURES) * np.sqrt(2.0 / _FEATURES)

    def utility(rows):
        blocks = (rows[k : k + 2048] for k in range(0, len(rows), 2048))
        return np.concatenate([np.cos(block @ frequency.T + phase) @ weight for block in blocks])

    return utility


def _of_draw(rng, n_columns, kind, low, high):
    scales = np.exp(rng.uniform(np.log(low), np.log(high), n_columns)) * np.sqrt(n_columns / 2)
    if kind != "sum":
        return _draw(rng, scales, kind)
    long, short = _draw(rng, 2.0 * scales, "rbf"), _draw(rng, 0.5 * scales, "matern52")
    return lambda rows: long(rows) + 0.4 * short(rows)


# --- published functions ----------------------------------------------------------------------


def _camel(X):
    x, y = X.T
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def _rastrigin(X):
    return -(X**2 - 3.0 * np.cos(2 * np.pi * X)).sum(axis=1)


def _styblinski(X):
    return -0.5 * (X**4 - 16 * X**2 + 5 * X).sum(axis=1)


def _michalewicz(X):
    place = np.arange(1, X.shape[1] + 1)
    return (np.sin(X) * np.sin(place * X**2 / np.pi) ** 10).sum(axis=1)


def _rosenbrock(X):
    valley = 100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2
    return -np.log1p(valley.sum(axis=1))


def _peaks(X):
    x, y = X.T
    first = 3 * (1 - x) ** 2 * np.exp(-(x**2) - (y + 1) ** 2)
    return (
        first
        - 10 * (x / 5 - x**3 - y**5) * np.exp(-(x**2) - y**2)
        - np.exp(-((x + 1) ** 2) - y**2) / 3
    )


def _shekel(X):
    centres = np.array([[4, 4, 4, 4], [1, 1, 1, 1], [8, 8, 8, 8], [6, 6, 6, 6], [3, 7, 3, 7]])
    width = np.array([0.1, 0.2, 0.2, 0.4, 0.4]) * 20
    return (1.0 / (((X[:, None] - centres) ** 2).sum(axis=2) + width)).sum(axis=1)


def _griewank(X):
    place = np.sqrt(np.arange(1, X.shape[1] + 1))
    return -((X**2).sum(axis=1) / 4000 - np.cos(X / place).prod(axis=1))


def _dixon_price(X):
    place = np.arange(2, X.shape[1] + 1)
    steps = (place * (2 * X[:, 1:] ** 2 - X[:, :-1]) ** 2).sum(axis=1)
    return -np.log1p((X[:, 0] - 1) ** 2 + steps)


def _alpine(X):
    return -np.abs(X * np.sin(X) + 0.1 * X).sum(axis=1)


# Name: formula, dimensions, low, high.
_FUNCTIONS = {
    "six-hump camel": (_camel, 2, -2.0, 2.0),
    "peaks": (_peaks, 2, -3.0, 3.0),
    "rastrigin": (_rastrigin, 2, -1.5, 1.5),
    "styblinski-2": (_styblinski, 2, -5.0, 5.0),
    "styblinski-4": (_styblinski, 4, -5.0, 5.0),
    "michalewicz-2": (_michalewicz, 2, 0.0, np.pi),
    "michalewicz-5": (_michalewicz, 5, 0.0, np.pi),
    "rosenbrock-3": (_rosenbrock, 3, -2.0, 2.0),
    "rosenbrock-6": (_rosenbrock, 6, -2.0, 2.0),
    "shekel": (_shekel, 4, 0.0, 10.0),
    "griewank-3": (_griewank, 3, -6.0, 6.0),
    "dixon-price-4": (_dixon_price, 4, -2.0, 2.0),
    "alpine-3": (_alpine, 3, 0.0, 10.0),
}


def _changed(rng, formula, n, low, high):
    """A function in other coordinates: warped, turned, shifted and folded into its box."""
    a, b = np.exp(0.2 * rng.standard_normal((2, n)))
    skew = np.triu(0.25 * rng.standard_normal((n, n)), 1)
    turn = expm(skew - skew.T)
    shift = rng.uniform(-0.15, 0.15, n)
    flip = rng.random(n) < 0.5

    def utility(rows):
        U = 1.0 - (1.0 - np.clip(rows, 0.0, 1.0) ** a) ** b  # Kumaraswamy's distribution
        U = np.where(flip, 1.0 - U, U)
        U = (U - 0.5) @ turn.T + 0.5 + shift
        U = 1.0 - np.abs(1.0 - np.mod(U, 2.0))  # folded at the faces
        return formula(low + U * (high - low))

    return utility


# --- sets -----------------------------------------------------------------------------------


def _functions(rng, names, seen):
    from skpref.datasets import load_test_function

    for name in names:
        if name in _FUNCTIONS:
            formula, n, low, high = _FUNCTIONS[name]
        else:
            formula = load_test_function(name)
            low, high = formula.bounds.T
            n = len(low)
        seen[name] += 1
        which = f"function {name}" + (f" {seen[name]}" if seen[name] > 1 else "")
        yield Problem(which, "function", n, _changed(rng, formula, n, low, high))


def make_problems(which: str) -> list[Problem]:
    """All problems of a set: "development", "further" (to develop on, too) or "held-out"."""
    rng = np.random.default_rng([7, SETS[which]])
    held_out, small = which == "held-out", which == "development"
    problems = []
    kinds = ("rbf", "matern52", "matern32", "sum")
    for n in (2, 4, 6) if small else (2, 2, 3, 4, 6, 8):
        for kind in rng.permutation(kinds)[:3] if small else kinds:
            low, high = (0.12, 0.35) if n == 2 else (0.2, 0.6)
            name = f"draw {len(problems)} {kind} {n}"
            problems.append(Problem(name, "draw", n, _of_draw(rng, n, kind, low, high)))
    held = (*_FUNCTIONS, "branin", "hartmann-3", "hartmann-4", "hartmann-6", "langermann", "levy-4")
    names = held if held_out else _DEVELOPED[which]
    seen: Counter = Counter()
    problems.extend(_functions(rng, names, seen))
    if held_out:
        problems.extend(
            _functions(rng, ("peaks", "six-hump camel", "styblinski-2", "branin"), seen)
        )
    for k in range(_MIXED[which]):
        n, categories = (3, 4, 5, 7)[k % 4], (3, 4, 2, 3)[k % 4]
        utility = _of_draw(rng, n - 1 + categories, kinds[k % 3], 0.25, 0.6)
        made = Problem(f"mixed {k} {n}", "mixed", n, utility, integers=8, categories=categories)
        problems.append(made)
    for k in range(_POOLS[which]):
        pool = rng.random((4000, 11))
        bends, slope = _of_draw(rng, 11, kinds[k % 3], 0.3, 0.8), rng.standard_normal(11)
        utility = _with_slope(bends, slope)
        problems.append(Problem(f"pool {k}", "pool", 11, utility, pool=pool))
    return problems


def _with_slope(bends, slope):
    return lambda rows: bends(rows) + rows @ slope
