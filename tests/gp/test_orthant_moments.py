"""Moments of Gaussian vectors given that they are positive, against draws, integrals, symmetry."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal, norm

from skpref.gp import orthant_moments


def vectors(m, n=6, seed=0, noise=0.05, away=0.3):
    """Differences of one noisy smooth utility from the others: correlated, none of mean zero."""
    rng = np.random.default_rng(seed)
    apart = np.column_stack([np.ones(m), -np.eye(m)])
    x = rng.uniform(size=(n, m + 1, 2))
    squares = np.sum((x[:, :, None] - x[:, None]) ** 2, axis=-1)
    covariance = apart @ (np.exp(-2.0 * squares) + noise * np.eye(m + 1)) @ apart.T
    return rng.normal(scale=away, size=(n, m)), covariance


def moments(mean, covariance, found):
    """E[v | v > 0] and Var[v | v > 0] by the derivatives."""
    centre = mean + np.einsum("nij,nj->ni", covariance, found.gradient)
    return centre, covariance - covariance @ found.curvature @ covariance


def test_two_entries_are_those_of_quadrature():
    mean, covariance = vectors(2)
    found = orthant_moments(mean, covariance)
    centre, spread = moments(mean, covariance, found)
    for k in range(2):
        density = multivariate_normal(mean[k], covariance[k]).pdf
        reach = 8.0 * np.sqrt(covariance[k].max()) + np.abs(mean[k]).max()

        def integral(power, density=density, reach=reach):
            def integrand(y, x):
                return x ** power[0] * y ** power[1] * density([x, y])

            return dblquad(integrand, 0.0, reach, 0.0, reach, epsabs=1e-10)[0]

        total = integral((0, 0))
        first = np.array([integral((1, 0)), integral((0, 1))]) / total
        second = np.array([integral((2, 0)), integral((1, 1)), integral((0, 2))]) / total
        assert found.log_probability[k] == pytest.approx(np.log(total), abs=1e-8)
        np.testing.assert_allclose(centre[k], first, rtol=1e-6)
        wanted = second - [first[0] ** 2, first[0] * first[1], first[1] ** 2]
        np.testing.assert_allclose(spread[k][np.triu_indices(2)], wanted, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("away", [0.3, 3.0])
def test_up_to_three_entries_are_derivatives_of_each_other(m, away):
    """Also where the probability is far below the least one that is known in absolute terms."""
    mean, covariance = vectors(m, away=away)
    step = 1e-4 * np.eye(m)
    found = orthant_moments(mean, covariance)
    kept = found.log_probability > np.log(1e-5)
    assert kept.sum() >= 2
    for i in range(m):
        above, below = (orthant_moments(mean + side * step[i], covariance) for side in (1, -1))
        slope = (above.log_probability - below.log_probability) / 2e-4
        bend = (below.gradient - above.gradient) / 2e-4
        np.testing.assert_allclose(found.gradient[kept, i], slope[kept], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.curvature[kept, i], bend[kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m", [3, 4, 8, 24])
def test_moments_are_those_of_many_draws(m):
    mean, covariance = vectors(m, n=4, seed=m)
    mean += 0.4  # so that enough draws are kept
    found = orthant_moments(mean, covariance)
    centre, spread = moments(mean, covariance, found)
    rng = np.random.default_rng(0)
    for k in range(4):
        draws = rng.multivariate_normal(mean[k], covariance[k], 400_000)
        draws = draws[(draws > 0.0).all(axis=1)]
        share = len(draws) / 400_000
        off = 4.0 / np.sqrt(len(draws))
        assert found.log_probability[k] == pytest.approx(np.log(share), abs=off + 0.01)
        deviation = draws.std(axis=0)
        near = 0.05 if m < 9 else 0.1
        np.testing.assert_allclose(centre[k], draws.mean(axis=0), atol=near * deviation.max())
        np.testing.assert_allclose(np.sqrt(np.diagonal(spread[k])), deviation, rtol=near)


@pytest.mark.parametrize("m", [2, 3, 4, 9, 31])
def test_independent_entries_are_half_normals(m):
    mean, covariance = np.linspace(-1.0, 1.0, m)[None], 0.5 * np.eye(m)[None]
    found = orthant_moments(mean, covariance)
    u = mean[0] / np.sqrt(0.5)
    ratio = norm.pdf(u) / norm.cdf(u)
    assert found.log_probability[0] == pytest.approx(norm.logcdf(u).sum(), abs=1e-9)
    np.testing.assert_allclose(found.gradient[0] * np.sqrt(0.5), ratio, atol=5e-3)
    own = ratio * (ratio + u)
    np.testing.assert_allclose(np.diagonal(found.curvature[0]) * 0.5, own, atol=0.03)


@pytest.mark.parametrize("m", [3, 4, 9])
def test_equal_entries_are_one_of_so_many(m):
    """The largest of m + 1 exchangeable utilities."""
    covariance = (np.ones((m, m)) + np.eye(m))[None]
    found = orthant_moments(np.zeros((1, m)), covariance)
    assert found.log_probability[0] == pytest.approx(-np.log(m + 1), abs=2e-3)


@pytest.mark.parametrize("m", [2, 3, 5, 9])
@pytest.mark.parametrize("away", [-1.0, -30.0])
def test_what_is_far_from_positive_is_finite_and_no_wider(m, away):
    mean, covariance = vectors(m, away=0.1)
    mean += away
    found = orthant_moments(mean, covariance)
    assert np.isfinite(found.log_probability).all() and (found.log_probability < 0.0).all()
    centre, spread = moments(mean, covariance, found)
    assert (centre > 0.0).all()
    scale = np.sqrt(np.einsum("nii->ni", covariance))
    whole = found.curvature * scale[:, :, None] * scale[:, None, :]
    assert np.linalg.eigvalsh(whole).min() > -1e-6 * np.abs(whole).max()
    assert (np.einsum("nii->ni", spread) < np.einsum("nii->ni", covariance)).all()
