"""Values as they are kept and handed out: plain Python's, and nobody else's to change."""

from copy import deepcopy
from typing import Any

import numpy as np

from skpref.data import is_frame

_UNCHANGING = str | int | float | bool | bytes | None


def plain(value: Any) -> Any:
    """The value without numpy in it: scalars and arrays become numbers, texts and lists.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize._values import plain
    >>> plain([np.int64(1), (np.str_("a"), np.arange(2))])
    [1, ('a', [0, 1])]
    """
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in "biufSU":  # .item() would make a date a number
            return plain(value.tolist()) if value.ndim else value
        return value.astype(np.float64).tolist() if value.dtype.kind == "f" else value.tolist()
    if type(value) in (list, tuple):
        return type(value)(plain(part) for part in value)
    if type(value) is dict:
        return {key: plain(part) for key, part in value.items()}
    return value


def copied(value: Any) -> Any:
    """A deep copy, or the value itself where a copy would not be recognised as equal.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize._values import copied
    >>> kept = (np.zeros(2), {"kind": ["a", "b"]})
    >>> found = copied(kept)
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
        return {key: copied(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
    try:
        copy = deepcopy(value)
        same = bool(copy == value)
    except Exception:  # whatever the value's own methods raise
        return value
    return copy if same else value


def titled(item: Any) -> str:
    """An item in few letters, for tables and pictures.

    Examples
    --------
    >>> from skpref.optimize._values import titled
    >>> titled({"dose": 3.14159, "kind": "green"}), titled([0.5, 10.0])
    ('dose=3.142, kind=green', '(0.5, 10)')
    """

    def short(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    if hasattr(item, "items"):
        return ", ".join(f"{name}={short(value)}" for name, value in item.items())
    return f"({', '.join(map(short, plain(list(item))))})"


def listed(items: Any, names: list | None) -> Any:
    """Rows of a frame, as dicts if ``names`` are given, else as arrays; all else as it is."""
    if not is_frame(items):
        return items
    rows = items.to_numpy()
    if names is None:
        return rows
    return [dict(zip(items.columns, row, strict=True)) for row in rows.tolist()]


def vector(item: Any, n: int) -> np.ndarray:
    """An item as n finite numbers, or ValueError."""
    try:
        values = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"An item must be {n} numbers, got {item!r}.") from None
    if values.shape != (n,):
        raise ValueError(f"An item must have shape ({n},), got {values.shape}.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"An item holds NaN or infinity: {values}.")
    return values
