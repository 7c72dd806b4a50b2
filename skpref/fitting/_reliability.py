"""How reliable judges are: the likelihood of their answers, a prior, and the posterior of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from skpref._utils import DEPTH, ITERATION_CAP, NEGLIGIBLE, Array, Fields, check_shapes, row_blocks
from skpref.data import Comparisons
from skpref.fitting._model import Evaluation
from skpref.gp import MarginMoments
from skpref.inference import matching_sites, site_update
from skpref.likelihoods import Answers, JudgeReliability, Likelihood

# -- distributions of one number for each judge ----------------------------------------------

# Deviations that a normal distribution reaches on its points.
_REACH = 6.0


@dataclass(frozen=True, eq=False)
class Marginals(Fields):
    """Distributions of one number for each judge.

    Attributes
    ----------
    points, width, weights : ndarray of shape (n_judges, n_points)
        The probability ``weights`` is spread evenly over ``width`` around each point.
    """

    points: Array
    width: Array
    weights: Array

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless all are distributions, see `Fields`."""
        check_shapes(
            points=(self.points, "j n"), width=(self.width, "j n"), weights=(self.weights, "j n")
        )
        if np.any(self.weights < 0.0) or not np.allclose(self.weights.sum(axis=1), 1.0):
            raise ValueError("weights of marginals are no probabilities")

    @classmethod
    def certain(cls, value: float, n_judges: int) -> Self:
        """Make distributions of one value, the same for each judge."""
        ones = np.ones((n_judges, 1))
        return cls(value * ones, 0.0 * ones, ones)

    @classmethod
    def mixture(cls, weights: Array, parts: Sequence[Self]) -> Self:
        """Mix distributions with these weights, which sum to one."""
        if len(parts) == 1:
            return parts[0]
        scaled = [weight * each.weights for weight, each in zip(weights, parts, strict=True)]
        points, width = (
            np.hstack([getattr(each, name) for each in parts]) for name in ("points", "width")
        )
        return cls(points, width, np.hstack(scaled))

    @classmethod
    def normal(cls, mean: Array, deviation: Array) -> Self:
        """Make normal distributions of these means and deviations, (n_judges,) each."""
        u = np.linspace(-_REACH, _REACH, _FINE)
        mass = np.exp(-0.5 * u**2)
        points = mean[:, None] + deviation[:, None] * u
        width = np.broadcast_to(deviation[:, None] * (u[1] - u[0]), points.shape)
        return cls(points, width, np.broadcast_to(mass / mass.sum(), points.shape))

    def known(self, values: Array, judges: NDArray[np.intp]) -> Self:
        """Return the distributions where the numbers of some judges have these values."""
        points, width, weights = self.points.copy(), self.width.copy(), self.weights.copy()
        points[judges], width[judges] = values[judges, None], 0.0
        weights[judges] = np.arange(weights.shape[1]) == 0
        return type(self)(points, width, weights)

    @property
    def mean(self) -> Array:
        """Return the mean of each, shape (n_judges,)."""
        return np.sum(self.weights * self.points, axis=1)

    @property
    def variance(self) -> Array:
        """Return the variance of each, shape (n_judges,)."""
        return np.sum(self.weights * (self.points - self.mean[:, None]) ** 2, axis=1)

    def scaled(self, factor: float) -> Self:
        """Return the distributions of the numbers times a factor."""
        return type(self)(self.points * factor, self.width * factor, self.weights)

    def cdf(self, value: ArrayLike, *, below: bool = False) -> Array:
        """Return P(number ≤ value), or with ``below`` P(number < value), shape (n_judges,)."""
        value = np.broadcast_to(np.asarray(value, dtype=np.float64), (len(self.points),))[:, None]
        off = value - self.points
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(off / self.width + 0.5, 0.0, 1.0)
        step = off > 0.0 if below else off >= 0.0
        return np.sum(self.weights * np.where(self.width > 0.0, share, step), axis=1)

    def quantile(self, level: float) -> Array:
        """Return the quantile of each, shape (n_judges,)."""
        low = np.min(self.points - self.width, axis=1)
        high = np.max(self.points + self.width, axis=1)
        high = quantile_of(self.cdf, low, high, level)
        # The quantile of a point mass is that point, and not a number next to it.
        off = np.where(self.width > 0.0, np.inf, np.abs(high[:, None] - self.points))
        nearest = off.argmin(axis=1)[:, None]
        sure = np.take_along_axis(off, nearest, axis=1)[:, 0] <= NEGLIGIBLE * (1.0 + np.abs(high))
        return np.where(sure, np.take_along_axis(self.points, nearest, axis=1)[:, 0], high)


