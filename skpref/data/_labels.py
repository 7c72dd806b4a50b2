"""Labels of duels and of sets in y, and the item shown first."""

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref.data._containers import is_missing, unmasked
from skpref.data._frame import DuelFrame
from skpref.data._kinds import PLAIN, DuelScale
from skpref.data._sets import Lists, plain_lists, read_lists


class Outcomes(NamedTuple):
    """Outcomes of duels.

    Attributes
    ----------
    label : ndarray of int8 of shape (n_duels,)
        Above 0 the first won, below it the second, by so many grades; 0: a tie.
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
        """Kind of each row; None: all are duels."""
        return None if self.scale == PLAIN else self.scale.kinds(self.label)


def read_outcomes(y: NDArray, scale: DuelScale = PLAIN, known: bool = False) -> Outcomes:
    """Outcomes of labels.

    Parameters
    ----------
    y : ndarray of shape (n_duels,)
        Labels in {0, 1}, {-1, 1} or booleans; with ties in {-1, 0, 1}; with grades integers, the
        sign says who won and the size how clearly.
    scale : DuelScale, default=PLAIN
        What may come of a duel.
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
    plain = scale == PLAIN
    if y.dtype.kind == "b":
        if not plain:
            raise ValueError(_ambiguous("booleans", scale) if scale.levels == 1 else _bad(y, scale))
        return _plain(y, np.array([False, True]))
    if y.dtype.kind == "O":
        if any(isinstance(label, str) for label in y.tolist()):
            raise ValueError(_bad(y, scale))
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(_bad(y, scale)) from None
    if y.dtype.kind not in "iuf":
        raise ValueError(_bad(y, scale))
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        also = "" if scale.ties else " (ties too, unless tie_threshold is given)"
        raise ValueError(
            f"Outcomes y contain NaN, None or infinity in {np.sum(~np.isfinite(y))} of {len(y)} "
            f"places. Leave out duels without an outcome{also}."
        )
    present = np.unique(y)
    if not plain:
        if not np.isin(present, scale.labels).all():
            raise ValueError(_bad(y, scale))
        if not known and present[0] == 0 and (scale.levels == 1 or len(present) > 1):
            what = "0 and no -1" if scale.levels == 1 else "0 and nothing below"
            raise ValueError(_ambiguous(what, scale))
        return Outcomes(y.astype(np.int8), scale, scale.labels)
    for classes in ([0, 1], [-1, 1]):
        if np.isin(present, classes).all():
            return _plain(y == 1, np.array(classes))
    raise ValueError(_bad(y, scale))


def _plain(won, classes):
    return Outcomes(np.where(won, 1, -1).astype(np.int8), PLAIN, classes)


def _ambiguous(what, scale):
    if scale.levels > 1:
        some = ", ".join(map(str, scale.labels.tolist()))
        return (
            f"y holds {what}. With tie_threshold and grade_thresholds the outcomes of duels are "
            f"{{{some}}}: below 0 the second won, 0 is a tie, above 0 the first won. If 0 is the "
            "lowest grade of a scale, or stands for 'the second won', encode y so; if 0 is a tie, "
            "there must be duels that the second won, labelled below 0: turn some round, items and "
            "label."
        )
    return (
        f"y holds {what}. With tie_threshold the outcomes of duels are -1 (the second won), 0 (a "
        "tie) and 1 (the first won). If 0 (or False) stands for 'the second won', pass y with -1 "
        "there, or leave tie_threshold=None; if 0 is a tie, there must be duels that the second "
        "won, labelled -1: turn some round, items and label."
    )


def _bad(y, scale):
    some = ", ".join(list(dict.fromkeys(map(repr, y[:1000].tolist())))[:5])
    if scale.levels > 1:
        allowed = ", ".join(map(str, scale.labels.tolist()))
        tie = "0: a tie" if scale.ties else "for ties, 0, give tie_threshold too"
        return (
            f"Outcomes of duels must be in {{{allowed}}} with {scale.levels - 1} grade_thresholds "
            f"(above 0: the first won, the larger the more clearly; below 0: the second; {tie}), "
            f"got values such as [{some}]. Encode them so, or give one threshold fewer than there "
            "are grades."
        )
    if scale.ties:
        return (
            "Outcomes of duels must be in {-1, 0, 1} with tie_threshold (1: the first won, 0: a "
            f"tie, -1: the second won), got values such as [{some}]. Encode them so.{_soft(y)}"
        )
    three = ""
    if y.dtype.kind in "iuf" and np.isin(y, (-1, 0, 1)).all():
        three = " If 0 is a tie, give tie_threshold, such as tie_threshold=0.1, to learn from ties."
    elif y.dtype.kind in "iuf" and np.isin(y, np.arange(-9, 10)).all() and np.any(y < 0):
        three = (
            " If they say how much better, -2, -1, 1, 2, give grade_thresholds, such as "
            "grade_thresholds=(1.0,)."
        )
    return (
        f"Outcomes of duels must be in {{0, 1}}, {{-1, 1}} or booleans (1: the first won), got "
        f"values such as [{some}].{three} Encode them so, leave out ties, or pass y=None if the "
        f"first item won every duel. Ratings belong to 2-D items, not to duels.{_soft(y)}"
    )


