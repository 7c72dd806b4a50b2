"""Kernels of the package, spectral samples, and where the lengthscales are."""

import pickle

import numpy as np
import pytest
from kernels_support import (
    ARD,
    D,
    difference_input,
    difference_theta,
    rows,
    symmetric,
)
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from skpref.kernels import (
    Identity,
    PreferenceKernel,
    input_gradient,
    kernel_with_gradient,
    lengthscale_indices,
    spectral_sample,
    theta_gradient,
)

# --- identity -------------------------------------------------------------------------------------


def test_identity_is_white_noise_on_distinct_rows():
    X = np.arange(6.0)[:, None]
    np.testing.assert_array_equal(Identity()(X), WhiteKernel(1.0)(X))
    np.testing.assert_array_equal(Identity().diag(X), WhiteKernel(1.0).diag(X))


@pytest.mark.parametrize("d", [1, 3])
def test_identity_compares_rows(d):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 2, (20, d)).astype(float), rng.integers(0, 2, (15, d)).astype(float)
    X[X == 0] *= -1.0  # -0.0 equals 0.0
    truth = [[tuple(x) == tuple(y) for y in Y] for x in X]
    np.testing.assert_array_equal(Identity()(X, Y), truth)
    np.testing.assert_array_equal(kernel_with_gradient(Identity(), X)[0], Identity()(X))


def test_identity_in_a_regressor_is_one_mean_an_item():
    # Ridge on dummies: each item's mean shrinks by n / (n + noise).
    X, y = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([1.0, 2.0, 3.0, -4.0])
    model = GaussianProcessRegressor(Identity(), alpha=0.5).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0], [2.0]]), [6 / 3.5, -4 / 1.5, 0.0])


def test_identity_is_a_scikit_learn_kernel():
    K, gradient = Identity()(rows(), eval_gradient=True)
    assert gradient.shape == (9, 9, 0)
    assert (ConstantKernel(2.0) * Identity()).n_dims == 1
    assert clone(Identity()) == Identity()
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert not input_gradient(Identity(), rows(), rows()).any()
    with pytest.raises(ValueError, match="X has 3 features and Y has 2"):
        Identity()(rows(), rows(4, 2))
    with pytest.raises(ValueError, match="leave Y out"):
        Identity()(rows(), rows(), eval_gradient=True)


# --- preference kernel ----------------------------------------------------------------------------

BASES = [RBF(ARD), 1.5 * Matern(ARD, nu=1.5) + WhiteKernel(0.2), DotProduct(0.5), Identity()]


def swapped(X):
    return np.concatenate(np.split(X, 2, axis=1)[::-1], axis=1)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_preference_kernel_is_the_covariance_of_differences(base):
    X, Y = rows(7, 2 * D), rows(5, 2 * D, seed=3)
    incidence = np.hstack([np.eye(7), -np.eye(7)])
    items = np.vstack([X[:, :D], X[:, D:]])
    truth = incidence @ base(items) @ incidence.T
    kernel = PreferenceKernel(base)
    np.testing.assert_allclose(kernel(X), truth, atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(truth), atol=1e-12)
    crossed = np.hstack([np.eye(5), -np.eye(5)])
    other = np.vstack([Y[:, :D], Y[:, D:]])
    np.testing.assert_allclose(kernel(X, Y), incidence @ base(items, other) @ crossed.T, atol=1e-12)


@pytest.mark.parametrize("base", [RBF(ARD), Matern(ARD, nu=2.5), Identity()], ids=str)
def test_preference_kernel_is_exactly_antisymmetric(base):
    X, Y = rows(7, 2 * D), rows(5, 2 * D, seed=3)
    kernel = PreferenceKernel(base)
    np.testing.assert_array_equal(kernel(swapped(X), Y), -kernel(X, Y))
    np.testing.assert_array_equal(kernel(X, swapped(Y)), -kernel(X, Y))
    np.testing.assert_array_equal(kernel(X), kernel(X).T)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_preference_kernel_is_positive_semidefinite(base):
    X = rows(30, 2 * D)
    X[10:15] = swapped(X[:5])
    X[15, :D] = X[15, D:]
    eigenvalues = np.linalg.eigvalsh(PreferenceKernel(base)(X))
    assert eigenvalues.min() > -1e-12 * eigenvalues.max()


