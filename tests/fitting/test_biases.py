"""Biases of judges: slopes on controls and advantages of the first, beside reliability."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.data import Reader
from skpref.fitting import judged_comparisons
from skpref.fitting._biases import judged_rows
from skpref.fitting._reliability import POINTS, Cavities
from skpref.gp import Inducing, PosteriorMixture, Prior, posterior_parts
from skpref.inference import EP, HMC, SVI, Gibbs
from skpref.inspection import control_effects, judge_reliability, leaderboard
from skpref.kernels import Identity, Linear, OnColumns, Padded

NAMED = {"variance_bounds": "fixed", "control_variance_bounds": "fixed"}
# The kernel that votes with controls come with.
KERNEL = OnColumns(Identity(), [0]) + OnColumns(ConstantKernel(0.5) * Linear(), [1])


def votes(n=40, n_items=4, n_judges=3, seed=0, length=(), inverted=(), noise=1.0):
    """Duels of ids with a control beside them, all judged by all judges.

    Judges in ``length`` answer by the control alone, those in ``inverted`` the wrong way round.
    """
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(n_items)[:2] for _ in range(n)], dtype=float)
    X = np.stack([ids, rng.normal(size=(n, 2)) - 0.5 * ids], axis=2)
    utility = np.linspace(1.0, -1.0, n_items)[ids.astype(int)]
    X, utility = np.repeat(X, n_judges, axis=0), np.repeat(utility, n_judges, axis=0)
    judge = np.tile(np.arange(n_judges), n)
    margin = utility[:, 0] - utility[:, 1] + 0.2 * (X[:, 0, 1] - X[:, 1, 1])
    margin = np.where(np.isin(judge, length), 6.0 * (X[:, 0, 1] - X[:, 1, 1]), margin)
    margin = np.where(np.isin(judge, inverted), -margin, margin)
    y = (margin + noise * rng.normal(size=len(margin)) > 0.0).astype(int)
    return X, y, np.array([f"j{k}" for k in range(n_judges)])[judge]


def held(**options):
    """A model of which nothing is learned."""
    options = {"kernel": KERNEL, "noise_variance": 0.5, "optimizer": None} | options
    return PairwisePreferenceRegressor(id_column=0, **options)


@pytest.fixture(scope="module")
def several():
    """Votes that leave several readings, and the model of them."""
    X, y, judge = votes(n=30, length=[2])
    model = held().fit(X, y, judges=judge)
    assert isinstance(model.posterior_, PosteriorMixture) and len(model.judges_.weights) > 1
    return X, y, judge, model


SURE = JudgePrior(1e-14, random=0.0, adversarial=0.0, order_variance=0.3, **NAMED)


@pytest.mark.parametrize("order", [False, True])
def test_judges_of_reliability_one_are_a_kernel_written_by_hand(order):
    X, y, judge = votes()
    first = np.random.default_rng(1).choice([1, -1, 0], len(y)) if order else None
    prior = SURE if order else JudgePrior(1e-14, random=0.0, adversarial=0.0, **NAMED)
    fitted = held(judge_prior=prior).fit(X, y, judges=judge, order=first)
    code = np.unique(judge, return_inverse=True)[1]
    lead = np.zeros(X.shape[:2])
    if order:
        lead[first == 1, 0] = lead[first == -1, 1] = 1.0
    told = np.concatenate([X, np.repeat(code[:, None, None], 2, axis=1), lead[..., None]], axis=2)
    items = np.unique(X.reshape(-1, 2), axis=0)
    by_judge = OnColumns(Identity(), [2])
    slope = OnColumns(Linear(items[:, 1].std(), centre=items[:, 1].mean()), [1])
    kernel = KERNEL + ConstantKernel(0.1) * slope * by_judge
    if order:
        kernel = kernel + ConstantKernel(0.3) * OnColumns(Linear(), [3]) * by_judge
    plain = PairwisePreferenceRegressor(
        kernel, id_column=0, noise_variance=0.5, optimizer=None, inference=EP(tol=1e-12)
    )
    plain.fit(told, y)
    fitted.set_params(inference=EP(tol=1e-12)).fit(X, y, judges=judge, order=first)
    assert_allclose(
        fitted.log_marginal_likelihood_value_, plain.log_marginal_likelihood_value_, atol=1e-8
    )
    # What no judge has of their own: the slope of all, and the utilities.
    rows = np.array([[0.0, 0.3], [1.0, 0.3], [2.0, -1.0]])
    nobody, pairs = np.hstack([rows, np.tile([-1.0, 0.0], (3, 1))]), [[0, 1], [1, 2]]
    assert_allclose(fitted.predict(rows[pairs]), plain.predict(nobody[pairs]), atol=1e-8)


def test_controls_that_do_nothing_leave_judges_as_they_are():
    """The two ways to the same model: reliability in the likelihood, and in the prior's rows."""
    X, y, judge = votes(inverted=[2])
    tiny = OnColumns(Identity(), [0]) + OnColumns(ConstantKernel(1e-10) * Linear(), [1])
    prior = JudgePrior(control_variance=1e-10, **NAMED)
    biased = held(kernel=tiny, judge_prior=prior).fit(X, y, judges=judge)
    alone = held(kernel=OnColumns(Identity(), [0]), judge_prior=prior).fit(X, y, judges=judge)
    assert isinstance(biased.kernel_, Padded) and not isinstance(alone.kernel_, Padded)
    assert_allclose(biased.judges_.reliability, alone.judges_.reliability, atol=2e-3)
    assert_allclose(biased.judges_.weights, alone.judges_.weights, atol=2e-3)
    for judges in (None, judge[:8], ["new"] * 8):
        found = biased.predict_proba(X[:8], judges=judges)
        assert_allclose(found, alone.predict_proba(X[:8], judges=judges), atol=2e-3)


