"""Kernels of finitely many features: which they are, and that features make up the kernel."""

import numpy as np
import pytest
from finite_support import N_COLUMNS, random_items, random_kernel
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from skpref.kernels import (
    Identity,
    ItemEffect,
    Linear,
    OnColumns,
    PreferenceKernel,
    ProductMatern,
    finite_features,
    finite_parts,
)


def summed(kernel, X, Z):
    """The kernel by its features, and its gradient in theta: shapes (n, m) and (n, m, n_theta)."""
    finite = finite_features(kernel, X.shape[1])
    each, begin = [], 0
    for term in finite.terms:
        columns = list(term.group)
        same = np.all(X[:, None, columns] == Z[None, :, columns], axis=2)
        for x, z in zip(term.values(X).T, term.values(Z).T, strict=True):
            each.append(same * np.outer(x, z))
        begin += len(term.monomials)
    assert len(each) == begin == len(finite.variance)
    each = np.stack(each, axis=2)
    return each @ finite.variance, each @ finite.slope


@pytest.mark.parametrize("seed", range(12))
def test_features_make_up_the_kernel_and_its_gradient(seed):
    rng = np.random.default_rng(seed)
    kernel, X = random_kernel(rng), random_items(rng, 8)
    truth, slopes = kernel(X, eval_gradient=True)
    value, gradient = summed(kernel, X, X)
    assert_allclose(value, truth, rtol=1e-12, atol=1e-12 * np.max(np.diagonal(truth)))
    assert_allclose(gradient, slopes, rtol=1e-11, atol=1e-11 * max(np.max(slopes, initial=1), 1))
    Z = random_items(rng, 5)
    assert_allclose(summed(kernel, X, Z)[0], kernel(X, Z), rtol=1e-11, atol=1e-11 * truth.max())


@pytest.mark.parametrize("length", [1.7, np.array([0.5, 2.0])])
@pytest.mark.parametrize("bounds", ["fixed", (1e-3, 1e3)])
def test_features_of_the_linear_kernel(length, bounds):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 3))
    inner = OnColumns(Linear(length, bounds, [0.0, 3.0]), [2, 0])
    kernel = 0.3 * inner + OnColumns(Identity(), [1]) * inner
    truth, slopes = kernel(X, eval_gradient=True)
    value, gradient = summed(kernel, X, X)
    assert_allclose(value, truth, rtol=1e-12, atol=1e-12)
    assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-12)


class OwnIdentity(Identity):
    """A user's."""


class OwnDot(DotProduct):
    """Which may have been given another __call__."""


class OwnLinear(Linear):
    """Likewise."""


class OwnColumns(OnColumns):
    """Likewise."""


class OwnSum(Sum):
    """Likewise."""


LINEAR = DotProduct(0.5)
ALIKE = [
    RBF(1e-12),
    ItemEffect(1e-12),
    WhiteKernel(1.0),
    Matern(1e-12, nu=0.5),
    ProductMatern(1e-12),
    RationalQuadratic(1e8, 1e8),
    ExpSineSquared(1e8),
    PairwiseKernel(metric="linear"),
    OwnIdentity(),
    OwnDot(0.5),
    OwnLinear(),
    OwnColumns(LINEAR, [0]),
    OwnSum(LINEAR, Identity()),
    PreferenceKernel(LINEAR),
    Exponentiation(LINEAR, 1.5),
    Exponentiation(LINEAR, 0),
    Exponentiation(LINEAR, 17),
    Exponentiation(LINEAR, -1),
    ConstantKernel(-1.0, "fixed"),
]


@pytest.mark.parametrize("kernel", ALIKE, ids=lambda kernel: type(kernel).__name__)
def test_kernels_that_only_look_alike_are_not_taken(kernel):
    for made in (
        kernel,
        kernel + LINEAR,
        LINEAR * kernel,
        Product(ConstantKernel(2.0), kernel),
        Exponentiation(kernel, 2),
        OnColumns(kernel + Identity(), [2, 0]),
    ):
        assert finite_features(made, 3 if not isinstance(kernel, PreferenceKernel) else 4) is None


def test_equal_features_are_one():
    d = N_COLUMNS
    for power in (2, 3):
        (term,) = finite_features(LINEAR**power, d).terms
        every = np.prod([d + k for k in range(1, power + 1)]) / np.prod(range(1, power + 1))
        assert len(term.monomials) == every
    both = OnColumns(Identity(), [0]) * OnColumns(Identity(), [2, 0]) + OnColumns(
        Identity(), [0, 2]
    )
    found = finite_features(both, d)
    assert [term.group for term in found.terms] == [(0, 2)]
    assert found.variance.tolist() == [2.0]


def test_too_many_features_are_not_listed():
    assert finite_features(LINEAR**3, 20) is not None
    assert finite_features(LINEAR**4, 40) is None
    assert finite_features(LINEAR, 50_000) is None
    assert len(finite_features(LINEAR, 4096).variance) == 4097


def test_hyperparameters_move_variances_alone():
    kernel = ConstantKernel(2.0) * Identity() + LINEAR**2
    other = kernel.clone_with_theta(kernel.theta + 0.5)
    one, two = (finite_features(each, 3) for each in (kernel, other))
    assert one.terms == two.terms
    assert not np.allclose(one.variance, two.variance)


def test_parts_make_up_the_kernel():
    rng = np.random.default_rng(0)
    X = random_items(rng, 9)
    smooth, rough = OnColumns(RBF(0.7), [2]), 0.3 * Matern(1.1, nu=0.5)
    few = 0.5 * OnColumns(Identity(), [0]) + OnColumns(DotProduct(0.2), [3])
    for kernel in (
        smooth + few,
        (few + 2.0) * (smooth + rough + OnColumns(Identity(), [1])),
        OnColumns(few + smooth, [1, 3, 0, 2]) * OnColumns(DotProduct(), [1]),
        (few + rough) ** 2 + few**2,
        OnColumns(Identity(), [0]) ** 1.5 + few,
    ):
        own, rest = finite_parts(kernel, N_COLUMNS)
        assert finite_features(own, N_COLUMNS) is not None
        assert finite_parts(rest, N_COLUMNS)[0] is None
        assert_allclose(own(X) + rest(X), kernel(X), rtol=1e-12)
    assert finite_parts(few, N_COLUMNS)[1] is None
    assert finite_parts(PreferenceKernel(LINEAR), N_COLUMNS)[0] is None
