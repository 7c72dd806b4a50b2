"""HMC on the distinct margins: exact at any number of repeats, and chosen where it is quicker."""

import warnings

import numpy as np
import pytest
from core_support import solve, won
from numpy.testing import assert_allclose, assert_array_equal
from oracles import duel_truth, small_problem
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from skew_support import fitted, smooth_duels
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.gp import choose_prior
from skpref.inference import EP, HMC, Gibbs, Hallucination, Problem
from skpref.inference._chains import MarginPosterior, NoisyMargins, expected_walls
from skpref.samplers import hmc, minimax_draws

PAIR = np.array([[0.3], [0.0]])
PRIOR = 2.0 - 2.0 * np.exp(-0.5 * 0.6**2)  # of the margin, under RBF(0.5)
MARGINS = HMC(draws=20_000, chains=500, method="margins")


def pair(n_won, n_lost):
    return np.array([PAIR] * n_won + [PAIR[::-1]] * n_lost)


def five_items(n_duels, n_items=5, seed=0):
    """Duels of a few items, winners at random."""
    rng = np.random.default_rng(seed)
    items = rng.random((n_items, 2))
    return items[np.array([rng.permutation(n_items)[:2] for _ in range(n_duels)])]


# -- exactness -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_won", "n_lost", "noise_variance"),
    [
        (1, 1, 1e-10),
        (20, 30, 1e-10),
        (1, 0, 1e-3),
        (4, 1, 0.05),
        (20, 30, 2.0),
        (40, 0, 0.05),
    ],
)
def test_one_margin_is_that_of_quadrature(n_won, n_lost, noise_variance):
    model = fitted(pair(n_won, n_lost), MARGINS, noise_variance)
    scale = np.sqrt(2.0 * noise_variance)
    reach = 8.0 * min(scale, np.sqrt(PRIOR)) if n_lost else 8.0 * np.sqrt(PRIOR)

    def density(z):
        won, lost = ndtr(z / scale) ** n_won, ndtr(-z / scale) ** n_lost
        return norm.pdf(z, scale=np.sqrt(PRIOR)) * won * lost

    def integral(value):
        points = [-0.1 * reach, 0.0, 0.1 * reach]
        return quad(lambda z: value(z) * density(z), -reach, reach, points=points, limit=200)[0]

    total = integral(lambda z: 1.0)
    mean = integral(lambda z: z) / total
    spread = np.sqrt(integral(lambda z: (z - mean) ** 2) / total)
    found_mean, found_var = model.posterior_.margin(PAIR[:1], PAIR[1:])
    assert_allclose(found_mean, mean, atol=0.04 * spread)
    assert_allclose(np.sqrt(found_var), spread, rtol=0.04)
    assert model.diagnostics_.method == "margins"
    assert len(model.diagnostics_.rhat) == n_won + n_lost


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", [1e-4, 1e-2, 1.0])
def test_duel_probabilities_are_ratios_of_orthant_probabilities(noise_variance):
    for seed in (1, 2, 4):
        small = small_problem(seed)
        truth = duel_truth(small, noise_variance)
        if truth.probability_error.max() > 5e-4:
            continue
        X = np.stack([small.items[small.winner], small.items[small.loser]], axis=1)
        model = fitted(X, MARGINS, noise_variance, small.kernel, seed)
        won = model.posterior_.win_probability(small.first, small.second)
        assert_allclose(won, truth.probability, atol=0.015)


def solved(space="cheaper", noise_variance=0.01):
    """Nine duels of four items: repeats, contradictions, cycles, one item against itself."""
    items = np.random.default_rng(5).random((4, 2))
    seen = won(items, [0, 1, 2, 0, 0, 1, 3, 3, 2], [1, 2, 0, 3, 3, 0, 2, 3, 1])
    return solve(EP(), RBF(0.5), seen, noise_variance, space)


@pytest.mark.parametrize("space", ["margins", "items"])
def test_noisy_margins_are_those_of_independent_exact_draws(space):
    problem, near = solved(space)[1:3]
    covariance = NoisyMargins(problem).covariance()
    exact = minimax_draws(covariance, 20_000, np.random.default_rng(0)).draws
    rng = np.random.default_rng(1)
    v = MARGINS.run(problem, rng=rng, gaussian=near).sites  # the sums of v that f depends on
    truth = NoisyMargins(problem).sites(exact, 0.0).shift
    spread = truth.std(axis=1)
    assert_allclose(v.shift.mean(axis=1), truth.mean(axis=1), atol=0.05 * spread.max())
    ours, theirs = np.cov(v.shift), np.cov(truth)
    assert_allclose(ours, theirs, atol=0.06 * np.max(spread) ** 2)


