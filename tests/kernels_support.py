"""Kernels and differences that the tests of kernels share."""

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from skpref.kernels import (
    Identity,
    ItemEffect,
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
ALL = [*SMOOTH_LEAVES, *BESSEL_LEAVES, WhiteKernel(0.4), *FIXED, *OTHERS, *NESTED, ItemEffect(ARD)]


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
