"""Effects of groups of answers: the same as dense kernels of the items in each group."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref.duels import Comparisons
from skpref.gp import DenseItems, DenseMargins, Grouped, choice_proba, choose_prior
from skpref.gp import utility_posterior as made_posterior
from skpref.inference import EP, Laplace, Problem
from skpref.kernels import Identity, Linear, OnColumns
from skpref.likelihoods import GradedProbit, Probit

LIKELIHOODS = {"duels": Probit(0.8), "ties": GradedProbit(0.8, tie_threshold=0.4)}
ENGINES = {"ep": EP(tol=1e-11, max_iter=2000), "laplace": Laplace(tol=1e-20)}
N_ITEMS, N_GROUPS, N = 5, 7, 40


def variances(rng):
    return [ConstantKernel(each) for each in np.exp(rng.normal(size=4))]


def kernel_of(rng):
    """Effects of items and of a slope, shared and in each group (column 2)."""
    a, b, c, d = variances(rng)
    slope = OnColumns(Linear(1.0), [1])
    shared = a * OnColumns(Identity(), [0]) + b * slope
    return shared + c * OnColumns(Identity(), [0, 2]) + d * slope * OnColumns(Identity(), [2])


def answers_of(rng, kind):
    """Answers about rows of id, slope and group; groups have from one answer on."""
    group = rng.integers(0, rng.integers(1, N_GROUPS + 1), N)
    size = 3 if kind == "choices" else 2
    ids = np.array([rng.permutation(N_ITEMS)[:size] for _ in range(N)])
    slopes = rng.normal(size=ids.shape).round(1)
    rows = np.stack([ids, slopes, np.repeat(group[:, None], size, axis=1)], axis=2)
    rows = rows.reshape(-1, 3).astype(float)
    places = np.arange(N * size).reshape(N, size)
    if kind == "choices":
        ranks = np.array([rng.permutation(size) + 1 for _ in range(N)])
        found = Comparisons.from_ranks(rows, places, ranks)
    else:
        outcome = rng.integers(0, 3 if kind == "ties" else 2, N)
        found = Comparisons.from_duels(
            rows, *places.T, outcome == 1, rng.integers(1, 4, N), kind=(outcome == 2).astype(int)
        )
    return replace(found, group_column=2)


def runs(kernel, comparisons, likelihood, engine, priors=(DenseItems, Grouped)):
    for kind in priors:
        prior = kind.from_comparisons(kernel, comparisons, likelihood, True)
        problem = Problem(prior, comparisons, likelihood)
        yield problem, engine.run(problem)


def close(found, truth):
    largest = max(np.max(np.abs(truth), initial=0.0), 1.0)
    assert_allclose(found, truth, rtol=0.0, atol=1e-8 * largest)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["duels", "ties", "choices"])
@pytest.mark.parametrize("name", ENGINES)
def test_evidence_gradient_and_margins_are_those_of_all_items(name, kind, seed):
    if (name, kind) == ("laplace", "choices"):
        pytest.skip("Laplace takes no choices")
    rng = np.random.default_rng(seed)
    kernel, seen = kernel_of(rng), answers_of(rng, kind)
    likelihood, engine = LIKELIHOODS.get(kind, Probit(0.8)), ENGINES[name]
    (dense, truth), (problem, found) = runs(kernel, seen, likelihood, engine)
    assert choose_prior(kernel, seen, likelihood) is Grouped
    close(found.sites.log_evidence, truth.sites.log_evidence)
    slopes = [engine.evidence_gradient(*each) for each in ((dense, truth), (problem, found))]
    close(slopes[1].kernel, slopes[0].kernel)
    close(slopes[1].likelihood, slopes[0].likelihood)
    for part in ("mean", "variance", "log_det", "dual"):
        close(getattr(found.conditioned, part), getattr(truth.conditioned, part))
    for one, other in zip(found.conditioned.joint, truth.conditioned.joint, strict=True):
        close(one, other)
    close(problem.prior.covariance(), dense.prior.covariance())
    close(problem.prior.variance, dense.prior.variance)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["duels", "choices"])
def test_posteriors_of_the_population_and_of_known_groups(kind, seed):
    rng = np.random.default_rng(seed)
    kernel, seen = kernel_of(rng), answers_of(rng, kind)
    (dense, truth), (problem, found) = runs(kernel, seen, Probit(0.8), ENGINES["ep"])
    arguments = truth.sites, truth.conditioned, Probit(0.8)
    whole = dense.prior.posterior(*arguments)
    A, B = (
        np.column_stack([rng.integers(0, N_ITEMS + 1, 12), rng.normal(size=12)]) for _ in range(2)
    )
    group = rng.integers(-1, N_GROUPS, 12)
    group[group > seen.items[:, 2].max()] = -1
    ends = [np.column_stack([rows, group]) for rows in (A, B)]
    new = [np.column_stack([rows, np.full(12, -1)]) for rows in (A, B)]
    sets = np.arange(12).reshape(4, 3)
    in_sets = np.column_stack([A, np.repeat(group[:4], 3)])
    # The mean over all groups: effects of groups are no part of a covariance with the anchors.
    shared = replace(whole, kernel=kernel.k1.k1, utilities=None)
    for prior, approximation in ((dense.prior, truth), (problem.prior, found)):
        parts = approximation.sites, approximation.conditioned, Probit(0.8)
        posterior = made_posterior(prior, *parts, seen)
        known = posterior.in_groups(group)
        close(known.outcome_log_proba(A, B), whole.outcome_log_proba(*ends))
        close(known.win_probability(A, B), whole.win_probability(*ends))
        close(posterior.outcome_log_proba(A, B), whole.outcome_log_proba(*new))
        in_known = choice_proba(posterior.in_groups(group[:4]), A, sets)
        close(in_known, choice_proba(whole, in_sets, sets))
        close(posterior.mean(A), shared.mean(ends[0]))
        close(posterior.cov(A), shared.cov(ends[0]))
        wide = posterior.win_probability(A, B, noise=False)
        close(wide, shared.win_probability(*ends, noise=False))
        several, shares = np.stack([A, B], axis=1), np.array([0.3, 0.7])
        here = np.unique(seen.items[seen.rows.margins.first, 2])
        rows = np.stack([np.insert(several, 2, each, axis=2) for each in here], axis=2)
        rows = rows.reshape(12, -1, 3)
        truths = whole.component_averages(rows, np.repeat(shares / len(here), len(here)))
        for one, other in zip(posterior.group_averages(several, shares), truths, strict=True):
            close(one, other)


@pytest.mark.parametrize("kind", ["duels", "choices"])
def test_a_column_that_is_one_within_every_answer_has_groups_too(kind):
    rng = np.random.default_rng(7)
    kernel, seen = kernel_of(rng), replace(answers_of(rng, kind), group_column=None)
    assert choose_prior(kernel, seen, Probit(0.8)) is Grouped
    (dense, truth), (problem, found) = runs(kernel, seen, Probit(0.8), ENGINES["ep"])
    close(found.sites.log_evidence, truth.sites.log_evidence)
    slopes = [ENGINES["ep"].evidence_gradient(*each) for each in ((dense, truth), (problem, found))]
    close(slopes[1].kernel, slopes[0].kernel)
    # Its value is a feature like others: rows of two people can be compared, and new people.
    whole, posterior = (
        each.prior.posterior(run.sites, run.conditioned, Probit(0.8))
        for each, run in ((dense, truth), (problem, found))
    )
    rows = np.column_stack(
        [rng.integers(0, N_ITEMS, 12), rng.normal(size=12), rng.integers(0, N_GROUPS + 2, 12)]
    )
    close(posterior.mean(rows), whole.mean(rows))
    close(posterior.cov(rows), whole.cov(rows))
    # Of answers that go across two people none is of a group.
    across = seen.items.copy()
    across[seen.positions[0, 0], 2] = N_GROUPS + 9
    assert choose_prior(kernel, replace(seen, items=across), Probit(0.8)) is not Grouped


def test_effects_of_pairs_within_groups():
    rng = np.random.default_rng(3)
    group = rng.integers(0, 4, N)
    ids = np.array([rng.permutation(4)[:2] for _ in range(N)])
    pair = 4 * ids.min(axis=1) + ids.max(axis=1) + 16 * group
    rows = [np.column_stack([ids[:, k], group, pair]).astype(float) for k in range(2)]
    seen = Comparisons.from_duels(
        np.concatenate(rows), np.arange(N), np.arange(N) + N, rng.random(N) < 0.5
    )
    seen = replace(seen, group_column=1)
    a, b, c, _ = variances(rng)
    kernel = a * OnColumns(Identity(), [0]) + b * OnColumns(Identity(), [0, 1])
    kernel += c * OnColumns(Identity(), [0, 1, 2])
    (dense, truth), (problem, found) = runs(kernel, seen, Probit(0.8), ENGINES["ep"])
    close(found.sites.log_evidence, truth.sites.log_evidence)
    whole = dense.prior.posterior(truth.sites, truth.conditioned, Probit(0.8))
    parts = found.sites, found.conditioned, Probit(0.8)
    posterior = made_posterior(problem.prior, *parts, seen)
    first, second = (each[:, :1] for each in rows)
    # Whichever is named first, a pair is the same; one that did not meet has a new effect.
    known = posterior.in_groups(group)
    close(known.outcome_log_proba(first, second), whole.outcome_log_proba(*rows))
    turned = known.outcome_log_proba(second, first)[:, ::-1]
    close(turned, whole.outcome_log_proba(*rows))
    apart = [np.column_stack([each, group, np.full(N, -1)]) for each in (first, second)]
    elsewhere = posterior.in_groups((group + 1) % 4)
    met = {(*sorted(each), g) for each, g in zip(ids.tolist(), group.tolist(), strict=True)}
    moved = [(*sorted(each), (g + 1) % 4) for each, g in zip(ids.tolist(), group, strict=True)]
    is_new = np.array([each not in met for each in moved])
    assert is_new.any()
    apart = [np.column_stack([e, (group + 1) % 4, np.full(N, -1)]) for e in (first, second)]
    close(
        elsewhere.outcome_log_proba(first, second)[is_new],
        whole.outcome_log_proba(*apart)[is_new],
    )


def test_kernels_of_many_features_are_taken_densely():
    rng = np.random.default_rng(0)
    seen = answers_of(rng, "duels")
    smooth = OnColumns(RBF(0.7), [1])
    kernel = smooth + 0.5 * OnColumns(Identity(), [0, 2])
    assert choose_prior(kernel, seen, Probit(0.8)) in (DenseItems, DenseMargins)
    (dense, truth), (other, found) = runs(
        kernel, seen, Probit(0.8), ENGINES["ep"], (DenseItems, DenseMargins)
    )
    every = [
        made_posterior(each.prior, run.sites, run.conditioned, Probit(0.8), seen)
        for each, run in ((dense, truth), (other, found))
    ]
    A, B = (np.column_stack([rng.integers(0, 5, 9), rng.normal(size=9)]) for _ in range(2))
    group = np.minimum(rng.integers(0, 7, 9), int(seen.items[:, 2].max()))
    close(*(each.in_groups(group).outcome_log_proba(A, B) for each in every))
    assert every[0].effect_variance == pytest.approx(0.5)


def test_without_variance_groups_are_as_none():
    rng = np.random.default_rng(1)
    seen = answers_of(rng, "duels")
    kernel = OnColumns(Identity(), [0])
    zero = ConstantKernel(0.0, "fixed") * OnColumns(Identity(), [0, 2])
    ((_, truth),) = runs(kernel, replace(seen, group_column=None), Probit(0.8), EP(), (DenseItems,))
    ((_, found),) = runs(kernel + zero, seen, Probit(0.8), EP(), (Grouped,))
    assert found.sites.log_evidence == pytest.approx(truth.sites.log_evidence, abs=1e-9)


@pytest.mark.parametrize("n_items", [3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_margins_of_the_same_answers_at_other_values_of_a_column(seed, n_items):
    # As those of judges are asked for at other reliabilities, the last column here.
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 6, N)
    ids = np.array([rng.permutation(n_items)[:2] for _ in range(N)])
    slopes, factor = rng.normal(size=(N, 2)), rng.normal(size=N)
    rows = np.stack([ids, slopes, *(np.repeat(each[:, None], 2, axis=1) for each in
                     (group, factor))], axis=2).reshape(-1, 4)  # fmt: skip
    places = np.arange(2 * N).reshape(N, 2)
    seen = Comparisons.from_duels(rows, *places.T, rng.random(N) < 0.5)
    seen = replace(seen, group_column=2)
    a, b, c, _ = variances(rng)
    times = OnColumns(Linear(1.0), [3])
    kernel = a * OnColumns(Identity(), [0]) * times + b * OnColumns(Linear(1.0), [1])
    kernel += c * OnColumns(Identity(), [0, 2]) * times
    items = seen.items
    others = []
    for value in (0.0, 1.0, -1.0):
        others.append(seen.with_items(np.column_stack([items[:, :3], np.full(len(items), value)])))
    (dense, truth), (problem, found) = runs(kernel, seen, Probit(0.8), ENGINES["ep"])
    expected = dense.prior.margins_of(others, truth, Probit(0.8))
    moments = problem.prior.margins_of(others, found, Probit(0.8))
    for one, other in zip(moments, expected, strict=True):
        close(one.mean, other.mean)
        close(one.variance, other.variance)
