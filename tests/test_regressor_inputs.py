"""Every bad input to fit has an error that says what came, what is allowed and what to do."""

import numpy as np
import pytest
from inputs_support import ITEMS, PAIRS, QID, RATINGS, TABLE, WON, X, Y, cases, model, put
from numpy.testing import assert_array_equal
from scipy import sparse

# -- fit: X --------------------------------------------------------------------------------


@cases(
    ("bad", "match"),
    ("NaN", put(X, (3, 0, 0), np.nan), r"NaN or infinity in 1 of 20 duels, first in row 3.*Leave"),
    ("inf", put(X, (3, 0, 0), -np.inf), r"NaN or infinity in 1 of 20 duels.*Itemwise\(SimpleImp"),
    ("too big for a float", np.full((1, 2, 1), 10**400, dtype=object), r"must be numeric.*object"),
    ("one side", X[:, :1], r"\(n_duels, 2, n_features\), got \(20, 1, 2\).*np.stack"),
    ("sides last", X.transpose(0, 2, 1)[:, :1], r"got \(20, 1, 2\)"),
    ("4-D", np.zeros((20, 2, 2, 2)), r"X may be duel arrays.*got shape \(20, 2, 2, 2\)"),
    ("no features", X[:, :, :0], r"0 feature\(s\).*ItemTable.from_names\(names\)"),
    ("texts", np.array([[["a"], ["b"]]] * 20), r"must be numeric, got dtype <U1.*Itemwise"),
    ("objects", np.full((20, 2, 1), object()), r"must be numeric, got dtype object"),
    ("complex", X + 1j, r"Complex data not supported: X has dtype complex128.*X\.real"),
    ("dates", X.astype("datetime64[s]"), r"X must be numeric, got dtype datetime64\[s\].*days"),
    ("durations", X.astype("timedelta64[s]"), r"X must be numeric, got dtype timedelta64"),
    ("records", np.zeros((20, 2, 2), dtype=[("a", float)]), r"X must be numeric, got dtype \[\("),
    ("ragged", [[[1.0], [2.0]], [[1.0]]], r"could not be read as an array.*X may be duel arrays"),
)
def test_duel_arrays(bad, match):
    with pytest.raises(ValueError, match=match):
        model().fit(bad, Y)


@cases(
    ("bad", "match"),
    ("NaN", put(ITEMS, (0, 0), np.nan), "Input X contains NaN"),
    ("inf", put(ITEMS, (0, 0), np.inf), "Input X contains infinity"),
    ("no items", ITEMS[:0], r"0 sample\(s\).* minimum of 1 is required"),
    ("no features", ITEMS[:, :0], r"0 feature\(s\).* minimum of 1 is required"),
    ("complex", ITEMS + 1j, "Complex data not supported"),
    (
        "texts",
        np.array([["a", 1.0]] * 8, dtype=object),
        r"must be numeric: could not convert.*Itemwise.*items= an ItemTable",
    ),
    ("1-D", np.arange(8.0), r"got shape \(8,\).*Reshape your data: X.reshape\(1, -1\)"),
    ("scalar", 3.0, "X may be duel arrays.*got a scalar"),
    ("None", None, "X may be duel arrays.*got NoneType"),
    ("dict", {"a": 1}, "X may be duel arrays.*got dict"),
    ("string", "abc", "X may be duel arrays.*got a scalar"),
)
def test_rated_items(bad, match):
    with pytest.raises(ValueError, match=match):
        model().fit(bad, RATINGS)


@pytest.mark.parametrize("id_column", [None, 0])
def test_words_as_ratings_are_not_blamed_on_the_items(id_column):
    pd = pytest.importorskip("pandas")
    sides = pd.DataFrame({"left_size": [1.0, 2.0], "right_size": [3.0, 1.0]})
    won = pd.Series(["left", "tie"])
    for y in (won, won.to_numpy(), np.array(["left", "tie"])):
        with pytest.raises(ValueError, match=r"y holds words.*\(2, 2\) reads as.*from_columns"):
            model(id_column=id_column).fit(sides, y)
    # Numbers in quotes are numbers.
    fitted = model().fit(sides, np.array(["1.0", "2.0"], dtype=object))
    assert fitted.predict(sides)[1] > fitted.predict(sides)[0]


def test_frames_of_texts():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"must be numeric: could not convert string.*Itemwise"):
        model().fit(frame, [1.0, 2.0])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse(kind):
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray\(\)"):
        model().fit(kind(ITEMS), RATINGS)
    with pytest.raises(TypeError, match="Sparse data was passed for items"):
        model(items=kind(TABLE)).fit(PAIRS, WON)


