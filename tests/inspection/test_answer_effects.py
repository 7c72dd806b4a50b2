"""The order effect and thresholds with intervals, against their posteriors on grids."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.inference import Gibbs
from skpref.inspection import answer_effects

STRENGTH = np.array([0.8, 0.3, -0.2, -0.9])


def votes(n=120, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(4, size=n)
    X = np.stack([first, (first + rng.integers(1, 4, size=n)) % 4], axis=1)
    order = rng.choice([-1, 1], size=n)
    margin = STRENGTH[X] @ [1, -1] + 0.4 * order + np.sqrt(2.0) * rng.normal(size=n)
    return X, np.where(np.abs(margin) < 0.5, 0, np.sign(margin)).astype(int), order


def regressor(**params):
    items = ItemTable.from_names(list("abcd"))
    fixed = {"noise_variance": 1.0, "noise_variance_bounds": "fixed"}
    return PairwisePreferenceRegressor(**{"items": items, "random_state": 0, **fixed, **params})


def on_grid(model, theta, level):
    """Central interval of one hyperparameter whose posterior is its evidence."""
    logs = np.array([model.log_marginal_likelihood([each]) for each in theta])
    density = np.exp(logs - logs.max())
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return np.interp([0.5 - 0.5 * level, 0.5 + 0.5 * level], below / below[-1], theta)


@pytest.mark.parametrize(("inference", "level"), [("ep", 0.9), ("laplace", 0.5)])
def test_an_order_effect_is_that_of_a_grid(inference, level):
    X, y, order = votes()
    decided = y != 0
    model = regressor(order_effect_bounds=(-5.0, 5.0), inference=inference)
    model.fit(X[decided], y[decided], order=order[decided])
    found = answer_effects(model, average=False, level=level)
    assert found.names.tolist() == ["order_effect"]
    assert_allclose(found.value, model.order_effect_)
    low, high = on_grid(model, np.linspace(-0.4, 1.9, 31), level)
    assert_allclose([found.lower[0], found.upper[0]], [low, high], atol=0.08 * (high - low))
    # A prior of deviation σ around zero draws the mean a little to it.
    mean = answer_effects(model, average=True, level=level)
    apart = (high - low) / (2.0 * ndtri(0.5 + 0.5 * level))
    shrunk = 1.0 / (1.0 + apart**2)
    assert_allclose(mean.value[0], shrunk * found.value[0], atol=0.1 * apart)
    assert_allclose(mean.upper - mean.lower, (high - low) * np.sqrt(shrunk), rtol=0.1)


@pytest.mark.slow
def test_a_threshold_is_that_of_a_grid():
    X, y, _ = votes()
    model = regressor(tie_threshold=0.3, tie_threshold_bounds=(1e-3, 10.0)).fit(X, y)
    found = answer_effects(model, average=False)
    assert_allclose(found.value, model.tie_threshold_)
    ends = np.exp(on_grid(model, np.log(np.linspace(0.2, 1.2, 31)), 0.9))
    assert_allclose(np.log([found.lower[0], found.upper[0]]), np.log(ends), atol=0.02)


def test_values_do_not_hang_on_the_unit_of_the_noise():
    X, y, order = votes(80)
    params = {"tie_threshold_bounds": (1e-4, 1e3)}
    by_size = []
    for size in (1.0, 7.0):
        from sklearn.gaussian_process.kernels import ConstantKernel

        from skpref.kernels import Identity

        kernel = ConstantKernel(size**2, "fixed") * Identity()
        noise = {
            "noise_variance": size**2,
            "noise_variance_bounds": (1e-4 * size**2, 1e4 * size**2),
        }
        noise["order_effect_bounds"] = (-20.0 * size, 20.0 * size)
        model = regressor(kernel=kernel, tie_threshold=0.3 * size, **params, **noise)
        by_size.append(answer_effects(model.fit(X, y, order=order), average=False, unit="elo"))
    one, other = by_size
    assert set(one.names) == {"tie_threshold", "order_effect"}
    for name in ("value", "lower", "upper"):
        assert_allclose(one[name], other[name], rtol=0.02)
    assert (one.lower < one.value).all() and (one.value < one.upper).all()
    alone = answer_effects(model, average=False)
    elo = (
        400.0 / np.log(10.0) * 4.0 * model.likelihood_.score_slope * np.sqrt(model.noise_variance_)
    )
    assert_allclose(other.value, alone.value * elo)


@pytest.mark.slow
def test_judges_grades_and_engines_without_evidence():
    X, y, order = votes(90)
    bounds = {"order_effect_bounds": (-5.0, 5.0)}
    who = np.arange(90) % 3
    judged = regressor(**bounds, tie_threshold=0.3).fit(X, y, order=order, judges=who)
    found = answer_effects(judged)
    assert set(found.names) == {"tie_threshold", "order_effect"}
    assert (found.lower < found.upper).all()
    graded = regressor(grade_thresholds=(1.0,)).fit(X, np.where(y == 0, 1, 2 * y))
    assert [name.startswith("grade_increment") for name in answer_effects(graded).names] == [True]
    sampled = regressor(
        **bounds, inference=Gibbs(draws=20, chains=2, burn_in=5), tie_threshold=0.3
    ).fit(X, y, order=order)
    found = answer_effects(sampled)
    assert np.isnan(found.lower).all() and np.isfinite(found.value).all()
    for nothing in (
        regressor().fit(X, y != -1),
        regressor(optimizer=None).fit(X, y != -1).posterior_,
    ):
        assert len(answer_effects(nothing).names) == 0
    with pytest.raises(ValueError, match="level must lie in"):
        answer_effects(judged, level=1.0)
