"""The estimator among scikit-learn's tools: searches, routing, inspection, pickling."""

import joblib
import numpy as np
import pytest
import sklearn
from checks_support import ROUTES_PIPED_SCORES
from judged_support import N_ITEMS, fixed_model, utility
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.metrics import brier_score_loss, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpref import CollaborativePreferenceRegressor, ItemTable, PairwisePreferenceRegressor
from skpref.inference import EP, Laplace
from skpref.metrics import (
    accuracy_scorer,
    brier_scorer,
    concordance,
    log_loss_scorer,
    roc_auc_scorer,
)
from skpref.preprocessing import Itemwise

# -- scores and searches -------------------------------------------------------------------


def by_hand(model, X, y, score):
    """Scores over three plain folds."""
    found = []
    for train, test in KFold(3).split(X):
        fitted = clone(model).fit(X[train], y[train])
        found.append(score(fitted, X[test], y[test]))
    return found


@pytest.mark.parametrize(
    ("scoring", "score"),
    [
        (None, lambda m, X, y: np.mean((m.predict_proba(X)[:, 1] > 0.5) == y)),
        ("neg_log_loss", lambda m, X, y: -log_loss(y, m.predict_proba(X))),
        ("neg_brier_score", lambda m, X, y: -brier_score_loss(y, m.predict_proba(X)[:, 1])),
        ("roc_auc", lambda m, X, y: roc_auc_score(y, m.predict(X))),
        (accuracy_scorer, lambda m, X, y: np.mean((m.predict_proba(X)[:, 1] > 0.5) == y)),
        (log_loss_scorer, lambda m, X, y: -log_loss(y, m.predict_proba(X))),
        (brier_scorer, lambda m, X, y: -brier_score_loss(y, m.predict_proba(X)[:, 1])),
        (roc_auc_scorer, get_scorer("roc_auc")),
    ],
    ids=["default", "log", "brier", "auc", "our accuracy", "our log", "our brier", "our auc"],
)
def test_cross_val_score(duels, fixed, scoring, score):
    X, y = duels
    found = cross_val_score(fixed, X, y, cv=KFold(3), scoring=scoring, error_score="raise")
    assert_allclose(found, by_hand(fixed, X, y, score), rtol=1e-10)
    assert len(set(found)) > 1


def test_a_model_stays_a_regressor_whatever_scorers_ask(duels, fixed):
    """Folds of a model that was fitted are those of one that was not: whole runs, no strata."""
    X, y = duels
    options = {"cv": 3, "scoring": "neg_log_loss", "error_score": "raise"}
    fresh = cross_val_score(fixed, X, y, **options)
    fitted = clone(fixed).fit(X, y)
    assert_array_equal(cross_val_score(fitted, X, y, **options), fresh)
    assert is_regressor(fitted) and not is_classifier(fitted)
    with pytest.raises(AttributeError, match="has none of the following attributes: predict_proba"):
        get_scorer("neg_log_loss")(clone(fixed).fit(X[:, 0], X[:, 0, 0]), X, y)


def test_signed_labels_score_the_same(duels, fixed):
    X, y = duels
    for scoring in (None, "neg_log_loss", "neg_brier_score", "roc_auc", log_loss_scorer):
        options = {"cv": 3, "scoring": scoring, "error_score": "raise"}
        zero_one = cross_val_score(fixed, X, y, **options)
        assert_allclose(cross_val_score(fixed, X, np.where(y, 1, -1), **options), zero_one)


def test_accuracy_of_scikit_learn_is_for_classifiers(duels, fixed):
    with pytest.raises(ValueError, match="mix of binary and continuous"):
        cross_val_score(fixed, *duels, scoring="accuracy", error_score="raise", cv=2)


def test_our_scorers_take_folds_of_one_class(duels, fixed):
    X, y = duels
    winners_first = np.where(y[:, None, None], X, X[:, ::-1])
    ours = cross_val_score(fixed, winners_first, np.ones(60), cv=3, scoring=log_loss_scorer)
    assert_allclose(ours, cross_val_score(fixed, X, y, cv=3, scoring="neg_log_loss"))


def test_cross_val_predict_of_probabilities(duels, fixed):
    X, y = duels
    found = cross_val_predict(fixed, X, y, cv=KFold(3), method="predict_proba")
    expected = by_hand(fixed, X, y, lambda model, X, y: model.predict_proba(X))
    assert_allclose(found, np.concatenate(expected), rtol=1e-10)


