"""Answers of weights so large, or noise so small, that rounding could decide."""

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from core_support import SPACES, won
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from skpref import PairwisePreferenceRegressor


def contradictory(n_items, n_duels):
    """Duels whose winners are drawn at random, and others among new items."""
    rng = np.random.default_rng(0)
    items = rng.random((n_items, 2))
    first = rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, size=n_duels)) % n_items
    X = np.stack([items[first], items[second]], axis=1)
    return X, rng.integers(2, size=n_duels), rng.random((50, 2, 2))


def sure(kernel, weight, noise_variance, inference="ep"):
    model = PairwisePreferenceRegressor(
        kernel, inference=inference, optimizer=None, noise_variance=noise_variance
    )
    return lambda X, y: model.fit(X, y, sample_weight=np.full(len(y), weight))


@pytest.mark.parametrize(
    ("n_duels", "kernel", "weight", "noise_variance"),
    [
        (30, RBF(0.5), 1e4, 1e-8),  # by items
        (30, Matern(0.5, nu=2.5), 1e6, 1e-8),
        (30, Matern(0.5, nu=2.5), 1e8, 1e-4),
        (18, RBF(0.5), 1e6, 1e-6),  # few, that go round in circles
        (18, Matern(0.5, nu=2.5), 1e4, 1e-8),
    ],
)
def test_the_order_of_rows_does_not_matter(n_duels, kernel, weight, noise_variance):
    X, y, others = contradictory(12, n_duels)
    fit, rng, found = sure(kernel, weight, noise_variance), np.random.default_rng(1), []
    for _ in range(2):
        order, turned = rng.permutation(n_duels), rng.random(n_duels) < 0.5
        rows, won = X[order], y[order]
        rows[turned] = rows[turned, ::-1]
        model = fit(rows, np.where(turned, 1 - won, won))
        found.append(model.predict_proba(np.concatenate([X, others]))[:, 1])
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def solved(matrix, right):
    """By elimination in rational numbers."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("space", SPACES)
def test_weak_ties_between_strong_ones_are_not_lost(space):
    """Utilities in rational arithmetic, of two groups of items within which answers are sure."""
    items = np.array([[0.0], [0.4], [0.9], [1.5], [2.2]])
    ends = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [2, 3], [0, 4]])
    precision = np.array([3e13, 5e13, 2e13, 4e13, 2.0, 1.0])
    shift = precision * np.array([3e-7, -2e-7, 1e-7, 4e-7, 0.5, -0.1])
    margins, K = won(items, *ends.T).rows.margins, RBF(1.0)(items)
    np.testing.assert_array_equal(ends, np.stack([margins.first, margins.second], axis=1))
    L, pull = [[Fraction(0)] * 5 for _ in range(5)], [Fraction(0)] * 5
    for (i, j), tie, push in zip(ends, precision, shift, strict=True):
        for a, sign in ((i, 1), (j, -1)):
            pull[a] += sign * Fraction(float(push))
            L[a][i] += sign * Fraction(float(tie))
            L[a][j] -= sign * Fraction(float(tie))
    prior, n = [[Fraction(float(x)) for x in row] for row in K], range(5)
    system = [[int(i == j) + sum(L[i][k] * prior[k][j] for k in n) for j in n] for i in n]
    weights = solved(system, pull)
    truth = [float(sum(prior[i][k] * weights[k] for k in n)) for i in n]
    made = SPACES[space](K, margins)
    found = made.gain(made.condition(precision, shift), precision, shift)
    np.testing.assert_allclose(K @ found.weights[:, 0], truth, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "inference", "weights"),
    [
        pytest.param(RBF(0.5), "ep", (1e9, 1e11, 8e11), marks=pytest.mark.slow),
        (RBF(2.0), "laplace", (1e9, 1e10, 1e11, 2e11, 3e11, 5e11, 7e11, 1e12)),
    ],
)
def test_what_rounding_decides_is_refused_with_the_remedy(kernel, inference, weights):
    """Which weights rounding decides differs between processors; nobody gets another answer."""
    X, y, _ = contradictory(12, 30)
    limit = sure(kernel, 1e6, 1e-8, inference)(X, y).predict_proba(X)[:, 1]
    torn = np.abs(limit - 0.5) < 0.485  # where others contradict; elsewhere weight goes on to count
    assert torn.sum() > 25
    refused = []
    for weight in weights:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = sure(kernel, weight, 1e-8, inference)(X, y)
            except ValueError as error:
                refused.append(str(error))
            else:
                assert_allclose(found.predict_proba(X)[torn, 1], limit[torn], atol=1e-4)
    assert refused
    for each in refused:
        assert re.search(r"Divide all of sample_weight.*raise noise_variance", each)
    model = sure(kernel, 1.0, 1e-8, inference)(X, y)  # as the message says
    assert np.isfinite(model.predict_proba(X)).all()
