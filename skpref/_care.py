"""How much care each judge takes: what their answers say of it, and how it differs among judges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skpref._linalg import Array
from skpref._marginals import Known, Marginals, known, normal_masses

# Of a judge of whom nothing is known: points of care, and deviations that they reach.
_POINTS, _REACH = 41, 6.0
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
        x = np.linspace(-_REACH, _REACH, _POINTS)
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
