import numpy as np
import pytest
from scipy.integrate import quad
from tiers_support import thinned

from skpref.samplers import _walls, effective_draws, gibbs, hmc, liness, minimax_draws

SAMPLERS = {"hmc": hmc, "gibbs": gibbs, "liness": liness}
MATRICES = {
    "one": np.array([[2.5]]),
    "positive": np.array([[1.0, 0.8], [0.8, 1.0]]),
    "negative": np.array([[1.0, -0.9], [-0.9, 1.5]]),
    "three": np.array([[1.0, -0.45, 0.3], [-0.45, 0.7, -0.5], [0.3, -0.5, 2.0]]),
    "scales": np.array([[1.0, 0.05, 4.0], [0.05, 0.01, 0.3], [4.0, 0.3, 25.0]]),
}


def moments_by_quadrature(covariance, n=120):
    """Mean and second moments of N(0, Σ) on v > 0 on a Gauss–Legendre grid, dense at the walls."""
    t = len(covariance)
    node, weight = np.polynomial.legendre.leggauss(n)
    u, du = (node + 1) / 2, weight / 2
    sd = np.sqrt(covariance.diagonal())
    grid = np.stack(np.meshgrid(*(9 * s * u**2 for s in sd), indexing="ij"), axis=-1).reshape(-1, t)
    density = np.exp(-0.5 * np.einsum("ni,ni->n", grid, np.linalg.solve(covariance, grid.T).T))
    for jacobian in np.meshgrid(*[2 * u * du] * t, indexing="ij"):
        density = density * jacobian.ravel()
    density /= density.sum()
    return density @ grid, (grid * density[:, None]).T @ grid


def duel_covariance(t, noise_variance, *, n_items=None, seed=0):
    """Σ of t duels of random items in four dimensions, lengthscale 0.5, the winner at random."""
    rng = np.random.default_rng(seed)
    if n_items is None:
        winner, loser = rng.random((2, t, 4))
    else:
        items = rng.random((n_items, 4))
        pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(t)])
        winner, loser = items[pairs[:, 0]], items[pairs[:, 1]]

    def kernel(a, b):
        return np.exp(-2.0 * ((a[:, None] - b) ** 2).sum(axis=-1))

    prior = kernel(winner, winner) - kernel(winner, loser)
    prior += kernel(loser, loser) - kernel(loser, winner)
    return prior + 2 * noise_variance * np.eye(t)


def assert_moments(draws, mean, second, n_errors=4.0):
    """Means and second moments within so many standard errors, taken between the chains."""
    n_chains = len(draws)
    means = draws.mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(n_chains)
    assert np.all(np.abs(means.mean(axis=0) - mean) < n_errors * error)
    seconds = np.einsum("cnk,cnl->ckl", draws, draws) / draws.shape[1]
    error = seconds.std(axis=0, ddof=1) / np.sqrt(n_chains)
    assert np.all(np.abs(seconds.mean(axis=0) - second) < n_errors * error)


def test_quadrature_itself():
    """The grid against adaptive quadrature of the reduced bivariate integral."""
    covariance = MATRICES["negative"]
    precision = np.linalg.inv(covariance)

    def radial(
        power_x,
    ):  # ∫∫ x^p exp(−q/2) in polar coordinates: the radius integrates in closed form
        def integrand(angle):
            direction = np.array([np.cos(angle), np.sin(angle)])
            q = direction @ precision @ direction
            return 1 / q if power_x == 0 else direction[0] * np.sqrt(np.pi / 2) * q**-1.5

        return quad(integrand, 0, np.pi / 2, epsabs=1e-12)[0]

    assert moments_by_quadrature(covariance)[0][0] == pytest.approx(radial(1) / radial(0), rel=1e-8)


