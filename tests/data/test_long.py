"""Rankings in long form, and texts that need no table, from the builders to the model."""

from collections import Counter

import numpy as np
import pytest
from duels_support import won_pairs
from numpy.testing import assert_allclose, assert_array_equal

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import from_choices, from_pairs, from_rankings, ranking_groups

pd = pytest.importorskip("pandas")

COLUMNS = {"ranker": "judge", "item": "wine", "rank": "place"}
LONG = pd.DataFrame(
    [
        ("ann", "red", 2.0),
        ("bob", "rosé", 1.0),
        ("ann", "white", 1.0),
        ("ann", "rosé", 2.0),
        ("bob", "white", 4.0),
        ("bob", "red", 4.0),
        ("bob", "port", 9.0),
    ],
    columns=["judge", "wine", "place"],
)


def stated(frame, adjacent=False):
    """(winner, loser) pairs that the ranks state, read row by row."""
    found = []
    for _, each in frame.groupby("judge"):
        levels = {p: i for i, p in enumerate(sorted(set(each["place"].dropna())))}
        rows = [(w, levels[p]) for w, p in zip(each["wine"], each["place"], strict=True) if p == p]
        for one, high in rows:
            for other, low in rows:
                if high < low and (not adjacent or low == high + 1):
                    found.append([one, other])
    return Counter(map(repr, found))


@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("items", [None, "table"])
def test_every_difference_of_ranks_is_a_duel(adjacent, items):
    table = ItemTable.from_names(["port", "red", "rosé", "white"])
    options = {**COLUMNS, "adjacent": adjacent}
    X, y = from_rankings(LONG, table if items else None, **options)
    named = table.names[X] if items else X
    assert won_pairs(named, y) == stated(LONG, adjacent)
    assert set(y.tolist()) == {0, 1}
    groups = ranking_groups(LONG, **options)
    for judge in ("ann", "bob"):
        of_one = groups == judge
        assert won_pairs(named[of_one], y[of_one]) == stated(LONG[LONG["judge"] == judge], adjacent)


def test_taken_whole_ties_share_a_rank():
    X, ranks = from_rankings(LONG, **COLUMNS, joint=True)
    assert ranking_groups(LONG, **COLUMNS, joint=True).tolist() == ["ann", "bob"]
    said = [
        {name: rank for name, rank in zip(names, row, strict=True) if name is not None}
        for names, row in zip(X.tolist(), ranks.tolist(), strict=True)
    ]
    assert said[0] == {"white": 1, "red": 2, "rosé": 2}
    assert said[1] == {"rosé": 1, "white": 2, "red": 2, "port": 3}
    assert ranks[0, -1] == 0
    shuffled = LONG.sample(frac=1.0, random_state=0).sort_values("judge", kind="stable")
    again = from_rankings(shuffled, **COLUMNS, joint=True)
    assert_array_equal(again[0], X)
    assert_array_equal(again[1], ranks)


def test_the_model_takes_what_comes_out():
    X, y = from_rankings(LONG, **COLUMNS)
    model = PairwisePreferenceRegressor(optimizer=None, noise_variance=0.5)
    wines = ["port", "red", "rosé", "white"]
    utility = model.fit(X, y).predict(wines)
    table = ItemTable.from_names(wines)
    places, labels = from_rankings(LONG, table, **COLUMNS)
    wanted = model.set_params(items=table).fit(places, labels).predict(wines)
    assert_allclose(utility, wanted, atol=1e-10)
    X, ranks = from_rankings(LONG, **COLUMNS, joint=True)
    whole = model.set_params(items=None).fit(X, ranks).predict(wines)
    assert whole.argmin() == utility.argmin() == 0
    users = ranking_groups(LONG, **COLUMNS)
    X, y = from_rankings(LONG, **COLUMNS)
    tastes = CollaborativePreferenceRegressor(optimizer=None).fit(X, y, users=users)
    assert sorted(tastes.users_) == ["ann", "bob"]


def test_what_is_left_out_is_counted_once():
    more = pd.DataFrame(
        [("cid", "red", 1.0), ("dot", "red", 3.0), ("dot", "port", 3.0), ("ann", "port", None)],
        columns=LONG.columns,
    )
    frame = pd.concat([LONG, more], ignore_index=True)
    for joint in (False, True):
        with pytest.warns(UserWarning, match="1 rows without a rank and 2 rankings") as seen:
            X, y = from_rankings(frame, **COLUMNS, joint=joint)
        assert len(seen) == 1 and seen[0].filename == __file__
        expected = from_rankings(LONG, **COLUMNS, joint=joint)
        assert_array_equal(X, expected[0])
        assert_array_equal(y, expected[1])
        assert len(ranking_groups(frame, **COLUMNS, joint=joint)) == len(X)


@pytest.mark.parametrize(
    ("frame", "options", "match"),
    [
        (LONG, {"ranker": "judge", "item": "wine"}, "Give all three"),
        ([["red", "port"]], COLUMNS, "list with ranker='judge'"),
        (LONG, {**COLUMNS, "rank": "zz"}, r"no column \['zz'\]"),
        (LONG.assign(wine=[None, *LONG["wine"][1:]]), COLUMNS, "missing in row 0"),
        (LONG.assign(place="first"), COLUMNS, r"finite numbers.*\['first', 'first', 'first'\]"),
        (LONG.assign(place=np.inf), COLUMNS, "finite numbers"),
        (LONG.assign(place=1), COLUMNS, "None of the 2 rankings tells two items apart"),
        (LONG.assign(place=np.nan), COLUMNS, "None of the 2 rankings"),
        (LONG.assign(wine="red"), COLUMNS, "'ann' ranks item 'red' twice"),
        (LONG, {**COLUMNS, "shown": [["red"]], "joint": True}, "in long form leave it out"),
        (LONG, {**COLUMNS, "adjacent": True, "joint": True}, "take one of them"),
    ],
)
def test_other_frames_are_refused(frame, options, match):
    with pytest.raises(ValueError, match=match):
        from_rankings(frame, **options)


@pytest.mark.parametrize("rankings", [[], [[0]], [[0, 0]], [[0, "a"]]])
def test_groups_are_refused_where_the_rankings_are(rankings):
    """Groups of rows that no builder makes are of no use."""
    for build in (from_rankings, ranking_groups):
        with pytest.raises(ValueError, match=r"[Rr]anking"):
            build(rankings)


# -- texts without a table -------------------------------------------------------------------


def test_texts_stay_names_in_every_builder():
    X, y = from_pairs(None, [["a", "b"], ["c", "a"]], ["b", "c"])
    assert (X.tolist(), y.tolist()) == ([["a", "b"], ["c", "a"]], [0, 1])
    X, y = from_choices([["c", "a", "b"], ["b", "a"]], ["a", "a"])
    assert (X.tolist(), y.tolist()) == ([["c", "a", "b"], ["b", "a", None]], [1, 1])
    X, y = from_rankings([["c", "a", "b"], ["b", "a"]])
    assert won_pairs(X, y) == Counter(map(repr, [["c", "a"], ["c", "b"], ["a", "b"], ["b", "a"]]))
    X, ranks = from_rankings([["c"]], joint=True, shown=[["a", "b", "c"]])
    assert (X.tolist(), ranks.tolist()) == ([["a", "b", "c"]], [[2, 2, 1]])


def test_the_place_of_a_name_tells_nothing_of_its_rank():
    first, _ = from_rankings([["c", "b", "a"]], joint=True)
    second, _ = from_rankings([["b", "a", "c"]], joint=True)
    assert first.tolist() == second.tolist() == [["a", "b", "c"]]
