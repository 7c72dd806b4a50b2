"""The reader of X: its kind, the items in it, and their features as finite floats."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpref._utils import Array
from skpref.data._comparisons import Comparisons
from skpref.data._containers import (
    all_strings,
    column_at,
    column_floats,
    column_names,
    distinct_values,
    is_frame,
    is_missing,
    missing_texts,
    name_ranks,
    plain_container,
    refuse_rows,
    take_rows,
    wholly_missing_rows,
)
from skpref.data._frame import DuelFrame
from skpref.data._groups import ItemGroups
from skpref.data._items import IdEncoder, ItemTable, encode_ids, float_rows
from skpref.data._respondents import Respondents
from skpref.data._sets import check_padding, check_sizes, number_consecutively, number_members
from skpref.data._time import AnswerTimes, TimeAxis, rows_by_order, rows_of_answers

FORMS = (
    "duel arrays of shape (n_duels, 2, n_features), sets of k items of shape (n_sets, k, "
    "n_features), items with ratings of shape (n_items, n_features), or, with the constructor's "
    "items=, positions of shape (n_duels, 2) or (n_sets, k)"
)
_OR_ENCODE = "; if the columns are features of items, encode them with Itemwise(transformer)"


@dataclass(eq=False)  # not frozen, which makes it slow to make; no one changes it
class ParsedX:
    """Items of X in rows, and which of them were shown together.

    Returned by `read`, with ``rows`` as X holds them. `Reader.answers` makes finite floats of them,
    which every method of a posterior takes as they are.

    Attributes
    ----------
    kind : {"items", "texts", "positions", "names"}
        Features of items, texts, positions in a table of items, or names in it.
    rows : array, sparse matrix or DataFrame of shape (n, n_features), or ndarray of shape (n,)
    pairs : ndarray of int of shape (n_answers, k) or None
        Rows that an answer is about: the two sides of a duel, or the k items of a set in the
        order shown, -1 where a set has fewer (at its end, but for arrays of features). None if X
        holds items.
    id_column : column name or None
        Column of ``rows`` that says who an item is.
    names : ndarray of shape (n_features,) or None
        Names of the columns of ``rows``, if all are strings; a duel array has none.
    table : ItemTable or None
        Of the positions or names.
    """

    kind: str
    rows: Any
    pairs: Any = None  # an array, or None
    id_column: Any = None
    names: Any = None  # an array, or None
    table: Any = None  # an ItemTable, or None

    def __len__(self) -> int:
        return self.rows.shape[0] if self.pairs is None else len(self.pairs)

    @property
    def size(self) -> int | None:
        """Largest number of items of an answer: 2 for duels; None if X holds items."""
        return None if self.pairs is None else self.pairs.shape[1]

    @property
    def sides(self) -> tuple["ParsedX", "ParsedX"]:
        """First items of duels, and second items."""
        first, second = (ParsedX("items", float_rows(self.rows, side)) for side in self.pairs.T)
        return first, second

    def places(self) -> np.ndarray:
        """Return positions in the table of items: of each row, or of ``pairs`` with −1 for none."""
        if self.kind == "names":
            places = self.table.index(self.rows)
        else:
            places = check_positions(self.rows, len(self.table))
        if self.pairs is None:
            return places
        return np.where(self.pairs < 0, -1, places[self.pairs])

    def without_unshown(self) -> "ParsedX":
        """Return the same without the items that were never shown."""
        if self.pairs is None:
            return self
        used, pairs = np.unique(self.pairs, return_inverse=True)
        pairs = pairs.reshape(self.pairs.shape)
        if len(used) and used[0] < 0:
            used, pairs = used[1:], pairs - 1
        return replace(self, rows=take_rows(self.rows, used), pairs=pairs)


# -- what X is -----------------------------------------------------------------------------


class _UnreadX:
    """X as an array or a frame, and what else says how it is to be read, see `read`.

    ``width`` is the number of columns of an array of two dimensions; ``is_single`` says whether an
    array has the shape of items, or of duels, one value an item.
    """

    def __init__(self, X, original, table, integers, text_sets, items):
        self.X, self.original, self.table, self.integers = X, original, table, integers
        self.text_sets, self.items = text_sets, items
        self.is_frame = is_frame(X)
        kind, n_dimensions = ("", 0) if self.is_frame else (X.dtype.kind, X.ndim)
        self.width = X.shape[1] if n_dimensions == 2 else 0
        self.is_single = n_dimensions == 1 or self.width == 2
        self.may_be_texts = kind in tuple("UTO")
        self.is_integral = kind in tuple("iu") and n_dimensions in (1, 2)

    @property
    def named(self) -> ItemTable | None:
        """Table of the items, if it has names; else None."""
        return self.table if self.table is not None and self.table.names is not None else None

    @cached_property
    def values(self) -> np.ndarray:
        """Values of X, as objects where numpy made strings of such as None and NaN in a list."""
        made = self.X.dtype.kind in "UT" and not hasattr(self.original, "dtype")
        return np.array(self.original, dtype=object) if made else self.X


def read(
    X: Any,
    *,
    table: ItemTable | None = None,
    new_names: bool = False,
    integers: str | None = "items",
    text_sets: bool = False,
    items: bool = False,
) -> ParsedX:
    """Return X parsed once: its kind, items and which were shown together.

    ========================================  ====================================================
    X                                         read as
    ========================================  ====================================================
    `DuelFrame`                               duels or sets
    `ItemTable`                               items
    DataFrame, sparse matrix                  items (frames of texts: names, if the table has any)
    (n, 2, d)                                 duels
    (n, k, d)                                 sets of k items; one that is NaN throughout is absent
    (n,) or (n, 2) strings                    texts or duels of texts; names, if the table has any
    (n,) or (n, 2) objects, table with names  names
    (n, k) strings, table with names          sets of names; None, NaN or "" pad the end of a row
    (n, k) strings, without                   sets of texts if ``text_sets``, else items
    (n,) or (n, 2) integers, with a table     positions in it
    (n, k) integers, with a table             sets of positions; -1 pads the end of a row
    (n, k) integers, without                  as ``integers`` says
    any other 2-D array                       items
    ========================================  ====================================================

    Here k is 3 or more. Masked entries are missing values, never what lies under the mask.

    Parameters
    ----------
    X : array-like, DataFrame, DuelFrame or ItemTable
    table : ItemTable, default=None
        Table that positions and names refer to.
    new_names : bool, default=False
        Whether texts in two columns or more are names that the table need not have: it is made of
        them, or gets them at its end.
    integers : {"items", "positions", None}, default="items"
        What integers of shape (n, 2) or (n, k) are where no table is known; None: an error that
        names both, also of texts that may be names or categories.
    text_sets : bool, default=False
        Whether strings of shape (n, k) are sets of texts, padded by None or NaN, rather than
        items of k categories.
    items : bool, default=False
        Whether X can hold nothing but items, so that positions and names have one dimension.

    Returns
    -------
    ParsedX

    Raises
    ------
    ValueError
        If X is no array at all, has three dimensions of which the second is shorter than 2,
        lacks a text or a name of a duel, is padded elsewhere than at the end of a row, leaves a row
        fewer than two items, or is ambiguous.
    """
    if isinstance(X, DuelFrame) and not items:
        return _read_duel_frame(X)
    if isinstance(X, ItemTable):
        frame = X.frame
        return ParsedX("items", X.X if frame is None else frame, names=X.feature_names)
    if hasattr(X, "tocsr"):
        return ParsedX("items", X)
    try:
        array = plain_container(X)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X could not be read as an array ({error}); X may be {FORMS}. Rows of fewer items are "
            "padded at their end, positions by -1, names by None."
        ) from None
    source = _UnreadX(array, X, table, integers, text_sets, items)
    if new_names or (integers is None and not items):
        source.table = _with_new_names(source, new_names)
    for fits, reader in _READERS:
        parsed = reader(source) if fits(source) else None
        if parsed is not None:
            return parsed
    return ParsedX("items", source.X)


def _read_duel_frame(X: DuelFrame) -> ParsedX:
    """Return a `DuelFrame` parsed: its items, and which were shown together."""
    if is_frame(X.items):
        return ParsedX("items", X.items, X.pairs, X.id_column, X.feature_names)
    absent = X.pairs < 0  # as the array of the same items would be
    return ParsedX("items", X.items[X.pairs[~absent]], number_members(absent))


def _read_frame(source: _UnreadX) -> ParsedX:
    """Return a frame parsed as names, where its columns can hold such, or as items."""
    X, table = source.X, source.named
    if table is not None and (not source.items or X.shape[1] == 1) and _may_hold_names(X):
        names = np.asarray(X, dtype=object)
        if missing_texts(names) is not None:
            return _read_names(names, table)
    return ParsedX("items", X, names=column_names(X))


def _read_items(source: _UnreadX) -> ParsedX:
    """Return items parsed: those of a table, in one dimension, or rows of features."""
    X, table = source.X, source.table
    if table is not None and X.ndim == 1:
        if X.dtype.kind in "iu" or X.size == 0:
            return ParsedX("positions", X.astype(np.intp, copy=False), table=table)
        if missing_texts(source.values) is not None:
            return _read_names(source.values, table)
    return ParsedX("items", source.values)


def _read_array(source: _UnreadX) -> ParsedX:
    """Return duels or sets of features parsed; items missing throughout are absent."""
    X = source.X
    n_shown = X.shape[1]
    if n_shown < 2:
        raise ValueError(
            "A 3-D X must have shape (n_sets, k, n_features), duels (n_duels, 2, n_features), got "
            f"{X.shape}. Stack the sides of duels with np.stack([first, second], axis=1)."
        )
    rows = X.reshape(len(X) * n_shown, X.shape[2])
    absent = wholly_missing_rows(X) if n_shown > 2 else None
    if absent is None or not absent.any():
        return ParsedX("items", rows, number_consecutively(len(X), n_shown))
    check_sizes((~absent).sum(axis=1))
    return ParsedX("items", rows[~absent.reshape(-1)], number_members(absent))


def _read_texts(source: _UnreadX) -> ParsedX | None:
    """Return texts or duels of them parsed; None for other things."""
    gaps = missing_texts(source.X)
    if gaps is None:
        return None
    _refuse_gaps(gaps, "texts")
    return _parse_values("texts", source.X)


def _read_sets(source: _UnreadX) -> ParsedX | None:
    """Return sets of names or of texts parsed; None where X holds other things too."""
    source.X = X = source.values
    gaps = missing_texts(X)
    if gaps is not None and source.named is None:
        return _parse_values("texts", X, None, gaps, "None or NaN")
    return None if gaps is None else _read_names(X, source.named)


def _read_positions(source: _UnreadX) -> ParsedX:
    """Return positions in a table parsed, also of one that is not known here."""
    X = source.X
    if source.table is not None and X.ndim == 2 and source.width < 2:
        raise ValueError(
            "Integer X with items= must have shape (n_duels, 2), pairs of positions in the table, "
            f"or (n_sets, k), sets of them padded by -1; got shape {X.shape}."
        )
    if source.is_single:
        return _parse_values("positions", X, source.table)
    return _parse_values("positions", X, source.table, X == -1, "-1")


def _refuse_ambiguous(source: _UnreadX) -> None:
    """Raise ValueError for integers that may be positions or features."""
    count = "two" if source.width == 2 else source.width
    raise ValueError(
        f"X holds integers in shape {source.X.shape}: pairs of positions in a table (or sets), or "
        f'items with {count} features? Say integers="positions" or integers="items".'
    )


def _refuse_masked(source: _UnreadX) -> None:
    """Raise ValueError for masked positions."""
    if np.ma.is_masked(source.original):
        raise ValueError(
            "X is a masked array with masked positions of items; leave these rows out."
        )


# What X is, in this order: a condition, and the reader of such an X. One that gives None, as X
# turns out to hold other things, leaves it to the next; what none takes are items as they are.
_READERS: tuple[tuple[Callable[[_UnreadX], Any], Callable[[_UnreadX], ParsedX | None]], ...] = (
    (lambda s: s.is_frame, _read_frame),
    (lambda s: s.items, _read_items),
    (lambda s: s.X.ndim == 3, _read_array),
    (
        lambda s: s.is_single and s.named is not None and s.may_be_texts and s.X.size,
        lambda s: _read_names(s.values, s.named),
    ),
    (lambda s: s.is_single, _read_texts),
    (lambda s: s.width > 2 and s.may_be_texts and (s.named is not None or s.text_sets), _read_sets),
    (lambda s: s.table is not None, _refuse_masked),
    (lambda s: s.table is not None and s.is_integral, _read_positions),
    (lambda s: s.is_integral and s.width > 1 and s.integers is None, _refuse_ambiguous),
    (lambda s: s.is_integral and s.width > 1 and s.integers == "positions", _read_positions),
)


# -- names of items ------------------------------------------------------------------------


def _with_new_names(source: _UnreadX, new_names: bool) -> ItemTable | None:
    """Return the table with further names from X at its end, or one made of these names."""
    names, table = _texts_in_columns(source), source.table
    if names is None:
        return table
    if not new_names:
        if not (source.is_frame or names.shape[1] > 2) or not all_strings(names[:, :2]):
            return table
        raise ValueError(
            f"X of shape {names.shape} holds texts, which may be names of items that met or "
            'items with categories as features. Say integers="positions" or integers="items".'
        )
    known_names = [] if table is None or table.names is None else table.names.tolist()
    new = [name for name in distinct_values(names) if isinstance(name, str) and name]
    return ItemTable.from_names([*known_names, *new])


def _texts_in_columns(source: _UnreadX) -> np.ndarray | None:
    """Return texts in two columns or more, (n, k), of which some may be missing; else None."""
    if source.is_frame:
        names = np.asarray(source.X, dtype=object) if _may_hold_names(source.X) else None
    else:
        names = source.values if source.width and source.may_be_texts else None
    if names is None or names.shape[1] < 2 or names.size == 0 or missing_texts(names) is None:
        return None
    return names


def _may_hold_names(frame: Any) -> bool:
    """Return whether the first two columns of a frame can hold names, by their types."""
    first = [np.asarray(column_at(frame, j).to_numpy()) for j in range(min(2, frame.shape[1]))]
    return all(
        column.dtype.kind in "OUT" or (column.dtype.kind == "f" and np.isnan(column).all())
        for column in first
    )


def _parse_values(kind, X, table=None, absent=None, pads="", remedy=""):
    """Return one value an item parsed: items (n,), duels or sets (n, k) padded at the end."""
    if absent is not None:
        check_padding(absent, pads, remedy)
        return ParsedX(kind, X[~absent], number_members(absent), table=table)
    pairs = number_consecutively(*X.shape) if X.ndim == 2 and X.shape[1] > 1 else None
    return ParsedX(kind, X.reshape(-1), pairs, table=table)


def _read_names(X: np.ndarray, table: Any) -> ParsedX:
    """Return items, duels or sets of names parsed; ValueError where a name is missing."""
    gaps = np.zeros(X.shape, dtype=bool) if table.names is None else _missing_names(X, table)
    if X.ndim == 2 and X.shape[1] > 2:
        pads = "None, NaN or an empty name"
        return _parse_values("names", X.astype(object), table, gaps, pads, _OR_ENCODE)
    _refuse_gaps(gaps, "names of items")
    return _parse_values("names", X.astype(object), table)


def _missing_names(X: np.ndarray, table: Any) -> np.ndarray:
    """Return a mask of names that are missing, or empty and not in the table."""
    gaps = {name for name in distinct_values(X) if is_missing(name) or str(name) == ""}
    if "" in gaps and "" in table.names.tolist():
        gaps.remove("")
    if not gaps:
        return np.zeros(X.shape, dtype=bool)
    return np.array([v in gaps for v in X.ravel().tolist()], dtype=bool).reshape(X.shape)


def _refuse_gaps(gaps: np.ndarray, what: str) -> None:
    """Raise ValueError where a text or name is missing."""
    n, remedy = gaps.sum(), _OR_ENCODE if gaps.ndim == 2 else ""
    refuse_rows(
        gaps.reshape(len(gaps), -1).any(axis=1),
        f"X of shape {gaps.shape} holds {what}, of which {n} {'is' if n == 1 else 'are'} missing "
        f"(None, NaN or an empty text), first in row {{row}}. Leave out such rows{remedy}.",
    )


# -- numbers of items ----------------------------------------------------------------------


def check_X(X: Any, table: ItemTable | None, new_names: bool = False) -> ParsedX:
    """Return X parsed for an estimator; ValueError if it holds no items, duels or sets."""
    parsed = read(X, table=table, new_names=new_names)
    rows = parsed.rows
    if is_frame(rows) or hasattr(rows, "tocsr"):
        return parsed
    if rows.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {rows.dtype}. Pass X.real.")
    if rows.dtype.kind in "mMV":
        raise ValueError(
            f"X must be numeric, got dtype {rows.dtype}. Make numbers of it, such as days."
        )
    if parsed.kind == "texts":  # without a table that has names they name nothing
        shape = rows.shape if parsed.pairs is None else parsed.pairs.shape
        parsed = ParsedX("items", rows.reshape(shape))
    if parsed.kind == "items" and parsed.pairs is None and parsed.rows.ndim != 2:
        kind = "a scalar" if rows.dtype != object else type(rows[()]).__name__
        form = f"shape {rows.shape}" if rows.shape else kind
        remedy = "" if table is None else " Positions in the table are integers: X.astype(int)."
        raise ValueError(
            f"X may be {FORMS}; got {form}. Reshape your data: X.reshape(1, -1) is one item, "
            f"X.reshape(-1, 1) are items of one feature, X.reshape(1, 2, -1) is one duel.{remedy}"
        )
    return parsed


def check_items(items: Any) -> ItemTable | None:
    """Return the constructor's ``items=`` as an ItemTable of numbers, or None."""
    if items is None:
        return None
    if not isinstance(items, ItemTable):
        try:
            named = np.ndim(items) == 1 and all_strings(np.asarray(items))
            items = ItemTable.from_names(items) if named else ItemTable(items)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                "items= must be an ItemTable or finite numbers of shape (n_items, n_features): "
                f"{str(error).rstrip('.')}. Without features pass ItemTable.from_names(names)."
            ) from error
    if items.X is None:
        frame = items.frame
        columns = {name: column_floats(column_at(frame, j)) for j, name in enumerate(frame.columns)}
        others = [k for k, v in columns.items() if v is None or not np.isfinite(v).all()]
        raise ValueError(
            "items= must hold finite numbers, but columns of its frame hold texts, categories or "
            f"gaps: {others}. Encode them first, ItemTable(transformer.fit_transform(frame)), or "
            "leave items= out and fit from_pairs(items, pairs) through Itemwise(transformer)."
        )
    return items


