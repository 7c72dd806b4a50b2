"""Setting of the skew-GP study: test functions, duels and hyperparameters.

As in Takeno, Nomura and Karasuyama (ICML 2023, Appendix F) and the authors' public experiments:
50 random duels with noise of standard deviation 0.01 on each value, an RBF kernel of unit
amplitude with one lengthscale a feature between a tenth and a half of the feature's range, chosen
by Laplace's evidence, σ² = 10⁻⁴; ten trials. Items are scaled to the unit cube.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from common import ROOT, hartmann6
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Laplace

OUTPUT = ROOT / "doc" / "skew_study"
NOISE_VARIANCE = 1e-4
N_DUELS = 50
TRIALS = 10
BOUNDS = (0.1, 0.5)


def ackley(X):
    """Minus the Ackley function on [-32.768, 32.768]^d."""
    x = 65.536 * X - 32.768
    radius = np.sqrt(np.mean(x**2, axis=1))
    waves = np.mean(np.cos(2.0 * np.pi * x), axis=1)
    return 20.0 * np.exp(-0.2 * radius) + np.exp(waves) - 20.0 - np.e


def holder_table(X):
    """Minus the Holder table function on [-10, 10]^2."""
    x, y = (20.0 * X - 10.0).T
    return np.abs(np.sin(x) * np.cos(y) * np.exp(np.abs(1.0 - np.hypot(x, y) / np.pi)))


def branin(X):
    """Minus the Branin function on [-5, 10] x [0, 15]."""
    x, y = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    bowl = (y - 5.1 / (4.0 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0) ** 2
    return -(bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0)


KNOWN = "gp4"  # draws of the prior itself: the only function for which the model is true
FUNCTIONS = {"ackley4": (ackley, 4), "holder": (holder_table, 2), "hartmann6": (hartmann6, 6)}
TITLES = {"ackley4": "Ackley-4", "holder": "Holder table", "hartmann6": "Hartmann-6"}


class Trial(NamedTuple):
    """Duels of one trial, winner first, the pairs asked about, and held-out duels by kind."""

    X: np.ndarray
    asked: np.ndarray
    held_out: dict


def known_kernel():
    """Prior of the functions named `KNOWN`."""
    return RBF(np.full(4, 0.5), "fixed")


def _prior_draw(trial, n_features=4000):
    """A draw of the prior by random Fourier features."""
    rng = np.random.default_rng([trial, 99])
    frequencies = rng.standard_normal((n_features, 4)) / 0.5
    phases = rng.uniform(0.0, 2.0 * np.pi, n_features)
    weights = rng.standard_normal(n_features) * np.sqrt(2.0 / n_features)
    return lambda X: np.cos(X @ frequencies.T + phases) @ weights


def trial_of(name, trial, n_held_out=1000):
    """Training duels, 100 pairs (the training pairs and as many new ones), held-out duels.

    Held-out duels ``(pairs, outcomes)`` are of three kinds: "new" items, new pairs of the items
    "seen" in training, and the training pairs "again", each judged with noise of its own.
    """
    function, d = (_prior_draw(trial), 4) if name == KNOWN else FUNCTIONS[name]
    rng = np.random.default_rng([trial, d])

    def judged(pairs, rng):
        value = function(pairs.reshape(-1, d)).reshape(-1, 2)
        value = value + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(value.shape)
        return pairs, value[:, 0] > value[:, 1]

    pairs, first = judged(rng.random((N_DUELS, 2, d)), rng)
    asked = np.concatenate([pairs, rng.random((N_DUELS, 2, d))])
    held_out = {"new": judged(rng.random((n_held_out, 2, d)), rng)}
    rng = np.random.default_rng([trial, d, 1])
    items = pairs.reshape(-1, d)
    ends = [rng.choice(len(items), 2, replace=False) for _ in range(n_held_out // 2)]
    held_out["seen"] = judged(items[np.array(ends)], rng)
    held_out["again"] = judged(np.tile(pairs, (4, 1, 1)), rng)
    X = np.where(first[:, None, None], pairs, pairs[:, ::-1])
    return Trial(X, asked, held_out)


@lru_cache(maxsize=64)
def kernel_of(name, trial):
    """The kernel that Laplace's evidence chooses."""
    X = trial_of(name, trial).X
    model = PairwisePreferenceRegressor(
        RBF(np.full(X.shape[2], 0.2), BOUNDS),
        inference=Laplace(),
        noise_variance=NOISE_VARIANCE,
        noise_variance_bounds="fixed",
        lengthscale_prior=None,
    )
    return model.fit(X).kernel_


def fit(kernel, X, inference, seed=0, noise_variance=NOISE_VARIANCE):
    """An engine at fixed hyperparameters."""
    model = PairwisePreferenceRegressor(
        kernel,
        inference=inference,
        noise_variance=noise_variance,
        optimizer=None,
        random_state=seed,
    )
    return model.fit(X)


def engines(draws):
    """The engines compared; ``truth`` is exact up to Monte Carlo error."""
    return {"truth": HMC(draws=draws, chains=50), "laplace": Laplace(), "ep": EP()}


def covariance_of(kernel, X):
    """Σ = S + 2σ²I of duels, winner first."""
    winner, loser = X[:, 0], X[:, 1]
    prior = kernel(winner) + kernel(loser) - kernel(winner, loser) - kernel(loser, winner)
    return prior + 2.0 * NOISE_VARIANCE * np.eye(len(X))


def typical_margins(kernel, X):
    """Positive margins to start a sampler from: EP's mean, lifted where it is negative."""
    margin = fit(kernel, X, EP()).decision_function(X)
    return np.maximum(margin, np.sqrt(2.0 * NOISE_VARIANCE))
