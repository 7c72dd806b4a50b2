"""Readings of few judges: compared with quadrature, with importance sampling, and by symmetry."""

import itertools
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.gp import Posterior, PosteriorMixture
from skpref.inference import HMC

HELD = JudgePrior(variance_bounds="fixed")
SHARES, VARIANCE = np.array([0.85, 0.05, 0.1]), 0.1
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
TRIPLE = [["a", "b"], ["b", "c"], ["a", "c"]]


def fitted(X, y, judges, **options):
    options = {"noise_variance": 0.1, "judge_prior": HELD, "optimizer": None} | options
    return PairwisePreferenceRegressor(**options).fit(X, y, judges=judges)


def log_answers(seen, y, noise, tie, order):
    """Log-probabilities of labels −1, 0, 1 of what judges see of a margin."""
    seen, scale = seen + order, np.sqrt(2.0 * noise)
    won, lost = norm.cdf((seen - tie) / scale), norm.cdf((-seen - tie) / scale)
    between = np.maximum(1.0 - won - lost, 1e-300)
    return np.log(np.maximum(np.select([y > 0, y < 0], [won, lost], between), 1e-300))


class Quadrature:
    """Two items, and judges who answer about them: all integrals on grids."""

    def __init__(self, answers, noise, tie=0.0, order=0.0):
        self.z = np.linspace(-8.0, 8.0, 1601)  # the difference of two utilities of variance 1
        reliable = np.exp(np.sqrt(VARIANCE) * NODES)
        points = {0: (reliable, WEIGHTS), 1: (-reliable, WEIGHTS), 2: (np.zeros(1), np.ones(1))}
        self.win = np.exp(log_answers(self.z, 1, noise, tie, order))
        by_judge = []
        for labels in answers:
            row = []
            for kind in range(3):
                r, w = points[kind]
                margin = r[:, None] * self.z
                each = sum(log_answers(margin, y, noise, tie, order) for y in labels)
                row.append(SHARES[kind] * w @ np.exp(each))
            by_judge.append(row)
        prior = norm.pdf(self.z, scale=np.sqrt(2.0))
        self.joint = {
            kinds: prior * np.prod([by_judge[j][k] for j, k in enumerate(kinds)], axis=0)
            for kinds in itertools.product(range(3), repeat=len(answers))
        }
        self.total = sum(each.sum() for each in self.joint.values())

    def kind(self, judge, kind):
        chosen = [each.sum() for kinds, each in self.joint.items() if kinds[judge] == kind]
        return sum(chosen) / self.total

    def expected(self, values):
        return sum((each * values).sum() for each in self.joint.values()) / self.total


@pytest.mark.parametrize(
    "answers, tie, order",
    [
        (((1, 1, 1),), 0.0, 0.0),
        (((1,) * 6, (-1,) * 3), 0.0, 0.0),
        (((1, 1, 0), (-1, -1, -1)), 0.3, 0.0),
        (((1, -1, 1, 1), (-1,) * 4, (1, 1)), 0.2, 0.4),
    ],
)
def test_readings_of_two_items_are_those_of_quadrature(answers, tie, order):
    exact = Quadrature(answers, 0.3, tie, order)
    judge = np.repeat(np.arange(len(answers)), [len(each) for each in answers])
    y = np.concatenate(answers)
    options = {"tie_threshold": tie} if tie else {}
    if len(answers) == 1:  # of a single judge the utility's skewness, which EP lacks, is as large
        options["inference"] = HMC(draws=4000)
    if order:
        prior = JudgePrior(variance_bounds="fixed", order_variance=0.0)
        options |= {"order_effect": order, "judge_prior": prior}
    model = fitted([["a", "b"]] * len(y), y, judge, noise_variance=0.3, **options)
    judges = model.judges_
    for kind, found in ((1, judges.probability_adversarial), (2, judges.probability_random)):
        assert_allclose(found, [exact.kind(j, kind) for j in range(len(answers))], atol=0.012)
    better = model.posterior_.win_probability(["a"], ["b"], noise=False)[0]
    assert better == pytest.approx(exact.expected(exact.z > 0.0), abs=0.012)
    won = model.predict_proba([["a", "b"]])[0, -1]
    assert won == pytest.approx(exact.expected(exact.win), abs=0.012)
    mean, deviation = model.predict([["a", "b"]], return_std=True)
    centre = exact.expected(exact.z)
    assert mean[0] == pytest.approx(centre, abs=0.03)
    spread = np.sqrt(exact.expected((exact.z - centre) ** 2))
    # What is not known of reliability within a kind is averaged over afterwards.
    assert deviation[0] == pytest.approx(spread, rel=0.06)


