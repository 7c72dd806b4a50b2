"""Groups of items that answers join, connected components; groups of answers with a board each."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from skpref._utils import Array
from skpref.data._comparisons import MeasuredValues, Rows
from skpref.data._items import distinct_rows, group_rows
from skpref.data._sets import first_item_places

# More groups of answers than this need as many answers each.
_MANY_GROUPS, _FEW_ANSWERS = 20, 5


def check_groups_repeat(column: Any, n_groups: int, n_answers: float) -> None:
    """Raise ValueError for groups of answers that are too many, beside these, for a board each."""
    if n_groups > _MANY_GROUPS and n_answers < _FEW_ANSWERS * n_groups:
        raise ValueError(
            f"{column!r} has {n_groups} values in {n_answers:.0f} votes, too many for a board "
            "each. Give by= a column of categories, or put its values into groups."
        )


def component_labels(n_items: int, positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of the connected component of each item, where answers join items.

    Parameters
    ----------
    n_items : int
    positions : ndarray of int of shape (n_answers, k)
        -1 where there is no item.

    Returns
    -------
    ndarray of int of shape (n_items,)
        Time is linear in the number of items and answers.
    """
    lead = positions[np.arange(len(positions)), first_item_places(positions)]
    begins, ends = np.broadcast_arrays(lead[:, None], positions)
    present = (ends >= 0) & (ends != begins)
    places = begins[present], ends[present]
    edges = coo_array((np.ones(len(places[0])), places), shape=(n_items, n_items))
    label: NDArray[np.intp] = connected_components(edges, directed=False)[1].astype(np.intp)
    return label


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Items that are in an answer, and the group of each: answers join the items of a group.

    Attributes
    ----------
    keys : ndarray of shape (n_items, n_columns)
        Who an item is: its id, its position in a table, or all of its features.
    label : ndarray of int of shape (n_items,)
        Number of the group.
    """

    keys: Array
    label: NDArray[np.intp]

    @classmethod
    def from_keys(
        cls,
        keys: Array,
        rows: Rows,
        earlier: Self | None = None,
        measured: MeasuredValues | None = None,
    ) -> Self:
        """Return the groups of items that answers, measured values and earlier groups join.

        Parameters
        ----------
        keys : ndarray of shape (n, n_columns)
            Of the items of the answers; equal rows are one item.
        rows : Rows
            Inequalities and ties of the answers. One of weight 0 is not among these, nor an item of
            which nothing is said.
        earlier : ItemGroups, optional
        measured : MeasuredValues, optional
        """
        pairs = np.column_stack([rows.first, rows.second])
        if measured is not None:
            joined = np.column_stack([measured.item, np.roll(measured.item, 1)])
            pairs = np.concatenate([pairs, joined])
        if earlier is not None:
            first = np.unique(earlier.label, return_index=True)[1][earlier.label]
            earlier_pairs = np.column_stack([np.arange(len(first)), first]) + len(keys)
            pairs, keys = (
                np.concatenate([pairs, earlier_pairs]),
                np.concatenate([keys, earlier.keys]),
            )
        distinct, code = distinct_rows(keys)
        return cls(distinct, component_labels(len(distinct), code[pairs]))

    def labels_of(self, keys: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the group of each of some items, and whether an answer is about it.

        Each distinct item that is in no answer has a group of its own.
        """
        n = len(self.keys)
        first, code = group_rows(np.concatenate([self.keys, keys]))
        n_labels = int(self.label.max(initial=-1)) + 1
        label = n_labels + np.arange(len(first))
        label[code[:n]] = self.label
        of_items = label[code[n:]]
        return of_items, of_items < n_labels
