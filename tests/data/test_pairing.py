"""Duels made of ratings: which items meet."""

from collections import Counter

import numpy as np
import pytest
from duels_support import won_pairs

from skpref.duels import (
    ItemTable,
    from_ratings,
    rated_pairs,
)

pd = pytest.importorskip("pandas")


def brute(ratings, qid):
    n = range(len(ratings))
    return {(i, j) for i in n for j in n if qid[i] == qid[j] and ratings[i] > ratings[j]}


def test_few_ratings_make_all_pairs():
    rng = np.random.default_rng(0)
    ratings, qid = rng.integers(0, 4, 40), rng.choice(["p", "q", "r"], 40)
    pairs = list(zip(*map(np.ndarray.tolist, rated_pairs(ratings, qid)), strict=True))
    assert set(pairs) == brute(ratings, qid)
    assert len(pairs) == len(set(pairs))


def test_many_distinct_ratings_meet_at_powers_of_two():
    rng = np.random.default_rng(1)
    qid = np.repeat([0, 1], [200, 90])
    ratings = rng.permutation(290) / 3.0
    winner, loser = rated_pairs(ratings, qid)
    found = set(zip(winner.tolist(), loser.tolist(), strict=True))
    expected = set()
    for group in (0, 1):
        members = np.flatnonzero(qid == group)
        by_rank = members[np.argsort(ratings[members])].tolist()
        for step in (1, 2, 4, 8, 16, 32, 64, 128):
            expected |= set(zip(by_rank[step:], by_rank, strict=False))
    assert found == expected
    assert len(winner) == len(found)


@pytest.mark.parametrize("n_levels", [2, 3, 10, 100])
def test_tied_ratings_are_spread_evenly(n_levels):
    n = 400
    rng = np.random.default_rng(n_levels)
    ratings = np.floor(n_levels * rng.beta(1, 3, n))  # levels of very unequal sizes
    winner, loser = rated_pairs(ratings, max_pairs=7000)  # more than there are at these distances
    pairs = set(zip(winner.tolist(), loser.tolist(), strict=True))
    assert pairs <= brute(ratings, np.zeros(n))
    assert len(pairs) == len(winner) <= 2 * n * np.log2(n)
    beaten, beats = np.bincount(loser, minlength=n), np.bincount(winner, minlength=n)
    assert beaten[ratings < ratings.max()].min() >= 1
    assert beats[ratings > ratings.min()].min() >= 1
    for level in np.unique(ratings):  # nobody in a level meets many more than another
        meets = (beaten + beats)[ratings == level]
        assert meets.max() <= 3 * max(meets.min(), np.log2(n))


def test_budget_counts_all_groups_together():
    ratings = np.arange(80.0)
    assert len(rated_pairs(ratings, max_pairs=3160)[0]) == 80 * 79 // 2
    assert len(rated_pairs(ratings, max_pairs=3159)[0]) == sum(80 - 2**k for k in range(7))
    assert len(rated_pairs(ratings, max_pairs=None)[0]) == 80 * 79 // 2
    qid = np.repeat(np.arange(40), 2)
    assert len(rated_pairs(ratings, qid, max_pairs=39)[0]) == 39
    assert len(rated_pairs(np.arange(63.0))[0]) == 63 * 62 // 2
    for n in (64, 250):
        assert len(rated_pairs(np.arange(float(n)))[0]) <= 2000
    assert len(rated_pairs(np.arange(300.0))[0]) == sum(300 - 2**k for k in range(9))
    assert len(rated_pairs(np.arange(600.0))[0]) == 4000
    assert len(rated_pairs(np.arange(1000.0))[0]) == 5000  # five an item
    winner, loser = rated_pairs(np.arange(1000.0))
    assert np.bincount(np.concatenate([winner, loser]), minlength=1000).min() >= 1
    apart = winner - loser
    assert set(apart.tolist()) == {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}  # near and far


