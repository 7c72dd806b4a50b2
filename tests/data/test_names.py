"""Names of items, where no table says what they refer to: the names themselves are the table."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.inference import SVI
from skpref.inspection import leaderboard
from skpref.model_selection import ItemKFold, item_components
from skpref.preprocessing import Itemwise

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(5)
NAMES = ["ann", "bob", "cid", "dot", "eve"]
PLACES = np.array([RNG.permutation(5)[:2] for _ in range(40)])
Y = (RNG.normal(PLACES[:, 1] - PLACES[:, 0]) > 0).astype(int)
PAIRS = np.array(NAMES, dtype=object)[PLACES]
FRAME = pd.DataFrame(PAIRS, columns=["first", "second"])
SETS = [["ann", "bob", "cid"], ["dot", "ann", None], ["eve", "dot", "bob"], ["cid", "eve", None]]


def model(**options):
    return PairwisePreferenceRegressor(**{"optimizer": None, "noise_variance": 0.5, **options})


WANTED = model(items=ItemTable.from_names(NAMES)).fit(PLACES, Y)


@pytest.mark.parametrize(
    "X",
    [PAIRS, PAIRS.astype(str), PAIRS.tolist(), FRAME, FRAME.astype("category"), PAIRS.T.copy().T],
    ids=["objects", "strings", "lists", "frame", "categories", "view"],
)
def test_names_are_their_own_table(X):
    fitted = model().fit(X, Y)
    assert sorted(fitted.items_.names) == NAMES
    assert_allclose(fitted.predict(NAMES), WANTED.predict(NAMES), atol=1e-10)
    assert_allclose(fitted.predict_proba(X), WANTED.predict_proba(PLACES), atol=1e-10)
    assert fitted.score(X, Y) == WANTED.score(PLACES, Y)
    assert fitted.posterior_.win_probability(["eve"], ["zoe"])[0] < 0.5  # nobody knows zoe
    assert fitted.predict(["zoe"])[0] == 0.0


@pytest.mark.parametrize("items", [NAMES, tuple(NAMES), np.array(NAMES), pd.Series(NAMES)], ids=str)
def test_items_may_be_a_list_of_names(items):
    fitted = model(items=items).fit(FRAME, Y)
    assert fitted.items_.names.tolist() == NAMES
    assert_allclose(fitted.predict(["cid"]), WANTED.predict(["cid"]), atol=1e-10)
    again = clone(fitted).fit(PLACES, Y)  # positions in that list
    assert_allclose(again.predict(NAMES), fitted.predict(NAMES), atol=1e-10)
    with pytest.raises(ValueError, match=r"unknown name.*'zoe'"):
        model(items=items).fit([["ann", "zoe"], ["zoe", "bob"]], [1, 0])


def test_sets_of_names_may_differ_in_size():
    y = [2, 0, 1, 1]
    table = ItemTable.from_names(NAMES)
    wanted = model(items=table).fit(np.array([[0, 1, 2], [3, 0, -1], [4, 3, 1], [2, 4, -1]]), y)
    gaps = [[name or np.nan for name in row] for row in SETS]
    for X in (SETS, gaps, np.array(SETS, dtype=object), pd.DataFrame(SETS)):
        fitted = model().fit(X, y)
        assert sorted(fitted.items_.names) == NAMES
        assert_allclose(fitted.predict(NAMES), wanted.predict(NAMES), atol=1e-10)
        proba = fitted.predict_proba(X)
        assert_array_equal(proba[[1, 3], 2], 0.0)
        assert_allclose(proba.sum(axis=1), 1.0)


def test_tools_of_scikit_learn_take_them():
    scores = cross_val_score(model(), FRAME, Y, cv=4, scoring="neg_log_loss")
    by_place = cross_val_score(model(items=WANTED.items), PLACES, Y, cv=4, scoring="neg_log_loss")
    assert_allclose(scores, by_place, atol=1e-8)
    grid = {"pairwisepreferenceregressor__noise_variance": [0.1, 0.5]}
    pipeline = make_pipeline(FunctionTransformer(), model())
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=4).fit(FRAME, Y)
    assert search.predict_proba(FRAME[:3]).shape == (3, 2)
    fitted = pickle.loads(pickle.dumps(clone(model()).fit(FRAME, Y)))
    board = leaderboard(fitted, n_draws=200)
    assert sorted(board.names) == NAMES
    assert_allclose(board.utility, np.sort(board.utility)[::-1])
    assert leaderboard(search, n_draws=200).names[0] == board.names[0]


def test_a_stream_of_names_knows_new_ones():
    stream = model(inference=SVI(n_inducing=5, max_iter=200))
    early = np.isin(PAIRS, NAMES[:4]).all(axis=1)
    stream.partial_fit(FRAME[early], Y[early])
    assert sorted(stream.items_.names) == NAMES[:4]
    stream.partial_fit(FRAME[~early], Y[~early])
    assert sorted(stream.items_.names) == NAMES
    assert_allclose(stream.predict(NAMES), WANTED.predict(NAMES), atol=0.1)


def test_many_users_name_items_too():
    users = np.arange(40) % 3
    options = {"optimizer": None, "noise_variance": 0.5, "random_state": 0}
    found = CollaborativePreferenceRegressor(**options).fit(FRAME, Y, users=users)
    table = ItemTable.from_names(PAIRS)
    wanted = CollaborativePreferenceRegressor(items=table, **options).fit(FRAME, Y, users=users)
    assert_array_equal(found.predict(NAMES), wanted.predict(NAMES))


def test_texts_are_transformed_before_they_could_be_names():
    texts = np.array([["good plot", "dull plot"], ["dull fun", "good fun"], ["good", "dull fun"]])
    fitted = make_pipeline(Itemwise(TfidfVectorizer()), model()).fit(texts, [1, 0, 1])
    assert fitted[-1].items_ is None
    assert fitted.predict(["good acting", "dull acting"])[0] > fitted.predict(["dull acting"])[0]


def test_columns_that_share_no_name_are_doubted():
    frame = pd.DataFrame({"colour": ["red", "blue", "red"], "shape": ["round", "flat", "flat"]})
    with pytest.warns(UserWarning, match="no name stands in two of its columns.*OneHotEncoder"):
        model().fit(frame, [1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(frame)  # no y: these can be no ratings
        model().fit([["red", "round"]], [1])
        model().fit(FRAME, Y)


def test_a_name_against_itself_is_refused():
    with pytest.raises(ValueError, match="Row 1 of X sets an item against itself"):
        model().fit([["ann", "bob"], ["bob", "bob"]], [1, 0])


def lacking(gap, sides=2):
    """The same duels, of which row 7 lacks names."""
    names = PAIRS.copy()
    names[7, :sides] = gap
    return pd.DataFrame(names, columns=FRAME.columns)


GAPS = {
    "None": lacking(None),
    "NaN": lacking(np.nan),
    "NA": lacking(pd.NA),
    "empty": lacking(""),
    "one side": lacking(None, 1),
    "string": lacking(None).astype("string"),
    "category": lacking(None).astype("category"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", ["frame", "objects", "lists"])
@pytest.mark.parametrize("games", GAPS.values(), ids=GAPS)
def test_a_duel_that_lacks_a_name_is_refused_by_its_row(games, form):
    objects = games.to_numpy(object)
    X = {"frame": games, "objects": objects, "lists": objects.tolist()}[form]
    calls = [
        lambda: model().fit(X),
        lambda: model().fit(X, Y),
        lambda: model(items=NAMES).fit(X, Y),
        lambda: WANTED.predict_proba(X),
        lambda: WANTED.predict(X),
        lambda: WANTED.score(X, Y),
        lambda: item_components(X, integers="positions"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"\(40, 2\) holds names.*first in row 7\. Leave out"):
            call()
    whole = [row for row in objects.tolist() if all(isinstance(name, str) and name for name in row)]
    assert WANTED.predict_proba(whole).shape == (39, 2)


def test_an_item_that_lacks_a_name_is_refused_by_its_row():
    for gap in (None, np.nan, pd.NA, ""):
        for ask in (WANTED.predict, WANTED.posterior_.mean):
            with pytest.raises(ValueError, match=r"of which 1 is missing .* row 1\. Leave out"):
                ask(["ann", gap])
    with pytest.raises(ValueError, match=r"shape \(2, 1\) .* first in row 1"):
        WANTED.predict(pd.DataFrame({"item": ["ann", None]}))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, ""])
def test_a_gap_among_the_names_of_a_set_is_refused_by_its_row(gap):
    for place in (0, 1):
        rows = [list(row) for row in SETS]
        rows[2][place] = gap
        for X in (rows, np.array(rows, dtype=object), pd.DataFrame(rows)):
            for call in (model().fit, model(items=NAMES).fit):
                with pytest.raises(ValueError, match=r"Row 2 .*its end.*Leave such rows out"):
                    call(X, [0, 0, 2, 1])


def test_an_empty_text_is_a_name_where_the_table_has_it():
    known = model(items=["ann", "bob", ""]).fit([["ann", ""], ["", "bob"]])
    assert known.predict_proba([["ann", ""]])[0, 1] > 0.5
    with pytest.raises(ValueError, match="first in row 0"):
        known.predict_proba([["ann", None]])


def test_splitters_ask_what_frames_of_texts_are():
    with pytest.raises(ValueError, match=r'names of items.*integers="positions"'):
        item_components(FRAME)
    groups = item_components(
        pd.DataFrame([["a", "b"], ["c", "d"], ["b", "e"]]), integers="positions"
    )
    assert groups.tolist() == [0, 1, 0]
    for X in (FRAME, PAIRS):
        for train, test in ItemKFold(2, integers="positions").split(X):
            assert not set(PAIRS[train].ravel()) & set(PAIRS[test].ravel())
    sets = item_components(pd.DataFrame(SETS), integers="positions")
    assert sets.tolist() == [0, 0, 0, 0]
