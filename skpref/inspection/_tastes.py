"""How users' utilities differ, in the two directions in which they differ most."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skpref._utils import (
    BLOCK,
    NEGLIGIBLE,
    Array,
    PrintableBunch,
    check_choice,
    leading_axes,
    row_blocks,
)
from skpref.data import ParsedX, object_array, table_frame
from skpref.fitting import UNITS, last_step, unit_length
from skpref.inspection._contenders import contenders


def user_tastes(
    model: Any,
    items: Any = None,
    *,
    users: ArrayLike | None = None,
    at: Mapping | ArrayLike | None = None,
    unit: str = "noise",
) -> Bunch:
    r"""Return users and items in the plane in which the users' utilities differ most.

    Each user's posterior mean utility of the items, less that of the population and less its mean
    over the items, is a row of a matrix. Its first two principal directions are the axes: user u
    differs from the population by about :math:`x_u l_i + y_u m_i` at item i, where (x, y) is where
    the user stands and (l, m) where the item points to (a biplot, Gabriel, Biometrika 1971).

    Parameters
    ----------
    model : estimator, pipeline or search
        A `CollaborativePreferenceRegressor`, fitted with ``users``.
    items, at
        The items, as in `leaderboard`. None: those that were learned from.
    users : array-like, default=None
        Ids of the users. None: all that were fitted.
    unit : {"noise", "elo", "logit"}, default="noise"
        See `leaderboard`.

    Returns
    -------
    tastes : Bunch
        users : ndarray of shape (n_users,)
        tastes : ndarray of shape (n_users, 2)
            Where the users stand, in units: the root mean square, over the items, of what moves
            their utility along an axis.
        covariance : ndarray of shape (n_users, 2, 2)
            Posterior covariance of these.
        names : ndarray of shape (n_items,)
        loadings : ndarray of shape (n_items, 2)
            What one along each axis adds to the utility of an item; their mean square is one.
        share : ndarray of shape (2,)
            Of the differences between the users' posterior means, what each axis holds.
        unit : str
        frame : DataFrame of ``tastes``, where pandas is installed, else None

    Raises
    ------
    ValueError
        If the model has no users, users do not differ, or there are fewer than two or three items.

    Notes
    -----
    The axes are those of posterior means, which are drawn to the population where a user has few
    answers. A user's covariance is that of the own utility along the axes, in which what is not
    known of the population counts too. Signs are such that the largest loading is positive. Time
    grows as the number of users times the square of that of the items.

    Examples
    --------
    >>> from skpref import CollaborativePreferenceRegressor
    >>> from skpref.inspection import user_tastes
    >>> duels = [["tea", "milk"], ["tea", "coffee"], ["coffee", "tea"], ["coffee", "milk"]] * 3
    >>> people = ["ann", "ann", "bob", "bob"] * 3
    >>> model = CollaborativePreferenceRegressor(optimizer=None).fit(duels, users=people)
    >>> found = user_tastes(model)
    >>> found.users.tolist(), found.tastes.shape, found.names.tolist()
    (['ann', 'bob'], (2, 2), ['tea', 'milk', 'coffee'])
    >>> bool(found.tastes[0, 0] * found.tastes[1, 0] < 0.0)  # they differ in opposite directions
    True
    """
    check_choice("unit", unit, tuple(UNITS))
    last = _check_several_users(last_step(model))
    who = last.users_ if users is None else _user_array(users)
    ranked = contenders(model, items, user=who[0], at=at)
    n, _, width = ranked.rows.shape
    if n < 3:
        raise ValueError(
            f"got {n} items; two directions of taste need three at least. Name more items."
        )
    rows = ranked.rows.reshape(-1, width)
    sums = np.kron(np.eye(n), ranked.shares)  # averages of rows
    length = unit_length(last.posterior_, unit)
    everyone = sums @ last.posterior_.mean(ParsedX("items", rows)) / length
    own = _user_means(last, who, rows) @ sums.T / length
    away = own - everyone
    away -= away.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.mean((own - own.mean(axis=1, keepdims=True)) ** 2))
    total = np.sum(away**2)
    if total <= away.size * NEGLIGIBLE * max(scale, 1.0) ** 2:
        raise ValueError(
            "All these users have the same utility in this model, so that there are no tastes to "
            f"show: method={last.method!r}. Take a method with tastes of each user, such as 'auto'."
        )
    axes = leading_axes(away.T @ away, 2).T
    held = np.sum((away @ axes.T) ** 2, axis=0) / total
    axes[held <= NEGLIGIBLE] = 0.0  # of fewer users than directions
    axes *= np.where(axes[[0, 1], np.abs(axes).argmax(axis=1)] < 0.0, -1.0, 1.0)[:, None]
    tastes = away @ axes.T / np.sqrt(n)
    project = (axes - axes.mean(axis=1, keepdims=True)) @ sums / (np.sqrt(n) * length)
    covariance = np.stack([_projection_covariance(last, user, rows, project) for user in who])
    return PrintableBunch(
        users=who,
        tastes=tastes,
        covariance=covariance,
        names=ranked.names,
        loadings=np.sqrt(n) * axes.T,
        share=held,
        unit=unit,
        frame=table_frame({"first": tastes[:, 0], "second": tastes[:, 1]}, list(who)),
    )


def _check_several_users(last: Any) -> Any:
    """Return an estimator; ValueError unless it was fitted to several users."""
    if not len(getattr(last, "users_", ())) or not hasattr(last.posterior_, "of"):
        raise ValueError(
            f"{type(last).__name__} has one utility for all. Tastes are of a "
            "CollaborativePreferenceRegressor that was fitted with users=."
        )
    return last


def _user_array(users: Any) -> NDArray[Any]:
    """Return users as an array of objects; ValueError if there are none."""
    listed = users.tolist() if hasattr(users, "tolist") else list(users)
    if not listed:
        raise ValueError("users is empty; name one at least, or leave it out for all.")
    return object_array(listed)


def _user_means(last: Any, who: NDArray[Any], rows: Array) -> Array:
    """Return posterior means of users' utilities of rows, (n_users, n_rows)."""
    means = np.empty((len(who), len(rows)))
    for some in row_blocks(len(who), rows.size, BLOCK):
        posterior = last.posterior_for(np.repeat(who[some], len(rows)))
        every = posterior.mean(ParsedX("items", np.tile(rows, (len(means[some]), 1))))
        means[some] = every.reshape(-1, len(rows))
    return means


def _projection_covariance(last: Any, user: Any, rows: Array, project: Array) -> Array:
    """Return the posterior covariance of projections of a user's utilities of rows."""
    posterior = last.posterior_for(object_array([user] * len(rows)))
    return project @ posterior.cov(ParsedX("items", rows)) @ project.T
