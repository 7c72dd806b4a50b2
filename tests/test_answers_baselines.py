"""``benchmarks/learning/answers.py``: gradients, probabilities, scores, answers made."""

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.special import expit
from scipy.stats import logistic, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def from_benchmarks():
    folders = [str(BENCHMARKS), str(BENCHMARKS / "learning")]
    sys.path[:0] = folders
    yield
    for folder in folders:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def ties():
    import _tied_bradley_terry

    return _tied_bradley_terry


@pytest.fixture(scope="module")
def rankings_model():
    import _plackett_luce

    return _plackett_luce


def make_matches(ties, n=60, n_items=6, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    return ties.Matches(pairs, rng.integers(-1, 2, n), rng.integers(-1, 2, n))


@pytest.mark.parametrize("link", ["davidson", "rao-kupper", "probit"])
@pytest.mark.parametrize("log_threshold", [-4.0, 0.3, 2.0])
def test_gradient_of_ties(ties, link, log_threshold):
    objective = ties.Objective(link, make_matches(ties), 6, ridge=0.7)
    theta = np.r_[np.random.default_rng(1).normal(0.0, 1.5, 6), 0.4, log_threshold]
    value, gradient = objective(theta)
    slopes = central_gradient(lambda point: objective(point)[0], theta)
    assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7 * abs(value))


@pytest.mark.parametrize("link", ["davidson", "rao-kupper", "probit"])
def test_outcomes_of_ties(ties, link):
    rng = np.random.default_rng(2)
    theta = np.r_[rng.normal(0.0, 3.0, 5), 0.6, -0.2]
    pairs = np.array([[a, b] for a in range(5) for b in range(5) if a != b])
    order = rng.integers(-1, 2, len(pairs))
    proba = ties.predict(link, theta, pairs, order)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    turned = ties.predict(link, theta, pairs[:, ::-1], -order)
    assert_allclose(turned, proba[:, ::-1], rtol=1e-9)
    margin, t = theta[pairs[:, 0]] - theta[pairs[:, 1]] + 0.6 * order, np.exp(-0.2)
    if link == "davidson":
        # Davidson's definition: the tie goes with the geometric mean of the two strengths.
        assert_allclose(proba[:, 1], t * np.sqrt(proba[:, 0] * proba[:, 2]), rtol=1e-9)
        assert_allclose(proba[:, 2] / (proba[:, 0] + proba[:, 2]), expit(margin), rtol=1e-9)
    else:
        law = norm if link == "probit" else logistic
        assert_allclose(proba[:, 2], law.sf(t - margin), rtol=1e-9)
        assert_allclose(proba[:, 1], law.cdf(t - margin) - law.cdf(-t - margin), atol=1e-15)


def test_tail_of_a_probit_tie(ties):
    _, tie = ties.LINKS["probit"](np.array([40.0, -40.0]), -1.0)
    t = np.exp(-1.0)
    # Nearly all of the slab's mass is at its nearer edge.
    assert_allclose(tie.value, norm.logsf(40.0 - t), atol=1e-9)


def test_davidson_without_ties_is_logistic_regression(ties):
    matches = make_matches(ties, n=300)
    decided = matches.take(matches.y != 0)
    theta = ties.fit("davidson", decided, 6, ridge=2.0)
    A = ties.incidence(decided.pairs, 6).toarray()
    # The order effect is a coefficient without penalty: a column of large values.
    X = np.column_stack([A, 1e3 * decided.order])
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    coefficients = model.fit(X, decided.y).coef_[0]
    assert_allclose(theta[:6], coefficients[:6], atol=1e-4)
    assert_allclose(theta[6], 1e3 * coefficients[6], atol=1e-4)


def test_ridge_is_chosen_by_the_held_out_part(ties):
    matches = make_matches(ties, n=400)  # outcomes by chance: strengths are worth nothing
    rows = np.arange(400)
    theta, ridge = ties.fit_by_validation("probit", matches, 6, [(rows[:300], rows[300:])])
    assert ridge >= 10.0
    assert np.abs(theta[:6]).max() < 0.3


def test_gradient_of_rankings(rankings_model):
    rng = np.random.default_rng(0)
    rankings = rng.permuted(np.tile(np.arange(7), (30, 1)), axis=1)[:, :5]
    objective = rankings_model.Objective(rankings, 7, ridge=0.4)
    strengths = rng.normal(0.0, 1.0, 7)
    slopes = central_gradient(lambda point: objective(point)[0], strengths)
    assert_allclose(objective(strengths)[1], slopes, rtol=1e-7)


