"""Hyperparameters of trees of kernels: where the lengthscales are, and whether all make sense."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    Hyperparameter,
    WhiteKernel,
)

from skpref.kernels._contracts import Array, Kernel, own_length
from skpref.kernels._leaves import LEAVES, Identity, ItemEffect, Wiener
from skpref.kernels._views import SEEN
from skpref.kernels._wrappers import Intransitive, Teams, View, check_rows, fold

# Hyperparameters that are lengths or shapes, for which 0 makes no kernel even where it is fixed.
_VARIANCES = ("constant_value", "noise_level", "rate")
_POSITIVE = ("length_scale", "periodicity", "alpha")


def lengthscale_indices(kernel: Kernel) -> list[tuple[int, int | None]]:
    """List the places of the free lengthscales in ``kernel.theta``, and their features.

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
    indices: list[tuple[int, int | None]] = []
    index = 0
    for leaf, columns in fold(kernel, SEEN):
        for hyperparameter in leaf.hyperparameters:
            if hyperparameter.fixed:
                continue
            n = hyperparameter.n_elements
            if hyperparameter.name.endswith("length_scale"):
                features = tuple(range(n)) if columns is None else columns
                common = columns[0] if columns is not None and len(columns) == 1 else None
                indices += [(index + k, features[k] if n > 1 else common) for k in range(n)]
            index += n
    return indices


def amplitude_powers(kernel: Kernel) -> list[int]:
    """List the powers of the utility's unit in ``kernel.theta``: 2 of variances, else 0.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> amplitude_powers(ConstantKernel() * RBF([1.0, 2.0]))
    [2, 0, 0]
    """
    powers: list[int] = []
    for leaf, _ in fold(kernel, SEEN):
        for hyperparameter in leaf.hyperparameters:
            if not hyperparameter.fixed:
                power = 2 if hyperparameter.name.endswith(_VARIANCES) else 0
                powers += [power] * hyperparameter.n_elements
    return powers


def has_amplitude(kernel: Kernel) -> bool:
    """Say whether some part of a kernel sets a variance: a `ConstantKernel` or a `Wiener`."""
    return any(isinstance(leaf, ConstantKernel | Wiener) for leaf, _ in fold(kernel, SEEN))


def time_powers(kernel: Kernel, column: int) -> list[int]:
    """List the powers of the unit of a column of times in the elements of ``kernel.theta``.

    1 of lengthscales, -1 of the rate of a `Wiener`; 0 of all else, also of the lengthscale of a
    periodic kernel, which counts in periods, and of periods, which are known.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> from skpref.kernels import OnColumns, Wiener
    >>> kernel = RBF([1.0, 2.0]) + ConstantKernel() * OnColumns(RBF() + Wiener(), [1])
    >>> time_powers(kernel, 1)
    [0, 1, 0, 1, -1]
    """
    lengths = {index for index, feature in lengthscale_indices(kernel) if feature == column}
    powers: list[int] = []
    for leaf, columns in fold(kernel, SEEN):
        for hyperparameter in leaf.hyperparameters:
            if hyperparameter.fixed:
                continue
            if isinstance(leaf, Wiener):
                powers.append(-1 if columns in (None, (column,)) else 0)
                continue
            periodic = hasattr(leaf, "periodicity")
            first = len(powers)
            powers += [
                int(first + k in lengths and not periodic) for k in range(hyperparameter.n_elements)
            ]
    return powers


class _Called(NamedTuple):
    """Hold a free hyperparameter: what it is of, its name, and the column that it belongs to."""

    owner: str
    name: str
    column: int | None = None


class _Owned(NamedTuple):
    """Hold what a part of a kernel is, "" of constants, and its free hyperparameters."""

    what: str
    free: list[_Called]


