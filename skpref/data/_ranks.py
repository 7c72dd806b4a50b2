"""What choices and rankings state, as ranks: of y, of lists, of arguments and of scores.

A choice of the best of three is 1, 2, 2, of the worst 1, 1, 2, and a ranking 1, 2, 3; of items with
equal ranks nothing is said of the two, and 0 is an item of which nothing is said at all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skpref.data._containers import check_one_each, fill_masked, is_missing, refuse_rows
from skpref.data._sets import Lists, check_sizes, read_lists


class Ranks(NamedTuple):
    """Ranks of the items of sets.

    Attributes
    ----------
    rank : ndarray of int of shape (n, k)
        1 for the best, without gaps; equal: nothing is said of the two; 0: nothing is said of it.
    chosen : ndarray of int of shape (n,) or None
        Position of the chosen one, if y said no more than that.
    """

    rank: NDArray[np.int_]
    chosen: NDArray[np.intp] | None


# -- in y --------------------------------------------------------------------------------------


def check_real(values: Any, name: str) -> None:
    """Raise ValueError for complex numbers."""
    dtype = np.asarray(values).dtype
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}. Pass {name}.real.")


def check_ranks(y: Any, is_item: NDArray[np.bool_]) -> Ranks:
    """Return the ranks of sets in y, which holds positions of chosen items or ranks.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k)
        Positions of the chosen items, or ranks.
    is_item : ndarray of bool of shape (n, k)
        Where a set has an item.
    """
    n, k = is_item.shape
    forms = (
        f"y of sets must be the position of the chosen item, (n,) integers from 0, or a matrix of "
        f"ranks ({n}, {k}): 1 for the best, equal ranks where nothing is said of two items, 0 for "
        "one that is not ranked"
    )
    if y is None:
        raise ValueError(f"{forms}. Only duels do without y.")
    check_real(y, "y")
    y = np.asarray(fill_masked(y))
    if y.ndim == 2 and y.shape[1] == 1 and k > 1:
        y = column_or_1d(y, warn=True)
    if y.shape not in ((n,), (n, k)):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n} sets, y of shape "
            f"{y.shape}. {forms}."
        )
    if y.ndim == 2:
        return Ranks(check_rank_matrix(y, is_item), None)
    message = f"Positions of chosen items in y must be whole numbers. {forms}"
    chosen = _read_choices(y, is_item, message)
    rank = np.where(is_item, 2, 0)
    rank[np.arange(n), chosen] = 1
    return Ranks(rank, chosen)


def check_rank_matrix(y: NDArray, is_item: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return ranks as integers; ValueError unless two differ in each row, without gaps.

    Parameters
    ----------
    y : ndarray of shape (n, k)
    is_item : ndarray of bool of shape (n, k)
        Where a set has an item.
    """
    rank = read_whole_numbers(
        y,
        "Ranks in y must be whole numbers: 1 for the best, equal ranks where nothing is said of "
        "two items, 0 for one that is not ranked",
    )
    refuse_rows(
        (rank < 0).any(axis=1),
        "Row {row} of y has a negative rank. Ranks begin with 1; 0: not ranked.",
    )
    refuse_rows(
        ((rank > 0) & ~is_item).any(axis=1),
        "Row {row} of y ranks an item where X has none (-1 or NaN). Put rank 0 there.",
    )
    ascending = np.sort(rank, axis=1)
    refuse_rows(
        ascending[:, -1] < 2,
        "Row {row} of y has ranks {value}, which say nothing: no two of them differ. Leave such "
        "rows out; 'no difference' between two items is a tie, y = 0 with tie_threshold.",
        rank,
    )
    refuse_rows(
        (np.diff(ascending, axis=1) > 1).any(axis=1) | (ascending[:, 0] > 1),
        "Row {row} of y has ranks {value} with a gap. Number them 1, 2, 3, …; items that share a "
        "rank take one number (1, 2, 2, 3).",
        rank,
    )
    return rank


def read_whole_numbers(y: NDArray, message: str) -> NDArray[np.intp]:
    """Return whole numbers as integers; ValueError that begins with the message for others."""
    if y.dtype.kind == "O":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{message}; got dtype object.") from None
    if y.dtype.kind not in "iufb":
        raise ValueError(f"{message}; got dtype {y.dtype}.")
    whole = np.isfinite(y) & (np.abs(y) < 2**31)
    whole &= np.floor(np.where(whole, y, 0)) == np.where(whole, y, 0)
    if not whole.all():
        raise ValueError(f"{message}; got {y[~whole][0]}.")
    return y.astype(np.intp)


# -- beside probabilities ----------------------------------------------------------------------


