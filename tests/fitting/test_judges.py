"""Judges in the estimator: what is learned of them, what is predicted, what is refused."""

import pickle

import numpy as np
import pytest
import sklearn
from checks_support import ROUTES_PIPED_SCORES
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tiers_support import thinned

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.inference import HMC, SVI, Laplace
from skpref.metrics import accuracy_scorer
from skpref.preprocessing import Itemwise

KERNEL, NOISE, N_ITEMS = RBF([0.7, 0.7]), 0.05, 15
# Reliable, at half the reliability, at random, adversarial.
RELIABILITY = np.array([1.0] * 6 + [0.5] * 2 + [0.0] * 3 + [-1.0])
NAMES = np.array([f"judge {k}" for k in range(12)], dtype=object)


class Court:
    """Items, and duels that judges of this reliability answer."""

    def __init__(self, seed, reliability=RELIABILITY, n_each=40, own_order=0.0):
        self.rng, self.reliability = np.random.default_rng(seed), np.asarray(reliability)
        self.own_order = np.broadcast_to(own_order, self.reliability.shape)
        self.items = self.rng.uniform(-1.0, 1.0, (N_ITEMS, 2))
        root = np.linalg.cholesky(KERNEL(self.items) + 1e-9 * np.eye(N_ITEMS))
        self.utility = root @ self.rng.standard_normal(N_ITEMS)
        self.X, self.y, self.judge = self.heard(np.repeat(np.arange(len(self.reliability)), n_each))

    def heard(self, judge, reliability=None):
        """Answers of these judges to duels at random."""
        reliability = self.reliability if reliability is None else reliability
        pairs = np.array([self.rng.choice(N_ITEMS, 2, replace=False) for _ in judge])
        margin = self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]
        seen = reliability[judge] * margin + self.own_order[judge]
        won = self.rng.random(len(judge)) < norm.cdf(seen / np.sqrt(2.0 * NOISE))
        return self.items[pairs], won.astype(int), judge


def log_loss(model, X, y, judges=None):
    proba = model.predict_proba(X, judges=judges)
    return -np.mean(np.log(proba[np.arange(len(y)), y]))


def model_of(**options):
    return PairwisePreferenceRegressor(RBF([1.0, 1.0]), **options)


@pytest.fixture(scope="module")
def court():
    return Court(1)


@pytest.fixture(scope="module")
def fitted(court):
    return model_of().fit(court.X, court.y, judges=NAMES[court.judge])


@pytest.fixture(scope="module")
def equal(court):
    return model_of().fit(court.X, court.y)


# -- what is learned -----------------------------------------------------------------------------


def test_reliability_is_found(fitted, court):
    judges = fitted.judges_
    assert judges.ids.tolist() == NAMES.tolist()
    assert judges.n_answers.tolist() == [40] * 12
    assert_allclose(judges.reliability, RELIABILITY, atol=0.5)
    assert np.mean(judges.probability_random[RELIABILITY == 0.0]) > 0.6
    assert np.all(judges.probability_random[RELIABILITY == 1.0] < 1e-3)
    assert judges.probability_adversarial[-1] > 0.99
    assert np.all(judges.probability_adversarial[:8] < 1e-3)
    assert_allclose(judges.noise_variance, fitted.noise_variance_ / judges.reliability**2)


def test_other_judges_of_their_kind_are_predicted_nearly_as_if_their_reliability_were_known(
    fitted, equal, court
):
    X, y, judge = court.heard(np.repeat(np.arange(12), 100))
    mean, variance = fitted.posterior_.margin(X[:, 0], X[:, 1])
    known = fitted.likelihood_.outcome_proba(
        RELIABILITY[judge] * mean, RELIABILITY[judge] ** 2 * variance
    )
    known = -np.mean(np.log(known[np.arange(len(y)), y]))
    found = log_loss(fitted, X, y, NAMES[judge])
    assert found < known + 0.02
    assert found < log_loss(equal, X, y) - 0.1


