"""Known limits of a space: constraints, parameters under a condition, and parameters held."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

from skpref._utils import sobol
from skpref.optimize._dimensions import plain
from skpref.optimize._maximiser import EFFORT, reflect_into_cube
from skpref.optimize._spaces import ParameterBox, Pool, Space, is_labelled, make_space

# Of the size of an inequality's terms: items that people tell may break it by as much, rounding.
_SLACK = 1e-9
# Where numbers are rounded, an item that is asked keeps a linear limit by this share of its terms,
# so that it does so in whatever order they are added up.
_MARGIN = 1e-12
# Halvings of a way that leaves the limits: 2e-5 of a climb is lost, 4e-3 of a line or plane, which
# has more places to look at.
_N_HALVINGS, _N_HALVINGS_OF_GRIDS = 16, 8
# Step of a slope by differences, in the unit cube.
_STEP = 1e-6
# Attempts to fill small feasible parts, each with as many rows as a question looks at. The last
# of 2000 thin slabs in six dimensions (1e-4 wide) was filled after 24 of them.
_N_ROUNDS = 60


class Limits:
    """Constraints on items that are numbers in some order: A x <= b, functions, and predicates.

    Parameters
    ----------
    constraints : sequence
        LinearConstraint and NonlinearConstraint of scipy on the numbers, in the order of the space;
        or functions of an item, as people see it, that return whether it may be asked about.
    names : list of str
        Of the numbers.

    Raises
    ------
    TypeError, ValueError
        If one is none of these, has another number of columns, or is an equality.
    """

    def __init__(self, constraints: Sequence, names: list):
        self.names, self.functions = names, []
        self.nonlinear: list[tuple[Callable, np.ndarray, np.ndarray, int]] = []
        linear = []
        for place, each in enumerate(constraints):
            if isinstance(each, LinearConstraint):
                linear += self._read_linear(each, place)
            elif isinstance(each, NonlinearConstraint):
                self.nonlinear.append(self._read_nonlinear(each, place))
            elif callable(each):
                self.functions.append((each, place))
            else:
                raise TypeError(
                    f"constraints[{place}] is {each!r}; scipy.optimize.LinearConstraint and "
                    "NonlinearConstraint on the numbers of the space in its order, and functions "
                    "of an item that return whether it may be asked about are allowed."
                )
        d = len(names)
        self.matrix = np.array([row for row, *_ in linear]).reshape(-1, d)
        self.upper = np.array([bound for _, bound, _ in linear])
        self._linear_places = [place for *_, place in linear]

    def _read_linear(self, constraint, place):
        """Return the inequalities row x <= bound of a constraint, each with its place."""
        matrix = constraint.A
        matrix = np.atleast_2d(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
        matrix = matrix.astype(np.float64)
        if matrix.shape[1] != len(self.names) or not np.all(np.isfinite(matrix)):
            raise ValueError(
                f"constraints[{place}] has A of shape {matrix.shape}; finite numbers are allowed, "
                f"a column for each of {self.names}, categories by their codes."
            )
        low, high = _read_bounds(constraint, place, len(matrix))
        self._check_no_equality(low, high, place, matrix)
        rows = [(row, bound, place) for row, bound in zip(matrix, high, strict=True)]
        rows += [(-row, -bound, place) for row, bound in zip(matrix, low, strict=True)]
        return [each for each in rows if np.isfinite(each[1])]

    def _read_nonlinear(self, constraint, place):
        low, high = _read_bounds(constraint, place, None)
        self._check_no_equality(low, high, place)
        return constraint.fun, low, high, place

    def _check_no_equality(self, low, high, place, matrix=None):
        equal = np.isfinite(low) & (high - low <= _SLACK * (1.0 + np.abs(low)))
        if not np.any(equal):
            return
        terms = "its function"
        if matrix is not None:
            row = matrix[int(np.argmax(equal))]
            terms = " + ".join(
                f"{a:g} {name}" for a, name in zip(row, self.names, strict=True) if a
            )
        value = float(np.ravel(np.broadcast_to(low, equal.shape))[int(np.argmax(equal))])
        raise ValueError(
            f"constraints[{place}] is the equality {terms} = {value:g}; inequalities are allowed. "
            "Leave one of its parameters out of the space, compute it from the others where an "
            "item is made, and give the bounds of that one as a constraint on the others."
        )

    @property
    def has_any(self) -> bool:
        """Whether there are limits."""
        return self.has_numbers or bool(self.functions)

    @property
    def has_numbers(self) -> bool:
        """Whether some limits are inequalities between numbers."""
        return bool(len(self.matrix) or self.nonlinear)

    def slacks(self, numbers: np.ndarray) -> np.ndarray:
        """Return by how much the numbers (n, d) of items keep each inequality, (n, m)."""
        parts = [self.upper - numbers @ self.matrix.T]
        for function, low, high, place in self.nonlinear:
            values = np.array([self._value(function, place, each) for each in numbers])
            values = values.reshape(len(numbers), -1)
            both = np.concatenate([high - values, values - low], axis=1)
            parts.append(np.where(np.isnan(both), -np.inf, both))
        slacks: np.ndarray = np.concatenate(parts, axis=1)
        return slacks

    @staticmethod
    def _value(function, place, numbers):
        try:
            return np.ravel(np.asarray(function(numbers.copy()), dtype=np.float64))
        except Exception as error:
            raise ValueError(
                f"constraints[{place}] failed at the numbers {numbers.tolist()}: "
                f"{type(error).__name__}: {error}. Its function must return a number, or as many "
                "as there are bounds, at every item of the space; NaN where it has none."
            ) from error

    def keeps_linear(self, numbers: np.ndarray, rounded: np.ndarray) -> np.ndarray:
        """Return which items (n,) keep the linear limits, by a margin where columns are rounded."""
        if not len(self.matrix):
            return np.ones(len(numbers), dtype=bool)
        terms = np.abs(numbers) @ np.abs(self.matrix).T + np.abs(self.upper)
        margin = _MARGIN * terms * np.any(self.matrix[:, rounded] != 0.0, axis=1)
        kept: np.ndarray = np.all(self.upper - numbers @ self.matrix.T >= margin, axis=1)
        return kept

    def keeps_numbers(self, numbers: np.ndarray) -> bool:
        """Return whether the numbers (d,) of a candidate keep the inequalities as they are."""
        return bool(np.all(self.matrix @ numbers <= self.upper)) and self.keeps_nonlinear(numbers)

    def keeps_nonlinear(self, numbers: np.ndarray) -> bool:
        """Return whether the numbers (d,) of an item keep the nonlinear limits."""
        return all(
            np.all((values >= low) & (values <= high))
            for function, low, high, place in self.nonlinear
            for values in [self._value(function, place, numbers)]
        )

    def keeps_functions(self, item: Any) -> bool:
        """Return whether all functions of an item, as people see it, allow it."""
        return all(self._allows(function, place, item) for function, place in self.functions)

    @staticmethod
    def _allows(function, place, item):
        answer = function(item)
        if not isinstance(answer, bool | np.bool_):
            raise TypeError(
                f"constraints[{place}] returned {answer!r} for the item {item!r}; True or False "
                "are allowed. Return bool(...); numbers with bounds are a NonlinearConstraint."
            )
        return bool(answer)

    def check_item(self, numbers: np.ndarray, item: Any) -> None:
        """Raise ValueError if an item that people gave breaks a limit by more than rounding."""
        terms = np.abs(self.matrix) @ np.abs(numbers) + np.abs(self.upper)
        over = self.matrix @ numbers - self.upper > _SLACK * terms
        broken = [self._linear_places[k] for k in np.flatnonzero(over)[:1]]
        for function, low, high, place in self.nonlinear:
            values = self._value(function, place, numbers)
            slack = _SLACK * (1.0 + np.abs(values))
            if not np.all((values >= low - slack) & (values <= high + slack)):
                broken.append(place)
        broken += [
            place for function, place in self.functions if not self._allows(function, place, item)
        ]
        if broken:
            raise ValueError(
                f"The item {plain(item)!r} breaks constraints[{broken[0]}]; items within the "
                "limits are allowed. Give such items, or an optimizer with wider limits."
            )

    def describe(self) -> list:
        """Return plain values that tell these limits from others; of functions their names."""
        linear = [[*row, bound] for row, bound in zip(self.matrix, self.upper, strict=True)]
        nonlinear = [
            ["nonlinear", _name_of(function), repr(plain(low)), repr(plain(high))]
            for function, low, high, _ in self.nonlinear
        ]
        functions = [["function", _name_of(function)] for function, _ in self.functions]
        return ["limits", *([float(v) for v in row] for row in linear), *nonlinear, *functions]


def _name_of(function):
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _read_bounds(constraint, place, n):
    """Return lower and upper bounds of a constraint, checked."""
    low, high = np.broadcast_arrays(
        np.asarray(constraint.lb, dtype=np.float64), np.asarray(constraint.ub, dtype=np.float64)
    )
    low, high = np.atleast_1d(low), np.atleast_1d(high)
    if n is not None:
        if len(low) not in (1, n):
            raise ValueError(
                f"constraints[{place}] has {len(low)} bounds and {n} rows; give one for each."
            )
        low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    if np.any(np.isnan(low) | np.isnan(high)) or np.any(low > high):
        raise ValueError(
            f"constraints[{place}] has the lower bounds {low.tolist()} and the upper bounds "
            f"{high.tolist()}; numbers are allowed, the lower ones not above the upper."
        )
    return low, high


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
    ):
        super().__init__(box.dimensions, box.names)
        self.limits, self.conditions, self._held = limits, conditions, held or {}
        self._rounded = np.array([each.free for each in self.dimensions])
        for place in self._held:
            self.free[self._slices[place]] = self.ordered[self._slices[place]] = False
        if limits.has_any:
            _ = self._anchors  # says that there are none

    # -- which items ---------------------------------------------------------------------

    def _values_of_rows(self, rows):
        """Return a list of the values of each parameter at rows."""
        pairs = zip(self.dimensions, self._slices, strict=True)
        return [each.decode_all(rows[:, part]) for each, part in pairs]

    def _numbers(self, values):
        """Return the numbers (n, d) of values, a list of each parameter."""
        pairs = zip(self.dimensions, values, strict=True)
        numbers = [[each.number(value) for value in column] for each, column in pairs]
        return np.where(self._is_there(values), np.column_stack(numbers), 0.0)

    def _is_there(self, values):
        """Return which parameters are there (n, d), of values, a list of each parameter."""
        there = np.ones((len(values[0]), self.n_dimensions), dtype=bool)
        for place, parent, allowed, _ in self.conditions:
            there[:, place] = [value in allowed for value in values[parent]]
            there[:, place] &= there[:, parent]
        return there

    def is_feasible(self, rows: np.ndarray) -> np.ndarray:
        limits = self.limits
        if not limits.has_any:
            return super().is_feasible(rows)
        values = self._values_of_rows(rows)
        numbers = self._numbers(values)
        feasible = limits.keeps_linear(numbers, self._rounded)
        for k in np.flatnonzero(feasible):
            feasible[k] = limits.keeps_nonlinear(numbers[k])
            if feasible[k] and limits.functions:
                item = self._assemble([column[k] for column in values])
                feasible[k] = limits.keeps_functions(self.present(item))
        return feasible

    def _slacks(self, rows):
        return self.limits.slacks(self._numbers(self._values_of_rows(rows)))

    def to_row(self, item: Any) -> np.ndarray:
        row = super().to_row(item)
        if self.limits.has_any:
            kept = self.clean(item)
            numbers = self._numbers([[value] for value in self._values(kept)])[0]
            self.limits.check_item(numbers, self.present(kept))
        return row

    def _values(self, item):
        if not self.conditions or not is_labelled(item):
            return super()._values(item)
        names, values, absent = self.names or [], dict(item.items()), set()
        for place, parent, allowed, rest in self.conditions:
            name, value = names[place], values.get(names[place])
            is_absent = value is None or (isinstance(value, float) and np.isnan(value))
            if plain(values.get(names[parent])) in allowed and names[parent] not in absent:
                continue
            if not is_absent:
                raise ValueError(
                    f"The item {item!r} has {name!r}, which is there with {names[parent]!r} of "
                    f"{allowed} alone. Leave it out."
                )
            values[name] = rest
            absent.add(name)
        return super()._values(values)

    def _assemble(self, values):
        item = super()._assemble(values)
        there = self._is_there([[value] for value in values])[0]
        if there.all():
            return item
        return {
            name: value for (name, value), kept in zip(item.items(), there, strict=True) if kept
        }

    def snap(self, rows: np.ndarray) -> np.ndarray:
        rows = super().snap(rows)
        for place, value in self._held.items():
            rows[:, self._slices[place]] = self.dimensions[place].encode(value)
        if self.conditions:
            there = self._is_there(self._values_of_rows(rows))
            for place, *_, rest in self.conditions:
                columns = self.dimensions[place].encode(rest)
                rows[~there[:, place], self._slices[place]] = columns
        return rows

    def free_columns(self, rows: np.ndarray) -> np.ndarray:
        free = super().free_columns(rows)
        if not self.conditions:
            return free
        there = self._is_there(self._values_of_rows(rows))
        return free & np.repeat(there, [each.width for each in self.dimensions], axis=1)

    def project(self, rows: np.ndarray) -> np.ndarray:
        if not self._held:
            return rows
        rows = np.unique(self.snap(rows), axis=0)
        rows = rows[self.is_feasible(rows)]
        return rows if len(rows) else self._anchors[:1]

    # -- rows ----------------------------------------------------------------------------

    @cached_property
    def _anchors(self):
        """Return rows spread over the feasible part, as many as a question looks at, or fewer."""
        rng = np.random.default_rng(0)
        rows = self.snap(super().place(sobol(self.n_dimensions, rng).random(8 * EFFORT.n_rows)))
        anchors = rows[self.is_feasible(rows)]
        if not len(anchors):
            anchors = self._search_feasible(rows)
        if not len(anchors):
            held = "".join(f" with {self._name(k)} = {each!r}" for k, each in self._held.items())
            raise ValueError(
                f"None of {len(rows)} items of the space{held} keeps all constraints; some must. "
                "Widen them, or narrow the space to where they hold."
            )
        if len(anchors) < EFFORT.n_rows:
            anchors = self._fill_feasible(anchors, rng)
        return anchors

    def _search_feasible(self, rows):
        """Return rows where the inequalities hold, of the least violation, or none."""
        if not self.limits.has_numbers:
            return rows[:0]
        scale = self._slack_scale(self._slacks(rows))

        def violations(rows, margin):
            slacks = self._slacks(rows) / scale
            return np.sum(np.minimum(np.maximum(slacks, -1e6) - margin, 0.0) ** 2, axis=1)

        order = np.argsort(violations(rows, 0.0), kind="stable")[: EFFORT.n_starts]
        for margin in (1e-2, 1e-4, 1e-6):
            for start in rows[order]:
                free = self.free_columns(start[None])[0]

                def point_at(x, start=start, free=free):
                    row = start.copy()
                    row[free] = x
                    return row

                end = minimize(
                    lambda x, point_at=point_at, margin=margin: violations(
                        point_at(x)[None], margin
                    )[0],
                    start[free],
                    method="L-BFGS-B",
                    bounds=[(0.0, 1.0)] * int(free.sum()),
                ).x
                row = self.snap(point_at(end)[None])
                if self.is_feasible(row)[0]:
                    return row
        return rows[:0]

    def _fill_feasible(self, anchors, rng):
        """Return more feasible rows, near the first and along what lies between them, spread."""
        n, d = EFFORT.n_rows, self.n_columns
        radii = np.geomspace(1e-5, 1.0, n)[:, None]
        for _ in range(_N_ROUNDS):
            parents, first, second = anchors[rng.integers(len(anchors), size=(3, n))]
            steps = rng.permutation(radii) * rng.standard_normal((n, d))
            steps[::2] = (2.0 * rng.random((n, 1)) * (first - second) + 1e-3 * steps)[::2]
            rows = self.snap(reflect_into_cube(parents + steps))
            anchors = np.unique(np.concatenate([anchors, rows[self.is_feasible(rows)]]), axis=0)
            if len(anchors) >= 4 * n:
                break
        places = [0]
        distance = np.linalg.norm(anchors - anchors[0], axis=1)
        while len(places) < min(n, len(anchors)):  # each the farthest from those before it
            places.append(int(np.argmax(distance)))
            distance = np.minimum(distance, np.linalg.norm(anchors - anchors[places[-1]], axis=1))
        return rng.permutation(anchors[places])

    def _name(self, place):
        return place if self.names is None else self.names[place]

    @cached_property
    def _size_of_slacks(self):
        return self._slack_scale(self._slacks(self._anchors))

    @staticmethod
    def _slack_scale(slacks):
        """Return the size of each inequality, by its slacks (n, m) at rows of the space."""
        finite = np.where(np.isfinite(slacks), np.abs(slacks), 0.0)
        scale = np.median(finite, axis=0)
        return np.where(scale > 0.0, scale, 1.0)

    def place(self, quantiles: np.ndarray) -> np.ndarray:
        """Return unit-cube rows (n, n_columns) of quantiles (n, n_dimensions) that are feasible.

        An infeasible row goes half, three or seven eighths of the way to a feasible one.
        """
        rows = self.snap(super().place(quantiles))
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

    def neighbours(self, row: np.ndarray) -> np.ndarray:
        rows = self.snap(super().neighbours(row))
        rows = rows[np.any(rows != row, axis=1)]
        return rows[self.is_feasible(rows)]

    # -- ways through the space ----------------------------------------------------------

    def feasible_share(self, anchor: np.ndarray, offsets: np.ndarray) -> float:
        farthest_first = offsets[np.argsort(-np.abs(offsets).max(axis=1), kind="stable")]

        def fits(share):
            rows = self.snap(np.clip(anchor + share * farthest_first, 0.0, 1.0))
            return all(self.is_feasible(part).all() for part in (rows[:4], rows[4:]))

        if fits(1.0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(_N_HALVINGS if len(offsets) == 1 else _N_HALVINGS_OF_GRIDS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def cut(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
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
        if not self.limits.has_numbers:
            return super().climb_options(point_at, varied)
        owner, column = np.nonzero(varied[moving])
        k = np.arange(len(owner))

        def slacks(rows):
            return np.clip(self._slacks(rows) / self._size_of_slacks, -1e6, 1e6)

        def slopes(x):
            rows = point_at(x)[moving]
            moved = rows[owner]
            step = np.where(moved[k, column] < 0.5, _STEP, -_STEP)
            moved[k, column] += step
            values = slacks(np.concatenate([rows, moved]))
            before, after = values[: len(rows)], values[len(rows) :]
            slope = np.zeros((len(rows), before.shape[1], len(owner)))
            slope[owner, :, k] = (after - before[owner]) / step[:, None]
            return slope.reshape(-1, len(owner))

        limits = {"type": "ineq", "fun": lambda x: slacks(point_at(x)[moving]).ravel()}
        return {"method": "SLSQP", "constraints": [{**limits, "jac": slopes}]}

    def describe(self) -> list:
        conditions = [
            ["when", place, parent, repr(values)] for place, parent, values, _ in self.conditions
        ]
        return [*super().describe(), *conditions, self.limits.describe()]

    def held_at(self, held: dict) -> "LimitedBox":
        """Return this space with parameters held at values, by their places."""
        return LimitedBox(self, self.limits, self.conditions, held)


class FixedParameter(NamedTuple):
    """A parameter that is held for a question: its place, and its value in JSON's terms."""

    place: int
    value: Any


