"""What every prior promises, of each: by all margins, all items, inducing points."""

import tracemalloc

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose
from oracles import central_gradient
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from skpref.gp import DenseItems, DenseMargins, Inducing, Prior, Sites
from skpref.inference import EP, SVI, Laplace, Problem
from skpref.likelihoods import Probit

KERNEL = ConstantKernel(1.4) * Matern([0.8, 1.1], nu=2.5)
SEEN = won(*random_duels(0, 8, 25))
LIKELIHOOD = Probit(0.3)
PRIORS = {"margins": DenseMargins, "items": DenseItems, "points": Inducing}
EACH = pytest.mark.parametrize("name", PRIORS)


def made(name, kernel=KERNEL, gradient=False):
    return PRIORS[name].from_comparisons(kernel, SEEN, LIKELIHOOD, gradient)


def covariance(kernel=KERNEL):
    """S by the kernel alone."""
    margins, K = SEEN.rows.margins, kernel(SEEN.items)
    A = np.zeros((len(margins.first), len(K)))
    np.add.at(A, (np.arange(len(A)), margins.first), 1.0)
    np.add.at(A, (np.arange(len(A)), margins.second), -1.0)
    return A @ K @ A.T


def some_sites():
    rng = np.random.default_rng(1)
    n = len(SEEN.rows.margins.first)
    precision = np.exp(rng.uniform(-1.0, 1.5, n))
    return precision, precision * rng.normal(size=n)


def log_integral(S, precision, shift):
    """log ∫ N(z; 0, S) exp(shiftᵀ z − ½ zᵀ τ z) dz."""
    total = np.eye(len(S)) + S * precision
    quadratic = shift @ np.linalg.solve(total, S @ shift)
    return 0.5 * quadratic - 0.5 * np.linalg.slogdet(total)[1]


@EACH
def test_marginals_are_those_of_the_covariance(name):
    prior, S, (precision, shift) = made(name), covariance(), some_sites()
    assert isinstance(prior, Prior)
    assert_allclose(prior.variance, np.diagonal(S), rtol=1e-6)
    assert_allclose(prior.covariance(), S, atol=1e-6)
    root = prior.root()
    assert_allclose(root @ root.T, S, atol=1e-6)
    found = prior.condition(precision, shift)
    posterior = np.linalg.solve(np.eye(len(S)) + S * precision, S)
    assert_allclose(found.mean, posterior @ shift, atol=1e-6)
    assert_allclose(found.variance, np.diagonal(posterior), atol=1e-6)
    assert_allclose(S @ found.dual, found.mean, atol=1e-6)
    assert_allclose(found.log_det, np.linalg.slogdet(np.eye(len(S)) + S * precision)[1], rtol=1e-6)
    other = np.linspace(-1.0, 1.0, len(S))
    assert_allclose(prior.times(other), S @ other, atol=1e-6)
    assert_allclose(
        prior.condition_on_shift(found, precision, other).mean, posterior @ other, atol=1e-6
    )
    assert_allclose(prior.centre(precision, other)[0], posterior @ other, atol=1e-6)
    left = np.linalg.solve(np.eye(len(S)) + precision[:, None] * S, other)
    assert_allclose(prior.condition_on_shift(found, precision, other).dual, left, atol=1e-6)


@EACH
@pytest.mark.parametrize("gradient", [False, True])
def test_pull_back_is_the_slope_of_the_sites_integral(name, gradient):
    prior, (precision, shift) = made(name, gradient=gradient), some_sites()
    found = prior.pull_back(prior.condition(precision, shift), precision)
    truth = central_gradient(
        lambda theta: log_integral(covariance(KERNEL.clone_with_theta(theta)), precision, shift),
        KERNEL.theta,
    )
    assert_allclose(found, truth, rtol=1e-5, atol=1e-7)
    fixed = made(name, ConstantKernel(1.4, "fixed") * Matern(0.8, "fixed"))
    assert fixed.pull_back(fixed.condition(precision, shift), precision).shape == (0,)


