"""Options of sparse variational inference: where its points go, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from svi_support import utility_duels

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI
from skpref.kernels import Identity, OnColumns


def test_names_have_a_point_each():
    table = ItemTable.from_names([f"player {k}" for k in range(40)])
    rng = np.random.default_rng(0)
    strength = rng.normal(size=40)
    pairs = np.array([rng.permutation(40)[:2] for _ in range(400)])
    won = strength[pairs[:, 0]] - strength[pairs[:, 1]] + rng.normal(size=400) > 0
    model = PairwisePreferenceRegressor(
        inference=SVI(10), items=table, optimizer=None, noise_variance=0.5
    ).fit(pairs, won)
    exact = PairwisePreferenceRegressor(items=table, optimizer=None, noise_variance=0.5)
    exact.fit(pairs, won)
    assert len(model.posterior_.anchors) == 40
    seen = np.arange(40)
    assert_allclose(model.predict(seen), exact.predict(seen), atol=0.02)


def test_points_among_items_where_a_kernel_knows_names():
    rng = np.random.default_rng(0)
    items = np.column_stack([np.arange(60.0), rng.normal(size=(60, 2))])
    kernel = OnColumns(RBF(1.0), [1, 2]) + 0.1 * OnColumns(Identity(), [0])
    pairs = np.array([rng.permutation(60)[:2] for _ in range(200)])
    model = PairwisePreferenceRegressor(
        kernel, inference=SVI(20), items=items, optimizer=None, random_state=0
    ).fit(pairs, items[pairs[:, 0], 1] > items[pairs[:, 1], 1])
    Z = model.posterior_.anchors
    assert 10 <= len(Z) <= 20
    assert {tuple(z) for z in Z} <= {tuple(x) for x in items}


def test_points_of_the_users_own():
    X, pairs, y = utility_duels(300)
    Z = X[:7] + 0.01
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(inducing_points=Z), items=X, optimizer=None
    ).fit(pairs, y)
    assert np.array_equal(model.posterior_.anchors, Z)
    with pytest.warns(UserWarning, match="points explain 0.0% of the variance"):
        model.set_params(inference__inducing_points=Z + 50.0).fit(pairs, y)
    model.set_params(inference__inducing_points=Z[:, :2])
    with pytest.raises(ValueError, match="of 3 features as the items; got shape"):
        model.fit(pairs, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inducing": 0}, "n_inducing"),
        ({"batch_size": 0}, "batch_size"),
        ({"forgetting_rate": 0.5}, "forgetting_rate"),
        ({"delay": -1.0}, "delay"),
        ({"inducing_points": [1.0]}, r"\(m, n_features\)"),
        ({"inducing_points": [["a", "b", "c"]]}, "inducing_points must be numbers"),
        ({"inducing_points": [[1.0, 2.0, 3.0], [1.0]]}, "inducing_points must be numbers"),
        ({"n_jobs": 0}, "n_jobs of the engine"),
        ({"tol": np.inf}, "tol of the engine"),
        ({"delay": np.inf}, "delay"),
        ({"scale_prior": (1e300, 1.0)}, "shape of scale_prior"),
        ({"scale_prior": (1.0, np.inf)}, "rate of scale_prior"),
        ({"evidence": "laplace"}, "evidence must be one of 'ep', 'bound'"),
    ],
)
def test_unsound_options_are_named(options, message):
    X, pairs, y = utility_duels(20)
    with pytest.raises(ValueError, match=message):
        PairwisePreferenceRegressor(inference=SVI(**options), items=X).fit(pairs, y)


def test_choices_are_refused_with_the_engines_that_take_them():
    X = np.random.default_rng(0).normal(size=(10, 3, 2))
    with pytest.raises(ValueError, match=r"SVI does not take choices.*'ep', 'hmc' or 'gibbs'"):
        PairwisePreferenceRegressor(inference="svi").fit(X, np.zeros(10, dtype=int))
