"""The Gaussian process: its prior on the margins of some answers, and its posterior.

Given Gaussian sites, each prior conditions on them: by all margins, by all items or by inducing
points. The posterior predicts, draws functions, and says which of several items is chosen.
"""

from skpref.gp._choice import choice_proba
from skpref.gp._default_kernel import default_kernel, feature_spread
from skpref.gp._dense import Conditioned, ItemSpace, MarginSpace, Sites, condition, gaussian_space
from skpref.gp._inducing import (
    InducedConditioned,
    InducedSpace,
    Moments,
    Pull,
    Weights,
    carried,
    moments,
    place,
    unexplained,
    unexplained_share,
    whitening,
)
from skpref.gp._paths import SamplePaths
from skpref.gp._posterior import (
    Components,
    JointMoments,
    Posterior,
    defended,
    mixture_quantile,
    pair_moments,
    stacked,
)
from skpref.gp._utilities import cheaper_by_margins

__all__ = [
    "Components",
    "Conditioned",
    "InducedConditioned",
    "InducedSpace",
    "ItemSpace",
    "JointMoments",
    "MarginSpace",
    "Moments",
    "Posterior",
    "Pull",
    "SamplePaths",
    "Sites",
    "Weights",
    "carried",
    "cheaper_by_margins",
    "choice_proba",
    "condition",
    "default_kernel",
    "defended",
    "feature_spread",
    "gaussian_space",
    "mixture_quantile",
    "moments",
    "pair_moments",
    "place",
    "stacked",
    "unexplained",
    "unexplained_share",
    "whitening",
]
