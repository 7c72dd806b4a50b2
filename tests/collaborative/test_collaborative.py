"""CollaborativePreferenceRegressor's manners: users in fit and in predictions."""

import pickle

import numpy as np
import pytest
import sklearn
from collaborative_support import make_study
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.likelihoods import Probit

STUDY = make_study(n_users=12, n_each=12, taste=2.0, noise=0.05)
NAMES = np.array([f"user {k}" for k in range(12)], dtype=object)[STUDY.users]


def quick(**options):
    return CollaborativePreferenceRegressor(
        RBF(1.0), **({"noise_variance": 0.02, "optimizer": None} | options)
    )


def fitted(**options):
    return quick(**options).fit(STUDY.X, STUDY.y, users=NAMES)


# -- learning ------------------------------------------------------------------------------


def test_tastes_are_learned():
    test = make_study(n_users=12, n_each=12, taste=2.0, noise=0.05)
    fresh = np.random.default_rng(9)
    pairs = np.array([fresh.choice(6, 2, replace=False) for _ in test.users])
    rng = np.random.default_rng(0)  # the utilities of make_study
    items = rng.uniform(-1.5, 1.5, (6, 2))
    own = np.sqrt(2.0) * rng.standard_normal((12, 2)) @ items.T
    utility = np.sin(2.0 * items[:, 0]) + 0.5 * items[:, 1] + own
    y = (utility[test.users, pairs[:, 0]] > utility[test.users, pairs[:, 1]]).astype(int)
    model = CollaborativePreferenceRegressor().fit(STUDY.X, STUDY.y, users=NAMES)
    scores = {
        "own": model.score(items[pairs], y, users=NAMES),
        "population": model.score(items[pairs], y),
    }
    assert scores["own"] > 0.9 > scores["population"] + 0.1
    assert model.users_.tolist() == [f"user {k}" for k in range(12)]


def test_the_learned_covariance_knows_what_goes_together():
    """Who likes the first feature dislikes the second: one answer tells of items never seen."""
    rng = np.random.default_rng(0)
    items = rng.uniform(-1.0, 1.0, (8, 2))
    taste = rng.standard_normal(80)
    utility = taste[:, None] * (items[:, 0] - items[:, 1])
    users = np.repeat(np.arange(80), 12)
    pairs = np.array([rng.choice(8, 2, replace=False) for _ in users])
    y = (utility[users, pairs[:, 0]] > utility[users, pairs[:, 1]]).astype(int)
    shown = np.argsort(items[:, 0] - items[:, 1])[[-1, 0]]
    model = quick(noise_variance=0.05)
    model.fit(np.vstack([items[pairs], items[shown][None]]), [*y, 1], users=[*users, "new"])
    rest = np.setdiff1d(np.arange(8), shown)
    predicted = model.predict(items[rest], users=["new"] * 6)
    assert np.corrcoef(predicted, (items[:, 0] - items[:, 1])[rest])[0, 1] > 0.95
    first, second = np.linalg.eigvalsh(model.posterior_.tastes.prior.own)[[-1, -2]]
    assert first > 5.0 * second


def test_features_tell_of_new_users():
    rng = np.random.default_rng(1)
    items, z = rng.uniform(-1.0, 1.0, (6, 1)), np.linspace(-1.0, 1.0, 41)
    utility = z[:, None] * items[:, 0]
    users = np.repeat(np.arange(40), 6)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in users])
    y = (utility[users, pairs[:, 0]] > utility[users, pairs[:, 1]]).astype(int)
    table = {f"u{k}": [z[k]] for k in range(40)} | {"low": [-0.95], "high": [0.95]}
    model = quick(user_features=table, taste_variance=4.0)
    model.fit(items[pairs], y, users=[f"u{k}" for k in users])
    duel = np.array([[[0.9], [-0.9]]] * 3)
    low, high, nobody = model.predict_proba(duel, users=["low", "high", "who"])[:, 1]
    assert low < 0.2 and high > 0.8 and 0.25 < nobody < 0.75