class Sampled:
    """Importance sampling from the prior of utilities, slopes and reliabilities."""

    def __init__(self, X, y, judge, n=400_000):
        rng = np.random.default_rng(5)
        code, n_judges = np.unique(judge, return_inverse=True)[1], len(set(judge))
        items = np.unique(X.reshape(-1, 2), axis=0)[:, 1]
        self.u = rng.normal(size=(n, 4))
        self.shared = np.sqrt(0.5) * rng.normal(size=n)
        self.own = np.sqrt(0.1) / items.std() * rng.normal(size=(n, n_judges))
        kind = rng.choice([1.0, -1.0, 0.0], size=(n, n_judges), p=[0.85, 0.05, 0.1])
        self.r = kind * np.exp(np.sqrt(0.1) * rng.normal(size=(n, n_judges)))
        weight = np.ones(n)  # of few answers: what underflows weighs nothing
        for duel, won, j in zip(X, y, code, strict=True):
            weight *= ndtr((2 * won - 1) * self.margin(duel, j))
        self.weight = weight / weight.sum()

    def margin(self, duel, j):
        """Of one duel as a judge sees it, in deviations of the noise, which is 1."""
        (a, x), (b, z) = duel
        u = self.u[:, int(a)] - self.u[:, int(b)]
        if j is None:
            return u + self.shared * (x - z)
        return self.r[:, j] * u + (self.shared + self.own[:, j]) * (x - z)


