"""Lists of items, of any length, as people have them: ranked ones, and sets shown."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skpref._containers import is_missing, unmasked


class Lists(NamedTuple):
    """Positions of the items of all lists, one list after the other.

    Attributes
    ----------
    flat : ndarray of int of shape (n_listed,)
    row : ndarray of int of shape (n_listed,)
        List of each.
    place : ndarray of int of shape (n_listed,)
        Place of each in its list, from 0.
    length : ndarray of int of shape (n_lists,)
    """

    flat: np.ndarray
    row: np.ndarray
    place: np.ndarray
    length: np.ndarray

    def padded(self, places: np.ndarray, values: np.ndarray, pad: int) -> np.ndarray:
        """Values of the items, at ``places`` of their rows, in shape (n_lists, longest)."""
        rows = np.full((len(self.length), self.length.max()), pad, dtype=np.int64)
        rows[self.row, places] = values
        return rows


def _is_padding(value):
    return is_missing(value) or (not isinstance(value, str) and value == -1)


def plain_lists(lists: Any, what: str = "Ranking") -> list[list]:
    """Lists of what names items, without their padding.

    Parameters
    ----------
    lists : list of lists, 2-D array or DataFrame
    what : str, default="Ranking"
        What errors call one of them.
    """
    lists = lists.to_numpy() if hasattr(lists, "to_numpy") else unmasked(lists)
    if isinstance(lists, str | dict | set) or not hasattr(lists, "__len__"):
        raise ValueError(f"{what}s must be a list of lists; {type(lists).__name__} came.")
    found = []
    for i, one in enumerate(lists):
        if isinstance(one, str | dict | set) or not hasattr(one, "__len__"):
            raise ValueError(f"{what} {i} is {one!r}; each must be a list of items in order.")
        listed = one.tolist() if hasattr(one, "tolist") else list(one)
        while listed and _is_padding(listed[-1]):
            listed.pop()
        if any(map(_is_padding, listed)):
            raise ValueError(
                f"{what} {i} has -1, NaN or None before its end; these only pad the end of a "
                "shorter list."
            )
        found.append(listed)
    return found


def read_lists(
    lists: list[list], positions: Callable[[list], np.ndarray], what: str = "Ranking"
) -> Lists:
    """Items of all lists by position.

    Parameters
    ----------
    lists : list of lists
        As from `plain_lists`.
    positions : callable
        Turns a flat list of what the lists name into an array of positions.
    what : str, default="Ranking"

    Raises
    ------
    ValueError
        If names and numbers are mixed, or an item occurs twice in one list.
    """
    length = np.array([len(one) for one in lists], dtype=np.int64)
    listed = [item for one in lists for item in one]
    # Padding by NaN makes floats of positions.
    listed = [int(i) if isinstance(i, float) and i.is_integer() else i for i in listed]
    if len({isinstance(item, str) for item in listed}) > 1:
        raise ValueError(f"{what}s mix strings with numbers; name every item, or number them all.")
    flat = positions(listed)
    row = np.repeat(np.arange(len(lists)), length)
    order = np.lexsort((flat, row))
    twice = (np.diff(flat[order]) == 0) & (np.diff(row[order]) == 0)
    if twice.any():
        where = order[np.flatnonzero(twice)[0]]
        raise ValueError(
            f"{what} {row[where]} names item {listed[where]!r} twice; an item has one place."
        )
    place = np.arange(len(flat)) - np.repeat(np.cumsum(length) - length, length)
    return Lists(flat, row, place, length)
