"""hmc and gibbs on boxes: walls off the origin, slabs, singular covariances."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from skpref.samplers import effective_draws, gibbs, hmc

SAMPLERS = {"hmc": hmc, "gibbs": gibbs}
INF = np.inf
TWO = np.array([[1.0, -0.9], [-0.9, 1.5]])
THREE = np.array([[1.0, -0.45, 0.3], [-0.45, 0.7, -0.5], [0.3, -0.5, 2.0]])
BOXES = {
    "slab": ([[2.5]], [-0.5], [1.0]),
    "slab off the origin": ([[2.5]], [1.0], [1.3]),
    "wall above the origin": ([[0.25]], [1.0], [INF]),
    "wall below the origin": (TWO, [-0.5, -1.0], [INF, INF]),
    "upper walls": (TWO, [-INF, -INF], [0.7, -0.2]),
    "slab and half-line": (TWO, [-0.1, 0.0], [0.1, INF]),
    "slab and free": (TWO, [0.4, -INF], [0.6, INF]),
    "every kind": (THREE, [-0.2, 0.5, -INF], [0.9, INF, 0.3]),
    "three slabs": (THREE, [-0.02, -1.0, 0.3], [0.02, 0.2, 0.8]),
    "far tails": (THREE, [3.0, -INF, 4.0], [INF, -2.0, 4.3]),
}  # fmt: skip


def box(name):
    return tuple(np.array(x, dtype=float) for x in BOXES[name])


def inside(lower, upper):
    """A point strictly inside."""
    low, high = (
        np.maximum(lower, np.minimum(upper, 0) - 3),
        np.minimum(upper, np.maximum(lower, 0) + 3),
    )
    return (low + high) / 2


def moments_by_quadrature(covariance, lower, upper, n=160):
    """Mean and second moments of N(0, Σ) on a box on a Gauss–Legendre grid, dense at the walls."""
    t = len(covariance)
    node, weight = np.polynomial.legendre.leggauss(n if t < 3 else 90)
    u, du = (node + 1) / 2, weight / 2
    u, du = u**2 * (3 - 2 * u), 6 * u * (1 - u) * du
    reach = 9 * np.sqrt(covariance.diagonal())
    low, high = (
        np.maximum(lower, np.minimum(upper, 0) - reach),
        np.minimum(upper, np.maximum(lower, 0) + reach),
    )
    axes = [a + (b - a) * u for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, t)
    density = -0.5 * np.einsum("ni,ni->n", grid, np.linalg.solve(covariance, grid.T).T)
    density = np.exp(density - density.max())
    for jacobian in np.meshgrid(*[du] * t, indexing="ij"):
        density = density * jacobian.ravel()
    density /= density.sum()
    return density @ grid, (grid * density[:, None]).T @ grid


def assert_moments(draws, mean, second, n_errors=4.0):
    """Means and second moments within so many standard errors, taken between the chains."""
    for values, truth in ((draws, mean), (draws[..., :, None] * draws[..., None, :], second)):
        means = values.mean(axis=1)
        error = means.std(axis=0, ddof=1) / np.sqrt(len(draws))
        assert np.all(np.abs(means.mean(axis=0) - truth) < n_errors * error)


def test_quadrature_itself():
    exact = stats.truncnorm(-0.5, 1.2, scale=2.0)
    mean, second = moments_by_quadrature(np.array([[4.0]]), np.array([-1.0]), np.array([2.4]))
    assert mean[0] == pytest.approx(exact.mean(), rel=1e-10)
    assert second[0, 0] == pytest.approx(exact.moment(2), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_agreement_with_quadrature(sampler, name):
    covariance, lower, upper = box(name)
    n = 300 if name != "far tails" else 600
    chains = SAMPLERS[sampler](
        covariance, inside(lower, upper), n, n_chains=64, rng=np.random.default_rng(43),
        lower=lower, upper=upper,
    )  # fmt: skip
    assert np.all((chains.draws > lower) & (chains.draws < upper))
    assert_moments(chains.draws[:, 50:], *moments_by_quadrature(covariance, lower, upper))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_marginal_distribution_agrees_with_normal_probabilities(sampler):
    """Cells of a coordinate by chi-square against rectangles of `multivariate_normal.cdf`."""
    covariance, lower, upper = box("every kind")
    edges = np.array([-0.2, 0.0, 0.1, 0.25, 0.4, 0.65, 0.9])

    def probability(a, b):
        low, high = lower.copy(), upper.copy()
        low[0], high[0] = a, b
        return stats.multivariate_normal.cdf(high, None, covariance, lower_limit=low, abseps=1e-7)

    cells = np.array([probability(a, b) for a, b in pairwise(edges)])
    draw = SAMPLERS[sampler]
    states = draw(
        covariance, inside(lower, upper), 40, n_chains=8000, rng=np.random.default_rng(1),
        lower=lower, upper=upper,
    ).state  # fmt: skip
    counts = np.histogram(states[:, 0], edges)[0]
    assert stats.chisquare(counts, 8000 * cells / cells.sum()).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slab", "every kind"])
def test_hmc_is_exact_at_a_cap_that_rejects_many(name):
    covariance, lower, upper = box(name)
    rng = np.random.default_rng(7)
    start = inside(lower, upper)
    walls = hmc(covariance, start, 50, n_chains=64, rng=rng, lower=lower, upper=upper).walls
    cap = int(np.median(walls[:, 10:]))
    chains = hmc(
        covariance, start, 2200, n_chains=64, max_walls=cap, rng=rng, lower=lower, upper=upper
    )
    assert 0.2 < chains.rejected_share < 0.7
    assert_moments(chains.draws[:, 200:], *moments_by_quadrature(covariance, lower, upper))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_mirrored_boxes_give_mirrored_moments(sampler):
    covariance, lower, upper = box("every kind")
    draws = SAMPLERS[sampler](
        covariance, -inside(lower, upper), 500, n_chains=64, rng=np.random.default_rng(2),
        lower=-upper, upper=-lower,
    ).draws  # fmt: skip
    mean, second = moments_by_quadrature(covariance, lower, upper)
    assert_moments(draws[:, 50:], -mean, second)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_wall_far_out_is_no_wall_and_the_default_is_the_half_line(sampler):
    covariance = 0.3 * np.eye(8) + 0.7
    covariance[0] *= -1
    covariance[:, 0] *= -1
    draw, start = SAMPLERS[sampler], np.full(8, 0.5)
    plain = draw(covariance, start, 8, n_chains=20, rng=np.random.default_rng(3))
    same = draw(covariance, start, 8, n_chains=20, rng=np.random.default_rng(3), lower=0, upper=INF)
    np.testing.assert_array_equal(same.draws, plain.draws)
    far = np.full(8, INF)
    far[3] = 30.0
    # Gibbs moves the radius in a cone only.
    options = {} if sampler == "hmc" else {"radius_move": False}
    plain = draw(covariance, start, 8, n_chains=20, rng=np.random.default_rng(3), **options)
    walled = draw(
        covariance, start, 8, n_chains=20, rng=np.random.default_rng(3), upper=far, **options
    )
    np.testing.assert_allclose(walled.draws, plain.draws, rtol=1e-7, atol=1e-11)
    if sampler == "hmc":
        np.testing.assert_array_equal(walled.walls, plain.walls)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_units_of_coordinates_do_not_matter(sampler):
    covariance, lower, upper = box("every kind")
    unit = np.array([1e3, 0.1, 1e-4])
    one, other = (
        SAMPLERS[sampler](
            covariance * np.outer(s, s), inside(lower, upper) * s, 10, n_chains=20,
            rng=np.random.default_rng(3), lower=lower * s, upper=upper * s,
        ).draws
        for s in (np.ones(3), unit)
    )  # fmt: skip
    np.testing.assert_allclose(other / unit, one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_going_on_from_the_state_is_one_long_run(sampler):
    covariance, lower, upper = box("every kind")
    draw, walls = SAMPLERS[sampler], {"lower": lower, "upper": upper}
    if sampler == "hmc":
        walls["max_walls"] = 6
    start = inside(lower, upper)
    whole = draw(covariance, start, 25, n_chains=9, rng=np.random.default_rng(8), **walls)
    rng = np.random.default_rng(8)
    first = draw(covariance, start, 10, n_chains=9, rng=rng, **walls)
    second = draw(covariance, first.state, 15, rng=rng, **walls)
    np.testing.assert_array_equal(whole.draws, np.hstack((first.draws, second.draws)))


@pytest.mark.slow
def test_gibbs_moves_the_radius_in_every_cone_and_nowhere_else():
    covariance = 0.05 * np.eye(30) + 0.95
    rng = np.random.default_rng(4)
    lower = np.where(np.arange(30) < 29, -INF, 0.0)
    upper = np.where(np.arange(30) < 28, 0.0, INF)
    start = np.where(upper == 0, -0.5, 0.5)
    cone = gibbs(covariance, start, 400, n_chains=32, rng=rng, lower=lower, upper=upper).draws
    square = np.einsum("cni,cni->cn", cone, cone @ np.linalg.inv(covariance))
    # The radius is independent of the direction, and drawn afresh up to the sweep that follows.
    means = square[:, 20:].mean(axis=1)
    assert abs(means.mean() - 30) < 4 * means.std(ddof=1) / np.sqrt(32)
    with_move, without = (
        gibbs([[4.0]], [1.2], 4000, n_chains=16, rng=rng, lower=1.0, upper=1.5, radius_move=move)
        for move in (True, False)
    )
    for chains in (with_move, without):
        truth = moments_by_quadrature(np.array([[4.0]]), np.array([1.0]), np.array([1.5]))
        assert_moments(chains.draws, *truth)
        assert effective_draws(chains.draws)[0] > 0.9 * 64_000


TWO_OF_FOUR = [[1, 0, -1, 0], [1, 0, 0, -1], [0, 1, -1, 0], [0, 1, 0, -1]]
COMBINED = {
    # x, y and their sum, whose slab cuts the corner of the others' quadrant
    "sum": ([[1, 0], [0, 1], [1, 1]], [0, 0, 0.5], [INF, INF, 1.5]),
    "slab across": ([[1, 0], [0, 1], [1, 1]], [-1, -INF, -0.1], [1, 0.3, 0.2]),
    # the best two of four over the other two: four differences of four utilities
    "two of four": (TWO_OF_FOUR, [0] * 4, [INF] * 4),
    "two of four, by a threshold": (TWO_OF_FOUR, [0.2] * 4, [INF, 2.0, INF, INF]),
    # a coordinate that is another's opposite, and one that never moves
    "opposites": ([[1, 0.5], [-1, -0.5], [0, 0]], [-0.3, -INF, -1], [INF, 0.8, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
def test_hmc_takes_linearly_dependent_coordinates(name):
    """Against rejection from the free coordinates."""
    table, lower, upper = (np.array(x, dtype=float) for x in COMBINED[name])
    n_free = table.shape[1]
    root = np.linalg.cholesky(0.6 * np.eye(n_free) + 0.4 * np.ones((n_free, n_free)))
    rng = np.random.default_rng(5)
    free = rng.standard_normal((200_000, n_free)) @ root.T @ table.T
    exact = free[np.all((free > lower) & (free < upper), axis=1)]
    exact = exact[:40_000]
    covariance = table @ root @ root.T @ table.T
    draws = hmc(covariance, exact[:64], 400, rng=rng, lower=lower, upper=upper).draws
    assert np.all((draws > lower) & (draws < upper))
    for ours, theirs in (
        (draws, exact),
        (draws[..., :, None] * draws[..., None, :], exact[..., :, None] * exact[..., None, :]),
    ):
        means = ours.mean(axis=1)
        error = np.hypot(means.std(axis=0, ddof=1) / 8, theirs.std(axis=0) / np.sqrt(len(theirs)))
        assert np.all(np.abs(means.mean(axis=0) - theirs.mean(axis=0)) <= 4 * error)
    outside = np.linalg.svd(table.T)[2][np.linalg.matrix_rank(table) :]
    assert np.abs(draws @ outside.T).max() < 1e-13


@pytest.mark.slow
def test_thousands_of_reflections_leave_dependent_coordinates_dependent():
    table = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    chains = hmc(
        table @ table.T, np.array([0.5, -0.5, 0.0]), 40, n_chains=16, rng=np.random.default_rng(0),
        lower=[0.49, -0.52, -0.005], upper=[0.51, INF, 0.005],
    )  # fmt: skip
    assert chains.walls.sum(axis=1).min() > 5000
    assert chains.rejected_share == 0
    draws = chains.draws
    assert np.abs(draws[..., 0] + draws[..., 1] - draws[..., 2]).max() < 1e-13


@pytest.mark.parametrize("table", [[[1, 0], [0, 1], [1, 1]], [[1, 0.3], [-1, -0.3]]])
def test_gibbs_refuses_dependent_coordinates(table):
    table = np.array(table, dtype=float)
    with pytest.raises(ValueError, match="use hmc, which takes a singular covariance"):
        gibbs(table @ table.T, np.full(len(table), 0.1), 5, rng=np.random.default_rng(0), lower=-1)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_bad_walls_and_starts_are_named(sampler):
    def draw(start, **walls):
        SAMPLERS[sampler](np.eye(2), start, 3, rng=np.random.default_rng(0), **walls)

    with pytest.raises(
        ValueError,
        match=r"start is 1\.5 in coordinate 1 of chain 2; .* between lower\[1\] = -1 and",
    ):
        draw([[0.0, 0.0], [0.5, 0.0], [0.0, 1.5]], lower=-1, upper=[1, 1.5])
    with pytest.raises(
        ValueError, match=r"start is 0 in coordinate 1 of chain 0.*strictly positive"
    ):
        draw([1.0, 0.0])
    with pytest.raises(ValueError, match=r"start is inf in coordinate 0 of chain 0.*and finite"):
        draw([INF, 0.0], lower=-1)
    with pytest.raises(
        ValueError, match=r"between lower\[1\] = 1 and upper\[1\] = 1; lower < upper"
    ):
        draw([0.5, 1.0], upper=[1, 1], lower=[0, 1])
    with pytest.raises(ValueError, match=r"between lower\[0\] = inf and upper\[0\] = inf"):
        draw([0.5, 1.0], lower=INF)
    with pytest.raises(ValueError, match="upper holds NaN"):
        draw([0.5, 1.0], upper=[1, np.nan])
    with pytest.raises(
        ValueError, match=r"lower has shape \(3,\); a number or one for each of the 2"
    ):
        draw([0.5, 1.0], lower=np.zeros(3))
