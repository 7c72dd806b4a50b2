"""Duel arrays in every form, dtype and layout, and as positions in a table."""

import pickle
from itertools import cycle, islice

import joblib
import numpy as np
import pytest
from checks_support import METHODS, assert_same, duels, make_model, outputs, state
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import _NotAnArray

from skpref import ItemTable
from skpref.inference import ENGINES

# SciPy has sparse arrays of three dimensions from 1.15 on.
_THREE_DIMENSIONAL = hasattr(sparse.coo_array, "tensordot")

pytestmark = pytest.mark.filterwarnings("ignore:The chains have not mixed")


@pytest.fixture(params=sorted(ENGINES))
def model(request):
    return make_model(request.param)


def test_lists_equal_arrays(model):
    X, y = duels()
    other = clone(model).fit(X.tolist(), y.tolist())
    assert_same(model.fit(X, y), other, X, rtol=1e-12)
    assert_array_equal(model.predict(X.tolist()), model.predict(X))
    assert_array_equal(model.predict_proba(X.tolist()), model.predict_proba(X))


def test_things_that_only_turn_into_arrays(model):
    X, y = duels()
    other = clone(model).fit(_NotAnArray(X), _NotAnArray(y))
    assert_same(model.fit(X, y), other, X, rtol=1e-12)
    assert_array_equal(model.predict_proba(_NotAnArray(X)), model.predict_proba(X))


DTYPES = [np.float32, np.float16, np.int64, np.int8, object, bool]
# What is read before an engine sees it: each form with one of them.
IN_TURN = list(islice(cycle(sorted(ENGINES)), 6))


@pytest.mark.parametrize("k", range(6), ids=lambda k: f"{DTYPES[k].__name__}-{IN_TURN[k]}")
def test_dtypes_of_X(k):
    model, dtype = make_model(IN_TURN[k]), DTYPES[k]
    X, y = duels()
    X = np.round(4.0 * X).astype(dtype)
    exact = X.astype(np.float64)
    other = clone(model).fit(X, y)
    assert_same(model.fit(exact, y), other, exact, rtol=1e-12)
    assert_array_equal(model.predict_proba(X), model.predict_proba(exact))
    assert model.predict(X).dtype == np.float64


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided rows": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "transposed": lambda X: np.ascontiguousarray(X.transpose(2, 1, 0)).transpose(2, 1, 0),
    "strided features": lambda X: np.repeat(X, 2, axis=2)[:, :, ::2],
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize(("name", "engine"), list(zip(LAYOUTS, IN_TURN, strict=True)))
def test_layouts_of_X(name, engine):
    model, view = make_model(engine), LAYOUTS[name]
    X, y = duels()
    other = clone(model).fit(view(X), y)
    assert_same(model.fit(X, y), other, X, rtol=1e-12)
    assert_array_equal(model.predict_proba(view(X)), model.predict_proba(X))


def test_read_only_and_mapped_input(model, tmp_path):
    X, y = duels()
    paths = joblib.dump((X, y), tmp_path / "duels")
    mapped_X, mapped_y = joblib.load(paths[0], mmap_mode="r")
    assert isinstance(mapped_X, np.memmap) and not mapped_X.flags.writeable
    model.fit(X, y)
    assert_same(model, clone(model).fit(mapped_X, mapped_y), mapped_X, rtol=1e-12)
    assert_array_equal(model.predict(mapped_X), model.predict(X))


def test_input_is_not_changed(model):
    X, y = duels()
    kept_X, kept_y = X.copy(), y.copy()
    outputs(model.fit(X, y), X)
    assert_array_equal(X, kept_X)
    assert_array_equal(y, kept_y)
    X[:] = 0.0  # nor is it referred to later
    assert_same(model, clone(model).fit(kept_X, y), kept_X, rtol=1e-12)


def test_one_feature(model):
    X, y = duels(n_features=1)
    model.fit(X, y)
    assert model.n_features_in_ == 1
    assert model.score(X, y) == 1.0


def test_one_duel(model):
    X, _ = duels(1)
    probability = model.fit(X).predict_proba(X)
    assert 0.5 < probability[0, 1] < 1.0


