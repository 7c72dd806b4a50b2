"""Who a user is: ids of every kind, tables of their features, and what is asked about whom."""

import warnings

import numpy as np
import pytest
import sklearn
from collaborative_support import make_study
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import CollaborativePreferenceRegressor, ItemTable
from skpref.inspection import leaderboard
from skpref.preprocessing import Itemwise

STUDY = make_study(n_users=12, n_each=12, taste=2.0, noise=0.05)
NAMES = np.array([f"user {k}" for k in range(12)], dtype=object)[STUDY.users]
FEATURES = np.random.default_rng(0).standard_normal((12, 2))
TABLE = {f"user {k}": row for k, row in enumerate(FEATURES)}


def fitted(users=NAMES, **options):
    options = {"kernel": RBF(1.0), "noise_variance": 0.02, "optimizer": None} | options
    return CollaborativePreferenceRegressor(**options).fit(STUDY.X, STUDY.y, users=users)


def asked(model, users):
    return model.predict_proba(STUDY.X, users=users)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def by_features():
    return fitted(user_features=TABLE)


# -- ids -----------------------------------------------------------------------------------


def tupled():
    ids = np.empty(len(STUDY.users), dtype=object)
    ids[:] = [(int(k), "a") for k in STUDY.users]
    return ids


DAYS = np.datetime64("2020-01-01", "ns") + STUDY.users.astype("m8[D]")


@pytest.mark.parametrize(
    ("ids", "again"),
    [
        (STUDY.users, STUDY.users.tolist()),
        (STUDY.users.astype(np.int32), STUDY.users.astype(float)),
        (STUDY.users[:, None], list(STUDY.users)),
        (NAMES.astype(str), NAMES.tolist()),
        (tupled(), tupled().tolist()),
        ([k if k % 2 else str(k) for k in STUDY.users.tolist()], None),
        (DAYS, list(DAYS)),
    ],
    ids=["int", "int32", "column", "text", "tuple", "mixed", "date"],
)
def test_equal_ids_are_one_user_however_they_come(model, ids, again):
    found = fitted(ids)
    assert_allclose(asked(found, ids if again is None else again), asked(model, NAMES))
    assert len(found.users_) == 12


def test_ids_of_frames(model):
    pd = pytest.importorskip("pandas")
    series = pd.Series(NAMES, index=np.arange(len(NAMES)) + 7)
    for ids in (series, series.astype("category"), series.astype("string"), pd.Index(NAMES)):
        assert_allclose(asked(fitted(ids), NAMES), asked(model, NAMES))
    pl = pytest.importorskip("polars")
    for ids in (pl.Series(NAMES.tolist()), pl.Series(NAMES.tolist(), dtype=pl.Categorical)):
        assert_allclose(asked(fitted(ids), NAMES), asked(model, NAMES))


@pytest.mark.parametrize("missing", [None, np.nan, np.datetime64("NaT")], ids=str)
def test_missing_ids_are_refused_in_training_and_anybody_in_predictions(model, missing):
    for ids in ([*NAMES[:-1], missing], [missing] * len(NAMES)):
        with pytest.raises(ValueError, match="id of a user is missing"):
            fitted(ids)
    with pytest.raises(ValueError, match=r"id of a user is missing .* row 36"):
        fitted(np.ma.masked_equal(STUDY.users, 3))
    assert_allclose(asked(model, [missing] * len(NAMES)), model.predict_proba(STUDY.X))


@pytest.mark.parametrize("ids", [set(range(144)), dict.fromkeys(range(144)), 3, "ann", iter("ab")])
def test_what_is_no_sequence_of_ids(ids):
    with pytest.raises(ValueError, match="users must be a sequence of ids"):
        fitted(ids)