@pytest.mark.slow
def test_intervals_hold_most_of_the_truths_and_grow_with_the_level():
    held, widths = [], []
    reliability = np.exp(0.3 * np.random.default_rng(1).standard_normal(20))
    court = Court(1, reliability, n_each=30)
    judges = model_of().fit(court.X, court.y, judges=court.judge).judges_
    for level in (0.5, 0.95):
        interval = judges.reliability_interval(level)
        truth = reliability / np.median(reliability)
        held.append(np.mean((interval[:, 0] <= truth) & (truth <= interval[:, 1])))
        widths.append(interval[:, 1] - interval[:, 0])
    assert 0.3 <= held[0] <= 0.75
    assert held[1] >= 0.85
    assert np.all(widths[1] > widths[0])
    noise = judges.noise_interval(0.95)
    assert (
        np.mean((noise[:, 0] <= NOISE / reliability**2) & (NOISE / reliability**2 <= noise[:, 1]))
        >= 0.85
    )


def test_a_judge_of_the_reference_judge_has_the_common_noise(fitted):
    told = fitted.judges_
    assert_allclose(told.noise_variance * told.reliability**2, fitted.noise_variance_, rtol=1e-12)


def test_the_noise_of_who_may_look_at_nothing_may_be_infinite(fitted):
    interval = fitted.judges_.noise_interval()
    assert np.all(np.isinf(interval[RELIABILITY == 0.0, 1]))
    assert np.all(np.isfinite(interval[RELIABILITY == 1.0]))
    assert interval[-1, 0] < fitted.judges_.noise_variance[-1] < interval[-1, 1] < np.inf
    assert np.all(interval[:, 0] <= interval[:, 1])


def test_judges_of_equal_reliability_are_as_none():
    court = Court(2, np.ones(12))
    found = model_of().fit(court.X, court.y, judges=court.judge)
    plain = model_of().fit(court.X, court.y)
    X, y, judge = court.heard(np.repeat(np.arange(12), 50))
    assert_allclose(log_loss(found, X, y, judge), log_loss(plain, X, y), atol=0.01)
    assert_allclose(found.judges_.reliability, 1.0, atol=0.25)


def test_reliability_that_cannot_vary_is_that_of_the_reference_judge(court):
    alike = JudgePrior(1e-8, variance_bounds="fixed", random=0.0, adversarial=0.0)
    found = model_of(judge_prior=alike).fit(court.X, court.y, judges=court.judge)
    plain = model_of().fit(court.X, court.y)
    assert_allclose(found.judges_.reliability, 1.0, atol=1e-3)
    truth = plain.predict_proba(court.X)
    assert_allclose(found.predict_proba(court.X), truth, atol=1e-3)
    assert_allclose(found.predict_proba(court.X, judges=court.judge), truth, atol=1e-3)


@pytest.mark.parametrize("reliability", [0.0, -1.0])
def test_a_bad_judge_does_no_harm(reliability):
    good = Court(3, np.array([1.0] * 8 + [reliability]))
    rows = good.judge < 8
    X, y, _ = good.heard(np.zeros(400, dtype=int))
    model = PairwisePreferenceRegressor(KERNEL, noise_variance=NOISE, optimizer=None)
    without = log_loss(clone(model).fit(good.X[rows], good.y[rows]), X, y)
    found = log_loss(clone(model).fit(good.X, good.y, judges=good.judge), X, y)
    assert found < without + 0.01
    assert found < log_loss(clone(model).fit(good.X, good.y), X, y)


@pytest.mark.parametrize(
    "engine",
    thinned([Laplace(), SVI(N_ITEMS, evidence="bound"), HMC(draws=40, chains=5)], 3),
    ids=["laplace", "svi", "hmc"],
)
def test_other_engines_find_the_same(engine, fitted, court):
    found = model_of(inference=engine, random_state=0)
    found.fit(court.X, court.y, judges=court.judge)
    assert_allclose(found.judges_.reliability, fitted.judges_.reliability, atol=0.15)
    truth = fitted.predict_proba(court.X, judges=NAMES[court.judge])
    assert_allclose(found.predict_proba(court.X, judges=court.judge), truth, atol=0.12)


def test_without_an_optimizer_reliability_is_found_all_the_same(court):
    model = PairwisePreferenceRegressor(KERNEL, noise_variance=NOISE, optimizer=None)
    judges = model.fit(court.X, court.y, judges=court.judge).judges_
    assert model.noise_variance_ == NOISE
    assert judges.law.variances.tolist() == pytest.approx([0.1], rel=1e-15)
    assert (judges.law.random, judges.law.adversarial) == (0.1, 0.05)
    assert_allclose(judges.reliability, RELIABILITY, atol=0.5)


