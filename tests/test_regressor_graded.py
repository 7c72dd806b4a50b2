"""Graded answers in the estimators: exact integrals, other engines, the model of duels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import truncnorm
from scipy_support import normal_cdf
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss as reference_log_loss
from sklearn.model_selection import cross_val_score

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.active import bald, query
from skpref.duels import from_columns
from skpref.inference import EP, HMC, SVI, Gibbs, Laplace
from skpref.inspection import win_rates
from skpref.metrics import (
    accuracy_scorer,
    answer_accuracy,
    answer_brier,
    answer_log_loss,
    brier_scorer,
    log_loss_scorer,
    roc_auc_scorer,
)

CUTS = np.array([0.2, 0.6, 1.3])


def graded(n, cuts=CUTS, seed=0, noise=0.05, effect=0.0, tied=True):
    """Duels about a smooth utility, graded as the model says."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 2, 1))
    if n > 500:  # of few items, which is quick
        x = np.round(x, 1)
        x[:, 1] += np.where(x[:, 0] == x[:, 1], 0.1, 0.0)
    f = np.sin(3.0 * x[..., 0])
    margin = f[:, 0] - f[:, 1] + effect + np.sqrt(2.0 * noise) * rng.standard_normal(n)
    if not tied:
        cuts = np.r_[0.0, cuts[1:]]
    return x, (np.sign(margin) * np.searchsorted(cuts, np.abs(margin))).astype(int)


def model(inference="ep", **more):
    given = {"tie_threshold": 0.2, "grade_thresholds": (0.6, 1.3), "noise_variance": 0.05}
    given |= {"inference": inference, "optimizer": None, "random_state": 0, **more}
    return PairwisePreferenceRegressor(RBF(0.7), **given)


def stay(obj_func, initial_theta, bounds):
    """Search for hyperparameters that ends where it starts."""
    return initial_theta, obj_func(initial_theta)[0]


def box_of(y):
    """Ends of the noisy margins of labels."""
    signed = np.array([-np.inf, -1.3, -0.6, -0.2, 0.2, 0.6, 1.3, np.inf])
    return signed[y + 3], signed[y + 4]


def exact_evidence(X, y, noise=0.05):
    """The probability of these answers: a normal integral over a box."""
    items = X.reshape(-1, 1)
    turn = np.kron(np.eye(len(y)), [1.0, -1.0])
    cov = turn @ RBF(0.7)(items) @ turn.T + 2.0 * noise * np.eye(len(y))
    low, high = box_of(y)
    precision = {"maxpts": 200_000, "abseps": 1e-9, "releps": 1e-9}
    return np.log(normal_cdf(high, cov=cov, lower_limit=low, **precision))


@pytest.mark.parametrize(
    ("n", "noise", "tolerance"), [(1, 0.05, 1e-8), (4, 0.05, 0.04), (2, 0.5, 4e-3), (4, 0.5, 4e-3)]
)
def test_evidence_is_the_normal_integral_over_the_box(n, noise, tolerance):
    X, y = graded(60, seed=3, noise=noise)
    for at in range(0, 40, 8):
        some = X[at : at + n], y[at : at + n]
        found = model(noise_variance=noise).fit(*some).log_marginal_likelihood_value_
        assert found == pytest.approx(exact_evidence(*some, noise), abs=tolerance)


def test_the_posterior_after_one_answer_has_the_exact_moments():
    """The noisy margin is truncated to its box; others follow by regression."""
    X, y = graded(60, seed=5)
    turn = np.kron(np.eye(2), [1.0, -1.0])
    for at in range(8):
        mean, std = model().fit(X[[at]], y[[at]]).predict(X[[at + 20]], return_std=True)
        cov = turn @ RBF(0.7)(X[[at, at + 20]].reshape(-1, 1)) @ turn.T
        scale = np.sqrt(cov[0, 0] + 0.1)
        seen = truncnorm(*(end[0] / scale for end in box_of(y[[at]])), scale=scale)
        slope = cov[0, 1] / scale**2
        assert mean[0] == pytest.approx(slope * seen.mean(), abs=1e-7)
        rest = cov[1, 1] - slope**2 * (scale**2 - seen.var())
        assert std[0] ** 2 == pytest.approx(rest, abs=1e-7)


