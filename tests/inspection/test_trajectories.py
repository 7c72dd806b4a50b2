"""Trajectories: those of boards at each time, of dense matrices, and of draws."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable, from_columns, from_votes
from skpref.inference import EP, SVI
from skpref.inspection import leaderboard, trajectories
from skpref.kernels import Identity, Linear, OnColumns

RNG = np.random.default_rng(3)
N = 90
NAMES = np.array(["ann", "bob", "cid", "dan"])
PAIRS = np.array([[i, (i + k) % 4] for i, k in RNG.integers([0, 1], [4, 4], size=(N, 2))])
TIME = RNG.uniform(2.0, 12.0, N)
UTILITY = np.array([1.0, 0.3, -0.3, -1.0])  # who is good early is bad late
Y = ((UTILITY[PAIRS[:, 0]] - UTILITY[PAIRS[:, 1]]) * (7.0 - TIME) > 0.0).astype(int)
X = NAMES[PAIRS]
pytestmark = pytest.mark.usefixtures("chains")
ENGINES = {
    "dense": EP(),
    "independent": EP(items="independent"),
    "inducing": SVI(n_inducing=60),
}


def fitted(engine="dense", time=TIME, **params):
    given = {"drift": "matern32", "optimizer": None, "noise_variance": 0.1, **params}
    return PairwisePreferenceRegressor(inference=ENGINES[engine], **given).fit(X, Y, time=time)


@pytest.mark.parametrize("engine", ENGINES)
def test_at_each_time_they_are_the_board_of_then(engine):
    model = fitted(engine)
    times = [9.0, 2.5, 40.0]
    found = trajectories(model, times=times, unit="elo", level=0.8)
    assert sorted(found.names) == sorted(NAMES)
    for k, time in enumerate(times):
        board = leaderboard(model, time=time, unit="elo", level=0.8, n_draws=10)
        place = [board.names.tolist().index(name) for name in found.names]
        for name in ("utility", "lower", "upper"):
            assert_allclose(found[name][:, k], board[name][place], rtol=1e-6, atol=1e-6)
    assert found.unit_length == board.unit_length
    assert found.frame.shape == (12, 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_intervals_are_of_the_difference_to_the_reference(engine):
    model = fitted(engine)
    found = trajectories(model, ["dan", "bob", "ann"], [3.0, 8.0], relative=["ann", "cid"])
    assert found.names.tolist() == ["dan", "bob", "ann"]
    assert found.reference.tolist() == ["ann", "cid"]
    less = np.array([[-0.5, 0.0, -0.5, 1.0], [-0.5, 1.0, -0.5, 0.0], [0.5, 0.0, -0.5, 0.0]])
    for k, time in enumerate((3.0, 8.0)):
        mean, cov = model.predict(NAMES, return_cov=True, time=time)
        deviation = np.sqrt(np.diagonal(less @ cov @ less.T))
        assert_allclose(found.utility[:, k] * found.unit_length, less @ mean, atol=1e-9)
        width = (found.upper - found.lower)[:, k] * found.unit_length
        assert_allclose(width, 2.0 * 1.6448536269514722 * deviation, rtol=1e-6)


def test_draws_say_the_same():
    model = fitted()
    found = trajectories(model, "ann", [4.0], relative="bob", level=0.5)
    drawn = model.sample_y(["ann", "bob"], 40_000, time=4.0)
    drawn = (drawn[0] - drawn[1]) / found.unit_length
    ends = np.quantile(drawn, [0.25, 0.75])
    assert_allclose([found.lower[0, 0], found.upper[0, 0]], ends, atol=0.02 * np.ptp(ends) + 0.01)


def test_a_reference_has_no_distance_to_itself():
    found = trajectories(fitted(), ["bob", "ann"], relative="bob")
    assert_allclose([found.utility[0], found.lower[0], found.upper[0]], 0.0, atol=1e-10)


def test_the_best_few_now_come_first():
    model = fitted()
    found = trajectories(model, top=2)
    assert found.names.tolist() == leaderboard(model, n_draws=10).names[:2].tolist()
    assert found.n_items == 4  # the zero stays that of all
    assert_allclose(found.times[[0, -1]], [TIME.min(), TIME.max()])
    assert found.now == TIME.max()


@pytest.mark.parametrize("start", [np.datetime64("2020-03-01"), 2020.5])
def test_dates_and_origins_change_nothing_but_the_axis(start):
    shift = np.timedelta64(86_400, "s") if isinstance(start, np.datetime64) else 1.0
    days = np.rint(4.0 * TIME).astype(int)
    moved = fitted(time=start + days * shift)
    found, plain = (
        trajectories(model, ["ann"], times)
        for model, times in (
            (moved, start + np.array([12, 30]) * shift),
            (fitted(time=days), [12, 30]),
        )
    )
    assert (
        found.times.tolist()
        == (start + np.array([12, 30]) * shift).astype(found.times.dtype).tolist()
    )
    assert_allclose(found.utility, plain.utility, atol=1e-9)
    of_ann = np.unique(days[(X == "ann").any(axis=1)])
    expected = start + of_ann * shift
    assert (found.answered[0] == expected).all() and len(found.answered[0]) == len(of_ann)


def test_boards_over_hyperparameters_go_through_time_too():
    model = fitted(optimizer="fmin_l_bfgs_b", drift="wiener")
    found = trajectories(model, ["ann", "dan"], [3.0])
    assert found.n_hyperparameters > 1
    board = leaderboard(model, time=3.0, n_draws=10)
    place = [board.names.tolist().index(name) for name in ("ann", "dan")]
    assert_allclose(found.lower[:, 0], board.lower[place], atol=1e-6)
    assert trajectories(model, ["ann"], [3.0], average=False).n_hyperparameters == 1


@pytest.mark.slow
def test_columns_beside_ids_are_held():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "when": TIME})
    frame["length_a"], frame["length_b"] = RNG.normal(size=(2, N))
    ids = {"ids": ("a", "b"), "names": ["length"]}
    duels, y, time = from_columns(frame, ["length_a"], ["length_b"], Y, time="when", **ids)
    kernel = OnColumns(Identity(), [0]) + OnColumns(Linear(), [1])
    for engine in ("dense", "independent"):
        model = PairwisePreferenceRegressor(
            kernel, drift="matern32", optimizer=None, inference=ENGINES[engine]
        )
        model.fit(duels, y, time=time)
        found = trajectories(model, ["ann", "dan"], [3.0], relative=list(NAMES))
        board = leaderboard(model, time=3.0, n_draws=10)
        place = [board.names.tolist().index(name) for name in ("ann", "dan")]
        assert found.held == board.held
        assert_allclose(found.utility[:, 0], board.utility[place], atol=1e-9)
        assert_allclose(found.upper[:, 0], board.upper[place], atol=1e-6)
        other = trajectories(model, ["ann"], [3.0], at={"length": 2.0}, relative="bob")
        assert other.held == {"length": 2.0}


def test_votes_name_competitors():
    table = {"model_a": X[:, 0], "model_b": X[:, 1], "when": TIME}
    table["winner"] = np.where(Y == 1, "model_a", "model_b")
    table["length_a"], table["length_b"] = RNG.normal(2.0, 3.0, size=(2, N))
    votes = from_votes(table, controls="length", time="when")
    model = PairwisePreferenceRegressor(**votes.params, drift="matern32", optimizer=None)
    model.set_params(noise_variance=0.1).fit(votes.X, votes.y, time=votes.times)
    found = trajectories(model, votes, [3.0, 11.0], top=3)
    assert found.names[0] == "dan" and len(found.names) == 3
    assert "ann" in str(trajectories(model, votes, [3.0]))


def test_answers_of_later_times():
    table = ItemTable.from_names(NAMES)
    model = PairwisePreferenceRegressor(
        items=table, drift="wiener", optimizer=None, inference=ENGINES["independent"]
    )
    order = np.argsort(TIME)
    model.fit(X[order][:60], Y[order][:60], time=TIME[order][:60])
    before = trajectories(model, ["ann"], [3.0]).utility
    model.partial_fit(X[order][60:], Y[order][60:], time=TIME[order][60:])
    found = trajectories(model, ["ann"], [3.0, 12.0])
    assert found.now == TIME.max()
    assert_allclose(found.utility[:, :1], before, atol=1e-9)
    board = leaderboard(model, time=12.0, n_draws=10)
    assert_allclose(found.utility[0, 1], board.utility[board.names == "ann"][0], atol=1e-9)
    met = np.unique(TIME[(X == "ann").any(axis=1)])
    assert_allclose(found.answered[0], met)
    model.posterior_ = model.posterior_.smoothed()
    assert_allclose(trajectories(model, ["ann"], [3.0]).answered[0], met)


def test_refusals():
    with pytest.raises(ValueError, match="fit the model with time="):
        trajectories(PairwisePreferenceRegressor(optimizer=None).fit(X, Y))
    model = fitted()
    with pytest.raises(ValueError, match="times is empty"):
        trajectories(model, times=[])
    with pytest.raises(ValueError, match="times of the same kind"):
        trajectories(model, times=[np.datetime64("2020-01-01")])
    with pytest.raises(ValueError, match="top must lie in"):
        trajectories(model, top=0)
    with pytest.raises(ValueError, match="unit must be one of"):
        trajectories(model, unit="metres")
    with pytest.raises(ValueError, match="level"):
        trajectories(model, level=1.0)
