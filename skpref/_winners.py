"""Outcomes as people write them: the winner by name or by side, and ties in words."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d

from skpref._containers import is_missing, unmasked
from skpref._warnings import warn

# Sides that need no column: of the first argument, of the second.
_SIDES = [("model_a", "model_b"), ("a", "b"), ("first", "second")]
_TIE = re.compile(r"(tie|tied|draw|drawn|both bad|bothbad)\b")
_MISSING, _UNREAD = 2, 3


class Winners(NamedTuple):
    """Outcomes of the duels that have one.

    Attributes
    ----------
    labels : ndarray of int64 of shape (n_kept,)
        1: the first won, -1: the second, 0: a tie.
    kept : ndarray of int of shape (n_kept,)
        Rows that they are of.
    """

    labels: np.ndarray
    kept: np.ndarray

    def said(self, ties: bool | None) -> tuple[np.ndarray, bool | None]:
        """Labels and ``ties`` as `finish` takes them."""
        if ties or (self.labels == 0).any():
            return self.labels, True
        return (self.labels == 1).astype(np.int64), False


def read_winners(
    outcomes: Any,
    n_duels: int,
    names: tuple[Any, Any] | None = None,
    sides: Sequence[tuple[str, str]] = (),
    ties: bool | None = None,
) -> Winners | None:
    """Who won, where outcomes are no labels.

    Rows without an outcome, with one that says nothing, and ties if they are not wanted, are left
    out; one warning counts them.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,)
        The name of either item, a side, a word for a tie ("tie ..." or "draw ..."), upper or lower
        case and spaces aside; or 1, 0.5 for a tie, and 0.
    n_duels : int
    names : pair of sequences of length n_duels, default=None
        Who the first and the second item of each duel are.
    sides : sequence of pairs of str, default=()
        What the two sides are called, beside "model_a" and "model_b", "a" and "b", "first" and
        "second"; what comes first counts, and names before all.
    ties : bool, default=None
        False: ties are left out.

    Returns
    -------
    Winners or None
        None where outcomes are labels: numbers without a half, or booleans.

    Raises
    ------
    ValueError
        If no outcome can be read, or none of one side where others are not read, or one
        is the word for a side and the name of another item.

    Examples
    --------
    >>> from skpref._winners import read_winners
    >>> who = ["ann", "bob", "cid"], ["bob", "cid", "ann"]
    >>> read_winners(["Ann ", "tie (both bad)", "second"], 3, who).labels.tolist()
    [1, 0, -1]
    """
    values = column_or_1d(unmasked(outcomes)).tolist()
    if len(values) != n_duels:
        raise ValueError(f"{len(values)} outcomes came for {n_duels} duels; give one for each.")
    if any(isinstance(value, str) for value in values):
        codes = _by_word(values, names, sides)
    else:
        codes = _by_number(values, names)
        if codes is None:
            return None
    dropped = codes == _MISSING, codes == _UNREAD, (codes == 0) & (ties is False)
    kept = np.flatnonzero(~np.any(dropped, axis=0))
    if not len(kept):
        raise ValueError(_none_read(values, names, sides))
    if dropped[1].any() and not ((codes == 1).any() and (codes == -1).any()):
        raise ValueError(_one_sided(values, codes))
    _mention_dropped(values, *dropped)
    return Winners(codes[kept], kept)


def _by_number(values, names):
    """Codes of outcomes without texts; None if they are labels, or nothing that is known."""
    present = [value for value in values if not is_missing(value)]
    if not all(isinstance(value, Real) for value in present):
        return None
    known = set(present)
    if any(isinstance(value, bool) for value in present):
        return None
    if known <= {-1, 0, 1}:
        _mention_ids(values, names)
        return None
    if known <= {0, 0.5, 1} and len(present) == len(values):
        return np.rint(2.0 * np.array(values, dtype=np.float64) - 1.0).astype(np.int64)
    if names is None or not any(value in pair for value, *pair in zip(values, *names, strict=True)):
        return None
    return _by_word(values, names, ())


def _by_word(values, names, sides):
    known = set() if names is None else {_plain(name) for side in names for name in side}
    own, words = _words(sides), _words([*sides, *_SIDES])
    codes = np.empty(len(values), dtype=np.int64)
    pairs = [(None, None)] * len(values) if names is None else zip(*names, strict=True)
    for row, (value, (first, second)) in enumerate(zip(values, pairs, strict=True)):
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            codes[row] = _MISSING
            continue
        name, plain = _named(value, first, second), _plain(value)
        word = words.get(plain)
        if plain in known and word is not None:  # the name of an item somewhere
            word = own.get(plain)
        if word and plain in known and word != name:
            raise ValueError(
                f"The outcome in row {row} is {value!r}, the word for a side and also the name of "
                "another item. Say who won by labels, such as frame[winner] == frame[first]."
            )
        codes[row] = name or word or (0 if _is_tie(value) else _UNREAD)
    return codes


def _named(value, first, second):
    """1 or -1 where a value is the name of one side, 0 where of none or of both."""
    if first == second and _loose(value, first):
        return 1
    for same in (_exact, _loose):
        found = int(same(value, first)) - int(same(value, second))
        if found:
            return found
    return 0


def _exact(value, name):
    return isinstance(value, str) and isinstance(name, str) and value == name


def _loose(value, name):
    if isinstance(value, str) and isinstance(name, str):
        return _closed(value) == _closed(name)
    numbers = isinstance(value, Real) and isinstance(name, Real)
    return numbers and value == name


def _plain(word):
    """A word without what people write in many ways; anything else as it is."""
    return _spelled(word) if isinstance(word, str) else word


@lru_cache(maxsize=4096)
def _spelled(word):
    return " ".join(re.split(r"[\s_-]+", word.strip())).casefold()


@lru_cache(maxsize=4096)
def _closed(name):
    """A name in lower case, with single spaces."""
    return " ".join(name.split()).casefold()


def _is_tie(value):
    if isinstance(value, str):
        return _TIE.match(_plain(value)) is not None
    return isinstance(value, Real) and value == 0.5


def _words(sides):
    """1 or -1 for each word that stands for a side."""
    words = {}
    for pair in sides:
        one, other = map(_plain, pair)
        if one != other and one not in words and other not in words:
            words.update({one: 1, other: -1})
    return words


# -- what is said of it ----------------------------------------------------------------------


def _mention_dropped(values, missing, unread, ties):
    parts = []
    if missing.any():
        parts.append(f"{missing.sum()} without an outcome (if these are ties, write 'tie' there)")
    if unread.any():
        some = Counter(values[i] for i in np.flatnonzero(unread)).most_common(3)
        shown = ", ".join(f"{value!r} ({count})" for value, count in some)
        parts.append(f"{unread.sum()} whose outcome is neither side nor a tie, such as {shown}")
    if ties.any():
        parts.append(f"{ties.sum()} ties (ties=False)")
    if not parts:
        return
    rows = np.flatnonzero(missing | unread | ties)
    warn(
        f"{len(rows)} of {len(values)} duels are left out, first in row {rows[0]}: "
        f"{'; '.join(parts)}. Leave them out of all that goes along with the duels (sample_weight, "
        "judges, order, groups) as well."
    )


def _mention_ids(values, names):
    """Warn where labels may be the winners' ids."""
    if names is None or not all(isinstance(i, Real) for side in names for i in side):
        return
    rows = list(zip(values, *names, strict=True))
    if all(value in pair for value, *pair in rows) and any(
        (value == 1) != (value == first) for value, first, _ in rows
    ):
        warn(
            "Outcomes are read as labels, 1 where the first won, but each is also the id of one of "
            "the two sides. If they are ids of the winners, give frame[winner] == frame[first]."
        )


