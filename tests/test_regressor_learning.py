"""Learned hyperparameters, standard deviations and draws of the estimator; another library."""

import numpy as np
import pytest
from judged_support import ENGINE_NAMES, N_ITEMS
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from skpref import PairwisePreferenceRegressor
from skpref.kernels import PreferenceKernel

# -- standard deviations, draws ------------------------------------------------------------


def test_standard_deviation_and_covariance_agree(items, duels, fixed):
    X, y = duels
    fixed.fit(X, y)
    difference = np.kron(np.eye(60), [[1.0, -1.0]])
    rows = X.reshape(-1, 2)
    mean, cov = fixed.predict(rows, return_cov=True)
    assert_allclose(np.sqrt(np.diag(cov)), fixed.predict(rows, return_std=True)[1], rtol=1e-8)
    assert np.linalg.eigvalsh(cov).min() > -1e-10
    margin, margin_cov = fixed.predict(X, return_cov=True)
    assert_allclose(margin, difference @ mean, atol=1e-12)
    assert_allclose(margin_cov, difference @ cov @ difference.T, atol=1e-12)
    std = fixed.predict(X, return_std=True)[1]
    assert_allclose(np.sqrt(np.diag(margin_cov)), std, rtol=1e-7)
    with pytest.raises(RuntimeError, match="Only one of return_std and return_cov"):
        fixed.predict(X, return_std=True, return_cov=True)


def test_draws_have_the_moments_of_the_posterior(items, duels, fixed):
    X, y = duels
    fixed.fit(X, y)
    n_draws = 20_000
    for query in (items, X[:6]):
        mean, cov = fixed.predict(query, return_cov=True)
        draws = fixed.sample_y(query, n_draws, random_state=7)
        assert draws.shape == (len(query), n_draws)
        error = np.sqrt(np.diag(cov) / n_draws)
        assert np.abs((draws.mean(axis=1) - mean) / error).max() < 4.5
        scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)) + cov**2) / np.sqrt(n_draws)
        assert np.abs((np.cov(draws) - cov) / scale).max() < 4.5
        assert_array_equal(draws[:, :3], fixed.sample_y(query, n_draws, random_state=7)[:, :3])
    assert not np.allclose(fixed.sample_y(items, 1, 0), fixed.sample_y(items, 1, 1))


# -- hyperparameters -----------------------------------------------------------------------


@pytest.fixture(params=ENGINE_NAMES)
def learning(request):
    return PairwisePreferenceRegressor(RBF([1.0, 1.0]), inference=request.param)


def test_evidence_at_the_learned_hyperparameters(duels, learning):
    learning.fit(*duels)
    theta = np.r_[learning.kernel_.theta, np.log(learning.noise_variance_)]
    value = learning.log_marginal_likelihood_value_
    assert_allclose(learning.log_marginal_likelihood(), value, rtol=1e-7)
    assert_allclose(learning.log_marginal_likelihood(theta), value, rtol=1e-7)
    moved = theta + np.array([0.3, -0.2, 0.1])
    gradient = learning.log_marginal_likelihood(moved, eval_gradient=True)[1]
    numeric = approx_fprime(moved, learning.log_marginal_likelihood, 1e-5)
    assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_evidence_is_asked_at_finite_hyperparameters(duels, learning, value):
    learning.set_params(optimizer=None).fit(*duels)
    with pytest.raises(ValueError, match="theta must be finite"):
        learning.log_marginal_likelihood([value, 0.0])


def test_learning_raises_the_evidence(duels, learning):
    X, y = duels
    learning.set_params(lengthscale_prior=None).fit(X, y)
    start = clone(learning).set_params(optimizer=None).fit(X, y).log_marginal_likelihood_value_
    assert learning.log_marginal_likelihood_value_ > start + 1.0
    # The gradient vanishes but where it points out of the bounds.
    theta = np.r_[learning.kernel_.theta, np.log(learning.noise_variance_)]
    bounds = np.vstack([learning.kernel_.bounds, np.log(learning.noise_variance_bounds)])
    gradient = learning.log_marginal_likelihood(theta, eval_gradient=True)[1]
    inside = (theta > bounds[:, 0] + 1e-6) & (theta < bounds[:, 1] - 1e-6)
    assert inside.any()
    assert np.abs(gradient[inside]).max() < 0.02


