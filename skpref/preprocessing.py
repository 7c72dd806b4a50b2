"""Transformers of items, applied to both sides of duels and to all items of a set."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_selection import chi2, f_classif, mutual_info_classif
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from skpref._utils import warn
from skpref.data import (
    DUEL,
    TIE,
    Comparisons,
    DuelFrame,
    ItemTable,
    ParsedX,
    all_strings,
    check_ranks,
    chosen_of,
    column_at,
    encode_ids,
    fill_masked,
    group_rows,
    is_frame,
    parse_outcomes,
    read,
    shallow_copy,
    stack_sets,
    take_rows,
)

__all__ = ["Itemwise"]

# Items looked at to find the ids in what a transformer puts out.
_LOOKED_AT = 1000
# A column whose correlation with the ids is this close to one in size holds them, rescaled.
_AFFINE = 1e-9


def _check_transformer_has(name: str) -> Callable[[Any], bool]:
    """Return a check whether the transformer, fitted or not, has a method."""

    def check(self):
        inner = getattr(self, "transformer_", self.transformer)
        return inner == "passthrough" or hasattr(inner, name)

    return check


def _dense_output(output, n_rows):
    """Return the output of a transformer as a dense 2-D array of numbers."""
    if sparse.issparse(output):
        output = output.toarray()
    output = np.asarray(output)
    if output.ndim != 2 or len(output) != n_rows:
        raise ValueError(
            f"The transformer returned an array of shape {output.shape} for {n_rows} items; it "
            "must return one row an item."
        )
    if output.dtype.kind in "OUST":
        try:
            return output.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The transformer returned values that are not numbers ({error}); encode them, "
                "with a ColumnTransformer, say. (Ids of items are encoded before the transformer "
                "sees them, if the duels were built with from_columns(..., ids=...).)"
            ) from error
    return output


def _has_strings(rows):
    """Return whether an array holds a text."""
    return rows.dtype.kind in "UT" or (
        rows.dtype.kind == "O" and any(isinstance(value, str) for value in rows.ravel().tolist())
    )


def _as_pandas(rows, columns):
    """Return rows under the columns that the transformer was fitted with."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns).infer_objects()


def _column_floats(frame, name):
    """Return a column of a frame as numbers."""
    return np.asarray(column_at(frame, list(frame.columns).index(name)), dtype=np.float64)


def _takes_texts(transformer):
    """Return whether a transformer, or the first step of a pipeline, takes a list of texts."""
    while hasattr(transformer, "steps"):
        transformer = transformer.steps[0][1]
    if not hasattr(transformer, "__sklearn_tags__"):
        return False
    tags = get_tags(transformer).input_tags
    return tags.string and not tags.two_d_array


def _text_column(rows):
    """Return the texts of a frame's only column; raise ValueError if it has others or gaps."""
    if not is_frame(rows) or rows.shape[1] != 1:
        what = "a DataFrame" if is_frame(rows) else "features"
        raise ValueError(
            f"The transformer takes texts, one an item, got {what} of shape {rows.shape}. "
            "Choose the columns with a ColumnTransformer([(name, vectorizer, column), ...]). "
            "(Duels of texts are arrays: a DataFrame of two columns of texts holds items, its "
            "to_numpy() holds text duels.)"
        )
    texts = np.asarray(column_at(rows, 0).to_numpy(), dtype=object)
    if not all_strings(texts):
        gaps = [i for i, text in enumerate(texts.tolist()) if not isinstance(text, str)]
        raise ValueError(
            f"{len(gaps)} of {len(texts)} texts are missing or no texts, first in row "
            f"{gaps[0] if gaps else 0}. Leave them out, or put an empty text there."
        )
    return texts


# Scores of features by classes, which shares of wins are not.
_OF_CLASSES = (chi2, f_classif, mutual_info_classif)


def _check_regression_score_func(transformer):
    """Raise ValueError if a transformer scores features by classes."""
    for name, value in transformer.get_params().items():
        if name.rpartition("__")[2] == "score_func" and value in _OF_CLASSES:
            raise ValueError(
                f"{name}={value.__name__} compares classes, but what Itemwise knows of an item of "
                "duels is its share of wins, a number. Take f_regression, r_regression or "
                "mutual_info_regression of sklearn.feature_selection."
            )


