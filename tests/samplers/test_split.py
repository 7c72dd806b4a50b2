"""Split Hamiltonian Monte Carlo against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from tiers_support import thinned

from skpref.samplers import adapt_steps, effective_draws, split_hmc

# Directions of walls in the plane, where they stand, how wide they are, how often they count.
WALLS = {
    "one": ([[1.0]], [0.3], [0.2], [1.0]),
    "sharp": ([[1.0]], [-0.5], [0.02], [1.0]),
    "repeated slope": ([[1.0]], [0.5], [1.0], [9.0]),
    "slit": ([[1.0], [-1.0]], [0.1, -0.5], [0.1, 0.1], [1.0, 3.0]),
    "wedge": ([[1.0, 0.2], [-0.8, 0.6]], [0.2, 0.0], [0.1, 0.3], [1.0, 1.0]),
}


def potential_of(name):
    """ψ = −Σ c log Φ((a·x − w)/s): a normal cut off by soft walls."""
    normal, place, width, count = (np.array(part) for part in WALLS[name])

    def potential(x):
        u = (x @ normal.T - place) / width
        ratio = np.exp(-0.5 * u**2 - log_ndtr(u)) / np.sqrt(2.0 * np.pi)
        return -log_ndtr(u) @ count, -(ratio * count / width) @ normal

    return potential, normal.shape[1]


def moments(potential, d):
    """Means and second moments on a grid."""
    axis = np.linspace(-6.0, 6.0, 4001 if d == 1 else 901)
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    density = np.exp(-0.5 * (grid**2).sum(axis=1) - potential(grid)[0])
    density /= density.sum()
    return density @ grid, density @ grid**2


def test_quadrature_itself():
    potential, _ = potential_of("one")
    density = lambda x: np.exp(-0.5 * x**2 - potential(np.array([[x]]))[0][0])  # noqa: E731
    total, first = (quad(lambda x: x**k * density(x), -8.0, 8.0)[0] for k in (0, 1))  # noqa: B023
    assert moments(potential, 1)[0][0] == pytest.approx(first / total, rel=1e-6)


@pytest.mark.parametrize("name", thinned(WALLS))
def test_agreement_with_quadrature(name):
    potential, d = potential_of(name)
    rng = np.random.default_rng(3)
    adapted = adapt_steps(potential, np.zeros((64, d)), 15, rng=rng, first=10)
    draws = split_hmc(potential, adapted.state, 600, rng=rng, n_steps=adapted.n_steps).draws
    for power, truth in zip((1, 2), moments(potential, d), strict=True):
        means = (draws**power).mean(axis=1)
        error = means.std(axis=0, ddof=1) / 8
        assert np.all(np.abs(means.mean(axis=0) - truth) < 4.0 * error)
        assert np.all(error < 0.02)
    assert effective_draws(draws).min() > 0.2 * 64 * 600


@pytest.mark.slow
def test_a_step_that_is_rejected_half_the_time_is_exact():
    potential, d = potential_of("sharp")
    rng = np.random.default_rng(4)
    start = np.abs(rng.standard_normal((400, d)))
    chains = split_hmc(potential, start, 1000, rng=rng, n_steps=25)
    assert 0.3 < chains.acceptance.mean() < 0.8
    stayed = np.all(chains.draws[:, 1:] == chains.draws[:, :-1], axis=2)
    assert stayed.mean() == pytest.approx(1.0 - chains.acceptance[:, 1:].mean(), abs=0.01)
    means = chains.draws[:, 50:].mean(axis=1)
    truth = moments(potential, d)[0]
    assert np.all(np.abs(means.mean(axis=0) - truth) < 4.0 * means.std(axis=0) / 20)


def test_a_normal_alone_is_never_rejected():
    def nothing(x):
        return np.zeros(len(x)), np.zeros_like(x)

    rng = np.random.default_rng(0)
    chains = split_hmc(nothing, np.full((500, 3), 9.0), 8, rng=rng, n_steps=1)
    np.testing.assert_allclose(chains.acceptance, 1.0, rtol=1e-12)
    last = chains.state
    assert np.all(np.abs(last.mean(axis=0)) < 4.0 / np.sqrt(500))
    assert np.all(np.abs(last.var(axis=0) - 1.0) < 4.0 * np.sqrt(2.0 / 500))


def test_going_on_from_the_state_is_one_long_run():
    potential, d = potential_of("wedge")
    rng = np.random.default_rng(8)
    whole = split_hmc(potential, np.ones((5, d)), 20, rng=rng, n_steps=6)
    rng = np.random.default_rng(8)
    first = split_hmc(potential, np.ones((5, d)), 8, rng=rng, n_steps=6)
    second = split_hmc(potential, first.state, 12, rng=rng, n_steps=6)
    np.testing.assert_array_equal(whole.draws, np.hstack([first.draws, second.draws]))
    np.testing.assert_array_equal(whole.state, second.state)


@pytest.mark.slow
def test_steps_are_found_from_either_side():
    found = {}
    for name in ("repeated slope", "one", "sharp"):
        potential, d = potential_of(name)
        for first in (1, 400):
            rng = np.random.default_rng(1)
            adapted = adapt_steps(potential, np.ones((50, d)), 30, rng=rng, first=first)
            chains = split_hmc(potential, adapted.state, 100, rng=rng, n_steps=adapted.n_steps)
            assert 0.75 < chains.acceptance.mean() < 0.99
            found[name, first] = adapted.n_steps
    assert found["repeated slope", 1] < found["one", 1] < found["sharp", 1]


def test_too_few_steps_are_told():
    potential, d = potential_of("sharp")
    found = {}
    for most in (3, 400):
        rng = np.random.default_rng(1)
        start = np.abs(rng.standard_normal((50, d)))
        found[most] = adapt_steps(potential, start, 30, rng=rng, first=3, most=most)
    assert found[3].n_steps == 3
    assert found[3].acceptance < 0.7 < 0.8 < found[400].acceptance


def test_bad_arguments_are_named():
    potential, rng = potential_of("one")[0], np.random.default_rng(0)
    with pytest.raises(TypeError, match="n_draws must be an integer"):
        split_hmc(potential, np.ones((2, 1)), 2.5, rng=rng, n_steps=3)
    with pytest.raises(ValueError, match=r"n_steps must lie in \[1, inf\], got 0"):
        split_hmc(potential, np.ones((2, 1)), 2, rng=rng, n_steps=0)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        split_hmc(potential, np.ones((2, 1)), 2, rng=0, n_steps=3)
