"""A kernel on chosen columns: against hand-sliced kernels, differences and scikit-learn."""

import pickle
import tracemalloc

import numpy as np
import pytest
from kernels_support import (
    difference_input,
    difference_theta,
    rows,
    symmetric,
)
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
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
    contracted_input_gradient,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
    lengthscale_indices,
    spectral_sample,
    theta_gradient,
)

WIDTH = 5
INNER = [
    RBF([0.7, 1.3]),
    1.5 * Matern(0.9, nu=1.5) + WhiteKernel(0.3),
    DotProduct(0.6) ** 2,
    Identity(),
    ExpSineSquared(0.9, 1.6),
    RationalQuadratic(0.8, 1.9) * ConstantKernel(2.0, "fixed"),
]
TREES = [
    OnColumns(RBF([0.7, 1.3]), [4, 1]) * OnColumns(DotProduct(0.6), [0]) + RBF(2.0),
    OnColumns(OnColumns(Matern(0.9, nu=2.5), [1]) + RBF([0.5, 0.8]), [3, 2]) ** 2,
    PreferenceKernel(OnColumns(DotProduct(0.4) + RBF([0.8]), [1])),
    0.7 * OnColumns(Identity(), [0]) + OnColumns(RBF([1.0, 2.0, 3.0, 0.5]), [1, 2, 3, 4]),
]


def items(n, width=WIDTH, seed=0):
    """Rows whose first column takes few values, so that items share it."""
    X = rows(n, width, seed)
    X[:, 0] = np.arange(n) % 3
    return X


@pytest.mark.parametrize("columns", [[2, 4], (4, 2), np.array([0, 3])], ids=str)
@pytest.mark.parametrize("inner", INNER, ids=str)
def test_it_is_the_kernel_of_sliced_rows(inner, columns):
    X, Y, kernel = items(8), items(6, seed=1), OnColumns(inner, columns)
    few, other = X[:, list(columns)], Y[:, list(columns)]
    np.testing.assert_array_equal(kernel(X), inner(few))
    np.testing.assert_array_equal(kernel(X, Y), inner(few, other))
    np.testing.assert_array_equal(kernel.diag(X), inner.diag(few))
    for found, truth in zip(
        kernel(X, eval_gradient=True), inner(few, eval_gradient=True), strict=True
    ):
        np.testing.assert_array_equal(found, truth)
    assert kernel.is_stationary() == inner.is_stationary()
    K, contract = kernel_with_gradient(kernel, X)
    np.testing.assert_allclose(K, inner(few), rtol=1e-12, atol=1e-14)
    weight = symmetric(8)
    np.testing.assert_array_equal(contract(weight), theta_gradient(inner, few, weight))


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_columns_that_are_not_seen_have_no_gradient(inner):
    X, Z, kernel = items(8), items(6, seed=1), OnColumns(inner, [4, 2])
    gradient = input_gradient(kernel, X, Z)
    assert not gradient[:, :, [0, 1, 3]].any()
    np.testing.assert_allclose(
        gradient[:, :, [4, 2]], input_gradient(inner, X[:, [4, 2]], Z[:, [4, 2]]), rtol=1e-9
    )


@pytest.mark.parametrize("kernel", TREES, ids=str)
def test_gradients_within_larger_kernels(kernel):
    width = 2 * WIDTH if isinstance(kernel, PreferenceKernel) else WIDTH
    X, Z, weight = rows(7, width), rows(4, width, seed=2), symmetric(7)
    K, contract = kernel_with_gradient(kernel, X)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-12, atol=1e-13)
    truth = difference_theta(kernel, X, weight)
    np.testing.assert_allclose(contract(weight), truth, rtol=1e-6, atol=1e-7)
    truth = difference_input(lambda moved: kernel(moved, Z), X)
    np.testing.assert_allclose(input_gradient(kernel, X, Z), truth, rtol=1e-6, atol=1e-7)
    W = weight[:, :4]
    contracted = contracted_input_gradient(kernel, X, Z, W)
    np.testing.assert_allclose(contracted, np.einsum("ij,ijk->ik", W, truth), rtol=1e-6, atol=1e-6)
    truth = difference_input(kernel.diag, X)
    np.testing.assert_allclose(diag_gradient(kernel, X), truth, rtol=1e-6, atol=1e-7)


def test_lengthscales_belong_to_columns_of_the_item():
    kernel = (
        OnColumns(RBF([1.0, 2.0]), [3, 5])
        + 90.0 * OnColumns(OnColumns(Matern([3.0, 4.0], nu=2.5), [2, 0]) + RBF(5.0), [7, 6, 4])
        + OnColumns(RBF(6.0), [8])
        + RBF(np.full(9, 7.0))
    )
    found = lengthscale_indices(kernel)
    np.testing.assert_allclose(
        np.exp(kernel.theta[[index for index, _ in found]]), [1, 2, 3, 4, 5, 6] + 9 * [7]
    )
    features = [feature for _, feature in found]
    assert features == [3, 5, 4, 7, None, 8, *range(9)]


