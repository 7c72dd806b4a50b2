"""Natural-gradient steps of the Gaussian of inducing points, and the way that they take."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._inducing import Conditioned, InducedSpace, Moments, Pull, Weights, moments
from skpref._linalg import Array, NoCovarianceError
from skpref._rows import Rows
from skpref.inference._base import State
from skpref.likelihoods import Answers, Expected, Likelihood

# Rounding of a bound, as a share of it, and the shortest step.
_ROUNDING = 1e-11
_LEAST_STEP = 1e-3
# Steps that are extrapolated over, and doubles that they may take.
_MEMORY = 5
_REMEMBERED = 2**23


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of answers and the prior of their margins."""

    space: InducedSpace
    likelihood: Likelihood
    index: NDArray[np.intp]
    sign: NDArray[np.float64]
    counts: NDArray[np.float64]
    answers: Answers
    before: Weights | None = None  # what earlier answers told, as part of the prior

    @classmethod
    def of(
        cls,
        space: InducedSpace,
        rows: Rows,
        likelihood: Likelihood,
        before: Weights | None = None,
    ) -> Self:
        margins = rows.margins
        told = rows.counts, rows.answers
        return cls(space, likelihood, margins.index, margins.sign, *told, before)

    def pool(self, values):
        """Sum over the rows on each margin."""
        return np.bincount(self.index, self.counts * values, self.space.n_margins)

    def seen(self, margins: Conditioned) -> tuple[Array, Array, Array]:
        """Of the margin of every row, as its winner over its loser: mean, variance, and rest."""
        mean, variance, rest = (each[self.index] for each in margins)
        return self.sign * mean, variance, rest

    def pull(self, expected: Expected, at: Moments) -> Pull:
        """Slopes of the bound in the margins' moments."""
        by_mean, rest = self.sign * expected.by_mean, expected.by_noise
        return Pull(*map(self.pool, (by_mean, expected.by_variance, rest)), at)

    def look(self, weights: Weights) -> "Look":
        """The answers seen under a q."""
        at = moments(weights)
        margins = self.space.condition(at)
        expected = self.likelihood.expected(*self.seen(margins), self.answers)
        fit = float(self.counts @ expected.value)
        pull = self.pull(expected, at)
        precision = -2.0 * pull.by_variance
        wanted = self.space.weights(pull.by_mean, precision, at)
        sites = {"precision": precision, "pull": pull.by_mean + precision * margins.mean}
        if self.before is None:
            return Look(at, fit, wanted, sites)
        return Look(at, fit + self.before.told(at), self.before.plus(wanted), sites)


class Look(NamedTuple):
    """A batch seen under q.

    ``fit`` is the expected log-probability of its answers, ``wanted`` the q whose precision and
    shift are those of the ``sites`` on the margins that they ask for: a natural-gradient step of
    length 1.
    """

    at: Moments
    fit: float
    wanted: Weights
    sites: State

    @property
    def bound(self):
        return self.fit - self.at.divergence

    def residual(self, weights, wanted):
        """How far the wanted q is, in the deviations of q: about √(2 × what the bound lacks)."""
        root, gain = self.at.root, wanted.gain - weights.gain
        turn = root @ (wanted.shift - weights.shift - gain @ self.at.mean)
        return float(np.sqrt(turn @ turn + 0.5 * np.sum((root @ gain @ root.T) ** 2)))


def fit_of(batches, at):
    """Expected log-probability of the answers of all batches, under one q."""
    found = 0.0
    for batch in batches:
        seen = batch.seen(batch.space.condition(at))
        expected = batch.likelihood.expected(*seen, batch.answers)
        found += float(batch.counts @ expected.value)
    return found


class Path:
    """The way of q uphill: Anderson's extrapolation over the last natural-gradient steps.

    Where it would lower the bound, a plain step is made, and shortened until it does not.
    """

    def __init__(self, batch, m):
        depth = min(_MEMORY, _REMEMBERED // m**2)
        self._batch, self._step = batch, 1.0
        self._points, self._moves = deque(maxlen=depth + 1), deque(maxlen=depth + 1)

    def forward(self, weights, look):
        """The next q and the batch seen under it; None where rounding allows no step."""
        ahead = self._extrapolated(weights, look)
        if ahead is not None:
            there = self._seen(ahead, look)
            if there is not None:
                return ahead, there
            self._points.clear()
            self._moves.clear()
        while self._step >= _LEAST_STEP:
            ahead = weights.towards(look.wanted, self._step)
            there = self._seen(ahead, look)
            if there is not None:
                self._step = min(1.0, 2.0 * self._step)
                return ahead, there
            self._step *= 0.5
        return None

    def _extrapolated(self, weights, look):
        m = len(weights.shift)
        point = np.concatenate([weights.gain.ravel(), weights.shift])
        move = np.concatenate([look.wanted.gain.ravel(), look.wanted.shift]) - point
        self._points.append(point)
        self._moves.append(move)
        if len(self._points) < 2:
            return None
        d_points, d_moves = np.diff(self._points, axis=0), np.diff(self._moves, axis=0)
        # Walker and Ni, "Anderson acceleration for fixed-point iterations", 2011, eq. (1.1)
        mix = np.linalg.lstsq(d_moves.T, move, rcond=1e-8)[0]
        target = point + move - mix @ (d_points + d_moves)
        return Weights(target[:-m].reshape(m, m), target[-m:])

    def _seen(self, weights, look):
        """The batch under q, unless that lowers the bound."""
        try:
            there = self._batch.look(weights)
        except NoCovarianceError:  # an extrapolation too far
            return None
        low = look.bound - _ROUNDING * abs(look.bound)
        return there if there.bound >= low else None
