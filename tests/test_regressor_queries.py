"""Bad queries of a fitted model have an error that says what is allowed and what to do."""

import warnings

import numpy as np
import pytest
from inputs_support import ITEMS, NAMED, PAIRS, TABLE, WON, X, Y, cases, model, put
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, CompoundKernel

from skpref import ItemTable, PairwisePreferenceRegressor

pd = pytest.importorskip("pandas")


@cases(
    ("bad", "error", "match"),
    ("NaN", put(X, (7, 0, 0), np.nan), ValueError, "NaN or infinity in 1 of 20 duels, .*row 7"),
    ("no rows", X[:0], ValueError, r"no duel \(0 samples"),
    ("no items", ITEMS[:0], ValueError, r"0 sample\(s\)"),
    ("wider", np.zeros((3, 2, 5)), ValueError, "X has 5 features, but .* expecting 2 features"),
    ("wider items", np.zeros((3, 5)), ValueError, "X has 5 features, but .* expecting 2 features"),
    ("1-D", np.zeros(2), ValueError, "Reshape your data"),
    ("4-D", np.zeros((2, 2, 2, 2)), ValueError, r"X may be .*got shape \(2, 2, 2, 2\)"),
    ("one side", np.zeros((2, 1, 2)), ValueError, r"got \(2, 1, 2\)\. Stack"),
    ("texts", [["a", "b"]], ValueError, "must be numeric: could not convert"),
    ("table of names", NAMED, ValueError, "fitted on items with features, this ItemTable has none"),
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
    ("one column", np.zeros((3, 1), int), r"must have shape \(n_duels, 2\).*\(3, 1\)"),
    ("no pairs", np.zeros((0, 2), int), r"no position \(0 samples"),
    ("no positions", np.zeros(0, int), r"no position \(0 samples"),
    ("float positions", np.arange(3.0), r"integers: X\.astype\(int\)"),
)
def test_predict_with_a_table(bad, match):
    fitted = model(items=NAMED).fit(PAIRS, WON)
    with pytest.raises(ValueError, match=match):
        fitted.predict(bad)


def test_pairs_of_names_without_their_last_axis():
    pairs = np.array([["a", "b"], ["b", "c"], ["c", "a"]])
    fitted = model(id_column=0).fit(pairs[:, :, None], [1, 1, 0])
    with pytest.raises(ValueError, match=r"expecting 1 features.*sets of items.*X\[:, :, None\]"):
        fitted.predict_proba(pairs)
    assert fitted.predict_proba(pairs[:, :, None]).shape == (3, 2)


def test_probabilities_need_duels():
    needs = r"got 8 items where duels or sets are needed.*\(n_duels, 2, n_features\).*call predict"
    fitted = model().fit(X, Y)
    for method in (fitted.predict_proba, fitted.predict_log_proba, fitted.decision_function):
        with pytest.raises(ValueError, match=needs):
            method(ITEMS)
    needs = "got 3 items where duels or sets are needed.*or integers"
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
    scales = r"kernel length_scale\[0\], kernel length_scale\[1\]"
    with pytest.raises(ValueError, match=rf"theta must have shape \(2,\) \({scales}; natural"):
        fitted.log_marginal_likelihood([0.0])
    learned = PairwisePreferenceRegressor().fit(X, Y)
    with pytest.raises(ValueError, match=rf"\(3,\) \({scales}, noise_v.*natural.*got \(2,\)"):
        learned.log_marginal_likelihood([0.0, 0.0])


# -- tables as queries ---------------------------------------------------------------------


def test_a_table_made_of_a_frame_is_predicted_without_warning():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TABLE, columns=["sweet", "sour"])
    fitted = model(items=ItemTable(frame)).fit(PAIRS, WON)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_table = fitted.predict(fitted.items_)
        by_frame = fitted.predict(frame)
        by_position = fitted.predict(np.arange(6))
        _, std = fitted.predict(fitted.items_, return_std=True)
    assert_allclose(by_table, by_position)
    assert_allclose(by_frame, by_position)
    assert np.isfinite(by_table).all() and np.isfinite(std).all()
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(TABLE)


@pytest.mark.parametrize("bad", [[[77.0]], [[0.5]], [[-1.0]], [[1.0], [6.0]], [[1e300]]], ids=str)
def test_featureless_items_are_known_by_position_alone(bad):
    fitted = model(items=NAMED).fit(PAIRS, WON)
    match = r"by their position alone: rows must be integers in \[0, 5\]\. Pass positions"
    with pytest.raises(ValueError, match=match):
        fitted.predict(bad)
    for allowed in ([[2.0], [5.0]], [2, 5], NAMED.X[[2, 5]]):  # the remedy
        assert_allclose(fitted.predict(allowed), fitted.predict(NAMED)[[2, 5]])


def test_featureless_duels_by_value_are_those_by_position():
    fitted = model(items=NAMED).fit(PAIRS, WON)
    pairs = np.array([[[0.0], [1.0]]])
    assert_allclose(fitted.predict_proba(pairs), fitted.predict_proba([[0, 1]]))


def test_a_table_is_asked_by_its_names_or_columns():
    fitted = model(items=NAMED).fit(PAIRS, WON)
    turned = ItemTable.from_names(NAMED.names[::-1])
    np.testing.assert_allclose(fitted.predict(turned), fitted.predict(NAMED)[::-1])
    mean, std = fitted.predict(ItemTable.from_names(["stranger", "ann"]), return_std=True)
    assert mean[0] == 0.0 and std[0] == 1.0  # the population
    assert mean[1] == fitted.predict(NAMED)[0]
    frame = pd.DataFrame(ITEMS, columns=["a", "b"])
    featured = model(items=ItemTable(frame)).fit(PAIRS, WON)
    np.testing.assert_allclose(featured.predict(ItemTable(frame)), featured.predict(frame))
    with pytest.raises(ValueError, match="same columns in the same order"):
        featured.predict(ItemTable(frame[["b", "a"]]))
    with pytest.raises(ValueError, match="fitted on items without"):
        fitted.predict(ItemTable(ITEMS[:, :1]))


def test_kernels_of_many_numbers_a_pair_are_refused():
    kernel = CompoundKernel([RBF(), RBF(2.0)])
    with pytest.raises(ValueError, match="CompoundKernel gives an array of shape"):
        model(kernel=kernel).fit(X, Y)


def test_the_posterior_names_missing_values():
    posterior = model().fit(X, Y).posterior_
    with pytest.raises(ValueError, match="items contains NaN"):
        posterior.mean([[np.nan, 0.0]])
    with pytest.raises(ValueError, match=r"got \(2,\)"):
        posterior.sample_paths(1, 0)(np.zeros(2))
