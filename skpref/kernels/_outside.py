"""The kernel of items beside an outside option: what "none of these" is preferred to."""

from sklearn.gaussian_process.kernels import ConstantKernel

from skpref.kernels._contracts import Kernel
from skpref.kernels._leaves import Linear
from skpref.kernels._wrappers import OnColumns

# Variance of the outside option's utility, where that of an item is 1. The best of many items is 2
# to 3 deviations above their mean: at a deviation of 2 an option is as easily worse than most items
# as better than all.
OUTSIDE_VARIANCE = 4.0


def outside_option_kernel(
    kernel: Kernel, n_columns: int, variance: float = OUTSIDE_VARIANCE
) -> Kernel:
    """Return a kernel of items and of an outside option, which has a utility of its own.

    Who answers "none of these" prefers it to all that is shown; who chooses an item where that was
    allowed prefers the item. Rows have two more columns: 1, 0 of an item and 0, 1 of the outside
    option, whatever its other columns are, see `skpref.duels.add_outside_option`. Its utility is
    normal with the mean of the items, and independent of theirs. Items known by names need neither:
    with `Identity` "none" is a name like any other.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Of the items; its hyperparameters are those of the result.
    n_columns : int
        Columns of an item, without the two.
    variance : float, default=4.0
        Of the outside option's utility, in the unit of ``kernel``.

    Returns
    -------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.kernels import outside_option_kernel
    >>> rows = np.array([[0.3, 1.0, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> outside_option_kernel(RBF(), 1)(rows)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 4.]])
    """
    items = OnColumns(kernel, list(range(n_columns))) * OnColumns(Linear(), [n_columns])
    constant = ConstantKernel(variance, "fixed")
    return items + constant * OnColumns(Linear(), [n_columns + 1])
