"""Utilities given sites by every way, against dense algebra and the way of small problems."""

import numpy as np
import pytest
from core_support import random_duels, solve, won
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF, Matern

from skpref._utils._linalg import NoCovarianceError
from skpref.gp import _dense as _conditioning
from skpref.gp import _utilities
from skpref.gp._dense import DenseItems
from skpref.gp._utilities import ByPrecision, ByRoot, item_solver, mirror_lower_triangle, root_gain
from skpref.inference import EP, Laplace
from skpref.kernels import Identity


@pytest.fixture
def many(monkeypatch):
    """As if there were many items."""
    for module in (_utilities, _conditioning):
        monkeypatch.setattr(module, "LARGE", 2)


def laplacian(n, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, n_pairs)
    second = (first + rng.integers(1, n, n_pairs)) % n
    A = np.zeros((n_pairs, n))
    A[np.arange(n_pairs), first], A[np.arange(n_pairs), second] = 1.0, -1.0
    return A.T @ (np.exp(rng.uniform(-2, 3, n_pairs))[:, None] * A), first, second


@pytest.mark.parametrize("way", ["root", "precision"])
@pytest.mark.parametrize("n_pairs", [8, 60])
@pytest.mark.parametrize("stored", [np.asarray, csr_array], ids=["full", "sparse"])
def test_utilities_are_those_of_dense_algebra(many, way, n_pairs, stored):
    n = 20
    K = Matern(1.0, nu=1.5)(np.random.default_rng(1).normal(size=(n, 3)))
    L, first, second = laplacian(n, n_pairs)
    truth = np.linalg.inv(np.linalg.inv(K) + L)
    inverse = np.linalg.inv(K)
    known = np.linalg.slogdet(K)[1], np.linalg.norm(K, 1)
    solver = ByRoot(K) if way == "root" else ByPrecision(inverse, *known)
    found = solver.condition(stored(L))
    vectors = np.random.default_rng(2).normal(size=(n, 2))
    before = found.times(vectors)  # of the factor, which the covariance replaces
    apart = np.diagonal(truth)[first] + np.diagonal(truth)[second] - 2 * truth[first, second]
    np.testing.assert_allclose(found.difference_variances(first, second), apart, rtol=1e-10)
    np.testing.assert_allclose(found.times(vectors), before, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.times(vectors[:, 0]), before[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.covariance, truth, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(before, truth @ vectors, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.times(vectors), before, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.log_det, np.linalg.slogdet(np.eye(n) + K @ L)[1], rtol=1e-11)


def test_a_large_matrix_is_mirrored_in_every_block():
    lower = np.tril(np.random.default_rng(0).normal(size=(600, 600)))
    wanted = lower + np.tril(lower, -1).T
    np.testing.assert_array_equal(
        mirror_lower_triangle(lower + np.triu(np.full((600, 600), 7.0), 1)), wanted
    )


@pytest.mark.parametrize("n_pairs", [0, 1, 8, 60])
def test_gain_of_items_that_answers_connect_or_not(many, n_pairs):
    n = 20
    K = RBF(1.0)(np.random.default_rng(1).normal(size=(n, 3)))
    L = laplacian(n, n_pairs)[0]
    pull = np.random.default_rng(2).normal(size=(n, 2))  # of items without answers too
    D, weights = root_gain(K, csr_array(L) if n_pairs == 8 else L, pull)
    gain = L @ np.linalg.solve(np.eye(n) + K @ L, K)
    np.testing.assert_allclose(D @ D.T, L - gain @ L, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(weights, pull - gain @ pull, rtol=1e-9, atol=1e-10)


def test_the_way_is_chosen_by_what_the_prior_allows(many):
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert isinstance(item_solver(Matern(1.0, nu=0.5)(X)), ByPrecision)
    assert isinstance(item_solver(RBF(50.0)(X)), ByRoot)  # singular up to rounding
    variance = np.random.default_rng(1).uniform(0.5, 2.0, 30)
    names = item_solver(np.diag(variance))
    assert isinstance(names, ByPrecision)
    L = laplacian(30, 40)[0]
    found = names.condition(L)
    log_det = np.linalg.slogdet(np.eye(30) + variance[:, None] * L)[1]
    np.testing.assert_allclose(found.log_det, log_det, rtol=1e-11)
    truth = np.linalg.inv(np.diag(1.0 / variance) + L)
    np.testing.assert_allclose(found.covariance, truth, rtol=1e-9)


def test_a_prior_that_cannot_be_inverted_after_all_is_taken_by_its_root(many, monkeypatch):
    seen = won(*random_duels(0, 6, 30))
    K = Matern(0.8, nu=1.5)(seen.items)
    space, precision = DenseItems(K, seen.rows.margins), np.ones(len(seen.rows.margins.first))
    wanted = space.condition(precision, precision)

    def fail(*_):
        raise NoCovarianceError("no")

    monkeypatch.setattr(ByPrecision, "condition", fail)
    found = DenseItems(K, seen.rows.margins).condition(precision, precision)
    np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-10)


@pytest.mark.parametrize("engine", [EP(), Laplace()])
@pytest.mark.parametrize("kernel", [RBF(0.6), Matern(0.8, nu=1.5), RBF(30.0), Identity()])
def test_engines_end_where_they_did(monkeypatch, engine, kernel):
    seen = won(*random_duels(3, 12, 150))

    def run():
        found = solve(engine, kernel, seen, 0.05, "items")
        slopes = engine.evidence_gradient(found.problem, found.approximation)
        return found, slopes

    (old, old_slopes), X = run(), seen.items
    for module in (_utilities, _conditioning):
        monkeypatch.setattr(module, "LARGE", 2)
    new, new_slopes = run()
    assert new.approximation.converged
    np.testing.assert_allclose(new.log_evidence, old.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(new.posterior.mean(X), old.posterior.mean(X), atol=1e-7)
    np.testing.assert_allclose(new.posterior.cov(X), old.posterior.cov(X), atol=1e-7)
    scale = np.max(np.abs(old_slopes.kernel), initial=1.0)
    np.testing.assert_allclose(new_slopes.kernel, old_slopes.kernel, atol=1e-6 * scale)
    np.testing.assert_allclose(new_slopes.likelihood, old_slopes.likelihood, rtol=1e-6)


@pytest.mark.parametrize("noise_variance", [1e-3, 1e-6, 1e-8])
def test_weights_keep_the_margins_where_there_is_hardly_any_noise(noise_variance):
    seen = won(*random_duels(0, 300, 1500, n_features=3))
    found = solve(EP(), Matern(0.5, nu=1.5), seen, noise_variance, "items")
    utility, margins = found.posterior.mean(seen.items), seen.rows.margins
    at = found.approximation.conditioned
    off = utility[margins.first] - utility[margins.second] - at.mean
    assert np.max(np.abs(off) / np.sqrt(at.variance)) < 1e-2
