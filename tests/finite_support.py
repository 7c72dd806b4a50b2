"""Random kernels of finitely many features, and answers of every kind between items for them."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref.duels import Comparisons
from skpref.kernels import Identity, Linear, OnColumns
from skpref.likelihoods import DUEL, GRADED, TIE, GradedProbit, Probit

N_COLUMNS = 4  # two categories, then two numbers


def random_leaf(rng):
    """Of some columns, with hyperparameters free or fixed."""
    kind, bounds = rng.integers(6), "fixed" if rng.random() < 0.3 else (1e-3, 1e3)
    if kind == 0:
        return OnColumns(Identity(), [int(rng.integers(2))])
    if kind == 1:
        return OnColumns(Identity(), [1, 0])
    if kind == 2:
        return ConstantKernel(rng.uniform(0.1, 2.0), bounds)
    columns = rng.permutation(N_COLUMNS)[: rng.integers(1, 3)].tolist()
    if kind == 3:
        lengths = rng.uniform(0.5, 2.0, size=rng.choice([1, len(columns)]))
        return OnColumns(Linear(lengths, bounds, rng.normal(size=len(columns))), columns)
    return OnColumns(DotProduct(rng.uniform(0.1, 2.0), bounds), columns)


def random_kernel(rng, depth=3):
    """A tree of sums, products and squares; margins between `items` have a variance under it."""
    if depth == 0:
        return random_leaf(rng)
    below = depth - 1
    kind = rng.integers(5)
    if kind < 2:
        return random_kernel(rng, below) + random_kernel(rng, below)
    if kind == 2:
        return random_kernel(rng, below) * random_leaf(rng)
    if kind == 3:
        return ConstantKernel(rng.uniform(0.1, 2.0)) * random_kernel(rng, below)
    return OnColumns(DotProduct(rng.uniform(0.1, 2.0)), [2, 3]) ** 2 + random_kernel(rng, below)


def random_items(rng, n=30):
    """Two categories, and two numbers a row; some items differ in the numbers alone."""
    categories = [rng.integers(6, size=n), rng.integers(3, size=n)]
    return np.column_stack([*categories, rng.normal(size=(n, 2))])


LIKELIHOODS = {
    "duels": Probit(0.3),
    "weights": Probit(0.3, order_effect=0.2, order_effect_bounds=(-2.0, 2.0)),
    "ties": Probit(0.3, tie_threshold=0.3),
    "grades": GradedProbit(0.3, grade_thresholds=(0.6,), tie_threshold=0.2),
    "choices": Probit(0.3, tie_threshold=0.2),
}


def random_answers(rng, kind, n=45):
    """Answers of one of the kinds of `LIKELIHOODS`; of choices, some duels among them."""
    items = random_items(rng)
    if kind == "choices":
        shown = np.array([rng.permutation(len(items))[:4] for _ in range(n // 2)])
        rank = np.array([rng.permutation([1, 2, 2, 0]) for _ in shown])
        rank[:3] = [1, 2, 3, 4]
        rank[3:9], shown[3:9, 2:] = [1, 2, 0, 0], -1
        shown[9], rank[9] = shown[8], rank[8]
        return Comparisons.from_ranks(items, shown, rank, rng.integers(1, 3, size=len(shown)))
    first, second = rng.integers(len(items), size=(2, n))
    second[:5], first[:5] = second[5:10], first[5:10]  # given more than once
    kinds = np.full(n, DUEL)
    if kind == "ties":
        kinds = rng.choice([DUEL, TIE], size=n)
    elif kind == "grades":
        kinds = rng.choice([TIE, GRADED + 1, GRADED + 2], size=n)
    weight = rng.choice([0.5, 1.0, 2.0], size=n) if kind == "weights" else None
    won = rng.random(n) < 0.5
    order = rng.integers(-1, 2, size=n)
    found = Comparisons.from_duels(items, first, second, won, weight, kind=kinds, order=order)
    object.__setattr__(found, "ordered", LIKELIHOODS[kind].uses_order)
    return found
