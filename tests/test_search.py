"""The search for hyperparameters: its end against a grid, bounds, monitors, what it warns of."""

import numpy as np
import pytest
from core_support import random_duels, won
from oracles import central_gradient
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref._model import Model
from skpref._priors import LogNormal
from skpref._search import Search, learn
from skpref.inference import EP, Laplace
from skpref.likelihoods import Probit


def probit(noise_variance=0.1, bounds=(1e-3, 10.0)):
    return Probit(noise_variance, bounds)


def log_evidence(model, observations):
    return model.evaluate(observations).approximation.sites.log_evidence


@pytest.mark.parametrize("engine", [EP(), Laplace()])
def test_search_ends_at_the_top_of_a_grid(engine):
    observations = won(*random_duels(7, 15, 80, noise=0.4))
    prior = LogNormal(np.array([0]), np.zeros(1), np.ones(1))
    model = Model(RBF(1.0), probit(), engine, (prior,))
    found, state = learn(model, observations, Search())
    warm = found.evaluate(observations, state).approximation
    assert warm.converged

    def objective(theta):
        return log_evidence(model.at(np.array(theta)), observations) + norm.logpdf(theta[0])

    top = objective(found.theta)
    grid = [(a, b) for a in np.linspace(-2, 2, 9) for b in np.linspace(-6, 2, 9)]
    assert top >= max(map(objective, grid)) - 1e-6
    slope = central_gradient(objective, found.theta, 1e-2)
    np.testing.assert_allclose(slope, 0.0, atol=1e-2)


def test_search_keeps_to_the_bounds_and_to_what_is_fixed():
    observations = won(*random_duels(7, 15, 80, noise=0.4))
    kernel = ConstantKernel(3.0, "fixed") * RBF(1.0, (0.9, 1.1))
    quiet = Search(complain=False)
    found, _ = learn(Model(kernel, probit(0.1, (0.05, 0.06)), EP()), observations, quiet)
    assert found.kernel.k1.constant_value == 3.0
    assert 0.9 <= found.kernel.k2.length_scale <= 1.1
    assert 0.05 <= found.likelihood.noise_variance <= 0.06
    held, _ = learn(Model(RBF(1.0), probit(0.1, "fixed"), EP()), observations, quiet)
    assert held.likelihood.noise_variance == 0.1


def test_restarts_never_make_it_worse_and_are_reproducible():
    observations = won(*random_duels(7, 10, 30, noise=0.4))
    model = Model(RBF([1.0, 1.0], (1e-2, 1e2)), probit(), EP())
    one, _ = learn(model, observations, Search(complain=False))
    search = Search(n_restarts=3, complain=False)
    more, again = (
        learn(model, observations, search, rng=np.random.RandomState(0)).model for _ in range(2)
    )
    assert log_evidence(more, observations) >= log_evidence(one, observations) - 1e-6
    np.testing.assert_array_equal(more.theta, again.theta)
    endless = Model(RBF(1.0, (1e-2, np.inf)), probit(0.1, "fixed"), EP())
    with pytest.raises(ValueError, match="finite bounds"):
        learn(endless, observations, Search(n_restarts=1), rng=np.random.RandomState(0))


def test_a_callable_optimizer_is_called_as_in_scikit_learn():
    observations = won(*random_duels(7, 10, 30))
    model = Model(RBF(1.0), probit(), EP())

    def optimizer(obj_func, initial_theta, bounds):
        value, gradient = obj_func(initial_theta)
        assert gradient.shape == initial_theta.shape
        assert obj_func(initial_theta, eval_gradient=False) == pytest.approx(value, abs=1e-4)
        assert bounds.shape == (2, 2)
        return initial_theta + 0.25, value

    found, _ = learn(model, observations, Search(optimizer))
    np.testing.assert_allclose(found.theta, model.theta + 0.25)


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        3.0,
        "ab",
        (np.zeros(2),),
        (np.zeros(3), 0.0),
        (np.zeros((1, 2)), 0.0),
        (np.array([0.0, np.nan]), 0.0),
        (np.zeros(2), np.inf),
        (["a", "b"], 0.0),
        (np.zeros(2), None),
        (np.zeros(2), 0.0, {}),
    ],
    ids=repr,
)
def test_an_optimizer_that_returns_nonsense_is_named(nonsense):
    observations, model = won(*random_duels(7, 10, 30)), Model(RBF(1.0), probit(), EP())
    search = Search(lambda obj_func, initial_theta, bounds: nonsense)
    with pytest.raises(ValueError, match=r"optimizer must return \(theta_opt, func_min\).*\(2,\)"):
        learn(model, observations, search)
