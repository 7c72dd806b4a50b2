"""Parameters of items: the values of each, as they are kept, and columns of the unit cube."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import rv_continuous, rv_discrete

from skpref._utils import warn

# How far apart two categories are, in ranges of a number: near what two numbers drawn at random
# are, so that what is learned of one category holds for the next until duels contradict it.
_CATEGORY = 0.5
# Neighbours of longer ranges of integers would be one item up to rounding.
MAX_STEPS = 100_000
# Where a distribution has no end, this much probability is left out at that side.
_TAIL = 1e-6
# What people give may be out of a range, or break a limit, by such a share of it for rounding.
ROUNDING = 1e-9
# Where a distribution without a name and parameters is looked at, to tell it from others.
_PROBES = np.linspace(0.01, 0.99, 25)
_UNCHANGING = str | int | float | bool | bytes | None


def plain_value(value: Any) -> Any:
    """Return a value without numpy in it: scalars and arrays become numbers, texts and lists.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize._dimensions import plain_value
    >>> plain_value([np.int64(1), (np.str_("a"), np.arange(2))])
    [1, ('a', [0, 1])]
    """
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in "biufSU":  # .item() would make a date a number
            return plain_value(value.tolist()) if value.ndim else value
        return value.astype(np.float64).tolist() if value.dtype.kind == "f" else value.tolist()
    if type(value) in (list, tuple):
        return type(value)(plain_value(part) for part in value)
    if type(value) is dict:
        return {key: plain_value(part) for key, part in value.items()}
    return value


def copy_value(value: Any) -> Any:
    """Return a deep copy, or the value itself where a copy would not be equal to it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize._dimensions import copy_value
    >>> kept = (np.zeros(2), {"kind": ["a", "b"]})
    >>> found = copy_value(kept)
    >>> found[0][:] = 1.0
    >>> found[1]["kind"].clear()
    >>> kept
    (array([0., 0.]), {'kind': ['a', 'b']})
    """
    if isinstance(value, _UNCHANGING):
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is dict:
        return {key: copy_value(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copy_value, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copy_value, value))
    try:
        copy = deepcopy(value)
        same = bool(copy == value)
    except Exception:  # whatever the value's own methods raise
        return value
    return copy if same else value


def _read_number(name, value):
    """Return a finite number as a float, or raise ValueError."""
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


class Dimension(ABC):
    """A parameter of items: its values, and columns of the unit cube, which a kernel sees.

    A subclass of the numbers of a range says how a value becomes a share of the unit interval
    (`encode`) and back (`decode`); others say more.

    Attributes
    ----------
    name : str
    width : int
        Number of columns.
    free : bool
        Whether columns may take any value between the ends, so that a gradient can be followed.
    ordered : bool
        Whether the value grows with the column, so that a line may run along it.
    """

    name: str
    width, free, ordered = 1, True, True
    _ends: Any = (0.0, 1.0)

    def columns_at(self, quantile: np.ndarray) -> np.ndarray:
        """Return the columns (n, width) of the values at quantiles (n,) of the dimension."""
        return self.snap(np.asarray(quantile, dtype=np.float64)[:, None])

    def snap(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns of the nearest values."""
        return np.clip(columns, *self._ends)

    @abstractmethod
    def encode(self, value: Any) -> list:
        """Return the columns of a value, or raise ValueError if it is none of the dimension."""

    @abstractmethod
    def decode(self, columns: np.ndarray | list) -> Any:
        """Return the value of columns."""

    @abstractmethod
    def decode_all(self, columns: np.ndarray) -> list:
        """Return the values of columns (n, width), as `decode` does of each."""

    @abstractmethod
    def clean(self, value: Any) -> Any:
        """Return a value in the form in which items hold it: rounding cut off, choices by their own
        objects."""

    def dump(self, value: Any) -> Any:
        """Return the value in JSON's terms."""
        return value

    def load(self, value: Any) -> Any:
        """Return the value that `dump` wrote."""
        return value

    def as_number(self, value: Any) -> float:
        """Return a value as a number; of categories it is their code."""
        return float(value)

    @abstractmethod
    def describe(self) -> list:
        """Return plain values that tell this parameter from others."""


