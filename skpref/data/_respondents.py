"""Ids of users and judges, and their codes."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._utils import warn
from skpref.data._containers import check_one_each, exact_list, is_missing
from skpref.data._items import IdCodes, check_ids


def check_respondents(ids: Any, n: int, role: str) -> list:
    """Return the ids of users or judges as a list, one a row of X; ValueError for others.

    Parameters
    ----------
    ids : array-like of shape (n,)
    n : int
    role : str
        Who they are, "user" or "judge", for messages.

    Raises
    ------
    ValueError
        If there are not so many, or one was rounded.
    TypeError
        If one is not hashable.
    """
    if isinstance(ids, str | bytes | Mapping | Set) or not hasattr(ids, "__len__"):
        raise ValueError(
            f"{role}s must be a sequence of ids, one for each row of X; got {type(ids).__name__}."
        )
    if isinstance(ids, np.ndarray) and ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    shape = getattr(ids, "shape", (n,))
    listed = exact_list(ids)
    check_one_each(shape if len(shape) != 1 else (len(listed),), n, f"ids in {role}s")
    check_ids(listed, f"{role}s")
    return listed


class Respondents(IdCodes):
    """Ids of the fitted users or judges, in order of first appearance.

    Parameters
    ----------
    ids : list
        Repeated ones count once.
    role : str
        Who they are, for messages.

    Attributes
    ----------
    names : ndarray of shape (n_ids,)
        Id of each code.
    rows : ndarray of int of shape (n,)
        Code of the id of each row.

    Raises
    ------
    ValueError
        If one is missing.
    """

    def __init__(self, ids: list, role: str) -> None:
        remedy = "Leave these rows out, or give each such answer an id of its own"
        super().__init__(ids, f"a {role}", remedy)
        self._role = role
        self.rows = self.codes(ids)

    def codes(self, ids: list) -> NDArray[np.intp]:
        """Return the code of each id; −1 where there is none, −2, −3, … for ids that are new.

        Warns of ids of another type.
        """
        new: dict[Any, int] = {}
        codes = np.empty(len(ids), dtype=np.intp)
        for row, name in enumerate(ids):
            code = self._code.get(name)
            if code is None:
                code = -1 if is_missing(name) else -2 - new.setdefault(name, len(new))
            codes[row] = code
        if len(codes) and np.all(codes < 0):
            self._warn_other_types(ids)
        return codes

    def _warn_other_types(self, ids):
        """Warn where ids are those of the fit but for their type."""
        written = {str(name): name for name in self._code}
        asked = next((name for name in ids if not is_missing(name) and str(name) in written), None)
        if asked is not None:
            warn(
                f"None of these {self._role}s was fitted; but {written[str(asked)]!r} was, and "
                f"{asked!r} is not the same. Give ids of the type that fit was given."
            )
