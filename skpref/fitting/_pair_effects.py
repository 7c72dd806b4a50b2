"""Effects of pairs that no order explains: whether answers may have them, and whether they do."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from skpref.data import Comparisons, Training
from skpref.fitting._hyperpriors import HalfCauchy
from skpref.fitting._model import Model
from skpref.gp import mean_variance
from skpref.inference import Engine
from skpref.kernels import Intransitive, intransitive_parts, theta_places

# Median deviation of the effects beforehand, in deviations of the noise of a margin, as of other
# effects beside a utility; and quantiles of it that the evidence of effects is a mean over.
_MEDIAN, _QUANTILES = 0.5, (np.arange(8) + 0.5) / 8


def check_pair_effects(kernel: Kernel | None, training: Training, engine: Engine | None) -> bool:
    """Tell whether a kernel has effects of pairs; raise ValueError if the answers cannot have any.

    Parameters
    ----------
    kernel : Kernel or None
    training : Training
    engine : Engine or None
        None: one is chosen by the answers.
    """
    utility, effects = intransitive_parts(kernel)
    if effects is None:
        return False
    comparisons = training.comparisons
    refused = {
        "choices or rankings of more than two items": bool(comparisons.rows.joint),
        "judges=": training.judges is not None,
        "users=": training.users is not None,
        "prompts=": comparisons.group_column is not None,
        "time=": training.reader.time is not None,
        f"inference={engine!r}": engine is not None and not _is_exact(engine),
    }
    for what, came in refused.items():
        if came:
            raise ValueError(
                f"got {what} with the kernel {kernel}; duels are allowed, without judges, users, "
                "prompts and times, by inference='ep', 'laplace', 'hmc' or 'gibbs'. Leave the term "
                "Intransitive out, or break sets into duels by from_rankings."
            )
    if utility is None:
        raise ValueError(
            f"got the kernel {kernel}, which has no term of the utility; Intransitive beside one "
            f"is allowed. Write Identity() + {effects} for names, or RBF() + {effects}."
        )
    return True


def _is_exact(engine: Engine) -> bool:
    return engine.prior_rule.exact and not engine.prior_rule.through_time


def pair_effect_places(kernel: Kernel) -> list[tuple[int, Intransitive]]:
    """List the places in ``kernel.theta`` of the free variances of effects of pairs."""
    return [
        (place.start, term)
        for term, place in theta_places(kernel)
        if isinstance(term, Intransitive) and term.variance_bounds != "fixed"
    ]


def pair_effect_priors(kernel: Kernel, items: NDArray[np.float64]) -> tuple[HalfCauchy, ...]:
    """Make the prior on the variances of effects of pairs: half-Cauchy deviations, largest at 0.

    The median of a deviation is half of that of a margin of the utility.

    Parameters
    ----------
    kernel : Kernel
    items : ndarray of shape (n_items, n_features)
    """
    places = pair_effect_places(kernel)
    if not places:
        return ()
    margin = np.sqrt(2.0 * mean_variance(kernel, items))
    scales = [_MEDIAN * margin / mean_variance(term.kernel, items) for _, term in places]
    return (HalfCauchy(np.array([at for at, _ in places]), np.array(scales), is_sole=True),)


def with_supported_effects(
    comparisons: Comparisons, model: Model, search_again: Callable[[Model], Model]
) -> Model:
    """Return the more probable model: with effects of pairs, or with their least variance.

    One is as probable as the other beforehand. The evidence with effects is the mean over
    quantiles of a half-Cauchy prior on their deviation, whose median is half a deviation of the
    noise of a margin, at the other hyperparameters as they were found.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        At the hyperparameters that were found with effects.
    search_again : callable
        Finds the hyperparameters of a model whose effects have their least variance.

    Returns
    -------
    Model
        With `Model.log_odds_of_effects`.
    """
    places = pair_effect_places(model.kernel)
    if not places:
        return model
    index, least = [at for at, _ in places], clone(model.kernel)
    for _, term in pair_effect_places(least):
        low = term.variance_bounds[0]
        term.set_params(variance=low, variance_bounds=(low, low))
    without = model.at(search_again(replace(model, kernel=least)).theta)
    units = [mean_variance(term.kernel, comparisons.items) for _, term in places]
    scale = _MEDIAN * np.sqrt(model.likelihood.margin_variance) / np.array(units)
    log_evidence = []
    for quantile in _QUANTILES:
        theta = model.theta
        theta[index] = 2.0 * np.log(scale * np.tan(0.5 * np.pi * quantile))
        log_evidence.append(_log_evidence(comparisons, model.at(theta)))
    log_odds = logsumexp(log_evidence) - np.log(len(_QUANTILES))
    log_odds -= _log_evidence(comparisons, without)
    return replace(model if log_odds > 0.0 else without, log_odds_of_effects=float(log_odds))


def _log_evidence(comparisons, model):
    engine = model.evidence_engine.relaxed()
    return model.evaluate(comparisons, engine=engine).approximation.sites.log_evidence
