"""Who the users are: their ids as numbers, and rows of features by id."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import is_frame
from skpref._default_kernel import feature_spread
from skpref._linalg import Array
from skpref._respondents import Respondents, check_respondents

_FORMS = (
    "a mapping of ids to rows of numbers, a DataFrame whose index holds the ids, or an array of "
    "shape (n_users, n_features) whose positions are the ids"
)


def check_users(users: Any, n: int) -> list:
    """Ids as a list, one a row of X, see `check_respondents`."""
    return check_respondents(users, n, "user")


class Users(Respondents):
    """Ids of the users that were fitted, see `Respondents`.

    Parameters
    ----------
    ids : list
    """

    def __init__(self, ids: list) -> None:
        super().__init__(ids, "user")


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