def sampled(X, y, judge, noise, n_judges, n=400_000):
    """Importance sampling from the prior: kinds of judges, and the better one of a and c."""
    rng = np.random.default_rng(0)
    utility = dict(zip("abc", rng.normal(size=(3, n)), strict=True))
    kind = rng.choice(3, p=SHARES, size=(n_judges, n))
    size = np.exp(np.sqrt(VARIANCE) * rng.normal(size=(n_judges, n)))
    reliability = np.select([kind == 0, kind == 1], [size, -size], 0.0)
    log_weight = np.zeros(n)
    answers = Counter((*pair, won, j) for pair, won, j in zip(X, y, judge, strict=True))
    for (a, b, won, j), count in answers.items():
        seen = reliability[j] * (utility[a] - utility[b])
        log_weight += count * log_ndtr((2 * won - 1) * seen / np.sqrt(2.0 * noise))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1.0 / np.sum(weight**2) > 2000
    says = ndtr(reliability * (utility["a"] - utility["c"]) / np.sqrt(2.0 * noise))
    return (kind == 1) @ weight, weight @ (utility["a"] > utility["c"]), says @ weight


@cache
def few_answers(counts):
    """Answers of judges who count so many, the wrong way round if negative, and the truth."""
    X, y, judge = [], [], []
    for j, count in enumerate(counts):
        X += [TRIPLE[k % 3] for k in range(abs(count))]
        y, judge = y + [int(count > 0)] * abs(count), judge + [j] * abs(count)
    return X, y, judge, sampled(X, y, judge, 0.1, len(counts))


@pytest.mark.parametrize("engine", ["ep", "laplace", "svi", HMC(draws=1000)])
@pytest.mark.parametrize("counts", [(6, -3), (3, 3, -3)])
def test_few_judges_are_as_importance_sampling_has_them(engine, counts):
    X, y, judge, (adversarial, better, says) = few_answers(counts)
    model = fitted(X, y, judge, inference=engine, random_state=0)
    atol = 0.05 if engine == "laplace" else 0.02
    assert_allclose(model.judges_.probability_adversarial, adversarial, atol=atol)
    found = model.posterior_.win_probability(["a"], ["c"], noise=False)[0]
    assert found == pytest.approx(better, abs=atol)
    pairs = [["a", "c"]] * len(counts)
    found = model.predict_proba(pairs, judges=np.arange(len(counts)))[:, 1]
    assert_allclose(found, says, atol=atol)


@pytest.mark.parametrize("order", [("A", "B"), ("B", "A")])
def test_judges_who_contradict_each_other_throughout_are_mirror_images(order):
    names = np.array(list("abcdef"))
    pairs = np.array(list(itertools.combinations(range(6), 2)) * 3)
    X, y = np.concatenate([names[pairs]] * 2), np.repeat([1, 0], len(pairs))
    model = fitted(X, y, np.repeat(order, len(pairs)))
    adversarial = model.judges_.probability_adversarial
    assert_allclose(adversarial[0], adversarial[1], atol=1e-3)
    assert 0.98 < adversarial.sum() < 1.004
    assert_allclose(model.predict(names), 0.0, atol=1e-2)
    assert model.predict_proba([["a", "f"]], judges=[order[0]])[0, 1] > 0.97
    assert model.predict_proba([["a", "f"]], judges=[order[1]])[0, 1] < 0.03


@pytest.mark.parametrize("seed", [0, 1])
def test_nobody_knows_which_of_two_judges_has_the_question_the_wrong_way_round(seed):
    rng = np.random.default_rng(seed)
    names, truth = np.array(list("abcdef")), rng.normal(size=6)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(60)])
    judge = np.repeat(["A", "B"], [25, 35])
    margin = np.where(judge == "A", 1.0, -1.0) * (truth[pairs[:, 0]] - truth[pairs[:, 1]])
    y = (margin + 0.3 * rng.normal(size=60) > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PairwisePreferenceRegressor().fit(names[pairs], y, judges=judge)
    assert_allclose(model.judges_.probability_adversarial, 0.5, atol=0.02)
    best, worst = [names[truth.argmax()]], [names[truth.argmin()]]
    assert model.posterior_.win_probability(best, worst)[0] == pytest.approx(0.5, abs=0.02)
    alone = PairwisePreferenceRegressor().fit(names[pairs[:25]], y[:25])
    assert 0.1 < model.noise_variance_ / alone.noise_variance_ < 10.0


def panel(reliability, n_each, seed=0, n_items=12):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    names = np.array([f"item {k}" for k in range(n_items)])
    judge = np.repeat(np.arange(len(reliability)), n_each)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in judge])
    margin = np.asarray(reliability)[judge] * (truth[pairs[:, 0]] - truth[pairs[:, 1]])
    y = (margin + 0.6 * rng.normal(size=len(judge)) > 0.0).astype(int)
    return names[pairs], y, judge, names, truth


