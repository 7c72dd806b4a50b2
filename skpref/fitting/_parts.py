"""Parts of answers: a random one to learn on, and earlier answers among present ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref.data import Comparisons, distinct_rows


def earlier_positions(earlier: Comparisons, now: Comparisons, *, single: bool) -> NDArray[np.intp]:
    """Return the position that each row of comparisons had among earlier ones, −1 if it had none.

    Parameters
    ----------
    earlier, now : Comparisons
    single : bool
        Match single answers instead of distinct ones. Of equal rows the k-th is matched with the
        k-th.

    Returns
    -------
    ndarray of shape (n_now,)
        −1 for what is new.
    """
    both = earlier, now
    picked = [each.singles().row if single else np.arange(len(each.rows)) for each in both]
    if earlier.items.shape[1] != now.items.shape[1]:
        return np.full(len(picked[1]), -1)
    with_judges = earlier.judge is not None and now.judge is not None
    descriptions = []
    for each in both:
        rows = each.rows
        offset = np.zeros(len(rows)) if rows.offset is None else rows.offset
        judge: Any = rows.judge if with_judges else offset
        beside = np.column_stack([rows.kind, rows.lead * each.ordered, offset, judge])
        descriptions.append(np.hstack([each.items[rows.first], each.items[rows.second], beside]))
    _, code = distinct_rows(np.concatenate(descriptions))
    n_before, n = len(earlier.rows), int(code.max()) + 1
    codes = code[:n_before][picked[0]], code[n_before:][picked[1]]
    keys = [_occurrence_numbers(each) * n + each for each in codes]
    order = np.argsort(keys[0])
    places = np.searchsorted(keys[0], keys[1], sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    return np.where(keys[0][places] == keys[1], places, -1)


def _occurrence_numbers(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count, for each code, the equal ones before it."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    count = np.empty(len(codes), dtype=np.intp)
    count[order] = np.arange(len(codes)) - np.repeat(starts, np.diff([*starts, len(codes)]))
    return count


@dataclass(frozen=True)
class LearningSizes:
    """Numbers of answers of the part that ``n_learning_answers="auto"`` learns on.

    Attributes
    ----------
    exact : int
        Of a fit of all answers.
    names : int
        The same, where items have names alone.
    points : int
        Of a fit with inducing points, which is itself a matter of seconds.
    sparse : int
        Where the bound of such a fit is what is learned by.
    through_time : int
        Of items through time, whose fits are linear in the answers.
    """

    exact: int = 1000
    names: int = 2000
    points: int = 800
    sparse: int = 5000
    through_time: int = 50_000


ENOUGH = LearningSizes()


def random_part(
    comparisons: Comparisons, size: int, among_few: bool | NDArray[np.intp] = False
) -> Comparisons:
    """Return a random part of the answers, the same every time, and the items in them.

    Of every kind of answer there is at least one, where there is room.

    Parameters
    ----------
    comparisons : Comparisons
    size : int
    among_few : bool or ndarray of int of shape (n_items,), default=False
        Whether these are answers among as few items as have so many, drawn at random. Where nothing
        but names is known, answers that share no items say nothing of the noise. Numbers: of whom
        each item is a version, such as one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Comparisons
    >>> from skpref.fitting._parts import random_part
    >>> seen = Comparisons.from_duels(np.eye(4), [0, 1, 2], [1, 2, 3], [True, False, True])
    >>> part = random_part(seen, 1)
    >>> part.items.shape, len(part.positions)
    ((2, 4), 1)
    """
    n = len(comparisons.positions)
    if size >= n:
        return comparisons
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    if among_few is not False:
        who = np.arange(len(comparisons.items)) if among_few is True else among_few
        turn = rng.permutation(int(who.max(initial=0)) + 1)[who]
        shown = comparisons.positions
        last = np.where(shown >= 0, turn[shown], -1).max(axis=1)
        order = order[np.argsort(last[order], kind="stable")]
    answers, kind = order[:size].copy(), comparisons.kind[order]
    # Ties so rare that none was drawn would teach that there are none.
    missing = np.setdiff1d(kind, kind[:size])[: size - 1]
    for place, each in enumerate(missing):
        answers[-1 - place] = order[np.argmax(kind == each)]
    return comparisons.part(np.sort(answers))
