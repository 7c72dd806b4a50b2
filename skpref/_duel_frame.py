"""Duels whose items have named columns, of any type."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skpref._containers import (
    column_names,
    frame_floats,
    is_frame,
    own_frame,
    shallow_copy,
    take_rows,
)


class DuelFrame:
    """Immutable duels of items that have named columns: numbers, texts, categories, gaps.

    It stands where a duel array (n_duels, 2, n_features) stands: in `fit` and `predict` (where
    all columns are numbers), in `Itemwise` (whatever they are), in ``train_test_split``,
    ``cross_val_score`` and ``GridSearchCV``. Builders make it of frames; `from_columns`,
    `from_pairs`, `from_rankings` and `from_ratings` are the usual way to one.

    Parameters
    ----------
    items : DataFrame of shape (n_items, n_features)
    pairs : array-like of int of shape (n_duels, 2)
        Rows of ``items`` that meet: first and second.
    id_column : column name, default=None
        The column that says who an item is, beside what it is like.

    Attributes
    ----------
    shape : (int, int, int)
        ``(n_duels, 2, n_features)``; ``ndim`` is 3, ``len`` the number of duels.
    dtype : dtype
        float64 if all columns are numbers, else object; that of ``numpy.asarray``.
    columns : Index
    feature_names : ndarray of shape (n_features,) or None
        The columns, if all are strings.
    id_column : column name or None
    items : DataFrame
    pairs : ndarray of shape (n_duels, 2)
        Read-only.
    first, second : DataFrame of shape (n_duels, n_features)
        The two sides.

    Notes
    -----
    ``X[rows]`` with a slice, mask or array of positions gives a `DuelFrame`; ``X[:, 0]`` and
    ``X[:, 1]`` are the frames of the sides, ``X[:, ::-1]`` turns every duel round. All else is
    indexed as the array ``numpy.asarray(X)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpref.duels import DuelFrame
    >>> drinks = pd.DataFrame({"kind": ["tea", "cola", "tea"], "sugar": [0.0, 0.9, 0.3]})
    >>> X = DuelFrame(drinks, [[0, 1], [2, 1]])
    >>> X
    <DuelFrame: 2 duels of items with columns kind, sugar>
    >>> X.shape, X.first["sugar"].tolist(), X[1:].second["kind"].tolist()
    ((2, 2, 2), [0.0, 0.3], ['cola'])
    """

    ndim = 3
    pairs: np.ndarray
    id_column: Any
    _items: Any

    def __init__(self, items: Any, pairs: Any, *, id_column: Any = None) -> None:
        if not is_frame(items):
            raise ValueError(f"A DuelFrame needs a DataFrame; {type(items).__name__} came.")
        pairs = np.array(pairs)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(
                f"Pairs must be integers of shape (n_duels, 2), rows of the frame that meet; "
                f"{pairs.dtype} of shape {pairs.shape} came."
            )
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(items)):
            raise ValueError(f"Pairs must lie in [0, {len(items) - 1}], the rows of the frame.")
        if id_column is not None and id_column not in list(items.columns):
            raise ValueError(
                f"The frame has no column {id_column!r} of ids; it has {list(items.columns)}."
            )
        self.__setstate__((own_frame(items), pairs.astype(np.intp), id_column))

    def __getstate__(self) -> tuple:
        return self._items, self.pairs, self.id_column

    def __setstate__(self, state: tuple) -> None:
        items, pairs, id_column = state
        pairs.flags.writeable = False
        self.__dict__.update(_items=items, pairs=pairs, id_column=id_column)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A DuelFrame is immutable; {name!r} cannot be set. Build a new one.")

    def _with(self, pairs: np.ndarray) -> "DuelFrame":
        made = object.__new__(DuelFrame)
        made.__setstate__((self._items, np.array(pairs), self.id_column))
        return made

    @property
    def items(self) -> Any:
        return shallow_copy(self._items)

    @property
    def columns(self) -> Any:
        return self._items.columns

    @property
    def feature_names(self) -> np.ndarray | None:
        return column_names(self._items)

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.pairs), 2, self._items.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object if frame_floats(self._items) is None else np.float64)

    @property
    def first(self) -> Any:
        return self._side(0)

    @property
    def second(self) -> Any:
        return self._side(1)

    def _side(self, side: int | np.integer) -> Any:
        rows = take_rows(self._items, self.pairs[:, side])
        return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(np.asarray(self))

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        while rest and (rest[-1] is Ellipsis or _is_all(rest[-1])):
            rest.pop()
        chosen = None if rows is Ellipsis or rows is None else self.pairs[rows]
        if chosen is None or chosen.ndim != 2 or len(rest) > 1:
            return np.asarray(self)[key]
        if not rest:
            return self._with(chosen)
        sides = rest[0]
        if isinstance(sides, int | np.integer):
            return self._with(chosen)._side(sides)
        turned = chosen[:, sides]
        return self._with(turned) if turned.shape[1:] == (2,) else np.asarray(self)[key]

    def to_numpy(self) -> np.ndarray:
        """The duels as an array of shape (n_duels, 2, n_features), see ``dtype``."""
        values = frame_floats(self._items)
        if values is None:
            values = np.asarray(self._items, dtype=object)
        return values[self.pairs]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("A DuelFrame is no array; turning it into one makes a copy.")
        values = self.to_numpy()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        columns = list(map(str, self.columns))
        shown = ", ".join(columns[:6]) + (f", … ({len(columns)})" if len(columns) > 6 else "")
        ids = "" if self.id_column is None else f", ids in {self.id_column}"
        return f"<DuelFrame: {len(self)} duels of items with columns {shown}{ids}>"


def _is_all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)
