"""Importance of features of items: against all exchanges there are, and what must not matter."""

from itertools import permutations

import numpy as np
import pytest
import sklearn.inspection
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpref import CollaborativePreferenceRegressor, ItemTable, PairwisePreferenceRegressor
from skpref.duels import DuelFrame
from skpref.inspection import permutation_importance
from skpref.kernels import OnColumns
from skpref.metrics import answer_log_loss, log_loss_scorer
from skpref.preprocessing import Itemwise

rng = np.random.default_rng(5)
ITEMS = rng.uniform(-1.0, 1.0, (4, 2))
N = 60
PAIRS = np.array([rng.choice(4, 2, replace=False) for _ in range(N)])
X = ITEMS[PAIRS]
UTILITY = 2.0 * ITEMS[:, 0] - ITEMS[:, 1]
Y = (UTILITY[PAIRS[:, 0]] - UTILITY[PAIRS[:, 1]] + 0.5 * rng.standard_normal(N) > 0).astype(int)
WHO = np.arange(N) % 3
MIRRORED = np.where(WHO == 2, 1 - Y, Y)


def model_of(**parameters):
    return PairwisePreferenceRegressor(optimizer=None, noise_variance=0.2, **parameters)


FITTED = model_of().fit(X, Y)


def means(model, X, y, **options):
    return permutation_importance(model, X, y, **options).importances_mean


# -- what it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature", [0, 1])
def test_its_mean_is_that_of_all_exchanges(feature):
    """Four items: 24 exchanges, each as probable. The score is written out by hand."""

    def loss(items):
        return log_loss(Y, FITTED.predict_proba(items[PAIRS]))

    every = []
    for exchange in permutations(range(4)):
        items = ITEMS.copy()
        items[:, feature] = ITEMS[list(exchange), feature]
        every.append(loss(items) - loss(ITEMS))
    found = permutation_importance(FITTED, X, Y, scoring="neg_log_loss", n_repeats=60)
    error = np.std(every) / np.sqrt(60)
    assert found.importances_mean[feature] == pytest.approx(np.mean(every), abs=4.0 * error)
    assert found.importances.shape == (2, 60)
    seen = found.importances[feature]
    assert np.abs(seen[:, None] - np.array(every)).min(axis=1).max() < 1e-9
    assert found.importances_std[feature] == pytest.approx(np.std(seen))


def test_a_feature_that_the_model_does_not_look_at_has_none():
    model = model_of(kernel=OnColumns(RBF(1.0), [0])).fit(X, Y)
    found = permutation_importance(model, X, Y, scoring="neg_log_loss", n_repeats=3)
    assert_array_equal(found.importances[1], 0.0)
    assert found.importances_mean[0] > 0.1


def test_rated_items_are_as_those_of_scikit_learn():
    items = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 2))
    ratings = items[:, 0] + 0.3 * items[:, 1]
    options = {"n_repeats": 49, "random_state": 0}
    ours = permutation_importance(FITTED, items, ratings, **options)
    theirs = sklearn.inspection.permutation_importance(FITTED, items, ratings, **options)
    error = np.hypot(ours.importances_std, theirs.importances_std) / 7.0
    assert (np.abs(ours.importances_mean - theirs.importances_mean) < 4.0 * error).all()


# -- what it must not depend on --------------------------------------------------------------------


def test_neither_sides_nor_the_order_of_duels_matter():
    expected = means(FITTED, X, Y, scoring=log_loss_scorer)
    turned = np.where(Y[:, None, None] == 1, X, X[:, ::-1])  # the winner first, always
    assert_allclose(means(FITTED, turned, None, scoring=log_loss_scorer), expected, rtol=1e-9)
    assert (expected > 0.05).all()
    last = np.random.default_rng(1).permutation(N)
    assert_allclose(means(FITTED, X[last], Y[last], scoring=log_loss_scorer), expected, rtol=1e-9)


def test_forms_of_the_same_duels_agree():
    expected = means(FITTED, X, Y)
    named = ItemTable(ITEMS, names=["tea", "cola", "milk", "beer"])
    with_table = model_of(items=named).fit(PAIRS, Y)
    for other, asked in (
        (FITTED, DuelFrame(ITEMS, PAIRS)),
        (with_table, PAIRS),
        (with_table, named.names[PAIRS]),
        (make_pipeline(with_table), PAIRS),
        (GridSearchCV(with_table, {}, cv=2).fit(PAIRS, Y), PAIRS),
    ):
        assert_allclose(means(other, asked, Y), expected, atol=1e-12)


