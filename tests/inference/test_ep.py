"""EP against orthant probabilities, quadrature and a serial EP on the noisy margins."""

import numpy as np
import pytest
from core_support import (
    HARD,
    TIGHT_EP,
    apart,
    check_hard,
    random_duels,
    solve,
    solve_small,
    won,
)
from oracles import (
    duel_truth,
    incidence,
    orthant,
    seeds_of,
    serial_ep,
    small_problem,
    tilted_by_quadrature,
)
from scipy_support import normal_cdf
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from tiers_support import thinned

from skpref.inference import EP

NOISES = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0)


# -- the oracle itself -----------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 2, 3, 6, 7])
def test_oracle_knows_equicorrelated_orthants(t):
    # With correlations ½, P(all positive) = 1/(t + 1).
    log_probability, error = orthant(0.5 * np.eye(t) + 0.5).log_probability()
    assert log_probability == pytest.approx(-np.log(t + 1), abs=5e-5)
    assert error < 5e-5


def test_oracle_knows_a_contradiction_in_two_dimensions():
    rho = -1.0 / (1.0 + 2e-4)  # the same margin won and lost, σ² = 10⁻⁴
    truth = np.log(0.25 + np.arcsin(rho) / (2.0 * np.pi))
    log_probability, _ = orthant(np.array([[1.0, rho], [rho, 1.0]])).log_probability()
    assert log_probability == pytest.approx(truth, abs=1e-4)


def test_oracle_agrees_with_scipy_on_six_duels():
    small = small_problem(5)
    A = incidence(small.winner, small.loser, len(small.items))
    covariance = A @ small.kernel(small.items) @ A.T + 0.2 * np.eye(len(A))
    truth = normal_cdf(np.zeros(6), cov=covariance, abseps=1e-8, releps=1e-8, maxpts=500_000)
    assert np.exp(orthant(covariance).log_probability()[0]) == pytest.approx(truth, rel=3e-4)


# -- distance from the truth -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise_variance", "far", "far_evidence", "seeds"),
    [
        (0.1, 0.02, 0.1, range(36)),
        (0.3, 0.01, 0.03, range(72, 108)),
        (1.0, 0.01, 0.03, range(108, 144)),
    ],
)
def test_probabilities_and_evidence_are_close_to_exact(noise_variance, far, far_evidence, seeds):
    for seed in seeds:
        small = small_problem(seed)
        truth = duel_truth(small, noise_variance)
        assert max(truth.log_evidence_error, *truth.probability_error) < 1e-4
        found = solve_small(EP(), small, noise_variance)
        probability = found.posterior.win_probability(small.first, small.second)
        np.testing.assert_allclose(probability, truth.probability, atol=far, err_msg=str(seed))
        assert found.log_evidence == pytest.approx(truth.log_evidence, abs=far_evidence), seed


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 1.0])
def test_one_duel_is_exact(noise_variance):
    # One truncated normal: EP's mean, and its evidence log ½, are those of the truth.
    small = small_problem(0)
    found = solve_small(EP(), small, noise_variance)
    assert found.log_evidence == pytest.approx(np.log(0.5), abs=1e-12)
    winner, loser = small.items[small.winner], small.items[small.loser]
    K = small.kernel(np.concatenate([winner, loser]))
    S = K[0, 0] + K[1, 1] - 2.0 * K[0, 1]
    total = S + 2.0 * noise_variance
    mean, variance = found.posterior.margin(winner, loser)
    assert mean[0] == pytest.approx(S / np.sqrt(total) * np.sqrt(2.0 / np.pi), rel=1e-9)
    assert variance[0] == pytest.approx(S - 2.0 / np.pi * S**2 / total, rel=1e-7)


# -- the fixed point -------------------------------------------------------------------------


