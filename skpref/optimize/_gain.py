"""What one more question is worth: how far the recommended item may be from the best."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from skpref._utils import NEGLIGIBLE, Array, check_number
from skpref.active import outcome_effects
from skpref.fitting import Fitted, Hyperprior, LogNormal, Model, SharedLevel, average
from skpref.gp import Posterior, SamplePaths
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
from skpref.optimize._maximiser import EFFORT, candidate_rows
from skpref.optimize._model import ANSWERS, PRIORS, posterior_on_items, shorter_lengthscale_prior

# How near the best is near, if nothing else is said: a share of the range.
WITHIN = 0.01


class GainEffort(NamedTuple):
    """How many functions say how far the recommended item is from the best.

    A run stops where the share of draws first reaches a probability, so that its error counts anew
    after every answer: with 120 draws, under 12 hyperparameters, runs that stop at 0.95 are 0.91
    sure.

    Attributes
    ----------
    n_worlds : int
        Draws of the hyperparameters, out of as many points of an average.
    n_paths : int
        Functions under each of them.
    trial_level : float
        As many functions under the present hyperparameters as there are worlds say that it is not
        near, at this level, before any other is drawn.
    n_frequencies : int
        Of a function's prior part.
    n_rows : int
        Of a larger pool so many rows: where the utility may be largest, and where it is lowest.
    start_distance : float
        Lengthscales between the starts of a function's climbs.
    n_steps : int
        Of a climb.
    first_step : float
        Its length, in lengthscales.
    """

    n_worlds: int = 32
    n_paths: int = 10
    trial_level: float = 1e-3
    n_frequencies: int = 500
    n_rows: int = 1024
    start_distance: float = 0.3
    n_steps: int = 16
    first_step: float = 0.2


GAIN_EFFORT = GainEffort()


class CautiousPrior(NamedTuple):
    """Priors that doubt what few answers seem to say, see `widen_default_priors`.

    Attributes
    ----------
    lengthscale, deviation : float
        Lengthscales share a level: its median, and the deviation of its logarithm.
    noise_bounds : tuple of two float
        Of the variance of the noise.
    noise_deviation : float
        Of the logarithm of that variance.
    """

    lengthscale: float = 0.25
    deviation: float = 0.6
    noise_bounds: tuple[float, float] = (1e-12, 1.0)
    noise_deviation: float = 5.0


CAUTIOUS = CautiousPrior()


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
    """Return a share of the range, or raise ValueError unless it lies in (0, 1)."""
    return check_number("within", within, low=0.0, high=1.0, open_low=True, open_high=True)


class GainContext(NamedTuple):
    """What is known when it is asked whether to go on.

    Attributes
    ----------
    fitted : Fitted
    space : Space
    answered_rows : ndarray of shape (n_items, n_columns)
        Items that answers are about.
    recommended : ndarray of shape (n_columns,)
    rng : numpy.random.Generator
    """

    fitted: Fitted
    space: Any
    answered_rows: NDArray[np.float64]
    recommended: NDArray[np.float64]
    rng: np.random.Generator


class Shortfalls(NamedTuple):
    """How far the recommended item is from the best, and the range, of each of n functions."""

    shortfall: NDArray[np.float64]
    extent: NDArray[np.float64]


def expected_gain(context: GainContext) -> ExpectedGain:
    """Return how much one more question is expected to raise the utility, and the shortfall now."""
    rows = _rows_to_compare(context)
    distances = [_draw_shortfalls(*world, rows, context) for world in _draw_worlds(context)]
    extent = float(np.mean(np.concatenate([each.extent for each in distances])))
    utility = _largest_knowledge_gradient(rows, context)
    shortfall = np.sort(np.concatenate([each.shortfall for each in distances]))
    return ExpectedGain(utility, utility / extent if extent > 0.0 else 0.0, shortfall)


def is_close_enough(context: GainContext, probability: float, within: float) -> bool:
    """Return whether P(shortfall <= within) >= probability, by the draws of `expected_gain`.

    It ends as soon as that is excluded.
    """
    rows = _rows_to_compare(context)
    n_allowed = (1.0 - probability) * GAIN_EFFORT.n_worlds * GAIN_EFFORT.n_paths + 1e-9
    apart = context._replace(rng=context.rng.spawn(1)[0])  # what follows is as in expected_gain
    trial = _draw_shortfalls(
        context.fitted.gaussian, GAIN_EFFORT.n_worlds, rows, apart, climbing=False
    )
    n_beyond = int(np.sum(trial.shortfall > within))
    if n_beyond > binom.isf(GAIN_EFFORT.trial_level, GAIN_EFFORT.n_worlds, 1.0 - probability):
        return False
    n_beyond = 0
    for posterior, n in _draw_worlds(context):
        n_beyond += int(np.sum(_draw_shortfalls(posterior, n, rows, context).shortfall > within))
        if n_beyond > n_allowed:
            return False
    return True


# --- draws ----------------------------------------------------------------------------------


def _draw_worlds(context: GainContext) -> Iterator[tuple[Posterior, int]]:
    """Yield posteriors at drawn hyperparameters, and how many functions to draw from each.

    The points of an average are taken in proportion to their weights.
    """
    model = widen_default_priors(context.fitted.model, context.answered_rows.shape[1])
    if not len(model.theta) or not model.rule.exact:
        n = GAIN_EFFORT.n_worlds * GAIN_EFFORT.n_paths
        yield _condition_on_draws(model, None, n, context), n
        return
    every = average(model, context.fitted.comparisons, GAIN_EFFORT.n_worlds)
    ends = np.cumsum([each.weight for each in every])
    level = (
        (context.rng.random() + np.arange(GAIN_EFFORT.n_worlds)) / GAIN_EFFORT.n_worlds * ends[-1]
    )
    taken = np.minimum(np.searchsorted(ends, level, side="right"), len(every) - 1)
    index, count = np.unique(taken, return_counts=True)
    for at, times in zip(index, count, strict=True):
        world, n = every[at], int(times * GAIN_EFFORT.n_paths)
        yield _condition_on_draws(world.model, world.state, n, context), n


def widen_default_priors(model: Model, n_columns: int) -> Model:
    """Return a model whose default priors are replaced by wider ones, see `CautiousPrior`.

    Of noise: a judge may see differences far below its least bound, which shorter lengthscales
    would have to explain. Of lengthscales: questions near the best item say little of them, and
    under long ones there is no other peak. What somebody chose is kept.
    """
    index = np.array([at for at, _ in lengthscale_indices(model.kernel)], dtype=np.intp)
    centre, likelihood = np.full(len(index), np.log(CAUTIOUS.lengthscale)), model.likelihood
    wider: list[Hyperprior] = []
    own = (PRIORS.lengthscale, shorter_lengthscale_prior(n_columns))
    for prior in model.priors:
        if any(_is_default_prior(prior, each, index) for each in own):
            wider.append(SharedLevel(index, centre, CAUTIOUS.deviation, CAUTIOUS.deviation))
        else:
            wider.append(_widen_noise_prior(prior, model.noise_index))
    if getattr(likelihood, "noise_variance_bounds", None) == ANSWERS["noise_variance_bounds"]:
        likelihood = likelihood.replace_bounds("noise_variance", CAUTIOUS.noise_bounds)
    return replace(model, likelihood=likelihood, priors=tuple(wider))


def _widen_noise_prior(prior: Hyperprior, noise: int | None) -> Hyperprior:
    """Return the prior with a wider deviation of the noise, if that of the noise is a default.

    ``noise`` is the index of the noise among the hyperparameters, or None.
    """
    if not isinstance(prior, LogNormal):
        return prior
    own = [
        (np.log(median), deviation) for median, deviation in (PRIORS.noise, PRIORS.broader_noise)
    ]
    deviation = prior.deviation.copy()
    for at, index in enumerate(prior.index):
        if index == noise and (prior.centre[at], deviation[at]) in own:
            deviation[at] = CAUTIOUS.noise_deviation
    return replace(prior, deviation=deviation)


def _is_default_prior(prior: Hyperprior, default: tuple[float, float], index: NDArray) -> bool:
    """Return whether a prior on hyperparameters is that of a default (median, deviation)."""
    if not isinstance(prior, LogNormal) or not np.array_equal(prior.index, index):
        return False
    centred = np.all(prior.centre == np.log(default[0]))
    return bool(centred and np.all(prior.deviation == default[1]))


def _condition_on_draws(
    model: Model, start: State | None, n: int, context: GainContext
) -> Posterior:
    """Return the posterior of a model given n draws of the noisy margins, a component each."""
    if not model.rule.exact:
        return context.fitted.gaussian
    problem, gaussian, _ = model.evaluate(context.fitted.comparisons, start)
    drawn = hallucinations(problem, gaussian, n, context.rng)
    posterior = problem.prior.posterior(drawn.sites, drawn.conditioned, model.likelihood)
    return posterior_on_items(posterior, context.answered_rows.shape[1])


# --- drawn functions ------------------------------------------------------------------------


def _draw_shortfalls(
    posterior: Posterior,
    n: int,
    rows: NDArray[np.float64],
    context: GainContext,
    climbing: bool = True,
) -> Shortfalls:
    """Return the shortfall of the first row, and the range, of n functions drawn from a posterior.

    Maxima are those over the rows, and if ``climbing`` of climbs from the best of them, along
    columns that have a gradient.
    """
    paths = posterior.sample_paths(n, context.rng, n_frequencies=GAIN_EFFORT.n_frequencies)
    values = paths(rows)
    best, least = values.max(axis=0), values.min(axis=0)
    if climbing and context.space.free.any() and paths.has_features:
        best = np.maximum(best, _climb_paths(paths, rows, values, context.space, posterior))
    extent = best - least
    # Less than rounding: all items are equally good.
    extent[extent <= NEGLIGIBLE * np.abs(values).max(axis=0)] = 0.0
    shortfall = np.divide(best - values[0], extent, out=np.zeros(n), where=extent > 0.0)
    return Shortfalls(shortfall, extent)


def _rows_to_compare(context: GainContext) -> NDArray[np.float64]:
    """Return rows on which drawn functions are compared, the recommended one first."""
    recommended, posterior = context.recommended, context.fitted.gaussian
    order = np.argsort(-posterior.mean(context.answered_rows), kind="stable")[: EFFORT.n_seeds]
    seeds = np.concatenate([recommended[None], context.answered_rows[order]])
    rows = np.concatenate(
        [context.answered_rows, candidate_rows(context.space, seeds, context.rng)]
    )
    if len(rows) > GAIN_EFFORT.n_rows:
        threshold = np.zeros(posterior.n_components)
        surface = Surface(bivariate_expected_improvement, posterior, recommended, threshold)
        high = np.argsort(-surface.value(rows), kind="stable")[: GAIN_EFFORT.n_rows // 2]
        low = np.argsort(posterior.mean(rows), kind="stable")[: GAIN_EFFORT.n_rows // 2]
        rows = rows[np.unique(np.concatenate([high, low]))]
    return np.concatenate([recommended[None], rows])


def _climb_paths(
    paths: SamplePaths,
    rows: NDArray[np.float64],
    values: NDArray[np.float64],
    space: Any,
    posterior: Posterior,
) -> NDArray[np.float64]:
    """Return the largest value of every function that climbs from its best rows reach."""
    lengths = np.minimum(shortest_lengths(posterior.kernel, space.n_columns), 1.0)
    starts = _spread_starts(rows / lengths, values)
    path = np.tile(np.arange(values.shape[1]), len(starts))
    reached = _ascend_paths(paths, path, rows[starts.ravel()], lengths, space)
    return reached.reshape(starts.shape).max(axis=0)


def _spread_starts(rows: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the best rows of every function (n_starts, n_paths) that are not all in one place."""
    columns, open_values, starts = np.arange(values.shape[1]), values.copy(), []
    for _ in range(EFFORT.n_starts):
        starts.append(np.argmax(open_values, axis=0))
        for column, best in zip(columns, starts[-1], strict=True):
            near = np.max(np.abs(rows - rows[best]), axis=1) < GAIN_EFFORT.start_distance
            open_values[near, column] = -np.inf
    return np.array(starts)


