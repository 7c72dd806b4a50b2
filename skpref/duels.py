"""Duels: the value every engine works on, item tables, and builders of duel arrays."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skpref._builders import alternate

__all__ = ["Duels", "Margins", "alternate", "distinct_rows", "merge"]


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


def distinct_rows(rows):
    """Distinct rows of an array, found by hashing and verified exactly.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Finite floats.

    Returns
    -------
    distinct : ndarray of shape (m, d)
        The order depends on the values alone, not on the order of ``rows``.
    inverse : ndarray of shape (n,)
        ``distinct[inverse]`` equals ``rows``.
    """
    rows = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), dtype=np.intp)
    bits = rows.view(np.uint64)
    # Odd multipliers and shifts mix every bit of every feature into one word.
    odd = np.random.default_rng(20240229).integers(1, 2**63, rows.shape[1], dtype=np.uint64) | 1
    mixed = bits ^ (bits >> np.uint64(29))
    key = (mixed * odd).sum(axis=1, dtype=np.uint64)
    _, where, inverse = np.unique(key, return_index=True, return_inverse=True)
    distinct = rows[where]
    if not np.array_equal(distinct[inverse], rows):  # a hash collision
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)


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
    used, compact = np.unique(np.concatenate([winner, loser]), return_inverse=True)
    distinct, inverse = distinct_rows(items[used])
    winner, loser = np.split(inverse[compact], 2)
    n_items = len(distinct)
    code, counts = np.unique(winner * n_items + loser, return_counts=True)
    winner, loser = np.divmod(code, n_items)
    return Duels(distinct, winner, loser, counts.astype(np.float64))