@pytest.mark.parametrize("inference", ["ep", "vb"])
@pytest.mark.parametrize("n_inducing_users", [3, 100])
def test_somebody_of_unknown_features_is_any_of_the_fitted_users(inference, n_inducing_users):
    """Mean and covariance are those of a mixture of new users, who have the features of these."""
    rng, n = np.random.default_rng(2), STUDY.users.max() + 1
    z = np.exp(rng.normal(size=(n, 2)))
    model = CollaborativePreferenceRegressor(
        RBF(1.0),
        user_features=np.vstack([z, z]),
        user_kernel=RBF(3.0),
        taste_variance=30.0,
        n_inducing_users=n_inducing_users,
        noise_variance=0.1,
        optimizer=None,
        inference=inference,
    ).fit(STUDY.X, STUDY.y, users=STUDY.users)
    items = STUDY.X[:4, 0]
    alike = [model.posterior_for([n + k] * 4) for k in range(n)]
    means = np.array([each.mean(items) for each in alike])
    cov = np.mean([each.cov(items) for each in alike], axis=0) + np.cov(means.T, bias=True)
    for one in (model.posterior_, model.posterior_for(["who"] * 4)):
        assert_allclose(one.mean(items), means.mean(axis=0), atol=1e-9)
        assert_allclose(one.cov(items), cov, atol=1e-8)
        assert_allclose(one.var(items), np.diag(cov), atol=1e-8)
    others = model.posterior_for([None] * 4)
    assert_allclose(others.var(items), np.diag(cov), atol=1e-8)
    mixed = model.posterior_for([0, "who", n, "who"])
    found, known = mixed.cov(items), model.posterior_for([0, n])
    assert_allclose(found[np.ix_([0, 2], [0, 2])], known.cov(items[[0, 2]]), atol=1e-9)
    assert_allclose(found[np.ix_([1, 3], [1, 3])], cov[np.ix_([1, 3], [1, 3])], atol=1e-8)
    beside = [model.posterior_for([0, n + k]).cov(items[:2])[0, 1] for k in range(n)]
    assert found[0, 1] == pytest.approx(np.mean(beside), abs=1e-9)
    sides = STUDY.X[:4, 0], STUDY.X[:4, 1]
    by_user = np.array([each.margin(*sides)[0] for each in alike])
    assert_allclose(model.posterior_.margin(*sides)[0], by_user.mean(axis=0), atol=1e-9)


def test_users_whose_answers_weigh_nothing_are_nobody():
    rng, features = np.random.default_rng(0), {"a": [0.0], "b": [1.0], "c": [9.0]}
    items, users = rng.normal(size=(6, 1)), np.array(["a", "b"] * 25 + ["c"] * 10)
    pairs = np.array([rng.permutation(6)[:2] for _ in users])
    X, kept = items[pairs], users != "c"
    y = (np.where(users == "b", -1, 1) * (X[:, 0, 0] - X[:, 1, 0]) > 0).astype(int)
    weighed, left_out = (
        CollaborativePreferenceRegressor(user_features=features, optimizer=None) for _ in range(2)
    )
    weighed.fit(X, y, users=users, sample_weight=kept.astype(float))
    left_out.fit(X[kept], y[kept], users=users[kept])
    for user in "ac?":
        found = weighed.predict(items, users=[user] * 6, return_std=True)
        assert_allclose(
            found, left_out.predict(items, users=[user] * 6, return_std=True), atol=2e-3
        )


# -- users in predictions ------------------------------------------------------------------


def test_lengthscales_of_users_have_a_prior():
    """Two users all of whose features differ alike tell nothing of how far features reach."""
    z = {0: [0.0] * 4, 1: [1.0] * 4}
    two = STUDY.users < 2
    for start in (0.3, 20.0):
        model = CollaborativePreferenceRegressor(
            RBF(1.0, "fixed"),
            user_features=z,
            user_kernel=RBF(start),
            taste_variance=1e-4,
            taste_variance_bounds="fixed",
            noise_variance_bounds="fixed",
        ).fit(STUDY.X[two], STUDY.y[two], users=STUDY.users[two])
        assert model.user_kernel_.length_scale == pytest.approx(2.0, rel=0.05)