@pytest.mark.parametrize("base", BASES, ids=str)
def test_preference_kernel_gradients(base):
    X, weight = rows(7, 2 * D), symmetric(7)
    kernel = PreferenceKernel(base)
    truth = difference_theta(kernel, X, weight)
    K, full = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    np.testing.assert_allclose(np.tensordot(weight, full, axes=2), truth, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(theta_gradient(kernel, X, weight), truth, rtol=1e-7, atol=1e-9)
    Z = rows(4, 2 * D, seed=8)
    np.testing.assert_allclose(
        input_gradient(kernel, X, Z),
        difference_input(lambda moved: kernel(moved, Z), X),
        atol=1e-7,
    )


def test_preference_kernel_diag_in_blocks():
    X = rows(300, 2 * D)
    kernel = PreferenceKernel(RBF(ARD))
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X)), rtol=1e-12)


def test_preference_kernel_is_a_scikit_learn_kernel():
    base = ConstantKernel(2.0, "fixed") * RBF([1.0, 2.0], (1e-2, 1e2))
    kernel = PreferenceKernel(base)
    assert [h.name for h in kernel.hyperparameters] == [
        "kernel__k1__constant_value",
        "kernel__k2__length_scale",
    ]
    np.testing.assert_array_equal(kernel.theta, base.theta)
    np.testing.assert_array_equal(kernel.bounds, base.bounds)
    moved = kernel.clone_with_theta(np.log([3.0, 4.0]))
    np.testing.assert_allclose(moved.kernel.k2.length_scale, [3.0, 4.0])
    np.testing.assert_array_equal(kernel.kernel.k2.length_scale, [1.0, 2.0])
    assert moved != kernel
    assert clone(kernel) == kernel == pickle.loads(pickle.dumps(kernel))
    assert kernel != base
    kernel.set_params(kernel__k1__constant_value=5.0)
    assert kernel.get_params()["kernel__k1__constant_value"] == 5.0
    assert repr(kernel) == f"PreferenceKernel({base})"
    assert not kernel.is_stationary()
    assert (kernel + WhiteKernel()).n_dims == 3


def test_preference_kernel_errors():
    kernel = PreferenceKernel(RBF())
    with pytest.raises(ValueError, match="5 columns, an odd number"):
        kernel(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="odd number"):
        kernel.diag(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"shape \(4, 2, 3\)"):
        kernel(np.zeros((4, 2, 3)))
    with pytest.raises(ValueError, match="leave Y out"):
        kernel(np.zeros((2, 2)), np.zeros((2, 2)), eval_gradient=True)


def test_preference_kernel_in_scikit_learns_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = (X[:, 0] - X[:, 1] > X[:, 2] - X[:, 3]).astype(int)
    y[:60:10] ^= 1  # separable answers would send the amplitude to its bound
    kernel = ConstantKernel(4.0) * PreferenceKernel(RBF([1.0, 1.0]))
    model = GaussianProcessClassifier(kernel).fit(X[:60], y[:60])
    there, back = model.predict_proba(X[60:])[:, 1], model.predict_proba(swapped(X[60:]))[:, 1]
    np.testing.assert_allclose(there + back, 1.0, atol=2e-3)  # its integral is approximate
    assert model.score(X[60:], y[60:]) >= 0.9