def _one_sided(values, codes):
    some = Counter(values[i] for i in np.flatnonzero(codes == _UNREAD)).most_common(3)
    shown = ", ".join(f"{value!r} ({count})" for value, count in some)
    read = [name for code, name in ((1, "first"), (-1, "second")) if (codes == code).any()]
    won = f"only wins of the {read[0]}" if read else "no winner"
    return (
        f"{(codes == _UNREAD).sum()} of {len(values)} outcomes are neither side nor a tie, such as "
        f"{shown}, and all others hold {won}, so that these may well be what is missing. Encode "
        "them (1: the first won, 0: the second), or drop such rows."
    )


def _none_read(values, names, sides):
    some = ", ".join(list(dict.fromkeys(map(repr, values)))[:5])
    called = " or ".join(repr(side) for side in [*sides, *_SIDES][0])
    of_names = "" if names is None else "the name of either item, "
    remedy = " Names need ids=, the columns that hold them." if names is None else ""
    return (
        "Outcomes of duels must be in {0, 1}, {-1, 1} or booleans (1: the first won), -1, 0 and 1 "
        f"or 0, 0.5 and 1 with ties, or words: {of_names}{called}, 'tie'. Got values such as "
        f"[{some}], none of which is one of these (or is wanted).{remedy}"
    )
