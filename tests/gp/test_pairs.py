"""Margins gathered from one covariance against those of products, row by row."""

import pickle

import numpy as np
import pytest
from core_support import random_duels, solve, won
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.gp import _posterior as _pairs
from skpref.inference import EP
from skpref.kernels import Identity


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(_pairs, "LARGE", 2)


def posterior(kernel, space):
    return solve(EP(), kernel, won(*random_duels(0, 14, 60)), 0.1, space).posterior


@pytest.mark.parametrize("space", ["margins", "items"])
@pytest.mark.parametrize(
    "kernel", [RBF(0.7), Matern(0.9, nu=1.5) + DotProduct(), RBF(30.0), Identity()]
)
def test_gathered_margins_are_those_of_products(monkeypatch, kernel, space):
    of = posterior(kernel, space)
    rng = np.random.default_rng(0)
    A, B = of.anchors[rng.integers(14, size=200)], of.anchors[rng.integers(14, size=200)]
    wanted = of.margin(A, B), of.outcome_log_proba(A, B)
    monkeypatch.setattr(_pairs, "LARGE", 2)
    monkeypatch.setattr(type(of), "pair_block", None)  # nothing is multiplied any more
    found = of.margin(A, B), of.outcome_log_proba(A, B)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-8)
    assert np.all(found[0][1][np.all(A == B, axis=1)] == 0.0)


def test_pairs_with_an_item_never_seen_take_the_long_way(monkeypatch):
    of = posterior(RBF(0.7), "items")
    rng = np.random.default_rng(0)
    A, B = of.anchors[rng.integers(14, size=90)], of.anchors[rng.integers(14, size=90)]
    A[::7] += 0.3
    B[5] -= 1.0
    alone = [of.margin(a[None], b[None]) for a, b in zip(A, B, strict=True)]
    monkeypatch.setattr(_pairs, "LARGE", 2)
    mean, variance = of.margin(A, B)
    np.testing.assert_allclose(mean, [m[0] for m, _ in alone], atol=1e-11)
    np.testing.assert_allclose(variance, [v[0] for _, v in alone], rtol=1e-8, atol=1e-12)


def test_what_is_kept_for_pairs_is_not_pickled(known):
    of = posterior(RBF(0.7), "items")
    light = pickle.dumps(of)
    A, B = np.repeat(of.anchors, 14, axis=0), np.tile(of.anchors, (14, 1))
    wanted = of.margin(A, B)
    assert len(pickle.dumps(of)) == len(light)
    np.testing.assert_allclose(pickle.loads(light).margin(A, B), wanted, atol=1e-11)


def test_items_of_the_table_by_position_name_and_row_agree(known):
    items, winner, loser = random_duels(1, 12, 80)
    table = ItemTable(items, names=[f"n{k}" for k in range(12)])
    pairs = np.column_stack([winner, loser])
    model = PairwisePreferenceRegressor(RBF(0.5), items=table, optimizer=None).fit(pairs)
    by_position = model.predict_proba(pairs)
    by_row = model.predict_proba(items[pairs])
    by_name = model.posterior_.win_probability(table.names[winner], table.names[loser])
    np.testing.assert_array_equal(by_position, by_row)
    np.testing.assert_allclose(by_position[:, 1], by_name, rtol=1e-12)
