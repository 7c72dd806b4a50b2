"""Starts of engines from where they ended at other hyperparameters."""

import numpy as np
import pytest
from core_support import random_duels, won
from sklearn.gaussian_process.kernels import RBF

from skpref.fitting import _search
from skpref.fitting._model import Model
from skpref.fitting._search import WarmStart, extrapolated
from skpref.inference import EP, Laplace
from skpref.likelihoods import Probit


@pytest.fixture(scope="module")
def ends():
    """A model, its answers, and where EP ends along a line of hyperparameters."""
    seen = won(*random_duels(0, 15, 60))
    model = Model(RBF(0.7), Probit(0.1), EP(tol=1e-10))
    thetas = [model.theta + step * np.array([0.3, -0.4]) for step in (0.0, 0.5, 1.0, 0.75)]
    states = [model.at(theta).evaluate(seen).approximation.state for theta in thetas]
    return model, seen, thetas, states


def off(state, truth):
    return np.max(np.abs(np.log(state["precision"] / truth["precision"])))


def test_states_between_known_ones_are_nearer_than_any_of_them(ends):
    model, _, thetas, states = ends
    warm = WarmStart(model.engine)
    for theta, state in zip(thetas[:3], states[:3], strict=True):
        warm.add(theta, state)
    guess = warm.near(thetas[3])
    assert off(guess, states[3]) < 0.2 * min(off(state, states[3]) for state in states[:3])


def test_the_nearest_is_taken_where_the_others_tell_nothing(ends):
    model, _, thetas, states = ends
    warm = WarmStart(model.engine, {"first": np.zeros(1)})
    assert set(warm.near(thetas[0])) == {"first"}
    warm.add(thetas[0], states[0])
    assert warm.near(thetas[1]) is states[0]
    warm.add(thetas[0] + 8.0, states[1])  # too far to tell of what lies around the first
    assert warm.near(thetas[1]) is states[0]
    assert warm.near(thetas[0] + 7.0) is states[1]
    names = Laplace.capabilities.site_names
    assert extrapolated(states, np.array([2.0, -1.0]), names) is states[0]


def test_a_guess_saves_sweeps_and_ends_at_the_same_place(ends):
    model, seen, thetas, states = ends
    warm = WarmStart(model.engine)
    for theta, state in zip(thetas[:3], states[:3], strict=True):
        warm.add(theta, state)
    at = model.at(thetas[3])
    cold, last = at.evaluate(seen), at.evaluate(seen, states[0])
    found = at.evaluate(seen, warm.near(thetas[3]))
    assert found.approximation.n_iter < last.approximation.n_iter
    np.testing.assert_allclose(
        found.approximation.sites.log_evidence, cold.approximation.sites.log_evidence, rtol=1e-10
    )


def guess(known, theta, monkeypatch):
    """The weights of an extrapolation."""
    monkeypatch.setattr(_search, "extrapolated", lambda states, weights, names: weights)
    warm = WarmStart(EP())
    for each in known:
        warm.add(np.array(each), {"at": np.array(each)})
    return warm.near(np.array(theta))


def test_weights_say_where_the_hyperparameters_lie(monkeypatch):
    known = np.array([[0.0, 0.0], [0.0, 0.3], [1.0, 0.0]])  # the nearest first
    theta = np.array([-0.2, 0.1])
    weights = guess(known, theta, monkeypatch)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ known, theta, atol=1e-12)


def test_directions_that_rounding_may_have_made_are_not_followed(monkeypatch):
    weights = guess([[0.0, 0.0], [1.0, 0.0], [1.0, 1e-7]], [0.0, -0.1], monkeypatch)
    np.testing.assert_allclose(weights, [1.0, 0.0, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("known", "theta"),
    [
        ([[0.0], [0.5]], [-2.0]),  # four times the step between both
        ([[0.0], [2.0]], [-3.5]),  # too far from either, if less bold
    ],
)
def test_nothing_is_extrapolated_too_far(known, theta, monkeypatch):
    assert guess(known, theta, monkeypatch)["at"] == known[0]
    assert isinstance(guess(known, [-0.4], monkeypatch), np.ndarray)
