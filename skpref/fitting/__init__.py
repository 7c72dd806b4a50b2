"""From answers and settings to a fitted model: search, fit, streams, judges' reliability.

A model is a kernel, a likelihood, an engine and priors on hyperparameters. The search maximises its
evidence; one program fits, whatever the answers are; forecasts say beforehand what takes long.
"""

from skpref.fitting._averaging import (
    Weighted,
    average,
    hyperparameter_spread,
    lattice,
    ratio_prior,
)
from skpref.fitting._biases import judged_comparisons, judged_rows
from skpref.fitting._components import components_in_words
from skpref.fitting._fit import Fitted, Start, carried, evidence, fit_posterior
from skpref.fitting._hyperpriors import (
    Hyperprior,
    LogNormal,
    SharedLevel,
    lengthscale_priors,
    likelihood_priors,
)
from skpref.fitting._inspected import (
    UNITS,
    Averaged,
    Inspected,
    Mixture,
    Relative,
    UtilityMoments,
    earlier_items,
    estimator_of,
    explained,
    explained_estimator,
    last_step,
    mixed,
    n_components_of,
    noise_deviation,
    positive,
    unit_length,
    unit_of_answers,
    varying_columns,
    warn_of_components,
    without_component_warnings,
)
from skpref.fitting._judges import (
    JudgeAverage,
    JudgePrior,
    Judges,
    check_judge_prior,
    readings_in_words,
)
from skpref.fitting._judging import fit_judged
from skpref.fitting._model import Model
from skpref.fitting._monotone import Monotone, check_monotone, check_monotone_model
from skpref.fitting._pair_effects import check_pair_effects, pair_effect_priors
from skpref.fitting._parts import ENOUGH
from skpref.fitting._predictions import Prediction
from skpref.fitting._progress import progress, report_fit
from skpref.fitting._search import Monitor, Search, learn
from skpref.fitting._settings import (
    Settings,
    check_engine,
    check_kernel,
    check_likelihood,
    check_settings,
    held,
    likelihood_of,
    make_model,
)
from skpref.fitting._streaming import (
    Stream,
    as_later_answers,
    at_points,
    continues_stream,
    fit_again,
    fit_further,
    held_engine,
    new_stream,
    refuse_judged,
    refuse_offset,
    takes_streams,
)

__all__ = [
    "ENOUGH",
    "UNITS",
    "Averaged",
    "Fitted",
    "Hyperprior",
    "Inspected",
    "JudgeAverage",
    "JudgePrior",
    "Judges",
    "LogNormal",
    "Mixture",
    "Model",
    "Monitor",
    "Monotone",
    "Prediction",
    "Relative",
    "Search",
    "Settings",
    "SharedLevel",
    "Start",
    "Stream",
    "UtilityMoments",
    "Weighted",
    "as_later_answers",
    "at_points",
    "average",
    "carried",
    "check_engine",
    "check_judge_prior",
    "check_kernel",
    "check_likelihood",
    "check_monotone",
    "check_monotone_model",
    "check_pair_effects",
    "check_settings",
    "components_in_words",
    "continues_stream",
    "earlier_items",
    "estimator_of",
    "evidence",
    "explained",
    "explained_estimator",
    "fit_again",
    "fit_further",
    "fit_judged",
    "fit_posterior",
    "held",
    "held_engine",
    "hyperparameter_spread",
    "judged_comparisons",
    "judged_rows",
    "last_step",
    "lattice",
    "learn",
    "lengthscale_priors",
    "likelihood_of",
    "likelihood_priors",
    "make_model",
    "mixed",
    "n_components_of",
    "new_stream",
    "noise_deviation",
    "pair_effect_priors",
    "positive",
    "progress",
    "ratio_prior",
    "readings_in_words",
    "refuse_judged",
    "refuse_offset",
    "report_fit",
    "takes_streams",
    "unit_length",
    "unit_of_answers",
    "varying_columns",
    "warn_of_components",
    "without_component_warnings",
]
