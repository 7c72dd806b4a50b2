"""The probit: high-precision constants, quadrature and finite differences."""

import numpy as np
import pytest
from likelihoods_support import duels, log_prob, tilted
from oracles import central_gradient, tilted_by_quadrature
from scipy.integrate import quad
from scipy.stats import norm

from skpref.likelihoods import Probit
from skpref.likelihoods._normal import sign_proba, standardise

# u, log Φ(u), its first derivative, minus its second, its third, and one plus its second,
# from 600-digit arithmetic.
EXACT = np.array(
    [
        (8, -6.2209605742717861e-16, 5.0522710835368954e-15, 4.0418168668295189e-14,
         3.1829307826282502e-13, 0.99999999999995958),
        (2, -0.023012909328963488, 0.055247862678989959, 0.11354805168857645,
         0.18439481503247759, 0.88645194831142355),
        (0.5, -0.36894641528865639, 0.50916043383703349, 0.5138245643036329,
         0.27099012446870783, 0.4861754356963671),
        (0, -0.69314718055994531, 0.79788456080286536, 0.63661977236758134,
         0.21801361414499016, 0.36338022763241866),
        (-0.5, -1.1759117615936186, 1.1410777703680645, 0.73151959284412105,
         0.16260392517612297, 0.26848040715587895),
        (-2, -3.7831843336820319, 2.3732155328228409, 0.88572089958591874,
         0.059355861291565813, 0.11427910041408126),
        (-4.999, -15.059812373671578, 5.1855366689741896, 0.96729273707396009,
         0.010830853851943087, 0.032707262926039911),
        (-5.001, -15.070185381609438, 5.1874712761032594, 0.96731438860397831,
         0.010820678177292133, 0.03268561139602169),
        (-12, -75.410673001568796, 12.082214175254284, 0.99332927366415414,
         0.0010686026960367542, 0.0066707263358458643),
        (-30, -454.3212439563432, 30.033259667433677, 0.99889622848810991,
         7.3099930157844385e-5, 0.001103771511890091),
        (-59.9, -1799.0168935504236, 59.916685198048837, 0.99972175895927427,
         9.2746956264497018e-6, 0.00027824104072572713),
        (-60.1, -1811.020225037548, 60.116629734718686, 0.99972360466984112,
         9.1826141014258564e-6, 0.00027639533015887688),
        (-200, -20006.21728089819, 200.00499975003124, 0.99997500374921895,
         2.4992502342940935e-7, 2.4996250781047718e-5),
        (-1000, -500007.82669481218, 1000.000999998, 0.99999900000599995,
         1.9999760002999959e-9, 9.9999400004999948e-7),
    ]
)  # fmt: skip
U, LOG_CDF, FIRST, SECOND, THIRD, LEFT = EXACT.T


@pytest.mark.parametrize("noise_variance", [1e-6, 0.5, 30.0])
def test_derivatives_are_exact_from_far_below_to_far_above(noise_variance):
    scale = np.sqrt(2.0 * noise_variance)
    found = log_prob(scale * U, noise_variance)
    np.testing.assert_allclose(found.value, LOG_CDF, rtol=1e-14)
    np.testing.assert_allclose(found.gradient * scale, FIRST, rtol=1e-14)
    np.testing.assert_allclose(found.curvature * scale**2, SECOND, rtol=3e-14)
    np.testing.assert_allclose(found.third * scale**3, THIRD, rtol=3e-12)


def test_a_site_without_noise_leaves_the_variance_of_a_truncated_normal():
    variance = 4.0
    found = tilted(np.sqrt(variance) * U, np.full(len(U), variance), 1e-300)
    np.testing.assert_allclose(found.log_normaliser, LOG_CDF, rtol=1e-14)
    np.testing.assert_allclose(found.shrink, LEFT, rtol=2e-13)


def test_a_scalar_is_taken_as_an_array_of_one():
    for u in (-100.0, 0.3):
        assert log_prob(u, 0.5).third == log_prob(np.array([u]), 0.5).third[0]


