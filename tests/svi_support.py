"""Small problems for sparse variational inference."""

import numpy as np
from likelihoods_support import Logistic
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.likelihoods import Probit

KERNEL = ConstantKernel(2.0) * Matern([1.0, 1.5], nu=1.5)
TIES = Probit(0.3, tie_threshold=0.4, order_effect=0.2, order_effect_bounds=(-2.0, 2.0))
LIKELIHOODS = {"probit": Probit(0.3), "ties": TIES, "logistic": Logistic(0.5)}


def answers(likelihood, n=30, n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    more = {}
    if likelihood is TIES:
        more = {"tie": rng.random(n) < 0.3, "order": rng.integers(-1, 2, size=n)}
    weight = rng.uniform(0.5, 3.0, size=n)
    return Comparisons.from_duels(X, first, second, rng.random(n) < 0.5, weight, **more)


def model_of(comparisons, likelihood, engine, kernel=KERNEL):
    return Model(kernel, likelihood, engine).prepare(comparisons, 0)


def utility_duels(n, n_items=200, seed=0, noise=0.01):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_items, 3))
    utility = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 - np.cos(3.0 * X[:, 2])
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    margin = utility[first] - utility[second] + np.sqrt(2 * noise) * rng.normal(size=n)
    return X, np.column_stack([first, second]), (margin > 0).astype(int)
