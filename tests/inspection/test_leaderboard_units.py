"""Units of utilities: what a difference says of the outcome of a duel, and what it does not."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.inspection import leaderboard
from skpref.likelihoods import Derivatives, JudgeReliability, Likelihood, Probit

UNITS = ("noise", "elo", "logit")


class Logistic(Likelihood):
    """1/(1 + exp(−margin / scale))."""

    hyperparameters = ("scale",)

    def __init__(self, scale=0.3, scale_bounds="fixed"):
        self.scale, self.scale_bounds = scale, scale_bounds

    def log_prob(self, margin, answers):
        win = expit(margin / self.scale)
        slope, s = win * (1.0 - win), self.scale
        value = -np.logaddexp(0.0, -margin / s)
        return Derivatives(value, (1.0 - win) / s, slope / s**2, slope * (2 * win - 1) / s**3)


LIKELIHOODS = [
    Probit(noise_variance=0.3),
    Probit(noise_variance=0.3, tie_threshold=0.8),
    Probit(noise_variance=0.3, tie_threshold=0.8, order_effect=0.7),
    Logistic(),
    JudgeReliability(Probit(noise_variance=0.3, tie_threshold=0.2), np.array([2.0, -1.0])),
]


def score(likelihood, margin):
    """Expected score of the first item, neither shown first: a tie counts one half."""
    proba = np.exp(likelihood.outcome_log_proba(margin, np.zeros_like(margin), 0))
    return proba[..., -1] + (0.5 * proba[..., 1] if proba.shape[-1] == 3 else 0.0)


def fitted(likelihood):
    """Few answers, so that utilities are no more than a scale to hang units on."""
    table = ItemTable.from_names(["a", "b", "c"])
    X, y = np.array([[0, 1], [0, 2], [1, 2], [1, 0]]), [1, 1, 1, 1]
    model = PairwisePreferenceRegressor(items=table, likelihood=likelihood, optimizer=None)
    return model.fit(X, y)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_slope_of_the_expected_score(likelihood):
    step = np.array([-1e-5, 1e-5])
    slope = np.diff(score(likelihood, step))[0] / 2e-5
    assert likelihood.score_slope == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:4], ids=repr)
def test_a_small_difference_moves_the_score_as_the_unit_says(likelihood):
    model = fitted(likelihood)
    logit, elo = (leaderboard(model, unit=unit).unit_length for unit in ("logit", "elo"))
    d = np.array([0.02])
    assert score(likelihood, d * logit) == pytest.approx(expit(d), abs=2e-6)
    d = np.array([3.0])
    assert score(likelihood, d * elo) == pytest.approx(1.0 / (1.0 + 10 ** (-d / 400.0)), abs=2e-6)


def test_logits_of_a_logistic_likelihood_are_exact():
    model = fitted(Logistic())
    d = np.linspace(-6.0, 6.0, 25)
    for unit, per in (("logit", 1.0), ("elo", 400.0 / np.log(10.0))):
        length = leaderboard(model, unit=unit).unit_length
        np.testing.assert_allclose(score(Logistic(), d * per * length), expit(d), rtol=1e-10)


def test_the_probit_is_within_the_stated_error_of_the_logistic():
    probit = LIKELIHOODS[0]
    length = leaderboard(fitted(probit), unit="logit").unit_length
    d = np.linspace(-9.0, 9.0, 2001)
    worst = np.abs(score(probit, d * length) - expit(d)).max()
    assert 0.0170 < worst < 0.0180


@pytest.mark.parametrize("unit", UNITS)
def test_the_size_of_utilities_is_not_told(unit):
    """A prior and a noise 50 times as wide are the same model of the answers."""
    rng = np.random.default_rng(0)
    duels, items = rng.uniform(size=(30, 2, 1)), np.linspace(0.0, 1.0, 5)[:, None]
    boards = []
    for size in (1.0, 50.0):
        kernel = ConstantKernel(size, "fixed") * RBF(0.4)
        likelihood = Probit(noise_variance=0.1 * size, tie_threshold=0.3 * np.sqrt(size))
        model = PairwisePreferenceRegressor(kernel, likelihood=likelihood, optimizer=None)
        boards.append(leaderboard(model.fit(duels, np.arange(30) % 3 - 1), items, unit=unit))
    for name in ("utility", "lower", "upper"):
        np.testing.assert_allclose(boards[0][name], boards[1][name], rtol=1e-6, atol=1e-8)


def test_ratings_that_made_the_results_come_back():
    elo = np.array([0.0, 130.0, -220.0])
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    share = [1.0 / (1.0 + 10 ** ((elo[j] - elo[i]) / 400.0)) for i, j in pairs]
    table = ItemTable.from_names(["x", "y", "z"])
    likelihood = Logistic(0.2)
    model = PairwisePreferenceRegressor(items=table, likelihood=likelihood, optimizer=None)
    model.fit(np.array(pairs), np.ones(6, dtype=int), sample_weight=20_000 * np.array(share))
    board = leaderboard(model, unit="elo")
    assert board.names.tolist() == ["y", "x", "z"]
    np.testing.assert_allclose(board.utility, elo[[1, 0, 2]] + 30.0, atol=0.5)
    assert np.all(board.upper - board.lower < 15.0)


def test_all_units_tell_one_story():
    model = fitted(Logistic())
    noise, elo, logit = (leaderboard(model, unit=unit) for unit in UNITS)
    mean = model.posterior_.mean(noise.names)
    for board in (noise, elo, logit):
        np.testing.assert_allclose(board.utility * board.unit_length, mean - mean.mean())
        assert board.frame is None or board.frame["utility"].tolist() == board.utility.tolist()
    assert (noise.unit, elo.unit, logit.unit) == UNITS
    np.testing.assert_allclose(elo.upper, logit.upper * 400.0 / np.log(10.0))
    assert noise.unit_length == noise.noise_deviation == elo.noise_deviation
    assert noise.probability_best.tolist() == elo.probability_best.tolist()


def test_the_noise_of_any_likelihood_is_told():
    # The normal noise of an item whose Φ(m/√(2σ²)) has the logistic's slope, 1/(4 · .3), at 0.
    sigma = 4.0 * 0.3 / np.sqrt(2.0 * np.pi) / np.sqrt(2.0)
    assert leaderboard(fitted(Logistic())).noise_deviation == pytest.approx(sigma)
    assert leaderboard(fitted(LIKELIHOODS[0])).noise_deviation == pytest.approx(np.sqrt(0.3))


def test_with_judges_it_is_the_noise_of_the_reference_judge():
    rng = np.random.default_rng(0)
    duels = rng.uniform(size=(40, 2, 1))
    model = PairwisePreferenceRegressor(RBF(0.4), noise_variance=0.04, optimizer=None)
    model.fit(duels, duels[:, 0, 0] > duels[:, 1, 0], judges=["ann", "bob"] * 20)
    board = leaderboard(model, np.linspace(0, 1, 4)[:, None])
    assert board.noise_deviation == pytest.approx(0.2)
    mean = model.predict(np.array([[1.0], [0.0]]))
    assert board.utility[0] - board.utility[-1] == pytest.approx((mean[0] - mean[1]) / 0.2)


def test_units_that_are_none():
    with pytest.raises(ValueError, match="unit must be one of 'noise', 'elo', 'logit', got 'utils"):
        leaderboard(fitted(Logistic()), unit="utils")
