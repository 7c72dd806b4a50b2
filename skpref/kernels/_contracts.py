"""What is asked of a kernel: the answers that a leaf gives and that a tree of kernels combines.

A kernel over one set of rows is held as its strict upper triangle (`off`, in the order of
`scipy.spatial.distance.pdist`) and its diagonal (`diag`), either of which may be a number: half
the work of a full matrix, and the rows' equality with themselves stays exact.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.spatial.distance import squareform

from skpref._utils import ROUNDING, Array

Number: TypeAlias = Array | float
# A kernel of scikit-learn, which ships no types.
Kernel: TypeAlias = Any
# Of weights: one array (n, m) or (n,) across two sets; (off, diag) over one.
Contraction: TypeAlias = Callable[..., Any]


class Pairs(NamedTuple):
    """A kernel matrix k(X, X), and its gradient in theta as ``contract(off, diag)`` of weights."""

    off: Number
    diag: Number
    contract: Contraction | None  # one number a free hyperparameter; None where nothing is free


class Across(NamedTuple):
    """A kernel across two sets, and its gradient in theta as ``contract(weight)``.

    The rows meet all (k(x_i, z_j), a matrix) or one by one (k(a_i, b_i), a vector).
    """

    value: Number
    contract: Contraction | None  # None where nothing is free


class Slope(NamedTuple):
    """∂k(x_i, z_j)/∂x_i of an elementary kernel, as two linear maps."""

    gradient: Callable[[Number], Array]  # of a factor (n, m): factor times gradient, (n, m, d)
    contract: Callable[[Array], Array]  # of a weight (n, m): the weighted sum over j, (n, d)


class Cross(NamedTuple):
    """k(X, Z), and its gradient in X: a sum of slopes, each times the chain rule's factor."""

    value: Number
    slopes: list[tuple[Number, Slope]]


class Diagonal(NamedTuple):
    """k(x, x), and its gradient in x: (n, d), or None where it is zero everywhere."""

    value: Array
    gradient: Array | None


class Spectrum(NamedTuple):
    """The normalised spectral density by its draws ``draw(n, rng)``, (n, d), and k(x, x)."""

    draw: Callable[[int, np.random.Generator], Array]
    variance: float


class Seen(NamedTuple):
    """An elementary kernel of a tree, and the columns of an item that it sees (None: all)."""

    kernel: Kernel
    columns: tuple[int, ...] | None


# Pairs of rows whose covariances are taken together.
PAIRED_ROWS = 64
# Columns farther from zero than so many of their spans lose digits of the rows' differences.
_FAR_SPANS = 100.0


def far_origin(*rows: Array) -> Array | None:
    """A row to subtract of arrays of rows that lie far from zero; None where no column does.

    The subtraction is exact in these columns, and all others keep their zero.
    """
    if not len(rows[-1]):
        return None
    first = rows[-1][0]
    span = np.max([np.abs(each - first).max(axis=0, initial=0.0) for each in rows], axis=0)
    far = (np.abs(first) > _FAR_SPANS * span) & (span > 0.0)
    return np.where(far, first, 0.0) if far.any() else None


def near_zero(kernel: Kernel, *rows: Array) -> tuple[Array, ...]:
    """Arrays of rows for a kernel: of a stationary one moved towards zero where they lie far off.

    Its value depends on differences of rows alone, of which division by lengthscales would lose
    digits.
    """
    origin = far_origin(*rows) if kernel.is_stationary() else None
    return rows if origin is None else tuple(each - origin for each in rows)


def strict_upper_triangle(matrix: Array) -> Array:
    """Strict upper triangle of a square matrix, in the order of `pdist`."""
    return squareform(matrix, force="tovector", checks=False)


def assemble(off: Number, diag: Number, n: int) -> Array:
    """Symmetric (n, n) matrix from its strict upper triangle and its diagonal."""
    if isinstance(off, float) or np.ndim(off) == 0:
        matrix = np.full((n, n), float(off))
    elif n < 2:
        matrix = np.zeros((n, n))
    else:
        matrix = squareform(off, force="tomatrix", checks=False)
    np.fill_diagonal(matrix, diag)
    return matrix


def power_slope(value: Number, exponent: float) -> Array:
    """Derivative of a power; 0 where it is infinite, as at every other kink."""
    with np.errstate(divide="ignore"):
        slope = exponent * np.asarray(value, dtype=np.float64) ** (exponent - 1)
    return np.where(np.isfinite(slope), slope, 0.0)


def difference_steps(lengths: Array, *arrays: Array, noise: float = ROUNDING) -> Array:
    """Return steps of central differences, (d,), small beside the data and a kernel's lengths.

    Parameters
    ----------
    lengths : ndarray of shape (d,)
        Of the kernel along each feature.
    *arrays : ndarray of shape (n, d)
        Rows of the data.
    noise : float, default=ROUNDING
        Relative error of the values: the step's share is its cube root.
    """
    rows = np.concatenate(arrays)
    size = np.abs(rows).max(axis=0)
    spread = np.ptp(rows, axis=0)
    spread = np.where(spread > 0, spread, np.where(size > 0, size, 1.0))
    # The floor keeps x ± step apart for data far from the origin.
    return np.maximum(np.cbrt(noise) * np.minimum(spread, lengths), 64 * ROUNDING * size)


def differences(function: Callable[[Array], Array], X: Array, steps: Array) -> Array:
    """Central differences of ``function(X)`` along each feature of X, on a new last axis."""
    columns = []
    for k, step in enumerate(steps):
        above, below = X.copy(), X.copy()
        above[:, k] += step
        below[:, k] -= step
        change = function(above) - function(below)
        taken = above[:, k] - below[:, k]  # the step as rounded
        columns.append(change / taken.reshape((-1,) + (1,) * (change.ndim - 1)))
    return np.stack(columns, axis=-1)


def paired_kernel_values(kernel: Kernel, A: Array, B: Array) -> Array:
    """k(a_i, b_i) for every row, without the (n, n) matrix."""
    if kernel.is_stationary():  # exact far from zero
        return kernel(A - B, np.zeros((1, A.shape[1])))[:, 0]
    blocks = range(0, len(A), PAIRED_ROWS)
    diagonals = [
        np.diagonal(kernel(A[i : i + PAIRED_ROWS], B[i : i + PAIRED_ROWS])) for i in blocks
    ]
    return np.concatenate(diagonals) if diagonals else np.zeros(0)


def own_length(kernel: Kernel) -> float:
    """The shortest length among a kernel's parameters."""
    lengths = [
        np.min(value)
        for name, value in kernel.get_params().items()
        if name.endswith(("length_scale", "periodicity"))
    ]
    return float(min(lengths, default=np.inf))
