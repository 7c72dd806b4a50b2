"""Gradients of scikit-learn kernels, contracted without an (n, n, p) array.

A kernel over one set of rows is held as its strict upper triangle (`off`, in the order of
`scipy.spatial.distance.pdist`) and its diagonal (`diag`), either of which may be a number: half
the work of a full matrix, and the rows' equality with themselves stays exact. The gradients with
respect to the inputs are sums over leaves, each with the factor that the chain rule puts on it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp

# Up to this many features one pass a feature is as quick as BLAS, and exact.
_FEW_FEATURES = 4
# Beyond this spread, in lengthscales, expanding the squares loses more than 1e-9.
_WIDE = 3e3


class Parts(NamedTuple):
    """A kernel matrix k(X, X), and its gradient as ``contract(off_weight, diag_weight)``."""

    off: np.ndarray | float
    diag: np.ndarray | float
    contract: Callable | None  # one number a free hyperparameter; None where nothing is free


class Leaf(NamedTuple):
    """∂k(x_i, z_j)/∂x_i of an elementary kernel."""

    gradient: Callable  # of a factor, (n, m) or a number: factor times gradient, (n, m, d)
    contract: Callable  # of a weight (n, m): the weighted sum over j, (n, d)


# --- radial profiles: k = value(u), u the squared distance in lengthscales, slope = -2 dk/du -----


def _matern_value(nu, u):
    if nu == np.inf:
        return np.exp(-0.5 * u)  # GPML (4.9)
    r = np.sqrt(u)
    if nu == 0.5:
        return np.exp(-r)  # GPML (4.18), gamma = 1
    s = math.sqrt(2.0 * nu) * r
    if nu == 1.5:
        return (1.0 + s) * np.exp(-s)  # GPML (4.17)
    if nu == 2.5:
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)  # GPML (4.17)
    with np.errstate(invalid="ignore", over="ignore"):
        value = 2.0 ** (1.0 - nu) / gamma(nu) * s**nu * kv(nu, s)  # GPML (4.14)
    return np.where(np.isfinite(value), value, 1.0)  # 0 · inf at coincident rows


def _matern_slope(nu, u, value):
    if nu == np.inf:
        return value
    s = math.sqrt(2.0 * nu) * np.sqrt(u)
    if nu == 0.5:
        return np.divide(value, s, out=np.zeros_like(s), where=s > 0)  # 0 at the kink
    if nu == 1.5:
        return 3.0 * value / (1.0 + s)
    if nu == 2.5:
        return 5.0 / 3.0 * value * (1.0 + s) / (1.0 + s + s**2 / 3.0)
    scale = nu * 2.0 ** (2.0 - nu) / gamma(nu)
    at_zero = nu / (nu - 1.0) if nu > 1.0 else 0.0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # d/ds s^nu K_nu(s) = -s^nu K_{nu-1}(s), Abramowitz & Stegun (9.6.28)
        slope = scale * s ** (nu - 1.0) * kv(nu - 1.0, s)
    return np.where(np.isfinite(slope), slope, at_zero)


class _Radial(NamedTuple):
    length: np.ndarray
    value: Callable
    slope: Callable
    rough: bool  # the slope has no bound near u = 0


def _length_scale(kernel, n_features):
    length = np.squeeze(np.asarray(kernel.length_scale, dtype=np.float64))
    if length.ndim > 1 or (length.ndim == 1 and len(length) != n_features):
        raise ValueError(
            f"{type(kernel).__name__} has length_scale of shape {length.shape}, but X has "
            f"{n_features} features. Give one number, or one a feature."
        )
    return length


def _matern_radial(kernel, n_features):
    nu = getattr(kernel, "nu", np.inf)
    return _Radial(
        _length_scale(kernel, n_features),
        lambda u: _matern_value(nu, u),
        lambda u, value: _matern_slope(nu, u, value),
        nu <= 1.0,
    )


def _rational_radial(kernel, n_features):
    alpha = kernel.alpha
    return _Radial(
        _length_scale(kernel, n_features),
        lambda u: (1.0 + u / (2.0 * alpha)) ** -alpha,  # GPML (4.19)
        lambda u, value: value / (1.0 + u / (2.0 * alpha)),
        False,
    )


def _power_slope(value, exponent):
    # 0 where the derivative of a power is infinite, as at every other kink.
    with np.errstate(divide="ignore"):
        slope = exponent * np.asarray(value, dtype=np.float64) ** (exponent - 1)
    return np.where(np.isfinite(slope), slope, 0.0)


# --- gradients with respect to the hyperparameters ----------------------------------------------


def condense(matrix):
    """Strict upper triangle of a square matrix, in the order of `pdist`."""
    return squareform(matrix, force="tovector", checks=False)


def assemble(off, diag, n):
    """Symmetric (n, n) matrix from its strict upper triangle and its diagonal."""
    if np.ndim(off) == 0:
        matrix = np.full((n, n), float(off))
    elif n < 2:
        matrix = np.zeros((n, n))
    else:
        matrix = squareform(off, force="tomatrix", checks=False)
    np.fill_diagonal(matrix, diag)
    return matrix


def _constant_parts(kernel, X):
    value = float(kernel.constant_value)
    return Parts(value, value, lambda off, diag: [value * (2.0 * off.sum() + diag.sum())])


def _white_parts(kernel, X):
    value = float(kernel.noise_level)
    return Parts(0.0, value, lambda off, diag: [value * diag.sum()])


def _dot_parts(kernel, X):
    variance = float(kernel.sigma_0) ** 2
    off, diag = condense(X @ X.T) + variance, np.einsum("ij,ij->i", X, X) + variance
    return Parts(off, diag, lambda w, v: [2.0 * variance * (2.0 * w.sum() + v.sum())])


def _squares(scaled, weight, rough):
    """Σ_ij weight_ij (x_ik − x_jk)² for every feature k, from the upper triangle of weight."""
    n, d = scaled.shape
    # Expanding the squares is quicker but cancels where a rough kernel's weights are huge.
    if rough or d <= _FEW_FEATURES or n < 2 or np.ptp(scaled, axis=0).max() > _WIDE:
        columns = (np.ascontiguousarray(column)[:, None] for column in scaled.T)
        return np.array([2.0 * (weight @ pdist(column, "sqeuclidean")) for column in columns])
    full = assemble(weight, 0.0, n)
    centred = scaled - scaled.mean(axis=0)
    own = 2.0 * (full.sum(axis=1) @ centred**2)
    return own - 2.0 * np.einsum("ik,ik->k", centred, full @ centred)


def _stationary_parts(kernel, X):
    radial = _matern_radial(kernel, X.shape[1])
    scaled = X / radial.length
    u = pdist(scaled, "sqeuclidean")
    value = radial.value(u)

    def contract(off, diag):
        weight = off * radial.slope(u, value)
        if kernel.anisotropic:
            return _squares(scaled, weight, radial.rough)  # dk/d log l_k = slope · u_k
        return [2.0 * (weight @ u)]

    return Parts(value, 1.0, contract)


def _rational_parts(kernel, X):
    radial = _rational_radial(kernel, X.shape[1])
    u = pdist(X / radial.length, "sqeuclidean")
    value = radial.value(u)

    def contract(off, diag):
        weighted_slope = off * radial.slope(u, value)
        along_length = weighted_slope @ u
        gradient = []
        if not kernel.hyperparameter_alpha.fixed:
            log_base = np.log1p(u / (2.0 * kernel.alpha))
            gradient.append(along_length - 2.0 * kernel.alpha * (off @ (value * log_base)))
        if not kernel.hyperparameter_length_scale.fixed:
            gradient.append(2.0 * along_length)
        return gradient

    return Parts(value, 1.0, contract)


def _join(*contractions):
    """Contraction of two kernels one after the other; each is None where nothing is free."""
    present = [contraction for contraction in contractions if contraction is not None]
    if not present:
        return None
    return lambda off, diag: np.concatenate([each(off, diag) for each in present])


def _scale(contraction, off_factor, diag_factor):
    if contraction is None:
        return None
    return lambda off, diag: contraction(off * off_factor, diag * diag_factor)


def _sum_parts(kernel, X):
    one, two = symmetric_parts(kernel.k1, X), symmetric_parts(kernel.k2, X)
    return Parts(one.off + two.off, one.diag + two.diag, _join(one.contract, two.contract))


def _product_parts(kernel, X):
    one, two = symmetric_parts(kernel.k1, X), symmetric_parts(kernel.k2, X)
    contract = _join(
        _scale(one.contract, two.off, two.diag), _scale(two.contract, one.off, one.diag)
    )
    return Parts(one.off * two.off, one.diag * two.diag, contract)


def _power_parts(kernel, X):
    base, exponent = symmetric_parts(kernel.kernel, X), kernel.exponent
    slopes = _power_slope(base.off, exponent), _power_slope(base.diag, exponent)
    return Parts(base.off**exponent, base.diag**exponent, _scale(base.contract, *slopes))


def _other_parts(kernel, X):
    own = getattr(kernel, "_symmetric_parts", None)
    if own is not None:
        return own(X)
    K = np.asarray(kernel(X), dtype=np.float64)
    if K.shape != (len(X), len(X)):
        raise ValueError(
            f"{type(kernel).__name__} gave an array of shape {K.shape} for {len(X)} rows; a kernel "
            "must give one number a pair of rows (a CompoundKernel does not)."
        )

    def contract(off, diag):
        gradient = kernel(X, eval_gradient=True)[1]
        return np.tensordot(assemble(off, diag, len(X)), gradient, axes=2)

    return Parts(condense(K), np.diagonal(K).copy(), contract)


_PARTS = {
    gp.ConstantKernel: _constant_parts,
    gp.WhiteKernel: _white_parts,
    gp.DotProduct: _dot_parts,
    gp.RBF: _stationary_parts,
    gp.Matern: _stationary_parts,
    gp.RationalQuadratic: _rational_parts,
    gp.Sum: _sum_parts,
    gp.Product: _product_parts,
    gp.Exponentiation: _power_parts,
}


def symmetric_parts(kernel, X):
    """`Parts` of a kernel at float64 rows X (n, d); kernels not known here go through sklearn."""
    parts = _PARTS.get(type(kernel), _other_parts)(kernel, X)
    return parts if kernel.n_dims else parts._replace(contract=None)


# --- gradients with respect to the inputs --------------------------------------------------------


def difference_steps(kernel, *arrays):
    """Steps of central differences, (d,): small beside the data and the kernel's own lengths."""
    rows = np.concatenate(arrays)
    size = np.abs(rows).max(axis=0)
    spread = np.ptp(rows, axis=0)
    spread = np.where(spread > 0, spread, np.where(size > 0, size, 1.0))
    lengths = [
        np.min(value)
        for name, value in kernel.get_params().items()
        if name.endswith(("length_scale", "periodicity"))
    ]
    eps = np.finfo(float).eps
    # The floor keeps x ± step apart for data far from the origin.
    step = np.cbrt(eps) * np.minimum(spread, min(lengths, default=np.inf))
    return np.maximum(step, 64 * eps * size)


