"""Acquisitions: their values by quadrature and simulation, their gradients by differences."""

import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from skpref.fitting._model import Model
from skpref.gp._posterior import Posterior
from skpref.inference import Hallucination
from skpref.likelihoods import Probit
from skpref.optimize import _model
from skpref.optimize._acquisition import (
    ACQUISITIONS,
    CandidateMoments,
    Numeric,
    PathSurface,
    Surface,
    _log_improvement,
    expected_improvement,
    log_expected_improvement,
)
from skpref.optimize._maximiser import maximise
from skpref.optimize._spaces import make_space
from skpref.optimize._strategies import acquisition_surface

# Where an improvement is neither sure nor hopeless, so that simulation sees all.
X_SIMULATED = {1: (0.25, 1.0), 4: (0.95, 0.1)}
KERNELS = {
    "matern32": Matern([0.4, 0.7], nu=1.5),
    "rbf": ConstantKernel(2.0) * RBF([0.3, 0.6]),
    "sum": Matern(0.5, nu=2.5) + 0.5 * DotProduct(0.3),
}


def posterior(kernel=KERNELS["matern32"], n_components=1, seed=0, noise_variance=0.02):
    """A Gaussian posterior with sound algebra, and components of the mean around it."""
    rng = np.random.default_rng(seed)
    Z = rng.random((7, 2))
    noisy = kernel(Z) + 0.1 * np.eye(7)
    inverse = np.linalg.inv(noisy)
    factor = np.linalg.cholesky(inverse)
    weights = inverse @ rng.standard_normal((7, n_components))
    return Posterior(kernel, Probit(noise_variance), Z, weights, factor)


def hallucinating(kernel, noise_variance):
    return _model.Models(Model(kernel, Probit(noise_variance, "fixed"), Hallucination()))


def fitted(models, rows, winner, loser):
    told = [(pair, 1) for pair in zip(winner.tolist(), loser.tolist(), strict=True)]
    return _model.fit(models, _model.Memory(models.theta), rows, told, False)


def surface(name, post, incumbent=(0.3, 0.8)):
    return acquisition_surface(name, post, np.array(incumbent), post.anchors)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_components", [1, 5])
@pytest.mark.parametrize("name", ACQUISITIONS)
def test_gradients_agree_with_central_differences(name, n_components, kernel):
    found = surface(name, posterior(KERNELS[kernel], n_components))
    X = np.random.default_rng(1).random((12, 2))
    value, gradient = found.value_and_gradient(X)
    np.testing.assert_allclose(value, found.value(X), rtol=1e-9, atol=1e-12)
    step = 1e-5
    for k in range(2):
        above, below = X.copy(), X.copy()
        above[:, k] += step
        below[:, k] -= step
        slope = (found.value(above) - found.value(below)) / (2 * step)
        np.testing.assert_allclose(gradient[:, k], slope, rtol=2e-5, atol=2e-6)


def draws(post, x, incumbent, n=400_000, seed=3):
    """Utilities of an item and the incumbent from the mixture, and the components drawn."""
    rng = np.random.default_rng(seed)
    both = np.array([x, incumbent])
    cross = post.kernel(both, post.anchors)
    half = cross @ post.factor
    root = np.linalg.cholesky(post.kernel(both) - half @ half.T)
    which = rng.integers(post.n_components, size=n)
    return (cross @ post.weights)[:, which] + root @ rng.standard_normal((2, n)), which


def closed(post, f, which, threshold):
    """Every acquisition as a plain average over draws."""
    margin = f[0] - f[1]
    win = stats.norm.cdf(margin / np.sqrt(2 * post.likelihood.noise_variance))
    mean_win = win.mean()
    entropy = stats.bernoulli(win).entropy()
    improvement = np.maximum(f[0] - threshold[which], 0.0)
    return {
        "ei": improvement.mean(),
        "log_ei": np.log(improvement.mean()),
        "pi": np.log((improvement > 0).mean()),
        "ucb": f[0].mean() + 2.0 * f[0].std(),
        "mean": f[0].mean(),
        "bvei": np.maximum(margin, 0.0).mean(),
        "muc": win.var(),
        "eubo": f.max(axis=0).mean(),
        "eiig": 0.1 * np.log(mean_win) + stats.bernoulli(mean_win).entropy() - entropy.mean(),
        "duel_ucb": np.quantile(margin, 0.95),
    }


@pytest.mark.parametrize("n_components", [1, 4])
def test_values_agree_with_simulation(n_components):
    post = posterior(n_components=n_components)
    incumbent, x = np.array([0.3, 0.8]), np.array(X_SIMULATED[n_components])
    f, which = draws(post, x, incumbent)
    threshold = post.component_means(post.anchors).max(axis=0)
    truth = closed(post, f, which, threshold)
    for name, expected in truth.items():
        value = surface(name, post).value(x[None])[0]
        assert value == pytest.approx(expected, abs=6e-3), name


