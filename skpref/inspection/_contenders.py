"""Who is ranked: one row an id, with the columns that change from answer to answer held."""

import reprlib
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import NEGLIGIBLE, Array, RandomLike, warn
from skpref.data import OWN_ANSWER, ItemTable, group_rows, is_frame
from skpref.fitting import Inspected, InspectedMixture, varying_columns

# Rows that are looked at to average over categories, at most.
_MOST_ROWS = 50_000

# Rows at most at which slopes are taken: time goes with their square.
_SLOPE_ROWS = 500


class Columns:
    """Columns of a posterior's rows beside the ids: names, kinds, means and units.

    Parameters
    ----------
    subject : Inspected
        With an ``id_place``.
    rows : ndarray of shape (n, n_features), default=None
        Rows beside those of the answers.
    are_items : bool, default=False
        Whether the user gave these rows: then what an id was shown with else does not count.

    Attributes
    ----------
    categories, measured : set of int
        Columns of which the kernel sees the names, and those whose values it measures.
    varying : set of int
        Columns that differ between rows of one id, of at least half of the ids that were shown
        more than once: those of answers, not of ids; and whether an item is the judge.
    mixed : dict of int to ndarray
        Columns that differ between rows of fewer ids, and of which.
    """

    def __init__(self, subject: Inspected, rows: Array | None = None, are_items: bool = False):
        self._subject, place = subject, subject.id_place
        self.categories, self.measured = subject.seen_columns()
        self.varying, self.mixed = varying_columns(subject.training, place, self.weight)
        # Rows, and their weights, that an id's own values are of.
        self._own = subject.training, self.weight
        if rows is not None and rows is not subject.training:
            more, mixed = varying_columns(rows, place, np.ones(len(rows)))
            self.varying |= more
            self.mixed = mixed if are_items else self.mixed | mixed
            self.mixed = {j: ids for j, ids in self.mixed.items() if j not in self.varying}
            if are_items:
                self._own = rows, np.ones(len(rows))
            else:
                others = rows[~np.isin(rows[:, place], subject.training[:, place])]
                self._own = (
                    np.concatenate([subject.training, others]),
                    np.append(self.weight, np.ones(len(others))),
                )
        own = {j for j in self.mixed if self.label(j) == OWN_ANSWER}  # few ids may be judges
        self.varying |= own
        self.mixed = {j: ids for j, ids in self.mixed.items() if j not in own}

    def users(self, place: int, value: float) -> Any:
        """Return the value that users know for a value in the rows of a column."""
        if place in self._subject.groups:
            return self._subject.groups[place][int(value)]
        center, scale = self._subject.center, self._subject.scale
        if center is not None and scale is not None:
            value = float(value * scale[place] + center[place])
        return float(value)

    def unit(self, place: int) -> float:
        """Return by how much users' values of a column grow for one more in the rows."""
        return self.users(place, 1.0) - self.users(place, 0.0)

    def _row_value(self, place: int, value: Any) -> float:
        """Return the value in the rows that stands for a user's value of a column."""
        if place not in self._subject.groups:
            number = _finite_number(self.label(place), value)
            return (number - self.users(place, 0.0)) / self.unit(place)
        groups = self._subject.groups[place]
        if value not in groups:
            raise ValueError(f"No vote has {value!r} in {self.label(place)!r}; there are {groups}.")
        return float(groups.index(value))

    def label(self, place: int) -> Any:
        """Return the name of a column, its position where it has none."""
        names = self._subject.columns
        return place if names is None else names[place]

    def place(self, column: Any) -> int:
        """Return the position of a column by name or position, or raise ValueError."""
        names = self._subject.columns
        listed = [] if names is None else list(names)
        n = self._subject.n_features
        if column in listed:
            place = listed.index(column)
        elif isinstance(column, int | np.integer) and not isinstance(column, bool):
            place = int(column)
        else:
            place = -1
        if not 0 <= place < n:
            known_columns = (
                f"columns {listed}" if listed else f"columns 0 to {n - 1}, without names"
            )
            advice = "" if listed else " Pass the votes of from_votes as items=, they name them."
            raise ValueError(
                f"There is no column {reprlib.repr(column)}; the model has {known_columns}.{advice}"
            )
        if place == self._subject.id_place:
            raise ValueError(f"Column {column!r} holds the ids that are ranked; name another.")
        return place

    def held_values(self, at: Any) -> dict[int, float]:
        """Return the values that ``at`` holds, by the positions of the columns."""
        if at is None:
            return {}
        if not isinstance(at, Mapping):
            n = self._subject.n_features
            others = [j for j in range(n) if j != self._subject.id_place]
            values_in_order = np.asarray(at)
            if values_in_order.shape != (len(others),):
                raise ValueError(
                    f"at has shape {values_in_order.shape}; give a dict of column and value, or "
                    f"one value for each of the {len(others)} columns "
                    f"{[self.label(j) for j in others]}."
                )
            at = dict(zip(others, values_in_order.tolist(), strict=True))
        places = {self.place(column): value for column, value in at.items()}
        values_held = {place: self._row_value(place, value) for place, value in places.items()}
        for j in values_held.keys() & self.categories - self._subject.groups.keys():
            values = np.unique(self._subject.training[:, j])
            if values_held[j] not in values:
                shown = ", ".join(f"{value:g}" for value in values[:8])
                raise ValueError(
                    f"No answer has {values_held[j]:g} in column {self.label(j)!r}, which holds "
                    f"categories; there are {shown}{', …' if len(values) > 8 else ''}."
                )
        return values_held

    @property
    def weight(self) -> Array:
        """Return how often each row of the answers was shown."""
        shown = self._subject.shown
        return np.ones(len(self._subject.training)) if shown is None else shown

    def mean(self, place: int) -> float:
        """Return the mean of a column over all that was shown; 0 where it is rounding alone."""
        column, weight = self._subject.training[:, place], self.weight
        mean = float(np.average(column, weights=weight))
        size = float(np.average(np.abs(column), weights=weight))
        return mean if abs(mean) > NEGLIGIBLE * size else 0.0

    def spread(self, place: int) -> float:
        """Return the standard deviation of a column over all that was shown."""
        column = self._subject.training[:, place]
        apart = column - np.average(column, weights=self.weight)
        return float(np.sqrt(np.average(apart**2, weights=self.weight)))

    def by_id(self, place: int, ids: Array) -> Array:
        """Return each id's mean of a column over its answers; the mean of all without any."""
        known_ids, means = self._means_by_id(place, self._subject.training, self.weight)
        at = np.minimum(np.searchsorted(known_ids, ids), len(known_ids) - 1)
        return np.where(known_ids[at] == ids, means[at], self.mean(place))

    def _means_by_id(self, place, rows, weight):
        """Return the ids in some rows, ascending, and each id's mean of a column."""
        row_ids, code = np.unique(rows[:, self._subject.id_place], return_inverse=True)
        code = code.reshape(-1)
        return row_ids, np.bincount(code, weight * rows[:, place]) / np.bincount(code, weight)

    def _own_means(self, place: int, ids: Array) -> Array:
        """Return the mean of a column over the rows of each id."""
        row_ids, means = self._means_by_id(place, *self._own)
        id_means: Array = means[np.searchsorted(row_ids, ids)]
        return id_means

    def _modal_values(self, place: int, ids: Array) -> Array:
        """Return each id's most frequent value of a column, the least of ties."""
        rows, weight = self._own
        whose = rows[:, self._subject.id_place]
        some = np.isin(whose, ids)
        both = np.column_stack([whose[some], rows[some, place]])
        first, code = group_rows(both)
        pairs, often = both[first], np.bincount(code, weight[some])
        order = np.lexsort((pairs[:, 1], -often, pairs[:, 0]))
        row_ids, at = np.unique(pairs[order, 0], return_index=True)
        values: Array = pairs[order[at], 1]
        return values[np.searchsorted(row_ids, ids)]

    def set_own_values(self, base: Array, places: Set[int]) -> None:
        """Set mixed columns of rows, one an id, to each id's mean or usual category; warn."""
        if not places:
            return
        ids = base[:, self._subject.id_place]
        names = _name_array(self._subject.ids(base), len(base))
        every = np.zeros(len(base), dtype=bool)
        for j in places:
            whose = np.isin(ids, self.mixed[j])
            of_these = self._modal_values if j in self.categories else self._own_means
            base[whose, j] = of_these(j, ids[whose])
            every |= whose
        kinds = {j in self.categories for j in places}
        own = "its own mean" if False in kinds else "the category it had most often"
        if len(kinds) > 1:
            own += ", or the category it had most often"
        warn(
            f"Columns {[self.label(j) for j in sorted(places)]} differ between the answers of "
            f"{np.count_nonzero(every)} of {len(ids)} ids, such as {names[every][:3].tolist()}, "
            f"and are the same in all answers of the others. So each id is shown at {own}. If "
            "these differences are errors, correct them; if the columns say something of the "
            "answers, hold them by at={column: value}."
        )

    def combinations(self, places: list[int]) -> tuple[Array, Array]:
        """Return the values that some columns had together, and their shares of what was shown."""
        values = np.ascontiguousarray(self._subject.training[:, places])
        first, inverse = group_rows(values)
        shares = np.bincount(inverse, self.weight)
        return values[first], shares / shares.sum()


