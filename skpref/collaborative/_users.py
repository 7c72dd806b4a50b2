"""Who the users are: their ids as numbers."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import is_missing
from skpref._warnings import warn


def check_users(users: Any, n: int) -> list:
    """Ids as a list, one a row of X.

    Raises
    ------
    ValueError
        If there are not so many.
    TypeError
        If one is not hashable.
    """
    if hasattr(users, "to_numpy"):
        users = users.to_numpy()
    shape = np.shape(users) if isinstance(users, np.ndarray) else None
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        users = users[:, 0]
    elif shape is not None and len(shape) != 1:
        raise ValueError(f"users must have shape (n,), the id of each row of X; got {shape}.")
    if isinstance(users, str | bytes | Mapping | Set) or not hasattr(users, "__len__"):
        raise ValueError(
            f"users must be a sequence of ids, one for each row of X; got {type(users).__name__}."
        )
    # Dates of a fine unit would become integers, missing ones too.
    as_they_are = isinstance(users, np.ndarray) and users.dtype.kind not in "mM"
    listed = users.tolist() if as_they_are else list(users)
    if len(listed) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows, users "
            f"{len(listed)} ids. Give the id of the user of each row."
        )
    for row, name in enumerate(listed):
        try:
            hash(name)
        except TypeError:
            raise TypeError(
                f"Ids of users must be hashable; row {row} of users holds a "
                f"{type(name).__name__}. Make it a tuple or a string."
            ) from None
    return listed


def same_ids(ids: list) -> NDArray[np.intp]:
    """Codes of ids, equal for equal ones; those that are missing count as one."""
    code: dict = {}
    every = (None if is_missing(name) else name for name in ids)
    return np.array([code.setdefault(name, len(code)) for name in every], dtype=np.intp)


class Users:
    """Ids of the users that were fitted, in order of first appearance.

    Parameters
    ----------
    ids : list
        Repeated ones count once.

    Raises
    ------
    ValueError
        If one is missing.
    """

    def __init__(self, ids: list) -> None:
        for row, name in enumerate(ids):
            if is_missing(name):
                raise ValueError(
                    f"The id of a user is missing (None or NaN), first in row {row}. Leave these "
                    "rows out, or give each such answer an id of its own."
                )
        self._code = {name: code for code, name in enumerate(dict.fromkeys(ids))}

    def __len__(self) -> int:
        return len(self._code)

    @property
    def names(self) -> NDArray[Any]:
        """Id of each code."""
        names = np.empty(len(self._code), dtype=object)
        names[:] = list(self._code)
        return names

    def codes(self, ids: list) -> NDArray[np.intp]:
        """Code of each id; −1 for none, −2, −3 and so on for those that were not fitted.

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
            self._mention_other_types(ids)
        return codes

    def _mention_other_types(self, ids):
        written = {str(name): name for name in self._code}
        asked = next((name for name in ids if not is_missing(name) and str(name) in written), None)
        if asked is not None:
            warn(
                f"None of the users asked about was fitted, so that all count as somebody of the "
                f"population; but {written[str(asked)]!r} was, and {asked!r} is not the same. Give "
                "ids of the type that fit was given."
            )
