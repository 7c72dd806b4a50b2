"""Hyperparameters at the ends of double precision, and those that no kernel can have."""

import warnings

import numpy as np
import pytest
from kernels_support import ARD, rows, symmetric
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
    OnColumns,
    PreferenceKernel,
    check_hyperparameters,
    contracted_input_gradient,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
)

LEAVES = [
    RBF(0.8),
    RBF(ARD),
    *(Matern(ARD, nu=nu) for nu in (0.3, 0.5, 1.5, 2.5, 3.3, np.inf)),
    RationalQuadratic(0.8, 1.9),
    DotProduct(0.6),
    ConstantKernel(2.0) * RBF(0.8) + WhiteKernel(0.4),
    (ConstantKernel(2.0) + DotProduct(0.6)) ** 2 * Matern(0.9, nu=1.5),
    OnColumns(RBF([0.5, 0.8]), [2, 0]) + OnColumns(Identity(), [1]),
    ExpSineSquared(0.9, 1.6),
]


@pytest.mark.parametrize("theta", [-1e4, -750.0, -700.0, -400.0, 400.0, 700.0, 750.0])
@pytest.mark.parametrize("kernel", LEAVES, ids=str)
def test_no_gradient_is_nan_however_far_out(kernel, theta):
    with np.errstate(all="ignore"):
        far = kernel.clone_with_theta(np.full(kernel.n_dims, theta))
    X, Z, weight = rows(), rows(6, seed=3), symmetric(9)
    X[1] = X[0]
    Z[0] = X[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, contract = kernel_with_gradient(far, X)
        assert np.all(np.isfinite(contract(weight)))
        for gradient in (
            input_gradient(far, X, Z),
            contracted_input_gradient(far, X, Z, weight[:, :6]),
            diag_gradient(far, X),
        ):
            assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("kernel", LEAVES[:8], ids=str)
def test_limits_of_stationary_kernels(kernel):
    X = rows()
    X[1] = X[0]
    near, _ = kernel_with_gradient(kernel.clone_with_theta(np.full(kernel.n_dims, -700.0)), X)
    np.testing.assert_array_equal(near, Identity()(X))
    far, contract = kernel_with_gradient(kernel.clone_with_theta(np.full(kernel.n_dims, 700.0)), X)
    np.testing.assert_array_equal(far, np.ones((9, 9)))
    np.testing.assert_allclose(contract(symmetric(9)), 0.0, atol=1e-80)


@pytest.mark.parametrize("nu", [0.3, 1.2, 3.3, 20.0])
def test_items_far_apart_share_nothing(nu):
    # s^ν overflows where K_ν(s) is 0
    K, _ = kernel_with_gradient(Matern(1e-120, nu=nu), rows())
    np.testing.assert_array_equal(K, np.eye(9))


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (RBF(0.0), "RBF has length_scale = 0.0, which is free and must be positive"),
        (RBF([1.0, -2.0]), "RBF has length_scale = .*free and must be positive"),
        (RBF(0.0, "fixed"), "RBF has length_scale = 0.0, which must be positive"),
        (2.0 * Matern([1.0, np.nan]), "Matern has length_scale = .*must be finite"),
        (DotProduct(0.0), 'DotProduct has sigma_0 = 0.0.*sigma_0_bounds="fixed"'),
        (RBF() + WhiteKernel(0.0), "WhiteKernel has noise_level = 0.0"),
        (ConstantKernel(np.inf, "fixed") * RBF(), "ConstantKernel has constant_value = inf"),
        (RationalQuadratic(1.0, 0.0, "fixed", "fixed"), "RationalQuadratic has alpha = 0.0"),
        (ExpSineSquared(1.0, -1.0), "ExpSineSquared has periodicity = -1.0"),
        (RBF(1.0, (1.0, 0.1)), r"RBF has length_scale_bounds = .*0 < low <= high"),
        (RBF(1.0, (0.0, 10.0)), r"RBF has length_scale_bounds = .*0 < low <= high"),
        (RBF([1.0, 1.0], [(0.1, 1.0), (np.nan, 1.0)]), "RBF has length_scale_bounds = "),
        (PreferenceKernel(RBF(0.0) ** 2), "RBF has length_scale = 0.0"),
        (OnColumns(1.0 + DotProduct(0.0), [0]), "DotProduct has sigma_0 = 0.0"),
    ],
    ids=str,
)
def test_hyperparameters_that_make_no_kernel_are_named(kernel, match):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=match):
            check_hyperparameters(kernel)


@pytest.mark.parametrize("kernel", [*LEAVES, DotProduct(0.0, "fixed"), Identity()], ids=str)
def test_sound_hyperparameters_pass(kernel):
    check_hyperparameters(kernel)
    check_hyperparameters(PreferenceKernel(0.5 * kernel))
