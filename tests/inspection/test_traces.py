"""sampler_traces: draws by chains, whose mean is the posterior's; and who has none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC, Gibbs, Hallucination
from skpref.inspection import leaderboard, sampler_traces
from skpref.samplers.diagnostics import effective_draws, rhat

GAMES = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["cid", "ann"], ["dan", "bob"]]


def players(engine, **params):
    model = PairwisePreferenceRegressor(
        inference=engine, optimizer=None, noise_variance=0.3, random_state=0, **params
    )
    return model.fit(GAMES)


@pytest.mark.parametrize("engine", [HMC(draws=200, chains=5), Gibbs(draws=202, chains=5)], ids=str)
def test_their_mean_is_that_of_the_posterior(engine):
    fitted = players(engine)
    found = sampler_traces(fitted)
    assert found.draws.shape == (4, 5, -(-engine.draws // 5)) and found.n_items == 4
    mean = fitted.predict(found.names)
    assert_allclose(found.draws.mean(axis=(1, 2)), (mean - mean.mean()) / np.sqrt(0.3), atol=1e-10)
    assert np.all(np.diff(found.draws.mean(axis=(1, 2))) <= 0.0)
    assert_allclose(found.draws.mean(axis=0).max(), 0.0, atol=1e-10)  # above the mean of all
    by_chain = np.moveaxis(found.draws, 0, 2)
    assert_allclose(found.rhat, rhat(by_chain))
    assert_allclose(found.ess, effective_draws(by_chain, "bulk"))


def test_draws_follow_one_another_within_a_chain():
    """Gibbs' draws of repeated answers resemble those before in a chain, no other chain's."""
    engine = Gibbs(draws=800, chains=4, burn_in=50)
    model = PairwisePreferenceRegressor(
        inference=engine, optimizer=None, noise_variance=0.01, random_state=0
    )
    draws = sampler_traces(model.fit(GAMES[:3] * 4)).draws
    away = draws - draws.mean(axis=2, keepdims=True)
    scale = np.mean(away**2, axis=(1, 2))
    within = np.mean(away[:, :, 1:] * away[:, :, :-1], axis=(1, 2)) / scale
    across = np.mean(away[:, 1:] * away[:, :-1], axis=(1, 2)) / scale
    assert np.all(within > 0.15) and np.all(np.abs(across) < 0.1)


def test_the_best_in_a_unit_and_few_draws():
    fitted = players(HMC(draws=200, chains=5))
    best = sampler_traces(fitted, top=2, unit="elo")
    every = sampler_traces(fitted)
    board = leaderboard(fitted, unit="elo", average=False)
    assert best.names.tolist() == every.names[:2].tolist() and best.n_items == 4
    assert_allclose(best.draws.mean(axis=(1, 2)), board.utility[:2], atol=1e-8)
    pair = sampler_traces(fitted, ["bob", "ann"])
    assert_allclose(pair.draws[0], -pair.draws[1], atol=1e-12)
    few = sampler_traces(players(HMC(draws=6, chains=3)))
    assert few.draws.shape == (4, 3, 2) and np.isnan(few.rhat).all() and np.isnan(few.ess).all()


@pytest.mark.parametrize("engine", ["ep", "laplace", Hallucination(), HMC(draws=1)], ids=str)
def test_engines_that_do_not_draw_are_refused(engine):
    with pytest.raises(ValueError, match=r"no draws.*inference='hmc'"):
        sampler_traces(players(engine))


def test_nonsense_is_refused():
    fitted = players(HMC(draws=20, chains=2))
    with pytest.raises(ValueError, match="top must"):
        sampler_traces(fitted, top=0)
    with pytest.raises(ValueError, match="unit must"):
        sampler_traces(fitted, unit="metres")
    with pytest.raises(TypeError, match="Was it fitted"):
        sampler_traces(PairwisePreferenceRegressor(inference="hmc"))