@pytest.mark.parametrize(("n_judges", "length", "inverted"), [(3, (), (1,)), (2, (1,), ())])
def test_few_answers_are_taken_as_by_importance_sampling(n_judges, length, inverted):
    X, y, judge = votes(7, 4, n_judges, seed=3, length=length, inverted=inverted, noise=0.3)
    model = held(judge_prior=JudgePrior(**NAMED)).fit(X, y, judges=judge)
    exact = Sampled(X, y, judge)
    assert 1.0 / np.sum(exact.weight**2) > 300
    adversarial = exact.weight @ (exact.r < 0.0)
    assert_allclose(model.judges_.probability_adversarial, adversarial, atol=0.06)
    mean = exact.weight @ exact.shared
    deviation = np.sqrt(exact.weight @ (exact.shared - mean) ** 2)
    pair = np.array([[[0.0, 1.0], [0.0, 0.0]]])
    found, spread = model.predict(pair, return_std=True)
    assert_allclose([found[0], spread[0]], [mean, deviation], atol=0.06)
    for j, name in [*enumerate(np.unique(judge)), (None, None)]:
        truth = [exact.weight @ ndtr(exact.margin(duel, j)) for duel in X[::6]]
        judges = None if name is None else [name] * len(X[::6])
        assert_allclose(model.predict_proba(X[::6], judges=judges)[:, 1], truth, atol=0.06)


def test_a_judge_who_loves_length_turns_no_slope():
    X, y, judge = votes(n=60, n_judges=4, n_items=6, length=[3], noise=1.0)
    model = PairwisePreferenceRegressor(
        KERNEL, id_column=0, noise_variance=1.0, noise_variance_bounds=(1e-3, 1e3)
    ).fit(X, y, judges=judge)
    judges, order = model.judges_, np.argsort(model.judges_.ids)
    assert np.all(judges.reliability[order][:3] > 0.4)
    assert np.all(judges.probability_adversarial[order][:3] < 0.1)
    board = leaderboard(model)
    assert np.corrcoef(board.utility, -np.asarray(board.names, dtype=float))[0, 1] > 0.9
    slopes = judges.control_slope_interval(1)[order]
    assert slopes[3, 0] > 0.0 and np.all(slopes[:3, 0] < 0.0)
    effect = control_effects(model, level=0.95)
    scale = board.unit_length
    assert effect.lower[0] * scale < 0.2 < effect.upper[0] * scale


def test_an_inverted_judge_is_found_and_leaves_the_slope():
    X, y, judge = votes(n=60, n_judges=4, inverted=[1], noise=0.7)
    model = held().fit(X, y, judges=judge)
    assert model.judges_.probability_adversarial[1] > 0.95
    assert np.all(np.delete(model.judges_.probability_adversarial, 1) < 0.1)
    lower, upper = model.judges_.control_slope_interval(1, 0.99)[1]
    assert lower < -0.2 < upper  # the slope is turned with the utility, of a judge of this kind


def test_readings_turn_the_utility_and_not_the_controls():
    rng = np.random.default_rng(2)
    X = np.zeros((120, 2, 2))
    X[:, :, 0] = [0.0, 1.0]
    X[:, :, 1] = rng.normal(size=(120, 2))
    judge = np.tile(["ann", "bob"], 60)
    side = np.where(judge == "ann", 1.0, -1.0)
    y = (side + 1.5 * (X[:, 0, 1] - X[:, 1, 1]) + rng.normal(size=120) > 0.0).astype(int)
    model = held(kernel=KERNEL).fit(X, y, judges=judge)
    assert isinstance(model.posterior_, PosteriorMixture)
    assert_allclose(model.judges_.weights[:2], 0.5, atol=0.03)
    weights, parts = posterior_parts(model.posterior_)
    n = len(model.judges_.readings()[0].nodes)
    readings = slice(0, n), slice(n, n + len(model.judges_.readings()[1].nodes))

    def mean_margins(first, second):
        means = np.array([part.margin(first, second)[0][0] for part in parts])
        return [np.average(means[each], weights=weights[each]) for each in readings]

    ids, control = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])
    one, other = mean_margins(ids[:1], ids[1:])
    assert abs(one) > 0.5 and one == pytest.approx(-other, abs=0.05)
    one, other = mean_margins(control[:1], control[1:])
    assert one > 0.5 and one == pytest.approx(other, abs=0.02)


@pytest.fixture(scope="module")
def weighted():
    X, y, judge = votes(length=[2])
    told = {"judges": judge, "sample_weight": np.tile([1.0, 2.0], 60)}
    return X, y, told, held().fit(X, y, **told)


