"""Laplace: the mode by other means, the evidence from a numerical Hessian, hard data."""

from itertools import pairwise

import numpy as np
import pytest
from core_support import (
    HARD,
    TIGHT_EP,
    TIGHT_LAPLACE,
    apart,
    check_hard,
    random_duels,
    solve,
    solve_small,
    won,
)
from oracles import central_gradient, duel_truth, incidence, seeds_of, small_problem
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF, Matern
from tiers_support import thinned

from skpref.inference import Laplace

NOISES = (1e-3, 1e-2, 0.1, 1.0)


class Joint:
    """log p(duels, f) of the items of a small problem, f whitened: f = L u, u ~ N(0, I)."""

    def __init__(self, small, noise_variance):
        used = np.unique([small.winner, small.loser])
        K = small.kernel(small.items[used])
        self.L = np.linalg.cholesky(K + 1e-13 * np.eye(len(K)))
        A = incidence(small.winner, small.loser, len(small.items))[:, used]
        self.rows = A @ self.L
        self.sd = np.sqrt(2.0 * noise_variance)
        self.n = len(used)

    def __call__(self, u):
        prior = multivariate_normal.logpdf(u, np.zeros(self.n), 1.0)
        return float(norm.logcdf(self.rows @ u / self.sd).sum() + prior)

    def mode(self):
        start = minimize(lambda u: -self(u), np.zeros(self.n), method="BFGS").x
        for _ in range(6):  # Newton with numerical derivatives
            gradient = central_gradient(self, start, 1e-2 * min(1.0, self.sd))
            start = start - np.linalg.solve(self.hessian(start), gradient)
        return start

    def hessian(self, u, step=None):
        step = 1e-2 * min(1.0, self.sd) if step is None else step
        rows = []
        for i in range(self.n):

            def slope(t, i=i):
                return central_gradient(self, u + t * np.eye(self.n)[i], step)

            rows.append(8 * (slope(step) - slope(-step)) - slope(2 * step) + slope(-2 * step))
        return np.array(rows) / (12.0 * step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "noise_variance"),
    [(0, 1e-2), (8, 1.0), (15, 1e-2), (22, 0.1), (35, 0.1)],
)
def test_mode_and_evidence_from_the_log_joint_by_differences(seed, noise_variance):
    small = small_problem(seed)
    joint = Joint(small, noise_variance)
    mode = joint.mode()
    found = solve_small(TIGHT_LAPLACE, small, noise_variance)
    used = np.unique([small.winner, small.loser])
    utility = found.posterior.mean(small.items[used])
    np.testing.assert_allclose(utility, joint.L @ mode, atol=1e-6)

    hessian = -joint.hessian(mode)
    log_det = np.linalg.slogdet(hessian / (2.0 * np.pi))[1]
    assert found.log_evidence == pytest.approx(joint(mode) - 0.5 * log_det, abs=1e-5)
    covariance = joint.L @ np.linalg.solve(hessian, joint.L.T)
    np.testing.assert_allclose(found.posterior.cov(small.items[used]), covariance, atol=1e-5)


@pytest.mark.parametrize("noise_variance", NOISES)
@pytest.mark.parametrize("space", ["margins", "items"])
def test_the_mode_is_stationary(noise_variance, space):
    for seed in range(0, 200, 7):
        small = small_problem(seed)
        found = solve_small(TIGHT_LAPLACE, small, noise_variance, space)
        used = np.unique([small.winner, small.loser])
        items, A = (
            small.items[used],
            incidence(small.winner, small.loser, len(small.items))[:, used],
        )
        K = small.kernel(items)
        f = found.posterior.mean(items)
        # K⁻¹ f = Aᵀ ∇log p(A f): stated without the inverse
        sd = np.sqrt(2.0 * noise_variance)
        slope = np.exp(norm.logpdf(A @ f / sd) - norm.logcdf(A @ f / sd)) / sd
        np.testing.assert_allclose(f, K @ A.T @ slope, atol=1e-8)


@pytest.mark.parametrize(("noise_variance", "seeds"), seeds_of(NOISES))
def test_both_spaces_agree(noise_variance, seeds):
    for seed in seeds:
        small = small_problem(seed)
        one = solve_small(TIGHT_LAPLACE, small, noise_variance, "margins")
        two = solve_small(TIGHT_LAPLACE, small, noise_variance, "items")
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)
        np.testing.assert_allclose(
            one.posterior.win_probability(small.first, small.second),
            two.posterior.win_probability(small.first, small.second),
            atol=1e-9,
        )


def test_error_against_the_exact_answer_vanishes_with_growing_noise():
    for noise_variance, far in ((1.0, 0.05), (10.0, 2e-3), (100.0, 5e-5)):
        for seed in range(0, 60, 5):
            small = small_problem(seed)
            truth = duel_truth(small, noise_variance)
            found = solve_small(Laplace(), small, noise_variance)
            probability = found.posterior.win_probability(small.first, small.second)
            assert np.max(np.abs(probability - truth.probability)) < far
            assert abs(found.log_evidence - truth.log_evidence) < far


def test_counted_duels_equal_repeated_ones():
    items, winner, loser = random_duels(1, 10, 40)
    comparisons = won(items, winner, loser)
    one, two = (
        solve(TIGHT_LAPLACE, Matern(0.7, nu=2.5), each, 0.05)
        for each in (comparisons, apart(comparisons))
    )
    assert len(one.problem.counts) < len(two.problem.counts) == len(winner)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)
    X = np.random.default_rng(0).uniform(-1, 1, (8, 2))
    np.testing.assert_allclose(one.posterior.mean(X), two.posterior.mean(X), atol=1e-9)
    np.testing.assert_allclose(one.posterior.cov(X), two.posterior.cov(X), atol=1e-9)


