"""Scores of candidate duels: the expected information of each answer."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from skpref._utils import (
    BLOCK,
    Array,
    RandomLike,
    check_choice,
    check_number,
    make_generator,
    row_blocks,
)
from skpref.active._candidates import CandidateRows, Candidates, DuelPosterior
from skpref.data import distinct_rows
from skpref.gp import Posterior, PosteriorMixture
from skpref.likelihoods import Likelihood, Probit

# Of the trapezoidal rule over a margin: its step, in deviations of the noise or of the margin,
# whichever is less, and how many deviations it reaches. Integrands are analytic, so that errors
# fall exponentially as the step does: below 1e-9 at this one.
_STEP, _REACH = 0.4, 9.0
# Exact joint draws take a factorisation of so many items at most; beyond, draws of functions.
_EXACT = 2000


def outcome_proba(
    likelihood: Likelihood, mean: Array, variance: ArrayLike, lead: ArrayLike
) -> Array:
    """Return probabilities of the outcomes under Gaussian margins, on a new last axis."""
    variance = np.asarray(variance, dtype=np.float64)
    if likelihood.uses_order:
        return likelihood.outcome_proba(mean, variance, lead)
    return likelihood.outcome_proba(mean, variance)


def outcome_entropy(proba: Array) -> Array:
    """Return the entropy of outcomes in nats, by their probabilities on the last axis."""
    return entr(proba).sum(axis=-1)


def predictive_proba(
    likelihood: Likelihood, means: Array, variance: Array, lead: NDArray[np.int8]
) -> Array:
    """Return probabilities of outcomes (n, n_outcomes), averaged over components of the margins."""
    proba = np.empty((len(variance), likelihood.n_outcomes))
    for rows in row_blocks(len(variance), means.shape[1] * likelihood.n_outcomes, BLOCK):
        by_component = outcome_proba(
            likelihood, means[rows], variance[rows, None], lead[rows, None]
        )
        proba[rows] = by_component.mean(axis=1)
    return proba


def expected_entropy(
    likelihood: Likelihood,
    means: Array,
    variance: Array,
    lead: NDArray[np.int8],
    effect_variance: float = 0.0,
) -> Array:
    """Return the mean entropy of the answer given the margin, (n,); means (n, n_components).

    Effects of a new prompt, of such a variance, are noise. By the trapezoidal rule: about the mean
    of a margin that is narrower than the noise, else over the margins at which the answer is in
    doubt.
    """
    entropies = np.empty(len(variance))
    scale = np.sqrt(likelihood.margin_variance + effect_variance)
    if not likelihood.uses_order:
        lead = np.ones_like(lead)
    narrow = variance < scale**2
    z = np.arange(-_REACH, _REACH + _STEP, _STEP)
    weights = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    every = np.flatnonzero(narrow)
    for block in row_blocks(len(every), means.shape[1] * len(z) * likelihood.n_outcomes, BLOCK):
        rows = every[block]
        margin = means[rows, :, None] + np.sqrt(variance[rows])[:, None, None] * z
        proba = outcome_proba(likelihood, margin, effect_variance, lead[rows, None, None])
        entropies[rows] = (outcome_entropy(proba) @ weights).mean(axis=1)
    for side in np.unique(lead[~narrow]):
        nodes, values = _entropies_where_in_doubt(likelihood, side, scale, effect_variance)
        every = np.flatnonzero(~narrow & (lead == side))
        for block in row_blocks(len(every), means.shape[1] * len(nodes), BLOCK):
            rows = every[block]
            deviation = np.sqrt(variance[rows])[:, None, None]
            z = (nodes - means[rows, :, None]) / deviation
            density = np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * deviation)
            entropies[rows] = (density @ values).mean(axis=1) * _STEP * scale
    return entropies


def _entropies_where_in_doubt(likelihood, lead, scale, effect_variance):
    """Return evenly spaced margins at which an answer is in doubt, and its entropy at each."""

    def proba_at(margin):
        return outcome_proba(likelihood, margin, effect_variance, np.full(len(margin), lead))

    ends = _REACH * scale * np.array([-1.0, 1.0])
    while True:
        proba = proba_at(ends)
        open_ends = 1.0 - np.maximum(proba[:, 0], proba[:, -1]) > np.finfo(float).eps
        if not open_ends.any():
            break
        ends = np.where(open_ends, 1.5 * ends, ends)
    nodes = np.arange(ends[0], ends[1] + _STEP * scale, _STEP * scale)
    return nodes, outcome_entropy(proba_at(nodes))


class Bell(NamedTuple):
    """Mean entropy by the closed form, and C² times the noise plus the margin's variance."""

    value: Array
    spread: Array