def test_unknown_users_are_the_population():
    model = fitted()
    for users in (["nobody"] * len(STUDY.X), [None] * len(STUDY.X)):
        assert_allclose(model.predict_proba(STUDY.X, users=users), model.predict_proba(STUDY.X))
        assert_allclose(model.predict(STUDY.X, users=users), model.predict(STUDY.X))
    mean, deviation = model.predict(STUDY.X, return_std=True)
    known = model.predict(STUDY.X, return_std=True, users=NAMES)[1]
    assert np.all(known < deviation) and len(mean) == len(STUDY.X)


def test_subsets_of_users_are_predicted_as_the_whole():
    model = fitted()
    whole = model.predict_proba(STUDY.X, users=NAMES)
    order = np.random.default_rng(0).permutation(len(NAMES))[:37]
    part = model.predict_proba(STUDY.X[order], users=NAMES[order].tolist())
    assert_allclose(part, whole[order], rtol=1e-10)


def test_order_of_answers_and_names_of_users_do_not_matter():
    model = fitted(tol=1e-7, max_iter=500)
    order = np.random.default_rng(0).permutation(len(NAMES))
    codes = {name: (name, k) for k, name in enumerate(np.unique(NAMES))}
    ids = [codes[name] for name in NAMES[order]]
    other = quick(tol=1e-7, max_iter=500).fit(STUDY.X[order], STUDY.y[order], users=ids)
    asked = other.predict_proba(STUDY.X[order], users=ids)
    assert_allclose(asked, model.predict_proba(STUDY.X, users=NAMES)[order], atol=1e-6)


def test_swapping_the_items_of_duels():
    model = fitted(tol=1e-7, max_iter=500)
    other = quick(tol=1e-7, max_iter=500).fit(STUDY.X[:, ::-1], 1 - STUDY.y, users=NAMES)
    asked = other.predict_proba(STUDY.X, users=NAMES)
    assert_allclose(asked, model.predict_proba(STUDY.X, users=NAMES), atol=1e-6)
    turned = model.predict_proba(STUDY.X[:, ::-1], users=NAMES)
    assert_allclose(turned[:, ::-1], model.predict_proba(STUDY.X, users=NAMES), rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"n_inducing": 4}])
def test_margins_variances_and_covariances_agree(options):
    model = fitted(n_latent=3, **options)
    users = np.repeat(["user 0", "user 1", "who"], 6)
    items = np.tile(STUDY.items, (3, 1))
    mean, cov = model.predict(items, return_cov=True, users=users)
    deviation = model.predict(items, return_std=True, users=users)[1]
    assert_allclose(np.sqrt(np.diag(cov)), deviation, rtol=1e-8)
    duels = np.stack([items[:5], items[1:6]], axis=1)
    margin, spread = model.predict(duels, return_std=True, users=users[:5])
    assert_allclose(margin, mean[:5] - mean[1:6], atol=1e-10)
    difference = cov[range(5), range(5)] + cov[range(1, 6), range(1, 6)]
    difference -= 2.0 * cov[range(5), range(1, 6)]
    assert_allclose(spread**2, difference, rtol=1e-7)
    draws = model.sample_y(items, 4000, users=users)
    assert_allclose(np.cov(draws), cov, atol=0.2 * cov.max())
    assert np.abs(draws.mean(axis=1) - mean).max() < 0.1


def test_inducing_points_at_all_items_change_nothing():
    exact, other = fitted(), fitted(n_inducing=len(STUDY.items))
    assert_allclose(exact.predict(STUDY.X, users=NAMES), other.predict(STUDY.X, users=NAMES))
    few = fitted(n_inducing=5, n_latent=4).predict_proba(STUDY.X, users=NAMES)[:, 1]
    assert np.abs(few - exact.predict_proba(STUDY.X, users=NAMES)[:, 1]).mean() < 0.1


