"""Boards, win rates and pictures of items whose utilities change, at a time or now."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.active import query
from skpref.duels import from_columns, from_votes
from skpref.fitting import Inspected
from skpref.inspection import (
    control_effects,
    leaderboard,
    leaderboards,
    undecided_pairs,
    win_rates,
    without_item_effects,
)
from skpref.kernels import features_part, leaderboard_kernel

RNG = np.random.default_rng(1)
N = 80
NAMES = np.array(["ann", "bob", "cid", "dan"])
PAIRS = np.array([[i, (i + k) % 4] for i, k in RNG.integers([0, 1], [4, 4], size=(N, 2))])
TIME = RNG.uniform(0.0, 10.0, N)
# Who is good early is bad late.
UTILITY = np.array([1.0, 0.3, -0.3, -1.0])
Y = ((UTILITY[PAIRS[:, 0]] - UTILITY[PAIRS[:, 1]]) * (5.0 - TIME) > 0.0).astype(int)
X = NAMES[PAIRS]


def model(**params):
    return PairwisePreferenceRegressor(
        **{"drift": "matern32", "optimizer": None, "noise_variance": 0.1, **params}
    )


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y, time=TIME)


def test_boards_are_those_of_predictions(fitted):
    early, late = leaderboard(fitted, time=1.0), leaderboard(fitted)
    assert early.names.tolist() == ["ann", "bob", "cid", "dan"]
    assert late.names.tolist() == ["dan", "cid", "bob", "ann"]
    means = fitted.predict(early.names, time=1.0)
    assert_allclose(early.utility * early.unit_length, means - means.mean(), atol=1e-12)
    means = fitted.predict(late.names)
    assert_allclose(late.utility * late.unit_length, means - means.mean(), atol=1e-12)
    assert_allclose(late.utility, leaderboard(fitted, time=TIME.max()).utility, atol=1e-12)
    assert early.lead.probability > 0.5
    some = leaderboard(fitted, ["cid", "ann"], time=1.0)
    assert some.names.tolist() == ["ann", "cid"]


def test_rates_and_undecided_pairs(fitted):
    rates = win_rates(fitted, time=1.0)
    assert rates.names.tolist() == ["ann", "bob", "cid", "dan"]
    duel = np.array([["ann", "cid"]])
    expected = fitted.predict_proba(duel, time=1.0)[0, 1]
    assert_allclose(rates.win[0, 2], expected, atol=1e-12)
    assert win_rates(fitted).names.tolist() == ["dan", "cid", "bob", "ann"]
    pairs = undecided_pairs(fitted, time=5.0, level=0.999)
    assert len(pairs.first) + pairs.n_decided == 6


def test_averages_over_hyperparameters_are_found_once_for_all_times():
    learned = model(optimizer="fmin_l_bfgs_b", drift="wiener").fit(X, Y, time=TIME)
    boards = [leaderboard(learned, time=when, n_draws=100) for when in (1.0, 9.0)]
    assert all(board.n_hyperparameters > 1 for board in boards)
    assert boards[0].names[0] == boards[1].names[-1] == "ann"


def test_items_of_features_are_shown_once_and_as_they_are_now():
    features = RNG.standard_normal((4, 2))
    fitted = model(kernel=RBF(), drift="wiener").fit(features[PAIRS], Y, time=TIME)
    board = leaderboard(fitted, time=2.0)
    assert len(board.names) == 4
    expected = np.sort(fitted.predict(features, time=2.0))[::-1]
    assert_allclose(np.diff(board.utility) * board.unit_length, np.diff(expected), atol=1e-10)
    part = without_item_effects(fitted).posterior_
    assert part.kernel == features_part(fitted.kernel_, 3, time=2)
    early, late = part.at_time(1.0).mean(features), part.at_time(9.0).mean(features)
    assert_allclose(early, late, atol=1e-12)  # what features explain does not change


def test_items_without_features_have_drifting_effects_alone(fitted):
    with pytest.raises(ValueError, match="item effects alone"):
        without_item_effects(fitted)


def votes():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "when": TIME})
    frame["length_a"], frame["length_b"] = RNG.normal(size=(2, N))
    ids = {"ids": ("a", "b"), "names": ["length"]}
    duels, y, time = from_columns(frame, ["length_a"], ["length_b"], Y, time="when", **ids)
    return duels, y, time


def test_boards_of_ids_hold_features_and_not_the_time():
    duels, y, time = votes()
    fitted = model().fit(duels, y, time=time)
    board = leaderboard(fitted, time=1.0)
    assert board.names.tolist() == ["ann", "bob", "cid", "dan"]
    assert list(board.held) == ["length"]
    asked = pd.DataFrame({"id": board.names, "length": board.held["length"]})
    means = fitted.predict(asked, time=1.0)
    assert_allclose(board.utility * board.unit_length, means - means.mean(), atol=1e-9)
    assert leaderboard(fitted, at={"length": 0.0}).names.tolist() == ["dan", "cid", "bob", "ann"]
    assert leaderboard(fitted, at=[0.5]).held == {"length": 0.5}
    assert leaderboard(fitted, ["bob", "ann"], time=1.0).names.tolist() == ["ann", "bob"]
    assert Inspected.from_model(fitted).seen_columns() == (set(), {1})
    effects = control_effects(fitted)
    assert effects.names.tolist() == ["length"]
    with pytest.raises(ValueError, match="There is no column 2"):
        leaderboard(fitted, at={2: 1.0})


def test_boards_of_votes_with_controls_at_a_time():
    table = {"model_a": X[:, 0], "model_b": X[:, 1], "when": TIME}
    table["winner"] = np.where(Y == 1, "model_a", "model_b")
    table["length_a"], table["length_b"] = RNG.normal(2.0, 3.0, size=(2, N))
    found = from_votes(table, controls="length", time="when")
    fitted = PairwisePreferenceRegressor(**found.params, drift="matern32", optimizer=None)
    fitted.set_params(noise_variance=0.1).fit(found.X, found.y, time=found.times)
    board = leaderboard(fitted, found, time=1.0)
    assert board.names.tolist() == ["ann", "bob", "cid", "dan"]
    assert list(board.held) == ["length"]
    assert leaderboard(fitted, found).names.tolist() == ["dan", "cid", "bob", "ann"]
    assert control_effects(fitted, found).names.tolist() == ["length"]


def test_boards_of_groups_at_a_time():
    group = np.repeat([0.0, 1.0], N // 2)
    rows = np.stack([np.column_stack([PAIRS[:, k], group]) for k in (0, 1)], axis=1)
    kernel = leaderboard_kernel(rows, id_column=0, by=1)
    fitted = model(kernel=kernel, id_column=0, drift="matern32").fit(rows, Y, time=TIME)
    boards = leaderboards(fitted, by=1, time=1.0)
    assert [board.names[0] for board in boards.values()] == [0, 0]
    assert [board.names[0] for board in leaderboards(fitted, by=1).values()] == [3, 3]


def test_what_to_ask_is_asked_now(fitted):
    pool = NAMES[[[0, 1], [1, 2], [0, 3]]]
    asked, scores = query(fitted, pool, "entropy", return_scores=True)
    now = fitted.predict_proba(pool)[:, 1]
    entropy = -now * np.log2(now) - (1.0 - now) * np.log2(1.0 - now)
    assert asked[0] == np.argmax(entropy)
    assert len(scores) >= 1


def test_a_time_of_a_model_without_times_is_refused():
    fitted = PairwisePreferenceRegressor(optimizer=None).fit(X, Y)
    for ask in (leaderboard, win_rates, undecided_pairs):
        with pytest.raises(ValueError, match="fitted without times"):
            ask(fitted, time=1.0)
