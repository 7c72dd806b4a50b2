"""What the collaborative model comes to where a simpler one says the same."""

import numpy as np
import pytest
from collaborative_support import make_study
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.kernels import Identity, OnColumns

HELD = {"noise_variance": 0.05, "optimizer": None, "tol": 1e-8, "max_iter": 500}


def single(**options):
    return PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.05, optimizer=None, **options)


def with_users(study, *columns):
    """Items with columns of their users behind them, two rows a duel."""
    more = np.column_stack([study.users, *columns])
    rows = np.broadcast_to(more[:, None], (len(more), 2, more.shape[1]))
    return np.concatenate([study.X, rows], axis=2)


@pytest.mark.parametrize("users", [None, ["ann"] * 80])
def test_one_user_is_the_single_user_estimator(users):
    study = make_study()
    model = CollaborativePreferenceRegressor().fit(study.X, study.y, users=users)
    alone = PairwisePreferenceRegressor().fit(study.X, study.y)
    assert_allclose(model.predict_proba(study.X), alone.predict_proba(study.X), atol=1e-12)
    asked = model.predict_proba(study.X, users=["ann"] * 80)
    assert_allclose(asked, alone.predict_proba(study.X), atol=1e-12)


def test_pooled_is_the_single_user_estimator():
    study = make_study()
    model = CollaborativePreferenceRegressor(method="pooled")
    model.fit(study.X, study.y, users=study.users)
    alone = PairwisePreferenceRegressor().fit(study.X, study.y)
    assert_allclose(model.predict_proba(study.X), alone.predict_proba(study.X), atol=1e-12)


def test_without_tastes_everybody_is_the_population():
    study = make_study()
    model = CollaborativePreferenceRegressor(RBF(1.0), taste_variance=1e-9, **HELD)
    model.fit(study.X, study.y, users=study.users)
    alone = single().fit(study.X, study.y).predict_proba(study.X)
    assert_allclose(model.predict_proba(study.X, users=study.users), alone, atol=1e-5)
    assert_allclose(model.predict_proba(study.X), alone, atol=1e-5)


def test_users_who_answer_alike_are_pooled():
    study = make_study(n_users=1, n_each=12)
    n = 20
    X, y = np.tile(study.X, (n, 1, 1)), np.tile(study.y, n)
    users = np.repeat(np.arange(n), 12)
    kernel, noise = RBF(1.0, "fixed"), {"noise_variance": 0.05, "noise_variance_bounds": "fixed"}
    model = CollaborativePreferenceRegressor(kernel, taste_variance_bounds=(1e-3, 10.0), **noise)
    model.fit(X, y, users=users)
    assert model.taste_variance_ < 2e-3
    alone = PairwisePreferenceRegressor(kernel, **noise).fit(X, y)
    assert_allclose(model.predict_proba(X, users=users), alone.predict_proba(X), atol=0.02)


def test_without_the_others_each_user_has_an_own_estimator():
    study = make_study()
    model = CollaborativePreferenceRegressor(RBF(1.0), method="su", **HELD)
    found = model.fit(study.X, study.y, users=study.users)
    for user in range(3):
        mine = study.users == user
        alone = single().fit(study.X[mine], study.y[mine])
        asked = found.predict_proba(study.X, users=[user] * len(study.X))
        assert_allclose(asked, alone.predict_proba(study.X), atol=1e-5)


def test_bonilla_is_one_utility_of_items_and_users():
    study = make_study()
    z = np.random.default_rng(1).standard_normal((8, 1))
    z = (z - z.mean()) / z.std()
    model = CollaborativePreferenceRegressor(
        RBF(1.0), method="bonilla", user_features=z, user_kernel=RBF(0.8), **HELD
    )
    found = model.fit(study.X, study.y, users=study.users).predict_proba(study.X, users=study.users)
    X = with_users(study, z[study.users])
    kernel = OnColumns(RBF(1.0), [0, 1]) * OnColumns(RBF(0.8), [3])
    truth = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None).fit(X, study.y)
    assert_allclose(found, truth.predict_proba(X), atol=1e-4)


def test_population_and_tastes_against_the_joint_model():
    """All users at once by EP, each with a part of their own; ours takes the two parts apart."""
    study = make_study(n_users=20, n_each=8)
    kernel = OnColumns(RBF(1.0), [0, 1]) * (
        ConstantKernel(1.0) + ConstantKernel(0.5) * OnColumns(Identity(), [2])
    )
    X = with_users(study)
    truth = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None).fit(X, study.y)
    model = CollaborativePreferenceRegressor(RBF(1.0), taste_variance=0.5, **HELD)
    found = model.fit(study.X, study.y, users=study.users)
    ours, theirs = found.predict_proba(study.X, users=study.users), truth.predict_proba(X)
    assert_allclose(ours, theirs, atol=0.1)
    assert np.abs(ours - theirs).mean() < 0.02


def test_without_what_features_tell_users_are_independent():
    study = make_study()
    z = np.random.default_rng(1).standard_normal((8, 2))
    kernel = ConstantKernel(1e-9) * RBF(1.0)
    by_features = CollaborativePreferenceRegressor(
        RBF(1.0), user_features=z, user_kernel=kernel, taste_variance=2.0, **HELD
    ).fit(study.X, study.y, users=study.users)
    alone = CollaborativePreferenceRegressor(RBF(1.0), taste_variance=1.0, **HELD)
    alone.fit(study.X, study.y, users=study.users)
    asked = by_features.predict_proba(study.X, users=study.users)
    assert_allclose(asked, alone.predict_proba(study.X, users=study.users), atol=1e-5)


def test_weights_are_repetitions():
    study = make_study(n_users=4, n_each=8)
    weight = np.random.default_rng(0).integers(0, 4, len(study.y))
    model = CollaborativePreferenceRegressor(RBF(1.0), **HELD)
    weighed = model.fit(study.X, study.y, users=study.users, sample_weight=weight)
    asked = weighed.predict_proba(study.X, users=study.users)
    X, y, users = (np.repeat(each, weight, axis=0) for each in (study.X, study.y, study.users))
    repeated = model.fit(X, y, users=users).predict_proba(study.X, users=study.users)
    assert_allclose(asked, repeated, atol=1e-6)