# -- odd users -----------------------------------------------------------------------------


def test_a_user_with_one_duel_and_one_who_contradicts_himself():
    X = np.concatenate([STUDY.X, STUDY.X[:1], np.repeat(STUDY.X[1:2], 2, axis=0)])
    y = [*STUDY.y, 1, 0, 1]
    users = [*NAMES, "once", "torn", "torn"]
    proba = quick().fit(X, y, users=users).predict_proba(X, users=users)
    assert np.isfinite(proba).all()
    assert proba[-3, 1] > 0.5
    assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_latent", [1, 100])
def test_one_function_or_more_than_users(n_latent):
    few = np.isin(STUDY.users, [0, 1])
    model = quick(n_latent=n_latent).fit(STUDY.X[few], STUDY.y[few], users=NAMES[few])
    assert np.isfinite(model.predict_proba(STUDY.X, users=NAMES)).all()
    assert model.score(STUDY.X[few], STUDY.y[few], users=NAMES[few]) > 0.85


def test_one_pair_of_items():
    """Everybody contradicts himself, but for one."""
    X, y = np.repeat(STUDY.X[:1], 30, axis=0), np.tile([0, 1, 0, 1, 1, 0], 5)
    users = np.repeat(np.arange(5), 6)
    y[users == 4] = 1
    proba = quick().fit(X, y, users=users).predict_proba(X[:6], users=[0, 1, 2, 3, 4, "who"])[:, 1]
    assert_allclose(proba[:4], proba[0], rtol=1e-9)
    assert 0.5 < proba[0] < proba[5] < proba[4] and proba[4] > 0.9


def test_duels_of_equal_items_tell_nothing():
    X = np.concatenate([STUDY.X, STUDY.X[:2, [0, 0]]])
    model = quick(tol=1e-6).fit(X, [*STUDY.y, 0, 1], users=[*NAMES, *NAMES[[0, -1]]])
    assert 10 < model.n_iter_ < 100
    asked = model.predict_proba(STUDY.X, users=NAMES)
    plain = fitted(tol=1e-6).predict_proba(STUDY.X, users=NAMES)
    assert_allclose(asked, plain, atol=1e-5)
    assert_allclose(model.predict_proba(X[-2:], users=["user 0", "who"]), 0.5)


def test_users_of_weight_zero_are_somebody_of_the_population():
    weight = (STUDY.users != 3).astype(float)
    model = quick().fit(STUDY.X, STUDY.y, users=NAMES, sample_weight=weight)
    mine = NAMES == "user 3"
    asked = model.predict(STUDY.X[mine], users=NAMES[mine])
    assert_allclose(asked, model.predict(STUDY.X[mine]), atol=1e-9)


# -- ties, order effects -------------------------------------------------------------------


def test_ties_and_an_order_effect():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(STUDY.y)) < 0.2, 0, 2 * STUDY.y - 1)
    model = quick(tie_threshold=0.3, order_effect=0.2).fit(STUDY.X, y, users=NAMES)
    proba = model.predict_proba(STUDY.X, users=NAMES)
    assert proba.shape == (len(y), 3) and model.classes_.tolist() == [-1, 0, 1]
    assert_allclose(proba.sum(axis=1), 1.0)
    neither = model.predict_proba(STUDY.X, users=NAMES, order=np.zeros(len(y), dtype=int))
    assert np.all(proba[:, 2] > neither[:, 2])
    # A threshold of nothing is none.
    thin = quick(tie_threshold=1e-7, tol=1e-7, max_iter=500)
    thin = thin.fit(STUDY.X, 2 * STUDY.y - 1, users=NAMES).predict_proba(STUDY.X, users=NAMES)
    plain = fitted(tol=1e-7, max_iter=500).predict_proba(STUDY.X, users=NAMES)
    assert_allclose(thin[:, [0, 2]], plain, atol=1e-5)


