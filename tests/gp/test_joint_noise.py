"""Joint answers in both spaces against dense algebra of utilities and noise, item by item."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from core_support import SPACES
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern

from skpref.duels import Comparisons
from skpref.gp import DenseItems, DenseMargins, Sites, choose_prior
from skpref.likelihoods import Probit

BOTH = pytest.mark.parametrize("space", ["margins", "items"])
KERNEL = Matern([0.8, 1.3], nu=1.5)
NOISE = 0.3
ITEMS = np.random.default_rng(0).uniform(-1.0, 1.0, (7, 2))
SHOWN = [[0, 1, -1, -1], [1, 0, -1, -1], [2, 3, 4, -1], [0, 2, 5, 6], [1, 2, 3, -1], [3, 6, 4, 5]]
RANK = [[1, 2, 0, 0], [1, 2, 0, 0], [1, 2, 2, 0], [1, 2, 3, 4], [1, 1, 2, 0], [2, 1, 3, 2]]
DEPENDENT = [[0, 3, 4, 1], [1, 1, 2, 2]]


def observed(dependent=True, weight=None):
    """Duels of two items both ways, choices, rankings, and two above two."""
    shown, rank = list(SHOWN), list(RANK)
    if dependent:
        shown, rank = [*shown, DEPENDENT[0]], [*rank, DEPENDENT[1]]
    return Comparisons.from_ranks(ITEMS, shown, rank, weight)


class Dense(NamedTuple):
    """Every margin of every single answer: B f + e with e ~ N(0, N)."""

    margin: np.ndarray
    B: np.ndarray
    N: np.ndarray  # in units of the variance of one item's noise
    K: np.ndarray

    def total(self, variance=NOISE):
        return self.B @ self.K @ self.B.T + variance * self.N


def dense(comparisons):
    """By a noise of its own for every item of every single joint answer."""
    rows, margins = comparisons.rows, comparisons.rows.margins
    entries = [(m, None) for m in range(margins.n_shared)]
    for block in margins.blocks:
        for at, count in zip(block.margin, block.counts, strict=True):
            for copy in range(int(count)):
                entries += [(m, (int(at[0]), copy)) for m in at]
    margin = np.array([m for m, _ in entries])
    n, n_items = len(margin), len(comparisons.items)
    owners = sorted({owner for _, owner in entries if owner is not None})
    B, D = np.zeros((n, n_items)), np.zeros((n, n_items * max(len(owners), 1)))
    for i, (m, owner) in enumerate(entries):
        for item, sign in ((margins.first[m], 1.0), (margins.second[m], -1.0)):
            B[i, item] += sign
            if owner is not None:
                D[i, owners.index(owner) * n_items + item] += sign
    assert len(rows.margins.index) == len(rows)
    return Dense(margin, B, D @ D.T, KERNEL(comparisons.items))


def some_sites(n, seed=1):
    rng = np.random.default_rng(seed)
    precision = np.exp(rng.uniform(-1.5, 1.5, n))
    return precision, precision * rng.normal(size=n)


def made(space, comparisons, variance=NOISE):
    items = comparisons.items
    return SPACES[space](KERNEL(items), comparisons.rows.margins, variance, KERNEL, items)


def counts_of(comparisons):
    """How often each margin is there."""
    return np.bincount(dense(comparisons).margin)


@BOTH
@pytest.mark.parametrize("dependent", [False, True])
def test_known_margins_give_the_posterior_of_a_linear_observation(space, dependent):
    """Joint answers by their v, duels through sites; inequalities that follow add nothing."""
    seen = observed(dependent)
    truth, margins = dense(seen), seen.rows.margins
    n = len(margins.first)
    joint = np.arange(n) >= margins.n_shared
    precision, shift = some_sites(n)
    precision[joint] = np.inf
    rng = np.random.default_rng(2)
    # Values that noisy utilities can have: a draw of all of them.
    noise = np.linalg.svd(truth.N)
    root = noise.U * np.sqrt(np.maximum(noise.S, 0.0) * (noise.S > 1e-9))
    shift = np.column_stack([shift, 2.0 * shift])
    for s in range(2):
        f = np.linalg.cholesky(truth.K) @ rng.standard_normal(len(truth.K))
        v = truth.B @ f + np.sqrt(NOISE) * root @ rng.standard_normal(n)
        shift[truth.margin[joint[truth.margin]], s] = v[joint[truth.margin]]
    where = np.argsort(truth.margin)
    B, N = truth.B[where], NOISE * truth.N[where][:, where]
    spread = np.where(joint, 0.0, 1.0 / precision)
    target = np.where(joint[:, None], shift, shift * spread[:, None])
    total = B @ truth.K @ B.T + N + np.diag(spread)
    R = np.linalg.pinv(total, rcond=1e-11, hermitian=True)
    X = rng.uniform(-1.0, 1.0, (5, 2))
    cross = KERNEL(X, seen.items) @ B.T
    mean, covariance = cross @ R @ target, KERNEL(X) - cross @ R @ cross.T

    space = made(space, seen)
    found = space.condition(precision, shift)
    posterior = space.posterior(Sites(shift, precision, 0.0), found, Probit(NOISE))
    assert_allclose(posterior.component_means(X), mean, atol=1e-9)
    assert_allclose(posterior.cov(X) - np.cov(mean, bias=True), covariance, atol=1e-9)
    assert_allclose(found.mean[joint], shift[joint], atol=1e-9)
    assert_allclose(found.variance[joint], 0.0, atol=1e-9)
    z = (B @ truth.K @ B.T) @ R @ target
    assert_allclose(found.mean[~joint], z[~joint], atol=1e-9)
    alone = space.condition(precision, shift[:, 0])
    assert_allclose(alone.mean, found.mean[:, 0], atol=1e-11)
    assert_allclose(alone.dual, found.dual[:, 0], atol=1e-11)


def test_known_means_of_repeated_answers_are_all_that_is_learned():
    """An answer given thrice, v known each time, tells what the mean of the three does."""
    weight = [1, 1, 3, 1, 1, 1, 1]
    once, thrice = observed(), observed(weight=weight)
    n = len(once.rows.margins.first)
    joint = np.arange(n) >= once.rows.margins.n_shared
    precision, shift = some_sites(n)
    precision[joint] = np.inf
    truth = dense(thrice)
    spread = np.where(joint, 0.0, 1.0 / precision)[truth.margin]
    follows = np.zeros(n, dtype=bool)
    for block in once.rows.margins.blocks:
        follows[block.margin[~block.basis]] = True
    kept = np.flatnonzero(~follows[truth.margin])
    total = (truth.total() + np.diag(spread))[np.ix_(kept, kept)]
    target = np.where(joint, shift, shift * np.where(joint, 0.0, 1.0 / precision))[truth.margin]
    cross = truth.K @ truth.B[kept].T
    mean = cross @ np.linalg.solve(total, target[kept])
    space = made("items", thrice)
    found = space.condition(precision, shift)
    assert_allclose(space.K @ (space.incidence @ found.dual), mean, atol=1e-10)
    D = space.gain(found, precision, shift).factor
    reduced = space.K @ D @ D.T @ space.K
    assert_allclose(reduced, cross @ np.linalg.solve(total, cross.T), atol=1e-10)


def test_repeated_joint_answers_are_counted_in_item_space():
    once = observed()

    def many(comparisons):
        """Among many items that nobody answered about."""
        items = np.random.default_rng(0).normal(size=(30, comparisons.items.shape[1]))
        items[: len(comparisons.items)] = comparisons.items
        return replace(comparisons, items=items)

    assert choose_prior(KERNEL, many(once), Probit(NOISE)) is DenseMargins
    twice = observed(weight=[1, 1, 2, 1, 1, 1, 1])
    assert choose_prior(KERNEL, many(twice), Probit(NOISE)) is DenseItems
    assert counts_of(twice).max() == 2
