"""A kernel without its item effects: what features alone say."""

import numpy as np
from sklearn.gaussian_process.kernels import WhiteKernel

from skpref.kernels._contracts import Array, Kernel
from skpref.kernels._identity import Identity, ItemEffect
from skpref.kernels._tree import View, fold
from skpref.kernels._wrappers import OnColumns


def features_part(kernel: Kernel, n_features: int, id_column: int | None = None) -> Kernel | None:
    """The terms of a kernel by which items share something with others.

    Item effects are `ItemEffect`, scikit-learn's `WhiteKernel`, and `Identity` where it sees all
    columns or the one that says who an item is. An `Identity` on other columns is the effect of a
    category, which is a feature. A product with an item effect is one too.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_features : int
    id_column : int, optional

    Returns
    -------
    Kernel or None
        None if all of it is item effects.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> features_part(RBF(2.0) + 0.1 * ItemEffect(), 3)
    RBF(length_scale=2)
    """
    columns = np.arange(n_features, dtype=np.float64)[None]
    return fold(kernel, _FeaturesPart(n_features, id_column), columns)


class _FeaturesPart(View[Kernel | None]):
    """Asked at one row, the numbers of the columns: a leaf finds there which of them it sees."""

    def __init__(self, n_features: int, id_column: int | None) -> None:
        self._every, self._id = n_features, id_column

    def leaf(self, kernel: Kernel, *rows: Array) -> Kernel | None:
        if isinstance(kernel, ItemEffect | WhiteKernel):
            return None
        if isinstance(kernel, Identity):
            seen = rows[0][0]
            if len(seen) == self._every or self._id in seen:
                return None
        return kernel

    def sum(self, one: Kernel | None, two: Kernel | None) -> Kernel | None:
        if one is None or two is None:
            return two if one is None else one
        return one + two

    def product(self, one: Kernel | None, two: Kernel | None) -> Kernel | None:
        return None if one is None or two is None else one * two

    def power(self, base: Kernel | None, exponent: float) -> Kernel | None:
        return None if base is None else base**exponent

    def on_columns(
        self, inner: Kernel | None, columns: tuple[int, ...], *rows: Array
    ) -> Kernel | None:
        return None if inner is None else OnColumns(inner, columns)

    def of_duels(self, inner: Kernel | None, kernel: Kernel, *rows: Array) -> Kernel | None:
        return kernel
