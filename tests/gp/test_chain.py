"""The prior of items that are independent through time, beside the exact ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import slopes_along_signs
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import ChainRule, IndependentItems, PriorRule
from skpref.inference import EP, Laplace, Problem
from skpref.kernels import Identity, OnColumns, Seasons, Teams, Wiener
from skpref.likelihoods import Probit

WHO = OnColumns(Identity(), [0])
DRIFT = (
    0.7 * WHO + 0.3 * WHO * OnColumns(Matern(5.0, nu=1.5), [2]) + WHO * OnColumns(Wiener(0.1), [2])
)
SEASONAL = WHO + 0.6 * WHO * OnColumns(Matern(9.0, nu=0.5) * Seasons([4.0, 8.0], 0.4), [2])
BESIDE = DRIFT + 0.2 * OnColumns(DotProduct(0.5), [1]) + 0.4 * OnColumns(Identity(), [1])
# Of two members with a category each: who they are, and the category.
MEMBER = (
    0.7 * WHO
    + 0.3 * WHO * OnColumns(Matern(5.0, nu=1.5), [2])
    + 0.5 * WHO * OnColumns(Wiener(0.1), [2])
    + 0.4 * OnColumns(Identity(), [1])
)
TEAMS = Teams(MEMBER, members=[[0, 1], [2, 3]], weights=[4, 5])
LIKELIHOOD = Probit(0.5)


def answers(pairs, seed=0):
    """Duels of some pairs of items, each at a random time and with a random feature each."""
    rng = np.random.default_rng(seed)
    n = len(pairs)
    times = rng.integers(0, 12, n).astype(float)
    rows = [
        np.column_stack([side, rng.integers(0, 3, n), times])
        for side in np.asarray(pairs, dtype=float).T
    ]
    won = rng.random(n) < 0.5
    return Comparisons.from_duels(np.concatenate(rows), np.arange(n), n + np.arange(n), won)


def answers_of_teams(n, n_players, seed=0):
    """Duels of teams of two, some of one player or with a player who is in both."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 12, n).astype(float)
    rows = []
    for _ in range(2):
        ids = rng.integers(0, n_players, (n, 2)).astype(float)
        ids[rng.random(n) < 0.2, 1] = -1.0
        kind, share = rng.integers(0, 3, (n, 2)), rng.uniform(0.2, 1.0, (n, 2))
        rows.append(np.column_stack([ids[:, 0], kind[:, 0], ids[:, 1], kind[:, 1], share, times]))
    won = rng.random(n) < 0.5
    return Comparisons.from_duels(np.concatenate(rows), np.arange(n), n + np.arange(n), won)


def random_pairs(n, n_items, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(n_items, 2, replace=False) for _ in range(n)]


CASES = [
    (BESIDE, answers(random_pairs(80, 6))),
    (TEAMS, answers_of_teams(80, 6)),
    (SEASONAL, answers(random_pairs(80, 6))),
]
OF = ["items", "teams", "seasons"]
SMALL = [
    (BESIDE, answers(random_pairs(20, 4))),
    (TEAMS, answers_of_teams(20, 4)),
    (SEASONAL, answers(random_pairs(20, 4))),
]


def tree(n, seed=0):
    """Pairs without a loop: what an item's messages say is then exact."""
    rng = np.random.default_rng(seed)
    return [(k, rng.integers(0, k)) for k in range(1, n)]


def both(kernel, comparisons, engine):
    for rule in (PriorRule(), ChainRule()):
        problem = Problem(rule.prior(kernel, comparisons, LIKELIHOOD), comparisons, LIKELIHOOD)
        found = engine.run(problem)
        slopes = engine.evidence_gradient(problem, found)
        posterior = problem.prior.posterior(found.sites, found.conditioned, LIKELIHOOD)
        yield found, slopes, posterior


@pytest.mark.parametrize("engine", [EP(tol=1e-10), Laplace(tol=1e-18)], ids=["ep", "laplace"])
@pytest.mark.parametrize("seed", range(3))
def test_without_loops_it_is_the_exact_prior(engine, seed):
    comparisons = answers(tree(25, seed), seed)
    exact, found = both((DRIFT, SEASONAL)[seed % 2], comparisons, engine)
    assert_allclose(found[0].sites.log_evidence, exact[0].sites.log_evidence, rtol=1e-9)
    assert_allclose(found[0].conditioned.variance, exact[0].conditioned.variance, rtol=1e-7)
    assert_allclose(found[0].conditioned.mean, exact[0].conditioned.mean, atol=1e-7)
    assert_allclose(found[1].kernel, exact[1].kernel, atol=1e-7)
    assert_allclose(found[1].likelihood, exact[1].likelihood, atol=1e-7)
    rng = np.random.default_rng(seed)
    asked = np.column_stack([rng.integers(0, 27, 60), np.zeros(60), rng.uniform(-2.0, 15.0, 60)])
    assert_allclose(found[2].mean(asked), exact[2].mean(asked), atol=1e-7)
    assert_allclose(found[2].var(asked), exact[2].var(asked), rtol=1e-7)


