"""Active learning: the next duel to ask about, by the expected information of its answer.

Scores of candidate duels from a posterior: BALD, entropy, committees, information on the best item.
`query` ranks a pool by one of them, for one user or many, one duel or a varied batch at a time.
"""

from skpref.active._candidates import DuelPosterior, all_pairs
from skpref.active._query import STRATEGIES, query
from skpref.active._scores import (
    bald,
    best_item_information,
    committee_disagreement,
    entropy,
    expected_bell,
    margin_variance,
    random_scores,
)

__all__ = [
    "STRATEGIES",
    "DuelPosterior",
    "all_pairs",
    "bald",
    "best_item_information",
    "committee_disagreement",
    "entropy",
    "margin_variance",
    "query",
    "random_scores",
]
