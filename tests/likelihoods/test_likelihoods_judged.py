"""Reliability of judges: the base's probability at their margin, quadrature, differences."""

import numpy as np
import pytest
from likelihoods_support import Logistic, rows
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref.duels import Comparisons
from skpref.fitting._fit import fit_posterior
from skpref.fitting._model import Model
from skpref.inference import EP, SVI, Laplace
from skpref.likelihoods import DUEL, TIE, JudgeReliability, Probit

TIES = Probit(0.3, tie_threshold=0.6, order_effect=0.4, order_effect_bounds=(-2.0, 2.0))
RELIABILITY = np.array([1.3, 0.4, 0.0, -0.7])
KINDS, LEADS = np.tile(np.repeat([DUEL, TIE], 3), 4), np.tile([1, 0, -1], 8)
JUDGE = np.repeat(np.arange(4), 6)
ANSWERS = rows(KINDS, LEADS)._replace(judge=JUDGE)
PLAIN = rows(np.full(24, DUEL), LEADS)._replace(judge=JUDGE)
MEAN = np.random.default_rng(0).normal(size=24)
VARIANCE = np.random.default_rng(1).uniform(0.05, 2.0, 24)
BOTH = pytest.mark.parametrize(
    ("base", "answers"), [(TIES, ANSWERS), (Logistic(0.8), PLAIN)], ids=["ties", "logistic"]
)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)


FEW = np.polynomial.hermite_e.hermegauss(30)


def averaged(function, mean, variance, rule=(NODES, WEIGHTS)):
    """Of each row under its Gaussian, by quadrature."""
    at = mean + np.sqrt(variance) * rule[0][:, None]
    return (rule[1] / rule[1].sum()) @ np.array([function(z) for z in at])


def test_a_judge_sees_reliability_times_the_margin():
    found = JudgeReliability(TIES, RELIABILITY).log_prob(MEAN, ANSWERS).value
    seen = norm(RELIABILITY[JUDGE] * MEAN + 0.4 * LEADS, np.sqrt(0.6))
    truth = np.where(KINDS == DUEL, seen.sf(0.6), seen.cdf(0.6) - seen.cdf(-0.6))
    assert_allclose(np.exp(found), truth, rtol=1e-12)


@BOTH
def test_derivatives_in_the_margin_are_differences(base, answers):
    judged = JudgeReliability(base, RELIABILITY)
    found = judged.log_prob(MEAN, answers)
    parts = found.value, found.gradient, -found.curvature, found.third
    step = 1e-3
    for order in range(3):
        above, below = (judged.log_prob(MEAN + s, answers) for s in (step, -step))
        change = [(d.value, d.gradient, -d.curvature)[order] for d in (above, below)]
        assert_allclose(parts[order + 1], (change[0] - change[1]) / (2 * step), atol=2e-5)


@BOTH
def test_tilted_moments_are_those_of_quadrature(base, answers):
    judged, looking = (
        JudgeReliability(base, RELIABILITY),
        JudgeReliability(base, RELIABILITY + 0.1),
    )
    power = np.where(np.arange(24) % 2, 0.5, 1.0)
    for each in (None, power):
        found = judged.tilted(MEAN, VARIANCE, answers, each)
        weight = 1.0 if each is None else each
        chance = averaged(
            lambda z, w=weight: np.exp(w * judged.log_prob(z, answers).value), MEAN, VARIANCE
        )
        centre, square = (
            averaged(
                lambda z, w=weight, k=k: (
                    (z - MEAN) ** k * np.exp(w * judged.log_prob(z, answers).value)
                ),
                MEAN,
                VARIANCE,
            )
            / chance
            for k in (1, 2)
        )
        assert_allclose(found.log_normaliser, np.log(chance), atol=1e-8)
        alone = [j.log_normaliser(MEAN, VARIANCE, answers, each) for j in (judged, looking)]
        assert_allclose(alone[0], found.log_normaliser, rtol=1e-12)
        truth = looking.tilted(MEAN, VARIANCE, answers, each).log_normaliser
        assert_allclose(alone[1], truth, rtol=1e-12)
        assert_allclose(found.gradient * VARIANCE, centre, atol=1e-7)
        assert_allclose(found.shrink, (square - centre**2) / VARIANCE, atol=1e-7)
        assert_allclose(found.curvature, (1.0 - found.shrink) / VARIANCE, atol=1e-7)


@BOTH
def test_slopes_in_hyperparameters_are_differences(base, answers):
    judged, noise = JudgeReliability(base, RELIABILITY), np.full(24, 0.2)
    of_tilted = judged.tilted_theta_gradient(MEAN, VARIANCE, answers)
    of_expected = judged.expected_theta_gradient(MEAN, VARIANCE, noise, answers)
    of_log_prob = judged.theta_derivatives(MEAN, answers)
    step = 1e-4
    for k in range(len(judged.theta)):
        away = step * np.eye(len(judged.theta))[k]
        above, below = judged.at(judged.theta + away), judged.at(judged.theta - away)

        def slope(value, above=above, below=below):
            return (value(above) - value(below)) / (2 * step)

        truth = slope(lambda at: at.tilted(MEAN, VARIANCE, answers).log_normaliser)
        assert_allclose(of_tilted[k], truth, atol=1e-6)
        truth = slope(lambda at: at.expected(MEAN, VARIANCE, noise, answers).value)
        assert_allclose(of_expected[k], truth, atol=1e-6)
        for order, found in enumerate(of_log_prob):
            truth = slope(lambda at, order=order: at.log_prob(MEAN, answers)[order])
            assert_allclose(found[k], truth, atol=1e-5)