def read_ranks(ranks: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Return ranks of a given shape as integers from 0 up, gaps allowed."""
    array = np.asarray(fill_masked(ranks))
    if array.shape != shape:
        raise ValueError(f"Ranks must have shape {shape}, one for each item; got {array.shape}.")
    message = "Ranks must be whole numbers: 1 the best, equal where nothing is stated, 0 not ranked"
    whole = read_whole_numbers(array, message)
    if (whole < 0).any():
        raise ValueError(f"{message}; got {whole.min()}.")
    return whole


def chosen_of(y: ArrayLike, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Return the place of the item chosen from each set, of places or of ranks.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k)
    shape : (int, int)
        That of the probabilities.
    """
    if np.ndim(y) == 2:
        best = read_ranks(y, shape) == 1
        n_best = best.sum(axis=1)
        refuse_rows(
            n_best != 1,
            "Row {row} of y has {value} items of rank 1, so it is no choice of one. Leave it "
            "out, or, for the worst of a set and for rankings, take ranking_concordance.",
            n_best,
        )
        return best.argmax(axis=1)
    places = column_or_1d(fill_masked(y))
    check_consistent_length(places, np.empty(shape))
    message = (
        f"Choices must be places in the sets, integers in [0, {shape[1] - 1}], or ranks of shape "
        f"{shape}"
    )
    if places.dtype.kind == "b":
        raise ValueError(f"{message}; got booleans.")
    return _read_choices(places, np.ones(shape, dtype=bool), message)


def _read_choices(y: NDArray, is_item: NDArray[np.bool_], message: str) -> NDArray[np.intp]:
    """Return the places of chosen items; ValueError for numbers that are no places of items."""
    chosen, k = read_whole_numbers(y, message), is_item.shape[1]
    wrong = (chosen < 0) | (chosen >= k)
    wrong |= ~is_item[np.arange(len(chosen)), np.where(wrong, 0, chosen)]
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Row {row} of y chooses position {chosen[row]} of a set of {is_item[row].sum()} "
            f"items; allowed are {np.flatnonzero(is_item[row]).tolist()}, counted from 0."
        )
    return chosen


# -- in lists ----------------------------------------------------------------------------------


Positions = Callable[[Any], np.ndarray]


def read_sets(lists: list[list], positions: Positions, noun: str) -> Lists:
    """Return lists of two items or more as positions; ValueError for shorter ones."""
    if not lists:
        raise ValueError(f"Got no {noun.lower()}; give at least one.")
    check_sizes(np.array(list(map(len, lists))), noun)
    return read_lists(lists, positions, noun)


def chosen_places(chosen: Any, sets: Lists, positions: Positions, named: bool) -> np.ndarray:
    """Return the place in its set of each item chosen.

    Parameters
    ----------
    chosen : array-like of shape (n_sets,)
        Places, or names where ``named``.
    sets : Lists
    positions : callable
        Turns names into positions.
    named : bool
    """
    chosen = column_or_1d(fill_masked(chosen))
    n = len(sets.length)
    check_one_each(chosen.shape, n, "choices", "sets")
    refuse_rows(
        np.array([is_missing(choice) for choice in chosen.tolist()]),
        "{count} choices are missing, first in row {row}; leave these sets out.",
    )
    if chosen.dtype.kind == "O" and all(type(choice) is int for choice in chosen.tolist()):
        chosen = chosen.astype(np.int64)
    if chosen.dtype.kind in "iu":
        refuse_rows(
            (chosen < 0) | (chosen >= sets.length),
            "The choice in row {row} is {value[0]}, of {value[1]} items; give the place in its "
            "set, from 0, or the name.",
            np.column_stack([chosen, sets.length]),
        )
        return chosen.astype(np.int64)
    if not named or chosen.dtype.kind not in "OUT":
        raise ValueError(
            f"Choices must be integers, places in the sets from 0, or names of items that have "
            f"some; got values of type {chosen.dtype}."
        )
    places = _places_in_sets(sets, np.arange(n), positions(chosen))
    refuse_rows(places < 0, "The choice in row {row}, {value!r}, is not in its set.", chosen)
    return places


def _places_in_sets(sets: Lists, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the place of each position in the set of its row, -1 where it is not in it."""
    members = zip(sets.row.tolist(), sets.flat.tolist(), strict=True)
    place_of = dict(zip(members, sets.place.tolist(), strict=True))
    pairs = zip(rows.tolist(), positions.tolist(), strict=True)
    return np.array([place_of.get(pair, -1) for pair in pairs])


def ranked_sets(
    rankings: list[list], positions: Positions, shown: Any = None, ranks: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return rankings as sets of items and their ranks, one answer each.

    Parameters
    ----------
    rankings : list of lists
        Best first, without padding.
    positions : callable
        Turns a flat list of what the rankings name into an array of positions.
    shown : list of lists, default=None
        All items of each set; those not ranked are below those that are.
    ranks : ndarray of int of shape (n_listed,), default=None
        As in `pair_ranked_items`, for rankings without ``shown``.

    Returns
    -------
    shown : ndarray of int of shape (n_rankings, k)
        Positions, -1 where there are fewer. Without ``shown`` in an order that tells nothing of
        the ranks: ascending, row i turned by i places, so that no place is favoured.
    ranks : ndarray of int of shape (n_rankings, k)
        1 is the best; 0 where there is no item.
    """
    if shown is None:
        lists = read_sets(rankings, positions, "Ranking")
        order = np.lexsort((lists.flat, lists.row))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = lists.place
        places = (places + lists.row) % lists.length[lists.row]
        stated = lists.arrange_padded(places, lists.place + 1 if ranks is None else ranks, 0)
        return lists.arrange_padded(places, lists.flat, -1), stated
    sets = read_sets(shown, positions, "Set")
    check_one_each((len(rankings),), len(sets.length), "rankings", "sets")
    refuse_rows(
        np.array([not ranking for ranking in rankings]),
        "Ranking {row} is empty, which says nothing; leave it and its set out.",
    )
    lists = read_lists(rankings, positions)
    places = _places_in_sets(sets, lists.row, lists.flat)
    if (places < 0).any():
        at = lists.row[(places < 0).argmax()]
        raise ValueError(f"Ranking {at}, {rankings[at]!r}, has an item that is not in its set.")
    stated = sets.arrange_padded(sets.place, lists.length[sets.row] + 1, 0)
    stated[lists.row, places] = lists.place + 1
    return sets.arrange_padded(sets.place, sets.flat, -1), stated
