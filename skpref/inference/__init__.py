"""Engines: how the posterior is computed. Each is also an options object for ``inference=``."""

from skpref.inference._base import Approximation, EvidenceGradient, Problem
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._skew import HMC, Diagnostics, Gibbs

ENGINES = {"laplace": Laplace, "ep": EP, "gibbs": Gibbs, "hmc": HMC}

__all__ = [
    "ENGINES",
    "EP",
    "HMC",
    "Approximation",
    "Diagnostics",
    "EvidenceGradient",
    "Gibbs",
    "Laplace",
    "Problem",
]