@pytest.mark.parametrize("kernel, comparisons", CASES, ids=OF)
def test_means_are_exact_and_so_is_the_gradient_of_the_evidence(kernel, comparisons):
    rng = np.random.default_rng(1)
    n = len(comparisons.rows.margins.first)
    precision, shift = rng.uniform(0.0, 1.5, n), rng.normal(size=n)
    exact = PriorRule().prior(kernel, comparisons, LIKELIHOOD)
    prior = IndependentItems(kernel, comparisons)
    assert_allclose(prior.variance, exact.variance, rtol=1e-12)
    assert_allclose(prior.times(shift), exact.times(shift), atol=1e-11)
    found, truth = prior.condition(precision, shift), exact.condition(precision, shift)
    assert_allclose(found.mean, truth.mean, atol=1e-8)
    assert_allclose(found.dual, truth.dual, atol=1e-8)
    moved, centre = (
        prior.condition_on_shift(found, precision, -shift),
        prior.centre(precision, shift),
    )
    assert_allclose(moved.mean, -truth.mean, atol=1e-8)
    assert_allclose(centre[0], truth.mean, atol=1e-8)

    def evidence(theta):
        prior = IndependentItems(kernel.clone_with_theta(theta), comparisons)
        given = prior.condition(precision, shift)
        return 0.5 * (shift @ given.mean - given.log_det)

    theta, step = kernel.theta, 1e-4
    slopes = [
        (evidence(theta + each) - evidence(theta - each)) / (2.0 * step)
        for each in np.eye(len(theta)) * step
    ]
    assert_allclose(prior.pull_back(found, precision), slopes, rtol=1e-5, atol=1e-6)


def test_variances_and_the_log_determinant_are_near_the_exact_ones():
    comparisons = answers(random_pairs(150, 40))
    n = len(comparisons.rows.margins.first)
    precision = np.full(n, 0.6)
    exact = PriorRule().prior(BESIDE, comparisons, LIKELIHOOD).condition(precision, precision)
    found = IndependentItems(BESIDE, comparisons).condition(precision, precision)
    assert_allclose(found.variance, exact.variance, rtol=0.2)
    assert_allclose(found.log_det, exact.log_det, rtol=0.02)


@pytest.mark.parametrize(
    ("engine", "kernel", "comparisons"),
    [(Laplace(tol=1e-18), *SMALL[0]), (EP(tol=1e-10), *SMALL[1])],
    ids=["laplace-items", "ep-teams"],
)
def test_the_evidence_of_engines_has_the_gradient_they_say(engine, kernel, comparisons):
    def run(theta, noise):
        given, likelihood = kernel.clone_with_theta(theta), Probit(noise)
        problem = Problem(IndependentItems(given, comparisons), comparisons, likelihood)
        return problem, engine.run(problem)

    def log_evidence(at):
        return run(at[:-1], np.exp(at[-1]))[1].sites.log_evidence

    found = engine.evidence_gradient(*run(kernel.theta, 0.5))
    at = np.append(kernel.theta, np.log(0.5))
    signs, slopes = slopes_along_signs(log_evidence, at, 2e-3)
    assert_allclose(signs @ np.append(found.kernel, found.likelihood), slopes, rtol=0.0, atol=2e-6)


def test_it_does_not_matter_where_messages_start():
    comparisons = answers(random_pairs(60, 8))
    n = len(comparisons.rows.margins.first)
    first = IndependentItems(BESIDE, comparisons).condition(np.full(n, 5.0), np.ones(n))
    again = IndependentItems(BESIDE, comparisons).condition(np.full(n, 0.3), np.ones(n))
    anew = IndependentItems(BESIDE, answers(random_pairs(60, 8))).condition(
        np.full(n, 0.3), np.ones(n)
    )
    assert not np.allclose(first.variance, again.variance)
    assert_allclose(again.variance, anew.variance, rtol=1e-9)
    assert_allclose(again.mean, anew.mean, atol=1e-9)


