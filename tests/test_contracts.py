"""What a user writes: a likelihood and an engine of their own work wherever the shipped ones do."""

import inspect
import pickle

import numpy as np
import pytest
from judged_support import make_duels, make_items
from likelihoods_support import Logistic
from numpy.testing import assert_allclose, assert_array_equal
from oracles import central_gradient
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from skpref import PairwisePreferenceRegressor, PreferenceOptimizer
from skpref.inference import (
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Laplace,
    Sites,
    warm_start_array,
)
from skpref.likelihoods import Likelihood

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class Variational(Engine):
    """The Gaussian nearest to the posterior in KL(q ‖ p), by damped fixed-point steps."""

    capabilities = Capabilities(has_evidence=True)

    def __init__(self, max_iter=500, tol=1e-10, step=0.5):
        self.max_iter, self.tol, self.step = max_iter, tol, step

    def _expected(self, problem, conditioned, function):
        """Means of a function of the rows' margins under q, weighted by their counts."""
        sd = np.sqrt(np.maximum(conditioned.variance, 0.0))[problem.index]
        z = problem.orient_margins(conditioned.mean)[:, None] + sd[:, None] * NODES
        rows = np.repeat(np.arange(len(z)), len(NODES))
        parts = function(z.ravel(), problem.answers.take(rows))
        return [np.reshape(part, (*np.shape(part)[:-1], *z.shape)) @ WEIGHTS for part in parts]

    def run(self, problem, start=None, rng=None, gaussian=None):
        n, prior = len(problem.counts), problem.prior
        tau, nu = (warm_start_array(start, name, n) for name in ("precision", "shift"))
        if tau is None or nu is None:
            tau, nu = np.zeros((2, n))
        change, n_iter = np.inf, 0
        while change >= self.tol and n_iter < self.max_iter:
            n_iter += 1
            precision, shift = problem.pool(tau), problem.pool(problem.sign * nu)
            found = prior.condition(precision, shift)
            value, slope, bend, _ = self._expected(problem, found, problem.likelihood.log_prob)
            off = np.r_[bend - tau, slope + bend * problem.orient_margins(found.mean) - nu]
            change = np.max(np.abs(off) / (1.0 + np.r_[tau, tau]))
            tau, nu = tau + self.step * off[:n], nu + self.step * off[n:]
        kl = 0.5 * (found.dual @ found.mean + found.log_det - precision @ found.variance)
        sites = Sites(shift, precision, float(problem.counts @ value - kl))
        state, converged = {"precision": tau, "shift": nu}, bool(change < self.tol)
        return Approximation(sites, found, state, n_iter, float(change), converged)

    def evidence_gradient(self, problem, approximation):
        conditioned, precision = approximation.conditioned, approximation.sites.precision
        by_kernel = problem.prior.pull_back(conditioned, precision)
        (slopes,) = self._expected(
            problem, conditioned, lambda z, a: problem.likelihood.theta_derivatives(z, a)[:1]
        )
        return EvidenceGradient(by_kernel, slopes @ problem.counts)


class Mode(Engine):
    """Laplace's approximation that leaves hyperparameters to another engine."""

    def run(self, problem, start=None, rng=None, gaussian=None):
        return Laplace().run(problem)


class Promising(Mode):
    """It says that it has an evidence, and gives no gradient."""

    capabilities = Capabilities(has_evidence=True)


@pytest.fixture(scope="module")
def data():
    return make_duels(make_items())


def model(**params):
    return PairwisePreferenceRegressor(
        **{"kernel": RBF(1.0), "noise_variance": 0.1, "lengthscale_prior": None, **params}
    )


def test_both_are_short():
    assert len(inspect.getsource(Logistic).splitlines()) < 60
    assert len(inspect.getsource(Variational).splitlines()) < 60


