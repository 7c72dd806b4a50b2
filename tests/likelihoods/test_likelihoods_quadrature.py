"""What a likelihood gets from its probability alone: against closed forms and fine trapezoids."""

import numpy as np
import pytest
from likelihoods_support import BareProbit, Logistic, duels
from numpy.testing import assert_allclose
from oracles import central_gradient, tilted_by_quadrature
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr
from tiers_support import thinned

from skpref.likelihoods import Probit


def trapezoid(log_factor, mean, variance):
    """log normaliser, mean and variance of N(z; mean, variance) exp(log_factor(z)).

    The trapezoidal rule, which converges geometrically for a smooth integrand that vanishes at both
    ends; the tilted density must change on no scale below 1e-3 standard deviations.
    """
    sd = np.sqrt(variance)

    def log_density(z):
        return log_factor(z) - 0.5 * ((z - mean) / sd) ** 2

    span = (mean - 60.0 * sd, max(mean, 0.0) + 60.0 * sd)
    mode = minimize_scalar(lambda z: -log_density(z), bounds=span, options={"xatol": 1e-9 * sd}).x
    top = log_density(mode)

    def fallen(z):
        return log_density(z) - top + 60.0

    low, high = brentq(fallen, mode - 30.0 * sd, mode), brentq(fallen, mode, mode + 30.0 * sd)
    z = np.linspace(low, high, 200_001) - mode
    density = np.exp(log_density(z + mode) - top)
    mass = density.sum()
    offset = density @ z / mass
    log_normaliser = (
        top + np.log(mass * (high - low) / 200_000) - 0.5 * np.log(2.0 * np.pi * variance)
    )
    return log_normaliser, mode + offset, density @ (z - offset) ** 2 / mass


FACTORS = {
    "probit": (BareProbit(0.02), lambda z: log_ndtr(z / 0.2)),
    "sharp probit": (BareProbit(5e-5), lambda z: log_ndtr(z / 1e-2)),
    "logistic": (Logistic(0.3), lambda z: -np.logaddexp(0.0, -z / 0.3)),
    "sharp logistic": (Logistic(0.02), lambda z: -np.logaddexp(0.0, -z / 0.02)),
}
CAVITIES = np.array(
    [(m * np.sqrt(v), v) for v in (1e-3, 0.3, 5.0) for m in (-25.0, -4.0, -0.5, 0.0, 1.0, 6.0)]
)


@pytest.mark.parametrize("power", thinned([None, 0.3, 1e-3]))
@pytest.mark.parametrize("name", FACTORS)
def test_tilted_moments_against_the_trapezoidal_rule(name, power):
    likelihood, log_factor = FACTORS[name]
    share = 1.0 if power is None else power
    mean, variance = CAVITIES.T
    powers = None if power is None else np.full(len(mean), power)
    found = likelihood.tilted(mean, variance, duels(len(mean)), powers)
    truth = np.array([trapezoid(lambda z: share * log_factor(z), *each) for each in CAVITIES])
    log_normaliser, tilted_mean, tilted_var = truth.T
    sd = np.sqrt(variance)
    assert_allclose(found.log_normaliser, log_normaliser, rtol=1e-11, atol=1e-10)
    assert_allclose((mean + variance * found.gradient - tilted_mean) / sd, 0.0, atol=1e-10)
    assert_allclose(variance * found.shrink, tilted_var, rtol=1e-9)
    assert_allclose(1.0 - variance * found.curvature, found.shrink, atol=1e-13)