@pytest.mark.slow
def test_noise_may_be_held(fitted, court):
    held = {"noise_variance": 2.0 * NOISE, "noise_variance_bounds": "fixed"}
    found = model_of(**held).fit(court.X, court.y, judges=court.judge)
    assert found.noise_variance_ == 2.0 * NOISE
    assert found.judges_.law.median == 1.0
    truth = fitted.predict_proba(court.X, judges=NAMES[court.judge])
    assert_allclose(found.predict_proba(court.X, judges=court.judge), truth, atol=0.1)


@pytest.mark.slow
def test_parts_teach_hyperparameters_and_all_answers_reliability(court):
    found = model_of(n_learning_answers=150).fit(court.X, court.y, judges=court.judge)
    assert found.judges_.n_answers.sum() == len(court.y)
    assert found.judges_.reliability[-1] < -0.5


@pytest.mark.slow
def test_own_order_effects_are_found():
    own = np.array([0.8, -0.8, 0.0, 0.0])
    court = Court(4, np.ones(4), n_each=50, own_order=own)
    found = model_of(judge_prior=JudgePrior(order_variance=0.1)).fit(
        court.X, court.y, judges=court.judge
    )
    assert_allclose(found.judges_.order_effect, own, atol=0.5)
    interval = found.judges_.order_effect_interval(0.99)
    assert np.all((interval[:, 0] <= own) & (own <= interval[:, 1]))
    tie = found.items_ is None and np.zeros((2, 2, 2))
    at = found.predict_proba(tie, order=[1, -1], judges=[0, 0])
    assert_allclose(at[0], at[1][::-1], atol=1e-9)
    assert at[0, 1] > 0.7


# -- what is predicted ---------------------------------------------------------------------------


def test_probabilities_are_averages_over_reliability(fitted, court):
    rng, X = np.random.default_rng(5), court.X[[3, 40]]
    mean, variance = fitted.posterior_.margin(X[:, 0], X[:, 1])
    judges = fitted.judges_

    def truth(reliability):
        c = reliability[:, None]
        at = (c * mean).ravel(), (c**2 * variance).ravel()
        return fitted.likelihood_.outcome_proba(*at).reshape(len(c), 2, 2).mean(axis=0)

    for k in (0, 6, 9, 11):
        share = judges.marginals.weights[k] / judges.marginals.weights[k].sum()
        at = rng.choice(len(share), 4000, p=share)
        reliability = judges.marginals.points[k, at]
        found = fitted.predict_proba(X, judges=[NAMES[k]] * 2)
        assert_allclose(found, truth(reliability), atol=0.02)
        exact = np.array([judges.marginals.points[k] @ share])
        assert_allclose(exact, judges.reliability[k], atol=1e-9)
    law = judges.law
    kind = rng.choice(3, 4000, p=law.shares)
    spread = rng.choice(law.variances, 4000, p=law.weights)
    reliability = np.array([1.0, -1.0, 0.0])[kind]
    reliability *= np.exp(np.sqrt(spread) * rng.standard_normal(4000))
    assert_allclose(fitted.predict_proba(X, judges=["new", "new"]), truth(reliability), atol=0.02)


def test_without_a_judge_it_is_one_of_the_reference_judge(fitted, court):
    X = court.X[:4]
    common = fitted.predict_proba(X)
    mean, variance = fitted.posterior_.margin(X[:, 0], X[:, 1])
    assert_allclose(common, fitted.likelihood_.outcome_proba(mean, variance), rtol=1e-12)
    some = fitted.predict_proba(X, judges=[None, NAMES[0], float("nan"), NAMES[-1]])
    assert_allclose(some[[0, 2]], common[[0, 2]], rtol=1e-12)
    assert np.all(np.abs(some[3] - common[3]) > 1e-3)
    logs = fitted.predict_log_proba(X, judges=[None, NAMES[0], float("nan"), NAMES[-1]])
    assert_allclose(np.exp(logs), some, rtol=1e-12)
    assert_allclose(some.sum(axis=1), 1.0, rtol=1e-12)


def test_decisions_and_scores_are_those_of_the_judge(fitted, court):
    adversarial = np.full(len(court.X), NAMES[-1])
    margin = fitted.decision_function(court.X)
    seen = fitted.decision_function(court.X, judges=adversarial)
    assert_allclose(seen, fitted.judges_.reliability[-1] * margin)
    proba = fitted.predict_proba(court.X, judges=adversarial)[:, 1]
    np.testing.assert_array_equal(seen > 0.0, proba > 0.5)
    turned = 1.0 - fitted.score(court.X, court.y, judges=adversarial)
    assert fitted.score(court.X, court.y) == pytest.approx(turned)


