"""Spaces of items: bounds, named parameters or a pool, and the first questions of them."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import qmc, rv_continuous, rv_discrete
from sklearn.utils.validation import check_array

from skpref._utils import warn
from skpref.data import ItemTable, is_frame
from skpref.optimize._values import copied, listed, plain, vector

# How far apart two categories are, in ranges of a number: near what two numbers drawn at random
# are, so that what is learned of one category is believed of the next until duels say otherwise.
_CATEGORY = 0.5
# Neighbours of longer ranges of integers would be one item up to rounding.
_MAX_STEPS = 100_000
# Where a distribution has no end, this much probability is left out at that side.
_TAIL = 1e-6
# Values this far out of a range, as a share of it, are rounding.
_SLACK = 1e-9
# Where a distribution without a name and parameters is looked at, to tell it from others.
_PROBES = np.linspace(0.01, 0.99, 25)


def _real(name, value):
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


class Interval:
    """A range of numbers, spread evenly."""

    width, free = 1, True

    def __init__(self, name: str, low: float, high: float):
        low, high = (
            _real(f"The lower bound of {name}", low),
            _real(f"The upper bound of {name}", high),
        )
        if not low < high:
            raise ValueError(
                f"{name} must have its lower bound below the upper, got {(low, high)}."
            )
        if not np.isfinite(high - low):
            raise ValueError(
                f"{name} must have bounds whose difference is finite, got {(low, high)}."
            )
        self.name, self.low, self.high = name, low, high

    def place(self, quantile: np.ndarray) -> np.ndarray:
        return np.asarray(quantile, dtype=np.float64)[:, None]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return np.clip(columns, 0.0, 1.0)

    def encode(self, value: Any) -> list:
        share = (_real(self.name, value) - self.low) / (self.high - self.low)
        if not -_SLACK <= share <= 1.0 + _SLACK:
            raise ValueError(
                f"{self.name} = {value!r} lies outside [{self.low}, {self.high}]. Tell only duels "
                "of items in the space, or widen it."
            )
        return [min(max(share, 0.0), 1.0)]

    def decode(self, columns: np.ndarray | list) -> Any:
        value = self.low + float(columns[0]) * (self.high - self.low)
        return min(max(value, self.low), self.high)

    def clean(self, value: Any) -> Any:
        return min(max(float(value), self.low), self.high)

    def near(self, columns: np.ndarray) -> np.ndarray:
        return np.zeros((0, 1))

    def describe(self) -> list:
        return ["range", self.low, self.high]


class Steps:
    """Ordered values, each at the middle of its step of the unit interval."""

    width, free = 1, False

    def __init__(self, name: str, values: Sequence):
        self.name, self.values = name, values

    def place(self, quantile: np.ndarray) -> np.ndarray:
        n = len(self.values)
        index = np.minimum((np.asarray(quantile) * n).astype(np.intp), n - 1)
        return ((index + 0.5) / n)[:, None]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self.place(np.clip(columns[:, 0], 0.0, 1.0))

    def encode(self, value: Any) -> list:
        if isinstance(value, Real) and value in self.values:
            return [(self.values.index(value) + 0.5) / len(self.values)]
        ends = f"from {self.values[0]} to {self.values[-1]}"
        raise ValueError(
            f"{self.name} = {value!r} is not one of its {len(self.values)} values {ends}."
        )

    def _index(self, columns):
        return min(int(columns[0] * len(self.values)), len(self.values) - 1)

    def decode(self, columns: np.ndarray | list) -> Any:
        return self.values[self._index(columns)]

    def clean(self, value: Any) -> Any:
        return self.values[self.values.index(value)]

    def near(self, columns: np.ndarray) -> np.ndarray:
        n, here = len(self.values), self._index(columns)
        far = max(1, n // 10)
        found = {here + step for step in (-far, -1, 1, far)}
        return np.array([[(k + 0.5) / n] for k in sorted(found) if 0 <= k < n]).reshape(-1, 1)

    def describe(self) -> list:
        values = self.values
        if isinstance(values, range):
            return ["integers", values[0], values[-1]]
        return ["ordered", *values]  # as they are: as floats, large integers may be equal


class Choice:
    """Values without an order: one column for two of them, else one-hot."""

    free = False

    def __init__(self, name: str, values: Sequence):
        self.name, self.values = name, [copied(value) for value in values]
        n = len(self.values)
        self.width = 1 if n == 2 else n
        one_hot = np.sqrt(0.5) * np.eye(n)
        self._codes = _CATEGORY * (np.array([[0.0], [1.0]]) if n == 2 else one_hot)

    def place(self, quantile: np.ndarray) -> np.ndarray:
        n = len(self.values)
        return self._codes[np.minimum((np.asarray(quantile) * n).astype(np.intp), n - 1)]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self._codes[self._index(columns)]

    def _index(self, columns):
        return np.argmin(np.abs(columns[:, None, :] - self._codes).sum(axis=2), axis=1)

    def encode(self, value: Any) -> list:
        value = plain(value)
        for candidate, code in zip(self.values, self._codes, strict=True):
            if type(candidate) is type(value) and candidate == value:
                return code.tolist()
        for candidate, code in zip(self.values, self._codes, strict=True):
            if candidate == value:
                return code.tolist()
        raise ValueError(f"{self.name} = {value!r} is not one of its choices {self.values}.")

    def decode(self, columns: np.ndarray | list) -> Any:
        return self.values[int(self._index(np.asarray(columns)[None, :])[0])]

    def clean(self, value: Any) -> Any:
        return self.decode(self.encode(value))

    def near(self, columns: np.ndarray) -> np.ndarray:
        here = int(self._index(np.asarray(columns)[None, :])[0])
        return np.delete(self._codes, here, axis=0)

    def describe(self) -> list:
        return ["choice", *map(repr, self.values)]


class Distribution:
    """A continuous scipy.stats distribution; its cdf maps it to the unit interval."""

    width, free = 1, True

    def __init__(self, name: str, distribution: Any):
        self.name, self._distribution = name, distribution
        self._ppf = _inverse(distribution)
        ends = np.array([self._ppf(0.0), self._ppf(1.0)], dtype=np.float64)
        self._ends = np.where(np.isfinite(ends), [0.0, 1.0], [_TAIL, 1.0 - _TAIL])

    def place(self, quantile: np.ndarray) -> np.ndarray:
        return self.snap(np.asarray(quantile, dtype=np.float64)[:, None])

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return np.clip(columns, *self._ends)

    def encode(self, value: Any) -> list:
        share = float(self._distribution.cdf(_real(self.name, value)))
        low, high = (float(self._ppf(end)) for end in self._ends)
        slack = _SLACK * (1.0 + abs(value))
        if self._ends[0] == 0.0 and value < low - slack:
            raise ValueError(
                f"{self.name} = {value!r} lies below its support, which begins at {low}."
            )
        if self._ends[1] == 1.0 and value > high + slack:
            raise ValueError(
                f"{self.name} = {value!r} lies above its support, which ends at {high}."
            )
        return [min(max(share, self._ends[0]), self._ends[1])]

    def decode(self, columns: np.ndarray | list) -> Any:
        return float(self._ppf(float(columns[0])))

    def clean(self, value: Any) -> Any:
        return float(value)

    def near(self, columns: np.ndarray) -> np.ndarray:
        return np.zeros((0, 1))

    def describe(self) -> list:
        return ["distribution", *_parameters(self._distribution)]


class DiscreteDistribution:
    """A discrete scipy.stats distribution: a value sits at the middle of its cdf step."""

    width, free = 1, False

    def __init__(self, name: str, distribution: Any):
        self.name, self._distribution = name, distribution
        self._ppf = _inverse(distribution)
        found = np.unique(self._ppf(np.clip(_PROBES, _TAIL, 1.0 - _TAIL)))
        ends = self._ppf(np.array([_TAIL, 1.0 - _TAIL]))
        if np.any(found % 1):
            raise ValueError(
                f"{name} has a discrete distribution of values such as {found[found % 1 > 0][0]}; "
                "only integers are possible. Give other values as a list of choices."
            )
        if ends[0] == ends[1]:
            raise ValueError(f"{name} needs at least two values, its distribution has {ends[0]}.")

    def _middle(self, value):
        before = self._distribution.cdf(value - 1)
        return 0.5 * (before + self._distribution.cdf(value))

    def place(self, quantile: np.ndarray) -> np.ndarray:
        inside = np.clip(quantile, _TAIL, 1.0 - _TAIL)
        return self._middle(self._ppf(inside))[:, None]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self.place(columns[:, 0])

    def encode(self, value: Any) -> list:
        value = _real(self.name, value)
        if not self._distribution.pmf(value) > 0.0:
            raise ValueError(f"{self.name} = {value!r} has probability 0 under its distribution.")
        return [float(self._middle(value))]

    def decode(self, columns: np.ndarray | list) -> Any:
        # a value far in a tail has a column of 0 or 1, where the quantile may be no value
        return int(self._ppf(np.clip(float(columns[0]), 1e-300, 1.0 - 1e-16)))

    def clean(self, value: Any) -> Any:
        return int(value)

    def near(self, columns: np.ndarray) -> np.ndarray:
        value = self.decode(columns)
        found = [k for k in (value - 1, value + 1) if self._distribution.pmf(k) > 0.0]
        for side in (-1, 1):
            if value + side not in found:  # an end, or a gap in the support
                beyond = float(columns[0]) + side * (0.5 * self._distribution.pmf(value) + 1e-9)
                k = int(self._ppf(np.clip(beyond, _TAIL, 1.0 - _TAIL)))
                found += [k] if (k - value) * side > 0 else []
        return np.array([[self._middle(k)] for k in found], dtype=np.float64).reshape(-1, 1)

    def describe(self) -> list:
        return ["discrete distribution", *_parameters(self._distribution)]


def _inverse(distribution):
    return getattr(distribution, "ppf", None) or distribution.icdf


def _is_discrete(distribution):
    if hasattr(distribution, "dist"):
        return hasattr(distribution.dist, "pmf")
    # scipy's newer distributions all have a pmf, of zeros where they are continuous
    pmf = getattr(distribution, "pmf", None)
    return pmf is not None and bool(pmf(_inverse(distribution)(0.5)) > 0.0)


def _freeze(name, distribution):
    if not isinstance(distribution, rv_continuous | rv_discrete):
        return distribution
    try:
        return distribution()
    except TypeError:
        raise ValueError(
            f"{name} is a family of distributions that needs parameters ({distribution.shapes}); "
            f"give a frozen one, as in {distribution.name}(...)."
        ) from None


def _parameters(distribution):
    family = getattr(distribution, "dist", None)
    if family is None:
        return [repr(distribution)]
    if family.name == "Distribution":  # scipy's name of a table or a histogram
        quantiles = np.asarray(_inverse(distribution)(_PROBES), dtype=np.float64)
        return [type(family).__name__, quantiles.tolist()]
    keywords = sorted(distribution.kwds.items())
    return [
        family.name,
        [float(x) for x in distribution.args],
        [[k, float(v)] for k, v in keywords],
    ]


def make_dimension(name: str, spec: Any) -> Any:
    """The dimension that one entry of a dict space stands for.

    Parameters
    ----------
    name : str
    spec : frozen scipy.stats distribution, pair of numbers, or list of choices

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if hasattr(spec, "cdf") and (hasattr(spec, "ppf") or hasattr(spec, "icdf")):
        spec = _freeze(name, spec)
        return (DiscreteDistribution if _is_discrete(spec) else Distribution)(name, spec)
    if isinstance(spec, tuple) and len(spec) == 2:
        if all(isinstance(end, Integral) and not isinstance(end, bool) for end in spec):
            low, high = (int(end) for end in spec)
            if not low < high:
                raise ValueError(f"{name} must have its lower bound below the upper, got {spec}.")
            if high - low > _MAX_STEPS:
                raise ValueError(
                    f"{name} has {high - low + 1} integers; up to {_MAX_STEPS + 1} can be told "
                    "apart. Give floats, (float(low), float(high)), and round what is asked."
                )
            if high - low == 1 or (low, high) == (-1, 1):
                values, ends = list(range(low, high + 1)), (float(low), float(high))
                warn(
                    f"{name}={(low, high)} is read as the integers {', '.join(map(str, values))}, "
                    f"as its ends are integers. For all numbers between them give {ends}; if "
                    f"integers are meant, the list {values} says so without this warning."
                )
            return Steps(name, range(low, high + 1))
        return Interval(name, *spec)
    if isinstance(spec, list | np.ndarray):
        values = list(plain(spec))
        if len(values) < 2 or any(a == b for i, a in enumerate(values) for b in values[:i]):
            raise ValueError(f"{name} needs at least two distinct choices, got {values}.")
        if any(isinstance(v, Real) and v != v for v in values):
            raise ValueError(f"{name} has NaN among its choices, which equals nothing: {values}.")
        # Of other numbers, such as fractions, it is the position that is kept.
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if numbers and all(a < b for a, b in pairwise(values)):
            return Steps(name, values)
        return Choice(name, values)
    raise ValueError(
        f"{name} must be a frozen scipy.stats distribution, a tuple (low, high) (two ints: "
        f"integers, both included) or a list of choices, got {spec!r}."
    )


