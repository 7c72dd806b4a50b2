"""Ties, the order effect and inequalities of joint answers: quadrature, differences, symmetries."""

import numpy as np
import pytest
from likelihoods_support import Logistic, duels, rows
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import norm

from skpref.likelihoods import DUEL, INEQUALITY, TIE, Likelihood, Probit

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
MODEL = Probit(0.3, tie_threshold=0.6, order_effect=0.4, order_effect_bounds=(-2.0, 2.0))
# Every kind of row that has noise, in every order.
KINDS = np.repeat([DUEL, TIE], 3)
LEADS = np.tile([1, 0, -1], 2)


class Bare(Likelihood):
    """The probit with ties and order by its probability alone."""

    hyperparameters = Probit.hyperparameters
    linear = Probit.linear
    kinds = frozenset({DUEL, TIE})

    def __init__(self, noise_variance=0.3, tie_threshold=0.6, order_effect=0.4):
        self.noise_variance, self.tie_threshold = noise_variance, tie_threshold
        self.order_effect = order_effect
        self.noise_variance_bounds = self.tie_threshold_bounds = (1e-4, 10.0)
        self.order_effect_bounds = (-2.0, 2.0)

    def log_prob(self, margin, answers):
        model = Probit(
            self.noise_variance, tie_threshold=self.tie_threshold, order_effect=self.order_effect
        )
        return model.log_prob(margin, answers)


def probability(margin, kind, lead, noise_variance, threshold, order_effect):
    """Of one answer: u₁ − u₂ against the threshold, u of what is shown first raised."""
    difference = norm(margin + lead * order_effect, np.sqrt(2.0 * noise_variance))
    if kind == DUEL:
        return difference.sf(threshold)
    return difference.cdf(threshold) - difference.cdf(-threshold)


@pytest.mark.parametrize("kind", [DUEL, TIE])
@pytest.mark.parametrize("lead", [1, 0, -1])
def test_the_judge_compares_noisy_utilities_with_the_threshold(kind, lead):
    margin = np.linspace(-3.0, 3.0, 13)
    found = MODEL.log_prob(margin, rows(np.full(13, kind), lead))
    assert_allclose(np.exp(found.value), probability(margin, kind, lead, 0.3, 0.6, 0.4), rtol=1e-12)


def test_which_of_three_outcomes_by_drawing_the_utilities():
    rng = np.random.default_rng(0)
    noise = np.sqrt(0.3) * rng.normal(size=(400_000, 2))
    first, second = 0.2 + 0.4 + noise[:, 0], 0.5 + noise[:, 1]
    sign = np.where(first - second > 0.6, 1, np.where(second - first > 0.6, -1, 0))
    truth = [np.mean(sign == s) for s in (-1, 0, 1)]
    found = MODEL.outcome_proba(np.array([0.2 - 0.5]), np.zeros(1))
    assert_allclose(found[0], truth, atol=4e-3)
    at_second = MODEL.outcome_proba(np.array([0.5 - 0.2]), np.zeros(1), -1)
    assert_allclose(at_second[0], truth[::-1], atol=4e-3)


@pytest.mark.parametrize("row", range(6))
def test_derivatives_in_the_margin_are_differences(row):
    answers, kind = rows(KINDS[row : row + 1], LEADS[row]), KINDS[row]
    for z in (-3.0, -0.4, 0.0, 0.2, 2.5):
        found = MODEL.log_prob(np.array([z]), answers)
        parts = found.value, found.gradient, -found.curvature, found.third
        for order in range(3):

            def function(at, order=order):
                d = MODEL.log_prob(at, answers)
                return (d.value, d.gradient, -d.curvature)[order][0]

            truth = central_gradient(function, [z], 1e-2)[0]
            assert parts[order + 1][0] == pytest.approx(truth, rel=1e-8, abs=1e-8), kind


@pytest.mark.parametrize("z", [-40.0, -2.3, -0.4, 0.0, 0.7, 3.1])
@pytest.mark.parametrize("threshold", [1e-4, 0.1, 0.6, 5.0])
def test_derivatives_in_the_hyperparameters_are_differences(z, threshold):
    model = Probit(0.3, (1e-4, 10), threshold, (1e-4, 10), 0.4, (-2, 2))
    answers, margin = rows(KINDS, LEADS), np.full(6, z)
    found = model.theta_derivatives(margin, answers)

    def function(theta):
        d = model.at(theta).log_prob(margin, answers)
        return np.stack([d.value, d.gradient, d.curvature])

    truth = central_gradient(function, model.theta, 5e-3)
    for k, part in enumerate(found):
        assert part.shape == (3, 6)
        assert_allclose(part, truth[:, k], rtol=1e-7, atol=1e-7)
    assert len(found) == truth.shape[1]