def _finite_number(column, value):
    """Return a user's value of a column as a float; ValueError if it is no finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"at holds column {column!r} at {value!r}; give a finite number.")
    return number


@dataclass(frozen=True, eq=False)
class Contenders:
    """Items to rank, each by an average of utilities over rows.

    Attributes
    ----------
    subject : Inspected
    names : ndarray of shape (n,)
        Positions where they have none.
    rows : ndarray of shape (n, m, n_features)
        What the posterior is asked about.
    shares : ndarray of shape (m,)
        Weights of the averages.
    held : dict
        Columns that were held, and their values; None where a category was averaged over.
    columns : Columns or None
        None where the rows are those of ``items``.
    """

    subject: Inspected
    names: NDArray[Any]
    rows: Array
    shares: Array
    held: dict[Any, Any]
    columns: Columns | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def components(self) -> NDArray[np.intp]:
        """Return the connected component of each contender, see `Inspected.component_of`."""
        return self.subject.component_of(self.rows[:, 0])

    def means(self) -> Array:
        """Return the posterior mean utility of each contender, at the fitted hyperparameters."""
        flat = self.rows.reshape(-1, self.rows.shape[2])
        means = self.subject.at(len(flat)).mean(flat)
        return means.reshape(self.rows.shape[:2]) @ self.shares

    def take(self, order: NDArray[np.intp]) -> Self:
        """Return some of the contenders, or all in another order."""
        return replace(self, names=self.names[order], rows=self.rows[order])

    def draws(
        self, over: InspectedMixture, unit: str, n: int, rng: RandomLike
    ) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
        """Return joint draws of distinct contenders, the number of each, and how many are equal."""
        flat = self.rows.reshape(len(self), -1)
        # Rounding must not rank items that are one and the same.
        distinct, place, counts = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
        place = place.reshape(-1)
        if len(self.shares) == 1 and not over.in_groups:
            return over.sample(distinct, n, rng, unit), place, counts
        rows = distinct.reshape(len(distinct), *self.rows.shape[1:])
        return over.averages(rows, self.shares, unit).draws(n, rng), place, counts


def contenders(
    model: Any, items: Any = None, user: Any = None, at: Any = None, time: Any = None
) -> Contenders:
    """Return the items to rank, with the rows over which the utility of each is averaged.

    Given items are ranked as they are. Else, where the model knows ids of which some were shown
    in several versions, each id has one row: columns that differ between its versions are held, and
    those that never do are its own.

    Parameters
    ----------
    model, items, user, at, time
        As in `leaderboard`.
    """
    subject = Inspected.from_model(model, user, time)
    if isinstance(items, Mapping) and "item_table" in items:
        subject, items = subject.with_names_of_votes(items), None
    ids = _listed_ids(subject, items)
    if ids is None:
        return _contenders_of_ids(subject, items, at)
    every = _contenders_of_ids(subject, None, {} if at is None else at)
    place = {name: i for i, name in enumerate(every.names.tolist())}
    unknown = [name for name in ids if name not in place]
    if unknown:
        raise ValueError(
            f"The model knows no id {unknown[0]!r}; it has {len(place)}, such as "
            f"{every.names[0]!r}. Give ids that took part in an answer, or rows with features."
        )
    return every.take(np.array([place[name] for name in ids], dtype=np.intp))


def _listed_ids(subject: Inspected, items: Any) -> list | None:
    """Return items as a list, if they are ids without features; None if they are anything else."""
    if subject.id_place is None or subject.source is not None or items is None or is_frame(items):
        return None
    if subject.posterior.reader.table is not None or isinstance(items, ItemTable):
        return None
    listed = items.tolist() if hasattr(items, "tolist") else list(items)
    return listed if listed and all(np.ndim(name) == 0 for name in listed) else None


def _contenders_of_ids(subject: Inspected, items: Any, at: Any) -> Contenders:
    """Return a contender for each id, with other columns held or averaged over."""
    answered = items is None and subject.source is None and subject.posterior.reader.table is None
    rows, names = (subject.training, None) if answered else subject.items(items)
    if subject.id_place is None:
        if at is not None:
            raise ValueError(
                "Ids are compared here while other columns are held (at=), and the model knows no "
                "ids. Build the duels with ids= of from_columns, or by from_votes, or "
                "say id_column=; or pass items with the features that are to be compared."
            )
        return _contenders_of_rows(subject, names, rows)
    ids, first = np.unique(rows[:, subject.id_place], return_index=True)
    has_items = items is not None or subject.source is not None
    if at is None and (has_items or len(ids) == len(rows)):
        return _contenders_of_rows(subject, subject.ids(rows) if answered else names, rows)
    first.sort()
    names = None if names is None or not has_items else names[first]
    columns = Columns(subject, rows, items is not None)
    return _averaged_contenders(subject, columns, rows[first], names, at)


def _averaged_contenders(
    subject: Inspected, columns: Columns, base: Array, names: NDArray[Any] | None, at: Any
) -> Contenders:
    """Return ids to compare, at the values of ``at``, and averages over the other columns."""
    held = columns.held_values(at)
    columns.set_own_values(base, columns.mixed.keys() - held.keys())
    free = columns.varying - held.keys()
    held |= {j: columns.mean(j) for j in free - columns.categories}
    base[:, list(held)] = list(held.values())
    open_ = sorted(free & columns.categories)
    every, shares = _expand_categories(columns, base, open_)
    held_values: dict[Any, Any] = dict.fromkeys(map(columns.label, sorted([*held, *open_])))
    held_values |= {columns.label(j): columns.users(j, value) for j, value in held.items()}
    names = subject.ids(base) if names is None else names
    return Contenders(subject, _name_array(names, len(base)), every, shares, held_values, columns)


def _expand_categories(columns: Columns, base: Array, places: list[int]) -> tuple[Array, Array]:
    """Return rows of each id with every combination of categories, and the share of each."""
    every = base[:, None]
    if not places:
        return every, np.ones(1)
    values, shares = columns.combinations(places)
    if len(base) * len(values) > _MOST_ROWS:
        raise ValueError(
            f"The board averages over {len(values)} combinations of the categories in columns "
            f"{[columns.label(j) for j in places]}, which is too much for {len(base)} ids. "
            "Hold some of them: at={column: value}."
        )
    every = np.repeat(every, len(values), axis=1)
    every[:, :, places] = values
    return every, shares


def _contenders_of_rows(subject: Inspected, names: NDArray[Any] | None, rows: Array) -> Contenders:
    """Return a contender for each row, which nothing is averaged over."""
    return Contenders(subject, _name_array(names, len(rows)), rows[:, None], np.ones(1), {})


def evenly_spaced(n: int) -> NDArray[np.intp]:
    """Return positions of rows at which slopes are taken: evenly spaced ones of n, or all."""
    return np.unique(np.linspace(0, n - 1, min(n, _SLOPE_ROWS)).astype(np.intp))


def _name_array(names: NDArray[Any] | None, n: int) -> NDArray[Any]:
    """Return names, or positions where there are none."""
    return np.arange(n) if names is None else names
