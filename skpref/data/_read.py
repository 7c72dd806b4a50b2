"""The reader of X: what it is, which items it names, and their features as finite floats."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpref._utils import Array, warn
from skpref.data._containers import (
    all_strings,
    column_at,
    column_floats,
    column_names,
    is_frame,
    is_missing,
    missing_rows,
    missing_texts,
    plain_frame,
    take_rows,
    unmasked,
)
from skpref.data._frame import DuelFrame
from skpref.data._items import IdEncoder, ItemTable, float_rows, id_numbers
from skpref.data._sets import check_padding, check_sizes, consecutive, numbered, used_rows

FORMS = (
    "duel arrays of shape (n_duels, 2, n_features), sets of k items of shape (n_sets, k, "
    "n_features), items with ratings of shape (n_items, n_features), or, with the constructor's "
    "items=, positions of shape (n_duels, 2) or (n_sets, k)"
)


class Parsed(NamedTuple):
    """Items of X in rows, as they came, and which were shown together.

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
    named : bool
        Whether columns of ``rows`` have names that count; a duel array never has.
    """

    kind: str
    rows: Any
    pairs: np.ndarray | None = None
    id_column: Any = None
    named: bool = False


def parse(
    X: Any,
    *,
    table: ItemTable | None = None,
    integers: str | None = "items",
    text_sets: bool = False,
) -> Parsed:
    """What X is.

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
    integers : {"items", "positions", None}, default="items"
        What integers of shape (n, 2) or (n, k) are where no table is known; None: an error that
        names both.
    text_sets : bool, default=False
        Whether strings of shape (n, k) are sets of texts, padded by None or NaN, rather than
        items of k categories.

    Returns
    -------
    Parsed

    Raises
    ------
    ValueError
        If X is no array at all, has three dimensions of which the second is shorter than 2,
        mixes texts with missing ones, is padded elsewhere than at the end of a row, leaves a row
        fewer than two items, or is ambiguous.
    """
    if isinstance(X, DuelFrame):
        return _of_duel_frame(X)
    if isinstance(X, ItemTable):
        frame = X.frame
        return Parsed("items", X.X if frame is None else frame, named=X.feature_names is not None)
    if hasattr(X, "tocsr"):
        return Parsed("items", X)
    named = table if table is not None and table.names is not None else None
    if is_frame(X):
        X = plain_frame(X)
        found = None if named is None else _named_in_frame(X, named)
        return found or Parsed("items", X, named=column_names(X) is not None)
    masked = np.ma.is_masked(X)
    given = X
    X = _as_array(unmasked(X))
    if X.ndim == 3:
        n_shown = X.shape[1]
        if n_shown < 2:
            raise ValueError(
                "A 3-D X must have shape (n_sets, k, n_features), duels (n_duels, 2, n_features), "
                f"got {X.shape}: an answer is about two items or more. Stack the two sides with "
                "np.stack([first, second], axis=1); items alone have two dimensions."
            )
        rows = X.reshape(len(X) * n_shown, X.shape[2])
        absent = missing_rows(X) if n_shown > 2 else None
        if absent is None or not absent.any():
            return Parsed("items", rows, consecutive(len(X), n_shown))
        check_sizes(absent)
        return Parsed("items", rows[~absent.reshape(-1)], numbered(absent))
    if X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 2):
        if named is not None and X.dtype.kind in "UTO" and X.size:
            return _unit("names", X.astype(object))
        if all_strings(X):
            return _unit("texts", X)
        _refuse_missing_texts(X)
    elif X.ndim == 2 and X.dtype.kind in "UTO" and (named is not None or text_sets):
        if not hasattr(given, "dtype"):  # numpy would make strings of None and NaN
            X = np.array(given, dtype=object)
        found = _text_sets(X) if named is None else _named_sets(X, named)
        if found is not None:
            return found
    if table is not None:
        if masked and X.ndim < 3:
            raise ValueError(
                "X is a masked array with masked positions of items; leave these rows out."
            )
        if X.dtype.kind in "iu" and X.ndim in (1, 2):
            if X.ndim == 2 and X.shape[1] < 2:
                raise ValueError(
                    "Integer X with items= must have shape (n_duels, 2), pairs of positions in "
                    "the table, or (n_sets, k), sets of k positions padded by -1; got shape "
                    f"{X.shape}."
                )
            return _positions(X)
    elif X.ndim == 2 and X.shape[1] >= 2 and X.dtype.kind in "iu":
        if integers is None:
            raise ValueError(
                f"X holds integers in shape {X.shape}, which may be pairs of positions in a table "
                f"of items (or sets) or items with {_count(X.shape[1])} features. Say "
                'integers="positions" or integers="items".'
            )
        if integers == "positions":
            return _positions(X)
    return Parsed("items", X)


def names_in(X: Any) -> np.ndarray | None:
    """Names that X holds where no table is known: texts in two columns or more.

    Parameters
    ----------
    X : array-like, DataFrame, DuelFrame or ItemTable

    Returns
    -------
    ndarray of object of shape (n, k) or None
        None, NaN or "" may end a row of k > 2. None if X holds other things.
    """
    if isinstance(X, DuelFrame | ItemTable) or hasattr(X, "tocsr"):
        return None
    if is_frame(X):
        X = plain_frame(X)
        if not all(
            all_strings(np.asarray(column_at(X, j).to_numpy())) for j in range(2)[: X.shape[1]]
        ):
            return None
        names = np.asarray(X, dtype=object)
    else:
        names = _as_array(unmasked(X))
        if names.ndim != 2 or names.dtype.kind not in "UTO":
            return None
        # numpy would make strings of None and NaN
        names = names if hasattr(X, "dtype") else np.array(X, dtype=object)
    if names.shape[1] < 2 or names.size == 0 or not all_strings(names[:, :2]):
        return None
    values = names.ravel().tolist()
    named = all(isinstance(value, str) or is_missing(value) for value in values)
    return names.astype(object) if named else None


def table_of_names(names: np.ndarray) -> ItemTable:
    """Items without features that names, with what pads their rows, stand for."""
    listed = names.ravel().tolist()
    return ItemTable.from_names([name for name in listed if isinstance(name, str) and name])


def _count(number: int) -> str:
    return "two" if number == 2 else str(number)


def _of_duel_frame(X: DuelFrame) -> Parsed:
    if is_frame(X.items):
        return Parsed("items", X.items, X.pairs, X.id_column, X.feature_names is not None)
    absent = X.pairs < 0  # as the array of the same items would be
    return Parsed("items", X.items[X.pairs[~absent]], numbered(absent))


def _unit(kind: str, X: np.ndarray) -> Parsed:
    """One value an item: (n,) items or (n, 2) duels."""
    paired = X.ndim == 2 and X.shape[1] == 2
    return Parsed(kind, X.reshape(-1), consecutive(len(X), 2) if paired else None)


def _padded(kind: str, X: np.ndarray, absent: np.ndarray, pads: str) -> Parsed:
    """One value an item: (n, k) sets."""
    check_padding(absent, pads)
    return Parsed(kind, X[~absent], numbered(absent))


def _positions(X: np.ndarray) -> Parsed:
    if X.ndim == 1 or X.shape[1] == 2:
        return _unit("positions", X)
    return _padded("positions", X, X == -1, "-1")


def _named_in_frame(frame: Any, table: ItemTable) -> Parsed | None:
    """Names in the columns of a frame, None if they hold other things."""
    texts = [all_strings(np.asarray(column_at(frame, j).to_numpy())) for j in range(frame.shape[1])]
    if frame.shape[1] in (1, 2):
        return _unit("names", np.asarray(frame, dtype=object)) if all(texts) else None
    # Only columns after the second can have pads.
    return _named_sets(np.asarray(frame, dtype=object), table) if all(texts[:2]) else None


def _named_sets(X: np.ndarray, table: ItemTable) -> Parsed | None:
    """Sets of names, None if X holds other things than strings and pads."""
    if X.shape[1] < 3 or X.size == 0:
        return None
    pads = set() if "" in table.names.tolist() else {""}
    values = X.ravel().tolist()
    named = [isinstance(value, str) for value in values]
    absent = [value in pads if isinstance(value, str) else is_missing(value) for value in values]
    if not any(named) or not np.logical_or(named, absent).all():
        return None
    gaps = np.array(absent).reshape(X.shape)
    return _padded("names", X.astype(object), gaps, "None, NaN or an empty name")


def _text_sets(X: np.ndarray) -> Parsed | None:
    """Sets of texts, None if X holds other things than texts and pads."""
    if X.shape[1] < 3:
        return None
    if all_strings(X):
        return Parsed("texts", X.reshape(-1), consecutive(*X.shape))
    gaps = missing_texts(X)
    return None if gaps is None else _padded("texts", X, gaps, "None or NaN")


def _as_array(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X could not be read as an array ({error}); X may be {FORMS}. Rows of fewer items are "
            "padded at their end, positions by -1, names by None."
        ) from None


def _refuse_missing_texts(X: np.ndarray) -> None:
    gaps = missing_texts(X)
    if gaps is not None:
        rows = np.flatnonzero(gaps.reshape(len(X), -1).any(axis=1))
        raise ValueError(
            f"X of shape {X.shape} holds texts, of which {gaps.sum()} are missing, first in row "
            f"{rows[0]}. Leave these rows out, or put an empty text there; if its columns are "
            "features of items, pass a DataFrame."
        )


def check_dimensions(X: np.ndarray, table: ItemTable | None) -> None:
    """Whether X, no duel array, has two dimensions."""
    if X.ndim == 2:
        return
    came = f"shape {X.shape}" if X.shape else "a scalar"
    if not X.shape and X.dtype == np.dtype(object):
        came = type(X.item()).__name__
    remedy = (
        "Reshape your data: X.reshape(1, -1) is one item, X.reshape(-1, 1) are items of one "
        "feature, X.reshape(1, 2, -1) is one duel."
    )
    if table is not None:
        remedy += (
            " Positions in the table of items are integers: X.astype(int), or items.index(X) if X "
            "holds names."
        )
    raise ValueError(f"X may be {FORMS}; got {came}. {remedy}")


def table_for(
    estimator: BaseEstimator, X: Any, y: Any, before: ItemTable | None = None
) -> ItemTable | None:
    """``items=``, or else a table of the names in X, after those of the answers before."""
    if estimator.items is not None or estimator.id_column is not None:
        return check_items(estimator.items)
    names = names_in(X)
    if names is None:
        return before
    columns = [{name for name in column if isinstance(name, str)} for column in names.T.tolist()]
    distinct = set().union(*columns)
    if y is not None and len(distinct) == sum(map(len, columns)) < names.size:
        warn(
            f"X of shape {names.shape} reads as names of items, but no name stands in two of its "
            "columns. If the columns are features of rated items, encode them, "
            "Itemwise(OneHotEncoder()), before the model."
        )
    if before is not None and before.names is not None:
        names = np.array([*before.names, *names.ravel()], dtype=object)
    return table_of_names(names)


def check_items(items: Any) -> ItemTable | None:
    """The constructor's ``items=`` as an ItemTable of numbers, or None."""
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
                f"{str(error).rstrip('.')}. For items without features pass "
                "ItemTable.from_names(names)."
            ) from error
    if items.X is None:
        raise ValueError(
            "items= must hold finite numbers, but columns of its frame hold texts, categories or "
            f"gaps: {list(items.frame.columns)}. Encode them first, ItemTable(transformer"
            ".fit_transform(frame), names=...), or leave items= out and fit from_pairs(items, "
            "pairs) through Itemwise(transformer)."
        )
    return items


