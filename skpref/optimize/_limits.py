"""Known limits of a space: constraints, parameters under a condition, and parameters held."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint

from skpref._utils import NEGLIGIBLE, sobol
from skpref.optimize._dimensions import ROUNDING, plain_value
from skpref.optimize._maximiser import EFFORT, reflect_into_cube
from skpref.optimize._spaces import ParameterBox, Pool, Space, is_labelled, make_space

# Step of a slope by differences, in the unit cube.
_STEP = np.sqrt(np.finfo(np.float64).eps)


class Inequality(NamedTuple):
    """Bounds of a function of the numbers of an item, one of the constraints.

    ``matrix`` is that of a linear one, else None.
    """

    function: Any
    low: np.ndarray
    high: np.ndarray
    place: int
    matrix: np.ndarray | None = None

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Return the constrained function at the numbers (n, d) of items, (n, k)."""
        if self.matrix is not None:
            values: np.ndarray = numbers @ self.matrix.T
            return values
        try:
            every = [np.ravel(self.function(each.copy())) for each in numbers]
            return np.array(every, dtype=np.float64).reshape(len(numbers), -1)
        except Exception as error:
            raise ValueError(
                f"constraints[{self.place}] failed, {type(error).__name__}: {error}. Its function "
                "of the numbers of an item must return a number, or as many as there are bounds; "
                "NaN where it has none."
            ) from error

    def slacks(self, numbers: np.ndarray, slack: float = 0.0) -> np.ndarray:
        """Return how far the function is within its bounds, (n, m); below 0 where they are broken.

        To it ``slack`` times the size of its terms is added, for rounding.
        """
        values = self.values(numbers)
        terms = values if self.matrix is None else np.abs(numbers) @ np.abs(self.matrix).T
        rounding = slack * (np.abs(terms) + (self.matrix is None)) if slack else 0.0
        with np.errstate(invalid="ignore"):
            above = np.where(np.isinf(self.low), np.inf, values - self.low + rounding)
            below = np.where(np.isinf(self.high), np.inf, self.high - values + rounding)
        slacks = np.concatenate([below, above], axis=1)
        return np.where(np.tile(np.isnan(values), 2), -np.inf, slacks)


class Limits:
    """Constraints on items: inequalities of their numbers, and functions of an item.

    Parameters
    ----------
    constraints : sequence
        LinearConstraint and NonlinearConstraint of scipy on the numbers, in the order of the space;
        or functions of an item, as people see it, that return whether it may be asked about.
    names : list
        Of the numbers.

    Raises
    ------
    TypeError, ValueError
        If one is none of these, has another number of columns, or is an equality.
    """

    def __init__(self, constraints: Sequence, names: list):
        self.inequalities: list[Inequality] = []
        self.functions: list[tuple[Callable, int]] = []
        for place, each in enumerate(constraints):
            if isinstance(each, LinearConstraint | NonlinearConstraint):
                self.inequalities.append(_read_inequality(each, place, names))
            elif callable(each):
                self.functions.append((each, place))
            else:
                raise TypeError(
                    f"constraints[{place}] is {each!r}; scipy.optimize.LinearConstraint and "
                    "NonlinearConstraint on the numbers of the space in its order, and functions "
                    "of an item that return whether it may be asked about are allowed."
                )

    @property
    def has_any(self) -> bool:
        """Whether there are limits."""
        return bool(self.inequalities or self.functions)

    def slacks(self, numbers: np.ndarray) -> np.ndarray:
        """Return how far the numbers (n, d) of items are within each bound, (n, m)."""
        parts = [each.slacks(numbers) for each in self.inequalities]
        return np.concatenate([np.zeros((len(numbers), 0)), *parts], axis=1)

    def satisfy_inequalities(self, numbers: np.ndarray, rounded: Any = ()) -> np.ndarray:
        """Return which items (n,) keep all inequalities.

        ``rounded`` says which of their numbers are rounded.
        """
        feasible = np.ones(len(numbers), dtype=bool)
        for each in self.inequalities:
            # A linear one is kept in whatever order its terms are added up.
            is_rounded = each.matrix is not None and np.any(each.matrix[:, rounded])
            margin = -NEGLIGIBLE if is_rounded else 0.0
            feasible &= np.all(each.slacks(numbers, margin) >= 0.0, axis=1)
        return feasible

    def allows_item(self, item: Any) -> bool:
        """Return whether all constraints that are functions of an item allow one."""
        return all(_call_constraint(*each, item) for each in self.functions)

    def check_item(self, numbers: np.ndarray, item: Any) -> None:
        """Raise ValueError if an item that people gave breaks a limit by more than rounding."""
        broken = [
            each.place
            for each in self.inequalities
            if np.any(each.slacks(numbers[None], ROUNDING) < 0.0)
        ]
        broken += [
            place
            for function, place in self.functions
            if not _call_constraint(function, place, item)
        ]
        if broken:
            raise ValueError(
                f"The item {plain_value(item)!r} breaks constraints[{broken[0]}]; items within the "
                "limits are allowed. Give such items, or an optimizer with wider limits."
            )

    def describe(self) -> list:
        """Return plain values that tell these limits from others; of functions their names."""
        described: list = []
        for each in self.inequalities:
            bounds = repr(each.low.tolist()), repr(each.high.tolist())
            terms = _function_name(each.function) if each.matrix is None else each.matrix.tolist()
            described.append([terms, *bounds])
        return [*described, *(_function_name(function) for function, _ in self.functions)]


