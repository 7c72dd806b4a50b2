"""What is known of one number for each judge: on grids, a row a judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from skpref._linalg import Array

# Points of a grid while it is laid, and then.
_POINTS, _FINE = 41, 121
# Log density below its peak at which a grid ends.
_DEPTH = 30.0
# Deviations of the prior that a grid begins with; times that it is narrowed or widened.
_REACH, _ROUNDS = 6.0, 8
# A grid that the density fills to less than this is laid again.
_FILLED = 0.4
# Of normals: deviations that are narrow, in distances of the points, and how far they reach.
_NARROW, _SURE = 1.5, 8.0
# Of quantiles, and how near to what is certain they are it.
_BISECTIONS, _ROUNDING = 60, 1e-12
# Of a search: a side of its grid, how often it is narrowed.
_SIDE, _NARROWED = 33, 5


@dataclass(frozen=True, eq=False)
class Marginals:
    """Distributions of one number for each judge.

    Attributes
    ----------
    points, width, weights : ndarray of shape (n_judges, n_points)
        The probability ``weights`` is spread over so much around each point.
    """

    points: Array
    width: Array
    weights: Array

    @property
    def mean(self) -> Array:
        """Shape (n_judges,)."""
        return np.sum(self.weights * self.points, axis=1)

    @property
    def variance(self) -> Array:
        """Shape (n_judges,)."""
        return np.sum(self.weights * (self.points - self.mean[:, None]) ** 2, axis=1)

    def scaled(self, factor: float) -> Self:
        """Of the number times a factor."""
        return type(self)(self.points * factor, self.width * factor, self.weights)

    def cdf(self, value: ArrayLike, *, below: bool = False) -> Array:
        """P(number ≤ value), or with ``below`` P(number < value), shape (n_judges,)."""
        value = np.broadcast_to(np.asarray(value, dtype=np.float64), (len(self.points),))[:, None]
        off = value - self.points
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(off / self.width + 0.5, 0.0, 1.0)
        step = off > 0.0 if below else off >= 0.0
        return np.sum(self.weights * np.where(self.width > 0.0, share, step), axis=1)

    def quantile(self, level: float) -> Array:
        """Shape (n_judges,)."""
        low = np.min(self.points - self.width, axis=1)
        high = np.max(self.points + self.width, axis=1)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            under = self.cdf(middle) < level
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        # What is certain has that value, and not one next to it.
        off = np.where(self.width > 0.0, np.inf, np.abs(high[:, None] - self.points))
        nearest = off.argmin(axis=1)[:, None]
        sure = np.take_along_axis(off, nearest, axis=1)[:, 0] <= _ROUNDING * (1.0 + np.abs(high))
        return np.where(sure, np.take_along_axis(self.points, nearest, axis=1)[:, 0], high)


@dataclass(frozen=True, eq=False)
class Known:
    """What judges' answers say of one number for each, on grids of their own.

    Attributes
    ----------
    grid, log_likelihood : ndarray of shape (n_judges, n_points)
    """

    grid: Array
    log_likelihood: Array

    @property
    def step(self) -> Array:
        """Distance of the points, shape (n_judges, 1)."""
        return self.grid[:, 1:2] - self.grid[:, :1]


def normal_masses(grid: Array, step: Array, mean: float, variances: Array) -> Array:
    """Probabilities that normals give to points, (n_judges, n_points, n_variances).

    Of one narrower than the distance of the points those under which linear functions between the
    points have their expectation.
    """
    spread = np.sqrt(variances)
    step = step[:, :, None]
    u = (grid[:, :, None] - mean) / spread
    density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    masses = density * step / spread
    narrow = spread < _NARROW * step.max()
    if np.any(narrow):
        u, density, spread = u[..., narrow], density[..., narrow], spread[narrow]
        excess = spread * (density - u * ndtr(-u))  # E[(x − point)₊]
        hats = np.zeros_like(u)
        hats[:, 1:-1] = (excess[:, :-2] - 2.0 * excess[:, 1:-1] + excess[:, 2:]) / step
        beyond = np.abs(u) * spread > _SURE * spread + step
        masses[..., narrow] = np.where(beyond, 0.0, np.maximum(hats, 0.0))
    return masses


def known(
    log_likelihood: Callable[[Array], Array],
    mean: float,
    variance: float,
    n_judges: int,
    near: Known | None = None,
) -> Known:
    """What answers say, wherever a normal prior, or one that is narrower, makes it count.

    Parameters
    ----------
    log_likelihood : callable
        Of grids (n_judges, n_points), of the same shape.
    mean, variance : float
    n_judges : int
    near : Known, optional
        Of answers and a prior that are nearly the same.
    """
    reach = _REACH * np.sqrt(variance)
    low, high = np.full(n_judges, mean - reach), np.full(n_judges, mean + reach)
    if near is not None:
        low, high = near.grid[:, 0], near.grid[:, -1]
    share = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(_ROUNDS):
        width = high - low
        grid = low[:, None] + width[:, None] * share
        told = log_likelihood(grid)
        height = told - 0.5 * (grid - mean) ** 2 / variance
        top = height.max(axis=1, keepdims=True)
        there = height > top - _DEPTH
        first, last = there.argmax(axis=1), _POINTS - 1 - there[:, ::-1].argmax(axis=1)
        short = height[:, [0, -1]] > top - 0.5 * _DEPTH
        if not short.any() and np.all(last - first > _FILLED * (_POINTS - 1)):
            break
        step = width / (_POINTS - 1.0)
        begin, end = low + step * (first - 1.0), low + step * (last + 1.0)
        low = np.where(short[:, 0], low - 0.5 * width, begin)
        high = np.where(short[:, 1], high + 0.5 * width, end)
    fine = np.linspace(0.0, 1.0, _FINE)
    # smooth, as sums of log-probabilities are
    told = CubicSpline(share, told, axis=1)(fine)
    return Known(grid[:, :1] + (grid[:, -1:] - grid[:, :1]) * fine, told)


def _told(grid, weights, mean, variance):
    """Precision and mean of a Gaussian that, times the prior, has the moments of a posterior."""
    centre = np.sum(weights * grid, axis=1)
    spread = np.sum(weights * (grid - centre[:, None]) ** 2, axis=1)
    precision = np.maximum(1.0 / np.maximum(spread, 1e-12) - 1.0 / variance, 1e-9 / variance)
    return precision, (centre / np.maximum(spread, 1e-12) - mean / variance) / precision


def _best(fit, ends):
    """Where a function of positive numbers is largest, between these logarithms."""
    for _ in range(_NARROWED):
        x = np.exp(np.linspace(*ends, _SIDE))
        k = int(fit(x).argmax())
        ends = np.log([x[max(k - 1, 0)], x[min(k + 1, _SIDE - 1)]])
    return float(x[k])


@dataclass(frozen=True, eq=False)
class OwnOrder:
    """Posterior of the order effect of every judge's own: normal around zero beforehand."""

    variance: float
    known: Known
    weights: Array

    @classmethod
    def of(cls, log_likelihood: Callable[[Array], Array], variance: float, n_judges: int) -> Self:
        """Of judges whose answers have this log evidence as a function of it."""
        found = known(log_likelihood, 0.0, variance, n_judges)
        height = found.log_likelihood - 0.5 * found.grid**2 / variance
        mass = np.exp(height - height.max(axis=1, keepdims=True))
        return cls(variance, found, mass / mass.sum(axis=1, keepdims=True))

    def marginals(self) -> Marginals:
        """Of it."""
        return Marginals(
            self.known.grid, np.broadcast_to(self.known.step, self.weights.shape), self.weights
        )

    def spread(self, bounds: tuple[float, float]) -> float:
        """The variance under which the answers are more probable, as `Care.levelled`."""
        precision, centre = _told(self.known.grid, self.weights, 0.0, self.variance)

        def fit(variance):
            total = variance[:, None] + 1.0 / precision
            return -0.5 * np.sum(np.log(total) + centre**2 / total, axis=1)

        return _best(fit, np.log(bounds))
