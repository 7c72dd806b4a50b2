"""A kernel of finite rank at anchors: covariance there, gradients, and functions drawn of it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from skpref.gp._posterior import Posterior
from skpref.kernels import (
    AnchorFeatures,
    CrossKernel,
    Linear,
    OnColumns,
    Padded,
    kernel_with_gradient,
)
from skpref.kernels._gradients import diag_with_gradient
from skpref.likelihoods import Probit

RNG = np.random.default_rng(3)
ANCHORS = RNG.random((6, 2))
INNER = Matern([0.5, 0.8], nu=2.5)
X, Z = RNG.random((4, 2)), RNG.random((5, 2))
ROOT = RNG.standard_normal((6, 2))
FEATURES = AnchorFeatures(INNER, ANCHORS, ROOT)
OWN = ConstantKernel(0.3) * RBF(0.4)
PERSON = OnColumns(OWN + FEATURES, [0, 1]) * OnColumns(Linear(), [2]) + OnColumns(FEATURES, [0, 1])
KERNELS = {"features": FEATURES, "padded": Padded(PERSON, 2, [1.0])}


def test_the_covariance_at_anchors_is_the_given_one_and_goes_on_as_a_gp_does():
    values = RNG.standard_normal((6, 1))
    root = np.linalg.solve(INNER(ANCHORS), values)
    kernel = AnchorFeatures(INNER, ANCHORS, root)
    np.testing.assert_allclose(kernel(ANCHORS), values @ values.T, rtol=1e-6, atol=1e-9)
    regressor = GaussianProcessRegressor(INNER, alpha=1e-12, optimizer=None).fit(ANCHORS, values)
    mean = regressor.predict(X)
    np.testing.assert_allclose(kernel(X), np.outer(mean, mean), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_in_items_are_differences(name):
    kernel, step = KERNELS[name], 1e-6
    cross = CrossKernel(kernel, X, Z)
    sides = [[kernel(X + sign * step * axis, Z) for sign in (1, -1)] for axis in np.eye(2)]
    slopes = np.stack([(high - low) / (2 * step) for high, low in sides], axis=-1)
    np.testing.assert_allclose(cross.value, kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(cross.gradient(), slopes, atol=1e-7)
    weight = RNG.random((4, 5))
    np.testing.assert_allclose(
        cross.contract(weight), np.einsum("ij,ijd->id", weight, slopes), atol=1e-7
    )
    variance, gradient = diag_with_gradient(kernel, X)
    sides = [[kernel.diag(X + sign * step * axis) for sign in (1, -1)] for axis in np.eye(2)]
    slopes = np.stack([(high - low) / (2 * step) for high, low in sides], axis=-1)
    np.testing.assert_allclose(variance, np.diagonal(kernel(X)), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_it_has_no_hyperparameters_and_leaves_others_theirs():
    rows = np.column_stack([X, [0.0, 1.0, 1.0, 0.0]])
    K, contract = kernel_with_gradient(PERSON, rows)
    assert len(FEATURES.theta) == 0
    assert FEATURES(X, eval_gradient=True)[1].shape == (4, 4, 0)
    np.testing.assert_allclose(K, PERSON(rows), rtol=1e-12)
    weight = np.ones((4, 4))
    step = 1e-6 * np.eye(2)
    high, low = (
        [PERSON.clone_with_theta(PERSON.theta + sign * each)(rows).sum() for each in step]
        for sign in (1, -1)
    )
    np.testing.assert_allclose(contract(weight), np.subtract(high, low) / 2e-6, rtol=1e-6)
    assert clone(FEATURES) == FEATURES


def drawn_paths(n):
    # A posterior of nothing: the prior itself.
    rows = np.zeros((1, 3))
    posterior = Posterior(KERNELS["padded"], Probit(0.1), rows, np.zeros((1, 1)), np.zeros((1, 1)))
    return posterior.sample_paths(n, np.random.default_rng(0))


def test_drawn_functions_have_the_covariance():
    values = drawn_paths(20_000)(np.column_stack([X, np.ones(4)]))
    expected = KERNELS["padded"](X)
    tolerance = 6.0 * np.diagonal(expected).max() / np.sqrt(20_000)
    np.testing.assert_allclose(values @ values.T / 20_000, expected, atol=tolerance)


def test_drawn_functions_have_gradients_in_closed_form():
    paths, step = drawn_paths(3), 1e-6
    rows = np.column_stack([X, np.ones(4)])
    assert paths.has_features
    value, gradient = paths.value_and_gradient(rows)
    np.testing.assert_allclose(value, paths(rows), rtol=1e-10)
    for k in range(3):
        move = step * np.eye(3)[k]
        slope = (paths(rows + move) - paths(rows - move)) / (2 * step)
        np.testing.assert_allclose(gradient[:, k], slope, atol=1e-6)
    path = np.array([2, 0, 1, 1])
    value_of, gradient_of = paths.value_and_gradient_of(rows, path)
    np.testing.assert_allclose(value_of, value[np.arange(4), path], rtol=1e-10)
    np.testing.assert_allclose(gradient_of, gradient[np.arange(4), :, path], rtol=1e-9, atol=1e-12)
