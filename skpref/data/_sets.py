"""Items shown together, and lists of items: rows of positions, -1 where there are fewer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skpref.data._containers import fill_masked, is_missing, refuse_rows


def number_consecutively(n_sets: int, n_shown: int) -> np.ndarray:
    """Return numbers of the items of sets, one after the other, (n_sets, n_shown)."""
    return np.arange(n_sets * n_shown).reshape(n_sets, n_shown)


def check_padding(absent: np.ndarray, pads: str, remedy: str = "") -> None:
    """Raise ValueError unless gaps stand at the end of rows that have two items or more.

    Parameters
    ----------
    absent : ndarray of bool of shape (n_sets, k)
    pads : str
        What stands for no item, for the error.
    remedy : str, default=""
        What else may help against a gap.

    Raises
    ------
    ValueError
        For a gap before the end of a row, or a row of fewer than two items.
    """
    refuse_rows(
        (absent[:, :-1] & ~absent[:, 1:]).any(axis=1),
        f"Row {{row}} has {pads} before its end; it only pads the end of a row that has fewer "
        f"items than others. Leave such rows out{remedy}.",
    )
    check_sizes((~absent).sum(axis=1))


def check_sizes(size: np.ndarray, what: str = "Row") -> None:
    """Raise ValueError unless every set has two items at least.

    Parameters
    ----------
    size : ndarray of int of shape (n_sets,)
    what : str, default="Row"
        What errors call one of them.

    Raises
    ------
    ValueError
        If one has fewer.
    """
    message = f"{what} {{row}} has {{value}} item(s); an answer is about two or more. Leave it out."
    refuse_rows(size < 2, message, size)


def first_item_places(sets: np.ndarray) -> np.ndarray:
    """Return the place of the first item of each set, shape (n_sets,)."""
    return (sets >= 0).argmax(axis=1)


def number_members(absent: np.ndarray) -> np.ndarray:
    """Return numbers of the items of sets, one after the other, -1 where there is none."""
    return np.where(absent, -1, np.cumsum(~absent).reshape(absent.shape) - 1)


def gather_features(values: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return features of items, set by set; NaN (None among objects) where there is none.

    Parameters
    ----------
    values : ndarray of shape (n_items, ...)
        Floats or objects.
    sets : ndarray of int of shape (n_sets, k)

    Returns
    -------
    ndarray of shape (n_sets, k, ...)
    """
    features = values[sets]
    if (sets < 0).any():
        features[sets < 0] = None if features.dtype.kind == "O" else np.nan
    return features


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

    def arrange_padded(self, places: np.ndarray, values: np.ndarray, pad: int) -> np.ndarray:
        """Return values of the items at ``places`` of their rows, (n_lists, longest), padded."""
        rows = np.full((len(self.length), self.length.max()), pad, dtype=np.int64)
        rows[self.row, places] = values
        return rows


def _is_padding(value):
    """Return whether a value stands for no item: missing, or -1."""
    return is_missing(value) or (not isinstance(value, str) and value == -1)


def strip_padding(lists: Any, noun: str = "Ranking") -> list[list]:
    """Return lists of names or positions of items, without their padding.

    Parameters
    ----------
    lists : list of lists, 2-D array or DataFrame
    noun : str, default="Ranking"
        What errors call one of them.
    """
    lists = lists.to_numpy() if hasattr(lists, "to_numpy") else fill_masked(lists)
    if not _is_sequence(lists):
        raise ValueError(f"{noun}s must be a list of lists; got {type(lists).__name__}.")
    plain = []
    for i, ranking in enumerate(lists):
        if not _is_sequence(ranking):
            raise ValueError(f"{noun} {i} is {ranking!r}; each must be a list of items in order.")
        items = ranking.tolist() if hasattr(ranking, "tolist") else list(ranking)
        while items and _is_padding(items[-1]):
            items.pop()
        if any(map(_is_padding, items)):
            raise ValueError(
                f"{noun} {i} has -1, NaN or None before its end; these only pad the end of a list."
            )
        plain.append(items)
    return plain


def _is_sequence(values: Any) -> bool:
    """Return whether values are in an order, and are no text."""
    return hasattr(values, "__len__") and not isinstance(values, str | dict | set)


def read_lists(
    lists: list[list], positions: Callable[[list], np.ndarray], noun: str = "Ranking"
) -> Lists:
    """Return the positions of the items of all lists, one list after the other.

    Parameters
    ----------
    lists : list of lists
        As from `strip_padding`.
    positions : callable
        Turns a flat list of what the lists name into an array of positions.
    noun : str, default="Ranking"

    Raises
    ------
    ValueError
        If names and numbers are mixed, or an item occurs twice in one list.
    """
    length = np.array([len(members) for members in lists], dtype=np.int64)
    listed = [item for members in lists for item in members]
    # Padding by NaN makes floats of positions.
    listed = [int(i) if isinstance(i, float) and i.is_integer() else i for i in listed]
    if len({isinstance(item, str) for item in listed}) > 1:
        raise ValueError(f"{noun}s mix strings with numbers; name every item, or number them all.")
    flat = positions(listed)
    row = np.repeat(np.arange(len(lists)), length)
    order = np.lexsort((flat, row))
    twice = (np.diff(flat[order]) == 0) & (np.diff(row[order]) == 0)
    if twice.any():
        where = order[np.flatnonzero(twice)[0]]
        raise ValueError(
            f"{noun} {row[where]} names item {listed[where]!r} twice; an item has one place."
        )
    place = np.arange(len(flat)) - np.repeat(np.cumsum(length) - length, length)
    return Lists(flat, row, place, length)
