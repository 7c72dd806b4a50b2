"""Weighted sums of utilities: by the whole covariance of their items."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from test_chain import BESIDE, DRIFT, answers, random_pairs
from test_through_time import posterior_of

from skpref import PairwisePreferenceRegressor
from skpref.gp import ChainRule, PriorRule, _posterior, mixed_sums


@pytest.mark.parametrize("rule", [PriorRule, ChainRule])
@pytest.mark.parametrize("kernel", [BESIDE, DRIFT], ids=["beside", "drift"])
@pytest.mark.parametrize("one_time", [True, False])
def test_sums_are_those_of_the_covariance(rule, kernel, one_time, monkeypatch):
    monkeypatch.setattr(_posterior, "BLOCK", 500)
    posterior, _, _ = posterior_of(kernel, answers(random_pairs(60, 8)), rule())
    rng = np.random.default_rng(0)
    n = 15
    times = np.full(n, 7.5) if one_time else rng.uniform(-1.0, 14.0, n)
    rows = np.column_stack([rng.integers(0, 11, n), rng.integers(0, 4, n), times])
    rows[:, 0][rows[:, 0] > 9] = 99.0  # who is new
    weights = rng.normal(size=(4, n))
    means, variance = posterior.component_sums(rows, weights)
    cov = posterior.cov(rows)
    assert_allclose(means[:, 0], weights @ posterior.mean(rows), atol=1e-10)
    assert_allclose(variance, np.diagonal(weights @ cov @ weights.T), rtol=1e-8)


def test_covariances_at_one_time_are_those_at_any():
    posterior, _, _ = posterior_of(BESIDE, answers(random_pairs(60, 8)), ChainRule())
    rows = np.column_stack(
        [np.r_[np.arange(9.0), 99.0, 99.0, 3.0], np.arange(12) % 4, np.full(12, 6.0)]
    )
    later = np.vstack([rows, [[5.0, 1.0, 9.0]]])
    assert_allclose(
        posterior.cross_covariance(rows, rows),
        posterior.cross_covariance(later, later)[:12, :12],
        atol=1e-10,
    )


def test_sums_of_a_mixture_are_those_of_its_moments():
    rng = np.random.default_rng(2)
    rows = rng.uniform(size=(12, 2, 1))
    ahead = (rows[:, 0, 0] > rows[:, 1, 0]).astype(int)
    judges = np.array(["ann"] * 7 + ["bob"] * 5)
    model = PairwisePreferenceRegressor(RBF(0.5), noise_variance=0.5, optimizer=None)
    posterior = model.fit(
        rows, np.where(judges == "ann", ahead, 1 - ahead), judges=judges
    ).posterior_
    assert len(posterior.parts) > 1
    items, weights = rng.uniform(size=(7, 1)), rng.normal(size=(3, 7))
    mean, variance = mixed_sums(posterior, items, weights)
    assert_allclose(mean, weights @ posterior.mean(items), atol=1e-9)
    assert_allclose(variance, np.diag(weights @ posterior.cov(items) @ weights.T), atol=1e-9)
    draws = weights @ posterior.sample(items, 100_000, 0)
    assert_allclose(variance, draws.var(axis=1), rtol=0.03)
