"""Scores of duels: by adaptive quadrature, by large samples, and where they must be nothing."""

from itertools import pairwise

import numpy as np
import pytest
from active_support import Known, mutual_information, probabilities
from likelihoods_support import BareProbit, Logistic
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import entr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import (
    bald,
    best_item_information,
    committee_disagreement,
    entropy,
    margin_variance,
    random_scores,
)
from skpref.gp._posterior import Posterior
from skpref.inference import HMC
from skpref.likelihoods import Probit

PLAIN = Probit(0.5)  # the noise on a margin has variance 1
TIES = Probit(0.5, tie_threshold=0.8)
ORDER = Probit(0.02, tie_threshold=0.3, order_effect=0.4)
DEVIATIONS = [0.0, 1e-6, 1e-3, 0.1, 0.59, 0.61, 1.0, 3.0, 30.0, 1e4]
MEANS = [0.0, 0.3, -1.0, 2.5, -6.0, 20.0]
GRID = np.array([(mean, deviation) for mean in MEANS for deviation in DEVIATIONS])


def on_grid(likelihood, lead=1):
    """The posterior of the grid in units of the noise, and its truth."""
    mean, deviation = GRID.T * np.sqrt(2.0 * likelihood.noise_variance)
    each = zip(mean, deviation, strict=True)
    truth = [mutual_information([m], s, likelihood, lead) for m, s in each]
    return Known(likelihood, mean, deviation**2), np.array(truth)


def fitted(n_components=1, likelihood=PLAIN, seed=0):
    """A sound posterior on a line, and components around it."""
    rng = np.random.default_rng(seed)
    Z = np.array([[0.0], [0.5], [1.3], [2.0]])
    inverse = np.linalg.inv(RBF(0.8)(Z) + 0.3 * np.eye(4))
    weights = inverse @ rng.standard_normal((4, n_components))
    return Posterior(RBF(0.8), likelihood, Z, weights, np.linalg.cholesky(inverse))


DUELS = np.array([[0.0, 0.5], [2.0, 0.2], [1.0, 4.0], [0.5, 0.7]])[:, :, None]


# -- BALD ------------------------------------------------------------------------------------


WIDE = Probit(0.5, tie_threshold=25.0)  # nearly always a tie, unless the margin is large


@pytest.mark.parametrize(
    "likelihood", [PLAIN, TIES, WIDE, Probit(1e-4)], ids=["plain", "ties", "wide", "sure"]
)
def test_bald_is_the_mutual_information(likelihood):
    known, truth = on_grid(likelihood)
    found = bald(known, known.duels)
    assert_allclose(found, truth, atol=2e-9)
    assert np.all((found >= 0.0) & (found <= np.log(likelihood.n_outcomes)))
    assert_array_equal(found[GRID[:, 1] == 0.0], 0.0)


@pytest.mark.parametrize("lead", [1, 0, -1])
def test_bald_knows_who_is_shown_first(lead):
    known, truth = on_grid(ORDER, lead)
    assert_allclose(bald(known, known.duels, order=lead), truth, atol=2e-9)
    each = np.full(len(truth), lead)
    assert_array_equal(bald(known, known.duels, order=each), bald(known, known.duels, order=lead))


@pytest.mark.slow
def test_bald_of_any_likelihood():
    known, truth = on_grid(PLAIN)
    bare = Known(BareProbit(0.5), known.mean, known.variance)
    assert_allclose(bald(bare, bare.duels), truth, atol=1e-8)
    logistic = Known(Logistic(0.3), [0.4, 0.4, 0.0], [0.01, 4.0, 400.0])

    def win(m):
        return 1.0 / (1.0 + np.exp(-m / 0.3))

    for k, (mean, variance) in enumerate(zip(logistic.mean, logistic.variance, strict=True)):
        ends = np.array([-12.0, -3.0, 0.0, 3.0, 12.0])

        def mean_of(function, mean=mean, variance=variance, ends=ends):
            where = sorted({mean + 10 * z * np.sqrt(variance) for z in (-1, 0, 1)} | {*ends})
            normal = norm(mean, np.sqrt(variance)).pdf
            each = (quad(lambda m: function(m) * normal(m), *part)[0] for part in pairwise(where))
            return sum(each)

        p = mean_of(win)
        known = mean_of(lambda m: entr(win(m)) + entr(win(-m)))
        assert abs(bald(logistic, logistic.duels)[k] - (entr(p) + entr(1 - p) - known)) < 1e-7


