"""Answers a batch at a time: stochastic natural-gradient steps, and sums over all batches.

Stochastic steps come near the end within a few passes, and then swing about it. What all batches
want of one q, added up, has none of that noise: steps that see these sums go the rest of the way,
to the end of a run that has all answers in memory at once.
"""

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from skpref._inducing import InducedSpace, Weights, moments
from skpref._rows import gathered_rows
from skpref.inference._base import Pass, Problem
from skpref.inference._natural import Batch, Look
from skpref.inference._output_scale import Gamma, rescaled, updated, with_scale

# A pass whose residual is more than so much of the last one's is noise for the most part.
_FALLS = 0.5


class InBatches:
    """All answers of a problem, so many in memory at once; what `Path` needs of a `Batch`.

    Parameters
    ----------
    problem : Problem
    answers : Batch
        All of them, of any kind of `Batch`; its space may be of another output scale.
    size : int
        Rows of a batch.
    """

    def __init__(self, problem: Problem, answers: Batch, size: int):
        self._problem, self._answers, self.size = problem, answers, size

    @property
    def space(self) -> InducedSpace:
        """The prior of all margins."""
        return self._answers.space

    def each(self, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """All rows once, in random order if there is a generator."""
        space, rows = self.space, self._problem.rows
        order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
        for k in range(0, len(order), self.size):
            numbers = np.sort(order[k : k + self.size])
            used, part = gathered_rows(rows, numbers)
            there = InducedSpace(space.kernel, space.items[used], part.margins, space.Z, space)
            yield self._answers.part(there, part, numbers)

    def look(self, weights: Weights) -> Look:
        """All answers seen under a q; sites on the margins are not kept."""
        at = moments(weights)
        told = reduce(Look.plus, (batch.told(at) for batch in self.each()))
        return told.after(self._answers.before)

    def scaled(self, kernel: Kernel, factor: float) -> "InBatches":
        """The same answers under a kernel that is so many times as large."""
        return InBatches(self._problem, self._answers.scaled(kernel, factor), self.size)


class Schedule(NamedTuple):
    """Of the stochastic steps.

    Attributes
    ----------
    rate, delay : float
        Step t has length (t + delay)^−rate (Hoffman et al. 2013, eq. 26).
    max_iter : int
        Passes at most.
    """

    rate: float
    delay: float
    max_iter: int


class Drift(NamedTuple):
    """Where stochastic steps ended.

    Attributes
    ----------
    weights : Weights
        Mean of those of the last pass.
    scale : float
        The kernel's output scale that they belong to.
    stopped : bool
        Whether it ended as it was told to.
    history : list of float
        Estimates of the bound by every step.
    smoothed : list of float
        Their mean over every pass, by the weight of the answers that they saw.
    """

    weights: Weights
    scale: float
    stopped: bool
    history: list[float]
    smoothed: list[float]


def drift(
    problem: Problem,
    answers: InBatches,
    weights: Weights,
    schedule: Schedule,
    prior: Gamma | None = None,
    scale: float = 1.0,
) -> Drift:
    """Take stochastic steps while they come nearer, and average those of the last pass.

    A pass sees every answer once, so that the sum of what its batches wanted, less the mean of q
    over the pass, is free of the batches' differences: it falls from pass to pass until noise is
    all that is left of it. The mean of the pass's natural parameters (Polyak and Juditsky 1992) is
    free of most of that noise.

    Parameters
    ----------
    problem : Problem
    answers : InBatches
    weights : Weights
        Where to start.
    schedule : Schedule
    prior : Gamma, optional
        Of the kernel's inverse output scale.
    scale : float
        The output scale of ``weights``.
    """
    rng, total, m = np.random.default_rng(0), float(problem.rows.counts.sum()), len(weights.shift)
    now = None if prior is None else Gamma(prior.shape + 0.5 * m, 1.0).around(1.0 / scale)
    history: list[float] = []
    smoothed: list[float] = []
    falls, stopped, last = True, False, (weights, scale)
    residual, t = np.inf, 0
    while falls and not stopped and len(smoothed) < schedule.max_iter:
        level, mean, wanted = 0.0, _Mean(m), _Mean(m)
        for batch in answers.each(rng):
            t += 1
            length = min((t + schedule.delay) ** -schedule.rate, 1.0)
            share = total / float(batch.counts.sum())
            inverse = 1.0 if now is None else now.mean
            batch = batch if now is None else _under(batch, now)
            look = batch.look(weights)
            history.append(share * look.fit - look.at.divergence + _gap(now, prior, m))
            level += history[-1] / share
            asked = look.wanted.scaled(share)
            wanted.add(asked, inverse, 1.0 / share)
            weights = weights.towards(asked, length)
            if now is not None and prior is not None:
                aim = updated(prior, now, look.at, share * look.pulled)
                ahead = now.around(now.mean * (aim.mean / now.mean) ** length)
                weights, now = rescaled(weights, now.mean / ahead.mean), ahead
            mean.add(weights, 1.0 if now is None else now.mean)
        smoothed.append(level)
        end, inverse = mean.value
        before, residual = residual, _apart(end, wanted.under(inverse))
        falls = residual <= _FALLS * before
        watch = problem.watch
        stopped = watch is not None and watch(Pass(len(smoothed), level, residual))
        last = end, 1.0 / inverse
    return Drift(*last, stopped, history, smoothed)


def _apart(weights, wanted):
    """How far the wanted q is, in the deviations of q."""
    return Look(moments(weights), 0.0, wanted, {}).residual(weights, wanted)


class _Mean:
    """Mean of natural parameters; those of different scales are averaged under a common one."""

    def __init__(self, m):
        self._weight, self._inverse = 0.0, 0.0
        self._gain, self._shift = np.zeros((m, m)), np.zeros(m)

    def add(self, weights, inverse, weight=1.0):
        self._weight += weight
        self._inverse += weight * inverse
        self._gain += weight * inverse * weights.gain
        self._shift += weight * np.sqrt(inverse) * weights.shift

    def under(self, inverse):
        """For the kernel over this."""
        one = self._weight * inverse
        return Weights(self._gain / one, self._shift * np.sqrt(inverse) / one)

    @property
    def value(self):
        """For the kernel over the mean, and that."""
        inverse = self._inverse / self._weight
        return self.under(inverse), inverse


def _gap(now, prior, m):
    return 0.0 if now is None else now.bound(prior, m)


def _under(batch, now):
    """The batch under the kernel of the present output scale."""
    return batch.scaled(with_scale(batch.space.kernel, 1.0 / now.mean), 1.0 / now.mean)
