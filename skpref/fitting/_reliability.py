"""How reliable each judge is: what their answers say of it, and what follows for predictions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp, ndtr

from skpref._utils import Array, row_blocks
from skpref.data import Respondents
from skpref.gp import Components, defended, pair_moments, stacked
from skpref.likelihoods import Answers, JudgeReliability, Likelihood

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


# Of a judge of whom nothing is known: points of care, and deviations that they reach.
_PRIOR_POINTS, _PRIOR_REACH = 41, 6.0
# What is expected of the shares of judges weighs as much as so many judges.
_EXPECTED = 10.0
# Deviation of the logarithm of the variance of care; variances that are weighed, a decade.
_SPREAD, _PER_DECADE = 1.5, 3
# Probability of a variance that counts.
_COUNTS = 1e-3
# Probabilities below count as it.
_TINY = 1e-300
# Steps of EM for the shares; a step of the level's logarithm, and how many at most.
_EM, _ASIDE, _FURTHER = 5, 0.2, 8


class Law(NamedTuple):
    """How care is spread among judges.

    Attributes
    ----------
    level : float
        Median care of the careful, and of the contrary without its sign.
    variances, weights : ndarray of shape (n_variances,)
        Of the logarithm of either, which is normal: what it may be, with its probability.
    contrary, random : float
        Shares of the judges who answer the wrong way round, and without looking.
    """

    level: float
    variances: Array
    weights: Array
    contrary: float
    random: float

    @classmethod
    def between(
        cls, bounds: tuple[float, float], median: float, contrary: float, random: float
    ) -> Self:
        """Before any answer: variances are log-normal about their median, within bounds."""
        low, high = np.log10(bounds)
        variances = np.logspace(low, high, int(np.ceil((high - low) * _PER_DECADE)) + 1)
        height = np.exp(-0.5 * (np.log(variances / median) / _SPREAD) ** 2)
        return cls(1.0, variances, height / height.sum(), contrary, random)

    @property
    def shares(self) -> Array:
        """Of the careful, the contrary and those who answer at random."""
        return np.array([1.0 - self.contrary - self.random, self.contrary, self.random])

    @property
    def variance(self) -> float:
        """Mean of its logarithm, exponentiated."""
        return float(np.exp(self.weights @ np.log(self.variances)))

    def relevant(self) -> Self:
        """Without variances that are out of the question."""
        some = self.weights > _COUNTS
        weights = self.weights[some] / self.weights[some].sum()
        return self._replace(variances=self.variances[some], weights=weights)

    def marginals(self) -> "Marginals":
        """Care of a judge of whom nothing is known."""
        x = np.linspace(-_PRIOR_REACH, _PRIOR_REACH, _PRIOR_POINTS)
        mass = np.exp(-0.5 * x**2) / np.exp(-0.5 * x**2).sum()
        few = self.relevant()
        deviation = np.sqrt(few.variances)[:, None]
        care = self.level * np.exp(deviation * x)
        width = (care * deviation * (x[1] - x[0])).ravel()
        mass, care = (few.weights[:, None] * mass).ravel(), care.ravel()
        weights = [share * mass for share in self.shares[:2]]
        none = np.zeros(1)
        points, widths = np.hstack([care, -care, none]), np.hstack([width, width, none])
        return Marginals(points[None], widths[None], np.append(weights, self.random)[None])


class CarePrior(NamedTuple):
    """How care is learned.

    Attributes
    ----------
    law : Law
        Where it starts; its shares are those expected.
    learned : bool
        Whether it is.
    order_variance : float or None
        Of judges' own order effects, in squared units of the utility; None: there are none.
    order_bounds : (float, float) or None
        None: it stays.
    """

    law: Law
    learned: bool
    order_variance: float | None = None
    order_bounds: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Care:
    """Posterior of the care of every judge.

    Attributes
    ----------
    law : Law
    sides : (Known, Known)
        In the logarithm of care, of the careful and of the contrary (without its sign).
    weights : ndarray of shape (n_judges, 2 × n_points + 1)
        Probabilities of the points of either, and of looking at nothing.
    level_variance : float
        Of the logarithm of the law's level, as these answers tell it at a given utility; 0 if the
        law is not learned.
    """

    law: Law
    sides: tuple[Known, Known]
    weights: Array
    level_variance: float = 0.0

    @classmethod
    def of(
        cls,
        log_likelihood: Callable[[Array], Array],
        law: Law,
        n_judges: int,
        expected: Law | None = None,
        *,
        free: bool = False,
        near: Self | None = None,
    ) -> Self:
        """Of judges whose answers have this log evidence as a function of care.

        Parameters
        ----------
        log_likelihood : callable
            See `known`.
        law : Law
            As far as it is known.
        n_judges : int
        expected : Law, optional
            As before any answer; None: the law stays as it is.
        free : bool, default=False
            Whether its level is found too.
        near : Care, optional
            Of answers and a law that are nearly the same.
        """
        told = _Told.of(log_likelihood, law, n_judges, None if near is None else near.sides)
        variance = 0.0
        if expected is not None:
            level, variance = told.best_level(law, expected)
            law = told.learned(law._replace(level=level if free else law.level), expected)
        kinds, masses = told.kinds(law), told.masses(law)
        every = _over_kinds(kinds, law.shares)
        over = np.where(np.isfinite(every), -every, -np.inf)  # not there: of no probability
        over = over + _log(law.weights)
        found = [
            np.exp(mass + (over + share)[:, None]).sum(axis=2)
            for mass, share in zip(masses, _log(law.shares[:2]), strict=True)
        ]
        found.append(np.exp(kinds[..., 2] + over + _log(law.random)).sum(axis=1)[:, None])
        weights = np.hstack(found)  # of many answers logarithms of 10⁶, and rounding in proportion
        return cls(law, told.sides, weights / weights.sum(axis=1, keepdims=True), variance)

    def marginals(self) -> Marginals:
        """Of care."""
        none = np.zeros((len(self.weights), 1))
        careful, contrary = (np.exp(each.grid) for each in self.sides)
        width = [
            care * each.step for care, each in zip((careful, contrary), self.sides, strict=True)
        ]
        return Marginals(
            np.hstack([careful, -contrary, none]), np.hstack([*width, none]), self.weights
        )


class _Told(NamedTuple):
    """What answers say of care: on grids about both levels, and of looking at nothing.

    In logarithms, as the many answers of a judge may leave a law no chance.
    """

    sides: tuple[Known, Known]
    blind: Array

    @classmethod
    def of(cls, log_likelihood, law, n_judges, near):
        about = np.log(law.level), law.variances[law.weights > _COUNTS].max(), n_judges
        sides = [
            known(lambda x, side=side: log_likelihood(side * np.exp(x)), *about, before)
            for side, before in zip((1.0, -1.0), near or (None, None), strict=True)
        ]
        return cls((sides[0], sides[1]), log_likelihood(np.zeros((n_judges, 1)))[:, 0])

    def masses(self, law):
        """Likelihood times prior at each point, (n_judges, n_points, n_variances) of both sides."""
        for each in self.sides:
            masses = normal_masses(each.grid, each.step, np.log(law.level), law.variances)
            yield each.log_likelihood[:, :, None] + _log(masses)

    def kinds(self, law):
        """Integrals of these, and of looking at nothing, (n_judges, n_variances, 3)."""
        found = [_log_sum(mass, axis=1) for mass in self.masses(law)]
        found.append(np.broadcast_to(self.blind[:, None], found[0].shape))
        return np.stack(found, axis=-1)

    def best_level(self, law, expected):
        """Under which the answers are most probable, and the variance of its logarithm."""
        some = law.weights > _COUNTS
        few = law._replace(variances=law.variances[some])

        def fit(away):
            kinds = self.kinds(few._replace(level=law.level * np.exp(away)))
            height = _log_evidence(_over_kinds(kinds, law.shares), expected.weights[some])
            return float(_log_sum(height, axis=0))

        left, at, right = -_ASIDE, 0.0, _ASIDE
        values = [fit(left), fit(at), fit(right)]
        for _ in range(_FURTHER):
            if values[1] >= max(values[0], values[2]):
                break
            towards = _ASIDE if values[2] > values[0] else -_ASIDE
            left, at, right = left + towards, at + towards, right + towards
            values = [*values[1:], fit(right)] if towards > 0.0 else [fit(left), *values[:2]]
        if not np.all(np.isfinite(values)):  # a narrow law is nowhere but at the present one
            return float(law.level * np.exp(at)), 0.0
        bend = 2.0 * values[1] - values[0] - values[2]
        off = 0.5 * _ASIDE * (values[2] - values[0]) / bend if bend > 0.0 else 0.0
        level = law.level * np.exp(at + np.clip(off, -_ASIDE, _ASIDE))
        return float(level), float(_ASIDE**2 / max(bend, _ASIDE**2))

    def learned(self, law, expected):
        """The law with its shares and what is known of its variance (EM)."""
        kinds = self.kinds(law)
        for _ in range(_EM):
            every = _over_kinds(kinds, law.shares)
            height = _log_evidence(every, expected.weights)
            weights = np.exp(height - height.max())
            weights /= weights.sum()
            some = weights > 0.0
            joint = np.exp(kinds[:, some] + _log(law.shares) - every[:, some, None])
            share = np.einsum("jtk,t->k", joint, weights[some])
            share = (share + _EXPECTED * expected.shares) / (len(kinds) + _EXPECTED)
            law = law._replace(weights=weights, contrary=float(share[1]), random=float(share[2]))
        return law


def _over_kinds(kinds, shares):
    """Log evidence of each judge's answers under each variance, (n_judges, n_variances)."""
    return _log_sum(kinds + _log(shares), axis=-1)


