"""The product of Matérn-3/2 kernels: scikit-learn's own one by one, and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from skpref import PairwisePreferenceRegressor
from skpref.kernels import (
    ProductMatern,
    across,
    input_gradient,
    kernel_with_gradient,
    spectral_sample,
)

LENGTHS = np.array([0.7, 2.0, 5.0])
KERNELS = {"each": ProductMatern(LENGTHS), "one": ProductMatern(1.3)}


def rows(seed=0):
    X, Z = np.random.default_rng(seed).normal(size=(2, 8, 3))
    Z[0] = X[0]
    return X, Z


def product(lengths, X, Z):
    each = [
        Matern(length, nu=1.5)(X[:, [k]], Z[:, [k]])
        for k, length in enumerate(np.broadcast_to(lengths, 3))
    ]
    return np.prod(each, axis=0)


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_product_of_scikit_learns(name):
    kernel, (X, Z) = KERNELS[name], rows()
    truth = product(kernel.length_scale, X, Z)
    assert_allclose(kernel(X, Z), truth, rtol=1e-12)
    assert_allclose(kernel(X), product(kernel.length_scale, X, X), rtol=1e-12)
    assert_allclose(across(kernel, X, Z)[0], truth, rtol=1e-12)
    assert_allclose(across(kernel, X, Z, aligned=True)[0], np.diagonal(truth), rtol=1e-12)
    assert_allclose(kernel_with_gradient(kernel, X)[0], kernel(X), rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_theta_gradients_agree_with_differences(name):
    kernel, (X, Z) = KERNELS[name], rows()
    gradient = kernel(X, eval_gradient=True)[1]
    weight = np.random.default_rng(1).normal(size=(8, 8))
    weight += weight.T
    for k, step in enumerate(1e-5 * np.eye(kernel.n_dims)):
        above, below = (kernel.clone_with_theta(kernel.theta + s * step) for s in (1.0, -1.0))
        change = (above(X) - below(X)) / 2e-5
        assert_allclose(gradient[:, :, k], change, rtol=1e-6, atol=1e-9)
        contracted = kernel_with_gradient(kernel, X)[1](weight)[k]
        assert_allclose(contracted, np.sum(weight * change), rtol=1e-7)
        change = (above(X, Z) - below(X, Z)) / 2e-5
        assert_allclose(across(kernel, X, Z)[1](weight)[k], np.sum(weight * change), rtol=1e-7)
        own = across(kernel, X, Z, aligned=True)[1](weight[0])[k]
        assert_allclose(own, weight[0] @ np.diagonal(change), rtol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_input_gradients_agree_with_differences(name):
    kernel, (X, Z) = KERNELS[name], rows()
    found = input_gradient(kernel, X, Z)
    for k, step in enumerate(1e-6 * np.eye(3)):
        change = (kernel(X + step, Z) - kernel(X - step, Z)) / 2e-6
        assert_allclose(found[:, :, k], change, rtol=1e-5, atol=1e-5)


def test_random_features_have_its_covariance():
    kernel, (X, Z) = KERNELS["each"], rows()
    frequencies, amplitudes = spectral_sample(kernel, 200_000, 3, np.random.default_rng(0))
    apart = (X - Z) @ frequencies.T
    found = np.cos(apart) @ amplitudes**2
    assert_allclose(found, np.diagonal(kernel(X, Z)), atol=0.01)


def test_rows_far_apart_and_many_features():
    far = np.array([[0.0] * 3, [1e200] * 3])
    assert np.array_equal(KERNELS["each"](far), np.eye(2))
    X = np.random.default_rng(0).normal(size=(5, 300))
    K = ProductMatern(300.0)(X)
    assert_allclose(K, np.prod([Matern(300.0, nu=1.5)(x[:, None]) for x in X.T], axis=0))


def test_it_lives_with_scikit_learn():
    kernel, (X, _) = KERNELS["each"], rows()
    assert clone(kernel) == kernel
    assert repr(kernel) == "ProductMatern(length_scale=[0.7, 2, 5])"
    model = GaussianProcessRegressor(ProductMatern(LENGTHS)).fit(X, np.sin(2.0 * X).sum(axis=1))
    assert np.any(model.kernel_.theta != kernel.theta)
    with pytest.raises(ValueError, match="length_scale of shape"):
        kernel(X[:, :2])


@pytest.mark.parametrize("inference", ["ep", "svi"])
def test_relevance_is_learned(inference):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2, 3))
    utility = np.sin(2.0 * X[:, :, 0])
    y = utility[:, 0] > utility[:, 1]
    model = PairwisePreferenceRegressor(
        ProductMatern([1.0, 1.0, 1.0]), inference=inference, random_state=0, noise_variance=0.05
    ).fit(X, y)
    lengths = model.kernel_.length_scale
    assert lengths[0] < 0.5 * lengths[1:].min()
