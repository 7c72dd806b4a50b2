"""The only door for user data: X, y and qid become `Duels`, items or pairs of items."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from skpref._items import is_frame, is_missing
from skpref._outcomes import read_outcomes
from skpref._observations import Observations
from skpref.duels import ItemTable, distinct_rows, rated_pairs

_FORMS = (
    "duel arrays of shape (n_duels, 2, n_features), items with ratings of shape "
    "(n_items, n_features), or, with the constructor's items=, integer pairs of shape (n_duels, 2)"
)


class Training(NamedTuple):
    """What `fit` was given.

    Attributes
    ----------
    observations : Observations
    classes : ndarray of shape (2,) or None
        Labels of (second won, first won); None for rated items.
    """

    observations: Observations
    classes: np.ndarray | None


class Query(NamedTuple):
    """Items (``second`` is None) or pairs of items to predict.

    Attributes
    ----------
    first : ndarray of shape (n, n_features)
    second : ndarray of shape (n, n_features) or None
    """

    first: np.ndarray
    second: np.ndarray | None


def check_training(estimator, X, y, qid, table, sample_weight=None):
    """Validate the arguments of ``fit``; sets n_features_in_ and feature_names_in_.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y, qid : array-like
    table : ItemTable or None

    Returns
    -------
    Training
    """
    form, X = _form(X)
    if table is not None:
        _describe(estimator, table)
        if form == "frame" or (X.ndim == 2 and not _integers(X)):
            kind = "a DataFrame" if form == "frame" else f"a 2-D array of dtype {X.dtype}"
            as_array = "X.to_numpy()" if form == "frame" else "X"
            raise ValueError(
                f"With items= given, X must hold integer pairs of shape (n_duels, 2) or duel "
                f"arrays of shape (n_duels, 2, n_features), but {kind} of shape {X.shape} came. "
                f"If its values are positions in the table, pass {as_array}.astype(int); if they "
                f"are names of items, pass items.index({as_array}) with items= an ItemTable that "
                "has names; if its rows are items with ratings, leave items= out."
            )
        if _integers(X) and X.ndim != 3:
            if qid is not None:
                raise ValueError("qid belongs to items with ratings; duels take none.")
            _check_pair_shape(X)
            first, second = _positions(X, len(table)).T
            return _duels_from(table.X, first, second, y, sample_weight)
    if form == "array" and X.ndim == 3:
        if qid is not None:
            raise ValueError("qid belongs to items with ratings (2-D X); duels take none.")
        X = _check_duel_array(X)
        if table is None:
            _reset(estimator, X.shape[2])
        else:
            _check_width(estimator, X.shape[2])
            _check_known(X, table)
        n_duels, _, n_features = X.shape
        rows = X.reshape(2 * n_duels, n_features)
        return _duels_from(
            rows, np.arange(0, 2 * n_duels, 2), np.arange(1, 2 * n_duels, 2), y, sample_weight
        )
    return _rated(estimator, X, y, qid, table, sample_weight)


def _rated(estimator, X, y, qid, table, sample_weight):
    _check_dimensions(X, table)
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None. X of shape {X.shape} reads as items, whose ratings y gives. Only duels do "
            "without y: arrays of shape (n_duels, 2, n_features), or integer pairs together with "
            "the constructor's items=."
        )
    _check_real(y, "y")
    X, y = _validate_items(estimator, X, y, y_numeric=True)
    qid = None if qid is None else _groups(qid, len(X))
    if len(X) == 1:
        raise ValueError(
            "X and y make no duel: there is 1 sample, and a duel needs two items whose ratings "
            "differ. If X holds duels, its shape is (n_duels, 2, n_features)."
        )
    winner, loser = rated_pairs(y, qid, tiebreak=distinct_rows(X)[1])
    weight = None
    if sample_weight is not None:
        each = _check_weights(sample_weight, len(X))
        weight = each[winner] * each[loser]
    won = np.ones(len(winner), dtype=bool)
    return Training(_observed(X, winner, loser, won, weight), None)


def _validate_items(estimator, *arrays, **options):
    try:
        return validate_data(estimator, *arrays, dtype=np.float64, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X must be numeric: {error}. Encode texts and categories with Itemwise(transformer); "
            "names of items become positions by items.index(names), with items= an ItemTable."
        ) from None


def _groups(qid, n_items):
    """Groups of rated items as integers."""
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


def _duels_from(items, first, second, y, sample_weight):
    won, classes = check_outcomes(y, len(first))
    weight = None if sample_weight is None else _check_weights(sample_weight, len(first))
    return Training(_observed(items, first, second, won, weight), classes)


def _observed(items, first, second, won, weight):
    if weight is not None and not np.any(weight > 0.0):
        raise ValueError(
            "Every duel has a sample_weight of zero, so that there is nothing to learn from. Give "
            "some duels a positive weight."
        )
    return Observations.from_duels(items, first, second, won, weight)


def _check_weights(sample_weight, n):
    """Weights (n,) as finite non-negative floats."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim > 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape {weight.shape}, "
            f"({n},) is needed, one for each row of X."
        )
    if len(weight) != n:
        raise ValueError(
            f"sample_weight has length {len(weight)}, but X has {n} rows. Give one for each row."
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0.0):
        wrong = weight[~np.isfinite(weight) | (weight < 0.0)][0]
        raise ValueError(
            f"sample_weight must hold finite numbers of at least 0, {wrong} came. Leave rows "
            "without a weight out, or give them 0."
        )
    return weight


