"""What the collaborative model comes to where a simpler one says the same."""

import numpy as np
import pytest
from collaborative_support import make_study
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.collaborative import _learn as _study
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
    assert_allclose(model.predict_proba(study.X, users=study.users), alone, atol=1e-6)
    assert_allclose(model.predict_proba(study.X), alone, atol=1e-6)


@pytest.mark.slow
def test_users_who_answer_alike_are_pooled():
    """With everything learned: the variance of tastes goes to its lower bound."""
    study = make_study(n_users=1, n_each=12)
    n = 20
    X, y = np.tile(study.X, (n, 1, 1)), np.tile(study.y, n)
    users = np.repeat(np.arange(n), 12)
    model = CollaborativePreferenceRegressor(tol=1e-6, max_iter=1000).fit(X, y, users=users)
    assert model.taste_variance_ < 1e-4  # the evidence is flat from there to the bound of 1e-6
    alone = PairwisePreferenceRegressor().fit(X, y)
    asked = study.items[np.stack(np.triu_indices(6, k=1), axis=1)]
    for user in (0, n - 1, "somebody else"):
        found = model.predict_proba(asked, users=[user] * len(asked))
        assert_allclose(found, alone.predict_proba(asked), atol=1e-3)


@pytest.mark.parametrize("method", ["bonilla", "cpu"])
def test_users_whom_nothing_sets_apart_are_pooled(method, monkeypatch):
    """Equal features of all users, and no part of anybody's own."""
    study = make_study()
    monkeypatch.setattr(_study, "_NEXT_TO_NONE", 1e-9)
    monkeypatch.setitem(_study.METHODS, "cpu", _study.Method(True, False, True, prior_users=None))
    model = CollaborativePreferenceRegressor(
        RBF(1.0), method=method, user_features=np.zeros((8, 1)), taste_variance=0.5, **HELD
    ).fit(study.X, study.y, users=study.users)
    kernel = RBF(1.0) if method == "bonilla" else ConstantKernel(1.5) * RBF(1.0)
    alone = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None)
    truth = alone.fit(study.X, study.y)
    asked = model.predict_proba(study.X, users=study.users)
    assert_allclose(asked, truth.predict_proba(study.X), atol=1e-6)
    deviation = model.predict(study.X, return_std=True, users=study.users)[1]
    assert_allclose(deviation, truth.predict(study.X, return_std=True)[1], rtol=1e-5)


def test_without_the_others_each_user_has_an_own_estimator():
    study = make_study()
    model = CollaborativePreferenceRegressor(RBF(1.0), method="su", **HELD)
    found = model.fit(study.X, study.y, users=study.users)
    for user in range(3):
        mine = study.users == user
        alone = single().fit(study.X[mine], study.y[mine])
        asked = found.predict_proba(study.X, users=[user] * len(study.X))
        assert_allclose(asked, alone.predict_proba(study.X), atol=1e-6)


def test_bonilla_is_one_utility_of_items_and_users():
    study = make_study()
    z = np.random.default_rng(1).standard_normal((8, 1))
    z = (z - z.mean()) / z.std()
    model = CollaborativePreferenceRegressor(
        RBF(1.0), method="bonilla", user_features=z, user_kernel=RBF(0.8), **HELD
    )
    found = model.fit(study.X, study.y, users=study.users).predict_proba(study.X, users=study.users)
    X = with_users(study, z[study.users])
    own = ConstantKernel(1e-6) * OnColumns(Identity(), [2])  # next to none, but there
    kernel = OnColumns(RBF(1.0), [0, 1]) * (OnColumns(RBF(0.8), [3]) + own)
    truth = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None).fit(X, study.y)
    assert_allclose(found, truth.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("by_features", [False, True])
def test_population_and_tastes_are_the_joint_model(by_features, monkeypatch):
    """All users at once by EP, with their ids and features behind the features of items."""
    study = make_study(n_users=20, n_each=8)
    z = np.random.default_rng(1).standard_normal((20, 1))
    z = (z - z.mean()) / z.std()
    of_users = ConstantKernel(1.0) + ConstantKernel(0.5) * OnColumns(Identity(), [2])
    options = {"method": "cp", "taste_variance": 0.5}
    if by_features:
        of_users += ConstantKernel(0.5) * OnColumns(RBF(0.8), [3])
        options = {"taste_variance": 1.0, "user_features": z, "user_kernel": RBF(0.8)}
    X, held = with_users(study, z[study.users]), HELD | {"tol": 1e-10}
    kernel = OnColumns(RBF(1.0), [0, 1]) * of_users
    truth = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None).fit(X, study.y)
    for name in ("cp", "cpu"):  # covariances of tastes are as they are given
        method = _study.METHODS[name]._replace(prior_users=None)
        monkeypatch.setitem(_study.METHODS, name, method)
    model = CollaborativePreferenceRegressor(RBF(1.0), **options, **held)
    model.fit(study.X, study.y, users=study.users)
    asked = model.predict_proba(study.X, users=study.users)
    assert_allclose(asked, truth.predict_proba(X), atol=1e-6)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        truth.log_marginal_likelihood(), abs=1e-6
    )
    cov = model.predict(study.X[:, 0], return_cov=True, users=study.users)[1]
    assert_allclose(cov, truth.predict(X[:, 0], return_cov=True)[1], atol=1e-6)
    # Somebody new is a row more of the same model, and what is asked of two is known together.
    new = np.concatenate([X[:3, 0], X[3:6, 0]])
    new[:3, 2] = -1.0
    if not by_features:
        users = ["nobody"] * 3 + study.users[3:6].tolist()
        mean, cov = model.predict(new[:, :2], return_cov=True, users=users)
        exact, joint = truth.predict(new, return_cov=True)
        assert_allclose(mean, exact, atol=1e-6)
        assert_allclose(np.diag(cov), np.diag(joint), atol=1e-6)
        assert_allclose(cov[:3, 3:], joint[:3, 3:], atol=1e-6)


