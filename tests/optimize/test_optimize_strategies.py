"""Strategies as data: each asks what its definition says."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import entropy, multivariate_normal, norm
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Laplace
from skpref.optimize import STRATEGIES, PreferenceOptimizer, Strategy
from skpref.optimize._strategies import acquisition_surface

# Takeno et al. 2023, section 6, appendices E and G.4; what is outside the paper comes last.
ROWS = {
    "HB-EI": ("hallucination", "last_winner", "ei"),
    "HB-UCB": ("hallucination", "last_winner", "ucb"),
    "HB-mean": ("hallucination", "last_winner", "mean"),
    "HB-MUC": ("hallucination", "last_winner", "muc"),
    "HB-BVEI": ("hallucination", "last_winner", "bvei"),
    "KB-EI": ("kriging_believer", "last_winner", "ei"),
    "CL-EI": ("constant_liar", "last_winner", "ei"),
    "LA-EI": ("laplace", "posterior_mean", "ei"),
    "EP-EI": ("ep", "posterior_mean", "ei"),
    "EP-MUC": ("ep", "posterior_mean", "muc"),
    "EP-TS-MUC": ("ep", "thompson", "muc"),
    "DuelTS": ("hallucination", "last_winner", "thompson"),
    "DuelUCB": ("hmc", "last_winner", "duel_ucb"),
    "EIIG": ("hmc", "last_winner", "eiig"),
    "DoubleTS": ("hallucination", "thompson", "thompson"),
    "EUBO": ("ep", "joint", "eubo"),
    "KG": ("ep", "joint", "kg"),
    "HB-KG": ("hallucination", "joint", "kg"),
    "JES": ("ep", "joint", "jes"),
    "HB-logEI+EUBO": (("hallucination", "ep"), ("last_winner", "joint"), ("log_ei", "eubo")),
    "KG+EI": (
        ("ep", "hallucination"),
        ("joint", "posterior_mean"),
        ("kg", "log_ei"),
        "drawn",
    ),
    "random": ("ep", "random", "random"),
}
NAMES = list(ROWS)
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


# --- each row by what it asks ---------------------------------------------------------------


def improvement(mean, deviation):
    """E[(mean + deviation · normal)⁺]."""
    return mean * norm.cdf(mean / deviation) + deviation * norm.pdf(mean / deviation)


def margins(posterior, X, incumbent):
    """Means (n, S) and deviation (n, 1) of f(x) − f(incumbent), a component a column."""
    means, var = posterior.component_margins(X, np.repeat(incumbent[None], len(X), axis=0))
    return means, np.sqrt(np.maximum(var, 1e-300))[:, None]


def over_nodes(posterior, X, incumbent):
    """P(x wins | f) at quadrature nodes of f(x) − f(incumbent), and the nodes' weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    means, deviation = margins(posterior, X, incumbent)
    f = means[:, :, None] + deviation[:, :, None] * nodes
    p = norm.cdf(f / np.sqrt(2.0 * posterior.likelihood.noise_variance))
    return p, weights / weights.sum() / means.shape[1]


def ei(posterior, X, incumbent):
    best = posterior.mean(posterior.anchors).max()
    return improvement(posterior.mean(X) - best, np.sqrt(posterior.var(X)))


def bvei(posterior, X, incumbent):
    means, deviation = margins(posterior, X, incumbent)
    return improvement(means, deviation).mean(axis=1)


def muc(posterior, X, incumbent):
    """E[p²] is the probability that x wins twice."""
    means, deviation = margins(posterior, X, incumbent)
    total = np.sqrt(2.0 * posterior.likelihood.noise_variance + deviation**2)
    shared = (deviation / total)[:, 0] ** 2
    h = (means / total)[:, 0]
    pairs = zip(h, shared, strict=True)
    twice = [multivariate_normal.cdf([x, x], cov=[[1, r], [r, 1]], abseps=1e-12) for x, r in pairs]
    return np.array(twice) - norm.cdf(h) ** 2


def duel_ucb(posterior, X, incumbent):
    def upper(means, deviation):
        ends = means.min() - 9.0 * deviation, means.max() + 9.0 * deviation
        return brentq(lambda q: norm.cdf((q - means) / deviation).mean() - 0.95, *ends)

    means, deviation = margins(posterior, X, incumbent)
    return np.array([upper(*each) for each in zip(means, deviation[:, 0], strict=True)])


def eiig(posterior, X, incumbent):
    p, weights = over_nodes(posterior, X, incumbent)
    win = (p * weights).sum(axis=(1, 2))
    gained = entropy([win, 1.0 - win]) - (entropy([p, 1.0 - p]) * weights).sum(axis=(1, 2))
    return 0.1 * np.log(win) + gained


