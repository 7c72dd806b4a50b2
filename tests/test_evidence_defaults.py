"""Prior on lengthscales and default kernel: against densities of scipy, and at their edges."""

import numpy as np
import pytest
from core_support import random_duels
from oracles import central_gradient
from scipy.integrate import quad
from scipy.stats import norm, t
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref._evidence import LengthscalePrior, default_kernel, lengthscale_prior
from skpref.duels import from_pairs, merge
from skpref.kernels import Identity

# Log lengthscales about their medians.
OFFSETS = np.array(
    [[0.0, 0.0, 0.0], [1.3, 1.3, 1.3], [0.2, -0.5, 0.3], [-2.0, 0.1, 6.0], [40.0, -3.0, 0.0]]
)


def some_items(n_features=2):
    scales = np.array([1.0, 10.0, 1e-6, 1e6])[:n_features]
    return np.random.default_rng(0).normal(size=(50, n_features)) * scales


def once_met(items):
    """Duels in which no item meets a second opponent."""
    return merge(items, np.arange(0, len(items), 2), np.arange(1, len(items), 2))


def chain(items):
    """Duels in which most items meet two opponents."""
    return merge(items, np.arange(len(items) - 1), np.arange(1, len(items)))


def hierarchical(offset):
    """A normal level, and Student's deviations from it."""
    level = offset.mean()
    return norm.logpdf(level, 0.0, 1.0) + t.logpdf(offset - level, 4.0, scale=0.3).sum()


# -- the prior -------------------------------------------------------------------------------


def test_a_pair_is_a_normal_on_log_lengthscales_and_nothing_else():
    kernel = ConstantKernel(2.0) * RBF([0.5, 1.5])
    prior = lengthscale_prior((0.7, 0.4), kernel, some_items())
    theta = np.append(kernel.theta, np.log(0.1))

    def reference(theta):
        return norm.logpdf(theta[1:3], np.log(0.7), 0.4).sum()

    value, gradient = prior.log_density(theta)
    elsewhere = theta + np.array([1.0, 0.3, -0.2, 5.0])
    other, _ = prior.log_density(elsewhere)
    moved = reference(elsewhere)
    assert other - value == pytest.approx(moved - reference(theta), abs=1e-12)
    np.testing.assert_allclose(gradient, central_gradient(reference, theta), atol=1e-8)


def test_lognormal_is_a_normal_level_with_students_deviations():
    items = some_items(3)
    kernel = ConstantKernel(2.0) * Matern(np.ones(3), nu=1.5) + ConstantKernel(0.1) * Identity()
    prior = lengthscale_prior("lognormal", kernel, items)
    middle = np.log(np.sqrt(3.0) * items.std(axis=0))

    def density(offset):
        return prior.log_density(np.array([3.0, *(middle + offset), -4.0, 2.0]))[0]

    constant = density(OFFSETS[0]) - hierarchical(OFFSETS[0])
    for offset in OFFSETS:
        assert density(offset) == pytest.approx(hierarchical(offset) + constant, rel=1e-12)


@pytest.mark.parametrize("form", ["lognormal", (0.7, 0.4)], ids=str)
@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_gradient_of_the_density_against_differences(form, n_features):
    items, kernel = some_items(n_features), ConstantKernel(2.0) * RBF(np.ones(n_features))
    prior = lengthscale_prior(form, kernel, items)
    for seed in range(4):
        offset = np.random.default_rng(seed).normal(scale=1.5, size=n_features)
        theta = np.array([0.3, *(prior.centre + offset), -2.0])
        truth = central_gradient(lambda at: prior.log_density(at)[0], theta, 1e-3)
        np.testing.assert_allclose(prior.log_density(theta)[1], truth, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("form", "deviation"), [("lognormal", 1.0), ((0.7, 0.4), 0.4)], ids=str)
def test_one_lengthscale_alone_is_normal_about_its_median(form, deviation):
    prior = lengthscale_prior(form, RBF(1.0), some_items())

    def density(log_lengthscale):
        return np.exp(prior.log_density(np.array([log_lengthscale]))[0])

    below = quad(density, -20.0, prior.centre[0])[0]
    whole = below + quad(density, prior.centre[0], 20.0)[0]
    assert below / whole == pytest.approx(0.5, rel=1e-9)
    inside = quad(density, *(prior.centre[0] + deviation * np.array([-1.0, 1.0])))[0]
    assert inside / whole == pytest.approx(norm.cdf(1.0) - norm.cdf(-1.0), rel=1e-9)