@pytest.mark.slow
def test_grid_search_over_a_pipeline_in_two_processes(duels):
    X, y = duels
    stretched = X * [1.0, 1e4]
    model = PairwisePreferenceRegressor(RBF(1.0), inference=EP(), optimizer=None)
    pipeline = make_pipeline(Itemwise(StandardScaler()), model)
    name = "pairwisepreferenceregressor"
    grid = {
        f"{name}__inference__damping": [0.0, 0.3],
        f"{name}__kernel__length_scale": [1e3, 1.0],
        f"{name}__noise_variance": [0.1],
    }
    search = GridSearchCV(
        pipeline, grid, scoring="neg_log_loss", cv=3, n_jobs=2, error_score="raise"
    ).fit(stretched, y)
    loss = -search.cv_results_["mean_test_score"].reshape(2, 2)
    # Damping changes the way to the fixed point, not the point.
    assert_allclose(loss[0], loss[1], atol=1e-6)
    # Over so long a lengthscale all utilities are equal, and every duel is a toss.
    assert_allclose(loss[0, 0], np.log(2.0), atol=0.01)
    assert loss[0, 1] < 0.5
    assert search.best_params_[f"{name}__kernel__length_scale"] == 1.0
    assert search.best_estimator_.predict(stretched[:, 0]).shape == (60,)
    assert search.predict_proba(stretched).shape == (60, 2)
    assert_array_equal(search.classes_, [0, 1])
    # The scaler hides the units.
    rescaled = clone(search.best_estimator_).fit(X, y).predict_proba(X)
    assert_allclose(rescaled, search.predict_proba(stretched), rtol=1e-6)


def test_learning_curve(duels, fixed):
    X, y = duels
    sizes, train, test = learning_curve(
        fixed, X, y, train_sizes=[5, 40], cv=3, scoring="neg_log_loss", error_score="raise"
    )
    assert sizes.tolist() == [5, 40]
    assert test.mean(axis=1)[1] > test.mean(axis=1)[0]
    assert train.mean(axis=1)[1] > test.mean(axis=1)[1]


def test_train_test_split_keeps_duels_whole(duels, fixed):
    X, y = duels
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    assert X_train.shape == (45, 2, 2) and X_test.shape == (15, 2, 2)
    known = {(duel.tobytes(), label) for duel, label in zip(X, y.tolist(), strict=True)}
    split = zip(np.concatenate([X_train, X_test]), [*y_train, *y_test], strict=True)
    assert {(duel.tobytes(), int(label)) for duel, label in split} == known
    assert fixed.fit(X_train, y_train).score(X_test, y_test) > 0.7


# -- groups of rated items -----------------------------------------------------------------


@pytest.fixture(scope="module")
def rated():
    """Items of four groups whose ratings are shifted, so that only groups are comparable."""
    rng = np.random.default_rng(2)
    X, qid = rng.uniform(-1.5, 1.5, (40, 2)), np.repeat(np.arange(4), 10)
    return X, utility(X) + 100.0 * np.array([0, 3, 1, 2])[qid], qid


def test_routing_of_qid(rated, fixed):
    X, y, qid = rated
    expected = []
    for train, test in GroupKFold(4).split(X, y, qid):
        fitted = clone(fixed).fit(X[train], y[train], qid=qid[train])
        expected.append(fitted.score(X[test], y[test], qid=qid[test]))
    with sklearn.config_context(enable_metadata_routing=True):
        model = fixed.set_fit_request(qid=True).set_score_request(qid=True)
        params = {"qid": qid, "groups": qid}
        found = cross_val_score(model, X, y, params=params, cv=GroupKFold(4), error_score="raise")
        assert_allclose(found, expected)
        piped = make_pipeline(StandardScaler(), model)
        options = {"params": {"qid": qid}, "cv": 4, "error_score": "raise"}
        if ROUTES_PIPED_SCORES:
            assert cross_val_score(piped, X, y, **options).mean() > 0.85
        else:
            with pytest.raises(ValueError, match="The model was fitted with qid="):
                cross_val_score(piped, X, y, **options)
        unasked = clone(fixed).set_fit_request(qid=None)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="qid"):
            cross_val_score(unasked, X, y, params={"qid": qid}, error_score="raise")
    assert np.mean(expected) > 0.9


