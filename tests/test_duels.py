"""Duels: merging, tables of items, and builders."""

import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

from skpref import _items
from skpref.duels import (
    ItemTable,
    alternate,
    distinct_rows,
    first_won,
    from_columns,
    from_pairs,
    from_rankings,
    from_ratings,
    merge,
    ranking_groups,
    rated_pairs,
)


def won_pairs(X, y):
    """Multiset of (winner, loser) values."""
    X = np.asarray(X)
    flipped = np.where((np.asarray(y) == 1).reshape(-1, *[1] * (X.ndim - 1)), X, X[:, ::-1])
    return Counter(map(repr, flipped.tolist()))


# --- distinct rows and merging


@pytest.mark.parametrize("n, levels", [(0, 2), (1, 2), (500, 2), (500, 1000)])
def test_distinct_rows_agree_with_numpy(n, levels):
    rows = np.random.default_rng(n).integers(0, levels, (n, 3)) / 7.0
    distinct, inverse = distinct_rows(rows)
    assert np.array_equal(distinct[inverse], rows)
    assert np.array_equal(np.unique(distinct, axis=0), np.unique(rows, axis=0))
    assert len(distinct) == len(np.unique(rows, axis=0))


def test_distinct_rows_order_ignores_row_order_and_repetition():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (300, 2)).astype(float)
    shuffled = np.concatenate([rows, rows[:50]])[rng.permutation(350)]
    assert np.array_equal(distinct_rows(rows)[0], distinct_rows(shuffled)[0])


def test_distinct_rows_joins_signed_zeros_and_nans_and_leaves_input():
    rows = np.array([[0.0, np.nan], [-0.0, np.nan], [1.0, 2.0]])
    rows.flags.writeable = False
    distinct, inverse = distinct_rows(rows)
    assert len(distinct) == 2
    assert inverse[0] == inverse[1] != inverse[2]
    assert np.signbit(rows[1, 0])


def test_distinct_rows_survive_collisions_of_the_hash(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 4, (200, 3)).astype(float)
    monkeypatch.setattr(_items, "_hash", lambda bits: np.zeros(len(bits), dtype=np.uint64))
    distinct, inverse = distinct_rows(rows)
    assert np.array_equal(distinct[inverse], rows)
    assert len(distinct) == len(np.unique(rows, axis=0))
    assert np.array_equal(distinct, distinct_rows(rows[::-1])[0])


def test_distinct_rows_without_features_are_one():
    distinct, inverse = distinct_rows(np.zeros((4, 0)))
    assert distinct.shape == (1, 0)
    assert inverse.tolist() == [0, 0, 0, 0]


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


# --- ItemTable


def test_item_table_is_a_read_only_copy_even_after_pickling():
    X = np.arange(6.0).reshape(3, 2)
    table = ItemTable(X, names=["a", "b", "c"])
    X[0, 0] = 99.0
    assert table.X[0, 0] == 0.0
    for one in (table, pickle.loads(pickle.dumps(table))):
        assert len(one) == 3
        assert one.has_features
        assert one.index([["c", "a"]]).tolist() == [[2, 0]]
        with pytest.raises(ValueError, match="read-only"):
            one.X[0, 0] = 1.0
        with pytest.raises(AttributeError, match="immutable"):
            one.X = X
        with pytest.raises(AttributeError, match="immutable"):
            del one.names


class Holder(BaseEstimator):
    def __init__(self, items=None):
        self.items = items


def test_item_table_is_not_copied_by_clone_and_prints_short():
    table = ItemTable(np.zeros((1000, 50)) + np.arange(1000)[:, None])
    assert clone(Holder(table)).items is table
    assert len(repr(table)) < 80
    assert "1000 items" in repr(Holder(table))


def test_item_table_takes_names_from_a_frame():
    frame = pd.DataFrame({"sugar": [1, 2], "fat": [3, 4]}, index=["tea", "cake"])
    table = ItemTable(frame)
    assert table.names.tolist() == ["tea", "cake"]
    assert table.feature_names.tolist() == ["sugar", "fat"]
    assert ItemTable(frame.to_numpy()).names is None
    assert ItemTable(pd.DataFrame(frame.to_numpy())).feature_names is None