def test_sampled_probabilities_are_ratios_of_integrals():
    X, y = graded(60, seed=5)
    for at in range(3):
        fitted = model(HMC(draws=4000)).fit(X[[at]], y[[at]])
        both = X[[at, at + 20]]
        joint = [exact_evidence(both, np.array([y[at], label])) for label in fitted.classes_]
        truth = np.exp(joint - exact_evidence(both[:1], y[[at]]))
        assert truth.sum() == pytest.approx(1.0, abs=1e-7)
        assert_allclose(fitted.predict_proba(X[[at + 20]])[0], truth, atol=0.01)


@pytest.mark.parametrize("engine", [EP(tol=1e-10), Laplace(tol=1e-10), SVI(6, tol=1e-9)])
def test_evidence_moves_with_the_thresholds_as_differences_say(engine):
    X, y = graded(25, seed=1)
    found = model(engine, optimizer=stay, n_learning_answers=None).fit(X, y)
    theta = found._model.theta
    assert found._model.names[-2:] == ["grade_increment_1", "grade_increment_2"]
    gradient = found.log_marginal_likelihood(theta, eval_gradient=True)[1]
    truth = central_gradient(found.log_marginal_likelihood, theta, 1e-2)
    assert_allclose(gradient, truth, atol=2e-4 * np.abs(truth).max())


def test_simulated_thresholds_are_found():
    X, y = graded(2000)
    found = PairwisePreferenceRegressor(RBF(0.7), tie_threshold=0.1, grade_thresholds=(0.3, 0.4))
    found.fit(X, y)
    assert found.classes_.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    # Only the ratios to the noise are identified.
    sigma = np.sqrt(found.noise_variance_ / 0.05)
    cuts = np.array([found.tie_threshold_, *found.grade_thresholds_])
    assert_allclose(cuts / sigma, CUTS, rtol=0.1)
    assert found.likelihood_.grade_thresholds == found.grade_thresholds_


@pytest.mark.parametrize("tie", [None, 0.2])
@pytest.mark.parametrize("inference", ["ep", "laplace", "svi"])
def test_a_grade_that_never_comes_is_the_model_of_duels(tie, inference):
    X, y = graded(80, tied=tie is not None)
    y = np.sign(y)
    plain = model(inference, tie_threshold=tie, grade_thresholds=None).fit(X, y)
    far = model(inference, tie_threshold=tie, grade_thresholds=(50.0,)).fit(X, y)
    n = 3 if tie else 2
    assert plain.classes_.tolist() == [-1, 0, 1][:: 1 if tie else 2]
    assert_allclose(far.predict(X), plain.predict(X), atol=1e-7)
    inner = far.predict_proba(X)[:, 1:-1]
    assert inner.shape[1] == n
    assert_allclose(inner, plain.predict_proba(X), atol=1e-7)
    assert far.score(X, y) == pytest.approx(plain.score(X, y))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [HMC(draws=2000), Gibbs(draws=1000)])
def test_samplers_agree_with_expectation_propagation(sampler):
    X, y = graded(30, seed=2)
    chain, ep = model(sampler).fit(X, y), model().fit(X, y)
    assert_allclose(chain.predict(X), ep.predict(X), atol=0.03)
    assert_allclose(chain.predict_proba(X), ep.predict_proba(X), atol=0.02)