def quantile_of(cdf: Callable[[Array], Array], low: Array, high: Array, level: float) -> Array:
    """Return quantiles of distributions, by bisection between bounds; shape (n,)."""
    for _ in range(ITERATION_CAP):
        middle = 0.5 * (low + high)
        under = cdf(middle) < level
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return high


# -- the likelihood on grids -----------------------------------------------------------------

# Points of a grid while it is laid, and then.
_POINTS, _FINE = 41, 121
# A grid that the density fills to less than this is laid again.
_FILLED = 0.4
# Deviations of normals that are narrow, in distances of the points.
_NARROW = 1.5


@dataclass(frozen=True, eq=False)
class GridLikelihood:
    """Log-likelihood of one number for each judge, on a grid of its own.

    Attributes
    ----------
    grid, log_likelihood : ndarray of shape (n_judges, n_points)
    """

    grid: Array
    log_likelihood: Array

    @classmethod
    def from_log_likelihood(
        cls,
        log_likelihood: Callable[[Array], Array],
        mean: float,
        variance: float,
        n_judges: int,
        near: Self | None = None,
    ) -> Self:
        """Make a grid where the product with a normal prior, or a narrower one, is not negligible.

        Parameters
        ----------
        log_likelihood : callable
            Of grids (n_judges, n_points), of the same shape.
        mean, variance : float
            Of the prior.
        n_judges : int
        near : GridLikelihood, optional
            Of answers and a prior that are nearly the same.
        """
        reach = _REACH * np.sqrt(variance)
        low, high = np.full(n_judges, mean - reach), np.full(n_judges, mean + reach)
        if near is not None:
            low, high = near.grid[:, 0], near.grid[:, -1]
        share = np.linspace(0.0, 1.0, _POINTS)
        for _ in range(ITERATION_CAP):
            width = high - low
            grid = low[:, None] + width[:, None] * share
            value = log_likelihood(grid)
            height = value - 0.5 * (grid - mean) ** 2 / variance
            top = height.max(axis=1, keepdims=True)
            is_high = height > top - DEPTH
            first, last = is_high.argmax(axis=1), _POINTS - 1 - is_high[:, ::-1].argmax(axis=1)
            short = height[:, [0, -1]] > top - 0.5 * DEPTH
            if not short.any() and np.all(last - first > _FILLED * (_POINTS - 1)):
                break
            step = width / (_POINTS - 1.0)
            begin, end = low + step * (first - 1.0), low + step * (last + 1.0)
            low = np.where(short[:, 0], low - 0.5 * width, begin)
            high = np.where(short[:, 1], high + 0.5 * width, end)
        fine = np.linspace(0.0, 1.0, _FINE)
        # Sums of log-probabilities are smooth.
        value = CubicSpline(share, value, axis=1)(fine)
        return cls(grid[:, :1] + (grid[:, -1:] - grid[:, :1]) * fine, value)

    @property
    def step(self) -> Array:
        """Return the distance of the points, shape (n_judges, 1)."""
        return self.grid[:, 1:2] - self.grid[:, :1]

    def log_masses(self, mean: float, variances: Array, judges: slice = slice(None)) -> Array:
        """Return logs of likelihood times normal prior, (n_judges, n_variances, n_points)."""
        narrow = np.sqrt(variances) < _NARROW * self.step.max()
        masses = _log_normal_masses(self.grid[judges], self.step[judges], mean, variances, narrow)
        masses += self.log_likelihood[judges, None]
        return masses


