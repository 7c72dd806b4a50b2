"""How well the common level of care is known: what answers leave open of the utility's scale."""

from dataclasses import replace

import numpy as np

from skpref._forecast import part_to_learn_on
from skpref._linalg import Array, covariance_of
from skpref._model import Model
from skpref._observations import Observations
from skpref._search import Search
from skpref._threads import blas_threads
from skpref.inference._base import State
from skpref.likelihoods import Judged, Likelihood

# Steps of the level's logarithm, and of the kernel's hyperparameters.
_LEVEL, _KERNEL = 0.2, 0.1
# Precision that is there in any case of these, and of the level.
_LEAST = 0.04
# Hyperparameters of a kernel at most that are looked at.
_MOST = 20


def level_deviation(
    observations: Observations,
    model: Model,
    means: tuple[Array, Array | None],
    search: Search | None,
) -> float:
    """Standard deviation of the logarithm of the level of all judges' care together.

    By the curvature of the log evidence and the priors where they are largest, in the level and the
    kernel's free hyperparameters at once: a utility of longer lengthscales may vary more. 0 where
    the common noise is given: the level is the judge who has it.

    Parameters
    ----------
    observations : Observations
    model : Model
        As fitted, of a judge of the common level.
    means : (ndarray, ndarray or None)
        Care and own order effects of the judges.
    search : Search or None
        How hyperparameters were learned, if they were.
    """
    if noise_is_given(model.likelihood):
        return 0.0
    engine, part = model.evidence_engine, observations
    if search is not None:
        engine = model.learner
        part = part_to_learn_on(observations, model, search.learn_on)
    engine = engine.coarser()
    care, order = means
    theta = np.asarray(model.kernel.theta, dtype=np.float64)
    theta = theta if search is not None and len(theta) <= _MOST else theta[:0]
    held = model.likelihood.held()
    state: State | None = None

    def at(level, kernel):
        nonlocal state
        there = replace(model, likelihood=Judged(held, np.exp(level) * care, order))
        slope = np.zeros(0)
        if len(theta):
            there = there.at(kernel)
            slope = model.log_prior(np.concatenate([kernel, model.likelihood.theta]))[1]
        found = there.evaluate(part, state, engine=engine, eval_gradient=bool(len(theta)))
        state = found.approximation.state
        gradient = slope[: len(theta)]
        if found.gradient is not None:
            gradient = gradient + found.gradient
        return found.approximation.sites.log_evidence, gradient

    with blas_threads(engine.side(part)):
        centre, gradient = at(0.0, theta)
        (low, to_low), (high, to_high) = at(-_LEVEL, theta), at(_LEVEL, theta)
        bend = np.empty((len(theta) + 1,) * 2)
        bend[0, 0] = (2.0 * centre - low - high) / _LEVEL**2
        bend[0, 1:] = bend[1:, 0] = (to_low - to_high) / (2.0 * _LEVEL)
        for k, step in enumerate(_KERNEL * np.eye(len(theta))):
            bend[1:, 1 + k] = (gradient - at(0.0, theta + step)[1]) / _KERNEL
    return float(np.sqrt(covariance_of(bend, _LEAST)[0, 0]))


def noise_is_given(likelihood: Likelihood) -> bool:
    """Whether the noise stays as it is, where all judges' care changes together."""
    theta, noise = likelihood.theta, likelihood.margin_variance
    away = (theta + step for step in _KERNEL * np.eye(len(theta)))
    return all(likelihood.at(at).margin_variance == noise for at in away)
