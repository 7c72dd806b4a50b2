"""What the tests of the sampled engines share."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor


def fitted(X, engine, noise_variance=1e-2, kernel=None, seed=0):
    model = PairwisePreferenceRegressor(
        RBF(0.5) if kernel is None else kernel,
        inference=engine,
        noise_variance=noise_variance,
        optimizer=None,
        random_state=seed,
    )
    return model.fit(X)


def smooth_duels(n_duels, seed=0, noise=0.0):
    """Duels about a smooth utility, every item in one duel."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_duels, 2, 3))
    utility = np.sin(4.0 * X).sum(axis=2) + noise * rng.standard_normal((n_duels, 2))
    return np.where((utility[:, 0] > utility[:, 1])[:, None, None], X, X[:, ::-1])
