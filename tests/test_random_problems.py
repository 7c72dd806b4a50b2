"""``benchmarks/posterior/random_problems.py``: its truth, and engines on a few of its problems."""

import sys
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import norm
from scipy_support import normal_cdf

from skpref.inference import HMC

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def from_benchmarks():
    folders = [str(BENCHMARKS), str(BENCHMARKS / "posterior")]
    sys.path[:0] = folders
    yield
    for folder in folders:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def answers():
    import _random_answers

    return _random_answers


@pytest.fixture(scope="module")
def problems():
    import random_problems

    return random_problems


@pytest.fixture(scope="module")
def judges():
    import random_judges

    return random_judges


@pytest.fixture(scope="module")
def groups():
    import random_groups

    return random_groups


# -- the truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rank", [(1, 2, 3, 4), (3, 1, 4, 2), (1, 2, 2, 2), (2, 2, 1, 2), (1, 1, 2, 1), (2, 1, 3, 2)]
)
def test_probability_of_ranks_is_an_orthant_probability(answers, rank):
    u = np.random.default_rng(0).normal(0.0, 1.0, (3, 4))
    expected = np.zeros(3)
    for order in permutations(range(4)):
        if sorted(rank) != [rank[i] for i in order]:
            continue
        contrast = np.array([np.eye(4)[a] - np.eye(4)[b] for a, b in pairwise(order)])
        for k in range(3):
            expected[k] += normal_cdf(contrast @ u[k], cov=contrast @ contrast.T)
    assert_allclose(answers.ranks_probability(u, np.array(rank)), expected, atol=2e-5)


@pytest.mark.parametrize("wide", [1.0, 6.0])
def test_probabilities_of_all_orders_sum_to_one(answers, wide):
    u = np.random.default_rng(1).normal(0.0, wide, (50, 5))
    total = sum(answers.order_probability(u[:, list(order)]) for order in permutations(range(5)))
    assert_allclose(total, 1.0, atol=2e-4)


@pytest.mark.parametrize(
    ("kind", "seed"), [("duels", 11), ("ties", 5), ("graded", 8), ("counted", 6), ("order", 3)]
)
def test_truth_of_two_items_is_that_of_quadrature(answers, kind, seed):
    problem = answers.draw_problem(kind, seed)
    truth, noise = answers.integrate(problem), problem.noise
    prior = np.sqrt(problem.K[0, 0] + problem.K[1, 1] - 2.0 * problem.K[0, 1])
    margin = np.linspace(-8.0, 8.0, 20000) * prior
    judged = norm(scale=np.sqrt(2.0 * noise.variance))

    def outcome(ends, lead):
        shifted = margin + lead * noise.order_effect
        return judged.cdf(ends[1] - shifted) - judged.cdf(ends[0] - shifted)

    ends = np.array([noise.threshold, *noise.grades, np.inf])
    density = norm.pdf(margin, scale=prior) * (margin[1] - margin[0])
    for one in problem.answers:
        sign = 1.0 if one.shown == (0, 1) else -1.0
        if one.rank == (1, 1):
            between = [-noise.threshold, noise.threshold]
        else:
            won = sign if one.rank == (1, 2) else -sign
            between = np.sort(won * ends[one.grade - 1 : one.grade + 1])
        density = density * outcome(between, sign * one.lead) ** one.count
    evidence = density.sum()
    mean = margin @ density / evidence
    deviation = np.sqrt((margin - mean) ** 2 @ density / evidence)
    (a, b), error = problem.duels[0], truth.error
    sign = 1.0 if (a, b) == (0, 1) else -1.0
    first_wins = outcome(np.sort(sign * ends[[0, -1]]), sign * problem.lead) @ density / evidence
    better = density[sign * margin > 0.0].sum() / evidence
    outcomes = truth.answer.ravel()[-1 - len(noise.grades) :]
    assert_allclose(truth.mean, sign * mean, atol=6.0 * error["mean"] * deviation + 1e-4)
    assert_allclose(truth.deviation / deviation, 1.0, atol=6.0 * error["deviation"] + 1e-4)
    assert_allclose(truth.better, better, atol=6.0 * error["better"] + 1e-4)
    assert_allclose(outcomes.sum(), first_wins, atol=6.0 * error["answer"] + 1e-4)
    assert_allclose(truth.log_evidence, np.log(evidence), atol=6.0 * error["log_evidence"] + 1e-4)


