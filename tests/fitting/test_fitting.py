"""The fitting program: what one fit hands to the next, and what the second engine adds."""

from typing import ClassVar

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose, assert_array_equal
from skew_support import smooth_duels
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.fitting._fit import Start, evaluate_evidence, fit_posterior, match_state
from skpref.fitting._model import Model
from skpref.fitting._search import Search
from skpref.inference import EP, HMC, Gibbs, Laplace
from skpref.inference import _ep as ep
from skpref.likelihoods import Probit

ITEMS, WINNER, LOSER = random_duels(3, 12, 60)
ASKED = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2))


def model_of(engine, noise_variance=0.05, bounds="fixed"):
    return Model(RBF(0.7), Probit(noise_variance, bounds), engine)


def told(n, order=None):
    order = np.arange(n) if order is None else np.asarray(order)
    return won(ITEMS, WINNER[order], LOSER[order])


# -- streams ---------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [EP(), Laplace()], ids=["ep", "laplace"])
def test_a_growing_stream_keeps_its_sites(engine):
    model, start, steps = model_of(engine), None, []
    for n in range(30, 40):
        warm, cold = fit_posterior(told(n), model, start), fit_posterior(told(n), model)
        assert_allclose(warm.posterior.mean(ASKED), cold.posterior.mean(ASKED), atol=1e-6)
        assert_allclose(warm.posterior.var(ASKED), cold.posterior.var(ASKED), atol=1e-6)
        assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-6)
        steps.append((warm.n_iter, cold.n_iter))
        start = warm.state
    fewer = [one < other for one, other in steps[1:]]
    assert sum(fewer) >= 7, steps
    again = fit_posterior(told(39), model, start)
    assert again.n_iter <= 2


@pytest.mark.parametrize("engine", [EP(), Laplace()], ids=["ep", "laplace"])
def test_sites_follow_their_duels_into_another_order(engine):
    model = model_of(engine)
    first = fit_posterior(told(40), model)
    order = np.random.default_rng(5).permutation(40)
    # The same duels in another order: the sites are at their fixed point from the start. Taken
    # for those of the first duels (without the comparisons that they belong to) they are not.
    assert fit_posterior(told(None, order), model, first.state).n_iter <= 2
    misplaced = first.state._replace(comparisons=None)
    assert fit_posterior(told(None, order), model, misplaced).n_iter > 2


def test_a_stream_also_learns_from_its_sites(monkeypatch):
    model, search = model_of(EP(), 0.05, (1e-3, 1.0)), Search(warn_not_converged=False)
    first = fit_posterior(told(50), model, search=search)
    sweeps, plain = [], ep._run_sweep

    def counted(*arguments, **options):
        sweeps.append(1)
        return plain(*arguments, **options)

    monkeypatch.setattr(ep, "_run_sweep", counted)
    cold = fit_posterior(told(52), first.model, search=search)
    n_cold = len(sweeps)
    warm = fit_posterior(told(52), first.model, first.state, search=search)
    assert len(sweeps) - n_cold < n_cold
    assert_allclose(warm.model.theta, cold.model.theta, atol=1e-3)
    assert_allclose(warm.log_evidence, cold.log_evidence, atol=1e-5)


def test_a_state_of_another_engine_is_no_start():
    of_laplace = fit_posterior(told(20), model_of(Laplace())).state
    cold = fit_posterior(told(20), model_of(EP()))
    assert fit_posterior(told(20), model_of(EP()), of_laplace).n_iter == cold.n_iter


def test_a_start_that_leads_nowhere_is_left():
    bad = {"precision": np.full(20, 1e12), "shift": np.full(20, -1e9)}
    cold = fit_posterior(told(20), model_of(EP()))
    found = fit_posterior(told(20), model_of(EP(max_iter=cold.n_iter)), Start(bad))
    assert found.evaluation.approximation.converged
    assert_allclose(found.posterior.mean(ASKED), cold.posterior.mean(ASKED), atol=1e-6)


# -- states for other answers ----------------------------------------------------------------


@pytest.mark.parametrize("state_of", ["duels", "answers"])
def test_both_rules_agree_on_a_stream(state_of):
    few, more = told(25), told(60)
    n = {"duels": len(few.duels.counts), "answers": 25}[state_of]
    assert len(few.duels.counts) < 25  # some duels came twice
    state = {"one": np.arange(1.0, n + 1.0), "two": np.arange(3.0 * n).reshape(3, n)}
    by_prefix = match_state(state, None, more, state_of)
    by_match = match_state(state, few, more, state_of)
    total = {"duels": len(more.duels.counts), "answers": 60}[state_of]
    for name, part in state.items():
        assert by_prefix[name].shape == (*part.shape[:-1], total)
        assert_array_equal(by_prefix[name], by_match[name])
        assert_array_equal(by_prefix[name][..., :n], part)
        assert np.all(np.isnan(by_prefix[name][..., n:]))
    back = match_state(by_match, more, few, state_of)
    for name, part in state.items():
        assert_array_equal(back[name], part)
        assert_array_equal(match_state(by_prefix, None, few, state_of)[name], part)


def test_counts_do_not_matter_to_states_of_distinct_duels():
    once, thrice = told(1), told(None, [0, 0, 0, 1])
    state = {"precision": np.array([2.5])}
    assert_array_equal(match_state(state, once, thrice, "duels")["precision"], [2.5, np.nan])
    assert_array_equal(
        match_state(state, once, thrice, "answers")["precision"], [2.5, np.nan, np.nan, np.nan]
    )


