"""Rated items of several users: pairs within a user, fitted and scored."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GroupKFold, cross_validate

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.duels import rated_pairs
from skpref.metrics import concordance

RNG = np.random.default_rng(0)
ITEMS = RNG.uniform(-1.0, 1.0, (8, 2))
TASTE = RNG.standard_normal((12, 2))
ROW = np.concatenate([RNG.choice(8, 6, replace=False) for _ in TASTE])
USERS = np.repeat([f"user {k}" for k in range(12)], 6)
# Everybody has a scale of their own: ratings of two users are not to be compared.
Y = np.round(
    4.0 * (TASTE @ ITEMS.T)[np.repeat(np.arange(12), 6), ROW]
    + np.repeat(RNG.integers(9, size=12), 6)
)
X = ITEMS[ROW]


def quick(**options):
    return CollaborativePreferenceRegressor(RBF(1.0), optimizer=None, **options)


@pytest.fixture(scope="module")
def model():
    return quick().fit(X, Y, users=USERS)


def test_they_are_the_duels_within_each_user(model):
    winner, loser = rated_pairs(Y, USERS)
    assert np.all(USERS[winner] == USERS[loser])
    duels = quick().fit(X[np.column_stack([winner, loser])], users=USERS[winner])
    for users in (USERS, None):
        expected = duels.predict(X, users=users)
        assert_allclose(model.predict(X, users=users), expected, atol=1e-8)
    assert len(model.comparisons_.weight) == len(winner)


def test_the_score_is_concordance_within_users(model):
    utility = model.predict(X, users=USERS)
    assert model.score(X, Y, users=USERS) == concordance(utility, Y, USERS) > 0.95
    assert model.score(X, Y, users=USERS) > model.score(X, Y, qid=USERS) + 0.1
    assert model.score(X, Y) == concordance(model.predict(X), Y)
    weight = RNG.uniform(size=len(Y))
    weighed = model.score(X, Y, users=USERS, sample_weight=weight)
    assert weighed == concordance(utility, Y, USERS, sample_weight=weight)
    alone = quick().fit(X, Y, qid=USERS)
    assert alone.score(X, Y, users=USERS) == alone.score(X, Y, qid=USERS)


def test_groups_part_the_items_of_a_user_further(model):
    week = np.tile([0, 0, 0, 1, 1, 1], 12)
    both = np.array([f"{user}, {when}" for user, when in zip(USERS, week, strict=True)])
    found = quick().fit(X, Y, users=USERS, qid=week)
    assert len(found.comparisons_.weight) == len(rated_pairs(Y, both)[0])
    utility = model.predict(X, users=USERS)
    assert model.score(X, Y, users=USERS, qid=week) == concordance(utility, Y, both)
    with pytest.raises(ValueError, match="qid"):
        model.score(X, Y, users=USERS, qid=week[:3])


def test_weights_multiply_and_leave_out():
    weight = np.where(USERS == "user 3", 0.0, 1.0 + (ROW == 2))
    found = quick(tol=1e-8, max_iter=500).fit(X, Y, users=USERS, sample_weight=weight)
    winner, loser = (side[USERS[side] != "user 3"] for side in rated_pairs(Y, USERS))
    twice = {"users": USERS[winner], "sample_weight": weight[winner] * weight[loser]}
    duels = quick(tol=1e-8, max_iter=500).fit(X[np.column_stack([winner, loser])], **twice)
    assert_allclose(found.predict(X, users=USERS), duels.predict(X, users=USERS), atol=1e-6)
    mine = USERS == "user 3"
    somebody = found.predict(X[mine])
    assert_allclose(found.predict(X[mine], users=USERS[mine]), somebody, atol=1e-9)
    whole = quick().fit(X, Y, users=USERS, sample_weight=1.0)
    assert_allclose(whole.predict(X), quick().fit(X, Y, users=USERS).predict(X))


def test_one_user_is_the_single_user_estimator():
    mine = USERS == "user 3"
    ours = quick().fit(X[mine], Y[mine], users=USERS[mine])
    alone = PairwisePreferenceRegressor(RBF(1.0), optimizer=None).fit(X[mine], Y[mine])
    assert_allclose(ours.predict(X), alone.predict(X))


def test_manners_of_a_fit_on_ratings(model):
    assert not hasattr(model, "predict_proba") and not hasattr(model, "classes_")
    duels = quick().fit(X[:6].reshape(3, 2, 2), users=list("aab"))
    assert hasattr(duels, "predict_proba")
    assert not hasattr(duels.fit(X, Y, users=USERS), "predict_proba")
    with pytest.warns(UserWarning, match="reads as rated items"):
        quick().fit(X, np.arange(len(X)) % 2, users=USERS)
    with pytest.raises(ValueError, match="no two items of a group differ"):
        quick().fit(X, np.unique(USERS, return_inverse=True)[1], users=USERS)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["sweet", "strong"])
    named = quick().fit(frame, Y, users=pd.Series(USERS))
    assert named.feature_names_in_.tolist() == ["sweet", "strong"]
    assert_allclose(named.predict(frame, users=USERS), model.predict(X, users=USERS))


def test_users_are_routed_into_folds(model):
    with sklearn.config_context(enable_metadata_routing=True):
        routed = quick().set_fit_request(users=True).set_score_request(users=True)
        splitter = GroupKFold(3).set_split_request(groups=True)
        params = {"users": USERS, "groups": ROW}
        found = cross_validate(routed, X, Y, cv=splitter, params=params)
    assert found["test_score"].mean() > 0.8
