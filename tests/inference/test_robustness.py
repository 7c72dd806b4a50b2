"""Nothing breaks at the edges: little noise, contradictions, near-equal items, odd scales.

Warnings are errors throughout; where the engine cannot converge the warning must say what to do.
"""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import tilted_by_quadrature
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.inference import EP, Laplace

pytestmark = pytest.mark.filterwarnings("error")


def utility(items):
    return np.sin(items[..., 0]) + 0.5 * items.sum(axis=-1)


def make_duels(n_duels, n_features=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_duels, 2, n_features))
    noisy = utility(X) + noise * rng.standard_normal((n_duels, 2))
    return X, (noisy[:, 0] > noisy[:, 1]).astype(int)


def make_pairs(items, n_duels, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(len(items), size=n_duels)
    return np.column_stack([first, (first + rng.integers(1, len(items), n_duels)) % len(items)])


def check_sound(model, X):
    """Probabilities in [0, 1], finite logarithms, deviations no larger than the prior's."""
    probability, log_probability = model.predict_proba(X), model.predict_log_proba(X)
    assert np.all((probability >= 0.0) & (probability <= 1.0))
    assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-10)
    assert np.isfinite(log_probability).all()
    assert np.all(log_probability <= 0.0)
    items = X.reshape(-1, X.shape[2])
    mean, std = model.predict(items, return_std=True)
    assert np.isfinite(mean).all()
    assert np.all(std <= np.sqrt(model.kernel_.diag(items)) * (1.0 + 1e-9))
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert model.log_marginal_likelihood_value_ <= 1e-9  # of a probability
    assert np.isfinite(model.sample_y(items[:5], 3)).all()


@pytest.fixture(params=["laplace", "ep"])
def learning(request):
    return PairwisePreferenceRegressor(inference=request.param)


@pytest.fixture
def fixed(learning):
    return learning.set_params(optimizer=None)


# -- little noise --------------------------------------------------------------------------


@pytest.mark.parametrize("flipped", [0.0, 0.2])
@pytest.mark.parametrize("learned", [False, True])
def test_little_noise(learning, learned, flipped):
    X, y = make_duels(120)
    y = np.where(np.random.default_rng(1).random(120) < flipped, 1 - y, y)
    learning.set_params(noise_variance=1e-6, noise_variance_bounds="fixed")
    if not learned:
        learning.set_params(optimizer=None)
    learning.fit(X, y)
    assert learning.noise_variance_ == 1e-6
    check_sound(learning, X)
    test, truth = make_duels(200, noise=0.0, seed=2)
    # Held to no noise, the model must bend to every wrong answer; it is better than guessing.
    assert learning.score(test, truth) > (0.6 if flipped else 0.9)