def _differences(function, kernel, X, *others):
    """Central differences of ``function(X)`` along each feature of X, on a new last axis."""
    columns = []
    for k, step in enumerate(difference_steps(kernel, X, *others)):
        above, below = X.copy(), X.copy()
        above[:, k] += step
        below[:, k] -= step
        change = function(above) - function(below)
        taken = above[:, k] - below[:, k]  # the step as rounded
        columns.append(change / taken.reshape((-1,) + (1,) * (change.ndim - 1)))
    return np.stack(columns, axis=-1)


def _radial_terms(kernel, X, Z):
    profile = _rational_radial if type(kernel) is gp.RationalQuadratic else _matern_radial
    radial = profile(kernel, X.shape[1])
    u = cdist(X / radial.length, Z / radial.length, "sqeuclidean")
    value = radial.value(u)
    square = radial.length**2

    def gradient(factor):
        slope = factor * radial.slope(u, value)
        return -slope[:, :, None] * ((X[:, None, :] - Z[None, :, :]) / square)

    def contract(weight):
        slope = weight * radial.slope(u, value)
        if radial.rough:  # slopes may be huge where the differences are tiny
            differences = (np.subtract.outer(x, z) for x, z in zip(X.T, Z.T, strict=True))
            summed = np.stack([np.einsum("ij,ij->i", slope, each) for each in differences], axis=1)
        else:
            centre = Z.mean(axis=0)
            summed = slope.sum(axis=1)[:, None] * (X - centre) - slope @ (Z - centre)
        return -summed / square

    return value, [(1.0, Leaf(gradient, contract))]