def test_no_duel_at_all():
    with pytest.raises(ValueError, match=r"no duel \(0 samples.*minimum of 1"):
        model().fit(X[:0], [])
    with pytest.raises(ValueError, match=r"no position \(0 samples.*minimum of 1"):
        model(items=TABLE).fit(PAIRS[:0], [])
    with pytest.raises(ValueError, match=r"No duel.* two different ratings within a qid"):
        model().fit(ITEMS, np.ones(8))
    with pytest.raises(ValueError, match=r"No duel.* two different ratings within a qid"):
        model().fit(ITEMS, RATINGS, qid=np.arange(8))
    with pytest.raises(ValueError, match=r"1 sample, and a duel needs two.*\(n_duels, 2, n_feat"):
        model().fit(ITEMS[:1], [1.0])


# -- fit: y and qid ------------------------------------------------------------------------


@cases(
    ("y", "match"),
    ("1 and 2", Y + 1, r"\{0, 1\}, \{-1, 1\} or booleans.*got values such as \[\d, \d\]\. Encode"),
    ("three labels", [0, 1, -1, 1] * 5, r"got values such as \[0, 1, -1\].*leave out ties"),
    ("0 and -1", [0, -1] * 10, r"got values such as \[0, -1\]"),
    ("ratings", np.linspace(0, 1, 20), r"got values such as \[0.0, 0.05.*belong to 2-D items"),
    ("strings", ["won", "lost"] * 10, r"\['won', 'lost'\]\. skpref\.duels\.from_columns and"),
    ("digits as strings", ["0", "1"] * 10, r"got values such as \['0', '1'\]"),
    ("strings in objects", np.array(["0", "1"] * 10, object), r"got values such as \['0', '1'\]"),
    ("other objects", np.array([{}, 1] * 10, object), r"got values such as \[\{\}, 1\]"),
    ("dates", Y.astype("datetime64[D]"), "Outcomes of duels must be in"),
    ("NaN", put(Y * 1.0, 0, np.nan), "y contain NaN, None or infinity in 1 of 20 places. Leave"),
    ("inf", put(Y * 1.0, 0, np.inf), "y contain NaN, None or infinity in 1 of 20 places"),
    ("None among them", [None, 1] * 10, "y contain NaN, None or infinity in 10 of 20 places"),
    ("complex", Y + 0j, r"Complex data not supported: y has dtype complex128"),
    (
        "too short",
        Y[:-1],
        r"inconsistent numbers of samples: got 19 outcomes for 20 duels. Give one",
    ),
    ("too long", [*Y, 1], r"inconsistent numbers of samples: got 21 outcomes for 20 duels"),
    ("two columns", np.stack([Y, Y], axis=1), "ranks .* which say nothing"),
    ("three columns", np.stack([Y, Y, Y], axis=1), "should be a 1d array, got an array of shape"),
    ("scalar", 1, "should be a 1d array"),
)
def test_outcomes(y, match):
    with pytest.raises(ValueError, match=match):
        model().fit(X, y)
    with pytest.raises(ValueError, match=match):
        model().fit(X, Y).score(X, y)


def test_missing_outcomes_of_a_nullable_series():
    pd = pytest.importorskip("pandas")
    for dtype in ("boolean", "Int64", object):
        outcomes = pd.Series([True, None] * 10, dtype=dtype)
        with pytest.raises(
            ValueError, match=r"NaN, None or infinity in 10 of 20 places\. Leave out"
        ):
            model().fit(X, outcomes)


@cases(
    ("y", "match"),
    ("NaN", put(RATINGS, 5, np.nan), "1 of 8 ratings are NaN or infinite, first in row 5"),
    ("inf", put(RATINGS, 0, np.inf), r"1 of 8 ratings .* row 0; drop them"),
    ("a gap", [None, *RATINGS[1:]], "1 of 8 ratings are NaN or infinite, first in row 0"),
    ("column", put(RATINGS, 5, np.nan)[:, None], "1 of 8 ratings .* first in row 5"),
    ("strings", list("abcdefgh"), "Ratings must be finite numbers"),
    ("complex", RATINGS + 1j, "Complex data not supported: y has dtype"),
    ("too short", RATINGS[:-1], r"inconsistent numbers of samples: \[8, 7\]"),
    ("two columns", np.stack([RATINGS, RATINGS], axis=1), "should be a 1d array"),
    ("None", None, r"requires y to be passed.*Only duels do without y.*pairs of names.*items="),
)
def test_ratings(y, match):
    with pytest.raises(ValueError, match=match):
        model().fit(ITEMS, y)


def test_gaps_among_ratings_of_ids():
    for gap in (np.nan, None):
        with pytest.raises(ValueError, match=r"1 of 8 ratings .* first in row 0"):
            model(id_column=0).fit(ITEMS, [gap, *RATINGS[1:]])