def test_an_order_effect_is_learned_of_whoever_was_shown_first():
    """There is none; and turned round, with those shown second first, that of the other sign."""
    options = {"order_effect_bounds": (-5.0, 5.0), "noise_variance": 0.1, "order_effect": 0.1}
    options |= {"taste_variance_bounds": "fixed", "noise_variance_bounds": "fixed"}
    model = CollaborativePreferenceRegressor(RBF(1.0, "fixed"), **options)
    effect = model.fit(STUDY.X, STUDY.y, users=NAMES).order_effect_
    assert 1e-3 < abs(effect) < 0.3
    model.fit(STUDY.X, STUDY.y, users=NAMES, order=np.full(len(STUDY.y), -1))
    assert model.order_effect_ == pytest.approx(-effect, abs=1e-3)


def test_a_likelihood_of_ones_own():
    one = fitted(likelihood=Probit(0.02)).predict_proba(STUDY.X, users=NAMES)
    assert_allclose(one, fitted().predict_proba(STUDY.X, users=NAMES), rtol=1e-12)


# -- scikit-learn --------------------------------------------------------------------------


def test_clone_pickle_and_refit():
    model = fitted()
    again = clone(model).fit(STUDY.X, STUDY.y, users=NAMES)
    copied = pickle.loads(pickle.dumps(model))
    for other in (again, copied):
        asked = other.predict_proba(STUDY.X, users=NAMES)
        assert_array_equal(asked, model.predict_proba(STUDY.X, users=NAMES))
    alone = clone(model).fit(STUDY.X, STUDY.y)
    model.fit(STUDY.X, STUDY.y)  # everybody is one user now
    assert_allclose(model.predict_proba(STUDY.X), alone.predict_proba(STUDY.X))
    assert vars(model).keys() == vars(alone).keys()  # nothing is left of the users
    several = model.fit(STUDY.X, STUDY.y, users=NAMES)
    assert vars(several).keys() == vars(again).keys()


def test_users_are_routed_through_a_grid():
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick().set_fit_request(users=True).set_score_request(users=True)
        grid = GridSearchCV(model, {"taste_variance": [1e-6, 2.0]}, cv=3)
        grid.fit(STUDY.X, STUDY.y, users=NAMES)
        assert grid.best_params_ == {"taste_variance": 2.0}
        assert grid.score(STUDY.X, STUDY.y, users=NAMES) > 0.9


def test_jobs_do_not_matter():
    one = fitted().predict_proba(STUDY.X, users=NAMES)
    assert_allclose(fitted(n_jobs=2).predict_proba(STUDY.X, users=NAMES), one, rtol=1e-10)


def test_positions_in_a_table():
    model = quick(items=STUDY.items).fit(STUDY.pairs, STUDY.y, users=NAMES)
    asked = model.predict_proba(STUDY.pairs, users=NAMES)
    assert_allclose(asked, fitted().predict_proba(STUDY.X, users=NAMES), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "als"}, ValueError, "method"),
        ({"method": "cpu"}, ValueError, "needs user_features"),
        ({"user_features": {"user 0": [1.0]}}, ValueError, "no row for 11 of 12 users"),
        ({"n_latent": 0}, ValueError, "n_latent"),
        ({"taste_variance": -1.0}, ValueError, "taste_variance"),
        ({"user_kernel": "rbf"}, TypeError, "user_kernel"),
        ({"tol": 0.0}, ValueError, "tol"),
    ],
)
def test_parameters_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        fitted(**options)


def test_what_users_cannot_answer_together():
    sets = np.stack([STUDY.items[:3], STUDY.items[3:]])
    with pytest.raises(ValueError, match=r"duels and rated items are allowed.*joint=False"):
        quick().fit(sets, [0, 1], users=["a", "b"])
    assert not hasattr(quick(), "partial_fit")


def test_too_few_passes_warn():
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="stopped after 7 passes"):
        fitted(max_iter=7, tol=1e-6)
