"""Builders of duel arrays from what people have: pairs, columns, ranked lists, ratings."""

import numpy as np


def alternate(pairs):
    """Orient duels that the first item won so that both outcomes are present.

    Every second duel is turned round. A label of one class alone is fine for ``fit``, but breaks
    scikit-learn's scorers, so every builder ends here.

    Parameters
    ----------
    pairs : array-like of shape (n_duels, 2, ...)
        Duels with the winner first: items, indices of items or texts.

    Returns
    -------
    X : ndarray of shape (n_duels, 2, ...)
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
