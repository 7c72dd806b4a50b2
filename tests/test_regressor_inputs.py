"""Every bad input has an error that says what came, what is allowed and what to do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.inference import EP, Laplace
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 2, 2))
Y = (X[:, 0].sum(axis=1) > X[:, 1].sum(axis=1)).astype(int)
ITEMS = RNG.standard_normal((8, 2))
RATINGS = ITEMS.sum(axis=1)
QID = np.repeat([0.0, 1.0], 4)
TABLE = RNG.standard_normal((6, 2))
PAIRS = np.array([[0, 1], [2, 3], [4, 5], [1, 2]])
WON = [1, 0, 1, 0]
NAMED = ItemTable.from_names(["ann", "bob", "cid", "dan", "eve", "fay"])


def model(**params):
    return PairwisePreferenceRegressor(**{"optimizer": None} | params)


def put(array, index, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[index] = value
    return array


def cases(*rows):
    return pytest.mark.parametrize(rows[0], [pytest.param(*row[1:], id=row[0]) for row in rows[1:]])


# -- fit: X --------------------------------------------------------------------------------


@cases(
    ("bad", "match"),
    ("NaN", put(X, (3, 0, 0), np.nan), r"NaN or infinity in 1 of 20 duels, first in row 3.*Leave"),
    ("inf", put(X, (3, 0, 0), -np.inf), r"NaN or infinity in 1 of 20 duels.*Itemwise\(SimpleImp"),
    ("too big for a float", np.full((1, 2, 1), 10**400, dtype=object), r"must be numeric.*object"),
    ("one side", X[:, :1], r"\(n_duels, 2, n_features\), got \(20, 1, 2\).*np.stack"),
    ("three sides", np.zeros((20, 3, 2)), r"\(n_duels, 2, n_features\), got \(20, 3, 2\)"),
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
    ("texts", np.full((8, 2), "a"), r"must be numeric: could not convert.*Itemwise.*items\.index"),
    ("1-D", np.arange(8.0), r"got shape \(8,\).*Reshape your data: X.reshape\(1, -1\)"),
    ("scalar", 3.0, "X may be duel arrays.*got a scalar"),
    ("None", None, "X may be duel arrays.*got NoneType"),
    ("dict", {"a": 1}, "X may be duel arrays.*got dict"),
    ("string", "abc", "X may be duel arrays.*got a scalar"),
)
def test_rated_items(bad, match):
    with pytest.raises(ValueError, match=match):
        model().fit(bad, RATINGS)


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
    ("strings", ["won", "lost"] * 10, r"got values such as \['won', 'lost'\]"),
    ("digits as strings", ["0", "1"] * 10, r"got values such as \['0', '1'\]"),
    ("strings in objects", np.array(["0", "1"] * 10, object), r"got values such as \['0', '1'\]"),
    ("other objects", np.array([{}, 1] * 10, object), r"got values such as \[\{\}, 1\]"),
    ("dates", Y.astype("datetime64[D]"), "Outcomes of duels must be in"),
    ("NaN", put(Y * 1.0, 0, np.nan), "y contain NaN, None or infinity in 1 of 20 places. Leave"),
    ("inf", put(Y * 1.0, 0, np.inf), "y contain NaN, None or infinity in 1 of 20 places"),
    ("None among them", [None, 1] * 10, "y contain NaN, None or infinity in 10 of 20 places"),
    ("complex", Y + 0j, r"Complex data not supported: y has dtype complex128"),
    ("too short", Y[:-1], r"inconsistent numbers of samples: 20 duels, 19 outcomes.*Give one"),
    ("too long", [*Y, 1], r"inconsistent numbers of samples: 20 duels, 21 outcomes"),
    ("two columns", np.stack([Y, Y], axis=1), "should be a 1d array, got an array of shape"),
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
    ("NaN", put(RATINGS, 0, np.nan), "Input y contains NaN"),
    ("inf", put(RATINGS, 0, np.inf), "Input y contains infinity"),
    ("strings", list("abcdefgh"), "Ratings must be finite numbers"),
    ("complex", RATINGS + 1j, "Complex data not supported: y has dtype"),
    ("too short", RATINGS[:-1], r"inconsistent numbers of samples: \[8, 7\]"),
    ("two columns", np.stack([RATINGS, RATINGS], axis=1), "should be a 1d array"),
    ("None", None, r"requires y to be passed.*Only duels do without y.*items="),
)
def test_ratings(y, match):
    with pytest.raises(ValueError, match=match):
        model().fit(ITEMS, y)


@cases(
    ("qid", "match"),
    ("NaN", put(QID, 5, np.nan), r"qid contains NaN, None or infinity in 1 of 8.*row 5\. Give"),
    ("inf", put(QID, 0, np.inf), "qid contains NaN, None or infinity in 1 of 8 places"),
    ("None", [None] * 4 + ["a"] * 4, "qid contains NaN, None or infinity in 4 of 8 places"),
    ("mixed", np.array(["a", 1] * 4, object), "qid mixes labels of different types; make them"),
    ("too short", QID[:-1], r"inconsistent numbers of samples: 8 items, qid of shape \(7,\)"),
    ("2-D", np.zeros((8, 2)), r"8 items, qid of shape \(8, 2\).*must be \(n_items,\)"),
    ("scalar", 1, r"qid of shape \(\)"),
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
    ("three columns", np.zeros((4, 3), int), r"must have shape \(n_duels, 2\).*\(4, 3\)"),
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
    for X in (PAIRS * 1.0, ITEMS[:4], PAIRS.astype(np.float32).tolist()):
        with pytest.raises(ValueError, match=both):
            model(items=TABLE).fit(X, WON)
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
    ("names", ["a", "b"], r"(?s)items= must be an ItemTable.*ItemTable\.from_names\(names\)"),
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


# -- parameters ----------------------------------------------------------------------------


def learns(**params):
    return PairwisePreferenceRegressor(**params).fit(X[:6], Y[:6])


NOISE_BOUNDS = r"noise_variance_bounds must be 'fixed' or a pair 0 < low <= high < inf, got "
PRIOR = r"lengthscale_prior must be 'lognormal', None or a pair \(median, deviation"


@cases(
    ("params", "error", "match"),
    ("kernel name", {"kernel": "rbf"}, TypeError, "kernel must be a kernel of sk.*None, got 'rbf'"),
    ("kernel class", {"kernel": RBF}, TypeError, "kernel must be a kernel of sklearn"),
    (
        "kernel of other items",
        {"kernel": RBF([1.0, 2.0, 3.0])},
        ValueError,
        r"does not take items of 2 features.*Give it one length_scale",
    ),
    ("engine", {"inference": "vb"}, ValueError, r"inference must be one of .*'ep'.*got 'vb'"),
    ("engine case", {"inference": "EP"}, ValueError, "inference must be one of .*got 'EP'"),
    ("engine None", {"inference": None}, ValueError, r"'ep'.*options object.*EP\(damp.*got None"),
    ("engine number", {"inference": 3}, ValueError, "inference must be one of .*got 3"),
    ("engine class", {"inference": EP}, ValueError, "inference must be one of .*got <class"),
    ("damping 1", {"inference": EP(damping=1.0)}, ValueError, r"damping must lie in \[0.0, 1.0\)"),
    ("damping", {"inference": EP(damping="a")}, TypeError, "damping must be a number, got 'a'"),
    ("tol 0", {"inference": EP(tol=0.0)}, ValueError, r"tol .*must lie in \(0.0, inf.*got 0.0"),
    ("tol", {"inference": Laplace(tol="a")}, TypeError, "tol .*must be a number, got 'a'"),
    ("max_iter", {"inference": EP(max_iter=0)}, ValueError, r"max_iter must lie in \[1, inf\]"),
    (
        "max_iter 2.5",
        {"inference": Laplace(max_iter=2.5)},
        TypeError,
        "max_iter must be an integer",
    ),
    (
        "noise 0",
        {"noise_variance": 0},
        ValueError,
        r"noise_variance must lie in \(0.0, inf\), got 0",
    ),
    ("noise < 0", {"noise_variance": -1.0}, ValueError, "noise_variance must lie in .*got -1.0"),
    ("noise NaN", {"noise_variance": np.nan}, ValueError, "noise_variance must lie in .*got nan"),
    ("noise inf", {"noise_variance": np.inf}, ValueError, "noise_variance must lie in .*got inf"),
    (
        "noise text",
        {"noise_variance": "learn"},
        TypeError,
        "noise_variance must be a number, got 'l",
    ),
    (
        "noise None",
        {"noise_variance": None},
        TypeError,
        "noise_variance must be a number, got None",
    ),
    (
        "noise bool",
        {"noise_variance": True},
        TypeError,
        "noise_variance must be a number, got True",
    ),
    *(
        (f"noise bounds {bounds!r}", {"noise_variance_bounds": bounds}, ValueError, NOISE_BOUNDS)
        for bounds in (
            (1.0, 0.1),
            (0.0, 1.0),
            (1e-4, np.inf),
            (np.nan, 1.0),
            (-1.0, 1.0),
            (1.0,),
            (1.0, 2.0, 3.0),
            ("a", "b"),
            "free",
            None,
            3.0,
        )
    ),
    *(
        (f"prior {prior!r}", {"lengthscale_prior": prior}, ValueError, PRIOR)
        for prior in ("gamma", 3.0, (1.0,), (1.0, 2.0, 3.0))
    ),
    ("prior < 0", {"lengthscale_prior": (-1.0, 1.0)}, ValueError, "median of .*must lie in .*-1.0"),
    ("prior 0", {"lengthscale_prior": (1.0, 0.0)}, ValueError, "deviation of .*must lie in"),
    ("prior text", {"lengthscale_prior": ("a", 1.0)}, TypeError, "median of .*must be a number"),
    *(
        (
            f"optimizer {optimizer!r}",
            {"optimizer": optimizer},
            ValueError,
            "optimizer must be 'fmin_l_bfgs_b', None or a callable, got ",
        )
        for optimizer in ("adam", "L-BFGS-B", 3, False)
    ),
    ("restarts", {"n_restarts_optimizer": -1}, ValueError, r"must lie in \[0, inf\], got -1"),
    ("restarts 1.5", {"n_restarts_optimizer": 1.5}, TypeError, "must be an integer, got 1.5"),
    ("restarts None", {"n_restarts_optimizer": None}, TypeError, "must be an integer, got None"),
    (
        "restarts without bounds",
        {"kernel": RBF(1.0, (1e-3, np.inf)), "n_restarts_optimizer": 1},
        ValueError,
        r"n_restarts_optimizer > 0\) need finite bounds.*give finite bounds to the kernel",
    ),
    ("seed", {"random_state": "a"}, ValueError, "cannot be used to seed"),
)
def test_parameters(params, error, match):
    with pytest.raises(error, match=match):
        learns(**params)


@pytest.mark.parametrize(
    "params",
    [
        {"noise_variance": "a"},
        {"lengthscale_prior": "gamma"},
        {"optimizer": "adam", "kernel": RBF(1.0, "fixed"), "noise_variance_bounds": "fixed"},
        {"inference": EP(damping=2.0)},
    ],
    ids=str,
)
def test_parameters_are_checked_even_if_nothing_is_learned(params):
    with pytest.raises((ValueError, TypeError), match="must "):
        model(**params).fit(X, Y)


@pytest.mark.parametrize(
    "params",
    [
        {"noise_variance_bounds": (0.5, 0.5)},
        {"noise_variance_bounds": [1e-3, 1]},
        {"noise_variance": 1},
        {"noise_variance": np.float32(0.1)},
        {"noise_variance": 100.0},  # outside the bounds: the search starts at the nearest
        {"lengthscale_prior": [2, 0.5]},
        {"kernel": RBF(1.0, (1e-3, np.inf))},
        {"n_restarts_optimizer": np.int64(1), "random_state": 0},
    ],
    ids=str,
)
def test_allowed_parameters(params):
    assert learns(**params).score(X[:6], Y[:6]) == 1.0


def test_nothing_is_changed_by_a_failed_fit():
    fitted = model().fit(X, Y)
    before = fitted.predict_proba(X)
    for bad in (put(X, (0, 0, 0), np.nan), X[:, :1]):
        with pytest.raises(ValueError, match="X"):
            fitted.fit(bad, Y)
    with pytest.raises(ValueError, match="Outcomes"):
        fitted.fit(X, Y + 1)
    assert_array_equal(fitted.predict_proba(X), before)


# -- prediction ----------------------------------------------------------------------------


@cases(
    ("bad", "error", "match"),
    ("NaN", put(X, (7, 0, 0), np.nan), ValueError, "NaN or infinity in 1 of 20 duels, .*row 7"),
    ("no rows", X[:0], ValueError, r"no duel \(0 samples"),
    ("no items", ITEMS[:0], ValueError, r"0 sample\(s\)"),
    ("wider", np.zeros((3, 2, 5)), ValueError, "X has 5 features, but .* expecting 2 features"),
    ("wider items", np.zeros((3, 5)), ValueError, "X has 5 features, but .* expecting 2 features"),
    ("1-D", np.zeros(2), ValueError, "Reshape your data"),
    ("4-D", np.zeros((2, 2, 2, 2)), ValueError, r"X may be .*got shape \(2, 2, 2, 2\)"),
    (
        "three sides",
        np.zeros((2, 3, 2)),
        ValueError,
        r"\(n_duels, 2, n_features\), got \(2, 3, 2\)",
    ),
    ("texts", [["a", "b"]], ValueError, "must be numeric: could not convert"),
    ("table of names", NAMED, ValueError, "X has 1 features, but .* expecting 2 features"),
    ("sparse", sparse.csr_array(ITEMS), TypeError, "Sparse data was passed"),
)
def test_predict(bad, error, match):
    fitted = model().fit(X, Y)
    with pytest.raises(error, match=match):
        fitted.predict(bad)
    with pytest.raises(error, match=match):
        fitted.score(bad, Y)
    with pytest.raises(error, match=match):
        fitted.sample_y(bad)


@cases(
    ("bad", "match"),
    ("negative", [-1], r"must lie in \[0, 5\], got -1"),
    ("too large", [[0, 6]], r"must lie in \[0, 5\], got 6"),
    ("three columns", np.zeros((3, 3), int), r"must have shape \(n_duels, 2\).*\(3, 3\)"),
    ("no pairs", np.zeros((0, 2), int), r"no position \(0 samples"),
    ("no positions", np.zeros(0, int), r"no position \(0 samples"),
    ("names", ["ann", "bob"], r"items\.index\(X\) if X holds names"),
    ("name pairs", [["ann", "bob"]], r"items\.index\(names\)"),
    ("float positions", np.arange(3.0), r"integers: X\.astype\(int\)"),
)
def test_predict_with_a_table(bad, match):
    fitted = model(items=NAMED).fit(PAIRS, WON)
    with pytest.raises(ValueError, match=match):
        fitted.predict(bad)


def test_probabilities_need_duels():
    needs = r"Duels are needed here, 8 items came.*\(n_duels, 2, n_features\).*call predict"
    fitted = model().fit(X, Y)
    for method in (fitted.predict_proba, fitted.predict_log_proba, fitted.decision_function):
        with pytest.raises(ValueError, match=needs):
            method(ITEMS)
    needs = "Duels are needed here, 3 items came.*or integer pairs"
    with pytest.raises(ValueError, match=needs):
        model(items=TABLE).fit(PAIRS).predict_proba(np.arange(3))


@cases(
    ("weight", "match"),
    ("negative", -np.ones(20), "Negative values in data passed to `sample_weight`"),
    ("too few", np.ones(19), r"sample_weight.shape == \(19,\), expected \(20,\)"),
    ("all zero", np.zeros(20), "at least one non-zero"),
    ("NaN", np.full(20, np.nan), "sample_weight contains NaN"),
)
def test_weights_of_the_score(weight, match):
    with pytest.raises(ValueError, match=match):
        model().fit(X, Y).score(X, Y, sample_weight=weight)


def test_other_arguments():
    fitted = model().fit(X, Y)
    with pytest.raises(ValueError, match=r"needs their ratings: score\(X, y\)"):
        fitted.score(ITEMS)
    with pytest.raises(ValueError, match=r"n_samples must lie in \[1, inf\], got 0"):
        fitted.sample_y(X, 0)
    with pytest.raises(TypeError, match=r"n_samples must be an integer, got 1\.5"):
        fitted.sample_y(X, 1.5)
    with pytest.raises(ValueError, match=r"theta must have shape \(2,\) \(kernel_.theta\), got"):
        fitted.log_marginal_likelihood([0.0])
    learned = PairwisePreferenceRegressor().fit(X, Y)
    with pytest.raises(ValueError, match=r"shape \(3,\) \(kernel_.theta, log σ²\), got \(2,\)"):
        learned.log_marginal_likelihood([0.0, 0.0])


# -- what looks bad and is not -------------------------------------------------------------


def test_one_class_is_enough():
    for y in (np.ones(20), np.zeros(20), -np.ones(20), np.ones(20, bool), None):
        fitted = model().fit(X, y)
        first_won = y is None or y[0] == 1
        probability = fitted.predict_proba(X)[:, int(first_won)]
        assert np.mean(probability > 0.5) > 0.7
    assert model().fit(X, -np.ones(20)).classes_.tolist() == [-1, 1]
    assert model().fit(X, np.zeros(20)).classes_.tolist() == [0, 1]


def test_repeated_duels_count():
    once = model(noise_variance=1.0).fit(X[:3], Y[:3])
    thrice = model(noise_variance=1.0).fit(np.tile(X[:3], (3, 1, 1)), np.tile(Y[:3], 3))
    won = np.arange(3), Y[:3]
    assert np.all(thrice.predict_proba(X[:3])[won] > once.predict_proba(X[:3])[won] + 0.05)


def test_contradictory_duels_cancel():
    both = np.concatenate([X, X])
    fitted = model().fit(both, np.concatenate([Y, 1 - Y]))
    assert_allclose(fitted.predict_proba(X), 0.5, atol=1e-6)
    assert np.all(fitted.predict(X, return_std=True)[1] > 0.0)


def test_an_item_against_itself_says_nothing():
    mirror = np.repeat(X[:4, :1], 2, axis=1)
    with_mirror = model().fit(np.concatenate([X, mirror]), [*Y, 1, 0, 1, 1])
    assert_allclose(with_mirror.predict_proba(X), model().fit(X, Y).predict_proba(X), atol=1e-6)
    only = PairwisePreferenceRegressor().fit(mirror)
    assert_allclose(only.predict_proba(X), 0.5)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_features(scale):
    plain = PairwisePreferenceRegressor().fit(X, Y)
    scaled = PairwisePreferenceRegressor().fit(scale * X, Y)
    assert_allclose(scaled.predict_proba(scale * X), plain.predict_proba(X), atol=1e-4)


def test_kernels_that_overflow_say_so():
    match = r"kernel DotProduct\(.*\) is not finite on the items. Rescale.*StandardScaler"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=match):
        model(kernel=DotProduct()).fit(1e200 * X, Y)
    scaled = Itemwise(StandardScaler()).fit_transform(1e150 * X)  # the remedy
    assert model(kernel=DotProduct()).fit(scaled, Y).score(scaled, Y) > 0.9


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_huge_and_tiny_ratings(scale):
    """Only their order matters."""
    fitted = model().fit(ITEMS, scale * RATINGS)
    assert_array_equal(fitted.predict(ITEMS), model().fit(ITEMS, RATINGS).predict(ITEMS))


def test_far_away_the_prior_is_all_that_is_known():
    fitted = model(kernel=ConstantKernel(2.0) * RBF(1.0)).fit(X, Y)
    mean, std = fitted.predict(1e300 * X[:, 0], return_std=True)
    assert_allclose(mean, 0.0)
    assert_allclose(std, np.sqrt(2.0))
    assert_allclose(fitted.predict_proba(1e300 * X), 0.5)


def test_all_sorts_of_groups():
    plain = model().fit(ITEMS, RATINGS, qid=QID).predict(ITEMS)
    for qid in (list("aaaabbbb"), QID.astype(int).tolist(), QID > 0, QID[:, None], -7 * QID):
        assert_allclose(model().fit(ITEMS, RATINGS, qid=qid).predict(ITEMS), plain, rtol=1e-9)
