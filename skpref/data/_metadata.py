"""What stands beside each answer: read once from the arguments of a method, and handed on whole."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skpref.data._containers import (
    argument_floats,
    check_one_each,
    exact_array,
    is_missing,
    one_each,
    refuse_rows,
)
from skpref.data._items import check_ids
from skpref.data._labels import check_order
from skpref.data._respondents import check_respondents
from skpref.data._time import AnswerTimes

# Share of the answers that may be of no use without a warning: chance brings some about, such as
# votes without a judge, or duels of two equal items where pairs are drawn from a table.
UNMENTIONED = 0.05


# Arguments that exclude each other, and why.
_NEVER_TOGETHER = (
    *(("measured", name, "values are of items alone") for name in ("judges", "prompts", "time")),
    ("offset", "judges", "how reliable judges are is learned of margins without offsets"),
    ("prompts", "time", "effects of prompts do not move through time"),
    ("order_drift", "judges", "an order effect that moves is of all judges alike"),
)


def refuse_together(given: Collection[str]) -> None:
    """Raise ValueError if two of these arguments exclude each other."""
    for name, other, reason in _NEVER_TOGETHER:
        if name in given and other in given:
            raise ValueError(
                f"got {name}= with {other}=; one of them is allowed, as {reason}. Leave one of the "
                "two out."
            )


@dataclass(frozen=True, eq=False)
class AnswerMetadata:
    """Checked metadata of the answers, a value for each row of X; a field is None if not given.

    Attributes
    ----------
    weight : ndarray of float64 of shape (n,) or None
        How often each answer counts: finite, at least 0, at most 1e12, not all 0.
    order : ndarray of int8 of shape (n,) or None
        Who was shown first: 1 the first item, -1 the second of two, 0 none.
    judge, user, prompt : list of length n or None
        Ids of who answered, and of what the answers of a group are about, of any hashable type,
        exactly as in the argument; some may be missing.
    time : AnswerTimes or None
        When each was given: n numbers, or n dates.
    qid : ndarray of int of shape (n,) or None
        Group of each rated item.
    offset : ndarray of float64 of shape (n, k), of rated items (n,), or None
        Known part of the utility of each item of each row; see `shown_offset`.
    """

    weight: NDArray[np.float64] | None = None
    order: NDArray[np.int8] | None = None
    judge: list | None = None
    user: list | None = None
    prompt: list | None = None
    time: AnswerTimes | None = None
    qid: NDArray[np.intp] | None = None
    offset: NDArray[np.float64] | None = None

    @classmethod
    def read(cls, keywords: Mapping[str, Any], n: int, k: int | None) -> Self:
        """Return the checked metadata of the arguments of a method that stand beside X.

        Parameters
        ----------
        keywords : mapping of str
            The arguments that were given, by the names that users know: ``sample_weight``,
            ``order``, ``judges``, ``users``, ``prompts``, ``time``, ``qid``, ``offset``. With
            ``measured`` values all weights may be 0.
        n : int
            Rows of X.
        k : int or None
            Items of an answer at most; None: X holds rated items.

        Raises
        ------
        TypeError, ValueError
            If one is not of an allowed form, or does not go with such an X.
        """
        refuse_together(keywords)
        fields = {
            field: read(keywords[name], n, k)
            for name, (field, read) in _KEYWORDS.items()
            if name in keywords
        }
        if fields.get("weight") is not None and "measured" not in keywords:
            check_some_weight(fields["weight"])
        return cls(**fields)

    def shown_offset(self, shown: NDArray[np.bool_] | None = None) -> NDArray[np.float64] | None:
        """Return the offsets, 0 where no item was shown; None if there are none.

        Parameters
        ----------
        shown : ndarray of bool of shape (n, k), optional
            Where there is an item; by default everywhere.

        Raises
        ------
        ValueError
            If that of an item is not finite.
        """
        if self.offset is None:
            return None
        offset = self.offset if shown is None else np.where(shown, self.offset, 0.0)
        rows = offset.reshape(len(offset), -1)
        refuse_rows(
            ~np.isfinite(rows).all(axis=1),
            "offset must hold finite numbers; got {value} in row {row}. Give what is unknown 0.",
            rows,
        )
        return offset


def _read_ids(ids: Any, n: int, k: int | None, role: str) -> list:
    """Return the judge, user or prompt of each answer; ValueError where such answers have none."""
    if k is None and role != "user":
        raise ValueError(
            f"got {role}s= with items that have ratings; {role}s= are of duels. Make duels of the "
            f"ratings (from_ratings, with one qid a {role}) and repeat the {role} for each."
        )
    if k is not None and k > 2 and role == "judge":
        raise ValueError(
            f"got judges= with sets of up to {k} items; how reliable judges are is learned of "
            "duels alone. Pass prompts= the judges, who then have effects of their own, or make "
            "duels of each set, as from_rankings does of rankings, and repeat the judge for each."
        )
    return check_respondents(ids, n, role)


def _read_offset(offset: Any, n: int, k: int | None) -> NDArray[np.float64]:
    """Return the known utility of each item of each row as floats; ValueError for others."""
    shape = (n,) if k is None else (n, k)
    what = f"offset must hold a number for each item of each row of X, shape {shape}"
    values = argument_floats(offset, what)
    if values.shape != shape:
        is_difference = k == 2 and values.shape == (n,)
        remedy = " Of differences d, first less second, give np.column_stack([d, 0.0 * d])."
        raise ValueError(f"{what}; got shape {values.shape}.{remedy * is_difference}")
    return values


# -- weights -----------------------------------------------------------------------------------

# Larger weights exceed double precision.
_MOST = 1e12


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Return weights (n,) as floats from 0 to 1e12; None stays None.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    if sample_weight is None:
        return None
    form = "sample_weight must hold numbers of at least 0, one for each row of X"
    weight = one_each(argument_floats(sample_weight, form), n, "values of sample_weight")
    refuse_rows(
        ~np.isfinite(weight) | (weight < 0.0),
        "sample_weight must hold finite numbers of at least 0, got {value}. Leave such rows out.",
        weight,
    )
    check_largest_weight(weight)
    return weight


def check_largest_weight(weight: NDArray[np.float64]) -> None:
    """Raise ValueError if a weight of a duel is too large for exact sums."""
    if np.any(weight > _MOST):
        raise ValueError(
            f"sample_weight says how often a duel counts, at most {_MOST:g} times; got "
            f"{weight.max():g} (of rated items: of a pair). Divide all weights by a number."
        )


def check_some_weight(weight: NDArray[np.float64]) -> None:
    """Raise ValueError if weights of duels are all 0."""
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight is zero for every duel. Give some duels a positive weight.")


# -- groups of rated items ---------------------------------------------------------------------


def read_groups(qid: Any, n: int, k: int | None = None) -> NDArray[np.intp]:
    """Return groups of rated items as integers; ValueError for gaps or other lengths."""
    if k is not None:
        raise ValueError(
            "qid belongs to items with ratings, whose features are a 2-D X; duels take none, nor "
            "do positions in a table. Ratings of such items become duels by from_ratings."
        )
    qid = exact_array(qid)
    qid = qid[:, 0] if qid.shape == (n, 1) else qid
    check_one_each(qid.shape, n, "labels in qid", "items")
    gaps = [is_missing(label) or label in (np.inf, -np.inf) for label in qid.tolist()]
    refuse_rows(
        np.array(gaps, dtype=bool),
        f"qid contains NaN, None or infinity in {{count}} of {n} places, first in row {{row}}. "
        "Give every item the label of its group.",
    )
    check_ids(qid.tolist(), "qid")
    try:
        return np.unique(qid, return_inverse=True)[1].reshape(-1)
    except TypeError:
        raise ValueError(
            "qid mixes labels of different types; make them all strings, or all numbers."
        ) from None


# The arguments that users know: the field that each becomes, and its reader.
_KEYWORDS: dict[str, tuple[str, Callable[[Any, int, int | None], Any]]] = {
    "judges": ("judge", partial(_read_ids, role="judge")),
    "users": ("user", partial(_read_ids, role="user")),
    "prompts": ("prompt", partial(_read_ids, role="prompt")),
    "order": ("order", check_order),
    "qid": ("qid", read_groups),
    "offset": ("offset", _read_offset),
    "time": (
        "time",
        lambda time, n, k: AnswerTimes.read(time, n, "items" if k is None else "answers"),
    ),
    "sample_weight": ("weight", lambda weight, n, k: check_weights(weight, n)),
}
