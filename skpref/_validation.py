"""The only door for user data: X, y and qid become duels, items or pairs of items."""

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from skpref._asked import named_rows
from skpref._containers import is_frame, is_missing, unmasked
from skpref._features import (
    Schema,
    read_features,
    schema_from,
    schema_of,
    table_features,
    validated,
)
from skpref._observations import Observations
from skpref._outcomes import read_outcomes
from skpref._parsing import Parsed, check_dimensions, parse
from skpref._warnings import warn
from skpref._weights import check_weights, pair_weights
from skpref.duels import ItemTable, distinct_rows, rated_pairs


class Training(NamedTuple):
    """What `fit` was given.

    Attributes
    ----------
    observations : Observations
    classes : ndarray of shape (2,) or None
        Labels of (second won, first won); None for rated items.
    schema : Schema
        For `remember`, once the fit has succeeded.
    """

    observations: Observations
    classes: np.ndarray | None
    schema: Schema


class Query(NamedTuple):
    """Items (``second`` is None) or pairs of items to predict.

    Attributes
    ----------
    first : ndarray of shape (n, n_features)
    second : ndarray of shape (n, n_features) or None
    """

    first: np.ndarray
    second: np.ndarray | None


# -- training ------------------------------------------------------------------------------


def check_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    qid: Any,
    table: ItemTable | None,
    sample_weight: Any = None,
) -> Training:
    """Validate the arguments of ``fit``; the estimator is left as it is.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y, qid : array-like
    table : ItemTable or None
    sample_weight : array-like, optional

    Returns
    -------
    Training
    """
    parsed = _parse(X, table)
    if parsed.kind == "items" and parsed.pairs is None:
        if table is not None:
            _refuse_items(parsed.rows)
        return _rated(estimator, parsed, y, qid, sample_weight)
    if qid is not None:
        raise ValueError("qid belongs to items with ratings (2-D X); duels take none.")
    if table is not None and parsed.kind != "items":
        if parsed.kind == "positions" and is_frame(estimator.items):
            _mention_labels(table)
        rows, schema = table.X, schema_of(estimator, table)
        first, second = _looked_up(parsed, table).T
        who = np.arange(len(table))
    else:
        known = None if table is None else schema_of(estimator, table)
        rows, places, schema = read_features(estimator, parsed, known)
        _check_known(rows, table)
        first, second = np.asarray(places).T
        who = np.arange(len(rows)) if schema.id_column is None else rows[:, schema.id_column]
    won, classes = check_outcomes(y, len(first))
    _refuse_mirrors(who[first] == who[second])
    weight = check_weights(sample_weight, len(first))
    observations = Observations.from_duels(rows, first, second, won, weight)
    return Training(observations, classes, schema)


def _parse(X: Any, table: ItemTable | None) -> Parsed:
    parsed = parse(X, table=table)
    if parsed.pairs is not None and parsed.pairs.shape[1] > 2:
        form = "(n_duels, 2, n_features)" if parsed.kind == "items" else "(n_duels, 2)"
        raise ValueError(f"X must have shape {form}, got {np.shape(X)} (np.stack makes duels).")
    rows = parsed.rows
    if is_frame(rows) or hasattr(rows, "tocsr"):
        return parsed
    _check_real(rows, "X")
    if rows.dtype.kind in "mMV":
        raise ValueError(
            f"X must be numeric, got dtype {rows.dtype}. Turn it into numbers first (times, for "
            "instance, into days since a date)."
        )
    if parsed.kind == "texts":  # without a table that has names they name nothing
        parsed = Parsed("items", unmasked(np.asarray(X)))
    if parsed.kind == "items" and parsed.pairs is None:
        check_dimensions(parsed.rows, table)
    return parsed


def _looked_up(parsed: Parsed, table: ItemTable) -> np.ndarray:
    """Positions of the pairs of items that train."""
    if parsed.pairs is None:
        raise ValueError(
            "Integer X with items= must have shape (n_duels, 2), pairs of positions in the table "
            f"(or of names, if it has any); got shape {parsed.rows.shape}."
        )
    if parsed.kind == "names":
        return table.index(parsed.rows)[parsed.pairs]
    return _positions(parsed.rows, len(table))[parsed.pairs]


