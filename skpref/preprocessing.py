"""Transformers of items, applied to both sides of duels."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skpref._items import group_rows, is_frame, sides, take_rows

__all__ = ["Itemwise"]


def _inner_has(name):
    def check(self):
        inner = getattr(self, "transformer_", self.transformer)
        return inner == "passthrough" or hasattr(inner, name)

    return check


def _dense(output, n_rows):
    """Output of a transformer as a dense 2-D array of numbers."""
    if sparse.issparse(output):
        output = output.toarray()
    output = np.asarray(output)
    if output.ndim != 2 or len(output) != n_rows:
        raise ValueError(
            f"The transformer returned an array of shape {output.shape} for {n_rows} items; it "
            "must return one row an item. (Texts come as arrays of strings: a DataFrame of two "
            "columns of texts holds items, its to_numpy() holds text duels.)"
        )
    if output.dtype.kind in "OUST":
        try:
            return output.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The transformer returned values that are not numbers ({error}); encode them."
            ) from error
    return output


def _has_strings(rows):
    return rows.dtype.kind in "UT" or (
        rows.dtype.kind == "O" and any(isinstance(value, str) for value in rows.ravel().tolist())
    )


def _as_frame(rows, columns):
    """Rows under the columns that the transformer was fitted with."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns).infer_objects()


class Itemwise(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Apply one transformer of items to both sides of duels.

    A clone of the transformer is fitted once on the distinct items, so that both sides are
    treated alike and an item weighs the same however often it met others. It must treat each
    row by itself in ``transform``, as nearly all do: every distinct item is transformed once.

    Parameters
    ----------
    transformer : transformer or "passthrough", default="passthrough"
        Takes items (n_items, n_features), or a list of texts. It is fitted with ``y=None``,
        because outcomes belong to duels, not to items.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    n_features_in_ : int
        Number of features of an item; not set for texts.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Set if fitted on a DataFrame with string columns.

    Notes
    -----
    X may be duel arrays (n_duels, 2, n_features); items (n_items, n_features), also as a
    DataFrame, which reaches the transformer as one; text duels (n_duels, 2) or texts (n,) of
    strings. Duels come out as dense arrays (n_duels, 2, n_outputs), items as dense
    (n_items, n_outputs), so ``set_output`` is not offered. Pairs of positions are not taken:
    transform the table instead.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpref.preprocessing import Itemwise
    >>> X = [[[0.0], [2.0]], [[2.0], [0.0]], [[0.0], [2.0]]]
    >>> Itemwise(StandardScaler()).fit_transform(X)[..., 0].tolist()
    [[-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]]
    """

    def __init__(self, transformer="passthrough"):
        self.transformer = transformer

    def fit(self, X, y=None):
        """Fit a clone of the transformer on the distinct items.

        Parameters
        ----------
        X : array-like or DataFrame
            Duels, items or texts, see the class.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For pairs of positions, or arrays that are neither duels nor items.
        TypeError
            If ``transformer`` cannot fit and transform.
        """
        self._fit(X)
        return self

    def fit_transform(self, X, y=None):
        """Fit, then transform the same X.

        Parameters
        ----------
        X : array-like or DataFrame
            Duels, items or texts, see the class.
        y : ignored

        Returns
        -------
        ndarray of shape (n_duels, 2, n_outputs) or (n_items, n_outputs)
        """
        return self._apply(*self._fit(X))

    def transform(self, X):
        """Transform duels or items.

        Parameters
        ----------
        X : array-like or DataFrame
            Duels or items with the features seen in `fit`, or texts if it saw texts.

        Returns
        -------
        ndarray of shape (n_duels, 2, n_outputs) or (n_items, n_outputs)

        Raises
        ------
        ValueError
            If X does not fit what `fit` saw, or the transformer returns no numbers.
        """
        check_is_fitted(self)
        return self._apply(*self._rows(X, reset=False))

    @available_if(_inner_has("inverse_transform"))
    def inverse_transform(self, X):
        """Undo `transform` on both sides of duels, or on items.

        Parameters
        ----------
        X : array-like of shape (n_duels, 2, n_outputs) or (n_items, n_outputs)

        Returns
        -------
        ndarray of shape (n_duels, 2, n_features) or (n_items, n_features)
        """
        check_is_fitted(self)
        _, rows, paired = sides(X)
        rows = check_array(rows, ensure_all_finite="allow-nan")
        output = _dense(self.transformer_.inverse_transform(rows), len(rows))
        return output.reshape(-1, 2, output.shape[1]) if paired else output

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features=None):
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

    def _fit(self, X):
        if isinstance(self.transformer, str) and self.transformer == "passthrough":
            inner = FunctionTransformer(feature_names_out="one-to-one")
        elif hasattr(self.transformer, "fit") and hasattr(self.transformer, "transform"):
            inner = clone(self.transformer)
        else:
            raise TypeError(
                f"transformer is {self.transformer!r}; give an object with fit and transform, "
                'or "passthrough".'
            )
        rows, paired = self._rows(X, reset=True)
        first, _ = group_rows(rows)
        self.transformer_ = inner.fit(take_rows(rows, first), None)
        return rows, paired

    def _rows(self, X, reset):
        """Validated rows of items, and whether they pair up to duels."""
        kind, rows, paired = sides(X)
        if kind == "indices":
            raise ValueError(
                f"X holds integers in shape {np.shape(X)}, which reads as pairs of positions in "
                "a table of items. Transform the table itself, or give Itemwise duel arrays such "
                "as table[X]; items that have two integer features need X.astype(float)."
            )
        text = kind == "texts"
        if reset:
            self._text = text
            for name in ("n_features_in_", "feature_names_in_") if text else ():
                self.__dict__.pop(name, None)
        elif text != self._text:
            seen, came = ("texts", "features") if self._text else ("features", "texts")
            raise ValueError(f"Itemwise was fitted on {seen}, but {came} came; fit it again.")
        if not text:
            rows = self._check_features(rows, paired, reset)
        elif len(rows) == 0:
            raise ValueError("X holds no text; give at least one.")
        return rows, paired

    def _check_features(self, rows, paired, reset):
        names = None if reset else getattr(self, "feature_names_in_", None)
        if paired and names is not None and rows.shape[1] == len(names):
            rows = _as_frame(rows, names)  # duel arrays never have names: nothing to warn about
        passthrough = isinstance(self.transformer, str)
        finite = True if passthrough else "allow-nan"
        if is_frame(rows):
            validate_data(self, rows, reset=reset, skip_check_array=True)
            array = np.asarray(rows)
            if passthrough or array.dtype.kind != "O":  # mixed columns are the transformer's task
                check_array(array, ensure_all_finite=finite)
            # Fitted without names, of which validate_data has warned: it knows columns by place.
            return rows if reset or names is not None else array
        strings = not sparse.issparse(rows) and _has_strings(rows)
        rows = validate_data(
            self,
            rows,
            reset=reset,
            dtype=None if strings else "numeric",
            ensure_all_finite=finite,
        )
        return rows if names is None else _as_frame(rows, names)

    def _apply(self, rows, paired):
        first, inverse = group_rows(rows)
        output = _dense(self.transformer_.transform(take_rows(rows, first)), len(first))[inverse]
        return output.reshape(-1, 2, output.shape[1]) if paired else output

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        if hasattr(self.transformer, "__sklearn_tags__"):
            inner = get_tags(self.transformer)
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            tags.input_tags.categorical = inner.input_tags.categorical
        return tags
