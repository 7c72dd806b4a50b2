"""The one rule of what X is, and that everything keeps to it."""

import warnings

import numpy as np
import pytest
from inputs_support import ITEMS, NAMED, PAIRS, RATINGS, TABLE, X, Y, model
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.data._read import read, read_features
from skpref.duels import DuelFrame, from_pairs, from_ratings
from skpref.model_selection import ItemKFold, item_components
from skpref.preprocessing import Itemwise

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(TABLE, columns=["a", "b"])
FEATURES = ItemTable(TABLE, names=list("abcdef"))
SETS_OF_3 = np.arange(24.0).reshape(4, 3, 2)
PLACES = np.array([[0, 1, 2], [3, 4, -1], [5, 0, 2]])


@pytest.mark.parametrize(
    ("given", "table", "kind", "paired"),
    [
        (X, None, "items", True),
        (X.tolist(), None, "items", True),
        (X, FEATURES, "items", True),
        (ITEMS, None, "items", False),
        (PAIRS, None, "items", False),
        (PAIRS.tolist(), None, "items", False),
        (PAIRS, FEATURES, "positions", True),
        (PAIRS[:, 0], FEATURES, "positions", False),
        (PAIRS * 1.0, FEATURES, "items", False),
        (PAIRS > 1, None, "items", False),
        ([["a", "b"]], None, "texts", True),
        (["a", "b"], None, "texts", False),
        ([["a", "b"]], ItemTable(TABLE), "texts", True),
        ([["a", "b"]], FEATURES, "names", True),
        (["a", "b"], FEATURES, "names", False),
        (pd.DataFrame([["a", "b"]]), FEATURES, "names", True),
        (pd.DataFrame([["a", "b"]]), None, "items", False),
        (FRAME, None, "items", False),
        (ItemTable(FRAME), None, "items", False),
        (DuelFrame(FRAME, [[0, 1]]), None, "items", True),
        (sparse.csr_array(ITEMS), None, "items", False),
        (np.array([["a", 1.0, None]], dtype=object), None, "items", False),
        (SETS_OF_3, None, "items", True),
        (PLACES, FEATURES, "positions", True),
        (PLACES.tolist(), FEATURES, "positions", True),
        (PLACES * 1.0, FEATURES, "items", False),
        (PLACES, None, "items", False),
        ([["a", "b", "c"]], FEATURES, "names", True),
        ([["a", "b", np.nan]], FEATURES, "names", True),
        ([["a", "b", "c"]], None, "items", False),
        ([["a", "b", "c"]], ItemTable(TABLE), "items", False),
        (pd.DataFrame([["a", "b", "c"], ["a", "d", None]]), FEATURES, "names", True),
        (pd.DataFrame([["a", "b", 1.0]]), FEATURES, "items", False),
        (np.array([["a", 1.0, None]], dtype=object), FEATURES, "items", False),
        (TABLE[:, [0, 1, 0]].astype(object), FEATURES, "items", False),
        (DuelFrame(FRAME, PLACES), None, "items", True),
        (DuelFrame(TABLE, PLACES), None, "items", True),
    ],
)
def test_container_dimensions_and_type_decide(given, table, kind, paired):
    parsed = read(given, table=table)
    assert (parsed.kind, parsed.pairs is not None) == (kind, paired)


def listed(parsed):
    """Sets as lists of what was shown."""
    rows = np.asarray(parsed.rows).tolist()
    return [[rows[place] for place in shown if place >= 0] for shown in parsed.pairs.tolist()]


def test_sets_hold_what_was_shown_in_its_order():
    assert listed(read(SETS_OF_3)) == SETS_OF_3.tolist()
    for form in (PLACES, PLACES.tolist(), PLACES.astype(np.int8)):
        assert listed(read(form, table=FEATURES)) == [[0, 1, 2], [3, 4], [5, 0, 2]]
    assert listed(read(PLACES, integers="positions")) == [[0, 1, 2], [3, 4], [5, 0, 2]]
    assert listed(read(PLACES[:1].astype(np.uint8), table=FEATURES)) == [[0, 1, 2]]
    named = [["a", "b", "c"], ["d", "e"], ["f", "a", "c"]]
    for pad in (None, np.nan, pd.NA, ""):
        rows = [row + [pad] * (3 - len(row)) for row in named]
        for form in (rows, np.array(rows, dtype=object), pd.DataFrame(rows)):
            parsed = read(form, table=FEATURES)
            assert parsed.kind == "names" and listed(parsed) == named
    for items in (FRAME, TABLE):
        parsed = read(DuelFrame(items, PLACES))
        assert listed(parsed) == [TABLE[row[row >= 0]].tolist() for row in PLACES]
    assert [len(read(form).pairs) for form in (SETS_OF_3[:0], DuelFrame(TABLE, PLACES)[:0])] == [
        0,
        0,
    ]


