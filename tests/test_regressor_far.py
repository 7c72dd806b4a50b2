"""Features far from zero: the same data moved by what doubles hold exactly give the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inference import SVI
from skpref.kernels import ItemEffect, Linear, OnColumns, ProductMatern, Teams

# Features are whole numbers of these, so that moved ones are exact up to 2^52 of them.
STEP = 2.0**-7


def duels(n=50, d=2, k=2, n_items=20):
    rng = np.random.default_rng(0)
    items = STEP * np.rint(rng.normal(size=(n_items, d)) / STEP)
    shown = items[np.array([rng.choice(n_items, k, replace=False) for _ in range(n)])]
    utility = np.sin(shown[..., 0]) + 0.5 * shown[..., -1] + 0.3 * rng.normal(size=(n, k))
    return shown, utility


def moved_by(offset, model, X, y, asked=10, **given):
    later = {name: values[:asked] for name, values in given.items()}
    model.fit(X + offset, y, **given)
    return model.predict_proba(X[:asked] + offset, **later)


KERNELS = {
    "default": None,
    "rbf": RBF(1.3),
    "one a feature": Matern([1.3, 0.7], nu=1.5),
    "rough": Matern(0.7, nu=0.5),
    "rational": RationalQuadratic(1.3),
    "product": ProductMatern([1.3, 0.7]),
    "effects": RBF(1.3) + 0.1 * ItemEffect(1e-3),
    "columns": OnColumns(RBF(1.3), [0]) + OnColumns(Matern(0.7, nu=2.5), [1]),
    "linear": 2.0 * Linear([1.3, 0.7]),
    "dot": DotProduct(),
    "linear and smooth": 2.0 * DotProduct() + 1.0 * RBF(1.3),
    "teams": Teams(RBF(1.3), members=[[0], [1]]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    kernel = KERNELS[name]
    offset = 2.0**43 if list(KERNELS).index(name) % 2 else -(2.0**45)
    X, utility = duels()
    if isinstance(kernel, Teams):  # a first column below zero says that a member is absent
        X, offset = X + 8.0, abs(offset)
    y = (utility[:, 0] > utility[:, 1]).astype(int)
    model = PairwisePreferenceRegressor(kernel, optimizer=None if kernel else "fmin_l_bfgs_b")
    assert_allclose(moved_by(offset, model, X, y), moved_by(0.0, model, X, y), atol=1e-6)


@pytest.mark.parametrize("inference", ["ep", "laplace", SVI(), "hmc", "gibbs"], ids=str)
def test_engines(inference):
    X, utility = duels()
    y = (utility[:, 0] > utility[:, 1]).astype(int)
    model = PairwisePreferenceRegressor(RBF(1.3), inference=inference, optimizer=None)
    model.set_params(random_state=0)
    assert_allclose(moved_by(2.0**43, model, X, y), moved_by(0.0, model, X, y), atol=1e-6)


def test_few_inducing_points():
    """Their centres are no multiples of the step: they are rounded to what doubles hold there."""
    X, utility = duels()
    y = (utility[:, 0] > utility[:, 1]).astype(int)
    model = PairwisePreferenceRegressor(inference=SVI(n_inducing=8), random_state=0)
    assert_allclose(moved_by(2.0**30, model, X, y), moved_by(0.0, model, X, y), atol=1e-6)
    assert_allclose(moved_by(2.0**40, model, X, y), moved_by(0.0, model, X, y), atol=1e-4)


def test_choices_and_many_users():
    X, utility = duels(20, k=4)
    model = PairwisePreferenceRegressor(random_state=0)
    y = utility.argmax(axis=1)
    assert_allclose(moved_by(2.0**43, model, X, y), moved_by(0.0, model, X, y), atol=1e-6)
    X, utility = duels(20)
    y, users = (utility[:, 0] > utility[:, 1]).astype(int), np.arange(len(X)) % 3
    model = CollaborativePreferenceRegressor(random_state=0)
    far, near = (moved_by(offset, model, X, y, users=users) for offset in (2.0**43, 0.0))
    assert_allclose(far, near, atol=1e-6)


def test_a_dot_product_among_years_agrees_with_one_about_its_mean():
    """Its constant, and where its zero is, cancel in margins."""
    X, utility = duels()
    y = (utility[:, 0] > utility[:, 1]).astype(int)
    model = PairwisePreferenceRegressor(DotProduct(), inference=SVI(n_inducing=10), optimizer=None)
    assert_allclose(moved_by(2048.0, model, X, y), moved_by(0.0, model, X, y), atol=1e-6)


def test_draws_of_functions_have_the_posterior_moments():
    X, utility = duels()
    model = PairwisePreferenceRegressor(RBF(1.3), optimizer=None)
    far = X + 2.0**43
    model.fit(far, (utility[:, 0] > utility[:, 1]).astype(int))
    draws = model.posterior_.sample_paths(2000, 0)(far[:6, 0])
    mean, deviation = model.predict(far[:6, 0], return_std=True)
    assert_allclose(draws.mean(axis=1), mean, atol=0.1)
    assert_allclose(draws.std(axis=1), deviation, rtol=0.1)