def check_outcomes(y, n_duels):
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
    y = column_or_1d(y, warn=True)
    if len(y) != n_duels:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_duels} duels, "
            f"{len(y)} outcomes in y. Give one outcome for each row of X."
        )
    return read_outcomes(y)


def check_query(estimator, X, table):
    """Validate the argument of ``predict``: items or duels, by shape and dtype.

    Returns
    -------
    Query
    """
    if isinstance(X, ItemTable):
        return Query(_table_items(estimator, X, table), None)
    form, X = _form(X)
    if table is not None and form == "array" and _integers(X) and X.ndim in (1, 2):
        if X.ndim == 1:
            return Query(table.X[_positions(X, len(table))], None)
        _check_pair_shape(X)
        first, second = _positions(X, len(table)).T
        return Query(table.X[first], table.X[second])
    if form == "array" and X.ndim == 3:
        X = _check_duel_array(X)
        _check_width(estimator, X.shape[2])
        _check_known(X, table)
        return Query(np.ascontiguousarray(X[:, 0]), np.ascontiguousarray(X[:, 1]))
    _check_dimensions(X, table)
    X = _validate_items(estimator, X, reset=False)
    _check_known(X, table)
    return Query(X, None)


def _table_items(estimator, asked, table):
    """Items of a table that is asked about, which need not be the fitted one."""
    fitted_on_features = table is None or table.has_features
    if asked.has_features != fitted_on_features:
        raise ValueError(
            "The model was fitted on items "
            + ("with features, this ItemTable has none." if fitted_on_features else "without.")
            + " Pass a table of the same kind, or positions in the fitted one."
        )
    if not asked.has_features:
        return table.X[table.index(asked.names)]
    _check_width(estimator, asked.X.shape[1])
    seen = getattr(estimator, "feature_names_in_", None)
    named = asked.feature_names
    if seen is not None and named is not None and list(seen) != list(named):
        raise ValueError(
            f"The table has features {list(named)}, the model was fitted on {list(seen)}. Give "
            "the same columns in the same order."
        )
    return asked.X


def _check_known(X, table):
    if table is not None and not table.has_features and not np.isin(X, table.X).all():
        raise ValueError(
            "Items without features are known by their position alone: rows must be integers "
            f"in [0, {len(table) - 1}]. Pass positions as integers, or items.index(names)."
        )


def check_pairs(estimator, X, table):
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


def check_items(items):
    """The constructor's ``items=`` as an ItemTable, or None."""
    if items is None or isinstance(items, ItemTable):
        return items
    try:
        return ItemTable(items)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            "items= must be an ItemTable or finite numbers of shape (n_items, n_features): "
            f"{str(error).rstrip('.')}. For items without features pass "
            "ItemTable.from_names(names)."
        ) from error


def _form(X):
    """Tell frames and sparse matrices, left to scikit-learn, from arrays."""
    if is_frame(X):
        return "frame", X
    if hasattr(X, "tocsr"):
        return "sparse", X
    array = X if isinstance(X, np.ndarray) else _as_array(X)
    _check_real(array, "X")
    if array.dtype.kind in "mMV":
        raise ValueError(
            f"X must be numeric, got dtype {array.dtype}. Turn it into numbers first (times, for "
            "instance, into days since a date)."
        )
    return "array", array


def _as_array(X):
    try:
        return np.asarray(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X could not be read as an array ({error}); X may be {_FORMS}.") from None


def _check_real(values, name):
    dtype = np.asarray(values).dtype
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, such as "
            f"{name}.real."
        )


def _check_dimensions(X, table):
    """Whether X, no duel array, has two dimensions."""
    if len(X.shape) == 2 or hasattr(X, "tocsr"):
        return
    came = f"shape {X.shape}" if X.shape else "a scalar"
    if not X.shape and getattr(X, "dtype", None) == np.dtype(object):
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
    raise ValueError(f"X may be {_FORMS}; got {came}. {remedy}")


def _integers(X):
    return X.dtype.kind in "iu"


def _check_pair_shape(X):
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(
            f"Integer X with items= must have shape (n_duels, 2), pairs of positions in the "
            f"table; got shape {X.shape}."
        )


def _positions(X, n_items):
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


def _check_duel_array(X):
    if X.shape[1] != 2:
        raise ValueError(
            f"A 3-D X must have shape (n_duels, 2, n_features), got {X.shape}. Stack the two "
            "sides with np.stack([first, second], axis=1)."
        )
    if X.shape[2] == 0:
        raise ValueError(
            f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required. For items without "
            "features pass items=ItemTable.from_names(names) and integer pairs."
        )
    if len(X) == 0:
        raise ValueError(
            f"X holds no duel (0 samples, shape={X.shape}) while a minimum of 1 is required."
        )
    if X.dtype.kind in "OUS":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"Duel arrays must be numeric, got dtype {X.dtype} ({error}). Encode texts and "
                "categories with Itemwise(transformer)."
            ) from None
    X = check_array(X, allow_nd=True, dtype=np.float64, ensure_all_finite=False, input_name="X")
    if not np.isfinite(X).all():
        gaps = ~np.isfinite(X).all(axis=(1, 2))
        raise ValueError(
            f"Input X contains NaN or infinity in {gaps.sum()} of {len(X)} duels, first in row "
            f"{gaps.argmax()}. Leave these duels out, or put Itemwise(SimpleImputer()) before."
        )
    return X


def _reset(estimator, n_features):
    estimator.n_features_in_ = n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _describe(estimator, table):
    _reset(estimator, table.X.shape[1])
    if table.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(table.feature_names, dtype=object)


def _check_width(estimator, n_features):
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