def test_only_items_of_one_group_are_compared(rated, fixed):
    X, y, qid = rated
    with_groups = clone(fixed).fit(X, y, qid=qid)
    unshifted = clone(fixed).fit(X, utility(X), qid=qid)
    assert_array_equal(with_groups.predict(X), unshifted.predict(X))
    named = clone(fixed).fit(X, y, qid=np.array(list("bacd"))[qid])
    assert_allclose(named.predict(X), with_groups.predict(X), rtol=1e-9)
    ungrouped = clone(fixed).fit(X, y)
    assert concordance(with_groups.predict(X), utility(X)) > 0.93
    assert concordance(ungrouped.predict(X), utility(X)) < 0.9


# -- inspection ----------------------------------------------------------------------------


@pytest.mark.parametrize("trained_on", ["duels", "ratings"])
def test_partial_dependence(duels, items, fixed, trained_on):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model = fixed.fit(*duels) if trained_on == "duels" else fixed.fit(items, utility(items))
    display = PartialDependenceDisplay.from_estimator(
        model, items, [0, (0, 1)], grid_resolution=5, kind=["both", "average"]
    )
    curve = display.pd_results[0]
    for value, average in zip(curve["grid_values"][0], curve["average"][0], strict=True):
        moved = items.copy()
        moved[:, 0] = value
        assert_allclose(average, model.predict(moved).mean(), rtol=1e-10)
    assert curve["individual"].shape == (1, N_ITEMS, 5)
    matplotlib.pyplot.close("all")


def test_permutation_importance(items, fixed):
    rng = np.random.default_rng(3)
    useless = np.column_stack([utility(items), rng.standard_normal(N_ITEMS)])
    model = fixed.set_params(kernel=RBF([1.0, 1e3])).fit(useless, utility(items))
    found = permutation_importance(model, useless, utility(items), n_repeats=10, random_state=0)
    assert found.importances_mean[0] > 0.3
    assert abs(found.importances_mean[1]) < 1e-6
    # Trained on duels, the ratings of items can still score it.
    pairs = rng.permuted(np.tile(np.arange(N_ITEMS), (40, 1)), axis=1)[:, :2]
    y = utility(items)[pairs[:, 0]] > utility(items)[pairs[:, 1]]
    model.fit(useless[pairs], y)
    found = permutation_importance(model, useless, utility(items), n_repeats=10, random_state=0)
    assert found.importances_mean[0] > 0.3 > abs(found.importances_mean[1])


def flat_duels():
    """Duels as rows of both items' features, for tools that insist on two dimensions."""
    to_duels = FunctionTransformer(lambda rows: np.reshape(rows, (-1, 2, 2)))
    return make_pipeline(
        to_duels, PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.1, optimizer=None)
    )


def test_bagging_takes_flat_duels_and_pairs(duels, items):
    X, y = duels
    with pytest.raises(ValueError, match="dim 3"):
        BaggingRegressor(fixed_model("ep")).fit(X, y)
    flat = X.reshape(len(X), -1)
    options = {"bootstrap": False, "max_samples": 1.0, "n_estimators": 2}
    bag = BaggingRegressor(flat_duels(), **options).fit(flat, y)  # of copies of one whole
    alone = fixed_model("ep").fit(X, y)
    assert_allclose(bag.predict(flat), alone.predict(X), atol=1e-9)
    pairs = np.argmin(np.abs(X[:, :, None] - items).sum(axis=3), axis=2)
    by_position = fixed_model("ep").set_params(items=ItemTable(items))
    bag = BaggingRegressor(by_position, **options).fit(pairs, y)
    assert_allclose(bag.predict(pairs), alone.predict(X), atol=1e-9)
    several = BaggingRegressor(flat_duels(), n_estimators=5, random_state=0).fit(flat, y)
    assert 0.0 < np.abs(several.predict(flat) - alone.predict(X)).max() < 2.0
    assert np.mean((several.predict(flat) > 0.0) == y) > 0.8


def test_permutation_importance_of_flat_duels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2, 2))
    y = (X[:, 0, 0] > X[:, 1, 0]).astype(int)  # the second feature says nothing
    flat = X.reshape(len(X), -1)
    model = flat_duels().fit(flat, y)
    found = permutation_importance(model, flat, y, n_repeats=5, random_state=0).importances_mean
    assert found[[0, 2]].min() > 0.2 > 0.1 > np.abs(found[[1, 3]]).max()


