"""Ids of items as numbers, for kernels, which see numbers alone."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from skpref._containers import column_floats, is_missing

_EXACT = 2.0**53  # beyond, floats no longer tell all integers apart


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

    def wider(self, ids: Iterable) -> Self:
        """One that knows these ids too, by the codes that `codes` gives them."""
        return type(self)([*self._code, *_listed(ids)])


def _checked(ids: Iterable) -> list:
    listed = _listed(ids)
    for row, name in enumerate(listed):
        if is_missing(name):
            raise ValueError(
                f"The id of an item is missing (None or NaN), first in row {row}; drop that row "
                "or name the item."
            )
    return listed


def id_numbers(
    column: Any, encoder: IdEncoder | None, fresh: bool
) -> tuple[np.ndarray, IdEncoder | None]:
    """A column of ids as numbers: texts get codes, numbers stay as they are.

    Parameters
    ----------
    column : array or column of a frame
    encoder : IdEncoder or None
        Of the ids seen in training; None if they were numbers.
    fresh : bool
        Whether this is training, and the encoder to be made.

    Raises
    ------
    ValueError
        If an id is missing, or ids are texts that were numbers in training.
    """
    floats = column_floats(column)
    if floats is not None and np.isnan(floats).any():
        _checked(column)
    if fresh and (floats is None or np.abs(floats).max(initial=0.0) > _EXACT):
        encoder = IdEncoder(column)
    if encoder is not None:
        return encoder.codes(column), encoder
    if floats is None:
        raise ValueError(
            "Ids of items are texts, but the model was fitted on ids that are numbers. Give the "
            "ids of the same kind."
        )
    return floats, None
