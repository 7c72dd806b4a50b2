"""What a fitted model says of many items at once, and which of their features matter."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skpref._importance import permutation_importance
from skpref._inspected import Inspected, noise_deviation
from skpref._linalg import Array
from skpref._parameters import check_number
from skpref._random import RandomLike

__all__ = ["leaderboard", "permutation_importance"]

# Draws are ranked in blocks of at most this many numbers (8 MiB).
_BLOCK = 2**20


def leaderboard(
    model: Any,
    items: Any = None,
    *,
    level: float = 0.9,
    n_draws: int = 10_000,
    random_state: RandomLike = 0,
) -> Bunch:
    """Items from best to worst, and how sure their places are.

    Answers tell differences of utilities alone, so the mean of the items shown is zero: an
    interval is one of f(item) minus the mean of f over ``items``. Intervals of two items that
    overlap do not say that their order is open; `Posterior.win_probability` with ``noise=False``
    does.

    Parameters
    ----------
    model : estimator, pipeline, optimizer or Posterior
        Anything fitted that has a ``posterior_``, or that posterior.
    items : ItemTable, DataFrame, array-like of shape (n, n_features), names or positions, \
default=None
        As the model's ``predict`` takes them (of an optimizer: as it shows them). None: the table
        of the model, else its training items.
    level : float, default=0.9
        Probability that an interval holds, of each item for itself.
    n_draws : int, default=10000
        Joint draws of the utilities, for ranks and the probability of being best.
    random_state : int, RandomState instance, Generator or None, default=0

    Returns
    -------
    board : Bunch
        Arrays of shape (n,), the largest posterior mean first.

        names : names of the items, or their positions where they have none
        position : row of each in ``items``
        utility : posterior mean, above the mean of the items
        lower, upper : central interval of that difference
        probability_best : probability of the largest utility, summing to 1
        rank_lower, rank_upper : central interval of the rank, which holds at least ``level``
        frame : DataFrame of these, one row a rank, where pandas is installed, else None
        level : float
        noise_deviation : σ, the standard deviation of the noise of an item in an answer, of a
            likelihood that has it, else None; only utilities in this unit are identified

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If there is no item, or ``level`` does not lie in (0, 1).

    Notes
    -----
    Intervals take the hyperparameters as known. Where they were learned, utilities are told up to
    a common factor that nobody knows, and intervals hold their level in units of the noise, divided
    by ``noise_deviation``; with few answers an item also these are too short.

    ``utility``, ``lower`` and ``upper`` are exact for the posterior. The rest is Monte Carlo: the
    standard error of a probability p is √(p(1 − p)/n_draws), at most 0.005 by default; the ends
    of a rank interval are quantiles whose level is known to 0.002. Items of equal features have
    one utility; they share their probability of being best, and their rank intervals have room
    for either order. Time and memory grow as n² + n · n_draws, that of one factorisation as n³.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import leaderboard
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> board = leaderboard(model.fit(games))
    >>> print(*board.names, board.utility.round(2))
    ann bob cid [ 0.92 -0.15 -0.77]
    >>> board.rank_lower.tolist(), board.rank_upper.tolist()
    ([1, 1, 2], [2, 3, 3])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("n_draws", n_draws, low=1, integer=True)
    subject = Inspected.of(model)
    rows, names = subject.items(items)
    relative = subject.relative(rows, level)
    # Rounding must not rank items that are one and the same.
    distinct, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    draws = subject.posterior.sample(distinct, n_draws, random_state)
    best, ranks = _ranked(draws, counts)
    low, high = _central(ranks, level)
    order = np.argsort(-relative.mean, kind="stable")
    at = inverse[order]
    columns = {
        "names": order if names is None else names[order],
        "utility": relative.mean[order],
        "lower": relative.lower[order],
        "upper": relative.upper[order],
        "probability_best": best[at],
        "rank_lower": low[at],
        "rank_upper": (high + counts - 1)[at],
    }
    return Bunch(
        **columns,
        position=order,
        frame=_frame(columns),
        level=level,
        noise_deviation=noise_deviation(subject.posterior),
    )


def _ranked(draws: Array, counts: NDArray[np.intp]) -> tuple[Array, NDArray[np.int32]]:
    """Probability of being best of each copy of an item, and ranks (n, n_draws) from 1.

    Parameters
    ----------
    draws : ndarray of shape (n, n_draws)
    counts : ndarray of shape (n,)
        Copies of each item; the rank is that of the first of them.
    """
    n, n_draws = draws.shape
    ranks = np.empty((n_draws, n), dtype=np.int32)
    wins = np.zeros(n)
    step = max(1, _BLOCK // n)
    for start in range(0, n_draws, step):
        block = slice(start, start + step)
        order = np.argsort(-draws[:, block].T, axis=1)
        wins += np.bincount(order[:, 0], minlength=n)
        copies = counts[order]
        first = np.cumsum(copies, axis=1) - copies + 1
        np.put_along_axis(ranks[block], order, first.astype(np.int32), axis=1)
    return wins / (n_draws * counts), ranks.T


def _central(ranks: NDArray[np.int32], level: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Quantiles of the ranks of each item, outside of which lies at most 1 − level."""
    n_draws = ranks.shape[1]
    outside = int(np.floor(0.5 * (1.0 - level) * n_draws + 1e-9))
    ends = (outside, n_draws - 1 - outside)
    ordered = np.partition(ranks, ends, axis=1)
    return ordered[:, ends[0]], ordered[:, ends[1]]


def _frame(columns: dict) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return None
    n = len(columns["names"])
    return pd.DataFrame(columns, index=pd.RangeIndex(1, n + 1, name="rank"))
