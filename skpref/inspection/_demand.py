"""Demand: shares of alternatives in choices, how they change, and what an attribute is worth."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.utils import Bunch
from sklearn.utils.validation import check_array

from skpref._utils import Array, PrintableBunch, check_number, warn
from skpref.data import check_one_each, table_frame
from skpref.fitting import estimator_of, last_step
from skpref.gp import mixed_choice_proba, mixed_sums
from skpref.inspection._contenders import evenly_spaced

# Step of differences of utilities and probabilities, in standard deviations of an item's noise or
# of a column: above the rounding of probabilities, and below what bends.
_STEP = 0.01
# Change of utility, in standard deviations of an item's noise for one of a column, that is none.
_FLAT = 1e-9


def shares(
    model: Any,
    X: ArrayLike,
    *,
    without: Any = None,
    alternative: int | None = None,
    level: float = 0.9,
) -> Bunch:
    """Compute how often each alternative is chosen, all in all, with intervals.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted; of one utility.
    X : array-like of shape (n_sets, k, n_features)
        Sets of alternatives; NaN throughout where one is not offered.
    without : object, optional
        Alternative that leaves: a place of the sets, or a value of ``alternative``. Its choosers go
        to what is left, the more the nearer it is.
    alternative : int, optional
        Column of X that says which alternative a row is. None: that is its place in the set.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    shares : Bunch
        alternative : ndarray of shape (n_alternatives,)
        share : ndarray of shape (n_alternatives,)
            Mean probability of being chosen; they sum to one.
        low, high : ndarray of shape (n_alternatives,)
            Of what the utility is uncertain about; to first order in it, on the scale of logits.
        frame : DataFrame where pandas is installed, else None

    Raises
    ------
    TypeError
        If the model was fitted to several users.
    ValueError
        If sets have another shape, or nothing is left of one.

    Examples
    --------
    Red and blue buses are as quick as one another. Where red ones stop running, more of those who
    took them go by the blue ones than by car:

    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import shares
    >>> rng = np.random.default_rng(0)
    >>> trips = rng.normal(size=(300, 3, 1))  # minutes of car, red bus and blue bus, standardised
    >>> trips[:, 2] = trips[:, 1]
    >>> seen = -trips[:, :, 0] + rng.normal(size=(300, 3))
    >>> model = PairwisePreferenceRegressor().fit(trips, seen.argmax(axis=1))
    >>> shares(model, trips).share.round(2), shares(model, trips, without=1).share.round(2)
    (array([0.4, 0.3, 0.3]), array([0.52, 0.  , 0.48]))
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    posterior = _posterior_of_one_utility(model)
    sets = _check_sets(X)
    names, code = _code_alternatives(sets, alternative)
    if without is not None:
        code = _withdraw_alternative(names, code, without)
    proba, slopes = _choice_probabilities(model, posterior, sets, code)
    share = _alternative_shares(proba, code, len(names))
    weights = np.einsum("sia,sij->asj", np.eye(len(names))[code] * (code >= 0)[:, :, None], slopes)
    rows = _read_rows(model, posterior, sets[code >= 0])
    _, variance = mixed_sums(posterior, rows, weights[:, code >= 0] / len(sets))
    slope = np.clip(share * (1.0 - share), 1e-12, None)
    reach = norm.ppf(0.5 + 0.5 * level) * np.sqrt(variance) / slope
    columns = {
        "share": share,
        "low": expit(logit(share) - reach),
        "high": expit(logit(share) + reach),
    }
    return PrintableBunch(alternative=names, **columns, frame=table_frame(columns, names.tolist()))


