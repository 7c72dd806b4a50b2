"""q of the population's utility and of tastes, beside plain inverses of the whole Gaussian."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from collaborative_support import make_study
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref.collaborative import _teams
from skpref.collaborative._fit import Stride, evaluate_pass, posterior, posterior_tastes
from skpref.collaborative._tastes import (
    Basis,
    Covariances,
    Features,
    MarginTable,
    TasteMargins,
    marginal_tastes,
)
from skpref.collaborative._teams import AnswerSites, ByUser, Crew, divide_into_teams
from skpref.data._comparisons import Comparisons
from skpref.gp._inducing import Inducing
from skpref.likelihoods import Probit

N, D, R = 7, 3, 2
RNG = np.random.default_rng(5)
PSI = 0.5 * RNG.standard_normal((N, R))
FEATURES = Features(PSI, 1.0 - np.minimum(np.einsum("ij,ij->i", PSI, PSI), 0.9))
NONE = Features(np.zeros((N, 0)), np.zeros(N))


def covariance(seed, scale=1.0):
    half = np.random.default_rng(seed).standard_normal((D, D + 1))
    return scale * half @ half.T


class Given(NamedTuple):
    """Answers, and Gaussian factors of them."""

    by_user: ByUser
    margins: MarginTable
    sites: AnswerSites


def given(population=True):
    study = make_study(n_users=N, n_each=9)
    study = study._replace(users=np.where(study.users == 3, 4, study.users))  # 3 answers nothing
    seen = Comparisons.from_duels(study.items, *study.pairs.T, study.y == 1)
    seen = replace(seen, ordered=True)
    by_user = ByUser.from_comparisons(seen, study.users, N)
    space = Inducing(RBF(1.0), seen.items, seen.rows.margins, seen.items)
    rng = np.random.default_rng(2)
    n, features = len(by_user.user), space.margin_features
    heights = rng.standard_normal((len(features), D))
    if not population:
        features = features[:, :0]
    sites = AnswerSites(rng.exponential(2.0, n), rng.standard_normal(n), np.zeros(n), np.ones(n))
    return Given(by_user, MarginTable(heights, features, np.zeros(len(heights))), sites)


def found(told, prior, features=None):
    crew = Crew(told.margins, divide_into_teams(told.by_user, Probit(0.1), features, D, 6), None)
    basis = Basis.from_covariances(prior)
    return crew, posterior(crew, told.sites, basis)


class Dense(NamedTuple):
    """All of F, b, the parts of users' own and those that inducing users leave, as one vector.

    ``taste`` are the maps to tastes, ``log_evidence`` the log integral of all factors.
    """

    mean: np.ndarray
    cov: np.ndarray
    taste: np.ndarray
    m: int
    log_evidence: float

    def second(self, begin):
        part = slice(begin, begin + D)
        return self.cov[part, part] + np.outer(self.mean[part], self.mean[part])


def dense(told, prior, features=None):
    psi, rest = (np.zeros((N, R)), np.zeros(N)) if features is None else features
    by_user, margins = told.by_user, told.margins
    m = margins.features.shape[1]
    at = m + R * D
    total = at + 2 * N * D
    before = np.eye(total)
    taste = np.zeros((N, D, total))
    for k in range(R):
        part = slice(m + k * D, m + k * D + D)
        before[part, part] = prior.of_features
        taste[:, :, part] = psi[:, k, None, None] * np.eye(D)
    for u in range(N):
        own, left = slice(at + u * D, at + u * D + D), slice(at + (N + u) * D, at + (N + u) * D + D)
        before[own, own], before[left, left] = prior.own, rest[u] * prior.of_features
        taste[u][:, own] = taste[u][:, left] = np.eye(D)
    heights = margins.heights[by_user.margin]
    design = np.einsum("nd,ndt->nt", heights, taste[by_user.user])
    design[:, :m] += margins.features[by_user.margin]
    copies = by_user.copies
    precision, shift = copies * told.sites.precision, copies * told.sites.shift
    inner = np.diag(1.0 / precision) + design @ before @ design.T
    cov = before - before @ design.T @ np.linalg.solve(inner, design @ before)
    mean = cov @ design.T @ shift
    value = 0.5 * shift @ design @ mean - 0.5 * np.linalg.slogdet(inner * precision)[1]
    return Dense(mean, cov, taste, m, float(value))


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("features", [None, FEATURES])
def test_q_is_bayes_rule(features, population):
    prior = Covariances(covariance(0), None if features is None else covariance(1, 0.5))
    told = given(population)
    crew, at = found(told, prior, features)
    truth = dense(told, prior, features)
    tastes, m = posterior_tastes(crew, at, (features or NONE).average_user), truth.m
    whole = truth.taste @ truth.cov
    assert_allclose(at.common.mean, truth.mean[:m], atol=1e-10)
    assert_allclose(at.common.root.T @ at.common.root, truth.cov[:m, :m], atol=1e-10)
    assert_allclose(tastes.mean, truth.taste @ truth.mean, atol=1e-10)
    assert_allclose(tastes.slope @ at.common.root, whole[:, :, :m], atol=1e-10)
    each = [tastes.taste_of(u, tastes.psi[u], np.nan) for u in range(N)]
    spread = [taste.cov + taste.slope @ taste.slope.T for taste in each]
    assert_allclose(spread, whole @ truth.taste.transpose(0, 2, 1), atol=1e-10)
    # between all users at once
    high = np.random.default_rng(0).standard_normal((2 * N, D))
    users = np.arange(2 * N) % N
    known = (None, None) if features is None else (features.psi[users], features.rest[users])
    _, spread, sway = tastes.weighed_moments(True, high, users, *known)
    cov = spread + sway @ sway.T
    rows = np.einsum("nd,ndt->nt", high, truth.taste[users])
    assert_allclose(cov, rows @ truth.cov @ rows.T, atol=1e-10)
    mean, variance, sway = tastes.weighed_moments(False, high, users)
    assert_allclose(mean, rows @ truth.mean, atol=1e-10)
    assert_allclose(variance + np.square(sway).sum(axis=1), np.diag(cov), atol=1e-10)


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("features", [None, FEATURES])
def test_margins_of_answers_are_those_of_the_gaussian(features, population):
    """As `Prior.condition` gives them, of users in blocks."""
    prior = Covariances(covariance(0), None if features is None else covariance(1, 0.5))
    told = given(population)
    crew, at = found(told, prior, features)
    truth, by_user = dense(told, prior, features), told.by_user
    design = np.einsum(
        "nd,ndt->nt", told.margins.heights[by_user.margin], truth.taste[by_user.user]
    )
    design[:, : truth.m] += told.margins.features[by_user.margin]
    view = TasteMargins.from_margins(told.margins, at.basis, at.common)
    mean, variance = np.empty((2, len(by_user.user)))
    for team, known in zip(crew.teams, crew.collect_tastes(at.sites, at.basis), strict=True):
        for (users, rows), local in zip(team.batches, known, strict=True):
            q = marginal_tastes(local, at.common, team.features.psi[users], view.wide)
            is_answer = rows < len(team.answered.user)
            here = team.rows.start + rows[is_answer]
            parts = view.moments(np.append(team.answered.margin, 0)[rows], q)
            mean[here], variance[here] = (part[is_answer] for part in parts)
    assert_allclose(mean, design @ truth.mean, atol=1e-10)
    assert_allclose(variance, np.einsum("nt,nt->n", design @ truth.cov, design), atol=1e-10)


def test_a_new_user_with_features_is_a_row_more_of_the_gaussian():
    prior, told = Covariances(covariance(0), covariance(1, 0.5)), given()
    crew, at = found(told, prior, FEATURES)
    truth, tastes = dense(told, prior, FEATURES), posterior_tastes(crew, at, FEATURES.average_user)
    rng = np.random.default_rng(3)
    psi, rest = 0.5 * rng.standard_normal((2, R)), np.array([0.0, 0.25])
    high, users = rng.standard_normal((2, D)), np.array([-1, -1])
    b = np.zeros((2, D, len(truth.mean)))
    for k in range(R):
        b[:, :, truth.m + k * D : truth.m + k * D + D] = psi[:, k, None, None] * np.eye(D)
    rows = np.einsum("nd,ndt->nt", high, b)
    left = prior.own + rest[:, None, None] * prior.shared
    mean, spread, sway = tastes.weighed_moments(False, high, users, psi, rest)
    assert_allclose(mean, rows @ truth.mean, atol=1e-10)
    assert_allclose(sway @ at.common.root, (rows @ truth.cov)[:, : truth.m], atol=1e-10)
    variance = np.einsum("nd,nde,ne->n", high, left, high)
    variance += np.einsum("nt,tu,nu->n", rows, truth.cov, rows)
    assert_allclose(spread + np.square(sway).sum(axis=1), variance, atol=1e-10)
    # beside a user that was fitted
    users, psi, rest = np.array([0, -1]), PSI[[0, 5]], FEATURES.rest[[0, 5]]
    _, spread, sway = tastes.weighed_moments(True, high, users, psi, rest)
    like = np.einsum("d,dt->t", high[1], truth.taste[5])
    like[truth.m + R * D :] = 0.0
    cross = high[0] @ truth.taste[0] @ truth.cov @ like
    assert (spread + sway @ sway.T)[0, 1] == pytest.approx(cross, abs=1e-10)
    own = high[0] @ truth.taste[0] @ truth.cov @ truth.taste[0].T @ high[0]
    assert (spread + sway @ sway.T)[0, 0] == pytest.approx(own, abs=1e-10)


def test_how_users_are_parted_does_not_matter(monkeypatch):
    prior, told = Covariances(covariance(0), covariance(1, 0.5)), given()
    basis, seen = Basis.from_covariances(prior), []
    for size, width in ((3, 2**15), (1000, 6)):
        monkeypatch.setattr(_teams, "_TEAM", size)
        crew = Crew(
            told.margins, divide_into_teams(told.by_user, Probit(0.1), FEATURES, D, width), None
        )
        at = posterior(crew, told.sites, basis)
        looked = evaluate_pass(told.by_user, crew, at)
        tastes = posterior_tastes(crew, at, FEATURES.average_user)[:5]
        seen.append([*tastes, *looked.target, looked.own, looked.log_evidence])
    for this, that in zip(*seen, strict=True):
        assert_allclose(this, that, atol=1e-10)


@pytest.mark.parametrize("features", [None, FEATURES])
def test_second_moments_are_those_of_em(features):
    """As they are by plain inverses; and an EM algorithm with them never lowers the evidence."""
    prior = Covariances(covariance(0), None if features is None else covariance(1, 0.5))
    told, evidence = given(), []
    for _ in range(10):
        truth, (crew, at) = dense(told, prior, features), found(told, prior, features)
        evidence.append(truth.log_evidence)
        seen = evaluate_pass(told.by_user, crew, at)
        turn = at.basis.turn
        own, shared = turn @ seen.own @ turn.T, None
        begin = truth.m + R * D
        expected = np.mean([truth.second(begin + u * D) for u in range(N)], axis=0)
        assert_allclose(own, expected, atol=1e-9)
        if features is not None:
            shared = turn @ at.common.second @ turn.T
            expected = np.mean([truth.second(truth.m + k * D) for k in range(R)], axis=0)
            assert_allclose(shared, expected, atol=1e-9)
        prior = Covariances(own, shared)
    assert np.all(np.diff(evidence) > -1e-6)
    assert evidence[-1] > evidence[0] + 0.1


def test_strides_shorten_where_passes_go_to_and_fro():
    """x → −2.5 x leaves its fixed point by whole steps, and so it does by half ones."""
    ones = np.ones(4)
    for slope, most in ((-2.5, 0.5), (0.9, 1.0)):
        sites, stride = AnswerSites(ones, ones, ones, ones), Stride()
        for _ in range(60):
            wanted = AnswerSites(ones, slope * sites.shift, sites.shift, ones)
            stride = stride.next(sites, wanted)
            sites = stride.along(sites, wanted)
        assert np.abs(sites.shift).max() < 1e-2
        assert stride.residual < 1e-1 and stride.length <= most


def test_answers_that_say_next_to_nothing_are_far_on_their_way_and_no_overflow():
    """Of weights of a millionth beside those of a million."""
    ones = np.ones(4)
    sites = AnswerSites(ones, 1e10 * ones, ones, ones)
    wanted = AnswerSites(np.zeros(4), np.zeros(4), ones, ones)
    with np.errstate(all="raise"):
        found = Stride().next(sites, wanted)
    assert np.isfinite(found.residual) and found.residual > 1e6


def test_the_residual_is_of_a_whole_stride():
    """A short one goes a part of the way, which is no sign of being near its end."""
    ones = np.ones(4)
    sites = AnswerSites(ones, ones, ones, ones)
    for length in (1.0, 0.1):
        wanted = sites._replace(mean=ones + 0.3 * length)
        assert Stride(length).next(sites, wanted).residual == pytest.approx(0.3)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_factor_that_hardly_matters_to_its_margin_is_no_residual():
    """Of an answer that is sure beforehand: its precision has underflowed, its pull has not."""
    ones, none = np.ones(2), np.zeros(2)
    before = AnswerSites(np.array([1.0, 0.0]), none, none, ones)
    wanted = before._replace(shift=np.array([0.0, 1e-9]))
    assert Stride().next(before, wanted).residual < 1e-8
