"""Active learning: the next duel to ask about, by the expected information of its answer.

Scores of candidate duels from a posterior: BALD, entropy, committees, information on the best item.
`query` ranks a pool by one of them, for one user or many, one duel or a varied batch at a time.
Of a live leaderboard `next_pairs` hands out votes, and `StoppingRule` says when the best is known.
"""

from skpref.active._batch import outcome_effects
from skpref.active._candidates import DuelPosterior, all_pairs
from skpref.active._next_pairs import MOST_ITEMS, next_pairs
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
from skpref.active._stopping import StoppingRule

__all__ = [
    "STRATEGIES",
    "DuelPosterior",
    "StoppingRule",
    "all_pairs",
    "bald",
    "best_item_information",
    "committee_disagreement",
    "entropy",
    "margin_variance",
    "next_pairs",
    "query",
    "random_scores",
]
