"""Tables of a fitted model: leaderboards, trajectories, controls, win rates, features' worth.

Functions take anything fitted that has a posterior, and give arrays, with a frame where pandas is.
"""

from skpref.inspection._answer_effects import answer_effects
from skpref.inspection._check import Finding, ModelCheck, check
from skpref.inspection._connected import connected_items
from skpref.inspection._contenders import Contenders, contenders
from skpref.inspection._controls import control_effects
from skpref.inspection._demand import elasticities, shares, willingness_to_pay
from skpref.inspection._features import permutation_importance, without_item_effects
from skpref.inspection._intransitivity import intransitivity
from skpref.inspection._judges import judge_reliability
from skpref.inspection._leaderboard import (
    leaderboard,
    leaderboards,
    undecided_pairs,
    win_rates,
)
from skpref.inspection._loo import LeaveOneOut, compare, loo, loo_scorer
from skpref.inspection._outcomes import Predicted, predicted_outcomes, predicted_proba
from skpref.inspection._residuals import group_residuals
from skpref.inspection._tastes import user_tastes
from skpref.inspection._traces import sampler_traces
from skpref.inspection._trajectories import order_trajectory, trajectories
from skpref.inspection._variance_shares import variance_shares

__all__ = [
    "Finding",
    "LeaveOneOut",
    "ModelCheck",
    "answer_effects",
    "check",
    "compare",
    "connected_items",
    "control_effects",
    "elasticities",
    "group_residuals",
    "intransitivity",
    "judge_reliability",
    "leaderboard",
    "leaderboards",
    "loo",
    "loo_scorer",
    "order_trajectory",
    "permutation_importance",
    "sampler_traces",
    "shares",
    "trajectories",
    "undecided_pairs",
    "user_tastes",
    "variance_shares",
    "willingness_to_pay",
    "win_rates",
    "without_item_effects",
]