def _call_constraint(function, place, item):
    """Return whether a function allows an item; TypeError unless it returns True or False."""
    answer = function(item)
    if not isinstance(answer, bool | np.bool_):
        raise TypeError(
            f"constraints[{place}] returned {answer!r} for the item {item!r}; True or False are "
            "allowed. Return bool(...); numbers with bounds are a NonlinearConstraint."
        )
    return bool(answer)


def _function_name(function):
    """Return the name of a function, or of the class of an object that is called."""
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _read_inequality(constraint, place, names):
    """Return a constraint of scipy, checked."""
    bounds = [
        np.atleast_1d(np.asarray(b, dtype=np.float64)) for b in (constraint.lb, constraint.ub)
    ]
    function, matrix = getattr(constraint, "fun", None), None
    if isinstance(constraint, LinearConstraint):
        matrix = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
        matrix = np.atleast_2d(matrix).astype(np.float64)
        if matrix.shape[1] != len(names) or not np.all(np.isfinite(matrix)):
            raise ValueError(
                f"constraints[{place}] has A of shape {matrix.shape}; finite numbers are allowed, "
                f"a column for each of {names}, categories by their codes."
            )
        bounds = [np.broadcast_to(each, len(matrix)) for each in bounds]
    low, high = np.broadcast_arrays(*bounds)
    if not np.all(low <= high):
        raise ValueError(
            f"constraints[{place}] has the lower bounds {low.tolist()} and the upper bounds "
            f"{high.tolist()}; numbers are allowed, the lower ones not above the upper."
        )
    for k in np.flatnonzero(np.isfinite(low) & (high - low <= ROUNDING * (1.0 + np.abs(low)))):
        terms = "its function"
        if matrix is not None:
            terms = " + ".join(
                f"{a:g} {name}" for a, name in zip(matrix[k], names, strict=True) if a
            )
        raise ValueError(
            f"constraints[{place}] is the equality {terms} = {low[k]:g}; inequalities are allowed. "
            "Leave one of its parameters out of the space, compute it from the others where an "
            "item is made, and give the bounds of that one as a constraint on the others."
        )
    return Inequality(function, low, high, place, matrix)


class ConditionalSpec(NamedTuple):
    """A parameter that is there under a condition, as `when` makes it.

    Attributes
    ----------
    parameter : str
        Another one, that stands before it.
    values : list
        Of that one, with which it is there.
    spec : object
        Its values, as in a dict space.
    """

    parameter: str
    values: list
    spec: Any


