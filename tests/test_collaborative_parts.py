"""The parts of collaborative inference: blocks of users, tastes given what answers tell."""

from dataclasses import replace

import numpy as np
import pytest
from collaborative_support import make_study
from joblib import Parallel
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref._inducing import InducedSpace
from skpref._observations import Observations
from skpref.collaborative._by_user import ByUser
from skpref.collaborative._fit import Task, fit
from skpref.collaborative._people import Covariances, Features, Told, from_features, people_given
from skpref.collaborative._posterior import Tastes
from skpref.collaborative._user_table import UserTable
from skpref.collaborative._users import Users, check_users
from skpref.duels import ItemTable
from skpref.likelihoods import Probit


def by_user_of(study):
    observations = Observations.from_duels(study.items, *study.pairs.T, study.y == 1)
    observations = replace(observations, ordered=True)
    return ByUser.of(observations, study.users, int(study.users.max()) + 1), observations


# -- answers by user -----------------------------------------------------------------------


def test_blocks_hold_every_answer_once():
    study = make_study(n_users=30)
    keep = np.random.default_rng(0).random(len(study.y)) < 0.4
    study = study._replace(pairs=study.pairs[keep], y=study.y[keep], users=study.users[keep])
    by_user, _ = by_user_of(study)
    blocks = by_user.blocks(2**14)
    assert len(blocks) > 3
    assert_array_equal(
        np.sort(np.concatenate([b.users for b in blocks])), np.arange(by_user.n_users)
    )
    rows = np.concatenate([b.rows[b.there] for b in blocks])
    assert_array_equal(np.sort(rows), np.arange(len(by_user.user)))
    for block in blocks:
        whose = np.broadcast_to(block.users[:, None], block.rows.shape)
        assert_array_equal(by_user.user[block.rows[block.there]], whose[block.there])


def test_answers_are_counted_by_user_and_keep_their_winner():
    items = np.array([[0.0], [1.0]])
    seen = Observations.from_duels(items, [0, 0, 1, 0], [1, 1, 0, 1], [True, True, True, False])
    by_user = ByUser.of(seen, np.array([0, 0, 0, 1]), 2)
    margins = seen.rows.margins
    first = margins.first[by_user.margin]
    winner = np.where(by_user.sign > 0, first, margins.second[by_user.margin])
    got = set(
        zip(by_user.user.tolist(), seen.items[winner, 0].tolist(), by_user.weight, strict=True)
    )
    assert got == {(0, 0.0, 2.0), (0, 1.0, 1.0), (1, 1.0, 1.0)}


def test_table_is_a_sum_over_answers():
    by_user, _ = by_user_of(make_study())
    values = np.random.default_rng(0).standard_normal(len(by_user.user))
    dense = np.zeros((by_user.n_margins, by_user.n_users))
    np.add.at(dense, (by_user.margin, by_user.user), values)
    assert_allclose(by_user.table(values) @ np.eye(by_user.n_users), dense)


# -- tastes --------------------------------------------------------------------------------


@pytest.fixture
def told():
    rng = np.random.default_rng(3)
    half = rng.standard_normal((5, 3, 4))
    return Told(half @ half.transpose(0, 2, 1), rng.standard_normal((5, 3)))


def covariance(seed, scale=1.0):
    half = np.random.default_rng(seed).standard_normal((3, 4))
    return scale * half @ half.T


def dense(told, prior):
    """Moments of all tastes at once by plain inverses, and the divergence from the prior."""
    n, d = told.shift.shape
    precision = np.linalg.inv(prior)
    for u in range(n):
        part = slice(u * d, (u + 1) * d)
        precision[part, part] += told.precision[u]
    cov = np.linalg.inv(precision)
    mean = cov @ told.shift.ravel()
    inner = np.linalg.solve(prior, cov + np.outer(mean, mean))
    gap = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(cov)[1]
    return mean.reshape(n, d), cov, 0.5 * (np.trace(inner) - n * d + gap)