def _mention_labels(table: ItemTable) -> None:
    """Warn where positions in a frame could be meant as labels of its index."""
    labels = [] if table.names is None else table.names.tolist()
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
    if whole and labels != list(range(len(labels))):
        warn(
            f"Integer pairs are positions in items=, counted from 0, but the index of that frame "
            f"holds other integers, such as {labels[:3]}. If the pairs are labels of that index, "
            "build the duels by from_pairs(items, pairs); if they are positions, pass "
            "items.reset_index(drop=True)."
        )


def _refuse_items(X: Any) -> None:
    frame = is_frame(X)
    kind = "a DataFrame" if frame else f"a 2-D array of dtype {X.dtype}"
    as_array = "X.to_numpy()" if frame else "X"
    raise ValueError(
        f"With items= given, X must hold integer pairs of shape (n_duels, 2) or duel arrays of "
        f"shape (n_duels, 2, n_features), but {kind} of shape {X.shape} came. If its values are "
        f"positions in the table, pass {as_array}.astype(int); if they are names of items, pass "
        f"items.index({as_array}) with items= an ItemTable that has names; if its rows are items "
        "with ratings, leave items= out."
    )


def _refuse_mirrors(mirrors: np.ndarray) -> None:
    """Whether an item meets itself, by what says who it is: its position, name or id.

    Items of equal features need not be one item, so such duels pass: the model takes nothing
    from them.
    """
    if mirrors.any():
        more = f" ({mirrors.sum()} rows do)" if mirrors.sum() > 1 else ""
        raise ValueError(
            f"Row {mirrors.argmax()} of X sets an item against itself{more}. Such a duel says "
            "nothing; drop these rows of X and y."
        )


def _rated(
    estimator: BaseEstimator, parsed: Parsed, y: Any, qid: Any, sample_weight: Any
) -> Training:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None. X of shape {parsed.rows.shape} reads as items, whose ratings y gives. Only "
            "duels do without y: arrays of shape (n_duels, 2, n_features), or pairs of positions "
            "or names together with the constructor's items= (ItemTable.from_names(names) for "
            "items without features)."
        )
    _check_real(y, "y")
    y = unmasked(y)
    if getattr(estimator, "id_column", None) is None:
        probe = copy.copy(estimator)
        X, y = validated(probe, parsed.rows, y, y_numeric=True)
        schema = schema_from(probe)
    else:
        X, _, schema = read_features(estimator, parsed, None)
        y = column_or_1d(y, warn=True)
    qid = None if qid is None else _groups(qid, len(X))
    if len(X) == 1:
        raise ValueError(
            "X and y make no duel: there is 1 sample, and a duel needs two items whose ratings "
            "differ. If X holds duels, its shape is (n_duels, 2, n_features)."
        )
    if qid is None and _two_labels(y):
        warn(
            f"X of shape {X.shape} reads as rated items, of which each with the larger of the two "
            "labels in y beats each with the smaller. If its rows are differences of the two "
            "sides of duels, pass the duels instead: fit(np.stack([first, second], axis=1), y). "
            "If they are items of two grades, qid=np.zeros(len(y)) says so."
        )
    winner, loser = rated_pairs(y, qid, tiebreak=distinct_rows(X)[1])
    weight = pair_weights(sample_weight, len(X), winner, loser)
    won = np.ones(len(winner), dtype=bool)
    return Training(Observations.from_duels(X, winner, loser, won, weight), None, schema)


def _two_labels(y: np.ndarray) -> bool:
    labels = set(np.unique(y).tolist())
    return labels in ({0, 1}, {-1, 1})


def _groups(qid: Any, n_items: int) -> np.ndarray:
    """Groups of rated items as integers."""
    qid = unmasked(qid)
    shape = np.asarray(qid).shape
    if shape not in ((n_items,), (n_items, 1)):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_items} items, qid of "
            f"shape {shape}. Its shape must be (n_items,), the label of every item's group."
        )
    qid = column_or_1d(qid)
    if qid.dtype.kind == "f":
        gaps = ~np.isfinite(qid)
    else:
        gaps = np.array([is_missing(label) for label in qid.tolist()], dtype=bool)
    if gaps.any():
        raise ValueError(
            f"qid contains NaN, None or infinity in {gaps.sum()} of {n_items} places, first in "
            f"row {gaps.argmax()}. Give every item the label of its group."
        )
    try:
        return np.unique(qid, return_inverse=True)[1]
    except TypeError:
        raise ValueError(
            "qid mixes labels of different types; make them all strings, or all numbers."
        ) from None


