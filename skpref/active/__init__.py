"""Active learning: which duel to ask about next, by what its answer is expected to tell.

Scores of candidate duels from a posterior: BALD, entropy, committees, information on the best item.
`query` ranks a pool by one of them, for one user or many, one duel or a varied batch at a time.
"""

from skpref.active._contracts import DuelPosterior
from skpref.active._query import STRATEGIES, all_pairs, query
from skpref.active._scores import (
    at_random,
    bald,
    best_item_information,
    committee_disagreement,
    entropy,
    expected_bell,
    margin_variance,
)

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
