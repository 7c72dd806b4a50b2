"""The steps of inference: q given the answers' factors, and the factors by expectation propagation.

A user's margin is g = δf(x) + w·δh(x) + ε: the population's utility f, the user's taste w weighing
shared functions h, and what these functions leave, ε. Every answer becomes a Gaussian factor of g;
given them q of all utilities is a closed form, whose marginals without a factor are its cavities.
"""

from typing import NamedTuple

import numpy as np

from skpref._linalg import Array
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._joint import Common, common, marginal
from skpref.collaborative._people import Basis
from skpref.collaborative._tastes import Tastes
from skpref.collaborative._teams import Crew, Sites


class Joint(NamedTuple):
    """q given the factors.

    Attributes
    ----------
    sites : Sites
        The factors.
    basis : Basis
    common : Common
        What users have in common.
    """

    sites: Sites
    basis: Basis
    common: Common


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


def posterior(crew: Crew, sites: Sites, basis: Basis) -> Joint:
    """q given the factors, exact."""
    return Joint(sites, basis, common(crew.tell(sites, basis), basis))


def everybody(crew: Crew, at: Joint) -> Tastes:
    """Tastes under q, user after user."""
    turn, common = at.basis.turn, at.common
    n, (d, r), m = len(at.basis.psi), common.by_feature.shape, len(common.mean)
    mean, slope, cov = np.empty((n, d)), np.empty((n, d, m)), np.empty((n, d, d))
    pull = np.empty((n, d, d)) if r else None
    wide = common.by_feature_cov
    for team, known in zip(crew.teams, crew.local(at.sites, at.basis), strict=True):
        for block, local in zip(team.blocks, known, strict=True):
            users = team.users[block.users]
            q = marginal(local, common, at.basis.psi[users], wide)
            mean[users], slope[users] = q.mean @ turn.T, np.matmul(turn, q.slope)
            cov[users] = np.matmul(np.matmul(turn, q.cov), turn.T)
            if pull is not None:
                pull[users] = np.matmul(turn, local.pull)
    told = common.by_feature, common.by_feature_root, common.by_feature_slope
    return Tastes(mean, cov, slope, at.basis.prior, turn, *told, pull)


def look(by_user: ByUser, crew: Crew, at: Joint) -> Look:
    """The factors that answers ask for at q, by expectation propagation."""
    sites = Sites(*np.empty((4, len(by_user.user))))
    value = -0.5 * (at.common.quadratic + at.common.log_det)
    own = np.zeros((len(at.basis.level),) * 2)
    for team, found in zip(crew.teams, crew.look(at.sites, at.basis, at.common), strict=True):
        for whole, some in zip(sites, found.wanted, strict=True):
            whole[team.rows] = some
        value += found.value
        own += found.own
    return Look(sites, value, own / by_user.n_users)
