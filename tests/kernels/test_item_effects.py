"""Models without item effects: the utility that features explain, against limits and other ways."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.inspection import partial_dependence
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import HallucinationBelieverOptimizer, ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.inference import SVI
from skpref.inspection import without_item_effects
from skpref.kernels import Identity, ItemEffect, OnColumns
from skpref.kernels._hyperparameters import hyperparameter_names
from skpref.kernels._views import features_part
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(0)
ITEMS = RNG.uniform(size=(12, 2))
PAIRS = np.array([RNG.choice(12, 2, replace=False) for _ in range(50)])
Y = np.arange(50) % 2
EFFECT = 0.7  # variance
WITH = RBF(0.5) + EFFECT * Identity()


def regressor(kernel=WITH, **options):
    return PairwisePreferenceRegressor(kernel, noise_variance=0.1, optimizer=None, **options)


def unmet(rows):
    """Items of practically these features that nobody has met: their effects are of mean zero."""
    return rows + np.arange(1, len(rows) + 1)[:, None] * 1e-10


@pytest.mark.parametrize("engine", ["ep", "laplace", "hmc", "svi", SVI(n_inducing=6)], ids=str)
def test_the_rest_is_what_is_known_of_items_that_nobody_has_met(engine):
    model = regressor(inference=engine, random_state=0).fit(ITEMS[PAIRS], Y)
    without = without_item_effects(model)
    mean, cov = without.predict(ITEMS, return_cov=True)
    other, wider = model.predict(unmet(ITEMS), return_cov=True)
    np.testing.assert_allclose(mean, other, atol=1e-7)
    np.testing.assert_allclose(cov + EFFECT * np.eye(12), wider, atol=1e-7)
    assert np.abs(mean - model.predict(ITEMS)).max() > 0.05
    margins = without.predict(ITEMS[PAIRS], return_std=True)[1]
    known = cov[PAIRS[:, 0], PAIRS[:, 0]] + cov[PAIRS[:, 1], PAIRS[:, 1]]
    np.testing.assert_allclose(margins**2, known - 2.0 * cov[PAIRS[:, 0], PAIRS[:, 1]], atol=1e-7)
    assert model.posterior_.kernel == WITH  # left as it is


def test_margins_among_many_items():
    """From so many items on margins come from a covariance of the items that is kept."""
    items = np.random.default_rng(2).uniform(size=(260, 2))
    first = np.tile(np.arange(260), 3)
    second = (first + np.repeat([1, 2, 5], 260)) % 260
    model = regressor(inference="laplace").fit(items[np.column_stack([first, second])], first % 2)
    assert model.posterior_.utilities is not None
    without = without_item_effects(model)
    mean, variance = without.posterior_.margin(items[first], items[second])
    asked = unmet(items)
    other, wider = model.posterior_.margin(asked[first], asked[second])
    np.testing.assert_allclose(mean, other, atol=1e-6)
    np.testing.assert_allclose(variance + 2.0 * EFFECT, wider, atol=1e-6)


def test_partial_dependence_has_no_spikes():
    rows = np.linspace(0.0, 1.0, 8)[:, None]
    good = 4.0 * rows[:, 0] + np.array([0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0])
    pairs = np.array([(i, j) for i in range(8) for j in range(i)] * 3)
    seen = np.random.default_rng(0).normal(size=(len(pairs), 2)) + good[pairs]
    model = PairwisePreferenceRegressor().fit(rows[pairs], (seen[:, 0] > seen[:, 1]).astype(int))

    def bend(of):
        # scikit-learn takes the values of the items for its grid, as there are so few.
        values = partial_dependence(of, rows, [0])["average"][0]
        return np.abs(np.diff(values, 2)).max() / (values[-1] - values[0])

    assert bend(model) > 0.5
    assert bend(without_item_effects(model)) < 0.1


def test_users_keep_their_tastes():
    users = ["ann", "bob"] * 25
    model = CollaborativePreferenceRegressor(WITH, noise_variance=0.1, optimizer=None)
    model.fit(ITEMS[PAIRS], Y, users=users)
    without = without_item_effects(model)
    for user in ("ann", "zoe"):
        asked = [user] * 12
        mean, std = without.predict(ITEMS, return_std=True, users=asked)
        other, wider = model.predict(unmet(ITEMS), return_std=True, users=asked)
        np.testing.assert_allclose(mean, other, atol=1e-6)
        effects = EFFECT * (1.0 + model.posterior_.taste_variance)
        np.testing.assert_allclose(std**2 + effects, wider**2, atol=1e-6)


def test_of_pipelines_searches_and_posteriors():
    pipe = make_pipeline(Itemwise(StandardScaler()), regressor()).fit(ITEMS[PAIRS], Y)
    expected = pipe.predict(unmet(ITEMS))
    np.testing.assert_allclose(without_item_effects(pipe).predict(ITEMS), expected, atol=1e-6)
    grid = {"pairwisepreferenceregressor__noise_variance": [0.1]}
    search = GridSearchCV(clone(pipe), grid, cv=2).fit(ITEMS[PAIRS], Y)
    np.testing.assert_allclose(without_item_effects(search).predict(ITEMS), expected, atol=1e-6)
    model = regressor().fit(ITEMS[PAIRS], Y)
    posterior = without_item_effects(model.posterior_)
    np.testing.assert_array_equal(posterior.mean(ITEMS), without_item_effects(model).predict(ITEMS))


def test_ids_are_effects_and_categories_are_not():
    coded = np.column_stack([np.arange(12) % 6, np.arange(12) % 3, ITEMS])
    kernel = OnColumns(RBF(0.5), [2, 3]) + OnColumns(Identity(), [0]) + OnColumns(Identity(), [1])
    pairs = PAIRS[PAIRS[:, 0] % 6 != PAIRS[:, 1] % 6]
    model = regressor(kernel, id_column=0).fit(coded[pairs], Y[: len(pairs)])
    without = without_item_effects(model)
    stranger = coded + np.array([100.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(without.predict(coded), model.predict(stranger), atol=1e-10)
    other = coded + np.array([0.0, 100.0, 0.0, 0.0])  # of a category that nobody has met
    assert np.ptp(without.predict(other) - without.predict(coded)) > 1e-3


PARTS = [
    (RBF(2.0), RBF(2.0)),
    (RBF(2.0) + 0.1 * ItemEffect(), RBF(2.0)),
    (WhiteKernel(0.1) + Matern(1.0), Matern(1.0)),
    ((RBF(2.0) + Identity()) * 3.0, RBF(2.0) * 3.0),
    ((RBF(2.0) + Identity()) ** 2, RBF(2.0) ** 2),
    ((RBF(2.0) + Identity()) * (Matern(1.0) + Identity()), RBF(2.0) * Matern(1.0)),
    (OnColumns(RBF(2.0) + ItemEffect(), [1]), OnColumns(RBF(2.0), [1])),
    (OnColumns(Identity(), [1]), None),
    (OnColumns(Identity(), [0]) + Identity(), OnColumns(Identity(), [0])),
    (Identity() * RBF(2.0), None),
]


@pytest.mark.parametrize("kernel, part", PARTS, ids=str)
def test_parts_of_kernels(kernel, part):
    """What is left has the covariances of distinct items, of which one with itself has less."""
    found = features_part(kernel, 2, id_column=1)
    assert found == part
    rows = np.random.default_rng(1).uniform(size=(5, 2))
    rest = kernel(rows) - (0.0 if found is None else found(rows))
    np.testing.assert_allclose(rest - np.diag(np.diag(rest)), 0.0, atol=1e-12)


def test_nothing_is_changed_where_there_are_none():
    model = regressor(RBF(0.5)).fit(ITEMS[PAIRS], Y)
    assert without_item_effects(model).posterior_ is model.posterior_


def test_refusals():
    names = ItemTable.from_names(["ann", "bob", "cid"])
    model = PairwisePreferenceRegressor(items=names, optimizer=None).fit([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="has item effects alone"):
        without_item_effects(model)
    optimizer = HallucinationBelieverOptimizer([[0.0, 1.0]]).tell([[0.6], [0.1]], 1)
    for other in (PairwisePreferenceRegressor(), optimizer):
        with pytest.raises(TypeError, match="must be a Posterior or have one"):
            without_item_effects(other)


# -- names of hyperparameters -----------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel, names",
    [
        (RBF([1.0, 2.0]), ["length_scale[0]", "length_scale[1]"]),
        (RBF(1.0, "fixed") + 0.1 * ItemEffect(), ["variance of the item effects"]),
        (ConstantKernel() * RBF(), ["variance of the RBF", "length_scale"]),
        (RBF() + ConstantKernel(), ["length_scale", "constant_value"]),
        (RBF() + RBF(), ["length_scale (1 of 2)", "length_scale (2 of 2)"]),
        (RBF() + Matern(), ["RBF length_scale", "Matern length_scale"]),
        (
            OnColumns(RBF([1.0, 2.0]), [1, 3]) + ConstantKernel() * OnColumns(Identity(), [0]),
            ["length_scale[1]", "length_scale[3]", "variance of the effects of column 0"],
        ),
        (
            ConstantKernel() * (RBF() + Matern()),
            ["variance of the (RBF + Matern)", "RBF length_scale", "Matern length_scale"],
        ),
        (WhiteKernel() ** 2, ["noise_level"]),
    ],
    ids=str,
)
def test_hyperparameters_have_names_that_people_understand(kernel, names):
    assert hyperparameter_names(kernel) == names
    assert len(names) == len(kernel.theta)


def test_the_default_kernel_warns_in_words():
    rows = np.linspace(0.0, 1.0, 6)[:, None]
    pairs = np.array([(i, j) for i in range(6) for j in range(i)] * 30)
    good = np.array([0.0, 9.0, -9.0, 9.0, -9.0, 0.0])  # nothing that a feature could explain
    X, y = rows[pairs], (good[pairs[:, 0]] > good[pairs[:, 1]]).astype(int)
    with pytest.warns(UserWarning, match="variance of the item effects at its upper bound 10"):
        PairwisePreferenceRegressor(noise_variance=10.0, noise_variance_bounds="fixed").fit(X, y)
