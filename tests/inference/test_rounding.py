"""Engines at the rounding floor have converged: the last bits of a covariance decide nothing.

Covariances are rounded anew here, as another processor's exponential or matrix product would.
"""

import numpy as np
import pytest
from core_support import SPACES, random_duels, won
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from skpref.inference import EP, Laplace, Problem
from skpref.likelihoods import Probit

ENGINES = [Laplace(), EP()]
EPS = np.finfo(np.float64).eps


def rounded_anew(K, seed):
    """Every entry moved by up to one unit in its last place, symmetrically."""
    noise = np.random.default_rng(seed).uniform(-1.0, 1.0, K.shape)
    return K * (1.0 + EPS * (np.tril(noise) + np.tril(noise, -1).T))


def run(engine, K, comparisons, noise_variance, space):
    made = SPACES[space](K, comparisons.rows.margins)
    return engine.run(Problem(made, comparisons, Probit(noise_variance)))


def near_identical(n=200):
    rng = np.random.default_rng(0)
    items = np.array([1.0, 2.0]) + 1e-9 * rng.standard_normal((n, 2))
    first = rng.integers(n, size=n)
    second = (first + rng.integers(1, n, size=n)) % n
    better = items[first, 0] > items[second, 0]
    return won(items, np.where(better, first, second), np.where(better, second, first))


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0, nu=1.5), DotProduct(1.0)], ids=str)
@pytest.mark.parametrize("noise_variance", [1e-2, 1e-4, 1e-6])
def test_a_covariance_of_nothing_but_rounding(engine, kernel, noise_variance):
    """The prior of these margins is 1e-18, its rounding 1e-16 and of either sign."""
    seen = near_identical()
    K = kernel(seen.items)
    for seed in range(3):
        for space in ("margins", "items"):
            found = run(engine, rounded_anew(K, seed), seen, noise_variance, space)
            assert found.converged
            assert found.n_iter < 50
            scale = np.sqrt(2.0 * noise_variance)
            assert np.max(np.abs(found.conditioned.mean)) < 1e-6 * scale


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize("amplitude", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("space", ["margins", "items"])
def test_digits_that_the_amplitude_leaves(engine, amplitude, space):
    """A residual of 5e-9 is out of reach; what is reached is the same whatever the last bits."""
    for seed in range(2):
        seen = won(*random_duels(seed, 8, 60, noise=1.0))
        K = amplitude * RBF(1.0)(seen.items)
        found = [run(engine, rounded_anew(K, bits), seen, 1e-2, space) for bits in range(3)]
        assert all(one.converged for one in found)
        mean = np.array([one.conditioned.mean for one in found])
        deviation = np.sqrt([one.conditioned.variance for one in found]).mean(axis=0)
        # Rounding of the covariance, times its conditioning, in posterior deviations.
        assert np.max(np.ptp(mean, axis=0) / deviation) < max(1e-9, 1e3 * EPS * amplitude / 1e-2)


@pytest.mark.parametrize("engine", [Laplace(max_iter=2), EP(damping=0.99, max_iter=40)], ids=str)
def test_slow_is_not_at_the_floor(engine):
    seen = won(*random_duels(0, 12, 60))
    found = run(engine, RBF(0.8)(seen.items), seen, 0.05, "margins")
    assert not found.converged
    assert found.residual > 1e-6


@pytest.mark.slow
def test_digits_beyond_a_double_are_told():
    seen = won(*random_duels(0, 20, 300, noise=1.0))
    K = 1e10 * RBF(3.0)(seen.items)
    for engine in ENGINES:
        assert not run(engine, K, seen, 1e-6, "margins").converged


@pytest.mark.parametrize("space", ["margins", "items"])
def test_bounds_hold_for_covariances_rounded_anew(space):
    """What a covariance in single precision moves, against the bounds at its unit."""
    ratio = np.finfo(np.float32).eps / EPS
    for seed in range(5):
        seen = won(*random_duels(seed, 20, 60))
        K = RBF(0.8)(seen.items)
        exact = SPACES[space](K, seen.rows.margins)
        coarse = SPACES["margins"](K.astype(np.float32).astype(np.float64), seen.rows.margins)
        dual = np.random.default_rng(seed).standard_normal(exact.n_margins)
        errors = exact.rounding(dual)
        moved = np.abs(coarse.S @ dual - exact.times(dual))
        assert np.all(moved <= ratio * errors.mean)
        moved = np.abs(coarse.variance - exact.variance)
        assert np.all(moved <= ratio * errors.variance)
        moved = 0.5 * abs(dual @ (coarse.S @ dual - exact.times(dual)))
        assert moved <= ratio * exact.energy_error(dual)
