"""Whether effects of pairs are kept, by sets that have circles and sets that have none."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inspection import leaderboard
from skpref.kernels import Identity, Intransitive, OnColumns

NAMES = np.array(["rock", "scissors", "paper", "fire", "water", "sponge"])
CIRCLE = np.array([[0, 1], [1, 2], [2, 0]])
WITH = Identity() + Intransitive(Identity())


def circle(seed, n=120):
    """Duels of three, of which the first of each pair of CIRCLE wins 93 %."""
    rng = np.random.default_rng(seed)
    return NAMES[CIRCLE[rng.integers(3, size=n)]], rng.random(n) < 0.93


def line(seed, n=150, n_items=6):
    """Duels of items that have utilities."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    utility = np.linspace(-1.5, 1.5, n_items)
    return NAMES[pairs], utility[pairs[:, 0]] - utility[pairs[:, 1]] + rng.normal(size=n) > 0.0


@pytest.mark.parametrize("kernel", [WITH, ConstantKernel(1.0) * Identity() + WITH.k2])
def test_each_direction_of_a_circle_is_predicted(kernel):
    X, y = circle(1)
    model = PairwisePreferenceRegressor(kernel).fit(X, y)
    observed = model.predict_proba(NAMES[CIRCLE])[:, 1]
    # The least of three shares of some 40 answers, of which 93 % are right on average.
    assert np.all(observed > 0.85)
    without = PairwisePreferenceRegressor(Identity(), noise_variance_bounds=(1e-4, 1e3)).fit(X, y)
    assert np.all(np.abs(without.predict_proba(NAMES[CIRCLE])[:, 1] - 0.5) < 0.15)
    assert model._model.log_odds_of_effects > 10.0


def test_effects_of_features_are_kept():
    # The angle decides: whoever is ahead of the other by less than half a turn wins.
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 2.0 * np.pi, size=(250, 2))
    X = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    y = np.sin(angle[:, 0] - angle[:, 1]) + 0.3 * rng.normal(size=250) > 0.0
    model = PairwisePreferenceRegressor(RBF(1.0) + Intransitive(RBF(1.0)))
    model.fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.8  # of utilities alone one half


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sets_without_circles_are_predicted_as_without_the_term(seed):
    X, y = line(seed)
    model, plain = (PairwisePreferenceRegressor(k).fit(X, y) for k in (WITH, Identity()))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-3)
    assert model._model.log_odds_of_effects < 0.0
    assert model.kernel_.k2.variance == pytest.approx(1e-6)


def test_boards_average_over_hyperparameters_where_the_variance_is_held():
    X, y = line(0)
    board, plain = (
        leaderboard(PairwisePreferenceRegressor(k).fit(X, y), average=True)
        for k in (WITH, Identity())
    )
    assert board.n_hyperparameters > 1
    assert board.names.tolist() == plain.names.tolist()
    np.testing.assert_allclose(board.utility, plain.utility, atol=0.05)
    np.testing.assert_allclose(board.upper, plain.upper, atol=0.1)


def test_a_fixed_variance_and_no_search_stay():
    X, y = circle(0)
    fixed = Identity() + Intransitive(Identity(), 2.0, "fixed")
    model = PairwisePreferenceRegressor(fixed).fit(X, y)
    assert model.kernel_.k2.variance == 2.0
    model = PairwisePreferenceRegressor(WITH, optimizer=None).fit(X, y)
    assert model.kernel_ == WITH


@pytest.mark.parametrize(
    ("metadata", "what"),
    [
        ({"judges": ["ann", "bob"] * 60}, "judges="),
        ({"prompts": ["one"] * 120}, "prompts="),
        ({"time": np.arange(120.0)}, "time="),
    ],
)
def test_answers_that_say_more_are_refused_by_name(metadata, what):
    with pytest.raises(ValueError, match=what):
        PairwisePreferenceRegressor(WITH).fit(*circle(0), **metadata)


def test_sets_users_and_points_are_refused_by_name():
    X, y = circle(0)
    with pytest.raises(ValueError, match="choices or rankings"):
        PairwisePreferenceRegressor(WITH).fit([NAMES[:3].tolist()] * 3, [0, 1, 2])
    with pytest.raises(ValueError, match="users="):
        CollaborativePreferenceRegressor(WITH).fit(X, y, users=["ann", "bob"] * 60)
    with pytest.raises(ValueError, match="SVI"):
        PairwisePreferenceRegressor(WITH, inference="svi").fit(X, y)
    model = PairwisePreferenceRegressor(WITH, optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="sets of 3 items"):
        model.predict_proba([NAMES[:3].tolist()])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Intransitive(Identity()), "no term of the utility"),
        (0.5 * Intransitive(Identity()) + Identity(), "a term of a sum is allowed"),
        (OnColumns(WITH, [0]), "a term of a sum is allowed"),
        (Identity() + Intransitive(Intransitive(Identity())), "a term of a sum is allowed"),
        (Identity() + Intransitive(Identity(), -1.0), "variance of Intransitive"),
        (Identity() + Intransitive(Identity(), 0.0), "'fixed' alone"),
        (Identity() + WhiteKernel() + Intransitive(Identity()), "has a WhiteKernel"),
        (Identity() + Intransitive(WhiteKernel()), "has a WhiteKernel"),
        (Identity() + Intransitive(RBF([1.0, 2.0])), "does not take items of 1 features"),
    ],
)
def test_kernels_that_make_no_effects_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        PairwisePreferenceRegressor(kernel).fit(*circle(0))
