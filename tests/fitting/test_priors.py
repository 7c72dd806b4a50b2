"""Priors on hyperparameters: against densities of scipy, and at their edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.integrate import quad
from scipy.stats import halfcauchy, norm, t
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from skpref.fitting._hyperpriors import (
    HalfCauchy,
    LogNormal,
    LogStudent,
    SharedLevel,
    lengthscale_priors,
    variance_priors,
)
from skpref.fitting._model import Model
from skpref.inference import EP
from skpref.kernels import Identity, OnColumns
from skpref.likelihoods import Probit

# Log lengthscales about their medians.
OFFSETS = np.array(
    [[0.0, 0.0, 0.0], [1.3, 1.3, 1.3], [0.2, -0.5, 0.3], [-2.0, 0.1, 6.0], [40.0, -3.0, 0.0]]
)


def some_items(n_features=2):
    scales = np.array([1.0, 10.0, 1e-6, 1e6])[:n_features]
    return np.random.default_rng(0).normal(size=(50, n_features)) * scales


def the_prior(form, kernel, items):
    """The only one."""
    (prior,) = lengthscale_priors(form, kernel, items)
    return prior


def hierarchical(offset):
    """A normal level, and Student's deviations from it."""
    level = offset.mean()
    return norm.logpdf(level, 0.0, 1.0) + t.logpdf(offset - level, 4.0, scale=0.3).sum()


def test_a_pair_is_a_normal_on_log_lengthscales_and_nothing_else():
    kernel = ConstantKernel(2.0) * RBF([0.5, 1.5])
    prior = the_prior((0.7, 0.4), kernel, some_items())
    theta = np.append(kernel.theta, np.log(0.1))

    def reference(theta):
        return norm.logpdf(theta[1:3], np.log(0.7), 0.4).sum()

    value, gradient = prior.log_density(theta)
    elsewhere = theta + np.array([1.0, 0.3, -0.2, 5.0])
    other, _ = prior.log_density(elsewhere)
    moved = reference(elsewhere)
    assert other - value == pytest.approx(moved - reference(theta), abs=1e-12)
    np.testing.assert_allclose(gradient, central_gradient(reference, theta), atol=1e-8)


def test_lognormal_is_a_normal_level_with_students_deviations():
    items = some_items(3)
    kernel = ConstantKernel(2.0) * Matern(np.ones(3), nu=1.5) + ConstantKernel(0.1) * Identity()
    prior = the_prior("lognormal", kernel, items)
    middle = np.log(np.sqrt(3.0) * items.std(axis=0))

    def density(offset):
        return prior.log_density(np.array([3.0, *(middle + offset), -4.0, 2.0]))[0]

    constant = density(OFFSETS[0]) - hierarchical(OFFSETS[0])
    for offset in OFFSETS:
        assert density(offset) == pytest.approx(hierarchical(offset) + constant, rel=1e-12)


@pytest.mark.parametrize("form", ["lognormal", (0.7, 0.4)], ids=str)
@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_gradient_of_the_density_against_differences(form, n_features):
    items, kernel = some_items(n_features), ConstantKernel(2.0) * RBF(np.ones(n_features))
    prior = the_prior(form, kernel, items)
    for seed in range(4):
        offset = np.random.default_rng(seed).normal(scale=1.5, size=n_features)
        theta = np.array([0.3, *(prior.centre + offset), -2.0])
        truth = central_gradient(lambda at: prior.log_density(at)[0], theta, 1e-3)
        np.testing.assert_allclose(prior.log_density(theta)[1], truth, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("form", "deviation"), [("lognormal", 1.0), ((0.7, 0.4), 0.4)], ids=str)
def test_one_lengthscale_alone_is_normal_about_its_median(form, deviation):
    prior = the_prior(form, RBF(1.0), some_items())

    def density(log_lengthscale):
        return np.exp(prior.log_density(np.array([log_lengthscale]))[0])

    below = quad(density, -20.0, prior.centre[0])[0]
    whole = below + quad(density, prior.centre[0], 20.0)[0]
    assert below / whole == pytest.approx(0.5, rel=1e-9)
    inside = quad(density, *(prior.centre[0] + deviation * np.array([-1.0, 1.0])))[0]
    assert inside / whole == pytest.approx(norm.cdf(1.0) - norm.cdf(-1.0), rel=1e-9)


def test_medians_are_root_d_spreads():
    items = some_items(4)
    prior = the_prior("lognormal", RBF(np.ones(4)), items)
    np.testing.assert_allclose(np.exp(prior.centre), 2.0 * items.std(axis=0), rtol=1e-12)
    common = the_prior("lognormal", RBF(1.0), items)
    geometric = np.exp(np.log(items.std(axis=0)).mean())
    np.testing.assert_allclose(np.exp(common.centre), 2.0 * geometric, rtol=1e-12)
    assert isinstance(prior, SharedLevel)


def test_kernels_without_lengthscales_have_no_prior():
    items = some_items()
    assert lengthscale_priors(None, RBF(1.0), items) == ()
    for kernel in (DotProduct(), Identity(), RBF(1.0, "fixed")):
        assert lengthscale_priors("lognormal", kernel, items) == ()
        assert lengthscale_priors((0.7, 0.4), kernel) == ()


@pytest.mark.parametrize("prior", ["normal", (1.0,), 3, (0.0, 1.0), (1.0, -1.0)])
def test_a_bad_prior_says_what_is_allowed(prior):
    with pytest.raises(ValueError, match="lengthscale_prior must"):
        lengthscale_priors(prior, RBF(), np.arange(3.0)[:, None])


