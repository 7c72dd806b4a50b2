"""Duels: merging and counting."""

from collections import Counter

import numpy as np
import pytest

from skpref.duels import (
    merge,
)


@pytest.mark.parametrize("n_items, n_duels", [(5, 400), (3000, 20)])
def test_merge_counts_as_a_counter_does(n_items, n_duels):
    rng = np.random.default_rng(1)
    items = rng.integers(0, 3, (n_items, 4)).astype(float)  # equal items, unused items
    winner, loser = rng.integers(0, n_items, (2, n_duels))
    duels = merge(items, winner, loser)
    expected = Counter(map(repr, np.stack([items[winner], items[loser]], axis=1).tolist()))
    kinds = np.stack([duels.items[duels.winner], duels.items[duels.loser]], axis=1).tolist()
    assert dict(zip(map(repr, kinds), duels.counts, strict=True)) == expected
    used = np.unique(np.concatenate([duels.winner, duels.loser]))
    assert used.tolist() == list(range(len(duels.items)))


def test_merge_ignores_row_order():
    rng = np.random.default_rng(2)
    items = rng.normal(size=(30, 2))
    winner, loser = rng.integers(0, 30, (2, 200))
    order, shift = rng.permutation(200), rng.permutation(30)
    one = merge(items, winner, loser)
    other = merge(items[shift], np.argsort(shift)[winner[order]], np.argsort(shift)[loser[order]])
    for name in ("items", "winner", "loser", "counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_margins_recover_every_kind_of_duel():
    rng = np.random.default_rng(3)
    duels = merge(rng.normal(size=(6, 2)), *rng.integers(0, 6, (2, 80)))
    f = rng.normal(size=len(duels.items))
    margins = duels.margins
    z = f[margins.first] - f[margins.second]
    np.testing.assert_array_equal(margins.sign * z[margins.index], f[duels.winner] - f[duels.loser])
    assert len(set(map(frozenset, zip(margins.first, margins.second, strict=True)))) == len(z)
