"""group_residuals: by hand, under predictions that are right, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, entropy, norm

from skpref.inspection import group_residuals


def test_shares_and_losses_are_those_of_each_group():
    y = np.array([1, 0, 1, 1, 0])
    p = np.array([0.9, 0.6, 0.5, 0.7, 0.2])
    groups = np.array(["b", "a", "b", "a", "b"])
    found = group_residuals(y, p, groups, level=0.8)
    assert found.groups.tolist() == ["a", "b"] and found.size.tolist() == [2, 3]
    assert found.outcomes == ["second wins", "first wins"]
    for k, rows in enumerate(([1, 3], [0, 2, 4])):
        here, told = p[rows], y[rows]
        assert_allclose(found.observed[k, 1], told.mean())
        assert_allclose(found.residual[k, 1], told.mean() - here.mean())
        assert_allclose(found.residual[k].sum(), 0.0, atol=1e-15)
        deviation = np.sqrt(np.sum(here * (1.0 - here))) / len(rows)
        assert_allclose(found.band[k], norm.ppf(0.9) * deviation)
        both = np.stack([1.0 - here, here])
        loss = -np.log(both[told, np.arange(len(rows))])
        assert_allclose(found.log_loss[k], loss.mean())
        assert_allclose(found.expected_loss[k], entropy(both).mean())
        assert_allclose(found.surprise[k], loss.mean() - entropy(both).mean())
        variance = (both * np.log(both) ** 2).sum(axis=0) - entropy(both) ** 2
        band = norm.ppf(0.9) * np.sqrt(variance.sum()) / len(rows)
        assert_allclose(found.surprise_band[k], band)


@pytest.mark.parametrize("outcomes", [2, 3, 5])
def test_right_predictions_stay_within_the_bands_so_often(outcomes):
    """Shares of 500 groups within the bands, within what a binomial allows; the sure go beyond."""
    rng = np.random.default_rng(outcomes)
    n_groups, n = 500, 80
    p = rng.dirichlet(np.full(outcomes, 1.5), size=n_groups * n)
    column = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
    groups, labels = np.repeat(np.arange(n_groups), n), np.arange(outcomes) - outcomes // 2
    classes = {2: [0, 1], 3: [-1, 0, 1]}.get(outcomes, labels)
    y = np.asarray(classes)[column]
    found = group_residuals(y, p, groups, classes=classes)
    low, high = binom(n_groups, 0.9).ppf([1e-4, 1.0 - 1e-4])
    assert np.all(np.abs(found.surprise_band) > 0.0)
    within = np.sum(np.abs(found.surprise) < found.surprise_band)
    assert low - 10 <= within <= high + 5  # a normal is nearly right for 80 answers
    within = np.sum(np.abs(found.residual) < found.band, axis=0)
    assert np.all(within >= low - 10) and np.all(within <= high + 5)
    sure = p**3 / np.sum(p**3, axis=1, keepdims=True)
    assert np.mean(group_residuals(y, sure, groups, classes=classes).surprise > 0.0) > 0.99
    timid = p**0.3 / np.sum(p**0.3, axis=1, keepdims=True)
    assert np.mean(group_residuals(y, timid, groups, classes=classes).surprise < 0.0) > 0.9


def test_choices_have_a_surprise_alone():
    p = np.array([[0.2, 0.5, 0.3, 0.0], [0.1, 0.2, 0.3, 0.4]])
    found = group_residuals(np.array([1, 0]), p, ["x", "y"], classes=[0, 1, 2, 3])
    assert found.outcomes == [] and found.residual.shape == (2, 0)
    assert_allclose(found.surprise, -np.log([0.5, 0.1]) - [entropy(row) for row in p])
    ranks = np.array([[2, 1, 3, 0], [1, 2, 3, 4]])
    assert_allclose(group_residuals(ranks, p, ["x", "y"]).surprise, found.surprise)


def test_the_impossible_has_a_finite_loss_and_nonsense_is_refused():
    found = group_residuals([1, 0], [0.0, 0.0], ["a", "b"])
    assert 20.0 < found.surprise[0] < np.inf and found.surprise[1] == 0.0
    with pytest.raises(ValueError, match=r"groups has shape \(1,\)"):
        group_residuals([1, 0], [0.5, 0.5], ["a"])
    with pytest.raises(ValueError, match="level must"):
        group_residuals([1, 0], [0.5, 0.5], ["a", "b"], level=1.0)
    with pytest.raises(ValueError, match="inconsistent"):
        group_residuals([1, 0, 1], [0.5, 0.5], ["a", "b"])
