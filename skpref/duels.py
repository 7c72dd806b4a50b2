"""Duels: the value every engine works on, item tables, and builders of duel arrays."""

from skpref._builders import (
    from_pairs,
    from_rankings,
    from_ratings,
    from_wins,
    ranking_groups,
)
from skpref._choices import from_choices
from skpref._columns import from_columns
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable, distinct_rows
from skpref._observations import Duels, Observations
from skpref._orientation import alternate, first_won
from skpref._pairing import rated_pairs
from skpref._rows import DUEL, SET, TIE, Margins, Rows

__all__ = [
    "DUEL",
    "SET",
    "TIE",
    "DuelFrame",
    "Duels",
    "ItemTable",
    "Margins",
    "Observations",
    "Rows",
    "alternate",
    "distinct_rows",
    "first_won",
    "from_choices",
    "from_columns",
    "from_pairs",
    "from_rankings",
    "from_ratings",
    "from_wins",
    "ranking_groups",
    "rated_pairs",
]
