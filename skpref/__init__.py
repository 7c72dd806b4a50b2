"""Gaussian-process preference learning from duels, with scikit-learn manners."""

from skpref._estimator import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import ItemTable
from skpref.fitting import JudgePrior
from skpref.gp import Posterior, PosteriorMixture
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer

__version__ = "1.0.0rc1"

__all__ = [
    "CollaborativePreferenceRegressor",
    "HallucinationBelieverOptimizer",
    "ItemTable",
    "JudgePrior",
    "PairwisePreferenceRegressor",
    "Posterior",
    "PosteriorMixture",
    "PreferenceOptimizer",
]
