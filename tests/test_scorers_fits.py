"""A search whose scores drop what answers came with says so in its first fits."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import CollaborativePreferenceRegressor, JudgePrior, PairwisePreferenceRegressor
from skpref.metrics import log_loss_scorer, with_metadata
from skpref.preprocessing import Itemwise

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 2, 2))
Y = (X[:, 0, 0] + 0.3 * rng.standard_normal(60) > X[:, 1, 0]).astype(int)
WHO = rng.choice(["ann", "bob", "cid"], 60)
WHEN = np.arange(60.0)
# Reliability of one Gaussian, not of three, is quick, and scorers do not see which.
PRIOR = JudgePrior(variance_bounds="fixed", random=0.0, adversarial=0.0)
MODEL = PairwisePreferenceRegressor(optimizer=None, judge_prior=PRIOR)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize(
    "scoring", ["neg_log_loss", "roc_auc", ["neg_log_loss", "neg_brier_score"]], ids=str
)
def test_a_search_that_would_end_in_nan_ends_in_an_error(scoring, routing):
    search = GridSearchCV(MODEL, {"noise_variance": [0.1, 1.0]}, scoring=scoring, cv=2, refit=False)
    error = pytest.raises(ValueError, match=r"All the 4 fits failed(?s:.*)fitted with judges=")
    with sklearn.config_context(enable_metadata_routing=routing), error:
        search.fit(X, Y, judges=WHO)


@pytest.mark.parametrize("scoring", [None, log_loss_scorer, with_metadata("neg_log_loss")])
def test_scores_that_would_hear_of_judges_need_routing(scoring):
    options = {"scoring": scoring, "cv": 2, "params": {"judges": WHO}}
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        cross_val_score(MODEL, X, Y, **options)
    with sklearn.config_context(enable_metadata_routing=True):
        assert np.isfinite(cross_val_score(MODEL, X, Y, **options)).all()


def test_every_part_of_several_scores_is_looked_at():
    options = {"cv": 2, "params": {"judges": WHO}}
    scoring = {"ours": log_loss_scorer, "own": lambda m, X, y: log_loss_scorer(m, X, y)}
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(MODEL, X, Y, scoring=scoring, **options)
        assert np.isfinite(found["test_ours"]).all() and np.isfinite(found["test_own"]).all()
        with pytest.raises(ValueError, match="would count as those of the reference judge"):
            cross_validate(MODEL, X, Y, scoring={**scoring, "theirs": "neg_log_loss"}, **options)


def test_who_asks_for_scores_without_judges_gets_them():
    options = {"cv": 2, "params": {"judges": WHO}}
    own = cross_val_score(MODEL, X, Y, scoring=lambda m, X, y: log_loss_scorer(m, X, y), **options)
    with sklearn.config_context(enable_metadata_routing=True):
        deaf = clone(MODEL).set_predict_proba_request(judges=False)
        theirs = cross_val_score(deaf, X, Y, scoring="neg_log_loss", **options)
    np.testing.assert_allclose(own, theirs)


def test_behind_a_pipeline_and_an_alias():
    pipeline = make_pipeline(Itemwise(StandardScaler()), MODEL)
    with pytest.raises(ValueError, match="fitted with judges="):
        cross_val_score(pipeline, X, Y, cv=2, params={"pairwisepreferenceregressor__judges": WHO})
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(MODEL).set_fit_request(judges="who")
        options = {"cv": 2, "params": {"who": WHO}}
        with pytest.raises(ValueError, match=r'set_score_request\(judges="who"\)'):
            cross_val_score(model, X, Y, scoring=log_loss_scorer, **options)
        scoring = with_metadata("neg_log_loss", {"judges": "who"})
        piped = make_pipeline(Itemwise(StandardScaler()), model)
        assert np.isfinite(cross_val_score(model, X, Y, scoring=scoring, **options)).all()
        assert np.isfinite(cross_val_score(piped, X, Y, scoring=scoring, **options)).all()


def test_users_and_times_too():
    users = CollaborativePreferenceRegressor(optimizer=None)
    with pytest.raises(ValueError, match="fitted with users="):
        cross_val_score(users, X, Y, cv=2, scoring="neg_log_loss", params={"users": WHO})
    utilities = make_scorer(lambda y, utility: 0.0)  # of predict, which takes users
    with pytest.raises(ValueError, match="All the 2 fits failed"):
        cross_val_score(users, X, Y, cv=2, scoring=utilities, params={"users": WHO})
    with pytest.raises(ValueError, match="fitted with time="):
        cross_val_score(MODEL, X, Y, cv=2, scoring="neg_log_loss", params={"time": WHEN})


def test_calibration_with_judges_names_a_way_that_works():
    model = clone(MODEL).fit(X, Y, judges=WHO)
    with pytest.raises(
        ValueError, match=r"CalibratedClassifierCV hands none on.*decision_function"
    ):
        CalibratedClassifierCV(FrozenEstimator(model)).fit(X, Y)
    margin = model.decision_function(X, judges=WHO)[:, None]
    calibrated = LogisticRegression().fit(margin, Y)
    assert (np.diff(calibrated.predict_proba(np.sort(margin, axis=0))[:, 1]) >= 0.0).all()