@pytest.mark.parametrize("name", thinned(MATRICES))
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_agreement_with_quadrature(sampler, name):
    covariance = MATRICES[name]
    start = 0.5 * np.sqrt(covariance.diagonal())
    rng = np.random.default_rng(42)
    chains = SAMPLERS[sampler](covariance, start, 700, n_chains=64, rng=rng)
    assert chains.draws.shape == (64, 700, len(covariance))
    assert chains.draws.min() > 0
    assert_moments(chains.draws[:, 100:], *moments_by_quadrature(covariance))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "max_walls"), [("positive", 0), ("negative", 1), ("three", 2)])
def test_hmc_is_exact_at_a_cap_that_rejects_half(name, max_walls):
    covariance = MATRICES[name]
    chains = hmc(
        covariance, np.ones(len(covariance)), 2200, n_chains=64, max_walls=max_walls,
        rng=np.random.default_rng(7),
    )  # fmt: skip
    assert 0.3 < chains.rejected_share < 0.7
    assert chains.rejected_share == np.mean(chains.walls == max_walls + 1)
    repeated = np.all(chains.draws[:, 1:] == chains.draws[:, :-1], axis=2)
    np.testing.assert_array_equal(repeated, chains.walls[:, 1:] > max_walls)
    assert_moments(chains.draws[:, 200:], *moments_by_quadrature(covariance))


def one_trajectory(covariance, position, momentum):
    """Design's event by event integration, with hit times, for one chain: the outside truth."""
    left, walls = np.pi / 2, 0
    while True:
        times = np.mod(np.arctan2(position, -momentum), np.pi)
        times[(position == 0) & (momentum > 0)] = np.pi
        j = int(times.argmin())
        h = min(times[j], left)
        position, momentum = (
            momentum * np.sin(h) + position * np.cos(h),
            momentum * np.cos(h) - position * np.sin(h),
        )
        left -= h
        if left <= 0:
            return position, walls
        walls += 1
        position[j] = 0.0
        momentum = momentum - 2 * momentum[j] / covariance[j, j] * covariance[:, j]
        position = np.maximum(position, 0.0)


@pytest.mark.parametrize(("t", "noise_variance"), [(1, 1e-2), (6, 1e-4), (40, 1e-2)])
def test_reflected_ellipse_is_the_event_by_event_trajectory(t, noise_variance):
    covariance = duel_covariance(t, noise_variance)
    start = np.random.default_rng(1).uniform(0.1, 1.0, (20, t))
    chains = hmc(covariance, start, 1, rng=np.random.default_rng(2))
    momenta = np.random.default_rng(2).standard_normal((20, t)) @ np.linalg.cholesky(covariance).T
    for c in range(20):
        end, walls = one_trajectory(covariance, start[c].copy(), momenta[c])
        assert chains.walls[c, 0] == walls
        np.testing.assert_allclose(chains.draws[c, 0], end, atol=1e-9)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_independent_coordinates_are_half_normal(sampler):
    sd = np.array([0.1, 1.0, 3.0, 10.0])
    n = 1000 if sampler != "liness" else 4000
    chains = SAMPLERS[sampler](np.diag(sd**2), sd, n, n_chains=64, rng=np.random.default_rng(3))
    mean = np.sqrt(2 / np.pi) * sd
    second = np.multiply.outer(mean, mean)
    np.fill_diagonal(second, sd**2)
    assert_moments(chains.draws[:, 100:], mean, second)


def cycle():
    """Three items in a circle of contradictory duels, twice each, next to seven ordinary duels."""
    covariance = duel_covariance(10, 1e-2)
    incidence = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]] * 2, dtype=float)
    loop = incidence @ np.array([[1, 0.9, 0.5], [0.9, 1, 0.8], [0.5, 0.8, 1]]) @ incidence.T
    covariance = covariance.copy()
    covariance[:6] = covariance[:, :6] = 0.0
    covariance[:6, :6] = loop + 2e-2 * np.eye(6)
    return covariance


