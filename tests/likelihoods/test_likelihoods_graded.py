"""Graded answers: intervals of the noisy margin, against the normal law and differences."""

import numpy as np
import pytest
from likelihoods_support import rows
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.base import clone

from skpref.likelihoods import DUEL, GRADED, TIE, GradedProbit, JudgeReliability, Probit

EFFECT = {"order_effect": 0.4, "order_effect_bounds": (-2.0, 2.0)}
TIED = GradedProbit(0.3, tie_threshold=0.25, **EFFECT, grade_thresholds=(0.7, 1.6))
BARE = GradedProbit(0.3, **EFFECT, grade_thresholds=(0.7, 1.6))
KINDS = np.repeat([DUEL, TIE, GRADED + 1, GRADED + 2, GRADED + 3], 3)
LEADS = np.tile([1, 0, -1], 5)
ENDS = {
    DUEL: (0.25, np.inf),
    TIE: (-0.25, 0.25),
    GRADED + 1: (0.25, 0.7),
    GRADED + 2: (0.7, 1.6),
    GRADED + 3: (1.6, np.inf),
}


def truth(mean, deviation, kind):
    """That a normal margin is where such an answer comes."""
    low, high = ENDS[kind]
    return norm.cdf(high, mean, deviation) - norm.cdf(low, mean, deviation)


@pytest.mark.parametrize("lead", [1, 0, -1])
def test_each_label_has_its_interval_of_the_noisy_margin(lead):
    mean, variance = np.linspace(-3.0, 3.0, 7), 0.5
    found = TIED.outcome_proba(mean, np.full(7, variance), lead)
    cuts = np.array([-np.inf, -1.6, -0.7, -0.25, 0.25, 0.7, 1.6, np.inf])
    below = norm.cdf(cuts, (mean + 0.4 * lead)[:, None], np.sqrt(0.6 + variance))
    assert_allclose(found, np.diff(below, axis=1), atol=1e-14)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert TIED.duel_scale.labels.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert BARE.outcome_proba(mean, np.full(7, variance), lead).shape == (7, 6)
    assert BARE.duel_scale.labels.tolist() == [-3, -2, -1, 1, 2, 3]


@pytest.mark.parametrize("graded", [TIED, BARE])
def test_grades_together_are_the_win_of_a_duel(graded):
    plain = Probit(0.3, tie_threshold=graded.tie_threshold, **EFFECT)
    mean, variance = np.linspace(-4.0, 4.0, 9), np.full(9, 0.3)
    duel, parts = (each.outcome_proba(mean, variance) for each in (plain, graded))
    assert_allclose(parts[:, -3:].sum(axis=1), duel[:, -1], rtol=1e-12)
    assert_allclose(parts[:, :3].sum(axis=1), duel[:, 0], rtol=1e-12)
    won = rows(np.full(9, DUEL)), rows(np.full(9, GRADED + 1))
    at = (mean, variance)
    assert_allclose(graded.tilted(*at, won[0]), plain.tilted(*at, won[0]), rtol=1e-13)
    assert np.all(graded.log_normaliser(*at, won[1]) < plain.log_normaliser(*at, won[0]))


@pytest.mark.parametrize("mean", [-4.0, -0.3, 0.5, 3.0])
def test_moments_are_those_of_the_posterior_of_the_margin(mean):
    answers, n = rows(KINDS, LEADS), len(KINDS)
    at = TIED.tilted(np.full(n, mean), np.full(n, 0.8), answers)
    z = np.linspace(mean - 12.0, mean + 12.0, 40_001)
    prior = norm.pdf(z, mean, np.sqrt(0.8))
    for row in range(n):
        density = prior * truth(z + 0.4 * LEADS[row], np.sqrt(0.6), KINDS[row])
        mass = trapezoid(density, z)
        centre = trapezoid(z * density, z) / mass
        spread = trapezoid((z - centre) ** 2 * density, z) / mass
        assert at.log_normaliser[row] == pytest.approx(np.log(mass), abs=1e-9)
        assert mean + 0.8 * at.gradient[row] == pytest.approx(centre, abs=1e-8)
        assert at.shrink[row] * 0.8 == pytest.approx(spread, rel=1e-7)
        assert at.curvature[row] == pytest.approx((1.0 - spread / 0.8) / 0.8, abs=1e-7)
    found = TIED.log_normaliser(np.full(n, mean), np.full(n, 0.8), answers)
    assert_allclose(found, at.log_normaliser, rtol=1e-12)


@pytest.mark.parametrize("z", [-30.0, -1.0, 0.2, 0.9, 2.5])
@pytest.mark.parametrize("bounds", [(1e-4, 10.0), "fixed"])
def test_derivatives_are_differences(z, bounds):
    model = clone(TIED).set_params(grade_threshold_bounds=bounds)
    names = ["noise_variance", "tie_threshold", "order_effect"]
    steps = ["grade_increment_1", "grade_increment_2"]
    assert model.free == names + (steps if bounds != "fixed" else [])
    assert_allclose(np.exp(model.theta[[0, 1]]), [0.3, 0.25])
    answers, margin = rows(KINDS, LEADS), np.full(len(KINDS), z)
    found = model.theta_derivatives(margin, answers)
    by_tilting = model.tilted_theta_gradient(margin, np.full(len(KINDS), 0.5), answers)
    expected = model.expected_theta_gradient(margin, *np.full((2, len(KINDS)), 0.5), answers)
    half = np.full(len(KINDS), 0.5)

    def parts(theta):
        d = model.at(theta).log_prob(margin, answers)
        return np.stack([d.value, d.gradient, d.curvature])

    slopes = central_gradient(parts, model.theta, 1e-2)
    assert_allclose(np.stack(found, axis=1), slopes, rtol=1e-6, atol=1e-6)

    def normaliser(theta):
        return model.at(theta).log_normaliser(margin, half, answers)

    slopes = central_gradient(normaliser, model.theta, 1e-2)
    assert_allclose(by_tilting, slopes, rtol=1e-7, atol=1e-7)

    def mean(theta):
        return model.at(theta).expected(margin, half, half, answers).value

    slopes = central_gradient(mean, model.theta, 1e-2)
    assert_allclose(expected, slopes, rtol=1e-6, atol=1e-6)