def test_from_names_holds_no_square_array():
    table = ItemTable.from_names(f"item {i}" for i in range(100_000))
    assert table.X.nbytes == 800_000
    assert not table.has_features
    assert table.index("item 77") == 77


def test_from_names_keeps_the_order_of_first_appearance():
    table = ItemTable.from_names([["b", "a"], ("c", "b"), np.array(["d"])])
    assert table.names.tolist() == ["b", "a", "c", "d"]
    frame = pd.DataFrame({"home": ["x", "y"], "away": ["y", "z"]})
    assert ItemTable.from_names(frame).names.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    "X, names, match",
    [
        (np.zeros(3), None, "Expected 2D array"),
        (np.zeros((0, 2)), None, "minimum of 1"),
        ([[np.nan]], None, "NaN"),
        ([[1.0], [2.0]], ["a"], "1 names came for 2 items"),
        ([[1.0], [2.0]], ["a", "a"], "'a' stands for more than one"),
        ([[1.0], [2.0]], ["a", 1], "mix strings"),
        ([[1.0], [2.0]], ["a", None], "missing"),
        ([[1.0], [2.0]], ["a", pd.NA], "missing"),
        ([[1.0], [2.0]], [("a", 1), ("a", 2)], "MultiIndex"),
    ],
)
def test_item_table_refuses(X, names, match):
    with pytest.raises(ValueError, match=match):
        ItemTable(X, names=names)


def test_index_names_the_unknown():
    with pytest.raises(ValueError, match=r"2 unknown name\(s\) of items: 'x', 'y'"):
        ItemTable.from_names(["a", "b"]).index(["x", "a", "y", "x"])
    with pytest.raises(ValueError, match="no names"):
        ItemTable([[1.0]]).index(["a"])
    with pytest.raises(ValueError, match="No name came"):
        ItemTable.from_names([])


# --- from_pairs

FRAME = pd.DataFrame({"u": [0.0, 0.5, 1.0]}, index=["a", "b", "c"])


def test_every_way_of_naming_gives_the_same_duels():
    names = [["c", "a"], ["c", "b"], ["a", "b"]]
    positions = np.array([[2, 0], [2, 1], [0, 1]])
    expected = won_pairs(FRAME.to_numpy()[positions], [1, 1, 1])
    table = ItemTable(FRAME.to_numpy(), names=["a", "b", "c"])
    ways = [
        (FRAME, names),
        (FRAME, pd.DataFrame(names)),
        (table, names),
        (FRAME.to_numpy(), positions),
        (FRAME.to_numpy(), positions.tolist()),
    ]
    for items, pairs in ways:
        X, y = from_pairs(items, pairs)
        assert won_pairs(X, y) == expected
        assert set(y.tolist()) == {0, 1}


def test_names_are_looked_up_in_the_index_not_by_place():
    frame = pd.DataFrame({"u": [0.1, 0.2, 0.3]}, index=[20, 10, 0])
    X, y = from_pairs(frame, [[0, 20]])
    assert (X.ravel().tolist(), y.tolist()) == ([0.3, 0.1], [1])


@pytest.mark.parametrize("outcomes", [[1, 0, 1], [-1, 1, 1], [False, True, True]])
def test_two_outcomes_keep_orientation_and_labels(outcomes):
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    X, y = from_pairs(FRAME.to_numpy(), pairs, outcomes)
    assert np.array_equal(X, FRAME.to_numpy()[pairs])
    assert y.tolist() == [int(v) for v in outcomes]


@pytest.mark.parametrize("outcome", [1, 0, -1, True, False])
def test_one_outcome_is_alternated(outcome):
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    X, y = from_pairs(None, pairs, [outcome] * 3)
    assert set(y.tolist()) == {0, 1}
    assert won_pairs(X, y) == won_pairs(pairs, [outcome == 1] * 3)


def test_items_without_features_give_positions():
    pairs = [["ann", "bob"], ["cid", "ann"]]
    X, y = from_pairs(ItemTable.from_names(pairs), pairs)
    assert (X.tolist(), y.tolist()) == ([[0, 1], [0, 2]], [1, 0])
    assert X.dtype == np.int64


