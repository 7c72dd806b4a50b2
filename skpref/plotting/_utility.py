"""The utility along one or two features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import check_number
from skpref.data import ItemTable, column_at, column_floats, is_frame, read
from skpref.fitting import Inspected, unit_length
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    draw_band,
    draw_legend_above,
    hide_frame,
    label_with_unit,
    palette,
    percent_text,
    plain_text,
    thin_look,
)


class FeatureGrid(NamedTuple):
    """Items along one or two features, all other features held.

    Attributes
    ----------
    names : tuple of str
        Of the features that vary.
    axes : tuple of ndarray of shape (grid_resolution,)
    items : ndarray or DataFrame
        The product of the axes, the last feature fastest.
    shown : ndarray of shape (n_items, n_varying)
        What the items of X have there.
    """

    names: tuple[str, ...]
    axes: tuple[NDArray[np.float64], ...]
    items: Any
    shown: NDArray[np.float64]


def read_items(X: Any) -> Any:
    """Return the items of X, an array or a frame; those of duels one below the other."""
    if isinstance(X, ItemTable) and not X.has_features:
        raise ValueError("These items have no features to draw a utility along.")
    shown = read(X)
    if not is_frame(shown.rows) and np.ndim(shown.rows) != 2:
        raise ValueError(
            "X must hold items of shape (n_items, n_features) or duels, got shape "
            f"{np.shape(shown.rows)}."
        )
    return shown.rows


def grid_along_features(
    X: Any, features: Any, resolution: int, reference: Any = None, feature_names: Any = None
) -> FeatureGrid:
    """Return items of which one or two features run over their range in X.

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
    columns = list(X.columns) if is_frame(X) else _label_columns(X.shape[1], feature_names)
    places = _feature_positions(features, columns)
    values = [column_at(X, j) if is_frame(X) else X[:, j] for j in range(len(columns))]
    numeric_columns = [_numbers_along(values[j], columns[j]) for j in places]
    axes = tuple(np.linspace(np.nanmin(c), np.nanmax(c), resolution) for c in numeric_columns)
    product = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
    n = len(product[0])
    held = (
        [_typical_value(column) for column in values]
        if reference is None
        else _reference_values(reference, columns)
    )
    full = {
        name: product[places.index(j)] if j in places else np.full(n, held[j])
        for j, name in enumerate(columns)
    }
    items = type(X)(full) if is_frame(X) else np.column_stack(list(full.values()))
    return FeatureGrid(
        tuple(str(columns[j]) for j in places), axes, items, np.column_stack(numeric_columns)
    )


def _numbers_along(values, name):
    """Return a column as floats; ValueError if it holds no number."""
    column = column_floats(values)
    if column is None or np.isnan(column).all():
        raise ValueError(f"The feature {name!r} holds no numbers to draw along.")
    return column


def _label_columns(width, names):
    """Return names of the columns of an array; ValueError where too few are given."""
    if names is None:
        return [f"feature {j}" for j in range(width)]
    if len(names) != width:
        raise ValueError(
            f"got {len(names)} feature_names for {width} features of X; give one for each."
        )
    return [str(name) for name in names]


def _feature_positions(features, columns):
    """Return the positions of one or two features among the columns; ValueError for others."""
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


def _typical_value(column):
    """Return the median of a column of numbers, or the most frequent value of another."""
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return np.nanmedian(values)
    listed = values.tolist()
    return max(dict.fromkeys(listed), key=listed.count)


def _reference_values(reference, columns):
    """Return the values of a reference item in the order of the columns."""
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


