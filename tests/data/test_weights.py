"""Weights of answers: whole ones are repetitions, others are powers of the likelihood."""

import numpy as np
import pytest
from core_support import TIGHT_EP, TIGHT_LAPLACE, only, random_duels, solve, won
from judged_support import make_duels, make_items
from likelihoods_support import Logistic
from numpy.testing import assert_allclose, assert_array_equal
from oracles import central_gradient, slopes_along_signs
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.fitting._model import Model
from skpref.inference import EP, Laplace
from skpref.likelihoods import Probit

ENGINES = {"ep": TIGHT_EP, "laplace": TIGHT_LAPLACE}
SAMPLED = pytest.mark.filterwarnings("ignore:The chains have not mixed")


@pytest.fixture(params=ENGINES)
def model(request):
    engine = ENGINES[request.param]
    return PairwisePreferenceRegressor(RBF(1.0), inference=engine, noise_variance=0.1)


@pytest.fixture
def held(model):
    return model.set_params(optimizer=None)


@pytest.fixture(scope="module")
def data():
    X, y = make_duels(make_items())
    rng = np.random.default_rng(2)
    return X, y, rng.integers(0, 4, len(y)), rng.exponential(size=len(y))


def assert_same(one, other, X, **tolerance):
    assert_allclose(one.predict(X), other.predict(X), **tolerance)
    stds = [each.predict(X, return_std=True)[1] for each in (one, other)]
    assert_allclose(*stds, **tolerance)
    evidence = [each.log_marginal_likelihood_value_ for each in (one, other)]
    assert_allclose(*evidence, **tolerance)


# -- in the estimator ----------------------------------------------------------------------------


def test_whole_weights_are_repeated_duels(held, data):
    X, y, weight, _ = data
    one = clone(held).fit(X, y, sample_weight=weight)
    other = held.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same(one, other, X, rtol=1e-9, atol=1e-9)


def test_whole_weights_are_repeated_duels_while_learning(model, data):
    X, y, weight, _ = data
    one = clone(model).fit(X, y, sample_weight=weight)
    other = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(one.kernel_.theta, other.kernel_.theta, atol=1e-6)
    assert_allclose(one.noise_variance_, other.noise_variance_, rtol=1e-6)


def test_no_weight_is_absence(held, data):
    X, y, _, weight = data
    kept = np.arange(len(y)) % 3 > 0
    one = clone(held).fit(X, y, sample_weight=np.where(kept, weight, 0.0))
    other = held.fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_same(one, other, X, rtol=1e-12, atol=1e-12)
    assert one.comparisons_ == other.comparisons_


def test_weights_of_one_are_none_and_a_number_is_for_all(held, data):
    X, y, _, _ = data
    plain = clone(held).fit(X, y)
    assert_same(clone(held).fit(X, y, sample_weight=np.ones(len(y))), plain, X, rtol=1e-14)
    two = clone(held).fit(X, y, sample_weight=2.0)
    twice = held.fit(np.concatenate([X, X]), np.concatenate([y, y]))
    assert_same(two, twice, X, rtol=1e-9, atol=1e-9)


def test_shares_of_a_duel_add_up(held, data):
    X, y, _, weight = data
    share = np.random.default_rng(5).uniform(0.1, 0.9, len(y))
    split = np.concatenate([share * weight, (1.0 - share) * weight])
    one = clone(held).fit(np.concatenate([X, X]), np.concatenate([y, y]), sample_weight=split)
    assert_same(one, held.fit(X, y, sample_weight=weight), X, rtol=1e-8, atol=1e-8)


def test_pairs_of_rated_items_weigh_the_product(held):
    items, rng = make_items(), np.random.default_rng(3)
    rating, weight = rng.permutation(12), rng.uniform(0.2, 2.0, 12)
    high, low = np.nonzero(rating[:, None] > rating)
    pairs = np.stack([items[high], items[low]], axis=1)
    one = clone(held).fit(items, rating, sample_weight=weight)
    other = held.fit(pairs, sample_weight=weight[high] * weight[low])
    assert_same(one, other, pairs, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@SAMPLED
@pytest.mark.parametrize("inference", ["gibbs", "hmc"])
def test_sampled_engines_take_whole_weights_alone(inference, data):
    X, y, weight, fraction = data
    model = PairwisePreferenceRegressor(
        RBF(1.0), inference=inference, noise_variance=0.1, optimizer=None, random_state=0
    )
    with pytest.raises(ValueError, match=r"number of repetitions, got .*whole.*'ep' or 'lapla"):
        clone(model).fit(X, y, sample_weight=fraction)
    one = clone(model).fit(X, y, sample_weight=weight)
    other = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(59), "got 59 values of sample_weight for 60 rows"),
        (np.ones((60, 2)), r"sample_weight of shape \(60, 2\) for 60 rows"),
        (np.full(60, -1.0), "finite numbers of at least 0, got -1.0"),
        (np.full(60, np.nan), "finite numbers of at least 0, got nan"),
        (np.full(60, 1e300), r"at most 1e\+12 times; got 1e\+300 .*Divide all weights"),
        (np.zeros(60), "sample_weight is zero.*Give some duels a positive weight"),
    ],
)
def test_bad_weights_say_what_is_allowed(weight, match, data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=match):
        PairwisePreferenceRegressor(optimizer=None).fit(X, y, sample_weight=weight)


# -- fractions of a duel: the truth by other means -------------------------------------------------


