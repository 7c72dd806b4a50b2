"""The Gaussian process: its prior on the margins of some answers, and its posterior.

Given Gaussian sites, each prior conditions on them: by all margins, by all items, by the weights
of finitely many features, or by inducing points. `PriorRule` says which. The posterior predicts,
draws functions, and says which of several items is chosen.
"""

from skpref.gp._chain import ChainRule, IndependentItems
from skpref.gp._choice import choice_proba
from skpref.gp._default_kernel import (
    default_kernel,
    feature_spread,
    group_effects,
    varying,
)
from skpref.gp._dense import DenseItems, DenseMargins
from skpref.gp._drift import (
    DRIFTS,
    TimeSpread,
    drifting_kernel,
    forgetting_kernel,
    mean_variance,
    order_effect_kernel,
    present_posterior,
)
from skpref.gp._finite_rank import FiniteRank, carry_groups, spanning_items
from skpref.gp._group_effects import (
    NEW_GROUP,
    GroupedPosterior,
    utility_kernel,
    utility_posterior,
)
from skpref.gp._grouped import BatchSites, Grouped, condition_groups, fill_groups
from skpref.gp._inducing import (
    Inducing,
    InducingPoints,
    Moments,
    Pull,
    Weights,
    moments,
    place,
    spread_rows,
    transfer_weights,
    unexplained,
    unexplained_share,
    whitening,
)
from skpref.gp._intransitive import IntransitivePosterior, PairMargins, PairsOfNames
from skpref.gp._measured import UtilitiesGivenValues, level_of_values
from skpref.gp._mixture import (
    PosteriorMixture,
    mixed_choice_proba,
    mixed_sums,
    mixture_proba,
    posterior_parts,
)
from skpref.gp._orthant_moments import (
    MOST_ENTRIES,
    OrthantMoments,
    orthant_moments,
)
from skpref.gp._orthants import log_multivariate
from skpref.gp._paths import SamplePaths
from skpref.gp._posterior import (
    Components,
    JointMoments,
    JointRows,
    Posterior,
    RowMoments,
    averaged_with_moment_match,
    concatenate_blocks,
    mixture_quantile,
    pair_moments,
)
from skpref.gp._prior import (
    NOTICED,
    Cost,
    Marginals,
    MarginErrors,
    MarginMoments,
    Prior,
    PriorRule,
    Sites,
    check_sets,
    choose_prior,
)
from skpref.gp._shared_noise import SitePrecision
from skpref.gp._through_time import ThroughTime
from skpref.gp._utilities import WORST

__all__ = [
    "DRIFTS",
    "NEW_GROUP",
    "NOTICED",
    "WORST",
    "BatchSites",
    "ChainRule",
    "Components",
    "Cost",
    "DenseItems",
    "DenseMargins",
    "FiniteRank",
    "Grouped",
    "GroupedPosterior",
    "IndependentItems",
    "Inducing",
    "InducingPoints",
    "IntransitivePosterior",
    "JointMoments",
    "JointRows",
    "MarginErrors",
    "MarginMoments",
    "Marginals",
    "Moments",
    "OrthantMoments",
    "PairMargins",
    "PairsOfNames",
    "Posterior",
    "PosteriorMixture",
    "Prior",
    "PriorRule",
    "Pull",
    "RowMoments",
    "SamplePaths",
    "SitePrecision",
    "Sites",
    "ThroughTime",
    "TimeSpread",
    "UtilitiesGivenValues",
    "Weights",
    "averaged_with_moment_match",
    "carried",
    "carry_groups",
    "check_sets",
    "choice_proba",
    "choose_prior",
    "concatenate_blocks",
    "condition_groups",
    "default_kernel",
    "drifting",
    "feature_spread",
    "fill_groups",
    "forgetting",
    "group_effects",
    "level_of_values",
    "log_multivariate",
    "mean_variance",
    "mixed_choice_proba",
    "mixed_sums",
    "mixture_proba",
    "mixture_quantile",
    "moments",
    "order_effect_kernel",
    "orthant_moments",
    "pair_moments",
    "place",
    "posterior_parts",
    "present_posterior",
    "spanning_items",
    "spread_rows",
    "unexplained",
    "unexplained_share",
    "utility_kernel",
    "utility_posterior",
    "varying",
    "whitening",
]