FORMULAS = {
    "ei": ei,
    "ucb": lambda posterior, X, _: posterior.mean(X) + 2.0 * np.sqrt(posterior.var(X)),
    "mean": lambda posterior, X, _: posterior.mean(X),
    "muc": muc,
    "bvei": bvei,
    "duel_ucb": duel_ucb,
    "eiig": eiig,
    "eubo": lambda posterior, X, at: posterior.mean(at[None])[0] + bvei(posterior, X, at),
}


POOL = np.random.default_rng(0).random((30, 2))


def asked(strategy, n_told=6):
    """Duels of a small pool, with answers by chance, and the posterior at the end."""
    made = build(strategy, space=None, candidates=POOL, n_initial=4)
    answers = np.random.default_rng(3).integers(0, 2, n_told)
    duels = [duel for won in answers if made.tell(duel := made.ask(), won)]
    return np.array([*duels, made.ask()]), made.posterior_.mean(made.to_unit(POOL))


@cache
def asked_by(name):
    return asked(STRATEGIES[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_the_method_of_its_name(name):
    assert set(STRATEGIES) == set(ROWS)
    assert STRATEGIES[name] == Strategy(*ROWS[name])


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", thinned(n for n in NAMES if ROWS[n][2] in FORMULAS))
def test_every_row_asks_as_the_formula_of_its_acquisition_does(name):
    inference, incumbent, acquisition = ROWS[name][:3]
    duels, means = asked_by(name)
    expected, expected_means = asked(Strategy(inference, incumbent, FORMULAS[acquisition]))
    np.testing.assert_array_equal(duels, expected)
    np.testing.assert_array_equal(means, expected_means)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not mixed")
def test_rows_of_one_acquisition_ask_differently():
    """By the engine and by the rule for the first item."""
    found = {name: asked(STRATEGIES[name], 7)[0].tobytes() for name in NAMES}
    assert len(set(found.values())) == len(NAMES)


# --- what they find -------------------------------------------------------------------------


# One of three engines in the plain tests.
PLAIN = {"HB-EI", "LA-EI", "EIIG"}


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in PLAIN else pytest.mark.slow)
        for name in NAMES
        if name != "random"
    ],
)
def test_every_method_finds_an_easy_optimum(name):
    """Within the best hundredth of the square, where random items come one time in a hundred.

    Where one run does not come so near, the median of fifteen decides. DoubleTS and HB-KG were run
    with 32 seeds each: nine runs of each end farther off than the bound, and their medians are four
    fifths and three quarters of it. JES learns of the whole optimum before it comes near: after 22
    answers the median of 30 seeds is .101 for a bound of .098, after 30 answers .081.
    """
    n_answers = {"HB-MUC": 22, "HB-BVEI": 22, "EP-MUC": 22, "JES": 30}.get(name, 16)
    # draws of the function explore more, and so does what asks for information alone
    share = 0.03 if "TS" in name or name == "JES" else 0.01

    def distance(seed):
        made = run(build(STRATEGIES[name], seed=seed), n_answers)
        return np.linalg.norm(made.recommend() - BEST)

    near, first = np.sqrt(share / np.pi), distance(1)
    assert first < near or np.median([first, *map(distance, range(2, 16))]) < near


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", thinned(NAMES, 4))
def test_every_method_works_on_pools_and_repeats_itself(name):
    duels, means = asked_by(name)
    known = {tuple(row) for row in POOL}
    assert all(tuple(item) in known for duel in duels for item in duel)
    assert not np.any(np.all(duels[:, 0] == duels[:, 1], axis=1))
    again, same_means = asked(STRATEGIES[name])
    np.testing.assert_array_equal(duels, again)
    np.testing.assert_array_equal(means, same_means)


@pytest.mark.parametrize("name", ["LA-EI", "EP-EI", "EP-MUC"])
def test_gaussian_methods_ask_for_the_maximum_of_their_acquisition(name):
    made = run(build(STRATEGIES[name]), 10)
    incumbent, challenger = made.to_unit(made.ask())
    posterior = made.posterior_
    seen = made.to_unit(np.concatenate([entry.duel for entry in made.history_]))
    np.testing.assert_array_equal(incumbent, seen[np.argmax(posterior.mean(seen))])
    surface = acquisition_surface(STRATEGIES[name].acquisition, posterior, incumbent, seen)
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
            noise_variance=posterior.likelihood.noise_variance,
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
