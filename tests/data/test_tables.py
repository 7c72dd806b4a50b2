"""Data frames as people have them: names, ids, categories and gaps, from the door to a score."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tiers_support import thinned

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import DuelFrame, from_columns, from_pairs, from_rankings, from_ratings
from skpref.kernels import Identity, OnColumns
from skpref.model_selection import ItemKFold
from skpref.preprocessing import Itemwise

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
ITEMS = pd.DataFrame(RNG.standard_normal((8, 2)), columns=["sweet", "sour"], index=list("abcdefgh"))
PAIRS = [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"], ["b", "c"], ["h", "a"]]
MIXED = ITEMS.assign(kind=["red", "blue", None, "red", "green", "blue", "red", "green"])
MIXED.loc["d", "sour"] = np.nan
COLUMNS = ColumnTransformer(
    [
        ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ("rest", make_pipeline(SimpleImputer(), StandardScaler()), ["sour", "sweet"]),
    ]
)


def model(**params):
    return PairwisePreferenceRegressor(**{"optimizer": None} | params)


LABELS = pd.DataFrame({"sweet": [1.0, 2.0, 3.0], "sour": [0.0, 1.0, 0.0]}, index=[2, 1, 0])


def test_positions_that_could_be_labels_warn():
    pairs = np.array([[2, 1], [1, 0]])
    with pytest.warns(UserWarning, match=r"index of that frame holds other integers.*from_pairs"):
        by_place = model(items=LABELS).fit(pairs)
    by_label = model().fit(*from_pairs(LABELS, pairs))
    assert by_place.predict(LABELS)[0] < 0.0 < by_label.predict(LABELS)[0]


@pytest.mark.parametrize(
    "items",
    [LABELS.reset_index(drop=True), LABELS.set_index(pd.Index(list("abc"))), ItemTable(LABELS)],
    ids=["counted", "named", "table"],
)
def test_positions_that_are_no_labels_pass_in_silence(items):
    model(items=items).fit(np.array([[2, 1], [1, 0]]))


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def contests(n=80, seed=1):
    """Contests of twelve players: skill, home, age with gaps, a surface, and earlier wins."""
    rng = np.random.default_rng(seed)
    skill = 2.0 * np.linspace(-1, 1, 12)
    first = rng.integers(12, size=n)
    second = (first + rng.integers(1, 12, size=n)) % 12
    names = np.array([f"player {i}" for i in range(12)], dtype=object)
    frame = pd.DataFrame({"home": names[first], "away": names[second]})
    for side in ("home", "away"):
        frame[f"{side}_age"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 5, n))
        frame[f"{side}_style"] = rng.choice(["left", "right", None], n)
    margin = skill[first] - skill[second] + 0.5 * rng.standard_normal(n)
    return frame.assign(home_won=(margin > 0).astype(int))


SIDES = (["home_age", "home_style"], ["away_age", "away_style"], "home_won")


# -- names are not forgotten ---------------------------------------------------------------


@pytest.mark.parametrize("items", [ITEMS, ItemTable(ITEMS)], ids=["frame", "table"])
def test_duels_of_a_frame_know_its_columns(items):
    ranked, _ = from_rankings([["a", "b", "c"]], items)
    rated, _ = from_ratings(items, np.arange(8.0))
    X, y = from_pairs(items, PAIRS)
    for made in (X, ranked, rated):
        assert isinstance(made, DuelFrame)
        assert made.feature_names.tolist() == ["sweet", "sour"]
    fitted = model().fit(X, y)
    assert fitted.feature_names_in_.tolist() == ["sweet", "sour"]
    assert fitted.n_features_in_ == 2
    same = model().fit(np.asarray(X), y)
    utility = same.predict(ITEMS.to_numpy())
    for asked in (ITEMS, ItemTable(ITEMS), ItemTable(ITEMS.to_numpy()), DuelFrame(ITEMS, [[0, 1]])):
        expected = utility if not isinstance(asked, DuelFrame) else [utility[0] - utility[1]]
        assert_allclose(fitted.predict(asked), expected)
    assert_allclose(fitted.predict_proba(X), same.predict_proba(np.asarray(X)))
    assert fitted.score(X, y) == same.score(np.asarray(X), y)


def test_another_order_of_columns_is_an_error_everywhere():
    turned, other = ITEMS[["sour", "sweet"]], ITEMS.rename(columns={"sour": "salt"})
    X, y = from_pairs(ITEMS, PAIRS)
    plain = model().fit(X, y)
    table = model(items=ITEMS).fit(*from_pairs(ItemTable.from_names(ITEMS.index), PAIRS))
    piped = make_pipeline(Itemwise(StandardScaler()), model()).fit(X, y)
    both = r"\['{}', '{}'\].*\['sweet', 'sour'\]"
    for fitted in (plain, table):
        for frame in (turned, other):
            for asked in (frame, ItemTable(frame), from_pairs(frame, PAIRS)[0]):
                with pytest.raises(ValueError, match=both.format(*frame.columns)):
                    fitted.predict(asked)
    for asked in (turned, ItemTable(turned), from_pairs(turned, PAIRS)[0]):
        with pytest.raises(ValueError, match=r"same order|should match"):
            piped.predict(asked)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_read_as_pandas_ones(library):
    make = pytest.importorskip(library)
    make = make.DataFrame if library == "polars" else make.table
    frame = make({"kind": ["red", None, "blue"], "size": [1, None, 3]})
    same = pd.DataFrame({"kind": ["red", None, "blue"], "size": [1.0, np.nan, 3.0]})
    columns = ColumnTransformer(
        [("k", OneHotEncoder(), ["kind"]), ("s", SimpleImputer(), ["size"])], sparse_threshold=0
    )
    pairs = [[0, 1], [2, 1]]
    ours = Itemwise(columns).fit(from_pairs(ItemTable(frame), pairs)[0])
    theirs = Itemwise(columns).fit(from_pairs(ItemTable(same), pairs)[0])
    for asked in (frame, same, ItemTable(frame), from_pairs(frame, pairs)[0]):
        assert_allclose(ours.transform(asked), theirs.transform(asked))
    columns = {name: list(column) for name, column in contests().items()}
    gapless = {
        name: [None if pd.isna(value) else value for value in values]
        for name, values in columns.items()
    }
    wide = make(gapless)
    X, y = from_columns(wide, *SIDES, ids=("home", "away"))
    expected, outcomes = from_columns(contests(), *SIDES, ids=("home", "away"))
    pd.testing.assert_frame_equal(X.first, expected.first)
    assert_array_equal(y, outcomes)


# -- texts, categories and gaps ------------------------------------------------------------


def test_mixed_tables_flow_into_column_transformers_by_name():
    table = ItemTable(MIXED)
    assert table.X is None and len(table) == 8 and table.n_features == 3
    expected = clone(COLUMNS).fit(MIXED.drop_duplicates()).transform(MIXED)
    X, y = from_pairs(table, PAIRS)
    assert X.dtype == object
    itemwise = Itemwise(COLUMNS)
    found = itemwise.fit(from_pairs(table, [*PAIRS, ["a", "d"]])[0])
    assert_allclose(found.transform(MIXED), expected)
    assert_allclose(found.transform(table), expected)
    assert_allclose(found.transform(X), expected[table.index(PAIRS)][np.arange(6)[:, None], _turns])
    pipeline = make_pipeline(itemwise, model()).fit(X, y)
    assert_allclose(pipeline.predict(table), pipeline.predict(MIXED))
    for made in (from_rankings([["a", "c", "d"]], MIXED)[0], from_ratings(MIXED, range(8))[0]):
        assert np.isfinite(pipeline.predict(made)).all()


_turns = np.array([[0, 1], [1, 0]] * 3)  # every second duel is turned round


def test_tables_that_are_no_numbers_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"gaps: \['sour', 'kind'\].*Itemwise"):
        model(items=MIXED).fit([[0, 1]])
    X, y = from_pairs(MIXED, PAIRS)
    with pytest.raises(ValueError, match=r"must be numeric: columns \['kind'\].*Itemwise"):
        model().fit(X, y)
    gaps, y = from_pairs(MIXED[["sweet", "sour"]], PAIRS)
    with pytest.raises(ValueError, match=r"in 1 of 6 duels, first in row 1, in columns \['sour'\]"):
        model().fit(gaps, y)
    with pytest.raises(ValueError, match=r"Itemwise\(SimpleImputer\(\)\)"):
        model().fit(*from_pairs(ITEMS, PAIRS)).predict(gaps)


def test_items_that_never_meet_are_no_ones_concern():
    X, y = from_pairs(MIXED[["sweet", "sour"]], [["a", "b"], ["b", "c"]])
    assert model().fit(X, y).score(X, y) == 1.0


# -- duels among scikit-learn's tools ------------------------------------------------------


def test_duel_frames_split_search_and_pickle_as_arrays_do():
    frame = contests(60)
    X, y = from_columns(frame, ["home_age"], ["away_age"], "home_won")
    pipeline = make_pipeline(Itemwise(SimpleImputer()), model())
    array = np.asarray(X)
    train, test, _, _ = train_test_split(X, y, random_state=0)
    train_array, test_array, _, _ = train_test_split(array, y, random_state=0)
    assert isinstance(train, DuelFrame) and train.shape == train_array.shape
    assert_array_equal(test, test_array)
    for cv in (KFold(3), ItemKFold(3)):
        ours = cross_val_score(pipeline, X, y, cv=cv, scoring="neg_log_loss", error_score="raise")
        theirs = cross_val_score(pipeline, array, y, cv=cv, scoring="neg_log_loss")
        assert_allclose(ours, theirs, rtol=1e-8)
    grid = {"pairwisepreferenceregressor__noise_variance": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(X, y)
    assert search.predict_proba(X).shape == (60, 2)
    assert_array_equal(pickle.loads(pickle.dumps(X)), X)


# -- who beside what -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", thinned(["ep", "laplace"]))
def test_a_raw_frame_with_ids_categories_and_gaps_becomes_a_tuned_model(engine):
    X, y = from_columns(contests(200), *SIDES, ids=("home", "away"))
    columns = ColumnTransformer(
        [
            ("id", "passthrough", ["id"]),
            ("age", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ("style", OneHotEncoder(handle_unknown="ignore"), ["style"]),
        ]
    )
    who, what = OnColumns(Identity(), [0]), OnColumns(RBF(1.0, "fixed"), [1, 2, 3, 4])
    kernel = who + what
    regressor = model(kernel=kernel, id_column=0, inference=engine)
    pipeline = make_pipeline(Itemwise(columns), regressor)
    grid = {"pairwisepreferenceregressor__noise_variance": [0.03, 0.3, 3.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=2, error_score="raise")
    search.fit(X, y)
    later, won = from_columns(contests(200, seed=2), *SIDES, ids=("home", "away"))
    assert search.score(later, won) > -0.4
    blind = clone(search.best_estimator_).set_params(pairwisepreferenceregressor__kernel=what)
    assert blind.fit(X, y).score(later, won) < 0.65 < search.best_estimator_.score(later, won) - 0.1


def test_ids_tell_items_apart_and_strangers_are_the_population():
    X, y = from_columns(contests(100), [], [], "home_won", ids=("home", "away"))
    fitted = model(kernel=Identity()).fit(X, y)
    assert fitted.n_features_in_ == 1 and fitted.feature_names_in_.tolist() == ["id"]
    assert set(fitted.ids_) == {f"player {i}" for i in range(12)}
    table = ItemTable.from_names([f"player {i}" for i in range(12)])
    truth = model(items=table).fit(*from_pairs(table, contests(100)[["home", "away"]], y))
    names = pd.DataFrame({"id": table.names})
    assert_allclose(fitted.predict(names), truth.predict(table), atol=1e-7)
    strangers = pd.DataFrame({"id": ["zoe", "yan", "zoe", "player 3"]})
    mean, cov = fitted.predict(strangers, return_cov=True)
    assert_allclose(mean[:3], 0.0)
    assert_allclose(cov[:3, :3], [[1, 0, 1], [0, 1, 0], [1, 0, 1]], atol=1e-12)
    assert mean[3] != 0.0
    coming = pd.DataFrame({"a": ["zoe"], "b": ["yan"]})
    duels, _ = from_columns(coming, [], [], False, ids=("a", "b"))
    assert_allclose(fitted.predict_proba(duels), 0.5)


def test_splitters_keep_ids_apart_whatever_their_features():
    X, _y = from_columns(contests(100), *SIDES, ids=("home", "away"))
    for train, test in ItemKFold(3, mixed="test").split(X):
        known = set(X[train].first["id"]) | set(X[train].second["id"])
        tested = zip(X[test].first["id"], X[test].second["id"], strict=True)
        assert not any(set(pair) <= known for pair in tested)
        assert len(test) and len(train)


def test_an_id_against_itself_is_refused_whatever_its_features():
    frame = pd.DataFrame({"id": ["ann", "bob", "ann"], "age": [30, 40, 31]})
    X = DuelFrame(frame, [[0, 1], [0, 2]], id_column="id")
    with pytest.raises(ValueError, match="Row 1 of X sets an item against itself"):
        model().fit(X, [1, 0])


@pytest.mark.parametrize(
    ("id_column", "match"),
    [
        ("name", r"id_column='name' names no column: X has columns \['id', 'age'\]"),
        (2, r"position in \[0, 1\], got 2"),
        (True, "got True"),
    ],
)
def test_columns_of_ids_must_be_there(id_column, match):
    X, y = from_columns(contests(), "home_age", "away_age", "home_won", ids=("home", "away"))
    with pytest.raises(ValueError, match=match):
        model(id_column=id_column).fit(X, y)
    with pytest.raises(ValueError, match=r"columns of X have no names.*behind Itemwise"):
        model(id_column="id").fit(np.zeros((2, 2, 2)), [1, 0])


def test_numbers_as_ids_stay_as_they_are():
    frame = contests().assign(home=lambda f: f.home.str[7:].astype(int) + 100)
    frame["away"] = frame["away"].str[7:].astype(int) + 100
    X, y = from_columns(frame, [], [], "home_won", ids=("home", "away"))
    fitted = model(kernel=Identity()).fit(X, y)
    known = pd.DataFrame({"id": np.arange(100, 112)})
    assert_allclose(fitted.predict(known), fitted.posterior_.mean(known.to_numpy(float)))
    with pytest.raises(ValueError, match="fitted on ids that are numbers"):
        fitted.predict(pd.DataFrame({"id": ["ann"]}))
    huge = frame.assign(home=frame.home + 2**60, away=frame.away + 2**60)  # one and the same float
    X, y = from_columns(huge, [], [], "home_won", ids=("home", "away"))
    apart = model(kernel=Identity()).fit(X, y)
    assert len(apart.duels_.items) == 12


# -- names ---------------------------------------------------------------------------------


def test_names_do_wherever_positions_do():
    table = ItemTable(ITEMS.to_numpy(), names=ITEMS.index)
    positions = table.index(PAIRS)
    fitted = model(items=table).fit(positions, [1, 0, 1, 0, 1, 0])
    ways = (
        PAIRS,
        np.array(PAIRS),
        np.array(PAIRS, dtype=object),
        pd.DataFrame(PAIRS, columns=["home", "away"]),
    )
    for pairs in ways:
        same = model(items=table).fit(pairs, [1, 0, 1, 0, 1, 0])
        assert_array_equal(same.predict_proba(pairs), fitted.predict_proba(positions))
    for names in (
        ["b", "h"],
        np.array(["b", "h"]),
        pd.Series(["b", "h"]),
        pd.DataFrame({"n": ["b", "h"]}),
    ):
        assert_array_equal(fitted.predict(names), fitted.predict([1, 7]))
    with pytest.raises(ValueError, match=r"1 unknown name\(s\) of items: 'z'"):
        fitted.predict(["z"])
    with pytest.raises(ValueError, match=r"unknown name\(s\)"):
        model(items=ItemTable.from_names("ab")).fit([["a", "b"], ["a", "z"]])


def test_strangers_by_name_are_the_population_where_items_have_no_features():
    fitted = model(items=ItemTable.from_names("abc")).fit([["a", "b"], ["b", "c"], ["a", "c"]])
    mean, cov = fitted.predict(["x", "y", "x", "a"], return_cov=True)
    assert_allclose(mean[:3], 0.0)
    assert_allclose(cov[:3, :3], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    assert mean[3] == fitted.predict(["a"])[0]
    assert_allclose(fitted.predict_proba([["x", "y"]]), 0.5)
    chance = fitted.predict_proba([["a", "x"], ["c", "x"]])[:, 1]
    assert chance[0] > 0.5 > chance[1]


def test_a_kernel_that_measures_ids_is_told():
    X = [[["a", 0.1], ["b", 0.3]], [["b", 0.2], ["c", 0.9]], [["c", 0.4], ["a", 0.5]]]
    frame = pd.DataFrame([[*one, *two] for one, two in X], columns=["p", "u", "q", "v"])
    duels, y = from_columns(frame, ["u"], ["v"], True, ids=("p", "q"))
    measuring = PairwisePreferenceRegressor(RBF([1.0, 1.0]), optimizer=None)
    with pytest.warns(UserWarning, match=r"sees the ids of items, in column 0.*OnColumns"):
        measuring.fit(duels, y)
    naming = OnColumns(Identity(), [0]) + OnColumns(RBF(1.0), [1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwisePreferenceRegressor(naming, optimizer=None).fit(duels, y)


def test_names_in_the_place_of_features_are_sent_to_ids():
    frame = pd.DataFrame({"one": ["x", "y"], "other": ["y", "x"], "won": [1, 0]})
    model = PairwisePreferenceRegressor(optimizer=None)
    with pytest.raises(
        ValueError, match=r"\['one'\] hold other.* name them in ids= of from_columns"
    ):
        model.fit(*from_columns(frame, "one", "other", "won"))
    X, y = from_columns(frame, [], [], "won", ids=("one", "other"))
    assert model.fit(X, y).predict_proba(X)[0, 1] > 0.5
