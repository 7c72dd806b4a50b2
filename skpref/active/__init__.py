"""Active learning: which duel to ask about next, by what its answer is expected to tell."""

from skpref.active._contracts import DuelPosterior
from skpref.active._draws import best_item_information, committee_disagreement
from skpref.active._pool import all_pairs
from skpref.active._query import STRATEGIES, query
from skpref.active._scores import at_random, bald, entropy, margin_variance

__all__ = [
    "STRATEGIES",
    "DuelPosterior",
    "all_pairs",
    "at_random",
    "bald",
    "best_item_information",
    "committee_disagreement",
    "entropy",
    "margin_variance",
    "query",
]
