"""Items as finite floats: names of columns, ids and gaps are judged here."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpref._containers import column_at, column_floats, column_names, is_frame, take_rows
from skpref._ids import IdEncoder, id_numbers
from skpref._items import ItemTable
from skpref._parsing import Parsed
from skpref._sets import used_rows


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
