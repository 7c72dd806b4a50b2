"""Priors on hyperparameters while they are learned, as log densities of their logarithms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import check_lognormal
from skpref.gp import TimeSpread, feature_spread, varying
from skpref.kernels import amplitude_powers, lengthscale_indices, time_powers
from skpref.likelihoods import Likelihood

# Median of the deviations of parts beside the one that is the unit of the utility, and of
# thresholds in deviations of the noise.
PART_MEDIAN = 0.5
# Deviation of the logarithm of a lengthscale of time, which nothing else tells the scale of.
_TIME = 1.5
_ALLOWED = "'lognormal', None or a pair (median, deviation of the logarithm)"


class Hyperprior(Protocol):
    """Anything with a log density."""

    def log_density(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the unnormalised log density at all hyperparameters, and its gradient."""


@dataclass(frozen=True)
class LogNormal:
    """Independent log-normals on some of the hyperparameters (normals, of those that are linear).

    Attributes
    ----------
    index : ndarray of int of shape (k,)
        Where they are in θ.
    centre, deviation : ndarray of shape (k,)
        Mean and standard deviation of their logarithms.
    """

    index: NDArray[np.intp]
    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]

    def log_density(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the unnormalised log density and its gradient."""
        offset = (theta[self.index] - self.centre) / self.deviation
        gradient = np.zeros(len(theta))
        gradient[self.index] = -offset / self.deviation
        return -0.5 * float(offset @ offset), gradient


@dataclass(frozen=True)
class LogStudent:
    """Logarithms with independent Student's t densities.

    Attributes
    ----------
    index : ndarray of int of shape (k,)
        Where they are in θ.
    centre : ndarray of shape (k,)
    scale : float or ndarray of shape (k,)
        Of a variance of whose size little is known: half of it lies between a fourth and four times
        the median.
    freedom : float
        Many are like the median, a few quite unlike.
    """

    index: NDArray[np.intp]
    centre: NDArray[np.float64]
    scale: float | NDArray[np.float64] = 2.0
    freedom: float = 4.0

    def log_density(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the unnormalised log density and its gradient."""
        gradient = np.zeros(len(theta))
        value, slopes = _student((theta[self.index] - self.centre) / self.scale, self.freedom)
        gradient[self.index] = slopes / self.scale
        return value, gradient


def _student(scaled, freedom):
    """Return the unnormalised log density of Student's t, and its slopes."""
    value = -0.5 * (freedom + 1.0) * float(np.log1p(scaled**2 / freedom).sum())
    return value, -(freedom + 1.0) * scaled / (freedom + scaled**2)


@dataclass(frozen=True)
class SharedLevel:
    """Logarithms that share a normal level and deviate from it by Student's t.

    Attributes
    ----------
    index : ndarray of int of shape (k,)
        Where they are in θ.
    centre : ndarray of shape (k,)
        Their medians.
    level : float
        Standard deviation of the level.
    shorter : float or None
        That below the medians, where it is another one.
    deviation, freedom : float
        Scale and degrees of freedom of Student's t: many lengthscales are alike, a few quite
        unlike.
    """

    index: NDArray[np.intp]
    centre: NDArray[np.float64]
    level: float = 1.0
    shorter: float | None = None
    deviation: float = 0.3
    freedom: float = 4.0

    def log_density(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the unnormalised log density and its gradient."""
        offset = theta[self.index] - self.centre
        gradient = np.zeros(len(theta))
        mean = offset.mean()
        level = self.level if self.shorter is None or mean >= 0.0 else self.shorter
        value, slopes = _student((offset - mean) / self.deviation, self.freedom)
        slopes = slopes / self.deviation
        gradient[self.index] = slopes - slopes.mean() - mean / level**2 / len(offset)
        return value - 0.5 * float(mean / level) ** 2, gradient


@dataclass(frozen=True)
class HalfCauchy:
    """Independent half-Cauchy densities of deviations, the roots of some of the hyperparameters.

    The density is that of the deviation, not of its logarithm, so that it is largest at 0: what the
    answers do not ask for goes away. Its tail is long, so that what they do ask for stays [1]_.

    Attributes
    ----------
    index : ndarray of int of shape (k,)
        Where the variances are in θ.
    scale : ndarray of shape (k,)
        Medians of the deviations.
    is_sole : bool
        Whether averages over hyperparameters put no other prior on these.

    References
    ----------
    .. [1] Gelman, "Prior distributions for variance parameters in hierarchical models", Bayesian
       Analysis 1 (2006).
    """

    index: NDArray[np.intp]
    scale: NDArray[np.float64]
    is_sole: bool = False

    def log_density(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the unnormalised log density and its gradient."""
        excess = theta[self.index] - 2.0 * np.log(self.scale)
        gradient = np.zeros(len(theta))
        gradient[self.index] = -expit(excess)
        return -float(np.sum(np.logaddexp(0.0, excess))), gradient


def check_lengthscale_prior(prior: object) -> None:
    """Raise ValueError unless it is "lognormal", None or a pair (median, deviation)."""
    if isinstance(prior, str):
        if prior != "lognormal":
            raise ValueError(f"lengthscale_prior must be {_ALLOWED}, got {prior!r}.")
    elif prior is not None:
        check_lognormal("lengthscale_prior", prior, _ALLOWED)


def lengthscale_priors(
    prior: object,
    kernel: object,
    rows: NDArray[np.float64] | None = None,
    beside_ids: bool = False,
    time: int | None = None,
) -> tuple[Hyperprior, ...]:
    """Make the prior on the free lengthscales of ``kernel``: a tuple of none, or of one.

    Parameters
    ----------
    prior : "lognormal", None or (median, deviation)
        "lognormal": `SharedLevel` around √d standard deviations of each of the d features of the
        rows that vary; constant ones have none. A pair: independent log-normals, the median in the
        units of the rows that the kernel sees.
    kernel : Kernel
    rows : ndarray of shape (n_items, n_features), optional
        Needed for "lognormal".
    beside_ids : bool, default=False
        The kernel is the default one, with item effects by ids: the level of "lognormal" then has
        half the standard deviation towards short lengthscales.
    time : int, optional
        Column of times, whose lengthscales have priors of their own, see `drift_priors`.
    """
    if prior is None:
        return ()
    lengthscales = [each for each in lengthscale_indices(kernel) if time is None or each[1] != time]
    index = np.array([position for position, _ in lengthscales], dtype=np.intp)
    if not isinstance(prior, str):
        median, deviation = check_lognormal("lengthscale_prior", prior, _ALLOWED)
        n = len(index)
        return (LogNormal(index, np.full(n, np.log(median)), np.full(n, deviation)),) if n else ()
    if prior != "lognormal" or rows is None:
        raise ValueError(f"lengthscale_prior must be {_ALLOWED}, got {prior!r}.")
    varies = varying(rows)
    lengthscales = [each for each in lengthscales if each[1] is None or varies[each[1]]]
    if not lengthscales:
        return ()
    index = np.array([position for position, _ in lengthscales], dtype=np.intp)
    spread = np.log(feature_spread(rows)) + 0.5 * np.log(np.sum(varies))
    common = spread[varies].mean()
    features = [feature for _, feature in lengthscales]
    centre = np.array([common if k is None else spread[k] for k in features])
    if beside_ids:
        # What is rough in features the item effects explain too.
        return (SharedLevel(index, centre, shorter=0.5),)
    return (SharedLevel(index, centre),)


def variance_priors(kernel: Kernel, beside: bool = False) -> tuple[Hyperprior, ...]:
    """Make priors on the variances of the default kernel of ids: none, one or two.

    Parameters
    ----------
    kernel : Kernel
        A sum of parts with a variance each, that of the item effects first.
    beside : bool, default=False
        Whether there is more beside it, such as a drift. Otherwise one variance alone has nothing
        that would have to be shrunk.
    """
    effects, *parts = np.flatnonzero(amplitude_powers(kernel)) if kernel.n_dims else [0]
    if not kernel.n_dims or not (parts or beside):
        return ()
    unit = LogStudent(np.array([effects]), np.zeros(1))
    return (
        (unit, HalfCauchy(np.array(parts), np.full(len(parts), PART_MEDIAN))) if parts else (unit,)
    )


def group_priors(effects: Kernel, n_before: int, unit: float) -> tuple[Hyperprior, ...]:
    """Make the prior on the variances of effects of groups: half-Cauchy deviations, largest at 0.

    Parameters
    ----------
    effects : Kernel
        A sum of terms with a variance each.
    n_before : int
        Hyperparameters of the whole kernel that come before those of the effects.
    unit : float
        Variance of the utilities: the median of a deviation is half of its root.
    """
    index = n_before + np.flatnonzero(amplitude_powers(effects))
    return (HalfCauchy(index, np.full(len(index), PART_MEDIAN * np.sqrt(unit)), is_sole=True),)


def drift_priors(
    kernel: Kernel,
    column: int,
    spread: TimeSpread,
    n_static: int,
    unit: float,
    prior: object,
    n_before: int = 0,
) -> tuple[Hyperprior, ...]:
    """Make priors on what changes with time: log-normal lengthscales, half-Cauchy deviations.

    Parameters
    ----------
    kernel : Kernel
    column : int
        That of the times.
    spread : TimeSpread
        Of the answers' times: a third of their span is the median of a lengthscale.
    n_static : int
        Free hyperparameters of what stays, which come first. Variances after these are of the
        drift: the medians of their deviations, over the span of the times, are half that of what
        stays.
    unit : float
        Variance of what stays of the utilities.
    prior : "lognormal", None or (median, deviation)
        That of other lengthscales; None: those of time have none either.
    n_before : int, default=0
        Free hyperparameters of other terms, which come before those of ``kernel``.
    """
    powers = np.array(time_powers(kernel, column), dtype=np.intp)
    priors: list[Hyperprior] = []
    index = np.flatnonzero(powers == 1)
    if len(index) and prior is not None:
        centre = np.full(len(index), np.log(spread.length))
        priors.append(LogNormal(n_before + index, centre, np.full(len(index), _TIME)))
    variances = np.flatnonzero(np.array(amplitude_powers(kernel), dtype=np.intp))
    variances = variances[variances >= n_static]
    if len(variances):
        scale = PART_MEDIAN * np.sqrt(np.where(powers[variances] < 0, unit / spread.span, unit))
        priors.append(HalfCauchy(n_before + variances, scale))
    return tuple(priors)


def likelihood_priors(
    likelihood: Likelihood, kernel: Kernel, priors: Mapping[str, tuple[float, float]]
) -> tuple[Hyperprior, ...]:
    """Make the prior on free hyperparameters of a likelihood: a tuple of none, or of one.

    Parameters
    ----------
    likelihood : Likelihood
    kernel : Kernel
        Its free hyperparameters come first in θ.
    priors : dict of str to (float, float)
        As `Likelihood.priors`.
    """
    normals = []
    for at, name in enumerate(likelihood.free, start=len(kernel.theta)):
        if name in priors:
            centre, deviation = priors[name]
            normals.append((at, centre if name in likelihood.linear else np.log(centre), deviation))
    if not normals:
        return ()
    index, centres, deviations = zip(*normals, strict=True)
    return (LogNormal(np.array(index), np.array(centres), np.array(deviations)),)
