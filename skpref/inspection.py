"""Tables of many items by a fitted model, and the importance of features."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skpref._utils import Array, RandomLike, check_choice, check_number, generator_of, passed
from skpref.data import (
    Shown,
    column_at,
    column_names,
    first_wins,
    group_rows,
    is_frame,
    read,
    shown_together,
    take_rows,
    with_column,
)
from skpref.fitting import (
    UNITS,
    Inspected,
    estimator_of,
    explained,
    explained_estimator,
    noise_deviation,
    unit_length,
)
from skpref.gp import Posterior
from skpref.metrics import with_metadata


def permutation_importance(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    scoring: str | Callable | None = None,
    n_repeats: int = 5,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    judges: ArrayLike | None = None,
    order: ArrayLike | None = None,
    users: ArrayLike | None = None,
    random_state: RandomLike = 0,
) -> Bunch:
    """Importance of each feature of items: what the score loses once they have exchanged it.

    The distinct items of X exchange their values of one feature at random, so that an item has one
    value wherever it is shown, on either side of a duel. `sklearn.inspection` has a function of
    this name for two dimensions, where the two sides of a duel are different features.

    Parameters
    ----------
    model : fitted estimator, pipeline or search
    X, y : array-like
        Answers as the model's ``score`` takes them, best ones that it has not seen: duels, sets or
        rated items with features; positions or names where its ``items=`` have features.
    scoring : str or callable, default=None
        A name such as "neg_log_loss", or a scorer, which is told the metadata as by
        `skpref.metrics.with_metadata`. None: the model's ``score``.
    n_repeats : int, default=5
        How often each feature is exchanged.
    sample_weight, qid, judges, order, users : array-like of shape (n,), default=None
        What the answers carry. What `fit` was told has to be told here.
    random_state : int, RandomState instance, Generator or None, default=0

    Returns
    -------
    importance : Bunch
        importances_mean, importances_std : ndarray of shape (n_features,)
        importances : ndarray of shape (n_features, n_repeats)
            Score of X less that after the exchange.
        feature_names : ndarray of shape (n_features,) or None

    Raises
    ------
    ValueError
        If X has no features, or `fit` was told what is not told here.

    Notes
    -----
    The result depends neither on the order of the answers nor on which item of a duel stands first.
    Features that are alike share their importance, and each may then seem to have none. What both
    items of a duel have in common (its topic, say) differs between them after the exchange.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 2, 2))
    >>> y = X[:, 0, 0] > X[:, 1, 0]  # the first feature decides
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(X, y)
    >>> found = permutation_importance(model, X, y, scoring="neg_log_loss")
    >>> bool(found.importances_mean[0] > 10.0 * abs(found.importances_mean[1]))
    True
    """
    check_number("n_repeats", n_repeats, low=1, integer=True)
    told = passed(judges=judges, order=order, users=users)
    more = passed(sample_weight=sample_weight, qid=qid)
    value = _own_score if scoring is None else with_metadata(scoring, tuple(told))
    baseline = value(model, X, y, **told, **more)
    featured = _featured(model, X)
    rows, pairs, id_column = featured.rows, featured.pairs, featured.id_column
    first, inverse = group_rows(rows)
    distinct = take_rows(rows, first)
    rng = generator_of(random_state)
    losses = np.empty((distinct.shape[1], n_repeats))
    for j in range(len(losses)):
        for k in range(n_repeats):
            items = _exchanged(distinct, j, rng.permutation(len(first)))
            shown = _shown(items, inverse, pairs, id_column)
            losses[j, k] = baseline - value(model, shown, y, **told, **more)
    return Bunch(
        importances_mean=losses.mean(axis=1),
        importances_std=losses.std(axis=1),
        importances=losses,
        feature_names=_names(model, rows),
    )


def _own_score(model: Any, X: Any, y: Any, **metadata: Any) -> float:
    return model.score(X, y, **metadata)


def _featured(model: Any, X: Any) -> Shown:
    """Items of X with their features, and which of them were shown together."""
    last = getattr(model, "best_estimator_", model)
    last = last[-1] if hasattr(last, "steps") else last
    shown = read(X, table=getattr(last, "items_", None))
    table = shown.table
    if shown.kind == "texts" or (shown.kind != "items" and not table.has_features):
        raise ValueError(
            "X has no features that items could exchange: it holds "
            f"{'texts' if shown.kind == 'texts' else 'items of a table without features'}. Pass "
            "items with features; of texts, what the transformer before the model makes of them, "
            "and the model behind it."
        )
    if shown.kind != "items":
        places = shown.rows if shown.kind == "positions" else table.index(shown.rows)
        features = table.X if table.frame is None else table.frame
        shown = Shown("items", take_rows(features, places), shown.pairs)
    elif hasattr(shown.rows, "tocsr"):
        shown = Shown("items", shown.rows.toarray())
    return shown.used()


def _exchanged(items, feature, permutation):
    """Distinct items, each with another's value of a feature."""
    if is_frame(items):
        return with_column(items, feature, take_rows(column_at(items, feature), permutation))
    items = items.copy()
    items[:, feature] = items[permutation, feature]
    return items