@pytest.mark.slow
def test_ties_are_taken_and_predicted():
    court = Court(6, n_each=12)
    y = np.where(np.random.default_rng(0).random(len(court.y)) < 0.2, 0, 2 * court.y - 1)
    model = model_of(tie_threshold=0.1).fit(court.X, y, judges=court.judge)
    found = model.predict_proba(court.X, judges=court.judge)
    assert found.shape == (len(y), 3)
    assert_allclose(found.sum(axis=1), 1.0)
    assert 0.0 <= model.score(court.X, y, judges=court.judge) <= 1.0
    assert model.judges_.reliability[-1] < 0.0


# -- manners -------------------------------------------------------------------------------------


def test_judges_are_routed(court):
    with sklearn.config_context(enable_metadata_routing=True):
        model = model_of(optimizer=None, noise_variance=NOISE)
        model.set_fit_request(judges=True).set_score_request(judges=True)
        scores = cross_validate(model, court.X, court.y, params={"judges": court.judge}, cv=2)
        assert np.mean(scores["test_score"]) > 0.6
        piped = make_pipeline(Itemwise(StandardScaler()), model)
        search = GridSearchCV(piped, {"pairwisepreferenceregressor__noise_variance": [NOISE]}, cv=2)
        told = pytest.raises(ValueError, match=r"fit\(X, y, judges=judges\), and score likewise")
        if not ROUTES_PIPED_SCORES:  # said by the first fits, before any work
            with told:
                search.fit(court.X, court.y, judges=court.judge)
            search.set_params(scoring=accuracy_scorer)
        search.fit(court.X, court.y, judges=court.judge)
        best = search.best_estimator_[-1]
        assert best.judges_.n_answers.sum() == len(court.y)
        with pytest.raises(ValueError, match=r"fit\(X, y, judges=judges\), and score likewise"):
            search.score(court.X, court.y)
        assert search.score(court.X, court.y, judges=court.judge) > 0.6


def test_it_pickles_clones_and_is_seen_in_a_frame(fitted, court):
    again = pickle.loads(pickle.dumps(fitted))
    X, judges = court.X[:5], NAMES[court.judge[:5]]
    np.testing.assert_array_equal(
        again.predict_proba(X, judges=judges), fitted.predict_proba(X, judges=judges)
    )
    assert clone(fitted).get_params()["judge_prior"] is None
    text = repr(fitted.judges_)
    assert text.startswith("Judges: 12")
    assert text.index("judge 0 ") < text.index("judge 11")
    pd = pytest.importorskip("pandas")
    frame = fitted.judges_.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.index[-1] == "judge 11"
    assert np.all(np.diff(frame["reliability"]) <= 0.0)


def test_the_evidence_is_that_of_the_fit(fitted):
    value = fitted.log_marginal_likelihood()
    assert value == pytest.approx(fitted.log_marginal_likelihood_value_, abs=1e-8)


def test_ids_may_be_of_any_hashable_kind(court):
    mixed = [("a", 1), 2, "three", frozenset({4})]
    judges = [mixed[k % 4] for k in court.judge]
    model = PairwisePreferenceRegressor(KERNEL, optimizer=None).fit(court.X, court.y, judges=judges)
    assert model.judges_.ids.tolist() == mixed
    assert model.predict_proba(court.X[:1], judges=[("a", 1)]).shape == (1, 2)


def test_without_judges_there_are_none(equal, court):
    assert equal.judges_ is None
    X, who = court.X[:3], [1, 2, 3]
    for ask in (equal.predict_proba, equal.predict_log_proba, equal.decision_function):
        with pytest.warns(UserWarning, match="judges= does nothing here.*Pass judges= to fit"):
            np.testing.assert_array_equal(ask(X, judges=who), ask(X))
    with pytest.warns(UserWarning, match="judges= does nothing here"):
        equal.score(X, court.y[:3], judges=who)