def read_fixed(space: Space, fixed: Any) -> tuple[FixedParameter, ...]:
    """Return the parameters that a question holds, checked.

    Raises
    ------
    TypeError, ValueError
        If there is no such parameter or value, or nothing is left to choose.
    """
    if fixed is None or (isinstance(fixed, Mapping) and not fixed):
        return ()
    if not isinstance(space, ParameterBox):
        raise ValueError(
            f"fixed={fixed!r} holds parameters, and items are candidates of a pool. Make an "
            "optimizer with candidates= of these alone, or give space=."
        )
    names = space.names or list(range(space.n_dimensions))
    if not isinstance(fixed, Mapping) or not set(fixed) <= set(names):
        raise ValueError(
            f"fixed is {fixed!r}; a dict of values of some of {names} is allowed, such as "
            f"{{{names[0]!r}: value}}."
        )
    if len(fixed) == space.n_dimensions:
        raise ValueError(
            f"fixed={fixed!r} leaves no parameter to choose; some of {names} must be free."
        )
    held = []
    for place, name in enumerate(names):
        if name in fixed:
            dimension = space.dimensions[place]
            dimension.encode(fixed[name])
            held.append(FixedParameter(place, dimension.dump(dimension.clean(fixed[name]))))
    for place, parent, allowed, _ in getattr(space, "conditions", ()):
        name, other = names[place], names[parent]
        if name in fixed and other in fixed and plain(fixed[other]) not in allowed:
            raise ValueError(
                f"fixed={fixed!r} holds {name!r}, which is there with {other!r} of {allowed} "
                "alone. Leave one of the two out."
            )
    return tuple(held)