class _NamesView(View[_Owned]):
    def leaf(self, kernel: Kernel, *rows: Array) -> _Owned:
        what = type(kernel).__name__
        if isinstance(kernel, ItemEffect | Identity):
            what = "item effects"
        free: list[_Called] = []
        for each in kernel.hyperparameters:
            if not each.fixed:
                several = each.n_elements > 1
                free += [
                    _Called(what, each.name, k if several else None) for k in range(each.n_elements)
                ]
        return _Owned("" if isinstance(kernel, ConstantKernel) else what, free)

    def sum(self, one: _Owned, two: _Owned) -> _Owned:
        what = " + ".join(each for each in (one.what, two.what) if each)
        return _Owned(f"({what})" if one.what and two.what else what, one.free + two.free)

    def product(self, one: _Owned, two: _Owned) -> _Owned:
        if bool(one.what) != bool(two.what):  # a constant is the variance of what it multiplies
            what = one.what or two.what
            free = [
                each._replace(owner=what, name="variance")
                if each.name == "constant_value" and not part.what
                else each
                for part in (one, two)
                for each in part.free
            ]
            return _Owned(what, free)
        what = f"{one.what} * {two.what}" if one.what else ""
        return _Owned(what, one.free + two.free)

    def power(self, base: _Owned, exponent: float) -> _Owned:
        return base

    def on_columns(self, inner: _Owned, columns: tuple[int, ...], *rows: Array) -> _Owned:
        what = inner.what
        if what == "item effects":
            what = f"effects of column{'s' * (len(columns) > 1)} {', '.join(map(str, columns))}"
        free = [
            each if each.column is None else each._replace(column=columns[each.column])
            for each in inner.free
        ]
        return _Owned(what, free)

    def of_duels(self, inner: _Owned, kernel: Kernel, *rows: Array) -> _Owned:
        return inner

    def of_teams(self, kernel: Teams, *rows: Array) -> _Owned:
        return fold(kernel.kernel, self)

    def intransitive(self, kernel: Intransitive, *rows: Array) -> _Owned:
        inner = fold(kernel.kernel, self)
        what = f"intransitive {inner.what}"
        is_free = kernel.variance_bounds != "fixed"
        own = [_Called(what, "variance")] * is_free
        return _Owned(what, own + [each._replace(owner=what) for each in inner.free])


_NAMES = _NamesView()


def hyperparameter_names(kernel: Kernel) -> list[str]:
    """List names that people may call the elements of ``kernel.theta``.

    The kind of the kernel is named where several have a hyperparameter of that name; a constant
    that multiplies a kernel is its variance. Columns of an item count from 0, as in
    `lengthscale_indices`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
    >>> hyperparameter_names(RBF([1.0, 2.0]) + 0.1 * ItemEffect())
    ['length_scale[0]', 'length_scale[1]', 'variance of the item effects']
    >>> hyperparameter_names(RBF() + ConstantKernel() * Matern())
    ['RBF length_scale', 'variance of the Matern', 'Matern length_scale']
    """
    free = fold(kernel, _NAMES).free
    owners: dict[str, set[str]] = {}
    for each in free:
        owners.setdefault(each.name, set()).add(each.owner)
    names = []
    for each in free:
        place = "" if each.column is None else f"[{each.column}]"
        if each.name == "variance":
            names.append(f"variance of the {each.owner}")
        elif len(owners[each.name]) > 1:
            names.append(f"{each.owner} {each.name}{place}")
        else:
            names.append(f"{each.name}{place}")
    # Parts of one kind are told apart by their numbers.
    count, occurrence = Counter(names), Counter[str]()
    for at, name in enumerate(names):
        if count[name] > 1:
            occurrence[name] += 1
            names[at] = f"{name} ({occurrence[name]} of {count[name]})"
    return names


def shortest_lengths(kernel: Kernel, n_features: int) -> Array:
    """Compute the shortest length of a kernel along every feature, (n_features,); ∞ without any."""
    shortest = np.full(n_features, np.inf)
    for leaf, columns in fold(kernel, SEEN):
        features = slice(None) if columns is None else list(columns)
        shortest[features] = np.minimum(shortest[features], own_length(leaf))
    return shortest