class Interval(Dimension):
    """A range of numbers, spread evenly."""

    def __init__(self, name: str, low: float, high: float):
        low, high = (
            _read_number(f"The lower bound of {name}", low),
            _read_number(f"The upper bound of {name}", high),
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

    def encode(self, value: Any) -> list:
        share = (_read_number(self.name, value) - self.low) / (self.high - self.low)
        if not -ROUNDING <= share <= 1.0 + ROUNDING:
            raise ValueError(
                f"{self.name} = {float(value)!r} lies outside [{self.low}, {self.high}]. Give "
                "items of the space, or widen it."
            )
        return [min(max(share, 0.0), 1.0)]

    def decode(self, columns: np.ndarray | list) -> Any:
        value = self.low + float(columns[0]) * (self.high - self.low)
        return min(max(value, self.low), self.high)

    def decode_all(self, columns: np.ndarray) -> list:
        values = self.low + columns[:, 0] * (self.high - self.low)
        return np.clip(values, self.low, self.high).tolist()

    def clean(self, value: Any) -> Any:
        return min(max(float(value), self.low), self.high)

    def describe(self) -> list:
        return ["range", self.low, self.high]


class OrderedValues(Dimension):
    """Ordered values, each at the middle of its step of the unit interval."""

    free = False

    def __init__(self, name: str, values: Sequence):
        self.name, self.values = name, values

    def columns_at(self, quantile: np.ndarray) -> np.ndarray:
        n = len(self.values)
        index = np.minimum((np.asarray(quantile) * n).astype(np.intp), n - 1)
        return ((index + 0.5) / n)[:, None]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self.columns_at(np.clip(columns[:, 0], 0.0, 1.0))

    def encode(self, value: Any) -> list:
        if isinstance(value, Real) and value in self.values:
            return [(self.values.index(value) + 0.5) / len(self.values)]
        ends = f"from {self.values[0]} to {self.values[-1]}"
        raise ValueError(
            f"{self.name} = {value!r} is not one of its {len(self.values)} values {ends}."
        )

    def _index(self, columns):
        """Return the position of the value of columns."""
        return min(int(columns[0] * len(self.values)), len(self.values) - 1)

    def decode(self, columns: np.ndarray | list) -> Any:
        return self.values[self._index(columns)]

    def decode_all(self, columns: np.ndarray) -> list:
        n = len(self.values)
        indices = np.minimum((columns[:, 0] * n).astype(np.intp), n - 1)
        return [self.values[k] for k in indices.tolist()]

    def clean(self, value: Any) -> Any:
        return self.values[self.values.index(value)]

    def describe(self) -> list:
        values = self.values
        if isinstance(values, range):
            return ["integers", values[0], values[-1]]
        return ["ordered", *values]  # as they are: as floats, large integers may be equal


class Choice(Dimension):
    """Values without an order: one column for two of them, else one-hot."""

    free = ordered = False

    def __init__(self, name: str, values: Sequence):
        self.name, self.values = name, [copy_value(value) for value in values]
        n = len(self.values)
        self.width = 1 if n == 2 else n
        one_hot = np.sqrt(0.5) * np.eye(n)
        self._codes = _CATEGORY * (np.array([[0.0], [1.0]]) if n == 2 else one_hot)

    def columns_at(self, quantile: np.ndarray) -> np.ndarray:
        n = len(self.values)
        return self._codes[np.minimum((np.asarray(quantile) * n).astype(np.intp), n - 1)]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self._codes[self._index(columns)]

    def _index(self, columns):
        """Return the positions of the choices nearest to columns (n, width), (n,)."""
        return np.argmin(np.abs(columns[:, None, :] - self._codes).sum(axis=2), axis=1)

    def encode(self, value: Any) -> list:
        value = plain_value(value)
        for candidate, code in zip(self.values, self._codes, strict=True):
            if type(candidate) is type(value) and candidate == value:
                return code.tolist()
        for candidate, code in zip(self.values, self._codes, strict=True):
            if candidate == value:
                return code.tolist()
        raise ValueError(f"{self.name} = {value!r} is not one of its choices {self.values}.")

    def decode(self, columns: np.ndarray | list) -> Any:
        return self.values[int(self._index(np.asarray(columns)[None, :])[0])]

    def decode_all(self, columns: np.ndarray) -> list:
        return [self.values[k] for k in self._index(columns).tolist()]

    def clean(self, value: Any) -> Any:
        return self.decode(self.encode(value))

    def as_number(self, value: Any) -> float:
        return float(self.values.index(value))

    def dump(self, value: Any) -> int:
        return self.values.index(value)

    def load(self, value: int) -> Any:
        return self.values[value]

    def describe(self) -> list:
        return ["choice", *map(repr, self.values)]


class Distribution(Dimension):
    """A continuous scipy.stats distribution; its cdf maps it to the unit interval."""

    def __init__(self, name: str, distribution: Any):
        self.name, self._distribution = name, distribution
        self._ppf = _read_quantile_function(name, distribution)
        ends = np.array([self._ppf(0.0), self._ppf(1.0)], dtype=np.float64)
        self._ends = np.where(np.isfinite(ends), [0.0, 1.0], [_TAIL, 1.0 - _TAIL])

    def encode(self, value: Any) -> list:
        share = float(self._distribution.cdf(_read_number(self.name, value)))
        low, high = (float(self._ppf(end)) for end in self._ends)
        slack = ROUNDING * (1.0 + abs(value))
        if self._ends[0] == 0.0 and value < low - slack:
            raise ValueError(
                f"{self.name} = {value!r} lies below its support, which begins at {low}."
            )
        if self._ends[1] == 1.0 and value > high + slack:
            raise ValueError(
                f"{self.name} = {value!r} lies above its support, which ends at {high}."
            )
        _check_not_in_tail(self.name, value, low - slack, high + slack)
        return [min(max(share, self._ends[0]), self._ends[1])]

    def decode(self, columns: np.ndarray | list) -> Any:
        return float(self._ppf(float(columns[0])))

    def decode_all(self, columns: np.ndarray) -> list:
        return np.asarray(self._ppf(columns[:, 0]), dtype=np.float64).tolist()

    def clean(self, value: Any) -> Any:
        return float(value)

    def describe(self) -> list:
        return ["distribution", *_describe_distribution(self._distribution)]


class DiscreteDistribution(Dimension):
    """A discrete scipy.stats distribution: a value sits at the middle of its cdf step."""

    free = False

    def __init__(self, name: str, distribution: Any):
        self.name, self._distribution = name, distribution
        self._ppf = _read_quantile_function(name, distribution)
        values = np.unique(self._ppf(np.clip(_PROBES, _TAIL, 1.0 - _TAIL)))
        ends = self._ppf(np.array([_TAIL, 1.0 - _TAIL]))
        if np.any(values % 1):
            raise ValueError(
                f"{name} has a discrete distribution of values such as "
                f"{values[values % 1 > 0][0]}; only integers are possible. Give other values as a "
                "list of choices."
            )
        if ends[0] == ends[1]:
            raise ValueError(f"{name} needs at least two values, its distribution has {ends[0]}.")
        self._values = tuple(ends.tolist())

    def _middle(self, value):
        """Return the middle of the step of the cdf at a value."""
        before = self._distribution.cdf(value - 1)
        return 0.5 * (before + self._distribution.cdf(value))

    def columns_at(self, quantile: np.ndarray) -> np.ndarray:
        inside = np.clip(quantile, _TAIL, 1.0 - _TAIL)
        return self._middle(self._ppf(inside))[:, None]

    def snap(self, columns: np.ndarray) -> np.ndarray:
        return self.columns_at(columns[:, 0])

    def encode(self, value: Any) -> list:
        value = _read_number(self.name, value)
        if not self._distribution.pmf(value) > 0.0:
            raise ValueError(f"{self.name} = {value!r} has probability 0 under its distribution.")
        _check_not_in_tail(self.name, value, *self._values)
        return [float(self._middle(value))]

    def decode(self, columns: np.ndarray | list) -> Any:
        return int(self._ppf(float(columns[0])))

    def decode_all(self, columns: np.ndarray) -> list:
        return np.asarray(self._ppf(columns[:, 0])).astype(np.int64).tolist()

    def clean(self, value: Any) -> Any:
        return int(value)

    def describe(self) -> list:
        return ["discrete distribution", *_describe_distribution(self._distribution)]


def _quantile_function(distribution):
    """Return the quantile function of a distribution of scipy, frozen or of its newer kind."""
    return getattr(distribution, "ppf", None) or distribution.icdf


def _read_quantile_function(name, distribution):
    """Return the quantile function, or raise ValueError if the distribution has none."""
    inverse = _quantile_function(distribution)
    with np.errstate(all="ignore"):
        quantiles = np.array([inverse(each) for each in (_TAIL, 0.5, 1.0 - _TAIL)])
    if (
        quantiles.shape != (3,)
        or not np.all(np.isfinite(quantiles))
        or np.any(np.diff(quantiles) < 0.0)
    ):
        raise ValueError(
            f"{name} has a distribution without quantiles: those of {_TAIL:.0e}, 0.5 and 1 - "
            f"{_TAIL:.0e} are {quantiles.tolist()}. Give it parameters that are single numbers of "
            "its range, such as scipy.stats.loguniform(low, high) with 0 < low < high."
        )
    return inverse


def _check_not_in_tail(name, value, low, high):
    """Raise ValueError for a value beyond the range that is searched, low to high."""
    if not low <= value <= high:
        raise ValueError(
            f"{name} = {value!r} lies in a tail of its distribution, beyond what is searched, "
            f"{low:.6g} to {high:.6g}. Give a wider distribution."
        )


def _is_discrete(distribution):
    """Return whether a distribution of scipy is discrete."""
    if hasattr(distribution, "dist"):
        return hasattr(distribution.dist, "pmf")
    # scipy's newer distributions all have a pmf, of zeros where they are continuous
    pmf = getattr(distribution, "pmf", None)
    return pmf is not None and bool(pmf(_quantile_function(distribution)(0.5)) > 0.0)


def _freeze_distribution(name, distribution):
    """Return a frozen distribution of a family that needs no parameters; others as they are."""
    if not isinstance(distribution, rv_continuous | rv_discrete):
        return distribution
    try:
        return distribution()
    except TypeError:
        raise ValueError(
            f"{name} is a family of distributions that needs parameters ({distribution.shapes}); "
            f"give a frozen one, as in {distribution.name}(...)."
        ) from None


def _describe_distribution(distribution):
    """Return plain values that tell a distribution from others."""
    family = getattr(distribution, "dist", None)
    if family is None:
        return [repr(distribution)]
    if family.name == "Distribution":  # scipy's name of a table or a histogram
        quantiles = np.asarray(_quantile_function(distribution)(_PROBES), dtype=np.float64)
        return [type(family).__name__, quantiles.tolist()]
    keywords = sorted(distribution.kwds.items())
    return [
        family.name,
        [float(x) for x in distribution.args],
        [[k, float(v)] for k, v in keywords],
    ]


def make_dimension(name: str, spec: Any) -> Dimension:
    """Return the dimension of a parameter, by the entry of a dict space that defines it.

    Parameters
    ----------
    name : str
    spec : scipy.stats distribution, tuple or list
        Frozen; or (low, high), of two integers a range of integers; or choices.

    Raises
    ------
    ValueError
        If it is none of these, or holds too few values.
    """
    if hasattr(spec, "cdf") and (hasattr(spec, "ppf") or hasattr(spec, "icdf")):
        spec = _freeze_distribution(name, spec)
        return (DiscreteDistribution if _is_discrete(spec) else Distribution)(name, spec)
    if isinstance(spec, tuple) and len(spec) == 2:
        return _make_range(name, spec)
    if isinstance(spec, list | np.ndarray):
        return _make_choices(name, list(plain_value(spec)))
    raise ValueError(
        f"{name} must be a frozen scipy.stats distribution, a tuple (low, high) (two ints: "
        f"integers, both included) or a list of choices, got {spec!r}."
    )


def _make_range(name, spec):
    """Return the dimension of a tuple (low, high): integers if both ends are, else an interval."""
    if any(isinstance(end, str | bool | np.bool_) or end is None for end in spec):
        raise ValueError(
            f"{name} is the tuple {spec}, but a tuple of two is a range of numbers, (low, "
            f"high). Categories are a list: {{{name!r}: {list(spec)}}}."
        )
    if not all(isinstance(end, Integral) for end in spec):
        return Interval(name, *spec)
    low, high = (int(end) for end in spec)
    if not low < high:
        raise ValueError(f"{name} must have its lower bound below the upper, got {spec}.")
    if high - low > MAX_STEPS:
        raise ValueError(
            f"{name} has {high - low + 1} integers; up to {MAX_STEPS + 1} can be told "
            "apart. Give floats, (float(low), float(high)), and round what is asked."
        )
    if high - low == 1 or (low, high) == (-1, 1):
        values, ends = list(range(low, high + 1)), (float(low), float(high))
        warn(
            f"{name}={(low, high)} is read as the integers {', '.join(map(str, values))}, "
            f"as its ends are integers. For all numbers between them give {ends}; if "
            f"integers are meant, the list {values} says so without this warning."
        )
    return OrderedValues(name, range(low, high + 1))


def _are_increasing(values):
    """Return whether values are numbers, each larger than the one before."""
    # Of other numbers, such as fractions, it is the position that is kept.
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return numbers and all(a < b for a, b in pairwise(values))


def _check_choices(name, values):
    """Raise ValueError unless values are two or more, all distinct."""
    repeats = not _are_increasing(values) and any(
        a == b for i, a in enumerate(values) for b in values[:i]
    )
    if len(values) < 2 or repeats:
        raise ValueError(f"{name} needs at least two distinct choices, got {values}.")
    if any(isinstance(v, Real) and v != v for v in values):
        raise ValueError(f"{name} has NaN among its choices, which equals nothing: {values}.")


def _make_choices(name, values):
    """Return the dimension of listed values: ordered if they are increasing numbers."""
    _check_choices(name, values)
    if not _are_increasing(values):
        return Choice(name, values)
    if any(isinstance(v, float) and not np.isfinite(v) for v in values):
        raise ValueError(
            f"{name} has infinity among its ordered values {values}. Give a large number "
            "in its place, or texts, which are categories."
        )
    return OrderedValues(name, values)
