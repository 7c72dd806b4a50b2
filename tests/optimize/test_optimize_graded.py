"""Graded answers told to optimisers: what they mean, and that journals keep them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC
from skpref.optimize import ActiveLearner, HallucinationBelieverOptimizer, PreferenceOptimizer

GRADED = {"grade_thresholds": (0.3, 0.8), "random_state": 0}


class Waves2(DotProduct):
    """That of two features alone."""

    def diag(self, X):
        return 1.0 + super().diag(X @ np.eye(2))


def taste(x):
    return -((4.0 * (x[0] - 0.3)) ** 2)


def grade(duel):
    """By how much the first item is better, -3 to 3 without 0."""
    margin = taste(duel[0]) - taste(duel[1])
    return int((1 if margin > 0 else -1) * (1 + np.searchsorted([0.3, 0.8], abs(margin))))


def told(optimizer, n=10):
    for _ in range(n):
        duel = optimizer.ask()
        optimizer.tell(duel, grade(duel))
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["ep", "laplace", "hmc", "hallucination", "kriging_believer"])
def test_what_is_told_is_what_a_regressor_learns_from(inference):
    engine = HMC(draws=60, chains=20) if inference == "hmc" else inference
    optimizer = told(PreferenceOptimizer([[0.0, 1.0]], inference=engine, **GRADED))
    outcomes = [each.outcome for each in optimizer.history_]
    assert set(outcomes) <= {0, 1, 2, -2, 3, -3} and max(map(abs, outcomes)) > 1
    likelihood = optimizer.posterior_.likelihood
    assert likelihood.duel_scale.labels.tolist() == [-3, -2, -1, 1, 2, 3]
    assert abs(optimizer.recommend()[0] - 0.3) < 0.2
    if inference == "ep":
        posterior = optimizer.posterior_
        same = PairwisePreferenceRegressor(
            posterior.kernel, likelihood=likelihood, inference="ep", optimizer=None
        )
        X = np.array([each.items for each in optimizer.history_])
        same.fit(X, [outcome or -1 for outcome in outcomes])
        grid = np.linspace(0.0, 1.0, 5)[:, None]
        assert_allclose(posterior.mean(grid), same.predict(grid), atol=1e-5)


def test_slight_wins_alone_bound_the_margin_from_above():
    """Told as many clear wins, the difference is larger."""
    means = []
    for outcome in (1, 3):
        held = {"grade_threshold_bounds": "fixed", "noise_variance_bounds": "fixed"}
        optimizer = PreferenceOptimizer([[0.0, 1.0]], inference="ep", **held, **GRADED)
        for _ in range(3):
            optimizer.tell([[0.2], [0.8]], outcome)
        at = optimizer.posterior_
        means.append(float(np.diff(at.mean(np.array([[0.8], [0.2]])))[0]))
        assert at.likelihood.duel_scale.levels == 3
    assert 0.0 < means[0] < 0.3 and means[1] > 0.8


def test_ties_and_sets_go_beside_grades():
    optimizer = told(PreferenceOptimizer([[0.0, 1.0]], inference="ep", **GRADED), 4)
    assert optimizer.posterior_.likelihood.tie_threshold is None
    optimizer.tell([[0.2], [0.4]], "tie").tell([[0.1], [0.5], [0.9]], chosen=0)
    optimizer.tell([[0.7], [0.3], [0.9]], ranking=[1, 0])
    likelihood = optimizer.posterior_.likelihood
    assert 0.0 < likelihood.tie_threshold < likelihood.grade_thresholds[0]
    assert likelihood.duel_scale.labels.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert optimizer.ask() is not None


def test_a_journal_takes_a_graded_run_up_again(tmp_path):
    path = tmp_path / "run.db"
    first = told(HallucinationBelieverOptimizer([[0.0, 1.0]], journal=path, **GRADED), 6)
    again = HallucinationBelieverOptimizer([[0.0, 1.0]], journal=path, **GRADED)
    assert [each.outcome for each in again.history_] == [each.outcome for each in first.history_]
    assert_array_equal(again.ask(), first.ask())
    with pytest.raises(ValueError, match=r"another configuration .*grade_thresholds"):
        HallucinationBelieverOptimizer([[0.0, 1.0]], journal=path, random_state=0)


def test_a_learner_tells_grades():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(12, 1))
    model = PairwisePreferenceRegressor(
        RBF(0.3), inference="ep", grade_thresholds=(0.3, 0.8), tie_threshold=0.1, optimizer=None
    )
    learner = ActiveLearner(model, X, strategy="entropy", n_initial=3, random_state=0)
    for k in range(6):
        duel = learner.ask()
        learner.tell(duel, "tie" if k == 4 else grade(duel))
    assert learner.estimator_.classes_.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    with pytest.raises(ValueError, match="in ±1 to ±3, got 4"):
        learner.tell(learner.ask(), 4)


@pytest.mark.parametrize(
    ("given", "outcome", "match"),
    [
        ({}, 2, r"must be in \{1, 0\}, got 2.*give grade_thresholds"),
        (GRADED, -4, "in ±1 to ±3, got -4"),
        (GRADED, 1.5, "Outcomes of duels must be in"),
        (GRADED, np.nan, "Outcomes of duels must be in"),
    ],
)
def test_other_outcomes_are_refused(given, outcome, match):
    optimizer = PreferenceOptimizer([[0.0, 1.0]], **given)
    duel = optimizer.ask()
    with pytest.raises(ValueError, match=match):
        optimizer.tell(duel, outcome)
    assert optimizer.n_told_ == 0


def test_a_learner_is_told_ties_and_wins_of_the_first_alone():
    """A win told from the other side is the same answer."""
    found = []
    for turned in (False, True):
        model = PairwisePreferenceRegressor(
            RBF(0.3), tie_threshold=0.1, grade_thresholds=(0.5,), optimizer=None
        )
        learner = ActiveLearner(model, np.linspace(0.0, 1.0, 5)[:, None], random_state=0)
        learner.tell([[0.0], [0.5]], "tie")
        with pytest.raises(NotFittedError, match=r"all of them ties.*until an item wins"):
            learner.recommend()
        learner.tell(*([[[0.25], [1.0]], -2] if turned else [[[1.0], [0.25]], 2]))
        found.append(learner.estimator_.predict([[0.0], [0.25], [1.0]]))
    assert_allclose(*found, atol=1e-8)
    assert found[0][2] > found[0][1]


def test_a_kernel_of_so_many_features_is_asked_of_no_others():
    kernel = Waves2() * RBF(0.5)
    optimizer = PreferenceOptimizer([[0.0, 1.0]] * 2, kernel=kernel, inference="ep", **GRADED)
    optimizer.tell([[0.2, 0.1], [0.4, 0.9]], 2).tell([[0.1, 0.3], [0.5, 0.5], [1, 1]], chosen=0)
    assert optimizer.ask().shape == (2, 2)
