"""Duels of users whose tastes differ, drawn from the model itself."""

from typing import NamedTuple

import numpy as np

N_ITEMS = 6


class Study(NamedTuple):
    """Items and duels (rows of the table), and who answered."""

    items: np.ndarray
    pairs: np.ndarray
    X: np.ndarray
    y: np.ndarray
    users: np.ndarray


def make_study(n_users=8, n_each=10, *, taste=1.0, noise=0.1, seed=0, n_features=2):
    """Random duels between six items; utilities are sines of their features."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.5, 1.5, (N_ITEMS, n_features))
    common = np.sin(2.0 * items[:, 0]) + 0.5 * items[:, 1]
    own = np.sqrt(taste) * rng.standard_normal((n_users, 2)) @ np.stack([items[:, 0], items[:, 1]])
    users = np.repeat(np.arange(n_users), n_each)
    pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in users])
    seen = (common + own)[users[:, None], pairs] + noise * rng.standard_normal(pairs.shape)
    return Study(items, pairs, items[pairs], (seen[:, 0] > seen[:, 1]).astype(int), users)