@pytest.mark.parametrize("space", ["margins", "items"])
def test_from_noisy_margins_and_back_leaves_exact_draws_exact(space):
    problem, near = solved(space)[1:3]
    noisy, rng = NoisyMargins(problem), np.random.default_rng(2)
    exact = minimax_draws(noisy.covariance(), 40_000, rng).draws
    start, other = exact[:20_000], exact[20_000:]
    posterior = MarginPosterior(problem, near)
    back = noisy.draw_given_margins(
        posterior.margins(posterior.draw_given_noisy(noisy, start, rng)), rng
    )
    assert not np.any(back == start)
    for power in (1, 2):
        a, b = back**power, other**power
        error = np.hypot(a.std(axis=0), b.std(axis=0)) / np.sqrt(20_000)
        assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error)


def test_whitened_density_is_prior_times_likelihood():
    seen = won(np.random.default_rng(5).random((6, 2)), [0, 1, 3, 1, 0], [1, 2, 4, 0, 1])
    problem, near = solve(EP(), RBF(0.5), seen, 0.01)[1:3]
    posterior = MarginPosterior(problem, near)
    x = np.random.default_rng(3).standard_normal((6, posterior.dimension))
    value, slope = posterior.potential(x)
    z = posterior.margins(x)
    dual = np.linalg.solve(problem.prior.covariance(), z.T)
    log_prior = -0.5 * np.einsum("nm,mn->n", z, dual)
    log_factors = [
        problem.counts
        @ problem.likelihood.log_prob(problem.orient_margins(row), problem.answers).value
        for row in z
    ]
    energy = value + 0.5 * (x**2).sum(axis=1) + log_prior + log_factors
    assert_allclose(energy, energy[0], atol=1e-7)  # equal up to a constant
    for k in range(posterior.dimension):
        step = 1e-5 * np.eye(posterior.dimension)[k]
        change = posterior.potential(x + step)[0] - posterior.potential(x - step)[0]
        assert_allclose(slope[:, k], change / 2e-5, atol=1e-6)


@pytest.mark.slow
def test_the_walls_and_the_margins_agree():
    X, asked = smooth_duels(60, seed=1, noise=0.4), smooth_duels(20, seed=2)
    models = [
        fitted(X, HMC(draws=4000, chains=100, method=method)) for method in ("walls", "margins")
    ]
    assert [model.diagnostics_.method for model in models] == ["walls", "margins"]
    means = [model.posterior_.margin(asked[:, 0], asked[:, 1]) for model in models]
    error = np.sqrt(means[0][1] * 2.0 / min(m.diagnostics_.ess_bulk.min() for m in models))
    assert np.max(np.abs(means[0][0] - means[1][0]) / error) < 4.5


@pytest.mark.slow
def test_beside_laplace_they_mix_as_well():
    X, found = smooth_duels(20, seed=1), []
    for evidence in ("ep", "laplace"):  # whose Gaussian is far too narrow
        model = fitted(X, HMC(method="margins", evidence=evidence), 1e-4)
        assert model.diagnostics_.ess_bulk.min() > 500
        found.append(model.posterior_)
    error = np.sqrt(2.0 * found[0].var(X[:, 0]) / 500)
    assert np.max(np.abs(found[0].mean(X[:, 0]) - found[1].mean(X[:, 0])) / error) < 4.5


