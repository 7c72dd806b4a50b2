"""Scores of candidate duels: how much is to be learned by asking about each."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpref._linalg import Array
from skpref._parameters import check_choice
from skpref._random import RandomLike, generator_of
from skpref.active._contracts import Candidates, DuelPosterior
from skpref.active._entropy import (
    entropy_of,
    expected_bell,
    expected_entropy,
    predictive_proba,
)
from skpref.likelihoods import Probit


def bald(
    posterior: DuelPosterior, duels: Any, *, order: ArrayLike = 1, method: str = "quadrature"
) -> Array:
    """Mutual information of a duel's answer and the utility, in nats (BALD) [1]_.

    The entropy of the predicted answer less that which is expected to stay once the utility is
    known: what the judge's noise makes uncertain is not counted. At least 0, at most log 2, with
    ties log 3; 0 where the margin is known.

    Parameters
    ----------
    posterior : Posterior or DuelPosterior
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
        Two dimensions hold positions or names in the posterior's table of items.
    order : int or array-like of shape (n,), default=1
        Who is shown first, where the likelihood has an order effect: 1 the first item, -1 the
        second, 0 neither.
    method : {"quadrature", "closed_form"}, default="quadrature"
        "quadrature" is exact to 1e-9, for every likelihood. "closed_form" is that of [1]_, of a
        probit without ties: within 0.0019, and 0 where the margin is known.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If "closed_form" meets a likelihood that is no probit, or has ties.

    References
    ----------
    .. [1] Houlsby, Hernández-Lobato, Huszár, Ghahramani, "Collaborative Gaussian Processes for
       Preference Learning", NIPS 2012.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import bald
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]], [[2.0], [1.0]]])
    >>> duels = [[[1.0], [0.0]], [[2.0], [0.0]], [[9.0], [4.0]]]
    >>> bald(model.posterior_, duels).round(2)
    array([0.27, 0.13, 0.62])
    """
    check_choice("method", method, ("quadrature", "closed_form"))
    return information(Candidates.of(posterior, duels, order), method)


def information(of: Candidates, method: str = "quadrature") -> Array:
    """`bald` of candidates."""
    likelihood = of.posterior.likelihood
    predicted = entropy_of(predictive_proba(likelihood, of.means, of.variance, of.lead))
    if method == "quadrature":
        expected = expected_entropy(likelihood, of.means, of.variance, of.lead)
    else:
        expected = _closed_form(of)
    # Of a margin that is known the closed form and rounding would make something.
    found = np.where(of.gaussian[1] > 0.0, predicted - expected, 0.0)
    return np.clip(found, 0.0, np.log(likelihood.n_outcomes))


def _closed_form(of):
    likelihood = of.posterior.likelihood
    if not isinstance(likelihood, Probit) or likelihood.n_outcomes != 2:
        what = "ties" if likelihood.n_outcomes == 3 else type(likelihood).__name__
        raise ValueError(
            f"The closed form of BALD is of a probit without ties, and there is {what}. Use "
            "method='quadrature'."
        )
    means = of.means + of.lead[:, None] * likelihood.order_shift
    known = expected_bell(means, of.variance[:, None], likelihood.margin_variance)
    return known.value.mean(axis=1)


def entropy(posterior: DuelPosterior, duels: Any, *, order: ArrayLike = 1) -> Array:
    """Entropy of the predicted answer, in nats: what is most open, for whatever reason.

    A duel of two items that are known to be equally good has the largest of all, though its answer
    would tell nothing.

    Parameters
    ----------
    posterior : Posterior or DuelPosterior
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
    order : int or array-like of shape (n,), default=1
        As in `bald`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import entropy
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]], [[2.0], [1.0]]])
    >>> entropy(model.posterior_, [[[2.0], [0.0]], [[9.0], [7.0]]]).round(2)
    array([0.15, 0.69])
    """
    of = Candidates.of(posterior, duels, order)
    return entropy_of(predictive_proba(of.posterior.likelihood, of.means, of.variance, of.lead))


def margin_variance(posterior: DuelPosterior, duels: Any) -> Array:
    """Variance of f(first) − f(second), without observation noise, in squared units of utility.

    Parameters
    ----------
    posterior : Posterior or DuelPosterior
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import margin_variance
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]], [[2.0], [1.0]]])
    >>> margin_variance(model.posterior_, [[[2.0], [0.0]], [[9.0], [4.0]]]).round(2)
    array([0.73, 2.  ])
    """
    return Candidates.of(posterior, duels).gaussian[1]


def at_random(posterior: DuelPosterior, duels: Any, *, random_state: RandomLike = None) -> Array:
    """Scores drawn at random, uniform on [0, 1): every duel is as good as another.

    Parameters
    ----------
    posterior : Posterior or DuelPosterior
        Not looked at but for the number of duels.
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
    random_state : int, RandomState instance, Generator or None, default=None

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import at_random
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]]])
    >>> at_random(model.posterior_, [[[2.0], [0.0]], [[9.0], [4.0]]], random_state=0).round(2)
    array([0.64, 0.27])
    """
    return generator_of(random_state).random(len(duels))