SIGNS = (-1.0) ** np.arange(10)
EQUICORRELATED = 0.99 + 0.01 * np.eye(10)
HARD = {
    "duels, t = 10": lambda: duel_covariance(10, 1e-4),
    "duels, t = 20": lambda: duel_covariance(20, 1e-2, seed=3),
    "few items, σ² = 1e-6": lambda: duel_covariance(10, 1e-6, n_items=7, seed=4),
    "few items, t = 20, σ² = 1e-4": lambda: duel_covariance(20, 1e-4, n_items=12, seed=1),
    "near-singular": lambda: EQUICORRELATED,
    "alternating": lambda: EQUICORRELATED * np.outer(SIGNS, SIGNS) + 0.5 * np.eye(10),
    "contradictory": cycle,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_hmc_agrees_with_independent_exact_draws(name):
    covariance = HARD[name]()
    rng = np.random.default_rng(10)
    exact = minimax_draws(covariance, 12_000, rng).draws
    n = 60 if "1e-6" in name else 200
    chains = hmc(covariance, exact[:64], n, rng=rng)
    mean, products = exact.mean(axis=0), exact[:, :, None] * exact[:, None, :]
    means = chains.draws.mean(axis=1)
    error = np.hypot(means.std(axis=0, ddof=1) / 8, exact.std(axis=0) / np.sqrt(len(exact)))
    assert np.all(np.abs(means.mean(axis=0) - mean) < 4 * error)
    seconds = np.einsum("cnk,cnl->ckl", chains.draws, chains.draws) / n
    error = np.hypot(seconds.std(axis=0, ddof=1) / 8, products.std(axis=0) / np.sqrt(len(exact)))
    assert np.all(np.abs(seconds.mean(axis=0) - products.mean(axis=0)) < 4 * error)
    assert chains.rejected_share == 0
    assert effective_draws(chains.draws).min() > 0.3 * 64 * n


HARDER = HARD | {
    "one part in a million apart": lambda: 1.0 - 1e-6 + 1e-6 * np.eye(10),
    "few items, t = 20, σ² = 1e-6": lambda: duel_covariance(20, 1e-6, n_items=12, seed=1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HARDER)
def test_every_sampler_leaves_exact_draws_exact(name):
    """From independent exact draws, some transitions: moments stay, however slow the mixing.

    Those of the whitened coordinates too, or the directions of small variance would hide.
    """
    covariance = HARDER[name]()
    whitener = np.linalg.inv(np.linalg.cholesky(covariance)).T
    rng = np.random.default_rng(14)
    exact = minimax_draws(covariance, 15_000, rng).draws
    start, other = exact[:5000], exact[5000:]
    for sampler, draw in SAMPLERS.items():
        n_chains = 500 if sampler == "hmc" and "1e-6" in name else 5000
        n_draws = {"hmc": 2, "gibbs": 8, "liness": 40}[sampler]
        draws = draw(covariance, start[:n_chains], n_draws, rng=rng).state
        for mine, theirs in ((draws, other), (draws @ whitener, other @ whitener)):
            assert_same_moments(mine, theirs)
            assert_same_moments(*(x[:, :, None] * x[:, None, :] for x in (mine, theirs)))


def assert_same_moments(a, b, n_errors=4.0):
    """Means of independent draws within so many standard errors."""
    error = np.hypot(a.std(axis=0) / np.sqrt(len(a)), b.std(axis=0) / np.sqrt(len(b)))
    assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) <= n_errors * error)


@pytest.mark.parametrize("sampler", ["gibbs", "liness"])
@pytest.mark.parametrize(("t", "noise_variance"), [(10, 1e-2), (20, 0.1)])
def test_other_samplers_agree_with_independent_exact_draws(sampler, t, noise_variance):
    covariance = duel_covariance(t, noise_variance)
    rng = np.random.default_rng(12)
    exact = minimax_draws(covariance, 20_000, rng).draws
    n = 400 if sampler == "gibbs" else 4000
    draws = SAMPLERS[sampler](covariance, exact[:64], n, rng=rng).draws
    means = draws.mean(axis=1)
    error = np.hypot(means.std(axis=0, ddof=1) / 8, exact.std(axis=0) / np.sqrt(len(exact)))
    assert np.all(np.abs(means.mean(axis=0) - exact.mean(axis=0)) < 4 * error)