def test_truth_of_judges_of_two_items_is_that_of_quadrature(judges):
    problem = judges.draw_problem(2)
    turned = problem.pair[:, 0] > problem.pair[:, 1]
    problem = problem._replace(n_items=2, pair=np.where(turned[:, None], [1, 0], [0, 1]))
    assert problem.n_judges == 3 and problem.threshold and problem.order_effect
    truth = judges.integrate(problem, n=2**13, n_effective=1000.0)
    margin = np.linspace(-8.0, 8.0, 1600) * np.sqrt(2.0)
    log_size = np.linspace(-6.0, 6.0, 41)
    size = np.exp(np.sqrt(problem.reliability_variance) * log_size)
    shares = np.array([1.0 - problem.random - problem.adversarial, problem.adversarial])
    mass = norm.pdf(log_size) / norm.pdf(log_size).sum()
    reliability = np.concatenate([size, -size, [0.0]])
    prior = np.concatenate([shares[0] * mass, shares[1] * mass, [problem.random]])
    scale, threshold = np.sqrt(2.0 * problem.noise_variance), problem.threshold
    density, by_judge = norm.pdf(margin, scale=np.sqrt(2.0)), []
    for j in range(problem.n_judges):
        joint = np.tile(prior, (len(margin), 1))
        for k in np.flatnonzero(problem.judge == j):
            seen = (-1.0 if turned[k] else 1.0) * margin[:, None] * reliability
            seen = seen + problem.order[k] * problem.order_effect
            low, high = {-1: (-np.inf, -threshold), 0: (-threshold, threshold)}.get(
                problem.outcome[k], (threshold, np.inf)
            )
            joint = joint * (ndtr((high - seen) / scale) - ndtr((low - seen) / scale))
        by_judge.append(joint / joint.sum(axis=1, keepdims=True))
        density = density * joint.sum(axis=1)
    density /= density.sum()
    tolerance = 6.0 * truth.error
    adversarial = [density @ joint[:, 41:82].sum(axis=1) for joint in by_judge]
    random = [density @ joint[:, 82] for joint in by_judge]
    seen = margin[:, None] * reliability + problem.order_effect
    won = ndtr((seen - threshold) / scale)
    wins = [density @ np.sum(joint * won, axis=1) for joint in by_judge]
    assert tolerance < 0.06
    assert_allclose(truth.adversarial, adversarial, atol=tolerance)
    assert_allclose(truth.random, random, atol=tolerance)
    assert_allclose(truth.better, density[margin > 0.0].sum(), atol=tolerance)
    assert_allclose(truth.judge[:, 0, 2], wins, atol=tolerance)


# -- engines ---------------------------------------------------------------------------------------

# Largest error of a probability on these problems, which are not the hardest.
NEAR = 0.015
# Five standard errors of a mean of so many draws, in deviations; of a deviation it is less.
DRAWN = 5.0 / np.sqrt(4000.0)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("duels", 2), ("ties", 3), ("graded", 2), ("counted", 2), ("order", 1), ("controls", 2),
        ("drift", 3), ("worst", 1), ("rankings", 1), ("best and worst", 2), ("users", 4),
    ],
)  # fmt: skip
def test_expectation_propagation_is_near_the_truth(problems, kind, seed):
    row = problems.problem_values(kind, seed, "ep")
    for name in ("better", "answer"):
        assert row[name] < NEAR + 6.0 * row[f"error_{name}"]
    assert row["mean"] < 0.02 + 6.0 * row["error_mean"]


@pytest.mark.parametrize(
    ("kind", "seed"), [("ties", 1), ("graded", 1), ("best", 3), ("rankings", 3)]
)
def test_draws_are_the_truth_where_expectation_propagation_is_not(problems, kind, seed):
    near = problems.problem_values(kind, seed, HMC(draws=4000))
    assert near["mean"] < DRAWN + 6.0 * near["error_mean"]
    assert near["deviation"] < DRAWN + 6.0 * near["error_deviation"]
    for name in ("better", "answer"):
        assert near[name] < 0.5 * DRAWN + 6.0 * near[f"error_{name}"]


