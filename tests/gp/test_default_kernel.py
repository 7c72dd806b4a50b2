"""The default kernel: follows the spread of the features, and tells items apart where it helps.

Duels here show the items in the order of their table, which is then that of `Comparisons.items`.
"""

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import from_pairs
from skpref.gp._default_kernel import default_kernel
from skpref.kernels import Identity


def some_items(n_features=2):
    scales = np.array([1.0, 10.0, 1e-6, 1e6])[:n_features]
    return np.random.default_rng(0).normal(size=(50, n_features)) * scales


def once_met(items):
    """Duels in which no item meets a second opponent."""
    return won(items, np.arange(0, len(items), 2), np.arange(1, len(items), 2))


def chain(items):
    """Duels in which most items meet two opponents."""
    return won(items, np.arange(len(items) - 1), np.arange(1, len(items)))


def test_default_lengthscales_follow_the_spread():
    items = some_items(4)
    kernel = default_kernel(once_met(items))
    np.testing.assert_allclose(kernel.length_scale, 2.0 * items.std(axis=0))
    ratio = np.exp(kernel.bounds) / kernel.length_scale[:, None]
    np.testing.assert_allclose(ratio, np.tile([1e-3, 1e3], (4, 1)))


def test_an_own_part_where_an_item_meets_more_than_one_opponent():
    items = some_items()
    assert isinstance(default_kernel(once_met(items)), RBF)
    repeated = won(items, np.repeat([0, 2], 9), np.repeat([1, 3], 9))
    assert isinstance(default_kernel(repeated), RBF)
    kernel = default_kernel(chain(items))
    alone = default_kernel(once_met(items))
    # The item effect is of one item alone, known or not, and its variance is learned.
    np.testing.assert_allclose(kernel(items) - alone(items), 0.1 * np.eye(50), atol=1e-12)
    np.testing.assert_allclose(kernel(items, items * 1.01), alone(items, items * 1.01), rtol=1e-12)
    # Rounding keeps it: the last digit of a feature often depends on the size of a batch.
    rounded = items.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(kernel(rounded, items).diagonal(), 1.1, rtol=1e-5)
    assert len(kernel.theta) == len(alone.theta) + 1


def test_no_own_part_where_nothing_is_learned():
    items = some_items()
    assert isinstance(default_kernel(chain(items), learned=False), RBF)
    X, y = from_pairs(items, np.column_stack([np.arange(49), np.arange(1, 50)]))
    held = PairwisePreferenceRegressor(optimizer=None).fit(X, y)
    learned = PairwisePreferenceRegressor().fit(X, y)
    assert isinstance(held.kernel_, RBF)
    assert learned.kernel_.k2.k2.length_scale_bounds == "fixed"


def test_a_duel_of_an_item_with_itself_is_no_opponent():
    items = np.random.default_rng(2).normal(size=(60, 3))
    winner, loser = np.append(np.arange(0, 60, 2), 0), np.append(np.arange(1, 60, 2), 0)
    assert isinstance(default_kernel(won(items, winner, loser)), RBF)


def test_rounded_items_are_the_items_they_were():
    items = np.random.default_rng(2).normal(size=(30, 20))
    rng = np.random.default_rng(3)
    pairs = np.array([(i, j) for i in range(30) for j in range(i)])
    pairs = pairs[rng.permutation(len(pairs))[:200]]
    rating = items[:, 0] + 2.0 * rng.normal(size=30)
    X, y = items[pairs], rating[pairs[:, 0]] > rating[pairs[:, 1]]
    model = PairwisePreferenceRegressor().fit(X, y)
    assert model.kernel_.k2.k1.constant_value > 0.01  # there is an item effect to lose
    change = model.predict_proba(X.astype(np.float32)) - model.predict_proba(X)
    assert np.abs(change).max() < 1e-3


def test_items_without_features_are_independent():
    assert default_kernel(chain(np.arange(6.0)[:, None]), has_features=False) == Identity()
    table = ItemTable.from_names("abc")
    model = PairwisePreferenceRegressor(items=table).fit([[0, 1], [1, 2]])
    assert model.kernel_ == Identity()


@pytest.mark.parametrize("size", [1e306, 1.7e308])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_features_too_large_to_scale_say_so(size, sign):
    items = np.array([[0.0, 1.0], [sign, 0.0], [0.5 * sign, 0.3], [0.1 * sign, 0.1]]) * [size, 1.0]
    with np.errstate(all="raise"), pytest.raises(ValueError, match=r"Features spread.*Rescale"):
        default_kernel(chain(items))
    with pytest.raises(ValueError, match=r"Rescale them.*Itemwise\(StandardScaler"):
        PairwisePreferenceRegressor().fit(items[[[0, 1], [2, 3]]])