def hold_parameters(space: Any, fixed: Sequence) -> Any:
    """Return a space with parameters held as `read_fixed` has them; the space itself if none is."""
    if not fixed:
        return space
    box = space
    if not isinstance(space, LimitedBox):
        box = LimitedBox(space, Limits((), space.names or [""] * space.n_dimensions))
    return box.held_at({place: box.dimensions[place].load(value) for place, value in fixed})


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
    conditional = isinstance(space, dict) and {
        name: spec for name, spec in space.items() if isinstance(spec, ConditionalSpec)
    }
    if not constraints and not conditional:
        return make_space(space, candidates)
    if candidates is not None:
        make_space(space, candidates)  # says what is wrong with them
        return Pool(candidates, lambda names: Limits(constraints or (), names))
    if conditional:
        space = {
            name: conditional[name].spec if name in conditional else spec
            for name, spec in space.items()
        }
    box = make_space(space)
    if type(box) is not ParameterBox:
        raise TypeError(
            f"constraints= are of space= or candidates= given as values; got {type(box).__name__}."
        )
    names = box.names or [f"x[{k}]" for k in range(box.n_dimensions)]
    limits = Limits(constraints or (), names)
    conditions = [_read_condition(box, name, spec) for name, spec in (conditional or {}).items()]
    return LimitedBox(box, limits, conditions)


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
    for value in spec.values:
        dimension.encode(value)
    own = box.dimensions[place]
    rest = own.decode(own.place(np.array([0.5]))[0])
    return Condition(place, parent, [dimension.clean(value) for value in spec.values], rest)
