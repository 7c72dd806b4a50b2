"""Posterior: dense algebra, brute-force mixtures, simulation and differences."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from core_support import TIGHT_EP, random_duels, solve, won
from oracles import central_gradient, dense_posterior, incidence
from scipy.integrate import quad
from scipy.stats import kstest, norm
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from skpref.gp import _posterior as _pairs
from skpref.gp import _posterior as module
from skpref.gp._posterior import Posterior
from skpref.inference import EP
from skpref.kernels import paired_kernel_values
from skpref.likelihoods import Probit

KERNELS = {
    "rbf": RBF([0.7, 1.2]),
    "matern32": 2.0 * Matern(0.8, nu=1.5),
    "matern52": Matern(0.8, nu=2.5),
    "rational": RationalQuadratic(0.9, alpha=0.7),
    "linear": DotProduct(0.6) + 0.5 * RBF(0.7),
}
NOISE = 0.05
X = np.random.default_rng(8).uniform(-1.3, 1.3, (9, 2))


def one_component(kernel=KERNELS["matern52"], noise_variance=NOISE):
    return solve(TIGHT_EP, kernel, won(*random_duels(0, 8, 14)), noise_variance)


def many_components(kernel=KERNELS["matern52"], n=5, spread=2.0, seed=3):
    """Noisy margins of made-up duels as targets: n components of one covariance."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.0, 1.0, (6, 2))
    A = incidence(np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 4, 5]), 6)
    targets = spread * rng.normal(size=(5, n))
    total = A @ kernel(items) @ A.T + 2.0 * NOISE * np.eye(5)
    weights = A.T @ np.linalg.solve(total, targets)
    factor = A.T @ np.linalg.inv(np.linalg.cholesky(total)).T
    posterior = Posterior(kernel, Probit(NOISE), items, weights, factor)
    means, covariance = dense_posterior(
        kernel, items, A, targets / (2.0 * NOISE), np.full(5, 0.5 / NOISE), X
    )
    return posterior, means, covariance


