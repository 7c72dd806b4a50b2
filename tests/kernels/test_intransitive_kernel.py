"""The kernel of circles as scikit-learn and the views of kernels see it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref.kernels import (
    Identity,
    Intransitive,
    hyperparameter_names,
    intransitive_parts,
    kernel_with_gradient,
    lengthscale_indices,
)

KERNEL = RBF(2.0) + Intransitive(ConstantKernel(0.7) * RBF([0.5, 3.0]), 1.5)


def test_theta_is_that_of_the_terms():
    theta = np.log([2.0, 1.5, 0.7, 0.5, 3.0])
    np.testing.assert_allclose(KERNEL.theta, theta)
    moved = KERNEL.clone_with_theta(theta + 0.1)
    np.testing.assert_allclose(moved.theta, theta + 0.1)
    np.testing.assert_allclose(KERNEL.theta, theta)
    assert KERNEL.bounds.shape == (5, 2)
    assert KERNEL.k2.hyperparameters[0].name == "variance"
    assert lengthscale_indices(KERNEL) == [(0, None), (3, 0), (4, 1)]
    assert hyperparameter_names(KERNEL)[1] == "variance of the intransitive RBF (1 of 2)"
    fixed = Intransitive(RBF(3.0), 0.0, "fixed")
    np.testing.assert_allclose(fixed.theta, np.log([3.0]))
    fixed.theta = np.log([4.0])
    assert fixed.kernel.length_scale == pytest.approx(4.0)


def test_it_is_nothing_of_the_utility():
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(KERNEL(X), RBF(2.0)(X))
    np.testing.assert_allclose(KERNEL(X, X[:2]), RBF(2.0)(X, X[:2]))
    np.testing.assert_allclose(KERNEL.diag(X), 1.0)
    K, contract = kernel_with_gradient(KERNEL, X)
    np.testing.assert_allclose(K, RBF(2.0)(X))
    np.testing.assert_allclose(contract(np.eye(5))[1:], 0.0)
    assert KERNEL(X, eval_gradient=True)[1].shape == (5, 5, 5)


def test_clones_are_equal_and_other_variances_are_not():
    assert clone(KERNEL) == KERNEL
    assert Intransitive(Identity()) != Intransitive(Identity(), 2.0)
    assert repr(Intransitive(Identity(), 2.0)) == "Intransitive(Identity(), variance=2)"
    assert intransitive_parts(Identity()) == (Identity(), None)
    assert intransitive_parts(None) == (None, None)
