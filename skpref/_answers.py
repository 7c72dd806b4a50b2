"""What y says of duels and of sets, and who was shown first."""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref._containers import unmasked
from skpref._outcomes import Outcomes, read_outcomes


class Ranks(NamedTuple):
    """What is said of sets.

    Attributes
    ----------
    rank : ndarray of int of shape (n, k)
        1 for the best, without gaps; equal: nothing is said of the two; 0: nothing is said of it.
    chosen : ndarray of int of shape (n,) or None
        Position of the chosen one, if y said no more than that.
    """

    rank: NDArray[np.int_]
    chosen: NDArray[np.intp] | None


def check_real(values: Any, name: str) -> None:
    """Raise ValueError for complex numbers."""
    dtype = np.asarray(values).dtype
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, such as "
            f"{name}.real."
        )


def check_outcomes(y: Any, n_duels: int, ties: bool = False, known: bool = False) -> Outcomes:
    """Outcomes of duels.

    Parameters
    ----------
    y : array-like of shape (n_duels,), or of ranks of shape (n_duels, 2), or None
        Labels in {0, 1}, {-1, 1} or booleans, with ``ties`` in {-1, 0, 1}; None: the first won
        each.
    n_duels : int
    ties, known : bool
        See `read_outcomes`.
    """
    if y is None:
        classes = np.array([-1, 0, 1] if ties else [0, 1])
        return Outcomes(np.ones(n_duels, dtype=bool), None, classes)
    check_real(y, "y")
    y = unmasked(y)
    if np.asarray(y).shape == (n_duels, 2) and n_duels > 0:
        rank = _check_ranks(np.asarray(y), np.ones((n_duels, 2), dtype=bool))
        return Outcomes(rank[:, 0] < rank[:, 1], None, np.array([-1, 0, 1] if ties else [0, 1]))
    y = column_or_1d(y, warn=True)
    if len(y) != n_duels:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_duels} duels, "
            f"{len(y)} outcomes in y. Give one outcome for each row of X."
        )
    return read_outcomes(y, ties, known)


def check_ranks(y: Any, there: NDArray[np.bool_]) -> Ranks:
    """What y says of sets.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k)
        Positions of the chosen items, or ranks.
    there : ndarray of bool of shape (n, k)
        Where a set has an item.
    """
    n, k = there.shape
    forms = (
        f"y of sets must be the position of the chosen item, (n,) integers from 0, or a matrix of "
        f"ranks ({n}, {k}): 1 for the best, equal ranks where nothing is said of two items, 0 for "
        "one that is not ranked"
    )
    if y is None:
        raise ValueError(f"{forms}. Only duels do without y.")
    check_real(y, "y")
    y = np.asarray(unmasked(y))
    if y.ndim == 2 and y.shape[1] == 1 and k > 1:
        y = column_or_1d(y, warn=True)
    if y.shape not in ((n,), (n, k)):
        if y.ndim and len(y) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {n} sets, {len(y)} "
                f"answers in y. {forms}."
            )
        raise ValueError(f"{forms}; got shape {y.shape}.")
    if y.ndim == 2:
        return Ranks(_check_ranks(y, there), None)
    chosen = _whole(y, f"Positions of chosen items in y must be whole numbers. {forms}")
    wrong = (chosen < 0) | (chosen >= k)
    wrong |= ~there[np.arange(n), np.where(wrong, 0, chosen)]
    if wrong.any():
        at = int(wrong.argmax())
        size = int(there[at].sum())
        allowed = f"0 to {size - 1}"
        if not there[at, :size].all():
            allowed = ", ".join(map(str, np.flatnonzero(there[at])))
        raise ValueError(
            f"Row {at} of y chooses position {chosen[at]} of a set of {size} items; allowed "
            f"are {allowed}, counted from 0."
        )
    rank = np.where(there, 2, 0)
    rank[np.arange(n), chosen] = 1
    return Ranks(rank, chosen)


def _check_ranks(y, there):
    rank = _whole(
        y,
        "Ranks in y must be whole numbers: 1 for the best, equal ranks where nothing is said of "
        "two items, 0 for one that is not ranked",
    )
    if (rank < 0).any():
        at = int((rank < 0).any(axis=1).argmax())
        raise ValueError(f"Row {at} of y has a negative rank. Ranks begin with 1; 0: not ranked.")
    odd = ((rank > 0) & ~there).any(axis=1)
    if odd.any():
        raise ValueError(
            f"Row {odd.argmax()} of y ranks an item where X has none (-1 or NaN). Put rank 0 there."
        )
    top = rank.max(axis=1)
    silent = top < 2
    if not silent.any():
        ascending = np.sort(rank, axis=1)
        steps = np.diff(ascending, axis=1)
        gaps = (steps > 1).any(axis=1) | (ascending[:, 0] > 1)
        if not gaps.any():
            return rank
        at = int(gaps.argmax())
        raise ValueError(
            f"Row {at} of y has ranks {rank[at].tolist()} with a gap. Number them 1, 2, 3, …; "
            "items that share a rank take one number (1, 2, 2, 3)."
        )
    at = int(silent.argmax())
    raise ValueError(
        f"Row {at} of y has ranks {rank[at].tolist()}, which say nothing: no two of them differ. "
        "Leave such rows out; 'no difference' between two items is a tie, y = 0 with tie_threshold."
    )


def _whole(y, message):
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


def refuse_order() -> NoReturn:
    """Raise ValueError: rated items came with an order."""
    raise ValueError(
        "order= is of duels and sets; items with ratings came, of which none was shown first. Make "
        "duels of the ratings (from_ratings) and say who was first in each."
    )


def check_order(order: Any, n: int, k: int) -> NDArray[np.int8] | None:
    """Who was shown first: 1 the first item, -1 the second of two, 0 none; None stays None.

    Parameters
    ----------
    order : array-like of shape (n,) or None
    n : int
    k : int
        Items shown together at most.
    """
    if order is None:
        return None
    message = (
        "order says who was shown first (or played at home): 1 the first item of the row, -1 the "
        "second, 0 none"
    )
    order = np.asarray(unmasked(order))
    if order.shape != (n,):
        raise ValueError(f"{message}; its shape must be ({n},), got {order.shape}.")
    order = _whole(order, message)
    allowed = (-1, 0, 1) if k == 2 else (0, 1)
    wrong = ~np.isin(order, allowed)
    if wrong.any():
        raise ValueError(
            f"{message}; got {order[wrong][0]}{'' if k == 2 else ' (of sets it is 1 or 0)'}."
        )
    return order.astype(np.int8)