def test_independent_tastes_are_bayes_rule(told):
    own = covariance(0)
    found = people_given(told, Covariances(own), None)
    mean, cov, divergence = dense(told, np.kron(np.eye(5), own))
    assert_allclose(found.mean, mean, atol=1e-10)
    for u in range(5):
        assert_allclose(found.cov[u], cov[3 * u : 3 * u + 3, 3 * u : 3 * u + 3], atol=1e-10)
    assert found.divergence == pytest.approx(divergence, abs=1e-9)
    second = (found.cov + found.mean[:, :, None] * found.mean[:, None]).mean(axis=0)
    assert_allclose(found.told.own, second, atol=1e-10)


def test_tastes_by_features_are_bayes_rule(told):
    rng = np.random.default_rng(5)
    own, shared = covariance(0), covariance(1, 0.5)
    psi = 0.5 * rng.standard_normal((5, 2))
    rest = 1.0 - np.minimum(np.einsum("ij,ij->i", psi, psi), 0.9)
    prior = np.kron(np.eye(5), own) + np.kron(psi @ psi.T + np.diag(rest), shared)
    found = people_given(told, Covariances(own, shared), Features(psi, rest))
    mean, cov, divergence = dense(told, prior)
    assert_allclose(found.mean, mean, atol=1e-10)
    for u in range(5):
        assert_allclose(found.cov[u], cov[3 * u : 3 * u + 3, 3 * u : 3 * u + 3], atol=1e-10)
    assert found.divergence == pytest.approx(divergence, abs=1e-9)
    # A new user with features is a row more of the joint Gaussian.
    new = 0.5 * rng.standard_normal((1, 2))
    cross = np.kron(new @ psi.T, shared)
    expected = cross @ np.linalg.solve(prior, mean.ravel())
    drop = np.linalg.inv(prior) - np.linalg.inv(prior) @ cov @ np.linalg.inv(prior)
    spread = np.kron(new @ new.T, shared) - cross @ drop @ cross.T
    centre, wide = from_features(new, found.by_feature, found.by_feature_cov)
    assert_allclose(centre[0], expected, atol=1e-10)
    assert_allclose(wide[0], spread, atol=1e-10)


def test_second_moments_are_those_of_em(told):
    """An EM algorithm with them never lowers the evidence."""
    own, evidence = covariance(0), []
    for _ in range(15):
        found = people_given(told, Covariances(own), None)
        inside = np.einsum("ude,ude->", told.precision, found.cov)
        inside += np.einsum("ud,ude,ue->", found.mean, told.precision, found.mean)
        value = np.vdot(told.shift, found.mean) - 0.5 * inside - found.divergence
        evidence.append(float(value))
        own = found.told.own
    assert np.all(np.diff(evidence) > -1e-6)
    assert evidence[-1] > evidence[0] + 0.1


def test_somebody_has_the_prior_taste_unless_features_tell_more():
    own, shared = covariance(0), covariance(1, 0.5)
    rng = np.random.default_rng(2)
    b, half = rng.standard_normal((3, 2)), rng.standard_normal((6, 4))
    b_cov = 0.05 * (half @ half.T).reshape(3, 2, 3, 2)
    tastes = Tastes(np.ones((2, 3)), np.ones((2, 3, 3)), Covariances(own, shared), b, b_cov)
    psi, rest = rng.standard_normal((3, 2)), np.array([0.0, np.nan, 0.25])
    mean, cov = tastes.of(np.array([1, -1, -1]), psi, rest)
    assert_array_equal(mean[:2], [[1.0] * 3, [0.0] * 3])
    assert_array_equal(cov[0], np.ones((3, 3)))
    assert_allclose(cov[1], own + shared)
    assert_allclose(mean[2], b @ psi[2])
    known = np.einsum("k,dkel,l->de", psi[2], b_cov, psi[2])
    assert_allclose(cov[2], own + 0.25 * shared + known)
    alone = tastes._replace(prior=Covariances(own)).of(np.array([-1]))[1]
    assert_allclose(alone[0], own)


