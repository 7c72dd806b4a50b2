"""The gamma prior of the inverse output scale: sampling, quadrature over it, and differences."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient, incidence
from scipy.special import gammaln
from scipy.stats import gamma, multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from svi_support import LIKELIHOODS, answers, model_of, utility_duels

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._fit import evaluate_evidence, fit_posterior
from skpref.gp._inducing import Inducing, Moments, Weights
from skpref.inference import SVI
from skpref.inference._natural import (
    AnswerBatch,
    Gamma,
    rescale_weights,
    update_scale_posterior,
    with_scale,
)
from skpref.inference._svi import InBatches, Schedule, ascend_stochastically
from skpref.likelihoods import Probit

PLAIN = Matern([1.0, 1.5], nu=1.5)
PRIOR = (2.0, 3.0)


def fitted_with(engine, likelihood=LIKELIHOODS["probit"], kernel=PLAIN, **more):
    comparisons = answers(likelihood, **more)
    return fit_posterior(comparisons, model_of(comparisons, likelihood, engine, kernel))


def learner(engine, **params):
    fixed = {"optimizer": None, "random_state": 0, "noise_variance": 0.1, **params}
    return PairwisePreferenceRegressor(fixed.pop("kernel", RBF(0.5)), inference=engine, **fixed)


def law(fitted):
    shape, rate = fitted.diagnostics.inverse_scale
    return gamma(shape, scale=1.0 / rate)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_bound_agrees_with_draws_of_utilities_and_scale(name):
    likelihood = LIKELIHOODS[name]
    fitted = fitted_with(SVI(scale_prior=PRIOR, tol=1e-7), likelihood, n_items=7)
    posterior, rows = fitted.posterior, fitted.comparisons.rows
    Z, rng, n = fitted.comparisons.items, np.random.default_rng(0), 8_000
    mean, covariance, K = posterior.mean(Z), posterior.cov(Z), PLAIN(Z)
    u = rng.multivariate_normal(mean, covariance, size=n)
    found, prior = law(fitted), gamma(PRIOR[0], scale=1.0 / PRIOR[1])
    inverse = found.rvs(n, random_state=rng)
    margins = u[:, rows.first] - u[:, rows.second]
    every = rows.answers.take(np.tile(np.arange(len(rows)), n))
    each = likelihood.log_prob(margins.ravel(), every).value.reshape(n, -1) @ rows.counts
    each -= multivariate_normal(mean, covariance).logpdf(u)
    squares = np.sum(u * np.linalg.solve(K, u.T).T, axis=1)
    log_det = np.linalg.slogdet(2.0 * np.pi * K)[1]
    each += 0.5 * len(Z) * np.log(inverse) - 0.5 * (inverse * squares + log_det)
    each += prior.logpdf(inverse) - found.logpdf(inverse)
    error = each.std() / np.sqrt(n)
    assert error < 0.08
    assert abs(each.mean() - fitted.log_evidence) < 4.0 * error


def test_the_bound_is_below_the_evidence_integrated_over_the_scale():
    X = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 1.0]])
    first, second, noise = np.array([0, 0, 1]), np.array([1, 2, 2]), 0.3
    comparisons = Comparisons.from_duels(X, first, second, np.ones(3))
    model = model_of(comparisons, Probit(noise), SVI(scale_prior=PRIOR), PLAIN)
    bound = fit_posterior(comparisons, model).log_evidence
    A = incidence(first, second, 3)
    S = A @ PLAIN(X) @ A.T
    prior = gamma(PRIOR[0], scale=1.0 / PRIOR[1])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    levels = prior.ppf(0.5 + 0.5 * nodes)
    chance = [
        multivariate_normal(np.zeros(3), S / level + 2.0 * noise * np.eye(3)).cdf(np.zeros(3))
        for level in levels
    ]
    truth = np.log(0.5 * weights @ chance)
    assert truth - 0.4 < bound < truth


@pytest.mark.parametrize(
    ("n", "n_inducing"), [(8, 12), (60, 5)], ids=["few duels", "more duels than points"]
)
def test_the_update_is_stationary(n_inducing, n):
    """The bound in shape and rate of q(λ), q of the points' utilities held."""
    fitted = fitted_with(SVI(n_inducing, scale_prior=PRIOR, tol=1e-8), n=n)
    found, Z = fitted.diagnostics.inverse_scale, fitted.posterior.anchors
    u, S, K = fitted.posterior.mean(Z), fitted.posterior.cov(Z), PLAIN(Z)
    rows, likelihood, m = fitted.comparisons.rows, fitted.model.likelihood, len(Z)

    def bound(logs):
        a, b = np.exp(logs)
        kernel = ConstantKernel(b / a) * PLAIN
        space = Inducing(kernel, fitted.comparisons.items, rows.margins, Z)
        white = space.whiten @ np.linalg.cholesky(S + 1e-12 * np.eye(m))
        at = Moments(space.whiten @ u, white.T, np.nan, np.nan)
        mean_log = gamma(a, scale=1.0 / b).expect(np.log)
        total = AnswerBatch.from_rows(space, rows, likelihood).evaluate_at(at).fit
        squares = np.trace(np.linalg.solve(K, S + np.outer(u, u)))
        total += 0.5 * (m * mean_log - a / b * squares)
        total += (PRIOR[0] - 1.0) * mean_log - PRIOR[1] * a / b
        return total + gamma(a, scale=1.0 / b).entropy()

    logs = np.log(found)
    assert_allclose(central_gradient(bound, logs, 1e-2), 0.0, atol=2e-5)
    assert np.all(np.abs(central_gradient(bound, logs + np.array([0.1, -0.1]), 1e-2)) > 1e-2)
    assert_allclose(found.shape, PRIOR[0] + 0.5 * m)


