"""Conditioning in margin space and in item space against dense textbook algebra."""

import numpy as np
import pytest
from core_support import SPACES, random_duels, won
from oracles import dense_posterior, incidence
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from skpref.gp import DenseItems, DenseMargins, Sites, choose_prior
from skpref.likelihoods import Probit

BOTH = pytest.mark.parametrize("space", ["margins", "items"])


def some_duels(n_items=6, n_duels=9, seed=0):
    return won(*random_duels(seed, n_items, n_duels))


def dense(duels):
    margins = duels.rows.margins
    return incidence(margins.first, margins.second, len(duels.items))


def some_sites(n_margins, how, seed=1):
    rng = np.random.default_rng(seed)
    precision = np.exp(rng.uniform(*{"wide": (-16, 10), "mild": (-1, 1)}[how], n_margins))
    return precision, precision * rng.normal(size=n_margins)


@BOTH
@pytest.mark.parametrize("how", ["mild", "wide"])
def test_marginals_agree_with_dense_algebra(space, how):
    duels = some_duels()
    A, kernel = dense(duels), Matern(0.8, nu=1.5)
    K = kernel(duels.items)
    precision, shift = some_sites(len(A), how)
    S = A @ K @ A.T
    total = S + np.diag(1.0 / precision)
    gain = np.linalg.solve(total, S).T
    mean, covariance = gain @ (shift / precision), S - gain @ S
    dual = np.linalg.solve(total, shift / precision)
    log_det = np.linalg.slogdet(np.eye(len(A)) + S * precision)[1]

    made = SPACES[space](K, duels.rows.margins)
    found = made.condition(precision, shift)
    # In the wide case the dense truth itself is good to about nine digits.
    close = {"rtol": 1e-10, "atol": 1e-11} if how == "mild" else {"rtol": 2e-7, "atol": 1e-8}
    np.testing.assert_allclose(found.mean, mean, **close)
    np.testing.assert_allclose(found.variance, np.diagonal(covariance), **close)
    np.testing.assert_allclose(found.log_det, log_det, rtol=1e-11)
    np.testing.assert_allclose(made.variance, np.diagonal(S), rtol=1e-12)
    if how == "mild":
        np.testing.assert_allclose(found.dual, dual, **close)
        R = np.linalg.inv(total)
        vector = np.linspace(-1.0, 2.0, len(A))
        np.testing.assert_allclose(made.gram(found, precision), A.T @ R @ A, **close)
        D = made.gain(found, precision, shift).factor
        np.testing.assert_allclose(D @ D.T, A.T @ R @ A, **close)
        response = made.condition_on_shift(found, precision, vector)
        np.testing.assert_allclose(response.dual, vector - R @ S @ vector, **close)
        np.testing.assert_allclose(response.mean, S @ vector - S @ R @ S @ vector, **close)
        np.testing.assert_allclose(made.times(vector), S @ vector, **close)


@BOTH
def test_sites_of_no_precision_are_as_if_absent(space):
    duels = some_duels()
    K = RBF(0.7)(duels.items)
    precision, shift = some_sites(len(duels.rows.margins.first), "mild")
    gone = np.array([0, 3])
    precision[gone] = shift[gone] = 0.0
    found = SPACES[space](K, duels.rows.margins).condition(precision, shift)
    kept = np.setdiff1d(np.arange(len(precision)), gone)
    A = dense(duels)
    S = A @ K @ A.T
    gain = np.linalg.solve(S[np.ix_(kept, kept)] + np.diag(1 / precision[kept]), S[kept]).T
    np.testing.assert_allclose(found.mean, gain @ (shift / np.where(precision, precision, 1))[kept])
    np.testing.assert_allclose(found.variance, np.diagonal(S - gain @ S[kept]), rtol=1e-10)
    np.testing.assert_allclose(found.dual[gone], 0.0, atol=1e-14)


@BOTH
def test_a_shift_without_precision_tilts_the_prior(space):
    # exp(shift z) without curvature moves the mean of N(0, S) to S shift.
    duels = some_duels()
    K = RBF(0.7)(duels.items)
    shift = np.zeros(len(duels.rows.margins.first))
    shift[1] = 0.7
    found = SPACES[space](K, duels.rows.margins).condition(np.zeros(len(shift)), shift)
    A = dense(duels)
    np.testing.assert_allclose(found.mean, A @ K @ A.T @ shift, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.variance, np.diagonal(A @ K @ A.T), rtol=1e-10)


