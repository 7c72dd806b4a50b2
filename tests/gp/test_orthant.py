"""Probabilities of being the best of k against closed forms, scipy, quadrature and draws."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import norm
from scipy_support import NORMAL_CDF_IS_EXACT, normal_cdf
from tiers_support import thinned

from skpref.gp import _orthants as _orthant
from skpref.gp._orthants import (
    best_of,
    best_of_mixture,
    bivariate,
    log_best_of,
    log_best_of_mixture,
    log_bivariate,
    multivariate,
    trivariate,
)


def problems(n, k, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, k, rank or k + 1))
    return rng.normal(size=(n, k)), root @ root.transpose(0, 2, 1)


def twins(n, k, apart, seed=0):
    """Two of the items are one up to a share."""
    rng = np.random.default_rng(seed)
    mean, root = rng.normal(size=(n, k)), rng.normal(size=(n, k, k))
    mean[:, 1] = mean[:, 0] + apart * mean[:, 1]
    root[:, 1] = root[:, 0] + apart * root[:, 1]
    return mean, root @ root.transpose(0, 2, 1)


def scales(n, k, seed=0):
    """Variances that differ by up to a million."""
    mean, covariance = problems(n, k, seed)
    scale = 10.0 ** np.random.default_rng(seed).uniform(-1.5, 1.5, size=(n, k))
    return mean, covariance * scale[:, :, None] * scale[:, None, :]


def raw(mean, covariance):
    """Each probability on its own, before the rows are made to sum to one."""
    return _orthant._probability(np.asarray(mean)[..., None], np.asarray(covariance))


def by_scipy(mean, covariance, **options):
    found = np.empty_like(mean)
    k = mean.shape[1]
    for i in range(k):
        A = np.delete(np.eye(k)[i] - np.eye(k), i, axis=0)
        for row in range(len(mean)):
            C = A @ covariance[row] @ A.T
            found[row, i] = normal_cdf(
                A @ mean[row], cov=(C + C.T) / 2, allow_singular=True, **options
            )
    return found


@pytest.mark.parametrize("k, tolerance", [(2, 1e-14), (3, 1e-13), (4, 1e-8)])
@pytest.mark.parametrize(
    "case", [problems, scales, *(lambda n, k, e=e: twins(n, k, e) for e in (1e-1, 1e-3))]
)
def test_raw_probabilities_sum_to_one(case, k, tolerance):
    """Each is computed from other differences than the others: a check from outside."""
    mean, covariance = case(300, k)
    found = raw(mean, covariance)
    slack = 1e-10 if case is not problems else tolerance
    assert np.abs(found.sum(axis=1) - 1.0).max() < max(tolerance, slack)
    np.testing.assert_allclose(best_of(mean, covariance).sum(axis=1), 1.0, rtol=4e-16)


@pytest.mark.parametrize("k, n, tolerance", [(2, 100, 1e-12), (3, 100, 1e-8), (4, 3, 5e-6)])
@pytest.mark.parametrize("case", [problems, scales, lambda n, k: twins(n, k, 1e-2)])
def test_small_sets_agree_with_scipy(case, k, n, tolerance):
    """Of four items scipy's own rows sum to one only up to 1e-6."""
    mean, covariance = case(n, k)
    exact = by_scipy(mean, covariance, abseps=1e-7, releps=0.0, maxpts=200_000)
    if k == 4 and not NORMAL_CDF_IS_EXACT:
        tolerance = 1e-4
    np.testing.assert_allclose(raw(mean, covariance), exact, atol=tolerance)


@pytest.mark.parametrize("k", [3, 4])
def test_utilities_with_one_common_factor_agree_with_quadrature(k):
    """u = mean + loading·z + deviation·e, summed over a grid of z and e to rounding."""
    rng = np.random.default_rng(0)
    mean, loading = rng.normal(size=(2, 8, k))
    deviation = rng.uniform(0.3, 2.0, size=(8, k))
    covariance = loading[:, :, None] * loading[:, None] + np.eye(k) * deviation[:, None] ** 2
    found = raw(mean, covariance)
    z = np.linspace(-8.5, 8.5, 341)
    weight = norm.pdf(z) * (z[1] - z[0])
    for row in range(8):
        centre = mean[row] + loading[row] * z[:, None]
        for i in range(k):
            u = centre[:, [i]] + deviation[row, i] * z
            below = [ndtr((u - centre[:, [j]]) / deviation[row, j]) for j in range(k) if j != i]
            exact = weight @ np.prod(below, axis=0) @ weight
            assert found[row, i] == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e3])