def _log_evidence(every, expected):
    """Of each variance, its prior probability included."""
    return every.sum(axis=0) + _log(expected)


def _log_sum(values, axis):
    """Logarithm of a sum of exponentials; −∞ where there is nothing."""
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return _log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def _log(values):
    """Logarithms, −∞ of nothing."""
    with np.errstate(divide="ignore"):
        return np.log(values)


# Doubles of one intermediate array.
_BLOCK = 2**19


class Cavities(NamedTuple):
    """What all answers but one say of its margin, a row a distinct answer.

    Attributes
    ----------
    mean, variance : ndarray of shape (n,)
    copies : ndarray of shape (n,)
    answers : Answers
        Of judges.
    power : ndarray of shape (n,) or None
        See `Likelihood.tilted`.
    """

    mean: Array
    variance: Array
    copies: Array
    answers: Answers
    power: Array | None

    @property
    def judge(self) -> NDArray[np.intp]:
        """Of each row."""
        if self.answers.judge is None:
            raise ValueError("The answers do not say who gave them.")
        return self.answers.judge

    def by_care(self, base: Likelihood, own_order: Array | None) -> Callable[[Array], Array]:
        """Log evidence of every judge's answers as a function of care; the rest is held."""

        def log_likelihood(grid):
            order = None if own_order is None else np.repeat(own_order, grid.shape[1])
            return self._summed(grid.shape, JudgeReliability(base, grid.ravel(), order))

        return log_likelihood

    def by_order(self, base: Likelihood, care: Array) -> Callable[[Array], Array]:
        """The same of own order effects."""

        def log_likelihood(grid):
            likelihood = JudgeReliability(base, np.repeat(care, grid.shape[1]), grid.ravel())
            return self._summed(grid.shape, likelihood)

        return log_likelihood

    def _summed(self, shape, likelihood):
        """Sums over the answers of each judge, one a point of their grid."""
        total = np.zeros(shape)
        for rows in row_blocks(len(self.mean), shape[1], _BLOCK):
            each = np.repeat(np.arange(len(self.mean))[rows], shape[1])
            judge = self.judge[rows]
            place = judge[:, None] * shape[1] + np.arange(shape[1])
            told = self.answers.take(each)._replace(judge=place.ravel())
            power = None if self.power is None else self.power[each]
            found = likelihood.log_normaliser(self.mean[each], self.variance[each], told, power)
            value = self.copies[each] * found
            np.add.at(total, judge, value.reshape(place.shape))
        return total