def _soft(y):
    """What to do if these are probabilities."""
    if y.dtype.kind != "f" or y.min() < 0.0 or y.max() > 1.0:
        return ""
    return " Probabilities that the first wins become duels by skpref.duels.from_probabilities."


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


def check_real(values: Any, name: str) -> None:
    """Raise ValueError for complex numbers."""
    dtype = np.asarray(values).dtype
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, such as "
            f"{name}.real."
        )


def check_outcomes(y: Any, n_duels: int, scale: DuelScale = PLAIN, known: bool = False) -> Outcomes:
    """Outcomes of duels.

    Parameters
    ----------
    y : array-like of shape (n_duels,), or of ranks of shape (n_duels, 2), or None
        Labels, see `read_outcomes`; None: the first won each.
    n_duels : int
    scale, known
        See `read_outcomes`.
    """
    if y is not None:
        check_real(y, "y")
        y = unmasked(y)
    ranked = y is not None and np.asarray(y).shape == (n_duels, 2) and n_duels > 0
    if (y is None or ranked) and scale.levels > 1:
        raise ValueError(
            f"With grade_thresholds y must say by what grade each duel was won, labels in "
            f"{scale.labels.tolist()}; got {'ranks' if ranked else 'y=None'}."
        )
    if y is None or ranked:
        won = np.ones(n_duels, dtype=bool)
        if ranked:
            rank = _check_ranks(np.asarray(y), np.ones((n_duels, 2), dtype=bool))
            won = rank[:, 0] < rank[:, 1]
        return _plain(won, scale.labels if scale.ties else np.array([0, 1]))._replace(scale=scale)
    y = column_or_1d(y, warn=True)
    if len(y) != n_duels:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_duels} duels, "
            f"{len(y)} outcomes in y. Give one outcome for each row of X."
        )
    return read_outcomes(y, scale, known)


def check_ranks(y: Any, there: NDArray[np.bool_]) -> Ranks:
    """Ranks in y of sets.

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
    """The item shown first: 1 the first, -1 the second of two, 0 none; None stays None.

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


def balance_orientation(pairs: Any) -> tuple[np.ndarray | DuelFrame, np.ndarray]:
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
    >>> from skpref.duels import balance_orientation
    >>> X, y = balance_orientation([[5, 3], [5, 4], [3, 4]])
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