def test_with_points_at_all_items_it_is_the_conjugate_update():
    fitted = fitted_with(SVI(scale_prior=PRIOR, tol=1e-8))
    Z = fitted.posterior.anchors
    u, S = fitted.posterior.mean(Z), fitted.posterior.cov(Z)
    squares = np.trace(np.linalg.solve(PLAIN(Z), S + np.outer(u, u)))
    assert_allclose(fitted.diagnostics.inverse_scale.rate, PRIOR[1] + 0.5 * squares, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_inducing"), [(8, 12), (30, 5)], ids=["few duels", "more duels than points"]
)
def test_gradient_agrees_with_differences(n_inducing, n):
    likelihood = LIKELIHOODS["ties"]
    comparisons = answers(likelihood, n)
    engine = SVI(n_inducing, scale_prior=PRIOR, tol=1e-9)
    model = model_of(comparisons, likelihood, engine, PLAIN)
    found = evaluate_evidence(comparisons, model, eval_gradient=True)
    assert found.approximation.converged

    def value(theta):
        return evaluate_evidence(comparisons, model.at(theta)).approximation.sites.log_evidence

    assert_allclose(found.gradient, central_gradient(value, model.theta), rtol=1e-4, atol=1e-5)


def test_a_prior_that_says_nothing_gives_the_scale_of_the_largest_bound():
    # As the FITC residual variance grows with the scale, the noise is to be larger.
    X, pairs, y = utility_duels(600, noise=0.3)

    def fitted(engine, kernel):
        return learner(engine, items=X, kernel=kernel, noise_variance=0.3).fit(pairs, y)

    scale = fitted(SVI(20, X[:20], scale_prior=(1e-3, 1e-3)), RBF(0.5)).diagnostics_.output_scale
    bounds = [
        fitted(
            SVI(20, X[:20], tol=1e-6), ConstantKernel(scale * by) * RBF(0.5)
        ).log_marginal_likelihood_value_
        for by in (0.8, 1.0, 1.25)
    ]
    assert bounds[1] > max(bounds[0], bounds[2])


@pytest.mark.parametrize("mean", [0.2, 5.0])
def test_a_prior_that_is_sure_fixes_the_scale(mean):
    sure = fitted_with(SVI(6, scale_prior=(1e9, 1e9 / mean)))
    fixed = fitted_with(SVI(6), kernel=ConstantKernel(1.0 / mean) * PLAIN)
    items = fixed.comparisons.items
    assert_allclose(sure.diagnostics.output_scale, 1.0 / mean, rtol=1e-6)
    assert_allclose(sure.log_evidence, fixed.log_evidence, atol=1e-4)
    assert_allclose(sure.posterior.mean(items), fixed.posterior.mean(items), atol=1e-4)
    assert_allclose(sure.posterior.cov(items), fixed.posterior.cov(items), atol=1e-4)