def test_medians_are_root_d_spreads():
    items = some_items(4)
    prior = lengthscale_prior("lognormal", RBF(np.ones(4)), items)
    np.testing.assert_allclose(np.exp(prior.centre), 2.0 * items.std(axis=0), rtol=1e-12)
    common = lengthscale_prior("lognormal", RBF(1.0), items)
    geometric = np.exp(np.log(items.std(axis=0)).mean())
    np.testing.assert_allclose(np.exp(common.centre), 2.0 * geometric, rtol=1e-12)
    assert isinstance(prior, LengthscalePrior)


def test_kernels_without_lengthscales_have_no_prior():
    items = some_items()
    assert lengthscale_prior(None, RBF(1.0), items) is None
    for kernel in (DotProduct(), Identity(), RBF(1.0, "fixed")):
        assert lengthscale_prior("lognormal", kernel, items) is None


@pytest.mark.parametrize("prior", ["normal", (1.0,), 3, (0.0, 1.0), (1.0, -1.0)])
def test_a_bad_prior_says_what_is_allowed(prior):
    with pytest.raises(ValueError, match="lengthscale_prior must"):
        lengthscale_prior(prior, RBF(), np.arange(3.0)[:, None])


@pytest.mark.parametrize(
    ("prior", "name"),
    [((np.inf, 1.0), "median"), ((1.0, np.inf), "deviation"), ((np.nan, 1.0), "median")],
)
def test_a_prior_without_bounds_says_so(prior, name):
    with pytest.raises(ValueError, match=rf"the {name} of lengthscale_prior must lie in \(0.0, in"):
        lengthscale_prior(prior, RBF(), np.arange(3.0)[:, None])


# -- the default kernel ----------------------------------------------------------------------


def test_default_lengthscales_follow_the_spread():
    items = some_items(4)
    kernel = default_kernel(once_met(items))
    np.testing.assert_allclose(kernel.length_scale, 2.0 * items.std(axis=0))
    ratio = np.exp(kernel.bounds) / kernel.length_scale[:, None]
    np.testing.assert_allclose(ratio, np.tile([1e-3, 1e3], (4, 1)))


def test_an_own_part_where_an_item_meets_more_than_one_opponent():
    items = some_items()
    assert isinstance(default_kernel(once_met(items)), RBF)
    repeated = merge(items, np.repeat([0, 2], 9), np.repeat([1, 3], 9))
    assert isinstance(default_kernel(repeated), RBF)
    kernel = default_kernel(chain(items))
    alone = default_kernel(once_met(items))
    # The own part is of an item alone, known or not, and it is learned.
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
    assert isinstance(default_kernel(merge(items, winner, loser)), RBF)


def test_rounded_items_are_the_items_they_were():
    items = np.random.default_rng(2).normal(size=(30, 20))
    rng = np.random.default_rng(3)
    pairs = np.array([(i, j) for i in range(30) for j in range(i)])
    pairs = pairs[rng.permutation(len(pairs))[:200]]
    rating = items[:, 0] + 2.0 * rng.normal(size=30)
    X, y = items[pairs], rating[pairs[:, 0]] > rating[pairs[:, 1]]
    model = PairwisePreferenceRegressor().fit(X, y)
    assert model.kernel_.k2.k1.constant_value > 0.01  # there is an own part to lose
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
    duels = merge(items, winner, loser)
    alone = default_kernel(duels, learned=False)
    assert alone.length_scale[2] == pytest.approx(np.sqrt(3.0))
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    assert np.all(np.isfinite(PairwisePreferenceRegressor().fit(X, y).predict_proba(X)))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e150])
def test_the_unit_of_a_feature_changes_nothing(scale):
    items, winner, loser = random_duels(5, 12, 50)
    X = np.random.default_rng(0).uniform(-1, 1, (5, 2, 2))
    pairs = np.stack([winner, loser], axis=1)
    unit = np.array([1.0, scale])

    def probability(unit):
        duels, y = from_pairs(items * unit, pairs)
        return PairwisePreferenceRegressor().fit(duels, y).predict_proba(X * unit)

    np.testing.assert_allclose(probability(unit), probability(np.ones(2)), atol=1e-4)
