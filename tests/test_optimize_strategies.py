"""Strategies as data: each asks what its definition says."""

import numpy as np
import pytest
from scipy.stats import norm

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Laplace
from skpref.optimize import STRATEGIES, PreferenceOptimizer, Strategy
from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._strategies import INCUMBENTS, surface_of

NAMES = [
    *("HB-EI", "HB-UCB", "HB-mean", "HB-MUC", "HB-BVEI"),
    *("LA-EI", "EP-EI", "EP-MUC", "EP-TS-MUC"),
    *("DuelTS", "DuelUCB", "EIIG", "DoubleTS", "EUBO", "random"),
]
SQUARE = [[0.0, 1.0], [0.0, 1.0]]
BEST = np.array([0.3, 0.6])


def taste(x):
    return -float(np.sum((x - BEST) ** 2))


def build(strategy, seed=0, space=SQUARE, **options):
    fields = dict(strategy._asdict())
    if fields["inference"] == "hmc":
        fields["inference"] = HMC(draws=60, chains=20)
    return PreferenceOptimizer(space, **fields, random_state=seed, **options)


def run(made, n):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    return made


def test_every_method_of_the_paper_is_there():
    assert set(NAMES) == set(STRATEGIES)
    for strategy in STRATEGIES.values():
        assert strategy.incumbent in INCUMBENTS
        assert strategy.acquisition in {*ACQUISITIONS, "thompson", "random"}


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "random"])
def test_every_method_finds_an_easy_optimum(name):
    """Within the best hundredth of the square, where random items come one time in a hundred."""
    made = run(build(STRATEGIES[name], seed=1), 24)
    share = 0.03 if "TS" in name else 0.01  # draws of the function explore more
    assert np.linalg.norm(made.recommend() - BEST) < np.sqrt(share / np.pi)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", NAMES)
def test_every_method_works_on_pools_and_repeats_itself(name):
    table = np.random.default_rng(0).random((40, 2))
    known = {tuple(row) for row in table}

    def made():
        optimizer = build(STRATEGIES[name], space=None, candidates=table, n_initial=4)
        return run(optimizer, 7)

    duel = made().ask()
    assert tuple(duel[0]) in known
    assert tuple(duel[1]) in known
    assert not np.array_equal(duel[0], duel[1])
    np.testing.assert_array_equal(duel, made().ask())


@pytest.mark.parametrize("name", ["LA-EI", "EP-EI", "EP-MUC"])
def test_gaussian_methods_ask_for_the_maximum_of_their_acquisition(name):
    made = run(build(STRATEGIES[name]), 10)
    incumbent, challenger = made.to_unit(made.ask())
    posterior = made.posterior_
    seen = made.to_unit(np.concatenate([entry.duel for entry in made.history_]))
    np.testing.assert_array_equal(incumbent, seen[np.argmax(posterior.mean(seen))])
    surface = surface_of(STRATEGIES[name].acquisition, posterior, incumbent, seen)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1).reshape(-1, 2)
    reached, best = surface.value(challenger[None])[0], surface.value(grid).max()
    assert reached >= best - 1e-4 * abs(best)


def test_laplace_and_ep_are_what_the_names_say():
    la, ep = (run(build(STRATEGIES[name]), 8) for name in ("LA-EI", "EP-EI"))
    for made, engine in ((la, Laplace()), (ep, EP())):
        duels = np.array([made.to_unit(entry.duel) for entry in made.history_])
        outcomes = [entry.outcome for entry in made.history_]
        posterior = made.posterior_
        model = PairwisePreferenceRegressor(
            posterior.kernel,
            inference=engine,
            noise_variance=posterior.noise_variance,
            optimizer=None,
        ).fit(duels, outcomes)
        X = np.random.default_rng(0).random((20, 2))
        np.testing.assert_allclose(posterior.mean(X), model.posterior_.mean(X), atol=1e-6)
        np.testing.assert_allclose(posterior.var(X), model.posterior_.var(X), atol=1e-6)


def test_thompson_items_differ_from_those_seen():
    made = run(build(STRATEGIES["DoubleTS"]), 9)
    seen = made.to_unit(np.concatenate([entry.duel for entry in made.history_]))
    for row in made.to_unit(made.ask()):
        assert np.abs(seen - row).max(axis=1).min() > 1e-9


def test_eubo_is_the_best_pair_there_is():
    """Its duel against ten thousand random pairs, by E max of two normals (Clark 1961)."""
    made = run(build(STRATEGIES["EUBO"], seed=2), 10)
    posterior = made.posterior_

    def utility_of_best(A, B):
        mean, var = posterior.margin(A, B)
        z = mean / np.sqrt(var)
        return posterior.mean(B) + mean * norm.cdf(z) + np.sqrt(var) * norm.pdf(z)

    pairs = np.random.default_rng(0).random((2, 10_000, 2))
    asked = made.to_unit(made.ask())
    reached = utility_of_best(asked[:1], asked[1:])[0]
    best = utility_of_best(*pairs).max()
    assert reached > best - 0.02 * abs(best)


def test_random_duels_do_not_depend_on_answers():
    def asked(outcome):
        made = build(STRATEGIES["random"], n_initial=1)
        rows = []
        for _ in range(6):
            rows.append(made.ask())
            made.tell(rows[-1], outcome)
        return np.array(rows)

    np.testing.assert_array_equal(asked(1), asked(0))
    rows = np.concatenate(asked(1))
    assert len(np.unique(rows, axis=0)) == 12


def test_a_strategy_of_ones_own():
    mine = Strategy("ep", "posterior_mean", lambda posterior, X, incumbent: posterior.var(X))
    made = run(build(mine), 8)
    challenger = made.to_unit(made.ask())[1]
    grid = np.random.default_rng(0).random((2000, 2))
    variance = made.posterior_.var
    assert variance(challenger[None])[0] >= variance(grid).max() - 1e-3
