"""Who the users are: their ids as numbers, and rows of features by id."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import is_frame, is_missing
from skpref._default_kernel import feature_spread
from skpref._linalg import Array

_FORMS = (
    "a mapping of ids to rows of numbers, a DataFrame whose index holds the ids, or an array of "
    "shape (n_users, n_features) whose positions are the ids"
)


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
    if isinstance(users, str | bytes | Mapping) or not hasattr(users, "__len__"):
        raise ValueError(
            f"users must be a sequence of ids, one for each row of X; got {type(users).__name__}."
        )
    listed = users.tolist() if isinstance(users, np.ndarray) else list(users)
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
        """Code of each id, −1 for one that was not fitted."""
        return np.array([self._code.get(name, -1) for name in ids], dtype=np.intp)


class UserTable:
    """Rows of features by id.

    Parameters
    ----------
    table : mapping, DataFrame or array-like

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
        Each feature in units of its spread.
    """

    def __init__(self, table: Any) -> None:
        if isinstance(table, Mapping):
            ids, values = list(table), list(table.values())
        elif is_frame(table):
            index = getattr(table, "index", None)
            ids = list(range(len(table))) if index is None else index.tolist()
            values = table.to_numpy()
        else:
            values = table
            ids = None
        try:
            rows = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"user_features must be {_FORMS}: {error}.") from None
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"user_features must be {_FORMS}; got shape {rows.shape}.")
        if not np.all(np.isfinite(rows)):
            raise ValueError(
                "user_features contain NaN or infinity; impute them, or leave these users out: "
                "they then count as users without features."
            )
        ids = list(range(len(rows))) if ids is None else ids
        self._row = {name: row for row, name in enumerate(ids)}
        if len(self._row) < len(ids):
            raise ValueError("user_features name a user twice; give each user one row.")
        self.rows: Array = (rows - rows.mean(axis=0)) / feature_spread(rows)

    def places(self, ids: list) -> NDArray[np.intp]:
        """Row of each id, −1 for one without."""
        return np.array([self._row.get(name, -1) for name in ids], dtype=np.intp)
