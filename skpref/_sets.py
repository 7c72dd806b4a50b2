"""Items shown together: rows of positions, -1 where there are fewer."""

import numpy as np


def consecutive(n_sets: int, n_shown: int) -> np.ndarray:
    """Sets whose items lie one after the other, as in an array of them."""
    return np.arange(n_sets * n_shown).reshape(n_sets, n_shown)


def check_padding(absent: np.ndarray, pads: str) -> None:
    """Whether sets have two items each and nothing after their first gap.

    Parameters
    ----------
    absent : ndarray of bool of shape (n_sets, k)
    pads : str
        What stands for no item, for the error.

    Raises
    ------
    ValueError
        For a gap before the end of a row, or a row of fewer than two items.
    """
    if not absent.any():
        return
    gaps = (absent[:, :-1] & ~absent[:, 1:]).any(axis=1)
    if gaps.any():
        raise ValueError(
            f"Row {gaps.argmax()} has {pads} before its end; it only pads the end of a row that "
            "has fewer items than others."
        )
    check_sizes(absent)


def check_sizes(absent: np.ndarray) -> None:
    """Whether every set has two items at least, wherever they are.

    Parameters
    ----------
    absent : ndarray of bool of shape (n_sets, k)

    Raises
    ------
    ValueError
        If one has fewer.
    """
    size = absent.shape[1] - absent.sum(axis=1)
    few = size < 2
    if few.any():
        raise ValueError(
            f"Row {few.argmax()} has {size[few.argmax()]} item(s); an answer is about two or "
            "more. Leave such rows out."
        )


def first_there(sets: np.ndarray) -> np.ndarray:
    """Place of the first item of each set, shape (n_sets,)."""
    return (sets >= 0).argmax(axis=1)


def numbered(absent: np.ndarray) -> np.ndarray:
    """Sets whose items lie one after the other, -1 where there is none (anywhere in a row)."""
    return np.where(absent, -1, np.cumsum(~absent).reshape(absent.shape) - 1)


def used_rows(sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of items that are in a set, and the sets as positions in these.

    Parameters
    ----------
    sets : ndarray of int of shape (n_sets, k)

    Returns
    -------
    used : ndarray of shape (m,)
        Ascending.
    sets : ndarray of shape (n_sets, k)
        ``used[sets]`` is what came, -1 stays.
    """
    used, places = np.unique(sets, return_inverse=True)
    places = places.reshape(sets.shape)
    if len(used) and used[0] < 0:
        return used[1:], places - 1
    return used, places


def gathered(values: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """What items are like, set by set; NaN (None among objects) where there is none.

    Parameters
    ----------
    values : ndarray of shape (n_items, ...)
        Floats or objects.
    sets : ndarray of int of shape (n_sets, k)

    Returns
    -------
    ndarray of shape (n_sets, k, ...)
    """
    found = values[sets]
    if (sets < 0).any():
        found[sets < 0] = None if found.dtype.kind == "O" else np.nan
    return found