def test_turning_duels_round_turns_labels_and_columns():
    X, y = graded(60, effect=0.3)
    more = {"order_effect": 0.3}
    one = model(**more).fit(X, y)
    other = model(**more).fit(X[:, ::-1], -y, order=-np.ones(60, dtype=int))
    assert_allclose(one.predict(X), other.predict(X), atol=1e-8)
    turned = other.predict_proba(X[:, ::-1], order=-np.ones(60, dtype=int))[:, ::-1]
    assert_allclose(one.predict_proba(X), turned, atol=1e-8)
    assert_allclose(np.exp(one.predict_log_proba(X)), one.predict_proba(X), rtol=1e-10)
    wins = one.posterior_.win_probability(X[:, 0], X[:, 1], order=1)
    assert_allclose(wins, one.predict_proba(X)[:, 4:].sum(axis=1), rtol=1e-12)


def test_weights_are_repetitions():
    X, y = graded(40)
    weight = np.arange(40) % 4
    kept = np.repeat(np.arange(40), weight)
    weighed, repeated = model().fit(X, y, sample_weight=weight), model().fit(X[kept], y[kept])
    assert_allclose(weighed.predict(X), repeated.predict(X), atol=1e-6)
    assert weighed.comparisons_.rows.kind.tolist() == repeated.comparisons_.rows.kind.tolist()


def test_streams_of_pieces_are_one_fit():
    X, y = graded(200)
    engine = SVI(inducing_points=np.linspace(-1.0, 1.0, 9)[:, None], tol=1e-8)
    whole, stream = model(engine).fit(X, y), model(engine)
    for rows in np.split(np.arange(200), 4):
        stream.partial_fit(X[rows], y[rows])
    assert_allclose(stream.predict(X), whole.predict(X), atol=0.05)
    with pytest.raises(ValueError, match=r"learned with 3 grades.*grade_thresholds"):
        stream.set_params(grade_thresholds=(0.6,)).partial_fit(X[:4], np.clip(y[:4], -2, 2))


@pytest.mark.slow
def test_judges_and_users_grade():
    X, y = graded(240)
    who = np.arange(240) % 4
    wrong = np.where(who == 3, -y, y)
    judged = model().fit(X, wrong, judges=who)
    assert_allclose(judged.predict_proba(X, judges=who).sum(axis=1), 1.0)
    assert judged.score(X, wrong, judges=who) > model().fit(X, wrong).score(X, wrong) + 0.2
    shared = {"tie_threshold": 0.2, "grade_thresholds": (0.6, 1.3), "noise_variance": 0.05}
    for given in ({"method": "cp"}, {"method": "su"}, {"inference": "vb", "n_latent": 2}):
        several = CollaborativePreferenceRegressor(
            RBF(0.7), optimizer=None, n_inducing=12, **shared, **given
        )
        found = several.fit(X, y, users=who).predict_proba(X, users=who)
        assert found.shape == (240, 7)
        assert_allclose(found.sum(axis=1), 1.0)
        assert answer_log_loss(y, found) < 1.6


def test_scores_are_those_of_scikit_learn():
    X, y = graded(150)
    fitted = model().fit(X, y)
    proba, labels = fitted.predict_proba(X), fitted.classes_
    assert answer_log_loss(y, proba) == pytest.approx(reference_log_loss(y, proba, labels=labels))
    called = labels[proba.argmax(axis=1)]
    assert answer_accuracy(y, proba) == pytest.approx(np.mean(called == y))
    assert fitted.score(X, y) == pytest.approx(np.mean(called == y))
    happened = y[:, None] == labels
    assert answer_brier(y, proba) == pytest.approx(np.mean(((proba - happened) ** 2).sum(axis=1)))
    for scorer in (accuracy_scorer, log_loss_scorer, brier_scorer):
        assert np.all(np.isfinite(cross_val_score(model(), X, y, scoring=scorer, cv=3)))
    with pytest.raises(ValueError, match="of more, such as ties, and for choices take"):
        roc_auc_scorer(fitted, X, y)
    with pytest.raises(ValueError, match=r"labels must be in \[-2, -1, 1, 2\]"):
        answer_log_loss([3], [[0.1, 0.2, 0.3, 0.4]])
    with pytest.raises(ValueError, match="the grade of each"):
        answer_log_loss(None, [[0.1, 0.2, 0.3, 0.4]])


