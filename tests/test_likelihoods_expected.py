"""Expected log-probabilities: numerical integration, differences, and the default of the base."""

from itertools import pairwise

import numpy as np
import pytest
from likelihoods_support import BareProbit, Logistic, rows
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from skpref.likelihoods import DUEL, TIE, Probit

TIES = Probit(0.4, tie_threshold=0.5, order_effect=0.3, order_effect_bounds=(-2.0, 2.0))


def mixed(n):
    rng = np.random.default_rng(0)
    kind = np.where(rng.random(n) < 0.4, TIE, DUEL)
    return rows(kind, rng.integers(-1, 2, n))


def by_quad(likelihood, mean, variance, answers):
    """Row by row, the integrand broken where the answer's probability bends."""

    def one(m, s, row):
        def integrand(x):
            return likelihood.log_prob(np.array([m + s * x]), row).value[0] * norm.pdf(x)

        bends = np.clip([(b - m) / s for b in (-1.0, 0.0, 1.0)], -11.0, 11.0)
        edges = np.unique(np.concatenate([[-12.0], bends, [12.0]]))
        return sum(
            quad(integrand, a, b, epsabs=1e-11, epsrel=1e-11, limit=200)[0]
            for a, b in pairwise(edges)
        )

    each = zip(mean, np.sqrt(variance), range(len(mean)), strict=True)
    return np.array([one(m, s, answers.take(np.array([i]))) for m, s, i in each])


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 1.0])
def test_probit_agrees_with_integration(noise):
    mean = np.array([-3.0, -0.4, 0.0, 0.2, 2.5])
    variance = np.array([0.1, 2.0, 1e-3, 0.5, 1.0])
    answers = rows(np.zeros(5))
    truth = by_quad(Probit(noise), mean, variance, answers)
    found = Probit(noise).expected(mean, variance, answers)
    assert_allclose(found.value, truth, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", [TIES, Logistic(0.5)], ids=["ties", "logistic"])
def test_other_answers_agree_with_integration(likelihood):
    mean, variance = np.linspace(-2.0, 2.0, 8), np.linspace(0.02, 0.5, 8)
    answers = mixed(8) if likelihood is TIES else rows(np.zeros(8))
    truth = by_quad(likelihood, mean, variance, answers)
    assert_allclose(likelihood.expected(mean, variance, answers).value, truth, rtol=1e-7)


@pytest.mark.parametrize(
    "likelihood",
    [Probit(0.3), Probit(1e-3), TIES, Logistic(0.3)],
    ids=["wide", "sharp", "ties", "l"],
)
def test_slopes_agree_with_differences(likelihood):
    mean, variance = np.linspace(-2.0, 2.0, 9), np.linspace(0.02, 1.5, 9)
    answers = mixed(9) if likelihood is TIES else rows(np.zeros(9), np.arange(9) % 3 - 1)
    found, h = likelihood.expected(mean, variance, answers), 1e-5

    def value(m, v):
        return likelihood.expected(m, v, answers).value

    by_mean = (value(mean + h, variance) - value(mean - h, variance)) / (2 * h)
    by_variance = (value(mean, variance + h) - value(mean, variance - h)) / (2 * h)
    assert_allclose(found.by_mean, by_mean, rtol=1e-6, atol=1e-6)
    assert_allclose(found.by_variance, by_variance, rtol=1e-6, atol=1e-6)
    assert np.all(found.by_variance <= 0.0)


@pytest.mark.parametrize(
    "likelihood",
    [
        Probit(0.3),
        Probit(0.2, order_effect=0.4, order_effect_bounds=(-1.0, 1.0)),
        TIES,
        Logistic(0.3),
    ],
    ids=["plain", "order", "ties", "logistic"],
)
def test_hyperparameter_slopes_agree_with_differences(likelihood):
    mean, variance = np.linspace(-1.5, 1.5, 7), np.linspace(0.05, 0.37, 7)
    answers = mixed(7) if likelihood is TIES else rows(np.zeros(7), np.arange(7) % 3 - 1)
    found, theta = likelihood.expected_theta_gradient(mean, variance, answers), likelihood.theta
    assert found.shape == (len(theta), 7)
    for step, slope in zip(1e-5 * np.eye(len(theta)), found, strict=True):
        above, below = (likelihood.at(theta + s * step) for s in (1.0, -1.0))
        change = above.expected(mean, variance, answers).value
        change = (change - below.expected(mean, variance, answers).value) / 2e-5
        assert_allclose(slope, change, rtol=1e-6, atol=1e-7)


def test_a_likelihood_of_its_probability_alone_agrees_with_the_probit():
    mean, variance = np.linspace(-2.0, 2.0, 9), np.linspace(0.01, 0.3, 9)
    answers = rows(np.zeros(9))
    bare, own = (each(0.3).expected(mean, variance, answers) for each in (BareProbit, Probit))
    for one, other in zip(bare, own, strict=True):
        assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_a_margin_that_is_known_has_the_log_probability_itself():
    mean, answers = np.linspace(-2.0, 2.0, 9), mixed(9)
    found = TIES.expected(mean, np.zeros(9), answers)
    at = TIES.log_prob(mean, answers)
    assert_allclose(found.value, at.value, rtol=1e-9)
    assert_allclose(found.by_mean, at.gradient, rtol=1e-8, atol=1e-10)
    assert_allclose(found.by_variance, -0.5 * at.curvature, rtol=1e-5, atol=1e-6)


def test_far_out_the_expectation_is_that_of_a_parabola():
    # log Φ(u) ≈ −u²/2 − log(−u √(2π)) for u far below zero
    mean, variance = np.array([-50.0, -400.0]), np.array([4.0, 900.0])
    found = Probit(0.5).expected(mean, variance, rows(np.zeros(2)))
    bulk = -0.5 * (mean**2 + variance) - np.log(-mean * np.sqrt(2.0 * np.pi))
    assert_allclose(found.value, bulk, rtol=1e-6, atol=2e-3)