@pytest.mark.parametrize(
    ("prior", "name"),
    [((np.inf, 1.0), "median"), ((1.0, np.inf), "deviation"), ((np.nan, 1.0), "median")],
)
def test_a_prior_without_bounds_says_so(prior, name):
    with pytest.raises(ValueError, match=rf"the {name} of lengthscale_prior must lie in \(0.0, in"):
        lengthscale_priors(prior, RBF(), np.arange(3.0)[:, None])


def test_priors_of_several_kinds_add_up():
    """As the model adds them: the noise has one of its own."""
    kernel = ConstantKernel(2.0) * RBF([0.5, 1.5])
    shared = the_prior("lognormal", kernel, some_items())
    noise = LogNormal(np.array([3]), np.log([3e-3]), np.array([2.0]))
    model = Model(kernel, Probit(0.1), EP(), (shared, noise))
    theta = model.theta + np.array([0.1, -0.7, 0.4, 1.3])
    value, gradient = model.log_prior(theta)
    elsewhere, _ = model.log_prior(model.theta)

    def reference(theta):
        offset = theta[1:3] - shared.centre
        return hierarchical(offset) + norm.logpdf(theta[3], np.log(3e-3), 2.0)

    assert value - elsewhere == pytest.approx(reference(theta) - reference(model.theta), rel=1e-12)
    np.testing.assert_allclose(gradient, central_gradient(reference, theta), atol=1e-7)
    alone = Model(kernel, Probit(0.1), EP()).log_prior(theta)
    assert alone[0] == 0.0 and not np.any(alone[1])


def test_beside_ids_short_lengthscales_are_less_probable_than_long_ones():
    """The level is normal, with half the deviation below the medians and the same above."""
    items, kernel = some_items(2), RBF([1.0, 1.0])
    (prior,) = lengthscale_priors("lognormal", kernel, items, beside_ids=True)
    (plain,) = lengthscale_priors("lognormal", kernel, items)
    for offset in ([0.4, 1.2], [0.1, 0.0], [-1.3, -0.5], [-3.0, 0.1]):
        theta = prior.centre + offset
        level = norm.logpdf(np.mean(offset), 0.0, 0.5 if np.mean(offset) < 0.0 else 1.0)
        truth = level + t.logpdf(offset - np.mean(offset), 4.0, scale=0.3).sum()
        at_median = t.logpdf(0.0, 4.0, scale=0.3) * 2
        constant = norm.logpdf(0.0, 0.0, 0.5 if np.mean(offset) < 0.0 else 1.0) + at_median
        value, gradient = prior.log_density(theta)
        assert value == pytest.approx(truth - constant, abs=1e-12)
        slope = central_gradient(lambda at: prior.log_density(at)[0], theta)
        assert_allclose(gradient, slope, atol=1e-6)
        same = plain.log_density(theta)[0]
        assert (value == same) if np.mean(offset) > 0.0 else (value < same)


def test_log_student_is_scipys():
    prior = LogStudent(np.array([2, 0]), np.array([0.0, 1.5]), np.array([2.0, 0.3]))
    thetas = np.random.default_rng(0).normal(scale=3.0, size=(4, 3))
    truth = [
        t.logpdf(theta[2], 4.0, 0.0, 2.0) + t.logpdf(theta[0], 4.0, 1.5, 0.3) for theta in thetas
    ]
    found = [prior.log_density(theta)[0] for theta in thetas]
    assert_allclose(np.diff(found), np.diff(truth), rtol=1e-10)  # up to a constant
    for theta in thetas:
        slope = central_gradient(lambda at: prior.log_density(at)[0], theta)
        assert_allclose(prior.log_density(theta)[1], slope, atol=1e-7)


def test_half_cauchy_is_scipys_of_the_deviation():
    prior = HalfCauchy(np.array([2, 0]), np.array([0.3, 2.0]))
    thetas = np.random.default_rng(0).normal(scale=3.0, size=(4, 3))
    truth = [
        halfcauchy.logpdf(np.exp(0.5 * theta[2]), scale=0.3)
        + halfcauchy.logpdf(np.exp(0.5 * theta[0]), scale=2.0)
        for theta in thetas
    ]
    found = [prior.log_density(theta)[0] for theta in thetas]
    assert_allclose(np.diff(found), np.diff(truth), rtol=1e-12)  # up to a constant
    for theta in thetas:
        change = [
            (prior.log_density(theta + step)[0] - prior.log_density(theta - step)[0]) / 2e-6
            for step in 1e-6 * np.eye(3)
        ]
        assert_allclose(prior.log_density(theta)[1], change, atol=1e-8)
    value, gradient = prior.log_density(np.array([-2000.0, 0.0, 2000.0]))
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))


def test_variances_of_parts_beside_item_effects_are_shrunk():
    kernel = 1.0 * OnColumns(Identity(), [0]) + 0.1 * OnColumns(RBF([1.0, 2.0]), [1, 2]) + 2.0
    unit, parts = variance_priors(kernel)
    assert unit.index.tolist() == [0]
    assert parts.index.tolist() == [1, 4]
    # Names alone, of unit variance and nothing beside them, are the most probable before the fact.
    low = np.array([0.0, -50.0, 0.0, 0.0, -50.0])
    values = [sum(p.log_density(low + step)[0] for p in (unit, parts)) for step in np.eye(5)]
    assert sum(p.log_density(low)[0] for p in (unit, parts)) >= max(values)
    assert variance_priors(RBF() + 0.1 * OnColumns(Identity(), [0])) == ()
    assert variance_priors(Identity()) == ()
