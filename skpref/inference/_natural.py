"""Natural-gradient steps of the Gaussian of inducing points, and the way that they take."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._inducing import Conditioned, InducedSpace, Moments, Pull, Weights, moments
from skpref._linalg import Array, NoCovarianceError
from skpref._rows import Rows
from skpref.inference._base import Pass, State
from skpref.likelihoods import Answers, Expected, Likelihood

# Rounding of a bound, as a share of it, and the shortest step.
_ROUNDING = 1e-11
_LEAST_STEP = 1e-3
# A residual that may be left where rounding ends the way.
_ROUGH = 1e-2
# Differences of steps that are extrapolated over, those kept where that failed, and doubles of the
# matrices in them.
_MEMORY = 5
_KEPT = 2
_REMEMBERED = 2**23
# Least eigenvalue of products of these steps that counts, as a share of the largest.
_SQUARED = 1e-13


def nothing(m: int) -> Weights:
    """What no answer tells of so many points."""
    return Weights(np.zeros((m, m)), np.zeros(m))


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
        by_mean, by_variance = self.pool(self.sign * expected.by_mean), expected.by_variance
        return Pull(by_mean, self.pool(by_variance), self.pool(expected.by_noise), at)

    def pull_at(self, at: Moments) -> Pull:
        """The same under a q."""
        return self.pull(
            self.likelihood.expected(*self.seen(self.space.condition(at)), self.answers), at
        )

    def look(self, weights: Weights) -> "Look":
        """The answers seen under a q."""
        return self.look_at(moments(weights))

    def look_at(self, at: Moments) -> "Look":
        """The same of a q by its moments."""
        return self.told(at).after(self.before)

    def told(self, at: Moments) -> "Look":
        """The same of these answers alone, whatever earlier ones told."""
        margins = self.space.condition(at)
        mean, variance, rest = self.seen(margins)
        expected = self.likelihood.expected(mean, variance, rest, self.answers)
        fit = float(self.counts @ expected.value)
        pull = self.pull(expected, at)
        precision = -2.0 * pull.by_variance
        wanted = self.space.weights(pull.by_mean, precision, at)
        sites = {"precision": precision, "pull": pull.by_mean + precision * margins.mean}
        pulled = -float(self.counts @ (expected.by_noise * rest))
        return Look(at, fit, wanted, sites, pulled)

    def part(self, space: InducedSpace, rows: Rows, numbers: NDArray[np.intp]) -> Self:
        """Some of the rows, by number; ``space`` is that of their margins."""
        return type(self).of(space, rows, self.likelihood)

    def scaled(self, kernel: Kernel, factor: float) -> Self:
        """The same answers under a kernel that is so many times as large."""
        return replace(self, space=self.space.scaled(kernel, factor))


class Look(NamedTuple):
    """A batch seen under q.

    ``fit`` is the expected log-probability of its answers, ``wanted`` the q whose precision and
    shift are those of the ``sites`` on the margins that they ask for: a natural-gradient step of
    length 1. ``pulled`` is minus the derivative of the fit in the log of the variance that the
    points leave; ``goal`` what such steps raise of the answers' side, where that is not ``fit``.
    """

    at: Moments
    fit: float
    wanted: Weights
    sites: State
    pulled: float = 0.0
    goal: float | None = None

    @property
    def bound(self) -> float:
        """On the log evidence of the answers."""
        return self.fit - self.at.divergence

    @property
    def height(self) -> float:
        """What the way leads up."""
        if self.goal is None:
            return self.bound
        return self.goal - 0.5 * float(self.at.mean @ self.at.mean)

    def after(self, before: Weights | None) -> "Look":
        """The same, what earlier answers told being part of the prior."""
        if before is None:
            return self
        goal, mean = self.goal, self.at.mean
        if goal is not None:
            goal += float((before.shift - 0.5 * before.gain @ mean) @ mean)
        fit, wanted = self.fit + before.told(self.at), before.plus(self.wanted)
        return self._replace(fit=fit, wanted=wanted, goal=goal)

    def plus(self, other: "Look") -> "Look":
        """Of the answers of both, under the same q; without sites on the margins."""
        goal = None if self.goal is None or other.goal is None else self.goal + other.goal
        fit, pulled = self.fit + other.fit, self.pulled + other.pulled
        return Look(self.at, fit, self.wanted.plus(other.wanted), {}, pulled, goal)

    def residual(self, weights: Weights, wanted: Weights) -> float:
        """How far the wanted q is, in the deviations of q: about √(2 × what the bound lacks)."""
        root, gain = self.at.root, wanted.gain - weights.gain
        turn = root @ (wanted.shift - weights.shift - gain @ self.at.mean)
        return float(np.sqrt(turn @ turn + 0.5 * np.sum((root @ gain @ root.T) ** 2)))


class Ascent(NamedTuple):
    """Where a way uphill ended.

    Attributes
    ----------
    weights : Weights
    at : Moments
        Those of ``weights``.
    look : Look
        The last one.
    bound : float
    n_iter : int
    residual : float
    converged, stopped : bool
        Whether the wanted step is short; whether it ended as it was told to.
    history : list of float
        The bound at every look.
    """

    weights: Weights
    at: Moments
    look: Look
    bound: float
    n_iter: int
    residual: float
    converged: bool
    stopped: bool
    history: list[float]


def ascend(
    batch: Batch,
    weights: Weights,
    tol: float,
    max_iter: int,
    watch: Callable[[Pass], bool] | None = None,
) -> Ascent:
    """Steps that see all answers, until the wanted one is short.

    Parameters
    ----------
    batch : Batch
    weights : Weights
        Where to start.
    tol : float
        Of the wanted step, in deviations of q.
    max_iter : int
        Steps at most.
    watch : callable, optional
        Told of every `Pass`; True stops.
    """
    look, history = batch.look(weights), []
    path, stopped = Path(batch, len(weights.shift)), False
    while True:
        history.append(look.bound)
        residual = look.residual(weights, look.wanted)
        converged = residual <= tol
        stopped = watch is not None and watch(Pass(len(history), look.bound, residual))
        if converged or stopped or len(history) >= max_iter:
            break
        ahead = path.forward(weights, look)
        if ahead is None:
            converged = residual <= max(tol, _ROUGH)
            break
        weights, look = ahead
    at = look.at
    if converged:  # of sites, and so of a precision that is surely no less than the prior's
        weights, at = look.wanted, moments(look.wanted)
    run = len(history), residual, converged, stopped, history
    return Ascent(weights, at, look, look.bound, *run)


class Path:
    """The way of q uphill: Anderson's extrapolation over the last natural-gradient steps.

    Where it would lower the bound, a plain step is made, and shortened until it does not. Steps are
    then extrapolated over at that length: those of full length swing about their end where answers
    leave little room, as they do with hardly any noise.
    """

    def __init__(self, batch, m):
        rows, columns = np.tril_indices(m)
        self._batch, self._step = batch, 1.0
        self._lower, self._upper = rows * m + columns, columns * m + rows
        # So that products are those of whole matrices, which no rotation of the points changes.
        self._weight = np.where(rows == columns, 1.0, np.sqrt(2.0))
        depth, size = min(_MEMORY, _REMEMBERED // m**2), m + len(rows)
        self._points, self._moves = np.empty((2, depth, size))
        self._known, self._last = 0, None

    def forward(self, weights, look):
        """The next q and the batch seen under it; None where rounding allows no step."""
        ahead = self._extrapolated(weights, look)
        if ahead is not None:
            there = self._seen(ahead, look)
            if there is not None:
                return ahead, there
            self._forget()
        longer = 2.0
        while self._step >= _LEAST_STEP:
            ahead = weights.towards(look.wanted, self._step)
            there = self._seen(ahead, look)
            if there is not None:
                self._step = min(1.0, longer * self._step)
                return ahead, there
            self._step *= 0.5
            longer = 1.0
        return None

    def _extrapolated(self, weights, look):
        point = self._packed(weights)
        move = self._packed(look.wanted) - point
        depth, last, self._last = len(self._points), self._last, (point, move)
        if last is None or not depth:
            return None
        at = self._known % depth
        np.subtract(point, last[0], out=self._points[at])
        np.subtract(move, last[1], out=self._moves[at])
        self._known += 1
        d_points, d_moves = (each[: self._known] for each in (self._points, self._moves))
        # Walker and Ni, "Anderson acceleration for fixed-point iterations", eq. (1.1), damped;
        # by the normal equations, as a factorisation of so tall a matrix costs more than the step.
        mix = np.linalg.lstsq(d_moves @ d_moves.T, d_moves @ move, rcond=_SQUARED)[0]
        step = self._step
        return self._unpacked(point + step * move - (mix @ d_points + step * (mix @ d_moves)))

    def _forget(self):
        """All differences but the last."""
        depth, kept = len(self._points), min(self._known, _KEPT)
        newest = np.arange(self._known - kept, self._known) % depth
        for each in (self._points, self._moves):
            each[:kept] = each[newest]
        self._known = kept

    def _packed(self, weights):
        return np.concatenate([weights.shift, self._weight * weights.gain.take(self._lower)])

    def _unpacked(self, point):
        m = len(point) - len(self._lower)
        gain = np.empty((m, m))
        gain.flat[self._lower] = gain.flat[self._upper] = point[m:] / self._weight
        return Weights(gain, point[:m])

    def _seen(self, weights, look):
        """The batch under q, unless that lowers the bound."""
        try:
            there = self._batch.look(weights)
        except NoCovarianceError:  # an extrapolation too far
            return None
        low = look.height - _ROUNDING * abs(look.height)
        return there if there.height >= low else None
