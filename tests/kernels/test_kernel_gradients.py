"""Gradients of kernels in hyperparameters and in inputs."""

import tracemalloc

import numpy as np
import pytest
from kernels_support import (
    ALL,
    ARD,
    FIXED,
    NESTED,
    OTHERS,
    SMOOTH_LEAVES,
    D,
    difference_input,
    difference_theta,
    rows,
    symmetric,
)
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    WhiteKernel,
)

from skpref.kernels import (
    Identity,
    contracted_input_gradient,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
    theta_gradient,
)

# --- hyperparameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_value_is_the_kernels(kernel):
    X = rows()
    K, _ = kernel_with_gradient(kernel, X)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_theta_gradient_by_differences(kernel):
    X, weight = rows(), symmetric(9)
    truth = difference_theta(kernel, X, weight)
    gradient = theta_gradient(kernel, X, weight)
    assert gradient.shape == (kernel.n_dims,)
    size = np.abs(weight * kernel(X)).sum()
    np.testing.assert_allclose(gradient, truth, rtol=1e-6, atol=1e-8 * size)


@pytest.mark.parametrize("kernel", [*SMOOTH_LEAVES, *FIXED, *OTHERS, *NESTED], ids=str)
def test_theta_gradient_agrees_with_scikit_learn(kernel):
    X, weight = rows(12), symmetric(12)
    K, full = kernel(X, eval_gradient=True)
    truth = np.tensordot(weight, full, axes=2)
    size = np.abs(weight * K).sum()
    np.testing.assert_allclose(
        theta_gradient(kernel, X, weight), truth, rtol=1e-10, atol=1e-11 * size
    )


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
@pytest.mark.parametrize("d", [2, 7])
def test_theta_gradient_of_nearly_coincident_rows(nu, d):
    X = 5.0 + rows(10, d)
    X[1] = X[0]
    X[3] = X[2] + 1e-9
    X[5] = X[4] + 1e-6
    weight = symmetric(10)
    weight[0, 1] = weight[1, 0] = 1e9
    weight[2, 3] = weight[3, 2] = 1e6
    kernel = Matern(np.linspace(0.5, 2.0, d), nu=nu)
    truth = np.tensordot(weight, kernel(X, eval_gradient=True)[1], axes=2)
    gradient = theta_gradient(kernel, X, weight)
    # Expanded squares may lose eps times the weight; a rough kernel's must not.
    atol = 1e-12 if nu == 0.5 or d == 2 else 1e-15 * 1e9 * 100
    np.testing.assert_allclose(gradient, truth, rtol=1e-7, atol=atol)


@pytest.mark.parametrize("kernel", [RBF(np.full(7, 1e-5)), Matern(np.full(7, 1e-5), nu=2.5)])
def test_theta_gradient_where_the_spread_is_many_lengthscales(kernel):
    X = rows(10, 7)
    X[1] = X[0] + 1e-5
    weight = symmetric(10)
    truth = np.tensordot(weight, kernel(X, eval_gradient=True)[1], axes=2)
    np.testing.assert_allclose(theta_gradient(kernel, X, weight), truth, rtol=1e-9)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.2, 1.5, 2.5, np.inf])