# An item of a pool is recognised up to this distance, in shares of the pool's ranges.
_SAME = 1e-7
_ENCODE = (
    "Encode texts, categories and dates first (sklearn.preprocessing.OneHotEncoder, "
    "sklearn.compose.make_column_transformer) and keep the names: candidates=ItemTable(encoded, "
    "names=...)."
)


class Pool:
    """Candidates, each feature mapped to the unit interval.

    Inside, an item is its row of features; where the candidates have names, people see those.
    Candidates of equal features are one item, shown by the first of their names. Items without
    features stand at whole numbers, far from each other.

    Parameters
    ----------
    candidates : array-like or DataFrame of shape (n, d), or ItemTable
        Names are the table's, or the index of a pandas frame unless it just counts the rows.
    """

    def __init__(self, candidates: Any):
        table, names, self.feature_names, self.has_features = _read(candidates)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise ValueError("candidates must hold at least two distinct rows.")
        kept = np.sort(first)
        self._items = table[kept]
        self.places = kept.tolist()  # in the candidates
        self.names = None if names is None else [names[i] for i in kept]
        owner = np.searchsorted(kept, first[inverse.reshape(-1)])
        self._named = {} if names is None else dict(zip(names, owner.tolist(), strict=True))
        self._low, self._range = self._scale()
        self.pool = (self._items - self._low) / self._range
        self._at = {row.tobytes(): i for i, row in enumerate(self._items)}
        self._row_at = {row.tobytes(): i for i, row in enumerate(self.pool)}
        self.n_columns = self.n_dimensions = table.shape[1]
        self.free = np.zeros(self.n_columns, dtype=bool)

    def _scale(self):
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

    def table(self) -> ItemTable | None:
        """Unit-cube rows under the candidates' names, if these are texts."""
        if self.names is None or not all(isinstance(name, str) for name in self.names):
            return None
        return ItemTable(self.pool, names=self.names)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """The rows of the nearest candidates."""
        return self.pool[[self._nearest(row)[0] for row in rows]]

    def _nearest(self, row):
        distance = np.abs(self.pool - row).max(axis=1)
        best = int(np.argmin(distance))
        return best, distance[best]

    def to_row(self, item: Any) -> np.ndarray:
        """Unit-cube row of a candidate, given by its name or its features; others are an error."""
        item = self._in_order(item)
        if np.ndim(item) == 0 and (self.names is not None or isinstance(item, str)):
            return self.pool[self._index_of(item)].copy()
        item = vector(item, self.n_columns) + 0.0
        index = self._at.get(item.tobytes())
        if index is None:
            index, distance = self._nearest((item - self._low) / self._range)
            if distance > _SAME:
                raise ValueError(
                    f"The item {item} is not among the {len(self.pool)} candidates. Tell only "
                    "duels between rows of candidates."
                )
        return self.pool[index].copy()

    def _index_of(self, name):
        if self.names is None:
            raise ValueError(
                f"The candidates have no names, {name!r} came. Give rows of features, or "
                "candidates= as a DataFrame with names in its index or as an ItemTable with names."
            )
        try:
            return self._named[name]
        except (KeyError, TypeError):
            raise ValueError(
                f"{name!r} is not the name of one of the {len(self._named)} candidates; they are "
                f"named {self.names[0]!r}, {self.names[1]!r} and so on."
            ) from None

    def _in_order(self, item):
        """Features that came with labels, a dict or a row of a frame, in the order of the pool."""
        labelled = isinstance(item, Mapping) or (hasattr(item, "index") and hasattr(item, "items"))
        if self.feature_names is None or not labelled:
            return item
        missing = [name for name in self.feature_names if name not in item]
        extra = [name for name, _ in item.items() if name not in self.feature_names]
        if missing or extra:
            raise ValueError(
                f"An item must have the features {self.feature_names}; missing: {missing}, not "
                f"known: {extra}."
            )
        return [item[name] for name in self.feature_names]

    def to_item(self, row: np.ndarray) -> np.ndarray:
        """The candidate of a row."""
        index = self._row_at.get(np.ascontiguousarray(row).tobytes())
        return self._items[self._nearest(row)[0] if index is None else index].copy()

    def clean(self, item: Any) -> np.ndarray:
        """The features of the candidate that an item stands for."""
        return self.to_item(self.to_row(item))

    def dump(self, item: np.ndarray) -> list:
        """The item in JSON's terms."""
        return item.tolist()

    def load(self, values: list) -> np.ndarray:
        """The item that `dump` wrote."""
        return np.array(values, dtype=np.float64)

    def present(self, item: np.ndarray) -> Any:
        """The item as people see it: its name, or a copy of its features."""
        return item.copy() if self.names is None else self.names[self._at[item.tobytes()]]

    def pack(self, items: list) -> Any:
        """Items of a question as one value: an array (k, d), or a tuple of names."""
        return np.stack(items) if self.names is None else tuple(items)

    def pack_many(self, questions: list) -> Any:
        """Several of them: an array (n, k, d), or a list of tuples, or of arrays of all sizes."""
        packed, sizes = [self.pack(items) for items in questions], {len(q) for q in questions}
        if self.names is not None or len(sizes) > 1:
            return packed
        return np.array(packed).reshape(len(packed), *(sizes or {2}), self.n_columns)

    def listed(self, items: Any) -> Any:
        """Items of a frame one by one; others as they are."""
        return listed(items, self.feature_names)

    def describe(self) -> list:
        """Plain values that tell this pool from others; names stand for features if there are."""
        if not self.has_features:
            names = "\n".join(map(repr, self._named))
            return ["named pool", len(self._named), _digest(names.encode())]
        items = np.ascontiguousarray(self._items)
        return ["pool", list(items.shape), _digest(items.tobytes())]


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def _read(candidates):
    """Features, names (or None), names of the features (or None), and whether there are any."""
    names = columns = None
    table = candidates
    if isinstance(candidates, ItemTable):
        names, columns = candidates.names, candidates.feature_names
        if not candidates.has_features:
            return np.arange(len(names), dtype=np.float64)[:, None], names.tolist(), None, False
        table = candidates.X
    if is_frame(table):
        _check_numeric(table)
        columns = list(table.columns) if columns is None else columns
        names = _names_of(table) if names is None else names
    try:
        table = check_array(table, dtype=np.float64, copy=True, input_name="candidates")
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"candidates must be numeric: {error}. {_ENCODE}") from None
    if names is not None:
        names = ItemTable(table, names=names).names.tolist()
    table += 0.0  # -0.0 becomes 0.0
    return table, names, None if columns is None else list(columns), True