def test_independent_utilities_agree_with_one_dimensional_quadrature(k, ratio):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(17, k))
    deviation = np.ones((17, k))
    deviation[:, 0] = ratio
    found = raw(mean, np.eye(k) * deviation[:, :, None] ** 2)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    for row in range(17):
        for i in range(k):
            others = np.delete(np.arange(k), i)
            steps = (mean[row, others] - mean[row, i]) / deviation[row, i]
            widths = 9.0 * deviation[row, others] / deviation[row, i]
            near = np.concatenate([steps - widths, steps, steps + widths])
            edges = np.unique(np.clip([-9.0, *near, 9.0], -9.0, 9.0))
            half = 0.5 * np.diff(edges)[:, None]
            z = edges[:-1, None] + half * (1.0 + nodes)
            u = mean[row, i] + deviation[row, i] * z[..., None]
            below = ndtr((u - mean[row, others]) / deviation[row, others]).prod(axis=-1)
            exact = np.sum(half * weights * norm.pdf(z) * below)
            assert found[row, i] == pytest.approx(exact, abs=2e-9)


@pytest.mark.parametrize("k, tolerance", [(2, 1e-15), (3, 1e-15), (4, 1e-12), (5, 1e-4), (9, 1e-4)])
def test_equal_items_are_equally_likely(k, tolerance):
    covariance = np.full((1, k, k), 0.3) + np.eye(k)
    np.testing.assert_allclose(raw(np.zeros((1, k)), covariance), 1.0 / k, atol=tolerance)


def test_orthants_at_the_origin():
    rho = np.array([-0.999999, -0.9, -0.3, 0.0, 0.5, 0.99, 0.9999999])
    exact = 0.25 + np.arcsin(rho) / (2.0 * np.pi)
    np.testing.assert_allclose(
        bivariate(np.zeros(7), np.zeros(7), np.arccos(rho)), exact, rtol=1e-12
    )
    root = np.random.default_rng(1).normal(size=(50, 3, 3))
    root /= np.linalg.norm(root, axis=2, keepdims=True)
    R = np.clip(root @ root.transpose(0, 2, 1), -1.0, 1.0)
    exact = 0.125 + (np.arcsin(R[:, 0, 1]) + np.arcsin(R[:, 0, 2]) + np.arcsin(R[:, 1, 2])) / (
        4.0 * np.pi
    )
    np.testing.assert_allclose(trivariate(np.zeros((50, 3)), np.arccos(R)), exact, atol=1e-9)
    np.testing.assert_allclose(multivariate(np.zeros((50, 3)), R), exact, atol=2e-3)


@pytest.mark.parametrize("low, high", [(-1.0, -0.2), (-6.0, -2.7), (-30.0, -14.7), (-4.0, 4.2)])
@pytest.mark.parametrize("rho", thinned([-0.99, 0.0, 0.3, 0.9999]))
def test_bivariate_tails_agree_with_conditioning(low, high, rho):
    """The logarithm against ∫ φ(x) Φ((k − ρx)/√(1 − ρ²)) dx around its peak."""
    found = log_bivariate(np.array([low]), np.array([high]), np.arccos(np.array([rho])))[0]

    def log_density(x):
        return norm.logpdf(x) + log_ndtr((high - rho * x) / np.sqrt(1.0 - rho * rho))

    grid = low - np.linspace(0.0, 600.0, 12_001)
    logs = log_density(grid)
    top = logs.max()
    inside = grid[logs > top - 45.0]
    edges = np.union1d(np.linspace(inside.min() - 0.01, low, 40), low - np.logspace(-4, 0, 20))
    exact = sum(
        quad(lambda x: np.exp(log_density(x) - top), a, b, epsabs=0.0, epsrel=1e-10)[0]
        for a, b in pairwise(edges[(edges > inside.min() - 0.02) & (edges <= low)])
    )
    assert found == pytest.approx(top + np.log(exact), abs=1e-8)