def test_extreme_scales_overflow_to_infinity_not_to_nan():
    found = tilted(np.array([-1e200, 1e200]), np.ones(2), 0.5)
    np.testing.assert_array_equal(found.log_normaliser, [-np.inf, 0.0])
    np.testing.assert_array_equal(found.curvature, [0.5, 0.0])
    np.testing.assert_allclose(found.shrink, [0.5, 1.0])


def test_the_noise_on_a_margin_is_that_of_both_items():
    z, noise_variance = 0.4, 0.09
    sd = np.sqrt(noise_variance)

    def winner_seen_above(loser_noise):
        return norm.sf(loser_noise, loc=z, scale=sd) * norm.pdf(loser_noise, scale=sd)

    truth = quad(winner_seen_above, -9 * sd, 9 * sd, epsabs=1e-13)[0]
    found = Probit(noise_variance).outcome_proba(np.array([z]), np.zeros(1))
    assert found[0] == pytest.approx([1.0 - truth, truth], abs=1e-12)
    assert np.exp(log_prob(np.array([z]), noise_variance).value[0]) == pytest.approx(truth)
    assert Probit(noise_variance).margin_variance == pytest.approx(2 * noise_variance)


@pytest.mark.parametrize(
    ("mean", "variance", "noise_variance"),
    [
        (0.0, 1.0, 0.1),
        (1.5, 0.3, 1.0),
        (-3.0, 1.0, 1e-3),
        (-8.0, 1.0, 1e-6),
        (-30.0, 4.0, 0.5),
        (-80.0, 1.0, 1e-2),
        (6.0, 2.0, 1e-4),
        (-0.1, 1e-6, 0.1),
    ],
)
def test_tilted_moments_by_quadrature(mean, variance, noise_variance):
    found = tilted(np.array([mean]), np.array([variance]), noise_variance)
    log_normaliser, tilted_mean, tilted_variance = tilted_by_quadrature(
        mean, variance, noise_variance
    )
    assert found.log_normaliser[0] == pytest.approx(log_normaliser, rel=1e-12, abs=1e-12)
    sd = np.sqrt(variance)
    assert mean + variance * found.gradient[0] == pytest.approx(tilted_mean, abs=1e-11 * sd)
    assert variance * found.shrink[0] == pytest.approx(tilted_variance, rel=1e-11)
    assert 1.0 - variance * found.curvature[0] == pytest.approx(found.shrink[0], abs=1e-13)


