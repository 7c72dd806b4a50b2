"""Scores of groups of answers: those of each group's answers alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref.metrics import answer_accuracy, answer_brier, answer_log_loss, score_by_group

RNG = np.random.default_rng(0)
N = 60
GROUPS = RNG.integers(3, size=N)
WEIGHT = RNG.uniform(0.5, 2.0, N)
PROBA = RNG.dirichlet(np.ones(3), N)
ANSWERS = {
    "duel": (RNG.integers(2, size=N), PROBA[:, 0], "duel"),
    "first won": (None, PROBA[:, 0], "duel"),
    "tie": (RNG.integers(-1, 2, size=N), PROBA, "duel"),
    "choice": (RNG.integers(3, size=N), PROBA, "choice"),
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("metric", [answer_log_loss, answer_accuracy, answer_brier])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
def test_scores_are_those_of_each_group_alone(kind, metric, weight):
    y, proba, what = ANSWERS[kind]
    told = {"kind": what, "sample_weight": weight}
    found = score_by_group(y, proba, GROUPS, metric=metric, **told)
    assert found.groups.tolist() == [0, 1, 2]
    for group in range(3):
        rows = group == GROUPS
        alone = metric(
            None if y is None else y[rows],
            proba[rows],
            kind=what,
            sample_weight=None if weight is None else weight[rows],
        )
        assert_allclose(found.score[group], alone)
    share = np.bincount(GROUPS, weight)
    whole = metric(y, proba, **told)
    assert_allclose(np.average(found.score, weights=share), whole)


def test_years_of_dates():
    date = np.array(["2024-05-01", "2023-01-02", "2024-12-31"], dtype="datetime64[D]")
    found = score_by_group([1, 0, 1], [0.5, 0.5, 0.5], date.astype("datetime64[Y]"))
    assert found.groups.astype(str).tolist() == ["2023", "2024"]
    assert found.size.tolist() == [1, 2]
    assert_allclose(found.score, np.log(2.0))


@pytest.mark.parametrize(
    "groups, words",
    [
        ([1, 2], "each of the 3 answers"),
        ([1.0, np.nan, 2.0], "missing values"),
        (np.array(["2024", "NaT", "2023"], dtype="datetime64[Y]"), "missing values"),
        (np.array([1, "a", None], dtype=object), "several kinds"),
    ],
)
def test_groups_that_are_none(groups, words):
    with pytest.raises(ValueError, match=words):
        score_by_group([1, 0, 1], [0.5, 0.5, 0.5], groups)


def test_a_wrong_answer_is_refused_whatever_its_group():
    with pytest.raises(ValueError):
        score_by_group([1, 0, 7], [0.5, 0.5, 0.5], [0, 0, 1])
