"""Scores of duels and of rankings."""

import pickle
import time
import tracemalloc

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from skpref.metrics import (
    accuracy_scorer,
    answer_accuracy,
    answer_brier,
    answer_log_loss,
    brier_scorer,
    concordance,
    log_loss_scorer,
    roc_auc_scorer,
)


class DifferenceModel(RegressorMixin, BaseEstimator):
    """Logistic regression on differences of features, as a stand-in for an estimator."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.model_ = LogisticRegression(C=self.C, fit_intercept=False)
        self.model_.fit(X[:, 0] - X[:, 1], np.asarray(y) == 1)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, 0] - X[:, 1])


@pytest.fixture
def predicted():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    return (rng.uniform(size=200) < p).astype(int), p, rng.uniform(size=200)


# --- duels

LABELS = [lambda y: y, lambda y: 2 * y - 1, lambda y: y.astype(bool), lambda y: y.astype(float)]


@pytest.mark.parametrize("as_label", LABELS, ids=["01", "pm1", "bool", "float"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(predicted, as_label, columns, weighted):
    y, p, weight = predicted
    weight = weight if weighted else None
    proba = p if columns == 1 else np.column_stack([1 - p, p])
    for score, truth, given in (
        (answer_accuracy, accuracy_score, p > 0.5),
        (answer_log_loss, log_loss, p),
        (answer_brier, brier_score_loss, p),
    ):
        found = score(as_label(y), proba, sample_weight=weight)
        assert found == pytest.approx(truth(y, given, sample_weight=weight), rel=1e-12)


@pytest.mark.parametrize("score", [answer_accuracy, answer_log_loss, answer_brier])
def test_turning_duels_round_changes_no_score(predicted, score):
    y, p, _ = predicted
    p[:10] = 0.5
    turned = np.arange(200) % 3 == 0
    other = score(np.where(turned, 1 - y, y), np.where(turned, 1 - p, p))
    assert score(y, p) == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_alone_is_scored(outcome):
    y, p = np.full(3, outcome), np.array([0.9, 0.2, 0.7])
    assert answer_accuracy(y, p) == pytest.approx(accuracy_score(y, p > 0.5))
    assert answer_log_loss(y, p) == pytest.approx(log_loss(y, p, labels=[0, 1]))
    assert answer_brier(y, p) == pytest.approx(np.mean((y - p) ** 2))


def test_first_won_each_where_no_outcomes_come(predicted):
    _, p, _ = predicted
    assert answer_log_loss(None, p) == answer_log_loss(np.ones(200), p)


def test_certain_mistakes_cost_what_they_cost_in_scikit_learn():
    y, p = [1, 0, 1], [0.0, 1.0, 1.0]
    assert answer_log_loss(y, p) == pytest.approx(log_loss(y, p), rel=1e-12)


def test_small_probabilities_of_the_second_column_are_not_rounded_away():
    proba = np.array([[1e-12, 1.0]])
    assert answer_log_loss([0], proba) == pytest.approx(12 * np.log(10), rel=1e-12)


@pytest.mark.parametrize(
    "y, proba, match",
    [
        ([1, 2], [0.5, 0.5], r"Outcomes of duels must be in \{0, 1\}"),
        ([1, 0], [0.5, 1.5], "decision_function"),
        ([1, 0], [0.5, -0.1], r"lie in \[0, 1\]"),
        ([1, 0], [0.5, np.nan], "NaN"),
        ([1, 0], [0.5], "inconsistent numbers of samples"),
        ([1, 0], np.full((2, 1), 0.3), "predict_proba does.*for kind='choice'"),
        ([1, 0], np.full((2, 4), 0.3), r"labels must be in \[-2, -1, 1, 2\].*for kind='choice'"),
        (
            [1, 2],
            np.full((2, 3), 0.3),
            r"\[-1, 0, 1\] \(below 0: the second won, 0: a tie.*\[1, 2\]",
        ),
        ([True, False], np.full((2, 3), 0.3), r"labels must be in \[-1, 0, 1\].*True"),
    ],
)
@pytest.mark.parametrize("score", [answer_accuracy, answer_log_loss, answer_brier])
def test_scores_refuse(score, y, proba, match):
    with pytest.raises(ValueError, match=match):
        score(y, proba)


# --- scorers


@pytest.fixture
def duels():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2, 2))
    return X, (X[:, 0, 0] - X[:, 1, 0] + rng.normal(size=120) > 0).astype(int)


@pytest.mark.parametrize("as_label", LABELS, ids=["01", "pm1", "bool", "float"])
def test_scorers_score_the_first_column_of_winners(duels, as_label):
    X, y = duels
    model = DifferenceModel().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    expected = {
        accuracy_scorer: accuracy_score(y, p > 0.5),
        log_loss_scorer: -log_loss(y, p),
        brier_scorer: -brier_score_loss(y, p),
        roc_auc_scorer: roc_auc_score(y, p),
    }
    for scorer, value in expected.items():
        assert scorer(model, X, as_label(y)) == pytest.approx(value, rel=1e-12)
        assert pickle.loads(pickle.dumps(scorer)) is scorer


def test_scorers_drive_cross_validation_with_folds_of_one_class(duels):
    X, y = duels
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    folds = [(np.r_[0:20, 100:120], np.arange(40, 50)), (np.r_[20:40, 80:100], np.arange(105, 120))]
    scoring = {"a": accuracy_scorer, "l": log_loss_scorer, "b": brier_scorer}
    result = cross_validate(DifferenceModel(), X, y, cv=folds, scoring=scoring, error_score="raise")
    assert all(np.isfinite(result[f"test_{name}"]).all() for name in scoring)
    assert np.all(result["test_l"] < 0)
    auc = cross_val_score(DifferenceModel(), *duels, cv=3, scoring=roc_auc_scorer)
    assert np.all(auc > 0.6)


def test_scorers_drive_a_grid_search(duels):
    X, y = duels
    search = GridSearchCV(
        DifferenceModel(),
        {"C": [1e-8, 1.0]},
        scoring={"l": log_loss_scorer, "auc": roc_auc_scorer},
        refit="l",
    ).fit(X, y)
    assert search.best_params_ == {"C": 1.0}


def test_auc_ranks_by_the_margin_where_there_is_one(duels):
    """As scikit-learn's: the order of probabilities is another one where margins are unsure."""

    class Unsure(DifferenceModel):
        def decision_function(self, X):
            return self.model_.decision_function(X[:, 0] - X[:, 1]) * np.arange(len(X))

    X, y = duels
    model = Unsure().fit(X, y)
    expected = roc_auc_score(y, model.decision_function(X))
    assert roc_auc_scorer(model, X, y) == pytest.approx(expected, rel=1e-12)
    assert expected != pytest.approx(roc_auc_score(y, model.predict_proba(X)[:, 1]), rel=1e-6)


