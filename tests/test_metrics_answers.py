"""Scores of duels with ties, of choices and of rankings."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from skpref.duels import DuelFrame, from_choices, from_rankings
from skpref.metrics import (
    accuracy_scorer,
    answer_accuracy,
    answer_brier,
    answer_log_loss,
    brier_scorer,
    log_loss_scorer,
    ranking_concordance,
    roc_auc_scorer,
)

RNG = np.random.default_rng(0)
THREE = RNG.dirichlet(np.ones(3), 150)
FOUR = RNG.dirichlet(np.ones(4), 150)
WEIGHT = RNG.uniform(size=150)
SIGNS = np.array([RNG.choice([-1, 0, 1], p=p) for p in THREE])
CHOSEN = np.array([RNG.choice(4, p=p) for p in FOUR])
DUELS = accuracy_scorer, log_loss_scorer, brier_scorer
choice_accuracy, choice_log_loss, choice_brier = (
    partial(score, kind="choice") for score in (answer_accuracy, answer_log_loss, answer_brier)
)


def truths(y, proba, labels, weight=None):
    """Accuracy, log loss and Brier score by scikit-learn, of at least three labels."""
    called = np.asarray(labels)[proba.argmax(axis=1)]
    brier = sum(  # scikit-learn takes several labels at once from 1.7 on
        brier_score_loss((y == label).astype(int), each, sample_weight=weight, pos_label=1)
        for label, each in zip(labels, proba.T, strict=True)
    )
    return (
        accuracy_score(y, called, sample_weight=weight),
        log_loss(y, proba, labels=labels, sample_weight=weight),
        brier,
    )


class Given:
    """An estimator that predicts what it was given."""

    def __init__(self, proba, classes):
        self.proba, self.classes_ = proba, np.array(classes)

    def predict_proba(self, X):
        return self.proba


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype", [int, float, object])
def test_scores_of_three_outcomes_are_those_of_scikit_learn(weight, dtype):
    found = [
        score(SIGNS.astype(dtype), THREE, sample_weight=weight)
        for score in (answer_accuracy, answer_log_loss, answer_brier)
    ]
    assert found == pytest.approx(truths(SIGNS, THREE, [-1, 0, 1], weight), rel=1e-12)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (-WEIGHT, "[Nn]egative"),
        (np.where(WEIGHT > 0.5, np.nan, WEIGHT), "NaN"),
        (np.zeros(150), "non-zero"),
        (WEIGHT[:3], r"shape == \(3,\)"),
        (WEIGHT[:, None], "1D"),
    ],
)
def test_weights_that_are_none_are_refused(weight, match):
    ranks = np.argsort(FOUR, axis=1) + 1
    for score, given in (
        (answer_accuracy, (SIGNS, THREE)),
        (answer_log_loss, (SIGNS, THREE)),
        (choice_brier, (CHOSEN, FOUR)),
        (ranking_concordance, (ranks, FOUR)),
    ):
        with pytest.raises(ValueError, match=match):
            score(*given, sample_weight=weight)
    with pytest.raises(ValueError, match=match):
        log_loss_scorer(Given(THREE, [-1, 0, 1]), np.zeros((150, 2, 1)), SIGNS, weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("ranked", [False, True])
def test_scores_of_choices_are_those_of_scikit_learn(weight, ranked):
    y = 1 + (np.arange(4) != CHOSEN[:, None]) if ranked else CHOSEN
    found = [
        score(y, FOUR, sample_weight=weight)
        for score in (choice_accuracy, choice_log_loss, choice_brier)
    ]
    assert found == pytest.approx(truths(CHOSEN, FOUR, range(4), weight), rel=1e-12)


@pytest.mark.parametrize("label", [-1, 0, 1])
def test_a_fold_of_one_label_keeps_its_meaning(label):
    y = np.full(150, label)
    found = [score(y, THREE) for score in (answer_accuracy, answer_log_loss, answer_brier)]
    assert found == pytest.approx(truths(y, THREE, [-1, 0, 1]), rel=1e-12)


def test_no_tie_expected_and_none_seen_is_the_case_of_two():
    p = THREE[:, 0]
    won = SIGNS == 1
    signs = np.where(won, 1, -1)
    without = np.column_stack([1 - p, 0 * p, p])
    assert answer_accuracy(signs, without) == answer_accuracy(won, p)
    assert answer_log_loss(signs, without) == answer_log_loss(won, p)
    assert answer_brier(signs, without) == pytest.approx(2 * answer_brier(won, p), rel=1e-12)
    pair = np.column_stack([p, 1 - p])
    for choice, duel in ((choice_accuracy, answer_accuracy), (choice_log_loss, answer_log_loss)):
        assert choice(np.where(won, 0, 1), pair) == duel(won, p)
    assert choice_brier(np.where(won, 0, 1), pair) == pytest.approx(answer_brier(won, p), rel=1e-12)
    ranks = np.column_stack([2 - won, 1 + won])
    assert answer_log_loss(ranks, p) == answer_log_loss(won, p)
    assert answer_log_loss(ranks, without) == answer_log_loss(signs, without)


def test_equally_likely_answers_share_the_call():
    assert answer_accuracy([1, 0, -1], np.full((3, 3), 1 / 3)) == pytest.approx(1 / 3)
    assert choice_accuracy([0, 1], [[0.4, 0.4, 0.2], [0.5, 0.0, 0.5]]) == 0.25
    assert answer_accuracy(None, [[0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]) == 0.5


# -- scorers -------------------------------------------------------------------------------


def forms_of_sets():
    yield np.zeros((150, 4, 2))
    yield np.zeros((150, 4), dtype=int)
    yield [["a", "b", "c", None]] * 150
    yield DuelFrame(np.zeros((5, 1)), np.tile(np.arange(4), (150, 1)))


def test_scorers_take_choices_where_x_holds_sets():
    expected = truths(CHOSEN, FOUR, range(4))
    # A model with ties has other classes than a set has items.
    for X in forms_of_sets():
        for classes in (range(4), [-1, 0, 1]):
            found = [scorer(Given(FOUR, classes), X, CHOSEN) for scorer in DUELS]
            assert found == pytest.approx([expected[0], -expected[1], -expected[2]], rel=1e-12)


def test_scorers_take_ties_where_x_holds_duels():
    expected = truths(SIGNS, THREE, [-1, 0, 1], WEIGHT)
    for X in (np.zeros((150, 2, 3)), [["a", "b"]] * 150, np.zeros((150, 2), dtype=int)):
        found = [
            scorer(Given(THREE, [-1, 0, 1]), X, SIGNS, sample_weight=WEIGHT) for scorer in DUELS
        ]
        assert found == pytest.approx([expected[0], -expected[1], -expected[2]], rel=1e-12)
    # Three columns of duels are no choices, whatever the labels.
    some = np.abs(SIGNS)
    found = log_loss_scorer(Given(THREE, [-1, 0, 1]), np.zeros((150, 2, 3)), some)
    assert found == pytest.approx(-log_loss(some, THREE, labels=[-1, 0, 1]))


def test_the_roc_curve_is_of_two_outcomes():
    X = np.zeros((150, 2, 1))
    match = "two outcomes; of more, such as ties, and for choices take log_loss_scorer"
    for estimator, given, y in (
        (Given(THREE, [-1, 0, 1]), X, SIGNS),
        (Given(THREE, [-1, 0, 1]), X, np.where(SIGNS == 1, 1, -1)),
        (Given(THREE[:, :2], [0, 1]), X, SIGNS),
        (Given(FOUR, range(4)), np.zeros((150, 4, 1)), CHOSEN),
    ):
        with pytest.raises(ValueError, match=match):
            roc_auc_scorer(estimator, given, y)
    assert 0 <= roc_auc_scorer(Given(THREE[:, :2], range(4)), X, np.abs(SIGNS)) <= 1


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([0, 1, 4], r"position 4 of a set of 4 items; allowed are \[0, 1"),
        ([0, -1, 2], r"position -1 of a set of 4"),
        ([0.5, 1, 2], r"integers in \[0, 3\]"),
        ([True, False, True], r"integers in \[0, 3\]"),
        ([0, 1], "inconsistent numbers of samples"),
        ([[1, 2, 2, 2]] * 2, r"must have shape \(3, 4\).*got \(2, 4\)"),
        ([[1, 2, 2, 2], [1, 1, 2, 2], [2, 1, 2, 2]], "Row 1 of y has 2 items of rank 1"),
        ([[1, 2, 2, 2], [2, 1, 2, 2], [0, 0, 0, 0]], "Row 2 of y has 0 items of rank 1"),
        ([[1, 2, 2, -1]] * 3, "whole numbers: 1 the best"),
        ([[1, 2, 2, 0.5]] * 3, "whole numbers"),
    ],
)
def test_choices_are_refused(y, match):
    for score in (choice_accuracy, choice_log_loss, choice_brier):
        with pytest.raises(ValueError, match=match):
            score(y, FOUR[:3])
    with pytest.raises(ValueError, match=r"give \(n_sets, k\)"):
        choice_accuracy([0, 0], [0.3, 0.7])
    with pytest.raises(ValueError, match="decision_function"):
        choice_accuracy([0], [[3.0, -1.0, 0.0]])


# -- rankings ------------------------------------------------------------------------------


def test_concordance_of_full_rankings_is_kendalls():
    utilities = RNG.normal(size=(20, 5))
    utilities[0, :2] = 0.3
    ranks = np.array([1 + RNG.permutation(5) for _ in range(20)])
    tau = [kendalltau(-r, u, variant="b").statistic for r, u in zip(ranks, utilities, strict=True)]
    tau[0] *= np.sqrt(9 / 10)  # tau-b forgives the tie
    assert ranking_concordance(ranks, utilities) == pytest.approx((1 + np.mean(tau)) / 2)
    weight = RNG.uniform(size=20)
    expected = (1 + np.average(tau, weights=weight)) / 2
    assert ranking_concordance(ranks, utilities, sample_weight=weight) == pytest.approx(expected)


def test_only_what_is_stated_counts():
    utilities = np.array([0.3, 0.1, 0.2, 0.9])
    X, ranks = from_rankings([[0, 2]], joint=True, shown=[[1, 0, 2]])
    assert ranking_concordance(ranks, utilities[X]) == 1.0  # 0 over 2, both over 1
    X, ranks = from_choices([[0, 1, 2, 3], [1, 2, 0]], [1, 2], worst=True)
    gaps = np.where(X < 0, np.nan, utilities[X])
    assert ranking_concordance(ranks, gaps) == pytest.approx(3 / 5)
    assert ranking_concordance([[1, 0, 2]], [[0.2, np.nan, 0.1]]) == 1.0


def test_concordance_of_nothing_is_nan():
    with pytest.warns(UndefinedMetricWarning, match="state nothing"):
        assert np.isnan(ranking_concordance([[1, 1, 0]], [[0.1, 0.2, 0.3]]))
    with pytest.raises(ValueError, match="must be finite"):
        ranking_concordance([[1, 2]], [[0.1, np.nan]])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        ranking_concordance([1, 2], [[0.1, 0.2]])
