"""Items: which of them are equal, immutable tables of them, and their ids as numbers."""

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array

from skpref._utils import Fields, row_blocks, warn
from skpref.data._containers import (
    Immutable,
    all_strings,
    beyond_doubles,
    check_one_each,
    column_at,
    column_floats,
    column_names,
    copy_frame,
    distinct_values,
    exact_array,
    exact_list,
    fill_masked,
    frame_floats,
    is_frame,
    is_missing,
    look_up_codes,
    object_array,
    plain_name,
    refuse_rounded,
    shallow_copy,
)

_SHIFT = np.uint64(29)


def _hash_rows(bits):
    """Return a hash of each row of bits: every bit is mixed in by odd multipliers."""
    odd = np.random.default_rng(20240229).integers(1, 2**63, bits.shape[1], dtype=np.uint64) | 1
    mixed = bits >> _SHIFT
    mixed ^= bits
    return mixed @ odd


def group_equal_rows(items: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each group of equal rows of a table, and the group of each row.

    Parameters
    ----------
    items : ndarray of shape (n_items, d)
    rows : ndarray of int of shape (n,)

    Returns
    -------
    first : ndarray of shape (m,)
        Place in ``rows`` of one of each group; the order of groups depends on the values alone.
    inverse : ndarray of shape (n,)
        Group of each.
    """
    if items.shape[1] == 0:
        return np.zeros(min(len(rows), 1), dtype=np.intp), np.zeros(len(rows), dtype=np.intp)
    key = np.zeros(len(rows), dtype=np.uint64)
    for block in row_blocks(len(rows), items.shape[1]):
        key[block] = _hash_rows(_row_bits(items, rows[block]))
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    others = np.flatnonzero(first[inverse] != np.arange(len(rows)))
    for block in row_blocks(len(others), items.shape[1]):
        some = others[block]
        same = _row_bits(items, rows[some]) == _row_bits(items, rows[first[inverse[some]]])
        if not same.all():  # a hash collision
            bits = _row_bits(items, rows)
            _, first, inverse = np.unique(bits, axis=0, return_index=True, return_inverse=True)
            break
    return first, inverse.reshape(-1)


def _row_bits(items, rows):
    """Return the bits of some rows as unsigned integers."""
    return float_rows(items, rows).view(np.uint64)


def float_rows(items: np.ndarray, rows: Any) -> np.ndarray:
    """Return a copy of some rows in double precision, without negative zeros."""
    taken = np.asarray(items)[rows]
    own = taken.base is None and taken.flags.c_contiguous
    if taken.dtype != np.float64 or not own:
        taken = np.array(taken, dtype=np.float64, order="C")
    taken += 0.0  # -0.0 becomes 0.0
    return taken


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of an array, and which of them each row is.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Floats. NaN equals NaN.

    Returns
    -------
    distinct : ndarray of shape (m, d)
        The order depends on the values alone, not on the order of ``rows``.
    inverse : ndarray of shape (n,)
        ``distinct[inverse]`` equals ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import distinct_rows
    >>> distinct, inverse = distinct_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> len(distinct), distinct[inverse[2]].tolist()
    (2, [1.0, 2.0])
    """
    first, inverse = group_equal_rows(rows, np.arange(len(rows)))
    return float_rows(rows, first), inverse


def _column_codes(column):
    """Return numbers that are equal where values of a column are, whatever their order."""
    column = exact_array(column)
    if column.dtype.kind == "f":
        return np.asarray(column, dtype=np.float64)
    try:
        return np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.float64)
    except TypeError:  # mixed types, or missing values among strings
        keys = [(type(value).__name__, repr(value)) for value in column.tolist()]
        rank = {key: i for i, key in enumerate(sorted(set(keys)))}
        return np.array([rank[key] for key in keys], dtype=np.float64)


