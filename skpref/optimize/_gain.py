"""What one more question is worth: how far the recommended item may be from the best."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from skpref._utils import Array, check_number
from skpref.fitting import Fitted, Hyperprior, LogNormal, Model, SharedLevel, average
from skpref.gp import Posterior, SamplePaths, at_present
from skpref.inference import State, hallucinations
from skpref.kernels import lengthscale_indices, shortest_lengths
from skpref.likelihoods import Likelihood
from skpref.optimize._acquisition import (
    CandidateMoments,
    Surface,
    Value,
    bivariate_expected_improvement,
    margin_moments,
)
from skpref.optimize._maximiser import candidate_rows
from skpref.optimize._model import (
    ANSWERS,
    BROAD_NOISE_PRIOR,
    LENGTHSCALE_PRIOR,
    NOISE_PRIOR,
    short_prior,
)

# How near the best is near, if nothing else is said: a share of the range.
WITHIN = 0.01
# Draws: so many hyperparameters, out of as many points of an average, and so many functions under
# each. A run stops where the share of draws first reaches a probability, so that its error counts
# anew after every answer: with 120 draws, under 12 of these, runs that stop at 0.95 are 0.91 sure.
_WORLDS, _PATHS = 32, 10
# Functions under the present hyperparameters alone, which may already say that it is not near.
_TRIAL = 32
_TRIAL_LEVEL = 1e-3
_FREQUENCIES = 500
# Lengthscales share a level: its median, and the deviation of its logarithm.
_LENGTHSCALE, _LEVEL = 0.25, 0.6
# Bounds of the variance of the noise, and the deviation of its logarithm.
_NOISE_BOUNDS, _NOISE_DEVIATION = (1e-12, 1.0), 5.0
# Rows that are looked at by their moments, and those of them where functions are drawn: where the
# utility may be largest, where it is lowest, and any.
_SCREEN = 2048
_HIGH, _LOW, _ANY = 960, 32, 32
_SEEDS = 8
# Each function is climbed from so many rows, so far apart (in lengthscales), in so many steps,
# which begin with this share of a lengthscale and become so many times as long after a success and
# a failure.
_STARTS, _APART, _STEPS = 4, 0.3, 16
_FIRST_STEP, _LONGER, _SHORTER = 0.2, 1.6, 0.35
_MAX_SWAPS = 3
# A range below this share of the values is none.
_ROUNDING = 1e-12
# Step of a difference of probabilities, in standard deviations.
_DIFFERENCE = 1e-4


@dataclass(frozen=True, eq=False)
class ExpectedGain:
    """What is to be gained by going on.

    Attributes
    ----------
    utility : float
        By how much one more duel of the recommended item and the best challenger is expected to
        raise the posterior mean of the better one, in the unit of the kernel's amplitude (the
        knowledge gradient of that duel).
    share : float
        The same, as a share of the range of the utility over the space.
    shortfall : ndarray of shape (n_draws,)
        By how much the recommended item is worse than the best of the space, as a share of the
        range, for draws of the utility from its posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize import ExpectedGain
    >>> gain = ExpectedGain(0.02, 0.004, np.array([0.0, 0.005, 0.008, 0.03]))
    >>> gain.probability(within=0.01)
    0.75
    >>> gain
    <ExpectedGain: share=0.004, utility=0.02; within 1 % of the best in 0.75 of 4 draws>
    """

    utility: float
    share: float
    shortfall: NDArray[np.float64]

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: share={self.share:.2g}, utility={self.utility:.2g}; within "
            f"1 % of the best in {self.probability():.2g} of {len(self.shortfall)} draws>"
        )

    def probability(self, within: float = WITHIN) -> float:
        """Probability that the recommended item is this near to the best.

        Parameters
        ----------
        within : float, default=0.01
            A share of the range of the utility over the space, from its lowest to its best item.
        """
        return float(np.mean(self.shortfall <= check_within(within)))


def check_within(within: float) -> float:
    """A share of the range, checked."""
    return check_number("within", within, low=0.0, high=1.0, open_low=True, open_high=True)


class Known(NamedTuple):
    """What is known when somebody asks whether to go on.

    Attributes
    ----------
    fitted : Fitted
    space : Space
    seen : ndarray of shape (n_items, n_columns)
        Items that answers are about.
    recommended : ndarray of shape (n_columns,)
    rng : numpy.random.Generator
    """

    fitted: Fitted
    space: Any
    seen: NDArray[np.float64]
    recommended: NDArray[np.float64]
    rng: np.random.Generator


class Distance(NamedTuple):
    """How far the recommended item is from the best, and the range, of each of n functions."""

    shortfall: NDArray[np.float64]
    extent: NDArray[np.float64]


def expected_gain(known: Known) -> ExpectedGain:
    """What is to be gained by one more question."""
    rows = _rows(known)
    found = [_distance(*world, rows, known) for world in _worlds(known)]
    extent = float(np.mean(np.concatenate([each.extent for each in found])))
    utility = _value_of_duel(rows, known)
    shortfall = np.sort(np.concatenate([each.shortfall for each in found]))
    return ExpectedGain(utility, utility / extent if extent > 0.0 else 0.0, shortfall)


def is_near(known: Known, probability: float, within: float) -> bool:
    """Whether `expected_gain` says that the recommended item is near the best so probably.

    It ends as soon as that is excluded.
    """
    rows, allowed = _rows(known), (1.0 - probability) * _WORLDS * _PATHS + 1e-9
    apart = known._replace(rng=known.rng.spawn(1)[0])  # what follows is as in expected_gain
    trial = _distance(known.fitted.gaussian, _TRIAL, rows, apart, climbing=False)
    if np.sum(trial.shortfall > within) > binom.isf(_TRIAL_LEVEL, _TRIAL, 1.0 - probability):
        return False
    n_beyond = 0
    for posterior, n in _worlds(known):
        n_beyond += int(np.sum(_distance(posterior, n, rows, known).shortfall > within))
        if n_beyond > allowed:
            return False
    return True


# --- draws ----------------------------------------------------------------------------------


def _worlds(known: Known) -> Iterator[tuple[Posterior, int]]:
    """Posteriors under hyperparameters drawn from theirs, and how many functions each stands for.

    The points of an average are taken in proportion to their weights.
    """
    model = cautious(known.fitted.model, known.seen.shape[1])
    if not len(model.theta) or not model.rule.exact:
        n = _WORLDS * _PATHS
        yield _drawn(model, None, n, known), n
        return
    every = average(model, known.fitted.comparisons, _WORLDS)
    ends = np.cumsum([each.weight for each in every])
    level = (known.rng.random() + np.arange(_WORLDS)) / _WORLDS * ends[-1]
    taken = np.minimum(np.searchsorted(ends, level, side="right"), len(every) - 1)
    index, count = np.unique(taken, return_counts=True)
    for at, times in zip(index, count, strict=True):
        world, n = every[at], int(times * _PATHS)
        yield _drawn(world.model, world.state, n, known), n


def cautious(model: Model, n_columns: int) -> Model:
    """The model of items of ``n_columns``, with wider priors in the place of an optimizer's own.

    Of noise: a judge may see differences far below its least bound, which shorter lengthscales
    would have to explain. Of lengthscales: questions near the best item say little of them, and
    under long ones there is no other peak. What somebody chose is kept.
    """
    index = np.array([at for at, _ in lengthscale_indices(model.kernel)], dtype=np.intp)
    likelihood = model.likelihood
    wider: list[Hyperprior] = []
    own = (LENGTHSCALE_PRIOR, short_prior(n_columns))
    for prior in model.priors:
        if any(_is(prior, each, index) for each in own):
            wider.append(
                SharedLevel(index, np.full(len(index), np.log(_LENGTHSCALE)), _LEVEL, _LEVEL)
            )
        else:
            wider.append(_noise_doubted(prior, model.noise_index))
    if getattr(likelihood, "noise_variance_bounds", None) == ANSWERS["noise_variance_bounds"]:
        likelihood = likelihood.bounded("noise_variance", _NOISE_BOUNDS)
    return replace(model, likelihood=likelihood, priors=tuple(wider))


def _noise_doubted(prior: Hyperprior, noise: int | None) -> Hyperprior:
    """The prior with a wider one of noise, if it has a default one; of all else as it is."""
    if not isinstance(prior, LogNormal):
        return prior
    own = [(np.log(median), deviation) for median, deviation in (NOISE_PRIOR, BROAD_NOISE_PRIOR)]
    deviation = prior.deviation.copy()
    for at, index in enumerate(prior.index):
        if index == noise and (prior.centre[at], deviation[at]) in own:
            deviation[at] = _NOISE_DEVIATION
    return replace(prior, deviation=deviation)


def _is(prior: Hyperprior, default: tuple[float, float], index: NDArray) -> bool:
    """Whether it is a default prior, a median and a deviation, on hyperparameters at places."""
    if not isinstance(prior, LogNormal) or not np.array_equal(prior.index, index):
        return False
    centred = np.all(prior.centre == np.log(default[0]))
    return bool(centred and np.all(prior.deviation == default[1]))


def _drawn(model: Model, start: State | None, n: int, known: Known) -> Posterior:
    """The posterior under some hyperparameters, with n draws of the margins as components."""
    if not model.rule.exact:
        return known.fitted.gaussian
    problem, gaussian, _ = model.evaluate(known.fitted.comparisons, start)
    found = hallucinations(problem, gaussian, n, known.rng)
    posterior = problem.prior.posterior(found.sites, found.conditioned, model.likelihood)
    return at_present(posterior, known.seen.shape[1])


# --- one function after another -------------------------------------------------------------


def _distance(
    posterior: Posterior,
    n: int,
    rows: NDArray[np.float64],
    known: Known,
    climbing: bool = True,
) -> Distance:
    """Of n functions drawn from a posterior."""
    paths = posterior.sample_paths(n, known.rng, n_frequencies=_FREQUENCIES)
    values = paths(rows)  # the first row is the recommended one
    best, least = values.max(axis=0), values.min(axis=0)
    if climbing and known.space.pool is None and paths.has_features:
        best = np.maximum(best, _climbed(paths, rows, values, known.space, posterior))
    extent = best - least
    extent[extent <= _ROUNDING * np.abs(values).max(axis=0)] = 0.0  # all items are equally good
    shortfall = np.divide(best - values[0], extent, out=np.zeros(n), where=extent > 0.0)
    return Distance(shortfall, extent)


def _rows(known: Known) -> NDArray[np.float64]:
    """The recommended row, and those where a function may be largest or lowest."""
    space, recommended, posterior = known.space, known.recommended, known.fitted.gaussian
    order = np.argsort(-posterior.mean(known.seen), kind="stable")
    seeds = np.concatenate([recommended[None], known.seen[order[:_SEEDS]]])
    rows = np.concatenate([known.seen, candidate_rows(space, seeds, known.rng, _SCREEN)])
    if len(rows) > _HIGH + _LOW + _ANY:
        threshold = np.zeros(posterior.n_components)
        surface = Surface(bivariate_expected_improvement, posterior, recommended, threshold)
        high = np.argsort(-surface.value(rows), kind="stable")[:_HIGH]
        low = np.argsort(posterior.mean(rows), kind="stable")[:_LOW]
        others = known.rng.choice(len(rows), _ANY, replace=False)
        rows = rows[np.unique(np.concatenate([high, low, others]))]
    return np.concatenate([recommended[None], rows])


def _climbed(
    paths: SamplePaths,
    rows: NDArray[np.float64],
    values: NDArray[np.float64],
    space: Any,
    posterior: Posterior,
) -> NDArray[np.float64]:
    """The largest value of every function near the best of some rows."""
    n = values.shape[1]
    lengths = np.minimum(shortest_lengths(posterior.kernel, space.n_columns), 1.0)
    path, rows = np.repeat(np.arange(n), _STARTS), rows[_spread_starts(rows / lengths, values)]
    rows, reached = _ascended(paths, path, rows, np.where(space.free, lengths, 0.0))
    for _ in range(0 if space.free.all() else _MAX_SWAPS):
        rows = space.snap(rows)
        near = [space.neighbours(row) for row in rows]
        sizes = [len(each) for each in near]
        if not sum(sizes):
            break
        owner = np.repeat(np.arange(len(rows)), sizes)
        others = paths.value_and_gradient_of(np.concatenate(near), path[owner])[0]
        for k in range(len(rows)):
            own = np.flatnonzero(owner == k)
            if len(own) and others[own].max() > reached[k]:
                rows[k] = near[k][np.argmax(others[own])]
        rows, reached = _ascended(paths, path, rows, np.where(space.free, lengths, 0.0))
    return reached.reshape(n, _STARTS).max(axis=1)


def _spread_starts(rows: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The best rows of every function that are not all in one place, one function after another."""
    columns, left = np.arange(values.shape[1]), values.copy()
    found = []
    for _ in range(_STARTS):
        found.append(np.argmax(left, axis=0))
        for column, best in zip(columns, found[-1], strict=True):
            near = np.max(np.abs(rows - rows[best]), axis=1) < _APART
            left[near, column] = -np.inf
    return np.stack(found, axis=1).ravel()


