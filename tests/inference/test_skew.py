"""The sampled engines against orthant probabilities, quadrature and the skew normal."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose, assert_array_equal
from oracles import small_problem
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm, skewnorm
from skew_support import contradicts, fitted, smooth_duels, truth_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.fitting._fit import match_state
from skpref.gp import PriorRule
from skpref.gp import _posterior as _components
from skpref.gp import _posterior as _pairs
from skpref.inference import EP, HMC, Gibbs, Problem
from skpref.inference._chains import is_drifting, is_slow, rhat_limit
from skpref.likelihoods import Probit
from skpref.samplers import rhat

ENGINES = {"hmc": HMC, "gibbs": Gibbs}
NOISES = (1e-6, 1e-4, 1e-2, 1.0)


# -- exactness -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", NOISES)
def test_duel_probabilities_are_ratios_of_orthant_probabilities(noise_variance):
    # The same on 200 problems is in benchmarks/posterior/skew_gp_study.py.
    for seed in (2, 4, 6):
        small = small_problem(seed)
        X = np.stack([small.items[small.winner], small.items[small.loser]], axis=1)
        truth = truth_of(small, noise_variance)
        # At so little noise contradictory answers cost HMC thousands of walls, and Gibbs nothing.
        if noise_variance < 1e-4 and contradicts(small):
            engine = Gibbs(draws=20_000, chains=1000, thin=4)
        else:
            engine = HMC(draws=20_000, chains=1000)
        model = fitted(X, engine, noise_variance, small.kernel, seed)
        assert model.diagnostics_.ess_bulk.min() > 16_000
        won = model.posterior_.win_probability(small.first, small.second)
        assert_allclose(won, truth, atol=0.01)


@pytest.mark.parametrize(
    ("name", "won", "lost"),
    [("hmc", 1, 0), ("gibbs", 3, 0), ("hmc", 1, 1), ("gibbs", 4, 1), ("hmc", 2, 3)],
)
def test_repeated_and_contradictory_duels(name, won, lost):
    noise_variance, a, b = 0.05, [[0.3]], [[0.0]]
    X = np.array([[a[0], b[0]]] * won + [[b[0], a[0]]] * lost)
    engine = ENGINES[name](draws=20_000, chains=500)
    model = fitted(X, engine, noise_variance, RBF(0.5))
    variance, scale = 2.0 - 2.0 * np.exp(-0.5 * 0.6**2), np.sqrt(2.0 * noise_variance)

    def density(z):
        prior = norm.pdf(z, scale=np.sqrt(variance))
        return prior * ndtr(z / scale) ** won * ndtr(-z / scale) ** lost

    def integral(value):
        return quad(lambda z: value(z) * density(z), -5.0, 5.0, points=[0.0], epsabs=1e-12)[0]

    total = integral(lambda z: 1.0)
    mean = integral(lambda z: z) / total
    second = integral(lambda z: z**2) / total
    probability = integral(lambda z: ndtr(z / scale)) / total
    posterior = model.posterior_
    found_mean, found_var = posterior.margin(a, b)
    assert_allclose(found_mean, mean, atol=0.01)
    assert_allclose(found_var, second - mean**2, rtol=0.05)
    assert_allclose(posterior.win_probability(a, b), probability, atol=0.006)
    assert len(model.diagnostics_.rhat) == won + lost


def test_one_duel_gives_a_skew_normal():
    noise_variance, kernel = 0.02, RBF(0.5)
    items = np.array([[0.0], [0.4]])
    model = fitted(items[None, ::-1], HMC(draws=40_000, chains=1000), noise_variance, kernel)
    asked = np.array([[0.4], [0.1], [-0.7]])
    # f(x) and v are jointly normal; f(x) given v > 0 is skew normal (Azzalini 2013).
    cross = (kernel(asked, items) @ [-1.0, 1.0]) / np.sqrt(
        2.0 - 2.0 * kernel(items)[0, 1] + 2.0 * noise_variance
    )
    truth = skewnorm(cross / np.sqrt(1.0 - cross**2))
    posterior = model.posterior_
    assert_allclose(posterior.mean(asked), truth.mean(), atol=0.01)
    assert_allclose(posterior.var(asked), truth.var(), atol=0.01)
    assert_allclose(posterior.cdf(asked, 0.3), truth.cdf(0.3), atol=0.005)
    for level in (0.025, 0.5, 0.9):
        assert_allclose(posterior.quantile(asked, level), truth.ppf(level), atol=0.02)
    interval = posterior.credible_interval(asked, 0.8)
    assert_allclose(interval, np.stack(truth.interval(0.8), axis=1), atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", [1e-3, 1e-1])
def test_gibbs_and_hmc_agree(noise_variance):
    X, asked = smooth_duels(40, seed=1), smooth_duels(30, seed=2)
    hmc = fitted(X, HMC(draws=8000, chains=100), noise_variance)
    gibbs = fitted(X, Gibbs(draws=8000, chains=200, thin=30, burn_in=300), noise_variance)
    both = [m.posterior_.win_probability(asked[:, 0], asked[:, 1]) for m in (hmc, gibbs)]
    assert_allclose(*both, atol=0.02)
    means = [m.posterior_.margin(asked[:, 0], asked[:, 1]) for m in (hmc, gibbs)]
    error = np.sqrt(means[0][1] * (1.0 / 8000 + 1.0 / gibbs.diagnostics_.ess_bulk.min()))
    assert np.max(np.abs(means[0][0] - means[1][0]) / error) < 4.5


def test_the_evidence_engine_sets_the_hyperparameters():
    X = smooth_duels(30)
    learned = PairwisePreferenceRegressor(inference=EP()).fit(X)
    for engine in (HMC(draws=20), Gibbs(draws=20)):
        model = PairwisePreferenceRegressor(inference=engine, random_state=0).fit(X)
        # Answers stand in an order of their own: other sums in the last digit, which each step of a
        # descent makes some ten times as large.
        assert_allclose(model.kernel_.theta, learned.kernel_.theta, rtol=1e-8)
        assert_allclose(model.noise_variance_, learned.noise_variance_, rtol=1e-8)
        value = model.log_marginal_likelihood_value_
        assert_allclose(value, learned.log_marginal_likelihood_value_, rtol=1e-8)


# -- repeatability ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_results_repeat_whatever_n_jobs(name):
    X, found = smooth_duels(12), []
    engine = ENGINES[name](draws=40, chains=4)
    for n_jobs, seed in ((1, 5), (2, 5), (1, 6)):
        model = PairwisePreferenceRegressor(
            RBF(1.0), inference=engine, n_restarts_optimizer=2, random_state=seed, n_jobs=n_jobs
        )
        found.append(model.fit(X).posterior_.weights)
    assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def problem_of(comparisons, noise_variance, kernel):
    likelihood = Probit(noise_variance)
    return Problem(PriorRule().prior(kernel, comparisons, likelihood), comparisons, likelihood)


def moved(positions, before, now):
    """Positions of chains of some duels as a start for others."""
    return match_state({"margins": positions}, before, now, HMC.capabilities.state_of)["margins"]


def test_chains_are_carried_over_to_the_same_duels():
    items, winner, loser = random_duels(0, 7, 12)
    items = np.concatenate([items, items[:2]])  # equal items are merged
    before = won(items, np.append(winner, [7, 3]), np.append(loser, [5, 3 + 1]))
    positions = np.arange(1.0, 1.0 + 2 * len(before.weight)).reshape(2, -1)
    more = np.array([[9.0, 9.0], [-9.0, 9.0]])
    now = won(
        np.concatenate([items, more])[::-1],  # other numbers, new duels
        len(items) + 1 - np.concatenate([winner, [7, 3, 9, 9]]),
        len(items) + 1 - np.concatenate([loser, [5, 4, 10, 0]]),
    )
    start = moved(positions, before, now)

    def named(comparisons, values):
        ends = np.hstack([comparisons.items[side] for side in comparisons.positions.T])
        return sorted((*end, *value) for end, value in zip(ends.tolist(), values.T, strict=True))

    new = np.isnan(start).any(axis=0)
    assert new.sum() == 2
    kept = [row for row in named(now, start) if not np.isnan(row[-1])]
    assert kept == named(before, positions)
    with_other_features = replace(now, items=now.items[:, :1])
    assert np.isnan(moved(positions, before, with_other_features)).all()


def test_a_repeated_duel_starts_where_nothing_is_known():
    items = np.array([[0.0], [1.0]])
    once, thrice = won(items, [0], [1]), won(items, [0, 0, 0], [1, 1, 1])
    assert_array_equal(moved(np.array([[0.7]]), once, thrice), [[0.7, np.nan, np.nan]])
    assert_array_equal(moved(np.array([[0.7, 0.8, 0.9]]), thrice, once), [[0.7]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_a_warm_start_has_the_same_target(name):
    kernel, noise_variance = RBF(0.5), 1e-2
    items, winner, loser = random_duels(1, 10, 25)
    engine = ENGINES[name](draws=4000, chains=100)
    rng, found = np.random.default_rng(0), []
    few = won(items, winner[:20], loser[:20])
    problem = problem_of(few, noise_variance, kernel)
    state = engine.run(problem, rng=rng, gaussian=EP().run(problem)).state["margins"]
    assert state.shape == (100, 20)
    assert np.all(state > 0.0)
    every = won(items, winner, loser)
    problem = problem_of(every, noise_variance, kernel)
    near = EP().run(problem)
    for start in (None, {"margins": moved(state, few, every)}):
        found.append(engine.run(problem, start, rng, near))
    assert found[1].diagnostics.burn_in < found[0].diagnostics.burn_in
    cold, warm = (approximation.conditioned.mean for approximation in found)
    effective = min(approximation.diagnostics.ess_bulk.min() for approximation in found)
    error = np.sqrt(2.0 * cold.var(axis=1) / effective)
    assert np.max(np.abs(cold.mean(axis=1) - warm.mean(axis=1)) / error) < 4.0


# -- memory, diagnostics, warnings -----------------------------------------------------------


def test_blocks_do_not_change_predictions(monkeypatch):
    posterior = fitted(smooth_duels(20), HMC(draws=200)).posterior_
    asked = smooth_duels(17, seed=3)
    first, second = asked[:, 0], asked[:, 1]

    def everything():
        return [
            posterior.mean(first),
            posterior.var(first),
            *posterior.margin(first, second),
            posterior.win_probability(first, second),
            posterior.win_probability(first, second, noise=False, log=True),
            posterior.outcome_log_proba(first, second),
            posterior.cdf(first, 0.1),
            posterior.credible_interval(first),
        ]

    whole = everything()
    for module in (_components, _pairs):
        monkeypatch.setattr(module, "BLOCK", 3 * 200)
    for block, expected in zip(everything(), whole, strict=True):
        assert_allclose(block, expected, rtol=1e-10, atol=1e-12)


def test_diagnostics_are_stored():
    model = fitted(smooth_duels(30), HMC(draws=500, chains=10, burn_in=6))
    diagnostics = model.diagnostics_
    assert diagnostics.n_draws == 500
    assert diagnostics.burn_in == 6
    assert diagnostics.rejected_share == 0.0
    assert np.all(diagnostics.rhat < 1.05)
    assert np.all(diagnostics.ess_bulk > 250.0)
    # The standard errors are those of the draws of v, about sd/√500.
    assert np.all((diagnostics.mcse_mean > 0.0) & (diagnostics.mcse_mean < 0.1))
    assert fitted(smooth_duels(30), EP()).diagnostics_ is None
    assert fitted(smooth_duels(30), HMC(draws=3)).diagnostics_ is None


def test_draws_are_rounded_up_to_full_chains():
    assert fitted(smooth_duels(5), HMC(draws=10, chains=4)).posterior_.n_components == 12
    assert fitted(smooth_duels(5), HMC(draws=3, chains=20)).posterior_.n_components == 3


def test_chains_that_have_not_mixed_are_reported_with_the_remedy():
    X = smooth_duels(200)
    few = Gibbs(draws=200, chains=4, thin=1, burn_in=0)
    with pytest.warns(ConvergenceWarning, match=r"not mixed.*Raise draws.*inference='hmc'"):
        fitted(X, few, 1e-4, RBF(1.0))
    with pytest.warns(ConvergenceWarning, match=r"max_walls \(\d+% were rejected"):
        fitted(X, HMC(draws=200, max_walls=2), 1e-4)


@pytest.mark.parametrize("noise_variance", [1e-4, 1e-1])
@pytest.mark.parametrize("engine", [HMC(), HMC(draws=100), HMC(draws=64, chains=4)], ids=str)
def test_default_hmc_does_not_warn(noise_variance, engine):
    for n_duels in (1, 10, 100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted(smooth_duels(n_duels), engine, noise_variance)


def test_automatic_burn_in_goes_on_until_the_chains_have_mixed():
    batches = []

    class Slow(HMC):
        """HMC whose chains still come from far off in the first two batches."""

        def _sample(self, sampler, state, n_draws, rng, keep=True):
            found = super()._sample(sampler, state, n_draws, rng, keep)
            batches.append(n_draws)
            if len(batches) <= 3:  # burn-in and two batches
                ramp = np.linspace(9.0, 0.0, n_draws)[:, None]
                found = found._replace(draws=found.draws + ramp)
            return found

    model = fitted(smooth_duels(10), Slow())
    assert batches == [5, 50, 50, 50]
    assert model.diagnostics_.burn_in == 5 + 2 * 50
    assert model.diagnostics_.rhat.max() < 1.05


def test_chains_that_are_slow_but_drift_no_more_end_with_one_batch():
    batches = []

    class Sticky(HMC):
        """HMC whose chains stay apart from each other, each about a level of its own."""

        def _sample(self, sampler, state, n_draws, rng, keep=True):
            found = super()._sample(sampler, state, n_draws, rng, keep)
            batches.append(n_draws)
            return found._replace(draws=found.draws + np.arange(20.0)[:, None, None])

    with pytest.warns(ConvergenceWarning, match="have not mixed"):
        fitted(smooth_duels(10), Sticky())
    assert batches == [5, 50]


@pytest.mark.parametrize("seed", range(5))
def test_slow_chains_that_start_where_they_belong_are_no_drift(seed):
    # An autoregression of 170 steps: a batch is too short for it, and the next would be, too.
    rng = np.random.default_rng(seed)
    draws = np.empty((20, 50, 30))
    draws[:, 0] = rng.standard_normal((20, 30))
    for k in range(1, 50):
        step = np.sqrt(1.0 - 0.9**2) * rng.standard_normal((20, 30))
        draws[:, k] = 0.9 * draws[:, k - 1] + step
    assert not is_drifting(draws) and is_slow(draws, 1.05)
    away = 3.0 * 0.9 ** np.arange(50)[:, None]  # the mean of chains that start 3 deviations off
    assert is_drifting(draws + away)
    independent = rng.standard_normal((20, 50, 30))
    assert not is_slow(independent, 1.05)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 4, 100), (4, 16, 50), (20, 50, 200)])
def test_independent_draws_count_as_mixed(shape):
    rng = np.random.default_rng(0)
    alarms = [np.any(rhat(rng.exponential(size=shape)) > rhat_limit(shape)) for _ in range(40)]
    assert sum(alarms) <= 1
    apart = rng.standard_normal(shape) + 5.0 * np.arange(shape[0])[:, None, None]
    assert np.all(rhat(apart) > rhat_limit(shape))


# -- manners ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_weights_are_repetitions(name):
    X, weight = smooth_duels(12, noise=1.0), np.array([1, 0, 2, 3, 1, 2, 0, 1, 4, 1, 2, 1])
    model = fitted(X, ENGINES[name](draws=4000, chains=100))
    asked = X[:, 0]
    repeated = np.repeat(X, weight, axis=0)
    expected = model.fit(repeated).posterior_.mean(asked)
    weighted = model.fit(X, sample_weight=weight)
    assert_allclose(weighted.posterior_.mean(asked), expected, rtol=1e-12, atol=1e-12)
    assert len(weighted.diagnostics_.rhat) == weight.sum()
    assert_allclose(weighted.duels_.counts, weight[weight > 0])
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = model.fit(X[order], sample_weight=weight[order]).posterior_.mean(asked)
    assert_array_equal(shuffled, expected)


@pytest.mark.parametrize("name", ENGINES)
def test_weights_that_are_no_repetitions_are_refused(name, monkeypatch):
    monkeypatch.setattr(EP, "run", None)  # before any work is done
    model = PairwisePreferenceRegressor(inference=ENGINES[name](), optimizer=None)
    with pytest.raises(ValueError, match=r"repetitions, got 0\.5.*inference='ep'"):
        model.fit(smooth_duels(3), sample_weight=[1.0, 0.5, 2.0])


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (HMC(draws=0), "draws"),
        (HMC(draws=1.5), "draws"),
        (Gibbs(chains=0), "chains"),
        (HMC(burn_in=-1), "burn_in"),
        (HMC(burn_in="none"), "burn_in.*'auto'"),
        (Gibbs(thin=0), "thin"),
        (HMC(evidence="svi"), "evidence.*'ep'"),
        (HMC(max_walls=-1), "max_walls"),
        (HMC(max_walls="many"), "max_walls must be an integer"),
        (HMC(max_walls=np.nan), "max_walls must be an integer"),
    ],
)
def test_bad_options_are_refused(engine, message, monkeypatch):
    monkeypatch.setattr(EP, "run", None)  # before any work is done
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(smooth_duels(3), engine)


def test_too_many_duels_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(EP, "run", None)  # before any work is done
    X = np.repeat(smooth_duels(1), 10_001, axis=0)
    with pytest.raises(ValueError, match=r"10001 duels.*too many.*inference='ep'"):
        fitted(X, HMC(draws=1), noise_variance=10.0)
    model = PairwisePreferenceRegressor(inference=HMC(draws=1), optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"1000000000000 duels.*too many"):
            model.fit(smooth_duels(1), sample_weight=[1e12])


def test_engines_are_not_changed_by_a_fit():
    engine = HMC(draws=8, warm_start=True)
    model = fitted(smooth_duels(6), engine)
    assert vars(engine) == vars(clone(engine))
    assert model.get_params()["inference__draws"] == 8