def test_bald_of_a_mixture():
    posterior = fitted(5)
    means, variance = posterior.component_margins(DUELS[:, 0], DUELS[:, 1])
    truth = [
        mutual_information(row, s, PLAIN) for row, s in zip(means, np.sqrt(variance), strict=True)
    ]
    assert_allclose(bald(posterior, DUELS), truth, atol=1e-9)


def test_the_closed_form_is_near():
    known, truth = on_grid(PLAIN)
    found = bald(known, known.duels, method="closed_form")
    off = np.abs(found - truth)
    assert off.max() < 0.0019
    assert off.max() > 1e-4  # it is another formula
    assert np.all((found >= 0.0) & (found <= np.log(2.0)))
    assert_array_equal(found[GRID[:, 1] == 0.0], 0.0)
    fine = np.stack(np.meshgrid(np.linspace(0.0, 6.0, 60), np.logspace(-5, 3, 60)), -1)
    mean, deviation = fine.reshape(-1, 2).T
    many = Known(PLAIN, mean, deviation**2)
    near = np.abs(bald(many, many.duels) - bald(many, many.duels, method="closed_form"))
    assert near.max() < 0.0019


def test_the_two_curves_are_nowhere_farther_apart_than_the_page_says():
    u = np.linspace(0.0, 9.0, 20_001)
    gap = entr(ndtr(u)) + entr(ndtr(-u)) - np.log(2.0) * np.exp(-(u**2) / (np.pi * np.log(2.0)))
    largest = np.abs(gap).argmax()
    assert 0.0018 < np.abs(gap[largest]) < 0.0019
    assert abs(u[largest] - 2.05) < 0.01


def test_the_bell_has_the_entropys_height_and_bend():
    """Source: the supplement's Taylor expansion, log₂-entropy of Φ(x) = 1 − x²/(π ln 2) + …"""
    x = np.array([0.0, 1e-3])
    sure = Known(PLAIN, x, [1e-30, 1e-30])
    p = ndtr(x)
    left = entr(p) + entr(1 - p) - bald(sure, sure.duels, method="closed_form")
    assert_allclose(left[0], np.log(2.0), rtol=1e-12)
    assert_allclose((left[0] - left[1]) / 1e-6, 1.0 / np.pi, rtol=1e-4)


def test_the_closed_form_knows_who_is_shown_first_and_mixtures():
    shifted, bare = Probit(0.5, order_effect=0.7), Known(PLAIN, [1.1, -0.3], [2.0, 2.0])
    known = Known(shifted, [0.4, 0.4], [2.0, 2.0])
    found = bald(known, known.duels, order=[1, -1], method="closed_form")
    assert_allclose(found, bald(bare, bare.duels, method="closed_form"))
    mixed = fitted(5)
    exact = bald(mixed, DUELS)
    assert np.abs(bald(mixed, DUELS, method="closed_form") - exact).max() < 0.0019


@pytest.mark.parametrize("likelihood", [TIES, Logistic()], ids=["ties", "logistic"])
def test_the_closed_form_is_refused(likelihood):
    known = Known(likelihood, [0.0], [1.0])
    with pytest.raises(ValueError, match="method='quadrature'"):
        bald(known, known.duels, method="closed_form")


def test_turned_duels_tell_as_much():
    posterior = fitted(3, TIES)
    for score in (bald, entropy, margin_variance):
        assert_allclose(score(posterior, DUELS), score(posterior, DUELS[:, ::-1]), atol=1e-12)


# -- entropy, variance, chance ---------------------------------------------------------------