@pytest.mark.parametrize(("noise_variance", "seeds"), thinned(seeds_of([1e-6, *NOISES])))
@pytest.mark.parametrize("space", ["margins", "items"])
def test_tilted_moments_equal_the_marginals(noise_variance, seeds, space):
    # Half of them in one space, half in the other, of each kernel and number of duels.
    for seed in (seed for seed in seeds if sum(divmod(seed, 6)) % 2 == (space == "items")):
        found = solve_small(EP(), small_problem(seed), noise_variance, space)
        problem, state = found.problem, found.approximation.state
        tau, nu = state["precision"], state["shift"]
        mean = problem.orient_margins(found.approximation.conditioned.mean)
        variance = found.approximation.conditioned.variance[problem.index]
        cavity_var = 1.0 / (1.0 / variance - tau)
        cavity_mean = cavity_var * (mean / variance - nu)
        for i in range(len(tau)):
            _, tilted_mean, tilted_var = tilted_by_quadrature(
                cavity_mean[i], cavity_var[i], noise_variance
            )
            assert abs(tilted_mean - mean[i]) < 1e-8 * np.sqrt(cavity_var[i])
            assert abs(tilted_var / variance[i] - 1.0) < 1e-8


@pytest.mark.parametrize(
    ("noise_variance", "seeds"),
    thinned(
        [(0.1, range(36)), (1e-4, range(5)), (1.0, range(72, 108)), (1e-2, range(6, 200, 24))], 3
    ),
)
def test_fixed_point_is_that_of_serial_ep_on_noisy_unmerged_margins(noise_variance, seeds):
    for seed in seeds:
        small = small_problem(seed)
        A = incidence(small.winner, small.loser, len(small.items))
        truth = serial_ep(A @ small.kernel(small.items) @ A.T, noise_variance)
        found = solve_small(TIGHT_EP, small, noise_variance)
        winner, loser = small.items[small.winner], small.items[small.loser]
        mean, variance = found.posterior.margin(winner, loser)
        covariance = found.posterior.margin_cov(winner, loser)
        np.testing.assert_allclose(mean, truth.mean, atol=1e-9)
        np.testing.assert_allclose(variance, np.diagonal(truth.covariance), atol=1e-9)
        np.testing.assert_allclose(covariance, truth.covariance, atol=1e-9)
        assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("noise_variance", "seeds"), seeds_of(NOISES))
def test_both_spaces_agree(noise_variance, seeds):
    for seed in seeds[::5]:  # each kernel, and each number of duels
        small = small_problem(seed)
        one = solve_small(TIGHT_EP, small, noise_variance, "margins")
        two = solve_small(TIGHT_EP, small, noise_variance, "items")
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)
        np.testing.assert_allclose(
            one.posterior.win_probability(small.first, small.second),
            two.posterior.win_probability(small.first, small.second),
            atol=1e-9,
        )


@pytest.mark.parametrize("start", ["zero", "elsewhere", "other noise"])
def test_the_fixed_point_does_not_depend_on_the_start_or_the_damping(start):
    comparisons = won(*random_duels(0, 12, 60))
    kernel, noise_variance = RBF(0.8), 0.05
    found = solve(TIGHT_EP, kernel, comparisons, noise_variance)
    n = len(comparisons.duels.counts)
    state = {
        "zero": {"precision": np.zeros(n), "shift": np.zeros(n)},
        "elsewhere": {"precision": np.full(n, 0.7), "shift": np.full(n, 0.1)},
        "other noise": solve(EP(), kernel, comparisons, 0.5).approximation.state,
    }[start]
    for damping in (0.0, 0.5):
        again = clone(TIGHT_EP).set_params(damping=damping).run(found.problem, state)
        assert again.converged
        assert again.sites.log_evidence == pytest.approx(found.log_evidence, abs=1e-9)
        mean = found.approximation.conditioned.mean
        np.testing.assert_allclose(again.conditioned.mean, mean, atol=1e-9)


# -- invariances -----------------------------------------------------------------------------


def probabilities(items, winner, loser, X, kernel=None, noise_variance=0.05):
    kernel = Matern(0.7, nu=2.5) if kernel is None else kernel
    found = solve(TIGHT_EP, kernel, won(items, winner, loser), noise_variance)
    return np.append(found.posterior.win_probability(X[::2], X[1::2]), found.log_evidence)


@pytest.fixture(scope="module")
def some():
    items, winner, loser = random_duels(1, 10, 40)
    X = np.random.default_rng(2).uniform(-1.0, 1.0, (12, 2))
    return items, winner, loser, X, probabilities(items, winner, loser, X)


def test_two_sides_of_a_duel_sum_to_one(some):
    items, winner, loser, X, _ = some
    for noise_variance in (1e-6, 0.1):
        posterior = solve(EP(), RBF(0.5), won(items, winner, loser), noise_variance).posterior
        for noise in (True, False):
            one = posterior.win_probability(X[::2], X[1::2], noise=noise)
            two = posterior.win_probability(X[1::2], X[::2], noise=noise)
            np.testing.assert_allclose(one + two, 1.0, atol=1e-12)


