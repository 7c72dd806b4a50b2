"""Judges a share of whose answers is random, by quadrature and by importance sampling."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref import (
    CollaborativePreferenceRegressor,
    JudgePrior,
    PairwisePreferenceRegressor,
    PreferenceOptimizer,
)
from skpref.data import DUEL, TIE, Answers
from skpref.inference import SVI
from skpref.likelihoods import GradedProbit, Lapses, Probit
from skpref.optimize import STRATEGIES

RATES = (0.02, 0.3)


def lapses(noise_variance=0.1, rate=0.2, **options):
    return Lapses(Probit(noise_variance, "fixed", **options), rate, "fixed")


def duels(n, kind=DUEL):
    return Answers(np.full(n, kind, dtype=np.int8), np.ones(n, dtype=np.int8))


def draw_problem(seed):
    """Duels among five items, a third of them against the taste, and noise and rate."""
    rng = np.random.default_rng(seed)
    items = rng.random((5, 2))
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(8)])
    outcomes = (items[pairs[:, 0], 0] > items[pairs[:, 1], 0]) ^ (rng.random(8) < 1 / 3)
    return items, pairs, outcomes.astype(int), rng.uniform(0.02, 0.3), rng.uniform(0.05, 0.4)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", [DUEL, TIE])
def test_moments_are_those_of_quadrature(rate, kind):
    likelihood = lapses(0.05, rate, tie_threshold=0.2, tie_threshold_bounds="fixed")
    mean, variance = np.array([-2.0, -0.4, 0.1, 0.9]), np.array([0.3, 0.2, 1.0, 0.05])
    found = likelihood.tilted(mean, variance, duels(4, kind))
    z = mean[:, None] + np.sqrt(variance)[:, None] * np.linspace(-9.0, 9.0, 20_001)
    win = ndtr((z - 0.2) / np.sqrt(0.1))
    base = win if kind == DUEL else 1.0 - win - ndtr((-z - 0.2) / np.sqrt(0.1))
    density = norm.pdf(z, mean[:, None], np.sqrt(variance)[:, None])
    density *= (1.0 - rate) * base + rate / 3.0
    total = density.sum(axis=1)
    tilted_mean = (density * z).sum(axis=1) / total
    tilted_variance = (density * (z - tilted_mean[:, None]) ** 2).sum(axis=1) / total
    step = z[:, 1] - z[:, 0]
    assert_allclose(np.exp(found.log_normaliser), total * step, rtol=1e-9)
    assert_allclose(mean + variance * found.gradient, tilted_mean, atol=1e-9)
    allowed = np.minimum(tilted_variance, variance)  # no site of negative precision
    assert_allclose(variance * found.shrink, allowed, rtol=1e-8)
    assert_allclose(1.0 - variance * found.curvature, found.shrink, rtol=1e-8)
    assert np.any(tilted_variance > variance) or rate < 0.1


@pytest.mark.parametrize("rate", RATES)
def test_derivatives_are_those_of_differences(rate):
    likelihood, m = lapses(0.1, rate), np.linspace(-3.0, 2.0, 9)
    at, step = likelihood.log_prob(m, duels(9)), 1e-4
    assert_allclose(
        np.exp(at.value), (1.0 - rate) * ndtr(m / np.sqrt(0.2)) + 0.5 * rate, rtol=1e-12
    )
    high, low = (likelihood.log_prob(m + h, duels(9)) for h in (step, -step))
    for above, below, slope in zip(
        high[:3], low[:3], (at.gradient, -at.curvature, -at.third), strict=True
    ):
        assert_allclose((above - below) / (2.0 * step), slope, atol=1e-5)


def test_slopes_in_noise_and_rate_are_those_of_differences():
    likelihood = Lapses(Probit(0.1), 0.2)
    mean, variance, step = np.array([-1.0, 0.2, 0.8]), np.array([0.5, 0.1, 0.3]), 1e-5
    assert likelihood.free == ["noise_variance", "lapse_rate"]
    found = likelihood.tilted_theta_gradient(mean, variance, duels(3))
    for k, theta in enumerate(step * np.eye(2)):
        high, low = (
            likelihood.at(likelihood.theta + sign * theta).log_normaliser(mean, variance, duels(3))
            for sign in (1, -1)
        )
        assert_allclose(found[k], (high - low) / (2.0 * step), atol=1e-8)


def errors_beside_importance_sampling(seed):
    """Errors of the probabilities of answers to three duels, and of the log evidence."""
    items, pairs, outcomes, noise, rate = draw_problem(seed)
    kernel = RBF([0.6, 0.6])
    root = np.linalg.cholesky(kernel(items) + 1e-10 * np.eye(5))
    utilities = np.random.default_rng(seed).standard_normal((200_000, 5)) @ root.T

    def chance(first, second):
        margin = utilities[:, first] - utilities[:, second]
        return (1.0 - rate) * ndtr(margin / np.sqrt(2.0 * noise)) + 0.5 * rate

    weights = np.ones(len(utilities))
    for (first, second), outcome in zip(pairs, outcomes, strict=True):
        weights *= chance(first, second) if outcome else chance(second, first)
    model = PairwisePreferenceRegressor(
        kernel, likelihood=lapses(noise, rate), inference="ep", optimizer=None
    ).fit(items[pairs], outcomes)
    asked = np.array([[0, 1], [2, 3], [4, 0]])
    expected = [weights @ chance(*each) / weights.sum() for each in asked]
    off = model.log_marginal_likelihood_value_ - np.log(weights.mean())
    return model.predict_proba(items[asked])[:, 1] - expected, off


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_those_of_importance_sampling(seed):
    assert np.abs(errors_beside_importance_sampling(seed)[0]).max() < 0.01


@pytest.mark.slow
def test_probabilities_are_near_those_of_importance_sampling_on_many_problems():
    """As near as with sites of negative precision: what is left is expectation propagation's."""
    errors = np.abs([errors_beside_importance_sampling(seed)[0] for seed in range(100)])
    assert np.median(errors) < 0.002
    assert np.mean(errors < 0.01) > 0.94
    assert errors.max() < 0.04