# -- a likelihood --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighed", [False, True])
def test_the_mode_of_a_linear_utility_is_that_of_logistic_regression(data, weighed):
    X, y = data
    weight = np.random.default_rng(0).exponential(size=len(y)) if weighed else None
    scale = 0.4
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    other.fit((X[:, 0] - X[:, 1]) / scale, y, sample_weight=weight)
    fitted = model(
        kernel=DotProduct(1.0), inference="laplace", likelihood=Logistic(scale), optimizer=None
    ).fit(X, y, sample_weight=weight)
    assert_allclose(fitted.predict(X), (X[:, 0] - X[:, 1]) @ other.coef_[0], atol=1e-5)
    assert_allclose(fitted.decision_function(X) > 0, other.predict(X[:, 0] - X[:, 1]) == 1)


def test_the_mode_of_a_smooth_utility_is_that_of_scipy(data):
    X, y = data
    items, scale = make_items(), 0.4
    root = np.linalg.cholesky(RBF(1.0)(items) + 1e-13 * np.eye(len(items)))
    place = np.array([[np.flatnonzero((items == x).all(axis=1))[0] for x in pair] for pair in X])
    winner, loser = np.where(y[:, None] == 1, place, place[:, ::-1]).T

    def minus(u):
        f = root @ u
        return np.logaddexp(0.0, -(f[winner] - f[loser]) / scale).sum() + 0.5 * u @ u

    mode = root @ minimize(minus, np.zeros(len(items)), method="BFGS", tol=1e-9).x
    fitted = model(inference="laplace", likelihood=Logistic(scale), optimizer=None).fit(X, y)
    assert_allclose(fitted.predict(items), mode, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["ep", "laplace", Variational()], ids=str)
def test_hyperparameters_of_a_likelihood_are_learned(data, inference):
    X, y = data[0], np.where(np.arange(60) % 7, data[1], 1 - data[1])
    learning = model(inference=inference, likelihood=Logistic(2.0, (0.05, 10.0)))
    start = clone(learning).set_params(optimizer=None).fit(X, y)
    learning.fit(X, y)
    assert start.likelihood_.scale == 2.0
    assert 0.05 < learning.likelihood_.scale < 1.5
    assert not hasattr(learning, "noise_variance_")
    assert learning.likelihood.scale == 2.0
    assert learning.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 1.0
    theta = np.append(learning.kernel_.theta, np.log(learning.likelihood_.scale))
    moved = theta + 0.3
    gradient = learning.log_marginal_likelihood(moved, eval_gradient=True)[1]
    truth = central_gradient(learning.log_marginal_likelihood, moved, 2e-2)
    assert_allclose(gradient, truth, rtol=1e-4, atol=1e-5)
    here = learning.log_marginal_likelihood(theta, eval_gradient=True)[1]
    assert_allclose(here, 0.0, atol=0.02)


def test_probabilities_are_those_of_the_likelihood(data):
    X, y = data
    fitted = model(likelihood=Logistic(0.4), optimizer=None).fit(X, y)
    mean, std = fitted.predict(X, return_std=True)
    z = mean[:, None] + std[:, None] * NODES
    truth = (1.0 / (1.0 + np.exp(-z / 0.4))) @ WEIGHTS
    assert_allclose(fitted.predict_proba(X)[:, 1], truth, atol=1e-7)
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0, rtol=1e-10)
    assert_allclose(fitted.posterior_.win_probability(X[:, 0], X[:, 1]), truth, atol=1e-7)


@pytest.mark.slow
def test_a_likelihood_is_cloned_searched_and_pickled(data):
    X, y = data
    learning = model(likelihood=Logistic(0.4), optimizer=None)
    grid = GridSearchCV(learning, {"likelihood__scale": [0.2, 5.0]}, scoring="neg_log_loss")
    grid.fit(X, y)
    assert grid.best_params_ == {"likelihood__scale": 0.2}
    copy = pickle.loads(pickle.dumps(grid.best_estimator_))
    assert_array_equal(copy.predict_proba(X), grid.predict_proba(X))
    assert copy.likelihood_.scale == 0.2


@pytest.mark.parametrize("inference", ["gibbs", "hmc"])
def test_a_likelihood_that_is_no_box_cannot_be_sampled(data, inference):
    with pytest.raises(ValueError, match=r"Logistic.*'ep'|'ep'.*Logistic"):
        model(inference=inference, likelihood=Logistic(), optimizer=None).fit(*data)