def _outcome_signs(y: Any, n: int) -> NDArray[np.int_]:
    """Return 1 where the first item of a duel won, -1 where the second did, 0 for a tie."""
    if y is None:
        return np.ones(n, dtype=np.int_)
    check_consistent_length(np.empty(n), y)
    if np.ndim(y) == 2 and np.shape(y)[1] == 2:
        return np.where(chosen_of(y, (n, 2)) == 0, 1, -1)
    labels = column_or_1d(fill_masked(y))
    try:
        return np.where(parse_outcomes(labels), 1, -1)
    except ValueError:
        numbers = labels.dtype.kind in "iuf" and np.isfinite(labels).all()
        if not numbers or (labels != np.rint(labels)).any():
            raise
        return np.sign(labels).astype(np.int_)


def _shares_of_wins(pairs: NDArray[np.intp], y: Any, n_items: int) -> NDArray[np.float64]:
    """Return the share of wins of each item among its answers; a tie is half a win.

    Parameters
    ----------
    pairs : ndarray of int of shape (n, k)
        Items of each answer, −1 where there is none.
    y : array-like or None
        Outcomes of duels, choices or ranks.
    n_items : int

    Returns
    -------
    ndarray of shape (n_items,)
        One half for items of which nothing is stated.
    """
    numbers = np.arange(float(n_items))[:, None]
    if pairs.shape[1] == 2:
        sign = _outcome_signs(y, len(pairs))
        kind = np.where(sign == 0, TIE, DUEL)
        answers = Comparisons.from_duels(numbers, pairs[:, 0], pairs[:, 1], sign > 0, kind=kind)
    else:
        answers = Comparisons.from_ranks(numbers, pairs, check_ranks(y, pairs >= 0).rank)
    rows, item = answers.rows, answers.items[:, 0].astype(np.intp)
    half = np.where(rows.kind == TIE, 0.5, 0.0) * rows.counts
    better, worse = item[rows.first], item[rows.second]
    wins = np.bincount(better, rows.counts - half, n_items) + np.bincount(worse, half, n_items)
    met = np.bincount(better, rows.counts, n_items) + np.bincount(worse, rows.counts, n_items)
    return np.where(met > 0.0, wins / np.maximum(met, 1e-300), 0.5)