def when(parameter: str, value: Any, spec: Any) -> ConditionalSpec:
    """Return a parameter of a dict space that is there only with a value of another one.

    Items have it where the other one has this value, and are without it else. A parameter that is
    not there counts as 0 in constraints on numbers.

    Parameters
    ----------
    parameter : str
        Name of the other parameter, of choices or integers. It stands before this one in the space.
    value : object or list
        Value of the other one; or a list of several, with each of which this one is there.
    spec : scipy.stats distribution, tuple or list
        The values of this one, as those of any other parameter.

    Returns
    -------
    ConditionalSpec

    Examples
    --------
    >>> from skpref.optimize import PreferenceOptimizer, when
    >>> space = {"mode": ["flat", "deep"], "depth": when("mode", "deep", (1, 9))}
    >>> optimizer = PreferenceOptimizer(space, random_state=0)
    >>> all(("depth" in item) == (item["mode"] == "deep") for item in optimizer.ask(size=4))
    True
    """
    return ConditionalSpec(parameter, list(value) if isinstance(value, list) else [value], spec)


class Condition(NamedTuple):
    """Where a parameter is there: the places of it and of another one, whose values these are.

    ``rest`` is the value that stands for it in rows where it is not there.
    """

    place: int
    parent: int
    values: list
    rest: Any