def test_order_of_duels_and_of_items_does_not_matter():
    items, winner, loser = random_duels(1, 10, 40)
    rng = np.random.default_rng(0)
    order, places = rng.permutation(40), rng.permutation(10)
    back = np.argsort(places)
    mixed = won(items[places], back[winner[order]], back[loser[order]])
    one = solve(TIGHT_LAPLACE, RBF(0.7), won(items, winner, loser), 0.05)
    two = solve(TIGHT_LAPLACE, RBF(0.7), mixed, 0.05)
    X = rng.uniform(-1, 1, (8, 2))
    np.testing.assert_allclose(one.posterior.mean(X), two.posterior.mean(X), atol=1e-9)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)


@pytest.mark.parametrize("start", ["its own end", "another noise", "far away"])
def test_the_mode_does_not_depend_on_the_start(start):
    comparisons = won(*random_duels(0, 12, 60))
    found = solve(Laplace(), RBF(0.8), comparisons, 0.05)
    state = {
        "its own end": found.approximation.state,
        "another noise": solve(Laplace(), RBF(0.8), comparisons, 5.0).approximation.state,
        "far away": {"pull": np.full(len(comparisons.duels.counts), 1e3)},
    }[start]
    again = Laplace().run(found.problem, state)
    assert again.converged
    assert again.sites.log_evidence == pytest.approx(found.log_evidence, abs=1e-9)
    if start == "its own end":
        assert again.n_iter <= 2


@pytest.mark.parametrize("noise_variance", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("name", thinned(HARD))
def test_hard_data_converge_in_both_spaces(name, noise_variance):
    hard = HARD[name]()
    for space in ("margins", "items"):
        check_hard(solve(Laplace(), hard.kernel, hard.comparisons, noise_variance, space), hard)


@pytest.mark.parametrize("noise_variance", [1e-4, 1e-3, 1e-2, 0.1, 1.0])
def test_many_noisy_duels_of_few_items_converge(noise_variance):
    comparisons = won(*random_duels(0, 100, 20_000, noise=0.7))
    found = solve(Laplace(), RBF(1.0), comparisons, noise_variance)
    assert found.approximation.converged
    X = comparisons.items
    utility = np.sin(2.0 * X).sum(axis=1)
    assert np.corrcoef(found.posterior.mean(X), utility)[0, 1] > 0.98


def test_stopping_early_is_told():
    comparisons = won(*random_duels(0, 12, 60))
    found = solve(Laplace(max_iter=1), RBF(0.8), comparisons, 0.01).approximation
    assert not found.converged
    assert found.n_iter == 1


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"max_iter": 0}, ValueError, "max_iter must lie in"),
        ({"max_iter": True}, TypeError, "max_iter must be an integer"),
        ({"tol": -1.0}, ValueError, "tol of the engine must lie in"),
        ({"tol": None}, TypeError, "tol of the engine must be a number"),
    ],
)
def test_bad_options_say_what_is_allowed(parameters, error, match):
    comparisons = won(*random_duels(0, 4, 6))
    with pytest.raises(error, match=match):
        solve(Laplace(**parameters), RBF(), comparisons, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", [1e-6, 1e-5])
def test_a_flipped_answer_may_move_a_probability_the_wrong_way(noise_variance):
    """Three wins out of three count for less than two out of three: that is Laplace's own doing.

    At little noise the mode of unanimous answers sits at the edge of what they allow, and the
    curvature there knows nothing of the side that they rule out.
    """
    items = np.array([[0.0], [0.3]])
    kernel, sd = RBF(1.0), np.sqrt(2.0 * noise_variance)
    prior = norm(0.0, np.sqrt(2.0 - 2.0 * kernel(items)[0, 1]))
    laplace, ep, exact = [], [], []
    for lost in (0, 1):

        def log_joint(z, lost=lost):
            told = (3 - lost) * norm.logcdf(z / sd) + lost * norm.logcdf(-z / sd)
            return told + prior.logpdf(z)

        top = minimize_scalar(lambda z: -log_joint(z), (0.0, sd), options={"xtol": 1e-12}).x
        h = 1e-3 * sd
        curvature = (2.0 * log_joint(top) - log_joint(top + h) - log_joint(top - h)) / h**2
        by_hand = norm.cdf(top / np.sqrt(1.0 / curvature + sd**2))

        winner = np.repeat([0, 1], [3 - lost, lost])
        comparisons = won(items, winner, 1 - winner)
        for engine, found in ((TIGHT_LAPLACE, laplace), (TIGHT_EP, ep)):
            posterior = solve(engine, kernel, comparisons, noise_variance).posterior
            found.append(posterior.win_probability(items[:1], items[1:])[0])
        assert laplace[-1] == pytest.approx(by_hand, abs=1e-4)

        nodes = [-8.0 * prior.std(), -9.0 * sd, 9.0 * sd, 8.0 * prior.std()]
        pieces = [
            [
                quad(f, low, high, epsabs=0.0, epsrel=1e-9, limit=200)[0]
                for low, high in pairwise(nodes)
            ]
            for f in (
                lambda z: np.exp(log_joint(z)) * norm.cdf(z / sd),
                lambda z: np.exp(log_joint(z)),
            )
        ]
        exact.append(np.divide(*np.sum(pieces, axis=1)))
    assert exact[0] > 0.9 > 0.7 > exact[1]
    assert ep[0] > 0.9 > 0.7 > ep[1]
    assert laplace[0] < laplace[1]