@pytest.mark.parametrize("mean", [-40.0, -2.3, -0.4, 0.0, 0.7, 3.1])
@pytest.mark.parametrize("variance", [1e-6, 0.8, 100.0])
def test_hyperparameters_move_the_log_normaliser_as_differences_say(mean, variance):
    kinds, leads = np.r_[KINDS, [INEQUALITY] * 3], np.r_[LEADS, 1, 0, -1]
    at = np.full(9, mean), np.full(9, variance), rows(kinds, leads)
    found = MODEL.tilted_theta_gradient(*at)
    assert found.shape == (3, 9)
    assert_allclose(found[:2, 6:], 0.0)
    n = 9 if variance > 0.1 else 6
    truth = central_gradient(
        lambda theta: MODEL.at(theta).tilted(*at).log_normaliser[:n], MODEL.theta, 1e-2
    )
    assert_allclose(found[:, :n], truth, rtol=1e-7, atol=1e-8)


def by_panels(mean, variance, kind, lead):
    """log normaliser, mean and variance of N(z; mean, variance) times an answer's probability."""
    sd = np.sqrt(variance)
    cuts = np.linspace(mean - 12.0 * sd, mean + 12.0 * sd, 200)[:, None]
    if kind == INEQUALITY:
        wall = -lead * 0.4
        cuts = np.linspace(max(cuts[0, 0], wall), max(cuts[-1, 0], wall + 12.0 * sd), 200)[:, None]
    half = 0.5 * np.diff(cuts, axis=0)
    z = cuts[:-1] + half * (1.0 + NODES)
    density = half * WEIGHTS * norm.pdf(z, mean, sd)
    if kind != INEQUALITY:
        density = density * probability(z, kind, lead, 0.3, 0.6, 0.4)
    mass = density.sum()
    centre = (density * z).sum() / mass
    return np.log(mass), centre, (density * (z - centre) ** 2).sum() / mass


@pytest.mark.parametrize("kind", [DUEL, TIE, INEQUALITY])
@pytest.mark.parametrize("lead", [1, 0, -1])
def test_tilted_moments_by_quadrature(kind, lead):
    for variance in (1e-4, 0.5, 9.0):
        mean = np.sqrt(variance) * np.array([-4.0, -1.0, 0.0, 0.3, 2.0]) + 0.1
        at = mean, np.full(5, variance)
        if kind == INEQUALITY and variance < 0.1:
            continue  # the wall is tens of deviations away
        found = MODEL.tilted(*at, rows(np.full(5, kind), lead))
        truth = np.array([by_panels(*each, kind, lead) for each in zip(*at, strict=True)]).T
        assert_allclose(found.log_normaliser, truth[0], rtol=1e-10, atol=1e-10)
        assert_allclose(mean + variance * found.gradient, truth[1], atol=1e-9 * np.sqrt(variance))
        assert_allclose(variance * found.shrink, truth[2], rtol=1e-9)
        assert_allclose(1.0 - variance * found.curvature, found.shrink, atol=1e-13)
        # The Gaussian site that engines make of it has the same moments.
        precision = 1.0 / variance + found.curvature / found.shrink
        shift = mean / variance + (found.gradient + mean * found.curvature) / found.shrink
        assert_allclose(1.0 / precision, truth[2], rtol=1e-9)
        assert_allclose(shift / precision, truth[1], atol=1e-9 * np.sqrt(variance))


