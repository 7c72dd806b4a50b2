"""Questions under drawn hyperparameters: their distribution, and that a run stays replayable."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref.fitting import hyperparameter_spread
from skpref.optimize import STRATEGIES, PreferenceOptimizer, Strategy
from skpref.optimize._model import draw_hyperparameters

SQUARE = [[0.0, 1.0], [0.0, 1.0]]
ENGINES = ("hallucination", "kriging_believer", "constant_liar", "laplace", "ep", "hmc", "svi")


def taste(x):
    return -float(np.sum((x - [0.3, 0.6]) ** 2))


def told(n=8, **options):
    made = PreferenceOptimizer(SQUARE, **{"random_state": 0, "n_initial": 4} | options)
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    return made


def fit_of(made):
    return made._session.fitted()[0]


def log_posterior(fit, theta):
    model = fit.model.at(theta)
    evidence = model.evaluate(fit.comparisons).approximation.sites.log_evidence
    return evidence + model.log_prior(theta)[0]


@pytest.mark.slow
def test_the_spread_is_laplaces():
    """Beside second differences of the log posterior itself."""
    fit = fit_of(told(20, refit_every=1))
    theta, bounds = fit.model.theta, fit.model.bounds
    n, step = len(theta), 0.1
    hessian = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            values = [
                s
                * t
                * log_posterior(fit, theta + 0.5 * step * (s * np.eye(n)[i] + t * np.eye(n)[j]))
                for s, t in signs
            ]
            hessian[i, j] = sum(values) / step**2
    precision = -hessian + np.diag(12.0 / np.ptp(bounds, axis=1) ** 2)
    root = hyperparameter_spread(fit.model, fit.comparisons)
    assert_allclose(root @ root.T, np.linalg.inv(precision), rtol=0.05, atol=0.01)


@pytest.mark.slow
def test_draws_have_that_covariance():
    fit = fit_of(told(8))
    root = 0.1 * hyperparameter_spread(fit.model, fit.comparisons)  # far within the bounds
    rng = np.random.default_rng(0)
    drawn = np.array([draw_hyperparameters(fit, root, rng).model.theta for _ in range(400)])
    assert_allclose(drawn.mean(axis=0), fit.model.theta, atol=4 * np.abs(root).max() / 20)
    assert_allclose(np.cov(drawn.T), root @ root.T, atol=0.25 * np.max(root @ root.T))


def test_draws_keep_within_the_bounds():
    fit = fit_of(told(6))
    low, high = fit.model.bounds.T
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = draw_hyperparameters(fit, 50.0 * np.eye(len(low)), rng).model.theta
        assert np.all((theta >= low) & (theta <= high))


@pytest.mark.parametrize("inference", ENGINES)
def test_every_engine_asks_under_drawn_hyperparameters(inference):
    best, drawn = (told(4, inference=inference, hyperparameters=each) for each in ("best", "drawn"))
    assert not np.array_equal(best.ask(), drawn.ask())
    if inference not in ("laplace", "svi"):  # which take duels only
        assert drawn.ask(size=3).shape == (3, 2)


def test_without_a_free_hyperparameter_nothing_is_drawn():
    fixed = {"noise_variance": 0.01, "noise_variance_bounds": "fixed", "lengthscale_prior": None}
    questions = [
        told(6, kernel=RBF(0.3, "fixed"), hyperparameters=each, **fixed).ask()
        for each in ("best", "drawn")
    ]
    assert_allclose(*questions, atol=0.0)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (STRATEGIES["KG+EI"], {}),
        (STRATEGIES["DoubleTS"], {"size": 3}),
        (Strategy("hallucination", "posterior_mean", "log_ei"), {"kind": "line", "size": 4}),
    ],
    ids=["duel", "set", "line"],
)
def test_what_is_asked_unless_something_is_said(given, asked):
    """After four first duels: the question of the strategy and the priors that the guide names."""
    made = PreferenceOptimizer(SQUARE, random_state=0)
    for _ in range(4):
        duel = made.ask()
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    priors = {"lengthscale_prior": (0.2 * np.sqrt(2.0), 0.75), "noise_prior": (3e-3, 3.0)}
    options = {**given._asdict(), "n_initial": 4, **priors}
    same = PreferenceOptimizer(SQUARE, **options, random_state=0)
    for duel, outcome in made.history_:
        same.tell(duel, outcome)
    once = PreferenceOptimizer(SQUARE, random_state=0)
    for duel, outcome in made.history_:
        once.tell(duel, outcome)
    assert_allclose(once.ask(**asked), same.ask(**asked), atol=0.0)
    design = PreferenceOptimizer(SQUARE, inference="ep", n_initial=4, random_state=0)
    for duel, outcome in made.history_:
        assert_allclose(design.ask(), duel, atol=0.0)
        design.tell(duel, outcome)


def test_ties_and_pools_go_with_it():
    pool = np.random.default_rng(0).random((30, 2))
    made = PreferenceOptimizer(
        candidates=pool, hyperparameters="drawn", n_initial=2, random_state=0
    )
    for outcome in (1, 0, "tie", 1):
        made.tell(made.ask(), outcome)
    assert len({tuple(item) for item in made.ask(size=4)}) == 4


def test_a_journal_continues_with_the_same_question(tmp_path):
    path = tmp_path / "run.db"
    made = told(7, journal=path, hyperparameters="drawn")
    again = PreferenceOptimizer(SQUARE, n_initial=4, journal=path, hyperparameters="drawn")
    assert_allclose(made.ask(), again.ask(), atol=0.0)
    with pytest.raises(ValueError, match="another configuration"):
        PreferenceOptimizer(SQUARE, n_initial=4, journal=path)


def test_turns_have_their_own():
    strategy = Strategy("hallucination", "thompson", "thompson", ("best", "drawn"))
    assert [each.hyperparameters for each in strategy.turns] == ["best", "drawn"]
    assert STRATEGIES["HB-EI"].hyperparameters == "best"


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="hyperparameters must be"):
        PreferenceOptimizer(SQUARE, hyperparameters="all")