def test_the_prior_pulls_lengthscales_towards_its_median(duels, learning):
    X, y = duels
    free = clone(learning).set_params(lengthscale_prior=None).fit(X, y)
    distance = []
    for deviation in (10.0, 0.3, 0.01):
        model = clone(learning).set_params(lengthscale_prior=(5.0, deviation)).fit(X, y)
        distance.append(np.abs(model.kernel_.theta - np.log(5.0)).max())
        assert model.log_marginal_likelihood_value_ <= free.log_marginal_likelihood_value_ + 1e-4
    assert distance[0] > distance[1] > distance[2]
    assert distance[2] < 0.05


def test_fixed_hyperparameters_stay(duels, learning):
    X, y = duels
    model = clone(learning).set_params(noise_variance=0.3, noise_variance_bounds="fixed").fit(X, y)
    assert model.noise_variance_ == 0.3
    assert len(model.log_marginal_likelihood(eval_gradient=True)[1]) == 2
    held = ConstantKernel(3.0, "fixed") * RBF(0.4, "fixed")
    model = clone(learning).set_params(kernel=held).fit(X, y)
    assert model.kernel_ == held
    assert model.noise_variance_ != learning.noise_variance
    model.set_params(noise_variance_bounds="fixed").fit(X, y)
    assert model.noise_variance_ == learning.noise_variance


@pytest.mark.slow
def test_restarts_do_not_depend_on_the_number_of_processes(duels, learning):
    X, y = duels
    learning.set_params(n_restarts_optimizer=2, random_state=0)
    alone = clone(learning).fit(X, y)
    together = clone(learning).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(alone.kernel_.theta, together.kernel_.theta)
    assert alone.noise_variance_ == together.noise_variance_
    assert_array_equal(alone.predict_proba(X), together.predict_proba(X))
    single = clone(learning).set_params(n_restarts_optimizer=0, lengthscale_prior=None).fit(X, y)
    better = clone(learning).set_params(lengthscale_prior=None).fit(X, y)
    slack = 1e-6
    assert better.log_marginal_likelihood_value_ > single.log_marginal_likelihood_value_ - slack


def test_callable_optimizer(duels, learning):
    X, y = duels
    seen = {}

    def optimizer(obj_func, initial_theta, bounds):
        value, gradient = obj_func(initial_theta)
        plain = obj_func(initial_theta, eval_gradient=False)
        seen.update(start=initial_theta, bounds=bounds, value=value, gradient=gradient, plain=plain)
        target = initial_theta - 0.1 * gradient / np.abs(gradient).max()
        return target, obj_func(target, eval_gradient=False)

    model = learning.set_params(optimizer=optimizer, lengthscale_prior=None).fit(X, y)
    start = np.r_[learning.kernel.theta, np.log(learning.noise_variance)]
    assert_allclose(seen["start"], start)
    assert_allclose(seen["bounds"], np.log([(1e-5, 1e5), (1e-5, 1e5), (1e-4, 10.0)]))
    assert_allclose(seen["value"], -model.log_marginal_likelihood(start), rtol=1e-5)
    assert_allclose(seen["plain"], seen["value"], rtol=1e-5)
    learned = np.r_[model.kernel_.theta, np.log(model.noise_variance_)]
    assert_allclose(learned, start - 0.1 * seen["gradient"] / np.abs(seen["gradient"]).max())
    assert model.log_marginal_likelihood_value_ > -seen["value"]


# -- another library -----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(1.0), 2.0 * Matern(1.5, nu=2.5)], ids=str)
def test_against_gaussian_process_classifier(duels, items, kernel):
    """scikit-learn's Laplace with a logistic link on the margins' kernel: nearly the same model.

    Its link 1 / (1 + exp(−z)) lies within 0.01 of Φ(z / 1.702), so 2σ² = 1.702².
    """
    X, y = duels
    other = GaussianProcessClassifier(PreferenceKernel(kernel), optimizer=None)
    other.fit(X.reshape(60, -1), y)
    model = PairwisePreferenceRegressor(
        kernel, inference="laplace", noise_variance=1.702**2 / 2.0, optimizer=None
    ).fit(X, y)
    first, second = np.triu_indices(N_ITEMS, 1)
    test = np.stack([items[first], items[second]], axis=1)
    ours = model.predict_proba(test)[:, 1]
    theirs = other.predict_proba(test.reshape(len(test), -1))[:, 1]
    assert spearmanr(ours, theirs).statistic > 0.999
    assert_allclose(ours, theirs, atol=0.02)
    # Not a trivial agreement near one half.
    assert np.ptp(theirs) > 0.6