def _ascend_paths(
    paths: SamplePaths,
    path: NDArray[np.intp],
    rows: NDArray[np.float64],
    lengths: NDArray[np.float64],
    space: Any,
) -> NDArray[np.float64]:
    """Return the values that gradient ascent reaches from rows, each on its own path.

    A step becomes twice as long after a success, and half as long after a failure.
    """
    value, gradient = paths.value_and_gradient_of(rows, path)
    lengths = np.where(space.free_columns(rows), lengths, 0.0)
    step = np.full(len(rows), GAIN_EFFORT.first_step)
    for _ in range(GAIN_EFFORT.n_steps):
        slope = gradient * lengths
        slope[((rows <= 0.0) & (slope < 0.0)) | ((rows >= 1.0) & (slope > 0.0))] = 0.0
        norm = np.maximum(np.linalg.norm(slope, axis=1), np.finfo(float).tiny)
        direction = slope / norm[:, None]  # 0 in a corner
        moved = np.clip(rows + step[:, None] * direction * lengths, 0.0, 1.0)
        new_value, new_gradient = paths.value_and_gradient_of(moved, path)
        better = new_value > value
        better[better] = space.is_feasible(moved[better])
        rows = np.where(better[:, None], moved, rows)
        gradient = np.where(better[:, None], new_gradient, gradient)
        value, step = np.where(better, new_value, value), step * np.where(better, 2.0, 0.5)
    return value


# --- one more duel --------------------------------------------------------------------------


def _largest_knowledge_gradient(rows: NDArray[np.float64], context: GainContext) -> float:
    """Return the largest knowledge gradient of a duel with the recommended item."""
    posterior = context.fitted.gaussian
    likelihood = posterior.likelihood

    def value(moments: CandidateMoments) -> Value:
        return Value(knowledge_gradient(*margin_moments(moments), likelihood), moments.mean)

    surface = Surface(value, posterior, context.recommended, np.zeros(posterior.n_components))
    return float(surface.value(rows).max())


def knowledge_gradient(mean: Array, var: Array, likelihood: Likelihood) -> Array:
    """Return the rise of the larger posterior mean of two items by a duel of theirs.

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
    answers = outcome_effects(likelihood, mu, var, np.zeros(len(mu), dtype=np.int8))
    moments = answers.probability * (mu + var * answers.gradient)
    return np.maximum(np.maximum(moments, 0.0).sum(axis=0) - np.maximum(mu, 0.0), 0.0)