def test_zero_samples_and_zero_features(model):
    with pytest.raises(ValueError, match=r"0 samples.* minimum of 1 is required"):
        model.fit(np.zeros((0, 2, 3)), [])
    with pytest.raises(ValueError, match=r"0 feature\(s\).* minimum of 1 is required"):
        model.fit(np.zeros((4, 2, 0)), np.ones(4))
    fitted = model.fit(*duels())
    with pytest.raises(ValueError, match=r"0 samples.* minimum of 1 is required"):
        fitted.predict_proba(np.zeros((0, 2, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(model, value):
    X, y = duels()
    broken = X.copy()
    broken[3, 1, 0] = value
    with pytest.raises(ValueError, match="NaN or infinity in 1 of 16 duels, first in row 3"):
        model.fit(broken, y)
    fitted = model.fit(X, y)
    for method in METHODS:
        with pytest.raises(ValueError, match="NaN or infinity"):
            getattr(fitted, method)(broken)


def test_complex_and_sparse(model):
    X, y = duels()
    with pytest.raises(ValueError, match="Complex data not supported: X has dtype complex128"):
        model.fit(X + 1j, y)
    of_duels = [sparse.coo_array(X)] if _THREE_DIMENSIONAL else []
    for matrix in (sparse.csr_array(X[:, 0]), sparse.csr_matrix(X[:, 0]), *of_duels):
        with pytest.raises(TypeError, match="Sparse data was passed for X"):
            model.fit(matrix, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.predict_proba(X + 1j)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        model.predict(matrix)


def test_number_of_features(model):
    X, y = duels()
    assert not hasattr(model, "n_features_in_")
    assert model.fit(X, y).n_features_in_ == 2
    for wrong in (duels(n_features=3)[0], duels(n_features=1)[0]):
        message = rf"X has {wrong.shape[2]} features, but \w+ is expecting 2 features"
        for method in METHODS:
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(wrong)
        with pytest.raises(ValueError, match=message):
            model.predict(wrong[:, 0])


def test_one_side_is_no_duel(model):
    X = np.ones((5, 1, 2))
    message = r"\(n_duels, 2, n_features\), got \(5, 1, 2\).*np.stack"
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.ones(5))
    fitted = model.fit(*duels())
    for method in METHODS:
        with pytest.raises(ValueError, match=message):
            getattr(fitted, method)(X)


def test_not_fitted(model):
    X, y = duels()
    for call in (
        lambda: model.predict(X),
        lambda: model.predict(X[:, 0], return_std=True),
        lambda: model.score(X, y),
        lambda: model.sample_y(X),
        lambda: model.log_marginal_likelihood(),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            call()
    # These two are found on models of duels only, so they are absent before any fit.
    for method in METHODS[1:]:
        assert not hasattr(model, method)


# -- positions in a table ------------------------------------------------------------------


def distinct_pairs(rng, n_items):
    first = rng.integers(n_items, size=16)
    return np.column_stack([first, (first + rng.integers(1, n_items, size=16)) % n_items])


def test_twins_on_positions(model):
    rng = np.random.default_rng(5)
    table, pairs = ItemTable(rng.standard_normal((7, 2))), distinct_pairs(rng, 7)
    y = (table.X[pairs[:, 0], 0] > table.X[pairs[:, 1], 0]).astype(int)
    model.set_params(items=table).fit(pairs, y)
    pairs.flags.writeable = False
    before = state(model)
    for X in (pairs.tolist(), pairs.astype(np.uint8), np.asfortranarray(pairs), table.X[pairs]):
        assert_same(model, clone(model).fit(X, y), table.X[pairs], rtol=1e-9, atol=1e-12)
        assert_allclose(model.predict_proba(X), model.predict_proba(pairs), rtol=1e-12)
    assert_allclose(model.predict(pairs[:, 0]), model.predict(table.X[pairs[:, 0]]), rtol=1e-12)
    assert_allclose(model.predict(pairs)[:4], model.predict(pairs[:4]), rtol=1e-9, atol=1e-12)
    assert state(model) == before
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(pairs), model.predict_proba(pairs))
    assert model.n_features_in_ == 2


def test_equal_rows_of_a_table_are_one_item(model):
    rng = np.random.default_rng(6)
    rows, pairs = rng.standard_normal((5, 2)), distinct_pairs(rng, 5)
    y = (rows[pairs[:, 0], 0] > rows[pairs[:, 1], 0]).astype(int)
    model.set_params(items=rows).fit(pairs, y)
    doubled = np.concatenate([rows, rows])
    elsewhere = pairs + 5 * rng.integers(2, size=pairs.shape)
    other = clone(model).set_params(items=doubled).fit(elsewhere, y)
    assert_same(model, other, rows[pairs], rtol=1e-9, atol=1e-12)