@pytest.mark.parametrize("engine", ["laplace", SVI(60), HMC(draws=400), Gibbs(draws=400)])
def test_engines_agree_on_biases(engine, weighted):
    X, y, told, exact = weighted
    model = held(inference=engine, random_state=0).fit(X, y, **told)
    assert_allclose(model.judges_.reliability, exact.judges_.reliability, atol=0.1)
    assert_allclose(model.judges_.control_slopes[1], exact.judges_.control_slopes[1], atol=0.1)
    for judges in (None, told["judges"][:8]):
        found = model.predict_proba(X[:8], judges=judges)
        assert_allclose(found, exact.predict_proba(X[:8], judges=judges), atol=0.05)


def test_features_of_an_id_are_no_controls():
    X, y, judge = votes()
    X = np.concatenate([X, np.cos(X[..., :1])], axis=2)
    model = PairwisePreferenceRegressor(id_column=0, optimizer=None).fit(X, y, judges=judge)
    assert list(model.judges_.control_slopes) == [1]
    alone = PairwisePreferenceRegressor(id_column=0, optimizer=None)
    alone.fit(X[..., [0, 2]], y, judges=judge)
    assert not isinstance(alone.kernel_, Padded)
    with pytest.raises(ValueError, match=r"Controls are the columns \[1\], got 2"):
        model.judges_.control_slope_interval(2)


def test_what_is_not_linear_in_controls_is_a_part_of_the_utility():
    X, y, judge = votes(n=10)
    kernel = OnColumns(Identity(), [0]) + OnColumns(RBF(), [1])
    assert held(kernel=kernel).fit(X, y, judges=judge).kernel_ == kernel
    both = held(kernel=kernel + OnColumns(Linear(), [1])).fit(X, y, judges=judge)
    assert list(both.judges_.control_slopes) == [1]
    # Features and the id are multiplied by reliability, the slope of all is not.
    row, other = np.array([[0.0, 0.4]]), np.array([[0.0, 0.4, 0.0, 0.5, 0.0, 0.0]])
    value = both.kernel_(row, other)[0, 0]
    assert value == pytest.approx(0.5 * 2.0 + 0.4 * 0.4)


def test_biases_may_be_left_out():
    X, y, judge = votes(n=10)
    none = JudgePrior(control_variance=0.0, order_variance=0.0)
    model = held(judge_prior=none).fit(X, y, judges=judge)
    assert model.judges_.control_slopes == {} and model.judges_.order_effect is None
    with pytest.raises(ValueError, match="control_variance of judge_prior must lie in"):
        held(judge_prior=JudgePrior(control_variance=-1.0)).fit(X, y, judges=judge)


def test_ties_times_and_own_orders_go_with_controls():
    X, y, judge = votes(n=30)
    first = np.random.default_rng(0).choice([1, -1], len(y))
    labels = np.where(np.abs(X[:, 0, 1] - X[:, 1, 1]) < 0.3, 0, 2 * y - 1)
    # Not "auto", which takes items that drift as independent, of judges by their reliability alone.
    options = {"tie_threshold": 0.3, "order_effect": 0.2, "kernel": None, "inference": "ep"}
    for time in (None, np.linspace(0.0, 1.0, len(y))):
        told = {"judges": judge, "order": first, "time": time}
        model = held(**options).fit(X, labels, **told)
        assert list(model.judges_.control_slopes) == [1]
        assert model.judges_.order_effect.shape == (3,)
        proba = model.predict_proba(X[:5], judges=judge[:5], order=1)
        assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("learned", [False, True])
