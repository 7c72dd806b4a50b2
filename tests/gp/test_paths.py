"""Drawn functions: moments at points, exactness where promised, same values on every call."""

import pickle

import numpy as np
import pytest
from core_support import random_duels, solve, won
from scipy.stats import kstest, norm
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.gp._posterior import Posterior
from skpref.inference import EP
from skpref.kernels import Identity

FOURIER = {
    "rbf": RBF([0.7, 1.2]),
    "matern12": Matern(1.0, nu=0.5),
    "matern32": 2.0 * Matern(0.8, nu=1.5),
    "matern52": Matern([0.5, 1.5], nu=2.5),
    "sum": RBF(0.5) + 0.5 * Matern(1.5, nu=2.5),
}
EXACT = {
    "rational": RationalQuadratic(0.9, alpha=0.7),
    "linear": DotProduct(0.6),
    "linear without offset": DotProduct(0.0) + 0.4 * RationalQuadratic(),
}
SMOOTH = {
    **{name: kernel for name, kernel in FOURIER.items() if name != "matern12"},
    "product": RBF([0.7, 1.2]) * Matern(1.0, nu=2.5) + 0.3 * Matern(0.8, nu=1.5),
}
N_PATHS = 20_000
X = np.random.default_rng(8).uniform(-1.2, 1.2, (6, 2))


def posterior_of(kernel, noise_variance=0.05):
    return solve(EP(), kernel, won(*random_duels(0, 8, 14)), noise_variance).posterior


def mixture(kernel, n=3):
    single = posterior_of(kernel)
    shifts = np.random.default_rng(0).normal(size=(len(single.anchors), n))
    return Posterior(kernel, 0.05, single.anchors, single.weights + shifts, single.factor)


def agree(draws, mean, covariance, slack):
    """Moments of draws (n, n_paths) up to 4.5 standard errors and a share ``slack``."""
    sd = np.sqrt(np.diagonal(covariance))
    n = draws.shape[1]
    assert np.all(np.abs(draws.mean(axis=1) - mean) < (4.5 / np.sqrt(n)) * sd + 1e-12)
    scale = np.outer(sd, sd)
    far = np.abs(np.cov(draws) - covariance) / scale
    assert far.max() < 4.5 * np.sqrt(2.0 / n) + slack


@pytest.mark.parametrize("name", EXACT)
def test_moments_are_exact_without_random_features(name):
    for make in (posterior_of, mixture):
        posterior = make(EXACT[name])
        paths = posterior.sample_paths(N_PATHS, rng=0)
        draws = np.concatenate([paths(X[:2]), paths(X[2:])])  # in two parts
        agree(draws, posterior.mean(X), posterior.cov(X), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOURIER)