# -- what the functions leave out ----------------------------------------------------------


def test_what_few_functions_leave_is_noise_of_each_margin():
    """One duel a user: its evidence knows the whole variance, the taste its own part alone."""
    study = make_study(n_users=9, n_each=1)
    by_user, seen = by_user_of(study)
    likelihood = Probit(0.05, order_effect=0.4)
    space = InducedSpace(RBF(1.0), seen.items, seen.rows.margins, seen.items)
    task = Task(
        space=space,
        by_user=by_user,
        likelihood=likelihood,
        n_latent=2,
        own=1.7,
        shared=0.0,
        features=None,
        population=False,
        prior_users=None,
    )
    found = fit(task, 300, 1e-10, Parallel(1))
    heights = (space.margin_features @ found.axes)[by_user.margin]
    whole = 1.7 * space.prior_variance[by_user.margin]
    carried = 1.7 * np.einsum("nd,nd->n", heights, heights)
    assert np.median(carried / whole) < 0.96
    scale = np.sqrt(whole + 2.0 * 0.05)
    u = 0.4 * by_user.answers.lead / scale  # the winner was shown first, or not
    assert found.log_evidence == pytest.approx(norm.logcdf(u).sum(), abs=1e-8)
    pull = by_user.sign * np.exp(norm.logpdf(u) - norm.logcdf(u)) / scale
    told = np.einsum("nd,nd->n", heights, found.people.mean[by_user.user])
    assert_allclose(told, carried * pull, atol=1e-7)


# -- who they are --------------------------------------------------------------------------


def test_ids_of_any_hashable_kind():
    ids = ["ann", ("bob", 2), 3, 3.5, frozenset({1}), "ann"]
    users = Users(check_users(ids, 6))
    assert len(users) == 5
    assert users.codes(["zoe", ("bob", 2), "ann", 3]).tolist() == [-1, 1, 0, 2]
    assert list(users.names) == ids[:5]


@pytest.mark.parametrize(
    ("users", "error", "message"),
    [
        (["a"], ValueError, "X has 3 rows, users 1 ids"),
        ("abc", ValueError, "sequence of ids"),
        ([["a"], ["b"], ["c"]], TypeError, "hashable; row 0 of users holds a list"),
        (np.zeros((3, 2)), ValueError, r"shape \(n,\)"),
    ],
)
def test_users_that_are_none(users, error, message):
    with pytest.raises(error, match=message):
        check_users(users, 3)


def test_missing_ids_are_refused_in_training():
    with pytest.raises(ValueError, match=r"missing .* row 1"):
        Users(["a", None, "b"])


def test_tables_of_users_by_id_frame_or_position():
    rows = [[0.0, 5.0], [1.0, 7.0], [4.0, 6.0]]
    mapping = UserTable({"a": rows[0], ("b",): rows[1], 3: rows[2]})
    array = UserTable(np.array(rows))
    assert_allclose(mapping.rows, array.rows)
    assert_allclose(array.rows.std(axis=0), 1.0)
    assert mapping.places([3, "a", "zoe"]).tolist() == [2, 0, -1]
    assert array.places([2, 0, 9]).tolist() == [2, 0, -1]
    pd = pytest.importorskip("pandas")
    frame = UserTable(pd.DataFrame(rows, index=["a", "b", "c"]))
    assert frame.places(["c"]).tolist() == [2]
    with pytest.raises(ValueError, match="twice"):
        UserTable(pd.DataFrame(rows, index=["a", "a", "c"]))


@pytest.mark.parametrize("table", [[1.0, 2.0], {"a": ["x"]}, [[np.nan]], ItemTable([[1.0]])])
def test_tables_that_are_none(table):
    with pytest.raises(ValueError, match="user_features"):
        UserTable(table)