def _shown(items, inverse, pairs, id_column):
    if pairs is None:
        return take_rows(items, inverse)
    return shown_together(items, np.where(pairs < 0, -1, inverse[pairs]), id_column)


def _names(model, rows) -> NDArray[Any] | None:
    named = column_names(rows) if is_frame(rows) else getattr(model, "feature_names_in_", None)
    return named if named is not None and len(named) == rows.shape[1] else None


__all__ = ["leaderboard", "permutation_importance", "win_rates", "without_item_effects"]

# Draws are ranked in blocks of at most this many numbers (8 MiB).
_BLOCK = 2**20


def leaderboard(
    model: Any,
    items: Any = None,
    *,
    user: Any = None,
    unit: str = "noise",
    level: float = 0.9,
    n_draws: int = 10_000,
    average: bool | str = "auto",
    random_state: RandomLike = 0,
) -> Bunch:
    """Items from best to worst, and how sure their places are.

    Answers tell differences of utilities alone, so the mean of the items shown is zero: an
    interval is one of f(item) minus the mean of f over ``items``. Intervals of two items that
    overlap do not say that their order is open; `Posterior.win_probability` with ``noise=False``
    does.

    Parameters
    ----------
    model : estimator, pipeline, search, optimizer, learner or Posterior
        Anything fitted that has a ``posterior_``, or that posterior.
    items : ItemTable, DataFrame, array-like of shape (n, n_features), names or positions, \
default=None
        As the model's ``predict`` takes them (of an optimizer: as it shows them). None: the table
        of the model or the candidates of an optimizer, else the items that answers are about.
    user : id, default=None
        Whose utility, of a `CollaborativePreferenceRegressor` that was fitted with users. An id
        that it does not know stands for somebody of the population.
    unit : {"noise", "elo", "logit"}, default="noise"
        Of utilities, see Notes.
    level : float, default=0.9
        Probability that an interval holds, of each item for itself.
    n_draws : int, default=10000
        Joint draws of the utilities, for ranks and the probability of being best.
    average : "auto", True or False, default="auto"
        Whether the board is a mean over hyperparameters, see Notes. "auto": where they were learned
        by an engine with evidence ("ep", "laplace"), from 5 000 distinct answers at most, and the
        mean is forecast to take seconds. False: at those of the fit, as if they were known.
    random_state : int, RandomState instance, Generator or None, default=0

    Returns
    -------
    board : Bunch
        Arrays of shape (n,), the largest posterior mean first.

        names : names or ids of the items, or their positions where they have neither
        position : row of each in ``items``
        utility : posterior mean, above the mean of the items, in units
        lower, upper : central interval of that difference
        probability_best : probability of the largest utility, summing to 1
        rank_lower, rank_upper : shortest interval of ranks that holds at least ``level``
        frame : DataFrame of these, one row a rank, where pandas is installed, else None
        level : float
        unit : str
        unit_length : one unit as a difference of the posterior's own utilities: times this,
            differences of ``utility`` are those of ``predict``
        noise_deviation : σ, the standard deviation of an item's noise, as such a difference; with
            judges that of the reference judge
        n_hyperparameters : hyperparameters that the board is a mean over, 1 if they are taken as
            known; ``unit_length`` and ``noise_deviation`` are those of the fit

    Raises
    ------
    TypeError
        If the model has no posterior, or users and ``user`` is not told.
    ValueError
        If there is no item, ``level`` does not lie in (0, 1), ``user`` is told and the model has
        no users, or ``average=True`` comes with users or an engine without evidence.

    Notes
    -----
    Answers tell the ratio of utilities to the noise, not their size, so that a unit is one of the
    noise. With d the difference of two utilities:

    - "noise": σ, the standard deviation of an item's noise. Of the probit the first wins with
      probability Φ(d/√2), as both items of a duel carry noise. Another likelihood has the σ of
      the probit of equal slope at d = 0 (``likelihood_.utility_noise``).
    - "logit": the expected score of a duel, a tie counting one half, has the slope of
      1/(1 + e⁻ᵈ) at d = 0, which is 1/4. Of a logistic likelihood without ties the two are one;
      of the probit d is √(8/π) = 1.596 times the difference in deviations of a margin's noise,
      and the probabilities differ by 0.018 at most. (The constant 1.702 would halve that, and be
      off where duels are nearly even.)
    - "elo": 400/ln 10 = 173.7 times the logits, so that the expected score is about
      1/(1 + 10^(−d/400)). The zero is the mean of the items, where lists of ratings often have
      1000 or 1500.

    Few answers leave hyperparameters open, and intervals that take those of the fit as known are
    too short, or far too long where the best are at an end. So the board is a mean over some
    points, weighed by evidence times prior. That has a weak prior on ratios to the noise beside the
    priors of the fit: on the deviation that a term of the kernel gives to the margins of the
    answers (median 1, deviation of the logarithm 1) and on thresholds (median 0.5). Where nothing
    was learned, or a `Posterior` came alone, that is the board. With judges their reliability stays
    as it is. `win_rates` and predictions are those of the fit.

    ``utility``, ``lower`` and ``upper`` are exact for the posterior. The rest is Monte Carlo: the
    standard error of a probability p is √(p(1 − p)/n_draws), at most 0.005 by default; the ends
    of a rank interval are quantiles whose level is known to 0.002. Items of equal features have
    one utility; they share their probability of being best, and their rank intervals have room
    for either order. Time and memory grow as n² + n · n_draws, that of one factorisation as n³; a
    mean over hyperparameters takes some 50 runs of the engine, the last of a warm start each.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import leaderboard
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> board = leaderboard(model.fit(games))
    >>> print(*board.names, board.utility.round(2))
    ann bob cid [ 1.3  -0.22 -1.09]
    >>> board.rank_lower.tolist(), board.rank_upper.tolist()
    ([1, 2, 2], [2, 3, 3])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_choice("unit", unit, tuple(UNITS))
    subject = Inspected.of(model, user)
    rows, names = subject.items(items)
    likelihood = subject.posterior.likelihood
    length = unit_length(likelihood, unit)
    over = subject.over_hyperparameters(average)
    relative = over.relative(rows, level, unit)
    # Rounding must not rank items that are one and the same.
    distinct, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    draws = over.sample(distinct, n_draws, random_state, unit)
    best, ranks = _ranked(draws, counts)
    low, high = _shortest(ranks, level)
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
        frame=_frame(columns, range(1, len(rows) + 1), name="rank"),
        level=level,
        unit=unit,
        unit_length=length,
        noise_deviation=noise_deviation(likelihood),
        n_hyperparameters=len(over.weights),
    )


def win_rates(model: Any, items: Any = None, *, user: Any = None, order: int = 0) -> Bunch:
    """How often each item is expected to beat each other one, the judge's noise included.

    Parameters
    ----------
    model, items, user
        As in `leaderboard`; with judges the rates are those of the reference judge.
    order : {0, 1, -1}, default=0
        Who is shown first, where there is an order effect: 1 the item of the row, -1 that of the
        column, 0 neither.

    Returns
    -------
    rates : Bunch
        The largest posterior mean first.

        names, position : as in `leaderboard`
        win : ndarray of shape (n, n), the probability that the item of the row beats that of the
            column
        tie : ndarray of shape (n, n), that of a tie; zero without ties
        score : ndarray of shape (n,), the mean over the other items of ``win`` + ½ ``tie``; NaN
            of a single item
        frame : DataFrame of ``win``, named along both sides, where pandas is installed, else None

    Notes
    -----
    ``win`` + ``win.T`` + ``tie`` is one where ``order`` is 0. On the diagonal stands a duel between
    two items that are equal. They are averages over the posterior, so that two items of which
    little is known meet at about even chances. Time grows as n² times the number of items that
    answers are about.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import win_rates
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> rates = win_rates(model.fit(games))
    >>> rates.names.tolist(), rates.win.round(2).tolist()
    (['ann', 'bob', 'cid'], [[0.5, 0.79, 0.88], [0.21, 0.5, 0.67], [0.12, 0.33, 0.5]])
    """
    check_number("order", order, low=-1, high=1, integer=True)
    subject = Inspected.of(model, user)
    rows, names = subject.items(items)
    n = len(rows)
    by_mean = np.argsort(-subject.at(n).mean(rows), kind="stable")
    rows, names = rows[by_mean], by_mean if names is None else names[by_mean]
    # With neither shown first, one half of the table follows from the other.
    i, j = np.triu_indices(n) if order == 0 else np.divmod(np.arange(n * n), n)
    told = np.exp(subject.at(len(i)).outcome_log_proba(rows[i], rows[j], np.full(len(i), order)))
    win, tie = np.empty((n, n)), np.zeros((n, n))
    if order == 0:
        win[j, i] = first_wins(told[:, ::-1])
    win[i, j] = first_wins(told)
    if told.shape[1] % 2:  # a tie is in the middle
        tie[i, j] = told[:, told.shape[1] // 2]
        if order == 0:
            tie[j, i] = tie[i, j]
    scores = win + 0.5 * tie
    against = scores.sum(axis=1) - np.diagonal(scores)
    score = against / (n - 1) if n > 1 else np.full(1, np.nan)
    frame = _frame(win, list(names), list(names))
    return Bunch(names=names, position=by_mean, win=win, tie=tie, score=score, frame=frame)


def without_item_effects(model: Any) -> Any:
    """The model of the utility that features explain, without the effects of single items.

    The default kernel gives items that meet several opponents an effect each, beside what their
    features explain. A curve along a feature then has a spike wherever it passes an item, and a
    band that stays wide between them. The returned model has neither: for partial dependence, for
    curves of one's own, for the worth of features. `skpref.plotting.UtilityDisplay` uses it.

    Parameters
    ----------
    model : estimator, pipeline, search or Posterior
        Fitted; it is left as it is.

    Returns
    -------
    model : estimator, pipeline or Posterior
        A copy whose ``posterior_`` is that of g, where the utility is g plus item effects: terms of
        the kernel that are `skpref.kernels.ItemEffect`, `skpref.kernels.Identity` on all columns or
        on that of the ids, or scikit-learn's ``WhiteKernel``. Of a search its best estimator. Where
        there are none, nothing is changed.

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If its items have effects alone, as those that have no features.

    Examples
    --------
    >>> from sklearn.inspection import partial_dependence
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> from skpref.inspection import without_item_effects
    >>> candy = load_candy(n_duels=200)
    >>> model = without_item_effects(PairwisePreferenceRegressor().fit(candy.X, candy.y))
    >>> curve = partial_dependence(model, candy.item_table, [10])
    """
    if isinstance(model, Posterior):
        return explained(model)
    model = estimator_of(model)
    steps = list(getattr(model, "steps", []))
    if not steps:
        return explained_estimator(model)
    whole = copy.copy(model)
    whole.steps = [*steps[:-1], (steps[-1][0], explained_estimator(steps[-1][1]))]
    return whole


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


def _shortest(
    ranks: NDArray[np.int32], level: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Of the ranks of each item the shortest interval that holds at least ``level``.

    Central intervals leave out less than they may at either end, as ranks are whole numbers. Of
    intervals as short the one that holds most, then the first.
    """
    n_draws = ranks.shape[1]
    needed = int(np.ceil(level * n_draws - 1e-9))
    ordered = np.sort(ranks, axis=1)
    # An interval that is shortest begins and ends at a draw.
    length = ordered[:, needed - 1 :] - ordered[:, : n_draws - needed + 1]
    n = len(ranks)
    low, high = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for i in range(n):
        begins = np.unique(ordered[i, np.flatnonzero(length[i] == length[i].min())])
        ends = begins + length[i].min()
        within = np.searchsorted(ordered[i], ends, "right") - np.searchsorted(ordered[i], begins)
        at = int(np.argmax(within))
        low[i], high[i] = begins[at], ends[at]
    return low, high


def _frame(values: Any, index: Any, columns: Any = None, name: str | None = None) -> Any:
    """A frame where pandas is installed, else None."""
    try:
        import pandas as pd
    except ImportError:
        return None
    return pd.DataFrame(values, index=pd.Index(index, name=name), columns=columns)