def answers_of_a_line(n, share_wrong, seed):
    """Duels of numbers of which the larger one wins, but for a share turned round."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2, 1))
    y = (X[:, 0, 0] > X[:, 1, 0]) ^ (np.arange(n) < share_wrong * n)
    return X, y.astype(int)


def test_the_rate_is_learned_and_wrong_answers_count_less():
    rates, losses = [], []
    asked = answers_of_a_line(200, 0.0, 2)
    for share_wrong, likelihood in (
        (0.0, Lapses(Probit(1e-3, "fixed"))),
        (0.2, Lapses(Probit(1e-3, "fixed"))),
        (0.2, Probit()),
    ):
        X, y = answers_of_a_line(40, share_wrong, 0)
        model = PairwisePreferenceRegressor(RBF(1.0, "fixed"), likelihood=likelihood).fit(X, y)
        rates.append(getattr(model.likelihood_, "lapse_rate", None))
        if share_wrong:
            margin, variance = model.posterior_.margin(asked[0][:, 0], asked[0][:, 1])
            noise = model.likelihood_.margin_variance
            wins = norm.cdf(margin / np.sqrt(variance + noise))
            losses.append(-np.mean(np.log(np.where(asked[1] == 1, wins, 1.0 - wins))))
    assert rates[0] < 0.02
    assert 0.2 < rates[1] < 0.6  # half of the random answers are right
    assert losses[0] < 0.8 * losses[1]


def test_one_judge_of_known_reliability_is_everybody():
    X, y = answers_of_a_line(12, 0.25, 3)
    model = PairwisePreferenceRegressor(
        RBF(1.0),
        likelihood=lapses(),
        optimizer=None,
        judge_prior=JudgePrior(variance=1e-9, variance_bounds="fixed", random=0.0, adversarial=0.0),
    )
    alone = model.fit(X, y).predict_proba(X)
    judged = model.fit(X, y, judges=["a"] * 12).predict_proba(X, judges=["a"] * 12)
    assert_allclose(judged, alone, atol=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "hmc", "gibbs", SVI()], ids=str)
def test_engines_without_moments_refuse_lapses(inference):
    X, y = answers_of_a_line(6, 0.0, 0)
    with pytest.raises(ValueError, match="not log-concave, so that EP alone"):
        PairwisePreferenceRegressor(likelihood=Lapses(Probit()), inference=inference).fit(X, y)


@pytest.mark.parametrize(
    ("options", "metadata", "message"),
    [
        ({"monotone": {0: 1}}, {}, "monotone= of .* with Lapses"),
        ({}, {"sample_weight": np.full(6, 0.5)}, "weight of 0.5 with Lapses"),
    ],
)
def test_what_does_not_go_with_lapses_is_refused(options, metadata, message):
    X, y = answers_of_a_line(6, 0.0, 0)
    with pytest.raises(ValueError, match=message):
        PairwisePreferenceRegressor(likelihood=Lapses(Probit()), **options).fit(X, y, **metadata)


def test_choices_are_refused():
    model = PairwisePreferenceRegressor(likelihood=Lapses(Probit()))
    with pytest.raises(ValueError, match="Lapses does not take choices"):
        model.fit(np.random.default_rng(0).random((4, 3, 1)), [0, 1, 2, 0])


@pytest.mark.parametrize(
    ("likelihood", "error", "message"),
    [
        (Lapses(Probit(), 0.0), ValueError, "lapse_rate"),
        (Lapses(Probit(), 0.1, (0.1, 1.0)), ValueError, "a share below 1 is allowed"),
        (Lapses("probit"), TypeError, "a log-concave likelihood is allowed"),
        (Lapses(Lapses(Probit())), TypeError, "a log-concave likelihood is allowed"),
    ],
)
def test_odd_rates_and_bases_are_refused(likelihood, error, message):
    with pytest.raises(error, match=message):
        PairwisePreferenceRegressor(likelihood=likelihood).fit([["a", "b"]], [1])


def test_optimizers_take_lapses_with_expectation_propagation_alone():
    space, likelihood = [(0.0, 1.0)], Lapses(Probit())
    for inference, message in (("auto", "noisy margins"), ("laplace", "EP alone")):
        with pytest.raises(ValueError, match=message):
            PreferenceOptimizer(space, likelihood=likelihood, inference=inference)
    optimizer = PreferenceOptimizer(
        space, likelihood=likelihood, **STRATEGIES["EUBO"]._asdict(), random_state=0
    )
    for _ in range(2):
        duel = optimizer.ask()
        optimizer.tell(duel, duel[0] > duel[1])
    again = pickle.loads(pickle.dumps(optimizer))
    assert np.array_equal(again.ask(), optimizer.ask())
    with pytest.raises(ValueError, match="Lapses does not take choices"):
        optimizer.tell(optimizer.ask(), none=True)


def test_graded_answers_measured_values_users_and_times_are_taken():
    X, y = answers_of_a_line(12, 0.25, 0)
    graded = Lapses(GradedProbit(0.1, "fixed", 0.1, "fixed", grade_threshold_bounds="fixed"))
    model = PairwisePreferenceRegressor(RBF(1.0), likelihood=graded, optimizer=None)
    chances = model.fit(X, [-2, -1, 0, 1, 2, 0] * 2).predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.min() >= 0.05 / 5
    model.set_params(likelihood=lapses())
    values = X[:4, 0], np.arange(4.0), np.ones(4)
    assert np.isfinite(model.fit(X, y, measured=values).predict(X[:, 0])).all()
    model = PairwisePreferenceRegressor(likelihood=lapses(), drift="wiener", optimizer=None)
    assert model.fit([["a", "b"]] * 12, y, time=np.arange(12.0)).likelihood_.lapse_rate == 0.2
    model = CollaborativePreferenceRegressor(RBF(1.0), likelihood=lapses(), optimizer=None)
    assert model.fit(X, y, users=[0, 1] * 6).predict_proba(X, users=[0] * 12).min() >= 0.1