def test_a_constant_feature_is_harmless():
    items, winner, loser = random_duels(5, 12, 50)
    items = np.column_stack([items, np.full(12, 0.1)])
    duels = won(items, winner, loser)
    without = default_kernel(won(items[:, :2], winner, loser), learned=False)
    beside = default_kernel(duels, learned=False)
    assert beside.length_scale[:2] == pytest.approx(without.length_scale)
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    assert np.all(np.isfinite(PairwisePreferenceRegressor().fit(X, y).predict_proba(X)))


@pytest.mark.slow
def test_the_unit_of_a_feature_changes_nothing():
    items, winner, loser = random_duels(5, 12, 50)
    X = np.random.default_rng(0).uniform(-1, 1, (5, 2, 2))
    pairs = np.stack([winner, loser], axis=1)

    def probability(unit):
        duels, y = from_pairs(items * unit, pairs)
        return PairwisePreferenceRegressor().fit(duels, y).predict_proba(X * unit)

    truth = probability(np.ones(2))
    for scale in (1e-6, 1e6, 1e150):
        np.testing.assert_allclose(probability(np.array([1.0, scale])), truth, atol=1e-4)


def test_an_id_has_an_item_effect_whatever_its_other_features():
    items = np.array([[7.0, 0.0], [7.0, 3.0], [9.0, 0.0], [9.0, 50.0]])
    duels = won(items, [0, 1], [2, 3])
    rows = np.array([[7.0, 0.0], [7.0, 1e9], [9.0, 0.0]])
    K = default_kernel(duels, learned=False, id_column=0)(rows)
    # Rows of one id, far apart in features, share the item effect; two ids the features' part.
    assert K[0, 1] == pytest.approx(0.1)
    assert K[0, 2] == pytest.approx(1.0)
    assert K[0, 0] == pytest.approx(1.1)
    alone = default_kernel(won(items[:, :1], [0], [2]), id_column=0)
    assert_array_equal(alone(np.array([[7.0], [9.0], [7.0]])), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_beside_ids_features_have_a_linear_and_a_smooth_part():
    items = np.array([[7.0, 0.0], [7.0, 3.0], [9.0, 1.0], [9.0, 4.0]])
    kernel = default_kernel(won(items, [0, 1], [2, 3]), id_column=0)
    spread, middle = np.std(items[:, 1]), items[:, 1].mean()
    scaled = (items[:, 1] - middle) / spread
    same = np.equal.outer(items[:, 0], items[:, 0])
    smooth = np.exp(-0.5 * np.subtract.outer(scaled, scaled) ** 2)
    expected = same + 0.1 * np.outer(scaled, scaled) + 0.1 * smooth
    np.testing.assert_allclose(kernel(items), expected, atol=1e-12)
    assert len(kernel.theta) == 4  # three variances and a lengthscale


def _contests(effect, seed=0, n=150):
    """Twelve items of which each is as strong as it is, and two covariates of every contest."""
    rng = np.random.default_rng(seed)
    strength = rng.standard_normal(12)
    first = rng.integers(12, size=n)
    ids = np.stack([first, (first + rng.integers(1, 12, n)) % 12], axis=1)
    values = rng.standard_normal((n, 2, 2))
    utility = strength[ids] + effect * values[:, :, 0] + 0.3 * rng.standard_normal((n, 2))
    X = np.concatenate([ids[:, :, None].astype(float), values], axis=2)
    return ids, X, (utility[:, 0] > utility[:, 1]).astype(int)


def test_covariates_that_say_nothing_leave_names_alone():
    ids, X, y = _contests(0.0)
    table = ItemTable.from_names([f"item {k:02d}" for k in range(12)])
    names = PairwisePreferenceRegressor(items=table).fit(ids, y)
    model = PairwisePreferenceRegressor(id_column=0).fit(X, y)
    found = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(found, names.predict_proba(ids)[:, 1], atol=5e-3)


def test_covariates_that_say_something_are_learned():
    _, X, y = _contests(1.0)
    model = PairwisePreferenceRegressor(id_column=0).fit(X, y)
    # Two days of an item that differ in one covariate: the first is worth about its effect of 1.
    items = np.array([[3.0, 1.0, 0.0], [3.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
    one, zero, other = model.predict(items) / np.sqrt(model.noise_variance_) * 0.3
    assert 0.6 < one - zero < 1.0 / 0.6  # in units of a noise that is learned
    assert abs(other - zero) < 0.3


@pytest.mark.slow
def test_the_unit_of_a_covariate_changes_nothing_beside_ids():
    _, X, y = _contests(1.0, n=60)
    units = np.array([1.0, 1e6, 1e-3])
    found, other = (
        PairwisePreferenceRegressor(id_column=0).fit(each, y).predict_proba(each)
        for each in (X, X * units + [0.0, 0.0, 5.0])
    )
    np.testing.assert_allclose(found, other, atol=2e-3)