def test_nothing_breaks_at_any_scale():
    away = np.concatenate([-(10.0 ** np.arange(-6.0, 2.6, 0.5)), [0.0, -300.0]])
    away = np.concatenate([away, -away])
    for variance in (0.0, 1e-10, 1e-2, 1.0, 1e4, 1e10):
        scale = np.sqrt(variance + 0.6)
        mean, spread = away * scale, np.full(len(away), variance)
        for width in 10.0 ** np.arange(-8.0, 4.0):
            model = Probit(0.3, tie_threshold=width * scale)
            for kind in (DUEL, TIE):
                answers = rows(np.full(len(away), kind))
                found = model.tilted(mean, spread, answers)
                assert all(np.all(np.isfinite(part)) for part in found)
                assert np.all((found.shrink > 0.0) & (found.shrink <= 1.0))
                assert np.all((found.curvature >= 0.0) & (found.log_normaliser <= 0.0))
                assert_allclose(1.0 - spread * found.curvature, found.shrink, atol=1e-12)
                slopes = model.tilted_theta_gradient(mean, spread, answers)
                assert np.all(np.isfinite(slopes))
            total = model.outcome_proba(mean, spread).sum(axis=-1)
            assert_allclose(total, 1.0, rtol=1e-15)


def test_powers_are_taken_by_quadrature_of_the_same_factor():
    mean, variance = np.array([0.3, -1.0, 0.8, 0.1, 2.0, -0.4]), np.full(6, 0.7)
    answers, power = rows(KINDS, LEADS), np.array([0.3, 1.0, 0.5, 0.9, 0.2, 1.0])
    found, bare = MODEL.tilted(mean, variance, answers, power), Bare()
    for one, other in zip(found, bare.tilted(mean, variance, answers, power), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    slopes = MODEL.tilted_theta_gradient(mean, variance, answers, power)
    truth = bare.tilted_theta_gradient(mean, variance, answers, power)
    assert_allclose(slopes, truth, rtol=1e-6, atol=1e-7)
    indicator = rows(np.full(6, INEQUALITY))
    for one, other in zip(
        MODEL.tilted(mean, variance, indicator, power),
        MODEL.tilted(mean, variance, indicator),
        strict=True,
    ):
        assert_allclose(one, other, rtol=0.0)


# -- outcomes ------------------------------------------------------------------------------------


def test_outcomes_of_a_gaussian_margin_are_those_of_quadrature():
    mean, variance = np.linspace(-6.0, 6.0, 7)[:, None], np.array([0.0, 0.5, 20.0])
    lead = np.array([1, 0, -1])
    found = MODEL.outcome_log_proba(mean, variance, lead)
    assert found.shape == (7, 3, 3) and MODEL.n_outcomes == 3
    assert_allclose(found, Bare().outcome_log_proba(mean, variance, lead), rtol=1e-9, atol=1e-10)
    assert_allclose(np.exp(found), MODEL.outcome_proba(mean, variance, lead), rtol=1e-12)
    win = norm.logsf(0.6, mean[:, 0] + 0.4, np.sqrt(0.6))
    assert_allclose(found[:, 0, 2], win, rtol=1e-12)


@pytest.mark.parametrize("threshold", [None, 0.05, 3.0])
@pytest.mark.parametrize("log", [True, False])
def test_turning_a_duel_round_turns_its_outcomes_round(threshold, log):
    mean, variance = np.linspace(-50.0, 50.0, 21)[:, None], np.array([0.0, 1e-3, 2.0, 1e6])

    def outcomes(mean, effect, lead):
        model = Probit(0.2, tie_threshold=threshold, order_effect=effect)
        read = model.outcome_log_proba if log else model.outcome_proba
        return read(mean, variance, lead)

    found = outcomes(mean, 0.7, 1)
    assert_allclose(found, outcomes(-mean, 0.7, -1)[..., ::-1], rtol=1e-13, atol=1e-300)
    assert_allclose(found, outcomes(-mean, -0.7, 1)[..., ::-1], rtol=1e-13, atol=1e-300)
    assert_allclose(outcomes(mean, 0.7, 0), outcomes(mean, 0.0, 1), rtol=1e-15)
    assert_allclose(found, outcomes(mean + 0.7, 0.0, 1), rtol=1e-10)
    total = np.exp(found).sum(axis=-1) if log else found.sum(axis=-1)
    assert_allclose(total, 1.0, rtol=1e-14 if log else 1e-15)


def test_the_default_outcomes_know_who_was_shown_first():
    class Homely(Logistic):
        def log_prob(self, margin, answers):
            return super().log_prob(margin + 0.5 * answers.lead, answers)

    mean = np.array([-1.0, 0.0, 0.3])
    for variance in (np.zeros(3), np.full(3, 0.4)):
        found = Homely(0.3).outcome_proba(mean, variance, np.array([1, 0, -1]))
        truth = Logistic(0.3).outcome_proba(mean + np.array([0.5, 0.0, -0.5]), variance)
        assert_allclose(found, truth, rtol=1e-8)


@pytest.mark.parametrize("kind", [DUEL, TIE])
def test_log_probabilities_are_concave(kind):
    z = np.linspace(-60.0, 60.0, 2001)
    for threshold in (1e-6, 0.1, 3.0, 50.0):
        model = Probit(0.1, tie_threshold=threshold)
        found = model.log_prob(z, rows(np.full(len(z), kind)))
        assert np.all(found.curvature >= 0.0)
        assert np.all(np.diff(found.gradient) <= 1e-12 * np.abs(found.gradient[1:]))


# -- reductions ----------------------------------------------------------------------------------


def test_a_threshold_that_vanishes_leaves_the_model_without_ties():
    mean = np.array([-30.0, -1.0, 0.0, 0.4, 5.0])
    variance, near, without = np.full(5, 0.8), Probit(0.2, tie_threshold=1e-12), Probit(0.2)
    at = mean, variance, duels(5)
    for one, other in zip(near.tilted(*at), without.tilted(*at), strict=True):
        assert_allclose(one, other, rtol=1e-9)
    outcomes = near.outcome_proba(mean, variance)
    assert_allclose(outcomes[:, [0, 2]], without.outcome_proba(mean, variance), rtol=1e-9)
    assert np.all((outcomes[:, 1] > 0.0) | (np.abs(mean) > 20.0)) and outcomes.max() < 1.0 + 1e-15
    # A tie then says that the noisy margin was zero: the density there, of N(mean, v + 2σ²).
    found = near.tilted(mean, variance, rows(np.full(5, TIE)))
    density = norm.logpdf(0.0, mean, np.sqrt(1.2))
    assert_allclose(found.log_normaliser, density + np.log(2e-12), rtol=1e-12)
    assert_allclose(found.gradient, -mean / 1.2, rtol=1e-12)
    assert_allclose(found.shrink, 0.4 / 1.2, rtol=1e-12)


def test_rows_of_other_kinds_change_nothing_for_duels():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=9), rng.uniform(0.1, 2.0, 9)
    kinds = np.tile([DUEL, TIE, INEQUALITY], 3)
    at = kinds == DUEL
    plain, model = Probit(0.3), Probit(0.3, tie_threshold=1e-300)
    alone = plain.tilted(mean[at], variance[at], duels(3))
    for one, other in zip(model.tilted(mean, variance, rows(kinds)), alone, strict=True):
        assert_allclose(one[at], other, rtol=1e-14)
    free = Probit(0.3, order_effect_bounds=(-1.0, 1.0))
    found, truth = free.log_prob(mean, duels(9)), plain.log_prob(mean, duels(9))
    for one, other in zip(found, truth, strict=True):
        assert_allclose(one, other, rtol=0.0)