@pytest.mark.parametrize("k", [2, 3, pytest.param(4, marks=pytest.mark.slow), 6])
def test_tails_of_independent_utilities(k):
    """The chance that the least is the best, down to 1e-30 and far below."""
    for low in (-3.0, -11.0, -60.0):
        mean = np.zeros((1, k))
        mean[0, 0] = low
        found = log_best_of(mean, np.eye(k)[None])[0]
        z = np.linspace(-10.0, 80.0, 20_001)
        logs = norm.logpdf(z) + (k - 1) * log_ndtr(z + low)
        exact = logsumexp(logs) + np.log(z[1] - z[0])
        assert found[0] == pytest.approx(exact, abs=1e-7 if k < 5 else 2e-3)
        np.testing.assert_allclose(found[1:], np.log1p(-np.exp(exact)) - np.log(k - 1), atol=1e-4)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_logarithms_are_those_of_the_probabilities(k):
    mean, covariance = problems(25, k, 4)
    found, logs = best_of(mean, covariance), log_best_of(mean, covariance)
    np.testing.assert_allclose(logsumexp(logs, axis=1), 0.0, atol=1e-14)
    likely = found > 1e-5
    np.testing.assert_allclose(logs[likely], np.log(found[likely]), atol=1e-5 if k < 5 else 5e-3)


def test_many_items_agree_with_draws():
    mean, covariance = problems(4, 6, 5)
    rng = np.random.default_rng(0)
    for row in range(4):
        draws = rng.multivariate_normal(mean[row], covariance[row], size=400_000)
        shares = np.bincount(draws.argmax(axis=1), minlength=6) / 400_000
        np.testing.assert_allclose(best_of(mean, covariance)[row], shares, atol=4e-3)


@pytest.mark.parametrize("k", [5, 10])
def test_many_independent_items_agree_with_quadrature(k):
    mean = np.random.default_rng(0).normal(size=(20, k))
    z = np.linspace(-12.0, 12.0, 1001)[:, None, None] + mean
    below = ndtr(z[:, :, :, None] - mean[None, :, None, :])
    below[..., np.arange(k), np.arange(k)] = 1.0
    exact = np.sum(norm.pdf(z - mean) * below.prod(axis=-1), axis=0) * 24.0 / 1000.0
    found = raw(mean, np.tile(np.eye(k), (20, 1, 1)))
    np.testing.assert_allclose(found, exact, atol=2e-4)


def independent(means, deviation):
    """P(each is the best) of every component of independent utilities, (k, n_components)."""
    k, z = len(means), np.linspace(-12.0, 48.0, 1001)[:, None, None]
    at = means + deviation[:, None] * z  # (nodes, k, components)
    logs = norm.logpdf(z) + np.zeros_like(at)
    for i in range(k):
        for j in np.delete(np.arange(k), i):
            logs[:, i] += log_ndtr((at[:, i] - means[j]) / deviation[j])
    return np.exp(logs).sum(axis=0) * 60.0 / 1000.0


@pytest.mark.parametrize("k", [2, 4, 5, 7])
@pytest.mark.parametrize("n_components", [7, 150])
def test_mixtures_of_independent_utilities_agree_with_quadrature(k, n_components):
    rng = np.random.default_rng(k)
    means = rng.normal(size=(k, 1)) + 0.7 * rng.normal(size=(k, n_components))
    means[0] -= 12.0  # hardly ever the best
    deviation = rng.uniform(0.3, 1.5, size=k)
    exact = independent(means, deviation).mean(axis=1)
    shared = np.diag(deviation**2) + 2.0  # what all have in common changes nothing
    found = best_of_mixture(means[None], shared[None])[0]
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-7 if k < 5 else 1e-4)
    logs = log_best_of_mixture(means[None], shared[None])[0]
    np.testing.assert_allclose(logs, np.log(exact), atol=1e-5 if k < 5 else 5e-3)


@pytest.mark.slow
def test_of_many_components_each_may_be_taken_roughly():
    mean, covariance = problems(2, 6, 11)
    means = mean[:, :, None] + np.random.default_rng(0).normal(size=(2, 6, 150))
    means[1, 2], covariance[1, 2] = np.nan, np.nan
    there = np.array([[True] * 6, [True, True, False, True, True, True]])
    flat = np.moveaxis(means, 2, 1).reshape(-1, 6)
    every = best_of(flat, np.repeat(covariance, 150, axis=0), np.repeat(there, 150, axis=0))
    exact = every.reshape(2, 150, 6).mean(axis=1)
    found = best_of_mixture(means, covariance, there)
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=2e-4)
    apart = [best_of_mixture(means[[i]], covariance[[i]], there[[i]])[0] for i in range(2)]
    np.testing.assert_array_equal(found, apart)  # other rows change nothing