@pytest.mark.parametrize(
    "items, pairs, outcomes, match",
    [
        (None, [["a", "b"]], None, r"ItemTable\.from_names\(names\) first"),
        (FRAME.to_numpy(), [["a", "b"]], None, "DataFrame indexed by name"),
        (FRAME, [[0, 1]], None, r"unknown name\(s\) of items: 0, 1"),
        (FRAME, [["a", "z"]], None, "'z'"),
        (FRAME, [["a", np.nan]], None, "nan"),
        (FRAME.to_numpy(), [[0.0, 1.0]], None, "must be integers"),
        (FRAME.to_numpy(), [[True, False]], None, "must be integers"),
        (FRAME.to_numpy(), [[0, -1]], None, "Position -1 is negative"),
        (FRAME.to_numpy(), [[0, 3]], None, "Position 3 is out of range for 3 items"),
        (FRAME.to_numpy(), [[0, 1], [2, 2]], None, "Pair 1 sets item 2 against itself"),
        (FRAME.to_numpy(), np.zeros((0, 2), int), None, "at least one row"),
        (FRAME.to_numpy(), [[0, 1, 2]], None, "at least one row of two items"),
        (FRAME.to_numpy(), [[0, 1], [2]], None, "at least one row of two items"),
        (FRAME.to_numpy(), [[0, 1]], [1, 0], "2 outcomes came for 1 duels"),
        (FRAME.to_numpy(), [[0, 1], [1, 2]], [0.5, 1], "leave out ties"),
    ],
)
def test_from_pairs_refuses(items, pairs, outcomes, match):
    with pytest.raises(ValueError, match=match):
        from_pairs(items, pairs, outcomes)


# --- from_columns

MATCHES = pd.DataFrame(
    {"lx": [1, 2, 3], "ly": [4.0, 5, 6], "rx": [7, 8, 9], "ry": [1.0, 2, 3], "won": [1, 0, 0]}
)


def test_from_columns_stacks_both_sides():
    X, y = from_columns(MATCHES, ["lx", "ly"], ["rx", "ry"], "won")
    assert X[0].tolist() == [[1.0, 4.0], [7.0, 1.0]]
    assert y.tolist() == [1, 0, 0]
    again = from_columns(MATCHES, ["lx", "ly"], ["rx", "ry"], MATCHES["won"].to_numpy())
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])


def test_from_columns_alternates_without_outcomes():
    X, y = from_columns(MATCHES, "lx", "rx")
    assert won_pairs(X, y) == won_pairs(MATCHES[["lx", "rx"]].to_numpy(float)[..., None], [1] * 3)
    assert y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "frame, first, second, outcome, match",
    [
        (MATCHES.to_numpy(), ["lx"], ["rx"], None, "needs a DataFrame"),
        (MATCHES, ["lx", "ly"], ["rx"], None, "2 columns came for the first item and 1"),
        (MATCHES, [], [], None, "same features of both"),
        (MATCHES, ["lx"], ["zz"], None, r"no column \['zz'\]"),
        (MATCHES, ["lx"], ["rx"], "zz", r"no column \['zz'\]"),
        (MATCHES.assign(rx=[1, np.nan, 2]), ["lx"], ["rx"], None, r"\['rx'\] must hold finite"),
        (MATCHES.assign(rx=["p", "q", "r"]), ["lx"], ["rx"], None, "Itemwise"),
        (MATCHES, ["lx"], ["rx"], "lx", r"Outcomes of duels must be in \{0, 1\}"),
    ],
)
def test_from_columns_refuses(frame, first, second, outcome, match):
    with pytest.raises(ValueError, match=match):
        from_columns(frame, first, second, outcome)


# --- from_rankings

RANKINGS = [["c", "a", "b"], ["b"], ["a", "c"]]


def test_rankings_give_all_pairs_of_each_list():
    table = ItemTable.from_names(["a", "b", "c"])
    X, y = from_rankings(RANKINGS, table)
    expected = Counter(
        repr(table.index(pair).tolist()) for r in RANKINGS for pair in combinations(r, 2)
    )
    assert won_pairs(X, y) == expected
    assert set(y.tolist()) == {0, 1}