def test_new_items_are_those_of_the_joint_model(monkeypatch):
    """Of several users alike by their features, too, whatever the variance of their kernel."""
    study = make_study()
    method = _study.METHODS["cpu"]._replace(prior_users=None)
    monkeypatch.setitem(_study.METHODS, "cpu", method)
    z = np.linspace(-1.0, 1.0, 8)[:, None]
    z = z / z.std()
    of_users = ConstantKernel(3.0, "fixed") * RBF(0.8)
    model = CollaborativePreferenceRegressor(
        RBF(1.0), user_features=z, user_kernel=of_users, taste_variance=1.0, **HELD
    ).fit(study.X, study.y, users=study.users)
    kernel = ConstantKernel(1.0) + ConstantKernel(0.5) * OnColumns(Identity(), [2])
    kernel += ConstantKernel(0.5) * OnColumns(of_users, [3])
    kernel = OnColumns(RBF(1.0), [0, 1]) * kernel
    truth = PairwisePreferenceRegressor(kernel, noise_variance=0.05, optimizer=None)
    truth.fit(with_users(study, z[study.users]), study.y)
    users = np.array([0, 1, 1, 7])
    items = np.random.default_rng(2).uniform(-2.0, 2.0, (4, 2))
    mean, cov = model.predict(items, return_cov=True, users=users)
    exact, joint = truth.predict(np.column_stack([items, users, z[users]]), return_cov=True)
    assert_allclose(mean, exact, atol=1e-6)
    assert_allclose(cov, joint, atol=1e-5)
    deviation = model.predict(items, return_std=True, users=users)[1]
    assert_allclose(deviation, np.sqrt(np.diag(joint)), atol=1e-5)
    # Far from all, where nothing was learned: who is not known is like others as these are.
    between = 1.0 + 0.5 * of_users(z).mean()
    for users in (["eve", "joe"], [None, None]):
        cov = model.predict(np.full((2, 2), 50.0), return_cov=True, users=users)[1]
        assert_allclose(cov, between + (3.0 - between) * np.eye(2), atol=1e-6)


def test_users_whose_features_tell_nothing_of_others_are_independent(monkeypatch):
    """A kernel of users that is the identity: as without features."""
    study = make_study()
    for name in ("cp", "cpu"):
        method = _study.METHODS[name]._replace(prior_users=None)
        monkeypatch.setitem(_study.METHODS, name, method)
    z = np.arange(8.0)[:, None]
    by_features = CollaborativePreferenceRegressor(
        RBF(1.0), user_features=z, user_kernel=Identity(), taste_variance=2.0, **HELD
    ).fit(study.X, study.y, users=study.users)
    alone = CollaborativePreferenceRegressor(RBF(1.0), taste_variance=2.0, **HELD)
    alone.fit(study.X, study.y, users=study.users)
    asked = by_features.predict_proba(study.X, users=study.users)
    assert_allclose(asked, alone.predict_proba(study.X, users=study.users), atol=1e-6)
    value = by_features.log_marginal_likelihood_value_
    assert value == pytest.approx(alone.log_marginal_likelihood_value_, abs=1e-6)


