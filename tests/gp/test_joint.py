"""Joint moments of items and of fixed ones: against the posterior's own, and their pull-back."""

import numpy as np
import pytest
from kernels_support import slope
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from skpref.gp._posterior import Posterior
from skpref.kernels import Identity, OnColumns

KERNELS = {
    "matern": Matern([0.4, 0.7], nu=2.5),
    "linear": ConstantKernel(2.0) * DotProduct(0.3) ** 2 + RBF(0.6),
    "columns": OnColumns(DotProduct(0.2) + RBF(0.5), [1]) + 0.4 * OnColumns(Identity(), [0]),
    "white": RBF(0.6) + WhiteKernel(0.2),
    "constant": ConstantKernel(1.3),
}
FIXED = np.array([0.3, 0.8])
X = np.random.default_rng(1).random((6, 2))


def posterior(kernel, n_components=3):
    rng = np.random.default_rng(0)
    Z = rng.random((7, 2))
    inverse = np.linalg.inv(kernel(Z) + 0.1 * np.eye(7))
    weights = inverse @ rng.standard_normal((7, n_components))
    return Posterior(kernel, 0.02, Z, weights, np.linalg.cholesky(inverse))


@pytest.mark.parametrize("name", KERNELS)
def test_moments_are_the_posteriors(name):
    made = posterior(KERNELS[name])
    found = made.joint_with(FIXED).moments(X)
    both = np.vstack([X, FIXED])
    covariance = (
        made.kernel(both) - (half := made.kernel(both, made.anchors) @ made.factor) @ half.T
    )
    np.testing.assert_allclose(found.mean, made.component_means(X), atol=1e-12)
    np.testing.assert_allclose(found.fixed_mean, made.component_means(FIXED[None])[0], atol=1e-12)
    np.testing.assert_allclose(found.var, made.component_var(X), atol=1e-12)
    np.testing.assert_allclose(found.fixed_var, covariance[-1, -1], atol=1e-12)
    np.testing.assert_allclose(found.cov, covariance[-1, :-1], atol=1e-12)
    again, _ = made.joint_with(FIXED).moments_and_pull_back(X)
    for one, two in zip(found, again, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-13)


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_in_moments_are_pulled_back_to_items(name, numbers):
    joint = posterior(KERNELS[name]).joint_with(FIXED)
    rng = np.random.default_rng(2)
    by_mean, by_var, by_cov = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    if numbers:
        by_var, by_cov = 0.7, -0.4

    def functional(rows):
        at = joint.moments(rows)
        return (by_mean * at.mean).sum(axis=1) + by_var * at.var + by_cov * at.cov

    gradient = joint.moments_and_pull_back(X)[1](by_mean, by_var, by_cov)
    for k, direction in enumerate(np.eye(2)):
        truth = slope(lambda step, along=direction: functional(X + step * along), 0.0)
        np.testing.assert_allclose(gradient[:, k], truth, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_fixed", [0, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_moments_of_rows_are_the_posteriors(name, n_fixed):
    made, fixed = posterior(KERNELS[name]), np.random.default_rng(3).random((n_fixed, 2))
    found, _ = made.joint_rows(fixed).moments_and_pull_back(X)
    covariance = made.component_cov(np.vstack([X, fixed]))
    np.testing.assert_allclose(found.mean, made.component_means(X), atol=1e-12)
    np.testing.assert_allclose(found.cov, covariance[:6, :6], atol=1e-12)
    np.testing.assert_allclose(found.fixed_cov, covariance[:6, 6:], atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_in_moments_of_rows_are_pulled_back(name):
    joint = posterior(KERNELS[name]).joint_rows(np.random.default_rng(3).random((4, 2)))
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(6, 3)), rng.normal(size=(6, 6)), rng.normal(size=(6, 4))

    def functional(rows):
        moments, _ = joint.moments_and_pull_back(rows)
        return sum((weight * at).sum() for weight, at in zip(weights, moments, strict=True))

    gradient = joint.moments_and_pull_back(X)[1](*weights)
    for place in np.ndindex(*X.shape):
        along = np.zeros(X.shape)
        along[place] = 1.0
        truth = slope(lambda step, along=along: functional(X + step * along), 0.0)
        assert gradient[place] == pytest.approx(truth, rel=1e-6, abs=1e-8)


def test_an_item_that_is_all_but_known_keeps_a_little_variance():
    kernel = RBF(0.5)
    Z = np.array([[0.1, 0.1], [0.9, 0.4]])
    factor = np.linalg.cholesky(np.linalg.inv(kernel(Z)))
    sure = Posterior(kernel, 0.02, Z, np.zeros((2, 1)), factor)
    found = sure.joint_with(Z[0]).moments(Z)
    assert found.fixed_var == pytest.approx(1e-12)
    np.testing.assert_allclose(found.var, 1e-12)


def test_the_fixed_item_is_checked():
    made = posterior(KERNELS["matern"])
    with pytest.raises(ValueError, match="n_features = 2, got 3"):
        made.joint_with(np.zeros(3))
    with pytest.raises(ValueError, match="NaN or infinity"):
        made.joint_with([0.0, np.nan])
    with pytest.raises(ValueError, match="n_features = 2, got 3"):
        made.joint_rows(np.zeros((1, 3)))