@pytest.mark.parametrize("noise", [1e-12, 1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_noise_of_any_size(fixed, noise):
    X, y = make_duels(60)
    fixed.set_params(noise_variance=noise).fit(X, y)
    check_sound(fixed, X)
    assert fixed.score(X, y) > 0.9
    largest = np.abs(fixed.predict_proba(X) - 0.5).max()
    assert largest < 0.1 if noise >= 1e3 else largest > 1e-4


def at_bound(what):
    return pytest.warns(ConvergenceWarning, match=f"ended with {what}: .*Widen these bounds")


def test_noise_at_its_bounds_is_told(learning):
    X, y = make_duels(60, noise=0.0)
    with at_bound("noise_variance at its lower bound 0.5"):
        learning.set_params(noise_variance_bounds=(0.5, 0.6)).fit(X, y)
    assert_allclose(learning.noise_variance_, 0.5)  # nothing is noisy: the least
    coin = np.random.default_rng(0).integers(2, size=400)
    items = np.random.default_rng(1).standard_normal((6, 2))
    pairs = make_pairs(items, 400)
    learning.set_params(noise_variance_bounds=(1e-4, 0.01), items=items)
    with at_bound("noise_variance at its upper bound 0.01"):
        learning.fit(pairs, coin)
    assert_allclose(learning.noise_variance_, 0.01)  # everything is noise: the most
    check_sound(learning, items[pairs])


def test_lengthscales_at_their_bounds_are_told(learning):
    X, y = make_duels(60)
    with at_bound("kernel length_scale at its upper bound 1.1"):
        learning.set_params(kernel=RBF(1.0, (0.9, 1.1))).fit(X, y)
    assert_allclose(learning.kernel_.length_scale, 1.1)
    learning.set_params(kernel=ConstantKernel(1.0, (0.9, 1.1)) * RBF(1.0, (0.1, 0.2)))
    with at_bound(".*kernel length_scale at its upper bound 0.2"):
        learning.fit(X, y)
    assert_allclose(learning.kernel_.k2.length_scale, 0.2)


# -- contradictions, repetitions -----------------------------------------------------------


@pytest.mark.parametrize("noise", [0.01, 1e-6])
def test_thousands_of_contradictory_duels(learning, noise):
    items = np.random.default_rng(0).standard_normal((40, 2))
    pairs = make_pairs(items, 2000)
    coin = np.random.default_rng(1).integers(2, size=2000)
    # An item effect would follow the chance majorities.
    learning.set_params(kernel=RBF([1.0, 1.0]), items=items, noise_variance=noise)
    for bounds in ("fixed", (1e-4, 10.0)):
        learning.set_params(noise_variance_bounds=bounds)
        told = at_bound("noise_variance at its upper bound 10")
        with nullcontext() if bounds == "fixed" else told:
            learning.fit(pairs, coin)
        check_sound(learning, items[pairs])
        assert np.abs(learning.predict_proba(pairs) - 0.5).max() < 0.2
    assert learning.noise_variance_ > 1.0  # coins: all the noise that it may have


def test_contradictory_duels_of_distinct_items(fixed):
    """Every duel has items of its own, and each was answered both ways."""
    X, y = make_duels(150)
    fixed.set_params(noise_variance=1e-6)
    fixed.fit(np.concatenate([X, X]), np.concatenate([y, 1 - y]))
    check_sound(fixed, X)
    assert_allclose(fixed.predict_proba(X), 0.5, atol=1e-6)


def test_one_duel(learning):
    X, _ = make_duels(1, 5)
    check_sound(learning.fit(X), make_duels(20, 5, seed=1)[0])
    assert learning.predict_proba(X)[0, 1] > 0.5


@pytest.mark.parametrize("n_duels", [2, 40, 300])
def test_all_duels_alike(learning, n_duels):
    X, _ = make_duels(1, 3)
    many = np.repeat(X, n_duels, axis=0)
    once = clone(learning).set_params(optimizer=None).fit(X).predict_proba(X)[0, 1]
    check_sound(learning.fit(many), make_duels(20, 3, seed=1)[0])
    assert once < learning.predict_proba(X)[0, 1] < 1.0
    assert len(learning.duels_.items) == 2


@pytest.mark.parametrize("n_duels", [5_000, 50_000])
def test_one_duel_told_tens_of_thousands_of_times(n_duels):
    """EP's fixed point, verified by hand on the only margin that there is."""
    duel = np.array([[[0.0, 0.0], [1.0, 0.5]]])
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None)
    model.fit(np.repeat(duel, n_duels, axis=0))
    mean, std = model.predict(duel, return_std=True)
    prior = 2.0 - 2.0 * RBF(0.5)(duel[0])[0, 1]
    assert np.isfinite(mean[0]) and 0.0 < mean[0] < 3.0
    assert 0.0 < std[0] < np.sqrt(prior)
    assert 0.999 < model.predict_proba(duel)[0, 1] < 1.0
    tau = (1.0 / std[0] ** 2 - 1.0 / prior) / n_duels
    nu = mean[0] / std[0] ** 2 / n_duels
    cavity = 1.0 / std[0] ** 2 - tau
    _, truth, spread = tilted_by_quadrature(
        (mean[0] / std[0] ** 2 - nu) / cavity, 1.0 / cavity, model.noise_variance_
    )
    # Ten digits of the posterior leave this many of a single site.
    assert_allclose(mean[0] - truth, 0.0, atol=1e-6 * std[0])
    assert_allclose(std[0] ** 2, spread, rtol=1e-6)


def test_many_unanimous_duels_among_few_items(learning):
    items = np.random.default_rng(0).standard_normal((10, 2))
    pairs = make_pairs(items, 5000)
    y = utility(items)[pairs[:, 0]] > utility(items)[pairs[:, 1]]
    learning.set_params(items=items).fit(pairs, y)
    check_sound(learning, items[pairs[:50]])
    assert_array_equal(np.argsort(learning.predict(items)), np.argsort(utility(items)))


# -- items ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0, nu=1.5), DotProduct(1.0)], ids=str)
def test_hundreds_of_almost_identical_items(fixed, kernel):
    rng = np.random.default_rng(0)
    items = np.array([1.0, 2.0]) + 1e-9 * rng.standard_normal((500, 2))
    pairs = make_pairs(items, 500)
    y = items[pairs[:, 0], 0] > items[pairs[:, 1], 0]
    fixed.set_params(items=ItemTable(items), kernel=kernel)
    for noise in (0.01, 1e-6):
        fixed.set_params(noise_variance=noise).fit(pairs, y)
        check_sound(fixed, items[pairs])
        # The prior lets such neighbours differ by next to nothing.
        assert_allclose(fixed.predict_proba(pairs), 0.5, atol=1e-3)


def test_default_kernel_follows_the_spread_of_close_items(learning):
    """All 500 lie within 1e-9, but they are what there is."""
    rng = np.random.default_rng(0)
    items = np.array([1.0, 2.0]) + 1e-9 * rng.standard_normal((500, 2))
    pairs = make_pairs(items, 500)
    y = items[pairs[:, 0], 0] > items[pairs[:, 1], 0]
    learning.set_params(items=ItemTable(items), optimizer=None).fit(pairs, y)
    check_sound(learning, items[pairs])
    assert learning.score(pairs, y) > 0.95


def test_clusters_and_outliers(learning):
    rng = np.random.default_rng(0)
    items = rng.integers(2, size=(30, 2)) + 1e-9 * rng.standard_normal((30, 2))
    items[0] = [1e4, -1e4]
    pairs = make_pairs(items, 120)
    y = items[pairs[:, 0]].sum(axis=1) > items[pairs[:, 1]].sum(axis=1)
    check_sound(learning.set_params(items=items).fit(pairs, y), items[pairs])


def test_more_features_than_duels(learning):
    X, y = make_duels(8, 30)
    check_sound(learning.fit(X, y), X)
    assert learning.score(X, y) == 1.0


# -- scales of the features ----------------------------------------------------------------


SCALES = {
    "million": np.full(3, 1e6),
    "millionth": np.full(3, 1e-6),
    "mixed": np.array([1e6, 1.0, 1e-6]),
}


def test_units_of_the_features_do_not_matter(learning):
    X, y = make_duels(80, 3)
    test, _ = make_duels(100, 3, seed=1)
    plain = clone(learning).fit(X, y).predict_proba(test)
    assert np.ptp(plain) > 0.8
    for scale, offset in (
        (SCALES["million"], 10.0),
        (SCALES["millionth"], 0.0),
        (SCALES["mixed"], 10.0),
    ):
        found = learning.fit((X + offset) * scale, y).predict_proba((test + offset) * scale)
        assert np.abs(found - plain).max() < 1e-4, (scale, offset)


def test_a_constant_feature_does_not_matter(learning):
    X, y = make_duels(80, 2)
    test, _ = make_duels(100, 2, seed=1)

    def with_constant(X, value):
        return np.concatenate([X, np.full((*X.shape[:2], 1), value)], axis=2)

    # Three features have a prior of their own (√3), so compare constants with each other.
    zero = clone(learning).fit(with_constant(X, 0.0), y).predict_proba(with_constant(test, 0.0))
    for value in (-1e6, 0.1):
        found = learning.fit(with_constant(X, value), y).predict_proba(with_constant(test, value))
        assert np.abs(found - zero).max() < 1e-4
    all_constant = np.ones((5, 2, 2))
    with pytest.warns(UserWarning, match="equal features"):
        check_sound(learning.fit(all_constant), all_constant)
    assert_allclose(learning.predict_proba(all_constant), 0.5)


# -- far tails -----------------------------------------------------------------------------


@pytest.mark.parametrize("amplitude", [1e4, 1e8, 1e12])
def test_huge_amplitude_and_little_noise(fixed, amplitude):
    X, y = make_duels(60)
    kernel = ConstantKernel(amplitude, "fixed") * RBF(1.0, "fixed")
    fixed.set_params(kernel=kernel, noise_variance=1e-6).fit(X, y)
    check_sound(fixed, X)
    if amplitude < 1e12:  # the ratio to the noise is beyond the digits of a double
        assert fixed.score(X, y) == 1.0


@pytest.mark.parametrize("distance", [1.0, 50.0, 1e3, 1e6])
def test_logarithms_many_standard_deviations_out(fixed, distance):
    """A slope known to 2 %, read at a distance: Gordon's bounds on the tail of the normal."""
    pair = np.array([[1.0], [0.0]])
    y = np.arange(10_000) % 10 > 0  # one upset in ten
    fixed.set_params(kernel=100.0 * DotProduct(1e-3), noise_variance=0.5)
    fixed.fit(np.repeat(pair[None], 10_000, axis=0), y)
    far = distance * pair[None]
    check_sound(fixed, far)
    margin, std = fixed.predict(far, return_std=True)
    u = margin[0] / np.hypot(std[0], 1.0)
    assert u > min(distance, 40.0)
    log_density = -0.5 * u**2 - 0.5 * np.log(2.0 * np.pi)
    lost, won = fixed.predict_log_proba(far)[0]
    assert log_density - np.log(u + 1.0 / u) <= lost <= log_density - np.log(u)
    # log1p(−x) ≈ −x; beneath the smallest number the logarithm may only be 0
    assert_allclose(won, np.log1p(-np.exp(lost)), rtol=1e-9, atol=1e-300)


# -- where an engine gives up --------------------------------------------------------------


@pytest.mark.parametrize("engine", [Laplace(max_iter=1), EP(max_iter=1)], ids=str)
def test_no_convergence_says_what_to_do(engine):
    X, y = make_duels(60)
    model = PairwisePreferenceRegressor(inference=engine, optimizer=None)
    name = type(engine).__name__
    with pytest.warns(ConvergenceWarning, match=rf"^{name} stopped after 1 iter.*tol=") as caught:
        model.fit(X, y)
    text = str(caught[0].message)
    assert re.search(rf"Raise noise_variance.*inference={name}\(max_iter=", text)
    assert caught[0].filename == __file__  # the user's line
    check_sound(model, X)
    model.set_params(inference__max_iter=500).fit(X, y)  # the remedy
    check_sound(model, X)
