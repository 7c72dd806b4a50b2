"""The steps of inference: the population's utility, tastes and answers, each given the others.

A user's margin is g = δf(x) + w·δh(x) + ε: the population's utility f, the user's taste w weighing
shared functions h, and what these functions leave, ε. Every answer becomes a Gaussian factor of g
by expectation propagation; q of f and of the tastes given the factors are closed forms.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skpref._inducing import InducedSpace, Moments, moments
from skpref._linalg import Array
from skpref.collaborative._by_user import Block, ByUser
from skpref.collaborative._people import People, Told
from skpref.likelihoods import Likelihood

# Blocks of users that one task takes.
_TOGETHER = 16
# A factor never takes more than all but this share of a part's precision.
_LEAST = 0.05


class Population(NamedTuple):
    """q of the population's utility: mean and variance of every margin, and of what carries it.

    The variance is that which inducing points carry; ``moments`` is None for no utility at all.
    """

    mean: Array
    variance: Array
    moments: Moments | None

    @property
    def divergence(self) -> float:
        """From the prior."""
        return 0.0 if self.moments is None else self.moments.divergence


class Shared(NamedTuple):
    """The functions that tastes weigh.

    Attributes
    ----------
    heights : ndarray of shape (n_margins, d)
        Differences of the functions, δh.
    rest : ndarray of shape (n_margins,)
        Variance of ε.
    """

    heights: Array
    rest: Array


class Sites(NamedTuple):
    """A Gaussian factor for each answer on its margin.

    Attributes
    ----------
    precision, shift : ndarray of shape (n,)
    value : float
        Log evidence of all answers but for the divergences from the prior.
    mean, variance : ndarray of shape (n,)
        Of the margins without their own factor, as the winner sees them.
    """

    precision: Array
    shift: Array
    value: float
    mean: Array
    variance: Array


def learn_population(
    space: InducedSpace, by_user: ByUser, shared: Shared, sites: Sites, people: People
) -> Population:
    """q of the population's utility, given the factors and the tastes."""
    ones = np.ones(by_user.n_users)
    told = by_user.table(sites.precision)
    tastes = np.einsum("pd,pd->p", told @ people.mean, shared.heights)
    shift = by_user.table(sites.shift) @ ones - tastes
    found = moments(space.told(told @ ones, shift))
    at = space.condition(found)
    return Population(at.mean, at.variance - space.rest, found)


def told_by(
    by_user: ByUser,
    blocks: list[Block],
    sites: Sites,
    population: Population,
    shared: Shared,
    parallel: Parallel,
) -> Told:
    """What the answers tell about the tastes, given the population's utility."""
    d = shared.heights.shape[1]
    precision, shift = np.empty((by_user.n_users, d, d)), np.empty((by_user.n_users, d))
    parts = _shared_out(blocks)
    pull = sites.shift - sites.precision * population.mean[by_user.margin]
    given = shared.heights, by_user.margin, sites.precision, pull
    calls = (delayed(_told)([(b.rows, b.there) for b in part], *given) for part in parts)
    for part, found in zip(parts, parallel(calls), strict=True):
        for block, (more, pulled) in zip(part, found, strict=True):
            precision[block.users], shift[block.users] = more, pulled
    return Told(precision, shift)


def _told(blocks, heights, margin, precision, shift):
    found = []
    for rows, there in blocks:
        high = heights[margin[rows]]
        share, pull = np.where(there, precision[rows], 0.0), np.where(there, shift[rows], 0.0)
        across = high.transpose(0, 2, 1)
        more = np.matmul(across * share[:, None], high)
        found.append((more, np.matmul(across, pull[:, :, None])[:, :, 0]))
    return found


def look(
    by_user: ByUser,
    blocks: list[Block],
    likelihood: Likelihood,
    population: Population,
    shared: Shared,
    people: People,
    before: Sites,
    parallel: Parallel,
    share: float,
) -> Sites:
    """The answers' factors at q, by expectation propagation.

    A margin deviates from its mean by two independent parts, the population's utility and the
    taste, each of which has seen the factor with the other at its mean. The cavity is what remains
    where the factor is taken out of both.

    Parameters
    ----------
    share : float
        Of the way from the factors before.
    """
    n = len(by_user.user)
    precision, shift, mean, variance = np.empty((4, n))
    value = 0.0
    parts = _shared_out(blocks)
    given = by_user, likelihood, population[:2], shared, before.precision, before.shift, share
    calls = (delayed(_seen)(part, *_of(people, part), *given) for part in parts)
    for found in parallel(calls):
        rows, *rest, gained = found
        precision[rows], shift[rows], mean[rows], variance[rows] = rest
        value += gained
    return Sites(precision, shift, value, mean, variance)


def _of(people, part):
    users = np.concatenate([block.users for block in part])
    return people.mean[users], people.cov[users]


def _seen(blocks, w, cov, by_user, likelihood, population, shared, precision, shift, share):
    """Factors of the answers of some users."""
    kept, start = [], 0
    for block in blocks:
        users = slice(start, start + len(block.users))
        start = users.stop
        high = shared.heights[by_user.margin[block.rows]]
        level = np.matmul(high, w[users][:, :, None])[:, :, 0]
        wide = np.einsum("und,und->un", np.matmul(high, cov[users]), high)
        kept.append([each[block.there] for each in (block.rows, level, wide)])
    rows, level, wide = (np.concatenate(each) for each in zip(*kept, strict=True))
    margin, sign, weight = by_user.margin[rows], by_user.sign[rows], by_user.weight[rows]
    # of one of equal answers
    one, pull = precision[rows] / weight, shift[rows] / weight
    mean, variance = population[0][margin] + level, population[1][margin] + wide
    cavity = sum(
        part / np.maximum(1.0 - one * part, _LEAST) for part in (population[1][margin], wide)
    )
    centre = mean - cavity * (pull - one * mean)
    oriented, rest = sign * centre, shared.rest[margin]
    at = likelihood.tilted(oriented, cavity + rest, by_user.answers.take(rows))
    gained = at.log_normaliser - _log_normaliser(one, pull, centre, cavity)
    gained += pull * mean - 0.5 * one * (mean**2 + variance)
    shrink = at.shrink + rest * at.curvature
    one = one + share * (at.curvature / shrink - one)
    pull = pull + share * (sign * (at.gradient + oriented * at.curvature) / shrink - pull)
    return rows, weight * one, weight * pull, oriented, cavity + rest, float(weight @ gained)


def _log_normaliser(precision, shift, mean, variance):
    """log E[exp(shift g − ½ precision g²)] under Gaussians."""
    more = 1.0 + precision * variance
    inner = variance * shift**2 + 2.0 * mean * shift - precision * mean**2
    return 0.5 * (inner / more - np.log(more))


def _shared_out(blocks):
    return [blocks[k : k + _TOGETHER] for k in range(0, len(blocks), _TOGETHER)]
