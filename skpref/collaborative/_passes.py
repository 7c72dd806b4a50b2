"""The steps of inference: q given the answers' factors, and the factors by expectation propagation.

A user's margin is g = δf(x) + w·δh(x) + ε: the population's utility f, the user's taste w weighing
shared functions h, and what these functions leave, ε. Every answer becomes a Gaussian factor of g;
given them q of all utilities is a closed form, whose marginals without a factor are its cavities.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skpref._linalg import Array
from skpref.collaborative._by_user import Part
from skpref.collaborative._joint import (
    Common,
    Local,
    common,
    look_at,
    marginal,
    times,
)
from skpref.collaborative._people import Basis
from skpref.collaborative._tastes import Tastes
from skpref.likelihoods import Likelihood

# A cavity of less than this share of the precision leaves its factor as it is.
_PROPER = 1e-12


class Margins(NamedTuple):
    """The distinct margins.

    Attributes
    ----------
    heights : ndarray of shape (n_margins, d)
        Differences of the functions that tastes weigh, δh.
    features : ndarray of shape (n_margins, m)
        Whitened features of the population's utility; m = 0 where there is none.
    rest : ndarray of shape (n_margins,)
        Variance of ε.
    """

    heights: Array
    features: Array
    rest: Array


class Sites(NamedTuple):
    """A Gaussian factor for each answer on its margin.

    Attributes
    ----------
    precision, shift : ndarray of shape (n,)
        Of one of equal answers, as the margin sees them.
    mean, variance : ndarray of shape (n,)
        Of the margins without that factor, as the winner sees them.
    """

    precision: Array
    shift: Array
    mean: Array
    variance: Array


class Joint(NamedTuple):
    """q given the factors.

    Attributes
    ----------
    basis : Basis
    common : Common
        What users have in common.
    local : list of list of Local
        Tastes given that, of the blocks of each part.
    """

    basis: Basis
    common: Common
    local: list[list[Local]]


class Look(NamedTuple):
    """What a pass over the answers found.

    Attributes
    ----------
    wanted : Sites
        Factors that the answers ask for.
    log_evidence : float
        Of the answers, at the factors of `Joint`.
    own : ndarray of shape (d, d)
        Second moments of the parts of tastes of users' own, averaged.
    """

    wanted: Sites
    log_evidence: float
    own: Array


def posterior(
    parts: list[Part], margins: Margins, sites: Sites, basis: Basis, parallel: Parallel
) -> Joint:
    """q given the factors, exact.

    Parameters
    ----------
    parts : list of Part
    margins : Margins
    sites : Sites
    basis : Basis
    parallel : joblib.Parallel
    """
    d = margins.heights.shape[1]
    given = np.hstack([margins.heights @ basis.turn, margins.features]), d, basis
    calls = (
        delayed(_posterior)(part, sites.precision[part.rows], sites.shift[part.rows], *given)
        for part in parts
    )
    found = list(parallel(calls))
    local = [local for local, _ in found]
    return Joint(basis, common([seen for _, seen in found], basis), local)


def _posterior(part, precision, shift, table, d, basis):
    precision, shift = part.copies * precision, part.copies * shift
    kept, total = [], None
    for block in part.blocks:
        told = [np.where(block.there, values[block.rows], 0.0) for values in (precision, shift)]
        local, seen = look_at(block, table[part.margin[block.rows]], d, (told[0], told[1]), basis)
        kept.append(local)
        total = seen if total is None else total.plus(seen)
    return kept, total


def everybody(parts: list[Part], at: Joint) -> Tastes:
    """Tastes under q, user after user."""
    turn, common = at.basis.turn, at.common
    n, (d, r), m = len(at.basis.psi), common.by_feature.shape, len(common.mean)
    mean, slope, cov = np.empty((n, d)), np.empty((n, d, m)), np.empty((n, d, d))
    pull = np.empty((n, d, d)) if r else None
    wide = common.by_feature_cov
    blocks = [block for part in parts for block in part.blocks]
    for block, local in zip(blocks, (each for some in at.local for each in some), strict=True):
        users = block.users
        q = marginal(local, common, at.basis.psi[users], wide)
        mean[users], slope[users] = q.mean @ turn.T, np.matmul(turn, q.slope)
        cov[users] = np.matmul(np.matmul(turn, q.cov), turn.T)
        if pull is not None:
            pull[users] = np.matmul(turn, local.pull)
    told = common.by_feature, common.by_feature_root, common.by_feature_slope
    return Tastes(mean, cov, slope, at.basis.prior, turn, *told, pull)


def look(
    parts: list[Part],
    likelihood: Likelihood,
    margins: Margins,
    at: Joint,
    before: Sites,
    parallel: Parallel,
) -> Look:
    """The factors that answers ask for at q, by expectation propagation.

    Parameters
    ----------
    parts : list of Part
    likelihood : Likelihood
    margins : Margins
    at : Joint
        q given the factors before.
    before : Sites
    parallel : joblib.Parallel
    """
    users = at.basis
    level = margins.features @ at.common.mean
    table = np.hstack([margins.heights @ users.turn, margins.features @ at.common.root.T])
    given = users.psi, at.common, at.common.by_feature_cov, likelihood, level, table, margins.rest
    calls = (
        delayed(_look)(part, local, before.precision[part.rows], before.shift[part.rows], *given)
        for part, local in zip(parts, at.local, strict=True)
    )
    sites = Sites(*np.empty((4, len(before.precision))))
    value = -0.5 * (at.common.quadratic + at.common.log_det)
    own = np.zeros((len(users.level),) * 2)
    for part, (seen, gained, second) in zip(parts, parallel(calls), strict=True):
        for whole, some in zip(sites, seen, strict=True):
            whole[part.rows] = some
        value += gained
        own += second
    return Look(sites, value, own / len(users.psi))


def _look(part, local, one, shift, psi, at, wide, likelihood, level, table, rest):
    """Factors of the answers of some users, their part of the evidence, and second moments."""
    kept, value, own = [], 0.0, 0.0
    for block, tastes in zip(part.blocks, local, strict=True):
        q = marginal(tastes, at, psi[block.users], wide)
        own, value = own + q.own, value - 0.5 * q.quadratic
        d = q.mean.shape[1]
        margin = part.margin[block.rows]
        rows = table[margin]
        high = rows[:, :, :d]
        mean = level[margin] + times(high, q.mean)
        sway = rows[:, :, d:] + np.matmul(high, q.slope)
        variance = np.einsum("und,und->un", np.matmul(high, q.cov), high)
        variance += np.einsum("unm,unm->un", sway, sway)
        kept.append([mean[block.there], variance[block.there]])
    mean, variance = (np.concatenate(each) for each in zip(*kept, strict=True))
    found, gained = _factors(part, mean, variance, rest[part.margin], one, shift, likelihood)
    return found, value + gained, own


def _factors(part, mean, variance, rest, one, shift, likelihood):
    """Factors at marginals under q, of which these are the present ones."""
    share = 1.0 - one * variance
    proper = share > _PROPER
    share = np.where(proper, share, 1.0)
    cavity = variance / share  # GPML (3.56)
    pull = shift - one * mean
    oriented = part.sign * (mean - cavity * pull)
    at = likelihood.tilted(oriented, cavity + rest, part.answers, part.power)
    # log Z_EP (GPML 3.65), arranged so that no large terms cancel.
    gained = at.log_normaliser - 0.5 * np.log(share) + 0.5 * cavity * pull**2
    shrink = at.shrink + rest * at.curvature
    wanted = at.curvature / shrink, part.sign * (at.gradient + oriented * at.curvature) / shrink
    kept = (np.where(proper, to, old) for old, to in zip((one, shift), wanted, strict=True))
    return Sites(*kept, oriented, cavity + rest), float(part.copies @ gained)
