"""Duels: the value every engine works on, item tables, and builders of duel arrays."""

from skpref._builders import (
    alternate,
    first_won,
    from_columns,
    from_pairs,
    from_rankings,
    from_ratings,
    ranking_groups,
)
from skpref._items import ItemTable, distinct_rows
from skpref._observations import DUEL, Duels, Margins, Observations
from skpref._pairing import rated_pairs

__all__ = [
    "DUEL",
    "Duels",
    "ItemTable",
    "Margins",
    "Observations",
    "alternate",
    "distinct_rows",
    "first_won",
    "from_columns",
    "from_pairs",
    "from_rankings",
    "from_ratings",
    "ranking_groups",
    "rated_pairs",
]
