"""Engines: how the posterior is computed. Each is also an options object for ``inference=``.

An engine replaces each answer by a Gaussian site: EP, Laplace, variational inference on many
answers, and exact samplers. An engine without evidence names another, by default EP, that learns
hyperparameters. A subclass of `Engine` of your own works wherever a name of one does.
"""

from skpref.gp import Cost, Marginals, Prior, PriorRule, Sites
from skpref.inference._base import (
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Pass,
    Problem,
    State,
    check_answers,
    check_log_concave,
    warm_start_array,
)
from skpref.inference._chains import Diagnostics
from skpref.inference._ep import EP, SiteUpdate, site_update
from skpref.inference._hallucination import (
    ConstantLiar,
    Hallucination,
    KrigingBeliever,
    hallucinations,
)
from skpref.inference._laplace import Laplace
from skpref.inference._memory import available_bytes, check_memory, has_memory
from skpref.inference._removal import (
    AnswerForecast,
    MatchingSites,
    SiteRemoval,
    matching_sites,
)
from skpref.inference._sampling import HMC, Gibbs
from skpref.inference._svi import SVI
from skpref.inference._workers import PartCache, SharedOut

ENGINES = {"laplace": Laplace, "ep": EP, "gibbs": Gibbs, "hmc": HMC, "svi": SVI}

__all__ = [
    "ENGINES",
    "EP",
    "HMC",
    "SVI",
    "Approximation",
    "Capabilities",
    "ConstantLiar",
    "Cost",
    "Diagnostics",
    "Engine",
    "EvidenceGradient",
    "Gibbs",
    "Hallucination",
    "KrigingBeliever",
    "Laplace",
    "Marginals",
    "Prior",
    "PriorRule",
    "Problem",
    "SiteUpdate",
    "Sites",
    "site_update",
    "warm_start_array",
]
