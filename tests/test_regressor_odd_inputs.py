"""Inputs that look bad and are not: one class, repetition, odd scales, odd groups."""

import numpy as np
import pytest
from inputs_support import ITEMS, NAMED, QID, RATINGS, TABLE, X, Y, model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.preprocessing import StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.preprocessing import Itemwise


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


def test_items_of_equal_features_say_nothing_of_each_other():
    mirror = np.repeat(X[:4, :1], 2, axis=1)
    with_mirror = model().fit(np.concatenate([X, mirror]), [*Y, 1, 0, 1, 1])
    assert_allclose(with_mirror.predict_proba(X), model().fit(X, Y).predict_proba(X), atol=1e-6)
    assert_allclose(with_mirror.predict_proba(mirror), 0.5)
    assert_allclose(model().fit(mirror).predict_proba(X), 0.5)


def test_an_item_against_itself_is_refused_where_it_is_known_who_is_who():
    for table, pairs in ((TABLE, [[0, 1], [2, 2]]), (NAMED, [["ann", "bob"], ["cid", "cid"]])):
        with pytest.raises(ValueError, match=r"Row 1 of X .*itself .*drop these of X"):
            model(items=table).fit(pairs)
    with pytest.raises(ValueError, match=r"Row 0 of X .*itself \(2 such rows\)"):
        model(items=TABLE).fit([[1, 1], [0, 1], [2, 2]])


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
