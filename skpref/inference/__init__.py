"""Engines: how the posterior is computed. Each is also an options object for ``inference=``."""

from skpref.inference._base import Approximation, EvidenceGradient, Problem
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace

ENGINES = {"laplace": Laplace, "ep": EP}

__all__ = ["ENGINES", "EP", "Approximation", "EvidenceGradient", "Laplace", "Problem"]