@dataclass(eq=False, kw_only=True, repr=False)
class UtilityDisplay(Display):
    """Posterior of the utility along one feature, with a band, or its mean along two.

    Made by `from_estimator`; the parameters are kept as attributes. The zero is the mean over
    what is drawn, as answers tell differences alone.

    Parameters
    ----------
    features : tuple of str
        Names of the one or two features.
    grid : tuple of ndarray of shape (grid_resolution,)
    mean, lower, upper : ndarray of shape (grid_resolution,) or (grid_resolution, grid_resolution)
        Of the utility above its mean over the grid, in units; the first feature is the first axis.
    items : ndarray of shape (n_items, n_features)
        What the items have of these features.
    level : float
    held : str, default=""
        Where the other features are held, in words.
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_, band_ : Line2D and PolyCollection
        Along one feature.
    surface_, colorbar_ : QuadContourSet and Colorbar
        Along two.
    items_ : Line2D
        The items.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> from skpref.plotting import UtilityDisplay
    >>> candy = load_candy(n_duels=100)
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(candy.X, candy.y)
    >>> UtilityDisplay.from_estimator(model, candy.item_table, [10])  # doctest: +SKIP
    """

    features: tuple[str, ...]
    grid: tuple[NDArray[np.float64], ...]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    items: NDArray[np.float64]
    level: float = 0.9
    held: str = ""
    unit: str = "noise"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        features: int | str | Sequence,
        *,
        user: Any = None,
        unit: str = "noise",
        item_effects: bool = False,
        grid_resolution: int | None = None,
        level: float = 0.9,
        reference: Any = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Ask the posterior along the features and draw it.

        Parameters
        ----------
        model : estimator, pipeline or Posterior
            Anything fitted that has a ``posterior_``, or that posterior.
        X : array-like or DataFrame of shape (n_items, n_features), duels or None
            Items, as the model's ``predict`` takes them: their range is drawn. None: those of
            the model.
        features : position, name or sequence of one or two of them
        user, unit
            See `skpref.inspection.leaderboard`.
        item_effects : bool, default=False
            With the effects of single items, if the kernel has any (the default kernel may): then
            the curve has a spike at each item that it passes, and the band is that of an item
            nobody has met. False: the utility that features explain, see
            `skpref.inspection.without_item_effects`.
        grid_resolution : int, default=None
            Points along each feature; None: 200 along one, 40 along two.
        level : float, default=0.9
        reference : array-like of shape (n_features,), mapping or frame of one row, default=None
            The item at which the other features are held. None: their median in X (what is no
            number: its most frequent value).
        feature_names : sequence of str, default=None
            Of an X that has none. None: those that the model knows.
        ax : matplotlib Axes, default=None
        **kwargs
            For `plot`.

        Returns
        -------
        UtilityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a feature is not there, or holds no numbers, or items have effects alone.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        if grid_resolution is not None:
            check_number("grid_resolution", grid_resolution, low=2, integer=True)
        subject = Inspected.from_model(model, user)
        length = unit_length(subject.posterior, unit)
        if X is None:
            table = subject.posterior.reader.table
            X = subject.training[:, : subject.n_features] if table is None else table
        listed = [features] if isinstance(features, str | int | np.integer) else list(features)
        resolution = grid_resolution or (
            SIZES.surface_points if len(listed) == 2 else SIZES.curve_points
        )
        names = subject.feature_names if feature_names is None else feature_names
        grid = grid_along_features(read_items(X), listed, resolution, reference, names)
        rows = subject.rows_of(grid.items)
        shown_subject = subject if item_effects else subject.without_item_effects()
        relative = shown_subject.intervals_about_mean(rows, level).in_unit(length)
        shape = tuple(len(axis) for axis in grid.axes)
        others = grid.items.shape[1] - len(shape)
        held = "their median" if reference is None else "those of the reference"
        made = cls(
            features=grid.names,
            grid=grid.axes,
            **{name: part.reshape(shape) for name, part in relative._asdict().items()},
            items=grid.shown,
            level=level,
            held=f"other features at {held}" if others else "",
            unit=unit,
        )
        return made.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, color: Any = None, cmap: Any = "viridis") -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        color : matplotlib color, default=None
            Along one feature.
        cmap : matplotlib colormap, default="viridis"
            Along two.

        Returns
        -------
        UtilityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        single = len(self.features) == 1
        ax = self._new_axes(ax, (6.4, 4.0) if single else (6.0, 4.6))
        if single:
            self._draw_curve(ax, palette(ax).blue if color is None else color)
        else:
            self._draw_surface(ax, cmap)
        ax.set_xlabel("\n".join(filter(None, (plain_text(self.features[0]), self.held))))
        return self

    def _draw_curve(self, ax, color):
        """Draw the mean utility along one feature with its band, and the items below."""
        (x,) = self.grid
        ax.axhline(0.0, **thin_look())
        label = f"{percent_text(self.level)} interval"
        self.band_ = draw_band(ax, x, self.lower, self.upper, color, label=label)
        (self.line_,) = ax.plot(x, self.mean, color=color, linewidth=2.0, label="posterior mean")
        (self.items_,) = ax.plot(
            self.items[:, 0],
            np.full(len(self.items), 0.02),
            "|",
            transform=ax.get_xaxis_transform(),
            color="0.5",
            markersize=8,
            markeredgewidth=0.8,
            label="items",
        )
        ax.set_xlim(x[0], x[-1])
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.08 * (high - low), high)  # room for the items
        ax.set_ylabel(label_with_unit("utility above the mean of the curve", self.unit))
        draw_legend_above(ax, 3)
        hide_frame(ax)

    def _draw_surface(self, ax, cmap):
        """Draw the mean utility along two features, and the items on it."""
        first, second = self.grid
        self.surface_ = ax.contourf(first, second, self.mean.T, levels=14, cmap=cmap)
        (self.items_,) = ax.plot(
            *self.items.T,
            "o",
            color="white",
            markeredgecolor="black",
            markeredgewidth=0.6,
            markersize=4,
            label="items",
            clip_on=False,
        )
        label = label_with_unit("utility above the mean of the plane", self.unit)
        self.colorbar_ = ax.figure.colorbar(self.surface_, ax=ax, label=label)
        ax.set_ylabel(plain_text(self.features[1]))