def test_an_inequality_of_a_joint_answer_has_no_noise_and_no_threshold():
    mean, variance = np.array([0.5, -1.0, 2.0]), np.array([0.3, 2.0, 1e-8])
    part = rows([INEQUALITY] * 3, [1, 0, -1])
    found = MODEL.tilted(mean, variance, part)
    truth = Probit(1e-300).tilted(mean + np.array([0.4, 0.0, -0.4]), variance, duels(3))
    for one, other in zip(found, truth, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(ValueError, match=r"joint answer .* no noise of its own"):
        MODEL.log_prob(mean, part)
    with pytest.raises(ValueError, match="use inference='ep' or a sampler"):
        Probit(0.3).theta_derivatives(mean, part)


def test_an_inequality_of_a_margin_without_variance_holds_or_does_not():
    found = Probit(0.3).tilted(np.array([-1.0, 0.0, 2.0]), np.zeros(3), rows([INEQUALITY] * 3))
    assert_allclose(found.log_normaliser, [-np.inf, np.log(0.5), 0.0])
    assert_allclose(found.gradient, 0.0)
    assert_allclose(found.curvature, 0.0)
    assert_allclose(found.shrink, 1.0)
    part = rows([INEQUALITY] * 3, [1, 0, -1])
    at_home = MODEL.tilted(np.array([-0.3, -0.3, 0.3]), np.zeros(3), part)
    assert_allclose(at_home.log_normaliser, [0.0, -np.inf, -np.inf])
    slopes = MODEL.tilted_theta_gradient(np.array([-1.0, 0.0, 2.0]), np.zeros(3), part)
    assert_allclose(slopes, 0.0)


def test_regions_are_boxes_with_the_probability_of_the_answer():
    kinds, leads = np.r_[KINDS, [INEQUALITY] * 3], np.r_[LEADS, 1, 0, -1]
    regions = MODEL.regions(rows(kinds, leads))
    assert_allclose(regions.variance, [0.6] * 6 + [0.0] * 3)
    assert_allclose(regions.lower[6:], [-0.4, 0.0, 0.4])
    assert np.all(regions.upper[kinds != TIE] == np.inf)
    margin = 0.3
    for row in range(6):
        noise = norm(margin, np.sqrt(regions.variance[row]))
        found = noise.cdf(regions.upper[row]) - noise.cdf(regions.lower[row])
        truth = probability(margin, kinds[row], leads[row], 0.3, 0.6, 0.4)
        assert found == pytest.approx(truth, rel=1e-12)


# -- hyperparameters -----------------------------------------------------------------------------


def test_theta_has_the_order_effect_as_it_is():
    assert MODEL.free == ["noise_variance", "tie_threshold", "order_effect"]
    assert_allclose(MODEL.theta, [np.log(0.3), np.log(0.6), 0.4])
    low = np.log(1e-4)
    assert_allclose(MODEL.bounds, [[low, np.log(10)], [low, np.log(10)], [-2.0, 2.0]])
    moved = MODEL.at(np.array([0.0, np.log(2.0), -1.5]))
    assert_allclose([moved.noise_variance, moved.tie_threshold, moved.order_effect], [1, 2, -1.5])
    assert (
        MODEL.fix_hyperparameters().free == [] and MODEL.fix_hyperparameters().tie_threshold == 0.6
    )
    assert_allclose(MODEL.item_noise_gradient(), [0.3, 0.0, 0.0])
    step = central_gradient(lambda theta: MODEL.at(theta).item_noise, MODEL.theta, 1e-2)
    assert_allclose(MODEL.item_noise_gradient(), step, rtol=1e-8, atol=1e-12)


def test_what_a_likelihood_takes():
    plain = Probit()
    assert plain.free == ["noise_variance"] and plain.kinds == {DUEL, INEQUALITY}
    assert plain.n_outcomes == 2 and not plain.uses_order and plain.item_noise == 1e-2
    assert MODEL.kinds == {DUEL, TIE, INEQUALITY} and MODEL.uses_order
    assert Probit(order_effect=-0.1).uses_order and Probit(order_effect_bounds=(-1, 1)).uses_order
    other = Logistic()
    assert other.kinds == {DUEL} and other.n_outcomes == 2 and not other.uses_order
    assert other.item_noise is None and other.item_noise_gradient().shape == (1,)


def test_ties_without_a_threshold_are_an_error():
    with pytest.raises(ValueError, match=r"There are ties .* Probit does not take"):
        Probit().tilted(np.zeros(2), np.ones(2), rows([DUEL, TIE]))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"tie_threshold": 0.0}, ValueError, r"\(0.0, inf\), got 0.0. .*None means no ties"),
        ({"tie_threshold": -1.0}, ValueError, "None means no ties"),
        ({"tie_threshold": np.inf}, ValueError, "None means no ties"),
        ({"tie_threshold": "a"}, TypeError, "tie_threshold must be a number"),
        ({"tie_threshold": 1.0, "tie_threshold_bounds": (0.0, 1.0)}, ValueError, "no ties"),
        ({"order_effect": np.nan}, ValueError, "order_effect must lie in"),
        ({"order_effect": np.inf}, ValueError, r"order_effect must lie in \(-inf, inf\)"),
        ({"order_effect": None}, TypeError, "order_effect must be a number"),
        ({"order_effect_bounds": (1.0, 1.0)}, ValueError, "pair -inf < low < high < inf"),
        ({"order_effect_bounds": (-np.inf, 1.0)}, ValueError, "pair -inf < low < high < inf"),
        ({"noise_variance": None}, TypeError, "noise_variance must be a number"),
    ],
)
def test_bad_hyperparameters_say_what_is_allowed(parameters, error, match):
    with pytest.raises(error, match=match):
        Probit(**parameters).check()


def test_good_hyperparameters_are_taken():
    Probit(tie_threshold=None, tie_threshold_bounds="nothing").check()
    Probit(0.1, "fixed", 0.2, "fixed", -3.0, (-5.0, -1.0)).check()
