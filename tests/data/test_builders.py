"""Builders of duel arrays: orientation, outcomes, from pairs, columns and ranked lists."""

import warnings
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from duels_support import FRAME, won_pairs
from scipy.sparse import csr_array

from skpref.duels import (
    ItemTable,
    balance_orientation,
    from_columns,
    from_pairs,
    from_rankings,
    from_wins,
    parse_outcomes,
    ranking_groups,
)

pd = pytest.importorskip("pandas")

# --- outcomes and orientation


def test_alternate_keeps_the_winners_and_shows_both_outcomes():
    pairs = np.random.default_rng(0).normal(size=(5, 2, 3))
    before = pairs.copy()
    X, y = balance_orientation(pairs)
    assert won_pairs(X, y) == won_pairs(pairs, np.ones(5))
    assert set(y.tolist()) == {0, 1}
    assert y.dtype == np.int64
    assert np.array_equal(pairs, before)


def test_alternate_takes_texts():
    X, y = balance_orientation([["good", "bad"], ["fair", "poor"]])
    assert (X.tolist(), y.tolist()) == ([["good", "bad"], ["poor", "fair"]], [1, 0])


@pytest.mark.parametrize("pairs", [[1, 2], [[1, 2, 3]]])
def test_alternate_needs_pairs(pairs):
    with pytest.raises(ValueError, match="second axis must have length 2"):
        balance_orientation(pairs)


@pytest.mark.parametrize("outcomes", [[1, 0, 1], [1, -1, 1], [True, False, True], [1.0, 0.0, 1.0]])
def test_first_won_reads_every_kind_of_label(outcomes):
    assert parse_outcomes(outcomes).tolist() == [True, False, True]
    assert parse_outcomes(pd.Series(outcomes)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("outcomes", "match"),
    [
        ([1, 0, -1], r"Outcomes of duels must be in \{0, 1\}.*Encode them"),
        ([1, 2], r"Outcomes of duels must be in \{0, 1\}"),
        ([0.5, 1.0], r"Outcomes of duels must be in \{0, 1\}"),
        (["1", "0"], r"Outcomes of duels must be in \{0, 1\}"),
        ([1.0, np.nan], "Outcomes y contain NaN, None or infinity in 1 of 2 places. Leave out"),
        ([None, 1], "Outcomes y contain NaN, None or infinity in 1 of 2 places. Leave out"),
        ([np.inf, 1], "Outcomes y contain NaN, None or infinity in 1 of 2 places. Leave out"),
    ],
)
def test_first_won_refuses_other_labels(outcomes, match):
    with pytest.raises(ValueError, match=match):
        parse_outcomes(np.array(outcomes, dtype=object))


# --- from_pairs


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
    assert (np.asarray(X).ravel().tolist(), y.tolist()) == ([0.3, 0.1], [1])


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
        (None, [["a", 1]], None, "names must all be texts"),
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
        (FRAME.to_numpy(), np.eye(3), None, "a square table .* is for from_wins"),
        (FRAME.to_numpy(), [[0, 1], [2]], None, "at least one row of two items"),
        (FRAME.to_numpy(), [[0, 1]], [1, 0], "got 2 outcomes for 1 duels"),
        (FRAME.to_numpy(), [[0, 1], [1, 2]], [0.3, 1], "leave out ties"),
    ],
)
def test_from_pairs_refuses(items, pairs, outcomes, match):
    with pytest.raises(ValueError, match=match):
        from_pairs(items, pairs, outcomes)


def test_counts_repeat_the_pairs():
    pairs, counts = [["c", "a"], ["c", "b"], ["a", "b"]], [2, 0, 3]
    expected = from_pairs(FRAME, [pairs[0]] * 2 + [pairs[2]] * 3)
    found = from_pairs(FRAME, pairs, counts=counts)
    assert won_pairs(*found) == won_pairs(*expected)
    assert set(found[1].tolist()) == {0, 1}
    found = from_pairs(FRAME, pairs, [1, 1, -1], counts=np.array(counts) * 1.0)
    assert won_pairs(*found) == won_pairs(*from_pairs(FRAME, [["c", "a"]] * 2 + [["b", "a"]] * 3))


@pytest.mark.parametrize(
    "counts, match",
    [
        ([1, 2], r"counts must have shape \(3,\), got \(2,\)"),
        ([1, 2, -1], "whole numbers, 0 or more"),
        ([1, 2, 0.5], "whole numbers, 0 or more"),
        ([1, 2, np.nan], "whole numbers, 0 or more"),
        (["1", "2", "3"], "whole numbers, 0 or more"),
        ([0, 0, 0], "all 0, so no duel results"),
    ],
)
def test_counts_must_be_counts(counts, match):
    with pytest.raises(ValueError, match=match):
        from_pairs(None, [[0, 1], [1, 2], [0, 2]], counts=counts)