def test_preference_kernel_in_scikit_learns_regressor():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(X[:, 0]) - np.sin(X[:, 1])
    model = GaussianProcessRegressor(PreferenceKernel(RBF()), alpha=1e-6).fit(X, y)
    new = rng.uniform(-1.8, 1.8, (20, 2))
    truth = np.sin(new[:, 0]) - np.sin(new[:, 1])
    np.testing.assert_allclose(model.predict(new), truth, atol=1e-3)
    np.testing.assert_allclose(model.predict(swapped(new)), -model.predict(new), rtol=1e-12)


# --- spectral samples -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.8),
        RBF(ARD),
        Matern(0.8, nu=0.5),
        Matern(ARD, nu=1.5),
        Matern(ARD, nu=2.5),
        Matern(ARD, nu=1.1),
        Matern(ARD, nu=np.inf),
        3.0 * RBF(ARD),
        3.0 * RBF(0.5) + ConstantKernel(2.0) * (0.5 * Matern(2.0, nu=1.5) + 1.0),
        (RBF(0.3) + RBF(3.0)) * (Matern(0.4, nu=2.5) + Matern(4.0, nu=2.5)),
        (1.5 * Matern(0.8, nu=1.5) + 0.5) ** 3,
    ],
    ids=str,
)
def test_spectral_sample_averages_to_the_kernel(kernel):
    n = 100_000
    frequencies, amplitudes = spectral_sample(kernel, n, D, np.random.default_rng(0))
    X = 0.7 * rows(6)
    truth = kernel(X, X)
    lags = X[:, None] - X[None]
    terms = n * np.cos(lags @ frequencies.T) * amplitudes**2
    error = terms.std(axis=-1) / np.sqrt(n) + 1e-12
    assert np.all(np.abs(terms.mean(axis=-1) - truth) < 4.5 * error)
    np.testing.assert_allclose(np.sum(amplitudes**2), kernel.diag(X)[0], rtol=1e-12)


def test_spectral_sample_of_a_sum_is_unbiased_for_few_features():
    kernel = 1.0 * RBF(0.3) + 2.0 * RBF(3.0)
    rng = np.random.default_rng(0)
    lag = np.array([0.5])
    draws = []
    for _ in range(4000):
        frequencies, amplitudes = spectral_sample(kernel, 4, 1, rng)
        draws.append(np.sum(amplitudes**2 * np.cos(frequencies @ lag)))
    truth = kernel(np.zeros((1, 1)), lag[None])[0, 0]
    assert abs(np.mean(draws) - truth) < 4 * np.std(draws) / np.sqrt(len(draws))


@pytest.mark.parametrize(
    "kernel",
    [
        DotProduct(),
        RBF() + WhiteKernel(),
        Identity(),
        RBF() * DotProduct(),
        ExpSineSquared(),
        RationalQuadratic(),
        Matern() ** 0.5,
        DotProduct() ** 2,
        PreferenceKernel(RBF()),
    ],
    ids=str,
)
def test_spectral_sample_of_other_kernels_is_none(kernel):
    assert spectral_sample(kernel, 10, 4, np.random.default_rng(0)) is None


# --- lengthscales ---------------------------------------------------------------------------------


def test_lengthscale_indices_point_into_theta():
    kernel = (
        ConstantKernel(90.0) * RBF([1.0, 2.0])
        + ConstantKernel(91.0, "fixed") * Matern(3.0, nu=2.5)
        + RBF([92.0, 93.0], "fixed") * RationalQuadratic(4.0, 94.0)
        + PreferenceKernel(WhiteKernel(95.0) + RBF([5.0, 6.0, 7.0])) ** 2
        + ExpSineSquared(8.0, 96.0)
        + DotProduct(97.0)
    )
    found = lengthscale_indices(kernel)
    values = np.exp(kernel.theta[[index for index, _ in found]])
    np.testing.assert_allclose(values, np.arange(1.0, 9.0))
    assert [feature for _, feature in found] == [0, 1, None, None, 0, 1, 2, None]
    assert lengthscale_indices(RBF(1.0, "fixed") + Identity()) == []
