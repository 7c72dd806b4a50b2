"""Ids of users, and rows of their features by id."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import Array, Fields
from skpref.data import (
    column_at,
    column_floats,
    fill_masked,
    is_frame,
    is_missing,
)
from skpref.gp import feature_spread
from skpref.kernels import check_hyperparameters


def code_ids(ids: list) -> NDArray[np.intp]:
    """Return codes of ids, equal for equal ones; missing ids count as equal."""
    code: dict = {}
    every = (None if is_missing(name) else name for name in ids)
    return np.array([code.setdefault(name, len(code)) for name in every], dtype=np.intp)


_FORMS = (
    "a mapping of ids to rows of numbers, a pandas DataFrame whose index holds the ids, or an "
    "array of shape (n_users, n_features) whose positions are the ids"
)


class UserTable(Fields):
    """Rows of features by id.

    Parameters
    ----------
    table : mapping, DataFrame or array-like

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
        Each feature in units of its spread.

    Raises
    ------
    ValueError
        If it is anything else, has gaps, or names a user twice.
    """

    def __init__(self, table: Any) -> None:
        if isinstance(table, Mapping):
            ids, rows = list(table), _read_mapping(table)
        elif is_frame(table):
            ids, rows = _read_frame(table)
        else:
            rows = _as_numbers(table)
            ids = list(range(len(rows) if rows.ndim else 0))
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"user_features must be {_FORMS}; got shape {rows.shape}.")
        self._row: dict = {}
        for row, name in enumerate(ids):
            if is_missing(name):
                raise ValueError(
                    f"Row {row} of user_features has no id (None or NaN); leave it out."
                )
            if self._row.setdefault(name, row) != row:
                raise ValueError(
                    f"user_features name {name!r} twice, in rows {self._row[name]} and {row}; give "
                    "each user one row."
                )
        gaps = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(gaps):
            raise ValueError(
                f"user_features contain NaN or infinity for {len(gaps)} of {len(rows)} users, "
                f"first for {ids[gaps[0]]!r}. Impute them; users whose answers are not fitted may "
                "also be left out, they then count as users without features."
            )
        self.rows: Array = (rows - rows.mean(axis=0)) / feature_spread(rows)

    def has_all_rows(self) -> bool:
        """Tell whether each id stands for a row of its own."""
        return sorted(self._row.values()) == list(range(len(self.rows)))

    def places(self, ids: list) -> NDArray[np.intp]:
        """Return the row of each id, −1 for one without."""
        return np.array([self._row.get(name, -1) for name in ids], dtype=np.intp)

    def rows_of(self, ids: list) -> Array:
        """Return the rows of users; raise ValueError if one has none."""
        place = self.places(ids)
        if np.any(place < 0):
            missing = [ids[k] for k in np.flatnonzero(place < 0)]
            known_user = next(iter(self._row))
            raise ValueError(
                f"user_features have no row for {len(missing)} of {len(ids)} users, such as "
                f"{missing[0]!r} (they have one for {known_user!r}). Add them, leave their answers "
                "out, or use method='cp'."
            )
        return self.rows[place]

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ValueError if a kernel does not take such rows."""
        check_hyperparameters(kernel)
        try:
            kernel(self.rows[:1])
        except ValueError as error:
            raise ValueError(
                f"user_kernel={kernel} does not take the {self.rows.shape[1]} features of users: "
                f"{str(error).rstrip('.')}. Give it one length_scale, or one a feature."
            ) from error


def _read_mapping(table):
    """Return the rows of a mapping; a number stands for a row of one feature."""
    rows = [_as_numbers(row, f"the row of {name!r}").reshape(-1) for name, row in table.items()]
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        odd = next(k for k, length in enumerate(lengths) if length != lengths[0])
        first, odd_name = (list(table)[k] for k in (0, odd))
        raise ValueError(
            f"user_features have rows of unequal length: {lengths[0]} numbers for {first!r}, "
            f"{lengths[odd]} for {odd_name!r}. Give every user the same features."
        )
    return np.array(rows)


def _read_frame(frame):
    """Return ids and rows of a frame that has an index."""
    if not hasattr(frame, "index"):
        raise ValueError(
            f"got user_features as a {type(frame).__module__.partition('.')[0]} frame, which has "
            "no index to hold the ids of users. Pass a mapping, such as dict(zip(frame['id'], "
            "frame.drop('id').to_numpy()))."
        )
    columns = [column_floats(column_at(frame, j)) for j in range(frame.shape[1])]
    texts = [name for name, each in zip(frame.columns, columns, strict=True) if each is None]
    if texts:
        raise ValueError(
            f"user_features must be numbers; the columns {texts} hold other things. Encode them "
            "(pandas.get_dummies), and set_index(...) a column of ids."
        )
    numbers = [each for each in columns if each is not None]
    return frame.index.tolist(), np.column_stack([*numbers, np.zeros((len(frame), 0))])


def _as_numbers(values, noun="user_features"):
    """Return values as an array of floats; ValueError names the argument that holds others."""
    values = fill_masked(values)
    numbers: np.ndarray | None
    try:
        numbers = np.asarray(values)
    except ValueError:  # lists of unequal lengths
        numbers = None
    if numbers is not None and numbers.dtype.kind == "O":
        numbers = column_floats(numbers) if numbers.ndim == 1 else None
    if numbers is None or numbers.dtype.kind not in "biuf":
        raise ValueError(f"user_features must be {_FORMS}; got {noun} as {_abbreviate(values)}.")
    return numbers.astype(np.float64)


def _abbreviate(values):
    """Return the text of values, cut to 60 letters."""
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:56]} ..."
