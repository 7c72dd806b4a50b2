"""Duels, or larger sets of items, as a table of items and which of its rows were shown together."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skpref._utils import printable_text
from skpref.data._containers import (
    Immutable,
    argument_floats,
    column_names,
    copy_frame,
    frame_floats,
    is_frame,
    shallow_copy,
    take_rows,
)
from skpref.data._sets import check_padding, gather_features


class DuelFrame(Immutable):
    """Immutable duels or sets of items: those that named columns describe, or sets of any size.

    It stands where an array (n_duels, 2, n_features) or (n_sets, k, n_features) stands: in `fit`
    and `predict` (where all columns are numbers), in `Itemwise` (whatever they are), in
    ``train_test_split``, ``cross_val_score`` and ``GridSearchCV``. Builders make it of frames, and
    of arrays where sets differ in size; `from_columns`, `from_pairs`, `from_choices`,
    `from_rankings` and `from_ratings` are the usual way to one.

    Parameters
    ----------
    items : DataFrame or array-like of float of shape (n_items, n_features)
    pairs : array-like of int of shape (n_duels, 2) or (n_sets, k)
        Rows of ``items`` that were shown together: first and second, or all k in the order shown.
        With k > 2, -1 pads the end of a row that has fewer.
    id_column : column name, default=None
        The column of a frame that says who an item is, beside what it is like.

    Attributes
    ----------
    shape : (int, int, int)
        ``(n_duels, 2, n_features)`` or ``(n_sets, k, n_features)``; ``ndim`` is 3, ``len`` the
        number of duels or sets.
    dtype : dtype
        float64 if all columns are numbers, else object; that of ``numpy.asarray``.
    columns : Index or None
        None for an array.
    feature_names : ndarray of shape (n_features,) or None
        The columns, if all are strings.
    id_column : column name or None
    items : DataFrame or ndarray
    pairs : ndarray of shape (n_duels, 2) or (n_sets, k)
        Read-only.
    first, second : DataFrame or ndarray of shape (n_duels, n_features)
        The two sides; of sets, the first and the second item shown.

    Notes
    -----
    ``X[rows]`` with a slice, mask or array of positions gives a `DuelFrame`; ``X[:, 0]`` and
    ``X[:, 1]`` are the sides, ``X[:, ::-1]`` turns every duel round. All else is indexed as the
    array ``numpy.asarray(X)``, in which NaN (None among objects) stands where a set has no item.

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
    >>> X.head(1).to_frame().loc[0, ("second", "kind")]
    'cola'
    >>> DuelFrame([[0.1], [0.5], [0.7]], [[2, 0, 1], [1, 2, -1]])
    <DuelFrame: 2 sets of up to 3 items with 1 feature>
    """

    ndim = 3
    pairs: np.ndarray
    id_column: Any
    _items: Any

    def __init__(self, items: Any, pairs: Any, *, id_column: Any = None) -> None:
        items = _copy_items(items)
        pairs = np.array(pairs)
        if pairs.ndim != 2 or pairs.shape[1] < 2 or pairs.dtype.kind not in "iu":
            raise ValueError(
                "Pairs must be integers of shape (n_duels, 2) or (n_sets, k), rows of the items "
                f"that were shown together; got {pairs.dtype} of shape {pairs.shape}."
            )
        pairs = pairs.astype(np.intp)
        lowest = 0 if pairs.shape[1] == 2 else -1
        if pairs.size and (pairs.min() < lowest or pairs.max() >= len(items)):
            raise ValueError(
                f"Pairs must lie in [0, {len(items) - 1}], the rows of the items; got "
                f"{pairs.min()} to {pairs.max()}. Give rows; -1 pads sets of more than two."
            )
        check_padding(pairs < 0, "-1")
        if id_column is not None and id_column not in list(getattr(items, "columns", ())):
            columns = list(getattr(items, "columns", ()))
            raise ValueError(f"The items have no column {id_column!r} of ids; got {columns}.")
        self.__setstate__({"_items": items, "pairs": pairs, "id_column": id_column})

    @classmethod
    def _from_checked(cls, items: Any, pairs: np.ndarray, id_column: Any) -> "DuelFrame":
        """Return a `DuelFrame` of parts that need no check; -1 may be anywhere in a row."""
        made = object.__new__(cls)
        made.__setstate__({"_items": items, "pairs": np.array(pairs), "id_column": id_column})
        return made

    @property
    def items(self) -> Any:
        """Items of the duels or sets, one a row."""
        return shallow_copy(self._items)

    @property
    def columns(self) -> Any:
        """Columns of the items; None for an array."""
        return getattr(self._items, "columns", None)

    @property
    def feature_names(self) -> np.ndarray | None:
        """Names of the features, if all are strings; else None."""
        return column_names(self._items) if is_frame(self._items) else None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the array of the same duels or sets."""
        return *self.pairs.shape, self._items.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Type of the array of the same duels or sets."""
        return np.dtype(object if self._item_floats() is None else np.float64)

    @property
    def first(self) -> Any:
        """First item of each duel or set."""
        return self._items_on_side(0)

    @property
    def second(self) -> Any:
        """Second item of each duel or set."""
        return self._items_on_side(1)

    def _item_floats(self) -> np.ndarray | None:
        """Return the items as floats, or None if a column holds other things."""
        return frame_floats(self._items) if is_frame(self._items) else self._items

    def _items_on_side(self, side: int | np.integer) -> Any:
        """Return the items on one side; ValueError if a set has none there."""
        if (self.pairs[:, side] < 0).any():
            raise ValueError(
                f"Some sets have no item in place {side}; np.asarray(X)[:, {side}] has NaN there."
            )
        return self._take_items(self.pairs[:, side])

    def _take_items(self, rows: np.ndarray) -> Any:
        """Return some of the items, in a frame numbered from 0."""
        rows = take_rows(self._items, rows)
        return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(np.asarray(self))

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        while rest and _takes_all(rest[-1]):
            rest.pop()
        chosen = np.empty(0) if rows is Ellipsis or rows is None else self.pairs[rows]
        if chosen.ndim != 2 or len(rest) > 1:
            return np.asarray(self)[key]
        turned = chosen[:, rest[0]] if rest else chosen
        if not rest or (turned >= 0).all():
            if turned.shape == chosen.shape:
                return DuelFrame._from_checked(self._items, turned, self.id_column)
            if turned.ndim == 1:
                return self._take_items(turned)
        # Padding may stand elsewhere now, or too much of it.
        return np.asarray(self)[key]

    def head(self, n: int = 5) -> "DuelFrame":
        """Return the first duels or sets.

        Parameters
        ----------
        n : int, default=5
            How many; all but the last -n where it is negative.

        Returns
        -------
        DuelFrame
        """
        return self[:n]

    def tail(self, n: int = 5) -> "DuelFrame":
        """Return the last duels or sets.

        Parameters
        ----------
        n : int, default=5
            How many; all but the first -n where it is negative.

        Returns
        -------
        DuelFrame
        """
        return self[max(len(self) - n, 0) :] if n >= 0 else self[-n:]

    def to_frame(self) -> Any:
        """Return a frame to look at, with one row a duel or set and its items side by side.

        Returns
        -------
        DataFrame of shape (n_duels, 2 * n_features) or (n_sets, k * n_features)
            Of pandas. Columns have two levels: "first" and "second", or the place in the set, and
            the feature. Missing values stand where a set has no item.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame() needs pandas; install it, or take the array X.to_numpy()."
            ) from None
        items = pd.DataFrame(self._items).reset_index(drop=True)
        places = ["first", "second"] if self.pairs.shape[1] == 2 else range(self.pairs.shape[1])
        sides = [items.reindex(rows).reset_index(drop=True) for rows in self.pairs.T]  # -1: absent
        return pd.concat(sides, axis=1, keys=list(places))

    def to_numpy(self) -> np.ndarray:
        """Return the duels or sets as an array, see ``shape``, ``dtype`` and the notes."""
        values = self._item_floats()
        if values is None:
            values = np.asarray(self._items, dtype=object)
        return gather_features(values, self.pairs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("A DuelFrame is no array; turning it into one makes a copy.")
        values = self.to_numpy()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        n_shown, n_features = self.shape[1:]
        if n_shown == 2:
            shown = f"{len(self)} duels of"
        else:
            most = "up to " if (self.pairs < 0).any() else ""
            shown = f"{len(self)} sets of {most}{n_shown}"
        if self.columns is None:
            what = f"{n_features} feature{'s' if n_features > 1 else ''}"
        else:
            columns = list(map(printable_text, self.columns))
            more = f", … ({len(columns)})" if len(columns) > 6 else ""
            what = f"columns {', '.join(columns[:6])}{more}"
        ids = "" if self.id_column is None else f", ids in {self.id_column}"
        return f"<DuelFrame: {shown} items with {what}{ids}>"


def stack_sets(items: Any, sets: np.ndarray, id_column: Any = None) -> np.ndarray | DuelFrame:
    """Return items set by set: an array, or a `DuelFrame` of named columns or of sets with gaps.

    Parameters
    ----------
    items : ndarray of float or DataFrame of shape (n_items, n_features)
    sets : ndarray of int of shape (n_sets, k)
        Rows of ``items``, -1 where a set has fewer, anywhere.
    id_column : column name, default=None
    """
    if is_frame(items) or (sets < 0).any():
        return DuelFrame._from_checked(_copy_items(items), sets, id_column)
    return items[sets]


def _copy_items(items: Any) -> Any:
    """Return a copy of items: a frame, or floats; ValueError if they are no numbers."""
    if is_frame(items):
        return copy_frame(items)
    form = "The items of a DuelFrame must be a DataFrame or numbers of shape (n_items, n_features)"
    array = argument_floats(items, form)
    if array.ndim != 2:
        raise ValueError(f"{form}; got an array of shape {array.shape}.")
    return array


def _takes_all(key: Any) -> bool:
    """Return whether an index is the slice of everything."""
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))
