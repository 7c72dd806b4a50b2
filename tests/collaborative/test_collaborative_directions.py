"""Few functions that tastes weigh: those along which people differ."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.collaborative import _learn as _study
from skpref.fitting import ENOUGH

N_ITEMS, N_USERS = 10, 50
RNG = np.random.default_rng(0)
ITEMS = RNG.uniform(-2.0, 2.0, (N_ITEMS, 2))
FUNCTION = np.sin(2.5 * ITEMS[:, 0] + 1.5 * ITEMS[:, 1])  # none that leads among the items
TASTE = RNG.standard_normal(N_USERS)
USERS = np.repeat(np.arange(N_USERS), 14)


def asked(seed):
    """Random duels, and who wins them."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in USERS])
    gap = TASTE[USERS] * (FUNCTION[pairs[:, 0]] - FUNCTION[pairs[:, 1]])
    return ITEMS[pairs], (gap > 0.0).astype(int)


X, Y = asked(1)
OTHERS, WON = asked(2)


def fitted(n_latent, **options):
    held = {"noise_variance": 0.05, "taste_variance": 4.0, "optimizer": None}
    model = CollaborativePreferenceRegressor(RBF(1.0), n_latent=n_latent, **held, **options)
    return model.fit(X, Y, users=USERS)


@pytest.fixture(scope="module")
def one():
    return fitted(1)


@pytest.mark.parametrize("features", [None, TASTE[:, None]])
def test_the_one_function_of_all_tastes_is_found(features):
    model = fitted(1, user_features=features)
    assert model.score(OTHERS, WON, users=USERS) > 0.9
    posterior = model.posterior_
    whitened = model.kernel_(ITEMS, posterior.anchors) @ posterior.whiten.T
    found = whitened @ posterior.functions.axes[:, 0]
    assert abs(np.corrcoef(found, FUNCTION)[0, 1]) > 0.9


def test_what_leads_among_the_items_tells_less(one, monkeypatch):
    monkeypatch.setattr(_study, "learn_functions", lambda task, n_jobs: task)
    fixed = fitted(1)
    assert fixed.score(OTHERS, WON, users=USERS) < 0.8 < one.score(OTHERS, WON, users=USERS)


def test_functions_and_what_they_leave_are_the_whole():
    """Orthonormal functions, and in what they leave all other directions."""
    axes, spare = fitted(3).posterior_.functions
    assert axes.shape == (N_ITEMS, 3)
    assert_allclose(axes.T @ axes, np.eye(3), atol=1e-10)
    assert_allclose(axes.T @ spare, 0.0, atol=1e-8)
    assert np.linalg.matrix_rank(spare, tol=1e-6) == N_ITEMS - 3


def test_variances_and_covariances_agree(one):
    users = ["who"] * 5 + [0] * 5
    mean, cov = one.predict(ITEMS, return_cov=True, users=users)
    deviation = one.predict(ITEMS, return_std=True, users=users)[1]
    assert_allclose(np.sqrt(np.diag(cov)), deviation, rtol=1e-8)
    duels = np.stack([ITEMS[:4], ITEMS[1:5]], axis=1)
    margin, spread = one.predict(duels, return_std=True, users=users[:4])
    assert_allclose(margin, mean[:4] - mean[1:5], atol=1e-10)
    difference = cov[range(4), range(4)] + cov[range(1, 5), range(1, 5)]
    assert_allclose(spread**2, difference - 2.0 * cov[range(4), range(1, 5)], rtol=1e-7)


def test_some_users_are_enough(monkeypatch):
    monkeypatch.setattr("skpref.collaborative._fit.ENOUGH", replace(ENOUGH, sparse=250))
    assert fitted(1).score(OTHERS, WON, users=USERS) > 0.9