@pytest.mark.parametrize("z", [3.0, 0.0, -0.999, -1.001, -5.0, -30.0, -999.0, -1001.0, -1e5])
def test_log_improvement_far_in_the_tail(z):
    # φ(z) + zΦ(z) = φ(z) ∫ t exp(−t²/2 + zt) dt over t > 0, here in units of the integrand's width
    width = 1.0 / max(1.0, -z)

    def integrand(s):
        t = s * width
        return s * np.exp(-0.5 * t * t + z * t)

    part, _ = integrate.quad(integrand, 0.0, 60.0, epsabs=0.0, epsrel=1e-12, limit=200)
    exact = stats.norm.logpdf(z) + 2.0 * np.log(width) + np.log(part)
    assert _log_improvement(z) == pytest.approx(exact, rel=1e-10)


def test_log_of_expected_improvement_has_a_gradient_where_it_underflows():
    hopeless = CandidateMoments(
        np.array([[-50.0]]), np.array([1.0]), np.zeros(1), np.zeros(1), 1.0, np.zeros(1), 0.1
    )
    assert expected_improvement(hopeless).value[0] == 0.0
    found = log_expected_improvement(hopeless)
    assert np.isfinite(found.value[0])
    assert found.by_mean[0, 0] == pytest.approx(50.0, rel=1e-2)


def test_expected_improvement_on_a_hallucination_is_that_of_the_gp_given_the_margins():
    """HB-EI with one hallucination, by dense algebra on the noisy margins alone."""
    rng = np.random.default_rng(0)
    rows = rng.random((9, 2))
    winner, loser = np.array([0, 2, 4, 0, 0, 6, 7]), np.array([1, 3, 5, 2, 1, 8, 0])
    kernel, noise = Matern([0.4, 0.7], nu=1.5), 0.01
    models = hallucinating(kernel, noise)
    fit, memory = fitted(models, rows, winner, loser)
    post, v = _model.hallucinate(fit, memory.margins, rng)
    assert (v > 0).all()

    A = np.eye(9)[winner] - np.eye(9)[loser]
    noisy = A @ kernel(rows) @ A.T + 2 * noise * np.eye(len(v))
    X = rng.random((30, 2))
    cross = kernel(X, rows) @ A.T
    mean = cross @ np.linalg.solve(noisy, v)
    var = 1.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(noisy, cross.T))
    best = (kernel(rows) @ A.T @ np.linalg.solve(noisy, v)).max()
    deviation = np.sqrt(var)
    z = (mean - best) / deviation
    ei = deviation * (stats.norm.pdf(z) + z * stats.norm.cdf(z))
    found = acquisition_surface("ei", post, rows[0], rows).value(X)
    np.testing.assert_allclose(found, ei, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        acquisition_surface("mean", post, rows[0], rows).value(X), mean, atol=1e-9
    )


@pytest.mark.slow
def test_hallucinations_follow_the_truncated_normal():
    """Warm chains, one draw after another: moments against rejection sampling."""
    rng = np.random.default_rng(1)
    rows = rng.random((4, 2))
    winner, loser = np.array([0, 2, 0]), np.array([1, 3, 2])
    kernel, noise = RBF(0.5), 0.05
    models = hallucinating(kernel, noise)
    fit, memory = fitted(models, rows, winner, loser)
    v, kept = memory.margins, []
    for _ in range(4000):
        _, v = _model.hallucinate(fit, v, rng)
        kept.append(v)
    A = np.eye(4)[winner] - np.eye(4)[loser]
    noisy = A @ kernel(rows) @ A.T + 2 * noise * np.eye(3)
    free = rng.multivariate_normal(np.zeros(3), noisy, 400_000)
    exact = free[(free > 0).all(axis=1)]
    np.testing.assert_allclose(np.mean(kept, axis=0), exact.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(np.transpose(kept)), np.cov(exact.T), atol=0.03)
    successive = np.corrcoef(np.array(kept)[:-1, 0], np.array(kept)[1:, 0])[0, 1]
    assert abs(successive) < 0.1


@pytest.mark.slow
def test_margins_go_on_from_the_last_hallucination_in_the_order_of_telling():
    rng = np.random.default_rng(2)
    rows = rng.random((3, 1))
    winner, loser = np.array([0, 1, 0, 0]), np.array([1, 2, 1, 2])  # the first duel came twice
    models = hallucinating(RBF(0.5), 1e-4)
    fit, memory = fitted(models, rows, winner, loser)
    values = np.array([_model.hallucinate(fit, memory.margins, rng)[1] for _ in range(200)])
    # With hardly any noise repeated duels have the same margin, and margins add up.
    np.testing.assert_allclose(values[:, 0], values[:, 2], atol=0.1)
    np.testing.assert_allclose(values[:, 0] + values[:, 1], values[:, 3], atol=0.15)


