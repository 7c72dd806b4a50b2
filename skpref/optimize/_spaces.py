"""Spaces of items: the contract, bounds and named parameters, a pool of candidates."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import qmc
from sklearn.utils.validation import check_array

from skpref._utils import sobol, warn
from skpref.data import ItemTable, check_finite, fill_masked, is_frame
from skpref.optimize._dimensions import Interval, copy_value, make_dimension, plain_value

# Rows spread over a space, or the items of a fit, that stand for all: of earlier people's
# utilities, and of what is monotone.
N_ANCHORS = 128
_ENCODE = (
    "Encode texts, categories and dates first (sklearn.preprocessing.OneHotEncoder, "
    "sklearn.compose.make_column_transformer) and keep the names: candidates=ItemTable(encoded, "
    "names=...). Names alone, without features, are candidates=ItemTable.from_names(names)."
)


class Space(ABC):
    """What may be asked about: items, in five forms.

    An item comes from people as they give it, is kept *clean* (numbers, texts), is written to a
    journal (`dump`), is a *row* of the unit cube to the model, and is shown to people (`present`).
    The contract of `ParameterBox` (items that a search makes up) and `Pool` (items that are
    listed); the duels of an `ActiveLearner` are pairs of a `Pool`.

    Attributes
    ----------
    n_columns, n_dimensions : int
        Width of a row, and number of parameters or features.
    free : ndarray of bool of shape (n_columns,)
        Columns along which a gradient can be followed.
    ordered : ndarray of bool of shape (n_columns,)
        Columns along which a line may run: no categories, and none of a pool.
    pool : ndarray of shape (n_items, n_columns) or None
        Rows of all items; None if they cannot be listed.
    names : list or None
        Of the parameters of items, or of the items of a pool; None: items are arrays.
    has_features : bool
        Whether an item says something of another.
    same, apart : float
        Rows that differ by no more than ``same`` (largest coordinate) are one item. Items that
        differ by no more than ``apart`` are not shown together. Both are 0 for a pool, where every
        candidate is an item of its own; features that are told may then be off by the default of
        ``same``, and candidates closer than that of ``apart`` are warned of.
    """

    n_columns: int
    n_dimensions: int
    free: np.ndarray
    ordered: np.ndarray
    pool: Any = None
    names: list | None = None
    has_features: bool = True
    same: float = 1e-7
    apart: float = 1e-6

    # -- forms of an item ----------------------------------------------------------------

    @abstractmethod
    def to_row(self, item: Any) -> np.ndarray:
        """Return the unit-cube row of an item; ValueError if it is none of the space."""

    @abstractmethod
    def to_item(self, row: np.ndarray) -> Any:
        """Return the item of a row, clean."""

    @abstractmethod
    def clean(self, item: Any) -> Any:
        """Return an item, checked, in the form in which a run keeps it."""

    @abstractmethod
    def dump(self, item: Any) -> list:
        """Return a clean item in JSON's terms."""

    @abstractmethod
    def load(self, values: list) -> Any:
        """Return the item that `dump` wrote."""

    @abstractmethod
    def present(self, item: Any) -> Any:
        """Return a clean item as people see it, a copy."""

    def pack(self, items: list) -> Any:
        """Return items of a question as one value: an array (k, d), or a tuple."""
        return np.stack(items) if self.names is None else tuple(items)

    def pack_many(self, questions: list) -> Any:
        """Return questions as one value: an array (n, k, d), or a list."""
        packed, sizes = [self.pack(items) for items in questions], {len(q) for q in questions}
        if self.names is not None or len(sizes) > 1:
            return packed
        return np.array(packed).reshape(len(packed), *(sizes or {2}), self.n_dimensions)

    def list_items(self, items: Any) -> Any:
        """Return the rows of a frame as items, one by one; all other items as they are."""
        if not is_frame(items):
            return items
        rows = items.to_numpy()
        if self.parameter_columns()[0] is None:
            return rows
        return [dict(zip(items.columns, row, strict=True)) for row in rows.tolist()]

    # -- rows ----------------------------------------------------------------------------

    @abstractmethod
    def snap(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of the nearest items."""

    @abstractmethod
    def parameter_columns(self) -> tuple[list | None, list]:
        """Return the names of parameters or features, and the column of each; None: a category."""

    @abstractmethod
    def typical_rows(self) -> np.ndarray:
        """Return rows whose distances are typical of items, for priors on lengthscales."""

    @abstractmethod
    def initial_rows(self, seed: int, start: int, n: int) -> np.ndarray:
        """Return n rows of the initial design, from number ``start`` of its points on."""

    # -- limits: here there are none ------------------------------------------------------

    def is_feasible(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows (n, n_columns) may be asked about, (n,)."""
        return np.ones(len(rows), dtype=bool)

    def free_columns(self, rows: np.ndarray) -> np.ndarray:
        """Return along which columns of each row a gradient can be followed, as `free`."""
        return np.broadcast_to(self.free, rows.shape)

    def project_to_feasible(self, rows: np.ndarray) -> np.ndarray:
        """Return those of the rows that may be asked about, or one other row if there are none."""
        return rows

    def feasible_share(self, anchor: np.ndarray, offsets: np.ndarray) -> float:
        """Return the largest share of offsets from an anchor at which all rows are feasible."""
        return 1.0

    def climb_options(self, point_at: Callable, varied: np.ndarray) -> dict:
        """Return the method and limits of `scipy.optimize.minimize` over the columns varied.

        ``point_at(x)`` is the point (k, n_columns) of values of these columns.
        """
        return {"method": "L-BFGS-B"}

    def cut_to_feasible(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the end of a way, or the last feasible rows before it from a start on."""
        return end

    def table(self) -> ItemTable | None:
        """Return the table of rows and names of items; None unless the names are texts."""
        return None

    @abstractmethod
    def describe(self) -> list:
        """Return plain values that tell this space from others, but for its limits."""

    def describe_limits(self) -> list | None:
        """Return plain values that tell limits from others; None if there are none."""
        return None


class ParameterBox(Space):
    """Dimensions side by side; items are arrays (``names`` is None) or dicts."""

    def __init__(self, dimensions: list, names: list | None):
        self.dimensions, self.names = dimensions, names
        ends = np.cumsum([0, *(each.width for each in dimensions)])
        self._slices = [slice(a, b) for a, b in pairwise(ends)]
        self.n_columns = int(ends[-1])
        self.n_dimensions = len(dimensions)
        self.free = np.concatenate([np.full(each.width, each.free) for each in dimensions])
        self.ordered = np.concatenate([np.full(each.width, each.ordered) for each in dimensions])

    def rows_at(self, quantiles: np.ndarray) -> np.ndarray:
        """Return unit-cube rows (n, n_columns) of quantiles (n, n_dimensions) of the parameters."""
        columns = [each.columns_at(q) for each, q in zip(self.dimensions, quantiles.T, strict=True)]
        return np.concatenate(columns, axis=1)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        pairs = zip(self.dimensions, self._slices, strict=True)
        return np.concatenate([each.snap(rows[:, part]) for each, part in pairs], axis=1)

    def _values_of_item(self, item: Any) -> Any:
        """Return the values of an item in the order of the parameters; ValueError for others."""
        if self.names is None:
            return check_vector(item, self.n_dimensions)
        if not is_labelled(item):
            raise ValueError(
                f"Items of this space are dicts with the keys {self.names}, got "
                f"{type(item).__name__}."
            )
        return _values_by_name(item, self.names, "keys")

    def to_row(self, item: Any) -> np.ndarray:
        pairs = zip(self.dimensions, self._values_of_item(item), strict=True)
        return np.concatenate([each.encode(value) for each, value in pairs])

    def clean(self, item: Any) -> Any:
        return self._item_of_values(
            [
                each.clean(v)
                for each, v in zip(self.dimensions, self._values_of_item(item), strict=True)
            ]
        )

    def _item_of_values(self, values: list) -> Any:
        """Return the item of values in the order of the parameters."""
        if self.names is None:
            return np.array(values, dtype=np.float64)
        return dict(zip(self.names, values, strict=True))

    def dump(self, item: Any) -> list:
        pairs = zip(self.dimensions, self._values_of_item(item), strict=True)
        return [each.dump(value) for each, value in pairs]

    def load(self, values: list) -> Any:
        pairs = zip(self.dimensions, values, strict=True)
        return self._item_of_values([each.load(value) for each, value in pairs])

    def to_item(self, row: np.ndarray) -> Any:
        pairs = zip(self.dimensions, self._slices, strict=True)
        return self._item_of_values([each.decode(row[part]) for each, part in pairs])

    def present(self, item: Any) -> Any:
        if self.names is None:
            return item.copy()
        return {name: copy_value(value) for name, value in item.items()}

    def parameter_columns(self) -> tuple[list | None, list]:
        pairs = zip(self.dimensions, self._slices, strict=True)
        return self.names, [part.start if each.ordered else None for each, part in pairs]

    def typical_rows(self) -> np.ndarray:
        quantiles = (np.arange(64) + 0.5) / 64
        return self.rows_at(np.repeat(quantiles[:, None], self.n_dimensions, axis=1))

    def initial_rows(self, seed: int, start: int, n: int) -> np.ndarray:
        n_points = 2 ** max(5, (start + n - 1).bit_length())
        return self.rows_at(_sobol_points(n_points, self.n_dimensions, seed)[start : start + n])

    def describe(self) -> list:
        names = self.names or [None] * self.n_dimensions
        return [[name, each.describe()] for name, each in zip(names, self.dimensions, strict=True)]


class Pool(Space):
    """Candidates, each feature mapped to the unit interval.

    Inside, an item is its row of features; where the candidates have names, people see those.
    Candidates of equal features are one item, shown by the first of their names. Items without
    features stand at whole numbers, far from each other.

    Parameters
    ----------
    candidates : array-like or DataFrame of shape (n, d), or ItemTable
        Names are the table's, or the index of a pandas frame unless it just counts the rows.
    make_limits : callable, optional
        ``make_limits(names)`` returns the `Limits` of features of these names; candidates that
        break them are left out.
    """

    same = apart = 0.0

    def __init__(self, candidates: Any, make_limits: Callable | None = None):
        table, names, self.feature_names, self.has_features = _read_candidates(candidates)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise ValueError("candidates must hold at least two distinct rows.")
        first_places = np.sort(first)
        if make_limits is not None:
            first_places = self._feasible_places(make_limits, table, names, first_places)
        self._items = table[first_places]
        self.places = first_places.tolist()  # in the candidates
        self.names = None if names is None else [names[i] for i in first_places]
        firsts = first[inverse.reshape(-1)]
        owner = np.searchsorted(first_places, firsts)
        within = np.flatnonzero(np.isin(firsts, first_places))
        self._named = {} if names is None else {names[k]: int(owner[k]) for k in within}
        self._low, self._range = self._column_lows_and_extents()
        self.pool = (self._items - self._low) / self._range
        self._index_items()
        self.n_columns = self.n_dimensions = table.shape[1]
        self.free = self.ordered = np.zeros(self.n_columns, dtype=bool)
        if self.has_features:
            self._warn_of_close_candidates()

    def _index_items(self):
        """Build the tables of positions by the bytes of items and of rows."""
        self._at = {row.tobytes(): i for i, row in enumerate(self._items)}
        self._row_at = {row.tobytes(): i for i, row in enumerate(self.pool)}

    def part(self, feasible: np.ndarray) -> "Pool":
        """Return the pool of some of the items, whose rows are the same."""
        part = copy(self)
        part.pool, part._items = self.pool[feasible], self._items[feasible]
        if self.names is not None:
            part.names = [self.names[k] for k in np.flatnonzero(feasible)]
        part._index_items()
        return part

    def project_to_feasible(self, rows: np.ndarray) -> np.ndarray:
        rows = rows[[row.tobytes() in self._row_at for row in rows]]
        return rows if len(rows) else self.pool[:1]

    def _feasible_places(self, make_limits, table, names, places):
        """Return the places of the candidates that keep limits, or raise ValueError."""
        limits = make_limits(self.feature_names or [f"x[{k}]" for k in range(table.shape[1])])
        if limits.inequalities and not self.has_features:
            raise ValueError(
                "LinearConstraint and NonlinearConstraint are of numbers, and the candidates are "
                "names alone. Give functions of a name, or candidates with features."
            )
        items = table[places] if names is None else [names[k] for k in places]
        feasible = limits.satisfy_inequalities(table[places]) & [
            limits.allows_item(item) for item in items
        ]
        if np.count_nonzero(feasible) < 2:
            raise ValueError(
                f"constraints leave {np.count_nonzero(feasible)} of {len(places)} candidates; two "
                "are needed. Widen them, or give more candidates."
            )
        return places[feasible]

    def _column_lows_and_extents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least value of each feature, and its range, 1 if that is 0."""
        low, high = self._items.min(axis=0), self._items.max(axis=0)
        if not self.has_features:
            return np.zeros(1), np.ones(1)
        with np.errstate(over="ignore"):
            extent = high - low
        if not np.all(np.isfinite(extent)):
            wide = int(np.argmin(np.isfinite(extent)))
            label = wide if self.feature_names is None else repr(self.feature_names[wide])
            raise ValueError(
                f"Feature {label} of the candidates reaches from {low[wide]} to {high[wide]}, a "
                "range that double precision does not hold. Divide it by a constant, such as "
                f"{np.abs(self._items[:, wide]).max():.0e}; the questions do not depend on the "
                "units."
            )
        return low, np.where(high > low, extent, 1.0)

    def _warn_of_close_candidates(self) -> None:
        """Warn of candidates so close to others that the model sees no difference."""
        cells = np.floor(self.pool / Space.apart)
        _, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        owner = first[inverse.reshape(-1)]  # the first candidate of the same cell
        alike = np.flatnonzero(owner != np.arange(len(cells)))
        if len(alike):
            first, second = (self.present(self._items[k]) for k in (owner[alike[0]], alike[0]))
            warn(
                f"{len(alike)} of the candidates differ from another by less than "
                f"{Space.apart:.0e} of "
                f"the range of every feature, such as {second!r} from {first!r}. The model sees no "
                "difference between them. If an outlier stretches the range, give the feature's "
                "logarithm or its ranks; else keep one of them only."
            )

    def parameter_columns(self) -> tuple[list | None, list]:
        return self.feature_names, list(range(self.n_columns))

    def typical_rows(self) -> np.ndarray:
        return self.pool

    def initial_rows(self, seed: int, start: int, n: int) -> np.ndarray:
        order = _shuffled_order(len(self.pool), seed)
        return self.pool[order[np.arange(start, start + n) % len(order)]]

    def table(self) -> ItemTable | None:
        if self.names is None or not all(isinstance(name, str) for name in self.names):
            return None
        return ItemTable(self.pool, names=self.names)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        return self.pool[[self._nearest_row(row)[0] for row in rows]]

    def _nearest_row(self, row: np.ndarray) -> tuple[int, float]:
        """Return the position of the nearest row, and its distance in the largest coordinate."""
        distance = np.abs(self.pool - row).max(axis=1)
        best = int(np.argmin(distance))
        return best, float(distance[best])

    def to_row(self, item: Any) -> np.ndarray:
        return self.pool[self.index(item)].copy()

    def index(self, item: Any) -> int:
        """Return the position in ``pool`` of an item or a name; ValueError if it is not there."""
        item = self._features_in_order(item)
        if np.ndim(item) == 0 and (self.names is not None or isinstance(item, str)):
            return self._index_of_name(item)
        item = check_vector(item, self.n_columns) + 0.0
        index = self._at.get(item.tobytes())
        if index is None:
            index, distance = self._nearest_row((item - self._low) / self._range)
            if distance > Space.same:
                raise ValueError(
                    f"The item {item} is not among the {len(self.pool)} candidates. Tell only "
                    "duels between rows of candidates."
                )
        return index

    def _index_of_name(self, name: Any) -> int:
        """Return the position of the candidate of a name, or raise ValueError."""
        if self.names is None:
            raise ValueError(
                f"The candidates have no names; got {name!r}. Give rows of features, or "
                "candidates= as a DataFrame with names in its index or as an ItemTable with names."
            )
        try:
            return self._named[name]
        except (KeyError, TypeError):
            raise ValueError(
                f"{name!r} is not the name of one of the {len(self._named)} candidates; they are "
                f"named {self.names[0]!r}, {self.names[1]!r} and so on."
            ) from None

    def _features_in_order(self, item: Any) -> Any:
        """Return the features of a dict or a row of a frame in the order of the pool."""
        if self.feature_names is None or not is_labelled(item):
            return item
        return _values_by_name(item, self.feature_names, "features")

    def to_item(self, row: np.ndarray) -> np.ndarray:
        index = self._row_at.get(np.ascontiguousarray(row).tobytes())
        return self._items[self._nearest_row(row)[0] if index is None else index].copy()

    def clean(self, item: Any) -> np.ndarray:
        return self.to_item(self.to_row(item))

    def dump(self, item: np.ndarray) -> list:
        return item.tolist()

    def load(self, values: list) -> np.ndarray:
        return np.array(values, dtype=np.float64)

    def present(self, item: np.ndarray) -> Any:
        return item.copy() if self.names is None else self.names[self._at[item.tobytes()]]

    def describe(self) -> list:
        """Return plain values that tell this pool from others: of names or features."""
        if not self.has_features:
            names = "\n".join(map(repr, self._named))
            return ["named pool", len(self._named), _digest_bytes(names.encode())]
        items = np.ascontiguousarray(self._items)
        return ["pool", list(items.shape), _digest_bytes(items.tobytes())]


def _digest_bytes(content: bytes) -> str:
    """Return 16 hexadecimal digits that tell contents apart."""
    return hashlib.sha256(content).hexdigest()[:16]


def _read_candidates(candidates: Any) -> tuple[np.ndarray, list | None, list | None, bool]:
    """Return features and names of candidates, names of features, and whether there are features.

    Both kinds of names are None where there are none.
    """
    names: Any = None
    columns: Any = None
    table = candidates
    if isinstance(candidates, ItemTable):
        names, columns = candidates.names, candidates.feature_names
        if not candidates.has_features:
            return np.arange(len(names), dtype=np.float64)[:, None], names.tolist(), None, False
        table = candidates.frame if candidates.X is None else candidates.X
    if is_frame(table):
        if not len(table.columns) or not len(table):
            raise ValueError(
                "candidates must hold at least two rows and one column of features, got a frame of "
                f"shape {table.shape}."
            )
        _check_numeric(table)
        columns = list(table.columns) if columns is None else columns
        names = _index_names(table) if names is None else names
    rows = _numeric_rows(table)
    labels = np.arange(rows.shape[1]) if columns is None else columns
    check_finite(
        rows,
        np.array(labels, dtype=object),
        given="candidates",
        remedy="fill the gaps first, as sklearn.impute.SimpleImputer does",
    )
    if names is not None:
        names = ItemTable(rows, names=names).names.tolist()
    rows = rows + 0.0  # -0.0 becomes 0.0; of some frames it cannot be written to
    return rows, names, None if columns is None else list(columns), True


def _numeric_rows(table: Any) -> np.ndarray:
    """Return a table of numbers as an array of its own, or raise TypeError or ValueError."""
    try:
        table = fill_masked(table)
        return check_array(table, dtype=np.float64, copy=True, ensure_all_finite=False)
    except TypeError as error:
        raise TypeError(
            f"candidates must be a table of numbers, a row for each ({error}). Dicts become one "
            "by pandas.DataFrame(candidates)."
        ) from None
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"candidates must be numeric: {error}. {_ENCODE}") from None
        if np.ndim(table) == 2:
            raise
        raise ValueError(
            "candidates must be a table of shape (n, d), a row for each and a column for each "
            f"feature; got shape {np.shape(table)}. If there is one feature, give it as a column: "
            'frame[["x"]] of a DataFrame, x.reshape(-1, 1) of an array.'
        ) from None


def _check_numeric(frame: Any) -> None:
    """Raise ValueError if a column of a frame does not hold numbers."""
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    odd = [f"{name!r} ({kind})" for name, kind in kinds.items() if not _is_numeric(kind)]
    if odd:
        raise ValueError(
            f"candidates must be numeric; these columns are not: {', '.join(odd)}. {_ENCODE} "
            "A column of names belongs in the index: frame.set_index(column). One that holds "
            "numbers: frame.astype(float)."
        )


def _is_numeric(dtype: Any) -> bool:
    """Return whether a data type of pandas or polars is one of numbers or booleans."""
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars has data types of its own
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return kind in "biuf"


def _index_names(frame: Any) -> Any:
    """Return the index of a pandas frame, or None where it just counts the rows."""
    index = getattr(frame, "index", None)
    if index is None or (getattr(index, "start", None) == 0 and getattr(index, "step", 0) == 1):
        return None
    return index


def make_space(space: Any, candidates: Any = None) -> Space:
    """Return the space of an optimizer's arguments; ValueError unless it is exactly one."""
    if (space is None) == (candidates is None):
        which = "neither" if space is None else "both"
        raise ValueError(
            "Give either space= (bounds of shape (d, 2), or a dict of named parameters) or "
            f"candidates= (a pool: a table of shape (n, d) or an ItemTable); got {which}."
        )
    if candidates is not None:
        return Pool(candidates)
    if isinstance(space, Space):
        return space
    if isinstance(space, dict):
        if not space:
            raise ValueError("The space is an empty dict; name at least one parameter.")
        return ParameterBox(
            [make_dimension(str(name), spec) for name, spec in space.items()], list(space)
        )
    try:
        bounds = np.asarray(space, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Bounds could not be read as numbers of shape (d, 2): {error}.") from None
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
        raise ValueError(
            "Bounds must have shape (d, 2), a row (low, high) for each feature, got "
            f"{bounds.shape}."
        )
    return ParameterBox([Interval(f"feature {i}", *row) for i, row in enumerate(bounds)], None)


def load_sobol_tables() -> None:
    """Let scipy load its Sobol tables now: an interrupt while it does leaves them empty."""
    qmc.Sobol(1, scramble=False).random(1)


@lru_cache(maxsize=8)
def _sobol_points(n: int, d: int, seed: int) -> np.ndarray:
    """Return n scrambled Sobol points of the unit cube, (n, d)."""
    return sobol(d, np.random.default_rng([seed, 2**31])).random(n)


@lru_cache(maxsize=8)
def _shuffled_order(n: int, seed: int) -> np.ndarray:
    """Return the numbers below n in a random order that the seed determines."""
    return np.random.default_rng([seed, 2**31]).permutation(n)


def is_labelled(item):
    """Return whether the values of an item have names: a dict, or a row of a frame."""
    return isinstance(item, Mapping) or (hasattr(item, "index") and hasattr(item, "items"))


def _values_by_name(item, names, noun):
    """Return the values of a labelled item in the order of the names, or raise ValueError."""
    missing = [name for name in names if name not in item]
    extra = [name for name, _ in item.items() if name not in names]
    if missing or extra:
        raise ValueError(
            f"An item must have the {noun} {names}; missing: {missing}, not known: {extra}."
        )
    return [item[name] for name in names]


def item_title(item: Any) -> str:
    """Return an item in few letters, for tables and pictures.

    Examples
    --------
    >>> from skpref.optimize._spaces import item_title
    >>> item_title({"dose": 3.14159, "kind": "green"}), item_title([0.5, 10.0]), item_title("tea")
    ('dose=3.142, kind=green', '(0.5, 10)', 'tea')
    """

    def short(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    if hasattr(item, "items"):
        return ", ".join(f"{name}={short(value)}" for name, value in item.items())
    if np.ndim(item) == 0:  # a name
        return str(item)
    return f"({', '.join(map(short, plain_value(list(item))))})"


def check_vector(item: Any, n: int) -> np.ndarray:
    """Return an item as n finite numbers, or raise ValueError."""
    try:
        values = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"An item must be {n} numbers, got {item!r}.") from None
    if values.shape != (n,):
        raise ValueError(f"An item must have shape ({n},), got {values.shape}.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"An item holds NaN or infinity: {values}.")
    return values
