"""The parts of collaborative inference: blocks of users, tastes given what answers tell."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from collaborative_support import make_study
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.collaborative._fit import Task, _update_covariances, fit
from skpref.collaborative._tastes import Covariances, Features
from skpref.collaborative._teams import ByUser, divide_into_teams, update_factors
from skpref.collaborative._users import UserTable
from skpref.data import Respondents, check_respondents
from skpref.data._comparisons import Comparisons
from skpref.duels import ItemTable
from skpref.gp._inducing import Inducing
from skpref.likelihoods import Probit


def by_user_of(study):
    comparisons = Comparisons.from_duels(study.items, *study.pairs.T, study.y == 1)
    comparisons = replace(comparisons, ordered=True)
    return ByUser.from_comparisons(
        comparisons, study.users, int(study.users.max()) + 1
    ), comparisons


# -- answers by user -----------------------------------------------------------------------


def test_blocks_hold_every_answer_once():
    study = make_study(n_users=30)
    keep = np.random.default_rng(0).random(len(study.y)) < 0.4
    study = study._replace(pairs=study.pairs[keep], y=study.y[keep], users=study.users[keep])
    by_user, _ = by_user_of(study)
    (team,) = divide_into_teams(by_user, Probit(0.1), None, 3, 2**14)
    assert len(team.batches) > 3
    every = np.concatenate([users for users, _ in team.batches])
    assert_array_equal(np.sort(every), np.arange(by_user.n_users))
    n = len(by_user.user)
    rows = np.concatenate([rows[rows < n] for _, rows in team.batches])
    assert_array_equal(np.sort(rows), np.arange(n))
    for users, rows in team.batches:
        whose = np.broadcast_to(users[:, None], rows.shape)
        assert_array_equal(by_user.user[rows[rows < n]], whose[rows < n])


def test_answers_are_counted_by_user_and_keep_their_winner():
    items = np.array([[0.0], [1.0]])
    seen = Comparisons.from_duels(items, [0, 0, 1, 0], [1, 1, 0, 1], [True, True, True, False])
    by_user = ByUser.from_comparisons(seen, np.array([0, 0, 0, 1]), 2)
    margins = seen.rows.margins
    first = margins.first[by_user.margin]
    winner = np.where(by_user.sign > 0, first, margins.second[by_user.margin])
    got = set(
        zip(by_user.user.tolist(), seen.items[winner, 0].tolist(), by_user.weight, strict=True)
    )
    assert got == {(0, 0.0, 2.0), (0, 1.0, 1.0), (1, 1.0, 1.0)}


def test_pool_is_a_sum_over_answers():
    by_user, _ = by_user_of(make_study())
    values = np.random.default_rng(0).standard_normal(len(by_user.user))
    dense = np.zeros(by_user.n_margins)
    np.add.at(dense, by_user.margin, values)
    assert_allclose(by_user.pool(values), dense)


# -- what the functions leave out ----------------------------------------------------------


def test_what_few_functions_leave_is_noise_of_each_margin():
    """One duel a user: its evidence knows the whole variance, the taste the user's alone."""
    study = make_study(n_users=9, n_each=1)
    by_user, seen = by_user_of(study)
    likelihood = Probit(0.05, order_effect=0.4)
    space = Inducing(RBF(1.0), seen.items, seen.rows.margins, seen.items)
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
    found = fit(task, 300, 1e-10)
    heights = (space.margin_features @ found.functions.axes)[by_user.margin]
    whole = 1.7 * (space.variance + space.rest)[by_user.margin]
    carried = 1.7 * np.einsum("nd,nd->n", heights, heights)
    assert np.median(carried / whole) < 0.96
    scale = np.sqrt(whole + 2.0 * 0.05)
    u = 0.4 * by_user.answers.lead / scale  # the winner was shown first, or not
    assert found.log_evidence == pytest.approx(norm.logcdf(u).sum(), abs=1e-8)
    pull = by_user.sign * np.exp(norm.logpdf(u) - norm.logcdf(u)) / scale
    told = np.einsum("nd,nd->n", heights, found.tastes.mean[by_user.user])
    assert_allclose(told, carried * pull, atol=1e-7)