def test_files_and_evidence_hold_biases(learned, several):
    X, y, judge, model = several
    if learned:
        X, y, judge = votes(n=24, n_judges=2)
        model = held(optimizer="fmin_l_bfgs_b").fit(X, y, judges=judge)
    assert isinstance(model.posterior_, PosteriorMixture)
    evidence = model.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood() == pytest.approx(evidence, abs=1e-3)
    for copy in (
        pickle.loads(pickle.dumps(model)),
        PairwisePreferenceRegressor.from_arrays(model.to_arrays()),
    ):
        for judges in (None, judge[:6]):
            found = copy.predict_proba(X[:6], judges=judges)
            assert np.array_equal(found, model.predict_proba(X[:6], judges=judges))
        assert copy.log_marginal_likelihood() == model.log_marginal_likelihood()


def test_the_evidence_in_reliability_has_the_slope_of_the_cavities():
    X, y, judge = votes(n=12, length=[2])
    model = held(inference=EP(tol=1e-11), judge_prior=SURE)
    model.fit(X, y, judges=judge, sample_weight=np.tile([1, 3], 18))
    answers, kernel = model.comparisons_, model.kernel_

    def run(reliability):
        return model._model.evaluate(judged_rows(answers, kernel, reliability))

    at = np.array([1.2, 0.5, -0.3])
    truth = central_gradient(lambda r: run(r).approximation.sites.log_evidence, at, 1e-3)
    points = [judged_rows(answers, kernel, point) for point in POINTS]
    told = Cavities.from_evaluation(run(at), points, at).by_reliability(model.likelihood_)
    found = np.diff(told(at[:, None] + np.array([-1e-4, 1e-4])), axis=1)[:, 0] / 2e-4
    assert_allclose(found, truth, atol=1e-4)


def test_probabilities_of_a_judge_are_averages_over_reliability(several):
    X, _, _, model = several
    some, truth = X[:4], np.zeros(4)
    for weight, part, judges in zip(
        *posterior_parts(model.posterior_),
        model.judges_.components()[1],
        strict=True,
    ):
        raw = replace(part, reader=Reader(6))
        used = judges.marginals.weights[2] > 0.0
        points, shares = (
            each[2, used] for each in (judges.marginals.points, judges.marginals.weights)
        )
        tail = np.tile([2.0, 0.0, 0.0, 1.0], (4 * len(points), 1))
        tail[:, 1] = np.repeat(points, 4)
        rows = (np.hstack([np.tile(some[:, k], (len(points), 1)), tail]) for k in (0, 1))
        mean, variance = raw.margin(*rows)
        truth += weight * shares @ ndtr(mean / np.sqrt(1.0 + variance)).reshape(-1, 4)
    assert_allclose(model.predict_proba(some, judges=["j2"] * 4)[:, 1], truth, atol=2e-3)
    seen = model.decision_function(some, judges=["j2"] * 4)
    assert np.array_equal(seen > 0.0, truth > 0.5)


def test_margins_of_other_rows_are_those_of_the_posterior():
    X, y, judge = votes()
    model = held().fit(X, y, judges=judge)
    (answers,) = judged_comparisons(model)
    evaluation = model._model.evaluate(answers)
    prior, likelihood = evaluation.problem.prior, model._model.likelihood
    found = prior.margins_of([answers], evaluation.approximation, likelihood)[0]
    slow = Prior.margins_of(prior, [answers], evaluation.approximation, likelihood)[0]
    known = prior.margin_moments(evaluation.approximation.conditioned)
    assert type(prior).margins_of is not Prior.margins_of and not isinstance(prior, Inducing)
    for name in ("mean", "variance"):
        assert_allclose(getattr(found, name), getattr(known, name), atol=1e-8)
        assert_allclose(getattr(slow, name), getattr(known, name), atol=1e-6)


def test_tables_name_the_controls(several):
    model = several[-1]
    given = {"controls": ["length"], "control_scale": np.array([20.0])}
    found, plain = judge_reliability(model, given), judge_reliability(model)
    assert_allclose(20.0 * found.slopes["length"], plain.slopes[1])
    assert_allclose(found.slopes["length"], found.frame.filter(like="length_"))
    assert np.all(found.slopes["length"][:, 1] < found.slopes["length"][:, 2])
    assert "slope_1_low" in model.judges_.to_frame()