# -- moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_one_component_is_gp_regression_on_the_sites(name):
    found = one_component(KERNELS[name])
    margins, sites = found.comparisons.rows.margins, found.approximation.sites
    A = incidence(margins.first, margins.second, len(found.comparisons.items))
    mean, covariance = dense_posterior(
        KERNELS[name], found.comparisons.items, A, sites.shift, sites.precision, X
    )
    posterior = found.posterior
    np.testing.assert_allclose(posterior.mean(X), mean, atol=1e-10)
    np.testing.assert_allclose(posterior.cov(X), covariance, atol=1e-10)
    np.testing.assert_allclose(posterior.var(X), np.diagonal(covariance), atol=1e-10)
    D = np.eye(9)[:4] - np.eye(9)[4:8]
    margin, variance = posterior.margin(X[:4], X[4:8])
    np.testing.assert_allclose(margin, D @ mean, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(D @ covariance @ D.T), atol=1e-10)
    of_margins = posterior.margin_cov(X[:4], X[4:8])
    np.testing.assert_allclose(of_margins, D @ covariance @ D.T, atol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_many_components_are_an_equal_mixture(name):
    posterior, means, shared = many_components(KERNELS[name])
    centre = means.mean(axis=1)
    # E[f fᵀ] − E[f] E[f]ᵀ, component by component
    second = sum(shared + np.outer(m, m) for m in means.T) / 5
    covariance = second - np.outer(centre, centre)
    np.testing.assert_allclose(posterior.component_means(X), means, atol=1e-10)
    np.testing.assert_allclose(posterior.component_var(X), np.diagonal(shared), atol=1e-10)
    np.testing.assert_allclose(posterior.mean(X), centre, atol=1e-10)
    np.testing.assert_allclose(posterior.var(X), np.diagonal(covariance), atol=1e-10)
    np.testing.assert_allclose(posterior.cov(X), covariance, atol=1e-10)
    D = np.eye(9)[:4] - np.eye(9)[4:8]
    margin, variance = posterior.margin(X[:4], X[4:8])
    np.testing.assert_allclose(margin, D @ centre, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(D @ covariance @ D.T), atol=1e-10)


@pytest.mark.parametrize("noise", [True, False])
def test_duel_probabilities_are_of_the_components_and_a_gaussian_like_all(noise):
    posterior, means, shared = many_components()
    D = np.eye(9)[:4] - np.eye(9)[4:8]
    added = 2.0 * NOISE if noise else 0.0
    sd = np.sqrt(np.diagonal(D @ shared @ D.T) + added)
    of_components = np.sum([norm.sf(0.0, D @ m, sd) for m in means.T], axis=0)
    like_all = np.sqrt(np.diagonal(D @ (shared + np.cov(means, bias=True)) @ D.T) + added)
    of_gaussian = norm.sf(0.0, D @ means.mean(axis=1), like_all)
    found = posterior.win_probability(X[:4], X[4:8], noise=noise)
    np.testing.assert_allclose(6.0 * found - of_components, of_gaussian, rtol=1e-9)
    log = posterior.win_probability(X[:4], X[4:8], noise=noise, log=True)
    np.testing.assert_allclose(np.exp(log), found, rtol=1e-10)


@pytest.mark.parametrize("n", [2, 20, 2000])
def test_one_component_more_moves_no_probability_far(n):
    posterior, _, _ = many_components(n=n, spread=6.0)
    means, variance = posterior.component_margins(X, X[::-1])
    plain = norm.cdf(means / np.sqrt(variance + 2.0 * NOISE)[:, None]).mean(axis=1)
    found = posterior.win_probability(X, X[::-1])
    assert np.abs(found - plain).max() <= 1.0 / (n + 1)
    np.testing.assert_allclose(found + posterior.win_probability(X[::-1], X), 1.0, rtol=1e-14)
    both = posterior.outcome_log_proba(X, X[::-1])
    np.testing.assert_allclose(np.exp(both).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(both[:, 1]), found, rtol=1e-12)
    assert found[4] == 0.5  # an item against itself


@pytest.mark.parametrize("depth", [4.0, 6.0, 12.0])
def test_log_probabilities_beyond_the_draws_err_by_the_log_of_their_number(depth):
    # The margin is normal, so the truth is its tail; no draw comes within 70 deviations of it.
    n, best, origin = 200, np.array([[1.0, 0.0]]), np.zeros((1, 2))
    draws = norm.ppf((np.arange(n) + 0.5) / n)
    weights = depth + draws[None] / draws.std()
    root = np.array([[np.sqrt(1.0 - 1e-4)]])
    posterior = Posterior(DotProduct(0.0), Probit(1e-4), best, weights, root)
    truth = norm.logcdf(-depth / np.sqrt(1.0 + 3e-4))
    found = posterior.win_probability(origin, best, log=True)[0]
    assert found == pytest.approx(truth - np.log(n + 1), abs=1e-6)


def test_distribution_functions_are_averages_over_components():
    posterior, means, shared = many_components()
    sd, c = np.sqrt(np.diagonal(shared)), np.linspace(-2.0, 2.0, 9)
    truth = np.mean([norm.cdf(c, m, sd) for m in means.T], axis=0)
    np.testing.assert_allclose(posterior.cdf(X, c), truth, rtol=1e-10)
    np.testing.assert_allclose(posterior.cdf(X, 0.3), posterior.cdf(X, np.full(9, 0.3)))
    for missing in (np.nan, None, [np.nan, *c[1:]]):
        with pytest.raises(ValueError, match="got NaN or None among c; numbers are allowed"):
            posterior.cdf(X, missing)
    assert np.all(posterior.cdf(X, np.inf) == 1.0)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_quantiles_undo_the_distribution_function(n):
    posterior, _, _ = many_components(n=n, spread=6.0)
    levels = [1e-9, 0.025, 0.5, 0.9, 1.0 - 1e-9]
    found = posterior.quantile(X, levels)
    assert found.shape == (9, 5)
    for level, edge in zip(levels, found.T, strict=True):
        np.testing.assert_allclose(posterior.cdf(X, edge), level, rtol=1e-7)
        np.testing.assert_allclose(posterior.quantile(X, level), edge)
    interval = posterior.credible_interval(X, 0.8)
    mass = posterior.cdf(X, interval[:, 1]) - posterior.cdf(X, interval[:, 0])
    np.testing.assert_allclose(mass, 0.8, atol=1e-9)
    np.testing.assert_allclose(posterior.cdf(X, interval[:, 0]), 0.1, atol=1e-9)


def test_distribution_integrates_to_the_mean():
    posterior, means, _ = many_components()
    x = X[:1]
    upper = quad(lambda c: 1.0 - posterior.cdf(x, c)[0], 0.0, 20.0, limit=200)[0]
    lower = quad(lambda c: posterior.cdf(x, c)[0], -20.0, 0.0, limit=200)[0]
    assert upper - lower == pytest.approx(means[0].mean(), abs=1e-7)


def test_a_utility_that_is_surely_known():
    # A linear utility is zero at the origin.
    posterior = one_component(DotProduct(0.0)).posterior
    origin = np.zeros((1, 2))
    assert posterior.var(origin)[0] == 0.0
    assert posterior.quantile(origin, 0.2)[0] == 0.0
    np.testing.assert_array_equal(posterior.cdf(origin, -1e-9), [0.0])
    np.testing.assert_array_equal(posterior.cdf(origin, 1e-9), [1.0])
    spread = replace(posterior, weights=np.outer(posterior.weights[:, 0], [1.0, 2.0, 4.0]))
    assert spread.quantile(origin, 0.2)[0] == pytest.approx(0.0, abs=1e-11)


# -- numerics --------------------------------------------------------------------------------


def test_log_probabilities_are_finite_forty_deviations_out_and_beyond():
    posterior = one_component(RBF(1.0), 1e-4).posterior
    A, B = X[:4], X[4:8]
    for factor in (1e2, 1e4, 1e6):
        sure = replace(posterior, weights=factor * posterior.weights)
        mean, variance = sure.margin(A, B)
        assert np.abs(mean / np.sqrt(variance + 2e-4)).max() > 40.0
        for first, second in ((A, B), (B, A)):
            log = sure.win_probability(first, second, log=True)
            assert np.all(np.isfinite(log))
            assert np.all(log <= 0.0)
        one = sure.win_probability(A, B, log=True)
        two = sure.win_probability(B, A, log=True)
        np.testing.assert_allclose(np.exp(one) + np.exp(two), 1.0, atol=1e-12)


@pytest.mark.parametrize("distance", [1e-4, 1e-6, 1e-9, 1e-12])
def test_margins_of_near_identical_items(distance):
    posterior = one_component(KERNELS["matern32"]).posterior
    step = np.array([0.6, 0.8])
    mean, variance = posterior.margin(X + distance * step, X)
    # A margin is the slope of the utility times the distance.
    slope = posterior.mean_gradient(X) @ step
    np.testing.assert_allclose(mean / distance, slope, rtol=2e-3, atol=1e-16 / distance)
    if distance > 1e-7:
        _, far_variance = posterior.margin(X + 1e-3 * step, X)
        np.testing.assert_allclose(variance / distance**2, far_variance / 1e-6, rtol=1e-2)
    # Where rounding has eaten the variance, nothing is claimed to be sure.
    order = posterior.win_probability(X + distance * step, X, noise=False, log=True)
    assert np.all(order > -20.0)
    even = posterior.win_probability(X + distance * step, X)
    np.testing.assert_allclose(even, 0.5, atol=10.0 * distance)


def test_an_item_against_itself_is_even():
    posterior = one_component().posterior
    mean, variance = posterior.margin(X, X)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_array_equal(variance, 0.0)
    for noise in (True, False):
        np.testing.assert_array_equal(posterior.win_probability(X, X, noise=noise), 0.5)


@pytest.mark.parametrize("name", KERNELS)
def test_paired_covariances_are_the_diagonal_of_the_matrix(name):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 150, 2))
    truth = np.diagonal(KERNELS[name](A, B))
    np.testing.assert_allclose(paired_kernel_values(KERNELS[name], A, B), truth, rtol=1e-12)