def expected_bell(mean: Array, variance: Array, noise: ArrayLike) -> Bell:
    """Return mean entropy of a probit's answer given the margin, in the closed form of [1]_.

    Parameters
    ----------
    mean, variance : ndarray, of shapes that broadcast to one another's
        Of the margin.
    noise : float or ndarray
        Variance of the noise on the margin.

    References
    ----------
    .. [1] Houlsby, Hernández-Lobato, Huszár, Ghahramani, "Collaborative Gaussian Processes for
       Preference Learning", NIPS 2012.
    """
    # The binary entropy of Φ(u) is about log 2 · exp(−u²/(2 C²)) nats, whose value and second
    # derivative at 0 are its own: C² = π log(2) / 2 (supplement of [1]_, eq. 4, in bits).
    square = 0.5 * np.pi * np.log(2.0)
    spread = variance + square * noise
    height = np.log(2.0) * np.sqrt(square * noise / spread)
    return Bell(height * np.exp(-0.5 * mean * mean / spread), spread)


def bald(
    posterior: DuelPosterior, duels: Any, *, order: ArrayLike = 1, method: str = "quadrature"
) -> Array:
    """Return mutual information of a duel's answer and the utility, in nats (BALD) [1]_.

    The entropy of the predicted answer less that which is expected to stay once the utility is
    known: what the judge's noise makes uncertain is not counted. At least 0, at most log 2, with
    ties log 3; 0 where the margin is known. Of a model that was fitted with prompts the utility is
    the mean over all prompts, and what items have of their own on a new prompt is noise.

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
    return information(Candidates.from_duels(posterior, duels, order), method)


def information(candidates: Candidates, method: str = "quadrature") -> Array:
    """Return `bald` of candidates, (n,), in nats."""
    likelihood, expected = candidates.posterior.likelihood, np.zeros(len(candidates.variance))
    predicted = _predicted_entropies(candidates)
    for weight, part in zip(*candidates.split_by_part(), strict=True):
        if method == "quadrature":
            entropies, of_effects = np.empty(len(part.variance)), part.effect_variance
            for effect_variance in np.unique(of_effects):
                rows = of_effects == effect_variance
                moments = part.means[rows], part.variance[rows], part.lead[rows]
                entropies[rows] = expected_entropy(likelihood, *moments, float(effect_variance))
        else:
            entropies = _closed_form_conditional_entropies(part)
        expected += weight * entropies
    # Of a margin that is known the closed form and rounding would make something.
    nats = np.where(candidates.gaussian[1] > 0.0, predicted - expected, 0.0)
    return np.clip(nats, 0.0, np.log(likelihood.n_outcomes))


def _closed_form_conditional_entropies(candidates):
    """Return mean entropies of a probit's answers given the margins, (n,), in closed form."""
    likelihood = candidates.posterior.likelihood
    if not isinstance(likelihood, Probit) or likelihood.n_outcomes != 2:
        what = "ties" if likelihood.duel_scale.ties else type(likelihood).__name__
        raise ValueError(
            f"The closed form of BALD is of a probit without ties, and there is {what}. Use "
            "method='quadrature'."
        )
    means = candidates.means + candidates.lead[:, None] * likelihood.order_shift
    noise = likelihood.margin_variance + candidates.effect_variance[:, None]
    bell = expected_bell(means, candidates.variance[:, None], noise)
    return bell.value.mean(axis=1)


def entropy(posterior: DuelPosterior, duels: Any, *, order: ArrayLike = 1) -> Array:
    """Return entropy of the predicted answer, in nats, from noise and uncertainty together.

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
    return _predicted_entropies(Candidates.from_duels(posterior, duels, order))


def _predicted_entropies(candidates):
    """Return the entropy of the predicted answer to each candidate, (n,)."""
    proba = sum(
        weight
        * predictive_proba(
            part.posterior.likelihood, part.means, part.variance + part.effect_variance, part.lead
        )
        for weight, part in zip(*candidates.split_by_part(), strict=True)
    )
    return outcome_entropy(proba)


def margin_variance(posterior: DuelPosterior, duels: Any) -> Array:
    """Return the variance of f(first) − f(second), without noise, in squared units of utility.

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
    return Candidates.from_duels(posterior, duels).gaussian[1]