def check_outcomes(y: Any, n_duels: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes as booleans (first won), and the two labels (second won, first won).

    Parameters
    ----------
    y : array-like of shape (n_duels,) or None
        Labels in {0, 1}, {-1, 1} or booleans; None: the first won each.
    n_duels : int
    """
    if y is None:
        return np.ones(n_duels, dtype=bool), np.array([0, 1])
    _check_real(y, "y")
    y = column_or_1d(unmasked(y), warn=True)
    if len(y) != n_duels:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_duels} duels, "
            f"{len(y)} outcomes in y. Give one outcome for each row of X."
        )
    return read_outcomes(y)


# -- queries -------------------------------------------------------------------------------


def check_query(estimator: BaseEstimator, X: Any, table: ItemTable | None) -> Query:
    """Validate the argument of ``predict``: items or duels, by shape and dtype.

    Returns
    -------
    Query
    """
    schema = estimator._schema
    if isinstance(X, ItemTable):
        return Query(_table_items(X, table, schema), None)
    parsed = _parse(X, table)
    if table is not None and parsed.kind != "items":
        return _referred(parsed, table)
    rows, pairs = read_features(estimator, parsed, schema)[:2]
    _check_known(rows, table)
    if pairs is None:
        return Query(rows, None)
    if not is_frame(parsed.rows):  # the sides of a duel array alternate
        return Query(np.ascontiguousarray(rows[::2]), np.ascontiguousarray(rows[1::2]))
    return Query(rows[pairs[:, 0]], rows[pairs[:, 1]])


def _referred(parsed: Parsed, table: ItemTable) -> Query:
    """Items that X names, or gives by position."""
    if parsed.kind == "positions":
        rows, places = table.X, _positions(parsed.rows, len(table))
    else:
        rows, places = named_rows(parsed.rows, table), np.arange(len(parsed.rows))
    if parsed.pairs is None:
        return Query(rows[places], None)
    return Query(rows[places[::2]], rows[places[1::2]])


def _table_items(asked: ItemTable, table: ItemTable | None, schema: Schema) -> np.ndarray:
    """Items of a table that is asked about, which need not be the fitted one."""
    fitted_on_features = table is None or table.has_features
    if asked.has_features != fitted_on_features:
        raise ValueError(
            "The model was fitted on items "
            + ("with features, this ItemTable has none." if fitted_on_features else "without.")
            + " Pass a table of the same kind, or positions in the fitted one."
        )
    if table is None or asked.has_features:
        return table_features(asked, schema)
    return named_rows(asked.names, table)


def _check_known(X: np.ndarray, table: ItemTable | None) -> None:
    if table is not None and not table.has_features and not np.isin(X, table.X).all():
        raise ValueError(
            "Items without features are known by their position alone: rows must be integers "
            f"in [0, {len(table) - 1}]. Pass positions as integers, or names as strings."
        )


def check_pairs(estimator: BaseEstimator, X: Any, table: ItemTable | None) -> Query:
    """Validate duels for methods that take nothing else."""
    query = check_query(estimator, X, table)
    if query.second is None:
        raise ValueError(
            f"Duels are needed here, {len(query.first)} items came. X must be of shape "
            "(n_duels, 2, n_features)"
            f"{'' if table is None else ' or integer pairs of shape (n_duels, 2)'}; "
            "for utilities of items call predict."
        )
    return query


# -- parts ---------------------------------------------------------------------------------


def check_items(items: Any) -> ItemTable | None:
    """The constructor's ``items=`` as an ItemTable of numbers, or None."""
    if items is None:
        return None
    if not isinstance(items, ItemTable):
        try:
            items = ItemTable(items)
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


def _check_real(values: Any, name: str) -> None:
    dtype = np.asarray(values).dtype
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, such as "
            f"{name}.real."
        )


def _positions(X: np.ndarray, n_items: int) -> np.ndarray:
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