def test_sets_of_any_size_are_taken():
    sets = np.array([[0, 1, 2], [2, 3, 1], [3, 0, 2], [1, 0, 3]] * 5)
    chosen = np.array([UTILITY[row].argmax() for row in sets])
    model = model_of().fit(ITEMS[sets], chosen)
    found = permutation_importance(model, ITEMS[sets], chosen, scoring=log_loss_scorer)
    ragged = np.where([[False, False, True]] * 5 + [[False] * 3] * 15, -1, sets)
    best = np.array([UTILITY[row[row >= 0]].argmax() for row in ragged])
    frame = DuelFrame(ITEMS, ragged)
    asked = permutation_importance(model, frame, best, scoring=log_loss_scorer, n_repeats=2)
    for importance in (found, asked):
        assert (importance.importances_mean > 0.0).all()
    losses = [
        answer_log_loss(best, model.predict_proba(DuelFrame(items, ragged)), kind="choice")
        for items in (ITEMS, *exchanges(0))
    ]
    possible = np.array(losses[1:]) - losses[0]
    assert np.abs(asked.importances[0][:, None] - possible).min(axis=1).max() < 1e-9


def exchanges(feature):
    for exchange in permutations(range(4)):
        items = ITEMS.copy()
        items[:, feature] = ITEMS[list(exchange), feature]
        yield items


def test_frames_of_mixed_columns_keep_their_types_and_names():
    pd = pytest.importorskip("pandas")
    drinks = pd.DataFrame(
        {
            "kind": pd.Categorical(["tea", "cola", "tea", "milk"]),
            "sugar": ITEMS[:, 0],
            "spare": [1, 2, 3, 4],
        }
    )
    duels = DuelFrame(drinks, PAIRS)
    columns = [("kind", OneHotEncoder(), ["kind"]), ("sugar", StandardScaler(), ["sugar"])]
    model = make_pipeline(Itemwise(ColumnTransformer(columns)), model_of()).fit(duels, Y)
    found = permutation_importance(model, duels, Y, scoring="neg_log_loss")
    assert found.feature_names.tolist() == ["kind", "sugar", "spare"]
    assert found.importances_mean[1] > 0.05
    assert_array_equal(found.importances[2], 0.0)
    assert drinks["sugar"].tolist() == ITEMS[:, 0].tolist()
    table = ItemTable(drinks[["sugar", "spare"]])
    referred = permutation_importance(model_of(items=table).fit(PAIRS, Y), PAIRS, Y)
    assert referred.feature_names.tolist() == ["sugar", "spare"]


# -- metadata --------------------------------------------------------------------------------------

TWO = np.array([[[0.0], [1.0]]] * N)
TOLD = {
    "judges": (model_of(), np.where(WHO == 2, 0, 1), {"judges": WHO}),
    "order": (
        model_of(order_effect=0.4),
        np.where(WHO == 2, 1, 0),
        {"order": np.where(WHO == 2, 1, -1)},
    ),
    "users": (
        CollaborativePreferenceRegressor(ConstantKernel(1.0) * RBF(1.0), optimizer=None),
        np.where(WHO == 2, 0, 1),
        {"users": WHO},
    ),
}


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", log_loss_scorer])
@pytest.mark.parametrize("name", TOLD)
def test_metadata_are_passed_on(name, scoring):
    """Of two items an exchange leaves all as it is, or turns every duel round."""
    model, y, metadata = TOLD[name]
    model.fit(TWO, y, **metadata)

    def score(X):
        if scoring is None:
            return model.score(X, y, **metadata)
        return -log_loss(y, model.predict_proba(X, **metadata))

    found = permutation_importance(model, TWO, y, scoring=scoring, n_repeats=12, **metadata)
    loss = score(TWO) - score(TWO[:, ::-1])
    away = np.isclose(found.importances[0], loss, rtol=1e-9, atol=1e-12)
    still = np.isclose(found.importances[0], 0.0, atol=1e-12)
    assert (away | still).all()
    assert away.any() and still.any()
    with pytest.raises(ValueError, match=rf"pass {name}= to it"):
        permutation_importance(model, TWO, y, scoring=scoring)


def test_weights_are_those_of_repeated_duels():
    times = 1 + WHO
    found = means(FITTED, X, Y, scoring="neg_log_loss", sample_weight=times)
    again = means(FITTED, np.repeat(X, times, axis=0), np.repeat(Y, times), scoring="neg_log_loss")
    assert_allclose(found, again, rtol=1e-9)


# -- what is refused -------------------------------------------------------------------------------


def test_items_without_features_are_refused():
    players = ItemTable.from_names(["ann", "bob", "cid", "dan"])
    model = model_of(items=players).fit(PAIRS, Y)
    with pytest.raises(ValueError, match="a table without features"):
        permutation_importance(model, PAIRS, Y)


@pytest.mark.parametrize("n_repeats", [0, 1.5])
def test_repeats_are_counted(n_repeats):
    with pytest.raises((TypeError, ValueError), match="n_repeats"):
        permutation_importance(FITTED, X, Y, n_repeats=n_repeats)