def test_blocks_change_nothing(monkeypatch):
    posterior, _, _ = many_components()
    whole = [posterior.mean(X), posterior.var(X), *posterior.margin(X, X[::-1])]
    for each in (module, _pairs):
        monkeypatch.setattr(each, "BLOCK", 14)
    parts = [posterior.mean(X), posterior.var(X), *posterior.margin(X, X[::-1])]
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-13)


# -- draws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 4])
def test_samples_have_the_moments_and_the_distribution(n_components):
    posterior, _, _ = many_components(n=n_components)
    n = 40_000
    draws = posterior.sample(X[:3], n, rng=1)
    assert draws.shape == (3, n)
    mean, covariance = posterior.mean(X[:3]), posterior.cov(X[:3])
    sd = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=4.5 * sd.max() / np.sqrt(n))
    error = 4.5 * np.outer(sd, sd).max() * np.sqrt(2.0 / n)
    np.testing.assert_allclose(np.cov(draws), covariance, atol=error)
    for i in range(3):
        x = X[i : i + 1]
        at = posterior.cdf(np.repeat(x, n, axis=0), draws[i])
        assert kstest(at, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("rng", [3, np.random.RandomState, np.random.default_rng])
def test_draws_repeat_with_their_seed(rng):
    posterior, _, _ = many_components()
    make = rng if callable(rng) else (lambda _: rng)
    np.testing.assert_array_equal(posterior.sample(X, 3, make(5)), posterior.sample(X, 3, make(5)))
    assert posterior.hallucinate(make(5)).weights.shape == (6, 1)


def test_hallucinations_are_the_components_equally_often():
    posterior, means, shared = many_components()
    rng = np.random.default_rng(0)
    seen = np.zeros(5)
    for _ in range(500):
        one = posterior.hallucinate(rng)
        assert one.n_components == 1
        which = np.flatnonzero(np.all(posterior.weights == one.weights, axis=0))
        seen[which] += 1
    np.testing.assert_allclose(seen, 100.0, atol=45.0)
    s = int(np.flatnonzero(np.all(posterior.weights == one.weights, axis=0))[0])
    np.testing.assert_allclose(one.mean(X), means[:, s], atol=1e-10)
    np.testing.assert_allclose(one.cov(X), shared, atol=1e-10)


# -- gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 5])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_agree_with_differences(name, n_components):
    posterior, _, _ = many_components(KERNELS[name], n_components)
    for gradient, function in (
        (posterior.mean_gradient(X), posterior.mean),
        (posterior.var_gradient(X), posterior.var),
    ):
        for x, found in zip(X, gradient, strict=True):
            truth = central_gradient(lambda at, of=function: of(at[None])[0], x, 1e-2)
            np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-7)


