"""Order effects that move through time."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from skpref import PairwisePreferenceRegressor
from skpref.fitting import fix_hyperparameters
from skpref.inference import EP, SVI
from skpref.inspection import answer_effects, leaderboard, loo, order_trajectory, win_rates
from skpref.kernels import Identity, Linear, OnColumns, Wiener
from skpref.plotting import TrajectoryDisplay

OF_ORDER = 0.7 * Matern(2.0, nu=1.5)
OPTIONS = {"noise_variance": 0.5, "optimizer": None}


def duels_through_time(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.permuted(np.tile(np.arange(5.0), (n, 1)), axis=1)[:, :2]
    time, order = np.round(rng.uniform(0.0, 10.0, n), 1), rng.choice([-1, 0, 1], n)
    time -= time.min()
    return X, rng.random(n) < ndtr(2.0 * order * np.sin(time)), time, order


def rows_with_order(X, time, order):
    """Return items as rows of id, time and whether they were shown first: (n, 2, 3)."""
    first = np.stack([order == 1, order == -1], axis=1).astype(float)
    return np.stack([X, np.stack([time, time], axis=1), first], axis=2)


def whole_kernel(drift=None):
    """Write the kernel out on rows of id, time and order."""
    who, first = OnColumns(Identity(), [0]), OnColumns(Linear(), [2])
    walk = OnColumns(Matern(3.0, nu=0.5), [1])
    of_order = ConstantKernel(1.0) * first + ConstantKernel(0.7) * first * OnColumns(
        Matern(2.0, nu=1.5), [1]
    )
    return who + 0.4 * who * walk + of_order


def drifting_model(**options):
    drift = 0.4 * Matern(3.0, nu=0.5)
    settings = OPTIONS | {"kernel": Identity(), "drift": drift, "order_drift": OF_ORDER} | options
    return PairwisePreferenceRegressor(**settings)


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_it_is_a_feature_of_order_times_a_kernel_of_time(inference):
    X, y, time, order = duels_through_time()
    model = drifting_model(inference=inference)
    model.fit(X[:, :, None], y, time=time, order=order)
    written = PairwisePreferenceRegressor(whole_kernel(), inference=inference, **OPTIONS)
    written.fit(rows_with_order(X, time, order), y)
    assert model.log_marginal_likelihood() == pytest.approx(
        written.log_marginal_likelihood(), abs=1e-8
    )
    later = time + 3.0  # some of it after the last answer
    expected = written.predict_proba(rows_with_order(X, later, -order))
    duels = X[:, :, None]
    proba = model.predict_proba(duels, time=later, order=-order)
    np.testing.assert_allclose(proba, expected, atol=1e-8)
    margins = written.decision_function(rows_with_order(X, later, -order))
    values = model.decision_function(duels, time=later, order=-order)
    np.testing.assert_allclose(values, margins, atol=1e-8)


def test_the_first_of_a_set_has_it():
    time = duels_through_time()[2]
    rng = np.random.default_rng(1)
    sets = rng.permuted(np.tile(np.arange(5.0), (40, 1)), axis=1)[:, :3]
    order, y = rng.choice([0, 1], 40), rng.integers(3, size=40)
    rows = np.stack([sets, np.repeat(time[:, None], 3, axis=1), np.zeros((40, 3))], axis=2)
    rows[:, 0, 2] = order
    model = drifting_model().fit(sets[:, :, None], y, time=time, order=order)
    written = PairwisePreferenceRegressor(whole_kernel(), **OPTIONS).fit(rows, y)
    expected = written.predict_proba(rows)
    proba = model.predict_proba(sets[:, :, None], time=time, order=order)
    np.testing.assert_allclose(proba, expected, atol=1e-8)
    now = np.max(time)
    of_posterior = model.posterior_.choice_proba(sets[:5, :, None], order=order[:5])
    proba = model.predict_proba(sets[:5, :, None], time=now, order=order[:5])
    np.testing.assert_allclose(of_posterior, proba, atol=1e-12)


def test_it_agrees_with_importance_sampling():
    games, won, order, time = [["a", "b"], ["b", "a"]] * 2, [1, 1, 0, 1], [1, -1, 0, 1], range(4)
    model = PairwisePreferenceRegressor(
        Identity(), drift=Wiener(0.3), order_drift=OF_ORDER, order_effect=0.2, **OPTIONS
    )
    model.fit(games, won, order=order, time=time)
    rng, n, when = np.random.default_rng(0), 400_000, np.arange(5.0)
    scaled = np.sqrt(3.0) * np.abs(when[:, None] - when) / 2.0
    of_order = 1.0 + 0.7 * (1.0 + scaled) * np.exp(-scaled)
    lead = 2.0 + 2.0 * 0.3 * np.minimum(when[:, None], when)
    effect = 0.2 + rng.normal(size=(n, 5)) @ np.linalg.cholesky(of_order).T
    margin = rng.normal(size=(n, 5)) @ np.linalg.cholesky(lead).T
    weight = ndtr(margin[:, 0] + effect[:, 0]) * ndtr(-margin[:, 1] - effect[:, 1])
    weight *= ndtr(-margin[:, 2]) * ndtr(effect[:, 3] - margin[:, 3])
    weight /= weight.sum()
    for who in (1, -1, 0):
        proba = model.predict_proba([["a", "b"]], order=who, time=4)[0, 1]
        assert proba == pytest.approx(weight @ ndtr(margin[:, 4] + who * effect[:, 4]), abs=0.005)
    curve = order_trajectory(model, when)
    np.testing.assert_allclose(curve.utility[0], weight @ effect / np.sqrt(0.5), atol=0.02)
    spread = np.sqrt(weight @ effect**2 - (weight @ effect) ** 2) / np.sqrt(0.5)
    np.testing.assert_allclose((curve.upper - curve.lower)[0], 2.0 * 1.6449 * spread, rtol=0.03)


def test_an_advantage_that_goes_away_is_learned():
    rng = np.random.default_rng(3)
    X = rng.permuted(np.tile(np.arange(6), (160, 1)), axis=1)[:, :2]
    time = np.arange(160.0)
    y = rng.random(160) < ndtr(np.where(time < 80.0, 1.8, 0.0))
    model = PairwisePreferenceRegressor(order_drift="matern12").fit(
        np.array(list("abcdef"))[X], y, time=time
    )
    curve = order_trajectory(model, [40.0, 140.0])
    assert curve.lower[0, 0] > curve.upper[0, 1]
    assert curve.lower[0, 1] < 0.3


def test_inspection_knows_it():
    X, y, time, order = duels_through_time()
    model = drifting_model().fit(X[:, :, None], y, time=time, order=order)
    duel, now = X[:1, :, None], np.max(time)
    rates = win_rates(model, X[0][:, None], order=1)
    at = rates.position.tolist().index(0)
    expected = model.predict_proba(duel, order=1, time=now)[0, 1]
    assert rates.win[at, 1 - at] == pytest.approx(expected, abs=1e-12)
    no_order = model.predict_proba(duel, order=0, time=now)[0, 1]
    assert model.posterior_.win_probability(*duel[0][:, None], order=0)[0] == pytest.approx(
        no_order
    )
    assert sorted(leaderboard(model).names.tolist()) == [0, 1, 2, 3, 4]
    assert TrajectoryDisplay.from_trajectories(order_trajectory(model)).lines_
    without = 5
    kept = np.arange(len(X)) != without
    refit = drifting_model().fit(X[kept][:, :, None], y[kept], time=time[kept], order=order[kept])
    own = refit.predict_log_proba(
        X[[without]][:, :, None], time=time[[without]], order=order[[without]]
    )[0, int(y[without])]
    assert loo(model).pointwise[without] == pytest.approx(own, abs=0.02)


def test_a_fit_with_its_hyperparameters_and_a_file_say_the_same():
    X, y, time, order = duels_through_time()
    model = drifting_model(optimizer="fmin_l_bfgs_b").fit(X[:, :, None], y, time=time, order=order)
    expected = model.predict_proba(X[:, :, None], time=time, order=order)
    again = type(model).from_arrays(model.to_arrays())
    refit = fix_hyperparameters(model).fit(X[:, :, None], y, time=time, order=order)
    for other in (again, refit):
        proba = other.predict_proba(X[:, :, None], time=time, order=order)
        np.testing.assert_allclose(proba, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "metadata", "message"),
    [
        ({}, {}, "without time="),
        ({}, {"time": range(4), "judges": list("abab")}, "with judges="),
        ({"order_effect_bounds": (-2.0, 2.0), "optimizer": "fmin_l_bfgs_b"}, {}, "to be learned"),
        ({"order_drift": "brownian"}, {"time": range(4)}, "order_drift"),
        ({"inference": EP(items="independent")}, {"time": range(4)}, "items='independent'"),
    ],
)
def test_what_cannot_be_is_refused(options, metadata, message):
    model = PairwisePreferenceRegressor(**{**OPTIONS, "order_drift": "wiener", **options})
    with pytest.raises(ValueError, match=message):
        clone(model).fit([["a", "b"], ["b", "a"]] * 2, **metadata)


def test_it_is_of_answers_and_of_models_that_have_it():
    model = PairwisePreferenceRegressor(order_drift="wiener", drift="wiener")
    with pytest.raises(ValueError, match="ratings"):
        model.fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0], time=[0.0, 1.0, 2.0])
    plain = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    plain.fit([["a", "b"], ["b", "a"]], time=[0, 1])
    with pytest.raises(ValueError, match="order_drift="):
        order_trajectory(plain)
    assert answer_effects(plain).names.tolist() == []


@pytest.mark.parametrize("first", [None, "wiener"])
def test_later_pieces_have_it_as_the_first_had(first):
    rng = np.random.default_rng(0)
    X, times, order = rng.normal(size=(12, 2, 2)), np.arange(12.0), np.tile([1, -1], 6)
    y = (X[:, 0, 0] > X[:, 1, 0]).astype(int)
    model = PairwisePreferenceRegressor(
        inference=SVI(4), order_effect=0.1, order_drift=first, random_state=0
    )
    model.partial_fit(X, y, order=order, time=times)
    model.set_params(order_drift="wiener" if first is None else None)
    with pytest.raises(ValueError, match=r"got answers .* order_drift= after answers .* fit anew"):
        model.partial_fit(X, y, order=order, time=times)