def test_moments_with_random_features(name):
    # All paths of one call share 2000 frequencies: repeated draws average their error out.
    posterior = posterior_of(FOURIER[name])
    draws = [posterior.sample_paths(N_PATHS // 20, rng)(X) for rng in range(20)]
    agree(np.concatenate(draws, axis=1), posterior.mean(X), posterior.cov(X), 0.02)


@pytest.mark.slow
def test_paths_of_a_mixture_visit_its_components():
    posterior = mixture(FOURIER["rbf"])
    draws = [posterior.sample_paths(1000, rng)(X) for rng in range(20)]
    agree(np.concatenate(draws, axis=1), posterior.mean(X), posterior.cov(X), 0.02)


@pytest.mark.parametrize("name", ["rbf", "rational"])
def test_values_follow_the_distribution(name):
    posterior = posterior_of({**FOURIER, **EXACT}[name])
    values = np.concatenate([posterior.sample_paths(100, rng)(X)[3] for rng in range(30)])
    at = X[3:4]
    sd = np.sqrt(posterior.var(at)[0])
    assert kstest(values, norm(posterior.mean(at)[0], sd).cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", [1e-6, 1e-2])
@pytest.mark.parametrize("name", ["matern52", "rational"])
def test_paths_respect_well_known_margins(name, noise_variance):
    # Hundreds of duels about few items pin the margins that every path must reproduce.
    kernel = {**FOURIER, **EXACT}[name]
    duels = won(*random_duels(0, 6, 600, noise=0.2))
    posterior = solve(EP(), kernel, duels, noise_variance).posterior
    items = duels.items
    draws = posterior.sample_paths(4000, rng=0)(items)
    mean, variance = posterior.margin(items[1:], items[:1])
    margins = draws[1:] - draws[0]
    sd = np.sqrt(variance)
    assert np.all(np.abs(margins.mean(axis=1) - mean) < 5.0 * sd / np.sqrt(4000) + 1e-9)
    np.testing.assert_allclose(margins.std(axis=1), sd, rtol=0.08)


@pytest.mark.parametrize("name", ["rbf", "rational", "linear"])
def test_the_same_items_have_the_same_values_on_every_call(name):
    posterior = posterior_of({**FOURIER, **EXACT}[name])
    paths = posterior.sample_paths(3, rng=1)
    first = paths(X)
    assert first.shape == (6, 3)
    mixed = np.concatenate([X[::-1], X[:2] + 0.1, X[:1], posterior.anchors])
    again = paths(mixed)
    np.testing.assert_allclose(again[:6], first[::-1], atol=1e-10)
    np.testing.assert_allclose(again[8], first[0], atol=1e-10)
    np.testing.assert_allclose(paths(mixed), again, atol=1e-10)
    np.testing.assert_allclose(paths(mixed[6:8].tolist()), again[6:8], atol=1e-10)
    assert paths(np.zeros((0, 2))).shape == (0, 3)
    copy = pickle.loads(pickle.dumps(paths))
    np.testing.assert_allclose(copy(X), first, atol=1e-10)


@pytest.mark.parametrize("n_paths", [1, 3])
def test_a_path_does_not_depend_on_the_company_of_an_item(n_paths):
    many = np.random.default_rng(2).uniform(-1.5, 1.5, (70, 2))
    paths = posterior_of(FOURIER["matern32"]).sample_paths(n_paths, rng=1)
    alone = np.concatenate([paths(row[None]) for row in many])
    np.testing.assert_allclose(paths(many), alone, atol=1e-12)
    each = [paths.value_and_gradient(row[None])[1] for row in many]
    np.testing.assert_allclose(paths.value_and_gradient(many)[1], np.concatenate(each), atol=1e-10)


@pytest.mark.slow
def test_one_path_alone_has_the_law_of_one_of_many():
    posterior = posterior_of(FOURIER["rbf"])
    draws = np.concatenate([posterior.sample_paths(1, rng)(X[:2]) for rng in range(800)], axis=1)
    mean, variance = posterior.margin(X[:1], X[1:2])
    for values, centre, sd in (
        (draws[0], posterior.mean(X)[0], np.sqrt(posterior.var(X)[0])),
        (draws[0] - draws[1], mean[0], np.sqrt(variance[0])),
    ):
        assert kstest(values, norm(centre, sd).cdf).pvalue > 1e-3


@pytest.mark.parametrize("n_paths", [1, 3])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_agree_with_central_differences(name, n_paths):
    paths = posterior_of(SMOOTH[name]).sample_paths(n_paths, rng=3)
    value, gradient = paths.value_and_gradient(X)
    np.testing.assert_allclose(value, paths(X), rtol=1e-12, atol=1e-13)
    moves = 1e-5 * np.eye(2)
    slopes = [(paths(X + move) - paths(X - move)) / 2e-5 for move in moves]
    np.testing.assert_allclose(gradient, np.stack(slopes, axis=1), atol=1e-6)
    assert paths.value_and_gradient(np.zeros((0, 2)))[1].shape == (0, 2, n_paths)


@pytest.mark.parametrize("name", ["product", "rational"])
@pytest.mark.parametrize("n_paths", [1, 3])
def test_one_path_for_each_item_is_a_part_of_all(name, n_paths):
    paths = posterior_of({**SMOOTH, **EXACT}[name]).sample_paths(n_paths, rng=3, n_frequencies=50)
    path = np.arange(len(X)) % n_paths
    value, gradient = paths.value_and_gradient(X)
    own, along = paths.value_and_gradient_of(X, path)
    row = np.arange(len(X))
    np.testing.assert_allclose(own, value[row, path], rtol=1e-10)
    np.testing.assert_allclose(along, gradient[row, :, path], rtol=1e-8, atol=1e-10)
    assert paths.has_features == (name == "product")


def test_the_gradient_of_a_linear_path_is_its_direction():
    paths = posterior_of(EXACT["linear"]).sample_paths(3, rng=3)
    value, gradient = paths.value_and_gradient(X)
    for one in gradient:
        np.testing.assert_allclose(one, gradient[0], atol=1e-4)
    rise = np.einsum("nd,dp->np", X - X[0], gradient[0])
    np.testing.assert_allclose(value - value[0], rise, atol=1e-4)


def test_gradients_of_a_path_drawn_as_it_goes():
    paths = posterior_of(EXACT["rational"]).sample_paths(2, rng=3)
    gradient = paths.value_and_gradient(X)[1]
    slopes = [(paths(X + move) - paths(X - move)) / 0.02 for move in 0.01 * np.eye(2)]
    np.testing.assert_allclose(gradient, np.stack(slopes, axis=1), atol=5e-3)
    again, repeated = paths.value_and_gradient(X)
    np.testing.assert_allclose(again, paths(X), atol=1e-10)
    np.testing.assert_allclose(repeated, gradient, atol=1e-6)


def test_gradients_are_of_items_of_the_right_shape():
    paths = posterior_of(FOURIER["rbf"]).sample_paths(1, rng=0)
    with pytest.raises(ValueError, match="n_features = 2, got 3"):
        paths.value_and_gradient(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="reshape"):
        paths.value_and_gradient(np.zeros(2))


@pytest.mark.parametrize("name", ["rbf", "rational"])
def test_draws_repeat_with_their_seed(name):
    posterior = posterior_of({**FOURIER, **EXACT}[name])
    one, two = (posterior.sample_paths(2, rng=7)(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, posterior.sample_paths(2, rng=8)(X))


@pytest.mark.parametrize("name", ["rbf", "rational"])
def test_a_path_is_as_smooth_as_its_kernel(name):
    paths = posterior_of({**FOURIER, **EXACT}[name]).sample_paths(5, rng=0)
    line = np.linspace(-1.0, 1.0, 201)[:, None] * [[0.6, 0.8]]
    values = paths(line)
    kinks = np.abs(np.diff(values, 2, axis=0)) / 0.01**2
    assert kinks.max() < 60.0  # second derivatives are of order one over lengthscale²


def test_a_dense_grid_asked_for_point_by_point_is_one_draw():
    posterior = posterior_of(EXACT["rational"])
    paths = posterior.sample_paths(2000, rng=0)
    grid = np.linspace(-1.0, 1.0, 30)[:, None] * [[1.0, 1.0]]
    draws = np.concatenate([paths(grid[i : i + 1]) for i in range(30)])
    values = np.linalg.eigvalsh(np.cov(draws) - posterior.cov(grid))
    assert np.abs(values).max() < 0.15 * np.linalg.eigvalsh(posterior.cov(grid)).max()


def test_items_without_features_have_paths():
    duels = np.array([[0, 1], [1, 2], [0, 2], [0, 1]])
    table = ItemTable.from_names(["a", "b", "c", "d"])
    model = PairwisePreferenceRegressor(items=table, optimizer=None).fit(duels)
    assert isinstance(model.kernel_, Identity)
    every = np.arange(4.0)[:, None]
    draws = model.posterior_.sample_paths(N_PATHS, rng=0)(every)
    agree(draws, model.posterior_.mean(every), model.posterior_.cov(every), 0.0)
