"""What the tests of the sampled engines share."""

import numpy as np
from oracles import duel_truth, incidence
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.samplers import minimax_draws


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


def contradicts(small):
    """Whether two answers of a small problem cannot both hold without noise."""
    pairs = set(zip(small.winner, small.loser, strict=True))
    return any((loser, winner) in pairs for winner, loser in pairs)


def truth_of(small, noise_variance):
    """Probabilities of winning: quasi-random points, or independent draws where these fail."""
    found = duel_truth(small, noise_variance)
    if found.probability_error.max() < 5e-4:
        return found.probability
    A = incidence(small.winner, small.loser, len(small.items))
    covariance = A @ small.kernel(small.items) @ A.T + 2.0 * noise_variance * np.eye(len(A))
    v = minimax_draws(covariance, 100_000, np.random.default_rng(0)).draws
    cross = small.kernel(small.first, small.items) - small.kernel(small.second, small.items)
    gain = np.linalg.solve(covariance, A @ cross.T)
    pairs = np.stack([small.first, small.second], axis=1)
    prior = np.array([[1.0, -1.0] @ small.kernel(pair) @ [1.0, -1.0] for pair in pairs])
    left = prior + 2.0 * noise_variance - np.einsum("ij,ji->i", cross @ A.T, gain)
    return ndtr(v @ gain / np.sqrt(left)).mean(axis=0)