@pytest.mark.parametrize("z", [-5.3, -0.7, 0.0, 0.4, 2.1])
def test_noise_derivatives_against_differences(z):
    margin, log_noise = np.array([z]), np.log(0.3)
    found = Probit(0.3).theta_derivatives(margin, duels(1))
    for part, name in zip(found, ("value", "gradient", "curvature"), strict=True):

        def function(at, name=name):
            return getattr(log_prob(margin, np.exp(at[0])), name)[0]

        truth = central_gradient(function, [log_noise], 1e-2)[0]
        assert part.shape == (1, 1)
        assert part[0, 0] == pytest.approx(truth, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mean", [-20.0, -0.7, 0.0, 2.1])
def test_noise_gradient_of_the_log_normaliser_against_differences(mean):
    at = np.array([mean]), np.array([0.8])

    def function(log_noise):
        return tilted(*at, np.exp(log_noise[0])).log_normaliser[0]

    truth = central_gradient(function, [np.log(0.3)], 1e-2)[0]
    found = Probit(0.3).tilted_theta_gradient(*at, duels(1))
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(truth, rel=1e-9, abs=1e-12)


def first_wins(mean, variance, noise_variance, noise=True, log=False):
    """P(first wins), with the noise of the judge or without, or its logarithm."""
    mean, variance = np.asarray(mean), np.asarray(variance)
    if not noise:
        return sign_proba(mean, variance, log)
    probit = Probit(noise_variance)
    read = probit.outcome_log_proba if log else probit.outcome_proba
    return read(mean, variance)[..., 1]


@pytest.mark.parametrize("noise", [True, False])
def test_win_probability_by_quadrature_and_its_two_sides(noise):
    rng = np.random.default_rng(0)
    for mean, variance in zip(rng.normal(size=5), rng.uniform(0.1, 2.0, 5), strict=True):

        def weighted(z, mean=mean, variance=variance):
            wins = norm.cdf(z, scale=np.sqrt(0.5)) if noise else float(z > 0.0)
            return wins * norm.pdf(z, mean, np.sqrt(variance))

        sd = np.sqrt(variance)
        truth = quad(weighted, mean - 9 * sd, mean + 9 * sd, points=[0.0], limit=200)[0]
        found = first_wins(mean, variance, 0.25, noise=noise)
        assert found == pytest.approx(truth, abs=1e-8)
        assert found + first_wins(-mean, variance, 0.25, noise=noise) == pytest.approx(1.0)
        log = first_wins(mean, variance, 0.25, noise=noise, log=True)
        assert np.exp(log) == pytest.approx(found, rel=1e-13)


@pytest.mark.parametrize("log", [False, True])
def test_the_two_columns_are_the_two_sides_of_a_duel(log):
    mean, variance = np.array([[0.3], [-2.0]]), np.array([0.0, 0.7, 40.0])
    probit = Probit(0.25)
    read = probit.outcome_log_proba if log else probit.outcome_proba
    found, turned = read(mean, variance), read(-mean, variance)
    assert found.shape == (2, 3, 2)
    np.testing.assert_array_equal(found[..., 0], turned[..., 1])
    total = np.exp(found).sum(axis=-1) if log else found.sum(axis=-1)
    np.testing.assert_allclose(total, 1.0, rtol=1e-14)


def test_log_probability_far_out_follows_the_bound_on_the_tail():
    u = np.array([40.0, 200.0, 1e6])
    log = first_wins(-u, np.full(3, 1.0 - 2.0 * 1e-3), 1e-3, log=True)
    # φ(u)/u (1 − 1/u²) < Φ(−u) < φ(u)/u
    upper = -0.5 * u**2 - np.log(u) - 0.5 * np.log(2.0 * np.pi)
    assert np.all(log <= upper * (1.0 - 1e-14))
    assert np.all(log >= (upper + np.log1p(-1.0 / u**2)) * (1.0 + 1e-14))


def test_a_margin_that_is_surely_known_is_won_lost_or_even():
    mean = np.array([-2.0, 0.0, 2.0])
    np.testing.assert_array_equal(sign_proba(mean, np.zeros(3)), [0, 0.5, 1])
    assert standardise(np.array([0.0]), np.zeros(1))[0] == 0.0


@pytest.mark.parametrize("noise", [0.3, 1e-3])
def test_log_normaliser_of_powers_against_quadrature(noise):
    likelihood = Probit(noise)
    mean, variance = np.array([0.4, -1.5, 2.0, 0.1]), np.array([0.05, 0.5, 2.0, 1e-4])
    power = np.array([0.3, 0.99, 0.05, 1.0])
    found = likelihood.log_normaliser(mean, variance, duels(4), power)
    scale = np.sqrt(2.0 * noise)
    for m, v, w, value in zip(mean, variance, power, found, strict=True):

        def height(z, m=m, v=v, w=w):
            return np.exp(w * norm.logcdf(z / scale)) * norm.pdf(z, m, np.sqrt(v))

        reach = 12.0 * np.sqrt(v)
        kink = [p for p in (0.0, m) if m - reach < p < m + reach]
        at = quad(height, m - reach, m + reach, points=kink, epsabs=0, epsrel=1e-12, limit=500)
        assert value == pytest.approx(np.log(at[0]), rel=1e-9, abs=1e-9)