def test_masked_weights_are_missing(held, data):
    X, y, _, _ = data
    weight = np.ma.masked_array(np.ones(len(X)), mask=np.arange(len(X)) < 2)
    with pytest.raises(ValueError, match="finite numbers of at least 0, got nan"):
        held.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("value", ["heavy", 1.0 + 0.5j], ids=str)
def test_weights_that_are_no_numbers_are_named(held, data, value):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="sample_weight must hold numbers of at least 0"):
        held.fit(X, y, sample_weight=[value] * len(X))


def weighted(seed=1):
    """Duels told again and contradicted, with weights from 0.05 to 2."""
    items, winner, loser = random_duels(seed, 6, 14, noise=1.0)
    weight = np.exp(np.random.default_rng(seed).uniform(np.log(0.05), np.log(2.0), 14))
    return items, winner, loser, weight


@pytest.mark.parametrize("space", ["margins", "items"])
@pytest.mark.parametrize("noise_variance", [0.01, 0.3])
def test_laplace_ends_at_the_mode_of_the_weighted_posterior(noise_variance, space):
    """The mode by scipy, the determinant of a numerical Hessian."""
    items, winner, loser, weight = weighted()
    kernel, sd = RBF(1.2), np.sqrt(2.0 * noise_variance)
    root = np.linalg.cholesky(kernel(items) + 1e-13 * np.eye(6))

    def height(u):  # of whitened utilities, f = root u
        f = root @ u
        return weight @ log_ndtr((f[winner] - f[loser]) / sd) - 0.5 * u @ u

    mode = minimize(lambda u: -height(u), np.zeros(6), method="BFGS", tol=1e-11).x
    found = solve(TIGHT_LAPLACE, kernel, won(items, winner, loser, weight), noise_variance, space)
    assert_allclose(found.posterior.mean(items), root @ mode, atol=1e-6)
    hessian = np.stack(
        [central_gradient(lambda u, i=i: central_gradient(height, u, 1e-2)[i], mode, 1e-2)
         for i in range(6)]
    )  # fmt: skip
    evidence = height(mode) - 0.5 * np.linalg.slogdet(-hessian)[1]
    assert found.log_evidence == pytest.approx(evidence, abs=1e-5)
    covariance = root @ np.linalg.solve(-hessian, root.T)
    assert_allclose(found.posterior.cov(items), covariance, atol=1e-5)


@pytest.mark.parametrize("space", ["margins", "items"])
@pytest.mark.parametrize("weight", [1e-3, 0.3, 0.99])
@pytest.mark.parametrize("likelihood", [Probit(0.02), Logistic(0.2)], ids=str)
def test_ep_is_exact_for_a_share_of_one_duel(likelihood, weight, space):
    items = np.array([[0.0], [0.7]])
    found = solve(TIGHT_EP, RBF(0.5), won(items, [1], [0], [weight]), likelihood, space)
    prior = 2.0 - 2.0 * RBF(0.5)(items)[0, 1]
    z = np.linspace(-12.0, 12.0, 400_001) * np.sqrt(prior)
    scale = 0.2  # of both: 2σ² is 0.2²
    log_factor = log_ndtr(z / scale) if isinstance(likelihood, Probit) else -np.logaddexp(
        0.0, -z / scale
    )  # fmt: skip
    density = np.exp(weight * log_factor - 0.5 * z**2 / prior) / np.sqrt(2.0 * np.pi * prior)
    mass = density.sum()
    mean = density @ z / mass
    assert found.log_evidence == pytest.approx(np.log(mass * (z[1] - z[0])), abs=1e-10)
    margin, variance = found.posterior.margin(items[1:], items[:1])
    assert margin[0] == pytest.approx(mean, rel=1e-8)
    assert variance[0] == pytest.approx(density @ (z - mean) ** 2 / mass, rel=1e-8)


@pytest.mark.parametrize(
    ("likelihood", "engine", "space"),
    [
        pytest.param(Probit(0.1), "ep", "margins", marks=pytest.mark.slow),
        (Probit(0.1), "laplace", "items"),
        (Logistic(0.3), "ep", "items"),
        (Logistic(0.3), "laplace", "margins"),
    ],
    ids=str,
)
def test_gradient_of_the_evidence_against_differences(likelihood, engine, space, monkeypatch):
    only(monkeypatch, space)
    comparisons = won(*weighted(3))
    kernel = ConstantKernel(1.5) * RBF([0.5, 1.5])
    model = Model(kernel, likelihood, ENGINES[engine])

    def log_evidence(theta):
        return model.at(theta).evaluate(comparisons).approximation.sites.log_evidence

    found = model.evaluate(comparisons, eval_gradient=True)
    assert found.approximation.converged
    signs, slopes = slopes_along_signs(log_evidence, model.theta, 2e-2)
    assert_allclose(signs @ found.gradient, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", [EP(), Laplace()], ids=str)
def test_a_weight_between_whole_ones_is_between_them(engine):
    items = np.array([[0.0], [1.0]])
    probability = [
        solve(engine, RBF(0.5), won(items, [1], [0], [w]), 0.1).posterior.win_probability(
            items[1:], items[:1]
        )[0]
        for w in (1e-4, 0.5, 0.999, 1.0, 1.001, 1.7, 2.0, 2.5, 40.0)
    ]
    assert np.all(np.diff(probability) > 0.0)
    assert probability[0] == pytest.approx(0.5, abs=0.01)
    assert np.abs(np.diff(probability[2:5])).max() < 1e-3