def test_without_what_features_tell_users_are_independent():
    """Covariances of tastes learned."""
    study = make_study()
    z = np.random.default_rng(1).standard_normal((8, 2))
    kernel = ConstantKernel(1e-9) * RBF(1.0)
    by_features = CollaborativePreferenceRegressor(
        RBF(1.0), user_features=z, user_kernel=kernel, taste_variance=2.0, **HELD
    ).fit(study.X, study.y, users=study.users)
    alone = CollaborativePreferenceRegressor(RBF(1.0), taste_variance=1.0, **HELD)
    alone.fit(study.X, study.y, users=study.users)
    asked = by_features.predict_proba(study.X, users=study.users)
    assert_allclose(asked, alone.predict_proba(study.X, users=study.users), atol=1e-6)


def test_weights_are_repetitions():
    study = make_study(n_users=4, n_each=8)
    weight = np.random.default_rng(0).integers(0, 4, len(study.y))
    model = CollaborativePreferenceRegressor(RBF(1.0), **HELD)
    weighed = model.fit(study.X, study.y, users=study.users, sample_weight=weight)
    asked = weighed.predict_proba(study.X, users=study.users)
    X, y, users = (np.repeat(each, weight, axis=0) for each in (study.X, study.y, study.users))
    repeated = model.fit(X, y, users=users).predict_proba(study.X, users=study.users)
    assert_allclose(asked, repeated, atol=1e-6)


@pytest.mark.parametrize(
    ("weight", "options", "atol"),
    [
        (None, {"noise": 1e-4}, 1e-6),
        (None, {"own": 1e-8}, 1e-6),
        (None, {"own": 1e4}, 1e-6),
        (None, {"amplitude": 1e-8}, 1e-6),
        (None, {"amplitude": 1e6, "tol": 1e-4}, 1e-4),
        (0.1, {}, 1e-6),
        (1e3, {}, 1e-6),
        (1e6, {"opposed": True, "tol": 1e-3}, 1e-6),
    ],
)
def test_extreme_scales_and_weights_are_the_joint_model(weight, options, atol, monkeypatch):
    study = make_study(n_users=10, n_each=10)
    amplitude, own = options.get("amplitude", 1.0), options.get("own", 0.5)
    noise, X, y, users = options.get("noise", 0.05), study.X, study.y, study.users
    if "opposed" in options:  # everybody says the opposite of everything, too
        X, y, users = np.concatenate([X, X]), np.r_[y, 1 - y], np.r_[users, users]
    if weight is not None:
        weight = weight * np.random.default_rng(0).integers(1, 4, len(y))
    of_users = ConstantKernel(1.0) + ConstantKernel(own) * OnColumns(Identity(), [2])
    kernel = ConstantKernel(amplitude) * OnColumns(RBF(1.0), [0, 1]) * of_users
    rows = np.concatenate([X, np.repeat(users[:, None], 2, axis=1)[:, :, None]], axis=2)
    truth = PairwisePreferenceRegressor(kernel, noise_variance=noise, optimizer=None)
    truth.fit(rows, y, sample_weight=weight)
    method = _study.METHODS["cp"]._replace(prior_users=None)
    monkeypatch.setitem(_study.METHODS, "cp", method)
    held = HELD | {"noise_variance": noise, "tol": options.get("tol", 1e-8)}
    model = CollaborativePreferenceRegressor(
        ConstantKernel(amplitude) * RBF(1.0), taste_variance=own, **held
    ).fit(X, y, users=users, sample_weight=weight)
    asked = model.predict_proba(X, users=users)
    assert_allclose(asked, truth.predict_proba(rows), atol=atol)
    evidence = truth.log_marginal_likelihood()
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=0.02, rel=1e-6)


@pytest.mark.slow
def test_noisy_users_who_answer_alike_are_pooled():
    """A variance of tastes that counted beside a small noise would be taken for more of it."""
    rng = np.random.default_rng(1)
    items = rng.standard_normal((8, 2))
    pairs = np.array([rng.choice(8, 2, replace=False) for _ in range(20)])
    utility = items @ rng.standard_normal(2) + np.sin(2.0 * items[:, 0])
    margin = np.diff(utility[pairs])[:, 0] + 0.3 * rng.standard_normal(20)
    X, y = np.tile(items[pairs], (6, 1, 1)), np.tile((margin < 0).astype(int), 6)
    model = CollaborativePreferenceRegressor().fit(X, y, users=np.repeat(np.arange(6), 20))
    asked = items[np.stack(np.triu_indices(8, k=1), axis=1)]
    alone = PairwisePreferenceRegressor().fit(X, y).predict_proba(asked)
    found = model.predict_proba(asked, users=[0] * len(asked))
    assert_allclose(found, alone, atol=1e-3)
