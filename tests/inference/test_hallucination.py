"""Hallucinations, one draw of the noisy margins: the engine, in the regressor and the believer."""

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import truncnorm
from skew_support import fitted, smooth_duels
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.fitting._fit import fit_posterior
from skpref.fitting._model import Model
from skpref.inference import EP, Hallucination
from skpref.likelihoods import Probit
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer

NOISE = 0.02


def drawn(comparisons, engine, start=None, seed=0):
    model = Model(RBF(0.5), Probit(NOISE, "fixed"), engine)
    return fit_posterior(comparisons, model, start, np.random.default_rng(seed))


def test_it_is_the_gp_conditioned_on_its_margins():
    # Repeated and contradictory duels: each answer is a noisy margin of its own.
    items, winner, loser = random_duels(0, 6, 9)
    seen = won(items, np.append(winner, winner[:3]), np.append(loser, loser[:3]))
    seen = won(items, *np.concatenate([seen.positions, seen.positions[:1, ::-1]]).T)
    found = drawn(seen, Hallucination())
    (v,) = found.state.chains["margins"]
    assert v.shape == (13,)
    assert np.all(v > 0.0)
    assert found.posterior.n_components == 1

    kernel, asked = RBF(0.5), np.random.default_rng(1).uniform(-1.0, 1.0, (8, 2))
    A = np.zeros((13, len(seen.items)))
    A[np.arange(13), seen.positions[:, 0]] += 1.0
    A[np.arange(13), seen.positions[:, 1]] -= 1.0
    noisy = A @ kernel(seen.items) @ A.T + 2.0 * NOISE * np.eye(13)
    cross = kernel(asked, seen.items) @ A.T
    assert_allclose(found.posterior.mean(asked), cross @ np.linalg.solve(noisy, v), atol=1e-9)
    covariance = kernel(asked) - cross @ np.linalg.solve(noisy, cross.T)
    assert_allclose(found.posterior.cov(asked), covariance, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("max_walls", [5000, 0])  # without walls Gibbs' sweeps draw
def test_its_margin_of_one_duel_is_a_truncated_normal(max_walls):
    seen = won(np.array([[0.3], [0.0]]), [0], [1])
    found, rng = drawn(seen, Hallucination(max_walls=max_walls)), np.random.default_rng(0)
    n = 800
    state = [found.refine_with_engine(rng).state.chains["margins"][0, 0] for _ in range(n)]
    scale = np.sqrt(2.0 - 2.0 * np.exp(-0.5 * 0.6**2) + 2.0 * NOISE)
    truth = truncnorm(0.0, np.inf, scale=scale)
    assert_allclose(np.mean(state), truth.mean(), atol=4.0 * truth.std() / np.sqrt(n))
    assert_allclose(np.mean(np.array(state) < truth.ppf(0.2)), 0.2, atol=0.04)


def test_it_goes_on_from_the_last_margins(monkeypatch):
    begun = []

    def still(covariance, positions, n_draws, rng, max_walls, lower=None, upper=None):
        begun.append((np.array(positions), n_draws))
        return type("Chain", (), {"state": np.array(positions) + 1.0, "rejected_share": 0.0})

    monkeypatch.setattr("skpref.inference._hallucination.hmc", still)
    items, winner, loser = random_duels(1, 8, 12)
    few, every = won(items, winner[:9], loser[:9]), won(items, winner, loser)
    first = drawn(few, Hallucination(burn_in=7, between=2))
    drawn(every, Hallucination(burn_in=7, between=2), first.state)
    (cold, burn_in), (warm, between) = begun
    assert (burn_in, between) == (7, 2)
    assert_array_equal(warm[:, :9], cold + 1.0)
    # A margin that is new starts at its mean given the utility and the answer.
    mean, _ = drawn(every, EP()).posterior.margin(items[winner], items[loser])
    scale = np.sqrt(2.0 * NOISE)
    typical = truncnorm(-mean / scale, np.inf, loc=mean, scale=scale).mean()[None]
    assert_allclose(warm[:, 9:], typical[:, 9:], rtol=1e-6)


def test_a_warm_start_of_the_regressor_is_asked_for():
    X = smooth_duels(12)
    model = fitted(X[:8], Hallucination())
    assert model.n_iter_ == 12
    mean = model.posterior_.mean(X[:, 0])
    assert_array_equal(model.fit(X[:8]).posterior_.mean(X[:, 0]), mean)
    warm = fitted(X[:8], Hallucination(warm_start=True))
    assert_array_equal(warm.posterior_.mean(X[:, 0]), mean)
    assert warm.fit(X).n_iter_ == 4
    assert warm.diagnostics_ is None
    assert warm.set_params(inference__warm_start=False).fit(X).n_iter_ == 12


def test_the_evidence_is_that_of_ep():
    X = smooth_duels(15)
    model = PairwisePreferenceRegressor(inference=Hallucination(), random_state=0).fit(X)
    learned = PairwisePreferenceRegressor(inference=EP()).fit(X)
    # Answers stand in an order of their own: other sums in the last digit.
    assert_allclose(model.kernel_.theta, learned.kernel_.theta, rtol=1e-10)
    value = model.log_marginal_likelihood_value_
    assert_allclose(value, learned.log_marginal_likelihood_value_, rtol=1e-10)


def test_the_believer_asks_from_this_engine():
    made = [
        HallucinationBelieverOptimizer([[0.0, 1.0]] * 2, n_initial=2, random_state=4),
        PreferenceOptimizer(
            [[0.0, 1.0]] * 2,
            inference=Hallucination(),
            incumbent="last_winner",
            n_initial=2,
            random_state=4,
        ),
        PreferenceOptimizer(
            [[0.0, 1.0]] * 2,
            inference=Hallucination(burn_in=1, between=1),
            incumbent="last_winner",
            n_initial=2,
            random_state=4,
        ),
    ]
    for _ in range(5):
        duels = [each.ask() for each in made]
        for each in made:
            each.tell(duels[0], int(duels[0][0].sum() > duels[0][1].sum()))
    assert_array_equal(duels[0], duels[1])
    assert not np.array_equal(duels[0], duels[2])


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Hallucination(burn_in=0), "burn_in"),
        (Hallucination(between=0.5), "between"),
        (Hallucination(max_walls=-1), "max_walls"),
        (Hallucination(evidence="svi"), "evidence.*'ep'"),
    ],
)
def test_bad_options_are_refused(engine, message, monkeypatch):
    monkeypatch.setattr(EP, "run", None)  # before any work is done
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(smooth_duels(3), engine)
