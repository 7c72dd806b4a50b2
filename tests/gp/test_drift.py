"""The drift beside what stays: its form, its start, and its priors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import halfcauchy, norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern

from skpref import PairwisePreferenceRegressor
from skpref.fitting._hyperpriors import drift_priors
from skpref.gp import TimeSpread, drifting_kernel, mean_variance, place, unexplained_share
from skpref.kernels import Identity, OnColumns, Wiener

STATIC = OnColumns(Identity(), [0])
ROWS = np.array([[0.0, 0.0], [0.0, 4.0], [1.0, 4.0], [1.0, 9.0], [0.0, 9.0]])
SPREAD = TimeSpread.from_times(ROWS[:, 1])


def drift_of(drift, static=STATIC, spread=SPREAD, unit=1.0):
    return drifting_kernel(static, drift, [0], 1, spread, unit)


def test_spreads():
    assert TimeSpread(9.0, 4.5) == SPREAD
    assert TimeSpread.from_times(np.array([3.0, 3.0])) == TimeSpread(1.0, 1.0)
    assert TimeSpread.from_times(np.zeros(0)) == TimeSpread(1.0, 1.0)


@pytest.mark.parametrize("name", ["wiener", "matern12", "matern32", "matern52"])
def test_items_that_differ_share_nothing_and_the_same_item_walks(name):
    s, t = np.meshgrid(ROWS[:, 1], ROWS[:, 1])
    same = ROWS[:, None, 0] == ROWS[None, :, 0]
    r = abs(s - t) / 3.0  # the lengthscale is a third of the span
    walk = {
        "wiener": (s + t - abs(s - t)) / 2.0 / 9.0,
        "matern12": np.exp(-r),
        "matern32": (1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r),
        "matern52": (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r),
    }[name]
    assert_allclose(drift_of(name)(ROWS), same * (1.0 + 0.1 * walk), atol=1e-14)
    assert_allclose(drift_of(name, unit=4.0)(ROWS), same * (1.0 + 0.4 * walk), atol=1e-14)


@pytest.mark.parametrize("name", ["wiener", "matern12"])
def test_starts_and_bounds_follow_the_unit_of_time(name):
    slow = TimeSpread(1e6 * SPREAD.span, 1e6 * SPREAD.gap)
    one, other = drift_of(name), drift_of(name, spread=slow)
    power = np.log(1e6) * np.array({"wiener": [-1.0], "matern12": [0.0, 1.0]}[name])
    assert_allclose(other.theta, one.theta + power, atol=1e-12)
    assert_allclose(other.bounds, one.bounds + power[:, None], atol=1e-12)


def test_a_kernel_has_its_own_amplitude_or_gets_one():
    own = 0.3 * Matern(2.0, "fixed") + Wiener(0.2)
    assert drift_of(own) == STATIC + OnColumns(Identity(), [0]) * OnColumns(own, [1])
    plain = ExpSineSquared(1.0, 4.0) * Matern(2.0)
    found = drift_of(plain)
    assert len(found.theta) == len(plain.theta) + 1
    assert_allclose((found(ROWS) - STATIC(ROWS))[0, 0], 0.1)
    plain.k2.length_scale = 99.0  # a copy was taken
    assert found != drift_of(plain)


def test_mean_variances():
    assert mean_variance(3.0 * RBF(), ROWS) == pytest.approx(3.0)
    assert mean_variance(ConstantKernel(0.0, "fixed") * RBF(), ROWS) == 1.0


def total(priors, theta):
    found = [prior.log_density(theta) for prior in priors]
    return sum(value for value, _ in found), sum(slope for _, slope in found)


@pytest.mark.parametrize("unit", [1.0, 4.0])
@pytest.mark.parametrize("name", ["wiener", "matern12"])
def test_priors_are_a_log_normal_and_a_half_cauchy(name, unit):
    kernel = drift_of(name, static=ConstantKernel(2.0) * OnColumns(RBF(), [0]))
    priors = drift_priors(kernel, 1, SPREAD, 2, unit, "lognormal")

    def reference(theta):
        drift = np.exp(0.5 * theta[2])  # a deviation
        if name == "wiener":
            return halfcauchy.logpdf(drift * np.sqrt(9.0), scale=0.5 * np.sqrt(unit))
        found = halfcauchy.logpdf(drift, scale=0.5 * np.sqrt(unit))
        return found + norm.logpdf(theta[3], np.log(3.0), 1.5)

    theta = np.append(kernel.theta, 0.3)  # that of a likelihood follows
    value, slope = total(priors, theta)
    away = theta + np.linspace(-1.0, 1.5, len(theta))
    other, _ = total(priors, away)
    assert_allclose(other - value, reference(away) - reference(theta), atol=1e-12)
    assert_allclose(slope, central_gradient(reference, theta), atol=1e-7)


def test_priors_of_kernels_that_were_given():
    kernel = OnColumns(RBF([1.0, 2.0]), [0, 1]) + ConstantKernel() * OnColumns(Identity(), [0])
    lengths, variances = drift_priors(kernel, 1, SPREAD, 0, 1.0, "lognormal")
    assert lengths.index.tolist() == [1]
    assert variances.index.tolist() == [2]
    assert drift_priors(kernel, 1, SPREAD, 3, 1.0, None) == ()
    fixed = STATIC + OnColumns(Identity(), [0]) * OnColumns(Wiener(1.0, "fixed"), [1])
    assert drift_priors(fixed, 1, SPREAD, 0, 1.0, "lognormal") == ()


def test_features_keep_the_priors_that_they_have_without_times():
    """A lengthscale of a feature has the median that it would have, whatever the times."""
    rng = np.random.default_rng(0)
    items = rng.normal(size=(20, 2))
    pairs = np.column_stack([np.arange(20), np.roll(np.arange(20), 1)])
    y, time = rng.integers(0, 2, 20), rng.uniform(0.0, 1e5, 20)
    settings = {"n_learning_answers": None, "noise_variance_bounds": "fixed"}
    fixed = PairwisePreferenceRegressor(noise_variance=1.0, **settings)
    static = fixed.fit(items[pairs], y)._model
    timed = fixed.set_params(drift="matern12").fit(items[pairs], y, time=time)._model
    assert_allclose(timed.priors[0].centre, static.priors[0].centre, atol=1e-12)
    assert timed.priors[0].index.tolist() == static.priors[0].index.tolist() == [0, 1]
    assert [name for name in timed.names if "variance" in name] == [
        "variance of the item effects",
        "variance of the effects of columns 0, 1 * Matern",
    ]


def test_inducing_points_follow_every_name_through_time():
    """They leave less open than as many items at random, and none of the names without any."""
    rng = np.random.default_rng(0)
    items = np.column_stack([np.arange(600) % 12, rng.uniform(0.0, 10.0, 600)]).astype(float)
    kernel = drift_of(1.0 * Matern(4.0, nu=1.5))
    Z = place(items, kernel, 60, 0)
    assert Z.shape == (60, 2)
    assert all((items == row).all(axis=1).any() for row in Z)
    per_name = np.bincount(Z[:, 0].astype(int), minlength=12)
    assert per_name.min() >= 3
    left = unexplained_share(kernel, items, Z)
    others = [unexplained_share(kernel, items, items[rng.permutation(600)[:60]]) for _ in range(5)]
    assert left.mean() < 0.5 * min(other.mean() for other in others)
    assert left.max() < 0.5 * min(other.max() for other in others)
    few = np.unique(items.round(0), axis=0)
    assert len(place(np.repeat(few, 2, axis=0)[:200], kernel, 150, 0)) <= 132
