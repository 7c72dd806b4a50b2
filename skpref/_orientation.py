"""Which item of a duel comes first, and what the outcomes say of it."""

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from skpref._containers import unmasked
from skpref._duel_frame import DuelFrame
from skpref._outcomes import read_outcomes


def alternate(pairs: Any) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Orient duels that the first item won so that both outcomes are present.

    Every second duel is turned round. A label of one class alone is fine for ``fit``, but breaks
    scikit-learn's scorers, so every builder ends here.

    Parameters
    ----------
    pairs : array-like of shape (n_duels, 2, ...) or DuelFrame
        Duels with the winner first: items, indices of items or texts.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, ...) or DuelFrame
        A copy whose odd rows are swapped.
    y : ndarray of shape (n_duels,)
        1 where the first item won, 0 where the second did.

    Raises
    ------
    ValueError
        If the second axis of ``pairs`` is not of length 2.

    Examples
    --------
    >>> from skpref.duels import alternate
    >>> X, y = alternate([[5, 3], [5, 4], [3, 4]])
    >>> X.tolist(), y.tolist()
    ([[5, 3], [4, 5], [3, 4]], [1, 0, 1])
    """
    if isinstance(pairs, DuelFrame):
        places, y = alternate(pairs.pairs)
        return DuelFrame(pairs.items, places, id_column=pairs.id_column), y
    X = np.array(pairs)
    if X.ndim < 2 or X.shape[1] != 2:
        raise ValueError(
            f"Duels came with shape {X.shape}; their second axis must have length 2: "
            "winner and loser."
        )
    X[1::2] = X[1::2, ::-1].copy()
    y = np.ones(len(X), dtype=np.int64)
    y[1::2] = 0
    return X, y


def first_won(outcomes: Any) -> np.ndarray:
    """Read outcomes: ``{0, 1}``, ``{-1, 1}`` or booleans.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,)

    Returns
    -------
    ndarray of bool of shape (n_duels,)
        True where the first item won.

    Raises
    ------
    ValueError
        For any other label, or 0 and -1 together.

    Examples
    --------
    >>> from skpref.duels import first_won
    >>> first_won([1, -1, 1]).tolist()
    [True, False, True]
    """
    return read_outcomes(column_or_1d(unmasked(outcomes)))[0]


def finish(X: np.ndarray | DuelFrame, outcomes: Any) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Duels with their labels, turned round where one class alone is present."""
    if outcomes is None:
        return alternate(X)
    won = first_won(outcomes)
    if len(won) != len(X):
        raise ValueError(f"{len(won)} outcomes came for {len(X)} duels; give one for each.")
    if won.all() or not won.any():
        return alternate(X if won.all() else X[:, ::-1])
    return X, column_or_1d(unmasked(outcomes)).astype(np.int64)