@BOTH
def test_weak_sites_keep_the_digits_of_the_variance(space):
    duels = some_duels()
    K = RBF(0.7)(duels.items)
    made = SPACES[space](K, duels.rows.margins)
    tiny = np.full(len(duels.rows.margins.first), 1e-14)
    found = made.condition(tiny, tiny)
    np.testing.assert_allclose(found.variance, made.variance, rtol=1e-10)


@BOTH
def test_many_components_are_conditioned_one_by_one(space):
    duels = some_duels()
    made = SPACES[space](RBF(0.7)(duels.items), duels.rows.margins)
    precision, _ = some_sites(len(duels.rows.margins.first), "mild")
    shifts = np.random.default_rng(2).normal(size=(len(precision), 4))
    together = made.condition(precision, shifts)
    for s in range(4):
        alone = made.condition(precision, shifts[:, s])
        np.testing.assert_allclose(together.mean[:, s], alone.mean, atol=1e-13)
        np.testing.assert_allclose(together.dual[:, s], alone.dual, atol=1e-13)
        np.testing.assert_allclose(together.variance, alone.variance, atol=1e-13)


@BOTH
def test_a_semidefinite_prior_needs_no_jitter(space):
    rng = np.random.default_rng(3)
    items, winner, loser = random_duels(3, 12, 20)
    duels = won(items, winner, loser)
    kernel = DotProduct(sigma_0=0.0)  # rank two
    A = dense(duels)
    precision, shift = some_sites(len(A), "mild")
    made = SPACES[space](kernel(duels.items), duels.rows.margins, None, kernel, duels.items)
    found = made.condition(precision, shift)
    # f = x·β with β ~ N(0, I): ordinary Bayesian linear regression on differences.
    B = A @ duels.items
    covariance = np.linalg.inv(np.eye(2) + B.T @ (precision[:, None] * B))
    np.testing.assert_allclose(found.mean, B @ covariance @ B.T @ shift, atol=1e-12)
    spread = np.einsum("ij,jk,ik->i", B, covariance, B)
    np.testing.assert_allclose(found.variance, spread, atol=1e-12)
    posterior = made.posterior(Sites(shift, precision, 0.0), found, Probit(0.1))
    X = rng.normal(size=(4, 2))
    np.testing.assert_allclose(posterior.cov(X), X @ covariance @ X.T, atol=1e-11)


@BOTH
def test_the_posterior_is_that_of_gp_regression_on_the_sites(space):
    duels = some_duels(7, 10, 4)
    kernel = Matern([0.5, 1.5], nu=2.5)
    precision, shift = some_sites(len(duels.rows.margins.first), "mild")
    made = SPACES[space](kernel(duels.items), duels.rows.margins, None, kernel, duels.items)
    found = made.condition(precision, shift)
    posterior = made.posterior(Sites(shift, precision, 0.0), found, Probit(0.1))
    X = np.random.default_rng(5).uniform(-1, 1, (5, 2))
    mean, covariance = dense_posterior(kernel, duels.items, dense(duels), shift, precision, X)
    np.testing.assert_allclose(posterior.mean(X), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior.cov(X), covariance, atol=1e-12)


def test_the_smaller_space_is_taken():
    few, many = some_duels(20, 6), some_duels(5, 200)
    assert len(many.rows.margins.first) == 10
    assert choose_prior(RBF(), few, Probit(0.1)) is DenseMargins
    assert choose_prior(RBF(), many, Probit(0.1)) is DenseItems


def test_an_item_against_itself_says_nothing():
    duels = won(np.array([[0.0], [1.0]]), np.array([0, 0]), np.array([0, 1]))
    for space in ("margins", "items"):
        made = SPACES[space](RBF()(duels.items), duels.rows.margins)
        found = made.condition(np.array([3.0, 2.0]), np.array([1.0, 1.0]))
        assert found.mean[0] == found.variance[0] == 0.0
        S = 2.0 - 2.0 * np.exp(-0.5)
        assert found.variance[1] == pytest.approx(1.0 / (1.0 / S + 2.0), rel=1e-12)