def _dot_terms(kernel, X, Z):
    def gradient(factor):
        return np.broadcast_to(factor, (len(X), len(Z)))[:, :, None] * Z

    return X @ Z.T + kernel.sigma_0**2, [(1.0, Leaf(gradient, lambda weight: weight @ Z))]


def _sum_terms(kernel, X, Z):
    one, two = cross_terms(kernel.k1, X, Z), cross_terms(kernel.k2, X, Z)
    return one[0] + two[0], one[1] + two[1]


def _product_terms(kernel, X, Z):
    (one, terms_one), (two, terms_two) = (cross_terms(k, X, Z) for k in (kernel.k1, kernel.k2))
    terms = [(factor * two, leaf) for factor, leaf in terms_one]
    return one * two, terms + [(factor * one, leaf) for factor, leaf in terms_two]


def _power_terms(kernel, X, Z):
    value, terms = cross_terms(kernel.kernel, X, Z)
    slope = _power_slope(value, kernel.exponent)
    return value**kernel.exponent, [(factor * slope, leaf) for factor, leaf in terms]


def _other_terms(kernel, X, Z):
    own = getattr(kernel, "_cross_terms", None)
    if own is not None:
        return own(X, Z)
    gradient = _differences(lambda rows: kernel(rows, Z), kernel, X, Z)
    leaf = Leaf(
        lambda factor: np.asarray(factor)[..., None] * gradient,
        lambda weight: np.einsum("ij,ijk->ik", weight, gradient),
    )
    return kernel(X, Z), [(1.0, leaf)]