def test_sets_of_texts_are_read_where_asked_for():
    texts = [["good", "dull", ""], ["fun", "long", None]]
    parsed = read(texts, text_sets=True)
    assert parsed.kind == "texts" and listed(parsed) == [["good", "dull", ""], ["fun", "long"]]
    assert listed(read([texts[0]], text_sets=True)) == [texts[0]]
    assert read(texts).kind == "items"
    kinds = np.array([["red", 1.0, None]], dtype=object)
    assert read(kinds, text_sets=True).kind == "items"


def test_a_name_that_is_empty_is_a_name_where_the_table_has_it():
    table = ItemTable(TABLE[:3], names=["", "a", "b"])
    assert listed(read([["a", "b", ""]], table=table)) == [["a", "b", ""]]
    assert listed(read([["a", "b", None]], table=table)) == [["a", "b"]]


@pytest.mark.parametrize(
    ("given", "options", "match"),
    [
        (SETS_OF_3[:, :1], {}, r"n_sets, k, n_features.*got \(4, 1, 2\).*np.stack"),
        (SETS_OF_3[:, :0], {}, r"got \(4, 0, 2\)"),
        (PLACES[:, :1], {"table": FEATURES}, r"\(n_duels, 2\).*\(n_sets, k\).*shape \(3, 1\)"),
        (PLACES[:, ::-1], {"table": FEATURES}, "Row 1 has -1 before its end"),
        ([[0, 1, 2], [3, -1, -1]], {"table": FEATURES}, r"Row 1 has 1 item\(s\).*two or more"),
        ([[0, 1, 2], [-1, -1, -1]], {"integers": "positions"}, r"Row 1 has 0 item\(s\)"),
        ([["a", None, "b"]], {"table": FEATURES}, "Row 0 has None, NaN or an empty name before"),
        ([["a", "b", "c"], ["a", "", ""]], {"table": FEATURES}, r"Row 1 has 1 item\(s\)"),
        ([["a", None, "b"]], {"text_sets": True}, "Row 0 has None or NaN before its end"),
        ([[0, 1, 2], [3, 4]], {"table": FEATURES}, "padded at their end, positions by -1"),
        (PLACES, {"integers": None}, r"shape \(3, 3\).*items with 3 features.*integers=\"items\""),
    ],
)
def test_sets_that_are_none_are_refused(given, options, match):
    with pytest.raises(ValueError, match=match):
        read(given, **options)


def test_features_of_sets_are_read_with_their_gaps():
    for items in (FRAME, TABLE):
        shown, _ = read_features(None, read(DuelFrame(items, PLACES)), None)
        for found, wanted in zip(shown.pairs, PLACES, strict=True):
            assert_array_equal(found < 0, wanted < 0)
            assert_array_equal(shown.rows[found[found >= 0]], TABLE[wanted[wanted >= 0]])
    gap = TABLE.copy()
    gap[-1] = np.nan  # where -1 would look
    assert len(read_features(None, read(DuelFrame(gap, PLACES[:2])), None)[0].pairs) == 2
    for items in (gap, pd.DataFrame(gap)):
        with pytest.raises(ValueError, match="in 1 of 2 sets, first in row 1"):
            read_features(None, read(DuelFrame(items, PLACES[1:])), None)
    with pytest.raises(ValueError, match=r"no set \(0 samples, shape=\(0, 3, 2\)"):
        read_features(None, read(SETS_OF_3[:0]), None)


