"""Kernels: truths from finite differences, scikit-learn, Monte Carlo and invariances."""

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from skpref.kernels import (
    Identity,
    PreferenceKernel,
    contracted_input_gradient,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
    lengthscale_indices,
    spectral_sample,
    theta_gradient,
)

D = 3
ARD = [0.7, 1.3, 2.1]
SMOOTH_LEAVES = [
    ConstantKernel(1.7),
    RBF(0.8),
    RBF(ARD),
    Matern(0.9, nu=0.5),
    Matern(ARD, nu=0.5),
    Matern(0.9, nu=1.5),
    Matern(ARD, nu=1.5),
    Matern(0.9, nu=2.5),
    Matern(ARD, nu=2.5),
    Matern(0.9, nu=np.inf),
    Matern(ARD, nu=np.inf),
    RationalQuadratic(0.8, 1.9),
    DotProduct(0.6),
]
BESSEL_LEAVES = [Matern(ARD, nu=nu) for nu in (0.3, 0.8, 1.0, 1.2, 3.3)]
FIXED = [
    ConstantKernel(1.7, "fixed"),
    WhiteKernel(0.3, "fixed"),
    RBF(ARD, "fixed"),
    Matern(0.9, "fixed", nu=2.5),
    DotProduct(0.6, "fixed"),
    RationalQuadratic(0.8, 1.9, alpha_bounds="fixed"),
    RationalQuadratic(0.8, 1.9, length_scale_bounds="fixed"),
    RationalQuadratic(0.8, 1.9, "fixed", "fixed"),
]
OTHERS = [ExpSineSquared(0.9, 1.6), PairwiseKernel(0.4, metric="rbf"), Identity()]


def nested(seed):
    """A random sum, product or power of random kernels."""
    rng = np.random.default_rng(seed)
    leaves = [*SMOOTH_LEAVES, *FIXED, *OTHERS, WhiteKernel(0.4)]

    def build(depth):
        if depth == 0:
            return leaves[rng.integers(len(leaves))]
        kind = rng.integers(3)
        if kind == 0:
            return build(depth - 1) + build(depth - 1)
        if kind == 1:
            return build(depth - 1) * build(depth - 1)
        return build(depth - 1) ** int(rng.integers(1, 4))

    return clone(build(3))


NESTED = [nested(seed) for seed in range(12)]
ALL = [*SMOOTH_LEAVES, *BESSEL_LEAVES, WhiteKernel(0.4), *FIXED, *OTHERS, *NESTED]


def rows(n=9, d=D, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def symmetric(n, seed=1):
    weight = np.random.default_rng(seed).normal(size=(n, n))
    return weight + weight.T


def slope(function, x, step=1e-3):
    """Derivative of ``function`` by central differences of the fourth order."""
    near = function(x + step) - function(x - step)
    far = function(x + 2 * step) - function(x - 2 * step)
    return (8 * near - far) / (12 * step)


def difference_theta(kernel, X, weight):
    theta = kernel.theta

    def along(k):
        def value(shift):
            moved = theta.copy()
            moved[k] += shift
            return np.sum(weight * kernel.clone_with_theta(moved)(X))

        return slope(value, 0.0)

    return np.array([along(k) for k in range(len(theta))])


def difference_input(function, X):
    """∂ of ``function(X)`` along each feature, on a new last axis."""

    def along(k):
        direction = np.eye(X.shape[1])[k]
        return slope(lambda shift: function(X + shift * direction), 0.0)

    return np.stack([along(k) for k in range(X.shape[1])], axis=-1)


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
    [DotProduct(), RBF() + WhiteKernel(), Identity(), RBF() * DotProduct(), ExpSineSquared()],
    ids=str,
)
def test_spectral_sample_of_other_kernels_is_none(kernel):
    assert spectral_sample(kernel, 10, D, np.random.default_rng(0)) is None


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
