"""Covariances across two sets of items: the kernels themselves, and differences of theta."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from skpref.kernels import Identity, OnColumns, PreferenceKernel, across

KERNELS = {
    "rbf": RBF(1.3),
    "sum": 2.0 * RBF([1.0, 2.0, 0.5]) + WhiteKernel(0.3),
    "product": Matern([1.0, 2.0, 0.5], nu=1.5) * ConstantKernel(2.0),
    "rough": Matern([1.0, 0.7, 2.0], nu=0.5),
    "power": OnColumns(RBF([0.4, 2.0]), [0, 2]) ** 2 + DotProduct(0.7),
    "rational": RationalQuadratic(1.0, 2.0),
    "periodic": ExpSineSquared(1.0, 2.0),
    "held": RBF(0.5, "fixed") + ConstantKernel(0.3) * OnColumns(Identity(), [1]),
    "many": RBF(np.linspace(0.5, 2.0, 3)) * Matern(2.0, nu=0.7),
}


def ends(seed=0):
    X, Z = np.random.default_rng(seed).normal(size=(2, 7, 3))
    Z[0] = X[0]
    return X, Z


def value_of(kernel, X, Z, aligned):
    K = kernel(X, Z)
    return np.diagonal(K) if aligned else K


@pytest.mark.parametrize("aligned", [False, True], ids=["all", "one by one"])
@pytest.mark.parametrize("name", KERNELS)
def test_values_and_gradients(name, aligned):
    kernel, (X, Z) = KERNELS[name], ends()
    value, contract = across(kernel, X, Z, aligned=aligned)
    assert_allclose(value, value_of(kernel, X, Z, aligned), rtol=1e-12, atol=1e-14)
    weight = np.random.default_rng(1).normal(size=value.shape)
    truth = []
    for step in 1e-5 * np.eye(kernel.n_dims):
        above, below = (kernel.clone_with_theta(kernel.theta + s * step) for s in (1.0, -1.0))
        change = value_of(above, X, Z, aligned) - value_of(below, X, Z, aligned)
        truth.append(np.sum(weight * change) / 2e-5)
    assert_allclose(contract(weight), truth, rtol=1e-6, atol=1e-8)


def test_a_kernel_on_duels():
    kernel = PreferenceKernel(RBF(0.8))
    X, Z = np.random.default_rng(0).normal(size=(2, 4, 2))
    value, contract = across(kernel, X, Z)
    assert_allclose(value, kernel(X, Z))
    step = 1e-5
    above, below = (kernel.clone_with_theta(kernel.theta + s * step) for s in (1.0, -1.0))
    truth = np.sum(above(X, Z) - below(X, Z)) / (2 * step)
    assert_allclose(contract(np.ones((4, 4))), [truth], rtol=1e-6)


def test_squares_of_rows_far_from_the_origin_do_not_cancel():
    X, Z = ends()
    kernel = RBF([1.0, 2.0, 0.5])
    weight = np.random.default_rng(1).normal(size=(7, 7))
    near, far = (across(kernel, X + far, Z + far)[1](weight) for far in (0.0, 1e6))
    assert_allclose(far, near, rtol=1e-7)


def test_a_kernel_without_free_hyperparameters():
    X, Z = ends()
    value, contract = across(RBF(1.0, "fixed"), X, Z)
    assert contract(np.ones_like(value)).shape == (0,)