def test_ids_of_another_type_are_told(model):
    with pytest.warns(UserWarning, match="but 0 was, and '0' is not the same"):
        found = asked(fitted(STUDY.users), STUDY.users.astype(str))
    assert_allclose(found, model.predict_proba(STUDY.X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked(model, ["nobody"] * 144)
        asked(model, ["user 3", *range(143)])


# -- features of users ---------------------------------------------------------------------


def test_tables_of_features_in_other_forms(by_features):
    rows = {name: tuple(row) for name, row in reversed(TABLE.items())}
    for table, ids in ((rows, NAMES), (FEATURES * [1e6, 1e-6] + 5.0, STUDY.users)):
        found = fitted(ids, user_features=table)
        assert_allclose(asked(found, ids), asked(by_features, NAMES), atol=1e-9)
    one = fitted(user_features={name: row[0] for name, row in TABLE.items()})
    column = fitted(STUDY.users, user_features=FEATURES[:, :1])
    assert_allclose(asked(one, NAMES), asked(column, STUDY.users))


def test_frames_of_features(by_features):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(FEATURES, index=list(TABLE), columns=["age", "height"])
    assert_allclose(asked(fitted(user_features=frame[::-1]), NAMES), asked(by_features, NAMES))
    for table, message in (
        (frame.assign(home="north"), r"columns \['home'\] hold other things"),
        (frame.assign(n=pd.array([1, None] * 6, dtype="Int64")), "for 6 of 12.*'user 1'"),
        (pd.concat([frame, frame[3:4]]), "name 'user 3' twice, in rows 3 and 12"),
        (frame.set_axis([None, *frame.index[1:]]), "Row 0 of user_features has no id"),
        (frame.reset_index(drop=True), "such as 'user 0' .they have one for 0"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(user_features=table)
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="polars frame, which has no index"):
        fitted(STUDY.users, user_features=pl.DataFrame(FEATURES, schema=["age", "height"]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE | {"user 4": [1.0]}, "unequal length: 2 numbers for 'user 0', 1 for 'user 4'"),
        (TABLE | {"user 4": [1.0, np.inf]}, "for 1 of 12 users, first for 'user 4'"),
        (TABLE | {"user 4": ["a", "b"]}, "got the row of 'user 4' as"),
        (FEATURES.astype(complex), "got user_features as"),
        (FEATURES.astype(str), "got user_features as"),
        (FEATURES[:, 0], r"got shape \(12,\)"),
        ({}, r"got shape \(0,\)"),
        ({name: TABLE[name] for name in list(TABLE)[1:]}, "no row for 1 of 12.*'user 0'"),
    ],
)
def test_what_is_no_table_of_features(table, message):
    with pytest.raises(ValueError, match=message):
        fitted(user_features=table)


def test_a_kernel_of_users_must_take_their_features():
    with pytest.raises(ValueError, match="does not take the 2 features of users"):
        fitted(user_features=TABLE, user_kernel=RBF([1.0, 1.0, 1.0]))


# -- items and answers ---------------------------------------------------------------------


def test_items_that_have_names_alone():
    """Utilities of their own for each item and user: a name that was not asked has none."""
    names = [f"item {k}" for k in range(7)]
    pairs = np.array(names, dtype=object)[STUDY.pairs]
    model = CollaborativePreferenceRegressor(items=ItemTable.from_names(names))
    model.fit(pairs, STUDY.y, users=NAMES)
    assert model.score(pairs, STUDY.y, users=NAMES) > 0.9
    own = model.predict(names, users=["user 2"] * 7)
    assert_allclose(model.predict(np.arange(7), users=["user 2"] * 7), own)
    assert own[6] == 0.0 and np.abs(own[:6]).min() > 0.0
    told = model.predict_proba([["item 6", "item 0"]], users=["user 2"])
    assert 0.0 < told[0, 1] < 1.0 and own[0] * (told[0, 1] - 0.5) < 0.0


def test_items_with_names_and_features(model):
    pd = pytest.importorskip("pandas")
    names = [f"item {k}" for k in range(6)]
    frame = pd.DataFrame(STUDY.items, index=names, columns=["sweet", "strong"])
    found = CollaborativePreferenceRegressor(
        RBF(1.0), items=ItemTable(frame), noise_variance=0.02, optimizer=None
    )
    pairs = np.array(names, dtype=object)[STUDY.pairs]
    found.fit(pairs, STUDY.y, users=NAMES)
    assert_allclose(found.predict_proba(pairs, users=NAMES), asked(model, NAMES), atol=1e-9)


def test_an_id_column_beside_features():
    """Items are told apart by their ids, whatever these are."""

    def proba(ids):
        X = np.concatenate([STUDY.X, ids[STUDY.pairs][:, :, None]], axis=2)
        found = CollaborativePreferenceRegressor(id_column=2, optimizer=None)
        return found.fit(X, STUDY.y, users=NAMES).predict_proba(X, users=NAMES)

    apart = proba(np.arange(6.0))
    assert_allclose(proba(np.array([70.0, 3.0, 5.0, 8.0, 2.0, 9.0])), apart, atol=1e-8)
    assert np.abs(asked(fitted(kernel=None), NAMES) - apart).max() > 1e-3


def test_draws_of_margins(model):
    duels, users = STUDY.X[[0, 0, 1, 1]], ["user 0", "nobody", "user 0", "user 1"]
    mean, cov = model.predict(duels, return_cov=True, users=users)
    draws = model.sample_y(duels, 20000, users=users)
    assert_allclose(draws.mean(axis=1), mean, atol=0.06)
    assert_allclose(np.cov(draws), cov, atol=0.03 * cov.max())
    with pytest.raises(ValueError, match="n_samples"):
        model.sample_y(duels, 0, users=users)


def test_one_label_and_contradicting_parameters(model):
    ones = CollaborativePreferenceRegressor(RBF(1.0), optimizer=None)
    ones.fit(STUDY.X, np.ones(144, dtype=int), users=NAMES)
    assert ones.classes_.tolist() == [0, 1] and np.isfinite(asked(ones, NAMES)).all()
    with pytest.raises(ValueError, match="qid belongs to items with ratings"):
        ones.fit(STUDY.X, STUDY.y, users=NAMES, qid=STUDY.users)
    with pytest.raises(ValueError, match="5 ids in users for 144 rows"):
        model.predict(STUDY.X, users=NAMES[:5])


def test_one_utility_is_needed_for_a_leaderboard(model):
    with pytest.raises(TypeError, match="fitted to several users"):
        leaderboard(model, STUDY.items)


def test_a_pipeline_passes_users_on(model):
    requests = {"users": True}
    last = CollaborativePreferenceRegressor(RBF(1.0), noise_variance=0.02, optimizer=None)
    with sklearn.config_context(enable_metadata_routing=True):
        last.set_fit_request(**requests).set_score_request(**requests)
        pipe = make_pipeline(Itemwise(StandardScaler()), last.set_predict_proba_request(**requests))
        pipe.fit(STUDY.X, STUDY.y, users=NAMES)
        own = pipe.predict_proba(STUDY.X, users=NAMES)
        assert pipe.score(STUDY.X, STUDY.y, users=NAMES) == ((own[:, 1] > 0.5) == STUDY.y).mean()
    scaled = StandardScaler().fit(STUDY.items[np.unique(STUDY.pairs)])
    X = scaled.transform(STUDY.X.reshape(-1, 2)).reshape(STUDY.X.shape)
    alone = CollaborativePreferenceRegressor(RBF(1.0), noise_variance=0.02, optimizer=None)
    alone.fit(X, STUDY.y, users=NAMES)
    assert_allclose(own, alone.predict_proba(X, users=NAMES), atol=1e-9)
