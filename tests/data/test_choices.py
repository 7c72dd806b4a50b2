"""Choices and whole rankings: X and y state what people said, and nothing else."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref.duels import DuelFrame, ItemTable, from_choices, from_rankings

RNG = np.random.default_rng(0)
FEATURES = np.arange(6.0)[:, None]
NAMES = ["tea", "milk", "cola", "beer", "wine", "soup"]
TABLE = ItemTable(FEATURES, names=NAMES)
SETS = [[3, 0, 5, 1], [2, 4], [1, 5, 0]]
CHOSEN = [2, 0, 1]
RANKINGS = [[3, 0, 5, 1], [4, 2], [1, 5, 0], [0, 1, 2]]


def said(X, ranks):
    """Which item is stated to be above which, row by row."""
    X = np.asarray(X)
    X = X.reshape(X.shape[:2])
    found = []
    for items, row in zip(X.tolist(), np.asarray(ranks).tolist(), strict=True):
        stated = [(item, rank) for item, rank in zip(items, row, strict=True) if rank > 0]
        rest = items[len(stated) :]
        assert all(item == -1 or np.isnan(item) for item in rest)
        found.append({(int(a), int(b)) for a, i in stated for b, j in stated if i < j})
    return found


def pairs(ranking):
    return {(a, b) for i, a in enumerate(ranking) for b in ranking[i + 1 :]}


def named(lists):
    return [[NAMES[i] for i in row] for row in lists]


def padded(lists, pad, width=4):
    return [row + [pad] * (width - len(row)) for row in lists]


# -- choices -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "items"),
    [
        (SETS, None),
        (padded(SETS, -1), None),
        (np.array(padded(SETS, np.nan)), None),
        (named(SETS), ItemTable.from_names(NAMES)),
        (np.array(padded(named(SETS), None), dtype=object), ItemTable.from_names(NAMES)),
    ],
    ids=["lists", "array", "NaN", "names", "padded names"],
)
def test_sets_stay_as_they_were_shown(sets, items):
    X, y = from_choices(sets, CHOSEN, items)
    assert_array_equal(X, padded(SETS, -1))
    assert y.tolist() == CHOSEN and y.dtype == np.int64


def test_choices_may_be_named():
    names = ["soup", "cola", "soup"]  # what stands at CHOSEN
    for chosen in (names, np.array(names), np.array(names, dtype=object)):
        assert from_choices(named(SETS), chosen, TABLE)[1].tolist() == CHOSEN
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(padded(named(SETS), None))
    assert from_choices(frame, pd.Series(names), TABLE)[1].tolist() == CHOSEN
    places = pd.Series(CHOSEN, dtype=object)
    assert from_choices(frame, places, TABLE)[1].tolist() == CHOSEN


def test_features_come_out_where_there_are_any():
    X, _ = from_choices(SETS, CHOSEN, FEATURES)
    assert isinstance(X, DuelFrame) and X.shape == (3, 4, 1)
    assert_array_equal(X.pairs, padded(SETS, -1))
    assert_array_equal(np.asarray(X)[2, :, 0], [1.0, 5.0, 0.0, np.nan])
    X, _ = from_choices(named(SETS[:1]), [0], TABLE)
    assert_array_equal(X, FEATURES[SETS[:1]])
    pd = pytest.importorskip("pandas")
    X, _ = from_choices(named(SETS), CHOSEN, pd.DataFrame({"heat": FEATURES[:, 0]}, index=NAMES))
    assert X.feature_names.tolist() == ["heat"] and X.first["heat"].tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("items", [None, FEATURES])
def test_the_worst_is_below_all_others(items):
    X, ranks = from_choices(SETS, CHOSEN, items, worst=True)
    worst = [row[place] for row, place in zip(SETS, CHOSEN, strict=True)]
    expected = [{(i, w) for i in row if i != w} for row, w in zip(SETS, worst, strict=True)]
    assert said(X, ranks) == expected


def test_sets_of_two_are_duels_if_all_are():
    two = [[3, 0], [2, 4], [1, 5]]
    X, y = from_choices(two, [0, 1, 1])
    assert X.tolist() == two and y.tolist() == [1, 0, 0]
    assert from_choices(two, [0, 1, 1], worst=True)[1].tolist() == [0, 1, 1]
    X, y = from_choices(two, [0, 0, 0], FEATURES)
    assert_array_equal(X, FEATURES[two])  # as shown: order may matter
    assert y.tolist() == [1, 1, 1]
    assert from_choices([*two, [0, 1, 2]], [0, 1, 1, 2])[1].tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("sets", "chosen", "items", "match"),
    [
        (SETS, [4, 0, 1], None, "row 0 is 4, of 4 items"),
        (SETS, [2, 2, 1], None, "row 1 is 2, of 2 items"),
        (SETS, [2, 0, -1], None, "row 2 is -1, of 3"),
        (SETS, [2, 0], None, "got 2 choices for 3 sets"),
        (SETS, [2.0, 0.0, np.nan], None, "1 choices are missing, first in row 2"),
        (named(SETS), ["soup", None, "soup"], TABLE, "1 choices are missing, first in row 1"),
        (SETS, [2.0, 0.0, 1.0], None, "must be integers, places.*float64"),
        (SETS, [True, False, True], None, "got values of type bool"),
        (SETS, ["soup", "cola", "soup"], None, "names of items that have some"),
        (named(SETS), ["soup", "tea", "soup"], TABLE, "row 1, 'tea', is not in its set"),
        (named(SETS), ["soup", "cola", "rum"], TABLE, "unknown name.*'rum'"),
        ([[0, 1], [2]], [0, 0], None, r"Set 1 has 1 item\(s\).*two or more"),
        ([[0, 1], []], [0, 0], None, r"Set 1 has 0 item\(s\)"),
        ([[0, 1, 0]], [0], None, "Set 0 names item 0 twice"),
        ([[0, -1, 1]], [0], None, "Set 0 has -1, NaN or None before its end"),
        ([[0, 9]], [0], FEATURES, "Position 9 is out of range"),
        ([], [], None, "Got no set"),
        ("ab", [0], None, "Sets must be a list of lists"),
    ],
)
def test_from_choices_refuses(sets, chosen, items, match):
    with pytest.raises(ValueError, match=match):
        from_choices(sets, chosen, items)


# -- rankings taken whole --------------------------------------------------------------------


@pytest.mark.parametrize("items", [None, FEATURES, TABLE], ids=["none", "array", "names"])
def test_a_ranking_says_what_its_pairs_say(items):
    X, ranks = from_rankings(named(RANKINGS) if items is TABLE else RANKINGS, items, joint=True)
    assert len(X) == 4 and ranks.shape == (4, 4)
    assert said(X, ranks) == [pairs(ranking) for ranking in RANKINGS]


def test_the_order_of_a_set_tells_nothing_of_its_ranks():
    sets = [RNG.permutation(6)[: 2 + i % 4].tolist() for i in range(60)]
    turned = [RNG.permutation(row).tolist() for row in sets]
    X, ranks = from_rankings(sets, joint=True)
    same, others = from_rankings(turned, joint=True)
    assert_array_equal(X, same)
    assert not np.array_equal(ranks, others)
    lowest = [row.tolist().index(row[row >= 0].min()) for row in X]
    threes = [place for place, row in zip(lowest, sets, strict=True) if len(row) == 3]
    assert sorted(np.bincount(threes)) == [5, 5, 5]  # no place is favoured


def test_what_was_shown_beside_the_ranked_is_below_them():
    shown = [[3, 0, 5, 1], [2, 4, 0], [1, 5]]
    rankings = [[5, 3], [0], [1, 5]]
    X, ranks = from_rankings(rankings, shown=shown, joint=True)
    assert_array_equal(X, padded(shown, -1))
    for stated, ranking, row in zip(said(X, ranks), rankings, shown, strict=True):
        rest = set(row) - set(ranking)
        assert stated == pairs(ranking) | {(i, j) for i in ranking for j in rest}
    assert ranks[1].tolist() == [2, 2, 1, 0]  # a choice
    again = from_rankings(named(rankings), TABLE, shown=named(shown), joint=True)
    assert_array_equal(again[1], ranks)
    assert_array_equal(again[0].pairs, X)


@pytest.mark.parametrize(
    ("rankings", "options", "match"),
    [
        (RANKINGS, {"joint": True, "adjacent": True}, "adjacent=True makes duels"),
        (RANKINGS, {"shown": RANKINGS}, "pass joint=True"),
        ([[0, 1], [2]], {"joint": True}, r"Ranking 1 has 1 item\(s\)"),
        ([], {"joint": True}, "Got no ranking"),
        ([[0, 1, 0]], {"joint": True}, "Ranking 0 names item 0 twice"),
        ([[0], [1]], {"joint": True, "shown": [[0, 1]]}, "got 2 rankings for 1 sets"),
        ([[0], []], {"joint": True, "shown": [[0, 1], [1, 2]]}, "Ranking 1 is empty"),
        ([[0, 3]], {"joint": True, "shown": [[0, 1, 2]]}, r"Ranking 0, \[0, 3\], has an item"),
        ([[0], [1]], {"joint": True, "shown": [[0, 1], [2, 3]]}, r"Ranking 1, \[1\], has an item"),
        ([[0]], {"joint": True, "shown": [[0]]}, r"Set 0 has 1 item\(s\)"),
    ],
)
def test_joint_rankings_are_refused(rankings, options, match):
    with pytest.raises(ValueError, match=match):
        from_rankings(rankings, **options)
