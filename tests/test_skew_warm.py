"""Warm starts of the chains, and the memory of predictions from many draws."""

import tracemalloc

import numpy as np
from skew_support import fitted, smooth_duels
from sklearn.base import clone

import skpref._posterior as posterior_module
from skpref.inference import HMC


def test_memory_of_predictions_is_bounded(monkeypatch):
    posterior = fitted(smooth_duels(20), HMC(draws=500)).posterior_
    asked = smooth_duels(4000, seed=3)
    monkeypatch.setattr(posterior_module, "_BLOCK", 2**16)
    for predict in (posterior.win_probability, posterior.log_outcomes, posterior.margin):
        tracemalloc.start()
        predict(asked[:, 0], asked[:, 1])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * 8 * 2**16  # an array over all draws would take 24 times the block


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
