"""Hyperparameters of trees of kernels: where the lengthscales are, and whether all make sense."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Hyperparameter, WhiteKernel

from skpref.kernels._contracts import Array, Kernel, own_length
from skpref.kernels._identity import Identity
from skpref.kernels._leaves import LEAVES
from skpref.kernels._tree import fold
from skpref.kernels._views import SEEN

# Hyperparameters that are lengths or shapes, for which 0 makes no kernel even where it is fixed.
_VARIANCES = ("constant_value", "noise_level")
_POSITIVE = ("length_scale", "periodicity", "alpha")


def lengthscale_indices(kernel: Kernel) -> list[tuple[int, int | None]]:
    """Where the free lengthscales are in ``kernel.theta``.

    Returns
    -------
    list of (int, int or None)
        Index into theta, and the feature it belongs to: None where one lengthscale serves all
        that its kernel sees. Features count among the columns of an item, also within
        `OnColumns`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> lengthscale_indices(ConstantKernel() * RBF([1.0, 2.0]) + RBF())
    [(1, 0), (2, 1), (3, None)]
    >>> from skpref.kernels import OnColumns
    >>> lengthscale_indices(OnColumns(RBF([1.0, 2.0]), [3, 5]))
    [(0, 3), (1, 5)]
    """
    found: list[tuple[int, int | None]] = []
    index = 0
    for leaf, columns in fold(kernel, SEEN):
        for hyperparameter in leaf.hyperparameters:
            if hyperparameter.fixed:
                continue
            n = hyperparameter.n_elements
            if hyperparameter.name.endswith("length_scale"):
                features = tuple(range(n)) if columns is None else columns
                common = columns[0] if columns is not None and len(columns) == 1 else None
                found += [(index + k, features[k] if n > 1 else common) for k in range(n)]
            index += n
    return found


def amplitude_powers(kernel: Kernel) -> list[int]:
    """Powers of the utility's unit in the elements of ``kernel.theta``: 2 of variances, else 0.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> amplitude_powers(ConstantKernel() * RBF([1.0, 2.0]))
    [2, 0, 0]
    """
    found: list[int] = []
    for leaf, _ in fold(kernel, SEEN):
        for hyperparameter in leaf.hyperparameters:
            if not hyperparameter.fixed:
                power = 2 if hyperparameter.name.endswith(_VARIANCES) else 0
                found += [power] * hyperparameter.n_elements
    return found


def shortest_lengths(kernel: Kernel, n_features: int) -> Array:
    """The shortest length of a kernel along every feature, (n_features,); ∞ without any."""
    shortest = np.full(n_features, np.inf)
    for leaf, columns in fold(kernel, SEEN):
        seen = slice(None) if columns is None else list(columns)
        shortest[seen] = np.minimum(shortest[seen], own_length(leaf))
    return shortest


def check_hyperparameters(kernel: Kernel) -> None:
    """Whether hyperparameters are numbers that a kernel, and a search in logarithms, can have.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Raises
    ------
    ValueError
        If one is NaN or infinite, if a free one is not positive or has bounds that are not, or a
        length or shape is not positive, free or fixed.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> check_hyperparameters(RBF(2.0) + DotProduct(0.0, "fixed"))
    >>> check_hyperparameters(RBF(2.0) + DotProduct(0.0))
    Traceback (most recent call last):
    ...
    ValueError: DotProduct has sigma_0 = 0.0, which is free and must be positive: ...
    """
    for leaf, _ in fold(kernel, SEEN):
        params = leaf.get_params()
        for hyperparameter in leaf.hyperparameters:
            name = hyperparameter.name
            if name not in params:
                continue
            came = f"{type(leaf).__name__} has {name} = {params[name]}"
            value = np.asarray(params[name], dtype=np.float64)
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{came}, which must be finite.")
            if not hyperparameter.fixed and not np.all(value > 0.0):
                raise ValueError(
                    f"{came}, which is free and must be positive: it is learned by its logarithm. "
                    f'Start from a positive number, or hold it by {name}_bounds="fixed" where '
                    "the kernel allows it."
                )
            if name.endswith(_POSITIVE) and not np.all(value > 0.0):
                raise ValueError(f"{came}, which must be positive.")
            if not hyperparameter.fixed:
                _check_bounds(leaf, hyperparameter)


def _check_bounds(leaf: Kernel, hyperparameter: Hyperparameter) -> None:
    low, high = np.reshape(hyperparameter.bounds, (-1, 2)).T
    if not np.all((low > 0.0) & (low <= high)):
        raise ValueError(
            f"{type(leaf).__name__} has {hyperparameter.name}_bounds = "
            f"{np.asarray(hyperparameter.bounds).tolist()}; they must be 'fixed' or pairs "
            "0 < low <= high, as the search is in logarithms."
        )


def measures(kernel: Kernel, column: int) -> bool:
    """Whether a kernel takes the values of a column of the items for numbers, not for names."""
    names = (Identity, ConstantKernel, WhiteKernel)
    return any(
        not isinstance(leaf, names) and (columns is None or column in columns)
        for leaf, columns in fold(kernel, SEEN)
    )


def surely_covariance(kernel: Kernel) -> bool:
    """Whether all parts of a kernel are known to be covariance functions in any dimension."""
    return all(type(leaf) in LEAVES for leaf, _ in fold(kernel, SEEN))


def seen_columns(kernel: Kernel, n_features: int) -> tuple[list[int], list[int]]:
    """Columns of which a kernel sees the names (`Identity`), and those whose values it measures."""
    named: set[int] = set()
    measured: set[int] = set()
    for leaf, columns in fold(kernel, SEEN):
        if not isinstance(leaf, (ConstantKernel, WhiteKernel)):
            every = range(n_features) if columns is None else columns
            (named if isinstance(leaf, Identity) else measured).update(every)
    return sorted(named), sorted(measured)
