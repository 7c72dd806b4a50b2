"""Items along one or two features, all else held."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._containers import column_at, column_floats, is_frame, plain_frame
from skpref._duel_frame import DuelFrame
from skpref._items import ItemTable


class Grid(NamedTuple):
    """Items to ask about.

    Attributes
    ----------
    names : tuple of str
        Of the features that vary.
    axes : tuple of ndarray of shape (grid_resolution,)
    items : ndarray or DataFrame
        The product of the axes, the last feature fastest.
    seen : ndarray of shape (n_items, n_varying)
        What the items of X have there.
    """

    names: tuple[str, ...]
    axes: tuple[NDArray[np.float64], ...]
    items: Any
    seen: NDArray[np.float64]


def as_items(X: Any) -> Any:
    """Items of X, an array or a frame: those of duels too, one below the other."""
    if isinstance(X, ItemTable):
        if not X.has_features:
            raise ValueError("These items have no features to draw a utility along.")
        return X.X if X.frame is None else X.frame
    if isinstance(X, DuelFrame):
        X = X.items
    if is_frame(X):
        return plain_frame(X)
    X = np.asarray(X)
    X = X.reshape(-1, X.shape[-1]) if X.ndim == 3 else X
    if X.ndim != 2 or not len(X):
        raise ValueError(
            f"X must hold items of shape (n_items, n_features) or duels, got shape {X.shape}."
        )
    return X


def along(
    X: Any, features: Any, resolution: int, reference: Any = None, feature_names: Any = None
) -> Grid:
    """Items of which one or two features run over their range in X.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_items, n_features)
    features : sequence of one or two positions or column names
    resolution : int
        Points along each.
    reference : array-like or mapping of the features of one item, default=None
        Where the others are held. None: at their median, what is no number at its most frequent
        value.

    feature_names : sequence of str, default=None
        Of the columns of an array.

    Raises
    ------
    ValueError
        If a feature is not in X, or no number.
    """
    columns = list(X.columns) if is_frame(X) else _columns(X.shape[1], feature_names)
    places = _places(features, columns)
    values = [column_at(X, j) if is_frame(X) else X[:, j] for j in range(len(columns))]
    seen = [column_floats(values[j]) for j in places]
    for place, column in zip(places, seen, strict=True):
        if column is None or np.isnan(column).all():
            raise ValueError(f"The feature {columns[place]!r} holds no numbers to draw along.")
    found = [column for column in seen if column is not None]
    axes = tuple(np.linspace(np.nanmin(c), np.nanmax(c), resolution) for c in found)
    product = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
    n = len(product[0])
    held = (
        [_typical(column) for column in values] if reference is None else _given(reference, columns)
    )
    full = {
        name: product[places.index(j)] if j in places else np.full(n, held[j])
        for j, name in enumerate(columns)
    }
    items = type(X)(full) if is_frame(X) else np.column_stack(list(full.values()))
    return Grid(tuple(str(columns[j]) for j in places), axes, items, np.column_stack(found))


def _columns(width, names):
    if names is None:
        return [f"feature {j}" for j in range(width)]
    if len(names) != width:
        raise ValueError(f"{len(names)} feature_names came for {width} features of X.")
    return [str(name) for name in names]


def _places(features, columns):
    if len(features) not in (1, 2) or len(set(features)) != len(features):
        raise ValueError(f"features must be one or two distinct features, got {features!r}.")
    places = []
    for feature in features:
        if feature in columns:
            places.append(columns.index(feature))
        elif not isinstance(feature, str) and 0 <= int(feature) < len(columns):
            places.append(int(feature))
        else:
            raise ValueError(
                f"The feature {feature!r} is not in X; there are {columns[:10]}"
                f"{' and more' if len(columns) > 10 else ''}."
            )
    return places


def _typical(column):
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return np.nanmedian(values)
    listed = values.tolist()
    return max(dict.fromkeys(listed), key=listed.count)


def _given(reference, columns):
    if is_frame(reference):
        reference = {name: reference[name].to_numpy()[0] for name in reference.columns}
    named = hasattr(reference, "items")
    if named and set(columns) <= set(reference.keys()):
        return [reference[name] for name in columns]
    if named or np.shape(reference) != (len(columns),):
        raise ValueError(
            f"reference must hold one item with the {len(columns)} features of X, got "
            f"{reference!r}."
        )
    return list(reference)