def test_the_noise_of_an_earlier_fit_is_forgotten(data):
    changed = model(optimizer=None).fit(*data)
    assert changed.noise_variance_ == changed.noise_variance
    changed.set_params(likelihood=Logistic(0.4)).fit(*data)
    assert not hasattr(changed, "noise_variance_")


@pytest.mark.parametrize("nonsense", ["logistic", Logistic, 0.1])
def test_what_is_no_likelihood_is_named(data, nonsense):
    with pytest.raises(TypeError, match=r"such as Probit\(\).*subclass of Likelihood"):
        model(likelihood=nonsense).fit(*data)
    with pytest.raises(ValueError, match="scale must lie in"):
        model(likelihood=Logistic(-1.0)).fit(*data)


def test_a_likelihood_without_its_probability_cannot_be_made():
    class Empty(Likelihood):
        pass

    with pytest.raises(TypeError, match="log_prob"):
        Empty()


# -- an engine -----------------------------------------------------------------------------------


def test_the_engine_of_the_example_maximises_its_bound():
    """Mean and covariance of q by scipy, from a Cholesky factor and the exact expectation."""
    X, y = make_duels(make_items())
    X, y = X[:3], y[:3]
    fitted = model(inference=Variational(), optimizer=None).fit(X, y)
    flat = X.reshape(-1, 2)
    A = np.kron(np.eye(3), [[1.0, -1.0]]) * np.where(y, 1.0, -1.0)[:, None]
    S = A @ RBF(1.0)(flat) @ A.T
    inverse, log_det = np.linalg.inv(S), np.linalg.slogdet(S)[1]
    lower = np.tril_indices(3)

    def minus_bound(free):
        mean, factor = free[:3], np.zeros((3, 3))
        factor[lower] = free[3:]
        V = factor @ factor.T
        z = mean[:, None] + np.sqrt(np.diagonal(V))[:, None] * NODES
        fit = (log_ndtr(z / np.sqrt(0.2)) @ WEIGHTS).sum()
        kl = np.trace(inverse @ V) + mean @ inverse @ mean - 3.0
        return 0.5 * (kl + log_det - np.linalg.slogdet(V)[1]) - fit

    start = np.concatenate([np.zeros(3), np.linalg.cholesky(S)[lower]])
    best = minimize(minus_bound, start, method="BFGS", tol=1e-10)
    assert fitted.log_marginal_likelihood_value_ == pytest.approx(-best.fun, abs=1e-7)
    assert_allclose(fitted.predict(X) * np.where(y, 1.0, -1.0), best.x[:3], atol=1e-4)


@pytest.mark.slow
def test_an_engine_fits_and_learns(data):
    X, y = data
    held = model(inference=Variational(), optimizer=None).fit(X, y)
    ep = model(inference="ep", optimizer=None).fit(X, y)
    assert_allclose(held.predict_proba(X), ep.predict_proba(X), atol=0.03)
    # It is a lower bound of what EP has nearly exactly.
    gap = ep.log_marginal_likelihood_value_ - held.log_marginal_likelihood_value_
    assert 0.0 < gap < 1.0
    learned = model(inference=Variational()).fit(X, y)
    assert learned.log_marginal_likelihood_value_ > held.log_marginal_likelihood_value_
    theta = np.append(learned.kernel_.theta, np.log(learned.noise_variance_))
    gradient = learned.log_marginal_likelihood(theta - 0.2, eval_gradient=True)[1]
    truth = central_gradient(learned.log_marginal_likelihood, theta - 0.2, 2e-2)
    assert_allclose(gradient, truth, rtol=1e-4, atol=1e-5)
    assert learned.n_iter_ > 1 and learned.diagnostics_ is None


@pytest.mark.slow
def test_an_engine_is_cloned_searched_and_pickled(data):
    X, y = data
    learning = model(inference=Variational(), optimizer=None)
    assert clone(learning).inference.get_params() == learning.inference.get_params()
    grid = GridSearchCV(learning, {"inference__step": [0.3, 0.6]}, cv=3).fit(X, y)
    assert_allclose(*grid.cv_results_["mean_test_score"])
    copy = pickle.loads(pickle.dumps(grid.best_estimator_))
    assert_array_equal(copy.predict_proba(X), grid.predict_proba(X))
    score = cross_val_score(learning, X, y, scoring="neg_log_loss")
    assert np.all(score > np.log(0.5))


