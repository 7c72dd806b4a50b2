"""Ids of items as numbers, for kernels, which see numbers alone."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skpref._containers import is_missing


def _listed(ids: Any) -> list:
    return ids.tolist() if hasattr(ids, "tolist") else list(ids)


class IdEncoder:
    """Codes of ids in order of first appearance; ids not known get new ones.

    Parameters
    ----------
    ids : iterable of hashables
        Texts or numbers, repeated ones count once.

    Attributes
    ----------
    names : ndarray of shape (n_ids,)
        Id of each code.

    Raises
    ------
    ValueError
        If an id is missing.

    Examples
    --------
    >>> from skpref._ids import IdEncoder
    >>> IdEncoder(["ann", "bob", "ann"]).codes(["bob", "zoe", "yan", "zoe"]).tolist()
    [1.0, 2.0, 3.0, 2.0]
    """

    def __init__(self, ids: Iterable) -> None:
        self._code = {name: code for code, name in enumerate(dict.fromkeys(_checked(ids)))}

    @property
    def names(self) -> np.ndarray:
        names = np.empty(len(self._code), dtype=object)
        names[:] = list(self._code)
        return names

    def __len__(self) -> int:
        return len(self._code)

    def codes(self, ids: Iterable) -> np.ndarray:
        """Code of each id.

        Two ids not known differ from each other and from all that are; their codes hold for
        this call alone.

        Parameters
        ----------
        ids : iterable of hashables

        Returns
        -------
        ndarray of float64 of shape (n,)

        Raises
        ------
        ValueError
            If an id is missing.
        """
        new: dict = {}
        known = self._code
        found = [
            known[name] if name in known else new.setdefault(name, len(known) + len(new))
            for name in _checked(ids)
        ]
        return np.array(found, dtype=np.float64)


def _checked(ids: Iterable) -> list:
    listed = _listed(ids)
    for row, name in enumerate(listed):
        if is_missing(name):
            raise ValueError(
                f"The id of an item is missing (None or NaN), first in row {row}; drop that row "
                "or name the item."
            )
    return listed