_TERMS = {
    gp.ConstantKernel: lambda kernel, X, Z: (float(kernel.constant_value), []),
    gp.WhiteKernel: lambda kernel, X, Z: (0.0, []),
    gp.DotProduct: _dot_terms,
    gp.RBF: _radial_terms,
    gp.Matern: _radial_terms,
    gp.RationalQuadratic: _radial_terms,
    gp.Sum: _sum_terms,
    gp.Product: _product_terms,
    gp.Exponentiation: _power_terms,
}


def cross_terms(kernel, X, Z):
    """k(X, Z) and its gradient in X as a list of (factor, `Leaf`)."""
    return _TERMS.get(type(kernel), _other_terms)(kernel, X, Z)


def diagonal_gradient(kernel, X):
    """∂k(x, x)/∂x, (n, d)."""
    if kernel.is_stationary():
        return np.zeros_like(X)
    kind = type(kernel)
    if kind is gp.DotProduct:
        return 2.0 * X
    if kind is gp.Exponentiation:
        slope = _power_slope(kernel.kernel.diag(X), kernel.exponent)
        return slope[:, None] * diagonal_gradient(kernel.kernel, X)
    if kind not in (gp.Sum, gp.Product):
        return _differences(kernel.diag, kernel, X)
    one, two = diagonal_gradient(kernel.k1, X), diagonal_gradient(kernel.k2, X)
    if kind is gp.Sum:
        return one + two
    return one * kernel.k2.diag(X)[:, None] + two * kernel.k1.diag(X)[:, None]