def parse_outcomes(outcomes: Any) -> np.ndarray:
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
    >>> from skpref.duels import parse_outcomes
    >>> parse_outcomes([1, -1, 1]).tolist()
    [True, False, True]
    """
    return read_outcomes(column_or_1d(unmasked(outcomes))).won


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
    signs = None if ties is False else signed_labels(outcomes, DuelScale(ties=True))
    if ties and signs is None:
        some = ", ".join(map(repr, list(dict.fromkeys(outcomes.tolist()))[:5]))
        raise ValueError(
            "With ties, outcomes must be -1 (the second won), 0 (a tie) or 1 (the first won); "
            f"values such as [{some}] came."
        )
    if signs is not None and not ties and len(np.setdiff1d((-1, 0), signs)):
        signs = None  # 0 is a defeat, or does not occur
    won = parse_outcomes(outcomes) if signs is None else signs == 1
    if len(won) != len(X):
        raise ValueError(f"{len(won)} outcomes came for {len(X)} duels; give one for each.")
    if signs is not None:
        return finish_signed(X, signs)
    if won.all() or not won.any():
        return _by_turns(X, won)
    return Finished(X, outcomes.astype(np.int64), np.zeros(len(X), dtype=bool))


def _by_turns(X, won):
    """Duels of which one side won all, turned so that the first wins every second one."""
    y = 1 - np.arange(len(X)) % 2
    turned = won != (y == 1)
    return Finished(_turned(X, turned), y, turned)


def signed_labels(outcomes: np.ndarray, scale: DuelScale) -> np.ndarray | None:
    """Labels of a scale as integers, None if there are others."""
    known = scale.labels
    if outcomes.dtype.kind not in "iufO":
        return None
    if outcomes.dtype.kind == "O":
        allowed = set(known.tolist())
        good = all(isinstance(label, Real) and label in allowed for label in outcomes.tolist())
    else:
        good = bool(np.isin(outcomes, known).all())
    return outcomes.astype(np.int64) if good else None


def finish_signed(X: np.ndarray | DuelFrame, labels: np.ndarray) -> Finished:
    """Every second decided duel turned round where one side won them all.

    A label below 0 there must be, since 0 stands for a tie beside it and for a defeat without it.
    """
    decided = np.flatnonzero(labels)
    wanted = np.where(np.arange(len(decided)) % 2 == 0, -1, 1)
    if len(np.unique(np.sign(labels[decided]))) != 1:
        return Finished(X, labels, np.zeros(len(X), dtype=bool))
    y = labels.copy()
    y[decided] = wanted * np.abs(labels[decided])
    return Finished(_turned(X, y != labels), y, y != labels)


Positions = Callable[[Any], np.ndarray]


def shown_lists(lists: Any, positions: Positions, what: str) -> Lists:
    """Lists of two items or more, by position."""
    plain = plain_lists(lists, what)
    if not plain:
        raise ValueError(f"No {what.lower()} came; give at least one.")
    for i, one in enumerate(plain):
        if len(one) < 2:
            raise ValueError(
                f"{what} {i} has {len(one)} item(s), which says nothing; an answer is about two "
                "or more. Leave it out."
            )
    return read_lists(plain, positions, what)


def chosen_places(chosen: Any, sets: Lists, positions: Positions, named: bool) -> np.ndarray:
    """Place in its set of each item chosen.

    Parameters
    ----------
    chosen : array-like of shape (n_sets,)
        Places, or names where ``named``.
    sets : Lists
    positions : callable
        Turns names into positions.
    named : bool
    """
    chosen = column_or_1d(unmasked(chosen))
    if len(chosen) != len(sets.length):
        raise ValueError(f"{len(chosen)} choices came for {len(sets.length)} sets; give one each.")
    gaps = [i for i, one in enumerate(chosen.tolist()) if is_missing(one)]
    if gaps:
        raise ValueError(
            f"{len(gaps)} choices are missing, first in row {gaps[0]}; leave these sets out."
        )
    if chosen.dtype.kind == "O" and all(type(one) is int for one in chosen.tolist()):
        chosen = chosen.astype(np.int64)
    if chosen.dtype.kind in "iu":
        wrong = np.flatnonzero((chosen < 0) | (chosen >= sets.length))
        if len(wrong):
            raise ValueError(
                f"The choice in row {wrong[0]} is {chosen[wrong[0]]}, of {sets.length[wrong[0]]} "
                "items; give the place in its set, from 0, or the name."
            )
        return chosen.astype(np.int64)
    if not named or chosen.dtype.kind not in "OUT":
        raise ValueError(
            f"Choices must be integers, places in the sets from 0, or names of items that have "
            f"some; values of type {chosen.dtype} came."
        )
    row, place = _found(sets, np.arange(len(chosen)), positions(chosen))
    missing = np.setdiff1d(np.arange(len(chosen)), row)
    if len(missing):
        at = missing[0]
        raise ValueError(f"The choice in row {at}, {chosen.tolist()[at]!r}, is not in its set.")
    return place


def _found(sets: Lists, rows: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the positions wanted in sets ``rows`` are there (as indices), and at what place."""
    width = max(sets.flat.max(), wanted.max(initial=0)) + 1
    keys = sets.row * width + sets.flat
    order = np.argsort(keys)
    at = np.searchsorted(keys[order], rows * width + wanted)
    at = order[np.minimum(at, len(order) - 1)]
    there = np.flatnonzero(keys[at] == rows * width + wanted)
    return there, sets.place[at[there]]


def worst_ranks(sets: Lists, places: np.ndarray) -> np.ndarray:
    """Ranks that the choice of the worst states: all others are before it."""
    return sets.padded(sets.place, 1 + (sets.place == places[sets.row]), 0)


def ranked_sets(
    rankings: Any, positions: Positions, shown: Any = None, ranks: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rankings, each as one answer.

    Parameters
    ----------
    rankings : list of lists
        Best first, as in `from_rankings`.
    positions : callable
        Turns a flat list of what the rankings name into an array of positions.
    shown : list of lists, default=None
        All items of each set; those not ranked are below those that are.
    ranks : ndarray of int of shape (n_listed,), default=None
        As in `ranked_pairs`, for rankings without ``shown``.

    Returns
    -------
    shown : ndarray of int of shape (n_rankings, k)
        Positions, -1 where there are fewer. Without ``shown`` in an order that tells nothing of
        the ranks: ascending, row i turned by i places, so that no place is favoured.
    ranks : ndarray of int of shape (n_rankings, k)
        1 is the best; 0 where there is no item.
    """
    if shown is None:
        lists = shown_lists(rankings, positions, "Ranking")
        order = np.lexsort((lists.flat, lists.row))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = lists.place
        places = (places + lists.row) % lists.length[lists.row]
        return lists.padded(places, lists.flat, -1), lists.padded(
            places, lists.place + 1 if ranks is None else ranks, 0
        )
    sets = shown_lists(shown, positions, "Set")
    plain = plain_lists(rankings)
    if len(plain) != len(sets.length):
        raise ValueError(f"{len(plain)} rankings came for {len(sets.length)} sets; give one each.")
    if not all(plain):
        empty = next(i for i, one in enumerate(plain) if not one)
        raise ValueError(f"Ranking {empty} is empty, which says nothing; leave it and its set out.")
    lists = read_lists(plain, positions)
    there, places = _found(sets, lists.row, lists.flat)
    if len(there) < len(lists.flat):
        at = lists.row[np.setdiff1d(np.arange(len(lists.flat)), there)[0]]
        raise ValueError(f"Ranking {at}, {plain[at]!r}, has an item that is not in its set.")
    stated = sets.padded(sets.place, lists.length[sets.row] + 1, 0)
    stated[lists.row, places] = lists.place + 1
    return sets.padded(sets.place, sets.flat, -1), stated
