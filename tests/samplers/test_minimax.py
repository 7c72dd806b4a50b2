import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import chi2, kstest, norm
from scipy_support import normal_cdf

from skpref.samplers import minimax_draws, orthant_probability


def random_correlation(t, seed, rank=3):
    factor = np.random.default_rng(seed).standard_normal((t, rank))
    covariance = factor @ factor.T + 0.3 * np.eye(t)
    sd = np.sqrt(covariance.diagonal())
    return covariance / np.outer(sd, sd)


def one_factor(loading, noise_variance):
    """v_i = λ_i g + e_i: log Pr(v > 0) = log ∫ φ(g) Π Φ(λ_i g/σ) dg, a single integral."""

    def integrand(g):
        return np.exp(norm.logpdf(g) + log_ndtr(loading * g / np.sqrt(noise_variance)).sum())

    covariance = np.outer(loading, loading) + noise_variance * np.eye(len(loading))
    edges = [(-9, -1), (-1, -0.1), (-0.1, 0.1), (0.1, 1), (1, 9)]
    return covariance, np.log(sum(quad(integrand, *edge, epsabs=0)[0] for edge in edges))


def assert_probability(estimate, log_probability):
    tolerance = 4 * estimate.relative_error + 1e-6
    assert abs(estimate.log_probability - log_probability) < tolerance


@pytest.mark.parametrize("t", [1, 2, 5, 20, 50])
def test_equicorrelation_one_half(t):
    estimate = orthant_probability(0.5 + 0.5 * np.eye(t), 5000, np.random.default_rng(t))
    assert_probability(estimate, -np.log(t + 1))
    assert estimate.relative_error < 0.02


@pytest.mark.parametrize("rho", [-0.999, -0.5, 0.0, 0.3, 0.99, 1 - 1e-6])
def test_two_coordinates_arcsine(rho):
    covariance = np.array([[4.0, 2 * rho], [2 * rho, 1.0]])
    estimate = orthant_probability(covariance, 5000, np.random.default_rng(0))
    assert_probability(estimate, np.log(0.25 + np.arcsin(rho) / (2 * np.pi)))


def test_three_coordinates_arcsine():
    covariance = random_correlation(3, 5)
    angles = np.arcsin(covariance[np.triu_indices(3, 1)])
    estimate = orthant_probability(covariance, 5000, np.random.default_rng(0))
    assert_probability(estimate, np.log(0.125 + angles.sum() / (4 * np.pi)))


@pytest.mark.parametrize("seed", range(3))
def test_against_scipy(seed):
    covariance = random_correlation(8, seed)
    exact = normal_cdf(np.zeros(8), cov=covariance, maxpts=400_000, abseps=1e-8)
    estimate = orthant_probability(covariance, 10_000, np.random.default_rng(0))
    assert abs(estimate.log_probability - np.log(exact)) < 4 * estimate.relative_error + 2e-3


@pytest.mark.parametrize("noise_variance", [1.0, 1e-2, 2e-6])
@pytest.mark.parametrize("signs", ["all", "alternating"])
def test_one_factor_down_to_near_singular(noise_variance, signs):
    loading = np.linspace(0.5, 1.5, 12)
    if signs == "alternating":
        loading = loading * (-1.0) ** np.arange(12)
    covariance, log_probability = one_factor(loading, noise_variance)
    estimate = orthant_probability(covariance, 5000, np.random.default_rng(0))
    assert_probability(estimate, log_probability)
    assert estimate.relative_error < 0.05


def test_contradictory_answers_at_small_noise():
    """a > b, b > c, c > a: only the noise allows it; three coordinates have the arcsine formula."""
    incidence = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]], dtype=float)
    for noise_variance in (1e-2, 1e-4, 1e-6, 1e-8):
        covariance = incidence @ incidence.T + 2 * noise_variance * np.eye(3)
        estimate = orthant_probability(covariance, 5000, np.random.default_rng(0))
        correlation = covariance / covariance[0, 0]
        angles = 3 * np.arcsin(correlation[0, 1])
        exact = 0.125 + angles / (4 * np.pi)
        assert np.exp(estimate.log_probability) == pytest.approx(
            exact, rel=4 * estimate.relative_error + 1e-6
        )


