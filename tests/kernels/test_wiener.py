"""The Wiener kernel: its increments, its gradients, and what a tree of kernels asks of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared

from skpref.kernels import (
    Identity,
    OnColumns,
    Wiener,
    across,
    amplitude_powers,
    diag_gradient,
    has_amplitude,
    hyperparameter_names,
    input_gradient,
    kernel_with_gradient,
    theta_gradient,
    time_powers,
)

TIMES = np.array([[-3.0], [-0.5], [0.0], [0.25], [2.0], [7.5]])


def test_it_is_the_formula():
    K = Wiener(1.7)(TIMES)
    s, t = np.meshgrid(TIMES, TIMES)
    assert_allclose(K, 0.5 * 1.7 * (abs(s) + abs(t) - abs(s - t)), atol=1e-14)
    assert_allclose(Wiener(1.7).diag(TIMES), np.diagonal(K), atol=0.0)


def test_increments_are_independent_and_of_the_rate():
    differences = np.diff(np.eye(len(TIMES)), axis=0)
    found = differences @ Wiener(1.7)(TIMES) @ differences.T
    assert_allclose(found, np.diag(1.7 * np.diff(TIMES[:, 0])), atol=1e-13)


def test_it_is_the_covariance_of_a_random_walk():
    """Sums of many small independent steps, on both sides of 0."""
    rng = np.random.default_rng(0)
    n, step = 200_000, 0.5
    after = np.cumsum(rng.standard_normal((n, 4)) * np.sqrt(2.0 * step), axis=1)
    before = np.cumsum(rng.standard_normal((n, 2)) * np.sqrt(2.0 * step), axis=1)
    times = np.concatenate([-np.arange(1, 3), np.arange(1, 5)])[:, None] * step
    found = np.cov(np.hstack([before, after]), rowvar=False)
    assert_allclose(Wiener(2.0)(times), found, atol=0.04)


def test_no_digits_are_lost_far_from_the_start():
    far = np.array([[1e15], [1e15 + 1.0], [1e-300], [2e-300], [0.0]])
    K = Wiener()(far)
    assert K[0, 1] == K[0, 0] == 1e15
    assert K[2, 3] == K[0, 2] == 1e-300
    assert np.all(K[4] == 0.0)


def test_gradients_are_those_of_differences():
    kernel, step = Wiener(0.8), 1e-6
    _, slope = kernel(TIMES, eval_gradient=True)
    above, below = (Wiener(0.8 * np.exp(by))(TIMES) for by in (step, -step))
    assert_allclose(slope[:, :, 0], (above - below) / (2.0 * step), atol=1e-8)
    weight = np.random.default_rng(1).standard_normal((6, 6))
    tree = ConstantKernel(0.3) * OnColumns(Identity(), [0]) * OnColumns(kernel, [1]) + RBF()
    rows = np.column_stack([[0, 1, 0, 0, 1, 1], TIMES])
    K, contract = kernel_with_gradient(tree, rows)
    assert_allclose(K, tree(rows), atol=1e-13)
    symmetric = weight + weight.T
    _, gradient = tree(rows, eval_gradient=True)
    assert_allclose(contract(symmetric), np.tensordot(symmetric, gradient, 2), atol=1e-10)
    assert_allclose(theta_gradient(tree, rows, symmetric), contract(symmetric), atol=1e-12)


@pytest.mark.parametrize("aligned", [False, True])
def test_across_two_sets(aligned):
    Z, kernel = TIMES[::-1] + 0.1, Wiener(0.8)
    value, contract = across(kernel, TIMES, Z, aligned=aligned)
    whole = kernel(TIMES, Z)
    assert_allclose(value, np.diagonal(whole) if aligned else whole, atol=1e-15)
    weight = np.random.default_rng(2).standard_normal(np.shape(value))
    assert_allclose(contract(weight), [np.vdot(weight, value)], atol=1e-12)


def test_gradients_in_time():
    kernel, Z, step = Wiener(1.3), np.array([[-1.0], [0.5], [3.0]]), 1e-6
    X = TIMES[TIMES[:, 0] != 0.0]  # without the kink
    above, below = kernel(X + step, Z), kernel(X - step, Z)
    found = input_gradient(kernel, X, Z)
    assert_allclose(found[:, :, 0], (above - below) / (2.0 * step), atol=1e-8)
    own = (kernel.diag(X + step) - kernel.diag(X - step)) / (2.0 * step)
    assert_allclose(diag_gradient(kernel, X)[:, 0], own, atol=1e-8)


def test_units():
    kernel = Wiener() * ConstantKernel() + OnColumns(RBF(), [1]) + Wiener(1.0, "fixed")
    assert amplitude_powers(kernel) == [2, 2, 0]
    periodic = OnColumns(ExpSineSquared() + RBF() * Wiener(), [2])
    assert time_powers(OnColumns(RBF([1.0, 2.0]), [0, 2]) + periodic, 2) == [0, 1, 0, 0, 1, -1]
    assert time_powers(OnColumns(RBF([1.0, 2.0]), [0, 2]) + periodic, 1) == [0] * 6
    assert hyperparameter_names(OnColumns(Identity(), [0]) * OnColumns(Wiener(), [1])) == ["rate"]
    assert has_amplitude(periodic)
    assert not has_amplitude(RBF() + ExpSineSquared())


def test_one_column_alone():
    with pytest.raises(ValueError, match=r"kernel of time alone, but X has 2 columns.*OnColumns"):
        Wiener()(np.ones((3, 2)))
    with pytest.raises(ValueError, match="leave Y out"):
        Wiener()(TIMES, TIMES, eval_gradient=True)
    assert Wiener(1.0, "fixed")(TIMES, eval_gradient=True)[1].shape == (6, 6, 0)
    assert not Wiener().is_stationary()
    assert Wiener(2.0) == Wiener(2.0) != Wiener(3.0)
