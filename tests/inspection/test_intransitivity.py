"""The share that no order explains, against importance sampling and sets that are known."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr

from skpref import PairwisePreferenceRegressor
from skpref.inspection import intransitivity, leaderboard, win_rates
from skpref.kernels import Identity, Intransitive

KERNEL = Identity() + Intransitive(Identity())
CIRCLE = [["rock", "scissors"], ["scissors", "paper"], ["paper", "rock"]]


@pytest.mark.parametrize("seed", range(4))
def test_share_is_that_of_importance_sampling(seed):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(4), 2)))
    answered = np.concatenate([np.arange(6), rng.integers(6, size=6)])
    won, variance = rng.random(12) < 0.5, float(rng.uniform(0.5, 3.0))
    D = np.eye(4)[pairs[:, 0]] - np.eye(4)[pairs[:, 1]]
    P = np.eye(6) - D @ np.linalg.pinv(D)
    effects = np.sqrt(variance) * P @ rng.standard_normal((6, 200_000))
    margins = D @ rng.standard_normal((4, 200_000)) + effects
    wins = ndtr(margins / np.sqrt(2.0 * 0.5))[answered]
    weights = np.where(won[:, None], wins, 1.0 - wins).prod(axis=0)
    truth = weights @ np.sum((P @ margins) ** 2, axis=0) / (weights @ np.sum(margins**2, axis=0))
    kernel = Identity() + Intransitive(Identity(), variance)
    model = PairwisePreferenceRegressor(kernel, noise_variance=0.5, optimizer=None)
    model.fit(np.array(list("abcd"))[pairs[answered]], won)
    result = intransitivity(model)
    assert result.share == pytest.approx(truth, abs=0.02)
    assert result.lower < result.share < result.upper
    assert np.isnan(result.probability)
    assert result.n_items == 4


def test_circles_are_in_win_rates_and_not_in_the_board():
    model = PairwisePreferenceRegressor(KERNEL).fit(CIRCLE * 20)
    rates = win_rates(model)
    place = {name: k for k, name in enumerate(rates.names.tolist())}
    assert all(rates.win[place[first], place[second]] > 0.9 for first, second in CIRCLE)
    board = leaderboard(model)
    np.testing.assert_allclose(board.utility, 0.0, atol=1e-6)
    assert "win_rates has the circles" in repr(board)
    assert "win_rates has the circles" in board._repr_html_()
    result = intransitivity(model)
    assert result.lower > 0.7
    assert result.probability > 0.99


def test_where_one_order_explains_all_the_share_is_zero():
    model = PairwisePreferenceRegressor(KERNEL).fit([["a", "b"], ["b", "c"], ["a", "c"]] * 20)
    result = intransitivity(model)
    assert result.upper < 1e-3
    assert result.probability < 0.5


def test_more_pairs_than_are_drawn():
    rng = np.random.default_rng(0)
    X = [[f"n{a:02d}", f"n{b:02d}"] for a, b in rng.integers(60, size=(300, 2)) if a != b]
    model = PairwisePreferenceRegressor(KERNEL, noise_variance=0.5, optimizer=None).fit(X)
    assert 0.0 < intransitivity(model).share < 1.0


def test_models_without_the_term_are_refused():
    model = PairwisePreferenceRegressor(Identity(), optimizer=None).fit(CIRCLE)
    with pytest.raises(ValueError, match="Intransitive is allowed"):
        intransitivity(model)