@pytest.mark.parametrize("noise_variance", [1e-12, 1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("variance", [1e-8, 1e-2, 1.0, 1e6])
def test_tilted_moments_are_those_of_the_closed_form_at_any_scale(noise_variance, variance):
    u = np.concatenate([[-300.0, -40.0], np.linspace(-8.0, 8.0, 33), [20.0]])
    mean, n = u * np.sqrt(variance), len(u)
    found = BareProbit(noise_variance).tilted(mean, np.full(n, variance), duels(n))
    truth = Probit(noise_variance).tilted(mean, np.full(n, variance), duels(n))
    scale = np.sqrt(variance)
    assert_allclose(found.log_normaliser, truth.log_normaliser, rtol=1e-9, atol=1e-10)
    assert_allclose(found.gradient * scale, truth.gradient * scale, rtol=1e-9, atol=1e-10)
    assert_allclose(found.shrink, truth.shrink, rtol=1e-8)


@pytest.mark.parametrize("mean", [-1e4, -1e6, 1e6])
def test_hopeless_tails_end_soon(mean):
    """Rounding leaves few digits of the integrand: they are not chased."""
    at = np.array([mean]), np.ones(1), duels(1)
    found, truth = BareProbit(0.5).tilted(*at), Probit(0.5).tilted(*at)
    assert_allclose(found.log_normaliser, truth.log_normaliser, rtol=1e-9, atol=1e-9)
    assert_allclose(found.gradient, truth.gradient, rtol=1e-6, atol=1e-6)
    assert_allclose(found.shrink, truth.shrink, rtol=1e-2)


def test_rows_do_not_mix():
    mean, variance = np.array([-3.0, 0.2, 9.0]), np.array([4.0, 1e-4, 1.0])
    power = np.array([0.2, 1.0, 0.7])
    together = Logistic(0.2).tilted(mean, variance, duels(3), power)
    for i in range(3):
        row = slice(i, i + 1)
        alone = Logistic(0.2).tilted(mean[row], variance[row], duels(1), power[row])
        for part, single in zip(together, alone, strict=True):
            assert part[i] == pytest.approx(single[0], rel=1e-12)


def test_powers_of_the_probit_leave_whole_answers_to_the_closed_form():
    mean, variance = CAVITIES.T
    n = len(mean)
    power = np.where(np.arange(n) % 2, 1.0, 0.4)
    found = Probit(0.02).tilted(mean, variance, duels(n), power)
    whole = Probit(0.02).tilted(mean, variance, duels(n))
    part = BareProbit(0.02).tilted(mean, variance, duels(n), power)
    for one, closed, quadrature in zip(found, whole, part, strict=True):
        np.testing.assert_array_equal(one[1::2], closed[1::2])
        assert_allclose(one[::2], quadrature[::2], rtol=1e-11)
    slopes = Probit(0.02).tilted_theta_gradient(mean, variance, duels(n), power)
    by_default = BareProbit(0.02).tilted_theta_gradient(mean, variance, duels(n), power)
    assert_allclose(slopes, by_default, rtol=1e-6, atol=1e-9)


def test_oracles_agree():
    for mean, variance in CAVITIES:
        one = trapezoid(lambda z: log_ndtr(z / 0.2), mean, variance)
        assert_allclose(one, tilted_by_quadrature(mean, variance, 0.02), rtol=1e-9, atol=1e-10)


# -- hyperparameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("power", [None, 0.3])
@pytest.mark.parametrize("likelihood", [BareProbit(0.02), Probit(0.02), Logistic(0.2)], ids=str)
def test_gradient_of_the_log_normaliser_against_differences(likelihood, power):
    mean, variance = CAVITIES.T
    n = len(mean)
    power = None if power is None else np.full(n, power)
    found = likelihood.tilted_theta_gradient(mean, variance, duels(n), power)
    assert found.shape == (1, n)

    def function(theta):
        return likelihood.at(theta).tilted(mean, variance, duels(n), power).log_normaliser

    truth = central_gradient(function, likelihood.theta, 2e-2)
    assert_allclose(found, truth, rtol=1e-6, atol=1e-8)


def test_derivatives_in_a_hyperparameter_are_differences_of_the_probability():
    z = np.array([-30.0, -2.0, -0.3, 0.0, 0.1, 1.5])
    found = BareProbit(0.3).theta_derivatives(z, duels(6))
    truth = Probit(0.3).theta_derivatives(z, duels(6))
    for one, other in zip(found, truth, strict=True):
        assert one.shape == other.shape == (1, 6)
        assert_allclose(one, other, rtol=1e-7, atol=1e-8)


def test_what_is_held_has_no_derivatives():
    at = np.array([0.3]), np.array([1.0]), duels(1)
    for likelihood in (BareProbit(0.3).fix_hyperparameters(), Probit(0.3, "fixed")):
        assert likelihood.free == [] and likelihood.theta.shape == (0,)
        assert likelihood.bounds.shape == (0, 2)
        assert likelihood.tilted_theta_gradient(*at).shape == (0, 1)
        assert [part.shape for part in likelihood.theta_derivatives(at[0], at[2])] == [(0, 1)] * 3
        assert likelihood.at(np.zeros(0)).noise_variance == 0.3


def test_theta_is_logarithms_of_what_is_free():
    likelihood = Logistic(0.2, (0.1, 5.0))
    assert_allclose(likelihood.theta, np.log([0.2]))
    assert_allclose(likelihood.bounds, np.log([[0.1, 5.0]]))
    moved = likelihood.at(np.log([3.0]))
    assert moved.scale == pytest.approx(3.0) and moved.scale_bounds == (0.1, 5.0)
    assert likelihood.scale == 0.2


@pytest.mark.parametrize(
    ("likelihood", "error", "match"),
    [
        (Logistic(0.0), ValueError, r"scale must lie in \(0.0, inf\), got 0.0"),
        (Logistic("a"), TypeError, "scale must be a number"),
        (Logistic(1.0, (2.0, 1.0)), ValueError, "scale_bounds must be 'fixed' or a pair"),
        (Probit(np.nan), ValueError, "noise_variance must lie"),
    ],
)
def test_bad_hyperparameters_say_what_is_allowed(likelihood, error, match):
    with pytest.raises(error, match=match):
        likelihood.check()


# -- outcomes ------------------------------------------------------------------------------------


def test_outcomes_of_a_gaussian_margin_are_those_of_the_closed_form():
    mean, variance = np.linspace(-30.0, 30.0, 13)[:, None], np.array([0.0, 1e-6, 0.5, 100.0])
    found = BareProbit(0.05).outcome_log_proba(mean, variance)
    truth = Probit(0.05).outcome_log_proba(mean, variance)
    assert found.shape == (13, 4, 2)
    assert_allclose(found, truth, rtol=1e-10, atol=1e-10)
    assert_allclose(BareProbit(0.05).outcome_proba(mean, variance), np.exp(truth), rtol=1e-9)
    # A variance that rounding left below zero is none.
    below = BareProbit(0.05).outcome_log_proba(mean[:, 0], np.full(13, -1e-18))
    assert_allclose(below, truth[:, 0])


def test_noise_of_a_margin_is_that_of_the_probit_of_the_same_slope():
    for noise_variance in (1e-4, 0.3, 7.0):
        found = BareProbit(noise_variance).margin_variance
        assert found == pytest.approx(Probit(noise_variance).margin_variance, rel=1e-12)
    # The logistic function's slope at zero is 1/(4 s), the normal density's 1/√(2π v).
    assert Logistic(0.7).margin_variance == pytest.approx(16.0 * 0.49 / (2.0 * np.pi), rel=1e-12)


def test_only_probits_are_boxes_of_a_noisy_margin():
    regions = Probit(0.3).regions(duels(2))
    assert_allclose(regions.lower, 0.0)
    assert_allclose(regions.upper, np.inf)
    assert_allclose(regions.variance, 0.6)
    assert Logistic().regions(duels(2)) is None


def test_a_likelihood_that_knows_no_better_leaves_repeats_to_ep():
    site = Logistic().repeated_site(np.zeros(2), np.ones(2), np.full(2, 3.0), duels(2))
    assert np.isnan(site.precision).all() and np.isnan(site.shift).all()
