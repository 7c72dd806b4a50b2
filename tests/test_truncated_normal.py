import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtri

from skpref.samplers import truncated_normal
from skpref.samplers.truncated_normal import quantile_below


@pytest.mark.parametrize("lower", [-8.0, -1.0, 0.0, 0.3, 1.0, 3.0, 8.0, 30.0, 35.99, 36.01, 1e3])
def test_draws_follow_the_exact_distribution(lower):
    draws = truncated_normal(lower, np.random.default_rng(11), size=100_000)

    def cdf(x):  # 1 − Q(x)/Q(lower), in logarithms
        return -np.expm1(log_ndtr(-x) - log_ndtr(-lower))

    assert draws.min() >= lower
    assert stats.kstest(draws, cdf).pvalue > 1e-3


@pytest.mark.parametrize("lower", [-8.0, 0.3, 3.0, 8.0, 30.0])
def test_mean_and_variance_agree_with_scipy(lower):
    draws = truncated_normal(lower, np.random.default_rng(5), size=200_000)
    exact = stats.truncnorm(lower, np.inf)
    error = exact.std() / np.sqrt(draws.size)
    assert abs(draws.mean() - exact.mean()) < 4 * error
    fourth = np.mean((draws - draws.mean()) ** 4)
    spread = np.sqrt((fourth - exact.var() ** 2) / draws.size)
    assert abs(draws.var() - exact.var()) < 4 * spread


def test_one_call_takes_many_truncation_points():
    lower = np.array([[-np.inf, -2.0, 0.0], [2.0, 20.0, 50.0]])
    draws = truncated_normal(lower, np.random.default_rng(0), size=(20_000, 2, 3))
    exact = np.array([[0.0, stats.truncnorm(-2, np.inf).mean(), np.sqrt(2 / np.pi)],
                      [stats.truncnorm(2, np.inf).mean(), 20.04975, 50.01998]])  # fmt: skip
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 4 * draws.std(axis=0) / np.sqrt(20_000))
    assert np.all(draws >= lower)
    assert truncated_normal(lower, np.random.default_rng(0)).shape == (2, 3)
    assert np.shape(truncated_normal(40.0, np.random.default_rng(0))) == ()


def test_the_two_branches_meet():
    """Across the switch to logarithms the quantile is continuous and increasing in the bound."""
    upper = -np.linspace(35.9, 36.1, 2001)
    for probability in (1.0, 0.5, 1e-3, 2.0**-53):
        quantile = quantile_below(upper, np.full(upper.size, probability))
        steps = np.diff(quantile)
        assert np.all(steps < 0)
        assert np.ptp(steps) < 1e-6
    np.testing.assert_allclose(quantile_below(upper, np.ones(upper.size)), upper, rtol=1e-13)


def test_without_truncation_it_is_the_normal_quantile():
    probability = np.array([1e-10, 0.2, 0.5, 0.99])
    quantile = quantile_below(np.full(4, np.inf), probability)
    np.testing.assert_allclose(quantile, ndtri(probability), rtol=1e-14)


def test_same_generator_same_draws_and_input_untouched():
    lower = np.linspace(-3, 40, 50)
    lower.setflags(write=False)
    first = truncated_normal(lower, np.random.default_rng(3))
    np.testing.assert_array_equal(first, truncated_normal(lower, np.random.default_rng(3)))


@pytest.mark.parametrize("lower", [1e8, 1e100, 1e155, 1e200, 1.7e308])
def test_draws_are_finite_wherever_the_bound_is(lower):
    draws = truncated_normal(np.array([lower, -lower]), np.random.default_rng(0), size=(100, 2))
    assert np.all(np.isfinite(draws))
    np.testing.assert_allclose(draws[:, 0], lower, rtol=1e-14)
    np.testing.assert_array_equal(
        draws[:, 1], truncated_normal([0.0, -np.inf], np.random.default_rng(0), (100, 2))[:, 1]
    )


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_only_generators_are_taken(rng):
    with pytest.raises(TypeError, match=r"must be a numpy.random.Generator.*default_rng\(seed\)"):
        truncated_normal(0.0, rng)


@pytest.mark.parametrize("lower", [np.nan, np.inf, [0.0, np.nan]])
def test_bad_truncation_points(lower):
    with pytest.raises(ValueError, match=r"NaN or \+inf"):
        truncated_normal(lower, np.random.default_rng(0))