@pytest.mark.parametrize("kernel", [RBF(0.5), ConstantKernel(7.0, "fixed") * RBF(0.5)])
def test_the_kernel_is_multiplied_by_the_scale(kernel):
    X, pairs, y = utility_duels(600)
    model = learner(SVI(20, scale_prior=(1.0, 1.0)), items=X, kernel=kernel).fit(pairs, y)
    shape, rate = model.diagnostics_.inverse_scale
    level = float(kernel.diag(X[:1])[0])
    assert_allclose(model.kernel_.diag(X), level * rate / shape)
    assert model.kernel_.theta == kernel.theta
    assert clone(kernel) == model.kernel
    points = model.posterior_.anchors
    plain = learner(SVI(20, points), items=X, kernel=model.kernel_).fit(pairs, y)
    assert_allclose(model.predict(X), plain.predict(X), atol=2e-3)
    assert_allclose(
        model.log_marginal_likelihood(), model.log_marginal_likelihood_value_, atol=1e-6
    )
    assert model.diagnostics_.bound_history[-1] == model.log_marginal_likelihood_value_


def test_a_constant_that_the_prior_makes_up_for_changes_nothing():
    """k/λ and (c k)/λ with the rate times c are one model."""
    one = fitted_with(SVI(6, scale_prior=(2.0, 3.0)))
    other = fitted_with(
        SVI(6, scale_prior=(2.0, 0.003)), kernel=ConstantKernel(1e3, "fixed") * PLAIN
    )
    assert_allclose(one.log_evidence, other.log_evidence, atol=1e-6)
    items = one.comparisons.items
    assert_allclose(one.posterior.cov(items), other.posterior.cov(items), atol=1e-4)


def test_streams_keep_the_scale():
    X, pairs, y = utility_duels(900)
    points = X[:20]
    model = learner(SVI(20, points, scale_prior=(1.0, 1.0)), items=X)
    first = model.partial_fit(pairs[:600], y[:600]).kernel_
    model.partial_fit(pairs[600:], y[600:])
    assert model.kernel_ == first
    plain = learner(SVI(20, points), items=X, kernel=first)
    plain.partial_fit(pairs[:600], y[:600]).partial_fit(pairs[600:], y[600:])
    assert_allclose(model.predict_proba(pairs), plain.predict_proba(pairs), atol=1e-4)


def test_batches_find_the_scale_too():
    X, pairs, y = utility_duels(4000, noise=0.3)
    full, parts = (
        learner(SVI(30, scale_prior=(1.0, 1.0), batch_size=size), items=X, noise_variance=0.3).fit(
            pairs, y
        )
        for size in (None, 400)
    )
    one, other = (each.diagnostics_.output_scale for each in (full, parts))
    assert_allclose(other, one, rtol=1e-3)
    one, other = (each.log_marginal_likelihood_value_ for each in (full, parts))
    assert_allclose(other, one, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"batch_size": 7}], ids=["whole", "batches"])
@pytest.mark.parametrize("prior", [None, PRIOR], ids=["plain", "scale"])
def test_it_ends_at_whichever_pass_it_is_told_to(prior, options):
    comparisons = answers(LIKELIHOODS["probit"])
    engine = SVI(scale_prior=prior, **options)
    model = model_of(comparisons, LIKELIHOODS["probit"], engine, PLAIN)
    numbers = []
    whole = fit_posterior(comparisons, model, watch=lambda seen: numbers.append(seen.number))
    assert numbers == list(range(1, whole.n_iter + 1)) and len(numbers) > 5
    for last in numbers[:-1]:
        told = fit_posterior(comparisons, model, watch=lambda seen, n=last: seen.number == n)
        assert told.n_iter == last and told.approximation.stopped
        assert told.log_evidence < whole.log_evidence


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["plain", "scale"])
def test_a_pass_of_hardly_any_steps_knows_how_far_the_end_is(prior):
    comparisons, told = answers(LIKELIHOODS["probit"]), []
    model = model_of(comparisons, LIKELIHOODS["probit"], SVI(5), PLAIN)
    problem = replace(model.evaluate(comparisons).problem, watch=told.append)
    scale = 1.0 if prior is None else 0.4
    law = None if prior is None else Gamma(*prior)
    whole = AnswerBatch.from_rows(problem.prior, problem.rows, problem.likelihood)
    weights = Weights(2.0 * np.eye(5), np.arange(5.0))
    schedule = Schedule(1.0, 1e12, 1)
    way = ascend_stochastically(
        problem, InBatches(problem, whole, 4), weights, schedule, law, scale
    )
    assert_allclose(way.scale, scale, rtol=1e-6)
    look = whole.scaled(ConstantKernel(scale) * PLAIN, scale).evaluate(weights)
    assert_allclose(told[0].residual, look.residual(weights, look.target), rtol=1e-5)


