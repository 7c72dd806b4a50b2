"""user_tastes: the best plane of the users' utilities, and covariances by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inspection import user_tastes

RNG = np.random.default_rng(4)
ITEMS = RNG.normal(size=(6, 2))
USERS = np.array(["ann", "bob", "cid", "dan"], dtype=object)[np.arange(80) % 4]
PAIRS = np.array([RNG.choice(6, 2, replace=False) for _ in range(80)])
TASTE = {"ann": [1.0, 0.3], "bob": [-1.0, 0.3], "cid": [0.2, 1.5], "dan": [0.0, -1.0]}
UTILITY = np.array([ITEMS @ TASTE[who] for who in USERS])
EACH = np.arange(80)
Y = (UTILITY[EACH, PAIRS[:, 0]] > UTILITY[EACH, PAIRS[:, 1]]).astype(int)
TRAITS = {"ann": [0.0], "bob": [1.0], "cid": [2.0], "dan": [0.5]}


def model(method="cp", inference="ep"):
    featured = {"user_features": TRAITS} if method in ("cpu", "bonilla") else {}
    return CollaborativePreferenceRegressor(
        RBF(1.5), method=method, inference=inference, noise_variance=0.2, optimizer=None,
        n_inducing=6, max_iter=600, random_state=0, **featured,
    ).fit(ITEMS[PAIRS], Y, users=USERS)  # fmt: skip


KINDS = [("cp", "ep"), ("cp", "vb"), ("cpu", "ep"), ("su", "ep"), ("birlutiu", "ep"),
         ("bonilla", "ep")]  # fmt: skip


@pytest.mark.parametrize(("method", "inference"), KINDS)
def test_they_are_the_best_plane_of_the_utilities(method, inference):
    fitted = model(method, inference)
    found = user_tastes(fitted, ITEMS)
    own = np.array([fitted.predict(ITEMS, users=[user] * 6) for user in found.users])
    away = (own - fitted.predict(ITEMS)) / np.sqrt(0.2)
    away -= away.mean(axis=1, keepdims=True)
    left, sizes, right = np.linalg.svd(away)
    best = left[:, :2] @ np.diag(sizes[:2]) @ right[:2]
    assert_allclose(found.tastes @ found.loadings.T, best, atol=1e-9)
    assert_allclose(found.share, sizes[:2] ** 2 / np.sum(sizes**2), atol=1e-10)
    assert_allclose(np.mean(found.loadings**2, axis=0), 1.0)
    largest = np.abs(found.loadings).argmax(axis=0)
    assert np.all(found.loadings[largest, [0, 1]] > 0.0)
    for user, covariance in zip(found.users, found.covariance, strict=True):
        of_user = fitted.predict(ITEMS, return_cov=True, users=[user] * 6)[1] / 0.2
        centre = np.eye(6) - 1.0 / 6.0
        truth = found.loadings.T @ centre @ of_user @ centre @ found.loadings / 36.0
        assert_allclose(covariance, truth, atol=1e-9)


def test_users_by_name_and_a_stranger():
    fitted = model()
    found = user_tastes(fitted, ITEMS, users=["ann", "nobody known", "cid"])
    assert found.users.tolist() == ["ann", "nobody known", "cid"]
    assert_allclose(found.tastes[1], 0.0, atol=1e-9)
    assert np.trace(found.covariance[1]) > np.trace(found.covariance[0])
    every = user_tastes(fitted)  # the items that were learned from
    assert every.loadings.shape == (6, 2)
    order = [np.flatnonzero((fitted.comparisons_.items == row).all(axis=1))[0] for row in ITEMS]
    assert_allclose(every.loadings[order], user_tastes(fitted, ITEMS).loadings, atol=1e-7)


def test_one_utility_for_all_is_refused():
    with pytest.raises(ValueError, match="one utility for all"):
        user_tastes(PairwisePreferenceRegressor(optimizer=None).fit(ITEMS[PAIRS], Y))
    alone = CollaborativePreferenceRegressor(optimizer=None).fit(ITEMS[PAIRS], Y)
    with pytest.raises(ValueError, match="one utility for all"):
        user_tastes(alone)
    with pytest.raises(ValueError, match=r"same utility|one utility for all"):
        user_tastes(model("pooled"), ITEMS)


def test_nonsense_is_refused():
    fitted = model()
    with pytest.raises(ValueError, match="got 2 items"):
        user_tastes(fitted, ITEMS[:2])
    with pytest.raises(ValueError, match="users is empty"):
        user_tastes(fitted, ITEMS, users=[])
    with pytest.raises(ValueError, match="unit must"):
        user_tastes(fitted, ITEMS, unit="metres")
