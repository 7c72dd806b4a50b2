"""Labels of duels: who won, or whether neither did."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Outcomes(NamedTuple):
    """Outcomes of duels.

    Attributes
    ----------
    won : ndarray of bool of shape (n_duels,)
        Whether the first won.
    tie : ndarray of bool of shape (n_duels,) or None
        None: there are none.
    classes : ndarray of shape (2,) or (3,)
        Labels of second won, tie if there may be any, first won.
    """

    won: NDArray[np.bool_]
    tie: NDArray[np.bool_] | None
    classes: NDArray


def read_outcomes(y: NDArray, ties: bool = False, known: bool = False) -> Outcomes:
    """What labels say.

    Parameters
    ----------
    y : ndarray of shape (n_duels,)
        Labels in {0, 1}, {-1, 1} or booleans; with ``ties`` in {-1, 0, 1}.
    ties : bool, default=False
        Whether there may be ties, labelled 0.
    known : bool, default=False
        Whether 0 is known to be a tie, though no -1 be there.

    Returns
    -------
    Outcomes

    Raises
    ------
    ValueError
        For any other label, NaN or infinity, and where it is not clear what 0 is.
    """
    if y.dtype.kind == "b":
        if ties:
            raise ValueError(_ambiguous("booleans"))
        return Outcomes(y.copy(), None, np.array([False, True]))
    if y.dtype.kind == "O":
        if any(isinstance(label, str) for label in y.tolist()):
            raise ValueError(_bad_outcomes(y, ties))
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(_bad_outcomes(y, ties)) from None
    if y.dtype.kind not in "iuf":
        raise ValueError(_bad_outcomes(y, ties))
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        also = "" if ties else " (ties too, unless tie_threshold is given)"
        raise ValueError(
            f"Outcomes y contain NaN, None or infinity in {np.sum(~np.isfinite(y))} of {len(y)} "
            f"places. Leave out duels without an outcome{also}."
        )
    present = np.unique(y)
    if ties:
        if not np.isin(present, (-1, 0, 1)).all():
            raise ValueError(_bad_outcomes(y, ties))
        if not known and 0 in present and -1 not in present:
            raise ValueError(_ambiguous("0 and no -1"))
        return Outcomes(y == 1, y == 0, np.array([-1, 0, 1]))
    if np.isin(present, (0, 1)).all():
        return Outcomes(y == 1, None, np.array([0, 1]))
    if np.isin(present, (-1, 1)).all():
        return Outcomes(y == 1, None, np.array([-1, 1]))
    raise ValueError(_bad_outcomes(y, ties))


def _ambiguous(what):
    return (
        f"y holds {what}. With tie_threshold the outcomes of duels are -1 (the second won), 0 (a "
        "tie) and 1 (the first won). If 0 (or False) stands for 'the second won', pass y with -1 "
        "there, or leave tie_threshold=None; if 0 is a tie, there must be duels that the second "
        "won, labelled -1: turn some round, items and label."
    )


def _bad_outcomes(y, ties):
    some = ", ".join(list(dict.fromkeys(map(repr, y[:1000].tolist())))[:5])
    if ties:
        return (
            "Outcomes of duels must be in {-1, 0, 1} with tie_threshold (1: the first won, 0: a "
            f"tie, -1: the second won), got values such as [{some}]. Encode them so."
        )
    three = ""
    if y.dtype.kind in "iuf" and np.isin(y, (-1, 0, 1)).all():
        three = " If 0 is a tie, give tie_threshold, such as tie_threshold=0.1, to learn from ties."
    return (
        f"Outcomes of duels must be in {{0, 1}}, {{-1, 1}} or booleans (1: the first won), got "
        f"values such as [{some}].{three} Encode them so, leave out ties, or pass y=None if the "
        "first item won every duel. Ratings belong to 2-D items, not to duels."
    )