def _ascended(
    paths: SamplePaths,
    path: NDArray[np.intp],
    rows: NDArray[np.float64],
    lengths: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows after steps along the gradient, each on its own path, and the values there."""
    value, gradient = paths.value_and_gradient_of(rows, path)
    step = np.full(len(rows), _FIRST_STEP)
    for _ in range(_STEPS):
        slope = gradient * lengths
        slope[((rows <= 0.0) & (slope < 0.0)) | ((rows >= 1.0) & (slope > 0.0))] = 0.0
        norm = np.maximum(np.linalg.norm(slope, axis=1), 1e-300)
        moved = np.clip(rows + (step / norm)[:, None] * slope * lengths, 0.0, 1.0)
        other, turned = paths.value_and_gradient_of(moved, path)
        better = other > value
        rows, gradient = (
            np.where(better[:, None], moved, rows),
            np.where(better[:, None], turned, gradient),
        )
        value, step = np.where(better, other, value), step * np.where(better, _LONGER, _SHORTER)
    return rows, value


# --- one more duel --------------------------------------------------------------------------


def _value_of_duel(rows: NDArray[np.float64], known: Known) -> float:
    """The largest knowledge gradient of a duel with the recommended item."""
    posterior = known.fitted.gaussian
    likelihood = posterior.likelihood

    def value(moments: CandidateMoments) -> Value:
        return Value(knowledge_gradient(*margin_moments(moments), likelihood), moments.mean)

    surface = Surface(value, posterior, known.recommended, np.zeros(posterior.n_components))
    return float(surface.value(rows).max())


def knowledge_gradient(mean: Array, var: Array, likelihood: Likelihood) -> Array:
    """Rise of the larger posterior mean of two items by a duel of theirs.

    With g = f(x) − f(incumbent) and Z_k the probability of outcome k, E[g, k] = μ Z_k + s² ∂Z_k/∂μ,
    so that the rise is Σ_k E[g, k]⁺ − μ⁺.

    Parameters
    ----------
    mean : ndarray of shape (n, 1)
        Of g.
    var : ndarray of shape (n,)
    likelihood : Likelihood

    Returns
    -------
    ndarray of shape (n,)
    """
    mu = mean[:, 0]
    step = _DIFFERENCE * np.sqrt(var + likelihood.margin_variance)
    lead = np.zeros(len(mu))
    below, at, above = (
        likelihood.outcome_proba(mu + by, var, lead) for by in (-step, 0.0 * step, step)
    )
    slope = (above - below) / (2.0 * step[:, None])
    each = mu[:, None] * at + var[:, None] * slope
    return np.maximum(np.maximum(each, 0.0).sum(axis=1) - np.maximum(mu, 0.0), 0.0)