# -- the value -------------------------------------------------------------------------------


def test_it_is_frozen():
    posterior = one_component().posterior
    with pytest.raises(FrozenInstanceError):
        posterior.weights = np.zeros((1, 1))
    with pytest.raises(FrozenInstanceError):
        posterior.new = 1


def test_it_can_be_compared_and_hashed():
    one, two = one_component().posterior, one_component().posterior
    assert one == one
    assert one != two
    assert len({one, two, one}) == 2


def test_it_pickles():
    posterior, _, _ = many_components()
    again = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(again.mean(X), posterior.mean(X))
    np.testing.assert_array_equal(again.cov(X), posterior.cov(X))


def test_lists_are_taken_and_left_alone():
    posterior = one_component().posterior
    rows = X.tolist()
    np.testing.assert_array_equal(posterior.mean(rows), posterior.mean(X))
    locked = X.copy()
    locked.flags.writeable = False
    posterior.var_gradient(locked)
    posterior.sample(locked, 2, 0)
    posterior.win_probability(locked, locked[:1])


@pytest.mark.parametrize("n", [1, 5])
def test_no_rows_give_no_rows(n):
    posterior, _, _ = many_components(n=n)
    none = np.zeros((0, 2))
    for value, shape in (
        (posterior.mean(none), (0,)),
        (posterior.var(none), (0,)),
        (posterior.cov(none), (0, 0)),
        (posterior.component_means(none), (0, n)),
        (posterior.margin(none, none)[1], (0,)),
        (posterior.margin(none, X[:1])[0], (0,)),
        (posterior.margin_cov(X[:1], none), (0, 0)),
        (posterior.win_probability(none, none), (0,)),
        (posterior.cdf(none, 0.1), (0,)),
        (posterior.quantile(none, [0.2, 0.4, 0.8]), (0, 3)),
        (posterior.sample(none, 4, 0), (0, 4)),
        (posterior.mean_gradient(none), (0, 2)),
        (posterior.var_gradient(none), (0, 2)),
        (posterior.sample_paths(3, 0)(none), (0, 3)),
    ):
        assert value.shape == shape


