"""The steps of inference: q given the answers' factors, and the factors by expectation propagation.

A user's margin is g = δf(x) + w·δh(x) + ε: the population's utility f, the user's taste w weighing
shared functions h, and what these functions leave, ε. Every answer becomes a Gaussian factor of g;
given them q of all utilities is a closed form, whose marginals without a factor are its cavities.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skpref._linalg import Array
from skpref.collaborative._by_user import Block, ByUser
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

# Blocks of users that one task takes.
_TOGETHER = 16
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
    parts : list of list of (Block, Local)
        Users in tasks, and their tastes given that.
    """

    basis: Basis
    common: Common
    parts: list[list[tuple[Block, Local]]]


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
    by_user: ByUser,
    parts: list[list[Block]],
    margins: Margins,
    sites: Sites,
    basis: Basis,
    parallel: Parallel,
) -> Joint:
    """q given the factors, exact.

    Parameters
    ----------
    by_user : ByUser
    parts : list of list of Block
    margins : Margins
    sites : Sites
    basis : Basis
    parallel : joblib.Parallel
    """
    precision, shift = by_user.copies * sites.precision, by_user.copies * sites.shift
    d = margins.heights.shape[1]
    table = np.hstack([margins.heights @ basis.turn, margins.features])
    given = table, d, by_user.margin, precision, shift, basis
    found = list(parallel(delayed(_posterior)(part, *given) for part in parts))
    at = common([seen for _, seen in found], basis)
    local = [
        list(zip(part, kept, strict=True)) for part, (kept, _) in zip(parts, found, strict=True)
    ]
    return Joint(basis, at, local)


def _posterior(blocks, table, d, margin, precision, shift, basis):
    kept, total = [], None
    for block in blocks:
        told = (np.where(block.there, values[block.rows], 0.0) for values in (precision, shift))
        local, seen = look_at(block, table[margin[block.rows]], d, tuple(told), basis)
        kept.append(local)
        total = seen if total is None else total.plus(seen)
    return kept, total


def everybody(at: Joint) -> Tastes:
    """Tastes under q, user after user."""
    turn, common = at.basis.turn, at.common
    n, (d, r), m = len(at.basis.psi), common.by_feature.shape, len(common.mean)
    mean, slope, cov = np.empty((n, d)), np.empty((n, d, m)), np.empty((n, d, d))
    pull = np.empty((n, d, d)) if r else None
    wide = common.by_feature_cov
    for block, local in (each for part in at.parts for each in part):
        users = block.users
        q = marginal(local, common, at.basis.psi[users], wide)
        mean[users], slope[users] = q.mean @ turn.T, np.matmul(turn, q.slope)
        cov[users] = np.matmul(np.matmul(turn, q.cov), turn.T)
        if pull is not None:
            pull[users] = np.matmul(turn, local.pull)
    told = common.by_feature, common.by_feature_root, common.by_feature_slope
    return Tastes(mean, cov, slope, at.basis.prior, turn, *told, pull)


def look(
    by_user: ByUser,
    likelihood: Likelihood,
    margins: Margins,
    at: Joint,
    before: Sites,
    parallel: Parallel,
) -> Look:
    """The factors that answers ask for at q, by expectation propagation.

    Parameters
    ----------
    by_user : ByUser
    likelihood : Likelihood
    margins : Margins
    at : Joint
        q given the factors before.
    before : Sites
    parallel : joblib.Parallel
    """
    n, users = len(by_user.user), at.basis
    level = margins.features @ at.common.mean
    table = np.hstack([margins.heights @ users.turn, margins.features @ at.common.root.T])
    given = by_user, likelihood, level, table, margins.rest, before
    shared = users.psi, at.common, at.common.by_feature_cov
    sites = Sites(*np.empty((4, n)))
    value = -0.5 * (at.common.quadratic + at.common.log_det)
    own = np.zeros((len(users.level),) * 2)
    for found in parallel(delayed(_look)(part, *shared, *given) for part in at.parts):
        rows, seen, gained, second = found
        for whole, some in zip(sites, seen, strict=True):
            whole[rows] = some
        value += gained
        own += second
    return Look(sites, value, own / by_user.n_users)


def _look(part, psi, at, wide, by_user, likelihood, level, table, rest, before):
    """Factors of the answers of some users, their part of the evidence, and second moments."""
    kept, value, own = [], 0.0, 0.0
    for block, local in part:
        q = marginal(local, at, psi[block.users], wide)
        own, value = own + q.own, value - 0.5 * q.quadratic
        d = q.mean.shape[1]
        margin = by_user.margin[block.rows]
        rows = table[margin]
        high = rows[:, :, :d]
        mean = level[margin] + times(high, q.mean)
        sway = rows[:, :, d:] + np.matmul(high, q.slope)
        variance = np.einsum("und,und->un", np.matmul(high, q.cov), high)
        variance += np.einsum("unm,unm->un", sway, sway)
        kept.append([each[block.there] for each in (block.rows, mean, variance)])
    rows, mean, variance = (np.concatenate(each) for each in zip(*kept, strict=True))
    found, gained = _factors(
        mean, variance, rest[by_user.margin[rows]], by_user, rows, likelihood, before
    )
    return rows, found, value + gained, own


def _factors(mean, variance, rest, by_user, rows, likelihood, before):
    sign, copies = by_user.sign[rows], by_user.copies[rows]
    one, shift = before.precision[rows], before.shift[rows]
    share = 1.0 - one * variance
    proper = share > _PROPER
    share = np.where(proper, share, 1.0)
    cavity = variance / share  # GPML (3.56)
    pull = shift - one * mean
    oriented = sign * (mean - cavity * pull)
    power = None if by_user.power is None else by_user.power[rows]
    at = likelihood.tilted(oriented, cavity + rest, by_user.answers.take(rows), power)
    # log Z_EP (GPML 3.65), arranged so that no large terms cancel.
    gained = at.log_normaliser - 0.5 * np.log(share) + 0.5 * cavity * pull**2
    shrink = at.shrink + rest * at.curvature
    wanted = at.curvature / shrink, sign * (at.gradient + oriented * at.curvature) / shrink
    kept = (np.where(proper, to, old) for old, to in zip((one, shift), wanted, strict=True))
    return Sites(*kept, oriented, cavity + rest), float(copies @ gained)


def in_tasks(blocks: list[Block]) -> list[list[Block]]:
    """Blocks that one task takes together."""
    return [blocks[k : k + _TOGETHER] for k in range(0, len(blocks), _TOGETHER)]