def test_two_integer_features_are_never_split_as_pairs_in_silence():
    """Row 0 and row 2 are one item; as pairs rows 0, 1 and 2 would share item 1."""
    rows = np.array([[0, 1], [1, 2], [0, 1], [3, 4]])
    both = r"pairs of positions.*items with two features.*integers=\"positions\" or integers=\"it"
    for splits in (lambda: list(ItemKFold(2).split(rows)), lambda: item_components(rows)):
        with pytest.raises(ValueError, match=both):
            splits()
    assert item_components(rows, integers="items").tolist() == [0, 1, 0, 2]
    assert item_components(rows, integers="positions").tolist() == [0, 0, 0, 1]
    for train, test in ItemKFold(3, integers="items").split(rows):
        assert (0 in train) == (2 in train) and len(train) + len(test) == 4
    for plain in (rows * 1.0, pd.DataFrame(rows)):  # these leave no doubt
        assert item_components(plain).tolist() == [0, 1, 0, 2]
    with pytest.raises(ValueError, match='integers must be "positions", "items" or None'):
        item_components(rows, integers="pairs")


def test_what_the_regressor_fits_the_transformer_takes():
    rows, ratings = np.array([[0, 1], [5, 2], [3, 4]]), [1.0, 2.0, 3.0]
    scaled = Itemwise(StandardScaler()).fit_transform(rows)
    assert_array_equal(scaled, StandardScaler().fit_transform(rows))
    assert model().fit(rows, ratings).n_features_in_ == model().fit(scaled, ratings).n_features_in_


# -- masks ---------------------------------------------------------------------------------


def test_masked_entries_are_missing():
    mask = np.zeros(X.shape, dtype=bool)
    mask[3, 1, 0] = True
    masked = np.ma.array(X, mask=mask)
    missing = np.where(mask, np.nan, X)
    with pytest.raises(ValueError, match="NaN or infinity in 1 of 20 duels, first in row 3"):
        model().fit(masked, Y)
    with pytest.raises(ValueError, match="NaN or infinity in 1 of 20 duels"):
        model().fit(X, Y).predict_proba(masked)
    imputed = Itemwise(SimpleImputer()).fit_transform(masked)
    assert_array_equal(imputed, Itemwise(SimpleImputer()).fit_transform(missing))
    items = np.ma.array(ITEMS, mask=ITEMS > 1.5)
    with pytest.raises(ValueError, match="NaN"):
        model().fit(items, RATINGS)
    with pytest.raises(ValueError, match="NaN"):
        model().fit(X, Y).predict(items)
    with pytest.raises(ValueError, match="NaN"):
        ItemTable(items)
    pairs = np.ma.array(PAIRS, mask=PAIRS == 5)
    with pytest.raises(ValueError, match="masked positions"):
        model(items=TABLE).fit(pairs, [1, 0, 1, 0])
    with pytest.raises(ValueError, match="must be integers"):
        from_pairs(TABLE, pairs)
    kinds = np.ma.array([["red", 1.0], ["blue", 2.0], ["red", 3.0]], dtype=object)
    kinds[1, 0] = np.ma.masked
    seen = FunctionTransformer(lambda rows: np.array([[row[0] is None] for row in rows]) * 1.0)
    assert Itemwise(seen).fit_transform(kinds).ravel().tolist() == [0.0, 1.0, 0.0]
    unharmed = model().fit(np.ma.array(X, mask=False), Y)
    assert_array_equal(unharmed.predict(X), model().fit(X, Y).predict(X))


def test_masked_outcomes_ratings_and_groups_are_missing():
    hidden = np.arange(20) == 4
    with pytest.raises(ValueError, match="NaN, None or infinity in 1 of 20 places"):
        model().fit(X, np.ma.array(Y, mask=hidden))
    ratings = np.ma.array(RATINGS, mask=hidden[:8])
    for call in (lambda: model().fit(ITEMS, ratings), lambda: from_ratings(ITEMS, ratings)):
        with pytest.raises(ValueError, match="NaN"):
            call()
    with pytest.raises(ValueError, match=r"qid contains NaN.* in 1 of 8"):
        model().fit(ITEMS, RATINGS, qid=np.ma.array(np.zeros(8), mask=hidden[:8]))


