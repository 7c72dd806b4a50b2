"""Scorers where metadata are passed under names of the user's own."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.metrics import log_loss_scorer, with_metadata
from skpref.preprocessing import Itemwise

rng = np.random.default_rng(3)
N = 60
ITEMS = np.linspace(-1.5, 1.5, 8)[:, None]
X = ITEMS[[rng.choice(8, 2, replace=False) for _ in range(N)]]
WHO = np.array(["ann", "bob", "cid"])[np.arange(N) % 3]
LEAD = np.where(rng.random(N) < 0.5, 1, -1)
MARGIN = np.where(WHO == "cid", -1.5, 1.5) * (X[:, 0, 0] - X[:, 1, 0]) + LEAD
Y = (MARGIN + 0.5 * rng.standard_normal(N) > 0.0).astype(int)
# Reliability of one Gaussian, not of three, is quick, and scorers do not see which.
PRIOR = JudgePrior(1.0, variance_bounds="fixed", random=0.0, adversarial=0.0)
MODEL = PairwisePreferenceRegressor(
    optimizer=None, noise_variance=0.3, order_effect=1.0, judge_prior=PRIOR
)
ALIASES = {"judges": "who", "order": "lead"}
with sklearn.config_context(enable_metadata_routing=True):
    ALIASED = clone(MODEL).set_fit_request(**ALIASES)
PLAIN, TOLD = {"judges": WHO, "order": LEAD}, {"who": WHO, "lead": LEAD}
OPTIONS = {"cv": [(np.arange(40), np.arange(40, N))], "error_score": "raise"}


@pytest.fixture(autouse=True)
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("scoring", ["neg_log_loss", log_loss_scorer])
def test_metadata_may_be_passed_under_other_names(scoring):
    expected = cross_val_score(MODEL, X, Y, params=PLAIN, scoring=log_loss_scorer, **OPTIONS)
    scorer = with_metadata(scoring, ALIASES)
    found = cross_val_score(ALIASED, X, Y, params=TOLD, scoring=scorer, **OPTIONS)
    assert_allclose(found, expected)
    search = GridSearchCV(ALIASED, {}, scoring=scorer, **OPTIONS).fit(X, Y, **TOLD)
    assert search.best_score_ == pytest.approx(expected[0])


def test_the_models_own_score_asks_for_other_names_too():
    expected = cross_val_score(MODEL, X, Y, params=PLAIN, **OPTIONS)
    model = clone(ALIASED).set_score_request(**ALIASES)
    assert_allclose(cross_val_score(model, X, Y, params=TOLD, **OPTIONS), expected)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", log_loss_scorer])
@pytest.mark.parametrize("piped", [False, True])
def test_scores_that_know_other_names_than_fit_are_refused(scoring, piped):
    model = make_pipeline(Itemwise(StandardScaler()), ALIASED) if piped else ALIASED
    with pytest.raises(ValueError, match="The model was fitted with") as caught:
        cross_val_score(model, X, Y, params=TOLD, scoring=scoring, **OPTIONS)
    requests = 'order="lead", judges="who"'
    for remedy in (
        'params={"lead": lead, "who": who}',
        f"set_score_request({requests})",
        """with_metadata("neg_log_loss", {'order': 'lead', 'judges': 'who'})""",
    ):
        assert remedy in str(caught.value)


def test_one_of_two_may_have_another_name():
    model = clone(MODEL).set_fit_request(judges="who")
    params = {"who": WHO, "order": LEAD}
    for scoring in ("neg_log_loss", log_loss_scorer):
        with pytest.raises(ValueError, match=r"""_loss", \{'judges': 'who'\}\)"""):
            cross_val_score(model, X, Y, params=params, scoring=scoring, **OPTIONS)
    scorer = with_metadata("neg_log_loss", {"judges": "who"})
    found = cross_val_score(model, X, Y, params=params, scoring=scorer, **OPTIONS)
    expected = cross_val_score(MODEL, X, Y, params=PLAIN, scoring=log_loss_scorer, **OPTIONS)
    assert_allclose(found, expected)
