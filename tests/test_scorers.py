"""Scorers tell the model what answers carry (judges, order, users); none is dropped in silence."""

import numpy as np
import pytest
import sklearn
from checks_support import ROUTES_PIPED_SCORES
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import brier_score_loss, get_scorer, log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import CollaborativePreferenceRegressor, JudgePrior, PairwisePreferenceRegressor
from skpref.metrics import (
    accuracy_scorer,
    brier_scorer,
    log_loss_scorer,
    roc_auc_scorer,
    with_metadata,
)
from skpref.preprocessing import Itemwise

rng = np.random.default_rng(3)
N = 80
ITEMS = np.linspace(-1.5, 1.5, 8)[:, None]
X = ITEMS[[rng.choice(8, 2, replace=False) for _ in range(N)]]
MARGIN = 1.5 * (X[:, 0, 0] - X[:, 1, 0])
WHO = np.arange(N) % 4
ORDER = np.where(rng.random(N) < 0.5, 1, -1)
NAMES = np.array(["ann", "bob", "cid", "dan"])[WHO]
FLIPPED = np.where(WHO == 3, -1.0, 1.0)
SPLIT = [(np.arange(0, 60), np.arange(60, N)), (np.arange(20, N), np.arange(0, 20))]


def answers(margin):
    return (margin + 0.5 * rng.standard_normal(N) > 0.0).astype(int)


def single(**parameters):
    return PairwisePreferenceRegressor(optimizer=None, noise_variance=0.3, **parameters)