# -- texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_missing_texts_are_named(gap):
    for texts in ([["a", "b"], ["c", gap]], ["a", gap]):
        with pytest.raises(ValueError, match=r"texts, of which 1 is missing .*, first in row 1"):
            Itemwise(TfidfVectorizer()).fit(np.array(texts, dtype=object))
    with pytest.raises(ValueError, match="1 of 2 texts are missing or no texts, first in row 1"):
        Itemwise(TfidfVectorizer()).fit(pd.DataFrame({"text": ["a", gap]}, dtype=object))


def test_frames_of_texts_are_read_or_refused_with_the_remedy():
    texts = ["good plot", "dull plot", "good fun"]
    frame = pd.DataFrame({"text": texts})
    expected = Itemwise(TfidfVectorizer()).fit_transform(texts)
    itemwise = Itemwise(TfidfVectorizer())
    assert_array_equal(itemwise.fit_transform(frame), expected)
    duels, _ = from_pairs(frame, [[0, 1], [2, 1]], [1, 0])
    assert_array_equal(itemwise.transform(duels), expected[[[0, 1], [2, 1]]])
    assert_array_equal(itemwise.transform(ItemTable(frame)), expected)
    for two in (pd.DataFrame({"a": texts, "b": texts}), np.ones((3, 2))):
        with pytest.raises(ValueError, match=r"takes texts, one an item.*to_numpy"):
            Itemwise(TfidfVectorizer()).fit(two)


# -- rated items that look like differences of duels -----------------------------------------


@pytest.mark.parametrize("y", [Y, 2 * Y - 1, Y.astype(bool), Y * 1.0], ids=str)
def test_two_labels_of_items_are_probably_outcomes_of_duels(y):
    with pytest.warns(UserWarning, match=r"reads as rated items.*np\.stack.*qid=np\.zeros") as seen:
        model().fit(X[:, 0] - X[:, 1], y)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X[:, 0] - X[:, 1], y, qid=np.zeros(20))
        model().fit(X[:, 0], np.arange(20) % 3)
        model().fit(X[:, 0], np.arange(20) % 2 + 1.5)
        model().fit(X, y)


# -- a refused fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "y"),
    [
        (np.arange(30.0).reshape(3, 2, 5), [1, 0, 2]),
        (np.full((3, 5), np.inf), [1.0, 2.0, 2.0]),
        (X, Y + 1),
        (np.ones((3, 3)), [1.0, 1.0, 1.0]),
        (pd.DataFrame(TABLE, columns=["q", "r"]), RATINGS[:5]),
        (pd.DataFrame(np.full((2, 3), np.nan), columns=list("qrs")), [1.0, 2.0]),
        (from_pairs(FRAME[["b", "a"]], PAIRS)[0], [0, 1, 0, 2]),
        (from_pairs(FRAME.assign(c="text"), PAIRS)[0], None),
    ],
)
@pytest.mark.parametrize("known", [FRAME, FEATURES], ids=["rated", "table"])
def test_a_refused_fit_changes_nothing(bad, y, known):
    fitted = model().fit(FRAME, RATINGS[:6]) if known is FRAME else model(items=FEATURES).fit(PAIRS)
    before, utility = dict(vars(fitted)), fitted.predict(known)
    with pytest.raises(ValueError):
        fitted.fit(bad, y)
    after = vars(fitted)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert_array_equal(fitted.predict(known), utility)
    never = PairwisePreferenceRegressor()
    with pytest.raises(ValueError):
        never.fit(bad, Y + 1 if y is None else y)
    assert not hasattr(never, "n_features_in_")


def test_a_fit_that_fails_later_changes_nothing_either():
    from sklearn.gaussian_process.kernels import RBF

    fitted = model().fit(FRAME, RATINGS[:6])
    before = dict(vars(fitted))
    fitted.set_params(kernel=RBF([1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="does not take items of 2"):
        fitted.fit(X, Y)
    assert fitted.n_features_in_ == 2 and fitted.feature_names_in_ is before["feature_names_in_"]


def test_tables_of_names_do_in_every_call():
    fitted = model(items=NAMED).fit(PAIRS)
    for asked in (NAMED, ItemTable.from_names(NAMED.names[::-1])):
        assert fitted.predict(asked).shape == fitted.sample_y(asked).shape[:1] == (6,)
        assert fitted.score(asked, fitted.predict(asked)) == 1.0
