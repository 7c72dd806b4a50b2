"""The expected utility of the best of several: against simulation, formulas and random sets."""

import numpy as np
import pytest
from sets_support import tell_sets
from test_optimize_acquisition import KERNELS, posterior

from skpref.optimize import STRATEGIES, PreferenceOptimizer
from skpref.optimize._acquisition import BestOf, draw_shared_normals
from skpref.optimize._strategies import acquisition_surface

MEMBERS = np.array([[0.2, 0.7], [0.8, 0.3], [0.5, 0.9]])


def best_of(post, members, seed=0):
    normals = draw_shared_normals(len(members), post.n_components, np.random.default_rng(seed))
    return BestOf(post, members, normals)


def simulated(post, items, n=400_000, seed=1):
    """E max f by plain draws of the mixture."""
    return post.sample(items, n, np.random.default_rng(seed)).max(axis=0).mean()


@pytest.mark.parametrize("n_components", [1, 4, 300])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_values_agree_with_simulation(m, n_components):
    post = posterior(n_components=n_components)
    members = MEMBERS[:m]
    X = np.array([[0.25, 0.1], [0.95, 0.95]])
    found = best_of(post, members).value(X)
    for x, value in zip(X, found, strict=True):
        exact = simulated(post, np.concatenate([members, x[None]]))
        assert value == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("n_components", [1, 4])
def test_of_two_it_is_the_closed_form(n_components):
    post = posterior(n_components=n_components)
    X = np.random.default_rng(2).random((20, 2))
    exact = acquisition_surface("eubo", post, MEMBERS[0], post.anchors).value(X)
    np.testing.assert_allclose(best_of(post, MEMBERS[:1]).value(X), exact, atol=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_components", [1, 5])
def test_gradients_agree_with_central_differences(n_components, kernel):
    found = best_of(posterior(KERNELS[kernel], n_components), MEMBERS)
    X = np.random.default_rng(1).random((12, 2))
    value, gradient = found.value_and_gradient(X)
    np.testing.assert_allclose(value, found.value(X), rtol=1e-9)
    step = 1e-5
    for k in range(2):
        above, below = X.copy(), X.copy()
        above[:, k] += step
        below[:, k] -= step
        slope = (found.value(above) - found.value(below)) / (2 * step)
        np.testing.assert_allclose(gradient[:, k], slope, rtol=2e-5, atol=2e-6)


def test_an_item_twice_adds_nothing():
    post = posterior()
    once = best_of(post, MEMBERS[:2]).value(MEMBERS[:1])[0]
    assert once == pytest.approx(simulated(post, MEMBERS[:2]), abs=0.01)


@pytest.mark.slow
def test_a_joint_set_is_the_best_there_is():
    """By simulation, against the best of 1500 random sets."""
    made = PreferenceOptimizer(
        [[0.0, 1.0]] * 2, **STRATEGIES["EUBO"]._asdict(), n_initial=3, random_state=2
    )
    tell_sets(made, 8, 3)
    post, rng = made.posterior_, np.random.default_rng(0)
    asked = made.to_unit(made.ask(size=3))
    sets = rng.random((1500, 3, 2))
    rough = [post.sample(each, 200, np.random.default_rng(1)).max(axis=0).mean() for each in sets]
    best = max(simulated(post, sets[k], 40_000) for k in np.argsort(rough)[-10:])
    reached = simulated(post, asked, 40_000)
    assert reached > best - 0.02 * abs(best)
    assert (np.diff(post.mean(asked)) <= 0).all()  # incumbent first
    pairs = [simulated(post, np.delete(asked, k, axis=0), 40_000) for k in range(3)]
    assert reached > max(pairs)


def test_the_best_of_a_set_may_be_sought_beside_the_last_winner():
    options = STRATEGIES["EUBO"]._asdict() | {"incumbent": "last_winner"}
    made = PreferenceOptimizer([[0.0, 1.0]] * 2, **options, n_initial=3, random_state=2)
    tell_sets(made, 8, 3)
    items = made.to_unit(made.ask(size=3))
    np.testing.assert_array_equal(items[0], made.to_unit([made.incumbent_])[0])
    post = made.posterior_
    surface = best_of(post, items[:2])
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 51)] * 2), axis=-1).reshape(-1, 2)
    reached, best = surface.value(items[2:])[0], surface.value(grid).max()
    assert reached > best - 0.01 * abs(best)


@pytest.mark.slow
def test_no_item_of_a_joint_set_could_be_replaced_by_a_better_one():
    made = PreferenceOptimizer(
        [[0.0, 1.0]] * 4, **STRATEGIES["EUBO"]._asdict(), n_initial=3, random_state=0
    )
    for _ in range(3):
        items = made.ask(size=4)
        made.tell(items, chosen=int(np.argmin(np.sum((items - 0.4) ** 2, axis=1))))
    post, asked = made.posterior_, made.to_unit(made.ask(size=4))
    rng = np.random.default_rng(0)
    for place, row in enumerate(asked):
        surface = best_of(post, np.delete(asked, place, axis=0), seed=5)
        near = np.clip(row + 0.2 * rng.standard_normal((1000, 4)), 0.0, 1.0)
        most = surface.value(np.concatenate([near, rng.random((4000, 4))])).max()
        assert surface.value(row[None])[0] > most - 0.003 * abs(most)
