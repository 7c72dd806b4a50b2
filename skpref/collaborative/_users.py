"""Who the users are: their ids as numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._containers import is_missing
from skpref._respondents import Respondents, check_respondents


def check_users(users: Any, n: int) -> list:
    """Ids as a list, one a row of X, see `check_respondents`."""
    return check_respondents(users, n, "user")


def same_ids(ids: list) -> NDArray[np.intp]:
    """Codes of ids, equal for equal ones; those that are missing count as one."""
    code: dict = {}
    every = (None if is_missing(name) else name for name in ids)
    return np.array([code.setdefault(name, len(code)) for name in every], dtype=np.intp)


class Users(Respondents):
    """Ids of the users that were fitted, see `Respondents`.

    Parameters
    ----------
    ids : list
    """

    def __init__(self, ids: list) -> None:
        super().__init__(ids, "user")