def test_coincident_rows_are_finite(nu):
    X = np.zeros((3, 2))
    kernel = Matern([1.0, 2.0], nu=nu)
    K, contract = kernel_with_gradient(kernel, X)
    np.testing.assert_array_equal(K, 1.0)
    np.testing.assert_array_equal(contract(np.ones((3, 3))), 0.0)
    np.testing.assert_array_equal(input_gradient(kernel, X, X), 0.0)
    np.testing.assert_array_equal(contracted_input_gradient(kernel, X, X, 1.0), 0.0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("nu", [0.5, 2.5, np.inf])
@pytest.mark.parametrize("d", [3, 8])
def test_units_of_features_do_not_matter(scale, nu, d):
    X, Z, weight = rows(8, d), rows(6, d, seed=3), symmetric(8)
    lengths, units = np.linspace(0.5, 2.0, d), np.where(np.arange(d) == 1, scale, 1.0)
    here, there = Matern(lengths, nu=nu), Matern(lengths * units, nu=nu)
    np.testing.assert_allclose(
        theta_gradient(there, X * units, weight), theta_gradient(here, X, weight), rtol=1e-8
    )
    W = weight[:, :6]
    for gradient in (input_gradient, lambda k, X, Z: contracted_input_gradient(k, X, Z, W)):
        np.testing.assert_allclose(
            gradient(there, X * units, Z * units) * units, gradient(here, X, Z), rtol=1e-8
        )


def test_origin_of_stationary_kernels_does_not_matter():
    # Rows on a grid and lengthscales that are powers of 2: shifting and scaling are exact.
    X, Z = (np.round(A * 2**20) / 2**20 for A in (rows(8, 8), rows(6, 8, seed=3)))
    kernel = Matern(2.0 ** np.array([-1, 0, 1, 2, -1, 0, 1, 2]), nu=1.5)
    far, weight = 2.0**20, symmetric(8)
    for gradient in (
        lambda shift: theta_gradient(kernel, X + shift, weight),
        lambda shift: contracted_input_gradient(kernel, X + shift, Z + shift, weight[:, :6]),
    ):
        np.testing.assert_allclose(gradient(far), gradient(0.0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kernel", [1.5 * RBF(ARD) + WhiteKernel(), Identity(), DotProduct()])
def test_a_single_row(kernel):
    X = np.ones((1, D))
    K, contract = kernel_with_gradient(kernel, X)
    np.testing.assert_allclose(K, kernel(X))
    truth = kernel(X, eval_gradient=True)[1][0, 0]
    np.testing.assert_allclose(contract(np.ones((1, 1))), truth, atol=1e-15)


@pytest.mark.parametrize("kernel", [RBF(np.ones(40)), Matern(np.ones(40), nu=0.5)], ids=str)
def test_no_array_of_pairs_times_features(kernel):
    X, weight = rows(300, 40), symmetric(300)
    full = 300 * 300 * 40 * 8
    for task in (
        lambda: theta_gradient(kernel, X, weight),
        lambda: contracted_input_gradient(kernel, X, X, weight),
    ):
        tracemalloc.start()
        task()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < full / 4


def test_subclasses_go_through_their_own_code():
    class Halved(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            result = super().__call__(X, Y, eval_gradient)
            return (0.5 * result[0], 0.5 * result[1]) if eval_gradient else 0.5 * result

    X, weight = rows(), symmetric(9)
    kernel = Halved(0.8)
    K, contract = kernel_with_gradient(kernel, X)
    np.testing.assert_allclose(K, 0.5 * RBF(0.8)(X))
    np.testing.assert_allclose(contract(weight), difference_theta(kernel, X, weight), rtol=1e-8)
    gradient = input_gradient(kernel, X, X + 1.0)
    np.testing.assert_allclose(gradient, 0.5 * input_gradient(RBF(0.8), X, X + 1.0), atol=1e-9)


def test_arguments_are_not_changed():
    X, weight = rows(), symmetric(9)
    X.flags.writeable = weight.flags.writeable = False
    kernel = 2.0 * RBF(ARD) + WhiteKernel(0.1)
    before = clone(kernel)
    K, contract = kernel_with_gradient(kernel, X)
    first = contract(weight)
    K[:] = 0.0  # the caller's, to use as they like
    np.testing.assert_array_equal(contract(weight), first)
    input_gradient(ExpSineSquared(), X, X)
    assert kernel == before


def test_errors_name_the_shapes():
    with pytest.raises(ValueError, match=r"shape \(3,\).*2-D"):
        kernel_with_gradient(RBF(), np.zeros(3))
    with pytest.raises(ValueError, match=r"Z has shape \(2,\)"):
        input_gradient(RBF(), np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(ValueError, match=r"length_scale of shape \(2,\), but X has 3"):
        kernel_with_gradient(RBF([1.0, 2.0]), rows())
    with pytest.raises(ValueError, match=r"weight has shape \(2, 2\).*\(9, 9\)"):
        theta_gradient(RBF(), rows(), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="CompoundKernel gave an array of shape"):
        kernel_with_gradient(CompoundKernel([RBF(), RBF(2.0)]), rows())


# --- inputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_input_gradient_by_differences(kernel):
    X, Z = rows(5), rows(4, seed=2)
    truth = difference_input(lambda moved: kernel(moved, Z), X)
    size = np.abs(kernel(X, Z)).max() + 1.0
    gradient = input_gradient(kernel, X, Z)
    np.testing.assert_allclose(gradient, truth, rtol=1e-6, atol=1e-7 * size)
    W = np.random.default_rng(5).normal(size=(5, 4))
    np.testing.assert_allclose(
        contracted_input_gradient(kernel, X, Z, W),
        np.einsum("ij,ijk->ik", W, truth),
        rtol=1e-6,
        atol=1e-6 * size,
    )


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_diag_gradient_by_differences(kernel):
    X = rows(5)
    truth = difference_input(kernel.diag, X)
    size = np.abs(kernel.diag(X)).max() + 1.0
    np.testing.assert_allclose(diag_gradient(kernel, X), truth, rtol=1e-6, atol=1e-8 * size)


def test_input_gradient_of_a_kernel_unknown_here():
    class Quartic(Kernel):
        def __init__(self):
            pass

        def __call__(self, X, Y=None, eval_gradient=False):
            return (np.asarray(X) @ np.asarray(X if Y is None else Y).T) ** 4

        def diag(self, X):
            return np.sum(X**2, axis=1) ** 4

        def is_stationary(self):
            return False

    power = DotProduct(1e-30) ** 4
    for X in (rows(5), 1e6 * rows(5), 1e-6 * rows(5), np.ones((2, D))):
        for gradient in (diag_gradient, lambda k, X: input_gradient(k, X, X)):
            truth = gradient(power, X)
            ours = gradient(Quartic(), X)
            np.testing.assert_allclose(ours, truth, rtol=1e-6, atol=1e-7 * np.abs(truth).max())


def test_differences_heed_the_kernels_own_lengths():
    X = np.column_stack([np.linspace(0.0, 1e3, 6) + 0.1, np.zeros(6)])
    kernel = ExpSineSquared(0.7, 0.3)
    Z = X[:2] + 0.05
    # The truth takes a tenth of the usual step: it works in units a tenth as large.
    truth = 10.0 * difference_input(lambda moved: kernel(moved / 10.0, Z), 10.0 * X)
    np.testing.assert_allclose(input_gradient(kernel, X, Z), truth, rtol=1e-5, atol=1e-5)


def test_slope_at_the_edge_of_a_kink():
    # One-sided derivative of exp(-r / l) at r -> 0, whatever the weights' size.
    x = np.array([[1.0 + 2.0**-40, 3.0]])
    z = np.array([[1.0, 3.0]])
    kernel = Matern(0.5, nu=0.5)
    np.testing.assert_allclose(input_gradient(kernel, x, z)[0, 0], [-2.0, 0.0], rtol=1e-9)
    np.testing.assert_allclose(
        contracted_input_gradient(kernel, x, z, 1.0)[0], [-2.0, 0.0], rtol=1e-9
    )