def test_adjacent_rankings_give_neighbours_alone():
    table = ItemTable.from_names(["a", "b", "c"])
    X, y = from_rankings(RANKINGS, table, adjacent=True)
    assert won_pairs(X, y) == Counter(["[2, 0]", "[0, 1]", "[0, 2]"])


def test_lists_and_padded_arrays_say_the_same():
    lists = [[2, 0, 1], [1, 2]]
    expected = from_rankings(lists)
    padded = [
        np.array([[2, 0, 1], [1, 2, -1]]),
        np.array([[2, 0, 1], [1, 2, np.nan]]),
        pd.DataFrame([[2, 0, 1], [1, 2, None]], dtype="Int64"),
        [(2, 0, 1), (1, 2, None)],
    ]
    for rankings in padded:
        X, y = from_rankings(rankings)
        assert np.array_equal(X, expected[0])
        assert np.array_equal(y, expected[1])


def test_rankings_of_items_with_features_gather_them():
    X, y = from_rankings([["c", "a"], ["a", "b"]], FRAME)
    assert won_pairs(X, y) == won_pairs([[[1.0], [0.0]], [[0.0], [0.5]]], [1, 1])


@pytest.mark.parametrize("adjacent", [False, True])
def test_ranking_groups_match_the_duels(adjacent):
    rankings = [[0, 1, 2, 3], [4], [], [5, 6, 7]]
    X, _ = from_rankings(rankings, adjacent=adjacent)
    groups = ranking_groups(rankings, adjacent=adjacent)
    assert len(groups) == len(X)
    for pair, group in zip(X.tolist(), groups, strict=True):
        assert set(pair) <= set(rankings[group])


@pytest.mark.parametrize(
    "rankings, items, match",
    [
        ([[0, 1, 0]], None, "Ranking 0 names item 0 twice"),
        ([["a", "b"], ["b", "b"]], FRAME, "Ranking 1 names item 'b' twice"),
        ([[0], [1]], None, "None of the 2 rankings has two items"),
        ([], None, "None of the 0 rankings"),
        ([["a", "b"]], None, r"ItemTable\.from_names"),
        ([["a", "z"]], FRAME, "'z'"),
        ([["a", 1]], FRAME, "mix strings with numbers"),
        ([[0, -1, 1]], None, "before its end"),
        ([[0, -2]], None, "Position -2 is negative"),
        ([[0, 9]], [[1.0], [2.0]], "out of range"),
        ([[0.5, 1.0]], None, "must be integers"),
        (["ab", "cd"], None, "Ranking 0 is 'ab'"),
        ([{1, 2}], None, "list of items in order"),
        ("abc", None, "list of lists"),
    ],
)
def test_from_rankings_refuses(rankings, items, match):
    with pytest.raises(ValueError, match=match):
        from_rankings(rankings, items)


# --- ratings


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
    winner, loser = rated_pairs(ratings)
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
    assert len(rated_pairs(ratings, qid, max_pairs=39)[0]) == 40
    assert len(rated_pairs(np.arange(300.0))[0]) < 2300


@pytest.mark.parametrize("max_pairs", [0, 10**6])
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
        ([1.0, np.nan], {}, "1 of 2 ratings are NaN or infinite"),
        ([1.0, np.inf], {}, "1 of 2 ratings are NaN or infinite"),
        (["good", "bad"], {}, "finite numbers"),
        ([1.0, 1.0], {}, "No duel results"),
        ([1.0], {}, "No duel results"),
        ([1.0, 2.0], {"qid": [0, 1]}, "different ratings within a qid"),
        ([1.0, 2.0], {"qid": [0]}, "inconsistent numbers of samples"),
        ([1.0, 2.0], {"qid": [0, np.nan]}, "qid has NaN"),
        ([1.0, 2.0], {"max_pairs": -1}, "non-negative integer or None"),
        ([1.0, 2.0], {"max_pairs": 1.5}, "non-negative integer or None"),
    ],
)
def test_rated_pairs_refuses(ratings, kwargs, match):
    with pytest.raises(ValueError, match=match):
        rated_pairs(ratings, **kwargs)


def test_from_ratings_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        from_ratings([[1.0], [2.0]], [1.0, 2.0, 3.0])
