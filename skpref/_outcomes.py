"""Labels of duels: who won."""

import numpy as np


def read_outcomes(y):
    """Outcomes as booleans (first won), and the two labels (second won, first won).

    Parameters
    ----------
    y : ndarray of shape (n_duels,)
        Labels in {0, 1}, {-1, 1} or booleans.

    Returns
    -------
    won : ndarray of bool of shape (n_duels,)
    classes : ndarray of shape (2,)

    Raises
    ------
    ValueError
        For any other label, 0 and -1 together, NaN or infinity.
    """
    if y.dtype.kind == "b":
        return y.copy(), np.array([False, True])
    if y.dtype.kind == "O":
        if any(isinstance(label, str) for label in y.tolist()):
            raise ValueError(_bad_outcomes(y))
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(_bad_outcomes(y)) from None
    if y.dtype.kind not in "iuf":
        raise ValueError(_bad_outcomes(y))
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError(
            f"Outcomes y contain NaN, None or infinity in {np.sum(~np.isfinite(y))} of {len(y)} "
            "places. Leave out duels without an outcome (ties too)."
        )
    present = np.unique(y)
    if np.isin(present, (0, 1)).all():
        return y == 1, np.array([0, 1])
    if np.isin(present, (-1, 1)).all():
        return y == 1, np.array([-1, 1])
    raise ValueError(_bad_outcomes(y))


def _bad_outcomes(y):
    some = ", ".join(list(dict.fromkeys(map(repr, y[:1000].tolist())))[:5])
    return (
        f"Outcomes of duels must be in {{0, 1}}, {{-1, 1}} or booleans (1: the first won), got "
        f"values such as [{some}]. Encode them so, leave out ties, or pass y=None if the first "
        "item won every duel. Ratings belong to 2-D items, not to duels."
    )