def test_laplace_and_the_bound_are_farther_off_and_no_evidence_is_compared_of_draws(problems):
    rows = {e: problems.problem_values("duels", 4, e) for e in ("ep", "laplace", "svi", "hmc")}
    for engine in ("laplace", "svi"):
        assert rows[engine]["log_evidence"] > rows["ep"]["log_evidence"]
    assert np.isnan(rows["hmc"]["log_evidence"])


def test_reliable_judges_who_never_err_are_near_the_truth(judges):
    """Without adversarial judges there is one reading of the answers."""
    problem = judges.draw_problem(4)._replace(adversarial=1e-9, threshold=0.0)
    problem = problem._replace(outcome=np.where(problem.pair[:, 0] < problem.pair[:, 1], 1, -1))
    truth = judges.integrate(problem, n=2**13, n_effective=1000.0)
    values = judges.fit_engine(problem, "ep")
    for name in judges.QUANTITIES:
        assert np.max(np.abs(values[name] - getattr(truth, name))) < 0.05 + 6.0 * truth.error, name


@pytest.mark.parametrize("seed", [1, 5])
def test_judges_who_contradict_each_other_are_near_the_truth(judges, seed):
    problem = judges.draw_problem(seed)
    truth = judges.integrate(problem)
    values = judges.fit_engine(problem, "ep")
    for name in judges.QUANTITIES:
        assert np.max(np.abs(values[name] - getattr(truth, name))) < 0.05 + 3.0 * truth.error, name


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(54, id="a judge of one answer"),
        pytest.param(99, id="mirror images"),
        pytest.param(185, id="ties and an order effect"),
    ],
)
def test_what_each_judge_would_say_is_near_the_truth(judges, seed):
    """Where the mean of reliability in its place is off by .054 to .079."""
    problem = judges.draw_problem(seed)
    truth = judges.integrate(problem, n=2**14, n_effective=2000.0)
    values = judges.fit_engine(problem, "ep")
    for name in judges.QUANTITIES:
        assert_allclose(values[name], getattr(truth, name), atol=0.035, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4])
def test_draws_are_the_truth_of_judges(judges, seed):
    problem = judges.draw_problem(seed)
    truth = judges.integrate(problem)
    values = judges.fit_engine(problem, "hmc")
    for name in judges.QUANTITIES:
        assert_allclose(values[name], getattr(truth, name), atol=0.02, err_msg=name)


def test_table_of_the_page_is_that_of_the_results(problems):
    import common

    rows = common.Table(common.RESULTS / "random_problems.csv", ()).rows()
    text = (BENCHMARKS.parent / "doc" / "guide" / "engines.md").read_text(encoding="utf-8")
    assert "\n".join(problems.page(problems.summary(rows))) in text


# -- effects of groups -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "seed"), [("prompts", 0), ("judges", 1), ("both", 4)])
@pytest.mark.parametrize("engine", ["ep", "gibbs"])
def test_effects_of_groups_are_those_of_importance_sampling(groups, kind, seed, engine):
    problem = groups.draw_problem(kind, seed)
    truth = groups.integrate(problem)
    assert truth.error < 0.01
    values = groups.fit_engine(problem, engine)
    for name in groups.QUANTITIES:
        assert_allclose(values[name], getattr(truth, name), atol=groups.TOLERANCE[engine])


@pytest.mark.parametrize("kind", ["prompts", "judges", "both"])
def test_truth_of_groups_of_one_answer_is_that_of_quadrature(groups, kind):
    problem = groups.draw_problem(kind, 2)
    one = type(problem.margins)(*(part[:1] for part in problem.margins))
    problem = problem._replace(margins=one, lengths=problem.lengths[:1], outcome=np.array([1]))
    truth = groups.integrate(problem, n=2**13, n_effective=1000.0)
    variance = groups.covariance(problem, one, one)[0, 0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    margin = np.sqrt(variance) * nodes
    chance = groups.outcome_probabilities(problem, margin, 0.0, one.lead)
    posterior = weights * chance[:, -1]
    expected = posterior @ chance / posterior.sum()
    assert_allclose(truth.known[0], expected, atol=5e-3)
