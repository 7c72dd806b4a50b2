"""Engines: how the posterior is computed. Each is also an options object for ``inference=``.

An engine replaces each answer by a Gaussian site: EP, Laplace, variational inference on many
answers, and exact samplers. A subclass of `Engine` of your own works wherever a name of one does.
"""

from skpref.gp import Sites
from skpref.inference._base import (
    Approximation,
    Engine,
    EvidenceGradient,
    Pass,
    Problem,
    State,
    check_answers,
    exact_bytes_of,
    started,
)
from skpref.inference._chains import Diagnostics
from skpref.inference._ep import EP
from skpref.inference._hallucination import ConstantLiar, Hallucination, KrigingBeliever
from skpref.inference._laplace import Laplace
from skpref.inference._memory import available, fits
from skpref.inference._rounding import check_digits
from skpref.inference._sampling import HMC, Gibbs
from skpref.inference._svi import SVI
from skpref.inference._workers import SharedOut, Store

ENGINES = {"laplace": Laplace, "ep": EP, "gibbs": Gibbs, "hmc": HMC, "svi": SVI}

__all__ = [
    "ENGINES",
    "EP",
    "HMC",
    "SVI",
    "Approximation",
    "ConstantLiar",
    "Diagnostics",
    "Engine",
    "EvidenceGradient",
    "Gibbs",
    "Hallucination",
    "KrigingBeliever",
    "Laplace",
    "Problem",
    "Sites",
    "started",
]
