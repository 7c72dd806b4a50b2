"""Labels of duels in y, and the item shown first."""

from contextlib import suppress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref.data._containers import check_one_each, fill_masked, one_each, refuse_rows
from skpref.data._frame import DuelFrame
from skpref.data._kinds import PLAIN, DuelScale
from skpref.data._ranks import check_rank_matrix, check_real, read_whole_numbers


class Outcomes(NamedTuple):
    """Outcomes of duels.

    Attributes
    ----------
    label : ndarray of int8 of shape (n_duels,)
        Above 0 the first won, below it the second, the further from 0 the clearer; 0: a tie.
    scale : DuelScale
    classes : ndarray of shape (n_outcomes,)
        Labels, as they are written in y.
    """

    label: NDArray[np.int8]
    scale: DuelScale
    classes: NDArray

    @property
    def won(self) -> NDArray[np.bool_]:
        """Whether the first won."""
        return self.label > 0

    @property
    def kind(self) -> NDArray[np.int8] | None:
        """Kind of each row; None where all are duels."""
        return None if self.scale == PLAIN else self.scale.kinds(self.label)


def read_outcomes(y: NDArray, scale: DuelScale = PLAIN, zero_is_tie: bool = False) -> Outcomes:
    """Return the outcomes that labels on a scale stand for.

    Parameters
    ----------
    y : ndarray of shape (n_duels,)
        Labels in {0, 1}, {-1, 1} or booleans; of another scale its labels.
    scale : DuelScale, default=PLAIN
        What may come of a duel.
    zero_is_tie : bool, default=False
        Whether 0 is known to be a tie, even if y holds no -1.

    Returns
    -------
    Outcomes

    Raises
    ------
    ValueError
        For any other label, NaN or infinity, and where it is not clear what 0 is.
    """
    if y.dtype.kind == "b":
        if scale.levels > 1:
            scale.refuse_labels(y)
        if scale.ties:
            scale.refuse_ambiguous("booleans")
        return _plain_outcomes(y, np.array([False, True]))
    y = _numeric_labels(y, scale)
    present = np.unique(y)
    if scale == PLAIN:
        for classes in ([0, 1], [-1, 1]):
            if np.isin(present, classes).all():
                return _plain_outcomes(y == 1, np.array(classes))
        scale.refuse_labels(y)
    if not np.isin(present, scale.labels).all():
        scale.refuse_labels(y)
    if not zero_is_tie and present[0] == 0 and (scale.levels == 1 or len(present) > 1):
        scale.refuse_ambiguous("0 and no -1" if scale.levels == 1 else "0 and nothing below")
    return Outcomes(y.astype(np.int8), scale, scale.labels)


def _numeric_labels(y: NDArray, scale: DuelScale) -> NDArray:
    """Return labels as an array of numbers; ValueError for others, and for gaps."""
    if y.dtype.kind == "O" and not any(isinstance(each, str) for each in y.tolist()):
        with suppress(TypeError, ValueError, OverflowError):  # what is no number is refused below
            y = y.astype(np.float64)
    if y.dtype.kind not in "iuf":
        scale.refuse_labels(y)
    also = "" if scale.ties else " (ties too, unless tie_threshold is given)"
    refuse_rows(
        ~np.isfinite(y),
        f"Outcomes y contain NaN, None or infinity in {{count}} of {len(y)} places. Leave out "
        f"duels without an outcome{also}.",
    )
    return y


def _plain_outcomes(won, classes):
    """Return the outcomes of duels without ties and grades."""
    return Outcomes(np.where(won, 1, -1).astype(np.int8), PLAIN, classes)


def check_outcomes(
    y: Any, n_duels: int, scale: DuelScale = PLAIN, zero_is_tie: bool = False
) -> Outcomes:
    """Return the outcomes of duels in y, which may hold labels or ranks of two.

    Parameters
    ----------
    y : array-like of shape (n_duels,), or of ranks of shape (n_duels, 2), or None
        Labels, see `read_outcomes`; None: the first won each.
    n_duels : int
    scale, zero_is_tie
        See `read_outcomes`.
    """
    if y is not None:
        check_real(y, "y")
        y = fill_masked(y)
    ranked = y is not None and np.asarray(y).shape == (n_duels, 2) and n_duels > 0
    if y is None or ranked:
        scale.check_grades_stated("ranks" if ranked else "y=None")
        won = np.ones(n_duels, dtype=bool)
        if ranked:
            rank = check_rank_matrix(np.asarray(y), np.ones((n_duels, 2), dtype=bool))
            won = rank[:, 0] < rank[:, 1]
        return _plain_outcomes(won, scale.labels if scale.ties else np.array([0, 1]))._replace(
            scale=scale
        )
    y = column_or_1d(y, warn=True)
    check_one_each(y.shape, n_duels, "outcomes", "duels")
    return read_outcomes(y, scale, zero_is_tie)


