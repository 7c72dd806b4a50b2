"""Itemwise: one transformer for both sides of duels."""

import pickle
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    f_regression,
    mutual_info_classif,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils.estimator_checks import check_estimator

from skpref import PairwisePreferenceRegressor
from skpref.duels import DuelFrame, from_columns
from skpref.preprocessing import Itemwise

pd = pytest.importorskip("pandas")


class DifferenceModel(BaseEstimator):
    """Logistic regression on differences of features, as a stand-in for an estimator."""

    _estimator_type = "regressor"

    def fit(self, X, y):
        self.model_ = LogisticRegression(fit_intercept=False).fit(X[:, 0] - X[:, 1], y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, 0] - X[:, 1])

    def predict(self, X):
        return X @ self.model_.coef_[0]

    def score(self, X, y):
        return self.model_.score(X[:, 0] - X[:, 1], y)


@pytest.fixture
def duels():
    """Duels of ten items, of which some are seen far more often than others."""
    rng = np.random.default_rng(0)
    items = rng.normal([5.0, -3.0, 0.0], [10.0, 0.1, 1.0], size=(10, 3))
    first, second = np.minimum(rng.geometric(0.4, (2, 80)) - 1, 9)
    X = np.stack([items[first], items[second]], axis=1)
    return X, (first < second).astype(int)


# --- what a transformer learns from


class Recorder(TransformerMixin, BaseEstimator):
    """Keeps the rows and the y that it was fitted with."""

    def fit(self, X, y=None):
        self.rows_, self.y_ = np.asarray(X), None if y is None else np.asarray(y)
        return self

    def transform(self, X):
        return X


def learned_from(X, y):
    """The target of each item, by its first feature."""
    inner = Itemwise(Recorder()).fit(X, y).transformer_
    return dict(zip(inner.rows_[:, 0].tolist(), inner.y_.tolist(), strict=True))


def counted_by_hand(answers):
    """Share of wins from (better, worse, weight of the win) triples."""
    wins, met = {}, {}
    for better, worse, win in answers:
        for item, gain in ((better, win), (worse, 1.0 - win)):
            wins[item] = wins.get(item, 0.0) + gain
            met[item] = met.get(item, 0) + 1
    return {item: wins[item] / met[item] for item in met}


