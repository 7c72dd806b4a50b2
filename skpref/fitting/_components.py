"""Which items may be compared: those that answers join, or the kernel beside them."""

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import BLOCK, Array, printable_text, row_blocks
from skpref.data import ItemGroups, group_rows
from skpref.kernels import features_part, kernel_values

# The least share of the variance of a margin across two groups that a margin within one of them
# takes, if the kernel joins the two: below it features that explain next to nothing, or items many
# lengthscales apart, would join what nobody compared.
_LEAST_SHARE = 0.01
# Groups, or names, that a sentence has room for.
NAMED = 3


def component_of_rows(
    kernel: Kernel,
    groups: ItemGroups,
    answered_rows: Array,
    rows: Array,
    id_place: int | None,
    time_place: int | None,
    of_answers: set[int],
) -> NDArray[np.intp]:
    """Number the component of each row: items of different ones the prior alone compares.

    Answers join the items that they compare, and an item with itself, whatever the other columns
    or the time. Beside them the kernel joins two groups if a margin within one of them tells of an
    utility in the other: features do, effects of names and constants do not. An item that is in no
    answer is of the group that tells most of it.

    Parameters
    ----------
    kernel : Kernel
    groups : ItemGroups
        Of the answers.
    answered_rows : ndarray of shape (n_answered, n_columns)
        Items of the answers.
    rows : ndarray of shape (n, n_columns)
    id_place, time_place : int or None
        Columns of ids and of times.
    of_answers : set of int
        Columns that belong to answers, not to items: these are held when items are compared.

    Returns
    -------
    ndarray of int of shape (n,)
        Numbers of the components, in no order.
    """
    every = np.concatenate([answered_rows, rows])
    width = every.shape[1] - (time_place is not None)
    keys = every[:, :width] if id_place is None else every[:, [id_place]]
    label, answered = groups.labels_of(keys)
    part = features_part(kernel, every.shape[1], id_place, time_place)
    if part is not None and len(np.unique(label)) > 1:
        first, code = group_rows(keys)
        held = every[first]
        for column in of_answers | {time_place} - {None}:
            held[:, column] = held[0, column]
        label = _Joining(kernel, part, held, label[first], answered[first]).labels()[code]
    return label[len(answered_rows) :]


class _Joining:
    """Components of items, merged where the kernel lets the utility of one tell of another's.

    Parameters
    ----------
    kernel, part : Kernel
        All of it, and the terms by which items share something.
    rows : ndarray of shape (n, n_columns)
        Each item once.
    label : ndarray of int of shape (n,)
    answered : ndarray of bool of shape (n,)
    """

    def __init__(
        self,
        kernel: Kernel,
        part: Kernel,
        rows: Array,
        label: NDArray[np.intp],
        answered: NDArray[np.bool_],
    ) -> None:
        self._part, self._rows, self._answered = part, rows, answered
        _, first, self._label = np.unique(label, return_index=True, return_inverse=True)
        self._label = self._label.reshape(-1)
        # Margins within a group are those from its first item.
        self._head = first[self._label]
        self._own = kernel.diag(rows)
        shared = kernel_values(part, rows, rows[self._head], aligned=True)
        self._within = np.where(
            self._head == np.arange(len(rows)), 0.0, self._own + self._own[self._head] - 2 * shared
        )

    def labels(self) -> NDArray[np.intp]:
        """Number the component of each item, joined where the kernel joins them."""
        merged = np.arange(self._label.max() + 1)
        waiting = np.flatnonzero(self._answered)
        while len(waiting):
            root = self._label[waiting[0]]
            inside = self._label[waiting] == root
            front, waiting = waiting[inside], waiting[~inside]
            while len(front) and len(waiting):
                step = max(1, BLOCK // len(waiting))
                block, front = front[:step], front[step:]
                share = np.maximum(self._shares(block, waiting), self._shares(waiting, block).T)
                next_labels = np.unique(self._label[waiting[share.max(axis=0) >= _LEAST_SHARE]])
                merged[next_labels] = root
                inside = np.isin(self._label[waiting], next_labels)
                front = np.concatenate([front, waiting[inside]])
                waiting = waiting[~inside]
        of_item: NDArray[np.intp] = merged[self._label]
        new, answered = np.flatnonzero(~self._answered), np.flatnonzero(self._answered)
        for rows in row_blocks(len(new), len(answered), BLOCK) if len(answered) else []:
            share = self._shares(answered, new[rows])
            best = share.argmax(axis=0)
            joined = share[best, np.arange(len(best))] >= _LEAST_SHARE
            of_item[new[rows][joined]] = of_item[answered[best[joined]]]
        return of_item

    def _shares(self, within: NDArray[np.intp], across: NDArray[np.intp]) -> Array:
        """Return the share of Var(f(y) − f(x)) that f(x) − f(head of x) takes by way of f(y).

        Of items x in rows and y in columns. What all utilities share has no part in it.
        """
        X, Y = self._rows[within], self._rows[across]
        heads, head = np.unique(self._head[within], return_inverse=True)
        shared = kernel_values(self._part, X, Y)
        of_heads = kernel_values(self._part, self._rows[heads], Y)
        covariance = shared - of_heads[head.reshape(-1)]
        between = self._own[within][:, None] + self._own[across] - 2.0 * shared
        scale = self._within[within][:, None] * np.maximum(between, 0.0)
        least = np.finfo(float).tiny
        # Two items of one and the same utility are joined.
        same = between <= 1e-12 * self._own[within][:, None]
        share: Array = np.where(scale > least, covariance**2 / np.maximum(scale, least), 0.0)
        return np.where(same, 1.0, share)


def components_in_words(names: NDArray, component: NDArray[np.intp], noun: str = "items") -> str:
    """Say in words how many components there are, and who is in them.

    Parameters
    ----------
    names : ndarray of shape (n,)
    component : ndarray of int of shape (n,)
        From 0, the largest first.
    noun : str, default="items"
        What is compared, in the plural.
    """
    sizes = np.bincount(component)
    n_large = int(np.count_nonzero(sizes > 1))

    def listed(members: NDArray[np.bool_]) -> str:
        some = [printable_text(name) for name in names[members][:NAMED].tolist()]
        return f"({', '.join(some)}{', …' if members.sum() > len(some) else ''})"

    shown = min(n_large, NAMED)
    parts = [f"{size} {listed(component == k)}" for k, size in enumerate(sizes[:shown].tolist())]
    if n_large > shown:
        parts.append(f"{sizes[shown:n_large].sum()} in {n_large - shown} more")
    if n_large < len(sizes):
        parts.append(f"{len(sizes) - n_large} alone {listed(component >= n_large)}")
    groups = f"{len(sizes)} group{'s' if len(sizes) > 1 else ''} of {noun}"
    *before, last = parts
    return f"{groups}: {', '.join(before)} and {last}" if before else f"{groups}: {last}"
