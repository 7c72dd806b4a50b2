"""Outcomes as people write them, and what is said of those that cannot be read."""

import warnings

import numpy as np
import pytest
from duels_support import FRAME, won_pairs
from numpy.testing import assert_array_equal

from skpref.duels import ItemTable, from_columns, from_pairs

pd = pytest.importorskip("pandas")

# Who met whom, and the truth: 1 the first, -1 the second, 0 neither.
BOUTS = pd.DataFrame(
    {
        "model_a": ["ann", "Bob", "cid", "ann", "dot"],
        "model_b": ["Bob", "cid", "ann", "dot", "Bob"],
        "size_a": [1.0, 2.0, 3.0, 1.0, 4.0],
        "size_b": [2.0, 3.0, 1.0, 4.0, 2.0],
    }
)
TRUTH = [1, -1, 0, -1, 1]
IDS = ("model_a", "model_b")
WAYS = {
    "names": ["ann", "cid", "tie", "dot", "dot"],
    "names written badly": [" ANN", "cid ", "Tie (both bad)", "DOT", "Dot  "],
    "columns": ["model_a", "model_b", "draw", "model_b", "model_a"],
    "columns written badly": ["Model A", "MODEL_B ", "tied", "model-b", "model a"],
    "words of the columns": ["a", "B", "tie (bothbad)", "b", "A"],
    "places": ["first", "second", "both_bad", "Second", "FIRST"],
    "hands": ["left", "Right", "equal", "right", "LEFT"],
    "other words for a tie": ["ann", "cid", "No difference", "dot", "dot"],
    "one more": ["ann", "cid", "same", "dot", "dot"],
    "a mixture": ["ann", "model_b", 0.5, "b", "first"],
    "halves": [1.0, 0.0, 0.5, 0.0, 1.0],
    "signs": TRUTH,
    "categories": pd.Categorical(["ann", "cid", "tie", "dot", "dot"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_says_the_same(way):
    frame = BOUTS.assign(winner=WAYS[way])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, y = from_columns(frame, "size_a", "size_b", "winner", ids=IDS)
    assert y.tolist() == TRUTH
    assert X.first["id"].tolist() == BOUTS["model_a"].tolist()
    again = from_columns(frame, "size_a", "size_b", frame["winner"], ids=IDS)
    assert again[1].tolist() == TRUTH


def test_without_ties_labels_are_two():
    frame = BOUTS[:2].assign(winner=["ann", "cid"])
    assert from_columns(frame, [], [], "winner", ids=IDS)[1].tolist() == [1, 0]
    assert from_columns(frame, [], [], "winner", ids=IDS, ties=True)[1].tolist() == [1, -1]


def test_sides_are_those_of_the_arguments():
    frame = BOUTS.assign(winner=WAYS["columns"])
    turned = ("model_b", "model_a")
    _, y = from_columns(frame, "size_b", "size_a", "winner", ids=turned)
    assert y.tolist() == [-label for label in TRUTH]
    _, y = from_columns(
        frame.assign(winner=WAYS["words of the columns"]), "size_b", "size_a", "winner"
    )
    assert y.tolist() == [-label for label in TRUTH]
    games = pd.DataFrame(
        {"home_age": [1.0, 2.0], "away_age": [2.0, 5.0], "result": ["Home", "away"]}
    )
    assert from_columns(games, "home_age", "away_age", "result")[1].tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore:One side won all")
def test_numbers_that_are_names_are_read_as_names():
    frame = pd.DataFrame({"one": [7, 8, 9], "two": [8, 9, 7], "winner": [7.0, 9.0, np.nan]})
    with pytest.warns(UserWarning, match="1 of 3 duels are left out, first in row 2"):
        X, y = from_columns(frame, [], [], "winner", ids=("one", "two"))
    assert (len(X), y.tolist()) == (2, [1, 0])


def test_what_is_left_out_is_counted_once():
    more = BOUTS[:1].assign(winner="bob")
    frame = pd.concat([BOUTS.assign(winner=["ann", "Zoe", None, "  ", "tie"]), more])
    with pytest.warns(UserWarning) as seen:
        X, y = from_columns(frame, "size_a", "size_b", "winner", ids=IDS, ties=False)
    assert len(seen) == 1 and seen[0].filename == __file__
    text = str(seen[0].message)
    assert "4 of 6 duels are left out, first in row 1" in text
    for part in ("2 without an outcome", "1 whose outcome", "'Zoe' (1)", "1 ties", "judges, order"):
        assert part in text
    assert y.tolist() == [1, 0]
    assert X.first["size"].tolist() == [1.0] * 2 and X.second["id"].tolist() == ["Bob"] * 2


def test_halves_may_be_left_out():
    with pytest.warns(UserWarning, match=r"1 of 5 duels .* row 2: 1 ties \(ties=False\)"):
        _, y = from_columns(BOUTS, "size_a", "size_b", WAYS["halves"], ties=False)
    assert y.tolist() == [1, 0, 0, 1]


def test_rows_are_named_as_they_came():
    frame = BOUTS.assign(winner=[None, "cid", "ann", "ann", "dot"])
    frame.loc[3, "model_b"] = "ann"
    with (
        pytest.warns(UserWarning, match="1 of 5 duels"),
        pytest.raises(ValueError, match="Row 3 sets 'ann' against itself"),
    ):
        from_columns(frame, [], [], "winner", ids=IDS)


@pytest.mark.parametrize(
    ("winner", "options", "match"),
    [
        (["x"] * 5, {"ids": IDS}, r"in \{0, 1\}.*the name of either item, 'model_a' or 'model_b'"),
        (["ann"] * 5, {}, r"Got values such as \['ann'\].* Names need ids="),
        (
            ["model_a", "other", "tie", "model_a", "other"],
            {},
            r"'other' \(2\), .* wins of the first",
        ),
        (["won", "lost", "tie", "won", "lost"], {"ties": True}, r"'won' \(2\).*hold no winner"),
        (["tie"] * 5, {"ids": IDS, "ties": False}, r"\['tie'\], and none says who won"),
        (["ann", "cid"], {"ids": IDS}, "got 2 outcomes for 5 duels"),
        (["first", "second"], {}, "got 2 outcomes for 5 duels"),
        ([1.0, 0.5, np.nan, 0.0, 1.0], {"ids": IDS}, "NaN, None or infinity in 1 of 5"),
        ([1.0, 0.3, 0.5, 0.0, 1.0], {"ids": IDS}, r"must be in \{0, 1\}"),
    ],
)
def test_what_cannot_be_read_is_refused(winner, options, match):
    with pytest.raises(ValueError, match=match):
        from_columns(BOUTS, "size_a", "size_b", winner, **options)


def test_a_name_that_is_the_word_for_the_other_side_is_refused():
    sides = ("home", "away")
    frame = pd.DataFrame({"home": ["x", "away"], "away": ["y", "x"], "winner": ["x", "away"]})
    with pytest.raises(ValueError, match="row 1 is 'away', the word for a side and also the name"):
        from_columns(frame, [], [], "winner", ids=sides)
    with pytest.raises(ValueError, match="row 0 is 'away', the word for a side and also the name"):
        from_columns(frame.assign(winner=["away", "x"]), [], [], "winner", ids=sides)
    assert from_columns(frame.assign(winner="x"), [], [], "winner", ids=sides)[1].tolist() == [1, 0]


def test_names_come_before_words_that_no_column_has():
    frame = pd.DataFrame(
        {"one": ["b", "b", "c"], "two": ["a", "c", "d"], "winner": ["a", "b", "a"]}
    )
    with pytest.warns(UserWarning, match=r"1 of 3 duels .* first in row 2: .*such as 'a' \(1\)"):
        X, y = from_columns(frame, [], [], "winner", ids=("one", "two"))
    assert np.where(y == 1, X.first["id"], X.second["id"]).tolist() == ["a", "b"]


def test_names_that_differ_in_case_alone_are_told_apart():
    frame = pd.DataFrame({"one": ["GPT", "GPT"], "two": ["gpt", "gpt"], "winner": ["gpt", "GPT"]})
    assert from_columns(frame, [], [], "winner", ids=("one", "two"))[1].tolist() == [0, 1]
    with pytest.raises(ValueError, match="none says who won"):
        from_columns(frame[:1].assign(winner="Gpt"), [], [], "winner", ids=("one", "two"))


def test_pairs_take_names_and_words_too():
    pairs = [["a", "c"], ["b", "c"], ["a", "b"]]
    X, y = from_pairs(FRAME, pairs, ["c", " B", "tie"])
    assert_array_equal(np.asarray(X), FRAME.to_numpy()[[[0, 2], [1, 2], [0, 1]]])
    assert y.tolist() == [-1, 1, 0]
    X, y = from_pairs(FRAME.to_numpy(), [[0, 2], [1, 2]], ["second", "first"], counts=[2, 1])
    assert y.tolist() == [0, 0, 1]
    assert from_pairs(FRAME, pairs, [0.5, 1, 0])[1].tolist() == [0, 1, -1]
    with pytest.warns(UserWarning, match="1 of 3 duels are left out, first in row 1"):
        X, y = from_pairs(FRAME, pairs, ["c", None, "a"], counts=[1, 5, 2])
    assert won_pairs(X, y) == won_pairs([[[1.0], [0.0]], *[[[0.0], [0.5]]] * 2], [1] * 3)
    numbered = ItemTable([[0.1], [0.2], [0.3]], names=[10, 20, 30])
    X, y = from_pairs(numbered, [[10, 20], [30, 10]], [20, 30])
    assert (X[..., 0].tolist(), y.tolist()) == ([[0.1, 0.2], [0.3, 0.1]], [0, 1])


def test_a_dict_of_columns_is_a_table():
    table = {"a": [1.0, 2.0, 3.0], "b": (2.0, 3.0, 1.0), "won": np.array([1, 0, 1])}
    X, y = from_columns(table, "a", "b", "won")
    X_frame, y_frame = from_columns(pd.DataFrame(table), "a", "b", "won")
    np.testing.assert_array_equal(X, X_frame)
    np.testing.assert_array_equal(y, y_frame)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("votes.csv", r"a dict of columns; got str\. Read a file by pandas\.read_csv"),
        ([[1.0, 2.0]], "a dict of columns; got list"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "one length"),
        ({"a": [[1.0]], "b": [[1.0]]}, "one dimension"),
    ],
    ids=["path", "rows", "lengths", "nested"],
)
def test_what_is_no_table_is_refused(table, match):
    with pytest.raises(ValueError, match=match):
        from_columns(table, "a", "b")


@pytest.mark.parametrize("score", ["2-1", "3 : 0", "6\u20134", "1/2-1/2"])
def test_scores_are_named(score):
    frame = pd.DataFrame({"home": [0.1, 0.2], "away": [0.3, 0.4], "result": [score, "0-0"]})
    with pytest.raises(ValueError, match=r"look like scores.*numpy\.sign"):
        from_columns(frame, "home", "away", "result")
    frame["result"] = ["2-1 points", "home win"]
    with pytest.raises(ValueError) as refused:
        from_columns(frame, "home", "away", "result")
    assert "scores" not in str(refused.value)


@pytest.mark.parametrize("said", ["HDAA", "hdaa"])
def test_matches_are_told_by_home_draw_and_away(said):
    """An "A" is the side that is away, and not the first, wherever an "H" stands."""
    frame = pd.DataFrame(
        {"home": ["ann", "bob", "cid", "ann"], "away": ["bob", "cid", "ann", "cid"]}
    ).assign(result=list(said))
    X, y = from_columns(frame, [], [], "result", ids=("home", "away"))
    assert X.first["id"].tolist() == frame["home"].tolist()
    assert y.tolist() == [1, 0, -1, -1]


def test_letters_that_are_ids_are_whom_they_name():
    frame = pd.DataFrame({"one": ["H", "A", "D"], "two": ["A", "D", "H"], "won": ["A", "A", "D"]})
    assert from_columns(frame, [], [], "won", ids=("one", "two"))[1].tolist() == [0, 1, 1]