# Labels of won, tied, lost duels.
LABELS = {
    "0 and 1": ([1, 0, 1, 1, 0], [1.0, 0.0, 1.0, 1.0, 0.0]),
    "signed": ([1, -1, 1, 1, -1], [1.0, 0.0, 1.0, 1.0, 0.0]),
    "booleans": ([True, False, True, True, False], [1.0, 0.0, 1.0, 1.0, 0.0]),
    "ties": ([1, -1, 0, 1, 0], [1.0, 0.0, 0.5, 1.0, 0.5]),
    "grades": ([2, -1, 1, 2, -2], [1.0, 0.0, 1.0, 1.0, 0.0]),
    "graded ties": ([2, 0, 1, 0, -2], [1.0, 0.5, 1.0, 0.5, 0.0]),
    "ranks": ([[1, 2], [2, 1], [1, 2], [1, 2], [2, 1]], [1.0, 0.0, 1.0, 1.0, 0.0]),
    "none": (None, [1.0, 1.0, 1.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("labels", LABELS)
def test_of_duels_a_transformer_learns_from_shares_of_wins(labels):
    y, wins = LABELS[labels]
    pairs = [(0, 1), (1, 2), (0, 2), (3, 1), (0, 3)]
    X = np.array(pairs, dtype=float)[:, :, None]
    expected = counted_by_hand([(*pair, win) for pair, win in zip(pairs, wins, strict=True)])
    assert learned_from(X, y) == pytest.approx(expected)


def test_shares_of_wins_depend_neither_on_order_nor_on_sides(duels):
    X, y = duels
    flip = np.arange(len(X)) % 3 == 0
    order = np.random.default_rng(2).permutation(len(X))
    turned = np.where(flip[:, None, None], X[:, ::-1], X)[order]
    one, other = learned_from(X, y), learned_from(turned, np.where(flip, 1 - y, y)[order])
    assert one == other


def test_of_choices_and_rankings_it_learns_from_the_pairs_that_they_state():
    sets = np.array([[0.0, 1.0, 2.0], [2.0, 3.0, 0.0]])[:, :, None]
    stated = [(1, 0, 1.0), (1, 2, 1.0), (2, 3, 1.0), (2, 0, 1.0)]
    assert learned_from(sets, [1, 0]) == pytest.approx(counted_by_hand(stated))
    ranks = [[1, 2, 3], [0, 1, 2]]  # of neighbours in rank; nothing of 2 in the second
    stated = [(0, 1, 1.0), (1, 2, 1.0), (3, 0, 1.0)]
    assert learned_from(sets, ranks) == pytest.approx(counted_by_hand(stated))
    # The third item is shown, and nothing is stated of it.
    alone = learned_from(sets[:1], [[1, 2, 0]])
    assert alone == {0.0: 1.0, 1.0: 0.0, 2.0: 0.5}


def test_of_rated_items_it_learns_from_their_ratings():
    X = np.array([[3.0], [1.0], [3.0], [2.0]])
    assert learned_from(X, [4.0, 1.0, 2.0, 9.0]) == {3.0: 3.0, 1.0: 1.0, 2.0: 9.0}
    assert Itemwise(Recorder()).fit(X).transformer_.y_ is None
    chosen = Itemwise(SelectKBest(k=1))  # of classes
    chosen.fit([[1.0, 0.3], [0.1, 0.5], [0.2, 0.2], [0.0, 0.4]], [1, 0, 0, 0])
    assert chosen.transformer_.get_support().tolist() == [True, False]


@pytest.fixture
def cities():
    """Duels of items in a frame: a city, whose level decides, and a number that says nothing."""
    rng = np.random.default_rng(4)
    city, size = rng.integers(0, 5, 60), rng.random(60)
    first, second = np.array([rng.choice(60, 2, replace=False) for _ in range(200)]).T
    level = np.array([0.0, 3.0, 1.0, 2.0, 4.0])[city]
    won = level[first] + rng.standard_normal(200) > level[second] + rng.standard_normal(200)
    table = {"city": np.array(list("abcde"), dtype=object)[city], "size": size}
    sides = [
        {f"{name}{k}": v[rows] for name, v in table.items()}
        for k, rows in enumerate((first, second))
    ]
    frame = pd.DataFrame({**sides[0], **sides[1], "won": won.astype(int)})
    columns = ["city0", "size0"], ["city1", "size1"]
    return from_columns(frame, *columns, "won", names=["city", "size"])


ENCODER = ColumnTransformer(
    [("city", TargetEncoder(), ["city"]), ("size", "passthrough", ["size"])]
)


def test_a_target_encoder_orders_categories_by_their_wins(cities):
    X, y = cities
    itemwise = Itemwise(ENCODER).fit(X, y)
    fitted = itemwise.transformer_.named_transformers_["city"]
    order = np.argsort(fitted.encodings_[0])
    assert fitted.categories_[0][order].tolist() == ["a", "c", "d", "b", "e"]
    inner = Itemwise(Recorder()).fit(X, y).transformer_
    truth = TargetEncoder().fit(inner.rows_[:, :1], inner.y_)
    np.testing.assert_allclose(fitted.encodings_[0], truth.encodings_[0], rtol=1e-12)
    model = make_pipeline(Itemwise(ENCODER), PairwisePreferenceRegressor(optimizer=None))
    plain = make_pipeline(
        Itemwise(ColumnTransformer([("size", "passthrough", ["size"])])),
        PairwisePreferenceRegressor(optimizer=None),
    )
    scores = [cross_val_score(each, X, y, cv=4).mean() for each in (model, plain)]
    assert scores[0] > 0.7 > scores[1] + 0.1


def test_folds_learn_from_their_training_duels_alone(cities):
    X, y = cities
    pipeline = make_pipeline(Itemwise(ENCODER), PairwisePreferenceRegressor(optimizer=None))
    folds = list(KFold(4).split(X))
    found = cross_validate(pipeline, X, y, cv=folds, return_estimator=True)["estimator"]
    other = np.concatenate([1 - y[:50], y[50:]])  # the first fold's test answers turned round
    again = cross_validate(pipeline, X, other, cv=folds[:1], return_estimator=True)["estimator"]
    encodings = [
        each[0].transformer_.named_transformers_["city"].encodings_[0] for each in (*found, *again)
    ]
    for encoding, (train, _) in zip(encodings, folds, strict=False):
        by_hand = Itemwise(ENCODER).fit(X[train], y[train]).transformer_
        assert_array_equal(encoding, by_hand.named_transformers_["city"].encodings_[0])
    assert_array_equal(encodings[4], encodings[0])
    assert not np.array_equal(encodings[1], encodings[0])


def test_features_are_selected_by_what_wins():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 2, 6))
    y = (X[:, 0, 4] > X[:, 1, 4]).astype(int)
    chosen = Itemwise(SelectKBest(f_regression, k=1)).fit(X, y)
    assert chosen.transformer_.get_support().tolist() == [False] * 4 + [True, False]
    texts = np.array([["good plot", "dull plot"], ["dull cast", "good cast"]] * 6, dtype=object)
    reader = make_pipeline(TfidfVectorizer(), SelectKBest(f_regression, k=2))
    words = Itemwise(reader).fit(texts, [1, 0] * 6)
    assert words.get_feature_names_out().tolist() == ["dull", "good"]


def test_labels_that_are_no_outcomes_are_refused():
    X = np.arange(6.0).reshape(3, 2, 1)
    for y, match in (
        (["a", "b", "a"], "labels|outcomes|values"),
        ([1, 0], "inconsistent numbers"),
        ([0.5, 1.0, 0.0], "0.5"),
    ):
        with pytest.raises(ValueError, match=match):
            Itemwise(SelectKBest(f_regression, k=1)).fit(X, y)


# --- scikit-learn's own checks


@pytest.mark.parametrize(
    "estimator, n_passed",
    [(Itemwise(), 46), (Itemwise(StandardScaler()), 45), (Itemwise(PCA(1)), 46)],
    ids=["passthrough", "scaler", "pca"],
)
def test_check_estimator(estimator, n_passed):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    passed = [r["check_name"] for r in results if r["status"] == "passed"]
    other = {r["check_name"]: r["status"] for r in results if r["status"] != "passed"}
    assert other.items() <= {"check_array_api_input": "skipped"}.items()  # wants SCIPY_ARRAY_API
    print(len(passed), len(other))
    assert len(passed) == n_passed


# --- both sides alike, one fit on the distinct items


def test_fit_is_that_of_the_distinct_items(duels):
    X, _ = duels
    itemwise = Itemwise(StandardScaler()).fit(X)
    truth = StandardScaler().fit(np.unique(X.reshape(-1, 3), axis=0))
    np.testing.assert_allclose(itemwise.transformer_.mean_, truth.mean_, rtol=1e-12)
    np.testing.assert_allclose(itemwise.transformer_.scale_, truth.scale_, rtol=1e-12)
    for side in (0, 1):
        np.testing.assert_allclose(
            itemwise.transform(X)[:, side], truth.transform(X[:, side]), atol=1e-12
        )


def test_repeats_order_and_orientation_change_nothing(duels):
    X, _ = duels
    order = np.random.default_rng(1).permutation(len(X))
    one = Itemwise(PCA(2)).fit(X)
    other = Itemwise(PCA(2)).fit(np.concatenate([X[order], X[:20]])[:, ::-1])
    assert np.array_equal(one.transform(X), other.transform(X))
    assert np.array_equal(one.transform(X)[:, ::-1], one.transform(X[:, ::-1]))


def test_fit_transform_equals_fit_then_transform_and_leaves_x(duels):
    X, _ = duels
    X.flags.writeable = False
    itemwise = Itemwise(StandardScaler())
    assert np.array_equal(itemwise.fit_transform(X), itemwise.fit(X).transform(X))


def test_items_and_duels_are_transformed_alike(duels):
    X, _ = duels
    itemwise = Itemwise(StandardScaler()).fit(X)
    assert itemwise.n_features_in_ == 3
    assert np.array_equal(itemwise.transform(X[:, 0]), itemwise.transform(X)[:, 0])
    fitted_on_items = Itemwise(StandardScaler()).fit(X.reshape(-1, 3))
    assert np.array_equal(fitted_on_items.transform(X), itemwise.transform(X))


def test_passthrough_returns_the_values(duels):
    X, _ = duels
    assert np.array_equal(Itemwise().fit_transform(X), X)
    assert Itemwise().fit(X).get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


def test_inverse_transform_returns_the_duels(duels):
    X, _ = duels
    itemwise = Itemwise(StandardScaler()).fit(X)
    np.testing.assert_allclose(itemwise.inverse_transform(itemwise.transform(X)), X, atol=1e-12)
    np.testing.assert_allclose(
        itemwise.inverse_transform(itemwise.transform(X[:, 0])), X[:, 0], atol=1e-12
    )
    assert np.array_equal(Itemwise().fit(X).inverse_transform(X), X)
    assert not hasattr(Itemwise(TruncatedTable()), "inverse_transform")
    assert not hasattr(Itemwise(TruncatedTable()), "get_feature_names_out")


class TruncatedTable(TransformerMixin, BaseEstimator):
    """A transformer that loses rows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)[:1]


def test_sparse_output_comes_out_dense(duels):
    X, _ = duels
    X = np.round(X[..., 2:])
    dense = Itemwise(OneHotEncoder(sparse_output=False)).fit_transform(X)
    out = Itemwise(OneHotEncoder()).fit_transform(X)
    assert isinstance(out, np.ndarray)
    assert np.array_equal(out, dense)
    assert np.array_equal(out.sum(axis=2), np.ones((len(X), 2)))


def test_missing_values_are_left_to_the_transformer(duels):
    X, _ = duels
    X[3, 0, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        Itemwise().fit(X)
    out = Itemwise(make_pipeline(SimpleImputer(), StandardScaler())).fit_transform(X)
    assert np.isfinite(out).all()


def test_equal_rows_with_nan_count_once():
    X = np.array([[[np.nan], [1.0]], [[np.nan], [3.0]], [[np.nan], [1.0]]])
    counter = FunctionTransformer(lambda rows: np.full_like(rows, len(rows)))
    assert np.all(Itemwise(counter).fit_transform(X) == 3)


def test_integers_keep_their_type():
    X = np.array([[[2**60 + 1], [2**60]], [[2**60], [2**60 + 2]]])  # floats cannot tell them apart
    assert np.array_equal(Itemwise().fit_transform(X), X)


# --- DataFrames and mixed columns

TABLE = pd.DataFrame({"colour": ["red", "blue", "red", "green"], "size": [1.0, 2.0, 1.0, 4.0]})
COLUMNS = ColumnTransformer(
    [("c", OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("s", StandardScaler(), ["size"])]
)


def test_frames_of_mixed_columns_reach_the_transformer():
    itemwise = Itemwise(COLUMNS).fit(TABLE)
    truth = clone(COLUMNS).fit(TABLE.drop_duplicates())
    np.testing.assert_allclose(itemwise.transform(TABLE), truth.transform(TABLE))
    assert itemwise.feature_names_in_.tolist() == ["colour", "size"]
    assert itemwise.n_features_in_ == 2
    assert itemwise.get_feature_names_out().tolist() == truth.get_feature_names_out().tolist()


def test_duels_of_mixed_columns_follow_a_fit_on_a_frame():
    itemwise = Itemwise(COLUMNS).fit(TABLE)
    pairs = np.array([[0, 1], [3, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = itemwise.transform(TABLE.to_numpy()[pairs])
    np.testing.assert_allclose(out, itemwise.transform(TABLE)[pairs])


def test_object_duels_take_a_column_transformer_by_place():
    pairs = np.array([[0, 1], [3, 2], [1, 3]])
    by_place = ColumnTransformer(
        [("c", OneHotEncoder(), [0]), ("s", StandardScaler(), [1])], sparse_threshold=0
    )
    out = Itemwise(by_place).fit_transform(TABLE.to_numpy()[pairs])
    truth = clone(by_place).fit(TABLE.drop_duplicates().to_numpy())
    np.testing.assert_allclose(out, truth.transform(TABLE.to_numpy())[pairs], atol=1e-12)


def test_missing_categories_do_not_stop_the_grouping():
    frame = TABLE.assign(colour=["red", None, "red", np.nan])
    out = Itemwise(COLUMNS).fit_transform(frame)
    assert np.array_equal(out[0], out[2])
    assert np.isfinite(out).all()


def test_numeric_frames_keep_scikit_learns_manners(duels):
    X, _ = duels
    frame = pd.DataFrame(X[:, 0], columns=["a", "b", "c"])
    itemwise = Itemwise(StandardScaler()).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = itemwise.transform(frame)
        assert np.array_equal(itemwise.transform(X)[:, 0], expected)  # duels never have names
    with pytest.warns(UserWarning, match="Itemwise was fitted with feature names") as record:
        assert np.array_equal(itemwise.transform(X[:, 0]), expected)
    assert len(record) == 1
    with pytest.raises(ValueError, match="feature names should match"):
        itemwise.transform(frame[["b", "a", "c"]])
    without = Itemwise(StandardScaler()).fit(X)
    with pytest.warns(UserWarning, match="Itemwise was fitted without feature names") as record:
        assert np.array_equal(without.transform(frame), without.transform(X[:, 0]))
    assert len(record) == 1
    with pytest.raises(ValueError, match="NaN"):
        Itemwise().fit(frame.assign(a=np.nan))


def test_output_has_names_where_it_is_asked_for(duels):
    X, _ = duels
    expected = Itemwise(StandardScaler()).fit_transform(X)
    assert isinstance(expected, np.ndarray)
    with config_context(transform_output="pandas"):
        assert isinstance(Itemwise(StandardScaler()).fit_transform(X), DuelFrame)
    frame = pd.DataFrame(X[:, 0], columns=["a", "b", "c"], index=np.arange(80) + 7)
    itemwise = Itemwise(StandardScaler()).fit(DuelFrame(frame, [[i, i - 1] for i in range(1, 80)]))
    pipeline = make_pipeline(itemwise, DifferenceModel()).set_output(transform="pandas")
    found = pipeline[0].transform(X)
    assert found.columns.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found, pipeline[0].set_output(transform="default").transform(X))
    items = clone(itemwise.set_output(transform="pandas")).fit_transform(frame)
    assert items.columns.tolist() == ["a", "b", "c"] and items.index.equals(frame.index)
    polars = pytest.importorskip("polars")
    assert isinstance(itemwise.set_output(transform="polars").transform(frame), polars.DataFrame)
    with pytest.raises(ValueError, match='"default", "pandas", "polars" or None'):
        itemwise.set_output(transform="arrow")


def test_integers_in_two_columns_are_items_here_as_in_the_regressor():
    X = np.array([[0, 1], [2, 0]])
    assert Itemwise(StandardScaler()).fit_transform(X).tolist() == [[-1.0, 1.0], [1.0, -1.0]]


# --- texts

TEXTS = ["the cat sat", "a dog ran", "the dog sat", "cats and dogs"]
TEXT_FRAME = pd.DataFrame({"left": TEXTS, "right": TEXTS})


@pytest.mark.parametrize("dtype", [object, str])
def test_texts_are_vectorised_once_each(dtype):
    pairs = np.array([[0, 1], [2, 3], [0, 2], [0, 3]])
    X = np.array(TEXTS, dtype=dtype)[pairs]
    itemwise = Itemwise(TfidfVectorizer()).fit(X)
    truth = TfidfVectorizer().fit(TEXTS)  # each counts once in the document frequencies
    np.testing.assert_allclose(
        itemwise.transform(X), truth.transform(TEXTS).toarray()[pairs], rtol=1e-12
    )
    np.testing.assert_allclose(
        itemwise.transform(np.array(TEXTS, dtype=dtype)), truth.transform(TEXTS).toarray()
    )
    assert itemwise.transform(TEXTS).shape[0] == 4
    assert itemwise.get_feature_names_out().tolist() == truth.get_feature_names_out().tolist()
    assert not hasattr(itemwise, "n_features_in_")
    assert itemwise.transform(pd.Series(TEXTS, dtype="str")).shape[0] == 4


def test_repeated_texts_cost_little():
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(500)])
    texts = np.array([" ".join(rng.choice(words, 100)) for _ in range(50)], dtype=object)
    X = texts[rng.integers(0, 50, (5000, 2))]
    calls = []

    def count(rows):
        calls.append(len(rows))
        return np.ones((len(rows), 1))

    start = time.perf_counter()
    Itemwise(FunctionTransformer(count)).fit_transform(X)
    assert calls == [50]
    assert time.perf_counter() - start < 1.0


def test_refitting_forgets_the_other_kind(duels):
    X, _ = duels
    itemwise = Itemwise().fit(X)
    itemwise.set_params(transformer=TfidfVectorizer()).fit(TEXTS)
    assert not hasattr(itemwise, "n_features_in_")
    with pytest.raises(ValueError, match="fitted on texts, got features"):
        itemwise.transform(X)
    itemwise.set_params(transformer=StandardScaler()).fit(X)
    with pytest.raises(ValueError, match="fitted on features, got texts"):
        itemwise.transform(TEXTS)


# --- as a part of other things


def test_pipelines_searches_clones_and_pickles(duels):
    X, y = duels
    model = make_pipeline(Itemwise(StandardScaler()), DifferenceModel())
    search = GridSearchCV(
        model, {"itemwise__transformer__with_mean": [True, False]}, cv=3, error_score="raise"
    ).fit(X, y)
    # Differences do not see the mean.
    a, b = search.cv_results_["mean_test_score"]
    assert a == b
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict_proba(X), search.best_estimator_.predict_proba(X))
    assert np.array_equal(clone(again).fit(X, y).predict(X[:, 0]), again.predict(X[:, 0]))


def test_scaling_makes_the_units_of_a_feature_immaterial(duels):
    X, y = duels
    model = make_pipeline(Itemwise(StandardScaler()), DifferenceModel())
    expected = model.fit(X, y).predict_proba(X)
    units = X * [1e6, 1e-6, 1.0]
    np.testing.assert_allclose(model.fit(units, y).predict_proba(units), expected, atol=1e-5)


def test_text_pipeline_predicts_duels_and_items():
    rng = np.random.default_rng(0)
    texts = np.array(
        [f"{w} {v}" for w in ("good", "bad") for v in ["pqrst", "for", "all", "of", "us"]]
    )
    first, second = rng.integers(0, 5, 40), rng.integers(5, 10, 40)
    swap = np.arange(40) % 2 == 0
    X = texts[np.stack([np.where(swap, second, first), np.where(swap, first, second)], axis=1)]
    vectorise = make_pipeline(TfidfVectorizer(), TruncatedSVD(3, random_state=0))
    model = make_pipeline(Itemwise(vectorise), DifferenceModel()).fit(X, (~swap).astype(int))
    assert model.predict_proba(X)[~swap, 1].min() > 0.5 > model.predict_proba(X)[swap, 1].max()
    assert model.predict(texts)[:5].min() > model.predict(texts)[5:].max()


# --- bad input


@pytest.mark.parametrize(
    "transformer, X, match",
    [
        ("passthrough", np.zeros((4, 1, 2)), r"duels \(n_duels, 2, n_features\), got \(4, 1, 2\)"),
        ("passthrough", np.zeros(4), "Expected 2D array"),
        ("passthrough", np.zeros((0, 2, 3)), "minimum of 1 is required"),
        ("passthrough", np.full((2, 2, 1), np.inf), "infinity"),
        ("passthrough", np.array([["a", "b"]]), r"must return one row an item"),
        ("passthrough", TABLE, "could not convert string to float"),
        (StandardScaler(), np.zeros((2, 2, 0)), r"0 feature\(s\)"),
        (FunctionTransformer(), TABLE.to_numpy(), "values that are not numbers"),
        (TruncatedTable(), np.arange(12.0).reshape(3, 2, 2), r"shape \(1, 2\) for 6 items"),
        (
            TfidfVectorizer(),
            pd.DataFrame({"left": TEXTS, "right": TEXTS}),
            "to_numpy.. holds text duels",
        ),
        (SelectKBest(k=1), np.arange(12.0).reshape(3, 2, 2), "f_classif compares.*f_regression"),
        (SelectKBest(k=1), np.arange(6.0).reshape(3, 2), "requires y to be passed"),
        (
            make_pipeline(StandardScaler(), SelectPercentile(mutual_info_classif)),
            np.arange(12.0).reshape(3, 2, 2),
            "selectpercentile__score_func=mutual_info_classif compares",
        ),
        (
            LinearDiscriminantAnalysis(),
            np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[2.0], [0.0]]]),
            "LinearDiscriminantAnalysis takes classes.*share of wins",
        ),
    ],
)
def test_itemwise_refuses(transformer, X, match):
    with pytest.raises(ValueError, match=match):
        Itemwise(transformer).fit_transform(X)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_sparse_input_and_other_widths_are_refused(duels):
    X, _ = duels
    with pytest.raises(TypeError, match="dense data is required"):
        Itemwise(StandardScaler()).fit(sparse.csr_array(X[:, 0]))
    with pytest.raises(ValueError, match="X has 2 features, but Itemwise is expecting 3"):
        Itemwise(StandardScaler()).fit(X).transform(X[..., :2])
    with pytest.raises(ValueError, match="X has 2 features, but Itemwise is expecting 3"):
        Itemwise().fit(pd.DataFrame(X[:, 0], columns=list("abc"))).transform(X[..., :2])


@pytest.mark.parametrize("transformer", [None, "scale", 3])
def test_transformers_must_be_transformers(transformer):
    with pytest.raises(TypeError, match="give an object with fit and transform"):
        Itemwise(transformer).fit([[1.0]])


# --- ids that pass


def _matches(ids):
    """Duels of players with a number each, and ids as they are given."""
    rng = np.random.default_rng(0)
    first = rng.integers(6, size=60)
    second = (first + rng.integers(1, 6, size=60)) % 6
    table = pd.DataFrame({"a": np.asarray(ids)[first], "b": np.asarray(ids)[second]})
    table["rest_a"], table["rest_b"] = rng.normal(size=(2, 60))
    won = first - second + rng.standard_normal(60) > 0
    return from_columns(table.assign(won=won), ["rest_a"], ["rest_b"], "won", ids=("a", "b"))


def _passing(place):
    """Itemwise that scales the number and lets ids pass, as this column of its output."""
    parts = [("rest", StandardScaler(), ["rest"]), ("id", "passthrough", ["id"])]
    return Itemwise(ColumnTransformer(parts[:: 1 if place else -1]))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("ids", [list("abcdef"), [12, 7, 31, 5, 2, 90]], ids=["texts", "numbers"])
def test_a_model_behind_finds_the_ids_that_pass(ids, place):
    X, y = _matches(ids)
    model = PairwisePreferenceRegressor(optimizer=None)
    found = make_pipeline(_passing(place), model).fit(X, y)
    told = make_pipeline(_passing(place), clone(model).set_params(id_column=place)).fit(X, y)
    assert found[-1].kernel_ == told[-1].kernel_
    assert f"Identity(), columns=[{place}]" in str(found[-1].kernel_)
    np.testing.assert_array_equal(found.predict_proba(X), told.predict_proba(X))
    asked = pd.DataFrame({"id": [*ids[:2], ids[0]], "rest": [0.0, 0.0, 0.5]})
    np.testing.assert_array_equal(found.predict(asked), told.predict(asked))


def test_a_feature_equal_to_the_ids_is_not_taken_for_them():
    X, _ = _matches(range(6))
    items = X.items.assign(again=X.items["id"])
    X = DuelFrame(items, X.pairs, id_column="id")
    parts = [("again", "passthrough", ["again"]), ("id", "passthrough", ["id"])]
    for transformer in (ColumnTransformer(parts), "passthrough"):
        found = Itemwise(transformer).fit_transform(X)
        assert str(found.id_column).endswith("id")


@pytest.mark.parametrize("transformer", [StandardScaler(), PCA(1), OneHotEncoder()])
def test_ids_that_do_not_pass_are_not_found(transformer):
    X, _ = _matches(list("abcdef"))
    parts = [("id", transformer, ["id"]), ("rest", "passthrough", ["rest"])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(Itemwise(ColumnTransformer(parts)).fit_transform(X), np.ndarray)


def test_ids_that_are_rescaled_warn():
    X, _ = _matches(range(6))
    with pytest.warns(UserWarning, match="rescales the column 'id'.*passthrough"):
        Itemwise(StandardScaler()).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _passing(0).fit(X)
        dropped = Itemwise(ColumnTransformer([("rest", StandardScaler(), ["rest"])])).fit(X)
        measured = DuelFrame(X.items, X.pairs)  # a column of integers that nobody called ids
        Itemwise(StandardScaler()).fit(measured)
    assert isinstance(dropped.transform(X), np.ndarray)
