"""Effects of pairs that no order explains: whether answers may have them, and whether they do."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, stdtrit
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from skpref._utils import check_number
from skpref.data import Comparisons, Training
from skpref.fitting._hyperpriors import LogStudent
from skpref.fitting._model import Model
from skpref.gp import check_sets, mean_variance
from skpref.inference import Engine
from skpref.kernels import (
    Intransitive,
    amplitude_powers,
    has_kernel,
    intransitive_parts,
    terms_of_sum,
    theta_places,
)

# Quantiles of the effects' variance beforehand: of 8 the largest is 50 times the median. One of ten
# sets of answers has effects: with even odds simulated sets without circles were predicted worse by
# 0.002 nats an answer, and with odds of 1 to 3 those of a fifth of football's matches by 0.06.
_N_QUANTILES = 8
_PRIOR_LOG_ODDS = -np.log(9.0)


def check_pair_effects(kernel: Kernel | None, engine: Engine | None) -> bool:
    """Tell whether a kernel has effects of pairs; ValueError if its terms or engine forbid them.

    Parameters
    ----------
    kernel : Kernel or None
    engine : Engine or None
        None: one is chosen by the answers.
    """
    utility, effects = intransitive_parts(kernel)
    if effects is None:
        return False
    if utility is None:
        raise ValueError(
            f"got the kernel {kernel}, which has no term of the utility; Intransitive beside one "
            f"is allowed. Write Identity() + {effects} for names, or RBF() + {effects}."
        )
    if has_kernel(kernel, WhiteKernel):
        raise ValueError(
            f"got the kernel {kernel}, which has a WhiteKernel; Intransitive beside kernels that "
            "know an item again is allowed. Take skpref.kernels.Identity() for what each item has "
            "of its own."
        )
    for term in terms_of_sum(effects):
        is_free = term.variance_bounds != "fixed"
        name = "variance of Intransitive (0 with variance_bounds='fixed' alone)"
        check_number(name, term.variance, low=0.0, open_low=is_free)
    rule = None if engine is None else engine.prior_rule
    if rule is not None and (not rule.exact or rule.through_time):
        raise ValueError(
            f"got inference={engine!r} with the kernel {kernel}; inference='ep', 'laplace', 'hmc' "
            "or 'gibbs' is allowed. Take one of these, or leave the term Intransitive out."
        )
    return True


def check_pairs_alone(kernel: Kernel | None, training: Training) -> None:
    """Raise ValueError if answers say more than which item of a pair won."""
    check_sets(kernel, training.comparisons)
    metadata = {
        "judges=": training.judges,
        "users=": training.users,
        "prompts=": training.reader.prompts,
        "time=": training.reader.time,
    }
    for name, values in metadata.items():
        if values is not None:
            raise ValueError(
                f"got {name} with the kernel {kernel}; duels without judges, users, prompts and "
                "times are allowed. Leave one of the two out."
            )


def pair_effect_places(kernel: Kernel) -> list[tuple[int, Intransitive]]:
    """List the places in ``kernel.theta`` of the free variances of effects of pairs."""
    return [
        (place.start, term)
        for term, place in theta_places(kernel)
        if isinstance(term, Intransitive) and term.variance_bounds != "fixed"
    ]


def pair_effect_priors(kernel: Kernel, items: NDArray[np.float64]) -> tuple[LogStudent, ...]:
    """Make the prior on the variances of effects of pairs, log-Student around the utility's.

    The median is the variance of the difference of two utilities. Where their scale is free there
    is no prior, as it would shrink that.

    Parameters
    ----------
    kernel : Kernel
    items : ndarray of shape (n_items, n_features)
    """
    places = pair_effect_places(kernel)
    if not places or np.any(amplitude_powers(intransitive_parts(kernel)[0])):
        return ()
    centre = np.log(2.0 * mean_variance(kernel, items)) - _log_units(places, items)
    return (LogStudent(_theta_index(places), centre),)


def _theta_index(places):
    """Return the places in theta as an array."""
    return np.array([at for at, _ in places])


def _log_units(places, items):
    """Return the logarithms of the mean variance of effects whose ``variance`` is 1."""
    return 2.0 * np.log([mean_variance(term.kernel, items) for _, term in places])


def with_supported_effects(
    comparisons: Comparisons, model: Model, search_again: Callable[[Model], Model]
) -> Model:
    """Return the more probable model: with effects of pairs, or with their least variance.

    Beforehand the odds are 1 to 9. The evidence with effects is the mean over quantiles of a
    log-Student prior on their variance, whose median is that of the noise of a margin, at the other
    hyperparameters as they were found.

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
    least = clone(model.kernel)
    for _, term in pair_effect_places(least):
        low = term.variance_bounds[0]
        term.set_params(variance=low, variance_bounds=(low, low))
    without = search_again(replace(model, kernel=least))
    median = np.log(model.likelihood.margin_variance) - _log_units(places, comparisons.items)
    theta, log_evidence = model.theta, []
    prior = LogStudent(_theta_index(places), median)
    for level in (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES:
        theta[prior.index] = median + prior.scale * stdtrit(prior.freedom, level)
        log_evidence.append(_log_evidence(comparisons, model.at(theta)))
    log_odds = _PRIOR_LOG_ODDS + logsumexp(log_evidence) - np.log(_N_QUANTILES)
    log_odds -= _log_evidence(comparisons, without)
    return replace(model if log_odds > 0.0 else without, log_odds_of_effects=float(log_odds))


def _log_evidence(comparisons, model):
    """Return the log evidence of a model at its hyperparameters, to the search's tolerance."""
    engine = model.evidence_engine.relax_tolerance()
    return model.evaluate(comparisons, engine=engine).approximation.sites.log_evidence
