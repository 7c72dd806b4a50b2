"""Duels: merging and counting, outcomes, orientation."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from duels_support import won_pairs

from skpref.duels import (
    alternate,
    first_won,
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


# --- outcomes and orientation


def test_alternate_keeps_the_winners_and_shows_both_outcomes():
    pairs = np.random.default_rng(0).normal(size=(5, 2, 3))
    before = pairs.copy()
    X, y = alternate(pairs)
    assert won_pairs(X, y) == won_pairs(pairs, np.ones(5))
    assert set(y.tolist()) == {0, 1}
    assert y.dtype == np.int64
    assert np.array_equal(pairs, before)


def test_alternate_takes_texts():
    X, y = alternate([["good", "bad"], ["fair", "poor"]])
    assert (X.tolist(), y.tolist()) == ([["good", "bad"], ["poor", "fair"]], [1, 0])


@pytest.mark.parametrize("pairs", [[1, 2], [[1, 2, 3]]])
def test_alternate_needs_pairs(pairs):
    with pytest.raises(ValueError, match="second axis must have length 2"):
        alternate(pairs)


@pytest.mark.parametrize("outcomes", [[1, 0, 1], [1, -1, 1], [True, False, True], [1.0, 0.0, 1.0]])
def test_first_won_reads_every_kind_of_label(outcomes):
    assert first_won(outcomes).tolist() == [True, False, True]
    assert first_won(pd.Series(outcomes)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "outcomes", [[1, 0, -1], [1, 2], [0.5, 1.0], ["1", "0"], [1.0, np.nan], [None, 1]]
)
def test_first_won_refuses_other_labels(outcomes):
    with pytest.raises(ValueError, match=r"Outcomes of duels must be in \{0, 1\}"):
        first_won(np.array(outcomes, dtype=object))