# scikit-learn carries no types, so that mypy takes its keyword of subclassing for object's.
class Itemwise(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Apply one transformer of items to both sides of duels, and to all items of a set.

    A clone of the transformer is fitted once on the distinct items, so that both sides are
    treated alike and an item weighs the same however often it met others. It must treat each
    row by itself in ``transform``, as nearly all do: every distinct item is transformed once.

    Parameters
    ----------
    transformer : transformer or "passthrough", default="passthrough"
        Takes items (n_items, n_features), or a list of texts. What it gets as y says how well each
        distinct item did, see Notes.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    n_features_in_ : int
        Number of features of an item; not set for texts.
    feature_names_in_ : ndarray of shape (n_features,)
        Set if fitted on a DataFrame with string columns.

    Notes
    -----
    X may be duels (n_duels, 2, n_features) or sets (n_sets, k, n_features), as arrays or as a
    `DuelFrame`, whose columns reach the transformer as a DataFrame; items (n_items, n_features),
    also as a DataFrame or an `ItemTable`; text duels (n_duels, 2) or texts (n,) of strings, or
    frames with one column of texts. Integers of shape (n, 2) are items with two features: for
    pairs of positions, transform the table instead. Strings of shape (n, k) with k > 2 are sets of
    texts, padded by None, where the transformer takes texts, else items of k categories.

    Transformers that learn from y, such as ``TargetEncoder`` or ``SelectKBest(f_regression)``, get
    one number for each distinct item: of duels its share of wins among the duels of X (a tie is
    half a win, a grade counts as a win; ``y=None``: the first won each), of choices and rankings
    that among all pairs of which the answer states an order, one half where nothing is stated. It
    does not depend on the order of rows, or on the side on which an item stands. Labels in {0, 1}
    are outcomes: 0 is a loss. Of rated items it is the mean rating of equal rows. It is a target
    of regression: scores of classes, such as ``f_classif``, are refused where X holds duels. A fold
    of cross-validation gets shares of its training answers alone. What a target encoder learns is
    applied to the items of training as to all others (no cross-fitting), so that an item has one
    row throughout.

    Ids that are texts (`DuelFrame.id_column`) become numbers before the transformer sees them,
    those not seen in `fit` new ones. So ``("id", "passthrough", ["id"])`` in a ColumnTransformer
    keeps who an item is: duels then come out as a `DuelFrame` that says which column the ids are,
    and a model behind finds it as it does without `Itemwise`.

    Other duels come out as dense arrays (n_duels, 2, n_outputs), sets likewise (as a `DuelFrame` of
    such rows where they differ in size), items as dense (n_items, n_outputs); after
    ``set_output(transform="pandas")`` as a `DuelFrame` and a DataFrame.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpref.preprocessing import Itemwise
    >>> X = [[[0.0], [2.0]], [[2.0], [0.0]], [[0.0], [2.0]]]
    >>> Itemwise(StandardScaler()).fit_transform(X)[..., 0].tolist()
    [[-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]]
    """

    _text: bool
    _columns: Any
    _id_output: int | None = None  # position of the ids in what comes out

    def __init__(self, transformer: Any = "passthrough") -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> "Itemwise":
        """Fit a clone of the transformer on the distinct items.

        Parameters
        ----------
        X : array-like, DuelFrame, DataFrame or ItemTable
            Duels, sets, items or texts, see the class.
        y : array-like, default=None
            Outcomes of duels, choices, ranks or ratings, as models take them, for transformers that
            learn from them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For arrays that are neither duels nor items, missing texts, labels that are no outcomes,
            and transformers that score features by classes where X holds duels.
        TypeError
            If ``transformer`` cannot fit and transform.
        """
        self._fit_transformer(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, then transform the same X.

        Parameters
        ----------
        X : array-like, DuelFrame, DataFrame or ItemTable
            Duels, sets, items or texts, see the class.
        y : array-like, default=None
            As in `fit`.

        Returns
        -------
        As `transform`.
        """
        return self._transform_items(self._fit_transformer(X, y))

    def transform(self, X: Any) -> Any:
        """Transform duels, sets or items.

        Parameters
        ----------
        X : array-like, DuelFrame, DataFrame or ItemTable
            Duels, sets or items with the features seen in `fit`, or texts if it saw texts.

        Returns
        -------
        ndarray of shape (n_duels, 2, n_outputs), (n_sets, k, n_outputs) or (n_items, n_outputs)
            `DuelFrame` where sets differ in size; `DuelFrame` or DataFrame after
            ``set_output(transform="pandas")``.

        Raises
        ------
        ValueError
            If X does not fit what `fit` saw, or the transformer returns no numbers.
        """
        check_is_fitted(self)
        return self._transform_items(self._read_items(X, reset=False))

    @available_if(_check_transformer_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> np.ndarray | DuelFrame:
        """Undo `transform` on both sides of duels, on all items of a set, or on items.

        Parameters
        ----------
        X : array-like or DuelFrame of shape (n_sets, k, n_outputs) or (n_items, n_outputs)

        Returns
        -------
        ndarray of shape (n_sets, k, n_features) or (n_items, n_features)
            `DuelFrame` where sets differ in size.
        """
        check_is_fitted(self)
        shown = read(X)
        rows = check_array(shown.rows, ensure_all_finite="allow-nan")
        output = _dense_output(self.transformer_.inverse_transform(rows), len(rows))
        return output if shown.pairs is None else stack_sets(output, shown.pairs)

    @available_if(_check_transformer_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features of a transformed item.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features of an item, if `fit` saw none.

        Returns
        -------
        ndarray of str objects of shape (n_outputs,)
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> "Itemwise":
        """Choose what `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            "default": arrays. "pandas": duels as a `DuelFrame`, items as a DataFrame, with the
            names of `get_feature_names_out`. "polars": the same, items as a polars DataFrame.
            None: as before.

        Returns
        -------
        self
        """
        if transform not in (None, "default", "pandas", "polars"):
            raise ValueError(
                f'transform must be "default", "pandas", "polars" or None, got {transform!r}.'
            )
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _fit_transformer(self, X, y):
        """Fit a clone of the transformer on distinct items, and return X parsed."""
        if isinstance(self.transformer, str) and self.transformer == "passthrough":
            inner = FunctionTransformer(feature_names_out="one-to-one")
        elif hasattr(self.transformer, "fit") and hasattr(self.transformer, "transform"):
            inner = clone(self.transformer)
        else:
            raise TypeError(
                f"transformer is {self.transformer!r}; give an object with fit and transform, "
                'or "passthrough".'
            )
        shown = self._read_items(X, reset=True)
        first, inverse = group_rows(shown.rows)
        target = self._item_targets(inner, shown, y, inverse, len(first))
        try:
            self.transformer_ = inner.fit(take_rows(shown.rows, first), target)
        except ValueError as error:
            if shown.pairs is None or "label type" not in str(error):
                raise
            raise ValueError(
                f"{type(inner).__name__} takes classes, but what Itemwise knows of an item of "
                f"duels is its share of wins, a number ({error}). Take a transformer that learns "
                "from a target of regression, or one that needs none."
            ) from error
        self._id_output = None
        if not self._text and self._id_column is not None and is_frame(shown.rows):
            self._id_output = self._find_id_output(take_rows(shown.rows, first[:_LOOKED_AT]))
        return shown

    def _item_targets(self, inner, shown, y, inverse, n_items):
        """Return the transformer's y of each distinct item; None where there is none."""
        if shown.pairs is not None:
            if shown.pairs.shape[1] > 2 and y is None:
                return None
            _check_regression_score_func(inner)
            pairs = np.where(shown.pairs < 0, -1, inverse[shown.pairs])
            return _shares_of_wins(pairs, y, n_items)
        if y is None:
            return None
        ratings = column_or_1d(fill_masked(y))
        check_consistent_length(inverse, ratings)
        if ratings.dtype.kind not in "biuf":
            return ratings[np.unique(inverse, return_index=True)[1]]
        if n_items == len(inverse):
            return ratings[np.argsort(inverse)]
        return np.bincount(inverse, ratings, n_items) / np.bincount(inverse, minlength=n_items)

    def _find_id_output(self, rows):
        """Return the column of outputs that holds the ids as they are; None if there is none."""
        ids = _column_floats(rows, self._id_column)
        output = _dense_output(self.transformer_.transform(rows), len(rows))
        names = self._output_names(output.shape[1])
        is_named_id = [str(name).rpartition("__")[2] == str(self._id_column) for name in names]
        id_outputs = np.flatnonzero((output == ids[:, None]).all(axis=0))
        if len(id_outputs):
            return int(max(id_outputs, key=lambda j: (is_named_id[j], -j)))
        if len(np.unique(ids)) > 2:
            apart = (ids - ids.mean()) / ids.std()
            spread = output.std(axis=0)
            scaled = (output - output.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
            near = np.abs(np.abs(apart @ scaled / len(ids)) - 1.0) < _AFFINE
            if (near & is_named_id).any():
                warn(
                    f"The transformer rescales the column {self._id_column!r}, which says who an "
                    "item is, so that a model behind takes it for a measured feature. Let it pass: "
                    f'Itemwise(ColumnTransformer([("id", "passthrough", [{self._id_column!r}]), '
                    '("rest", transformer, columns)])), with the other columns as columns; or '
                    "leave it out there, to learn from the features alone."
                )
        return None

    def _read_items(self, X, reset):
        """Return X parsed, with validated rows of items and ids as numbers."""
        if isinstance(X, ItemTable) and not X.has_features:
            raise ValueError("This ItemTable has no features, so there is nothing to transform.")
        shown = read(X, text_sets=_takes_texts(self.transformer))
        if is_frame(shown.rows):
            shown = shown.without_unshown()
        kind, rows, pairs = shown.kind, shown.rows, shown.pairs
        asked = reset or (self._text and is_frame(rows))
        if asked and kind == "items" and len(rows.shape) == 2 and _takes_texts(self.transformer):
            kind, rows = "texts", _text_column(rows)
        text = kind == "texts"
        self._set_or_check_kind(text, reset)
        if text and len(rows) == 0:
            raise ValueError("X holds no text; give at least one.")
        if not text:
            rows = self._check_features(rows, pairs is not None, reset)
            rows = self._number_ids(rows, shown.id_column, reset)
        return ParsedX(kind, rows, pairs)

    def _set_or_check_kind(self, text, reset):
        """Set whether items are texts, or raise ValueError unless they are as they were."""
        if reset:
            self._text = text
            for name in ("n_features_in_", "feature_names_in_") if text else ():
                self.__dict__.pop(name, None)
        elif text != self._text:
            fitted_kind, X_kind = ("texts", "features") if self._text else ("features", "texts")
            raise ValueError(f"Itemwise was fitted on {fitted_kind}, got {X_kind}; fit it again.")

    def _number_ids(self, rows, id_column, reset):
        """Return ids of items as numbers, where the duels of `fit` had ids."""
        if reset:
            self._id_column, self._ids = id_column, None
        if self._id_column is None or not is_frame(rows):
            return rows
        place = list(rows.columns).index(self._id_column)
        numbers, self._ids = encode_ids(column_at(rows, place), self._ids, reset)
        if self._ids is None:
            return rows
        rows = shallow_copy(rows)
        rows[self._id_column] = numbers
        return rows

    def _check_features(self, rows, paired, reset):
        """Return rows as the transformer takes them; ValueError for other columns than in `fit`."""
        columns = None if reset else self._columns
        if paired and columns is not None and not is_frame(rows) and rows.shape[1] == len(columns):
            rows = _as_pandas(rows, columns)  # duel arrays never have names: nothing to warn about
        passthrough = isinstance(self.transformer, str)
        finite = True if passthrough else "allow-nan"
        if reset:
            self._columns = rows.columns if is_frame(rows) else None
        if is_frame(rows):
            return self._check_frame(rows, finite, reset)
        strings = not sparse.issparse(rows) and _has_strings(rows)
        rows = validate_data(
            self,
            rows,
            reset=reset,
            dtype=None if strings else "numeric",
            ensure_all_finite=finite,
        )
        return rows if columns is None else _as_pandas(rows, columns)

    def _check_frame(self, frame, finite, reset):
        """Return a frame of features, as an array where it has no names; ValueError for others."""
        validate_data(self, frame, reset=reset, skip_check_array=True)
        array = np.asarray(frame)
        # Mixed columns are the transformer's task.
        if isinstance(self.transformer, str) or array.dtype.kind != "O":
            check_array(array, ensure_all_finite=finite)
        # Fitted without names, of which validate_data has warned: it knows columns by place.
        return frame if self._columns is not None else array

    def _transform_items(self, shown):
        """Return parsed X with its items transformed, in the container that was asked for."""
        first, inverse = group_rows(shown.rows)
        output = _dense_output(
            self.transformer_.transform(take_rows(shown.rows, first)), len(first)
        )
        config = getattr(self, "_sklearn_output_config", {})
        container = config.get("transform", get_config()["transform_output"])
        pairs = shown.pairs
        if pairs is not None:
            pairs = np.where(pairs < 0, -1, inverse[pairs])
        place = None if pairs is None else self._id_output
        if container == "default" and place is None:
            return output[inverse] if pairs is None else stack_sets(output, pairs)
        columns = self._output_names(output.shape[1])
        if pairs is not None:
            ids = None if place is None else columns[place]
            return stack_sets(_as_pandas(output, columns), pairs, ids)
        if container == "polars":
            import polars as pl

            return pl.DataFrame(output[inverse], schema=columns, orient="row")
        frame = _as_pandas(output[inverse], columns)
        return frame.set_index(shown.rows.index) if hasattr(shown.rows, "iloc") else frame

    def _output_names(self, n_outputs):
        """Return names of the outputs of the transformer, x0, x1, … where it has none."""
        with suppress(AttributeError):  # it has none, or one of its parts has none
            return list(self.transformer_.get_feature_names_out())
        return [f"x{i}" for i in range(n_outputs)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        if hasattr(self.transformer, "__sklearn_tags__"):
            inner = get_tags(self.transformer)
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            tags.input_tags.categorical = inner.input_tags.categorical
        return tags