def test_nothing_is_carried_from_nothing():
    assert match_state(None, None, told(3), "duels") is None
    assert match_state({}, told(2), told(3), "duels") is None
    empty = match_state({"margins": np.zeros((2, 0))}, None, told(3), "answers")["margins"]
    assert empty.shape == (2, 3)
    assert np.all(np.isnan(empty))


# -- the second engine -----------------------------------------------------------------------


def test_a_state_has_what_either_engine_needs():
    seen = told(10)
    of_ep = fit_posterior(seen, model_of(EP())).state
    assert set(of_ep.sites) == {"precision", "shift"}
    assert of_ep.chains is None
    assert of_ep.comparisons is seen
    fitted = fit_posterior(seen, model_of(HMC(draws=40)), rng=np.random.default_rng(0))
    assert set(fitted.state.sites) == {"precision", "shift"}
    assert fitted.state.chains["margins"].shape == (20, 10)
    assert_array_equal(fitted.state.chains["margins"], fitted.approximation.state["margins"])


def test_an_engine_that_samples_waits_for_random_numbers():
    seen, model = told(10), model_of(HMC(draws=80))
    fitted = fit_posterior(seen, model)
    assert fitted.posterior.n_components == 1
    assert fitted.diagnostics is None
    refined = fitted.refine_with_engine(np.random.default_rng(3))
    assert refined.posterior.n_components == 80
    assert refined.diagnostics.n_draws == 80
    # The evidence engine's result stays beside it.
    assert refined.evaluation is fitted.evaluation
    assert refined.gaussian.n_components == 1
    assert_array_equal(refined.gaussian.weights, fitted.posterior.weights)
    assert refined.log_evidence == fitted.log_evidence
    at_once = fit_posterior(seen, model, rng=np.random.default_rng(3))
    assert_array_equal(at_once.posterior.weights, refined.posterior.weights)
    assert fitted.posterior.n_components == 1  # as it was


def test_there_is_nothing_to_refine_in_an_engine_with_evidence():
    fitted = fit_posterior(told(10), model_of(EP()))
    assert fitted.refine_with_engine(np.random.default_rng(0)) is fitted
    assert fitted.gaussian is fitted.posterior


def test_a_refinement_starts_where_it_is_told():
    fitted = fit_posterior(told(6), model_of(Gibbs(draws=1, chains=1, burn_in=0, thin=1), 1e-8))
    rng, far = np.random.default_rng(0), np.full((1, 6), 1e-3)
    at = fitted.refine_with_engine(rng, {"margins": far}).state.chains["margins"]
    cold = fitted.refine_with_engine(rng).state.chains["margins"]
    # With hardly any noise one sweep of six margins of few items stays near.
    assert np.abs(np.log(at / far)).max() < np.abs(np.log(cold / far)).max()


def test_evidence_is_that_of_the_fit():
    model = model_of(EP())
    fitted = fit_posterior(told(20), model)
    found = evaluate_evidence(told(20), model, eval_gradient=True)
    value = found.approximation.sites.log_evidence
    assert value == pytest.approx(fitted.log_evidence, rel=1e-12)
    assert found.gradient.shape == model.theta.shape


def test_an_engine_that_did_not_converge_says_so():
    with pytest.warns(ConvergenceWarning, match=r"EP stopped after 1 iterations.*EP\(max_iter"):
        fit_posterior(told(20), model_of(EP(max_iter=1)))


# -- chains over fits of an estimator --------------------------------------------------------


class Watched(HMC):
    """HMC that tells what it was started from and where it ended."""

    seen: ClassVar[list] = []

    def run(self, problem, start=None, rng=None, gaussian=None):
        found = super().run(problem, start, rng, gaussian)
        items, positions = problem.comparisons.items, problem.comparisons.positions
        ends = [tuple(items[pair].ravel()) for pair in positions]
        self.seen.append((start, ends, found.state["margins"], found.diagnostics.burn_in))
        return found


def test_chains_follow_their_duels_over_fits():
    X = smooth_duels(16, seed=4)
    X = np.concatenate([X, X[:2]])  # two duels come twice
    rng = np.random.default_rng(1)
    model = PairwisePreferenceRegressor(
        RBF(0.5),
        inference=Watched(draws=80, chains=4, warm_start=True),
        noise_variance=1e-2,
        optimizer=None,
        random_state=0,
    )
    Watched.seen = []
    model.fit(X[:14])
    model.fit(X[rng.permutation(18)])  # more of them, in another order
    model.fit(X[rng.permutation(18)[:11]])  # fewer, in yet another
    (begin, *_), *later = Watched.seen
    assert begin is None
    counts = []
    for (_, before, ended, _), (start, ends, _, burn_in) in zip(Watched.seen, later, strict=False):
        assert burn_in == 3
        left = {}
        for duel, column in zip(before, ended.T, strict=True):
            left.setdefault(duel, []).append(column)
        new = 0
        for duel, column in zip(ends, start["margins"].T, strict=True):
            if left.get(duel):
                assert_array_equal(column, left[duel].pop(0))
            else:
                assert np.all(np.isnan(column))
                new += 1
        counts.append(new)
    assert counts == [4, 0]