# --- from_wins

WINS = np.array([[0, 3, 1], [2, 0, 0], [0, 4, 0]])


def test_every_win_is_a_duel_whatever_holds_the_table():
    listed = [pair for pair in np.ndindex(3, 3) for _ in range(WINS[pair])]
    expected = won_pairs(listed, np.ones(10))
    for wins in (WINS, WINS.tolist(), csr_array(WINS), WINS * 1.0, pd.DataFrame(WINS)):
        X, y = from_wins(wins)
        assert won_pairs(X, y) == expected
        assert set(y.tolist()) == {0, 1}


def test_wins_of_named_items_are_looked_up_by_name():
    names = ["c", "a", "b"]
    wins = pd.DataFrame(WINS, index=names, columns=names)
    listed = [[names[i], names[j]] for i, j in np.ndindex(3, 3) for _ in range(WINS[i, j])]
    expected = won_pairs(*from_pairs(FRAME, listed))
    assert won_pairs(*from_wins(wins, FRAME)) == expected
    assert won_pairs(*from_wins(wins[["a", "b", "c"]], FRAME)) == expected
    table = ItemTable.from_names(wins.index)
    assert won_pairs(*from_wins(wins, table)) == won_pairs(*from_pairs(table, listed))
    assert won_pairs(*from_wins(WINS, table)) == won_pairs(*from_wins(WINS))


@pytest.mark.parametrize(
    "wins, items, match",
    [
        (WINS[:2], None, r"wins must have shape \(2, 2\), got \(2, 3\)"),
        (WINS - 1, None, "whole numbers"),
        (WINS + np.eye(3, dtype=int), None, "Item 0 has wins against itself"),
        (WINS * 0, None, "no duel results"),
        (pd.DataFrame(WINS, index=list("abc"), columns=list("abd")), None, "same items along both"),
        (WINS[:2, :2], FRAME, "got 2 rows of wins for 3 items"),
        (pd.DataFrame(WINS, index=list("abz"), columns=list("abz")), FRAME, "'z'"),
        (3, None, "must have shape"),
    ],
)
def test_from_wins_refuses(wins, items, match):
    with pytest.raises(ValueError, match=match):
        from_wins(wins, items)


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


def test_pairs_to_predict_stay_as_they_are():
    frame = pd.DataFrame({"a": ["u", "v", "w"], "b": ["v", "w", "u"], "day": [3, 1, 2]})
    X, y, order, day = from_columns(
        frame, [], [], False, ids=("a", "b"), order=[1, -1, 0], time="day"
    )
    assert X.first["id"].tolist() == ["u", "v", "w"] and y.shape == (0,)
    assert order.tolist() == [1, -1, 0] and day.tolist() == [3, 1, 2]
    floats = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]})
    X, y = from_columns(floats, [0], [1], False)
    assert X[:, 0, 0].tolist() == [1.0, 2.0, 3.0] and y.shape == (0,)
    pairs = [["u", "v"], ["v", "w"], ["w", "u"]]
    table = ItemTable([[0.0], [1.0], [2.0]], names=["u", "v", "w"])
    X, y = from_pairs(table, pairs, False, counts=[1, 2, 1])
    assert X[:, 0, 0].tolist() == [0.0, 1.0, 1.0, 2.0] and y.shape == (0,)
    first = from_pairs(table, pairs, True)
    assert np.array_equal(first[0], from_pairs(table, pairs)[0]) and first[1].tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="got outcomes=False"):
        from_pairs(table, pairs, False, ties=True)
    for options in ({"ties": True}, {"grades": 2}):
        with pytest.raises(ValueError, match=r"got outcome=False.*leave both out"):
            from_columns(frame, [], [], False, ids=("a", "b"), **options)


