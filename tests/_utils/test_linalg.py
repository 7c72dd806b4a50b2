"""Factorisations against numpy's, and what is done about rounding."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern

from skpref._utils._linalg import (
    cholesky,
    eigen_root,
    floor_variance,
    inverse_cholesky,
    is_covariance,
    pivoted_cholesky,
    semidefinite_root,
    solve_lower,
    symmetric_root,
)


def test_cholesky_repairs_what_rounding_spoilt_and_no_more():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(40, 5))
    matrix = B @ B.T  # of rank five: plain Cholesky fails
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(matrix - 1e-14 * np.eye(40))
    factor = cholesky(matrix - 1e-14 * np.eye(40))
    assert np.all(np.triu(factor, 1) == 0.0)
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-11)
    definite = matrix + np.eye(40)
    np.testing.assert_allclose(cholesky(definite), np.linalg.cholesky(definite), rtol=1e-12)


def test_the_inverse_factor_is_that_of_the_repaired_matrix():
    B = np.random.default_rng(0).normal(size=(40, 5))
    matrix = B @ B.T - 1e-13 * np.eye(40)  # plain Cholesky fails half way
    inverse, log_det = inverse_cholesky(matrix.copy().T)
    factor = np.linalg.inv(inverse)
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-9)
    assert log_det == pytest.approx(2.0 * np.log(np.diagonal(factor)).sum(), rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_cholesky_of_nan_is_an_error_that_says_what_to_check(bad):
    matrix = np.eye(3)
    matrix[0, 0] = bad
    with pytest.raises(ValueError, match="check that the kernel is a valid covariance"):
        cholesky(matrix)


def test_cholesky_does_not_turn_another_matrix_into_a_covariance():
    with pytest.raises(ValueError, match="far from positive semi-definite"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_semidefinite_root_reproduces_the_matrix(rank):
    B = np.random.default_rng(1).normal(size=(8, rank))
    F = semidefinite_root(B @ B.T)
    np.testing.assert_allclose(F @ F.T, B @ B.T, atol=1e-13)
    assert F.shape[1] in (max(rank, 1), 8)


def test_root_of_a_covariance_with_rounding():
    B = np.random.default_rng(0).normal(size=(7, 3))
    covariance = B @ B.T
    F = eigen_root(covariance)
    np.testing.assert_allclose(F @ F.T, covariance, atol=1e-13)


@pytest.mark.parametrize("rank", [0, 2, 7])
def test_symmetric_root_hangs_on_no_rounding(rank):
    """Roots by eigenvectors differ by 1 and more where eigenvalues are nearly equal."""
    rng = np.random.default_rng(0)
    covariance = np.zeros((7, 7))
    covariance[:rank, :rank] = 0.5 * np.eye(rank) + 0.5
    F = symmetric_root(covariance)
    np.testing.assert_allclose(F @ F, covariance, atol=1e-13)
    rounding = 1e-15 * rng.normal(size=(7, 7))
    rounded = symmetric_root(covariance + rounding + rounding.T)
    np.testing.assert_allclose(rounded, F, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 1, 4, 9])
def test_pivots_that_determine_the_rest(rank):
    B = np.random.default_rng(2).normal(size=(9, rank))
    matrix = B @ B.T
    factor, order = pivoted_cholesky(matrix, 1e-12)
    assert factor.shape == (9, rank)
    assert sorted(order) == list(range(9))
    np.testing.assert_allclose(factor @ factor.T, matrix[np.ix_(order, order)], atol=1e-13)
    assert not np.triu(factor[:rank], 1).any()
    assert pivoted_cholesky(matrix, 1e3)[0].shape == (9, 0)


def test_solving_with_a_factor():
    L = np.tril(np.random.default_rng(3).normal(size=(6, 6))) + 3.0 * np.eye(6)
    np.testing.assert_allclose(L @ solve_lower(L, np.eye(6)), np.eye(6), atol=1e-13)


def test_variances_keep_a_share_of_their_scale():
    scale = np.array([1.0, 1e4, 0.0])
    np.testing.assert_array_equal(
        floor_variance(np.array([-1e-3, 5.0, -1e-20]), scale, 1e-12), [1e-12, 5.0, 0.0]
    )
    assert 0.0 < floor_variance(np.array(-1.0), 1.0) < 1e-15


@pytest.mark.parametrize("n", [5, 299, 301, 1500])
def test_covariances_are_told_from_other_matrices(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    assert is_covariance(RBF(3.0)(X))  # singular to rounding
    assert is_covariance(1e-200 * Matern(0.1, nu=0.5)(X))
    assert is_covariance(np.zeros((n, n)))
    assert not is_covariance(-np.eye(n))
    K = RBF()(X)
    K[n // 2, n // 2] = np.nan
    assert n > 300 or not is_covariance(K)


@pytest.mark.parametrize(("d", "sound"), [(1, True), (2, False), (3, False)])
def test_periodic_kernels_of_euclidean_distance_are_covariances_in_one_dimension(d, sound):
    X = np.random.default_rng(0).uniform(0.0, 2.0, (60, d))
    assert is_covariance(ExpSineSquared(1.0, 1.0)(X)) == sound


def test_every_row_counts_whether_a_matrix_is_a_covariance():
    K = np.eye(400)
    assert is_covariance(K)
    K[2, 3] = K[3, 2] = 2.0
    assert not is_covariance(K)