def test_thresholds_move_by_their_increments_from_that_of_ties():
    moved = TIED.at(TIED.theta + np.log([1.0, 2.0, 1.0, 1.0, 3.0]))
    assert moved.tie_threshold == pytest.approx(0.5)
    assert_allclose(moved.grade_thresholds, [0.5 + 0.45, 0.5 + 0.45 + 2.7])
    assert TIED.grade_thresholds == (0.7, 1.6)
    assert moved.fix_hyperparameters().free == []


@pytest.mark.parametrize("counts", [2.0, 7.0, 300.0])
def test_sites_of_equal_grades_are_a_fixed_point(counts):
    kinds = np.tile(np.unique(KINDS)[1:], 3)
    answers, n = rows(kinds, np.repeat([1, 0, -1], 4)), len(kinds)
    mean, variance = np.linspace(-1.0, 2.0, n), np.full(n, 0.7)
    site = TIED.repeated_site(mean, variance, np.full(n, counts), answers)
    known = np.isfinite(site.precision)
    # Grades between two thresholds are left to the steps of EP itself.
    assert known.sum() == np.isinf(TIED.regions(answers).upper).sum() > 0
    mean, variance, answers = mean[known], variance[known], answers.take(known)
    site = type(site)(site.precision[known], site.shift[known])
    precision = 1.0 / variance + (counts - 1.0) * site.precision
    centre = (mean / variance + (counts - 1.0) * site.shift) / precision
    at = TIED.tilted(centre, 1.0 / precision, answers)
    new = 1.0 / (at.shrink / precision)
    assert_allclose(new - precision, site.precision, rtol=1e-7)
    assert_allclose(new * (centre + at.gradient / precision) - centre * precision, site.shift,
                    rtol=1e-6, atol=1e-7)  # fmt: skip


def test_regions_hold_the_margins_that_say_so():
    answers = rows(KINDS, LEADS)
    box = TIED.regions(answers)
    found = norm.cdf((box.upper - 0.3) / np.sqrt(box.variance))
    found -= norm.cdf((box.lower - 0.3) / np.sqrt(box.variance))
    at = TIED.log_prob(np.full(len(KINDS), 0.3), answers).value
    assert_allclose(found, np.exp(at), rtol=1e-12)


def test_probabilities_are_finite_far_out():
    mean = np.array([-300.0, 300.0])
    found = TIED.outcome_log_proba(mean, np.zeros(2))
    assert np.all(np.isfinite(found)) and found[0, 0] == 0.0 and found[1, -1] == 0.0
    assert np.all(np.diff(found[0]) < 0.0) and np.all(np.diff(found[1]) > 0.0)


def test_an_adversarial_judge_gives_the_grades_of_the_other_side():
    answers = rows(KINDS[3:], 0)._replace(judge=np.zeros(len(KINDS) - 3, dtype=int))
    margin = np.linspace(-1.0, 1.0, len(KINDS) - 3)
    against = JudgeReliability(TIED, np.array([-2.0])).log_prob(margin, answers).value
    assert_allclose(against, TIED.log_prob(-2.0 * margin, answers).value)


@pytest.mark.parametrize(
    ("thresholds", "tie", "match"),
    [
        ((), None, "one fewer than there are grades"),
        (0.5, None, "sequence of numbers"),
        ("ab", None, "sequence of numbers"),
        ((0.5, np.nan), None, "sequence of numbers"),
        ((0.5, 0.5), None, "must ascend and be above 0"),
        ((-0.5, 0.5), None, "must ascend and be above 0"),
        ((0.2, 0.5), 0.3, "must ascend and be above tie_threshold=0.3"),
    ],
)
def test_unsound_thresholds_are_refused(thresholds, tie, match):
    with pytest.raises(ValueError, match=match):
        GradedProbit(tie_threshold=tie, grade_thresholds=thresholds).check()


def test_a_grade_that_is_not_known_is_refused():
    for model in (Probit(), Probit(tie_threshold=0.1), TIED):
        with pytest.raises(
            ValueError, match=r"There are grades .* does not take. Give grade_thresholds"
        ):
            model.log_prob(np.zeros(2), rows([DUEL, GRADED + 4]))


@pytest.mark.parametrize("thresholds", [(0.05, 1.0), (0.5, 0.9, 2.0)])
def test_a_threshold_of_ties_is_set_below_those_of_grades(thresholds):
    plain = GradedProbit(0.3, grade_thresholds=thresholds)
    tied = plain.with_ties(0.1, "fixed")
    assert tied.tie_threshold == min(0.1, 0.5 * thresholds[0])
    assert tied.tie_threshold_bounds == "fixed" and tied.grade_thresholds == thresholds
    assert plain.tie_threshold is None and tied.duel_scale == plain.duel_scale._replace(ties=True)
    assert Probit(0.3).with_ties(0.1, (1e-4, 1.0)).tie_threshold == 0.1