# Judges that are written out.
_SHOWN = 10
# Of the uncertainty of the common level.
_LEVEL_NODES = 9
_INTERVAL_BISECTIONS = 80
# Logarithms of a noise relative to the common level, between which its quantiles are looked for.
_WIDEST = 60.0


@dataclass(frozen=True, eq=False, repr=False)
class Judges:
    """Judges of one truth, and how much care each takes.

    The care of a judge multiplies the margin before the noise of the common level is added: 1 is
    the common level, 0 answers at random, below 0 the wrong way round; the judge's own noise has
    variance σ²/care².

    Attributes
    ----------
    ids : ndarray of shape (n_judges,)
        In order of first appearance.
    n_answers : ndarray of int of shape (n_judges,)
    care : ndarray of shape (n_judges,)
        Posterior means.
    noise_variance : ndarray of shape (n_judges,)
        Of the judge's noise on the utility of each item: σ²/care²; infinite for one without care.
    order_effect : ndarray of shape (n_judges,) or None
        What a judge adds, beside the common order effect and in units of the common noise, to what
        is shown first; None unless asked for (``judge_order_variance``).
    probability_random, probability_contrary : ndarray of shape (n_judges,)
        That the judge looks at nothing; that care is negative.
    law : Law
        How care is spread among judges.

    Notes
    -----
    Intervals are central and of the posterior given the kernel's hyperparameters. Those of care
    are relative to the common level; those of the noise also hold that this level itself is known
    from the answers alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> duels = rng.uniform(size=(200, 2, 1))
    >>> right = (duels[:, 0, 0] > duels[:, 1, 0]).astype(int)
    >>> judges = np.repeat(["ann", "bob"], 100)
    >>> y = np.where(judges == "ann", right, rng.integers(0, 2, 200))
    >>> model = PairwisePreferenceRegressor().fit(duels, y, judges=judges)
    >>> [str(name) for name in model.judges_.ids[model.judges_.care > 0.5]]
    ['ann']
    """

    respondents: Respondents
    n_answers: NDArray[np.intp]
    law: Law
    marginals: Marginals
    order: Marginals | None
    common_noise: float
    order_variance: float = 0.0
    level_deviation: float = 0.0

    def __len__(self) -> int:
        return len(self.respondents)

    @property
    def ids(self) -> NDArray[Any]:
        """Ids in order of first appearance."""
        return self.respondents.names

    @property
    def care(self) -> Array:
        """Posterior means."""
        return self.marginals.mean

    @property
    def noise_variance(self) -> Array:
        """Variance of the noise on the utility of each item."""
        with np.errstate(divide="ignore"):
            return self.common_noise / self.care**2

    @property
    def order_effect(self) -> Array | None:
        """Posterior means of own order effects."""
        return None if self.order is None else self.order.mean

    @property
    def probability_random(self) -> Array:
        """That a judge looks at nothing."""
        return self.marginals.weights[:, -1]

    @property
    def probability_contrary(self) -> Array:
        """That care is negative."""
        return self.marginals.cdf(0.0, below=True)

    def care_interval(self, level: float = 0.95) -> Array:
        """Central intervals of care, shape (n_judges, 2)."""
        return self._interval(self.marginals.quantile, level)

    def order_effect_interval(self, level: float = 0.95) -> Array:
        """Central intervals of own order effects, shape (n_judges, 2)."""
        if self.order is None:
            raise ValueError(
                "Order effects of judges' own were not asked for: set judge_order_variance, such "
                "as judge_order_variance=0.01, and fit."
            )
        return self._interval(self.order.quantile, level)

    def noise_interval(self, level: float = 0.95) -> Array:
        """Central intervals of the noise variance, shape (n_judges, 2); infinite: no care."""
        return self._interval(self._noise_quantile, level)

    def _interval(self, quantile: Callable[[float], Array], level: float) -> Array:
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        return np.stack([quantile(0.5 - 0.5 * level), quantile(0.5 + 0.5 * level)], axis=1)

    def _noise_quantile(self, level):
        n = len(self)
        low, high = np.full(n, -_WIDEST), np.full(n, _WIDEST)
        for _ in range(_INTERVAL_BISECTIONS):
            middle = 0.5 * (low + high)
            under = self._noise_cdf(middle) < level
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        with np.errstate(over="ignore"):
            found = self.common_noise * np.exp(high)
        return np.where(high >= _WIDEST - 1e-6, np.inf, found)

    def _noise_cdf(self, log_ratio):
        """P(log noise over the common level ≤ this), shape (n_judges,)."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_LEVEL_NODES)
        if not self.level_deviation:
            nodes, weights = np.zeros(1), np.ones(1)
        total = np.zeros(len(self))
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            least = np.exp(-0.5 * log_ratio - node * self.level_deviation)  # of |care|
            total += weight * (
                1.0 - self.marginals.cdf(least, below=True) + self.marginals.cdf(-least)
            )
        return total

    def to_frame(self, level: float = 0.95) -> Any:
        """A pandas DataFrame, a row a judge, the most careful first.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        """
        import pandas as pd

        care, noise = self.care_interval(level), self.noise_interval(level)
        columns: dict[str, Any] = {
            "n_answers": self.n_answers,
            "care": self.care,
            "care_low": care[:, 0],
            "care_high": care[:, 1],
            "noise_variance": self.noise_variance,
            "noise_low": noise[:, 0],
            "noise_high": noise[:, 1],
            "probability_random": self.probability_random,
            "probability_contrary": self.probability_contrary,
        }
        if self.order is not None:
            order = self.order_effect_interval(level)
            columns |= {
                "order_effect": self.order_effect,
                "order_effect_low": order[:, 0],
                "order_effect_high": order[:, 1],
            }
        ids = pd.Index(self.ids, name="judge", dtype=object, tupleize_cols=False)
        frame = pd.DataFrame(columns, index=ids)
        return frame.iloc[np.argsort(-self.care, kind="stable")]

    def __repr__(self) -> str:
        order = np.argsort(-self.care, kind="stable")
        interval = self.care_interval()
        lines = [f"Judges: {len(self)}, care with 95 % intervals (1: the common level)"]
        shown = order
        if len(order) > 2 * _SHOWN:
            shown = np.concatenate([order[:_SHOWN], order[-_SHOWN:]])
        names = [str(name) for name in self.ids[shown]]
        width = max((len(name) for name in names), default=0)
        for name, k in zip(names, shown, strict=True):
            # 0 without a sign
            care, low, high = np.round([self.care[k], *interval[k]], 2) + 0.0
            lines.append(
                f"  {name:<{width}}  {care:6.2f}  [{low:6.2f}, {high:6.2f}]  "
                f"{self.n_answers[k]} answers"
            )
        if len(shown) < len(order):
            lines.insert(1 + _SHOWN, f"  … {len(order) - len(shown)} more")
        return "\n".join(lines)


# Points of care that probabilities are averaged over, and of own order effects.
_CARE_POINTS, _ORDER_NODES = 40, 7


@dataclass(frozen=True, eq=False)
class Sight:
    """How the judges of some duels see them.

    Attributes
    ----------
    code : ndarray of shape (n,)
        Of the judge of each duel: a row of what follows.
    care, weight : ndarray of shape (n_codes, n_points)
        Points of care, and their probabilities.
    order, order_deviation : ndarray of shape (n_codes,)
        Own order effects.
    """

    code: NDArray[np.intp]
    care: Array
    weight: Array
    order: Array
    order_deviation: Array

    @classmethod
    def of(cls, judges: Judges, ids: list) -> Self:
        """Of judges by their ids: one never seen is any judge, None one of the common level."""
        n = len(judges)
        code = judges.respondents.codes(ids)
        code = np.where(code < -1, n, np.where(code == -1, n + 1, code))
        one = np.ones((1, 1))
        parts = judges.marginals, judges.law.marginals(), Marginals(one, 0.0 * one, one)
        care, weight = zip(*(_condensed(part) for part in parts), strict=True)
        order, deviation = np.zeros((2, n + 2))
        if judges.order is not None:
            order[:n], deviation[:n] = judges.order.mean, np.sqrt(judges.order.variance)
            deviation[n] = np.sqrt(judges.order_variance)
        return cls(code, np.vstack(care), np.vstack(weight), order, deviation)

    def take(self, rows: slice) -> Self:
        """Of some of the duels."""
        return replace(self, code=self.code[rows])

    def margin(self, margin: Array, order: Array) -> Array:
        """Mean of what judges see of these margins."""
        care = np.sum(self.care * self.weight, axis=1)
        return care[self.code] * margin + self.order[self.code] * order

    def outcome_log_proba(
        self, posterior: Components, first: Array, second: Array, order: Array
    ) -> Array:
        """Log-probabilities of the outcomes of duels, (n, n_outcomes), care averaged over.

        Parameters
        ----------
        posterior : Posterior
            Its likelihood is that of a judge of the common level.
        first, second : ndarray of shape (n, n_features)
        order : ndarray of shape (n,)
            Who is shown first.
        """
        empty = (0, posterior.likelihood.n_outcomes)
        blocks = (
            defended(
                self.take(each.rows)._of(posterior.likelihood),
                each.means,
                each.variance,
                order[each.rows],
                True,
            )
            for each in pair_moments(posterior, first, second)
        )
        found = stacked(list(blocks), empty)
        return found - logsumexp(found, axis=1, keepdims=True)

    def _of(self, likelihood):
        """Averages of its log-probabilities over what is not known of judges."""
        nodes, shares = np.polynomial.hermite_e.hermegauss(_ORDER_NODES)
        if not np.any(self.order_deviation):
            nodes, shares = np.zeros(1), np.ones(1)
        used = np.flatnonzero(np.any(self.weight[np.unique(self.code)] > 0.0, axis=0))

        def of(mean, variance, order):
            shape = (-1,) + (1,) * (np.ndim(mean) - 1)
            total = None
            for node, share in zip(nodes, shares / shares.sum(), strict=True):
                own = self.order + node * self.order_deviation
                ahead = own[self.code].reshape(shape) * order
                for k in used:
                    care = self.care[self.code, k].reshape(shape)
                    at = likelihood.outcome_log_proba(
                        care * mean + ahead, care**2 * variance, order
                    )
                    with np.errstate(divide="ignore"):
                        at += np.log(share * self.weight[self.code, k]).reshape((*shape, 1))
                    total = at if total is None else np.logaddexp(total, at, out=total)
            return total

        return of


def _condensed(found: Marginals) -> tuple[Array, Array]:
    """A few points with the same mean and nearly the same variance, padded by nothing.

    Neighbours of about equal probability together are one point, at their mean.
    """
    order = np.argsort(found.points, axis=1, kind="stable")
    points, weights = (
        np.take_along_axis(each, order, axis=1) for each in (found.points, found.weights)
    )
    middle = np.cumsum(weights, axis=1) - 0.5 * weights
    group = np.minimum((middle * _CARE_POINTS).astype(np.intp), _CARE_POINTS - 1)
    at = (np.arange(len(points))[:, None] * _CARE_POINTS + group).ravel()
    total = np.bincount(at, weights.ravel(), len(points) * _CARE_POINTS)
    centre = np.bincount(at, (weights * points).ravel(), len(points) * _CARE_POINTS)
    points = centre / np.where(total > 0.0, total, 1.0)
    return points.reshape(-1, _CARE_POINTS), np.asarray(total, np.float64).reshape(-1, _CARE_POINTS)
