"""Covariances across two sets of items, and their gradient in theta: what inducing points need.

The rows of two sets meet all (k(x_i, z_j), a matrix) or one by one (k(a_i, b_i), a vector). No
array of a third axis over theta is built where an elementary kernel has a rule of its own.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel, Number, power_slope
from skpref.kernels._gradients import _extremes, _finite, paired
from skpref.kernels._leaves import (
    Identity,
    ItemEffect,
    ProductMatern,
    distances,
    product_value,
    radial,
)
from skpref.kernels._wrappers import View, check_rows, fold

# Of a logarithm of a hyperparameter, for kernels without a rule: the cube root of rounding.
_STEP = 6e-6

Contraction: TypeAlias = Callable[[Array], ArrayLike]


class Across(NamedTuple):
    """A kernel across two sets, and its gradient in theta as ``contract(weight)``."""

    value: Number
    contract: Contraction | None  # None where nothing is free


def across(
    kernel: Kernel, X: ArrayLike, Z: ArrayLike, *, aligned: bool = False
) -> tuple[Array, Callable[[Array], Array]]:
    """k(X, Z), or k(x_i, z_i) row by row, and its gradient in theta as a linear map of weights.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array-like of shape (n, d)
    Z : array-like of shape (m, d)
    aligned : bool, default=False
        Whether the rows meet one by one; then n = m.

    Returns
    -------
    value : ndarray of shape (n, m), or (n,) if ``aligned``
    contract : callable
        ``contract(weight)`` → ndarray (n_theta,): Σ weight ∂value/∂theta, for weights of that
        shape.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> value, contract = across(RBF(2.0), [[0.0]], [[2.0], [0.0]])
    >>> value.round(4), contract(np.ones((1, 2))).round(4)
    (array([[0.6065, 1.    ]]), array([0.6065]))
    """
    rows, others = check_rows(X), check_rows(Z, "Z")
    shape = (len(rows),) if aligned else (len(rows), len(others))
    with _extremes():
        found = fold(kernel, _PAIRED if aligned else _ALL, rows, others)

    def contract(weight: Array) -> Array:
        if found.contract is None:
            return np.zeros(0)
        with _extremes():
            return _finite(np.asarray(found.contract(weight), dtype=np.float64))

    return np.broadcast_to(found.value, shape), contract


class _AcrossView(View[Across]):
    def __init__(self, aligned: bool) -> None:
        self._aligned = aligned

    def leaf(self, kernel: Kernel, *rows: Array) -> Across:
        X, Z = rows
        rule = _RULES.get(type(kernel), _by_differences)
        value, contract = rule(kernel, X, Z, self._aligned)
        return Across(value, contract if kernel.n_dims else None)

    def sum(self, one: Across, two: Across) -> Across:
        return Across(one.value + two.value, _join(one.contract, two.contract))

    def product(self, one: Across, two: Across) -> Across:
        contract = _join(_scale(one.contract, two.value), _scale(two.contract, one.value))
        return Across(one.value * two.value, contract)

    def power(self, base: Across, exponent: float) -> Across:
        return Across(
            base.value**exponent, _scale(base.contract, power_slope(base.value, exponent))
        )

    def on_columns(self, inner: Across, columns: tuple[int, ...], *rows: Array) -> Across:
        return inner

    def of_duels(self, inner: Across, kernel: Kernel, *rows: Array) -> Across:
        X, Z = rows
        value, contract = _by_differences(kernel, X, Z, self._aligned)
        return Across(value, contract if kernel.n_dims else None)


def _join(*contractions: Contraction | None) -> Contraction | None:
    present = [each for each in contractions if each is not None]
    if not present:
        return None
    return lambda weight: np.concatenate([each(weight) for each in present])


def _scale(contraction: Contraction | None, factor: Number) -> Contraction | None:
    return None if contraction is None else lambda weight: contraction(weight * factor)


# --- elementary kernels -------------------------------------------------------------------------


def _by_differences(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    """Any kernel: its gradient by central differences of theta."""

    def value(of: Kernel) -> Array:
        return paired(of, X, Z) if aligned else np.asarray(of(X, Z), dtype=np.float64)

    def contract(weight: Array) -> Array:
        slopes = []
        for step in _STEP * np.eye(len(kernel.theta)):
            above, below = (kernel.clone_with_theta(kernel.theta + s * step) for s in (1.0, -1.0))
            slopes.append(np.vdot(weight, value(above) - value(below)) / (2.0 * _STEP))
        return np.array(slopes)

    return Across(value(kernel), contract)


def _constant(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    value = float(kernel.constant_value)
    return Across(value, lambda weight: [value * weight.sum()])


def _white(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    return Across(0.0, lambda weight: [0.0])


def _identity(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    value = np.all(X == Z, axis=1).astype(np.float64) if aligned else kernel(X, Z)
    return Across(value, None)


def _dot(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    variance = float(kernel.sigma_0) * float(kernel.sigma_0)
    value = np.einsum("ij,ij->i", X, Z) if aligned else X @ Z.T
    return Across(value + variance, lambda weight: [2.0 * variance * weight.sum()])


def _radial(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    profile = radial(kernel, X, Z)
    x, z = X / profile.length, Z / profile.length
    u = np.einsum("ij,ij->i", x - z, x - z) if aligned else cdist(x, z, "sqeuclidean")
    value = profile.value(u)

    def contract(weight: Array) -> ArrayLike:
        slope = weight * profile.slope(u, value)
        if not kernel.anisotropic:
            return [np.vdot(slope, u)]
        return slope @ (x - z) ** 2 if aligned else _squares(x, z, slope, profile.rough)

    return Across(value, contract)


def _product_matern(kernel: Kernel, X: Array, Z: Array, aligned: bool) -> Across:
    value = product_value(kernel, X, Z, aligned)

    def contract(weight: Array) -> ArrayLike:
        weighted = weight * value
        each = [np.vdot(weighted, s**2 / (1.0 + s)) for s in distances(kernel, X, Z, aligned)]
        return each if kernel.anisotropic else [np.sum(each)]

    return Across(value, contract)


def _squares(x: Array, z: Array, weight: Array, rough: bool) -> Array:
    """Σ_ij weight_ij (x_ik − z_jk)² for every feature k."""
    if rough:  # expanding the squares would cancel where weights are huge
        apart = (np.subtract.outer(one, two) for one, two in zip(x.T, z.T, strict=True))
        return np.array([np.vdot(weight, each**2) for each in apart])
    centre = z.mean(axis=0)
    x, z = x - centre, z - centre
    own = weight.sum(axis=1) @ x**2 + weight.sum(axis=0) @ z**2
    return own - 2.0 * np.einsum("ik,ik->k", x, weight @ z)


_RULES: dict[type, Callable[[Kernel, Array, Array, bool], Across]] = {
    gp.ConstantKernel: _constant,
    gp.WhiteKernel: _white,
    gp.DotProduct: _dot,
    gp.RBF: _radial,
    gp.Matern: _radial,
    Identity: _identity,
    ItemEffect: _radial,
    ProductMatern: _product_matern,
}
_ALL, _PAIRED = _AcrossView(False), _AcrossView(True)
