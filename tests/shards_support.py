"""What the tests of shards share: answers, likelihoods, and one that ends a process on a sign."""

import os
import signal
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.inference import SVI
from skpref.inference import _workers as _shards
from skpref.likelihoods import TIE, Probit

KERNEL = ConstantKernel(2.0) * Matern([1.0, 1.5], nu=1.5)
TIES = Probit(0.3, tie_threshold=0.4, order_effect=0.2)


def answers(n, n_items, likelihood=TIES, seed=0):
    """Weighed answers, with ties, orders and offsets if the likelihood is `TIES`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    more = {}
    if likelihood is TIES:
        more = {"kind": TIE * (rng.random(n) < 0.3), "order": rng.integers(-1, 2, size=n)}
        more["offset"] = np.random.default_rng(seed + 1).normal(size=(n, 2))
    won = X[first, 0] + rng.normal(size=n) > X[second, 0]
    return Comparisons.from_duels(X, first, second, won, rng.uniform(0.5, 3.0, size=n), **more)


def model_of(comparisons, likelihood, engine):
    """A model whose engine has its points."""
    return Model(KERNEL, likelihood, engine).prepare(comparisons, 0)


def duels(n=600, n_items=80):
    """Items, pairs, who won."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(n_items, 3))
    utility = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    return (
        X,
        np.column_stack([first, second]),
        utility[first] + rng.normal(size=n) > utility[second],
    )


def regressor(X, n_jobs=None, **options):
    """A regressor with eighteen points whose hyperparameters are fixed."""
    engine = SVI(18, n_jobs=n_jobs, **options)
    return PairwisePreferenceRegressor(
        RBF(0.5), inference=engine, items=X, optimizer=None, noise_variance=0.5, random_state=0
    )


def small_shards(rows=50):
    """Make shards of so many rows in this process."""
    _shards._ROWS = rows


def killed_where_told(order, maker):
    """Kill this process if a file says so and it is not the maker's."""
    if os.getpid() != maker:
        try:
            Path(order).rename(f"{order}.{os.getpid()}")  # only one obeys
        except FileNotFoundError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Probit):
    """The probit, which kills a process other than its maker's when a file says so."""

    def __init__(self, noise_variance=0.3, noise_variance_bounds="fixed", order="", maker=0):
        super().__init__(noise_variance, noise_variance_bounds)
        self.order, self.maker = order, maker

    def expected(self, mean, variance, noise, answers):
        killed_where_told(self.order, self.maker)
        return super().expected(mean, variance, noise, answers)
