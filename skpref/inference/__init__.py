"""Engines: how the posterior is computed. Each is also an options object for ``inference=``."""

from ._base import Approximation, EvidenceGradient, Problem
from ._ep import EP
from ._laplace import Laplace

ENGINES = {"laplace": Laplace, "ep": EP}

__all__ = ["ENGINES", "EP", "Approximation", "EvidenceGradient", "Laplace", "Problem"]