def test_one_row_meets_every_row():
    posterior = one_component().posterior
    truth = posterior.win_probability(np.repeat(X[:1], 9, axis=0), X)
    np.testing.assert_allclose(posterior.win_probability(X[:1], X), truth)
    np.testing.assert_allclose(posterior.win_probability(X, X[:1]), 1.0 - truth)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda p: p.mean(X[0]), "shape \\(n, n_features\\), got \\(2,\\)"),
        (lambda p: p.var(X[:, :1]), "n_features = 2, got 1"),
        (lambda p: p.cov(np.zeros((2, 3))), "n_features = 2, got 3"),
        (lambda p: p.mean_gradient(np.zeros((2, 3))), "n_features = 2, got 3"),
        (lambda p: p.win_probability(X, np.zeros((9, 3))), "n_features = 2, got 3"),
        (lambda p: p.margin(X[:3], X[:2]), "equally many rows, got 3 and 2"),
        (lambda p: p.quantile(X, 1.0), "numbers in \\(0, 1\\)"),
        (lambda p: p.quantile(X, [[0.5]]), "numbers in \\(0, 1\\)"),
        (lambda p: p.quantile(X, []), "numbers in \\(0, 1\\)"),
        (lambda p: p.quantile(X, np.nan), "numbers in \\(0, 1\\)"),
        (lambda p: p.credible_interval(X, 95), "level must lie in \\(0, 1\\), got 95"),
    ],
)
def test_bad_arguments_say_what_is_allowed(call, match):
    with pytest.raises(ValueError, match=match):
        call(one_component().posterior)


def test_white_noise_in_the_kernel_is_new_at_every_look():
    # As in scikit-learn: in the variance of an item, not in the covariance of two looks at it.
    plain, noisy = RBF(0.8), RBF(0.8) + WhiteKernel(0.3)
    duels = won(*random_duels(0, 8, 14))
    posterior = solve(EP(), ConstantKernel(1.0) * plain, duels, NOISE).posterior
    white = replace(posterior, kernel=noisy)
    np.testing.assert_allclose(white.mean(X), posterior.mean(X))
    np.testing.assert_allclose(white.cov(X), posterior.cov(X) + 0.3 * np.eye(9), atol=1e-12)
    assert white.margin(X, X)[1] == pytest.approx(0.6)
