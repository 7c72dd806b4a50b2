"""Which item of a duel comes first, and what the outcomes say of it."""

from numbers import Real
from typing import Any, NamedTuple

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
    X = pairs if isinstance(pairs, DuelFrame) else np.asarray(pairs)
    if len(X.shape) < 2 or X.shape[1] != 2:
        raise ValueError(
            f"Duels came with shape {X.shape}; their second axis must have length 2: "
            "winner and loser."
        )
    return _by_turns(X, np.ones(len(X), dtype=bool))[:2]


def _turned(X: np.ndarray | DuelFrame, rows: Any) -> np.ndarray | DuelFrame:
    """A copy of duels, some of them turned round."""
    if isinstance(X, DuelFrame):
        return DuelFrame(X.items, _turned(X.pairs, rows), id_column=X.id_column)
    turned = X.copy()
    turned[rows] = X[rows, ::-1]
    return turned


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


class Finished(NamedTuple):
    """Duels with their labels.

    Attributes
    ----------
    X : ndarray or DuelFrame
    y : ndarray of int64 of shape (n_duels,)
    turned : ndarray of bool of shape (n_duels,)
        Which were turned round.
    """

    X: np.ndarray | DuelFrame
    y: np.ndarray
    turned: np.ndarray


def finish(X: np.ndarray | DuelFrame, outcomes: Any, ties: bool | None = None) -> Finished:
    """Duels with their labels, some turned round where only one side ever won.

    Parameters
    ----------
    X : ndarray or DuelFrame
    outcomes : array-like of shape (n_duels,) or None
        None: the first won each.
    ties : bool, default=None
        Whether labels are -1, 0 for a tie, and 1. None: where there are both -1 and 0.
    """
    if outcomes is None:
        return _by_turns(X, np.ones(len(X), dtype=bool))
    outcomes = column_or_1d(unmasked(outcomes))
    signs = None if ties is False else three_labels(outcomes)
    if ties and signs is None:
        some = ", ".join(map(repr, list(dict.fromkeys(outcomes.tolist()))[:5]))
        raise ValueError(
            "With ties, outcomes must be -1 (the second won), 0 (a tie) or 1 (the first won); "
            f"values such as [{some}] came."
        )
    if signs is not None and not ties and len(np.setdiff1d((-1, 0), signs)):
        signs = None  # 0 is a defeat, or does not occur
    won = first_won(outcomes) if signs is None else signs == 1
    if len(won) != len(X):
        raise ValueError(f"{len(won)} outcomes came for {len(X)} duels; give one for each.")
    if signs is not None:
        return _with_ties(X, signs)
    if won.all() or not won.any():
        return _by_turns(X, won)
    return Finished(X, outcomes.astype(np.int64), np.zeros(len(X), dtype=bool))


def _by_turns(X, won):
    """Duels of which one side won all, turned so that the first wins every second one."""
    y = 1 - np.arange(len(X)) % 2
    turned = won != (y == 1)
    return Finished(_turned(X, turned), y, turned)


def three_labels(outcomes: np.ndarray) -> np.ndarray | None:
    """Labels in {-1, 0, 1} as integers, None if there are others."""
    if outcomes.dtype.kind not in "iufO":
        return None
    if outcomes.dtype.kind == "O":
        known = all(isinstance(label, Real) and label in (-1, 0, 1) for label in outcomes.tolist())
    else:
        known = bool(np.isin(outcomes, (-1, 0, 1)).all())
    return outcomes.astype(np.int64) if known else None


def _with_ties(X, signs):
    """Every second decided duel turned round where one side won them all.

    A label -1 there must be, since 0 stands for a tie beside it and for a defeat without it.
    """
    decided = np.flatnonzero(signs)
    wanted = np.where(np.arange(len(decided)) % 2 == 0, -1, 1)
    if len(np.unique(signs[decided])) != 1:
        return Finished(X, signs, np.zeros(len(X), dtype=bool))
    y = signs.copy()
    y[decided] = wanted
    return Finished(_turned(X, y != signs), y, y != signs)