def test_what_few_inducing_points_leave_is_noise_of_each_margin():
    """One duel in all: its evidence knows the whole variance, of the population and of its own."""
    study = make_study(n_users=1, n_each=1)
    by_user, seen = by_user_of(study)
    space = Inducing(RBF(1.0), seen.items, seen.rows.margins, study.items[:2] + 0.3)
    likelihood = Probit(0.05, order_effect=0.4)
    task = Task(space, by_user, likelihood, 1, 0.7, 0.0, None, True, None)
    found = fit(task, 300, 1e-10)
    whole = 1.7 * (space.variance + space.rest) + 2.0 * 0.05
    assert np.all(space.rest > 0.05)
    expected = norm.logcdf(0.4 * by_user.answers.lead / np.sqrt(whole[by_user.margin]))
    assert found.log_evidence == pytest.approx(expected.sum(), abs=1e-8)


def test_covariances_are_modes_given_second_moments():
    """Of as many draws as there are users, or inducing users, beside twenty of the prior."""
    one, features = np.ones((1, 1)), Features(np.zeros((9, 3)), np.zeros(9))
    task = SimpleNamespace(
        by_user=SimpleNamespace(n_users=9), prior_users=20.0, own=1.0, features=features
    )
    at = SimpleNamespace(
        basis=SimpleNamespace(turn=2.0 * one), common=SimpleNamespace(second=0.7 * one)
    )
    found = _update_covariances(0.4 * one, at, Covariances(1.0 * one, 1.5 * one), task)
    for variance, n, moment, prior in ((found.own, 9, 0.4, 1.0), (found.shared, 3, 0.7, 1.5)):

        def lost(log, n=n, moment=4.0 * moment, prior=prior):
            return (20.0 + n) * log + (20.0 * prior + n * moment) * np.exp(-log)

        best = minimize_scalar(lost, bounds=(-5.0, 5.0), method="bounded", options={"xatol": 1e-9})
        assert variance[0, 0] == pytest.approx(np.exp(best.x), rel=1e-5)


def test_factors_of_improper_cavities_stay():
    study = make_study(n_users=1, n_each=2)
    by_user, _ = by_user_of(study)
    n = len(by_user.user)
    precision, shift, ones = np.full(n, 2.0), np.full(n, 0.3), np.ones(n)
    variance = np.where(np.arange(n) == 0, 0.5, 0.1)  # all that is known is the first factor
    at = (0.2 * ones, variance), 0.0, (precision, shift)
    wanted, value = update_factors(Probit(0.05), by_user, *at)
    assert (wanted.precision[0], wanted.shift[0]) == (2.0, 0.3)
    assert np.all(wanted.precision[1:] != 2.0) and np.all(np.isfinite(value))


# -- who they are --------------------------------------------------------------------------


def test_ids_of_any_hashable_kind():
    ids = ["ann", ("bob", 2), 3, 3.5, frozenset({1}), "ann"]
    users = Respondents(check_respondents(ids, 6, "user"), "user")
    assert len(users) == 5
    assert users.codes(["zoe", ("bob", 2), None, 3, "zed", "zoe"]).tolist() == [
        -2,
        1,
        -1,
        2,
        -3,
        -2,
    ]
    assert list(users.names) == ids[:5]


@pytest.mark.parametrize(
    ("users", "error", "message"),
    [
        (["a"], ValueError, "got 1 ids in users for 3 rows"),
        ("abc", ValueError, "sequence of ids"),
        ([["a"], ["b"], ["c"]], TypeError, "hashable; row 0 of users holds a list"),
        (np.zeros((3, 2)), ValueError, r"of shape \(3, 2\) for 3 rows"),
    ],
)
def test_users_that_are_none(users, error, message):
    with pytest.raises(error, match=message):
        check_respondents(users, 3, "user")


def test_missing_ids_are_refused_in_training():
    with pytest.raises(ValueError, match=r"missing .* row 1"):
        Respondents(["a", None, "b"], "user")


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


def test_the_noise_that_a_search_begins_with_changes_nothing():
    """Where all is noise no hyperparameter has a slope that leads away."""
    study = make_study()
    ends = [
        CollaborativePreferenceRegressor(
            noise_variance=noise, noise_variance_bounds=(1e-6, 1e6)
        ).fit(study.X, study.y, users=study.users)
        for noise in (1e-4, 0.01, 1e5)
    ]
    evidence = [each.log_marginal_likelihood_value_ for each in ends]
    assert evidence == pytest.approx([evidence[1]] * 3, abs=0.1)
