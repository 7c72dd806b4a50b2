"""What an optimizer's next item is chosen by, as a function of two parameters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import Array, check_choice, check_number
from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._dimensions import Dimension
from skpref.optimize._spaces import ParameterBox, Space
from skpref.optimize._strategies import Strategy, acquisition_surface


def check_plane(
    space: Space, dimensions: Sequence[int | str] | None, resolution: int
) -> tuple[int, int]:
    """Return positions of two dimensions that are numbers.

    Raises
    ------
    ValueError
        If there are no such two, or items are those of a pool; if ``resolution`` is below 2.
    """
    check_number("resolution", resolution, low=2, integer=True)
    if not isinstance(space, ParameterBox):
        raise ValueError(
            "The items of this optimizer are candidates of a pool, which fill no plane. Look at "
            "its posterior_ along features, with UtilityDisplay."
        )
    return _read_dimension_pair(space, dimensions)


def evaluate_on_plane(
    space: ParameterBox,
    places: tuple[int, int],
    method: str | Callable,
    posterior: Any,
    incumbent: Array,
    held: Array,
    seen: Array,
    resolution: int,
) -> Bunch:
    """Return an acquisition on a grid over two dimensions, the others held.

    What is returned is described in `PreferenceOptimizer.acquisition_surface`.

    Parameters
    ----------
    space : ParameterBox
    places : tuple of int
        Of the dimensions.
    method : str or callable
        As `read_acquisition` gives it.
    posterior : Posterior
    incumbent, held : ndarray of shape (n_columns,)
        Rows of the unit cube: the other item of the duel, and where other dimensions are held.
    seen : ndarray of shape (n_items, n_columns)
    resolution : int
    """
    begins = np.cumsum([0, *(each.width for each in space.dimensions)])
    columns = [int(begins[place]) for place in places]
    unit = [_grid_along(space.dimensions[place], resolution) for place in places]
    shape = len(unit[0]), len(unit[1])
    if min(shape) < 2:
        raise ValueError(
            f"{_dimension_names(space)[places[shape.index(min(shape))]]!r} has a single value; "
            "take another."
        )
    rows = np.tile(held, (shape[0] * shape[1], 1))
    rows[:, columns[0]], rows[:, columns[1]] = (
        np.repeat(unit[0], shape[1]),
        np.tile(unit[1], shape[0]),
    )
    value = acquisition_surface(method, posterior, incumbent, seen).value(rows)
    value = np.where(np.isfinite(value) & space.is_feasible(rows), value, np.nan)
    name = method if isinstance(method, str) else getattr(method, "__name__", "<")
    name = "acquisition" if name.startswith("<") else name  # of no name of its own
    if np.isnan(value).all():
        raise ValueError(f"The acquisition {name!r} is no finite number anywhere on this plane.")
    return Bunch(
        names=tuple(_dimension_names(space)[place] for place in places),
        grid=tuple(
            np.array([float(space.dimensions[place].decode([each])) for each in axis])
            for place, axis in zip(places, unit, strict=True)
        ),
        unit=tuple(unit),
        acquisition=value.reshape(shape),
        method=name,
        best=rows[np.nanargmax(value)][columns],
        incumbent=incumbent[columns],
        shown=seen[:, columns],
    )


def read_acquisition(strategy: Strategy, acquisition: str | Callable) -> str | Callable:
    """Return the acquisition to be drawn, a name in ``ACQUISITIONS`` or a function, checked.

    "auto" stands for the first one of the strategy that is a function of one item; ValueError if it
    has none.
    """
    if callable(acquisition):
        return acquisition
    if acquisition != "auto":
        return str(check_choice("acquisition", acquisition, ("auto", *ACQUISITIONS)))
    for turn in strategy.turns:
        if callable(turn.acquisition) or turn.acquisition in ACQUISITIONS:
            method: str | Callable = turn.acquisition
            return method
    raise ValueError(
        f"The questions of this optimizer are chosen by {strategy.acquisition!r}, which is no "
        f"function of one item. Say which to look at: acquisition= one of {list(ACQUISITIONS)}."
    )


def _grid_along(dimension: Dimension, resolution: int) -> Array:
    """Return columns of a grid along a dimension, (n,), with its ends if both are finite."""
    quantiles = np.linspace(0.0, 1.0, resolution)
    with np.errstate(all="ignore"):
        ends = [float(dimension.decode(end)) for end in dimension.columns_at(quantiles[[0, -1]])]
    if not np.isfinite(ends).all():
        quantiles = (np.arange(resolution) + 0.5) / resolution
    return np.unique(dimension.columns_at(quantiles)[:, 0])


def _dimension_names(space: ParameterBox) -> list[str]:
    """Return the names of dimensions, those without one by their number."""
    if space.names is None:
        return [f"dimension {k}" for k in range(space.n_dimensions)]
    return [str(name) for name in space.names]


def _read_dimension_pair(space: ParameterBox, dimensions: Any) -> tuple[int, int]:
    """Return the positions of two ordered dimensions by their names or positions, checked."""
    names = _dimension_names(space)
    numbers = [k for k, each in enumerate(space.dimensions) if each.ordered]
    if dimensions is None:
        if len(numbers) < 2:
            raise ValueError(
                f"Of the {len(names)} dimensions of this space {len(numbers)} are numbers; a plane "
                "needs two."
            )
        return numbers[0], numbers[1]
    listed = [dimensions] if isinstance(dimensions, str | int) else list(dimensions)
    places: list[Any] = [names.index(each) if each in names else each for each in listed]
    if (
        len(places) != 2
        or places[0] == places[1]
        or not all(each in range(len(names)) for each in places)
    ):
        raise ValueError(
            f"dimensions must be two different ones of {names}, by name or position; got "
            f"{dimensions!r}."
        )
    unordered = [names[k] for k in places if k not in numbers]
    if unordered:
        raise ValueError(
            f"The dimension {unordered[0]!r} holds categories, which have no order. Hold it (at=), "
            f"and name two of {[names[k] for k in numbers]}."
        )
    return places[0], places[1]
