"""Warm starts of the chains, chains that cannot move, the memory of predictions."""

import tracemalloc

import numpy as np
import pytest
from skew_support import fitted, smooth_duels
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpref import PairwisePreferenceRegressor
from skpref.gp import _posterior as _components
from skpref.gp import _posterior as _pairs
from skpref.inference import HMC, Gibbs


@pytest.mark.slow
def test_memory_of_predictions_is_bounded(monkeypatch):
    posterior = fitted(smooth_duels(20), HMC(draws=500)).posterior_
    asked = smooth_duels(4000, seed=3)
    for module in (_components, _pairs):
        monkeypatch.setattr(module, "BLOCK", 2**16)
    first, second = asked[:, 0], asked[:, 1]
    for predict in (
        lambda: posterior.win_probability(first, second),
        lambda: posterior.outcome_log_proba(first, second),
        lambda: posterior.margin(first, second),
        lambda: posterior.var(first),
        lambda: posterior.cdf(first, 0.1),
        lambda: posterior.quantile(first, 0.9),
    ):
        tracemalloc.start()
        predict()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * 8 * 2**16  # an array over all draws would take 30 times the block


def test_a_warm_started_estimator_goes_on_from_its_chains():
    X = smooth_duels(25)
    model = fitted(X[:20], HMC(draws=400, warm_start=True))
    assert model.diagnostics_.burn_in == 5
    model.fit(X)
    assert model.diagnostics_.burn_in == 3
    cold = fitted(X, HMC(draws=400)).posterior_.mean(X[:, 0])
    error = np.sqrt(2.0 * model.posterior_.var(X[:, 0]) / 400)
    assert np.max(np.abs(model.posterior_.mean(X[:, 0]) - cold) / error) < 4.5
    again = clone(model).fit(X)  # a clone has nothing to start from
    assert again.diagnostics_.burn_in == 5


NAMES = np.array(["cid", "ann", "eve", "bob", "dan"], dtype=object)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("engine", [HMC, Gibbs])
def test_a_warm_start_finds_each_answer_whatever_the_order_of_rows(engine, named):
    rng = np.random.default_rng(0)
    X = smooth_duels(25)
    if named:
        X = NAMES[np.array([rng.permutation(5)[:2] for _ in range(25)])]
    order, found = rng.permutation(25), []
    for rows in (np.arange(25), order, order[::-1]):
        model = PairwisePreferenceRegressor(
            inference=engine(draws=200, warm_start=True), optimizer=None, random_state=0
        )
        found.append(model.fit(X[:20]).fit(X[rows]).predict(NAMES if named else X[:, 0]))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    cold = clone(model).fit(X).predict(NAMES if named else X[:, 0])
    assert not np.array_equal(cold, found[0])


@pytest.mark.parametrize(("engine", "cold"), [(HMC, 5), (Gibbs, 20)])
def test_a_warm_start_without_a_duel_in_common_is_a_cold_one(engine, cold):
    model = fitted(smooth_duels(10), engine(draws=400, warm_start=True))
    assert model.fit(smooth_duels(10, seed=1)).diagnostics_.burn_in == cold


@pytest.mark.parametrize("chains", [1, 4])
def test_chains_that_never_move_are_worth_one_draw(chains):
    with pytest.warns(ConvergenceWarning, match=r"up to inf.*down to 1 .*100% were rejected"):
        model = fitted(smooth_duels(40), HMC(draws=40, chains=chains, max_walls=0))
    assert np.all(model.diagnostics_.rhat == np.inf)
    assert np.all(model.diagnostics_.ess_bulk == 1.0)
    assert np.all(model.diagnostics_.mcse_mean == np.inf)


def test_rejected_hallucinations_are_reported():
    with pytest.warns(ConvergenceWarning, match="100% of the trajectories were rejected"):
        fitted(smooth_duels(40), HMC(draws=1, chains=1, max_walls=0))
