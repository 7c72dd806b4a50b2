"""Stochastic natural-gradient steps: each sees some of the answers."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skpref._inducing import InducedSpace, Weights, moments
from skpref._rows import gathered_rows
from skpref.inference._base import Pass, Problem
from skpref.inference._natural import Batch, fit_of, nothing
from skpref.inference._output_scale import Gamma, rescaled, updated, with_scale


class Schedule(NamedTuple):
    """Of the steps.

    Attributes
    ----------
    size : int
        Rows that a step sees.
    rate, delay : float
        Step t has length (t + delay)^−rate (Hoffman et al. 2013, eq. 26).
    tol : float
        It ends once two passes raise the smoothed bound by less each, in nats an answer.
    max_iter : int
        Passes at most.
    """

    size: int
    rate: float
    delay: float
    tol: float
    max_iter: int


class Drift(NamedTuple):
    """Where the steps ended.

    Attributes
    ----------
    weights : Weights
        Mean of those of the last pass, or a step from it that all answers ask for.
    inverse_scale : Gamma or None
        q of the kernel's inverse output scale.
    bound : float
        Of these, on all answers.
    n_iter : int
    residual : float
        What each of the last two passes raised the smoothed bound by, in nats an answer.
    converged, stopped : bool
    history : list of float
        Estimates of the bound by every step.
    smoothed : list of float
        Their mean over every pass, by the weight of the answers that they saw.
    """

    weights: Weights
    inverse_scale: Gamma | None
    bound: float
    n_iter: int
    residual: float
    converged: bool
    stopped: bool
    history: list[float]
    smoothed: list[float]


def drift(
    problem: Problem,
    kind: type[Batch],
    weights: Weights,
    schedule: Schedule,
    prior: Gamma | None = None,
    scale: float = 1.0,
) -> Drift:
    """Take steps until the bound no longer rises, and average those of the last pass.

    A pass sees every answer once, so that its mean bound is free of the batches' differences. The
    mean of its natural parameters (Polyak and Juditsky 1992) is free of most of their noise, and a
    last step that adds up what all batches want, if it raises the bound, of most of the rest.

    Parameters
    ----------
    problem : Problem
    kind : type
        `Batch` or one that looks otherwise.
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
    answers = kind.of(problem.space, problem.rows, problem.likelihood)
    history: list[float] = []
    smoothed: list[float] = []
    converged = stopped = False
    residual, t = np.inf, 0
    while not (converged or stopped or len(smoothed) >= schedule.max_iter):
        bounds, level, mean = [], 0.0, _Mean(m)
        for batch in batches(problem, answers, schedule.size, rng):
            t += 1
            length = min((t + schedule.delay) ** -schedule.rate, 1.0)
            share = total / float(batch.counts.sum())
            batch = _under(batch, now)
            look = batch.look(weights)
            apart = look.at.divergence - _gap(now, prior, m)
            bounds.append(share * look.fit - apart)
            level += bounds[-1] / share
            if now is not None and prior is not None:
                wanted = updated(prior, now, look.at, share * look.pulled)
                ahead = now.around(now.mean * (wanted.mean / now.mean) ** length)
            weights = weights.towards(look.wanted.scaled(share), length)
            if now is not None:
                weights, now = rescaled(weights, now.mean / ahead.mean), ahead
            mean.add(weights, 1.0 if now is None else now.mean)
        history += bounds
        smoothed.append(level)
        if len(smoothed) > 2:
            residual = 0.5 * (smoothed[-1] - smoothed[-3]) / total
            converged = residual <= schedule.tol
        watch = problem.watch
        stopped = watch is not None and watch(Pass(len(smoothed), smoothed[-1], residual))
    weights, inverse = mean.value
    now = None if now is None else now.around(inverse)

    def every():
        return (_under(batch, now) for batch in batches(problem, answers, schedule.size, rng))

    weights, bound = _closed(every, weights)
    bound += _gap(now, prior, m)
    run = len(smoothed), max(residual, 0.0), converged, stopped, history, smoothed
    return Drift(weights, now, bound, *run)


def _closed(every, weights):
    """The end of a step of length 1 that all answers ask for, if that raises the bound."""
    at, wanted, fit = moments(weights), nothing(len(weights.shift)), 0.0
    for batch in every():
        look = batch.look_at(at)
        wanted, fit = wanted.plus(look.wanted), fit + look.fit
    ends = [(weights, fit - at.divergence)]
    there = moments(wanted)
    ends.append((wanted, fit_of(every(), there) - there.divergence))
    return max(ends, key=lambda end: end[1])


class _Mean:
    """Mean of natural parameters; those of different scales are averaged under a common one."""

    def __init__(self, m):
        self._n, self._inverse = 0, 0.0
        self._gain, self._shift = nothing(m)

    def add(self, weights, inverse):
        self._n += 1
        self._inverse += inverse
        self._gain += inverse * weights.gain
        self._shift += np.sqrt(inverse) * weights.shift

    @property
    def value(self):
        inverse = self._inverse / self._n
        gain, shift = self._gain / (self._n * inverse), self._shift / (self._n * np.sqrt(inverse))
        return Weights(gain, shift), inverse


def _gap(now, prior, m):
    return 0.0 if now is None else now.bound(prior, m)


def _under(batch, now):
    """The batch under the kernel of the present output scale."""
    if now is None:
        return batch
    return batch.scaled(with_scale(batch.space.kernel, 1.0 / now.mean), 1.0 / now.mean)


def batches(
    problem: Problem, answers: Batch, size: int, rng: np.random.Generator
) -> Iterator[Batch]:
    """All rows once, in random order."""
    space, rows = problem.space, problem.rows
    order = rng.permutation(len(rows))
    for k in range(0, len(order), size):
        numbers = np.sort(order[k : k + size])
        used, part = gathered_rows(rows, numbers)
        there = InducedSpace(space.kernel, space.items[used], part.margins, space.Z, space)
        yield answers.part(there, part, numbers)