# Reliability of one Gaussian, not of three: a seventh of the time, and scorers do not see which.
JUDGED = {"judge_prior": JudgePrior(1.0, variance_bounds="fixed", random=0.0, adversarial=0.0)}
CASES = {
    "judges": (single(**JUDGED), answers(FLIPPED * MARGIN), {"judges": NAMES}),
    "order": (single(order_effect=1.0), answers(MARGIN + 1.0 * ORDER), {"order": ORDER}),
    "both": (
        single(order_effect=1.0, **JUDGED),
        answers(FLIPPED * MARGIN + 1.0 * ORDER),
        {"judges": NAMES, "order": ORDER},
    ),
    "users": (
        CollaborativePreferenceRegressor(optimizer=None, noise_variance=0.3),
        answers(FLIPPED * MARGIN),
        {"users": NAMES},
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def at(metadata, rows):
    return {name: values[rows] for name, values in metadata.items()}


def piped(model):
    return make_pipeline(Itemwise(StandardScaler()), model)


def made():
    return make_scorer(brier_score_loss, response_method="predict_proba", greater_is_better=False)


SCORERS = {
    "log loss": (with_metadata("neg_log_loss"), lambda y, p: -log_loss(y, p)),
    "Brier": (with_metadata("neg_brier_score"), lambda y, p: -brier_score_loss(y, p[:, 1])),
    "AUC": (with_metadata("roc_auc"), None),
    "made": (with_metadata(made()), lambda y, p: -brier_score_loss(y, p[:, 1])),
    "ours": (log_loss_scorer, lambda y, p: -log_loss(y, p)),
    "our Brier": (brier_scorer, lambda y, p: -brier_score_loss(y, p[:, 1])),
    "our AUC": (roc_auc_scorer, None),
    "our accuracy": (accuracy_scorer, lambda y, p: np.mean((p[:, 1] > 0.5) == y)),
    "ours wrapped": (with_metadata(log_loss_scorer), lambda y, p: -log_loss(y, p)),
}


# -- what they are told ----------------------------------------------------------------------------


@pytest.mark.parametrize("through", [clone, piped])
def test_scorers_are_told_what_each_answer_carries(case, through, routed):
    model, y, metadata = case
    found = cross_validate(
        through(model),
        X,
        y,
        cv=SPLIT[:1],
        params=metadata,
        scoring={name: scorer for name, (scorer, _) in SCORERS.items()},
        return_estimator=True,
        error_score="raise",
    )
    for i, (train, test) in enumerate(SPLIT[:1]):
        by_hand = through(model).fit(X[train], y[train], **at(metadata, train))
        proba = by_hand.predict_proba(X[test], **at(metadata, test))
        margin = by_hand.decision_function(X[test], **at(metadata, test))
        for name, (_, value) in SCORERS.items():
            expected = roc_auc_score(y[test], margin) if value is None else value(y[test], proba)
            assert found[f"test_{name}"][i] == pytest.approx(expected, rel=1e-9), name
        # What was dropped before was worth something.
        plain = by_hand.predict_proba(X[test])
        assert log_loss(y[test], proba) < log_loss(y[test], plain) - 0.05


@pytest.mark.parametrize("through", [clone, piped])
def test_the_default_score_is_told_too(case, through, routed):
    model, y, metadata = case
    if metadata.keys() == {"judges"}:  # that one is contrary is told by three Gaussians
        model = clone(model).set_params(judge_prior=JudgePrior())
    options = {"cv": SPLIT[:1], "params": metadata, "error_score": "raise"}
    if through is piped and not ROUTES_PIPED_SCORES:
        with pytest.raises(ValueError, match="The model was fitted with"):
            cross_val_score(through(model), X, y, **options)
        return
    found = cross_val_score(through(model), X, y, **options)
    train, test = SPLIT[0]
    by_hand = clone(model).fit(X[train], y[train], **at(metadata, train))
    proba = by_hand.predict_proba(X[test], **at(metadata, test))
    assert found[0] == pytest.approx(np.mean((proba[:, 1] > 0.5) == y[test]), abs=0.06)
    assert found[0] > by_hand.score(X[test], y[test])


def searched(model):
    grid = {"noise_variance": [0.3]}
    return GridSearchCV(model, grid, scoring=log_loss_scorer, cv=2, error_score="raise")


NESTED = {
    "search": searched,
    "search of a search": lambda model: GridSearchCV(
        searched(model), {"estimator__optimizer": [None]}, scoring=log_loss_scorer, cv=SPLIT[:1]
    ),
    "pipeline that ends in a search": lambda model: piped(searched(model)),
    "search of a pipeline": lambda model: GridSearchCV(
        make_pipeline(Itemwise(), model), {"itemwise": [Itemwise(StandardScaler())]}, cv=SPLIT[:1],
        scoring=log_loss_scorer,
    ),
}  # fmt: skip


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("name", ["both", "users"])
def test_scorers_reach_the_model_inside_a_search(name, nested, routed):
    model, y, metadata = CASES[name]
    train, test = np.arange(N), np.arange(0, N, 2)
    found = cross_validate(
        NESTED[nested](model),
        X,
        y,
        cv=[(train, test)],
        params=metadata,
        scoring={name: scorer for name, (scorer, _) in SCORERS.items()},
        error_score="raise",
    )
    by_hand = (piped(model) if "pipeline" in nested else clone(model)).fit(X, y, **metadata)
    proba = by_hand.predict_proba(X[test], **at(metadata, test))
    margin = by_hand.decision_function(X[test], **at(metadata, test))
    for name, (_, value) in SCORERS.items():
        expected = roc_auc_score(y[test], margin) if value is None else value(y[test], proba)
        assert found[f"test_{name}"][0] == pytest.approx(expected, rel=1e-9), name


def test_a_scorer_reaches_the_model_inside_a_search_by_hand():
    model, y, metadata = CASES["order"]
    fitted = clone(model).fit(X, y, **metadata)
    with sklearn.config_context(enable_metadata_routing=True):
        search = searched(model).fit(X, y, **metadata)
    expected = -log_loss(y, fitted.predict_proba(X, **metadata))
    for each in (search, FrozenEstimator(search), FrozenEstimator(fitted)):
        assert log_loss_scorer(each, X, y, **metadata) == pytest.approx(expected)
        wrapped = with_metadata("neg_log_loss")
        assert wrapped(each, X, y, **metadata) == pytest.approx(expected)


def test_predictions_that_take_no_metadata_are_refused_by_name():
    y = CASES["order"][1]
    calibrated = CalibratedClassifierCV(FrozenEstimator(single().fit(X, y))).fit(X, y)
    with pytest.raises(ValueError, match=r"predict_proba of a Calib.*\['judges'\].*without them"):
        log_loss_scorer(calibrated, X, y, judges=NAMES)
    assert np.isfinite(log_loss_scorer(calibrated, X, y))


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
@pytest.mark.parametrize("scoring", [log_loss_scorer, with_metadata("neg_log_loss")])
def test_searches_choose_by_what_is_told(search, scoring, routed):
    model, y, metadata = CASES["order"]
    grid = {"noise_variance": [0.3, 5.0]}
    options = {"n_iter": 2, "random_state": 0} if search is RandomizedSearchCV else {}
    done = search(model, grid, scoring=scoring, cv=SPLIT, error_score="raise", **options)
    done.fit(X, y, **metadata)
    scores = []
    for train, test in SPLIT:
        by_hand = clone(done.best_estimator_).fit(X[train], y[train], **at(metadata, train))
        proba = by_hand.predict_proba(X[test], **at(metadata, test))
        scores.append(-log_loss(y[test], proba))
    assert done.best_score_ == pytest.approx(np.mean(scores))
    whole = done.best_estimator_.predict_proba(X, **metadata)
    assert done.score(X, y, **metadata) == pytest.approx(-log_loss(y, whole))


def test_weights_are_asked_for_unless_declined(routed):
    model, y, metadata = CASES["order"]
    model = clone(model).set_fit_request(sample_weight=True)
    weight = np.linspace(0.1, 3.0, N)
    declined = get_scorer("neg_log_loss").set_score_request(sample_weight=False)
    scoring = {
        "ours": log_loss_scorer,
        "theirs": with_metadata("neg_log_loss"),
        "declined": with_metadata(declined),
    }
    options = {"params": {**metadata, "sample_weight": weight}, "return_estimator": True}
    found = cross_validate(model, X, y, cv=SPLIT[:1], scoring=scoring, **options)
    test = SPLIT[0][1]
    proba = found["estimator"][0].predict_proba(X[test], **at(metadata, test))
    weighted = -log_loss(y[test], proba, sample_weight=weight[test])
    assert found["test_ours"][0] == pytest.approx(weighted)
    assert found["test_theirs"][0] == pytest.approx(weighted)
    assert found["test_declined"][0] == pytest.approx(-log_loss(y[test], proba))


def test_weights_reach_several_scorers_without_routing():
    model, y, _ = CASES["order"]
    weight = np.linspace(0.1, 3.0, N)
    scoring = {"ours": log_loss_scorer, "theirs": with_metadata("neg_log_loss")}
    search = GridSearchCV(model, {}, scoring=scoring, refit="ours", cv=SPLIT[:1])
    search.fit(X, y, sample_weight=weight)
    results = search.cv_results_
    assert_allclose(results["mean_test_ours"], results["mean_test_theirs"], rtol=1e-12)


class Tempered(BaseEstimator):
    """One whose predictions take metadata of its own."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, temperature):
        p = norm.cdf((X[:, 0] - X[:, 1]).sum(axis=1) / temperature)
        return np.column_stack([1.0 - p, p])


def test_any_metadata_of_predictions_and_of_the_scorer_itself(routed):
    heat, y = np.linspace(0.5, 4.0, N), CASES["order"][1]

    def late(y, proba, *, rounds):
        # Of a classifier scikit-learn hands on the second of two columns alone.
        won = proba if proba.ndim == 1 else proba[:, 1]
        return np.mean((won * rounds)[y == 1])

    scorer = make_scorer(late, response_method="predict_proba").set_score_request(rounds=True)
    found = cross_val_score(
        Tempered(),
        X,
        y,
        cv=SPLIT[:1],
        params={"temperature": heat, "rounds": WHO},
        scoring=with_metadata(scorer, ["temperature"]),
        error_score="raise",
    )
    test = SPLIT[0][1]
    proba = norm.cdf((X[:, 0] - X[:, 1])[:, 0] / heat)[test]
    assert found[0] == pytest.approx(np.mean((proba * WHO[test])[y[test] == 1]))


# -- what is refused -------------------------------------------------------------------------------

THEIRS = {
    "log loss": "neg_log_loss",
    "Brier": "neg_brier_score",
    "AUC": "roc_auc",
    "made": made(),
}
OURS = {"ours": log_loss_scorer, "our AUC": roc_auc_scorer, "told": with_metadata("neg_log_loss")}


def refused(model, y, metadata, scoring):
    """Whether each of some scorers is refused with its remedy, by fits and by itself."""
    fitted = clone(model).fit(X, y, **metadata)
    for name, scorer in scoring.items():
        with pytest.raises(ValueError, match=r"fits failed(?s:.*)The model was fitted") as caught:
            cross_val_score(model, X, y, cv=SPLIT[:1], params=metadata, scoring=scorer)
        assert 'with_metadata("neg_log_loss")' in str(caught.value)
        if name in THEIRS:
            with pytest.raises(ValueError, match="The model was fitted with"):
                get_scorer(scorer)(fitted, X, y)


def test_every_score_is_refused_where_routing_is_off(case):
    model, y, metadata = case
    refused(model, y, metadata, {**THEIRS, **OURS})
    step = f"{type(model).__name__.lower()}__"
    named = {step + name: values for name, values in metadata.items()}
    with pytest.raises(ValueError, match=r"The model was fitted with .*enable_metadata_routing"):
        cross_val_score(piped(model), X, y, cv=SPLIT[:1], params=named, error_score="raise")


@pytest.mark.parametrize("through", [clone, piped])
def test_scorers_that_pass_nothing_on_are_refused(case, through, routed):
    model, y, metadata = case
    refused(through(model), y, metadata, THEIRS)


@pytest.mark.parametrize("name", ["both", "users"])
def test_other_tools_that_compare_are_refused(name, routed):
    model, y, metadata = CASES[name]
    with pytest.raises(ValueError, match="fit and predict fold by fold"):
        cross_val_predict(model, X, y, params=metadata, cv=2, method="predict_proba")
    if "users" in metadata:
        with pytest.raises(ValueError, match="fit and predict fold by fold"):
            cross_val_predict(model, X, y, params=metadata, cv=2)
    with pytest.raises(ValueError, match="The model was fitted with"):
        learning_curve(
            model,
            X,
            y,
            params=metadata,
            cv=SPLIT[:1],
            train_sizes=[50],
            scoring="neg_log_loss",
            error_score="raise",
        )
    flat = make_pipeline(Flat(), model).fit(X[:, :, 0], y, **metadata)
    for scoring in (None, "neg_log_loss", log_loss_scorer):
        with pytest.raises(ValueError, match=r"skpref\.inspection\.permutation_importance"):
            permutation_importance(flat, X[:, :, 0], y, scoring=scoring, n_repeats=1)
    search = GridSearchCV(model, {}, scoring=log_loss_scorer, cv=SPLIT[:1]).fit(X, y, **metadata)
    with pytest.raises(ValueError, match="The model was fitted with"):
        search.score(X, y)


class Flat(BaseEstimator):
    """Duels of one feature from two columns."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)[:, :, None]

    def __sklearn_is_fitted__(self):
        return True


def test_groups_of_ratings_are_not_dropped():
    """Items of four groups, whose levels swamp the order within each."""
    items, qid = X[:, 0], WHO
    ratings = items[:, 0] + 100.0 * qid
    options = {"cv": SPLIT[:1], "params": {"qid": qid}, "error_score": "raise"}
    with pytest.raises(ValueError, match="fitted with qid="):
        cross_val_score(single(), items, ratings, **options)
    with sklearn.config_context(enable_metadata_routing=True):
        assert cross_val_score(single(), items, ratings, **options)[0] > 0.95


# -- what stays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["both", "users"])
def test_what_is_called_by_hand_is_the_reference_judge(name):
    model, y, metadata = CASES[name]
    fitted = clone(model).fit(X, y, **metadata)
    n = len(X)
    nobody = {"judges": [None] * n, "order": np.ones(n, dtype=int), "users": [None] * n}
    nobody = {name: nobody[name] for name in metadata}
    plain = fitted.predict_proba(X)
    assert_allclose(plain, fitted.predict_proba(X, **nobody), rtol=1e-9)
    assert_allclose(np.log(plain), fitted.predict_log_proba(X), rtol=1e-9, atol=1e-12)
    assert_allclose(fitted.decision_function(X), fitted.decision_function(X, **nobody), rtol=1e-9)
    assert fitted.score(X, y) == fitted.score(X, y, **nobody)
    assert_allclose(fitted.sample_y(X, 4000).mean(axis=1), fitted.predict(X), atol=0.1)
    assert log_loss_scorer(fitted, X, y) == pytest.approx(-log_loss(y, plain))
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            model,
            X,
            y,
            cv=SPLIT[:1],
            params=metadata,
            scoring=lambda model, X, y: log_loss_scorer(model, X, y),
            return_estimator=True,
            error_score="raise",
        )
        test = SPLIT[0][1]
        common = found["estimator"][0].predict_proba(X[test])
        assert found["test_score"][0] == pytest.approx(-log_loss(y[test], common))
        search = GridSearchCV(piped(model), {}, scoring=log_loss_scorer, cv=SPLIT[:1])
        search.fit(X, y, **metadata)
        common = search.predict_proba(X)
        assert_allclose(search.best_estimator_.predict_proba(X), common)
        assert search.score(X, y, **nobody) == pytest.approx(-log_loss(y, common))


@pytest.mark.parametrize("name", ["both", "users"])
def test_what_a_model_declines_is_not_missed(name, routed):
    model, y, metadata = CASES[name]
    declined = dict.fromkeys(metadata, False)
    model = clone(model).set_predict_proba_request(**declined).set_score_request(**declined)
    options = {"params": metadata, "cv": SPLIT[:1], "error_score": "raise"}
    found = cross_validate(model, X, y, scoring="neg_log_loss", return_estimator=True, **options)
    test, fitted = SPLIT[0][1], found["estimator"][0]
    common = fitted.predict_proba(X[test])
    assert found["test_score"][0] == pytest.approx(-log_loss(y[test], common))
    right = cross_val_score(model, X, y, **options)[0]
    assert right == pytest.approx(fitted.score(X[test], y[test]))
    with pytest.raises(ValueError, match="The model was fitted with"):
        cross_val_score(model, X, y, scoring="roc_auc", **options)


def test_a_fit_without_them_is_scored_without(case):
    model, y, metadata = case
    fitted = clone(model).fit(X, y, **metadata).fit(X, y)
    scorer = get_scorer("neg_log_loss")
    assert scorer(fitted, X, y) == pytest.approx(-log_loss(y, fitted.predict_proba(X)))


def test_order_without_an_effect_may_be_dropped():
    model, y, metadata = single(), *CASES["order"][1:]
    fitted = model.fit(X, y, **metadata)
    found = get_scorer("neg_log_loss")(fitted, X, y)
    assert found == pytest.approx(-log_loss(y, fitted.predict_proba(X, **metadata)))


def test_own_order_effects_of_judges_need_the_order():
    _, y, metadata = CASES["both"]
    fitted = single(judge_prior=JudgePrior(order_variance=0.1)).fit(X, y, **metadata)
    with pytest.raises(ValueError, match="fitted with order="):
        with_metadata("neg_log_loss")(fitted, X, y, judges=NAMES)


def test_a_later_piece_of_a_stream_may_tell_the_order():
    model, y, metadata = CASES["order"]
    model = clone(model).set_params(inference="svi")
    model.partial_fit(X[:40], y[:40])
    get_scorer("neg_log_loss")(model, X, y)
    model.partial_fit(X[40:], y[40:], **at(metadata, np.arange(40, N)))
    with pytest.raises(ValueError, match="fitted with order="):
        get_scorer("neg_log_loss")(model, X, y)


@pytest.mark.parametrize("through", [clone, piped])
def test_scorers_of_utilities_are_refused_with_the_remedy(case, through, routed):
    """predict gives utilities, which are neither classes nor those of a judge."""
    model, y, metadata = case
    wrapped = {"scoring": with_metadata("accuracy"), "params": metadata}
    told = "users" in metadata  # predict takes them, and gives utilities all the same
    match = "mix of binary and continuous" if told else r"calls predict.*accuracy_scorer"
    with pytest.raises(ValueError, match=match):
        cross_val_score(through(model), X, y, cv=SPLIT[:1], error_score="raise", **wrapped)


@pytest.mark.parametrize("scoring", [None, 3])
def test_what_is_no_scorer_is_refused(scoring):
    with pytest.raises(TypeError, match="give a name such as 'neg_log_loss'"):
        with_metadata(scoring)


def test_other_arguments_that_are_wrong():
    with pytest.raises(ValueError, match="not a valid scoring value"):
        with_metadata("log_loss")
    with pytest.raises(TypeError, match=r"such as \['judges'\]"):
        with_metadata("neg_log_loss", "judges")
    assert repr(with_metadata(log_loss_scorer)) == "with_metadata(log_loss_scorer)"