def test_who_won_is_said_or_a_warning_says_how_it_is_read():
    frame = pd.DataFrame({"a": ["u", "v", "w"], "b": ["v", "w", "u"]})
    with pytest.warns(UserWarning, match="outcome=True if it is, or outcome=False for pairs"):
        X, y = from_columns(frame, [], [], ids=("a", "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same, labels = from_columns(frame, [], [], True, ids=("a", "b"))
    assert same.first.equals(X.first) and labels.tolist() == y.tolist() == [1, 0, 1]


def test_from_columns_alternates_without_outcomes():
    X, y = from_columns(MATCHES, "lx", "rx", True)
    assert won_pairs(X, y) == won_pairs(MATCHES[["lx", "rx"]].to_numpy(float)[..., None], [1] * 3)
    assert y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "frame, first, second, outcome, match",
    [
        (MATCHES.to_numpy(), ["lx"], ["rx"], None, "needs a DataFrame"),
        (MATCHES, ["lx", "ly"], ["rx"], None, "got 2 columns for the first item and 1"),
        (MATCHES, [], [], None, "same features of both"),
        (MATCHES, ["lx"], ["zz"], None, r"no column \['zz'\]"),
        (MATCHES, ["lx"], ["rx"], "zz", r"no column \['zz'\]"),
        (MATCHES, ["lx"], ["rx"], "lx", r"Outcomes of duels must be in \{0, 1\}"),
    ],
)
def test_from_columns_refuses(frame, first, second, outcome, match):
    with pytest.raises(ValueError, match=match):
        from_columns(frame, first, second, outcome)


@pytest.mark.parametrize(
    "first, second, names",
    [
        (["home_age", "home_rank"], ["away_age", "away_rank"], ["age", "rank"]),
        (["price_a", "size_a"], ["price_b", "size_b"], ["price", "size"]),
        (["a.wins_last_year"], ["b.wins_last_year"], ["wins_last_year"]),
        (["age (home)"], ["age (away)"], ["age"]),
        (["lx", "ly"], ["rx", "ry"], ["lx", "ly"]),  # no word in common
        (["left", "x_1"], ["right", "x_2"], ["left", "x_1"]),
        (["a_1", "b_1"], ["a_2", "c_2"], ["a_1", "b_1"]),  # two words differ
        (["a_x", "a_y"], ["b_x", "a_z"], ["a_x", "a_y"]),
        (["x_1", "x_2"], ["x_3", "x_4"], ["x_1", "x_2"]),  # both would be "x"
        (["age", "court"], ["age2", "court"], ["age", "court"]),
    ],
)
def test_features_of_a_side_are_named_by_what_both_have_in_common(first, second, names):
    columns = {key: [1.0, 2.0] for key in first + second}
    X, _ = from_columns(pd.DataFrame(columns), first, second, True)
    assert X.feature_names.tolist() == names
    chosen = [f"n{i}" for i in range(len(first))]
    X, _ = from_columns(pd.DataFrame(columns), first, second, True, names=chosen)
    assert X.columns.tolist() == chosen


def test_columns_keep_texts_categories_and_gaps():
    frame = MATCHES.assign(lk=["p", None, "q"], rk=pd.Categorical(["q", "p", "q"]))
    X, _ = from_columns(frame.assign(rx=[7, np.nan, 9]), ["lx", "lk"], ["rx", "rk"], "won")
    assert X.first["lk"].isna().tolist() == [False, True, False]
    assert X.second["lk"].tolist() == ["q", "p", "q"]
    assert X.second["lx"].isna().tolist() == [False, True, False]


def test_columns_without_names_make_arrays():
    X, y = from_columns(pd.DataFrame([[1.0, 2.0, 0], [3.0, 4.0, 1]]), [0], [1], 2)
    assert isinstance(X, np.ndarray)
    assert (X[..., 0].tolist(), y.tolist()) == ([[1.0, 2.0], [3.0, 4.0]], [0, 1])


def test_ids_come_first():
    frame = MATCHES.assign(who=["ann", "bob", "cid"], whom=["bob", "cid", "ann"])
    X, y = from_columns(frame, "lx", "rx", "won", ids=("who", "whom"))
    assert X.id_column == "id" and X.columns.tolist() == ["id", "lx"]
    assert X.second["id"].tolist() == ["bob", "cid", "ann"] and y.tolist() == [1, 0, 0]
    alone, _ = from_columns(frame, [], [], "won", ids=("who", "whom"))
    assert alone.columns.tolist() == ["id"]


@pytest.mark.parametrize(
    "frame, options, match",
    [
        (MATCHES.assign(i=["a", "b", None]), {"ids": ("i", "rx")}, "id is missing in row 2"),
        (MATCHES.assign(i=[9, 8, 8]), {"ids": ("i", "rx")}, "Row 1 sets 8 against itself"),
        (MATCHES, {"ids": "lx"}, "got ids=.* give two columns"),
        (MATCHES, {"ids": ("lx", "zz")}, r"no column \['zz'\]"),
        (MATCHES, {"names": ["a", "b"]}, "got 2 names for 1 features"),
        (MATCHES, {"ids": ("lx", "rx"), "names": ["id"]}, "give names= others"),
        (MATCHES[:0], {}, "no row"),
    ],
)
def test_from_columns_refuses_ids_and_names(frame, options, match):
    with pytest.raises(ValueError, match=match):
        from_columns(frame, ["ly"], ["ry"], True, **options)


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


def test_a_frame_whose_names_are_a_column_is_told_to_index_by_it():
    drinks = pd.DataFrame({"name": ["tea", "cola"], "sugar": [0.0, 0.9]})
    with pytest.raises(ValueError, match=r"unknown name.*'tea', 'cola'.*set_index\(column\)"):
        from_pairs(drinks, [["tea", "cola"]])
    X, _ = from_pairs(drinks.set_index("name"), [["tea", "cola"]])
    assert X.first["sugar"].tolist() == [0.0]
