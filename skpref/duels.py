"""Duels: the value every engine works on, item tables, and builders of duel arrays."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skpref._builders import (
    from_pairs,
    from_rankings,
    from_ratings,
    from_wins,
    ranking_groups,
)
from skpref._columns import from_columns
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable, distinct_rows
from skpref._orientation import alternate, first_won
from skpref._pairing import rated_pairs

__all__ = [
    "DuelFrame",
    "Duels",
    "ItemTable",
    "Margins",
    "alternate",
    "distinct_rows",
    "first_won",
    "from_columns",
    "from_pairs",
    "from_rankings",
    "from_ratings",
    "from_wins",
    "merge",
    "ranking_groups",
    "rated_pairs",
]


class Margins(NamedTuple):
    """Distinct margins z = f(first) − f(second), and how each kind of duel reads them.

    Attributes
    ----------
    first, second : ndarray of shape (n_margins,)
        Indices of items.
    index : ndarray of shape (n_kinds,)
        Margin of each kind of duel.
    sign : ndarray of shape (n_kinds,)
        +1 where the winner is ``first``, −1 where it is ``second``.
    """

    first: np.ndarray
    second: np.ndarray
    index: np.ndarray
    sign: np.ndarray


@dataclass(frozen=True)
class Duels:
    """Distinct items and distinct duels with their counts.

    Attributes
    ----------
    items : ndarray of shape (n_items, n_features)
        Distinct items.
    winner, loser : ndarray of shape (n_kinds,)
        Indices into ``items``; every (winner, loser) occurs once.
    counts : ndarray of shape (n_kinds,)
        How often each duel was seen.
    """

    items: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    counts: np.ndarray

    @cached_property
    def margins(self):
        """Distinct unordered pairs of items (`Margins`): contradictory duels share one."""
        n_items = len(self.items)
        low = np.minimum(self.winner, self.loser)
        high = np.maximum(self.winner, self.loser)
        code, index = np.unique(low * n_items + high, return_inverse=True)
        first, second = np.divmod(code, n_items)
        sign = np.where(self.winner == first[index], 1.0, -1.0)
        return Margins(first, second, index, sign)


def _count(code, n_codes):
    """Distinct non-negative integers below ``n_codes``, sorted, and how often each occurs."""
    if n_codes > 4 * len(code) + 1024:  # a table of counts would be mostly empty
        return np.unique(code, return_counts=True)
    counts = np.bincount(code, minlength=n_codes)
    found = np.flatnonzero(counts)
    return found, counts[found]


def merge(items, winner, loser):
    """Merge equal items and count equal duels.

    Parameters
    ----------
    items : ndarray of shape (n, d)
    winner, loser : ndarray of shape (n_duels,)
        Indices into ``items``.

    Returns
    -------
    Duels
        Items that take part in no duel are left out.
    """
    used = np.zeros(len(items), dtype=bool)
    used[winner] = used[loser] = True
    distinct, inverse = distinct_rows(items[used])
    compact = inverse[np.cumsum(used) - 1]
    n_items = len(distinct)
    code, counts = _count(compact[winner] * n_items + compact[loser], n_items**2)
    winner, loser = np.divmod(code, n_items)
    return Duels(distinct, winner, loser, counts.astype(np.float64))
