"""The linearised update of source [1]_, like an extended Kalman filter's, for comparison.

The duels of a pair are one observation of the probability Φ(ẑ) that its first item wins: of n won
and l lost the share y = n/(n + l), with the variance Q of Beta(1 + n, 1 + l). About the present
mean of the margin, Φ is replaced by its tangent of slope g, which makes a Gaussian site of
precision g²/Q and shift g/Q (y − Φ(ẑ) + g × margin). Where that ends, the mean is one at which
½ Σ (y − Φ(ẑ))²/Q + ½ meanᵀ K⁻¹ mean is stationary, and the covariance (K⁻¹ + Gᵀ Q⁻¹ G)⁻¹. That sum
of squares is not convex: where answers contradict their neighbours there may be several ends, and
which one is reached depends on the start.

It promises no bound, and no calibration: the spread of the margin plays no part in its site.

The source's bound has the labels y themselves, and the beta distribution enters Q alone; its update
prints (1 + Σ y)/P for y. (The authors' code has y in both, and for Q the binomial variance of y at
the mean of a beta whose prior is fitted.) The source also has exp(−ẑ²/2)/(2π) for the slope of
Φ((f_v − f_u)/√2), which is exp(−ẑ²/2)/(2√π), negative in f_u; and −g × margin for + g × margin.

.. [1] Simpson and Gurevych, "Finding convincing arguments using scalable Bayesian preference
   learning", TACL 2018.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._inducing import InducedSpace, Moments, Weights
from skpref._linalg import Array
from skpref._observations import Observations
from skpref._rows import Rows
from skpref.inference._natural import Batch, Look
from skpref.likelihoods import TIE, Likelihood


class Tally(NamedTuple):
    """What the duels of a pair come to, a row each for whoever won.

    Attributes
    ----------
    chance : ndarray of shape (n_rows,)
        Share of the pair's duels that the row's winner won.
    variance : ndarray of shape (n_rows,)
        Of the beta distribution of the probability that they win, from a uniform one.
    share : ndarray of shape (n_rows,)
        Of the pair's duels that are in the row: the same, unless rows differ in more than that.
    """

    chance: Array
    variance: Array
    share: Array

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Of all rows of a problem."""
        margins = rows.margins
        index, ahead = margins.index, margins.sign > 0.0
        n = len(margins.first)
        total = np.bincount(index, rows.counts, n)[index]
        first = np.bincount(index, rows.counts * ahead, n)[index]
        won = np.where(ahead, first, total - first)
        mean = (1.0 + won) / (2.0 + total)
        return cls(won / total, mean * (1.0 - mean) / (3.0 + total), rows.counts / total)

    def take(self, numbers: NDArray[np.intp]) -> Self:
        """Some of the rows."""
        return type(self)(*(each[numbers] for each in self))


_NONE = Tally(*np.zeros((3, 0)))


@dataclass(frozen=True, eq=False)
class Linearised(Batch):
    """A `Batch` whose looks want the linearised update; their bound is the true one of q."""

    tally: Tally = _NONE

    @classmethod
    def of(
        cls,
        space: InducedSpace,
        rows: Rows,
        likelihood: Likelihood,
        before: Weights | None = None,
    ) -> Self:
        """All rows of a problem, see `Batch.of`."""
        return replace(super().of(space, rows, likelihood, before), tally=Tally.of(rows))

    def part(self, space: InducedSpace, rows: Rows, numbers: NDArray[np.intp]) -> Self:
        """Some of the rows; a pair's observation is that of all of its duels."""
        return replace(super().part(space, rows, numbers), tally=self.tally.take(numbers))

    def told(self, at: Moments) -> Look:
        """The answers seen under a q; the steps wanted lower the sum of squares of its mean."""
        look = super().told(at)
        margins, tally = self.space.condition(at), self.tally
        log_chance, slope, *_ = self.likelihood.log_prob(
            self.sign * margins.mean[self.index], self.answers
        )
        chance = np.exp(log_chance)
        slope = chance * slope
        weight, off = tally.share / tally.variance, tally.chance - chance
        by_mean, precision = (
            np.asarray(np.bincount(self.index, each, self.space.n_margins), dtype=np.float64)
            for each in (self.sign * weight * slope * off, weight * slope**2)
        )
        wanted = self.space.weights(by_mean, precision, at)
        sites = {"precision": precision, "pull": by_mean + precision * margins.mean}
        goal = -0.5 * float(weight @ off**2)
        # the update does not see variances
        return look._replace(wanted=wanted, sites=sites, pulled=0.0, goal=goal)


def check_linear(observations: Observations, likelihood: Likelihood) -> None:
    """Raise ValueError if there is more to the answers than who won a pair's duels."""
    ties = TIE in likelihood.kinds or bool(np.any(observations.rows.kind == TIE))
    judged = observations.judge is not None
    if ties or likelihood.uses_order or judged:
        what = "ties (a tie_threshold)" if ties else "an order effect"
        what = "judges" if judged else what
        raise ValueError(
            f"SVI(local='ekf') takes a pair's duels as shares of wins and knows no {what}. Use "
            "SVI(local='expected'), or another engine such as inference='ep'."
        )