def test_two_blocks_of_many_judges_that_contradict_each_other_are_two_readings():
    X, y, judge, names, truth = panel([1.0] * 12 + [-1.0] * 12, 40)
    model = PairwisePreferenceRegressor().fit(X, y, judges=judge)
    judges = model.judges_
    assert_allclose(judges.weights[:2], 0.5, atol=0.02)
    assert_allclose(judges.probability_adversarial, 0.5, atol=0.02)
    first = model.posterior_.posteriors[0].mean(names)
    second = model.posterior_.posteriors[1].mean(names)
    assert_allclose(first, -second, atol=1e-2)
    assert abs(np.corrcoef(first, truth)[0, 1]) > 0.9
    assert_allclose(model.predict(names), 0.0, atol=0.1)


TURNS = [["a", "b"], ["b", "c"], ["a", "c"]]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("n_each", [6, 20])
def test_blocks_of_judges_with_few_answers_are_two_readings_whatever_the_order(n_each, backwards):
    rows = [(pair, 1, f"A{k}") for k in range(n_each) for pair in TURNS]
    rows += [(pair, 0, f"B{k}") for k in range(n_each) for pair in TURNS]
    X, y, judge = zip(*rows[::-1] if backwards else rows, strict=True)
    model = fitted(X, y, judge)
    assert model.posterior_.win_probability(["a"], ["c"])[0] == pytest.approx(0.5, abs=0.02)
    adversarial = model.judges_.probability_adversarial
    assert_allclose(adversarial, adversarial[0], atol=0.02)


def test_judges_of_few_answers_decide_items_of_their_own():
    """Against importance sampling: A answers most, but B and C alone tell c from d."""
    rows = [(["a", "b"], 1, "A")] * 40 + [(["b", "c"], 1, "A")] * 5
    rows += [(["c", "d"], 1, "B")] * 4 + [(["d", "c"], 1, "C")] * 4
    X, y, judge = zip(*rows, strict=True)
    model = fitted(X, y, judge)
    assert_allclose(model.judges_.probability_adversarial, [0.056, 0.743, 0.126], atol=0.02)
    better = model.posterior_.win_probability(["c"], ["d"], noise=False)[0]
    assert better == pytest.approx(0.150, abs=0.02)


def test_a_clear_majority_leaves_one_reading():
    X, y, judge, *_ = panel([1.0] * 8 + [0.0, -1.0], 60)
    model = PairwisePreferenceRegressor().fit(X, y, judges=judge)
    assert_allclose(model.judges_.weights, 1.0)
    assert len(model.judges_.weights) == 1
    assert type(model.posterior_) is Posterior


def test_the_prior_weighs_a_mirror_image_by_the_judges_who_turn_round():
    """Three certain judges of whom one contradicts: odds of the image .05 / .85 to one judge."""
    X, y, judge, *_ = panel([1.0, 1.0, -1.0], 60, n_items=6)
    model = fitted(X, y, judge, noise_variance=0.2)
    odds = SHARES[1] / SHARES[0]
    assert_allclose(model.judges_.weights[1] / model.judges_.weights[0], odds, rtol=0.02)
    none = JudgePrior(variance_bounds="fixed", adversarial=0.0)
    model = fitted(X, y, judge, noise_variance=0.2, judge_prior=none)
    assert_allclose(model.judges_.probability_adversarial, 0.0, atol=1e-12)


def test_a_mixture_has_the_judges_own_order_effects():
    rng = np.random.default_rng(0)
    X = np.repeat([["a", "b"], ["b", "c"], ["a", "c"]], 20, axis=0)
    order, judge = rng.choice([1, -1], 60), rng.choice(2, 60)
    y = (np.where(judge == 0, 1.0, -1.0) + order + 0.5 * rng.normal(size=60) > 0).astype(int)
    prior = JudgePrior(variance_bounds="fixed", order_variance=0.5)
    model = PairwisePreferenceRegressor(noise_variance=0.1, judge_prior=prior, optimizer=None)
    model.fit(X, y, judges=judge, order=order)
    assert isinstance(model.posterior_, PosteriorMixture)
    assert np.all(model.judges_.order_effect > 0.2)
    low, high = model.judges_.order_effect_interval().T
    assert np.all((low < model.judges_.order_effect) & (model.judges_.order_effect < high))
