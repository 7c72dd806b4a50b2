"""Judges in hard cases: many answers each, as many adversarial as reliable, few inducing points."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.fitting._reliability import Cavities
from skpref.inference import SVI
from skpref.inference import _workers as _shards
from skpref.likelihoods import JudgeReliability

KERNEL, NOISE, N_ITEMS = RBF([0.7, 0.7]), 0.05, 15


def heard(seed, reliability, n_each=30):
    """Items, their utility, and duels that judges of this reliability answer."""
    rng, reliability = np.random.default_rng(seed), np.asarray(reliability, dtype=float)
    items = rng.uniform(-1.0, 1.0, (N_ITEMS, 2))
    root = np.linalg.cholesky(KERNEL(items) + 1e-9 * np.eye(N_ITEMS))
    utility = root @ rng.standard_normal(N_ITEMS)
    judge = np.repeat(np.arange(len(reliability)), n_each)
    pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in judge])
    margin = utility[pairs[:, 0]] - utility[pairs[:, 1]]
    won = rng.random(len(judge)) < norm.cdf(reliability[judge] * margin / np.sqrt(2.0 * NOISE))
    return items, utility, items[pairs], won.astype(int), judge


def held(**options):
    """A model whose hyperparameters are the truth."""
    options = {"optimizer": None, "noise_variance": NOISE, "random_state": 0, **options}
    return PairwisePreferenceRegressor(**{"kernel": KERNEL, **options})


@pytest.fixture(scope="module")
def few():
    return heard(1, [1, 1, 1, 1, 0, -1])


@pytest.mark.parametrize("options", [{}, {"variance": 1e-8}])
def test_adversarial_answers_may_leave_a_law_no_chance(few, options):
    _, _, X, y, judge = few
    model = held(judge_prior=JudgePrior(random=0.0, adversarial=0.0, **options))
    reliability = model.fit(
        X, y, judges=judge, sample_weight=np.full(len(y), 100.0)
    ).judges_.reliability
    assert np.all(reliability > 0.0)
    assert reliability[5] == pytest.approx(1.0, abs=0.01) if options else reliability[5] < 0.1


@pytest.fixture(scope="module")
def of_few(few):
    return held(inference="ep").fit(*few[2:4], judges=few[4]).judges_


def test_who_answers_at_random_is_not_adversarial(of_few):
    judges = of_few
    assert judges.probability_random[4] + judges.probability_adversarial[4] < 1.0


def test_few_inducing_points_do_not_make_random_judges_reliable(few, of_few):
    items, utility, X, y, judge = few
    model = held(inference=SVI(5)).fit(X, y, judges=judge)
    assert_allclose(model.judges_.reliability, of_few.reliability, atol=0.3)
    assert np.corrcoef(model.predict(items), utility)[0, 1] > 0.9


@pytest.fixture(scope="module")
def apart():
    """Duels of which each has items of its own, with ties, an order effect and weights."""
    rng, n = np.random.default_rng(5), 80
    X = rng.uniform(-1.0, 1.0, (n, 2, 2))
    reliability, judge = np.array([1.0, 1.0, 0.0, -1.0]), rng.integers(4, size=n)
    utility = np.sin(3.0 * X[..., 0]) + X[..., 1]
    order = rng.integers(-1, 2, size=n)
    margin = reliability[judge] * (utility[:, 0] - utility[:, 1] + 0.3 * order)
    margin += np.sqrt(2.0 * NOISE) * rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.2, 0, np.sign(margin)).astype(int)
    told = {"judges": judge, "order": order, "sample_weight": rng.choice([1.0, 2.0], size=n)}
    return X, y, told


def reliable(engine, apart):
    X, y, told = apart
    model = held(inference=engine, tie_threshold=0.2, order_effect=0.3)
    return model.fit(X, y, **told)


@pytest.fixture(scope="module")
def exact(apart):
    return reliable("ep", apart)


@pytest.fixture(scope="module")
def by_points(apart):
    """Return the model of so many inducing points, fitted once."""
    return cache(lambda points: reliable(SVI(points), apart))


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(40, marks=pytest.mark.slow, id="few"),
        pytest.param(80, id="as many as answers"),
        pytest.param(160, id="all"),
    ],
)
def test_duels_that_share_no_item_may_be_judged(points, apart, exact, by_points):
    found = by_points(points)
    assert_allclose(found.judges_.reliability, exact.judges_.reliability, atol=0.03)
    assert_allclose(found.predict_proba(apart[0]), exact.predict_proba(apart[0]), atol=0.03)


def test_what_an_engine_hands_to_its_next_run_is_not_taken_for_factors(by_points):
    """As many points as answers: its arrays have the length that factors of the answers have."""
    fitted = by_points(80)
    likelihood = JudgeReliability(fitted.likelihood_, fitted.judges_.reliability)
    model = replace(fitted._model, likelihood=likelihood)
    found = model.evaluate(fitted.comparisons_)
    assert len(found.problem.rows) == len(found.approximation.state["shift"]) == 80
    bare = found._replace(approximation=found.approximation._replace(state={}))
    for one, other in zip(
        Cavities.from_evaluation(found)[:2], Cavities.from_evaluation(bare)[:2], strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.slow
def test_judges_are_the_same_however_answers_are_shared_out(apart, monkeypatch):
    monkeypatch.setattr(_shards, "_ROWS", 40)
    whole = reliable(SVI(40), apart).judges_
    for options in ({"n_jobs": 1}, {"batch_size": 30}):
        assert_allclose(
            reliable(SVI(40, **options), apart).judges_.reliability, whole.reliability, atol=1e-3
        )


@pytest.mark.slow
def test_judges_of_a_kernel_whose_scale_is_found(apart):
    X, y, told = apart
    found = reliable(SVI(40, scale_prior=(50.0, 5.0)), apart)
    scale = found.diagnostics_.output_scale
    assert scale < 0.3
    fixed = held(inference=SVI(40), tie_threshold=0.2, order_effect=0.3, kernel=found.kernel_)
    fixed.fit(X, y, **told)
    assert_allclose(found.judges_.reliability, fixed.judges_.reliability, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reliability", [[-1.0] * 6 + [1.0] * 6, [-1.0] * 10 + [1.0] * 12 + [0.0] * 5]
)
def test_as_many_adversarial_as_reliable_are_told_apart(reliability):
    _, _, X, y, judge = heard(2, reliability)
    model = PairwisePreferenceRegressor(RBF([1.0, 1.0])).fit(X, y, judges=judge)
    likely = model.judges_.readings()[0].reliability  # all of them turned round is a reading, too
    found = likely * np.sign(likely[-6])
    assert_allclose(np.abs(found), np.abs(reliability), atol=0.6)
    assert 0.01 < model.noise_variance_ < 1.0
    assert abs(np.corrcoef(found, reliability)[0, 1]) > 0.9
    # what is expected of the shares weighs as much as ten judges
    share = (np.sum(np.array(reliability) < 0.0) + 10 * 0.05) / (len(reliability) + 10)
    assert model.judges_.law.adversarial == pytest.approx(share, abs=0.01)


@pytest.mark.slow
def test_a_bound_that_holds_the_noise_back_is_said(few):
    _, _, X, y, judge = few
    with pytest.warns(ConvergenceWarning, match="noise_variance at its lower bound"):
        PairwisePreferenceRegressor(
            KERNEL, noise_variance=0.5, noise_variance_bounds=(0.5, 10.0)
        ).fit(X, y, judges=judge)


@pytest.mark.slow
def test_a_noise_that_is_given_is_known(few):
    _, _, X, y, judge = few
    judges = held().fit(X, y, judges=judge).judges_
    reliable = judges.reliability_interval(0.8)[:4]
    assert_allclose(judges.noise_interval(0.8)[:4], (NOISE / reliable**2)[:, ::-1], rtol=1e-2)
    adversarial = judges.reliability_interval(0.8)[5]
    assert_allclose(judges.noise_interval(0.8)[5], NOISE / adversarial**2, rtol=0.05)
    learned = PairwisePreferenceRegressor(KERNEL).fit(X, y, judges=judge).judges_
    wide = np.log(learned.noise_interval(0.8)[:4]) @ [-1.0, 1.0]
    assert np.all(wide > 1.1 * np.log(learned.reliability_interval(0.8)[:4] ** 2) @ [-1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("engine", [SVI(8, evidence="bound"), "laplace"], ids=["bound", "laplace"])
def test_hyperparameters_may_be_learned_by_another_evidence(engine, few):
    items, utility, X, y, judge = few
    model = PairwisePreferenceRegressor(RBF([1.0, 1.0]), inference=engine, random_state=0)
    model.fit(X, y, judges=judge)
    low, high = model.judges_.reliability_interval(0.9).T
    truth = np.array([1, 1, 1, 1, 0, -1])
    assert np.all((low <= truth) & (truth <= high))
    assert np.all(low[:4] > 0.4) and abs(model.judges_.reliability[4]) < 0.1 and high[5] < -0.4
    assert np.corrcoef(model.predict(items), utility)[0, 1] > 0.9


def test_what_cannot_be_sampled_is_said_before_any_work(few):
    _, _, X, y, judge = few
    model = PairwisePreferenceRegressor(KERNEL, inference="hmc", optimizer=_never)
    with pytest.raises(ValueError, match="whole numbers"):
        model.fit(X, y, judges=judge, sample_weight=np.full(len(y), 0.5))


def _never(*_):
    raise AssertionError("learned")


def test_the_linearised_update_refuses_judges(few):
    _, _, X, y, judge = few
    with pytest.raises(ValueError, match=r"got judges with SVI.*expected"):
        held(inference=SVI(5, local="ekf")).fit(X, y, judges=judge)


def test_ids_that_are_tuples_are_rows_of_the_frame(few):
    pytest.importorskip("pandas")
    _, _, X, y, judge = few
    ids = [("court", int(k)) for k in judge]
    frame = held().fit(X, y, judges=ids).judges_.to_frame()
    assert frame.index.name == "judge"
    assert sorted(frame.index) == sorted(set(ids))


@pytest.mark.parametrize("ties", [0.2, None])
def test_probabilities_are_none_beyond_one(ties):
    # Of answers that count 10⁵ times log-likelihoods are 10⁷, with rounding in proportion.
    rng = np.random.default_rng(0)
    items = 3.0 * rng.random((8, 1))
    first = rng.integers(8, size=120)
    second = (first + rng.integers(1, 8, size=120)) % 8
    margin = items[first, 0] - items[second, 0] + 0.3 * rng.normal(size=120)
    y, judges = np.sign(margin), rng.integers(4, size=120)
    if ties is not None:
        y[np.abs(margin) < ties] = 0.0
    X, weight = np.stack([items[first], items[second]], axis=1), np.full(120, 1e5)
    model = PairwisePreferenceRegressor(
        RBF(3.0), inference="ep", optimizer=None, noise_variance=0.01, tie_threshold=ties
    ).fit(X, y, judges=judges, sample_weight=weight)
    P = model.predict_proba(X, judges=judges)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0.0, atol=1e-15)
    assert P.max() <= 1.0
    assert model.predict_log_proba(X, judges=judges).max() <= 0.0