def test_entropy_is_that_of_the_prediction():
    model = PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.1, optimizer=None)
    model.fit(DUELS, [1, 0, 1, 0])
    proba = model.predict_proba(DUELS)
    assert_allclose(entropy(model.posterior_, DUELS), entr(proba).sum(axis=1), rtol=1e-12)
    even = Known(PLAIN, [0.0, 0.0], [0.0, 5.0])
    assert_allclose(entropy(even, even.duels), np.log(2.0))


def test_variance_is_that_of_the_mixture():
    posterior = fitted(4)
    _, variance = posterior.margin(DUELS[:, 0], DUELS[:, 1])
    assert_allclose(margin_variance(posterior, DUELS), variance, rtol=1e-12)


def test_random_scores():
    known = Known(PLAIN, np.zeros(50), np.ones(50))
    one, two, three = (random_scores(known, known.duels, random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(one, two)
    assert one.shape == (50,) and not np.array_equal(one, three)


# -- committees ------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [PLAIN, TIES, ORDER], ids=["plain", "ties", "order"])
def test_many_members_disagree_by_the_mutual_information(likelihood):
    posterior = fitted(3, likelihood)
    found = committee_disagreement(posterior, DUELS, members=40_000, order=-1, random_state=0)
    assert_allclose(found, bald(posterior, DUELS, order=-1), atol=0.01)


def test_votes():
    posterior = fitted()
    share = posterior.win_probability(DUELS[:, 0], DUELS[:, 1], noise=False)
    found = committee_disagreement(posterior, DUELS, members=40_000, vote=True, random_state=0)
    assert_allclose(found, entr(share) + entr(1.0 - share), atol=0.01)


def test_components_as_members():
    posterior = fitted(4)
    found = committee_disagreement(posterior, DUELS, members="components")
    means, variance = posterior.component_margins(DUELS[:, 0], DUELS[:, 1])
    win = norm.cdf(means / np.sqrt(1.0 + variance)[:, None])
    both = entr(win) + entr(1.0 - win)
    centre = win.mean(axis=1)
    assert_allclose(found, entr(centre) + entr(1.0 - centre) - both.mean(axis=1), atol=1e-12)
    with pytest.raises(ValueError, match="inference='hmc'"):
        committee_disagreement(fitted(), DUELS, members="components")


def test_members_are_whole_functions():
    """Two members who are of one mind about a duel are so of the same duel turned round."""
    both = np.array([[0.0, 1.0], [1.0, 0.0]])[:, :, None]
    votes = [
        committee_disagreement(fitted(), both, members=2, vote=True, random_state=seed)
        for seed in range(30)
    ]
    assert_array_equal(*np.transpose(votes))
    assert len(np.unique(votes)) == 2


def test_margins_alone_are_drawn_one_by_one():
    known = Known(PLAIN, np.zeros(3), [1.0, 1.0, 0.0])
    found = committee_disagreement(known, known.duels, members=20_000, random_state=0)
    assert_allclose(found[:2], bald(known, known.duels)[:2], atol=0.01)
    assert found[2] == 0.0


# -- the best item ---------------------------------------------------------------------------


def test_information_about_the_better_of_two():
    """Which of two is better is the sign of their margin: one-dimensional integrals."""
    posterior = fitted(likelihood=Probit(0.1))
    duel = DUELS[:1]
    (mean,), (variance,) = posterior.margin(duel[:, 0], duel[:, 1])
    normal = norm(mean, np.sqrt(variance))

    def part(low, high):
        def joint(m):
            return norm.cdf(m / np.sqrt(0.2)) * normal.pdf(m)

        share = normal.cdf(high) - normal.cdf(low)
        return share, quad(joint, max(low, mean - 12), min(high, mean + 12))[0] / share

    halves = [part(-np.inf, 0.0), part(0.0, np.inf)]
    win = sum(share * p for share, p in halves)
    truth = entr(win) + entr(1 - win) - sum(s * (entr(p) + entr(1 - p)) for s, p in halves)
    found = best_item_information(posterior, duel, n_draws=40_000, random_state=0)
    assert_allclose(found, truth, atol=0.005)


def test_information_about_the_best_of_several():
    """By tables of answers and best items that large samples give, noise and all."""
    posterior = fitted(2, TIES)
    items = np.array([[0.0], [0.7], [1.4], [3.0]])
    found = best_item_information(posterior, DUELS, items, n_draws=20_000, random_state=0)
    rng = np.random.default_rng(5)
    every = np.concatenate([items, DUELS[:, 0], DUELS[:, 1]])
    draws = posterior.sample(every, 400_000, rng)
    best = draws[:4].argmax(axis=0)
    for k in range(len(DUELS)):
        seen = draws[4 + k] - draws[8 + k] + rng.standard_normal(draws.shape[1])
        outcome = np.where(seen > 0.8, 2, np.where(seen < -0.8, 0, 1))
        table = np.zeros((4, 3))
        np.add.at(table, (best, outcome), 1.0 / len(best))
        total = entr(table.sum(axis=0)).sum() + entr(table.sum(axis=1)).sum() - entr(table).sum()
        assert_allclose(found[k], total, atol=0.004)


def test_a_duel_far_below_the_best_tells_little_about_it():
    table = ItemTable.from_names(["a", "b", "c", "d"])
    games = [["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"]] * 6
    model = PairwisePreferenceRegressor(items=table, noise_variance=0.05, optimizer=None)
    model.fit(games)
    asked = [["a", "b"], ["c", "d"]]
    top, bottom = best_item_information(model.posterior_, asked, random_state=0)
    both = bald(model.posterior_, asked)
    assert top > 10.0 * bottom
    assert_allclose(both[0], both[1], rtol=0.05)
    assert_allclose(bald(model.posterior_, [[0, 1], [2, 3]]), both)


# -- what comes in ---------------------------------------------------------------------------


def test_the_exact_posterior_by_weighted_draws_of_the_prior():
    rng = np.random.default_rng(0)
    items = rng.uniform(-1.0, 1.0, (4, 1))
    pairs = np.array([[0, 1], [2, 1], [0, 3], [3, 2]])
    model = PairwisePreferenceRegressor(
        RBF(0.8), inference=HMC(draws=4000), noise_variance=0.1, optimizer=None, random_state=0
    )
    model.fit(items[pairs])
    draws = np.linalg.cholesky(RBF(0.8)(items) + 1e-9 * np.eye(4)) @ rng.standard_normal((4, 10**6))
    win = ndtr((draws[pairs[:, 0]] - draws[pairs[:, 1]]) / np.sqrt(0.2))
    weight = win.prod(axis=0) / win.prod(axis=0).sum()
    mean = win @ weight
    truth = entr(mean) + entr(1 - mean) - (entr(win) + entr(1 - win)) @ weight
    assert_allclose(bald(model.posterior_, items[pairs]), truth, atol=0.01)


@pytest.mark.parametrize("score", [bald, entropy, margin_variance, committee_disagreement])
def test_bad_arguments_are_errors(score):
    with pytest.raises(TypeError, match="query"):
        score(PairwisePreferenceRegressor(), DUELS)
    with pytest.raises(ValueError, match="all_pairs"):
        score(fitted(), DUELS[:, 0])


def test_bad_options_are_errors():
    with pytest.raises(ValueError, match="'closed_form'"):
        bald(fitted(), DUELS, method="exact")
    with pytest.raises(ValueError, match="shown first"):
        bald(fitted(), DUELS, order=2)
    with pytest.raises(ValueError, match="members"):
        committee_disagreement(fitted(), DUELS, members=1)
    with pytest.raises(TypeError, match="bald"):
        best_item_information(Known(PLAIN, [0.0], [1.0]), [[0, 1]])


def test_the_oracle_sums_to_one():
    for margin in (-3.0, 0.0, 0.2, 5.0):
        assert_allclose(sum(probabilities(margin, ORDER, -1)), 1.0, atol=1e-12)