def elasticities(model: Any, X: ArrayLike, column: int, *, alternative: int | None = None) -> Bunch:
    """Compute by how many per cent shares change with each per cent of an attribute.

    Parameters
    ----------
    model, X, alternative
        As in `shares`.
    column : int
        Attribute, such as a price. Where it is 0 nothing changes.

    Returns
    -------
    elasticities : Bunch
        alternative : ndarray of shape (n_alternatives,)
        elasticity : ndarray of shape (n_alternatives, n_alternatives)
            Row: whose share; column: whose attribute.
        frame : DataFrame where pandas is installed, else None

    Raises
    ------
    TypeError, ValueError
        As `shares`, or if there is no such column.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import elasticities
    >>> rng = np.random.default_rng(0)
    >>> price = rng.uniform(1.0, 3.0, size=(300, 3, 1))
    >>> cheapest = (-price[:, :, 0] + rng.normal(size=(300, 3))).argmax(axis=1)
    >>> model = PairwisePreferenceRegressor().fit(price, cheapest)
    >>> np.diag(elasticities(model, price, 0).elasticity) < -0.5
    array([ True,  True,  True])
    """
    posterior = _posterior_of_one_utility(model)
    sets = _check_sets(X)
    _check_column("column", column, sets)
    names, code = _code_alternatives(sets, alternative)
    share = _alternative_shares(
        _choice_probabilities(model, posterior, sets, code)[0], code, len(names)
    )
    change = np.empty((len(names), len(names)))
    for a in range(len(names)):
        ends = []
        for factor in (1.0 + _STEP, 1.0 - _STEP):
            moved = sets.copy()
            moved[:, :, column] = np.where(code == a, factor, 1.0) * moved[:, :, column]
            proba, _ = _choice_probabilities(model, posterior, moved, code)
            ends.append(_alternative_shares(proba, code, len(names)))
        change[:, a] = (ends[0] - ends[1]) / (2.0 * _STEP * share)
    columns = {str(name): change[:, k] for k, name in enumerate(names)}
    frame = table_frame(columns, names.tolist())
    return PrintableBunch(alternative=names, elasticity=change, frame=frame)