def test_order_of_duels_and_of_items_does_not_matter(some):
    items, winner, loser, X, truth = some
    rng = np.random.default_rng(0)
    order, places = rng.permutation(len(winner)), rng.permutation(len(items))
    back = np.argsort(places)
    found = probabilities(items[places], back[winner[order]], back[loser[order]], X)
    np.testing.assert_allclose(found, truth, atol=1e-9)


def test_items_given_twice_are_one_item(some):
    items, winner, loser, X, truth = some
    twin = np.where(np.arange(len(winner)) % 2, len(items), 0)
    found = probabilities(np.concatenate([items, items]), winner + twin, loser, X)
    np.testing.assert_allclose(found, truth, atol=1e-9)


def test_counted_duels_equal_repeated_ones(some):
    items, winner, loser, X, truth = some
    comparisons = won(items, winner, loser)
    assert comparisons.duels.counts.max() > 1
    found = solve(TIGHT_EP, Matern(0.7, nu=2.5), apart(comparisons), 0.05)
    assert len(found.problem.counts) == len(winner)
    probability = found.posterior.win_probability(X[::2], X[1::2])
    np.testing.assert_allclose(np.append(probability, found.log_evidence), truth, atol=1e-9)


def test_stationary_kernels_do_not_see_a_shift_of_all_items(some):
    items, winner, loser, X, truth = some
    away = np.array([3.0, -17.0])
    found = probabilities(items + away, winner, loser, X + away)
    np.testing.assert_allclose(found, truth, atol=1e-9)


def test_only_the_ratio_of_amplitude_and_noise_counts(some):
    items, winner, loser, X, truth = some
    kernel = 25.0 * Matern(0.7, nu=2.5)
    np.testing.assert_allclose(
        probabilities(items, winner, loser, X, kernel, 25.0 * 0.05), truth, atol=1e-9
    )


def test_exchanging_winners_and_losers_turns_the_utility_over(some):
    items, winner, loser, X, truth = some
    found = probabilities(items, loser, winner, X)
    np.testing.assert_allclose(found[:-1], 1.0 - truth[:-1], atol=1e-9)
    assert found[-1] == pytest.approx(truth[-1], abs=1e-9)


# -- difficult data --------------------------------------------------------------------------


@pytest.mark.parametrize("noise_variance", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("name", thinned(HARD))
def test_hard_data_converge_in_both_spaces(name, noise_variance):
    hard = HARD[name]()
    for space in ("margins", "items"):
        check_hard(solve(EP(), hard.kernel, hard.comparisons, noise_variance, space), hard)


@pytest.mark.parametrize("noise_variance", [1e-4, 1e-3, 1e-2, 0.1, 1.0])
def test_many_noisy_duels_of_few_items_converge(noise_variance):
    comparisons = won(*random_duels(0, 100, 20_000, noise=0.7))
    found = solve(EP(), RBF(1.0), comparisons, noise_variance)
    assert found.approximation.converged
    # So many duels leave little doubt which items are good.
    X = comparisons.items
    utility = np.sin(2.0 * X).sum(axis=1)
    assert np.corrcoef(found.posterior.mean(X), utility)[0, 1] > 0.98


def test_stopping_early_is_told():
    comparisons = won(*random_duels(0, 12, 60))
    found = solve(EP(max_iter=2), RBF(0.8), comparisons, 0.01).approximation
    assert not found.converged
    assert found.n_iter == 2
    assert found.residual > 1e-8


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"max_iter": 0}, ValueError, "max_iter must lie in"),
        ({"max_iter": 2.5}, TypeError, "max_iter must be an integer"),
        ({"tol": 0.0}, ValueError, "tol of the engine must lie in"),
        ({"damping": 1.0}, ValueError, "damping must lie in"),
        ({"damping": "much"}, TypeError, "damping must be a number"),
    ],
)
def test_bad_options_say_what_is_allowed(parameters, error, match):
    comparisons = won(*random_duels(0, 4, 6))
    with pytest.raises(error, match=match):
        solve(EP(**parameters), DotProduct(), comparisons, 0.1)