def test_stated_error_is_the_spread_of_repetitions():
    covariance = random_correlation(15, 1)
    rng = np.random.default_rng(0)
    estimates = [orthant_probability(covariance, 500, rng) for _ in range(60)]
    spread = np.std([e.log_probability for e in estimates], ddof=1)
    stated = np.mean([e.relative_error for e in estimates])
    assert 0.7 < spread / stated < 1.4


def test_probability_does_not_depend_on_order_or_scale():
    covariance = random_correlation(12, 2)
    shuffle = np.random.default_rng(0).permutation(12)
    scale = np.logspace(-2, 2, 12)
    other = (covariance * np.outer(scale, scale))[np.ix_(shuffle, shuffle)]
    a, b = (orthant_probability(s, 10_000, np.random.default_rng(1)) for s in (covariance, other))
    error = np.hypot(a.relative_error, b.relative_error)
    assert abs(a.log_probability - b.log_probability) < 4 * error


def test_draws_have_the_moments_of_the_one_factor_model():
    loading = np.array([0.5, 1.0, 1.5, -0.7])
    noise_variance = 0.2
    covariance, log_probability = one_factor(loading, noise_variance)
    result = minimax_draws(covariance, 40_000, np.random.default_rng(0))
    sd = np.sqrt(noise_variance)

    def mean_of(i):  # given g the coordinates are independent truncated normals
        def integrand(g):
            z = loading * g / sd
            conditional = loading[i] * g + sd * np.exp(norm.logpdf(z[i]) - log_ndtr(z[i]))
            return conditional * np.exp(norm.logpdf(g) + log_ndtr(z).sum() - log_probability)

        return quad(integrand, -9, 9, limit=200)[0]

    exact = np.array([mean_of(i) for i in range(4)])
    error = result.draws.std(axis=0) / np.sqrt(40_000)
    assert np.all(np.abs(result.draws.mean(axis=0) - exact) < 4 * error)
    assert result.draws.min() > 0


def test_draws_of_two_coordinates_follow_the_angle():
    """After whitening, the direction of v is uniform on the arc that v > 0 cuts out."""
    covariance = np.array([[1.0, -0.8], [-0.8, 2.0]])
    draws = minimax_draws(covariance, 20_000, np.random.default_rng(3)).draws
    whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    white, edges = draws @ whitener.T, np.eye(2) @ whitener.T
    angle = np.arctan2(white[:, 1], white[:, 0])
    low, high = np.sort(np.arctan2(edges[:, 1], edges[:, 0]))
    assert kstest((angle - low) / (high - low), "uniform").pvalue > 1e-3
    assert kstest((white**2).sum(axis=1), chi2(2).cdf).pvalue > 1e-3


def test_acceptance_is_the_ratio_of_probability_to_bound_and_draws_are_independent():
    covariance = random_correlation(15, 4)
    result = minimax_draws(covariance, 5000, np.random.default_rng(0))
    again = minimax_draws(covariance, 5000, np.random.default_rng(0))
    np.testing.assert_array_equal(result.draws, again.draws)
    assert 0.1 < result.acceptance <= 1
    centred = result.draws - result.draws.mean(axis=0)
    lag1 = (centred[1:] * centred[:-1]).mean(axis=0) / centred.var(axis=0)
    assert np.all(np.abs(lag1) < 4 / np.sqrt(5000))


def test_hopeless_acceptance_names_a_remedy():
    covariance = random_correlation(30, 0)
    with pytest.raises(RuntimeError, match="use hmc, or a larger noise variance"):
        minimax_draws(covariance, 100, np.random.default_rng(0), smallest_acceptance=0.999)


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"n must lie in \[2, inf\], got 1"):
        orthant_probability(np.eye(2), 1, rng)
    with pytest.raises(ValueError, match=r"n must lie in \[1, inf\], got 0"):
        minimax_draws(np.eye(2), 0, rng)
    with pytest.raises(ValueError, match="not positive definite"):
        orthant_probability(np.ones((2, 2)), 100, rng)
    for function in (orthant_probability, minimax_draws):
        with pytest.raises(TypeError, match=r"n must be an integer, got 2\.5"):
            function(np.eye(2), 2.5, rng)
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator, got 0"):
            function(np.eye(2), 10, 0)