def willingness_to_pay(
    model: Any,
    X: ArrayLike,
    price: int,
    *,
    columns: Sequence[int] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.9,
) -> Bunch:
    """Compute what one more unit of each attribute is worth in units of the price.

    It is minus the ratio of two slopes of the utility, each a mean over the rows of X.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted; of one utility.
    X : array-like of shape (n_sets, k, n_features) or (n_items, n_features)
        Alternatives at which slopes are taken, of more than 500 a group at so many, evenly spaced;
        rows that hold NaN are left out.
    price : int
        Its column.
    columns : sequence of int, optional
        Attributes. None: all columns but the price, along which the utility has a slope.
    groups : array-like of shape (n_sets,) or (n_items,), optional
        Such as people, where the kernel has effects of theirs: a value for each. None: one for all.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    willingness : Bunch
        group : ndarray of shape (n_groups,)
        column : ndarray of int of shape (n_columns,)
        value, low, high : ndarray of shape (n_groups, n_columns)
            Ends of the interval are infinite where the sign of the price's slope is open.
        frame : DataFrame where pandas is installed, else None
            A row for each group and column.

    Raises
    ------
    TypeError
        If the model was fitted to several users.
    ValueError
        If there is no such column, a group has no row without NaN, or the utility does not depend
        on the price.

    Warns
    -----
    UserWarning
        If the sign of the price's slope is open.

    Notes
    -----
    Both slopes are Gaussian given the answers (of several draws of the posterior their moments are
    taken), so that the interval of the ratio is Fieller's [1]_.

    References
    ----------
    .. [1] Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
       B 16, 1954.

    Examples
    --------
    An hour less is worth 8 here, as the slopes are −0.8 and −0.1:

    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import willingness_to_pay
    >>> from skpref.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> trips = rng.uniform(size=(1000, 3, 2)) * [3.0, 20.0]  # hours and price
    >>> seen = trips @ [-0.8, -0.1] + rng.normal(size=(1000, 3))
    >>> model = PairwisePreferenceRegressor(Linear([1.0, 10.0])).fit(trips, seen.argmax(axis=1))
    >>> worth = willingness_to_pay(model, trips, price=1)
    >>> bool(worth.low[0, 0] < -8.0 < worth.high[0, 0])
    True
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    posterior = _posterior_of_one_utility(model)
    names, code, rows = _read_rows_of_groups(X, groups)
    _check_column("price", price, rows)
    if columns is None:
        columns = [k for k in range(rows.shape[1]) if k != price]
    for column in columns:
        _check_column("columns", column, rows)
    at = np.array([*columns, price])
    means, covariances = np.empty((len(names), len(at))), np.empty((len(names), len(at), len(at)))
    for k in range(len(names)):
        means[k], covariances[k] = _mean_slopes(model, posterior, rows[code == k], at)
    if not np.any(means[:, -1]):
        raise ValueError(
            f"got price={price}, and the utility does not depend on this column; give the column "
            "of a price that the kernel sees."
        )
    if groups is None:  # along what the kernel does not see there is nothing to pay for
        matters = np.append(means[0, :-1] != 0.0, True)
        at, means = at[matters], means[:, matters]
        covariances = covariances[:, matters][:, :, matters]
    value, low, high = _ratio_intervals(means, covariances, level)
    if np.any(np.isinf(low)):
        warn(
            f"The answers leave open whether utility falls with the price, column {price}: "
            "intervals have no ends. Give more answers in which prices differ, or a lower level."
        )
    table = {
        "group": np.repeat(names, len(at) - 1),
        "column": np.tile(at[:-1], len(names)),
        "value": value.ravel(),
        "low": low.ravel(),
        "high": high.ravel(),
    }
    frame = table_frame(table, range(value.size))
    return PrintableBunch(group=names, column=at[:-1], value=value, low=low, high=high, frame=frame)


def _read_rows_of_groups(
    X: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.intp], Array]:
    """Return the names of groups, and the rows without NaN after the number of the group of each.

    Raises
    ------
    ValueError
        For groups of another length, or of which no row is left.
    """
    values = check_array(X, dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan")
    labels = np.full(len(values), "all") if groups is None else np.asarray(groups)
    check_one_each(labels.shape, len(values), "groups")
    names, code = np.unique(labels, return_inverse=True)
    rows = values.reshape(-1, values.shape[-1])
    code = np.repeat(code.reshape(-1), len(rows) // len(values))
    complete = ~np.isnan(rows).any(axis=1)
    rows, code = rows[complete], code[complete]
    empty = np.bincount(code, minlength=len(names)) == 0
    if empty.any():
        raise ValueError(
            f"got no row without NaN of {names[empty].tolist()[0]!r}; one or more are allowed. "
            "Give X rows of it, or leave it out."
        )
    return names, code, rows


def _posterior_of_one_utility(model: Any) -> Any:
    """Return the posterior of a model of one utility; TypeError for one of several users."""
    last = last_step(model)
    if hasattr(last.posterior_, "of"):
        raise TypeError(
            f"got {type(last).__name__} fitted to several users; models of one utility are "
            "allowed. Fit a PairwisePreferenceRegressor with a column of who chooses."
        )
    return last.posterior_


def _check_sets(X: ArrayLike) -> Array:
    """Return sets of alternatives as an array (n_sets, k, n_features); ValueError for others."""
    sets = check_array(X, dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan")
    if sets.ndim != 3 or sets.shape[1] < 2:
        raise ValueError(
            f"got X of shape {sets.shape}; (n_sets, k, n_features) with k > 1 is allowed. Give the "
            "features of the alternatives of each set."
        )
    partial = np.isnan(sets).any(axis=2) & ~np.isnan(sets).all(axis=2)
    if partial.any():
        raise ValueError(
            f"got NaN in some columns of set {np.flatnonzero(partial.any(axis=1))[0]}; NaN "
            "throughout is allowed, of what is not offered. Fill in the values, or all with NaN."
        )
    return np.asarray(sets)


def _check_column(name: str, column: Any, X: Array) -> None:
    """Raise an error unless a parameter is the number of a column of X."""
    check_number(name, column, low=0, high=X.shape[-1] - 1, integer=True)


def _code_alternatives(
    sets: Array, alternative: int | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the names of alternatives, and the number of that of each row; -1 of none."""
    offered = ~np.isnan(sets).all(axis=2)
    code = np.full(offered.shape, -1)
    if alternative is None:
        code[offered] = np.broadcast_to(np.arange(sets.shape[1]), offered.shape)[offered]
        return np.arange(sets.shape[1]), code
    _check_column("alternative", alternative, sets)
    names, number = np.unique(sets[offered][:, alternative], return_inverse=True)
    code[offered] = number.reshape(-1)
    return names, code


def _withdraw_alternative(
    names: NDArray[Any], code: NDArray[np.intp], without: Any
) -> NDArray[np.intp]:
    """Return the numbers of alternatives with −1 for one; ValueError where nothing is left."""
    place = np.flatnonzero(names == without)
    if len(place) != 1:
        raise ValueError(
            f"got without={without!r}; one of {names.tolist()} is allowed. Name one of these "
            "alternatives."
        )
    rest = np.where(code == place[0], -1, code)
    empty = (rest < 0).all(axis=1)
    if empty.any():
        raise ValueError(
            f"got without={without!r}, and nothing is left of set {np.flatnonzero(empty)[0]}; sets "
            "with another alternative are allowed. Leave this one out of X."
        )
    return rest