@pytest.mark.parametrize("k, tolerance", [(2, 1e-12), (3, 1e-11), (4, 1e-8), (6, 3e-3)])
def test_what_leaves_the_order_of_utilities_leaves_the_probabilities(k, tolerance):
    mean, covariance = problems(40, k, 6)
    exact = best_of(mean, covariance)
    for same in (
        best_of(mean + 3.0, covariance),
        best_of(mean * 100.0, covariance * 1e4),
        best_of(mean, covariance + 7.0),
        best_of(mean[:, ::-1], covariance[:, ::-1, ::-1])[:, ::-1],
    ):
        np.testing.assert_allclose(same, exact, atol=tolerance)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_without_noise_the_best_is_sure_and_equals_share(k):
    mean = np.zeros((2, k))
    mean[1, 1] = 1e-9
    for covariance in (np.zeros((2, k, k)), np.ones((2, k, k)) * 1e-18):
        found = best_of(mean, covariance)
        np.testing.assert_allclose(found[0], 1.0 / k, atol=1e-3 if k > 4 else 1e-9)
        np.testing.assert_allclose(found[1], np.eye(k)[1], atol=1e-12)
        assert np.all(np.isfinite(log_best_of(mean, covariance)))


@pytest.mark.parametrize("k", [3, 4, 6])
def test_of_items_that_are_one_each_has_half(k):
    """An item that stands twice has its probability halved, the others keep theirs."""
    mean, covariance = problems(30, k - 1, 7)
    twice = np.concatenate([[0], np.arange(k - 1)])
    found = best_of(mean[:, twice], covariance[:, twice][:, :, twice])
    alone = best_of(mean, covariance)
    tolerance = 1e-7 if k < 6 else 3e-3
    np.testing.assert_allclose(found[:, 0], alone[:, 0] / 2.0, atol=tolerance)
    np.testing.assert_allclose(found[:, 2:], alone[:, 1:], atol=tolerance)


@pytest.mark.parametrize(
    ("rank", "k"),
    [
        (1, 2),
        (1, 3),
        pytest.param(1, 4, marks=pytest.mark.slow),
        (1, 6),
        (2, 2),
        (2, 3),
        (2, 4),
        (2, 6),
    ],
)
def test_singular_covariances_are_continuous(k, rank):
    """What a singular covariance gives is the limit of what regular ones give."""
    mean, covariance = problems(4, k, 8, rank)
    found, logs = best_of(mean, covariance), log_best_of(mean, covariance)
    assert np.all(np.isfinite(found)) and np.all(np.isfinite(logs))
    near = best_of(mean, covariance + 1e-10 * np.eye(k))
    np.testing.assert_allclose(found, near, atol=1e-3 if k < 5 else 2e-2)


def test_absent_items_are_as_if_they_were_not_there():
    mean, covariance = problems(40, 5, 9)
    rng = np.random.default_rng(0)
    mask = rng.random((40, 5)) < 0.6
    mask[:, 2] |= ~mask.any(axis=1)
    mean[~mask] = np.nan
    covariance[~(mask[:, :, None] & mask[:, None, :])] = np.nan
    found, logs = best_of(mean, covariance, mask), log_best_of(mean, covariance, mask)
    assert set(mask.sum(axis=1)) >= {1, 2, 3, 4}
    for row in range(40):
        there = np.flatnonzero(mask[row])
        alone = best_of(mean[[row]][:, there], covariance[row][np.ix_(there, there)][None])
        np.testing.assert_allclose(found[row, there], alone[0], rtol=1e-12)
        np.testing.assert_array_equal(found[row, ~mask[row]], 0.0)
        np.testing.assert_array_equal(logs[row, ~mask[row]], -np.inf)


def test_the_same_twice_and_inputs_untouched():
    mean, covariance = problems(3, 7)
    mean.setflags(write=False)
    covariance.setflags(write=False)
    np.testing.assert_array_equal(best_of(mean, covariance), best_of(mean, covariance))
    assert best_of(mean[:0], covariance[:0]).shape == (0, 7)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"shape \(3, 3\).*must be \(1, 3, 3\)"):
        best_of(np.zeros((1, 3)), np.eye(3))
    with pytest.raises(ValueError, match=r"mask has shape \(3,\)"):
        best_of(np.zeros((1, 3)), np.eye(3)[None], np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="row 1 of mask is False throughout"):
        best_of(np.zeros((2, 2)), np.tile(np.eye(2), (2, 1, 1)), [[True, True], [False, False]])