class LimitedBox(ParameterBox):
    """A box of parameters of which the items within limits may be asked about.

    Parameters
    ----------
    box : ParameterBox
    limits : Limits
    conditions : sequence of Condition, default=()
        In the order of the parameters.
    held : dict of int to object, default=None
        Values that parameters are held at, by their places.
    usability : Usability, default=None
        What rows must reach beside the limits.

    Raises
    ------
    ValueError
        If no item seems to keep the limits.
    """

    def __init__(
        self,
        box: ParameterBox,
        limits: Limits,
        conditions: Sequence[Condition] = (),
        held: dict | None = None,
        usability: Any = None,
    ):
        super().__init__(box.dimensions, box.names)
        self._usability = usability
        self._has_slopes = bool(limits.inequalities or usability)
        self.limits, self.conditions, self._held = limits, conditions, held or {}
        self._rounded = np.array([each.free for each in self.dimensions])
        for place in self._held:
            self.free[self._slices[place]] = self.ordered[self._slices[place]] = False
        if limits.has_any or usability:
            _ = self._anchors  # says that there are none

    # -- which items ---------------------------------------------------------------------

    def _values_of_rows(self, rows):
        """Return the values of each parameter at rows, a list of lists."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return [each.decode_all(rows[:, part]) for each, part in pairs]

    def _numbers_of_values(self, values):
        """Return values of each parameter, a list of lists, as numbers (n, d)."""
        pairs = zip(self.dimensions, values, strict=True)
        numbers = [[each.as_number(value) for value in column] for each, column in pairs]
        return np.where(self._are_present(values), np.column_stack(numbers), 0.0)

    def _are_present(self, values):
        """Return which parameters are there (n, d), by their conditions and the values of each."""
        present = np.ones((len(values[0]), self.n_dimensions), dtype=bool)
        for place, parent, allowed, _ in self.conditions:
            present[:, place] = [value in allowed for value in values[parent]]
            present[:, place] &= present[:, parent]
        return present

    def is_feasible(self, rows: np.ndarray) -> np.ndarray:
        limits = self.limits
        if not len(rows) or not (limits.has_any or self._usability):
            return super().is_feasible(rows)
        values = self._values_of_rows(rows)
        feasible = limits.satisfy_inequalities(self._numbers_of_values(values), self._rounded)
        if limits.functions:
            for k in np.flatnonzero(feasible):
                item = self._item_of_values([column[k] for column in values])
                feasible[k] = limits.allows_item(self.present(item))
        if self._usability:
            feasible &= self._usability.slack(rows) >= 0.0
        return feasible

    def to_row(self, item: Any) -> np.ndarray:
        row = super().to_row(item)
        if self.limits.has_any:
            clean_item = self.clean(item)
            numbers = self._numbers_of_values(
                [[value] for value in self._values_of_item(clean_item)]
            )[0]
            self.limits.check_item(numbers, self.present(clean_item))
        return row

    def _values_of_item(self, item):
        if not self.conditions or not is_labelled(item):
            return super()._values_of_item(item)
        names, values, absent = self.names or [], dict(item.items()), set()
        for place, parent, allowed, rest in self.conditions:
            name, value = names[place], values.get(names[place])
            is_absent = value is None or (isinstance(value, float) and np.isnan(value))
            if plain_value(values.get(names[parent])) in allowed and names[parent] not in absent:
                continue
            if not is_absent:
                raise ValueError(
                    f"The item {item!r} has {name!r}, which is there with {names[parent]!r} of "
                    f"{allowed} alone. Leave it out."
                )
            values[name] = rest
            absent.add(name)
        return super()._values_of_item(values)

    def _item_of_values(self, values):
        item = super()._item_of_values(values)
        present = self._are_present([[value] for value in values])[0]
        if present.all():
            return item
        pairs = zip(item.items(), present, strict=True)
        return {name: value for (name, value), is_present in pairs if is_present}

    def dump(self, item: Any) -> list:
        """Return an item in JSON's terms, None for parameters that its conditions leave out."""
        values = super().dump(item)
        present = self._are_present([[value] for value in self._values_of_item(item)])[0]
        return [
            value if is_present else None for value, is_present in zip(values, present, strict=True)
        ]

    def load(self, values: list) -> Any:
        values = list(values)
        for place, *_, rest in self.conditions:
            if values[place] is None:
                values[place] = self.dimensions[place].dump(rest)
        return super().load(values)

    def snap(self, rows: np.ndarray) -> np.ndarray:
        rows = super().snap(rows)
        for place, value in self._held.items():
            rows[:, self._slices[place]] = self.dimensions[place].encode(value)
        if self.conditions:
            present = self._are_present(self._values_of_rows(rows))
            for place, *_, rest in self.conditions:
                columns = self.dimensions[place].encode(rest)
                rows[~present[:, place], self._slices[place]] = columns
        return rows

    def free_columns(self, rows: np.ndarray) -> np.ndarray:
        free = super().free_columns(rows)
        if not self.conditions:
            return free
        present = self._are_present(self._values_of_rows(rows))
        return free & np.repeat(present, [each.width for each in self.dimensions], axis=1)

    def project_to_feasible(self, rows: np.ndarray) -> np.ndarray:
        if not (self._held or self._usability):
            return rows
        rows = np.unique(self.snap(rows), axis=0)
        rows = rows[self.is_feasible(rows)]
        return rows if len(rows) else self._anchors[:1]

    # -- rows ----------------------------------------------------------------------------

    @cached_property
    def _anchors(self):
        """Return rows spread over the feasible part; ValueError if there are fewer than two."""
        rng, n = np.random.default_rng(0), EFFORT.n_rows
        rows = self.snap(super().rows_at(sobol(self.n_dimensions, rng).random(8 * n)))
        feasible = self.is_feasible(rows)
        anchors = rows[feasible]
        if len(anchors) < n and self._has_slopes:
            anchors = np.concatenate([anchors, self._move_into_feasible(rows[~feasible][:n])])
        if not len(anchors):
            held = "".join(f" with {self._name(k)} = {each!r}" for k, each in self._held.items())
            raise ValueError(
                f"None of {len(rows)} items of the space{held} keeps all constraints, nor does any "
                "near them; some must. Widen them, or narrow the space to where they hold."
            )
        radii = np.geomspace(1e-3, 1.0, n)[:, None]
        for _ in range(EFFORT.n_steps):  # around those that do
            if len(anchors) >= n:
                break
            parents = anchors[rng.integers(len(anchors), size=n)]
            near = self.snap(
                reflect_into_cube(parents + radii * rng.standard_normal(parents.shape))
            )
            anchors = np.unique(np.concatenate([anchors, near[self.is_feasible(near)]]), axis=0)
        if np.ptp(anchors, axis=0).max() <= self.apart:
            raise ValueError(
                f"A single item keeps all constraints, {self.present(self.to_item(anchors[0]))!r}; "
                "two are needed for a question. Widen them."
            )
        return rng.permutation(anchors)

    def _move_into_feasible(self, rows):
        """Return those rows that steps towards the inequality most broken move to the feasible
        part."""
        for _ in range(EFFORT.n_steps):
            slacks, slopes = self._slopes(rows)
            worst = np.argmin(slacks, axis=1)[:, None]
            slack = np.take_along_axis(slacks, worst, axis=1)
            slope = np.take_along_axis(slopes, worst[:, :, None], axis=1)[:, 0]
            squared = np.maximum(np.sum(slope**2, axis=1, keepdims=True), np.finfo(float).tiny)
            steps = np.where(slack < 0.0, (1e-9 - 1.01 * slack) * slope / squared, 0.0)
            if not np.any(steps):
                break
            rows = self.snap(np.clip(rows + steps, 0.0, 1.0))
        return rows[self.is_feasible(rows)]

    @cached_property
    def _slack_sizes(self):
        """Return the median size of each inequality's slack over the box, (m,)."""
        rows = super().rows_at(sobol(self.n_dimensions, np.random.default_rng(0)).random(256))
        slacks = self._unscaled_slacks(self.snap(rows))
        sizes = np.median(np.where(np.isfinite(slacks), np.abs(slacks), 0.0), axis=0)
        return np.where(sizes > 0.0, sizes, 1.0)

    def _slacks(self, rows):
        """Return how far rows are within each bound (n, m), in units of its median size."""
        return np.clip(self._unscaled_slacks(rows) / self._slack_sizes, -1e6, 1e6)

    def _unscaled_slacks(self, rows):
        """Return how far rows are within each bound (n, m)."""
        slacks = self.limits.slacks(self._numbers_of_values(self._values_of_rows(rows)))
        if not self._usability:
            return slacks
        return np.column_stack([slacks, self._usability.slack(rows)])

    def _slopes(self, rows):
        """Return `_slacks` of rows, and their slopes (n, m, n_columns) along free columns."""
        owner, column = np.nonzero(self.free_columns(rows))
        moved, k = rows[owner], np.arange(len(owner))
        step = np.where(moved[k, column] < 0.5, _STEP, -_STEP)
        moved[k, column] += step
        slacks = self._slacks(np.concatenate([rows, moved]))
        slacks, after = slacks[: len(rows)], slacks[len(rows) :]
        slopes = np.zeros((*slacks.shape, self.n_columns))
        slopes[owner, :, column] = (after - slacks[owner]) / step[:, None]
        return slacks, slopes

    def _name(self, place):
        """Return the name of a dimension, its place where there are no names."""
        return place if self.names is None else self.names[place]

    def rows_at(self, quantiles: np.ndarray) -> np.ndarray:
        """Return unit-cube rows (n, n_columns) of quantiles (n, n_dimensions) that are feasible.

        An infeasible row goes half, three or seven eighths of the way to a feasible one.
        """
        rows = self.snap(super().rows_at(quantiles))
        outside = np.flatnonzero(~self.is_feasible(rows))
        if not len(outside):
            return rows
        anchors = self._anchors
        which = (quantiles[outside, 0] * len(anchors)).astype(np.intp)
        targets, far = anchors[which], rows[outside]
        rows[outside] = targets
        for share in (0.5, 0.25, 0.125):
            moved = self.snap(targets + share * (far - targets))
            good = self.is_feasible(moved)
            rows[outside[good]] = moved[good]
            outside, targets, far = outside[~good], targets[~good], far[~good]
        return rows

    # -- ways through the space ----------------------------------------------------------

    def feasible_share(self, anchor: np.ndarray, offsets: np.ndarray) -> float:
        farthest_first = offsets[np.argsort(-np.abs(offsets).max(axis=1), kind="stable")]

        def fits(share):
            rows = self.snap(np.clip(anchor + share * farthest_first, 0.0, 1.0))
            return all(self.is_feasible(part).all() for part in (rows[:4], rows[4:]))

        if fits(1.0):
            return 1.0
        low, high = 0.0, 1.0
        while high - low > self.apart:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def cut_to_feasible(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        if not np.all(np.isfinite(end)):
            return start
        outside = ~self.is_feasible(end)
        if not np.any(outside):
            return end
        rows = end.copy()
        for k in np.flatnonzero(outside):
            share = self.feasible_share(start[k], (end[k] - start[k])[None])
            rows[k] = self.snap(np.clip(start[k] + share * (end[k] - start[k]), 0.0, 1.0)[None])[0]
        return rows

    def climb_options(self, point_at: Callable, varied: np.ndarray) -> dict:
        moving = np.flatnonzero(varied.any(axis=1))
        if not self._has_slopes:
            return super().climb_options(point_at, varied)
        k = np.arange(len(moving))

        def slopes(x):
            _, slopes = self._slopes(point_at(x)[moving])
            whole = np.zeros((*slopes.shape[:2], *varied.shape))
            whole[k, :, moving] = slopes
            return whole[:, :, varied].reshape(-1, np.count_nonzero(varied))

        def slacks(x):
            return self._slacks(point_at(x)[moving]).ravel()

        limits = {"type": "ineq", "fun": slacks, "jac": slopes}
        return {"method": "SLSQP", "constraints": [limits]}

    def describe_limits(self) -> list | None:
        conditions = [
            ["when", place, parent, repr(values)] for place, parent, values, _ in self.conditions
        ]
        return [*conditions, *self.limits.describe()]

    def with_held_values(self, held: dict) -> "LimitedBox":
        """Return a copy of this space in which parameters, by their places, have given values."""
        return LimitedBox(self, self.limits, self.conditions, held)

    def with_usability(self, usability: Any) -> "LimitedBox":
        """Return the part of this space that is usable enough."""
        return LimitedBox(self, self.limits, self.conditions, self._held, usability)


def as_limited_box(box: ParameterBox) -> LimitedBox:
    """Return a box as a `LimitedBox` that has no limits."""
    return LimitedBox(box, Limits((), box.names or [""] * box.n_dimensions))


class FixedParameter(NamedTuple):
    """A parameter that is held for a question: its place, and its value in JSON's terms."""

    place: int
    value: Any


def read_fixed_parameters(
    space: Space, fixed: Any, argument: str = "fixed"
) -> tuple[FixedParameter, ...]:
    """Return the parameters that a question holds, checked.

    Parameters
    ----------
    space : Space
    fixed : dict or None
        Values by parameter.
    argument : str, default="fixed"
        Name under which they were passed, for errors.

    Raises
    ------
    TypeError, ValueError
        If there is no such parameter or value, or nothing is left to choose.
    """
    if fixed is None or (isinstance(fixed, Mapping) and not fixed):
        return ()
    if not isinstance(space, ParameterBox):
        raise ValueError(
            f"got {argument}={fixed!r} of a pool, whose items have no parameters to hold; "
            f"parameters of space= are allowed. Make an optimizer with candidates= of these "
            "alone, or give space=."
        )
    names = space.names or list(range(space.n_dimensions))
    if not isinstance(fixed, Mapping) or not set(fixed) <= set(names):
        raise ValueError(
            f"got {argument}={fixed!r}; a dict of values of some of {names} is allowed. Give "
            f"{argument}={{{names[0]!r}: value}}, for example."
        )
    if len(fixed) == space.n_dimensions:
        raise ValueError(
            f"got {argument}={fixed!r}, which leaves no parameter to choose; values of some of "
            f"{names} are allowed. Leave one of them out."
        )
    held = []
    for place, name in enumerate(names):
        if name in fixed:
            dimension = space.dimensions[place]
            dimension.encode(fixed[name])
            held.append(FixedParameter(place, dimension.dump(dimension.clean(fixed[name]))))
    _check_fixed_present(space, names, fixed, argument)
    return tuple(held)


def _check_fixed_present(space, names, fixed, argument):
    """Raise ValueError for a parameter that is held, and absent at another one's held value."""
    absent = set()
    for place, parent, allowed, _ in getattr(space, "conditions", ()):
        name, parent_name = names[place], names[parent]
        if parent in absent or plain_value(fixed.get(parent_name, allowed[0])) not in allowed:
            absent.add(place)
            if name in fixed:
                raise ValueError(
                    f"got {argument}={fixed!r}, which holds {name!r}; it is there with "
                    f"{parent_name!r} of {allowed} alone. Leave one of the two out."
                )


def hold_parameters(space: Any, fixed: Sequence) -> Any:
    """Return a space in which the parameters of `read_fixed_parameters` are held."""
    if not fixed:
        return space
    box = space if isinstance(space, LimitedBox) else as_limited_box(space)
    return box.with_held_values(
        {place: box.dimensions[place].load(value) for place, value in fixed}
    )


def make_limited_space(space: Any, candidates: Any, constraints: Any) -> Space:
    """Return the space of an optimizer's arguments, with limits if there are any.

    Raises
    ------
    TypeError, ValueError
        If there is not exactly one space, a constraint or condition is none, or no item keeps all
        of them.
    """
    if not isinstance(constraints, list | tuple | None):
        raise TypeError(
            f"constraints is {constraints!r}; a list of constraints is allowed. Give [that]."
        )
    space, conditional = _split_conditions(space)
    if not constraints and not conditional:
        return make_space(space, candidates)
    if candidates is not None:
        make_space(space, candidates)  # says what is wrong with them
        return Pool(candidates, lambda names: Limits(constraints or (), names))
    box = make_space(space)
    if type(box) is not ParameterBox:
        raise TypeError(
            f"constraints= are of space= or candidates= given as values; got {type(box).__name__}."
        )
    names = box.names or [f"x[{k}]" for k in range(box.n_dimensions)]
    limits = Limits(constraints or (), names)
    conditions = [_read_condition(box, name, spec) for name, spec in conditional.items()]
    return LimitedBox(box, limits, conditions)


def _split_conditions(space: Any) -> tuple[Any, dict[str, ConditionalSpec]]:
    """Return a space without conditions, and the conditions of its parameters by name."""
    if not isinstance(space, dict):
        return space, {}
    conditional = {name: spec for name, spec in space.items() if isinstance(spec, ConditionalSpec)}
    return {**space, **{name: spec.spec for name, spec in conditional.items()}}, conditional


def _read_condition(box, name, spec):
    """Return the condition of a parameter; ValueError if the other one has no such value."""
    place = box.names.index(name)
    if spec.parameter not in box.names[:place]:
        raise ValueError(
            f"{name} is there when {spec.parameter!r} has a value; parameters that stand before it "
            f"are allowed, {box.names[:place]}. Name one of these, or move it to the front."
        )
    parent = box.names.index(spec.parameter)
    dimension = box.dimensions[parent]
    if dimension.free:
        raise ValueError(
            f"{name} is there when {spec.parameter!r} is {spec.values}, which is a range of "
            "numbers; choices and integers are allowed. Give it choices, or steps as integers."
        )
    if not spec.values:
        raise ValueError(f"{name} is there with no value of {spec.parameter!r}. Name one or more.")
    for value in spec.values:
        dimension.encode(value)
    own = box.dimensions[place]
    rest = own.decode(own.columns_at(np.array([0.5]))[0])
    return Condition(place, parent, [dimension.clean(value) for value in spec.values], rest)