def _log_normal_masses(grid, step, mean, variances, narrow):
    """Return log-probabilities that normals give to points, (n_judges, n_variances, n_points).

    Of those that are ``narrow``, beside the distance of the points, the ones under which linear
    functions between the points have their expectation.
    """
    spread, step = np.sqrt(variances)[:, None], step[:, None]
    u = (grid[:, None] - mean) / spread
    log_masses = u * u
    log_masses *= -0.5
    log_masses += np.log(step / (np.sqrt(2.0 * np.pi) * spread))
    if not np.any(narrow):
        return log_masses
    every = np.all(narrow)
    u, spread = (u, spread) if every else (u[:, narrow], spread[narrow])
    is_near = np.abs(u) <= _REACH + 3.0 * step / spread  # the points that get any, and beside them
    some = u[is_near]
    excess = np.zeros_like(u)  # in deviations, E[(x − point)₊]
    excess[is_near] = np.exp(-0.5 * some**2) / np.sqrt(2.0 * np.pi) - some * ndtr(-some)
    excess *= spread
    hats = np.zeros_like(u)
    inner = hats[..., 1:-1]
    np.add(excess[..., :-2], excess[..., 2:], out=inner)
    inner -= 2.0 * excess[..., 1:-1]
    inner /= step
    np.maximum(hats, 0.0, out=hats)
    hats[np.abs(u) > _REACH + step / spread] = 0.0
    if every:
        return _log(hats)
    log_masses[:, narrow] = _log(hats)
    return log_masses


# -- the reliability of judges ---------------------------------------------------------------

# What is expected of the shares of judges weighs as much as so many judges.
_EXPECTED = 10.0
# Deviation of the log of the variance of log reliability; variances that are weighed, a decade.
_SPREAD, _PER_DECADE = 1.5, 3
# The least probability of a variance, and share of a precision, that counts.
_LEAST = 1e-3
# Steps of EM for the shares; a step of the log median.
_EM, _ASIDE = 5, 0.2


class Law(NamedTuple):
    """How reliability is distributed among judges.

    Attributes
    ----------
    median : float
        Of the reliability of reliable judges, and of adversarial ones without its sign.
    variances, weights : ndarray of shape (n_variances,)
        Log reliability of either is normal: what its variance may be, with the probabilities.
    adversarial, random : float
        Shares of the judges who answer the wrong way round, and at random.
    """

    median: float
    variances: Array
    weights: Array
    adversarial: float
    random: float

    @classmethod
    def make_prior(
        cls, bounds: tuple[float, float], variance: float, adversarial: float, random: float
    ) -> Self:
        """Make the law before any answer: variances log-normal about their median, in bounds."""
        low, high = np.log10(bounds)
        variances = np.logspace(low, high, int(np.ceil((high - low) * _PER_DECADE)) + 1)
        height = np.exp(-0.5 * (np.log(variances / variance) / _SPREAD) ** 2)
        return cls(1.0, variances, height / height.sum(), adversarial, random)

    @property
    def shares(self) -> Array:
        """Return the shares of reliable judges, of adversarial ones, and of random answers."""
        return np.array([1.0 - self.adversarial - self.random, self.adversarial, self.random])

    @property
    def variance(self) -> float:
        """Return the geometric mean of the variances."""
        return float(np.exp(self.weights @ np.log(self.variances)))

    def drop_negligible_variances(self) -> Self:
        """Return the law without variances of negligible probability."""
        some = self.weights > _LEAST
        weights = self.weights[some] / self.weights[some].sum()
        return self._replace(variances=self.variances[some], weights=weights)

    def marginals(self) -> Marginals:
        """Return the distribution of reliability of a judge without answers."""
        x = np.linspace(-_REACH, _REACH, _POINTS)
        mass = np.exp(-0.5 * x**2) / np.exp(-0.5 * x**2).sum()
        few = self.drop_negligible_variances()
        deviation = np.sqrt(few.variances)[:, None]
        size = self.median * np.exp(deviation * x)
        width = (size * deviation * (x[1] - x[0])).ravel()
        mass, size = (few.weights[:, None] * mass).ravel(), size.ravel()
        weights = [share * mass for share in self.shares[:2]]
        none = np.zeros(1)
        points, widths = np.hstack([size, -size, none]), np.hstack([width, width, none])
        return Marginals(points[None], widths[None], np.append(weights, self.random)[None])