def _check_numeric(frame):
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    odd = [f"{name!r} ({kind})" for name, kind in kinds.items() if not _is_numeric(kind)]
    if odd:
        raise ValueError(
            f"candidates must be numeric; these columns are not: {', '.join(odd)}. {_ENCODE} "
            "A column of names belongs in the index: frame.set_index(column). One that holds "
            "numbers: frame.astype(float)."
        )


def _is_numeric(dtype):
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars has data types of its own
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return kind in "biuf"


def _names_of(frame):
    """The index of a pandas frame, or None where it just counts the rows."""
    index = getattr(frame, "index", None)
    if index is None or (getattr(index, "start", None) == 0 and getattr(index, "step", 0) == 1):
        return None
    return index


def make_space(space: Any, candidates: Any = None) -> "Box | Pool":
    """The space that the optimiser's arguments stand for.

    Parameters
    ----------
    space : array-like of shape (d, 2), dict or None
    candidates : array-like or DataFrame of shape (n, d), ItemTable or None

    Returns
    -------
    Box or Pool

    Raises
    ------
    ValueError
        If not exactly one of the two is given, or it cannot be read.
    """
    if (space is None) == (candidates is None):
        given = "neither" if space is None else "both"
        raise ValueError(
            "Give either space= (bounds of shape (d, 2), or a dict of named parameters) or "
            f"candidates= (a pool: a table of shape (n, d) or an ItemTable); {given} came."
        )
    if candidates is not None:
        return Pool(candidates)
    if isinstance(space, Box | Pool):
        return space
    if isinstance(space, dict):
        if not space:
            raise ValueError("The space is an empty dict; name at least one parameter.")
        return Box([make_dimension(str(name), spec) for name, spec in space.items()], list(space))
    try:
        bounds = np.asarray(space, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Bounds could not be read as numbers of shape (d, 2): {error}.") from None
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
        raise ValueError(
            "Bounds must have shape (d, 2), a row (low, high) for each feature, got "
            f"{bounds.shape}."
        )
    return Box([Interval(f"feature {i}", *row) for i, row in enumerate(bounds)], None)


class Box:
    """Dimensions side by side; items are arrays (``names`` is None) or dicts."""

    pool = None
    has_features = True

    def __init__(self, dimensions: list, names: list | None):
        self.dimensions, self.names = dimensions, names
        ends = np.cumsum([0, *(each.width for each in dimensions)])
        self._slices = [slice(a, b) for a, b in pairwise(ends)]
        self.n_columns = int(ends[-1])
        self.n_dimensions = len(dimensions)
        self.free = np.concatenate([np.full(each.width, each.free) for each in dimensions])

    def place(self, quantiles: np.ndarray) -> np.ndarray:
        """Quantiles (n, n_dimensions) of the parameters to unit-cube rows (n, n_columns)."""
        columns = [each.place(q) for each, q in zip(self.dimensions, quantiles.T, strict=True)]
        return np.concatenate(columns, axis=1)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        """The rows of the nearest items."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return np.concatenate([each.snap(rows[:, part]) for each, part in pairs], axis=1)

    def neighbours(self, row: np.ndarray) -> np.ndarray:
        """Rows that differ from this one in a single discrete parameter, (k, n_columns)."""
        found = []
        for each, part in zip(self.dimensions, self._slices, strict=True):
            if not each.free:
                near = each.near(row[part])
                moved = np.repeat(row[None], len(near), axis=0)
                moved[:, part] = near
                found.append(moved)
        return np.concatenate(found) if found else np.zeros((0, self.n_columns))

    def _values(self, item):
        if self.names is None:
            return vector(item, self.n_dimensions)
        if not isinstance(item, dict):
            raise ValueError(
                f"Items of this space are dicts with the keys {self.names}, got "
                f"{type(item).__name__}."
            )
        missing = [name for name in self.names if name not in item]
        extra = [name for name in item if name not in self.names]
        if missing or extra:
            raise ValueError(
                f"An item must have the keys {self.names}; missing: {missing}, not known: {extra}."
            )
        return [item[name] for name in self.names]

    def to_row(self, item: Any) -> np.ndarray:
        """Unit-cube row of an item, which is checked."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return np.concatenate([each.encode(value) for each, value in pairs])

    def clean(self, item: Any) -> Any:
        """A checked item as it is kept: floats, ints, and the choices themselves."""
        return self._assemble(
            [each.clean(v) for each, v in zip(self.dimensions, self._values(item), strict=True)]
        )

    def _assemble(self, values):
        if self.names is None:
            return np.array(values, dtype=np.float64)
        return dict(zip(self.names, values, strict=True))

    def dump(self, item: Any) -> list:
        """The item in JSON's terms; choices by their position."""
        pairs = zip(self.dimensions, self._values(item), strict=True)
        return [each.values.index(v) if isinstance(each, Choice) else v for each, v in pairs]

    def load(self, values: list) -> Any:
        """The item that `dump` wrote."""
        pairs = zip(self.dimensions, values, strict=True)
        return self._assemble([e.values[v] if isinstance(e, Choice) else v for e, v in pairs])

    def to_item(self, row: np.ndarray) -> Any:
        """Item of a row: an array (d,) or a dict."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return self._assemble([each.decode(row[part]) for each, part in pairs])

    def present(self, item: Any) -> Any:
        """The item as people see it, a copy."""
        if self.names is None:
            return item.copy()
        return {name: copied(value) for name, value in item.items()}

    def pack(self, items: list) -> Any:
        """Items of a question as one value: an array (k, d), or a tuple of dicts."""
        return np.stack(items) if self.names is None else tuple(items)

    def pack_many(self, questions: list) -> Any:
        """Several of them: an array (n, k, d), or a list of tuples, or of arrays of all sizes."""
        packed, sizes = [self.pack(items) for items in questions], {len(q) for q in questions}
        if self.names is not None or len(sizes) > 1:
            return packed
        return np.array(packed).reshape(len(packed), *(sizes or {2}), self.n_dimensions)

    def listed(self, items: Any) -> Any:
        """Items of a frame one by one; others as they are."""
        return listed(items, self.names)

    def describe(self) -> list:
        """Plain values that tell this space from others."""
        names = self.names or [None] * self.n_dimensions
        return [[name, each.describe()] for name, each in zip(names, self.dimensions, strict=True)]


def load_tables() -> None:
    """Let scipy load its Sobol tables now: an interrupt while it does leaves them empty."""
    qmc.Sobol(1, scramble=False).random(1)


@lru_cache(maxsize=8)
def _points(n, d, seed):
    return qmc.Sobol(d, rng=np.random.default_rng([seed, 2**31])).random(n)


@lru_cache(maxsize=8)
def _order(n, seed):
    return np.random.default_rng([seed, 2**31]).permutation(n)


def initial_rows(space: Any, seed: int, start: int, n: int) -> np.ndarray:
    """Rows (n, n_columns) of the design from a place on; of a pool, its rows in a random order."""
    if space.pool is not None:
        order = _order(len(space.pool), seed)
        return space.pool[order[np.arange(start, start + n) % len(order)]]
    n_points = 2 ** max(5, (start + n - 1).bit_length())
    return space.place(_points(n_points, space.n_dimensions, seed)[start : start + n])
