"""The posterior of items through time: each item's own Gaussian process, by dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_chain import BESIDE, DRIFT, FAMILIES, LIKELIHOOD, answers, random_pairs, tree

from skpref.gp import ChainRule, PriorRule
from skpref.inference import EP, Problem
from skpref.kernels import Identity, OnColumns


def posterior_of(kernel, comparisons, rule=None):
    rule = ChainRule() if rule is None else rule
    problem = Problem(rule.prior(kernel, comparisons, LIKELIHOOD), comparisons, LIKELIHOOD)
    found = EP(tol=1e-10).run(problem)
    return problem.prior.posterior(found.sites, found.conditioned, LIKELIHOOD), found, problem


@pytest.mark.parametrize("kernel", [BESIDE, FAMILIES], ids=["one drift", "two drifts"])
def test_margins_of_the_answers_are_those_of_the_engine(kernel):
    comparisons = answers(random_pairs(60, 8))
    posterior, found, _ = posterior_of(kernel, comparisons)
    margins = comparisons.rows.margins
    first, second = comparisons.items[margins.first], comparisons.items[margins.second]
    assert_allclose(posterior.margin(first, second)[0], found.conditioned.mean, atol=1e-7)


def test_an_item_is_its_own_process_given_what_was_said_of_it():
    comparisons = answers(random_pairs(60, 5))
    posterior, _, _ = posterior_of(DRIFT, comparisons)
    (known,) = posterior.chains
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


@pytest.mark.parametrize("kernel", [BESIDE, FAMILIES], ids=["one drift", "two drifts"])
def test_methods_agree_with_each_other(kernel):
    comparisons = answers(random_pairs(60, 8))
    posterior, _, _ = posterior_of(kernel, comparisons)
    rng = np.random.default_rng(0)
    asked = np.column_stack(
        [rng.integers(0, 10, 12), rng.integers(0, 4, 12), rng.uniform(-1.0, 14.0, 12)]
    )
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
    sets = asked.reshape(4, 3, 3)
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
