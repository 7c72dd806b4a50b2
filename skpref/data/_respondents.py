"""Metadata of each answer: its user or judge, its weight, and its group."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref._utils import Fields, warn
from skpref.data._containers import is_missing, unmasked


def check_respondents(ids: Any, n: int, role: str) -> list:
    """Ids as a list, one a row of X.

    Parameters
    ----------
    ids : array-like of shape (n,)
    n : int
    role : str
        Who they are, "user" or "judge", for messages.

    Raises
    ------
    ValueError
        If there are not so many.
    TypeError
        If one is not hashable.
    """
    if hasattr(ids, "to_numpy"):
        ids = ids.to_numpy()
    shape = np.shape(ids) if isinstance(ids, np.ndarray) else None
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        ids = ids[:, 0]
    elif shape is not None and len(shape) != 1:
        raise ValueError(f"{role}s must have shape (n,), the id of each row of X; got {shape}.")
    if isinstance(ids, str | bytes | Mapping | Set) or not hasattr(ids, "__len__"):
        raise ValueError(
            f"{role}s must be a sequence of ids, one for each row of X; got {type(ids).__name__}."
        )
    # Dates of a fine unit would become integers, missing ones too.
    as_they_are = isinstance(ids, np.ndarray) and ids.dtype.kind not in "mM"
    listed = ids.tolist() if as_they_are else list(ids)
    if len(listed) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows, {role}s "
            f"{len(listed)} ids. Give the id of the {role} of each row."
        )
    for row, name in enumerate(listed):
        try:
            hash(name)
        except TypeError:
            raise TypeError(
                f"Ids of {role}s must be hashable; row {row} of {role}s holds a "
                f"{type(name).__name__}. Make it a tuple or a string."
            ) from None
    return listed


def check_judges(judges: Any, n: int, k: int | None) -> "Respondents":
    """The judge of each of n answers.

    Parameters
    ----------
    judges : array-like of shape (n,)
    n : int
    k : int or None
        Items of an answer at most; None: X holds rated items.

    Raises
    ------
    ValueError
        If the answers are no duels; if ids are missing, or not so many.
    """
    if k is None:
        raise ValueError(
            "judges= are of duels; items with ratings came. Make duels of each judge's ratings "
            "(from_ratings, with one qid a judge) and repeat the judge for each of them."
        )
    if k > 2:
        raise ValueError(
            f"got judges= with sets of up to {k} items; judges= are of duels. Give each choice as "
            "duels of the chosen item with each other one, each ranking as those of from_rankings, "
            "and repeat the judge for each of them."
        )
    return Respondents(check_respondents(judges, n, "judge"), "judge")


class Respondents(Fields):
    """Ids of the fitted users or judges, in order of first appearance.

    Parameters
    ----------
    ids : list
        Repeated ones count once.
    role : str
        Who they are, for messages.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        Code of each id as it came.

    Raises
    ------
    ValueError
        If one is missing.
    """

    def __init__(self, ids: list, role: str) -> None:
        for row, name in enumerate(ids):
            if is_missing(name):
                raise ValueError(
                    f"The id of a {role} is missing (None or NaN), first in row {row}. Leave these "
                    "rows out, or give each such answer an id of its own."
                )
        self._role = role
        self._code = {name: code for code, name in enumerate(dict.fromkeys(ids))}
        self.rows = self.codes(ids)

    def __len__(self) -> int:
        return len(self._code)

    @property
    def names(self) -> NDArray[Any]:
        """Id of each code."""
        names = np.empty(len(self._code), dtype=object)
        names[:] = list(self._code)
        return names

    def codes(self, ids: list) -> NDArray[np.intp]:
        """Code of each id; −1 where there is none, −2, −3 and so on for ids that were not fitted.

        Warns of ids of another type.
        """
        found: list[int] = []
        new: dict[Any, int] = {}
        for name in ids:
            code = self._code.get(name)
            if code is None:
                code = -1 if is_missing(name) else -2 - new.setdefault(name, len(new))
            found.append(code)
        codes = np.array(found, dtype=np.intp)
        if len(codes) and np.all(codes < 0):
            self._warn_other_types(ids)
        return codes

    def _warn_other_types(self, ids):
        written = {str(name): name for name in self._code}
        asked = next((name for name in ids if not is_missing(name) and str(name) in written), None)
        if asked is not None:
            warn(
                f"None of these {self._role}s was fitted, so that all are predicted as unknown "
                f"{self._role}s; but {written[str(asked)]!r} was, and {asked!r} is not the same. "
                "Give ids of the type that fit was given."
            )


# Larger weights exceed double precision.
_MOST = 1e12


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Weights (n,) as non-negative floats of at most 1e12, not all zero; None stays None.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(unmasked(sample_weight))
    try:
        if weight.dtype.kind == "c":
            raise TypeError("complex numbers")
        weight = weight.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must hold numbers of at least 0, one for each row of X ({error})."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim > 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape {weight.shape}, "
            f"({n},) is needed, one for each row of X."
        )
    if len(weight) != n:
        raise ValueError(
            f"sample_weight has length {len(weight)}, but X has {n} rows. Give one for each row."
        )
    wrong = ~np.isfinite(weight) | (weight < 0.0)
    if wrong.any():
        raise ValueError(
            f"sample_weight must hold finite numbers of at least 0, {weight[wrong][0]} came. Leave "
            "rows without a weight out, or give them 0."
        )
    _check_all(weight)
    return weight


def pair_weights(
    sample_weight: Any, n: int, winner: NDArray[np.intp], loser: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Weights of the pairs of n rated items: the product of their items' weights."""
    weight = check_weights(sample_weight, n)
    if weight is None:
        return None
    pairs = weight[winner] * weight[loser]
    _check_all(pairs)
    return pairs


def _check_all(weight):
    if np.any(weight > _MOST):
        raise ValueError(
            f"sample_weight says how often a duel counts, at most {_MOST:g} times; "
            f"{weight.max():g} came (of a pair of rated items the product of theirs). Divide all "
            "weights by a number."
        )
    if not np.any(weight > 0.0):
        raise ValueError(
            "sample_weight is zero for every duel, so that there is nothing to learn from. Give "
            "some duels a positive weight."
        )


def check_groups(qid: Any, n_items: int) -> np.ndarray:
    """Groups of rated items as integers."""
    qid = unmasked(qid)
    shape = np.asarray(qid).shape
    if shape not in ((n_items,), (n_items, 1)):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_items} items, qid of "
            f"shape {shape}. Its shape must be (n_items,), the label of every item's group."
        )
    qid = column_or_1d(qid)
    if qid.dtype.kind == "f":
        gaps = ~np.isfinite(qid)
    else:
        gaps = np.array([is_missing(label) for label in qid.tolist()], dtype=bool)
    if gaps.any():
        raise ValueError(
            f"qid contains NaN, None or infinity in {gaps.sum()} of {n_items} places, first in "
            f"row {gaps.argmax()}. Give every item the label of its group."
        )
    try:
        return np.unique(qid, return_inverse=True)[1]
    except TypeError:
        raise ValueError(
            "qid mixes labels of different types; make them all strings, or all numbers."
        ) from None