def check_positions(X: np.ndarray, n_items: int) -> np.ndarray:
    """Positions in a table of so many items."""
    if len(X) == 0:
        raise ValueError(
            f"X holds no position (0 samples, shape={X.shape}) while a minimum of 1 is required."
        )
    if X.min() < 0 or X.max() >= n_items:
        wrong = X.min() if X.min() < 0 else X.max()
        raise ValueError(
            f"Positions in the table of items must lie in [0, {n_items - 1}], got {wrong}. "
            "Count from 0; the table is the constructor's items=."
        )
    return X.astype(np.intp)


def check_known(X: np.ndarray, table: ItemTable | None) -> None:
    """Whether rows of items without features are positions in their table."""
    if table is not None and not table.has_features and not np.isin(X, table.X).all():
        raise ValueError(
            "Items without features are known by their position alone: rows must be integers "
            f"in [0, {len(table) - 1}]. Pass positions as integers, or names as strings."
        )


class Schema(NamedTuple):
    """What items look like, for a fitted estimator to remember.

    Attributes
    ----------
    n_features : int
    feature_names : ndarray of shape (n_features,) or None
    id_column : int or None
        Position of the column that says who an item is.
    ids : IdEncoder or None
        Codes of the ids seen in training; None where ids are numbers, which stay as they are.
    """

    n_features: int
    feature_names: np.ndarray | None = None
    id_column: int | None = None
    ids: IdEncoder | None = None