def test_an_engine_without_evidence_has_hyperparameters_of_ep(data):
    X, y = data
    learned, ep = model(inference=Mode()).fit(X, y), model().fit(X, y)
    assert_array_equal(learned.kernel_.theta, ep.kernel_.theta)
    assert learned.noise_variance_ == ep.noise_variance_
    laplace = model(
        kernel=ep.kernel_, noise_variance=ep.noise_variance_, inference="laplace", optimizer=None
    ).fit(X, y)
    assert_allclose(learned.predict(X), laplace.predict(X), rtol=1e-9)
    assert not np.allclose(learned.predict(X), ep.predict(X), rtol=1e-3)


def test_an_engine_that_promises_a_gradient_must_give_it(data):
    with pytest.raises(NotImplementedError, match=r"Promising says has_evidence.*optimizer=None"):
        model(inference=Promising()).fit(*data)
    fitted = model(inference=Promising(), optimizer=None).fit(*data)
    laplace = model(inference="laplace", optimizer=None).fit(*data)
    assert_allclose(fitted.predict(data[0]), laplace.predict(data[0]), rtol=1e-9)


def test_an_engine_must_know_how_to_run():
    class Idle(Engine):
        pass

    with pytest.raises(TypeError, match="run"):
        Idle()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "incumbent", "acquisition"),
    [(Variational(tol=1e-6), "last_winner", "ei"), (Mode(), "posterior_mean", "ucb")],
    ids=["variational", "mode"],
)
def test_an_engine_asks_the_questions_of_an_optimizer(engine, incumbent, acquisition):
    def better(first, second):
        return np.sum((first - 0.3) ** 2) < np.sum((second - 0.3) ** 2)

    asking = PreferenceOptimizer(
        [[0.0, 1.0], [0.0, 1.0]],
        inference=engine,
        incumbent=incumbent,
        acquisition=acquisition,
        random_state=0,
    )
    asking.run(better, 14)
    assert np.abs(asking.recommend() - 0.3).max() < 0.12
    assert len(asking.history_) == 14
    mean = asking.posterior_.mean(np.array([[0.3, 0.3], [1.0, 1.0]]))
    assert mean[0] > mean[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inference", "acquisition"), [("laplace", "log_ei"), ("laplace", "muc"), ("ep", "eubo")]
)
def test_a_likelihood_asks_the_questions_of_an_optimizer(inference, acquisition):
    asking = PreferenceOptimizer(
        [[0.0, 1.0], [0.0, 1.0]],
        inference=inference,
        acquisition=acquisition,
        likelihood=Logistic(scale=0.05),
        random_state=0,
    )
    asking.run(lambda a, b: np.sum((a - 0.3) ** 2) < np.sum((b - 0.3) ** 2), 15)
    assert np.abs(asking.recommend() - 0.3).max() < 0.12
    told = asking.posterior_
    assert isinstance(told.likelihood, Logistic)
    assert told.likelihood.scale != 0.05  # learned
    # A duel's probability is the likelihood's own, averaged over the margin.
    pair = np.array([[0.3, 0.3]]), np.array([[0.9, 0.8]])
    (mean,), (variance,) = told.margin(*pair)
    law = norm(mean, np.sqrt(variance))
    truth = quad(
        lambda margin: expit(margin / told.likelihood.scale) * law.pdf(margin),
        *law.interval(1.0 - 1e-14),
        points=[0.0],
        limit=500,
    )[0]
    assert told.win_probability(*pair)[0] == pytest.approx(truth, abs=5e-5)


def test_a_likelihood_without_regions_cannot_be_hallucinated():
    with pytest.raises(ValueError, match=r"Logistic does not have .*inference='ep'"):
        PreferenceOptimizer([[0.0, 1.0]], likelihood=Logistic())