def test_calibration_of_a_fitted_model_by_duels_held_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2, 2))
    y = (X[:, 0] - X[:, 1]).sum(axis=1) + rng.standard_normal(600) > 0.0
    # Told that there is no noise, the model is far too sure.
    sure = PairwisePreferenceRegressor(RBF(1.0), noise_variance=1e-4, optimizer=None)
    in_folds = CalibratedClassifierCV(sure, ensemble=False).fit(X[:300], y[:300])
    sure.fit(X[:100], y[:100])
    mended = CalibratedClassifierCV(FrozenEstimator(sure)).fit(X[100:300], y[100:300])
    models = sure, mended, in_folds
    loss = [log_loss(y[300:], model.predict_proba(X[300:])) for model in models]
    assert max(loss[1:]) < loss[0] - 0.05
    assert_array_equal(mended.classes_, [False, True])


def labelled(margin, kind):
    """Parameters of a model that is told of next to no noise, and answers by margins."""
    sign = np.sign(margin).astype(int)
    if kind == "ties":
        return {"tie_threshold": 0.3}, np.where(np.abs(margin) < 0.6, 0, sign)
    return {"grade_thresholds": (0.8,)}, sign * np.where(np.abs(margin) > 1.5, 2, 1)


@pytest.mark.parametrize(
    "estimator", [PairwisePreferenceRegressor, CollaborativePreferenceRegressor]
)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", ["ties", "grades"])
def test_calibration_of_more_than_two_outcomes(kind, method, estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 2, 2))
    options, y = labelled((X[:, 0] - X[:, 1]).sum(axis=1) + rng.standard_normal(800), kind)
    sure = estimator(RBF(1.0), noise_variance=1e-2, optimizer=None, **options)
    sure.fit(X[:150], y[:150])
    mended = CalibratedClassifierCV(FrozenEstimator(sure), method=method).fit(
        X[150:500], y[150:500]
    )
    assert_array_equal(mended.classes_, sure.classes_)
    in_folds = CalibratedClassifierCV(clone(sure), method=method, cv=3).fit(X[:500], y[:500])
    assert_array_equal(in_folds.classes_, sure.classes_)
    proba = mended.predict_proba(X[500:])
    assert_allclose(proba.sum(axis=1), 1.0)
    loss = [log_loss(y[500:], each.predict_proba(X[500:])) for each in (sure, mended, in_folds)]
    assert max(loss[1:]) < loss[0] - 0.1
    with pytest.raises(ValueError, match=r"number the labels from 0: .* or take ensemble=True"):
        CalibratedClassifierCV(clone(sure), ensemble=False).fit(X[:150], y[:150])
    assert sure.decision_function(X[:3]).shape == (3,)  # by hand the margin, as ever


def test_calibration_of_choices_by_temperature():
    pytest.importorskip("sklearn", minversion="1.8")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4, 2))
    y = (X.sum(axis=2) + rng.standard_normal((500, 4))).argmax(axis=1)
    sure = PairwisePreferenceRegressor(RBF(1.0), noise_variance=1e-3, optimizer=None)
    sure.fit(X[:100], y[:100])
    mended = CalibratedClassifierCV(FrozenEstimator(sure), method="temperature")
    mended.fit(X[100:300], y[100:300])
    proba, raw = mended.predict_proba(X[300:]), sure.predict_proba(X[300:])
    assert log_loss(y[300:], proba) < log_loss(y[300:], raw) - 0.02
    # A temperature leaves the order of the items as it is.
    assert_array_equal(proba.argmax(axis=1), raw.argmax(axis=1))


@pytest.mark.parametrize(
    ("labels", "remedy"), [((-1, 0, 1), "isotonic'\\.$"), ((-1, 1), "0 and 1")]
)
def test_temperatures_of_labels_that_scikit_learn_would_misread_are_refused(labels, remedy):
    pytest.importorskip("sklearn", minversion="1.8")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2, 2)), np.array(labels)[np.arange(30) % len(labels)]
    ties = {"tie_threshold": 0.3} if len(labels) > 2 else {}
    model = PairwisePreferenceRegressor(optimizer=None, **ties).fit(X, y)
    with pytest.raises(ValueError, match=f"takes labels 0, 1.*method='sigmoid'.*{remedy}"):
        CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(X, y)


# -- parameters, copies, names -------------------------------------------------------------


def test_nested_parameters(duels):
    X, y = duels
    model = PairwisePreferenceRegressor(
        ConstantKernel(2.0) * RBF(1.0), inference=EP(), optimizer=None
    )
    model.set_params(kernel__k2__length_scale=0.5, inference__tol=1e-3)
    assert model.kernel.k2.length_scale == 0.5 and model.inference.tol == 1e-3
    rough = model.fit(X, y)
    rough_iterations, rough_proba = rough.n_iter_, rough.predict_proba(X)
    fine = model.set_params(inference__tol=1e-10).fit(X, y)
    assert fine.n_iter_ > rough_iterations
    assert 0.0 < np.abs(fine.predict_proba(X) - rough_proba).max() < 1e-2
    assert fine.kernel_.k2.length_scale == 0.5
    with pytest.raises(ValueError, match="Invalid parameter lengthscale"):
        model.set_params(kernel__k2__lengthscale=1.0)