def test_other_kernels_and_answers_are_refused():
    comparisons = answers(random_pairs(10, 4))
    with pytest.raises(ValueError, match=r"who an item is times Matern"):
        IndependentItems(RBF(), comparisons)
    assert ChainRule().cost(RBF(), comparisons, LIKELIHOOD).multiplications == np.inf
    items = np.column_stack([np.arange(3.0), np.zeros((3, 2))])
    joint = Comparisons.from_ranks(items, [[0, 1, 2]], [[1, 2, 2]])
    with pytest.raises(ValueError, match="need duels"):
        IndependentItems(DRIFT, joint)


@pytest.mark.parametrize("engine", [EP(tol=1e-10), Laplace(tol=1e-18)], ids=["ep", "laplace"])
def test_an_item_beside_itself_differs_by_what_stays_alone(engine):
    # At one time, in two forms of which a feature differs: the walk is in both.
    rows = np.array([[0.0, 1.0, 2.0], [0.0, -0.5, 2.0]])
    kernel = DRIFT + 0.8 * OnColumns(DotProduct(0.0, "fixed"), [1])
    for n in (1, 3):
        comparisons = Comparisons.from_duels(rows, [0] * n, [1] * n, [True] * n)
        exact, found = both(kernel, comparisons, engine)
        assert_allclose(found[0].sites.log_evidence, exact[0].sites.log_evidence, rtol=1e-9)
        assert_allclose(found[0].conditioned.variance, exact[0].conditioned.variance, rtol=1e-7)
        assert_allclose(found[0].conditioned.mean, exact[0].conditioned.mean, atol=1e-7)
        assert_allclose(found[1].kernel, exact[1].kernel, atol=1e-7)


def test_an_item_beside_itself_at_another_time_is_refused():
    rows = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 3.0]])
    comparisons = Comparisons.from_duels(rows, [0, 0], [2, 1], [True, True])
    with pytest.raises(ValueError, match=r"none of an item with itself at another time"):
        ChainRule().check(DRIFT, comparisons)
    assert ChainRule().cost(DRIFT, comparisons, LIKELIHOOD).multiplications == np.inf
    ChainRule().check(DRIFT, comparisons.part(np.array([0])))


def test_utilities_far_above_the_noise_are_refused():
    rng = np.random.default_rng(0)
    comparisons = answers(random_pairs(200, 12))
    items = comparisons.items.copy()
    items[:, 1] = 1e4 * rng.normal(size=len(items))
    wide = Comparisons(
        items, comparisons.positions, comparisons.order, comparisons.kind, comparisons.weight
    )
    kernel = DRIFT + OnColumns(DotProduct(1.0), [1])
    prior = IndependentItems(kernel, wide)
    n = prior.n_margins
    with pytest.raises(ValueError, match="far more than the noise"):
        prior.condition(np.full(n, 1e6), np.ones(n))


@pytest.mark.usefixtures("chains")
@pytest.mark.parametrize("amplitude", [1e2, 1e3])
def test_rounding_does_not_keep_messages_from_rest(amplitude):
    """At 20 000 times the noise it moves them by 5e-10 of themselves: ten of twelve fits failed."""
    rng = np.random.default_rng(1)
    who = rng.integers(0, 4, (12, 2))
    who[:, 1] = (who[:, 0] + rng.integers(1, 4, 12)) % 4
    times = np.repeat(np.sort(rng.random(12)), 2).reshape(12, 2, 1)
    X = np.concatenate([who[:, :, None], rng.normal(size=(12, 2, 1)), times], axis=2)
    y = rng.integers(0, 2, 12)
    names = OnColumns(Identity(), [0])
    kernel = 0.03 * OnColumns(DotProduct(0.0, "fixed"), [1]) + amplitude * names
    kernel += 1e-4 * names * OnColumns(Matern(0.2, nu=0.5), [2])

    def probabilities(items, rows):
        engine = EP(items=items)
        model = PairwisePreferenceRegressor(
            kernel, noise_variance=0.05, optimizer=None, inference=engine
        )
        return model.fit(X[rows], y[rows]).predict_proba(X)[:, 1]

    found = probabilities("independent", np.arange(12))
    assert_allclose(found, probabilities("independent", np.arange(12)[::-1]), atol=1e-6)
    assert_allclose(found, probabilities("joint", np.arange(12)), atol=0.05)