def check_positions(X: np.ndarray, n_items: int) -> np.ndarray:
    """Return positions in a table of ``n_items``; ValueError for others."""
    if len(X) == 0:
        raise ValueError(
            f"X holds no position (0 samples, shape={X.shape}) while a minimum of 1 is required."
        )
    for wrong in (X.min(), X.max()):
        if not 0 <= wrong < n_items:
            raise ValueError(
                f"Positions in the table of items must lie in [0, {n_items - 1}], got {wrong}. "
                "Count from 0; the table is the constructor's items=."
            )
    return X.astype(np.intp, copy=False)


def check_known_positions(X: np.ndarray, table: ItemTable | None) -> None:
    """Raise ValueError unless rows of items without features are positions in their table."""
    if table is not None and not table.has_features and not np.isin(X, table.X).all():
        raise ValueError(
            "Items without features are known by their position alone: rows must be integers "
            f"in [0, {len(table) - 1}]. Pass positions as integers, or names as strings."
        )


# -- what is known of items ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads items for predictions, with the table, ids and columns of the fit.

    Attributes
    ----------
    n_features : int
    feature_names : ndarray of shape (n_features,) or None
        What columns that have names must be called, in this order.
    id_column : int or None
        Position of the column that says who an item is.
    ids : IdEncoder or None
        Codes of the ids seen in training; None where ids are numbers, which stay as they are.
    table : ItemTable or None
        Items that may be asked for by their names, or positions.
    id_table : ItemTable or None
        Names of ids that are positions in it, beside columns of features.
    time : TimeAxis or None
        Of items at times, whose rows have the time as one column more, the last; None: there are
        none.
    prompts : Respondents or None
        Ids of the prompts of the answers; None: they had none.
    groups : ItemGroups or None
        Which of the items that are known by an id, or by a table, answers join; None of others.
    by_order : bool
        Whether rows of answers have one more column, the last: whether the item is shown first.
    """

    n_features: int
    feature_names: NDArray[Any] | None = None
    id_column: int | None = None
    ids: IdEncoder | None = None
    table: ItemTable | None = None
    id_table: ItemTable | None = None
    time: TimeAxis | None = None
    prompts: Respondents | None = None
    groups: ItemGroups | None = None
    by_order: bool = False

    @classmethod
    def of_table(cls, estimator: BaseEstimator, table: ItemTable) -> "Reader":
        """Return the reader of an estimator whose items are those of a table."""
        names = table.feature_names
        place = _find_id_column(estimator, None, names, table.n_features)
        return cls(table.n_features, names, place, table=table)

    def set_fitted_attributes(self, estimator: BaseEstimator) -> None:
        """Set the fitted attributes of the items, once all of the fit has succeeded."""
        estimator.n_features_in_ = self.n_features
        if self.feature_names is not None:
            estimator.feature_names_in_ = np.array(self.feature_names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        ids = self.ids if self.id_table is None else self.id_table
        estimator.ids_ = None if ids is None else ids.names
        estimator.items_ = self.table

    def with_id_names(self, table: ItemTable, ids: Any) -> "Reader":
        """Return the same reader for ids that are positions in a table of names.

        Raises
        ------
        ValueError
            If some are no such positions, or the names of a table before are others.
        """
        wrong = ids[(ids < 0) | (ids >= len(table)) | (ids != np.floor(ids))]
        if len(wrong):
            raise ValueError(
                "With id_column and names alone as items=, ids are positions in items, integers "
                f"from 0 to {len(table) - 1}, got {wrong[0]:g}. Name all ids, or leave items= out."
            )
        check_names_continue(self.id_table, table)
        return replace(self, id_table=table)

    @property
    def n_columns(self) -> int:
        """Number of columns of a row: the features, and the time if items have one."""
        return self.n_features + (self.time is not None)

    def with_answers(self, comparisons: Comparisons, earlier: ItemGroups | None = None) -> "Reader":
        """Return the same reader with the groups of items that these and earlier answers join."""
        if self.table is None and self.id_column is None:
            return self
        columns = slice(self.n_features) if self.id_column is None else [self.id_column]
        groups = ItemGroups.from_keys(
            comparisons.items[:, columns], comparisons.rows, earlier, comparisons.measured
        )
        return replace(self, groups=groups)

    @property
    def _coded_names(self) -> tuple[NDArray[Any] | None, int | None]:
        """Names whose codes stand in a column of the rows, and the position of that column."""
        if self.table is not None and not self.table.has_features:
            return self.table.names, 0
        return (None if self.ids is None else self.ids.names), self.id_column

    def sort_keys(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows of items with ranks of their names in place of codes, to sort them by."""
        names, column = self._coded_names
        if names is None or column is None:
            return rows
        return _replace_codes(rows, column, name_ranks(names))

    def from_earlier(self, rows: NDArray[np.float64], earlier: "Reader") -> NDArray[np.float64]:
        """Return rows of an earlier reader's items with the codes that their names have here."""
        (names, column), (old_names, place) = self._coded_names, earlier._coded_names
        if names is None or old_names is None or column is None or column != place:
            return rows
        codes = {name: float(code) for code, name in enumerate(names.tolist())}
        moved = [codes.get(name, -1.0 - k) for k, name in enumerate(old_names.tolist())]
        return _replace_codes(rows, column, np.array(moved))

    def at_time(self, time: Any) -> "Reader":
        """Return the same reader with another time for items whose time is not given.

        Raises
        ------
        ValueError
            If items have no time here, or it is not one time of the kind of those of the fit.
        """
        return self if time is None else replace(self, time=self._axis().at(time))

    def _axis(self) -> TimeAxis:
        """Return the axis of times; ValueError if the fit had no times."""
        if self.time is None:
            raise ValueError(
                "Got time=, but the model was fitted without times. Pass time= to fit as well."
            )
        return self.time

    def answers(self, X: Any, estimator: BaseEstimator) -> ParsedX:
        """Return X of a prediction parsed, with finite floats as rows, without times.

        Parameters
        ----------
        X : array-like
        estimator : BaseEstimator
        """
        parsed = check_X(X, self.table)
        if parsed.kind == "items" and not isinstance(X, ItemTable):
            parsed, _ = read_features(estimator, parsed, self)
            check_known_positions(parsed.rows, self.table)
            return parsed
        if parsed.kind != "positions":
            return ParsedX("items", self._query_rows(X, parsed, estimator), parsed.pairs)
        places = parsed.places()
        if parsed.pairs is None:
            return ParsedX("items", float_rows(parsed.table.X, places))
        parsed = ParsedX("items", parsed.table.X, places)
        if parsed.size == 2:
            return parsed
        parsed = parsed.without_unshown()
        return replace(parsed, rows=float_rows(parsed.rows, slice(None)))

    def with_times(self, parsed: ParsedX, times: AnswerTimes | None) -> ParsedX:
        """Return a parsed prediction with times of its items; None: the last of the fit."""
        if self.time is None and times is None:
            return parsed
        axis, n = self._axis(), len(parsed)
        relative = np.full(n, axis.now) if times is None else axis.to_relative(times)
        if parsed.pairs is None:
            return ParsedX("items", np.column_stack([parsed.rows, relative]))
        return ParsedX("items", *rows_of_answers(parsed.rows, parsed.pairs, relative[:, None]))

    def with_order(self, parsed: ParsedX, order: Any) -> ParsedX:
        """Return a parsed prediction with who is shown first, if the prior looks at it."""
        if not self.by_order or parsed.pairs is None:
            return parsed
        return ParsedX("items", *rows_by_order(parsed.rows, parsed.pairs, order))

    def items(self, X: Any) -> Array:
        """Return items of a query of a posterior as finite floats (n, n_features).

        Parameters
        ----------
        X : array-like, DataFrame or ItemTable of shape (n, n_features), or ParsedX
            With a table also names or integer positions in it, of shape (n,). Ids in a frame or an
            array of objects get their codes; arrays of numbers have them. Items are taken as they
            are now, if they have a time; arrays of floats with one column more hold the time in it,
            as the anchors of a posterior do.

        Raises
        ------
        ValueError
            If they have another shape or other columns, are not finite, or not in the table.
        """
        if isinstance(X, ParsedX):
            return X.rows
        if self._has_times(X):
            check_finite(X, given="items", remedy="impute them")
            return np.asarray(X, dtype=np.float64)
        return self._add_present_time(self._query_rows(X, self._parse_items(X)))

    def sides(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Return items on two sides as `items` does; unknown names and ids are kept apart."""
        if isinstance(A, ParsedX) or self._has_times(A) or self._has_times(B):
            return self.items(A), self.items(B)
        a, b, reader = self._parse_items(A), self._parse_items(B), self
        if self.ids is not None:
            new = [_text_ids(side.rows, self.id_column) or [] for side in (a, b)]
            reader = replace(self, ids=IdEncoder(sum(new, self.ids.names.tolist())))
        elif self.table is not None and not self.table.has_features:
            first, second = _names_of(A, a), _names_of(B, b)
            if first is not None and second is not None:
                both = self._add_present_time(rows_by_name([*first, *second], self.table))
                return both[: len(first)], both[len(first) :]
        rows = reader._query_rows(A, a), reader._query_rows(B, b)
        return self._add_present_time(rows[0]), self._add_present_time(rows[1])

    def _add_present_time(self, rows: Array) -> Array:
        """Return rows of items with the present time as their last column, if items have one."""
        if self.time is None:
            return rows
        return np.column_stack([rows, np.full(len(rows), self.time.now)])

    def _has_times(self, X: Any) -> bool:
        """Return whether X is an array of rows that hold a time."""
        if self.time is None or not isinstance(X, np.ndarray) or X.dtype.kind != "f":
            return False
        return X.ndim == 2 and X.shape[1] == self.n_columns

    def ids_in(self, X: Any) -> list | None:
        """Return the ids of items in X that are texts, or None if there are none."""
        return _text_ids(self._parse_items(X).rows, self.id_column)

    def names_in(self, X: Any) -> list | None:
        """Return the names of items of the table in X, or None if it holds other things."""
        parsed = self._parse_items(X)
        return parsed.rows.tolist() if parsed.kind == "names" else None

    def _parse_items(self, X: Any) -> ParsedX:
        """Return X parsed as items alone."""
        return read(X, table=self.table, items=True)

    def _query_rows(self, X: Any, parsed: ParsedX, estimator: Any = None) -> Array:
        """Return parsed items of a query, of a posterior or an estimator, as rows of floats."""
        if parsed.kind == "positions":
            rows, places = parsed.table.X, parsed.rows
            return float_rows(rows, check_positions(places, len(rows)) if len(places) else places)
        if parsed.kind == "names":
            return rows_by_name(parsed.rows, parsed.table)
        if isinstance(X, ItemTable):
            return self._rows_of_table(X, parsed, estimator)
        return read_queried_rows(parsed, self)

    def _rows_of_table(self, queried, parsed, estimator):
        """Return the rows of items of a queried table, which need not be the fitted one."""
        featured = self.table is None or self.table.has_features
        if queried.has_features != featured:
            subject = "posterior is of" if estimator is None else "model was fitted on"
            what = "with features, this ItemTable has none" if featured else "without features"
            raise ValueError(f"The {subject} items {what}. Pass a table of the same kind.")
        if self.table is not None and not featured:
            return rows_by_name(queried.names, self.table)
        if estimator is None:
            return read_queried_rows(parsed, self)
        return read_features(estimator, parsed, self, plain=False)[0].rows


def _text_ids(rows: Any, place: int | None) -> list | None:
    """Return the ids in a column that have no codes so far, or None if there are none."""
    if place is None or len(rows.shape) != 2 or place >= rows.shape[1]:
        return None
    if is_frame(rows):
        return column_at(rows, place).to_list()
    ids = rows[:, place].tolist() if rows.dtype.kind in "OUT" else []
    return ids if any(isinstance(name, str) for name in ids) else None


def _names_of(X: Any, parsed: ParsedX) -> list | None:
    """Return the names of items, or None if X holds positions or features."""
    if isinstance(X, ItemTable):
        return None if X.names is None else X.names.tolist()
    return parsed.rows.tolist() if parsed.kind == "names" else None


def rows_by_name(names: Any, table: ItemTable) -> Array:
    """Return rows of items by name; without features an unknown name gets a new row.

    Of such an item the prior is all that is known.

    Raises
    ------
    ValueError
        If items have features and a name is not in the table.
    """
    if table.has_features:
        return float_rows(table.X, table.index(names))
    return IdEncoder(table.names).codes(names)[:, None]


def read_features(
    estimator: BaseEstimator,
    parsed: ParsedX,
    reader: Reader | None,
    *,
    plain: bool = True,
    further: bool = False,
) -> tuple[ParsedX, Reader]:
    """Return items as finite floats, ids as numbers, and the reader of items of this kind.

    Parameters
    ----------
    estimator : BaseEstimator
        For its class, ``id_column`` and, if ``plain``, the checks of scikit-learn. Not touched.
    parsed : ParsedX
        Of kind "items".
    reader : Reader or None
        What is known of items; None: a new one is made.
    plain : bool, default=True
        2-D X without ids is scikit-learn's to check, where ``reader`` is given.
    further : bool, default=False
        Ids that ``reader`` does not know become known.

    Raises
    ------
    ValueError
        If columns have other names, another order or number than ``reader`` says; if one holds
        other things than finite numbers, and is not that of the ids.
    """
    if parsed.pairs is not None and is_frame(parsed.rows):
        parsed = parsed.without_unshown()
    rows, pairs, names = parsed.rows, parsed.pairs, parsed.names
    if pairs is None and plain and reader is not None and reader.id_column is None:
        return ParsedX("items", validate_features(estimator, rows, reset=False)), reader
    _check_shape(rows, pairs)
    if reader is None:
        place, id_encoder = _find_id_column(estimator, parsed, names, rows.shape[1]), None
    else:
        place, id_encoder = reader.id_column, reader.ids
        check_same_columns(estimator, names, rows.shape[1], reader)
    ids = None
    if place is not None:
        column = column_at(rows, place)
        ids, id_encoder = encode_ids(column, id_encoder, reader is None)
        if further and reader is not None and id_encoder is not None:
            reader = replace(reader, ids=id_encoder.add_ids(column))
    array = _feature_floats(rows, place, ids)
    check_finite(array, names, pairs)
    fitted = reader or Reader(array.shape[1], names, place, id_encoder)
    return ParsedX("items", array, pairs), fitted


def read_queried_rows(parsed: ParsedX, reader: Reader) -> Array:
    """Return the items that a posterior is asked about as finite floats.

    Ids that are numbers are codes already; there may be no items.

    Raises
    ------
    ValueError
        If they are not of the form of those of the fit.
    """
    rows = parsed.rows
    _check_queried(rows)
    check_same_columns(None, parsed.names, rows.shape[1], reader)
    place, ids = reader.id_column, None
    if place is not None and reader.ids is not None and _text_ids(rows, place) is not None:
        ids, _ = encode_ids(column_at(rows, place), reader.ids, False)
    array = _feature_floats(rows, None if ids is None else place, ids)
    check_finite(array, given="items", remedy="impute them")
    return array


def _find_id_column(estimator, parsed, names, width):
    """Return the position of the column of ids, or None; ValueError if it is not in X."""
    id_column = getattr(estimator, "id_column", None)
    if id_column is None:
        if parsed is None or parsed.id_column is None:
            return None
        return list(parsed.rows.columns).index(parsed.id_column)
    if isinstance(id_column, str):
        listed = [] if names is None else list(names)
        if id_column not in listed:
            names_of_x = f"X has columns {listed}" if listed else "the columns of X have no names"
            raise ValueError(
                f"id_column={id_column!r} names no column: {names_of_x}. Give a name that it has, "
                "or the position of the column; behind Itemwise that in the transformer's output."
            )
        return listed.index(id_column)
    whole = isinstance(id_column, Integral) and not isinstance(id_column, bool)
    if not whole or not 0 <= id_column < width:
        raise ValueError(
            f"id_column must be a column's name or position in [0, {width - 1}], got {id_column!r}."
        )
    return int(id_column)


def check_same_columns(
    estimator: BaseEstimator | None, names: NDArray[Any] | None, n_features: int, reader: Reader
) -> None:
    """Raise ValueError unless items have the columns of training, by name where both have names.

    Parameters
    ----------
    estimator : BaseEstimator or None
        Who is asked; None: a posterior.
    names : ndarray of shape (n_features,) or None
    n_features : int
    reader : Reader
    """
    fitted_names, n_fitted = reader.feature_names, reader.n_features
    if names is not None and fitted_names is not None and list(names) != list(fitted_names):
        raise ValueError(
            f"X has columns {list(names)}, but the model was fitted on {list(fitted_names)}. Give "
            "the same columns in the same order; for duels, build them of such a frame."
        )
    if n_features != n_fitted:
        message = f"The posterior is of items with n_features = {n_fitted}, got {n_features}."
        if estimator is not None:
            name, count = type(estimator).__name__, f"{n_fitted} features as input"
            message = f"X has {n_features} features, but {name} is expecting {count}."
        if n_fitted == 1:
            message += " If these are sets of items, each of one column, give X[:, :, None]."
        raise ValueError(message)


def validate_features(estimator: BaseEstimator, *arrays: Any, **options: Any) -> Any:
    """Return what scikit-learn's ``validate_data`` does, with errors that say what to do."""
    try:
        return validate_data(estimator, *arrays, dtype=np.float64, **options)
    except ValueError as error:
        if "feature names should match" in str(error):
            raise ValueError(
                f"{error}X has columns {list(arrays[0].columns)}, but the model was fitted on "
                f"{list(estimator.feature_names_in_)}."
            ) from None
        if "could not convert string" not in str(error):
            raise
        raise _not_numeric_error(f": {error}") from None


def check_names_continue(earlier: ItemTable | None, table: ItemTable | None) -> None:
    """Raise ValueError if a table of names alone does not begin with the names of another."""
    if earlier is None or table is None or (earlier.has_features and table.has_features):
        return
    if earlier.has_features or table.has_features:
        raise ValueError(
            "items= had names alone, or features alone, and now has not. Give it as before."
        )
    n = len(earlier)
    if len(table) < n or table.names[:n].tolist() != earlier.names.tolist():
        raise ValueError(
            f"The {len(table)} names of items= do not begin with the {n} of the answers so far. "
            "Give further names at their end: ItemTable.from_names([*old.names, *new_names])."
        )


# -- numbers -------------------------------------------------------------------------------


def _check_shape(rows, pairs):
    """Raise unless rows of items have two dimensions, and there are some, with features."""
    if pairs is None:
        if len(rows.shape) != 2 or 0 in rows.shape or hasattr(rows, "tocsr"):
            check_array(rows, dtype=None)  # says why not
        return
    shape = (*pairs.shape, rows.shape[1])
    if rows.shape[1] == 0:
        raise ValueError(
            f"0 feature(s) (shape={shape}) while a minimum of 1 is required. For items without "
            "features pass items=ItemTable.from_names(names) and integer pairs."
        )
    if len(pairs) == 0:
        what = "duel" if pairs.shape[1] == 2 else "set"
        raise ValueError(
            f"X holds no {what} (0 samples, shape={shape}) while a minimum of 1 is required."
        )


def _check_queried(rows):
    """Raise unless what a posterior is asked about has two dimensions."""
    if hasattr(rows, "tocsr"):
        check_array(rows, dtype=None)  # says why not
    if len(rows.shape) != 2:
        if len(rows.shape) < 2:
            _array_numbers(rows)  # words are no features
        raise ValueError(
            f"Items must be an array of shape (n, n_features), got {rows.shape}. Pass the items "
            "themselves, one a row (reshape(1, -1) of a single one), or names or positions of them "
            "where there is a table."
        )


def _feature_floats(rows, place, ids):
    """Return rows as floats, with ``ids`` in the column at ``place``."""
    frame = is_frame(rows)
    if place is None and not frame:
        return _array_numbers(rows)
    if not frame and rows.dtype.kind in "biuf":
        array = np.asarray(rows, dtype=np.float64)
        if not np.array_equal(ids, array[:, place]):
            array = array.copy()
            array[:, place] = ids
        return array
    others = [j for j in range(rows.shape[1]) if j != place]
    array = _frame_numbers(rows, others) if frame else _array_numbers(rows[:, others])
    return array if place is None else np.insert(array, place, ids, axis=1)


def _array_numbers(rows):
    """Return an array as floats; ValueError if it holds other things."""
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _not_numeric_error(f", got dtype {rows.dtype} ({error})") from None


def _frame_numbers(frame, places):
    """Return columns of a frame as floats; ValueError if one holds other things."""
    columns: dict[int, Any] = {j: column_floats(column_at(frame, j)) for j in places}
    others = [list(frame.columns)[j] for j, column in columns.items() if column is None]
    if others:
        raise _not_numeric_error(f": columns {others} hold other things")
    return np.column_stack([*columns.values(), np.empty((len(frame), 0))])


def _not_numeric_error(fault):
    """Return the error of an X with other things than numbers."""
    return ValueError(
        f"X must be numeric{fault}. Encode texts and categories with Itemwise(transformer); if "
        "they say which item it is, name them in ids= of from_columns; names of items need items= "
        "an ItemTable that has names."
    )


def check_finite(
    array: Any,
    names: NDArray[Any] | None = None,
    pairs: NDArray[np.intp] | None = None,
    given: str = "X",
    remedy: str = "put Itemwise(SimpleImputer()) before",
) -> None:
    """Raise ValueError, which says where, unless all features are finite.

    Parameters
    ----------
    array : ndarray of shape (n, n_features)
    names : ndarray of shape (n_features,) or None
        Of the features.
    pairs : ndarray of int of shape (n_answers, k) or None
        Rows of duels or sets, which are then counted.
    given : str, default="X"
        The argument.
    remedy : str
        What to do other than leave rows out.
    """
    good = np.isfinite(array)
    if good.all():
        return
    gaps = ~good.all(axis=1)
    what = "items"
    if pairs is not None:
        gaps = (gaps[pairs] & (pairs >= 0)).any(axis=1)
        what = "duels" if pairs.shape[1] == 2 else "sets"
    where = ""
    if names is not None:
        where = f", in columns {list(names[~good.all(axis=0)])}"
    absent = " An item that was not offered is NaN in all its features." if what == "sets" else ""
    raise ValueError(
        f"Input {given} contains NaN or infinity in {gaps.sum()} of {len(gaps)} {what}, first in "
        f"row {gaps.argmax()}{where}. Leave these {what} out, or {remedy}.{absent}"
    )


def _replace_codes(rows, column, codes):
    """Return rows with the codes of one column replaced."""
    rows = rows.copy()
    rows[:, column] = codes[rows[:, column].astype(np.intp)]
    return rows