@pytest.mark.parametrize("engine", [Laplace(max_iter=7), EP(damping=0.25, tol=1e-4)])
def test_options_of_engines_clone(engine):
    copy = clone(PairwisePreferenceRegressor(inference=engine))
    assert copy.inference is not engine
    assert copy.inference.get_params() == engine.get_params()


def test_names_stand_for_default_options(duels):
    X, y = duels
    for name, engine in (("laplace", Laplace()), ("ep", EP())):
        by_name = PairwisePreferenceRegressor(inference=name, optimizer=None).fit(X, y)
        by_object = PairwisePreferenceRegressor(inference=engine, optimizer=None).fit(X, y)
        assert_array_equal(by_name.predict_proba(X), by_object.predict_proba(X))


def test_joblib_round_trip(duels, fixed, tmp_path):
    X, y = duels
    fixed.set_params(optimizer="fmin_l_bfgs_b").fit(X, y)
    copy = joblib.load(joblib.dump(fixed, tmp_path / "model", compress=3)[0])
    assert_array_equal(copy.predict_proba(X), fixed.predict_proba(X))
    assert copy.log_marginal_likelihood() == fixed.log_marginal_likelihood()
    assert_array_equal(copy.sample_y(X, 2), fixed.sample_y(X, 2))


def test_clone_does_not_copy_an_item_table(items):
    table = ItemTable(items)
    model = PairwisePreferenceRegressor(items=table, optimizer=None)
    assert clone(model).items is table
    assert clone(make_pipeline(model)).named_steps["pairwisepreferenceregressor"].items is table
    assert model.fit([[0, 1]]).items_ is table
    plain = PairwisePreferenceRegressor(items=items)
    assert clone(plain).items is not items
    assert_array_equal(clone(plain).items, items)


def test_folds_of_positions(items, duels, fixed):
    """Positions split as duel arrays do, and score the same."""
    X, y = duels
    where = {row.tobytes(): i for i, row in enumerate(items)}
    pairs = np.array([[where[side.tobytes()] for side in duel] for duel in X])
    by_position = clone(fixed).set_params(items=ItemTable(items))
    for scoring in (None, "neg_log_loss", "roc_auc"):
        options = {"cv": 3, "scoring": scoring, "error_score": "raise"}
        found = cross_val_score(by_position, pairs, y, **options)
        assert_allclose(found, cross_val_score(fixed, X, y, **options), rtol=1e-9)


def test_feature_names(items, duels, fixed):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(items, columns=["sweet", "sour"])
    fixed.fit(frame, utility(items))
    assert fixed.feature_names_in_.tolist() == ["sweet", "sour"]
    assert_array_equal(fixed.predict(frame), fixed.predict(frame.iloc[::-1])[::-1])
    with pytest.raises(ValueError, match="feature names should match"):
        fixed.predict(frame.rename(columns={"sour": "bitter"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        fixed.predict(frame[["sour", "sweet"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fixed.predict(items)
    with_table = clone(fixed).set_params(items=frame).fit([[0, 1], [2, 1]])
    assert with_table.feature_names_in_.tolist() == ["sweet", "sour"]
    assert_allclose(with_table.predict(frame), with_table.predict(np.arange(N_ITEMS)))
    fixed.fit(*duels)  # arrays have no names
    assert not hasattr(fixed, "feature_names_in_")


def test_duel_probabilities_exist_after_duels_only(items, duels, fixed):
    X, y = duels
    fixed.fit(items, utility(items))
    for name in ("predict_proba", "predict_log_proba", "decision_function"):
        assert not hasattr(fixed, name)
        with pytest.raises(AttributeError, match=name) as caught:
            getattr(fixed, name)
        assert "posterior_.win_probability(a, b)" in str(caught.value.__cause__)
    ratings_proba = fixed.posterior_.win_probability(X[:, 0], X[:, 1])
    assert np.mean((ratings_proba > 0.5) == y) > 0.8
    fixed.fit(X, y)
    assert_allclose(
        fixed.predict_proba(X)[:, 1], fixed.posterior_.win_probability(X[:, 0], X[:, 1])
    )
