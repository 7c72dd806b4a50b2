"""Tables of a fitted model: leaderboards, trajectories, controls, win rates, features' worth.

Functions take anything fitted that has a posterior, and give arrays, with a frame where pandas is.
"""

from skpref.inspection._answer_effects import answer_effects
from skpref.inspection._contenders import contenders
from skpref.inspection._controls import control_effects
from skpref.inspection._features import permutation_importance, without_item_effects
from skpref.inspection._leaderboard import (
    leaderboard,
    leaderboards,
    undecided_pairs,
    win_rates,
)
from skpref.inspection._trajectories import trajectories

__all__ = [
    "answer_effects",
    "control_effects",
    "leaderboard",
    "leaderboards",
    "permutation_importance",
    "trajectories",
    "undecided_pairs",
    "win_rates",
    "without_item_effects",
]
