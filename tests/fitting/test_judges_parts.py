"""Parts of the model of judges: what is known of any judge, own order effects, counts, cavities."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from matrix import Case
from matrix_support import fitted
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref._utils import row_blocks
from skpref.data import Reader, Respondents
from skpref.duels import Comparisons
from skpref.fitting import _judging
from skpref.fitting._fit import fit_posterior, learn_hyperparameters
from skpref.fitting._judges import _condense_points
from skpref.fitting._judging import Beliefs
from skpref.fitting._model import Model
from skpref.fitting._reliability import Cavities, Law, Marginals
from skpref.fitting._search import Search
from skpref.gp import posterior_parts
from skpref.inference import EP, SVI
from skpref.inference import _workers as _shards
from skpref.inference._base import Problem
from skpref.inference._chains import NoisyMargins
from skpref.likelihoods import JudgeReliability, Probit

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@pytest.fixture(scope="module")
def ordered():
    """Judges with order effects of their own, of which one prefers what is shown first."""
    rng = np.random.default_rng(0)
    X, judge = rng.uniform(-1.0, 1.0, (60, 2, 1)), np.repeat([0, 1], 30)
    order = rng.choice([1, -1], 60)
    seen = 3.0 * (X[:, 0, 0] - X[:, 1, 0]) + (judge == 0) * order
    y = (seen + 0.3 * rng.standard_normal(60) > 0.0).astype(int)
    model = PairwisePreferenceRegressor(
        RBF(1.0), noise_variance=0.1, optimizer=None, judge_prior=JudgePrior(order_variance=0.5)
    )
    return model.fit(X, y, judges=judge, order=order), X


def test_any_judge_is_a_mixture_of_log_normals():
    law = Law(1.3, np.array([0.05, 0.4]), np.array([0.3, 0.7]), 0.2, 0.1)
    reliable = 1.3 * np.exp(0.5 * law.variances) @ law.weights
    square = 1.3**2 * np.exp(2.0 * law.variances) @ law.weights
    found = law.marginals()
    for each in (found.mean, np.sum(np.multiply(*_condense_points(found)), axis=1)):
        assert_allclose(each, (0.7 - 0.2) * reliable, rtol=1e-3)
    assert_allclose(found.variance, 0.9 * square - (0.5 * reliable) ** 2, rtol=5e-3)


def test_a_few_points_have_the_variance_of_all():
    found = Law(1.0, np.array([0.1]), np.ones(1), 0.05, 0.1).marginals()
    points, weights = _condense_points(found)
    assert_allclose(weights[0] @ points[0], found.mean[0])
    assert_allclose(weights[0] @ points[0] ** 2, found.variance[0] + found.mean[0] ** 2, rtol=0.01)


def test_own_order_effects_are_averaged_over(ordered):
    """By the posterior at every point of reliability, of rows that say who judges."""
    model, X = ordered
    some, scale = X[:4], np.sqrt(2.0 * 0.1)
    known, unknown = np.zeros((2, 4))
    weights, parts = posterior_parts(model.posterior_)
    for weight, part, judges in zip(weights, parts, model.judges_.components()[1], strict=True):
        rows = [np.hstack([side, np.tile(FIRST[k], (4, 1))]) for k, side in enumerate(sides(some))]
        raw = replace(part, reader=Reader(rows[0].shape[1]))
        own = judges.marginals, raw, rows, known
        other = [np.hstack([side, np.tile(FIRST[k], (4, 1))]) for k, side in enumerate(sides(some))]
        for each in other:
            each[:, 1] = -2.0
        of_any = judges.law.marginals(), raw, other, unknown
        for reliability, posterior, (first, second), truth in (own, of_any):
            points, shares = reliability.points[0], reliability.weights[0]
            first, second = (np.tile(side, (len(points), 1)) for side in (first, second))
            first[:, 2] = second[:, 2] = np.repeat(points, 4)
            mean, variance = posterior.margin(first, second)
            won = norm.cdf(mean / np.sqrt(scale**2 + variance))
            truth += weight * shares @ won.reshape(-1, 4)
    for truth, ids in ((known, [0] * 4), (unknown, ["new"] * 4)):
        assert_allclose(model.predict_proba(some, judges=ids)[:, 1], truth, atol=3e-3)


# Judge, reliability, shown first, own effects: of the first item and of the second.
FIRST = np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])


def sides(X):
    return X[:, 0], X[:, 1]


def test_decisions_hold_the_order_effects_of_judges(ordered):
    model, X = ordered
    effect = model.judges_.order_effect
    assert effect[0] > 0.5
    first, second = (model.decision_function(X[:3], judges=[0] * 3, order=[o] * 3) for o in (1, -1))
    assert_allclose(first - second, 2.0 * effect[0])


def test_who_was_shown_first_tells_the_answers_of_judges_apart():
    X = np.repeat([[[0.5], [-0.5]]], 40, axis=0)
    first = np.repeat([1, -1], 20)  # always the winner
    model = PairwisePreferenceRegressor(
        RBF(1.0), optimizer=None, judge_prior=JudgePrior(order_variance=0.5)
    )
    model.fit(X, (first > 0).astype(int), judges=["one"] * 40, order=first)
    assert model.judges_.order_effect_interval(0.99)[0, 0] > 0.0
    assert_allclose(model.predict(X[0]), 0.0, atol=1e-6)
    model.fit(X, np.ones(40, dtype=int), judges=["one"] * 40, order=first)
    assert_allclose(model.judges_.order_effect, 0.0, atol=1e-3)


def test_distributions_of_points_spread_about_them():
    found = Marginals(np.array([[-1.0, 0.0, 1.0, 3.0]]), np.array([[1, 1, 1, 0.0]]), SHARES)
    assert_allclose(found.cdf(0.0), 0.2 + 0.15)
    assert_allclose(found.quantile(0.5), 0.5, atol=1e-6)
    assert found.quantile(0.95)[0] == 3.0
    assert_allclose(found.cdf(3.0, below=True), 0.9)
    assert_allclose(found.cdf(3.0), 1.0)


SHARES = np.array([[0.2, 0.3, 0.4, 0.1]])


def answers(judge, weight=None, turned=False):
    rng = np.random.default_rng(3)
    items = rng.uniform(-1.0, 1.0, (7, 2))
    pairs = np.array([rng.permutation(7)[:2] for _ in range(24)])
    won = rng.random(24) < 0.6
    if turned:
        won = np.where(judge == 1, ~won, won)
    return Comparisons.from_duels(items, *pairs.T, won, weight, judge=judge)


@pytest.mark.slow
def test_the_evidence_in_reliability_has_the_slope_of_the_cavities_of_weighted_answers():
    weight = np.tile([0.4, 1.0, 2.5], 8)
    comparisons = answers(np.repeat([0, 1], 12), weight)
    reliability = np.array([1.2, 0.5])

    def run(at):
        model = Model(
            RBF(0.8), JudgeReliability(Probit(0.1).fix_hyperparameters(), at), EP(tol=1e-10)
        )
        return fit_posterior(comparisons, model).evaluation

    truth = central_gradient(lambda at: run(at).approximation.sites.log_evidence, reliability, 1e-3)
    told = Cavities.from_evaluation(run(reliability)).by_reliability(Probit(0.1))
    found = np.diff(told(reliability[:, None] + np.array([-1e-4, 1e-4])), axis=1)[:, 0] / 2e-4
    assert_allclose(found, truth, atol=1e-4)


def test_chains_of_adversarial_judges_begin_where_those_of_reliable_ones_do():
    judge, reliability = np.arange(24) % 2, np.array([1.0, -1.0])
    found = []
    for turned, likelihood in (
        (True, JudgeReliability(Probit(0.1), reliability)),
        (False, Probit(0.1)),
    ):
        model = Model(RBF(0.8), likelihood.fix_hyperparameters(), EP())
        fitted = fit_posterior(answers(judge, turned=turned), model)
        problem = fitted.evaluation.problem
        mean = np.linspace(-1.0, 1.0, problem.prior.n_margins)
        assert isinstance(problem, Problem)
        found.append(NoisyMargins(problem).typical(mean))
    assert_allclose(*found)


def test_the_fixed_point_is_reached_where_a_judge_may_be_adversarial():
    """By turns reliable and adversarial given the utility that follows from the other."""
    case = Case("ep", "ties", "some", "some", identity="id_column", shape="repeated")
    model = fitted(case)
    judges = model.judges_.readings()[0]
    deviation = np.sqrt(judges.marginals.variance)
    assert_allclose(judges.reliability, judges.used, atol=0.1 * deviation.max())


def test_a_scale_that_all_judges_have_in_common_moves_none_of_them():
    law = Law(1.2, np.array([0.1]), np.ones(1), 0.05, 0.1)
    points = np.array([[0.5, 1.0], [1.5, 2.0], [-1.0, 0.5]])
    reliability = Marginals(points, 0.1 * np.ones((3, 2)), np.full((3, 2), 0.5))
    before = Beliefs(reliability, law)
    drifted = Beliefs(reliability.scaled(1.4), law._replace(median=1.4 * law.median))
    assert_allclose(drifted.step(before), 0.0, atol=1e-14)
    part = drifted.damp_step(before, np.array([1.0, 0.5, 0.25]))
    assert_allclose(part.means, 1.4 * reliability.mean)
    assert drifted.largest_change(part) < 1e-12
    # Beside that scale, the share of each judge's own way.
    own = np.array([0.3, -0.2, 0.1])
    moved = Beliefs(replace(reliability, points=1.4 * (points + own[:, None])), drifted.law)
    part = moved.damp_step(before, np.array([1.0, 0.5, 0.25]))
    assert_allclose(part.means, 1.4 * (reliability.mean + own * [1.0, 0.5, 0.25]))


@pytest.fixture
def judging():
    """A model, and reliability given its hyperparameters, of two judges who repeat themselves."""
    comparisons = answers(np.repeat([0, 1], 12), np.tile([1.0, 2.0, 3.0], 8))
    model = Model(RBF(0.8), Probit(0.1, noise_variance_bounds=(1e-3, 10.0)), EP())
    return (
        model,
        _judging._Judging(comparisons, model.kernel, JudgePrior(), True, 2, 0),
        comparisons,
    )


def test_hyperparameters_are_first_those_of_judges_who_are_alike(judging):
    model, parts, comparisons = judging
    found = parts.learn_as_reference(model, Search(), None, None)
    alike = replace(model, likelihood=JudgeReliability(model.likelihood, np.ones(2)))
    expected = learn_hyperparameters(comparisons, alike, Search()).model
    assert_allclose(found.theta, expected.theta, atol=0.02)
    assert not isinstance(found.likelihood, JudgeReliability)


def test_no_fixed_point_is_found_twice(monkeypatch, judging):
    model, _, comparisons = judging
    found, plain = [], _judging._Judging.find_fixed_point

    def counted(self, model, beliefs, free=False, **options):
        if options.get("learns_law", True):  # not of one reading beside others
            found.append((tuple(model.theta), free))
        return plain(self, model, beliefs, free, **options)

    monkeypatch.setattr(_judging._Judging, "find_fixed_point", counted)
    respondents = Respondents(["a", "b"], "judge")
    fitted = _judging.fit_judged(comparisons, model, JudgePrior(), respondents, search=Search())
    assert len(set(found)) == len(found)
    theta = np.concatenate([fitted.model.kernel.theta, fitted.model.likelihood.theta])
    assert found[-1] == (tuple(theta), False)


def test_turns_that_do_not_end_warn(monkeypatch, judging):
    model, _, comparisons = judging
    for name, value in (
        ("_TURNS", 2),
        ("_STEPS", 3),
        ("_SETTLED", 0.0),
        ("_MOVED_AWAY", 0.0),
    ):
        monkeypatch.setattr(_judging, name, value)
    respondents = Respondents(["a", "b"], "judge")
    with pytest.warns(ConvergenceWarning, match=r"by turns, 2 times.*Give more answers of each"):
        _judging.fit_judged(comparisons, model, JudgePrior(), respondents, search=Search())


def test_shards_know_the_judges(monkeypatch):
    monkeypatch.setattr(_shards, "_ROWS", 5)
    comparisons = answers(np.repeat([0, 1, 2], 8))
    likelihood = JudgeReliability(Probit(0.1).fix_hyperparameters(), np.array([1.0, -0.5, 0.0]))
    found = []
    for engine in (SVI(5, n_jobs=1, tol=1e-9), SVI(5, tol=1e-9)):
        fitted = fit_posterior(comparisons, Model(RBF(0.8), likelihood, engine))
        found.append(fitted.posterior.mean(comparisons.items))
    assert_allclose(*found, atol=1e-6)


def test_parameters_of_an_object_that_was_not_given_are_refused():
    given = PairwisePreferenceRegressor(judge_prior=JudgePrior(), inference="ep")
    assert given.set_params(judge_prior__variance=0.1).judge_prior.variance == 0.1
    for name, came in (("inference__tol", "'ep'"), ("kernel__length_scale", "None")):
        with pytest.raises(ValueError, match=f"{name} is a parameter .* is {came}.*Give the obj"):
            given.set_params(**{name: 0.1})
    plain = PairwisePreferenceRegressor()
    with pytest.raises(ValueError, match=r"judge_prior is None.*judge_prior=JudgePrior"):
        plain.set_params(judge_prior__variance=0.1)
    both = plain.set_params(judge_prior__variance=0.2, judge_prior=JudgePrior())
    assert both.judge_prior.variance == 0.2
    with pytest.raises(ValueError, match="Invalid parameter 'judges'"):
        plain.set_params(judges__variance=0.1)


def test_masses_are_expectations_of_linear_functions_between_the_points():
    from skpref.fitting._reliability import _log_normal_masses

    grid = np.stack([np.linspace(-2.0, 3.0, 41), np.linspace(-1.0, 0.5, 41)])
    step = grid[:, 1:2] - grid[:, :1]
    variances = np.array([1e-4, 0.01, 0.3])
    narrow = np.array([True, True, False])
    logs = _log_normal_masses(grid, step, 0.1, variances, narrow)
    found = np.exp(logs)
    x = np.linspace(-8.0, 8.0, 20_001)
    weight = np.exp(-0.5 * x**2) / np.exp(-0.5 * x**2).sum()
    for j in range(2):
        for v in range(2):
            at = 0.1 + np.sqrt(variances[v]) * x
            hats = np.maximum(1.0 - np.abs(at - grid[j][:, None]) / step[j], 0.0)
            np.testing.assert_allclose(found[j, v, 1:-1], (hats @ weight)[1:-1], atol=1e-6)
        density = np.exp(-0.5 * (grid[j] - 0.1) ** 2 / 0.3) / np.sqrt(2.0 * np.pi * 0.3)
        np.testing.assert_allclose(found[j, 2], density * step[j], rtol=1e-12)
    for kept in ([0, 1], [2]):
        again = _log_normal_masses(grid, step, 0.1, variances[kept], narrow[kept])
        np.testing.assert_array_equal(again, logs[:, kept])


@pytest.mark.parametrize("block", [100, 2**20])
def test_laws_are_weighed_the_same_block_by_block(monkeypatch, block):
    from skpref.fitting import _reliability
    from skpref.fitting._reliability import GridLikelihood, Law, ReliabilityLikelihood

    grid = np.linspace(-3.0, 3.0, 61) + np.linspace(-0.5, 0.5, 7)[:, None]
    centre, rng = np.linspace(-1.0, 1.0, 7)[:, None], np.random.default_rng(0)
    sides = [GridLikelihood(grid, -k - 3.0 * (grid - centre) ** 2) for k in (0.0, 2.0)]
    likelihood = ReliabilityLikelihood(tuple(sides), rng.normal(size=7) - 2.0)
    law = Law.make_prior((1e-3, 1.0), 0.1, 0.1, 0.2)._replace(median=1.3)
    monkeypatch.setattr(_reliability, "row_blocks", partial(row_blocks, doubles=block))
    found = likelihood.marginals(law).weights
    # The definition: points of both sides and a judge at random, under every variance.
    joint = np.zeros((7, 2 * 61 + 1))
    for weight, variance in zip(law.weights, law.variances, strict=True):
        at = np.log(law.median), np.array([variance])
        parts = [
            np.exp(each.log_masses(*at)[:, 0]) * share
            for each, share in zip(sides, law.shares[:2], strict=True)
        ]
        part = np.hstack([*parts, np.exp(likelihood.random)[:, None] * law.random])
        joint += weight * part / part.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-10, atol=1e-15
    )
    rare = law._replace(weights=np.where(law.weights > law.weights.min(), law.weights, 1e-40))
    kept = likelihood.marginals(rare).weights
    np.testing.assert_allclose(
        kept, likelihood._point_weights(rare, np.tile(rare.shares, (7, 1))), rtol=1e-12
    )