@pytest.mark.slow
def test_gibbs_agrees_with_hmc_on_many_duels():
    covariance = duel_covariance(200, 0.1)
    rng = np.random.default_rng(0)
    start = hmc(covariance, np.full(200, 0.5), 20, n_chains=64, rng=rng).state
    by_hmc = hmc(covariance, start, 60, rng=rng).draws
    by_gibbs = gibbs(covariance, start, 150, rng=rng).draws
    a, b = (draws.mean(axis=1) for draws in (by_hmc, by_gibbs))
    error = np.hypot(a.std(axis=0, ddof=1), b.std(axis=0, ddof=1)) / 8
    assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error)


@pytest.mark.slow
def test_radius_move_keeps_the_target_and_helps():
    covariance = duel_covariance(60, 1e-2)
    rng = np.random.default_rng(4)
    start = hmc(covariance, np.full(60, 0.5), 50, n_chains=64, rng=rng).state
    radius = {}
    effective = {}
    for move in (True, False):
        draws = gibbs(covariance, start, 150, rng=rng, radius_move=move).draws
        square = np.einsum("cni,cni->cn", draws, draws @ np.linalg.inv(covariance))
        radius[move] = square.mean(axis=1)
        effective[move] = effective_draws(square)
    # vᵀΣ⁻¹v ~ χ²_60 exactly, in a cone
    for squares in radius.values():
        assert abs(squares.mean() - 60) < 4 * squares.std(ddof=1) / 8
    assert effective[True] > effective[False]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_going_on_from_the_state_is_one_long_run(sampler):
    covariance = duel_covariance(30, 1e-3)
    draw = SAMPLERS[sampler]
    options = {"max_walls": 12} if sampler == "hmc" else {}
    whole = draw(covariance, np.ones(30), 25, n_chains=9, rng=np.random.default_rng(8), **options)
    rng = np.random.default_rng(8)
    first = draw(covariance, np.ones(30), 10, n_chains=9, rng=rng, **options)
    second = draw(covariance, first.state, 15, rng=rng, **options)
    np.testing.assert_array_equal(whole.draws[:, :10], first.draws)
    np.testing.assert_array_equal(whole.draws[:, 10:], second.draws)
    np.testing.assert_array_equal(whole.state, second.state)


def test_thinned_gibbs_gives_every_so_manieth_sweep():
    covariance = duel_covariance(12, 1e-2)
    every, third = (
        gibbs(covariance, np.ones((3, 12)), n, rng=np.random.default_rng(8), thin=thin)
        for n, thin in ((15, 1), (5, 3))
    )
    np.testing.assert_array_equal(third.draws, every.draws[:, 2::3])
    np.testing.assert_array_equal(third.state, every.state)
    with pytest.raises(ValueError, match=r"thin must lie in \[1, inf\], got 0"):
        gibbs(covariance, np.ones(12), 5, rng=np.random.default_rng(8), thin=0)


def test_hmc_does_not_depend_on_how_chains_are_stepped(monkeypatch):
    covariance = duel_covariance(25, 1e-3)

    def run():
        rng = np.random.default_rng(8)
        return hmc(covariance, np.ones(25), 12, n_chains=10, rng=rng, max_walls=10)

    expected = run()
    assert 0.1 < expected.rejected_share < 0.9
    monkeypatch.setattr(_walls, "_csr_matvecs", None)
    plain = run()
    np.testing.assert_allclose(plain.draws, expected.draws, rtol=1e-8)
    np.testing.assert_array_equal(plain.walls, expected.walls)