class ReliabilityLikelihood(NamedTuple):
    """Log-likelihood of reliability, for each judge.

    It stays a logarithm: many answers of one judge may leave a law hardly any probability.

    Attributes
    ----------
    sides : (GridLikelihood, GridLikelihood)
        In log reliability of a reliable judge, and of an adversarial one without the sign.
    random : ndarray of shape (n_judges,)
        That of a judge who answers at random.
    """

    sides: tuple[GridLikelihood, GridLikelihood]
    random: Array

    @classmethod
    def from_log_likelihood(
        cls,
        log_likelihood: Callable[[Array], Array],
        law: Law,
        n_judges: int,
        near: Self | None = None,
    ) -> Self:
        """Make grids where the product with a law is not negligible.

        Parameters
        ----------
        log_likelihood : callable
            Of reliabilities (n_judges, n_points), of the same shape.
        law : Law
        n_judges : int
        near : ReliabilityLikelihood, optional
            Of answers and a law that are nearly the same.
        """
        before = (None, None) if near is None else near.sides
        prior = np.log(law.median), law.variances[law.weights > _LEAST].max(), n_judges

        def on_grid(sign: float, near: GridLikelihood | None) -> GridLikelihood:
            return GridLikelihood.from_log_likelihood(
                lambda x: log_likelihood(sign * np.exp(x)), *prior, near
            )

        sides = on_grid(1.0, before[0]), on_grid(-1.0, before[1])
        return cls(sides, log_likelihood(np.zeros((n_judges, 1)))[:, 0])

    def marginals(self, law: Law, kinds: NDArray[np.bool_] | None = None) -> Marginals:
        """Return the posterior of reliability under a law.

        Parameters
        ----------
        law : Law
        kinds : ndarray of bool of shape (n_judges, 3), optional
            Whether each judge may be reliable, adversarial, or answer at random. None: any.
        """
        some = law.weights > 0.0
        probable = law._replace(variances=law.variances[some], weights=law.weights[some])
        weights = self._point_weights(probable, self._kind_shares(law, kinds))
        if not np.isfinite(weights).all():  # a judge whom the probable variances do not allow
            weights = self._point_weights(law, self._kind_shares(law, kinds))
        size = [np.exp(each.grid) for each in self.sides]
        width = [at * each.step for at, each in zip(size, self.sides, strict=True)]
        zero = np.zeros((len(weights), 1))
        return Marginals(np.hstack([size[0], -size[1], zero]), np.hstack([*width, zero]), weights)

    def log_evidence(self, law: Law, weights: Array, kinds: NDArray[np.bool_]) -> float:
        """Return the log-probability of all answers, with the judges' reliability integrated out.

        Parameters
        ----------
        law : Law
        weights : ndarray of shape (n_variances,)
            Of the law's variances, as expected before any answer.
        kinds : ndarray of bool of shape (n_judges, 3)
            Whether each judge may be reliable, adversarial, or answer at random. The probability
            that they all are of these kinds is a factor of the result.
        """
        by_judge = _log_evidence(
            self._log_evidence_by_kind(law), self._kind_shares(law, kinds)[:, None]
        )
        return float(_log_sum(by_judge.sum(axis=0) + _log(weights), axis=0))

    def kind_log_masses(self, law: Law) -> Array:
        """Return the log of each kind's share times the answers' probability, (n_judges, 3)."""
        masses = self._log_evidence_by_kind(law) + _log(law.shares) + _log(law.weights)[:, None]
        return np.asarray(_log_sum(masses, axis=1))

    def log_magnitude_moments(self, law: Law, kinds: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return mean and deviation of the log of each judge's absolute reliability.

        Parameters
        ----------
        law : Law
        kinds : ndarray of int of shape (n_judges,)
            0 of a reliable judge, 1 of an adversarial one; others have a deviation of 0.
        """
        mean, deviation = np.zeros((2, len(kinds)))
        for kind, side in enumerate(self.sides):
            masses = side.log_masses(np.log(law.median), law.variances) + _log(law.weights)[:, None]
            masses = np.exp(masses - masses.max(axis=(1, 2), keepdims=True)).sum(axis=1)
            masses /= masses.sum(axis=1, keepdims=True)
            centre = np.sum(masses * side.grid, axis=1)
            spread = np.sqrt(np.sum(masses * (side.grid - centre[:, None]) ** 2, axis=1))
            mean, deviation = (
                np.where(kinds == kind, new, old)
                for new, old in ((centre, mean), (spread, deviation))
            )
        return mean, deviation

    def log_prior_of_sizes(
        self,
        log_magnitude_moments: Array,
        judges: NDArray[np.intp],
        law: Law,
        weights: Array,
        kinds: NDArray[np.bool_],
    ) -> Array:
        """Compute the log prior density of some judges' reliability, over that of the others.

        All share the law's variance, over which the density is averaged.

        Parameters
        ----------
        log_magnitude_moments : ndarray of shape (n_points, n)
            Log of reliability without its sign.
        judges : ndarray of int of shape (n,)
            Each of one kind, reliable or adversarial.
        law, weights, kinds
            As in `log_evidence`.

        Returns
        -------
        ndarray of shape (n_points,)
            It includes the log-probability of the others' answers.
        """
        shares = self._kind_shares(law, kinds)
        others = np.setdiff1d(np.arange(len(shares)), judges)
        by_variance = _log_evidence(
            self._log_evidence_by_kind(law)[others], shares[others][:, None]
        ).sum(axis=0)
        squares = (
            np.sum((log_magnitude_moments - np.log(law.median)) ** 2, axis=1)[:, None]
            / law.variances
        )
        normal = -0.5 * (squares + len(judges) * np.log(2.0 * np.pi * law.variances))
        of_kinds = _log(shares[judges].sum(axis=1)).sum()
        return np.asarray(_log_sum(normal + by_variance + _log(weights), axis=1) + of_kinds)

    def _kind_shares(self, law, kinds):
        """Return the shares of the kinds that each judge may be of, (n_judges, 3)."""
        shares = np.broadcast_to(law.shares, (len(self.random), 3))
        return shares if kinds is None else shares * kinds

    def _point_weights(self, law, shares):
        """Return posterior probabilities of the points of both signs, and of reliability 0."""
        n_points = [each.grid.shape[1] for each in self.sides]
        weights = np.empty((len(self.random), sum(n_points) + 1))
        for judges, masses in self._yield_log_masses(law):
            kinds, log_share = self._log_evidence_of_masses(judges, masses), _log(shares[judges])
            every = _log_evidence(kinds, shares[judges][:, None])
            over = np.where(np.isfinite(every), -every, -np.inf)  # a variance of no probability
            over = over + _log(law.weights)
            proba = [
                np.exp(each + (over + log_share[:, k : k + 1])[..., None]).sum(axis=1)
                for k, each in enumerate(masses)
            ]
            proba.append(np.exp(kinds[..., 2] + over + log_share[:, 2:]).sum(axis=1)[:, None])
            weights[judges] = np.hstack(proba)
        with np.errstate(invalid="ignore"):
            # The logarithms may be of size 10⁶, with rounding in proportion.
            return weights / weights.sum(axis=1, keepdims=True)

    def best_median(self, law: Law, expected: Law) -> tuple[float, float]:
        """Return the median of greatest evidence, and the variance of its logarithm.

        Parameters
        ----------
        law : Law
            As far as it is known.
        expected : Law
            As before any answer.
        """
        some = law.weights > _LEAST
        few = law._replace(variances=law.variances[some])

        def fit(away):
            kinds = self._log_evidence_by_kind(few._replace(median=law.median * np.exp(away)))
            height = _log_evidence(kinds, law.shares).sum(axis=0) + _log(expected.weights[some])
            return float(_log_sum(height, axis=0))

        low, at, high = -_ASIDE, 0.0, _ASIDE
        values = [fit(low), fit(at), fit(high)]
        for _ in range(ITERATION_CAP):
            if values[1] >= max(values[0], values[2]):
                break
            towards = _ASIDE if values[2] > values[0] else -_ASIDE
            low, at, high = low + towards, at + towards, high + towards
            values = [*values[1:], fit(high)] if towards > 0.0 else [fit(low), *values[:2]]
        if not np.all(np.isfinite(values)):  # a narrow law has evidence at the present one alone
            return float(law.median * np.exp(at)), 0.0
        bend = 2.0 * values[1] - values[0] - values[2]
        off = 0.5 * _ASIDE * (values[2] - values[0]) / bend if bend > 0.0 else 0.0
        median = law.median * np.exp(at + np.clip(off, -_ASIDE, _ASIDE))
        return float(median), float(_ASIDE**2 / max(bend, _ASIDE**2))

    def learn_law(self, law: Law, expected: Law) -> Law:
        """Learn the law's shares and the distribution of its variance, by EM; return the law."""
        kinds = self._log_evidence_by_kind(law)
        for _ in range(_EM):
            every = _log_evidence(kinds, law.shares)
            height = every.sum(axis=0) + _log(expected.weights)
            weights = np.exp(height - height.max())
            weights /= weights.sum()
            some = weights > 0.0
            joint = np.exp(kinds[:, some] + _log(law.shares) - every[:, some, None])
            share = np.einsum("jtk,t->k", joint, weights[some])
            share = (share + _EXPECTED * expected.shares) / (len(kinds) + _EXPECTED)
            law = law._replace(weights=weights, adversarial=float(share[1]), random=float(share[2]))
        return law

    def _log_evidence_by_kind(self, law):
        """Return log evidence if reliable, adversarial or random, (n_judges, n_variances, 3)."""
        return np.concatenate(
            [self._log_evidence_of_masses(*part) for part in self._yield_log_masses(law)]
        )

    def _yield_log_masses(self, law):
        """Yield blocks of judges with log-likelihood plus log prior at the points of both signs."""
        width = self.sides[0].grid.shape[1] * len(law.variances)
        for judges in row_blocks(len(self.random), width):
            at = np.log(law.median), law.variances, judges
            yield judges, [each.log_masses(*at) for each in self.sides]

    def _log_evidence_of_masses(self, judges, masses):
        """Return the log evidence of each kind, by variance, for a block of judges."""
        by_kind = [_log_sum(each, axis=2) for each in masses]
        by_kind.append(np.broadcast_to(self.random[judges, None], by_kind[0].shape))
        return np.stack(by_kind, axis=-1)


def _log_evidence(kinds, shares):
    """Return the log evidence of each judge's answers by variance, (n_judges, n_variances)."""
    return _log_sum(kinds + _log(shares), axis=-1)


def _log_sum(values, axis):
    """Return the logarithm of a sum of exponentials; −∞ of no terms."""
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return _log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def _log(values):
    """Return logarithms, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(values)


# -- the likelihood by cavities --------------------------------------------------------------

# Reliabilities at which the moments of margins tell those of their two parts.
POINTS = (1.0, -1.0, 2.0)


# Mean and variance of what stays beside a scaled part of a margin, and its covariance with that.
_Beside: TypeAlias = tuple[Array, Array, Array]


class Cavities(NamedTuple):
    """Distribution of the margin of each distinct answer, given all other answers.

    What reliability multiplies is the margin itself, or a part of it, the difference of the
    utilities, with what the judge adds beside it.

    Attributes
    ----------
    mean, variance : ndarray of shape (n,)
        Of what reliability multiplies.
    copies : ndarray of shape (n,)
    answers : Answers
        Of judges.
    power : ndarray of shape (n,) or None
        See `Likelihood.tilted`.
    site_precision, site_shift : ndarray of shape (n,)
        Of the site of each copy of the answer, on the margin of its winner over its loser.
    beside : tuple of ndarray of shape (n,) or None
        Mean and variance of what stays as it is, and its covariance with what is multiplied.
    """

    mean: Array
    variance: Array
    copies: Array
    answers: Answers
    power: Array | None
    site_precision: Array
    site_shift: Array
    beside: _Beside | None = None

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        at: Sequence[Comparisons] | None = None,
        reliability: Array | None = None,
    ) -> Self:
        """Take the Gaussian site of each answer out of the posterior of its margin.

        A site reproduces the posterior's moments where the answer's probability takes its place:
        of expectation propagation its own, and of any other engine's posterior as good a one.

        Parameters
        ----------
        evaluation : Evaluation
        at : sequence of three Comparisons, optional
            The same answers with all judges of the reliabilities `POINTS`, where reliability
            multiplies a part of the margin.
        reliability : ndarray of shape (n_judges,), optional
            That of the evaluation; needed with ``at``.
        """
        problem, approximation = evaluation.problem, evaluation.approximation
        margins, n = problem.prior.margin_moments(approximation.conditioned), len(problem.rows)
        mean, variance = problem.orient_margins(margins.mean), margins.variance[problem.index]
        rest = margins.rest[problem.index]  # FITC residual variance of margins
        state, start = approximation.state, None  # of expectation propagation: of every row
        precision = approximation.sites.precision
        of_rows = (
            isinstance(precision, np.ndarray)
            and precision.ndim == 1
            and {"precision", "shift"} <= state.keys()
        )
        if of_rows and state["precision"].shape == (n,):
            start = state["precision"], state["shift"]
        factors = problem.likelihood, problem.answers, problem.power, rest
        site, tau, nu, change = matching_sites((mean, variance), *factors, start)
        lost = (change > _LEAST) | ~site.proper
        cav_mean, cav_var = site.cav_mean, site.cav_var
        if np.any(lost):  # no site reproduces moments such as Laplace's may be
            near = problem.likelihood.log_prob(mean, problem.answers)
            power = 1.0 if problem.power is None else problem.power
            near_tau = power * np.maximum(near.curvature, 0.0)
            near_nu = power * near.gradient + near_tau * mean
            near_sites = near_tau, near_nu
            plain = site_update((mean, variance), near_sites, *factors, least_share=_LEAST)
            cav_mean = np.where(lost, plain.cav_mean, cav_mean)
            cav_var = np.where(lost, plain.cav_var, cav_var)
            tau, nu = np.where(lost, near_tau, tau), np.where(lost, near_nu, nu)
        answers = problem.copies, problem.answers, problem.power
        if at is None or reliability is None:
            return cls(cav_mean, cav_var, *answers, tau, nu)
        parts = _Quadratic.from_three_moments(
            *problem.prior.margins_of(at, approximation, problem.likelihood)
        )
        parts = _Quadratic(*(part[problem.index] for part in parts))
        sign = problem.sign
        parts = parts._replace(mean=sign * parts.mean, beside=sign * parts.beside)
        own = reliability[np.asarray(problem.answers.judge)]
        parts = parts.remove_site(own, tau, nu)
        beside = parts.beside, parts.beside_variance, parts.covariance
        return cls(parts.mean, parts.variance, *answers, tau, nu, beside)

    def by_reliability(self, base: Likelihood) -> Callable[[Array], Array]:
        """Return the function from reliability to the log-likelihood of each judge's answers."""
        sums = self._by_judge()._sums
        return lambda grid: sums(base, grid)

    def _by_judge(self):
        """Return the same answers, those of a judge next to each other."""
        if self.answers.judge is None:
            raise ValueError("The answers do not say who gave them.")
        rows = np.argsort(self.answers.judge, kind="stable")
        power = None if self.power is None else self.power[rows]
        cavities = self.mean[rows], self.variance[rows], self.copies[rows]
        sites = self.site_precision[rows], self.site_shift[rows]
        beside = _take_rows(self.beside, rows)
        return Cavities(*cavities, self.answers.take(rows), power, *sites, beside)

    def _sums(self, base, reliability):
        """Return sums over each judge's answers, (n_judges, n_points); these are `_by_judge`."""
        whose = cast(NDArray[np.intp], self.answers.judge)
        total = np.zeros(reliability.shape)
        for rows in row_blocks(len(self.mean), reliability.shape[1]):
            mean, variance, copies = self.mean[rows], self.variance[rows], self.copies[rows]
            begins = np.flatnonzero(np.diff(whose[rows], prepend=-1))
            judges = whose[rows][begins]
            answers = self.answers.take(np.arange(rows.start, rows.start + len(mean)))
            power = None if self.power is None else self.power[rows]
            beside = _take_rows(self.beside, rows)
            scale = reliability[judges].T
            if np.all(scale):
                sums = base.log_normaliser_sums(
                    mean, variance, answers, copies, begins, scale, beside, power
                )
            else:
                size = np.diff(begins, append=len(mean))
                sums = np.empty(scale.shape)
                for k, each in enumerate(np.repeat(scale, size, axis=1)):
                    at = answers, power
                    if beside is None:
                        judged = JudgeReliability(base, reliability[:, k])
                        value = judged.log_normaliser(mean, variance, *at)
                    else:
                        centre = each * mean + beside[0]
                        width = each**2 * variance + beside[1] + 2.0 * each * beside[2]
                        value = base.log_normaliser(centre, width, *at)
                    sums[k] = np.add.reduceat(copies * value, begins)
            total[judges] += sums.T
        return total


def _take_rows(beside: _Beside | None, rows: Any) -> _Beside | None:
    """Return the moments of judges' own margins in some rows, None where there are none."""
    if beside is None:
        return None
    mean, variance, covariance = beside
    return mean[rows], variance[rows], covariance[rows]


class _Quadratic(NamedTuple):
    """Moments of r u + c for any r: of u, of c, and their covariance.

    Attributes
    ----------
    mean, variance, beside, beside_variance, covariance, rest, beside_rest : ndarray of shape (n,)
        ``rest`` and ``beside_rest`` are variances of independent noise of u and c.
    """

    mean: Array
    variance: Array
    beside: Array
    beside_variance: Array
    covariance: Array
    rest: Array
    beside_rest: Array

    @classmethod
    def from_three_moments(
        cls, plus: MarginMoments, minus: MarginMoments, twice: MarginMoments
    ) -> Self:
        """Return the quadratic through the margins' moments at reliabilities 1, −1 and 2."""
        covariance = 0.25 * (plus.variance - minus.variance)
        variance = np.maximum(twice.variance - plus.variance - 2.0 * covariance, 0.0) / 3.0
        beside = np.maximum(plus.variance - variance - 2.0 * covariance, 0.0)
        most = np.sqrt(variance * beside)
        mean = twice.mean - plus.mean
        rest = np.maximum(twice.rest - plus.rest, 0.0) / 3.0
        return cls(
            mean,
            variance,
            plus.mean - mean,
            beside,
            np.clip(covariance, -most, most),
            rest,
            np.maximum(plus.rest - rest, 0.0),
        )

    def remove_site(self, r: Array, precision: Array, shift: Array) -> Self:
        """Return the quadratic without a Gaussian site on r u + c, with the noise added to the
        variances."""
        u, c = r * self.variance + self.covariance, r * self.covariance + self.beside_variance
        share = np.maximum(1.0 - precision * (r * u + c), _LEAST)
        step = (precision * (r * self.mean + self.beside) - shift) / share
        gain, no = precision / share, np.zeros(len(r))
        return type(self)(
            self.mean + u * step,
            self.variance + gain * u**2 + self.rest,
            self.beside + c * step,
            self.beside_variance + gain * c**2 + self.beside_rest,
            self.covariance + gain * u * c,
            no,
            no,
        )