def test_hyperparameters_are_learned_beside_the_scale():
    X, pairs, y = utility_duels(600)
    model = learner(
        SVI(20, scale_prior=(1.0, 1.0)),
        items=X,
        optimizer="fmin_l_bfgs_b",
        kernel=RBF([0.5] * 3),
        noise_variance_bounds="fixed",
    ).fit(pairs, y)
    assert model.kernel_.theta.shape == (3,)
    fixed = learner(SVI(20, scale_prior=(1.0, 1.0)), items=X, kernel=RBF([0.5] * 3)).fit(pairs, y)
    assert model.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_
    assert model.score(pairs, y) > 0.8


def test_a_scale_that_is_learned_twice_is_refused():
    X, pairs, y = utility_duels(50)
    model = learner(SVI(scale_prior=(1.0, 1.0)), items=X, kernel=ConstantKernel(2.0) * RBF(0.5))
    with pytest.raises(ValueError, match=r"free one of its own. Fix it, .*bounds='fixed'"):
        model.fit(pairs, y)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (1.0, r"\(shape, rate\) of a gamma distribution, got 1.0"),
        ((1.0, 2.0, 3.0), r"\(shape, rate\)"),
        ((0.0, 1.0), "shape of scale_prior must lie in"),
        ((1.0, -1.0), "rate of scale_prior must lie in"),
    ],
)
def test_unsound_priors_are_named(prior, message):
    X, pairs, y = utility_duels(20)
    with pytest.raises(ValueError, match=message):
        learner(SVI(scale_prior=prior), items=X).fit(pairs, y)


def test_divergence_between_gammas():
    q, p = Gamma(3.0, 2.0), Gamma(1.5, 4.0)
    one, other = (gamma(each.shape, scale=1.0 / each.rate) for each in (q, p))
    truth = one.expect(lambda x: one.logpdf(x) - other.logpdf(x))
    assert_allclose(q.divergence(p), truth, rtol=1e-7)
    assert_allclose(q.mean_log, one.expect(np.log), rtol=1e-7)
    assert_allclose(gammaln(3.0), np.log(2.0))


@pytest.mark.parametrize("pull", [-0.05, 0.0, 2.5])
def test_the_answers_pull_at_the_scale(pull):
    """Where it ends, shape log x − rate x − pull / x has its maximum, whatever the pull's sign."""
    rng = np.random.default_rng(0)
    root, mean = np.linalg.inv(np.linalg.cholesky(np.cov(rng.normal(size=(4, 9))))), np.ones(4)
    prior, now = Gamma(2.0, 3.0), Gamma(4.0, 1.0)
    squares = np.sum(root**2) + mean @ mean
    for _ in range(300):  # u is held, and so w = L⁻¹ u √x
        by = np.sqrt(now.mean)
        now = update_scale_posterior(
            prior, now, Moments(by * mean, by * root, 0.0, 0.0), pull / now.mean
        )
    rate = prior.rate + 0.5 * squares

    def height(log_x):
        return 4.0 * log_x[0] - rate * np.exp(log_x[0]) - pull * np.exp(-log_x[0])

    assert now.shape == 4.0
    assert_allclose(central_gradient(height, [np.log(now.mean)]), 0.0, atol=1e-9)


def test_sites_stay_where_the_kernel_is_scaled():
    comparisons = answers(LIKELIHOODS["probit"])
    rng, margins = np.random.default_rng(0), comparisons.rows.margins
    Z, n = rng.normal(size=(5, 2)), len(margins.first)
    precision, shift = rng.uniform(size=n), rng.normal(size=n)
    spaces = [
        Inducing(kernel, comparisons.items, margins, Z)
        for kernel in (PLAIN, ConstantKernel(3.0) * PLAIN)
    ]
    one, other = (space.weights_of_sites(precision, shift) for space in spaces)
    for mine, theirs in zip(rescale_weights(one, 3.0), other, strict=True):
        assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
    scaled = spaces[0].scaled(spaces[1].kernel, 3.0)
    for mine, theirs in zip(scaled.weights_of_sites(precision, shift), other, strict=True):
        assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


def test_factors_join_a_constant_at_the_root():
    kernel = ConstantKernel(2.0, "fixed") * RBF(1.0)
    assert with_scale(kernel, 3.0) == ConstantKernel(6.0, "fixed") * RBF(1.0)
    assert with_scale(RBF(1.0), 3.0) == ConstantKernel(3.0, "fixed") * RBF(1.0)
    assert kernel.k1.constant_value == 2.0
