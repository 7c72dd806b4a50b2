import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtri

from skpref.samplers import truncated_normal
from skpref.samplers.truncated_normal import quantile_below, quantile_between


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


SLABS = [
    (-1.0, 2.0), (0.0, 0.1), (5.0, 6.0), (-8.0, -7.9), (-35.0, 1.0), (30.0, 30.5), (35.9, 36.2),
    (-60.0, -59.0), (1e3, 1e3 + 1e-3), (3.0, 3.0 + 1e-6), (-3.0 - 1e-9, -3.0), (-1e-7, 3e-7),
    (50.0, 50.0 + 1e-7), (-1e3, 1e-3), (0.0, 40.0), (1e5, 2e5), (1e5, 1e5 + 1e-8),
    (0.0, 1e-12), (-3e-12, -1e-12), (-1e-15, 2e-15),
]  # fmt: skip


def share_below(x, lower, upper):
    """Φ(x) − Φ(lower) over Φ(upper) − Φ(lower), by quadrature of the density from the mode."""
    mode = min(max(lower, 0.0), upper)
    reach = 40.0 / max(abs(mode), 1.0)

    def mass(a, b):
        a, b = max(a - mode, -reach), min(b - mode, reach)
        node, weight = np.polynomial.legendre.leggauss(200)
        s = a + (b - a) * (node + 1) / 2
        return (b - a) / 2 * (weight @ np.exp(-s * (mode + s / 2))) if b > a else 0.0

    return mass(lower, x) / mass(lower, upper)


@pytest.mark.parametrize("slab", SLABS)
def test_quantiles_of_slabs_agree_with_quadrature(slab):
    uniform = np.array([1.0, 0.99, 0.7, 0.5, 0.3, 0.01, 1e-6])
    lower, upper = (np.full(7, end) for end in slab)
    x = quantile_between(lower, upper, uniform)
    assert x[0] == pytest.approx(slab[0], abs=1e-3)  # u = 1: the lower end, as without an upper one
    assert np.all((x >= slab[0]) & (x <= slab[1]))
    assert np.all(np.diff(x) >= 0)
    ulp = np.spacing(max(map(abs, slab))) / min(slab[1] - slab[0], 1 / max(abs(slab[0]), 1.0))
    shares = [share_below(y, *slab) for y in x]
    np.testing.assert_allclose(shares, 1.0 - uniform, atol=1e-9 + 4 * ulp)


@pytest.mark.parametrize(
    "slab", [(-1.0, 2.0), (0.5, 0.6), (-9.0, -7.0), (20.0, 20.1), (-2.0, 30.0)]
)
def test_slab_moments_agree_with_scipy(slab):
    draws = truncated_normal(slab[0], np.random.default_rng(5), size=200_000, upper=slab[1])
    exact = stats.truncnorm(*slab)
    assert abs(draws.mean() - exact.mean()) < 4 * exact.std() / np.sqrt(draws.size)
    assert stats.kstest(draws, exact.cdf).pvalue > 1e-3


def test_infinite_ends_of_slabs_are_half_lines_to_the_bit():
    lower = np.linspace(-50, 50, 201)
    expected = truncated_normal(lower, np.random.default_rng(3))
    draws = truncated_normal(lower, np.random.default_rng(3), upper=np.inf)
    np.testing.assert_array_equal(draws, expected)
    mirrored = truncated_normal(-np.inf, np.random.default_rng(3), upper=-lower)
    np.testing.assert_array_equal(mirrored, -expected)
    free = truncated_normal(-np.inf, np.random.default_rng(3), 50, upper=np.inf)
    np.testing.assert_array_equal(free, truncated_normal(-np.inf, np.random.default_rng(3), 50))


def test_kinds_of_intervals_mix_in_one_call():
    lower = np.array([-np.inf, -np.inf, 0.3, 0.3, 3.0, -41.0, 1e200, 2.0])
    upper = np.array([np.inf, 0.3, np.inf, 0.9, 3.0 + 1e-8, -40.0, 1e210, 2.0])
    draws = truncated_normal(lower, np.random.default_rng(0), (2000, 8), upper)
    one_by_one = [
        quantile_between(lower[j : j + 1], upper[j : j + 1], u[None])
        for u, j in zip(1.0 - np.random.default_rng(0).random((2000, 8))[0], range(8), strict=True)
    ]
    np.testing.assert_array_equal(draws[0], np.concatenate(one_by_one))
    assert np.all((draws >= lower) & (draws <= upper) & np.isfinite(draws))
    assert np.all(draws[:, 7] == 2.0)
    assert truncated_normal(np.zeros((3, 1)), np.random.default_rng(0), upper=[1.0, 2.0]).shape == (
        3,
        2,
    )


def test_bad_upper_ends():
    rng = np.random.default_rng(0)
    for bad in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="upper holds NaN or -inf"):
            truncated_normal(0.0, rng, upper=bad)
    with pytest.raises(ValueError, match=r"from lower = 2 to upper = 1 is empty"):
        truncated_normal([0.0, 2.0], rng, upper=1.0)