def test_wall_counts_grow_with_contradictions():
    rng = np.random.default_rng(0)
    counts = [
        hmc(covariance, np.full(10, 0.1), 50, n_chains=32, rng=rng).walls.mean()
        for covariance in (np.eye(10), cycle())
    ]
    # Independent coordinates: each is met on the way to π/2 with probability ½.
    assert counts[0] == pytest.approx(5.0, abs=0.2)
    assert counts[1] > 2 * counts[0]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_input_is_left_alone_and_bad_input_is_named(sampler):
    draw = SAMPLERS[sampler]
    rng = np.random.default_rng(0)
    covariance, start = np.eye(3), np.ones((2, 3))
    covariance.setflags(write=False)
    start.setflags(write=False)
    assert draw(covariance, start, 4, rng=rng).draws.shape == (2, 4, 3)
    assert draw(covariance, np.ones(3), 4, rng=rng).draws.shape == (1, 4, 3)

    for bad in ([1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="strictly positive"):
            draw(covariance, bad, 4, rng=rng)
    with pytest.raises(
        ValueError, match=r"start has shape \(2,\); allowed are \(3,\) and \(5, 3\)"
    ):
        draw(covariance, np.ones(2), 4, n_chains=5, rng=rng)
    with pytest.raises(ValueError, match=r"n_chains must lie in \[1, inf\], got 0"):
        draw(covariance, np.ones(3), 4, n_chains=0, rng=rng)
    with pytest.raises(ValueError, match=r"n_draws must lie in \[1, inf\], got 0"):
        draw(covariance, np.ones(3), 0, rng=rng)
    with pytest.raises(ValueError, match=r"not positive (semi-)?definite"):
        draw([[1.0, 2.0], [2.0, 1.0]], np.ones(2), 4, rng=rng)
    if sampler != "hmc":
        with pytest.raises(ValueError, match="not positive definite"):
            draw(np.ones((2, 2)), np.ones(2), 4, rng=rng)
    with pytest.raises(ValueError, match="not symmetric"):
        draw([[1.0, 0.5], [0.0, 1.0]], np.ones(2), 4, rng=rng)
    with pytest.raises(ValueError, match="square matrix"):
        draw(np.ones((2, 3)), np.ones(2), 4, rng=rng)
    with pytest.raises(ValueError, match="NaN or infinite"):
        draw([[np.nan]], np.ones(1), 4, rng=rng)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_arguments_of_the_wrong_type_are_named(sampler):
    draw, rng = SAMPLERS[sampler], np.random.default_rng(0)
    for bad in (2.5, "2", None, True, np.nan):
        with pytest.raises(TypeError, match="n_draws must be an integer, got"):
            draw(np.eye(2), np.ones(2), bad, rng=rng)
    with pytest.raises(TypeError, match=r"n_chains must be an integer, got 2\.0"):
        draw(np.eye(2), np.ones(2), 3, rng=rng, n_chains=2.0)
    for bad in (0, None, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
            draw(np.eye(2), np.ones(2), 3, rng=bad)


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-170, 1e170])
def test_gibbs_recovers_from_starts_whose_squares_are_no_doubles(tiny):
    covariance = MATRICES["negative"]
    draws = gibbs(covariance, [tiny, tiny], 30, n_chains=4000, rng=np.random.default_rng(0)).state
    mean, _ = moments_by_quadrature(covariance)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * draws.std(axis=0) / np.sqrt(4000))


def test_a_bad_cap_is_an_error():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"max_walls must lie in \[0, inf\], got -1"):
        hmc(np.eye(2), np.ones(2), 3, rng=rng, max_walls=-1)
    for bad in (np.nan, "many", 2.5):
        with pytest.raises(TypeError, match="max_walls must be an integer"):
            hmc(np.eye(2), np.ones(2), 3, rng=rng, max_walls=bad)