def group_rows(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each group of equal rows, and the group of each row.

    Parameters
    ----------
    rows : ndarray of shape (n, d) or (n,), or DataFrame of shape (n, d)

    Returns
    -------
    first : ndarray of shape (m,)
        One row of each group; the order of the groups depends on the values alone.
    inverse : ndarray of shape (n,)
        Group of each row.
    """
    if not is_frame(rows) and rows.ndim == 1:  # names, in their order
        ordered, listed = sorted(set(rows.tolist())), rows.tolist()
        rank = {name: i for i, name in enumerate(ordered)}
        code = np.array([rank[name] for name in listed], dtype=np.intp)
        return np.unique(code, return_index=True)[1], code
    if is_frame(rows) or rows.dtype.kind != "f":
        rows = np.column_stack([_column_codes(column_at(rows, j)) for j in range(rows.shape[1])])
    return group_equal_rows(rows, np.arange(len(rows)))


def _flatten_names(names: Iterable) -> Iterator:
    """Yield the names in nested lists and arrays."""
    for name in names.ravel().tolist() if isinstance(names, np.ndarray) else names:
        if isinstance(name, list | tuple | np.ndarray):
            yield from _flatten_names(name)
        else:
            yield name


def _check_names(names: Any) -> np.ndarray:
    """Return names as an object array; ValueError if some are missing, nested or of mixed types."""
    names = exact_list(names)
    nested = [name for name in names if isinstance(name, tuple | list | np.ndarray)]
    if nested:
        raise ValueError(
            f"Names of items must be strings or numbers; got {nested[0]!r}. "
            "Join the levels of a MultiIndex into one string first."
        )
    if any(map(is_missing, names)):
        raise ValueError(
            "A name of an item is missing (None, NaN or null); drop that row or name it."
        )
    if len({isinstance(name, str) for name in names}) > 1:
        raise ValueError(
            "Names of items mix strings with other types; make them all strings, or all numbers."
        )
    return object_array(names)


def _copy_finite_features(X: Any) -> np.ndarray:
    """Return a copy of finite features, or a memory map itself; ValueError for others."""
    floats = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64)
    if not floats or X.ndim != 2 or not X.size:
        return check_array(X, dtype=np.float64, copy=True, input_name="items")
    array = np.asarray(X)
    for rows in row_blocks(len(array), array.shape[1]):
        check_array(array[rows], dtype=None, input_name="items")  # finite?
    return array.view() if _is_mapped(X) else array.copy()


def _is_mapped(array: Any) -> bool:
    """Return whether the memory of an array is that of a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


class ItemTable(Immutable, Fields):
    """An immutable table of items, for the ``items=`` of estimators and for the builders.

    ``sklearn.base.clone`` hands on the table itself, so a large one is never copied.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_items, n_features)
        Finite features; a DataFrame may hold texts, categories and missing values, for
        `Itemwise` to encode. An array of float32 stays one; rows become float64 as they are used.
        A memory map (``numpy.load(path, mmap_mode="r")``) is not copied: leave its file as it is.
    names : array-like of shape (n_items,), default=None
        Distinct names, all strings or all numbers; by default the index of a DataFrame.

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features) or None
        Read-only, of float64 or float32. None if a column of the frame holds other things than
        finite numbers. Without features it holds the positions of the items, as one column.
    frame : DataFrame or None
        A copy of the frame, with its columns as they were.
    names : ndarray of shape (n_items,) or None
    feature_names : ndarray of shape (n_features,) or None
        Columns of a DataFrame, if all are strings.
    has_features : bool
        False for tables built by `from_names`.

    Raises
    ------
    ValueError
        If X is not 2-D or empty, or an array is not finite; if names repeat, are missing or are
        too few.

    Examples
    --------
    >>> from skpref.duels import ItemTable
    >>> table = ItemTable([[0.1, 2.0], [0.3, 1.0]], names=["tea", "coffee"])
    >>> table.index(["coffee", "tea"])
    array([1, 0])
    """

    X: Any  # an array, or None where a frame holds other things than numbers
    names: Any
    feature_names: np.ndarray | None
    has_features: bool
    _frame: Any
    _position: dict

    def __init__(self, X: Any, names: Any = None) -> None:
        if not is_frame(X):
            self._set_fields(_copy_finite_features(fill_masked(X)), names, None, True)
            return
        if names is None and hasattr(X, "index"):
            names = X.index
        if 0 in X.shape:
            raise ValueError(
                f"The frame of items has shape {X.shape}; it needs a row and a column."
            )
        frame = copy_frame(X)
        array = frame_floats(frame)
        finite = array is not None and np.isfinite(array).all()
        self._set_fields(array if finite else None, names, column_names(frame), True, frame)

    def _set_fields(self, X, names, feature_names, has_features, frame=None):
        """Set the fields of a table; ValueError for names that repeat or are too few."""
        n_items = len(X if X is not None else frame)
        names = None if names is None else _check_names(names)
        if names is not None:
            check_one_each(names.shape, n_items, "names", "items")
        position = {} if names is None else {name: i for i, name in enumerate(names.tolist())}
        if names is not None and len(position) != len(names):
            repeated = next(n for i, n in enumerate(names.tolist()) if position[n] != i)
            raise ValueError(
                f"The name {repeated!r} stands for more than one item; names must be distinct "
                "(for a DataFrame, reset_index(drop=True) numbers the rows)."
            )
        public = {"X": X, "names": names, "feature_names": feature_names}
        self.__setstate__(
            {**public, "has_features": has_features, "_frame": frame, "_position": position}
        )

    def check_loaded_fields(self) -> None:
        """Raise TypeError unless every field is there, see `Fields`."""
        missing = ItemTable.__annotations__.keys() - vars(self).keys()
        if missing:
            raise TypeError(f"a table of items has no {', '.join(sorted(missing))}")

    def __sklearn_clone__(self) -> "ItemTable":
        return self

    @property
    def frame(self) -> Any:
        """Return a copy of the frame of items, or None if they were no frame."""
        return None if self._frame is None else shallow_copy(self._frame)

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return (self.X if self.X is not None else self._frame).shape[1]

    def __len__(self) -> int:
        return len(self.X if self.X is not None else self._frame)

    def __repr__(self) -> str:
        what = f"{self.n_features} features" if self.has_features else "no features"
        named = ", named" if self.names is not None else ""
        return f"<ItemTable: {len(self)} items, {what}{named}>"

    @classmethod
    def from_names(cls, names: Iterable) -> "ItemTable":
        """Return a table of items that have names but no features (Bradley–Terry).

        The position stands for the item: no n × n array is ever made.

        Parameters
        ----------
        names : array-like or iterable
            Names, all strings or all numbers, of any shape; repeated ones count once, in order
            of first appearance (so the pairs themselves will do).

        Returns
        -------
        ItemTable

        Examples
        --------
        >>> from skpref.duels import ItemTable
        >>> table = ItemTable.from_names([["ann", "bob"], ["cid", "ann"]])
        >>> table.names.tolist(), table.X.ravel().tolist(), table.has_features
        (['ann', 'bob', 'cid'], [0.0, 1.0, 2.0], False)
        """
        names = exact_array(names) if hasattr(names, "__array__") else names
        distinct = _check_names(dict.fromkeys(_flatten_names(names)))
        if len(distinct) == 0:
            raise ValueError("Got no name; an ItemTable needs at least one item.")
        table = cls.__new__(cls)
        positions = np.arange(len(distinct), dtype=np.float64)[:, None]
        table._set_fields(positions, distinct, None, False)
        return table

    def index(self, names: Any) -> np.ndarray:
        """Return the positions of named items.

        Parameters
        ----------
        names : array-like of any shape
            Names of items of this table.

        Returns
        -------
        ndarray of intp, of the shape of ``names``

        Raises
        ------
        ValueError
            If the table has no names, or a name is not in it.
        """
        if self.names is None:
            raise ValueError("This ItemTable has no names; give ItemTable(X, names=...) some.")
        if isinstance(names, list | tuple):
            names = np.asarray(names, dtype=object)
        names = exact_array(names)
        try:
            return look_up_codes(names, self._position)
        except KeyError:
            unknown = [name for name in distinct_values(names) if name not in self._position]
            shown = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            remedy = "add the missing ones or drop the duels."
            if not all_strings(self.names) and all_strings(np.array(unknown, dtype=object)):
                remedy = "the index of a DataFrame names its items: frame.set_index(column)."
            raise ValueError(
                f"{len(unknown)} unknown name(s) of items: {shown}. The table has {len(self)} "
                f"items, named {self.names[0]!r} and so on; {remedy}"
            ) from None


class IdCodes(Fields):
    """Ids in order of first appearance, each with its place among them as its code.

    Parameters
    ----------
    ids : list
        Hashable; repeated ones count once.
    subject, remedy : str
        Whose ids they are, and what to do where one is missing, for the error.

    Attributes
    ----------
    names : ndarray of shape (n_ids,)
        Id of each code.

    Raises
    ------
    ValueError
        If one is missing.
    """

    _code: dict[Any, int]

    def __init__(self, ids: list, subject: str, remedy: str) -> None:
        check_present(ids, subject, remedy)
        self._code = {name: code for code, name in enumerate(dict.fromkeys(ids))}

    @property
    def names(self) -> np.ndarray:
        """Id of each code."""
        return object_array(self._code)

    def __len__(self) -> int:
        return len(self._code)


def check_present(ids: list, subject: str, remedy: str) -> None:
    """Raise ValueError if an id is missing."""
    if any(map(is_missing, dict.fromkeys(ids))):
        row = next(row for row, name in enumerate(ids) if is_missing(name))
        raise ValueError(
            f"The id of {subject} is missing (None, NaN or null), first in row {row}. {remedy}."
        )


def check_ids(ids: list, argument: str) -> None:
    """Raise unless all ids are hashable, and none may be an integer that was rounded.

    Parameters
    ----------
    ids : list
    argument : str
        Name of the argument that holds them, for messages.
    """
    try:
        distinct = set(ids)
    except TypeError:
        row, name = next((i, name) for i, name in enumerate(ids) if not _is_hashable(name))
        raise TypeError(
            f"Ids of {argument} must be hashable; row {row} of {argument} holds a "
            f"{type(name).__name__}. Make it a tuple or a string."
        ) from None
    refuse_rounded(distinct, f"the ids of {argument}")


def _is_hashable(value: Any) -> bool:
    """Return whether a value, with all that is in it, can be hashed."""
    try:
        return hash(value) is not None
    except TypeError:
        return False


_NO_ITEM = "an item", "Drop that row, or name the item"


class IdEncoder(IdCodes):
    """Codes of ids in order of first appearance; ids not known get new ones.

    Parameters
    ----------
    ids : list or array of hashables
        Texts or numbers, repeated ones count once.

    Attributes
    ----------
    names : ndarray of shape (n_ids,)
        Id of each code.

    Raises
    ------
    ValueError
        If an id is missing, or may have been rounded.

    Examples
    --------
    >>> from skpref.data._items import IdEncoder
    >>> IdEncoder(["ann", "bob", "ann"]).codes(["bob", "zoe", "yan", "zoe"]).tolist()
    [1.0, 2.0, 3.0, 2.0]
    """

    def __init__(self, ids: Any) -> None:
        listed = exact_list(ids)
        check_ids(listed, "items")
        super().__init__(listed, *_NO_ITEM)

    def codes(self, ids: Any) -> np.ndarray:
        """Return the code of each id; ids not known get new ones for this call.

        Two ids not known differ from each other and from all that are; their codes hold for
        this call alone.

        Parameters
        ----------
        ids : list or array of hashables

        Returns
        -------
        ndarray of float64 of shape (n,)

        Raises
        ------
        ValueError
            If an id is missing, or may have been rounded.
        """
        ids = exact_list(ids)
        check_ids(ids, "items")
        check_present(ids, *_NO_ITEM)
        code = dict(self._code)
        new = [name for name in dict.fromkeys(ids) if name not in code]
        code.update(zip(new, range(len(code), len(code) + len(new)), strict=True))
        if self._code and new:
            self._warn_similar_names(new)
        return np.array([code[name] for name in ids], dtype=np.float64)

    def _warn_similar_names(self, new):
        """Warn of new names that are spelled like a known one, see `plain_name`."""
        fitted_name = {plain_name(name): name for name in self._code}
        near = [
            f"{name!r} ({fitted_name[plain_name(name)]!r})"
            for name in new
            if isinstance(name, str) and plain_name(name) in fitted_name
        ]
        if near:
            differ = "1 new name differs" if len(near) == 1 else f"{len(near)} new names differ"
            warn(
                f"{differ} from known ones in case or spaces alone: {', '.join(near[:3])}. They "
                "are taken for newcomers. If they are not, write them as before."
            )

    def add_ids(self, ids: Any) -> Self:
        """Return an encoder that knows these ids too, by the codes that `codes` gives them."""
        return type(self)([*self._code, *exact_list(ids)])


def encode_ids(
    column: Any, encoder: IdEncoder | None, fresh: bool
) -> tuple[np.ndarray, IdEncoder | None]:
    """Return ids as numbers (codes of texts and wide integers), and their encoder.

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
        If an id is missing, or ids are not of the kind of those in training.
    """
    floats, ids = column_floats(column), exact_list(column)
    wide = floats is not None and beyond_doubles(floats)
    if floats is not None and np.isnan(floats).any():
        check_present(ids, *_NO_ITEM)
    if fresh and (floats is None or wide):
        encoder = IdEncoder(ids)
    if encoder is not None:
        return encoder.codes(ids), encoder
    if floats is None or wide:
        kind = "integers of 2**53 and more" if wide else "texts"
        raise ValueError(
            f"Ids of items are {kind}, but the model was fitted on ids that are "
            f"{'smaller ' if wide else ''}numbers. Give the ids of the same kind."
        )
    return floats, None
