"""The posterior of items through time: each item's own Gaussian process, by dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern
from test_chain import (
    CASES,
    DRIFT,
    LIKELIHOOD,
    OF,
    TEAMS,
    answers,
    random_pairs,
    tree,
)

from skpref.duels import Comparisons
from skpref.gp import ChainRule, PriorRule
from skpref.inference import EP, Problem
from skpref.kernels import Identity, OnColumns, Teams


def posterior_of(kernel, comparisons, rule=None):
    rule = ChainRule() if rule is None else rule
    problem = Problem(rule.prior(kernel, comparisons, LIKELIHOOD), comparisons, LIKELIHOOD)
    found = EP(tol=1e-10).run(problem)
    return problem.prior.posterior(found.sites, found.conditioned, LIKELIHOOD), found, problem


@pytest.mark.parametrize("kernel, comparisons", CASES, ids=OF)
def test_margins_of_the_answers_are_those_of_the_engine(kernel, comparisons):
    posterior, found, _ = posterior_of(kernel, comparisons)
    margins = comparisons.rows.margins
    first, second = comparisons.items[margins.first], comparisons.items[margins.second]
    assert_allclose(posterior.margin(first, second)[0], found.conditioned.mean, atol=1e-7)


def test_an_item_is_its_own_process_given_what_was_said_of_it():
    comparisons = answers(random_pairs(60, 5))
    posterior, _, _ = posterior_of(DRIFT, comparisons)
    known = posterior.chains
    course, chain = known.course, 2
    at = slice(course.begin[chain], course.begin[chain + 1])
    who = known.who[chain]
    nodes = np.column_stack([np.full(at.stop - at.start, who), np.zeros(at.stop - at.start)])
    nodes = np.column_stack([nodes, course.times[at]])
    times = np.array([-3.0, 0.0, 0.5, course.times[at][1], 4.2, 11.0, 30.0])
    asked = np.column_stack([np.full(7, who), np.zeros(7), times])
    K, cross = DRIFT(nodes), DRIFT(asked, nodes)
    precision, shift = course.precision[at], course.shift[at]
    inner = np.linalg.inv(np.eye(len(K)) + precision[:, None] * K)
    cov = DRIFT(asked) - cross @ inner @ (precision[:, None] * cross.T)
    assert_allclose(posterior.mean(asked), cross @ inner @ shift, atol=1e-7)
    assert_allclose(posterior.cov(asked), cov, atol=1e-9)
    assert_allclose(posterior.var(asked), np.diagonal(cov), rtol=1e-9)


def test_joint_moments_without_loops_are_exact_for_one_item():
    comparisons = answers(tree(20))
    exact, _, _ = posterior_of(DRIFT, comparisons, PriorRule())
    posterior, _, _ = posterior_of(DRIFT, comparisons)
    rng = np.random.default_rng(0)
    asked = np.column_stack([np.full(30, 3.0), np.zeros(30), rng.uniform(-2.0, 15.0, 30)])
    assert_allclose(posterior.cov(asked), exact.cov(asked), atol=1e-7)
    one, two = asked[:15], asked[15:]
    assert_allclose(posterior.margin(one, two)[1], exact.margin(one, two)[1], atol=1e-7)
    drawn = posterior.sample(asked, 20_000, 0)
    assert_allclose(np.cov(drawn), exact.cov(asked), atol=0.05)


def items_to_ask(comparisons, seed=0):
    """Some items, of which some were never seen."""
    rng = np.random.default_rng(seed)
    asked = rng.permutation(comparisons.items)[:12].copy()
    asked[::3, 0] += 5.0
    asked[:, 1] += rng.integers(0, 2, 12)
    asked[:, -1] = rng.uniform(-1.0, 14.0, 12)
    return asked


@pytest.mark.parametrize("at_once", [False, True], ids=["", "of one time"])
@pytest.mark.parametrize("kernel, comparisons", CASES, ids=OF)
def test_methods_agree_with_each_other(kernel, comparisons, at_once):
    posterior, _, _ = posterior_of(kernel, comparisons)
    asked = items_to_ask(comparisons)
    if at_once:
        asked[:, -1] = 13.0
    cov = posterior.cov(asked)
    assert_allclose(np.diagonal(cov), posterior.var(asked), rtol=1e-12)
    assert np.linalg.eigvalsh(cov).min() > -1e-10
    means, variance, beside = posterior.moments_with_first(asked, 5)
    assert_allclose(means[:, 0], posterior.mean(asked))
    assert_allclose(variance, posterior.var(asked))
    off = ~np.eye(12, 5, dtype=bool)
    assert_allclose(beside[off], cov[:, :5][off], atol=1e-12)
    spread = posterior.margin(asked[:6], asked[6:])[1]
    expected = cov[range(6), range(6)] + cov[range(6, 12), range(6, 12)]
    assert_allclose(spread, expected - 2.0 * cov[range(6), range(6, 12)], atol=1e-10)
    sets = asked.reshape(4, 3, -1)
    weights = np.random.default_rng(1).normal(size=(2, 12))
    sums = posterior.component_sums(asked, weights)
    assert_allclose(sums[0][:, 0], weights @ posterior.mean(asked), atol=1e-10)
    assert_allclose(sums[1], np.sum((weights @ cov) * weights, axis=1), atol=1e-10)
    assert_allclose(posterior.choice_proba(sets).sum(axis=1), 1.0)
    assert_allclose(
        posterior.choice_proba(sets[:, :2])[:, 0],
        posterior.win_probability(sets[:, 0], sets[:, 1]),
        atol=1e-9,
    )


def test_who_is_new_has_the_prior():
    posterior, _, _ = posterior_of(DRIFT, answers(random_pairs(20, 4)))
    new = np.array([[99.0, 0.0, 3.0], [99.0, 0.0, 8.0], [98.0, 0.0, 8.0]])
    assert_allclose(posterior.mean(new), 0.0)
    assert_allclose(posterior.cov(new), DRIFT(new), atol=1e-12)


@pytest.mark.parametrize("method", ["joint_with", "mean_gradient", "sample_paths", "joint_rows"])
def test_what_it_does_not_know_is_refused(method):
    posterior, _, _ = posterior_of(DRIFT, answers(random_pairs(20, 4)))
    with pytest.raises(NotImplementedError, match="items='joint'"):
        getattr(posterior, method)(np.zeros(3) if method == "joint_with" else 1)


def test_a_group_that_was_never_seen_has_the_variance_of_the_prior():
    kernel = DRIFT + 2.0 * OnColumns(Identity(), [1])
    posterior, _, _ = posterior_of(kernel, answers(random_pairs(40, 4)))
    seen, unseen = np.array([[0.0, 1.0, 5.0]]), np.array([[0.0, 7.0, 5.0]])
    alone = posterior_of(DRIFT, answers(random_pairs(40, 4)))[0]
    assert posterior.var(unseen)[0] > 2.0 + 0.5 * alone.var(unseen)[0]
    assert posterior.var(unseen)[0] > posterior.var(seen)[0] + 0.5
    # Two items of a group that is not known share it, as they do in the prior.
    rows = np.array([[20.0, 7.0, 5.0], [21.0, 7.0, 5.0], [22.0, 8.0, 5.0], [0.0, 1.0, 5.0]])
    prior = 2.0 * np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    alone = np.diag(DRIFT(rows[:3]).diagonal())
    assert_allclose(posterior.cov(rows)[:3, :3], prior + alone, atol=1e-12)
    between = posterior.pair_block(rows[[0, 0]], rows[[1, 2]])[1]
    assert_allclose(between, [2.0 * alone[0, 0], 4.0 + 2.0 * alone[0, 0]], rtol=1e-12)


def test_weighted_sums_of_players_alone_at_several_times():
    kernel, comparisons = CASES[OF.index("teams")]
    posterior, _, _ = posterior_of(kernel, comparisons)
    asked = items_to_ask(comparisons)
    asked[:, 0], asked[:, 2] = 1.0, -1.0  # one player, at twelve times
    weights = np.random.default_rng(1).normal(size=(2, 12))
    expected = np.sum((weights @ posterior.cov(asked)) * weights, axis=1)
    assert_allclose(posterior.component_sums(asked, weights)[1], expected, rtol=1e-9)


def test_teams_of_players_without_loops_are_exact():
    # Every player was in one match alone, so that nothing is passed on to others.
    n = 12
    rng = np.random.default_rng(0)
    ids = rng.permutation(4 * n).reshape(n, 4).astype(float)
    kind, share = rng.integers(0, 2, (n, 4)), rng.uniform(0.2, 1.0, (n, 4))
    times = rng.integers(0, 12, n)
    rows = [
        np.column_stack([ids[:, a], kind[:, a], ids[:, b], kind[:, b], share[:, [a, b]], times])
        for a, b in ((0, 1), (2, 3))
    ]
    won = rng.random(n) < 0.5
    comparisons = Comparisons.from_duels(np.concatenate(rows), np.arange(n), n + np.arange(n), won)
    kernel = Teams(
        0.3 * OnColumns(Identity(), [0]) * OnColumns(Matern(5.0, nu=1.5), [2]),
        TEAMS.members,
        [4, 5],
    )
    exact, found, _ = posterior_of(kernel, comparisons, PriorRule())
    posterior, chained, _ = posterior_of(kernel, comparisons)
    assert_allclose(chained.sites.log_evidence, found.sites.log_evidence, rtol=1e-9)
    asked = comparisons.items.copy()
    asked[:, -1] += 1.5
    asked[:5, 2] = -1.0
    assert_allclose(posterior.mean(asked), exact.mean(asked), atol=1e-7)
    for each in range(5):  # of one player
        assert_allclose(posterior.var(asked[each : each + 1]), exact.var(asked[each : each + 1]))
