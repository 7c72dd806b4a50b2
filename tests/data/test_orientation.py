"""Builders keep who won, and ties, whichever way they turn duels."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref.duels import DuelFrame, balance_orientation, from_columns, from_pairs

PAIRS = np.array([[0, 1], [2, 3], [4, 5], [1, 2], [3, 0]])
SIGNS = np.array([1, 0, -1, 1, 0])


def stated(X, y):
    """What each row says: unordered pair, and the winner or None."""
    return [
        (frozenset(pair), pair[0] if sign == 1 else pair[1] if sign == -1 else None)
        for pair, sign in zip(np.asarray(X).tolist(), y.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    "outcomes",
    [SIGNS, SIGNS * 1.0, SIGNS.tolist(), SIGNS.astype(object), SIGNS.astype(np.int8)],
    ids=["int", "float", "list", "object", "int8"],
)
def test_three_labels_pass_as_they_are(outcomes):
    X, y = from_pairs(None, PAIRS, outcomes)
    assert_array_equal(X, PAIRS)
    assert_array_equal(y, SIGNS)
    assert y.dtype == np.int64
    assert_array_equal(from_pairs(None, PAIRS, outcomes, ties=True)[1], SIGNS)


def test_counts_repeat_ties():
    X, y = from_pairs(None, PAIRS[:3], SIGNS[:3], counts=[1, 3, 2])
    assert y.tolist() == [1, 0, 0, 0, -1, -1]
    assert X.tolist() == PAIRS[[0, 1, 1, 1, 2, 2]].tolist()


@pytest.mark.parametrize("side", [1, -1])
def test_where_one_side_won_them_all_a_label_of_each_side_comes_out(side):
    given = side * np.array([1, 0, 1, 1, 0])
    X, y = from_pairs(None, PAIRS, given, ties=True)
    assert set(y.tolist()) == {-1, 0, 1}
    assert stated(X, y) == stated(PAIRS, given)
    X, y = from_pairs(None, PAIRS[:2], given[:2], ties=True)
    assert -1 in y and stated(X, y) == stated(PAIRS[:2], given[:2])
    assert from_pairs(None, PAIRS, 0 * given, ties=True)[1].tolist() == [0] * 5


def test_zero_beside_one_alone_is_a_defeat_unless_it_is_said_to_be_a_tie():
    given = [1, 0, 1, 1, 0]
    assert from_pairs(None, PAIRS, given)[1].tolist() == given
    X, y = from_pairs(None, PAIRS, given, ties=True)
    assert stated(X, y) == stated(PAIRS, np.array(given))
    assert from_pairs(None, PAIRS, [1, -1, 1, 1, -1])[1].tolist() == [1, -1, 1, 1, -1]


@pytest.mark.filterwarnings("ignore:One side won all")
def test_frames_keep_ties():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": PAIRS[:, 0], "b": PAIRS[:, 1], "sign": SIGNS})
    for options in ({}, {"ids": ("a", "b")}):
        X, y = from_columns(frame, ["a"], ["b"], "sign", **options)
        assert_array_equal(y, SIGNS)
        assert_array_equal(np.asarray(X)[..., -1], PAIRS)
    frame["sign"] = [1, 0, 1, 1, 0]
    for options in ({}, {"ids": ("a", "b")}):
        X, y = from_columns(frame, ["a"], ["b"], "sign", ties=True, **options)
        assert stated(np.asarray(X)[..., -1], y) == stated(PAIRS, frame["sign"].to_numpy())
        assert -1 in y
    items = pd.DataFrame({"size": np.arange(6.0)})
    X, y = from_pairs(items, PAIRS, SIGNS)
    assert isinstance(X, DuelFrame) and y.tolist() == SIGNS.tolist()


@pytest.mark.parametrize(
    ("outcomes", "ties", "match"),
    [
        (SIGNS, False, r"must be in \{0, 1\}, \{-1, 1\}"),
        (SIGNS + 1, True, r"With ties.*got \[2, 1, 0\]"),
        (SIGNS * 0.5, True, "With ties"),
        (SIGNS > 0, True, r"With ties.*True"),
        (["won", "tie", "lost", "won", "tie"], True, "'won' .*hold no winner"),
        ([1, 0, None, -1, 0], True, "With ties.*None"),
        ([1, 0, None, -1, 0], None, "NaN, None"),
        (SIGNS[:4], None, "got 4 outcomes for 5 duels"),
        (SIGNS[:4], True, "got 4 outcomes for 5 duels"),
    ],
)
def test_other_outcomes_are_refused(outcomes, ties, match):
    with pytest.raises(ValueError, match=match):
        from_pairs(None, PAIRS, outcomes, ties=ties)


def test_alternate_copies():
    X = PAIRS.copy()
    turned, _ = balance_orientation(X)
    turned[:] = 9
    assert_array_equal(X, PAIRS)
    with pytest.raises(ValueError, match=r"\(1, 3\)"):
        balance_orientation([[0, 1, 2]])


# Who was shown first, and by the pair who that was.
SHOWN = np.array([1, -1, 0, -1, 1])
FIRST = {
    frozenset(pair): pair[::shown][0] if shown else None
    for pair, shown in zip(PAIRS.tolist(), SHOWN.tolist(), strict=True)
}


@pytest.mark.parametrize("outcome", [None, "first", "second", "tied", "some", "both"])
@pytest.mark.parametrize("ids", [None, ("a", "b")])
def test_who_was_shown_first_is_told_of_the_duels_as_they_come_out(outcome, ids):
    pd = pytest.importorskip("pandas")
    columns = {
        "first": [1, 1, 1, 1, 1],
        "second": [0, 0, 0, 0, 0],
        "tied": [1, 0.5, 1, 1, 1],
        "some": ["first", None, "first", "first", "first"],
        "both": [1, 0, 1, 1, 0],
    }
    frame = pd.DataFrame({"a": PAIRS[:, 0], "b": PAIRS[:, 1], "shown": SHOWN, **columns})
    for order in ("shown", SHOWN.tolist(), frame["shown"]):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "1 of 5 duels are left out")
            X, y, found = from_columns(frame, ["a"], ["b"], outcome, ids=ids, order=order)
        X = np.asarray(X)[..., -1].astype(int)
        for pair, shown in zip(X.tolist(), found.tolist(), strict=True):
            assert FIRST[frozenset(pair)] == (pair[::shown][0] if shown else None)
        kept = [0, 2, 3, 4] if outcome == "some" else slice(None)
        assert len(y) == len(PAIRS[kept])
        assert (PAIRS[kept] != X).any() == (outcome != "both")


def test_duels_that_are_turned_unasked_warn():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": PAIRS[:, 0], "b": PAIRS[:, 1], "won": 1, "home": "b"})
    with pytest.warns(UserWarning, match=r"One side won all duels.*order=np\.ones\(len\(frame"):
        X, _ = from_columns(frame, ["a"], ["b"], "won")
    X_again, _, order = from_columns(frame, ["a"], ["b"], "won", order=np.ones(len(frame)))
    assert_array_equal(X, X_again)
    assert order.tolist() == [1, -1, 1, -1, 1]
    with pytest.raises(ValueError, match=r"no column \['zz'\]"):
        from_columns(frame, ["a"], ["b"], True, order="zz")
    with pytest.raises(ValueError, match="got 2 values of order for 5 rows"):
        from_columns(frame, ["a"], ["b"], True, order=[1, 1])
    with pytest.raises(ValueError, match=r"order says who was shown first.*dtype object"):
        from_columns(frame, ["a"], ["b"], True, order="home")