@cases(
    ("qid", "match"),
    ("NaN", put(QID, 5, np.nan), r"qid contains NaN, None or infinity in 1 of 8.*row 5\. Give"),
    ("inf", put(QID, 0, np.inf), "qid contains NaN, None or infinity in 1 of 8 places"),
    ("None", [None] * 4 + ["a"] * 4, "qid contains NaN, None or infinity in 4 of 8 places"),
    ("mixed", np.array(["a", 1] * 4, object), "qid mixes labels of different types; make them"),
    ("too short", QID[:-1], r"inconsistent numbers of samples: got 7 labels in qid for 8 items"),
    ("2-D", np.zeros((8, 2)), r"qid of shape \(8, 2\) for 8 items.*shape \(8,\)"),
    ("scalar", 1, r"qid of shape \(\) for"),
)
def test_groups(qid, match):
    with pytest.raises(ValueError, match=match):
        model().fit(ITEMS, RATINGS, qid=qid)


def test_groups_belong_to_rated_items():
    match = "qid belongs to items with ratings.*duels take none"
    with pytest.raises(ValueError, match=match):
        model().fit(X, Y, qid=np.zeros(20))
    with pytest.raises(ValueError, match=match):
        model(items=TABLE).fit(PAIRS, WON, qid=np.zeros(4))
    with pytest.raises(ValueError, match=match):
        model().fit(X, Y).score(X, Y, qid=np.zeros(20))


# -- fit: a table of items -----------------------------------------------------------------


@cases(
    ("pairs", "match"),
    ("negative", PAIRS - 1, r"must lie in \[0, 5\], got -1\. Count from 0"),
    ("too large", PAIRS + 1, r"must lie in \[0, 5\], got 6\. Count from 0"),
    ("1-D", PAIRS[:, 0], r"Integer X with items= must have shape \(n_duels, 2\).*\(4,\)"),
    ("sets of one item", np.zeros((4, 3), int), "Row 0 of X sets an item against itself"),
    ("3-D of another width", np.zeros((4, 2, 5)), "X has 5 features, but .* expecting 2"),
    ("texts", np.full((4, 2), "a"), r"dtype <U1 of shape \(4, 2\).*items\.index\(X\)"),
    ("objects", PAIRS.astype(object), r"dtype object of shape \(4, 2\).*X\.astype\(int\)"),
    ("booleans", PAIRS > 1, r"2-D array of dtype bool"),
    ("empty list", [], r"X may be duel arrays.*got shape \(0,\).*integers: X\.astype\(int\)"),
)
def test_positions(pairs, match):
    with pytest.raises(ValueError, match=match):
        model(items=TABLE).fit(pairs, WON)


def test_floats_with_a_table_have_two_readings():
    both = r"(?s)positions in the table, pass X\.astype\(int\).*items with ratings, leave items="
    for floats in (PAIRS * 1.0, ITEMS[:4], PAIRS.astype(np.float32).tolist()):
        with pytest.raises(ValueError, match=both):
            model(items=TABLE).fit(floats, WON)
    pd = pytest.importorskip("pandas")
    both = both.replace(r"X\.", r"X\.to_numpy\(\)\.")
    for frame in (pd.DataFrame(PAIRS), pd.DataFrame(PAIRS * 1.0)):
        with pytest.raises(ValueError, match=both):
            model(items=TABLE).fit(frame, WON)
        model(items=TABLE).fit(frame.to_numpy().astype(int), WON)  # the remedy


@cases(
    ("items", "match"),
    ("NaN", put(TABLE, (0, 0), np.nan), "items= must be an ItemTable.*items contains NaN"),
    ("inf", put(TABLE, (0, 0), np.inf), "items= must be an ItemTable.*items contains infinity"),
    ("1-D", np.arange(6.0), r"(?s)items= must be.*2D array.*from_names\(names\)"),
    ("3-D", X, "items= must be an ItemTable or finite numbers"),
    ("mixed names", ["a", 1], r"(?s)items= must be an ItemTable.*ItemTable\.from_names\(names\)"),
    ("empty", TABLE[:0], r"items= must be.*0 sample\(s\)"),
    ("complex", TABLE + 1j, "items= must be.*Complex data not supported"),
)
def test_tables(items, match):
    with pytest.raises(ValueError, match=match):
        model(items=items).fit(PAIRS, WON)


def test_integers_without_a_table_are_items():
    fitted = model().fit(PAIRS, [1.0, 2.0, 3.0, 4.0])
    assert fitted.n_features_in_ == 2 and not hasattr(fitted, "classes_")
    assert_array_equal(fitted.predict(PAIRS), fitted.predict(PAIRS * 1.0))
    with pytest.raises(ValueError, match=r"is None\. X of shape \(4, 2\) reads as items.*items="):
        model().fit(PAIRS)