def _read_rows(model: Any, posterior: Any, rows: Array) -> Array:
    """Return items as the posterior reads them, through the steps of a pipeline."""
    whole = estimator_of(model)
    items = whole[:-1].transform(rows) if len(getattr(whole, "steps", [])) > 1 else rows
    checked: Array = posterior.check_items(items)
    return checked


def _choice_probabilities(
    model: Any, posterior: Any, sets: Array, code: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return how probable each row is chosen, and its slopes in the utilities of its set.

    Returns
    -------
    proba : ndarray of shape (n_sets, k)
    slopes : ndarray of shape (n_sets, k, k)
        Of each row in the utility of each.
    """
    offered, k = code >= 0, code.shape[1]
    proba, slopes = offered.astype(float), np.zeros((*code.shape, k))
    several = offered.sum(axis=1) > 1
    if several.any():
        items = _read_rows(model, posterior, sets[several][offered[several]])
        at = np.where(offered[several], np.cumsum(offered[several]).reshape(-1, k) - 1, -1)
        # The sets as they are, and with each utility moved up and down.
        step = _STEP * np.sqrt(posterior.likelihood.utility_noise)
        moves = step * np.concatenate([np.zeros((1, k)), np.eye(k), -np.eye(k)])
        values = mixed_choice_proba(
            posterior,
            items,
            np.tile(at, (len(moves), 1)),
            0,
            offset=np.repeat(moves, len(at), axis=0),
        ).reshape(len(moves), len(at), k)
        proba[several] = values[0]
        slopes[several] = np.moveaxis(values[1 : k + 1] - values[k + 1 :], 0, 2) / (2.0 * step)
    return proba, slopes


def _alternative_shares(proba: Array, code: NDArray[np.intp], n_codes: int) -> Array:
    """Return the share of each alternative: its mean probability over all sets."""
    offered = code >= 0
    return np.bincount(code[offered], proba[offered], n_codes) / len(code)


def _mean_slopes(
    model: Any, posterior: Any, rows: Array, at: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return the mean slopes of the utility along columns, 0 of none, and their covariance."""
    rows = rows[evenly_spaced(len(rows))]
    n, n_columns = len(rows), len(at)
    spread = rows[:, at].std(axis=0)
    spread[spread == 0.0] = 1.0
    # Each column up, and down, by a step.
    ends = np.tile(rows, (n_columns, 2, 1, 1))
    steps = _STEP * spread[:, None, None] * [[1.0], [-1.0]]
    ends[np.arange(n_columns), :, :, at] += steps
    items = _read_rows(model, posterior, ends.reshape(-1, rows.shape[1]))
    differences = np.repeat([1.0, -1.0], n) / (2.0 * _STEP * n)
    weights: Array = np.kron(np.eye(n_columns), differences).astype(np.float64)
    first, second = np.triu_indices(n_columns)
    own = first == second
    sums = np.where(own[:, None], 0.0, weights[second]) + weights[first]
    means, variances = mixed_sums(posterior, items, sums)
    mean, covariance = means[own], np.diag(variances[own])
    a, b = first[~own], second[~own]
    covariance[a, b] = 0.5 * (variances[~own] - variances[own][a] - variances[own][b])
    covariance[b, a] = covariance[a, b]
    least = _FLAT * np.sqrt(posterior.likelihood.utility_noise)
    mean = np.where(np.abs(mean) > least, mean, 0.0)
    return mean / spread, covariance / np.multiply.outer(spread, spread)


def _ratio_intervals(means: Array, covariances: Array, level: float) -> tuple[Array, Array, Array]:
    """Return minus the ratio of each mean of a row to the last, with its Fieller interval."""
    z = norm.ppf(0.5 + 0.5 * level)
    top, bottom = means[:, :-1], means[:, -1:]
    square = bottom**2 - z**2 * covariances[:, -1:, -1]
    linear = top * bottom - z**2 * covariances[:, :-1, -1]
    constant = top**2 - z**2 * np.diagonal(covariances, axis1=1, axis2=2)[:, :-1]
    reach = np.sqrt(np.maximum(linear**2 - square * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (-linear - reach) / square, (-linear + reach) / square
    low, high = np.where(square > 0.0, ends, [[[-np.inf]], [[np.inf]]])
    return -top / bottom, low, high
