"""Which items the answers join, so that they may be compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from skpref.data import table_frame
from skpref.fitting import components_in_words
from skpref.inspection._contenders import contenders


def connected_items(
    model: Any,
    items: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
) -> Bunch:
    """Number the group of each item: items of different groups the prior alone compares.

    Two items are of one group if a chain of answers leads from one to the other, whoever gave
    these, in which order, at which time, and with whatever controls: duels, ties, choices and
    rankings, of which each compares all items that it ranks. An answer of weight 0 is none.

    Beside answers the kernel joins two groups if answers of one tell something of the utilities in
    the other: an RBF or a linear kernel of the items' features does, where the features matter and
    are within its reach. Effects of ids or names (`skpref.kernels.Identity`, `ItemEffect`),
    constants, drifts, and columns that change from answer to answer, such as controls and groups of
    answers, join nothing.

    Parameters
    ----------
    model : estimator, pipeline, search, optimizer, learner or Posterior
        Anything fitted that has a ``posterior_``, or that posterior.
    items, user, at
        As in `leaderboard`. Of a `CollaborativePreferenceRegressor` the answers of all users count,
        as these share tastes; of one with ``method="su"`` those of ``user``.

    Returns
    -------
    connected : Bunch
        names : ndarray of shape (n,), in the order of ``items``, as `leaderboard` names them
        component : ndarray of int of shape (n,), the group of each, from 0; the largest is 0, of
            equally large ones that whose item comes first
        sizes : ndarray of int of shape (n_components,)
        n_components : int, 1 where all items may be compared
        frame : DataFrame with names and components where pandas is installed, else None

    Raises
    ------
    TypeError, ValueError
        As by `leaderboard`.

    Notes
    -----
    The answers cannot tell the level of one group from that of another: with utilities that are
    independent between groups, adding a constant to all utilities of one changes no probability of
    any answer. Without more the zero mean of the prior would set these levels, whatever they are.
    A kernel joins two groups here if a margin within one of them takes at least 1 % of the variance
    of a margin across. An item that is in no answer belongs to the group that tells most of it, and
    joins no others. What a `Posterior` of items with features alone was told is not known: its
    items are one group.

    Time is linear in the number of items and answers. Where a kernel of features must be asked, it
    is evaluated until all is joined: at few items beside all others, as a rule, and at all pairs
    where it joins nothing.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import connected_items
    >>> games = [["ann", "bob"], ["bob", "cid"], ["dan", "eve"]]
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> connected = connected_items(model.fit([*games, ["cid", "dan"]]))
    >>> connected.n_components
    1
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # of two groups
    ...     connected = connected_items(model.fit(games))
    >>> connected
    2 groups of items: 3 (ann, bob, cid) and 2 (dan, eve)
    >>> connected.component.tolist()
    [0, 0, 0, 1, 1]
    """
    ranked = contenders(model, items, user, at)
    component = ranked.components()
    columns = {"names": ranked.names, "component": component}
    return _Connected(
        **columns,
        sizes=np.bincount(component),
        n_components=int(component.max()) + 1,
        frame=table_frame(columns, range(len(component))),
    )


class _Connected(Bunch):
    """Items with their groups, which say how many there are."""

    def __repr__(self) -> str:
        return components_in_words(self["names"], self["component"])
