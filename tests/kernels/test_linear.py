"""The linear kernel: scikit-learn's DotProduct on scaled features, differences, margins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import DotProduct

from skpref.kernels import (
    Linear,
    OnColumns,
    PreferenceKernel,
    across,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
    lengthscale_indices,
)

LENGTHS, CENTRE = np.array([0.7, 2.0, 5.0]), np.array([3.0, -1.0, 0.5])
KERNELS = {
    "each": Linear(LENGTHS, (1e-3, 1e3), CENTRE),
    "one": Linear(1.3, (1e-3, 1e3)),
}


def rows(seed=0):
    X, Z = np.random.default_rng(seed).normal(size=(2, 8, 3))
    Z[0] = X[0]
    return X, Z


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_a_dot_product_of_scaled_features(name):
    kernel, (X, Z) = KERNELS[name], rows()
    x, z = ((each - kernel.centre) / kernel.length_scale for each in (X, Z))
    plain = DotProduct(0.0, "fixed")
    assert_allclose(kernel(X, Z), plain(x, z), rtol=1e-12)
    assert_allclose(kernel(X), plain(x), rtol=1e-12)
    assert_allclose(kernel.diag(X), plain.diag(x), rtol=1e-12)
    assert_allclose(across(kernel, X, Z)[0], plain(x, z), rtol=1e-12)
    assert_allclose(across(kernel, X, Z, aligned=True)[0], np.diagonal(plain(x, z)), rtol=1e-12)
    assert_allclose(kernel_with_gradient(kernel, X)[0], plain(x), rtol=1e-12)


def test_margins_do_not_depend_on_the_centre():
    duels = np.random.default_rng(0).normal(size=(5, 6))
    found = [PreferenceKernel(Linear(LENGTHS, centre=c))(duels) for c in (0.0, CENTRE)]
    assert_allclose(*found, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_theta_gradients_agree_with_differences(name):
    kernel, (X, Z) = KERNELS[name], rows()
    gradient = kernel(X, eval_gradient=True)[1]
    weight = np.random.default_rng(1).normal(size=(8, 8))
    weight += weight.T
    assert kernel.n_dims == gradient.shape[2] == len(lengthscale_indices(kernel))
    for k, step in enumerate(1e-5 * np.eye(kernel.n_dims)):
        above, below = (kernel.clone_with_theta(kernel.theta + s * step) for s in (1.0, -1.0))
        change = (above(X) - below(X)) / 2e-5
        assert_allclose(gradient[:, :, k], change, rtol=1e-6, atol=1e-8)
        contracted = kernel_with_gradient(kernel, X)[1](weight)[k]
        assert_allclose(contracted, np.sum(weight * change), rtol=1e-6)
        change = (above(X, Z) - below(X, Z)) / 2e-5
        assert_allclose(across(kernel, X, Z)[1](weight)[k], np.sum(weight * change), rtol=1e-6)
        own = across(kernel, X, Z, aligned=True)[1](weight[0])[k]
        assert_allclose(own, weight[0] @ np.diagonal(change), rtol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_input_gradients_agree_with_differences(name):
    kernel, (X, Z) = KERNELS[name], rows()
    found, own = input_gradient(kernel, X, Z), diag_gradient(kernel, X)
    for k, step in enumerate(1e-6 * np.eye(3)):
        change = (kernel(X + step, Z) - kernel(X - step, Z)) / 2e-6
        assert_allclose(found[:, :, k], change, rtol=1e-6, atol=1e-7)
        assert_allclose(
            own[:, k], (kernel.diag(X + step) - kernel.diag(X - step)) / 2e-6, rtol=1e-6, atol=1e-7
        )


def test_lengthscales_are_held_unless_bounds_say_otherwise():
    kernel, (X, _) = Linear(LENGTHS), rows()
    assert kernel.n_dims == 0
    assert kernel(X, eval_gradient=True)[1].shape == (8, 8, 0)
    assert clone(kernel) == kernel != Linear(1.0)
    assert repr(kernel) == "Linear(length_scale=[0.7, 2, 5])"
    assert not kernel.is_stationary()


def test_wrong_shapes_say_what_is_allowed():
    X, Z = rows()
    with pytest.raises(ValueError, match=r"centre of shape \(2,\), but X has 3 features.*one a"):
        Linear(centre=[0.0, 1.0])(X)
    with pytest.raises(ValueError, match=r"length_scale of shape \(2,\), but X has 3"):
        OnColumns(Linear([1.0, 2.0]), [0, 1, 2])(X)
    with pytest.raises(ValueError, match="leave Y out"):
        Linear()(X, Z, eval_gradient=True)
