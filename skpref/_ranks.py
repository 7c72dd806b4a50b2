"""Answers about sets taken whole: what was shown, by position, and the ranks that were stated."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from skpref._containers import is_missing, unmasked
from skpref._lists import Lists, plain_lists, read_lists

Positions = Callable[[Any], np.ndarray]


def shown_lists(lists: Any, positions: Positions, what: str) -> Lists:
    """Lists of two items or more, by position."""
    plain = plain_lists(lists, what)
    if not plain:
        raise ValueError(f"No {what.lower()} came; give at least one.")
    for i, one in enumerate(plain):
        if len(one) < 2:
            raise ValueError(
                f"{what} {i} has {len(one)} item(s), which says nothing; an answer is about two "
                "or more. Leave it out."
            )
    return read_lists(plain, positions, what)


def chosen_places(chosen: Any, sets: Lists, positions: Positions, named: bool) -> np.ndarray:
    """Place in its set of each item chosen.

    Parameters
    ----------
    chosen : array-like of shape (n_sets,)
        Places, or names where ``named``.
    sets : Lists
    positions : callable
        Turns names into positions.
    named : bool
    """
    chosen = column_or_1d(unmasked(chosen))
    if len(chosen) != len(sets.length):
        raise ValueError(f"{len(chosen)} choices came for {len(sets.length)} sets; give one each.")
    gaps = [i for i, one in enumerate(chosen.tolist()) if is_missing(one)]
    if gaps:
        raise ValueError(
            f"{len(gaps)} choices are missing, first in row {gaps[0]}; leave these sets out."
        )
    if chosen.dtype.kind == "O" and all(type(one) is int for one in chosen.tolist()):
        chosen = chosen.astype(np.int64)
    if chosen.dtype.kind in "iu":
        wrong = np.flatnonzero((chosen < 0) | (chosen >= sets.length))
        if len(wrong):
            raise ValueError(
                f"The choice in row {wrong[0]} is {chosen[wrong[0]]}, of {sets.length[wrong[0]]} "
                "items; give the place in its set, from 0, or the name."
            )
        return chosen.astype(np.int64)
    if not named or chosen.dtype.kind not in "OUT":
        raise ValueError(
            f"Choices must be integers, places in the sets from 0, or names of items that have "
            f"some; values of type {chosen.dtype} came."
        )
    row, place = _found(sets, np.arange(len(chosen)), positions(chosen))
    missing = np.setdiff1d(np.arange(len(chosen)), row)
    if len(missing):
        at = missing[0]
        raise ValueError(f"The choice in row {at}, {chosen.tolist()[at]!r}, is not in its set.")
    return place


def _found(sets: Lists, rows: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the positions wanted in sets ``rows`` are there (as indices), and at what place."""
    width = max(sets.flat.max(), wanted.max(initial=0)) + 1
    keys = sets.row * width + sets.flat
    order = np.argsort(keys)
    at = np.searchsorted(keys[order], rows * width + wanted)
    at = order[np.minimum(at, len(order) - 1)]
    there = np.flatnonzero(keys[at] == rows * width + wanted)
    return there, sets.place[at[there]]


def worst_ranks(sets: Lists, places: np.ndarray) -> np.ndarray:
    """Ranks that the choice of the worst states: all others are before it."""
    return sets.padded(sets.place, 1 + (sets.place == places[sets.row]), 0)


def ranked_sets(
    rankings: Any, positions: Positions, shown: Any = None, ranks: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rankings, each as one answer.

    Parameters
    ----------
    rankings : list of lists
        Best first, as in `from_rankings`.
    positions : callable
        Turns a flat list of what the rankings name into an array of positions.
    shown : list of lists, default=None
        All items of each set; those not ranked are below those that are.
    ranks : ndarray of int of shape (n_listed,), default=None
        As in `ranked_pairs`, for rankings without ``shown``.

    Returns
    -------
    shown : ndarray of int of shape (n_rankings, k)
        Positions, -1 where there are fewer. Without ``shown`` in an order that tells nothing of
        the ranks: ascending, row i turned by i places, so that no place is favoured.
    ranks : ndarray of int of shape (n_rankings, k)
        1 is the best; 0 where there is no item.
    """
    if shown is None:
        lists = shown_lists(rankings, positions, "Ranking")
        order = np.lexsort((lists.flat, lists.row))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = lists.place
        places = (places + lists.row) % lists.length[lists.row]
        return lists.padded(places, lists.flat, -1), lists.padded(
            places, lists.place + 1 if ranks is None else ranks, 0
        )
    sets = shown_lists(shown, positions, "Set")
    plain = plain_lists(rankings)
    if len(plain) != len(sets.length):
        raise ValueError(f"{len(plain)} rankings came for {len(sets.length)} sets; give one each.")
    if not all(plain):
        empty = next(i for i, one in enumerate(plain) if not one)
        raise ValueError(f"Ranking {empty} is empty, which says nothing; leave it and its set out.")
    lists = read_lists(plain, positions)
    there, places = _found(sets, lists.row, lists.flat)
    if len(there) < len(lists.flat):
        at = lists.row[np.setdiff1d(np.arange(len(lists.flat)), there)[0]]
        raise ValueError(f"Ranking {at}, {plain[at]!r}, has an item that is not in its set.")
    stated = sets.padded(sets.place, lists.length[sets.row] + 1, 0)
    stated[lists.row, places] = lists.place + 1
    return sets.padded(sets.place, sets.flat, -1), stated
