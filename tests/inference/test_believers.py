"""Kriging believer and constant liar: the GP given the mean of the noisy margins, or a constant."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import truncnorm
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, ConstantLiar, Hallucination, KrigingBeliever
from skpref.optimize import STRATEGIES, PreferenceOptimizer

ASKED = np.random.default_rng(5).uniform(-1.0, 1.0, (6, 2))
KERNEL = RBF(0.7)
SQUARE = [[0.0, 1.0], [0.0, 1.0]]


def duels(seed=0, n=10):
    """Some of them repeated, one contradicted."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2, 2))
    return np.concatenate([X, X[:3], X[3:4, ::-1]])


def posterior(inference, *answers, noise_variance=0.05, **options):
    model = PairwisePreferenceRegressor(
        KERNEL,
        inference=inference,
        noise_variance=noise_variance,
        optimizer=None,
        random_state=0,
        **{key: value for key, value in options.items() if key != "fit"},
    )
    return model.fit(*answers, **options.get("fit", {})).posterior_


# --- engines --------------------------------------------------------------------------------


def test_one_margin_is_believed_at_the_mean_of_a_truncated_normal():
    X = np.array([[[0.3, 0.0], [0.0, 0.0]]])
    spread = 2.0 - 2.0 * KERNEL(X[0])[0, 1]
    total = spread + 2.0 * 0.05
    believed = truncnorm(0.0, np.inf, scale=np.sqrt(total)).mean()
    mean, var = posterior(KrigingBeliever(), X).margin(X[:, 0], X[:, 1])
    assert_allclose(mean, spread / total * believed, rtol=1e-7)
    assert_allclose(var, spread - spread**2 / total, rtol=1e-7)


def test_its_mean_is_that_of_long_chains_and_its_variance_that_of_one_draw():
    X = duels()
    found = posterior(KrigingBeliever(), X)
    exact = posterior(HMC(draws=4000), X)
    assert_allclose(found.mean(ASKED), exact.mean(ASKED), atol=0.02)
    assert_allclose(found.var(ASKED), posterior(Hallucination(), X).var(ASKED), rtol=1e-9)
    assert np.all(found.var(ASKED) < exact.var(ASKED))


def _ties():
    return {"y": np.random.default_rng(1).integers(-1, 2, 14), "tie_threshold": 0.2}


def _order():
    return {"y": np.random.default_rng(1).integers(0, 2, 14), "order_effect": 0.4}


def _judges():
    y = np.random.default_rng(1).integers(0, 2, 14)
    return {"y": y, "fit": {"judges": np.arange(14) % 3}}


@pytest.mark.parametrize("of", [dict, _ties, _order, _judges])
def test_its_mean_is_that_of_ep_for_every_kind_of_duel(of):
    options = of()
    answers = (duels(), options.pop("y", None))
    found = posterior(KrigingBeliever(), *answers, **options).mean(ASKED)
    assert_allclose(found, posterior(EP(), *answers, **options).mean(ASKED), atol=1e-6)


def test_its_mean_is_that_of_ep_for_choices_some_of_them_repeated():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1.0, 1.0, (8, 3, 2)), rng.integers(0, 3, 8)
    X, y = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
    found = posterior(KrigingBeliever(), X, y).mean(ASKED)
    assert_allclose(found, posterior(EP(), X, y).mean(ASKED), atol=1e-6)


@pytest.mark.parametrize("lie", [0.2, 1.5])
def test_a_constant_liar_is_regression_on_margins_that_all_are_the_constant(lie):
    X = duels()
    found = posterior(ConstantLiar(lie), X)
    items = X.reshape(-1, 2)
    A = np.kron(np.eye(len(X)), [1.0, -1.0])
    noisy = A @ KERNEL(items) @ A.T + 0.1 * np.eye(len(X))
    cross = KERNEL(ASKED, items) @ A.T
    assert_allclose(found.mean(ASKED), cross @ np.linalg.solve(noisy, np.full(len(X), lie)))
    covariance = KERNEL(ASKED) - cross @ np.linalg.solve(noisy, cross.T)
    assert_allclose(found.cov(ASKED), covariance, atol=1e-9)


def test_a_lie_about_a_tie_stays_within_its_threshold():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 2, 2))
    for lie, tie, win in ((1.0, 0.3, 1.0), (0.1, 0.1, 0.3)):
        found = posterior(ConstantLiar(lie), X, [0, -1], tie_threshold=0.3, noise_variance=1e-9)
        assert_allclose(found.margin(X[:, 0], X[:, 1])[0], [tie, -win], rtol=1e-4)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, "one"])
def test_a_lie_is_a_positive_number(bad):
    with pytest.raises((TypeError, ValueError), match="lie"):
        posterior(ConstantLiar(bad), duels())


# --- strategies -----------------------------------------------------------------------------


def run(made, n):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, np.sum((duel[0] - 0.4) ** 2) < np.sum((duel[1] - 0.4) ** 2))
    return made


@pytest.mark.parametrize("name", ["KB-EI", "CL-EI"])
def test_a_strategy_finds_the_best_and_its_posterior_is_that_of_ep(name):
    held = {"kernel": RBF(0.4, "fixed"), "noise_variance": 1e-3, "noise_variance_bounds": "fixed"}
    made, other = (
        PreferenceOptimizer(SQUARE, **STRATEGIES[each]._asdict(), **held, random_state=0)
        for each in (name, "EP-EI")
    )
    run(made, 16)
    assert np.abs(made.recommend() - 0.4).max() < 0.25
    for entry in made.history_:
        other.tell(*entry)
    for moment in ("mean", "var"):
        found, expected = (getattr(each.posterior_, moment)(ASKED) for each in (made, other))
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_is_believed_is_no_draw_so_that_the_items_of_a_set_are_apart():
    made = PreferenceOptimizer(SQUARE, inference="kriging_believer", random_state=0)
    run(made, 8)
    items = made.ask(size=4)
    distance = np.linalg.norm(items[:, None] - items[None], axis=2)[np.triu_indices(4, 1)]
    assert distance.min() > 0.02


def test_a_journal_takes_up_the_run_where_it_was(tmp_path):
    options = {"journal": tmp_path / "run.db", "random_state": 3}
    made = run(PreferenceOptimizer(SQUARE, inference=ConstantLiar(0.7), **options), 9)
    duel = made.ask()
    del made
    again = PreferenceOptimizer(SQUARE, inference=ConstantLiar(0.7), **options)
    assert_array_equal(again.ask(), duel)
    assert again.n_told_ == 9
    with pytest.raises(ValueError, match="another configuration"):
        PreferenceOptimizer(SQUARE, inference=ConstantLiar(0.6), **options)
