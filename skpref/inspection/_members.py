"""Which answers are about an item, by a judge, on a prompt, or at a time."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref.data import ItemTable, group_rows
from skpref.fitting import Inspected, last_step
from skpref.metrics import group_codes

_KINDS = ("item", "judge", "prompt", "time")


@dataclass(frozen=True, eq=False)
class GroupMembers:
    """Groups of answers.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
    answers : list of ndarray of int
        Numbers of the answers in each, ascending.
    """

    names: NDArray[Any]
    answers: list[NDArray[np.intp]]

    @classmethod
    def from_model(cls, model: Any, by: str | ArrayLike) -> Self:
        """Return the groups of a fit's answers by what they share, or by given values.

        Raises
        ------
        ValueError
            If the answers have no such groups.
        """
        last = last_step(model)
        answers = last.comparisons_
        n = len(answers.positions)
        if not isinstance(by, str):
            return cls._of_codes(*group_codes(by, n))
        if by not in _KINDS:
            raise ValueError(
                f"got by={by!r}; {', '.join(map(repr, _KINDS))} or the group of each answer are "
                "allowed. Give one of these."
            )
        if by == "item":
            names, code = item_codes(model)
            shown = answers.positions
            at, side = np.nonzero(shown >= 0)
            pairs = np.unique(np.column_stack([code[shown[at, side]], at]), axis=0)
            return cls(
                names, np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], range(1, len(names))))
            )
        first = answers.items[answers.positions[:, 0]]
        judges = getattr(last, "judges_", None)
        reader = last.posterior_.reader
        if by == "judge" and judges is not None:
            return cls._of_codes(judges.ids, answers.judge)
        if by == "prompt" and answers.group_column is not None and reader.prompts is not None:
            codes = first[:, answers.group_column].astype(np.intp)
            return cls._of_codes(reader.prompts.names, codes)
        if by == "time" and reader.time is not None:
            times = reader.time.times(first[:, reader.n_features])
            return cls._of_codes(*group_codes(times, n))
        raise ValueError(
            f"got by={by!r}, of which the fit knows none (prompts of one answer each count as "
            "none). Fit with it, or give the group of each answer."
        )

    @classmethod
    def _of_codes(cls, names: NDArray[Any], code: NDArray[np.intp]) -> Self:
        """Return groups by the number of the group of each answer."""
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], range(1, len(names)))
        return cls(names, np.split(order, ends))


def item_codes(model: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the names of the items of a fit, and the number of the item that each row is of."""
    last = last_step(model)
    subject = Inspected.from_model(model)
    reader = last.posterior_.reader
    rows = last.comparisons_.items[:, : reader.n_features]
    if subject.id_place is not None:
        first, code = group_rows(rows[:, [subject.id_place]])
        names = subject.ids(rows[first])
        return np.asarray(names, dtype=object), code
    first, code = group_rows(rows)
    table: ItemTable | None = reader.table
    if table is not None:
        every = group_rows(np.concatenate([table.X, rows[first]]))[1]
        place = np.full(every.max() + 1, -1)
        place[every[: len(table)]] = np.arange(len(table))
        at = place[every[len(table) :]]
        if np.all(at >= 0):
            return (at if table.names is None else np.asarray(table.names)[at]), code
    return np.arange(len(first)), code