# -- the choice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "noise_variance", "method"),
    [
        (smooth_duels(50), 1e-4, "walls"),
        (pair(10, 0), 1e-6, "walls"),
        (five_items(1000), 1e-2, "margins"),
        (five_items(1000), 1e-3, "margins"),
        (pair(5, 5), 1e-6, "margins"),
        (pair(1, 1), 1e-10, "margins"),
        (five_items(60, 30), 1e-6, "margins"),
    ],
    ids=["agree", "one pair", "5 items", "5 items, 1e-3", "pair", "two duels", "30 items"],
)
def test_the_quicker_way_is_taken_and_mixes(X, noise_variance, method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(X, HMC(), noise_variance)
    assert model.diagnostics_.method == method
    assert model.posterior_.n_components == 1000
    assert model.diagnostics_.ess_bulk.min() > 300


@pytest.mark.parametrize("method", ["walls", "margins"])
def test_draws_repeat_with_their_seed(method):
    engine = HMC(draws=100, method=method)
    one, two = (fitted(smooth_duels(20), engine) for _ in range(2))
    assert one.diagnostics_.method == method
    assert_array_equal(one.posterior_.weights, two.posterior_.weights)


def test_walls_are_taken_when_asked_for():
    assert fitted(pair(5, 5), HMC(draws=200, method="walls"), 1e-3).diagnostics_.method == "walls"


def test_a_cap_of_the_users_own_is_kept():
    with pytest.warns(ConvergenceWarning, match=r"max_walls \(\d+% were rejected there\)"):
        model = fitted(pair(5, 5), HMC(draws=400, max_walls=3), 1e-6)
    assert model.diagnostics_.method == "walls"


def test_a_warm_start_goes_on_from_margins_too():
    X = five_items(400)
    model = fitted(X[:390], HMC(draws=400, warm_start=True))
    warm = model.fit(X).posterior_
    cold = fitted(X, HMC(draws=400)).posterior_
    error = np.sqrt(2.0 * cold.var(X[:, 0]) / 200)
    assert np.max(np.abs(warm.mean(X[:, 0]) - cold.mean(X[:, 0])) / error) < 4.5


@pytest.mark.parametrize(
    ("X", "noise_variance"),
    [
        (smooth_duels(60), 1e-2),
        (smooth_duels(60, noise=0.5), 1e-1),
        (np.repeat(smooth_duels(12), 9, axis=0), 1e-3),
        (pair(12, 3), 1e-2),
    ],
)
def test_the_walls_to_expect_are_those_that_trajectories_meet(X, noise_variance):
    model = fitted(X, EP(tol=1e-8), noise_variance)
    kernel, seen, likelihood = model.kernel_, model.comparisons_, model.likelihood_
    problem = Problem(
        choose_prior(kernel, seen, likelihood).from_comparisons(kernel, seen, likelihood),
        seen,
        likelihood,
    )
    gaussian = EP(tol=1e-8).run(problem)
    noisy = NoisyMargins(problem)
    start = noisy.start(gaussian.conditioned.mean, None, 100)
    chains = hmc(noisy.covariance(), start, 30, rng=np.random.default_rng(0))
    met = chains.walls[:, 5:].mean()
    assert expected_walls(problem, gaussian) == pytest.approx(met, rel=0.15)


def test_answers_that_agree_are_drawn_by_walls_however_often_they_were_given():
    # 1 200 answers of 30 rated items, none of which contradicts another: few walls are met.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    options = {"optimizer": None, "noise_variance": 1e-4, "random_state": 0}
    model = PairwisePreferenceRegressor(RBF(1.0), inference=HMC(draws=200), **options)
    model.fit(X, y, sample_weight=np.full(30, 2))
    assert len(model.diagnostics_.rhat) == 1200
    assert model.diagnostics_.method == "walls"


# -- budgets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine",
    [
        HMC(max_work=0.02, method="walls"),
        HMC(max_work=0.02, method="margins"),
        Gibbs(max_work=0.02),
    ],
    ids=["walls", "margins", "gibbs"],
)
def test_work_is_bounded_with_a_warning(engine):
    with pytest.warns(ConvergenceWarning, match=r"stopped after \d+ of 50 draws.*max_work = 0\.02"):
        model = fitted(smooth_duels(100), engine)
    n_components = model.posterior_.n_components
    assert n_components % 20 == 0
    assert 20 <= n_components < 1000
    proba = model.predict_proba(smooth_duels(5, seed=1))
    assert np.all((proba > 0.0) & (proba < 1.0))


def test_draws_in_batches_are_those_of_one_run(monkeypatch):
    X = smooth_duels(30)
    whole = fitted(X, HMC(draws=200)).posterior_.weights
    # Every batch is one draw, as trajectories might meet ever so many walls.
    monkeypatch.setattr("skpref.inference._sampling.most_walls", lambda n_answers: 10**12)
    assert_array_equal(fitted(X, HMC(draws=200)).posterior_.weights, whole)


@pytest.mark.slow
def test_chains_that_neither_way_moves_stop_with_a_warning():
    X = np.concatenate([smooth_duels(20), smooth_duels(1)[:, ::-1]])
    with pytest.warns(ConvergenceWarning, match=r"not mixed.*inference='ep'.*noise_variance"):
        model = fitted(X, HMC(draws=100), 1e-12)
    assert model.diagnostics_.burn_in == 15  # and no second try


@pytest.mark.slow
def test_a_hallucination_of_contradictions_is_drawn_by_margins():
    # z and both v: given z the v are independent truncated normals.
    scale, X = 1e-3, pair(1, 1)
    rng, found = np.random.default_rng(0), []
    problem = solve(EP(), RBF(0.5), won(PAIR, [0, 1], [1, 0]), 0.5 * scale**2)[1:3]
    for _ in range(400):
        found.append(
            Hallucination(max_walls=0).run(problem[0], None, rng, problem[1]).state["margins"][0]
        )
    assert np.shape(found) == (400, len(X))
    covariance = NoisyMargins(problem[0]).covariance()
    exact = minimax_draws(covariance, 20_000, rng).draws
    for power in (1, 2):
        a, b = np.array(found) ** power, exact**power
        error = np.hypot(a.std(axis=0) / np.sqrt(400), b.std(axis=0) / np.sqrt(20_000))
        assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (HMC(method="gibbs"), "method.*'margins'"),
        (HMC(max_work=0.0), "max_work"),
        (Gibbs(max_work=-1.0), "max_work"),
    ],
)
def test_bad_options_are_refused(engine, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(smooth_duels(3), engine)