def check_order(order: Any, n: int, k: int | None) -> NDArray[np.int8] | None:
    """Return who was shown first: 1 the first, -1 the second of two, 0 none; None stays None.

    Parameters
    ----------
    order : array-like of shape (n,), int for all, or None
    n : int
    k : int or None
        Items shown together at most; None: rated items, which have no order.
    """
    if order is None:
        return None
    if k is None:
        raise ValueError(
            "order= is of duels and sets; got items with ratings, of which none was shown first. "
            "Make duels of the ratings (from_ratings) and say who was first in each."
        )
    message = (
        "order says who was shown first (or played at home): 1 the first item of the row, -1 the "
        "second, 0 none"
    )
    order = one_each(np.asarray(fill_masked(order)), n, "values of order")
    order = read_whole_numbers(order, message)
    allowed, more = ((-1, 0, 1), "") if k == 2 else ((0, 1), " (of sets it is 1 or 0)")
    refuse_rows(~np.isin(order, allowed), f"{message}; got {{value}}{more}.", order)
    return order.astype(np.int8)


def balance_orientation(pairs: Any) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
    """Return duels that the first item won, every second one turned round, with labels.

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
    >>> from skpref.duels import balance_orientation
    >>> X, y = balance_orientation([[5, 3], [5, 4], [3, 4]])
    >>> X.tolist(), y.tolist()
    ([[5, 3], [4, 5], [3, 4]], [1, 0, 1])
    """
    X = pairs if isinstance(pairs, DuelFrame) else np.asarray(pairs)
    if len(X.shape) < 2 or X.shape[1] != 2:
        raise ValueError(
            f"Got duels of shape {X.shape}; their second axis must have length 2: winner and loser."
        )
    return attach_labels(X, np.ones(len(X), dtype=np.int64))[:2]


def _exchange_sides(X: np.ndarray | DuelFrame, rows: Any) -> np.ndarray | DuelFrame:
    """Return a copy of duels with the sides of some rows exchanged."""
    if isinstance(X, DuelFrame):
        return DuelFrame(X.items, _exchange_sides(X.pairs, rows), id_column=X.id_column)
    turned = X.copy()
    turned[rows] = X[rows, ::-1]
    return turned


def parse_outcomes(outcomes: Any) -> np.ndarray:
    """Return whether the first item won each duel, of ``{0, 1}``, ``{-1, 1}`` or booleans.

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
    >>> from skpref.duels import parse_outcomes
    >>> parse_outcomes([1, -1, 1]).tolist()
    [True, False, True]
    """
    return read_outcomes(column_or_1d(fill_masked(outcomes))).won


class LabelledDuels(NamedTuple):
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


def plain_labels(outcomes: NDArray, ties: bool | None) -> tuple[NDArray[np.int64], bool]:
    """Return labels of duels as they were given, and whether 0 is a tie among them.

    ``ties`` None: where there are both -1 and 0.

    Raises
    ------
    ValueError
        For outcomes that are no labels.
    """
    signs = None if ties is False else signed_labels(outcomes, DuelScale(ties=True))
    if ties and signs is None:
        some = ", ".join(map(repr, list(dict.fromkeys(outcomes.tolist()))[:5]))
        raise ValueError(
            f"With ties, outcomes must be -1, 0 (a tie) or 1 (the first won); got [{some}]."
        )
    # Without a -1, a 0 says that the second won.
    if signs is not None and (ties or np.isin((-1, 0), signs).all()):
        return signs, True
    parse_outcomes(outcomes)
    return outcomes.astype(np.int64), False


def attach_labels(
    X: np.ndarray | DuelFrame, y: NDArray[np.int64], signed: bool = False
) -> LabelledDuels:
    """Return duels with labels, every second one turned round where only one side ever won.

    Parameters
    ----------
    X : ndarray or DuelFrame
    y : ndarray of int64 of shape (n_duels,)
        Above 0 where the first won.
    signed : bool, default=False
        Whether 0 is a tie, and the size of a label the grade of the win.
    """
    decided = np.flatnonzero(y) if signed else np.arange(len(y))
    won, turned = y[decided] > 0, np.zeros(len(y), dtype=bool)
    if len(np.unique(won)) == 1:
        first_wins = np.arange(len(decided)) % 2 == signed
        turned[decided] = won != first_wins
        y = np.where(turned, -y, y) if signed else first_wins.astype(np.int64)
    return LabelledDuels(_exchange_sides(X, turned) if turned.any() else X, y, turned)


def signed_labels(outcomes: np.ndarray, scale: DuelScale) -> np.ndarray | None:
    """Return labels of a scale as integers, or None if there are others."""
    if outcomes.dtype.kind not in "iufO":
        return None
    allowed = set(scale.labels.tolist())
    distinct = outcomes.tolist() if outcomes.dtype.kind == "O" else np.unique(outcomes)
    good = all(isinstance(each, Real) and each in allowed for each in distinct)
    return outcomes.astype(np.int64) if good else None