@BOTH
def test_expected_log_probabilities_are_those_of_quadrature(base, answers):
    judged, noise = JudgeReliability(base, RELIABILITY), np.full(24, 0.2)
    found = judged.expected(MEAN, VARIANCE, noise, answers)

    def noisy(z):
        chance = averaged(lambda at: np.exp(judged.log_prob(at, answers).value), z, noise, FEW)
        return np.log(chance)

    assert_allclose(found.value, averaged(noisy, MEAN, VARIANCE, FEW), atol=1e-5)
    step = 1e-4
    for name, at in (("by_mean", 0), ("by_variance", 1), ("by_noise", 2)):
        moments = [MEAN, VARIANCE, noise]
        ends = []
        for sign in (step, -step):
            moments[at] = (MEAN, VARIANCE, noise)[at] + sign
            ends.append(judged.expected(*moments, answers).value)
        assert_allclose(getattr(found, name), (ends[0] - ends[1]) / (2 * step), atol=1e-6)


def test_the_common_site_of_equal_answers_reproduces_their_moments():
    judged, counts = JudgeReliability(TIES, RELIABILITY), np.full(24, 5.0)
    site = judged.repeated_site(MEAN, VARIANCE, counts, ANSWERS)
    precision = 1.0 / VARIANCE + 4.0 * site.precision
    centre = (MEAN / VARIANCE + 4.0 * site.shift) / precision
    at = judged.tilted(centre, 1.0 / precision, ANSWERS)
    assert_allclose(at.curvature / at.shrink, site.precision, atol=1e-8)
    wanted = (at.gradient + centre * at.curvature) / at.shrink
    assert_allclose(wanted, site.shift, atol=1e-8)


@pytest.mark.parametrize("offset", [None, np.linspace(-0.5, 0.5, len(MEAN))])
def test_regions_hold_their_probability(offset):
    answers = ANSWERS._replace(offset=offset)
    judged = JudgeReliability(TIES, RELIABILITY)
    found = judged.regions(answers)
    noisy = norm(found.turn * MEAN, np.sqrt(found.variance))
    truth = np.exp(judged.log_prob(MEAN, answers).value)
    looks = RELIABILITY[JUDGE] != 0.0  # others have a large noise
    assert_allclose((noisy.cdf(found.upper) - noisy.cdf(found.lower))[looks], truth[looks])
    assert_allclose(noisy.cdf(found.upper) - noisy.cdf(found.lower), truth, atol=2e-3)


def problem(judge=None, turned=False):
    rng = np.random.default_rng(3)
    items = rng.uniform(-1.0, 1.0, (7, 2))
    pairs = np.array([rng.permutation(7)[:2] for _ in range(25)])
    won = rng.random(25) < 0.6
    if turned:
        won = np.where(np.asarray(judge) == 1, ~won, won)
    return Comparisons.from_duels(items, *pairs.T, won, judge=judge)


def margins(engine, comparisons, likelihood):
    fitted = fit_posterior(comparisons, Model(RBF(0.8), likelihood, engine))
    at = comparisons.items
    return np.array(fitted.posterior.margin(at[:-1], at[1:])), fitted.log_evidence


@pytest.mark.parametrize("engine", [EP(), Laplace(), SVI(7)], ids=["ep", "laplace", "svi"])
def test_a_adversarial_judge_is_a_reliable_one_whose_answers_are_turned_round(engine):
    judge, base = np.arange(25) % 2, Probit(0.1).fix_hyperparameters()
    reliability = np.array([1.0, -1.0])
    found, evidence = margins(
        engine, problem(judge, turned=True), JudgeReliability(base, reliability)
    )
    truth, truth_evidence = margins(engine, problem(), base)
    assert_allclose(found, truth, atol=2e-6)
    assert evidence == pytest.approx(truth_evidence, abs=1e-6)


def test_a_judge_who_looks_at_nothing_tells_nothing():
    judge, base = np.arange(25) % 2, Probit(0.1).fix_hyperparameters()
    comparisons = problem(judge)
    found, evidence = margins(EP(), comparisons, JudgeReliability(base, np.array([1.0, 0.0])))
    looks = np.flatnonzero(judge == 0)
    alone = comparisons.part(looks)
    fitted = fit_posterior(alone, Model(RBF(0.8), base, EP()))
    at = comparisons.items
    assert_allclose(found, fitted.posterior.margin(at[:-1], at[1:]), atol=1e-6)
    silent = 25 - len(looks)
    assert evidence == pytest.approx(fitted.log_evidence - silent * np.log(2.0), abs=1e-6)


def test_the_evidence_in_reliability_has_the_slope_of_the_cavities():
    from skpref.fitting._reliability import Cavities

    comparisons, base = problem(np.arange(25) % 3), Probit(0.1).fix_hyperparameters()
    reliability = np.array([1.2, 0.5, -0.3])

    def run(at):
        model = Model(RBF(0.8), JudgeReliability(base, at), EP(tol=1e-10))
        return fit_posterior(comparisons, model).evaluation

    truth = central_gradient(lambda at: run(at).approximation.sites.log_evidence, reliability, 1e-3)
    told = Cavities.from_evaluation(run(reliability)).by_reliability(base)
    step = 1e-4
    grid = reliability[:, None] + np.array([-step, step])
    found = np.diff(told(grid), axis=1)[:, 0] / (2 * step)
    assert_allclose(found, truth, atol=1e-5)


def test_judges_of_the_reference_judge_change_nothing():
    plain, base = problem(), Probit(0.1, tie_threshold=0.2).fix_hyperparameters()
    one = problem(np.zeros(25, dtype=int))
    for engine in (EP(), Laplace(), SVI(7)):
        found = margins(engine, one, JudgeReliability(base, np.ones(1)))
        truth = margins(engine, plain, base)
        np.testing.assert_array_equal(found[0], truth[0])
        assert found[1] == truth[1]