def test_a_search_without_judges_is_scored_where_judges_are_routed(court):
    with sklearn.config_context(enable_metadata_routing=True), pytest.warns(match="does nothing"):
        model = model_of(optimizer=None).set_fit_request(judges=False)
        search = GridSearchCV(model, {"noise_variance": [10.0, 0.01]}, cv=3)
        search.fit(court.X, court.y, judges=court.judge)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_what_cannot_be_is_refused(fitted, court):
    X, y = court.X, court.y
    model = model_of(optimizer=None)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples.*judges"):
        model.fit(X, y, judges=[1, 2])
    with pytest.raises(ValueError, match=r"id of a judge is missing.*row 0"):
        model.fit(X, y, judges=[None, *court.judge[1:]])
    with pytest.raises(TypeError, match="judges must be hashable"):
        model.fit(X, y, judges=[[1]] * len(X))
    with pytest.raises(ValueError, match=r"duels.*from_ratings"):
        model.fit(court.items, np.arange(N_ITEMS), judges=np.arange(N_ITEMS))
    sets = court.items[np.array([[0, 1, 2], [3, 4, 5]])]
    with pytest.raises(ValueError, match=r"sets of up to 3.*from_rankings"):
        model.fit(sets, [0, 1], judges=[0, 1])
    with pytest.raises(ValueError, match="sets of up to 3"):
        fitted.predict_proba(sets, judges=[0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.predict_proba(X, judges=[1])
    with pytest.raises(ValueError, match=r"judge_prior=JudgePrior\(order_variance=0.01\)"):
        fitted.judges_.order_effect_interval()
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        fitted.judges_.reliability_interval(95)
    streamed = model_of(inference=SVI(5), optimizer=None).fit(X, y, judges=court.judge)
    with pytest.raises(ValueError, match=r"partial_fit.*Fit all"):
        streamed.partial_fit(X, y)
    for stream in (model_of(inference=SVI(5), optimizer=None), streamed.fit(X, y)):
        with pytest.raises(ValueError, match=r"takes no judges=.*fit\(X, y, judges=\.\.\.\)"):
            stream.partial_fit(X, y, judges=court.judge)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variance": 0.0}, "variance of judge_prior must lie in"),
        ({"variance_bounds": (1.0, 0.1)}, "variance_bounds of judge_prior"),
        (
            {"variance": 2.0},
            r"variance of judge_prior must lie within variance_bounds, 0.0001 to 1",
        ),
        ({"variance": 1e-5}, "or hold it by variance_bounds='fixed'"),
        ({"random": 0.9, "adversarial": 0.2}, "together below 1; got 0.9 and 0.2"),
        ({"random": -0.1}, "random of judge_prior must lie in"),
        ({"adversarial": 1.0}, "adversarial of judge_prior must lie in"),
        ({"order_variance": -1.0}, "order_variance of judge_prior must lie in"),
        ({"order_variance": 11.0}, "order_variance of judge_prior must lie within"),
        ({"order_variance_bounds": "free"}, "order_variance_bounds of judge_prior"),
    ],
)
def test_unsound_expectations_of_judges_are_refused(options, message, court):
    with pytest.raises(ValueError, match=message):
        model_of(judge_prior=JudgePrior(**options)).fit(court.X, court.y)


def test_a_judge_prior_is_an_object():
    with pytest.raises(
        TypeError, match=r"judge_prior must be None or a skpref.JudgePrior, got 0.1"
    ):
        model_of(judge_prior=0.1).fit([[[0.0], [1.0]]])


@pytest.mark.slow
def test_a_variance_that_is_held_may_lie_anywhere(court):
    prior, some = JudgePrior(2.0, order_variance=20.0), slice(None, None, 8)
    answers = court.X[some], court.y[some]
    model_of(judge_prior=prior, optimizer=None).fit(*answers, judges=court.judge[some])
    prior.set_params(variance_bounds="fixed", order_variance_bounds="fixed")
    assert model_of(judge_prior=prior).fit(*answers).judges_ is None


@pytest.mark.slow
def test_a_search_tries_expectations_of_judges(court):
    """The parameters of the prior are nested, are cloned, and the default is that of None."""
    model, some = model_of(judge_prior=JudgePrior(), optimizer=None), slice(None, None, 4)
    X, y, judge = court.X[some], court.y[some], court.judge[some]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"judge_prior__random": [0.1, 0.4]}, cv=2)
        search.fit(X, y, judges=judge)
    assert model.judge_prior.random == 0.1
    best = search.best_estimator_
    assert best.judge_prior is not model.judge_prior
    assert best.judges_.law.random == search.best_params_["judge_prior__random"]
    one, other = (
        model_of(judge_prior=prior, optimizer=None).fit(X, y, judges=judge)
        for prior in (None, JudgePrior())
    )
    np.testing.assert_array_equal(one.judges_.reliability, other.judges_.reliability)