def random_scores(
    posterior: DuelPosterior, duels: Any, *, random_state: RandomLike = None
) -> Array:
    """Return random scores, uniform on [0, 1), as a baseline.

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
    >>> from skpref.active import random_scores
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]]])
    >>> random_scores(model.posterior_, [[[2.0], [0.0]], [[9.0], [4.0]]], random_state=0).round(2)
    array([0.64, 0.27])
    """
    return make_generator(random_state).random(len(duels))


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
    candidates = Candidates.from_duels(posterior, duels, order)
    if members == "components":
        margins, variance = candidates.means, candidates.variance
        if margins.shape[1] < 2:
            raise ValueError(
                "members='components' needs a posterior of several components, such as that of "
                "inference='hmc'; this one has 1. Give a number of draws."
            )
    else:
        check_number("members", members, low=2, high=np.iinfo(np.int32).max, integer=True)
        margins = _draw_margins(candidates, int(members), make_generator(random_state))
        variance = np.zeros(len(margins))
    variance = variance + candidates.effect_variance
    return _disagreement(candidates.posterior.likelihood, margins, variance, candidates.lead, vote)


def _disagreement(likelihood, margins, variance, lead, vote):
    """Return the disagreement of a committee on each duel, (n,), by its margins (n, members)."""
    disagreement = np.empty(len(margins))
    for rows in row_blocks(len(margins), margins.shape[1] * likelihood.n_outcomes, BLOCK):
        proba = outcome_proba(likelihood, margins[rows], variance[rows, None], lead[rows, None])
        if vote:
            # A vote is split among outcomes that are equally likely.
            proba = proba == proba.max(axis=-1, keepdims=True)
            proba = proba / proba.sum(axis=-1, keepdims=True)
            disagreement[rows] = outcome_entropy(proba.mean(axis=1))
        else:
            disagreement[rows] = outcome_entropy(proba.mean(axis=1)) - outcome_entropy(proba).mean(
                axis=1
            )
    return np.maximum(disagreement, 0.0)


def best_item_information(
    posterior: Posterior,
    duels: Any,
    items: Any = None,
    *,
    order: ArrayLike = 1,
    n_draws: int = 1000,
    random_state: RandomLike = None,
) -> Array:
    """Return mutual information of a duel's answer and which item is best, in nats.

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
    if not isinstance(posterior, Posterior | PosteriorMixture):
        raise TypeError(
            f"got a {type(posterior).__name__}; joint draws of utilities are needed, which a "
            "Posterior or PosteriorMixture gives. Use bald."
        )
    check_number("n_draws", n_draws, low=2, high=np.iinfo(np.int32).max, integer=True)
    candidates, rng = Candidates.from_duels(posterior, duels, order), make_generator(random_state)
    rows, first, second = CandidateRows.from_sides(posterior, candidates.first, candidates.second)
    among = np.arange(len(rows))
    if items is not None:
        rows, code = distinct_rows(np.concatenate([rows, posterior.check_items(items)]))
        first, second, among = code[first], code[second], np.unique(code[len(among) :])
    utility = _draw_utilities(posterior, rows, int(n_draws), rng)
    best = among[np.argmax(utility[among], axis=0)]
    utility = utility[:, np.argsort(best, kind="stable")]
    counts = np.unique(best, return_counts=True)[1]
    starts, share = np.cumsum(counts) - counts, counts / n_draws
    likelihood, nats = posterior.likelihood, np.empty(len(first))
    for part in row_blocks(len(first), int(n_draws) * likelihood.n_outcomes, BLOCK):
        margins = utility[first[part]] - utility[second[part]]
        effects = candidates.effect_variance[part, None]
        proba = outcome_proba(likelihood, margins, effects, candidates.lead[part, None])
        given_best = np.add.reduceat(proba, starts, axis=1) / counts[:, None]
        nats[part] = outcome_entropy(proba.mean(axis=1)) - outcome_entropy(given_best) @ share
    return np.maximum(nats, 0.0)


def _draw_margins(candidates, n, rng):
    """Return n draws of the margin of each candidate, (n_duels, n), joint if there are items."""
    if not isinstance(candidates.posterior, Posterior | PosteriorMixture):
        mean, variance = candidates.gaussian
        return mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((len(mean), n))
    rows, first, second = CandidateRows.from_sides(
        candidates.posterior, candidates.first, candidates.second
    )
    utility = _draw_utilities(candidates.posterior, rows, n, rng)
    return utility[first] - utility[second]


def _draw_utilities(posterior, rows, n, rng):
    """Return n joint draws of the utilities of rows, (n_rows, n)."""
    if len(rows) <= _EXACT or isinstance(posterior, PosteriorMixture):
        return posterior.sample(rows, n, rng)
    return posterior.sample_paths(n, rng)(rows)
