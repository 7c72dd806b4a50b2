"""Engines: how the posterior is computed. Each is also an options object for ``inference=``."""

from skpref._conditioning import Sites
from skpref.inference._base import (
    Approximation,
    Engine,
    EvidenceGradient,
    Problem,
    started,
)
from skpref.inference._believers import ConstantLiar, KrigingBeliever
from skpref.inference._diagnostics import Diagnostics
from skpref.inference._ep import EP
from skpref.inference._hallucination import Hallucination
from skpref.inference._laplace import Laplace
from skpref.inference._skew import HMC, Gibbs
from skpref.inference._svi import SVI

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