@pytest.mark.parametrize("max_pairs", [1, 7, 60, 61, 100, 433, 434, 700])
@pytest.mark.parametrize("n_levels", [4, 1000])
def test_an_integer_is_a_cap(max_pairs, n_levels):
    rng = np.random.default_rng(max_pairs)
    ratings, qid = rng.integers(0, n_levels, 120), np.repeat([0, 1, 2], [20, 40, 60])
    winner, loser = rated_pairs(ratings, qid, max_pairs)
    pairs = set(zip(winner.tolist(), loser.tolist(), strict=True))
    assert len(pairs) == len(winner) == min(max_pairs, len(rated_pairs(ratings, qid, "auto")[0]))
    assert pairs <= brute(ratings, qid)
    share = np.bincount(qid[winner], minlength=3) / len(winner)
    if max_pairs > 50:
        np.testing.assert_allclose(share, [1 / 6, 1 / 3, 1 / 2], atol=0.1)


@pytest.mark.parametrize("max_pairs", [400, 665, 1000])
def test_a_cap_thins_every_distance_alike(max_pairs):
    winner, loser = rated_pairs(np.arange(500.0), max_pairs=max_pairs)
    distances, counts = np.unique(winner - loser, return_counts=True)
    assert distances.tolist() == [2**k for k in range(9)]
    np.testing.assert_allclose(counts / (500 - distances), max_pairs / 3989, atol=0.01)


@pytest.mark.parametrize("max_pairs", [20, "auto", 10**6, None])
def test_ratings_ignore_row_order_even_with_ties(max_pairs):
    rng = np.random.default_rng(4)
    items = rng.normal(size=(60, 2))
    ratings, qid = rng.integers(0, 6, 60), rng.integers(0, 2, 60)
    order = rng.permutation(60)
    one = from_ratings(items, ratings, qid, max_pairs=max_pairs)
    other = from_ratings(items[order], ratings[order], qid[order], max_pairs=max_pairs)
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_ratings_only_matter_by_their_order():
    rng = np.random.default_rng(5)
    ratings = rng.integers(0, 30, 200) / 10.0
    for one, other in zip(rated_pairs(ratings), rated_pairs(np.exp(ratings)), strict=True):
        assert np.array_equal(one, other)


def test_from_ratings_takes_every_kind_of_items():
    frame = pd.DataFrame({"u": [0.1, 0.2, 0.3]}, index=["a", "a", "b"])
    ratings = [1.0, 3.0, 2.0]
    X, y = from_ratings(frame, ratings)
    expected = won_pairs([[[0.2], [0.1]], [[0.2], [0.3]], [[0.3], [0.1]]], [1, 1, 1])
    assert won_pairs(X, y) == expected
    assert won_pairs(*from_ratings(ItemTable(frame.to_numpy()), ratings)) == expected
    positions = Counter(["[1, 0]", "[1, 2]", "[2, 0]"])
    assert won_pairs(*from_ratings(None, ratings)) == positions
    assert won_pairs(*from_ratings(ItemTable.from_names("abc"), ratings)) == positions
    assert set(y.tolist()) == {0, 1}


@pytest.mark.parametrize(
    "ratings, kwargs, match",
    [
        ([1.0, np.nan], {}, "1 of 2 ratings are NaN or infinite, first in row 1"),
        ([1.0, np.inf], {}, "1 of 2 ratings are NaN or infinite"),
        (["good", "bad"], {}, "finite numbers"),
        ([1.0, 1.0], {}, "No duel results"),
        ([1.0], {}, "No duel results"),
        ([1.0, 2.0], {"qid": [0, 1]}, "different ratings within a qid"),
        ([1.0, 2.0], {"qid": [0]}, "inconsistent numbers of samples"),
        ([1.0, 2.0], {"qid": [0, np.nan]}, "qid contains NaN"),
        ([1.0, 2.0], {"max_pairs": 0}, "if not .auto. or None"),
        ([1.0, 2.0], {"max_pairs": 1.5}, "if not .auto. or None"),
    ],
)
def test_rated_pairs_refuses(ratings, kwargs, match):
    with pytest.raises((TypeError, ValueError), match=match):
        rated_pairs(ratings, **kwargs)


def test_from_ratings_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        from_ratings([[1.0], [2.0]], [1.0, 2.0, 3.0])