def test_spectral_samples_leave_other_columns_alone():
    kernel = 2.0 * OnColumns(RBF([0.5, 0.8]), [3, 1]) * OnColumns(Matern(0.6, nu=2.5), [4])
    n = 100_000
    frequencies, amplitudes = spectral_sample(kernel, n, WIDTH, np.random.default_rng(0))
    assert not frequencies[:, [0, 2]].any()
    X = 0.5 * rows(6, WIDTH)
    lags = X[:, None] - X[None]
    terms = n * np.cos(lags @ frequencies.T) * amplitudes**2
    error = terms.std(axis=-1) / np.sqrt(n) + 1e-12
    assert np.all(np.abs(terms.mean(axis=-1) - kernel(X, X)) < 4.5 * error)
    with_identity = kernel + OnColumns(Identity(), [0])
    assert spectral_sample(with_identity, 10, WIDTH, np.random.default_rng(0)) is None


def test_scikit_learn_learns_its_hyperparameters():
    X = items(40)
    smooth, own = np.sin(2.0 * X[:, 1]), np.array([0.0, 2.0, -1.0])[X[:, 0].astype(int)]
    few, wide = X[:, [1]], OnColumns(RBF(0.5), [1])
    truth = GaussianProcessRegressor(RBF(0.5), alpha=0.1).fit(few, smooth)
    found = GaussianProcessRegressor(wide, alpha=0.1).fit(X, smooth)
    assert found.kernel_.kernel.length_scale == pytest.approx(truth.kernel_.length_scale, rel=1e-6)
    np.testing.assert_allclose(found.predict(X), truth.predict(few), rtol=1e-6)
    both = wide + 1.0 * OnColumns(Identity(), [0])
    known = GaussianProcessRegressor(both, alpha=0.01).fit(X, smooth + own)
    new = np.array([[1.0, 0.5, 9.0, 9.0, 9.0]])
    assert known.predict(new)[0] == pytest.approx(np.sin(1.0) + 2.0, abs=0.1)


def test_an_own_part_beside_features_needs_no_array_of_pairs_times_parameters():
    n, d = 400, 30
    X = np.column_stack([np.arange(n) % 80, rows(n, d)])
    kernel = 0.5 * OnColumns(Identity(), [0]) + OnColumns(RBF(np.ones(d)), range(1, d + 1))
    weight = symmetric(n)
    tracemalloc.start()
    gradient = theta_gradient(kernel, X, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n * d * 8 / 4
    same = np.equal.outer(X[:, 0], X[:, 0])
    assert gradient[0] == pytest.approx(0.5 * weight[same].sum(), rel=1e-10)


def test_it_is_a_scikit_learn_kernel():
    base = ConstantKernel(2.0, "fixed") * RBF([1.0, 2.0], (1e-2, 1e2))
    kernel = OnColumns(base, [3, 1])
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
    assert kernel == OnColumns(base, np.array([3, 1]))
    assert kernel != OnColumns(base, [1, 3])
    assert kernel != base
    kernel.set_params(kernel__k1__constant_value=5.0, columns=[0, 2])
    assert kernel.get_params()["kernel__k1__constant_value"] == 5.0
    assert set(kernel.get_params(deep=False)) == {"kernel", "columns"}
    assert repr(kernel) == f"OnColumns({kernel.kernel}, columns=[0, 2])"
    assert (kernel + WhiteKernel()).n_dims == 3


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ([], "columns is empty"),
        ([1, 2, 1], "1 came more than once"),
        ([0, -1], "-1 is negative"),
        ([0.0, 1.0], "sequence of integers"),
        ([True, False], "sequence of integers"),
        (np.array([True, False]), "sequence of integers"),
        ("age", "sequence of integers.*'age'"),
        (["age"], "sequence of integers"),
        (3, r"sequence of integers.*such as \[0, 2\]; got 3"),
    ],
)
def test_wrong_columns_are_named(columns, match):
    with pytest.raises(ValueError, match=match):
        OnColumns(RBF(), columns)
    with pytest.raises(ValueError, match=match):
        OnColumns(RBF(), [0]).set_params(columns=columns)(rows())


def test_columns_beyond_the_items_are_named():
    kernel = 2.0 + OnColumns(RBF(), [0, 5])
    for call in (
        lambda: kernel(rows()),
        lambda: kernel.diag(rows()),
        lambda: kernel_with_gradient(kernel, rows()),
        lambda: input_gradient(kernel, rows(), rows()),
        lambda: spectral_sample(kernel, 5, 3, np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match="sees column 5, but X has 3 columns, 0 to 2"):
            call()
    with pytest.raises(ValueError, match="leave Y out"):
        OnColumns(RBF(), [0])(rows(), rows(), eval_gradient=True)
