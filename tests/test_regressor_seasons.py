"""Utilities that off-seasons draw to what stays of them."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from skpref import PairwisePreferenceRegressor
from skpref.fitting import fix_hyperparameters
from skpref.kernels import Identity, OnColumns, Seasons, Wiener
from skpref.likelihoods import Probit

NAMES = np.array(list("abcdefgh"))
STARTS = np.array(["2021-07-01", "2022-07-01"], dtype="datetime64[D]")


def matches(n, share=0.2, seed=0):
    """Return duels over three years whose utilities are drawn anew, but for a share, in summer."""
    rng = np.random.default_rng(seed)
    X = rng.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :2]
    day = np.datetime64("2020-09-01") + np.sort(rng.integers(0, 1000, n))
    drift = [rng.normal(size=8)]
    for _ in STARTS:
        drift.append(share * drift[-1] + np.sqrt(1.0 - share**2) * rng.normal(size=8))
    utility = 1.5 * np.array(drift)[np.searchsorted(STARTS, day, side="right")]
    margin = np.take_along_axis(utility, X, axis=1) @ [1.0, -1.0]
    return NAMES[X], margin + rng.normal(size=n) > 0.0, day


@pytest.mark.parametrize("walk", [Wiener(0.02), 0.8 * Matern(400.0, nu=1.5)])
def test_dates_are_starts_of_the_kernel_on_days(walk):
    X, y, day = matches(60)
    options = {"noise_variance": 0.5, "optimizer": None}
    model = PairwisePreferenceRegressor(Identity(), drift=walk, seasons=STARTS, **options)
    model.fit(X, y, time=day)
    days = (day - day.min()).astype(float)
    rows = np.stack([np.searchsorted(NAMES, X), np.tile(days, (2, 1)).T], axis=2)
    who = OnColumns(Identity(), [0])
    starts = (STARTS - day.min()).astype(float)
    kernel = who + who * OnColumns(walk * Seasons(starts), [1])
    written = PairwisePreferenceRegressor(kernel, **options).fit(rows, y)
    expected = written.predict_proba(rows)
    np.testing.assert_allclose(model.predict_proba(X, time=day), expected, atol=1e-10)
    refit = fix_hyperparameters(model).fit(X, y, time=day)
    np.testing.assert_allclose(refit.predict_proba(X, time=day), expected, atol=1e-10)


def test_at_a_start_ahead_a_share_of_the_distance_to_the_level_is_left():
    X, y, day = matches(60)
    ahead = np.datetime64("2023-12-01")
    drift = 0.8 * Matern(1e6, "fixed", nu=0.5)
    model = PairwisePreferenceRegressor(Identity(), drift=drift, noise_variance=0.5, optimizer=None)
    moments = []
    for n in (0, 1, 60):
        model.set_params(seasons=[*STARTS, *[ahead] * n]).fit(X, y, time=day)
        moments.append(model.predict(NAMES, return_std=True, time=ahead))
    (now, certain), (later, wider), (level, _) = moments
    np.testing.assert_allclose(later - level, 0.5 * (now - level), atol=1e-8)
    assert np.all(wider > certain)


def test_the_share_is_learned_by_chains():
    X, y, day = matches(420, share=0.2)
    drift = 2.0 * Matern(1e4, "fixed", nu=0.5)
    model = PairwisePreferenceRegressor(
        Identity(), drift=drift, seasons=STARTS, likelihood=Probit(0.5, "fixed")
    )
    model.fit(X, y, time=day)
    assert model.engine_.items == "independent"
    theta = model.kernel_.theta
    assert len(theta) == 2 and 0.01 < np.exp(theta[1]) < 0.6
    best, always = model.log_marginal_likelihood(), [theta[0], np.log(0.999)]
    assert best - model.log_marginal_likelihood(always) > 3.0


@pytest.mark.parametrize(
    ("options", "time", "message"),
    [
        ({"seasons": [1.0]}, None, "seasons="),
        ({"seasons": [1.0], "kernel": Identity()}, [0.0, 1.0], "drift"),
        ({"seasons": STARTS, "drift": "wiener"}, [0.0, 1.0], "same kind"),
        ({"seasons": 0.5}, [0.0, 1.0], "a list of times"),
        ({"seasons": [np.nan]}, [0.0, 1.0], r"got seasons=\[nan\]; times such as"),
        ({"seasons": STARTS, "drift": "wiener"}, [0.0, 1.0], "got seasons="),
    ],
)
def test_what_cannot_be_is_refused(options, time, message):
    model = PairwisePreferenceRegressor(optimizer=None, **options)
    metadata = {} if time is None else {"time": time}
    with pytest.raises(ValueError, match=message):
        model.fit([["a", "b"], ["b", "a"]], **metadata)