def test_auc_of_one_class_is_undefined(duels):
    X, y = duels
    model = DifferenceModel().fit(X, y)
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(roc_auc_scorer(model, X[y == 1], y[y == 1]))


# --- concordance


def brute(scores, ratings, qid, weight):
    """All pairs, one at a time."""
    right = total = 0.0
    for i in range(len(scores)):
        for j in range(i):
            if qid[i] == qid[j] and ratings[i] != ratings[j]:
                high, low = (i, j) if ratings[i] > ratings[j] else (j, i)
                total += weight[i] * weight[j]
                won = float(scores[high] > scores[low]) + 0.5 * (scores[high] == scores[low])
                right += weight[i] * weight[j] * won
    return right / total


@pytest.mark.parametrize("seed", range(6))
def test_concordance_counts_the_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60)) + 2
    scores, ratings = rng.integers(0, 2 + 7 * seed, (2, n)) / 3.0  # many ties, few ties
    ratings[:2] = 0.0, 1.0
    qid = rng.choice(["p", "q", "r"], n)
    qid[:2] = "p"
    weight = rng.uniform(size=n) + 0.01
    one = np.ones(n)
    assert concordance(scores, ratings) == pytest.approx(brute(scores, ratings, one, one))
    assert concordance(scores, ratings, qid) == pytest.approx(brute(scores, ratings, qid, one))
    assert concordance(scores, ratings, qid, sample_weight=weight) == pytest.approx(
        brute(scores, ratings, qid, weight)
    )


def test_concordance_without_ties_is_kendalls_tau():
    rng = np.random.default_rng(0)
    ratings = rng.normal(size=3000)
    scores = ratings + rng.normal(size=3000)
    tau = kendalltau(scores, ratings).statistic
    assert concordance(scores, ratings) == pytest.approx((1 + tau) / 2, rel=1e-12)


def test_concordance_of_two_classes_is_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    scores = np.round(y + rng.normal(size=500), 1)
    assert concordance(scores, y) == pytest.approx(roc_auc_score(y, scores), rel=1e-12)


def test_concordance_at_its_ends():
    ratings = np.random.default_rng(0).normal(size=101)
    assert concordance(np.exp(ratings), ratings) == 1.0
    assert concordance(-ratings, ratings) == 0.0
    assert concordance(np.zeros(101), ratings) == 0.5


def test_whole_weights_repeat_items():
    rng = np.random.default_rng(1)
    scores, ratings = rng.integers(0, 9, (2, 30))
    weight = rng.integers(0, 4, 30)
    repeated = concordance(np.repeat(scores, weight), np.repeat(ratings, weight))
    assert concordance(scores, ratings, sample_weight=weight) == pytest.approx(repeated)


def test_concordance_of_many_items_needs_little_time_and_memory():
    rng = np.random.default_rng(2)
    scores, ratings = rng.normal(size=(2, 20_000))
    tracemalloc.start()
    start = time.perf_counter()
    assert concordance(scores, ratings) == pytest.approx(0.5, abs=0.01)
    assert time.perf_counter() - start < 1.0
    assert tracemalloc.get_traced_memory()[1] < 20_000 * 8 * 40
    tracemalloc.stop()


@pytest.mark.parametrize(
    "kwargs",
    [
        {"ratings": [1.0, 1.0]},
        {"ratings": [1.0, 2.0], "qid": [0, 1]},
        {"ratings": [1.0, 2.0], "sample_weight": [1.0, 0.0]},
        {"ratings": [1.0, 2.0], "sample_weight": [0.0, 0.0]},
    ],
)
def test_concordance_without_pairs_is_undefined(kwargs):
    with pytest.warns(UndefinedMetricWarning, match="no two items of a group"):
        assert np.isnan(concordance([0.1, 0.2], **kwargs))


@pytest.mark.parametrize(
    "args, kwargs, match",
    [
        (([1.0, np.nan], [1.0, 2.0]), {}, "scores contains NaN"),
        (([1.0, 2.0], [1.0, np.inf]), {}, "ratings contains infinity"),
        (([1.0, 2.0], [1.0]), {}, "inconsistent numbers of samples"),
        (([1.0, 2.0], [1.0, 2.0], [0]), {}, "inconsistent numbers of samples"),
        (([1.0, 2.0], [1.0, 2.0]), {"sample_weight": [1.0, -1.0]}, "must not be negative"),
        (([1.0, 2.0], [1.0, 2.0]), {"sample_weight": [1.0]}, "inconsistent numbers of samples"),
    ],
)
def test_concordance_refuses(args, kwargs, match):
    with pytest.raises(ValueError, match=match):
        concordance(*args, **kwargs)
