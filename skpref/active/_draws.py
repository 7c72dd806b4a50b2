"""Scores of candidate duels from draws of the utility: committees, and which item is best."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpref._blocks import row_blocks
from skpref._items import distinct_rows
from skpref._linalg import Array
from skpref._parameters import check_number
from skpref._posterior import Posterior
from skpref._random import RandomLike, generator_of
from skpref.active._contracts import Candidates, DuelPosterior, Rows
from skpref.active._entropy import BLOCK, entropy_of, outcome_proba

# Exact joint draws take a factorisation of so many items at most; beyond, draws of functions.
_EXACT = 2000


def committee_disagreement(
    posterior: DuelPosterior,
    duels: Any,
    *,
    order: ArrayLike = 1,
    members: int | str = 100,
    vote: bool = False,
    random_state: RandomLike = None,
) -> Array:
    """Query by committee: how much members drawn from the posterior disagree, in nats.

    Parameters
    ----------
    posterior : Posterior or DuelPosterior
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
    order : int or array-like of shape (n,), default=1
        As in `bald`.
    members : int or "components", default=100
        That many draws of the utility (joint ones of a `Posterior`; of another object each margin
        is drawn by itself), or the components of a posterior of several.
    vote : bool, default=False
        False: the Jensen–Shannon divergence of the members' probabilities, which tends to `bald`
        as draws grow in number. True: every member votes for the likeliest outcome, and the
        entropy of the votes counts [1]_, whatever the judge's noise.
    random_state : int, RandomState instance, Generator or None, default=None

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If there is one component, or one member.

    References
    ----------
    .. [1] Freund, Seung, Shamir, Tishby, "Selective sampling using the query by committee
       algorithm", Machine Learning 1997.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import committee_disagreement
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]], [[2.0], [1.0]]])
    >>> duels = [[[2.0], [0.0]], [[9.0], [4.0]]]
    >>> committee_disagreement(model.posterior_, duels, members=2000, random_state=0).round(1)
    array([0.1, 0.6])
    """
    of = Candidates.of(posterior, duels, order)
    if members == "components":
        margins, variance = of.means, of.variance
        if margins.shape[1] < 2:
            raise ValueError(
                "members='components' needs a posterior of several components, such as that of "
                "inference='hmc'; this one has 1. Give a number of draws."
            )
    else:
        check_number("members", members, low=2, integer=True)
        margins = _drawn_margins(of, int(members), generator_of(random_state))
        variance = np.zeros(len(margins))
    return _disagreement(of.posterior.likelihood, margins, variance, of.lead, vote)


def _disagreement(likelihood, margins, variance, lead, vote):
    found = np.empty(len(margins))
    for rows in row_blocks(len(margins), margins.shape[1] * likelihood.n_outcomes, BLOCK):
        each = outcome_proba(likelihood, margins[rows], variance[rows, None], lead[rows, None])
        if vote:
            # A vote is split among outcomes that are equally likely.
            each = each == each.max(axis=-1, keepdims=True)
            each = each / each.sum(axis=-1, keepdims=True)
            found[rows] = entropy_of(each.mean(axis=1))
        else:
            found[rows] = entropy_of(each.mean(axis=1)) - entropy_of(each).mean(axis=1)
    return np.maximum(found, 0.0)


def best_item_information(
    posterior: Posterior,
    duels: Any,
    items: Any = None,
    *,
    order: ArrayLike = 1,
    n_draws: int = 1000,
    random_state: RandomLike = None,
) -> Array:
    """Mutual information of a duel's answer and which item is best, in nats.

    Parameters
    ----------
    posterior : Posterior
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
    items : array-like of shape (n_items, n_features), DataFrame, ItemTable, or names or positions \
of shape (n_items,), default=None
        Of which one is the best; None: those of the duels.
    order : int or array-like of shape (n,), default=1
        As in `bald`.
    n_draws : int, default=1000
        Joint draws of the utilities of all these items. The result is too large by about the
        number of items that may be best over ``2 n_draws`` at most.
    random_state : int, RandomState instance, Generator or None, default=None

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import best_item_information
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> model = model.fit([[[2.0], [1.0]], [[2.0], [0.0]], [[1.0], [0.0]]])
    >>> duels = [[[2.0], [1.0]], [[1.0], [0.0]]]
    >>> best_item_information(model.posterior_, duels, random_state=0).round(1)
    array([0.2, 0. ])
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(
            "Joint draws of utilities are needed, which only a Posterior gives; got "
            f"{type(posterior).__name__}. Use bald."
        )
    check_number("n_draws", n_draws, low=2, integer=True)
    of, rng = Candidates.of(posterior, duels, order), generator_of(random_state)
    rows, first, second = Rows.of(posterior, of.first, of.second)
    among = np.arange(len(rows))
    if items is not None:
        rows, code = distinct_rows(np.concatenate([rows, posterior.check_items(items)]))
        first, second, among = code[first], code[second], np.unique(code[len(among) :])
    utility = _drawn(posterior, rows, int(n_draws), rng)
    best = among[np.argmax(utility[among], axis=0)]
    utility = utility[:, np.argsort(best, kind="stable")]
    counts = np.unique(best, return_counts=True)[1]
    starts, share = np.cumsum(counts) - counts, counts / n_draws
    likelihood, found = posterior.likelihood, np.empty(len(first))
    for part in row_blocks(len(first), int(n_draws) * likelihood.n_outcomes, BLOCK):
        margins = utility[first[part]] - utility[second[part]]
        each = outcome_proba(likelihood, margins, 0.0, of.lead[part, None])
        given = np.add.reduceat(each, starts, axis=1) / counts[:, None]
        found[part] = entropy_of(each.mean(axis=1)) - entropy_of(given) @ share
    return np.maximum(found, 0.0)


def _drawn_margins(of, n, rng):
    """Draws of the margins, (n_duels, n)."""
    if not isinstance(of.posterior, Posterior):
        mean, variance = of.gaussian
        return mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((len(mean), n))
    rows, first, second = Rows.of(of.posterior, of.first, of.second)
    utility = _drawn(of.posterior, rows, n, rng)
    return utility[first] - utility[second]


def _drawn(posterior, rows, n, rng):
    """Joint draws of utilities, (n_rows, n)."""
    if len(rows) <= _EXACT:
        return posterior.sample(rows, n, rng)
    return posterior.sample_paths(n, rng)(rows)