def check_hyperparameters(kernel: Kernel) -> None:
    """Check that hyperparameters are numbers that a kernel, and a search in logarithms, can have.

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
            setting = f"{type(leaf).__name__} has {name} = {params[name]}"
            value = np.asarray(params[name], dtype=np.float64)
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{setting}, which must be finite.")
            if not hyperparameter.fixed and not np.all(value > 0.0):
                raise ValueError(
                    f"{setting}, which is free and must be positive: it is learned by its "
                    f'logarithm. Start from a positive number, or hold it by {name}_bounds="fixed" '
                    "where the kernel allows it."
                )
            if name.endswith(_POSITIVE) and not np.all(value > 0.0):
                raise ValueError(f"{setting}, which must be positive.")
            if not hyperparameter.fixed:
                _check_bounds(leaf, hyperparameter)


def _check_bounds(leaf: Kernel, hyperparameter: Hyperparameter) -> None:
    """Raise ValueError unless the bounds of a hyperparameter are positive and ascend."""
    low, high = np.reshape(hyperparameter.bounds, (-1, 2)).T
    if not np.all((low > 0.0) & (low <= high)):
        raise ValueError(
            f"{type(leaf).__name__} has {hyperparameter.name}_bounds = "
            f"{np.asarray(hyperparameter.bounds).tolist()}; they must be 'fixed' or pairs "
            "0 < low <= high, as the search is in logarithms."
        )


def reads_numbers(kernel: Kernel, column: int) -> bool:
    """Say whether a kernel takes a column's values for numbers, not for names."""
    names = (Identity, ConstantKernel, WhiteKernel)
    return any(
        not isinstance(leaf, names) and (columns is None or column in columns)
        for leaf, columns in fold(kernel, SEEN)
    )


def surely_covariance(kernel: Kernel) -> bool:
    """Say whether all parts of a kernel are known as covariance functions in any dimension."""
    return all(type(leaf) in LEAVES for leaf, _ in fold(kernel, SEEN))


def seen_columns(
    kernel: Kernel, n_features: int, item_effects: bool = True
) -> tuple[list[int], list[int]]:
    """Return columns that a kernel reads as names (`Identity`), and those it reads as numbers.

    With ``item_effects=False`` effects of single items do not count: an `ItemEffect` or an
    `Identity` that reads all of several columns as it has no columns of its own.
    """
    named: set[int] = set()
    measured: set[int] = set()
    for leaf, columns in fold(kernel, SEEN):
        if not isinstance(leaf, (ConstantKernel, WhiteKernel)):
            every = range(n_features) if columns is None else columns
            single_effect = (
                isinstance(leaf, Identity | ItemEffect) and columns is None and n_features > 1
            )
            if single_effect and not item_effects:
                continue
            (named if isinstance(leaf, Identity) else measured).update(every)
    return sorted(named), sorted(measured)


def identity_columns(kernel: Kernel) -> list[int]:
    """List the columns that an `Identity` sees alone, each once."""
    singles = {
        columns[0]
        for leaf, columns in fold(kernel, SEEN)
        if isinstance(leaf, Identity) and columns is not None and len(columns) == 1
    }
    return sorted(singles)


# Pairs of rows whose differences are looked at.
_PAIRS = 100_000


def median_lengthscales(X: ArrayLike, seed: int = 0) -> Array:
    """Compute a lengthscale for each feature: √d times the median difference of two rows.

    The factor keeps the correlation of two typical rows the same whatever the number d of features,
    for kernels of a scaled distance as for products of one kernel a feature. Where most rows are
    equal in a feature, the mean difference stands for the median, and 1 where all are.

    Parameters
    ----------
    X : array-like of shape (n, d)
    seed : int, default=0
        Of more than about 450 rows 100 000 pairs are drawn.

    Returns
    -------
    ndarray of shape (d,)

    Raises
    ------
    ValueError
        If X is not 2-D and finite.

    References
    ----------
    Gretton, Sriperumbudur, Sejdinovic, Strathmann, Balakrishnan, Pontil and Fukumizu (2012),
    *Optimal kernel choice for large-scale two-sample tests*.

    Examples
    --------
    >>> median_lengthscales([[0.0, 10.0], [1.0, 10.0], [2.0, 10.0]]).round(3)
    array([1.414, 1.   ])
    """
    rows = check_rows(X)
    n, d = rows.shape
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise ValueError(
            f"X contains NaN or infinity in {len(bad)} of {n} rows, first in row {bad[0]}. Leave "
            "these rows out, or impute them as for the model."
        )
    if n * (n - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        rng = np.random.default_rng(seed)
        first = rng.integers(n, size=_PAIRS)
        second = (first + rng.integers(1, n, size=_PAIRS)) % n
    lengths = np.ones(d)
    for k, column in enumerate(rows.T if len(first) else ()):
        apart = np.abs(column[first] - column[second])
        typical = np.median(apart) or np.mean(apart)
        lengths[k] = np.sqrt(d) * typical if typical > 0.0 else 1.0
    return lengths
