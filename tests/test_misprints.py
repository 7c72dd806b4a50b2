"""Misprints in the sources that the page on the model names, checked by number."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.stats import beta as beta_of_counts
from scipy.stats import norm, truncnorm


def test_the_mean_of_a_truncated_normal_has_a_minus():
    mean, scale = 0.3, 1.2
    beta = -mean / scale
    exact = truncnorm(-np.inf, beta, loc=mean, scale=scale).mean()
    assert_allclose(exact, mean - scale * norm.pdf(beta) / norm.cdf(beta))


def test_the_derivative_of_the_probit():
    z, h = 0.7, 1e-6  # z: the margin over sqrt(2)
    slope = (norm.cdf(z + h / np.sqrt(2)) - norm.cdf(z - h / np.sqrt(2))) / (2 * h)
    assert_allclose(slope, np.exp(-(z**2) / 2) / (2 * np.sqrt(np.pi)), rtol=1e-5)


def test_the_gradient_of_the_bound_in_a_lengthscale():
    """Minus the divergence of N(f, S) from N(0, K / scale), by differences."""
    rng = np.random.default_rng(0)
    x, f = np.linspace(-2.0, 2.0, 5)[:, None], rng.normal(size=5)
    root, scale, length = rng.normal(size=(5, 5)), 2.5, 0.6
    covariance, gap = root @ root.T / 5.0 + 0.1 * np.eye(5), x - x.T

    def bound(length):
        precision = scale * np.linalg.inv(np.exp(-0.5 * (gap / length) ** 2))
        inner = np.trace(precision @ covariance) + f @ precision @ f
        return -0.5 * (inner - 5 - np.linalg.slogdet(precision @ covariance)[1])

    kernel = np.exp(-0.5 * (gap / length) ** 2)
    slope, inverse = kernel * gap**2 / length**3, np.linalg.inv(kernel)
    by_mean = 0.5 * scale * f @ inverse @ slope @ inverse @ f
    right = inverse @ covariance @ (np.linalg.inv(covariance) - scale * inverse)
    printed = (scale * inverse @ covariance).T @ (np.linalg.inv(covariance) - inverse / scale)
    difference = (bound(length + 1e-6) - bound(length - 1e-6)) / 2e-6
    assert_allclose(by_mean - 0.5 * np.trace(right @ slope), difference, rtol=1e-6)
    assert abs(by_mean - 0.5 * np.trace(printed @ slope) - difference) > 1.0


def fixed_point(target, spread, sign=1.0):
    """Where the linearised update of a margin with a prior of unit variance stays."""
    margin = 0.0
    for _ in range(200):
        chance, slope = norm.cdf(margin / 2**0.5), norm.pdf(margin / 2**0.5) / 2**0.5
        update = slope * (target - chance + sign * slope * margin) / (spread + slope**2)
        margin = 0.5 * (margin + update)
    return margin


def largest_bound(won, labels, spread):
    """Where the bound of that margin is largest."""

    def loss(margin):
        return (won / labels - norm.cdf(margin / 2**0.5)) ** 2 / spread + margin**2

    return minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x


@pytest.mark.parametrize(("won", "labels"), [(1, 1), (0, 1), (2, 3)])
def test_the_linearised_update_has_the_share_as_its_target_and_a_plus(won, labels):
    spread = beta_of_counts(1 + won, 1 + labels - won).var()
    best = largest_bound(won, labels, spread)
    assert_allclose(fixed_point(won / labels, spread), best, atol=1e-4)
    assert abs(fixed_point(won / labels, spread, -1.0) - best) > 0.1
    assert abs(fixed_point((1 + won) / labels, spread) - best) > 0.1


def test_the_conditional_mean_of_gibbs_sampling():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    covariance, v = root @ root.T + np.eye(3), rng.normal(size=3)
    precision = np.linalg.inv(covariance)
    by_regression = covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], v[1:])
    assert_allclose(v[0] - (precision @ v)[0] / precision[0, 0], by_regression)
