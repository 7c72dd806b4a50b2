"""Times reach every score: by routing, or a score is refused."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from checks_support import ROUTES_PIPED_SCORES
from numpy.testing import assert_allclose
from sklearn.inspection import permutation_importance as of_scikit_learn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.inspection import permutation_importance
from skpref.metrics import (
    accuracy_scorer,
    answer_accuracy,
    answer_brier,
    answer_log_loss,
    brier_scorer,
    log_loss_scorer,
    roc_auc_scorer,
    with_metadata,
)
from skpref.model_selection import ItemKFold
from skpref.preprocessing import Itemwise

N = 45
RNG = np.random.default_rng(0)
NAMES = np.array(["ann", "bob", "cid", "dan"])
PAIRS = np.array([[i, (i + k) % 4] for i, k in RNG.integers([0, 1], [4, 4], size=(N, 2))])
TIME = RNG.uniform(0.0, 10.0, N)
Y = (np.sin(PAIRS[:, 0] + TIME) > np.sin(PAIRS[:, 1] + TIME)).astype(int)
X = NAMES[PAIRS]
FEATURES = RNG.standard_normal((4, 2))
CV = KFold(3)


def model(drift="wiener"):
    return PairwisePreferenceRegressor(drift=drift, optimizer=None, noise_variance=0.1)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(score, time=TIME):
    found = []
    for train, test in CV.split(X):
        fitted = model().fit(X[train], Y[train], time=time[train])
        found.append(score(Y[test], fitted.predict_proba(X[test], time=time[test])))
    return found


SCORERS = {
    "accuracy": (accuracy_scorer, answer_accuracy),
    "log_loss": (log_loss_scorer, lambda y, proba: -answer_log_loss(y, proba)),
    "brier": (brier_scorer, lambda y, proba: -answer_brier(y, proba)),
    "neg_log_loss": (with_metadata("neg_log_loss"), lambda y, p: -answer_log_loss(y, p)),
    "own": (None, answer_accuracy),
}


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.usefixtures("routed")
def test_scores_are_those_by_hand(name):
    scorer, expected = SCORERS[name]
    found = cross_val_score(model(), X, Y, cv=CV, scoring=scorer, params={"time": TIME})
    assert_allclose(found, by_hand(expected), atol=1e-12)


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
@pytest.mark.usefixtures("routed")
def test_dates_are_split_with_the_answers(zone):
    days = pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(TIME, unit="D"))
    days = days.dt.tz_localize(zone)
    params = {"time": days}
    found = cross_val_score(model(), X, Y, cv=CV, scoring=log_loss_scorer, params=params)
    assert_allclose(found, by_hand(SCORERS["log_loss"][1]), atol=1e-6)


@pytest.mark.usefixtures("routed")
def test_searches_pipelines_and_splits_of_items():
    grid = {"drift": ["wiener", "matern12"]}
    search = GridSearchCV(model(), grid, cv=CV, scoring=log_loss_scorer, refit=True)
    search.fit(X, Y, time=TIME)
    found = search.cv_results_["mean_test_score"][0]
    assert_allclose(found, np.mean(by_hand(SCORERS["log_loss"][1])), atol=1e-12)
    whole = search.best_estimator_.score(X, Y, time=TIME)
    assert search.best_estimator_.posterior_.reader.time is not None
    assert 0.5 < whole <= 1.0
    pipeline = make_pipeline(Itemwise(StandardScaler()), model())
    told = {"cv": CV, "params": {"time": TIME}}
    if not ROUTES_PIPED_SCORES:  # said by the first fits, before any work
        with pytest.raises(ValueError, match="fitted with time=, but a score"):
            cross_val_score(pipeline, FEATURES[PAIRS], Y, **told)
        told["scoring"] = accuracy_scorer
    found = cross_val_score(pipeline, FEATURES[PAIRS], Y, **told)
    assert np.all((found >= 0.0) & (found <= 1.0))
    cv = ItemKFold(2, mixed="test")
    params = {"params": {"time": TIME}, "scoring": accuracy_scorer}
    assert len(cross_val_score(model(), X, Y, cv=cv, **params)) == 2


@pytest.mark.usefixtures("routed")
def test_an_alias_of_the_time():
    own = model().set_fit_request(time="when").set_score_request(time="when")
    found = cross_val_score(own, X, Y, cv=CV, params={"when": TIME})
    assert_allclose(found, by_hand(answer_accuracy), atol=1e-12)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc", "neg_brier_score"])
@pytest.mark.usefixtures("routed")
def test_scorers_that_drop_the_time_are_refused(scoring):
    params = {"params": {"time": TIME}, "error_score": "raise"}
    with pytest.raises(ValueError, match=r"fitted with time=.*the last time of training.*time"):
        cross_val_score(model(), X, Y, cv=CV, scoring=scoring, **params)
    with pytest.raises(ValueError, match="passes none on to predictions"):
        cross_val_predict(model(), X, Y, cv=CV, params={"time": TIME}, method="predict_proba")


@pytest.mark.usefixtures("routed")
def test_ratings_are_predicted_at_their_times():
    items, ratings = FEATURES[PAIRS[:, 0]], np.sin(PAIRS[:, 0] + TIME)
    params = {"params": {"time": TIME}, "error_score": "raise"}
    with pytest.raises(ValueError, match="fitted with time="):
        cross_val_score(model(), items, ratings, cv=CV, scoring="r2", **params)
    found = cross_val_score(model(), items, ratings, cv=CV, **params)
    train, test = next(CV.split(items))
    fitted = model().fit(items[train], ratings[train], time=TIME[train])
    assert found[0] == fitted.score(items[test], ratings[test], time=TIME[test])
    assert found[0] != fitted.score(items[test], ratings[test])


def test_by_hand_the_last_time_is_taken_without_a_word():
    fitted = model().fit(X, Y, time=TIME)
    now = fitted.score(X, Y)
    assert now == fitted.score(X, Y, time=TIME.max())
    assert now < fitted.score(X, Y, time=TIME)
    assert log_loss_scorer(fitted, X, Y, time=TIME) > log_loss_scorer(fitted, X, Y)
    assert roc_auc_scorer(fitted, X, Y, time=TIME) > roc_auc_scorer(fitted, X, Y)


def test_importances_take_the_time():
    duels = FEATURES[PAIRS]
    fitted = model().fit(duels, Y, time=TIME)
    found = permutation_importance(fitted, duels, Y, time=TIME, scoring="neg_log_loss")
    assert found.importances.shape == (2, 5)
    with pytest.raises(ValueError, match="fitted with time="):
        permutation_importance(fitted, duels, Y)
    items, ratings = FEATURES[PAIRS[:, 0]], np.sin(PAIRS[:, 0] + TIME)
    rated = model().fit(items, ratings, time=TIME)
    with pytest.raises(ValueError, match=r"fitted with time=.*skpref\.inspection"):
        of_scikit_learn(rated, items, ratings, scoring="r2")