class Features(NamedTuple):
    """Items as floats, and the rows that were shown together (None: items alone).

    ``pairs`` are those of `Parsed`, as positions in ``rows``.
    """

    rows: np.ndarray
    pairs: np.ndarray | None
    schema: Schema


def remember(estimator: BaseEstimator, schema: Schema) -> None:
    """Set what a fitted estimator shows of its items, once all of the fit has succeeded."""
    estimator.n_features_in_ = schema.n_features
    if schema.feature_names is not None:
        estimator.feature_names_in_ = np.array(schema.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.ids_ = None if schema.ids is None else schema.ids.names
    estimator._schema = schema


def schema_of(estimator: BaseEstimator, table: ItemTable) -> Schema:
    """What items of a table look like."""
    place = _id_place(estimator, None, table.feature_names, table.n_features)
    return Schema(table.n_features, table.feature_names, place)


def table_features(table: ItemTable, schema: Schema) -> np.ndarray:
    """Items of a table that is asked about, which need not be the fitted one."""
    rows = table.X if table.frame is None else table.frame
    named = table.feature_names is not None
    return read_features(None, Parsed("items", rows, named=named), schema, plain=False).rows


def read_features(
    estimator: BaseEstimator | None,
    parsed: Parsed,
    schema: Schema | None,
    *,
    plain: bool = True,
    further: bool = False,
) -> Features:
    """Items of X as finite floats, ids as numbers.

    Parameters
    ----------
    estimator : BaseEstimator
        For its class, ``id_column`` and, if ``plain``, the checks of scikit-learn. Not touched.
    parsed : Parsed
        Of kind "items".
    schema : Schema or None
        What the items must look like; None: a new one is made.
    plain : bool, default=True
        2-D X without ids is scikit-learn's to check, where ``schema`` is given.
    further : bool, default=False
        Ids that ``schema`` does not know become known.

    Raises
    ------
    ValueError
        If columns have other names, another order or number than ``schema`` says; if one holds
        other things than finite numbers, and is not that of the ids.
    """
    rows, pairs = parsed.rows, parsed.pairs
    if pairs is not None and is_frame(rows):  # items that never meet are no one's concern
        used, pairs = used_rows(pairs)
        rows = take_rows(rows, used)
    names = column_names(rows) if parsed.named and is_frame(rows) else None
    place = schema.id_column if schema is not None else None
    if schema is None and (pairs is not None or len(rows.shape) == 2):
        place = _id_place(estimator, parsed, names, rows.shape[1])
    if pairs is None and place is None and plain and schema is not None:
        return Features(validated(estimator, rows, reset=False), None, schema)
    if pairs is None:
        _check_two_dimensions(rows)
    else:
        _check_sides(rows, pairs)
    if schema is not None:
        check_names(names, schema.feature_names)
        check_width(estimator, rows.shape[1], schema.n_features)
    ids, encoder = None, None
    if place is not None:
        column = column_at(rows, place) if is_frame(rows) else rows[:, place]
        ids, encoder = id_numbers(column, None if schema is None else schema.ids, schema is None)
        if further and schema is not None and encoder is not None:
            schema = schema._replace(ids=encoder.wider(column))
    array = _floats(rows, place, ids)
    _check_finite(array, pairs, names)
    return Features(array, pairs, schema or Schema(array.shape[1], names, place, encoder))


def _id_place(estimator, parsed, names, width):
    """Position of the column of ids, or None."""
    wanted = getattr(estimator, "id_column", None)
    if wanted is None:
        if parsed is None or parsed.id_column is None:
            return None
        return list(parsed.rows.columns).index(parsed.id_column)
    if isinstance(wanted, str):
        listed = [] if names is None else list(names)
        if wanted not in listed:
            came = f"X has columns {listed}" if listed else "the columns of X have no names"
            raise ValueError(
                f"id_column={wanted!r} names no column: {came}. Give a name that it has, or the "
                "position of the column."
            )
        return listed.index(wanted)
    whole = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
    if not whole or not 0 <= wanted < width:
        raise ValueError(
            f"id_column must be the name of a column or its position in [0, {width - 1}], got "
            f"{wanted!r}."
        )
    return int(wanted)


# -- names and widths ----------------------------------------------------------------------


def check_names(came: np.ndarray | None, expected: np.ndarray | None) -> None:
    """Whether columns are those of training, where both have names."""
    if came is not None and expected is not None and list(came) != list(expected):
        raise ValueError(
            f"X has columns {list(came)}, but the model was fitted on {list(expected)}. Give the "
            "same columns in the same order; for duels, build them of such a frame."
        )


def check_width(estimator: BaseEstimator | None, came: int, expected: int) -> None:
    """Whether items have as many features as those of training."""
    if came != expected:
        name = "the model" if estimator is None else type(estimator).__name__
        raise ValueError(
            f"X has {came} features, but {name} is expecting {expected} features as input."
        )


def schema_from(probe: BaseEstimator) -> Schema:
    """What `validated` has set on an estimator."""
    return Schema(probe.n_features_in_, getattr(probe, "feature_names_in_", None))


def validated(estimator: BaseEstimator, *arrays: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data``, whose errors say what to do."""
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
        raise ValueError(
            f"X must be numeric: {error}. Encode texts and categories with Itemwise(transformer); "
            "names of items need items= an ItemTable that has names."
        ) from None


# -- numbers -------------------------------------------------------------------------------


def _check_two_dimensions(rows):
    if len(rows.shape) != 2 or 0 in rows.shape or hasattr(rows, "tocsr"):
        check_array(rows, dtype=None)  # says why not


def _check_sides(rows, pairs):
    shape = (*pairs.shape, rows.shape[1])
    if rows.shape[1] == 0:
        raise ValueError(
            f"0 feature(s) (shape={shape}) while a minimum of 1 is required. For items without "
            "features pass items=ItemTable.from_names(names) and integer pairs."
        )
    if len(pairs) == 0:
        raise ValueError(
            f"X holds no {'duel' if pairs.shape[1] == 2 else 'set'} (0 samples, shape={shape}) "
            "while a minimum of 1 is required."
        )


def _floats(rows, place, ids):
    """Rows as floats, the column at ``place`` given by ``ids``."""
    others = [j for j in range(rows.shape[1]) if j != place]
    if is_frame(rows):
        array = _frame_numbers(rows, others)
    else:
        array = _array_numbers(rows if place is None else rows[:, others], rows.dtype)
    if place is None:
        return array
    return np.insert(array, place, ids, axis=1)


def _array_numbers(rows, dtype):
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"Duel arrays must be numeric, got dtype {dtype} ({error}). Encode texts and "
            "categories with Itemwise(transformer)."
        ) from None


def _frame_numbers(frame, places):
    columns = {j: column_floats(column_at(frame, j)) for j in places}
    others = [list(frame.columns)[j] for j, column in columns.items() if column is None]
    if others:
        raise ValueError(
            f"X must be numeric: columns {others} hold other things. Encode texts and categories "
            "with Itemwise(transformer), such as a ColumnTransformer."
        )
    return np.column_stack([*columns.values(), np.empty((len(frame), 0))])


def _check_finite(array, pairs, names):
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
        f"Input X contains NaN or infinity in {gaps.sum()} of {len(gaps)} {what}, first in row "
        f"{gaps.argmax()}{where}. Leave these {what} out, or put Itemwise(SimpleImputer()) before."
        f"{absent}"
    )


class Who(NamedTuple):
    """The column that says who an item is, where its ids have codes."""

    place: int
    ids: IdEncoder


def item_rows(
    X: Any,
    n_features: int,
    feature_names: NDArray[Any] | None = None,
    table: ItemTable | None = None,
    who: Who | None = None,
) -> Array:
    """Items as a finite float array of shape (n, n_features).

    Parameters
    ----------
    X : array-like, DataFrame or ItemTable of shape (n, n_features)
        With a table also names or integer positions in it, of shape (n,).
    n_features : int
    feature_names : ndarray of shape (n_features,), optional
        What columns that have names must be called, in this order.
    table : ItemTable, optional
    who : Who, optional
        Ids in a frame or an array of objects get their codes; arrays of numbers have them.

    Raises
    ------
    ValueError
        If they have another shape or other columns, are not finite, or not in the table.
    """
    if who is not None and isinstance(X, ItemTable) and X.frame is not None:
        X = X.frame
    if isinstance(X, ItemTable):
        return _rows_of_table(X, n_features, feature_names, table)
    if is_frame(X):
        columns = list(X.columns)
        if all(isinstance(column, str) for column in columns):
            _check_names(columns, feature_names)
    elif table is not None:
        found = _referred(X, table)
        if found is not None:
            return found
    ids = None if who is None else ids_in(X, who.place)
    if who is not None and ids is not None:
        X = np.array(X, dtype=object)
        X[:, who.place] = who.ids.codes(ids)
    rows = _numbers(X, table)
    if rows.ndim != 2:
        remedy = "For a single item use X.reshape(1, -1)."
        if table is not None:
            remedy += " In one dimension, names or integer positions in the table of items."
        raise ValueError(
            f"Items must be an array of shape (n, n_features), got {rows.ndim} dimensions. {remedy}"
        )
    _check_width(rows, n_features)
    if not np.all(np.isfinite(rows)):
        raise ValueError("Items contain NaN or infinity; impute or drop them.")
    return rows


def item_pairs(
    A: Any,
    B: Any,
    n_features: int,
    feature_names: NDArray[Any] | None = None,
    table: ItemTable | None = None,
    who: Who | None = None,
) -> tuple[Array, Array]:
    """Items on two sides, each as by `item_rows`; names and ids never heard of are told apart."""
    if who is not None:
        new = [ids for ids in (ids_in(A, who.place), ids_in(B, who.place)) if ids is not None]
        who = who._replace(ids=IdEncoder(sum(new, who.ids.names.tolist())))
    elif table is not None and not table.has_features:
        names = _names_in(A), _names_in(B)
        if names[0] is not None and names[1] is not None:
            both = named_rows([*names[0], *names[1]], table)
            return both[: len(names[0])], both[len(names[0]) :]
    a, b = (item_rows(X, n_features, feature_names, table, who) for X in (A, B))
    return a, b


def ids_in(X: Any, place: int) -> list | None:
    """Ids that are still to get their codes, None if there are none."""
    if isinstance(X, ItemTable) and X.frame is not None:
        X = X.frame
    if is_frame(X):
        return column_at(X, place).tolist() if place < X.shape[1] else None
    if isinstance(X, ItemTable):
        return None
    try:
        rows = np.asarray(X) if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:  # ragged
        return None
    if rows.dtype.kind not in "OUT" or rows.ndim != 2 or place >= rows.shape[1]:
        return None
    ids = rows[:, place].tolist()
    return ids if any(isinstance(name, str) for name in ids) else None


def _names_in(X: Any) -> list | None:
    """Names of items, None if X holds positions or features."""
    if isinstance(X, ItemTable):
        return None if X.names is None else X.names.tolist()
    names = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
    return names.tolist() if names.ndim == 1 and all_strings(names) else None


def _numbers(X: Any, table: ItemTable | None) -> Array:
    try:
        if np.ma.isMaskedArray(X):
            return np.ma.filled(X.astype(np.float64), np.nan)
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        names = (
            "give names in one dimension, all of them strings"
            if table is not None
            else "names are known only where the model was fitted with an ItemTable as items="
        )
        raise ValueError(
            f"Items must be numbers of shape (n, n_features) ({error}); {names}."
        ) from None


def _rows_of_table(
    asked: ItemTable, n_features: int, feature_names: NDArray[Any] | None, table: ItemTable | None
) -> Array:
    with_features = table is None or table.has_features
    if asked.has_features != with_features:
        raise ValueError(
            "The posterior is of items "
            + ("with features, this ItemTable has none." if with_features else "without features.")
            + " Ask about a table of the same kind."
        )
    if table is not None and not with_features:
        return named_rows(asked.names, table)
    if asked.feature_names is not None:
        _check_names(list(asked.feature_names), feature_names)
    _check_width(asked.X, n_features)
    return np.asarray(asked.X, dtype=np.float64)


def named_rows(names: Any, table: ItemTable) -> Array:
    """Rows of items by name; where items have no features one never heard of gets a row of its own.

    Of such an item the prior is all that is known.

    Raises
    ------
    ValueError
        If items have features and a name is not in the table.
    """
    if table.has_features:
        return float_rows(table.X, table.index(names))
    return IdEncoder(table.names).codes(names)[:, None]


def _referred(X: Any, table: ItemTable) -> Array | None:
    """Rows that one-dimensional names or positions stand for; None if X is neither."""
    try:
        asked = np.asarray(X)
    except ValueError:  # ragged
        return None
    if asked.ndim != 1:
        return None
    if asked.size == 0:
        return float_rows(table.X, slice(0))
    if asked.dtype.kind in "iu":
        wrong = asked[(asked < 0) | (asked >= len(table))]
        if len(wrong):
            raise ValueError(
                f"Positions in the table of items must lie in [0, {len(table) - 1}], got "
                f"{wrong[0]}. Count from 0."
            )
        return float_rows(table.X, asked)
    return named_rows(asked, table) if all_strings(asked) else None


def _check_names(came: list[str], wanted: NDArray[Any] | None) -> None:
    if wanted is not None and came != list(wanted):
        raise ValueError(
            f"The items have features {came}, the posterior is of {list(wanted)}. Give the same "
            "columns in the same order."
        )


def _check_width(rows: Array, n_features: int) -> None:
    if rows.shape[1] != n_features:
        raise ValueError(
            f"The posterior is of items with n_features = {n_features}, got {rows.shape[1]}."
        )