def bumps(X):
    """Three bumps; the highest at (0.8, 0.3)."""
    centres, heights = np.array([[0.2, 0.2], [0.8, 0.3], [0.4, 0.9]]), [0.8, 1.0, 0.9]
    squares = ((X[:, None, :] - centres) ** 2).sum(axis=2)
    return np.exp(-squares / 0.01) @ heights


def test_the_highest_of_several_bumps_is_found():
    space = make_space([[0, 1], [0, 1]])
    row, value = maximise(Numeric(bumps), space, np.zeros((0, 2)), np.random.default_rng(0))
    np.testing.assert_allclose(row, [0.8, 0.3], atol=1e-4)
    assert value == pytest.approx(1.0, abs=1e-6)


def test_rows_that_are_not_allowed_are_passed_over():
    space = make_space([[0, 1], [0, 1]])

    def allowed(rows):
        return np.linalg.norm(rows - [0.8, 0.3], axis=1) > 0.2

    rng = np.random.default_rng(0)
    row, _ = maximise(Numeric(bumps), space, np.zeros((0, 2)), rng, allowed)
    assert bumps(row[None])[0] > 0.75
    assert allowed(row[None])[0]
    nothing, _ = maximise(
        Numeric(bumps), space, np.zeros((0, 2)), rng, lambda rows: np.zeros(len(rows), dtype=bool)
    )
    assert nothing is None


def test_discrete_and_continuous_parameters_are_maximised_together():
    space = make_space({"x": (0.0, 1.0), "n": (0, 40), "kind": ["a", "b", "c"]})

    def utility(rows):
        items = [space.to_item(row) for row in rows]
        return np.array(
            [
                -((item["x"] - item["n"] / 40) ** 2)
                - ((item["n"] - 33) / 40) ** 2
                + {"a": 0.0, "b": 0.1, "c": 0.05}[item["kind"]]
                for item in items
            ]
        )

    row, _ = maximise(Numeric(utility), space, np.zeros((0, 5)), np.random.default_rng(0))
    item = space.to_item(row)
    assert (item["n"], item["kind"]) == (33, "b")
    assert item["x"] == pytest.approx(33 / 40, abs=1e-3)


def test_the_second_rule_counts_where_the_first_allows_nothing():
    space, none = make_space([[0, 1], [0, 1]]), np.zeros((0, 2))

    def nowhere(rows):
        return np.zeros(len(rows), dtype=bool)

    def on_the_left(rows):
        return rows[:, 0] < 0.5

    for rules in ((nowhere, on_the_left), (on_the_left, nowhere)):
        row, value = maximise(Numeric(bumps), space, none, np.random.default_rng(0), *rules)
        np.testing.assert_allclose(row, [0.4, 0.9], atol=1e-3)  # the second highest bump
        assert value == pytest.approx(0.9, abs=1e-4)


def test_a_climb_values_its_start_once():
    space, climbed = make_space([[0, 1], [0, 1]]), []

    class Recorded(Numeric):
        def value_and_gradient(self, X):
            climbed.append(X[0].copy())
            return super().value_and_gradient(X)

    maximise(Recorded(bumps), space, np.zeros((0, 2)), np.random.default_rng(0))
    assert len(climbed) > 8
    assert np.all(np.any(np.diff(climbed, axis=0) != 0.0, axis=1))


def test_a_pool_is_searched_whole():
    table = np.random.default_rng(0).random((500, 2))
    space = make_space(None, table)
    row, _ = maximise(Numeric(bumps), space, np.zeros((0, 2)), np.random.default_rng(0))
    assert bumps(row[None])[0] == bumps(space.pool).max()


def test_a_function_that_is_infinite_everywhere_is_taken_in_silence():
    space, none = make_space([[0.0, 1.0]] * 2), np.zeros((0, 2))
    endless = Numeric(lambda X: np.full(len(X), np.inf))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, value = maximise(endless, space, none, np.random.default_rng(0))
    assert value == np.inf


@pytest.mark.parametrize(("kernel", "seed"), [("matern32", 5), ("sum", 5), ("sum", 27)])
def test_the_top_of_a_path_is_found(kernel, seed):
    paths = posterior(KERNELS[kernel]).sample_paths(1, seed)
    surface, space = PathSurface(paths), make_space([[0, 1], [0, 1]])
    row, value = maximise(surface, space, np.zeros((0, 2)), np.random.default_rng(seed))
    assert surface.value(row[None])[0] == pytest.approx(value, abs=1e-8)
    axis = np.linspace(0.0, 1.0, 21)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert value >= surface.value(grid).max() - 1e-9


def test_the_margin_of_the_incumbent_with_itself_is_nothing():
    post = posterior()
    incumbent = np.array([0.3, 0.8])
    found = Surface(ACQUISITIONS["bvei"], post, incumbent, np.zeros(1))
    assert found.value(incumbent[None])[0] < 1e-5
