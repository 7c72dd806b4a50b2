"""Expected log-probabilities: numerical integration, differences, and the default of the base."""

from itertools import pairwise

import numpy as np
import pytest
from likelihoods_support import BareProbit, Logistic, rows
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from skpref.likelihoods import DUEL, TIE, Probit

TIES = Probit(0.4, tie_threshold=0.5, order_effect=0.3, order_effect_bounds=(-2.0, 2.0))


def mixed(n):
    rng = np.random.default_rng(0)
    kind = np.where(rng.random(n) < 0.4, TIE, DUEL)
    return rows(kind, rng.integers(-1, 2, n))


def noisy_log_prob(likelihood, margin, noise, row):
    """Log of the mean probability over noise on the margin, by a sum over many points."""
    x = np.linspace(-9.0, 9.0, 1 if noise == 0.0 else 2001)
    value = likelihood.log_prob(margin + np.sqrt(noise) * x, row.take(np.zeros(len(x), dtype=int)))
    return logsumexp(value.value, b=norm.pdf(x) / norm.pdf(x).sum())


def by_quad(likelihood, mean, variance, noise, answers):
    """Row by row, the integrand broken where the answer's probability bends."""

    def one(m, s, v, row):
        def integrand(x):
            return noisy_log_prob(likelihood, m + s * x, v, row) * norm.pdf(x)

        bends = np.clip([(b - m) / s for b in (-1.0, 0.0, 1.0)], -11.0, 11.0)
        edges = np.unique(np.concatenate([[-12.0], bends, [12.0]]))
        return sum(
            quad(integrand, a, b, epsabs=1e-11, epsrel=1e-11, limit=200)[0]
            for a, b in pairwise(edges)
        )

    each = zip(mean, np.sqrt(variance), noise, range(len(mean)), strict=True)
    return np.array([one(m, s, v, answers.take(np.array([i]))) for m, s, v, i in each])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 1e-2, 1.0])
def test_probit_agrees_with_integration(noise):
    mean = np.array([-3.0, -0.4, 0.0, 0.2, 2.5])
    variance = np.array([0.1, 2.0, 1e-3, 0.5, 1.0])
    answers, none = rows(np.zeros(5)), np.zeros(5)
    truth = by_quad(Probit(noise), mean, variance, none, answers)
    found = Probit(noise).expected(mean, variance, none, answers)
    assert_allclose(found.value, truth, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("most", [0.0, 0.3], ids=["plain", "with noise"])
@pytest.mark.parametrize(
    "likelihood", [Probit(0.2), TIES, Logistic(0.5)], ids=["probit", "ties", "logistic"]
)
def test_answers_agree_with_integration(likelihood, most):
    mean, variance, noise = (np.linspace(*ends, 5) for ends in ((-2, 2), (0.02, 0.5), (0.0, most)))
    answers = mixed(5) if likelihood is TIES else rows(np.zeros(5))
    truth = by_quad(likelihood, mean, variance, noise, answers)
    assert_allclose(likelihood.expected(mean, variance, noise, answers).value, truth, rtol=1e-7)


@pytest.mark.parametrize(
    "likelihood",
    [Probit(0.3), Probit(1e-3), TIES, Logistic(0.3)],
    ids=["wide", "sharp", "ties", "l"],
)
def test_slopes_agree_with_differences(likelihood):
    mean, variance = np.linspace(-2.0, 2.0, 9), np.linspace(0.02, 1.5, 9)
    answers = mixed(9) if likelihood is TIES else rows(np.zeros(9), np.arange(9) % 3 - 1)
    noise = np.linspace(0.1, 0.01, 9)
    at, h = np.array([mean, variance, noise]), 1e-5
    _, *slopes = found = likelihood.expected(*at, answers)
    for slope, step in zip(slopes, h * np.eye(3), strict=True):
        above, below = (likelihood.expected(*(at + s * step[:, None]), answers) for s in (1, -1))
        assert_allclose(slope, (above.value - below.value) / (2 * h), rtol=1e-6, atol=1e-6)
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
    seen = np.linspace(-1.5, 1.5, 7), np.linspace(0.05, 0.37, 7), np.linspace(0.2, 0.0, 7)
    answers = mixed(7) if likelihood is TIES else rows(np.zeros(7), np.arange(7) % 3 - 1)
    found, theta = likelihood.expected_theta_gradient(*seen, answers), likelihood.theta
    assert found.shape == (len(theta), 7)
    for step, slope in zip(1e-5 * np.eye(len(theta)), found, strict=True):
        above, below = (likelihood.at(theta + s * step) for s in (1.0, -1.0))
        change = above.expected(*seen, answers).value
        change = (change - below.expected(*seen, answers).value) / 2e-5
        assert_allclose(slope, change, rtol=1e-6, atol=1e-7)


def test_a_likelihood_of_its_probability_alone_agrees_with_the_probit():
    seen = np.linspace(-2.0, 2.0, 9), np.linspace(0.01, 0.3, 9), np.linspace(0.2, 0.0, 9)
    answers = rows(np.zeros(9))
    bare, own = (each(0.3).expected(*seen, answers) for each in (BareProbit, Probit))
    for one, other in zip(bare, own, strict=True):
        assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_a_margin_that_is_known_has_the_log_probability_itself():
    mean, answers = np.linspace(-2.0, 2.0, 9), mixed(9)
    found = TIES.expected(mean, np.zeros(9), np.zeros(9), answers)
    at = TIES.log_prob(mean, answers)
    assert_allclose(found.value, at.value, rtol=1e-9)
    assert_allclose(found.by_mean, at.gradient, rtol=1e-8, atol=1e-10)
    assert_allclose(found.by_variance, -0.5 * at.curvature, rtol=1e-5, atol=1e-6)


def test_far_out_the_expectation_is_that_of_a_parabola():
    # log Φ(u) ≈ −u²/2 − log(−u √(2π)) for u far below zero
    mean, variance = np.array([-50.0, -400.0]), np.array([4.0, 900.0])
    found = Probit(0.5).expected(mean, variance, np.zeros(2), rows(np.zeros(2)))
    bulk = -0.5 * (mean**2 + variance) - np.log(-mean * np.sqrt(2.0 * np.pi))
    assert_allclose(found.value, bulk, rtol=1e-6, atol=2e-3)