def test_likelihood_of_rankings_sums_to_one(rankings_model):
    strengths = np.array([0.3, -1.0, 2.0, 0.1])
    each = [
        rankings_model.Objective(np.array([order]), 4, 0.0)(strengths)[0]
        for order in permutations(range(4))
    ]
    assert_allclose(np.exp(-np.array(each)).sum(), 1.0, rtol=1e-12)
    first = [np.exp(-each[k]) for k, order in enumerate(permutations(range(4))) if order[0] == 2]
    choice = rankings_model.choice_proba(strengths, np.array([[0, 1, 2, 3]]))
    assert_allclose(choice[0, 2], sum(first), rtol=1e-12)


def test_rankings_taken_jointly_and_broken_say_the_same(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the script sets these two
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    import answers

    rng = np.random.default_rng(3)
    rankings = rng.permuted(np.tile(np.arange(20), (8, 1)), axis=1)[:, :6]
    X, ranks = answers.joint(rankings)
    for shown, rank, ranking in zip(X, ranks, rankings, strict=True):
        assert shown[np.argsort(rank)].tolist() == ranking.tolist()
    for adjacent, n in ((False, 15), (True, 5)):
        pairs, y = answers.broken(rankings, adjacent)
        assert len(y) == 8 * n
        for k, ((first, second), won) in enumerate(zip(pairs.tolist(), y, strict=True)):
            place = rankings[k // n].tolist().index
            assert (place(first) < place(second)) == won
            assert not adjacent or abs(place(first) - place(second)) == 1


def test_scores_against_scikit_learn():
    import _answers_scores as scoring

    rng = np.random.default_rng(4)
    proba = rng.dirichlet([2.0, 1.0, 1.0], 4000)
    true = np.array([rng.choice(3, p=row) for row in proba])
    found = scoring.scores(true, proba)
    assert_allclose(found["log-loss"], log_loss(true, proba))
    brier = sum(brier_score_loss(true == k, proba[:, k]) for k in range(3))
    assert_allclose(found["brier"], brier)
    assert_allclose(found["accuracy"], accuracy_score(true, proba.argmax(axis=1)))
    assert abs(found["slope"] - 1.0) < 0.05  # drawn from the very probabilities
    # Cubed, the probabilities are too sure, and a third takes that back.
    sharp = proba**3 / np.sum(proba**3, axis=1, keepdims=True)
    assert_allclose(scoring.slope(true, sharp), found["slope"] / 3.0, rtol=1e-3)
    assert scoring.scores(true, sharp)["ece"] > 5.0 * found["ece"]
    halves = [scoring.reliability(true[a::2], proba[a::2]) for a in (0, 1)]
    assert scoring.pooled(halves) == scoring.pooled([scoring.reliability(true, proba)])
    assert sum(row["n"] for row in scoring.pooled(halves)) == 4000


@pytest.mark.parametrize("method", ["davidson", "rao-kupper", "probit", "multinomial", "shares"])
def test_methods_find_strengths_ties_and_home_advantage(ties, method):
    import _answers_sets
    import answers

    rng = np.random.default_rng(5)
    theta = np.r_[np.linspace(-1.5, 1.5, 8), 0.8, -0.5]
    pairs = np.array([rng.choice(8, 2, replace=False) for _ in range(3000)])
    order = rng.integers(-1, 2, 3000)
    proba = ties.predict("rao-kupper", theta, pairs, order)
    y = np.array([rng.choice(3, p=row) for row in proba]) - 1
    every, rows = ties.Matches(pairs, order, y), np.arange(3000)
    inner = [(rows[:1500], rows[1500:2000])]
    split = _answers_sets.TiedSplit(
        list("abcdefgh"), every.take(rows[:2000]), every.take(rows[2000:]), inner
    )
    found, _ = answers.outcome_proba(split, method)
    assert_allclose(found.sum(axis=1), 1.0)
    excess = ties.log_loss(y[2000:], found) - ties.log_loss(y[2000:], proba[2000:])
    assert excess > 0.15 if method == "shares" else abs(excess) < 0.02
    for place in (-1, 0, 1):
        home = order[2000:] == place
        assert_allclose(found[home].mean(axis=0), proba[2000:][home].mean(axis=0), atol=0.05)
