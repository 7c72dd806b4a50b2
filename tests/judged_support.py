"""Sixty noisy duels of twelve items with two features, and a model that learns nothing."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor

N_ITEMS = 12
ENGINE_NAMES = ["laplace", "ep"]


def utility(items):
    return np.sin(2.0 * items[:, 0]) + 0.5 * items[:, 1]


def make_items():
    return np.random.default_rng(0).uniform(-1.5, 1.5, (N_ITEMS, 2))


def make_duels(items):
    """60 noisy duels of 12 items."""
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in range(60)])
    noisy = utility(items)[pairs] + 0.3 * rng.standard_normal(pairs.shape)
    return items[pairs], (noisy[:, 0] > noisy[:, 1]).astype(int)


def fixed_model(name):
    """Without learning."""
    return PairwisePreferenceRegressor(RBF(1.0), inference=name, noise_variance=0.1, optimizer=None)