@EACH
@pytest.mark.parametrize("n_items", [8, 40])  # fewer items than margins, and more
def test_pull_back_follows_a_push(name, n_items):
    """The bracket gains w uᵀ + u wᵀ: the slope of uᵀ S w."""
    seen = won(*random_duels(0, n_items, 25))
    points = {"Z": seen.items[:6]} if name == "points" else {}
    size = len(seen.rows.margins.first)
    push = 1e-3 * np.random.default_rng(2).normal(size=size)

    def at(theta):
        return PRIORS[name].from_comparisons(
            KERNEL.clone_with_theta(theta), seen, LIKELIHOOD, True, **points
        )

    prior, precision = at(KERNEL.theta), np.full(size, 0.7)
    marginals = prior.condition(precision, np.linspace(-1.0, 1.0, size))
    found, still = (prior.pull_back(marginals, precision, each) for each in (push, None))
    slope = central_gradient(lambda theta: push @ at(theta).times(marginals.dual), KERNEL.theta)
    assert_allclose(found - still, slope, rtol=1e-6, atol=1e-11)
    assert_allclose(prior.pull_back(marginals, precision, 0.0 * push), still, rtol=1e-12)


def test_the_slope_of_laplace_evidence_by_inducing_points():
    def run(theta):
        kernel = KERNEL.clone_with_theta(theta)
        prior = Inducing.from_comparisons(kernel, SEEN, LIKELIHOOD, True, SEEN.items[:5])
        problem = Problem(prior, SEEN, LIKELIHOOD)
        return problem, Laplace(tol=1e-14).run(problem)

    found = Laplace().evidence_gradient(*run(KERNEL.theta)).kernel
    truth = central_gradient(lambda theta: run(theta)[1].sites.log_evidence, KERNEL.theta)
    assert_allclose(found, truth, rtol=1e-5, atol=1e-7)


@EACH
def test_the_posterior_has_the_margins_that_were_found(name):
    prior, (precision, shift) = made(name), some_sites()
    found = prior.condition(precision, shift)
    posterior = prior.posterior(Sites(shift, precision, 0.0), found, LIKELIHOOD)
    margins = SEEN.rows.margins
    ends = SEEN.items[margins.first], SEEN.items[margins.second]
    mean, variance = posterior.margin(*ends)
    assert_allclose(mean, found.mean, atol=1e-6)
    assert_allclose(variance, found.variance, atol=1e-6)


@EACH
def test_expectation_propagation_takes_any(name):
    prior, dense = made(name), made("margins")
    engine = EP(tol=1e-10)
    found, truth = (engine.run(Problem(each, SEEN, LIKELIHOOD)) for each in (prior, dense))
    assert_allclose(found.sites.log_evidence, truth.sites.log_evidence, atol=1e-6)
    slopes, expected = (
        engine.evidence_gradient(Problem(each, SEEN, LIKELIHOOD), run)
        for each, run in ((prior, found), (dense, truth))
    )
    assert_allclose(slopes.kernel, expected.kernel, atol=1e-5)
    assert_allclose(slopes.likelihood, expected.likelihood, atol=1e-5)


@pytest.mark.parametrize("engine", [EP(), Laplace()])
def test_no_matrix_of_the_items_is_made_where_the_kernel_is_fixed(engine):
    seen = won(*random_duels(0, 500, 400))
    prior = DenseMargins.from_comparisons(Matern(0.8, "fixed"), seen, LIKELIHOOD)
    problem = Problem(prior, seen, LIKELIHOOD)
    found = engine.run(problem)
    tracemalloc.start()
    engine.evidence_gradient(problem, found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * prior.K.nbytes


def test_points_are_placed_and_refined_by_their_rule():
    rule = SVI(3).prior_rule
    with pytest.raises(ValueError, match="prepare"):
        rule.prior(KERNEL, SEEN, LIKELIHOOD)
    placed = rule.prepare(SEEN, KERNEL, 0)
    assert placed.points.shape == (3, 2)
    refined = placed.refine(SEEN, KERNEL, LIKELIHOOD)
    assert not np.array_equal(refined.points, placed.points)
    own = SVI(inducing_points=placed.points).prior_rule.prepare(SEEN, KERNEL)
    assert own.refine(SEEN, KERNEL, LIKELIHOOD).points is own.points


def test_a_prior_says_what_it_needs_for_choices_and_rankings():
    with pytest.raises(NotImplementedError, match=r"Inducing does not define on_duels, .*False"):
        made("points").on_duels(None)
