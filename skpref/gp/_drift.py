"""The part of a utility that changes with time: each item's own walk beside what stays."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from skpref._utils import Array
from skpref.data import Reader
from skpref.gp._default_kernel import RANGE
from skpref.gp._posterior import Posterior
from skpref.kernels import (
    PART,
    PART_BOUNDS,
    Identity,
    Linear,
    OnColumns,
    Seasons,
    Wiener,
    has_amplitude,
)

DRIFTS = "wiener", "matern12", "matern32", "matern52"
# Lengthscales in spans of the answers' times: where they start, the largest; and the smallest in
# mean gaps between these.
_LENGTH, _SHORTEST = 1.0 / 3.0, 0.1


class TimeSpread(NamedTuple):
    """Hold how far times reach and how far apart they lie.

    Attributes
    ----------
    span : float
        From the first to the last; 1 where all are one.
    gap : float
        Mean difference of neighbours.
    """

    span: float
    gap: float

    @classmethod
    def from_times(cls, times: NDArray[np.float64]) -> Self:
        """Measure the spread of times in any order, of which some may be equal."""
        distinct = np.unique(times)
        if len(distinct) < 2:
            return cls(1.0, 1.0)
        span = float(distinct[-1] - distinct[0])
        return cls(span, span / (len(distinct) - 1))

    @property
    def length(self) -> float:
        """Return where the search for a lengthscale starts, which is the median of its prior."""
        return _LENGTH * self.span


def drifting_kernel(
    kernel: Kernel,
    drift: str | Kernel,
    who: Sequence[int],
    column: int,
    spread: TimeSpread,
    unit: float = 1.0,
    starts: Sequence[float] = (),
) -> Kernel:
    """A kernel with a walk of its own for each item beside it.

    Parameters
    ----------
    kernel : Kernel
        What stays, on all columns of a row.
    drift : {"wiener", "matern12", "matern32", "matern52"} or kernel of one column
        A kernel in which there is neither a `ConstantKernel` nor a `Wiener` gets a learned
        amplitude.
    who : sequence of int
        Columns that say who an item is.
    column : int
        That of the time.
    spread : TimeSpread
        Of the answers' times.
    unit : float, default=1.0
        Variance of what stays of the utilities.
    starts : sequence of float, default=()
        Times at which a season begins, see `skpref.kernels.Seasons`.

    Examples
    --------
    >>> from skpref.kernels import Identity, OnColumns
    >>> drifting_kernel(OnColumns(Identity(), [0]), "wiener", [0], 1, TimeSpread(100.0, 1.0))
    OnColumns(Identity(), columns=[0]) + OnColumns(Identity(), columns=[0]) * \
OnColumns(Wiener(rate=0.001), columns=[1])
    """
    own = OnColumns(Identity(), list(who))
    return kernel + _times_walk(own, drift, column, spread, unit, starts)


def order_effect_kernel(
    drift: str | Kernel, first: int, column: int, spread: TimeSpread, unit: float = 1.0
) -> Kernel:
    """Make the kernel of an order effect through time: a level of variance ``unit``, and a walk.

    Parameters
    ----------
    drift, column, spread, unit
        As in `drifting`.
    first : int
        Column that is 1 for the item that is shown first, else 0.
    """
    lead = OnColumns(Linear(), [first])
    return ConstantKernel(unit, "fixed") * lead + _times_walk(lead, drift, column, spread, unit)


def _times_walk(
    kernel: Kernel,
    drift: str | Kernel,
    column: int,
    spread: TimeSpread,
    unit: float,
    starts: Sequence[float] = (),
) -> Kernel:
    """Multiply a kernel by that of a walk through time, with an amplitude if it has none."""
    low, high = PART_BOUNDS
    rate = unit / spread.span
    if not isinstance(drift, str):
        walk = clone(drift)
    elif drift == "wiener":
        walk = Wiener(PART * rate, (low * rate, high * rate))
    else:
        bounds = min(_SHORTEST * spread.gap, spread.length), RANGE * spread.span
        walk = Matern(spread.length, bounds, nu=int(drift[-2]) / 2)
    if len(starts):
        walk = walk * Seasons(starts)
    product = kernel * OnColumns(walk, [column])
    if has_amplitude(walk):
        return product
    return ConstantKernel(PART * unit, (low * unit, high * unit)) * product


def mean_variance(kernel: Kernel, items: Array) -> float:
    """Mean prior variance of items, 1 where it is nothing."""
    variance = float(np.mean(kernel.diag(items)))
    return variance if np.isfinite(variance) and variance > 0.0 else 1.0


def forgetting_kernel(kernel: Kernel, n_columns: int, rate: float) -> Kernel:
    """The kernel of a utility that moves, of rows and the number of an answer as their last column.

    Utilities s answers apart have correlation (1 − rate)^(s/2) (Bogunovic, Scarlett and Cevher,
    "Time-varying Gaussian process bandit optimization", AISTATS 2016).
    """
    time = Matern(-2.0 / np.log1p(-rate), "fixed", nu=0.5)
    return OnColumns(kernel, list(range(n_columns))) * OnColumns(time, [n_columns])


def present_posterior(posterior: Posterior, n_columns: int) -> Posterior:
    """The posterior of a utility that moves as it is at the next answer, on rows without a number.

    The covariance of the utility now with what was asked before is that of the rows times a
    correlation of each anchor, which goes over to the weights: no approximation is made.
    """
    if posterior.anchors.shape[1] == n_columns:
        return posterior
    numbers = posterior.anchors[:, n_columns:]
    product = posterior.kernel
    correlation = product.k2(
        np.array([[0.0] * n_columns + [numbers.max() + 1.0]]), posterior.anchors
    ).T
    return replace(
        posterior,
        kernel=product.k1.kernel,
        anchors=posterior.anchors[:, :n_columns],
        weights=correlation * posterior.weights,
        factor=correlation * posterior.factor,
        reader=Reader(n_columns),
        utilities=None,
    )