def test_questions_and_tables_take_grades():
    X, y = graded(60)
    fitted = model().fit(X, y)
    proba = fitted.predict_proba(X[:3])
    margin = fitted.predict(X[:3], return_std=True)
    draws = margin[0] + margin[1] * np.random.default_rng(0).standard_normal((20_000, 3))
    at = fitted.likelihood_.outcome_proba(draws, np.zeros((20_000, 3)))
    truth = np.mean(np.sum(at * np.log(at), axis=-1), axis=0) - np.sum(
        proba * np.log(proba), axis=1
    )
    assert_allclose(bald(fitted.posterior_, X[:3]), truth, atol=2e-3)
    assert len(set(query(fitted, X[:20], n=3).tolist())) == 3
    rates = win_rates(fitted, X[:4, 0], order=0)
    assert_allclose(rates.win + rates.win.T + rates.tie, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "y", "match"),
    [
        ({}, [2, -2, 1, -1], None),
        ({}, [3, -3, 4, 1], r"\{-3, -2, -1, 0, 1, 2, 3\} with 2 grade_thresholds"),
        ({}, [True, False, True, True], "with 2 grade_thresholds"),
        ({}, None, "the grade of each duel"),
        ({}, [0, 1, 2, 3], r"0 and nothing below.*If 0 .*is the lowest grade of a scale"),
        ({"grade_thresholds": tuple(range(1, 100))}, [1, -1, 2, 3], "98 at most.*got 99"),
        ({}, [[1, 2]] * 4, "the grade of each duel"),
        ({"tie_threshold": None}, [0, 1, -1, 2], "for ties, 0, give tie_threshold too"),
        ({"grade_thresholds": None, "tie_threshold": None}, [2, -1, 1, 1], "give grade_thresholds"),
        ({"grade_thresholds": (0.1, 0.2)}, [1, 1, 2, -1], "above tie_threshold"),
        ({"inference": SVI(local="ekf")}, [1, 1, 2, -1], "got .*grades.*local='expected'"),
    ],
)
def test_labels_that_are_no_grades_are_refused(given, y, match):
    X, _ = graded(4)
    if match is None:
        assert model(**given).fit(X, y).classes_.tolist() == [-3, -2, -1, 0, 1, 2, 3]
        return
    with pytest.raises(ValueError, match=match):
        model(**given).fit(X, y)


WORDS = {"much better": 2, "better": 1, "the same": 0, "worse": -1, "much worse": -2}


def test_columns_hold_grades_in_words_or_numbers():
    said = ["Much  better", "worse", "the_same", None, "better"]
    frame = pd.DataFrame({"a": list("vwxyz"), "b": list("wxyzv"), "said": said})
    with pytest.warns(UserWarning, match="1 of 5 duels are left out"):
        X, y = from_columns(frame, [], [], "said", ids=("a", "b"), grades=WORDS)
    assert y.tolist() == [2, -1, 0, 1] and X.first["id"].tolist() == list("vwxz")
    numbers = from_columns(frame, [], [], [2, -1, 0, -2, 1], ids=("a", "b"), grades=2)[1]
    assert numbers.tolist() == [2, -1, 0, -2, 1]
    X, y, order = from_columns(
        frame, [], [], [2, 1, 0, 2, 1], ids=("a", "b"), grades=2, order=[1, 1, 1, 0, -1]
    )
    assert y.tolist() == [-2, 1, 0, -2, 1] and order.tolist() == [-1, 1, 1, 0, -1]
    for outcome, grades, match in (
        (said, {"better": 1}, "'Much  better', 'worse'.*not among those of grades="),
        ([3, 1, 1, 1, 1], 2, "such as 3 are not among those"),
        (said, {**WORDS, "worse": "x"}, r"integer label for each word, -99 to 99"),
        (said, {**WORDS, "The_Same": 1}, "are then alike. Give each once"),
    ):
        with pytest.raises(ValueError, match=match):
            from_columns(frame, [], [], outcome, ids=("a", "b"), grades=grades)
