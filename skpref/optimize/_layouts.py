"""What a question may look like: the layouts that `ask` allows, and the choice among several."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skpref._utils import check_choice, check_number
from skpref.optimize._state import GridForm, Layout


class Kind(NamedTuple):
    """A kind of question.

    Attributes
    ----------
    size : int
        The usual one.
    size_of_several : int
        The usual one where several kinds are allowed: a set is then no duel.
    smallest : int
    n_axes : int
        Along which its items lie.
    """

    size: int
    size_of_several: int
    smallest: int
    n_axes: int


KINDS = {
    "duel": Kind(2, 2, 2, 0),
    "set": Kind(2, 4, 2, 0),
    "line": Kind(9, 9, 3, 1),
    "plane": Kind(5, 5, 2, 2),
}
# So many answers a dimension are of the largest kind that is allowed. By then an answer to a plane
# or line tells no more than one to a duel (doc/questions.md), and there is more to look at.
_EARLY = 4


def read_layouts(kind: Any, size: Any, space: Any) -> tuple[Layout, ...]:
    """Return the layouts of questions that ``kind`` and ``size`` of `ask` allow, checked.

    Parameters
    ----------
    kind : str, or sequence of them
    size : int or None; with several kinds a dict of them by kind, or None
    space : Space

    Returns
    -------
    tuple of Layout
        One of each kind, in the order of the kinds.

    Raises
    ------
    TypeError, ValueError
        If a kind or a size is none, or the space has no questions of that kind.
    """
    if isinstance(kind, str):
        return (_read_layout(kind, size, space),)
    if not isinstance(kind, list | tuple) or not len(kind):
        raise TypeError(
            f"kind must be one of {[*KINDS]}, or a tuple of some of them, got {kind!r}."
        )
    for each in kind:
        check_choice("kind", each, [*KINDS])
    sizes = {} if size is None else size
    if not isinstance(sizes, Mapping) or not sizes.keys() <= set(kind):
        raise ValueError(
            f"With kind={kind!r} size must be a dict of the sizes of some of these kinds, such as "
            f"{{{kind[-1]!r}: 5}}, or None, got {size!r}."
        )
    sizes = {name: each.size_of_several for name, each in KINDS.items()} | dict(sizes)
    return tuple(dict.fromkeys(_read_layout(each, sizes.get(each), space) for each in kind))


def read_layouts_beside(kind: Any, size: Any, space: Any, n: int) -> tuple[Layout, ...]:
    """Return the layouts of questions that begin with n given items, checked."""
    if kind not in ("set", "duel"):
        raise ValueError(
            f"beside= holds items of a set or a duel; got kind={kind!r}. Of a line or a plane "
            "all points are chosen together: leave beside= out, or kind=."
        )
    if not n:
        raise ValueError("beside= holds no items. Give one or more of them, or leave it out.")
    layouts = read_layouts(kind, n + 1 if size is None and kind == "set" else size, space)
    if layouts[0].size <= n:
        raise ValueError(
            f"Of {layouts[0].size} items of a question beside= gives {n}, which leaves none to be "
            f"chosen. Give fewer, or size={n + 1}."
        )
    return layouts


def _read_layout(kind, size, space):
    """Return the layout of a kind of question, None being its usual size; ValueError for others."""
    check_choice("kind", kind, [*KINDS])
    usual, _, smallest, n_axes = KINDS[kind]
    size = usual if size is None else int(check_number("size", size, low=smallest, integer=True))
    if kind == "duel" and size != 2:
        raise ValueError(f"A duel has two items, got size={size}. Use kind='set' for more.")
    if not n_axes:
        if space.pool is not None and size > len(space.pool):
            raise ValueError(
                f"size={size} items are to be shown, and there are {len(space.pool)} different "
                "candidates. Ask for fewer, or give more candidates."
            )
        return Layout(size)
    if space.pool is not None:
        raise ValueError(
            f"kind={kind!r} needs a space between whose items there are others; candidates= is a "
            "pool. Ask for sets, ask(size=4), or give space=."
        )
    if np.count_nonzero(space.ordered) < n_axes:
        raise ValueError(
            f"kind={kind!r} needs {n_axes} parameter(s) with an order, numbers or integers, and "
            f"the space has {np.count_nonzero(space.ordered)}. Ask for sets, ask(size=4)"
            f"{'' if n_axes == 1 else ', or for lines'}."
        )
    form = GridForm(kind, size)
    return Layout(int(np.prod(form.shape)), form)


def best_layout(layouts: Sequence[Layout], n_told: int, n_dimensions: int) -> Layout:
    """Return the largest layout for early questions, and the smallest for later ones.

    Of equal ones the first.
    """
    early = n_told < _EARLY * n_dimensions
    return (max if early else min)(layouts, key=lambda each: each.size)
