"""Filter and smoother over chains: Gaussian conditioning by dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from skpref.gp._kalman import Chains, Nodes
from skpref.kernels import Identity, OnColumns, Seasons, Wiener, drifts_of

WHO = OnColumns(Identity(), [0])
KERNELS = [
    0.7 * WHO + 0.3 * WHO * OnColumns(Matern(5.0, nu=1.5), [1]),
    WHO * OnColumns(Wiener(0.4), [1]) + ConstantKernel(0.5) * WHO,
    0.3 * WHO * OnColumns(Matern(2.0, nu=2.5) * 2.0 + Matern(1.0, nu=0.5), [1]),
    0.7 * WHO + WHO * OnColumns((Wiener(0.2) + Matern(4.0, nu=1.5)) * Seasons([7.0, 2.5]), [1]),
]


@pytest.fixture(params=KERNELS, ids=["matern32", "wiener", "matern52 and matern12", "seasons"])
def chained(request):
    """A kernel, chains of it, and its matrix at their nodes."""
    rng = np.random.default_rng(0)
    chain, times = rng.integers(0, 5, 40), rng.integers(-3, 20, 40) / 2.0
    nodes = Nodes(chain, times)
    drift = drifts_of(request.param, 2).drift
    K = request.param(np.column_stack([nodes.chain, nodes.times]))
    return request.param, Chains(nodes, drift), K


def sites(n):
    rng = np.random.default_rng(1)
    precision = rng.uniform(0.0, 2.0, n)
    precision[::3] = 0.0
    return precision, rng.normal(size=n)


def test_nodes_are_distinct_and_in_order():
    nodes = Nodes(np.array([1, 0, 1, 1, 0]), np.array([3.0, 2.0, 1.0, 3.0, 2.0]))
    assert nodes.n_nodes == 3 and nodes.n_chains == 2
    assert_allclose(nodes.times[nodes.node], [3.0, 2.0, 1.0, 3.0, 2.0])
    assert nodes.chain[nodes.node].tolist() == [1, 0, 1, 1, 0]
    assert [nodes.times[step].tolist() for step in nodes.steps] == [[1.0, 2.0], [3.0]]


def test_moments_are_those_of_the_dense_matrix(chained):
    _, chains, K = chained
    precision, shift = sites(len(K))
    found = chains.condition_nodes(precision)
    B = np.eye(len(K)) + K * precision
    cov = np.linalg.solve(B, K)
    assert_allclose(chains.variance, np.diagonal(K), rtol=1e-12)
    assert_allclose(found.variance, np.diagonal(cov), atol=1e-12)
    assert_allclose(found.log_det, np.linalg.slogdet(B)[1], rtol=1e-12)
    assert_allclose(chains.smoother(found).means(shift), cov @ shift, atol=1e-12)
    assert_allclose(chains.times(shift), K @ shift, atol=1e-12)


def test_gradient_is_that_of_the_dense_matrix(chained):
    kernel, chains, K = chained
    precision, weights = sites(len(K))
    rows = np.column_stack([chains.nodes.chain, chains.nodes.times])

    def objective(theta):
        K = kernel.clone_with_theta(theta)(rows)
        return 0.5 * (weights @ K @ weights - np.linalg.slogdet(np.eye(len(K)) + K * precision)[1])

    theta, step = kernel.theta, 1e-5
    slopes = [
        (objective(theta + each) - objective(theta - each)) / (2.0 * step)
        for each in np.eye(len(theta)) * step
    ]
    found = chains.gradient([(1.0, weights)], chains.condition_nodes(precision))
    assert_allclose(found, slopes, rtol=1e-6, atol=1e-7)


def test_a_known_beginning_takes_the_place_of_the_prior():
    kernel = WHO * OnColumns(Matern(4.0, nu=1.5), [1])
    drift = drifts_of(kernel, 2).drift
    nodes = Nodes(np.array([0, 0]), np.array([0.0, 1.0]))
    begin = np.array([[0.3, 0.1], [0.1, 0.5]])[:, :, None]
    chains = Chains(nodes, drift, begin)
    A, Q = (each[:, :, 0] for each in drift.transition(np.zeros(1), np.ones(1)))
    after = A @ begin[:, :, 0] @ A.T + Q
    assert_allclose(chains.variance, [0.3, after[0, 0]], rtol=1e-12)
    assert_allclose(chains.times(np.array([0.0, 1.0]))[0], (A @ begin[:, :, 0])[0, 0], rtol=1e-12)
