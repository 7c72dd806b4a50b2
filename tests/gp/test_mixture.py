"""Mixtures of posteriors with covariances of their own, against draws and numerical integration."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.active import bald, entropy, query
from skpref.gp import PosteriorMixture
from skpref.inspection import leaderboard, sampler_traces, undecided_pairs

NAMES = list("abcd")


@pytest.fixture(scope="module")
def model():
    X = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "c"]] * 3 + [["a", "b"], ["c", "a"]] * 2
    judges = ["ann"] * 12 + ["bob"] * 4
    fit = PairwisePreferenceRegressor(
        noise_variance=0.2, optimizer=None, judge_prior=JudgePrior(variance_bounds="fixed")
    )
    return fit.fit(X, [1] * 12 + [0, 0, 0, 0], judges=judges)


@pytest.fixture(scope="module")
def mixture(model):
    assert isinstance(model.posterior_, PosteriorMixture)
    assert model.posterior_.weights[1] > 0.02
    return model.posterior_


def by_hand(mixture, items=NAMES):
    """Weights, means and covariances of the parts."""
    parts = mixture.posteriors
    means = np.array([part.mean(items) for part in parts])
    return mixture.weights, means, np.array([part.cov(items) for part in parts])


def test_parts_have_covariances_of_their_own(model, mixture):
    weights, _, covariances = by_hand(mixture)
    assert weights.sum() == pytest.approx(1.0)
    assert np.all(np.diff(model.judges_.weights) <= 0.0)
    assert_allclose(weights, model.judges_.components()[0])
    assert np.abs(covariances - covariances[0]).max() > 0.01


def test_moments_are_those_of_draws(mixture):
    drawn = mixture.sample(NAMES, 200_000, 0)
    assert_allclose(mixture.mean(NAMES), drawn.mean(axis=1), atol=0.01)
    assert_allclose(mixture.cov(NAMES), np.cov(drawn), atol=0.01)
    assert_allclose(mixture.var(NAMES), np.diagonal(mixture.cov(NAMES)))
    margins = drawn[:2] - drawn[2:]
    mean, variance = mixture.margin(NAMES[:2], NAMES[2:])
    assert_allclose(mean, margins.mean(axis=1), atol=0.01)
    assert_allclose(variance, margins.var(axis=1), atol=0.02)
    assert_allclose(mixture.margin_cov(NAMES[:2], NAMES[2:]), np.cov(margins), atol=0.02)


def test_probabilities_are_averages_over_the_parts(mixture, model):
    weights, means, covariances = by_hand(mixture)
    margin = means[:, 0] - means[:, 3]
    variance = covariances[:, 0, 0] + covariances[:, 3, 3] - 2.0 * covariances[:, 0, 3]
    better = weights @ norm.cdf(margin / np.sqrt(variance))
    won = weights @ norm.cdf(margin / np.sqrt(variance + 2.0 * 0.2))
    assert mixture.win_probability(["a"], ["d"], noise=False)[0] == pytest.approx(better)
    log = mixture.win_probability(["a"], ["d"], log=True)[0]
    assert np.exp(log) == pytest.approx(won)
    assert model.predict_proba([["a", "d"], ["d", "a"]])[:, 1] == pytest.approx([won, 1.0 - won])
    assert mixture.choice_proba(np.array([[[0.0], [3.0]]]))[0, 0] == pytest.approx(won, abs=1e-6)
    assert model.predict_proba([["a", "b", "d"]]).sum() == pytest.approx(1.0)


def test_quantiles_invert_the_distribution_function(mixture):
    weights, means, covariances = by_hand(mixture)
    deviation = np.sqrt(covariances[:, 0, 0])
    level = 0.9
    at = mixture.quantile(["a"], level)
    assert weights @ norm.cdf((at - means[:, 0]) / deviation) == pytest.approx(level, abs=1e-9)
    assert_allclose(mixture.cdf(["a"], at), level, atol=1e-9)
    ends = mixture.credible_interval(NAMES, 0.8)
    assert_allclose(mixture.cdf(NAMES, ends[:, 0]), 0.1, atol=1e-9)
    assert_allclose(mixture.quantile(NAMES, [0.1, 0.9]), ends)
    for level in (0.0, [0.5, 2.0]):
        with pytest.raises(ValueError, match=r"q must be a number .* in \(0, 1\)"):
            mixture.quantile(NAMES, level)


def test_boards_are_averages_over_the_readings(mixture, model):
    board = leaderboard(model, average=False)
    drawn = mixture.sample(NAMES, 100_000, 1)
    best = np.bincount(drawn.argmax(axis=0), minlength=4) / 100_000
    order = [NAMES.index(name) for name in board.names]
    assert_allclose(board.probability_best, best[order], atol=0.02)
    relative = (drawn - drawn.mean(axis=0))[order] / np.sqrt(0.2)
    assert_allclose(board.utility, relative.mean(axis=1), atol=0.02)
    assert_allclose(board.lower, np.quantile(relative, 0.05, axis=1), atol=0.05)
    pairs = undecided_pairs(model, level=0.99999)
    first, second = (
        drawn[[NAMES.index(name) for name in side]] for side in (pairs.first, pairs.second)
    )
    assert_allclose(pairs.probability, (first > second).mean(axis=1), atol=0.01)


def test_it_is_pickled_written_and_asked_for_questions(mixture, model):
    back = pickle.loads(pickle.dumps(model))
    assert_allclose(back.predict(NAMES), model.predict(NAMES))
    back = type(model).from_arrays(model.to_arrays())
    pairs, judges = [["a", "d"]] * 3, ["ann", "bob", None]
    expected = model.predict_proba(pairs, judges=judges)
    assert_allclose(back.predict_proba(pairs, judges=judges), expected)
    assert repr(mixture).startswith("<PosteriorMixture: ")
    pool = np.array([["a", "b"], ["b", "d"], ["c", "d"]])
    for strategy in ("bald", "best_item", "committee"):
        assert len(query(model, pool, strategy=strategy, n=1, random_state=0)) == 1
    draw = mixture.hallucinate(0)
    assert draw.n_components == 1


def test_information_is_that_of_draws(mixture, model):
    pairs = np.array([["a", "b"], ["b", "d"], ["a", "d"]])
    drawn = dict(zip(NAMES, mixture.sample(NAMES, 400_000, 3), strict=True))
    p = norm.cdf(np.array([drawn[a] - drawn[b] for a, b in pairs]) / np.sqrt(2.0 * 0.2))
    mean = p.mean(axis=1)
    predicted = -mean * np.log(mean) - (1.0 - mean) * np.log1p(-mean)
    p = np.clip(p, 1e-300, 1.0 - 1e-16)
    known = np.mean(-p * np.log(p) - (1.0 - p) * np.log1p(-p), axis=1)
    assert_allclose(entropy(mixture, pairs), predicted, atol=3e-3)
    assert_allclose(bald(mixture, pairs), predicted - known, atol=3e-3)


def test_traces_are_of_one_posterior():
    X, y, judges = [["a", "b"], ["b", "a"]] * 3, [1, 1, 1, 0, 0, 0], ["ann"] * 3 + ["bob"] * 3
    model = PairwisePreferenceRegressor(inference="hmc", optimizer=None, random_state=0)
    model.fit(X, y, judges=judges)
    with pytest.raises(ValueError, match=r"readings of its judges.*chains of its own"):
        sampler_traces(model)


def test_boards_say_that_a_second_reading_is_open(model):
    board = leaderboard(model)
    assert_allclose(board.readings, model.judges_.weights)
    # By importance sampling from the prior: both reliable .8085, bob at random .1626.
    assert_allclose(board.readings[:2], [0.8085, 0.1626], atol=0.004)
    assert board.n_hyperparameters == 1  # none was learned
    for text in (repr(board), board._repr_html_()):
        assert "all as the question is meant (probability 0.81), or bob at random" in text
    sure = PairwisePreferenceRegressor(optimizer=None).fit([["a", "b"], ["b", "c"], ["c", "a"]])
    assert leaderboard(sure).readings.tolist() == [1.0]
    assert "How judges answer" not in repr(leaderboard(sure))


def test_boards_average_over_hyperparameters_in_each_reading():
    """Two judges who agree are as one: without judges= intervals are nearly as wide."""
    rng = np.random.default_rng(0)
    truth, names = rng.normal(size=6), np.array([f"item {k}" for k in range(6)])
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(30)])
    noise = 0.7 * rng.normal(size=30)
    y = (truth[pairs[:, 0]] - truth[pairs[:, 1]] + noise > 0.0).astype(int)
    prior = JudgePrior(random=0.0, adversarial=0.05, variance=1e-4)
    fit = PairwisePreferenceRegressor(judge_prior=prior)
    model = fit.fit(names[pairs], y, judges=np.arange(30) % 2)
    alone = PairwisePreferenceRegressor().fit(names[pairs], y)
    assert len(model.judges_.weights) > 1
    board, plain = leaderboard(model), leaderboard(alone)
    assert min(board.n_hyperparameters, plain.n_hyperparameters) > 4
    width, expected = (np.median(each.upper - each.lower) for each in (board, plain))
    assert 0.8 < width / expected < 1.3
    as_known = leaderboard(model, average=False)
    assert np.median(as_known.upper - as_known.lower) != pytest.approx(width, rel=0.01)


def test_a_board_says_who_may_answer_the_wrong_way_round():
    games = [["a", "b"], ["b", "c"], ["a", "c"]] * 4
    model = PairwisePreferenceRegressor(noise_variance=0.1, optimizer=None)
    model.fit(games * 2, [1] * 12 + [0] * 12, judges=["ann"] * 12 + ["bob"] * 12)
    (sentence,) = leaderboard(model).about_judges
    for who in ("ann", "bob"):
        assert f"{who} the wrong way round (probability 0.5" in sentence.replace("0.49", "0.50")
    assert "JudgePrior(adversarial=0.0)" in sentence
    one = PairwisePreferenceRegressor(noise_variance=0.1, optimizer=None)
    one.fit(games * 3, judges=["ann"] * 36)
    assert "ann the wrong way round (probability 0.06)" in repr(leaderboard(one))
